//! A set within a known universe: the keys that are in and those that are not are both known, and no answer about them is wrong.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::batch::copy;
use crate::bits::{GrowingWords, Words};
use crate::error::{BuildError, DecodeError, Knob, Mismatch, SpecError};
use crate::family::{Cost, Details, Family, Guarantee, Make, Profile};
use crate::hash::Hashing;
#[cfg(feature = "std")]
use crate::hash::Key;
use crate::math;
use crate::narrow::low_u32;
use crate::paths::Paths;
use crate::probing::Probing;
use crate::rates::Rate;
use crate::retrieval::{self, Equation, Fingerprint, Joined, Retrieval, RowShape, Should, Solved};
use crate::shards::{self, DigestShards};
use crate::shell::{self, Kernel, Shell, filter};
use crate::spec::{Layout, MAX_BITS, MAX_CAPACITY, Plan, Request, Size, Spec};
use crate::wire::{Fields, Frame, Writer};

/// The family `universe`.
pub(crate) static FAMILY: Family = Family {
    id: 19,
    name: "universe",
    summary: "fixed set, all other keys known: no errors",
    can: Universe::CAN,
    knobs: &[Knob::Layout.any(), Knob::Others.any()],
    probing: &[PROBING],
    cost: Cost { query: "O(log2(m/n))", insert: "–", space: "1.02 n (log2(m/n) + 2)" },
    make: Make::Within(|spec, set, universe, threads| {
        Ok(Box::new(Universe::from_shards(spec, set, universe, Overlap::InTheSet, threads)?))
    }),
    shared: None,
    plan: |spec| Ok(spec.universe()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Universe::decode(frame, hashing)?)),
    in_place: false,
    profile: Profile { slack: |bits| 128 + bits / 200, has_kernels: true, ..Profile::USUAL },
};

/// The rule of `ribbon`, in two stages.
const PROBING: Probing = Probing::new(19, "stages");

/// The numbers of a set within a known universe, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct UniverseSize {
    /// The number of different keys of the set.
    pub capacity: u64,
    /// The number of keys that are known not to be in it.
    pub others: u64,
    /// Columns of the first stage.
    pub columns: u32,
    /// Bits of a row: 64 or 128.
    pub row_bits: u32,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate of unknown keys. Of the others none is admitted.
    pub fpr: f64,
}

impl UniverseSize {
    /// The most columns of the first stage.
    const MOST_COLUMNS: u32 = 32;

    /// Bits of both stages together, if shards have the same number of keys and as many are bumped as usual.
    #[must_use]
    pub fn bits(&self) -> u64 {
        let shards = 1 << math::shard_bits(self.capacity);
        let (keys, others) = (self.capacity.div_ceil(shards), self.others / shards);
        let first = match self.columns {
            0 => 0,
            columns => math::ribbon_words(keys, self.row_bits, columns, 0),
        };
        let admitted = keys + (others >> self.columns);
        shards * 64 * (first + math::ribbon_words(admitted, self.row_bits, 1, 0))
    }

    /// Rows of 128 bits are `compact`, of 64 `fastest`.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        if self.row_bits == 128 { Layout::Compact } else { Layout::Fastest }
    }
}

impl Size for UniverseSize {
    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: None }
    }
}

impl Spec {
    /// Solves for what is not requested, for a set within a known universe: as many columns in the first stage as make both
    /// stages smallest for the number of [others](Spec::with_others), or more if the rate of unknown keys asks for them.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn universe(&self) -> Result<UniverseSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let capacity = asked.capacity.ok_or(SpecError::Incomplete)?;
        let others = asked.others.unwrap_or(0);
        let row_bits = if asked.layout == Some(Layout::Compact) { 128 } else { 64 };
        let size = |columns: u32| {
            let fpr = math::universe_fpr(columns);
            let fpr_asked = asked.fpr.unwrap_or(fpr);
            UniverseSize { capacity, others, columns, row_bits, fpr_asked, fpr }
        };
        // The second stage admits one in two of those that the first one admits.
        let for_others = (others / capacity).max(1).ilog2().min(UniverseSize::MOST_COLUMNS);
        let sizes = || (for_others..=UniverseSize::MOST_COLUMNS).map(size);
        // With others a rate follows from them.
        let rate = asked.fpr.or(asked.others.map(|_| 1.0)).ok_or(SpecError::Incomplete)?;
        Request { fpr: Some(rate), ..*asked }.solved(
            |_, p| sizes().find(|size| size.fpr <= p),
            |_, bits, p| {
                sizes().find(|size| p.is_none_or(|p| size.fpr <= p)).filter(|size| size.bits() <= bits)
            },
            |_, _| None,
        )
    }
}

