//! Shifting Bloom filter: membership with half the memory accesses of a Bloom filter.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;

use crate::batch::{BATCH, pipeline};
use crate::bits::{
    BEHIND, Bytes, Counters, WINDOW, Width, Windows, WindowsMut, WindowsRef, Words, words_for,
};
use crate::error::{DecodeError, Error, Knob, Mismatch, Parameter, SpecError, Value, must_agree};
use crate::family::{
    self, AnyFilter, Capabilities, Cost, CounterReport, Details, Family, Guarantee, Make, Profile, Space,
};
use crate::filters::bloom::BloomSize;
use crate::hash::{Digest, Hashing, Key};
use crate::intersection::Intersection;
use crate::math::{self, MAX_PROBES, MAX_SHIFTS, first_false};
use crate::narrow::{index, whole, whole_u32};
use crate::paths::Paths;
use crate::probing::{Probing, Walk, distinct, reduce};
use crate::rates::{self, Rate};
use crate::shell::{Empty, Inserts, Intersects, Kernel, Merges, Removes, filter};
use crate::spec::{KnobRange, MAX_BITS, MAX_CAPACITY, Plan, Request, Size, Spec, at_least_one, within_limit};
use crate::traits::{Insertion, Intersect, Removal};
use crate::wire::{Fields, Frame, Writer};

/// The family `shifting`.
pub(crate) static FAMILY: Family = Family {
    id: 13,
    name: "shifting",
    summary: "half the memory accesses of bloom",
    // Without counters.
    can: Shifting::CAN,
    knobs: &[Knob::Probes.any(), COUNTER_BITS, Knob::Shifts.within(1, MAX_SHIFTS)],
    probing: &[PROBING],
    cost: Cost { query: "O(k/2)", insert: "O(k/2)", space: "1.45 n log2(1/p)" },
    make: Make::Empty(|spec| Ok(Box::new(Shifting::from_spec(spec)?))),
    shared: None,
    plan: |spec| Ok(spec.shifting()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Shifting::decode(frame, hashing)?)),
    // With counters a remove that dies half-way and is made again would lower them twice, under keys that are in.
    in_place: false,
    profile: Profile {
        space: Some(Space { per_key: |bits| 1.45 * bits, less: 0.02, more: 0.06 }),
        ..Profile::USUAL
    },
};

/// Offsets, then places at which windows start, each one value of the scaled positions.
const PROBING: Probing = Probing::new(13, "shifting");

/// The numbers of a shifting filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ShiftingSize {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// The places at which a window may start.
    pub starts: u64,
    /// Bits per key: as many windows, each of one more bit than there are shifts.
    pub probes: u32,
    /// Offsets per key.
    pub shifts: u32,
    /// Bits of the counter of each bit, if it has one.
    pub counter_bits: Option<u32>,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl ShiftingSize {
    /// All bits, counters included.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        window_bits(self.starts, self.counter_bits)
    }
}

impl Size for ShiftingSize {
    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, probes, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(probes) }
    }
}

/// The widths of counters, in all three families of shifting filters.
pub(super) const COUNTER_BITS: KnobRange = Knob::CounterBits.within(2, 16);

impl Spec {
    /// Solves for what is not requested, for a shifting filter. Bits are all that it takes: those behind the last place at
    /// which a window starts, and counters, if they are requested, included.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(1_000_000, 0.01).shifting()?;
    /// assert_eq!((sized.starts, sized.probes, sized.bits()), (9_666_689, 6, 9_666_745));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn shifting(&self) -> Result<ShiftingSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let (shifts, counter_bits) = (asked.shifts.unwrap_or(1), asked.counter_bits);
        let size = asked.windows(shifts + 1, |m, n, k| math::shifting_fpr(m, n, k, shifts))?;
        let BloomSize { capacity, bits: starts, probes, fpr_asked, fpr } = size;
        Ok(ShiftingSize { capacity, starts, probes, shifts, counter_bits, fpr_asked, fpr })
    }
}

