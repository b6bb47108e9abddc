//! Half digests for a static filter, put aside in parts until all are there: in memory, or in a temporary file.
//!
//! ```text
//!   threads ──▶ Sorter: a batch by its highest 8 bits ──▶ 256 parts ──▶ blocks of 4 KiB to 1 MiB in memory
//!                                                                  └──▶ the same blocks in one file, if memory is short
//! ```
//!
//! How many shards a filter has follows from the number of its keys, which is unknown before the end. So the parts are
//! fixed, and a shard is some of them, or what is found in one of them.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bytemuck::{cast_slice, cast_slice_mut};
use mayhap::shards::{DigestShards, shard_of};
use mayhap::{BuildError, Digest};
use memmap2::MmapMut;

use crate::StoreError;

/// The highest bits of a half tell its part.
const PART_BITS: u32 = 8;
const PARTS: usize = 1 << PART_BITS;

/// The first block of a part has so many halves: a page, so that few keys take little memory.
const FIRST_BLOCK: usize = 512;

/// And the longest ones: 1 MiB, which is written at once.
const LONGEST_BLOCK: usize = 1 << 17;

/// The least memory that a spool can be held to.
pub const LEAST_SPOOL_BYTES: u64 = (PARTS * FIRST_BLOCK * 8) as u64;

/// Halves of digests, whose number need not be known. Several threads put them in; a static filter takes them out.
///
/// At most as many stay in memory as were allowed. The others are in a temporary file without a name, which is gone with the
/// process however that ends; it lies in the folder that the environment says (`TMPDIR`).
#[derive(Debug)]
pub struct DigestSpool {
    parts: Vec<Mutex<Part>>,
    len: AtomicU64,
    /// Halves of a part that may be in memory.
    most: usize,
    /// Made when it is needed.
    file: OnceLock<File>,
    /// Its length.
    end: AtomicU64,
}

/// Halves of one part: those in blocks, and those in the file.
#[derive(Debug, Default)]
struct Part {
    /// All but the last one are full.
    blocks: Vec<Block>,
    extents: Vec<Extent>,
}

/// A run of halves in the file.
#[derive(Clone, Copy, Debug)]
struct Extent {
    offset: u64,
    halves: usize,
}

/// Memory of the system's, not of the allocator's: what is dropped is given back at once, and what was not touched was never
/// there.
#[derive(Debug)]
struct Block {
    map: MmapMut,
    len: usize,
}

impl Block {
    fn new(halves: usize) -> io::Result<Self> {
        Ok(Self { map: MmapMut::map_anon(8 * halves)?, len: 0 })
    }

    fn halves(&self) -> &[u64] {
        &cast_slice(&self.map)[..self.len]
    }

    fn room(&self) -> usize {
        self.map.len() / 8 - self.len
    }

    /// Takes as many as there is room for, and returns the others.
    fn fill<'a>(&mut self, halves: &'a [u64]) -> &'a [u64] {
        let (own, others) = halves.split_at(halves.len().min(self.room()));
        cast_slice_mut(&mut self.map)[self.len..self.len + own.len()].copy_from_slice(own);
        self.len += own.len();
        others
    }

    /// Keeps those that `stays` wants, in order.
    fn retain(&mut self, mut stays: impl FnMut(u64) -> bool) {
        let halves: &mut [u64] = cast_slice_mut(&mut self.map);
        let mut kept = 0;
        for i in 0..self.len {
            let half = halves[i];
            halves[kept] = half;
            kept += usize::from(stays(half));
        }
        self.len = kept;
    }
}

impl Part {
    fn in_memory(&self) -> usize {
        self.blocks.iter().map(|block| block.len).sum()
    }
}

impl DigestSpool {
    /// Nothing yet. What is put in stays in memory up to so many bytes, of which [`LEAST_SPOOL_BYTES`] are the least.
    #[must_use]
    pub fn new(memory: u64) -> Self {
        let halves = usize::try_from(memory / 8).unwrap_or(usize::MAX);
        Self {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            len: AtomicU64::new(0),
            most: (halves / PARTS).max(FIRST_BLOCK),
            file: OnceLock::new(),
            end: AtomicU64::new(0),
        }
    }

