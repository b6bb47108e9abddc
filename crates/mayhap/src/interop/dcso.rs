//! DCSO's `bloom`: the files of its command and of its Go library, plain or in gzip.
//!
//! ```text
//!  0  u64  flags: the lowest byte is 1, the version
//!  8  u64  capacity           16  f64  rate asked for          24  u64  probes
//! 32  u64  bits: the modulus  40  u64  inserts that changed a bit
//! 48  words of 64 bits; bit i is bit i % 64 of word i / 64
//!     data of the user, to the end                                                        all little-endian
//! ```
//!
//! A key is hashed by FNV-1, which is all that its positions depend on: keys of equal hash are one key to it. Data of the
//! user is kept as it is. The command drops a carriage return at the end of each line that it reads.

use alloc::boxed::Box;
use alloc::vec::Vec;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use super::bloom::{ForeignBits, ForeignBloom, Peer, Rules, as_foreign_bloom};
use super::{Format, Making, Reading};
use crate::bits::{Bytes, Words, words_for};
use crate::error::{DecodeError, Knob, SpecError};
use crate::family::AnyFilter;
use crate::hash::ForeignHash;
use crate::narrow::{index, low_u8, whole, whole_u32};
use crate::probing::Probing;
use crate::spec::MAX_BITS;
use crate::wire::Fields;

/// The format `dcso`.
pub static FORMAT: Format = Format {
    name: "dcso",
    summary: "DCSO's bloom, plain or in gzip",
    fits: |bytes| {
        if is_gzip(bytes) { inflated(bytes).is_ok_and(|file| is_sized(&file)) } else { is_sized(bytes) }
    },
    read: |bytes, _: &Reading| {
        if !is_gzip(bytes.as_slice()) {
            return Ok(Box::new(read(&bytes)?));
        }
        Ok(Box::new(read(&inflated(bytes.as_slice())?.into())?))
    },
    write: Some(|filter| as_foreign_bloom(filter).and_then(write)),
    make: Some(make),
};

const HEADER: u64 = 48;
const VERSION: u8 = 1;

fn make(making: &Making) -> Result<Box<dyn AnyFilter>, SpecError> {
    making.without(Knob::Seed, FORMAT.name)?;
    making.without(Knob::Growth, FORMAT.name)?;
    let (capacity, fpr) = (making.capacity, making.fpr);
    let bits = bits_for(capacity, fpr);
    if bits == 0 {
        return Err(SpecError::NoBits { capacity, fpr });
    }
    let probes = probes_for(bits, capacity);
    let (hashing, probing) = (ForeignHash::Fnv1, Probing::DCSO);
    let shape = Rules { bits, probes, hashing, probing, capacity, fpr_asked: fpr };
    let peer = Peer::Dcso { changes: 0, flags: VERSION.into(), data: Vec::new() };
    Ok(Box::new(ForeignBloom::empty(shape, peer)?))
}

fn bits_for(capacity: u64, fpr: f64) -> u64 {
    let ln2 = core::f64::consts::LN_2;
    // The logarithm is negative, so that rounding up makes the number of bits smaller.
    whole(libm::fabs(libm::ceil(capacity as f64 * libm::log(fpr) / (ln2 * ln2))))
}

fn probes_for(bits: u64, capacity: u64) -> u32 {
    whole_u32(libm::ceil(core::f64::consts::LN_2 * bits as f64 / capacity as f64))
}

/// Whether the header has the numbers of bits and of probes that follow from the others. Anything may stand behind the words,
/// so that else many files of other formats would do: a dump of Redis begins with a 1, too.
fn is_sized(bytes: &[u8]) -> bool {
    parse(bytes).is_ok_and(|Parsed { shape: Rules { bits, probes, capacity, fpr_asked, .. }, .. }| {
        // Another logarithm may differ in its last digit.
        bits.abs_diff(bits_for(capacity, fpr_asked)) <= 1 && probes.abs_diff(probes_for(bits, capacity)) <= 1
    })
}

struct Parsed {
    shape: Rules,
    flags: u64,
    changes: u64,
    /// Where the words end and the data begins.
    end: usize,
}

/// The lowest byte is the version.
pub(super) fn check_flags(flags: u64) -> Result<(), DecodeError> {
    if low_u8(flags) == VERSION {
        Ok(())
    } else {
        Err(DecodeError::Value { field: "version", found: flags & 0xff })
    }
}

/// The shape, the flags and the changes of a header.
fn parse_header(bytes: &[u8]) -> Result<(Rules, u64, u64), DecodeError> {
    let mut fields = Fields::new(bytes);
    let flags = fields.u64("flags")?;
    check_flags(flags)?;
    let capacity = fields.u64("capacity")?;
    let fpr_asked = f64::from_bits(fields.u64("rate")?);
    // Written so that a NaN is refused, too.
    if !(fpr_asked > 0.0 && fpr_asked < 1.0) {
        return Err(DecodeError::Value { field: "rate", found: fpr_asked.to_bits() });
    }
    let probes = super::probes(fields.u64("probes")?)?;
    let bits = fields.u64("number of bits")?;
    if !(1..=MAX_BITS).contains(&bits) {
        return Err(DecodeError::Value { field: "number of bits", found: bits });
    }
    let changes = fields.u64("number of keys")?;
    let (hashing, probing) = (ForeignHash::Fnv1, Probing::DCSO);
    Ok((Rules { bits, probes, hashing, probing, capacity, fpr_asked }, flags, changes))
}

