//! Retrieval: a value of a few bits for each key of a known set, in hardly more than those bits; anything for other keys.
//!
//! Each key is an equation in bits: the exclusive or of some of the 64 (or 128) slots from its start on is its value. The
//! slots are what solves all equations. What makes that cheap is that a key looks at neighbouring slots only (a *ribbon*):
//! eliminating one variable touches few rows. What makes it small is that there are fewer slots than keys (0.965 of them): in each
//! bucket of slots those keys that do not fit are *bumped*, by classes that two bits of the bucket tell, and go to the next
//! layer, which is made in the same way. The last layer has slots to spare and bumps no key.
//!
//! ```text
//!   key ─▶ start in layer 0 ─▶ bucket's two bits: bumped? ── no ──▶ parity(row & column) for each column ─▶ value
//!                                     └─ yes ─▶ layer 1 ─▶ ...
//! ```
//!
//! Slots lie in blocks of 64, column by column: a question reads two blocks (three with rows of 128 bits), and as many
//! columns as the value has bits. The last blocks of a layer can have one column more, so that a value has any number of bits
//! on average.
//!
//! **Paper** Dillinger, Hübschle-Schneider, Sanders, Walzer, *Fast Succinct Retrieval and Approximate Membership Using
//! Ribbon*, SEA 2022.

use alloc::vec::Vec;

use crate::batch;
use crate::bits::{GrowingWords, Words};
use crate::error::{BuildError, DecodeError, SpecError};
use crate::math;
use crate::narrow::{index, low_u8, low_u32, low_u64, small, small_len};
use crate::paths::Paths;
use crate::probing::{PHI, folded, reduce};
use crate::raw::simd::{self, ColumnWork, Parities, Ranks, Work, with_parities, with_ranks};
use crate::shards::shard_of;
use crate::spec::MAX_BITS;

/// Slots of a block.
pub(crate) const BLOCK: u64 = 64;

/// Layers that a shard has at most; the last one bumps no key.
pub(crate) const MOST_LAYERS: usize = 5;

/// Words of the directory for each shard: the number of layers, then seed and blocks of each.
pub(crate) const DIRECTORY_WORDS: usize = 1 + 2 * MOST_LAYERS;

/// Columns are at most so many, the extra one included.
pub(crate) const MOST_COLUMNS: usize = 32;

/// Seeds that are tried for the last layer, which has more slots each time.
const MOST_TRIES: u64 = 64;

/// Turns a hash into the lower and the upper half of a row.
const ROW_SALTS: [u64; 2] = [0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB];

/// What all layers have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowShape {
    /// Bits of a row: 64 or 128.
    pub(crate) row_bits: u32,
    /// Columns of every block.
    pub(crate) columns: u32,
    /// The share of the blocks that have one more, in parts of 2^32.
    pub(crate) more: u32,
    pub(crate) paths: Paths,
}

impl RowShape {
    /// How many of the blocks have no extra column.
    fn plain(&self, blocks: u64) -> u64 {
        math::ribbon_plain_blocks(blocks, self.row_bits, self.more)
    }

    /// The slots of a bucket are 2 to this.
    const fn bucket_log(&self) -> u32 {
        math::ribbon_bucket_log(self.row_bits)
    }

    /// Which class the slot of a bucket is in, counted from its right end: the paper's thresholds, for 0.965 slots per key.
    #[inline(always)]
    const fn class(&self, from_right: u64) -> u64 {
        let (low, high) = if self.row_bits == 64 { (94, 113) } else { (376, 452) };
        (from_right > low) as u64 + (from_right > high) as u64
    }
}

/// A layer of a shard: arithmetic, and where its words are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Layer {
    seed: u64,
    /// The number of slots at which keys start; 0 if it has no keys.
    starts: u64,
    /// Blocks without an extra column. They come first.
    plain: u64,
    /// The first word of its blocks, among all words.
    blocks_at: u64,
    /// The first word of its buckets' bits; `LAST` if it is a last layer and has none.
    buckets_at: u64,
}

/// Of a layer that bumps no key.
const LAST: u64 = u64::MAX;

/// Where a key's value is.
#[derive(Clone, Copy, Debug, Default)]
struct Spot {
    /// The words of the first block; the next ones come after `columns` and after `columns + behind`.
    word: u64,
    /// What the key was hashed to there.
    hash: u64,
    columns: u8,
    behind: u8,
    shift: u8,
    /// No key is where this one would be.
    is_nowhere: bool,
}

