//! Experiments whose result is a picture.

use std::time::Instant;

use mayhap::{AnyFilter, FAMILIES, Hashing, Layout, Spec, SpecError, family, math};

use crate::experiment::ask;
use crate::{Absent, Axis, Candidate, Chart, Data, Keys, Proportion, Scale, Series, SplitMix64, Task, run};

/// Told how many keys were worked on, so that long work shows itself.
pub type Advance<'a> = &'a dyn Fn(u64);

/// Keys that are different, and absent ones for so many questions.
fn keys(seed: u64, stream: u64, count: u64) -> Keys {
    Keys::Numbers((0..count).map(|index| SplitMix64::at(seed, index) & !1 | stream).collect())
}

/// Even numbers are in, odd ones are not.
const IN: u64 = 0;
const OUT: u64 = 1;

/// Bits per key against the rate that was measured, for every family that has one, and the bound.
pub fn bits_against_rate(count: u64, seed: u64, advance: Advance<'_>) -> Chart {
    let bound = |rate: f64| (rate, math::lower_bound_bits(1.0, rate));
    let mut series = vec![Series::bound(
        "bound: log2(1/p)",
        (1..=8).map(|step| bound(10f64.powf(-0.5 * f64::from(step)))).collect(),
    )];
    let data = Data::Uniform { below: 1 << 62 };
    let mut points: Vec<Vec<(f64, f64)>> = vec![Vec::new(); FAMILIES.len()];
    for step in 1..=8 {
        let fpr = 10f64.powf(-0.5 * f64::from(step));
        let questions = (2000.0 / fpr).clamp(1e5, 2e6) as u64;
        let (task, drawn) =
            (Task { keys: count, fpr, seed }, data.draw(seed, count, questions, Absent::Same));
        for (family, points) in FAMILIES.iter().zip(&mut points).filter(|(family, _)| !family.can.exact) {
            let smallest = Candidate::all(family, count, fpr)[0];
            // A family that does not reach a rate has no point there, and one that never errs has none at all.
            if let Ok(run) = run(smallest, &task, &drawn)
                && let Some(rate) = run.false_positives.rate().filter(|&rate| rate > 0.0)
            {
                points.push((rate, run.bits as f64 / run.distinct as f64));
            }
            advance(2 * count + questions);
        }
    }
    for (family, points) in FAMILIES.iter().zip(points).filter(|(_, points)| points.len() > 1) {
        series.push(Series::line(family.name, points));
    }
    Chart {
        title: format!("Bits per key against the measured rate, {} keys", grouped(count)),
        x: Axis { label: "false-positive rate, measured".into(), scale: Scale::Logarithmic },
        y: Axis { label: "bits per key".into(), scale: Scale::Logarithmic },
        series,
        landmarks: Vec::new(),
    }
}

/// What becomes of the rate when keys go on coming: up to twice as many as the filter was made for.
pub fn rate_against_keys(count: u64, fpr: f64, seed: u64, advance: Advance<'_>) -> Chart {
    const STEPS: u64 = 20;
    let questions = (2000.0 / fpr).clamp(1e5, 1e6) as u64;
    let (members, absent) =
        (keys(seed, IN, 2 * count).digests(Hashing::default()), keys(seed, OUT, questions));
    let (mut series, mut theory) = (Vec::new(), Vec::new());
    for name in ["bloom", "blocked", "shifting", "cuckoo", "dleft", "windowed", "scalable", "expanding"] {
        // A family that does not reach the rate has no line.
        let Ok(Some(mut filter)) = empty(name, &Spec::sized(count, fpr)) else { continue };
        let (mut points, mut outcomes) = (Vec::new(), Vec::new());
        for (step, digests) in (1..).zip(members.chunks((2 * count).div_ceil(STEPS) as usize)) {
            outcomes.clear();
            let inserts = filter.as_insert().expect("a family that inserts");
            if inserts.insert_batch(digests, &mut outcomes).is_err() {
                // It is full, and says so.
                break;
            }
            let share = 2.0 * f64::from(step) / STEPS as f64;
            let Proportion { hits, trials } = ask(&*filter, &absent);
            advance(digests.len() as u64 + questions);
            // Fewer say nothing yet.
            if hits >= 10 {
                points.push((share, hits as f64 / trials as f64));
            }
            if name == "bloom" && hits >= 10 {
                theory.push((share, filter.report().fpr_now));
            }
        }
        series.push(Series::line(name, points));
    }
    series.insert(0, Series::bound("bloom, theory", theory));
    series.insert(0, Series::bound("asked", vec![(0.1, fpr), (2.0, fpr)]));
    Chart {
        title: format!("False-positive rate while keys come; made for {} at {fpr}", grouped(count)),
        x: Axis { label: "keys inserted, of those it was made for".into(), scale: Scale::Linear },
        y: Axis { label: "false-positive rate, measured".into(), scale: Scale::Logarithmic },
        series,
        landmarks: vec![(1.0, "capacity".into())],
    }
}

