//! Cuckoo filter: approximate membership with removal.
//!
//! **Answers** "was this key inserted and not removed since?"
//! **Promise** a key that is in is never denied, as long as only keys that are in are removed; an absent key is admitted
//! with the asked rate at capacity.
//! **Not for** inputs that may remove what they never inserted; a key that comes more than 8 times; growth.
//!
//! ```text
//!   key ─▶ first half of the digest ─▶ bucket i, fingerprint 5a
//!                                      bucket j = mix(5a) - i mod buckets       and so i = mix(5a) - j
//!
//!          bucket i  [ 5a | 17 | 00 | 00 ]        bucket j  [ c3 | 08 | 44 | 91 ]          00 = empty
//! ```
//!
//! | operation | cache lines          | can fail                              |
//! |-----------|----------------------|---------------------------------------|
//! | contains  | 2                    | no                                    |
//! | insert    | 2, more when full    | `Full`; then nothing has changed      |
//! | remove    | 2                    | no                                    |
//! | merge     | all                  | mismatch or `Full`; nothing changed   |
//!
//! A fingerprint is in one of two buckets of four slots, and each bucket follows from the other and the fingerprint: so it
//! can be moved without its key. If both buckets are full, the shortest way to a free slot is looked for breadth-first,
//! and only when it is found are fingerprints moved along it. There is no slot for a victim and nobody is ever dropped.
//!
//! In the layout `compact` buckets are semi-sorted: a bit less per slot, and more work per key.
//!
//! **Removing a key that is not in** is refused (`false`) if its fingerprint is in neither bucket. Otherwise, with about
//! the false-positive rate, it takes the fingerprint of another key, which is then denied. That is the caller's to avoid.
//!
//! **A key that is inserted again** takes another slot, up to 8 of them, and must be removed as often. The ninth is
//! [`Limit::Copies`]; many keys that are in several times can leave no room for another one sooner, which is
//! [`Limit::Repeats`].
//!
//! **Paper** Fan, Andersen, Kaminsky, Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom*, CoNEXT 2014.
//! **We differ** in the second bucket, a difference instead of an exclusive or, so that any even number of buckets
//! will do and no power of two is needed; in the search, so that a refused insert changes nothing.
//!
//! ```
//! use mayhap::Cuckoo;
//!
//! let mut online = Cuckoo::new(1_000_000, 0.001)?;
//! online.insert("alice")?;
//! online.insert_all(&["bob", "carol"])?;
//! assert!(online.contains("bob"));
//! assert!(online.remove("bob").is_removed());
//! assert!(online.contains("alice") && online.contains("carol"));
//! assert_eq!(online.slots().used, 2);
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::select_unpredictable;

use crate::batch::{self, BATCH};
use crate::bits::{Buckets, Bytes, Lanes, SLOTS, Words, bucket_bits, words_for};
use crate::error::{DecodeError, Error, Full, Limit, Mismatch, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, Family, Guarantee, Make, Report, Slots};
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::math;
use crate::narrow::{index, small_len};
use crate::paths::Paths;
use crate::probing::{PHI, Probing, reduce};
use crate::spec::{CuckooSize, Layout, MAX_BITS, Plan, Spec, cuckoo_widths};
use crate::traits::{Count, Filter, Insert, Insertion, Merge, Removal, Remove};
use crate::wire::{Fields, Frame, Summing, Writer};

/// Up to so many buckets are looked at to find the rate: that takes 1 ms at the most. Copies of a key count once there.
pub const LOOKED_AT_BUCKETS: u64 = 1 << 11;

/// The family `cuckoo`.
pub static FAMILY: Family = Family {
    id: 9,
    name: "cuckoo",
    summary: "keys can be removed: 10.5 bits per key at 1%",
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
    cost: Cost { query: "O(1)", insert: "O(1)", space: "1.05 n (log2(1/p) + 3) and up" },
    make: Make::Empty(|spec| Ok(Box::new(Cuckoo::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(Cuckoo::decode(frame, hashing)?)),
    // A fingerprint on its way from one bucket to the other is in neither while it is written.
    in_place: false,
};

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let size = spec.cuckoo()?;
    let CuckooSize { capacity, fpr_asked, fpr, .. } = size;
    Ok(Plan { capacity, fpr_asked, fpr, bits: size.bits(), probes: None })
}

/// The most copies of one key: all slots of both its buckets.
pub(crate) const MOST_COPIES: u64 = 2 * SLOTS as u64;

/// Tables smaller than this stay in the second-level cache, where prefetching brings nothing.
const PREFETCH_FROM_BYTES: usize = 128 * 1024;

/// Keys that are hashed before a refused insert is noticed.
const STRETCH: usize = 4096;

/// From the first half of a digest to two buckets and a fingerprint: arithmetic without memory.
#[derive(Clone, Copy, Debug)]
struct Shape {
    buckets: u64,
    /// How many fingerprints there are: 2^width - 1, without 0, which is an empty slot.
    fingerprints: u64,
    paths: Paths,
}

/// Where a fingerprint may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    first: u64,
    second: u64,
    fingerprint: u32,
}

impl Shape {
    fn new(size: &CuckooSize) -> Self {
        Self { buckets: size.buckets, fingerprints: (1 << size.width) - 1, paths: Paths::default() }
    }

    /// Whether buckets of these words are prefetched.
    #[inline(always)]
    fn is_far(&self, words: &[u64]) -> bool {
        self.paths.is_far(size_of_val(words), PREFETCH_FROM_BYTES)
    }

    /// The bucket is the high part of the half, the fingerprint comes from a product that depends on all of it.
    #[inline(always)]
    fn place(&self, half: u64) -> Place {
        let fingerprint = 1 + (((half.wrapping_mul(PHI) >> 32) * self.fingerprints) >> 32) as u32;
        self.around(reduce(half, self.buckets), fingerprint)
    }

    /// Where a fingerprint may be that is found in a bucket.
    #[inline(always)]
    fn around(&self, first: u64, fingerprint: u32) -> Place {
        Place { first, second: self.other(first, fingerprint), fingerprint }
    }

