//! Bloom filter: approximate membership in 1.44 times the least possible space.
//!
//! **Answers** "was this key inserted?"
//! **Promise** a key that is in is never denied, also when the filter is over-full; an absent key is
//! admitted with the asked rate at capacity.
//! **Not for** keys that must be removed again; sets whose size is unknown by orders of magnitude.
//!
//! ```text
//!   key ─▶ digest ─▶ probes positions       bits  0 1 0 0 1 0 0 0 1 0 0 1 0
//!                    1, 4, 11                       ▲     ▲             ▲      all set: perhaps
//! ```
//!
//! | operation | cache lines                  | can fail |
//! |-----------|------------------------------|----------|
//! | contains  | `probes`; 3 or so for a miss  | no       |
//! | insert    | `probes`                     | no       |
//! | merge     | all, in order                | mismatch |
//! | fold      | all, in order                | no divisor keeps the rate |
//!
//! **Paper** Bloom, *Space/Time Trade-offs in Hash Coding with Allowable Errors*, CACM 1970.
//! **We differ** in that one 128-bit hash gives all positions (see [`positions`]) and that the number
//! of bits is the exact one, not a power of two.
//!
//! ```
//! use mayhap::Bloom;
//!
//! let mut seen = Bloom::new(1_000_000, 0.01)?;
//! seen.insert("https://example.org/");
//! assert!(seen.contains("https://example.org/"));
//! assert_eq!(seen.probes(), 7);
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "std")]
use crate::batch::in_parallel;
use crate::batch::{copy, pipeline};
#[cfg(feature = "std")]
use crate::bits::Parts;
use crate::bits::{
    AtomicWords, Bytes, OutOfMemory, OutOfRange, Scatter, Words, region_words, resized, set_in_region,
    words_for,
};
use crate::error::{DecodeError, Error, FoldError, Full, Mismatch, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, Family, Guarantee, Make, Report};
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::intersection::Intersection;
use crate::math;
#[cfg(feature = "std")]
use crate::narrow::low_u32;
use crate::narrow::{index, whole};
use crate::paths::Paths;
use crate::probing::{Positions, Probing, positions};
use crate::rates::{self, Rate};
use crate::raw::simd::prefetch;
use crate::raw::simd::probes::{self, Single};
use crate::spec::{BloomSize, DEFAULT_FPR, MAX_BITS, MIN_FPR, Plan, Spec};
use crate::traits::{Filter, Fold, Insert, Insertion, Intersect, Merge, SharedInsert};
use crate::wire::{Fields, Frame, Summing, Writer};

/// The family `bloom`.
pub static FAMILY: Family = Family {
    id: 1,
    name: "bloom",
    summary: "the classic: smallest that inserts and merges",
    can: Capabilities {
        inserts: true,
        removes: false,
        counts: false,
        labels: false,
        merges: true,
        intersects: true,
        subtracts: false,
        folds: true,
        grows: false,
        exact: false,
    },
    cost: Cost { query: "O(k)", insert: "O(k)", space: "1.44 n log2(1/p)" },
    make: Make::Empty(|spec| Ok(Box::new(Bloom::from_spec(spec)?))),
    shared: Some(shared),
    plan,
    decode: |frame, hashing| Ok(Box::new(Bloom::decode(frame, hashing)?)),
    in_place: true,
};

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let BloomSize { capacity, bits, probes, fpr_asked, fpr } = spec.bloom()?;
    Ok(Plan { capacity, fpr_asked, fpr, bits, probes: Some(probes) })
}

/// Many threads fill private copies while those are small, then regions of one filter; or atomic bits, where there
/// are no locks.
fn shared(spec: &Spec) -> Result<Box<dyn SharedInsert>, SpecError> {
    #[cfg(feature = "std")]
    return Ok(if Scatter::pays(spec.paths, spec.bloom()?.bits) {
        Box::new(ScatteredBloom::of(Bloom::from_spec(spec)?))
    } else {
        Box::new(PrivateBlooms::from_spec(spec)?)
    });
    #[cfg(not(feature = "std"))]
    Ok(Box::new(AtomicBloom::from_spec(spec)?))
}

/// One thread gathers bits by region from here on: 32 MiB. In filters of 12 MiB that took as long as prefetching or
/// longer; in filters of 60 MiB two thirds of the time.
const GATHER_FROM_BYTES: usize = 32 << 20;

/// A classic Bloom filter.
#[derive(Clone, Debug)]
pub struct Bloom {
    words: Words,
    size: BloomSize,
    hashing: Hashing,
    /// Insert calls; unknown after a merge or an interrupted update.
    inserted: Option<u64>,
    /// Set bits, if they are known: batches count what they set, single inserts do not, and then they are counted
    /// when somebody asks.
    ones: Option<u64>,
    /// What is known of its keys, if it is an intersection.
    intersection: Option<Intersection>,
    /// For keys that come one by one.
    single: Single,
    paths: Paths,
}

/// Two filters are equal if they give the same answer to every key: same size, hashing and bits.
impl PartialEq for Bloom {
    fn eq(&self, other: &Self) -> bool {
        self.must_match(other).is_ok() && self.words == other.words
    }
}

