//! Every formula of the Bloom filter and its bounds: pure functions, each with its source.
//!
//! | symbol | meaning                                  |
//! |--------|------------------------------------------|
//! | `n`    | distinct keys                            |
//! | `m`    | bits                                     |
//! | `k`    | probes: positions examined per key       |
//! | `p`    | false-positive rate that is wanted       |
//! | `c`    | `k n / m`: throws per bit, the *load*    |
//!
//! Three rates share the name "false-positive rate". [`bloom_fpr`] is the approximation that everybody
//! uses, [`bloom_fpr_textbook`] replaces `e^(-c)` by the true chance that a bit stays 0, and
//! [`bloom_fpr_exact`] averages over the number of ones. They rise in this order and agree to 0.3 % from
//! 4096 bits on (10 bits per key, 7 probes). What a given filter does is none of the three:
//! [`fpr_from_fill`] of its own ones.
//!
//! All transcendental functions come from `libm`, so that a size computed here is the same size on every
//! platform. No function panics, for any input. Where `n` is an `f64`, a negative value counts as 0 and NaN
//! gives NaN. A `p` of NaN asks for nothing: it counts as 1, except where the text says otherwise.
//!
//! ```
//! use mayhap::math::{ProbesRule, bloom_bits, bloom_fpr, bloom_probes};
//!
//! let (m, k) = (bloom_bits(1_000_000, 0.01), bloom_probes(0.01, ProbesRule::Nearest));
//! assert_eq!((m, k), (9_585_059, 7));
//! assert!((bloom_fpr(m, 1e6, k) - 0.010_039).abs() < 1e-6);
//! ```

use crate::narrow::{index, low_u32, low_u64, small, whole, whole_u32, whole_usize};
use alloc::vec;
use alloc::vec::Vec;
use core::f64::consts::LN_2;

/// The most probes that any rule here returns.
///
/// 64 probes are the best number for a rate of `2^-64`, which is where a 64-bit hash ends anyway.
pub const MAX_PROBES: u32 = 64;

/// `2^64`, the first `f64` that does not fit a `u64`.
const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

// ---------------------------------------------------------------------------------------------------------
// Sizing
// ---------------------------------------------------------------------------------------------------------

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

/// The prime factors, from the least to the largest, as often as they divide. None for 0 and 1.
///
/// By trial division: a prime near `2^48` takes 8 million steps, which is 0.1 s.
pub fn prime_factors(mut number: u64) -> Vec<u64> {
    let mut factors = Vec::new();
    let mut divisor = 2;
    while number > 1 && divisor <= number / divisor {
        if number.is_multiple_of(divisor) {
            factors.push(divisor);
            number /= divisor;
        } else {
            divisor += if divisor == 2 { 1 } else { 2 };
        }
    }
    if number > 1 {
        factors.push(number);
    }
    factors
}

/// All divisors, from 1 to the number itself. None for 0.
pub fn divisors(number: u64) -> Vec<u64> {
    let mut divisors = if number == 0 { Vec::new() } else { vec![1] };
    // Those with one power more of a prime are new only if they have the highest power so far.
    let (mut last, mut newest) = (0, 0..0);
    for prime in prime_factors(number) {
        newest = if prime == last { newest.end..divisors.len() } else { 0..divisors.len() };
        last = prime;
        for index in newest.clone() {
            divisors.push(divisors[index] * prime);
        }
    }
    divisors.sort_unstable();
    divisors
}

/// The largest `n` for which `fits(n)`, which must be true up to some `n` and false from there on.
pub(crate) fn most_keys(m: u64, fits: impl Fn(u64) -> bool) -> u64 {
    if m == 0 {
        return 0;
    }
    let first = first_false(1, u64::MAX, &fits);
    if fits(first) { first } else { first - 1 }
}

