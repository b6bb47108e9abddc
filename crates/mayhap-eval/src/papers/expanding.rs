//! Expanding filters: quotient filters that double.

use mayhap::{Error, Expanding, math};

use super::{RHO, absent, admitted, denied, insert, none_denied};
use crate::Finding;

pub(super) fn qtf_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "QTF-1";
    const SLOTS: u64 = 1 << 16;
    const KEYS: u64 = SLOTS / 4 * 3;
    let holding = |indexes| -> Result<Expanding, Error> {
        let mut filter = Expanding::with_slots(SLOTS, 9)?;
        insert(&mut filter, seed, indexes)?;
        Ok(filter)
    };
    let filter = holding(0..KEYS)?;
    let mut merged = holding(0..KEYS / 2)?;
    merged.merge(&holding(KEYS / 2..KEYS)?)?;
    let unlike = merged.words().iter().zip(filter.words()).filter(|(merged, all)| merged != all).count();
    let asked = admitted(&filter, seed, absent(4_000_000));
    Ok(vec![
        Finding::within(
            NAME,
            "rate that is planned",
            1.464e-3,
            1e-6,
            math::expanding_fpr(9, 0, filter.slots().load()),
        ),
        Finding::rate(NAME, "false positives", math::expanding_fpr(9, 0, 0.75), RHO, asked),
        none_denied(NAME, denied(&filter, seed, 0..KEYS)),
        Finding::exactly(NAME, "words of the union unlike those of all keys", 0.0, unlike as f64),
    ])
}

/// A filter that has doubled so often and is full again; and how many keys it took.
fn grown(slots: u64, fingerprint_bits: u32, doublings: u32, seed: u64) -> Result<(Expanding, u64), Error> {
    let mut filter = Expanding::with_slots(slots, fingerprint_bits)?;
    let mut taken = 0;
    while filter.doublings().made < doublings || filter.slots().used < filter.capacity() {
        let room = filter.capacity() - filter.slots().used;
        let more = room.max(1);
        insert(&mut filter, seed, taken..taken + more)?;
        taken += more;
    }
    Ok((filter, taken))
}

pub(super) fn exp_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "EXP-1";
    let (filter, taken) = grown(1 << 10, 12, 10, seed)?;
    let fpr = math::expanding_fpr(12, 10, math::EXPANDING_LOAD);
    let asked = admitted(&filter, seed, absent(4_000_000));
    Ok(vec![
        Finding::exactly(NAME, "slots after 10 doublings", f64::from(1 << 20), filter.slots().slots as f64),
        Finding::exactly(NAME, "slots in use", filter.capacity() as f64, filter.slots().used as f64),
        Finding::within(NAME, "rate that is planned before the 11th", 1.318e-3, 2e-6, fpr),
        // From the ages of the fingerprints that are there.
        Finding::within(NAME, "rate that the filter reports", fpr, 0.01 * fpr, filter.fpr()),
        Finding::rate(NAME, "false positives before the 11th", fpr, RHO, asked).reported_as(1.326e-3),
        none_denied(NAME, denied(&filter, seed, 0..taken)),
    ])
}

pub(super) fn exp_2(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "EXP-2";
    let mut missed = 0;
    for doublings in 0..8 {
        let (filter, taken) = grown(1 << 8, 4, doublings, seed)?;
        missed += denied(&filter, seed, 0..taken);
    }
    let (filter, taken) = grown(1 << 8, 4, 8, seed)?;
    let fpr = math::expanding_fpr(4, 8, math::EXPANDING_LOAD);
    let asked = admitted(&filter, seed, absent(1_000_000));
    let measured = asked.hits as f64 / asked.trials as f64;
    Ok(vec![
        Finding::within(NAME, "rate that is planned before the 9th doubling", 0.245, 0.001, fpr),
        Finding::within(NAME, "false positives before the 9th doubling", fpr, 0.1 * fpr, measured),
        // A little below the plan, because copies take slots of new keys.
        Finding::between(
            NAME,
            "rate that the filter reports",
            measured,
            0.98 * measured..=fpr.min(1.02 * measured),
            filter.fpr(),
        ),
        // Fingerprints without bits are copied. Copies take slots and are not counted as keys.
        Finding::exactly(NAME, "keys, as the filter counts them", taken as f64, filter.estimated_len()),
        Finding::between(
            NAME,
            "slots that copies take",
            1.0,
            1.0..=f64::INFINITY,
            filter.slots().used as f64 - taken as f64,
        ),
        none_denied(NAME, missed + denied(&filter, seed, 0..taken)),
    ])
}
