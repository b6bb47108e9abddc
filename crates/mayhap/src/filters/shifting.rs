//! Shifting Bloom filter: membership with half the memory accesses of a Bloom filter.
//!
//! **Answers** "was this key inserted?" and, with counters, "... and not removed since?"
//! **Promise** a key that is in is never denied (with counters: as long as only keys are removed that are in); an absent
//! key is admitted with the asked rate at capacity.
//! **Not for** the fewest bits (0.9% more than a Bloom filter's at 1%, 0.4% at 0.1%); one cache line per key, which
//! [`Blocked`](crate::Blocked) has.
//!
//! ```text
//!   key ─▶ digest ─▶ offset o = 3            bits  0 1 0 0 1 0 0 0 1 0 0 1 0
//!                    places 1, 8                     ▲─────▲       ▲─────▲       all set: perhaps
//!                                                    one load      one load
//! ```
//!
//! | operation | cache lines                                | can fail |
//! |-----------|--------------------------------------------|----------|
//! | contains  | `probes / 2`, 1 in 9 twice; 2 or so for a miss | no    |
//! | insert    | the same; with counters `probes` more      | no       |
//! | remove    | as insert; with counters only              | no       |
//! | merge     | all, in order                              | mismatch |
//!
//! Half of a Bloom filter's positions are taken, and each has a second bit, 1 to 56 bits further on: so near that both
//! come with one load of 64 bits from the byte of the first. The distance is one of the key's hash values. So a key takes
//! `probes / 2 + 1` values of the digest and `probes / 2` loads.
//!
//! With [counters](Spec::with_counter_bits) keys can leave again. Each bit then has a counter, which only inserts and
//! removes look at: questions read the bits. A counter that is at its top stays there, as in
//! [`Counting`](crate::Counting).
//!
//! More than one [offset](Spec::with_shifts) per place takes fewer loads still and errs more often:
//! [`math::shifting_fpr`].
//!
//! **Paper** Yang, Liu, Shahzad, Zhong, Fu, Li, Xie, Li, *A Shifting Bloom Filter Framework for Set Queries*, PVLDB 2016.
//! **We differ** in that one 128-bit hash gives all values, and in that the different bits of a key are counted, so that
//! two that meet do not raise a counter twice.
//!
//! ```
//! use mayhap::{Shifting, Spec};
//!
//! let mut seen = Shifting::new(1_000_000, 0.01)?;
//! seen.insert("https://example.org/");
//! assert!(seen.contains("https://example.org/"));
//!
//! let mut online = Shifting::from_spec(&Spec::sized(1000, 0.01).with_counter_bits(4))?;
//! online.insert("ada");
//! assert!(online.remove("ada")?.is_removed());
//! assert!(!online.contains("ada")); // certain: nothing else is in
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::batch::{BATCH, copy, pipeline};
use crate::bits::{
    BEHIND, Bytes, Counters, WINDOW, Width, Windows, WindowsMut, WindowsRef, Words, words_for,
};
use crate::error::{DecodeError, Error, Full, Mismatch, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, CounterReport, Family, Guarantee, Make, Report};
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::intersection::Intersection;
use crate::math::{self, MAX_PROBES};
use crate::narrow::index;
use crate::paths::Paths;
use crate::probing::{Probing, Walk, distinct, reduce};
use crate::rates::{self, Rate};
use crate::spec::{MAX_BITS, Plan, ShiftingSize, Spec, window_bits};
use crate::traits::{Filter, Insert, Insertion, Intersect, Merge, Removal, Remove};
use crate::wire::{Fields, Frame, Summing, Writer};

