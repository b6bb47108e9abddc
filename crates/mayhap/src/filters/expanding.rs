//! Expanding filter: grows with its keys, at the same rate and the same speed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::batch::{self, BATCH};
use crate::bits::{Aim, BLOCK, Filler, Met, OVERHEAD, Runs, Spot, Words, is_first_part};
use crate::error::{DecodeError, Full, Knob, Limit, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{Cost, Details, Doublings, Family, Guarantee, Make, Profile, Slots, Space};
use crate::hash::{Digest, Hashing, Here, Key};
use crate::math;
use crate::narrow::{index, low_u8, low_u64, small};
use crate::paths::Paths;
use crate::probing::Probing;
use crate::rates::Rate;
use crate::raw::simd::{Ranks, Work, with_ranks};
use crate::shell::{self, Empty, Inserts, Kernel, Merges, Removes, Shell, filter};
use crate::spec::{
    DEFAULT_DOUBLINGS, MAX_BITS, MOST_DOUBLINGS, Plan, STARTING_CAPACITY, Size, Spec, within_limit,
};
use crate::traits::{Insertion, Removal};
use crate::wire::{Fields, Frame, Writer};

/// The family `expanding`.
pub(crate) static FAMILY: Family = Family {
    id: 11,
    name: "expanding",
    summary: "grows, and keys can be removed; lookups stay fast",
    can: Expanding::CAN,
    knobs: &[Knob::Doublings.within(0, MOST_DOUBLINGS)],
    probing: &[PROBING],
    cost: Cost {
        query: "O(1)",
        insert: "O(1) amortized",
        space: "1.1 to 2.2 n (log2(1/p) + log2(doublings + 2) + 3.5)",
    },
    make: Make::Empty(|spec| Ok(Box::new(Expanding::from_spec(spec)?))),
    shared: None,
    plan: |spec| Ok(spec.expanding()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Expanding::decode(frame, hashing)?)),
    // A fingerprint that others make room for is in two slots or in none while it is written, and a doubling needs other
    // words.
    in_place: false,
    profile: Profile {
        space: Some(Space {
            per_key: |bits| 1.1112 * (bits + libm::log2(22.0) + 3.5),
            less: 0.68,
            more: 0.44,
        }),
        keeps_copies: true,
        has_kernels: true,
        ..Profile::USUAL
    },
};

/// A quotient and a fingerprint, from neighbouring bits of the digest.
const PROBING: Probing = Probing::new(11, "expanding");

/// The numbers of an expanding filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExpandingSize {
    /// The number of keys that it takes before it doubles.
    pub capacity: u64,
    /// Its slots, a multiple of 64.
    pub slots: u64,
    /// Bits of a new key's fingerprint.
    pub fingerprint_bits: u32,
    /// The doublings through which the rate is kept.
    pub doublings: u32,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate after all those doublings, when it is full again.
    pub fpr: f64,
}

impl ExpandingSize {
    /// The bits of all slots, with what lies beside them.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.slots.saturating_mul((self.fingerprint_bits + 1 + OVERHEAD) as u64)
    }
}

impl Size for ExpandingSize {
    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: None }
    }
}

/// The lengths of fingerprints. Of `f` bits, the keys of each doubling that is `f` back or more take 1 of `2^(f + 1)` slots for
/// good, however large the filter is by then. With 4 bits half of all slots are taken like that after 20 doublings; with fewer
/// it would soon double without getting room.
const FINGERPRINT_BITS: RangeInclusive<u32> = 4..=50;

impl Spec {
    /// Solves for what is not requested, for an expanding filter: its fingerprints are as long as the rate and the planned
    /// doublings need, and its slots as many as it starts with.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(1024, 0.01).expanding()?;
    /// assert_eq!((sized.slots, sized.fingerprint_bits, sized.doublings), (1152, 10, 20));
    /// assert!(sized.fpr <= 0.01); // just before the 21st doubling
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn expanding(&self) -> Result<ExpandingSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let doublings = asked.doublings.unwrap_or(DEFAULT_DOUBLINGS);
        let size = |slots: u64, fingerprint_bits: u32| {
            let fpr = math::expanding_fpr(fingerprint_bits, doublings, math::EXPANDING_LOAD);
            let (capacity, fpr_asked) = (math::expanding_capacity(slots), asked.fpr.unwrap_or(fpr));
            ExpandingSize { capacity, slots, fingerprint_bits, doublings, fpr_asked, fpr }
        };
        let width = |p: f64| {
            let width = math::expanding_fingerprint(p, doublings).max(*FINGERPRINT_BITS.start());
            FINGERPRINT_BITS.contains(&width).then_some(width)
        };
        asked.solved(
            |n, p| Some(size(math::expanding_slots(n), width(p)?)),
            // The longest fingerprints that fit.
            |n, bits, p| {
                let slots = math::expanding_slots(n);
                let least = p.map_or(Some(*FINGERPRINT_BITS.start()), width)?;
                let fit = (bits / slots).checked_sub((1 + OVERHEAD).into())?;
                let fit = small(fit.min((*FINGERPRINT_BITS.end()).into()));
                (fit >= least).then(|| size(slots, fit))
            },
            |bits, p| {
                let width = width(p)?;
                let blocks = bits / size(BLOCK as u64, width).bits();
                (blocks > 0).then(|| size(blocks * BLOCK as u64, width))
            },
        )
    }
}

/// This many equal fingerprints under one quotient stay for good, and more are not kept. So a run stays short however often
/// a key is inserted, and no removal can take what an insert left out.
pub(crate) const MOST_COPIES: u32 = 8;

/// Tables smaller than this stay in the second-level cache, where prefetching brings nothing.
const PREFETCH_FROM_BYTES: usize = 128 * 1024;

/// Keys that are inserted before the loop tests again whether the table has left the cache.
const STRETCH: u64 = 4096;

/// From this many bytes on, large batches of keys are gathered by region.
const GATHER_FROM_BYTES: usize = 4 << 20;

/// Slots of a region: 2 to the power of this. With fingerprints of 10 bits they take 28 KiB, a first-level
/// cache.
const REGION_SHIFT: u32 = 14;

/// The number of ages that a fingerprint can have, by its bits: one for each bit that it can give, and none.
const AGES: usize = *FINGERPRINT_BITS.end() as usize + 1;

