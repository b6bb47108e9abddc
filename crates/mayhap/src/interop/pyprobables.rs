//! pyprobables: what its `BloomFilter` and `ExpandingBloomFilter` export.
//!
//! ```text
//! plain       bits, and then           u64 capacity, u64 inserted, f32 rate      all little-endian
//! expanding   of each layer
//!             u64 inserted, bits
//!             and then u64 layers,     u64 capacity, u64 inserted, f32 rate
//! ```
//!
//! Bit i is bit i % 8 of byte i / 8. The numbers of bits and of probes follow from capacity and rate, and with them the
//! length of the file. All layers are of the same capacity and rate.
//!
//! Probe i is FNV-1a of 64 bits, whose basis grows by 31 with each probe. Python's text is fed to it code point by code point,
//! each of them whole, and its bytes byte by byte, so that the two differ for text beyond ASCII: [`Keys`] says which is meant.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::frozen::{Frozen, FrozenRule, Layer};
use super::{Format, Keys, Reading};
use crate::bits::Bytes;
use crate::error::DecodeError;
use crate::family::AnyFilter;
use crate::hash::foreign::{FNV_BASIS, FNV_PRIME};
use crate::hash::{ForeignHash, Hashing};
use crate::narrow::{index, whole};
use crate::probing::Probing;
use crate::wire::{Fields, Frame, Writer};

/// The format `pyprobables`.
pub static FORMAT: Format = Format {
    name: "pyprobables",
    summary: "pyprobables' BloomFilter.export, and that of its ExpandingBloomFilter",
    fits: |bytes| parse(bytes).is_ok(),
    read: |bytes, reading| Ok(Box::new(read(bytes, hashing(reading))?)),
    write: None,
    make: None,
};

fn hashing(reading: &Reading) -> ForeignHash {
    match reading.keys {
        Keys::Text => ForeignHash::Fnv1aText,
        Keys::Bytes | Keys::Integers => ForeignHash::Fnv1a,
    }
}

struct Parsed {
    is_stack: bool,
    inserted: u64,
    fpr: f64,
    layers: Vec<Layer>,
}

/// Bytes at the end of a plain file; those of an expanding one begin with 8 more.
const FOOTER: usize = 20;

fn parse(bytes: &[u8]) -> Result<Parsed, DecodeError> {
    let available = bytes.len() as u64;
    let truncated = DecodeError::Truncated { field: "footer", needed: FOOTER as u64, available };
    let (front, footer) = bytes.split_last_chunk::<FOOTER>().ok_or(truncated)?;
    let mut fields = Fields::new(footer);
    let capacity = fields.u64("capacity")?;
    let inserted = fields.u64("inserted keys")?;
    let stored = fields.u32("rate")?;
    let fpr = f64::from(f32::from_bits(stored));
    if capacity == 0 {
        return Err(DecodeError::Value { field: "capacity", found: 0 });
    }
    // Written so that a NaN is refused, too.
    if !(fpr > 0.0 && fpr < 1.0) {
        return Err(DecodeError::Value { field: "rate", found: stored.into() });
    }
    let bits = libm::ceil(-(capacity as f64) * libm::log(fpr) / LN2_SQUARED);
    // More would be said than is there; and below that, nothing is lost in an f64.
    if bits < 1.0 || bits > available as f64 * 8.0 {
        return Err(DecodeError::Value { field: "capacity", found: capacity });
    }
    let probes = super::probes(whole(libm::rint(core::f64::consts::LN_2 * bits / capacity as f64)))?;
    let bits = whole(bits);
    let length = Layer::bytes_for(bits);
    let layer = |start, keys| Layer { start, bits, probes, capacity, keys };
    // Even of one layer, an expanding file is longer than a plain one, so that it is never both.
    let stack = front.split_last_chunk::<8>().filter(|(front, count)| {
        let expected = u64::from_le_bytes(**count).checked_mul(8 + length);
        !front.is_empty() && expected == Some(front.len() as u64)
    });
    let Some((front, _)) = stack else {
        super::must_be_long("bits", length, front)?;
        let layer = layer(0, inserted);
        layer.must_end_in_zeros(bytes)?;
        return Ok(Parsed { is_stack: false, inserted, fpr, layers: [layer].to_vec() });
    };
    let mut layers = Vec::new();
    for start in (0..front.len()).step_by(8 + index(length)) {
        let layer = layer(start + 8, Fields::new(&front[start..]).u64("inserted keys")?);
        layer.must_end_in_zeros(bytes)?;
        layers.push(layer);
    }
    Ok(Parsed { is_stack: true, inserted, fpr, layers })
}

/// The program's own constant, a little off the square of the logarithm.
const LN2_SQUARED: f64 = 0.480_453_013_918_2;

fn read(file: Bytes, hashing: ForeignHash) -> Result<Frozen<Fnv1a>, DecodeError> {
    let Parsed { is_stack, inserted, fpr, layers } = parse(file.as_slice())?;
    Ok(Frozen { file, layers, is_stack, inserted, fpr_asked: fpr, hashing, rule: Fnv1a })
}

/// A probe is FNV-1a with a basis of its own.
#[derive(Debug)]
struct Fnv1a;

impl FrozenRule for Fnv1a {
    const NAME: &'static str = FORMAT.name;
    const PROBING: Probing = Probing::PYPROBABLES;

    /// All layers are alike, so that a key is hashed once for all that are still in question.
    fn is_in(filter: &Frozen<Self>, key: &[u8]) -> bool {
        let Some(&Layer { bits, probes, .. }) = filter.layers.first() else { return false };
        let text = match filter.hashing {
            ForeignHash::Fnv1aText => core::str::from_utf8(key).ok(),
            _ => None,
        };
        let file = filter.file.as_slice();
        let mut layers: Vec<&Layer> = filter.layers.iter().collect();
        for probe in 0..u64::from(probes) {
            let position = probe_hash(key, text, probe) % bits;
            layers.retain(|layer| layer.is_set(file, position));
            if layers.is_empty() {
                return false;
            }
        }
        true
    }

    /// The header's hash function and family say the rest.
    fn put_params(&self, _: &mut Writer<'_>) {}
}

fn probe_hash(key: &[u8], text: Option<&str>, probe: u64) -> u64 {
    let step = |hash: u64, unit: u64| (hash ^ unit).wrapping_mul(FNV_PRIME);
    let basis = FNV_BASIS.wrapping_add(31 * probe);
    match text {
        Some(text) => text.chars().fold(basis, |hash, letter| step(hash, u32::from(letter).into())),
        None => key.iter().fold(basis, |hash, &byte| step(hash, byte.into())),
    }
}

/// The filter of a file of ours, whose payload is the file as it was.
pub(super) fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Box<dyn AnyFilter>, DecodeError> {
    let Hashing::Foreign(hash @ (ForeignHash::Fnv1a | ForeignHash::Fnv1aText)) = hashing else {
        return Err(super::bloom::unfit(frame));
    };
    let header = &frame.header;
    Fields::new(&header.params).end("parameters", header.params.len())?;
    let found = header.family;
    read(super::take_payload(frame), hash)?.of_family(found)
}
