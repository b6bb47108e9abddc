//! Go's `bits-and-blooms/bloom` (once `willf/bloom`): `WriteTo` and `MarshalBinary`, `MarshalJSON`, and the stream of
//! `encoding/gob`.
//!
//! ```text
//! binary   0  u64  bits: the modulus, whatever the bit set has
//!          8  u64  probes
//!         16  u64  length of the bit set in bits
//!         24  words of 64 bits, as many as the length takes; bit i is bit i % 64 of word i / 64      all big-endian
//! JSON     {"m":bits,"k":probes,"b":"..."}   b is what stands from 16 on, in base64 with the URL alphabet
//! gob      the description of a type that encodes itself, then the binary form as its value
//! ```
//!
//! A key is hashed twice, to 256 bits: such filters are asked by keys, and a digest says nothing. The bit set can be longer
//! than the modulus (`FromWithM`), or shorter, when it was made of no bits at all: then it grows with the first key.
//!
//! Only a gob stream of this one value is read, and the little-endian form that a process can switch `bitset` to is not.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde::Deserialize;

use super::MOST_PROBES;
use super::bloom::{ForeignBits, ForeignBloom, Peer, Rules, as_foreign_bloom};
use super::{Format, Making, Reading, big_endian};
use crate::bits::{OutOfMemory, Words, words_for};
use crate::error::{DecodeError, Knob, SpecError};
use crate::family::AnyFilter;
use crate::hash::ForeignHash;
use crate::narrow::small;
use crate::narrow::{index, low_u8, whole};
use crate::probing::Probing;
use crate::spec::MAX_BITS;

/// The format `go`.
pub static FORMAT: Format = Format {
    name: "go",
    summary: "Go's bits-and-blooms: WriteTo, MarshalBinary",
    // A bit set of another length than the modulus is rare, and must be named.
    fits: |bytes| parse(bytes).is_ok_and(|parsed| parsed.length == parsed.bits),
    read: |bytes, _: &Reading| Ok(Box::new(parse(bytes.as_slice())?.filter()?)),
    write: Some(|filter| binary(as_foreign_bloom(filter)?)),
    make: Some(make),
};

/// The format `go-json`.
pub static JSON: Format = Format {
    name: "go-json",
    summary: "Go's bits-and-blooms: MarshalJSON",
    fits: |bytes| bytes.first() == Some(&b'{') && unwrap_json(bytes).is_ok_and(|bytes| parse(&bytes).is_ok()),
    read: |bytes, _: &Reading| Ok(Box::new(parse(&unwrap_json(bytes.as_slice())?)?.filter()?)),
    write: Some(|filter| json(as_foreign_bloom(filter)?)),
    make: Some(make),
};

/// The format `go-gob`.
pub static GOB: Format = Format {
    name: "go-gob",
    summary: "Go's bits-and-blooms in a stream of encoding/gob",
    fits: |bytes| unwrap_gob(bytes).is_ok_and(|bytes| parse(bytes).is_ok()),
    read: |bytes, _: &Reading| Ok(Box::new(parse(unwrap_gob(bytes.as_slice())?)?.filter()?)),
    write: Some(|filter| gob(as_foreign_bloom(filter)?)),
    make: Some(make),
};

/// `NewWithEstimates`.
fn make(making: &Making) -> Result<Box<dyn AnyFilter>, SpecError> {
    making.without(Knob::Seed, FORMAT.name)?;
    making.without(Knob::Growth, FORMAT.name)?;
    let (capacity, fpr) = (making.capacity, making.fpr);
    let ln2 = core::f64::consts::LN_2;
    let bits = whole(libm::ceil(-(capacity as f64) * libm::log(fpr) / (ln2 * ln2)));
    let probes = whole(libm::ceil(ln2 * bits as f64 / capacity as f64));
    create(bits, probes, Some((capacity, fpr)))
}

/// `New`: an empty filter of so many bits and probes, at least one each.
///
/// # Errors
/// [`SpecError`] if they are too many.
pub fn new(bits: u64, probes: u64) -> Result<Box<dyn AnyFilter>, SpecError> {
    create(bits, probes, None)
}

/// `Locations`: so many values of a key, for filters of any size: `location % bits` is a position in one of so many bits.
///
/// ```
/// use mayhap::interop::go;
///
/// let locations = go::locations(b"user:0", 3);
/// assert_eq!(locations, [0x57fb_d3bf_bbce_f0e5, 0x02bf_6494_a8d4_2de2, 0xafdf_8244_bfd4_607b]);
/// assert_eq!(locations.iter().map(|location| location % 64).collect::<Vec<_>>(), [37, 34, 59]);
/// ```
#[must_use]
pub fn locations(key: &[u8], probes: u32) -> Vec<u64> {
    let mut positions = super::bloom::go_positions(key, probes, 1);
    core::iter::from_fn(|| positions.next_unreduced()).collect()
}

fn create(bits: u64, probes: u64, made_for: Option<(u64, f64)>) -> Result<Box<dyn AnyFilter>, SpecError> {
    let length = bits;
    let bits = bits.max(1);
    Knob::Probes.within(1, MOST_PROBES).check(probes.max(1).into())?;
    let probes = small(probes.max(1));
    let mut shape = Rules::told_nothing(bits, probes, ForeignHash::Murmur3Twice, Probing::GO);
    if let Some((capacity, fpr_asked)) = made_for {
        shape = Rules { capacity, fpr_asked, ..shape };
    }
    Ok(Box::new(ForeignBloom::empty(shape, Peer::Go { length })?))
}

struct Parsed<'a> {
    bits: u64,
    probes: u32,
    length: u64,
    words: &'a [u8],
}

