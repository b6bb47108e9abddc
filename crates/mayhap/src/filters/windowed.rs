//! Age-partitioned Bloom filter: remembers the last keys of an endless stream, and forgets the older ones.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;

use crate::batch::pipeline;
use crate::bits::Words;
use crate::error::{DecodeError, Knob, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{Cost, Details, Family, Guarantee, Make, Profile, WindowReport};
use crate::hash::{Digest, Hashing, Key};
use crate::math::{self, MAX_PROBES, WINDOWED_GENERATIONS, first_false};
use crate::narrow::{index, whole};
use crate::paths::Paths;
use crate::probing::{PHI, Probing, reduce};
use crate::rates::Rate;
use crate::raw::simd::prefetch;
use crate::raw::simd::probes::is_far;
use crate::shell::{self, Empty, Inserts, Kernel, Shell, filter};
use crate::spec::{CAPACITY, MAX_BITS, Plan, Size, Spec};
use crate::traits::Insertion;
use crate::wire::{Fields, Frame, Writer};

/// The family `windowed`.
pub(crate) static FAMILY: Family = Family {
    id: 16,
    name: "windowed",
    summary: "remembers the last n keys of an endless stream",
    can: Windowed::CAN,
    knobs: &[],
    probing: &[SLICED, SLICED_SQUARES],
    cost: Cost { query: "O(k)", insert: "O(k) amortized", space: "2.2 to 3.8 n log2(1/p)" },
    make: Make::Empty(|spec| Ok(Box::new(Windowed::from_spec(spec)?))),
    shared: None,
    plan: |spec| Ok(spec.windowed()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Windowed::decode(frame, hashing)?)),
    // Slices are cleared: a writer that dies there has forgotten keys that the header still counts.
    in_place: false,
    profile: Profile { is_ordered: true, ..Profile::USUAL },
};

/// One of the scaled positions in each slice; in files from before [`SLICED_SQUARES`].
const SLICED: Probing = Probing::new(16, "sliced");

/// One position in each slice, from the square of the value that the scaled positions have there.
const SLICED_SQUARES: Probing = Probing::new(21, "sliced-squares");

/// The numbers of a windowed filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct WindowedSize {
    /// The number of keys that it remembers at least.
    pub capacity: u64,
    /// Slices that each key is in.
    pub probes: u32,
    /// Generations that are remembered in full.
    pub generations: u32,
    /// Keys of a generation.
    pub generation: u64,
    /// Bits of each slice; a multiple of 64.
    pub slice_bits: u64,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give at the end of a generation, when it is highest.
    pub fpr: f64,
}

impl WindowedSize {
    /// A filter for the last `capacity` keys with `probes` slices for each, and `generations` generations. Its rates are not
    /// computed.
    fn of(capacity: u64, probes: u32, generations: u32) -> Self {
        let generation = capacity.div_ceil(generations.into());
        let slice_bits = math::windowed_slice_bits(probes, generation);
        Self { capacity, probes, generations, generation, slice_bits, fpr_asked: 1.0, fpr: 1.0 }
    }

    /// The one with the fewest bits that keeps a rate; `None` if none does.
    fn smallest(capacity: u64, fpr: f64) -> Option<Self> {
        let mut best: Option<Self> = None;
        for probes in 1..=MAX_PROBES {
            // No number of generations takes fewer bits than this. Most slices per key are ruled out by it.
            let most = WINDOWED_GENERATIONS * probes;
            let least = u64::from(probes + 1).saturating_mul(Self::of(capacity, probes, most).slice_bits);
            let half_full = capacity as f64 * f64::from(probes) / core::f64::consts::LN_2;
            let least = least.max(whole(half_full * f64::from(probes + most) / f64::from(most)));
            if best.is_some_and(|best| best.bits() <= least) {
                continue;
            }
            let keeping = math::windowed_fprs(probes).take_while(|&rate| rate <= fpr).zip(1..);
            let sizes = keeping.map(|(_, generations)| Self::of(capacity, probes, generations));
            best = best.into_iter().chain(sizes).min_by_key(Self::bits);
        }
        best
    }

    /// The slices: those of a key, and one more for each generation that is remembered.
    #[must_use]
    pub const fn slices(&self) -> u32 {
        self.probes + self.generations
    }

