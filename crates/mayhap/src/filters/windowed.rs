//! Age-partitioned Bloom filter: remembers the last keys of an endless stream, and forgets the older ones.
//!
//! **Answers** "was this key among the last W that were inserted?"
//! **Promise** a key among the last W is never denied; one that never came is admitted with the asked rate at most,
//! however long the stream is. A key behind the window is forgotten gradually.
//! **Not for** sets that must not lose a key; windows of time instead of numbers of keys.
//!
//! ```text
//!   newest                                        oldest
//!   slice 2    slice 1    slice 0    slice 4    slice 3      a ring of k + l slices, here k = 2, l = 3
//!   0 1 0 0 0  0 0 1 0 1  1 0 1 0 0  0 1 1 0 0  1 0 0 1 0
//!     ▲            ▲                                         insert: one bit in each of the k newest
//!                         ▲            ▲                     contains: k neighbours that have its bit, anywhere
//! ```
//!
//! | operation | cache lines                                              | can fail |
//! |-----------|----------------------------------------------------------|----------|
//! | contains  | `k`; for a miss 2 in each `k` slices or so               | no       |
//! | insert    | the same, and `k`; clears a slice once in a generation   | no       |
//!
//! After a generation of `g` inserts the oldest slice is cleared and becomes the newest. A key that came in the
//! generation before has its bits one slice further back then, and still in `k` neighbours, until the first of them is
//! cleared: after `l` generations. Then a neighbour must have the missing bit by chance: one in two admits the key, in
//! the next generation one in four, and so on, until after `k + l` generations nothing is left of it. So `l g` keys are remembered in full, and `l`, `g` and `k` are chosen such that the
//! window takes the fewest bits ([`Spec::windowed`]). The hash of a slice belongs to its place, not to its age.
//!
//! Every insert counts, also of a key that is perhaps in already: it has come again, and is to be remembered from now
//! on.
//!
//! **Paper** Shtul, Baquero, Almeida, *Age-Partitioned Bloom Filters*, 2020.
//! **We differ** in that the slice is changed before the insert that needs it and not after the one before, so that one
//! key more is remembered.
//!
//! ```
//! use mayhap::{Insertion, Windowed};
//!
//! let mut recent = Windowed::new(1000, 0.001)?; // the last thousand
//! for event in 0..100_000u64 {
//!     recent.insert(event);
//! }
//! assert!((99_000..100_000u64).all(|event| recent.contains(event)));
//! assert_eq!(recent.insert(99_500u64), Insertion::Perhaps);
//! assert!(recent.fpr() <= 0.001);
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::batch::{copy, pipeline};
use crate::bits::{Bytes, Words};
use crate::error::{DecodeError, Error, Full, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, Family, Guarantee, Make, Report, WindowReport};
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::math::{self, MAX_PROBES, WINDOWED_GENERATIONS};
use crate::narrow::index;
use crate::paths::Paths;
use crate::probing::{PHI, Probing, reduce};
use crate::raw::simd::prefetch;
use crate::raw::simd::probes::is_far;
use crate::spec::{MAX_BITS, MAX_CAPACITY, Plan, Spec, WindowedSize};
use crate::traits::{Filter, Insert, Insertion};
use crate::wire::{Fields, Frame, Summing, Writer};