/// The first number in `low..high` for which `holds` is false; `high` if there is none.
pub(crate) fn first_false(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

// ---------------------------------------------------------------------------------------------------------
// Rates
// ---------------------------------------------------------------------------------------------------------

/// The load `c = k n / m`. Infinite without bits: such a filter counts as full.
fn load(m: u64, n: f64, k: u32) -> f64 {
    if m == 0 { f64::INFINITY } else { throws(n, k) / m as f64 }
}

/// Bits that are set when `n` keys go in, repeats counted.
fn throws(n: f64, k: u32) -> f64 {
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
fn fpr_second_order(m: u64, n: f64, k: u32) -> f64 {
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

/// The greatest common divisor; `gcd(a, 0)` is `a`.
pub fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

// ---------------------------------------------------------------------------------------------------------
// How many keys are in
// ---------------------------------------------------------------------------------------------------------

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

// ---------------------------------------------------------------------------------------------------------
// Bounds
// ---------------------------------------------------------------------------------------------------------

/// Bits that any filter without false negatives needs: `n log2(1/p)`, for a universe without end.
///
/// A Bloom filter takes `1/ln 2 = 1.44` times as much. 0 for `n <= 0` and `p >= 1`, infinite for `p <= 0`.
/// NaN gives NaN.
///
/// Source: Carter, Floyd, Gill, Markowsky, Wegman, *Exact and Approximate Membership Testers*, 1978.
pub fn lower_bound_bits(n: f64, p: f64) -> f64 {
    if n <= 0.0 || p >= 1.0 {
        0.0
    } else if p <= 0.0 {
        f64::INFINITY
    } else {
        -n * libm::log2(p)
    }
}

/// Bits that any filter without false negatives needs for `n` keys out of `u`:
/// `log2(C(u, n) / C(n + p (u - n), n))`.
///
/// Less than [`lower_bound_bits`], and close to it once `p u` is far above `n`. For `p <= 0` it is
/// `log2 C(u, n)`, the bits of an exact set. 0 for `n = 0`, `n >= u` and `p >= 1`. NaN gives NaN.
///
/// Source: Carter et al. 1978, in the form of Broder and Mitzenmacher 2004.
pub fn lower_bound_bits_finite(u: u64, n: u64, p: f64) -> f64 {
    if n == 0 || n >= u || p >= 1.0 {
        return 0.0;
    }
    // Four log-gammas of the size u ln u would leave nothing of a small result. Written as Stirling's main
    // part plus a remainder, ln G(z) = (z - 1/2) ln z - z + ln sqrt(2 pi) + remainder(z), the large terms
    // cancel on paper:
    //   ln G(x + n) - ln G(x) = n ln(x + n) + (x - 1/2) ln(1 + n/x) - n + remainder(x + n) - remainder(x)
    // with x = u - n + 1 above the fraction line, and the same with y = p (u - n) + 1 below it. Of the
    // terms that are left none is larger than n ln(u/n) or n, so the error is a few ulps of those.
    let p = if p < 0.0 { 0.0 } else { p };
    let absent = (u - n) as f64;
    let n = n as f64;
    let (x, y) = (absent + 1.0, p * absent + 1.0);
    let nats = n * libm::log1p((1.0 - p) * absent / (y + n))
        + ((x - 0.5) * libm::log1p(n / x) - (y - 0.5) * libm::log1p(n / y))
        + (stirling_remainder(x + n) - stirling_remainder(x))
        - (stirling_remainder(y + n) - stirling_remainder(y));
    // Not `max`, which would turn NaN into 0.
    if nats < 0.0 { 0.0 } else { nats / LN_2 }
}

/// What Stirling's formula leaves of `ln G(z)`, for `z >= 1`: Abramowitz and Stegun 1964, 6.1.41.
fn stirling_remainder(z: f64) -> f64 {
    const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_8;
    if z < 10.0 {
        return libm::lgamma(z) - ((z - 0.5) * libm::log(z) - z + LN_SQRT_2PI);
    }
    // The first term left out is 3e-17 at z = 10.
    const TERMS: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let square = 1.0 / (z * z);
    TERMS.iter().rev().fold(0.0, |sum, term| sum * square + term) / z
}

/// How many times the lower bound `bits` are: 1.44 for a Bloom filter of the best size.
///
/// Infinite where the bound is 0. NaN for NaN, and for 0 bits against a bound of 0.
///
/// Source: [`lower_bound_bits`].
pub fn overhead(bits: f64, n: f64, p: f64) -> f64 {
    bits / lower_bound_bits(n, p)
}

/// The rate below which no filter gets whose hash has `width_bits` bits: `1 - e^(-n / 2^w)`.
///
/// It is the chance that an absent key has the very hash of a present one. With 32 bits that is 2.3 % at 10^8
/// keys, however many bits the filter has. `n <= 0` gives 0.
///
/// Source: one probe into `2^w` positions, as in [`one_hash_bitmap_fpr`].
pub fn hash_width_floor(n: f64, width_bits: u32) -> f64 {
    if n <= 0.0 {
        return 0.0;
    }
    // 2^-4000 times any finite f64 is 0: a wider hash changes nothing.
    -libm::expm1(-libm::scalbn(n, -(width_bits.min(4000) as i32)))
}

/// The bytes of a hash set of `n` entries of so many bytes each, as hashbrown (the standard library's) lays it out: a power of
/// two of places, of which seven eighths can be taken, a byte of hash beside each, and 16 bytes at the end.
///
/// What the entries point to is not counted. At the end of the number range if it is more.
///
/// Source: hashbrown 0.17, where groups have 16 bytes on x86-64 and 8 on most others, which saves those few; a test compares.
pub fn hash_set_bytes(n: u64, entry: u64) -> u64 {
    hash_set_bytes_in_groups(n, entry, 16)
}

/// The same with groups of so many bytes, of which one is behind the places, and which entries end before.
fn hash_set_bytes_in_groups(n: u64, entry: u64, group: u64) -> u64 {
    let places = match n {
        0 => return 0,
        1..=3 => Some(4),
        4..=7 => Some(8),
        8..=14 => Some(16),
        _ => n.checked_mul(8).map(|eighths| eighths / 7).and_then(u64::checked_next_power_of_two),
    };
    let bytes = places.and_then(|places| {
        let entries = places.checked_mul(entry)?.checked_next_multiple_of(group)?;
        entries.checked_add(places)?.checked_add(group)
    });
    bytes.unwrap_or(u64::MAX)
}

/// False-positive rate of a bitmap of `m` bits that one hash addresses: `1 - e^(-n/m)`.
///
/// The rung below the Bloom filter: 20 million keys in 100 million bits err at 18.1 %, where a Bloom filter
/// of that size and 3 probes errs at 9.2 %. Edge cases as for [`bloom_fpr`].
///
/// Source: Bloom 1970 with one probe.
pub fn one_hash_bitmap_fpr(m: u64, n: f64) -> f64 {
    bloom_fpr(m, n, 1)
}

/// The expected number of counters of a counting filter that are at least `top`: `m P(X >= top)` with `X` Poisson of
/// mean `c = k n / m`.
///
/// Where it is small, it is the chance that there is one at all. Of the 9.6 million counters for a million keys at 1 %,
/// 10 are 8 or more, and with a chance of 3.3e-8 one is 15, where counters of 4 bits end. 0 for `n <= 0`, `k = 0` and
/// `m = 0`; `m` for `top = 0`.
///
/// Source: throws into urns, as in [`expected_fill`].
pub fn counters_at_least(m: u64, n: f64, k: u32, top: u32) -> f64 {
    let (c, cells) = (load(m, n, k), m as f64);
    if top == 0 || c == f64::INFINITY {
        return cells;
    }
    // The first term of the tail, c^top / top!, by its logarithm, and the others in proportion to it.
    let log_first = f64::from(top) * libm::log(c) - libm::lgamma(f64::from(top) + 1.0) - c;
    let (mut term, mut sum) = (1.0, 0.0);
    let mut j = f64::from(top);
    // Terms rise up to j = c, and then fall faster and faster.
    while term > sum * 1e-17 || j < c {
        sum += term;
        j += 1.0;
        term *= c / j;
    }
    (cells * libm::exp(log_first) * sum).min(cells)
}

/// The bound on the chance that some counter of a counting filter gets to `top`: `m (e n k / (top m))^top`.
///
/// Cruder than [`counters_at_least`] and what the literature quotes: with the best number of probes it is
/// `1.37e-15 m` for `top = 16`, which is why counters have 4 bits.
///
/// Source: Fan, Cao, Almeida, Broder, *Summary Cache*, 2000.
pub fn counter_overflow_bound(m: u64, n: f64, k: u32, top: u32) -> f64 {
    let each = core::f64::consts::E * load(m, n, k) / f64::from(top.max(1));
    (m as f64 * libm::pow(each, f64::from(top))).min(1.0)
}

/// The chance that among `n` keys in `m` positions *some* two share one: `1 - (1 - 1/m) (1 - 2/m) ...`.
///
/// This is the birthday problem, not an error rate: 10^4 keys in 10^8 positions collide somewhere with 39 %,
/// while an absent key meets a present one with 0.01 %. 0 for `n < 2`, 1 for `n > m`.
///
/// Source: Feller, *An Introduction to Probability Theory and Its Applications*, 1950; the sum by Euler and
/// Maclaurin.
pub fn some_collision(m: u64, n: u64) -> f64 {
    if n < 2 {
        return 0.0;
    }
    if n > m {
        return 1.0;
    }
    let (m, n) = (m as f64, n as f64);
    // The chance of none is at most e^(-pairs/m), and e^-40 is lost beside 1.
    if n * (n - 1.0) / 2.0 / m > 40.0 {
        return 1.0;
    }
    let log_of_none = if n <= 4096.0 {
        (1..whole_u32(n)).map(|i| libm::log1p(-f64::from(i) / m)).sum()
    } else {
        // Here t = n/m < 0.02, because n^2 < 81 m. The integral of ln(1 - x/m) from 0 to n is
        // -m (t^2/2 + t^3/6 + t^4/12 + ...), and two end corrections make the sum of it.
        let t = n / m;
        let mut power = t;
        let mut area = 0.0;
        for j in 2..=12 {
            power *= t;
            area += power / f64::from(j * (j - 1));
        }
        -m * area - libm::log1p(-t) / 2.0 - t / (12.0 * m * (1.0 - t))
    };
    -libm::expm1(log_of_none)
}

// ---------------------------------------------------------------------------------------------------------
// Blocked filters
// ---------------------------------------------------------------------------------------------------------

/// What a key does in its block: one bit in each lane of each round.
///
/// A line has 512 bits. A full round sets one bit in each of its 8 words of 64 bits, a half round one in each
/// of its 4 pairs of words. A split block has 256 bits and 8 lanes of 32 bits, one bit in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockShape {
    /// A line with so many full rounds and perhaps a half one.
    Line {
        /// Full rounds.
        full: u32,
        /// Whether there is a half round.
        half: bool,
    },
    /// A split block.
    Split,
}

impl BlockShape {
    /// Bits of a block.
    pub const fn bits(self) -> u64 {
        match self {
            Self::Line { .. } => 512,
            Self::Split => 256,
        }
    }

    /// Bits that a key sets.
    pub const fn probes(self) -> u32 {
        match self {
            Self::Line { full, half } => 8 * full + if half { 4 } else { 0 },
            Self::Split => 8,
        }
    }

    /// Chance that one key leaves a given bit of its block alone.
    fn leaves(self) -> f64 {
        match self {
            Self::Line { full, half } => {
                libm::pow(63.0 / 64.0, f64::from(full)) * if half { 127.0 / 128.0 } else { 1.0 }
            }
            Self::Split => 31.0 / 32.0,
        }
    }
}

/// Chances `g(j)` that a block which holds `j` keys admits an absent one, for `j` below `len`: exact.
///
/// Lanes are independent once the number of keys is known, since every key sets one bit in each. With several
/// rounds the lanes' occupancy is followed throw by throw, for words and half rounds together.
///
/// Source: Putze, Sanders, Singler, *Cache-, Hash- and Space-Efficient Bloom Filters*, 2007; occupancy as in
/// [`bloom_fpr_exact`].
pub fn block_rates(shape: BlockShape, len: usize) -> Vec<f64> {
    // One bit a lane: the share of ones of a lane, to the power of the lanes.
    let single = |lane: f64, lanes: f64| {
        (0..len).map(|j| libm::pow(-libm::expm1(j as f64 * libm::log1p(-1.0 / lane)), lanes)).collect()
    };
    match shape {
        BlockShape::Split => single(32.0, 8.0),
        BlockShape::Line { full: 1, half: false } => single(64.0, 8.0),
        BlockShape::Line { full: 0, .. } => single(128.0, 4.0),
        BlockShape::Line { full, half } => pair_rates(full, half, len),
    }
}

/// `g(j)` for several rounds, from the joint occupancy of the two words of a pair.
fn pair_rates(full: u32, half: bool, len: usize) -> Vec<f64> {
    const SIDE: usize = 65;
    let share = |ones: usize| ones as f64 / 64.0;
    // What a pair with so many ones in its words admits.
    let mut admits = vec![[0.0; SIDE]; SIDE];
    for (x, row) in admits.iter_mut().enumerate() {
        for (y, admits) in row.iter_mut().enumerate() {
            let words = libm::pow(share(x) * share(y), f64::from(full));
            *admits = words * if half { (share(x) + share(y)) / 2.0 } else { 1.0 };
        }
    }
    // chance[x][y]: so many ones in the lower and in the upper word.
    let mut chance = vec![[0.0; SIDE]; SIDE];
    chance[0][0] = 1.0;
    let mut rates = Vec::with_capacity(len);
    for _ in 0..len {
        let pairs = chance.iter().flatten().zip(admits.iter().flatten());
        let admitted: f64 = pairs.map(|(chance, admits)| chance * admits).sum();
        rates.push(libm::pow(admitted, 4.0));
        // One more key. From the top down, so that the smaller counts are still those before the throw.
        for _ in 0..full {
            for x in (0..SIDE).rev() {
                let below = if x > 0 { chance[x - 1] } else { [0.0; SIDE] };
                let enters = if x > 0 { 1.0 - share(x - 1) } else { 0.0 };
                for (chance, below) in chance[x].iter_mut().zip(below) {
                    *chance = *chance * share(x) + below * enters;
                }
            }
            for row in &mut chance {
                for y in (0..SIDE).rev() {
                    let from_below = if y > 0 { row[y - 1] * (1.0 - share(y - 1)) } else { 0.0 };
                    row[y] = row[y] * share(y) + from_below;
                }
            }
        }
        if half {
            for x in (0..SIDE).rev() {
                for y in (0..SIDE).rev() {
                    let lower = if x > 0 { chance[x - 1][y] * (1.0 - share(x - 1)) } else { 0.0 };
                    let upper = if y > 0 { chance[x][y - 1] * (1.0 - share(y - 1)) } else { 0.0 };
                    chance[x][y] = chance[x][y] * (share(x) + share(y)) / 2.0 + (lower + upper) / 2.0;
                }
            }
        }
    }
    rates
}

/// So many entries of [`block_rates`] cover all loads that occur at a mean of `mean` keys per block.
pub fn block_loads(mean: f64) -> usize {
    let mean = mean.clamp(0.0, 600.0);
    whole_usize(mean + 12.0 * libm::sqrt(mean)) + 32
}

/// False-positive rate of a blocked filter of so many blocks with `n` keys: the mean of [`block_rates`] over
/// the binomial load of a block. Sizing by the classic formula instead misses the wanted rate, because
/// blocks with more keys than the mean err more than the others gain.
///
/// Above a mean of 600 keys per block the filter is full: 1. `n <= 0` gives 0.
///
/// Source: Putze, Sanders, Singler 2007.
pub fn blocked_fpr(rates: &[f64], blocks: u64, n: f64) -> f64 {
    let share = 1.0 / blocks.max(1) as f64;
    let mean = n * share;
    if n.is_nan() || n <= 0.0 {
        return 0.0;
    }
    if mean > 600.0 {
        return 1.0;
    }
    if blocks <= 1 {
        return rates.get(whole_usize(n)).or(rates.last()).copied().unwrap_or(1.0);
    }
    let mut chance = libm::exp(n * libm::log1p(-share));
    let mut rate = 0.0;
    for j in 0..block_loads(mean) {
        rate += chance * rates.get(j).or(rates.last()).copied().unwrap_or(1.0);
        let left = n - j as f64;
        if left <= 0.0 {
            break;
        }
        chance *= left / (j + 1) as f64 * share / (1.0 - share);
    }
    rate.min(1.0)
}

/// False-positive rate of blocks with these bits, 64 to a word: that of the filter as it is, whatever keys have set them.
///
/// An absent key meets each block as often as any other, and there a one in each lane with a chance of the lane's share of ones.
/// The mean of that over the blocks is what [`blocked_fpr`] expects before the bits are known: of few blocks some are fuller
/// than others by chance, and those say most of the yeses. No words give 0.
pub fn blocks_fpr(shape: BlockShape, words: &[u64]) -> f64 {
    let admitted = |block: &[u64]| -> f64 {
        match shape {
            BlockShape::Line { full, half } => {
                let share = |word: &u64| f64::from(word.count_ones()) / 64.0;
                let words: f64 = block.iter().map(share).product();
                let (lower, upper) = block.split_at(block.len() / 2);
                let pair = |(lower, upper): (&u64, &u64)| (share(lower) + share(upper)) / 2.0;
                let pairs: f64 = if half { lower.iter().zip(upper).map(pair).product() } else { 1.0 };
                libm::pow(words, f64::from(full)) * pairs
            }
            BlockShape::Split => {
                let share = |lane: u64| f64::from(low_u32(lane).count_ones()) / 32.0;
                block.iter().map(|&word| share(word) * share(word >> 32)).product()
            }
        }
    };
    let blocks = words.chunks_exact(index(shape.bits() / 64));
    let count = blocks.len().max(1) as f64;
    blocks.map(admitted).sum::<f64>() / count
}

/// Least number of blocks that keep `n` keys at or below the rate `p`, or `2^41` if it takes more: beyond any size
/// that a filter may have.
pub fn blocked_blocks(shape: BlockShape, n: u64, p: f64) -> u64 {
    // No shape is smaller than the information bound; so no block holds more keys than this.
    let most = shape.bits() as f64 / libm::log2(1.0 / p.clamp(1e-12, 0.9)).max(0.15);
    let rates = block_rates(shape, block_loads(most));
    let (mut low, mut high) = (0, 1 << 41);
    // Too few up to `low`, enough from `high` on.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if blocked_fpr(&rates, middle, n as f64) <= p { high = middle } else { low = middle }
    }
    high
}

/// Most keys that so many blocks keep at or below the rate `p`.
pub fn blocked_capacity(shape: BlockShape, blocks: u64, p: f64) -> u64 {
    let most = shape.bits() as f64 / libm::log2(1.0 / p.clamp(1e-12, 0.9)).max(0.15);
    let rates = block_rates(shape, block_loads(most));
    let (mut low, mut high) = (0, blocks.saturating_mul(600));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if blocked_fpr(&rates, blocks, middle as f64) <= p { low = middle } else { high = middle }
    }
    low
}