    /// The bits of all slices together.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.slice_bits.saturating_mul(self.slices() as u64)
    }
}

impl Size for WindowedSize {
    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, probes, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(probes) }
    }
}

impl Spec {
    /// Solves for what is not requested, for a windowed filter: the slices and generations that take the fewest bits.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(1_000_000, 0.01).windowed()?;
    /// assert_eq!((sized.probes, sized.generations, sized.generation), (10, 24, 41_667));
    /// assert!(sized.fpr <= 0.01 && sized.bits() < 20_500_000);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn windowed(&self) -> Result<WindowedSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let fitting =
            |n: u64, p: f64, bits: u64| WindowedSize::smallest(n, p).filter(|size| size.bits() <= bits);
        let size = asked.solved(
            WindowedSize::smallest,
            |n, bits, p| {
                if let Some(p) = p {
                    return fitting(n, p, bits);
                }
                let of = |probes: u32| {
                    let rates = (1..).zip(math::windowed_fprs(probes));
                    rates.map(move |(generations, fpr)| WindowedSize {
                        fpr,
                        ..WindowedSize::of(n, probes, generations)
                    })
                };
                let fits = (1..=MAX_PROBES).flat_map(of).filter(|size| size.bits() <= bits);
                fits.min_by(|one, other| one.fpr.total_cmp(&other.fpr))
            },
            |bits, p| {
                let n = first_false(1, bits + 1, |n| fitting(n, p, bits).is_some()) - 1;
                (n > 0).then(|| fitting(n, p, bits)).flatten()
            },
        )?;
        let WindowedSize { probes, generations, generation, slice_bits, .. } = size;
        let fpr = math::windowed_fpr(probes, generations, generation, slice_bits);
        Ok(WindowedSize { fpr_asked: asked.fpr.unwrap_or(fpr), fpr, ..size })
    }
}

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

/// From a digest to a value in each slice, which is reduced to a position there.
///
/// The values of two keys differ by `(a - a') + i (b - b')` in slice `i`. If both differences are small, the keys have their
/// bits in the same places of all slices, and one is taken for the other: with a chance that grows with the keys and falls
/// with the square of a slice's bits. A slice is much shorter than a whole Bloom filter, and so that came to more than the
/// requested rate (8.5e-5 in place of 1.5e-5, of 777 keys in slices of 448 bits). Squared, values that are near each
/// other in one slice are near in no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stirring {
    /// The value itself. Only old files use it.
    Plain,
    /// The square of an odd value, and `x^2 + x` of an even one.
    Squared,
}

impl Stirring {
    const ALL: [Self; 2] = [Self::Plain, Self::Squared];

