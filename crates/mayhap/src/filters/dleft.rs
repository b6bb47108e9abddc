//! d-left counting Bloom filter: keys can be removed, in less than half the space of `counting`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::batch::{BATCH, pipeline};
use crate::bits::{BucketsMut, BucketsRef, CountedBuckets, words_for};
use crate::cell_lanes::{CellShape, FourPlaces, MAX_WIDTH};
use crate::error::{DecodeError, Full, Knob, Limit, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{Cost, CounterReport, Details, Family, Guarantee, Make, Profile, Slots, Space};
use crate::hash::{Digest, Hashing};
use crate::math;
use crate::narrow::{index, small_len};
use crate::paths::Paths;
use crate::probing::{Probing, reduce};
use crate::rates::Rate;
use crate::shell::{self, Counts, Empty, Inserts, Kernel, Merges, Removes, filter};
use crate::spec::{MAX_BITS, Plan, Size, Spec};
use crate::traits::{Insertion, Removal};
use crate::wire::{Fields, Frame, Writer};

/// The family `dleft`.
pub(crate) static FAMILY: Family = Family {
    id: 8,
    name: "dleft",
    summary: "keys can be removed: half the size of counting",
    can: Dleft::CAN,
    knobs: &[
        Knob::Fpr.between(DLEFT_MIN_FPR, 1.0),
        Knob::CounterBits.within(*COUNTER_BITS.start(), *COUNTER_BITS.end()),
    ],
    probing: &[PROBING],
    cost: Cost { query: "O(1)", insert: "O(1)", space: "1.33 n (log2(1/p) + 6.6) and up" },
    make: Make::Empty(|spec| Ok(Box::new(Dleft::from_spec(spec)?))),
    shared: None,
    plan: |spec| Ok(spec.dleft()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Dleft::decode(frame, hashing)?)),
    // An insert may fail, and a remove that is made twice lowers a counter twice.
    in_place: false,
    profile: Profile {
        space: Some(Space { per_key: |bits| 1.333 * (bits + 6.6), less: 0.0, more: 1.34 }),
        is_ordered: true,
        has_kernels: true,
        ..Profile::USUAL
    },
};

/// A bucket and a remainder in each of four subtables, from a fingerprint.
const PROBING: Probing = Probing::new(8, "dleft");

/// The numbers of a d-left filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DleftSize {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// The buckets of each of its four subtables, of eight cells each.
    pub buckets: u64,
    /// Bits of the remainder in each cell.
    pub remainder_bits: u32,
    /// Bits of the counter in each cell.
    pub counter_bits: u32,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl DleftSize {
    /// All cells of all subtables.
    #[must_use]
    pub const fn cells(&self) -> u64 {
        self.buckets.saturating_mul(SUBTABLES as u64 * SLOTS as u64)
    }

    /// The bits of all cells together.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.cells().saturating_mul((self.remainder_bits + self.counter_bits) as u64)
    }
}

impl Size for DleftSize {
    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(small_len(SUBTABLES)) }
    }
}

/// Bits of a counter.
const COUNTER_BITS: RangeInclusive<u32> = 2..=8;

/// Two bits count the different keys that share a fingerprint: more than two hardly ever do.
const DEFAULT_COUNTER_BITS: u32 = 2;

/// Bits of a remainder, which lies in one lane with the widest counter.
const REMAINDER_BITS: RangeInclusive<u32> = 2..=MAX_WIDTH - *COUNTER_BITS.end();

/// The lowest rate that a full d-left filter reaches, with the longest remainders.
pub const DLEFT_MIN_FPR: f64 = math::DLEFT_KEYS as f64 / (1u64 << *REMAINDER_BITS.end()) as f64;