impl Request {
    /// A filter that is read in windows, with its places as bits. The probes are a multiple of `step`; `rate` grows with the
    /// keys (its second argument) and falls with the places (its first).
    pub(super) fn windows(
        &self,
        step: u32,
        rate: impl Fn(u64, f64, u32) -> f64,
    ) -> Result<BloomSize, SpecError> {
        let counter_bits = self.counter_bits;
        if let Some(asked) = self.probes.filter(|probes| !probes.is_multiple_of(step)) {
            return Err(SpecError::Step { knob: Knob::Probes, asked: asked.into(), step: step.into() });
        }
        let probes = || {
            (step..=MAX_PROBES).step_by(step as usize).filter(|&k| self.probes.is_none_or(|asked| asked == k))
        };
        // From a half-full filter up and down to where the rate is met, and then between.
        let places = |n: u64, p: f64, k: u32| {
            let misses = |m: u64| rate(m, n as f64, k) > p;
            let mut high = (whole(libm::ceil(f64::from(k) * n as f64 / core::f64::consts::LN_2))).max(1);
            while misses(high) && high < u64::MAX {
                high = high.saturating_mul(2);
            }
            let mut low = high / 2;
            while low > 0 && !misses(low) {
                (low, high) = (low / 2, low);
            }
            first_false(low.max(1), high, misses)
        };
        // The places have one least number, near as many probes as a half-full filter has.
        let fewest = |n: u64, p: f64| {
            let sized = |k: u32| (places(n, p, k), k);
            let half_full = (whole_u32(libm::round(-libm::log2(p) / f64::from(step))) * step)
                .clamp(step, MAX_PROBES / step * step);
            let mut best = sized(self.probes.unwrap_or(half_full));
            let mut climb = |next: fn(u32, u32) -> u32| {
                let mut last = best;
                while self.probes.is_none() && (step..=MAX_PROBES).contains(&next(last.1, step)) {
                    let neighbour = sized(next(last.1, step));
                    if neighbour.0 > last.0 {
                        break;
                    }
                    last = neighbour;
                    best = best.min(last);
                }
            };
            climb(|k, step| k + step);
            climb(|k, step| k.saturating_sub(step));
            best
        };
        let needed = |n: u64| window_bits(fewest(n, self.fpr.unwrap_or(0.5)).0, counter_bits);
        let given = match self.bits {
            Some(bits) if bits < window_bits(1, counter_bits) => {
                return Err(SpecError::Unreachable { bits, needed: needed(self.capacity.unwrap_or(1)) });
            }
            bits => bits.map(|bits| (bits, window_starts(bits, counter_bits))),
        };
        let (capacity, starts, probes) = match (self.capacity, given, self.fpr, self.probes) {
            (Some(_), Some(_), Some(_), Some(_)) => return Err(SpecError::TooMuch),
            (Some(n), None, Some(p), _) => {
                let (m, k) = fewest(n, p);
                (n, m, k)
            }
            (Some(n), Some((_, m)), None, _) => {
                let best = probes().min_by(|&a, &b| rate(m, n as f64, a).total_cmp(&rate(m, n as f64, b)));
                (n, m, best.unwrap_or(step))
            }
            (Some(n), Some((bits, m)), Some(p), None) => {
                let first = probes().find(|&k| rate(m, n as f64, k) <= p);
                (n, m, first.ok_or_else(|| SpecError::Unreachable { bits, needed: needed(n) })?)
            }
            (None, Some((bits, m)), Some(p), _) => {
                let most = |k: u32| first_false(1, MAX_CAPACITY, |n| rate(m, n as f64, k) <= p) - 1;
                let (n, k) = probes().map(|k| (most(k), k)).max_by_key(|&(n, _)| n).unwrap_or((0, step));
                (at_least_one(n, bits, || needed(1))?, m, k)
            }
            // Half full.
            (Some(n), None, None, Some(k)) => {
                (n, whole(libm::ceil(f64::from(k) * n as f64 / core::f64::consts::LN_2)), k)
            }
            (None, Some((_, m)), None, Some(k)) => {
                ((whole(m as f64 * core::f64::consts::LN_2 / f64::from(k))).max(1), m, k)
            }
            _ => return Err(SpecError::Incomplete),
        };
        within_limit(window_bits(starts, counter_bits))?;
        let fpr = rate(starts, capacity as f64, probes);
        Ok(BloomSize { capacity, bits: starts, probes, fpr_asked: self.fpr.unwrap_or(fpr), fpr })
    }
}

/// The bits of a filter that is read in windows, from the places at which one starts.
pub(super) const fn window_bits(starts: u64, counter_bits: Option<u32>) -> u64 {
    let counter = match counter_bits {
        Some(bits) => bits as u64,
        None => 0,
    };
    starts.saturating_add(BEHIND).saturating_mul(1 + counter)
}

/// The number of places at which a window can start in `bits` bits, which must be enough for one.
const fn window_starts(bits: u64, counter_bits: Option<u32>) -> u64 {
    bits / (window_bits(1, counter_bits) / (1 + BEHIND)) - BEHIND
}

/// Smaller filters stay in a cache, where prefetching costs more than it saves: as for Bloom filters.
pub(super) const PREFETCH_FROM_BYTES: usize = 4 << 20;