    /// The other bucket of a fingerprint: `sum - bucket` modulo the number of buckets, and therefore its own inverse.
    ///
    /// The number of buckets is even and `sum` is odd, so that a bucket is never its own other: every key has 8 slots. A
    /// product of the fingerprint and a constant would not do for `sum`: the differences of such sums depend on the
    /// difference of two fingerprints only, and with 4 to 8 bits the ways out of a bucket meet again too soon.
    #[inline(always)]
    fn other(&self, bucket: u64, fingerprint: u32) -> u64 {
        let spread = u64::from(fingerprint).wrapping_mul(PHI);
        let sum = 2 * reduce(spread.wrapping_mul(spread | 1), self.buckets / 2) + 1;
        let other = sum.wrapping_sub(bucket);
        select_unpredictable(sum >= bucket, other, other.wrapping_add(self.buckets))
    }
}

/// How buckets are packed, by the length of the fingerprints and the layout.
#[derive(Clone, Copy, Debug)]
enum Packing {
    Narrow(Buckets<u64, false>),
    NarrowSorted(Buckets<u64, true>),
    Wide(Buckets<u128, false>),
    WideSorted(Buckets<u128, true>),
}

impl Packing {
    fn new(size: &CuckooSize) -> Self {
        let width = size.width;
        match (width * SLOTS <= u64::BITS, size.layout) {
            (true, Layout::Fastest) => Self::Narrow(Buckets::new(width)),
            (true, Layout::Compact) => Self::NarrowSorted(Buckets::new(width)),
            (false, Layout::Fastest) => Self::Wide(Buckets::new(width)),
            (false, Layout::Compact) => Self::WideSorted(Buckets::new(width)),
        }
    }

    fn tail(&self) -> u64 {
        match self {
            Self::Narrow(_) | Self::NarrowSorted(_) => Buckets::<u64, false>::tail(),
            Self::Wide(_) | Self::WideSorted(_) => Buckets::<u128, false>::tail(),
        }
    }
}

/// A cuckoo filter.
#[derive(Clone, Debug)]
pub struct Cuckoo {
    words: Words,
    size: CuckooSize,
    shape: Shape,
    packing: Packing,
    hashing: Hashing,
    /// Insert calls; unknown after a merge.
    inserted: Option<u64>,
    /// Slots that are taken.
    used: u64,
    /// Fingerprints moved so far.
    evictions: u64,
    /// The buckets that a search came to; its memory is kept from one insert to the next.
    steps: Vec<u64>,
}

/// Two filters are equal if they have the same size, layout, hashing and slots. The same keys in another order may lie in
/// other slots.
impl PartialEq for Cuckoo {
    fn eq(&self, other: &Self) -> bool {
        self.must_match(other).is_ok() && self.size.layout == other.size.layout && self.words == other.words
    }
}

