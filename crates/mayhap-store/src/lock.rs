//! Locks on the file that a name means.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// The file that a name stands for in the end, so that a rename replaces the target of a symbolic
/// link and not the link.
pub(crate) fn target(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    // A link may point to a file that is yet to be made, which `canonicalize` refuses. 40 is the
    // kernel's own limit on chains of links.
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&path) else { break };
        path = match path.parent() {
            Some(folder) => folder.join(next),
            None => next,
        };
    }
    path
}

/// Opens a file for reading and writing and locks it for oneself alone; waits for others.
///
/// Another writer may replace the file by renaming while we wait: the lock would then be one on a file
/// that has no name any more. So the name is looked at again until it means the file that is locked.
pub(crate) fn exclusive(path: &Path) -> Result<File, StoreError> {
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(StoreError::io(path, "open for writing"))?;
        file.lock().map_err(StoreError::io(path, "lock"))?;
        match is_named(&file, path) {
            Ok(true) => return Ok(file),
            Ok(false) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(StoreError::io(path, "look at")(e)),
        }
    }
}

/// Waits until no writer is at work in the file. File systems without locks are taken as they are.
pub(crate) fn shared(file: &File) {
    let _ = file.lock_shared();
}

/// Ends a lock. A map keeps its file's locks, also when the file is closed.
pub(crate) fn release(file: &File) {
    let _ = file.unlock();
}

#[cfg(unix)]
pub(crate) fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (ours, named) = (file.metadata()?, fs::metadata(path)?);
    Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino()))
}

/// Elsewhere an open file cannot be renamed over, so the name still means it.
#[cfg(not(unix))]
pub(crate) fn is_named(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}
