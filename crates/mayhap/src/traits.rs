//! What filters can do, as small capabilities. A family implements only what is true of it.
//!
//! Concrete types have inherent methods of the same names, so that using one filter needs no import.
//! These traits are for code over many families: tests, benchmarks, programs that learn the family
//! from a file.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use crate::error::{FoldError, Full, Mismatch, SpecError};
use crate::family::AnyFilter;
use crate::hash::{Digest, Hashing};

/// Implemented in this library only, and so are the traits that require it: a method that is added to them breaks no program.
///
/// ```compile_fail,E0277
/// struct Mine;
///
/// impl mayhap::Filter for Mine {
///     fn hashing(&self) -> mayhap::Hashing {
///         mayhap::Hashing::default()
///     }
///     fn contains_digest(&self, _: mayhap::Digest) -> bool {
///         true
///     }
/// }
/// ```
pub(crate) mod sealed {
    #[expect(unnameable_types, reason = "public traits require it")]
    pub trait Sealed {}
}

use sealed::Sealed;

/// What every filter does. `false` is certain; `true` means *perhaps*.
///
/// Only filters of this library implement it, and the traits that build on it.
pub trait Filter: Sealed {
    /// Scheme and seed: two filters agree only if these do.
    fn hashing(&self) -> Hashing;

    /// Asks for a key by its digest.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// Asks for a key by its bytes.
    fn contains(&self, key: &[u8]) -> bool {
        self.contains_digest(self.hashing().digest(key))
    }

    /// Asks for many keys; appends one answer each.
    ///
    /// One virtual call buys the whole loop: families override it with a prefetching kernel, so that
    /// the price of `dyn` is per batch, not per key.
    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        hits.extend(digests.iter().map(|&digest| self.contains_digest(digest)));
    }
}

/// Was the key certainly new, or perhaps already there? (A bare `bool` is read both ways.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// It was not in before.
    New,
    /// It may have been in before; in an exact set it was.
    Perhaps,
}

impl Insertion {
    /// [`New`](Insertion::New) if something changed.
    #[must_use]
    #[inline]
    pub const fn new_if(changed: bool) -> Self {
        if changed { Self::New } else { Self::Perhaps }
    }
}

/// Keys can be inserted one after the other.
pub trait Insert: Filter {
    /// Inserts a key by its digest.
    ///
    /// # Errors
    /// [`Full`] if there is no room; then nothing has changed.
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full>;

    /// Inserts many keys in order; appends one outcome each. A repeat inside the batch is
    /// [`Insertion::Perhaps`].
    ///
    /// # Errors
    /// [`Full`] says how many went in before the one that did not.
    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        for (done, &digest) in digests.iter().enumerate() {
            outcomes.push(self.insert_digest(digest).map_err(|full| Full { inserted: done as u64, ..full })?);
        }
        Ok(())
    }
}

/// What came of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The key was perhaps in, and is in once less.
    Removed,
    /// It was certainly not in, and nothing has changed.
    Absent,
    /// It cannot be removed any more, and nothing has changed: its counters are saturated, so how often it is in is not
    /// known.
    Stuck,
}

impl Removal {
    /// [`Removed`](Removal::Removed) if the key was in, for filters in which no key is stuck.
    #[must_use]
    #[inline]
    pub const fn removed_if(was_in: bool) -> Self {
        if was_in { Self::Removed } else { Self::Absent }
    }

    /// Whether the key was removed.
    #[must_use]
    #[inline]
    pub const fn is_removed(self) -> bool {
        matches!(self, Self::Removed)
    }
}

/// Keys can be removed again. Removing a key that was never inserted can make *other* keys vanish,
/// unless the set is exact.
pub trait Remove: Insert {
    /// Removes a key by its digest, once if it is in several times.
    fn remove_digest(&mut self, digest: Digest) -> Removal;

    /// Removes many keys by their digests, in order; appends one outcome each.
    fn remove_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Removal>) {
        outcomes.extend(digests.iter().map(|&digest| self.remove_digest(digest)));
    }
}