impl Cuckoo {
    /// An empty filter for so many different keys at such a false-positive rate.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty filter of whatever was asked for.
    ///
    /// # Errors
    /// As for [`new`](Cuckoo::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let mut cuckoo = Self::of_size(spec.cuckoo()?, spec.hashed()?)?;
        cuckoo.shape.paths = spec.paths;
        Ok(cuckoo)
    }

    /// An empty filter with so many slots, rounded up to two whole buckets, and fingerprints of 4 to 32 bits; in the layout
    /// `compact` of 5 to 32. Its capacity is what the slots are good for.
    ///
    /// # Errors
    /// [`SpecError::Bits`] for no or too many slots, [`SpecError::Fingerprint`] for other lengths.
    pub fn with_slots(slots: u64, fingerprint_bits: u32, layout: Layout) -> Result<Self, SpecError> {
        if !cuckoo_widths(layout).contains(&fingerprint_bits) {
            return Err(SpecError::Fingerprint { asked: fingerprint_bits });
        }
        let most = (MAX_BITS / u64::from(SLOTS * fingerprint_bits)).min(1 << (64 - fingerprint_bits));
        let buckets = 2 * slots.div_ceil(2 * u64::from(SLOTS));
        if !(2..=most).contains(&buckets) {
            let asked =
                buckets.saturating_mul(bucket_bits(fingerprint_bits, layout == Layout::Compact).into());
            return Err(SpecError::Bits { asked, limit: MAX_BITS });
        }
        let capacity = math::cuckoo_capacity(buckets);
        let fpr = rate(fingerprint_bits, buckets, capacity);
        let size = CuckooSize { capacity, buckets, width: fingerprint_bits, layout, fpr_asked: fpr, fpr };
        Self::of_size(size, Hashing::default())
    }

    /// Forgets all keys, and hashes those that come so.
    #[must_use]
    pub fn rehashed(mut self, hashing: Hashing) -> Self {
        self.clear();
        self.hashing = hashing;
        self
    }

    fn of_size(size: CuckooSize, hashing: Hashing) -> Result<Self, SpecError> {
        let packing = Packing::new(&size);
        let words = Words::zeroed(words_for(size.bits()) + packing.tail())?;
        Ok(Self::from_parts(words, size, hashing, Some(0), 0))
    }

    fn from_parts(
        words: Words,
        size: CuckooSize,
        hashing: Hashing,
        inserted: Option<u64>,
        used: u64,
    ) -> Self {
        let (shape, packing) = (Shape::new(&size), Packing::new(&size));
        Self { words, size, shape, packing, hashing, inserted, used, evictions: 0, steps: Vec::new() }
    }

    /// Inserts a key. One that is in already gets another copy.
    ///
    /// # Errors
    /// [`Full`] if there is no room for it; then nothing has changed.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Result<Insertion, Full> {
        let half = self.hashing.half_of(key);
        self.put(half)
    }

    /// Whether a key is perhaps in. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.has(self.hashing.half_of(key))
    }

    /// Removes one copy of a key. No key is ever [stuck](Removal::Stuck): there are no counters.
    ///
    /// A key that was never inserted must not be removed: with about the false-positive rate another key that is in
    /// vanishes in its place.
    #[inline]
    pub fn remove(&mut self, key: impl Key) -> Removal {
        let half = self.hashing.half_of(key);
        Removal::removed_if(self.take(half))
    }

    /// How often a key is in: at least as often as it was inserted and not removed, at most 8 times.
    #[must_use]
    pub fn count(&self, key: impl Key) -> u64 {
        self.copies(self.hashing.half_of(key))
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    pub fn contains_all<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.ask(keys, |keys, halves| K::halves(keys, &hashing, halves), hits);
    }

    /// Inserts many keys in order, several at a time in flight.
    ///
    /// # Errors
    /// [`Full`] says how many went in before the one that did not. Those are in, and that one changed nothing.
    pub fn insert_all<K: Key>(&mut self, keys: &[K]) -> Result<(), Full> {
        let hashing = self.hashing;
        self.fill(keys, |keys, halves| K::halves(keys, &hashing, halves), |_| {})
    }

    /// Removes one copy of each of many keys, several at a time in flight; appends one outcome each.
    /// What [`remove`](Cuckoo::remove) says of absent keys holds here.
    pub fn remove_all<K: Key>(&mut self, keys: &[K], removed: &mut Vec<Removal>) {
        let hashing = self.hashing;
        self.drop_all(keys, |keys, halves| K::halves(keys, &hashing, halves), removed);
    }

    #[inline]
    fn has(&self, half: u64) -> bool {
        let place = self.shape.place(half);
        match &self.packing {
            Packing::Narrow(buckets) => is_at(buckets, self.words.as_slice(), place),
            _ => self.has_otherwise(place),
        }
    }

    /// Not inlined, so that callers keep their registers for the common packing.
    #[inline(never)]
    fn has_otherwise(&self, place: Place) -> bool {
        let words = self.words.as_slice();
        match &self.packing {
            Packing::Narrow(buckets) => is_at(buckets, words, place),
            Packing::NarrowSorted(buckets) => is_at(buckets, words, place),
            Packing::Wide(buckets) => is_at(buckets, words, place),
            Packing::WideSorted(buckets) => is_at(buckets, words, place),
        }
    }

    #[inline]
    fn put(&mut self, half: u64) -> Result<Insertion, Full> {
        let place = self.shape.place(half);
        if let Packing::Narrow(buckets) = &self.packing
            && let Some(insertion) = push(buckets, self.words.as_mut_slice(), place)
        {
            self.counted(Counts { inserted: 1, evictions: 0 });
            return Ok(insertion);
        }
        self.put_otherwise(place)
    }

    /// Not inlined, so that callers keep their registers for a key that finds room at once in the common packing.
    #[inline(never)]
    fn put_otherwise(&mut self, place: Place) -> Result<Insertion, Full> {
        let mut table = self.table();
        let (outcome, counts) = (table.put_packed(place), table.counts);
        self.counted(counts);
        outcome.map_err(|refused| self.full(refused, 0))
    }

    #[inline]
    fn take(&mut self, half: u64) -> bool {
        let place = self.shape.place(half);
        let taken = match &self.packing {
            Packing::Narrow(buckets) => take_from(buckets, self.words.as_mut_slice(), place),
            _ => self.take_otherwise(place),
        };
        self.used = self.used.saturating_sub(taken.into());
        taken
    }

    #[inline(never)]
    fn take_otherwise(&mut self, place: Place) -> bool {
        let words = self.words.as_mut_slice();
        match &self.packing {
            Packing::Narrow(buckets) => take_from(buckets, words, place),
            Packing::NarrowSorted(buckets) => take_from(buckets, words, place),
            Packing::Wide(buckets) => take_from(buckets, words, place),
            Packing::WideSorted(buckets) => take_from(buckets, words, place),
        }
    }

    fn copies(&self, half: u64) -> u64 {
        let (words, place) = (self.words.as_slice(), self.shape.place(half));
        match &self.packing {
            Packing::Narrow(buckets) => copies_at(buckets, words, place),
            Packing::NarrowSorted(buckets) => copies_at(buckets, words, place),
            Packing::Wide(buckets) => copies_at(buckets, words, place),
            Packing::WideSorted(buckets) => copies_at(buckets, words, place),
        }
    }

    #[inline(always)]
    fn ask<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [u64]), hits: &mut Vec<bool>) {
        let words = self.words.as_slice();
        match &self.packing {
            Packing::Narrow(buckets) => ask_all(self.shape, buckets, words, keys, hash, hits),
            Packing::NarrowSorted(buckets) => ask_all(self.shape, buckets, words, keys, hash, hits),
            Packing::Wide(buckets) => ask_all(self.shape, buckets, words, keys, hash, hits),
            Packing::WideSorted(buckets) => ask_all(self.shape, buckets, words, keys, hash, hits),
        }
    }

    #[inline(always)]
    fn fill<K>(
        &mut self,
        keys: &[K],
        hash: impl Fn(&[K], &mut [u64]) + Copy,
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Full> {
        let mut table = self.table();
        let mut refused = None;
        for keys in keys.chunks(STRETCH) {
            refused = match table.packing {
                Packing::Narrow(buckets) => table.put_all(&buckets, keys, hash, &mut told),
                Packing::NarrowSorted(buckets) => table.put_all(&buckets, keys, hash, &mut told),
                Packing::Wide(buckets) => table.put_all(&buckets, keys, hash, &mut told),
                Packing::WideSorted(buckets) => table.put_all(&buckets, keys, hash, &mut told),
            };
            if refused.is_some() {
                break;
            }
        }
        let counts = table.counts;
        self.counted(counts);
        refused.map_or(Ok(()), |refused| Err(self.full(refused, counts.inserted)))
    }

    #[inline(always)]
    fn drop_all<K>(&mut self, keys: &[K], hash: impl Fn(&[K], &mut [u64]), removed: &mut Vec<Removal>) {
        let (shape, packing, start) = (self.shape, self.packing, removed.len());
        let words = self.words.as_mut_slice();
        match &packing {
            Packing::Narrow(buckets) => take_all(shape, buckets, words, keys, hash, removed),
            Packing::NarrowSorted(buckets) => take_all(shape, buckets, words, keys, hash, removed),
            Packing::Wide(buckets) => take_all(shape, buckets, words, keys, hash, removed),
            Packing::WideSorted(buckets) => take_all(shape, buckets, words, keys, hash, removed),
        }
        let taken = removed[start..].iter().filter(|removed| removed.is_removed()).count();
        self.used = self.used.saturating_sub(taken as u64);
    }

    #[inline(always)]
    fn table(&mut self) -> Table<'_> {
        let Self { words, shape, packing, used, steps, .. } = self;
        let (words, counts) = (words.as_mut_slice(), Counts::default());
        Table { words, shape: *shape, packing: *packing, used: *used, steps, counts }
    }

    #[inline]
    fn counted(&mut self, Counts { inserted, evictions }: Counts) {
        self.inserted = self.inserted.map(|calls| calls.saturating_add(inserted));
        self.used += inserted;
        self.evictions = self.evictions.saturating_add(evictions);
    }

    #[cold]
    fn full(&self, refused: Refused, inserted: u64) -> Full {
        let (capacity, slots) = (self.size.capacity, self.slots());
        let limit = match refused {
            Refused::Copies => Limit::Copies { most: MOST_COPIES },
            Refused::Repeats => Limit::Repeats { most: MOST_COPIES, used: slots.used, slots: slots.slots },
            Refused::NoWay => Limit::Slots { capacity, used: slots.used, slots: slots.slots },
        };
        Full { limit, inserted }
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        (self.inserted, self.used, self.evictions) = (Some(0), 0, 0);
    }

    /// Bits of all buckets together.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.size.bits()
    }

    /// Bytes of memory, everything included.
    #[must_use]
    pub fn size_in_bytes(&self) -> u64 {
        (size_of::<Self>() + self.words.len() * 8 + self.steps.capacity() * 8) as u64
    }

    /// Bits per fingerprint.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.size.width
    }

    /// Whether its buckets are semi-sorted.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.size.layout
    }

    /// The number of different keys it was made for. More may fit; [`insert`](Cuckoo::insert) tells.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.size.capacity
    }

    /// How many slots there are and are taken, and how often a fingerprint was moved.
    #[must_use]
    pub fn slots(&self) -> Slots {
        let slots = self.size.buckets * u64::from(SLOTS);
        Slots { slots, used: self.used, evictions: Some(self.evictions) }
    }

    /// The fingerprint of a key and the two buckets that it may be in.
    ///
    /// ```
    /// let mut online = mayhap::Cuckoo::new(100, 0.01)?;
    /// online.insert("alice")?;
    /// let (fingerprint, buckets) = online.place("alice");
    /// let held = buckets.map(|bucket| online.bucket(bucket).is_some_and(|slots| slots.contains(&fingerprint)));
    /// assert!(held[0] || held[1]);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    #[must_use]
    pub fn place(&self, key: impl Key) -> (u32, [u64; 2]) {
        let Place { first, second, fingerprint } = self.shape.place(self.hashing.half_of(key));
        (fingerprint, [first, second])
    }

    /// The number of buckets.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.size.buckets
    }

    /// The fingerprints in a bucket, 0 for an empty slot; `None` behind the last bucket.
    #[must_use]
    pub fn bucket(&self, bucket: u64) -> Option<[u32; SLOTS as usize]> {
        (bucket < self.size.buckets).then(|| self.slots_of(bucket))
    }

    /// The buckets, as `docs/format.md` has them.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// How keys are hashed.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// How many keys went in, repeats included and also those that were removed since. `None` after a merge.
    #[must_use]
    pub fn inserted(&self) -> Option<u64> {
        self.inserted
    }

    /// The false-positive rate of the filter as it is: of a small one from its fingerprints, of a large one from how many there
    /// are.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        if self.size.buckets > LOOKED_AT_BUCKETS {
            return rate(self.size.width, self.size.buckets, self.used);
        }
        // A key is admitted if its fingerprint is in one of its buckets, each of which may be its first.
        let mut admitted = Vec::new();
        for bucket in 0..self.size.buckets {
            for fingerprint in self.slots_of(bucket).into_iter().filter(|&fingerprint| fingerprint > 0) {
                admitted.push((bucket, fingerprint));
                admitted.push((self.shape.other(bucket, fingerprint), fingerprint));
            }
        }
        admitted.sort_unstable();
        admitted.dedup();
        admitted.len() as f64 / (self.size.buckets as f64 * self.shape.fingerprints as f64)
    }

    /// The false-positive rate with as many keys as it was made for.
    #[must_use]
    pub fn fpr_at_capacity(&self) -> f64 {
        self.size.fpr
    }

    /// Whether `other` can be merged with this one, if there is room. Layouts may differ.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        let (ours, theirs) = (&self.size, &other.size);
        if ours.width != theirs.width {
            return Err(Mismatch::Fingerprints { ours: ours.width, theirs: theirs.width });
        }
        if ours.buckets != theirs.buckets {
            return Err(Mismatch::Buckets { ours: ours.buckets, theirs: theirs.buckets });
        }
        self.hashing.must_equal(&other.hashing)
    }

    /// Union: afterwards this filter holds every key of both, as often as both together had it. Nobody's keys are needed:
    /// their fingerprints are inserted.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference, or [`Mismatch::Full`] says that there is no room; then nothing has
    /// changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        if self.used.saturating_add(other.used) > self.slots().slots {
            return Err(Mismatch::Full(self.full(Refused::NoWay, 0)));
        }
        // A copy, which becomes the filter when all have found room.
        let ours = self.words.as_slice();
        let mut words =
            Words::zeroed(ours.len() as u64).map_err(|no| Mismatch::Memory { bytes: no.bytes })?;
        words.as_mut_slice().copy_from_slice(ours);
        let mut steps = Vec::new();
        let mut table = Table {
            words: words.as_mut_slice(),
            shape: self.shape,
            packing: self.packing,
            used: self.used,
            steps: &mut steps,
            counts: Counts::default(),
        };
        for bucket in 0..other.size.buckets {
            for fingerprint in other.slots_of(bucket).into_iter().filter(|&fingerprint| fingerprint != 0) {
                let place = self.shape.around(bucket, fingerprint);
                table.put_packed(place).map_err(|refused| Mismatch::Full(self.full(refused, 0)))?;
            }
        }
        let counts = table.counts;
        self.words = words;
        self.counted(counts);
        self.inserted = None;
        self.size.capacity = self.size.capacity.max(other.size.capacity);
        self.size.fpr = rate(self.size.width, self.size.buckets, self.size.capacity);
        Ok(())
    }

    /// The fingerprints in a bucket that there is; 0 is an empty slot.
    fn slots_of(&self, bucket: u64) -> [u32; SLOTS as usize] {
        let words = self.words.as_slice();
        match &self.packing {
            Packing::Narrow(buckets) => buckets.slots(buckets.load(words, bucket)),
            Packing::NarrowSorted(buckets) => buckets.slots(buckets.load(words, bucket)),
            Packing::Wide(buckets) => buckets.slots(buckets.load(words, bucket)),
            Packing::WideSorted(buckets) => buckets.slots(buckets.load(words, bucket)),
        }
    }

    /// Whether all buckets are as this library writes them.
    fn is_written(&self) -> bool {
        let words = self.words.as_slice();
        (0..self.size.buckets).all(|bucket| match &self.packing {
            Packing::Narrow(buckets) => buckets.is_written(words, bucket),
            Packing::NarrowSorted(buckets) => buckets.is_written(words, bucket),
            Packing::Wide(buckets) => buckets.is_written(words, bucket),
            Packing::WideSorted(buckets) => buckets.is_written(words, bucket),
        })
    }

    fn counted_slots(&self) -> u64 {
        let taken = |bucket| self.slots_of(bucket).iter().filter(|&&slot| slot != 0).count() as u64;
        (0..self.size.buckets).map(taken).sum()
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
        header.must_probe_by(Probing::Cuckoo)?;
        header.must_be_hashed(hashing)?;
        let mut fields = Fields::new(&header.params);
        let buckets = fields.u64("buckets")?;
        let width = fields.u32("bits of a fingerprint")?;
        let bits = fields.u32("bits of a bucket")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let evictions = fields.u64("evictions")?;
        fields.end("parameters", header.params.len())?;
        let known = |layout: &Layout| cuckoo_widths(*layout).contains(&width);
        let mut layouts = Layout::ALL.into_iter().filter(known).peekable();
        if layouts.peek().is_none() {
            return Err(DecodeError::Value { field: "bits of a fingerprint", found: width.into() });
        }
        let layout = layouts
            .find(|&layout| bucket_bits(width, layout == Layout::Compact) == bits)
            .ok_or(DecodeError::Value { field: "bits of a bucket", found: bits.into() })?;
        let most = (MAX_BITS / u64::from(bits)).min(1 << (64 - width));
        if !(2..=most).contains(&buckets) || !buckets.is_multiple_of(2) {
            return Err(DecodeError::Value { field: "buckets", found: buckets });
        }
        let fpr = rate(width, buckets, capacity);
        let size = CuckooSize { capacity, buckets, width, layout, fpr_asked, fpr };
        let (filled, tail) = (words_for(size.bits()), Packing::new(&size).tail());
        let (expected, found) = ((filled + tail) * 8, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let words = Words::from_bytes(payload)
            .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
        let behind = size.bits() % 64;
        let (slots, tail) = words.as_slice().split_at(index(filled));
        let last = slots.last().filter(|_| behind > 0).map_or(0, |last| last >> behind);
        if last != 0 || tail.iter().any(|&word| word != 0) {
            return Err(DecodeError::Padding { field: "end of the payload" });
        }
        let mut cuckoo = Self::from_parts(words, size, hashing, frame.header.inserted, 0);
        cuckoo.evictions = evictions;
        // Looked at only when the whole payload is read anyway, so that a large file opens by its header. What no writer
        // gives may then be answered wrongly, and does no harm.
        if frame.verified && !cuckoo.is_written() {
            return Err(DecodeError::Payload { problem: "a bucket that no writer gives" });
        }
        cuckoo.used = match frame.header.ones {
            Some(found)
                if found > cuckoo.slots().slots || (frame.verified && found != cuckoo.counted_slots()) =>
            {
                return Err(DecodeError::Value { field: "occupied slots", found });
            }
            Some(used) => used,
            None => cuckoo.counted_slots(),
        };
        Ok(cuckoo)
    }
}

