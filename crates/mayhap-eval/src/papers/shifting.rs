//! Shifting Bloom filters: membership, which of two sets, and counts.

use core::f64::consts::LN_2;

use mayhap::{AnyFilter, Error, Part, Shifting, ShiftingAssociation, ShiftingMultiplicity, Spec, math};

use super::{RHO, absent, admitted, denied, insert, key, keys, none_denied};
use crate::{Finding, Proportion};

/// Bits behind the places at which a window may start.
const BEHIND: u64 = 56;

/// Membership of so many keys: `shifts` bits beside the first of each window.
struct Membership {
    keys: u64,
    starts: u64,
    probes: u32,
    shifts: u32,
    simulated: Option<f64>,
}

impl Membership {
    fn filled(&self, seed: u64) -> Result<Shifting, Error> {
        let spec = Spec::new()
            .with_capacity(self.keys)
            .with_bits(self.starts + BEHIND)
            .with_probes(self.probes)
            .with_shifts(self.shifts);
        let mut filter = Shifting::from_spec(&spec)?;
        insert(&mut filter, seed, 0..self.keys)?;
        Ok(filter)
    }

    /// The rate of false positives, beside the formula and the filter's report; and how many keys that are in are denied.
    fn compare(&self, name: &'static str, seed: u64) -> Result<([Finding; 3], u64), Error> {
        let Self { starts, probes, shifts, simulated, .. } = *self;
        let filter = self.filled(seed)?;
        let fpr = math::shifting_fpr(starts, self.keys as f64, probes, shifts);
        let what = format!("false positives, {starts} places, {probes} probes, shifts: {shifts}");
        let asked = admitted(&filter, seed, absent(3_000_000));
        // The filter knows how many bits are set, and not how many pairs of unset ones there are.
        let own = format!("{what}, as the filter reports");
        let own = Finding::rate(name, own, filter.fpr(), 0.005, asked);
        let planned = Finding::exactly(
            name,
            format!("rate that is planned, {starts} places, {probes} probes, shifts: {shifts}"),
            fpr,
            filter.fpr_at_capacity(),
        );
        // From one filter to the next, as the experiment says.
        let rate = Finding::rate(name, what, fpr, 0.01, asked);
        let rate = Finding { reported: simulated, ..rate };
        Ok(([planned, rate, own], denied(&filter, seed, 0..self.keys)))
    }
}

fn memberships(name: &'static str, all: &[Membership], seed: u64) -> Result<Vec<Finding>, Error> {
    let (mut findings, mut missed) = (Vec::new(), 0);
    for membership in all {
        let (rates, denied) = membership.compare(name, seed)?;
        findings.extend(rates);
        missed += denied;
    }
    findings.push(none_denied(name, missed));
    Ok(findings)
}

pub(super) fn shb_1(seed: u64) -> Result<Vec<Finding>, Error> {
    let all = [
        (100_000, 1_000_000, 8, Some(0.00872)),
        (100_000, 1_200_000, 8, Some(0.00324)),
        (100_000, 1_600_000, 12, None),
        (20_000, 200_000, 8, Some(0.008619)),
    ];
    let membership =
        |(keys, starts, probes, simulated)| Membership { keys, starts, probes, shifts: 1, simulated };
    memberships("SHB-1", &all.map(membership), seed)
}

pub(super) fn shb_2(seed: u64) -> Result<Vec<Finding>, Error> {
    let all = [(6, 2, 0.00927), (8, 3, 0.01013)];
    let (keys, starts) = (100_000, 1_000_000);
    let membership =
        |(probes, shifts, rate)| Membership { keys, starts, probes, shifts, simulated: Some(rate) };
    memberships("SHB-2", &all.map(membership), seed)
}

/// A share of right answers, judged by the wrong ones: these are few and have the deviation.
fn right_answers(name: &'static str, what: String, expected: f64, wrong: Proportion) -> Finding {
    let judged = Finding::rate(name, what, 1.0 - expected, RHO, wrong);
    Finding {
        expected,
        measured: 1.0 - judged.measured,
        low: 1.0 - judged.high,
        high: 1.0 - judged.low,
        ..judged
    }
}

