//! Exact set of digests: no errors, for the price of 128 bits per key.
//!
//! **Answers** "was this key inserted and not removed since?"
//! **Promise** no wrong answer as long as no two keys share a digest; among n keys the chance that an
//! absent key is admitted is n / 2^128.
//! **Not for** sets that do not fit; that is what the filters are for.
//!
//! ```text
//!   key ─▶ digest ─▶ place ≈ digest / 2^128 · n      sorted  [ 03… | 1f… | 77… | 9c… | e0… ]
//!                                                    added   { 55… }      removed  { 1f… }
//! ```
//!
//! | operation | cache lines       | can fail |
//! |-----------|-------------------|----------|
//! | contains  | a few             | no       |
//! | insert    | a few             | no       |
//! | remove    | a few             | no       |
//! | merge     | all, in order     | mismatch |
//!
//! The sorted digests may lie in a mapped file; what changes since is kept in two hash sets and
//! merged in when the set is written.
//!
//! ```
//! use mayhap::Exact;
//!
//! let mut set = Exact::default();
//! set.insert("a");
//! assert!(set.contains("a") && !set.contains("b"));
//! assert!(set.remove("a").is_removed() && !set.remove("a").is_removed());
//! assert_eq!(set.len(), 0);
//! ```

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::{BuildHasherDefault, Hasher};

use hashbrown::HashSet;

use crate::bits::{Bytes, OutOfMemory, Words};
use crate::error::{DecodeError, Full, Limit, Mismatch, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, Family, Guarantee, Make, Report};
use crate::hash::{Digest, Hashing, Key};
use crate::narrow::index;
use crate::probing::{Probing, reduce};
use crate::spec::{MAX_BITS, Plan, Spec};
use crate::traits::{Filter, Insert, Insertion, Intersect, Merge, Removal, Remove, Subtract};
use crate::wire::{Fields, Frame, Writer};

