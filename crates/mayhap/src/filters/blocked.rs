//! Blocked Bloom filter: one cache line per key.
//!
//! **Answers** "was this key inserted?"
//! **Promise** a key that is in is never denied; an absent key is admitted with the asked rate at capacity.
//! **Not for** the last percent of space: at 1% it takes 5% more bits than `bloom`, at 0.1% 9%, at 1e-5 25%.
//!
//! ```text
//!   key ─▶ first half of the digest ─▶ block 2, one bit in each lane
//!          block 0            block 1            block 2            block 3
//!          [0010|0100|…]      [0000|1000|…]      [0100|0001|…]      [1000|0010|…]
//!                                                  ▲     ▲   all set: perhaps
//! ```
//!
//! | operation | cache lines | can fail |
//! |-----------|-------------|----------|
//! | contains  | 1           | no       |
//! | insert    | 1           | no       |
//! | merge     | all, in order | mismatch |
//!
//! Two layouts: `compact` has blocks of a cache line (512 bits) with 4 to 20 bits per key, by the rate; `fastest`
//! has blocks of half a line (256 bits) with 8, which is less work in cache and more bits.
//!
//! **Paper** Putze, Sanders, Singler, *Cache-, Hash- and Space-Efficient Bloom Filters*, 2007; the split block of
//! Apache Impala.
//! **We differ** in that the size comes from the exact rate of unevenly loaded blocks, so that the asked rate is met.
//!
//! ```
//! use mayhap::Blocked;
//!
//! let mut seen = Blocked::new(1_000_000, 0.01)?;
//! seen.insert_all(&[1u64, 2, 3]);
//! assert!(seen.contains(2u64));
//! let mut hits = Vec::new();
//! seen.contains_all(&[3u64, 1], &mut hits);
//! assert_eq!(hits, [true, true]);
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use super::bloom::Measured;
use crate::batch::pipeline;
#[cfg(feature = "std")]
use crate::batch::{copy, in_parallel};
#[cfg(feature = "std")]
use crate::bits::Parts;
use crate::bits::{AtomicWords, Bytes, Words};
use crate::error::{DecodeError, Error, Full, Mismatch, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, Family, Guarantee, Make, Report};
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::intersection::Intersection;
use crate::math::{self, BlockShape};
use crate::narrow::{index, small};
use crate::paths::Paths;
use crate::probing::{Probing, reduce};
use crate::raw::simd::{self, Part, Single};
use crate::spec::{BLOCK_SHAPES, BlockedSize, Layout, MAX_BITS, Plan, Spec, blocked_rate};
use crate::traits::{Filter, Insert, Insertion, Intersect, Merge, SharedInsert};
use crate::wire::{Fields, Frame, Header, Summing, Writer};

/// The family `blocked`.
pub static FAMILY: Family = Family {
    id: 5,
    name: "blocked",
    summary: "the fastest: one cache line per key",
    can: Capabilities {
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
    },
    cost: Cost { query: "O(1)", insert: "O(1)", space: "1.5 n log2(1/p) and up" },
    make: Make::Empty(|spec| Ok(Box::new(Blocked::from_spec(spec)?))),
    shared: Some(shared),
    plan,
    decode: |frame, hashing| Ok(Box::new(Blocked::decode(frame, hashing)?)),
    in_place: true,
};

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let BlockedSize { capacity, blocks, shape, fpr_asked, fpr } = spec.blocked()?;
    Ok(Plan { capacity, fpr_asked, fpr, bits: blocks * shape.bits(), probes: Some(shape.probes()) })
}

/// Many threads fill parts of one filter, or atomic words where there are no locks.
fn shared(spec: &Spec) -> Result<Box<dyn SharedInsert>, SpecError> {
    #[cfg(feature = "std")]
    return Ok(Box::new(PartedBlocked::of(Blocked::from_spec(spec)?)));
    #[cfg(not(feature = "std"))]
    Ok(Box::new(AtomicBlocked::from_spec(spec)?))
}