impl Spec {
    /// Solves for what is not requested, for a d-left filter: the remainders and the number of buckets that take the
    /// fewest bits.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(1_000_000, 0.01).dleft()?;
    /// assert_eq!((sized.buckets, sized.remainder_bits, sized.counter_bits), (41_667, 12, 2));
    /// assert!(sized.fpr < 0.006); // the next shorter remainder would take more buckets and more bits
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn dleft(&self) -> Result<DleftSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let counter_bits = asked.counter_bits.unwrap_or(DEFAULT_COUNTER_BITS);
        let size = |capacity: u64, buckets: u64, remainder_bits: u32| {
            let fpr = math::dleft_fpr(buckets, remainder_bits, capacity as f64);
            let fpr_asked = asked.fpr.unwrap_or(fpr);
            DleftSize { capacity, buckets, remainder_bits, counter_bits, fpr_asked, fpr }
        };
        let fit = |memory: u64, bits: u32| memory / size(1, 1, bits).bits();
        asked.solved(
            |n, p| {
                let sizes = REMAINDER_BITS.map(|bits| size(n, math::dleft_buckets(n, p, bits), bits));
                sizes.min_by_key(DleftSize::bits)
            },
            // The lowest rate that the bits give, with room for all keys.
            |n, memory, p| {
                let sizes = REMAINDER_BITS.map(|bits| size(n, fit(memory, bits), bits));
                sizes
                    .filter(|size| size.buckets >= n.div_ceil(math::DLEFT_KEYS))
                    .min_by(|one, other| one.fpr.total_cmp(&other.fpr))
                    .filter(|size| p.is_none_or(|p| size.fpr <= p))
            },
            |memory, p| {
                let of = |bits| {
                    let buckets = fit(memory, bits);
                    size(math::dleft_capacity(buckets, p, bits), buckets, bits)
                };
                REMAINDER_BITS.map(of).max_by_key(|size| size.capacity).filter(|size| size.capacity > 0)
            },
        )
    }
}

/// Subtables: with four, six keys for eight cells leave no bucket too full.
const SUBTABLES: usize = 4;

/// Cells of a bucket.
const SLOTS: u32 = 8;

/// Filters smaller than this stay in the second-level cache, where prefetching costs more than it
/// brings.
const PREFETCH_FROM_BYTES: usize = 256 * 1024;

/// What makes the bijections of the subtables differ: odd numbers with irregular bits, the fractional parts of the
/// square roots of primes. The first is the identity.
const STIR_REMAINDER: [u64; SUBTABLES] =
    [0, 0x3C6E_F372_FE94_F82B, 0x510E_527F_ADE6_82D1, 0x1F83_D9AB_FB41_BD6B];
const STIR_BUCKET: [u64; SUBTABLES] =
    [0, 0xA54F_F53A_5F1D_36F1, 0x9B05_688C_2B3E_6C1F, 0x5BE0_CD19_137E_2179];

/// A bucket among those of a subtable, and a remainder: a fingerprint, or what a bijection makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    bucket: u64,
    remainder: u64,
}

impl Fingerprint {
    /// The bucket from the high bits of the digest's first half, the remainder from those of its second.
    #[inline(always)]
    const fn new(digest: Digest, size: &DleftSize) -> Self {
        Self { bucket: reduce(digest.a, size.buckets), remainder: digest.b >> (64 - size.remainder_bits) }
    }

    /// What the bijection of a subtable makes of it: first the remainder is changed by the bucket, then the bucket by
    /// the remainder.
    #[inline(always)]
    const fn within(self, subtable: usize, size: &DleftSize) -> Self {
        let remainder =
            self.remainder ^ self.bucket.wrapping_mul(STIR_REMAINDER[subtable]) >> (64 - size.remainder_bits);
        let bucket = self.bucket + turn(remainder, subtable, size);
        Self { bucket: if bucket < size.buckets { bucket } else { bucket - size.buckets }, remainder }
    }

    /// The fingerprint of which the bijection of a subtable makes this: both steps back.
    const fn recovered(self, subtable: usize, size: &DleftSize) -> Self {
        let back = size.buckets - turn(self.remainder, subtable, size);
        let bucket = (self.bucket + back) % size.buckets;
        let remainder =
            self.remainder ^ bucket.wrapping_mul(STIR_REMAINDER[subtable]) >> (64 - size.remainder_bits);
        Self { bucket, remainder }
    }

    /// In all subtables.
    #[inline(always)]
    fn places(self, size: &DleftSize) -> FourPlaces {
        let mut places = FourPlaces::default();
        for subtable in 0..SUBTABLES {
            let Self { bucket, remainder } = self.within(subtable, size);
            places.buckets[subtable] = subtable as u64 * size.buckets + bucket;
            places.remainders[subtable] = remainder;
        }
        places
    }
}

/// By how many buckets a remainder turns a subtable.
#[inline(always)]
const fn turn(remainder: u64, subtable: usize, size: &DleftSize) -> u64 {
    reduce(remainder.wrapping_mul(STIR_BUCKET[subtable]), size.buckets)
}

