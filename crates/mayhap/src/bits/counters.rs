//! Counters that stop at their top, or grow beyond it: what filters that count are made of.

use alloc::borrow::Cow;

use super::cells::{Cells, place, read_cell, write_cell};
use super::overflow::Overflow;
use super::words::{OutOfMemory, Words};
use crate::raw::simd;

/// How wide counters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Width {
    /// The same number of bits for each, 1 to 63. A counter that reaches the top stays there: it is unknown how
    /// often it was raised, so that lowering it could lose a key.
    Fixed(u32),
    /// 4 bits, and what is above 15 in a list of places and numbers.
    Variable,
}

/// The base of counters of variable width.
const BASE: u32 = 4;
/// From this value on, a place may have more in the list.
const ESCAPE: u64 = 15;

impl Width {
    /// The bits that every counter has.
    #[must_use]
    pub const fn base(self) -> u32 {
        match self {
            Self::Fixed(bits) => bits,
            Self::Variable => BASE,
        }
    }

    /// The largest count; reached, it says "so often or more".
    #[must_use]
    pub const fn max(self) -> u64 {
        match self {
            Self::Fixed(bits) => u64::MAX >> (64 - bits),
            Self::Variable => u64::MAX,
        }
    }
}

/// A fixed number of counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    cells: Cells,
    /// What counters of variable width have above 15.
    overflow: Option<Overflow>,
    /// Counters of fixed width that are at their top.
    saturated: u64,
}

impl Counters {
    /// So many counters, all zero.
    ///
    /// # Errors
    /// [`OutOfMemory`], also when the number of bits does not fit 64 bits.
    pub(crate) fn zeroed(len: u64, width: Width) -> Result<Self, OutOfMemory> {
        let overflow = (width == Width::Variable).then(Overflow::new);
        Ok(Self { cells: Cells::zeroed(len, width.base())?, overflow, saturated: 0 })
    }

    /// Counters that lie in existing words, the pairs of place and number too; `None` if there are more or
    /// fewer words than the counters take, or a bit is set behind the last one, or there are pairs beside
    /// counters of fixed width. All else is for [`are_sound`](Counters::are_sound).
    pub(crate) fn from_words(
        words: Words,
        pairs: Words,
        len: u64,
        width: Width,
        saturated: u64,
    ) -> Option<Self> {
        let cells = Cells::from_words(words, len, width.base())?;
        let overflow = match width {
            Width::Variable => Some(Overflow::from_words(pairs)),
            Width::Fixed(_) if pairs.is_empty() => None,
            Width::Fixed(_) => return None,
        };
        Some(Self { cells, overflow, saturated })
    }

    /// Whether what was taken from words is what this type writes: pairs that ascend, each for a counter whose
    /// base is at its top, and as many saturated counters as were said. Reads everything.
    pub(crate) fn are_sound(&self) -> bool {
        let (words, width, len) = (self.cells.as_slice(), self.cells.width(), self.cells.len());
        match &self.overflow {
            Some(overflow) => {
                self.saturated == 0
                    && overflow.is_canonical(|place, number| {
                        place < len
                            && read_cell(words, width, place) == ESCAPE
                            && (1..=u64::MAX - ESCAPE).contains(&number)
                    })
            }
            None => self.saturated == self.lanes(|ones| ones, |value| value == self.cells.max()),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.cells.len()
    }

    /// How many are at their top and stay there.
    pub(crate) fn saturated(&self) -> u64 {
        self.saturated
    }

    /// How many of variable width are above 15.
    pub(crate) fn overflowed(&self) -> u64 {
        self.overflow.as_ref().map_or(0, Overflow::len)
    }

    /// How many are not zero. Reads everything.
    pub(crate) fn occupied(&self) -> u64 {
        // Of a lane, the lowest bit of its complement's product is 1 exactly if all of its bits are 0.
        let zero = self.lanes(|word| !word, |value| value == 0);
        // Behind the last counter there are zeros, which look like counters where a word has some to spare.
        let spare = if 64 % self.cells.width() == 0 { self.spare_lanes() } else { 0 };
        self.len() + spare - zero
    }

    /// How many counters' worth of zeros there is behind the last one.
    fn spare_lanes(&self) -> u64 {
        self.cells.as_slice().len() as u64 * u64::from(64 / self.cells.width()) - self.len()
    }

    /// How many lanes of words have all bits set after `change`; by `wanted` where counters cross the ends of
    /// words.
    fn lanes(&self, change: impl Fn(u64) -> u64, wanted: impl Fn(u64) -> bool) -> u64 {
        let (words, width) = (self.cells.as_slice(), self.cells.width());
        if 64 % width != 0 {
            return (0..self.len()).filter(|&index| wanted(read_cell(words, width, index))).count() as u64;
        }
        // One bit for each lane, at its lowest bit.
        let lowest = u64::MAX / self.cells.max();
        let count = |&word: &u64| {
            let mut all = change(word);
            let mut folded = 1;
            while folded < width {
                all &= all >> folded;
                folded *= 2;
            }
            u64::from((all & lowest).count_ones())
        };
        words.iter().map(count).sum()
    }

    /// For reading many.
    #[inline]
    pub(crate) fn view(&self) -> CountersRef<'_> {
        CountersRef {
            words: self.cells.as_slice(),
            width: self.cells.width(),
            overflow: self.overflow.as_ref(),
        }
    }

