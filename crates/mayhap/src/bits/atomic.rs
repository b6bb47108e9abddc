//! Words that many threads set bits in at once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use super::words::{OutOfMemory, Words};

/// A fixed number of words whose bits can be set through a shared reference. Bits are never lost:
/// setting is one atomic OR.
///
/// All accesses are relaxed. A thread sees another's bits once something orders the two (a join, a
/// channel, a lock); until then it may see an older state, which for a filter means "no" to a key
/// that is being inserted at the same moment.
#[derive(Debug)]
pub struct AtomicWords(Box<[AtomicU64]>);

impl AtomicWords {
    /// So many words, all zero.
    ///
    /// # Errors
    /// [`OutOfMemory`], instead of ending the program.
    pub fn zeroed(words: u64) -> Result<Self, OutOfMemory> {
        let refused = OutOfMemory { bytes: words.saturating_mul(8) };
        let length = usize::try_from(words).map_err(|_| refused)?;
        if length > isize::MAX as usize / 8 {
            return Err(refused);
        }
        bytemuck::allocation::try_zeroed_slice_box(length).map(Self).map_err(|()| refused)
    }

    /// The words.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[AtomicU64] {
        &self.0
    }

    /// Whether the bit is set.
    ///
    /// # Panics
    /// If the bit lies behind the last word.
    #[must_use]
    #[inline]
    pub fn get(&self, bit: u64) -> bool {
        self.0[(bit / 64) as usize].load(Ordering::Relaxed) >> (bit % 64) & 1 == 1
    }

    /// Sets a bit and says whether this call changed it.
    ///
    /// # Panics
    /// If the bit lies behind the last word.
    #[inline]
    pub fn set(&self, bit: u64) -> bool {
        let word = &self.0[(bit / 64) as usize];
        let mask = 1 << (bit % 64);
        // A plain load first: in a filter half of the bits are set already, and a locked OR costs
        // several times a load even in cache.
        word.load(Ordering::Relaxed) & mask == 0 && word.fetch_or(mask, Ordering::Relaxed) & mask == 0
    }

    /// How many bits are set.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }
}

impl From<&Words> for AtomicWords {
    fn from(words: &Words) -> Self {
        Self(words.as_slice().iter().map(|&word| AtomicU64::new(word)).collect())
    }
}

// Keeps the allocation where the two types have the same alignment (all 64-bit targets): the standard
// library collects in place there. On 32-bit x86 they differ, and it copies.
impl From<AtomicWords> for Words {
    fn from(words: AtomicWords) -> Self {
        Vec::from(words.0).into_iter().map(AtomicU64::into_inner).collect::<Vec<u64>>().into()
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
        if align_of::<u64>() == align_of::<AtomicU64>() {
            assert_eq!(words.as_slice().as_ptr().addr(), before);
        }
        assert!(AtomicWords::from(&words).get(70));
        assert!(AtomicWords::zeroed(1 << 60).is_err());
    }
}
