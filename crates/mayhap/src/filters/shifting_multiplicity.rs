//! Shifting Bloom filter of counts: how often is a key in?

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;

use crate::batch::{copy, pipeline};
use crate::bits::{Counters, WINDOW, Windows, WindowsMut, WindowsRef};
use crate::error::{DecodeError, Error, Knob, Mismatch, SpecError};
use crate::family::{AnyFilter, Capabilities, Cost, Details, Family, Guarantee, Make, Profile, Space};
use crate::filters::bloom::BloomSize;
use crate::filters::shifting::{
    COUNTER_BITS, Claim, PREFETCH_FROM_BYTES, counter_report, prefetch_counters, read_shape, saturated,
    window_bits, windows_must_agree, write_windows,
};
use crate::hash::{Digest, Hashing, Key};
use crate::math::{self, MAX_PROBES};
use crate::paths::Paths;
use crate::probing::{Probing, positions, with_distinct};
use crate::rates::{self, Rate};
use crate::shell::{Counts, Empty, Inserts, Kernel, Removes, filter};
use crate::spec::{Plan, Size, Spec};
use crate::traits::{Insertion, Removal};
use crate::wire::{Fields, Frame, Writer};

/// The family `shifting-multiplicity`.
pub(crate) static FAMILY: Family = Family {
    id: 15,
    name: "shifting-multiplicity",
    summary: "counts up to 57 of keys that were counted before",
    // Without counters. A union of the bits would have the larger count of a key, and not the sum.
    can: ShiftingMultiplicity::CAN,
    knobs: &[Knob::Probes.any(), COUNTER_BITS, Knob::MaxCount.within(1, MAX_COUNT)],
    probing: &[Probing::Scaled],
    cost: Cost { query: "O(k)", insert: "O(k) with counters", space: "1.44 n log2(57/p)" },
    make: Make::Counted(|spec, counts| Ok(Box::new(ShiftingMultiplicity::of_digests(spec, counts)?))),
    shared: None,
    plan: |spec| Ok(spec.shifting_multiplicity()?.plan()),
    decode: |frame, hashing| Ok(Box::new(ShiftingMultiplicity::decode(frame, hashing)?)),
    in_place: false,
    profile: Profile {
        space: Some(Space {
            per_key: |bits| core::f64::consts::LOG2_E * (bits + libm::log2(57.0)),
            less: 0.04,
            more: 0.01,
        }),
        ..Profile::USUAL
    },
};

/// The numbers of a shifting filter of counts, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ShiftingMultiplicitySize {
    /// The number of different keys it is made for.
    pub capacity: u64,
    /// The places at which a window may start.
    pub starts: u64,
    /// Windows per key.
    pub probes: u32,
    /// The largest count.
    pub max_count: u32,
    /// Bits of the counter of each bit, if it has one.
    pub counter_bits: Option<u32>,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate at which absent keys get a count at capacity.
    pub fpr: f64,
}

impl ShiftingMultiplicitySize {
    /// All bits, counters included.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        window_bits(self.starts, self.counter_bits)
    }
}

impl Size for ShiftingMultiplicitySize {
    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, probes, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(probes) }
    }
}

/// The largest count: the bits of one window.
pub const MAX_COUNT: u32 = WINDOW;

impl Spec {
    /// Solves for what is not requested, for a shifting filter of counts. The capacity is the number of different keys, the
    /// rate that of absent keys that get a count. Wrong counts of keys that are in are rarer.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn shifting_multiplicity(&self) -> Result<ShiftingMultiplicitySize, SpecError> {
        let asked = FAMILY.check(self)?;
        let (max_count, counter_bits) = (asked.max_count.unwrap_or(MAX_COUNT), asked.counter_bits);
        let size = asked.windows(1, |m, n, k| math::any_of(math::bloom_fpr(m, n, k), max_count))?;
        let BloomSize { capacity, bits: starts, probes, fpr_asked, fpr } = size;
        Ok(ShiftingMultiplicitySize { capacity, starts, probes, max_count, counter_bits, fpr_asked, fpr })
    }
}

/// Counts that are held before they are stored: many enough that a batch's start and end do not matter.
const AT_ONCE: usize = 4096;

