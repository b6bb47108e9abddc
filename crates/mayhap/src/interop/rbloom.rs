//! rbloom: what its `save` writes, for a hash function that the caller names.
//!
//! ```text
//! 0  u64 probes, little-endian
//! 8  bits; bit i is bit i % 8 of byte i / 8
//! ```
//!
//! The modulus is the number of all bits. Its users bring their own hash function of 128 bits, and the file does not tell
//! which. The one that is known here is [`HashRule::Sha256`]: the first 16 bytes of the SHA-256 of the key's bytes,
//! little-endian. (Python's pickles, which its manual hashes, are for Python alone.) Nothing in the file shows what it is,
//! so that it is never recognised.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::bloom::{ForeignBits, ForeignBloom, Peer, Rules, as_foreign_bloom};
use super::{Format, HashRule, Reading};
use crate::bits::{OutOfMemory, Words, words_for};
use crate::error::DecodeError;
use crate::hash::ForeignHash;
use crate::narrow::index;
use crate::probing::Probing;
use crate::spec::MAX_BITS;
use crate::wire::Fields;

/// The format `rbloom`.
pub static FORMAT: Format = Format {
    name: "rbloom",
    summary: "rbloom's Bloom.save, with the hash function that its user chose",
    fits: |_| false,
    read: |bytes, reading| Ok(Box::new(read(bytes.as_slice(), reading)?)),
    write: Some(|filter| as_foreign_bloom(filter).and_then(write)),
    make: None,
};

fn read(bytes: &[u8], reading: &Reading) -> Result<ForeignBloom, DecodeError> {
    let mut fields = Fields::new(bytes);
    let probes = super::probes(fields.u64("probes")?)?;
    let bits = fields.rest().len() as u64 * 8;
    if !(1..=MAX_BITS).contains(&bits) {
        return Err(DecodeError::Value { field: "bits", found: bits });
    }
    if reading.hash != Some(HashRule::Sha256) {
        return Err(DecodeError::HashRule { known: HashRule::Sha256.name() });
    }
    let memory = |OutOfMemory { bytes }| DecodeError::Memory { bytes };
    let mut words = Words::zeroed(words_for(bits)).map_err(memory)?;
    for (word, bytes) in words.as_mut_slice().iter_mut().zip(fields.rest().chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    let shape = Rules::told_nothing(bits, probes, ForeignHash::Sha256, Probing::RBLOOM);
    Ok(ForeignBloom::of(words, shape, Peer::Rbloom))
}

fn write(filter: &ForeignBits) -> Option<Vec<u8>> {
    if filter.peer != Peer::Rbloom {
        return None;
    }
    let bits = filter.words.to_le_bytes();
    let mut bytes = u64::from(filter.shape.probes).to_le_bytes().to_vec();
    bytes.extend_from_slice(&bits[..index(filter.shape.bits / 8)]);
    Some(bytes)
}
