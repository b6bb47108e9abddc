//! Shifting Bloom filter of two sets: which of them is a key in?

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::batch::{copy, pipeline};
use crate::bits::{BEHIND, WINDOW, Windows, WindowsMut, WindowsRef};
use crate::error::{AreaNameProblem, DecodeError, Error, Knob, Mismatch, SpecError};
use crate::family::{AnyFilter, Cost, Details, Family, Guarantee, Make, Profile, Space};
use crate::filters::bloom::BloomSize;
use crate::filters::shifting::{
    COUNTER_BITS, Claim, PREFETCH_FROM_BYTES, counter_report, guarantee, prefetch_counters, read_shape,
    saturated, window_bits, windows_must_agree, write_windows,
};
use crate::filters::spatial::check_names;
use crate::hash::{Digest, Hashing, Here, Key};
use crate::math::{self, MAX_PROBES};
use crate::narrow::{index, low_u8};
use crate::paths::Paths;
use crate::probing::{Probing, Walk, distinct, reduce};
use crate::rates::{self, Rate};
use crate::shell::{Empty, Kernel, filter};
use crate::spec::{Plan, Size, Spec};
use crate::traits::{Associate, Insertion, Removal};
use crate::wire::{Fields, Frame, LABELS, Writer};

use crate::traits::{Association, Part};

/// The family `shifting-association`.
pub(crate) static FAMILY: Family = Family {
    id: 14,
    name: "shifting-association",
    summary: "two sets in one filter: which one is a key in?",
    can: ShiftingAssociation::CAN,
    knobs: &[Knob::Probes.any(), COUNTER_BITS],
    probing: &[PROBING],
    cost: Cost { query: "O(k)", insert: "O(k) with counters", space: "1.44 n log2(3/p)" },
    make: Make::OfTwo(|spec, first, second| {
        Ok(Box::new(ShiftingAssociation::of_digests(spec, first, second)?))
    }),
    shared: None,
    plan: |spec| Ok(spec.shifting_association()?.plan()),
    decode: |frame, hashing| Ok(Box::new(ShiftingAssociation::decode(frame, hashing)?)),
    in_place: false,
    profile: Profile {
        space: Some(Space {
            per_key: |bits| core::f64::consts::LOG2_E * (bits + libm::log2(3.0)),
            less: 0.02,
            more: 0.01,
        }),
        ..Profile::USUAL
    },
};

/// Two offsets, the second beyond the first, then places.
const PROBING: Probing = Probing::new(14, "shifting-association");

/// The numbers of a shifting filter of two sets, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ShiftingAssociationSize {
    /// The number of keys of either set that it is made for.
    pub capacity: u64,
    /// The places at which a window may start.
    pub starts: u64,
    /// Windows per key.
    pub probes: u32,
    /// Bits of the counter of each bit, if it has one.
    pub counter_bits: Option<u32>,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate at which keys of neither set are admitted at capacity.
    pub fpr: f64,
}

impl ShiftingAssociationSize {
    /// All bits, counters included.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        window_bits(self.starts, self.counter_bits)
    }
}

impl Size for ShiftingAssociationSize {
    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, probes, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(probes) }
    }
}

impl Spec {
    /// Solves for what is not requested, for a shifting filter of two sets. The capacity is the number of keys in either, the
    /// rate that of keys in neither that are admitted.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn shifting_association(&self) -> Result<ShiftingAssociationSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let size = asked.windows(1, |m, n, k| math::any_of(math::bloom_fpr(m, n, k), 3))?;
        let BloomSize { capacity, bits: starts, probes, fpr_asked, fpr } = size;
        let counter_bits = asked.counter_bits;
        Ok(ShiftingAssociationSize { capacity, starts, probes, counter_bits, fpr_asked, fpr })
    }
}

