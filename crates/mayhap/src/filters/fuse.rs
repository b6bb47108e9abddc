//! Binary fuse filter: a fixed set in few bits.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::batch;
use crate::bits::{GrowingWords, Words, words_for};
use crate::error::{BuildError, DecodeError, Knob, Mismatch, SpecError};
use crate::family::{Cost, Details, Family, Make, Profile, Space};
use crate::hash::Hashing;
use crate::math;
use crate::narrow::{index, low_u8, low_u16, low_u32, low_u64, small_len};
use crate::paths::Paths;
use crate::probing::{PHI, Probing, folded, reduce};
use crate::rates::Rate;
use crate::raw::simd::{self, Places, Shard};
use crate::shards::{DigestShards, built_in_order, shard_of};
use crate::shell::{self, Built, Kernel, filter};
use crate::spec::{Layout, MAX_BITS, Plan, Size, Spec};
use crate::wire::{Fields, Frame, Writer};

/// In a filter with at most this many pairs of values in all segments, the rate is computed from the slots: that takes 1 ms at
/// the most.
const LOOKED_AT: u64 = 1 << 18;

/// The family `fuse`.
pub(crate) static FAMILY: Family = Family {
    id: 17,
    name: "fuse",
    summary: "fixed set, fast: 7.9 bits per key at 0.8%",
    can: Fuse::CAN,
    knobs: &[Knob::Layout.any()],
    probing: &[Probing::Fuse],
    cost: Cost { query: "O(1)", insert: "–", space: "1.13 n log2(1/p) and up" },
    make: Make::FromDigests(|spec, shards, threads| Ok(Box::new(Fuse::from_shards(spec, shards, threads)?))),
    shared: None,
    plan: |spec| Ok(spec.fuse()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Fuse::decode(frame, hashing)?)),
    in_place: false,
    profile: Profile {
        space: Some(Space { per_key: |bits| 1.13 * bits, less: 0.0, more: 1.14 }),
        has_kernels: true,
        ..Profile::USUAL
    },
};

/// The numbers of a binary fuse filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FuseSize {
    /// The number of different keys it is made of.
    pub capacity: u64,
    /// Bits per fingerprint.
    pub width: u32,
    /// Places per key: 3 or 4.
    pub ways: u32,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give.
    pub fpr: f64,
}

impl FuseSize {
    /// The lengths that fingerprints have.
    const WIDTHS: RangeInclusive<u32> = 4..=32;

    /// Bits of all fingerprints together, if the shards have the same number of keys.
    #[must_use]
    pub fn bits(&self) -> u64 {
        let shards = 1 << math::shard_bits(self.capacity);
        let (log, segments) = math::fuse_segments(self.capacity.div_ceil(shards), self.ways);
        let slots = (segments + u64::from(self.ways) - 1) << log;
        shards * slots.next_multiple_of(64) * u64::from(self.width)
    }

    /// Four places per key are `compact`, three `fastest`.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        if self.ways == 4 { Layout::Compact } else { Layout::Fastest }
    }
}

impl Size for FuseSize {
    fn plan(&self) -> Plan {
        let Self { capacity, ways, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(ways) }
    }
}

impl Spec {
    /// Solves for what is not requested, for a binary fuse filter: its fingerprints are as long as the rate needs, or the bits
    /// allow. Three places per key in the layout `fastest`, which is the default, and four in `compact`.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn fuse(&self) -> Result<FuseSize, SpecError> {
        let asked = FAMILY.check(self)?;
        asked.capacity.ok_or(SpecError::Incomplete)?;
        let ways = if asked.layout == Some(Layout::Compact) { 4 } else { 3 };
        let sizes = |capacity: u64| {
            FuseSize::WIDTHS.map(move |width| {
                let fpr = math::fuse_fpr(width, capacity);
                FuseSize { capacity, width, ways, fpr_asked: asked.fpr.unwrap_or(fpr), fpr }
            })
        };
        // Who requests 2^-8 means 8 bits, although equal digests add a little.
        let keeps = |size: &FuseSize, p: f64| size.fpr <= p * (1.0 + 1e-6);
        asked.solved(
            |n, p| sizes(n).find(|size| keeps(size, p)),
            |n, bits, p| {
                let widest = sizes(n).rfind(|size| size.bits() <= bits);
                widest.filter(|size| p.is_none_or(|p| keeps(size, p)))
            },
            |_, _| None,
        )
    }
}