filter! {
    /// A shifting Bloom filter of counts.
    ///
    /// **Answers** "how often does this key occur?", up to 57 times.
    /// **Promise** a count is never too low, up to the largest that it can tell; an absent key gets a count with the asked rate at
    /// capacity, and a key that is in a wrong one more rarely than that.
    /// **Not for** counts above 57, or keys that are counted one by one: see [`Spectral`](crate::Spectral).
    ///
    /// ```text
    ///   key ─▶ digest ─▶ places 1, 9             bits  0 0 0 1 0 0 1 0 0 0 0 1 0 1 0 1
    ///                                                    ├─────── window    ├─────── window
    ///                    in 3 times: bit 2 of each         ▲                  ▲        both windows have bit 2, and no later
    ///                                                                                  one in common: 3 times
    /// ```
    ///
    /// | operation | cache lines                           | can fail |
    /// |-----------|---------------------------------------|----------|
    /// | count     | `probes`, 1 in 9 twice; 2 or so for an absent key | no |
    /// | insert    | the same; with counters `probes` more | no       |
    /// | replace   | the same; with counters only          | no       |
    ///
    /// There are no counters in the way of a question: a key that is in `c` times has the bit `c - 1` of each of its windows,
    /// and a window is one load. What all windows of a key have in common are the candidates; the largest is the answer, so
    /// that it is never too low. So the count of a key must be known when it is stored, and a filter is
    /// [made of counts](ShiftingMultiplicity::of_counts).
    ///
    /// With [counters](Spec::with_counter_bits), one for each bit, counts can be changed later, in two ways. A caller that has
    /// the exact counts elsewhere gives the old and the new one ([`replace`](ShiftingMultiplicity::replace)), and no answer
    /// becomes too low. Otherwise the filter takes its own answer for the old one ([`insert`](ShiftingMultiplicity::insert) and
    /// [`remove`](ShiftingMultiplicity::remove)). Where that answer is too high, bits of other keys are cleared, and those may
    /// be denied from then on: the [report](AnyFilter::report) says so, for ever.
    ///
    /// **Paper** Yang, Liu, Shahzad, Zhong, Fu, Li, Xie, Li, *A Shifting Bloom Filter Framework for Set Queries*, PVLDB 2016.
    /// **We differ** in that one 128-bit hash gives all places, in that the different bits of a key are counted, so that two
    /// that meet do not raise a counter twice, and in that a count above the largest is stored as the largest.
    ///
    /// Two filters are equal if they give the same answer to every key, now and after the same changes: same size, hashing,
    /// bits and counters.
    ///
    /// The rate is that at which missing keys get a count. The number of inserted keys is the sum of all counts that were
    /// inserted.
    ///
    /// ```
    /// use mayhap::{ShiftingMultiplicity, Spec};
    ///
    /// let words = [("the", 40u64), ("filter", 3), ("mayhap", 1)];
    /// let filter = ShiftingMultiplicity::of_counts(&Spec::sized(1000, 1e-6), words)?;
    /// assert_eq!((filter.count("the"), filter.count("filter"), filter.count("mayhap")), (40, 3, 1));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ShiftingMultiplicity(Bits) = FAMILY {
        /// Bits are all that it takes, counters and the 56 bits behind the last place included. The number of keys must be
        /// given or follow from the other numbers.
        specified,
        /// Its count is one more than the filter's own answer. At the largest count it stays there.
        ///
        /// Where that answer is too high, other keys may be denied from then on, or get a count that is too low: see
        /// [`replace`](ShiftingMultiplicity::replace).
        ///
        /// A filter without counters cannot: [`Error::UnsupportedWithoutCounters`].
        may_insert,
        /// Its count is one less than the filter's own answer. At the largest count it is [`Stuck`](Removal::Stuck), since the
        /// true count may be larger; it also is if its counters are all saturated.
        ///
        /// As for [`insert`](ShiftingMultiplicity::insert), the answers for other keys may become too low.
        ///
        /// A filter without counters cannot: [`Error::UnsupportedWithoutCounters`].
        may_remove,
        /// At least as often as it is, up to the [largest](ShiftingMultiplicity::max_count) count.
        counts,
    }
}

/// The bits of a shifting Bloom filter of counts.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    windows: Windows,
    size: ShiftingMultiplicitySize,
    paths: Paths,
    /// Whether a count was ever changed that only the filter itself knew.
    guessed: bool,
}

/// From a digest to windows: arithmetic without memory.
#[derive(Clone, Copy, Debug)]
struct Shape {
    starts: u64,
    probes: u32,
    max_count: u32,
}