/// Keys are counted: at least the true count, until a cell reaches the family's documented ceiling.
pub trait Count: Filter {
    /// How often the key was inserted, perhaps.
    fn count_digest(&self, digest: Digest) -> u64;

    /// The highest count that can be told: what reads so was inserted so often, or more.
    fn ceiling(&self) -> u64 {
        u64::MAX
    }

    /// Asks for the counts of many keys; appends one each.
    fn count_batch(&self, digests: &[Digest], counts: &mut Vec<u64>) {
        counts.extend(digests.iter().map(|&digest| self.count_digest(digest)));
    }
}

/// What a filter of many sets says about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labels {
    /// It is certainly in none of the sets.
    None,
    /// It is perhaps in this one.
    One(NonZeroU16),
    /// It is perhaps in each or in some of these.
    Several(Vec<NonZeroU16>),
}

/// Many sets in one filter: the answer is *which* set, so there is no plain insert. Sets are called areas and have the
/// numbers from 1 on.
pub trait Label: Filter {
    /// How many areas there are.
    fn areas(&self) -> u16;

    /// What an area is called, if it has a name.
    fn area_name(&self, area: NonZeroU16) -> Option<&str>;

    /// Gives names to all areas, in order; an empty one is none.
    ///
    /// # Errors
    /// [`SpecError`] if there are more or fewer names than areas, or names the area whose name cannot be; then nothing
    /// has changed.
    fn name_areas(&mut self, names: &[&str]) -> Result<(), SpecError>;

    /// Inserts a key into an area.
    ///
    /// # Errors
    /// [`Full`] if there is no such area; then nothing has changed.
    fn insert_labelled(&mut self, digest: Digest, area: NonZeroU16) -> Result<Insertion, Full>;

    /// Inserts many keys into an area; appends one outcome each.
    ///
    /// # Errors
    /// [`Full`] says how many went in before the one that did not.
    fn insert_labelled_batch(
        &mut self,
        digests: &[Digest],
        area: NonZeroU16,
        outcomes: &mut Vec<Insertion>,
    ) -> Result<(), Full> {
        for (done, &digest) in digests.iter().enumerate() {
            let inserted = self.insert_labelled(digest, area);
            outcomes.push(inserted.map_err(|full| Full { inserted: done as u64, ..full })?);
        }
        Ok(())
    }

    /// Which areas the key is perhaps in.
    fn label_digest(&self, digest: Digest) -> Labels;

    /// Asks for the areas of many keys; appends one answer each.
    fn label_batch(&self, digests: &[Digest], labels: &mut Vec<Labels>) {
        labels.extend(digests.iter().map(|&digest| self.label_digest(digest)));
    }
}

/// Which of two sets a key is in: what is stored of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The first, and not the second.
    FirstOnly,
    /// Both.
    Both,
    /// The second, and not the first.
    SecondOnly,
}

impl Part {
    /// All parts of two sets.
    pub const ALL: [Self; 3] = [Self::FirstOnly, Self::Both, Self::SecondOnly];
}

/// What a filter of two sets says about a key: seven outcomes for keys of either set, and one more.
///
/// The first three are clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Association {
    /// In the first set and not in the second.
    FirstOnly,
    /// In both sets.
    Both,
    /// In the second set and not in the first.
    SecondOnly,
    /// In the first set; whether in the second too is not known.
    FirstAndPerhapsSecond,
    /// In the second set; whether in the first too is not known.
    SecondAndPerhapsFirst,
    /// In exactly one of the sets; in which is not known.
    OneOfBoth,
    /// In a set or both; no more is known.
    Unknown,
    /// In neither set, certainly.
    Neither,
}

impl Association {
    /// From which of the three bits are set in all windows of a key.
    pub(crate) const fn from_bits(first: bool, both: bool, second: bool) -> Self {
        match (first, both, second) {
            (true, false, false) => Self::FirstOnly,
            (false, true, false) => Self::Both,
            (false, false, true) => Self::SecondOnly,
            (true, true, false) => Self::FirstAndPerhapsSecond,
            (false, true, true) => Self::SecondAndPerhapsFirst,
            (true, false, true) => Self::OneOfBoth,
            (true, true, true) => Self::Unknown,
            (false, false, false) => Self::Neither,
        }
    }

