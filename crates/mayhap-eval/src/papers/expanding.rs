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
        Finding::rate(NAME, "false positives before the 11th", fpr, RHO, asked).reported_as(1.326e-3),
        none_denied(NAME, denied(&filter, seed, 0..taken)),
    ])
}

pub(super) fn exp_2(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "EXP-2";
    let (filter, taken) = grown(1 << 8, 4, 8, seed)?;
    let fpr = math::expanding_fpr(4, 8, math::EXPANDING_LOAD);
    let asked = admitted(&filter, seed, absent(1_000_000));
    let measured = asked.hits as f64 / asked.trials as f64;
    Ok(vec![
        Finding::within(NAME, "false positives before the 9th doubling", fpr, 0.1 * fpr, measured),
        none_denied(NAME, denied(&filter, seed, 0..taken)),
    ])
}