/// Filters smaller than this stay in the second-level cache, where prefetching costs more than it brings.
const PREFETCH_FROM_BYTES: usize = 256 * 1024;

/// Words of the directory for each shard.
const DIRECTORY_WORDS: usize = 3;

/// The most seeds that are tried. At least one in two gives a filter, so that all of them fail with a chance below 2^-64.
const MOST_TRIES: u64 = 64;

/// The number of seeds that are tried before the filter becomes longer by a segment.
const SEEDS_PER_SIZE: u64 = 4;

/// An empty shard for this number of keys.
fn sized(keys: u64, ways: u32) -> Shard {
    let (segment_log, segments) = math::fuse_segments(keys, ways);
    Shard { seed: 0, starts: segments << segment_log, segment_log: segment_log.into(), offset: 0 }
}

filter! {
    /// A binary fuse filter.
    ///
    /// **Answers** "is this key in the set?"
    /// **Promise** a key of the set is never denied; any other key is admitted with the rate 2^-bits, whatever the number of keys.
    /// **Not for** sets that change: there is no insert and no merge. Build a new filter.
    ///
    /// ```text
    ///   key ─▶ half a ─▶ shard ─▶ segment i        segment i+1      segment i+2
    ///                             [ .. 5a .. ]  xor [ .. 17 .. ] xor [ .. c3 .. ]  ==  fingerprint of the key?
    /// ```
    ///
    /// | operation | cache lines                | can fail                          |
    /// |-----------|----------------------------|-----------------------------------|
    /// | build     | a few passes over all keys | memory; the source; chosen keys   |
    /// | contains  | 3 (layout `compact`: 4)    | no                                |
    ///
    /// Each key has a place in each of three neighbouring segments (four in the layout `compact`, which is smaller and slower).
    /// Building finds an order of the keys in which each is the only one left at one of its places. This place then gets the value
    /// with which the exclusive or of all places of the key is its fingerprint. If there is no such order, another seed is tried.
    /// Many keys are split into shards by the highest bits of their digests, and each shard is built separately.
    ///
    /// Repeated keys do no harm. Two keys with the same half digest are one key.
    ///
    /// **Paper** Graf, Lemire, *Binary Fuse Filters: Fast and Smaller Than Xor Filters*, JEA 2022.
    /// **We differ** in the first place of a key, which is its half digest scaled and not a hash of it, so that keys in sorted order
    /// (sharding nearly sorts them) touch memory in order; in the order of peeling, by segments and first in, first out, so that
    /// several keys are handled together; in fingerprints of any length.
    ///
    /// Two filters are equal if they have the same size, hashing, seeds and fingerprints.
    ///
    /// ```
    /// use mayhap::Fuse;
    ///
    /// let bad = Fuse::build(&["a.example", "b.example", "b.example"], 0.004)?;
    /// assert!(bad.contains("b.example"));
    /// assert_eq!((bad.keys(), bad.fingerprint_bits()), (2, 8));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Fuse(Fingerprints) = FAMILY {
        built,
    }
}

/// The fingerprints of a binary fuse filter.
#[derive(Clone, Debug)]
pub(crate) struct Fingerprints {
    /// Fingerprints of `width` bits, packed; a word of zeros; and the directory: what `shards` has.
    words: Words,
    shards: Vec<Shard>,
    /// The number of highest bits of a half that choose its shard.
    shard_bits: u32,
    /// Each shard has fewer than 2^32 first places.
    short: bool,
    size: FuseSize,
    paths: Paths,
    /// Different halves that it was built of.
    keys: u64,
}

impl Fingerprints {
    #[inline(always)]
    fn contains_by<const WAYS: usize, const BYTES: bool>(&self, half: u64) -> bool {
        let shard = &self.shards[index(shard_of(half, self.shard_bits))];
        let (places, fingerprint) = shard.places::<WAYS>(half, self.shard_bits);
        let width = if BYTES { 8 } else { self.size.width };
        let slots = Slots { words: self.words.as_slice(), width };
        slots.differ(&places, fingerprint) == 0
    }

