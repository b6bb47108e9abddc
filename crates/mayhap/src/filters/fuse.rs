//! Binary fuse filter: a set that is known and stays as it is, in few bits.
//!
//! **Answers** "is this key in the set?"
//! **Promise** a key of the set is never denied; another is admitted with the rate 2^-bits, whatever the number of keys.
//! **Not for** sets that change: there is no insert, and no merge. Build it again.
//!
//! ```text
//!   key ─▶ half a ─▶ shard ─▶ segment i        segment i+1      segment i+2
//!                             [ .. 5a .. ]  xor [ .. 17 .. ] xor [ .. c3 .. ]  ==  fingerprint of the key?
//! ```
//!
//! | operation | cache lines                | can fail                          |
//! |-----------|----------------------------|-----------------------------------|
//! | build     | a few passes over all keys | memory; the source; chosen keys   |
//! | contains  | 3 (layout `compact`: 4)    | no                                |
//!
//! Each key has a place in each of three neighbouring segments (four in the layout `compact`, which is smaller and slower).
//! Building finds an order of the keys in which each is the only one left at one of its places, so that this place can be
//! given what the key needs: the exclusive or of its places is its fingerprint. If there is no such order another seed is
//! tried. Of very many keys the shards by the highest bits of their digests are built each for itself.
//!
//! Repeated keys do no harm. Two keys with the same half digest are one key.
//!
//! **Paper** Graf, Lemire, *Binary Fuse Filters: Fast and Smaller Than Xor Filters*, JEA 2022.
//! **We differ** in the first place of a key, which is its half digest scaled and no hash of it: keys that are sorted, which
//! sharding nearly does, touch memory in order; in the order of peeling, by segments and first come first served, so that
//! several keys are looked at together; in fingerprints of any length.
//!
//! ```
//! use mayhap::Fuse;
//!
//! let bad = Fuse::build(&["a.example", "b.example", "b.example"], 0.004)?;
//! assert!(bad.contains("b.example"));
//! assert_eq!((bad.keys(), bad.fingerprint_bits()), (2, 8));
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::batch;
use crate::bits::{Bytes, GrowingWords, Words, words_for};
use crate::error::{BuildError, DecodeError, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, Family, Guarantee, Make, Report};
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::math;
use crate::narrow::{index, low_u8, low_u16, low_u32, low_u64, small_len};
use crate::paths::Paths;
use crate::probing::{PHI, Probing, folded, reduce};
use crate::raw::simd::{self, Places, Shard};
use crate::shards::{DigestShards, built_in_order, shard_of};
use crate::spec::{FuseSize, Layout, MAX_BITS, Plan, Spec};
use crate::traits::Filter;
use crate::wire::{Fields, Frame, Summing, Writer};

/// Up to so many pairs of values in all segments are compared to find the rate: that takes 1 ms at the most.
const LOOKED_AT: u64 = 1 << 18;

