//! Bloom filters: sizes, rates, and the number of keys from the bits.

use alloc::vec;
use core::f64::consts::LN_2;

use super::whole_numbers::{first_false, gcd, most_keys};
use super::{MAX_PROBES, TWO_POW_64};
use crate::narrow::{index, small, whole, whole_u32};

/// How the best number of probes, which is rarely whole, becomes whole.
///
/// The best number is `log2(1/p)`. Rounding misses the wanted rate a little, because the bits were computed
/// for the unrounded number. Worst cases for `p <= 0.5`: 5 % above it for `Nearest`, 13 % for `Up`, 17 % for
/// `Down`. [`bloom_bits_for_probes`] buys the bits that close the gap.
///
/// | rate | `Nearest`    | `Up`         | `Down`       |
/// |------|--------------|--------------|--------------|
/// | 3 %  | 5: 3.000 %   | 6: 3.100 %   | 5: 3.000 %   |
/// | 1 %  | 7: 1.004 %   | 7: 1.004 %   | 6: 1.014 %   |
/// | 1e-5 | 17: 1.002e-5 | 17: 1.002e-5 | 16: 1.005e-5 |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbesRule {
    /// To the nearest whole number, halves up: mayhap, and Guava's `optimalNumOfHashFunctions`.
    Nearest,
    /// To the next whole number: `EstimateParameters` of Go's bits-and-blooms. One memory access more.
    Up,
    /// To the whole number below: a cast to an integer. One memory access less.
    Down,
}

impl ProbesRule {
    /// All rules, for tables.
    pub const ALL: [ProbesRule; 3] = [ProbesRule::Nearest, ProbesRule::Up, ProbesRule::Down];

    fn apply(self, best: f64) -> u32 {
        let whole = match self {
            ProbesRule::Nearest => libm::round(best),
            ProbesRule::Up => libm::ceil(best),
            ProbesRule::Down => libm::floor(best),
        };
        // The cast saturates, and NaN becomes 0.
        whole_u32(whole).clamp(1, MAX_PROBES)
    }
}

/// Probes for the rate `p`: `log2(1/p)`, made whole by `rule`, within `1..=MAX_PROBES`.
///
/// The number does not depend on `n`: 3 % takes 5 probes for ten keys and for ten million.
/// `p >= 1` and NaN give 1, `p <= 0` gives [`MAX_PROBES`].
///
/// Source: Broder and Mitzenmacher, *Network Applications of Bloom Filters: A Survey*, 2004.
pub fn bloom_probes(p: f64, rule: ProbesRule) -> u32 {
    if p <= 0.0 {
        return MAX_PROBES;
    }
    rule.apply(-libm::log2(p))
}

/// Probes for `m` bits and `n` keys: `(m/n) ln 2`, made whole by `rule`, within `1..=MAX_PROBES`.
///
/// This is the form that Go's bits-and-blooms computes, from bits that are already rounded up. For a rate
/// that is a power of two it therefore takes one probe more than [`bloom_probes`] with the same rule:
/// 1000 keys at 25 % get 2886 bits, `2.0004` and 3 probes. [`best_probes`] is the true optimum.
/// `n = 0` gives [`MAX_PROBES`], and 1 if `m` is 0 as well.
///
/// Source: Broder and Mitzenmacher 2004; `EstimateParameters` in github.com/bits-and-blooms/bloom.
pub fn bloom_probes_for_bits(m: u64, n: u64, rule: ProbesRule) -> u32 {
    rule.apply(LN_2 * m as f64 / n as f64)
}

/// Bits for `n` keys at the rate `p`, before they are made whole. Never falls when `n` rises.
fn bits_wanted(n: u64, p: f64) -> f64 {
    if n == 0 || p >= 1.0 || p.is_nan() {
        0.0
    } else if p <= 0.0 {
        f64::INFINITY
    } else if p <= 0.5 {
        -(n as f64) * libm::log(p) / (LN_2 * LN_2)
    } else {
        -(n as f64) / libm::log1p(-p)
    }
}

/// Bits for `n` keys at the rate `p`: `ceil(-n ln p / (ln 2)^2)`, at least 1.
///
/// The formula assumes `log2(1/p)` probes. Above `p = 0.5` that is less than one probe, which nobody can
/// make; with the one probe that is made the classic size misses its own target (`p = 0.9` would get 0.22
/// bits per key and a rate of 0.99). There the exact size for one probe is used, `ceil(-n / ln(1 - p))`.
/// Both formulas agree at 0.5.
///
/// Saturates at `u64::MAX`, which is also the answer for `p <= 0`. `n = 0`, `p >= 1` and NaN give 1.
///
/// Source: Bloom, *Space/Time Trade-offs in Hash Coding with Allowable Errors*, 1970, in the form of Broder
/// and Mitzenmacher 2004.
pub fn bloom_bits(n: u64, p: f64) -> u64 {
    (whole(libm::ceil(bits_wanted(n, p)))).max(1)
}

/// Bits as Guava computes them: the classic formula, truncated, for every `p`.
///
/// Like Guava's, it takes `p = 0` for the least positive `f64`, `n = 0` for 1, and ends at `i64::MAX`. Guava
/// then rounds its array up to whole words of 64 bits and reduces by that length. It can give 0, for few keys
/// at a high rate, for `p >= 1` and for NaN: sizes that Guava refuses.
///
/// Source: `BloomFilter.optimalNumOfBits` in github.com/google/guava.
pub fn bloom_bits_guava(n: u64, p: f64) -> u64 {
    let p = if p == 0.0 { f64::from_bits(1) } else { p };
    let bits = -(n.max(1) as f64) * libm::log(p) / (LN_2 * LN_2);
    (whole(bits)).min(i64::MAX as u64)
}

