//! From a [`Digest`] to positions: the index arithmetic of every Bloom-like filter, without memory.
//!
//! "Scaled enhanced double hashing" in 64-bit state:
//!
//! ```text
//! x = a; y = b
//! probe i:  position = x * m >> 64;   x += y;   y += (i + 1) * PHI        (all wrapping)
//! ```
//!
//! The range reduction takes the high bits of `x` (Lemire, *Fast Random Integer Generation in an
//! Interval*, 2019), so it works for every number of bits up to 2^64. The cubic term must reach those
//! high bits to do its work (Dillinger and Manolios, 2004, add a bare `i`, which in 64-bit state only
//! stirs bits that the reduction throws away): hence the multiplication by PHI.

use crate::hash::Digest;
use crate::math::MAX_PROBES;
use crate::narrow::low_u64;

#[cfg(feature = "interop")]
pub(crate) mod foreign;

/// 2^64 divided by the golden ratio, odd: spreads small integers over all 64 bits.
pub(crate) const PHI: u64 = 0x9E37_79B9_7F4A_7C15;

/// Both halves of the product with a constant, folded: all bits of the result depend on many of `word`.
#[inline(always)]
pub(crate) const fn folded(word: u64) -> u64 {
    let product = word as u128 * PHI as u128;
    low_u64(product) ^ (product >> 64) as u64
}

/// The rule from digest to positions, by its id on disk. Foreign rules get ids of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Probing {
    /// The family has no positions to derive (exact sets).
    None,
    /// [`positions`]: scaled enhanced double hashing, reduced to the number of bits by multiplication.
    Scaled,
    /// One bit in each lane of a cache line, from the digest's first half.
    Line,
    /// One bit in each lane of half a cache line, from the digest's first half.
    Split,
    /// A bucket and a remainder in each of four subtables, from a fingerprint; the family `dleft`.
    Dleft,
    /// Two buckets and a fingerprint, from the digest's first half; the family `cuckoo`.
    Cuckoo,
    /// [`positions`] of a digest that is changed by the number of each layer; the family `scalable`.
    Layered,
    /// [`positions`], one in each slice; the family `windowed` in files from before
    /// [`SlicedSquares`](Probing::SlicedSquares).
    Sliced,
    /// One position in each slice, from the square of the value that [`Scaled`](Probing::Scaled) has there; the family
    /// `windowed`.
    SlicedSquares,
    /// Offsets, then places at which windows start, each one value of the rule [`Scaled`](Probing::Scaled); the family
    /// `shifting`.
    Shifting,
    /// Two offsets, the second beyond the first, then places; the family `shifting-association`.
    ShiftingAssociation,
    /// A place in each of several segments, and a fingerprint, from the digest's first half; the family `fuse`.
    Fuse,
    /// A start and a row in one of several layers, and a fingerprint, from the digest's first half; the family `ribbon`.
    Ribbon,
    /// The rule of `ribbon`, in two stages; the family `universe`.
    Stages,
    /// A quotient and a fingerprint, from neighbouring bits of the digest; the family `expanding`.
    Expanding,
    /// A line and a remainder, from the digest's first half; the family `table`.
    Table,
    /// Guava's MURMUR128_MITZ_64. This one and those below are the rules of other programs:
    /// the module `interop`.
    Guava64,
    /// Guava's MURMUR128_MITZ_32.
    Guava32,
    /// Go's bits-and-blooms.
    Go,
    /// DCSO's bloom.
    Dcso,
    /// Spark's version 1.
    Spark1,
    /// Spark's version 2.
    Spark2,
    /// RedisBloom's Bloom filters.
    RedisBloom,
    /// RedisBloom's cuckoo filters.
    RedisBloomCuckoo,
    /// The crate `bloomfilter`.
    BloomfilterCrate,
    /// Parquet's split blocks.
    Sbbf,
    /// FastFilter's xor filters.
    Xor,
    /// FastFilter's binary fuse filters.
    FastFilterFuse,
    /// rbloom.
    Rbloom,
    /// pybloom-live.
    PybloomLive,
    /// pyprobables.
    Pyprobables,
}

impl Probing {
    /// The id in a file's header.
    #[must_use]
    pub const fn id(self) -> u8 {
        RULES[self as usize].1
    }

    /// The rule in a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        RULES[self as usize].2
    }

    /// The rule with this id, if there is one.
    #[must_use]
    pub const fn from_id(id: u8) -> Option<Self> {
        let mut row = 0;
        while row < RULES.len() {
            if RULES[row].1 == id {
                return Some(RULES[row].0);
            }
            row += 1;
        }
        None
    }
}