/// The family `shifting`.
pub static FAMILY: Family = Family {
    id: 13,
    name: "shifting",
    summary: "half the memory accesses of bloom",
    can: PLAIN,
    cost: Cost { query: "O(k/2)", insert: "O(k/2)", space: "1.45 n log2(1/p)" },
    make: Make::Empty(|spec| Ok(Box::new(Shifting::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(Shifting::decode(frame, hashing)?)),
    // With counters a remove that dies half-way and is made again would lower them twice, under keys that are in.
    in_place: false,
};

/// Without counters.
const PLAIN: Capabilities = Capabilities {
    inserts: true,
    removes: false,
    counts: false,
    labels: false,
    merges: true,
    intersects: true,
    subtracts: false,
    folds: false,
    grows: false,
    exact: false,
};

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let size = spec.shifting()?;
    let ShiftingSize { capacity, probes, fpr_asked, fpr, .. } = size;
    Ok(Plan { capacity, fpr_asked, fpr, bits: size.bits(), probes: Some(probes) })
}

/// Filters smaller than this stay near enough, so that asking ahead costs more than it brings: as for Bloom filters.
pub(super) const PREFETCH_FROM_BYTES: usize = 4 << 20;

/// A shifting Bloom filter.
#[derive(Clone, Debug)]
pub struct Shifting {
    windows: Windows,
    size: ShiftingSize,
    shape: Shape,
    hashing: Hashing,
    paths: Paths,
    /// Insert calls; unknown after a merge.
    inserted: Option<u64>,
    /// What is known of its keys, if it is an intersection.
    intersection: Option<Intersection>,
}

/// Two filters are equal if they give the same answer to every key, now and after the same changes: same size, hashing,
/// bits and counters.
impl PartialEq for Shifting {
    fn eq(&self, other: &Self) -> bool {
        self.must_match(other).is_ok() && self.windows == other.windows
    }
}

/// From a digest to windows and what is looked at in each: arithmetic without memory.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Places at which a window may start.
    starts: u64,
    /// Windows per key.
    groups: u32,
    /// Offsets per key.
    shifts: u32,
    /// How many bits each offset has to choose from.
    segment: u64,
}

impl Shape {
    const fn of(size: &ShiftingSize) -> Self {
        let segment = BEHIND / size.shifts as u64;
        Self { starts: size.starts, groups: size.probes / (size.shifts + 1), shifts: size.shifts, segment }
    }

    /// The bits of a window that a key has: the first, and one for each of the next values of the walk.
    #[inline(always)]
    fn mask(self, walk: &mut Walk) -> u64 {
        let mut mask = 1;
        for shift in 0..u64::from(self.shifts) {
            // From 1 on: an offset of 0 would have one bit stand for two.
            mask |= 2 << (shift * self.segment + reduce(walk.next(), self.segment));
        }
        mask
    }

    /// Where the next window starts.
    #[inline(always)]
    fn next(self, walk: &mut Walk) -> u64 {
        reduce(walk.next(), self.starts)
    }

    /// Whether all bits of a key are set, by a function that reads a window; it is not asked for more once two windows do
    /// not have them.
    #[inline(always)]
    fn holds(self, digest: Digest, window: impl FnMut(u64) -> u64) -> bool {
        let mut walk = Walk::new(digest);
        let mask = self.mask(&mut walk);
        self.holds_rest(mask, &mut walk, self.groups, window)
    }

    /// Two windows are looked at before each decision: at half full one in four absent keys passes one window, which the
    /// processor cannot foresee, and one in sixteen passes two.
    #[inline(always)]
    fn holds_rest(self, mask: u64, walk: &mut Walk, groups: u32, mut window: impl FnMut(u64) -> u64) -> bool {
        let mut pair = |windows: u32| (0..windows).fold(mask, |all, _| all & window(self.next(walk))) == mask;
        (0..groups / 2).all(|_| pair(2)) && pair(groups % 2)
    }

    /// Calls `then` with the different bits of a key.
    #[inline(always)]
    fn with_bits<R>(self, digest: Digest, then: impl FnOnce(&[u64]) -> R) -> R {
        let mut walk = Walk::new(digest);
        let mask = self.mask(&mut walk);
        let starts = (0..self.groups).map(move |_| self.next(&mut walk));
        let mut room = [0; MAX_PROBES as usize];
        then(distinct(starts.flat_map(|start| places(start, mask)), &mut room))
    }
}

/// The bits of a window that a mask has.
#[inline(always)]
fn places(start: u64, mut mask: u64) -> impl Iterator<Item = u64> {
    core::iter::from_fn(move || {
        let place = (mask != 0).then(|| start + u64::from(mask.trailing_zeros()))?;
        mask &= mask - 1;
        Some(place)
    })
}