impl Shape {
    /// The count. `window` reads a window; it is not called again once there is no candidate.
    #[inline(always)]
    fn count(self, digest: Digest, mut window: impl FnMut(u64) -> u64) -> u64 {
        let mut candidates = u64::MAX >> (64 - self.max_count);
        for start in positions(digest, self.probes, self.starts) {
            candidates &= window(start);
            if candidates == 0 {
                return 0;
            }
        }
        // The largest candidate is at least the true one.
        u64::from(64 - candidates.leading_zeros())
    }

    /// Calls `then` with the bits of a key that is in `count` times, at least once.
    #[inline(always)]
    fn with_bits<R>(self, digest: Digest, count: u64, then: impl FnOnce(&[u64]) -> R) -> R {
        with_distinct(digest, self.probes, self.starts, |starts| {
            let mut places = [0; MAX_PROBES as usize];
            let places = &mut places[..starts.len()];
            places.iter_mut().zip(starts).for_each(|(place, start)| *place = start + (count - 1));
            then(places)
        })
    }

    #[inline(always)]
    fn prefetch(self, windows: WindowsRef<'_>, digest: Digest) {
        positions(digest, self.probes, self.starts).for_each(|start| windows.prefetch(start));
    }
}

/// Stores the count of one key, which is at least 1, and says whether that changed anything.
#[inline(always)]
fn put(windows: &mut WindowsMut<'_>, shape: Shape, digest: Digest, count: u64) -> bool {
    shape.with_bits(digest, count, |places| {
        prefetch_counters(windows, places);
        places.iter().fold(false, |new, &place| windows.raise(place) | new)
    })
}

/// Takes a count away, where there are counters.
fn take(windows: &mut WindowsMut<'_>, shape: Shape, digest: Digest, count: u64) {
    shape.with_bits(digest, count, |places| {
        prefetch_counters(windows, places);
        places.iter().for_each(|&place| windows.lower(place));
    });
}

impl Bits {
    fn shape(&self) -> Shape {
        let ShiftingMultiplicitySize { starts, probes, max_count, .. } = self.size;
        Shape { starts, probes, max_count }
    }

    /// Counts above the largest are the largest.
    fn stored(&self, count: u64) -> u64 {
        count.min(self.size.max_count.into())
    }

    /// Stores the counts of many keys, and returns their sum.
    #[inline(always)]
    fn insert_counts<T>(&mut self, counts: &[T], hash: impl Fn(&[T], &mut [(Digest, u64)])) -> u64 {
        let (shape, most) = (self.shape(), u64::from(self.size.max_count));
        let (mut windows, mut calls) = (self.windows.view_mut(), 0u64);
        let far = self.paths.is_far(windows.view().bytes(), PREFETCH_FROM_BYTES);
        let ahead = |windows: &WindowsMut<'_>, (digest, _)| shape.prefetch(windows.view(), digest);
        pipeline(&mut windows, counts, hash, far, ahead, |windows, counts| {
            for &(digest, count) in counts.iter().filter(|&&(_, count)| count > 0) {
                put(windows, shape, digest, count.min(most));
                calls = calls.saturating_add(count);
            }
        });
        calls
    }

    /// As [`ShiftingMultiplicity::replace`].
    fn replace(&mut self, digest: Digest, from: u64, to: u64) -> bool {
        let (shape, old, new) = (self.shape(), self.stored(from), self.stored(to));
        let windows = self.windows.view();
        let has = |start: u64| windows.window(start) >> (old - 1) & 1 == 1;
        if old > 0 && !positions(digest, shape.probes, shape.starts).all(has) {
            return false;
        }
        self.change(digest, old, new);
        true
    }

    fn change(&mut self, digest: Digest, old: u64, new: u64) {
        let (shape, mut windows) = (self.shape(), self.windows.view_mut());
        if old == new {
            return;
        }
        // First the new one, so that bits which both have are never unset.
        if new > 0 {
            put(&mut windows, shape, digest, new);
        }
        if old > 0 {
            take(&mut windows, shape, digest, old);
        }
    }

    #[inline(always)]
    fn ask_all<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), mut each: impl FnMut(u64)) {
        let (mut windows, shape) = (self.windows.view(), self.shape());
        let far = self.paths.is_far(windows.bytes(), PREFETCH_FROM_BYTES);
        let ahead = |windows: &WindowsRef<'_>, digest: Digest| shape.prefetch(*windows, digest);
        pipeline(&mut windows, keys, hash, far, ahead, |windows, digests| {
            digests.iter().for_each(|&digest| each(shape.count(digest, |start| windows.window(start))));
        });
    }
}

