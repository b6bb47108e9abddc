//! Cuckoo filter: approximate membership with removal.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::select_unpredictable;
use core::ops::RangeInclusive;

use crate::batch::{self, BATCH};
use crate::bits::{Buckets, Lanes, SLOTS, Words, bucket_bits, words_for};
use crate::error::{DecodeError, Full, Knob, Limit, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{Cost, Details, Family, Guarantee, Make, Profile, Slots, Space};
use crate::hash::{Hashing, Key};
use crate::math;
use crate::narrow::{index, small_len};
use crate::paths::Paths;
use crate::probing::{PHI, Probing, reduce};
use crate::rates::Rate;
use crate::shell::{self, Counts, Empty, Inserts, Kernel, Merges, Removes, Shell, filter};
use crate::spec::{CAPACITY, Layout, MAX_BITS, MAX_CAPACITY, Plan, Size, Spec};
use crate::traits::{Insertion, Removal};
use crate::wire::{Fields, Frame, Writer};

/// The rate of a filter with at most this many buckets is computed from its fingerprints, in at most 1 ms. Copies of a key
/// count once there.
pub const LOOKED_AT_BUCKETS: u64 = 1 << 11;

/// The family `cuckoo`.
pub(crate) static FAMILY: Family = Family {
    id: 9,
    name: "cuckoo",
    summary: "keys can be removed: 10.5 bits per key at 1%",
    can: Cuckoo::CAN,
    knobs: &[Knob::Layout.any()],
    probing: &[PROBING],
    cost: Cost { query: "O(1)", insert: "O(1)", space: "1.05 n (log2(1/p) + 3) and up" },
    make: Make::Empty(|spec| Ok(Box::new(Cuckoo::from_spec(spec)?))),
    shared: None,
    plan: |spec| Ok(spec.cuckoo()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Cuckoo::decode(frame, hashing)?)),
    // A fingerprint on its way from one bucket to the other is in neither while it is written.
    in_place: false,
    profile: Profile {
        space: Some(Space { per_key: |bits| 1.0527 * (bits + 3.0), less: 0.07, more: 1.06 }),
        is_ordered: true,
        ..Profile::USUAL
    },
};

/// Two buckets and a fingerprint, from the digest's first half.
const PROBING: Probing = Probing::new(9, "cuckoo");

/// The numbers of a cuckoo filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CuckooSize {
    /// The number of different keys it is made for.
    pub capacity: u64,
    /// Its buckets, of four slots each; an even number.
    pub buckets: u64,
    /// Bits per fingerprint.
    pub width: u32,
    /// Semi-sorted (`compact`) or not (`fastest`).
    pub layout: Layout,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl CuckooSize {
    /// Bits of all buckets together.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.buckets * bucket_bits(self.width, matches!(self.layout, Layout::Compact)) as u64
    }
}

impl Size for CuckooSize {
    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: None }
    }
}

/// The lengths that fingerprints have: semi-sorting takes their upper 4 bits, and must leave one.
const fn fingerprint_widths(layout: Layout) -> RangeInclusive<u32> {
    match layout {
        Layout::Fastest => 4..=32,
        Layout::Compact => 5..=32,
    }
}

impl Spec {
    /// Solves for what is not requested, for a cuckoo filter: its fingerprints are as long as the rate needs, and its
    /// buckets as many as the keys need. In the layout `compact` buckets are semi-sorted.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn cuckoo(&self) -> Result<CuckooSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let layout = asked.layout.unwrap_or(Layout::Fastest);
        let size = |capacity: u64, buckets: u64, width: u32| {
            let fpr = math::cuckoo_fpr(width, capacity as f64 / (buckets * u64::from(SLOTS)) as f64);
            CuckooSize { capacity, buckets, width, layout, fpr_asked: asked.fpr.unwrap_or(fpr), fpr }
        };
        // The first half of the digest tells bucket and fingerprint, so that both together have 64 bits. Shorter fingerprints
        // than the least leave some keys without a slot.
        let works = |size: &CuckooSize| {
            size.capacity > 0
                && size.buckets <= 1 << (64 - size.width)
                && size.width >= math::cuckoo_least_width(size.capacity, size.buckets)
        };
        let for_keys = |n: u64| {
            let buckets = math::cuckoo_buckets(n);
            fingerprint_widths(layout).map(move |width| size(n, buckets, width)).filter(works)
        };
        let for_bits = |bits: u64| {
            let of = move |width: u32| {
                let buckets = bits / u64::from(bucket_bits(width, layout == Layout::Compact));
                let buckets = buckets - buckets % 2;
                size(math::cuckoo_capacity(buckets), buckets, width)
            };
            fingerprint_widths(layout).map(of).filter(works)
        };
        asked.solved(
            |n, p| for_keys(n).find(|size| size.fpr <= p),
            |n, bits, p| {
                let widest = for_keys(n).rfind(|size| size.bits() <= bits);
                widest.filter(|size| p.is_none_or(|p| size.fpr <= p))
            },
            |bits, p| for_bits(bits).find(|size| size.fpr <= p),
        )
    }
}

