//! Counting Bloom filter: a Bloom filter whose keys can leave again.
//!
//! **Answers** "was this key inserted and not removed since?"
//! **Promise** a key that is in is never denied, as long as only keys are removed that are in; an absent key is
//! admitted with the asked rate at capacity.
//! **Not for** keys that are inserted over and over (a counter that reaches its top stays there: see
//! [`Spectral`](crate::Spectral)); the last factor of four in space.
//!
//! ```text
//!   key ─▶ digest ─▶ different positions     counters  0 2 0 0 1 0 0 0 1 0 0 3 0
//!                    1, 4, 11                            ▲     ▲             ▲      none is 0: perhaps
//!                                            remove      1     0             2
//! ```
//!
//! | operation | cache lines                  | can fail |
//! |-----------|------------------------------|----------|
//! | contains  | `probes`; 2 for most misses  | no       |
//! | insert    | `probes`                     | no       |
//! | remove    | `probes`                     | no       |
//! | count     | `probes`                     | no       |
//! | merge     | all, in order                | mismatch |
//!
//! A counter that is at its top is never lowered, because nobody knows how often it was raised: its keys cannot
//! leave, the rate rises a little, and no key is lost. [`saturated`](Counting::saturated) tells how many there are.
//! With 4 bits and different keys there are none: for a million keys at 1% the chance that there is one is 3.3e-8
//! ([`math::counters_at_least`]).
//!
//! Removing a key that is not in is refused where a counter of 0 proves its absence, and then changes nothing. With
//! the chance of a false positive there is no such counter; then counters of other keys are lowered, and one of
//! those may be denied later. Remove only what is in.
//!
//! The count of a key is its lowest counter: at least as often as it is in, up to the
//! [ceiling](crate::Count::ceiling) of 15 with 4 bits.
//!
//! **Paper** Fan, Cao, Almeida, Broder, *Summary Cache: A Scalable Wide-Area Web Cache Sharing Protocol*, 2000.
//! **We differ** in that the different positions of a key are taken, so that two probes that meet do not raise a
//! counter twice.
//!
//! ```
//! use mayhap::Counting;
//!
//! let mut cached = Counting::new(1_000_000, 0.01)?;
//! cached.insert("https://example.org/");
//! let summary = cached.to_bloom()?; // a quarter of the size, to be sent to others
//! assert!(summary.contains("https://example.org/"));
//! assert!(cached.remove("https://example.org/").is_removed());
//! assert!(!cached.contains("https://example.org/")); // certain: nothing else is in
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::batch::{copy, pipeline};
use crate::bits::{Bytes, Counters, CountersMut, CountersRef, Width, Words, words_for};
use crate::error::{DecodeError, Error, Full, Mismatch, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, CounterReport, Family, Guarantee, Make, Report};
use crate::filters::bloom::Bloom;
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::math;
use crate::paths::Paths;
use crate::probing::{Probing, positions, with_distinct};
use crate::rates::{self, Rate};
use crate::spec::{CountingSize, MAX_BITS, MAX_CAPACITY, Plan, Spec};
use crate::traits::{Count, Filter, Insert, Insertion, Merge, Removal, Remove};
use crate::wire::{Fields, Frame, Summing, Writer};