filter! {
    /// A shifting Bloom filter.
    ///
    /// **Answers** "was this key inserted?" and, with counters, "... and not removed since?"
    /// **Promise** a key that is in is never denied (with counters: as long as only keys are removed that are in); an absent
    /// key is admitted with the asked rate at capacity.
    /// **Not for** the fewest bits (0.9% more than a Bloom filter's at 1%, 0.4% at 0.1%); one cache line per key, which
    /// [`Blocked`](crate::Blocked) has.
    ///
    /// ```text
    ///   key ─▶ digest ─▶ offset o = 3            bits  0 1 0 0 1 0 0 0 1 0 0 1 0
    ///                    places 1, 8                     ▲─────▲       ▲─────▲       all set: perhaps
    ///                                                    one load      one load
    /// ```
    ///
    /// | operation | cache lines                                | can fail |
    /// |-----------|--------------------------------------------|----------|
    /// | contains  | `probes / 2`, 1 in 9 twice; 2 or so for a miss | no    |
    /// | insert    | the same; with counters `probes` more      | no       |
    /// | remove    | as insert; with counters only              | no       |
    /// | merge     | all, in order                              | mismatch |
    ///
    /// Half of a Bloom filter's positions are taken, and each has a second bit, 1 to 56 bits further on: so near that both
    /// come with one load of 64 bits from the byte of the first. The distance is one of the key's hash values. So a key takes
    /// `probes / 2 + 1` values of the digest and `probes / 2` loads.
    ///
    /// With [counters](Spec::with_counter_bits) keys can be removed. Each bit then has a counter, which only inserts and
    /// removes look at: questions read the bits. A counter that is at its top stays there, as in
    /// [`Counting`](crate::Counting).
    ///
    /// More than one [offset](Spec::with_shifts) per place takes fewer loads still and errs more often:
    /// [`math::shifting_fpr`].
    ///
    /// **Paper** Yang, Liu, Shahzad, Zhong, Fu, Li, Xie, Li, *A Shifting Bloom Filter Framework for Set Queries*, PVLDB 2016.
    /// **We differ** in that one 128-bit hash gives all values, and in that the different bits of a key are counted, so that
    /// two that meet do not raise a counter twice.
    ///
    /// Two filters are equal if they give the same answer to every key, now and after the same changes: same size, hashing,
    /// bits and counters.
    ///
    /// The estimated number of keys in an intersection is that of the common keys when it was made; not a number if that is
    /// unknown, or if the intersection was changed afterwards.
    ///
    /// ```
    /// use mayhap::{Shifting, Spec};
    ///
    /// let mut seen = Shifting::new(1_000_000, 0.01)?;
    /// seen.insert("https://example.org/");
    /// assert!(seen.contains("https://example.org/"));
    ///
    /// let mut online = Shifting::from_spec(&Spec::sized(1000, 0.01).with_counter_bits(4))?;
    /// online.insert("ada");
    /// assert!(online.remove("ada")?.is_removed());
    /// assert!(!online.contains("ada")); // certain: nothing else is in
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Shifting(Bits) = FAMILY {
        /// It has no counters.
        new,
        /// Bits are all that it takes, counters and the 56 bits behind the last place included.
        specified,
        /// A key that is already in is counted once more, if there are counters.
        inserts,
        /// A key whose counters are all saturated is [`Stuck`](Removal::Stuck): how often it is in is unknown.
        ///
        /// Do not remove a key that was never inserted: if all of its bits are set by chance, other keys lose theirs.
        ///
        /// A filter without counters cannot: [`Error::UnsupportedWithoutCounters`].
        may_remove,
        matches,
        /// It is as if all keys had been inserted here.
        merges,
        may_intersect,
    }
}

/// The bits of a shifting Bloom filter.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    windows: Windows,
    size: ShiftingSize,
    shape: WindowsOfBits,
    paths: Paths,
    /// What is known of its keys, if it is an intersection.
    intersection: Option<Intersection>,
}

/// From a digest to windows and the bits to test in each: arithmetic without memory.
#[derive(Clone, Copy, Debug)]
struct WindowsOfBits {
    /// Places at which a window may start.
    starts: u64,
    /// Windows per key.
    groups: u32,
    /// Offsets per key.
    shifts: u32,
    /// How many bits each offset has to choose from.
    segment: u64,
}

impl WindowsOfBits {
    const fn of(size: &ShiftingSize) -> Self {
        let segment = BEHIND / size.shifts as u64;
        Self { starts: size.starts, groups: size.probes / (size.shifts + 1), shifts: size.shifts, segment }
    }