    #[inline(always)]
    fn contains_each_by<const WAYS: usize, const BYTES: bool, T>(
        &self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [u64]),
        hits: &mut [bool],
    ) {
        let width = if BYTES { 8 } else { self.size.width };
        let slots = Slots { words: self.words.as_slice(), width };
        let far = self.paths.is_far(size_of_val(slots.words), PREFETCH_FROM_BYTES);
        let answer = |placed: &Places<WAYS>, hits: &mut [bool]| {
            for (i, hit) in hits.iter_mut().enumerate() {
                *hit = slots.differ(&placed.places.each_ref().map(|place| place[i]), placed.fingerprints[i])
                    == 0;
            }
        };
        // Two batches: the cache lines of one are fetched while the other is answered.
        let (mut halves, mut both, mut turn) = ([0; batch::BATCH], [Places::default(); 2], 0);
        let mut waiting: Option<&mut [bool]> = None;
        for (keys, hits) in keys.chunks(batch::BATCH).zip(hits.chunks_mut(batch::BATCH)) {
            hash(keys, &mut halves[..keys.len()]);
            let few = (&halves, keys.len());
            simd::place_all(self.paths, &self.shards, self.shard_bits, self.short, few, &mut both[turn]);
            if !far {
                answer(&both[turn], hits);
                continue;
            }
            for places in &both[turn].places {
                places.iter().for_each(|&place| slots.prefetch(place));
            }
            turn = 1 - turn;
            if let Some(hits) = waiting.replace(hits) {
                answer(&both[turn], hits);
            }
        }
        if let Some(hits) = waiting {
            answer(&both[1 - turn], hits);
        }
    }

    /// The slots of all shards, each filled up to whole words.
    fn slots(&self) -> u64 {
        self.shards.iter().map(|shard| shard.slots(self.size.ways).next_multiple_of(64)).sum()
    }

    fn bits(&self) -> u64 {
        self.slots() * u64::from(self.size.width)
    }

    /// The share of absent keys whose places give their fingerprint, in four ways.
    ///
    /// The places in the second and in the fourth segment are the bits of the hash whose exclusive or is the lowest bits of the
    /// fingerprint. So these bits depend on the places, and in a few slots some fingerprints fit more often than others. The
    /// other bits fit by chance.
    fn share_that_fits(&self, shard: &Shard) -> f64 {
        let width = u64::from(self.size.width);
        let (slots, segment) =
            (Slots { words: self.words.as_slice(), width: self.size.width }, 1 << shard.segment_log);
        let low = (1 << shard.segment_log.min(width)) - 1;
        // How often each value is found in a segment, all places of which are as likely.
        let counts = |start: u64, way: u64, told: u64| {
            let mut counts = alloc::vec![0.0; index(low) + 1];
            for turned in 0..segment {
                let place = (start + way * segment) ^ turned;
                counts[index((slots.get(place + shard.offset) ^ (turned & told)) & low)] +=
                    1.0 / segment as f64;
            }
            counts
        };
        let mut sum = 0.0;
        for start in 0..shard.starts {
            let [second, third, fourth] =
                [(1, low), (2, 0), (3, low)].map(|(way, told)| counts(start, way, told));
            let first = slots.get(start + shard.offset);
            for (one, &chance) in (0..).zip(&second) {
                for (two, &other) in (0..).zip(&third) {
                    sum += chance * other * fourth[index((first ^ one ^ two) & low)];
                }
            }
        }
        sum / shard.starts as f64 * libm::scalbn(1.0, low.count_ones() as i32 - self.size.width as i32)
    }
}

impl Kernel for Fingerprints {
    type Hash = u64;

