//! Age-partitioned filters: what came lately.

use mayhap::{Error, Windowed, math};

use super::{RHO, admitted, insert};
use crate::{ABSENT, Finding, Proportion};

pub(super) fn fgt_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "FGT-1";
    const GENERATION: u64 = 5000;
    const ASKED: u64 = 150_000;
    let (mut findings, mut missed) = (Vec::new(), 0);
    for (probes, generations, simulated) in
        [(7, 5, 0.01278), (8, 8, 0.01103), (10, 7, 0.001465), (13, 20, 8.3e-4)]
    {
        let mut filter = Windowed::with_slices(probes, generations, GENERATION)?;
        let slices = u64::from(probes + generations);
        let mut counted = Proportion { hits: 0, trials: 0 };
        for turn in 1..=slices + 10 {
            let now = turn * GENERATION;
            insert(&mut filter, seed, now - GENERATION..now)?;
            let window = filter.window().remembered;
            let asked = admitted(&filter, seed, now.saturating_sub(window)..now);
            missed += asked.trials - asked.hits;
            // All slices have been used once, and other absent keys are asked at each turn.
            if turn > slices {
                let start = ABSENT + turn * ASKED;
                let asked = admitted(&filter, seed, start..start + ASKED);
                counted =
                    Proportion { hits: counted.hits + asked.hits, trials: counted.trials + asked.trials };
            }
        }
        let slice_bits = filter.bits() / slices;
        let fpr = math::windowed_fpr(probes, generations, GENERATION, slice_bits);
        let what = format!("rate that the filter reports, {probes} probes, {generations} generations");
        findings.push(Finding::within(NAME, what, fpr, 0.05 * fpr, filter.fpr()));
        let what = format!("false positives, {probes} probes, {generations} generations");
        findings.push(Finding::rate(NAME, what, fpr, RHO, counted).reported_as(simulated));
    }
    findings.push(Finding::exactly(NAME, "keys of the window, denied", 0.0, missed as f64));
    Ok(findings)
}
