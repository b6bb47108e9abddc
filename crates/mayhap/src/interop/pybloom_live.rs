//! pybloom-live: what `tofile` of its `BloomFilter` and of its `ScalableBloomFilter` write.
//!
//! ```text
//! plain      0  f64 rate
//!            8  u64 slices
//!           16  u64 bits of a slice
//!           24  u64 capacity
//!           32  u64 inserted keys
//!           40  bits of all slices; bit i is bit i % 8 of byte i / 8           all little-endian
//!
//! scalable   0  i32 growth, f64 tightening, u64 capacity of the first layer, f64 rate
//!           28  i32 layers
//!           32  u64 length of each layer
//!               layers, each a plain file
//! ```
//!
//! A key has a bit in each slice. So many bytes of hash are needed as its slices take numbers of 2, 4 or 8 bytes, by their
//! length, and that chooses the hash function: XXH3 of 128 bits, SHA-1, SHA-256, SHA-384 or SHA-512. It hashes a salt and the
//! key, with further salts as long as there are slices; a salt is the hash of its number. Before version 4 it was MD5 where
//! it is XXH3 today, and nothing in the file tells: [`HashRule::Md5`] says that a file is so old.
//!
//! Keys are text in UTF-8; the program makes text of everything else.

use alloc::boxed::Box;
use alloc::vec::Vec;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use xxhash_rust::xxh3::xxh3_128;

use super::frozen::{Frozen, FrozenRule, Layer};
use super::{Format, HashRule, Reading};
use crate::bits::Bytes;
use crate::error::DecodeError;
use crate::family::AnyFilter;
use crate::hash::{ForeignHash, Hashing};
use crate::narrow::{index, low_u64, small_len};
use crate::probing::Probing;
use crate::wire::{Fields, Frame, Writer};

/// The format `pybloom-live`.
pub static FORMAT: Format = Format {
    name: "pybloom-live",
    summary: "pybloom-live's BloomFilter.tofile, and that of its ScalableBloomFilter",
    fits: |bytes| parse(bytes).is_ok(),
    read: |bytes, reading| Ok(Box::new(read(bytes, short_hash(reading))?)),
    write: None,
    make: None,
};

fn short_hash(reading: &Reading) -> HashFunction {
    match reading.hash {
        Some(HashRule::Md5) => HashFunction::Md5,
        _ => HashFunction::Xxh3,
    }
}

struct Parsed {
    is_stack: bool,
    fpr: f64,
    layers: Vec<Layer>,
}

fn parse(bytes: &[u8]) -> Result<Parsed, DecodeError> {
    if is_scalable(bytes) {
        return parse_scalable(bytes);
    }
    let (fpr, layer) = parse_plain(bytes, 0)?;
    Ok(Parsed { is_stack: false, fpr, layers: [layer].to_vec() })
}

/// Behind its first 4 bytes, a scalable file has a rate. In a plain one the upper half of those 8 bytes is the number of
/// slices, which is so small that the rate would have no exponent.
fn is_scalable(bytes: &[u8]) -> bool {
    let mut fields = Fields::new(bytes);
    fields.u32("growth").is_ok()
        && fields.u64("tightening").is_ok_and(|tightening| f64::from_bits(tightening).is_normal())
}

/// A rate that a filter can have.
fn proper_rate(fields: &mut Fields<'_>, field: &'static str) -> Result<f64, DecodeError> {
    match fields.rate(field)? {
        rate if rate > 0.0 && rate < 1.0 => Ok(rate),
        rate => Err(DecodeError::Value { field, found: rate.to_bits() }),
    }
}

fn positive(found: u64, field: &'static str) -> Result<u64, DecodeError> {
    if found > 0 { Ok(found) } else { Err(DecodeError::Value { field, found }) }
}