impl FourPlaces {
    #[inline(always)]
    fn are_in(&self, paths: Paths, cells: BucketsRef<'_>) -> bool {
        let mut hit = [false];
        cells.any_each(paths, core::slice::from_ref(self), &mut hit);
        hit[0]
    }

    /// The bit where the cell of the fingerprint starts.
    #[inline(always)]
    fn find(&self, cells: BucketsRef<'_>) -> Option<u64> {
        let looks = cells.look(&self.buckets, &self.remainders);
        let subtable = looks.iter().position(|look| look.found)?;
        cells.find(self.buckets[subtable], self.remainders[subtable])
    }

    /// Prefetches the cache lines.
    #[inline(always)]
    fn prefetch(&self, cells: BucketsRef<'_>) {
        self.buckets.into_iter().for_each(|bucket| cells.prefetch(bucket));
    }

    #[inline(always)]
    fn count(&self, cells: BucketsRef<'_>) -> u64 {
        self.find(cells).map_or(0, |at| cells.count(at))
    }

    /// Inserts the fingerprint `times` times. `None`: there is no room, and nothing has changed.
    #[inline(always)]
    fn put(&self, cells: &mut BucketsMut<'_>, times: u64) -> Option<Change> {
        let looks = cells.view().look(&self.buckets, &self.remainders);
        let max = cells.max();
        // The match comes before the placement: a fingerprint has one cell at most.
        if let Some(subtable) = looks.iter().position(|look| look.found) {
            let at = cells.view().find(self.buckets[subtable], self.remainders[subtable])?;
            let before = cells.view().count(at);
            let after = before.saturating_add(times).min(max);
            cells.set_count(at, after);
            return Some(Change { fresh: false, saturated: before < max && after == max });
        }
        // The least loaded, and of those the leftmost.
        let mut least = 0;
        for subtable in 1..SUBTABLES {
            if looks[subtable].taken < looks[least].taken {
                least = subtable;
            }
        }
        let count = times.min(max);
        let filled = cells.fill(self.buckets[least], self.remainders[least], count);
        filled.then_some(Change { fresh: true, saturated: count == max })
    }

    /// Removes the fingerprint once, and returns how often it was in; `None` if it was not.
    #[inline(always)]
    fn take(&self, cells: &mut BucketsMut<'_>) -> Option<u64> {
        let at = self.find(cells.view())?;
        let count = cells.view().count(at);
        // How often a counter at its top was raised is unknown.
        if count < cells.max() {
            cells.set_count(at, count - 1);
        }
        Some(count)
    }
}

/// The outcome of removing a fingerprint whose count was `before`, if it was in.
fn outcome(before: Option<u64>, size: &DleftSize) -> Removal {
    match before {
        None => Removal::Absent,
        Some(count) if count >= shape(size).max() => Removal::Stuck,
        Some(_) => Removal::Removed,
    }
}

/// What inserting a fingerprint changed.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// It was not in.
    fresh: bool,
    /// Its counter came to its top.
    saturated: bool,
}