/// The most copies of one key: all slots of both its buckets.
pub(crate) const MOST_COPIES: u64 = 2 * SLOTS as u64;

/// Tables smaller than this stay in the second-level cache, where prefetching brings nothing.
const PREFETCH_FROM_BYTES: usize = 128 * 1024;

/// At most this many keys are hashed before a refused insert ends the batch.
const STRETCH: usize = 4096;

/// From the first half of a digest to two buckets and a fingerprint: arithmetic without memory.
#[derive(Clone, Copy, Debug)]
struct Addressing {
    buckets: u64,
    /// How many fingerprints there are: 2^width - 1, without 0, which is an empty slot.
    fingerprints: u64,
    paths: Paths,
}

/// Where a fingerprint may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TwoBuckets {
    first: u64,
    second: u64,
    fingerprint: u32,
}

impl Addressing {
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
    fn place(&self, half: u64) -> TwoBuckets {
        let fingerprint = 1 + (((half.wrapping_mul(PHI) >> 32) * self.fingerprints) >> 32) as u32;
        self.around(reduce(half, self.buckets), fingerprint)
    }

    /// Where a fingerprint may be that is found in a bucket.
    #[inline(always)]
    fn around(&self, first: u64, fingerprint: u32) -> TwoBuckets {
        TwoBuckets { first, second: self.other(first, fingerprint), fingerprint }
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

filter! {
    /// A cuckoo filter.
    ///
    /// **Answers** "was this key inserted and not removed since?"
    /// **Promise** a key that is in is never denied, as long as only keys that are in are removed; an absent key is admitted
    /// with the asked rate at capacity.
    /// **Not for** inputs that may remove keys they never inserted; keys inserted more than 8 times; growth.
    ///
    /// ```text
    ///   key ─▶ first half of the digest ─▶ bucket i, fingerprint 5a
    ///                                      bucket j = mix(5a) - i mod buckets       and so i = mix(5a) - j
    ///
    ///          bucket i  [ 5a | 17 | 00 | 00 ]        bucket j  [ c3 | 08 | 44 | 91 ]          00 = empty
    /// ```
    ///
    /// | operation | cache lines          | can fail                              |
    /// |-----------|----------------------|---------------------------------------|
    /// | contains  | 2                    | no                                    |
    /// | insert    | 2, more when full    | `Full`; then nothing has changed      |
    /// | remove    | 2                    | no                                    |
    /// | merge     | all                  | mismatch or `Full`; nothing changed   |
    ///
    /// A fingerprint is in one of two buckets of four slots, and each bucket follows from the other and the fingerprint: so it
    /// can be moved without its key. If both buckets are full, the shortest way to a free slot is looked for breadth-first,
    /// and only when it is found are fingerprints moved along it. There is no slot for a victim, and no fingerprint is ever dropped.
    ///
    /// In the layout `compact` buckets are semi-sorted: a bit less per slot, and more work per key.
    ///
    /// **Removing a key that is not in** is refused (`false`) if its fingerprint is in neither bucket. Otherwise, with about
    /// the false-positive rate, it takes the fingerprint of another key, which is then denied. That is the caller's to avoid.
    ///
    /// **A key that is inserted again** takes another slot, up to 8 of them, and must be removed as often. The ninth is
    /// [`Limit::Copies`]; many keys that are in several times can leave no room for another one sooner, which is
    /// [`Limit::Repeats`].
    ///
    /// **Paper** Fan, Andersen, Kaminsky, Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom*, CoNEXT 2014.
    /// **We differ** in the second bucket, a difference instead of an exclusive or, so that any even number of buckets
    /// will do and no power of two is needed; in the search, so that a refused insert changes nothing.
    ///
    /// Two filters are equal if they have the same size, layout, hashing and slots. The same keys inserted in another order
    /// may lie in other slots.
    ///
    /// ```
    /// use mayhap::Cuckoo;
    ///
    /// let mut online = Cuckoo::new(1_000_000, 0.001)?;
    /// online.insert("alice")?;
    /// online.insert_all(&["bob", "carol"])?;
    /// assert!(online.contains("bob"));
    /// assert!(online.remove("bob").is_removed());
    /// assert!(online.contains("alice") && online.contains("carol"));
    /// assert_eq!(online.slots().used, 2);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Cuckoo(Fingerprints) = FAMILY {
        new,
        specified,
        /// A key that is already in gets another copy.
        inserts_until_full,
        /// The outcome is never [`Stuck`](crate::Removal::Stuck): there are no counters.
        ///
        /// Do not remove a key that was never inserted: with about the false-positive rate that removes the fingerprint of
        /// another key, which is then denied.
        removes,
        /// At least as often as it was inserted and not removed; at most 8 times.
        counts,
        /// The layouts may differ. A merge also fails if there is no room.
        matches,
        ///
        /// Each key is in as often as in both together: the fingerprints of the other filter are inserted. If there is no room
        /// for them, the error is [`Mismatch::Full`].
        merges,
    }
}

/// The buckets of a cuckoo filter.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprints {
    words: Words,
    size: CuckooSize,
    shape: Addressing,
    packing: Packing,
    /// Occupied slots.
    used: u64,
    /// How many fingerprints were moved so far.
    evictions: u64,
    /// The buckets visited by a search; kept, so that the next search needs no allocation.
    steps: Vec<u64>,
}