    /// The bits of a window that a key has: the first, and one for each of the next values of the walk.
    #[inline(always)]
    fn mask(self, walk: &mut Walk) -> u64 {
        let mut mask = 1;
        for shift in 0..u64::from(self.shifts) {
            // From 1 on: an offset of 0 would have one bit stand for two.
            mask |= 2 << (shift * self.segment + reduce(walk.next(), self.segment));
        }
        mask
    }

    /// Where the next window starts.
    #[inline(always)]
    fn next(self, walk: &mut Walk) -> u64 {
        reduce(walk.next(), self.starts)
    }

    /// Whether all bits of a key are set. `window` reads a window; it is not called again once two windows do
    /// not have them.
    #[inline(always)]
    fn holds(self, digest: Digest, window: impl FnMut(u64) -> u64) -> bool {
        let mut walk = Walk::new(digest);
        let mask = self.mask(&mut walk);
        self.holds_rest(mask, &mut walk, self.groups, window)
    }

    /// Two windows are read before each decision: at half full one in four absent keys passes one window, which the
    /// processor cannot foresee, and one in sixteen passes two.
    #[inline(always)]
    fn holds_rest(self, mask: u64, walk: &mut Walk, groups: u32, mut window: impl FnMut(u64) -> u64) -> bool {
        let mut pair = |windows: u32| (0..windows).fold(mask, |all, _| all & window(self.next(walk))) == mask;
        (0..groups / 2).all(|_| pair(2)) && pair(groups % 2)
    }

    /// Calls `then` with the different bits of a key.
    #[inline(always)]
    fn with_bits<R>(self, digest: Digest, then: impl FnOnce(&[u64]) -> R) -> R {
        let mut walk = Walk::new(digest);
        let mask = self.mask(&mut walk);
        let starts = (0..self.groups).map(move |_| self.next(&mut walk));
        let mut room = [0; MAX_PROBES as usize];
        then(distinct(starts.flat_map(|start| places(start, mask)), &mut room))
    }
}

/// The bits of a window that a mask has.
#[inline(always)]
fn places(start: u64, mut mask: u64) -> impl Iterator<Item = u64> {
    core::iter::from_fn(move || {
        let place = (mask != 0).then(|| start + u64::from(mask.trailing_zeros()))?;
        mask &= mask - 1;
        Some(place)
    })
}

/// Inserts one key, and says whether it was new.
#[inline(always)]
fn put(windows: &mut WindowsMut<'_>, shape: WindowsOfBits, digest: Digest) -> bool {
    if windows.counters().is_some() {
        return shape.with_bits(digest, |places| {
            prefetch_counters(windows, places);
            places.iter().fold(false, |new, &place| windows.raise(place) | new)
        });
    }
    let mut walk = Walk::new(digest);
    let mask = shape.mask(&mut walk);
    (0..shape.groups).fold(false, |new, _| windows.set(shape.next(&mut walk), mask) | new)
}

/// All are prefetched before the first is read.
#[inline(always)]
pub(super) fn prefetch_counters(windows: &WindowsMut<'_>, places: &[u64]) {
    if let Some(counters) = windows.counters() {
        places.iter().for_each(|&place| counters.prefetch(place));
    }
}

/// A key whose first window has its bits, on its way to the others.
#[derive(Clone, Copy, Default)]
struct Survivor {
    mask: u64,
    walk: Walk,
    /// Where its answer goes.
    answer: usize,
}

/// Looks up many keys in a filter larger than the cache; overwrites `hits` with one answer each.
///
/// A missing key passes its first window with a chance of 1 in 4 or so. So only that one is prefetched for all keys, and the
/// others of those that pass, a batch later.
fn ask_far<K>(
    windows: WindowsRef<'_>,
    shape: WindowsOfBits,
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    hits: &mut [bool],
) {
    let mut survivors = [Survivor::default(); BATCH];
    let (mut passed, mut asked) = (0, 0);
    let first = |digest: Digest| {
        let mut walk = Walk::new(digest);
        let mask = shape.mask(&mut walk);
        (mask, shape.next(&mut walk), walk)
    };
    let ahead = |_: &(), digest: Digest| windows.prefetch(first(digest).1);
    pipeline(&mut (), keys, hash, true, ahead, |(), digests| {
        for Survivor { mask, mut walk, answer } in survivors.into_iter().take(passed) {
            hits[answer] = shape.holds_rest(mask, &mut walk, shape.groups - 1, |start| windows.window(start));
        }
        passed = 0;
        // Only those that pass get an answer later on; the others have theirs now.
        hits[asked..asked + digests.len()].fill(false);
        for (index, &digest) in digests.iter().enumerate() {
            let (mask, start, walk) = first(digest);
            // Written for every key and kept for some: a branch would be mispredicted.
            survivors[passed % BATCH] = Survivor { mask, walk, answer: asked + index };
            passed += usize::from(windows.window(start) & mask == mask);
        }
        for survivor in &survivors[..passed] {
            let mut walk = survivor.walk;
            (1..shape.groups).for_each(|_| windows.prefetch(shape.next(&mut walk)));
        }
        asked += digests.len();
    });
    debug_assert!(asked == keys.len() && passed == 0, "the pipeline ends a turn after its last key");
}