impl Layer {
    /// Of so many blocks, the first words of which are at `at`. Returns the word behind it too.
    fn laid_out(shape: &RowShape, seed: u64, blocks: u64, is_last: bool, at: u64) -> (Self, u64) {
        let plain = shape.plain(blocks);
        let buckets_at = at + blocks * u64::from(shape.columns) + (blocks - plain);
        let buckets =
            if is_last { 0 } else { (blocks * BLOCK).div_ceil(1 << shape.bucket_log()).div_ceil(32) };
        let starts = math::ribbon_starts(blocks, shape.row_bits);
        let at_buckets = if is_last { LAST } else { buckets_at };
        (Self { seed, starts, plain, blocks_at: at, buckets_at: at_buckets }, buckets_at + buckets)
    }

    #[inline(always)]
    fn word_of(&self, shape: &RowShape, block: u64) -> u64 {
        self.blocks_at + block * u64::from(shape.columns) + block.saturating_sub(self.plain)
    }

    #[inline(always)]
    fn columns_of(&self, shape: &RowShape, block: u64) -> u32 {
        shape.columns + u32::from(block >= self.plain)
    }

    /// The bits of a value that those who start here have columns for. A bit without a column is 0, so that it contradicts
    /// nobody.
    #[inline(always)]
    fn mask(&self, shape: &RowShape, start: u64) -> u32 {
        small(u64::from(u32::MAX) >> (32 - self.columns_of(shape, start / BLOCK)))
    }

    /// The start of a key and its hash. The highest bits of a half tell where it is in the first layer, so that keys that
    /// are sorted come in order; in the others, which few keys see, its hash does.
    #[inline(always)]
    fn start(&self, level: usize, half: u64, bits: u32) -> (u64, u64) {
        let hash = folded(half ^ self.seed);
        (reduce(if level == 0 { half << bits } else { hash }, self.starts), hash)
    }

    #[inline(always)]
    fn bumps(&self, shape: &RowShape, words: &[u64], start: u64) -> bool {
        if self.buckets_at == LAST {
            return false;
        }
        let bucket = start >> shape.bucket_log();
        let least = words[index(self.buckets_at + bucket / 32)] >> (bucket % 32 * 2) & 3;
        shape.class(from_right(shape, start)) >= least
    }
}

#[inline(always)]
const fn from_right(shape: &RowShape, start: u64) -> u64 {
    !start & ((1 << shape.bucket_log()) - 1)
}

/// The row of a key: bit i is the slot i behind its start. The first one always counts.
#[inline(always)]
fn row_of(hash: u64) -> [u64; 2] {
    ROW_SALTS.map(|salt| folded(hash ^ salt))
}

/// The layers of all shards. Does not own the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retrieval {
    pub(crate) shape: RowShape,
    /// How many of the highest bits of a half tell its shard.
    pub(crate) shard_bits: u32,
    shards: Vec<[Layer; MOST_LAYERS]>,
}

impl Retrieval {
    /// Words of zeros behind the last block, which questions read. Up to seven words of the directory are read over too.
    fn padding(shape: &RowShape) -> usize {
        shape.columns as usize + 1
    }

    /// Words behind the blocks and buckets of all shards.
    pub(crate) fn behind(shape: &RowShape, shard_bits: u32) -> u64 {
        Self::padding(shape) as u64 + ((DIRECTORY_WORDS as u64) << shard_bits)
    }

    /// What the directory at the end of the words tells.
    pub(crate) fn decode(shape: RowShape, shard_bits: u32, words: &[u64]) -> Result<Self, DecodeError> {
        let refused = |problem| DecodeError::Payload { problem };
        let behind = usize::try_from(Self::behind(&shape, shard_bits)).ok();
        let Some(own) = behind.and_then(|behind| words.len().checked_sub(behind)) else {
            return Err(refused("fewer words than its directory has"));
        };
        let (padding, directory) = words[own..].split_at(Self::padding(&shape));
        if padding.iter().any(|&word| word != 0) {
            return Err(DecodeError::Padding { field: "words behind the last block" });
        }
        // As many layers as there are words for.
        let (mut shards, mut at) = (Vec::with_capacity(directory.len() / DIRECTORY_WORDS), 0);
        for entry in directory.chunks_exact(DIRECTORY_WORDS) {
            let plan = Plan::from_directory(&shape, entry, MAX_BITS / BLOCK);
            let plan = plan.ok_or_else(|| refused("a directory that no writer gives"))?;
            let (layers, end) = plan.laid_out(&shape, at);
            shards.push(layers);
            at = end;
            if at > own as u64 {
                break;
            }
        }
        match at == own as u64 {
            true => Ok(Self { shape, shard_bits, shards }),
            false => Err(refused("a directory of more or fewer blocks than there are")),
        }
    }

    /// Where the value of a key is. Rows are `WIDE` if they have 128 bits.
    #[inline(always)]
    fn spot<const WIDE: bool>(&self, words: &[u64], half: u64) -> Spot {
        let layers = &self.shards[index(shard_of(half, self.shard_bits))];
        // The compiler knows the width then.
        let shape = RowShape { row_bits: if WIDE { 128 } else { 64 }, ..self.shape };
        spot(&shape, layers, words, half, self.shard_bits)
    }