/// The family `counting`.
pub static FAMILY: Family = Family {
    id: 6,
    name: "counting",
    summary: "keys can be removed: a counter for each bit",
    can: Capabilities {
        inserts: true,
        removes: true,
        counts: true,
        labels: false,
        merges: true,
        intersects: false,
        subtracts: false,
        folds: false,
        grows: false,
        exact: false,
    },
    cost: Cost { query: "O(k)", insert: "O(k)", space: "5.77 n log2(1/p)" },
    make: Make::Empty(|spec| Ok(Box::new(Counting::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(Counting::decode(frame, hashing)?)),
    // A remove that dies half-way and is made again would lower counters twice, under keys that are in.
    in_place: false,
};

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let size = spec.counting()?;
    let CountingSize { capacity, probes, fpr_asked, fpr, .. } = size;
    Ok(Plan { capacity, fpr_asked, fpr, bits: bits(&size), probes: Some(probes) })
}

fn bits(size: &CountingSize) -> u64 {
    size.cells * u64::from(size.counter_bits)
}

/// Filters smaller than this stay in the second-level cache, where prefetching costs more than it
/// brings.
const PREFETCH_FROM_BYTES: usize = 256 * 1024;

/// A counting Bloom filter.
#[derive(Clone, Debug)]
pub struct Counting {
    counters: Counters,
    size: CountingSize,
    hashing: Hashing,
    paths: Paths,
    /// Insert calls; unknown after a merge.
    inserted: Option<u64>,
    /// Counters above 0, kept up to date so that the fill costs nothing to know.
    occupied: u64,
}

/// Two filters are equal if they give the same answer to every key, now and after the same changes: same size,
/// hashing and counters.
impl PartialEq for Counting {
    fn eq(&self, other: &Self) -> bool {
        self.must_match(other).is_ok() && self.counters == other.counters
    }
}

impl Counting {
    /// An empty filter with counters of 4 bits for so many keys at such a false-positive rate.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty filter of whatever was asked for. Bits are those of all counters together.
    ///
    /// # Errors
    /// As for [`new`](Counting::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let (size, hashing) = (spec.counting()?, spec.hashed()?);
        let counters = Counters::zeroed(size.cells, Width::Fixed(size.counter_bits))?;
        Ok(Self { counters, size, hashing, paths: spec.paths, inserted: Some(0), occupied: 0 })
    }

    /// Inserts a key, once more if it is in.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Insertion {
        let digest = self.hashing.digest_of(key);
        self.put(digest)
    }

    /// Removes a key, once if it is in several times. A key whose counters are all saturated is
    /// [stuck](Removal::Stuck): how often it is in is unknown.
    ///
    /// A key that was never inserted must not be removed: if all of its counters are above 0 by chance, others
    /// lose theirs.
    ///
    /// ```
    /// use mayhap::{Counting, Removal};
    ///
    /// let mut set = Counting::new(100, 0.01)?;
    /// set.insert("twice");
    /// set.insert("twice");
    /// assert!(set.remove("twice").is_removed() && set.contains("twice"));
    /// assert!(set.remove("twice").is_removed() && !set.contains("twice"));
    /// assert_eq!(set.remove("twice"), Removal::Absent);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    #[inline]
    pub fn remove(&mut self, key: impl Key) -> Removal {
        let digest = self.hashing.digest_of(key);
        self.remove_digest(digest)
    }

    /// Whether a key is perhaps in. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_digest(self.hashing.digest_of(key))
    }

    /// How often a key is in, perhaps: at least so often as it is, up to the largest value of a counter.
    #[must_use]
    #[inline]
    pub fn count(&self, key: impl Key) -> u64 {
        self.count_digest(self.hashing.digest_of(key))
    }

    #[inline]
    fn put(&mut self, digest: Digest) -> Insertion {
        let fresh = raise(&mut self.counters.view_mut(), digest, &self.size);
        self.occupied += fresh;
        // A crafted file may claim any number of calls: they end at the top instead of going round.
        self.inserted = self.inserted.map(|calls| calls.saturating_add(1));
        Insertion::new_if(fresh > 0)
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    pub fn contains_all<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.ask(keys, |keys, digests| K::digests(keys, &hashing, digests), hits);
    }

    /// Asks how often many keys are in, several at a time in flight; appends one count each.
    pub fn count_all<K: Key>(&self, keys: &[K], counts: &mut Vec<u64>) {
        let hashing = self.hashing;
        self.tell(keys, |keys, digests| Key::digests(keys, &hashing, digests), counts);
    }

    /// Inserts many keys, several at a time in flight.
    pub fn insert_all<K: Key>(&mut self, keys: &[K]) {
        let hashing = self.hashing;
        self.put_all(keys, |keys, digests| K::digests(keys, &hashing, digests), |_| {});
    }

    /// Removes many keys, several at a time in flight; appends one outcome each. What
    /// [`remove`](Counting::remove) says of absent keys holds here.
    pub fn remove_all<K: Key>(&mut self, keys: &[K], removed: &mut Vec<Removal>) {
        let hashing = self.hashing;
        self.take_all(keys, |keys, digests| K::digests(keys, &hashing, digests), removed);
    }

    #[inline(always)]
    fn ask<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), hits: &mut Vec<bool>) {
        hits.reserve(keys.len());
        let CountingSize { cells, probes, .. } = self.size;
        read_ahead(self.paths, self.counters.view(), (cells, probes), keys, hash, |counters, digest| {
            hits.push(!positions(digest, probes, cells).any(|place| counters.is_zero(place)));
        });
    }

    #[inline(always)]
    fn tell<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), counts: &mut Vec<u64>) {
        let CountingSize { cells, probes, .. } = self.size;
        read_ahead(self.paths, self.counters.view(), (cells, probes), keys, hash, |counters, digest| {
            counts.push(counters.least(positions(digest, probes, cells)));
        });
    }

    #[inline(always)]
    fn put_all<K>(
        &mut self,
        keys: &[K],
        hash: impl Fn(&[K], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) {
        let (size, mut fresh) = (self.size, 0);
        let places = (size.cells, size.probes);
        write_ahead(self.paths, self.counters.view_mut(), places, keys, hash, |counters, digest| {
            let raised = raise(counters, digest, &size);
            fresh += raised;
            told(Insertion::new_if(raised > 0));
        });
        self.occupied += fresh;
        self.inserted = self.inserted.map(|calls| calls.saturating_add(keys.len() as u64));
    }

    #[inline(always)]
    fn take_all<K>(&mut self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), removed: &mut Vec<Removal>) {
        let (size, mut emptied) = (self.size, 0);
        removed.reserve(keys.len());
        let (paths, places) = (self.paths, (size.cells, size.probes));
        write_ahead(paths, self.counters.view_mut(), places, keys, hash, |counters, digest| {
            removed.push(lower(counters, digest, &size, &mut emptied));
        });
        self.lost(emptied);
    }

    fn lost(&mut self, emptied: u64) {
        // A header that was not compared with its payload may have claimed fewer.
        self.occupied = self.occupied.saturating_sub(emptied);
    }

    /// Forgets all keys, and that counters were saturated.
    pub fn clear(&mut self) {
        self.counters.clear();
        self.occupied = 0;
        self.inserted = Some(0);
    }

    /// The Bloom filter of the keys that are in: the one that they would have made, with a bit for each counter,
    /// the same probes and the same hashing. A saturated counter is a bit that stays set.
    ///
    /// # Errors
    /// [`SpecError::Memory`] if there is none for it.
    pub fn to_bloom(&self) -> Result<Bloom, SpecError> {
        let CountingSize { capacity, cells, probes, .. } = self.size;
        let spec = Spec::new()
            // A crafted file may claim any capacity.
            .with_capacity(capacity.clamp(1, MAX_CAPACITY))
            .with_bits(cells)
            .with_probes(probes)
            .with_hashing(self.hashing);
        let (size, counters) = (spec.bloom()?, self.counters.view());
        let mut words = Words::zeroed(words_for(cells))?;
        for (word, start) in words.as_mut_slice().iter_mut().zip((0..cells).step_by(64)) {
            let set = (start..cells.min(start + 64)).filter(|&place| !counters.is_zero(place));
            *word = set.map(|place| 1 << (place - start)).sum();
        }
        Ok(Bloom::of(words, size, self.hashing, None, None).taking(self.paths))
    }

    /// The number of counters.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.size.cells
    }

    /// Bits of each counter.
    #[must_use]
    pub fn counter_bits(&self) -> u32 {
        self.size.counter_bits
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

    /// The value of a counter; `None` behind the last.
    #[must_use]
    pub fn counter(&self, position: u64) -> Option<u64> {
        (position < self.size.cells).then(|| self.counters.view().get(position))
    }

    /// How many counters are at their top, where they stay. Their keys cannot be removed.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.counters.saturated()
    }

    /// How keys are hashed.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// How many keys went in, repeats included, and those that have left too. `None` after a merge.
    #[must_use]
    pub fn inserted(&self) -> Option<u64> {
        self.inserted
    }

    /// How many different keys are probably in; infinite when no counter is 0.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        math::estimated_len(self.size.cells, self.occupied, self.size.probes)
    }

    /// The share of the counters that are not 0.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.occupied as f64 / self.size.cells as f64
    }

    /// The false-positive rate of the filter as it is, from its fill.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        self.rate().value
    }

    fn rate(&self) -> Rate {
        let counters = self.counters.view();
        rates::scaled(self.size.cells, self.size.probes, self.occupied, |place| !counters.is_zero(place))
    }

    /// The false-positive rate with as many keys as it was made for.
    #[must_use]
    pub fn fpr_at_capacity(&self) -> f64 {
        self.size.fpr
    }

    /// Whether `other` has the same size, probes, counters and hashing.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        let (ours, theirs) = (self.size, other.size);
        if ours.counter_bits != theirs.counter_bits {
            let (ours, theirs) = (Some(ours.counter_bits), Some(theirs.counter_bits));
            return Err(Mismatch::CounterBits { ours, theirs });
        }
        if ours.cells != theirs.cells {
            return Err(Mismatch::Bits { ours: bits(&ours), theirs: bits(&theirs) });
        }
        if ours.probes != theirs.probes {
            return Err(Mismatch::Probes { ours: ours.probes, theirs: theirs.probes });
        }
        self.hashing.must_equal(&other.hashing)
    }

    /// Union: afterwards this filter holds every key of both, as often as both together, as if they had been
    /// inserted here.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        self.occupied = self.counters.add_all(&other.counters);
        self.inserted = None;
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
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
        let cells = fields.u64("counters")?;
        let probes = fields.u32("probes")?;
        let counter_bits = fields.u32("bits of a counter")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let saturated = fields.u64("saturated counters")?;
        fields.end("parameters", header.params.len())?;
        if !(2..=16).contains(&counter_bits) {
            return Err(DecodeError::Value { field: "bits of a counter", found: counter_bits.into() });
        }
        if !(1..=MAX_BITS / u64::from(counter_bits)).contains(&cells) {
            return Err(DecodeError::Value { field: "counters", found: cells });
        }
        if !(1..=math::MAX_PROBES).contains(&probes) {
            return Err(DecodeError::Value { field: "probes", found: probes.into() });
        }
        if saturated > cells {
            return Err(DecodeError::Value { field: "saturated counters", found: saturated });
        }
        header.must_be_hashed(hashing)?;
        let (expected, found) = (words_for(cells * u64::from(counter_bits)) * 8, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        let ones = header.ones;
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let words = Words::from_bytes(payload)
            .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
        let width = Width::Fixed(counter_bits);
        let counters = Counters::from_words(words, Vec::new().into(), cells, width, saturated)
            .ok_or(DecodeError::Padding { field: "end of the payload" })?;
        // Counted only when the whole payload is read anyway, so that a large file opens by its header.
        if frame.verified && !counters.are_sound() {
            return Err(DecodeError::Value { field: "saturated counters", found: saturated });
        }
        let occupied = match ones {
            Some(found) if found > cells || (frame.verified && found != counters.occupied()) => {
                return Err(DecodeError::Value { field: "occupied cells", found });
            }
            Some(ones) => ones,
            None => counters.occupied(),
        };
        let fpr = math::bloom_fpr_of_any_size(cells, capacity, probes);
        let size = CountingSize { capacity, cells, probes, counter_bits, fpr_asked, fpr };
        let (paths, inserted) = (Paths::default(), frame.header.inserted);
        Ok(Self { counters, size, hashing, paths, inserted, occupied })
    }
}

