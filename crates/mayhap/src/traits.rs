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

/// What every filter does. `false` is certain; `true` means *perhaps*.
pub trait Filter {
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
pub trait SharedInsert: Send + Sync {
    /// Scheme and seed.
    fn hashing(&self) -> Hashing;

    /// Inserts many keys.
    fn insert_batch(&self, digests: &[Digest]);

    /// The finished filter: the same bytes, whatever the threads did when.
    fn finish(self: Box<Self>) -> Box<dyn AnyFilter>;
}