    /// Asks for many keys, several at a time in flight: whether what is stored for each is what it `should` be.
    #[inline(always)]
    pub(crate) fn ask<K>(
        &self,
        words: &[u64],
        keys: &[K],
        hash: impl Fn(&[K], &mut [u64]),
        should: impl Should,
        hits: &mut [bool],
    ) {
        let paths = self.shape.paths;
        match self.shape.row_bits {
            64 => {
                with_parities(
                    paths,
                    Batch::<false, K, _, _> { retrieval: self, words, keys, hash, should, hits },
                );
            }
            _ => with_parities(
                paths,
                Batch::<true, K, _, _> { retrieval: self, words, keys, hash, should, hits },
            ),
        }
    }

    /// The same for one key.
    #[inline]
    pub(crate) fn ask_one(&self, words: &[u64], half: u64, should: impl Should) -> bool {
        match self.shape.row_bits {
            64 => with_parities(self.shape.paths, One::<false, _> { retrieval: self, words, half, should }),
            _ => with_parities(self.shape.paths, One::<true, _> { retrieval: self, words, half, should }),
        }
    }

    /// Slots of all layers together.
    pub(crate) fn slots(&self) -> u64 {
        let row = u64::from(self.shape.row_bits) - 1;
        let of = |layer: &Layer| if layer.starts == 0 { 0 } else { layer.starts + row };
        self.shards.iter().flatten().map(of).fold(0, u64::saturating_add)
    }

    /// The rate of absent keys, if those of the set have their fingerprints.
    pub(crate) fn fpr(&self) -> f64 {
        let RowShape { row_bits, columns, more, .. } = self.shape;
        let layer = |layer: &Layer| {
            let blocks = (layer.starts + u64::from(row_bits) - 1) / BLOCK;
            math::ribbon_layer_fpr(blocks, row_bits, columns, more)
        };
        // Of a shard without keys all are denied.
        let of = |layers: &[Layer; MOST_LAYERS]| {
            math::ribbon_shard_fpr(layers.iter().take_while(|layer| layer.starts > 0).map(layer), row_bits)
        };
        self.shards.iter().map(of).sum::<f64>() / self.shards.len() as f64
    }

    /// Bytes of memory without the words.
    pub(crate) fn size_in_bytes(&self) -> usize {
        self.shards.capacity() * size_of::<[Layer; MOST_LAYERS]>()
    }
}

/// Solved shards, one behind the other: blocks and buckets of all of them, then words of zeros, which may be read behind the
/// last block, and the directory.
#[derive(Debug)]
pub(crate) struct Joined {
    shape: RowShape,
    words: GrowingWords,
    shards: Vec<[Layer; MOST_LAYERS]>,
    directory: Vec<u64>,
}

impl Joined {
    /// For 2^bits shards of so many keys.
    pub(crate) fn new(shape: RowShape, keys: u64, bits: u32) -> Self {
        let count = 1u64 << bits;
        let mean = keys >> bits;
        // Where fewer keys are bumped than usual there are fewer words.
        let words = math::ribbon_words(mean + 6 * mean.isqrt(), shape.row_bits, shape.columns, shape.more);
        let room = words.saturating_mul(count).saturating_add(Retrieval::behind(&shape, bits));
        let words = if count == 1 { GrowingWords::default() } else { GrowingWords::with_room(room) };
        Self { shape, words, shards: Vec::with_capacity(index(count)), directory: Vec::new() }
    }

    /// Puts the next shard behind those that are there.
    pub(crate) fn append(&mut self, part: &Solved) -> Result<(), SpecError> {
        let (layers, _) = part.plan.laid_out(&self.shape, self.words.len() as u64);
        self.words.append(part.words.as_slice())?;
        self.shards.push(layers);
        self.directory.extend(part.plan.directory());
        Ok(())
    }

    /// All words, and what their directory tells.
    pub(crate) fn finish(mut self) -> Result<(Retrieval, Words), SpecError> {
        self.words.append_zeros(Retrieval::padding(&self.shape))?;
        self.words.append(&self.directory)?;
        let retrieval =
            Retrieval { shape: self.shape, shard_bits: self.shards.len().ilog2(), shards: self.shards };
        Ok((retrieval, self.words.finish()))
    }
}