/// The family `windowed`.
pub static FAMILY: Family = Family {
    id: 16,
    name: "windowed",
    summary: "remembers the last n keys of an endless stream",
    can: Capabilities {
        inserts: true,
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
    cost: Cost { query: "O(k)", insert: "O(k) amortized", space: "2.2 to 3.8 n log2(1/p)" },
    make: Make::Empty(|spec| Ok(Box::new(Windowed::from_spec(spec)?))),
    shared: None,
    plan: |spec| {
        let size = spec.windowed()?;
        let WindowedSize { capacity, fpr_asked, fpr, probes, .. } = size;
        Ok(Plan { capacity, fpr_asked, fpr, bits: size.bits(), probes: Some(probes) })
    },
    decode: |frame, hashing| Ok(Box::new(Windowed::decode(frame, hashing)?)),
    // Slices are cleared: a writer that dies there has forgotten keys that the header still counts.
    in_place: false,
};

/// The most slices: those of a key, and of the generations.
const MAX_SLICES: usize = (MAX_PROBES * (1 + WINDOWED_GENERATIONS)) as usize;

/// The part of a slice's value that no key decides: `C(i + 1, 3) PHI`, to which the steps of
/// [`positions`](crate::positions) add up before position `i`. So each position is computed without those before it.
const OFFSETS: [u64; MAX_SLICES] = {
    let mut offsets = [0; MAX_SLICES];
    let mut i = 0;
    while i < MAX_SLICES {
        let n = i as u64;
        offsets[i] = ((n + 1) * n * n.saturating_sub(1) / 6).wrapping_mul(PHI);
        i += 1;
    }
    offsets
};

/// An age-partitioned Bloom filter.
#[derive(Clone, Debug)]
pub struct Windowed {
    /// One slice behind the other.
    words: Words,
    size: WindowedSize,
    hashing: Hashing,
    paths: Paths,
    /// Insert calls, repeats included; unknown after an interrupted update.
    inserted: Option<u64>,
    /// The place of the newest slice. The one before it in the ring is a generation older.
    newest: u32,
    /// Inserts since that slice was cleared.
    young: u64,
    /// Set bits of each slice, by its place.
    ones: Vec<u64>,
    /// From a digest to a position in each slice.
    rule: Rule,
}

/// From a digest to a value in each slice, which is reduced to a position there.
///
/// The values of two keys differ by `(a - a') + i (b - b')` in slice `i`. If both differences are small, the keys have their
/// bits in the same places of all slices, and one is taken for the other: with a chance that grows with the keys and falls
/// with the square of a slice's bits. A slice is much shorter than a whole Bloom filter, and so that came to more than the
/// rate that was asked for (8.5e-5 in place of 1.5e-5, of 777 keys in slices of 448 bits). Squared, values that are near each
/// other in one slice are near in no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The value itself. Files from before are read, and no new ones made.
    Plain,
    /// The square of an odd value, and `x^2 + x` of an even one.
    Squared,
}

impl Rule {
    const ALL: [Self; 2] = [Self::Plain, Self::Squared];

    const fn probing(self) -> Probing {
        match self {
            Self::Plain => Probing::Sliced,
            Self::Squared => Probing::SlicedSquares,
        }
    }

    #[inline(always)]
    const fn value(self, digest: Digest, slice: u32) -> u64 {
        let steps = digest.b.wrapping_mul(slice as u64);
        let value = digest.a.wrapping_add(steps).wrapping_add(OFFSETS[slice as usize % MAX_SLICES]);
        match self {
            Self::Plain => value,
            // Each odd square has four roots, and no two even values have the same: so all high parts come equally often.
            Self::Squared => value.wrapping_mul(value | 1),
        }
    }
}

/// Two filters are equal if they give the same answer to every key, now and after the same inserts.
impl PartialEq for Windowed {
    fn eq(&self, other: &Self) -> bool {
        let rules = |size: &WindowedSize| (size.probes, size.generations, size.generation, size.slice_bits);
        rules(&self.size) == rules(&other.size)
            && (self.newest, self.young, self.rule) == (other.newest, other.young, other.rule)
            && self.hashing.must_equal(&other.hashing).is_ok()
            && self.words == other.words
    }
}

