//! Roaring bitmaps in their portable form, of 32 and of 64 bits: exact sets of integers.
//!
//! ```text
//! 32 bits   u32 12346, u32 containers             or  u16 12347, u16 containers - 1, a bit for each that is of runs
//!           u16 high half, u16 values - 1         for each container
//!           u32 where it starts                   for each container; with 12347 only if there are 4 or more
//!           up to 4096 values of u16, or 8192 bytes of bits, or u16 runs and of each u16 start, u16 length - 1
//!
//! 64 bits   u64 sets, and of each u32 high half and a set of 32 bits              all little-endian
//! ```
//!
//! What is read is a set of our own family `roaring`. It is written in 32 bits if all integers fit, and else in 64. The
//! `roaring` crate reads and writes the sets; before that, the headers are followed to the end of the file, so that the form
//! is known and nothing is made of numbers that cannot be.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use ::roaring::{RoaringBitmap, RoaringTreemap};

use super::Format;
use crate::error::DecodeError;
use crate::filters::roaring::RoaringSet;
use crate::narrow::low_u16;
use crate::wire::Fields;

/// The format `roaring`.
pub static FORMAT: Format = Format {
    name: "roaring",
    summary: "Roaring bitmaps in their portable form, of 32 and of 64 bits",
    // A set of no sets is a zero of 64 bits, which may be anything.
    fits: |bytes| match form(bytes) {
        Ok(Form::Bits32) => true,
        Ok(Form::Bits64) => bytes.len() > 8,
        Err(_) => false,
    },
    read: |bytes, _| Ok(Box::new(RoaringSet::of(read(bytes.as_slice())?))),
    write: Some(|filter| {
        let filter: &dyn Any = filter;
        filter.downcast_ref().map(write)
    }),
    make: None,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Bits32,
    Bits64,
}

const PLAIN: u32 = 12346;
const WITH_RUNS: u16 = 12347;
/// An array of more values would be larger than a bitmap.
const MOST_IN_ARRAY: usize = 4096;
const BITMAP_BYTES: usize = 8192;

/// Which form the headers fit from the first to the last byte.
fn form(bytes: &[u8]) -> Result<Form, DecodeError> {
    let as_64 = || -> Result<(), DecodeError> {
        let mut fields = Fields::new(bytes);
        for _ in 0..fields.u64("number of sets")? {
            fields.u32("high half")?;
            fields = Fields::new(behind_set(fields.rest())?);
        }
        must_end(fields.rest())
    };
    match as_64() {
        Ok(()) => Ok(Form::Bits64),
        Err(_) if starts_with_set(bytes) => must_end(behind_set(bytes)?).map(|()| Form::Bits32),
        Err(as_64) => Err(as_64),
    }
}

fn must_end(rest: &[u8]) -> Result<(), DecodeError> {
    if rest.is_empty() { Ok(()) } else { Err(DecodeError::Trailing { bytes: rest.len() as u64 }) }
}

fn starts_with_set(bytes: &[u8]) -> bool {
    Fields::new(bytes)
        .u32("cookie")
        .is_ok_and(|cookie| cookie == PLAIN || low_u16(cookie.into()) == WITH_RUNS)
}

/// What follows the set of 32 bits at the front.
fn behind_set(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let mut fields = Fields::new(bytes);
    let cookie = fields.u32("cookie")?;
    let has_runs = low_u16(cookie.into()) == WITH_RUNS;
    let containers = match cookie {
        PLAIN => fields.u32("containers")? as usize,
        _ if has_runs => (cookie >> 16) as usize + 1,
        found => return Err(DecodeError::Value { field: "cookie", found: found.into() }),
    };
    if containers > 1 << 16 {
        return Err(DecodeError::Value { field: "containers", found: containers as u64 });
    }
    let (are_runs, rest) = part(fields.rest(), "kinds", if has_runs { containers.div_ceil(8) } else { 0 })?;
    let (descriptions, rest) = part(rest, "descriptions", 4 * containers)?;
    let has_offsets = !has_runs || containers >= 4;
    let (_, mut rest) = part(rest, "offsets", if has_offsets { 4 * containers } else { 0 })?;
    for (index, &[_, _, low, high]) in descriptions.as_chunks().0.iter().enumerate() {
        let values = usize::from(u16::from_le_bytes([low, high])) + 1;
        let length = if are_runs.get(index / 8).is_some_and(|kinds| kinds >> (index % 8) & 1 == 1) {
            2 + 4 * usize::from(Fields::new(rest).u16("runs")?)
        } else if values <= MOST_IN_ARRAY {
            2 * values
        } else {
            BITMAP_BYTES
        };
        (_, rest) = part(rest, "container", length)?;
    }
    Ok(rest)
}

fn part<'a>(rest: &'a [u8], field: &'static str, length: usize) -> Result<(&'a [u8], &'a [u8]), DecodeError> {
    let (needed, available) = (length as u64, rest.len() as u64);
    rest.split_at_checked(length).ok_or(DecodeError::Truncated { field, needed, available })
}

fn read(bytes: &[u8]) -> Result<RoaringTreemap, DecodeError> {
    let mut sets = Vec::new();
    if form(bytes)? == Form::Bits32 {
        sets.push((0, read_set(bytes)?));
        return Ok(of_sets(sets));
    }
    let mut fields = Fields::new(bytes);
    for _ in 0..fields.u64("number of sets")? {
        let high = fields.u32("high half")?;
        if sets.last().is_some_and(|&(before, _)| before >= high) {
            return Err(DecodeError::Payload {
                problem: "the sets of a 64-bit roaring bitmap are not in order",
            });
        }
        let set = read_set(fields.rest())?;
        fields = Fields::new(behind_set(fields.rest())?);
        sets.push((high, set));
    }
    Ok(of_sets(sets))
}

/// An empty one among them says nothing, and is not kept.
fn of_sets(sets: Vec<(u32, RoaringBitmap)>) -> RoaringTreemap {
    RoaringTreemap::from_bitmaps(sets.into_iter().filter(|(_, set)| !set.is_empty()))
}

fn read_set(bytes: &[u8]) -> Result<RoaringBitmap, DecodeError> {
    let problem = "its values are not in order, or not as many as is said";
    RoaringBitmap::deserialize_from(bytes).map_err(|_| DecodeError::Payload { problem })
}

fn write(set: &RoaringSet) -> Vec<u8> {
    let set = set.treemap();
    let mut bytes = Vec::new();
    let mut sets = set.bitmaps().filter(|(_, set)| !set.is_empty());
    match (sets.next(), sets.next()) {
        (None, _) => RoaringBitmap::new().serialize_into(&mut bytes),
        (Some((0, only)), None) => only.serialize_into(&mut bytes),
        _ => set.serialize_into(&mut bytes),
    }
    .expect("a vector takes every byte");
    bytes
}
