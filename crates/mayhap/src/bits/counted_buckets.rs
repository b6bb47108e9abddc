//! Buckets of eight cells, each a remainder and a counter, packed without gaps.
//!
//! A cell is the counter in its low bits and the remainder above it. An empty cell is 0. Several cells are loaded as one
//! word and compared together, without a branch: as many of them as fit, up to half a bucket.

use super::cells::{Cells, place, read_bits, write_bits};
use super::words::{OutOfMemory, Words};
use crate::cell_lanes::{CellLanes, CellShape, FourPlaces};
use crate::narrow::{index, low_u32, low_u64, small};
use crate::paths::Paths;
use crate::raw::simd;

/// Cells of a bucket.
pub(crate) const SLOTS: u32 = 8;

/// A number of buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountedBuckets {
    cells: Cells,
    lanes: CellLanes,
}

impl CountedBuckets {
    /// So many buckets of empty cells.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub(crate) fn zeroed(buckets: u64, shape: CellShape) -> Result<Self, OutOfMemory> {
        let cells = Cells::zeroed(buckets.saturating_mul(SLOTS.into()), shape.width())?;
        Ok(Self { cells, lanes: CellLanes::new(shape) })
    }

    /// Buckets that lie in existing words; `None` if the number of words is another than they take, or a bit is set
    /// behind the last cell.
    pub(crate) fn from_words(words: Words, buckets: u64, shape: CellShape) -> Option<Self> {
        let cells = Cells::from_words(words, buckets.checked_mul(SLOTS.into())?, shape.width())?;
        Some(Self { cells, lanes: CellLanes::new(shape) })
    }

    /// A copy.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub(crate) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut copy = Self::zeroed(self.cells.len() / u64::from(SLOTS), self.lanes.shape)?;
        copy.cells.as_mut_slice().copy_from_slice(self.cells.as_slice());
        Ok(copy)
    }

    /// For reading many.
    #[inline]
    pub(crate) fn view(&self) -> BucketsRef<'_> {
        BucketsRef { words: self.cells.as_slice(), lanes: self.lanes }
    }

    /// For changing many.
    #[inline]
    pub(crate) fn view_mut(&mut self) -> BucketsMut<'_> {
        BucketsMut { words: self.cells.as_mut_slice(), lanes: self.lanes }
    }

    /// The cells that are not empty: bucket, remainder, count.
    pub(crate) fn occupied(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let CellShape { counter_bits, .. } = self.lanes.shape;
        (0..self.cells.len()).filter_map(move |index| {
            let (cell, bucket) = (self.cells.get(index), index / u64::from(SLOTS));
            let count = cell & self.lanes.shape.max();
            (count > 0).then_some((bucket, cell >> counter_bits, count))
        })
    }

    /// Whether every cell that counts nothing is 0 as a whole, as they are written.
    pub(crate) fn are_sound(&self) -> bool {
        (0..self.cells.len()).map(|index| self.cells.get(index)).all(|cell| {
            let count = cell & self.lanes.shape.max();
            count > 0 || cell == 0
        })
    }

    /// Empties all cells.
    pub(crate) fn clear(&mut self) {
        self.cells.as_mut_slice().fill(0);
    }

    /// The words of all cells, for writing to a file.
    pub(crate) fn words(&self) -> &Words {
        self.cells.words()
    }
}

/// What a look at a bucket has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Whether a cell has the remainder.
    pub(crate) found: bool,
    /// How many cells are not empty.
    pub(crate) taken: u32,
}

/// Buckets that are read, taken out of their storage once for many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketsRef<'a> {
    words: &'a [u64],
    lanes: CellLanes,
}