/// The family `exact`.
pub static FAMILY: Family = Family {
    id: 2,
    name: "exact",
    summary: "no errors: sorted 128-bit digests of all keys",
    can: Capabilities {
        inserts: true,
        removes: true,
        counts: false,
        labels: false,
        merges: true,
        intersects: true,
        subtracts: true,
        folds: false,
        grows: true,
        exact: true,
    },
    cost: Cost { query: "O(log n)", insert: "O(log n)", space: "128 n" },
    make: Make::Empty(|spec| Ok(Box::new(Exact::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(Exact::decode(frame, hashing)?)),
    in_place: false,
};

const BITS_PER_KEY: u64 = 128;

/// The chance that one absent key has the digest of one present key.
const COLLISION: f64 = 1.0 / (u128::MAX as f64);

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let capacity = spec.keys(BITS_PER_KEY)?;
    let bits = capacity * BITS_PER_KEY;
    if bits > MAX_BITS {
        return Err(SpecError::Bits { asked: bits, limit: MAX_BITS });
    }
    let fpr = capacity as f64 * COLLISION;
    Ok(Plan { capacity, fpr_asked: 0.0, fpr, bits, probes: None })
}

/// Digests are hashes already: their own bits choose the place in a hash set.
#[derive(Clone, Copy, Debug, Default)]
pub struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    #[inline]
    fn write_u64(&mut self, half: u64) {
        // Two halves come one after the other; the rotation keeps (x, x) from cancelling out.
        self.0 = self.0.rotate_left(32) ^ half;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A hash set of digests that does not hash them again.
pub type DigestSet = HashSet<Digest, BuildHasherDefault<DigestHasher>>;

/// An exact set of keys, by their digests.
#[derive(Clone, Debug)]
pub struct Exact {
    /// Two words per digest, ascending by (a, b), without repeats.
    sorted: Words,
    /// Not in `sorted`.
    added: DigestSet,
    /// In `sorted`, but no longer in the set.
    removed: DigestSet,
    hashing: Hashing,
    capacity: u64,
    inserted: Option<u64>,
}

impl Default for Exact {
    fn default() -> Self {
        Self {
            sorted: Vec::new().into(),
            added: DigestSet::default(),
            removed: DigestSet::default(),
            hashing: Hashing::default(),
            capacity: 0,
            inserted: Some(0),
        }
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Self) -> bool {
        self.hashing == other.hashing && self.len() == other.len() && self.digests().eq(other.digests())
    }
}

impl Exact {
    /// An empty set. The capacity is noted and no limit.
    ///
    /// # Errors
    /// [`SpecError`] names what makes no sense.
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        Ok(Self { hashing: spec.hashed()?, capacity: plan(spec)?.capacity, ..Self::default() })
    }

    /// An empty set whose keys are hashed so.
    pub(crate) fn hashed(hashing: Hashing) -> Self {
        Self { hashing, ..Self::default() }
    }

    /// The set of the digests that lie in bytes, each above the one before; `None` if they do not lie so.
    pub(crate) fn of_sorted(bytes: Bytes, hashing: Hashing) -> Option<Self> {
        let sorted = Words::from_bytes(bytes)?;
        let len = sorted.len() as u64 / 2;
        let ascends = sorted.len().is_multiple_of(2) && pairs(sorted.as_slice()).is_sorted_by(|a, b| a < b);
        ascends.then_some(Self { sorted, inserted: Some(len), ..Self::hashed(hashing) })
    }

    /// All digests in ascending order, as they stand in a file.
    pub(crate) fn sorted_bytes(&self) -> Cow<'_, [u8]> {
        if self.added.is_empty() && self.removed.is_empty() {
            return self.sorted.to_le_bytes();
        }
        Cow::Owned(
            self.digests()
                .flat_map(|digest| [digest.a.to_le_bytes(), digest.b.to_le_bytes()])
                .flatten()
                .collect(),
        )
    }

    /// Inserts a key. [`Insertion::Perhaps`] means here: it was in.
    pub fn insert(&mut self, key: impl Key) -> Insertion {
        let digest = self.hashing.digest_of(key);
        self.put(digest)
    }

    /// Whether a key is in.
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_digest(self.hashing.digest_of(key))
    }

    /// Removes a key, and says whether it was in.
    pub fn remove(&mut self, key: impl Key) -> Removal {
        let digest = self.hashing.digest_of(key);
        self.remove_digest(digest)
    }

    /// How many keys are in.
    #[must_use]
    pub fn len(&self) -> u64 {
        (self.sorted.len() / 2 + self.added.len() - self.removed.len()) as u64
    }

    /// Whether no key is in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn put(&mut self, digest: Digest) -> Insertion {
        self.inserted = self.inserted.map(|calls| calls.saturating_add(1));
        Insertion::new_if(if find(self.sorted.as_slice(), digest) {
            self.removed.remove(&digest)
        } else {
            self.added.insert(digest)
        })
    }

    /// All digests in ascending order.
    pub fn digests(&self) -> impl Iterator<Item = Digest> + '_ {
        let mut added: Vec<Digest> = self.added.iter().copied().collect();
        added.sort_unstable();
        let sorted = pairs(self.sorted.as_slice()).filter(|digest| !self.removed.contains(digest));
        union(sorted, added.into_iter())
    }

    /// The digests of both sets, each once, in ascending order.
    fn joined(&self, other: &Self) -> Result<Words, OutOfMemory> {
        let (ours, theirs) = (self.sorted_added()?, other.sorted_added()?);
        let both = || union(self.kept(&ours), other.kept(&theirs));
        in_words(both().count(), both())
    }

    /// What was added, in ascending order.
    fn sorted_added(&self) -> Result<Vec<Digest>, OutOfMemory> {
        let mut added = Vec::new();
        let refused = |_| OutOfMemory { bytes: self.added.len() as u64 * BITS_PER_KEY / 8 };
        added.try_reserve_exact(self.added.len()).map_err(refused)?;
        added.extend(self.added.iter().copied());
        added.sort_unstable();
        Ok(added)
    }

    /// All digests in ascending order, if what was added is given so.
    fn kept<'a>(&'a self, added: &'a [Digest]) -> impl Iterator<Item = Digest> + 'a {
        let sorted = pairs(self.sorted.as_slice()).filter(|digest| !self.removed.contains(digest));
        union(sorted, added.iter().copied())
    }

    fn replace(&mut self, sorted: Words) {
        self.sorted = sorted;
        self.added.clear();
        self.removed.clear();
        self.inserted = None;
    }

    fn keep(&mut self, other: &Self, wanted: impl Fn(bool) -> bool) -> Result<(), Mismatch> {
        self.hashing.must_equal(&other.hashing)?;
        let refused = |OutOfMemory { bytes }| Mismatch::Memory { bytes };
        let added = self.sorted_added().map_err(refused)?;
        let kept = || self.kept(&added).filter(|&digest| wanted(other.contains_digest(digest)));
        let kept = in_words(kept().count(), kept()).map_err(refused)?;
        self.replace(kept);
        Ok(())
    }

    /// Union: afterwards this set holds every key of both.
    ///
    /// # Errors
    /// [`Mismatch`] if they hash differently; then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.hashing.must_equal(&other.hashing)?;
        let both = self.joined(other).map_err(|OutOfMemory { bytes }| Mismatch::Memory { bytes })?;
        self.replace(both);
        self.capacity = self.capacity.max(self.len());
        Ok(())
    }

    /// Intersection: afterwards this set holds the keys that are in both.
    ///
    /// # Errors
    /// [`Mismatch`] if they hash differently; then nothing has changed.
    pub fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.keep(other, |theirs| theirs)
    }

    /// Difference: afterwards this set holds its keys that are not in the other.
    ///
    /// # Errors
    /// [`Mismatch`] if they hash differently; then nothing has changed.
    pub fn subtract(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.keep(other, |theirs| !theirs)
    }

    fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        header.must_probe_by(Probing::None)?;
        header.must_be_hashed(hashing)?;
        let mut fields = Fields::new(&header.params);
        let len = fields.u64("number of digests")?;
        if len > MAX_BITS / BITS_PER_KEY {
            return Err(DecodeError::Value { field: "number of digests", found: len });
        }
        let capacity = fields.u64("capacity")?;
        fields.end("parameters", header.params.len())?;
        let (expected, found) = (len * BITS_PER_KEY / 8, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        if let Some(found) = header.ones.filter(|&ones| ones != len) {
            return Err(DecodeError::Value { field: "occupied cells", found });
        }
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let sorted = Words::from_bytes(payload)
            .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
        // Unsorted digests give wrong answers but do no harm: they are looked for only when the
        // whole payload is read anyway, so that a large file opens by its header alone.
        if frame.verified && !pairs(sorted.as_slice()).is_sorted_by(|a, b| a < b) {
            return Err(DecodeError::Payload { problem: "digests are not sorted" });
        }
        let inserted = header.inserted;
        Ok(Self { sorted, hashing, capacity, inserted, ..Self::default() })
    }
}