impl Kernel for Bits {
    type Hash = Digest;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.count(digest) > 0
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), hits: &mut [bool]) {
        let mut hits = hits.iter_mut();
        self.ask_all(keys, hash, |count| {
            if let Some(hit) = hits.next() {
                *hit = count > 0;
            }
        });
    }

    fn plan(&self) -> Plan {
        self.size.plan()
    }

    fn fill(&self) -> f64 {
        self.windows.ones() as f64 / self.windows.len() as f64
    }

    fn rate(&self) -> Rate {
        let (windows, ShiftingMultiplicitySize { probes, max_count, .. }) = (&self.windows, self.size);
        if u64::from(max_count) * (windows.starts() / 64) > rates::LOOKED_AT_WINDOWS {
            return Rate::computed(math::any_of(math::fpr_from_fill(self.fill(), probes), max_count));
        }
        let counts = (0..max_count).map(|count| math::fpr_from_fill(windows.share_with(1 << count), probes));
        let known = math::compounded_fpr(counts);
        rates::sampled_if_tiny(
            |digest| self.contains(digest),
            windows.starts(),
            probes,
            rates::SAMPLED_BY_FILL,
            known,
        )
    }

    fn estimated_len(&self) -> f64 {
        math::estimated_len(self.windows.len(), self.windows.ones(), self.size.probes)
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        windows_must_agree((self.plan(), self.size.counter_bits), (other.plan(), other.size.counter_bits))
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.size.max_count == other.size.max_count && self.windows == other.windows
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let ShiftingMultiplicitySize { capacity, starts, probes, max_count, counter_bits, fpr_asked, .. } =
            self.size;
        out.probing(Probing::Scaled);
        out.ones(self.windows.ones());
        out.params()
            .u64(starts)
            .u32(probes)
            .u32(WINDOW)
            .u32(counter_bits.unwrap_or(0))
            .u32(max_count)
            .u64(capacity)
            .f64(fpr_asked)
            .u64(saturated(&self.windows))
            .u32(self.guessed.into())
            .u32(0);
        write_windows(&self.windows, out);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(&frame.header.params);
        let starts = fields.u64("places")?;
        let probes = fields.u32("probes")?;
        let counter_bits = read_shape(&mut fields)?;
        let max_count = fields.u32("largest count")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let claim = Claim { starts, counter_bits, saturated: fields.u64("saturated counters")? };
        let guessed = fields.u32("guessed")?;
        fields.zero_u32("padding of the parameters")?;
        fields.end("parameters", frame.header.params.len())?;
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(DecodeError::Value { field: "probes", found: probes.into() });
        }
        if !(1..=MAX_COUNT).contains(&max_count) {
            return Err(DecodeError::Value { field: "largest count", found: max_count.into() });
        }
        // Nothing can be changed without counters.
        if guessed > u32::from(counter_bits.is_some()) {
            return Err(DecodeError::Value { field: "guessed", found: guessed.into() });
        }
        let windows = claim.windows(frame)?;
        let fpr = math::any_of(math::bloom_fpr(starts, capacity as f64, probes), max_count);
        let size =
            ShiftingMultiplicitySize { capacity, starts, probes, max_count, counter_bits, fpr_asked, fpr };
        Ok(Self { windows, size, paths: Paths::default(), guessed: guessed == 1 })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn details(&self) -> Details<'_> {
        Details { counters: counter_report(&self.windows, self.size.counter_bits), ..Details::default() }
    }

    fn guarantee(&self) -> Guarantee {
        match self.size.counter_bits {
            None => Guarantee::NoFalseNegatives,
            Some(_) if self.guessed => Guarantee::FalseNegativesPossible,
            Some(_) => Guarantee::NoFalseNegativesIfDeletesValid,
        }
    }

    fn can(&self) -> Option<Capabilities> {
        let changes = self.size.counter_bits.is_some();
        Some(Capabilities { inserts: changes, removes: changes, ..ShiftingMultiplicity::CAN })
    }

    fn unsupported(&self, operation: &'static str) -> Option<Error> {
        let family = FAMILY.name;
        matches!(operation, "insert" | "remove" | "replace")
            .then_some(Error::UnsupportedWithoutCounters { family, operation })
    }
}

