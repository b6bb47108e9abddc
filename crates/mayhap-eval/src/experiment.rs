//! One family, one set of keys: what theory says, and what happens.

use core::fmt;
use core::num::NonZeroU16;
use std::time::Instant;

use mayhap::shards::MemoryShards;
use mayhap::{
    AnyFilter, BuildError, Digest, Error, Family, Guarantee, Hashing, LOOKED_AT_BUCKETS, Layout, Make, Plan,
    Spec, SpecError, math,
};

use crate::{Drawn, Keys, Proportion, SplitMix64, Texts, median};

/// What is asked of every family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// So many are inserted.
    pub keys: u64,
    /// The false-positive rate that is asked for.
    pub fpr: f64,
    /// Of the hash function; that of the keys goes before.
    pub seed: u64,
}

/// A family, in one of its layouts if it has a choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The family.
    pub family: &'static Family,
    /// How it is laid out.
    pub layout: Option<Layout>,
}

impl Candidate {
    /// A family in each of its layouts. What cannot be had at this size and rate is no candidate, unless nothing can: then
    /// [`run`] says why.
    #[must_use]
    pub fn all(family: &'static Family, keys: u64, fpr: f64) -> Vec<Self> {
        let plans =
            Layout::ALL.map(|layout| (layout, (family.plan)(&Spec::sized(keys, fpr).with_layout(layout))));
        let layouts: Vec<Self> = plans
            .iter()
            .filter(|(_, plan)| plan.is_ok())
            .map(|&(layout, _)| Self { family, layout: Some(layout) })
            .collect();
        if layouts.is_empty() { vec![Self { family, layout: None }] } else { layouts }
    }

    fn spec(&self, task: &Task) -> Spec {
        let spec = Spec::sized(task.keys, task.fpr).with_hashing(Hashing::Xxh3 { seed: task.seed });
        self.layout.map_or(spec, |layout| spec.with_layout(layout))
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Of the keys, so many were different.
    pub distinct: u64,
    /// What theory gives for so many different keys. Families of fingerprints, layers and slices count what they hold, which
    /// comes to the same but for a few.
    pub fpr_predicted: f64,
    /// The relative deviation of the rate from one instance to the next, for the interval.
    pub deviation: f64,
    /// False positives among absent keys.
    pub false_positives: Proportion,
    /// Keys that are in and were denied. There must be none.
    pub false_negatives: u64,
    /// Keys that a family knows not to be in, and admitted. There must be none.
    pub wrong_in_universe: u64,
    /// Nanoseconds per key, from the key's bytes to the filter with all keys.
    pub insert_ns: f64,
    /// Nanoseconds per question for a key that is in, in batches.
    pub hit_ns: f64,
    /// Nanoseconds per question for a key that is not.
    pub miss_ns: f64,
    /// Of the filter.
    pub bits: u64,
}

/// Why there is no result.
#[derive(Debug)]
pub enum Impossible {
    /// The family cannot be made so.
    Spec(SpecError),
    /// The keys are not integers, and the family takes nothing else.
    NotIntegers,
    /// The bits up to the largest integer are too many.
    Largest {
        /// The largest integer.
        largest: u64,
    },
    /// Every draw was of a key that is in.
    NoAbsentKey {
        /// So many were tried.
        draws: u64,
        /// So many different keys are in.
        distinct: u64,
    },
    /// It could not be built or filled.
    Failed(Error),
}

impl From<SpecError> for Impossible {
    fn from(error: SpecError) -> Self {
        Self::Spec(error)
    }
}

impl From<Error> for Impossible {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<BuildError> for Impossible {
    fn from(error: BuildError) -> Self {
        Self::Failed(error.into())
    }
}

/// A bitmap of more bits is no experiment for a laptop.
const MAX_BITMAP: u64 = 1 << 34;

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(error) => error.fmt(f),
            Self::NotIntegers => f.write_str("the keys are not integers, and this family takes nothing else"),
            Self::Largest { largest } => write!(
                f,
                "the largest key is {largest}, and a bitmap has a bit for every integer up to it; the limit here is \
                 {MAX_BITMAP} bits"
            ),
            Self::NoAbsentKey { draws, distinct } => write!(
                f,
                "no absent key is left: the {distinct} different keys that are in cover all of {draws} more draws"
            ),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Impossible {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Spec(error) => error.source(),
            Self::Failed(error) => error.source(),
            _ => None,
        }
    }
}

