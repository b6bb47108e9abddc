//! Words that many threads set bits in at once.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use super::words::{OutOfMemory, Words};
use crate::narrow::index;
use crate::raw::memory::{AtomicMemory, Memory};

/// A fixed number of words whose bits can be set through a shared reference. Bits are never lost:
/// setting is one atomic OR.
///
/// All accesses are relaxed. A thread sees another's bits once something orders the two (a join, a
/// channel, a lock); until then it may see an older state, which for a filter means "no" to a key
/// that is being inserted at the same moment.
pub struct AtomicWords(AtomicMemory);

impl AtomicWords {
    /// So many words, all zero.
    ///
    /// # Errors
    /// [`OutOfMemory`], instead of ending the program.
    pub fn zeroed(words: u64) -> Result<Self, OutOfMemory> {
        let refused = OutOfMemory { bytes: words.saturating_mul(8) };
        let length = usize::try_from(words).map_err(|_| refused)?;
        Memory::zeroed(length).map(|memory| Self(memory.into())).ok_or(refused)
    }

    /// The words.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[AtomicU64] {
        self.0.as_slice()
    }

    /// Whether the bit is set.
    ///
    /// # Panics
    /// If the bit lies behind the last word.
    #[must_use]
    #[inline]
    pub fn get(&self, bit: u64) -> bool {
        self.as_slice()[index(bit / 64)].load(Ordering::Relaxed) >> (bit % 64) & 1 == 1
    }

    /// Sets a bit and says whether this call changed it.
    ///
    /// # Panics
    /// If the bit lies behind the last word.
    #[inline]
    pub fn set(&self, bit: u64) -> bool {
        let word = &self.as_slice()[index(bit / 64)];
        let mask = 1 << (bit % 64);
        // A plain load first: in a filter half of the bits are set already, and a locked OR costs
        // several times a load even in cache.
        word.load(Ordering::Relaxed) & mask == 0 && word.fetch_or(mask, Ordering::Relaxed) & mask == 0
    }

    /// How many bits are set.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.as_slice().iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }
}

impl fmt::Debug for AtomicWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AtomicWords({} words)", self.as_slice().len())
    }
}

/// The same memory, if the words own it; else a copy.
impl From<Words> for AtomicWords {
    fn from(words: Words) -> Self {
        Self(words.into_memory().into())
    }
}

/// The same memory.
impl From<AtomicWords> for Words {
    fn from(words: AtomicWords) -> Self {
        words.0.into_inner().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_into_words_keeps_the_allocation() {
        let atomic = AtomicWords::zeroed(1000).unwrap();
        assert!(atomic.set(70) && !atomic.set(70) && atomic.get(70) && !atomic.get(71));
        assert_eq!(atomic.count_ones(), 1);
        let before = atomic.as_slice().as_ptr().addr();
        let words = Words::from(atomic);
        assert_eq!(words.as_slice()[1], 1 << 6);
        assert_eq!(words.as_slice().as_ptr().addr(), before);
        let atomic = AtomicWords::from(words);
        assert!(atomic.get(70) && atomic.as_slice().as_ptr().addr() == before);
        assert!(AtomicWords::zeroed(1 << 60).is_err());
    }
}
