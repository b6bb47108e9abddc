//! Standard streams that were closed when the program was started.
//!
//! Rust opens `/dev/null` in their place before `main`, so that nothing is read and nothing is written without an error.
//! It does so for reading and writing, while `< /dev/null` is for reading only.

/// Whether a standard stream was closed, as far as can be told: it is `/dev/null`, open for reading and writing.
#[cfg(unix)]
pub(crate) fn is_closed(stream: std::os::fd::BorrowedFd<'_>) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let Ok(null) = std::fs::metadata("/dev/null") else { return false };
    let is_null =
        rustix::fs::fstat(stream).is_ok_and(|stat| stat.st_rdev == null.rdev() && stat.st_ino == null.ino());
    let writes_too =
        |flags: rustix::fs::OFlags| flags & rustix::fs::OFlags::RWMODE == rustix::fs::OFlags::RDWR;
    null.file_type().is_char_device() && is_null && rustix::fs::fcntl_getfl(stream).is_ok_and(writes_too)
}