impl Bits {
    fn len_by_bits(&self, ones: u64) -> f64 {
        math::estimated_len(self.windows.len(), ones, self.size.probes)
    }
}

impl Kernel for Bits {
    type Hash = Digest;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        let windows = self.windows.view();
        self.shape.holds(digest, |start| windows.window(start))
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), hits: &mut [bool]) {
        let (windows, shape) = (self.windows.view(), self.shape);
        if self.paths.is_far(windows.bytes(), PREFETCH_FROM_BYTES) {
            return ask_far(windows, shape, keys, hash, hits);
        }
        let mut answers = hits.iter_mut();
        pipeline(
            &mut (),
            keys,
            hash,
            false,
            |_, _| {},
            |(), digests| {
                for (&digest, hit) in digests.iter().zip(&mut answers) {
                    *hit = shape.holds(digest, |start| windows.window(start));
                }
            },
        );
    }

    fn plan(&self) -> Plan {
        self.size.plan()
    }

    fn fill(&self) -> f64 {
        self.windows.ones() as f64 / self.windows.len() as f64
    }

    fn rate(&self) -> Rate {
        let WindowsOfBits { groups, shifts, segment, .. } = self.shape;
        let masks = segment.pow(shifts);
        if masks.saturating_mul(self.windows.starts() / 64) > rates::LOOKED_AT_WINDOWS {
            return Rate::computed(math::shifting_fpr_from_unset(
                1.0 - self.fill(),
                self.size.probes,
                shifts,
            ));
        }
        let sum: f64 = (0..masks)
            .map(|number| {
                let offset = |shift: u32| u64::from(shift) * segment + number / segment.pow(shift) % segment;
                let mask = (0..shifts).fold(1, |mask, shift| mask | 2 << offset(shift));
                math::fpr_from_fill(self.windows.share_with(mask), groups)
            })
            .sum();
        rates::sampled_if_tiny(
            |digest| self.contains(digest),
            self.windows.starts(),
            groups,
            rates::SAMPLED,
            sum / masks as f64,
        )
    }

    fn estimated_len(&self) -> f64 {
        match self.intersection {
            Some(intersection) => intersection.len(self.windows.ones()),
            None => self.len_by_bits(self.windows.ones()),
        }
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        windows_must_agree((self.plan(), self.size.counter_bits), (other.plan(), other.size.counter_bits))?;
        must_agree(self.size, other.size, |size| [(Parameter::Shifts, size.shifts.into())])
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.windows == other.windows
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let ShiftingSize { capacity, starts, probes, shifts, counter_bits, fpr_asked, .. } = self.size;
        out.probing(PROBING);
        out.ones(self.windows.ones());
        out.intersection(Intersection::stored(self.intersection, self.windows.ones()));
        out.params()
            .u64(starts)
            .u32(probes)
            .u32(shifts)
            .u32(WINDOW)
            .u32(counter_bits.unwrap_or(0))
            .u64(capacity)
            .f64(fpr_asked)
            .u64(saturated(&self.windows));
        write_windows(&self.windows, out);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(&frame.header.params);
        let starts = fields.u64("places")?;
        let probes = fields.u32("probes")?;
        let shifts = fields.u32("shifts")?;
        let claim = Claim { starts, counter_bits: read_shape(&mut fields)?, saturated: 0 };
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let claim = Claim { saturated: fields.u64("saturated counters")?, ..claim };
        fields.end("parameters", frame.header.params.len())?;
        if !(1..=MAX_SHIFTS).contains(&shifts) {
            return Err(DecodeError::Value { field: "shifts", found: shifts.into() });
        }
        if !(1..=MAX_PROBES).contains(&probes) || !probes.is_multiple_of(shifts + 1) {
            return Err(DecodeError::Value { field: "probes", found: probes.into() });
        }
        let windows = claim.windows(frame)?;
        let fpr = math::shifting_fpr(starts, capacity as f64, probes, shifts);
        let counter_bits = claim.counter_bits;
        let size = ShiftingSize { capacity, starts, probes, shifts, counter_bits, fpr_asked, fpr };
        let intersection = Intersection::read(frame.header.intersection, windows.ones());
        Ok(Self { windows, size, shape: WindowsOfBits::of(&size), paths: Paths::default(), intersection })
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

    fn can(&self) -> Option<Capabilities> {
        let counts = self.size.counter_bits.is_some();
        Some(Capabilities { removes: counts, intersects: !counts, ..Shifting::CAN })
    }

    fn unsupported(&self, operation: &'static str) -> Option<Error> {
        let family = FAMILY.name;
        (operation == "remove").then_some(Error::UnsupportedWithoutCounters { family, operation })
    }
}