impl Windowed {
    /// An empty filter that remembers the last `capacity` keys at such a false-positive rate.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty filter of whatever was asked for.
    ///
    /// # Errors
    /// As for [`new`](Windowed::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        Ok(Self { paths: spec.paths, ..Self::of(spec.windowed()?, spec.hashed()?)? })
    }

    /// An empty filter that puts each key into `probes` slices and remembers so many generations of so many keys each:
    /// the `k`, `l` and `g` of the paper.
    ///
    /// # Errors
    /// As for [`new`](Windowed::new); and [`SpecError::Generations`] unless there are 1 to 3 for each slice of a key.
    pub fn with_slices(probes: u32, generations: u32, generation: u64) -> Result<Self, SpecError> {
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(SpecError::Probes { asked: probes });
        }
        let limit = WINDOWED_GENERATIONS * probes;
        if !(1..=limit).contains(&generations) {
            return Err(SpecError::Generations { asked: generations, limit });
        }
        if !(1..=MAX_CAPACITY).contains(&generation) {
            return Err(SpecError::Capacity { asked: generation, limit: MAX_CAPACITY });
        }
        let slice_bits = math::windowed_slice_bits(probes, generation);
        let fpr = math::windowed_fpr(probes, generations, generation, slice_bits);
        let capacity = generation * u64::from(generations);
        let size =
            WindowedSize { capacity, probes, generations, generation, slice_bits, fpr_asked: fpr, fpr };
        if size.bits() > MAX_BITS {
            return Err(SpecError::Bits { asked: size.bits(), limit: MAX_BITS });
        }
        Self::of(size, Hashing::default())
    }

    fn of(size: WindowedSize, hashing: Hashing) -> Result<Self, SpecError> {
        let words = Words::zeroed(size.bits() / 64)?;
        let ones = alloc::vec![0; size.slices() as usize];
        let rule = Rule::Squared;
        let (newest, young, paths) = (0, 0, Paths::default());
        Ok(Self { words, size, hashing, paths, inserted: Some(0), newest, young, ones, rule })
    }

    /// Inserts a key, as the newest one, and says whether it is perhaps among those that are remembered.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Insertion {
        let digest = self.hashing.digest_of(key);
        self.put(digest)
    }

    /// Whether a key is perhaps among those that are remembered. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_digest(self.hashing.digest_of(key))
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    pub fn contains_all<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.ask_all(keys, |keys, digests| K::digests(keys, &hashing, digests), hits);
    }

    /// Inserts many keys, several at a time in flight.
    pub fn insert_all<K: Key>(&mut self, keys: &[K]) {
        let hashing = self.hashing;
        self.put_all(keys, |keys, digests| K::digests(keys, &hashing, digests), |_| {});
    }

    /// Inserts many keys, several at a time in flight, and appends of each whether it was new: what drops the repeats of
    /// a stream.
    ///
    /// ```
    /// use mayhap::{Insertion::{New, Perhaps}, Windowed};
    ///
    /// let mut recent = Windowed::new(1000, 1e-6)?;
    /// let mut outcomes = Vec::new();
    /// recent.insert_and_tell(&["a", "b", "a"], &mut outcomes);
    /// assert_eq!(outcomes, [New, New, Perhaps]);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    pub fn insert_and_tell<K: Key>(&mut self, keys: &[K], outcomes: &mut Vec<Insertion>) {
        let hashing = self.hashing;
        outcomes.reserve(keys.len());
        let hash = |keys: &[K], digests: &mut [Digest]| K::digests(keys, &hashing, digests);
        self.put_all(keys, hash, |outcome| outcomes.push(outcome));
    }

    fn ask_all<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), hits: &mut Vec<bool>) {
        hits.reserve(keys.len());
        let mut filter = self;
        pipeline(
            &mut filter,
            keys,
            hash,
            is_far(self.paths, self.words.as_slice()),
            |filter, digest| filter.prefetch(digest, 0),
            |filter, digests| hits.extend(digests.iter().map(|&digest| filter.contains_digest(digest))),
        );
    }

    fn put_all<K>(
        &mut self,
        keys: &[K],
        hash: impl Fn(&[K], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) {
        let far = is_far(self.paths, self.words.as_slice());
        pipeline(
            self,
            keys,
            hash,
            far,
            |filter: &Self, digest| filter.prefetch(digest, filter.size.probes),
            |filter, digests| digests.iter().for_each(|&digest| told(filter.put(digest))),
        );
    }

    /// Asks for the lines of the `newest` slices, and of those that a question for a missing key is likely to look at.
    #[inline]
    fn prefetch(&self, digest: Digest, newest: u32) {
        let probes = self.size.probes;
        let ends = (1..=self.size.slices() / probes).flat_map(|stretch| {
            let end = stretch * probes;
            [end - 1, end.saturating_sub(2)]
        });
        for age in (0..newest).chain(ends.filter(|&age| age >= newest)) {
            prefetch(self.words.as_slice(), self.place(digest, self.slice(age)).0);
        }
    }

    /// The place of the slice of this age; the newest has the age 0.
    #[inline(always)]
    fn slice(&self, age: u32) -> u32 {
        if age <= self.newest { self.newest - age } else { self.newest + self.size.slices() - age }
    }

    /// Word and bit of a key in a slice.
    #[inline(always)]
    fn place(&self, digest: Digest, slice: u32) -> (usize, u64) {
        let value = self.rule.value(digest, slice);
        let position = u64::from(slice) * self.size.slice_bits + reduce(value, self.size.slice_bits);
        (index(position / 64), position % 64)
    }

    #[inline(always)]
    fn has(&self, digest: Digest, age: u32) -> bool {
        let (word, bit) = self.place(digest, self.slice(age));
        self.words.as_slice()[word] >> bit & 1 == 1
    }

    #[inline]
    fn put(&mut self, digest: Digest) -> Insertion {
        if self.young >= self.size.generation {
            self.age();
        }
        let found = self.contains_digest(digest);
        for age in 0..self.size.probes {
            let slice = self.slice(age);
            let (word, bit) = self.place(digest, slice);
            let word = &mut self.words.as_mut_slice()[word];
            // A header that was not compared with its payload may have claimed them all.
            let ones = &mut self.ones[slice as usize];
            *ones = self.size.slice_bits.min(*ones + u64::from(*word >> bit & 1 == 0));
            *word |= 1 << bit;
        }
        self.young += 1;
        // A crafted file may claim any number of calls: they end at the top instead of going round.
        self.inserted = self.inserted.map(|calls| calls.saturating_add(1));
        Insertion::new_if(!found)
    }

    /// A new generation: the oldest slice is cleared and becomes the newest.
    fn age(&mut self) {
        self.newest = (self.newest + 1) % self.size.slices();
        let words = index(self.size.slice_bits / 64);
        let start = self.newest as usize * words;
        self.words.as_mut_slice()[start..start + words].fill(0);
        self.ones[self.newest as usize] = 0;
        self.young = 0;
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.ones.fill(0);
        (self.newest, self.young, self.inserted) = (0, 0, Some(0));
    }

    /// The number of keys that it remembers at least.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.size.capacity
    }

    /// The slices that each key is in.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.size.probes
    }

    /// The bits of all slices.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.size.bits()
    }

    /// What it remembers, and in how many slices.
    #[must_use]
    pub fn window(&self) -> WindowReport {
        let (WindowedSize { generations, generation, .. }, slices) = (self.size, self.size.slices());
        let remembered = generation.saturating_mul(generations.into());
        WindowReport { remembered, forgotten: generation.saturating_mul(slices.into()), generation, slices }
    }

    /// How keys are hashed.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// How many keys went in, repeats included, and those that are forgotten too.
    #[must_use]
    pub fn inserted(&self) -> Option<u64> {
        self.inserted
    }

    /// How many different keys are probably remembered. Each stretch of `probes` generations is counted by the slice
    /// that has the keys of all of them, so that a key that came in several counts several times.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        let WindowedSize { probes, generations, slice_bits, .. } = self.size;
        let len = |age: u32| math::estimated_len(slice_bits, self.ones[self.slice(age) as usize], 1);
        // From the oldest on, so that the slices have no generation in common: the last of them is so young that it has
        // fewer than the others.
        (0..=generations).rev().step_by(probes as usize).map(len).sum()
    }

    /// The share of the bits that are set.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.ones.iter().sum::<u64>() as f64 / self.bits() as f64
    }

    /// The false-positive rate of the filter as it is, from the fills of its slices.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        let fill = |age| self.ones[self.slice(age) as usize] as f64 / self.size.slice_bits as f64;
        math::run_chance((0..self.size.slices()).map(fill), self.size.probes)
    }

    /// The false-positive rate at the end of a generation, when it is highest; of a filter that has aged.
    #[must_use]
    pub fn fpr_at_capacity(&self) -> f64 {
        self.size.fpr
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
        let known = |rule: &Rule| rule.probing().id() == header.probing;
        let rule = Rule::ALL.into_iter().find(known).ok_or(DecodeError::Probing { found: header.probing })?;
        header.must_be_hashed(hashing)?;
        let refused = |field, found| Err(DecodeError::Value { field, found });
        let mut fields = Fields::new(&header.params);
        let slice_bits = fields.u64("bits of a slice")?;
        let probes = fields.u32("probes")?;
        let generations = fields.u32("generations")?;
        let generation = fields.u64("keys of a generation")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let newest = fields.u32("newest slice")?;
        fields.zero_u32("padding of the parameters")?;
        let young = fields.u64("keys of the newest generation")?;
        if !(1..=MAX_PROBES).contains(&probes) {
            return refused("probes", probes.into());
        }
        if !(1..=WINDOWED_GENERATIONS * probes).contains(&generations) {
            return refused("generations", generations.into());
        }
        let slices = probes + generations;
        if !(1..=MAX_BITS / u64::from(slices)).contains(&slice_bits) || !slice_bits.is_multiple_of(64) {
            return refused("bits of a slice", slice_bits);
        }
        if generation == 0 {
            return refused("keys of a generation", generation);
        }
        if capacity == 0 || capacity > generation.saturating_mul(generations.into()) {
            return refused("capacity", capacity);
        }
        if newest >= slices {
            return refused("newest slice", newest.into());
        }
        if young > generation {
            return refused("keys of the newest generation", young);
        }
        let mut ones = Vec::with_capacity(slices as usize);
        for _ in 0..slices {
            let found = fields.u64("set bits of a slice")?;
            if found > slice_bits {
                return refused("set bits of a slice", found);
            }
            ones.push(found);
        }
        fields.end("parameters", header.params.len())?;
        let (expected, found) = (slice_bits / 8 * u64::from(slices), header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        if let Some(found) = header.ones.filter(|&found| found != ones.iter().sum::<u64>()) {
            return refused("set bits", found);
        }
        let (counted, inserted) = (header.ones.is_some(), header.inserted);
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let words = Words::from_bytes(payload)
            .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
        // Counted only when the whole payload is read anyway, so that a large file opens by its header.
        if frame.verified || !counted {
            let count = |slice: &[u64]| slice.iter().map(|word| u64::from(word.count_ones())).sum();
            let true_ones: Vec<u64> = words.as_slice().chunks(index(slice_bits / 64)).map(count).collect();
            if counted && let Some((&found, _)) = ones.iter().zip(&true_ones).find(|(found, is)| found != is)
            {
                return refused("set bits of a slice", found);
            }
            ones = true_ones;
        }
        let fpr = math::windowed_fpr(probes, generations, generation, slice_bits);
        let size = WindowedSize { capacity, probes, generations, generation, slice_bits, fpr_asked, fpr };
        let paths = Paths::default();
        Ok(Self { words, size, hashing, paths, inserted, newest, young, ones, rule })
    }
}

