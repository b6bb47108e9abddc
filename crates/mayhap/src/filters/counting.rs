//! Counting Bloom filter: a Bloom filter whose keys can be removed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;

use crate::batch::pipeline;
use crate::bits::{Counters, CountersMut, CountersRef, Width, Words, words_for};
use crate::error::{DecodeError, Knob, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{Cost, CounterReport, Details, Family, Guarantee, Make, Profile, Space};
use crate::filters::bloom::{Bloom, BloomSize};
use crate::hash::{Digest, Hashing};
use crate::math;
use crate::paths::Paths;
use crate::probing::{Probing, positions, with_distinct};
use crate::rates::{self, Rate};
use crate::shell::{self, Counts, Empty, Inserts, Kernel, Merges, Removes, filter};
use crate::spec::{MAX_BITS, MAX_CAPACITY, Plan, Size, Spec};
use crate::traits::{Insertion, Removal};
use crate::wire::{Fields, Frame, Writer};

/// The family `counting`.
pub(crate) static FAMILY: Family = Family {
    id: 6,
    name: "counting",
    summary: "keys can be removed: a counter for each bit",
    can: Counting::CAN,
    knobs: &[Knob::Probes.any(), Knob::CounterBits.within(2, 16)],
    probing: &[Probing::SCALED],
    cost: Cost { query: "O(k)", insert: "O(k)", space: "5.77 n log2(1/p)" },
    make: Make::Empty(|spec| Ok(Box::new(Counting::from_spec(spec)?))),
    shared: None,
    plan: |spec| Ok(spec.counting()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Counting::decode(frame, hashing)?)),
    // A remove that dies half-way and is made again would lower counters twice, under keys that are in.
    in_place: false,
    profile: Profile {
        space: Some(Space { per_key: |bits| 5.771 * bits, less: 0.01, more: 0.01 }),
        ..Profile::USUAL
    },
};

/// The numbers of a counting filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CountingSize {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// Its counters.
    pub cells: u64,
    /// Positions per key.
    pub probes: u32,
    /// Bits of each counter.
    pub counter_bits: u32,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl Size for CountingSize {
    fn plan(&self) -> Plan {
        let Self { capacity, cells, probes, counter_bits, fpr_asked, fpr } = *self;
        Plan { capacity, fpr_asked, fpr, bits: cells * u64::from(counter_bits), probes: Some(probes) }
    }
}

/// Four bits hold all that a set puts into a counter: [`math::counter_overflow_bound`].
const DEFAULT_COUNTER_BITS: u32 = 4;

impl Spec {
    /// Solves for what is not requested, for a counting filter: a Bloom filter with counters in place of bits.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(1_000_000, 0.01).counting()?;
    /// assert_eq!((sized.cells, sized.probes, sized.counter_bits), (9_585_059, 7, 4));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn counting(&self) -> Result<CountingSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let counter_bits = asked.counter_bits.unwrap_or(DEFAULT_COUNTER_BITS);
        let BloomSize { capacity, bits: cells, probes, fpr_asked, fpr } =
            asked.cells(|cells| cells.saturating_mul(counter_bits.into()))?;
        Ok(CountingSize { capacity, cells, probes, counter_bits, fpr_asked, fpr })
    }
}

/// Filters smaller than this stay in the second-level cache, where prefetching costs more than it
/// brings.
const PREFETCH_FROM_BYTES: usize = 256 * 1024;

