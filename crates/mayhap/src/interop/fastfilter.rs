//! FastFilter's static filters, xor and binary fuse, of 8 and 16 bits: what its C library serialises.
//!
//! ```text
//! xor    0  u64 seed
//!        8  u64 places of a block
//!       16  fingerprints of three blocks                                      all little-endian
//!
//! fuse   0  u64 seed
//!        8  u32 keys
//!       12  u32 places of a segment, a power of two
//!       16  u32 segments in which a key can have its first place
//!       20  u32 places of all of those
//!       24  u32 places of all, with two segments more
//!       28  fingerprints, and 4 bytes without a meaning behind those of 16 bits
//! ```
//!
//! A key is a number of 64 bits. Which one belongs to a text is not part of the format; its Python package takes XXH64.
//! So [`Keys::Integers`] are their own numbers, and everything else is hashed. The numbers of bits are not in the file:
//! they are part of the format's name, and the length must fit. The library counts 4 bytes too many for a fuse filter of 16
//! bits, so that files of its wrappers end with them; without them it is a file, too.
//!
//! With `h` the end of Murmur3 of key and seed together, the key is perhaps in if the XOR of its three fingerprints is
//! `h ^ h >> 32`. Nothing can be added, and two cannot be merged.

use alloc::boxed::Box;

use super::{Format, Keys, Reading};
use crate::bits::Bytes;
use crate::error::DecodeError;
use crate::family::{AnyFilter, Family, Guarantee, Report};
use crate::filters::fuse::FAMILY;
use crate::hash::foreign::murmur3_finish;
use crate::hash::{Digest, ForeignHash, Hashing};
use crate::math;
use crate::narrow::{index, low_u8, low_u16, low_u32, whole};
use crate::probing::{Probing, reduce};
use crate::traits::Filter;
use crate::wire::{Fields, Frame, Writer};

/// The format `xor8`.
pub static XOR8: Format = Format {
    name: "xor8",
    summary: "FastFilter's xor filter with fingerprints of 8 bits",
    fits: |bytes| parse_xor(bytes, Width::Eight).is_ok(),
    read: |bytes, reading| read(bytes, parse_xor, Width::Eight, reading),
    write: None,
    make: None,
};

/// The format `xor16`.
pub static XOR16: Format = Format {
    name: "xor16",
    summary: "FastFilter's xor filter with fingerprints of 16 bits",
    fits: |bytes| parse_xor(bytes, Width::Sixteen).is_ok(),
    read: |bytes, reading| read(bytes, parse_xor, Width::Sixteen, reading),
    write: None,
    make: None,
};

/// The format `fuse8`.
pub static FUSE8: Format = Format {
    name: "fuse8",
    summary: "FastFilter's binary fuse filter with fingerprints of 8 bits",
    fits: |bytes| parse_fuse(bytes, Width::Eight).is_ok(),
    read: |bytes, reading| read(bytes, parse_fuse, Width::Eight, reading),
    write: None,
    make: None,
};

/// The format `fuse16`.
pub static FUSE16: Format = Format {
    name: "fuse16",
    summary: "FastFilter's binary fuse filter with fingerprints of 16 bits",
    fits: |bytes| parse_fuse(bytes, Width::Sixteen).is_ok(),
    read: |bytes, reading| read(bytes, parse_fuse, Width::Sixteen, reading),
    write: None,
    make: None,
};

/// How long a fingerprint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Eight,
    Sixteen,
}

impl Width {
    const fn bits(self) -> u32 {
        match self {
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }

    const fn bytes(self) -> u64 {
        self.bits() as u64 / 8
    }
}

/// Everything but the fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parsed {
    width: Width,
    seed: u64,
    /// Where the fingerprints start.
    start: usize,
    /// How many fingerprints there are.
    places: u64,
    rule: Rule,
}

/// Where the three places of a key are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Xor { block: u32 },
    Fuse { segment: u32, first_places: u32, keys: u32 },
}

type Parse = fn(&[u8], Width) -> Result<Parsed, DecodeError>;

