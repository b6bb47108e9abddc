//! Scalable Bloom filter: a stack of Bloom filters that grows with its keys and keeps its rate.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::batch::{copy, pipeline};
use crate::bits::{Bytes, OutOfMemory, Words, words_for};
use crate::error::{DecodeError, Full, Knob, Limit, Mismatch, SpecError};
use crate::family::{Cost, Details, Family, LayerReport, Make, Profile, Space};
use crate::hash::{Digest, Hashing};
use crate::math::{self, MAX_PROBES, ProbesRule};
use crate::narrow::{index, small_len, whole};
use crate::paths::Paths;
use crate::probing::{PHI, Probing, positions};
use crate::rates::{self, Rate};
use crate::raw::simd::prefetch;
use crate::raw::simd::probes::{self, Single};
use crate::shell::{Empty, Inserts, Kernel, Merges, filter};
use crate::spec::{KnobRange, MAX_BITS, MAX_CAPACITY, Plan, Size, Spec, half_full};
use crate::traits::Insertion;
use crate::wire::{Fields, Frame, Writer};

/// The family `scalable`.
pub(crate) static FAMILY: Family = Family {
    id: 10,
    name: "scalable",
    summary: "grows without end: a stack of Bloom filters",
    can: Scalable::CAN,
    knobs: &[Knob::Fpr.between(LEAST_FPR, 1.0), GROWTH, Knob::Tightening.between(0.01, 0.99)],
    probing: &[PROBING],
    cost: Cost {
        query: "O(k log n)",
        insert: "O(k log n)",
        space: "1.44 to 2.9 n (log2(1/p) + 3 + layers / 4)",
    },
    make: Make::Empty(|spec| Ok(Box::new(Scalable::from_spec(spec)?))),
    shared: None,
    plan: |spec| Ok(spec.scalable()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Scalable::decode(frame, hashing)?)),
    // A new layer does not fit the file.
    in_place: false,
    profile: Profile {
        space: Some(Space {
            per_key: |bits| core::f64::consts::LOG2_E * (bits + 3.0),
            less: 0.09,
            more: 1.45,
        }),
        is_ordered: true,
        has_kernels: true,
        ..Profile::USUAL
    },
};

/// The positions of a digest that is changed by the number of each layer.
const PROBING: Probing = Probing::new(10, "layered");

/// The numbers of a scalable filter and of its first layer, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScalableSize {
    /// The number of keys that its first layer is made for.
    pub capacity: u64,
    /// The bits of that layer.
    pub bits: u64,
    /// Its positions per key.
    pub probes: u32,
    /// The capacity of each further layer, as a multiple of the one before; 0 if there is none.
    pub growth: u32,
    /// The rate of each further layer, as a multiple of the one before.
    pub tightening: f64,
    /// The requested rate: of all layers together, however many there will be.
    pub fpr_asked: f64,
    /// The share of it that the first layer may have.
    pub layer_fpr: f64,
    /// The rate that the first layer has at capacity.
    pub fpr: f64,
}

/// Of the first layer.
impl Size for ScalableSize {
    fn plan(&self) -> Plan {
        let Self { capacity, bits, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits, probes: None }
    }
}

/// Twice the keys in each layer: modest growth. Four for fast growth takes more room on average.
const DEFAULT_GROWTH: u32 = 2;

/// The flat optimum of the memory, averaged over the numbers of keys that a filter ends with: Almeida et al. 2007.
const DEFAULT_TIGHTENING: f64 = 0.85;

/// As RedisBloom's limit on EXPANSION.
pub(crate) const MAX_GROWTH: u32 = 32_768;

/// The growth that can be requested.
pub(crate) const GROWTH: KnobRange = Knob::Growth.within(0, MAX_GROWTH);

/// The lowest rate that may be requested. The rates of the layers are lower and fall without end, but their probes end at 64.
const LEAST_FPR: f64 = 1e-12;