/// Each rule with its id and its name, in the order of the enum. The length is counted to the last rule of the enum.
const RULES: [(Probing, u8, &str); Probing::Pyprobables as usize + 1] = [
    (Probing::None, 0, "none"),
    (Probing::Scaled, 1, "scaled"),
    (Probing::Line, 2, "line"),
    (Probing::Split, 3, "split"),
    (Probing::Dleft, 8, "dleft"),
    (Probing::Cuckoo, 9, "cuckoo"),
    (Probing::Layered, 10, "layered"),
    (Probing::Sliced, 16, "sliced"),
    (Probing::SlicedSquares, 21, "sliced-squares"),
    (Probing::Shifting, 13, "shifting"),
    (Probing::ShiftingAssociation, 14, "shifting-association"),
    (Probing::Fuse, 17, "fuse"),
    (Probing::Ribbon, 18, "ribbon"),
    (Probing::Stages, 19, "stages"),
    (Probing::Expanding, 11, "expanding"),
    (Probing::Table, 20, "table"),
    (Probing::Guava64, 32, "guava-mitz-64"),
    (Probing::Guava32, 33, "guava-mitz-32"),
    (Probing::Go, 34, "go"),
    (Probing::Dcso, 35, "dcso"),
    (Probing::Spark1, 36, "spark-v1"),
    (Probing::Spark2, 37, "spark-v2"),
    (Probing::RedisBloom, 38, "redisbloom"),
    (Probing::RedisBloomCuckoo, 39, "redisbloom-cuckoo"),
    (Probing::BloomfilterCrate, 40, "bloomfilter-crate"),
    (Probing::Sbbf, 41, "sbbf"),
    (Probing::Xor, 42, "xor"),
    (Probing::FastFilterFuse, 43, "fastfilter-fuse"),
    (Probing::Rbloom, 44, "rbloom"),
    (Probing::PybloomLive, 45, "pybloom-live"),
    (Probing::Pyprobables, 46, "pyprobables"),
];

const _: () = {
    let mut row = 0;
    while row < RULES.len() {
        assert!(RULES[row].0 as usize == row, "a row is not where its rule is looked up");
        row += 1;
    }
};

/// Whether a rule on disk is another program's.
pub(crate) const fn is_foreign(id: u8) -> bool {
    id >= 32
}

/// Maps a uniform 64-bit value to `0..range`, by its high bits. The bias is at most `range / 2^64`.
#[must_use]
#[inline]
pub const fn reduce(value: u64, range: u64) -> u64 {
    ((value as u128 * range as u128) >> 64) as u64
}

/// The positions of one key among `bits` bits, in the order in which they are probed.
///
/// ```
/// use mayhap::{Hashing, positions};
///
/// let digest = Hashing::default().digest_of("hello");
/// let bits = 1 << 40;
/// assert!(positions(digest, 7, bits).all(|position| position < bits));
/// ```
#[must_use]
#[inline]
pub const fn positions(digest: Digest, probes: u32, bits: u64) -> Positions {
    Positions { walk: Walk::new(digest), left: probes, bits }
}

/// The values that are reduced to positions: the state behind [`positions`], which knows no number of bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    x: u64,
    y: u64,
    step: u64,
}

impl Walk {
    #[inline(always)]
    pub(crate) const fn new(digest: Digest) -> Self {
        Self { x: digest.a, y: digest.b, step: 0 }
    }

    #[inline(always)]
    pub(crate) const fn next(&mut self) -> u64 {
        let value = self.x;
        self.x = self.x.wrapping_add(self.y);
        // (i + 1) * PHI, as a running sum instead of a multiplication.
        self.step = self.step.wrapping_add(PHI);
        self.y = self.y.wrapping_add(self.step);
        value
    }
}

/// Iterator of [`positions`].
#[derive(Clone, Debug)]
pub struct Positions {
    walk: Walk,
    left: u32,
    bits: u64,
}

