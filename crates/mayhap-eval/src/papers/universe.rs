//! Sets within a known universe: no wrong answer about any key of it.

use mayhap::filters::universe::Overlap;
use mayhap::{BuildError, Error, Spec, Universe};

use super::{admitted, denied, keys, none_denied};
use crate::Finding;

pub(super) fn cas_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "CAS-1";
    const SET: u64 = 10_000;
    const ALL: u64 = SET + 1_000_000;
    const SHARED: u64 = 10;
    let set = keys(seed, 0..SET);
    let universe = Universe::build_with(&set, &keys(seed, SET..ALL), &Spec::new(), Overlap::Refused, 1)?;
    let planned =
        Spec::new().with_capacity(SET).with_others(ALL - SET).universe()?.bits() as f64 / SET as f64;
    let per_key = universe.bits() as f64 / SET as f64;
    let strangers = admitted(&universe, seed, SET..ALL).hits;
    let overlap = match Universe::of_sets(&set, &keys(seed, SET - SHARED..ALL)) {
        Err(BuildError::Overlap { keys }) => keys,
        Err(other) => return Err(other.into()),
        Ok(_) => 0,
    };
    Ok(vec![
        none_denied(NAME, denied(&universe, seed, 0..SET)),
        Finding::exactly(NAME, "keys that are not in, and admitted", 0.0, strangers as f64),
        Finding::between(NAME, "bits per key of the set", planned, 0.0..=9.0, per_key),
        Finding::exactly(NAME, "keys of both, found and refused", SHARED as f64, overlap as f64),
    ])
}