impl Spec {
    /// The parameters of RedisBloom's `BF.RESERVE` for a scalable filter: half of the rate for the first layer, each
    /// further one half of the one before, and `expansion` times its keys (EXPANSION, 2 by default). 0 stands for
    /// NONSCALING, which has one layer with the whole rate.
    ///
    /// ```
    /// use mayhap::{Scalable, Spec};
    ///
    /// let mut seen = Scalable::from_spec(&Spec::redisbloom(100, 0.01, 0))?;
    /// while seen.insert(seen.inserted().unwrap_or(0)).is_ok() {}
    /// assert!(seen.inserted() >= Some(100)); // full, and as it was
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    #[must_use]
    pub fn redisbloom(capacity: u64, fpr: f64, expansion: u32) -> Self {
        Self::sized(capacity, fpr).with_growth(expansion).with_tightening(0.5)
    }

    /// Solves for what is not requested, for a scalable filter and its first layer. Bits are those of that layer.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(10_000, 0.02).with_tightening(0.5).scalable()?;
    /// assert_eq!((sized.layer_fpr, sized.probes, sized.bits), (0.01, 7, 100_989)); // 7 * 10,000 / ln 2
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn scalable(&self) -> Result<ScalableSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let growth = asked.growth.unwrap_or(DEFAULT_GROWTH);
        let tightening = asked.tightening.unwrap_or(DEFAULT_TIGHTENING);
        let share = first_share(growth, tightening);
        let size = |capacity: u64, probes: u32| {
            let bits = layer_bits(capacity, probes);
            let fpr_asked = asked.fpr.unwrap_or(half_full(probes) / share);
            let fpr = math::bloom_fpr(bits, capacity as f64, probes);
            let layer_fpr = fpr_asked * share;
            ScalableSize { capacity, bits, probes, growth, tightening, fpr_asked, layer_fpr, fpr }
        };
        let probes = |p: f64| math::bloom_probes(p * share, ProbesRule::Up);
        asked.solved(
            |n, p| Some(size(n, probes(p))),
            // Without a rate, as many probes as the bits give, but enough for a rate below 1.
            |n, bits, p| {
                let range = p.map_or(probes(1.0 - f64::EPSILON)..=MAX_PROBES, |p| probes(p)..=probes(p));
                range.rev().find(|&k| layer_bits(n, k) <= bits).map(|k| size(n, k))
            },
            |bits, p| {
                let k = probes(p);
                let fits = math::bloom_capacity_for_probes(bits, half_full(k), k);
                (fits > 0).then(|| size(fits, k))
            },
        )
    }
}

/// The share of the requested rate that the first layer gets; 1 if it stays the only one.
fn first_share(growth: u32, tightening: f64) -> f64 {
    if growth == 0 { 1.0 } else { 1.0 - tightening }
}

/// Bits of a layer that is half full with `capacity` keys: `n k / ln 2`.
fn layer_bits(capacity: u64, probes: u32) -> u64 {
    math::bloom_bits_for_probes(capacity, half_full(probes), probes)
}

/// The most layers. Each is searched for every key, so that a filter with more of them is of no use; and all must fit the
/// header.
const MAX_LAYERS: usize = 1024;

/// A new layer has at most this many times the bits of all layers before, or [`FREE_BITS`] if that is more. Otherwise a
/// crafted file of a few bytes could make one insert take all memory. With a growth above 64 layers are smaller than requested,
/// and more of them follow.
const MOST_TIMES: u64 = 64;

/// The bits that a new layer may have however small the layers before are: 16 MiB.
const FREE_BITS: u64 = 16 << 23;

/// The number of keys with which `bits` bits are half full.
fn capacity_of(bits: u64, probes: u32) -> u64 {
    whole(bits as f64 * core::f64::consts::LN_2 / f64::from(probes.max(1))).max(1)
}

/// Keys that are hashed and looked up in all layers together: a small part of the first-level cache.
const CHUNK: usize = 512;