/// Of so many blocks each is looked at for the rate: 1 MiB of lines at most, so that this is no reason to read all of a large
/// file. Of more blocks chance makes no difference: the rate of as many keys, spread by chance, is that of these.
const LOOKED_AT_BLOCKS: u64 = 1 << 14;

fn words_of(size: &BlockedSize) -> u64 {
    size.blocks * size.shape.bits() / 64
}

/// A blocked Bloom filter.
#[derive(Clone, Debug)]
pub struct Blocked {
    words: Words,
    size: BlockedSize,
    hashing: Hashing,
    paths: Paths,
    /// Insert calls; unknown after a merge or an interrupted update.
    inserted: Option<u64>,
    /// Set bits, if somebody has counted them since the last change: inserting a line at a time does not.
    ones: Option<u64>,
    /// What is known of its keys, if it is an intersection.
    intersection: Option<Intersection>,
    /// For keys that come one by one.
    single: Single,
}

/// Two filters are equal if they give the same answer to every key: same size, shape, hashing and bits.
impl PartialEq for Blocked {
    fn eq(&self, other: &Self) -> bool {
        self.must_match(other).is_ok() && self.words == other.words
    }
}

impl Blocked {
    /// An empty filter in the compact layout for so many keys at such a false-positive rate.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty filter of whatever was asked for.
    ///
    /// # Errors
    /// As for [`new`](Blocked::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let (size, hashing) = (spec.blocked()?, spec.hashed()?);
        let words = Words::zeroed(words_of(&size))?;
        let (paths, single) = (spec.paths, simd::single(spec.paths, size.shape));
        let (inserted, ones, intersection) = (Some(0), Some(0), None);
        Ok(Self { words, size, hashing, paths, inserted, ones, intersection, single })
    }

    /// Inserts a key.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Insertion {
        let half = self.hashing.half_of(key);
        self.set(half)
    }

    /// Whether a key is perhaps in. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.has(self.hashing.half_of(key))
    }

    #[inline]
    fn has(&self, half: u64) -> bool {
        self.single.contains(self.words.as_slice(), half)
    }

    #[inline]
    fn set(&mut self, half: u64) -> Insertion {
        self.ones = None;
        if let Some(calls) = &mut self.inserted {
            *calls = calls.saturating_add(1);
        }
        Insertion::new_if(self.single.insert(self.words.as_mut_slice(), half))
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    pub fn contains_all<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.ask(keys, |keys, halves| K::halves(keys, &hashing, halves), hits);
    }

    /// Inserts many keys, several at a time in flight.
    pub fn insert_all<K: Key>(&mut self, keys: &[K]) {
        let hashing = self.hashing;
        self.put(keys, |keys, halves| K::halves(keys, &hashing, halves), |_| {});
    }

    /// Inserts many keys with so many threads. The bits are those that one thread would set.
    ///
    /// No word is written by two threads at once and none is locked: the blocks lie in parts, and a thread that
    /// has gathered enough keys of a part takes it for as long as it inserts them.
    ///
    /// ```
    /// use mayhap::Blocked;
    ///
    /// let keys: Vec<u64> = (0..100_000).collect();
    /// let mut seen = Blocked::new(100_000, 0.01)?;
    /// seen.insert_all_parallel(&keys, 2);
    /// assert!(keys.iter().all(|key| seen.contains(key)));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn insert_all_parallel<K: Key + Sync>(&mut self, keys: &[K], threads: usize) {
        // Words that are written in place cannot be taken apart.
        if self.words.is_in_place() {
            return self.insert_all(keys);
        }
        let nothing = Self { words: Words::default(), ..*self };
        let parts = PartedBlocked::of(core::mem::replace(self, nothing));
        let hashing = self.hashing;
        let hashed = in_parallel(self.paths, keys, threads, Vec::new, |halves, keys| {
            halves.resize(keys.len(), 0);
            K::halves(keys, &hashing, halves);
            parts.insert(halves);
        });
        *self = parts.joined();
        match hashed {
            None => self.insert_all(keys),
            Some((_, Err(panic))) => std::panic::resume_unwind(panic),
            Some((_, Ok(()))) => {}
        }
    }

    #[inline(always)]
    fn ask<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [u64]), hits: &mut Vec<bool>) {
        let start = hits.len();
        hits.resize(start + keys.len(), false);
        simd::contains_all(
            self.paths,
            self.words.as_slice(),
            self.size.shape,
            keys,
            hash,
            &mut hits[start..],
        );
    }

    #[inline(always)]
    fn put<K>(&mut self, keys: &[K], hash: impl Fn(&[K], &mut [u64]), told: impl FnMut(bool)) {
        self.ones = None;
        self.inserted = self.inserted.map(|calls| calls.saturating_add(keys.len() as u64));
        let whole = Part { first: 0, total: self.size.blocks };
        simd::insert_all(self.paths, self.words.as_mut_slice(), whole, self.size.shape, keys, hash, told);
    }

    /// The same, telling of each key whether it was new.
    #[inline(always)]
    fn put_telling<K>(&mut self, keys: &[K], hash: impl Fn(&[K], &mut [u64]), outcomes: &mut Vec<Insertion>) {
        outcomes.reserve(keys.len());
        self.put(keys, hash, |new| outcomes.push(Insertion::new_if(new)));
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
        self.size.blocks * self.size.shape.bits()
    }

    /// Bits per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.size.shape.probes()
    }

    /// How its blocks are laid out.
    #[must_use]
    pub fn layout(&self) -> Layout {
        match self.size.shape {
            BlockShape::Line { .. } => Layout::Compact,
            BlockShape::Split => Layout::Fastest,
        }
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

    /// How many different keys are probably in; infinite when every bit is set. Of an intersection it is the number of common
    /// keys that was estimated when it was made; not a number if that is unknown, or if the intersection was changed
    /// afterwards.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        let ones = self.ones();
        match self.intersection {
            Some(intersection) => intersection.len(ones),
            None => self.len_by_bits(ones),
        }
    }

    fn len_by_bits(&self, ones: u64) -> f64 {
        math::blocked_estimated_len(self.size.shape, self.size.blocks, ones)
    }

    /// The share of the bits that are set.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.ones() as f64 / self.bits() as f64
    }

    /// The false-positive rate of the filter as it is: of a small one from the fill of each block, of a large one from the
    /// number of keys that its fill tells.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        if self.size.blocks <= LOOKED_AT_BLOCKS {
            return math::blocks_fpr(self.size.shape, self.words.as_slice());
        }
        let len = self.len_by_bits(self.ones());
        if len.is_infinite() {
            return 1.0;
        }
        let loads = math::block_loads(len / self.size.blocks as f64);
        math::blocked_fpr(&math::block_rates(self.size.shape, loads), self.size.blocks, len)
    }

    /// The false-positive rate with as many keys as it was made for.
    #[must_use]
    pub fn fpr_at_capacity(&self) -> f64 {
        self.size.fpr
    }

    /// Whether `other` can be merged with this one.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        if self.layout() != other.layout() {
            return Err(Mismatch::Layout { ours: self.layout().name(), theirs: other.layout().name() });
        }
        if self.bits() != other.bits() {
            return Err(Mismatch::Bits { ours: self.bits(), theirs: other.bits() });
        }
        if self.probes() != other.probes() {
            return Err(Mismatch::Probes { ours: self.probes(), theirs: other.probes() });
        }
        self.hashing.must_equal(&other.hashing)
    }

    /// Union: afterwards this filter holds every key of both, as if they had been inserted here.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |ours, theirs| ours | theirs)?;
        self.intersection = Intersection::of_union(self.intersection, other.intersection);
        Ok(())
    }

    /// Intersection: afterwards this filter still holds every key that is in both. Its rate is for keys that are in neither: a
    /// key of one filter alone is admitted as often as the other filter admits an absent one.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    pub fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        let (ours, theirs) = (self.words.as_slice(), other.words.as_slice());
        let union: u64 =
            ours.iter().zip(theirs).map(|(one, other)| u64::from((one | other).count_ones())).sum();
        let common = match (self.intersection, other.intersection) {
            (None, None) => (self.estimated_len() + other.estimated_len() - self.len_by_bits(union)).max(0.0),
            _ => f64::NAN,
        };
        self.combine(other, |ours, theirs| ours & theirs)?;
        self.intersection = Intersection::of(common, self.ones());
        Ok(())
    }

    fn combine(&mut self, other: &Self, bits: impl Fn(u64, u64) -> u64) -> Result<(), Mismatch> {
        self.must_match(other)?;
        for (ours, theirs) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *ours = bits(*ours, *theirs);
        }
        self.ones = None;
        self.inserted = None;
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
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
        let mut fields = Fields::new(&header.params);
        let blocks = fields.u64("blocks")?;
        let bits = fields.u32("bits of a block")?;
        let probes = fields.u32("probes")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        fields.end("parameters", header.params.len())?;
        let known = |shape: &BlockShape| shape.bits() == u64::from(bits) && shape.probes() == probes;
        let shape = BLOCK_SHAPES
            .into_iter()
            .find(known)
            .ok_or(DecodeError::Value { field: "probes", found: probes.into() })?;
        header.must_probe_by(probing(shape))?;
        if !(1..=MAX_BITS / shape.bits()).contains(&blocks) {
            return Err(DecodeError::Value { field: "blocks", found: blocks });
        }
        header.must_be_hashed(hashing)?;
        let (expected, found) = (blocks * shape.bits() / 8, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let words = Words::from_bytes(payload)
            .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
        let ones = frame.header.ones;
        if let Some(found) = ones {
            // Counted only when the whole payload is read anyway, so that a large file opens by its header.
            if found > blocks * shape.bits() || (frame.verified && found != words.count_ones()) {
                return Err(DecodeError::Value { field: "set bits", found });
            }
        }
        let fpr = blocked_rate((shape, capacity, blocks));
        let size = BlockedSize { capacity, blocks, shape, fpr_asked, fpr };
        let (paths, single) = (Paths::default(), simd::single(Paths::default(), size.shape));
        let Header { inserted, intersection, .. } = frame.header;
        let intersection = Intersection::read(intersection, ones.unwrap_or_else(|| words.count_ones()));
        Ok(Self { words, size, hashing, paths, inserted, ones, intersection, single })
    }
}