impl Fingerprints {
    fn of_size(size: CuckooSize) -> Result<Self, SpecError> {
        let packing = Packing::new(&size);
        let words = Words::zeroed(words_for(size.bits()) + packing.tail())?;
        Ok(Self::of(words, size))
    }

    fn of(words: Words, size: CuckooSize) -> Self {
        let (shape, packing) = (Addressing::new(&size), Packing::new(&size));
        Self { words, size, shape, packing, used: 0, evictions: 0, steps: Vec::new() }
    }

    /// Not inlined, so that callers keep their registers for the common packing.
    #[inline(never)]
    fn has_otherwise(&self, place: TwoBuckets) -> bool {
        let words = self.words.as_slice();
        match &self.packing {
            Packing::Narrow(buckets) => is_at(buckets, words, place),
            Packing::NarrowSorted(buckets) => is_at(buckets, words, place),
            Packing::Wide(buckets) => is_at(buckets, words, place),
            Packing::WideSorted(buckets) => is_at(buckets, words, place),
        }
    }

    /// Not inlined, so that callers keep their registers for a key that finds room at once in the common packing.
    #[inline(never)]
    fn insert_otherwise(&mut self, place: TwoBuckets) -> Result<Insertion, Full> {
        let mut table = self.table();
        let (outcome, changes) = (table.put_packed(place), table.changes);
        self.apply(changes);
        outcome.map_err(|refused| self.full(refused))
    }

    #[inline(never)]
    fn take_otherwise(&mut self, place: TwoBuckets) -> bool {
        let words = self.words.as_mut_slice();
        match &self.packing {
            Packing::Narrow(buckets) => take_from(buckets, words, place),
            Packing::NarrowSorted(buckets) => take_from(buckets, words, place),
            Packing::Wide(buckets) => take_from(buckets, words, place),
            Packing::WideSorted(buckets) => take_from(buckets, words, place),
        }
    }

    #[inline(always)]
    fn table(&mut self) -> Filling<'_> {
        let Self { words, shape, packing, used, steps, .. } = self;
        let (words, changes) = (words.as_mut_slice(), Changes::default());
        Filling { words, shape: *shape, packing: *packing, used: *used, steps, changes }
    }

    #[inline]
    fn apply(&mut self, Changes { inserted, evictions }: Changes) {
        self.used += inserted;
        self.evictions = self.evictions.saturating_add(evictions);
    }

    #[cold]
    fn full(&self, refused: Refused) -> Full {
        let (capacity, slots) = (self.size.capacity, self.slots());
        let limit = match refused {
            Refused::Copies => Limit::Copies { most: MOST_COPIES },
            Refused::Repeats => Limit::Repeats { most: MOST_COPIES, used: slots.used, slots: slots.slots },
            Refused::NoWay => Limit::Slots { capacity, used: slots.used, slots: slots.slots },
        };
        Full { limit, inserted: 0 }
    }

    fn slots(&self) -> Slots {
        let slots = self.size.buckets * u64::from(SLOTS);
        Slots { slots, used: self.used, evictions: Some(self.evictions) }
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
}

impl Kernel for Fingerprints {
    type Hash = u64;

