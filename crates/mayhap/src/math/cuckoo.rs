//! Cuckoo filters.

use crate::narrow::small;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::tests::{close, printed};

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
}
