//! Counting Bloom filters.

use mayhap::{Counting, Error, Spec, math};

use super::{absent, admitted, as_reported, denied, insert, key, keys, none_denied};
use crate::{Finding, Proportion};

/// As many counters as Guava takes bits for a million keys at 1 %.
const CELLS: u64 = 9_585_058;
const PROBES: u32 = 7;

fn empty() -> Result<Counting, Error> {
    let spec =
        Spec::new().with_capacity(1_000_000).with_bits(4 * CELLS).with_probes(PROBES).with_counter_bits(4);
    Ok(Counting::from_spec(&spec)?)
}

/// How many counters are at least so high.
fn at_least(filter: &Counting, least: u64) -> f64 {
    (0..filter.cells()).filter(|&place| filter.counter(place) >= Some(least)).count() as f64
}

pub(super) fn cbf_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "CBF-1";
    let mut filter = empty()?;
    insert(&mut filter, seed, 0..1_000_000)?;
    let rate = |what, keys, asked| {
        let (fpr, rho) = (math::bloom_fpr(CELLS, keys, PROBES), math::fpr_deviation(CELLS, keys, PROBES));
        Finding::rate(NAME, what, fpr, rho, asked)
    };
    let asked = admitted(&filter, seed, absent(4_000_000));
    let expected = |least| math::counters_at_least(CELLS, 1e6, PROBES, least);
    let mut findings = vec![
        none_denied(NAME, denied(&filter, seed, 0..1_000_000)),
        Finding::exactly(NAME, "saturated counters", 0.0, filter.saturated() as f64),
        Finding::between(NAME, "counters of 8 or more", expected(8), 0.0..=25.0, at_least(&filter, 8)),
        Finding::within(NAME, "counters of 6 or more", expected(6), 140.0, at_least(&filter, 6)),
        rate("false positives", 1e6, asked),
        as_reported(NAME, "false positives", filter.fpr(), asked),
    ];

    let stays = |index: &u64| index.is_multiple_of(2);
    let leaving: Vec<u64> =
        (0..1_000_000).filter(|index| !stays(index)).map(|index| key(seed, index)).collect();
    let mut removed = Vec::new();
    filter.remove_all(&leaving, &mut removed);
    let staying: Vec<u64> = (0..1_000_000).filter(stays).map(|index| key(seed, index)).collect();
    let mut hits = Vec::new();
    filter.contains_each(&staying, &mut hits);
    let mut fresh = empty()?;
    fresh.insert_all(&staying);
    let unlike = (0..CELLS).filter(|&place| filter.counter(place) != fresh.counter(place)).count();
    let kept = removed.iter().filter(|removed| !removed.is_removed()).count() as f64;
    let denied = hits.iter().filter(|&&hit| !hit).count() as f64;
    findings.extend([
        Finding::exactly(NAME, "keys of the half that leaves, not removed", 0.0, kept),
        Finding::exactly(NAME, "keys of the half that stays, denied", 0.0, denied),
        rate("false positives, half of the keys removed", 5e5, admitted(&filter, seed, absent(4_000_000))),
        Finding::exactly(NAME, "counters unlike those of the half that stays", 0.0, unlike as f64),
    ]);
    Ok(findings)
}

pub(super) fn cbf_2(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "CBF-2";
    let mut filter = empty()?;
    insert(&mut filter, seed, 0..1_000_000)?;
    let mut removed = Vec::new();
    filter.remove_all(&keys(seed, absent(100_000)), &mut removed);
    let accepted = Proportion {
        hits: removed.iter().filter(|removed| removed.is_removed()).count() as u64,
        trials: removed.len() as u64,
    };
    let fpr = math::bloom_fpr(CELLS, 1e6, PROBES);
    let measured = accepted.hits as f64 / accepted.trials as f64;
    Ok(vec![Finding::within(NAME, "absent keys that are removed", fpr, 0.0013, measured)])
}

pub(super) fn cbf_3(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "CBF-3";
    let mut filter = Counting::new(1000, 0.01)?;
    let often = [key(seed, 0); 20];
    filter.insert_all(&often);
    filter.remove_all(&often, &mut Vec::new());
    let left = f64::from(u8::from(filter.contains(often[0])));
    Ok(vec![Finding::exactly(NAME, "keys left of one, inserted and removed 20 times", 1.0, left)])
}