    /// The part that a clear answer names: never wrong for a key that is in one of the sets.
    #[must_use]
    pub const fn part(self) -> Option<Part> {
        match self {
            Self::FirstOnly => Some(Part::FirstOnly),
            Self::Both => Some(Part::Both),
            Self::SecondOnly => Some(Part::SecondOnly),
            _ => None,
        }
    }

    /// Whether it says exactly which sets the key is in.
    #[must_use]
    pub const fn is_clear(self) -> bool {
        self.part().is_some()
    }

    /// Whether a key of this part may get this answer.
    #[must_use]
    pub const fn allows(self, part: Part) -> bool {
        match part {
            Part::FirstOnly => matches!(
                self,
                Self::FirstOnly | Self::FirstAndPerhapsSecond | Self::OneOfBoth | Self::Unknown
            ),
            Part::Both => matches!(
                self,
                Self::Both | Self::FirstAndPerhapsSecond | Self::SecondAndPerhapsFirst | Self::Unknown
            ),
            Part::SecondOnly => matches!(
                self,
                Self::SecondOnly | Self::SecondAndPerhapsFirst | Self::OneOfBoth | Self::Unknown
            ),
        }
    }

    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::FirstOnly => "first only",
            Self::Both => "both",
            Self::SecondOnly => "second only",
            Self::FirstAndPerhapsSecond => "first, perhaps second",
            Self::SecondAndPerhapsFirst => "second, perhaps first",
            Self::OneOfBoth => "first or second, not both",
            Self::Unknown => "first, second or both",
            Self::Neither => "neither",
        }
    }
}

/// Two sets in one filter, which are told together: the answer is what is known of both.
pub trait Associate: Filter {
    /// What the first set and the second are called; an empty name is none.
    fn set_names(&self) -> [&str; 2];

    /// Gives names to both sets; an empty one is none.
    ///
    /// # Errors
    /// [`SpecError`] names the set whose name cannot be; then nothing has changed.
    fn name_sets(&mut self, names: [&str; 2]) -> Result<(), SpecError>;

    /// Which of the sets the key is in, as far as can be told.
    fn association_digest(&self, digest: Digest) -> Association;

    /// Asks for many keys; appends one answer each.
    fn association_batch(&self, digests: &[Digest], answers: &mut Vec<Association>) {
        answers.extend(digests.iter().map(|&digest| self.association_digest(digest)));
    }
}

/// Union: afterwards `self` holds every key of both.
pub trait Merge: Filter {
    /// Merges a filter of the same type and hashing into this one. Whether sizes may differ is the
    /// family's to say.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch>;
}

/// Intersection: afterwards `self` still holds every key that was in both.
pub trait Intersect: Filter {
    /// Keeps what is in a filter of the same type, size and hashing too.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    fn intersect_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch>;
}

/// Difference: afterwards `self` holds the keys that were in it and not in the other. Exact sets only:
/// in a filter, clearing another's bits would lose keys of one's own.
pub trait Subtract: Filter {
    /// Removes every key of a set of the same type and hashing.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    fn subtract_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch>;
}

/// A filter that was made too large becomes smaller, without its keys.
pub trait Fold: Filter {
    /// The smallest filter that this one can be folded to, whose false-positive rate is at most this. It
    /// holds every key that this one holds.
    ///
    /// # Errors
    /// [`FoldError`] says why there is none.
    fn fold_to(&self, fpr: f64) -> Result<Box<dyn AnyFilter>, FoldError>;
}

/// A filter under construction that many threads insert into at once.
///
/// Only filters of this library implement it.
pub trait SharedInsert: Sealed + Send + Sync {
    /// Scheme and seed.
    fn hashing(&self) -> Hashing;

    /// Inserts many keys.
    fn insert_batch(&self, digests: &[Digest]);

    /// The finished filter: the same bytes, whatever the threads did when.
    fn finish(self: Box<Self>) -> Box<dyn AnyFilter>;
}