/// Raises the counters of a key, and says how many of them were 0.
#[inline(always)]
fn raise(counters: &mut CountersMut<'_>, digest: Digest, size: &CountingSize) -> u64 {
    with_distinct(digest, size.probes, size.cells, |places| {
        // All are asked for before the first is waited for. (In a batch they have been asked for already.)
        places.iter().for_each(|&place| counters.view().prefetch(place));
        places.iter().map(|&place| u64::from(counters.add(place, 1) == 0)).sum()
    })
}

/// Lowers the counters of a key, and adds those that are 0 now to `emptied`.
#[inline(always)]
fn lower(counters: &mut CountersMut<'_>, digest: Digest, size: &CountingSize, emptied: &mut u64) -> Removal {
    with_distinct(digest, size.probes, size.cells, |places| {
        // All are looked at before one is changed.
        if places.iter().any(|&place| counters.view().is_zero(place)) {
            return Removal::Absent;
        }
        // One that is at its top stays there. If all are, nothing can be told from them any more.
        let top = Width::Fixed(size.counter_bits).max();
        let (mut outcome, mut empty) = (Removal::Stuck, 0);
        for &place in places {
            let left = counters.subtract(place, 1);
            empty += u64::from(left == 0);
            if left < top {
                outcome = Removal::Removed;
            }
        }
        *emptied += empty;
        outcome
    })
}

