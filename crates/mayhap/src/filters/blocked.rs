//! Blocked Bloom filter: one cache line per key.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::sync::atomic::{AtomicU64, Ordering};

use super::bloom::Measured;
use crate::batch::pipeline;
#[cfg(feature = "std")]
use crate::batch::{copy, in_parallel};
#[cfg(feature = "std")]
use crate::bits::Parts;
use crate::bits::{AtomicWords, Words};
use crate::error::{DecodeError, Knob, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{AnyFilter, Cost, Details, Family, Make, Profile, Space};
#[cfg(feature = "std")]
use crate::hash::Here;
use crate::hash::{Digest, Hashing, Key};
use crate::intersection::Intersection;
use crate::math::{self, BlockShape};
use crate::narrow::{index, small};
use crate::paths::Paths;
use crate::probing::{Probing, reduce};
use crate::rates::Rate;
use crate::raw::simd::{self, Part, Single};
use crate::shell::{self, Empty, Inserts, Intersects, Kernel, Merges, Shell, filter};
use crate::spec::{Layout, MAX_BITS, Plan, Size, Spec};
use crate::traits::{Insertion, SharedInsert};
use crate::wire::{Fields, Frame, Writer};

/// The family `blocked`.
pub(crate) static FAMILY: Family = Family {
    id: 5,
    name: "blocked",
    summary: "the fastest: one cache line per key",
    can: Blocked::CAN,
    knobs: &[Knob::Fpr.between(LEAST_FPR, 1.0), Knob::Probes.within(4, 20), Knob::Layout.any()],
    probing: &[LINE, SPLIT],
    cost: Cost { query: "O(1)", insert: "O(1)", space: "1.5 n log2(1/p) and up" },
    make: Make::Empty(|spec| Ok(Box::new(Blocked::from_spec(spec)?))),
    shared: Some(shared),
    plan: |spec| Ok(spec.blocked()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Blocked::decode(frame, hashing)?)),
    in_place: true,
    profile: Profile {
        space: Some(Space { per_key: |bits| 1.5 * bits, less: 0.04, more: 9.2 }),
        has_kernels: true,
        ..Profile::USUAL
    },
};

/// One bit in each lane of a cache line, from the digest's first half.
const LINE: Probing = Probing::new(2, "line");

/// One bit in each lane of half a cache line, from the digest's first half.
const SPLIT: Probing = Probing::new(3, "split");

/// The numbers of a blocked filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BlockedSize {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// Its blocks.
    pub blocks: u64,
    /// What a key does in its block.
    pub shape: BlockShape,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl BlockedSize {
    /// Blocks of a cache line are `compact`, of half a line `fastest`.
    pub(crate) const fn layout(&self) -> Layout {
        match self.shape {
            BlockShape::Line { .. } => Layout::Compact,
            BlockShape::Split => Layout::Fastest,
        }
    }
}

impl Size for BlockedSize {
    fn plan(&self) -> Plan {
        let Self { capacity, blocks, shape, fpr_asked, fpr } = *self;
        let bits = blocks.saturating_mul(shape.bits());
        Plan { capacity, fpr_asked, fpr, bits, probes: Some(shape.probes()) }
    }
}

/// All shapes of blocks that filters have.
pub(crate) const BLOCK_SHAPES: [BlockShape; 6] = [
    BlockShape::Line { full: 0, half: true },
    BlockShape::Line { full: 1, half: false },
    BlockShape::Line { full: 1, half: true },
    BlockShape::Line { full: 2, half: false },
    BlockShape::Line { full: 2, half: true },
    BlockShape::Split,
];

/// The probes of these shapes are a multiple of this.
const PROBES_STEP: u32 = 4;

/// The lowest rate that can be requested.
const LEAST_FPR: f64 = 1e-9;

/// The lines that need the fewest bits for a rate. The bounds are where [`math::blocked_blocks`] of two
/// neighbours meet, at ten million keys.
fn smallest_shape(fpr: f64) -> BlockShape {
    let (full, half) = match fpr {
        p if p >= 0.019 => (0, true),
        p if p >= 6.7e-4 => (1, false),
        p if p >= 1.1e-5 => (1, true),
        p if p >= 1.3e-7 => (2, false),
        _ => (2, true),
    };
    BlockShape::Line { full, half }
}

/// The rate of a blocked filter at capacity.
fn rate_at_capacity(shape: BlockShape, capacity: u64, blocks: u64) -> f64 {
    let loads = math::block_loads(capacity as f64 / blocks as f64);
    math::blocked_fpr(&math::block_rates(shape, loads), blocks, capacity as f64)
}