/// Where the value of a key is: in the first of the layers that does not bump it.
#[inline(always)]
fn spot(shape: &RowShape, layers: &[Layer; MOST_LAYERS], words: &[u64], half: u64, bits: u32) -> Spot {
    for (level, layer) in layers.iter().enumerate() {
        if layer.starts == 0 {
            break;
        }
        let (start, hash) = layer.start(level, half, bits);
        if layer.bumps(shape, words, start) {
            continue;
        }
        let block = start / BLOCK;
        return Spot {
            word: layer.word_of(shape, block),
            hash,
            columns: low_u8(layer.columns_of(shape, block).into()),
            behind: low_u8(layer.columns_of(shape, block + 1).into()),
            shift: (start % BLOCK) as u8,
            is_nowhere: false,
        };
    }
    Spot { is_nowhere: true, ..Spot::default() }
}

impl Spot {
    /// Asks for its cache lines.
    #[inline(always)]
    fn prefetch<const WIDE: bool>(&self, words: &[u64]) {
        let (first, columns) = (index(self.word), usize::from(self.columns));
        let last = first + if WIDE { 3 } else { 2 } * columns;
        // Few columns are in two lines, or in three if they begin anywhere.
        simd::prefetch(words, first);
        simd::prefetch(words, first + columns);
        simd::prefetch(words, last);
        if WIDE || columns > 8 {
            for word in (first + 8..last).step_by(8) {
                simd::prefetch(words, word);
            }
        }
    }

    /// The value, and how many of its lowest bits count; `None` if no key is where this one would be. Never fails for words and
    /// layers that belong together.
    #[inline(always)]
    fn value<const WIDE: bool>(&self, words: &[u64], by: impl Parities) -> Option<(u64, u32)> {
        if self.is_nowhere {
            return None;
        }
        let (columns, shift, row) = (usize::from(self.columns), self.shift.into(), row_of(self.hash));
        let low = &words[index(self.word)..];
        let high = &low[columns..];
        let mut value = by.parities(low, high, columns, shift, row[0] | 1);
        if WIDE {
            let last = &high[usize::from(self.behind)..];
            value ^= by.parities(high, last, columns, shift, row[1]);
        }
        Some((value, self.columns.into()))
    }
}

/// What is stored for the keys that are looked for.
pub(crate) trait Should: Copy {
    /// Given what a key was hashed to in the layer that it is in. Bits that have no column are left out.
    fn be(self, hash: u64) -> u64;
}

impl Spot {
    #[inline(always)]
    fn is<const WIDE: bool>(&self, should: impl Should, words: &[u64], by: impl Parities) -> bool {
        match self.value::<WIDE>(words, by) {
            Some((value, columns)) => (value ^ should.be(self.hash)) & ((1 << columns) - 1) == 0,
            None => false,
        }
    }
}

/// One question, to be asked with the best instructions that there are.
struct One<'a, const WIDE: bool, S> {
    retrieval: &'a Retrieval,
    words: &'a [u64],
    half: u64,
    should: S,
}

impl<const WIDE: bool, S: Should> ColumnWork for One<'_, WIDE, S> {
    type Output = bool;

    #[inline(always)]
    fn run(self, by: impl Parities) -> bool {
        self.retrieval.spot::<WIDE>(self.words, self.half).is::<WIDE>(self.should, self.words, by)
    }
}

/// Filters smaller than this stay in the second-level cache, where prefetching costs more than it brings.
const PREFETCH_FROM_BYTES: usize = 256 * 1024;

/// Many questions.
struct Batch<'a, const WIDE: bool, K, H, S> {
    retrieval: &'a Retrieval,
    words: &'a [u64],
    keys: &'a [K],
    hash: H,
    should: S,
    hits: &'a mut [bool],
}

impl<const WIDE: bool, K, H: Fn(&[K], &mut [u64]), S: Should> ColumnWork for Batch<'_, WIDE, K, H, S> {
    type Output = ();

    #[inline(always)]
    fn run(self, by: impl Parities) {
        let (retrieval, mut words) = (self.retrieval, self.words);
        let far = retrieval.shape.paths.is_far(size_of_val(words), PREFETCH_FROM_BYTES);
        let find = |keys: &[K], spots: &mut [Spot]| {
            let mut halves = [0; batch::BATCH];
            let halves = &mut halves[..keys.len()];
            (self.hash)(keys, halves);
            for (spot, &half) in spots.iter_mut().zip(&*halves) {
                *spot = retrieval.spot::<WIDE>(words, half);
            }
        };
        let prefetch = |words: &&[u64], spot: Spot| spot.prefetch::<WIDE>(words);
        let mut hits = self.hits;
        batch::pipeline(&mut words, self.keys, find, far, prefetch, |words, spots| {
            let own = hits.split_off_mut(..spots.len()).expect("one answer per key");
            for (hit, spot) in own.iter_mut().zip(spots) {
                *hit = spot.is::<WIDE>(self.should, words, by);
            }
        });
    }
}

/// A key and what it is to be told.
pub(crate) trait Equation: Copy + Ord {
    /// The key.
    fn half(&self) -> u64;