/// Inserts one key, and says whether it was new.
#[inline(always)]
fn put(windows: &mut WindowsMut<'_>, shape: Shape, digest: Digest) -> bool {
    if windows.counters().is_some() {
        return shape.with_bits(digest, |places| {
            prefetch_counters(windows, places);
            places.iter().fold(false, |new, &place| windows.raise(place) | new)
        });
    }
    let mut walk = Walk::new(digest);
    let mask = shape.mask(&mut walk);
    (0..shape.groups).fold(false, |new, _| windows.set(shape.next(&mut walk), mask) | new)
}

/// All are asked for before the first is waited for.
#[inline(always)]
pub(super) fn prefetch_counters(windows: &WindowsMut<'_>, places: &[u64]) {
    if let Some(counters) = windows.counters() {
        places.iter().for_each(|&place| counters.prefetch(place));
    }
}

/// A key whose first window has its bits, on its way to the others.
#[derive(Clone, Copy, Default)]
struct Survivor {
    mask: u64,
    walk: Walk,
    /// Where its answer goes.
    answer: usize,
}

/// Asks for many keys out of cache; writes one answer each, whatever was there before.
///
/// A missing key passes its first window with a chance of 1 in 4 or so. So only that one is asked for ahead, and the
/// others of those that pass, a batch later.
fn ask_far<K>(
    windows: WindowsRef<'_>,
    shape: Shape,
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    hits: &mut [bool],
) {
    let mut survivors = [Survivor::default(); BATCH];
    let (mut passed, mut asked) = (0, 0);
    let first = |digest: Digest| {
        let mut walk = Walk::new(digest);
        let mask = shape.mask(&mut walk);
        (mask, shape.next(&mut walk), walk)
    };
    let ahead = |_: &(), digest: Digest| windows.prefetch(first(digest).1);
    pipeline(&mut (), keys, hash, true, ahead, |(), digests| {
        for Survivor { mask, mut walk, answer } in survivors.into_iter().take(passed) {
            hits[answer] = shape.holds_rest(mask, &mut walk, shape.groups - 1, |start| windows.window(start));
        }
        passed = 0;
        // Only those that pass get an answer later on; the others have theirs now.
        hits[asked..asked + digests.len()].fill(false);
        for (index, &digest) in digests.iter().enumerate() {
            let (mask, start, walk) = first(digest);
            // Written for every key and kept for some: a branch would be mispredicted.
            survivors[passed % BATCH] = Survivor { mask, walk, answer: asked + index };
            passed += usize::from(windows.window(start) & mask == mask);
        }
        for survivor in &survivors[..passed] {
            let mut walk = survivor.walk;
            (1..shape.groups).for_each(|_| windows.prefetch(shape.next(&mut walk)));
        }
        asked += digests.len();
    });
    debug_assert!(asked == keys.len() && passed == 0, "the pipeline ends a turn after its last key");
}