    #[inline]
    fn contains(&self, half: u64) -> bool {
        if self.keys == 0 {
            return false;
        }
        match (self.size.ways, self.size.width) {
            (3, 8) => self.contains_by::<3, true>(half),
            (3, _) => self.contains_by::<3, false>(half),
            (_, 8) => self.contains_by::<4, true>(half),
            _ => self.contains_by::<4, false>(half),
        }
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [u64]), hits: &mut [bool]) {
        match (self.keys, self.size.ways, self.size.width) {
            (0, ..) => hits.fill(false),
            (_, 3, 8) => self.contains_each_by::<3, true, T>(keys, hash, hits),
            (_, 3, _) => self.contains_each_by::<3, false, T>(keys, hash, hits),
            (_, _, 8) => self.contains_each_by::<4, true, T>(keys, hash, hits),
            _ => self.contains_each_by::<4, false, T>(keys, hash, hits),
        }
    }

    fn plan(&self) -> Plan {
        Plan { bits: self.bits(), ..self.size.plan() }
    }

    fn held_bytes(&self) -> u64 {
        (self.words.len() * 8 + self.shards.capacity() * size_of::<Shard>()) as u64
    }

    fn fill(&self) -> f64 {
        self.keys as f64 / self.slots() as f64
    }

    /// The rate of the fingerprints, and that of half digests. Of a small filter of the layout `compact` it is computed from
    /// the slots.
    fn rate(&self) -> Rate {
        Rate::computed(match &*self.shards {
            _ if self.keys == 0 => 0.0,
            [shard] if self.size.ways == 4 && LOOKED_AT >> (2 * shard.segment_log) >= shard.starts => {
                self.share_that_fits(shard) + math::equal_halves(self.keys)
            }
            _ => math::fuse_fpr(self.size.width, self.keys),
        })
    }

    fn estimated_len(&self) -> f64 {
        self.keys as f64
    }

    fn must_match(&self, _: &Self) -> Result<(), Mismatch> {
        Ok(())
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        (self.size.width, self.size.ways) == (other.size.width, other.size.ways) && self.words == other.words
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::Fuse);
        out.ones(self.keys);
        out.params().u64(self.keys).u32(self.size.width).u32(self.size.ways).u32(self.shard_bits).u32(0);
        out.params().f64(self.size.fpr_asked);
        out.words(&self.words);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let keys = fields.u64("keys")?;
        let width = fields.u32("bits of a fingerprint")?;
        let ways = fields.u32("places of a key")?;
        let shard_bits = fields.u32("bits that tell the shard")?;
        let reserved = fields.u32("reserved")?;
        let fpr_asked = fields.rate("asked rate")?;
        fields.end("parameters", header.params.len())?;
        let value = |field, found: u32| DecodeError::Value { field, found: found.into() };
        if !FuseSize::WIDTHS.contains(&width) {
            return Err(value("bits of a fingerprint", width));
        }
        if !(3..=4).contains(&ways) {
            return Err(value("places of a key", ways));
        }
        if shard_bits > math::MAX_SHARD_BITS {
            return Err(value("bits that tell the shard", shard_bits));
        }
        if reserved != 0 {
            return Err(value("reserved", reserved));
        }
        let (capacity, fpr) = (keys.max(1), math::fuse_fpr(width, keys.max(1)));
        let size = FuseSize { capacity, width, ways, fpr_asked, fpr };
        let found = header.payload.length;
        let directory = 8 * (1 + ((DIRECTORY_WORDS as u64) << shard_bits));
        if found < directory {
            return Err(DecodeError::Length { field: "payload", expected: directory, found });
        }
        let words = shell::take_all_words(frame)?;
        let (slots, directory) = words.as_slice().split_at(words.len() - index(directory / 8));
        // There are at most as many slots as the words have room for: a directory that claims more is refused below.
        let (mut shards, mut offset) = (Vec::new(), 0u64);
        for entry in directory[1..].chunks_exact(DIRECTORY_WORDS) {
            let &[seed, segments, log] = entry else {
                return Err(DecodeError::Payload { problem: "a directory that no writer gives" });
            };
            let segment_log = u32::try_from(log).ok().filter(|&log| log <= math::MAX_SEGMENT_LOG);
            let shard = segment_log
                .filter(|_| (1..=MAX_BITS).contains(&segments))
                .map(|log| Shard { seed, starts: segments << log, segment_log: log.into(), offset })
                .filter(|shard| shard.slots(ways) <= MAX_BITS)
                .ok_or(DecodeError::Payload { problem: "a directory that no writer gives" })?;
            offset += shard.slots(ways).next_multiple_of(64);
            shards.push(shard);
            if offset > MAX_BITS {
                break;
            }
        }
        let expected = words_for(offset.saturating_mul(width.into()));
        if expected != slots.len() as u64 {
            return Err(DecodeError::Payload {
                problem: "a directory of more or fewer slots than there are",
            });
        }
        if directory[0] != 0 {
            return Err(DecodeError::Padding { field: "word before the directory" });
        }
        shell::must_be_built_of(frame, keys, offset)?;
        let short = are_short(&shards);
        Ok(Self { words, shards, shard_bits, short, size, paths: Paths::default(), keys })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn keys(&self) -> Option<u64> {
        Some(self.keys)
    }

    fn details(&self) -> Details<'_> {
        Details { layout: Some(self.size.layout()), ..Details::default() }
    }
}

