//! The run-time face of a filter, for programs that learn the family from a file or a flag.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::num::NonZeroU16;

use crate::batch::BATCH;
use crate::bits::{Bytes, OutOfMemory};
use crate::error::{BuildError, DecodeError, Error, Full, Knob, Mismatch, SpecError};
use crate::hash::{Digest, Hashing, Secret};
use crate::key_rules::KeyRules;
use crate::math::AreaRates;
#[cfg(feature = "internals")]
use crate::paths::Paths;
use crate::probing::Probing;
use crate::registry;
use crate::shards::DigestShards;
use crate::spec::{CountingRule, KnobRange, Layout, Plan, Request, Spec};
use crate::traits::{
    Associate, Count, Filter, Fold, Insert, Insertion, Intersect, Label, Merge, Remove, SharedInsert,
    Subtract,
};
use crate::wire::{Encoded, Frame, KEY_RULES, Summing, Verify, Writer};

/// A filter of any family. A capability that it lacks is `None`: nothing throws, nothing pretends.
pub trait AnyFilter: Filter + Any + Send + Sync {
    /// The family it belongs to.
    fn family(&self) -> &'static Family;

    /// Capacity, fill, rates: what a user wants to see.
    fn report(&self) -> Report;

    /// What there is to say of it besides, which not every filter has. It can take longer than the report: that of a filter
    /// of another program may count bits.
    fn details(&self) -> Details<'_> {
        Details::default()
    }

    /// The program whose rules it follows, if it is not ours: see the module `interop`.
    fn program(&self) -> Option<&'static str> {
        None
    }

    /// Whether the capacity and the asked rate of its [report](AnyFilter::report) are guesses, because the program that made
    /// it does not write them down.
    fn guesses_capacity(&self) -> bool {
        false
    }

    /// What this filter can do. Its family can do the same, unless that depends on how it counts.
    fn can(&self) -> Capabilities {
        self.family().can
    }

    /// The error for an operation that this filter lacks.
    fn unsupported(&self, operation: &'static str) -> Error {
        Error::Unsupported { family: self.family().name, operation }
    }

    /// Its exceptions, where it can have any: [`except`](crate::except) makes it so.
    fn exceptions(&self) -> Option<Exceptions<'_>> {
        None
    }

    /// The filter inside, if this one only adds what its file says beside it.
    #[doc(hidden)]
    fn wrapped(&self) -> Option<&dyn AnyFilter> {
        None
    }

    /// How its keys were made, if the file that it came from says so: see [`key_rules`](crate::key_rules).
    fn key_rules(&self) -> Option<&KeyRules> {
        None
    }

    /// Other rules in place of those that it has. `false` if it has none, and nothing has changed:
    /// [`with_key_rules`](crate::with_key_rules) makes a filter that has some.
    fn set_key_rules(&mut self, rules: KeyRules) -> bool {
        drop(rules);
        false
    }

    /// Writes parameters and payload. [`encode`] adds the rest of the file.
    #[doc(hidden)]
    fn encode<'a>(&'a self, out: &mut Writer<'a>);

    /// Can keys be inserted?
    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        None
    }
    /// Can keys be removed?
    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        None
    }
    /// Are keys counted?
    fn as_count(&self) -> Option<&dyn Count> {
        None
    }
    /// Does it tell which set a key is in?
    fn as_label(&self) -> Option<&dyn Label> {
        None
    }
    /// Can keys be inserted into one of its sets?
    fn as_label_mut(&mut self) -> Option<&mut dyn Label> {
        None
    }
    /// Does it tell which of two sets a key is in, or that it is in both?
    fn as_associate(&self) -> Option<&dyn Associate> {
        None
    }
    /// Can its two sets be named?
    fn as_associate_mut(&mut self) -> Option<&mut dyn Associate> {
        None
    }
    /// Is there a union?
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        None
    }
    /// Is there an intersection?
    fn as_intersect(&mut self) -> Option<&mut dyn Intersect> {
        None
    }
    /// Is there a difference?
    fn as_subtract(&mut self) -> Option<&mut dyn Subtract> {
        None
    }

    /// Forgets all keys; `false`, and nothing has changed, if it is built of all its keys at once.
    fn clear(&mut self) -> bool {
        false
    }

    /// Bytes of memory, everything included.
    fn size_in_bytes(&self) -> u64 {
        self.report().bits.div_ceil(8)
    }

    /// Takes the memory that encoding needs. A process that is refused it while it encodes ends there.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing has changed.
    #[doc(hidden)]
    fn settle(&mut self) -> Result<(), OutOfMemory> {
        Ok(())
    }

    /// Can it be made smaller?
    fn as_fold(&self) -> Option<&dyn Fold> {
        None
    }

    /// Takes these loops from now on, if it has several: for tests.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    fn set_paths(&mut self, paths: Paths) {
        let _ = paths;
    }

    /// Asks for many keys by their bytes; appends one answer each.
    ///
    /// This and [`insert_keys`](AnyFilter::insert_keys) work for every filter that inserts at all. By digests, those of other
    /// programs that need more than 128 bits of hash cannot be asked: they answer "perhaps" to every one.
    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        by_digests(self, keys, hits);
    }

    /// Inserts many keys by their bytes; appends one outcome each.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the family does not insert; [`Error::Full`] says how many went in.
    fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Error> {
        insert_by_digests(self, keys, outcomes)
    }
}