/// One layer: a Bloom filter, half full with the keys that it is made for.
#[derive(Clone, Debug)]
struct Layer {
    words: Words,
    /// From 0 on. Decides its positions, and how many keys it is for.
    number: u32,
    bits: u64,
    probes: u32,
    /// The number of keys it is made for.
    capacity: u64,
    /// The number of keys it has. It never takes more than its capacity.
    keys: u64,
    /// Its share of the requested rate.
    fpr: f64,
    /// Set bits, if they are known; else they are counted when they are needed.
    ones: Option<u64>,
    single: Single,
}

impl Layer {
    /// An empty layer that is half full with its keys.
    fn new(paths: Paths, number: u32, capacity: u64, probes: u32, fpr: f64) -> Result<Self, OutOfMemory> {
        let bits = layer_bits(capacity, probes);
        let words = Words::zeroed(words_for(bits))?;
        let (keys, ones, single) = (0, Some(0), Single::of(probes, paths));
        Ok(Self { words, number, bits, probes, capacity, keys, fpr, ones, single })
    }

    /// The digest of this layer. One that is false to one layer has the usual chance in the others.
    #[inline(always)]
    fn salted(&self, digest: Digest) -> Digest {
        Digest { a: digest.a ^ (u64::from(self.number) + 1).wrapping_mul(PHI), b: digest.b }
    }

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.single.contains(self.words.as_slice(), self.bits, self.salted(digest))
    }

    #[inline]
    fn insert(&mut self, digest: Digest) {
        let digest = self.salted(digest);
        probes::insert(self.words.as_mut_slice(), self.bits, self.probes, digest);
        self.keys += 1;
        self.ones = None;
    }

    fn prefetch(&self, digest: Digest) {
        let words = self.words.as_slice();
        positions(self.salted(digest), self.probes, self.bits)
            .for_each(|position| prefetch(words, index(position / 64)));
    }

    fn is_full(&self) -> bool {
        self.keys >= self.capacity
    }

    /// Its capacity, or what its bits have room for if that is less: only a crafted file claims more.
    fn justified_capacity(&self) -> u64 {
        let Self { capacity, probes, bits, .. } = *self;
        if layer_bits(capacity, probes) <= bits { capacity } else { capacity_of(bits, probes) }
    }

    fn ones(&self) -> u64 {
        self.ones.unwrap_or_else(|| self.words.count_ones())
    }

    fn fill(&self) -> f64 {
        self.ones() as f64 / self.bits as f64
    }

    fn report(&self) -> LayerReport {
        let Self { capacity, keys, bits, probes, .. } = *self;
        let fill = self.fill();
        LayerReport { capacity, keys, bits, probes, fill, fpr_now: self.rate().value }
    }

    fn rate(&self) -> Rate {
        let words = self.words.as_slice();
        rates::scaled(self.bits, self.probes, self.ones(), |place| {
            words[(place / 64) as usize] >> (place % 64) & 1 == 1
        })
    }

    /// Whether its bits mean the same as those of the other.
    fn is_like(&self, other: &Self) -> bool {
        (self.number, self.bits, self.probes) == (other.number, other.bits, other.probes)
    }

    /// Whether all bits of the other are set here too.
    fn covers(&self, other: &Self) -> bool {
        self.words.as_slice().iter().zip(other.words.as_slice()).all(|(ours, theirs)| theirs & !ours == 0)
    }

    fn copied(&self) -> Result<Self, OutOfMemory> {
        let mut words = Words::zeroed(self.words.len() as u64)?;
        words.as_mut_slice().copy_from_slice(self.words.as_slice());
        Ok(Self { words, ..*self })
    }
}

