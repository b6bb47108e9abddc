//! The false-positive rate of the filter at hand, from its bits. Formulas that need no bits are in [`math`](crate::math).
//!
//! The usual formula `fill^k` takes the probes of a key for independent. Ours follow from two values ([`positions`]), so in a
//! filter of few bits it is off: by a fifth with 20 bits and 7 probes, by 1% with 200. So small filters are looked at bit by
//! bit.
//!
//! [`positions`]: crate::probing::positions

use crate::hash::Digest;
use crate::math::{self, MAX_PROBES};
use crate::narrow::{index, low_u64};
use crate::probing::PHI;

/// A false-positive rate, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// The rate.
    pub(crate) value: f64,
    /// Standard deviation of the error that it may have; 0 if it was computed from the state.
    deviation: f64,
}

impl Rate {
    /// A rate that follows from the state.
    pub(crate) const fn computed(value: f64) -> Self {
        Self { value, deviation: 0.0 }
    }

    /// The interval that has the true rate in 19 of 20 filters, if the rate is an estimate: known to less than 1%.
    pub(crate) fn interval(self) -> Option<(f64, f64)> {
        let reach = 1.96 * self.deviation;
        let is_estimate = self.deviation > 0.01 * self.value && self.value < 1.0;
        is_estimate.then(|| ((self.value - reach).max(0.0), (self.value + reach).min(1.0)))
    }

    /// The rate of several filters, one of which is enough to admit a key.
    pub(crate) fn compounded(rates: impl Iterator<Item = Self> + Clone) -> Self {
        let variance: f64 = rates.clone().map(|rate| rate.deviation * rate.deviation).sum();
        Self { value: math::compounded_fpr(rates.map(|rate| rate.value)), deviation: libm::sqrt(variance) }
    }
}

/// The most positions of all probes together for which [`scaled`] looks at the bits: that takes 1 ms at the most.
const LOOKED_AT: u64 = 1024;

/// The most words, times the masks that are looked for in them, for which shifting filters look at their windows: that takes
/// 1 ms at the most.
pub(crate) const LOOKED_AT_WINDOWS: u64 = 1 << 18;

/// Filters with fewer positions of all probes together than this are sampled, where no formula is exact at that size.
pub(crate) const SAMPLED: u64 = 2048;

/// The same for filters whose formula takes the probes of a key for independent, as `fill^k` does.
pub(crate) const SAMPLED_BY_FILL: u64 = 1 << 14;

/// How many absent keys a sample has: it takes 1 ms at the most, and knows a rate of 1% to 6%.
const SAMPLE: u64 = 1 << 15;

/// The rate of a filter that is `known` for filters of many bits. One with at most `below` positions of all probes together is
/// sampled: `contains` is called for keys that are not in, with digests that are random and always the same. That is an estimate.
pub(crate) fn sampled_if_tiny(
    contains: impl Fn(Digest) -> bool,
    bits: u64,
    probes: u32,
    below: u64,
    known: f64,
) -> Rate {
    if known == 0.0 || known >= 1.0 || bits.saturating_mul(probes.into()) > below {
        return Rate::computed(known);
    }
    let digest = |number: u64| Digest { a: mixed(2 * number), b: mixed(2 * number + 1) };
    let found = (0..SAMPLE).filter(|&number| contains(digest(number))).count() as f64;
    let (count, deviation) = (SAMPLE as f64, libm::sqrt(found + 1.0) / SAMPLE as f64);
    // A few hits tell less than the formula does, unless it is far off.
    let value = if found >= 100.0 {
        found / count
    } else {
        known.clamp((found / count - 2.0 * deviation).max(0.0), found / count + 2.0 * deviation)
    };
    Rate { value, deviation }
}