filter! {
    /// A d-left counting Bloom filter.
    ///
    /// **Answers** "was this key inserted and not removed since?"
    /// **Promise** a key that is in is never denied, as long as only keys are removed that are in; an absent key is
    /// admitted with the asked rate at capacity, or less.
    /// **Not for** more keys than it was made for, by a fifth or so: then it says [`Full`]; keys that are inserted over and
    /// over (a counter that reaches its top, 3 with 2 bits, stays there).
    ///
    /// ```text
    ///   key ─▶ digest ─▶ fingerprint ─▶ a bucket and a remainder in each of four subtables
    ///
    ///   subtable 0        1                2               3
    ///   bucket 17: 5a     bucket 4: 91     bucket 88: 2f   bucket 40: c6       the fingerprint has one cell at most
    ///   [ 3d 77 08 .. ]   [ 91×1 20 .. ]   [ b1 .. .. ]    [ 64 0c e8 .. ]     91 is in bucket 4: probably in, once
    /// ```
    ///
    /// | operation | buckets, of one or two cache lines | can fail               |
    /// |-----------|------------------------------------|------------------------|
    /// | contains  | 4                                  | no                     |
    /// | insert    | 4                                  | `Full`                 |
    /// | remove    | 4                                  | no                     |
    /// | count     | 4                                  | no                     |
    /// | merge     | all of the one, 4 for each         | mismatch, `Full` in it |
    ///
    /// A key that is not in goes to the least loaded of its four buckets, the leftmost of those that are equal. That keeps
    /// the loads so even that buckets of 8 cells can be filled to 6 on average: the share of buckets that would need a
    /// ninth cell is 1.7e-27 ([`math::DLEFT_KEYS`]). With more keys than it was made for, an
    /// insert fails with `Full` sooner or later, and changes nothing.
    ///
    /// Why remove is right: a cell stores a remainder only, and several keys meet in a bucket. If each subtable had a bucket
    /// and remainder of its own hash, two keys could agree in one subtable and not in another, and one of them could be
    /// removed by the other's cell. Here each subtable has a bijection of one fingerprint, so that two keys agree in all
    /// subtables or in none. Keys that agree share one cell and its counter.
    ///
    /// Removing a key that is not in is refused if its fingerprint is not in, and then changes nothing. With the chance of a
    /// false positive it is in: then the key that has it may be denied later. Remove only what is in.
    ///
    /// **Paper** Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, *An Improved Construction for Counting Bloom Filters*,
    /// ESA 2006.
    /// **We differ** in the bijections: theirs need a power of two of buckets. A Feistel network whose halves are the bucket,
    /// modulo any number, and the remainder (Black, Rogaway, *Ciphers with Arbitrary Finite Domains*, 2002, as "generalized
    /// Feistel") takes any number of buckets, in two rounds.
    ///
    /// Two filters are equal if all of their cells are. The same keys inserted in another order may lie in other cells.
    ///
    /// ```
    /// use mayhap::Dleft;
    ///
    /// let mut connected = Dleft::new(1_000_000, 0.01)?; // 2.3 MB, where Counting takes 4.8
    /// connected.insert("192.0.2.7")?;
    /// assert!(connected.contains("192.0.2.7"));
    /// assert!(connected.remove("192.0.2.7").is_removed());
    /// assert!(!connected.contains("192.0.2.7")); // certain: nothing else is in
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Dleft(Cells) = FAMILY {
        /// Its counters have 2 bits.
        new,
        /// Counters have 2 to 8 bits, for keys that are inserted more than twice.
        specified,
        /// A key that is already in is counted once more. There is room for as many keys as the capacity.
        inserts_until_full,
        /// A key whose counter is saturated is [`Stuck`](Removal::Stuck): how often it is in is unknown.
        ///
        /// Do not remove a key that was never inserted: if it has the fingerprint of another key, that key is removed.
        removes,
        /// At least as often as it is, up to the largest value of a counter.
        counts,
        matches,
        ///
        /// Each key is in as often as in both together, as if all had been inserted here. If they do not fit, the error is
        /// [`Mismatch::Full`].
        merges,
    }
}

/// The cells of a d-left counting Bloom filter.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    cells: CountedBuckets,
    size: DleftSize,
    paths: Paths,
    /// Cells that are not empty: fingerprints.
    occupied: u64,
    /// Cells whose counter is at its top.
    saturated: u64,
}

impl Cells {
    #[inline(always)]
    fn places(&self, digest: Digest) -> FourPlaces {
        Fingerprint::new(digest, &self.size).places(&self.size)
    }

    /// Calls `each` with batches of keys as places whose cache lines were prefetched.
    #[inline(always)]
    fn read_ahead<K>(
        &self,
        keys: &[K],
        hash: impl Fn(&[K], &mut [Digest]),
        mut each: impl FnMut(BucketsRef<'_>, &[FourPlaces]),
    ) {
        let (mut cells, size) = (self.cells.view(), self.size);
        let far = self.paths.is_far(8 * cells.words(), PREFETCH_FROM_BYTES);
        let ahead = |cells: &BucketsRef<'_>, places: FourPlaces| places.prefetch(*cells);
        pipeline(&mut cells, keys, placing(&size, hash), far, ahead, |cells, places| {
            each(*cells, places);
        });
    }

    fn lost(&mut self, emptied: u64) {
        // A header that was not compared with its payload may have claimed fewer.
        self.occupied = self.occupied.saturating_sub(emptied);
    }

    #[cold]
    fn full(&self) -> Full {
        let DleftSize { capacity, .. } = self.size;
        Full { limit: Limit::Slots { capacity, used: self.occupied, slots: self.size.cells() }, inserted: 0 }
    }
}

impl Kernel for Cells {
    type Hash = Digest;