    const fn probing(self) -> Probing {
        match self {
            Self::Plain => SLICED,
            Self::Squared => SLICED_SQUARES,
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

filter! {
    /// An age-partitioned Bloom filter.
    ///
    /// **Answers** "was this key among the last W that were inserted?"
    /// **Promise** a key among the last W is never denied; a key that was never inserted is admitted with at most the
    /// requested rate, however long the stream is. A key behind the window is forgotten gradually.
    /// **Not for** sets that must not lose a key; windows of time instead of numbers of keys.
    ///
    /// ```text
    ///   newest                                        oldest
    ///   slice 2    slice 1    slice 0    slice 4    slice 3      a ring of k + l slices, here k = 2, l = 3
    ///   0 1 0 0 0  0 0 1 0 1  1 0 1 0 0  0 1 1 0 0  1 0 0 1 0
    ///     ▲            ▲                                         insert: one bit in each of the k newest
    ///                         ▲            ▲                     contains: k neighbours that have its bit, anywhere
    /// ```
    ///
    /// | operation | cache lines                                              | can fail |
    /// |-----------|----------------------------------------------------------|----------|
    /// | contains  | `k`; for a miss 2 in each `k` slices or so               | no       |
    /// | insert    | the same, and `k`; clears a slice once in a generation   | no       |
    ///
    /// After a generation of `g` inserts the oldest slice is cleared and becomes the newest. A key of the
    /// generation before has its bits one slice further back then, and still in `k` neighbours, until the first of them is
    /// cleared: after `l` generations. Then a neighbour must have the missing bit by chance: one in two admits the key, in
    /// the next generation one in four, and so on, until after `k + l` generations nothing is left of it. So `l g` keys are
    /// remembered in full, and `l`, `g` and `k` are chosen such that the window takes the fewest bits ([`Spec::windowed`]).
    /// The hash of a slice belongs to its place, not to its age.
    ///
    /// Every insert counts, also of a key that is probably in already: it is remembered from then on.
    ///
    /// **Paper** Shtul, Baquero, Almeida, *Age-Partitioned Bloom Filters*, 2020.
    /// **We differ** in that the slice is changed before the insert that needs it and not after the one before, so that one
    /// key more is remembered.
    ///
    /// Two filters are equal if they give the same answer to every key, now and after the same inserts.
    ///
    /// Its capacity is the number of keys that it remembers at least. The number of inserted keys includes forgotten ones. The
    /// rate at capacity is that at the end of a generation, when it is highest. The estimated number of keys is that of the
    /// remembered ones; a key that was inserted in several generations may count several times.
    ///
    /// ```
    /// use mayhap::{Insertion, Windowed};
    ///
    /// let mut recent = Windowed::new(1000, 0.001)?; // the last thousand
    /// for event in 0..100_000u64 {
    ///     recent.insert(event);
    /// }
    /// assert!((99_000..100_000u64).all(|event| recent.contains(event)));
    /// assert_eq!(recent.insert(99_500u64), Insertion::Perhaps);
    /// assert!(recent.fpr() <= 0.001);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Windowed(Slices) = FAMILY {
        new,
        specified,
        /// It is the newest key now. The outcome says whether it is probably among the remembered keys.
        inserts,
    }
}

/// The slices of an age-partitioned Bloom filter.
#[derive(Clone, Debug)]
pub(crate) struct Slices {
    /// One slice behind the other.
    words: Words,
    size: WindowedSize,
    paths: Paths,
    /// The place of the newest slice. The one before it in the ring is a generation older.
    newest: u32,
    /// Inserts since that slice was cleared.
    young: u64,
    /// Set bits of each slice, by its place.
    ones: Vec<u64>,
    /// From a digest to a position in each slice.
    rule: Stirring,
}

impl Slices {
    fn of(size: WindowedSize, paths: Paths) -> Result<Self, SpecError> {
        let words = Words::zeroed(size.bits() / 64)?;
        let ones = alloc::vec![0; size.slices() as usize];
        Ok(Self { words, size, paths, newest: 0, young: 0, ones, rule: Stirring::Squared })
    }

    /// Prefetches the lines of the `newest` slices, and of those that a lookup of a missing key is likely to read.
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

    /// A new generation: the oldest slice is cleared and becomes the newest.
    fn age(&mut self) {
        self.newest = (self.newest + 1) % self.size.slices();
        let words = index(self.size.slice_bits / 64);
        let start = self.newest as usize * words;
        self.words.as_mut_slice()[start..start + words].fill(0);
        self.ones[self.newest as usize] = 0;
        self.young = 0;
    }

    fn remembered(&self) -> WindowReport {
        let (WindowedSize { generations, generation, .. }, slices) = (self.size, self.size.slices());
        let remembered = generation.saturating_mul(generations.into());
        WindowReport { remembered, forgotten: generation.saturating_mul(slices.into()), generation, slices }
    }
}

impl Kernel for Slices {
    type Hash = Digest;

    const GUARANTEE: Guarantee = Guarantee::NoFalseNegativesInWindow;

    /// Searches for `probes` slices in a row that have the key's bit. Each stretch is read from its older end, so that
    /// a slice without the bit rules out all stretches that contain it: the next one begins behind it.
    #[inline]
    fn contains(&self, digest: Digest) -> bool {
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

    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), mut hits: &mut [bool]) {
        let mut slices = self;
        pipeline(
            &mut slices,
            keys,
            hash,
            is_far(self.paths, self.words.as_slice()),
            |slices, digest| slices.prefetch(digest, 0),
            |slices, digests| {
                let hits = hits.split_off_mut(..digests.len()).expect("one answer per key");
                for (hit, &digest) in hits.iter_mut().zip(digests) {
                    *hit = slices.contains(digest);
                }
            },
        );
    }

    fn plan(&self) -> Plan {
        self.size.plan()
    }

    fn fill(&self) -> f64 {
        self.ones.iter().sum::<u64>() as f64 / self.size.bits() as f64
    }

    /// From the fills of its slices.
    fn rate(&self) -> Rate {
        let fill = |age| self.ones[self.slice(age) as usize] as f64 / self.size.slice_bits as f64;
        Rate::computed(math::run_chance((0..self.size.slices()).map(fill), self.size.probes))
    }

    /// Each stretch of `probes` generations is counted by the slice that has the keys of all of them.
    fn estimated_len(&self) -> f64 {
        let WindowedSize { probes, generations, slice_bits, .. } = self.size;
        let len = |age: u32| math::estimated_len(slice_bits, self.ones[self.slice(age) as usize], 1);
        // From the oldest on, so that the slices have no generation in common: the last of them is so young that it has
        // fewer keys than the others.
        (0..=generations).rev().step_by(probes as usize).map(len).sum()
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(self.size, other.size, |size| {
            [(Parameter::Bits, size.bits().into()), (Parameter::Probes, size.probes.into())]
        })
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        (self.size.generations, self.size.generation) == (other.size.generations, other.size.generation)
            && (self.newest, self.young, self.rule) == (other.newest, other.young, other.rule)
            && self.words == other.words
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let WindowedSize { capacity, probes, generations, generation, slice_bits, fpr_asked, .. } = self.size;
        out.probing(self.rule.probing());
        out.ones(self.ones.iter().sum());
        let params = out.params();
        params.u64(slice_bits).u32(probes).u32(generations).u64(generation).u64(capacity).f64(fpr_asked);
        params.u32(self.newest).u32(0).u64(self.young);
        self.ones.iter().for_each(|&ones| {
            params.u64(ones);
        });
        out.words(&self.words);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let known = |rule: &Stirring| rule.probing().id() == header.probing;
        let rule =
            Stirring::ALL.into_iter().find(known).ok_or(DecodeError::Probing { found: header.probing })?;
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
        let words = shell::take_words(frame, slice_bits / 8 * u64::from(slices))?;
        let stored = frame.header.ones;
        if let Some(found) = stored.filter(|&found| found != ones.iter().sum::<u64>()) {
            return refused("set bits", found);
        }
        // Counted only if the whole payload is read anyway, so that a large file opens by its header.
        if frame.verified || stored.is_none() {
            let count = |slice: &[u64]| slice.iter().map(|word| u64::from(word.count_ones())).sum();
            let true_ones: Vec<u64> = words.as_slice().chunks(index(slice_bits / 64)).map(count).collect();
            if stored.is_some()
                && let Some((&found, _)) = ones.iter().zip(&true_ones).find(|(found, is)| found != is)
            {
                return refused("set bits of a slice", found);
            }
            ones = true_ones;
        }
        let fpr = math::windowed_fpr(probes, generations, generation, slice_bits);
        let size = WindowedSize { capacity, probes, generations, generation, slice_bits, fpr_asked, fpr };
        Ok(Self { words, size, paths: Paths::default(), newest, young, ones, rule })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn details(&self) -> Details<'_> {
        Details { window: Some(self.remembered()), ..Details::default() }
    }
}

impl Empty for Slices {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        Self::of(spec.windowed()?, spec.paths)
    }

    fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.ones.fill(0);
        (self.newest, self.young) = (0, 0);
    }
}

impl Inserts for Slices {
    type Error = Infallible;

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<Insertion, Infallible> {
        if self.young >= self.size.generation {
            self.age();
        }
        let found = self.contains(digest);
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
        Ok(Insertion::new_if(!found))
    }

    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Infallible> {
        let far = is_far(self.paths, self.words.as_slice());
        pipeline(
            self,
            keys,
            hash,
            far,
            |slices: &Self, digest| slices.prefetch(digest, slices.size.probes),
            |slices, digests| {
                for &digest in digests {
                    let Ok(outcome) = slices.insert(digest);
                    told(outcome);
                }
            },
        );
        Ok(())
    }
}

impl Windowed {
    /// An empty filter that puts each key into `probes` slices and remembers `generations` generations of `generation`
    /// keys each: the `k`, `l` and `g` of the paper.
    ///
    /// # Errors
    /// As for [`new`](Windowed::new); and [`SpecError::Range`] unless there are 1 to 3 generations for each slice of a key.
    pub fn with_slices(probes: u32, generations: u32, generation: u64) -> Result<Self, SpecError> {
        Knob::Probes.within(1, MAX_PROBES).check(probes.into())?;
        Knob::Generations.within(1, WINDOWED_GENERATIONS * probes).check(generations.into())?;
        CAPACITY.check(generation.into())?;
        let slice_bits = math::windowed_slice_bits(probes, generation);
        let fpr = math::windowed_fpr(probes, generations, generation, slice_bits);
        let capacity = generation * u64::from(generations);
        let size =
            WindowedSize { capacity, probes, generations, generation, slice_bits, fpr_asked: fpr, fpr };
        if size.bits() > MAX_BITS {
            return Err(SpecError::TooLarge { bits: size.bits(), limit: MAX_BITS });
        }
        let kernel = Slices::of(size, Paths::default())?;
        Ok(Self(Shell { kernel, hashing: Hashing::default(), inserted: Some(0) }))
    }