/// The family `fuse`.
pub static FAMILY: Family = Family {
    id: 17,
    name: "fuse",
    summary: "fixed set, fast: 7.9 bits per key at 0.8%",
    can: Capabilities {
        inserts: false,
        removes: false,
        counts: false,
        labels: false,
        merges: false,
        intersects: false,
        subtracts: false,
        folds: false,
        grows: false,
        exact: false,
    },
    probing: &[Probing::Fuse],
    cost: Cost { query: "O(1)", insert: "–", space: "1.13 n log2(1/p) and up" },
    make: Make::FromDigests(|spec, shards, threads| Ok(Box::new(Fuse::from_shards(spec, shards, threads)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(Fuse::decode(frame, hashing)?)),
    in_place: false,
};

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let size = spec.fuse()?;
    Ok(Plan {
        capacity: size.capacity,
        fpr_asked: size.fpr_asked,
        fpr: size.fpr,
        bits: size.bits(),
        probes: Some(size.ways),
    })
}

/// Filters smaller than this stay in the second-level cache, where prefetching costs more than it brings.
const PREFETCH_FROM_BYTES: usize = 256 * 1024;

/// Words of the directory for each shard.
const DIRECTORY_WORDS: usize = 3;

/// Seeds that are tried. One in two or more gives a filter, so that all of them fail with a chance below 2^-64.
const MOST_TRIES: u64 = 64;

/// So many of them are tried before the filter becomes longer by a segment.
const SEEDS_PER_SIZE: u64 = 4;

/// For so many keys.
fn sized(keys: u64, ways: u32) -> Shard {
    let (segment_log, segments) = math::fuse_segments(keys, ways);
    Shard { seed: 0, starts: segments << segment_log, segment_log: segment_log.into(), offset: 0 }
}

/// A binary fuse filter.
#[derive(Clone, Debug)]
pub struct Fuse {
    /// Fingerprints of `width` bits, packed; a word of zeros; and the directory: what `shards` has.
    words: Words,
    shards: Vec<Shard>,
    /// How many of the highest bits of a half tell its shard.
    shard_bits: u32,
    /// Each shard has fewer than 2^32 first places.
    short: bool,
    size: FuseSize,
    hashing: Hashing,
    paths: Paths,
    /// Different halves that it was built of.
    keys: u64,
}

/// Two filters are equal if they give the same answers: same size, hashing, seeds and fingerprints.
impl PartialEq for Fuse {
    fn eq(&self, other: &Self) -> bool {
        self.hashing == other.hashing
            && (self.size.width, self.size.ways) == (other.size.width, other.size.ways)
            && self.words == other.words
    }
}

impl Fuse {
    /// A filter of these keys, with a false-positive rate of at most `fpr`. Repeats do no harm.
    ///
    /// # Errors
    /// [`BuildError`] names the rate that cannot be had, or the memory.
    #[cfg(feature = "std")]
    pub fn build<K: Key + Sync>(keys: &[K], fpr: f64) -> Result<Self, BuildError> {
        Self::build_with(keys, &Spec::new().with_fpr(fpr), 1)
    }

    /// A filter of these keys, of whatever was asked for, by so many threads. Their number does not change the filter.
    ///
    /// # Errors
    /// As for [`build`](Fuse::build).
    #[cfg(feature = "std")]
    pub fn build_with<K: Key + Sync>(keys: &[K], spec: &Spec, threads: usize) -> Result<Self, BuildError> {
        // What is wrong with the rest is said before anything is hashed.
        let spec = spec.with_capacity(keys.len().max(1) as u64);
        spec.fuse()?;
        let bits = spec.paths.shard_bits(keys.len() as u64);
        let shards = crate::shards::MemoryShards::hashed(keys, spec.hashed()?, bits, threads);
        Self::from_shards(&spec, &shards, threads)
    }

    /// A filter of keys that come as digests, by so many threads. Their number does not change the filter.
    ///
    /// # Errors
    /// As for [`build`](Fuse::build), and what the source says.
    pub fn from_shards(spec: &Spec, source: &dyn DigestShards, threads: usize) -> Result<Self, BuildError> {
        let (mut size, hashing) = (spec.fuse()?, spec.hashed()?);
        let paths = spec.paths;
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
        Ok(Self { words, shards, shard_bits, short, size, hashing, paths, keys })
    }

    /// Whether a key is perhaps in the set. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.has(self.hashing.half_of(key))
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    pub fn contains_each<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.ask(keys, |keys, halves| K::halves(keys, &hashing, halves), hits);
    }

    #[inline]
    fn has(&self, half: u64) -> bool {
        if self.keys == 0 {
            return false;
        }
        match (self.size.ways, self.size.width) {
            (3, 8) => self.has_by::<3, true>(half),
            (3, _) => self.has_by::<3, false>(half),
            (_, 8) => self.has_by::<4, true>(half),
            _ => self.has_by::<4, false>(half),
        }
    }

    #[inline(always)]
    fn has_by<const WAYS: usize, const BYTES: bool>(&self, half: u64) -> bool {
        let shard = &self.shards[index(shard_of(half, self.shard_bits))];
        let (places, fingerprint) = shard.places::<WAYS>(half, self.shard_bits);
        let width = if BYTES { 8 } else { self.size.width };
        let slots = Slots { words: self.words.as_slice(), width };
        slots.differ(&places, fingerprint) == 0
    }

    #[inline(always)]
    fn ask<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [u64]) + Copy, hits: &mut Vec<bool>) {
        let start = hits.len();
        hits.resize(start + keys.len(), false);
        let hits = &mut hits[start..];
        match (self.keys, self.size.ways, self.size.width) {
            (0, ..) => hits.fill(false),
            (_, 3, 8) => self.ask_by::<3, true, K>(keys, hash, hits),
            (_, 3, _) => self.ask_by::<3, false, K>(keys, hash, hits),
            (_, _, 8) => self.ask_by::<4, true, K>(keys, hash, hits),
            _ => self.ask_by::<4, false, K>(keys, hash, hits),
        }
    }

    #[inline(always)]
    fn ask_by<const WAYS: usize, const BYTES: bool, K>(
        &self,
        keys: &[K],
        hash: impl Fn(&[K], &mut [u64]),
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
        // Two batches: the lines of one are on their way while the other is answered.
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

    /// The different keys that it was built of. (Two keys with the same half digest count as one.)
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Bits of all fingerprints together.
    #[must_use]
    pub fn bits(&self) -> u64 {
        slots_of(&self.shards, self.size.ways) * u64::from(self.size.width)
    }

    /// Bytes of memory, everything included.
    #[must_use]
    pub fn size_in_bytes(&self) -> u64 {
        (size_of::<Self>() + self.words.len() * 8 + self.shards.capacity() * size_of::<Shard>()) as u64
    }

    /// Bits of a fingerprint. The false-positive rate is 2 to minus this.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.size.width
    }

    /// Three places per key (`fastest`) or four (`compact`).
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.size.layout()
    }

    /// The false-positive rate: that of the fingerprints, and that of half digests. Of a small filter of the layout `compact`
    /// it is computed from the slots.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        match &*self.shards {
            [shard]
                if self.size.ways == 4
                    && self.keys > 0
                    && LOOKED_AT >> (2 * shard.segment_log) >= shard.starts =>
            {
                self.share_that_fits(shard) + math::equal_halves(self.keys)
            }
            _ => math::fuse_fpr(self.size.width, self.keys),
        }
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

    /// How keys are hashed.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
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
        header.must_probe_by(&[Probing::Fuse])?;
        header.must_be_hashed(hashing)?;
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
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let words = Words::from_bytes(payload)
            .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
        let (slots, directory) = words.as_slice().split_at(words.len() - index(directory / 8));
        // The slots are as many as there are words for, at most: a directory that claims more is refused below.
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
        if let Some(found) = frame.header.ones.filter(|&ones| ones > offset) {
            return Err(DecodeError::Value { field: "number of keys", found });
        }
        if keys > offset || frame.header.ones.is_some_and(|ones| ones != keys) {
            return Err(DecodeError::Value { field: "keys", found: keys });
        }
        let short = are_short(&shards);
        Ok(Self { words, shards, shard_bits, short, size, hashing, paths: Paths::default(), keys })
    }
}