/// From a digest to a quotient and a fingerprint: arithmetic without memory.
///
/// `a * start`, of 128 bits, is a number below `start` and a fraction. The bits of the fraction, the highest first, and then
/// those of `b`, are a stream. The quotient is that number and one bit of the stream for each doubling; the fingerprint is
/// what follows in the stream. So a doubling takes the first bit of each fingerprint, whatever the number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Splitting {
    /// The slots before all doublings.
    start: u64,
    made: u32,
    /// Bits of a fingerprint.
    width: u32,
}

impl Splitting {
    const fn slots(&self) -> u64 {
        self.start << self.made
    }

    fn runs(&self) -> Runs {
        Runs::new(self.slots(), self.width + 1)
    }

    /// The bits of the fraction that the number of slots has taken from the digest's first half.
    const fn taken(&self) -> u32 {
        u64::BITS - (self.start - 1).leading_zeros()
    }

    /// Whether the digest's first half is not enough.
    const fn is_wide(&self) -> bool {
        self.taken() + self.made + self.width > u64::BITS
    }

    /// The quotient, and a new key's fingerprint in the form in which slots hold it.
    #[inline(always)]
    fn split(&self, half: u64) -> (u64, u64) {
        let product = (u128::from(half) * u128::from(self.start)) << self.made;
        ((product >> 64) as u64, young(low_u64(product), self.width))
    }

    /// The same from both halves.
    fn split_wide(&self, digest: Digest) -> (u64, u64) {
        let product = u128::from(digest.a) * u128::from(self.start);
        let taken = self.taken();
        // The lowest bits of the product follow from the others: those of the second half take their place.
        let first = low_u64(product) ^ digest.b >> (64 - taken);
        let stream = u128::from(first) << 64 | u128::from(digest.b << taken);
        let quotient = (product >> 64) << self.made | stream >> 1 >> (127 - self.made);
        (low_u64(quotient), young(((stream << self.made) >> 64) as u64, self.width))
    }
}

/// A fingerprint of a new key: the first bits, and a 1 behind them. That 1 moves up with each bit that the fingerprint
/// gives to its quotient, and so the lowest 1 of a slot tells how many bits there are: an age in unary, from below.
#[inline(always)]
const fn young(stream: u64, width: u32) -> u64 {
    stream >> (63 - width) | 1
}

/// A quotient's slot and a new key's fingerprint.
#[derive(Clone, Copy, Debug, Default)]
struct NewKey {
    spot: Spot,
    young: u64,
}

/// Hashes keys to places. The parts of the shape that all keys share.
#[derive(Clone, Copy, Debug)]
struct Placing {
    shape: Splitting,
    runs: Runs,
    is_wide: bool,
}

impl Placing {
    fn new(shape: Splitting) -> Self {
        Self { shape, runs: shape.runs(), is_wide: shape.is_wide() }
    }

    #[inline(always)]
    fn half(&self, half: u64) -> NewKey {
        let (quotient, young) = self.shape.split(half);
        NewKey { spot: self.runs.spot(quotient), young }
    }

    #[inline(always)]
    fn digest(&self, digest: Digest) -> NewKey {
        let (quotient, young) = self.split(digest);
        NewKey { spot: self.runs.spot(quotient), young }
    }

    /// The quotient and the fingerprint, from as much of the digest as they need.
    #[inline(always)]
    fn split(&self, digest: Digest) -> (u64, u64) {
        if self.is_wide { self.shape.split_wide(digest) } else { self.shape.split(digest.a) }
    }
}

/// Where keys are, from their bytes.
#[inline(always)]
fn of_keys<K: Key>(hashing: Hashing) -> impl Fn(&Placing, &[K], &mut [NewKey]) + Copy {
    move |placing, keys, places| {
        if placing.is_wide {
            let mut digests = [Digest::default(); BATCH];
            let digests = &mut digests[..keys.len()];
            K::digests(keys, &hashing, digests, Here);
            of_digests(placing, digests, places);
            return;
        }
        let mut halves = [0; BATCH];
        let halves = &mut halves[..keys.len()];
        K::halves(keys, &hashing, halves, Here);
        places.iter_mut().zip(&*halves).for_each(|(place, &half)| *place = placing.half(half));
    }
}

/// Where keys are whose first halves are enough.
#[inline(always)]
fn of_halves(placing: &Placing, halves: &[u64], places: &mut [NewKey]) {
    places.iter_mut().zip(halves).for_each(|(place, &half)| *place = placing.half(half));
}

/// Where keys are that are hashed already.
#[inline(always)]
fn of_digests(placing: &Placing, digests: &[Digest], places: &mut [NewKey]) {
    places.iter_mut().zip(digests).for_each(|(place, &digest)| *place = placing.digest(digest));
}

/// Where keys are that another function hashes.
#[inline(always)]
fn of_hashes<K>(hash: impl Fn(&[K], &mut [Digest])) -> impl Fn(&Placing, &[K], &mut [NewKey]) {
    move |placing, keys, places| {
        let mut digests = [Digest::default(); BATCH];
        let digests = &mut digests[..keys.len()];
        hash(keys, digests);
        of_digests(placing, digests, places);
    }
}

/// Whether a key is stored that meets these.
#[inline(always)]
const fn admits<const SET: bool>(met: Met) -> bool {
    if SET { !met.is_known } else { met.copies < MOST_COPIES }
}

