//! The words under a filter: 64 bits each, little-endian on disk, owned or in a mapped file.
//!
//! Own memory starts on a cache line, so that no block of a filter straddles two. From 4 MiB on, on
//! Linux, it is asked for in huge pages: a filter's positions are random, and with pages of 4 KiB
//! nearly every one of them misses the translation buffer. Both come zeroed, and the system gives a
//! page when it is first touched.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::bytes::{Bytes, ExclusiveBytes, Owner};
use super::seal::Seal;
use crate::error::DecodeError;
use crate::raw::memory::Memory;

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
/// are copied on the first write. On a big-endian machine they are copied at once, and so are parts of a
/// vector, of which a small one would keep the whole.
///
/// Words of a payload whose checksum was not compared keep it, also when they were copied and changed.
pub struct Words(Storage, Option<Arc<Seal>>);

enum Storage {
    Own(Memory),
    Shared(Bytes),
    InPlace(Box<dyn ExclusiveBytes>),
}

impl Words {
    /// So many words, all zero. The system gives the pages when they are first touched.
    ///
    /// # Errors
    /// [`OutOfMemory`], instead of ending the program.
    pub fn zeroed(words: u64) -> Result<Self, OutOfMemory> {
        let refused = OutOfMemory { bytes: words.saturating_mul(8) };
        let length = usize::try_from(words).map_err(|_| refused)?;
        Memory::zeroed(length).map(Self::from).ok_or(refused)
    }

    /// A private copy.
    fn copy_of(words: &[u64]) -> Self {
        let mut copy = Self::zeroed(words.len() as u64).expect("memory for a copy");
        copy.as_mut_slice().copy_from_slice(words);
        copy
    }

    /// Compares the checksum of the bytes that these words came from, if that has not been done.
    ///
    /// # Errors
    /// [`DecodeError::Checksum`]: they are damaged.
    pub(crate) fn verify(&self) -> Result<(), DecodeError> {
        self.1.as_ref().map_or(Ok(()), |seal| seal.verify())
    }