    /// Its value, given what it was hashed to in the layer that it is in. Bits that have no column are left out.
    fn value(&self, hash: u64) -> u32;
}

/// The fingerprint of a key is made of its whole hash; as many of the lowest bits are taken as there are columns.
#[inline(always)]
const fn fingerprint(hash: u64) -> u64 {
    hash ^ hash >> 32
}

/// A key whose value is its fingerprint.
impl Equation for u64 {
    #[inline(always)]
    fn half(&self) -> u64 {
        *self
    }

    #[inline(always)]
    fn value(&self, hash: u64) -> u32 {
        low_u32(fingerprint(hash))
    }
}

/// The key's fingerprint should be stored.
#[derive(Clone, Copy)]
pub(crate) struct Fingerprint;

impl Should for Fingerprint {
    #[inline(always)]
    fn be(self, hash: u64) -> u64 {
        fingerprint(hash)
    }
}

/// The layers of a shard as its directory has them: seed and blocks of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan(Vec<(u64, u64)>);

impl Plan {
    /// Its words in the directory.
    fn directory(&self) -> [u64; DIRECTORY_WORDS] {
        let mut words = [0; DIRECTORY_WORDS];
        words[0] = self.0.len() as u64;
        for (entry, &(seed, blocks)) in words[1..].chunks_exact_mut(2).zip(&self.0) {
            entry.copy_from_slice(&[seed, blocks]);
        }
        words
    }

    /// The layers that a directory tells; `None` if no writer gives such. `most` limits the blocks of each.
    fn from_directory(shape: &RowShape, words: &[u64], most: u64) -> Option<Self> {
        let (&count, entries) = words.split_first()?;
        let count = usize::try_from(count).ok().filter(|&count| (1..=MOST_LAYERS).contains(&count))?;
        let (used, unused) = entries.split_at(2 * count);
        let layers: Vec<(u64, u64)> = used.chunks_exact(2).map(|entry| (entry[0], entry[1])).collect();
        let rows = u64::from(shape.row_bits) / BLOCK;
        let are_sound = layers.iter().enumerate().all(|(level, &(_, blocks))| {
            let may_be_empty = level + 1 == count && blocks == 0;
            may_be_empty || (rows..=most).contains(&blocks)
        });
        (are_sound && unused.iter().all(|&word| word == 0)).then_some(Self(layers))
    }

    /// The layers, the first words of which are at `at`; and the word behind the last.
    fn laid_out(&self, shape: &RowShape, mut at: u64) -> ([Layer; MOST_LAYERS], u64) {
        let mut layers = [Layer::default(); MOST_LAYERS];
        for (level, &(seed, blocks)) in self.0.iter().enumerate() {
            let (layer, end) = Layer::laid_out(shape, seed, blocks, level + 1 == self.0.len(), at);
            layers[level] = layer;
            at = end;
        }
        (layers, at)
    }
}

/// A shard, solved.
#[derive(Debug)]
pub(crate) struct Solved {
    pub(crate) plan: Plan,
    pub(crate) words: Words,
    pub(crate) keys: u64,
}

impl Solved {
    /// Keeps those of the shard's halves for which what is stored is what it `should` be.
    pub(crate) fn retain(&self, shape: &RowShape, bits: u32, should: impl Should, halves: &mut Vec<u64>) {
        let mut words = self.words.as_slice().to_vec();
        // Those that a directory has are read over too.
        words.resize(words.len() + Retrieval::padding(shape) + DIRECTORY_WORDS, 0);
        let (layers, _) = self.plan.laid_out(shape, 0);
        let work = Retain { shape, layers: &layers, words: &words, bits, should, halves };
        with_parities(shape.paths, work);
    }
}

/// Many questions to one shard.
struct Retain<'a, S> {
    shape: &'a RowShape,
    layers: &'a [Layer; MOST_LAYERS],
    words: &'a [u64],
    bits: u32,
    should: S,
    halves: &'a mut Vec<u64>,
}

impl<S: Should> ColumnWork for Retain<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self, by: impl Parities) {
        let is_wide = self.shape.row_bits == 128;
        self.halves.retain(|&half| {
            let spot = spot(self.shape, self.layers, self.words, half, self.bits);
            if is_wide {
                spot.is::<true>(self.should, self.words, by)
            } else {
                spot.is::<false>(self.should, self.words, by)
            }
        });
    }
}

/// Rows of 64 or 128 bits.
trait Row: Copy + Default + PartialEq + core::ops::BitXorAssign + core::ops::Shr<u32, Output = Self> {
    fn of(row: [u64; 2]) -> Self;
    fn zeros(self) -> u32;
    /// Appends a bit in front of the slots that are solved; whether the others that the row looks at are odd is said by
    /// `self`, which is the row.
    fn solved(self, column: Self, value: bool, ranks: impl Ranks) -> Self;
    fn block(self) -> u64;
}