/// Visits keys by their digests, having asked for the cache lines of several at a time. `places` are the number of
/// counters and of probes.
#[inline(always)]
pub(super) fn read_ahead<K>(
    paths: Paths,
    mut counters: CountersRef<'_>,
    places: (u64, u32),
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    mut each: impl FnMut(CountersRef<'_>, Digest),
) {
    let far = paths.is_far(8 * counters.words(), PREFETCH_FROM_BYTES);
    let ahead = |counters: &CountersRef<'_>, digest| {
        positions(digest, places.1, places.0).for_each(|place| counters.prefetch(place));
    };
    pipeline(&mut counters, keys, hash, far, ahead, |counters, digests| {
        digests.iter().for_each(|&digest| each(*counters, digest));
    });
}

/// The same for counters that are changed.
#[inline(always)]
pub(super) fn write_ahead<K>(
    paths: Paths,
    mut counters: CountersMut<'_>,
    places: (u64, u32),
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    mut each: impl FnMut(&mut CountersMut<'_>, Digest),
) {
    let far = paths.is_far(8 * counters.view().words(), PREFETCH_FROM_BYTES);
    let ahead = |counters: &CountersMut<'_>, digest| {
        positions(digest, places.1, places.0).for_each(|place| counters.view().prefetch(place));
    };
    pipeline(&mut counters, keys, hash, far, ahead, |counters, digests| {
        digests.iter().for_each(|&digest| each(counters, digest));
    });
}

