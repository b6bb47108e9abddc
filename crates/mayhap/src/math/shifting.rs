//! Shifting filters: membership, association, multiplicity.

use super::bloom::load;

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
/// [`bloom_fpr`](super::bloom_fpr) of all keys of both. Half full, with `k` probes, `(1 - 2^-k)^2`.
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
/// `(1 - f)^(most - count)`, where `f` is [`bloom_fpr`](super::bloom_fpr) of its different keys. A count of 0 is that of an absent key.
///
/// Source: Yang et al. 2016, section 5.3.
pub fn multiplicity_correct(f: f64, count: u32, most: u32) -> f64 {
    libm::exp(f64::from(most.saturating_sub(count)) * libm::log1p(-f.clamp(0.0, 1.0)))
}

/// The mean of [`multiplicity_correct`] over the counts from 1 to `most`.
pub fn multiplicity_correct_on_average(f: f64, most: u32) -> f64 {
    (1..=most).map(|count| multiplicity_correct(f, count, most)).sum::<f64>() / f64::from(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::tests::close;
    use crate::math::*;

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