/// Asks for many keys by their digests.
pub(crate) fn by_digests(filter: &(impl AnyFilter + ?Sized), keys: &[&[u8]], hits: &mut Vec<bool>) {
    let hashing = filter.hashing();
    for keys in keys.chunks(BATCH) {
        let (digests, len) = digest_batch(hashing, keys);
        filter.contains_batch(&digests[..len], hits);
    }
}

/// Inserts many keys by their digests.
pub(crate) fn insert_by_digests(
    filter: &mut (impl AnyFilter + ?Sized),
    keys: &[&[u8]],
    outcomes: &mut Vec<Insertion>,
) -> Result<(), Error> {
    let (hashing, unsupported) = (filter.hashing(), filter.unsupported("insert"));
    let filter = filter.as_insert().ok_or(unsupported)?;
    for (batch, keys) in keys.chunks(BATCH).enumerate() {
        let (digests, len) = digest_batch(hashing, keys);
        filter
            .insert_batch(&digests[..len], outcomes)
            .map_err(|full| Full { inserted: full.inserted + (batch * BATCH) as u64, ..full })?;
    }
    Ok(())
}

fn digest_batch(hashing: Hashing, keys: &[&[u8]]) -> ([Digest; BATCH], usize) {
    let mut digests = [Digest { a: 0, b: 0 }; BATCH];
    for (digest, key) in digests.iter_mut().zip(keys) {
        *digest = hashing.digest(key);
    }
    (digests, keys.len())
}

/// Makes an empty filter of what was asked for.
pub type MakeEmpty = fn(&Spec) -> Result<Box<dyn AnyFilter>, SpecError>;

/// Makes a filter of its keys, each once with how often it is in. The spec says how many they are.
pub type MakeCounted =
    fn(&Spec, &mut dyn Iterator<Item = (Digest, u64)>) -> Result<Box<dyn AnyFilter>, SpecError>;

/// Makes a filter of the keys of two sets, in any order and as often as they like. The spec says how many there are in either.
pub type MakeOfTwo = fn(&Spec, &[Digest], &[Digest]) -> Result<Box<dyn AnyFilter>, SpecError>;
/// Makes a filter of all its keys with a number of threads, which does not change it.
pub type MakeFromDigests = fn(&Spec, &dyn DigestShards, usize) -> Result<Box<dyn AnyFilter>, BuildError>;

/// Makes a filter of a set within a universe, which can but need not have the keys of the set too; with a number of threads,
/// which does not change it.
pub type MakeWithin =
    fn(&Spec, &dyn DigestShards, &dyn DigestShards, usize) -> Result<Box<dyn AnyFilter>, BuildError>;

/// Makes an empty filter that many threads fill.
pub type MakeShared = fn(&Spec) -> Result<Box<dyn SharedInsert>, SpecError>;

/// Makes a filter of the parts of a file.
pub(crate) type Decode = fn(&mut Frame, Hashing) -> Result<Box<dyn AnyFilter>, DecodeError>;

/// How a filter of a family comes to be.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Make {
    /// Empty, and keys are inserted afterwards.
    Empty(MakeEmpty),
    /// With all keys, which are counted before.
    Counted(MakeCounted),
    /// With all keys of two sets, since what is stored of a key is which of them it is in.
    OfTwo(MakeOfTwo),
    /// Of all its keys at once, with a number of threads.
    FromDigests(MakeFromDigests),
    /// Of all its keys and of all others, with a number of threads.
    Within(MakeWithin),
}

