//! Bitmap: an exact set of integers below a limit, one bit each.
//!
//! **Answers** "is this integer in the set?", and then in which order, how many below, which is the r-th.
//! **Promise** exact; no error of either kind. The only failures are an index behind the end and memory.
//! **Not for** sparse sets: every integer below the limit costs its bit, there or not. Below about one
//! in 64, sorted arrays and compressed bitmaps are smaller.
//!
//! ```text
//! 4 7 2 5 3 ─▶ bit   7 6 5 4 3 2 1 0      integer i is bit i % 64 of word i / 64
//!                  [ 1 0 1 1 1 1 0 0 ]    read upwards: 2 3 4 5 7, which is the sort
//! ```
//!
//! | operation                             | words read              | can fail      |
//! |---------------------------------------|-------------------------|---------------|
//! | set, clear, flip, test                | 1                       | `OutOfRange`  |
//! | contains                              | 1                       | no            |
//! | set, clear, flip, count of a range    | those of the range      | `OutOfRange`  |
//! | union, intersection, symm. difference | all, 64 integers each   | `OutOfMemory` |
//! | difference                            | all, 64 integers each   | no            |
//! | rank                                  | 3, with a [`Ranked`]    | no            |
//! | select                                | 3 and a binary search   | no            |
//!
//! **Paper** of rank and select: Vigna, *Broadword Implementation of Rank/Select Queries*, WEA 2008.
//! **We differ** in that the directory borrows the bitmap and is built when asked for: no write can
//! leave it stale, and who never ranks never pays for it. Select has no inventory of its own but a
//! binary search over rank's, which takes no further memory.
//!
//! ```
//! use mayhap::Bitmap;
//!
//! let mut bitmap = Bitmap::zeroed(8).unwrap();
//! for number in [4, 7, 2, 5, 3, 5] {
//!     bitmap.set(number).unwrap();
//! }
//! assert!(bitmap.iter().eq([2, 3, 4, 5, 7]));
//! assert!(bitmap.iter().rev().eq([7, 5, 4, 3, 2]));
//! assert!(bitmap.set(8).is_err());
//! ```

use alloc::vec::Vec;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::Range;

use super::words::{OutOfMemory, Words, words_for};
use crate::narrow;

/// The bitmap has no such bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The bit that was asked for; of a range, the last one.
    pub index: u64,
    /// How many bits there are: the first index that is too large.
    pub universe: u64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, universe } = self;
        write!(
            f,
            "bit {index} of a bitmap of {universe} bits: indexes must be below {universe}, or resize it"
        )
    }
}

impl core::error::Error for OutOfRange {}

/// A set of integers below [`universe`](Bitmap::universe), one bit each.
///
/// Two bitmaps are equal if their universes are equal and the same bits are set.
// Invariant: there are `words_for(universe)` words, and the bits of the last one above the universe
// are 0. Counting, iterating, comparing and saving rely on it; `from_words`, `resize` and
// `change_range` keep it, the rest cannot reach those bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    words: Words,
    universe: u64,
}

impl Bitmap {
    /// The empty set of integers below `universe`.
    ///
    /// # Errors
    /// [`OutOfMemory`], instead of ending the program.
    pub fn zeroed(universe: u64) -> Result<Self, OutOfMemory> {
        Ok(Self { words: Words::zeroed(words_for(universe))?, universe })
    }

    /// A bitmap that lies in existing words; `None` if their number is another than
    /// [`words_for`]`(universe)`, or a bit is set behind the last one.
    #[must_use]
    pub fn from_words(words: Words, universe: u64) -> Option<Self> {
        let tail_is_clear = universe.is_multiple_of(64)
            || words.as_slice().last().is_some_and(|last| last >> (universe % 64) == 0);
        (words.len() as u64 == words_for(universe) && tail_is_clear).then_some(Self { words, universe })
    }

    /// How many bits there are, set or not.
    #[must_use]
    #[inline]
    pub fn universe(&self) -> u64 {
        self.universe
    }

    /// The words, for writing to a file.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The word of a bit, and the bit in it.
    #[inline]
    fn place(&self, index: u64) -> Result<(usize, u64), OutOfRange> {
        if index >= self.universe {
            return Err(OutOfRange { index, universe: self.universe });
        }
        // Below the universe: that word is in memory.
        Ok((narrow::index(index / 64), 1 << (index % 64)))
    }

    /// Adds an integer and says whether it is new.
    ///
    /// # Errors
    /// [`OutOfRange`] if it is not below the universe.
    #[inline]
    pub fn set(&mut self, index: u64) -> Result<bool, OutOfRange> {
        let (word, bit) = self.place(index)?;
        let word = &mut self.words.as_mut_slice()[word];
        let changed = *word & bit == 0;
        *word |= bit;
        Ok(changed)
    }

    /// Takes an integer out and says whether it was in.
    ///
    /// # Errors
    /// [`OutOfRange`] if it is not below the universe.
    #[inline]
    pub fn clear(&mut self, index: u64) -> Result<bool, OutOfRange> {
        let (word, bit) = self.place(index)?;
        let word = &mut self.words.as_mut_slice()[word];
        let changed = *word & bit != 0;
        *word &= !bit;
        Ok(changed)
    }

