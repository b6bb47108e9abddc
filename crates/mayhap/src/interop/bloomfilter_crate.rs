//! The Rust crate `bloomfilter`, version 3: what `to_bytes` gives and `from_bytes` takes. valkey-bloom's filters are made of
//! such.
//!
//! ```text
//!  0  u8   version, 1
//!  1  u64  bytes of the bitmap, at least 1
//!  9  u32  probes
//! 13  the keys of two hash functions, 16 bytes each
//! 45  the bitmap; bit i is bit i % 8 of byte i / 8                     all little-endian
//! ```
//!
//! The modulus is the number of all bits. Nothing tells the number of keys or the rate. A key is a slice of bytes, which
//! Rust hashes with its length before it; keys of other types of Rust are other bytes.
//!
//! A filter of valkey-bloom that has grown is several of these, and a key is in any of them. Its own `BF.LOAD` and RDB are
//! not read: no file of a running server was at hand to compare with.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::bloom::{ForeignBits, ForeignBloom, Peer, Rules, as_foreign_bloom};
use super::{Format, Making};
use crate::bits::{OutOfMemory, Words};
use crate::error::{DecodeError, Knob, SpecError};
use crate::family::AnyFilter;
use crate::hash::ForeignHash;
use crate::narrow::{index, whole};
use crate::probing::Probing;
use crate::spec::MAX_BITS;
use crate::wire::Fields;

/// The format `bloomfilter-crate`.
pub static FORMAT: Format = Format {
    name: "bloomfilter-crate",
    summary: "the Rust crate bloomfilter 3, of which valkey-bloom's filters are made",
    fits: |bytes| parse(bytes).is_ok(),
    read: |bytes, _| Ok(Box::new(read(bytes.as_slice())?)),
    write: Some(|filter| as_foreign_bloom(filter).and_then(write)),
    make: Some(|making| Ok(Box::new(make(making, VALKEY_SEED)?))),
};

/// The keys of the two hash functions that valkey-bloom takes, unless it is told to choose them at random.
pub const VALKEY_SEED: [u8; 32] = [
    0x59, 0x0f, 0xf5, 0x22, 0xea, 0x78, 0x11, 0xda, 0xa7, 0x14, 0xd8, 0x09, 0x3b, 0x3e, 0x7b, 0xd9, //
    0x1d, 0x89, 0x8a, 0x73, 0x3e, 0x98, 0x88, 0x87, 0x30, 0x7f, 0x97, 0xcd, 0x28, 0x07, 0x33, 0x83,
];

const VERSION: u8 = 1;
const HEADER: usize = 45;

/// An empty filter as `Bloom::new_for_fp_rate_with_seed` makes it, with the keys of both hash functions.
///
/// # Errors
/// [`SpecError`] if the capacity or the rate make no sense.
pub fn create(making: &Making, seed: [u8; 32]) -> Result<Box<dyn AnyFilter>, SpecError> {
    making.check()?;
    Ok(Box::new(make(making, seed)?))
}

fn make(making: &Making, seed: [u8; 32]) -> Result<ForeignBloom, SpecError> {
    making.without(Knob::Seed, FORMAT.name)?;
    making.without(Knob::Growth, FORMAT.name)?;
    let (capacity, fpr) = (making.capacity, making.fpr);
    let ln2 = core::f64::consts::LN_2;
    let bytes = whole(libm::ceil(capacity as f64 * libm::log(fpr) / (-8.0 * ln2 * ln2)));
    // No overflow: 2^48 keys at 2^-64 take less than 2^55 bits.
    let bits = bytes * 8;
    let probes = super::guava::rounded(bits as f64 / capacity as f64 * ln2).max(1);
    let (hashing, probing) = (ForeignHash::SipTwice, Probing::BLOOMFILTER_CRATE);
    let shape = Rules { bits, probes, hashing, probing, capacity, fpr_asked: fpr };
    ForeignBloom::empty(shape, Peer::Crate { seed })
}

struct Parsed<'a> {
    probes: u32,
    seed: [u8; 32],
    bitmap: &'a [u8],
}

fn parse(bytes: &[u8]) -> Result<Parsed<'_>, DecodeError> {
    let mut fields = Fields::new(bytes);
    let version = fields.u8("version")?;
    if version != VERSION {
        return Err(DecodeError::Value { field: "version", found: version.into() });
    }
    let length = fields.u64("bytes of the bitmap")?;
    let probes = super::probes(fields.u32("probes")?.into())?;
    let seed = fields.bytes("keys of the hash functions")?;
    if !(1..=MAX_BITS / 8).contains(&length) {
        return Err(DecodeError::Value { field: "bytes of the bitmap", found: length });
    }
    super::must_be_long("bitmap", length, fields.rest())?;
    Ok(Parsed { probes, seed, bitmap: fields.rest() })
}

fn read(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let Parsed { probes, seed, bitmap } = parse(bytes)?;
    let memory = |OutOfMemory { bytes }| DecodeError::Memory { bytes };
    let mut words = Words::zeroed((bitmap.len() as u64).div_ceil(8)).map_err(memory)?;
    for (word, bytes) in words.as_mut_slice().iter_mut().zip(bitmap.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    let bits = bitmap.len() as u64 * 8;
    let shape = Rules::told_nothing(bits, probes, ForeignHash::SipTwice, Probing::BLOOMFILTER_CRATE);
    Ok(ForeignBloom::of(words, shape, Peer::Crate { seed }))
}

fn write(filter: &ForeignBits) -> Option<Vec<u8>> {
    let Peer::Crate { seed } = &filter.peer else { return None };
    // Whole bytes: so it was made, or read.
    let length = filter.shape.bits / 8;
    let in_memory = index(length);
    let mut bytes = Vec::with_capacity(HEADER + in_memory);
    bytes.push(VERSION);
    bytes.extend(length.to_le_bytes());
    bytes.extend(filter.shape.probes.to_le_bytes());
    bytes.extend(seed);
    bytes.extend_from_slice(&filter.words.to_le_bytes()[..in_memory]);
    Some(bytes)
}