/// The rate with so many slots taken.
fn rate(width: u32, buckets: u64, used: u64) -> f64 {
    math::cuckoo_fpr(width, used as f64 / (buckets * u64::from(SLOTS)) as f64)
}

#[inline(always)]
fn is_at<L: Lanes, const SORTED: bool>(buckets: &Buckets<L, SORTED>, words: &[u64], place: Place) -> bool {
    // Both are read at once: which of the two has it is a coin that no branch predictor knows.
    let (first, second) = (buckets.peek(words, place.first), buckets.peek(words, place.second));
    buckets.either_has(first, second, place.fingerprint)
}

fn copies_at<L: Lanes, const SORTED: bool>(buckets: &Buckets<L, SORTED>, words: &[u64], place: Place) -> u64 {
    let slots = [place.first, place.second].map(|bucket| buckets.slots(buckets.load(words, bucket)));
    slots.as_flattened().iter().filter(|&&slot| slot == place.fingerprint).count() as u64
}

/// Takes a fingerprint in, if one of its buckets has room: the emptier one. No branches that depend on what is in them.
#[inline(always)]
fn push<L: Lanes, const SORTED: bool>(
    buckets: &Buckets<L, SORTED>,
    words: &mut [u64],
    place: Place,
) -> Option<Insertion> {
    let (first, second) = (buckets.load(words, place.first), buckets.load(words, place.second));
    let known = buckets.either_has(first, second, place.fingerprint);
    // The emptier bucket is the smaller number; if that one is full, both are.
    let emptier = select_unpredictable(second < first, place.second, place.first);
    let lanes = select_unpredictable(second < first, second, first);
    if buckets.is_full(lanes) {
        return None;
    }
    buckets.store(words, emptier, buckets.with(lanes, place.fingerprint));
    Some(Insertion::new_if(!known))
}