filter! {
    /// A scalable Bloom filter.
    ///
    /// **Answers** "was this key inserted?", for sets whose size is not known beforehand.
    /// **Promise** a key that is in is never denied; an absent key is admitted with at most the requested rate, however far the
    /// filter has grown.
    /// **Not for** sets of a known size (a [`Bloom`](crate::Bloom) takes half of the space or less); lookups that must not
    /// become slower as the set grows: each layer is searched.
    ///
    /// ```text
    ///   key ─▶ digest ─┬▶ layer 2   0 1 0 0 1 0 0 0 0 0 0 1 0 0 0 0 0 0 0 1    4 n keys at p(1-r)r², takes new keys
    ///                  ├▶ layer 1   0 1 1 0 1 0 0 1 1 0                        2 n keys at p(1-r)r, full
    ///                  └▶ layer 0   1 0 1 1 0                                    n keys at p(1-r), full
    ///                     newest first; all positions set in one of them: perhaps
    /// ```
    ///
    /// | operation | cache lines                                       | can fail |
    /// |-----------|---------------------------------------------------|----------|
    /// | contains  | 3 or so in each layer; `probes` in the one that has it | no  |
    /// | insert    | the same, and `probes` of the newest layer        | `Full`: no memory for a further layer, or it does not grow |
    /// | merge     | all, in order                                     | mismatch, rates |
    ///
    /// A layer has `ceil(log2(1/P))` probes for its rate `P`, and is half full at its capacity. The rates of all layers add
    /// up to the requested one: `p (1-r) (1 + r + r² + ...) = p`. With growth 2 there are `log2(n/capacity) + 1` layers, the
    /// newest of which holds half of the keys. A key that is probably in already is not inserted again, so that repeats do
    /// not make it grow.
    ///
    /// **Paper** Almeida, Baquero, Preguiça, Hutchison, *Scalable Bloom Filters*, Information Processing Letters 2007.
    /// **We differ** in that a layer is not divided into a slice for each probe, so that the loops of
    /// [`Bloom`](crate::Bloom) serve it; at such sizes that makes no difference to the rate. All layers share one digest:
    /// its first half is changed by the number of the layer, so that their errors are independent. RedisBloom's parameters
    /// are [`Spec::redisbloom`].
    ///
    /// Its capacity is that of the layers that it has, and it grows beyond. The rate at capacity is the one when these are
    /// full; with further layers the rate stays at most the requested one.
    ///
    /// ```
    /// use mayhap::Scalable;
    ///
    /// let mut seen = Scalable::new(1000, 0.01)?; // to begin with
    /// for key in 0..100_000u64 {
    ///     seen.insert(key)?;
    /// }
    /// assert!((0..100_000u64).all(|key| seen.contains(key)));
    /// assert!(seen.fpr() <= 0.01);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Scalable(Stack) = FAMILY {
        /// It has room for `capacity` keys to begin with, and keeps its rate as it grows.
        new,
        specified,
        ///
        /// It grows if it has to. A key that is probably in already is not inserted again.
        inserts_until_full,
        ///
        /// Layers of the same number and size become one if the keys of both fit it, or if it has all bits of the other
        /// already. The other layers are added. Their rates count against the requested rate of this filter, so two filters
        /// with many full layers do not merge. Later layers get what is left of the rate.
        ///
        /// [`Mismatch::Rate`] says that the rates of all layers add up to more than was requested.
        merges,
        grows,
    }
}

/// The layers of a scalable Bloom filter.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// By their numbers, oldest first. There is always one.
    layers: Vec<Layer>,
    /// The capacity of the first layer.
    first_capacity: u64,
    /// The capacity of a layer, divided by that of the layer before; 0 if the filter does not grow.
    growth: u32,
    tightening: f64,
    fpr_asked: f64,
    /// What the layers have left of the requested rate for further ones.
    fpr_left: f64,
    paths: Paths,
}

impl Stack {
    /// Inserts a key unless it was found.
    fn note(&mut self, digest: Digest, found: bool) -> Result<Insertion, Full> {
        if !found {
            self.layer_with_room()?.insert(digest);
        }
        Ok(Insertion::new_if(!found))
    }

    /// The newest layer that is not full. After a merge there may be older ones with room.
    fn layer_with_room(&mut self) -> Result<&mut Layer, Full> {
        let place = match self.layers.iter().rposition(|layer| !layer.is_full()) {
            Some(place) => place,
            None => {
                let layer = self.next_layer()?;
                self.fpr_left *= self.tightening;
                self.layers.push(layer);
                self.layers.len() - 1
            }
        };
        Ok(&mut self.layers[place])
    }

