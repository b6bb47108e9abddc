//! Room on the disk for what is changed through a map.

use std::fs::File;
use std::io;

/// Makes sure that a part of a file has its blocks on the disk, so that it can be changed through a map. A copied file may
/// have holes where its bytes are 0. A full disk is an error here; file systems that cannot tell are taken as they are.
pub(crate) fn reserve(file: &File, offset: u64, length: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};
        match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), offset, length)) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, offset, length);
        Ok(())
    }
}