/// The least `m` for which `bloom_fpr(m, n, k) <= p`.
///
/// In closed form `m = ceil(-k n / ln(1 - p^(1/k)))`. The closed form may round to either side of its target,
/// so the value is searched for instead, in 64 steps: the rate is kept as [`bloom_fpr`] computes it.
///
/// `p >= 1` and NaN give 1. Otherwise `k = 0` gives `u64::MAX`, where the size also saturates; then `n = 0`
/// gives 1 and `p <= 0` gives `u64::MAX`.
///
/// Source: Broder and Mitzenmacher 2004, solved for `m`.
pub fn bloom_bits_for_probes(n: u64, p: f64, k: u32) -> u64 {
    if p >= 1.0 || p.is_nan() {
        return 1;
    }
    if k > 0 && n == 0 {
        return 1;
    }
    // Asked apart: with many probes the rate underflows to 0 long before the bits end.
    if p <= 0.0 {
        return u64::MAX;
    }
    first_false(1, u64::MAX, |m| bloom_fpr(m, n as f64, k) > p)
}

/// The whole number of probes with the least [`bloom_fpr`], within `1..=MAX_PROBES`.
///
/// The rate has one minimum, at `(m/n) ln 2`, so one of the two neighbours is best; the smaller on a tie.
/// `n = 0` and `m = 0` give 1: then the probes change nothing.
///
/// Source: Broder and Mitzenmacher 2004.
pub fn best_probes(m: u64, n: u64) -> u32 {
    if n == 0 {
        return 1;
    }
    let below = bloom_probes_for_bits(m, n, ProbesRule::Down);
    let above = bloom_probes_for_bits(m, n, ProbesRule::Up);
    if bloom_fpr(m, n as f64, above) < bloom_fpr(m, n as f64, below) { above } else { below }
}

/// The fewest probes, within `1..=MAX_PROBES`, that reach `bloom_fpr <= p`. `None` if no number does.
///
/// With bits to spare this is less work per query than [`best_probes`]: at 16 bits per key 11 probes are
/// best, and 3 are enough for 1 %. NaN gives `None`.
///
/// Source: search over the rate of Broder and Mitzenmacher 2004.
pub fn least_probes(m: u64, n: u64, p: f64) -> Option<u32> {
    (1..=MAX_PROBES).find(|&k| bloom_fpr(m, n as f64, k) <= p)
}

/// The most keys whose [`bloom_bits`] fit in `m`.
///
/// Searched for, so that it is the exact inverse: `bloom_capacity(bloom_bits(n, p), p) >= n`, unless the
/// bits were saturated; a saturated size fits nowhere. `m = 0` and `p <= 0` give 0, `p >= 1` and NaN give
/// `u64::MAX`.
///
/// Source: Broder and Mitzenmacher 2004, solved for `n`.
pub fn bloom_capacity(m: u64, p: f64) -> u64 {
    most_keys(m, |n| {
        let bits = libm::ceil(bits_wanted(n, p));
        bits < TWO_POW_64 && whole(bits) <= m
    })
}

/// The most keys for which `bloom_fpr(m, n, k) <= p`.
///
/// In closed form `n = floor(-(m/k) ln(1 - p^(1/k)))`; searched for, like [`bloom_bits_for_probes`].
/// `m = 0`, `k = 0` and `p <= 0` give 0, `p >= 1` and NaN give `u64::MAX` if `m > 0`.
///
/// Source: Broder and Mitzenmacher 2004, solved for `n`.
pub fn bloom_capacity_for_probes(m: u64, p: f64, k: u32) -> u64 {
    if p <= 0.0 {
        return 0;
    }
    most_keys(m, |n| p.is_nan() || bloom_fpr(m, n as f64, k) <= p)
}

/// Bits for a filter that shall be folded later: `m` rounded up to `64 2^j t`, by at most 1 %.
///
/// A filter folds by the divisors of its bits. Where 1 % allows it, `t` is a multiple of 15: with 2, 3 and 5
/// among the divisors (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16, 20, ...) a fold misses the wanted size by less
/// than a half, and mostly by less than a third; with 2 alone it would be by up to the double. That takes
/// 96,000 bits; from 6400 bits on 64 and powers of two fit in the 1 %, and below that it is rounded up to
/// whole words, whatever the share. `j` is as large as it can be. Saturates; 0 stays 0.
///
/// Source: none; that a fold needs a divisor follows from the range reduction, see
/// [`Bloom::fold`](crate::Bloom::fold).
pub fn foldable_bits(m: u64) -> u64 {
    let most = (m / 100).max(64);
    let unit = if most >= 960 { 960 } else { 64 };
    m.checked_next_multiple_of(unit << (most / unit).ilog2()).unwrap_or(u64::MAX)
}

/// The load `c = k n / m`. Infinite without bits: such a filter counts as full.
pub(super) fn load(m: u64, n: f64, k: u32) -> f64 {
    if m == 0 { f64::INFINITY } else { throws(n, k) / m as f64 }
}

/// Bits that are set when `n` keys go in, repeats counted.
pub(super) fn throws(n: f64, k: u32) -> f64 {
    if k == 0 || n <= 0.0 { 0.0 } else { f64::from(k) * n }
}

/// False-positive rate, the usual approximation: `f1 = (1 - e^(-k n / m))^k`.
///
/// A little below the true rate: 0.9 % below at 1024 bits, 0.2 % at 4096 (10 bits per key, 7 probes), and
/// nothing that matters from `2^16` bits on. `n` is an `f64` because estimates come in.
/// `n <= 0` gives 0. `m = 0` gives 1: a filter without bits denies nothing. So does `k = 0`.
///
/// Source: Bloom 1970; Broder and Mitzenmacher 2004.
pub fn bloom_fpr(m: u64, n: f64, k: u32) -> f64 {
    // `expm1` and not `1 - exp`: in a filter that is nearly empty the fill is lost in the rounding of 1.
    fpr_from_fill(-libm::expm1(-load(m, n, k)), k)
}

/// False-positive rate, the textbook formula: `f0 = (1 - (1 - 1/m)^(k n))^k`.
///
/// It takes the bits for independent, which they are not, so it is still below [`bloom_fpr_exact`].
/// Edge cases as for [`bloom_fpr`].
///
/// Source: Broder and Mitzenmacher 2004.
pub fn bloom_fpr_textbook(m: u64, n: f64, k: u32) -> f64 {
    fpr_from_fill(expected_fill(m, n, k), k)
}