    const GUARANTEE: Guarantee = Guarantee::NoFalseNegativesIfDeletesValid;

    #[inline]
    fn contains(&self, half: u64) -> bool {
        let place = self.shape.place(half);
        match &self.packing {
            Packing::Narrow(buckets) => is_at(buckets, self.words.as_slice(), place),
            _ => self.has_otherwise(place),
        }
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [u64]), hits: &mut [bool]) {
        let words = self.words.as_slice();
        match &self.packing {
            Packing::Narrow(buckets) => ask_all(self.shape, buckets, words, keys, hash, hits),
            Packing::NarrowSorted(buckets) => ask_all(self.shape, buckets, words, keys, hash, hits),
            Packing::Wide(buckets) => ask_all(self.shape, buckets, words, keys, hash, hits),
            Packing::WideSorted(buckets) => ask_all(self.shape, buckets, words, keys, hash, hits),
        }
    }

    fn plan(&self) -> Plan {
        self.size.plan()
    }

    fn held_bytes(&self) -> u64 {
        (self.words.len() * 8 + self.steps.capacity() * 8) as u64
    }

    fn fill(&self) -> f64 {
        self.slots().load()
    }

    /// Of a small filter from its fingerprints, of a large one from how many there are.
    fn rate(&self) -> Rate {
        if self.size.buckets > LOOKED_AT_BUCKETS {
            return Rate::computed(rate(self.size.width, self.size.buckets, self.used));
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
        let keys = self.size.buckets as f64 * self.shape.fingerprints as f64;
        Rate::computed(admitted.len() as f64 / keys)
    }

    fn estimated_len(&self) -> f64 {
        self.used as f64
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(&self.size, &other.size, |size| {
            [(Parameter::FingerprintBits, size.width.into()), (Parameter::Buckets, size.buckets.into())]
        })
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.size.layout == other.size.layout && self.words == other.words
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let CuckooSize { capacity, buckets, width, layout, fpr_asked, .. } = self.size;
        out.probing(PROBING);
        out.ones(self.used);
        out.params().u64(buckets).u32(width).u32(bucket_bits(width, layout == Layout::Compact));
        out.params().u64(capacity).f64(fpr_asked).u64(self.evictions);
        out.words(&self.words);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let buckets = fields.u64("buckets")?;
        let width = fields.u32("bits of a fingerprint")?;
        let bits = fields.u32("bits of a bucket")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let evictions = fields.u64("evictions")?;
        fields.end("parameters", header.params.len())?;
        let known = |layout: &Layout| fingerprint_widths(*layout).contains(&width);
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
        let words = shell::take_words(frame, (filled + tail) * 8)?;
        let behind = size.bits() % 64;
        let (slots, tail) = words.as_slice().split_at(index(filled));
        let last = slots.last().filter(|_| behind > 0).map_or(0, |last| last >> behind);
        if last != 0 || tail.iter().any(|&word| word != 0) {
            return Err(DecodeError::Padding { field: "end of the payload" });
        }
        let mut kernel = Self { evictions, ..Self::of(words, size) };
        // Checked only if the whole payload is read anyway, so that a large file opens by its header. A bucket that no writer
        // gives can then cause wrong answers, but nothing worse.
        if frame.verified && !kernel.is_written() {
            return Err(DecodeError::Payload { problem: "a bucket that no writer gives" });
        }
        let used = shell::occupied(frame, "occupied slots", kernel.slots().slots, || kernel.counted_slots())?;
        kernel.used = used.unwrap_or_else(|| kernel.counted_slots());
        Ok(kernel)
    }

    fn take_paths(&mut self, paths: Paths) {
        self.shape.paths = paths;
    }

    fn details(&self) -> Details<'_> {
        Details { layout: Some(self.size.layout), slots: Some(self.slots()), ..Details::default() }
    }
}

impl Empty for Fingerprints {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        Self::of_size(spec.cuckoo()?)
    }

    fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        (self.used, self.evictions) = (0, 0);
    }
}

impl Inserts for Fingerprints {
    type Error = Full;

    #[inline]
    fn insert(&mut self, half: u64) -> Result<Insertion, Full> {
        let place = self.shape.place(half);
        if let Packing::Narrow(buckets) = &self.packing
            && let Some(insertion) = push(buckets, self.words.as_mut_slice(), place)
        {
            self.used += 1;
            return Ok(insertion);
        }
        self.insert_otherwise(place)
    }