impl Empty for Bits {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let size = spec.shifting()?;
        let windows = Windows::zeroed(size.starts, size.counter_bits)?;
        Ok(Self { windows, size, shape: WindowsOfBits::of(&size), paths: spec.paths, intersection: None })
    }

    /// No counter is saturated afterwards.
    fn clear(&mut self) {
        self.windows.clear();
        self.intersection = None;
    }
}

impl Inserts for Bits {
    type Error = Infallible;

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<Insertion, Infallible> {
        Ok(Insertion::new_if(put(&mut self.windows.view_mut(), self.shape, digest)))
    }

    #[inline(always)]
    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Infallible> {
        let (shape, mut windows) = (self.shape, self.windows.view_mut());
        let far = self.paths.is_far(windows.view().bytes(), PREFETCH_FROM_BYTES);
        let ahead = |windows: &WindowsMut<'_>, digest: Digest| {
            let mut walk = Walk::new(digest);
            shape.mask(&mut walk);
            (0..shape.groups).for_each(|_| windows.view().prefetch(shape.next(&mut walk)));
        };
        pipeline(&mut windows, keys, hash, far, ahead, |windows, digests| {
            digests.iter().for_each(|&digest| told(Insertion::new_if(put(windows, shape, digest))));
        });
        Ok(())
    }
}

/// From a filter without counters nothing is removed, and every key is absent; it does not offer it.
impl Removes for Bits {
    fn remove(&mut self, digest: Digest) -> Removal {
        if self.size.counter_bits.is_none() || !self.contains(digest) {
            return Removal::Absent;
        }
        let mut windows = self.windows.view_mut();
        self.shape.with_bits(digest, |places| {
            prefetch_counters(&windows, places);
            if windows.lower_all(places) { Removal::Stuck } else { Removal::Removed }
        })
    }
}

impl Merges for Bits {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        self.intersection = Intersection::of_union(self.intersection, other.intersection);
        self.windows.merge(&other.windows);
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
    }
}

impl Intersects for Bits {
    fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        let common = match (self.intersection, other.intersection) {
            (None, None) => {
                let union = self.len_by_bits(self.windows.ones_of_union(&other.windows));
                (self.estimated_len() + other.estimated_len() - union).max(0.0)
            }
            _ => f64::NAN,
        };
        self.windows.intersect(&other.windows);
        self.intersection = Intersection::of(common, self.windows.ones());
        Ok(())
    }
}

impl Shifting {
    /// Intersection: afterwards this filter still holds every key that was in both.
    ///
    /// Its rate is not above the lower one of the two, for keys that are in neither. A key of one filter alone is admitted as
    /// often as the other filter admits a missing one. A filter with counters cannot: which of the keys that raised a
    /// counter stay is unknown.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; [`Error::Unsupported`] if there are counters. Then nothing has changed.
    pub fn intersect(&mut self, other: &Self) -> Result<(), Error> {
        self.must_match(other)?;
        if !self.can().intersects {
            return Err(self.unsupported("intersect"));
        }
        Ok(self.0.intersect(&other.0)?)
    }

    /// Whether a key is probably in. `read` is called with the number of the first of the 8 bytes of each load, for benchmarks
    /// that count cache lines.
    #[doc(hidden)]
    #[doc(hidden)]
    pub fn contains_traced(&self, key: impl Key, mut read: impl FnMut(u64)) -> bool {
        let windows = self.0.kernel.windows.view();
        self.0.kernel.shape.holds(self.hashing().digest_of(key), |start| {
            read(start / 8);
            windows.window(start)
        })
    }

    /// The bits of a key, those of one load together: a place, and the same distances beyond it for every place.
    ///
    /// ```
    /// let mut seen = mayhap::Shifting::new(100, 0.01)?;
    /// seen.insert("hello");
    /// let loads = seen.loads("hello");
    /// assert_eq!(loads.len() as u32, seen.probes() / 2);
    /// assert!(loads.iter().flatten().all(|&bit| seen.bit(bit) == Some(true)));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    #[must_use]
    pub fn loads(&self, key: impl Key) -> Vec<Vec<u64>> {
        let shape = self.0.kernel.shape;
        let mut walk = Walk::new(self.hashing().digest_of(key));
        let mask = shape.mask(&mut walk);
        (0..shape.groups).map(|_| places(shape.next(&mut walk), mask).collect()).collect()
    }