filter! {
    /// A filter that grows.
    ///
    /// **Answers** "was this key inserted and not removed since?", for an unknown number of keys.
    /// **Promise** a key that is in is never denied, as long as only keys that are in are removed; an absent key is admitted
    /// with at most the requested rate, through as many doublings as were planned, and a lookup costs the same after all of them.
    /// **Not for** sets whose size is known, which take half the memory in a `Bloom` or `Cuckoo`; counting.
    ///
    /// ```text
    ///   key ─▶ digest ─▶ 0101100111010…     quotient 01011, fingerprint 0011101
    ///                    quotient ─┘└─ fingerprint
    ///
    ///   slots by quotient, fingerprints of one quotient in a run:       … | 00111011 | 01101000 | …
    ///                                                                     age 0 ──┘     age 3 ──┘ (the lowest 1 says it)
    ///
    ///   doubled:          01011 0011101 ─▶ 010110 011101     the first bit of the fingerprint goes to the quotient
    /// ```
    ///
    /// | operation | cache lines      | can fail                                    |
    /// |-----------|------------------|---------------------------------------------|
    /// | contains  | 2, neighbours    | no                                          |
    /// | insert    | 2, neighbours    | no memory to double; then nothing changed   |
    /// | remove    | 2, neighbours    | no                                          |
    /// | doubling  | all, in order    | no memory; then nothing has changed         |
    /// | merge     | all, in order    | mismatch, no memory; then nothing changed   |
    ///
    /// When nine tenths of the slots are taken the filter doubles: its fingerprints are read in order and written in order into
    /// a table of twice the size, and each gives one bit to its quotient. No key is needed. Fingerprints of old keys are
    /// shorter by one bit for each doubling since they came, new ones have all bits again, so that the rate grows with the
    /// number of doublings and not with the number of keys. One that has no bits left matches every key of its quotient, and
    /// at the next doubling goes to both of the quotients that its own becomes.
    ///
    /// **A key that is inserted again** gets another copy, and must be removed as often. The eighth copy stays for good, and
    /// more are not kept: a key that comes a million times does no harm. [`insert_new`](Expanding::insert_new) keeps one copy
    /// only, for sets from which nothing is removed.
    ///
    /// **Removing** takes the copy with the most bits that matches. Of the copies of a fingerprint without bits it takes the
    /// one at the key's own quotient. The others stand for keys that do not exist, and stay: they are part of the rate.
    ///
    /// **Paper** Dayan, Bercea, Reviriego, Pagh, *InfiniFilter: Expanding Filters to Infinity and Beyond*, SIGMOD 2023, for
    /// fingerprints of different ages in one table; Dayan, Bercea, Pagh, *Aleph Filter: To Infinity in Constant Time*, VLDB
    /// 2024, for copies of those without bits.
    /// **We differ** in the quotient, which has the high bits of the digest, so that a doubling reads and writes in order; in
    /// removals, which need no list of what was removed; in the number of slots, any multiple of 64.
    ///
    /// Its capacity is the number of keys that it takes before it doubles. The rate at capacity is the highest that the
    /// false-positive rate becomes: when the filter is full after all planned doublings, or before the next doubling if there
    /// were more than planned. The number of distinct keys is that of the fingerprints, so a key counts as often as it is in.
    ///
    /// ```
    /// use mayhap::Expanding;
    ///
    /// let mut seen = Expanding::with_fpr(0.001)?; // 1024 keys to begin with
    /// for key in 0..100_000u64 {
    ///     seen.insert(key)?;
    /// }
    /// assert!((0..100_000u64).all(|key| seen.contains(key)));
    /// assert!(seen.remove(5u64).is_removed());
    /// assert_eq!(seen.doublings().made, 7);
    /// assert!(seen.fpr() <= 0.001);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Expanding(Fingerprints) = FAMILY {
        /// It takes `capacity` keys before it doubles, and keeps its rate through 20 doublings.
        new,
        /// Clearing leaves the number of its slots.
        specified,
        /// A key that is in already gets another copy, up to 8 of them.
        inserts_until_full,
        ///
        /// Removes one copy. A key that was inserted eight times is [stuck](Removal::Stuck): how often it is in is unknown.
        ///
        /// A key that was never inserted must not be removed: with about the false-positive rate another key that is in
        /// vanishes in its place.
        removes,
        ///
        /// The slots of one must be those of the other, doubled any number of times.
        matches,
        ///
        /// It holds each key as often as both together, up to 8 times. The keys themselves are not needed. The smaller filter
        /// is doubled first, and both are if they have no room in the larger.
        ///
        /// [`Mismatch`] also says if there is no memory, or a filter cannot grow any more.
        merges,
        grows,
    }
}

/// The fingerprints of a filter that grows.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprints {
    words: Words,
    placing: Placing,
    planned: u32,
    fpr_asked: f64,
    paths: Paths,
    /// Used slots, by the age of their fingerprints.
    ages: [u64; AGES],
    /// All used slots.
    used: u64,
    /// Slots that are used by copies of fingerprints without bits: all but one of each.
    copies: u64,
    /// The runs are known to be as they are written here. If not, they are verified before they are changed.
    is_whole: bool,
}

fn full(limit: Limit) -> Full {
    Full { limit, inserted: 0 }
}

impl Fingerprints {
    fn of_size(size: &ExpandingSize) -> Result<Self, SpecError> {
        let shape = Splitting { start: size.slots, made: 0, width: size.fingerprint_bits };
        Ok(Self {
            words: Words::zeroed(shape.runs().words())?,
            placing: Placing::new(shape),
            planned: size.doublings,
            fpr_asked: size.fpr_asked,
            paths: Paths::default(),
            ages: [0; AGES],
            used: 0,
            copies: 0,
            is_whole: true,
        })
    }

    #[inline]
    fn capacity(&self) -> u64 {
        math::expanding_capacity(self.placing.shape.slots())
    }

    fn bits(&self) -> u64 {
        self.placing.shape.slots() * u64::from(self.placing.shape.width + 1 + OVERHEAD)
    }

    fn used_slots(&self) -> Slots {
        Slots { slots: self.placing.shape.slots(), used: self.used, evictions: None }
    }

    fn made_doublings(&self) -> Doublings {
        Doublings { made: self.placing.shape.made, planned: self.planned }
    }

    #[inline]
    fn put<const SET: bool>(&mut self, digest: Digest) -> Result<Insertion, Full> {
        self.must_be_whole().map_err(full)?;
        if self.used >= self.capacity() {
            if SET && self.contains(digest) {
                return Ok(Insertion::Perhaps);
            }
            self.grow().map_err(full)?;
        }
        let (place, runs) = (self.placing.digest(digest), self.placing.runs);
        let put = Put::<SET> { runs, words: self.words.as_mut_slice(), place };
        let (is_in, is_known) = with_ranks(self.paths, put);
        self.add(is_in.into());
        Ok(Insertion::new_if(!is_known))
    }

    #[inline(always)]
    fn add(&mut self, stored: u64) {
        self.ages[0] += stored;
        self.used += stored;
    }

