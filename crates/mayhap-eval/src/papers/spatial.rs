//! Spatial Bloom filters: to which area a key belongs.

use mayhap::{AnyFilter, Error, Spatial, Spec, math};

use super::{RHO, absent, keys};
use crate::{Finding, Proportion};

fn filled(areas: u16, each: u64, cells: u64, probes: u32, seed: u64) -> Result<Spatial, Error> {
    let spec = Spec::new().with_bits(8 * cells).with_probes(probes).with_areas(areas.into());
    let mut filter = Spatial::from_spec(&spec)?;
    for area in 1..=areas {
        filter.insert_all(&keys_of(area, each, seed), area)?;
    }
    Ok(filter)
}

fn keys_of(area: u16, each: u64, seed: u64) -> Vec<u64> {
    keys(seed, u64::from(area - 1) * each..u64::from(area) * each)
}

/// How many absent keys are told to be in each area, from none on.
fn told(filter: &Spatial, count: u64, seed: u64) -> Vec<u64> {
    let mut told = vec![0; usize::from(filter.areas()) + 1];
    let mut labels = Vec::new();
    for part in keys(seed, absent(count)).chunks(super::BATCH) {
        labels.clear();
        filter.label_each(part, &mut labels);
        labels.iter().for_each(|label| told[usize::from(label.unwrap_or(0))] += 1);
    }
    told
}

/// Of the keys of an area, how many are told to be in a lower one or in none, and how many in a higher one.
fn mislabelled(filter: &Spatial, area: u16, each: u64, seed: u64) -> (u64, u64) {
    let mut labels = Vec::new();
    filter.label_each(&keys_of(area, each, seed), &mut labels);
    let count =
        |wrong: &dyn Fn(Option<u16>) -> bool| labels.iter().filter(|&&label| wrong(label)).count() as u64;
    (count(&|label| label < Some(area)), count(&|label| label > Some(area)))
}

pub(super) fn spa_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "SPA-1";
    const ASKED: u64 = 6_000_000;
    const EACH: u64 = 10_000;
    const AREAS: u16 = 10;
    let filter = filled(AREAS, EACH, 958_506, 7, seed)?;
    let expected = math::spatial_expected(958_506, 7, &[EACH; AREAS as usize]);
    let told = told(&filter, ASKED, seed);
    let rate = |what: String, expected: f64, hits: u64, trials: u64| {
        Finding::rate(NAME, what, expected, RHO, Proportion { hits, trials })
    };

    let all = expected.iter().map(|area| area.fpr).sum();
    let mut findings = vec![rate("false positives".into(), all, ASKED - told[0], ASKED).reported_as(0.01011)];
    for (area, simulated) in (1..).zip([0.00405, 0.00272, 0.00169, 0.00093, 0.00047]) {
        let what = format!("false positives, told area {area}");
        findings.push(rate(what, expected[area - 1].fpr, told[area], ASKED).reported_as(simulated));
    }
    let (mut lower, mut higher) = (0, 0);
    for (area, simulated) in
        (1..=AREAS).zip([0.0055, 0.0035, 0.0017, 0.0008].map(Some).into_iter().chain([None; 6]))
    {
        let (told_lower, told_higher) = mislabelled(&filter, area, EACH, seed);
        (lower, higher) = (lower + told_lower, higher + told_higher);
        if let Some(simulated) = simulated {
            let isep = expected[usize::from(area) - 1].isep;
            let what = format!("keys of area {area}, told a higher one");
            findings.push(rate(what, isep, told_higher, EACH).reported_as(simulated));
        }
    }
    let isep = expected.iter().map(|area| area.isep).sum::<f64>() / f64::from(AREAS);
    let of_highest = mislabelled(&filter, AREAS, EACH, seed).1;
    findings.push(
        rate("keys told a higher area".into(), isep, higher, EACH * u64::from(AREAS)).reported_as(0.00118),
    );
    findings.push(Finding::exactly(NAME, "keys told a lower area or none", 0.0, lower as f64));
    findings.push(Finding::exactly(NAME, "keys of the highest area, told another", 0.0, of_highest as f64));
    Ok(findings)
}

pub(super) fn spa_2(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "SPA-2";
    const ASKED: u64 = 4_000_000;
    let filter = filled(255, 1000, 3_678_872, 10, seed)?;
    let expected = math::spatial_expected(3_678_872, 10, &[1000; 255]);
    let hits = ASKED - told(&filter, ASKED, seed)[0];
    let fpr = expected.iter().map(|area| area.fpr).sum();
    let emersion = filter.details().areas.map_or(f64::NAN, |report| report.areas[0].now.emersion);
    let lower: u64 = (1..=255).map(|area| mislabelled(&filter, area, 1000, seed).0).sum();
    Ok(vec![
        Finding::rate(NAME, "false positives", fpr, RHO, Proportion { hits, trials: ASKED })
            .reported_as(9.6e-4),
        // Some 10,000 cells, of which about half stay: four deviations.
        Finding::within(NAME, "share of cells that area 1 keeps", expected[0].emersion, 0.02, emersion),
        Finding::exactly(NAME, "keys told a lower area or none", 0.0, lower as f64),
    ])
}