impl Shifting {
    /// An empty filter without counters for so many keys at such a false-positive rate.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty filter of whatever was asked for. Bits are all that it takes, counters and the 56 bits behind the last
    /// place included.
    ///
    /// # Errors
    /// As for [`new`](Shifting::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let (size, hashing) = (spec.shifting()?, spec.hashed()?);
        let windows = Windows::zeroed(size.starts, size.counter_bits)?;
        let (shape, paths) = (Shape::of(&size), spec.paths);
        Ok(Self { windows, size, shape, hashing, paths, inserted: Some(0), intersection: None })
    }

    /// Inserts a key, with counters once more if it is in.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Insertion {
        let digest = self.hashing.digest_of(key);
        self.put(digest)
    }

    /// Removes a key, once if it is in several times. A key whose counters are all saturated is [stuck](Removal::Stuck):
    /// how often it is in is unknown.
    ///
    /// A key that was never inserted must not be removed: if all of its bits are set by chance, others lose theirs.
    ///
    /// # Errors
    /// [`Error::UnsupportedWithoutCounters`] if it has none.
    #[inline]
    pub fn remove(&mut self, key: impl Key) -> Result<Removal, Error> {
        if self.size.counter_bits.is_none() {
            return Err(self.unsupported("remove"));
        }
        let digest = self.hashing.digest_of(key);
        Ok(self.remove_digest(digest))
    }

    /// Whether a key is perhaps in. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_digest(self.hashing.digest_of(key))
    }

    /// Asks for a key, and calls `read` with the number of the first of the 8 bytes of each load, for benchmarks that count
    /// what is touched.
    #[doc(hidden)]
    pub fn contains_traced(&self, key: impl Key, mut read: impl FnMut(u64)) -> bool {
        let windows = self.windows.view();
        self.shape.holds(self.hashing.digest_of(key), |start| {
            read(start / 8);
            windows.window(start)
        })
    }

    #[inline]
    fn put(&mut self, digest: Digest) -> Insertion {
        // A crafted file may claim any number of calls: they end at the top instead of going round.
        self.inserted = self.inserted.map(|calls| calls.saturating_add(1));
        Insertion::new_if(put(&mut self.windows.view_mut(), self.shape, digest))
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    pub fn contains_all<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.ask_all(keys, |keys, digests| K::digests(keys, &hashing, digests), hits);
    }

    /// Inserts many keys, several at a time in flight.
    pub fn insert_all<K: Key>(&mut self, keys: &[K]) {
        let hashing = self.hashing;
        self.put_all(keys, |keys, digests| K::digests(keys, &hashing, digests), |_| {});
    }

    #[inline(always)]
    fn ask_all<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), hits: &mut Vec<bool>) {
        let (windows, shape, start) = (self.windows.view(), self.shape, hits.len());
        hits.resize(start + keys.len(), false);
        if self.paths.is_far(windows.bytes(), PREFETCH_FROM_BYTES) {
            return ask_far(windows, shape, keys, hash, &mut hits[start..]);
        }
        let mut answers = hits[start..].iter_mut();
        pipeline(
            &mut (),
            keys,
            hash,
            false,
            |_, _| {},
            |(), digests| {
                for (&digest, hit) in digests.iter().zip(&mut answers) {
                    *hit = shape.holds(digest, |start| windows.window(start));
                }
            },
        );
    }

    #[inline(always)]
    fn put_all<K>(
        &mut self,
        keys: &[K],
        hash: impl Fn(&[K], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) {
        let (shape, mut windows) = (self.shape, self.windows.view_mut());
        let far = self.paths.is_far(windows.view().bytes(), PREFETCH_FROM_BYTES);
        let ahead = |windows: &WindowsMut<'_>, digest: Digest| {
            let mut walk = Walk::new(digest);
            shape.mask(&mut walk);
            (0..shape.groups).for_each(|_| windows.view().prefetch(shape.next(&mut walk)));
        };
        pipeline(&mut windows, keys, hash, far, ahead, |windows, digests| {
            digests.iter().for_each(|&digest| told(Insertion::new_if(put(windows, shape, digest))));
        });
        self.inserted = self.inserted.map(|calls| calls.saturating_add(keys.len() as u64));
    }

    /// Forgets all keys, and that counters were saturated.
    pub fn clear(&mut self) {
        self.windows.clear();
        self.inserted = Some(0);
        self.intersection = None;
    }

    /// The bits of a key, those of one load together: a place, and the same distances beyond it for every place.
    ///
    /// ```
    /// let mut seen = mayhap::Shifting::new(100, 0.01)?;
    /// seen.insert("hello");
    /// let loads = seen.loads("hello");
    /// assert_eq!(loads.len() as u32, seen.probes() / 2);
    /// assert!(loads.iter().flatten().all(|&bit| seen.bit(bit) == Some(true)));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    #[must_use]
    pub fn loads(&self, key: impl Key) -> Vec<Vec<u64>> {
        let mut walk = Walk::new(self.hashing.digest_of(key));
        let mask = self.shape.mask(&mut walk);
        (0..self.shape.groups).map(|_| places(self.shape.next(&mut walk), mask).collect()).collect()
    }

    /// Whether a bit is set; `None` behind the last.
    #[must_use]
    pub fn bit(&self, position: u64) -> Option<bool> {
        let word = |position: u64| self.windows.words().as_slice()[index(position / 64)];
        (position < self.windows.len()).then(|| word(position) >> (position % 64) & 1 == 1)
    }

    /// All bits, counters and the 56 bits behind the last place included.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.size.bits()
    }

    /// The places at which a window may start: what the bits of a Bloom filter are.
    #[must_use]
    pub fn starts(&self) -> u64 {
        self.size.starts
    }

    /// Bits per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.size.probes
    }

    /// Offsets per key.
    #[must_use]
    pub fn shifts(&self) -> u32 {
        self.size.shifts
    }

    /// Bits of each counter, if there are any.
    #[must_use]
    pub fn counter_bits(&self) -> Option<u32> {
        self.size.counter_bits
    }

    /// How many counters are at their top, where they stay. Their keys cannot be removed.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.windows.counters().map_or(0, Counters::saturated)
    }

    /// The number of keys it was made for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.size.capacity
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

    /// How many different keys are probably in; infinite when no bit is unset. Of an intersection it is the number of common
    /// keys that was estimated when it was made; not a number if that is unknown, or if the intersection was changed
    /// afterwards.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        match self.intersection {
            Some(intersection) => intersection.len(self.windows.ones()),
            None => self.len_by_bits(self.windows.ones()),
        }
    }

    fn len_by_bits(&self, ones: u64) -> f64 {
        math::estimated_len(self.windows.len(), ones, self.size.probes)
    }

    /// The share of the bits that are set.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.windows.ones() as f64 / self.windows.len() as f64
    }

    /// The false-positive rate of the filter as it is, from its fill.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        self.rate().value
    }

    fn rate(&self) -> Rate {
        let Shape { groups, shifts, segment, .. } = self.shape;
        let masks = segment.pow(shifts);
        if masks.saturating_mul(self.windows.starts() / 64) > rates::LOOKED_AT_WINDOWS {
            return Rate::computed(math::shifting_fpr_from_unset(
                1.0 - self.fill(),
                self.size.probes,
                shifts,
            ));
        }
        let sum: f64 = (0..masks)
            .map(|number| {
                let offset = |shift: u32| u64::from(shift) * segment + number / segment.pow(shift) % segment;
                let mask = (0..shifts).fold(1, |mask, shift| mask | 2 << offset(shift));
                math::fpr_from_fill(self.windows.share_with(mask), groups)
            })
            .sum();
        rates::sampled_if_tiny(self, self.windows.starts(), groups, rates::SAMPLED, sum / masks as f64)
    }

    /// The false-positive rate with as many keys as it was made for.
    #[must_use]
    pub fn fpr_at_capacity(&self) -> f64 {
        self.size.fpr
    }

    /// Whether `other` has the same size, probes, offsets, counters and hashing.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        let (ours, theirs) = (self.size, other.size);
        if ours.counter_bits != theirs.counter_bits {
            return Err(Mismatch::Counters { ours: ours.counter_bits, theirs: theirs.counter_bits });
        }
        if ours.starts != theirs.starts {
            return Err(Mismatch::Bits { ours: ours.bits(), theirs: theirs.bits() });
        }
        if ours.probes != theirs.probes {
            return Err(Mismatch::Probes { ours: ours.probes, theirs: theirs.probes });
        }
        if ours.shifts != theirs.shifts {
            return Err(Mismatch::Shifts { ours: ours.shifts, theirs: theirs.shifts });
        }
        self.hashing.must_equal(&other.hashing)
    }

    /// Union: afterwards this filter holds every key of both, as if they had been inserted here.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        self.intersection = Intersection::of_union(self.intersection, other.intersection);
        self.windows.merge(&other.windows);
        self.inserted = None;
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
    }

    /// Intersection: afterwards this filter still holds every key that was in both. Its rate is not above the lower one of
    /// the two, for keys that are in neither: a key of one filter alone is admitted as often as the other filter admits an
    /// absent one. Not for filters with counters: nobody knows which of the keys that raised one stay.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed. So do counters.
    pub fn intersect(&mut self, other: &Self) -> Result<(), Error> {
        self.must_match(other)?;
        if self.size.counter_bits.is_some() {
            return Err(self.unsupported("intersect"));
        }
        let common = match (self.intersection, other.intersection) {
            (None, None) => {
                let union = self.len_by_bits(self.windows.ones_of_union(&other.windows));
                (self.estimated_len() + other.estimated_len() - union).max(0.0)
            }
            _ => f64::NAN,
        };
        self.windows.intersect(&other.windows);
        self.inserted = None;
        self.intersection = Intersection::of(common, self.windows.ones());
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
        must_probe_by(frame, Probing::Shifting)?;
        let mut fields = Fields::new(&frame.header.params);
        let starts = fields.u64("places")?;
        let probes = fields.u32("probes")?;
        let shifts = fields.u32("shifts")?;
        let claim = Claim { starts, counter_bits: read_shape(&mut fields)?, saturated: 0 };
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let claim = Claim { saturated: fields.u64("saturated counters")?, ..claim };
        fields.end("parameters", frame.header.params.len())?;
        if !(1..=math::MAX_SHIFTS).contains(&shifts) {
            return Err(DecodeError::Value { field: "shifts", found: shifts.into() });
        }
        if !(1..=MAX_PROBES).contains(&probes) || !probes.is_multiple_of(shifts + 1) {
            return Err(DecodeError::Value { field: "probes", found: probes.into() });
        }
        let windows = claim.windows(frame, hashing)?;
        let fpr = math::shifting_fpr(starts, capacity as f64, probes, shifts);
        let counter_bits = claim.counter_bits;
        let size = ShiftingSize { capacity, starts, probes, shifts, counter_bits, fpr_asked, fpr };
        let (shape, paths, inserted) = (Shape::of(&size), Paths::default(), frame.header.inserted);
        let intersection = Intersection::read(frame.header.intersection, windows.ones());
        Ok(Self { windows, size, shape, hashing, paths, inserted, intersection })
    }
}