    #[inline(always)]
    fn put_each<const SET: bool, K>(
        &mut self,
        keys: &[K],
        place: &impl Fn(&Placing, &[K], &mut [NewKey]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Full> {
        self.must_be_whole().map_err(full)?;
        let mut left = keys;
        while !left.is_empty() {
            let mut room = self.capacity() - self.used;
            if SET && room == 0 {
                // Only a key that is new makes it grow.
                let mut hits = alloc::vec![false; left.len().min(index(STRETCH))];
                self.ask(&left[..hits.len()], place, &mut hits);
                let known = hits.iter().take_while(|&&hit| hit).count();
                (0..known).for_each(|_| told(Insertion::Perhaps));
                left = &left[known..];
                if known == hits.len() {
                    continue;
                }
            }
            if room == 0 {
                self.grow().map_err(full)?;
                room = self.capacity() - self.used;
            }
            // No more than there is room for, so that the loop need not test whether it must grow.
            let (now, later) = left.split_at(left.len().min(index(room.min(STRETCH))));
            let (paths, placing, words) = (self.paths, self.placing, self.words.as_mut_slice());
            let put = PutAll::<SET, _, _, _> { paths, placing, words, keys: now, place, told: &mut told };
            let stored = with_ranks(paths, put);
            self.add(stored);
            left = later;
        }
        Ok(())
    }

    /// Inserts keys for which there is room, gathered by region of the table, so that its lines are fetched and written
    /// back once for many keys. `None`, and nothing has changed, if they are too few for that or the table is too small.
    fn gather<K: Key>(&mut self, keys: &[K], hashing: Hashing) -> Option<()> {
        let (paths, placing, len) = (self.paths, self.placing, self.words.len());
        if 8 * len < paths.gather_from_bytes(GATHER_FROM_BYTES) || keys.len() < len / 8 || placing.is_wide {
            return None;
        }
        let region_shift = paths.region_shift(REGION_SHIFT);
        let regions = index(placing.shape.slots().div_ceil(1 << region_shift));
        // A quarter of the table: with less a region would be fetched for too few keys.
        let room = (len / 4 / regions).max(1);
        let (mut halves, mut ends) = (Vec::new(), Vec::new());
        halves.try_reserve_exact(regions * room).ok()?;
        ends.try_reserve_exact(regions).ok()?;
        halves.resize(regions * room, 0);
        ends.extend((0..regions).map(|region| region * room));
        let words = self.words.as_mut_slice();
        let stored = with_ranks(
            paths,
            PutGathered { paths, placing, words, keys, hashing, halves: &mut halves, ends: &mut ends, room },
        );
        self.add(stored);
        Some(())
    }

    fn take_at(&mut self, place: NewKey) -> Removal {
        let (runs, words) = (self.placing.runs, self.words.as_mut_slice());
        match with_ranks(self.paths, Take { runs, words, place }) {
            Taken::None => Removal::Absent,
            Taken::Stays => Removal::Stuck,
            Taken::One { age } => {
                self.ages[age as usize] -= 1;
                self.used -= 1;
                self.copies = self.copies.min(self.ages[self.placing.shape.width as usize]);
                Removal::Removed
            }
        }
    }

    #[inline(always)]
    fn take<K>(
        &mut self,
        keys: &[K],
        place: impl Fn(&Placing, &[K], &mut [NewKey]),
        outcomes: &mut Vec<Removal>,
    ) {
        if self.must_be_whole().is_err() {
            outcomes.resize(outcomes.len() + keys.len(), Removal::Absent);
            return;
        }
        let placing = self.placing;
        let far = self.paths.is_far(8 * self.words.len(), PREFETCH_FROM_BYTES);
        batch::pipeline(
            self,
            keys,
            |keys, places| place(&placing, keys, places),
            far,
            |fingerprints, place| placing.runs.prefetch(fingerprints.words.as_slice(), place.spot),
            |fingerprints, places| {
                outcomes.extend(places.iter().map(|&place| fingerprints.take_at(place)));
            },
        );
    }

    #[inline(always)]
    fn ask<K>(&self, keys: &[K], place: impl Fn(&Placing, &[K], &mut [NewKey]), hits: &mut [bool]) {
        let (paths, placing, words) = (self.paths, self.placing, self.words.as_slice());
        with_ranks(paths, AskAll { paths, placing, words, keys, place, hits });
    }

    /// A table of twice the slots.
    #[cold]
    fn grow(&mut self) -> Result<(), Limit> {
        // Short fingerprints may take all the new slots, too.
        while self.used >= self.capacity() {
            let (words, shape) = self.doubled()?;
            self.words = words;
            self.has_doubled(shape);
        }
        Ok(())
    }

    /// Counts what a doubling did.
    fn has_doubled(&mut self, shape: Splitting) {
        self.placing = Placing::new(shape);
        let width = shape.width as usize;
        // Those without bits are in two quotients now, and the last to have one have none.
        self.copies += self.ages[width];
        let bitless = 2 * self.ages[width] + self.ages[width - 1];
        self.ages.copy_within(..width - 1, 1);
        (self.ages[0], self.ages[width]) = (0, bitless);
        self.used = self.ages.iter().sum();
    }

    fn doubled(&self) -> Result<(Words, Splitting), Limit> {
        let Placing { shape, runs: from, .. } = self.placing;
        let shape = Splitting { made: shape.made + 1, ..shape };
        if shape.slots() > MAX_BITS / u64::from(shape.width + 1 + OVERHEAD) {
            return Err(Limit::Keys { capacity: self.capacity() });
        }
        let runs = shape.runs();
        let mut words = Words::zeroed(runs.words()).map_err(|no| Limit::Memory { bytes: no.bytes })?;
        let (slots, to) = (self.words.as_slice(), words.as_mut_slice());
        with_ranks(self.paths, Double { runs: from, from: slots, doubled: runs, to, width: shape.width });
        Ok((words, shape))
    }

    /// What came from a file of which only the header was verified is looked at before it is changed.
    #[inline(always)]
    fn must_be_whole(&mut self) -> Result<(), Limit> {
        if self.is_whole {
            return Ok(());
        }
        self.make_sure()
    }

    #[cold]
    fn make_sure(&mut self) -> Result<(), Limit> {
        if self.words.verify().is_err() || !self.is_as_written() {
            return Err(Limit::Damaged);
        }
        self.is_whole = true;
        Ok(())
    }

    /// Whether all runs are as this library writes them, and hold as many fingerprints of each age as the header says.
    fn is_as_written(&self) -> bool {
        let mut ages = [0; AGES];
        let count = |slot: u64| ages[slot.trailing_zeros() as usize] += 1;
        self.placing.runs.is_whole(self.words.as_slice(), count) && ages == self.ages
    }

    /// A copy of twice the slots.
    fn grown(&self) -> Result<Self, Limit> {
        let (words, shape) = self.doubled()?;
        let mut grown = Self { words, ..self.without_words() };
        grown.has_doubled(shape);
        Ok(grown)
    }

    fn without_words(&self) -> Self {
        Self { words: Words::default(), ..*self }
    }
}

impl Kernel for Fingerprints {
    type Hash = Digest;

    const GUARANTEE: Guarantee = Guarantee::NoFalseNegativesIfDeletesValid;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        let (runs, words) = (self.placing.runs, self.words.as_slice());
        let place = self.placing.digest(digest);
        // Most absent keys end here, without a call.
        runs.is_occupied(words, place.spot) && with_ranks(self.paths, Ask { runs, words, place })
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), hits: &mut [bool]) {
        self.ask(keys, of_hashes(hash), hits);
    }

