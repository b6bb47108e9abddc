//! Spatial filters.

use alloc::vec::Vec;

use super::bloom::{expected_fill, fpr_from_fill, throws};

/// What is true of one area of a spatial filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
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
