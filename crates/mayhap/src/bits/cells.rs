//! Small numbers packed without gaps: counters and fingerprints of 1 to 64 bits.

use super::words::{OutOfMemory, Words, words_for};
use crate::narrow;

/// A fixed number of cells of equal width, packed into words; a cell may cross a word's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    words: Words,
    len: u64,
    width: u32,
}

impl Cells {
    /// So many cells of so many bits, all zero.
    ///
    /// # Errors
    /// [`OutOfMemory`], also when the number of bits does not fit 64 bits.
    ///
    /// # Panics
    /// If the width is not 1 to 64: callers check what comes from outside.
    pub fn zeroed(len: u64, width: u32) -> Result<Self, OutOfMemory> {
        assert!((1..=64).contains(&width), "a cell of {width} bits");
        let bits = len.checked_mul(u64::from(width)).ok_or(OutOfMemory { bytes: u64::MAX })?;
        Ok(Self { words: Words::zeroed(words_for(bits))?, len, width })
    }

    /// Cells that lie in existing words; `None` if the number of words is another than the cells
    /// take, or a bit is set behind the last cell.
    #[must_use]
    pub fn from_words(words: Words, len: u64, width: u32) -> Option<Self> {
        let bits = len.checked_mul(u64::from(width)).filter(|_| (1..=64).contains(&width))?;
        let tail_is_clear =
            bits % 64 == 0 || words.as_slice().last().is_some_and(|last| last >> (bits % 64) == 0);
        (words.len() as u64 == words_for(bits) && tail_is_clear).then_some(Self { words, len, width })
    }

    /// How many cells there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bits per cell.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The largest value that a cell holds.
    #[must_use]
    #[inline]
    pub fn max(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// The words, for writing to a file.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The words, for loops over many cells.
    #[inline]
    pub(super) fn as_slice(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// The words, to be written.
    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [u64] {
        self.words.as_mut_slice()
    }

    /// The value of a cell.
    ///
    /// # Panics
    /// If there is no such cell.
    #[must_use]
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        assert!(index < self.len, "cell {index} of {}", self.len);
        read_cell(self.words.as_slice(), self.width, index)
    }

    /// Sets a cell.
    ///
    /// # Panics
    /// If there is no such cell or the value is above [`max`](Cells::max).
    #[inline]
    pub fn set(&mut self, index: u64, value: u64) {
        assert!(index < self.len, "cell {index} of {}", self.len);
        assert!(value <= self.max(), "{value} does not fit {} bits", self.width);
        write_cell(self.words.as_mut_slice(), self.width, index, value);
    }
}

/// Where a cell starts: its word, and the bit in it.
#[inline(always)]
pub(super) fn place(width: u32, index: u64) -> (usize, u32) {
    let bit = index * u64::from(width);
    (narrow::index(bit / 64), (bit % 64) as u32)
}

/// The value of a cell of these words, for loops that have taken them out of their storage once.
#[inline(always)]
pub(super) fn read_cell(words: &[u64], width: u32, index: u64) -> u64 {
    read_bits(words, width, index * u64::from(width))
}

/// The value of so many bits from one on, which may lie in two words.
#[inline(always)]
pub(super) fn read_bits(words: &[u64], width: u32, at: u64) -> u64 {
    let (word, shift) = place(1, at);
    let mut value = words[word] >> shift;
    if shift + width > 64 {
        value |= words[word + 1] << (64 - shift);
    }
    value & (u64::MAX >> (64 - width))
}

/// Sets a cell of these words. The value must fit.
#[inline(always)]
pub(super) fn write_cell(words: &mut [u64], width: u32, index: u64, value: u64) {
    write_bits(words, width, index * u64::from(width), value);
}

/// Sets so many bits from one on. The value must fit.
#[inline(always)]
pub(super) fn write_bits(words: &mut [u64], width: u32, at: u64, value: u64) {
    let (word, shift) = place(1, at);
    let max = u64::MAX >> (64 - width);
    words[word] = words[word] & !(max << shift) | value << shift;
    if shift + width > 64 {
        let below = 64 - shift;
        words[word + 1] = words[word + 1] & !(max >> below) | value >> below;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    // A model test: every width, values that fill the cell, neighbours must not move.
    #[test]
    fn cells_of_every_width_agree_with_a_plain_vector() {
        for width in 1..=64 {
            let mut cells = Cells::zeroed(131, width).unwrap();
            let mut model = vec![0u64; 131];
            for step in 0..2000u64 {
                let random = step.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let index = (random >> 20) % 131;
                let value = (random.rotate_left(23) ^ step) & cells.max();
                cells.set(index, value);
                model[index as usize] = value;
            }
            assert!((0..131).all(|i| cells.get(i) == model[i as usize]), "width {width}");
            let again = Cells::from_words(cells.words().clone(), 131, width).unwrap();
            assert_eq!(again, cells);
            assert!(Cells::from_words(cells.words().clone(), 131 + 64, width).is_none());
        }
    }

    #[test]
    fn set_bits_behind_the_last_cell_are_refused() {
        assert!(Cells::from_words(vec![1 << 63].into(), 9, 7).is_none());
        assert!(Cells::from_words(vec![1 << 62].into(), 9, 7).is_some());
        assert!(Cells::from_words(vec![].into(), u64::MAX, 64).is_none());
        assert!(Cells::zeroed(u64::MAX, 2).is_err());
    }
}