fn first_halves(digests: &[Digest], halves: &mut [u64]) {
    halves.iter_mut().zip(digests).for_each(|(half, digest)| *half = digest.a);
}

fn probing(shape: BlockShape) -> Probing {
    match shape {
        BlockShape::Line { .. } => Probing::Line,
        BlockShape::Split => Probing::Split,
    }
}

impl Filter for Blocked {
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

impl Insert for Blocked {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        Ok(self.set(digest.a))
    }

    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        self.put_telling(digests, first_halves, outcomes);
        Ok(())
    }
}

impl Merge for Blocked {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.merge(family::same_type(self, other)?)
    }
}

impl Intersect for Blocked {
    fn intersect_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.intersect(family::same_type(self, other)?)
    }
}

impl AnyFilter for Blocked {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: Paths) {
        (self.single, self.paths) = (simd::single(paths, self.size.shape), paths);
    }

    fn layout(&self) -> Option<Layout> {
        Some(self.layout())
    }

    fn report(&self) -> Report {
        let estimated_len = self.estimated_len();
        Report {
            capacity: self.size.capacity,
            inserted: self.inserted,
            estimated_len: estimated_len.is_finite().then_some(estimated_len),
            bits: self.bits(),
            probes: Some(self.probes()),
            fill: self.fill(),
            fpr_asked: self.size.fpr_asked,
            fpr_now: self.fpr(),
            fpr_interval: None,
            fpr_at_capacity: self.size.fpr,
            guarantee: Guarantee::NoFalseNegatives,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        let BlockedSize { capacity, blocks, shape, fpr_asked, .. } = self.size;
        out.probing(probing(shape));
        let ones = self.ones();
        out.counts(self.inserted, ones);
        out.intersection(Intersection::stored(self.intersection, ones));
        out.params().u64(blocks).u32(small(shape.bits())).u32(shape.probes()).u64(capacity).f64(fpr_asked);
        out.words(&self.words);
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.contains_all(keys, hits);
    }

    fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Error> {
        let hashing = self.hashing;
        self.put_telling(keys, |keys, halves| Key::halves(keys, &hashing, halves), outcomes);
        Ok(())
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
}

impl<K: Key> Extend<K> for Blocked {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| {
            self.insert(key);
        });
    }
}

