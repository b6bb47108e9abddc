//! d-left counting filters.

use mayhap::{Dleft, Error, Removal, Spec, math};

use super::{RHO, absent, admitted, as_reported, denied, insert, key, keys, none_denied};
use crate::{Finding, Random};

const BUCKETS: u64 = 1 << 14;
const ASKED: u64 = 4_000_000;

/// Buckets of each subtable, and as many keys as they are made for.
fn filled(buckets: u64, remainder_bits: u32, seed: u64) -> Result<(Dleft, u64), Error> {
    let (keys, bits) = (24 * buckets, 32 * buckets * u64::from(remainder_bits + 2));
    let spec = Spec::new().with_capacity(keys).with_bits(bits).with_counter_bits(2);
    let mut filter = Dleft::from_spec(&spec)?;
    insert(&mut filter, seed, 0..keys)?;
    Ok((filter, keys))
}

/// The share of the buckets with this load.
fn share(filter: &Dleft, load: usize) -> f64 {
    filter.loads()[load] as f64 / (4 * filter.buckets()) as f64
}

pub(super) fn dlc_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "DLC-1";
    let (mut findings, mut missed) = (Vec::new(), 0);
    for (remainder_bits, planned, simulated) in
        [(14, 0.001_464, 0.001457), (10, 0.0231_65, 0.02317), (8, 0.089_49, 0.0895)]
    {
        let (filter, keys) = filled(BUCKETS, remainder_bits, seed)?;
        let fpr = math::dleft_fpr(filter.buckets(), remainder_bits, keys as f64);
        let what = format!("rate that is planned, remainders of {remainder_bits} bits");
        findings.push(Finding::within(NAME, what, planned, 1e-3 * planned, filter.fpr_at_capacity()));
        let what = format!("false positives, remainders of {remainder_bits} bits");
        let asked = admitted(&filter, seed, absent(ASKED));
        findings.push(as_reported(NAME, &what, filter.fpr(), asked));
        findings.push(Finding::rate(NAME, what, fpr, RHO, asked).reported_as(simulated));
        missed += denied(&filter, seed, 0..keys);
    }
    findings.push(none_denied(NAME, missed));
    Ok(findings)
}

pub(super) fn dlc_2(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "DLC-2";
    let mut findings = Vec::new();
    // Also numbers of buckets that are no powers of two.
    for buckets in [BUCKETS, 10_007, 24_576] {
        let (filter, _) = filled(buckets, 14, seed)?;
        // From the fluid limit of the paper.
        for (load, expected) in [(4, 0.003), (5, 0.124), (6, 0.747), (7, 0.126)] {
            let what = format!("share with {load} keys, {buckets} buckets");
            findings.push(Finding::within(NAME, what, expected, 0.005, share(&filter, load)));
        }
        let what = format!("full ones, {buckets} buckets");
        findings.push(Finding::exactly(NAME, what, 0.0, filter.loads()[8] as f64));
        let counted: u64 = filter.loads().iter().sum();
        let what = format!("buckets of all loads, {buckets} buckets");
        findings.push(Finding::exactly(NAME, what, (4 * buckets) as f64, counted as f64));
    }
    Ok(findings)
}

pub(super) fn dlc_3(seed: u64) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for buckets in [BUCKETS, 16_411] {
        findings.extend(churn(buckets, seed)?);
    }
    Ok(findings)
}

/// Five times as many removes and inserts in turn as the filter has keys.
fn churn(buckets: u64, seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "DLC-3";
    let (mut filter, count) = filled(buckets, 14, seed)?;
    let mut present = keys(seed, 0..count);
    let mut random = Random::new(seed);
    let (mut denials, mut stuck, mut refused) = (0.0, 0.0, 0.0);
    for next in count..6 * count {
        let leaving = random.below(count) as usize;
        match filter.remove(present[leaving]) {
            Removal::Removed => {}
            Removal::Absent => denials += 1.0,
            Removal::Stuck => stuck += 1.0,
        }
        present[leaving] = key(seed, next);
        refused += f64::from(u8::from(filter.insert(present[leaving]).is_err()));
    }
    let mut hits = Vec::new();
    filter.contains_each(&present, &mut hits);
    let missed = hits.iter().filter(|&&hit| !hit).count() as u64;
    let fpr = math::dleft_fpr(buckets, 14, count as f64);
    let asked = admitted(&filter, seed, absent(ASKED));
    let of = |what: &str| format!("{what}, {buckets} buckets");
    Ok(vec![
        Finding::within(NAME, of("share with 7 keys"), 0.284, 0.01, share(&filter, 7)),
        Finding::within(NAME, of("share with 8 keys"), 0.0023, 0.001, share(&filter, 8)),
        Finding::exactly(NAME, of("inserts refused"), 0.0, refused),
        Finding::exactly(NAME, of("removes denied"), 0.0, denials),
        // A counter of 2 bits saturates when three keys share a fingerprint, and stays so. Two fingerprints do in a run of
        // this size, each with a few keys; twelve of them would be 5e-5.
        Finding::within(
            NAME,
            of("removes stuck at a saturated counter"),
            0.0,
            5e-5,
            stuck / (5 * count) as f64,
        ),
        none_denied(NAME, missed),
        Finding::rate(NAME, of("false positives"), fpr, RHO, asked).reported_as(0.001455),
        as_reported(NAME, &of("false positives"), filter.fpr(), asked),
    ])
}
