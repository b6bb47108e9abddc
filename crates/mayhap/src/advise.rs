//! Which filter do I want? What is needed goes in, a family comes out, with its price.
//!
//! A table of rules is read from the top, and the first one that matches decides. One rule is before all: if the exact set
//! fits the memory, take the exact set. Every size and rate is what the family itself [plans](Family::plan).
//!
//! ```
//! use mayhap::advise::{Needs, advise};
//!
//! let advice = advise(&Needs::new().with_keys(1_000_000).with_fpr(0.01).removable())?;
//! assert_eq!((advice.choice.family.name, advice.choice.bytes), ("cuckoo", 1_315_790));
//! assert_eq!(advice.why.to_string(), "keys are removed, and are in at most 8 times each");
//! let others: Vec<_> = advice.runners_up.iter().map(|other| other.choice.family.name).collect();
//! assert_eq!(others, ["dleft", "counting"]);
//! // With enough memory there is no need to err.
//! let advice = advise(&Needs::new().with_keys(1_000_000).with_budget(16_000_000).removable())?;
//! assert_eq!(advice.choice.family.name, "exact");
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::vec::Vec;
use core::fmt;

pub use crate::error::Need;
use crate::error::{AdviseError, Knob, Rate, SpecError};
use crate::exceptions::may_change;
use crate::family::{Capabilities, Family, Guarantee};
use crate::filters::{
    bitmap, blocked, bloom, counting, cuckoo, dleft, exact, expanding, fuse, ribbon, scalable, shifting,
    shifting_association, shifting_multiplicity, spatial, spectral, universe, windowed,
};
use crate::hash::Hashing;
use crate::narrow::{small, whole};
use crate::spec::{
    CAPACITY, CountingRule, DEFAULT_FPR, Layout, MAX_BITS, MIN_FPR, Plan, STARTING_CAPACITY, Spec,
};

/// What is needed of a filter. Whatever is not said is not needed.
///
/// Without `keys` their number is unknown, and the filter has to grow; without a rate it is 1%.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    keys: Option<u64>,
    estimated: bool,
    fpr: Option<f64>,
    budget: Option<u64>,
    first: First,
    removes: bool,
    copies: Option<u64>,
    steady: bool,
    merges: bool,
    grows: bool,
    fixed: bool,
    counts: Option<u64>,
    sets: Option<u32>,
    others: Option<u64>,
    integers: Option<u64>,
    window: Option<u64>,
    exceptions: Option<u64>,
    hostile_inserters: bool,
    hostile_queriers: bool,
}

/// What counts first, where there is a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum First {
    /// Neither more than the other.
    #[default]
    Balanced,
    /// The time that a question takes.
    Speed,
    /// The memory.
    Space,
}

impl Needs {
    /// Nothing needed yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of different keys.
    #[must_use]
    pub const fn with_keys(mut self, keys: u64) -> Self {
        (self.keys, self.estimated) = (Some(keys), false);
        self
    }

    /// The number of different keys, estimated.
    #[must_use]
    pub const fn with_about_keys(mut self, keys: u64) -> Self {
        (self.keys, self.estimated) = (Some(keys), true);
        self
    }

    /// So many of the absent keys may be admitted, at most.
    #[must_use]
    pub const fn with_fpr(mut self, fpr: f64) -> Self {
        self.fpr = Some(fpr);
        self
    }

    /// The most bytes that it may take.
    #[must_use]
    pub const fn with_budget(mut self, bytes: u64) -> Self {
        self.budget = Some(bytes);
        self
    }

    /// This counts first.
    #[must_use]
    pub const fn with_first(mut self, first: First) -> Self {
        self.first = first;
        self
    }

    /// Keys are removed again.
    #[must_use]
    pub const fn removable(mut self) -> Self {
        self.removes = true;
        self
    }

    /// How often one key is inserted at most, and removed again. Matters only if keys are removed.
    #[must_use]
    pub const fn with_copies(mut self, copies: u64) -> Self {
        self.copies = Some(copies);
        self
    }

    /// No insert may take much longer than another.
    #[must_use]
    pub const fn steady(mut self) -> Self {
        self.steady = true;
        self
    }

    /// Filters are merged.
    #[must_use]
    pub const fn mergeable(mut self) -> Self {
        self.merges = true;
        self
    }

    /// The number of keys is unknown, or may exceed `keys`.
    #[must_use]
    pub const fn growing(mut self) -> Self {
        self.grows = true;
        self
    }

    /// All keys are known before, and the set stays as it is.
    #[must_use]
    pub const fn fixed(mut self) -> Self {
        self.fixed = true;
        self
    }

    /// The question is how often a key came.
    #[must_use]
    pub const fn counted(mut self) -> Self {
        self.counts = Some(u64::MAX);
        self
    }

    /// The question is how often a key came, and that is at most so often.
    #[must_use]
    pub const fn with_max_count(mut self, count: u64) -> Self {
        self.counts = Some(count);
        self
    }

    /// The number of sets, where the question is which of them a key is in. The number of keys is that of all together.
    #[must_use]
    pub const fn with_sets(mut self, sets: u32) -> Self {
        self.sets = Some(sets);
        self
    }

    /// Only keys of the set and `others` other keys are looked up, all of them known before. No answer may be wrong.
    #[must_use]
    pub const fn with_others(mut self, others: u64) -> Self {
        self.others = Some(others);
        self
    }

    /// The keys are integers below this one.
    #[must_use]
    pub const fn with_integers(mut self, below: u64) -> Self {
        self.integers = Some(below);
        self
    }

    /// Of an endless stream the last so many keys have to be remembered, and older ones need not be.
    #[must_use]
    pub const fn with_window(mut self, keys: u64) -> Self {
        self.window = Some(keys);
        self
    }

    /// So many keys are known that will be asked for and are not in. None of them may be admitted, others may.
    #[must_use]
    pub const fn with_exceptions(mut self, others: u64) -> Self {
        self.exceptions = Some(others);
        self
    }