/// Distinct keys in a blocked filter, from its ones; infinite when all are set.
///
/// A bit stays 0 with the chance `(1 - (1 - q)/blocks)^n`, where `q` is the chance that a key of the same block
/// leaves it alone.
///
/// Source: Swamidass and Baldi 2007, for blocks.
pub fn blocked_estimated_len(shape: BlockShape, blocks: u64, ones: u64) -> f64 {
    let fill = ones as f64 / (blocks.max(1) as f64 * shape.bits() as f64);
    libm::log1p(-fill.min(1.0)) / libm::log1p(-(1.0 - shape.leaves()) / blocks.max(1) as f64)
}

// ---------------------------------------------------------------------------------------------------------
// Filters of fingerprints
// ---------------------------------------------------------------------------------------------------------

/// Keys for which a d-left filter has a bucket in each of its four subtables: 6 for each of 8 cells.
///
/// With 6 of 8 taken on average, the share of buckets that would need a ninth cell is 2.4e-138 after inserts and
/// 1.7e-27 after any number of removes and inserts: Bonomi et al. 2006, by their differential equations.
pub const DLEFT_KEYS: u64 = 24;

/// The number of fingerprints of a d-left filter: `buckets 2^remainder_bits`.
pub fn dleft_fingerprints(buckets: u64, remainder_bits: u32) -> f64 {
    libm::scalbn(buckets as f64, remainder_bits.min(4000) as i32)
}

/// False-positive rate of a d-left filter: the chance that an absent key has the fingerprint of one of `n` keys,
/// `1 - e^(-n / (buckets 2^r))`.
///
/// A match in any subtable is a match of whole fingerprints, because each subtable has a bijection of them. 24 keys for
/// each bucket and 14 bits give 0.1464 %. `n <= 0` gives 0.
///
/// Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese 2006, who bound it by `24 / 2^r`.
pub fn dleft_fpr(buckets: u64, remainder_bits: u32, n: f64) -> f64 {
    if n <= 0.0 { 0.0 } else { -libm::expm1(-n / dleft_fingerprints(buckets, remainder_bits)) }
}

/// Least number of buckets of a d-left filter with room for `n` keys at or below the rate `p`.
pub fn dleft_buckets(n: u64, p: f64, remainder_bits: u32) -> u64 {
    let room = n.div_ceil(DLEFT_KEYS).max(1);
    let wanted = n as f64 / -libm::log1p(-p.min(1.0)) / dleft_fingerprints(1, remainder_bits);
    // The conversion ends at the top, which is more than anybody grants. Rounding may have lost a bucket.
    let least = room.max(whole(libm::ceil(wanted)));
    if dleft_fpr(least, remainder_bits, n as f64) <= p { least } else { least.saturating_add(1) }
}

/// Most keys for which so many buckets of a d-left filter have room at or below the rate `p`.
pub fn dleft_capacity(buckets: u64, p: f64, remainder_bits: u32) -> u64 {
    let kept = dleft_fingerprints(buckets, remainder_bits) * -libm::log1p(-p.min(1.0));
    let most = buckets.saturating_mul(DLEFT_KEYS).min(whole(kept));
    if dleft_fpr(buckets, remainder_bits, most as f64) <= p { most } else { most.saturating_sub(1) }
}

/// Distinct keys in a d-left filter, from the number of its fingerprints; infinite when it has all of them.
///
/// Source: throws into urns, as in [`estimated_len`].
pub fn dleft_estimated_len(buckets: u64, remainder_bits: u32, found: u64) -> f64 {
    let all = dleft_fingerprints(buckets, remainder_bits);
    -all * libm::log1p(-(found as f64 / all).min(1.0))
}

// ---------------------------------------------------------------------------------------------------------
// Static filters
// ---------------------------------------------------------------------------------------------------------

/// Shards have at least so many keys: from here on their size costs no space.
const LEAST_SHARD: u64 = 1_600_000;

/// At most 2^20 shards.
pub const MAX_SHARD_BITS: u32 = 20;

/// How many of the highest bits of a digest tell the shard of a static filter of so many keys, so that a shard has 1.6 to
/// 3.2 million.
pub fn shard_bits(keys: u64) -> u32 {
    (keys / LEAST_SHARD).max(1).ilog2().min(MAX_SHARD_BITS)
}

/// The most places of a segment: 2^18.
pub const MAX_SEGMENT_LOG: u32 = 18;

/// Segments of a binary fuse filter of so many keys: the logarithm of their length, and the number of those that are the
/// first of a key. Three or four `ways` need two or three segments behind them.
///
/// Source: Graf, Lemire 2022, whose numbers were found by experiment. They round down.
pub fn fuse_segments(keys: u64, ways: u32) -> (u32, u64) {
    if keys < 2 {
        return (2, 1);
    }
    let ln = libm::log(keys as f64);
    let (log, factor) = match ways {
        3 => (ln / libm::log(3.33) + 2.25, 0.875 + 0.25 * libm::log(1e6) / ln),
        _ => (ln / libm::log(2.91) - 0.5, 0.77 + 0.305 * libm::log(6e5) / ln),
    };
    // Keys whose first places are the same must differ in the others, whatever the rounding says of a handful of keys.
    let log = whole_u32(libm::floor(log).max(2.0)).min(MAX_SEGMENT_LOG);
    let slots = whole(libm::round(keys as f64 * factor.max(if ways == 3 { 1.125 } else { 1.075 })));
    (log, slots.div_ceil(1 << log).saturating_sub(u64::from(ways) - 1).max(1))
}

/// False-positive rate of a static filter with fingerprints of so many bits: that an absent key has the fingerprint, or the
/// half digest of one of the keys.
pub fn fuse_fpr(width: u32, keys: u64) -> f64 {
    libm::scalbn(1.0, -(width as i32)) + equal_halves(keys)
}

/// A layer of a bumped ribbon has so many slots per key: too few, on purpose.
const RIBBON_SLOTS: f64 = 0.965;

/// Fewer keys than this are not worth a layer that bumps.
pub(crate) const RIBBON_LEAST: u64 = 2000;

/// Blocks of 64 slots of a layer that bumps, for so many keys.
pub(crate) fn ribbon_blocks(keys: u64) -> u64 {
    (whole(libm::ceil(keys as f64 * RIBBON_SLOTS))).div_ceil(64)
}

/// Blocks of 64 slots of the last layer, for so many keys: 5 % more slots than keys, and another 5 % with each attempt.
///
/// Source: Dillinger, Walzer 2021: 10,000 keys and rows of 64 bits are solved with 5 % nine times of ten; here there are fewer
/// keys.
pub(crate) fn ribbon_last_blocks(keys: u64, row_bits: u32, attempt: u64) -> u64 {
    let slots = whole(libm::ceil(keys as f64 * (1.05 + 0.05 * attempt as f64)));
    slots.div_ceil(64).max(u64::from(row_bits) / 64)
}

/// The slots of a bucket of a layer that bumps are 2 to this.
///
/// Source: Dillinger, Hübschle-Schneider, Sanders, Walzer 2022: `w^2 / (4 log2 w)`, rounded down to a power of two.
pub(crate) const fn ribbon_bucket_log(row_bits: u32) -> u32 {
    if row_bits == 64 { 7 } else { 9 }
}

/// The share of its keys that a layer bumps.
const fn ribbon_bumped(row_bits: u32) -> f64 {
    if row_bits == 64 { 0.0364 } else { 0.0356 }
}

/// How many of its keys a layer bumps, on average: those for which it has no slots, and as many as slots stay empty. Some of
/// these are lost at the ends of a layer, whatever its length, and so a small one bumps more.
///
/// Measured: layers of 2000 to 50,000 keys leave 29 to 90 slots empty with rows of 64 bits, and 43 to 63 with rows of 128.
pub(crate) fn ribbon_bumped_keys(keys: u64, row_bits: u32) -> u64 {
    let (ends, one_in) = if row_bits == 64 { (28, 770) } else { (53, 2000) };
    (keys + ends + keys / one_in).saturating_sub(64 * ribbon_blocks(keys))
}

/// Slots at which keys start in a layer of so many blocks of 64.
pub(crate) const fn ribbon_starts(blocks: u64, row_bits: u32) -> u64 {
    (blocks * 64 + 1).saturating_sub(row_bits as u64)
}

/// How many of a layer's blocks have no extra column, so that at least the share `more` of the keys, in parts of 2^32, starts
/// in those that have one. Nobody starts in the last slots.
pub(crate) fn ribbon_plain_blocks(blocks: u64, row_bits: u32, more: u32) -> u64 {
    if more == 0 {
        return blocks;
    }
    let plain = (u128::from(ribbon_starts(blocks, row_bits)) * ((1u128 << 32) - u128::from(more))) >> 32;
    low_u64(plain / 64)
}

/// The rate of those who start in a layer of so many blocks, if they have no fingerprint there.
pub(crate) fn ribbon_layer_fpr(blocks: u64, row_bits: u32, columns: u32, more: u32) -> f64 {
    let starts = ribbon_starts(blocks, row_bits);
    if starts == 0 {
        return 0.0;
    }
    let plain = (64 * ribbon_plain_blocks(blocks, row_bits, more)).min(starts) as f64 / starts as f64;
    libm::scalbn(0.5 + plain / 2.0, -(columns as i32))
}

/// The rate of a shard, from the rates of its layers: the others go on to the next one.
pub(crate) fn ribbon_shard_fpr(layers: impl Iterator<Item = f64>, row_bits: u32) -> f64 {
    let (mut rate, mut reached, mut last) = (0.0, 1.0, 0.0);
    for layer in layers {
        rate += reached * (1.0 - ribbon_bumped(row_bits)) * layer;
        reached *= ribbon_bumped(row_bits);
        last = layer;
    }
    // The last one bumps nobody.
    rate + reached * last
}

/// Blocks of each layer of a shard of a bumped ribbon of so many keys.
fn ribbon_layers(keys: u64, row_bits: u32) -> impl Iterator<Item = (u64, bool)> {
    let (mut left, mut level, mut ended) = (keys, 0, false);
    core::iter::from_fn(move || {
        if ended {
            return None;
        }
        ended = left < RIBBON_LEAST || level == 4;
        let blocks = if ended { ribbon_last_blocks(left, row_bits, 0) } else { ribbon_blocks(left) };
        level += 1;
        left = ribbon_bumped_keys(left, row_bits);
        Some((blocks, ended))
    })
}

/// False-positive rate of a ribbon filter of so many keys: that an absent key has the fingerprint, or the half digest of one
/// of the keys. At most [`ribbon_fpr`], since whole blocks have one column more.
pub(crate) fn ribbon_planned_fpr(keys: u64, row_bits: u32, columns: u32, more: u32) -> f64 {
    let shard = keys.div_ceil(1 << shard_bits(keys));
    let layers =
        ribbon_layers(shard, row_bits).map(|(blocks, _)| ribbon_layer_fpr(blocks, row_bits, columns, more));
    ribbon_shard_fpr(layers, row_bits) + equal_halves(keys)
}

/// The chance that an absent key has the half digest of one of so many.
pub(crate) fn equal_halves(keys: u64) -> f64 {
    libm::scalbn(keys as f64, -64)
}

/// Words that a shard of a bumped ribbon of so many keys takes: the slots of each layer, and two bits for each bucket.
pub(crate) fn ribbon_words(keys: u64, row_bits: u32, columns: u32, more: u32) -> u64 {
    let mut words = 0;
    for (blocks, is_last) in ribbon_layers(keys, row_bits) {
        words += blocks * u64::from(columns) + blocks - ribbon_plain_blocks(blocks, row_bits, more);
        if !is_last {
            words += (blocks * 64).div_ceil(1 << ribbon_bucket_log(row_bits)).div_ceil(32);
        }
    }
    words
}