/// One family: one static in its own file, one line in [`FAMILIES`](crate::registry::FAMILIES).
#[derive(Debug)]
#[non_exhaustive]
pub struct Family {
    /// On disk; never reused.
    pub id: u16,
    /// The word for it everywhere: `--family`, module, golden file.
    pub name: &'static str,
    /// What it is for, in one line.
    pub summary: &'static str,
    /// What its filters can do.
    pub can: Capabilities,
    /// What can be requested of it besides capacity, rate and bits, and a range of rates if that is smaller than for others.
    pub knobs: &'static [KnobRange],
    /// The rules by which its files find positions.
    pub(crate) probing: &'static [Probing],
    /// What its operations cost.
    pub cost: Cost,
    /// How a filter comes to be.
    pub make: Make,
    /// How many threads build one, if they can.
    pub shared: Option<MakeShared>,
    /// What it would build, without building it.
    pub plan: fn(&Spec) -> Result<Plan, SpecError>,
    /// A filter from the parts of a file. Takes the sections that it knows out of the frame.
    pub(crate) decode: Decode,
    /// Whether a filter decoded from exclusive bytes writes every insert there and no insert fails, so
    /// that a mapped file can be updated where it lies.
    pub in_place: bool,
    /// What tests must know of it.
    #[doc(hidden)]
    pub profile: Profile,
}

impl Family {
    /// Whether a request for it may have this number.
    #[must_use]
    pub fn takes(&self, knob: Knob) -> bool {
        matches!(knob, Knob::Capacity | Knob::Fpr | Knob::Bits)
            || self.knobs.iter().any(|own| own.knob == knob)
    }

    /// The numbers of a request, if the family has every one of them and all are in range.
    ///
    /// # Errors
    /// [`SpecError`] names the first that is not, and the families that have it.
    pub(crate) fn check<'a>(&self, spec: &'a Spec) -> Result<&'a Request, SpecError> {
        let request = spec.unchecked();
        request.check()?;
        for (knob, asked) in request.settings() {
            match self.knobs.iter().find(|own| own.knob == knob) {
                Some(own) => own.check(asked)?,
                None if self.takes(knob) => {}
                None => {
                    let others = registry::names_with(knob);
                    return Err(SpecError::NotFor { knob, family: self.name, others });
                }
            }
        }
        Ok(request)
    }

    /// The id in the header of a file is that of this family.
    ///
    /// # Errors
    /// [`DecodeError::OtherFamily`] if it is that of another, [`DecodeError::Family`] if no family has it.
    pub(crate) fn must_be(&self, found: u16) -> Result<(), DecodeError> {
        if self.id == found {
            return Ok(());
        }
        let other = registry::FAMILIES.iter().find(|family| family.id == found);
        let found = other.ok_or(DecodeError::Family { found })?.name;
        Err(DecodeError::OtherFamily { expected: self.name, found })
    }
}

impl PartialEq for Family {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// What the filters of a family can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Keys can be inserted one by one.
    pub inserts: bool,
    /// Keys can be removed.
    pub removes: bool,
    /// Keys are counted.
    pub counts: bool,
    /// It holds many sets and says which one.
    pub labels: bool,
    /// There is a union.
    pub merges: bool,
    /// There is an intersection.
    pub intersects: bool,
    /// There is a difference.
    pub subtracts: bool,
    /// It can be made smaller when it holds fewer keys than it was made for.
    pub folds: bool,
    /// It grows beyond its capacity and keeps its rate.
    pub grows: bool,
    /// It makes no errors.
    pub exact: bool,
}

impl Capabilities {
    /// Nothing but questions.
    pub const NONE: Self = Self {
        inserts: false,
        removes: false,
        counts: false,
        labels: false,
        merges: false,
        intersects: false,
        subtracts: false,
        folds: false,
        grows: false,
        exact: false,
    };
}