impl Bloom {
    /// An empty filter for so many keys at such a false-positive rate.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty filter of so many bits and probes.
    ///
    /// # Errors
    /// As for [`new`](Bloom::new).
    pub fn with_bits(bits: u64, probes: u32) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::new().with_bits(bits).with_probes(probes))
    }

    /// An empty filter of whatever was asked for.
    ///
    /// # Errors
    /// As for [`new`](Bloom::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let (size, hashing) = (spec.bloom()?, spec.hashed()?);
        let words = Words::zeroed(words_for(size.bits))?;
        Ok(Self::of(words, size, hashing, Some(0), Some(0)).taking(spec.paths))
    }

    /// The same filter, which takes these loops.
    pub(super) fn taking(self, paths: Paths) -> Self {
        Self { single: Single::of(self.size.probes, paths), paths, ..self }
    }

    /// A filter over words that exist already: bit `i` is bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    /// [`SpecError::Words`] if there are too few or too many, or bits are set behind the last one.
    pub fn from_words(words: impl Into<Words>, bits: u64, probes: u32) -> Result<Self, SpecError> {
        let size = Spec::new().with_bits(bits).with_probes(probes).bloom()?;
        let words = words.into();
        let wrong = SpecError::Words { expected: words_for(bits), found: words.len() as u64 };
        if words.len() as u64 != words_for(bits) || !tail_is_clear(&words, bits) {
            return Err(wrong);
        }
        Ok(Self::of(words, size, Hashing::default(), None, None))
    }

    /// Of words whose bits behind the last are zero.
    pub(super) fn of(
        words: Words,
        size: BloomSize,
        hashing: Hashing,
        inserted: Option<u64>,
        ones: Option<u64>,
    ) -> Self {
        let (intersection, paths) = (None, Paths::default());
        let single = Single::of(size.probes, paths);
        Self { words, size, hashing, inserted, ones, intersection, single, paths }
    }

    /// Inserts a key.
    ///
    /// ```
    /// use mayhap::{Bloom, Insertion};
    ///
    /// let mut seen = Bloom::new(100, 0.01)?;
    /// assert_eq!(seen.insert(42u64), Insertion::New);
    /// assert_eq!(seen.insert(42u64), Insertion::Perhaps);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Insertion {
        let digest = self.hashing.digest_of(key);
        self.put(digest)
    }

    /// Whether a key is perhaps in. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_digest(self.hashing.digest_of(key))
    }

    #[inline]
    fn put(&mut self, digest: Digest) -> Insertion {
        let BloomSize { bits, probes, .. } = self.size;
        self.ones = None;
        // A crafted file may claim any number of calls: they end at the top instead of going round.
        if let Some(calls) = &mut self.inserted {
            *calls = calls.saturating_add(1);
        }
        Insertion::new_if(probes::insert(self.words.as_mut_slice(), bits, probes, digest))
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    ///
    /// ```
    /// let mut seen = mayhap::Bloom::new(1000, 0.01)?;
    /// seen.insert_all(&["one", "two"]);
    /// let mut hits = Vec::new();
    /// seen.contains_all(&["two", "three"], &mut hits);
    /// assert_eq!(hits, [true, false]);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    pub fn contains_all<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.ask_all(keys, |keys, digests| K::digests(keys, &hashing, digests), hits);
    }

    /// Inserts many keys, several at a time in flight. So many that a large filter is written all over again and
    /// again are gathered by the region of their bits; the memory for that is a quarter of the filter's and 64 MiB
    /// at most.
    pub fn insert_all<K: Key>(&mut self, keys: &[K]) {
        let (hashing, paths, BloomSize { bits, probes, .. }) = (self.hashing, self.paths, self.size);
        let hash = |keys: &[K], digests: &mut [Digest]| K::digests(keys, &hashing, digests);
        if !probes::is_far(paths, self.words.as_slice()) {
            // As for single keys: what is not waiting for memory does not count what it sets.
            self.ones = None;
            self.inserted = self.inserted.map(|calls| calls.saturating_add(keys.len() as u64));
            let mut words = self.words.as_mut_slice();
            return pipeline(
                &mut words,
                keys,
                hash,
                false,
                |_, _| {},
                |words, digests| {
                    for &digest in digests {
                        probes::insert(words, bits, probes, digest);
                    }
                },
            );
        }
        // Worth it alone if the bits are beyond every cache, and each of their lines is written twice on average.
        let written = (keys.len() as u64).saturating_mul(u64::from(probes));
        let gathers = bits / 8 >= paths.gather_from_bytes(GATHER_FROM_BYTES) as u64;
        let scatter = if gathers && written / 2 >= bits / 512 { Scatter::new(paths, bits) } else { None };
        let Some(mut scatter) = scatter else { return self.put_all(keys, hash, |_| {}) };
        let (words, mut fresh) = (self.words.as_mut_slice(), 0);
        let mut set = |region: usize, positions: &[u32]| {
            let words = &mut words[region * region_words(paths)..];
            fresh += set_in_region(paths, words, positions);
        };
        pipeline(
            &mut scatter,
            keys,
            hash,
            false,
            |_, _| {},
            |scatter, digests| {
                for &digest in digests {
                    positions(digest, probes, bits).for_each(|position| scatter.push(position, &mut set));
                }
            },
        );
        scatter.drain(&mut set);
        self.ones = self.ones.map(|ones| ones + fresh);
        self.inserted = self.inserted.map(|calls| calls.saturating_add(keys.len() as u64));
    }

    /// Inserts many keys with so many threads. The bits are those that one thread would set.
    ///
    /// Threads fill small filters of their own, and regions of a large one.
    ///
    /// ```
    /// use mayhap::Bloom;
    ///
    /// let keys: Vec<u64> = (0..100_000).collect();
    /// let mut seen = Bloom::new(100_000, 0.01)?;
    /// seen.insert_all_parallel(&keys, 2);
    /// assert!(keys.iter().all(|key| seen.contains(key)));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is no memory for the threads to work in, or a key panics; the keys from before are still in.
    #[cfg(feature = "std")]
    pub fn insert_all_parallel<K: Key + Sync>(&mut self, keys: &[K], threads: usize) {
        // Words that are written in place cannot be taken apart.
        if self.words.is_in_place() {
            return self.insert_all(keys);
        }
        let nothing = Self { words: Words::default(), ..*self };
        let whole = core::mem::replace(self, nothing);
        let panic = if Scatter::pays(whole.paths, whole.size.bits) {
            let shared = ScatteredBloom::of(whole);
            let panic = fill(self.paths, &shared, keys, threads);
            *self = shared.joined();
            panic
        } else {
            let shared = PrivateBlooms::of(whole);
            let panic = fill(self.paths, &shared, keys, threads);
            *self = shared.joined();
            panic
        };
        match panic {
            None => self.insert_all(keys),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(())) => {}
        }
    }

    #[inline(always)]
    fn ask_all<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), hits: &mut Vec<bool>) {
        let start = hits.len();
        hits.resize(start + keys.len(), false);
        let (words, bits) = (self.words.as_slice(), self.size.bits);
        probes::contains_all(self.paths, words, bits, self.single, keys, hash, &mut hits[start..]);
    }

    #[inline(always)]
    fn put_all<K>(
        &mut self,
        keys: &[K],
        hash: impl Fn(&[K], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) {
        let BloomSize { bits, probes, .. } = self.size;
        let mut set = 0;
        probes::insert_all(self.paths, self.words.as_mut_slice(), bits, probes, keys, hash, |fresh| {
            set += u64::from(fresh);
            told(Insertion::new_if(fresh > 0));
        });
        self.ones = self.ones.map(|ones| ones + set);
        self.inserted = self.inserted.map(|calls| calls.saturating_add(keys.len() as u64));
    }

    #[inline]
    fn set(&mut self, positions: impl Iterator<Item = u64>) -> Insertion {
        let words = self.words.as_mut_slice();
        let mut fresh = 0;
        for position in positions {
            let word = &mut words[index(position / 64)];
            let mask = 1 << (position % 64);
            fresh += u64::from(*word & mask == 0);
            *word |= mask;
        }
        self.ones = self.ones.map(|ones| ones + fresh);
        // A crafted file may claim any number of calls: they end at the top instead of going round.
        if let Some(calls) = &mut self.inserted {
            *calls = calls.saturating_add(1);
        }
        Insertion::new_if(fresh > 0)
    }

    /// The positions of a key, in the order in which they are probed.
    pub fn positions(&self, key: impl Key) -> Positions {
        positions(self.hashing.digest_of(key), self.size.probes, self.size.bits)
    }

    /// Inserts a key that is known by its positions only, such as a textbook's.
    ///
    /// # Errors
    /// [`OutOfRange`] if a position is not below [`bits`](Bloom::bits); then nothing has changed.
    pub fn insert_positions(&mut self, positions: &[u64]) -> Result<Insertion, OutOfRange> {
        self.check(positions)?;
        Ok(self.set(positions.iter().copied()))
    }

    /// Whether all of these positions are set.
    ///
    /// # Errors
    /// [`OutOfRange`] if a position is not below [`bits`](Bloom::bits).
    pub fn contains_positions(&self, positions: &[u64]) -> Result<bool, OutOfRange> {
        self.check(positions)?;
        Ok(self.all_set(positions.iter().copied()))
    }

    fn check(&self, positions: &[u64]) -> Result<(), OutOfRange> {
        let universe = self.size.bits;
        match positions.iter().find(|&&position| position >= universe) {
            Some(&index) => Err(OutOfRange { index, universe }),
            None => Ok(()),
        }
    }

    #[inline]
    fn all_set(&self, mut positions: impl Iterator<Item = u64>) -> bool {
        let words = self.words.as_slice();
        positions.all(|position| words[index(position / 64)] >> (position % 64) & 1 == 1)
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.ones = Some(0);
        self.inserted = Some(0);
        self.intersection = None;
    }

    /// The number of bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.size.bits
    }

    /// Positions per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.size.probes
    }

    /// The number of keys it was made for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.size.capacity
    }

    /// The bits, 64 to a word.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// How keys are hashed.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// How many keys went in, repeats included. `None` after a merge or an intersection.
    #[must_use]
    pub fn inserted(&self) -> Option<u64> {
        self.inserted
    }

    fn ones(&self) -> u64 {
        self.ones.unwrap_or_else(|| self.words.count_ones())
    }

    /// How many different keys are probably in; infinite when every bit is set. Counts the set bits if keys were
    /// inserted one by one since somebody last knew them. Too many after a merge
    /// of different sizes, where one key has set several neighbours. Of an intersection it is the number of common keys that
    /// was estimated when it was made; not a number if that is unknown, or if the intersection was changed afterwards.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        let ones = self.ones();
        match self.intersection {
            Some(intersection) => intersection.len(ones),
            None => math::estimated_len(self.size.bits, ones, self.size.probes),
        }
    }

    /// The share of the bits that are set.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.ones() as f64 / self.size.bits as f64
    }

    /// The false-positive rate of the filter as it is, from its fill.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        self.rate().value
    }

    fn rate(&self) -> Rate {
        rate(self.words.as_slice(), self.size.bits, self.size.probes, self.ones())
    }

    /// The false-positive rate with as many keys as it was made for.
    #[must_use]
    pub fn fpr_at_capacity(&self) -> f64 {
        self.size.fpr
    }

    /// Whether `other` has the same size, probes and hashing: its bits mean the same.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        if self.size.bits != other.size.bits {
            return Err(Mismatch::Bits { ours: self.size.bits, theirs: other.size.bits });
        }
        if self.size.probes != other.size.probes {
            return Err(Mismatch::Probes { ours: self.size.probes, theirs: other.size.probes });
        }
        self.hashing.must_equal(&other.hashing)
    }

    /// Union: afterwards this filter holds every key of both.
    ///
    /// If they have the same size and probes it is as if all keys had been inserted here. If not, the
    /// bits of the one are brought to the length of the other, where each sets every bit that it
    /// overlaps, and the smaller number of probes is taken: the keys of the other filter have set those
    /// too, because a key's positions are the same sequence whatever their number. Both lengths are
    /// tried, and the one with the lower rate stays; the shorter if they tie. That costs: two half-full
    /// filters with 7 probes give a rate of 13% if they are equal or one is a multiple of the other, and
    /// of 39% if one has a single bit more. Before it is done, [`math::merged_fpr`] tells; afterwards, [`fpr`](Bloom::fpr).
    ///
    /// ```
    /// use mayhap::Bloom;
    ///
    /// let (mut ours, mut theirs) = (Bloom::new(1000, 0.01)?, Bloom::new(2500, 0.001)?);
    /// ours.insert("one");
    /// theirs.insert("two");
    /// ours.merge(&theirs)?;
    /// assert!(ours.contains("one") && ours.contains("two"));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Mismatch`] if they hash differently, or there is no memory for both results; then nothing has
    /// changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        let intersection = Intersection::of_union(self.intersection, other.intersection);
        if self.must_match(other).is_ok() {
            self.combine(other, |ours, theirs| ours | theirs)?;
            self.intersection = intersection;
            return Ok(());
        }
        self.hashing.must_equal(&other.hashing)?;
        let (small, large) =
            if self.size.bits <= other.size.bits { (&*self, other) } else { (other, &*self) };
        let (m, n) = (small.size.bits, large.size.bits);
        let (mut bits, mut joined) = (m, small.joined(large)?);
        if m < n {
            let longer = large.joined(small)?;
            // ones / m of the shorter above ones / n of the longer, without a division.
            if u128::from(joined.1) * u128::from(n) > u128::from(longer.1) * u128::from(m) {
                (bits, joined) = (n, longer);
            }
        }
        let (words, ones) = joined;
        let capacity = small.size.capacity.max(large.size.capacity);
        let probes = small.size.probes.min(large.size.probes);
        let fpr_asked = small.size.fpr_asked.max(large.size.fpr_asked);
        let fpr = math::bloom_fpr_of_any_size(bits, capacity, probes);
        if bits == self.size.bits {
            // Where they lie, which may be in a map that is written in place.
            self.words.as_mut_slice().copy_from_slice(words.as_slice());
        } else {
            self.words = words;
        }
        (self.size, self.ones) = (BloomSize { capacity, bits, probes, fpr_asked, fpr }, Some(ones));
        self.single = Single::of(probes, self.paths);
        self.inserted = None;
        self.intersection = intersection;
        Ok(())
    }

    /// The words of both with this one's number of bits, and how many are set.
    fn joined(&self, other: &Self) -> Result<(Words, u64), Mismatch> {
        let both = resized(other.words.as_slice(), other.size.bits, self.size.bits);
        let mut both = both.map_err(|OutOfMemory { bytes }| Mismatch::Memory { bytes })?;
        both.as_mut_slice().iter_mut().zip(self.words.as_slice()).for_each(|(both, ours)| *both |= ours);
        let ones = both.count_ones();
        Ok((both, ones))
    }

    /// A filter with the same keys in `factor` times fewer bits: exactly the one that those keys would
    /// have made there.
    ///
    /// Neighbours are ORed: the bit of `position` becomes that of `position / factor`. With `m` bits a
    /// hash `x` has the position `floor(y)`, `y = x * m / 2^64`; with `m / factor` bits it has
    /// `floor(y / factor)`, and `floor(floor(y) / factor)` is the same number, since `factor` is whole.
    ///
    /// The capacity becomes that of the new size at the rate that was asked for.
    ///
    /// ```
    /// use mayhap::{Bloom, Spec};
    ///
    /// let mut roomy = Bloom::from_spec(&Spec::sized(100_000, 0.01).foldable())?;
    /// roomy.extend(0..1000u64);
    /// let folded = roomy.fold(64)?;
    /// assert_eq!(folded.bits(), roomy.bits() / 64);
    /// assert!((0..1000u64).all(|key| folded.contains(key)));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`FoldError::Factor`] if the factor does not divide the bits; [`FoldError::Damaged`] if they came from bytes that were
    /// not verified, and are damaged.
    pub fn fold(&self, factor: u64) -> Result<Self, FoldError> {
        let BloomSize { capacity, bits, probes, fpr_asked, .. } = self.size;
        if !bits.is_multiple_of(factor) {
            return Err(FoldError::Factor { bits, factor });
        }
        self.words.verify().map_err(|_| FoldError::Damaged)?;
        let words = folded(self.words.as_slice(), bits, factor)?;
        let bits = bits / factor;
        let fits = math::bloom_capacity_for_probes(bits, fpr_asked, probes);
        let capacity = fits.clamp(1, capacity.max(1));
        let fpr = math::bloom_fpr_of_any_size(bits, capacity, probes);
        let (size, ones) = (BloomSize { capacity, bits, probes, fpr_asked, fpr }, words.count_ones());
        let intersection = self.intersection.map(|intersection| intersection.moved(self.ones(), ones));
        let folded = Self::of(words, size, self.hashing, self.inserted, Some(ones));
        Ok(Self { intersection, ..folded }.taking(self.paths))
    }

    /// The smallest [fold](Bloom::fold) whose rate is at most this, from its own fill and with one key at
    /// least. Its capacity is what its bits hold at that rate.
    ///
    /// # Errors
    /// [`FoldError`] if the rate makes no sense, the filter errs more often already, or no divisor of its
    /// bits keeps the rate. Bits have good divisors if they were asked to ([`Spec::foldable`]).
    pub fn fold_to(&self, fpr: f64) -> Result<Self, FoldError> {
        if !(MIN_FPR..1.0).contains(&fpr) {
            return Err(FoldError::Fpr { asked: fpr });
        }
        self.words.verify().map_err(|_| FoldError::Damaged)?;
        let (asked, now, BloomSize { bits, probes, .. }) = (fpr, self.fpr(), self.size);
        if now > asked {
            return Err(FoldError::TooFull { asked, now });
        }
        // A filter that is empty, or lucky with its first keys, must still be good for a key.
        let least = |bits: u64| math::bloom_fpr_of_any_size(bits, 1, probes);
        let rate =
            |bits: u64, ones: u64, words: &[u64]| rate(words, bits, probes, ones).value.max(least(bits));
        let fits = |bits, ones, words: Option<&[u64]>| match words {
            Some(words) => rate(bits, ones, words) <= asked,
            None => math::fpr_from_fill(ones as f64 / bits as f64, probes).max(least(bits)) <= asked,
        };
        let factor = largest_fold(self.paths, self.words.as_slice(), bits, self.ones(), &fits)?;
        if factor == 1 {
            let least = self.fold(math::prime_factors(bits).first().copied().unwrap_or(1))?;
            let (factor, fpr) =
                (bits / least.size.bits, rate(least.size.bits, least.ones(), least.words.as_slice()));
            return Err(FoldError::NoFold { bits, asked, factor, fpr });
        }
        let mut folded = self.fold(factor)?;
        let bits = folded.size.bits;
        let capacity = math::bloom_capacity_for_probes(bits, asked, probes).max(1);
        let fpr = math::bloom_fpr_of_any_size(bits, capacity, probes);
        folded.size = BloomSize { capacity, fpr_asked: asked, fpr, ..folded.size };
        Ok(folded)
    }

    /// Intersection: afterwards this filter still holds every key that is in both. Its rate is at
    /// most the lower of the two, and at least that of a fresh filter of the common keys.
    ///
    /// That is the rate for keys that are in neither. A key of one filter alone has its bits there, and is admitted as often
    /// as the other filter admits an absent one.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    pub fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        let common = match (self.intersection, other.intersection) {
            (None, None) => self.estimated_intersection_len(other)?,
            _ => f64::NAN,
        };
        self.combine(other, |ours, theirs| ours & theirs)?;
        self.intersection = Intersection::of(common, self.ones());
        Ok(())
    }

    fn combine(&mut self, other: &Self, bits: impl Fn(u64, u64) -> u64) -> Result<(), Mismatch> {
        self.must_match(other)?;
        let mut ones = 0;
        for (ours, theirs) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *ours = bits(*ours, *theirs);
            ones += u64::from(ours.count_ones());
        }
        self.ones = Some(ones);
        self.inserted = None;
        let capacity = self.size.capacity.max(other.size.capacity);
        let fpr = math::bloom_fpr_of_any_size(self.size.bits, capacity, self.size.probes);
        self.size = BloomSize { capacity, fpr, ..self.size };
        Ok(())
    }

    /// How many different keys are probably in this filter or in the other, without merging them.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn estimated_union_len(&self, other: &Self) -> Result<f64, Mismatch> {
        Ok(math::union_len(self.size.bits, self.ones_of_union(other)?, self.size.probes))
    }

    /// How many different keys are probably in both. Taken from the three sizes, and never from the
    /// common bits, which chance adds to.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn estimated_intersection_len(&self, other: &Self) -> Result<f64, Mismatch> {
        let union = self.ones_of_union(other)?;
        Ok(math::intersection_len(self.size.bits, self.ones(), other.ones(), union, self.size.probes))
    }

    fn ones_of_union(&self, other: &Self) -> Result<u64, Mismatch> {
        self.must_match(other)?;
        let pairs = self.words.as_slice().iter().zip(other.words.as_slice());
        Ok(pairs.map(|(ours, theirs)| u64::from((ours | theirs).count_ones())).sum())
    }

    /// Measures the false-positive rate with keys that are known to be absent.
    pub fn measure_fpr<K: Key>(&self, absent: impl IntoIterator<Item = K>) -> Measured {
        let mut measured = Measured { trials: 0, hits: 0 };
        for key in absent {
            measured.trials += 1;
            measured.hits += u64::from(self.contains(key));
        }
        measured
    }

    /// The filter as it stands in a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        family::encode(self, Summing::Payload).to_vec()
    }

    /// A filter from the bytes of a file.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        family::from_bytes(bytes, None, &FAMILY, Self::decode)
    }

    /// A keyed filter from the bytes of a file.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with them, or that the secret is another one.
    pub fn from_bytes_keyed(bytes: &[u8], secret: &Secret) -> Result<Self, DecodeError> {
        family::from_bytes(bytes, Some(secret), &FAMILY, Self::decode)
    }

    fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        header.must_probe_by(Probing::Scaled)?;
        let mut fields = Fields::new(&header.params);
        let bits = fields.u64("bits")?;
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(DecodeError::Value { field: "bits", found: bits });
        }
        let probes = fields.u32("probes")?;
        if !(1..=math::MAX_PROBES).contains(&probes) {
            return Err(DecodeError::Value { field: "probes", found: probes.into() });
        }
        fields.zero_u32("padding of the parameters")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        fields.end("parameters", header.params.len())?;
        header.must_be_hashed(hashing)?;

        let expected = words_for(bits) * 8;
        if header.payload.length != expected {
            let found = header.payload.length;
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let words = Words::from_bytes(payload)
            .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
        if !tail_is_clear(&words, bits) {
            return Err(DecodeError::Padding { field: "end of the payload" });
        }
        let ones = match frame.header.ones {
            // Counted only when the whole payload is read anyway, so that a large file opens by its header.
            Some(ones) if ones > bits || (frame.verified && ones != words.count_ones()) => {
                return Err(DecodeError::Value { field: "set bits", found: ones });
            }
            Some(ones) => ones,
            None => words.count_ones(),
        };
        let fpr = math::bloom_fpr_of_any_size(bits, capacity, probes);
        let size = BloomSize { capacity, bits, probes, fpr_asked, fpr };
        let intersection = Intersection::read(frame.header.intersection, ones);
        Ok(Self { intersection, ..Self::of(words, size, hashing, frame.header.inserted, Some(ones)) })
    }
}