/// Removes one copy, and says whether there was one.
#[inline(always)]
fn take_from<L: Lanes, const SORTED: bool>(
    buckets: &Buckets<L, SORTED>,
    words: &mut [u64],
    place: Place,
) -> bool {
    let (first, second) = (buckets.load(words, place.first), buckets.load(words, place.second));
    let Some((lanes, is_second)) = buckets.without(first, second, place.fingerprint) else { return false };
    let bucket = select_unpredictable(is_second, place.second, place.first);
    buckets.store(words, bucket, lanes);
    true
}

/// Hashes a batch of keys, asks for both buckets of each, and hands the places of the batch before over; until all keys
/// are done.
#[inline(always)]
fn in_flight<S: AsRef<[u64]> + ?Sized, L: Lanes, const SORTED: bool, K>(
    state: &mut S,
    shape: Shape,
    buckets: &Buckets<L, SORTED>,
    keys: &[K],
    hash: impl Fn(&[K], &mut [u64]),
    act: impl FnMut(&mut S, &[Place]),
) {
    let far = shape.is_far(state.as_ref());
    let place = |keys: &[K], places: &mut [Place]| {
        let mut halves = [0; BATCH];
        let halves = &mut halves[..keys.len()];
        hash(keys, halves);
        for (place, &half) in places.iter_mut().zip(&*halves) {
            *place = shape.place(half);
        }
    };
    let prefetch = |state: &S, place: Place| {
        buckets.prefetch(state.as_ref(), place.first);
        buckets.prefetch(state.as_ref(), place.second);
    };
    batch::pipeline(state, keys, place, far, prefetch, act);
}