    /// Whether a bit is set; `None` behind the last.
    #[must_use]
    pub fn bit(&self, position: u64) -> Option<bool> {
        let windows = &self.0.kernel.windows;
        let word = |position: u64| windows.words().as_slice()[index(position / 64)];
        (position < windows.len()).then(|| word(position) >> (position % 64) & 1 == 1)
    }

    /// The places at which a window may start: what the bits of a Bloom filter are.
    #[must_use]
    pub fn starts(&self) -> u64 {
        self.0.kernel.size.starts
    }

    /// Bits per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.0.kernel.size.probes
    }

    /// Offsets per key.
    #[must_use]
    pub fn shifts(&self) -> u32 {
        self.0.kernel.size.shifts
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

impl Intersect for Shifting {
    fn intersect_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        let other = family::same_type(self, other)?;
        // Filters with counters do not offer this. If it is called all the same they stay as they are, which loses no key.
        if self.can().intersects { self.0.intersect(&other.0) } else { self.must_match(other) }
    }
}

/// What two filters that are read in windows must have in common: the bits of their counters, their bits, their probes.
///
/// # Errors
/// [`Mismatch`] names the first difference.
pub(super) fn windows_must_agree(
    ours: (Plan, Option<u32>),
    theirs: (Plan, Option<u32>),
) -> Result<(), Mismatch> {
    must_agree(ours, theirs, |(plan, counter_bits)| {
        [
            (Parameter::CounterBits, counter_bits.map_or("none".into(), Value::from)),
            (Parameter::Bits, plan.bits.into()),
            (Parameter::Probes, plan.probes.unwrap_or(0).into()),
        ]
    })
}

/// The bits of a window, which are always as many, and those of a counter.
pub(super) fn read_shape(fields: &mut Fields<'_>) -> Result<Option<u32>, DecodeError> {
    let window = fields.u32("bits of a window")?;
    if window != WINDOW {
        return Err(DecodeError::Value { field: "bits of a window", found: window.into() });
    }
    match fields.u32("bits of a counter")? {
        0 => Ok(None),
        bits @ 2..=16 => Ok(Some(bits)),
        found => Err(DecodeError::Value { field: "bits of a counter", found: found.into() }),
    }
}

/// What the parameters of a file say about its bits and counters: the same for the three families of windows.
pub(super) struct Claim {
    pub(super) starts: u64,
    pub(super) counter_bits: Option<u32>,
    pub(super) saturated: u64,
}

impl Claim {
    /// The payload, if it is what the parameters say.
    pub(super) fn windows(&self, frame: &mut Frame) -> Result<Windows, DecodeError> {
        let &Self { starts, counter_bits, saturated } = self;
        let header = &frame.header;
        if starts == 0 || window_bits(starts, counter_bits) > MAX_BITS {
            return Err(DecodeError::Value { field: "places", found: starts });
        }
        let bits = starts + BEHIND;
        if saturated > if counter_bits.is_some() { bits } else { 0 } {
            return Err(DecodeError::Value { field: "saturated counters", found: saturated });
        }
        let of_bits = words_for(bits) * 8;
        let of_counters = counter_bits.map_or(0, |width| words_for(bits * u64::from(width)) * 8);
        let (expected, found) = (of_bits + of_counters, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        if let Some(found) = header.ones.filter(|&ones| ones > bits) {
            return Err(DecodeError::Value { field: "set bits", found });
        }
        let ones = header.ones;
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let (words, counters) = match counter_bits {
            None => (read_words(payload)?, None),
            Some(width) => {
                let length = payload.len();
                // As long as the header says, which has been compared with what the parameters need.
                let part = |range| {
                    payload
                        .part(range)
                        .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })
                };
                let (bits_part, rest) = (part(0..index(of_bits))?, part(index(of_bits)..length)?);
                let counters = Counters::from_words(
                    read_words(rest)?,
                    Vec::new().into(),
                    bits,
                    Width::Fixed(width),
                    saturated,
                )
                .ok_or(DecodeError::Padding { field: "end of the counters" })?;
                (read_words(bits_part)?, Some(counters))
            }
        };
        let windows = Windows::from_words(words, counters, starts, ones)
            .ok_or(DecodeError::Padding { field: "end of the payload" })?;
        // Looked at only when the whole payload is read anyway, so that a large file opens by its header.
        if frame.verified {
            if let Some(found) = ones.filter(|&ones| ones != windows.count_ones()) {
                return Err(DecodeError::Value { field: "set bits", found });
            }
            if !windows.are_sound() {
                return Err(DecodeError::Payload { problem: "bits and counters do not agree" });
            }
        }
        Ok(windows)
    }
}

