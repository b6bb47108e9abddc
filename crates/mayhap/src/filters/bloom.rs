//! Bloom filter: approximate membership in 1.44 times the least possible space.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "std")]
use crate::batch::in_parallel;
use crate::batch::{copy, pipeline};
#[cfg(feature = "std")]
use crate::bits::Parts;
use crate::bits::{
    AtomicWords, OutOfMemory, OutOfRange, Scatter, Words, region_words, resized, set_in_region, words_for,
};
use crate::error::{DecodeError, FoldError, Knob, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{AnyFilter, Cost, Family, Make, Profile, Space};
#[cfg(feature = "std")]
use crate::hash::Here;
use crate::hash::{Digest, Hashing, Key};
use crate::intersection::Intersection;
use crate::math::{self, MAX_PROBES, ProbesRule, first_false};
#[cfg(feature = "std")]
use crate::narrow::low_u32;
use crate::narrow::{index, whole};
use crate::paths::Paths;
use crate::probing::{Positions, Probing, positions};
use crate::rates::{self, Rate};
use crate::raw::simd::prefetch;
use crate::raw::simd::probes::{self, Single};
use crate::shell::{self, Empty, Inserts, Intersects, Kernel, Merges, Shell, filter};
use crate::spec::{
    DEFAULT_FPR, MAX_BITS, MIN_FPR, Plan, Request, Size, Spec, at_least_one, half_full, within_limit,
};
use crate::traits::{Fold, Insertion, SharedInsert};
use crate::wire::{Fields, Frame, Writer};

/// The family `bloom`.
pub(crate) static FAMILY: Family = Family {
    id: 1,
    name: "bloom",
    summary: "the classic: smallest that inserts and merges",
    can: Bloom::CAN,
    knobs: &[Knob::Probes.any(), Knob::Foldable.any()],
    probing: &[Probing::SCALED],
    cost: Cost { query: "O(k)", insert: "O(k)", space: "1.44 n log2(1/p)" },
    make: Make::Empty(|spec| Ok(Box::new(Bloom::from_spec(spec)?))),
    shared: Some(shared),
    plan: |spec| Ok(spec.bloom()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Bloom::decode(frame, hashing)?)),
    in_place: true,
    profile: Profile {
        space: Some(Space { per_key: |bits| core::f64::consts::LOG2_E * bits, less: 0.01, more: 0.01 }),
        has_kernels: true,
        ..Profile::USUAL
    },
};

/// The numbers of a Bloom filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BloomSize {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// Its bits.
    pub bits: u64,
    /// Positions per key.
    pub probes: u32,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl Size for BloomSize {
    fn plan(&self) -> Plan {
        let Self { capacity, bits, probes, fpr_asked, fpr } = *self;
        Plan { capacity, fpr_asked, fpr, bits, probes: Some(probes) }
    }
}

impl Spec {
    /// Solves for what is not requested, by the formulas of the classic Bloom filter.
    ///
    /// Two or three of the four numbers are enough, if one of capacity and bits is among them. Without a rate the filter is
    /// half full at capacity; without probes their best number is taken.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn bloom(&self) -> Result<BloomSize, SpecError> {
        FAMILY.check(self)?.bloom()
    }
}

impl Request {
    fn bloom(&self) -> Result<BloomSize, SpecError> {
        let rule = ProbesRule::Nearest;
        let (capacity, bits, probes) = match (self.capacity, self.bits, self.fpr, self.probes) {
            (Some(n), None, Some(p), None) => (n, math::bloom_bits(n, p), math::bloom_probes(p, rule)),
            (Some(n), None, Some(p), Some(k)) => (n, math::bloom_bits_for_probes(n, p, k), k),
            (Some(n), Some(m), None, None) => (n, m, math::best_probes(m, n)),
            (Some(n), Some(m), None, Some(k)) => (n, m, k),
            (Some(n), Some(m), Some(p), None) => {
                let needed = || {
                    let best = math::best_probes(m, n);
                    (best.saturating_sub(1).max(1)..=MAX_PROBES)
                        .map(|k| math::bloom_bits_for_probes(n, p, k))
                        .min()
                        .unwrap_or(u64::MAX)
                };
                let probes = math::least_probes(m, n, p)
                    .ok_or_else(|| SpecError::Unreachable { bits: m, needed: needed() })?;
                (n, m, probes)
            }
            (None, Some(m), Some(p), None) => (
                at_least_one(math::bloom_capacity(m, p), m, || math::bloom_bits(1, p))?,
                m,
                math::bloom_probes(p, rule),
            ),
            (None, Some(m), Some(p), Some(k)) => {
                let capacity = math::bloom_capacity_for_probes(m, p, k);
                (at_least_one(capacity, m, || math::bloom_bits_for_probes(1, p, k))?, m, k)
            }
            // Half full: the rate is 2^-k.
            (Some(n), None, None, Some(k)) => (n, math::bloom_bits_for_probes(n, half_full(k), k), k),
            (None, Some(m), None, Some(k)) => {
                (math::bloom_capacity_for_probes(m, half_full(k), k).max(1), m, k)
            }
            (Some(_), Some(_), Some(_), Some(_)) => return Err(SpecError::TooMuch),
            (None, None, _, _) | (Some(_), None, None, None) | (None, Some(_), None, None) => {
                return Err(SpecError::Incomplete);
            }
        };
        let bits = within_limit(if self.foldable { math::foldable_bits(bits) } else { bits })?;
        let fpr = math::bloom_fpr_of_any_size(bits, capacity, probes);
        Ok(BloomSize { capacity, bits, probes, fpr_asked: self.fpr.unwrap_or(fpr), fpr })
    }

    /// A Bloom filter with cells in place of bits; `bits` tells how many bits a number of cells takes, and grows with it.
    pub(super) fn cells(&self, bits: impl Fn(u64) -> u64) -> Result<BloomSize, SpecError> {
        let most = |memory: u64| (first_false(1, memory + 1, |cells| bits(cells) <= memory) - 1).max(1);
        let sized =
            Self { bits: self.bits.map(most), ..*self }.bloom().map_err(|e| match (e, self.bits) {
                (SpecError::Unreachable { needed, .. }, Some(memory)) => {
                    SpecError::Unreachable { bits: memory, needed: bits(needed) }
                }
                (SpecError::TooLarge { bits: cells, limit }, _) => {
                    SpecError::TooLarge { bits: bits(cells), limit }
                }
                (e, _) => e,
            })?;
        within_limit(bits(sized.bits)).map(|_| sized)
    }
}