/// A file must have been written by this rule.
pub(super) fn must_probe_by(frame: &Frame, probing: Probing) -> Result<(), DecodeError> {
    match frame.header.probing {
        found if found != probing.id() => Err(DecodeError::Probing { found }),
        _ => Ok(()),
    }
}

/// The bits of a window, which are always as many, and those of a counter.
pub(super) fn read_shape(fields: &mut Fields<'_>) -> Result<Option<u32>, DecodeError> {
    let window = fields.u32("bits of a window")?;
    if window != WINDOW {
        return Err(DecodeError::Value { field: "bits of a window", found: window.into() });
    }
    match fields.u32("bits of a counter")? {
        0 => Ok(None),
        bits @ 2..=16 => Ok(Some(bits)),
        found => Err(DecodeError::Value { field: "bits of a counter", found: found.into() }),
    }
}

/// What the parameters of a file say about its bits and counters: the same for the three families of windows.
pub(super) struct Claim {
    pub(super) starts: u64,
    pub(super) counter_bits: Option<u32>,
    pub(super) saturated: u64,
}

impl Claim {
    /// The payload, if it is what the parameters say.
    pub(super) fn windows(&self, frame: &mut Frame, hashing: Hashing) -> Result<Windows, DecodeError> {
        let &Self { starts, counter_bits, saturated } = self;
        let header = &frame.header;
        if starts == 0 || window_bits(starts, counter_bits) > MAX_BITS {
            return Err(DecodeError::Value { field: "places", found: starts });
        }
        let bits = starts + BEHIND;
        if saturated > if counter_bits.is_some() { bits } else { 0 } {
            return Err(DecodeError::Value { field: "saturated counters", found: saturated });
        }
        header.must_be_hashed(hashing)?;
        let of_bits = words_for(bits) * 8;
        let of_counters = counter_bits.map_or(0, |width| words_for(bits * u64::from(width)) * 8);
        let (expected, found) = (of_bits + of_counters, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        if let Some(found) = header.ones.filter(|&ones| ones > bits) {
            return Err(DecodeError::Value { field: "set bits", found });
        }
        let ones = header.ones;
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let (words, counters) = match counter_bits {
            None => (read_words(payload)?, None),
            Some(width) => {
                let length = payload.len();
                // As long as the header says, which has been compared with what the parameters need.
                let part = |range| {
                    payload
                        .part(range)
                        .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })
                };
                let (bits_part, rest) = (part(0..index(of_bits))?, part(index(of_bits)..length)?);
                let counters = Counters::from_words(
                    read_words(rest)?,
                    Vec::new().into(),
                    bits,
                    Width::Fixed(width),
                    saturated,
                )
                .ok_or(DecodeError::Padding { field: "end of the counters" })?;
                (read_words(bits_part)?, Some(counters))
            }
        };
        let windows = Windows::from_words(words, counters, starts, ones)
            .ok_or(DecodeError::Padding { field: "end of the payload" })?;
        // Looked at only when the whole payload is read anyway, so that a large file opens by its header.
        if frame.verified {
            if let Some(found) = ones.filter(|&ones| ones != windows.count_ones()) {
                return Err(DecodeError::Value { field: "set bits", found });
            }
            if !windows.are_sound() {
                return Err(DecodeError::Payload { problem: "bits and counters do not agree" });
            }
        }
        Ok(windows)
    }
}

