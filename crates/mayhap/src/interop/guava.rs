//! Guava's `BloomFilter`: what `writeTo` writes and `readFrom` reads.
//!
//! ```text
//! 0  i8   strategy: 0 MURMUR128_MITZ_32, 1 MURMUR128_MITZ_64
//! 1  u8   probes, at least 1
//! 2  i32  words, big-endian, at least 1
//! 6  words of 64 bits, big-endian; bit i is bit i % 64 of word i / 64
//! ```
//!
//! The modulus is the number of all bits. There is no word of the funnel, of the number of keys or of the rate. A funnel is
//! a choice of key bytes: UTF-8 for `stringFunnel(UTF_8)`, UTF-16LE for `unencodedCharsFunnel()`, 4 or 8 little-endian
//! bytes for `integerFunnel()` and `longFunnel()`.
//!
//! Guava reads on behind the words, so that streams can be put together; a file is one filter here, and bytes behind it are
//! an error.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::bloom::{ForeignBits, ForeignBloom, Peer, Shape, as_foreign_bloom};
use super::{Format, Making, Reading, big_endian};
use crate::error::{DecodeError, Knob, SpecError};
use crate::family::AnyFilter;
use crate::hash::ForeignHash;
use crate::narrow::{whole, whole_u32};
use crate::probing::Probing;

/// The format `guava`.
pub static FORMAT: Format = Format {
    name: "guava",
    summary: "Guava's BloomFilter.writeTo, of both strategies",
    fits: |bytes| parse(bytes).is_ok(),
    read: |bytes, _: &Reading| Ok(Box::new(read(bytes.as_slice())?)),
    write: Some(|filter| as_foreign_bloom(filter).and_then(write)),
    make: Some(|making| Ok(Box::new(make(making, Strategy::of_version(making))?))),
};

/// How positions are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// MURMUR128_MITZ_32: before version 17, and good for 2^31 bits at most.
    Mitz32,
    /// MURMUR128_MITZ_64: the default since version 17.
    Mitz64,
}

impl Strategy {
    fn of_version(making: &Making) -> Self {
        if making.is_since((17, 0)) { Self::Mitz64 } else { Self::Mitz32 }
    }

    const fn probing(self) -> Probing {
        match self {
            Self::Mitz32 => Probing::Guava32,
            Self::Mitz64 => Probing::Guava64,
        }
    }
}

/// An empty filter as `BloomFilter.create` makes it, by a strategy of choice.
///
/// # Errors
/// [`SpecError`] if the capacity or the rate make no sense, to us or to Guava.
pub fn create(making: &Making, strategy: Strategy) -> Result<Box<dyn AnyFilter>, SpecError> {
    making.check()?;
    Ok(Box::new(make(making, strategy)?))
}

fn make(making: &Making, strategy: Strategy) -> Result<ForeignBloom, SpecError> {
    making.without(Knob::Seed, FORMAT.name)?;
    making.without(Knob::Growth, FORMAT.name)?;
    let (capacity, fpr) = (making.capacity, making.fpr);
    let bits = bits_wanted(capacity, fpr);
    let words = words_for_wanted(bits, capacity, fpr)?;
    // The rule was changed in 33.4: the rounding of the bits has no part in it any more.
    let probes = if making.is_since((33, 4)) {
        -libm::log(fpr) / core::f64::consts::LN_2
    } else {
        bits as f64 / capacity as f64 * core::f64::consts::LN_2
    };
    let probes = rounded(probes).max(1);
    let (hashing, probing) = (ForeignHash::Murmur3, strategy.probing());
    let shape = Shape { bits: words * 64, probes, hashing, probing, capacity, fpr_asked: fpr };
    ForeignBloom::empty(shape, Peer::Guava)
}

/// The bits of a filter by the arithmetic that Guava and Spark share, before they are rounded up to words.
pub(super) fn bits_wanted(capacity: u64, fpr: f64) -> u64 {
    let ln2 = core::f64::consts::LN_2;
    whole(-(capacity as f64) * libm::log(fpr) / (ln2 * ln2))
}

/// So many bits in words. Both programs count words in 31 bits, and refuse to make a filter of no bits.
pub(super) fn words_for_wanted(bits: u64, capacity: u64, fpr: f64) -> Result<u64, SpecError> {
    const MOST: u64 = i32::MAX as u64;
    match bits.div_ceil(64) {
        0 => Err(SpecError::NoBits { capacity, fpr }),
        words @ 1..=MOST => Ok(words),
        _ => Err(SpecError::TooLarge { bits, limit: MOST * 64 }),
    }
}

/// To the nearest integer, and halves up.
pub(super) fn rounded(value: f64) -> u32 {
    whole_u32(libm::floor(value + 0.5))
}

struct Parsed<'a> {
    strategy: Strategy,
    probes: u32,
    words: &'a [u8],
}

fn parse(bytes: &[u8]) -> Result<Parsed<'_>, DecodeError> {
    let truncated = DecodeError::Truncated { field: "header", needed: 6, available: bytes.len() as u64 };
    let ([strategy, probes, a, b, c, d], words) = bytes.split_first_chunk().ok_or(truncated)?;
    let strategy = match strategy {
        0 => Strategy::Mitz32,
        1 => Strategy::Mitz64,
        &found => return Err(DecodeError::Value { field: "strategy", found: found.into() }),
    };
    let probes = super::probes((*probes).into())?;
    let number = u32::from_be_bytes([*a, *b, *c, *d]);
    if number == 0 || number > i32::MAX as u32 {
        return Err(DecodeError::Value { field: "number of words", found: number.into() });
    }
    super::must_be_long("words", u64::from(number) * 8, words)?;
    Ok(Parsed { strategy, probes, words })
}

fn read(bytes: &[u8]) -> Result<ForeignBloom, DecodeError> {
    let Parsed { strategy, probes, words } = parse(bytes)?;
    let words = big_endian::words(words)?;
    let bits = words.len() as u64 * 64;
    let shape = Shape::told_nothing(bits, probes, ForeignHash::Murmur3, strategy.probing());
    Ok(ForeignBloom::of(words, shape, Peer::Guava))
}

fn write(filter: &ForeignBits) -> Option<Vec<u8>> {
    if filter.peer != Peer::Guava {
        return None;
    }
    let strategy = u8::from(filter.shape.probing == Probing::Guava64);
    let words = filter.words.as_slice();
    // Both fit: they were read from such a file, or made for one.
    let mut bytes = Vec::from([strategy, u8::try_from(filter.shape.probes).ok()?]);
    bytes.extend(u32::try_from(words.len()).ok()?.to_be_bytes());
    big_endian::put_words(&mut bytes, words);
    Some(bytes)
}