/// The false-positive rate of `bits` bits, of which `ones` are set.
fn rate(words: &[u64], bits: u64, probes: u32, ones: u64) -> Rate {
    rates::scaled(bits, probes, ones, |place| words[(place / 64) as usize] >> (place % 64) & 1 == 1)
}

/// No bit behind the last one may be set: equality, counts and merges read whole words.
fn tail_is_clear(words: &Words, bits: u64) -> bool {
    bits.is_multiple_of(64) || words.as_slice().last().is_none_or(|last| last >> (bits % 64) == 0)
}

/// Bits that were folded by a factor which divides their number.
fn folded(words: &[u64], bits: u64, factor: u64) -> Result<Words, FoldError> {
    resized(words, bits, bits / factor).map_err(|OutOfMemory { bytes }| FoldError::Memory { bytes })
}

/// The largest of the divisors of `bits` by which they can be folded so that `fits` says so, of the number of bits, of ones
/// and of the words, where these are at hand. 1 fits.
///
/// A fold by a multiple of `c` is a fold of the fold by `c` and never has a smaller share of ones, so
/// what does not fit by `c` does not by any multiple. But a larger factor that is no multiple may fit
/// where a smaller one does not: a filter that was spread by 10 folds by 10 for nothing, and not by 3.
/// So the search starts where the share of ones puts the answer, goes down to one that fits, and then up
/// past every multiple of those that did not. In a large filter a sample refuses what clearly does not
/// fit: 1.1 GiB with 2e7 keys, folded by 48, took 3.6 s with it and 26 s without, on one core.
fn largest_fold(
    paths: Paths,
    words: &[u64],
    bits: u64,
    ones: u64,
    fits: &impl Fn(u64, u64, Option<&[u64]>) -> bool,
) -> Result<u64, FoldError> {
    let divisors = math::divisors(bits);
    let expected = |to: u64| math::resized_fill(bits, to, ones as f64 / bits as f64) * to as f64;
    let fits_by_fill = |&factor: &u64| fits(bits / factor, whole(expected(bits / factor)), None);
    let start = divisors.partition_point(fits_by_fill);
    let (lower, upper) = divisors.split_at(start);
    let (mut largest, mut refused) = (1, Vec::new());
    for &factor in lower.iter().rev().chain(upper) {
        if factor > largest && !refused.iter().any(|&other| factor.is_multiple_of(other)) {
            let to = bits / factor;
            let has_room = fits(to, least_ones(paths, words, bits, factor)?, None);
            let folded = if has_room { Some(folded(words, bits, factor)?) } else { None };
            if folded.is_some_and(|folded| fits(to, folded.count_ones(), Some(folded.as_slice()))) {
                largest = factor;
            } else {
                refused.push(factor);
            }
        }
    }
    Ok(largest)
}