/// Many threads fill private copies while those are small, then regions of one filter; or atomic bits, where there
/// are no locks.
fn shared(spec: &Spec) -> Result<Box<dyn SharedInsert>, SpecError> {
    #[cfg(feature = "std")]
    return Ok(if Scatter::pays(spec.paths, spec.bloom()?.bits) {
        Box::new(ScatteredBloom::of(Bloom::from_spec(spec)?))
    } else {
        Box::new(PrivateBlooms::from_spec(spec)?)
    });
    #[cfg(not(feature = "std"))]
    Ok(Box::new(AtomicBloom::from_spec(spec)?))
}

/// One thread gathers bits by region from here on: 32 MiB. In filters of 12 MiB that took as long as prefetching or
/// longer; in filters of 60 MiB two thirds of the time.
const GATHER_FROM_BYTES: usize = 32 << 20;

filter! {
    /// A classic Bloom filter.
    ///
    /// **Answers** "was this key inserted?"
    /// **Promise** a key that is in is never denied, also when the filter is over-full; an absent key is
    /// admitted with the asked rate at capacity.
    /// **Not for** keys that must be removed again; sets whose size is unknown by orders of magnitude.
    ///
    /// ```text
    ///   key ─▶ digest ─▶ probes positions       bits  0 1 0 0 1 0 0 0 1 0 0 1 0
    ///                    1, 4, 11                       ▲     ▲             ▲      all set: perhaps
    /// ```
    ///
    /// | operation | cache lines                  | can fail |
    /// |-----------|------------------------------|----------|
    /// | contains  | `probes`; 3 or so for a miss  | no       |
    /// | insert    | `probes`                     | no       |
    /// | merge     | all, in order                | mismatch |
    /// | fold      | all, in order                | no divisor keeps the rate |
    ///
    /// **Paper** Bloom, *Space/Time Trade-offs in Hash Coding with Allowable Errors*, CACM 1970.
    /// **We differ** in that one 128-bit hash gives all positions (see [`positions`]) and that the number
    /// of bits is the exact one, not a power of two.
    ///
    /// The number of distinct keys is estimated too high after a merge of different sizes, where one key has set several
    /// neighbours. Of an intersection it is the number of common keys that was estimated when it was made; not a number if
    /// that is unknown, or if the intersection was changed afterwards.
    ///
    /// ```
    /// use mayhap::Bloom;
    ///
    /// let mut seen = Bloom::new(1_000_000, 0.01)?;
    /// seen.insert("https://example.org/");
    /// assert!(seen.contains("https://example.org/"));
    /// assert_eq!(seen.probes(), 7);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Bloom(Bits) = FAMILY {
        new,
        specified,
        ///
        /// ```
        /// use mayhap::{Bloom, Insertion};
        ///
        /// let mut seen = Bloom::new(100, 0.01)?;
        /// assert_eq!(seen.insert(42u64), Insertion::New);
        /// assert_eq!(seen.insert(42u64), Insertion::Perhaps);
        /// # Ok::<(), mayhap::Error>(())
        /// ```
        inserts,
        matches,
        ///
        /// If they have the same size and probes it is as if all keys had been inserted here. If not, the
        /// bits of the one are brought to the length of the other, where each sets every bit that it
        /// overlaps, and the smaller number of probes is taken: the keys of the other filter have set those
        /// too, because a key's positions are the same sequence whatever their number. Both lengths are
        /// tried, and the one with the lower rate stays; the shorter if they tie. That costs: two half-full
        /// filters with 7 probes give a rate of 13% if they are equal or one is a multiple of the other, and
        /// of 39% if one has a single bit more. Before it is done, [`math::merged_fpr`] tells; afterwards, [`fpr`](Bloom::fpr).
        ///
        /// ```
        /// use mayhap::Bloom;
        ///
        /// let (mut ours, mut theirs) = (Bloom::new(1000, 0.01)?, Bloom::new(2500, 0.001)?);
        /// ours.insert("one");
        /// theirs.insert("two");
        /// ours.merge(&theirs)?;
        /// assert!(ours.contains("one") && ours.contains("two"));
        /// # Ok::<(), mayhap::Error>(())
        /// ```
        merges,
        intersects,
        folds,
    }
}

/// The bits of a Bloom filter.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    words: Words,
    size: BloomSize,
    /// Set bits, if they are known: batches count what they set, single inserts do not, and then they are counted
    /// on request.
    ones: Option<u64>,
    /// What is known of its keys, if it is an intersection.
    intersection: Option<Intersection>,
    /// For keys that come one by one.
    single: Single,
    paths: Paths,
}

impl Bits {
    /// Of words whose bits behind the last are zero.
    fn of(words: Words, size: BloomSize, ones: Option<u64>, paths: Paths) -> Self {
        Self { words, size, ones, intersection: None, single: Single::of(size.probes, paths), paths }
    }

    /// The same shape without words.
    #[cfg(feature = "std")]
    fn without_words(&self) -> Self {
        Self { words: Words::default(), ..*self }
    }

    fn ones(&self) -> u64 {
        self.ones.unwrap_or_else(|| self.words.count_ones())
    }

    /// The words of both with this one's number of bits, and how many are set.
    fn joined(&self, other: &Self) -> Result<(Words, u64), Mismatch> {
        let both = resized(other.words.as_slice(), other.size.bits, self.size.bits);
        let mut both = both.map_err(|OutOfMemory { bytes }| Mismatch::Memory { bytes })?;
        both.as_mut_slice().iter_mut().zip(self.words.as_slice()).for_each(|(both, ours)| *both |= ours);
        let ones = both.count_ones();
        Ok((both, ones))
    }