filter! {
    /// A shifting Bloom filter of two sets.
    ///
    /// **Answers** "in the first set, in the second, or in both?" for keys that are in one at least.
    /// **Promise** a clear answer to such a key is never wrong, and what an unclear one leaves open is true; most answers are
    /// clear. A key of neither set is admitted with the asked rate at capacity.
    /// **Not for** sets that are not known when the filter is made, or keys that may be in neither.
    ///
    /// ```text
    ///   key ─▶ digest ─▶ offsets o1 = 2, o2 = 5     first only  ▼
    ///                    places 1, 9                bits  0 1 0 0 0 0 1 0 0 1 0 1 0 0 0     the first bit of all windows
    ///                                               both only     ▲               ▲         is set, and no other:
    ///                                               second only         ▲               ▲   in the first, and not in the second
    /// ```
    ///
    /// | operation   | cache lines         | can fail |
    /// |-------------|---------------------|----------|
    /// | association | `probes`, 1 in 9 twice | no    |
    /// | insert      | the same; with counters `probes` more | no |
    /// | remove      | as insert; with counters only | no |
    ///
    /// A key of the first set only has the bit at each of its places, one of both sets the bit `o1` further on, and one of the
    /// second set only the bit `o2` further on. A question reads all three with one load per place. Two Bloom filters take
    /// twice the loads, more bits, and cannot tell whether a key that both hold is in both or an error of one.
    ///
    /// In an open world, where keys come that are in neither set, an answer is wrong with the chance of a false positive.
    ///
    /// With [counters](Spec::with_counter_bits) keys can be inserted, removed and moved later, by a caller that knows in which sets
    /// they were.
    ///
    /// **Paper** Yang, Liu, Shahzad, Zhong, Fu, Li, Xie, Li, *A Shifting Bloom Filter Framework for Set Queries*, PVLDB 2016.
    /// **We differ** in that one 128-bit hash gives all values, and in that the different bits of a key are counted, so that
    /// two that meet do not raise a counter twice.
    ///
    /// Two filters are equal if they give the same answer to every key, now and after the same changes: same size, hashing,
    /// bits, counters and names.
    ///
    /// It contains a key that is in one of the sets or in both. The capacity is the number of keys of either set, and the
    /// rate that at which keys of neither set are admitted.
    ///
    /// ```
    /// use mayhap::{Association, ShiftingAssociation, Spec};
    ///
    /// let (readers, writers) = (["ada", "bob"], ["bob", "eve"]);
    /// let filter = ShiftingAssociation::of_sets(&Spec::new().with_fpr(1e-6), &readers, &writers)?;
    /// assert_eq!(filter.association("ada"), Association::FirstOnly);
    /// assert_eq!(filter.association("bob"), Association::Both);
    /// assert_eq!(filter.association("eve"), Association::SecondOnly);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ShiftingAssociation(Bits) = FAMILY {
        /// The caller [inserts](ShiftingAssociation::insert) the keys, and says which sets they are in. Bits are all that the
        /// filter takes, counters and the 56 bits behind the last place included. The number of keys must be given or
        /// follow from the other numbers.
        specified,
        associates,
    }
}

/// The bits of a shifting Bloom filter of two sets.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    windows: Windows,
    size: ShiftingAssociationSize,
    paths: Paths,
    /// What the sets are called; empty if they have no names.
    names: [String; 2],
}

/// The largest first offset: half of the bits of a window behind its first.
const HALF: u64 = BEHIND / 2;

/// From a digest to windows and the three bits of each: arithmetic without memory.
#[derive(Clone, Copy, Debug)]
struct WindowsOfPairs {
    starts: u64,
    probes: u32,
}

impl WindowsOfPairs {
    /// The first offset, the second, and the walk on to the places.
    #[inline(always)]
    fn offsets(digest: Digest) -> (u64, u64, Walk) {
        let mut walk = Walk::new(digest);
        let first = 1 + reduce(walk.next(), HALF);
        let second = first + 1 + reduce(walk.next(), HALF);
        (first, second, walk)
    }

    #[inline(always)]
    fn next(self, walk: &mut Walk) -> u64 {
        reduce(walk.next(), self.starts)
    }

    /// The answer. `window` reads a window; it is not called again once the key is in neither set.
    #[inline(always)]
    fn ask(self, digest: Digest, mut window: impl FnMut(u64) -> u64) -> Association {
        let (first, second, mut walk) = Self::offsets(digest);
        let mask = 1 | 1 << first | 1 << second;
        let mut all = mask;
        for _ in 0..self.probes {
            all &= window(self.next(&mut walk));
            if all == 0 {
                return Association::Neither;
            }
        }
        Association::from_bits(all & 1 == 1, all >> first & 1 == 1, all >> second & 1 == 1)
    }

    /// Calls `then` with the different bits of a key of this part.
    #[inline(always)]
    fn with_bits<R>(self, digest: Digest, part: Part, then: impl FnOnce(&[u64]) -> R) -> R {
        let (first, second, mut walk) = Self::offsets(digest);
        let offset = match part {
            Part::FirstOnly => 0,
            Part::Both => first,
            Part::SecondOnly => second,
        };
        let places = (0..self.probes).map(move |_| self.next(&mut walk) + offset);
        let mut room = [0; MAX_PROBES as usize];
        then(distinct(places, &mut room))
    }