    /// Inserts many keys, several at a time in flight, and appends for each whether it was new: this removes the repeats of
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
        self.0.insert_each(keys, outcomes).expect("there is always room");
    }

    /// The slices that each key is in.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.0.kernel.size.probes
    }

    /// What it remembers, and in how many slices.
    #[must_use]
    pub fn window(&self) -> WindowReport {
        self.0.kernel.remembered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probing::{Walk, positions};

    fn sliced(probes: u32, generations: u32, generation: u64) -> Slices {
        Windowed::with_slices(probes, generations, generation).unwrap().0.kernel
    }

    /// One position in each slice, by the rule of all filters or from the squares of its values.
    #[test]
    fn a_slice_has_the_position_of_its_number() {
        for (probes, generations, generation) in [(1, 1, 1), (7, 5, 100), (64, 192, 3), (13, 20, 12_345)] {
            let mut slices = sliced(probes, generations, generation);
            let slice_bits = slices.size.slice_bits;
            let at = |slices: &Slices, digest: Digest, slice: u32| {
                let (word, bit) = slices.place(digest, slice);
                word as u64 * 64 + bit - u64::from(slice) * slice_bits
            };
            for key in 0..100u64 {
                let digest = Hashing::default().digest_of(key);
                let count = slices.size.slices();
                slices.rule = Stirring::Plain;
                for (slice, position) in (0..count).zip(positions(digest, count, slice_bits)) {
                    assert_eq!(at(&slices, digest, slice), position, "slice {slice} of {count}");
                }
                slices.rule = Stirring::Squared;
                let mut walk = Walk::new(digest);
                for slice in 0..count {
                    let value = walk.next();
                    let position = reduce(value.wrapping_mul(value | 1), slice_bits);
                    assert_eq!(at(&slices, digest, slice), position, "slice {slice} of {count}");
                }
            }
        }
    }

    /// Keys whose digests are near each other had their bits in the same places of all slices.
    #[test]
    fn neighbours_are_not_taken_for_each_other() {
        let mut slices = sliced(18, 54, 15);
        let key = Digest { a: 0x0123_4567_89ab_cdef, b: 0xfedc_ba98_7654_3210 };
        let Ok(_) = slices.insert(key);
        let near = (1..1000).map(|step: u64| Digest { a: key.a + (step << 30), b: key.b + step });
        assert_eq!(near.clone().filter(|&digest| slices.contains(digest)).count(), 0);
        let mut old = Slices { rule: Stirring::Plain, ..sliced(18, 54, 15) };
        let Ok(_) = old.insert(key);
        assert!(near.filter(|&digest| old.contains(digest)).count() > 900);
    }

    /// The walk that skips answers like one that looks at every stretch.
    #[test]
    fn stretches_that_are_skipped_cannot_match() {
        let mut filter = Windowed::with_slices(3, 8, 7).unwrap();
        for key in 0..2000u64 {
            filter.insert(key);
            for asked in (key.saturating_sub(100)..key).chain(1 << 40..(1 << 40) + 20) {
                let digest = filter.hashing().digest_of(asked);
                let slow =
                    (0..=8).any(|start| (start..start + 3).all(|age| filter.0.kernel.has(digest, age)));
                assert_eq!(filter.0.kernel.contains(digest), slow);
            }
        }
    }
}