fn read_words(bytes: Bytes) -> Result<Words, DecodeError> {
    Words::from_bytes(bytes).ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })
}

/// Writes bits and counters: what [`Claim::windows`] reads.
pub(super) fn write_windows<'a>(windows: &'a Windows, out: &mut Writer<'a>) {
    out.words(windows.words());
    if let Some(counters) = windows.counters() {
        out.words(counters.words());
    }
}

/// What the counters of windows are, for people.
pub(super) fn counter_report(windows: &Windows, bits: Option<u32>) -> Option<CounterReport> {
    let counters = windows.counters()?;
    Some(CounterReport {
        counters: counters.len(),
        bits,
        saturated: counters.saturated(),
        overflowed: 0,
        rule: None,
        degraded: false,
    })
}

impl Filter for Shifting {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        let windows = self.windows.view();
        self.shape.holds(digest, |start| windows.window(start))
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        self.ask_all(digests, copy, hits);
    }
}

impl Insert for Shifting {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        Ok(self.put(digest))
    }

    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        self.put_all(digests, copy, |outcome| outcomes.push(outcome));
        Ok(())
    }
}

/// Without counters nothing is ever removed, and every key is absent: [`AnyFilter::as_remove`] does not offer it
/// then, and [`Shifting::remove`] says so.
impl Remove for Shifting {
    fn remove_digest(&mut self, digest: Digest) -> Removal {
        if self.size.counter_bits.is_none() || !self.contains_digest(digest) {
            return Removal::Absent;
        }
        let mut windows = self.windows.view_mut();
        self.shape.with_bits(digest, |places| {
            prefetch_counters(&windows, places);
            if windows.lower_all(places) { Removal::Stuck } else { Removal::Removed }
        })
    }
}

