//! Bits that are read in windows: 57 neighbours with one load, wherever they start.
//!
//! A load of 64 bits from any byte on has, behind the bit that is wanted first, at least 57 bits: that is how far apart
//! two bits may lie and still come together. So the last place at which a window starts has 56 bits behind it.

use super::counters::{Counters, CountersMut, CountersRef, Width};
use super::words::{OutOfMemory, Words, words_for};
use crate::narrow::index;
use crate::raw::simd;

/// The bits of a window.
pub(crate) const WINDOW: u32 = 57;

/// The bits behind the last place at which a window of a shifting filter starts.
pub const BEHIND: u64 = WINDOW as u64 - 1;

/// Bits that are read in windows; each with a counter, if they are to be cleared again.
///
/// A bit is set exactly if its counter is above 0. Only [`are_sound`](Windows::are_sound) checks that of what came from
/// outside; where it does not hold, answers are wrong and nothing worse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    words: Words,
    counters: Option<Counters>,
    /// Places at which a window may start.
    starts: u64,
    /// Set bits.
    ones: u64,
}

impl Windows {
    /// All bits unset, with counters of so many bits or without.
    ///
    /// # Errors
    /// [`OutOfMemory`], instead of ending the program.
    pub(crate) fn zeroed(starts: u64, counter_bits: Option<u32>) -> Result<Self, OutOfMemory> {
        let bits = starts.saturating_add(BEHIND);
        let counters = counter_bits.map(|width| Counters::zeroed(bits, Width::Fixed(width))).transpose()?;
        Ok(Self { words: Words::zeroed(words_for(bits))?, counters, starts, ones: 0 })
    }

    /// Bits that lie in existing words; `None` if there are more or fewer words or counters than the bits take, or one
    /// is set behind the last.
    pub(crate) fn from_words(
        words: Words,
        counters: Option<Counters>,
        starts: u64,
        ones: Option<u64>,
    ) -> Option<Self> {
        let bits = starts.checked_add(BEHIND).filter(|_| starts > 0)?;
        let tail_is_clear =
            bits % 64 == 0 || words.as_slice().last().is_some_and(|last| last >> (bits % 64) == 0);
        let fits = words.len() as u64 == words_for(bits)
            && tail_is_clear
            && counters.as_ref().is_none_or(|counters| counters.len() == bits);
        let ones = ones.unwrap_or_else(|| words.count_ones());
        fits.then_some(Self { words, counters, starts, ones })
    }

    /// Whether the bits are those that the counters say, and as many counters are at their top as was said. Reads
    /// everything.
    pub(crate) fn are_sound(&self) -> bool {
        self.counters.as_ref().is_none_or(|counters| {
            let (words, view) = (self.words.as_slice(), counters.view());
            counters.are_sound() && (0..self.len()).all(|place| view.is_zero(place) != bit(words, place))
        })
    }

    /// How many bits there are.
    pub(crate) fn len(&self) -> u64 {
        self.starts + BEHIND
    }

    /// Places at which a window may start.
    pub(crate) fn starts(&self) -> u64 {
        self.starts
    }

    /// How many bits are set, as far as is known.
    pub(crate) fn ones(&self) -> u64 {
        self.ones
    }

    /// How many bits are set, counted.
    pub(crate) fn count_ones(&self) -> u64 {
        self.words.count_ones()
    }

    /// The counters of the bits, if they have any.
    pub(crate) fn counters(&self) -> Option<&Counters> {
        self.counters.as_ref()
    }

    /// The words of the bits, for writing to a file.
    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    /// For reading many.
    #[inline(always)]
    pub(crate) fn view(&self) -> WindowsRef<'_> {
        WindowsRef { words: self.words.as_slice() }
    }

    /// For changing many.
    #[inline(always)]
    pub(crate) fn view_mut(&mut self) -> WindowsMut<'_> {
        WindowsMut {
            words: self.words.as_mut_slice(),
            counters: self.counters.as_mut().map(Counters::view_mut),
            ones: &mut self.ones,
        }
    }

    /// The share of the places whose windows have all bits of a mask set.
    pub(crate) fn share_with(&self, mask: u64) -> f64 {
        let words = self.words.as_slice();
        let having: u64 = (0..self.starts)
            .step_by(64)
            .map(|first| {
                let (mut all, mut left) = (u64::MAX >> (64 - (self.starts - first).min(64)), mask);
                while left != 0 {
                    all &= across(words, first + u64::from(left.trailing_zeros()));
                    left &= left - 1;
                }
                u64::from(all.count_ones())
            })
            .sum();
        having as f64 / self.starts as f64
    }

    /// Sets what is set in another, which must have as many bits, and adds its counters.
    ///
    /// # Panics
    /// If there are not as many.
    pub(crate) fn merge(&mut self, other: &Self) {
        assert_eq!(self.len(), other.len(), "bits of two sizes");
        self.combine(other, |ours, theirs| ours | theirs);
        if let (Some(ours), Some(theirs)) = (&mut self.counters, &other.counters) {
            ours.add_all(theirs);
        }
    }

    /// How many bits are set in this one or in another, which must have as many.
    pub(crate) fn ones_of_union(&self, other: &Self) -> u64 {
        let pairs = self.words.as_slice().iter().zip(other.words.as_slice());
        pairs.map(|(ours, theirs)| u64::from((ours | theirs).count_ones())).sum()
    }

    /// Keeps what is set in another too, which must have as many bits. For bits without counters.
    ///
    /// # Panics
    /// If there are not as many.
    pub(crate) fn intersect(&mut self, other: &Self) {
        assert_eq!(self.len(), other.len(), "bits of two sizes");
        self.combine(other, |ours, theirs| ours & theirs);
    }

    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        let mut ones = 0;
        for (ours, &theirs) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *ours = with(*ours, theirs);
            ones += u64::from(ours.count_ones());
        }
        self.ones = ones;
    }

    /// Unsets all.
    pub(crate) fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.counters.iter_mut().for_each(Counters::clear);
        self.ones = 0;
    }
}

