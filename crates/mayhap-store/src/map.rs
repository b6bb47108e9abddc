//! Maps of files. The only file of this crate that may be unsafe.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapMut, MmapOptions};

/// A read-only map of a whole file.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: a map is undefined behaviour for Rust when another process changes the file. Files
    // written by this crate are replaced by renaming and never truncated, so a mapped file keeps its
    // length for as long as it is mapped; an update in place only turns bits of a payload from 0 to 1,
    // in whole words, which a reader sees before or after. Whoever truncates the file by other means
    // while it is mapped ends the process with SIGBUS; `Access::Read` is for those who expect that.
    unsafe { Mmap::map(file) }
}

/// A shared, writable map of a part of a file: what is written there reaches the file.
pub(crate) fn map_mut(file: &File, offset: u64, length: usize) -> io::Result<MmapMut> {
    // SAFETY: as above; besides, the caller holds the exclusive lock of the file, so that no other
    // writer of this crate has it mapped.
    unsafe { MmapOptions::new().offset(offset).len(length).map_mut(file) }
}