    /// Turns a bit over and says whether it is set now.
    ///
    /// # Errors
    /// [`OutOfRange`] if the index is not below the universe.
    #[inline]
    pub fn flip(&mut self, index: u64) -> Result<bool, OutOfRange> {
        let (word, bit) = self.place(index)?;
        let word = &mut self.words.as_mut_slice()[word];
        *word ^= bit;
        Ok(*word & bit != 0)
    }

    /// Whether the bit is set.
    ///
    /// # Errors
    /// [`OutOfRange`] if the index is not below the universe; [`contains`](Bitmap::contains) says no
    /// instead.
    #[inline]
    pub fn test(&self, index: u64) -> Result<bool, OutOfRange> {
        let (word, bit) = self.place(index)?;
        Ok(self.words.as_slice()[word] & bit != 0)
    }

    /// Whether the integer is in the set. One that is not below the universe is not.
    #[must_use]
    #[inline]
    pub fn contains(&self, index: u64) -> bool {
        self.test(index).unwrap_or(false)
    }

    /// The words that a range touches, with the bits of it in the first and in the last of them;
    /// `None` if it is empty.
    fn span(&self, range: Range<u64>) -> Result<Option<Span>, OutOfRange> {
        if range.is_empty() {
            return Ok(None);
        }
        // Not empty, so the end is at least 1. Working with the last bit and not with the one behind
        // it keeps all shifts below 64 and the last word inside when the range ends with the bitmap.
        let last = range.end - 1;
        let (last_word, _) = self.place(last)?;
        Ok(Some(Span {
            words: narrow::index(range.start / 64)..last_word + 1,
            head: u64::MAX << (range.start % 64),
            tail: u64::MAX >> (63 - last % 64),
        }))
    }

    #[inline]
    fn change_range(&mut self, range: Range<u64>, change: impl Fn(&mut u64, u64)) -> Result<(), OutOfRange> {
        let Some(Span { words, head, tail }) = self.span(range)? else { return Ok(()) };
        match &mut self.words.as_mut_slice()[words] {
            [] => {}
            [only] => change(only, head & tail),
            [first, between @ .., last] => {
                change(first, head);
                between.iter_mut().for_each(|word| change(word, u64::MAX));
                change(last, tail);
            }
        }
        Ok(())
    }

    /// Sets the bits of a half-open range. An empty one, wherever it lies, does nothing.
    ///
    /// # Errors
    /// [`OutOfRange`] if it does not end within the universe; then no bit was changed.
    pub fn set_range(&mut self, range: Range<u64>) -> Result<(), OutOfRange> {
        self.change_range(range, |word, mask| *word |= mask)
    }

    /// Clears the bits of a half-open range. An empty one, wherever it lies, does nothing.
    ///
    /// # Errors
    /// [`OutOfRange`] if it does not end within the universe; then no bit was changed.
    pub fn clear_range(&mut self, range: Range<u64>) -> Result<(), OutOfRange> {
        self.change_range(range, |word, mask| *word &= !mask)
    }

    /// Turns the bits of a half-open range over; over the whole universe, that is the complement. An
    /// empty one, wherever it lies, does nothing.
    ///
    /// # Errors
    /// [`OutOfRange`] if it does not end within the universe; then no bit was changed.
    pub fn flip_range(&mut self, range: Range<u64>) -> Result<(), OutOfRange> {
        self.change_range(range, |word, mask| *word ^= mask)
    }

    /// How many bits of a half-open range are set; none of an empty one, wherever it lies.
    ///
    /// # Errors
    /// [`OutOfRange`] if it does not end within the universe.
    pub fn count_range(&self, range: Range<u64>) -> Result<u64, OutOfRange> {
        let Some(Span { words, head, tail }) = self.span(range)? else { return Ok(0) };
        Ok(match &self.words.as_slice()[words] {
            [] => 0,
            [only] => ones(only & head & tail),
            [first, between @ .., last] => {
                ones(first & head) + between.iter().copied().map(ones).sum::<u64>() + ones(last & tail)
            }
        })
    }