/// A number of ones that a fold will almost certainly have, from the first words of a large filter: 8
/// standard deviations below what those say. (Bits of keys are the same everywhere. Who crafts a file that
/// is full in front and empty behind gets a fold that is larger than it had to be.)
fn least_ones(paths: Paths, words: &[u64], bits: u64, factor: u64) -> Result<u64, FoldError> {
    /// 8 MiB: so many bits tell a share of ones to 4 digits.
    const SAMPLE: usize = 1 << 20;
    let words_looked_at = paths.sample_words(SAMPLE);
    if words.len() <= 2 * words_looked_at {
        return Ok(0);
    }
    let sample = folded(&words[..words_looked_at], bits, factor)?;
    let ends = index((words_looked_at as u64).div_ceil(factor));
    let ones: u64 = sample.as_slice()[..ends].iter().map(|word| u64::from(word.count_ones())).sum();
    let of = words_looked_at as f64 * 64.0 / factor as f64;
    let share = (ones as f64 / of).min(1.0);
    let least = share - 8.0 * libm::sqrt(share * (1.0 - share) / of) - 1.0 / of;
    Ok(whole(least * (bits / factor) as f64))
}

/// A measured false-positive rate, with the numbers behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Absent keys that were asked for.
    pub trials: u64,
    /// Those that were admitted.
    pub hits: u64,
}