/// A blocked filter under construction: its blocks in parts, each of which one thread at a time may write.
///
/// Plain stores of whole registers, where [`AtomicBlocked`] has a locked operation for every word of a block.
#[cfg(feature = "std")]
struct PartedBlocked {
    parts: Parts,
    /// Blocks per part: 2 to the power of this.
    shift: u32,
    /// Without its words, which are in the parts.
    filter: Blocked,
    inserted: AtomicU64,
}

#[cfg(feature = "std")]
impl PartedBlocked {
    /// Keys of one part that are inserted in one go: enough to make up for the lock and for the first misses.
    const RUN: usize = 256;

    fn of(mut filter: Blocked) -> Self {
        // So many that two threads seldom want the same one.
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let parts = (8 * cores).clamp(16, 256);
        let shift = filter.size.blocks.div_ceil(parts).next_power_of_two().ilog2();
        let stride = index(filter.size.shape.bits()) / 64;
        let parts = Parts::of(core::mem::take(&mut filter.words), stride << shift);
        Self { parts, shift, filter, inserted: AtomicU64::new(0) }
    }

    /// Inserts keys by the first halves of their digests.
    fn insert(&self, halves: &[u64]) {
        let blocks = self.filter.size.blocks;
        let mut runs = alloc::vec![0; self.parts.len() * Self::RUN];
        let mut lens = alloc::vec![0; self.parts.len()];
        for &half in halves {
            let part = index(reduce(half, blocks) >> self.shift);
            let len = &mut lens[part];
            let run = &mut runs[part * Self::RUN..][..Self::RUN];
            run[*len % Self::RUN] = half;
            *len += 1;
            if *len == Self::RUN {
                self.insert_run(part, run);
                *len = 0;
            }
        }
        for (part, (run, len)) in runs.chunks(Self::RUN).zip(lens).enumerate() {
            self.insert_run(part, &run[..len]);
        }
        self.inserted.fetch_add(halves.len() as u64, Ordering::Relaxed);
    }