/// Columns that the rate `p` needs, in parts of 2^32: if it is no power of two, some fingerprints have one bit more than
/// others. At most 32, which may not be enough.
pub(crate) fn ribbon_columns(p: f64) -> u64 {
    // The next power of two above it, exactly: frexp gives p as a number from a half to one, and that power.
    let (fraction, exponent) = libm::frexp(p.clamp(1e-300, 1.0 - f64::EPSILON));
    // p = (2 fraction) 2^(exponent - 1), and the first factor is from 1 to 2: with `more` of them longer it is 2 - more.
    let columns = (-exponent) as u64;
    let more = whole(libm::ceil((2.0 - 2.0 * fraction) * 4_294_967_296.0));
    ((columns << 32) + more).min(32 << 32)
}

/// The most that the false-positive rate of a ribbon filter can be: that an absent key has the fingerprint, or the half
/// digest of one of the keys.
pub fn ribbon_fpr(columns: u32, more: u32, keys: u64) -> f64 {
    let share = f64::from(more) / 4_294_967_296.0;
    libm::scalbn(1.0 - share / 2.0, -(columns as i32)) + equal_halves(keys)
}

/// The rate at which a set within a known universe admits keys that are of neither part of it: the first stage admits one in
/// 2^columns, and the second one in two of them. A set without others has no more to tell them by.
pub fn universe_fpr(columns: u32) -> f64 {
    libm::scalbn(0.5, -(columns as i32))
}

// ---------------------------------------------------------------------------------------------------------
// Cuckoo filters
// ---------------------------------------------------------------------------------------------------------

/// Slots per bucket of a cuckoo filter: the `b` of the paper.
const CUCKOO_SLOTS: u64 = 4;

/// False-positive rate of a cuckoo filter with fingerprints of `width` bits, whose slots are used to the share `load`:
/// `1 - e^(-2 b load / (2^f - 1))`.
///
/// There are `(2^f - 1) buckets / 2` combinations of a fingerprint (not 0, which is an empty slot) and the pair of buckets
/// that it may be in. A key has one of them, and is admitted if a key that is in has the same. 12 bits at a load of 0.95
/// give 0.185 %. The usual formula, `1 - (1 - 1/(2^f - 1))^(2 b load)`, takes the `2 b` slots for independent, which
/// they are not: at 6 bits it is 0.7 % too high. `load` is taken between 0 and 1, `width` as at least 1.
///
/// Source: Fan, Andersen, Kaminsky, Mitzenmacher 2014, section 5.1, for its bound `2b/2^f`; Poisson numbers of keys per
/// combination.
pub fn cuckoo_fpr(width: u32, load: f64) -> f64 {
    cuckoo_fpr_with_slots(width, small(CUCKOO_SLOTS), load)
}

/// [`cuckoo_fpr`] with so many slots per bucket, instead of 4: those of other programs.
pub fn cuckoo_fpr_with_slots(width: u32, slots: u32, load: f64) -> f64 {
    let compared = 2.0 * f64::from(slots) * load.clamp(0.0, 1.0);
    let fingerprints = libm::exp2(f64::from(width.clamp(1, 64))) - 1.0;
    -libm::expm1(-compared / fingerprints)
}

/// Standard deviation of [`cuckoo_fpr`] from one seed to the next, as a share of it, in so many buckets.
///
/// Source: the number of occupied cells when balls are thrown into as many cells as there are combinations; Feller 1950.
pub fn cuckoo_fpr_deviation(width: u32, buckets: u64, load: f64) -> f64 {
    let fingerprints = libm::exp2(f64::from(width.clamp(1, 64))) - 1.0;
    let throws = 2.0 * CUCKOO_SLOTS as f64 * load.clamp(0.0, 1.0) / fingerprints;
    let empty = libm::exp(-throws);
    let variance = (empty - (1.0 + throws) * empty * empty).max(0.0) / (fingerprints * buckets as f64 / 2.0);
    if throws > 0.0 { libm::sqrt(variance) / (1.0 - empty) } else { 0.0 }
}

/// Buckets of a cuckoo filter that takes `n` different keys: an even number, for at least `n / 0.95` slots.
///
/// Small tables fill less evenly. With `n + 8 + 1.5 sqrt(n)` slots, which is the more up to 1100 keys, one filter in some
/// 10^5 refuses a key before it holds `n`: 12 of 4.6 million filters of 15 sizes from 9 to 2000 keys did. Fingerprints of
/// 5 bits are the worst, with 1 in 6600 at 1000 keys.
/// Two buckets take any 8 keys. `n` counts up to 2^48.
///
/// Source: Fan et al. 2014, section 5.1, table 2 for the load of 95 %.
pub fn cuckoo_buckets(n: u64) -> u64 {
    let n = n.min(1 << 48);
    if n <= 2 * CUCKOO_SLOTS {
        return 2;
    }
    let slots = (20 * n).div_ceil(19).max(n + 9 + (9 * n / 4).isqrt());
    2 * slots.div_ceil(2 * CUCKOO_SLOTS)
}

/// Different keys that a cuckoo filter with so many buckets is for: the most with [`cuckoo_buckets`] of at most so many.
/// 0 for fewer than two buckets.
pub fn cuckoo_capacity(buckets: u64) -> u64 {
    let (mut low, mut high) = (0, buckets.min(1 << 47).saturating_mul(CUCKOO_SLOTS) + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if cuckoo_buckets(middle) <= buckets { low = middle } else { high = middle }
    }
    low
}

/// The fewest bits that the fingerprints of `n` different keys need, so that they find room in so many buckets.
///
/// More than 8 keys with one fingerprint and one pair of buckets have no room. There are `(2^f - 1) buckets / 2` such
/// places for the keys, and the width is the least with which some place gets 9 of them with a chance below 10^-6. It is
/// not below 5, since with 4 bits there are too few ways out of a full bucket: of tables for 100 keys one in 5000 refuses
/// one of them. (8 keys always fit.)
///
/// Source: Poisson numbers of keys per place; Fan et al. 2014, section 4.2, on the least length of a fingerprint.
pub fn cuckoo_least_width(n: u64, buckets: u64) -> u32 {
    if n <= 2 * CUCKOO_SLOTS {
        return 4;
    }
    const FACTORIAL_OF_9: f64 = 362_880.0;
    let crowded = |width: u32| {
        let places = (libm::exp2(f64::from(width)) - 1.0) * buckets as f64 / 2.0;
        places * libm::pow(n as f64 / places, 9.0) / FACTORIAL_OF_9
    };
    (5..32).find(|&width| crowded(width) < 1e-6).unwrap_or(32)
}

// ---------------------------------------------------------------------------------------------------------
// Spatial filters
// ---------------------------------------------------------------------------------------------------------

/// What is true of one area of a spatial filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AreaRates {
    /// Cells that have its label.
    pub cells: f64,
    /// The rate at which absent keys are told to be in this area.
    pub fpr: f64,
    /// The share of the cells of its keys that no higher area has taken.
    pub emersion: f64,
    /// Inter-set error: the rate at which its keys are told to be in a higher area.
    pub isep: f64,
    /// The chance that no key of it is.
    pub safeness: f64,
}

/// The rates of areas with so many keys each, lowest label first, in `m` cells: a priori.
///
/// With `N_i` the keys of area `i` and all higher ones and `q(t) = (1 - (1 - 1/m)^(k t))^k`: absent keys get label `i` with
/// `q(N_i) - q(N_(i+1))`, and keys of area `i` a higher one with `q(N_(i+1))`. The first of these sum to `q(N_1)`, the
/// rate of a Bloom filter of all keys.
///
/// Source: Palmieri, Calderoni, Maio, *Spatial Bloom Filters*, 2014; Calderoni, Palmieri, Maio, *Probabilistic Properties of
/// the Spatial Bloom Filters and Their Relevance to Cryptographic Protocols*, 2018.
pub fn spatial_expected(m: u64, k: u32, keys: &[u64]) -> Vec<AreaRates> {
    let mut above = 0.0;
    let mut rates: Vec<AreaRates> = keys
        .iter()
        .rev()
        .map(|&n| {
            let n = n as f64;
            let (taken, filled) = (expected_fill(m, above, k), expected_fill(m, above + n, k));
            above += n;
            let cells = m as f64 * expected_fill(m, n, k) * (1.0 - taken);
            area_rates(k, n, cells, (taken, filled), taken)
        })
        .collect();
    rates.reverse();
    rates
}

/// The same from a filter as it is: a posteriori. For each area its keys, the cells that have its label and, if known, how
/// often a key found the label there already.
///
/// The emersion is the share of the cells that the area's keys wrote, `k n` less those collisions, that still have its
/// label. Where that is unknown, it is the share of all cells that no higher area has: the same but for chance.
///
/// Source: as for [`spatial_expected`].
pub fn spatial_measured(m: u64, k: u32, areas: &[(u64, u64, Option<u64>)]) -> Vec<AreaRates> {
    let mut above = 0.0;
    let share = |cells: f64| if m == 0 { 1.0 } else { (cells / m as f64).min(1.0) };
    let mut rates: Vec<AreaRates> = areas
        .iter()
        .rev()
        .map(|&(n, cells, collisions)| {
            let (n, cells) = (n as f64, cells as f64);
            let (taken, filled) = (share(above), share(above + cells));
            above += cells;
            let written = collisions.map(|collisions| throws(n, k) - collisions as f64);
            let hidden = match written {
                Some(written) if written >= 1.0 => 1.0 - (cells / written).min(1.0),
                _ => taken,
            };
            area_rates(k, n, cells, (taken, filled), hidden)
        })
        .collect();
    rates.reverse();
    rates
}

/// `taken` and `filled` are the shares of all cells that higher areas have, without and with this one; `hidden` is the
/// share of this one's cells that they have.
fn area_rates(k: u32, n: f64, cells: f64, (taken, filled): (f64, f64), hidden: f64) -> AreaRates {
    let isep = fpr_from_fill(hidden, k);
    let safeness = if n > 0.0 { libm::exp(n * libm::log1p(-isep)) } else { 1.0 };
    let fpr = fpr_from_fill(filled, k) - fpr_from_fill(taken, k);
    AreaRates { cells, fpr, emersion: 1.0 - hidden, isep, safeness }
}

// ---------------------------------------------------------------------------------------------------------
// Scalable filters
// ---------------------------------------------------------------------------------------------------------

/// False-positive rate of several filters of which one admits a key: `1 - prod (1 - p_i)`, if their errors are
/// independent. At most the sum of the rates.
///
/// Source: Almeida, Baquero, Preguiça, Hutchison, *Scalable Bloom Filters*, 2007.
pub fn compounded_fpr(rates: impl IntoIterator<Item = f64>) -> f64 {
    // As a sum of logarithms, so that a rate of 1e-20 is not lost in 1 - 1e-20.
    -libm::expm1(rates.into_iter().map(|p| libm::log1p(-p.clamp(0.0, 1.0))).sum())
}

// ---------------------------------------------------------------------------------------------------------
// Windowed filters
// ---------------------------------------------------------------------------------------------------------

/// The most generations that a windowed filter remembers, for each slice that a key is in: so a question runs through
/// at most 4 stretches of `k` slices, and looks at two slices of each or so.
///
/// More of them make slices shorter, and save ever less: at 1 % there are 20.4 bits per key with this limit and 19.7
/// without, at 1e-4 34.6 and 31.9.
pub const WINDOWED_GENERATIONS: u32 = 3;