/// Makes a filter of the drawn keys and asks it for all of them, and for the absent ones.
///
/// # Errors
/// [`Impossible`] says why there is no result: an experiment without absent keys has no rate, and 0 would be a lie.
pub fn run(candidate: Candidate, task: &Task, drawn: &Drawn) -> Result<Run, Impossible> {
    let (family, mut spec) = (candidate.family, candidate.spec(task));
    if let Some(integers) = integers(family, drawn)? {
        spec = Spec::new().with_capacity(integers).with_hashing(Hashing::Integer);
    }
    if let Make::Within(_) = family.make {
        spec = spec.with_others(task.keys);
    }
    let plan = (family.plan)(&spec)?;
    if drawn.absent.is_empty() {
        return Err(Impossible::NoAbsentKey { draws: drawn.asked, distinct: drawn.distinct });
    }
    let others = match family.make {
        Make::Within(_) => strangers(task),
        _ => Keys::Texts(Texts::default()),
    };
    let started = Instant::now();
    let filter = fill(family, &spec, drawn, &others)?;
    let insert_ns = per_key(started, drawn.members.len());
    let started = Instant::now();
    let hits = ask(&*filter, &drawn.members);
    let hit_ns = per_key(started, drawn.members.len());
    let started = Instant::now();
    let false_positives = ask(&*filter, &drawn.absent);
    let miss_ns = per_key(started, drawn.absent.len());
    let wrong_in_universe = match family.make {
        Make::Within(_) => ask(&*filter, &others).hits,
        _ => 0,
    };
    let (fpr_predicted, deviation) = predicted(candidate, &spec, &plan, &*filter, drawn.distinct);
    Ok(Run {
        distinct: drawn.distinct,
        fpr_predicted,
        deviation,
        false_positives,
        false_negatives: hits.trials - hits.hits,
        wrong_in_universe,
        insert_ns,
        hit_ns,
        miss_ns,
        bits: filter.report().bits,
    })
}

/// For a family of integers, how many integers it must have room for.
fn integers(family: &Family, drawn: &Drawn) -> Result<Option<u64>, Impossible> {
    if !matches!(family.name, "bitmap" | "roaring") {
        return Ok(None);
    }
    let largest = drawn.members.largest().ok_or(Impossible::NotIntegers)?;
    match family.name {
        "roaring" => Ok(Some(drawn.distinct)),
        _ if largest < MAX_BITMAP => Ok(Some(largest + 1)),
        _ => Err(Impossible::Largest { largest }),
    }
}

/// As many keys as are in, that are not in: a universe is made of both. They are longer than any number, and shorter than
/// any text.
fn strangers(task: &Task) -> Keys {
    let mut texts = Texts::default();
    for index in 0..task.keys {
        let (one, other) = (SplitMix64::at(!task.seed, index), SplitMix64::at(task.seed, index));
        texts.push(|out| out.extend([one.to_le_bytes(), other.to_le_bytes()].as_flattened()));
    }
    Keys::Texts(texts)
}

fn per_key(started: Instant, keys: usize) -> f64 {
    started.elapsed().as_nanos() as f64 / keys as f64
}