    #[inline(always)]
    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [u64]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Full> {
        let mut table = self.table();
        let mut refused = None;
        for keys in keys.chunks(STRETCH) {
            refused = match table.packing {
                Packing::Narrow(buckets) => table.put_all(&buckets, keys, &hash, &mut told),
                Packing::NarrowSorted(buckets) => table.put_all(&buckets, keys, &hash, &mut told),
                Packing::Wide(buckets) => table.put_all(&buckets, keys, &hash, &mut told),
                Packing::WideSorted(buckets) => table.put_all(&buckets, keys, &hash, &mut told),
            };
            if refused.is_some() {
                break;
            }
        }
        let changes = table.changes;
        self.apply(changes);
        refused.map_or(Ok(()), |refused| Err(self.full(refused)))
    }

    #[inline(always)]
    fn insert_all<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [u64]),
        mut done: impl FnMut(u64),
    ) -> Result<(), Full> {
        let before = self.used;
        let outcome = self.insert_each(keys, hash, |_| {});
        done(self.used - before);
        outcome
    }
}

impl Removes for Fingerprints {
    #[inline]
    fn remove(&mut self, half: u64) -> Removal {
        let place = self.shape.place(half);
        let taken = match &self.packing {
            Packing::Narrow(buckets) => take_from(buckets, self.words.as_mut_slice(), place),
            _ => self.take_otherwise(place),
        };
        self.used = self.used.saturating_sub(taken.into());
        Removal::removed_if(taken)
    }

    #[inline(always)]
    fn remove_each<T>(&mut self, keys: &[T], hash: impl Fn(&[T], &mut [u64]), outcomes: &mut Vec<Removal>) {
        let (shape, packing, start) = (self.shape, self.packing, outcomes.len());
        let words = self.words.as_mut_slice();
        match &packing {
            Packing::Narrow(buckets) => take_all(shape, buckets, words, keys, hash, outcomes),
            Packing::NarrowSorted(buckets) => take_all(shape, buckets, words, keys, hash, outcomes),
            Packing::Wide(buckets) => take_all(shape, buckets, words, keys, hash, outcomes),
            Packing::WideSorted(buckets) => take_all(shape, buckets, words, keys, hash, outcomes),
        }
        let taken = outcomes[start..].iter().filter(|outcome| outcome.is_removed()).count();
        self.used = self.used.saturating_sub(taken as u64);
    }
}

impl Counts for Fingerprints {
    fn count(&self, half: u64) -> u64 {
        let (words, place) = (self.words.as_slice(), self.shape.place(half));
        match &self.packing {
            Packing::Narrow(buckets) => copies_at(buckets, words, place),
            Packing::NarrowSorted(buckets) => copies_at(buckets, words, place),
            Packing::Wide(buckets) => copies_at(buckets, words, place),
            Packing::WideSorted(buckets) => copies_at(buckets, words, place),
        }
    }

    #[inline(always)]
    fn count_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [u64]), counts: &mut Vec<u64>) {
        let words = self.words.as_slice();
        match &self.packing {
            Packing::Narrow(buckets) => count_all(self.shape, buckets, words, keys, hash, counts),
            Packing::NarrowSorted(buckets) => count_all(self.shape, buckets, words, keys, hash, counts),
            Packing::Wide(buckets) => count_all(self.shape, buckets, words, keys, hash, counts),
            Packing::WideSorted(buckets) => count_all(self.shape, buckets, words, keys, hash, counts),
        }
    }
}

impl Merges for Fingerprints {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        if self.used.saturating_add(other.used) > self.slots().slots {
            return Err(Mismatch::Full(self.full(Refused::NoWay)));
        }
        // A copy, which replaces the filter's words once all fingerprints have found room.
        let ours = self.words.as_slice();
        let mut words =
            Words::zeroed(ours.len() as u64).map_err(|no| Mismatch::Memory { bytes: no.bytes })?;
        words.as_mut_slice().copy_from_slice(ours);
        let mut steps = Vec::new();
        let mut table = Filling {
            words: words.as_mut_slice(),
            shape: self.shape,
            packing: self.packing,
            used: self.used,
            steps: &mut steps,
            changes: Changes::default(),
        };
        for bucket in 0..other.size.buckets {
            for fingerprint in other.slots_of(bucket).into_iter().filter(|&fingerprint| fingerprint != 0) {
                let place = self.shape.around(bucket, fingerprint);
                table.put_packed(place).map_err(|refused| Mismatch::Full(self.full(refused)))?;
            }
        }
        let changes = table.changes;
        self.words = words;
        self.apply(changes);
        self.size.capacity = self.size.capacity.max(other.size.capacity);
        self.size.fpr = rate(self.size.width, self.size.buckets, self.size.capacity);
        Ok(())
    }
}

