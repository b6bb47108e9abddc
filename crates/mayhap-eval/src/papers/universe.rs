//! Sets within a known universe: no wrong answer about any key of it.

use mayhap::{BuildError, Error, Layout, Overlap, Spec, Universe};

use super::{admitted, denied, keys, none_denied};
use crate::Finding;

pub(super) fn cas_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "CAS-1";
    const SHARED: u64 = 10;
    let (mut findings, mut missed, mut strangers) = (Vec::new(), 0, 0);
    // Chance decides whether a small set takes one block of slots more.
    for (set, others, most, above_formula, off_plan) in [
        (10_000u64, 1_000_000u64, 9.0, 1.1, 0.01),
        (100_000, 1_000_000, 5.7, 1.1, 0.01),
        (50_000, 60_000, 2.4, 1.1, 0.01),
        (1000, 999_000, 13.5, 1.2, 0.02),
    ] {
        let (members, rest) = (keys(seed, 0..set), keys(seed, set..set + others));
        for layout in Layout::ALL {
            let spec = Spec::new().with_layout(layout);
            let universe = Universe::build_with(&members, &rest, &spec, Overlap::Refused, 1)?;
            let setting = format!("{set} keys among {others} others, {}", layout.name());
            let planned = spec.with_capacity(set).with_others(others).universe()?.bits() as f64 / set as f64;
            let per_key = universe.bits() as f64 / set as f64;
            let formula = 1.01 * ((others as f64 / set as f64).log2() + 2.0);
            let most = f64::min(most, above_formula * formula);
            let what = format!("bits per key of the set, {setting}");
            findings.push(Finding::between(NAME, what, formula, 0.0..=most, per_key));
            let what = format!("bits, of the plan, {setting}");
            findings.push(Finding::within(NAME, what, 1.0, off_plan, planned / per_key));
            missed += denied(&universe, seed, 0..set);
            strangers += admitted(&universe, seed, set..set + others).hits;
        }
    }
    let overlap = match Universe::of_sets(&keys(seed, 0..10_000), &keys(seed, 10_000 - SHARED..50_000)) {
        Err(BuildError::Overlap { keys }) => keys,
        Err(other) => return Err(other.into()),
        Ok(_) => 0,
    };
    findings.extend([
        none_denied(NAME, missed),
        Finding::exactly(NAME, "keys that are not in, and admitted", 0.0, strangers as f64),
        Finding::exactly(NAME, "keys of both, found and refused", SHARED as f64, overlap as f64),
    ]);
    Ok(findings)
}