    fn combine(&mut self, other: &Self, bits: impl Fn(u64, u64) -> u64) -> Result<(), Mismatch> {
        self.must_match(other)?;
        let mut ones = 0;
        for (ours, theirs) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *ours = bits(*ours, *theirs);
            ones += u64::from(ours.count_ones());
        }
        self.ones = Some(ones);
        let capacity = self.size.capacity.max(other.size.capacity);
        let fpr = math::bloom_fpr_of_any_size(self.size.bits, capacity, self.size.probes);
        self.size = BloomSize { capacity, fpr, ..self.size };
        Ok(())
    }

    fn ones_of_union(&self, other: &Self) -> Result<u64, Mismatch> {
        self.must_match(other)?;
        let pairs = self.words.as_slice().iter().zip(other.words.as_slice());
        Ok(pairs.map(|(ours, theirs)| u64::from((ours | theirs).count_ones())).sum())
    }

    fn estimated_intersection_len(&self, other: &Self) -> Result<f64, Mismatch> {
        let union = self.ones_of_union(other)?;
        Ok(math::intersection_len(self.size.bits, self.ones(), other.ones(), union, self.size.probes))
    }

    /// As [`Bloom::fold`].
    fn fold(&self, factor: u64) -> Result<Self, FoldError> {
        let BloomSize { capacity, bits, probes, fpr_asked, .. } = self.size;
        if !bits.is_multiple_of(factor) {
            return Err(FoldError::Factor { bits, factor });
        }
        self.words.verify().map_err(|_| FoldError::Damaged)?;
        let words = folded(self.words.as_slice(), bits, factor)?;
        let bits = bits / factor;
        let fits = math::bloom_capacity_for_probes(bits, fpr_asked, probes);
        let capacity = fits.clamp(1, capacity.max(1));
        let fpr = math::bloom_fpr_of_any_size(bits, capacity, probes);
        let (size, ones) = (BloomSize { capacity, bits, probes, fpr_asked, fpr }, words.count_ones());
        let intersection = self.intersection.map(|intersection| intersection.moved(self.ones(), ones));
        Ok(Self { intersection, ..Self::of(words, size, Some(ones), self.paths) })
    }

    /// As [`Bloom::fold_to`].
    fn fold_to(&self, fpr: f64) -> Result<Self, FoldError> {
        if !(MIN_FPR..1.0).contains(&fpr) {
            return Err(FoldError::Fpr { asked: fpr });
        }
        self.words.verify().map_err(|_| FoldError::Damaged)?;
        let (asked, now, BloomSize { bits, probes, .. }) = (fpr, self.rate().value, self.size);
        if now > asked {
            return Err(FoldError::TooFull { asked, now });
        }
        // A filter that is empty, or lucky with its first keys, must still be good for a key.
        let least = |bits: u64| math::bloom_fpr_of_any_size(bits, 1, probes);
        let rate =
            |bits: u64, ones: u64, words: &[u64]| rate(words, bits, probes, ones).value.max(least(bits));
        let fits = |bits, ones, words: Option<&[u64]>| match words {
            Some(words) => rate(bits, ones, words) <= asked,
            None => math::fpr_from_fill(ones as f64 / bits as f64, probes).max(least(bits)) <= asked,
        };
        let factor = largest_fold(self.paths, self.words.as_slice(), bits, self.ones(), &fits)?;
        if factor == 1 {
            let least = self.fold(math::prime_factors(bits).first().copied().unwrap_or(1))?;
            let (factor, fpr) =
                (bits / least.size.bits, rate(least.size.bits, least.ones(), least.words.as_slice()));
            return Err(FoldError::NoFold { bits, asked, factor, fpr });
        }
        let mut folded = self.fold(factor)?;
        let bits = folded.size.bits;
        let capacity = math::bloom_capacity_for_probes(bits, asked, probes).max(1);
        let fpr = math::bloom_fpr_of_any_size(bits, capacity, probes);
        folded.size = BloomSize { capacity, fpr_asked: asked, fpr, ..folded.size };
        Ok(folded)
    }

    fn set(&mut self, positions: &[u64]) -> Insertion {
        let words = self.words.as_mut_slice();
        let mut fresh = 0;
        for position in positions {
            let word = &mut words[index(position / 64)];
            let mask = 1 << (position % 64);
            fresh += u64::from(*word & mask == 0);
            *word |= mask;
        }
        self.ones = self.ones.map(|ones| ones + fresh);
        Insertion::new_if(fresh > 0)
    }

    fn must_be_positions(&self, positions: &[u64]) -> Result<(), OutOfRange> {
        let universe = self.size.bits;
        match positions.iter().find(|&&position| position >= universe) {
            Some(&index) => Err(OutOfRange { index, universe }),
            None => Ok(()),
        }
    }
}

impl Kernel for Bits {
    type Hash = Digest;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.single.contains(self.words.as_slice(), self.size.bits, digest)
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), hits: &mut [bool]) {
        let (words, bits) = (self.words.as_slice(), self.size.bits);
        probes::contains_all(self.paths, words, bits, self.single, keys, hash, hits);
    }

    fn plan(&self) -> Plan {
        self.size.plan()
    }

    fn fill(&self) -> f64 {
        self.ones() as f64 / self.size.bits as f64
    }

    fn rate(&self) -> Rate {
        rate(self.words.as_slice(), self.size.bits, self.size.probes, self.ones())
    }

    fn estimated_len(&self) -> f64 {
        let ones = self.ones();
        match self.intersection {
            Some(intersection) => intersection.len(ones),
            None => math::estimated_len(self.size.bits, ones, self.size.probes),
        }
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(&self.size, &other.size, |size| {
            [(Parameter::Bits, size.bits.into()), (Parameter::Probes, size.probes.into())]
        })
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.words == other.words
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::SCALED);
        let ones = self.ones();
        out.ones(ones);
        out.intersection(Intersection::stored(self.intersection, ones));
        let BloomSize { capacity, bits, probes, fpr_asked, .. } = self.size;
        out.params().u64(bits).u32(probes).u32(0).u64(capacity).f64(fpr_asked);
        out.words(&self.words);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let bits = fields.u64("bits")?;
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(DecodeError::Value { field: "bits", found: bits });
        }
        let probes = fields.u32("probes")?;
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(DecodeError::Value { field: "probes", found: probes.into() });
        }
        fields.zero_u32("padding of the parameters")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        fields.end("parameters", header.params.len())?;
        let words = shell::take_words(frame, words_for(bits) * 8)?;
        if !tail_is_clear(&words, bits) {
            return Err(DecodeError::Padding { field: "end of the payload" });
        }
        let ones = shell::occupied(frame, "set bits", bits, || words.count_ones())?;
        let ones = ones.unwrap_or_else(|| words.count_ones());
        let fpr = math::bloom_fpr_of_any_size(bits, capacity, probes);
        let size = BloomSize { capacity, bits, probes, fpr_asked, fpr };
        let intersection = Intersection::read(frame.header.intersection, ones);
        Ok(Self { intersection, ..Self::of(words, size, Some(ones), Paths::default()) })
    }

    fn take_paths(&mut self, paths: Paths) {
        (self.single, self.paths) = (Single::of(self.size.probes, paths), paths);
    }
}

impl Empty for Bits {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let size = spec.bloom()?;
        Ok(Self::of(Words::zeroed(words_for(size.bits))?, size, Some(0), spec.paths))
    }

    fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.ones = Some(0);
        self.intersection = None;
    }
}

impl Inserts for Bits {
    type Error = Infallible;

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<Insertion, Infallible> {
        let BloomSize { bits, probes, .. } = self.size;
        self.ones = None;
        Ok(Insertion::new_if(probes::insert(self.words.as_mut_slice(), bits, probes, digest)))
    }

