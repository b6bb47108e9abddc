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

/// The rule from digest to positions, by its id on disk. A rule of one family is declared in its file, those of other programs are
/// in `foreign`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    id: u8,
    name: &'static str,
}

impl Probing {
    /// There are no positions to derive (exact sets).
    pub(crate) const NONE: Self = Self::new(0, "none");

    /// [`positions`]: scaled enhanced double hashing, reduced to the number of bits by multiplication.
    pub(crate) const SCALED: Self = Self::new(1, "scaled");

    /// A rule. Ids go into files: they are never reused, and those of other programs begin at 32.
    pub(crate) const fn new(id: u8, name: &'static str) -> Self {
        Self { id, name }
    }

    /// The id in a file's header.
    #[must_use]
    pub const fn id(self) -> u8 {
        self.id
    }

    /// The rule in a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

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
/// counters once, so that a caller who finds none of them at 0 can take 1 from each.
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
        let mut rules: alloc::vec::Vec<Probing> =
            crate::registry::FAMILIES.iter().flat_map(|family| family.probing).copied().collect();
        assert!(rules.iter().all(|rule| !is_foreign(rule.id())));
        #[cfg(feature = "interop")]
        rules.extend(
            (0..=u8::MAX).filter_map(Probing::foreign).inspect(|rule| assert!(is_foreign(rule.id()))),
        );
        for one in &rules {
            for other in &rules {
                assert_eq!(one.id() == other.id(), one.name() == other.name(), "{one:?} and {other:?}");
            }
        }
    }

    #[test]
    fn one_bit_and_no_probe_are_harmless() {
        let digest = Digest { a: u64::MAX, b: u64::MAX };
        assert!(positions(digest, 5, 1).all(|p| p == 0));
        assert_eq!(positions(digest, 0, 100).count(), 0);
    }
}