    fn next_layer(&self) -> Result<Layer, Full> {
        let full = |limit| Full { limit, inserted: 0 };
        if self.growth == 0 {
            return Err(full(Limit::Keys { capacity: self.capacity() }));
        }
        if self.layers.len() >= MAX_LAYERS {
            return Err(full(Limit::Layers { most: MAX_LAYERS as u64 }));
        }
        let number = self.layers.last().map_or(0, |layer| layer.number.saturating_add(1));
        let times = u64::from(self.growth).saturating_pow(number);
        // A file may claim any capacity and any number of a layer. What it has bits for is known.
        let largest = self.layers.iter().map(Layer::justified_capacity).max().unwrap_or(1);
        let justified = largest.saturating_mul(self.growth.into());
        let capacity = self.first_capacity.saturating_mul(times).min(justified).clamp(1, MAX_CAPACITY);
        let fpr = self.fpr_left * (1.0 - self.tightening);
        let probes = math::bloom_probes(fpr, ProbesRule::Up);
        let most = self.bits().saturating_mul(MOST_TIMES).max(FREE_BITS);
        let capacity = capacity.min(capacity_of(most, probes));
        let bits = layer_bits(capacity, probes);
        if bits > MAX_BITS - self.bits() {
            return Err(full(Limit::Memory { bytes: bits / 8 }));
        }
        Layer::new(self.paths, number, capacity, probes, fpr)
            .map_err(|OutOfMemory { bytes }| full(Limit::Memory { bytes }))
    }

    fn capacity(&self) -> u64 {
        self.layers.iter().map(|layer| layer.capacity).fold(0, u64::saturating_add)
    }

    fn bits(&self) -> u64 {
        self.layers.iter().map(|layer| layer.bits).sum()
    }

    /// The false-positive rate when all layers are full.
    fn fpr_when_full(&self) -> f64 {
        let rate = |layer: &Layer| math::bloom_fpr(layer.bits, layer.capacity as f64, layer.probes);
        match &*self.layers {
            // As it was planned, to the last digit.
            [only] => rate(only),
            layers => math::compounded_fpr(layers.iter().map(rate)),
        }
    }
}

