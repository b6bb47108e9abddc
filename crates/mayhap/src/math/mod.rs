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
//! A later version may refine values: do not rely on their last digits.
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

mod blocked;
mod bloom;
mod bounds;
mod cuckoo;
mod dleft;
mod expanding;
mod scalable;
mod shifting;
mod spatial;
mod statics;
mod table;
pub(crate) mod whole_numbers;
mod windowed;

pub use blocked::*;
pub use bloom::*;
pub use bounds::*;
pub use cuckoo::*;
pub use dleft::*;
pub use expanding::*;
pub use scalable::*;
pub use shifting::*;
pub use spatial::*;
pub use statics::*;
pub use table::*;
pub(crate) use whole_numbers::*;
pub use windowed::*;

/// The most probes that any rule here returns.
///
/// 64 probes are the best number for a rate of `2^-64`, which is where a 64-bit hash ends anyway.
pub const MAX_PROBES: u32 = 64;

/// `2^64`, the first `f64` that does not fit a `u64`.
const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
mod tests {
    use super::bloom::fpr_second_order;
    use super::*;
    use ProbesRule::Up;

    #[track_caller]
    pub(super) fn close(got: f64, want: f64, relative: f64) {
        assert!((got - want).abs() <= relative * want.abs(), "got {got:e}, want {want:e}");
    }

    /// Equal to a number that was printed with `digits` significant digits.
    #[track_caller]
    pub(super) fn printed(got: f64, want: f64, digits: i32) {
        let unit = libm::pow(10.0, libm::floor(libm::log10(want.abs())) - f64::from(digits - 1));
        assert!((got - want).abs() <= 0.500_001 * unit, "got {got:e}, want {want:e}");
    }

    pub(super) const RATES: [f64; 14] =
        [1e-300, 1e-18, 1e-9, 1e-5, 1e-3, 0.01, 0.03, 0.1, 0.25, 0.36, 0.5, 0.500_001, 0.75, 0.999];

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
}