    /// How many integers are in the set.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.words.count_ones()
    }

    /// Whether no bit is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.as_slice().iter().all(|&word| word == 0)
    }

    /// Clears every bit; the universe stays.
    pub fn clear_all(&mut self) {
        self.words.as_mut_slice().fill(0);
    }

    /// Changes the universe: growing adds zeros, shrinking drops the integers that no longer fit.
    ///
    /// While the number of words stays the same nothing moves. Otherwise they are copied into new
    /// memory of exactly the new size, so words that were written in place become private ones, and
    /// who grows bit by bit pays for a copy every 64.
    ///
    /// # Errors
    /// [`OutOfMemory`]; then nothing was changed.
    pub fn resize(&mut self, universe: u64) -> Result<(), OutOfMemory> {
        if words_for(universe) != words_for(self.universe) {
            let mut words = Words::zeroed(words_for(universe))?;
            let copies = words.as_mut_slice().iter_mut().zip(self.words.as_slice());
            copies.for_each(|(new, old)| *new = *old);
            self.words = words;
        }
        let shrinks = universe < self.universe;
        self.universe = universe;
        if shrinks
            && !universe.is_multiple_of(64)
            && let Some(last) = self.words.as_mut_slice().last_mut()
        {
            *last &= !(u64::MAX << (universe % 64));
        }
        Ok(())
    }

    /// Word by word over what both have: beyond that, one side is all zeros.
    #[inline]
    fn combine(&mut self, other: &Self, change: impl Fn(&mut u64, u64)) {
        let pairs = self.words.as_mut_slice().iter_mut().zip(other.words.as_slice());
        pairs.for_each(|(ours, theirs)| change(ours, *theirs));
    }

    /// Adds what the other has. The universe becomes the larger of the two.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the universe has to grow and cannot; then nothing was changed.
    pub fn union_with(&mut self, other: &Self) -> Result<(), OutOfMemory> {
        self.resize(self.universe.max(other.universe))?;
        self.combine(other, |ours, theirs| *ours |= theirs);
        Ok(())
    }

    /// Keeps what the other has too. The universe becomes the smaller of the two.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the universe has to shrink and there is no room for the shorter copy; then
    /// nothing was changed.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), OutOfMemory> {
        self.resize(self.universe.min(other.universe))?;
        self.combine(other, |ours, theirs| *ours &= theirs);
        Ok(())
    }

    /// Takes out what the other has. The universe stays.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, |ours, theirs| *ours &= !theirs);
    }

    /// Keeps what exactly one of the two has. The universe becomes the larger of the two.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the universe has to grow and cannot; then nothing was changed.
    pub fn xor_with(&mut self, other: &Self) -> Result<(), OutOfMemory> {
        self.resize(self.universe.max(other.universe))?;
        self.combine(other, |ours, theirs| *ours ^= theirs);
        Ok(())
    }

    /// The integers of the set, ascending; reversed, descending.
    #[must_use]
    pub fn iter(&self) -> Ones<'_> {
        let words = self.words.as_slice();
        let (first, between) = words.split_first().map_or((0, words), |(first, rest)| (*first, rest));
        Ones { between, first, first_index: 0, last: 0, last_index: words.len() as u64 }
    }

    /// The smallest integer in the set.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        self.iter().next()
    }

    /// The largest integer in the set.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.iter().next_back()
    }

    /// Counts once, so that [`rank`](Ranked::rank) and [`select`](Ranked::select) need not. Takes a
    /// quarter of the bitmap's memory; the bitmap cannot be written as long as the answer lives.
    ///
    /// ```
    /// # use mayhap::Bitmap;
    /// let mut bitmap = Bitmap::zeroed(1000)?;
    /// bitmap.set_range(100..200).unwrap();
    /// let ranked = bitmap.ranked()?;
    /// assert_eq!(ranked.rank(150), 50);
    /// assert_eq!(ranked.select(50), Some(150));
    /// # Ok::<(), mayhap::OutOfMemory>(())
    /// ```
    ///
    /// ```compile_fail,E0502
    /// # use mayhap::Bitmap;
    /// let mut bitmap = Bitmap::zeroed(1000).unwrap();
    /// let ranked = bitmap.ranked().unwrap();
    /// bitmap.set(3).unwrap(); // refused by the compiler: `ranked` would be stale
    /// ranked.rank(4);
    /// ```
    ///
    /// # Errors
    /// [`OutOfMemory`], instead of ending the program.
    pub fn ranked(&self) -> Result<Ranked<'_>, OutOfMemory> {
        Ranked::new(self)
    }
}

impl<'a> IntoIterator for &'a Bitmap {
    type Item = u64;
    type IntoIter = Ones<'a>;

    fn into_iter(self) -> Ones<'a> {
        self.iter()
    }
}

/// A range that is not empty, in words. `head` and `tail` are the bits that belong to it in the first
/// and in the last word, which may be the same one.
struct Span {
    words: Range<usize>,
    head: u64,
    tail: u64,
}

#[inline]
fn ones(word: u64) -> u64 {
    u64::from(word.count_ones())
}

/// The integers of a [`Bitmap`], ascending from the front, descending from the back.
#[derive(Clone, Debug)]
pub struct Ones<'a> {
    /// Words that neither end has reached.
    between: &'a [u64],
    /// What the front has left of its word, and that word's index.
    first: u64,
    first_index: u64,
    /// What the back has left of its word, and that word's index.
    last: u64,
    last_index: u64,
}

impl Ones<'_> {
    /// How many the two words at the ends still have.
    fn at_ends(&self) -> u64 {
        ones(self.first) + ones(self.last)
    }
}

/// Takes the lowest bit out of a word that is not 0.
#[inline]
fn take_lowest(word: &mut u64, index: u64) -> u64 {
    let bit = u64::from(word.trailing_zeros());
    *word &= *word - 1;
    index * 64 + bit
}

