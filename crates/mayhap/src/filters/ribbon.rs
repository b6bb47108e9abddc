//! Bumped ribbon filter: a set that is known and stays as it is, in hardly more bits than any filter must take.
//!
//! **Answers** "is this key in the set?"
//! **Promise** a key of the set is never denied; another is admitted with the rate that was asked for, whatever it is and
//! whatever the number of keys.
//! **Not for** sets that change: there is no insert, and no merge. Build it again. Where questions count more than bits,
//! [`Fuse`](crate::Fuse).
//!
//! ```text
//!   key ─▶ half a ─▶ shard ─▶ layer, start, row 1011…     column 0  … 0 1 1 0 …   parity of the slots that the row picks: 1
//!                                                         column 1  … 1 1 0 0 …                                          0
//!                                                         …         all of them  ==  fingerprint of the key?
//! ```
//!
//! | operation | cache lines                                 | can fail                          |
//! |-----------|---------------------------------------------|-----------------------------------|
//! | build     | sorted: a few passes over all keys          | memory; the source; chosen keys   |
//! | contains  | two blocks of 64 slots, and a bucket's bits | no                                |
//!
//! How the values are stored and found is in `retrieval.rs`: the value of a key is its fingerprint. Rows have 64 bits in the
//! layout `fastest` and 128 in `compact`, which is smaller by a fifth of a percent. A rate that is no power of two is met by
//! fingerprints of two lengths.
//!
//! Repeated keys do no harm. Two keys with the same half digest are one key.
//!
//! **Paper** Dillinger, Hübschle-Schneider, Sanders, Walzer, *Fast Succinct Retrieval and Approximate Membership Using
//! Ribbon*, SEA 2022.
//! **We differ** in the start of a key in the first layer, which is its half digest scaled and no hash of it: sorting the halves
//! sorts the starts; and in shards, by the highest bits of the halves, which are solved each for itself.
//!
//! ```
//! use mayhap::Ribbon;
//!
//! let bad = Ribbon::build(&["a.example", "b.example", "b.example"], 0.003)?;
//! assert!(bad.contains("b.example"));
//! assert_eq!(bad.keys(), 2);
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::bits::{Bytes, Words};
use crate::error::{BuildError, DecodeError, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, Family, Guarantee, Make, Report};
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::math;
use crate::paths::Paths;
use crate::probing::Probing;
use crate::retrieval::{self, Fingerprint, Joined, Retrieval, Shape};
use crate::shards::{self, DigestShards};
use crate::spec::{Layout, MAX_BITS, Plan, RibbonSize, Spec};
use crate::traits::Filter;
use crate::wire::{Fields, Frame, Summing, Writer};

/// The family `ribbon`.
pub static FAMILY: Family = Family {
    id: 18,
    name: "ribbon",
    summary: "fixed set, smallest: close to the lower bound",
    can: Capabilities {
        inserts: false,
        removes: false,
        counts: false,
        labels: false,
        merges: false,
        intersects: false,
        subtracts: false,
        folds: false,
        grows: false,
        exact: false,
    },
    probing: &[Probing::Ribbon],
    cost: Cost { query: "O(log2(1/p))", insert: "–", space: "n (log2(1/p) + 0.1)" },
    make: Make::FromDigests(|spec, shards, threads| {
        Ok(Box::new(Ribbon::from_shards(spec, shards, threads)?))
    }),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(Ribbon::decode(frame, hashing)?)),
    in_place: false,
};

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let size = spec.ribbon()?;
    Ok(Plan {
        capacity: size.capacity,
        fpr_asked: size.fpr_asked,
        fpr: size.fpr,
        bits: size.bits(),
        probes: None,
    })
}

/// A bumped ribbon filter.
#[derive(Clone, Debug)]
pub struct Ribbon {
    /// Blocks and buckets of all shards, and the directory: what `retrieval` has.
    words: Words,
    retrieval: Retrieval,
    size: RibbonSize,
    hashing: Hashing,
    /// Different halves that it was built of.
    keys: u64,
}