impl Kernel for Stack {
    type Hash = Digest;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.layers.iter().rev().any(|layer| layer.contains(digest))
    }

    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), hits: &mut [bool]) {
        let mut digests = [Digest::default(); CHUNK];
        for (keys, hits) in keys.chunks(CHUNK).zip(hits.chunks_mut(CHUNK)) {
            let digests = &mut digests[..keys.len()];
            hash(keys, digests);
            find(self.paths, self.layers.iter().rev(), digests, hits);
        }
    }

    fn plan(&self) -> Plan {
        let (capacity, bits, fpr) = (self.capacity(), self.bits(), self.fpr_when_full());
        Plan { capacity, fpr_asked: self.fpr_asked, fpr, bits, probes: None }
    }

    fn fill(&self) -> f64 {
        self.layers.iter().map(Layer::ones).sum::<u64>() as f64 / self.bits() as f64
    }

    fn rate(&self) -> Rate {
        Rate::compounded(self.layers.iter().map(Layer::rate))
    }

    fn estimated_len(&self) -> f64 {
        self.layers.iter().map(|layer| math::estimated_len(layer.bits, layer.ones(), layer.probes)).sum()
    }

    /// Each layer knows its parameters, so that those of any two filters can be side by side.
    fn must_match(&self, _: &Self) -> Result<(), Mismatch> {
        Ok(())
    }

    /// Also after the same inserts.
    fn holds_the_same(&self, other: &Self) -> bool {
        let rules = |stack: &Self| {
            (stack.first_capacity, stack.growth, stack.tightening, stack.fpr_asked, stack.fpr_left)
        };
        let same = |(ours, theirs): (&Layer, &Layer)| {
            ours.is_like(theirs) && ours.keys == theirs.keys && ours.words == theirs.words
        };
        rules(self) == rules(other)
            && self.layers.len() == other.layers.len()
            && self.layers.iter().zip(&other.layers).all(same)
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let ones: Vec<u64> = self.layers.iter().map(Layer::ones).collect();
        out.probing(PROBING);
        out.ones(ones.iter().sum());
        out.params()
            .u64(self.bits())
            .u64(self.first_capacity)
            .f64(self.fpr_asked)
            .f64(self.fpr_left)
            .f64(self.tightening)
            .u32(self.growth)
            .u32(small_len(self.layers.len()));
        for (layer, ones) in self.layers.iter().zip(ones) {
            let Layer { number, probes, bits, capacity, keys, fpr, .. } = *layer;
            out.params().u32(number).u32(probes).u64(bits).u64(capacity).u64(keys).u64(ones).f64(fpr);
            out.words(&layer.words);
        }
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let refused = |field, found| Err(DecodeError::Value { field, found });
        let mut fields = Fields::new(&header.params);
        let bits = fields.u64("bits of all layers")?;
        let first_capacity = fields.u64("capacity of the first layer")?;
        let fpr_asked = fields.rate("asked rate")?;
        let fpr_left = fields.rate("rate that is left")?;
        let tightening = fields.rate("tightening")?;
        let growth = fields.u32("growth")?;
        let count = fields.u32("layers")?;
        if !(1..=MAX_CAPACITY).contains(&first_capacity) {
            return refused("capacity of the first layer", first_capacity);
        }
        if growth > MAX_GROWTH {
            return refused("growth", growth.into());
        }
        if !(1..=small_len(MAX_LAYERS)).contains(&count) {
            return refused("layers", count.into());
        }
        let mut parts = Vec::with_capacity(count as usize);
        for _ in 0..count {
            parts.push(LayerHeader::read(&mut fields)?);
        }
        fields.end("parameters", header.params.len())?;
        if !parts.is_sorted_by_key(|part| part.number) {
            return refused("layers", count.into());
        }
        // None of the terms is above 2^48, and there are at most 1024.
        let sum: u64 = parts.iter().map(|part| part.bits).sum();
        if bits != sum || bits > MAX_BITS {
            return refused("bits of all layers", bits);
        }
        let words = parts.iter().map(|part| words_for(part.bits)).sum::<u64>();
        let (expected, found) = (words * 8, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        let ones: u64 = parts.iter().map(|part| part.ones).sum();
        let counted = match header.ones {
            Some(found) if found != ones => return refused("set bits", found),
            counted => counted.is_some(),
        };
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let (mut layers, mut at) = (Vec::with_capacity(parts.len()), 0);
        for part in parts {
            let length = index(words_for(part.bits)) * 8;
            let missing = DecodeError::Payload { problem: "not whole words, or no memory for them" };
            let words = payload.part(at..at + length).and_then(Words::from_bytes).ok_or(missing)?;
            at += length;
            layers.push(part.into_layer(words, counted, frame.verified)?);
        }
        let paths = Paths::default();
        Ok(Self { layers, first_capacity, growth, tightening, fpr_asked, fpr_left, paths })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
        for layer in &mut self.layers {
            layer.single = Single::of(layer.probes, paths);
        }
    }

    fn details(&self) -> Details<'_> {
        Details { layers: self.layers.iter().map(Layer::report).collect(), ..Details::default() }
    }
}

impl Empty for Stack {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let size = spec.scalable()?;
        let ScalableSize { capacity, probes, growth, tightening, fpr_asked, layer_fpr, .. } = size;
        let first = Layer::new(spec.paths, 0, capacity, probes, layer_fpr)?;
        Ok(Self {
            layers: Vec::from([first]),
            first_capacity: capacity,
            growth,
            tightening,
            fpr_asked,
            fpr_left: fpr_asked - layer_fpr,
            paths: spec.paths,
        })
    }

    /// Only the first layer stays.
    fn clear(&mut self) {
        self.layers.truncate(1);
        for layer in &mut self.layers {
            layer.words.as_mut_slice().fill(0);
            (layer.keys, layer.ones) = (0, Some(0));
        }
        self.fpr_left = self.fpr_asked - self.layers.iter().map(|layer| layer.fpr).sum::<f64>();
    }
}

impl Inserts for Stack {
    type Error = Full;