/// A filter of all keys, as its family is made.
fn fill(
    family: &'static Family,
    spec: &Spec,
    drawn: &Drawn,
    others: &Keys,
) -> Result<Box<dyn AnyFilter>, Impossible> {
    let (members, hashing) = (&drawn.members, spec.hashing());
    let shards = |keys: &Keys| {
        let mut shards = MemoryShards::new(math::shard_bits(keys.len() as u64));
        let Ok(()) = keys.try_digests(hashing, |digests| {
            shards.extend(digests.iter().map(|digest| digest.a));
            Ok::<(), core::convert::Infallible>(())
        });
        shards
    };
    match family.make {
        Make::Empty(make) => {
            let mut filter = make(spec)?;
            insert(&mut *filter, members)?;
            Ok(filter)
        }
        Make::Counted(make) => {
            let mut digests = members.digests(hashing);
            digests.sort_unstable_by_key(|digest| (digest.a, digest.b));
            // What came more often than can be stored is stored as often as can be.
            let most = u64::from(spec.max_count().unwrap_or(mayhap::sizes::MAX_COUNT));
            let counted: Vec<(Digest, u64)> = digests
                .chunk_by(|one, other| one == other)
                .map(|same| (same[0], most.min(same.len() as u64)))
                .collect();
            Ok(make(spec, &mut counted.into_iter())?)
        }
        Make::OfTwo(make) => {
            let digests = members.digests(hashing);
            let (first, second) = digests.split_at(digests.len() / 2);
            Ok(make(spec, first, second)?)
        }
        Make::FromDigests(make) => Ok(make(spec, &shards(members), 1)?),
        Make::Within(make) => Ok(make(spec, &shards(members), &shards(others), 1)?),
        _ => unreachable!("every way to make a filter is above"),
    }
}

fn insert(filter: &mut dyn AnyFilter, members: &Keys) -> Result<(), Impossible> {
    let (hashing, unsupported) = (filter.hashing(), filter.unsupported("insert"));
    let mut outcomes = Vec::new();
    if let Some(labels) = filter.as_label_mut() {
        return members.try_digests(hashing, |digests| {
            outcomes.clear();
            Ok(labels.insert_labelled_batch(digests, NonZeroU16::MIN, &mut outcomes).map_err(Error::from)?)
        });
    }
    let filter = filter.as_insert().ok_or(unsupported)?;
    members.try_digests(hashing, |digests| {
        outcomes.clear();
        Ok(filter.insert_batch(digests, &mut outcomes).map_err(Error::from)?)
    })
}

/// How many of these keys it admits.
pub(crate) fn ask(filter: &dyn AnyFilter, keys: &Keys) -> Proportion {
    let (mut hits, mut answers) = (0, Vec::new());
    let Ok(()) = keys.try_digests(filter.hashing(), |digests| {
        answers.clear();
        filter.contains_batch(digests, &mut answers);
        hits += answers.iter().filter(|&&answer| answer).count() as u64;
        Ok::<(), core::convert::Infallible>(())
    });
    Proportion { hits, trials: keys.len() as u64 }
}

/// The rate for so many different keys, and how much it differs from one instance to the next.
fn predicted(
    candidate: Candidate,
    spec: &Spec,
    plan: &Plan,
    filter: &dyn AnyFilter,
    distinct: u64,
) -> (f64, f64) {
    let (family, report) = (candidate.family, filter.report());
    if report.guarantee == Guarantee::Exact {
        return (0.0, 0.0);
    }
    // The same filter with as many keys as there are: what was planned, with another number.
    let same = Spec::new().with_capacity(distinct).with_bits(plan.bits);
    let same = candidate.layout.map_or(same, |layout| same.with_layout(layout));
    let planned = match (family.make, plan.probes) {
        // Made for the keys that there are.
        (Make::FromDigests(_), _) => (family.plan)(&spec.with_capacity(distinct)).ok().map(|plan| plan.fpr),
        (_, Some(probes)) if !family.can.grows && report.guarantee != Guarantee::NoFalseNegativesInWindow => {
            (family.plan)(&same.with_probes(probes)).ok().map(|plan| plan.fpr)
        }
        // Fingerprints, layers and slices say themselves what they hold.
        _ => None,
    };
    // Copies take slots, and a key that matches one of them matches all: only different ones count. A small cuckoo filter sees
    // that by itself.
    let copies = filter
        .details()
        .slots
        .filter(|slots| slots.used > distinct)
        .filter(|slots| family.name != "cuckoo" || slots.slots > 4 * LOOKED_AT_BUCKETS)
        .map_or(1.0, |slots| distinct as f64 / slots.used as f64);
    let half = 0.5 / (distinct.max(1) as f64).sqrt();
    let deviation = match plan.probes {
        Some(probes) if family.name == "blocked" => BLOCKED * half * f64::from(probes).sqrt(),
        Some(probes) => BITS * half * f64::from(probes).sqrt(),
        None => FINGERPRINTS * half,
    };
    (planned.unwrap_or(copies * report.fpr_now), deviation)
}

