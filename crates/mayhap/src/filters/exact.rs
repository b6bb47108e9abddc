//! Exact set of digests: no errors, for the price of 128 bits per key.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::{BuildHasherDefault, Hasher};

use crate::bits::{Bytes, OutOfMemory, Words};
use crate::error::{DecodeError, Full, Limit, Mismatch, SpecError};
use crate::family::{Cost, Family, Guarantee, Make, Profile, Space};
use crate::hash::{Digest, Hashing};
use crate::math;
use crate::narrow::index;
use crate::paths::Paths;
use crate::probing::{Probing, reduce};
use crate::rates::Rate;
use crate::shell::{self, Empty, Inserts, Intersects, Kernel, Merges, Removes, Shell, Subtracts, filter};
use crate::spec::{MAX_BITS, Plan, Spec, within_limit};
use crate::traits::{Insertion, Removal};
use crate::wire::{Fields, Frame, Writer};
use hashbrown::HashSet;

/// The family `exact`.
pub(crate) static FAMILY: Family = Family {
    id: 2,
    name: "exact",
    summary: "no errors: sorted 128-bit digests of all keys",
    can: Exact::CAN,
    knobs: &[],
    probing: &[Probing::NONE],
    cost: Cost { query: "O(log n)", insert: "O(log n)", space: "128 n" },
    make: Make::Empty(|spec| Ok(Box::new(Exact::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(Exact::decode(frame, hashing)?)),
    in_place: false,
    profile: Profile {
        space: Some(Space { per_key: |_| 128.0, less: 0.0, more: 0.0 }),
        is_held_as_written: false,
        prefetches: false,
        ..Profile::USUAL
    },
};

const BITS_PER_KEY: u64 = 128;

/// The chance that one absent key has the digest of one present key.
const COLLISION: f64 = 1.0 / (u128::MAX as f64);

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let capacity = FAMILY.check(spec)?.keys(BITS_PER_KEY)?;
    let bits = within_limit(capacity * BITS_PER_KEY)?;
    let fpr = capacity as f64 * COLLISION;
    Ok(Plan { capacity, fpr_asked: 0.0, fpr, bits, probes: None })
}

/// Digests are hashes already: their own bits choose the place in a hash set.
#[doc(hidden)]
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
type DigestSet = HashSet<Digest, BuildHasherDefault<DigestHasher>>;

filter! {
    /// An exact set of keys, by their digests.
    ///
    /// **Answers** "was this key inserted and not removed since?"
    /// **Promise** no wrong answer as long as no two keys share a digest; among n keys the chance that an
    /// absent key is admitted is n / 2^128.
    /// **Not for** sets that do not fit; that is what the filters are for.
    ///
    /// ```text
    ///   key ─▶ digest ─▶ place ≈ digest / 2^128 · n      sorted  [ 03… | 1f… | 77… | 9c… | e0… ]
    ///                                                    added   { 55… }      removed  { 1f… }
    /// ```
    ///
    /// | operation | cache lines       | can fail |
    /// |-----------|-------------------|----------|
    /// | contains  | a few             | no       |
    /// | insert    | a few             | no       |
    /// | remove    | a few             | no       |
    /// | merge     | all, in order     | mismatch |
    ///
    /// The sorted digests may lie in a mapped file. Later changes are kept in two hash sets and merged in when the set is
    /// written.
    ///
    /// No answer is wrong, as long as no two keys share a digest: what is said of keys that are probably in holds for keys that
    /// are in.
    ///
    /// ```
    /// use mayhap::Exact;
    ///
    /// let mut set = Exact::default();
    /// set.insert("a")?;
    /// assert!(set.contains("a") && !set.contains("b"));
    /// assert!(set.remove("a").is_removed() && !set.remove("a").is_removed());
    /// assert_eq!(set.len(), 0);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Exact(Digests) = FAMILY {
        /// The capacity is noted and no limit.
        specified,
        /// [`Insertion::Perhaps`] means here: it was in.
        inserts_until_full,
        removes,
        merges,
        intersects,
        subtracts,
        grows,
        exact,
    }
}

