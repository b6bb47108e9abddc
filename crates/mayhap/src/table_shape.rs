//! Where the keys of a table lie: the arithmetic of the family [`table`](crate::filters::table), without memory.

use crate::bits::{LINE_BITS, Remainders};
use crate::math;
use crate::narrow::{low_u64, small, whole};
use crate::probing::reduce;
use crate::spec::MAX_BITS;

/// The largest distance, in lines, of a remainder from its own line.
pub(crate) const FARTHEST: u64 = 3;

/// Bits of the distance.
pub(crate) const DISTANCE_BITS: u32 = 2;

/// The share of its slots up to which a table fills before it grows: 7 of 8.
const LOAD: (u64, u64) = (7, 8);

/// The most remainders of a line.
const MOST_SLOTS: u32 = Remainders::of_bits(0).slots();

/// From a digest to a line and a remainder: arithmetic without memory.
///
/// A digest's first half, a fraction of 2^64, is scaled down to the key's name, a number below `names`; and a name is scaled up
/// again, to a number whose high bits are the line and whose low bits are the remainder. As it is scaled up, no two become
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableShape {
    /// How many names there are: below 2^63.
    pub(crate) names: u64,
    /// Lines to which keys belong.
    pub(crate) lines: u64,
    pub(crate) remainder_bits: u32,
    /// By how much names are scaled up, in 2^-62: from 1 to just below 2.
    scale: u64,
    /// By how much that is scaled down again, in 2^-64 and rounded down.
    back: u64,
    pub(crate) remainders: Remainders,
}

const SCALE_BITS: u32 = 62;

impl TableShape {
    /// The most names.
    pub(crate) const MOST_NAMES: u64 = (1 << 63) - 1;

    /// The fewest lines: a page of them. So a remainder and its distance have 59 bits at most.
    pub(crate) const FEWEST_LINES: u64 = 64;

    /// `None` if there are more lines than names, or too few lines, or too many of either.
    pub(crate) fn new(names: u64, lines: u64) -> Option<Self> {
        let most = MAX_BITS / u64::from(LINE_BITS) - FARTHEST;
        if !(Self::FEWEST_LINES..=most.min(names)).contains(&lines) || names > Self::MOST_NAMES {
            return None;
        }
        // The least with which lines and remainders together are enough.
        let remainder_bits = (names.div_ceil(lines) - 1).checked_ilog2().map_or(0, |high| high + 1);
        let scale = ((u128::from(lines) << remainder_bits) << SCALE_BITS) / u128::from(names);
        let remainders = Remainders::of_bits(remainder_bits + DISTANCE_BITS);
        let back = u64::try_from((1 << (64 + SCALE_BITS)) / scale).unwrap_or(u64::MAX);
        Some(Self { names, lines, remainder_bits, scale: low_u64(scale), back, remainders })
    }

    /// The smallest that takes this number of keys and names; it has more names where they cost nothing.
    pub(crate) fn for_keys(keys: u64, names: u64) -> Option<Self> {
        // Fewer remainders fit where they are long, and they are short where there are many lines.
        let sized = (1..=MOST_SLOTS).rev().find_map(|slots| {
            let taken = u64::from(slots) * LOAD.0;
            let lines = u128::from(keys) * u128::from(LOAD.1);
            let lines = u64::try_from(lines.div_ceil(taken.into())).ok()?.max(Self::FEWEST_LINES);
            let shape = Self::new(names.max(lines), lines)?;
            (shape.capacity() >= keys).then_some(shape)
        })?;
        sized.with_all_names()
    }

    /// The largest that takes at most `bits` bits; `None` if the smallest takes more.
    pub(crate) fn within(bits: u64, names: impl Fn(u64) -> u64) -> Option<Self> {
        let lines = (bits / u64::from(LINE_BITS)).checked_sub(FARTHEST)?;
        if lines < Self::FEWEST_LINES {
            return None;
        }
        // A table for fewer keys needs fewer names. Its remainders may then be shorter, and more of them fit.
        let capacity = |slots: u32| lines.saturating_mul(u64::from(slots) * LOAD.0) / LOAD.1;
        let fits = |slots: u32| {
            Self::new(names(capacity(slots)).max(lines), lines).filter(|s| s.remainders.slots() >= slots)
        };
        (1..=MOST_SLOTS).rev().find_map(fits)?.with_all_names()
    }