/// Takes the highest bit out of a word that is not 0.
#[inline]
fn take_highest(word: &mut u64, index: u64) -> u64 {
    let bit = u64::from(word.ilog2());
    *word ^= 1 << bit;
    index * 64 + bit
}

impl Iterator for Ones<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.first == 0 {
            let Some((word, rest)) = self.between.split_first() else {
                // The ends have met: what is left is in the word that the back has begun.
                return (self.last != 0).then(|| take_lowest(&mut self.last, self.last_index));
            };
            (self.first, self.between) = (*word, rest);
            self.first_index += 1;
        }
        Some(take_lowest(&mut self.first, self.first_index))
    }

    /// Exact within the words that the ends have begun; 0 to 64 for each of the others, which
    /// counting would have to read.
    fn size_hint(&self) -> (usize, Option<usize>) {
        // At most 128.
        let at_ends = narrow::index(self.at_ends());
        (at_ends, self.between.len().checked_mul(64).and_then(|bits| bits.checked_add(at_ends)))
    }

    // Eight words per cache line instead of one integer at a time.
    fn count(self) -> usize {
        let between: u64 = self.between.iter().copied().map(ones).sum();
        usize::try_from(between + self.at_ends()).unwrap_or(usize::MAX)
    }

    fn last(mut self) -> Option<u64> {
        self.next_back()
    }
}

impl DoubleEndedIterator for Ones<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<u64> {
        while self.last == 0 {
            let Some((word, rest)) = self.between.split_last() else {
                return (self.first != 0).then(|| take_highest(&mut self.first, self.first_index));
            };
            (self.last, self.between) = (*word, rest);
            self.last_index -= 1;
        }
        Some(take_highest(&mut self.last, self.last_index))
    }
}

impl FusedIterator for Ones<'_> {}

/// Words of one block: 512 bits, a cache line where the words are aligned to one.
const BLOCK_WORDS: usize = 8;

/// The counts of one block of 8 words.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Ones in all blocks before this one.
    before: u64,
    /// Ones in the words of this block before word 1, 2, ... 7: 9 bits each, word 7 lowest.
    within: u64,
}

impl Block {
    /// Ones of the block before its word 0 to 7.
    // Seven counts of at most 7 * 64 take 63 bits. The 64th is never set, so that it is the 0 of word
    // 0, and no word needs a case of its own.
    #[inline]
    fn before_word(self, word: usize) -> u64 {
        self.within >> (9 * (7 - word)) & 0x1FF
    }
}

/// A [`Bitmap`] with counts: how many ones below an integer, and which one is the r-th.
///
/// The counts are Vigna's rank9: two words for eight, so that one look at them and one count in one
/// word of the bitmap answer a rank. They take a quarter of the bitmap's memory.
// One count per block (rank512) takes half of that, but counts in up to eight words. On an AMD EPYC,
// 22 % of the bits set, ns per random rank (median of 3 runs over 4 million), compiled for any x86-64,
// which has no `popcnt`, and for that machine:
//
//                10^6 bits      10^9 bits
//   rank9        4.7    3.3      65    37
//   rank512       16     12     161    54
#[derive(Clone, Debug)]
pub struct Ranked<'a> {
    bitmap: &'a Bitmap,
    /// One per block, and a last one behind the end whose `before` counts everything.
    blocks: Vec<Block>,
}

impl<'a> Ranked<'a> {
    fn new(bitmap: &'a Bitmap) -> Result<Self, OutOfMemory> {
        let words = bitmap.words.as_slice();
        let length = words.len().div_ceil(BLOCK_WORDS) + 1;
        let mut blocks = Vec::new();
        let refused = OutOfMemory { bytes: (length as u64).saturating_mul(size_of::<Block>() as u64) };
        blocks.try_reserve_exact(length).map_err(|_| refused)?;
        let mut before = 0;
        for block in words.chunks(BLOCK_WORDS) {
            let mut within = 0;
            let mut sum = 0;
            for word in 0..BLOCK_WORDS {
                within = within << 9 | sum;
                // Words missing from the last block count as zeros.
                sum += block.get(word).copied().map_or(0, ones);
            }
            blocks.push(Block { before, within });
            before += sum;
        }
        blocks.push(Block { before, within: 0 });
        Ok(Self { bitmap, blocks })
    }

    /// The bitmap that was counted.
    #[must_use]
    pub fn bitmap(&self) -> &'a Bitmap {
        self.bitmap
    }

    /// How many integers are in the set.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.blocks.last().map_or(0, |end| end.before)
    }

    /// How many integers below `index` are in the set. From the universe on, that is all of them.
    #[must_use]
    #[inline]
    pub fn rank(&self, index: u64) -> u64 {
        let Ok((word, bit)) = self.bitmap.place(index) else { return self.count_ones() };
        let block = self.blocks[word / BLOCK_WORDS];
        let below = self.bitmap.words.as_slice()[word] & (bit - 1);
        block.before + block.before_word(word % BLOCK_WORDS) + ones(below)
    }

    /// The integer that has `rank` smaller ones in the set; `None` if there are not so many.
    #[must_use]
    pub fn select(&self, rank: u64) -> Option<u64> {
        if rank >= self.count_ones() {
            return None;
        }
        // The last block that begins at or below the rank: empty ones before it begin there too. The
        // first begins at 0, the one behind the end above the rank, so that it is a real one.
        let block_index = self.blocks.partition_point(|block| block.before <= rank) - 1;
        let block = self.blocks[block_index];
        let rank = rank - block.before;
        let word = (1..BLOCK_WORDS).filter(|&word| block.before_word(word) <= rank).count();
        let rank = rank - block.before_word(word);
        let word_index = block_index * BLOCK_WORDS + word;
        let bit = select_in_word(self.bitmap.words.as_slice()[word_index], rank);
        Some(word_index as u64 * 64 + bit)
    }
}