/// False-positive rate, exact for `k` independent positions with replacement: the mean of `(X/m)^k`, where
/// `X` is the number of ones after `k n` throws.
///
/// For small filters and for blocks: it takes `k n min(k n, m)` steps and `8 min(k n, m)` bytes. Above
/// `2^28` steps (less than a second) it does not count any more: it expands the mean around
/// [`expected_fill`] to second order. That is within 1e-5 of the exact rate from 1024 bits on (10 bits per
/// key, 7 probes), and closer for more bits. `n = 0` gives 0. `m = 0` and `k = 0` give 1.
///
/// Sources: Bose, Guo, Kranakis, Maheshwari, Morin, Morrison, Smid, Tang, *On the False-Positive Rate of
/// Bloom Filters*, 2008; Christensen, Roginsky, Jimeno, *A New Analysis of the False Positive Rate of a
/// Bloom Filter*, 2010.
pub fn bloom_fpr_exact(m: u32, n: u32, k: u32) -> f64 {
    const MOST_STEPS: u128 = 1 << 28;
    if m == 0 || k == 0 {
        return 1.0;
    }
    let throws = u64::from(n) * u64::from(k);
    let most_ones = throws.min(u64::from(m));
    if u128::from(throws) * u128::from(most_ones) > MOST_STEPS {
        return fpr_second_order(u64::from(m), f64::from(n), k);
    }

    let bits = f64::from(m);
    // chance[i] is the probability of exactly i ones. One throw hits a one with i/m, a zero with 1 - i/m.
    // From the top down, so that chance[i - 1] is still the one before this throw.
    let mut chance = vec![0.0; index(most_ones) + 1];
    chance[0] = 1.0;
    for t in 1..=throws {
        for i in (1..=index(t.min(most_ones))).rev() {
            chance[i] = (chance[i] * i as f64 + chance[i - 1] * (bits - (i - 1) as f64)) / bits;
        }
        chance[0] = 0.0;
    }
    let rate: f64 = chance.iter().enumerate().map(|(i, c)| c * fpr_from_fill(i as f64 / bits, k)).sum();
    // Chances are rounded, and their sum may be a little above 1, which no rate is.
    rate.min(1.0)
}

/// False-positive rate before the keys are known, in filters of any size: [`bloom_fpr`] where that is close enough, and
/// below, where it is too low, the exact mean or its second-order expansion.
///
/// ```
/// use mayhap::math;
/// // One key in 10 bits: the classic formula says less than half of it.
/// assert!(math::bloom_fpr_of_any_size(10, 1, 7) > 2.0 * math::bloom_fpr(10, 1.0, 7));
/// assert_eq!(math::bloom_fpr_of_any_size(9_585_059, 1_000_000, 7), math::bloom_fpr(9_585_059, 1e6, 7));
/// ```
///
/// Sources: those of [`bloom_fpr_exact`].
pub fn bloom_fpr_of_any_size(m: u64, n: u64, k: u32) -> f64 {
    // From here on the formulas differ by less than 0.02 %.
    const LARGE: u64 = 1 << 16;
    // So few that making a filter does not wait for it.
    const MOST_STEPS: u64 = 1 << 14;
    let throws = n.saturating_mul(k.into());
    if m >= LARGE {
        bloom_fpr(m, n as f64, k)
    } else if throws.saturating_mul(throws.min(m)) <= MOST_STEPS {
        // Both fit: there are no more throws than steps.
        bloom_fpr_exact(small(m), small(n), k)
    } else {
        fpr_second_order(m, n as f64, k)
    }
}

/// `E[Y^k]` for a fill `Y` that stays near its mean: `f0 (1 + k (k-1)/2 (sd/mean)^2)`.
pub(super) fn fpr_second_order(m: u64, n: f64, k: u32) -> f64 {
    let fill = expected_fill(m, n, k);
    if fill == 0.0 {
        return fpr_from_fill(fill, k);
    }
    let spread = fill_deviation(m, n, k) / fill;
    let pairs = f64::from(k) * (f64::from(k) - 1.0) / 2.0;
    (fpr_from_fill(fill, k) * (1.0 + pairs * spread * spread)).min(1.0)
}

/// False-positive rate of a filter whose share of ones is known: `fill^k`. The one to report.
///
/// `fill` is held within 0 and 1. NaN gives NaN; `k = 0` gives 1.
///
/// Source: Bloom 1970; that the fill is near its mean, so that this is near [`bloom_fpr`]: Mitzenmacher,
/// *Compressed Bloom Filters*, 2002.
pub fn fpr_from_fill(fill: f64, k: u32) -> f64 {
    libm::pow(fill.clamp(0.0, 1.0), f64::from(k))
}

/// Expected share of ones: `1 - (1 - 1/m)^(k n)`. Exact.
///
/// A half when the number of probes is best. `n <= 0` and `k = 0` give 0, `m = 0` gives 1.
///
/// Source: Broder and Mitzenmacher 2004.
pub fn expected_fill(m: u64, n: f64, k: u32) -> f64 {
    let throws = throws(n, k);
    if m == 0 {
        1.0
    } else if throws == 0.0 {
        0.0
    } else {
        -libm::expm1(throws * libm::log1p(-1.0 / m as f64))
    }
}

/// `e^c - 1 - c` for `c >= 0`, without the cancellation at small `c`.
fn exp_beyond_line(c: f64) -> f64 {
    if c == f64::INFINITY {
        return c;
    }
    if c >= 1.0 {
        return libm::expm1(c) - c;
    }
    // The Taylor series from c^2/2 on; 20 terms reach 1e-19 at c = 1.
    let mut term = c;
    let mut sum = 0.0;
    for j in 2..=20 {
        term *= c / f64::from(j);
        sum += term;
    }
    sum
}