impl Default for Exact {
    fn default() -> Self {
        Self::hashed(Hashing::default())
    }
}

/// The digests of an exact set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digests {
    /// Two words per digest, ascending by (a, b), without repeats.
    sorted: Words,
    /// Not in `sorted`.
    added: DigestSet,
    /// In `sorted`, but no longer in the set.
    removed: DigestSet,
    capacity: u64,
}

impl Digests {
    fn len(&self) -> u64 {
        (self.sorted.len() / 2 + self.added.len() - self.removed.len()) as u64
    }

    /// All digests in ascending order.
    fn digests(&self) -> impl Iterator<Item = Digest> + '_ {
        let mut added: Vec<Digest> = self.added.iter().copied().collect();
        added.sort_unstable();
        let sorted = pairs(self.sorted.as_slice()).filter(|digest| !self.removed.contains(digest));
        union(sorted, added.into_iter())
    }

    /// All digests in ascending order, as they stand in a file.
    fn sorted_bytes(&self) -> Cow<'_, [u8]> {
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
    }

    fn keep(&mut self, other: &Self, wanted: impl Fn(bool) -> bool) -> Result<(), Mismatch> {
        let refused = |OutOfMemory { bytes }| Mismatch::Memory { bytes };
        let added = self.sorted_added().map_err(refused)?;
        let kept = || self.kept(&added).filter(|&digest| wanted(other.contains(digest)));
        let kept = in_words(kept().count(), kept()).map_err(refused)?;
        self.replace(kept);
        Ok(())
    }
}

impl Kernel for Digests {
    type Hash = Digest;

    const GUARANTEE: Guarantee = Guarantee::Exact;

    fn contains(&self, digest: Digest) -> bool {
        (!self.added.is_empty() && self.added.contains(&digest))
            || (find(self.sorted.as_slice(), digest) && !self.removed.contains(&digest))
    }

    fn held_bytes(&self) -> u64 {
        let of_set = |set: &DigestSet| math::hash_set_bytes(set.len() as u64, 16);
        (self.sorted.len() * 8) as u64 + of_set(&self.added) + of_set(&self.removed)
    }

    fn plan(&self) -> Plan {
        let len = self.len();
        let capacity = self.capacity.max(len);
        let fpr = capacity as f64 * COLLISION;
        Plan { capacity, fpr_asked: 0.0, fpr, bits: len * BITS_PER_KEY, probes: None }
    }

    fn fill(&self) -> f64 {
        if self.len() == 0 { 0.0 } else { 1.0 }
    }

    fn rate(&self) -> Rate {
        Rate::computed(self.len() as f64 * COLLISION)
    }

    fn estimated_len(&self) -> f64 {
        self.len() as f64
    }

    fn must_match(&self, _: &Self) -> Result<(), Mismatch> {
        Ok(())
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.digests().eq(other.digests())
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.ones(self.len());
        out.params().u64(self.len()).u64(self.capacity);
        out.bytes_of(Some(&self.sorted), || self.sorted_bytes());
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let len = fields.u64("number of digests")?;
        if len > MAX_BITS / BITS_PER_KEY {
            return Err(DecodeError::Value { field: "number of digests", found: len });
        }
        let capacity = fields.u64("capacity")?;
        fields.end("parameters", header.params.len())?;
        let sorted = shell::take_words(frame, len * BITS_PER_KEY / 8)?;
        if let Some(found) = frame.header.ones.filter(|&ones| ones != len) {
            return Err(DecodeError::Value { field: "occupied cells", found });
        }
        // Unsorted digests give wrong answers but do no harm: the order is verified only when the
        // whole payload is read anyway, so that a large file opens by its header alone.
        if frame.verified && !pairs(sorted.as_slice()).is_sorted_by(|a, b| a < b) {
            return Err(DecodeError::Payload { problem: "digests are not sorted" });
        }
        Ok(Self { sorted, capacity, ..Self::default() })
    }