impl Spec {
    /// Solves for what is not requested, for a blocked filter: by the mixture over the loads of its blocks, and
    /// not by the classic formula.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn blocked(&self) -> Result<BlockedSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let is_split = asked.layout.unwrap_or_default() == Layout::Fastest;
        let mut shapes: Vec<BlockShape> =
            BLOCK_SHAPES.into_iter().filter(|shape| (*shape == BlockShape::Split) == is_split).collect();
        if let Some(probes) = asked.probes {
            shapes.retain(|shape| shape.probes() == probes);
            if shapes.is_empty() && is_split {
                Knob::Probes.within(8, 8).check(probes.into())?;
            } else if shapes.is_empty() {
                return Err(SpecError::Step {
                    knob: Knob::Probes,
                    asked: probes.into(),
                    step: PROBES_STEP.into(),
                });
            }
        }
        let size = |shape: BlockShape, capacity: u64, blocks: u64| {
            let fpr = rate_at_capacity(shape, capacity, blocks);
            BlockedSize { capacity, blocks, shape, fpr_asked: asked.fpr.unwrap_or(fpr), fpr }
        };
        // Of several shapes the one with the best result is taken.
        asked.solved(
            |n, p| {
                let shape =
                    shapes.iter().copied().find(|&shape| shapes.len() == 1 || shape == smallest_shape(p))?;
                Some(size(shape, n, math::blocked_blocks(shape, n, p)))
            },
            |n, bits, p| {
                let sizes = shapes.iter().map(|&shape| size(shape, n, (bits / shape.bits()).max(1)));
                let best = sizes.min_by(|one, other| one.fpr.total_cmp(&other.fpr));
                best.filter(|size| p.is_none_or(|p| size.fpr <= p))
            },
            |bits, p| {
                let blocks = |shape: BlockShape| (bits / shape.bits()).max(1);
                let capacity = |shape| math::blocked_capacity(shape, blocks(shape), p);
                let best = shapes.iter().copied().max_by_key(|&shape| capacity(shape))?;
                Some(size(best, capacity(best), blocks(best))).filter(|size| size.capacity > 0)
            },
        )
    }
}

/// Many threads fill parts of one filter, or atomic words where there are no locks.
fn shared(spec: &Spec) -> Result<Box<dyn SharedInsert>, SpecError> {
    #[cfg(feature = "std")]
    return Ok(Box::new(PartedBlocked::of(Blocked::from_spec(spec)?)));
    #[cfg(not(feature = "std"))]
    Ok(Box::new(AtomicBlocked::from_spec(spec)?))
}

/// Up to this number of blocks, each is read for the rate: 1 MiB of lines at most, so that this is no reason to read all of a large
/// file. Of more blocks chance makes no difference: the rate of as many keys, spread by chance, is that of these.
const LOOKED_AT_BLOCKS: u64 = 1 << 14;

fn words_of(size: &BlockedSize) -> u64 {
    size.blocks * size.shape.bits() / 64
}

filter! {
    /// A blocked Bloom filter.
    ///
    /// **Answers** "was this key inserted?"
    /// **Promise** a key that is in is never denied; an absent key is admitted with the asked rate at capacity.
    /// **Not for** the last percent of space: at 1% it takes 5% more bits than `bloom`, at 0.1% 9%, at 1e-5 25%.
    ///
    /// ```text
    ///   key ─▶ first half of the digest ─▶ block 2, one bit in each lane
    ///          block 0            block 1            block 2            block 3
    ///          [0010|0100|…]      [0000|1000|…]      [0100|0001|…]      [1000|0010|…]
    ///                                                  ▲     ▲   all set: perhaps
    /// ```
    ///
    /// | operation | cache lines | can fail |
    /// |-----------|-------------|----------|
    /// | contains  | 1           | no       |
    /// | insert    | 1           | no       |
    /// | merge     | all, in order | mismatch |
    ///
    /// Two layouts: `compact` has blocks of a cache line (512 bits) with 4 to 20 bits per key, by the rate; `fastest`
    /// has blocks of half a line (256 bits) with 8, which is less work in cache and more bits.
    ///
    /// **Paper** Putze, Sanders, Singler, *Cache-, Hash- and Space-Efficient Bloom Filters*, 2007; the split block of
    /// Apache Impala.
    /// **We differ** in that the size comes from the exact rate of unevenly loaded blocks, so that the asked rate is met.
    ///
    /// Of an intersection the number of distinct keys is that of the common keys which was estimated when it was made; not a
    /// number if that is unknown, or if the intersection was changed afterwards.
    ///
    /// ```
    /// use mayhap::Blocked;
    ///
    /// let mut seen = Blocked::new(1_000_000, 0.01)?;
    /// seen.insert_all(&[1u64, 2, 3]);
    /// assert!(seen.contains(2u64));
    /// let mut hits = Vec::new();
    /// seen.contains_each(&[3u64, 1], &mut hits);
    /// assert_eq!(hits, [true, true]);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Blocked(Blocks) = FAMILY {
        /// In the compact layout.
        new,
        specified,
        inserts,
        matches,
        /// As if they had been inserted here.
        merges,
        intersects,
    }
}

