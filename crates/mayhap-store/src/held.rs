//! A filter file that is held under its lock while it is used, and then replaced.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use mayhap::{AnyFilter, Bytes, Secret};

use crate::error::StoreError;
use crate::file::{Check, decode, put_new, read_all, replace};
use crate::lock::{self, folder_of};
use crate::temporary::Temporary;

/// A filter file that no other process changes meanwhile. The name means the old file until [`put`](Held::put).
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
    let path = lock::target(path)?;
    can_be_replaced(&path)?;
    let mut wait = Some(wait);
    let (mut locked, is_ours) = loop {
        let file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => file,
            // It gets its name when it is locked already: no other process can be the first to use it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => match put_new(&path, first)? {
                Some(file) => break (file, true),
                None => continue,
            },
            Err(e) => return Err(StoreError::io(&path, "open for writing")(e)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                if let Some(wait) = wait.take() {
                    wait();
                }
                file.lock().map_err(StoreError::io(&path, "lock"))?;
            }
            Err(TryLockError::Error(e)) => return Err(StoreError::io(&path, "lock")(e)),
        }
        match lock::is_named(&file, &path) {
            Ok(true) => break (file, false),
            Ok(false) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(StoreError::io(&path, "look at")(e)),
        }
    };
    let bytes = read_all(&path, &mut locked)?;
    let opened = decode(&bytes.into(), Check::All, secret).map_err(StoreError::decode(&path))?;
    Ok((Held { path, locked, metadata: opened.metadata, is_ours }, opened.filter))
}

/// Whether a file can be put in its place, so that this is known before the work and not after it.
fn can_be_replaced(path: &Path) -> Result<(), StoreError> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(StoreError::io(path, "use")(io::Error::other("it is no regular file")));
    }
    Temporary::new_in(folder_of(path)).map_err(StoreError::io(path, "create a file in its folder"))?;
    Ok(())
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
        if !self.is_named() {
            let problem = "another process removed or replaced it meanwhile";
            return Err(StoreError::io(&self.path, "write")(io::Error::other(problem)));
        }
        replace(&self.path, Some(&self.locked), filter, self.metadata.as_ref())?;
        self.is_ours = false;
        Ok(())
    }

    fn is_named(&self) -> bool {
        lock::is_named(&self.locked, &self.path).unwrap_or(false)
    }
}

/// A file that was made only to be locked goes away again. A process that waits for it makes another one.
impl Drop for Held {
    fn drop(&mut self) {
        if self.is_ours && self.is_named() {
            let _ = fs::remove_file(&self.path);
        }
    }
}
