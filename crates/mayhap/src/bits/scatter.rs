//! Bits to be set anywhere, gathered by region, so that memory is visited region by region.
//!
//! Each position of a Bloom filter is a cache miss of its own. Gathered in regions that fit the second-level cache,
//! positions are written to memory in sequence and read again in sequence, and a region is fetched once for many
//! of them. Putze, Sanders and Singler (2007) do the same with blocks; it pays if the caller does not ask whether a
//! key was new.

use crate::narrow::{index, low_u32};
use alloc::vec::Vec;

use super::words::words_for;
use crate::paths::Paths;

/// Bits of a region: 2 to the power of this, 256 KiB, half of a common second-level cache.
const SHIFT: u32 = 21;

/// Words of a region.
#[inline(always)]
pub(crate) fn region_words(paths: Paths) -> usize {
    1 << (paths.region_shift(SHIFT) - 6)
}

/// Positions that wait to be set.
pub(crate) struct Scatter {
    /// `room` for each region; of a position only what says where in its region it is counts.
    positions: Vec<u32>,
    /// A power of two.
    room: usize,
    /// Where the next position of each region goes.
    ends: Vec<usize>,
    paths: Paths,
}

impl Scatter {
    /// Whether a filter of so many bits is large enough for this to pay, if several threads fill it.
    #[cfg(feature = "std")]
    pub(crate) fn pays(paths: Paths, bits: u64) -> bool {
        bits >> paths.region_shift(SHIFT) >= 8
    }

    /// For positions below `bits`. The memory is a quarter of that of the bits, within bounds: with less a region
    /// would be fetched for too few positions. `None` if it is not granted.
    pub(crate) fn new(paths: Paths, bits: u64) -> Option<Self> {
        let regions = index(words_for(bits)).div_ceil(region_words(paths));
        let bytes = paths.gather_bytes((bits / 32).clamp(4 << 20, 64 << 20) as usize);
        let room = 1 << (bytes / 4 / regions).max(64).ilog2();
        let (mut positions, mut ends) = (Vec::new(), Vec::new());
        positions.try_reserve_exact(regions * room).ok()?;
        ends.try_reserve_exact(regions).ok()?;
        positions.resize(regions * room, 0);
        ends.extend((0..regions).map(|region| region * room));
        Some(Self { positions, room, ends, paths })
    }

    /// Takes a position; calls `full` with a region and all that waits there, if that is as much as there is room
    /// for.
    ///
    /// # Panics
    /// If the position is not below the bits that this was made for.
    #[inline(always)]
    pub(crate) fn push(&mut self, position: u64, full: impl FnOnce(usize, &[u32])) {
        let region = index(position >> self.paths.region_shift(SHIFT));
        let end = &mut self.ends[region];
        self.positions[*end] = low_u32(position);
        *end += 1;
        if end.is_multiple_of(self.room) {
            *end -= self.room;
            full(region, &self.positions[*end..][..self.room]);
        }
    }

    /// Calls `set` with each region that has positions, and forgets them.
    pub(crate) fn drain(&mut self, mut set: impl FnMut(usize, &[u32])) {
        for (region, end) in self.ends.iter_mut().enumerate() {
            let start = region * self.room;
            if *end > start {
                set(region, &self.positions[start..*end]);
                *end = start;
            }
        }
    }
}

/// Sets bits of a region, and says how many were not set before.
pub(crate) fn set_in_region(paths: Paths, words: &mut [u64], positions: &[u32]) -> u64 {
    /// Enough to hide a miss.
    const AHEAD: usize = 64;
    let place = |position: u32| position as usize / 64 % region_words(paths);
    let mut set_before = 0;
    for (i, &position) in positions.iter().enumerate() {
        // The last ones ask for what is there already.
        crate::raw::simd::prefetch(words, place(positions[(i + AHEAD).min(positions.len() - 1)]));
        let word = &mut words[place(position)];
        set_before += *word >> (position % 64) & 1;
        *word |= 1 << (position % 64);
    }
    positions.len() as u64 - set_before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;
    use crate::probing::reduce;

    #[test]
    fn what_is_scattered_is_set_once() {
        let bits = 9 * (1 << SHIFT) + 77;
        let paths = Paths::default();
        let mut scatter = Scatter::new(paths, bits).unwrap();
        let mut plain = alloc::vec![0u64; words_for(bits) as usize];
        let mut words = plain.clone();
        let mut fresh = 0;
        let mut set = |region: usize, positions: &[u32]| {
            let from = region * region_words(paths);
            let end = words.len().min(from + region_words(paths));
            fresh += set_in_region(paths, &mut words[from..end], positions);
        };
        // More than there is room for, and the ends.
        let random = (0..3_000_000u64).map(|i| reduce(Hashing::default().digest_of(i).a, bits));
        for position in random.chain([0, bits - 1, (1 << SHIFT) - 1, 1 << SHIFT]) {
            plain[(position / 64) as usize] |= 1 << (position % 64);
            scatter.push(position, &mut set);
        }
        scatter.drain(&mut set);
        scatter.drain(|_, _| panic!("everything is set"));
        assert!(plain == words);
        assert_eq!(fresh, words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>());
    }
}