impl Measured {
    /// The rate; `None` if nothing was asked.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        (self.trials > 0).then(|| self.hits as f64 / self.trials as f64)
    }
}

impl Filter for Bloom {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.single.contains(self.words.as_slice(), self.size.bits, digest)
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        self.ask_all(digests, copy, hits);
    }
}

impl Insert for Bloom {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        Ok(self.put(digest))
    }

    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        outcomes.reserve(digests.len());
        self.put_all(digests, copy, |outcome| outcomes.push(outcome));
        Ok(())
    }
}

impl Merge for Bloom {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.merge(family::same_type(self, other)?)
    }
}

impl Fold for Bloom {
    fn fold_to(&self, fpr: f64) -> Result<Box<dyn AnyFilter>, FoldError> {
        Ok(Box::new(self.fold_to(fpr)?))
    }
}

impl Intersect for Bloom {
    fn intersect_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.intersect(family::same_type(self, other)?)
    }
}

impl AnyFilter for Bloom {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    fn report(&self) -> Report {
        let rate = self.rate();
        let estimated_len = self.estimated_len();
        Report {
            capacity: self.size.capacity,
            inserted: self.inserted,
            estimated_len: estimated_len.is_finite().then_some(estimated_len),
            bits: self.size.bits,
            probes: Some(self.size.probes),
            fill: self.fill(),
            fpr_asked: self.size.fpr_asked,
            fpr_now: rate.value,
            fpr_interval: rate.interval(),
            fpr_at_capacity: self.size.fpr,
            guarantee: Guarantee::NoFalseNegatives,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::Scaled);
        let ones = self.ones();
        out.counts(self.inserted, ones);
        out.intersection(Intersection::stored(self.intersection, ones));
        let BloomSize { capacity, bits, probes, fpr_asked, .. } = self.size;
        out.params().u64(bits).u32(probes).u32(0).u64(capacity).f64(fpr_asked);
        out.words(&self.words);
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.contains_all(keys, hits);
    }

    fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Error> {
        let hashing = self.hashing;
        outcomes.reserve(keys.len());
        let hash = |keys: &[&[u8]], digests: &mut [Digest]| Key::digests(keys, &hashing, digests);
        self.put_all(keys, hash, |outcome| outcomes.push(outcome));
        Ok(())
    }

    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: Paths) {
        (self.single, self.paths) = (Single::of(self.size.probes, paths), paths);
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }
    fn as_intersect(&mut self) -> Option<&mut dyn Intersect> {
        Some(self)
    }
    fn as_fold(&self) -> Option<&dyn Fold> {
        Some(self)
    }
}

impl<K: Key> Extend<K> for Bloom {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| {
            self.insert(key);
        });
    }
}

/// A filter for exactly these keys, at 1%. The digests are held until their number is known.
///
/// # Panics
/// If there is no memory for the filter.
impl<K: Key> FromIterator<K> for Bloom {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let hashing = Hashing::default();
        let digests: Vec<Digest> = keys.into_iter().map(|key| hashing.digest_of(key)).collect();
        let capacity = (digests.len() as u64).max(1);
        let mut bloom = Self::new(capacity, DEFAULT_FPR).expect("memory for the filter");
        for digest in digests {
            bloom.put(digest);
        }
        bloom
    }
}

/// A Bloom filter that many threads fill at once, without locks and without losing a bit.
///
/// A key inserted by one thread is seen by another as soon as something orders the two (a join, a
/// channel, a lock). Two threads that insert the same new key at the same moment may both be told
/// [`Insertion::New`].
///
/// ```
/// use mayhap::AtomicBloom;
///
/// let seen = AtomicBloom::new(1000, 0.01)?;
/// std::thread::scope(|scope| {
///     for thread in 0..4u64 {
///         let seen = &seen;
///         scope.spawn(move || (0..100).for_each(|i| { seen.insert(100 * thread + i); }));
///     }
/// });
/// let seen = seen.into_bloom();
/// assert!((0..400u64).all(|key| seen.contains(key)));
/// # Ok::<(), mayhap::Error>(())
/// ```
#[derive(Debug)]
pub struct AtomicBloom {
    words: AtomicWords,
    size: BloomSize,
    hashing: Hashing,
    /// Insert calls, and whether they are known at all.
    inserted: AtomicU64,
    counted: bool,
    intersection: Option<Intersection>,
    paths: Paths,
}

impl AtomicBloom {
    /// An empty filter for so many keys at such a false-positive rate.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty filter of whatever was asked for.
    ///
    /// # Errors
    /// As for [`new`](AtomicBloom::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let (size, hashing) = (spec.bloom()?, spec.hashed()?);
        let words = AtomicWords::zeroed(words_for(size.bits))?;
        let (inserted, intersection, paths) = (AtomicU64::new(0), None, spec.paths);
        Ok(Self { words, size, hashing, inserted, counted: true, intersection, paths })
    }

    /// Inserts a key.
    #[inline]
    pub fn insert(&self, key: impl Key) -> Insertion {
        self.inserted.fetch_add(1, Ordering::Relaxed);
        self.set(self.hashing.digest_of(key))
    }

    #[inline]
    fn set(&self, digest: Digest) -> Insertion {
        let mut changed = false;
        for position in positions(digest, self.size.probes, self.size.bits) {
            changed |= self.words.set(position);
        }
        Insertion::new_if(changed)
    }

    /// Inserts many keys by their digests.
    pub fn insert_digests(&self, digests: &[Digest]) {
        let (words, BloomSize { bits, probes, .. }) = (self.words.as_slice(), self.size);
        let ahead = |_: &(), digest: Digest| {
            positions(digest, probes, bits).for_each(|position| prefetch(words, index(position / 64)));
        };
        let far = probes::is_far(self.paths, words);
        pipeline(&mut (), digests, copy, far, ahead, |(), digests| {
            digests.iter().for_each(|&digest| {
                self.set(digest);
            });
        });
        self.inserted.fetch_add(digests.len() as u64, Ordering::Relaxed);
    }

    /// Whether a key is perhaps in. `false` is certain for keys whose insert happened before.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        let digest = self.hashing.digest_of(key);
        positions(digest, self.size.probes, self.size.bits).all(|position| self.words.get(position))
    }

    /// How keys are hashed.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// The same filter for one thread. The bits stay where they are.
    #[must_use]
    pub fn into_bloom(self) -> Bloom {
        let inserted = self.counted.then(|| self.inserted.into_inner());
        let bloom = Bloom::of(self.words.into(), self.size, self.hashing, inserted, None);
        Bloom { intersection: self.intersection, ..bloom }.taking(self.paths)
    }
}

