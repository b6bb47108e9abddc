//! Cuckoo filters: fingerprints that move.

use mayhap::{Cuckoo, Error, Layout, math};

use super::{RHO, absent, admitted, denied, insert, key, keys, none_denied};
use crate::Finding;

const SLOTS: u64 = 4 << 16;
/// A load of 95 %.
const KEYS: u64 = SLOTS * 95 / 100;

pub(super) fn cko_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "CKO-1";
    let (mut findings, mut missed) = (Vec::new(), 0);
    for layout in Layout::ALL {
        for (width, simulated) in [(8, 0.0295), (12, 0.00187), (16, 1.10e-4)] {
            let mut filter = Cuckoo::with_slots(SLOTS, width, layout)?;
            insert(&mut filter, seed, 0..KEYS)?;
            let fpr = math::cuckoo_fpr(width, KEYS as f64 / SLOTS as f64);
            let what = format!("false positives, {width} bits, {}", layout.name());
            // Keys of one fingerprint in one bucket are one: the filter knows the slots, not which of them agree.
            let rho = math::cuckoo_fpr_deviation(width, SLOTS / 4, filter.slots().load());
            let asked = admitted(&filter, seed, absent(8_000_000));
            let own = format!("{what}, as the filter reports");
            findings.push(Finding::rate(NAME, own, filter.fpr(), rho, asked));
            findings.push(Finding::rate(NAME, what, fpr, RHO, asked).reported_as(simulated));
            missed += denied(&filter, seed, 0..KEYS);
        }
    }
    findings.push(none_denied(NAME, missed));
    Ok(findings)
}

/// Fills a filter until a key finds no room; returns how many did.
fn fill(filter: &mut Cuckoo, seed: u64) -> u64 {
    (0..).find(|&index| filter.insert(key(seed, index)).is_err()).unwrap_or(u64::MAX)
}

pub(super) fn cko_2(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "CKO-2";
    let mut findings = Vec::new();
    for slots in [SLOTS, 200_012, 400_000, 800_000] {
        // Short fingerprints have fewer buckets to choose from.
        for (width, least) in [(6, 0.955), (8, 0.96), (12, 0.965), (20, 0.965)] {
            let mut filter = Cuckoo::with_slots(slots, width, Layout::Fastest)?;
            fill(&mut filter, seed);
            let what = format!("load at the first refusal, {slots} slots, {width} bits");
            // Simulated by random walks, which give up earlier; the paper reports 95 %.
            findings.push(
                Finding::between(NAME, what, 0.962, least..=1.0, filter.slots().load()).reported_as(0.95),
            );
        }
    }
    Ok(findings)
}

pub(super) fn cko_3(seed: u64) -> Result<Vec<Finding>, Error> {
    let mut filter = Cuckoo::with_slots(4 << 10, 12, Layout::Fastest)?;
    let taken = (0..100).take_while(|_| filter.insert(key(seed, 0)).is_ok()).count();
    Ok(vec![Finding::exactly("CKO-3", "inserts of one key that succeed", 8.0, taken as f64)])
}

pub(super) fn cko_4(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "CKO-4";
    let mut findings = Vec::new();
    let (mut missed, mut kept) = (0, 0);
    for layout in Layout::ALL {
        for width in [8, 12, 22] {
            let mut filter = Cuckoo::with_slots(SLOTS, width, layout)?;
            insert(&mut filter, seed, 0..KEYS)?;
            let mut removed = Vec::new();
            filter.remove_all(&keys(seed, 0..KEYS / 3), &mut removed);
            missed += denied(&filter, seed, KEYS / 3..KEYS);
            filter.remove_all(&keys(seed, KEYS / 3..KEYS), &mut removed);
            kept += removed.iter().filter(|removed| !removed.is_removed()).count();
            let left = filter.words().iter().filter(|&&word| word != 0).count();
            let what = format!("words that are not 0, {width} bits, {}", layout.name());
            findings.push(Finding::exactly(NAME, what, 0.0, left as f64));
        }
    }
    findings.push(Finding::exactly(NAME, "keys that are in, and not removed", 0.0, kept as f64));
    findings.push(none_denied(NAME, missed));
    Ok(findings)
}

pub(super) fn cko_5(seed: u64) -> Result<Vec<Finding>, Error> {
    let mut filter = Cuckoo::with_slots(SLOTS, 12, Layout::Fastest)?;
    let taken = fill(&mut filter, seed);
    Ok(vec![none_denied("CKO-5", denied(&filter, seed, 0..taken))])
}