    #[inline(always)]
    fn contains_keys<T: Key>(&self, keys: &[T], hashing: &Hashing, hits: &mut [bool]) {
        self.ask(keys, of_keys(*hashing), hits);
    }

    #[inline(always)]
    fn contains_digests(&self, digests: &[Digest], hits: &mut [bool]) {
        self.ask(digests, of_digests, hits);
    }

    fn plan(&self) -> Plan {
        let doublings = self.planned.max(self.placing.shape.made);
        let fpr = math::expanding_fpr(self.placing.shape.width, doublings, math::EXPANDING_LOAD);
        let (capacity, bits) = (self.capacity(), self.bits());
        Plan { capacity, fpr_asked: self.fpr_asked, fpr, bits, probes: None }
    }

    fn held_bytes(&self) -> u64 {
        (self.words.len() * 8) as u64
    }

    fn fill(&self) -> f64 {
        self.used_slots().load()
    }

    /// From how many fingerprints of each length there are.
    fn rate(&self) -> Rate {
        let width = self.placing.shape.width as usize;
        let weights = self.ages[..=width].iter().enumerate();
        let matched: f64 =
            weights.map(|(age, &slots)| slots as f64 * libm::exp2(age as f64 - width as f64)).sum();
        Rate::computed(-libm::expm1(-matched / self.placing.shape.slots() as f64))
    }

    fn estimated_len(&self) -> f64 {
        self.used.saturating_sub(self.copies) as f64
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        let (ours, theirs) = (self.placing.shape, other.placing.shape);
        must_agree(ours, theirs, |shape| [(Parameter::FingerprintBits, shape.width.into())])?;
        let (ours, theirs) = (ours.slots(), theirs.slots());
        if ours >> ours.trailing_zeros() != theirs >> theirs.trailing_zeros() {
            return Err(Mismatch::Differ {
                what: Parameter::Slots,
                ours: ours.into(),
                theirs: theirs.into(),
            });
        }
        Ok(())
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.placing.runs == other.placing.runs && self.words == other.words
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let Splitting { made, width, .. } = self.placing.shape;
        out.probing(PROBING);
        out.ones(self.used);
        out.params().u64(self.placing.shape.slots()).u32(width).u32(self.planned).u32(made).u32(0);
        out.params().f64(self.fpr_asked).u64(self.copies);
        for &slots in &self.ages[..=width as usize] {
            out.params().u64(slots);
        }
        out.words(&self.words);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let slots = fields.u64("slots")?;
        let width = fields.u32("bits of a fingerprint")?;
        let planned = fields.u32("planned doublings")?;
        let made = fields.u32("doublings")?;
        fields.zero_u32("padding of the parameters")?;
        let fpr_asked = fields.rate("asked rate")?;
        let copies = fields.u64("copies")?;
        if !FINGERPRINT_BITS.contains(&width) {
            return Err(DecodeError::Value { field: "bits of a fingerprint", found: width.into() });
        }
        let mut ages = [0; AGES];
        for slots in &mut ages[..=width as usize] {
            *slots = fields.u64("slots of an age")?;
        }
        fields.end("parameters", header.params.len())?;
        if planned > MOST_DOUBLINGS {
            return Err(DecodeError::Value { field: "planned doublings", found: planned.into() });
        }
        if !(1..=MAX_BITS / u64::from(width + 1 + OVERHEAD)).contains(&slots)
            || !slots.is_multiple_of(BLOCK as u64)
        {
            return Err(DecodeError::Value { field: "slots", found: slots });
        }
        // Before the doublings there were whole blocks, too.
        if made > (slots / BLOCK as u64).trailing_zeros() {
            return Err(DecodeError::Value { field: "doublings", found: made.into() });
        }
        let shape = Splitting { start: slots >> made, made, width };
        let placing = Placing::new(shape);
        let words = shell::take_words(frame, placing.runs.words() * 8)?;
        let used = ages.iter().fold(0u64, |sum, &slots| sum.saturating_add(slots));
        if used > math::expanding_capacity(slots) {
            return Err(DecodeError::Value { field: "slots of an age", found: used });
        }
        // All but one of each are copies, and they have no bits.
        if copies > ages[width as usize] {
            return Err(DecodeError::Value { field: "copies", found: copies });
        }
        if let Some(found) = frame.header.ones.filter(|&ones| ones != used) {
            return Err(DecodeError::Value { field: "occupied slots", found });
        }
        let (paths, is_whole) = (Paths::default(), frame.verified);
        let filter = Self { words, placing, planned, fpr_asked, paths, ages, used, copies, is_whole };
        // Verified only when the whole payload is read anyway, so that a large file opens by its header. Runs that no writer
        // gives may then be answered wrongly, which does no harm, and are verified before they are changed.
        if is_whole && !filter.is_as_written() {
            return Err(DecodeError::Payload { problem: "a run that no writer gives" });
        }
        Ok(filter)
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn details(&self) -> Details<'_> {
        Details {
            slots: Some(self.used_slots()),
            doublings: Some(self.made_doublings()),
            ..Details::default()
        }
    }
}

impl Empty for Fingerprints {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        Self::of_size(&spec.expanding()?)
    }

    fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        (self.ages, self.used, self.copies) = ([0; AGES], 0, 0);
        self.is_whole = true;
    }
}

impl Inserts for Fingerprints {
    type Error = Full;

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<Insertion, Full> {
        self.put::<false>(digest)
    }

    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        told: impl FnMut(Insertion),
    ) -> Result<(), Full> {
        self.put_each::<false, _>(keys, &of_hashes(hash), told)
    }

    fn insert_all_keys<T: Key>(
        &mut self,
        keys: &[T],
        hashing: &Hashing,
        mut done: impl FnMut(u64),
    ) -> Result<(), Full> {
        let (mut left, place) = (keys, of_keys(*hashing));
        while !left.is_empty() {
            // As many as fit before it doubles: their order does not matter then.
            let room = index(self.capacity().saturating_sub(self.used).min(left.len() as u64));
            let gathered = if self.is_whole { self.gather(&left[..room], *hashing) } else { None };
            let now = match gathered {
                Some(()) => {
                    done(room as u64);
                    room
                }
                // One more, so that it doubles.
                None => {
                    let now = left.len().min(room + 1);
                    self.put_each::<false, _>(&left[..now], &place, |_| done(1))?;
                    now
                }
            };
            left = &left[now..];
        }
        Ok(())
    }
}