    /// For one thread, to put digests in.
    #[must_use]
    pub fn sorter(&self) -> Sorter<'_> {
        Sorter { spool: self, sorted: Vec::new() }
    }

    /// How many were put in.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of those that are in memory.
    #[must_use]
    pub fn bytes_in_memory(&self) -> u64 {
        (0..PARTS).map(|part| 8 * self.part(part).in_memory() as u64).sum()
    }

    /// Bytes of those that are in the file.
    #[must_use]
    pub fn bytes_spilled(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Puts all that is in memory into the file.
    ///
    /// # Errors
    /// As for [`Sorter::push`].
    pub fn spill(&mut self) -> Result<(), StoreError> {
        for part in 0..PARTS {
            let mut part = self.part(part);
            self.spill_part(&mut part)?;
            part.blocks = Vec::new();
        }
        Ok(())
    }

    fn part(&self, part: usize) -> MutexGuard<'_, Part> {
        // Whoever panicked with it has left halves that are whole.
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, part: usize, mut halves: &[u64]) -> Result<(), StoreError> {
        let mut part = self.part(part);
        while !halves.is_empty() {
            if let Some(block) = part.blocks.last_mut().filter(|block| block.room() > 0) {
                halves = block.fill(halves);
                continue;
            }
            let held = part.in_memory();
            if held >= self.most {
                self.spill_part(&mut part)?;
                continue;
            }
            // As long as all before it, so that few keys take little memory; behind the first spill as long as can be.
            let wanted = if part.extents.is_empty() { held } else { LONGEST_BLOCK };
            let next = wanted.clamp(FIRST_BLOCK, LONGEST_BLOCK).min(self.most - held);
            part.blocks.push(Block::new(next).map_err(|source| no_memory(next, source))?);
        }
        Ok(())
    }

    fn spill_part(&self, part: &mut Part) -> Result<(), StoreError> {
        let halves = part.in_memory();
        if halves == 0 {
            return Ok(());
        }
        let offset = self.end.fetch_add(8 * halves as u64, Ordering::Relaxed);
        let mut at = offset;
        for block in part.blocks.drain(..) {
            let bytes: &[u8] = cast_slice(block.halves());
            self.file().and_then(|file| positioned::write_all(file, bytes, at)).map_err(cannot_write)?;
            at += bytes.len() as u64;
        }
        part.extents.push(Extent { offset, halves });
        Ok(())
    }

    fn file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let made = tempfile::tempfile()?;
        // Two threads may have made one; the second is closed, and gone.
        Ok(self.file.get_or_init(|| made))
    }
}

/// The system's word, with the folder and the way out.
fn cannot_write(source: io::Error) -> StoreError {
    let doing = "write a temporary file (TMPDIR can name a folder with more room)";
    StoreError::Io { path: folder(), doing, source }
}

fn no_memory(halves: usize, source: io::Error) -> StoreError {
    StoreError::Memory { bytes: 8 * halves as u64, source }
}

/// Puts the digests of one thread into a spool, a batch at a time.
#[derive(Debug)]
pub struct Sorter<'a> {
    spool: &'a DigestSpool,
    sorted: Vec<u64>,
}