    #[inline(always)]
    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Infallible> {
        let BloomSize { bits, probes, .. } = self.size;
        let mut set = 0;
        probes::insert_all(self.paths, self.words.as_mut_slice(), bits, probes, keys, hash, |fresh| {
            set += u64::from(fresh);
            told(Insertion::new_if(fresh > 0));
        });
        self.ones = self.ones.map(|ones| ones + set);
        Ok(())
    }

    /// So many that a large filter is written all over again and again are gathered by the region of their bits; the memory
    /// for that is a quarter of the filter's and 64 MiB at most.
    #[inline(always)]
    fn insert_all<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut done: impl FnMut(u64),
    ) -> Result<(), Infallible> {
        let (paths, BloomSize { bits, probes, .. }) = (self.paths, self.size);
        if !probes::is_far(paths, self.words.as_slice()) {
            // As for single keys: what is not waiting for memory does not count what it sets.
            self.ones = None;
            let mut words = self.words.as_mut_slice();
            pipeline(
                &mut words,
                keys,
                hash,
                false,
                |_, _| {},
                |words, digests| {
                    for &digest in digests {
                        probes::insert(words, bits, probes, digest);
                    }
                },
            );
            done(keys.len() as u64);
            return Ok(());
        }
        // Worth it alone if the bits are beyond every cache, and each of their lines is written twice on average.
        let written = (keys.len() as u64).saturating_mul(u64::from(probes));
        let gathers = bits / 8 >= paths.gather_from_bytes(GATHER_FROM_BYTES) as u64;
        let scatter = if gathers && written / 2 >= bits / 512 { Scatter::new(paths, bits) } else { None };
        let Some(mut scatter) = scatter else {
            self.insert_each(keys, hash, |_| {})?;
            done(keys.len() as u64);
            return Ok(());
        };
        let (words, mut fresh) = (self.words.as_mut_slice(), 0);
        let mut set = |region: usize, positions: &[u32]| {
            let words = &mut words[region * region_words(paths)..];
            fresh += set_in_region(paths, words, positions);
        };
        pipeline(
            &mut scatter,
            keys,
            hash,
            false,
            |_, _| {},
            |scatter, digests| {
                for &digest in digests {
                    positions(digest, probes, bits).for_each(|position| scatter.push(position, &mut set));
                }
            },
        );
        scatter.drain(&mut set);
        self.ones = self.ones.map(|ones| ones + fresh);
        done(keys.len() as u64);
        Ok(())
    }
}

impl Merges for Bits {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        let intersection = Intersection::of_union(self.intersection, other.intersection);
        if self.must_match(other).is_ok() {
            self.combine(other, |ours, theirs| ours | theirs)?;
            self.intersection = intersection;
            return Ok(());
        }
        let (small, large) =
            if self.size.bits <= other.size.bits { (&*self, other) } else { (other, &*self) };
        let (m, n) = (small.size.bits, large.size.bits);
        let (mut bits, mut joined) = (m, small.joined(large)?);
        if m < n {
            let longer = large.joined(small)?;
            // ones / m of the shorter above ones / n of the longer, without a division.
            if u128::from(joined.1) * u128::from(n) > u128::from(longer.1) * u128::from(m) {
                (bits, joined) = (n, longer);
            }
        }
        let (words, ones) = joined;
        let capacity = small.size.capacity.max(large.size.capacity);
        let probes = small.size.probes.min(large.size.probes);
        let fpr_asked = small.size.fpr_asked.max(large.size.fpr_asked);
        let fpr = math::bloom_fpr_of_any_size(bits, capacity, probes);
        if bits == self.size.bits {
            // Where they lie, which may be in a map that is written in place.
            self.words.as_mut_slice().copy_from_slice(words.as_slice());
        } else {
            self.words = words;
        }
        (self.size, self.ones) = (BloomSize { capacity, bits, probes, fpr_asked, fpr }, Some(ones));
        self.single = Single::of(probes, self.paths);
        self.intersection = intersection;
        Ok(())
    }
}

impl Intersects for Bits {
    fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        let common = match (self.intersection, other.intersection) {
            (None, None) => self.estimated_intersection_len(other)?,
            _ => f64::NAN,
        };
        self.combine(other, |ours, theirs| ours & theirs)?;
        self.intersection = Intersection::of(common, self.ones());
        Ok(())
    }
}