    /// Those who choose the keys that go in are not trusted.
    #[must_use]
    pub const fn with_hostile_inserters(mut self) -> Self {
        self.hostile_inserters = true;
        self
    }

    /// Those who choose the keys that are asked for are not trusted.
    #[must_use]
    pub const fn with_hostile_queriers(mut self) -> Self {
        self.hostile_queriers = true;
        self
    }
}

/// What is advised.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// The filter to take.
    pub choice: Choice,
    /// The rule that has decided.
    pub why: Rule,
    /// Up to two others that would do, best first.
    pub runners_up: Vec<RunnerUp>,
    /// What to know before it is built.
    pub warnings: Vec<Warning>,
}

/// A family and what it would be.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// The family.
    pub family: &'static Family,
    /// What to ask of it.
    pub spec: Spec,
    /// What it gives then: `plan.fpr` is the rate at capacity.
    pub plan: Plan,
    /// Bytes of payload.
    pub bytes: u64,
    /// What happens at half as many keys again.
    pub beyond: Beyond,
    /// What it can do.
    pub can: Capabilities,
    /// Which wrong answers are possible.
    pub guarantee: Guarantee,
}

/// What happens to a filter at 1.5 times the keys that it was made for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Beyond {
    /// It has this false-positive rate.
    Rate(f64),
    /// It is full before, and says so.
    Full,
    /// It takes no keys once it is made.
    Fixed,
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rate(fpr) => write!(f, "{}", Rate(fpr)),
            Self::Full => f.write_str("full"),
            Self::Fixed => f.write_str("takes no more keys"),
        }
    }
}

/// A filter that would do too.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunnerUp {
    /// What it would be.
    pub choice: Choice,
    /// What it is better at.
    pub reason: Reason,
}

/// What a runner-up has before the one that is advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It makes no errors.
    NoErrors,
    /// It is smaller.
    Smaller,
    /// It is smaller if the keys lie close together or far apart.
    SmallerIfUneven,
    /// It is smaller, if its user removes the keys that are old.
    SmallerIfOldAreRemoved,
    /// It is smaller, for one who can say how many keys there will be.
    SmallerIfCounted,
    /// It is smaller, and errs about the others too.
    SmallerIfOthersMayErr,
    /// It is smaller, for one who never asks for a key of neither set.
    SmallerIfClosed,
    /// It is smaller, for one who knows both sets before.
    SmallerIfBothKnown,
    /// It makes no errors, if its user removes the keys that are old.
    NoErrorsIfOldAreRemoved,
    /// It answers faster.
    Faster,
    /// It takes fewer memory accesses.
    FewerAccesses,
    /// Keys can be inserted later.
    Inserts,
    /// Keys can be removed later.
    Removes,
    /// Its inserts all take the same time.
    Steady,
    /// It merges with others and never becomes full.
    Merges,
    /// It takes counts of any size, and changes.
    AnyCount,
    /// Fewer of its counts are wrong.
    FewerWrongCounts,
    /// One filter for each set tells all the sets that a key is in.
    OneForEachSet,
    /// It takes more sets, and keys that are in none.
    MoreSets,
    /// It becomes a Bloom filter, for those who only ask.
    BecomesBloom,
    /// It grows, and keeps its rate.
    Grows,
    /// It grows without moving what is in.
    GrowsSteadily,
}

impl Reason {
    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoErrors => "makes no errors",
            Self::Smaller => "is smaller",
            Self::SmallerIfUneven => "is smaller if the integers are few or lie close together",
            Self::SmallerIfOldAreRemoved => "is smaller, if you remove the old keys yourself",
            Self::SmallerIfCounted => "is smaller, if you can say how many keys there will be",
            Self::SmallerIfOthersMayErr => "is smaller, if some of the others may be admitted",
            Self::SmallerIfClosed => "is smaller, if nobody asks for keys of neither set",
            Self::SmallerIfBothKnown => "is smaller, if both sets are known and stay as they are",
            Self::NoErrorsIfOldAreRemoved => "makes no errors, if you remove the old keys yourself",
            Self::Faster => "answers faster",
            Self::FewerAccesses => "takes half the memory accesses",
            Self::Inserts => "takes inserts later",
            Self::Removes => "removes keys too",
            Self::Steady => "has inserts that all take the same time",
            Self::Merges => "merges, and is never full",
            Self::AnyCount => "counts without a limit, and changes later",
            Self::FewerWrongCounts => "has fewer wrong counts",
            Self::OneForEachSet => "as one for each set tells all the sets that a key is in",
            Self::MoreSets => "takes more sets, and keys that are in none",
            Self::BecomesBloom => "becomes a Bloom filter for those who only ask",
            Self::Grows => "grows and keeps its rate",
            Self::GrowsSteadily => "grows without moving what is in",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A rule of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The exact set fits.
    ExactFits,
    /// Integers, many of those below their bound.
    DenseIntegers,
    /// Integers, far apart.
    SparseIntegers,
    /// All keys that will be asked for are known.
    KnownUniverse,
    /// Two sets, and no other keys are looked up.
    TwoSets,
    /// Several sets.
    ManySets,
    /// A set that stays as it is.
    StaticSmall,
    /// A set that stays as it is and is asked often, or is small.
    StaticFast,
    /// Low counts that are known before.
    StaticCounts,
    /// Counts.
    Counts,
    /// Counts of keys that are removed, or of keys that are in more often than other counters tell.
    RemovableCounts,
    /// The last keys of a stream.
    Window,
    /// An unknown number of keys, and no insert may take long.
    GrowsSteadily,
    /// An unknown number of keys.
    Grows,
    /// Keys are removed.
    Removable,
    /// Keys are removed that are in often, or no insert may take long.
    RemovableSteady,
    /// Keys are removed and filters are merged.
    RemovableMerging,
    /// Inserts only, and speed first.
    Fast,
    /// Inserts only, speed first, and a low rate.
    FewAccesses,
    /// Inserts only.
    InsertOnly,
}