/// A number that nothing has to do with those before and behind it: SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut value = (number + 1).wrapping_mul(PHI);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// The rate of `bits` bits, of which `ones` are set, that keys find by [`positions`](crate::probing::positions).
///
/// Of a small filter it is the share of all digests that find every bit set, to a tenth of a percent. Of a larger one it is
/// `fill^k`, whose deviation falls with `1 / (m sqrt(k p))`.
pub(crate) fn scaled(bits: u64, probes: u32, ones: u64, is_set: impl Fn(u64) -> bool) -> Rate {
    if ones == 0 || ones >= bits || probes <= 2 {
        // The first two positions are independent.
        return Rate::computed(math::fpr_from_fill(ones as f64 / bits as f64, probes));
    }
    if is_looked_at(bits, probes) {
        return Rate::computed(looked_at(bits, probes, is_set));
    }
    by_fill(bits, probes, ones)
}

/// Whether [`scaled`] looks at the bits.
fn is_looked_at(bits: u64, probes: u32) -> bool {
    bits.saturating_mul(probes.into()) <= LOOKED_AT
}

/// `fill^k`, and what it may be off by.
fn by_fill(bits: u64, probes: u32, ones: u64) -> Rate {
    let value = math::fpr_from_fill(ones as f64 / bits as f64, probes);
    if ones >= bits {
        return Rate::computed(value);
    }
    let (m, k) = (bits as f64, f64::from(probes));
    // What chance does, and digests that have all positions of a key in common with it. The factors are those of filters that
    // were looked at; a test below compares them.
    let (chance, alike) =
        (libm::sqrt(value / k) / m, math::estimated_len(bits, ones, probes) / (m * m * k * k));
    Rate { value, deviation: chance + 6.0 * alike }
}

/// The share of all digests whose positions are all set.
///
/// Position `i` is that of `a + i b + c`, on a circle of `bits` arcs. For a given `b` the values `a` that pass are what all
/// turned copies of the bits have in common: as long as no copy crosses the border of an arc, the AND of turned bits. That
/// is exact. Over `b` it is a piecewise linear function, which is summed at two points for each arc that the last copy
/// passes.
fn looked_at(bits: u64, probes: u32, is_set: impl Fn(u64) -> bool) -> f64 {
    // Twice around and a word more, so that every turn is a window into it.
    let words = bits.div_ceil(64);
    let mut ring = alloc::vec![0u64; index(words + (bits + 64 * words).div_ceil(64)) + 1];
    for place in (0..bits + 64 * words).filter(|place| is_set(place % bits)) {
        ring[index(place / 64)] |= 1 << (place % 64);
    }
    let last = u64::MAX >> (64 * words - bits);
    let turned = |place: u64| {
        let (word, shift) = (index(place / 64), place % 64);
        ring[word] >> shift | (ring[word + 1] << 1) << (63 - shift)
    };
    let points = 2 * bits * u64::from(probes);
    let mut turns = [(0u64, 0u64); MAX_PROBES as usize];
    let mut sum = 0.0;
    for point in 0..points {
        let b = low_u64((u128::from(2 * point + 1) << 63) / u128::from(points));
        let (mut x, mut step, mut y) = (0u64, 0u64, b);
        for turn in &mut turns[..probes as usize] {
            let at = u128::from(x) * u128::from(bits);
            // How far into an arc it begins, and which one.
            *turn = (low_u64(at), low_u64(at >> 64));
            x = x.wrapping_add(y);
            step = step.wrapping_add(PHI);
            y = y.wrapping_add(step);
        }
        let turns = &mut turns[..probes as usize];
        // The one that is farthest into its arc leaves it first.
        turns.sort_unstable_by(|one, other| other.cmp(one));
        let (mut from, mut passing) = (0u64, 0.0);
        for crossed in 0..=turns.len() {
            let to = turns.get(crossed).map_or(1.0, |&(into, _)| 1.0 - fraction(into));
            let length = to - if crossed == 0 { 0.0 } else { 1.0 - fraction(from) };
            if length > 0.0 {
                passing += length * count(turns, crossed, bits, words, last, &turned) as f64;
            }
            from = turns.get(crossed).map_or(0, |&(into, _)| into);
        }
        sum += passing;
    }
    sum / (points as f64 * bits as f64)
}

/// As a share of 2^64.
fn fraction(value: u64) -> f64 {
    value as f64 * libm::exp2(-64.0)
}