fn read_words(bytes: Bytes) -> Result<Words, DecodeError> {
    Words::from_bytes(bytes).ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })
}

/// Writes bits and counters: what [`Claim::windows`] reads.
pub(super) fn write_windows<'a>(windows: &'a Windows, out: &mut Writer<'a>) {
    out.words(windows.words());
    if let Some(counters) = windows.counters() {
        out.words(counters.words());
    }
}

/// How many counters of windows are at their top.
pub(super) fn saturated(windows: &Windows) -> u64 {
    windows.counters().map_or(0, Counters::saturated)
}

/// What filters of windows promise.
pub(super) const fn guarantee(counter_bits: Option<u32>) -> Guarantee {
    if counter_bits.is_some() {
        Guarantee::NoFalseNegativesIfDeletesValid
    } else {
        Guarantee::NoFalseNegatives
    }
}

/// What the counters of windows are, for people.
pub(super) fn counter_report(windows: &Windows, bits: Option<u32>) -> Option<CounterReport> {
    let counters = windows.counters()?;
    Some(CounterReport {
        counters: counters.len(),
        bits,
        saturated: counters.saturated(),
        overflowed: 0,
        rule: None,
        degraded: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: an offset from the first value, places from the others; `probes / 2` loads for a key that is in.
    #[test]
    fn a_key_has_an_offset_and_places_by_the_definition() {
        for (probes, shifts, bits) in [(8, 1, 10_056), (2, 1, 57), (6, 2, 5_000), (8, 3, 1_000_000)] {
            let spec = Spec::new().with_bits(bits).with_probes(probes).with_shifts(shifts);
            let mut filter = Shifting::from_spec(&spec).unwrap();
            for key in 0..200u64 {
                let digest = filter.hashing().digest_of(key);
                let mut values = {
                    let mut walk = Walk::new(digest);
                    core::iter::from_fn(move || Some(walk.next()))
                };
                let segment = 56 / u64::from(shifts);
                let offsets: Vec<u64> = (0..u64::from(shifts))
                    .map(|shift| shift * segment + 1 + reduce(values.next().unwrap(), segment))
                    .collect();
                assert!(offsets.iter().all(|offset| (1..=56).contains(offset)));
                let starts: Vec<u64> = (0..probes / (shifts + 1))
                    .map(|_| reduce(values.next().unwrap(), filter.starts()))
                    .collect();
                let mut expected: Vec<u64> = Vec::new();
                for &start in &starts {
                    expected
                        .extend(core::iter::once(start).chain(offsets.iter().map(|offset| start + offset)));
                }
                let mut seen = Vec::new();
                let mut distinct = Vec::new();
                filter.0.kernel.shape.holds(digest, |start| {
                    seen.push(start);
                    u64::MAX
                });
                filter.0.kernel.shape.with_bits(digest, |places| distinct.extend_from_slice(places));
                assert_eq!(seen, starts, "one load for each place, in order");
                expected.sort_unstable();
                expected.dedup();
                distinct.sort_unstable();
                assert_eq!(distinct, expected);
                let before = filter.0.kernel.windows.clone();
                filter.insert(key);
                for place in (0..filter.0.kernel.windows.len()).filter(|_| bits < 10_000) {
                    let bit = |windows: &Windows| {
                        windows.words().as_slice()[(place / 64) as usize] >> (place % 64) & 1
                    };
                    let set = bit(&before) == 1 || expected.contains(&place);
                    assert_eq!(bit(&filter.0.kernel.windows) == 1, set);
                }
            }
        }
    }

    /// Nothing is read behind the first two windows of which one fails.
    #[test]
    fn a_question_stops_at_the_first_windows_that_fail() {
        for (probes, failing, expected) in
            [(8, 1, 2), (8, 2, 2), (8, 3, 4), (8, 4, 4), (6, 1, 2), (6, 3, 3), (2, 1, 1)]
        {
            let shape =
                WindowsOfBits::of(&Spec::new().with_bits(10_000).with_probes(probes).shifting().unwrap());
            let mut loads = 0;
            let holds = shape.holds(Hashing::default().digest_of(7u64), |_| {
                loads += 1;
                if loads == failing { 1 } else { u64::MAX }
            });
            assert!(!holds && loads == expected);
        }
    }
}