/// How a key that is in the set and among the others is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// In the set: the others were the whole universe.
    InTheSet,
    /// As an error.
    Refused,
}

/// A bit of a hash, in the lowest place. No fingerprint depends on it alone, so that it is independent of the first stage even
/// where both stages use the same hash.
#[inline(always)]
const fn toss(hash: u64) -> u64 {
    hash >> 32
}

/// A key's toss should be stored.
#[derive(Clone, Copy)]
struct Toss;

impl Should for Toss {
    #[inline(always)]
    fn be(self, hash: u64) -> u64 {
        toss(hash)
    }
}

/// A key that the first stage admits, and whether it is in the set. Its value is its toss if it is, and the opposite if not, so
/// that a key outside the universe is admitted with a chance of one half, whatever is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    half: u64,
    is_in: bool,
}

impl Equation for Told {
    #[inline(always)]
    fn half(&self) -> u64 {
        self.half
    }

    #[inline(always)]
    fn value(&self, hash: u64) -> u32 {
        low_u32(toss(hash)) ^ u32::from(!self.is_in)
    }
}

filter! {
    /// A set within a known universe.
    ///
    /// **Answers** "is this key of the universe in the set?"
    /// **Promise** a key of the set is never denied, and a key of the rest of the universe is never admitted. A key outside the
    /// universe is admitted with a rate that falls as the rest grows.
    /// **Not for** sets or universes that change: build a new one. Nor where most keys are outside the universe: take a filter with
    /// exceptions.
    ///
    /// ```text
    ///   key ─▶ half a ─▶ stage 1: ribbon of the set,      ─ no ─▶ no
    ///                    k columns for 2^k others a key   ─ mayhap ─▶ stage 2: a bit for each key that stage 1 admits ─▶ yes, no
    /// ```
    ///
    /// | operation | cache lines               | can fail                                                        |
    /// |-----------|---------------------------|-----------------------------------------------------------------|
    /// | build     | a few passes over all     | memory; the source; chosen keys; a key in both                  |
    /// | contains  | those of one ribbon or of two | no                                                          |
    ///
    /// The first stage is a filter of the set; it admits about as many of the others as the set has keys. The second stage stores
    /// one bit for each key that the first one admits: whether it is in. For n keys and m others that makes about `n (log2(m/n) +
    /// 2)` bits, where a cascade of Bloom filters takes `1.44 n (log2(m/n) + 2.9)`.
    ///
    /// A key is known by its half digest. A key of the set and one of the others that have the same half digest cannot be told
    /// apart. That happens with a chance of `n m / 2^64`.
    ///
    /// **Paper** Schanck, *Clubcards for the WebPKI: smaller certificate revocation tests in theory and practice*, IEEE S&P 2025.
    /// **We differ** in that both stages are bumped ribbons, in shards; nothing is partitioned by what keys mean.
    ///
    /// [`contains`](Universe::contains) is right for every key of the universe, and `false` for any key is certain. The rate is
    /// that at which keys outside the universe are admitted. Two of them are equal if they give the same answers.
    ///
    /// ```
    /// use mayhap::Universe;
    ///
    /// let revoked = Universe::of_sets(&["a", "b"], &["c", "d", "e", "f"])?;
    /// assert!(revoked.contains("a") && revoked.contains("b"));
    /// assert!(["c", "d", "e", "f"].iter().all(|known| !revoked.contains(known)));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Universe(Stages) = FAMILY {}
}

