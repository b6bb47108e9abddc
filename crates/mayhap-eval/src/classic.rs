//! Experiments that circulate about Bloom filters: the value that was reported, the right one, the one that theory gives for
//! the keys at hand, and the one that is measured.

use std::time::Instant;

use mayhap::{Blocked, Bloom, Key, Layout, Spec, SpecError, family};

use crate::{
    ABSENT, Absent, Advance, Candidate, Data, Finding, Impossible, KeyKind, Runs, SplitMix64, Task, run,
};

/// One experiment about a rate.
#[derive(Debug)]
pub struct ClassicRate {
    /// What the keys are.
    pub what: String,
    /// So many were inserted.
    pub keys: u64,
    /// So many of them are different.
    pub distinct: u64,
    /// For so many absent ones was asked.
    pub asked: u64,
    /// The rate that the filter was made for.
    pub fpr: f64,
    /// By which family.
    pub family: &'static str,
    /// What was reported.
    pub reported: Option<f64>,
    /// What the report should have said, where it divided by the wrong number.
    pub corrected: Option<f64>,
    /// What theory says if all keys are different.
    pub right: f64,
    /// What theory says for the keys that there are, and what was measured.
    pub finding: Result<Finding, Impossible>,
}

/// Of so many keys the reports are.
pub const CLASSIC_KEYS: u64 = 10_000_000;

struct Experiment {
    what: &'static str,
    data: Data,
    keys: u64,
    fpr: f64,
    questions: u64,
    absent: Absent,
    reported: Option<f64>,
    corrected: Option<f64>,
}

/// Draws the keys of every report and measures; with fewer keys than [`CLASSIC_KEYS`] scales shrink too, so that as many of
/// them are different.
pub fn classic_rates(keys: u64, seed: u64, advance: Advance<'_>) -> Vec<ClassicRate> {
    let part = keys as f64 / CLASSIC_KEYS as f64;
    let (many, tenth) = (keys.clamp(100_000, 2_000_000), (keys / 10).max(1));
    let distribution = |what: &'static str, data, reported| Experiment {
        what,
        data,
        keys,
        fpr: 0.03,
        questions: many,
        absent: Absent::Same,
        reported,
        corrected: None,
    };
    let experiments = [
        distribution("uniform", Data::Uniform { below: 1 << 62 }, Some(0.030_034)),
        distribution("gaussian", Data::Gaussian { scale: 1e8 * part }, Some(0.028_583)),
        distribution("exponential", Data::Exponential { scale: 1e8 * part }, Some(0.027_511)),
        // 296,216 were admitted of 9.9 million absent ones, and divided by all 10 million lookups.
        Experiment { corrected: Some(0.029_921), ..distribution("UUIDs", Data::Uuid, Some(0.029_622)) },
        distribution("exponential", Data::Exponential { scale: 1e-5 }, None),
        Experiment {
            what: "even numbers in, odd asked",
            data: Data::Sequential,
            keys: tenth,
            fpr: 0.01,
            questions: many,
            absent: Absent::Disjoint,
            reported: None,
            corrected: None,
        },
        Experiment {
            what: "UUIDs",
            data: Data::Uuid,
            keys,
            fpr: 0.001,
            questions: 9900,
            absent: Absent::Same,
            reported: None,
            corrected: None,
        },
        Experiment {
            what: "integers",
            data: Data::Sequential,
            keys: tenth,
            fpr: 0.01,
            questions: many,
            absent: Absent::Same,
            reported: None,
            corrected: None,
        },
    ];
    let mut rates = Vec::new();
    for experiment in experiments {
        let Experiment { what, data, keys, fpr, questions, absent, reported, corrected } = experiment;
        let drawn = data.draw(seed, keys, questions, absent);
        for (name, layout) in [("bloom", None), ("blocked", Some(Layout::Fastest))] {
            let Some(family) = family(name) else { continue };
            let candidate = Candidate { family, layout };
            let spec =
                layout.map_or(Spec::sized(keys, fpr), |layout| Spec::sized(keys, fpr).with_layout(layout));
            let right = (family.plan)(&spec).map_or(fpr, |plan| plan.fpr);
            let finding = run(candidate, &Task { keys, fpr, seed }, &drawn).map(|run| {
                let runs = Runs::new(vec![run]).expect("one run");
                let (low, high) = runs.fpr_interval();
                Finding {
                    experiment: "classic",
                    what: what.into(),
                    reported,
                    expected: runs.fpr_predicted(),
                    measured: runs.fpr_measured(),
                    low,
                    high,
                }
            });
            // The reports are of Bloom filters.
            let of_bloom = |rate: Option<f64>| rate.filter(|_| name == "bloom");
            let (reported, corrected) = (of_bloom(reported), of_bloom(corrected));
            let what = match data {
                Data::Gaussian { scale } | Data::Exponential { scale } => format!("{what}, scale {scale:e}"),
                _ => what.into(),
            };
            let (distinct, asked) = (drawn.distinct, drawn.absent.len() as u64);
            rates.push(ClassicRate {
                what,
                keys,
                distinct,
                asked,
                fpr,
                family: name,
                reported,
                corrected,
                right,
                finding,
            });
            advance(2 * keys + questions);
        }
    }
    rates
}

/// The rate at which a cuckoo filter, semi-sorted or plain, and a Bloom filter take the same bits per key, by the formulas
/// of the literature with 4 slots a bucket at a load of 0.95.
#[must_use]
pub fn cuckoo_crossing(semi_sorted: bool) -> f64 {
    // (log2(1/p) + 3) / 0.95 = log2(1/p) / ln 2, and one bit less if semi-sorted.
    let saved = if semi_sorted { 1.0 } else { 0.0 };
    let bits = (3.0 - saved) / 0.95 / (core::f64::consts::LOG2_E - 1.0 / 0.95);
    libm::exp2(-bits)
}