impl Iterator for Positions {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        Some(reduce(self.walk.next(), self.bits))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Positions {}

/// Calls `then` with the different positions of one key, in the order in which they are probed.
///
/// Two probes of a key may meet. To bits that is nothing, but a key that is inserted once must raise each of its
/// counters once, so that whoever finds none of them at 0 can take 1 from each.
#[inline(always)]
pub(crate) fn with_distinct<R>(digest: Digest, probes: u32, cells: u64, then: impl FnOnce(&[u64]) -> R) -> R {
    // Most filters have few probes, and room is cleared for every key.
    const FEW: usize = 16;
    let (mut few, mut many);
    let room: &mut [u64] = if probes as usize <= FEW {
        few = [0; FEW];
        &mut few
    } else {
        many = [0; MAX_PROBES as usize];
        &mut many
    };
    then(distinct(positions(digest, probes, cells), room))
}

/// The first of each value, at the front of `room`.
#[inline(always)]
pub(crate) fn distinct(positions: impl Iterator<Item = u64>, room: &mut [u64]) -> &[u64] {
    let mut len = 0;
    for position in positions {
        if !room[..len].contains(&position) {
            room[len] = position;
            len += 1;
        }
    }
    &room[..len]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;

    /// The definition in the module doc, word for word.
    fn by_definition(digest: Digest, probes: u32, bits: u64) -> alloc::vec::Vec<u64> {
        let (mut x, mut y) = (digest.a, digest.b);
        (0..u64::from(probes))
            .map(|i| {
                let position = ((u128::from(x) * u128::from(bits)) >> 64) as u64;
                x = x.wrapping_add(y);
                y = y.wrapping_add((i + 1).wrapping_mul(PHI));
                position
            })
            .collect()
    }

    #[test]
    fn positions_follow_the_definition() {
        for i in 0..1000u64 {
            let digest = Hashing::Xxh3 { seed: i }.digest_of(i);
            let bits = 1 + (digest.b >> (i % 60));
            assert!(positions(digest, 23, bits).eq(by_definition(digest, 23, bits)));
        }
    }

    // Index truncation to 31 or 32 bits is the commonest real bug of this field. No memory is needed
    // to rule it out: the positions themselves must be in range, spread evenly, and reach the top.
    #[test]
    fn positions_are_clean_beyond_32_bits() {
        let sizes = [(1 << 31) - 1, (1 << 31) + 1, (1 << 32) - 1, (1 << 32) + 1, 1 << 36, 1 << 40];
        for bits in sizes {
            const SLICES: usize = 64;
            let mut slices = [0u64; SLICES];
            let mut highest = 0;
            let keys = 100_000u64;
            for key in 0..keys {
                for position in positions(Hashing::default().digest_of(key), 7, bits) {
                    assert!(position < bits);
                    highest = highest.max(position);
                    slices[(u128::from(position) * SLICES as u128 / u128::from(bits)) as usize] += 1;
                }
            }
            // 700,000 throws into 64 slices: chi-square with 63 degrees of freedom exceeds 150 with a
            // chance below 1e-8 (and the seeds are fixed).
            let expected = (keys * 7) as f64 / SLICES as f64;
            let chi: f64 =
                slices.iter().map(|&c| (c as f64 - expected) * (c as f64 - expected) / expected).sum();
            assert!(chi < 150.0, "{bits} bits: chi-square {chi}");
            // The highest of 700,000 uniform throws misses the top 1/10,000 with chance e^-70.
            assert!(highest > bits - bits / 10_000, "{bits} bits: top never reached, highest {highest}");
            // The low bits must move too, not only the high ones.
            if bits > 1 << 33 {
                let odd = (0..1000u64)
                    .flat_map(|key| positions(Hashing::default().digest_of(key), 7, bits))
                    .filter(|p| p & 1 == 1)
                    .count();
                assert!((3200..3800).contains(&odd), "{bits} bits: {odd} of 7000 positions are odd");
            }
        }
    }

    #[test]
    fn distinct_positions_are_the_first_of_each() {
        for (probes, cells) in [(1, 1), (7, 1), (7, 5), (16, 20), (17, 20), (64, 3), (64, 100), (7, 1 << 40)]
        {
            for key in 0..200u64 {
                let digest = Hashing::default().digest_of(key);
                let mut expected = alloc::vec::Vec::new();
                for position in positions(digest, probes, cells) {
                    if !expected.contains(&position) {
                        expected.push(position);
                    }
                }
                with_distinct(digest, probes, cells, |found| assert_eq!(found, expected));
            }
        }
    }

    #[test]
    fn every_id_belongs_to_one_rule() {
        let rules = (0..=u8::MAX).filter_map(|id| Some((id, Probing::from_id(id)?)));
        assert_eq!(rules.clone().count(), RULES.len());
        for (id, rule) in rules {
            assert_eq!(rule.id(), id, "{}", rule.name());
        }
    }

    #[test]
    fn one_bit_and_no_probe_are_harmless() {
        let digest = Digest { a: u64::MAX, b: u64::MAX };
        assert!(positions(digest, 5, 1).all(|p| p == 0));
        assert_eq!(positions(digest, 0, 100).count(), 0);
    }
}