impl Built for Fingerprints {
    fn built(spec: &Spec, source: &dyn DigestShards, threads: usize) -> Result<Self, BuildError> {
        let (mut size, paths) = (spec.fuse()?, spec.paths);
        let shard_bits = paths.shard_bits(source.len());
        let mut joined = Joined::new(source.len(), shard_bits, &size);
        built_in_order(
            shard_bits,
            threads,
            || Workspace { paths, ..Workspace::default() },
            |workspace, shard| workspace.built(source, shard, shard_bits, &size),
            |part| joined.append(&part, &size),
        )?;
        let keys = joined.keys;
        let (words, shards) = joined.finish()?;
        size.capacity = keys.max(1);
        size.fpr = math::fuse_fpr(size.width, size.capacity);
        let short = are_short(&shards);
        Ok(Self { words, shards, shard_bits, short, size, paths, keys })
    }
}

impl Fuse {
    /// Bits of a fingerprint. The false-positive rate is 2 to minus this.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.0.kernel.size.width
    }

    /// Three places per key (`fastest`) or four (`compact`).
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.0.kernel.size.layout()
    }
}

/// Whether each shard has fewer than 2^32 first places: all that were ever built.
fn are_short(shards: &[Shard]) -> bool {
    shards.iter().all(|shard| shard.starts >> 32 == 0)
}

/// Fingerprints, packed.
#[derive(Clone, Copy, Debug)]
struct Slots<'a> {
    words: &'a [u64],
    width: u32,
}

impl Slots<'_> {
    /// What is at a place, and other bits above it.
    #[inline(always)]
    fn get(&self, place: u64) -> u64 {
        if cfg!(target_endian = "little") {
            let bytes: &[u8] = bytemuck::cast_slice(self.words);
            if self.width == 8 {
                return bytes[index(place)].into();
            }
            // At most 32 bits and 7 before them: eight bytes have them, and behind the last one there is a word.
            let bit = place * u64::from(self.width);
            let chunk = bytes[index(bit / 8)..].first_chunk().expect("a word behind the last slot");
            return u64::from_le_bytes(*chunk) >> (bit % 8);
        }
        let bit = place * u64::from(self.width);
        let (word, shift) = (index(bit / 64), bit % 64);
        self.words[word] >> shift | self.words[word + 1] << 1 << (63 - shift)
    }

    /// 0 if the places of a key give its fingerprint.
    #[inline(always)]
    fn differ<const WAYS: usize>(&self, places: &[u64; WAYS], fingerprint: u64) -> u64 {
        let all = places.iter().fold(fingerprint, |all, &place| all ^ self.get(place));
        all << (64 - self.width)
    }

    #[inline(always)]
    fn prefetch(&self, place: u64) {
        simd::prefetch(self.words, index(place * u64::from(self.width) / 64));
    }
}

/// A shard, built.
struct Part {
    shard: Shard,
    words: Words,
    keys: u64,
}

/// The parts that are built, one behind the other, with room for the others.
struct Joined {
    words: GrowingWords,
    shards: Vec<Shard>,
    slots: u64,
    keys: u64,
}

impl Joined {
    /// For 2^bits shards that have this number of keys together. A single shard gets the room that it needs when it is added.
    fn new(keys: u64, bits: u32, size: &FuseSize) -> Self {
        let count = 1u64 << bits;
        let mean = keys >> bits;
        let typical = sized(mean + 6 * mean.isqrt(), size.ways);
        // Some shards are found only when they are longer by a segment.
        let slots = (typical.slots(size.ways) + (1 << typical.segment_log)).next_multiple_of(64);
        let bits = slots.saturating_mul(count).saturating_mul(size.width.into());
        let room = words_for(bits) + 1 + DIRECTORY_WORDS as u64 * count;
        let words = if count == 1 { GrowingWords::default() } else { GrowingWords::with_room(room) };
        Self { words, shards: Vec::with_capacity(index(count)), slots: 0, keys: 0 }
    }