/// Standard deviation of the share of ones: `sqrt((e^(-c) - (1 + c) e^(-2c)) / m)`, with `c = k n / m`.
///
/// Asymptotic in `m`. 0 for `n <= 0`, `k = 0`, `m = 0` and infinite `n`.
///
/// Source: the variance of the number of empty urns, Johnson and Kotz, *Urn Models and Their Application*,
/// 1977. The concentration for Bloom filters: Mitzenmacher 2002.
pub fn fill_deviation(m: u64, n: f64, k: u32) -> f64 {
    let c = load(m, n, k);
    if c == f64::INFINITY {
        return 0.0;
    }
    let variance = if c < 1.0 {
        libm::exp(-2.0 * c) * exp_beyond_line(c)
    } else {
        libm::exp(-c) * (1.0 - (1.0 + c) * libm::exp(-c))
    };
    libm::sqrt(variance / m as f64)
}

/// Relative standard deviation of the false-positive rate over random seeds: `k sd(fill) / fill`.
///
/// First order: good while it is small. It falls with `1/sqrt(n)`: 0.12 % for a million keys at 1 %. 0 for
/// `n <= 0`, `k = 0` and `m = 0`.
///
/// Source: [`fill_deviation`] through the derivative of `fill^k`.
pub fn fpr_deviation(m: u64, n: f64, k: u32) -> f64 {
    let fill = -libm::expm1(-load(m, n, k));
    if fill == 0.0 { 0.0 } else { f64::from(k) * fill_deviation(m, n, k) / fill }
}

/// Expected share of ones when bits are brought from one number to another (`bits::overlap`), from the share
/// that there is.
///
/// A bit of the result is a 0 if all bits that it overlaps are. The `from` bits have `from - gcd(from, to)`
/// borders inside bits of the result, which overlap one bit more than they have borders inside; no two of
/// them differ by more than one border. If `to = from / c` that is the fold, `1 - (1 - fill)^c`; if
/// `to = c from` the share stays what it is; and from `m` to `m + 1` nearly every bit overlaps two:
/// `1 - (1 - fill)^2`.
///
/// Takes the bits for independent, which those of keys nearly are. Those of a filter that was spread before
/// are not: they come in runs, and then the true share is lower. `fill` is held within 0 and 1, NaN gives
/// NaN; `from = 0` gives 0, `to = 0` gives 1.
///
/// Source: counting of borders; for the fold Papapetrou, Siberski, Nejdl 2010 have halves in place of
/// neighbours.
pub fn resized_fill(from: u64, to: u64, fill: f64) -> f64 {
    if from == 0 || to == 0 {
        return if to == 0 { 1.0 } else { 0.0 };
    }
    let borders = from - gcd(from, to);
    let (fewer, share) = ((borders / to) as f64, (borders % to) as f64 / to as f64);
    let fill = fill.clamp(0.0, 1.0);
    -libm::expm1((1.0 + fewer) * libm::log1p(-fill) + libm::log1p(-share * fill))
}

/// Expected rate after merging two filters of any sizes that share no keys, from their bits, shares of ones
/// and probes: with the bits of the one or of the other, whichever is lower.
///
/// The probes are the fewer of the two. Keys in common make the rate lower than that. For the rest see
/// [`resized_fill`]. Half full, 7 probes: two filters of the same size give 13 %, one of twice the size 13 %,
/// and one with a single bit more 39 %.
///
/// Source: [`resized_fill`] of the one, and the bits of the other independent of it.
pub fn merged_fpr(m_a: u64, fill_a: f64, k_a: u32, m_b: u64, fill_b: f64, k_b: u32) -> f64 {
    let with_bits = |m: u64| {
        let zero = (1.0 - resized_fill(m_a, m, fill_a)) * (1.0 - resized_fill(m_b, m, fill_b));
        fpr_from_fill(1.0 - zero, k_a.min(k_b))
    };
    with_bits(m_a).min(with_bits(m_b))
}

/// Distinct keys, estimated from the ones: `-(m/k) ln(1 - ones/m)`.
///
/// Infinite when the filter is saturated (`ones >= m`) or `k = 0`: the bits no longer tell. 0 for `ones = 0`.
///
/// Source: Swamidass and Baldi, *Mathematical Correction for Fingerprint Similarity Measures to Improve
/// Chemical Retrieval*, 2007.
pub fn estimated_len(m: u64, ones: u64, k: u32) -> f64 {
    if ones == 0 {
        return 0.0;
    }
    if ones >= m || k == 0 {
        return f64::INFINITY;
    }
    let zeros = m - ones;
    // Each form is exact where the other cancels.
    let c = if ones < zeros {
        -libm::log1p(-(ones as f64 / m as f64))
    } else {
        -libm::log(zeros as f64 / m as f64)
    };
    m as f64 / f64::from(k) * c
}

/// Standard deviation of [`estimated_len`] when `n` keys are in: `sqrt(m (e^c - 1 - c)) / k`, `c = k n / m`.
///
/// 0 for `n <= 0`. Infinite for `m = 0`, `k = 0` and where `e^c` ends.
///
/// Source: Whang, Vander-Zanden, Taylor, *A Linear-Time Probabilistic Counting Algorithm for Database
/// Applications*, 1990, for one probe; with `k` probes there are `k n` throws.
pub fn estimated_len_deviation(m: u64, n: f64, k: u32) -> f64 {
    if m == 0 || k == 0 {
        return f64::INFINITY;
    }
    libm::sqrt(m as f64 * exp_beyond_line(load(m, n, k))) / f64::from(k)
}

/// Keys in either of two filters, estimated from the ones of their OR.
///
/// The OR *is* the filter of the union, so this is [`estimated_len`] under another name.
///
/// Source: Swamidass and Baldi 2007.
pub fn union_len(m: u64, ones_of_or: u64, k: u32) -> f64 {
    estimated_len(m, ones_of_or, k)
}