impl Bloom {
    /// An empty filter with `bits` bits and `probes` probes.
    ///
    /// # Errors
    /// As for [`new`](Bloom::new).
    pub fn with_bits(bits: u64, probes: u32) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::new().with_bits(bits).with_probes(probes))
    }

    /// A filter over words that exist already: bit `i` is bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    /// [`SpecError::Words`] if there are too few or too many, or bits are set behind the last one.
    pub fn from_words(words: impl Into<Words>, bits: u64, probes: u32) -> Result<Self, SpecError> {
        let size = Spec::new().with_bits(bits).with_probes(probes).bloom()?;
        let words = words.into();
        let wrong = SpecError::Words { expected: words_for(bits), found: words.len() as u64 };
        if words.len() as u64 != words_for(bits) || !tail_is_clear(&words, bits) {
            return Err(wrong);
        }
        Ok(Self::of(words, size, Hashing::default(), None, Paths::default()))
    }

    /// Of words whose bits behind the last are zero.
    pub(super) fn of(
        words: Words,
        size: BloomSize,
        hashing: Hashing,
        inserted: Option<u64>,
        paths: Paths,
    ) -> Self {
        Self(Shell { kernel: Bits::of(words, size, None, paths), hashing, inserted })
    }

    /// Inserts many keys with `threads` threads. The bits are those that one thread would set.
    ///
    /// Threads fill small filters of their own, and regions of a large one.
    ///
    /// ```
    /// use mayhap::Bloom;
    ///
    /// let keys: Vec<u64> = (0..100_000).collect();
    /// let mut seen = Bloom::new(100_000, 0.01)?;
    /// seen.insert_all_parallel(&keys, 2);
    /// assert!(keys.iter().all(|key| seen.contains(key)));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is no memory for the threads to work in, or a key panics; the keys from before are still in.
    #[cfg(feature = "std")]
    pub fn insert_all_parallel<K: Key + Sync>(&mut self, keys: &[K], threads: usize) {
        // Words that are written in place cannot be taken apart.
        if self.0.kernel.words.is_in_place() {
            return self.insert_all(keys);
        }
        let Bits { size, paths, .. } = self.0.kernel;
        let without_words = Self(self.0.with(self.0.kernel.without_words()));
        let whole = core::mem::replace(self, without_words);
        let panic = if Scatter::pays(paths, size.bits) {
            let shared = ScatteredBloom::of(whole);
            let panic = fill(paths, &shared, keys, threads);
            *self = shared.joined();
            panic
        } else {
            let shared = PrivateBlooms::of(whole);
            let panic = fill(paths, &shared, keys, threads);
            *self = shared.joined();
            panic
        };
        match panic {
            None => self.insert_all(keys),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(())) => {}
        }
    }

    /// The positions of a key, in the order in which they are probed.
    pub fn positions(&self, key: impl Key) -> Positions {
        positions(self.0.hashing.digest_of(key), self.probes(), self.bits())
    }

    /// Inserts a key that is known by its positions only, such as a textbook's.
    ///
    /// # Errors
    /// [`OutOfRange`] if a position is not below [`bits`](Bloom::bits); then nothing has changed.
    pub fn insert_positions(&mut self, positions: &[u64]) -> Result<Insertion, OutOfRange> {
        self.0.kernel.must_be_positions(positions)?;
        self.0.add_inserted(1);
        Ok(self.0.kernel.set(positions))
    }

    /// Whether all of these positions are set.
    ///
    /// # Errors
    /// [`OutOfRange`] if a position is not below [`bits`](Bloom::bits).
    pub fn contains_positions(&self, positions: &[u64]) -> Result<bool, OutOfRange> {
        self.0.kernel.must_be_positions(positions)?;
        let words = self.words();
        Ok(positions.iter().all(|position| words[index(position / 64)] >> (position % 64) & 1 == 1))
    }

    /// Positions per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.0.kernel.size.probes
    }

    /// The bits, 64 to a word.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.0.kernel.words.as_slice()
    }

    /// A filter with the same keys in `factor` times fewer bits: exactly the one that those keys would
    /// have made there.
    ///
    /// Neighbours are ORed: the bit of `position` becomes that of `position / factor`. With `m` bits a
    /// hash `x` has the position `floor(y)`, `y = x * m / 2^64`; with `m / factor` bits it has
    /// `floor(y / factor)`, and `floor(floor(y) / factor)` is the same number, since `factor` is whole.
    ///
    /// The capacity becomes that of the new size at the rate that was asked for.
    ///
    /// ```
    /// use mayhap::{Bloom, Spec};
    ///
    /// let mut roomy = Bloom::from_spec(&Spec::sized(100_000, 0.01).foldable())?;
    /// roomy.extend(0..1000u64);
    /// let folded = roomy.fold(64)?;
    /// assert_eq!(folded.bits(), roomy.bits() / 64);
    /// assert!((0..1000u64).all(|key| folded.contains(key)));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`FoldError::Factor`] if the factor does not divide the bits; [`FoldError::Damaged`] if they came from bytes that were
    /// not verified, and are damaged.
    pub fn fold(&self, factor: u64) -> Result<Self, FoldError> {
        Ok(Self(self.0.with(self.0.kernel.fold(factor)?)))
    }

    /// The smallest [fold](Bloom::fold) whose rate is at most this, from its own fill and with one key at
    /// least. Its capacity is what its bits hold at that rate.
    ///
    /// # Errors
    /// [`FoldError`] if the rate makes no sense, the filter errs more often already, or no divisor of its
    /// bits keeps the rate. Bits have good divisors if they were asked to ([`Spec::foldable`]).
    pub fn fold_to(&self, fpr: f64) -> Result<Self, FoldError> {
        Ok(Self(self.0.with(self.0.kernel.fold_to(fpr)?)))
    }

    /// How many different keys are probably in this filter or in the other, without merging them.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn estimated_union_len(&self, other: &Self) -> Result<f64, Mismatch> {
        self.must_match(other)?;
        let union = self.0.kernel.ones_of_union(&other.0.kernel)?;
        Ok(math::union_len(self.bits(), union, self.probes()))
    }

    /// How many different keys are probably in both. Taken from the three sizes, and never from the
    /// common bits, which chance adds to.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn estimated_intersection_len(&self, other: &Self) -> Result<f64, Mismatch> {
        self.must_match(other)?;
        self.0.kernel.estimated_intersection_len(&other.0.kernel)
    }

    /// Measures the false-positive rate with keys that are known to be absent.
    pub fn measure_fpr<K: Key>(&self, absent: impl IntoIterator<Item = K>) -> Measured {
        let mut measured = Measured { trials: 0, hits: 0 };
        for key in absent {
            measured.trials += 1;
            measured.hits += u64::from(self.contains(key));
        }
        measured
    }
}

/// The false-positive rate of `bits` bits, of which `ones` are set.
fn rate(words: &[u64], bits: u64, probes: u32, ones: u64) -> Rate {
    rates::scaled(bits, probes, ones, |place| words[(place / 64) as usize] >> (place % 64) & 1 == 1)
}

/// No bit behind the last one may be set: equality, counts and merges read whole words.
fn tail_is_clear(words: &Words, bits: u64) -> bool {
    bits.is_multiple_of(64) || words.as_slice().last().is_none_or(|last| last >> (bits % 64) == 0)
}

/// Bits that were folded by a factor which divides their number.
fn folded(words: &[u64], bits: u64, factor: u64) -> Result<Words, FoldError> {
    resized(words, bits, bits / factor).map_err(|OutOfMemory { bytes }| FoldError::Memory { bytes })
}

/// The largest of the divisors of `bits` by which they can be folded so that `fits` says so, of the number of bits, of ones
/// and of the words, where these are at hand. 1 fits.
///
/// A fold by a multiple of `c` is a fold of the fold by `c` and never has a smaller share of ones, so
/// what does not fit by `c` does not by any multiple. But a larger factor that is no multiple may fit
/// where a smaller one does not: a filter that was spread by 10 folds by 10 for nothing, and not by 3.
/// So the search starts where the share of ones puts the answer, goes down to one that fits, and then up
/// past every multiple of those that did not. In a large filter a sample refuses what clearly does not
/// fit: 1.1 GiB with 2e7 keys, folded by 48, took 3.6 s with it and 26 s without, on one core.
fn largest_fold(
    paths: Paths,
    words: &[u64],
    bits: u64,
    ones: u64,
    fits: &impl Fn(u64, u64, Option<&[u64]>) -> bool,
) -> Result<u64, FoldError> {
    let divisors = math::divisors(bits);
    let expected = |to: u64| math::resized_fill(bits, to, ones as f64 / bits as f64) * to as f64;
    let fits_by_fill = |&factor: &u64| fits(bits / factor, whole(expected(bits / factor)), None);
    let start = divisors.partition_point(fits_by_fill);
    let (lower, upper) = divisors.split_at(start);
    let (mut largest, mut refused) = (1, Vec::new());
    for &factor in lower.iter().rev().chain(upper) {
        if factor > largest && !refused.iter().any(|&other| factor.is_multiple_of(other)) {
            let to = bits / factor;
            let has_room = fits(to, least_ones(paths, words, bits, factor)?, None);
            let folded = if has_room { Some(folded(words, bits, factor)?) } else { None };
            if folded.is_some_and(|folded| fits(to, folded.count_ones(), Some(folded.as_slice()))) {
                largest = factor;
            } else {
                refused.push(factor);
            }
        }
    }
    Ok(largest)
}

