//! A filter file that is held under its lock while it is used, and then replaced.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use mayhap::bits::Bytes;
use mayhap::wire::Verify;
use mayhap::{AnyFilter, Secret};

use crate::error::StoreError;
use crate::file::{decode, put_new, replace};
use crate::lock;

/// A filter file that nobody else changes meanwhile. The name means the old file until [`put`](Held::put).
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    locked: File,
    metadata: Option<Bytes>,
    /// The file was made by us and holds nothing yet.
    is_ours: bool,
}

/// Locks a filter file, reads all of it and checks it. If there is none, one with the filter `first` is made, so that there is
/// something to lock; it goes away again unless something is [`put`](Held::put) in its place.
///
/// If another process holds it, `wait` is told once, and then it is waited for.
///
/// # Errors
/// [`StoreError`] names the file, and what the system or the decoder says.
pub fn hold(
    path: &Path,
    secret: Option<&Secret>,
    first: &dyn AnyFilter,
    wait: impl FnOnce(),
) -> Result<(Held, Box<dyn AnyFilter>), StoreError> {
    let path = lock::target(path);
    let (mut wait, mut is_ours) = (Some(wait), false);
    let mut locked = loop {
        let file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                is_ours = put_new(&path, first)?;
                continue;
            }
            Err(e) => return Err(StoreError::io(&path, "open for writing")(e)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                if let Some(wait) = wait.take() {
                    wait();
                }
                file.lock().map_err(StoreError::io(&path, "lock"))?;
                // Whoever had it may have put something into what we made.
                is_ours = false;
            }
            Err(TryLockError::Error(e)) => return Err(StoreError::io(&path, "lock")(e)),
        }
        match lock::is_named(&file, &path) {
            Ok(true) => break file,
            Ok(false) => is_ours = false,
            Err(e) if e.kind() == io::ErrorKind::NotFound => is_ours = false,
            Err(e) => return Err(StoreError::io(&path, "look at")(e)),
        }
    };
    let mut bytes = Vec::new();
    locked.rewind().and_then(|()| locked.read_to_end(&mut bytes)).map_err(StoreError::io(&path, "read"))?;
    let opened = decode(&bytes.into(), Verify::All, secret).map_err(StoreError::decode(&path))?;
    Ok((Held { path, locked, metadata: opened.metadata, is_ours }, opened.filter))
}

impl Held {
    /// Whether there was no file before.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_ours
    }

    /// Replaces the file by one with this filter.
    ///
    /// # Errors
    /// [`StoreError`] names the file and what the system says; then the old file is untouched.
    pub fn put(mut self, filter: &dyn AnyFilter) -> Result<(), StoreError> {
        replace(&self.path, Some(&self.locked), filter, self.metadata.as_ref())?;
        self.is_ours = false;
        Ok(())
    }
}

/// A file that was made only to be locked goes away again. Whoever waits for it makes another one.
impl Drop for Held {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}