    fn append(&mut self, part: &Part, size: &FuseSize) -> Result<(), BuildError> {
        self.shards.push(Shard { offset: self.slots, ..part.shard });
        // Whole words, whatever the width.
        self.slots += part.shard.slots(size.ways).next_multiple_of(64);
        self.keys += part.keys;
        let bits = self.slots.checked_mul(size.width.into()).filter(|&bits| bits <= MAX_BITS);
        bits.ok_or(SpecError::TooLarge { bits: u64::MAX, limit: MAX_BITS })?;
        Ok(self.words.append(part.words.as_slice()).map_err(SpecError::from)?)
    }

    /// All words of the filter: slots, a word of zeros, the directory.
    fn finish(mut self) -> Result<(Words, Vec<Shard>), SpecError> {
        self.words.append_zeros(1)?;
        for shard in &self.shards {
            self.words.append(&[shard.seed, shard.starts >> shard.segment_log, shard.segment_log])?;
        }
        Ok((self.words.finish(), self.shards))
    }
}

/// Some keys of a shard, and where they lie.
struct Batch<const WAYS: usize> {
    paths: Paths,
    shard: Shard,
    bits: u32,
    halves: [u64; batch::BATCH],
    placed: Places<WAYS>,
}

impl<const WAYS: usize> Batch<WAYS> {
    fn new(paths: Paths, shard: &Shard, bits: u32) -> Self {
        Self { paths, shard: *shard, bits, halves: [0; batch::BATCH], placed: Places::default() }
    }

    /// Places at most as many as there is room for.
    #[inline(always)]
    fn place(&mut self, halves: impl ExactSizeIterator<Item = u64>) -> (&[u64; batch::BATCH], &Places<WAYS>) {
        let count = halves.len();
        self.halves.iter_mut().zip(halves).for_each(|(to, half)| *to = half);
        let (shards, few) = (core::slice::from_ref(&self.shard), (&self.halves, count));
        simd::place_all(self.paths, shards, self.bits, are_short(shards), few, &mut self.placed);
        (&self.halves, &self.placed)
    }
}

/// Prefetches the places of `count` keys. The segments in use are larger than the second-level cache.
#[inline(always)]
fn prefetch<const WAYS: usize>(keys: &[u64], counts: &[u8], placed: &Places<WAYS>, count: usize) {
    for i in 0..count {
        for places in &placed.places {
            simd::prefetch(keys, index(places[i]));
            simd::prefetch(counts, index(places[i]));
        }
    }
}

/// The memory for building a shard, reused for the next one.
#[derive(Default)]
struct Workspace {
    paths: Paths,
    halves: Vec<u64>,
    /// First by segments, then in the order of peeling.
    ordered: Words,
    /// At each place, the exclusive or of the keys that lie there.
    keys: Words,
    /// At each place, four times the number of those keys, and the exclusive or of which of their places it is.
    counts: Words,
    /// Places that have, or had, one key left.
    lone: Vec<u32>,
    /// Of each peeled key, at which of its places it was.
    ways: Vec<u8>,
}

/// Makes room for `len` words, whose contents are undefined.
fn enlarge(words: &mut Words, len: usize) -> Result<(), SpecError> {
    if words.len() < len {
        // Shards differ by little: the largest should be the last that does not fit.
        *words = Words::default();
        *words = Words::zeroed((len + len / 64) as u64)?;
    }
    Ok(())
}

/// Fills it with `len` zeros.
fn clear<T: Copy + Default>(values: &mut Vec<T>, len: usize) -> Result<(), SpecError> {
    values.clear();
    let refused = |_| SpecError::Memory { bytes: (len as u64).saturating_mul(size_of::<T>() as u64) };
    values.try_reserve_exact(len).map_err(refused)?;
    values.resize(len, T::default());
    Ok(())
}