fn pairs(words: &[u64]) -> impl Iterator<Item = Digest> + '_ {
    words.chunks_exact(2).map(|pair| Digest { a: pair[0], b: pair[1] })
}

/// So many digests as words.
fn in_words(len: usize, digests: impl Iterator<Item = Digest>) -> Result<Words, OutOfMemory> {
    let mut words = Words::zeroed(2 * len as u64)?;
    words.as_mut_slice().chunks_exact_mut(2).zip(digests).for_each(|(pair, digest)| {
        pair.copy_from_slice(&[digest.a, digest.b]);
    });
    Ok(words)
}

/// Two ascending runs become one, in which nothing is twice.
fn union(
    left: impl Iterator<Item = Digest>,
    right: impl Iterator<Item = Digest>,
) -> impl Iterator<Item = Digest> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    core::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(l), Some(r)) if l == r => {
            right.next();
            left.next()
        }
        (Some(l), Some(r)) if l < r => left.next(),
        (Some(_), None) => left.next(),
        (_, Some(_)) => right.next(),
        (None, None) => None,
    })
}

/// Digests are uniform, so a digest's value says where it lies, give or take a few square roots of
/// the number: the search looks there first and touches few pages of a large mapped file. If it is
/// not there (crafted digests), the whole range is searched.
fn find(words: &[u64], digest: Digest) -> bool {
    let len = words.len() / 2;
    let at = |index: usize| Digest { a: words[2 * index], b: words[2 * index + 1] };
    let guess = index(reduce(digest.a, len as u64));
    let slack = 4 * index((len as u64).isqrt()) + 8;
    let (mut low, mut high) = (guess.saturating_sub(slack), guess.saturating_add(slack).min(len));
    if low > 0 && at(low) > digest {
        (low, high) = (0, low);
    } else if high < len && at(high) < digest {
        (low, high) = (high, len);
    }
    // Below `low` all are smaller, from `high` on all are larger or equal.
    while low < high {
        let middle = low + (high - low) / 2;
        if at(middle) < digest { low = middle + 1 } else { high = middle }
    }
    low < len && at(low) == digest
}