impl Cuckoo {
    /// An empty filter with `slots` slots, rounded up to two whole buckets, and fingerprints of 4 to 32 bits; in the layout
    /// `compact` of 5 to 32. Its capacity is the number of keys that usually fit into the slots.
    ///
    /// # Errors
    /// [`SpecError::Range`] for other lengths or no slots, [`SpecError::TooLarge`] for too many slots.
    pub fn with_slots(slots: u64, fingerprint_bits: u32, layout: Layout) -> Result<Self, SpecError> {
        let widths = fingerprint_widths(layout);
        Knob::FingerprintBits.within(*widths.start(), *widths.end()).check(fingerprint_bits.into())?;
        CAPACITY.check(slots.min(MAX_CAPACITY).into())?;
        let most = (MAX_BITS / u64::from(SLOTS * fingerprint_bits)).min(1 << (64 - fingerprint_bits));
        let buckets = 2 * slots.div_ceil(2 * u64::from(SLOTS));
        if !(2..=most).contains(&buckets) {
            let asked =
                buckets.saturating_mul(bucket_bits(fingerprint_bits, layout == Layout::Compact).into());
            return Err(SpecError::TooLarge { bits: asked, limit: MAX_BITS });
        }
        let capacity = math::cuckoo_capacity(buckets);
        let fpr = rate(fingerprint_bits, buckets, capacity);
        let size = CuckooSize { capacity, buckets, width: fingerprint_bits, layout, fpr_asked: fpr, fpr };
        let kernel = Fingerprints::of_size(size)?;
        Ok(Self(Shell { kernel, hashing: Hashing::default(), inserted: Some(0) }))
    }

    /// Removes all keys, and hashes those that are inserted from now on like this.
    #[must_use]
    pub fn rehashed(mut self, hashing: Hashing) -> Self {
        self.clear();
        self.0.hashing = hashing;
        self
    }

    /// Bits per fingerprint.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.0.kernel.size.width
    }

    /// Whether its buckets are semi-sorted.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.0.kernel.size.layout
    }

    /// The number of slots and of occupied slots, and how often a fingerprint was moved.
    #[must_use]
    pub fn slots(&self) -> Slots {
        self.0.kernel.slots()
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
        let TwoBuckets { first, second, fingerprint } =
            self.0.kernel.shape.place(self.hashing().half_of(key));
        (fingerprint, [first, second])
    }

    /// The number of buckets.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.0.kernel.size.buckets
    }

    /// The fingerprints in a bucket, 0 for an empty slot; `None` behind the last bucket.
    #[must_use]
    pub fn bucket(&self, bucket: u64) -> Option<[u32; SLOTS as usize]> {
        (bucket < self.buckets()).then(|| self.0.kernel.slots_of(bucket))
    }

    /// The buckets, as `docs/format.md` has them.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.0.kernel.words.as_slice()
    }
}

/// The rate with `used` occupied slots.
fn rate(width: u32, buckets: u64, used: u64) -> f64 {
    math::cuckoo_fpr(width, used as f64 / (buckets * u64::from(SLOTS)) as f64)
}

#[inline(always)]
fn is_at<L: Lanes, const SORTED: bool>(
    buckets: &Buckets<L, SORTED>,
    words: &[u64],
    place: TwoBuckets,
) -> bool {
    // Both are read at once: which of the two has it is a coin toss that no branch predictor can predict.
    let (first, second) = (buckets.peek(words, place.first), buckets.peek(words, place.second));
    buckets.either_has(first, second, place.fingerprint)
}

fn copies_at<L: Lanes, const SORTED: bool>(
    buckets: &Buckets<L, SORTED>,
    words: &[u64],
    place: TwoBuckets,
) -> u64 {
    let slots = [place.first, place.second].map(|bucket| buckets.slots(buckets.load(words, bucket)));
    slots.as_flattened().iter().filter(|&&slot| slot == place.fingerprint).count() as u64
}

/// Stores a fingerprint in the emptier of its buckets, if that has room. No branch depends on the contents.
#[inline(always)]
fn push<L: Lanes, const SORTED: bool>(
    buckets: &Buckets<L, SORTED>,
    words: &mut [u64],
    place: TwoBuckets,
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
    place: TwoBuckets,
) -> bool {
    let (first, second) = (buckets.load(words, place.first), buckets.load(words, place.second));
    let Some((lanes, is_second)) = buckets.without(first, second, place.fingerprint) else { return false };
    let bucket = select_unpredictable(is_second, place.second, place.first);
    buckets.store(words, bucket, lanes);
    true
}