/// What tests must know of a family that its capabilities do not tell. Most families are [`USUAL`](Profile::USUAL).
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The space in [`Cost`] as a number, where it is one of keys and rate alone.
    pub space: Option<Space>,
    /// The bytes depend on the order of the inserts, so that a merge gives others than inserting the keys of both.
    pub is_ordered: bool,
    /// Of the bits of a filter, how many depend on the keys, so that a plan does not know them.
    pub slack: fn(u64) -> u64,
    /// Some copies of a key are not counted, so that a filter that was merged with itself has other bytes.
    pub keeps_copies: bool,
    /// It holds what its payload has, and little else.
    pub is_held_as_written: bool,
    /// Its batches have loops that prefetch, for filters beyond the cache.
    pub prefetches: bool,
    /// Its batches have loops for the instructions of several processors.
    pub has_kernels: bool,
}

/// Bits per key.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Of `log2(1/p)`.
    pub per_key: fn(f64) -> f64,
    /// What a plan for a million keys may take less: fingerprints and layers have whole bits.
    pub less: f64,
    /// And more.
    pub more: f64,
}

impl Profile {
    /// What most families are.
    pub const USUAL: Self = Self {
        space: None,
        is_ordered: false,
        slack: |_| 0,
        keeps_copies: false,
        is_held_as_written: true,
        prefetches: true,
        has_kernels: false,
    };
}

/// Complexity, in the words of the literature: n keys, k probes, U integers, p the rate, m others of a universe, and the
/// doublings that were planned for.
///
/// The space is what a plan of a million keys takes; whole bits, small sets and room to grow take more ("and up").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// One question.
    pub query: &'static str,
    /// One insert.
    pub insert: &'static str,
    /// All of it, in bits.
    pub space: &'static str,
}

/// Which wrong answers are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guarantee {
    /// No answer is wrong.
    Exact,
    /// No answer about a key of the universe is wrong. "No" is certain.
    ExactInUniverse,
    /// "No" is certain.
    NoFalseNegatives,
    /// "No" is certain as long as only keys were removed that were in.
    NoFalseNegativesIfDeletesValid,
    /// "No" is certain for the last keys that were inserted, as many as the capacity. Older ones are forgotten.
    NoFalseNegativesInWindow,
    /// "No" may be wrong.
    FalseNegativesPossible,
}

impl Guarantee {
    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::ExactInUniverse => "exact for every key of its universe, no false negatives for others",
            Self::NoFalseNegatives => "no false negatives",
            Self::NoFalseNegativesIfDeletesValid => "no false negatives if only present keys were removed",
            Self::NoFalseNegativesInWindow => {
                "no false negatives among the last keys, as many as the capacity"
            }
            Self::FalseNegativesPossible => "false negatives possible",
        }
    }
}

/// A filter's state, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The number of keys it was made for.
    pub capacity: u64,
    /// How many keys were inserted, repeats included; unknown after a merge or an interrupted update.
    pub inserted: Option<u64>,
    /// How many different keys are probably in; unknown when the filter is saturated, and of an intersection that was
    /// changed afterwards.
    pub estimated_len: Option<f64>,
    /// Bits of payload.
    pub bits: u64,
    /// Positions examined per key, where the number is fixed.
    pub probes: Option<u32>,
    /// The share of the bits or cells that are used.
    pub fill: f64,
    /// The false-positive rate that was asked for.
    pub fpr_asked: f64,
    /// The one that its present state gives.
    pub fpr_now: f64,
    /// If that is an estimate: the interval that has the true rate in 19 of 20 filters. `None` if the rate is computed from
    /// the state of the filter, to 1% or better.
    pub fpr_interval: Option<(f64, f64)>,
    /// The one that it gives with as many keys as it was made for.
    pub fpr_at_capacity: f64,
    /// Which wrong answers are possible.
    pub guarantee: Guarantee,
}

impl Report {
    /// Whether more keys are in than it was made for, so that the rate is above the one asked for. Never, if it is
    /// exact or forgets.
    #[must_use]
    pub fn over_capacity(&self) -> bool {
        !matches!(self.guarantee, Guarantee::Exact | Guarantee::NoFalseNegativesInWindow)
            && match self.estimated_len {
                Some(len) => len > 1.01 * self.capacity as f64 + 10.0,
                None => self.fpr_now >= 1.0,
            }
    }
}