impl Workspace {
    fn built(
        &mut self,
        source: &dyn DigestShards,
        shard: u64,
        bits: u32,
        size: &FuseSize,
    ) -> Result<Part, BuildError> {
        self.halves.clear();
        source.take(shard, bits, &mut self.halves)?;
        match (size.ways, size.width) {
            (3, ..=8) => self.solved::<3, u8>(bits, size.width),
            (3, ..=16) => self.solved::<3, u16>(bits, size.width),
            (3, _) => self.solved::<3, u32>(bits, size.width),
            (_, ..=8) => self.solved::<4, u8>(bits, size.width),
            (_, ..=16) => self.solved::<4, u16>(bits, size.width),
            _ => self.solved::<4, u32>(bits, size.width),
        }
    }

    fn solved<const WAYS: usize, S: Slot>(&mut self, bits: u32, width: u32) -> Result<Part, BuildError> {
        let mut shard = sized(self.halves.len() as u64, small_len(WAYS));
        let (mut attempt, mut are_different) = (0, false);
        while attempt < MOST_TRIES {
            shard.seed = folded((attempt + 1u64).wrapping_mul(PHI));
            self.order(&shard, bits)?;
            if self.peeled::<WAYS>(&shard, bits)? {
                let words = self.assigned::<WAYS, S>(&shard, bits, width)?;
                return Ok(Part { shard, words, keys: self.halves.len() as u64 });
            }
            // A key that is there twice is never the only one left at a place, whatever the seed. Repeats are looked for
            // only now, since sorting takes long; without them the filter is the one that the keys alone would give.
            let before = self.halves.len();
            if !are_different {
                are_different = true;
                self.halves.sort_unstable();
                self.halves.dedup();
            }
            if self.halves.len() < before {
                shard = sized(self.halves.len() as u64, small_len(WAYS));
            } else {
                attempt += 1;
                // Where a segment has just become longer there is little to spare, and where keys lie first does not
                // depend on the seed: then one more segment helps.
                if attempt % SEEDS_PER_SIZE == 0 {
                    shard.starts += 1 << shard.segment_log;
                }
            }
        }
        Err(BuildError::Unsolved { keys: self.halves.len() as u64, tries: MOST_TRIES })
    }

    /// Orders the keys by the segment of their first place, so that those that follow each other touch the same memory.
    fn order(&mut self, shard: &Shard, bits: u32) -> Result<(), SpecError> {
        let segment = |half: u64| index(reduce(half << bits, shard.starts) >> shard.segment_log);
        let mut ends = alloc::vec![0usize; index(shard.starts >> shard.segment_log) + 1];
        for &half in &self.halves {
            ends[segment(half) + 1] += 1;
        }
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        enlarge(&mut self.ordered, self.halves.len())?;
        let ordered = self.ordered.as_mut_slice();
        for &half in &self.halves {
            let end = &mut ends[segment(half)];
            ordered[*end] = half;
            *end += 1;
        }
        Ok(())
    }