/// Both stages of a set within a known universe.
#[derive(Clone, Debug)]
pub(crate) struct Stages {
    /// Those of the first stage, then those of the second.
    words: Words,
    /// `None` if it would have no columns, and admit all keys.
    first: Option<Retrieval>,
    first_words: usize,
    second: Retrieval,
    size: UniverseSize,
    /// Different halves of the set.
    keys: u64,
}

impl Stages {
    fn bits(&self) -> u64 {
        let behind = |stage: &Retrieval| Retrieval::behind(&stage.shape, stage.shard_bits);
        let behind = behind(&self.second) + self.first.as_ref().map_or(0, behind);
        64 * (self.words.len() as u64 - behind)
    }
}

impl Kernel for Stages {
    type Hash = u64;

    const GUARANTEE: Guarantee = Guarantee::ExactInUniverse;

    #[inline]
    fn contains(&self, half: u64) -> bool {
        let (first, second) = self.words.as_slice().split_at(self.first_words);
        self.first.as_ref().is_none_or(|stage| stage.ask_one(first, half, Fingerprint))
            && self.second.ask_one(second, half, Toss)
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [u64]), hits: &mut [bool]) {
        /// Keys of one run: few enough that those for the second stage stay in the first-level cache.
        const RUN: usize = 1024;
        let (first, second) = self.words.as_slice().split_at(self.first_words);
        let (mut halves, mut admitted, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (keys, hits) in keys.chunks(RUN).zip(hits.chunks_mut(RUN)) {
            halves.resize(keys.len(), 0);
            hash(keys, &mut halves);
            match &self.first {
                Some(stage) => stage.ask(first, &halves, copy, Fingerprint, hits),
                None => hits.fill(true),
            }
            admitted.clear();
            places.clear();
            for (place, hit) in hits.iter().enumerate() {
                if *hit {
                    admitted.push(halves[place]);
                    places.push(place);
                }
            }
            let mut are_in = [false; RUN];
            let are_in = &mut are_in[..admitted.len()];
            self.second.ask(second, &admitted, copy, Toss, are_in);
            for (&place, &is_in) in places.iter().zip(&*are_in) {
                hits[place] = is_in;
            }
        }
    }

    fn plan(&self) -> Plan {
        Plan { bits: self.bits(), ..self.size.plan() }
    }

    fn held_bytes(&self) -> u64 {
        let first = self.first.as_ref().map_or(0, Retrieval::size_in_bytes);
        (self.words.len() * 8 + first + self.second.size_in_bytes()) as u64
    }

    fn fill(&self) -> f64 {
        (self.keys as f64 / self.second.slots().max(1) as f64).min(1.0)
    }

    fn rate(&self) -> Rate {
        Rate::computed(if self.keys == 0 { 0.0 } else { self.size.fpr })
    }

    fn estimated_len(&self) -> f64 {
        self.keys as f64
    }

    fn must_match(&self, _: &Self) -> Result<(), Mismatch> {
        Ok(())
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        (&self.first, &self.second, &self.words) == (&other.first, &other.second, &other.words)
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(PROBING);
        out.ones(self.keys);
        out.params().u64(self.keys).u64(self.size.others).u64(self.first_words as u64);
        out.params().u32(self.size.columns).u32(self.size.row_bits).u32(self.second.shard_bits).u32(0);
        out.params().f64(self.size.fpr_asked);
        out.words(&self.words);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let keys = fields.u64("keys")?;
        let others = fields.u64("others")?;
        let first_words = fields.u64("words of the first stage")?;
        let columns = fields.u32("columns of the first stage")?;
        let row_bits = fields.u32("bits of a row")?;
        let shard_bits = fields.u32("bits that tell the shard")?;
        fields.zero_u32("reserved")?;
        let fpr_asked = fields.rate("asked rate")?;
        fields.end("parameters", header.params.len())?;
        let value = |field, found: u32| DecodeError::Value { field, found: found.into() };
        if columns > UniverseSize::MOST_COLUMNS {
            return Err(value("columns of the first stage", columns));
        }
        if row_bits != 64 && row_bits != 128 {
            return Err(value("bits of a row", row_bits));
        }
        if shard_bits > math::MAX_SHARD_BITS {
            return Err(value("bits that tell the shard", shard_bits));
        }
        if others > MAX_CAPACITY {
            return Err(DecodeError::Value { field: "others", found: others });
        }
        let fpr = math::universe_fpr(columns);
        let size = UniverseSize { capacity: keys.max(1), others, columns, row_bits, fpr_asked, fpr };
        let words = shell::take_all_words(frame)?;
        if columns == 0 && first_words != 0 {
            return Err(DecodeError::Value { field: "words of the first stage", found: first_words });
        }
        let (expected, found) = (first_words.saturating_mul(8), 8 * words.len() as u64);
        let first_words = usize::try_from(first_words).ok().filter(|&first| first <= words.len());
        let first_words = first_words.ok_or(DecodeError::Length { field: "payload", expected, found })?;
        let (first, second) = words.as_slice().split_at(first_words);
        let shape = RowShape { row_bits, columns, more: 0, paths: Paths::default() };
        let first = match columns {
            0 => None,
            _ => Some(Retrieval::decode(shape, shard_bits, first)?),
        };
        let second = Retrieval::decode(RowShape { columns: 1, ..shape }, shard_bits, second)?;
        // Only in tiny sets are there more keys than slots: a key can follow from the equations of others.
        shell::must_be_built_of(frame, keys, second.slots().saturating_mul(2).min(MAX_BITS))?;
        Ok(Self { words, first, first_words, second, size, keys })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.second.shape.paths = paths;
        if let Some(first) = &mut self.first {
            first.shape.paths = paths;
        }
    }

    fn keys(&self) -> Option<u64> {
        Some(self.keys)
    }

    fn details(&self) -> Details<'_> {
        Details { layout: Some(self.size.layout()), others: Some(self.size.others), ..Details::default() }
    }
}