impl From<Bloom> for AtomicBloom {
    fn from(bloom: Bloom) -> Self {
        let Bloom { words, size, hashing, inserted, intersection, paths, .. } = bloom;
        let (words, counted, inserted) = (words.into(), inserted.is_some(), inserted.unwrap_or(0).into());
        Self { words, size, hashing, inserted, counted, intersection, paths }
    }
}

impl SharedInsert for AtomicBloom {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    fn insert_batch(&self, digests: &[Digest]) {
        self.insert_digests(digests);
    }

    fn finish(self: Box<Self>) -> Box<dyn AnyFilter> {
        Box::new(self.into_bloom())
    }
}

/// Has threads insert keys into a filter under construction; as [`in_parallel`] says.
#[cfg(feature = "std")]
fn fill<K: Key + Sync>(
    paths: Paths,
    shared: &impl SharedInsert,
    keys: &[K],
    threads: usize,
) -> Option<std::thread::Result<()>> {
    let hashing = shared.hashing();
    let work = |digests: &mut Vec<Digest>, keys: &[K]| {
        digests.resize(keys.len(), Digest::default());
        K::digests(keys, &hashing, digests);
        shared.insert_batch(digests);
    };
    in_parallel(paths, keys, threads, Vec::new, work).map(|(_, panic)| panic)
}

/// Things that threads work with, one at a time each.
#[cfg(feature = "std")]
struct Pool<T>(std::sync::Mutex<PoolState<T>>);

#[cfg(feature = "std")]
struct PoolState<T> {
    idle: Vec<T>,
    /// How many threads have one.
    taken: usize,
}

#[cfg(feature = "std")]
impl<T> Pool<T> {
    fn of(idle: Vec<T>) -> Self {
        Self(std::sync::Mutex::new(PoolState { idle, taken: 0 }))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, PoolState<T>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// An idle one, or a new one; `None` if there is no memory for a new one.
    fn take(&self, new: impl Fn() -> Option<T>) -> Option<Taken<'_, T>> {
        let mut state = self.state();
        let own = match state.idle.pop() {
            Some(idle) => idle,
            None => {
                drop(state);
                let own = new()?;
                state = self.state();
                own
            }
        };
        state.taken += 1;
        Some(Taken { own: Some(own), pool: self })
    }

    /// The same, but without memory it waits for the next one that becomes idle. `None` if no thread has one: none would
    /// ever become idle.
    fn wait(&self, new: impl Fn() -> Option<T>) -> Option<Taken<'_, T>> {
        loop {
            let taken = self.take(&new);
            if taken.is_some() || self.is_empty() {
                return taken;
            }
            std::thread::yield_now();
        }
    }

    /// Whether there is none, neither here nor with a thread.
    fn is_empty(&self) -> bool {
        let state = self.state();
        state.idle.is_empty() && state.taken == 0
    }

    fn into_idle(self) -> Vec<T> {
        self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).idle
    }
}

/// One that a thread has taken out of a pool. It is idle again when this is dropped, also by a panic.
#[cfg(feature = "std")]
struct Taken<'a, T> {
    /// `None` only while this is dropped.
    own: Option<T>,
    pool: &'a Pool<T>,
}

#[cfg(feature = "std")]
impl<T> Taken<'_, T> {
    fn get(&mut self) -> &mut T {
        self.own.as_mut().expect("there until the end")
    }
}

#[cfg(feature = "std")]
impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        state.taken -= 1;
        state.idle.extend(self.own.take());
    }
}

/// Private copies of one small filter, merged in the end: no thread waits for another's cache lines.
#[cfg(feature = "std")]
struct PrivateBlooms {
    size: BloomSize,
    hashing: Hashing,
    paths: Paths,
    copies: Pool<Bloom>,
}

#[cfg(feature = "std")]
impl PrivateBlooms {
    fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        Ok(Self::of(Bloom::from_spec(spec)?))
    }

    fn of(first: Bloom) -> Self {
        let (size, hashing, paths) = (first.size, first.hashing, first.paths);
        Self { size, hashing, paths, copies: Pool::of(alloc::vec![first]) }
    }

    fn joined(self) -> Bloom {
        let mut copies = self.copies.into_idle().into_iter();
        let mut whole = copies.next().expect("the first copy is made with the pool");
        for copy in copies {
            let inserted =
                whole.inserted.zip(copy.inserted).map(|(ours, theirs)| ours.saturating_add(theirs));
            whole.merge(&copy).expect("copies agree");
            whole.inserted = inserted;
        }
        whole
    }
}

#[cfg(feature = "std")]
impl SharedInsert for PrivateBlooms {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    fn insert_batch(&self, digests: &[Digest]) {
        let empty = || {
            let words = Words::zeroed(words_for(self.size.bits)).ok()?;
            Some(Bloom::of(words, self.size, self.hashing, Some(0), Some(0)).taking(self.paths))
        };
        let mut bloom = self.copies.wait(empty).expect("the first copy is made with the pool");
        bloom.get().put_all(digests, copy, |_| {});
    }

    fn finish(self: Box<Self>) -> Box<dyn AnyFilter> {
        Box::new(self.joined())
    }
}

/// A large filter whose regions threads write one at a time, with what each has gathered for them.
#[cfg(feature = "std")]
struct ScatteredBloom {
    regions: Parts,
    /// Without its words, which are in the regions.
    filter: Bloom,
    gathered: Pool<Scatter>,
    inserted: AtomicU64,
    fresh: AtomicU64,
}

#[cfg(feature = "std")]
impl ScatteredBloom {
    fn of(mut filter: Bloom) -> Self {
        let regions = Parts::of(core::mem::take(&mut filter.words), region_words(filter.paths));
        let gathered = Pool::of(Vec::new());
        Self { regions, filter, gathered, inserted: AtomicU64::new(0), fresh: AtomicU64::new(0) }
    }

    fn set(&self, region: usize, positions: &[u32]) {
        let fresh = self.regions.with(region, |words| set_in_region(self.filter.paths, words, positions));
        self.fresh.fetch_add(fresh, Ordering::Relaxed);
    }

    fn joined(mut self) -> Bloom {
        let gathered = core::mem::replace(&mut self.gathered, Pool::of(Vec::new()));
        for mut scatter in gathered.into_idle() {
            scatter.drain(|region, positions| self.set(region, positions));
        }
        let (calls, fresh) = (self.inserted.into_inner(), self.fresh.into_inner());
        let inserted = self.filter.inserted.map(|before| before.saturating_add(calls));
        let ones = self.filter.ones.map(|before| before + fresh);
        Bloom { words: self.regions.joined(), inserted, ones, ..self.filter }
    }
}