/// Keys in both of two filters: the two estimates less that of the union, at least 0.
///
/// Never estimate it from the ones of the AND. The AND also keeps bits that different keys set on either
/// side: two sets of 600,000 keys that share 200,000, in 9,585,058 bits with 7 probes, would give 290,800.
///
/// Infinite when one of the three is saturated: the bits no longer tell.
///
/// Sources: Swamidass and Baldi 2007; Papapetrou, Siberski, Nejdl, *Cardinality Estimation and Dynamic Length
/// Adaptation for Bloom Filters*, 2010.
pub fn intersection_len(m: u64, ones_a: u64, ones_b: u64, ones_of_or: u64, k: u32) -> f64 {
    let (a, b) = (estimated_len(m, ones_a, k), estimated_len(m, ones_b, k));
    let union = union_len(m, ones_of_or, k);
    if a.is_infinite() || b.is_infinite() || union.is_infinite() {
        return f64::INFINITY;
    }
    (a + b - union).max(0.0)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::math::ProbesRule::{Down, Nearest, Up};
    use crate::math::tests::{RATES, close, printed};

    fn mebibytes(bits: u64) -> f64 {
        bits as f64 / 8.0 / 1_048_576.0
    }

    /// A counting filter of 10 counters claimed 1.0000000000000007, and its file was refused.
    #[test]
    fn the_exact_rate_is_never_above_1() {
        for m in 1..40 {
            for n in [1, 2, 5, 20, 100, 1000] {
                for k in [1, 2, 7, 30] {
                    assert!(bloom_fpr_exact(m, n, k) <= 1.0, "{n} keys in {m} bits, {k} probes");
                }
            }
        }
    }

    /// Where the exact mean would take long, the expansion is close to it.
    #[test]
    fn rates_of_small_filters_are_exact_or_close() {
        for (n, p) in
            [(1, 0.01), (3, 0.2), (18, 0.01), (19, 0.01), (30, 0.001), (100, 0.01), (100, 0.3), (1000, 1e-4)]
        {
            let (m, k) = (bloom_bits(n, p), bloom_probes(p, Nearest));
            let (found, exact) = (bloom_fpr_of_any_size(m, n, k), bloom_fpr_exact(m as u32, n as u32, k));
            assert!((found / exact - 1.0).abs() < 2e-3, "{n} keys at {p}: {found}, exactly {exact}");
        }
    }

    #[test]
    fn the_sizing_table_holds_to_the_bit() {
        for (n, p, m, k) in [
            (1_000_000, 0.01, 9_585_059, 7),
            (10_000_000, 1e-5, 239_626_460, 17),
            (10_000_000, 0.03, 72_984_409, 5),
            (1_000_000, 1e-3, 14_377_588, 10),
            (1_000_000_000, 0.01, 9_585_058_378, 7),
        ] {
            assert_eq!(bloom_bits(n, p), m);
            assert_eq!(bloom_bits_guava(n, p), m - 1);
            assert_eq!(bloom_probes(p, Nearest), k);
            assert_eq!(best_probes(m, n), k);
        }
        printed(bloom_fpr(9_585_059, 1e6, 7), 0.010_039, 5);
        printed(bloom_fpr(9_585_058, 1e6, 7), 0.010_039, 5);
        printed(bloom_fpr(239_626_460, 1e7, 17), 1.0019e-5, 5);
        printed(bloom_fpr(72_984_409, 1e7, 5), 0.030_004, 5);
        printed(mebibytes(239_626_460), 28.57, 4);
        printed(mebibytes(72_984_409), 8.70, 3);
        printed(mebibytes(9_585_058_378), 1142.6, 5);
    }

    /// By the definition, for every bit: the chance that none of those that it overlaps is set.
    #[test]
    fn the_fill_of_resized_bits_is_the_mean_over_all_bits() {
        for (from, to) in [
            (1, 1),
            (12, 12),
            (12, 6),
            (12, 4),
            (12, 24),
            (12, 36),
            (12, 8),
            (8, 12),
            (100, 101),
            (101, 100),
            (64, 1000),
            (1000, 64),
            (997, 991),
            (30, 7),
            (7, 30),
            (1, 50),
            (50, 1),
        ] {
            for fill in [0.0, 0.01, 0.3, 0.5, 0.9, 1.0] {
                let mut overlapped = vec![0u32; to as usize];
                for position in 0..from {
                    crate::bits::overlap(position..position + 1, from, to)
                        .for_each(|bit| overlapped[bit as usize] += 1);
                }
                let zeros: f64 = overlapped.iter().map(|&bits| libm::pow(1.0 - fill, f64::from(bits))).sum();
                let got = resized_fill(from, to, fill);
                assert!((got - (1.0 - zeros / to as f64)).abs() < 1e-12, "{from} to {to} at {fill}: {got}");
            }
        }
        assert_eq!((resized_fill(0, 5, 0.5), resized_fill(5, 0, 0.5)), (0.0, 1.0));
        assert!(resized_fill(5, 7, f64::NAN).is_nan());
        close(resized_fill(1 << 48, 1 << 47, 1e-15), 2e-15, 1e-9);
    }

    #[test]
    fn merging_costs_what_the_sizes_make_it_cost() {
        let half = |m: u64, n: u64| merged_fpr(m, 0.5, 7, n, 0.5, 7);
        printed(half(10_000, 10_000), 0.1335, 4);
        printed(half(10_000, 20_000), 0.1335, 4);
        printed(half(100_000, 100_001), 0.393, 3);
        // A filter that is nearly empty is better brought to the other's size, whichever is larger.
        for (m, n) in [(10_000, 10_001), (10_001, 10_000), (10_000, 99_999)] {
            let rate = merged_fpr(m, 0.5, 7, n, 1e-4, 7);
            assert!(rate < 1.02 * libm::pow(0.5, 7.0), "{m} and {n}: {rate}");
            assert_eq!(rate, merged_fpr(n, 1e-4, 7, m, 0.5, 7));
        }
        printed(merged_fpr(1000, 0.5, 7, 1000, 0.5, 3), 0.4219, 4);
    }

    #[test]
    fn the_three_rules_and_their_rates() {
        for (p, n, nearest, up, down) in [
            (0.03, 10_000_000, (5, 0.030_004), (6, 0.031_003), (5, 0.030_004)),
            (0.01, 1_000_000, (7, 0.010_039), (7, 0.010_039), (6, 0.010_143)),
            (1e-5, 10_000_000, (17, 1.0019e-5), (17, 1.0019e-5), (16, 1.0049e-5)),
            (1e-3, 1_000_000, (10, 0.001_000_0), (10, 0.001_000_0), (9, 0.001_021_6)),
        ] {
            let m = bloom_bits(n, p);
            for (rule, (k, rate)) in ProbesRule::ALL.into_iter().zip([nearest, up, down]) {
                assert_eq!(bloom_probes(p, rule), k, "{p} {rule:?}");
                printed(bloom_fpr(m, n as f64, k), rate, 5);
            }
        }
    }

    #[test]
    fn powers_of_two_are_whole_under_every_rule() {
        for k in 1..=64 {
            for rule in ProbesRule::ALL {
                assert_eq!(bloom_probes(libm::scalbn(1.0, -k), rule), k as u32);
            }
        }
    }

    #[test]
    fn foldable_sizes_have_divisors_and_cost_at_most_one_percent() {
        let mut sizes: Vec<u64> = (0..48).flat_map(|i| [(1 << i) - 1, 1 << i, (1 << i) + 1]).collect();
        sizes.extend([100, 6399, 6400, 95_999, 96_000, 9_585_059, 239_626_460, 9_585_058_378]);
        for m in sizes {
            let bits = foldable_bits(m);
            assert!(bits >= m && bits.is_multiple_of(64), "{m}: {bits}");
            if m >= 6400 {
                assert!(bits - m <= m / 100, "{m}: {bits}");
                // Folded by all its powers of two and by 15 it has about 200 bits at most.
                let left = (bits >> bits.trailing_zeros()) / if m >= 96_000 { 15 } else { 1 };
                assert!(left <= 202, "{m}: {bits}, {left} left");
            } else {
                assert!(bits - m < 64, "{m}: {bits}");
            }
            assert!(m < 96_000 || bits.is_multiple_of(15), "{m}: {bits}");
        }
        assert_eq!((foldable_bits(9_585_059), foldable_bits(u64::MAX)), (9_646_080, u64::MAX));
        // Above 1, the next factor is at most half as large again.
        let folds: Vec<u64> = (1..=1000u64).filter(|c| (61_440u64 * 157).is_multiple_of(*c)).collect();
        for pair in folds[1..].windows(2) {
            assert!(2 * pair[1] <= 3 * pair[0], "{pair:?}");
        }
    }

    #[test]
    fn three_percent_is_always_five_probes() {
        // (One key alone is another matter: its 7.3 bits become 8, and 8 bits are best used by 6 probes.)
        for n in [10, 1000, 10_000_000, 1 << 40] {
            assert_eq!(best_probes(bloom_bits(n, 0.03), n), 5);
        }
        assert_eq!(bloom_probes(0.03, Nearest), 5);
    }

    #[test]
    fn go_takes_a_probe_more_where_the_bits_were_rounded_up() {
        assert_eq!(bloom_bits(1000, 0.25), 2886);
        assert_eq!(bloom_probes_for_bits(2886, 1000, Up), 3);
        assert_eq!(bloom_probes(0.25, Up), 2);
        assert_eq!(bloom_probes_for_bits(9_585_059, 1_000_000, Up), 7);
        assert_eq!(bloom_probes_for_bits(9_585_059, 1_000_000, Down), 6);
    }

    #[test]
    fn rounding_the_probes_misses_the_rate_by_as_much_as_documented() {
        for (rule, bound) in [(Nearest, 1.05), (Up, 1.13), (Down, 1.18)] {
            let mut worst: f64 = 0.0;
            for i in 0..20_000 {
                let p = libm::exp2(-1.0 - f64::from(i) / 1000.0);
                let m = bloom_bits(1_000_000, p);
                worst = worst.max(bloom_fpr(m, 1e6, bloom_probes(p, rule)) / p);
            }
            assert!(worst <= bound && worst > bound - 0.02, "{rule:?} {worst}");
        }
    }

    #[test]
    fn above_a_half_one_probe_reaches_the_rate_and_the_classic_size_does_not() {
        for p in [0.51, 0.6, 0.7, 0.75, 0.9, 0.99] {
            let m = bloom_bits(1_000_000, p);
            assert_eq!(bloom_probes(p, Nearest), 1);
            assert!(bloom_fpr(m, 1e6, 1) <= p * (1.0 + 1e-12));
            assert!(bloom_fpr(m - 1, 1e6, 1) > p);
            assert!(bloom_fpr(bloom_bits_guava(1_000_000, p), 1e6, 1) > p);
        }
        printed(bloom_fpr(bloom_bits_guava(1_000_000, 0.9), 1e6, 1), 0.99, 2);
        assert_eq!(bloom_bits(1_000_000, 0.5), 1_442_696);
    }

    #[test]
    fn bits_for_probes_is_the_least_size_that_keeps_the_rate() {
        for p in [1e-9, 1e-5, 1e-3, 0.01, 0.03, 0.3, 0.5, 0.9] {
            for k in [1, 2, 3, 5, 7, 8, 17, 30, 64] {
                for n in [1, 10, 1000, 1_000_000, 1_000_000_000] {
                    let m = bloom_bits_for_probes(n, p, k);
                    assert!(bloom_fpr(m, n as f64, k) <= p);
                    assert!(m == 1 || bloom_fpr(m - 1, n as f64, k) > p);
                    let root = libm::exp(libm::log(p) / f64::from(k));
                    let closed = libm::ceil(-f64::from(k) * n as f64 / libm::log1p(-root));
                    assert!((m as f64 - closed).abs() <= 1.0 + 1e-13 * closed, "{n} {p} {k}: {m} {closed}");
                    assert!(bloom_capacity_for_probes(m, p, k) >= n);
                    assert!(m == 1 || bloom_capacity_for_probes(m - 1, p, k) < n);
                }
            }
        }
        // What it costs to keep 1 % and not 1.004 %.
        assert_eq!(bloom_bits_for_probes(1_000_000, 0.01, 7), 9_592_955);
    }

    #[test]
    fn best_probes_is_the_minimum_over_all() {
        let n = 1000;
        for m in (1..=99_u64).chain((100..100_000).step_by(97)) {
            let best = (1..=MAX_PROBES)
                .min_by(|&a, &b| bloom_fpr(m, n as f64, a).total_cmp(&bloom_fpr(m, n as f64, b)));
            assert_eq!(Some(best_probes(m, n)), best, "{m}");
        }
    }

    #[test]
    fn least_probes_is_the_first_that_reaches_the_rate() {
        assert_eq!(best_probes(16_000, 1000), 11);
        assert_eq!(least_probes(16_000, 1000, 0.01), Some(3));
        assert_eq!(least_probes(13_000, 1000, 0.002), Some(8));
        assert_eq!(least_probes(9000, 1000, 0.01), None);
        assert_eq!(least_probes(9_592_955, 1_000_000, 0.01), Some(7));
        assert_eq!(least_probes(9_585_059, 1_000_000, 0.01), None);
        for m in (1..30_000).step_by(311) {
            let k = best_probes(m, 1000);
            let least = least_probes(m, 1000, bloom_fpr(m, 1000.0, k));
            assert!(least.is_some_and(|least| least <= k));
        }
    }

    #[test]
    fn capacity_is_the_inverse_of_bits() {
        for p in RATES {
            for n in [1, 2, 3, 10, 999, 1_000_000, 10_000_000, 1 << 33, 1 << 40] {
                let m = bloom_bits(n, p);
                if m == u64::MAX {
                    continue;
                }
                let most = bloom_capacity(m, p);
                assert!(most >= n, "{n} {p}");
                assert!(bloom_bits(most, p) <= m);
                assert!(bloom_bits(most + 1, p) > m);
            }
        }
        assert_eq!(bloom_capacity(9_585_059, 0.01), 1_000_000);
        assert_eq!(bloom_capacity(9_585_058, 0.01), 999_999);
    }

    #[test]
    fn sizes_follow_the_wishes() {
        for pair in RATES.windows(2) {
            for n in [1, 1000, 1_000_000_000] {
                assert!(bloom_bits(n, pair[0]) >= bloom_bits(n, pair[1]));
                assert!(bloom_bits(n + 1, pair[0]) >= bloom_bits(n, pair[0]));
                assert!(bloom_capacity(n, pair[0]) <= bloom_capacity(n, pair[1]));
                assert!(bloom_capacity(n + 1, pair[0]) >= bloom_capacity(n, pair[0]));
            }
            for rule in ProbesRule::ALL {
                assert!(bloom_probes(pair[0], rule) >= bloom_probes(pair[1], rule));
            }
        }
    }

    #[test]
    fn the_rate_table_exact_textbook_and_approximate() {
        for (m, n, k, exact, textbook, approximate, ratio) in [
            (32, 3, 3, 0.015_889_7, 0.015_353_0, 0.014_735_0, 1.078),
            (64, 10, 4, 0.049_141_9, 0.047_715_0, 0.046_648_2, 1.053),
            (256, 32, 6, 0.022_122_9, 0.021_747_8, 0.021_577_1, 1.025),
            (1024, 102, 7, 0.008_109_7, 0.008_059_1, 0.008_040_1, 1.009),
            (4096, 400, 7, 0.007_318_3, 0.007_306_8, 0.007_302_4, 1.002),
        ] {
            // All are printed to seven decimals.
            let same = |got: f64, want: f64| assert!((got - want).abs() <= 0.500_01e-7, "{m}: {got} {want}");
            let (wide, many) = (u64::from(m), f64::from(n));
            same(bloom_fpr_exact(m, n, k), exact);
            same(bloom_fpr_textbook(wide, many, k), textbook);
            same(bloom_fpr(wide, many, k), approximate);
            printed(bloom_fpr_exact(m, n, k) / bloom_fpr(wide, many, k), ratio, 4);
        }
    }

    #[test]
    fn approximate_below_textbook_below_exact() {
        for m in [2, 3, 8, 64, 100, 512] {
            for n in [1, 2, 10, 50, 200] {
                for k in [2, 3, 7, 12] {
                    let (f1, f0) =
                        (bloom_fpr(m.into(), n.into(), k), bloom_fpr_textbook(m.into(), n.into(), k));
                    let exact = bloom_fpr_exact(m, n, k);
                    assert!(f1 <= f0 && f0 <= exact * (1.0 + 1e-12), "{m} {n} {k}: {f1} {f0} {exact}");
                }
            }
        }
        // With one probe nothing is averaged: the textbook is exact.
        close(bloom_fpr_exact(100, 30, 1), bloom_fpr_textbook(100, 30.0, 1), 1e-13);
        // Two bits, one key, two probes: one bit is set with 1/2, both with 1/2.
        close(bloom_fpr_exact(2, 1, 2), 0.5 * 0.25 + 0.5, 1e-15);
        assert_eq!(bloom_fpr_exact(1, 1, 5), 1.0);
    }

    #[test]
    fn the_second_order_meets_the_recurrence() {
        close(fpr_second_order(1024, 102.0, 7), bloom_fpr_exact(1024, 102, 7), 1e-5);
        close(fpr_second_order(4096, 400.0, 7), bloom_fpr_exact(4096, 400, 7), 1e-6);
        close(fpr_second_order(1 << 20, 200.0, 64), bloom_fpr_exact(1 << 20, 200, 64), 1e-5);
        // Both sides of the limit of 2^28 steps: neighbours have neighbouring rates.
        let (counted, expanded) = (bloom_fpr_exact(16_384, 2340, 7), bloom_fpr_exact(16_384, 2341, 7));
        assert!(expanded > counted);
        close(expanded, counted, 3e-3);
    }

    #[test]
    fn over_fill() {
        let m = 9_585_058;
        for (times, rate, digits) in
            [(0.5, 2.51e-4, 3), (1.25, 0.0276, 3), (1.5, 0.0579, 3), (2.0, 0.1575, 4), (3.0, 0.436, 3)]
        {
            printed(bloom_fpr(m, times * 1e6, 7), rate, digits);
        }
    }

    #[test]
    fn a_million_keys_at_one_percent() {
        let (m, n, k) = (9_585_058, 1e6, 7);
        printed(expected_fill(m, n, k), 0.5182, 4);
        close(fill_deviation(m, n, k), 9.145_371_943_405_052e-5, 1e-13);
        printed(fpr_deviation(m, n, k), 0.0012, 2);
        // Four deviations are the +-1040 of the acceptance experiment.
        close(estimated_len_deviation(m, n, k), 259.935_020_269_584, 1e-13);
        printed(4.0 * estimated_len_deviation(m, n, k), 1040.0, 4);
        // It falls with 1/sqrt(n).
        close(fpr_deviation(100 * m, 100.0 * n, k), fpr_deviation(m, n, k) / 10.0, 1e-9);
        close(fpr_from_fill(expected_fill(m, n, k), k), bloom_fpr(m, n, k), 1e-6);
    }

    #[test]
    fn half_the_bits_stay_free_at_the_best_load() {
        for p in [1e-2, 1e-3, 1e-6] {
            let m = bloom_bits(1_000_000, p);
            let fill = expected_fill(m, 1e6, bloom_probes(p, Nearest));
            assert!((fill - 0.5).abs() < 0.02, "{fill}");
        }
        // 0.6185^(m/n) with unrounded probes: 10 bits per key.
        printed(libm::pow(0.5, 10.0 * LN_2), libm::pow(0.6185, 10.0), 3);
    }

    #[test]
    fn more_probes_are_not_always_better() {
        assert!(bloom_fpr(9585, 1000.0, 8) > bloom_fpr(9585, 1000.0, 7));
        assert!(bloom_fpr(9585, 1000.0, 20) > bloom_fpr(9585, 1000.0, 3));
        // 13 bits per key and 8 probes: a fifth of one percent, not one percent.
        printed(bloom_fpr(13_000_000, 1e6, 8), 0.00199, 3);
    }

    #[test]
    fn small_arguments_keep_their_digits() {
        let m = 1_000_000_000_000_000;
        close(bloom_fpr(m, 1.0, 7), 8.235_429_999_999_798e-100, 1e-13);
        close(bloom_fpr_textbook(m, 1.0, 7), 8.235_429_999_999_827e-100, 1e-13);
        close(fill_deviation(1_000_000_000_000, 1.0, 7), 4.949_747_468_276_959e-18, 1e-13);
        close(estimated_len_deviation(1_000_000_000_000, 1.0, 7), 7.071_067_811_873_725e-7, 1e-13);
        close(estimated_len(1 << 60, 7, 7), 1.0, 1e-15);
        // And the large ones.
        close(fill_deviation(1000, 1e4, 7), 1.993_852_987_536_605e-17, 1e-13);
        close(estimated_len_deviation(1000, 1e4, 7), 7.164_878_441_396_127e15, 1e-13);
        // Both forms meet at c = 1.
        close(fill_deviation(700, 100.0, 7), 0.011_784_304_009_887_592, 1e-13);
        close(fill_deviation(700, 99.999_999_999_9, 7), 0.011_784_304_009_887_592, 1e-11);
        close(estimated_len_deviation(700, 100.0, 7), 3.203_305_945_111_45, 1e-13);
    }

    #[test]
    fn rates_rise_with_keys_and_fall_with_bits() {
        for k in [1, 7, 64] {
            let mut before = (0.0, 0.0, 0.0);
            for n in [1.0, 10.0, 1e3, 1e4, 1e5, 1e6, 1e9, 1e15] {
                let now = (
                    bloom_fpr(9585, n, k),
                    bloom_fpr_textbook(9585, n, k),
                    estimated_len_deviation(9585, n, k),
                );
                assert!(now.0 >= before.0 && now.1 >= before.1 && now.2 >= before.2);
                assert!(bloom_fpr(9586, n, k) <= now.0 && bloom_fpr_textbook(9586, n, k) <= now.1);
                before = now;
            }
        }
    }

    #[test]
    fn the_estimate_inverts_the_expected_fill() {
        let m = 9_585_058;
        for n in [1.0, 1e3, 1e6, 5e6] {
            let ones = libm::round(m as f64 * -libm::expm1(-7.0 * n / m as f64)) as u64;
            let slack = libm::exp(7.0 * n / m as f64) / 7.0;
            assert!((estimated_len(m, ones, 7) - n).abs() <= slack);
        }
        // One zero left among 2^60 bits.
        close(estimated_len(1 << 60, (1 << 60) - 1, 1), libm::scalbn(60.0 * LN_2, 60), 1e-15);
        assert_eq!(estimated_len(64, 64, 3), f64::INFINITY);
        assert_eq!(estimated_len(64, 65, 3), f64::INFINITY);
        assert_eq!(estimated_len(64, 0, 3), 0.0);
        let lens = (0..=64).map(|ones| estimated_len(64, ones, 3));
        assert!(lens.clone().zip(lens.skip(1)).all(|(a, b)| a < b));
    }

    #[test]
    fn union_and_intersection_and_the_naive_estimate() {
        let (m, k) = (9_585_058_u64, 7);
        let bits = m as f64;
        let zero = |n: f64| libm::exp(-7.0 * n / bits);
        let ones = |share: f64| libm::round(share * bits) as u64;
        let one_set = ones(1.0 - zero(6e5));
        let either = ones(1.0 - zero(1e6));
        assert!((union_len(m, either, k) - 1e6).abs() < 1.0);
        assert!((intersection_len(m, one_set, one_set, either, k) - 2e5).abs() < 1.0);
        // A bit is in the AND unless it is 0 on one side.
        let both = ones(1.0 - 2.0 * zero(6e5) + zero(1e6));
        printed(estimated_len(m, both, k), 290_800.0, 4);

        // Disjoint sets whose OR came out a little large: not less than nothing.
        assert_eq!(intersection_len(1000, 100, 100, 191, 3), 0.0);
        assert_eq!(intersection_len(1000, 1000, 100, 1000, 3), f64::INFINITY);
        assert_eq!(intersection_len(1000, 600, 600, 1000, 3), f64::INFINITY);
        close(intersection_len(1000, 100, 100, 100, 3), estimated_len(1000, 100, 3), 1e-15);
    }
}