impl Removes for Fingerprints {
    fn remove(&mut self, digest: Digest) -> Removal {
        let place = self.placing.digest(digest);
        if self.must_be_whole().is_err() { Removal::Absent } else { self.take_at(place) }
    }

    fn remove_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        outcomes: &mut Vec<Removal>,
    ) {
        self.take(keys, of_hashes(hash), outcomes);
    }

    fn remove_keys<T: Key>(&mut self, keys: &[T], hashing: &Hashing, outcomes: &mut Vec<Removal>) {
        self.take(keys, of_keys(*hashing), outcomes);
    }
}

impl Merges for Fingerprints {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        let refused = |limit| match limit {
            Limit::Memory { bytes } => Mismatch::Memory { bytes },
            limit => Mismatch::Full(full(limit)),
        };
        self.must_be_whole().map_err(refused)?;
        if !other.is_whole && !other.is_as_written() {
            return Err(refused(Limit::Damaged));
        }
        // Doubled copies, where they are needed: nothing changes before all memory is there.
        let (mut ours, mut theirs) = (None::<Self>, None::<Self>);
        fn slots(one: &Fingerprints) -> u64 {
            one.placing.shape.slots()
        }
        loop {
            let (one, two) = (ours.as_ref().unwrap_or(self), theirs.as_ref().unwrap_or(other));
            let is_full = one.used.saturating_add(two.used) > one.capacity().max(two.capacity());
            let (one_grows, two_grows) =
                (is_full || slots(one) < slots(two), is_full || slots(two) < slots(one));
            if !one_grows && !two_grows {
                break;
            }
            let one = one_grows.then(|| one.grown()).transpose().map_err(refused)?;
            let two = two_grows.then(|| two.grown()).transpose().map_err(refused)?;
            (ours, theirs) = (one.or(ours), two.or(theirs));
        }
        let (one, two) = (ours.as_ref().unwrap_or(self), theirs.as_ref().unwrap_or(other));
        let Placing { shape, runs, .. } = one.placing;
        let mut words = Words::zeroed(runs.words()).map_err(|no| Mismatch::Memory { bytes: no.bytes })?;
        let (one_words, two_words) = (one.words.as_slice(), two.words.as_slice());
        let unite = Unite { runs, one: one_words, two: two_words, to: words.as_mut_slice() };
        let ages = with_ranks(self.paths, unite);
        let copies = one.copies.saturating_add(two.copies).min(ages[shape.width as usize]);
        // The start is shown to users only: keys are placed by the number of slots.
        let made = (shape.slots() / self.placing.shape.start).ilog2();
        self.placing = Placing::new(Splitting { start: self.placing.shape.start, made, ..shape });
        (self.words, self.ages, self.copies) = (words, ages, copies);
        self.used = ages.iter().sum();
        Ok(())
    }
}

impl Expanding {
    /// An empty filter for any number of keys: it starts with room for 1024.
    ///
    /// # Errors
    /// As for [`new`](Expanding::new).
    pub fn with_fpr(fpr: f64) -> Result<Self, SpecError> {
        Self::new(STARTING_CAPACITY, fpr)
    }

    /// An empty filter with at least `slots` slots, rounded up to blocks of 64, and fingerprints of 4 to 50 bits.
    ///
    /// # Errors
    /// [`SpecError::TooLarge`] for too many slots, [`SpecError::Range`] for other lengths.
    pub fn with_slots(slots: u64, fingerprint_bits: u32) -> Result<Self, SpecError> {
        let widths = FINGERPRINT_BITS;
        Knob::FingerprintBits.within(*widths.start(), *widths.end()).check(fingerprint_bits.into())?;
        let slots = slots.clamp(1, MAX_BITS).next_multiple_of(BLOCK as u64);
        let fpr = math::expanding_fpr(fingerprint_bits, DEFAULT_DOUBLINGS, math::EXPANDING_LOAD);
        let size = ExpandingSize {
            capacity: math::expanding_capacity(slots),
            slots,
            fingerprint_bits,
            doublings: DEFAULT_DOUBLINGS,
            fpr_asked: fpr,
            fpr,
        };
        within_limit(size.bits())?;
        let kernel = Fingerprints::of_size(&size)?;
        Ok(Self(Shell { kernel, hashing: Hashing::default(), inserted: Some(0) }))
    }

    /// Inserts a key unless it is probably in: [`Insertion::Perhaps`] says that nothing has changed.
    ///
    /// Other than after [`insert`](Expanding::insert), removing a key may then make another one vanish that was taken for
    /// it. So this is for sets from which nothing is removed.
    ///
    /// # Errors
    /// [`Full`] if it must grow and there is no memory; then nothing has changed.
    #[inline]
    pub fn insert_new(&mut self, key: impl Key) -> Result<Insertion, Full> {
        let outcome = self.0.kernel.put::<true>(self.0.hashing.digest_of(key))?;
        self.0.add_inserted((outcome == Insertion::New).into());
        Ok(outcome)
    }

    /// As [`insert_new`](Expanding::insert_new) for many keys in order, several at a time in flight; appends one outcome
    /// each. A key that comes twice in them is new once.
    ///
    /// # Errors
    /// [`Full`] says for how many there is an outcome, before it had to grow and there was no memory.
    pub fn insert_new_all<K: Key>(&mut self, keys: &[K], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        self.put_new(keys, of_keys(self.0.hashing), outcomes)
    }

    /// The same for keys that are hashed already.
    ///
    /// # Errors
    /// As for [`insert_new_all`](Expanding::insert_new_all).
    pub fn insert_new_batch(
        &mut self,
        digests: &[Digest],
        outcomes: &mut Vec<Insertion>,
    ) -> Result<(), Full> {
        self.put_new(digests, of_digests, outcomes)
    }

    fn put_new<K>(
        &mut self,
        keys: &[K],
        place: impl Fn(&Placing, &[K], &mut [NewKey]),
        outcomes: &mut Vec<Insertion>,
    ) -> Result<(), Full> {
        let before = outcomes.len();
        let end = self.0.kernel.put_each::<true, _>(keys, &place, |outcome| outcomes.push(outcome));
        let outcomes = &outcomes[before..];
        self.0.add_inserted(outcomes.iter().filter(|&&outcome| outcome == Insertion::New).count() as u64);
        end.map_err(|full| Full { inserted: outcomes.len() as u64, ..full })
    }

