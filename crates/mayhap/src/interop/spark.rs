//! Spark's `org.apache.spark.util.sketch.BloomFilter`: what `writeTo` writes, in both versions.
//!
//! ```text
//! version 1   i32 1 | i32 probes |            i32 words | words of 64 bits      all big-endian
//! version 2   i32 2 | i32 probes | i32 seed | i32 words | words of 64 bits      bit i is bit i % 64 of word i / 64
//! ```
//!
//! The modulus is the number of all bits. Version 2 is what is made since 4.1. An item is a string in UTF-8, a byte array,
//! or an integer of any width, which is a long: 8 little-endian bytes. The hash does not tell a long from 8 bytes.
//!
//! Runtime filters of Spark's SQL hold longs only, which are hashes of the values: [`HashRule::Xxh64`] says that a file is
//! of that kind. Then a string is its UTF-8, a `bigint` 8 little-endian bytes, an `int` 4.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::bloom::{ForeignBits, ForeignBloom, Peer, Rules, as_foreign_bloom};
use super::guava::{bits_wanted, rounded, words_for_wanted};
use super::{Format, HashRule, Making, Reading, big_endian};
use crate::error::{DecodeError, Knob, SpecError};
use crate::family::AnyFilter;
use crate::hash::ForeignHash;
use crate::probing::Probing;

/// The format `spark`.
pub static FORMAT: Format = Format {
    name: "spark",
    summary: "Spark's sketch BloomFilter.writeTo, versions 1 and 2",
    fits: |bytes| parse(bytes).is_ok(),
    read: |bytes, reading| Ok(Box::new(read(bytes.as_slice(), reading)?)),
    write: Some(|filter| as_foreign_bloom(filter).and_then(write)),
    make: Some(make),
};

fn make(making: &Making) -> Result<Box<dyn AnyFilter>, SpecError> {
    making.without(Knob::Growth, FORMAT.name)?;
    let (capacity, fpr) = (making.capacity, making.fpr);
    let bits = bits_wanted(capacity, fpr);
    let words = words_for_wanted(bits, capacity, fpr)?;
    let probes = rounded(bits as f64 / capacity as f64 * core::f64::consts::LN_2).max(1);
    let probing = if making.is_since((4, 1)) { Probing::SPARK_2 } else { Probing::SPARK_1 };
    let seed = match (u32::try_from(making.seed), probing) {
        (Ok(seed), Probing::SPARK_2) => seed as i32,
        (Ok(0), _) => 0,
        (Err(_), Probing::SPARK_2) => {
            let (least, most) = (0u32.into(), u32::MAX.into());
            return Err(SpecError::Range { knob: Knob::Seed, asked: making.seed.into(), least, most });
        }
        _ => return Err(SpecError::NotFor { knob: Knob::Seed, family: FORMAT.name, others: &[] }),
    };
    let hashing = hashing(seed, &making.reading);
    let shape = Rules { bits: words * 64, probes, hashing, probing, capacity, fpr_asked: fpr };
    Ok(Box::new(ForeignBloom::empty(shape, Peer::Spark)?))
}

fn hashing(seed: i32, reading: &Reading) -> ForeignHash {
    match reading.hash {
        Some(HashRule::Xxh64) => ForeignHash::SparkSql { seed },
        _ => ForeignHash::Spark { seed },
    }
}

struct Parsed<'a> {
    probing: Probing,
    probes: u32,
    seed: i32,
    words: &'a [u8],
}

fn parse(bytes: &[u8]) -> Result<Parsed<'_>, DecodeError> {
    let truncated = DecodeError::Truncated { field: "header", needed: 12, available: bytes.len() as u64 };
    let mut rest = bytes;
    let mut next = || {
        let (number, after) = big_endian::u32(rest).ok_or(truncated)?;
        rest = after;
        Ok::<u32, DecodeError>(number)
    };
    let probing = match next()? {
        1 => Probing::SPARK_1,
        2 => Probing::SPARK_2,
        found => return Err(DecodeError::Value { field: "version", found: found.into() }),
    };
    let probes = super::probes(next()?.into())?;
    let seed = if probing == Probing::SPARK_2 { next()? as i32 } else { 0 };
    let words = next()?;
    if words == 0 || words > i32::MAX as u32 {
        return Err(DecodeError::Value { field: "number of words", found: words.into() });
    }
    super::must_be_long("words", u64::from(words) * 8, rest)?;
    Ok(Parsed { probing, probes, seed, words: rest })
}

fn read(bytes: &[u8], reading: &Reading) -> Result<ForeignBloom, DecodeError> {
    let Parsed { probing, probes, seed, words } = parse(bytes)?;
    let words = big_endian::words(words)?;
    let bits = words.len() as u64 * 64;
    let shape = Rules::told_nothing(bits, probes, hashing(seed, reading), probing);
    Ok(ForeignBloom::of(words, shape, Peer::Spark))
}

fn write(filter: &ForeignBits) -> Option<Vec<u8>> {
    if filter.peer != Peer::Spark {
        return None;
    }
    let (ForeignHash::Spark { seed } | ForeignHash::SparkSql { seed }) = filter.shape.hashing else {
        return None;
    };
    let words = filter.words.as_slice();
    let (probes, number) = (filter.shape.probes, u32::try_from(words.len()).ok()?);
    let header = match filter.shape.probing {
        Probing::SPARK_1 => Vec::from([1, probes, number]),
        _ => Vec::from([2, probes, seed as u32, number]),
    };
    let mut bytes: Vec<u8> = header.into_iter().flat_map(u32::to_be_bytes).collect();
    big_endian::put_words(&mut bytes, words);
    Some(bytes)
}