filter! {
    /// A counting Bloom filter.
    ///
    /// **Answers** "was this key inserted and not removed since?"
    /// **Promise** a key that is in is never denied, as long as only keys are removed that are in; an absent key is
    /// admitted with the asked rate at capacity.
    /// **Not for** keys that are inserted over and over (a counter that reaches its top stays there: see
    /// [`Spectral`](crate::Spectral)); the last factor of four in space.
    ///
    /// ```text
    ///   key ─▶ digest ─▶ different positions     counters  0 2 0 0 1 0 0 0 1 0 0 3 0
    ///                    1, 4, 11                            ▲     ▲             ▲      none is 0: perhaps
    ///                                            remove      1     0             2
    /// ```
    ///
    /// | operation | cache lines                  | can fail |
    /// |-----------|------------------------------|----------|
    /// | contains  | `probes`; 2 for most misses  | no       |
    /// | insert    | `probes`                     | no       |
    /// | remove    | `probes`                     | no       |
    /// | count     | `probes`                     | no       |
    /// | merge     | all, in order                | mismatch |
    ///
    /// A counter that is at its top is never lowered, because it is unknown how often it was raised: its keys cannot
    /// leave, the rate rises a little, and no key is lost. [`saturated`](Counting::saturated) tells how many there are.
    /// With 4 bits and different keys there are none: for a million keys at 1% the chance that there is one is 3.3e-8
    /// ([`math::counters_at_least`]).
    ///
    /// Removing a key that is not in is refused where a counter of 0 proves its absence, and then changes nothing. With
    /// the chance of a false positive there is no such counter; then counters of other keys are lowered, and one of
    /// those may be denied later. Remove only what is in.
    ///
    /// The count of a key is its lowest counter: at least as often as it is in, up to the
    /// [ceiling](crate::Count::ceiling) of 15 with 4 bits.
    ///
    /// **Paper** Fan, Cao, Almeida, Broder, *Summary Cache: A Scalable Wide-Area Web Cache Sharing Protocol*, 2000.
    /// **We differ** in that the different positions of a key are taken, so that two probes that meet do not raise a
    /// counter twice.
    ///
    /// ```
    /// use mayhap::Counting;
    ///
    /// let mut cached = Counting::new(1_000_000, 0.01)?;
    /// cached.insert("https://example.org/");
    /// let summary = cached.to_bloom()?; // a quarter of the size, to be sent to others
    /// assert!(summary.contains("https://example.org/"));
    /// assert!(cached.remove("https://example.org/").is_removed());
    /// assert!(!cached.contains("https://example.org/")); // certain: nothing else is in
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Counting(Cells) = FAMILY {
        new,
        /// Bits are those of all counters together.
        specified,
        inserts,
        ///
        /// A key whose counters are all saturated is [stuck](Removal::Stuck): how often it is in is unknown.
        ///
        /// A key that was never inserted must not be removed: if all of its counters are above 0 by chance, others
        /// lose theirs.
        ///
        /// ```
        /// use mayhap::{Counting, Removal};
        ///
        /// let mut set = Counting::new(100, 0.01)?;
        /// set.insert("twice");
        /// set.insert("twice");
        /// assert!(set.remove("twice").is_removed() && set.contains("twice"));
        /// assert!(set.remove("twice").is_removed() && !set.contains("twice"));
        /// assert_eq!(set.remove("twice"), Removal::Absent);
        /// # Ok::<(), mayhap::Error>(())
        /// ```
        removes,
        /// At least so often as it is, up to the largest value of a counter.
        counts,
        matches,
        /// Each key is in as often as in both together, as if all had been inserted here.
        merges,
    }
}

/// The counters of a counting Bloom filter.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    counters: Counters,
    size: CountingSize,
    paths: Paths,
    /// Counters above 0, kept up to date so that the fill costs nothing to know.
    occupied: u64,
}

impl Cells {
    /// The number of counters and of probes.
    fn places(&self) -> (u64, u32) {
        (self.size.cells, self.size.probes)
    }

    fn lost(&mut self, emptied: u64) {
        // A header that was not compared with its payload may have claimed fewer.
        self.occupied = self.occupied.saturating_sub(emptied);
    }
}

impl Kernel for Cells {
    type Hash = Digest;

    const GUARANTEE: Guarantee = Guarantee::NoFalseNegativesIfDeletesValid;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        let counters = self.counters.view();
        !positions(digest, self.size.probes, self.size.cells).any(|place| counters.is_zero(place))
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), hits: &mut [bool]) {
        contains_ahead(self.paths, self.counters.view(), self.places(), keys, hash, hits);
    }

    fn plan(&self) -> Plan {
        self.size.plan()
    }

    fn fill(&self) -> f64 {
        self.occupied as f64 / self.size.cells as f64
    }

    fn rate(&self) -> Rate {
        let counters = self.counters.view();
        rates::scaled(self.size.cells, self.size.probes, self.occupied, |place| !counters.is_zero(place))
    }

    fn estimated_len(&self) -> f64 {
        math::estimated_len(self.size.cells, self.occupied, self.size.probes)
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(self.size, other.size, |size| {
            [
                (Parameter::CounterBits, size.counter_bits.into()),
                (Parameter::Bits, size.plan().bits.into()),
                (Parameter::Probes, size.probes.into()),
            ]
        })
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.counters == other.counters
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let CountingSize { capacity, cells, probes, counter_bits, fpr_asked, .. } = self.size;
        out.probing(Probing::SCALED);
        out.ones(self.occupied);
        out.params()
            .u64(cells)
            .u32(probes)
            .u32(counter_bits)
            .u64(capacity)
            .f64(fpr_asked)
            .u64(self.counters.saturated());
        out.words(self.counters.words());
    }
    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let cells = fields.u64("counters")?;
        let probes = fields.u32("probes")?;
        let counter_bits = fields.u32("bits of a counter")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let saturated = fields.u64("saturated counters")?;
        fields.end("parameters", header.params.len())?;
        if !(2..=16).contains(&counter_bits) {
            return Err(DecodeError::Value { field: "bits of a counter", found: counter_bits.into() });
        }
        if !(1..=MAX_BITS / u64::from(counter_bits)).contains(&cells) {
            return Err(DecodeError::Value { field: "counters", found: cells });
        }
        if !(1..=math::MAX_PROBES).contains(&probes) {
            return Err(DecodeError::Value { field: "probes", found: probes.into() });
        }
        if saturated > cells {
            return Err(DecodeError::Value { field: "saturated counters", found: saturated });
        }
        let words = shell::take_words(frame, words_for(cells * u64::from(counter_bits)) * 8)?;
        let width = Width::Fixed(counter_bits);
        let counters = Counters::from_words(words, Vec::new().into(), cells, width, saturated)
            .ok_or(DecodeError::Padding { field: "end of the payload" })?;
        // Counted only when the whole payload is read anyway, so that a large file opens by its header.
        if frame.verified && !counters.are_sound() {
            return Err(DecodeError::Value { field: "saturated counters", found: saturated });
        }
        let occupied = shell::occupied(frame, "occupied cells", cells, || counters.occupied())?;
        let occupied = occupied.unwrap_or_else(|| counters.occupied());
        let fpr = math::bloom_fpr_of_any_size(cells, capacity, probes);
        let size = CountingSize { capacity, cells, probes, counter_bits, fpr_asked, fpr };
        Ok(Self { counters, size, paths: Paths::default(), occupied })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn details(&self) -> Details<'_> {
        let counters = CounterReport {
            counters: self.size.cells,
            bits: Some(self.size.counter_bits),
            saturated: self.counters.saturated(),
            overflowed: 0,
            rule: None,
            degraded: false,
        };
        Details { counters: Some(counters), ..Details::default() }
    }
}