    /// For changing many.
    #[inline]
    pub(crate) fn view_mut(&mut self) -> CountersMut<'_> {
        let width = self.cells.width();
        CountersMut {
            words: self.cells.as_mut_slice(),
            width,
            overflow: self.overflow.as_mut(),
            saturated: &mut self.saturated,
        }
    }

    /// Adds another's counters to these, which must be as many, each up to its top. Returns how many are not
    /// zero afterwards.
    ///
    /// # Panics
    /// If they are not as many.
    pub(crate) fn add_all(&mut self, other: &Self) -> u64 {
        assert_eq!(self.len(), other.len(), "counters of two sizes");
        let len = self.len();
        let (mut ours, theirs) = (self.view_mut(), other.view());
        let mut occupied = 0;
        for index in 0..len {
            let more = theirs.get(index);
            let before = if more > 0 { ours.add(index, more) } else { ours.get(index) };
            occupied += u64::from(before > 0 || more > 0);
        }
        occupied
    }

    /// Sets all to zero.
    pub(crate) fn clear(&mut self) {
        self.cells.as_mut_slice().fill(0);
        self.overflow.iter_mut().for_each(Overflow::clear);
        self.saturated = 0;
    }

    /// The words of all counters, for writing to a file.
    pub(crate) fn words(&self) -> &Words {
        self.cells.words()
    }

    /// The pairs of place and number of those above 15, as they stand in a file behind the words.
    pub(crate) fn pairs(&self) -> Cow<'_, [u8]> {
        self.overflow.as_ref().map_or(Cow::Borrowed(&[]), Overflow::to_le_bytes)
    }
}

/// Counters that are read, taken out of their storage once for many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountersRef<'a> {
    words: &'a [u64],
    width: u32,
    overflow: Option<&'a Overflow>,
}

impl CountersRef<'_> {
    /// The count at a place.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline(always)]
    pub(crate) fn get(&self, index: u64) -> u64 {
        let base = read_cell(self.words, self.width, index);
        match self.overflow {
            Some(overflow) if base == ESCAPE => base.saturating_add(overflow.get(index)),
            _ => base,
        }
    }

    /// The count at which a counter stays.
    #[inline(always)]
    pub(crate) fn max(&self) -> u64 {
        match self.overflow {
            Some(_) => Width::Variable.max(),
            None => Width::Fixed(self.width).max(),
        }
    }

    /// Whether the count at a place is zero.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline(always)]
    pub(crate) fn is_zero(&self, index: u64) -> bool {
        read_cell(self.words, self.width, index) == 0
    }

    /// The least count of some places.
    #[inline(always)]
    pub(crate) fn least(&self, places: impl Iterator<Item = u64>) -> u64 {
        let mut least = u64::MAX;
        for place in places {
            least = least.min(self.get(place));
            // Nothing is less, and most absent keys are found out here.
            if least == 0 {
                break;
            }
        }
        least
    }

    /// Asks for the cache line of a place.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: u64) {
        simd::prefetch(self.words, place(self.width, index).0);
    }

    /// How many words there are.
    #[inline(always)]
    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }
}