impl Filter for Exact {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        (!self.added.is_empty() && self.added.contains(&digest))
            || (find(self.sorted.as_slice(), digest) && !self.removed.contains(&digest))
    }
}

impl Insert for Exact {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        // Where there is no memory, an error here is better than the end of the process.
        if self.added.try_reserve(1).is_err() {
            let limit = Limit::Memory { bytes: grown_bytes(self.added.len()) };
            return Err(Full { limit, inserted: 0 });
        }
        Ok(self.put(digest))
    }
}

/// What a hash set of so many digests takes when it grows: twice as many places, of which an eighth stays free, and a byte
/// for each.
fn grown_bytes(len: usize) -> u64 {
    let places = (len as u64 + 1).saturating_mul(8) / 7;
    places.next_power_of_two().saturating_mul(size_of::<Digest>() as u64 + 1)
}

impl Remove for Exact {
    fn remove_digest(&mut self, digest: Digest) -> Removal {
        let was_in = self.added.remove(&digest)
            || (find(self.sorted.as_slice(), digest) && self.removed.insert(digest));
        Removal::removed_if(was_in)
    }
}

impl Merge for Exact {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.merge(family::same_type(self, other)?)
    }
}

impl Intersect for Exact {
    fn intersect_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.intersect(family::same_type(self, other)?)
    }
}

impl Subtract for Exact {
    fn subtract_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.subtract(family::same_type(self, other)?)
    }
}

impl AnyFilter for Exact {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    fn report(&self) -> Report {
        let len = self.len();
        let capacity = self.capacity.max(len);
        Report {
            capacity,
            inserted: self.inserted,
            estimated_len: Some(len as f64),
            bits: len * BITS_PER_KEY,
            probes: None,
            fill: if len == 0 { 0.0 } else { 1.0 },
            fpr_asked: 0.0,
            fpr_now: len as f64 * COLLISION,
            fpr_interval: None,
            fpr_at_capacity: capacity as f64 * COLLISION,
            guarantee: Guarantee::Exact,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        out.counts(self.inserted, self.len());
        out.params().u64(self.len()).u64(self.capacity);
        out.bytes_of(Some(&self.sorted), || self.sorted_bytes());
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }
    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        Some(self)
    }
    /// Puts all digests in order, as they stand in a file.
    fn settle(&mut self) -> Result<(), OutOfMemory> {
        if !(self.added.is_empty() && self.removed.is_empty()) {
            self.sorted = self.joined(&Self::hashed(self.hashing))?;
            (self.added, self.removed) = Default::default();
        }
        Ok(())
    }
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }
    fn as_intersect(&mut self) -> Option<&mut dyn Intersect> {
        Some(self)
    }
    fn as_subtract(&mut self) -> Option<&mut dyn Subtract> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(count: u64, crowded: bool) -> Vec<u64> {
        let hashing = Hashing::default();
        let mut digests: Vec<Digest> = (0..count).map(|key| hashing.digest_of(key)).collect();
        if crowded {
            // All in one corner: the guess is always wrong.
            digests.iter_mut().for_each(|digest| digest.a >>= 40);
        }
        digests.sort_unstable();
        digests.dedup();
        digests.into_iter().flat_map(|digest| [digest.a, digest.b]).collect()
    }

    #[test]
    fn the_search_finds_all_and_nothing_else() {
        for (count, crowded) in
            [(0, false), (1, false), (2, false), (1000, false), (50_000, false), (50_000, true)]
        {
            let words = sorted(count, crowded);
            assert!(pairs(&words).all(|digest| find(&words, digest)));
            for digest in pairs(&words) {
                assert!(!find(&words, Digest { b: digest.b ^ 1, ..digest }));
            }
            for digest in [Digest { a: 0, b: 0 }, Digest { a: u64::MAX, b: u64::MAX }] {
                assert!(!find(&words, digest));
            }
        }
    }
}
