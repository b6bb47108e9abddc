//! Lower bounds, and the hash sets, bitmaps and counters that filters are compared with.

use core::f64::consts::LN_2;

use super::bloom::{bloom_fpr, load};
use crate::narrow::whole_u32;

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
/// Source: throws into urns, as in [`expected_fill`](super::expected_fill).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::tests::{close, printed};
    use crate::math::*;

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
}