/// The halves that matter, of keys that are hashed already.
fn first_halves(digests: &[Digest], halves: &mut [u64]) {
    for (half, digest) in halves.iter_mut().zip(digests) {
        *half = digest.a;
    }
}

#[inline(always)]
fn ask_all<L: Lanes, const SORTED: bool, K>(
    shape: Shape,
    buckets: &Buckets<L, SORTED>,
    mut words: &[u64],
    keys: &[K],
    hash: impl Fn(&[K], &mut [u64]),
    hits: &mut Vec<bool>,
) {
    let start = hits.len();
    hits.resize(start + keys.len(), false);
    let mut left = &mut hits[start..];
    in_flight(&mut words, shape, buckets, keys, hash, |words, places| {
        let hits = left.split_off_mut(..places.len()).expect("one answer per key");
        for (hit, &place) in hits.iter_mut().zip(places) {
            *hit = is_at(buckets, words, place);
        }
    });
}

#[inline(always)]
fn take_all<L: Lanes, const SORTED: bool, K>(
    shape: Shape,
    buckets: &Buckets<L, SORTED>,
    mut words: &mut [u64],
    keys: &[K],
    hash: impl Fn(&[K], &mut [u64]),
    removed: &mut Vec<Removal>,
) {
    let start = removed.len();
    removed.resize(start + keys.len(), Removal::Absent);
    let mut left = &mut removed[start..];
    in_flight(&mut words, shape, buckets, keys, hash, |words, places| {
        let removed = left.split_off_mut(..places.len()).expect("one answer per key");
        for (removed, &place) in removed.iter_mut().zip(places) {
            *removed = Removal::removed_if(take_from(buckets, words, place));
        }
    });
}

/// Why a fingerprint was not taken in.
#[derive(Clone, Copy, Debug)]
enum Refused {
    /// All slots of both its buckets have the very same one.
    Copies,
    /// No way to a free slot was found in a table that has many, and the buckets on the way hold the same one again and
    /// again.
    Repeats,
    /// No way to a free slot was found.
    NoWay,
}

/// What inserts have changed.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    inserted: u64,
    evictions: u64,
}

/// A search starts at two buckets, its first steps. The step at `START + 4 i + s` leads from the bucket of step `i` to the
/// other bucket of the fingerprint in its slot `s`.
const START: usize = 2;

/// So many full buckets are followed to the other buckets of their fingerprints, before the search gives up. With fewer, a
/// large table refuses keys at 95 % or below: 64 stop at 94 to 95 % of ten million keys, 128 at 95 to 96 % of a hundred
/// million, 512 at 97 % of both (simulated).
const MOST_FOLLOWED: usize = 512;

/// At most so many are followed together: they lead to 48 cache lines, more than a processor has on the way at a time.
const MOST_AT_ONCE: usize = 12;

/// The buckets of a filter while keys are put in.
struct Table<'a> {
    words: &'a mut [u64],
    shape: Shape,
    packing: Packing,
    /// Slots that were taken before.
    used: u64,
    steps: &'a mut Vec<u64>,
    counts: Counts,
}

impl AsRef<[u64]> for Table<'_> {
    #[inline(always)]
    fn as_ref(&self) -> &[u64] {
        self.words
    }
}