impl Filter for Windowed {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// Looks for `probes` slices in a row that have the key's bit. Each stretch is looked at from its older end, so that
    /// a slice without the bit rules out all stretches that contain it: the next one begins behind it.
    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        let (probes, slices) = (self.size.probes, self.size.slices());
        // The slices from `start` to before `known` have the bit.
        let (mut start, mut known) = (0, 0);
        while start + probes <= slices {
            let end = start + probes;
            let Some(missing) = (known..end).rev().find(|&age| !self.has(digest, age)) else { return true };
            (start, known) = (missing + 1, end);
        }
        false
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        self.ask_all(digests, copy, hits);
    }
}

impl Insert for Windowed {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        Ok(self.put(digest))
    }

    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        outcomes.reserve(digests.len());
        self.put_all(digests, copy, |outcome| outcomes.push(outcome));
        Ok(())
    }
}

impl AnyFilter for Windowed {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn report(&self) -> Report {
        let estimated_len = self.estimated_len();
        Report {
            capacity: self.size.capacity,
            inserted: self.inserted,
            estimated_len: estimated_len.is_finite().then_some(estimated_len),
            bits: self.bits(),
            probes: Some(self.size.probes),
            fill: self.fill(),
            fpr_asked: self.size.fpr_asked,
            fpr_now: self.fpr(),
            fpr_interval: None,
            fpr_at_capacity: self.size.fpr,
            guarantee: Guarantee::NoFalseNegativesInWindow,
        }
    }

