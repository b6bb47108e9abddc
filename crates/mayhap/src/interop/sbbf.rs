//! Parquet's split-block Bloom filter: its header and its bits, as they lie in a Parquet file.
//!
//! ```text
//! 0   Thrift's compact form    15 length of the bits, a zigzag varint       field 1
//!                              1c 1c 00 00  split blocks                    field 2
//!                              1c 1c 00 00  XXH64                           field 3
//!                              1c 1c 00 00  not compressed                  field 4
//!                              00
//!     blocks of 256 bits: 8 words of 32 bits, little-endian
//! ```
//!
//! With `h` the XXH64 of a value and `z` blocks, the block is `((h >> 32) z) >> 32`, and the low half of `h` sets one bit in
//! each word, as in our own layout `fastest`; but that one hashes otherwise, and chooses the block by all 64 bits.
//!
//! A key is what Parquet's PLAIN encoding makes of a value, without a length: bytes as they are, INT32 as 4 and INT64 as 8
//! little-endian bytes, floating-point numbers as their bits.
//!
//! The header does not tell how many values it was made for. Writers take powers of two, and the format any number of
//! blocks. A filter is folded to a divisor of its blocks by the OR of neighbours, and is then the one that would have been
//! made so small.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::convert::Infallible;

use super::{Format, Making};
use crate::bits::{Bytes, OutOfMemory, Words};
use crate::error::{DecodeError, FoldError, Knob, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{AnyFilter, Capabilities};
use crate::filters::blocked::FAMILY;
use crate::hash::{ForeignHash, Hashing};
use crate::math::{self, BlockShape};
use crate::narrow::{index, low_u8, whole};
use crate::probing::Probing;
use crate::rates::Rate;
use crate::raw::simd::{prefetch, split_mask};
use crate::shell::{Inserts, Intersects, Kernel, Merges, Shell, run_time_filter};
use crate::spec::{MIN_FPR, Plan};
use crate::traits::{Fold, Insertion};
use crate::wire::{Fields, Frame, Writer};

/// The format `sbbf`.
pub static FORMAT: Format = Format {
    name: "sbbf",
    summary: "Parquet's split-block Bloom filter, header and bits, cut out of a file",
    fits: |bytes| start_of_bits(bytes).is_ok(),
    read: |bytes, _| Ok(Box::new(read(&bytes)?)),
    write: Some(|filter| {
        let filter: &dyn Any = filter;
        filter.downcast_ref().map(write)
    }),
    make: Some(make),
};

/// Bytes of a block.
const BLOCK: u64 = 32;
/// The header counts bytes in an i32.
const MOST_BYTES: u64 = i32::MAX as u64;
/// What known readers of Parquet accept.
const MOST_BYTES_MADE: u64 = 128 << 20;

/// The filter of a bare bitset, as readers of Parquet hand it out.
///
/// # Errors
/// [`DecodeError::Value`] if it is not made of blocks of 32 bytes, or has more than a header can tell.
pub fn of_bitset(bits: Bytes) -> Result<Box<dyn AnyFilter>, DecodeError> {
    Ok(Box::new(of_bits(bits)?))
}

/// A header and its bits.
pub(super) fn read(bytes: &Bytes) -> Result<Sbbf, DecodeError> {
    let start = start_of_bits(bytes.as_slice())?;
    of_bits(bytes.part(start..bytes.len()).expect("a place within"))
}

fn of_bits(bits: Bytes) -> Result<Sbbf, DecodeError> {
    let words = words_of(bits)?;
    let blocks = words.len() as u64 / 4;
    // With so many keys that half of the bits are set: the file does not say what it was made for.
    let capacity = whole(math::blocked_estimated_len(BlockShape::Split, blocks, blocks * 128));
    let fpr_asked = rate(blocks, capacity as f64);
    Ok(Sbbf::of(Blocks { words, capacity, fpr_asked }, None))
}

fn words_of(bits: Bytes) -> Result<Words, DecodeError> {
    let found = bits.len() as u64;
    check_length(found)?;
    Words::from_bytes(bits).ok_or(DecodeError::Value { field: "length of the bits", found })
}

fn check_length(found: u64) -> Result<(), DecodeError> {
    if (BLOCK..=MOST_BYTES).contains(&found) && found.is_multiple_of(BLOCK) {
        return Ok(());
    }
    Err(DecodeError::Value { field: "length of the bits", found })
}

/// How many bytes a header and its bits take, by the header at the front; whatever there is of the bits.
///
/// # Errors
/// [`DecodeError`] if there is no header.
pub fn length(start: &[u8]) -> Result<u64, DecodeError> {
    let (length, rest) = header(start)?;
    Ok((start.len() - rest.len()) as u64 + length)
}

/// The place of the bits, whose length is compared with what is there.
fn start_of_bits(bytes: &[u8]) -> Result<usize, DecodeError> {
    let (length, rest) = header(bytes)?;
    super::must_be_long("bits", length, rest)?;
    Ok(bytes.len() - rest.len())
}

/// Reads the header, which says how long the bits are; and what follows it.
fn header(bytes: &[u8]) -> Result<(u64, &[u8]), DecodeError> {
    let mut fields = Fields::new(bytes);
    must_be(&mut fields, "field of the length", [0x15])?;
    let length = zigzag_varint(&mut fields, "length of the bits")?;
    check_length(length)?;
    must_be(&mut fields, "algorithm", ONLY_CHOICE)?;
    must_be(&mut fields, "hash function", ONLY_CHOICE)?;
    must_be(&mut fields, "compression", ONLY_CHOICE)?;
    must_be(&mut fields, "end of the header", [0])?;
    Ok((length, fields.rest()))
}

/// The next field, which is a union: its first alternative, which is empty, and the ends of both.
const ONLY_CHOICE: [u8; 4] = [0x1c, 0x1c, 0, 0];

fn must_be<const N: usize>(
    fields: &mut Fields<'_>,
    field: &'static str,
    expected: [u8; N],
) -> Result<(), DecodeError> {
    let found = fields.bytes::<N>(field)?;
    if found == expected {
        return Ok(());
    }
    let found = found.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    Err(DecodeError::Value { field, found })
}

/// A number of 32 bits that is not negative, in the fewest bytes: others no writer gives.
fn zigzag_varint(fields: &mut Fields<'_>, field: &'static str) -> Result<u64, DecodeError> {
    let mut value = 0;
    for place in 0..5 {
        let byte = fields.u8(field)?;
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            let is_shortest = byte != 0 || place == 0;
            let is_negative = value & 1 == 1;
            if is_shortest && !is_negative && value <= u64::from(u32::MAX) {
                return Ok(value / 2);
            }
            break;
        }
    }
    Err(DecodeError::Value { field, found: value })
}