    const GUARANTEE: Guarantee = Guarantee::NoFalseNegativesIfDeletesValid;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.places(digest).are_in(self.paths, self.cells.view())
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), mut hits: &mut [bool]) {
        self.read_ahead(keys, hash, |cells, places| {
            let hits = hits.split_off_mut(..places.len()).expect("one answer per key");
            cells.any_each(self.paths, places, hits);
        });
    }

    fn plan(&self) -> Plan {
        self.size.plan()
    }

    fn fill(&self) -> f64 {
        self.occupied as f64 / self.size.cells() as f64
    }

    /// The share of all fingerprints that are in.
    fn rate(&self) -> Rate {
        let all = math::dleft_fingerprints(self.size.buckets, self.size.remainder_bits);
        Rate::computed((self.occupied as f64 / all).min(1.0))
    }

    fn estimated_len(&self) -> f64 {
        math::dleft_estimated_len(self.size.buckets, self.size.remainder_bits, self.occupied)
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(self.size, other.size, |size| {
            [
                (Parameter::CounterBits, size.counter_bits.into()),
                (Parameter::Buckets, size.buckets.into()),
                (Parameter::FingerprintBits, size.remainder_bits.into()),
            ]
        })
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.cells == other.cells
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let DleftSize { capacity, buckets, remainder_bits, counter_bits, fpr_asked, .. } = self.size;
        out.probing(PROBING);
        out.ones(self.occupied);
        out.params()
            .u64(buckets)
            .u32(small_len(SUBTABLES))
            .u32(SLOTS)
            .u32(remainder_bits)
            .u32(counter_bits)
            .u64(capacity)
            .f64(fpr_asked)
            .u64(self.saturated);
        out.words(self.cells.words());
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let buckets = fields.u64("buckets")?;
        let subtables = fields.u32("subtables")?;
        let slots = fields.u32("cells of a bucket")?;
        let remainder_bits = fields.u32("bits of a remainder")?;
        let counter_bits = fields.u32("bits of a counter")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let saturated = fields.u64("saturated counters")?;
        fields.end("parameters", header.params.len())?;
        let in_range = [
            ("subtables", subtables, small_len(SUBTABLES), small_len(SUBTABLES)),
            ("cells of a bucket", slots, SLOTS, SLOTS),
            ("bits of a remainder", remainder_bits, *REMAINDER_BITS.start(), *REMAINDER_BITS.end()),
            ("bits of a counter", counter_bits, *COUNTER_BITS.start(), *COUNTER_BITS.end()),
        ];
        for (field, found, least, most) in in_range {
            if !(least..=most).contains(&found) {
                return Err(DecodeError::Value { field, found: found.into() });
            }
        }
        let fpr = math::dleft_fpr(buckets, remainder_bits, capacity as f64);
        let size = DleftSize { capacity, buckets, remainder_bits, counter_bits, fpr_asked, fpr };
        if buckets == 0 || size.bits() > MAX_BITS {
            return Err(DecodeError::Value { field: "buckets", found: buckets });
        }
        if saturated > size.cells() {
            return Err(DecodeError::Value { field: "saturated counters", found: saturated });
        }
        let words = shell::take_words(frame, words_for(size.bits()) * 8)?;
        let cells = CountedBuckets::from_words(words, buckets * SUBTABLES as u64, shape(&size))
            .ok_or(DecodeError::Padding { field: "end of the payload" })?;
        let count = || {
            let max = shape(&size).max();
            cells.occupied().fold((0, 0), |(occupied, saturated), (_, _, count)| {
                (occupied + 1, saturated + u64::from(count == max))
            })
        };
        // Checked only if the whole payload is read anyway, so that a large file opens by its header.
        if frame.verified && !cells.are_sound() {
            return Err(DecodeError::Padding { field: "remainder of an empty cell" });
        }
        let counted = (frame.verified || frame.header.ones.is_none()).then(count);
        if frame.verified && counted.is_some_and(|(_, found)| found != saturated) {
            return Err(DecodeError::Value { field: "saturated counters", found: saturated });
        }
        let count = || counted.map_or(0, |(occupied, _)| occupied);
        let occupied = shell::occupied(frame, "occupied cells", size.cells(), count)?.unwrap_or_else(count);
        Ok(Self { cells, size, paths: Paths::default(), occupied, saturated })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn details(&self) -> Details<'_> {
        let counters = CounterReport {
            counters: self.size.cells(),
            bits: Some(self.size.counter_bits),
            saturated: self.saturated,
            overflowed: 0,
            rule: None,
            degraded: false,
        };
        let slots = Slots { slots: self.size.cells(), used: self.occupied, evictions: None };
        Details { counters: Some(counters), slots: Some(slots), ..Details::default() }
    }
}