/// How many arcs are set in all turned copies, of which the first few have moved on by one arc.
fn count(
    turns: &[(u64, u64)],
    crossed: usize,
    bits: u64,
    words: u64,
    last: u64,
    turned: &impl Fn(u64) -> u64,
) -> u32 {
    (0..words)
        .map(|word| {
            let mut common = if word + 1 == words { last } else { u64::MAX };
            for (turn, &(_, arc)) in turns.iter().enumerate() {
                let arc = if turn < crossed { arc + 1 } else { arc };
                common &= turned(if arc == bits { 0 } else { arc } + 64 * word);
                if common == 0 {
                    break;
                }
            }
            common.count_ones()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::probing::positions;

    /// The bits of so many keys.
    fn bits_of(bits: u64, probes: u32, keys: u64, seed: u64) -> Vec<bool> {
        let mut set = alloc::vec![false; bits as usize];
        for key in 0..keys {
            let digest = Digest { a: mixed(seed << 40 | key << 20), b: mixed(seed << 40 | key << 20 | 1) };
            positions(digest, probes, bits).for_each(|place| set[place as usize] = true);
        }
        set
    }

    /// 7 standard deviations of a million lookups, in 60 filters: a right rate fails with a chance of 1.6e-10.
    #[test]
    fn the_rate_of_few_bits_is_the_share_of_digests_that_pass() {
        const TRIALS: u64 = 1_000_000;
        for (bits, probes, keys) in [
            (3, 3, 1),
            (10, 7, 1),
            (20, 7, 2),
            (63, 7, 6),
            (64, 7, 7),
            (65, 3, 20),
            (130, 7, 13),
            (146, 7, 15),
            (101, 10, 7),
            (29, 20, 1),
        ] {
            assert!(is_looked_at(bits, probes));
            for seed in 0..6 {
                let set = bits_of(bits, probes, keys, seed);
                let ones = set.iter().filter(|&&set| set).count() as u64;
                let Rate { value, deviation } = scaled(bits, probes, ones, |place| set[place as usize]);
                assert_eq!(deviation, 0.0);
                let passes = |trial: &u64| {
                    let digest =
                        Digest { a: mixed((1 << 62) + 2 * trial), b: mixed((1 << 62) + 2 * trial + 1) };
                    positions(digest, probes, bits).all(|place| set[place as usize])
                };
                let share = (0..TRIALS).filter(passes).count() as f64 / TRIALS as f64;
                let reach = 7.0 * libm::sqrt(value.max(1e-6) / TRIALS as f64);
                assert!(
                    (share - value).abs() < reach,
                    "{bits} bits, {probes} probes, {keys} keys: {share}, not {value}"
                );
            }
        }
    }

    /// What `fill^k` is off by falls with the bits. The interval has the rate of most filters: fewer than 12 of 20 had it if
    /// the deviation was half of what it is.
    #[test]
    fn an_estimate_is_called_one_and_its_interval_has_the_rate() {
        for (bits, probes, keys) in
            [(96, 7, 10), (192, 7, 20), (288, 7, 30), (288, 7, 3), (144, 10, 10), (100, 20, 3)]
        {
            let within = (0..20).filter(|&seed| {
                let set = bits_of(bits, probes, keys, seed);
                let ones = set.iter().filter(|&&set| set).count() as u64;
                let (low, high) = by_fill(bits, probes, ones).interval().unwrap_or((0.0, 0.0));
                (low..=high).contains(&looked_at(bits, probes, |place| set[place as usize]))
            });
            let within = within.count();
            assert!(within >= 14, "{bits} bits, {probes} probes, {keys} keys: {within} of 20");
        }
        // A thousand keys at 1% are enough, and at one in a million they are not many.
        assert_eq!(by_fill(9586, 7, 4968).interval(), None);
        let (low, high) = by_fill(2876, 20, 1438).interval().unwrap();
        assert!(low < 9e-7 && high > 1.02e-6 && high < 2e-6, "{low} to {high}");
        assert_eq!(
            (by_fill(100, 7, 100).interval(), scaled(100, 7, 0, |_| false)),
            (None, Rate::computed(0.0))
        );
    }
}