fn parse(bytes: &[u8]) -> Result<Parsed, DecodeError> {
    let (shape, flags, changes) = parse_header(bytes)?;
    let (needed, available) = (words_for(shape.bits) * 8, bytes.len() as u64 - HEADER);
    if needed > available {
        return Err(DecodeError::Truncated { field: "words", needed, available });
    }
    Ok(Parsed { shape, flags, changes, end: index(HEADER + needed) })
}

fn read(bytes: &Bytes) -> Result<ForeignBloom, DecodeError> {
    let Parsed { shape, flags, changes, end } = parse(bytes.as_slice())?;
    let words = bytes.part(index(HEADER)..end).and_then(Words::from_bytes);
    let words = words.ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
    if !shape.bits.is_multiple_of(64)
        && words.as_slice().last().is_some_and(|last| last >> (shape.bits % 64) != 0)
    {
        return Err(DecodeError::Padding { field: "end of the words" });
    }
    let data = bytes.as_slice()[end..].to_vec();
    Ok(ForeignBloom::of(words, shape, Peer::Dcso { changes, flags, data }))
}

fn write(filter: &ForeignBits) -> Option<Vec<u8>> {
    let Peer::Dcso { changes, flags, data } = &filter.peer else { return None };
    let Rules { bits, probes, capacity, fpr_asked, .. } = filter.shape;
    let header = [*flags, capacity, fpr_asked.to_bits(), probes.into(), bits, *changes];
    let words = filter.words.to_le_bytes();
    Some([header.map(u64::to_le_bytes).as_flattened(), &words, data].concat())
}

/// Whether bytes begin as gzip does. The command has to be told; we look.
#[must_use]
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The length of the data that its user has attached to a file, and that a file in gzip cannot have more of than
/// [`MOST_DATA_IN_GZIP`].
///
/// # Errors
/// [`DecodeError`] if it is no such file.
pub fn data_length(file: &[u8]) -> Result<u64, DecodeError> {
    Ok((file.len() - parse(file)?.end) as u64)
}

/// The bytes of a file in gzip, which are read again. Other programs make other bytes of the same, which all inflate to it.
#[must_use]
pub fn gzip(file: &[u8]) -> Vec<u8> {
    let packed = |level| {
        let mut encoder = GzEncoder::new(Vec::new(), level);
        let written = encoder.write_all(file);
        written.and_then(|()| encoder.finish()).expect("a vector takes every byte")
    };
    let bytes = packed(Compression::default());
    // A large filter that is nearly empty becomes too small to be believed.
    if file.len() as u64 > most_inflated(&bytes) { packed(Compression::none()) } else { bytes }
}

/// A file in gzip may become so many times as long, or [`ALWAYS_INFLATED`]: as much as loading a plain file takes. A bit array
/// that is used at all does not compress that far, and what does can be unpacked first. Deflate itself would allow 1032.
const MOST_INFLATION: u64 = 16;

/// So many bytes are inflated whatever the length of the file: filters made for few keys are nearly empty at first.
const ALWAYS_INFLATED: u64 = 16 << 20;

/// How many bytes of a filter these may become.
fn most_inflated(bytes: &[u8]) -> u64 {
    (bytes.len() as u64).saturating_mul(MOST_INFLATION).max(ALWAYS_INFLATED)
}

/// Data of the user beyond this is refused in a gzip file: a small crafted file could fill the memory.
pub const MOST_DATA_IN_GZIP: u64 = 16 << 20;

/// The file in one member of gzip. What the header says of the bits bounds what is inflated, and the length of the file
/// bounds what it can say: see [`MOST_INFLATION`].
fn inflated(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let broken = |_| DecodeError::Payload { problem: "gzip that cannot be read" };
    let mut decoder = GzDecoder::new(bytes);
    let mut file = Vec::new();
    (&mut decoder).take(HEADER).read_to_end(&mut file).map_err(broken)?;
    let (shape, _, _) = parse_header(&file)?;
    let needed = words_for(shape.bits) * 8;
    if HEADER + needed > most_inflated(bytes) {
        return Err(DecodeError::Payload {
            problem: "a filter of more than 16 MiB, and 16 times its length in gzip; unpack it first",
        });
    }
    let limit = needed + MOST_DATA_IN_GZIP;
    let read = (&mut decoder).take(limit + 1).read_to_end(&mut file).map_err(broken)?;
    if read as u64 > limit {
        return Err(DecodeError::Payload {
            problem: "more than 16 MiB of data behind the filter, in gzip; unpack it first",
        });
    }
    match decoder.into_inner() {
        [] => Ok(file),
        rest => Err(DecodeError::Trailing { bytes: rest.len() as u64 }),
    }
}