/// The blocks of a blocked Bloom filter.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    words: Words,
    size: BlockedSize,
    paths: Paths,
    /// Set bits, if they were counted since the last change: inserting a line at a time does not.
    ones: Option<u64>,
    /// What is known of its keys, if it is an intersection.
    intersection: Option<Intersection>,
    /// For keys that come one by one.
    single: Single,
}

impl Blocks {
    fn of(words: Words, size: BlockedSize, ones: Option<u64>, paths: Paths) -> Self {
        Self { words, size, paths, ones, intersection: None, single: simd::single(paths, size.shape) }
    }

    /// The same shape without words.
    #[cfg(feature = "std")]
    fn without_words(&self) -> Self {
        Self { words: Words::default(), ..*self }
    }

    fn ones(&self) -> u64 {
        self.ones.unwrap_or_else(|| self.words.count_ones())
    }

    fn len_by_bits(&self, ones: u64) -> f64 {
        math::blocked_estimated_len(self.size.shape, self.size.blocks, ones)
    }

    fn combine(&mut self, other: &Self, bits: impl Fn(u64, u64) -> u64) -> Result<(), Mismatch> {
        self.must_match(other)?;
        for (ours, theirs) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *ours = bits(*ours, *theirs);
        }
        self.ones = None;
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
    }
}

impl Kernel for Blocks {
    type Hash = u64;

    #[inline]
    fn contains(&self, half: u64) -> bool {
        self.single.contains(self.words.as_slice(), half)
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [u64]), hits: &mut [bool]) {
        simd::contains_all(self.paths, self.words.as_slice(), self.size.shape, keys, hash, hits);
    }

    fn plan(&self) -> Plan {
        self.size.plan()
    }

    fn fill(&self) -> f64 {
        self.ones() as f64 / self.size.plan().bits as f64
    }

    /// Of a small one from the fill of each block, of a large one from the number of keys that its fill tells.
    fn rate(&self) -> Rate {
        if self.size.blocks <= LOOKED_AT_BLOCKS {
            return Rate::computed(math::blocks_fpr(self.size.shape, self.words.as_slice()));
        }
        let len = self.len_by_bits(self.ones());
        if len.is_infinite() {
            return Rate::computed(1.0);
        }
        let loads = math::block_loads(len / self.size.blocks as f64);
        let rates = math::block_rates(self.size.shape, loads);
        Rate::computed(math::blocked_fpr(&rates, self.size.blocks, len))
    }

    fn estimated_len(&self) -> f64 {
        let ones = self.ones();
        match self.intersection {
            Some(intersection) => intersection.len(ones),
            None => self.len_by_bits(ones),
        }
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(&self.size, &other.size, |size| {
            [
                (Parameter::Layout, size.layout().name().into()),
                (Parameter::Bits, size.plan().bits.into()),
                (Parameter::Probes, size.shape.probes().into()),
            ]
        })
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.words == other.words
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let BlockedSize { capacity, blocks, shape, fpr_asked, .. } = self.size;
        out.probing(probing(shape));
        let ones = self.ones();
        out.ones(ones);
        out.intersection(Intersection::stored(self.intersection, ones));
        out.params().u64(blocks).u32(small(shape.bits())).u32(shape.probes()).u64(capacity).f64(fpr_asked);
        out.words(&self.words);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
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
        header.must_probe_by(&[probing(shape)])?;
        if !(1..=MAX_BITS / shape.bits()).contains(&blocks) {
            return Err(DecodeError::Value { field: "blocks", found: blocks });
        }
        let words = shell::take_words(frame, blocks * shape.bits() / 8)?;
        let ones = shell::occupied(frame, "set bits", blocks * shape.bits(), || words.count_ones())?;
        let fpr = rate_at_capacity(shape, capacity, blocks);
        let size = BlockedSize { capacity, blocks, shape, fpr_asked, fpr };
        let stored = frame.header.intersection;
        let intersection = Intersection::read(stored, ones.unwrap_or_else(|| words.count_ones()));
        Ok(Self { intersection, ..Self::of(words, size, ones, Paths::default()) })
    }

    fn take_paths(&mut self, paths: Paths) {
        (self.single, self.paths) = (simd::single(paths, self.size.shape), paths);
    }

    fn details(&self) -> Details<'_> {
        Details { layout: Some(self.size.layout()), ..Details::default() }
    }
}