impl Row for u64 {
    #[inline(always)]
    fn of(row: [u64; 2]) -> Self {
        row[0] | 1
    }

    #[inline(always)]
    fn zeros(self) -> u32 {
        self.trailing_zeros()
    }

    #[inline(always)]
    fn solved(self, column: Self, value: bool, ranks: impl Ranks) -> Self {
        let column = column << 1;
        column | u64::from(self & 1 == 1 && (ranks.count(self & column) & 1 == 1) != value)
    }

    #[inline(always)]
    fn block(self) -> u64 {
        self
    }
}

impl Row for u128 {
    #[inline(always)]
    fn of(row: [u64; 2]) -> Self {
        u128::from(row[1]) << 64 | u128::from(row[0] | 1)
    }

    #[inline(always)]
    fn zeros(self) -> u32 {
        self.trailing_zeros()
    }

    #[inline(always)]
    fn solved(self, column: Self, value: bool, ranks: impl Ranks) -> Self {
        let column = column << 1;
        let own = self & column;
        let parity = ranks.count(low_u64(own) ^ (own >> 64) as u64) & 1 == 1;
        column | u128::from(low_u64(self) & 1 == 1 && parity != value)
    }

    #[inline(always)]
    fn block(self) -> u64 {
        low_u64(self)
    }
}

/// A slot without a row.
const NO_ROW: u32 = u32::MAX;

/// The triangular system of a layer: in each slot a row that starts there, or none.
struct System<R> {
    rows: Vec<R>,
    values: Vec<u32>,
}

/// What became of a key.
enum Added {
    /// Its row is in this slot.
    At(u32),
    /// The others imply it.
    Implied,
    /// The others contradict it.
    Refused,
}

impl<R: Row> System<R> {
    fn new(slots: u64) -> Result<Self, SpecError> {
        let refused = || SpecError::Memory { bytes: slots.saturating_mul(size_of::<R>() as u64 + 4) };
        let len = usize::try_from(slots).map_err(|_| refused())?;
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        rows.try_reserve_exact(len).map_err(|_| refused())?;
        values.try_reserve_exact(len).map_err(|_| refused())?;
        rows.resize(len, R::default());
        values.resize(len, 0);
        Ok(Self { rows, values })
    }

    /// Eliminates from a row what is there already. Only the new row changes, so that the last rows can be taken out again.
    #[inline]
    fn add(&mut self, start: u64, mut row: R, mut value: u32) -> Added {
        let mut slot = index(start);
        loop {
            let there = self.rows[slot];
            if there == R::default() {
                self.rows[slot] = row;
                self.values[slot] = value;
                return Added::At(small_len(slot));
            }
            row ^= there;
            value ^= self.values[slot];
            if row == R::default() {
                return if value == 0 { Added::Implied } else { Added::Refused };
            }
            let zeros = row.zeros();
            slot += zeros as usize;
            row = row >> zeros;
        }
    }
}

/// Back substitution: the slots from the last to the first, each from those behind it.
struct Substitution<'a, R> {
    system: &'a System<R>,
    shape: RowShape,
    layer: &'a Layer,
    words: &'a mut [u64],
}

impl<R: Row> Work for Substitution<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run(self, ranks: impl Ranks) {
        let mut solved = [R::default(); MOST_COLUMNS];
        for block in (0..self.system.rows.len() as u64 / BLOCK).rev() {
            let columns = self.layer.columns_of(&self.shape, block) as usize;
            let slots = index(block * BLOCK)..index((block + 1) * BLOCK);
            let rows = self.system.rows[slots.clone()].iter().zip(&self.system.values[slots]);
            for (&row, &value) in rows.rev() {
                for (column, solved) in solved[..columns].iter_mut().enumerate() {
                    *solved = row.solved(*solved, value >> column & 1 == 1, ranks);
                }
            }
            let word = index(self.layer.word_of(&self.shape, block));
            for (word, solved) in self.words[word..word + columns].iter_mut().zip(&solved) {
                *word = solved.block();
            }
        }
    }
}

/// Solves a shard: the keys are those of the shard that the highest `bits` bits tell, in any order and with repeats.
pub(crate) fn solved<E: Equation>(shape: &RowShape, keys: Vec<E>, bits: u32) -> Result<Solved, BuildError> {
    if shape.row_bits == 64 {
        solved_by::<E, u64>(shape, keys, bits)
    } else {
        solved_by::<E, u128>(shape, keys, bits)
    }
}