impl Empty for Cells {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let size = spec.counting()?;
        let counters = Counters::zeroed(size.cells, Width::Fixed(size.counter_bits))?;
        Ok(Self { counters, size, paths: spec.paths, occupied: 0 })
    }

    /// Also that counters were saturated is forgotten.
    fn clear(&mut self) {
        self.counters.clear();
        self.occupied = 0;
    }
}

impl Inserts for Cells {
    type Error = Infallible;

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<Insertion, Infallible> {
        let fresh = raise(&mut self.counters.view_mut(), digest, &self.size);
        self.occupied += fresh;
        Ok(Insertion::new_if(fresh > 0))
    }

    #[inline(always)]
    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Infallible> {
        let (size, places, mut fresh) = (self.size, self.places(), 0);
        write_ahead(self.paths, self.counters.view_mut(), places, keys, hash, |counters, digest| {
            let raised = raise(counters, digest, &size);
            fresh += raised;
            told(Insertion::new_if(raised > 0));
        });
        self.occupied += fresh;
        Ok(())
    }
}

impl Removes for Cells {
    fn remove(&mut self, digest: Digest) -> Removal {
        let mut emptied = 0;
        let outcome = lower(&mut self.counters.view_mut(), digest, &self.size, &mut emptied);
        self.lost(emptied);
        outcome
    }

    #[inline(always)]
    fn remove_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        outcomes: &mut Vec<Removal>,
    ) {
        let (size, places, mut emptied) = (self.size, self.places(), 0);
        write_ahead(self.paths, self.counters.view_mut(), places, keys, hash, |counters, digest| {
            outcomes.push(lower(counters, digest, &size, &mut emptied));
        });
        self.lost(emptied);
    }
}

impl Counts for Cells {
    #[inline]
    fn count(&self, digest: Digest) -> u64 {
        self.counters.view().least(positions(digest, self.size.probes, self.size.cells))
    }

    #[inline(always)]
    fn count_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), counts: &mut Vec<u64>) {
        let CountingSize { cells, probes, .. } = self.size;
        read_ahead(self.paths, self.counters.view(), self.places(), keys, hash, |counters, digest| {
            counts.push(counters.least(positions(digest, probes, cells)));
        });
    }

    fn ceiling(&self) -> u64 {
        Width::Fixed(self.size.counter_bits).max()
    }
}

impl Merges for Cells {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        self.occupied = self.counters.add_all(&other.counters);
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
    }
}

impl Counting {
    /// The Bloom filter of the keys that are in: the one that they would have made, with a bit for each counter,
    /// the same probes and the same hashing. A saturated counter is a bit that stays set.
    ///
    /// # Errors
    /// [`SpecError::Memory`] if there is none for it.
    pub fn to_bloom(&self) -> Result<Bloom, SpecError> {
        let CountingSize { capacity, cells, probes, .. } = self.0.kernel.size;
        let spec = Spec::new()
            // A crafted file may claim any capacity.
            .with_capacity(capacity.clamp(1, MAX_CAPACITY))
            .with_bits(cells)
            .with_probes(probes)
            .with_hashing(self.hashing());
        let (size, counters) = (spec.bloom()?, self.0.kernel.counters.view());
        let mut words = Words::zeroed(words_for(cells))?;
        for (word, start) in words.as_mut_slice().iter_mut().zip((0..cells).step_by(64)) {
            let set = (start..cells.min(start + 64)).filter(|&place| !counters.is_zero(place));
            *word = set.map(|place| 1 << (place - start)).sum();
        }
        Ok(Bloom::of(words, size, self.hashing(), None, self.0.kernel.paths))
    }