    fn window(&self) -> Option<WindowReport> {
        Some(self.window())
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        let WindowedSize { capacity, probes, generations, generation, slice_bits, fpr_asked, .. } = self.size;
        out.probing(self.rule.probing());
        out.counts(self.inserted, self.ones.iter().sum());
        let params = out.params();
        params.u64(slice_bits).u32(probes).u32(generations).u64(generation).u64(capacity).f64(fpr_asked);
        params.u32(self.newest).u32(0).u64(self.young);
        self.ones.iter().for_each(|&ones| {
            params.u64(ones);
        });
        out.words(&self.words);
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.contains_all(keys, hits);
    }

    fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Error> {
        self.insert_and_tell(keys, outcomes);
        Ok(())
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }
}

impl<K: Key> Extend<K> for Windowed {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| {
            self.insert(key);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probing::{Walk, positions};

    /// One position in each slice, by the rule of all filters or from the squares of its values.
    #[test]
    fn a_slice_has_the_position_of_its_number() {
        for (probes, generations, generation) in [(1, 1, 1), (7, 5, 100), (64, 192, 3), (13, 20, 12_345)] {
            let mut filter = Windowed::with_slices(probes, generations, generation).unwrap();
            let slice_bits = filter.size.slice_bits;
            let at = |filter: &Windowed, digest: Digest, slice: u32| {
                let (word, bit) = filter.place(digest, slice);
                word as u64 * 64 + bit - u64::from(slice) * slice_bits
            };
            for key in 0..100u64 {
                let digest = Hashing::default().digest_of(key);
                let slices = filter.size.slices();
                filter.rule = Rule::Plain;
                for (slice, position) in (0..slices).zip(positions(digest, slices, slice_bits)) {
                    assert_eq!(at(&filter, digest, slice), position, "slice {slice} of {slices}");
                }
                filter.rule = Rule::Squared;
                let mut walk = Walk::new(digest);
                for slice in 0..slices {
                    let value = walk.next();
                    let position = reduce(value.wrapping_mul(value | 1), slice_bits);
                    assert_eq!(at(&filter, digest, slice), position, "slice {slice} of {slices}");
                }
            }
        }
    }