    /// Whether others see what is written.
    #[cfg(feature = "std")]
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self.0, Storage::InPlace(_))
    }

    /// The memory; that of a copy, if the words lie in shared bytes.
    pub(crate) fn into_memory(self) -> Memory {
        match self.0 {
            Storage::Own(memory) => memory,
            Storage::Shared(_) | Storage::InPlace(_) => self.clone().into_memory(),
        }
    }

    /// Shortens owned storage to `len` words and gives the rest of the memory back; for builders that reserve too much.
    pub(crate) fn truncate(&mut self, len: usize) {
        match &mut self.0 {
            Storage::Own(memory) => memory.truncate(len),
            Storage::Shared(_) | Storage::InPlace(_) => unreachable!("shared bytes are whole"),
        }
    }

    /// Gives back words that are no longer needed, as far as that is possible. What they are afterwards is undefined.
    pub(crate) fn give_back(&mut self, words: core::ops::Range<usize>) {
        if let Storage::Own(memory) = &mut self.0 {
            memory.give_back(words);
        }
    }

    /// The words that lie in little-endian bytes; `None` if those are not whole words, or have to be copied and there is no
    /// memory for it.
    #[must_use]
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        if !bytes.len().is_multiple_of(8) {
            return None;
        }
        // A part of a vector would keep all of it. Of several parts each is copied, and then the vector goes.
        let in_place = cfg!(target_endian = "little")
            && bytemuck::try_cast_slice::<u8, u64>(bytes.as_slice()).is_ok()
            && !bytes.keeps_more();
        let seal = bytes.1.clone();
        if !in_place {
            let mut copy = Self::zeroed(bytes.len() as u64 / 8).ok()?;
            for (word, bytes) in copy.as_mut_slice().iter_mut().zip(bytes.as_slice().as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            copy.1 = seal;
            return Some(copy);
        }
        let storage = match bytes.0 {
            Owner::Shared { .. } => Storage::Shared(bytes),
            Owner::Exclusive(owner) => Storage::InPlace(owner),
        };
        Some(Self(storage, seal))
    }

    /// The words.
    #[must_use]
    #[inline(always)]
    pub fn as_slice(&self) -> &[u64] {
        match &self.0 {
            Storage::Own(memory) => memory.as_slice(),
            _ => self.foreign(),
        }
    }

    /// The words in shared bytes, a rare case: kept out of the way of owned ones.
    #[cold]
    #[inline(never)]
    fn foreign(&self) -> &[u64] {
        match &self.0 {
            Storage::Own(memory) => memory.as_slice(),
            Storage::Shared(bytes) => bytemuck::cast_slice(bytes.as_slice()),
            Storage::InPlace(bytes) => bytemuck::cast_slice((**bytes).as_ref()),
        }
    }

    /// The words, to be written. Shared ones are copied the first time.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        if !matches!(self.0, Storage::Own(_)) {
            return self.foreign_mut();
        }
        match &mut self.0 {
            Storage::Own(memory) => memory.as_mut_slice(),
            _ => unreachable!("returned above"),
        }
    }

    #[cold]
    #[inline(never)]
    fn foreign_mut(&mut self) -> &mut [u64] {
        if let Storage::Shared(bytes) = &self.0 {
            let mut copy = Self::copy_of(bytemuck::cast_slice(bytes.as_slice()));
            // A seal keeps the old bytes. All of them are being read anyway: compared now, they can go.
            copy.1 = self.1.take().filter(|seal| seal.verify().is_err());
            *self = copy;
        }
        match &mut self.0 {
            Storage::Own(memory) => memory.as_mut_slice(),
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

/// No words.
impl Default for Words {
    fn default() -> Self {
        Self::from(Memory::default())
    }
}

impl From<Memory> for Words {
    fn from(memory: Memory) -> Self {
        Self(Storage::Own(memory), None)
    }
}

/// A copy, which starts on a cache line.
///
/// # Panics
/// If there is no memory for it.
impl From<&[u64]> for Words {
    fn from(words: &[u64]) -> Self {
        Self::copy_of(words)
    }
}

/// A copy, as of a slice.
impl From<Vec<u64>> for Words {
    fn from(words: Vec<u64>) -> Self {
        Self::copy_of(&words)
    }
}

/// A clone of words that are written in place is a private copy.
impl Clone for Words {
    fn clone(&self) -> Self {
        let mut copy = Self::copy_of(self.as_slice());
        copy.1.clone_from(&self.1);
        copy
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
            Storage::Own(_) => "owned",
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
        assert!(matches!(words.0, Storage::Own(_)));
        assert_eq!(words.count_ones(), 4);
    }

    #[test]
    fn unaligned_bytes_are_copied() {
        let words = Words::from_bytes(bytes_at(1)).unwrap();
        assert!(matches!(words.0, Storage::Own(_)));
        assert_eq!(words.as_slice(), [1, 0x8000_0000_0000_0002]);
        assert!(Words::from_bytes(Bytes::from(vec![0; 9])).is_none());
    }

    #[test]
    fn own_memory_is_zeroed_and_starts_on_a_cache_line() {
        // Miri knows no huge pages.
        let large = if cfg!(miri) { 1 << 9 } else { 1 << 19 };
        for words in [1, 7, 8, 1000, large, large + 5] {
            let mut memory = Words::zeroed(words).unwrap();
            assert!(memory.len() as u64 == words && memory.as_slice().iter().all(|&word| word == 0));
            assert!(memory.as_slice().as_ptr().addr().is_multiple_of(64), "{words} words: {memory:?}");
            memory.as_mut_slice()[words as usize - 1] = 5;
            assert_eq!(memory.clone(), memory);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends when memory is refused")]
    fn absurd_sizes_are_refused_not_fatal() {
        for words in [u64::MAX, u64::MAX / 8, 1 << 60, 1 << 50] {
            assert_eq!(Words::zeroed(words).unwrap_err().bytes, words.saturating_mul(8));
        }
    }
}