    /// The number of counters.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.0.kernel.size.cells
    }

    /// Bits of each counter.
    #[must_use]
    pub fn counter_bits(&self) -> u32 {
        self.0.kernel.size.counter_bits
    }

    /// Positions per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.0.kernel.size.probes
    }

    /// The value of a counter; `None` behind the last.
    #[must_use]
    pub fn counter(&self, position: u64) -> Option<u64> {
        (position < self.0.kernel.size.cells).then(|| self.0.kernel.counters.view().get(position))
    }

    /// How many counters are at their top, where they stay. Their keys cannot be removed.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.0.kernel.counters.saturated()
    }
}

/// Raises the counters of a key, and says how many of them were 0.
#[inline(always)]
fn raise(counters: &mut CountersMut<'_>, digest: Digest, size: &CountingSize) -> u64 {
    with_distinct(digest, size.probes, size.cells, |places| {
        // All are asked for before the first is waited for. (In a batch they have been asked for already.)
        places.iter().for_each(|&place| counters.view().prefetch(place));
        places.iter().map(|&place| u64::from(counters.add(place, 1) == 0)).sum()
    })
}

/// Lowers the counters of a key, and adds those that are 0 now to `emptied`.
#[inline(always)]
fn lower(counters: &mut CountersMut<'_>, digest: Digest, size: &CountingSize, emptied: &mut u64) -> Removal {
    with_distinct(digest, size.probes, size.cells, |places| {
        // All are looked at before one is changed.
        if places.iter().any(|&place| counters.view().is_zero(place)) {
            return Removal::Absent;
        }
        // One that is at its top stays there. If all are, nothing can be told from them any more.
        let top = Width::Fixed(size.counter_bits).max();
        let (mut outcome, mut empty) = (Removal::Stuck, 0);
        for &place in places {
            let left = counters.subtract(place, 1);
            empty += u64::from(left == 0);
            if left < top {
                outcome = Removal::Removed;
            }
        }
        *emptied += empty;
        outcome
    })
}

/// Whether all counters of each key are above 0, in a slice of the number of keys; as [`read_ahead`].
#[inline(never)]
pub(super) fn contains_ahead<K>(
    paths: Paths,
    mut counters: CountersRef<'_>,
    (cells, probes): (u64, u32),
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    hits: &mut [bool],
) {
    let mut answered = 0;
    let far = paths.is_far(8 * counters.words(), PREFETCH_FROM_BYTES);
    let ahead = |counters: &CountersRef<'_>, digest| {
        positions(digest, probes, cells).for_each(|place| counters.prefetch(place));
    };
    pipeline(&mut counters, keys, hash, far, ahead, |counters, digests| {
        for &digest in digests {
            hits[answered] = !positions(digest, probes, cells).any(|place| counters.is_zero(place));
            answered += 1;
        }
    });
}

/// Visits keys by their digests, having asked for the cache lines of several at a time. `places` are the number of
/// counters and of probes.
#[inline(always)]
pub(super) fn read_ahead<K>(
    paths: Paths,
    mut counters: CountersRef<'_>,
    places: (u64, u32),
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    mut each: impl FnMut(CountersRef<'_>, Digest),
) {
    let far = paths.is_far(8 * counters.words(), PREFETCH_FROM_BYTES);
    let ahead = |counters: &CountersRef<'_>, digest| {
        positions(digest, places.1, places.0).for_each(|place| counters.prefetch(place));
    };
    pipeline(&mut counters, keys, hash, far, ahead, |counters, digests| {
        digests.iter().for_each(|&digest| each(*counters, digest));
    });
}

/// The same for counters that are changed.
#[inline(always)]
pub(super) fn write_ahead<K>(
    paths: Paths,
    mut counters: CountersMut<'_>,
    places: (u64, u32),
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    mut each: impl FnMut(&mut CountersMut<'_>, Digest),
) {
    let far = paths.is_far(8 * counters.view().words(), PREFETCH_FROM_BYTES);
    let ahead = |counters: &CountersMut<'_>, digest| {
        positions(digest, places.1, places.0).for_each(|place| counters.view().prefetch(place));
    };
    pipeline(&mut counters, keys, hash, far, ahead, |counters, digests| {
        digests.iter().for_each(|&digest| each(counters, digest));
    });
}