fn solved_by<E: Equation, R: Row>(
    shape: &RowShape,
    mut keys: Vec<E>,
    bits: u32,
) -> Result<Solved, BuildError> {
    keys.sort_unstable();
    keys.dedup_by_key(|key| key.half());
    let count = keys.len() as u64;
    let (mut plan, mut parts) = (Plan::default(), Vec::new());
    loop {
        let level = plan.0.len();
        let is_last = (keys.len() as u64) < math::RIBBON_LEAST || level + 1 == MOST_LAYERS;
        let (entry, part, bumped) = if is_last {
            let (entry, part) = last_layer::<E, R>(shape, &keys, level, bits)?;
            (entry, part, Vec::new())
        } else {
            bumping_layer::<E, R>(shape, keys, level, bits)?
        };
        plan.0.push(entry);
        parts.push(part);
        if is_last {
            break;
        }
        keys = bumped;
    }
    let mut words =
        Words::zeroed(parts.iter().map(|part| part.len() as u64).sum()).map_err(SpecError::from)?;
    let mut rest = words.as_mut_slice();
    for part in parts {
        let (own, behind) = rest.split_at_mut(part.len());
        own.copy_from_slice(&part);
        rest = behind;
    }
    Ok(Solved { plan, words, keys: count })
}

const fn seed_of(level: usize, attempt: u64) -> u64 {
    folded((attempt * MOST_LAYERS as u64 + level as u64 + 1).wrapping_mul(PHI))
}

type Entry = (u64, u64);

/// Solves for as many keys as fit, and returns the others.
fn bumping_layer<E: Equation, R: Row>(
    shape: &RowShape,
    mut keys: Vec<E>,
    level: usize,
    bits: u32,
) -> Result<(Entry, Vec<u64>, Vec<E>), BuildError> {
    let (seed, blocks) = (seed_of(level, 0), math::ribbon_blocks(keys.len() as u64));
    let (layer, end) = Layer::laid_out(shape, seed, blocks, false, 0);
    if level > 0 {
        keys.sort_unstable_by_key(|key| (folded(key.half() ^ seed), key.half()));
    }
    let mut words = zeroed(end)?;
    // No class is bumped until a key does not fit.
    words[index(layer.buckets_at)..].fill(u64::MAX);
    let mut system = System::<R>::new(blocks * BLOCK)?;
    let (mut bumped, mut added) = (Vec::new(), Vec::new());
    let start_of = |key: &E| layer.start(level, key.half(), bits).0;
    let log = shape.bucket_log();
    for of_bucket in keys.chunk_by(|a, b| start_of(a) >> log == start_of(b) >> log) {
        let mut class = 0;
        added.clear();
        // From the right end of the bucket to the left: what does not fit is at its left.
        for (behind, key) in of_bucket.iter().enumerate().rev() {
            let (start, hash) = layer.start(level, key.half(), bits);
            let own = shape.class(from_right(shape, start));
            if own != class {
                class = own;
                added.clear();
            }
            let value = key.value(hash) & layer.mask(shape, start);
            match system.add(start, R::of(row_of(hash)), value) {
                Added::At(slot) => added.push((slot, key)),
                Added::Implied => added.push((NO_ROW, key)),
                Added::Refused => {
                    // The class goes as a whole. Its rows are the last ones, on which no other depends.
                    for &(slot, _) in added.iter().filter(|(slot, _)| *slot != NO_ROW) {
                        system.rows[slot as usize] = R::default();
                    }
                    bumped.extend(added.drain(..).map(|(_, key)| *key));
                    bumped.extend(&of_bucket[..=behind]);
                    let bucket = start >> log;
                    let word = &mut words[index(layer.buckets_at + bucket / 32)];
                    *word ^= (3 ^ class) << (bucket % 32 * 2);
                    break;
                }
            }
        }
    }
    with_ranks(
        shape.paths,
        Substitution { system: &system, shape: *shape, layer: &layer, words: &mut words },
    );
    Ok(((seed, blocks), words, bumped))
}

/// Solves for all keys, with slots to spare.
fn last_layer<E: Equation, R: Row>(
    shape: &RowShape,
    keys: &[E],
    level: usize,
    bits: u32,
) -> Result<(Entry, Vec<u64>), BuildError> {
    if keys.is_empty() {
        return Ok(((0, 0), Vec::new()));
    }
    for attempt in 0..MOST_TRIES {
        let (seed, blocks) =
            (seed_of(level, attempt), math::ribbon_last_blocks(keys.len() as u64, shape.row_bits, attempt));
        let (layer, end) = Layer::laid_out(shape, seed, blocks, true, 0);
        let mut system = System::<R>::new(blocks * BLOCK)?;
        let fits = keys.iter().all(|key| {
            let (start, hash) = layer.start(level, key.half(), bits);
            let value = key.value(hash) & layer.mask(shape, start);
            !matches!(system.add(start, R::of(row_of(hash)), value), Added::Refused)
        });
        if fits {
            let mut words = zeroed(end)?;
            with_ranks(
                shape.paths,
                Substitution { system: &system, shape: *shape, layer: &layer, words: &mut words },
            );
            return Ok(((seed, blocks), words));
        }
    }
    Err(BuildError::Unsolved { keys: keys.len() as u64, tries: MOST_TRIES })
}

