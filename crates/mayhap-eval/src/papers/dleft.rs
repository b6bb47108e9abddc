//! d-left counting filters.

use mayhap::{Dleft, Error, Removal, Spec, math};

use super::{RHO, absent, admitted, denied, insert, key, keys, none_denied};
use crate::{Finding, Random};

const BUCKETS: u64 = 1 << 14;
const KEYS: u64 = 24 * BUCKETS;
const ASKED: u64 = 4_000_000;

fn filled(remainder_bits: u32, seed: u64) -> Result<Dleft, Error> {
    let bits = 32 * BUCKETS * u64::from(remainder_bits + 2);
    let spec = Spec::new().with_capacity(KEYS).with_bits(bits).with_counter_bits(2);
    let mut filter = Dleft::from_spec(&spec)?;
    insert(&mut filter, seed, 0..KEYS)?;
    Ok(filter)
}

/// The share of the buckets with this load.
fn share(filter: &Dleft, load: usize) -> f64 {
    filter.loads()[load] as f64 / (4 * filter.buckets()) as f64
}

pub(super) fn dlc_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "DLC-1";
    let (mut findings, mut missed) = (Vec::new(), 0);
    for (remainder_bits, simulated) in [(14, 0.001457), (10, 0.02317), (8, 0.0895)] {
        let filter = filled(remainder_bits, seed)?;
        let fpr = math::dleft_fpr(filter.buckets(), remainder_bits, KEYS as f64);
        let what = format!("false positives, remainders of {remainder_bits} bits");
        let asked = admitted(&filter, seed, absent(ASKED));
        findings.push(Finding::rate(NAME, what, fpr, RHO, asked).reported_as(simulated));
        missed += denied(&filter, seed, 0..KEYS);
    }
    findings.push(none_denied(NAME, missed));
    Ok(findings)
}

pub(super) fn dlc_2(seed: u64) -> Result<Vec<Finding>, Error> {
    let filter = filled(14, seed)?;
    // From the fluid limit of the paper.
    let expected = [(4, 0.003), (5, 0.124), (6, 0.747), (7, 0.126), (8, 0.0)];
    let finding = |(load, expected)| {
        Finding::within("DLC-2", format!("buckets of {load}"), expected, 0.005, share(&filter, load))
    };
    Ok(expected.map(finding).into())
}

pub(super) fn dlc_3(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "DLC-3";
    let mut filter = filled(14, seed)?;
    let mut present = keys(seed, 0..KEYS);
    let mut random = Random::new(seed);
    let (mut denials, mut stuck, mut refused) = (0.0, 0.0, 0.0);
    for next in KEYS..6 * KEYS {
        let leaving = random.below(KEYS) as usize;
        match filter.remove(present[leaving]) {
            Removal::Removed => {}
            Removal::Absent => denials += 1.0,
            Removal::Stuck => stuck += 1.0,
        }
        present[leaving] = key(seed, next);
        refused += f64::from(u8::from(filter.insert(present[leaving]).is_err()));
    }
    let mut hits = Vec::new();
    filter.contains_all(&present, &mut hits);
    let missed = hits.iter().filter(|&&hit| !hit).count() as u64;
    let fpr = math::dleft_fpr(BUCKETS, 14, KEYS as f64);
    Ok(vec![
        Finding::within(NAME, "buckets of 7", 0.284, 0.01, share(&filter, 7)),
        Finding::within(NAME, "buckets of 8", 0.0023, 0.001, share(&filter, 8)),
        Finding::exactly(NAME, "inserts refused", 0.0, refused),
        Finding::exactly(NAME, "removes denied", 0.0, denials),
        // A counter of 2 bits saturates when three keys share a fingerprint, and stays so. Two fingerprints do in a run of
        // this size, each with a few keys; twelve of them would be 5e-5.
        Finding::within(NAME, "removes stuck at a saturated counter", 0.0, 5e-5, stuck / (5 * KEYS) as f64),
        none_denied(NAME, missed),
        Finding::rate(NAME, "false positives", fpr, RHO, admitted(&filter, seed, absent(ASKED)))
            .reported_as(0.001455),
    ])
}