impl Table<'_> {
    /// Takes a fingerprint in, or leaves everything as it was.
    #[inline(always)]
    fn put<L: Lanes, const SORTED: bool>(
        &mut self,
        buckets: &Buckets<L, SORTED>,
        place: Place,
    ) -> Result<Insertion, Refused> {
        let insertion = match push(buckets, self.words, place) {
            Some(insertion) => insertion,
            None => self.make_room(buckets, place)?,
        };
        self.counts.inserted += 1;
        Ok(insertion)
    }

    fn put_packed(&mut self, place: Place) -> Result<Insertion, Refused> {
        match self.packing {
            Packing::Narrow(buckets) => self.put(&buckets, place),
            Packing::NarrowSorted(buckets) => self.put(&buckets, place),
            Packing::Wide(buckets) => self.put(&buckets, place),
            Packing::WideSorted(buckets) => self.put(&buckets, place),
        }
    }

    fn is_crowded(&self) -> bool {
        self.used + self.counts.inserted > 3 * self.shape.buckets
    }

    /// Many keys in order, until one is refused.
    #[inline(always)]
    fn put_all<L: Lanes, const SORTED: bool, K>(
        &mut self,
        buckets: &Buckets<L, SORTED>,
        keys: &[K],
        hash: impl Fn(&[K], &mut [u64]),
        told: &mut impl FnMut(Insertion),
    ) -> Option<Refused> {
        let mut refused = None;
        in_flight(self, self.shape, buckets, keys, hash, |table, places| {
            // Below three quarters few keys need a search.
            if table.shape.is_far(table.words) && table.is_crowded() {
                places.iter().for_each(|&place| table.look_ahead(buckets, place));
            }
            for &place in places {
                if refused.is_some() {
                    return;
                }
                match table.put(buckets, place) {
                    Ok(insertion) => told(insertion),
                    Err(no) => refused = Some(no),
                }
            }
        });
        refused
    }

    /// Both buckets are full. Looks for the shortest way along which fingerprints can move to their other buckets, up to
    /// a bucket with a free slot; moves them, from the end of the way; and takes the new one in.
    ///
    /// The first bucket with room that a breadth-first search comes to ends a shortest way, and no bucket is twice on it:
    /// what follows its second visit could have followed the first. So every slot on the way still holds what it held
    /// when it was looked at.
    #[inline(never)]
    fn make_room<L: Lanes, const SORTED: bool>(
        &mut self,
        buckets: &Buckets<L, SORTED>,
        place: Place,
    ) -> Result<Insertion, Refused> {
        let known = is_at(buckets, self.words, place);
        let found = self.search(buckets, place).ok_or_else(|| self.why_not(buckets, place))?;
        let (mut step, mut free) = (found, None);
        loop {
            let way = step.checked_sub(START).map(|from| (from / SLOTS as usize, small_len(from) % SLOTS));
            // What comes into this bucket: out of the one before it on the way, or the new one at its start.
            let moved = way.map_or(place.fingerprint, |(before, slot)| {
                buckets.slot(buckets.load(self.words, self.steps[before]), slot)
            });
            let lanes = buckets.load(self.words, self.steps[step]);
            let lanes = free.map_or(buckets.with(lanes, moved), |slot| buckets.replaced(lanes, slot, moved));
            buckets.store(self.words, self.steps[step], lanes);
            let Some((before, slot)) = way else { return Ok(Insertion::new_if(!known)) };
            self.counts.evictions += 1;
            (step, free) = (before, Some(slot));
        }
    }

    /// Why a search has come to no free slot. Different keys fill a table to far more than nine tenths before one of them
    /// is refused; with fewer slots taken it is repeats that fill the buckets that the search came to.
    #[cold]
    fn why_not<L: Lanes, const SORTED: bool>(&self, buckets: &Buckets<L, SORTED>, place: Place) -> Refused {
        if copies_at(buckets, self.words, place) == MOST_COPIES {
            return Refused::Copies;
        }
        let (used, slots) = (self.used + self.counts.inserted, self.shape.buckets * u64::from(SLOTS));
        let repeats = |&bucket: &u64| {
            let [a, b, c, d] = buckets.slots(buckets.load(self.words, bucket));
            a == b || a == c || a == d || b == c || b == d || c == d
        };
        let is_not_full = used.saturating_mul(10) < slots.saturating_mul(9);
        if is_not_full && self.steps.iter().any(repeats) { Refused::Repeats } else { Refused::NoWay }
    }

    /// The step that comes to a bucket with a free slot.
    #[inline(always)]
    fn search<L: Lanes, const SORTED: bool>(
        &mut self,
        buckets: &Buckets<L, SORTED>,
        place: Place,
    ) -> Option<usize> {
        self.steps.clear();
        self.steps.extend([place.first, place.second]);
        let (mut followed, mut looked_at) = (0, START);
        while followed < MOST_FOLLOWED {
            // Several together, so that their cache lines are on their way together; more each time.
            let until = (followed + (2 * followed).clamp(START, MOST_AT_ONCE)).min(MOST_FOLLOWED);
            for step in followed..until {
                let others = self.others(buckets, self.steps[step]);
                self.steps.extend(others);
            }
            followed = until;
            while let Some(&bucket) = self.steps.get(looked_at) {
                if !buckets.is_full(buckets.load(self.words, bucket)) {
                    return Some(looked_at);
                }
                looked_at += 1;
            }
        }
        None
    }

    /// The other buckets of the fingerprints in a full bucket, whose cache lines are asked for.
    #[inline(always)]
    fn others<L: Lanes, const SORTED: bool>(
        &self,
        buckets: &Buckets<L, SORTED>,
        bucket: u64,
    ) -> [u64; SLOTS as usize] {
        buckets.slots(buckets.load(self.words, bucket)).map(|fingerprint| {
            let other = self.shape.other(bucket, fingerprint);
            buckets.prefetch(self.words, other);
            other
        })
    }

    /// Asks for the buckets that a search for room will look at first, if there is going to be one.
    #[inline(always)]
    fn look_ahead<L: Lanes, const SORTED: bool>(&self, buckets: &Buckets<L, SORTED>, place: Place) {
        let is_full = |bucket| buckets.is_full(buckets.load(self.words, bucket));
        if is_full(place.first) && is_full(place.second) {
            self.others(buckets, place.first);
            self.others(buckets, place.second);
        }
    }
}

impl Filter for Cuckoo {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.has(digest.a)
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        self.ask(digests, first_halves, hits);
    }
}

impl Insert for Cuckoo {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        self.put(digest.a)
    }

    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        self.fill(digests, first_halves, |outcome| outcomes.push(outcome))
    }
}

impl Remove for Cuckoo {
    fn remove_digest(&mut self, digest: Digest) -> Removal {
        Removal::removed_if(self.take(digest.a))
    }

    fn remove_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Removal>) {
        self.drop_all(digests, first_halves, outcomes);
    }
}

impl Count for Cuckoo {
    fn count_digest(&self, digest: Digest) -> u64 {
        self.copies(digest.a)
    }
}

impl Merge for Cuckoo {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.merge(family::same_type(self, other)?)
    }
}