/// What only some filters have, for people: a filter fills in what it has.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Details<'a> {
    /// How it is laid out, where its family has a choice.
    pub layout: Option<Layout>,
    /// Its counters.
    pub counters: Option<CounterReport>,
    /// Its slots, where it keeps fingerprints in them.
    pub slots: Option<Slots>,
    /// Its areas.
    pub areas: Option<AreasReport<'a>>,
    /// Its layers, oldest first, where it grows by them; empty otherwise.
    pub layers: Vec<LayerReport>,
    /// What it remembers, where it forgets.
    pub window: Option<WindowReport>,
    /// How often it has doubled, where it does.
    pub doublings: Option<Doublings>,
    /// How many keys it knows not to be in.
    pub others: Option<u64>,
}

/// What a filter's counters are and how they fare, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterReport {
    /// How many there are, all together.
    pub counters: u64,
    /// The bits of each; `None` if their width is variable.
    pub bits: Option<u32>,
    /// How many are at their top and stay there, so that a removed key may not go away.
    pub saturated: u64,
    /// How many of variable width take more than 4 bits.
    pub overflowed: u64,
    /// How keys are counted, where the family has a choice.
    pub rule: Option<CountingRule>,
    /// Whether a merge has made the counts worse than the rule promises.
    pub degraded: bool,
}

/// The slots of a filter that keeps fingerprints in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slots {
    /// How many there are.
    pub slots: u64,
    /// How many of them are taken.
    pub used: u64,
    /// How often a fingerprint was moved to make room for another, ever since the filter was made; where that happens
    /// and is counted.
    pub evictions: Option<u64>,
}

impl Slots {
    /// The share of the slots that are taken.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.used as f64 / self.slots as f64
    }
}

/// The sets of a filter of many sets, for people.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AreasReport<'a> {
    /// The bits of each label.
    pub label_bits: u32,
    /// The share of the cells that are empty; "sparsity" in the reference.
    pub emptiness: f64,
    /// The chance that no key of any area is told to be in a higher one, from the numbers of keys.
    pub safeness_expected: f64,
    /// The same, from the filter as it is.
    pub safeness: f64,
    /// How many keys are told to be in a higher area than they are, probably.
    pub mislabelled: f64,
    /// Each area, lowest first.
    pub areas: Vec<AreaReport<'a>>,
}

/// One set of a filter of many sets.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AreaReport<'a> {
    /// Its number; a higher one outranks a lower one.
    pub area: NonZeroU16,
    /// What it is called; empty if it has no name.
    pub name: &'a str,
    /// How many keys were inserted, repeats included.
    pub inserted: u64,
    /// The cells that have its label.
    pub cells: u64,
    /// How often a key found its label in a cell already, if areas were inserted one after the other, lowest first.
    pub self_collisions: Option<u64>,
    /// What the numbers of keys let expect: a priori.
    pub expected: AreaRates,
    /// What the cells say: a posteriori.
    pub now: AreaRates,
}

/// One layer of a filter that grows by them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LayerReport {
    /// The number of keys it was made for.
    pub capacity: u64,
    /// How many it has taken.
    pub keys: u64,
    /// Its bits.
    pub bits: u64,
    /// Positions per key.
    pub probes: u32,
    /// The share of its bits that are set.
    pub fill: f64,
    /// Its false-positive rate as it is.
    pub fpr_now: f64,
}

/// What a filter that forgets remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowReport {
    /// The least number of keys that are remembered: those that were inserted last.
    pub remembered: u64,
    /// A key that was inserted before so many others is forgotten: it is admitted as one that never came. Between the
    /// two it is admitted with a chance that halves with each generation.
    pub forgotten: u64,
    /// So many keys are forgotten at once.
    pub generation: u64,
    /// The slices that the bits are divided into.
    pub slices: u32,
}

/// The exceptions of a filter: keys that it denies exactly, whatever its bits say.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Exceptions<'a> {
    /// How many keys.
    pub keys: u64,
    /// The filter without them. What it says of its rate, it says of this.
    pub without: &'a dyn AnyFilter,
}

/// How often a filter has doubled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doublings {
    /// How often it did.
    pub made: u32,
    /// How often it can, and still keep the rate that was asked for.
    pub planned: u32,
}

/// A filter as it stands in a file: header, payload, sections.
#[must_use]
pub fn encode(filter: &dyn AnyFilter, summing: Summing) -> Encoded<'_> {
    encode_with(filter, summing, &[])
}