fn parse_xor(bytes: &[u8], width: Width) -> Result<Parsed, DecodeError> {
    let mut fields = Fields::new(bytes);
    let seed = fields.u64("seed")?;
    let found = fields.u64("places of a block")?;
    // The program multiplies it with 32 bits of a hash, in 64 bits.
    let Some(block @ 1..) = u32::try_from(found).ok() else {
        return Err(DecodeError::Value { field: "places of a block", found });
    };
    let places = 3 * u64::from(block);
    super::must_be_long("fingerprints", places * width.bytes(), fields.rest())?;
    Ok(Parsed { width, seed, start: bytes.len() - fields.rest().len(), places, rule: Rule::Xor { block } })
}

fn parse_fuse(bytes: &[u8], width: Width) -> Result<Parsed, DecodeError> {
    let mut fields = Fields::new(bytes);
    let seed = fields.u64("seed")?;
    let keys = fields.u32("keys")?;
    let segment = fields.u32("places of a segment")?;
    if !segment.is_power_of_two() {
        return Err(DecodeError::Value { field: "places of a segment", found: segment.into() });
    }
    let segments = fields.u32("segments")?;
    if segments == 0 {
        return Err(DecodeError::Value { field: "segments", found: 0 });
    }
    let first_places = fields.u32("places of the first segments")?;
    if u64::from(segments) * u64::from(segment) != u64::from(first_places) {
        return Err(DecodeError::Value { field: "places of the first segments", found: first_places.into() });
    }
    let places = u64::from(fields.u32("places")?);
    if (u64::from(segments) + 2) * u64::from(segment) != places {
        return Err(DecodeError::Value { field: "places", found: places });
    }
    // Each key has a place of its own, or there would be no solution.
    if u64::from(keys) > places {
        return Err(DecodeError::Value { field: "keys", found: keys.into() });
    }
    let (start, length) = (bytes.len() - fields.rest().len(), places * width.bytes());
    let rest = match fields.rest().split_last_chunk::<4>() {
        Some((rest, _)) if width == Width::Sixteen && rest.len() as u64 == length => rest,
        _ => fields.rest(),
    };
    super::must_be_long("fingerprints", length, rest)?;
    Ok(Parsed { width, seed, start, places, rule: Rule::Fuse { segment, first_places, keys } })
}

fn read(
    file: Bytes,
    parse: Parse,
    width: Width,
    reading: &Reading,
) -> Result<Box<dyn AnyFilter>, DecodeError> {
    let hashing = match reading.keys {
        Keys::Integers => Hashing::Integer,
        Keys::Text | Keys::Bytes => Hashing::Foreign(ForeignHash::Xxh64),
    };
    let parsed = parse(file.as_slice(), width)?;
    Ok(Box::new(FastFilter { file, parsed, hashing }))
}

/// A static filter of FastFilter's, in the bytes of its file.
#[derive(Debug)]
struct FastFilter {
    file: Bytes,
    parsed: Parsed,
    hashing: Hashing,
}

impl Parsed {
    /// The three places of a hash, each of them below `places`.
    ///
    /// Of an xor filter, each is in a block of its own: 32 bits times the places of a block, above 32 bits, is below those.
    /// Of a fuse filter, the first is in one of the first segments, the others are moved by one and by two segments. The XOR
    /// changes the bits below the length of a segment only, which is a power of two, and so does not leave the segment; the
    /// last one ends with the places.
    fn places_of(&self, hash: u64) -> [u64; 3] {
        match self.rule {
            Rule::Xor { block } => {
                let block = u64::from(block);
                let within = |hash: u64| (u64::from(low_u32(hash)) * block) >> 32;
                let turned = [within(hash), within(hash.rotate_left(21)), within(hash.rotate_left(42))];
                [turned[0], turned[1] + block, turned[2] + 2 * block]
            }
            Rule::Fuse { segment, first_places, .. } => {
                let first = reduce(hash, first_places.into());
                let (segment, within) = (u64::from(segment), u64::from(segment) - 1);
                [first, (first + segment) ^ (hash >> 18 & within), (first + 2 * segment) ^ (hash & within)]
            }
        }
    }