impl AnyFilter for Cuckoo {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: Paths) {
        self.shape.paths = paths;
    }

    fn layout(&self) -> Option<Layout> {
        Some(self.layout())
    }

    fn slots(&self) -> Option<Slots> {
        Some(self.slots())
    }

    fn report(&self) -> Report {
        Report {
            capacity: self.size.capacity,
            inserted: self.inserted,
            estimated_len: Some(self.used as f64),
            bits: self.bits(),
            probes: None,
            fill: self.slots().load(),
            fpr_asked: self.size.fpr_asked,
            fpr_now: self.fpr(),
            fpr_interval: None,
            fpr_at_capacity: self.size.fpr,
            guarantee: Guarantee::NoFalseNegativesIfDeletesValid,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        let CuckooSize { capacity, buckets, width, layout, fpr_asked, .. } = self.size;
        out.probing(Probing::Cuckoo);
        out.counts(self.inserted, self.used);
        out.params().u64(buckets).u32(width).u32(bucket_bits(width, layout == Layout::Compact));
        out.params().u64(capacity).f64(fpr_asked).u64(self.evictions);
        out.words(&self.words);
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.contains_all(keys, hits);
    }

    fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Error> {
        let hashing = self.hashing;
        let hash = |keys: &[&[u8]], halves: &mut [u64]| Key::halves(keys, &hashing, halves);
        Ok(self.fill(keys, hash, |outcome| outcomes.push(outcome))?)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(buckets: u64, width: u32) -> Shape {
        Shape { buckets, fingerprints: (1 << width) - 1, paths: Paths::default() }
    }

    #[test]
    fn the_other_bucket_of_the_other_bucket_is_the_bucket() {
        for buckets in [2, 4, 6, 50, 1000, 65_536, 263_158, (1 << 32) - 2, 1 << 32, (1 << 44) - 2] {
            let shape = shape(buckets, 32);
            for i in 0..2000u64 {
                let spread = i.wrapping_mul(0xD6E8_FEB8_6659_FD93);
                let (bucket, fingerprint) =
                    (reduce(spread, buckets), 1 + (i as u32).wrapping_mul(1 << 21 | i as u32));
                let other = shape.other(bucket, fingerprint);
                assert!(
                    other < buckets && other != bucket,
                    "{buckets} buckets, {fingerprint}: {bucket} and {other}"
                );
                assert_eq!(shape.other(other, fingerprint), bucket);
            }
        }
        // All of a small one.
        for width in 4..=9 {
            for buckets in [2, 4, 10, 38] {
                let shape = shape(buckets, width);
                for fingerprint in 1..1 << width {
                    let others = (0..buckets).map(|bucket| shape.other(bucket, fingerprint));
                    assert!(others.enumerate().all(|(bucket, other)| {
                        other < buckets
                            && other % 2 != bucket as u64 % 2
                            && shape.other(other, fingerprint) == bucket as u64
                    }));
                }
            }
        }
    }

    /// A fingerprint is never 0, reaches its largest value, and does not tell the bucket.
    #[test]
    fn fingerprints_are_spread_evenly_and_apart_from_buckets() {
        for (width, buckets) in [(4, 6u64), (8, 1000), (12, 1 << 20), (32, 2)] {
            let shape = shape(buckets, width);
            let mut slices = [[0u64; 4]; 15];
            let keys = 60_000;
            for key in 0..keys {
                let half = Hashing::default().half_of(key);
                let Place { first, fingerprint, .. } = shape.place(half);
                let share = u128::from(fingerprint - 1) * 15 / u128::from(shape.fingerprints);
                slices[share as usize][reduce(half, 4) as usize] += 1;
                assert!(fingerprint > 0 && u64::from(fingerprint) <= shape.fingerprints && first < buckets);
            }
            // 60,000 throws into 60 cells: chi-square with 59 degrees of freedom exceeds 140 with a chance of 1e-8.
            // Cells of 8 and 12 bits differ in size by 0 and 1 in 4095 / 15.
            let chi: f64 = slices
                .as_flattened()
                .iter()
                .map(|&c| (c as f64 - 1000.0) * (c as f64 - 1000.0) / 1000.0)
                .sum();
            assert!(chi < 140.0, "{width} bits: {chi}");
            // The ends of the range.
            assert_eq!(shape.place(0).fingerprint, 1);
            let last = PHI_INVERSE.wrapping_mul(u64::MAX);
            assert_eq!(u64::from(shape.place(last).fingerprint), shape.fingerprints);
        }
    }

    /// `PHI * PHI_INVERSE` is 1 modulo 2^64.
    const PHI_INVERSE: u64 = 0xF1DE_83E1_9937_733D;

    #[test]
    fn a_search_moves_fingerprints_along_the_shortest_way() {
        // Four buckets of 8 bits. The fingerprints are chosen by their other bucket.
        let size = Cuckoo::with_slots(16, 8, Layout::Fastest).unwrap().size;
        let shape = Shape::new(&size);
        let to = |from: u64, bucket: u64, nth: usize| {
            (1..256).filter(|&fingerprint| shape.other(from, fingerprint) == bucket).nth(nth).unwrap()
        };
        let mut cuckoo = Cuckoo::with_slots(16, 8, Layout::Fastest).unwrap();
        let buckets = Buckets::<u64, false>::new(8);
        let fill = |cuckoo: &mut Cuckoo, bucket: u64, slots: &[u32]| {
            for &fingerprint in slots {
                let lanes = buckets.load(cuckoo.words.as_slice(), bucket);
                buckets.store(cuckoo.words.as_mut_slice(), bucket, buckets.with(lanes, fingerprint));
            }
        };
        // Buckets 0 and 1 point at each other only, but for one slot of 0 that points at 3. That one is full and has
        // one slot that points at 2, which has room.
        let cycle = to(0, 1, 0);
        let out = to(0, 3, 0);
        let end = to(3, 2, 0);
        fill(&mut cuckoo, 0, &[cycle, out, cycle, cycle]);
        fill(&mut cuckoo, 1, &[cycle; 4]);
        fill(&mut cuckoo, 3, &[out, out, end, out]);
        cuckoo.used = 12;
        let place = shape.around(0, cycle);
        assert_eq!((place.first, place.second), (0, 1));
        let mut table = cuckoo.table();
        assert!(matches!(table.put(&buckets, place), Ok(Insertion::Perhaps)));
        let counts = table.counts;
        assert_eq!((counts.inserted, counts.evictions), (1, 2));
        let sorted = |bucket| {
            let mut slots = cuckoo.slots_of(bucket);
            slots.sort_unstable();
            slots
        };
        assert_eq!(sorted(0), [cycle; 4]);
        assert_eq!(sorted(1), [cycle; 4]);
        assert_eq!(sorted(3), [out; 4]);
        assert_eq!(sorted(2), [0, 0, 0, end]);
        // Now they are full of copies, and a ninth changes nothing.
        let before = cuckoo.words.clone();
        assert!(matches!(cuckoo.table().put(&buckets, place), Err(Refused::Copies)));
        assert_eq!(cuckoo.words, before);
    }
}