pub(super) fn write(filter: &Sbbf) -> Vec<u8> {
    let bits = filter.0.kernel.words.to_le_bytes();
    let mut bytes = Vec::from([0x15]);
    let mut rest = 2 * bits.len() as u64;
    while rest >= 0x80 {
        bytes.push(low_u8(rest) | 0x80);
        rest >>= 7;
    }
    bytes.push(low_u8(rest));
    bytes.extend([ONLY_CHOICE; 3].concat());
    bytes.push(0);
    bytes.extend_from_slice(&bits);
    bytes
}

/// As pyarrow and DuckDB size it.
fn make(making: &Making) -> Result<Box<dyn AnyFilter>, SpecError> {
    making.without(Knob::Seed, FORMAT.name)?;
    making.without(Knob::Growth, FORMAT.name)?;
    let (capacity, fpr_asked) = (making.capacity, making.fpr);
    let bits = -8.0 * capacity as f64 / libm::log1p(-libm::pow(fpr_asked, 1.0 / 8.0));
    let bits = (whole(libm::ceil(bits))).max(BLOCK * 8);
    if bits > MOST_BYTES_MADE * 8 {
        return Err(SpecError::TooLarge { bits, limit: MOST_BYTES_MADE * 8 });
    }
    let words = Words::zeroed(bits.next_power_of_two() / 64)?;
    Ok(Box::new(Sbbf::of(Blocks { words, capacity, fpr_asked }, Some(0))))
}

/// The rate of so many blocks with so many keys.
fn rate(blocks: u64, keys: f64) -> f64 {
    let loads = math::block_loads(keys / blocks as f64);
    math::blocked_fpr(&math::block_rates(BlockShape::Split, loads), blocks, keys)
}

run_time_filter! {
    /// A split-block Bloom filter by Parquet's rules.
    Sbbf(Blocks) = FAMILY { inserts, merges, intersects, folds }
}

impl Sbbf {
    /// With so many insert calls, if it was made by us and they are known.
    fn of(kernel: Blocks, inserted: Option<u64>) -> Self {
        Self(Shell { kernel, hashing: Hashing::Foreign(ForeignHash::Xxh64), inserted })
    }

    pub(super) fn ones(&self) -> u64 {
        self.0.kernel.words.count_ones()
    }
}

/// Its blocks.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    /// Four to a block.
    words: Words,
    capacity: u64,
    fpr_asked: f64,
}

impl Blocks {
    fn blocks(&self) -> u64 {
        self.words.len() as u64 / 4
    }