#[inline(always)]
fn bit(words: &[u64], place: u64) -> bool {
    words[index(place / 64)] >> (place % 64) & 1 == 1
}

/// The byte that a window starts in, and the bit of that byte.
#[inline(always)]
const fn byte(start: u64) -> (usize, u32) {
    (index(start / 8), (start % 8) as u32)
}

/// Bits that are read, taken out of their storage once for many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowsRef<'a> {
    words: &'a [u64],
}

impl WindowsRef<'_> {
    /// The 57 bits from a place on, the first one lowest; what is above means nothing.
    ///
    /// # Panics
    /// If no window starts there.
    #[inline(always)]
    pub(crate) fn window(self, start: u64) -> u64 {
        if cfg!(target_endian = "big") {
            return across(self.words, start);
        }
        let (first, shift) = byte(start);
        let bytes: &[u8] = bytemuck::cast_slice(self.words);
        u64::from_le_bytes(*bytes[first..].first_chunk().expect("a whole window")) >> shift
    }

    /// Asks for the cache line of a window, and for the next one if it reaches into that.
    #[inline(always)]
    pub(crate) fn prefetch(self, start: u64) {
        // Words of 64 bits lie within a line, so that of the last bit is enough.
        simd::prefetch(self.words, index(start / 64));
        simd::prefetch(self.words, index((start + BEHIND) / 64));
    }

    /// The bytes of all words.
    #[inline(always)]
    pub(crate) fn bytes(self) -> usize {
        size_of_val(self.words)
    }
}

/// A window where bytes do not lie in the order of their bits: from the word that it starts in and the next.
fn across(words: &[u64], start: u64) -> u64 {
    let (first, shift) = (index(start / 64), start % 64);
    let next = words.get(first + 1).copied().unwrap_or(0);
    words[first] >> shift | (next << 1) << (63 - shift)
}

/// Bits that are changed, taken out of their storage once for many.
#[derive(Debug)]
pub(crate) struct WindowsMut<'a> {
    words: &'a mut [u64],
    counters: Option<CountersMut<'a>>,
    ones: &'a mut u64,
}