/// A number of ones that a fold will almost certainly have, from the first words of a large filter: 8
/// standard deviations below what those say. (Bits of keys are the same everywhere. Who crafts a file that
/// is full in front and empty behind gets a fold that is larger than it had to be.)
fn least_ones(paths: Paths, words: &[u64], bits: u64, factor: u64) -> Result<u64, FoldError> {
    /// 8 MiB: enough bits to tell a share of ones to 4 digits.
    const SAMPLE: usize = 1 << 20;
    let words_looked_at = paths.sample_words(SAMPLE);
    if words.len() <= 2 * words_looked_at {
        return Ok(0);
    }
    let sample = folded(&words[..words_looked_at], bits, factor)?;
    let ends = index((words_looked_at as u64).div_ceil(factor));
    let ones: u64 = sample.as_slice()[..ends].iter().map(|word| u64::from(word.count_ones())).sum();
    let of = words_looked_at as f64 * 64.0 / factor as f64;
    let share = (ones as f64 / of).min(1.0);
    let least = share - 8.0 * libm::sqrt(share * (1.0 - share) / of) - 1.0 / of;
    Ok(whole(least * (bits / factor) as f64))
}

/// A measured false-positive rate, with the numbers behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Absent keys that were asked for.
    pub trials: u64,
    /// Those that were admitted.
    pub hits: u64,
}

impl Measured {
    /// The rate; `None` if nothing was asked.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        (self.trials > 0).then(|| self.hits as f64 / self.trials as f64)
    }
}

impl Fold for Bloom {
    fn fold_to(&self, fpr: f64) -> Result<Box<dyn AnyFilter>, FoldError> {
        Ok(Box::new(self.fold_to(fpr)?))
    }
}

/// A filter for exactly these keys, at 1%. The digests are held until their number is known.
///
/// # Panics
/// If there is no memory for the filter.
impl<K: Key> FromIterator<K> for Bloom {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let hashing = Hashing::default();
        let digests: Vec<Digest> = keys.into_iter().map(|key| hashing.digest_of(key)).collect();
        let capacity = (digests.len() as u64).max(1);
        let mut bloom = Self::new(capacity, DEFAULT_FPR).expect("memory for the filter");
        bloom.0.insert_digests(&digests);
        bloom
    }
}

/// A Bloom filter that many threads fill at once, without locks and without losing a bit.
///
/// A key inserted by one thread is seen by another as soon as something orders the two (a join, a
/// channel, a lock). Two threads that insert the same new key at the same moment may both be told
/// [`Insertion::New`].
///
/// ```
/// use mayhap::AtomicBloom;
///
/// let seen = AtomicBloom::new(1000, 0.01)?;
/// std::thread::scope(|scope| {
///     for thread in 0..4u64 {
///         let seen = &seen;
///         scope.spawn(move || (0..100).for_each(|i| { seen.insert(100 * thread + i); }));
///     }
/// });
/// let seen = seen.into_bloom();
/// assert!((0..400u64).all(|key| seen.contains(key)));
/// # Ok::<(), mayhap::Error>(())
/// ```
#[derive(Debug)]
pub struct AtomicBloom {
    words: AtomicWords,
    size: BloomSize,
    hashing: Hashing,
    /// Insert calls, and whether they are known at all.
    inserted: AtomicU64,
    counted: bool,
    intersection: Option<Intersection>,
    paths: Paths,
}

impl AtomicBloom {
    /// An empty filter for `capacity` keys at the false-positive rate `fpr`.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty filter of whatever was asked for.
    ///
    /// # Errors
    /// As for [`new`](AtomicBloom::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let (size, hashing) = (spec.bloom()?, spec.hashed()?);
        let words = AtomicWords::zeroed(words_for(size.bits))?;
        let (inserted, intersection, paths) = (AtomicU64::new(0), None, spec.paths);
        Ok(Self { words, size, hashing, inserted, counted: true, intersection, paths })
    }

    /// Inserts a key.
    #[inline]
    pub fn insert(&self, key: impl Key) -> Insertion {
        self.inserted.fetch_add(1, Ordering::Relaxed);
        self.set(self.hashing.digest_of(key))
    }

    #[inline]
    fn set(&self, digest: Digest) -> Insertion {
        let mut changed = false;
        for position in positions(digest, self.size.probes, self.size.bits) {
            changed |= self.words.set(position);
        }
        Insertion::new_if(changed)
    }

    /// Inserts many keys by their digests.
    pub fn insert_digests(&self, digests: &[Digest]) {
        let (words, BloomSize { bits, probes, .. }) = (self.words.as_slice(), self.size);
        let ahead = |_: &(), digest: Digest| {
            positions(digest, probes, bits).for_each(|position| prefetch(words, index(position / 64)));
        };
        let far = probes::is_far(self.paths, words);
        pipeline(&mut (), digests, copy, far, ahead, |(), digests| {
            digests.iter().for_each(|&digest| {
                self.set(digest);
            });
        });
        self.inserted.fetch_add(digests.len() as u64, Ordering::Relaxed);
    }

    /// Whether a key is probably in. `false` is certain for keys whose insert happened before.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        let digest = self.hashing.digest_of(key);
        positions(digest, self.size.probes, self.size.bits).all(|position| self.words.get(position))
    }

    /// How keys are hashed.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// The same filter for one thread. The bits stay where they are.
    #[must_use]
    pub fn into_bloom(self) -> Bloom {
        let inserted = self.counted.then(|| self.inserted.into_inner());
        let bits = Bits::of(self.words.into(), self.size, None, self.paths);
        let kernel = Bits { intersection: self.intersection, ..bits };
        Bloom(Shell { kernel, hashing: self.hashing, inserted })
    }
}

impl From<Bloom> for AtomicBloom {
    fn from(bloom: Bloom) -> Self {
        let Bloom(Shell { kernel: Bits { words, size, intersection, paths, .. }, hashing, inserted }) = bloom;
        let (words, counted, inserted) = (words.into(), inserted.is_some(), inserted.unwrap_or(0).into());
        Self { words, size, hashing, inserted, counted, intersection, paths }
    }
}

impl crate::traits::sealed::Sealed for AtomicBloom {}