impl BucketsRef<'_> {
    /// Whether each of several keys has a cell in one of its buckets, as by [`any`](BucketsRef::any).
    #[inline(always)]
    pub(crate) fn any_each(&self, paths: Paths, places: &[FourPlaces], hits: &mut [bool]) {
        let any = |places: &FourPlaces| self.any(&places.buckets, &places.remainders);
        if simd::any_of_four(paths, self.words, &self.lanes, places, hits, any) {
            return;
        }
        for (hit, places) in hits.iter_mut().zip(places) {
            *hit = self.any(&places.buckets, &places.remainders);
        }
    }

    /// Whether a cell of one of the buckets has the remainder that belongs to it. All are looked at, so that their cache
    /// lines come at the same time and there is one branch.
    ///
    /// # Panics
    /// If there is no such bucket.
    #[inline(always)]
    pub(crate) fn any<const N: usize>(&self, buckets: &[u64; N], remainders: &[u64; N]) -> bool {
        match self.lanes.together() {
            4 => self.any_by::<2, N>(buckets, remainders),
            2 => self.any_by::<4, N>(buckets, remainders),
            _ => self.any_by::<8, N>(buckets, remainders),
        }
    }

    #[inline(always)]
    fn any_by<const LOADS: u64, const N: usize>(&self, buckets: &[u64; N], remainders: &[u64; N]) -> bool {
        let (mut perhaps, mut surely) = (0, 0);
        for i in 0..N {
            let wanted = self.lanes.spread(remainders[i]);
            self.each::<LOADS>(buckets[i], |_, cells| perhaps |= self.lanes.resembling(cells, wanted));
        }
        // Empty cells have the remainder 0, which hardly any key has.
        if perhaps == 0 || !remainders.contains(&0) {
            return perhaps != 0;
        }
        for i in 0..N {
            let wanted = self.lanes.spread(remainders[i]);
            self.each::<LOADS>(buckets[i], |_, cells| surely |= self.lanes.matching(cells, wanted));
        }
        surely != 0
    }

    /// For each bucket, whether a cell has the remainder that belongs to it, and how many are taken.
    ///
    /// # Panics
    /// If there is no such bucket.
    #[inline(always)]
    pub(crate) fn look<const N: usize>(&self, buckets: &[u64; N], remainders: &[u64; N]) -> [Look; N] {
        match self.lanes.together() {
            4 => self.look_by::<2, N>(buckets, remainders),
            2 => self.look_by::<4, N>(buckets, remainders),
            _ => self.look_by::<8, N>(buckets, remainders),
        }
    }

    #[inline(always)]
    fn look_by<const LOADS: u64, const N: usize>(
        &self,
        buckets: &[u64; N],
        remainders: &[u64; N],
    ) -> [Look; N] {
        let width = self.lanes.shape.width();
        // The sum of all lanes is in the highest. It is at most 8, and a lane has at least 4 bits.
        let top = (SLOTS / small(LOADS) - 1) * width;
        let mut looks = [Look::default(); N];
        for i in 0..N {
            let wanted = self.lanes.spread(remainders[i]);
            let (mut any, mut taken) = (0, 0);
            self.each::<LOADS>(buckets[i], |_, cells| {
                any |= self.lanes.matching(cells, wanted);
                taken += self.lanes.taken(cells) >> (width - 1);
            });
            let taken = low_u32(taken.wrapping_mul(self.lanes.ones) >> top) & 15;
            looks[i] = Look { found: any != 0, taken };
        }
        looks
    }

    /// The bit where the cell of the bucket starts that has this remainder.
    ///
    /// # Panics
    /// If there is no such bucket.
    #[inline(always)]
    pub(crate) fn find(&self, bucket: u64, remainder: u64) -> Option<u64> {
        let wanted = self.lanes.spread(remainder);
        self.first(bucket, |cells| self.lanes.matching(cells, wanted))
    }

    /// The bit where the first empty cell of the bucket starts.
    #[inline(always)]
    fn vacant(&self, bucket: u64) -> Option<u64> {
        self.first(bucket, |cells| self.lanes.tops & !self.lanes.taken(cells))
    }

    /// The first cell of a bucket in whose lane `choose` sets the highest bit.
    #[inline(always)]
    fn first(&self, bucket: u64, choose: impl Fn(u64) -> u64) -> Option<u64> {
        match self.lanes.together() {
            4 => self.first_by::<2>(bucket, choose),
            2 => self.first_by::<4>(bucket, choose),
            _ => self.first_by::<8>(bucket, choose),
        }
    }

    #[inline(always)]
    fn first_by<const LOADS: u64>(&self, bucket: u64, choose: impl Fn(u64) -> u64) -> Option<u64> {
        let width = self.lanes.shape.width();
        let mut first = None;
        self.each::<LOADS>(bucket, |at, cells| {
            let chosen = choose(cells);
            if first.is_none() && chosen != 0 {
                first = Some(at + u64::from(chosen.trailing_zeros() - (width - 1)));
            }
        });
        first
    }

    /// The count of the cell that starts at this bit.
    #[inline(always)]
    pub(crate) fn count(&self, at: u64) -> u64 {
        read_bits(self.words, self.lanes.shape.counter_bits, at)
    }

    /// Calls `look` with the cells of a bucket, in so many loads, and the bit where they start.
    #[inline(always)]
    fn each<const LOADS: u64>(&self, bucket: u64, mut look: impl FnMut(u64, u64)) {
        let width = u64::from(self.lanes.shape.width());
        let bytes: &[u8] = bytemuck::cast_slice(self.words);
        // Of eight cells, so many bits each: a bucket starts with a byte.
        let start = index(bucket * width);
        let at = start as u64 * 8;
        if LOADS == 2
            && cfg!(target_endian = "little")
            && let Some(chunk) = bytes.get(start..).and_then(<[u8]>::first_chunk)
        {
            // Both halves of the bucket are in 16 bytes, found by one check.
            let chunk = u128::from_le_bytes(*chunk);
            let (low, high) = (low_u64(chunk), (chunk >> 64) as u64);
            // A half has 16 to 64 bits.
            let half = 4 * small(width);
            look(at, low);
            look(at + u64::from(half), low >> 1 >> (half - 1) | high << (64 - half));
            return;
        }
        for load in 0..LOADS {
            let within = load * (8 * width / LOADS);
            // One load gets at all cells that are looked at together: they take at most 64 bits, counted from the byte
            // in which the first of them starts.
            let cells = match bytes.get(start + index(within / 8)..).and_then(<[u8]>::first_chunk) {
                Some(chunk) if cfg!(target_endian = "little") => u64::from_le_bytes(*chunk) >> (within % 8),
                _ => self.at_the_end(at + within),
            };
            look(at + within, cells);
        }
    }

    /// What lies from a bit on, up to the end of the words.
    #[cold]
    fn at_the_end(&self, at: u64) -> u64 {
        let (word, shift) = place(1, at);
        let next = self.words.get(word + 1).copied().unwrap_or(0);
        self.words[word] >> shift | next << 1 << (63 - shift)
    }

    /// Asks for the one or two cache lines of a bucket.
    #[inline(always)]
    pub(crate) fn prefetch(&self, bucket: u64) {
        let width = u64::from(self.lanes.shape.width());
        let start = bucket * width;
        simd::prefetch(self.words, index(start / 8));
        simd::prefetch(self.words, index((start + width - 1) / 8));
    }

    /// How many words there are.
    #[inline(always)]
    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }
}