/// Nanoseconds per key of a filter with many keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassicTimes {
    /// To add it.
    pub add_ns: f64,
    /// To ask for one that is in.
    pub hit_ns: f64,
    /// To ask for one that is not.
    pub miss_ns: f64,
    /// Of those, so many were admitted.
    pub admitted: u64,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassicFilter {
    /// A Bloom filter, one key after the other.
    BloomSingle,
    /// A Bloom filter, in batches.
    Bloom,
    /// A blocked filter, in batches.
    Blocked,
}

impl ClassicFilter {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::BloomSingle, Self::Bloom, Self::Blocked];

    /// As reports call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BloomSingle => "bloom, one by one",
            Self::Bloom => "bloom, in batches",
            Self::Blocked => "blocked, in batches",
        }
    }

    /// Adds all members, and asks for them and for the absent ones.
    ///
    /// # Errors
    /// [`SpecError`] if there is no such filter.
    pub fn time<K: Key>(self, members: &[K], absent: &[K], fpr: f64) -> Result<ClassicTimes, SpecError> {
        let spec = Spec::sized(members.len() as u64, fpr);
        match self {
            Self::BloomSingle => Ok(time(
                members,
                absent,
                Bloom::from_spec(&spec)?,
                |bloom, keys| {
                    for key in keys {
                        bloom.insert(key);
                    }
                },
                |bloom, keys| keys.iter().filter(|key| bloom.contains(key)).count(),
            )),
            Self::Bloom => {
                Ok(time(members, absent, Bloom::from_spec(&spec)?, Bloom::insert_all, |bloom, keys| {
                    in_batches(keys, |batch, hits| bloom.contains_each(batch, hits))
                }))
            }
            Self::Blocked => Ok(time(
                members,
                absent,
                Blocked::from_spec(&spec.with_layout(Layout::Fastest))?,
                Blocked::insert_all,
                |blocked, keys| in_batches(keys, |batch, hits| blocked.contains_each(batch, hits)),
            )),
        }
    }
}

fn time<K, F>(
    members: &[K],
    absent: &[K],
    mut filter: F,
    add: impl FnOnce(&mut F, &[K]),
    ask: impl Fn(&F, &[K]) -> usize,
) -> ClassicTimes {
    let per_key =
        |started: Instant, keys: &[K]| started.elapsed().as_nanos() as f64 / keys.len().max(1) as f64;
    let started = Instant::now();
    add(&mut filter, members);
    let add_ns = per_key(started, members);
    let started = Instant::now();
    let hits = ask(&filter, members);
    let hit_ns = per_key(started, members);
    assert_eq!(hits, members.len(), "a filter lost a key");
    let started = Instant::now();
    let admitted = ask(&filter, absent) as u64;
    let miss_ns = per_key(started, absent);
    ClassicTimes { add_ns, hit_ns, miss_ns, admitted }
}

fn in_batches<K>(keys: &[K], mut ask: impl FnMut(&[K], &mut Vec<bool>)) -> usize {
    let mut hits = Vec::with_capacity(4096);
    keys.chunks(4096)
        .map(|batch| {
            hits.clear();
            ask(batch, &mut hits);
            hits.iter().filter(|&&hit| hit).count()
        })
        .sum()
}

/// Numbers to add and to ask for.
#[must_use]
pub fn classic_numbers(keys: u64, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let numbers = |first: u64| (first..first + keys).map(|index| SplitMix64::at(seed, index)).collect();
    (numbers(0), numbers(ABSENT))
}

/// UUIDs as text to add and to ask for.
#[must_use]
pub fn classic_uuids(keys: u64, seed: u64) -> (Vec<[u8; 36]>, Vec<[u8; 36]>) {
    let uuid = |index: u64| KeyKind::Uuid.key(seed, index).try_into().expect("a UUID has 36 characters");
    let uuids = |first: u64| (first..first + keys).map(uuid).collect();
    (uuids(0), uuids(ABSENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuckoo_filters_are_smaller_from_these_rates_on() {
        assert!((cuckoo_crossing(true) - 0.024).abs() < 5e-4, "{}", cuckoo_crossing(true));
        assert!((cuckoo_crossing(false) - 0.0037).abs() < 5e-5, "{}", cuckoo_crossing(false));
    }

    #[test]
    fn every_rate_is_the_predicted_one_and_the_set_without_absent_keys_says_so() {
        let rates = classic_rates(200_000, 1, &|_| ());
        assert_eq!(rates.len(), 16);
        for rate in &rates {
            match &rate.finding {
                Ok(finding) => assert!(finding.agrees(), "{rate:?}"),
                Err(why) => {
                    assert_eq!(
                        (rate.what.as_str(), rate.distinct, rate.asked),
                        ("exponential, scale 1e-5", 1, 0)
                    );
                    assert!(why.to_string().starts_with("no absent key is left"), "{why}");
                }
            }
        }
        assert_eq!(rates.iter().filter(|rate| rate.finding.is_err()).count(), 2);
    }

    #[test]
    fn timed_filters_err_as_often_as_they_should() {
        let (members, absent) = classic_numbers(100_000, 3);
        for filter in ClassicFilter::ALL {
            let times = filter.time(&members, &absent, 0.03).unwrap();
            let rate = crate::Proportion { hits: times.admitted, trials: 100_000 };
            assert!(rate.agrees_with(0.03, 0.02, 4.0), "{filter:?} {times:?}");
        }
        let (members, absent) = classic_uuids(10_000, 3);
        assert!(ClassicFilter::Bloom.time(&members, &absent, 0.03).unwrap().admitted < 500);
    }
}