    /// Keys whose digests are near each other had their bits in the same places of all slices.
    #[test]
    fn neighbours_are_not_taken_for_each_other() {
        let mut filter = Windowed::with_slices(18, 54, 15).unwrap();
        let key = Digest { a: 0x0123_4567_89ab_cdef, b: 0xfedc_ba98_7654_3210 };
        filter.put(key);
        let near = (1..1000).map(|step: u64| Digest { a: key.a + (step << 30), b: key.b + step });
        assert_eq!(near.clone().filter(|&digest| filter.contains_digest(digest)).count(), 0);
        let mut old = Windowed { rule: Rule::Plain, ..Windowed::with_slices(18, 54, 15).unwrap() };
        old.put(key);
        assert!(near.filter(|&digest| old.contains_digest(digest)).count() > 900);
    }

    /// The walk that skips answers like one that looks at every stretch.
    #[test]
    fn stretches_that_are_skipped_cannot_match() {
        let mut filter = Windowed::with_slices(3, 8, 7).unwrap();
        for key in 0..2000u64 {
            filter.insert(key);
            for asked in (key.saturating_sub(100)..key).chain(1 << 40..(1 << 40) + 20) {
                let digest = filter.hashing.digest_of(asked);
                let slow = (0..=8).any(|start| (start..start + 3).all(|age| filter.has(digest, age)));
                assert_eq!(filter.contains_digest(digest), slow);
            }
        }
    }
}