/// Buckets that are changed, taken out of their storage once for many.
#[derive(Debug)]
pub(crate) struct BucketsMut<'a> {
    words: &'a mut [u64],
    lanes: CellLanes,
}

impl BucketsMut<'_> {
    /// For reading.
    #[inline(always)]
    pub(crate) fn view(&self) -> BucketsRef<'_> {
        BucketsRef { words: self.words, lanes: self.lanes }
    }

    /// The highest count.
    #[inline(always)]
    pub(crate) fn max(&self) -> u64 {
        self.lanes.shape.max()
    }

    /// Fills the first empty cell of a bucket, if there is one. The count must not be 0.
    ///
    /// # Panics
    /// If there is no such bucket.
    #[inline(always)]
    pub(crate) fn fill(&mut self, bucket: u64, remainder: u64, count: u64) -> bool {
        let CellShape { counter_bits, .. } = self.lanes.shape;
        let Some(at) = self.view().vacant(bucket) else { return false };
        write_bits(self.words, self.lanes.shape.width(), at, remainder << counter_bits | count);
        true
    }

    /// Sets the count of the cell that starts at this bit. A count of 0 empties the cell.
    #[inline(always)]
    pub(crate) fn set_count(&mut self, at: u64, count: u64) {
        let CellShape { counter_bits, .. } = self.lanes.shape;
        let width = if count == 0 { self.lanes.shape.width() } else { counter_bits };
        write_bits(self.words, width, at, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// Against plain pairs, in every width.
    #[test]
    fn buckets_of_every_width_agree_with_a_model() {
        for (remainder_bits, counter_bits) in
            (2..=50).map(|bits| (bits, 2)).chain((2..=50).map(|bits| (bits, 8)))
        {
            let shape = CellShape { remainder_bits, counter_bits };
            let (len, max) = (12u64, shape.max());
            let mut buckets = CountedBuckets::zeroed(len, shape).unwrap();
            let mut model = vec![[(0u64, 0u64); 8]; len as usize];
            for step in 0..3000u64 {
                let random = step.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let bucket = random.rotate_left(17) % len;
                // Few different ones, with the lowest and the highest among them.
                let few = (random >> 40) % 12;
                let remainder = if few & 1 == 0 { few } else { u64::MAX - few } & ((1 << remainder_bits) - 1);
                let cells = &mut model[bucket as usize];
                let found = cells.iter().position(|&(r, count)| r == remainder && count > 0);
                let taken = cells.iter().filter(|(_, count)| *count > 0).count() as u32;
                let mut view = buckets.view_mut();
                assert_eq!(view.view().any(&[bucket], &[remainder]), found.is_some(), "{shape:?}");
                let look = Look { found: found.is_some(), taken };
                assert_eq!(view.view().look(&[bucket], &[remainder]), [look], "{shape:?}");
                // Four together, of which one is this bucket and the others are far from the end, or not.
                let others = [1, 2, 3].map(|i| (random >> (5 * i)) % if step % 2 == 0 { 5 } else { len });
                let mut places = FourPlaces { buckets: [others[0]; 4], remainders: [remainder; 4] };
                places.buckets[1..].copy_from_slice(&others);
                places.buckets[step as usize % 4] = bucket;
                places.remainders[(step as usize + 1) % 4] ^= 1;
                let mut hits = [false; 3];
                view.view().any_each(Paths::default(), &[places; 3], &mut hits);
                let hit = view.view().any(&places.buckets, &places.remainders);
                assert_eq!(hits, [hit; 3], "{shape:?}");
                assert!(hit || found.is_none());
                let at = view.view().find(bucket, remainder);
                let bit = |slot: usize| (bucket * 8 + slot as u64) * u64::from(shape.width());
                assert_eq!(at, found.map(bit), "{shape:?}");
                if let (Some(at), Some(slot)) = (at, found) {
                    assert_eq!(view.view().count(at), cells[slot].1);
                    let count = (random >> 30) % (max + 1);
                    view.set_count(at, count);
                    cells[slot] = if count == 0 { (0, 0) } else { (remainder, count) };
                } else {
                    let count = 1 + (random >> 30) % max;
                    let slot = cells.iter().position(|&(_, count)| count == 0);
                    assert_eq!(view.fill(bucket, remainder, count), slot.is_some(), "{shape:?}");
                    slot.into_iter().for_each(|slot| cells[slot] = (remainder, count));
                }
            }
            let all: Vec<_> = buckets.occupied().collect();
            let expected: Vec<_> = model
                .iter()
                .zip(0..)
                .flat_map(|(cells, bucket)| cells.iter().map(move |&(r, count)| (bucket, r, count)))
                .filter(|&(_, _, count)| count > 0)
                .collect();
            assert_eq!(all, expected, "{shape:?}");
            assert!(buckets.are_sound() && buckets.try_clone().unwrap() == buckets);
            buckets.clear();
            assert_eq!(buckets.occupied().count(), 0);
        }
    }

    #[test]
    fn a_remainder_that_counts_nothing_is_told() {
        let shape = CellShape { remainder_bits: 6, counter_bits: 2 };
        let read = |word: u64| CountedBuckets::from_words(vec![word].into(), 1, shape).unwrap();
        assert!(read(0).are_sound() && read(0b101).are_sound() && read(u64::MAX).are_sound());
        assert!(!read(0b100).are_sound() && !read(0b100 << 56).are_sound());
        assert!(CountedBuckets::from_words(vec![0, 0].into(), 1, shape).is_none());
        assert!(CountedBuckets::from_words(vec![0].into(), u64::MAX, shape).is_none());
        assert!(CountedBuckets::zeroed(u64::MAX, shape).is_err());
    }
}