impl SharedInsert for AtomicBloom {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    fn insert_batch(&self, digests: &[Digest]) {
        self.insert_digests(digests);
    }

    fn finish(self: Box<Self>) -> Box<dyn AnyFilter> {
        Box::new(self.into_bloom())
    }
}

/// Has threads insert keys into a filter under construction; as [`in_parallel`] says.
#[cfg(feature = "std")]
fn fill<K: Key + Sync>(
    paths: Paths,
    shared: &impl SharedInsert,
    keys: &[K],
    threads: usize,
) -> Option<std::thread::Result<()>> {
    let hashing = shared.hashing();
    let work = |digests: &mut Vec<Digest>, keys: &[K]| {
        digests.resize(keys.len(), Digest::default());
        K::digests(keys, &hashing, digests, Here);
        shared.insert_batch(digests);
    };
    in_parallel(paths, keys, threads, Vec::new, work).map(|(_, panic)| panic)
}

/// Things that threads work with, one at a time each.
#[cfg(feature = "std")]
struct Pool<T>(std::sync::Mutex<PoolState<T>>);

#[cfg(feature = "std")]
struct PoolState<T> {
    idle: Vec<T>,
    /// How many threads have one.
    taken: usize,
}

#[cfg(feature = "std")]
impl<T> Pool<T> {
    fn of(idle: Vec<T>) -> Self {
        Self(std::sync::Mutex::new(PoolState { idle, taken: 0 }))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, PoolState<T>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// An idle one, or a new one; `None` if there is no memory for a new one.
    fn take(&self, new: impl Fn() -> Option<T>) -> Option<Taken<'_, T>> {
        let mut state = self.state();
        let own = match state.idle.pop() {
            Some(idle) => idle,
            None => {
                drop(state);
                let own = new()?;
                state = self.state();
                own
            }
        };
        state.taken += 1;
        Some(Taken { own: Some(own), pool: self })
    }

    /// The same, but without memory it waits for the next one that becomes idle. `None` if no thread has one: none would
    /// ever become idle.
    fn wait(&self, new: impl Fn() -> Option<T>) -> Option<Taken<'_, T>> {
        loop {
            let taken = self.take(&new);
            if taken.is_some() || self.is_empty() {
                return taken;
            }
            std::thread::yield_now();
        }
    }

    /// Whether there is none, neither here nor with a thread.
    fn is_empty(&self) -> bool {
        let state = self.state();
        state.idle.is_empty() && state.taken == 0
    }

    fn into_idle(self) -> Vec<T> {
        self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).idle
    }
}

/// One that a thread has taken out of a pool. It is idle again when this is dropped, also by a panic.
#[cfg(feature = "std")]
struct Taken<'a, T> {
    /// `None` only while this is dropped.
    own: Option<T>,
    pool: &'a Pool<T>,
}

#[cfg(feature = "std")]
impl<T> Taken<'_, T> {
    fn get(&mut self) -> &mut T {
        self.own.as_mut().expect("there until the end")
    }
}

#[cfg(feature = "std")]
impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        state.taken -= 1;
        state.idle.extend(self.own.take());
    }
}

/// Private copies of one small filter, merged in the end: no thread waits for another's cache lines.
#[cfg(feature = "std")]
struct PrivateBlooms {
    size: BloomSize,
    hashing: Hashing,
    paths: Paths,
    copies: Pool<Bloom>,
}

#[cfg(feature = "std")]
impl PrivateBlooms {
    fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        Ok(Self::of(Bloom::from_spec(spec)?))
    }

    fn of(first: Bloom) -> Self {
        let (&Bits { size, paths, .. }, hashing) = (&first.0.kernel, first.0.hashing);
        Self { size, hashing, paths, copies: Pool::of(alloc::vec![first]) }
    }

    fn joined(self) -> Bloom {
        let mut copies = self.copies.into_idle().into_iter();
        let mut whole = copies.next().expect("the first copy is made with the pool");
        for copy in copies {
            let calls = whole.inserted().zip(copy.inserted());
            whole.merge(&copy).expect("copies agree");
            whole.0.inserted = calls.map(|(ours, theirs)| ours.saturating_add(theirs));
        }
        whole
    }
}

#[cfg(feature = "std")]
impl crate::traits::sealed::Sealed for PrivateBlooms {}

#[cfg(feature = "std")]
impl SharedInsert for PrivateBlooms {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    fn insert_batch(&self, digests: &[Digest]) {
        let empty = || {
            let words = Words::zeroed(words_for(self.size.bits)).ok()?;
            let kernel = Bits::of(words, self.size, Some(0), self.paths);
            Some(Bloom(Shell { kernel, hashing: self.hashing, inserted: Some(0) }))
        };
        let mut bloom = self.copies.wait(empty).expect("the first copy is made with the pool");
        bloom.get().0.insert_digests(digests);
    }

    fn finish(self: Box<Self>) -> Box<dyn AnyFilter> {
        Box::new(self.joined())
    }
}

/// A large filter whose regions threads write one at a time, with what each has gathered for them.
#[cfg(feature = "std")]
struct ScatteredBloom {
    regions: Parts,
    /// Without its words, which are in the regions.
    filter: Bloom,
    gathered: Pool<Scatter>,
    inserted: AtomicU64,
    fresh: AtomicU64,
}

#[cfg(feature = "std")]
impl ScatteredBloom {
    fn of(mut filter: Bloom) -> Self {
        let regions =
            Parts::of(core::mem::take(&mut filter.0.kernel.words), region_words(filter.0.kernel.paths));
        let gathered = Pool::of(Vec::new());
        Self { regions, filter, gathered, inserted: AtomicU64::new(0), fresh: AtomicU64::new(0) }
    }

    fn set(&self, region: usize, positions: &[u32]) {
        let fresh = self.regions.with(region, |words| set_in_region(self.paths(), words, positions));
        self.fresh.fetch_add(fresh, Ordering::Relaxed);
    }

    fn joined(mut self) -> Bloom {
        let gathered = core::mem::replace(&mut self.gathered, Pool::of(Vec::new()));
        for mut scatter in gathered.into_idle() {
            scatter.drain(|region, positions| self.set(region, positions));
        }
        let (calls, fresh) = (self.inserted.into_inner(), self.fresh.into_inner());
        let mut filter = self.filter;
        filter.0.add_inserted(calls);
        let kernel = &mut filter.0.kernel;
        kernel.ones = kernel.ones.map(|before| before + fresh);
        kernel.words = self.regions.joined();
        filter
    }

    fn paths(&self) -> Paths {
        self.filter.0.kernel.paths
    }
}

#[cfg(feature = "std")]
impl crate::traits::sealed::Sealed for ScatteredBloom {}