/// The same byte eight times.
const fn each(byte: u64) -> u64 {
    byte * 0x0101_0101_0101_0101
}

/// The bit of a word that has `rank` ones below it; there must be such a one.
///
/// Vigna's broadword select: find the byte, then the bit, both by comparing eight counts at once. `pdep`
/// would do it in one instruction, but not on every machine and not without unsafe code.
fn select_in_word(word: u64, rank: u64) -> u64 {
    let pairs = word - (word >> 1 & each(0x55));
    let nibbles = (pairs & each(0x33)) + (pairs >> 2 & each(0x33));
    let sums = running_sums((nibbles + (nibbles >> 4)) & each(0x0F));
    let byte = at_most(sums, rank);
    let rank = rank - (sums << 8 >> (8 * byte) & 0xFF);
    // Eight copies of the byte, of which copy i keeps bit i; then any bit that is left counts 1.
    let copies = each(word >> (8 * byte) & 0xFF) & 0x8040_2010_0804_0201;
    let spread = (copies | ((copies | each(0x80)) - each(1))) >> 7 & each(1);
    8 * byte + at_most(running_sums(spread), rank)
}

/// Byte i of the result is the sum of the bytes 0 to i, which must not exceed 255.
#[inline]
fn running_sums(bytes: u64) -> u64 {
    bytes.wrapping_mul(each(1))
}