impl Empty for Bits {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let size = spec.shifting_multiplicity()?;
        let windows = Windows::zeroed(size.starts, size.counter_bits)?;
        Ok(Self { windows, size, paths: spec.paths, guessed: false })
    }

    /// No counter is saturated afterwards, and no count guessed.
    fn clear(&mut self) {
        self.windows.clear();
        self.guessed = false;
    }
}

/// From the filter's own answer. A filter without counters does not offer it; then the next count is stored beside the old
/// one.
impl Inserts for Bits {
    type Error = Infallible;

    fn insert(&mut self, digest: Digest) -> Result<Insertion, Infallible> {
        let old = self.count(digest);
        // Without counters no bit is unset, and no other answer becomes wrong.
        self.guessed |= self.size.counter_bits.is_some();
        self.change(digest, old, self.stored(old + 1));
        Ok(Insertion::new_if(old == 0))
    }

    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Infallible> {
        let insert = |bits: &mut Self, digests: &[Digest]| {
            for &digest in digests {
                let Ok(outcome) = bits.insert(digest);
                told(outcome);
            }
        };
        pipeline(self, keys, hash, false, |_, _| {}, insert);
        Ok(())
    }
}

/// From the filter's own answer. From a filter without counters nothing is removed, and every key is absent; it does not offer
/// it.
impl Removes for Bits {
    fn remove(&mut self, digest: Digest) -> Removal {
        let old = self.count(digest);
        if self.size.counter_bits.is_none() || old == 0 {
            return Removal::Absent;
        }
        let counters = self.windows.counters().map(Counters::view);
        let is_at_top = |places: &[u64]| {
            counters.is_some_and(|counters| places.iter().all(|&place| counters.get(place) == counters.max()))
        };
        if old >= self.size.max_count.into() || self.shape().with_bits(digest, old, is_at_top) {
            return Removal::Stuck;
        }
        self.guessed = true;
        self.change(digest, old, old - 1);
        Removal::Removed
    }
}

impl Counts for Bits {
    #[inline]
    fn count(&self, digest: Digest) -> u64 {
        let windows = self.windows.view();
        self.shape().count(digest, |start| windows.window(start))
    }

    #[inline(always)]
    fn count_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), counts: &mut Vec<u64>) {
        self.ask_all(keys, hash, |count| counts.push(count));
    }

    fn ceiling(&self) -> u64 {
        self.size.max_count.into()
    }
}