    #[inline(always)]
    fn prefetch(self, windows: WindowsRef<'_>, digest: Digest) {
        let (_, _, mut walk) = Self::offsets(digest);
        (0..self.probes).for_each(|_| windows.prefetch(self.next(&mut walk)));
    }
}

/// Inserts one key, and says whether it was new in this part.
#[inline(always)]
fn put(windows: &mut WindowsMut<'_>, shape: WindowsOfPairs, digest: Digest, part: Part) -> bool {
    shape.with_bits(digest, part, |places| {
        prefetch_counters(windows, places);
        places.iter().fold(false, |new, &place| windows.raise(place) | new)
    })
}

impl Bits {
    fn shape(&self) -> WindowsOfPairs {
        WindowsOfPairs { starts: self.size.starts, probes: self.size.probes }
    }

    fn association(&self, digest: Digest) -> Association {
        let windows = self.windows.view();
        self.shape().ask(digest, |start| windows.window(start))
    }

    #[inline(always)]
    fn ask_all<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), mut each: impl FnMut(Association)) {
        let (mut windows, shape) = (self.windows.view(), self.shape());
        let far = self.paths.is_far(windows.bytes(), PREFETCH_FROM_BYTES);
        let ahead = |windows: &WindowsRef<'_>, digest: Digest| shape.prefetch(*windows, digest);
        pipeline(&mut windows, keys, hash, far, ahead, |windows, digests| {
            digests.iter().for_each(|&digest| each(shape.ask(digest, |start| windows.window(start))));
        });
    }

    fn insert(&mut self, digest: Digest, part: Part) -> Insertion {
        let shape = self.shape();
        Insertion::new_if(put(&mut self.windows.view_mut(), shape, digest, part))
    }

    /// Inserts many keys, several at a time in flight.
    fn insert_all(&mut self, keys: &[(Digest, Part)]) {
        // A part as a number, because a batch starts with some value of it.
        let hash = |keys: &[(Digest, Part)], to: &mut [(Digest, u8)]| {
            to.iter_mut().zip(keys).for_each(|(to, &(digest, part))| *to = (digest, part as u8));
        };
        let (shape, mut windows) = (self.shape(), self.windows.view_mut());
        let far = self.paths.is_far(windows.view().bytes(), PREFETCH_FROM_BYTES);
        let ahead = |windows: &WindowsMut<'_>, (digest, _)| shape.prefetch(windows.view(), digest);
        pipeline(&mut windows, keys, hash, far, ahead, |windows, keys| {
            for &(digest, part) in keys {
                put(windows, shape, digest, Part::ALL[usize::from(part)]);
            }
        });
    }

    /// As [`ShiftingAssociation::remove`].
    fn remove(&mut self, digest: Digest, part: Part) -> Removal {
        let shape = self.shape();
        let windows = self.windows.view();
        if !shape.ask(digest, |start| windows.window(start)).allows(part) {
            return Removal::Absent;
        }
        let mut windows = self.windows.view_mut();
        shape.with_bits(digest, part, |places| {
            prefetch_counters(&windows, places);
            if windows.lower_all(places) { Removal::Stuck } else { Removal::Removed }
        })
    }
}