impl Filter for Counting {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        let counters = self.counters.view();
        !positions(digest, self.size.probes, self.size.cells).any(|place| counters.is_zero(place))
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        self.ask(digests, copy, hits);
    }
}

impl Insert for Counting {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        Ok(self.put(digest))
    }

    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        self.put_all(digests, copy, |outcome| outcomes.push(outcome));
        Ok(())
    }
}

impl Remove for Counting {
    fn remove_digest(&mut self, digest: Digest) -> Removal {
        let mut emptied = 0;
        let outcome = lower(&mut self.counters.view_mut(), digest, &self.size, &mut emptied);
        self.lost(emptied);
        outcome
    }

    fn remove_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Removal>) {
        self.take_all(digests, copy, outcomes);
    }
}

impl Count for Counting {
    #[inline]
    fn count_digest(&self, digest: Digest) -> u64 {
        self.counters.view().least(positions(digest, self.size.probes, self.size.cells))
    }

    fn ceiling(&self) -> u64 {
        Width::Fixed(self.size.counter_bits).max()
    }

    fn count_batch(&self, digests: &[Digest], counts: &mut Vec<u64>) {
        self.tell(digests, copy, counts);
    }
}

impl Merge for Counting {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.merge(family::same_type(self, other)?)
    }
}

impl AnyFilter for Counting {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn report(&self) -> Report {
        let rate = self.rate();
        let estimated_len = self.estimated_len();
        Report {
            capacity: self.size.capacity,
            inserted: self.inserted,
            estimated_len: estimated_len.is_finite().then_some(estimated_len),
            bits: bits(&self.size),
            probes: Some(self.size.probes),
            fill: self.fill(),
            fpr_asked: self.size.fpr_asked,
            fpr_now: rate.value,
            fpr_interval: rate.interval(),
            fpr_at_capacity: self.size.fpr,
            guarantee: Guarantee::NoFalseNegativesIfDeletesValid,
        }
    }

    fn counters(&self) -> Option<CounterReport> {
        Some(CounterReport {
            counters: self.size.cells,
            bits: Some(self.size.counter_bits),
            saturated: self.saturated(),
            overflowed: 0,
            rule: None,
            degraded: false,
        })
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        let CountingSize { capacity, cells, probes, counter_bits, fpr_asked, .. } = self.size;
        out.probing(Probing::Scaled);
        out.counts(self.inserted, self.occupied);
        out.params()
            .u64(cells)
            .u32(probes)
            .u32(counter_bits)
            .u64(capacity)
            .f64(fpr_asked)
            .u64(self.saturated());
        out.words(self.counters.words());
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.contains_all(keys, hits);
    }

    fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Error> {
        let hashing = self.hashing;
        self.put_all(
            keys,
            |keys, digests| Key::digests(keys, &hashing, digests),
            |outcome| outcomes.push(outcome),
        );
        Ok(())
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }
    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        Some(self)
    }
    fn as_count(&self) -> Option<&dyn Count> {
        Some(self)
    }
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }
}

impl<K: Key> Extend<K> for Counting {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| {
            self.insert(key);
        });
    }
}