fn parse(bytes: &[u8]) -> Result<Parsed<'_>, DecodeError> {
    let truncated = DecodeError::Truncated { field: "header", needed: 24, available: bytes.len() as u64 };
    let fields = big_endian::u64(bytes).and_then(|(bits, rest)| {
        let (probes, rest) = big_endian::u64(rest)?;
        let (length, rest) = big_endian::u64(rest)?;
        Some((bits, probes, length, rest))
    });
    let (bits, probes, length, words) = fields.ok_or(truncated)?;
    if !(1..=MAX_BITS).contains(&bits) {
        return Err(DecodeError::Value { field: "number of bits", found: bits });
    }
    let probes = super::probes(probes)?;
    check_length(bits, length)?;
    super::must_be_long("words", words_for(length) * 8, words)?;
    Ok(Parsed { bits, probes, length, words })
}

/// A modulus beyond the words that are there would have to be believed.
pub(super) fn check_length(bits: u64, length: u64) -> Result<(), DecodeError> {
    if length > MAX_BITS || (length < bits && bits > 64) {
        return Err(DecodeError::Value { field: "length of the bit set", found: length });
    }
    Ok(())
}

impl Parsed<'_> {
    fn filter(self) -> Result<ForeignBloom, DecodeError> {
        let Self { bits, probes, length, words } = self;
        let mut words = big_endian::words(words)?;
        if words.is_empty() {
            words = Words::zeroed(1).map_err(|OutOfMemory { bytes }| DecodeError::Memory { bytes })?;
        }
        if !length.is_multiple_of(64)
            && words.as_slice().last().is_some_and(|last| last >> (length % 64) != 0)
        {
            return Err(DecodeError::Padding { field: "end of the bit set" });
        }
        let shape = Rules::told_nothing(bits, probes, ForeignHash::Murmur3Twice, Probing::GO);
        Ok(ForeignBloom::of(words, shape, Peer::Go { length }))
    }
}

/// The bit set with its length.
fn bit_set(filter: &ForeignBits) -> Option<Vec<u8>> {
    let Peer::Go { length } = filter.peer else { return None };
    let mut bytes = Vec::from(length.to_be_bytes());
    big_endian::put_words(&mut bytes, &filter.words.as_slice()[..index(words_for(length))]);
    Some(bytes)
}

fn binary(filter: &ForeignBits) -> Option<Vec<u8>> {
    let bits = bit_set(filter)?;
    let numbers = [filter.shape.bits, filter.shape.probes.into()].map(u64::to_be_bytes);
    Some([numbers.as_flattened(), &bits].concat())
}

fn json(filter: &ForeignBits) -> Option<Vec<u8>> {
    let bits = URL_SAFE.encode(bit_set(filter)?);
    let Rules { bits: modulus, probes, .. } = filter.shape;
    Some(format!("{{\"m\":{modulus},\"k\":{probes},\"b\":\"{bits}\"}}").into_bytes())
}

/// Nothing else is read: another object ends at its first field, however long it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Json<'a> {
    m: u64,
    k: u64,
    #[serde(borrow)]
    b: Cow<'a, str>,
}

fn unwrap_json(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let problem = "not a JSON object of whole numbers m and k and a text b";
    let Json { m: bits, k: probes, b: text } =
        serde_json::from_slice(bytes).map_err(|_| DecodeError::Payload { problem })?;
    // A process can switch the alphabet.
    let rest = URL_SAFE.decode(&*text).or_else(|_| STANDARD.decode(&*text));
    let rest = rest.map_err(|_| DecodeError::Payload { problem: "b is not base64" })?;
    Ok([&bits.to_be_bytes()[..], &probes.to_be_bytes(), &rest].concat())
}

/// A message that describes a type that encodes itself and is no part of another: 10 bytes.
const GOB_TYPE: [u8; 11] = [0x0a, 0xff, 0x81, 0x05, 0x01, 0x02, 0xff, 0x84, 0x00, 0x00, 0x00];
/// The number of that type, and that a value of no struct follows.
const GOB_VALUE: [u8; 3] = [0xff, 0x82, 0x00];

fn gob(filter: &ForeignBits) -> Option<Vec<u8>> {
    let payload = binary(filter)?;
    let length = gob_number(payload.len() as u64);
    let message = GOB_VALUE.len() + length.len() + payload.len();
    Some([&GOB_TYPE[..], &gob_number(message as u64), &GOB_VALUE, &length, &payload].concat())
}

/// Below 128 a byte; else minus the number of bytes that follow, and these, the highest first.
fn gob_number(number: u64) -> Vec<u8> {
    if number < 128 {
        return Vec::from([low_u8(number)]);
    }
    let bytes = number.to_be_bytes();
    let bytes = &bytes[number.leading_zeros() as usize / 8..];
    [&[low_u8(bytes.len() as u64).wrapping_neg()], bytes].concat()
}

fn take_gob_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first < 128 {
        return Some((first.into(), rest));
    }
    let length = usize::from(first.wrapping_neg());
    let (number, rest) = rest.split_at_checked(length)?;
    let mut wide = [0; 8];
    wide.get_mut(8usize.checked_sub(length)?..)?.copy_from_slice(number);
    Some((u64::from_be_bytes(wide), rest))
}

fn unwrap_gob(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let problem = "not a gob stream of one such filter";
    let other = DecodeError::Payload { problem };
    let message = bytes.strip_prefix(&GOB_TYPE).and_then(take_gob_number).ok_or(other)?;
    super::must_be_long("message", message.0, message.1)?;
    let value = message.1.strip_prefix(&GOB_VALUE).and_then(take_gob_number).ok_or(other)?;
    super::must_be_long("value", value.0, value.1)?;
    Ok(value.1)
}