// A Bloom filter's rate differs from one seed to the next by about sqrt(k) / 2 sqrt(n) of it, if half of its bits are set.
// Thirty or forty seeds of each family, at rates from 0.1% to 5%, have shown up to 1.5 times as much where bits are shifted,
// up to 3.3 times in blocks, and up to 1.4 / sqrt(n) where fingerprints are kept.
const BITS: f64 = 2.0;
const BLOCKED: f64 = 4.0;
const FINGERPRINTS: f64 = 3.0;

/// At so many standard deviations a measured rate is said not to agree.
const SIGMAS: f64 = 4.0;

/// Several runs of the same candidate with other seeds, as one: counts are added, times are medians.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs(Vec<Run>);

impl Runs {
    /// Of at least one run.
    #[must_use]
    pub fn new(runs: Vec<Run>) -> Option<Self> {
        (!runs.is_empty()).then_some(Self(runs))
    }

    /// How many there are.
    #[must_use]
    pub fn repeats(&self) -> usize {
        self.0.len()
    }

    fn mean(&self, value: impl Fn(&Run) -> f64) -> f64 {
        self.0.iter().map(value).sum::<f64>() / self.0.len() as f64
    }

    fn middle(&self, value: impl Fn(&Run) -> f64) -> f64 {
        median(&mut self.0.iter().map(value).collect::<Vec<_>>()).expect("at least one run")
    }

    /// Different keys, on average.
    #[must_use]
    pub fn distinct(&self) -> f64 {
        self.mean(|run| run.distinct as f64)
    }

    /// What theory gives.
    #[must_use]
    pub fn fpr_predicted(&self) -> f64 {
        self.mean(|run| run.fpr_predicted)
    }

    /// All false positives among all absent keys.
    #[must_use]
    pub fn false_positives(&self) -> Proportion {
        self.0.iter().fold(Proportion { hits: 0, trials: 0 }, |sum, run| Proportion {
            hits: sum.hits + run.false_positives.hits,
            trials: sum.trials + run.false_positives.trials,
        })
    }

    /// What was measured.
    #[must_use]
    pub fn fpr_measured(&self) -> f64 {
        self.false_positives().rate().expect("no run without absent keys")
    }

    /// Between these the measured rate lies if theory is right, but for one case in 16,000 or fewer.
    #[must_use]
    pub fn fpr_interval(&self) -> (f64, f64) {
        let deviation = self.mean(|run| run.deviation) / (self.0.len() as f64).sqrt();
        let agreeing = self.false_positives().agreeing_rates(self.fpr_predicted(), deviation, SIGMAS);
        agreeing.unwrap_or((self.fpr_predicted(), self.fpr_predicted()))
    }

    /// Whether it does.
    #[must_use]
    pub fn agrees(&self) -> bool {
        let (low, high) = self.fpr_interval();
        (low..=high).contains(&self.fpr_measured())
    }

    /// Keys that were denied in any run.
    #[must_use]
    pub fn false_negatives(&self) -> u64 {
        self.0.iter().map(|run| run.false_negatives).sum()
    }

    /// Keys that a family knows not to be in, and admitted.
    #[must_use]
    pub fn wrong_in_universe(&self) -> u64 {
        self.0.iter().map(|run| run.wrong_in_universe).sum()
    }

    /// Nanoseconds per key inserted.
    #[must_use]
    pub fn insert_ns(&self) -> f64 {
        self.middle(|run| run.insert_ns)
    }

    /// Nanoseconds per key found.
    #[must_use]
    pub fn hit_ns(&self) -> f64 {
        self.middle(|run| run.hit_ns)
    }

    /// Nanoseconds per key not found.
    #[must_use]
    pub fn miss_ns(&self) -> f64 {
        self.middle(|run| run.miss_ns)
    }

    /// Bits per different key.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.mean(|run| run.bits as f64 / run.distinct as f64)
    }
}