impl Empty for Blocks {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let size = spec.blocked()?;
        Ok(Self::of(Words::zeroed(words_of(&size))?, size, Some(0), spec.paths))
    }

    fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.ones = Some(0);
        self.intersection = None;
    }
}

impl Inserts for Blocks {
    type Error = Infallible;

    #[inline]
    fn insert(&mut self, half: u64) -> Result<Insertion, Infallible> {
        self.ones = None;
        Ok(Insertion::new_if(self.single.insert(self.words.as_mut_slice(), half)))
    }

    #[inline(always)]
    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [u64]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Infallible> {
        self.ones = None;
        let whole = Part { first: 0, total: self.size.blocks };
        let (words, shape) = (self.words.as_mut_slice(), self.size.shape);
        simd::insert_all(self.paths, words, whole, shape, keys, hash, |new| told(Insertion::new_if(new)));
        Ok(())
    }

    #[inline(always)]
    fn insert_all<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [u64]),
        mut done: impl FnMut(u64),
    ) -> Result<(), Infallible> {
        self.insert_each(keys, hash, |_| {})?;
        done(keys.len() as u64);
        Ok(())
    }
}

impl Merges for Blocks {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |ours, theirs| ours | theirs)?;
        self.intersection = Intersection::of_union(self.intersection, other.intersection);
        Ok(())
    }
}

impl Intersects for Blocks {
    fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
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
}

impl Blocked {
    /// Inserts many keys with `threads` threads. The bits are those that one thread would set.
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
        if self.0.kernel.words.is_in_place() {
            return self.insert_all(keys);
        }
        let (paths, hashing) = (self.0.kernel.paths, self.0.hashing);
        let without_words = Self(self.0.with(self.0.kernel.without_words()));
        let parts = PartedBlocked::of(core::mem::replace(self, without_words));
        let hashed = in_parallel(paths, keys, threads, Vec::new, |halves, keys| {
            halves.resize(keys.len(), 0);
            K::halves(keys, &hashing, halves, Here);
            parts.insert(halves);
        });
        *self = parts.joined();
        match hashed {
            None => self.insert_all(keys),
            Some((_, Err(panic))) => std::panic::resume_unwind(panic),
            Some((_, Ok(()))) => {}
        }
    }

    /// Bits per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.0.kernel.size.shape.probes()
    }

    /// How its blocks are laid out.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.0.kernel.size.layout()
    }

    /// The bits, 64 to a word.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.0.kernel.words.as_slice()
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
}

fn first_halves(digests: &[Digest], halves: &mut [u64]) {
    halves.iter_mut().zip(digests).for_each(|(half, digest)| *half = digest.a);
}

fn probing(shape: BlockShape) -> Probing {
    match shape {
        BlockShape::Line { .. } => LINE,
        BlockShape::Split => SPLIT,
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
        let shift = filter.0.kernel.size.blocks.div_ceil(parts).next_power_of_two().ilog2();
        let stride = index(filter.0.kernel.size.shape.bits()) / 64;
        let parts = Parts::of(core::mem::take(&mut filter.0.kernel.words), stride << shift);
        Self { parts, shift, filter, inserted: AtomicU64::new(0) }
    }

    /// Inserts keys by the first halves of their digests.
    fn insert(&self, halves: &[u64]) {
        let blocks = self.filter.0.kernel.size.blocks;
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
        let BlockedSize { blocks: total, shape, .. } = self.filter.0.kernel.size;
        let first = (part as u64) << self.shift;
        self.parts.with(part, |words| {
            simd::insert_all(
                self.filter.0.kernel.paths,
                words,
                Part { first, total },
                shape,
                halves,
                copy,
                |_| {},
            );
        });
    }

    /// The whole filter.
    fn joined(self) -> Blocked {
        let calls = self.inserted.into_inner();
        let mut filter = self.filter;
        filter.0.add_inserted(calls);
        filter.0.kernel.ones = None;
        filter.0.kernel.words = self.parts.joined();
        filter
    }
}

#[cfg(feature = "std")]
impl crate::traits::sealed::Sealed for PartedBlocked {}

#[cfg(feature = "std")]
impl SharedInsert for PartedBlocked {
    fn hashing(&self) -> Hashing {
        self.filter.hashing()
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
    /// An empty filter in the compact layout for `capacity` keys at the false-positive rate `fpr`.
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

    /// Whether a key is probably in. `false` is certain for keys whose insert happened before.
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
        let kernel = Blocks::of(self.words.into(), self.size, None, self.paths);
        Blocked(Shell { kernel, hashing: self.hashing, inserted })
    }
}

impl crate::traits::sealed::Sealed for AtomicBlocked {}

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