pub(super) fn shb_3(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "SHB-3";
    const FIRST_ONLY: u64 = 100_000;
    const FIRST: u64 = 150_000;
    const ALL: u64 = 250_000;
    let part = |index| match index {
        0..FIRST_ONLY => Part::FirstOnly,
        FIRST_ONLY..FIRST => Part::Both,
        _ => Part::SecondOnly,
    };
    let (mut findings, mut wrong) = (Vec::new(), 0u64);
    for (probes, simulated) in [(10, 0.99808), (8, 0.9921), (5, 0.9379)] {
        let starts = (ALL as f64 * f64::from(probes) / LN_2) as u64;
        let spec = Spec::new().with_capacity(ALL).with_bits(starts + BEHIND).with_probes(probes);
        let filter =
            ShiftingAssociation::of_sets(&spec, &keys(seed, 0..FIRST), &keys(seed, FIRST_ONLY..ALL))?;
        let mut answers = Vec::new();
        filter.association_each(&keys(seed, 0..ALL), &mut answers);
        let mut unclear = Proportion { hits: 0, trials: ALL };
        for (index, answer) in (0..).zip(&answers) {
            unclear.hits += u64::from(!answer.is_clear());
            let is_wrong =
                !answer.allows(part(index)) || answer.part().is_some_and(|told| told != part(index));
            wrong += u64::from(is_wrong);
        }
        let expected = math::association_clear(math::bloom_fpr(starts, ALL as f64, probes));
        let what = format!("clear answers, {probes} probes");
        findings.push(right_answers(NAME, what, expected, unclear).reported_as(simulated));
        let what = format!("clear answers, as the filter reports, {probes} probes");
        findings.push(Finding::within(NAME, what, expected, 1e-3, filter.clear_rate()));
        // Where the universe is open, a key of neither set is admitted at three times the rate of one set.
        let fpr = filter.report().fpr_at_capacity;
        let expected = 3.0 * 0.5f64.powi(probes as i32);
        let what = format!("rate that is planned for keys of neither set, {probes} probes");
        findings.push(Finding::within(NAME, what, expected, 0.05 * expected, fpr));
        let what = format!("keys of neither set, admitted, {probes} probes");
        findings.push(Finding::rate(NAME, what, fpr, RHO, admitted(&filter, seed, absent(500_000))));
    }
    findings.push(Finding::exactly(NAME, "wrong answers, clear or not", 0.0, wrong as f64));
    Ok(findings)
}

pub(super) fn shb_4(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "SHB-4";
    const KEYS: u64 = 100_000;
    const ASKED: u64 = 500_000;
    let (mut findings, mut low) = (Vec::new(), 0u64);
    for (starts, probes, most, of_members, of_absent) in [
        (1_154_156, 8, 57, Some(0.8979), Some(0.7992)),
        (1_731_234, 8, 57, Some(0.9899), Some(0.980)),
        (1_731_234, 12, 57, Some(0.993), None),
        (1_154_156, 8, 16, Some(0.971), None),
    ] {
        // Every count equally often.
        let truth = |index: u64| 1 + index % u64::from(most);
        let spec = Spec::new()
            .with_capacity(KEYS)
            .with_bits(starts + BEHIND)
            .with_probes(probes)
            .with_max_count(most);
        let counted = (0..KEYS).map(|index| (key(seed, index), truth(index)));
        let filter = ShiftingMultiplicity::of_counts(&spec, counted)?;
        let mut counts = Vec::new();
        filter.count_each(&keys(seed, 0..KEYS), &mut counts);
        let mut wrong = Proportion { hits: 0, trials: KEYS };
        for (index, &count) in (0..).zip(&counts) {
            wrong.hits += u64::from(count != truth(index));
            low += u64::from(count < truth(index));
        }
        let one_place = math::bloom_fpr(starts, KEYS as f64, probes);
        let setting = format!("{starts} places, {probes} probes, counts up to {most}");
        let expected = math::multiplicity_correct_on_average(one_place, most);
        let members = right_answers(NAME, format!("right counts, {setting}"), expected, wrong);
        let expected = 1.0 - math::any_of(one_place, most);
        let what = format!("rate that is planned, {setting}");
        let planned = math::any_of(one_place, most);
        findings.push(Finding::exactly(NAME, what, planned, filter.report().fpr_at_capacity));
        let strangers = admitted(&filter, seed, absent(ASKED));
        let strangers =
            right_answers(NAME, format!("absent keys told absent, {setting}"), expected, strangers);
        findings.push(Finding { reported: of_members, ..members });
        findings.push(Finding { reported: of_absent, ..strangers });
    }
    findings.push(Finding::exactly(NAME, "counts too low", 0.0, low as f64));
    Ok(findings)
}

pub(super) fn shb_5(seed: u64) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for (probes, shifts) in [(8, 1), (12, 1), (2, 1), (6, 2), (9, 2), (8, 3)] {
        let experiment = Membership { keys: 10_000, starts: 100_000, probes, shifts, simulated: None };
        let filter = experiment.filled(seed)?;
        let mut loads = 0u64;
        for index in 0..experiment.keys {
            filter.contains_traced(key(seed, index), |_| loads += 1);
        }
        let expected = f64::from(probes / (shifts + 1));
        let what = format!("words loaded for a key that is in, {probes} probes, shifts: {shifts}");
        findings.push(Finding::exactly("SHB-5", what, expected, loads as f64 / experiment.keys as f64));
    }
    Ok(findings)
}