    fn bits(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    /// The first word of a key's block.
    #[inline]
    fn place(&self, hash: u64) -> usize {
        // A header has room for fewer than 2^26 blocks, so that the product fits.
        index(((hash >> 32) * self.blocks()) >> 32) * 4
    }

    fn fpr(&self) -> f64 {
        math::blocks_fpr(BlockShape::Split, self.words.as_slice())
    }

    /// The filter that would have been made of so many times fewer blocks, which divide them.
    fn folded(&self, factor: u64) -> Result<Self, FoldError> {
        let memory = |OutOfMemory { bytes }| FoldError::Memory { bytes };
        let mut words = Words::zeroed(self.words.len() as u64 / factor).map_err(memory)?;
        let neighbours = self.words.as_slice().chunks(4 * index(factor));
        for (block, neighbours) in words.as_mut_slice().chunks_mut(4).zip(neighbours) {
            for (index, word) in neighbours.iter().enumerate() {
                block[index % 4] |= word;
            }
        }
        Ok(Self { words, ..*self })
    }

    fn fold_to(&self, fpr: f64) -> Result<Self, FoldError> {
        if !(MIN_FPR..1.0).contains(&fpr) {
            return Err(FoldError::Fpr { asked: fpr });
        }
        let (asked, now) = (fpr, self.fpr());
        if now > asked {
            return Err(FoldError::TooFull { asked, now });
        }
        let mut least = None;
        for factor in math::divisors(self.blocks()).into_iter().skip(1).rev() {
            let folded = self.folded(factor)?;
            let fpr = folded.fpr();
            if fpr <= asked {
                let capacity = math::blocked_capacity(BlockShape::Split, folded.blocks(), asked).max(1);
                return Ok(Self { capacity, fpr_asked: asked, ..folded });
            }
            least = Some((factor, fpr));
        }
        match least {
            Some((factor, fpr)) => Err(FoldError::NoFold { bits: self.bits(), asked, factor, fpr }),
            // One block is as small as it gets.
            None => Ok(self.clone()),
        }
    }

    fn combine(&mut self, other: &Self, bits: fn(u64, u64) -> u64) -> Result<(), Mismatch> {
        self.must_match(other)?;
        for (ours, theirs) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *ours = bits(*ours, *theirs);
        }
        Ok(())
    }
}

impl Kernel for Blocks {
    type Hash = u64;

    const IS_FOREIGN: bool = true;

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let block = &self.words.as_slice()[self.place(hash)..][..4];
        block.iter().zip(split_mask(hash)).all(|(word, mask)| mask & !word == 0)
    }

    fn prefetch(&self, hash: u64) {
        prefetch(self.words.as_slice(), self.place(hash));
    }

    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, .. } = *self;
        let (fpr, probes) = (rate(self.blocks(), capacity as f64), Some(BlockShape::Split.probes()));
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes }
    }

    fn fill(&self) -> f64 {
        self.words.count_ones() as f64 / self.bits() as f64
    }

    fn rate(&self) -> Rate {
        Rate::computed(self.fpr())
    }

    fn estimated_len(&self) -> f64 {
        math::blocked_estimated_len(BlockShape::Split, self.blocks(), self.words.count_ones())
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(self, other, |filter| [(Parameter::Bits, filter.bits().into())])
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.words == other.words
    }

    /// The bits alone, so that they can be changed where they lie.
    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::SBBF);
        out.ones(self.words.count_ones());
        out.params().u64(self.capacity).f64(self.fpr_asked);
        out.words(&self.words);
    }

    fn read(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        super::must_be_hashed(frame, hashing, Hashing::Foreign(ForeignHash::Xxh64))?;
        let params = &frame.header.params;
        let mut fields = Fields::new(params);
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        fields.end("parameters", params.len())?;
        let words = words_of(super::take_payload(frame))?;
        Ok(Self { words, capacity, fpr_asked })
    }

    fn can(&self) -> Option<Capabilities> {
        Some(Capabilities { folds: true, ..FAMILY.can })
    }

    fn program(&self) -> Option<&'static str> {
        Some(FORMAT.name)
    }
}

impl Inserts for Blocks {
    type Error = Infallible;

    #[inline]
    fn insert(&mut self, hash: u64) -> Result<Insertion, Infallible> {
        let place = self.place(hash);
        let mut changed = false;
        for (word, mask) in self.words.as_mut_slice()[place..].iter_mut().zip(split_mask(hash)) {
            changed |= mask & !*word != 0;
            *word |= mask;
        }
        Ok(Insertion::new_if(changed))
    }
}

impl Merges for Blocks {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |ours, theirs| ours | theirs)
    }
}

impl Intersects for Blocks {
    fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |ours, theirs| ours & theirs)
    }
}

impl Fold for Sbbf {
    fn fold_to(&self, fpr: f64) -> Result<Box<dyn AnyFilter>, FoldError> {
        Ok(Box::new(Self(self.0.with(self.0.kernel.fold_to(fpr)?))))
    }
}
