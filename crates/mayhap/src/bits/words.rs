//! The words under a filter: 64 bits each, little-endian on disk, owned or in somebody's map.
//!
//! Own memory starts on a cache line, so that no block of a filter straddles two. From 4 MiB on, on
//! Linux, it is asked for in huge pages: a filter's positions are random, and with pages of 4 KiB
//! nearly every one of them misses the translation buffer. Both come zeroed, and the system gives a
//! page when it is first touched.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::bytes::{Bytes, ExclusiveBytes, Owner};

/// The allocator said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// How much it was asked for.
    pub bytes: u64,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of memory were asked for and not granted", self.bytes)
    }
}

impl core::error::Error for OutOfMemory {}

/// How many 64-bit words hold so many bits.
#[must_use]
#[inline]
pub const fn words_for(bits: u64) -> u64 {
    bits.div_ceil(64)
}

/// A fixed number of 64-bit words: in memory of their own, in shared bytes, or in bytes that are
/// written in place.
///
/// Shared bytes are used where they lie if the machine is little-endian and they are aligned; they
/// are copied on the first write. On a big-endian machine they are copied at once.
pub struct Words(Storage);

enum Storage {
    Owned(Lines),
    #[cfg(all(feature = "std", target_os = "linux"))]
    Huge(memmap2::MmapMut),
    Shared(Bytes),
    InPlace(Box<dyn ExclusiveBytes>),
}

/// Words per cache line.
const LINE: usize = 8;

/// From this many bytes on, huge pages are asked for: two of them, so that at least one fits whatever
/// the alignment.
#[cfg(all(feature = "std", target_os = "linux"))]
const HUGE_FROM: u64 = 4 << 20;

/// Words from a cache line's start on, in a box that is a little larger.
struct Lines {
    words: Box<[u64]>,
    start: usize,
    len: usize,
}

impl Lines {
    fn zeroed(len: usize) -> Option<Self> {
        if len > isize::MAX as usize / 8 - LINE {
            return None;
        }
        let words: Box<[u64]> = bytemuck::allocation::try_zeroed_slice_box(len + LINE).ok()?;
        let start = words.as_ptr().align_offset(8 * LINE).min(LINE);
        Some(Self { words, start, len })
    }

    #[inline]
    fn as_slice(&self) -> &[u64] {
        &self.words[self.start..self.start + self.len]
    }

    #[inline]
    fn as_mut_slice(&mut self) -> &mut [u64] {
        &mut self.words[self.start..self.start + self.len]
    }
}

impl From<Box<[u64]>> for Lines {
    fn from(words: Box<[u64]>) -> Self {
        let len = words.len();
        Self { words, start: 0, len }
    }
}

impl Words {
    /// So many words, all zero. The system gives the pages when they are first touched.
    ///
    /// # Errors
    /// [`OutOfMemory`], instead of ending the program.
    pub fn zeroed(words: u64) -> Result<Self, OutOfMemory> {
        let refused = OutOfMemory { bytes: words.saturating_mul(8) };
        let length = usize::try_from(words).map_err(|_| refused)?;
        #[cfg(all(feature = "std", target_os = "linux"))]
        if refused.bytes >= HUGE_FROM {
            let bytes = length.checked_mul(8).ok_or(refused)?;
            let map = memmap2::MmapMut::map_anon(bytes).map_err(|_| refused)?;
            // A wish, not a need: a kernel without huge pages serves small ones.
            let _ = map.advise(memmap2::Advice::HugePage);
            return Ok(Self(Storage::Huge(map)));
        }
        Lines::zeroed(length).map(|lines| Self(Storage::Owned(lines))).ok_or(refused)
    }

    /// A private copy.
    fn copy_of(words: &[u64]) -> Self {
        let mut copy = Self::zeroed(words.len() as u64).expect("memory for a copy");
        copy.as_mut_slice().copy_from_slice(words);
        copy
    }