/// A plain file, which starts at so many bytes of the whole one.
fn parse_plain(bytes: &[u8], offset: usize) -> Result<(f64, Layer), DecodeError> {
    let mut fields = Fields::new(bytes);
    let fpr = proper_rate(&mut fields, "rate")?;
    let probes = super::probes(fields.u64("slices")?)?;
    let slice = positive(fields.u64("bits of a slice")?, "bits of a slice")?;
    let capacity = positive(fields.u64("capacity")?, "capacity")?;
    let keys = fields.u64("inserted keys")?;
    let too_long = DecodeError::Value { field: "bits of a slice", found: slice };
    let bits = slice.checked_mul(probes.into()).ok_or(too_long)?;
    super::must_be_long("bits", Layer::bytes_for(bits), fields.rest())?;
    let header = bytes.len() - fields.rest().len();
    let layer = Layer { start: header, bits, probes, capacity, keys };
    layer.must_end_in_zeros(bytes)?;
    Ok((fpr, Layer { start: offset + header, ..layer }))
}

fn parse_scalable(bytes: &[u8]) -> Result<Parsed, DecodeError> {
    let mut fields = Fields::new(bytes);
    let growth = fields.u32("growth")?;
    if growth == 0 || growth > i32::MAX as u32 {
        return Err(DecodeError::Value { field: "growth", found: growth.into() });
    }
    fields.rate("tightening")?;
    positive(fields.u64("capacity")?, "capacity")?;
    let fpr = proper_rate(&mut fields, "rate")?;
    let count = u64::from(fields.u32("layers")?);
    let (needed, available) = (8 * count, fields.rest().len() as u64);
    let lengths = usize::try_from(needed).ok().and_then(|needed| fields.rest().split_at_checked(needed));
    let (lengths, mut rest) =
        lengths.ok_or(DecodeError::Truncated { field: "lengths of the layers", needed, available })?;
    let mut layers = Vec::new();
    for length in lengths.as_chunks().0 {
        let (needed, available) = (u64::from_le_bytes(*length), rest.len() as u64);
        let parts = usize::try_from(needed).ok().and_then(|needed| rest.split_at_checked(needed));
        let (layer, behind) = parts.ok_or(DecodeError::Truncated { field: "layer", needed, available })?;
        layers.push(parse_plain(layer, bytes.len() - rest.len())?.1);
        rest = behind;
    }
    super::must_be_long("layers", 0, rest)?;
    Ok(Parsed { is_stack: true, fpr, layers })
}

fn read(file: Bytes, short: HashFunction) -> Result<Frozen<Salted>, DecodeError> {
    let Parsed { is_stack, fpr, layers } = parse(file.as_slice())?;
    let hashes = layers.iter().map(|layer| SliceHash::of(layer, short)).collect();
    let (hashing, rule) = (ForeignHash::Salted, Salted { short, hashes });
    let inserted = layers.iter().fold(0, |keys: u64, layer| keys.saturating_add(layer.keys));
    Ok(Frozen { file, layers, is_stack, inserted, fpr_asked: fpr, hashing, rule })
}

/// A hash function that is long enough for all slices of a layer, or as long as there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HashFunction {
    Xxh3,
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl HashFunction {
    /// The program's choice for so many bits.
    const fn for_bits(bits: u64, short: Self) -> Self {
        match bits {
            385.. => Self::Sha512,
            257.. => Self::Sha384,
            161.. => Self::Sha256,
            129.. => Self::Sha1,
            _ => short,
        }
    }

    /// The hash at the front of as many bytes as the longest has, and its length.
    fn hash(self, bytes: &[u8]) -> ([u8; 64], usize) {
        let mut hash = [0; 64];
        let mut put = |found: &[u8]| {
            hash[..found.len()].copy_from_slice(found);
            found.len()
        };
        let length = match self {
            Self::Xxh3 => put(&xxh3_128(bytes).to_be_bytes()),
            Self::Md5 => put(&Md5::digest(bytes)),
            Self::Sha1 => put(&Sha1::digest(bytes)),
            Self::Sha256 => put(&Sha256::digest(bytes)),
            Self::Sha384 => put(&Sha384::digest(bytes)),
            Self::Sha512 => put(&Sha512::digest(bytes)),
        };
        (hash, length)
    }
}

/// How one layer hashes.
#[derive(Debug)]
struct SliceHash {
    function: HashFunction,
    /// Bits of a slice.
    slice: u64,
    /// Bytes of the hash that a slice takes.
    chunk: usize,
    /// As many as it takes to have a chunk for each slice.
    salts: Vec<Vec<u8>>,
}

impl SliceHash {
    /// The bytes of the hash that a slice of so many bits takes.
    const fn chunk_of(slice: u64) -> u64 {
        match slice {
            0x8000_0000.. => 8,
            0x8000.. => 4,
            _ => 2,
        }
    }