    fn take_paths(&mut self, _: Paths) {}

    /// Puts all digests in order, as they stand in a file.
    fn settle(&mut self) -> Result<(), OutOfMemory> {
        if !(self.added.is_empty() && self.removed.is_empty()) {
            self.sorted = self.joined(&Self::default())?;
            (self.added, self.removed) = Default::default();
        }
        Ok(())
    }
}

impl Empty for Digests {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        Ok(Self { capacity: plan(spec)?.capacity, ..Self::default() })
    }

    fn clear(&mut self) {
        self.replace(Words::default());
    }
}

impl Inserts for Digests {
    type Error = Full;

    fn insert(&mut self, digest: Digest) -> Result<Insertion, Full> {
        // Where there is no memory, an error here is better than the end of the process.
        if self.added.try_reserve(1).is_err() {
            let limit = Limit::Memory { bytes: grown_bytes(self.added.len()) };
            return Err(Full { limit, inserted: 0 });
        }
        Ok(Insertion::new_if(if find(self.sorted.as_slice(), digest) {
            self.removed.remove(&digest)
        } else {
            self.added.insert(digest)
        }))
    }
}

impl Removes for Digests {
    fn remove(&mut self, digest: Digest) -> Removal {
        let was_in = self.added.remove(&digest)
            || (find(self.sorted.as_slice(), digest) && self.removed.insert(digest));
        Removal::removed_if(was_in)
    }
}

impl Merges for Digests {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        let both = self.joined(other).map_err(|OutOfMemory { bytes }| Mismatch::Memory { bytes })?;
        self.replace(both);
        self.capacity = self.capacity.max(self.len());
        Ok(())
    }
}

impl Intersects for Digests {
    fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.keep(other, |theirs| theirs)
    }
}

impl Subtracts for Digests {
    fn subtract(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.keep(other, |theirs| !theirs)
    }
}

impl Exact {
    /// An empty set with this hashing.
    pub(crate) fn hashed(hashing: Hashing) -> Self {
        Self(Shell { kernel: Digests::default(), hashing, inserted: Some(0) })
    }

    /// The set of the digests that lie in bytes, each above the one before; `None` if they do not lie so.
    pub(crate) fn of_sorted(bytes: Bytes, hashing: Hashing) -> Option<Self> {
        let sorted = Words::from_bytes(bytes)?;
        let len = sorted.len() as u64 / 2;
        let ascends = sorted.len().is_multiple_of(2) && pairs(sorted.as_slice()).is_sorted_by(|a, b| a < b);
        let kernel = Digests { sorted, ..Digests::default() };
        ascends.then_some(Self(Shell { kernel, hashing, inserted: Some(len) }))
    }

    /// All digests in ascending order, as they stand in a file.
    pub(crate) fn sorted_bytes(&self) -> Cow<'_, [u8]> {
        self.0.kernel.sorted_bytes()
    }

    /// The number of keys in the set.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.kernel.len()
    }

    /// Whether no key is in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All digests in ascending order.
    pub fn digests(&self) -> impl Iterator<Item = Digest> + '_ {
        self.0.kernel.digests()
    }
}

fn pairs(words: &[u64]) -> impl Iterator<Item = Digest> + '_ {
    words.chunks_exact(2).map(|pair| Digest { a: pair[0], b: pair[1] })
}

/// `len` digests as words.
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

/// Bytes of a hash set of `len` digests when it grows: twice as many places, of which an eighth stays free, and a byte for
/// each.
fn grown_bytes(len: usize) -> u64 {
    let places = (len as u64 + 1).saturating_mul(8) / 7;
    places.next_power_of_two().saturating_mul(size_of::<Digest>() as u64 + 1)
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