/// Hashes a batch of keys, prefetches both buckets of each, and calls `act` with the places of the batch before, until all
/// keys are done.
#[inline(always)]
fn in_flight<S: AsRef<[u64]> + ?Sized, L: Lanes, const SORTED: bool, K>(
    state: &mut S,
    shape: Addressing,
    buckets: &Buckets<L, SORTED>,
    keys: &[K],
    hash: impl Fn(&[K], &mut [u64]),
    act: impl FnMut(&mut S, &[TwoBuckets]),
) {
    let far = shape.is_far(state.as_ref());
    let place = |keys: &[K], places: &mut [TwoBuckets]| {
        let mut halves = [0; BATCH];
        let halves = &mut halves[..keys.len()];
        hash(keys, halves);
        for (place, &half) in places.iter_mut().zip(&*halves) {
            *place = shape.place(half);
        }
    };
    let prefetch = |state: &S, place: TwoBuckets| {
        buckets.prefetch(state.as_ref(), place.first);
        buckets.prefetch(state.as_ref(), place.second);
    };
    batch::pipeline(state, keys, place, far, prefetch, act);
}

#[inline(always)]
fn ask_all<L: Lanes, const SORTED: bool, K>(
    shape: Addressing,
    buckets: &Buckets<L, SORTED>,
    mut words: &[u64],
    keys: &[K],
    hash: impl Fn(&[K], &mut [u64]),
    mut hits: &mut [bool],
) {
    in_flight(&mut words, shape, buckets, keys, hash, |words, places| {
        let hits = hits.split_off_mut(..places.len()).expect("one answer per key");
        for (hit, &place) in hits.iter_mut().zip(places) {
            *hit = is_at(buckets, words, place);
        }
    });
}

#[inline(always)]
fn take_all<L: Lanes, const SORTED: bool, K>(
    shape: Addressing,
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

#[inline(always)]
fn count_all<L: Lanes, const SORTED: bool, K>(
    shape: Addressing,
    buckets: &Buckets<L, SORTED>,
    mut words: &[u64],
    keys: &[K],
    hash: impl Fn(&[K], &mut [u64]),
    counts: &mut Vec<u64>,
) {
    in_flight(&mut words, shape, buckets, keys, hash, |words, places| {
        counts.extend(places.iter().map(|&place| copies_at(buckets, words, place)));
    });
}

/// Why a fingerprint was not stored.
#[derive(Clone, Copy, Debug)]
enum Refused {
    /// All slots of both its buckets have the same one.
    Copies,
    /// No way to a free slot was found in a table that has many, and the buckets on the way hold the same one again and
    /// again.
    Repeats,
    /// No way to a free slot was found.
    NoWay,
}

/// What inserts changed.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    inserted: u64,
    evictions: u64,
}

/// A search starts at two buckets, its first steps. The step at `START + 4 i + s` leads from the bucket of step `i` to the
/// other bucket of the fingerprint in its slot `s`.
const START: usize = 2;

/// A search gives up after following this many full buckets to the other buckets of their fingerprints. With fewer, a
/// large table refuses keys at 95 % or below: 64 stop at 94 to 95 % of ten million keys, 128 at 95 to 96 % of a hundred
/// million, 512 at 97 % of both (simulated).
const MOST_FOLLOWED: usize = 512;

/// At most this many buckets are followed together: they lead to 48 cache lines, more than a processor loads at a time.
const MOST_AT_ONCE: usize = 12;

/// The buckets of a filter while keys are put in.
struct Filling<'a> {
    words: &'a mut [u64],
    shape: Addressing,
    packing: Packing,
    /// Slots that were taken before.
    used: u64,
    steps: &'a mut Vec<u64>,
    changes: Changes,
}

impl AsRef<[u64]> for Filling<'_> {
    #[inline(always)]
    fn as_ref(&self) -> &[u64] {
        self.words
    }
}