impl Empty for Cells {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let size = spec.dleft()?;
        let cells = CountedBuckets::zeroed(size.buckets * SUBTABLES as u64, shape(&size))?;
        Ok(Self { cells, size, paths: spec.paths, occupied: 0, saturated: 0 })
    }

    /// No counter is saturated afterwards.
    fn clear(&mut self) {
        self.cells.clear();
        (self.occupied, self.saturated) = (0, 0);
    }
}

impl Inserts for Cells {
    type Error = Full;

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<Insertion, Full> {
        let places = self.places(digest);
        let Some(change) = places.put(&mut self.cells.view_mut(), 1) else { return Err(self.full()) };
        self.occupied = self.occupied.saturating_add(u64::from(change.fresh));
        self.saturated = self.saturated.saturating_add(u64::from(change.saturated));
        Ok(Insertion::new_if(change.fresh))
    }

    #[inline(always)]
    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Full> {
        let (mut cells, size) = (self.cells.view_mut(), self.size);
        let far = self.paths.is_far(8 * cells.view().words(), PREFETCH_FROM_BYTES);
        let (mut fresh, mut saturated, mut full) = (0, 0, false);
        let ahead = |cells: &BucketsMut<'_>, places: FourPlaces| places.prefetch(cells.view());
        pipeline(&mut cells, keys, placing(&size, hash), far, ahead, |cells, places| {
            for places in places {
                // Keys are inserted in order: after a refused one, no other is inserted.
                let Some(change) = (!full).then(|| places.put(cells, 1)).flatten() else {
                    full = true;
                    return;
                };
                fresh += u64::from(change.fresh);
                saturated += u64::from(change.saturated);
                told(Insertion::new_if(change.fresh));
            }
        });
        self.occupied = self.occupied.saturating_add(fresh);
        self.saturated = self.saturated.saturating_add(saturated);
        if full { Err(self.full()) } else { Ok(()) }
    }
}

impl Removes for Cells {
    fn remove(&mut self, digest: Digest) -> Removal {
        let before = self.places(digest).take(&mut self.cells.view_mut());
        self.lost(u64::from(before == Some(1)));
        outcome(before, &self.size)
    }

    #[inline(always)]
    fn remove_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        outcomes: &mut Vec<Removal>,
    ) {
        let (mut cells, size) = (self.cells.view_mut(), self.size);
        let far = self.paths.is_far(8 * cells.view().words(), PREFETCH_FROM_BYTES);
        let mut emptied = 0;
        let ahead = |cells: &BucketsMut<'_>, places: FourPlaces| places.prefetch(cells.view());
        pipeline(&mut cells, keys, placing(&size, hash), far, ahead, |cells, places| {
            for places in places {
                let before = places.take(cells);
                emptied += u64::from(before == Some(1));
                outcomes.push(outcome(before, &size));
            }
        });
        self.lost(emptied);
    }
}

impl Counts for Cells {
    #[inline]
    fn count(&self, digest: Digest) -> u64 {
        self.places(digest).count(self.cells.view())
    }

    #[inline(always)]
    fn count_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), counts: &mut Vec<u64>) {
        self.read_ahead(keys, hash, |cells, places| {
            counts.extend(places.iter().map(|places| places.count(cells)));
        });
    }

    fn ceiling(&self) -> u64 {
        shape(&self.size).max()
    }
}

impl Merges for Cells {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        let refused = |refused: crate::bits::OutOfMemory| Mismatch::Memory { bytes: refused.bytes };
        let mut merged = self.cells.try_clone().map_err(refused)?;
        let (mut cells, mut fresh, mut saturated) = (merged.view_mut(), 0, 0);
        for (bucket, remainder, count) in other.cells.occupied() {
            let (subtable, bucket) = (index(bucket / self.size.buckets), bucket % self.size.buckets);
            let fingerprint = Fingerprint { bucket, remainder }.recovered(subtable, &self.size);
            let Some(change) = fingerprint.places(&self.size).put(&mut cells, count) else {
                let mut full = self.full();
                if let Limit::Slots { used, .. } = &mut full.limit {
                    *used = used.saturating_add(fresh);
                }
                return Err(Mismatch::Full(full));
            };
            fresh += u64::from(change.fresh);
            saturated += u64::from(change.saturated);
        }
        self.cells = merged;
        self.occupied = self.occupied.saturating_add(fresh);
        self.saturated = self.saturated.saturating_add(saturated);
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
    }
}