impl Kernel for Bits {
    type Hash = Digest;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.association(digest) != Association::Neither
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), hits: &mut [bool]) {
        let mut hits = hits.iter_mut();
        self.ask_all(keys, hash, |answer| {
            if let Some(hit) = hits.next() {
                *hit = answer != Association::Neither;
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
        let (windows, probes) = (&self.windows, self.size.probes);
        let pairs = HALF * HALF;
        if pairs * (windows.starts() / 64) > rates::LOOKED_AT_WINDOWS {
            return Rate::computed(math::any_of(math::fpr_from_fill(self.fill(), probes), 3));
        }
        let all_set = |mask: u64| math::fpr_from_fill(windows.share_with(mask), probes);
        let alone: Vec<f64> = (0..=BEHIND).map(|offset| all_set(1 << offset)).collect();
        let with_first: Vec<f64> = (0..=BEHIND).map(|offset| all_set(1 | 1 << offset)).collect();
        // One of three bits, by inclusion and exclusion, on average over all pairs of offsets.
        let mut sum = 0.0;
        for first in 1..=HALF {
            for second in first + 1..=first + HALF {
                let ([one, other], pair) = ([first, second].map(index), 1 << first | 1 << second);
                sum += alone[0] + alone[one] + alone[other];
                sum += all_set(1 | pair) - with_first[one] - with_first[other] - all_set(pair);
            }
        }
        rates::sampled_if_tiny(
            |digest| self.contains(digest),
            windows.starts(),
            probes,
            rates::SAMPLED,
            sum / pairs as f64,
        )
    }

    fn estimated_len(&self) -> f64 {
        math::estimated_len(self.windows.len(), self.windows.ones(), self.size.probes)
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        windows_must_agree((self.plan(), self.size.counter_bits), (other.plan(), other.size.counter_bits))
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.windows == other.windows && self.names == other.names
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let ShiftingAssociationSize { capacity, starts, probes, counter_bits, fpr_asked, .. } = self.size;
        out.probing(PROBING);
        out.ones(self.windows.ones());
        out.params()
            .u64(starts)
            .u32(probes)
            .u32(WINDOW)
            .u32(counter_bits.unwrap_or(0))
            .u32(0)
            .u64(capacity)
            .f64(fpr_asked)
            .u64(saturated(&self.windows));
        write_windows(&self.windows, out);
        if self.names.iter().any(|name| !name.is_empty()) {
            let mut bytes = Vec::new();
            for name in &self.names {
                bytes.push(low_u8(name.len() as u64));
                bytes.extend(name.as_bytes());
            }
            out.section(LABELS, bytes);
        }
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(&frame.header.params);
        let starts = fields.u64("places")?;
        let probes = fields.u32("probes")?;
        let counter_bits = read_shape(&mut fields)?;
        fields.zero_u32("padding of the parameters")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let claim = Claim { starts, counter_bits, saturated: fields.u64("saturated counters")? };
        fields.end("parameters", frame.header.params.len())?;
        if !(1..=MAX_PROBES).contains(&probes) {
            return Err(DecodeError::Value { field: "probes", found: probes.into() });
        }
        let windows = claim.windows(frame)?;
        let fpr = math::any_of(math::bloom_fpr(starts, capacity as f64, probes), 3);
        let size = ShiftingAssociationSize { capacity, starts, probes, counter_bits, fpr_asked, fpr };
        let section = frame.take_section(LABELS);
        let names = section.map(|section| decode_names(section.as_slice())).transpose()?.unwrap_or_default();
        Ok(Self { windows, size, paths: Paths::default(), names })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn details(&self) -> Details<'_> {
        Details { counters: counter_report(&self.windows, self.size.counter_bits), ..Details::default() }
    }

    fn guarantee(&self) -> Guarantee {
        guarantee(self.size.counter_bits)
    }

    /// With counters it removes keys whose part is given, which code that knows only keys cannot do.
    fn unsupported(&self, operation: &'static str) -> Option<Error> {
        let family = FAMILY.name;
        (operation == "remove" && self.size.counter_bits.is_none())
            .then_some(Error::UnsupportedWithoutCounters { family, operation })
    }
}

impl Empty for Bits {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let size = spec.shifting_association()?;
        let windows = Windows::zeroed(size.starts, size.counter_bits)?;
        Ok(Self { windows, size, paths: spec.paths, names: Default::default() })
    }

    /// No counter is saturated afterwards. The names stay.
    fn clear(&mut self) {
        self.windows.clear();
    }
}

impl ShiftingAssociation {
    /// A filter of the keys of two sets, in any order and as often as they like. Without a capacity it is made for as many
    /// keys as there are in either.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn of_sets<K: Key>(spec: &Spec, first: &[K], second: &[K]) -> Result<Self, SpecError> {
        let hashing = spec.hashed()?;
        let digests = |keys: &[K]| -> Vec<Digest> { keys.iter().map(|key| hashing.digest_of(key)).collect() };
        Self::build(&digests(first), &digests(second), |keys| spec.for_keys(keys))
    }

    /// The same of keys that are hashed already, as the spec says, which must say for how many keys it is too.
    ///
    /// # Errors
    /// As for [`of_sets`](ShiftingAssociation::of_sets).
    pub fn of_digests(spec: &Spec, first: &[Digest], second: &[Digest]) -> Result<Self, SpecError> {
        Self::build(first, second, |_| *spec)
    }

    fn build(first: &[Digest], second: &[Digest], spec: impl FnOnce(u64) -> Spec) -> Result<Self, SpecError> {
        let ordered = |digests: &[Digest]| {
            let mut digests = digests.to_vec();
            digests.sort_unstable();
            digests.dedup();
            digests
        };
        let (first, second) = (ordered(first), ordered(second));
        let is_in = |set: &[Digest], digest: &Digest| set.binary_search(digest).is_ok();
        let both = first.iter().filter(|digest| is_in(&second, digest)).count();
        let mut filter = Self::from_spec(&spec((first.len() + second.len() - both) as u64))?;
        let mut keys: Vec<(Digest, Part)> = Vec::with_capacity(first.len() + second.len() - both);
        for &digest in &first {
            let part = if is_in(&second, &digest) { Part::Both } else { Part::FirstOnly };
            keys.push((digest, part));
        }
        keys.extend(
            second.iter().filter(|digest| !is_in(&first, digest)).map(|&digest| (digest, Part::SecondOnly)),
        );
        filter.0.kernel.insert_all(&keys);
        filter.0.add_inserted(keys.len() as u64);
        Ok(filter)
    }

    /// Inserts a key that is in these sets and was in none before.
    ///
    /// [`Insertion::New`] is certain.
    pub fn insert(&mut self, key: impl Key, part: Part) -> Insertion {
        let digest = self.hashing().digest_of(key);
        self.0.add_inserted(1);
        self.0.kernel.insert(digest, part)
    }

    /// Removes a key that was inserted into this part, and is in neither set from now on. It is
    /// [absent](Removal::Absent) if it was certainly not in that part, and [stuck](Removal::Stuck) if its counters are all
    /// saturated.
    ///
    /// # Errors
    /// [`Error::UnsupportedWithoutCounters`] if it has none.
    pub fn remove(&mut self, key: impl Key, part: Part) -> Result<Removal, Error> {
        if self.counter_bits().is_none() {
            return Err(self.unsupported("remove"));
        }
        let digest = self.hashing().digest_of(key);
        Ok(self.0.kernel.remove(digest, part))
    }

    /// Moves a key from the part that it was inserted into to another. The outcome is that of its removal from the old part:
    /// nothing changes if it is [absent](Removal::Absent) there, and if it is [stuck](Removal::Stuck) the answer allows
    /// both parts from now on.
    ///
    /// ```
    /// use mayhap::{Association, Part, ShiftingAssociation, Spec};
    ///
    /// let spec = Spec::sized(1000, 1e-6).with_counter_bits(4);
    /// let mut filter = ShiftingAssociation::of_sets(&spec, &["ada"], &["eve"])?;
    /// assert!(filter.replace("ada", Part::FirstOnly, Part::Both)?.is_removed());
    /// assert_eq!(filter.association("ada"), Association::Both);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedWithoutCounters`] if it has none.
    pub fn replace(&mut self, key: impl Key, from: Part, to: Part) -> Result<Removal, Error> {
        let digest = self.hashing().digest_of(&key);
        let removed = self.remove(key, from)?;
        if removed != Removal::Absent {
            self.0.kernel.insert(digest, to);
        }
        Ok(removed)
    }

    /// What the first set and the second are called; an empty name is none.
    #[must_use]
    pub fn set_names(&self) -> [&str; 2] {
        self.0.kernel.names.each_ref().map(String::as_str)
    }

    /// Gives names to both sets, which the file remembers; an empty one is none.
    ///
    /// # Errors
    /// [`SpecError::AreaName`] names the set whose name cannot be; then nothing has changed.
    pub fn name_sets(&mut self, names: [&str; 2]) -> Result<(), SpecError> {
        check_names(names.into_iter()).map_err(|(area, problem)| SpecError::AreaName { area, problem })?;
        self.0.kernel.names = names.map(str::to_owned);
        Ok(())
    }

    /// Which of the sets a key is in, as far as the filter can tell.
    #[must_use]
    #[inline]
    pub fn association(&self, key: impl Key) -> Association {
        self.association_digest(self.hashing().digest_of(key))
    }

    /// The same for a key that is hashed already.
    #[must_use]
    #[inline]
    pub fn association_digest(&self, digest: Digest) -> Association {
        self.0.kernel.association(digest)
    }

    /// The association of a key. `read` is called with the number of the first of the 8 bytes of each load, for benchmarks that
    /// count cache lines.
    #[doc(hidden)]
    #[doc(hidden)]
    pub fn association_traced(&self, key: impl Key, mut read: impl FnMut(u64)) -> Association {
        let windows = self.0.kernel.windows.view();
        self.0.kernel.shape().ask(self.hashing().digest_of(key), |start| {
            read(start / 8);
            windows.window(start)
        })
    }

    /// Which of the sets many keys are in, several at a time in flight; appends one answer each.
    pub fn association_each<K: Key>(&self, keys: &[K], answers: &mut Vec<Association>) {
        let hashing = self.hashing();
        let hash = |keys: &[K], digests: &mut [Digest]| K::digests(keys, &hashing, digests, Here);
        self.0.kernel.ask_all(keys, hash, |answer| answers.push(answer));
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

    /// The share of clear answers for keys of either set that the filter as it is gives, from its fill.
    #[must_use]
    pub fn clear_rate(&self) -> f64 {
        math::association_clear(math::fpr_from_fill(self.fill(), self.probes()))
    }
}

/// Reads the section with the names of both sets. One without any name is not written.
fn decode_names(bytes: &[u8]) -> Result<[String; 2], DecodeError> {
    let (mut rest, mut names) = (bytes, [const { String::new() }; 2]);
    for (area, name) in (1..).zip(&mut names) {
        let mut fields = Fields::new(rest);
        let length = fields.u8("length of a name")?;
        let (text, behind) = fields.rest().split_at_checked(length.into()).ok_or(DecodeError::Truncated {
            field: "name of a set",
            needed: length.into(),
            available: fields.rest().len() as u64,
        })?;
        *name = core::str::from_utf8(text)
            .map_err(|_| DecodeError::AreaName { area, problem: AreaNameProblem::NotText })?
            .to_owned();
        rest = behind;
    }
    if !rest.is_empty() || names.iter().all(String::is_empty) {
        let (expected, found) = ((bytes.len() - rest.len()) as u64, bytes.len() as u64);
        return Err(DecodeError::Length { field: "names of the sets", expected, found });
    }
    check_names(names.iter().map(String::as_str))
        .map_err(|(area, problem)| DecodeError::AreaName { area, problem })?;
    Ok(names)
}

impl Associate for ShiftingAssociation {
    fn set_names(&self) -> [&str; 2] {
        self.set_names()
    }

    fn name_sets(&mut self, names: [&str; 2]) -> Result<(), SpecError> {
        self.name_sets(names)
    }

    fn association_digest(&self, digest: Digest) -> Association {
        self.association_digest(digest)
    }

    fn association_batch(&self, digests: &[Digest], answers: &mut Vec<Association>) {
        self.0.kernel.ask_all(digests, copy, |answer| answers.push(answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_apart_and_within_a_window() {
        let (mut firsts, mut seconds) = ([0; 57], [0; 57]);
        for key in 0..20_000u64 {
            let (first, second, _) = WindowsOfPairs::offsets(Hashing::default().digest_of(key));
            assert!((1..=28).contains(&first) && first < second && second <= first + 28);
            firsts[first as usize] += 1;
            seconds[second as usize] += 1;
        }
        assert!(
            firsts[1..=28].iter().all(|&times| times > 500) && seconds[2..=56].iter().all(|&times| times > 0)
        );
    }

    #[test]
    fn every_combination_of_bits_has_its_answer() {
        let mut answers = Vec::new();
        for bits in 0..8u32 {
            let answer = Association::from_bits(bits & 1 == 1, bits & 2 == 2, bits & 4 == 4);
            let parts = [Part::FirstOnly, Part::Both, Part::SecondOnly];
            for (bit, part) in parts.into_iter().enumerate() {
                assert_eq!(answer.allows(part), bits >> bit & 1 == 1, "{answer:?}, {part:?}");
            }
            assert_eq!(answer.is_clear(), bits.count_ones() == 1);
            assert!(answer.part().is_none_or(|part| answer.allows(part)));
            assert!(
                !answers.contains(&answer)
                    && !answers.iter().any(|other: &Association| other.text() == answer.text())
            );
            answers.push(answer);
        }
    }

    #[test]
    fn a_question_reads_each_window_once_and_stops_when_nothing_is_left() {
        let shape = WindowsOfPairs { starts: 1000, probes: 9 };
        for failing in 1..=9 {
            let mut loads = 0;
            let answer = shape.ask(Hashing::default().digest_of(1u64), |_| {
                loads += 1;
                if loads == failing { 0 } else { u64::MAX }
            });
            assert_eq!((answer, loads), (Association::Neither, failing));
        }
        let mut loads = 0;
        let all = shape.ask(Hashing::default().digest_of(1u64), |_| {
            loads += 1;
            u64::MAX
        });
        assert_eq!((all, loads), (Association::Unknown, 9));
    }
}