impl ShiftingMultiplicity {
    /// A filter of keys, each once with how often it is in. Without a capacity it is made for as many keys as there are;
    /// they are held until then.
    ///
    /// A key with a count of 0 is not in, and one above the [largest](ShiftingMultiplicity::max_count) is in that
    /// often or more.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn of_counts<K: Key>(
        spec: &Spec,
        counts: impl IntoIterator<Item = (K, u64)>,
    ) -> Result<Self, SpecError> {
        let hashing = spec.hashed()?;
        let counts: Vec<(Digest, u64)> = counts
            .into_iter()
            .filter(|&(_, count)| count > 0)
            .map(|(key, count)| (hashing.digest_of(key), count))
            .collect();
        Self::of_digests(&spec.for_keys(counts.len() as u64), &mut counts.into_iter())
    }

    /// The same of keys that are hashed already, as the spec says, which must say for how many keys it is too.
    ///
    /// # Errors
    /// As for [`of_counts`](ShiftingMultiplicity::of_counts).
    pub fn of_digests(
        spec: &Spec,
        counts: &mut dyn Iterator<Item = (Digest, u64)>,
    ) -> Result<Self, SpecError> {
        let mut filter = Self::from_spec(spec)?;
        let mut some: Vec<(Digest, u64)> = Vec::new();
        loop {
            some.clear();
            some.extend(counts.take(AT_ONCE));
            if some.is_empty() {
                return Ok(filter);
            }
            let calls = filter.0.kernel.insert_counts(&some, copy);
            filter.0.add_inserted(calls);
        }
    }

    /// Stores the count of a key that was not in before. A count of 0 stores nothing.
    ///
    /// A key that was in with another count gets the larger one, and its old bits stay.
    pub fn insert_count(&mut self, key: impl Key, count: u64) -> Insertion {
        let digest = self.hashing().digest_of(key);
        let (shape, stored) = (self.0.kernel.shape(), self.0.kernel.stored(count));
        if stored == 0 {
            return Insertion::Perhaps;
        }
        self.0.add_inserted(count);
        Insertion::new_if(put(&mut self.0.kernel.windows.view_mut(), shape, digest, stored))
    }

    /// Stores the counts of many keys, several at a time in flight.
    pub fn insert_counts<K: Key>(&mut self, counts: &[(K, u64)]) {
        let hashing = self.hashing();
        let calls = self.0.kernel.insert_counts(counts, |counts, to| {
            to.iter_mut().zip(counts).for_each(|(to, (key, count))| *to = (hashing.digest_of(key), *count));
        });
        self.0.add_inserted(calls);
    }

    /// Changes the count of a key from one that is known exactly to another; 0 is a key that is not in. `false`: it was
    /// certainly not in that often, and nothing has changed.
    ///
    /// No answer becomes too low, as long as the old counts are right.
    ///
    /// ```
    /// use mayhap::{ShiftingMultiplicity, Spec};
    ///
    /// let mut filter = ShiftingMultiplicity::from_spec(&Spec::sized(1000, 1e-6).with_counter_bits(4))?;
    /// assert!(filter.replace("key", 0, 5)? && filter.replace("key", 5, 2)?);
    /// assert_eq!(filter.count("key"), 2);
    /// assert!(!filter.replace("key", 3, 4)?); // it was in twice
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedWithoutCounters`] if it has none.
    pub fn replace(&mut self, key: impl Key, from: u64, to: u64) -> Result<bool, Error> {
        if self.counter_bits().is_none() {
            return Err(self.unsupported("replace"));
        }
        let digest = self.hashing().digest_of(key);
        let replaced = self.0.kernel.replace(digest, from, to);
        if replaced {
            self.0.add_inserted(to.saturating_sub(from));
        }
        Ok(replaced)
    }

    /// The count of a key. `read` is called with the number of the first of the 8 bytes of each load, for benchmarks that
    /// count cache lines.
    #[doc(hidden)]
    #[doc(hidden)]
    pub fn count_traced(&self, key: impl Key, mut read: impl FnMut(u64)) -> u64 {
        let windows = self.0.kernel.windows.view();
        self.0.kernel.shape().count(self.hashing().digest_of(key), |start| {
            read(start / 8);
            windows.window(start)
        })
    }

    /// The places at which a window may start.
    #[must_use]
    pub fn starts(&self) -> u64 {
        self.0.kernel.windows.starts()
    }

    /// Windows per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.0.kernel.size.probes
    }

    /// The largest count that it can tell. A key with this count was inserted as often, or more often.
    #[must_use]
    pub fn max_count(&self) -> u64 {
        self.0.kernel.size.max_count.into()
    }

    /// Whether counts were changed that only the filter itself knew, so that keys that are in may be denied.
    #[must_use]
    pub fn has_guessed(&self) -> bool {
        self.0.kernel.guessed
    }

    /// Bits of each counter, if there are any.
    #[must_use]
    pub fn counter_bits(&self) -> Option<u32> {
        self.0.kernel.size.counter_bits
    }

    /// How many counters are at their top, where they stay. Their keys cannot be removed.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        saturated(&self.0.kernel.windows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_the_largest_candidate() {
        let shape = Shape { starts: 1000, probes: 3, max_count: 57 };
        let digest = Hashing::default().digest_of(1u64);
        let told = |shape: Shape, windows: [u64; 3]| {
            let mut read = windows.into_iter();
            shape.count(digest, |_| read.next().unwrap())
        };
        assert_eq!(told(shape, [u64::MAX; 3]), 57);
        assert_eq!(told(Shape { max_count: 1, ..shape }, [u64::MAX; 3]), 1);
        assert_eq!(told(shape, [0b1011, 0b1110, 0b11010]), 4);
        assert_eq!(told(shape, [1, 1, 1]), 1);
        assert_eq!(told(shape, [0b10, 0b01, 0b11]), 0);
        // What lies behind the largest count belongs to others.
        assert_eq!(told(Shape { max_count: 8, ..shape }, [0b1_0000_0100; 3]), 3);
    }

    #[test]
    fn a_question_stops_when_there_is_no_candidate() {
        let shape = Shape { starts: 1000, probes: 9, max_count: 57 };
        for failing in 1..=9 {
            let mut loads = 0;
            let count = shape.count(Hashing::default().digest_of(1u64), |_| {
                loads += 1;
                if loads == failing { 0 } else { u64::MAX }
            });
            assert_eq!((count, loads), (0, failing));
        }
    }
}
