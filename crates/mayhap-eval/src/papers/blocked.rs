//! Blocked Bloom filters: one cache line per question.

use mayhap::{Blocked, Error, Layout, Spec};

use super::{absent, admitted, denied, insert, none_denied};
use crate::Finding;

const KEYS: u64 = 1_000_000;
const ASKED: u64 = 8_000_000;
/// From one filter to the next.
const RHO: f64 = 0.01;

fn filled(spec: Spec, seed: u64) -> Result<Blocked, Error> {
    let mut filter = Blocked::from_spec(&spec)?;
    insert(&mut filter, seed, 0..KEYS)?;
    Ok(filter)
}

/// Eight probes in so many bits per key, beside the rates that were simulated.
fn at_bits_per_key(
    name: &'static str,
    layout: Layout,
    simulated: &[(f64, f64)],
    seed: u64,
) -> Result<Vec<Finding>, Error> {
    let (mut findings, mut missed) = (Vec::new(), 0);
    for &(bits_per_key, reported) in simulated {
        let bits = (bits_per_key * KEYS as f64) as u64;
        let spec = Spec::new().with_capacity(KEYS).with_bits(bits).with_probes(8).with_layout(layout);
        let filter = filled(spec, seed)?;
        let asked = admitted(&filter, seed, absent(ASKED));
        let what = format!("rate that is planned, {bits_per_key} bits per key");
        findings.push(Finding::within(name, what, reported, 0.02 * reported, filter.fpr_at_capacity()));
        let what = format!("false positives, {bits_per_key} bits per key");
        findings.push(Finding::rate(name, what, filter.fpr_at_capacity(), RHO, asked).reported_as(reported));
        missed += denied(&filter, seed, 0..KEYS);
    }
    findings.push(none_denied(name, missed));
    Ok(findings)
}

pub(super) fn blk_1(seed: u64) -> Result<Vec<Finding>, Error> {
    let simulated = [
        (8.0, 0.03324),
        (10.0, 0.01268),
        (10.5, 0.01021),
        (12.0, 0.00547),
        (16.0, 1.315e-3),
        (20.0, 4.27e-4),
    ];
    at_bits_per_key("BLK-1", Layout::Fastest, &simulated, seed)
}

pub(super) fn blk_4(seed: u64) -> Result<Vec<Finding>, Error> {
    let simulated = [(10.0, 0.01049), (12.0, 0.00425), (16.0, 9.2e-4)];
    at_bits_per_key("BLK-4", Layout::Compact, &simulated, seed)
}

pub(super) fn blk_5(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "BLK-5";
    let (mut findings, mut missed) = (Vec::new(), 0);
    for layout in [Layout::Fastest, Layout::Compact] {
        for fpr in [0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5] {
            let filter = filled(Spec::sized(KEYS, fpr).with_layout(layout), seed)?;
            let asked = admitted(&filter, seed, absent(ASKED));
            let what = format!("false positives, sized for {fpr}, {}", layout.name());
            findings.push(Finding::rate(NAME, what, fpr, RHO, asked));
            missed += denied(&filter, seed, 0..KEYS);
        }
    }
    findings.push(none_denied(NAME, missed));
    Ok(findings)
}