impl Rule {
    /// Its number in the table; variants of a rule share one. The rule before all has 0.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.row().0
    }

    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        self.row().1
    }

    const fn row(self) -> (u32, &'static str) {
        match self {
            Self::ExactFits => (0, "the exact set fits the memory, so there is no need to err"),
            Self::DenseIntegers => (1, "integers, at least one in 64 of those below the bound"),
            Self::SparseIntegers => (2, "integers, far apart"),
            Self::KnownUniverse => (3, "all keys that will be asked for are known"),
            Self::TwoSets => (4, "two sets that stay as they are, and nobody asks for other keys"),
            Self::ManySets => (4, "several sets, and the question is which"),
            Self::StaticSmall => (5, "a set that stays as it is"),
            Self::StaticFast => (6, "a set that stays as it is, and speed first or few keys"),
            Self::StaticCounts => (7, "counts up to 57 that are known before"),
            Self::Counts => (7, "the question is how often, and nothing is removed"),
            Self::RemovableCounts => {
                (8, "keys are removed, and the question is how often, or they are in very often")
            }
            Self::Window => (9, "the last keys of an endless stream"),
            Self::GrowsSteadily => (10, "an unknown number of keys, and no insert may take long"),
            Self::Grows => (10, "an unknown number of keys"),
            Self::Removable => (11, "keys are removed, and are in at most 8 times each"),
            Self::RemovableSteady => {
                (12, "keys are removed that are in more often, or no insert may take long")
            }
            Self::RemovableMerging => (13, "keys are removed, and filters are merged"),
            Self::Fast => (14, "inserts only, and speed first"),
            Self::FewAccesses => (15, "inserts only, speed first, and a low rate"),
            Self::InsertOnly => (16, "inserts only"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// What to know before the filter is built.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// The family does not reach down to the rate.
    Floor {
        /// What was asked.
        asked: f64,
        /// The lowest that it reaches, which was taken.
        least: f64,
    },
    /// The memory is too small for the rate.
    Budget {
        /// Bytes that it may take.
        budget: u64,
        /// Bytes that the rate takes.
        needed: u64,
        /// The rate that was asked for.
        asked: f64,
        /// The lowest that fits, which was taken.
        fpr: f64,
    },
    /// It has more than 2^32 bits, so that 32 bits do not tell a position.
    Large {
        /// How many.
        bits: u64,
    },
    /// Its capacity is not the number of keys that was said.
    Capacity {
        /// What was said.
        asked: u64,
        /// What it has room for.
        granted: u64,
    },
    /// It takes a key only so often.
    Copies {
        /// What was said, if anything was.
        asked: Option<u64>,
        /// How often it takes one that is removed as often.
        most: u64,
    },
    /// Its bits per key are those of many keys.
    FewKeys {
        /// How many there are.
        keys: u64,
        /// From so many on it takes what it promises.
        least: u64,
    },
    /// The number of keys is an estimate, and there is a price for more.
    Estimate {
        /// The estimate.
        keys: u64,
        /// What happens at half as many again.
        beyond: Beyond,
    },
    /// It grows: plan and bytes are those that it starts with.
    Start {
        /// The number of keys that it starts with.
        capacity: u64,
    },
    /// It grows, and the memory ends.
    Ends {
        /// Bytes that it may take.
        budget: u64,
        /// About so many keys fit.
        keys: u64,
    },
    /// Its size depends on which integers are in; the plan is for random ones of 32 bits.
    DependsOnKeys,
    /// Untrusted users choose keys: hash with a secret.
    Keyed,
    /// Untrusted users could remove what others have inserted.
    HostileRemoves,
    /// Known keys that must not be admitted: [except](crate::except()) them, in an exact list beside it.
    Exceptions {
        /// The keys that are known.
        others: u64,
        /// About so many of them are listed: those that it admits or, if it changes, all.
        listed: u64,
        /// The bytes of the list, which are not counted in those of the filter.
        bytes: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Floor { asked, least } => write!(
                f,
                "a false-positive rate of {} was asked for; this family reaches down to {}, which was taken",
                Rate(asked),
                Rate(least)
            ),
            Self::Budget { budget, needed, asked, fpr } => write!(
                f,
                "{budget} bytes do not give a false-positive rate of {}, which takes {needed}; they give {}",
                Rate(asked),
                Rate(fpr)
            ),
            Self::Large { bits } => write!(
                f,
                "{bits} bits are more than 2^32; programs that have positions of 32 bits cannot use it"
            ),
            Self::Capacity { asked, granted } => {
                write!(f, "there is room for {granted} keys, and {asked} were asked for")
            }
            Self::Copies { asked: Some(asked), most } => write!(
                f,
                "a key may be in {asked} times, and if it is in more than {most} times it cannot be removed as often"
            ),
            Self::Copies { asked: None, most } => write!(
                f,
                "a key that is in more than {most} times cannot be removed as often; say so if one is"
            ),
            Self::FewKeys { keys, least } => write!(
                f,
                "{keys} keys take more bits each than many do; the bits per key are low from {least} keys on"
            ),
            Self::Estimate { keys, beyond: Beyond::Full } => write!(
                f,
                "{keys} keys are an estimate, and it refuses keys when it is full; say more rather than fewer"
            ),
            Self::Estimate { keys, beyond: Beyond::Fixed } => {
                write!(f, "{keys} keys are an estimate; the size will be that of the keys that there are")
            }
            Self::Estimate { keys, beyond: Beyond::Rate(fpr) } => write!(
                f,
                "{keys} keys are an estimate; with half as many again its false-positive rate is {}",
                Rate(fpr)
            ),
            Self::Start { capacity } => {
                write!(f, "it grows: its size is the one that it starts with, for {capacity} keys")
            }
            Self::Ends { budget, keys } => {
                write!(f, "it grows, and with about {keys} keys it takes more than the {budget} bytes")
            }
            Self::DependsOnKeys => {
                f.write_str("its size depends on which integers are in; this is for random ones of 32 bits")
            }
            Self::Keyed => f.write_str("untrusted users choose keys: hash with a secret of 128 random bits"),
            Self::HostileRemoves => f.write_str(
                "untrusted users choose keys: remove a key only for a user who proves that it is in",
            ),
            Self::Exceptions { others, listed, bytes } => write!(
                f,
                "some of the {others} known others would be admitted: make them exceptions; about {listed} are listed, in \
                 {bytes} bytes beside the filter"
            ),
        }
    }
}

/// Adds to a spec what a family has to know beside keys and rate.
type Ask = fn(&Needs, Spec) -> Spec;

/// A rule: when it matches, the family that it advises, and what to ask of it.
struct Row {
    rule: Rule,
    when: fn(&Needs) -> bool,
    family: &'static Family,
    ask: Ask,
}

const fn row(rule: Rule, when: fn(&Needs) -> bool, family: &'static Family, ask: Ask) -> Row {
    Row { rule, when, family, ask }
}

// The family `roaring` may not be built in; digests of integers are exact too.
#[cfg(feature = "roaring")]
static SPARSE: (&Family, Ask) = (&crate::filters::roaring::FAMILY, integers);
#[cfg(not(feature = "roaring"))]
static SPARSE: (&Family, Ask) = (&exact::FAMILY, as_is);

/// From so many keys on a static filter takes the bits per key that it promises.
const MANY: u64 = 10_000;

/// The first that matches decides. Families that cannot do what else is needed are ruled out by [`CONFLICTS`] before, or
/// here.
#[rustfmt::skip]
static TABLE: &[Row] = &[
    row(Rule::DenseIntegers,    |n| n.set() && n.budget.is_none() && n.dense(),                &bitmap::FAMILY,                integers),
    row(Rule::SparseIntegers,   |n| n.set() && n.budget.is_none() && n.integers.is_some(),     SPARSE.0,                       SPARSE.1),
    row(Rule::KnownUniverse,    |n| n.asks(Need::Universe),                                    &universe::FAMILY,              others),
    row(Rule::TwoSets,          |n| n.sets == Some(2) && n.closed() && n.fixed && !n.merges,   &shifting_association::FAMILY,  as_is),
    row(Rule::ManySets,         |n| n.asks(Need::Sets),                                        &spatial::FAMILY,               areas),
    row(Rule::StaticSmall,      |n| n.sealed() && n.first != First::Speed && n.at_least(MANY), &ribbon::FAMILY,                layout),
    row(Rule::StaticFast,       |n| n.sealed(),                                                &fuse::FAMILY,                  layout),
    row(Rule::StaticCounts,     |n| n.few_counts() && n.fixed && !n.merges,                    &shifting_multiplicity::FAMILY, max_count),
    row(Rule::Counts,           |n| n.asks(Need::Counts) && !n.removes,                        &spectral::FAMILY,              increase),
    row(Rule::RemovableCounts,  |n| n.asks(Need::Counts),                                      &spectral::FAMILY,              select),
    row(Rule::Window,           |n| n.asks(Need::Window),                                      &windowed::FAMILY,              as_is),
    row(Rule::GrowsSteadily,    |n| n.asks(Need::Grows) && n.steady,                           &scalable::FAMILY,              as_is),
    row(Rule::Grows,            |n| n.asks(Need::Grows),                                       &expanding::FAMILY,             as_is),
    row(Rule::RemovableCounts,  |n| n.removes && !n.copies(32_767),                            &spectral::FAMILY,              select),
    row(Rule::Removable,        |n| n.removes && !n.merges && !n.steady && n.copies(8),        &cuckoo::FAMILY,                layout),
    row(Rule::RemovableSteady,  |n| n.removes && !n.merges && n.copies(127),                   &dleft::FAMILY,                 counters),
    row(Rule::RemovableMerging, |n| n.removes,                                                 &counting::FAMILY,              counters),
    row(Rule::Fast,             |n| n.first == First::Speed && n.rate() >= 0.001,              &blocked::FAMILY,               layout),
    row(Rule::FewAccesses,      |n| n.first == First::Speed,                                   &shifting::FAMILY,              as_is),
    OTHERWISE,
];
const OTHERWISE: Row = row(Rule::InsertOnly, |_| true, &bloom::FAMILY, as_is);

/// What else to consider when a rule has decided, best first.
struct Other {
    of: Rule,
    reason: Reason,
    when: fn(&Needs) -> bool,
    family: &'static Family,
    ask: Ask,
}

const fn other(
    of: Rule,
    reason: Reason,
    when: fn(&Needs) -> bool,
    family: &'static Family,
    ask: Ask,
) -> Other {
    Other { of, reason, when, family, ask }
}

#[rustfmt::skip]
static OTHERS: &[Other] = &[
    #[cfg(feature = "roaring")]
    other(Rule::DenseIntegers,    Reason::SmallerIfUneven,         |_| true,                   &crate::filters::roaring::FAMILY, integers),
    other(Rule::DenseIntegers,    Reason::Smaller,                 |n| !n.removes,             &bloom::FAMILY,                as_is),
    other(Rule::DenseIntegers,    Reason::Smaller,                 |n| n.removes && !n.merges, &cuckoo::FAMILY,               layout),
    other(Rule::SparseIntegers,   Reason::Faster,                  |_| true,                   &bitmap::FAMILY,               integers),
    other(Rule::SparseIntegers,   Reason::Smaller,                 |n| !n.removes,             &bloom::FAMILY,                as_is),
    other(Rule::SparseIntegers,   Reason::Smaller,                 |n| n.removes && !n.merges, &cuckoo::FAMILY,               layout),
    other(Rule::KnownUniverse,    Reason::SmallerIfOthersMayErr,   |_| true,                   &ribbon::FAMILY,               layout),
    other(Rule::TwoSets,          Reason::MoreSets,                |_| true,                   &spatial::FAMILY,              areas),
    other(Rule::TwoSets,          Reason::OneForEachSet,           |_| true,                   &ribbon::FAMILY,               each_set),
    other(Rule::ManySets,         Reason::OneForEachSet,           |n| n.fixed && !n.merges,   &ribbon::FAMILY,               each_set),
    other(Rule::ManySets,         Reason::SmallerIfClosed,         |n| n.sets == Some(2) && n.fixed && !n.merges, &shifting_association::FAMILY, as_is),
    other(Rule::ManySets,         Reason::SmallerIfBothKnown,      |n| n.sets == Some(2) && !n.fixed && !n.merges, &shifting_association::FAMILY, as_is),
    other(Rule::ManySets,         Reason::OneForEachSet,           |_| true,                   &bloom::FAMILY,                each_set),
    other(Rule::StaticSmall,      Reason::Faster,                  |_| true,                   &fuse::FAMILY,                 layout),
    other(Rule::StaticSmall,      Reason::Inserts,                 |_| true,                   &bloom::FAMILY,                as_is),
    other(Rule::StaticFast,       Reason::Smaller,                 |_| true,                   &ribbon::FAMILY,               layout),
    other(Rule::StaticFast,       Reason::Inserts,                 |n| n.first == First::Speed, &blocked::FAMILY,             layout),
    other(Rule::StaticFast,       Reason::Inserts,                 |_| true,                   &bloom::FAMILY,                as_is),
    other(Rule::StaticCounts,     Reason::AnyCount,                |_| true,                   &spectral::FAMILY,             increase),
    other(Rule::StaticCounts,     Reason::Removes,                 |_| true,                   &counting::FAMILY,             counters),
    other(Rule::Counts,           Reason::FewerWrongCounts,        |n| !n.merges,              &spectral::FAMILY,             recurring),
    other(Rule::Counts,           Reason::Removes,                 |n| !n.merges,              &spectral::FAMILY,             select),
    other(Rule::Counts,           Reason::BecomesBloom,            |n| n.copies(32_767),       &counting::FAMILY,             counters),
    other(Rule::RemovableCounts,  Reason::FewerWrongCounts,        |n| !n.merges,              &spectral::FAMILY,             recurring),
    other(Rule::RemovableCounts,  Reason::BecomesBloom,            |n| n.copies(32_767),       &counting::FAMILY,             counters),
    other(Rule::Window,           Reason::SmallerIfOldAreRemoved,  |_| true,                   &cuckoo::FAMILY,               layout),
    other(Rule::Window,           Reason::NoErrorsIfOldAreRemoved, |_| true,                   &exact::FAMILY,                as_is),
    other(Rule::GrowsSteadily,    Reason::Faster,                  |_| true,                   &expanding::FAMILY,            as_is),
    other(Rule::GrowsSteadily,    Reason::SmallerIfCounted,        |_| true,                   &bloom::FAMILY,                as_is),
    other(Rule::Grows,            Reason::GrowsSteadily,           |n| !n.removes,             &scalable::FAMILY,             as_is),
    other(Rule::Grows,            Reason::SmallerIfCounted,        |n| !n.removes,             &bloom::FAMILY,                as_is),
    other(Rule::Grows,            Reason::SmallerIfCounted,        |n| n.copies(8),            &cuckoo::FAMILY,               layout),
    other(Rule::Removable,        Reason::Steady,                  |_| true,                   &dleft::FAMILY,                counters),
    other(Rule::Removable,        Reason::Merges,                  |_| true,                   &counting::FAMILY,             counters),
    other(Rule::RemovableSteady,  Reason::Smaller,                 |n| n.copies(8),            &cuckoo::FAMILY,               layout),
    other(Rule::RemovableSteady,  Reason::Merges,                  |_| true,                   &counting::FAMILY,             counters),
    other(Rule::RemovableMerging, Reason::Smaller,                 |n| n.copies(8),            &cuckoo::FAMILY,               layout),
    other(Rule::RemovableMerging, Reason::Smaller,                 |n| n.copies(127),          &dleft::FAMILY,                counters),
    other(Rule::RemovableMerging, Reason::AnyCount,                |_| true,                   &spectral::FAMILY,             select),
    other(Rule::Fast,             Reason::Smaller,                 |_| true,                   &bloom::FAMILY,                as_is),
    other(Rule::Fast,             Reason::Removes,                 |_| true,                   &cuckoo::FAMILY,               layout),
    other(Rule::FewAccesses,      Reason::Faster,                  |_| true,                   &blocked::FAMILY,              layout),
    other(Rule::FewAccesses,      Reason::Smaller,                 |_| true,                   &bloom::FAMILY,                as_is),
    other(Rule::InsertOnly,       Reason::Faster,                  |_| true,                   &blocked::FAMILY,              layout),
    other(Rule::InsertOnly,       Reason::Grows,                   |n| n.estimated,            &scalable::FAMILY,             as_is),
    other(Rule::InsertOnly,       Reason::Removes,                 |_| true,                   &cuckoo::FAMILY,               layout),
];

/// No family does both.
static CONFLICTS: &[(Need, Need)] = &[
    (Need::Static, Need::Removes),
    (Need::Static, Need::Window),
    (Need::Static, Need::Grows),
    (Need::Universe, Need::Removes),
    (Need::Universe, Need::Counts),
    (Need::Universe, Need::Sets),
    (Need::Universe, Need::Window),
    (Need::Universe, Need::Grows),
    (Need::Universe, Need::Merges),
    (Need::Sets, Need::Removes),
    (Need::Sets, Need::Counts),
    (Need::Sets, Need::Window),
    (Need::Sets, Need::Grows),
    (Need::Counts, Need::Window),
    (Need::Counts, Need::Grows),
    (Need::Window, Need::Removes),
    (Need::Window, Need::Merges),
    // A filter that grows and removes doubles at once.
    (Need::SteadyRemoves, Need::Grows),
];

/// What is sized by the number of keys when it is made, and does not grow.
const SIZED: [Need; 4] = [Need::Static, Need::Universe, Need::Sets, Need::Counts];

// What is asked of families, beside keys and rate.

fn as_is(_: &Needs, spec: Spec) -> Spec {
    spec
}

fn layout(needs: &Needs, spec: Spec) -> Spec {
    match needs.first {
        First::Balanced => spec,
        First::Speed => spec.with_layout(Layout::Fastest),
        First::Space => spec.with_layout(Layout::Compact),
    }
}

fn integers(_: &Needs, spec: Spec) -> Spec {
    spec.with_hashing(Hashing::Integer)
}

fn others(needs: &Needs, spec: Spec) -> Spec {
    layout(needs, spec.with_others(needs.others.unwrap_or(0)))
}

fn areas(needs: &Needs, spec: Spec) -> Spec {
    spec.with_areas(needs.sets.unwrap_or(1))
}

fn each_set(needs: &Needs, spec: Spec) -> Spec {
    spec.with_capacity(needs.capacity().div_ceil(needs.sets.unwrap_or(1).into()))
}

fn max_count(needs: &Needs, spec: Spec) -> Spec {
    // Above it another rule is taken.
    spec.with_max_count(small(needs.counts.unwrap_or(1).min(shifting_multiplicity::MAX_COUNT.into())))
}

fn increase(needs: &Needs, spec: Spec) -> Spec {
    // Merged, its counts become worse than those of minimum selection.
    if needs.merges { select(needs, spec) } else { spec.with_counting_rule(CountingRule::MinimalIncrease) }
}

fn select(_: &Needs, spec: Spec) -> Spec {
    spec.with_counting_rule(CountingRule::MinimumSelection)
}

fn recurring(_: &Needs, spec: Spec) -> Spec {
    spec.with_counting_rule(CountingRule::RecurringMinimum)
}

/// Counters that two keys can share, each as often in as one may be, and that do not stay at their top. The defaults are
/// 2 bits where keys are told apart, and 4 where they are not.
fn counters(needs: &Needs, spec: Spec) -> Spec {
    let bits = needs.most_copies().ilog2() + 2;
    if needs.copies(1) && needs.counts.is_none() { spec } else { spec.with_counter_bits(bits.max(4)) }
}

// What the rules ask.
impl Needs {
    /// Is this needed?
    const fn asks(&self, need: Need) -> bool {
        match need {
            Need::Static => self.fixed,
            Need::Removes => self.removes,
            Need::SteadyRemoves => self.steady && self.removes,
            Need::Counts => self.counts.is_some(),
            Need::Sets => matches!(self.sets, Some(2..)),
            // Two sets and nothing else have no others, and are told apart by a family of their own.
            Need::Universe => self.others.is_some() && !(self.closed() && self.asks(Need::Sets)),
            Need::Window => self.window.is_some(),
            Need::Grows => self.grows || (self.keys.is_none() && self.window.is_none()),
            Need::Merges => self.merges,
        }
    }

    /// One set, of which a key is or is not: what an exact set can do.
    const fn set(&self) -> bool {
        let more = self.asks(Need::Counts) || self.asks(Need::Sets) || self.asks(Need::Window);
        !more && (!self.removes || self.copies(1))
    }

    /// One set that stays as it is.
    const fn sealed(&self) -> bool {
        self.fixed && !self.merges && !self.asks(Need::Counts)
    }

    /// No key is looked up that is in none of the sets.
    const fn closed(&self) -> bool {
        matches!(self.others, Some(0))
    }

    /// Are at least 1 of 64 of the integers in, and can their bits be had?
    fn dense(&self) -> bool {
        let (Some(below), Some(keys)) = (self.integers, self.keys) else { return false };
        below <= 1 << 32 && keys.saturating_mul(64) >= below
    }

    fn at_least(&self, keys: u64) -> bool {
        self.keys >= Some(keys)
    }

    fn few_counts(&self) -> bool {
        self.counts.is_some_and(|most| most <= shifting_multiplicity::MAX_COUNT.into()) && !self.removes
    }

    /// How often the same key is in, or counted. Once, if it is not given.
    const fn most_copies(&self) -> u64 {
        match (self.copies, self.counts) {
            (Some(copies), Some(counts)) if copies > counts => copies,
            (_, Some(counts)) => counts,
            (Some(copies), None) => copies,
            (None, None) => 1,
        }
    }

    /// Is the same key in at most so often?
    const fn copies(&self, most: u64) -> bool {
        self.most_copies() <= most
    }

    fn rate(&self) -> f64 {
        self.fpr.unwrap_or(DEFAULT_FPR)
    }

    /// How many keys to plan for. A filter for an unknown number starts as small as those that grow do.
    fn capacity(&self) -> u64 {
        self.window.or(self.keys).unwrap_or(STARTING_CAPACITY)
    }

    fn budget_bits(&self) -> u64 {
        self.budget.map_or(MAX_BITS, |bytes| bytes.saturating_mul(8).min(MAX_BITS))
    }

    fn hostile(&self) -> bool {
        self.hostile_inserters || self.hostile_queriers
    }

    /// Each number by itself.
    fn check(&self) -> Result<(), AdviseError> {
        let numbers = [
            ("copies", self.copies),
            ("the largest count", self.counts),
            ("the bound of the integers", self.integers),
            ("the memory", self.budget),
        ];
        if let Some((what, _)) = numbers.into_iter().find(|&(_, number)| number == Some(0)) {
            return Err(AdviseError::Zero { what });
        }
        for asked in [self.keys, self.window].into_iter().flatten() {
            CAPACITY.check(asked.into())?;
        }
        if let Some(asked) = self.fpr.filter(|fpr| !(MIN_FPR..1.0).contains(fpr)) {
            return Err(SpecError::Fpr { asked }.into());
        }
        if let Some(asked) = self.sets {
            Knob::Areas.within(1, spatial::MAX_AREAS).check(asked.into())?;
        }
        if let (Some(keys), Some(below)) = (self.keys, self.integers)
            && keys > below
        {
            return Err(AdviseError::Integers { keys, below });
        }
        Ok(())
    }

    /// What does not go together, or is missing, for a filter that may err.
    fn conflict(&self) -> Option<AdviseError> {
        if self.keys.is_none()
            && !self.grows
            && let Some(&need) = SIZED.iter().find(|&&need| self.asks(need))
        {
            return Some(AdviseError::KeysUnknown { need });
        }
        let conflict = CONFLICTS.iter().find(|&&(one, other)| self.asks(one) && self.asks(other));
        conflict.map(|&(one, other)| AdviseError::Conflict { one, other })
    }
}

/// Advises a family, by the first rule that matches.
///
/// # Errors
/// [`AdviseError`] names two needs that no family meets together, what is missing, or the memory that is too little.
pub fn advise(needs: &Needs) -> Result<Advice, AdviseError> {
    needs.check()?;
    let row = TABLE.iter().find(|row| (row.when)(needs)).unwrap_or(&OTHERWISE);
    let exact = exact_fits(needs);
    let conflict = needs.conflict();
    if let Some(error) = conflict {
        // An exact set does what others cannot, but nothing changes what stays as it is.
        let never = matches!(error, AdviseError::Conflict { one: Need::Static, .. });
        if never || (exact.is_none() && !row.family.can.exact) {
            return Err(error);
        }
    }
    let why = if exact.is_some() { Rule::ExactFits } else { row.rule };
    let (choice, mut warnings) = match exact {
        Some(choice) => (choice, Vec::new()),
        None => fit(needs, row.family, row.ask)?,
    };
    let listed = OTHERS.iter().filter(|other| other.of == row.rule && (other.when)(needs));
    let listed = listed.map(|other| (other.reason, other.family, other.ask));
    // What the table says is what to take for less memory than the exact set takes.
    let table = exact.map(|_| (Reason::Smaller, row.family, row.ask));
    let sure = (needs.set() && exact.is_none()).then_some((Reason::NoErrors, &exact::FAMILY, as_is as Ask));
    let runners_up = table
        .into_iter()
        .chain(listed)
        .chain(sure)
        .filter(|_| conflict.is_none())
        .filter_map(|(reason, family, ask)| runner_up(needs, (&choice, &warnings), reason, family, ask))
        .take(2)
        .collect();
    warn(needs, &choice, &mut warnings);
    Ok(Advice { choice, why, runners_up, warnings })
}

/// The exact set that fits the memory and does what is needed.
fn exact_fits(needs: &Needs) -> Option<Choice> {
    if needs.budget.is_none() || !needs.set() {
        return None;
    }
    let bitmap = needs.integers.map(|_| (&bitmap::FAMILY, integers as Ask));
    let grows = needs.asks(Need::Grows);
    let sparse = needs.integers.filter(|_| !grows).map(|_| SPARSE);
    let digests = (!grows).then_some((&exact::FAMILY, as_is as Ask));
    let all = if needs.dense() { [bitmap, sparse, digests] } else { [sparse, bitmap, digests] };
    all.into_iter().flatten().find_map(|(family, ask)| fit(needs, family, ask).ok()).map(|(choice, _)| choice)
}

/// What a family gives for these needs: at the asked rate, else at the lowest that it reaches or that fits the memory; and
/// a warning if it is not the asked one.
fn fit(needs: &Needs, family: &'static Family, ask: Ask) -> Result<(Choice, Vec<Warning>), AdviseError> {
    let mut warnings = Vec::new();
    let capacity = if *family == bitmap::FAMILY { needs.integers } else { None };
    let sized = Spec::new().with_capacity(capacity.unwrap_or_else(|| needs.capacity()));
    // Of a set in a known universe the rate is that of unknown keys. It is low only on request.
    let fpr = if *family == universe::FAMILY { needs.fpr } else { Some(needs.rate()) };
    let fpr = fpr.filter(|_| !family.can.exact);
    let spec = ask(needs, fpr.map_or(sized, |fpr| sized.with_fpr(fpr)));
    let (spec, plan) = match (family.plan)(&spec) {
        Err(SpecError::FprBelow { asked, least }) => {
            warnings.push(Warning::Floor { asked, least });
            let spec = spec.with_fpr(least);
            (spec, (family.plan)(&spec)?)
        }
        plan => (spec, plan?),
    };
    let fits = |plan: &Plan| plan.bits <= needs.budget_bits();
    if fits(&plan) {
        return Ok((choice(needs, family, ask, spec, plan), warnings));
    }
    // The other layout at the same rate, or either with all of the memory.
    let compact = spec.with_layout(Layout::Compact);
    if let Some(plan) = (family.plan)(&compact).ok().filter(fits) {
        return Ok((choice(needs, family, ask, compact, plan), warnings));
    }
    let filled = ask(needs, sized.with_bits(needs.budget_bits()));
    let best = [filled, filled.with_layout(Layout::Compact)]
        .into_iter()
        .filter_map(|spec| (family.plan)(&spec).ok().map(|plan| (spec, plan)))
        .filter(|(_, plan)| fits(plan))
        .min_by(|(_, one), (_, other)| one.fpr.total_cmp(&other.fpr));
    let (budget, needed) = (needs.budget.unwrap_or(0), plan.bits.div_ceil(8));
    match best {
        Some((spec, plan)) if plan.fpr <= WORST => {
            let asked = fpr.unwrap_or(plan.fpr);
            warnings.clear();
            warnings.push(Warning::Budget { budget, needed, asked, fpr: plan.fpr });
            Ok((choice(needs, family, ask, spec, plan), warnings))
        }
        best => {
            let fpr = best.map(|(_, plan)| plan.fpr);
            Err(AdviseError::Budget { family: family.name, budget, needed, fpr })
        }
    }
}

/// A filter that admits more than half of all keys is not worth its memory.
const WORST: f64 = 0.5;

fn choice(needs: &Needs, family: &'static Family, ask: Ask, spec: Spec, plan: Plan) -> Choice {
    let can = capabilities(family, &spec);
    let guarantee = match can {
        Capabilities { exact: true, .. } => Guarantee::Exact,
        _ if *family == universe::FAMILY => Guarantee::ExactInUniverse,
        _ if *family == windowed::FAMILY => Guarantee::NoFalseNegativesInWindow,
        Capabilities { removes: true, .. } => Guarantee::NoFalseNegativesIfDeletesValid,
        _ => Guarantee::NoFalseNegatives,
    };
    let beyond = if can.exact || *family == windowed::FAMILY {
        Beyond::Rate(plan.fpr)
    } else if can.grows {
        // What all layers and doublings together keep.
        Beyond::Rate(plan.fpr_asked)
    } else if !can.inserts && !can.labels {
        Beyond::Fixed
    } else {
        // The same bits and probes with more keys. Filters of slots have no probes that could be asked for.
        let same = ask(needs, Spec::new()).with_capacity(plan.capacity + plan.capacity / 2);
        let same = spec.layout().map_or(same, |layout| same.with_layout(layout)).with_bits(plan.bits);
        let more = plan.probes.and_then(|probes| (family.plan)(&same.with_probes(probes)).ok());
        more.map_or(Beyond::Full, |more| Beyond::Rate(more.fpr))
    };
    Choice { family, spec, plan, bytes: plan.bits.div_ceil(8), beyond, can, guarantee }
}

/// What a filter of this spec can do. That of one family depends on how it counts.
fn capabilities(family: &Family, spec: &Spec) -> Capabilities {
    match spec.counting_rule() {
        Some(rule) if *family == spectral::FAMILY => spectral::capabilities(rule),
        _ => family.can,
    }
}

/// Another family beside the one that was chosen, if what is said for it is true here.
fn runner_up(
    needs: &Needs,
    (chosen, warnings): (&Choice, &[Warning]),
    reason: Reason,
    family: &'static Family,
    ask: Ask,
) -> Option<RunnerUp> {
    let (choice, its_warnings) = fit(needs, family, ask).ok()?;
    let smaller = matches!(
        reason,
        Reason::Smaller
            | Reason::SmallerIfOldAreRemoved
            | Reason::SmallerIfCounted
            | Reason::SmallerIfOthersMayErr
            | Reason::SmallerIfClosed
            | Reason::SmallerIfBothKnown
    );
    let holds = !smaller || choice.bytes < chosen.bytes;
    let keeps_rate = its_warnings.is_empty() || !warnings.is_empty();
    let differs = choice.family != chosen.family || choice.spec != chosen.spec;
    (holds && keeps_rate && differs).then_some(RunnerUp { choice, reason })
}

fn warn(needs: &Needs, choice: &Choice, warnings: &mut Vec<Warning>) {
    let Choice { family, spec, plan, beyond, can, .. } = choice;
    let is = |other: &Family| *family == other;
    let unhashed = spec.hashing() == Hashing::Integer;
    if plan.bits > 1 << 32 {
        warnings.push(Warning::Large { bits: plan.bits });
    }
    let asked = needs.capacity();
    if plan.capacity != asked && needs.keys.or(needs.window).is_some() && !is(&bitmap::FAMILY) {
        warnings.push(Warning::Capacity { asked, granted: plan.capacity });
    }
    let most = match family {
        _ if is(&cuckoo::FAMILY) => Some(cuckoo::MOST_COPIES),
        // The last one stays for good.
        _ if is(&expanding::FAMILY) => Some(u64::from(expanding::MOST_COPIES) - 1),
        // A counter at its top stays there.
        _ if is(&dleft::FAMILY) => spec.dleft().ok().map(|size| (1 << size.counter_bits) - 2),
        _ if is(&counting::FAMILY) => spec.counting().ok().map(|size| (1 << size.counter_bits) - 2),
        _ => None,
    };
    if let Some(most) = most.filter(|&most| needs.removes && needs.copies.is_none_or(|asked| asked > most)) {
        warnings.push(Warning::Copies { asked: needs.copies, most });
    }
    if (is(&fuse::FAMILY) || is(&ribbon::FAMILY)) && asked < MANY {
        warnings.push(Warning::FewKeys { keys: asked, least: MANY });
    }
    let kept = matches!(beyond, Beyond::Rate(fpr) if *fpr <= plan.fpr.max(plan.fpr_asked));
    if needs.estimated && needs.window.is_none() && !kept {
        warnings.push(Warning::Estimate { keys: asked, beyond: *beyond });
    }
    if needs.asks(Need::Grows) && can.grows {
        warnings.push(Warning::Start { capacity: plan.capacity });
        // As one that was made of this size at once; one that grew is no smaller.
        let full = Spec::new().with_bits(needs.budget_bits()).with_fpr(plan.fpr_asked);
        if let Some((budget, full)) = needs.budget.zip((family.plan)(&full).ok()) {
            warnings.push(Warning::Ends { budget, keys: full.capacity });
        }
    }
    if unhashed && !is(&bitmap::FAMILY) {
        warnings.push(Warning::DependsOnKeys);
    }
    if needs.hostile() && !unhashed {
        warnings.push(Warning::Keyed);
    }
    if needs.hostile_inserters && needs.removes && !can.exact {
        warnings.push(Warning::HostileRemoves);
    }
    if let Some(others) = needs.exceptions.filter(|&others| others > 0 && !can.exact) {
        let admitted = whole(libm::ceil(plan.fpr.max(plan.fpr_asked) * others as f64));
        let listed = if may_change(*can) { others } else { admitted.clamp(1, others) };
        if let Ok(list) = (exact::FAMILY.plan)(&Spec::new().with_capacity(listed)) {
            warnings.push(Warning::Exceptions { others, listed, bytes: list.bits.div_ceil(8) });
        }
    }
}