#[cfg(feature = "std")]
impl SharedInsert for ScatteredBloom {
    fn hashing(&self) -> Hashing {
        self.filter.hashing()
    }

    fn insert_batch(&self, digests: &[Digest]) {
        let BloomSize { bits, probes, .. } = self.filter.0.kernel.size;
        let all = digests.iter().flat_map(|&digest| positions(digest, probes, bits));
        match self.gathered.take(|| Scatter::new(self.paths(), bits)) {
            Some(mut taken) => {
                let scatter = taken.get();
                all.for_each(|position| scatter.push(position, |region, some| self.set(region, some)));
            }
            // No memory to gather in, and perhaps no other thread that has some: each position by itself.
            None => {
                let words = region_words(self.paths()) as u64;
                all.for_each(|position| self.set(index(position / 64 / words), &[low_u32(position)]));
            }
        }
        self.inserted.fetch_add(digests.len() as u64, Ordering::Relaxed);
    }

    fn finish(self: Box<Self>) -> Box<dyn AnyFilter> {
        Box::new(self.joined())
    }
}

#[cfg(feature = "serde")]
mod serde_forms {
    use alloc::string::String;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::ser::{Error as _, SerializeStruct};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::*;

    /// For people: an object whose words are base64 of their little-endian bytes. For machines: the
    /// bytes of a file. A keyed filter has no serde form, since reading it back takes the secret: use
    /// [`Bloom::to_bytes`] and [`Bloom::from_bytes_keyed`].
    impl Serialize for Bloom {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let Some(seed) = self.hashing().seed() else {
                return Err(S::Error::custom("a keyed filter has no serde form; use to_bytes"));
            };
            if !serializer.is_human_readable() {
                return serializer.serialize_bytes(&self.to_bytes());
            }
            let mut object = serializer.serialize_struct("Bloom", 9)?;
            object.serialize_field("family", FAMILY.name)?;
            object.serialize_field("capacity", &self.capacity())?;
            object.serialize_field("fpr", &self.0.kernel.size.fpr_asked)?;
            object.serialize_field("bits", &self.bits())?;
            object.serialize_field("probes", &self.probes())?;
            object.serialize_field("hash", self.hashing().name())?;
            object.serialize_field("seed", &seed)?;
            object.serialize_field("inserted", &self.inserted())?;
            object.serialize_field("words", &STANDARD.encode(self.0.kernel.words.to_le_bytes()))?;
            object.end()
        }
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Object {
        family: String,
        capacity: u64,
        fpr: f64,
        bits: u64,
        probes: u32,
        hash: String,
        seed: u64,
        inserted: Option<u64>,
        words: String,
    }

    impl Object {
        fn into_bloom(self) -> Result<Bloom, &'static str> {
            let hashing = Hashing::Xxh3 { seed: self.seed };
            if self.family != FAMILY.name || self.hash != hashing.name() {
                return Err("not a bloom filter hashed by xxh3-128");
            }
            let bytes = STANDARD.decode(&self.words).map_err(|_| "words are not base64")?;
            let words = Words::from_bytes(bytes.into()).ok_or("words are not whole words")?;
            let mut bloom = Bloom::from_words(words, self.bits, self.probes)
                .map_err(|_| "bits, probes and words do not fit together")?;
            if !(0.0..=1.0).contains(&self.fpr) {
                return Err("fpr is not a rate");
            }
            let fpr = math::bloom_fpr_of_any_size(self.bits, self.capacity, self.probes);
            let shell = &mut bloom.0;
            let size = shell.kernel.size;
            shell.kernel.size = BloomSize { capacity: self.capacity, fpr_asked: self.fpr, fpr, ..size };
            (shell.hashing, shell.inserted) = (hashing, self.inserted);
            Ok(bloom)
        }
    }

    impl<'de> Deserialize<'de> for Bloom {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            if deserializer.is_human_readable() {
                return Object::deserialize(deserializer)?.into_bloom().map_err(D::Error::custom);
            }
            struct FileBytes;
            impl serde::de::Visitor<'_> for FileBytes {
                type Value = Bloom;
                fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                    f.write_str("the bytes of a mayhap file")
                }
                fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bloom, E> {
                    Bloom::from_bytes(bytes).map_err(E::custom)
                }
            }
            deserializer.deserialize_bytes(FileBytes)
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    /// What comes out, unless it takes a minute. The thread is not joined, since it may wait for ever.
    fn in_a_minute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, finished) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(work()));
        finished
            .recv_timeout(std::time::Duration::from_secs(60))
            .expect("a thread that does not wait for ever")
    }

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn a_pool_without_memory_for_its_first_does_not_wait_for_ever() {
        assert!(in_a_minute(|| Pool::<u8>::of(Vec::new()).wait(|| None).is_none()));
    }

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn a_pool_without_memory_for_a_second_hands_out_the_first_one_by_one() {
        let pool = Pool::of(alloc::vec![0]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| *pool.wait(|| None).unwrap().get() += 1));
            }
        });
        assert_eq!(pool.into_idle(), [400]);
    }

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn what_a_thread_had_when_it_panicked_is_idle_again() {
        let pool = Pool::of(alloc::vec![1]);
        let panicking = std::panic::AssertUnwindSafe(|| {
            let mut one = pool.wait(|| None).unwrap();
            *one.get() = 2;
            panic!("on purpose");
        });
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!(*pool.wait(|| None).unwrap().get(), 2);
    }

    #[test]
    #[cfg(feature = "internals")]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn threads_without_memory_to_gather_in_insert_all_the_same() {
        use crate::paths::Switches;
        const REFUSED: Switches = Switches {
            prefetch_from_bytes: None,
            gather_from_bytes: Some(0),
            region_shift: Some(7),
            // More than half of all addresses: no allocator grants that.
            gather_bytes: Some(usize::MAX),
            run_keys: Some(50),
            shard_bits: None,
            sample_words: None,
            portable: false,
        };
        let digests: Vec<Digest> = (0..2000u64).map(|key| Hashing::default().digest_of(key)).collect();
        let mut spec = Spec::sized(2000, 0.01);
        let mut alone = Bloom::from_spec(&spec).unwrap();
        alone.0.insert_digests(&digests);
        spec.paths = Paths::of(&REFUSED);
        let shared = ScatteredBloom::of(Bloom::from_spec(&spec).unwrap());
        assert!(Scatter::new(spec.paths, shared.filter.bits()).is_none());
        let shared = in_a_minute(move || {
            digests.chunks(100).for_each(|digests| shared.insert_batch(digests));
            shared.joined()
        });
        assert!(shared == alone && shared.inserted() == Some(2000) && shared.fill() == alone.fill());
    }
}