    fn insert(&mut self, digest: Digest) -> Result<Insertion, Full> {
        let found = self.contains(digest);
        self.note(digest, found)
    }

    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Full> {
        let mut digests = [Digest::default(); CHUNK];
        let mut outcome = Ok(());
        for keys in keys.chunks(CHUNK) {
            let digests = &mut digests[..keys.len()];
            hash(keys, digests);
            // Full layers do not change any more: all of these keys are looked up in them at once. The others, of which
            // there is one unless filters were merged, are searched key by key.
            let full: Vec<bool> = self.layers.iter().map(Layer::is_full).collect();
            let full_layers = self.layers.iter().rev().filter(|layer| layer.is_full());
            let mut found = [false; CHUNK];
            let found = &mut found[..digests.len()];
            find(self.paths, full_layers, digests, found);
            let digests: Vec<(Digest, bool)> =
                digests.iter().zip(&*found).map(|(&digest, &found)| (digest, found)).collect();
            let far =
                self.layers.last().is_some_and(|layer| probes::is_far(self.paths, layer.words.as_slice()));
            pipeline(
                self,
                &digests,
                copy,
                far,
                |stack: &Self, (digest, found)| {
                    if !found && let Some(layer) = stack.layers.last() {
                        layer.prefetch(digest);
                    }
                },
                |stack, digests| {
                    for &(digest, found) in digests {
                        if outcome.is_err() {
                            return;
                        }
                        // Nor were layers searched that were added since.
                        let searched = |number: usize| full.get(number).is_some_and(|&full| full);
                        let mut others = stack.layers.iter().enumerate().rev().filter(|(i, _)| !searched(*i));
                        let found = found || others.any(|(_, layer)| layer.contains(digest));
                        match stack.note(digest, found) {
                            Ok(insertion) => told(insertion),
                            Err(full) => outcome = Err(full),
                        }
                    }
                },
            );
            if outcome.is_err() {
                break;
            }
        }
        outcome
    }
}

impl Merges for Stack {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        // First decide what becomes of each layer. Change them when nothing can fail any more.
        let mut keys: Vec<u64> = self.layers.iter().map(|layer| layer.keys).collect();
        let (mut joined, mut added) = (Vec::new(), Vec::new());
        for theirs in &other.layers {
            let like = || self.layers.iter().enumerate().filter(|(_, ours)| ours.is_like(theirs));
            let fits = |&(place, ours): &(usize, &Layer)| {
                keys[place].saturating_add(theirs.keys) <= ours.capacity || ours.covers(theirs)
            };
            match like().find(fits) {
                // The other may claim to hold more keys in the same bits, if it was made for more.
                Some((place, ours)) if ours.covers(theirs) => {
                    keys[place] = keys[place].max(theirs.keys).min(ours.capacity);
                }
                Some((place, _)) => {
                    keys[place] += theirs.keys;
                    joined.push((place, theirs));
                }
                None => added.push(theirs),
            }
        }
        let more: f64 = added.iter().map(|layer| layer.fpr).sum();
        if more > self.fpr_left {
            let sum = self.fpr_asked - self.fpr_left + more;
            return Err(Mismatch::Rate { asked: self.fpr_asked, sum });
        }
        if self.layers.len() + added.len() > MAX_LAYERS {
            let limit = Limit::Layers { most: MAX_LAYERS as u64 };
            return Err(Mismatch::Full(Full { limit, inserted: 0 }));
        }
        let bits: u64 = added.iter().map(|layer| layer.bits).sum();
        if bits > MAX_BITS - self.bits() {
            return Err(Mismatch::Memory { bytes: bits / 8 });
        }
        let added: Result<Vec<Layer>, OutOfMemory> = added.into_iter().map(Layer::copied).collect();
        let added = added.map_err(|OutOfMemory { bytes }| Mismatch::Memory { bytes })?;
        for (layer, keys) in self.layers.iter_mut().zip(keys) {
            layer.keys = keys;
        }
        for (place, theirs) in joined {
            let ours = &mut self.layers[place];
            let words = ours.words.as_mut_slice().iter_mut().zip(theirs.words.as_slice());
            words.for_each(|(ours, theirs)| *ours |= theirs);
            ours.ones = None;
        }
        self.layers.extend(added);
        self.layers.sort_by_key(|layer| layer.number);
        self.fpr_left -= more;
        Ok(())
    }
}