/// Nanoseconds per question for an absent key against the size of the set, in batches.
///
/// `caches` are bytes and names. A landmark stands where a Bloom filter of this rate leaves one.
pub fn time_against_keys(
    most: u64,
    fpr: f64,
    seed: u64,
    caches: &[(u64, String)],
    advance: Advance<'_>,
) -> Chart {
    let data = Data::Uniform { below: 1 << 62 };
    let candidates = [
        ("bloom", None),
        ("blocked", Some(Layout::Fastest)),
        ("cuckoo", Some(Layout::Fastest)),
        ("fuse", Some(Layout::Fastest)),
        ("ribbon", Some(Layout::Fastest)),
        ("expanding", None),
        ("exact", None),
    ];
    let mut series: Vec<Series> =
        candidates.iter().map(|(name, _)| Series::line(*name, Vec::new())).collect();
    let mut count = 1000;
    while count <= most {
        // Small sets are asked for long enough to be timed.
        let drawn = data.draw(seed, count, count.max(200_000), Absent::Same);
        let task = Task { keys: count, fpr, seed };
        for ((name, layout), series) in candidates.iter().zip(&mut series) {
            let Some(family) = family(name) else { continue };
            let candidate = Candidate { family, layout: *layout };
            let times: Vec<f64> =
                (0..3).filter_map(|_| run(candidate, &task, &drawn).ok()).map(|run| run.miss_ns).collect();
            if let Some(least) = times.into_iter().reduce(f64::min) {
                series.points.push((count as f64, least));
            }
            advance(3 * (2 * count + drawn.absent.len() as u64));
        }
        count = next_size(count);
    }
    let bits_per_key = 1.0 / core::f64::consts::LN_2 * math::lower_bound_bits(1.0, fpr);
    let landmarks =
        caches.iter().map(|(bytes, name)| (8.0 * *bytes as f64 / bits_per_key, name.clone())).collect();
    Chart {
        title: "Nanoseconds per question for an absent key, in batches, hashing included".into(),
        x: Axis {
            label: "keys in the set (marks: where a Bloom filter leaves a cache)".into(),
            scale: Scale::Logarithmic,
        },
        y: Axis { label: "ns per question".into(), scale: Scale::Logarithmic },
        series,
        landmarks,
    }
}

/// With a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// 1, 3, 10, 30 …
fn next_size(count: u64) -> u64 {
    if count.to_string().starts_with('1') { 3 * count } else { count / 3 * 10 }
}

/// What an insert into a cuckoo filter takes while it fills, up to the one that it refuses.
pub fn insert_time_against_load(count: u64, fpr: f64, seed: u64, advance: Advance<'_>) -> Chart {
    let members = keys(seed, IN, count + count / 4).digests(Hashing::default());
    let mut series = Vec::new();
    for layout in [Layout::Fastest, Layout::Compact] {
        let Ok(Some(mut filter)) = empty("cuckoo", &Spec::sized(count, fpr).with_layout(layout)) else {
            continue;
        };
        let (mut points, mut outcomes) = (Vec::new(), Vec::new());
        for digests in members.chunks((count / 100).max(1) as usize) {
            outcomes.clear();
            let started = Instant::now();
            let inserted =
                filter.as_insert().expect("a cuckoo filter inserts").insert_batch(digests, &mut outcomes);
            let ns = started.elapsed().as_nanos() as f64 / outcomes.len().max(1) as f64;
            let load = filter.details().slots.expect("a cuckoo filter has slots").load();
            points.push((load, ns));
            advance(digests.len() as u64);
            if inserted.is_err() {
                break;
            }
        }
        series.push(Series::line(format!("cuckoo ({})", layout.name()), points));
    }
    Chart {
        title: format!("Inserting into a cuckoo filter for {} keys, until it is full", grouped(count)),
        x: Axis { label: "load: share of the slots that are taken".into(), scale: Scale::Linear },
        y: Axis { label: "ns per insert".into(), scale: Scale::Logarithmic },
        series,
        landmarks: vec![(0.95, "capacity".into())],
    }
}

/// An empty filter of a family that makes such.
fn empty(name: &str, spec: &Spec) -> Result<Option<Box<dyn AnyFilter>>, SpecError> {
    match family(name).map(|family| family.make) {
        Some(mayhap::Make::Empty(make)) => Ok(Some(make(spec)?)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(chart: &Chart, names: &[&str]) {
        for name in names {
            let series =
                chart.series.iter().find(|series| series.name == *name).unwrap_or_else(|| panic!("{name}"));
            assert!(series.points.len() > 2, "{name}: {:?}", series.points);
        }
        let svg = chart.to_svg().unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn every_picture_has_its_lines() {
        let quiet: Advance<'_> = &|_| ();
        let chart = bits_against_rate(3000, 1, quiet);
        drawn(
            &chart,
            &["bound: log2(1/p)", "bloom", "blocked", "cuckoo", "fuse", "ribbon", "counting", "spatial"],
        );
        let points = |name: &str| &chart.series.iter().find(|series| series.name == name).unwrap().points;
        // Nothing is below the bound but by chance.
        assert!(points("ribbon").iter().all(|&(rate, bits)| bits > 0.95 * math::lower_bound_bits(1.0, rate)));
        let chart = rate_against_keys(5000, 0.01, 1, quiet);
        drawn(&chart, &["bloom, theory", "bloom", "blocked", "cuckoo", "scalable", "expanding"]);
        drawn(
            &time_against_keys(10_000, 0.01, 1, &[(1 << 13, "L1".into())], quiet),
            &["bloom", "blocked", "exact"],
        );
        let chart = insert_time_against_load(20_000, 0.01, 1, quiet);
        drawn(&chart, &["cuckoo (fastest)", "cuckoo (compact)"]);
        assert!(chart.series[0].points.last().unwrap().0 > 0.95);
    }
}