impl WindowsMut<'_> {
    /// For reading.
    #[inline(always)]
    pub(crate) fn view(&self) -> WindowsRef<'_> {
        WindowsRef { words: self.words }
    }

    /// The counters, for reading.
    #[inline(always)]
    pub(crate) fn counters(&self) -> Option<CountersRef<'_>> {
        self.counters.as_ref().map(CountersMut::view)
    }

    /// Sets the bits of a window that are set in `mask`, and says whether one was not. For bits without counters: one
    /// access for all of them.
    ///
    /// # Panics
    /// If no window starts there.
    #[inline(always)]
    pub(crate) fn set(&mut self, start: u64, mask: u64) -> bool {
        let fresh = mask & !self.view().window(start);
        if cfg!(target_endian = "big") {
            let (first, shift) = (index(start / 64), start % 64);
            self.words[first] |= mask << shift;
            let above = (mask >> 1) >> (63 - shift);
            if above != 0 {
                self.words[first + 1] |= above;
            }
        } else {
            let (first, shift) = byte(start);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(self.words);
            let window: &mut [u8; 8] = bytes[first..].first_chunk_mut().expect("a whole window");
            *window = (u64::from_le_bytes(*window) | mask << shift).to_le_bytes();
        }
        *self.ones += u64::from(fresh.count_ones());
        fresh != 0
    }

    /// Sets a bit and raises its counter; says whether it was not set.
    ///
    /// # Panics
    /// If there is no such bit.
    #[inline(always)]
    pub(crate) fn raise(&mut self, place: u64) -> bool {
        if let Some(counters) = &mut self.counters {
            counters.add(place, 1);
        }
        let was = bit(self.words, place);
        self.words[index(place / 64)] |= 1 << (place % 64);
        *self.ones += u64::from(!was);
        !was
    }

    /// Lowers the counters of some bits, and unsets those of which that makes the counter 0; whether all of them are at their
    /// top, so that nothing has changed.
    #[inline(always)]
    pub(crate) fn lower_all(&mut self, places: &[u64]) -> bool {
        let is_at_top =
            |counters: CountersRef<'_>| places.iter().all(|&place| counters.get(place) == counters.max());
        let stuck = self.counters().is_some_and(is_at_top);
        places.iter().for_each(|&place| self.lower(place));
        stuck
    }

    /// Lowers the counter of a bit, unless it is at its top, and unsets the bit if that makes it 0. Without counters
    /// nothing happens.
    ///
    /// # Panics
    /// If there is no such bit.
    #[inline(always)]
    pub(crate) fn lower(&mut self, place: u64) {
        let Some(counters) = &mut self.counters else { return };
        if counters.subtract(place, 1) == 0 && bit(self.words, place) {
            self.words[index(place / 64)] &= !(1 << (place % 64));
            // A header that was not compared with its payload may have claimed fewer.
            *self.ones = self.ones.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn random(step: u64) -> u64 {
        (step + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    #[test]
    fn a_window_is_the_57_bits_from_its_start_on() {
        for starts in [1, 7, 8, 9, 63, 64, 65, 200, 1000] {
            let mut windows = Windows::zeroed(starts, None).unwrap();
            let mut model = vec![false; windows.len() as usize];
            for step in 0..starts {
                let (start, mask) =
                    (random(step) % starts, 1 | 1 << ((random(step) >> 58) % 57) | 1 << (step % 57));
                let before = windows.ones();
                let fresh = windows.view_mut().set(start, mask);
                for place in 0..57 {
                    model[(start + place) as usize] |= mask >> place & 1 == 1;
                }
                assert_eq!(fresh, windows.ones() > before);
            }
            assert_eq!(windows.ones(), windows.count_ones());
            assert_eq!(windows.ones(), model.iter().filter(|&&set| set).count() as u64);
            for mask in [1, 1 << 56, 1 | 1 << 30 | 1 << 56] {
                let has = |start: &u64| windows.view().window(*start) & mask == mask;
                let share = (0..starts).filter(has).count() as f64 / starts as f64;
                assert_eq!(windows.share_with(mask), share, "{starts} starts, {mask}");
            }
            for start in 0..starts {
                let expected =
                    (0..57).fold(0, |window, i| window | u64::from(model[(start + i) as usize]) << i);
                let low = u64::MAX >> 7;
                assert_eq!(windows.view().window(start) & low, expected, "{starts} starts, {start}");
                assert_eq!(across(windows.words.as_slice(), start) & low, expected);
            }
        }
    }

    #[test]
    fn a_bit_is_set_as_long_as_its_counter_is_not_0() {
        let mut windows = Windows::zeroed(100, Some(2)).unwrap();
        let mut model = [0u64; 156];
        for step in 0..3000 {
            let place = random(step) % 156;
            let (mut view, cell) = (windows.view_mut(), &mut model[place as usize]);
            if random(step) >> 63 == 0 {
                assert_eq!(view.raise(place), *cell == 0);
                *cell = (*cell + 1).min(3);
            } else if *cell > 0 {
                view.lower(place);
                // At its top it stays there.
                *cell -= u64::from(*cell < 3);
            }
            let set: Vec<bool> = (0..156).map(|place| bit(windows.words.as_slice(), place)).collect();
            assert!(set.iter().zip(&model).all(|(&set, &cell)| set == (cell > 0)));
        }
        assert!(windows.are_sound() && windows.ones() == windows.count_ones());
        assert_eq!(
            windows.counters().unwrap().saturated(),
            model.iter().filter(|&&cell| cell == 3).count() as u64
        );
        windows.words.as_mut_slice()[0] ^= 1;
        assert!(!windows.are_sound());
    }

    #[test]
    fn what_no_writer_writes_is_told() {
        let read = |words: &[u64], starts| Windows::from_words(words.to_vec().into(), None, starts, None);
        assert!(read(&[1], 8).is_some() && read(&[1 << 63], 8).is_some());
        assert!(read(&[1 << 63], 7).is_none(), "behind the last bit");
        assert!(read(&[1], 9).is_none() && read(&[1, 0], 8).is_none() && read(&[1], 0).is_none());
        assert!(read(&[1], u64::MAX).is_none());
    }
}