    /// How many keys are in. An xor filter does not say; its places are 1.23 for each and 32 more, rounded down to whole
    /// blocks, and these are the most that give so many (Graf, Lemire, *Xor Filters*, 2020).
    fn keys(&self) -> u64 {
        match self.rule {
            Rule::Xor { .. } => whole(self.places.saturating_sub(30) as f64 / 1.23),
            Rule::Fuse { keys, .. } => keys.into(),
        }
    }
}

impl FastFilter {
    fn has(&self, key: u64) -> bool {
        let hash = murmur3_finish(key.wrapping_add(self.parsed.seed));
        let fingerprints = &self.file.as_slice()[self.parsed.start..];
        let places = self.parsed.places_of(hash).map(index);
        let fingerprint = hash ^ hash >> 32;
        match self.parsed.width {
            Width::Eight => {
                places.iter().fold(low_u8(fingerprint), |xor, &place| xor ^ fingerprints[place]) == 0
            }
            Width::Sixteen => {
                let (fingerprints, _) = fingerprints.as_chunks();
                let at = |place: usize| u16::from_le_bytes(fingerprints[place]);
                places.iter().fold(low_u16(fingerprint), |xor, &place| xor ^ at(place)) == 0
            }
        }
    }

    fn format(&self) -> &'static Format {
        match (self.parsed.rule, self.parsed.width) {
            (Rule::Xor { .. }, Width::Eight) => &XOR8,
            (Rule::Xor { .. }, Width::Sixteen) => &XOR16,
            (Rule::Fuse { .. }, Width::Eight) => &FUSE8,
            (Rule::Fuse { .. }, Width::Sixteen) => &FUSE16,
        }
    }
}

impl crate::traits::sealed::Sealed for FastFilter {}

impl Filter for FastFilter {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// What is no integer has a second half, and is not in.
    fn contains_digest(&self, digest: Digest) -> bool {
        digest.b == 0 && self.has(digest.a)
    }
}

impl AnyFilter for FastFilter {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    fn program(&self) -> Option<&'static str> {
        Some(self.format().name)
    }

    fn report(&self) -> Report {
        let Parsed { width, places, rule, .. } = self.parsed;
        let keys = self.parsed.keys();
        // Integers are never taken for each other.
        let hashed = if self.hashing == Hashing::Integer { 0 } else { keys };
        let fpr = math::fuse_fpr(width.bits(), hashed);
        Report {
            capacity: keys,
            inserted: matches!(rule, Rule::Fuse { .. }).then_some(keys),
            estimated_len: Some(keys as f64),
            bits: places * u64::from(width.bits()),
            probes: Some(3),
            fill: keys as f64 / places as f64,
            fpr_asked: fpr,
            fpr_now: fpr,
            fpr_interval: None,
            fpr_at_capacity: fpr,
            guarantee: Guarantee::NoFalseNegatives,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(match self.parsed.rule {
            Rule::Xor { .. } => Probing::Xor,
            Rule::Fuse { .. } => Probing::FastFilterFuse,
        });
        out.counts(self.report().inserted, self.parsed.keys());
        out.params().u32(self.parsed.width.bits()).u32(0);
        out.bytes(self.file.as_slice());
    }
}

/// The filter of a file of ours, whose payload is the file as it was.
pub(super) fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Box<dyn AnyFilter>, DecodeError> {
    let expected = match hashing {
        Hashing::Integer => Hashing::Integer,
        _ => Hashing::Foreign(ForeignHash::Xxh64),
    };
    super::must_be_of(frame, &FAMILY, hashing, expected)?;
    let header = &frame.header;
    let mut fields = Fields::new(&header.params);
    let width = match fields.u32("bits of a fingerprint")? {
        8 => Width::Eight,
        16 => Width::Sixteen,
        found => return Err(DecodeError::Value { field: "bits of a fingerprint", found: found.into() }),
    };
    fields.zero_u32("padding of the parameters")?;
    fields.end("parameters", header.params.len())?;
    let parse: Parse = if header.probing == Probing::Xor.id() { parse_xor } else { parse_fuse };
    let file = super::take_payload(frame);
    let parsed = parse(file.as_slice(), width)?;
    Ok(Box::new(FastFilter { file, parsed, hashing }))
}
