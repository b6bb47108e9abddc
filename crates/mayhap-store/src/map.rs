//! Maps of files.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Mmap, MmapMut, MmapOptions};

use crate::fault::Entry;

/// A map, known by its name for the case that the file fails under it.
pub(crate) struct Map<M> {
    /// Dropped first: the addresses of the map may soon be those of another one.
    _entry: Entry,
    map: M,
}

impl<M: AsRef<[u8]>> Map<M> {
    fn new(map: M, path: &Path) -> Self {
        let entry = Entry::new(map.as_ref(), path);
        Self { _entry: entry, map }
    }
}

impl<M: AsRef<[u8]>> AsRef<[u8]> for Map<M> {
    fn as_ref(&self) -> &[u8] {
        self.map.as_ref()
    }
}

impl<M: AsMut<[u8]>> AsMut<[u8]> for Map<M> {
    fn as_mut(&mut self) -> &mut [u8] {
        self.map.as_mut()
    }
}

/// A read-only map of a whole file.
pub(crate) fn map(file: &File, path: &Path) -> io::Result<Map<Mmap>> {
    // SAFETY: a map is undefined behaviour for Rust when another process changes the file. Files
    // written by this crate are replaced by renaming and never truncated, so a mapped file keeps its
    // length for as long as it is mapped; an update in place only turns bits of a payload from 0 to 1,
    // in whole words, which a reader sees before or after. A program that truncates the file by other means
    // while it is mapped ends this process with SIGBUS, which `fault` explains; `Access::Read` is for those
    // who expect that.
    let map = unsafe { Mmap::map(file) }?;
    Ok(Map::new(map, path))
}

/// A shared, writable map of a part of a file: what is written there reaches the file.
pub(crate) fn map_mut(file: &File, path: &Path, offset: u64, length: usize) -> io::Result<Map<MmapMut>> {
    // SAFETY: as above; besides, the caller holds the exclusive lock of the file, so that no other
    // writer of this crate has it mapped.
    let map = unsafe { MmapOptions::new().offset(offset).len(length).map_mut(file) }?;
    Ok(Map::new(map, path))
}