    /// Bits of a new key's fingerprint.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.0.kernel.placing.shape.width
    }

    /// The number of slots, and how many are used.
    #[must_use]
    pub fn slots(&self) -> Slots {
        self.0.kernel.used_slots()
    }

    /// How often it has doubled, and how often it can and still keep its rate.
    #[must_use]
    pub fn doublings(&self) -> Doublings {
        self.0.kernel.made_doublings()
    }

    /// The blocks, as `docs/format.md` has them.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.0.kernel.words.as_slice()
    }
}

/// One lookup, of a quotient that has a run.
struct Ask<'a> {
    runs: Runs,
    words: &'a [u64],
    place: NewKey,
}

impl Work for Ask<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, ranks: impl Ranks) -> bool {
        let (Self { runs, words, .. }, NewKey { spot, young }) = (&self, self.place);
        match runs.aim(ranks, words, spot) {
            Some(aim) => runs.any(ranks, words, aim, young),
            None => runs.any_far(ranks, words, spot, young),
        }
    }
}

/// Many lookups.
struct AskAll<'a, K, P> {
    paths: Paths,
    placing: Placing,
    words: &'a [u64],
    keys: &'a [K],
    place: P,
    hits: &'a mut [bool],
}

impl<K, P: Fn(&Placing, &[K], &mut [NewKey])> Work for AskAll<'_, K, P> {
    type Output = ();

    #[inline(always)]
    fn run(self, ranks: impl Ranks) {
        let Self { paths, placing, mut words, keys, place, hits } = self;
        let (runs, far) = (placing.runs, paths.is_far(size_of_val(words), PREFETCH_FROM_BYTES));
        // Keys of the batch before whose slots have been prefetched.
        let (mut aims, mut len) = ([(Aim::default(), 0, 0); BATCH], 0);
        let mut first = 0;
        batch::pipeline(
            &mut words,
            keys,
            |keys, places| place(&placing, keys, places),
            far,
            |words, place| runs.prefetch_header(words, place.spot),
            |words, places| {
                for &(aim, young, index) in &aims[..len] {
                    hits[index] = runs.any(ranks, words, aim, young);
                }
                // Whether a quotient has a run is a coin that no branch predictor knows. So those that have one are listed
                // without a branch, and only their slots are looked for.
                let (mut listed, mut occupied) = ([0u8; BATCH], 0);
                for (index, place) in places.iter().enumerate() {
                    listed[occupied % BATCH] = low_u8(index as u64);
                    occupied += usize::from(runs.is_occupied(words, place.spot));
                }
                len = 0;
                // Those that are not listed have their answer now.
                hits[first..first + places.len()].fill(false);
                for &index in &listed[..occupied] {
                    let NewKey { spot, young } = places[index as usize % BATCH];
                    let index = first + index as usize;
                    let Some(aim) = runs.aim(ranks, words, spot) else {
                        hits[index] = runs.any_far(ranks, words, spot, young);
                        continue;
                    };
                    if far {
                        Runs::prefetch_aim(words, aim);
                    }
                    aims[len % BATCH] = (aim, young, index);
                    len += 1;
                }
                first += places.len();
            },
        );
        debug_assert!(first == keys.len() && len == 0, "the pipeline ends a turn after its last key");
    }
}

/// One insert. Whether it is stored, and whether it was perhaps there.
struct Put<'a, const SET: bool> {
    runs: Runs,
    words: &'a mut [u64],
    place: NewKey,
}

impl<const SET: bool> Work for Put<'_, SET> {
    type Output = (bool, bool);

    #[inline(always)]
    fn run(self, ranks: impl Ranks) -> (bool, bool) {
        let NewKey { spot, young } = self.place;
        let (is_in, met) = self.runs.insert(ranks, self.words, spot, young, admits::<SET>);
        (is_in, met.is_known)
    }
}

/// Many inserts, for all of which there is room. How many are stored.
struct PutAll<'a, const SET: bool, K, P, T> {
    paths: Paths,
    placing: Placing,
    words: &'a mut [u64],
    keys: &'a [K],
    place: P,
    told: T,
}

impl<const SET: bool, K, P, T> Work for PutAll<'_, SET, K, P, T>
where
    P: Fn(&Placing, &[K], &mut [NewKey]),
    T: FnMut(Insertion),
{
    type Output = u64;

    #[inline(always)]
    fn run(self, ranks: impl Ranks) -> u64 {
        let Self { paths, placing, mut words, keys, place, mut told } = self;
        let (runs, far) = (placing.runs, paths.is_far(size_of_val(words), PREFETCH_FROM_BYTES));
        let mut stored = 0;
        batch::pipeline(
            &mut words,
            keys,
            |keys, places| place(&placing, keys, places),
            far,
            |words, place| runs.prefetch(words, place.spot),
            |words, places| {
                for &place in places {
                    let (is_in, is_known) = Put::<SET> { runs, words, place }.run(ranks);
                    stored += u64::from(is_in);
                    told(Insertion::new_if(!is_known));
                }
            },
        );
        stored
    }
}

/// Many inserts, for all of which there is room, gathered by region. How many are stored.
struct PutGathered<'a, K> {
    paths: Paths,
    placing: Placing,
    words: &'a mut [u64],
    keys: &'a [K],
    hashing: Hashing,
    /// `room` for the first halves of digests of each region.
    halves: &'a mut [u64],
    /// Where the next of each region goes.
    ends: &'a mut [usize],
    room: usize,
}

