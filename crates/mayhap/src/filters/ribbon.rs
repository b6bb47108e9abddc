//! Bumped ribbon filter: a fixed set in few more bits than the lower bound.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::bits::Words;
use crate::error::{BuildError, DecodeError, Knob, Mismatch, SpecError};
use crate::family::{Cost, Details, Family, Make, Profile, Space};
use crate::hash::Hashing;
use crate::math::{self, first_false};
use crate::narrow::{low_u32, small};
use crate::paths::Paths;
use crate::probing::Probing;
use crate::rates::Rate;
use crate::retrieval::{self, Fingerprint, Joined, Retrieval, Shape};
use crate::shards::{self, DigestShards};
use crate::shell::{self, Built, Kernel, filter};
use crate::spec::{Layout, MAX_BITS, Plan, Size, Spec};
use crate::wire::{Fields, Frame, Writer};

/// The family `ribbon`.
pub(crate) static FAMILY: Family = Family {
    id: 18,
    name: "ribbon",
    summary: "fixed set, smallest: close to the lower bound",
    can: Ribbon::CAN,
    knobs: &[Knob::Layout.any()],
    probing: &[Probing::Ribbon],
    cost: Cost { query: "O(log2(1/p))", insert: "–", space: "n (log2(1/p) + 0.1)" },
    make: Make::FromDigests(|spec, shards, threads| {
        Ok(Box::new(Ribbon::from_shards(spec, shards, threads)?))
    }),
    shared: None,
    plan: |spec| Ok(spec.ribbon()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Ribbon::decode(frame, hashing)?)),
    in_place: false,
    profile: Profile {
        space: Some(Space { per_key: |bits| bits + 0.1, less: 0.06, more: 0.02 }),
        slack: |bits| 128 + bits / 200,
        has_kernels: true,
        ..Profile::USUAL
    },
};

/// The numbers of a bumped ribbon filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RibbonSize {
    /// The number of different keys it is made of.
    pub capacity: u64,
    /// Bits per fingerprint.
    pub columns: u32,
    /// The share of the fingerprints that have one bit more, in parts of 2^32.
    pub more: u32,
    /// Bits of a row: 64 or 128.
    pub row_bits: u32,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give.
    pub fpr: f64,
}

impl RibbonSize {
    /// Bits of all slots and buckets together, if the shards have the same number of keys and as many are bumped as usual.
    #[must_use]
    pub fn bits(&self) -> u64 {
        let shards = 1 << math::shard_bits(self.capacity);
        let words =
            math::ribbon_words(self.capacity.div_ceil(shards), self.row_bits, self.columns, self.more);
        shards * words * 64
    }

    /// The rate of as many keys.
    fn planned_fpr(&self) -> f64 {
        math::ribbon_planned_fpr(self.capacity, self.row_bits, self.columns, self.more)
    }

    /// Bits of a fingerprint, on average.
    #[must_use]
    pub fn columns_on_average(&self) -> f64 {
        f64::from(self.columns) + f64::from(self.more) / 4_294_967_296.0
    }

    /// Rows of 128 bits are `compact`, of 64 `fastest`.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        if self.row_bits == 128 { Layout::Compact } else { Layout::Fastest }
    }
}

impl Size for RibbonSize {
    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: None }
    }
}

/// The most columns, in parts of 2^32.
const MOST_COLUMNS: u64 = 32 << 32;

impl Spec {
    /// Solves for what is not requested, for a bumped ribbon filter: its fingerprints are as long as the rate needs, or the bits
    /// allow; where that is no whole number, some keys have one bit more than others. Rows of 64 bits in the layout
    /// `fastest`, which is the default, and of 128 in `compact`.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn ribbon(&self) -> Result<RibbonSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let capacity = asked.capacity.ok_or(SpecError::Incomplete)?;
        let row_bits = if asked.layout == Some(Layout::Compact) { 128 } else { 64 };
        // Columns in parts of 2^32, so that they are one number.
        let size = |parts: u64| {
            let (columns, more) = (small(parts >> 32), low_u32(parts));
            let fpr = math::ribbon_fpr(columns, more, capacity);
            RibbonSize { capacity, columns, more, row_bits, fpr_asked: asked.fpr.unwrap_or(fpr), fpr }
        };
        // Who requests 2^-8 means 8 columns, although equal digests add a little. Where they add much there are more columns.
        let keeps = |size: &RibbonSize, p: f64| size.fpr <= p * (1.0 + 1e-6);
        let smallest = |p: f64| {
            let first = size(math::ribbon_columns(p));
            let more = || size(math::ribbon_columns(p - (first.fpr - p)));
            Some(if keeps(&first, p) { first } else { more() }).filter(|size| keeps(size, p))
        };
        let size = asked.solved(
            |_, p| smallest(p),
            // The most columns whose slots are not too many.
            |_, bits, p| {
                let parts = first_false(1, MOST_COLUMNS + 1, |parts| size(parts).bits() <= bits) - 1;
                let least = p.map_or(Some(size(1)), smallest)?;
                (parts > 0).then(|| size(parts)).filter(|size| keeps(size, least.fpr))
            },
            |_, _| None,
        )?;
        Ok(RibbonSize { fpr: size.planned_fpr(), ..size })
    }
}

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

    fn held_bytes(&self) -> u64 {
        (self.words.len() * 8 + self.retrieval.size_in_bytes()) as u64
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