/// The chance that there are `k` neighbours among slices with these fills, all of which have the bit of an absent key.
///
/// By following how many slices in a row have it, from one end to the other. `k = 0` gives 1.
///
/// Source: Shtul, Baquero, Almeida, *Age-Partitioned Bloom Filters*, 2020.
pub fn run_chance(fills: impl IntoIterator<Item = f64>, k: u32) -> f64 {
    let mut runs = Runs::new(k);
    fills.into_iter().fold(if k == 0 { 1.0 } else { 0.0 }, |_, fill| runs.next(fill))
}

/// Where the last slices in a row with the bit of an absent key may end.
#[derive(Clone)]
struct Runs {
    /// The chance of each number of them below `k`, if there were never `k`.
    chances: Vec<f64>,
    found: f64,
}

impl Runs {
    fn new(k: u32) -> Self {
        let mut chances = vec![0.0; k as usize];
        if let Some(none) = chances.first_mut() {
            *none = 1.0;
        }
        Self { chances, found: if k == 0 { 1.0 } else { 0.0 } }
    }

    /// The chance that there were `k` in a row up to the next slice.
    fn next(&mut self, fill: f64) -> f64 {
        let broken = self.chances.iter().sum::<f64>() * (1.0 - fill);
        self.chances.iter_mut().for_each(|chance| *chance *= fill);
        if let Some(longest) = self.chances.pop() {
            self.found += longest;
            self.chances.insert(0, broken);
        }
        self.found
    }
}

/// False-positive rates of windowed filters that put a key into `k` slices, at the end of a generation, when they are
/// highest: for 1, 2, ... remembered generations, up to [`WINDOWED_GENERATIONS`] times `k`.
///
/// Slice `i`, from the newest, has the keys of `i + 1` generations, and of `k` at most. It is half full with those of
/// `k`: its fill is `1 - 2^(-(i + 1)/k)`. For `k = 8` and 8 generations that gives 1.105 %.
///
/// Source: Shtul, Baquero, Almeida 2020.
pub fn windowed_fprs(k: u32) -> impl Iterator<Item = f64> + Clone {
    let fill = move |slice: u32| -libm::expm1(-LN_2 * f64::from(slice.min(k)) / f64::from(k));
    let mut runs = Runs::new(k);
    (1..=k).for_each(|slice| {
        runs.next(fill(slice));
    });
    (1..=WINDOWED_GENERATIONS * k).map(move |more| runs.next(fill(k + more)))
}

/// Bits of each slice of a windowed filter that puts a key into `k` of them, with `g` keys in a generation: half full
/// with `k g` keys, in whole words.
///
/// One bit more than `k g / ln 2` makes up for the difference between `(1 - 1/m)^n` and `e^(-n/m)`, so that
/// [`windowed_fprs`] is never too low.
pub fn windowed_slice_bits(k: u32, g: u64) -> u64 {
    let bits = whole(libm::ceil(f64::from(k) * g as f64 / LN_2));
    bits.saturating_add(1).checked_next_multiple_of(64).unwrap_or(u64::MAX)
}

/// False-positive rate of a windowed filter at the end of a generation, by its own numbers: `k` slices of `m` bits for a
/// key, `l` generations of `g` keys each remembered.
pub fn windowed_fpr(k: u32, l: u32, g: u64, m: u64) -> f64 {
    let fill = |slice: u32| -libm::expm1(f64::from(slice.min(k)) * g as f64 * libm::log1p(-1.0 / m as f64));
    run_chance((1..=k.saturating_add(l)).map(fill), k)
}

// ---------------------------------------------------------------------------------------------------------
// Shifting filters
// ---------------------------------------------------------------------------------------------------------

/// The most offsets per window that a shifting filter has: with more it errs ever more often.
pub const MAX_SHIFTS: u32 = 3;

/// The bits of a window behind its first one: what one load of 64 bits from any byte on has at least.
const SHIFT_RANGE: u32 = 56;

/// False-positive rate of a shifting filter: `n` keys, each in `k / (t + 1)` windows with `t` offsets, among `m` places at
/// which a window may start.
///
/// For `t = 1` and `p = e^(-k n / m)` it is `(1 - 2 p + p^(2 - 1/112))^(k/2)`: the bits of a pair are both unset a little
/// more often than two bits that have nothing to do with each other, because one key in 56 has the same offset and unset
/// bits at the same distance. 10 bits per key and 8 probes give 0.862 %, a Bloom filter 0.846 %. `t` is taken
/// between 1 and [`MAX_SHIFTS`]. `n <= 0` gives 0 and `m = 0` gives 1.
///
/// Source: Yang et al., *A Shifting Bloom Filter Framework for Set Queries*, 2016, section 3.3, for the structure. Its own
/// formula, [`shifting_fpr_paper`], is 0.7 % higher there. This one counts, by inclusion and exclusion, the windows of other
/// keys that reach the bits of a window.
pub fn shifting_fpr(m: u64, n: f64, k: u32, t: u32) -> f64 {
    shifting_fpr_from_unset(libm::exp(-load(m, n, k)), k, t)
}

/// The same from the share of the bits that are unset.
pub fn shifting_fpr_from_unset(unset: f64, k: u32, t: u32) -> f64 {
    let t = t.clamp(1, MAX_SHIFTS);
    let overlaps = shift_overlaps(t);
    let (unset, bits) = (unset.clamp(0.0, 1.0), t + 1);
    let mut all_set = 0.0;
    for chosen in 0..1u32 << bits {
        let is_chosen = |bit: &u32| chosen >> bit & 1 == 1;
        let shared: f64 = (0..bits)
            .filter(is_chosen)
            .flat_map(|i| (i + 1..bits).filter(is_chosen).map(move |j| (i, j)))
            .map(|(i, j)| overlaps[i as usize][j as usize])
            .sum();
        let throws = f64::from(chosen.count_ones()) - shared / f64::from(bits);
        let sign = if chosen.count_ones() % 2 == 0 { 1.0 } else { -1.0 };
        all_set += sign * libm::pow(unset, throws);
    }
    libm::pow(all_set.clamp(0.0, 1.0), f64::from(k) / f64::from(bits))
}

/// For each two bits of a window (0 is its first), how many pairs of bits of another key's window are as far apart, on
/// average.
fn shift_overlaps(t: u32) -> [[f64; MAX_SHIFTS as usize + 1]; MAX_SHIFTS as usize + 1] {
    let mut overlaps = [[0.0; MAX_SHIFTS as usize + 1]; MAX_SHIFTS as usize + 1];
    if t == 1 {
        // One distance, which is any of 56: known without counting, because every sizing asks often.
        overlaps[0][1] = 1.0 / f64::from(SHIFT_RANGE);
        return overlaps;
    }
    let segment = SHIFT_RANGE / t;
    let range = |bit: u32| if bit == 0 { 0..=0 } else { (bit - 1) * segment + 1..=bit * segment };
    // How likely two bits are so far apart.
    let apart = |i: u32, j: u32| {
        let mut chances = [0.0; SHIFT_RANGE as usize + 1];
        let ways = (range(i).count() * range(j).count()) as f64;
        for from in range(i) {
            range(j).for_each(|to| chances[(to - from) as usize] += 1.0 / ways);
        }
        chances
    };
    let pairs = || (0..=t).flat_map(|i| (i + 1..=t).map(move |j| (i, j)));
    let mut any = [0.0; SHIFT_RANGE as usize + 1];
    for (i, j) in pairs() {
        any.iter_mut().zip(apart(i, j)).for_each(|(any, chance)| *any += chance);
    }
    for (i, j) in pairs() {
        overlaps[i as usize][j as usize] =
            any.iter().zip(apart(i, j)).map(|(any, chance)| any * chance).sum();
    }
    overlaps
}

/// False-positive rate of a shifting filter with one offset, as its paper has it:
/// `((1 - p) (1 - p + p^2 / 56))^(k/2)` with `p = e^(-k n / m)`.
///
/// Source: Yang et al. 2016, equation 1, for windows of 57 bits.
pub fn shifting_fpr_paper(m: u64, n: f64, k: u32) -> f64 {
    let p = libm::exp(-load(m, n, k));
    libm::pow((1.0 - p) * (1.0 - p + p * p / f64::from(SHIFT_RANGE)), f64::from(k) / 2.0)
}

/// The chance that at least one of `places` places, each of which errs with the chance `f`, does: `1 - (1 - f)^places`.
///
/// What an absent key meets in a shifting filter for two sets (3 places) and for counts (as many as the largest count).
pub fn any_of(f: f64, places: u32) -> f64 {
    -libm::expm1(f64::from(places) * libm::log1p(-f.clamp(0.0, 1.0)))
}

/// The share of clear answers of a shifting filter for two sets, to keys of either: `(1 - f)^2`, where `f` is
/// [`bloom_fpr`] of all keys of both. Half full, with `k` probes, `(1 - 2^-k)^2`.
///
/// Source: Yang et al. 2016, section 4.3.
pub fn association_clear(f: f64) -> f64 {
    (1.0 - f) * (1.0 - f)
}

/// The share of clear answers of two Bloom filters, to keys spread evenly over the three parts: `2 (1 - f) / 3`. Whoever
/// is in both is in both filters, which may be an error of either.
///
/// Source: Yang et al. 2016, section 4.3.
pub fn two_blooms_clear(f: f64) -> f64 {
    2.0 / 3.0 * (1.0 - f)
}

/// The chance that a shifting filter for counts up to `most` tells the right one for a key that is in `count` times:
/// `(1 - f)^(most - count)`, where `f` is [`bloom_fpr`] of its different keys. A count of 0 is that of an absent key.
///
/// Source: Yang et al. 2016, section 5.3.
pub fn multiplicity_correct(f: f64, count: u32, most: u32) -> f64 {
    libm::exp(f64::from(most.saturating_sub(count)) * libm::log1p(-f.clamp(0.0, 1.0)))
}

/// The mean of [`multiplicity_correct`] over the counts from 1 to `most`.
pub fn multiplicity_correct_on_average(f: f64, most: u32) -> f64 {
    (1..=most).map(|count| multiplicity_correct(f, count, most)).sum::<f64>() / f64::from(most)
}

// ---------------------------------------------------------------------------------------------------------
// Tables
// ---------------------------------------------------------------------------------------------------------

/// How many of `n` keys of a table find no room, on average: each belongs to one of so many lines of so many slots, and may be in
/// the next `farthest` ones.
///
/// What a line has no room for goes on to the next one, as in a queue. A key that comes finds no room if its line and the next
/// ones are all full, and does not wait then. So their number is the integral of that chance while keys come. It is 10 to 20 %
/// high, because those who find no room are missed in the fullest stretches and not, as here, everywhere.
pub(crate) fn table_crowded(n: u64, lines: u64, slots: u32, farthest: u32) -> f64 {
    // Up to half full there are no stretches of full lines; and after so many lines the queue has forgotten where it began.
    const STEPS: u32 = 8;
    const MEMORY: u64 = 24;
    // A queue is longer than this once in 10^5: at 7 of 8 filled its lengths fall off by a quarter each, whatever the slots.
    const LONGEST: usize = 40;
    let (slots, lines_f, step) = (slots as usize, lines.max(1) as f64, n as f64 / 2.0 / f64::from(STEPS));
    let chance_at = |keys: f64| {
        let arrivals = poisson(keys / lines_f, slots + LONGEST);
        let queued = |waiting: &[f64]| -> Vec<f64> {
            let mut queue = vec![0.0; slots + 2 * LONGEST];
            for (before, chance) in waiting.iter().enumerate() {
                for (more, arrival) in arrivals.iter().enumerate() {
                    queue[before + more] += chance * arrival;
                }
            }
            queue
        };
        let mut waiting = vec![1.0];
        let (mut sum, mut last) = (0.0, 0.0);
        for _ in 0..lines.min(MEMORY) {
            let first = queued(&waiting);
            // Full lines only, from this one on.
            let mut full = first[slots..slots + LONGEST].to_vec();
            for _ in 0..farthest {
                full = queued(&full)[slots..slots + LONGEST].to_vec();
            }
            last = full.iter().sum();
            sum += last;
            let empty: f64 = first[..slots].iter().sum();
            waiting = first[slots..slots + LONGEST].to_vec();
            waiting[0] += empty;
        }
        (sum + last * lines.saturating_sub(MEMORY) as f64) / lines_f
    };
    (0..STEPS).fold(0.0, |crowded, turn| {
        let keys = n as f64 / 2.0 + step * (f64::from(turn) + 0.5) - crowded;
        let ahead = step * chance_at(keys);
        crowded + step * chance_at(keys - ahead / 2.0)
    })
}