/// How many of eight bytes are at most `limit`; all are at most 64, the limit is below 64.
#[inline]
fn at_most(bytes: u64, limit: u64) -> u64 {
    // 128 + limit - byte is at least 64: no byte borrows from the next, and bit 7 is the answer.
    ones((each(0x80 + limit) - bytes) & each(0x80))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::sync::Arc;
    use alloc::vec;

    use crate::bits::Bytes;

    /// Steele, Lea, Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014.
    struct SplitMix(u64);

    impl SplitMix {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ z >> 31
        }

        fn below(&mut self, limit: u64) -> u64 {
            ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
        }
    }

    const UNIVERSES: [u64; 8] = [1, 63, 64, 65, 511, 512, 513, 1_000_000];

    /// Every bit with the given chance in 1024.
    fn random(universe: u64, chance: u64, random: &mut SplitMix) -> Bitmap {
        let mut bitmap = Bitmap::zeroed(universe).unwrap();
        for index in 0..universe {
            if random.below(1024) < chance {
                bitmap.set(index).unwrap();
            }
        }
        bitmap
    }

    fn of(universe: u64, numbers: &[u64]) -> Bitmap {
        let mut bitmap = Bitmap::zeroed(universe).unwrap();
        for &number in numbers {
            assert!(bitmap.set(number).unwrap());
        }
        bitmap
    }

    /// The invariant, seen from outside: what is saved must load.
    fn assert_whole(bitmap: &Bitmap) {
        let again = Bitmap::from_words(bitmap.words().clone(), bitmap.universe());
        assert_eq!(again.as_ref(), Some(bitmap), "tail or number of words");
    }

    #[test]
    fn rank_and_select_undo_each_other() {
        let mut random_numbers = SplitMix(2);
        for universe in UNIVERSES {
            for chance in [0, 1, 16, 512, 1000, 1024] {
                let bitmap = random(universe, chance, &mut random_numbers);
                let ranked = bitmap.ranked().unwrap();
                let mut below = 0;
                for index in 0..universe {
                    assert_eq!(ranked.rank(index), below, "{universe} {chance} {index}");
                    if bitmap.contains(index) {
                        assert_eq!(ranked.select(below), Some(index), "{universe} {chance}");
                        below += 1;
                    }
                }
                assert_eq!((ranked.count_ones(), bitmap.count_ones()), (below, below));
                assert_eq!((ranked.rank(universe), ranked.rank(u64::MAX)), (below, below));
                assert_eq!((ranked.select(below), ranked.select(u64::MAX)), (None, None));
                assert_eq!(bitmap.count_range(0..universe), Ok(below));
            }
        }
    }

    #[test]
    fn laws_of_sets_hold_across_universes() {
        let mut random_numbers = SplitMix(3);
        for ours in UNIVERSES {
            for theirs in UNIVERSES {
                // The largest with itself and with one other: more of them take time, not paths.
                if ours.max(theirs) == 1_000_000 && ours.min(theirs) < 513 {
                    continue;
                }
                for (our_chance, their_chance) in [(512, 512), (3, 900), (1024, 100), (0, 1024)] {
                    let a = random(ours, our_chance, &mut random_numbers);
                    let b = random(theirs, their_chance, &mut random_numbers);
                    check_laws(&a, &b);
                }
            }
        }
    }

    fn check_laws(a: &Bitmap, b: &Bitmap) {
        let larger = a.universe().max(b.universe());
        let (mut union, mut both, mut minus, mut either) = (a.clone(), a.clone(), a.clone(), a.clone());
        union.union_with(b).unwrap();
        both.intersect_with(b).unwrap();
        minus.subtract(b);
        either.xor_with(b).unwrap();
        assert_eq!((union.universe(), either.universe()), (larger, larger));
        assert_eq!(both.universe(), a.universe().min(b.universe()));
        assert_eq!(minus.universe(), a.universe());
        for set in [&union, &both, &minus, &either] {
            assert_whole(set);
        }

        assert_eq!(union.count_ones() + both.count_ones(), a.count_ones() + b.count_ones());
        assert_eq!(either.count_ones() + both.count_ones(), union.count_ones());
        for index in (0..larger).step_by(if larger > 1000 { 37 } else { 1 }).chain([larger, u64::MAX]) {
            let (in_a, in_b) = (a.contains(index), b.contains(index));
            assert_eq!(union.contains(index), in_a | in_b);
            assert_eq!(both.contains(index), in_a & in_b);
            assert_eq!(minus.contains(index), in_a & !in_b);
            assert_eq!(either.contains(index), in_a ^ in_b);
        }

        // A minus B = A and not B, where "not" needs B's bits up to A's universe.
        let mut not_b = b.clone();
        not_b.resize(a.universe()).unwrap();
        not_b.flip_range(0..a.universe()).unwrap();
        assert_whole(&not_b);
        not_b.intersect_with(a).unwrap();
        assert_eq!(not_b, minus);
        // Twice the same XOR is A again, in the larger universe.
        either.xor_with(b).unwrap();
        either.resize(a.universe()).unwrap();
        assert_eq!(&either, a);
    }

    #[test]
    fn five_numbers_are_sorted_with_one_byte() {
        let bitmap = of(8, &[4, 7, 2, 5, 3]);
        let bytes = bitmap.words().to_le_bytes();
        assert_eq!((bytes[0], &bytes[1..]), (0b1011_1100, &[0; 7][..]));
        assert!(bitmap.iter().eq([2, 3, 4, 5, 7]));
        assert_eq!((bitmap.min(), bitmap.max()), (Some(2), Some(7)));
    }

    // Words of 64 bits on disk in little-endian order are words of 32 bits too.
    #[test]
    fn integers_11_32_106_live_in_32_bit_words_0_1_3() {
        let bitmap = of(128, &[11, 32, 106]);
        let bytes = bitmap.words().to_le_bytes();
        let words: Vec<u32> =
            bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [1 << 11, 1 << 0, 0, 1 << 10]);
    }

    #[test]
    fn sign_in_state_of_100_million_users_takes_12_and_a_half_megabytes() {
        const USERS: u64 = 100_000_000;
        let mut signed_in = Bitmap::zeroed(USERS).unwrap();
        assert_eq!(signed_in.words().to_le_bytes().len(), 12_500_000);
        for user in [0, 12_345_678, USERS - 1] {
            assert_eq!(signed_in.test(user), Ok(false));
            assert_eq!((signed_in.set(user), signed_in.set(user)), (Ok(true), Ok(false)));
            assert_eq!(signed_in.test(user), Ok(true));
        }
        assert_eq!((signed_in.clear(12_345_678), signed_in.clear(12_345_678)), (Ok(true), Ok(false)));
        assert_eq!(signed_in.test(12_345_678), Ok(false));
        assert!(signed_in.set(USERS).is_err());
        assert!(signed_in.iter().eq([0, USERS - 1]));
    }

    #[test]
    fn ranges_agree_with_a_plain_vector() {
        let mut random = SplitMix(4);
        for universe in [1, 63, 64, 65, 127, 128, 129, 700] {
            let mut bitmap = Bitmap::zeroed(universe).unwrap();
            let mut model = vec![false; universe as usize];
            for step in 0..1500 {
                let (start, end) = (random.below(universe + 1), random.below(universe + 1));
                let range = start.min(end)..start.max(end);
                let part = &mut model[range.start as usize..range.end as usize];
                let counted = bitmap.count_range(range.clone()).unwrap();
                assert_eq!(
                    counted,
                    part.iter().filter(|&&bit| bit).count() as u64,
                    "{range:?} of {universe}"
                );
                match step % 3 {
                    0 => bitmap.set_range(range.clone()).map(|()| part.fill(true)),
                    1 => bitmap.clear_range(range.clone()).map(|()| part.fill(false)),
                    _ => bitmap
                        .flip_range(range.clone())
                        .map(|()| part.iter_mut().for_each(|bit| *bit = !*bit)),
                }
                .unwrap();
                let index = random.below(universe);
                model[index as usize] ^= true;
                assert_eq!(bitmap.flip(index), Ok(model[index as usize]));
                assert!(
                    (0..universe).all(|i| bitmap.contains(i) == model[i as usize]),
                    "{range:?} of {universe}"
                );
                assert_whole(&bitmap);
            }
        }
    }

    // Where a shift by 64, or a word too many, would show.
    #[test]
    fn ranges_that_end_with_a_word_touch_no_other() {
        for (range, expected) in [
            (0..64, [u64::MAX, 0, 0]),
            (64..128, [0, u64::MAX, 0]),
            (0..128, [u64::MAX, u64::MAX, 0]),
            (63..65, [1 << 63, 1, 0]),
            (63..64, [1 << 63, 0, 0]),
            (64..65, [0, 1, 0]),
            (128..192, [0, 0, u64::MAX]),
            (0..192, [u64::MAX; 3]),
            (64..64, [0; 3]),
            (192..192, [0; 3]),
        ] {
            let mut bitmap = Bitmap::zeroed(192).unwrap();
            bitmap.set_range(range.clone()).unwrap();
            assert_eq!(bitmap.words().as_slice(), expected, "{range:?}");
            assert_eq!(bitmap.count_range(range.clone()), Ok(range.end - range.start));
            bitmap.flip_range(0..192).unwrap();
            assert_eq!(bitmap.words().as_slice(), expected.map(|word| !word), "{range:?}");
            bitmap.clear_range(range.clone()).unwrap();
            assert_eq!(bitmap.count_ones(), 192 - (range.end - range.start));
        }
    }

    #[test]
    fn the_tail_stays_clear_after_a_complement_and_after_shrinking() {
        for universe in UNIVERSES {
            let mut bitmap = Bitmap::zeroed(universe).unwrap();
            bitmap.flip_range(0..universe).unwrap();
            assert_whole(&bitmap);
            assert_eq!(bitmap.count_ones(), universe);
            assert_eq!(bitmap.max(), Some(universe - 1));
            for kept in [universe - 1, universe / 2, universe.min(64), 1, 0] {
                let mut shrunk = bitmap.clone();
                shrunk.resize(kept).unwrap();
                assert_whole(&shrunk);
                assert_eq!((shrunk.universe(), shrunk.count_ones()), (kept, kept));
                // What was dropped must not come back.
                shrunk.resize(universe + 70).unwrap();
                assert_whole(&shrunk);
                assert_eq!(shrunk.count_ones(), kept);
                assert_eq!(shrunk.test(universe + 69), Ok(false));
            }
            bitmap.clear_all();
            assert!(bitmap.is_empty() && bitmap.universe() == universe);
        }
    }

    #[test]
    fn words_of_the_wrong_number_or_with_a_set_tail_are_refused() {
        let from = |words: Vec<u64>, universe| Bitmap::from_words(words.into(), universe);
        assert!(from(vec![1 << 62], 63).is_some());
        assert!(from(vec![1 << 63], 63).is_none());
        assert!(from(vec![1 << 63], 64).is_some());
        assert!(from(vec![u64::MAX, 1], 65).is_some());
        assert!(from(vec![u64::MAX, 2], 65).is_none());
        assert!(from(vec![0, 0], 64).is_none());
        assert!(from(vec![0], 65).is_none());
        assert!(from(vec![], 0).is_some());
        assert!(from(vec![], 1).is_none());
        assert!(from(vec![0], 0).is_none());
        assert!(from(vec![0], u64::MAX).is_none());
    }

    #[test]
    fn behind_the_end_is_an_error_and_changes_nothing() {
        for universe in [0, 1, 64, 65, 1000] {
            let mut bitmap = Bitmap::zeroed(universe).unwrap();
            bitmap.set_range(0..universe).unwrap();
            let before = bitmap.clone();
            for index in [universe, universe + 1, u64::MAX / 64, u64::MAX - 1, u64::MAX] {
                let refused = OutOfRange { index, universe };
                assert_eq!(bitmap.set(index), Err(refused));
                assert_eq!(bitmap.clear(index), Err(refused));
                assert_eq!(bitmap.flip(index), Err(refused));
                assert_eq!(bitmap.test(index), Err(refused));
                assert!(!bitmap.contains(index));
                if index < u64::MAX {
                    for range in [0..index + 1, index..index + 1] {
                        assert_eq!(bitmap.set_range(range.clone()), Err(refused));
                        assert_eq!(bitmap.clear_range(range.clone()), Err(refused));
                        assert_eq!(bitmap.flip_range(range.clone()), Err(refused));
                        assert_eq!(bitmap.count_range(range), Err(refused));
                    }
                }
                for empty in [index..index, Range { start: index, end: 0 }] {
                    assert_eq!(bitmap.flip_range(empty.clone()), Ok(()));
                    assert_eq!(bitmap.count_range(empty), Ok(0));
                }
            }
            assert_eq!(bitmap, before);
        }
        let refused = Bitmap::zeroed(10).unwrap().set(10).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "bit 10 of a bitmap of 10 bits: indexes must be below 10, or resize it"
        );
    }

    #[test]
    fn a_bitmap_of_nothing_answers() {
        let mut bitmap = Bitmap::zeroed(0).unwrap();
        assert!(bitmap.is_empty() && bitmap.iter().next().is_none() && bitmap.iter().next_back().is_none());
        assert_eq!((bitmap.min(), bitmap.max(), bitmap.count_ones()), (None, None, 0));
        let ranked = bitmap.ranked().unwrap();
        assert_eq!((ranked.rank(0), ranked.rank(9), ranked.select(0)), (0, 0, None));
        bitmap.union_with(&of(70, &[69])).unwrap();
        assert_eq!(bitmap, of(70, &[69]));
    }

    #[test]
    fn absurd_universes_are_refused_and_leave_the_bitmap_alone() {
        for universe in [u64::MAX, u64::MAX - 63, 1 << 57] {
            assert!(Bitmap::zeroed(universe).is_err());
            let mut bitmap = of(100, &[99]);
            assert!(bitmap.resize(universe).is_err());
            assert_eq!(bitmap, of(100, &[99]));
        }
    }

    // Every way of taking turns, decided by the bits of `turns`, over words with 0 to many ones.
    #[test]
    fn both_ends_meet_in_the_middle() {
        let mut random_numbers = SplitMix(5);
        let mut sets = vec![
            of(64, &[]),
            of(64, &[0]),
            of(64, &[63]),
            of(65, &[64]),
            of(300, &[0, 63, 64, 255, 256, 299]),
        ];
        for universe in [64, 65, 200, 513] {
            sets.extend([4, 300, 1024].map(|chance| random(universe, chance, &mut random_numbers)));
        }
        for bitmap in sets {
            let numbers: Vec<u64> = (0..bitmap.universe()).filter(|&i| bitmap.contains(i)).collect();
            for _ in 0..100 {
                let mut ones = bitmap.iter();
                let mut left = numbers.as_slice();
                let bias = random_numbers.below(5);
                while let [first, rest @ ..] = left {
                    let (least, most) = ones.size_hint();
                    assert!(least <= left.len() && left.len() <= most.unwrap());
                    assert_eq!(ones.clone().count(), left.len());
                    assert_eq!(ones.clone().last(), left.last().copied());
                    if random_numbers.below(4) < bias {
                        assert_eq!(ones.next(), Some(*first));
                        left = rest;
                    } else {
                        assert_eq!(ones.next_back(), left.last().copied());
                        left = &left[..left.len() - 1];
                    }
                }
                assert_eq!((ones.next(), ones.next_back(), ones.next()), (None, None, None));
                assert_eq!(ones.size_hint(), (0, Some(0)));
            }
        }
    }

    #[test]
    fn select_in_a_word_finds_each_one() {
        let mut random = SplitMix(6);
        let sparse = |random: &mut SplitMix| random.next() & random.next() & random.next();
        let words = (0..64).map(|bit| 1 << bit).chain([u64::MAX, each(0x80), each(1), 0xFF, 0xFF << 56]);
        let words: Vec<u64> = words.chain((0..2000).map(|_| random.next())).collect();
        let words = words.into_iter().chain((0..2000).map(|_| sparse(&mut random)));
        for word in words {
            for (rank, bit) in (0..).zip((0..64).filter(|bit| word >> bit & 1 == 1)) {
                assert_eq!(select_in_word(word, rank), bit, "{word:#x} {rank}");
            }
        }
    }

    #[test]
    fn shared_words_are_copied_when_written_and_those_in_place_are_not() {
        /// Eight bytes that the test can look at while the bitmap owns them.
        #[repr(align(8))]
        struct Aligned([u8; 8]);
        impl AsRef<[u8]> for Aligned {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        impl AsMut<[u8]> for Aligned {
            fn as_mut(&mut self) -> &mut [u8] {
                &mut self.0
            }
        }

        let file = Arc::new(Aligned([0b100, 0, 0, 0, 0, 0, 0, 0]));
        struct Map(Arc<Aligned>);
        impl AsRef<[u8]> for Map {
            fn as_ref(&self) -> &[u8] {
                &self.0.0
            }
        }
        let words = Words::from_bytes(Bytes::shared(Map(file.clone()))).unwrap();
        let mut bitmap = Bitmap::from_words(words, 60).unwrap();
        assert_eq!((bitmap.set(5), bitmap.set(2)), (Ok(true), Ok(false)));
        assert!(bitmap.iter().eq([2, 5]));
        assert_eq!(file.0[0], 0b100);

        let words = Words::from_bytes(Bytes::exclusive(Aligned([0; 8]))).unwrap();
        let mut bitmap = Bitmap::from_words(words, 60).unwrap();
        let address = bitmap.words().as_slice().as_ptr();
        bitmap.set_range(3..60).unwrap();
        bitmap.resize(50).unwrap();
        bitmap.resize(64).unwrap();
        assert_eq!(bitmap.words().as_slice().as_ptr(), address);
        assert_eq!(bitmap.count_ones(), 47);
    }
}