fn zeroed(words: u64) -> Result<Vec<u64>, SpecError> {
    let refused = || SpecError::Memory { bytes: words.saturating_mul(8) };
    let len = usize::try_from(words).map_err(|_| refused())?;
    let mut all = Vec::new();
    all.try_reserve_exact(len).map_err(|_| refused())?;
    all.resize(len, 0);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;

    fn halves(count: u64) -> Vec<u64> {
        let mut halves: Vec<u64> = (0..count).map(|i| Hashing::default().digest_of(i).a).collect();
        halves.sort_unstable();
        halves
    }

    /// RIB-1: the last layer is a plain ribbon. 5% more slots are enough for 100,000 keys with rows of 128 bits.
    #[test]
    fn rib_1_a_plain_ribbon_is_solved_within_three_seeds() {
        let (shape, keys) =
            (RowShape { row_bits: 128, columns: 8, more: 0, paths: Paths::default() }, halves(100_000));
        let ((seed, blocks), words) = last_layer::<u64, u128>(&shape, &keys, 0, 0).unwrap();
        let tries = (0..3).position(|attempt| seed == seed_of(0, attempt));
        let tries = tries.expect("one of three seeds") as u64;
        assert_eq!(blocks, math::ribbon_last_blocks(100_000, 128, tries));
        let solved = Solved { plan: Plan(alloc::vec![(seed, blocks)]), words: copied(&words), keys: 100_000 };
        let mut joined = Joined::new(shape, 100_000, 0);
        joined.append(&solved).unwrap();
        let (retrieval, words) = joined.finish().unwrap();
        for &half in &keys {
            let spot = retrieval.spot::<true>(words.as_slice(), half);
            let (value, _) = with_parities(Paths::default(), Value::<true>(&spot, words.as_slice())).unwrap();
            assert_eq!(value as u32 & 0xff, half.value(spot.hash) & 0xff);
        }
    }

    /// RIB-3: how many keys a layer bumps.
    #[test]
    fn rib_3_a_layer_bumps_one_key_in_thirty() {
        let keys = halves(200_000);
        for row_bits in [64, 128] {
            let shape = RowShape { row_bits, columns: 8, more: 0, paths: Paths::default() };
            let bumped = match row_bits {
                64 => bumping_layer::<u64, u64>(&shape, keys.clone(), 0, 0).unwrap().2,
                _ => bumping_layer::<u64, u128>(&shape, keys.clone(), 0, 0).unwrap().2,
            };
            let share = bumped.len() as f64 / keys.len() as f64;
            assert!((0.034..0.038).contains(&share), "{share} with rows of {row_bits} bits");
        }
    }

    /// What the plan of a small filter expects of its first layer, of 30 sets of keys.
    #[test]
    fn a_small_layer_bumped_more_than_its_plan_said() {
        for (keys, row_bits) in
            [(2500, 64), (2500, 128), (5000, 64), (5000, 128), (20_000, 64), (20_000, 128)]
        {
            let shape = RowShape { row_bits, columns: 7, more: 0, paths: Paths::default() };
            let bumped = |seed: u64| {
                let mut halves: Vec<u64> =
                    (0..keys).map(|i: u64| Hashing::Xxh3 { seed }.digest_of(i).a).collect();
                halves.sort_unstable();
                match row_bits {
                    64 => bumping_layer::<u64, u64>(&shape, halves, 0, 0).unwrap().2.len(),
                    _ => bumping_layer::<u64, u128>(&shape, halves, 0, 0).unwrap().2.len(),
                }
            };
            let mean = (0..30).map(bumped).sum::<usize>() as f64 / 30.0;
            let planned = math::ribbon_bumped_keys(keys, row_bits) as f64;
            assert!(
                (mean - planned).abs() < 16.0,
                "{keys} keys, rows of {row_bits} bits: {mean}, planned {planned}"
            );
        }
    }

    fn copied(words: &[u64]) -> Words {
        let mut copy = Words::zeroed(words.len() as u64).unwrap();
        copy.as_mut_slice().copy_from_slice(words);
        copy
    }

    struct Value<'a, const WIDE: bool>(&'a Spot, &'a [u64]);

    impl<const WIDE: bool> ColumnWork for Value<'_, WIDE> {
        type Output = Option<(u64, u32)>;

        fn run(self, parities: impl Parities) -> Self::Output {
            self.0.value::<WIDE>(self.1, parities)
        }
    }
}