impl Merge for Shifting {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.merge(family::same_type(self, other)?)
    }
}

impl Intersect for Shifting {
    fn intersect_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        let other = family::same_type(self, other)?;
        self.must_match(other)?;
        // Filters with counters do not offer this; asked all the same, they stay as they are, which loses no key.
        let _ = self.intersect(other);
        Ok(())
    }
}

impl AnyFilter for Shifting {
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
            bits: self.bits(),
            probes: Some(self.size.probes),
            fill: self.fill(),
            fpr_asked: self.size.fpr_asked,
            fpr_now: rate.value,
            fpr_interval: rate.interval(),
            fpr_at_capacity: self.size.fpr,
            guarantee: if self.size.counter_bits.is_some() {
                Guarantee::NoFalseNegativesIfDeletesValid
            } else {
                Guarantee::NoFalseNegatives
            },
        }
    }

    fn counters(&self) -> Option<CounterReport> {
        counter_report(&self.windows, self.size.counter_bits)
    }

    fn can(&self) -> Capabilities {
        match self.size.counter_bits {
            Some(_) => Capabilities { removes: true, intersects: false, ..PLAIN },
            None => PLAIN,
        }
    }

    fn unsupported(&self, operation: &'static str) -> Error {
        let family = FAMILY.name;
        match operation {
            "remove" => Error::UnsupportedWithoutCounters { family, operation },
            _ => Error::Unsupported { family, operation },
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        let ShiftingSize { capacity, starts, probes, shifts, counter_bits, fpr_asked, .. } = self.size;
        out.probing(Probing::Shifting);
        out.counts(self.inserted, self.windows.ones());
        out.intersection(Intersection::stored(self.intersection, self.windows.ones()));
        out.params()
            .u64(starts)
            .u32(probes)
            .u32(shifts)
            .u32(WINDOW)
            .u32(counter_bits.unwrap_or(0))
            .u64(capacity)
            .f64(fpr_asked)
            .u64(self.saturated());
        write_windows(&self.windows, out);
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
        self.can().removes.then_some(self as &mut dyn Remove)
    }
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }
    fn as_intersect(&mut self) -> Option<&mut dyn Intersect> {
        self.can().intersects.then_some(self as &mut dyn Intersect)
    }
}