impl Universe {
    /// A set, and other keys that are not in it. Repeated keys do no harm.
    ///
    /// # Errors
    /// [`BuildError::Overlap`] if a key is in both, or the memory that was not granted.
    #[cfg(feature = "std")]
    pub fn of_sets<K: Key + Sync, O: Key + Sync>(set: &[K], others: &[O]) -> Result<Self, BuildError> {
        Self::build_with(set, others, &Spec::new(), Overlap::Refused, 1)
    }

    /// A set, and the universe that it is part of. Repeated keys do no harm.
    ///
    /// # Errors
    /// [`BuildError`] names the memory that was not granted.
    #[cfg(feature = "std")]
    pub fn within<K: Key + Sync, O: Key + Sync>(set: &[K], universe: &[O]) -> Result<Self, BuildError> {
        Self::build_with(set, universe, &Spec::new(), Overlap::InTheSet, 1)
    }

    /// A set and other keys as `spec` asks for it, built by `threads` threads. Their number does not change the result.
    ///
    /// # Errors
    /// [`BuildError`] names what is not possible, or the memory that was not granted.
    #[cfg(feature = "std")]
    pub fn build_with<K: Key + Sync, O: Key + Sync>(
        set: &[K],
        others: &[O],
        spec: &Spec,
        overlap: Overlap,
        threads: usize,
    ) -> Result<Self, BuildError> {
        let spec = &spec.with_capacity(set.len().max(1) as u64);
        let hashing = spec.hashed()?;
        let (bits, other_bits) = shard_bits(spec.paths, set.len() as u64, others.len() as u64);
        let set = shards::MemoryShards::hashed(set, hashing, bits, threads);
        let others = shards::MemoryShards::hashed(others, hashing, other_bits, threads);
        Self::from_shards(spec, &set, &others, overlap, threads)
    }