impl<K: Key> Work for PutGathered<'_, K> {
    type Output = u64;

    #[inline(always)]
    fn run(self, ranks: impl Ranks) -> u64 {
        let Self { paths, placing, words, keys, hashing, halves: waiting, ends, room } = self;
        let region_shift = paths.region_shift(REGION_SHIFT);
        let (mut stored, mut batches, mut emptied) = (0, keys.chunks(BATCH), 0);
        let (mut batch, mut at, mut len) = ([0; BATCH], 0, 0);
        loop {
            // The next region that is full; or, when all keys are in one, the next of all.
            let region = 'full: loop {
                while at < len {
                    let half = batch[at];
                    at += 1;
                    let region = index(placing.shape.split(half).0 >> region_shift);
                    let end = ends[region];
                    waiting[end] = half;
                    ends[region] = end + 1;
                    if end + 1 == (region + 1) * room {
                        break 'full region;
                    }
                }
                match batches.next() {
                    Some(keys) => {
                        (at, len) = (0, keys.len());
                        K::halves(keys, &hashing, &mut batch[..len], Here);
                    }
                    None if emptied == ends.len() => return stored,
                    None => {
                        emptied += 1;
                        break emptied - 1;
                    }
                }
            };
            // In one place only, so that it is inlined, into whatever instructions this has.
            let halves = &waiting[region * room..ends[region]];
            let (words, place, told) = (&mut *words, of_halves, |_| {});
            stored +=
                PutAll::<false, _, _, _> { paths, placing, words, keys: halves, place, told }.run(ranks);
            ends[region] = region * room;
        }
    }
}

/// What became of a removal.
enum Taken {
    /// There was nothing.
    None,
    /// There are too many copies, so they stay.
    Stays,
    One {
        age: u32,
    },
}

/// One removal: of the longest fingerprint that matches.
struct Take<'a> {
    runs: Runs,
    words: &'a mut [u64],
    place: NewKey,
}

impl Work for Take<'_> {
    type Output = Taken;

    #[inline(always)]
    fn run(self, ranks: impl Ranks) -> Taken {
        let NewKey { spot, young } = self.place;
        let mut taken = Taken::None;
        self.runs.remove(ranks, self.words, spot, |slots| {
            // The place and the age of the longest, and how often it is there.
            let (mut longest, mut copies) = (None::<(usize, u32)>, 0);
            for (nth, slot) in slots.enumerate().filter(|&(_, slot)| is_first_part(slot, young)) {
                let age = slot.trailing_zeros();
                if longest.is_none_or(|(_, least)| age < least) {
                    (longest, copies) = (Some((nth, age)), 0);
                }
                copies += u32::from(longest.is_some_and(|(_, least)| age == least));
            }
            let (nth, age) = longest?;
            taken = if copies < MOST_COPIES { Taken::One { age } } else { Taken::Stays };
            (copies < MOST_COPIES).then_some(nth)
        });
        taken
    }
}

/// A doubling: each fingerprint gives its first bit to its quotient.
struct Double<'a> {
    runs: Runs,
    from: &'a [u64],
    doubled: Runs,
    to: &'a mut [u64],
    width: u32,
}

impl Work for Double<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, ranks: impl Ranks) {
        let (bitless, mask) = (1 << self.width, (2 << self.width) - 1);
        let mut filler = Filler::new(self.doubled, self.to);
        // Copies of those without bits, still to come to the second of their quotients.
        let (mut copies, mut second) = (0, 0);
        for (quotient, slot) in self.runs.iter(self.from) {
            let doubled = 2 * quotient + (slot >> self.width);
            // They stand behind those whose first bit is 0, and before those whose first bit is 1.
            if copies > 0 && (doubled > second || slot > bitless) {
                (0..copies).for_each(|_| filler.push(second, bitless));
                copies = 0;
            }
            if slot == bitless {
                filler.push(2 * quotient, bitless);
                (copies, second) = (copies + 1, 2 * quotient + 1);
            } else {
                filler.push(doubled, slot << 1 & mask);
            }
        }
        (0..copies).for_each(|_| filler.push(second, bitless));
        filler.finish(ranks);
    }
}

/// A union of two tables of one shape. The numbers of fingerprints by their ages.
struct Unite<'a> {
    runs: Runs,
    one: &'a [u64],
    two: &'a [u64],
    to: &'a mut [u64],
}

impl Work for Unite<'_> {
    type Output = [u64; AGES];

    #[inline(always)]
    fn run(self, ranks: impl Ranks) -> [u64; AGES] {
        let (mut one, mut two) = (self.runs.iter(self.one).peekable(), self.runs.iter(self.two).peekable());
        let mut filler = Filler::new(self.runs, self.to);
        let mut ages = [0; AGES];
        let (mut last, mut copies) = (None, 0);
        loop {
            let next = match (one.peek(), two.peek()) {
                (Some(first), Some(second)) if second < first => two.next(),
                (None, _) => two.next(),
                _ => one.next(),
            };
            let Some((quotient, slot)) = next else { break };
            copies = if last == next { copies + 1 } else { 1 };
            last = next;
            let age = slot.trailing_zeros() as usize;
            if copies <= MOST_COPIES {
                ages[age] += 1;
                filler.push(quotient, slot);
            }
        }
        filler.finish(ranks);
        ages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of `docs/format.md`, bit by bit.
    fn by_definition(shape: &Splitting, digest: Digest) -> (u64, u64) {
        let product = u128::from(digest.a) * u128::from(shape.start);
        let taken = shape.taken();
        let stream =
            u128::from(product as u64 ^ digest.b >> (64 - taken)) << 64 | u128::from(digest.b << taken);
        let bit = |i: u32| (stream >> (127 - i) & 1) as u64;
        let quotient = (0..shape.made).fold((product >> 64) as u64, |sum, i| 2 * sum + bit(i));
        let fingerprint = (shape.made..shape.made + shape.width).fold(0, |sum, i| 2 * sum + bit(i));
        (quotient, 2 * fingerprint + 1)
    }

    #[test]
    fn quotients_and_fingerprints_follow_the_definition() {
        for (start, made, width) in [
            (64, 0, 4),
            (1152, 0, 10),
            (1152, 13, 10),
            (1152, 20, 40),
            (64, 40, 50),
            (1 << 40, 0, 30),
            (192, 8, 50),
        ] {
            let shape = Splitting { start, made, width };
            for key in 0..2000u64 {
                let digest = Hashing::default().digest_of(key);
                let expected = by_definition(&shape, digest);
                assert!(expected.0 < shape.slots());
                assert_eq!(shape.split_wide(digest), expected, "{shape:?}");
                assert_eq!(Placing::new(shape).split(digest), expected, "{shape:?}");
                // A doubling takes the first bit of the fingerprint.
                let (quotient, young) = Splitting { made: made + 1, ..shape }.split_wide(digest);
                assert_eq!(quotient, 2 * expected.0 + (expected.1 >> width));
                assert!(is_first_part(expected.1 << 1 & ((2 << width) - 1), young));
                // Half of the start and one doubling more are the same.
                let halved = Splitting { start: start / 2, made: made + 1, width };
                assert_eq!(halved.split_wide(digest), expected);
            }
        }
    }
}