/// The chances of 0, 1, ... arrivals, below `len` of them, where so many are expected.
fn poisson(mean: f64, len: usize) -> Vec<f64> {
    let mut chance = libm::exp(-mean);
    let next = |count: usize| {
        let now = chance;
        chance *= mean / (count + 1) as f64;
        now
    };
    (0..len).map(next).collect()
}

/// False-positive rate of a table of `n` keys with `names` names: another key has the name of one of them with the chance
/// `n / names`.
#[must_use]
pub fn table_fpr(n: u64, names: u64) -> f64 {
    // A table may have room for more keys than there are names.
    (n as f64 / names as f64).min(1.0)
}

// ---------------------------------------------------------------------------------------------------------
// Expanding filters
// ---------------------------------------------------------------------------------------------------------

/// The share of its slots up to which an expanding filter fills before it doubles: 9 tenths.
pub const EXPANDING_LOAD: f64 = 0.9;

/// Slots of an expanding filter that takes `n` keys before it doubles: blocks of 64, of which 9 tenths are filled.
/// `n` counts up to 2^48.
pub fn expanding_slots(n: u64) -> u64 {
    (10 * n.clamp(1, 1 << 48)).div_ceil(9).next_multiple_of(64)
}

/// Keys that an expanding filter with so many slots takes before it doubles.
pub fn expanding_capacity(slots: u64) -> u64 {
    slots / 10 * 9 + slots % 10 * 9 / 10
}

/// False-positive rate of an expanding filter with fingerprints of `f` bits that has doubled `doublings` times and has
/// the share `load` of its slots filled, all doublings but the last at a load of the same:
/// `1 - e^(-load (doublings + 2) / 2^(f + 1))`.
///
/// Half of its keys came since the last doubling and have all `f` bits; a quarter came before and have one bit less, and
/// so on: each of these parts adds the same, and the keys of the start as much as two of them. Keys without any bits left,
/// of which there are several copies, are no exception.
///
/// Source: Dayan, Bercea, Reviriego, Pagh, *InfiniFilter: Expanding Filters to Infinity and Beyond*, SIGMOD 2023,
/// section 4.1; Poisson numbers of matches.
pub fn expanding_fpr(f: u32, doublings: u32, load: f64) -> f64 {
    -libm::expm1(-load * (f64::from(doublings) + 2.0) * libm::exp2(-f64::from(f) - 1.0))
}