    /// A set and other keys that are hashed already, built by `threads` threads. Their number does not change the result.
    ///
    /// # Errors
    /// [`BuildError`] names what is not possible, the memory that was not granted, or what is wrong with the sources.
    pub fn from_shards(
        spec: &Spec,
        set: &dyn DigestShards,
        others: &dyn DigestShards,
        overlap: Overlap,
        threads: usize,
    ) -> Result<Self, BuildError> {
        let rest = match overlap {
            Overlap::Refused => others.len(),
            Overlap::InTheSet => others.len().saturating_sub(set.len()).max(others.len() / 2),
        };
        let spec = spec.with_others(spec.others().unwrap_or(rest));
        let (mut size, hashing) = (spec.universe()?, spec.hashed()?);
        let first = RowShape { row_bits: size.row_bits, columns: size.columns, more: 0, paths: spec.paths };
        let second = RowShape { columns: 1, ..first };
        let (bits, other_bits) = shard_bits(spec.paths, set.len(), others.len());
        let build = |(): &mut (), shard| {
            let mut halves = Vec::new();
            set.take(shard, bits, &mut halves)?;
            halves.sort_unstable();
            halves.dedup();
            let filter = match first.columns {
                0 => None,
                _ => Some(retrieval::solved(&first, halves.clone(), bits)?),
            };
            let mut told: Vec<Told> = halves.iter().map(|&half| Told { half, is_in: true }).collect();
            let (mut in_both, mut asked) = (0, 0);
            // There are many others: they come a part at a time, and the first stage admits few of them.
            let finer = other_bits - bits;
            for part in shard << finer..(shard + 1) << finer {
                let mut admitted = Vec::new();
                others.take(part, other_bits, &mut admitted)?;
                asked += admitted.len() as u64;
                if let Some(filter) = &filter {
                    filter.retain(&first, bits, Fingerprint, &mut admitted);
                }
                told.reserve_exact(admitted.len());
                for half in admitted {
                    match halves.binary_search(&half) {
                        Ok(_) => in_both += 1,
                        Err(_) => told.push(Told { half, is_in: false }),
                    }
                }
            }
            if in_both > 0 && overlap == Overlap::Refused {
                return Err(BuildError::Overlap { keys: in_both });
            }
            let second = retrieval::solved(&second, told, bits)?;
            Ok(BuiltStages { first: filter, second, keys: halves.len() as u64, others: asked - in_both })
        };
        let admitted = set.len().saturating_add(rest >> first.columns);
        let mut stages = (Joined::new(first, set.len(), bits), Joined::new(second, admitted, bits));
        let (mut keys, mut known) = (0, 0);
        shards::built_in_order(
            bits,
            threads,
            || (),
            build,
            |part: BuiltStages| {
                (keys, known) = (keys + part.keys, known + part.others);
                part.first.map_or(Ok(()), |part| stages.0.append(&part))?;
                Ok(stages.1.append(&part.second)?)
            },
        )?;
        let (first, before) = match first.columns {
            0 => (None, Words::default()),
            _ => stages.0.finish().map(|(first, words)| (Some(first), words))?,
        };
        let (second, behind) = stages.1.finish()?;
        let first_words = before.len();
        let mut words = GrowingWords::with_room((before.len() + behind.len()) as u64);
        words.append(before.as_slice()).map_err(SpecError::from)?;
        drop(before);
        words.append(behind.as_slice()).map_err(SpecError::from)?;
        let words = words.finish();
        (size.capacity, size.others) = (u64::max(keys, 1), known);
        let kernel = Stages { words, first, first_words, second, size, keys };
        Ok(Self(Shell::of_built(kernel, hashing)))
    }

    /// How many different keys the set has. Two keys with the same first 64 bits of hash count as one.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.0.kernel.keys
    }

    /// How many keys were given that are not in the set, repeats included.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.0.kernel.size.others
    }

    /// Rows of 64 bits (`fastest`) or of 128 (`compact`).
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.0.kernel.size.layout()
    }
}

/// Both stages of a shard.
struct BuiltStages {
    first: Option<Solved>,
    second: Solved,
    keys: u64,
    others: u64,
}

/// The number of highest bits of a half that choose its shard: for the set, and for the others, which get more shards if those
/// of the set would have too many others to hold at a time.
fn shard_bits(paths: Paths, set: u64, others: u64) -> (u32, u32) {
    let bits = paths.shard_bits(set);
    (bits, bits.max(paths.shard_bits(others)))
}
