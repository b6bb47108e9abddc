//! Windowed filters: runs of slices.

use alloc::vec;
use alloc::vec::Vec;
use core::f64::consts::LN_2;

use crate::narrow::whole;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