/// The least bits of a fingerprint with which an expanding filter keeps the rate `p` through so many doublings, also just
/// before the next one; at least 1.
pub fn expanding_fingerprint(p: f64, doublings: u32) -> u32 {
    (1..64).find(|&f| expanding_fpr(f, doublings, EXPANDING_LOAD) <= p).unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProbesRule::{Down, Nearest, Up};

    #[track_caller]
    fn close(got: f64, want: f64, relative: f64) {
        assert!((got - want).abs() <= relative * want.abs(), "got {got:e}, want {want:e}");
    }

    /// Equal to a number that was printed with `digits` significant digits.
    #[track_caller]
    fn printed(got: f64, want: f64, digits: i32) {
        let unit = libm::pow(10.0, libm::floor(libm::log10(want.abs())) - f64::from(digits - 1));
        assert!((got - want).abs() <= 0.500_001 * unit, "got {got:e}, want {want:e}");
    }

    fn mebibytes(bits: u64) -> f64 {
        bits as f64 / 8.0 / 1_048_576.0
    }

    const RATES: [f64; 14] =
        [1e-300, 1e-18, 1e-9, 1e-5, 1e-3, 0.01, 0.03, 0.1, 0.25, 0.36, 0.5, 0.500_001, 0.75, 0.999];

    // Sizing.

    // Groups of 16 places are those of SSE2.
    #[cfg(target_arch = "x86_64")]
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
    fn the_bytes_of_a_hash_set_are_those_of_hashbrown() {
        use std::hash::RandomState;
        type Set<K> = hashbrown::HashSet<K, RandomState>;
        // As many bytes as hashbrown looks at with one instruction.
        const GROUP: u64 = if cfg!(target_feature = "sse2") { 16 } else { 8 };
        for n in (0..40).chain([100, 447, 448, 449, 1000, 57_344, 57_345, 1_000_000]) {
            let size = Set::<u64>::with_capacity_and_hasher(n, RandomState::new()).allocation_size();
            assert_eq!(hash_set_bytes_in_groups(n as u64, 8, GROUP), size as u64, "{n} of 8");
            let size = Set::<[u32; 5]>::with_capacity_and_hasher(n, RandomState::new()).allocation_size();
            assert_eq!(hash_set_bytes_in_groups(n as u64, 20, GROUP), size as u64, "{n} of 20");
        }
        // What is told is that of a machine with 16, on every machine: advice is the same everywhere.
        assert_eq!((hash_set_bytes(10, 20), hash_set_bytes_in_groups(10, 20, 8)), (352, 344));
        assert_eq!(hash_set_bytes(u64::MAX, 8), u64::MAX);
    }

    #[test]
    fn counters_of_four_bits_are_enough() {
        // A half-full filter: the mean of a counter is ln 2.
        let (m, k) = (10_000_000u64, 7);
        let n = m as f64 * LN_2 / f64::from(k);
        let share = |top| counters_at_least(m, n, k, top) / m as f64;
        assert!((share(8) / 7.15e-7 - 1.0).abs() < 1e-3, "{}", share(8));
        assert!((share(16) / 7.07e-17 - 1.0).abs() < 1e-3, "{}", share(16));
        assert!((share(1) - 0.5).abs() < 1e-9 && share(0) == 1.0);
        let bound = counter_overflow_bound(m, n, k, 16);
        assert!((bound / m as f64 / 1.37e-15 - 1.0).abs() < 5e-3, "{bound}");
        // A million keys at 1%, with 7 probes and a mean of 0.73.
        let at = |top| counters_at_least(9_585_058, 1e6, 7, top);
        assert!((at(6) - 1085.0).abs() < 1.0 && (at(8) - 10.1).abs() < 0.1, "{} {}", at(6), at(8));
        assert!((at(15) / 3.3e-8 - 1.0).abs() < 0.02, "{}", at(15));
        // The bound is one, far beyond capacity too, and nothing panics.
        for n in [0.0, 1.0, 1e6, 1e9, f64::INFINITY] {
            for top in [1, 2, 15, 16, 1000] {
                let (expected, bound) =
                    (counters_at_least(1000, n, 7, top), counter_overflow_bound(1000, n, 7, top));
                assert!(expected.min(1.0) <= bound * (1.0 + 1e-12), "{n}, {top}: {expected}, {bound}");
                assert!((0.0..=1000.0).contains(&expected), "{n}, {top}: {expected}");
            }
        }
        assert_eq!((counters_at_least(0, 1e6, 7, 3), counters_at_least(1000, 1e6, 0, 3)), (0.0, 0.0));
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
    fn prime_factors_multiply_to_the_number() {
        assert_eq!(prime_factors(9_646_080), [[2; 12].as_slice(), &[3, 5, 157]].concat());
        assert_eq!(prime_factors(281_474_976_710_597), [281_474_976_710_597], "a prime just below 2^48");
        assert!(prime_factors(0).is_empty() && prime_factors(1).is_empty());
        for number in (1..5000).chain([1 << 48, (1 << 48) - 1, 16_777_213 * 16_777_213]) {
            let factors = prime_factors(number);
            assert_eq!(factors.iter().product::<u64>(), number);
            assert!(factors.is_sorted() && factors.iter().all(|&p| prime_factors(p) == [p]), "{number}");
        }
    }

    #[test]
    fn divisors_are_all_that_divide() {
        for number in (0u64..2000).chain([9600, 30_030, 65_536, 83_160]) {
            let expected: Vec<u64> = (1..=number).filter(|&d| number.is_multiple_of(d)).collect();
            assert_eq!(divisors(number), expected, "{number}");
        }
        assert_eq!(divisors(1 << 48).len(), 49);
        assert_eq!(gcd(0, 0), 0);
        assert_eq!((gcd(12, 18), gcd(7, 0), gcd(0, 7), gcd(1 << 63, 3 << 40)), (6, 7, 7, 1 << 40));
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

    // Rates.

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

    // Cardinality.

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

    // Bounds.

    #[test]
    fn the_lower_bound_and_the_factor_of_bloom() {
        close(lower_bound_bits(1e6, 0.01), 6_643_856.189_774_724, 1e-14);
        close(overhead(9_585_059.0, 1e6, 0.01), 1.0 / LN_2, 1e-6);
        close(overhead(bloom_bits(1_000_000_000, 1e-6) as f64, 1e9, 1e-6), 1.0 / LN_2, 1e-9);
        printed(1.0 / LN_2, 1.44, 3);
    }

    #[test]
    fn the_finite_bound_against_60_digit_arithmetic() {
        for (u, n, p, want) in [
            (20, 5, 0.0, 13.920_352_855_415_08),
            (100, 10, 0.1, 27.481_435_058_060_884),
            (1000, 100, 0.01, 422.467_554_540_445_4),
            (1 << 32, 1_000_000, 0.01, 6_627_353.969_989_486),
            (u64::MAX, 1000, 0.01, 6_643.856_189_774_72),
            (u64::MAX, 1_000_000_000, 1e-5, 16_609_636_564.050_234),
            (1_000_000, 999_999, 0.5, 9.791_532_529_735_127),
            (1_000_000_000_000, 1_000_000, 0.999, 1_443.416_147_598_166_1),
            (1000, 500, 1e-300, 994.690_999_119_232_7),
        ] {
            close(lower_bound_bits_finite(u, n, p), want, 1e-12);
        }
        // It grows with the universe, up to the bound without end.
        let mut before = 0.0;
        for e in 11..64 {
            let bound = lower_bound_bits_finite(1 << e, 1000, 0.01);
            assert!(
                bound >= before * (1.0 - 1e-14) && bound < lower_bound_bits(1000.0, 0.01) * (1.0 + 1e-14)
            );
            before = bound;
        }
    }

    #[test]
    fn hash_widths() {
        printed(hash_width_floor(1e7, 32), 0.0023, 2);
        printed(hash_width_floor(1e8, 32), 0.023, 2);
        printed(hash_width_floor(1e9, 32), 0.208, 3);
        printed(hash_width_floor(1e9, 64), 5.4e-11, 2);
        assert_eq!(hash_width_floor(f64::INFINITY, 64), 1.0);
        assert_eq!(hash_width_floor(1e300, u32::MAX), 0.0);
        printed(hash_width_floor(1.0, 0), 0.632, 3);
    }

    #[test]
    fn the_ladder() {
        printed(one_hash_bitmap_fpr(100_000_000, 2e7), 0.181, 3);
        printed(bloom_fpr(100_000_000, 2e7, best_probes(100_000_000, 20_000_000)), 0.0918, 3);
        assert_eq!(best_probes(100_000_000, 20_000_000), 3);
    }

    #[test]
    fn collisions() {
        printed(some_collision(100_000_000, 10_000), 0.39, 2);
        printed(one_hash_bitmap_fpr(100_000_000, 1e4), 1e-4, 2);
        for (m, n, want) in [
            (2, 2, 0.5),
            (365, 23, 0.507_297_234_323_985_4),
            (100_000_000, 10_000, 0.393_449_121_250_805_9),
            (1 << 40, 5000, 1.136_634_545_524_093_5e-5),
            (1_000_000, 4097, 0.999_775_612_696_640_3),
            (250_000, 4097, 0.999_999_999_999_997_8),
            (u64::MAX, 1 << 20, 2.980_229_352_189_809e-8),
            (u64::MAX, 1 << 32, 0.393_469_340_240_293_6),
            (u64::MAX, 5_000_000_000, 0.492_179_051_811_252_77),
        ] {
            close(some_collision(m, n), want, 1e-13);
        }
        assert_eq!(some_collision(10, 11), 1.0);
        assert_eq!(some_collision(u64::MAX, u64::MAX), 1.0);
        assert_eq!((some_collision(10, 0), some_collision(10, 1), some_collision(0, 1)), (0.0, 0.0, 0.0));
        assert_eq!(some_collision(0, 2), 1.0);
        // The loop and the series meet.
        let (loop_end, series_start) = (some_collision(1 << 30, 4096), some_collision(1 << 30, 4097));
        close(series_start / loop_end, 1.000_485, 1e-5);
    }

    // Edges.

    #[test]
    fn documented_edges() {
        for rule in ProbesRule::ALL {
            for (p, k) in [(f64::NAN, 1), (1.0, 1), (2.0, 1), (f64::INFINITY, 1), (0.5, 1), (0.75, 1)] {
                assert_eq!(bloom_probes(p, rule), k, "{p}");
            }
            for p in [0.0, -0.0, -1.0, f64::NEG_INFINITY, 1e-300, f64::from_bits(1)] {
                assert_eq!(bloom_probes(p, rule), MAX_PROBES, "{p}");
            }
            assert_eq!(bloom_probes_for_bits(10, 0, rule), MAX_PROBES);
            assert_eq!(bloom_probes_for_bits(0, 0, rule), 1);
            assert_eq!(bloom_probes_for_bits(0, 10, rule), 1);
        }
        for p in [1.0, 7.0, f64::INFINITY, f64::NAN] {
            assert_eq!((bloom_bits(1 << 63, p), bloom_bits_for_probes(1 << 63, p, 0)), (1, 1));
            assert_eq!(bloom_capacity(1, p), u64::MAX);
            assert_eq!(bloom_capacity_for_probes(1, p, 7), u64::MAX);
            assert_eq!((bloom_capacity(0, p), bloom_capacity_for_probes(0, p, 7)), (0, 0));
        }
        for p in [0.0, -1.0, f64::NEG_INFINITY] {
            assert_eq!((bloom_bits(1, p), bloom_bits_for_probes(1, p, 7)), (u64::MAX, u64::MAX));
            assert_eq!(
                (bloom_bits_for_probes(1, p, 64), bloom_capacity_for_probes(1 << 63, p, 64)),
                (u64::MAX, 0)
            );
            assert_eq!((bloom_bits_for_probes(0, p, 64), bloom_bits_for_probes(0, p, 0)), (1, u64::MAX));
            assert_eq!((bloom_capacity(u64::MAX, p), bloom_capacity_for_probes(u64::MAX, p, 7)), (0, 0));
        }
        assert_eq!((bloom_bits(0, 0.01), bloom_bits(0, 0.0), bloom_bits_for_probes(0, 0.01, 7)), (1, 1, 1));
        assert_eq!(bloom_bits_for_probes(1, 0.01, 0), u64::MAX);
        assert_eq!(bloom_capacity_for_probes(1000, 0.01, 0), 0);
        assert_eq!(bloom_bits(u64::MAX, 0.01), u64::MAX);
        assert_eq!(bloom_bits(1 << 63, 1e-300), u64::MAX);
        assert_eq!((bloom_bits_guava(0, 0.01), bloom_bits_guava(1, 0.9)), (9, 0));
        assert_eq!((bloom_bits_guava(u64::MAX, 0.01), bloom_bits_guava(1, f64::NAN)), (i64::MAX as u64, 0));
        assert_eq!((bloom_bits_guava(1, 2.0), bloom_bits_guava(1, 0.0)), (0, 1549));
        assert_eq!(
            (best_probes(0, 0), best_probes(0, 9), best_probes(9, 0), best_probes(1 << 63, 1)),
            (1, 1, 1, 64)
        );
        assert_eq!(
            (least_probes(0, 1, 0.5), least_probes(1, 0, 0.0), least_probes(9, 1, f64::NAN)),
            (None, Some(1), None)
        );

        for fpr in [bloom_fpr, bloom_fpr_textbook] {
            assert_eq!((fpr(100, 0.0, 7), fpr(100, -5.0, 7), fpr(100, f64::INFINITY, 7)), (0.0, 0.0, 1.0));
            assert_eq!((fpr(0, 0.0, 7), fpr(0, 5.0, 7), fpr(100, 5.0, 0)), (1.0, 1.0, 1.0));
            assert_eq!((fpr(1, 0.0, 7), fpr(1, 50.0, 7)), (0.0, 1.0));
            assert!(fpr(100, f64::NAN, 7).is_nan());
        }
        assert_eq!(
            (bloom_fpr_exact(0, 1, 1), bloom_fpr_exact(1, 1, 0), bloom_fpr_exact(9, 0, 3)),
            (1.0, 1.0, 0.0)
        );
        assert_eq!(bloom_fpr_exact(1 << 8, u32::MAX, u32::MAX), 1.0);
        assert_eq!((fpr_from_fill(-1.0, 2), fpr_from_fill(2.0, 2), fpr_from_fill(0.0, 0)), (0.0, 1.0, 1.0));
        assert!(fpr_from_fill(f64::NAN, 2).is_nan());
        assert_eq!(
            (expected_fill(0, 1.0, 1), expected_fill(1, 0.0, 1), expected_fill(1, 1.0, 1)),
            (1.0, 0.0, 1.0)
        );
        for deviation in [fill_deviation, fpr_deviation] {
            assert_eq!(
                (deviation(100, 0.0, 7), deviation(100, 9.0, 0), deviation(0, 9.0, 7)),
                (0.0, 0.0, 0.0)
            );
            assert_eq!(deviation(100, f64::INFINITY, 7), 0.0);
            assert!(deviation(100, f64::NAN, 7).is_nan());
        }
        assert_eq!(estimated_len_deviation(100, 0.0, 7), 0.0);
        assert_eq!(estimated_len_deviation(100, f64::INFINITY, 7), f64::INFINITY);
        assert_eq!(
            (estimated_len_deviation(0, 1.0, 7), estimated_len_deviation(9, 1.0, 0)),
            (f64::INFINITY, f64::INFINITY)
        );
        assert_eq!(
            (estimated_len(0, 0, 0), estimated_len(0, 1, 1), estimated_len(9, 1, 0)),
            (0.0, f64::INFINITY, f64::INFINITY)
        );

        assert_eq!(
            (lower_bound_bits(0.0, 0.0), lower_bound_bits(9.0, 1.0), lower_bound_bits(9.0, 0.0)),
            (0.0, 0.0, f64::INFINITY)
        );
        assert!(lower_bound_bits(9.0, f64::NAN).is_nan() && lower_bound_bits(f64::NAN, 0.1).is_nan());
        assert_eq!((lower_bound_bits_finite(0, 0, 0.1), lower_bound_bits_finite(5, 9, 0.1)), (0.0, 0.0));
        assert_eq!((lower_bound_bits_finite(9, 5, 1.0), lower_bound_bits_finite(9, 9, 0.0)), (0.0, 0.0));
        assert_eq!(lower_bound_bits_finite(20, 5, -3.0), lower_bound_bits_finite(20, 5, 0.0));
        assert!(lower_bound_bits_finite(20, 5, f64::NAN).is_nan());
        assert_eq!(overhead(10.0, 1.0, 1.0), f64::INFINITY);
        assert!(overhead(0.0, 0.0, 0.1).is_nan());
        assert!(hash_width_floor(f64::NAN, 32).is_nan());
        assert_eq!(hash_width_floor(-1.0, 32), 0.0);
    }

    #[test]
    fn no_input_panics_or_hangs_or_leaves_its_range() {
        let floats = [
            f64::NAN,
            f64::NEG_INFINITY,
            -1e300,
            -1.0,
            -0.0,
            0.0,
            f64::from_bits(1),
            1e-300,
            1e-17,
            0.01,
            0.5,
            0.999_999_999_999_999_9,
            1.0,
            7.5,
            1e9,
            9_223_372_036_854_775_808.0,
            1e300,
            f64::INFINITY,
        ];
        let wholes = [0, 1, 2, 3, 63, 64, 1000, 1 << 32, (1 << 53) + 1, 1 << 63, u64::MAX - 1, u64::MAX];
        let probes = [0, 1, 2, 7, 64, 65, 1000, u32::MAX];
        let share = |x: f64| assert!(x.is_nan() || (0.0..=1.0).contains(&x), "{x}");
        let amount = |x: f64| assert!(x.is_nan() || x >= 0.0, "{x}");
        for a in wholes {
            for x in floats {
                bloom_probes(x, Up);
                assert!(bloom_bits(a, x) >= 1);
                bloom_bits_guava(a, x);
                bloom_capacity(a, x);
                amount(lower_bound_bits(a as f64, x));
                overhead(a as f64, a as f64, x);
                share(one_hash_bitmap_fpr(a, x));
                for k in probes {
                    assert!(bloom_bits_for_probes(a, x, k) >= 1);
                    bloom_capacity_for_probes(a, x, k);
                    share(bloom_fpr(a, x, k));
                    share(bloom_fpr_textbook(a, x, k));
                    share(expected_fill(a, x, k));
                    share(fpr_from_fill(x, k));
                    share(hash_width_floor(x, k));
                    amount(fill_deviation(a, x, k));
                    amount(fpr_deviation(a, x, k));
                    amount(estimated_len_deviation(a, x, k));
                    share(fpr_second_order(a, x, k));
                }
            }
            for b in wholes {
                assert!((1..=MAX_PROBES).contains(&best_probes(a, b)));
                share(some_collision(a, b));
                for x in floats {
                    least_probes(a, b, x);
                    amount(lower_bound_bits_finite(a, b, x));
                }
                for k in probes {
                    amount(estimated_len(a, b, k));
                    amount(intersection_len(a, b, b, a, k));
                    // `bloom_fpr_exact` takes up to a second, so it meets fewer sizes.
                    if (b <= 64 || b > 1 << 53) && (a <= 64 || a > 1 << 53) {
                        share(bloom_fpr_exact(a as u32, b as u32, k));
                    }
                }
            }
        }
    }

    // Sizes for a rate, computed independently with the joint occupancy of the two words of a pair (a short
    // numerical program in another language), and the values of the literature for the split block.
    #[test]
    fn blocked_filters_need_the_bits_that_the_mixture_says() {
        let line = |full, half| BlockShape::Line { full, half };
        let cases = [
            (line(0, true), 0.1, 4.89),
            (line(0, true), 0.03, 7.56),
            (line(1, false), 0.01, 10.10),
            (line(1, false), 0.001, 15.72),
            (line(1, true), 1e-4, 22.09),
            (line(1, true), 1e-5, 30.08),
            (line(2, false), 1e-5, 30.00),
            (line(2, false), 1e-6, 39.01),
            (line(2, true), 1e-7, 50.32),
            (BlockShape::Split, 0.1, 5.99),
            (BlockShape::Split, 0.01, 10.53),
            (BlockShape::Split, 0.001, 16.89),
        ];
        for (shape, p, bits) in cases {
            let n = 10_000_000;
            let blocks = blocked_blocks(shape, n, p);
            let found = (blocks * shape.bits()) as f64 / n as f64;
            assert!((found - bits).abs() < 0.011, "{shape:?} at {p}: {found} bits per key, expected {bits}");
            let capacity = blocked_capacity(shape, blocks, p);
            assert!((n..n + n / 10_000).contains(&capacity), "{shape:?} at {p}: {capacity}");
        }
    }

    #[test]
    fn blocked_rates_have_their_ends_and_no_panics() {
        let shape = BlockShape::Line { full: 1, half: true };
        let rates = block_rates(shape, 700);
        assert!(rates[0] == 0.0 && rates.is_sorted() && rates[699] <= 1.0);
        for n in [f64::NAN, -1.0, 0.0] {
            assert_eq!(blocked_fpr(&rates, 10, n), 0.0);
        }
        assert_eq!(blocked_fpr(&rates, 10, f64::INFINITY), 1.0);
        assert_eq!(blocked_fpr(&rates, 1, 5.0), rates[5]);
        assert!(blocked_fpr(&[], 10, 5.0) <= 1.0);
        for p in [f64::NAN, 0.0, 1.0, 1e-300] {
            assert!(blocked_blocks(shape, u64::MAX, p) >= 1 && blocked_capacity(shape, 1, p) <= 600);
        }
        let estimated = blocked_estimated_len(shape, 1000, 1000 * 512);
        assert!(estimated.is_infinite() && estimated > 0.0);
        assert_eq!(blocked_estimated_len(shape, 1000, 0), 0.0);
    }

    // Cuckoo filters.

    #[test]
    fn cuckoo_rates_are_those_of_the_formula() {
        // CKO-1: fingerprints of 8, 12 and 16 bits at a load of 0.95.
        for (width, want) in [(8, 0.0294), (12, 0.00185), (16, 1.16e-4)] {
            printed(cuckoo_fpr(width, 0.95), want, 3);
        }
        close(cuckoo_fpr(12, 1.0), 8.0 / 4095.0, 1e-3);
        assert_eq!(cuckoo_fpr(12, 0.0), 0.0);
        assert_eq!(cuckoo_fpr(12, -1.0), 0.0);
        assert_eq!(cuckoo_fpr(12, 7.0), cuckoo_fpr(12, 1.0));
        assert_eq!(cuckoo_fpr(0, 1.0), cuckoo_fpr(1, 1.0));
        // Two keys of one combination are one hit: with few throws the deviation is 1 / sqrt(2 combinations).
        close(cuckoo_fpr_deviation(12, 1 << 16, 0.95), 1.0 / libm::sqrt(4095.0 * 65_536.0), 0.01);
        assert_eq!(cuckoo_fpr_deviation(12, 100, 0.0), 0.0);
    }

    #[test]
    fn cuckoo_buckets_cost_at_most_6_percent_from_1130_keys_on() {
        assert_eq!([1, 8, 9].map(cuckoo_buckets), [2, 2, 6]);
        // A million keys in 263,158 buckets.
        assert_eq!(cuckoo_buckets(1_000_000), 263_158);
        for n in (1130..20_000).chain((20_000..300_000_000).step_by(999_983)) {
            let slots = (4 * cuckoo_buckets(n)) as f64;
            assert!(slots >= n as f64 / 0.95 && slots <= 1.06 * n as f64, "{n} keys take {slots} slots");
        }
        for n in 1..20_000 {
            assert!(cuckoo_buckets(n).is_multiple_of(2) && cuckoo_buckets(n) <= cuckoo_buckets(n + 1));
        }
        assert!(cuckoo_buckets(u64::MAX) == cuckoo_buckets(1 << 48));
    }

    #[test]
    fn cuckoo_capacity_is_the_inverse() {
        assert_eq!([0, 1, 2, 3].map(cuckoo_capacity), [0, 0, 8, 8]);
        for buckets in (2..3000).chain([263_158, 2_631_580, 1 << 40]) {
            let n = cuckoo_capacity(buckets);
            assert!(cuckoo_buckets(n) <= buckets && cuckoo_buckets(n + 1) > buckets, "{buckets}");
        }
        assert!(cuckoo_capacity(u64::MAX) > 0);
    }

    #[test]
    fn more_keys_need_longer_fingerprints() {
        let width = |n| cuckoo_least_width(n, cuckoo_buckets(n));
        assert_eq!(
            [8, 9, 20_000, 100_000, 7_000_000, 20_000_000, 3_000_000_000].map(width),
            [4, 5, 5, 6, 6, 7, 8]
        );
        assert_eq!(cuckoo_least_width(u64::MAX, 2), 32);
    }

    #[test]
    fn rates_of_layers_add_up() {
        assert_eq!(compounded_fpr([]), 0.0);
        assert_eq!(compounded_fpr([0.5, 0.5]), 0.75);
        assert_eq!(compounded_fpr([1e-20, 1e-20]), 2e-20);
        assert_eq!(compounded_fpr([0.1, 1.0]), 1.0);
        // A scalable filter at 1% with a tightening of 0.85, grown for ever.
        let rates = (0..1000).map(|layer| 0.01 * 0.15 * libm::pow(0.85, f64::from(layer)));
        assert!((0.0099..0.01).contains(&compounded_fpr(rates)));
    }

    /// By looking at every combination of slices.
    fn run_chance_by_cases(fills: &[f64], k: u32) -> f64 {
        let cases = 0u32..1 << fills.len();
        let has_run =
            |case: &u32| (0..fills.len() as u32).any(|at| case >> at & ((1 << k) - 1) == (1 << k) - 1);
        let chance = |case: u32| -> f64 {
            let one = |(at, fill): (usize, &f64)| if case >> at & 1 == 1 { *fill } else { 1.0 - fill };
            fills.iter().enumerate().map(one).product()
        };
        cases.filter(has_run).map(chance).sum()
    }

    #[test]
    fn the_chance_of_a_run_is_that_of_all_cases() {
        let fills = [0.1, 0.9, 0.5, 0.75, 0.25, 0.6, 0.4, 1.0, 0.3];
        for len in 0..=fills.len() {
            for k in 1..=len as u32 + 1 {
                let (found, expected) =
                    (run_chance(fills[..len].iter().copied(), k), run_chance_by_cases(&fills[..len], k));
                assert!((found - expected).abs() < 1e-12, "{len} slices, {k} in a row: {found}, {expected}");
            }
        }
        assert_eq!((run_chance([], 0), run_chance([0.5], 0), run_chance([], 3)), (1.0, 1.0, 0.0));
    }

    /// FGT-1, by the formula.
    #[test]
    fn fgt_1_rates_at_the_end_of_a_generation() {
        for (k, l, rate) in [(7, 5, 0.01283), (8, 8, 0.01105), (10, 7, 0.001474), (13, 20, 8.4e-4)] {
            let found = windowed_fprs(k).nth(l as usize - 1).unwrap();
            assert!((found / rate - 1.0).abs() < 0.005, "k = {k}, l = {l}: {found}");
            for g in [1, 2, 10, 1000, 1_000_000] {
                let exact = windowed_fpr(k, l, g, windowed_slice_bits(k, g));
                assert!(exact <= found, "k = {k}, l = {l}, g = {g}: {exact}");
                assert!(g < 1_000_000 || exact > 0.9999 * found);
            }
        }
    }

    #[test]
    fn shifting_rates_are_those_of_the_paper_and_of_simulations() {
        // 10 bits per key, 8 probes: the paper, and what was measured.
        close(shifting_fpr_paper(200_000, 2e4, 8), 0.008679, 1e-4);
        close(shifting_fpr(200_000, 2e4, 8, 1), 0.008618, 1e-4);
        close(bloom_fpr(200_000, 2e4, 8), 0.008455, 1e-4);
        close(shifting_fpr(1_200_000, 1e5, 8, 1), 0.003227, 1e-3);
        close(shifting_fpr(1_600_000, 1e5, 12, 1), 4.81e-4, 1e-3);
        // In closed form.
        let p = libm::exp(-0.8);
        close(
            shifting_fpr(1_000_000, 1e5, 8, 1),
            libm::pow(1.0 - 2.0 * p + libm::pow(p, 2.0 - 1.0 / 112.0), 4.0),
            1e-12,
        );
        // More offsets: simulated 0.00927 and 0.01013.
        close(shifting_fpr(1_000_000, 1e5, 6, 2), 0.00927, 2e-3);
        close(shifting_fpr(1_000_000, 1e5, 8, 3), 0.01013, 2e-3);
        // At the best load the paper's rate is 0.6204 to the power of the bits per key.
        let best = (1..=40).map(|k| shifting_fpr_paper(2_000_000, 1e5, k)).fold(1.0, f64::min);
        close(libm::pow(best, 1.0 / 20.0), 0.6204, 1e-4);
    }

    #[test]
    fn shifting_rates_have_ends() {
        for t in 1..=MAX_SHIFTS {
            for k in [2, 6, 12, 60] {
                assert_eq!((shifting_fpr(0, 5.0, k, t), shifting_fpr(100, 0.0, k, t)), (1.0, 0.0));
                assert!(shifting_fpr(100, 1e9, k, t) > 0.999_999);
                let mut before = 1.0;
                for m in (1..2000).step_by(7) {
                    let rate = shifting_fpr(m, 100.0, k, t);
                    assert!(
                        (0.0..=1.0).contains(&rate) && rate <= before,
                        "t {t}, k {k}, m {m}: {rate} after {before}"
                    );
                    before = rate;
                }
            }
        }
    }

    #[test]
    fn clear_and_correct_answers_are_those_of_the_paper() {
        for (k, clear, two) in [(10, 0.99805, 0.666), (8, 0.9922, 0.664), (5, 0.9385, 0.6458)] {
            let f = libm::exp2(-f64::from(k));
            close(association_clear(f), clear, 1e-4);
            close(two_blooms_clear(f), two, 1e-3);
            close(any_of(f, 3), 3.0 * f, 0.04);
        }
        for (m, k, most, member, alien) in [
            (1_154_156, 8, 57, 0.898, 0.800),
            (1_731_234, 8, 57, 0.990, 0.980),
            (1_731_234, 12, 57, 0.993, 0.986),
            (1_154_156, 8, 16, 0.971, 0.939),
        ] {
            let f = bloom_fpr(m, 1e5, k);
            close(multiplicity_correct_on_average(f, most), member, 1e-3);
            close(multiplicity_correct(f, 0, most), alien, 1e-3);
            close(multiplicity_correct(f, 0, most), 1.0 - any_of(f, most), 1e-9);
            assert_eq!(multiplicity_correct(f, most, most), 1.0);
        }
    }
}