    fn insert_run(&self, part: usize, halves: &[u64]) {
        let BlockedSize { blocks: total, shape, .. } = self.filter.size;
        let first = (part as u64) << self.shift;
        self.parts.with(part, |words| {
            simd::insert_all(self.filter.paths, words, Part { first, total }, shape, halves, copy, |_| {});
        });
    }

    /// The whole filter.
    fn joined(self) -> Blocked {
        let calls = self.inserted.into_inner();
        let inserted = self.filter.inserted.map(|before| before.saturating_add(calls));
        Blocked { words: self.parts.joined(), inserted, ones: None, ..self.filter }
    }
}

#[cfg(feature = "std")]
impl SharedInsert for PartedBlocked {
    fn hashing(&self) -> Hashing {
        self.filter.hashing
    }

    fn insert_batch(&self, digests: &[Digest]) {
        let halves: Vec<u64> = digests.iter().map(|digest| digest.a).collect();
        self.insert(&halves);
    }

    fn finish(self: Box<Self>) -> Box<dyn AnyFilter> {
        Box::new(self.joined())
    }
}

/// A blocked filter that many threads fill at once, without locks and without losing a bit.
///
/// A key inserted by one thread is seen by another as soon as something orders the two.
#[derive(Debug)]
pub struct AtomicBlocked {
    words: AtomicWords,
    size: BlockedSize,
    hashing: Hashing,
    paths: Paths,
    inserted: AtomicU64,
}