    /// The words that lie in little-endian bytes; `None` if those are not whole words.
    #[must_use]
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        if !bytes.len().is_multiple_of(8) {
            return None;
        }
        let in_place =
            cfg!(target_endian = "little") && bytemuck::try_cast_slice::<u8, u64>(bytes.as_slice()).is_ok();
        if !in_place {
            let words = bytes.as_slice().chunks_exact(8);
            let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("chunks of 8")));
            return Some(words.collect::<Box<[u64]>>().into());
        }
        Some(Self(match bytes.0 {
            Owner::Shared { .. } => Storage::Shared(bytes),
            Owner::Exclusive(owner) => Storage::InPlace(owner),
        }))
    }

    /// The words.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[u64] {
        match &self.0 {
            Storage::Owned(lines) => lines.as_slice(),
            #[cfg(all(feature = "std", target_os = "linux"))]
            Storage::Huge(map) => bytemuck::cast_slice(map),
            Storage::Shared(bytes) => bytemuck::cast_slice(bytes.as_slice()),
            Storage::InPlace(bytes) => bytemuck::cast_slice((**bytes).as_ref()),
        }
    }

    /// The words, to be written. Shared ones are copied the first time.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        if let Storage::Shared(bytes) = &self.0 {
            *self = Self::copy_of(bytemuck::cast_slice(bytes.as_slice()));
        }
        match &mut self.0 {
            Storage::Owned(lines) => lines.as_mut_slice(),
            #[cfg(all(feature = "std", target_os = "linux"))]
            Storage::Huge(map) => bytemuck::cast_slice_mut(map),
            Storage::InPlace(bytes) => bytemuck::cast_slice_mut((**bytes).as_mut()),
            Storage::Shared(_) => unreachable!("copied above"),
        }
    }

    /// How many words there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bits are set.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.as_slice().iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The words as they stand in a file, without copying on a little-endian machine.
    #[must_use]
    pub fn to_le_bytes(&self) -> Cow<'_, [u8]> {
        if cfg!(target_endian = "little") {
            Cow::Borrowed(bytemuck::cast_slice(self.as_slice()))
        } else {
            Cow::Owned(self.as_slice().iter().flat_map(|word| word.to_le_bytes()).collect())
        }
    }
}

impl From<Box<[u64]>> for Words {
    fn from(words: Box<[u64]>) -> Self {
        Self(Storage::Owned(words.into()))
    }
}

impl From<Vec<u64>> for Words {
    fn from(words: Vec<u64>) -> Self {
        words.into_boxed_slice().into()
    }
}

/// A clone of words that are written in place is a private copy.
impl Clone for Words {
    fn clone(&self) -> Self {
        Self::copy_of(self.as_slice())
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Words {}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Storage::Owned(_) => "owned",
            #[cfg(all(feature = "std", target_os = "linux"))]
            Storage::Huge(_) => "owned, huge pages",
            Storage::Shared(_) => "shared",
            Storage::InPlace(_) => "in place",
        };
        write!(f, "Words({kind}, {} words)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Bytes at an address of the wanted alignment, whatever the allocator did.
    fn bytes_at(offset: usize) -> Bytes {
        let mut owner = vec![0u8; 64];
        let start = owner.as_ptr().align_offset(8) + offset;
        owner[start..start + 16].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x80]);
        Bytes::shared(owner).part(start..start + 16).unwrap()
    }

    #[test]
    fn aligned_bytes_are_used_where_they_lie_and_copied_on_write() {
        let mut words = Words::from_bytes(bytes_at(0)).unwrap();
        assert!(matches!(words.0, Storage::Shared(_)) || cfg!(target_endian = "big"));
        assert_eq!(words.as_slice(), [1, 0x8000_0000_0000_0002]);
        words.as_mut_slice()[0] = 3;
        assert!(matches!(words.0, Storage::Owned(_)));
        assert_eq!(words.count_ones(), 4);
    }

    #[test]
    fn unaligned_bytes_are_copied() {
        let words = Words::from_bytes(bytes_at(1)).unwrap();
        assert!(matches!(words.0, Storage::Owned(_)));
        assert_eq!(words.as_slice(), [1, 0x8000_0000_0000_0002]);
        assert!(Words::from_bytes(Bytes::from(vec![0; 9])).is_none());
    }

    #[test]
    fn own_memory_is_zeroed_and_starts_on_a_cache_line() {
        for words in [1, 7, 8, 1000, 1 << 19, (1 << 19) + 5] {
            let mut memory = Words::zeroed(words).unwrap();
            assert!(memory.len() as u64 == words && memory.as_slice().iter().all(|&word| word == 0));
            assert!(memory.as_slice().as_ptr().addr().is_multiple_of(64), "{words} words: {memory:?}");
            memory.as_mut_slice()[words as usize - 1] = 5;
            assert_eq!(memory.clone(), memory);
        }
    }

    #[test]
    fn absurd_sizes_are_refused_not_fatal() {
        for words in [u64::MAX, u64::MAX / 8, 1 << 60, 1 << 50] {
            assert_eq!(Words::zeroed(words).unwrap_err().bytes, words.saturating_mul(8));
        }
    }
}