impl Sorter<'_> {
    /// Puts the first halves of digests in.
    ///
    /// # Errors
    /// [`StoreError`] if there is no memory, or the temporary file cannot be written. The spool is of no use then.
    pub fn push(&mut self, digests: &[Digest]) -> Result<(), StoreError> {
        let part = |digest: &Digest| shard_of(digest.a, PART_BITS) as usize;
        let mut ends = [0; PARTS + 1];
        digests.iter().for_each(|digest| ends[part(digest) + 1] += 1);
        for i in 0..PARTS {
            ends[i + 1] += ends[i];
        }
        self.sorted.resize(digests.len(), 0);
        let mut next = ends;
        for digest in digests {
            let place = &mut next[part(digest)];
            self.sorted[*place] = digest.a;
            *place += 1;
        }
        for (part, range) in ends.windows(2).enumerate().filter(|(_, range)| range[0] < range[1]) {
            self.spool.push(part, &self.sorted[range[0]..range[1]])?;
        }
        self.spool.len.fetch_add(digests.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl DigestShards for DigestSpool {
    fn len(&self) -> u64 {
        self.len()
    }

    fn take(&self, shard: u64, bits: u32, halves: &mut Vec<u64>) -> Result<(), BuildError> {
        if bits > PART_BITS {
            return self.take_some((shard >> (bits - PART_BITS)) as usize, shard, bits, halves);
        }
        let parts = PARTS >> bits;
        // A shard that has many more than its share has them by repeats, which need no memory.
        let mean = self.len() >> bits;
        let usual = usize::try_from(mean + 6 * mean.isqrt() + 64).unwrap_or(usize::MAX);
        let mut most = usual;
        let mut hold = |halves: &mut Vec<u64>| {
            if halves.len() > most {
                halves.sort_unstable();
                halves.dedup();
                halves.shrink_to(most);
                most = most.max(2 * halves.len());
            }
        };
        for part in shard as usize * parts..(shard as usize + 1) * parts {
            let Part { blocks, extents } = std::mem::take(&mut *self.part(part));
            let count = blocks.iter().map(|block| block.len).sum::<usize>()
                + extents.iter().map(|extent| extent.halves).sum::<usize>();
            halves.reserve_exact(count.min(usual.saturating_sub(halves.len()) + LONGEST_BLOCK));
            for extent in extents {
                // Of a long run only a piece is in memory at a time.
                for from in (0..extent.halves).step_by(LONGEST_BLOCK) {
                    let piece = LONGEST_BLOCK.min(extent.halves - from);
                    self.read(Extent { offset: extent.offset + 8 * from as u64, halves: piece }, halves)?;
                    hold(halves);
                }
            }
            for block in blocks {
                halves.extend_from_slice(block.halves());
                hold(halves);
            }
        }
        Ok(())
    }
}

impl DigestSpool {
    /// Takes a shard out of the part that it is a part of: what is in memory goes, what is in the file is looked through.
    fn take_some(&self, part: usize, shard: u64, bits: u32, halves: &mut Vec<u64>) -> Result<(), BuildError> {
        let extents = {
            let mut part = self.part(part);
            for block in &mut part.blocks {
                block.retain(|half| {
                    let wanted = shard_of(half, bits) == shard;
                    if wanted {
                        halves.push(half);
                    }
                    !wanted
                });
            }
            part.blocks.retain(|block| block.len > 0);
            part.extents.clone()
        };
        for extent in extents {
            // Of a long run only a piece is in memory at a time.
            for from in (0..extent.halves).step_by(LONGEST_BLOCK) {
                let piece = LONGEST_BLOCK.min(extent.halves - from);
                let start = halves.len();
                self.read(Extent { offset: extent.offset + 8 * from as u64, halves: piece }, halves)?;
                let mut kept = start;
                for i in start..halves.len() {
                    let half = halves[i];
                    halves[kept] = half;
                    kept += usize::from(shard_of(half, bits) == shard);
                }
                halves.truncate(kept);
            }
        }
        Ok(())
    }

    /// Appends what stands in the file. Nobody moves a position in it, so that several threads can read.
    fn read(&self, extent: Extent, halves: &mut Vec<u64>) -> Result<(), BuildError> {
        let start = halves.len();
        halves.resize(start + extent.halves, 0);
        let file = self.file.get().expect("an extent lies in a file");
        positioned::read_exact(file, cast_slice_mut(&mut halves[start..]), extent.offset).map_err(|error| {
            BuildError::Source {
                problem: format!("{}: cannot read a temporary file: {error}", folder().display()),
            }
        })
    }
}

/// Where temporary files lie.
fn folder() -> PathBuf {
    std::env::temp_dir()
}

/// Reads and writes at a place of a file, without a position that threads would share.
mod positioned {
    use std::fs::File;
    use std::io;

    #[cfg(unix)]
    pub(super) fn write_all(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
    }

    #[cfg(unix)]
    pub(super) fn read_exact(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
    }

    #[cfg(windows)]
    pub(super) fn write_all(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        use std::os::windows::fs::FileExt;
        while !bytes.is_empty() {
            match file.seek_write(bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => (bytes, offset) = (&bytes[written..], offset + written as u64),
            }
        }
        Ok(())
    }

    #[cfg(windows)]
    pub(super) fn read_exact(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        use std::os::windows::fs::FileExt;
        while !bytes.is_empty() {
            match file.seek_read(bytes, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => (bytes, offset) = (&mut bytes[read..], offset + read as u64),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(count: u64) -> Vec<Digest> {
        let half = |i: u64| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        (0..count).map(|i| Digest { a: half(i / 2 * 2) ^ (i % 2), b: i }).collect()
    }

    fn spooled(digests: &[Digest], memory: u64) -> DigestSpool {
        let spool = DigestSpool::new(memory);
        std::thread::scope(|scope| {
            for digests in digests.chunks(digests.len().div_ceil(2).max(1)) {
                let mut sorter = spool.sorter();
                scope.spawn(move || digests.chunks(1000).try_for_each(|batch| sorter.push(batch)).unwrap());
            }
        });
        assert_eq!((spool.len(), spool.is_empty()), (digests.len() as u64, digests.is_empty()));
        spool
    }

    #[test]
    fn every_shard_comes_back_from_memory_and_from_the_file() {
        let digests = digests(400_000);
        let mut expected: Vec<u64> = digests.iter().map(|digest| digest.a).collect();
        expected.sort_unstable();
        for (memory, is_spilled) in [(u64::MAX, false), (2 << 20, true), (0, true)] {
            for bits in [0, 1, 5, 8, 9, 12, 32] {
                let spool = spooled(&digests, memory);
                assert_eq!(spool.bytes_spilled() > 0, is_spilled);
                assert_eq!(spool.bytes_in_memory() + spool.bytes_spilled(), 8 * 400_000);
                assert!(spool.bytes_in_memory() <= memory.max(LEAST_SPOOL_BYTES));
                // Of very many shards some are asked for.
                let every = if bits < 32 { 1 } else { 1 << 22 };
                let mut found = Vec::new();
                for shard in (0..1u64 << bits).step_by(every) {
                    let start = found.len();
                    spool.take(shard, bits, &mut found).unwrap();
                    assert!(found[start..].iter().all(|&half| shard_of(half, bits) == shard));
                }
                found.sort_unstable();
                let asked = |half: &u64| shard_of(*half, bits).is_multiple_of(every as u64);
                let expected: Vec<u64> = expected.iter().copied().filter(asked).collect();
                assert!(found == expected, "{memory} bytes, {bits} bits: {}", found.len());
            }
        }
    }

    #[test]
    fn what_is_in_memory_can_go_to_the_file_at_the_end() {
        let digests = digests(50_000);
        let mut spool = spooled(&digests, u64::MAX);
        spool.spill().unwrap();
        assert_eq!((spool.bytes_in_memory(), spool.bytes_spilled()), (0, 400_000));
        let mut found = Vec::new();
        spool.take(0, 0, &mut found).unwrap();
        assert_eq!(found.len(), 50_000);
    }

    /// One key over and over: one part, which spills for itself.
    #[test]
    fn repeats_of_one_key_do_not_take_more_memory() {
        let spool = DigestSpool::new(0);
        let mut sorter = spool.sorter();
        for _ in 0..100 {
            sorter.push(&[Digest { a: 42, b: 0 }; 1000]).unwrap();
        }
        assert!(spool.bytes_in_memory() <= 8 * FIRST_BLOCK as u64);
        let mut found = Vec::new();
        spool.take(0, 20, &mut found).unwrap();
        assert_eq!((found.len(), found.iter().all(|&half| half == 42)), (100_000, true));
    }

    /// A shard that is all repeats was taken into memory as a whole.
    #[test]
    fn repeats_of_one_key_are_taken_in_little_memory() {
        for memory in [0, u64::MAX] {
            let spool = DigestSpool::new(memory);
            let mut sorter = spool.sorter();
            for _ in 0..1000 {
                sorter.push(&[Digest { a: 42, b: 0 }; 1000]).unwrap();
            }
            let mut found = Vec::new();
            spool.take(0, 3, &mut found).unwrap();
            // An eighth is what a shard has on average.
            let most = 125_000 + LONGEST_BLOCK + 5000;
            assert!(found.len() <= most && found.capacity() <= most + LONGEST_BLOCK, "{}", found.capacity());
            assert!(!found.is_empty() && found.iter().all(|&half| half == 42));
        }
    }

    #[test]
    fn shards_are_taken_by_several_threads() {
        let spool = spooled(&digests(300_000), 1 << 20);
        let taken: usize = std::thread::scope(|scope| {
            let take = |first: u64| {
                let spool = &spool;
                move || {
                    let mut halves = Vec::new();
                    (first..1 << 9).step_by(2).for_each(|shard| spool.take(shard, 9, &mut halves).unwrap());
                    halves.len()
                }
            };
            let handles = [0, 1].map(|first| scope.spawn(take(first)));
            handles.into_iter().map(|handle| handle.join().unwrap()).sum()
        });
        assert_eq!(taken, 300_000);
    }
}