impl Scalable {
    /// The capacity of a layer, divided by that of the layer before; 0 if the filter does not grow.
    #[must_use]
    pub fn growth(&self) -> u32 {
        self.0.kernel.growth
    }

    /// The rate of a layer, divided by that of the layer before.
    #[must_use]
    pub fn tightening(&self) -> f64 {
        self.0.kernel.tightening
    }

    /// Its layers, oldest first.
    #[must_use]
    pub fn layers(&self) -> Vec<LayerReport> {
        self.0.kernel.layers.iter().map(Layer::report).collect()
    }
}

/// What the header of a file says of a layer.
struct LayerHeader {
    number: u32,
    probes: u32,
    bits: u64,
    capacity: u64,
    keys: u64,
    ones: u64,
    fpr: f64,
}

impl LayerHeader {
    fn read(fields: &mut Fields<'_>) -> Result<Self, DecodeError> {
        let part = Self {
            number: fields.u32("number of a layer")?,
            probes: fields.u32("probes of a layer")?,
            bits: fields.u64("bits of a layer")?,
            capacity: fields.u64("capacity of a layer")?,
            keys: fields.u64("keys of a layer")?,
            ones: fields.u64("set bits of a layer")?,
            fpr: fields.rate("rate of a layer")?,
        };
        let refused = |field, found| Err(DecodeError::Value { field, found });
        if !(1..=MAX_PROBES).contains(&part.probes) {
            return refused("probes of a layer", part.probes.into());
        }
        if !(1..=MAX_BITS).contains(&part.bits) {
            return refused("bits of a layer", part.bits);
        }
        if !(1..=MAX_CAPACITY).contains(&part.capacity) {
            return refused("capacity of a layer", part.capacity);
        }
        if part.keys > part.capacity {
            return refused("keys of a layer", part.keys);
        }
        if part.ones > part.bits {
            return refused("set bits of a layer", part.ones);
        }
        Ok(part)
    }

    fn into_layer(self, words: Words, counted: bool, verified: bool) -> Result<Layer, DecodeError> {
        let Self { number, probes, bits, capacity, keys, ones, fpr } = self;
        let clear =
            bits.is_multiple_of(64) || words.as_slice().last().is_none_or(|&last| last >> (bits % 64) == 0);
        if !clear {
            return Err(DecodeError::Padding { field: "end of a layer" });
        }
        // Counted only when the whole payload is read anyway, so that a large file opens by its header.
        if counted && verified && words.count_ones() != ones {
            return Err(DecodeError::Value { field: "set bits of a layer", found: ones });
        }
        let (ones, single) = (counted.then_some(ones), Single::of(probes, Paths::default()));
        Ok(Layer { words, number, bits, probes, capacity, keys, fpr, ones, single })
    }
}

/// Looks keys up in layers. A key that one layer has is not looked up in the next.
fn find<'a>(paths: Paths, layers: impl Iterator<Item = &'a Layer>, digests: &[Digest], found: &mut [bool]) {
    found.fill(false);
    let mut left: Vec<(usize, Digest)> = digests.iter().copied().enumerate().collect();
    let mut hits = [false; CHUNK];
    for layer in layers {
        let salt = |keys: &[(usize, Digest)], salted: &mut [Digest]| {
            salted.iter_mut().zip(keys).for_each(|(salted, key)| *salted = layer.salted(key.1));
        };
        let hits = &mut hits[..left.len()];
        probes::contains_all(paths, layer.words.as_slice(), layer.bits, layer.single, &left, salt, hits);
        let mut answers = hits.iter();
        left.retain(|&(place, _)| {
            let hit = answers.next().is_some_and(|&hit| hit);
            found[place] = hit;
            !hit
        });
    }
}