impl Dleft {
    /// The buckets of each of the four subtables, of eight cells each.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.0.kernel.size.buckets
    }

    /// Bits of the remainder in each cell.
    #[must_use]
    pub fn remainder_bits(&self) -> u32 {
        self.0.kernel.size.remainder_bits
    }

    /// Bits of the counter in each cell.
    #[must_use]
    pub fn counter_bits(&self) -> u32 {
        self.0.kernel.size.counter_bits
    }

    /// The number of buckets that hold 0, 1, up to 8 fingerprints, in all subtables together.
    #[must_use]
    pub fn loads(&self) -> [u64; SLOTS as usize + 1] {
        let (mut loads, cells) = ([0; SLOTS as usize + 1], self.0.kernel.cells.view());
        for bucket in 0..self.buckets() * SUBTABLES as u64 {
            let [look] = cells.look(&[bucket], &[0]);
            loads[look.taken as usize] += 1;
        }
        loads
    }

    /// How many counters are at their top, where they stay. Their keys cannot be removed.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.0.kernel.saturated
    }
}

const fn shape(size: &DleftSize) -> CellShape {
    CellShape { remainder_bits: size.remainder_bits, counter_bits: size.counter_bits }
}

/// From keys to places, a batch at a time.
#[inline(always)]
fn placing<K>(size: &DleftSize, hash: impl Fn(&[K], &mut [Digest])) -> impl Fn(&[K], &mut [FourPlaces]) {
    move |keys, places| {
        let mut digests = [Digest::default(); BATCH];
        let digests = &mut digests[..keys.len()];
        hash(keys, digests);
        for (places, &digest) in places.iter_mut().zip(&*digests) {
            *places = Fingerprint::new(digest, size).places(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn size(buckets: u64, remainder_bits: u32) -> DleftSize {
        DleftSize { capacity: 1, buckets, remainder_bits, counter_bits: 2, fpr_asked: 0.5, fpr: 0.5 }
    }

    /// All fingerprints of small filters, each number of buckets, not only powers of two.
    #[test]
    fn every_subtable_has_a_bijection() {
        for buckets in (1..70).chain([127, 128, 129, 1000]) {
            for remainder_bits in [2, 3, 5, 8] {
                let size = size(buckets, remainder_bits);
                for subtable in 0..SUBTABLES {
                    let mut reached = vec![false; (buckets << remainder_bits) as usize];
                    for index in 0..reached.len() as u64 {
                        let fingerprint = Fingerprint {
                            bucket: index >> remainder_bits,
                            remainder: index & ((1 << remainder_bits) - 1),
                        };
                        let there = fingerprint.within(subtable, &size);
                        assert!(there.bucket < buckets && there.remainder >> remainder_bits == 0);
                        assert_eq!(there.recovered(subtable, &size), fingerprint);
                        let place = (there.bucket << remainder_bits | there.remainder) as usize;
                        assert!(!core::mem::replace(&mut reached[place], true), "{size:?}, {subtable}");
                    }
                }
            }
        }
    }

    /// As large as a filter may be.
    #[test]
    fn bijections_hold_at_the_limits() {
        for (buckets, remainder_bits) in
            [(1 << 41, 2), ((1 << 41) - 1, 2), ((1 << 37) - 5, 50), (1, 50), (2, 2)]
        {
            let size = size(buckets, remainder_bits);
            for key in 0..2000u64 {
                let digest = match key {
                    0 => Digest { a: 0, b: 0 },
                    1 => Digest { a: u64::MAX, b: u64::MAX },
                    key => Hashing::default().digest_of(key),
                };
                let fingerprint = Fingerprint::new(digest, &size);
                for subtable in 0..SUBTABLES {
                    let there = fingerprint.within(subtable, &size);
                    assert!(there.bucket < buckets && there.remainder >> remainder_bits == 0);
                    assert_eq!(there.recovered(subtable, &size), fingerprint);
                }
            }
        }
    }
}