impl Filling<'_> {
    /// Stores a fingerprint, or changes nothing.
    #[inline(always)]
    fn put<L: Lanes, const SORTED: bool>(
        &mut self,
        buckets: &Buckets<L, SORTED>,
        place: TwoBuckets,
    ) -> Result<Insertion, Refused> {
        let insertion = match push(buckets, self.words, place) {
            Some(insertion) => insertion,
            None => self.make_room(buckets, place)?,
        };
        self.changes.inserted += 1;
        Ok(insertion)
    }

    fn put_packed(&mut self, place: TwoBuckets) -> Result<Insertion, Refused> {
        match self.packing {
            Packing::Narrow(buckets) => self.put(&buckets, place),
            Packing::NarrowSorted(buckets) => self.put(&buckets, place),
            Packing::Wide(buckets) => self.put(&buckets, place),
            Packing::WideSorted(buckets) => self.put(&buckets, place),
        }
    }

    fn is_crowded(&self) -> bool {
        self.used + self.changes.inserted > 3 * self.shape.buckets
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
    /// The first bucket with room that a breadth-first search reaches ends a shortest way, and no bucket is twice on it:
    /// what follows its second visit could have followed the first. So every slot on the way still holds what it held
    /// when it was read.
    #[inline(never)]
    fn make_room<L: Lanes, const SORTED: bool>(
        &mut self,
        buckets: &Buckets<L, SORTED>,
        place: TwoBuckets,
    ) -> Result<Insertion, Refused> {
        let known = is_at(buckets, self.words, place);
        let found = self.search(buckets, place).ok_or_else(|| self.why_not(buckets, place))?;
        let (mut step, mut free) = (found, None);
        loop {
            let way = step.checked_sub(START).map(|from| (from / SLOTS as usize, small_len(from) % SLOTS));
            // The fingerprint that moves into this bucket: from the bucket before it, or the new one at the start.
            let moved = way.map_or(place.fingerprint, |(before, slot)| {
                buckets.slot(buckets.load(self.words, self.steps[before]), slot)
            });
            let lanes = buckets.load(self.words, self.steps[step]);
            let lanes = free.map_or(buckets.with(lanes, moved), |slot| buckets.replaced(lanes, slot, moved));
            buckets.store(self.words, self.steps[step], lanes);
            let Some((before, slot)) = way else { return Ok(Insertion::new_if(!known)) };
            self.changes.evictions += 1;
            (step, free) = (before, Some(slot));
        }
    }

    /// Why a search has found no free slot. Different keys fill a table to far more than nine tenths before one of them
    /// is refused; with fewer slots taken it is repeats that fill the buckets that the search came to.
    #[cold]
    fn why_not<L: Lanes, const SORTED: bool>(
        &self,
        buckets: &Buckets<L, SORTED>,
        place: TwoBuckets,
    ) -> Refused {
        if copies_at(buckets, self.words, place) == MOST_COPIES {
            return Refused::Copies;
        }
        let (used, slots) = (self.used + self.changes.inserted, self.shape.buckets * u64::from(SLOTS));
        let repeats = |&bucket: &u64| {
            let [a, b, c, d] = buckets.slots(buckets.load(self.words, bucket));
            a == b || a == c || a == d || b == c || b == d || c == d
        };
        let is_not_full = used.saturating_mul(10) < slots.saturating_mul(9);
        if is_not_full && self.steps.iter().any(repeats) { Refused::Repeats } else { Refused::NoWay }
    }

    /// The step that reaches a bucket with a free slot.
    #[inline(always)]
    fn search<L: Lanes, const SORTED: bool>(
        &mut self,
        buckets: &Buckets<L, SORTED>,
        place: TwoBuckets,
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

    /// The other buckets of the fingerprints in a full bucket; prefetches them.
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

    /// Prefetches the buckets that a search for room would read first, if there will be one.
    #[inline(always)]
    fn look_ahead<L: Lanes, const SORTED: bool>(&self, buckets: &Buckets<L, SORTED>, place: TwoBuckets) {
        let is_full = |bucket| buckets.is_full(buckets.load(self.words, bucket));
        if is_full(place.first) && is_full(place.second) {
            self.others(buckets, place.first);
            self.others(buckets, place.second);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(buckets: u64, width: u32) -> Addressing {
        Addressing { buckets, fingerprints: (1 << width) - 1, paths: Paths::default() }
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
                let TwoBuckets { first, fingerprint, .. } = shape.place(half);
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
        let mut cuckoo = Cuckoo::with_slots(16, 8, Layout::Fastest).unwrap().0.kernel;
        let shape = cuckoo.shape;
        let to = |from: u64, bucket: u64, nth: usize| {
            (1..256).filter(|&fingerprint| shape.other(from, fingerprint) == bucket).nth(nth).unwrap()
        };
        let buckets = Buckets::<u64, false>::new(8);
        let fill = |cuckoo: &mut Fingerprints, bucket: u64, slots: &[u32]| {
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
        let changes = table.changes;
        assert_eq!((changes.inserted, changes.evictions), (1, 2));
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