#[cfg(feature = "std")]
impl SharedInsert for ScatteredBloom {
    fn hashing(&self) -> Hashing {
        self.filter.hashing
    }

    fn insert_batch(&self, digests: &[Digest]) {
        let BloomSize { bits, probes, .. } = self.filter.size;
        let all = digests.iter().flat_map(|&digest| positions(digest, probes, bits));
        match self.gathered.take(|| Scatter::new(self.filter.paths, bits)) {
            Some(mut taken) => {
                let scatter = taken.get();
                all.for_each(|position| scatter.push(position, |region, some| self.set(region, some)));
            }
            // No memory to gather in, and perhaps no other thread that has some: each position by itself.
            None => {
                let words = region_words(self.filter.paths) as u64;
                all.for_each(|position| self.set(index(position / 64 / words), &[low_u32(position)]));
            }
        }
        self.inserted.fetch_add(digests.len() as u64, Ordering::Relaxed);
    }

    fn finish(self: Box<Self>) -> Box<dyn AnyFilter> {
        Box::new(self.joined())
    }
}

#[cfg(feature = "serde")]
mod serde_forms {
    use alloc::string::String;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::ser::{Error as _, SerializeStruct};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::*;

    /// For people: an object whose words are base64 of their little-endian bytes. For machines: the
    /// bytes of a file. A keyed filter has no serde form, since reading it back takes the secret: use
    /// [`Bloom::to_bytes`] and [`Bloom::from_bytes_keyed`].
    impl Serialize for Bloom {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let Some(seed) = self.hashing.seed() else {
                return Err(S::Error::custom("a keyed filter has no serde form; use to_bytes"));
            };
            if !serializer.is_human_readable() {
                return serializer.serialize_bytes(&self.to_bytes());
            }
            let mut object = serializer.serialize_struct("Bloom", 9)?;
            object.serialize_field("family", FAMILY.name)?;
            object.serialize_field("capacity", &self.size.capacity)?;
            object.serialize_field("fpr", &self.size.fpr_asked)?;
            object.serialize_field("bits", &self.size.bits)?;
            object.serialize_field("probes", &self.size.probes)?;
            object.serialize_field("hash", self.hashing.name())?;
            object.serialize_field("seed", &seed)?;
            object.serialize_field("inserted", &self.inserted)?;
            object.serialize_field("words", &STANDARD.encode(self.words.to_le_bytes()))?;
            object.end()
        }
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Object {
        family: String,
        capacity: u64,
        fpr: f64,
        bits: u64,
        probes: u32,
        hash: String,
        seed: u64,
        inserted: Option<u64>,
        words: String,
    }

    impl Object {
        fn into_bloom(self) -> Result<Bloom, &'static str> {
            let hashing = Hashing::Xxh3 { seed: self.seed };
            if self.family != FAMILY.name || self.hash != hashing.name() {
                return Err("not a bloom filter hashed by xxh3-128");
            }
            let bytes = STANDARD.decode(&self.words).map_err(|_| "words are not base64")?;
            let words = Words::from_bytes(bytes.into()).ok_or("words are not whole words")?;
            let mut bloom = Bloom::from_words(words, self.bits, self.probes)
                .map_err(|_| "bits, probes and words do not fit together")?;
            if !(0.0..=1.0).contains(&self.fpr) {
                return Err("fpr is not a rate");
            }
            let fpr = math::bloom_fpr_of_any_size(self.bits, self.capacity, self.probes);
            bloom.size = BloomSize { capacity: self.capacity, fpr_asked: self.fpr, fpr, ..bloom.size };
            bloom.hashing = hashing;
            bloom.inserted = self.inserted;
            Ok(bloom)
        }
    }

    impl<'de> Deserialize<'de> for Bloom {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            if deserializer.is_human_readable() {
                return Object::deserialize(deserializer)?.into_bloom().map_err(D::Error::custom);
            }
            struct FileBytes;
            impl serde::de::Visitor<'_> for FileBytes {
                type Value = Bloom;
                fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                    f.write_str("the bytes of a mayhap file")
                }
                fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bloom, E> {
                    Bloom::from_bytes(bytes).map_err(E::custom)
                }
            }
            deserializer.deserialize_bytes(FileBytes)
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    /// What comes out, unless it takes a minute. The thread is not joined, since it may wait for ever.
    fn in_a_minute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, finished) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(work()));
        finished
            .recv_timeout(std::time::Duration::from_secs(60))
            .expect("a thread that does not wait for ever")
    }

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn a_pool_without_memory_for_its_first_does_not_wait_for_ever() {
        assert!(in_a_minute(|| Pool::<u8>::of(Vec::new()).wait(|| None).is_none()));
    }

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn a_pool_without_memory_for_a_second_hands_out_the_first_one_by_one() {
        let pool = Pool::of(alloc::vec![0]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| *pool.wait(|| None).unwrap().get() += 1));
            }
        });
        assert_eq!(pool.into_idle(), [400]);
    }

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn what_a_thread_had_when_it_panicked_is_idle_again() {
        let pool = Pool::of(alloc::vec![1]);
        let panicking = std::panic::AssertUnwindSafe(|| {
            let mut one = pool.wait(|| None).unwrap();
            *one.get() = 2;
            panic!("on purpose");
        });
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!(*pool.wait(|| None).unwrap().get(), 2);
    }

    #[test]
    #[cfg(feature = "internals")]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn threads_without_memory_to_gather_in_insert_all_the_same() {
        use crate::paths::Switches;
        const REFUSED: Switches = Switches {
            prefetch_from_bytes: None,
            gather_from_bytes: Some(0),
            region_shift: Some(7),
            // More than half of all addresses: no allocator grants that.
            gather_bytes: Some(usize::MAX),
            run_keys: Some(50),
            shard_bits: None,
            sample_words: None,
            portable: false,
        };
        let digests: Vec<Digest> = (0..2000u64).map(|key| Hashing::default().digest_of(key)).collect();
        let mut spec = Spec::sized(2000, 0.01);
        let mut alone = Bloom::from_spec(&spec).unwrap();
        alone.put_all(&digests, copy, |_| {});
        spec.paths = Paths::of(&REFUSED);
        let shared = ScatteredBloom::of(Bloom::from_spec(&spec).unwrap());
        assert!(Scatter::new(spec.paths, shared.filter.size.bits).is_none());
        let shared = in_a_minute(move || {
            digests.chunks(100).for_each(|digests| shared.insert_batch(digests));
            shared.joined()
        });
        assert!(shared == alone && shared.inserted == Some(2000) && shared.ones() == alone.ones());
    }
}
