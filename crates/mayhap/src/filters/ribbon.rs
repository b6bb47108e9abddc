//! Bumped ribbon filter: a fixed set in few more bits than the lower bound.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::bits::Words;
use crate::error::{BuildError, DecodeError, Mismatch};
use crate::family::{Cost, Details, Family, Make};
use crate::hash::Hashing;
use crate::math;
use crate::paths::Paths;
use crate::probing::Probing;
use crate::rates::Rate;
use crate::retrieval::{self, Fingerprint, Joined, Retrieval, Shape};
use crate::shards::{self, DigestShards};
use crate::shell::{self, Built, Kernel, filter};
use crate::spec::{Layout, MAX_BITS, Plan, RibbonSize, Spec};
use crate::wire::{Fields, Frame, Writer};

/// The family `ribbon`.
pub(crate) static FAMILY: Family = Family {
    id: 18,
    name: "ribbon",
    summary: "fixed set, smallest: close to the lower bound",
    can: Ribbon::CAN,
    probing: &[Probing::Ribbon],
    cost: Cost { query: "O(log2(1/p))", insert: "–", space: "n (log2(1/p) + 0.1)" },
    make: Make::FromDigests(|spec, shards, threads| {
        Ok(Box::new(Ribbon::from_shards(spec, shards, threads)?))
    }),
    shared: None,
    plan: |spec| Ok(spec.ribbon()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Ribbon::decode(frame, hashing)?)),
    in_place: false,
};

filter! {
    /// A bumped ribbon filter.
    ///
    /// **Answers** "is this key in the set?"
    /// **Promise** a key of the set is never denied; any other key is admitted with the requested rate, whatever the rate and the
    /// number of keys.
    /// **Not for** sets that change: there is no insert and no merge. Build a new filter. Where lookup speed counts more than size,
    /// take [`Fuse`](crate::Fuse).
    ///
    /// ```text
    ///   key ─▶ half a ─▶ shard ─▶ layer, start, row 1011…     column 0  … 0 1 1 0 …   parity of the slots that the row picks: 1
    ///                                                         column 1  … 1 1 0 0 …                                          0
    ///                                                         …         all of them  ==  fingerprint of the key?
    /// ```
    ///
    /// | operation | cache lines                                 | can fail                          |
    /// |-----------|---------------------------------------------|-----------------------------------|
    /// | build     | sorted: a few passes over all keys          | memory; the source; chosen keys   |
    /// | contains  | two blocks of 64 slots, and a bucket's bits | no                                |
    ///
    /// How the values are stored and found is in `retrieval.rs`: the value of a key is its fingerprint. Rows have 64 bits in the
    /// layout `fastest` and 128 in `compact`, which is smaller by a fifth of a percent. For a rate that is not a power of two there
    /// are fingerprints of two lengths.
    ///
    /// Repeated keys do no harm. Two keys with the same half digest are one key.
    ///
    /// **Paper** Dillinger, Hübschle-Schneider, Sanders, Walzer, *Fast Succinct Retrieval and Approximate Membership Using
    /// Ribbon*, SEA 2022.
    /// **We differ** in the start of a key in the first layer, which is its half digest scaled and not a hash of it, so that sorting
    /// the halves sorts the starts; and in shards, by the highest bits of the halves, each of which is solved separately.
    ///
    /// Two filters are equal if they have the same size, hashing, seeds and values.
    ///
    /// ```
    /// use mayhap::Ribbon;
    ///
    /// let bad = Ribbon::build(&["a.example", "b.example", "b.example"], 0.003)?;
    /// assert!(bad.contains("b.example"));
    /// assert_eq!(bad.keys(), 2);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Ribbon(Solution) = FAMILY {
        built,
    }
}

/// The values from which the fingerprint of each key is computed: a solution of the equations of all keys.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// Blocks and buckets of all shards, and the directory: what `retrieval` has.
    words: Words,
    retrieval: Retrieval,
    size: RibbonSize,
    /// Different halves that it was built of.
    keys: u64,
}

impl Solution {
    fn bits(&self) -> u64 {
        64 * (self.words.len() as u64 - Retrieval::behind(&self.retrieval.shape, self.retrieval.shard_bits))
    }
}

impl Kernel for Solution {
    type Hash = u64;

    #[inline]
    fn contains(&self, half: u64) -> bool {
        self.retrieval.ask_one(self.words.as_slice(), half, Fingerprint)
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [u64]), hits: &mut [bool]) {
        self.retrieval.ask(self.words.as_slice(), keys, hash, Fingerprint, hits);
    }

    fn plan(&self) -> Plan {
        Plan { bits: self.bits(), ..self.size.plan() }
    }

    fn fill(&self) -> f64 {
        (self.keys as f64 / self.retrieval.slots().max(1) as f64).min(1.0)
    }

    /// The rate of the fingerprints, and that of half digests.
    fn rate(&self) -> Rate {
        Rate::computed(match self.keys {
            0 => 0.0,
            keys => self.retrieval.fpr() + math::equal_halves(keys),
        })
    }

    fn estimated_len(&self) -> f64 {
        self.keys as f64
    }

    fn must_match(&self, _: &Self) -> Result<(), Mismatch> {
        Ok(())
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.retrieval == other.retrieval && self.words == other.words
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::Ribbon);
        out.ones(self.keys);
        out.params().u64(self.keys).u32(self.size.columns).u32(self.size.more).u32(self.size.row_bits);
        out.params().u32(self.retrieval.shard_bits).f64(self.size.fpr_asked);
        out.words(&self.words);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
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
        let words = shell::take_all_words(frame)?;
        let retrieval = Retrieval::decode(shape, shard_bits, words.as_slice())?;
        // Only in tiny filters are there more keys than slots: a key can follow from the equations of others.
        shell::must_be_built_of(frame, keys, retrieval.slots().saturating_mul(2).min(MAX_BITS))?;
        Ok(Self { words, retrieval, size, keys })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.retrieval.shape.paths = paths;
    }

    fn keys(&self) -> Option<u64> {
        Some(self.keys)
    }

    fn details(&self) -> Details<'_> {
        Details { layout: Some(self.size.layout()), ..Details::default() }
    }
}

impl Built for Solution {
    fn built(spec: &Spec, source: &dyn DigestShards, threads: usize) -> Result<Self, BuildError> {
        let mut size = spec.ribbon()?;
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
        Ok(Self { words, retrieval, size, keys })
    }
}

impl Ribbon {
    /// Bits of all slots and buckets together.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.0.kernel.bits()
    }

    /// Bytes of memory, everything included.
    #[must_use]
    pub fn size_in_bytes(&self) -> u64 {
        let Solution { words, retrieval, .. } = &self.0.kernel;
        (size_of::<Self>() + words.len() * 8 + retrieval.size_in_bytes()) as u64
    }

    /// Bits of a fingerprint, on average: some keys can have one more than others.
    #[must_use]
    pub fn fingerprint_bits(&self) -> f64 {
        self.0.kernel.size.columns_on_average()
    }

    /// Rows of 64 bits (`fastest`) or of 128 (`compact`).
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.0.kernel.size.layout()
    }
}