    fn of(layer: &Layer, short: HashFunction) -> Self {
        let slice = layer.bits / u64::from(layer.probes);
        let chunk = Self::chunk_of(slice);
        let function = HashFunction::for_bits(8 * chunk * u64::from(layer.probes), short);
        let chunk = index(chunk);
        let salt = |number: u32| {
            let (hash, length) = function.hash(&number.to_le_bytes());
            hash[..length].to_vec()
        };
        let first = salt(0);
        let slices_of_one = first.len() / chunk;
        let more = 1..small_len((layer.probes as usize).div_ceil(slices_of_one));
        let salts = core::iter::once(first).chain(more.map(salt)).collect();
        Self { function, slice, chunk, salts }
    }

    /// Whether the key's bit in every slice of the layer is set.
    fn is_in(&self, layer: &Layer, file: &[u8], key: &[u8]) -> bool {
        let mut slices = 0..u64::from(layer.probes);
        let mut salted = Vec::new();
        self.salts.iter().all(|salt| {
            salted.clear();
            salted.extend_from_slice(salt);
            salted.extend_from_slice(key);
            let (hash, length) = self.function.hash(&salted);
            // The last hash may be longer than there are slices left. Chunks come first: who runs out first must not have
            // taken one of the others.
            hash[..length].chunks(self.chunk).zip(slices.by_ref()).all(|(chunk, slice)| {
                let mut number = [0; 8];
                number[..chunk.len()].copy_from_slice(chunk);
                layer.is_set(file, slice * self.slice + u64::from_le_bytes(number) % self.slice)
            })
        })
    }
}

/// Salted hashes, a part of them for each slice.
#[derive(Debug)]
struct Salted {
    /// What hashes where 128 bits are enough: the file does not tell.
    short: HashFunction,
    /// Of each layer.
    hashes: Vec<SliceHash>,
}

impl FrozenRule for Salted {
    const NAME: &'static str = FORMAT.name;
    const PROBING: Probing = Probing::PYBLOOM_LIVE;

    /// The newest layer is the largest, and is asked first.
    fn is_in(filter: &Frozen<Self>, key: &[u8]) -> bool {
        let mut layers = filter.layers.iter().zip(&filter.rule.hashes).rev();
        layers.any(|(layer, hash)| hash.is_in(layer, filter.file.as_slice(), key))
    }

    /// A number of 2 or 4 bytes, modulo the bits of a slice, falls upon the first of them more often, so that those count for
    /// more: of 28,756 bits the first 8,024 are met by three numbers each, the others by two.
    fn fpr(filter: &Frozen<Self>, layer: &Layer) -> f64 {
        let (file, slice) = (filter.file.as_slice(), layer.bits / u64::from(layer.probes));
        let numbers = 1u128 << (8 * SliceHash::chunk_of(slice));
        let (each, more) = (numbers / u128::from(slice), low_u64(numbers % u128::from(slice)));
        let hit = |start: u64| {
            let first = layer.ones_between(file, start, start + more) as f64;
            let rest = layer.ones_between(file, start + more, start + slice) as f64;
            (first * (each + 1) as f64 + rest * each as f64) / numbers as f64
        };
        (0..u64::from(layer.probes)).map(|number| hit(number * slice)).product()
    }

    fn put_params(&self, out: &mut Writer<'_>) {
        out.params().u32(u32::from(self.short == HashFunction::Md5)).u32(0);
    }
}

/// The filter of a file of ours, whose payload is the file as it was.
pub(super) fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Box<dyn AnyFilter>, DecodeError> {
    if hashing != Hashing::Foreign(ForeignHash::Salted) {
        return Err(super::bloom::unfit(frame));
    }
    let header = &frame.header;
    let mut fields = Fields::new(&header.params);
    let short = match fields.u32("hash function of 128 bits")? {
        0 => HashFunction::Xxh3,
        1 => HashFunction::Md5,
        found => return Err(DecodeError::Value { field: "hash function of 128 bits", found: found.into() }),
    };
    fields.zero_u32("padding of the parameters")?;
    fields.end("parameters", header.params.len())?;
    let found = header.family;
    read(super::take_payload(frame), short)?.of_family(found)
}