/// The same with further sections, such as the metadata of the file that the filter came from.
#[must_use]
pub fn encode_with<'a>(
    filter: &'a dyn AnyFilter,
    summing: Summing,
    sections: &[(u32, &'a [u8])],
) -> Encoded<'a> {
    let mut writer = Writer::new(filter.family().id, filter.hashing().stored());
    filter.encode(&mut writer);
    for &(id, bytes) in sections {
        writer.section(id, bytes);
    }
    writer.finish(summing)
}

/// Compares the checksum of the bytes that a filter came from, if that has not been done: those of a file that was opened by
/// its header alone. All other filters are verified already, and this costs nothing.
///
/// What combines filters or folds one does this first, and what is damaged is encoded with a checksum that does not match
/// either: damage is never hidden under a new checksum. Call this to find out first.
///
/// # Errors
/// [`DecodeError::Checksum`]: the filter is damaged.
pub fn verify(filter: &dyn AnyFilter) -> Result<(), DecodeError> {
    let mut sources = Writer::of_sources();
    filter.encode(&mut sources);
    sources.verify_sources()
}

/// A filter of one family from the bytes of a file.
pub(crate) fn from_bytes<F>(
    bytes: &[u8],
    secret: Option<&Secret>,
    family: &Family,
    decode: impl FnOnce(&mut Frame, Hashing) -> Result<F, DecodeError>,
) -> Result<F, DecodeError> {
    let mut frame = Frame::parse(&Bytes::from(bytes.to_vec()), Verify::All)?;
    family.must_be(frame.header.family)?;
    let hashing = frame.hashing(secret)?;
    if let Some(section) = frame.take_section(KEY_RULES)
        && !KeyRules::decode(section.as_slice())?.spelling.is_plain()
    {
        return Err(DecodeError::Spelled);
    }
    let filter = decode(&mut frame, hashing)?;
    frame.end()?;
    Ok(filter)
}

/// Why two filters are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Every key of either.
    Union,
    /// Every key of both.
    Intersection,
    /// Every key of the first that is not in the second.
    Difference,
}

/// Combines two filters that only a run-time face is known of: `ours` becomes the result.
///
/// # Errors
/// [`Error::Mismatch`] names the first difference, [`Error::Unsupported`] the operation that the
/// family does not have; then nothing has changed.
pub fn combine(ours: &mut dyn AnyFilter, theirs: &dyn AnyFilter, how: Combine) -> Result<(), Error> {
    let family = ours.family().name;
    if ours.family() != theirs.family() {
        return Err(Mismatch::Family { ours: family, theirs: theirs.family().name }.into());
    }
    let unsupported = ours.unsupported(match how {
        Combine::Union => "merge",
        Combine::Intersection => "intersect",
        Combine::Difference => "subtract",
    });
    match how {
        Combine::Union => ours.as_merge().ok_or(unsupported)?.merge_from(theirs),
        Combine::Intersection => ours.as_intersect().ok_or(unsupported)?.intersect_from(theirs),
        Combine::Difference => ours.as_subtract().ok_or(unsupported)?.subtract_from(theirs),
    }?;
    Ok(())
}

/// A filter without what its file says beside it.
pub(crate) fn bare(filter: &dyn AnyFilter) -> &dyn AnyFilter {
    filter.wrapped().unwrap_or(filter)
}

/// The other filter of a combination, if it is of the same type and neither is damaged.
pub(crate) fn same_type<'a, F: AnyFilter>(ours: &F, theirs: &'a dyn AnyFilter) -> Result<&'a F, Mismatch> {
    // Ours stands by itself, so that its keys are spelled as they stand.
    if theirs.key_rules().is_some_and(|rules| !rules.spelling.is_plain()) {
        return Err(Mismatch::Spelling);
    }
    if let Some(Exceptions { keys: keys @ 1.., .. }) = theirs.exceptions() {
        return Err(Mismatch::Exceptions { theirs: keys });
    }
    let theirs: &dyn Any = bare(theirs);
    let family = ours.family().name;
    let theirs: &F =
        theirs.downcast_ref().ok_or(Mismatch::Family { ours: family, theirs: "another type" })?;
    // The result will be written under a checksum of its own, which must not vouch for unverified bytes.
    verify(ours).map_err(|_| Mismatch::Damaged { theirs: false })?;
    verify(theirs).map_err(|_| Mismatch::Damaged { theirs: true })?;
    Ok(theirs)
}