impl<K: Key> Extend<K> for Shifting {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| {
            self.insert(key);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: an offset from the first value, places from the others; `probes / 2` loads for a key that is in.
    #[test]
    fn a_key_has_an_offset_and_places_by_the_definition() {
        for (probes, shifts, bits) in [(8, 1, 10_056), (2, 1, 57), (6, 2, 5_000), (8, 3, 1_000_000)] {
            let spec = Spec::new().with_bits(bits).with_probes(probes).with_shifts(shifts);
            let mut filter = Shifting::from_spec(&spec).unwrap();
            for key in 0..200u64 {
                let digest = filter.hashing.digest_of(key);
                let mut values = {
                    let mut walk = Walk::new(digest);
                    core::iter::from_fn(move || Some(walk.next()))
                };
                let segment = 56 / u64::from(shifts);
                let offsets: Vec<u64> = (0..u64::from(shifts))
                    .map(|shift| shift * segment + 1 + reduce(values.next().unwrap(), segment))
                    .collect();
                assert!(offsets.iter().all(|offset| (1..=56).contains(offset)));
                let starts: Vec<u64> = (0..probes / (shifts + 1))
                    .map(|_| reduce(values.next().unwrap(), filter.starts()))
                    .collect();
                let mut expected: Vec<u64> = Vec::new();
                for &start in &starts {
                    expected
                        .extend(core::iter::once(start).chain(offsets.iter().map(|offset| start + offset)));
                }
                let mut seen = Vec::new();
                let mut distinct = Vec::new();
                filter.shape.holds(digest, |start| {
                    seen.push(start);
                    u64::MAX
                });
                filter.shape.with_bits(digest, |places| distinct.extend_from_slice(places));
                assert_eq!(seen, starts, "one load for each place, in order");
                expected.sort_unstable();
                expected.dedup();
                distinct.sort_unstable();
                assert_eq!(distinct, expected);
                let before = filter.windows.clone();
                filter.insert(key);
                for place in (0..filter.windows.len()).filter(|_| bits < 10_000) {
                    let bit = |windows: &Windows| {
                        windows.words().as_slice()[(place / 64) as usize] >> (place % 64) & 1
                    };
                    let set = bit(&before) == 1 || expected.contains(&place);
                    assert_eq!(bit(&filter.windows) == 1, set);
                }
            }
        }
    }

    /// Nothing is read behind the first two windows of which one fails.
    #[test]
    fn a_question_stops_at_the_first_windows_that_fail() {
        for (probes, failing, expected) in
            [(8, 1, 2), (8, 2, 2), (8, 3, 4), (8, 4, 4), (6, 1, 2), (6, 3, 3), (2, 1, 1)]
        {
            let shape = Shape::of(&Spec::new().with_bits(10_000).with_probes(probes).shifting().unwrap());
            let mut loads = 0;
            let holds = shape.holds(Hashing::default().digest_of(7u64), |_| {
                loads += 1;
                if loads == failing { 1 } else { u64::MAX }
            });
            assert!(!holds && loads == expected);
        }
    }
}