    /// As many names as remainders of this length tell apart, or of the length of a lane.
    fn with_all_names(self) -> Option<Self> {
        let bits = self.remainder_bits.max(Remainders::LANE - DISTANCE_BITS);
        let names = (u128::from(self.lines) << bits).min(Self::MOST_NAMES.into());
        Self::new(low_u64(names), self.lines)
    }

    /// Half as many lines more.
    pub(crate) fn larger(self) -> Option<Self> {
        Self::new(self.names, self.lines + self.lines.div_ceil(2))
    }

    /// How many names there are.
    pub(crate) const fn names(&self) -> u64 {
        self.names
    }

    /// All lines: with those behind the last that take what it has no room for.
    pub(crate) const fn all_lines(&self) -> u64 {
        self.lines + FARTHEST
    }

    /// The mean number of keys, out of `keys`, that find no room near their lines.
    pub(crate) fn crowded(&self, keys: u64) -> u64 {
        whole(libm::round(math::table_crowded(keys, self.lines, self.remainders.slots(), small(FARTHEST))))
    }

    /// Bits of all lines.
    pub(crate) const fn bits(&self) -> u64 {
        self.all_lines() * LINE_BITS as u64
    }

    pub(crate) const fn slots(&self) -> u64 {
        self.lines * self.remainders.slots() as u64
    }

    /// Slots of all lines.
    pub(crate) const fn all_slots(&self) -> u64 {
        self.all_lines() * self.remainders.slots() as u64
    }

    /// Keys that it takes before it grows.
    pub(crate) const fn capacity(&self) -> u64 {
        self.slots() / LOAD.1 * LOAD.0 + self.slots() % LOAD.1 * LOAD.0 / LOAD.1
    }

    /// The name of a key.
    #[inline(always)]
    pub(crate) const fn name_of(&self, half: u64) -> u64 {
        reduce(half, self.names)
    }

    /// A first half of this name.
    pub(crate) fn half_of(&self, name: u64) -> u64 {
        // The least one: the name of the one before is less.
        low_u64((u128::from(name) << 64).div_ceil(self.names.into()))
    }

    #[inline(always)]
    const fn scaled(&self, name: u64) -> u64 {
        low_u64((name as u128 * self.scale as u128) >> SCALE_BITS)
    }

    #[inline(always)]
    pub(crate) const fn place(&self, name: u64) -> LineAndRemainder {
        let scaled = self.scaled(name);
        let remainder = scaled & ((1 << self.remainder_bits) - 1);
        LineAndRemainder { line: scaled >> self.remainder_bits, remainder: remainder << DISTANCE_BITS }
    }

    /// The name of the key that is at a place.
    #[inline(always)]
    pub(crate) fn name_at(&self, line: u64, remainder: u64) -> u64 {
        let scaled = line << self.remainder_bits | remainder;
        // Rounded down twice, so that up to two are missing. Which is a coin that no branch predictor knows.
        let name = ((u128::from(scaled) * u128::from(self.back)) >> 64) as u64;
        let is_below = |name: u64| u64::from(self.scaled(name) < scaled);
        name + is_below(name) + is_below(name + 1)
    }

    /// Whether there is a name that belongs to a place. As names are scaled up, there are places without one.
    pub(crate) fn has_name_at(&self, line: u64, remainder: u64) -> bool {
        let name = self.name_at(line, remainder);
        let place = self.place(name);
        name < self.names && (place.line, place.remainder >> DISTANCE_BITS) == (line, remainder)
    }
}