    /// Puts all keys to their places, and takes them away again one by one, each from a place where it is the only one.
    /// Afterwards `ordered` and `ways` say in which order and from where; if that was possible for all.
    fn peeled<const WAYS: usize>(&mut self, shard: &Shard, bits: u32) -> Result<bool, SpecError> {
        let (len, slots) = (self.halves.len(), index(shard.slots(small_len(WAYS))));
        // In whole words of the narrowest slots: `assigned` finds them here.
        enlarge(&mut self.keys, slots.next_multiple_of(64))?;
        enlarge(&mut self.counts, slots.div_ceil(8))?;
        self.keys.as_mut_slice()[..slots].fill(0);
        self.counts.as_mut_slice()[..slots.div_ceil(8)].fill(0);
        clear(&mut self.lone, slots + WAYS)?;
        clear(&mut self.ways, len)?;
        let ordered = &mut self.ordered.as_mut_slice()[..len];
        let keys = &mut self.keys.as_mut_slice()[..slots];
        let counts: &mut [u8] = &mut bytemuck::cast_slice_mut(self.counts.as_mut_slice())[..slots];
        let mut crowded = false;
        let mut batch = Batch::<WAYS>::new(self.paths, shard, bits);
        for halves in ordered.chunks(batch::BATCH) {
            let (_, placed) = batch.place(halves.iter().copied());
            prefetch(keys, counts, placed, halves.len());
            for (i, &half) in halves.iter().enumerate() {
                for (way, places) in placed.places.iter().enumerate() {
                    let place = index(places[i]);
                    keys[place] ^= half;
                    let count = &mut counts[place];
                    *count = count.wrapping_add(4) ^ low_u8(way as u64);
                    crowded |= *count < 4;
                }
            }
        }
        // 64 keys at one place, out of fewer than three on average: repeats.
        if crowded {
            return Ok(false);
        }
        // First come, first served: what follows each other does not depend on each other. A place gets in once, since
        // its count only falls.
        let (mut head, mut tail, mut done) = (0, 0, 0);
        let lone = &mut *self.lone;
        for segment in 0..slots >> shard.segment_log {
            let start = segment << shard.segment_log;
            for (i, count) in counts[start..start + (1 << shard.segment_log)].iter().enumerate() {
                lone[tail] = small_len(start + i);
                tail += usize::from(count >> 2 == 1);
            }
            while head < tail {
                // What is read now is right for as long as the place has one key, which is looked at below.
                let few = head..tail.min(head + batch::BATCH);
                let (halves, placed) =
                    batch.place(lone[few.clone()].iter().map(|&place| keys[place as usize]));
                prefetch(keys, counts, placed, few.len());
                for (i, at) in few.clone().enumerate() {
                    let count = counts[lone[at] as usize];
                    if count >> 2 != 1 {
                        continue;
                    }
                    let half = halves[i];
                    ordered[done] = half;
                    self.ways[done] = count & 3;
                    done += 1;
                    for (way, places) in placed.places.iter().enumerate() {
                        let place = index(places[i]);
                        keys[place] ^= half;
                        let count = &mut counts[place];
                        *count = count.wrapping_sub(4) ^ low_u8(way as u64);
                        lone[tail] = small_len(place);
                        tail += usize::from(*count >> 2 == 1);
                    }
                }
                head = few.end;
            }
        }
        Ok(done == len)
    }

    /// Gives each place the value that its key needs, the last peeled key first: no later key needs another value there.
    fn assigned<const WAYS: usize, S: Slot>(
        &mut self,
        shard: &Shard,
        bits: u32,
        width: u32,
    ) -> Result<Words, SpecError> {
        let slots = shard.slots(small_len(WAYS)).next_multiple_of(64);
        let mask = u64::MAX >> (64 - width);
        // The keys at the places are not needed any more, and take more than the slots.
        let all: &mut [S] = &mut bytemuck::cast_slice_mut(self.keys.as_mut_slice())[..index(slots)];
        all.fill(S::of(0));
        let ordered = &self.ordered.as_slice()[..self.halves.len()];
        // One key at a time: these slots are few enough for the nearest caches, and batches of places were slower.
        for (&half, &way) in ordered.iter().zip(&self.ways).rev() {
            let (places, fingerprint) = shard.places::<WAYS>(half, bits);
            let own = &mut (fingerprint & mask);
            places.iter().for_each(|&place| *own ^= all[index(place)].into());
            all[index(places[usize::from(way)])] ^= S::of(*own);
        }
        let mut words = Words::zeroed(words_for(slots * u64::from(width)))?;
        if cfg!(target_endian = "little") && 8 * small_len(size_of::<S>()) == width {
            bytemuck::cast_slice_mut(words.as_mut_slice()).copy_from_slice(all);
            return Ok(words);
        }
        let (mut packed, mut filled, mut next) = (0u128, 0, words.as_mut_slice().iter_mut());
        for &slot in &*all {
            packed |= u128::from(slot.into()) << filled;
            filled += width;
            if filled >= 64 {
                *next.next().expect("as many words as slots need") = low_u64(packed);
                packed >>= 64;
                filled -= 64;
            }
        }
        Ok(words)
    }
}

/// The integer that holds a fingerprint during the build.
trait Slot: bytemuck::Pod + Into<u64> + core::ops::BitXorAssign {
    fn of(fingerprint: u64) -> Self;
}

macro_rules! slot {
    ($($type:ty, $low:ident);*) => {
        $(impl Slot for $type {
            #[inline(always)]
            fn of(fingerprint: u64) -> Self {
                $low(fingerprint)
            }
        })*
    };
}

slot!(u8, low_u8; u16, low_u16; u32, low_u32);