/// Two filters are equal if they give the same answers: same size, hashing, seeds and values.
impl PartialEq for Ribbon {
    fn eq(&self, other: &Self) -> bool {
        self.hashing == other.hashing && self.retrieval == other.retrieval && self.words == other.words
    }
}

impl Ribbon {
    /// A filter of these keys, with a false-positive rate of at most `fpr`. Repeats do no harm.
    ///
    /// # Errors
    /// [`BuildError`] names the rate that cannot be had, or the memory.
    #[cfg(feature = "std")]
    pub fn build<K: Key + Sync>(keys: &[K], fpr: f64) -> Result<Self, BuildError> {
        Self::build_with(keys, &Spec::new().with_fpr(fpr), 1)
    }

    /// A filter of these keys, of whatever was asked for, by so many threads. Their number does not change the filter.
    ///
    /// # Errors
    /// As for [`build`](Ribbon::build).
    #[cfg(feature = "std")]
    pub fn build_with<K: Key + Sync>(keys: &[K], spec: &Spec, threads: usize) -> Result<Self, BuildError> {
        // What is wrong with the rest is said before anything is hashed.
        let spec = spec.with_capacity(keys.len().max(1) as u64);
        spec.ribbon()?;
        let bits = spec.paths.shard_bits(keys.len() as u64);
        let shards = shards::MemoryShards::hashed(keys, spec.hashed()?, bits, threads);
        Self::from_shards(&spec, &shards, threads)
    }

    /// A filter of keys that come as digests, by so many threads. Their number does not change the filter.
    ///
    /// # Errors
    /// As for [`build`](Ribbon::build), and what the source says.
    pub fn from_shards(spec: &Spec, source: &dyn DigestShards, threads: usize) -> Result<Self, BuildError> {
        let (mut size, hashing) = (spec.ribbon()?, spec.hashed()?);
        let shape =
            Shape { row_bits: size.row_bits, columns: size.columns, more: size.more, paths: spec.paths };
        let bits = spec.paths.shard_bits(source.len());
        let (mut joined, mut keys) = (Joined::new(shape, source.len(), bits), 0);
        shards::built_in_order(
            bits,
            threads,
            || (),
            |(), shard| {
                let mut halves = Vec::new();
                source.take(shard, bits, &mut halves)?;
                retrieval::solved(&shape, halves, bits)
            },
            |part| {
                keys += part.keys;
                Ok(joined.append(&part)?)
            },
        )?;
        let (retrieval, words) = joined.finish()?;
        size.capacity = u64::max(keys, 1);
        size.fpr = size.planned_fpr();
        Ok(Self { words, retrieval, size, hashing, keys })
    }