/// Counters that are changed, taken out of their storage once for many.
#[derive(Debug)]
pub(crate) struct CountersMut<'a> {
    words: &'a mut [u64],
    width: u32,
    overflow: Option<&'a mut Overflow>,
    saturated: &'a mut u64,
}

impl CountersMut<'_> {
    /// For reading.
    #[inline(always)]
    pub(crate) fn view(&self) -> CountersRef<'_> {
        CountersRef { words: self.words, width: self.width, overflow: self.overflow.as_deref() }
    }

    /// The count at a place.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline(always)]
    pub(crate) fn get(&self, index: u64) -> u64 {
        self.view().get(index)
    }

    /// Adds, up to the top. Returns the count from before.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline(always)]
    pub(crate) fn add(&mut self, index: u64, times: u64) -> u64 {
        if self.overflow.is_none() {
            // Decided once, and not for each step.
            let before = read_cell(self.words, self.width, index);
            self.put_fixed(index, before, before.saturating_add(times));
            return before;
        }
        let before = self.get(index);
        self.put(index, before, before.saturating_add(times));
        before
    }

    /// Raises a count that is lower to this one. Returns the count from before.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline(always)]
    pub(crate) fn raise(&mut self, index: u64, to: u64) -> u64 {
        let before = self.get(index);
        if before < to {
            self.put(index, before, to);
        }
        before
    }

    /// Subtracts, down to zero, unless the counter is at its top. Returns the count from afterwards.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline(always)]
    pub(crate) fn subtract(&mut self, index: u64, times: u64) -> u64 {
        if self.overflow.is_none() {
            // Decided once, as in `add`; and no counter comes to its top here.
            let before = read_cell(self.words, self.width, index);
            if before == Width::Fixed(self.width).max() {
                return before;
            }
            let after = before.saturating_sub(times);
            write_cell(self.words, self.width, index, after);
            return after;
        }
        let before = self.get(index);
        if before == Width::Variable.max() {
            return before;
        }
        let after = before.saturating_sub(times);
        self.put(index, before, after);
        after
    }

    #[inline(always)]
    fn put_fixed(&mut self, index: u64, before: u64, after: u64) {
        let max = Width::Fixed(self.width).max();
        let after = after.min(max);
        write_cell(self.words, self.width, index, after);
        // Rare, so a branch.
        if after == max && before < max {
            *self.saturated += 1;
        }
    }

    #[inline(always)]
    fn put(&mut self, index: u64, before: u64, after: u64) {
        match &mut self.overflow {
            None => self.put_fixed(index, before, after),
            Some(overflow) => {
                write_cell(self.words, self.width, index, after.min(ESCAPE));
                if before > ESCAPE || after > ESCAPE {
                    overflow.set(index, before.saturating_sub(ESCAPE), after.saturating_sub(ESCAPE));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    const WIDTHS: [Width; 12] = [
        Width::Fixed(2),
        Width::Fixed(3),
        Width::Fixed(4),
        Width::Fixed(5),
        Width::Fixed(7),
        Width::Fixed(8),
        Width::Fixed(11),
        Width::Fixed(16),
        Width::Fixed(20),
        Width::Fixed(31),
        Width::Fixed(32),
        Width::Variable,
    ];

    fn again(counters: &Counters, width: Width) -> Counters {
        let words = |bytes: &[u8]| Words::from_bytes(bytes.to_vec().into()).unwrap();
        let (len, saturated) = (counters.len(), counters.saturated());
        let read = words(&counters.words().to_le_bytes());
        Counters::from_words(read, words(&counters.pairs()), len, width, saturated).unwrap()
    }

    /// Against plain integers that do not saturate but remember that they were at the top.
    #[test]
    fn counters_of_every_width_agree_with_a_model() {
        for width in WIDTHS {
            let (len, max) = (131, width.max());
            let mut counters = Counters::zeroed(len, width).unwrap();
            let mut model = vec![0u64; len as usize];
            for step in 0..6000u64 {
                let random = step.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let index = (random >> 20) % len;
                let times = if random >> 62 == 0 { random >> 40 & 0xfffff } else { 1 + (random >> 40) % 3 };
                let cell = &mut model[index as usize];
                let mut view = counters.view_mut();
                match random >> 58 & 7 {
                    0..4 => {
                        assert_eq!(view.add(index, times), *cell, "{width:?}");
                        *cell = cell.saturating_add(times).min(max);
                    }
                    4 => {
                        assert_eq!(view.raise(index, times), *cell, "{width:?}");
                        *cell = (*cell).max(times).min(max);
                    }
                    _ => {
                        *cell = if *cell == max { max } else { cell.saturating_sub(times) };
                        assert_eq!(view.subtract(index, times), *cell, "{width:?}");
                    }
                }
                if step % 500 == 0 {
                    let read = again(&counters, width);
                    assert_eq!(read, counters, "{width:?}");
                    assert!(read.are_sound(), "{width:?}");
                    counters = read;
                }
            }
            let all: Vec<u64> = (0..len).map(|index| counters.view().get(index)).collect();
            assert_eq!(all, model, "{width:?}");
            let count =
                |wanted: fn(u64, u64) -> bool| model.iter().filter(|&&cell| wanted(cell, max)).count() as u64;
            assert_eq!(counters.occupied(), count(|cell, _| cell > 0), "{width:?}");
            assert_eq!(counters.saturated(), count(|cell, max| cell == max), "{width:?}");
            let above = if width == Width::Variable { count(|cell, _| cell > 15) } else { 0 };
            assert_eq!(counters.overflowed(), above, "{width:?}");
            counters.clear();
            assert_eq!(counters, Counters::zeroed(len, width).unwrap());
        }
    }

    #[test]
    fn sums_stop_at_the_top() {
        for width in WIDTHS {
            let (mut ours, mut theirs) =
                (Counters::zeroed(10, width).unwrap(), Counters::zeroed(10, width).unwrap());
            ours.view_mut().add(1, 1);
            ours.view_mut().add(2, u64::MAX);
            ours.view_mut().add(4, 9);
            theirs.view_mut().add(1, 2);
            theirs.view_mut().add(2, u64::MAX);
            theirs.view_mut().add(3, 20);
            assert_eq!(ours.add_all(&theirs), 4);
            let max = width.max();
            let found: Vec<u64> = (0..5).map(|index| ours.view().get(index)).collect();
            assert_eq!(found, [0, 3.min(max), max, 20.min(max), 9.min(max)], "{width:?}");
            assert!(again(&ours, width).are_sound(), "{width:?}");
        }
    }

    #[test]
    fn what_no_writer_writes_is_told() {
        let read = |words: &[u64], pairs: &[u64], len, width, saturated| {
            Counters::from_words(words.to_vec().into(), pairs.to_vec().into(), len, width, saturated)
        };
        let sound = |words: &[u64], pairs: &[u64], len, width, saturated| {
            read(words, pairs, len, width, saturated).unwrap().are_sound()
        };
        let (four, any) = (Width::Fixed(4), Width::Variable);
        assert!(read(&[1 << 12], &[], 3, four, 0).is_none(), "behind the last");
        assert!(read(&[1, 2], &[], 3, four, 0).is_none() && read(&[], &[], 3, any, 0).is_none());
        assert!(read(&[15], &[0, 1], 3, four, 1).is_none(), "pairs of fixed counters");
        assert!(sound(&[0xf1], &[], 3, four, 1));
        assert!(!sound(&[0xf1], &[], 3, four, 0) && !sound(&[0xf1], &[], 3, four, 2));
        assert!(sound(&[0xf1], &[], 3, any, 0) && sound(&[0xf1], &[1, 7], 3, any, 0));
        assert!(!sound(&[0xf1], &[], 3, any, 1), "variable counters have no top");
        assert!(!sound(&[0xf1], &[0, 7], 3, any, 0), "a number beside a counter that is not at 15");
        assert!(!sound(&[0xf1], &[1, 0], 3, any, 0) && !sound(&[0xf1], &[1, u64::MAX], 3, any, 0));
        assert!(!sound(&[0xf1], &[3, 7], 3, any, 0), "behind the last");
        assert!(!sound(&[0xff], &[1, 7, 0, 7], 3, any, 0) && !sound(&[0xff], &[1, 7, 1, 7], 3, any, 0));
    }
}