impl AtomicBlocked {
    /// An empty filter in the compact layout for so many keys at such a false-positive rate.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty filter of whatever was asked for.
    ///
    /// # Errors
    /// As for [`new`](AtomicBlocked::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let (size, hashing) = (spec.blocked()?, spec.hashed()?);
        let words = AtomicWords::zeroed(words_of(&size))?;
        Ok(Self { words, size, hashing, paths: spec.paths, inserted: AtomicU64::new(0) })
    }

    /// Inserts a key.
    pub fn insert(&self, key: impl Key) -> Insertion {
        self.inserted.fetch_add(1, Ordering::Relaxed);
        Insertion::new_if(self.set(self.hashing.half_of(key)))
    }

    /// Whether a key is perhaps in. `false` is certain for keys whose insert happened before.
    #[must_use]
    pub fn contains(&self, key: impl Key) -> bool {
        let half = self.hashing.half_of(key);
        self.words_with_masks(half, |word, mask| word.load(Ordering::Relaxed) & mask == mask)
    }

    #[inline]
    fn set(&self, half: u64) -> bool {
        let mut new = false;
        self.words_with_masks(half, |word, mask| {
            // A plain load first: a locked OR costs several times as much.
            if word.load(Ordering::Relaxed) & mask != mask {
                new |= word.fetch_or(mask, Ordering::Relaxed) & mask != mask;
            }
            true
        });
        new
    }

    /// Visits the words of a key's block with the key's bits, while `each` says so.
    #[inline]
    fn words_with_masks(&self, half: u64, mut each: impl FnMut(&AtomicU64, u64) -> bool) -> bool {
        let words = self.words.as_slice();
        match self.size.shape {
            BlockShape::Line { full, half: even } => {
                let (lines, mask) = (words.as_chunks::<8>().0, simd::line_mask(half, full, even));
                lines[simd::place(lines, half)].iter().zip(mask).all(|(word, mask)| each(word, mask))
            }
            BlockShape::Split => {
                let (splits, mask) = (words.as_chunks::<4>().0, simd::split_mask(half));
                splits[simd::place(splits, half)].iter().zip(mask).all(|(word, mask)| each(word, mask))
            }
        }
    }

    /// The same filter for one thread. The bits stay where they are.
    #[must_use]
    pub fn into_blocked(self) -> Blocked {
        let inserted = Some(self.inserted.into_inner());
        let (size, hashing, paths) = (self.size, self.hashing, self.paths);
        let (words, single) = (self.words.into(), simd::single(paths, size.shape));
        Blocked { words, size, hashing, paths, inserted, ones: None, intersection: None, single }
    }
}

impl SharedInsert for AtomicBlocked {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    fn insert_batch(&self, digests: &[Digest]) {
        let words = self.words.as_slice();
        let (blocks, stride) = (self.size.blocks, index(self.size.shape.bits() / 64));
        let ahead = |_: &(), half: u64| simd::prefetch(words, index(reduce(half, blocks)) * stride);
        pipeline(&mut (), digests, first_halves, true, ahead, |(), halves| {
            halves.iter().for_each(|&half| {
                self.set(half);
            });
        });
        self.inserted.fetch_add(digests.len() as u64, Ordering::Relaxed);
    }

    fn finish(self: Box<Self>) -> Box<dyn AnyFilter> {
        Box::new(self.into_blocked())
    }
}