    /// Whether a key is perhaps in the set. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.has(self.hashing.half_of(key))
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    pub fn contains_each<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.ask(keys, |keys, halves| K::halves(keys, &hashing, halves), hits);
    }

    #[inline]
    fn has(&self, half: u64) -> bool {
        self.retrieval.ask_one(self.words.as_slice(), half, Fingerprint)
    }

    #[inline(always)]
    fn ask<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [u64]), hits: &mut Vec<bool>) {
        let start = hits.len();
        hits.resize(start + keys.len(), false);
        self.retrieval.ask(self.words.as_slice(), keys, hash, Fingerprint, &mut hits[start..]);
    }

    /// The different keys that it was built of. (Two keys with the same half digest count as one.)
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Bits of all slots and buckets together.
    #[must_use]
    pub fn bits(&self) -> u64 {
        64 * (self.words.len() as u64 - Retrieval::behind(&self.retrieval.shape, self.retrieval.shard_bits))
    }

    /// Bytes of memory, everything included.
    #[must_use]
    pub fn size_in_bytes(&self) -> u64 {
        (size_of::<Self>() + self.words.len() * 8 + self.retrieval.size_in_bytes()) as u64
    }

    /// Bits of a fingerprint, on average: some keys can have one more than others.
    #[must_use]
    pub fn fingerprint_bits(&self) -> f64 {
        self.size.columns_on_average()
    }

    /// Rows of 64 bits (`fastest`) or of 128 (`compact`).
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.size.layout()
    }

    /// The false-positive rate: that of the fingerprints, and that of half digests.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        self.retrieval.fpr() + math::equal_halves(self.keys)
    }

    /// How keys are hashed.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// The filter as it stands in a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        family::encode(self, Summing::Payload).to_vec()
    }

    /// A filter from the bytes of a file.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        family::from_bytes(bytes, None, &FAMILY, Self::decode)
    }

    /// A keyed filter from the bytes of a file.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with them, or that the secret is another one.
    pub fn from_bytes_keyed(bytes: &[u8], secret: &Secret) -> Result<Self, DecodeError> {
        family::from_bytes(bytes, Some(secret), &FAMILY, Self::decode)
    }

    fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        header.must_probe_by(&[Probing::Ribbon])?;
        header.must_be_hashed(hashing)?;
        let mut fields = Fields::new(&header.params);
        let keys = fields.u64("keys")?;
        let columns = fields.u32("columns")?;
        let more = fields.u32("share of blocks with one column more")?;
        let row_bits = fields.u32("bits of a row")?;
        let shard_bits = fields.u32("bits that tell the shard")?;
        let fpr_asked = fields.rate("asked rate")?;
        fields.end("parameters", header.params.len())?;
        let value = |field, found: u32| DecodeError::Value { field, found: found.into() };
        if columns > 32 || (columns == 32 && more != 0) || (columns == 0 && more == 0) {
            return Err(value("columns", columns));
        }
        if row_bits != 64 && row_bits != 128 {
            return Err(value("bits of a row", row_bits));
        }
        if shard_bits > math::MAX_SHARD_BITS {
            return Err(value("bits that tell the shard", shard_bits));
        }
        let shape = Shape { row_bits, columns, more, paths: Paths::default() };
        let mut size = RibbonSize { capacity: keys.max(1), columns, more, row_bits, fpr_asked, fpr: 0.0 };
        size.fpr = size.planned_fpr();
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let words = Words::from_bytes(payload)
            .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
        let retrieval = Retrieval::decode(shape, shard_bits, words.as_slice())?;
        // More keys than slots are implied by others only in tiny filters.
        let most = retrieval.slots().saturating_mul(2).min(MAX_BITS);
        if let Some(found) = frame.header.ones.filter(|&ones| ones > most) {
            return Err(DecodeError::Value { field: "number of keys", found });
        }
        if keys > most || frame.header.ones.is_some_and(|ones| ones != keys) {
            return Err(DecodeError::Value { field: "keys", found: keys });
        }
        Ok(Self { words, retrieval, size, hashing, keys })
    }
}

impl Filter for Ribbon {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.has(digest.a)
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        let hash = |digests: &[Digest], halves: &mut [u64]| {
            halves.iter_mut().zip(digests).for_each(|(half, digest)| *half = digest.a);
        };
        self.ask(digests, hash, hits);
    }
}

impl AnyFilter for Ribbon {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: Paths) {
        self.retrieval.shape.paths = paths;
    }

    fn layout(&self) -> Option<Layout> {
        Some(self.layout())
    }

    fn report(&self) -> Report {
        let fpr = if self.keys == 0 { 0.0 } else { self.fpr() };
        let slots = self.retrieval.slots().max(1);
        Report {
            capacity: self.size.capacity,
            inserted: Some(self.keys),
            estimated_len: Some(self.keys as f64),
            bits: self.bits(),
            probes: None,
            fill: (self.keys as f64 / slots as f64).min(1.0),
            fpr_asked: self.size.fpr_asked,
            fpr_now: fpr,
            fpr_interval: None,
            fpr_at_capacity: self.size.fpr,
            guarantee: Guarantee::NoFalseNegatives,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::Ribbon);
        out.counts(Some(self.keys), self.keys);
        out.params().u64(self.keys).u32(self.size.columns).u32(self.size.more).u32(self.size.row_bits);
        out.params().u32(self.retrieval.shard_bits).f64(self.size.fpr_asked);
        out.words(&self.words);
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.contains_each(keys, hits);
    }
}