/// Whether each shard has fewer than 2^32 first places: all that were ever built.
fn are_short(shards: &[Shard]) -> bool {
    shards.iter().all(|shard| shard.starts >> 32 == 0)
}

/// The slots of all shards, each filled up to whole words.
fn slots_of(shards: &[Shard], ways: u32) -> u64 {
    shards.iter().map(|shard| shard.slots(ways).next_multiple_of(64)).sum()
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

/// The parts that are there, one behind the other, with room for those that come.
struct Joined {
    words: GrowingWords,
    shards: Vec<Shard>,
    slots: u64,
    keys: u64,
}

impl Joined {
    /// For 2^bits shards of so many keys. One shard gets as much room as it takes, when it comes.
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
        bits.ok_or(SpecError::Bits { asked: u64::MAX, limit: MAX_BITS })?;
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

/// Asks for what lies at the places of so many keys. The segments that are worked on are larger than the second-level cache.
#[inline(always)]
fn prefetch<const WAYS: usize>(keys: &[u64], counts: &[u8], placed: &Places<WAYS>, count: usize) {
    for i in 0..count {
        for places in &placed.places {
            simd::prefetch(keys, index(places[i]));
            simd::prefetch(counts, index(places[i]));
        }
    }
}

/// The memory that building a shard takes, kept from one to the next.
#[derive(Default)]
struct Workspace {
    paths: Paths,
    halves: Vec<u64>,
    /// By segments; then, as they are peeled.
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

/// Makes room for so many words; what they hold is anything.
fn enlarge(words: &mut Words, len: usize) -> Result<(), SpecError> {
    if words.len() < len {
        // Shards differ by little: the largest should be the last that does not fit.
        *words = Words::default();
        *words = Words::zeroed((len + len / 64) as u64)?;
    }
    Ok(())
}

/// So many zeros.
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

    /// Gives each place what its key needs, the last peeled key first: nobody behind it needs another there.
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

/// What a fingerprint is held in while it is found: bytes or more of them.
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

impl Filter for Fuse {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.has(digest.a)
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        let hash = |digests: &[Digest], halves: &mut [u64]| {
            halves.iter_mut().zip(digests).for_each(|(half, digest)| *half = digest.a);
        };
        self.ask(digests, hash, hits);
    }
}

impl AnyFilter for Fuse {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn layout(&self) -> Option<Layout> {
        Some(self.layout())
    }

    fn report(&self) -> Report {
        let fpr = if self.keys == 0 { 0.0 } else { self.fpr() };
        Report {
            capacity: self.size.capacity,
            inserted: Some(self.keys),
            estimated_len: Some(self.keys as f64),
            bits: self.bits(),
            probes: Some(self.size.ways),
            fill: self.keys as f64 / slots_of(&self.shards, self.size.ways) as f64,
            fpr_asked: self.size.fpr_asked,
            fpr_now: fpr,
            fpr_interval: None,
            fpr_at_capacity: self.size.fpr,
            guarantee: Guarantee::NoFalseNegatives,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::Fuse);
        out.counts(Some(self.keys), self.keys);
        out.params().u64(self.keys).u32(self.size.width).u32(self.size.ways).u32(self.shard_bits).u32(0);
        out.params().f64(self.size.fpr_asked);
        out.words(&self.words);
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.contains_each(keys, hits);
    }
}