/// A key's line, and its remainder before the bits of the distance.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineAndRemainder {
    /// Of a table that may be too large for this machine's memory.
    pub(crate) line: u64,
    pub(crate) remainder: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{Digest, Hashing};
    use alloc::vec::Vec;

    fn draw(i: u64) -> Digest {
        Hashing::Xxh3 { seed: 7 }.digest_of(i)
    }

    /// Shapes whose names are scaled up by 1, by hardly more, by nearly 2 and by anything in between.
    fn shapes() -> impl Iterator<Item = TableShape> {
        let most_lines = MAX_BITS / 512 - FARTHEST;
        let random = (0..2000).map(move |i| {
            let lines = (64 + (draw(i).a >> (25 + draw(i).b % 30))).min(most_lines);
            let names =
                (draw(i + 5000).a >> (1 + draw(i + 5000).b % 40)).clamp(lines, TableShape::MOST_NAMES);
            (names, lines)
        });
        let near = (0..40).flat_map(move |shift| {
            [64, 65, 127, 1000, 999_999, 1 << 20, most_lines].into_iter().flat_map(move |lines: u64| {
                let names = (u128::from(lines) << shift).min(TableShape::MOST_NAMES.into()) as u64;
                [(names - 1, lines), (names, lines), (names + 1, lines), (TableShape::MOST_NAMES, lines)]
            })
        });
        random.chain(near).filter_map(|(names, lines)| TableShape::new(names, lines))
    }

    #[test]
    fn a_place_tells_the_name() {
        let mut seen = 0;
        for shape in shapes() {
            seen += 1;
            let drawn = (0..50).map(|i| reduce(draw(i ^ shape.names).a, shape.names));
            let edges = [0, 1, shape.names / 2, shape.names / 3, shape.names - 2, shape.names - 1];
            let mut names: Vec<u64> = drawn.chain(edges).collect();
            names.sort_unstable();
            let mut before = None;
            for name in names {
                let place = shape.place(name);
                let (line, remainder) = (place.line, place.remainder >> DISTANCE_BITS);
                assert!(line < shape.lines && remainder >> shape.remainder_bits == 0, "{shape:?}: {name}");
                assert_eq!(shape.name_at(line, remainder), name, "{shape:?}");
                assert!(shape.has_name_at(line, remainder));
                assert_eq!(shape.name_of(shape.half_of(name)), name, "{shape:?}");
                // The least half of that name.
                assert!(name == 0 || shape.name_of(shape.half_of(name) - 1) == name - 1, "{shape:?}: {name}");
                assert!(before <= Some((line, remainder, name)), "{shape:?}: {name}");
                before = Some((line, remainder, name));
            }
        }
        assert!(seen > 2500, "{seen} shapes");
    }

    #[test]
    fn as_many_places_have_a_name_as_there_are_names() {
        for names in [64, 65, 100, 127, 128, 1000, 4095, 4096, 4097, 12_345] {
            for lines in [64, 65, 96, 100, 127].into_iter().filter(|&lines| lines <= names) {
                let shape = TableShape::new(names, lines).unwrap();
                let places = (0..lines << shape.remainder_bits)
                    .map(|at| (at >> shape.remainder_bits, at & ((1 << shape.remainder_bits) - 1)));
                let named = places.filter(|&(line, remainder)| shape.has_name_at(line, remainder));
                let found: Vec<u64> = named.map(|(line, remainder)| shape.name_at(line, remainder)).collect();
                assert!(found.into_iter().eq(0..names), "{names} names, {lines} lines");
            }
        }
    }

    #[test]
    fn sizes_have_limits() {
        let most = MAX_BITS / 512 - FARTHEST;
        let largest = TableShape::new(TableShape::MOST_NAMES, most).unwrap();
        assert_eq!(largest.bits(), MAX_BITS);
        assert_eq!(largest.larger(), None);
        assert_eq!(TableShape::new(TableShape::MOST_NAMES, most + 1), None);
        assert_eq!(TableShape::new(TableShape::MOST_NAMES + 1, 64), None);
        assert_eq!(TableShape::new(1000, 63), None);
        assert_eq!(TableShape::new(1000, 1001), None);
        // The longest remainders: with their distance they fit a word.
        let longest = TableShape::new(TableShape::MOST_NAMES, 64).unwrap();
        assert_eq!((longest.remainder_bits, longest.remainders.slots()), (57, 508 / 59));
        for keys in [1, 63, 1000, 1_000_000, 1 << 40] {
            for names in [1, 1 << 20, 1 << 45, TableShape::MOST_NAMES] {
                let shape = TableShape::for_keys(keys, names).unwrap();
                assert!(shape.capacity() >= keys && shape.names >= names, "{keys} keys, {names} names");
                let (mut larger, mut fewest) = (shape, u32::MAX);
                while let Some(next) = larger.larger() {
                    assert!(next.remainders.slots() >= larger.remainders.slots());
                    assert!(next.capacity() >= larger.capacity() + larger.capacity() / 2 - 15);
                    fewest = fewest.min(next.remainders.slots());
                    larger = next;
                }
                assert!(fewest >= 8);
            }
        }
        let within = |bits| TableShape::within(bits, |n| n.saturating_mul(1_000_000));
        assert_eq!(within(67 * 512 - 1), None);
        for bits in [67 * 512, 1_000_000, 123_456_789, MAX_BITS] {
            let shape = within(bits).unwrap();
            assert!(shape.bits() <= bits && bits - shape.bits() < 512, "{bits} bits");
            assert!(shape.names >= shape.capacity().saturating_mul(1_000_000).min(TableShape::MOST_NAMES));
        }
    }
}
