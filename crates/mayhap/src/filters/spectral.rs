//! Spectral Bloom filter: how often was a key inserted?

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::convert::Infallible;

use super::counting::{contains_ahead, read_ahead, write_ahead};
use crate::batch::pipeline;
use crate::bits::{Bytes, Counters, CountersMut, CountersRef, Width, Words, words_for};
use crate::error::{DecodeError, Error, Knob, Mismatch, Parameter, SpecError, Value, must_agree};
use crate::family::{Capabilities, Cost, CounterReport, Details, Family, Guarantee, Make, Profile, Space};
use crate::filters::bloom::BloomSize;
use crate::hash::{Digest, Hashing, Key};
use crate::math;
use crate::narrow::index;
use crate::paths::Paths;
use crate::probing::{Probing, positions, with_distinct};
use crate::rates::{self, Rate};
use crate::shell::{self, Counts, Empty, Inserts, Kernel, Merges, Removes, filter};
use crate::spec::{CountingRule, MAX_BITS, Plan, Size, Spec};
use crate::traits::{Insertion, Removal};
use crate::wire::{Fields, Frame, Writer};

/// The family `spectral`.
pub(crate) static FAMILY: Family = Family {
    id: 7,
    name: "spectral",
    summary: "counts the occurrences of each key",
    // That of the default rule.
    can: capabilities(CountingRule::MinimalIncrease),
    knobs: &[Knob::Probes.any(), Knob::CounterBits.within(4, 32), Knob::CountingRule.any()],
    probing: &[Probing::Scaled],
    cost: Cost { query: "O(k)", insert: "O(k)", space: "5.77 n log2(1/p) and up" },
    make: Make::Empty(|spec| Ok(Box::new(Spectral::from_spec(spec)?))),
    shared: None,
    plan: |spec| Ok(spec.spectral()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Spectral::decode(frame, hashing)?)),
    in_place: false,
    profile: Profile {
        space: Some(Space { per_key: |bits| 5.771 * bits, less: 0.01, more: 0.01 }),
        is_ordered: true,
        ..Profile::USUAL
    },
};

/// The numbers of a spectral filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SpectralSize {
    /// The number of different keys it is made for.
    pub capacity: u64,
    /// Its counters; those of the second filter of recurring minimum are not among them.
    pub cells: u64,
    /// Positions per key.
    pub probes: u32,
    /// How wide each counter is.
    pub width: Width,
    /// How it counts.
    pub rule: CountingRule,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity: of false positives, and of wrong estimates by minimum
    /// selection.
    pub fpr: f64,
}

/// While no counter is above 15.
impl Size for SpectralSize {
    fn plan(&self) -> Plan {
        let Self { capacity, cells, probes, width, rule, fpr_asked, fpr } = *self;
        Plan { capacity, fpr_asked, fpr, bits: bits_of(cells, width, rule), probes: Some(probes) }
    }
}

/// The bits of a spectral filter while no counter is above 15.
fn bits_of(cells: u64, width: Width, rule: CountingRule) -> u64 {
    let counters = |cells: u64| cells.saturating_mul(width.base().into());
    match rule {
        CountingRule::MinimumSelection | CountingRule::MinimalIncrease => counters(cells),
        // The counters, those of the second filter, and one bit to mark who is in there.
        CountingRule::RecurringMinimum => {
            counters(cells).saturating_add(counters(secondary_cells(cells))).saturating_add(cells)
        }
    }
}

/// How many counters the second filter of recurring minimum has: half as many as the first.
const fn secondary_cells(cells: u64) -> u64 {
    cells.div_ceil(2)
}

impl Spec {
    /// Solves for what is not requested, for a spectral filter: as many counters as a Bloom filter has bits, whose
    /// false positives are the wrong estimates of minimum selection.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn spectral(&self) -> Result<SpectralSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let width = asked.counter_bits.map_or(Width::Variable, Width::Fixed);
        let rule = asked.counting_rule.unwrap_or_default();
        let BloomSize { capacity, bits: cells, probes, fpr_asked, fpr } =
            asked.cells(|cells| bits_of(cells, width, rule))?;
        Ok(SpectralSize { capacity, cells, probes, width, rule, fpr_asked, fpr })
    }
}

/// What a filter that counts by this rule can do.
pub(crate) const fn capabilities(rule: CountingRule) -> Capabilities {
    Capabilities {
        // Which counters a key has raised is not known.
        removes: !matches!(rule, CountingRule::MinimalIncrease),
        // A key that is marked here and not there has half of its count in the second filter.
        merges: !matches!(rule, CountingRule::RecurringMinimum),
        ..Spectral::CAN
    }
}

filter! {
    /// A spectral Bloom filter.
    ///
    /// **Answers** "how often was this key inserted?", and "was it at all?"
    /// **Promise** an estimate is never too low by the rules minimum selection and minimal increase; it is too high
    /// with at most the asked rate at capacity. A key that is in is never denied.
    /// **Not for** exact counts; sets, in which every key is there once ([`Counting`](crate::Counting) takes the same
    /// space and removes more cheaply, [`Bloom`](crate::Bloom) takes a quarter).
    ///
    /// ```text
    ///   key ─▶ digest ─▶ different positions     counters  0 7 0 0 3 0 0 0 4 0 0 3 0
    ///                    1, 4, 11                            ▲     ▲             ▲      the lowest: 3 times, perhaps
    ///   minimum selection     raises all three:              8     4             4
    ///   minimal increase      only the lowest ones:          7     4             4
    /// ```
    ///
    /// | rule                | wrong estimates                 | removes | merges | memory |
    /// |---------------------|---------------------------------|---------|--------|--------|
    /// | `minimum-selection` | as often as false positives     | yes     | yes    | 1      |
    /// | `minimal-increase`  | about half as often, and smaller | no     | yes, with more errors | 1 |
    /// | `recurring-minimum` | about half as often, the smallest | yes   | no     | 1.75   |
    ///
    /// | operation | cache lines                  | can fail |
    /// |-----------|------------------------------|----------|
    /// | contains  | `probes`; 2 for most misses  | no       |
    /// | count     | `probes`                     | no       |
    /// | insert    | `probes`                     | no       |
    /// | remove    | `probes`                     | the rule has none |
    /// | merge     | all, in order                | mismatch |
    ///
    /// By recurring minimum, a key whose lowest counter stands alone (two that agree are nearly always right) goes to a
    /// second filter of half the size, and a Bloom filter marks it. The few keys that are marked by chance may be
    /// estimated too low, and after removals some others too; none of them is denied.
    ///
    /// Counters take 4 bits, and those above 15 are continued in a list of 16 bytes each. Where that is not wanted, 4 to
    /// 32 bits can be chosen: then a counter that reaches its top stays there, and its count is that or more.
    ///
    /// **Paper** Cohen, Matias, *Spectral Bloom Filters*, SIGMOD 2003.
    /// **We differ** in that counters are not packed by their lengths, that the different positions of a key are taken,
    /// and that keys of the second filter are marked: without the mark its counts go stale. A key that is marked but has
    /// a zero in the second filter was never there, so its first estimate stands.
    ///
    /// Two filters are equal if they give the same answer to every key, now and after the same changes: same size, rule,
    /// hashing and counters.
    ///
    /// ```
    /// use mayhap::Spectral;
    ///
    /// let mut words = Spectral::new(10_000, 0.01)?;
    /// for word in "the cat and the dog and the bird".split(' ') {
    ///     words.insert(word);
    /// }
    /// assert!(words.count("the") >= 3); // never too low
    /// assert_eq!(words.count("fish"), 0); // with this seed; another one may err, once in a while
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Spectral(Cells) = FAMILY {
        /// At capacity the estimates of at most this share of the keys are too high. It counts by minimal increase, in
        /// counters of variable width.
        new,
        /// Bits are those of all counters together, and of the second filter.
        ///
        /// ```
        /// use mayhap::{CountingRule, Spec, Spectral};
        ///
        /// let asked = Spec::sized(10_000, 0.01).with_counting_rule(CountingRule::MinimumSelection);
        /// let mut stock = Spectral::from_spec(&asked)?;
        /// stock.insert_times("bolt", 500);
        /// assert!(stock.remove_times("bolt", 20)?.is_removed());
        /// assert_eq!(stock.count("bolt"), 480);
        /// # Ok::<(), mayhap::Error>(())
        /// ```
        specified,
        /// A key that is already in is counted once more.
        inserts,
        ///
        /// A key whose counters are all saturated is [`Stuck`](Removal::Stuck): how often it is in is unknown.
        ///
        /// Do not remove a key that was never inserted: if all of its counters are above 0 by chance, the counts of other keys
        /// become too low.
        ///
        /// Filters that count by minimal increase cannot remove keys: [`Error::UnsupportedByRule`].
        may_remove,
        /// Never too low by minimum selection and minimal increase.
        counts,
        matches,
        ///
        /// Each key is in as often as in both together. By minimum selection it is as if all had been inserted here. By minimal
        /// increase more estimates are too high than if they had been, but none is too low:
        /// [`is_degraded`](Spectral::is_degraded). Filters that count by recurring minimum do not merge.
        merges,
    }
}

/// The counters of a spectral Bloom filter.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    counters: Counters,
    /// For recurring minimum.
    second: Option<Box<Second>>,
    size: SpectralSize,
    paths: Paths,
    /// Counters above 0, without those of the second filter.
    occupied: u64,
    /// Whether filters that count by minimal increase were added up: then the counters are no longer minimal.
    degraded: bool,
}

/// The second filter: counters of the keys whose lowest counter in the first stood alone, and marks for them.
#[derive(Clone, Debug, PartialEq)]
struct Second {
    counters: Counters,
    /// A Bloom filter with as many bits as the first filter has counters, and a key's positions there.
    marks: Words,
}

/// Where the second filter and its marks are changed.
struct SecondMut<'a> {
    counters: CountersMut<'a>,
    marks: &'a mut [u64],
}

/// Odd, so that different digests stay different; from the square root of 3.
const OTHER: u64 = 0xBB67_AE85_84CA_A73B;

/// The digest for the second filter. With the key's own digest, keys that collide in the first filter would collide in the
/// second too: it has half the counters, and the positions would be half as far.
const fn other(digest: Digest) -> Digest {
    Digest { a: digest.a.wrapping_mul(OTHER), b: digest.b.wrapping_mul(OTHER) }
}

impl Second {
    fn zeroed(size: &SpectralSize) -> Result<Self, SpecError> {
        let counters = Counters::zeroed(secondary_cells(size.cells), size.width)?;
        Ok(Self { counters, marks: Words::zeroed(words_for(size.cells))? })
    }

    fn view_mut(&mut self) -> SecondMut<'_> {
        SecondMut { counters: self.counters.view_mut(), marks: self.marks.as_mut_slice() }
    }
}

#[inline]
fn is_marked(marks: &[u64], digest: Digest, size: &SpectralSize) -> bool {
    positions(digest, size.probes, size.cells).all(|place| marks[index(place / 64)] >> (place % 64) & 1 == 1)
}

fn mark(marks: &mut [u64], digest: Digest, size: &SpectralSize) {
    positions(digest, size.probes, size.cells)
        .for_each(|place| marks[index(place / 64)] |= 1 << (place % 64));
}

impl Cells {
    /// The number of counters and of probes.
    fn places(&self) -> (u64, u32) {
        (self.size.cells, self.size.probes)
    }

    #[inline]
    fn insert_times(&mut self, digest: Digest, times: u64) -> Insertion {
        let mut second = self.second.as_mut().map(|second| second.view_mut());
        let fresh = raise(&mut self.counters.view_mut(), second.as_mut(), digest, times, &self.size);
        self.occupied += fresh;
        Insertion::new_if(fresh > 0)
    }

    fn take(&mut self, digest: Digest, times: u64) -> Removal {
        let size = &self.size;
        let top = size.width.max();
        if self.counters.view().least(positions(digest, size.probes, size.cells)) == top {
            return Removal::Stuck;
        }
        let emptied =
            lower(&mut self.counters.view_mut(), digest, times, (size.cells, size.probes), size.width);
        let Some(emptied) = emptied else { return Removal::Absent };
        // A header that was not compared with its payload may have claimed fewer.
        self.occupied = self.occupied.saturating_sub(emptied);
        if let Some(second) = &mut self.second {
            let SecondMut { mut counters, marks } = second.view_mut();
            if is_marked(marks, digest, size) {
                // A key that is marked by chance has no counts there; zeros may show it.
                let places = (secondary_cells(size.cells), size.probes);
                lower(&mut counters, other(digest), times, places, size.width);
            }
        }
        Removal::Removed
    }

    #[inline(always)]
    fn estimate(&self, counters: CountersRef<'_>, digest: Digest) -> u64 {
        let SpectralSize { cells, probes, .. } = self.size;
        let first = counters.least(positions(digest, probes, cells));
        match &self.second {
            Some(second) if first > 0 && is_marked(second.marks.as_slice(), digest, &self.size) => {
                let places = positions(other(digest), probes, secondary_cells(cells));
                match second.counters.view().least(places) {
                    0 => first,
                    second => first.min(second),
                }
            }
            _ => first,
        }
    }

    fn saturated(&self) -> u64 {
        let second = self.second.as_ref().map_or(0, |second| second.counters.saturated());
        self.counters.saturated().saturating_add(second)
    }

    fn overflowed(&self) -> u64 {
        self.counters.overflowed() + self.second.as_ref().map_or(0, |second| second.counters.overflowed())
    }
}

impl Kernel for Cells {
    type Hash = Digest;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        let counters = self.counters.view();
        !positions(digest, self.size.probes, self.size.cells).any(|place| counters.is_zero(place))
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), hits: &mut [bool]) {
        contains_ahead(self.paths, self.counters.view(), self.places(), keys, hash, hits);
    }

    /// Its bits include the list of counters above 15.
    fn plan(&self) -> Plan {
        let plan = self.size.plan();
        Plan { bits: plan.bits + 128 * self.overflowed(), ..plan }
    }

    fn fill(&self) -> f64 {
        self.occupied as f64 / self.size.cells as f64
    }

    /// How many missing keys have a count.
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
                (Parameter::CountingRule, size.rule.name().into()),
                (Parameter::CounterBits, fixed(size.width).map_or("variable".into(), Value::from)),
                (Parameter::Bits, size.plan().bits.into()),
                (Parameter::Probes, size.probes.into()),
            ]
        })
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.counters == other.counters && self.second == other.second
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let SpectralSize { capacity, cells, probes, width, rule, fpr_asked, .. } = self.size;
        out.probing(Probing::Scaled);
        out.ones(self.occupied);
        let second = self.second.as_deref();
        let params = out.params();
        params
            .u64(cells)
            .u32(probes)
            .u32(fixed(width).unwrap_or(0))
            .u32(rule_id(rule))
            .u32(self.degraded.into());
        params.u64(capacity).f64(fpr_asked);
        params.u64(self.counters.saturated()).u64(self.counters.overflowed());
        params.u64(second.map_or(0, |second| second.counters.saturated()));
        params.u64(second.map_or(0, |second| second.counters.overflowed()));
        for counters in core::iter::once(&self.counters).chain(second.map(|second| &second.counters)) {
            out.words(counters.words());
            out.bytes(counters.pairs());
        }
        if let Some(second) = second {
            out.words(&second.marks);
        }
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let cells = fields.u64("counters")?;
        let probes = fields.u32("probes")?;
        let width = stored_width(fields.u32("bits of a counter")?)?;
        let rule = stored_rule(fields.u32("counting rule")?)?;
        let degraded = match (fields.u32("degraded")?, rule) {
            (0, _) => false,
            (1, CountingRule::MinimalIncrease) => true,
            (found, _) => return Err(DecodeError::Value { field: "degraded", found: found.into() }),
        };
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let first = Claim::read(&mut fields)?;
        let second = Claim::read(&mut fields)?;
        fields.end("parameters", header.params.len())?;
        if cells == 0 || bits_of(cells, width, rule) > MAX_BITS {
            return Err(DecodeError::Value { field: "counters", found: cells });
        }
        if !(1..=math::MAX_PROBES).contains(&probes) {
            return Err(DecodeError::Value { field: "probes", found: probes.into() });
        }
        let has_second = rule == CountingRule::RecurringMinimum;
        let second_cells = if has_second { secondary_cells(cells) } else { 0 };
        first.check(cells, width)?;
        second.check(second_cells, width)?;
        // No sum overflows: there are less than 2^48 bits, and no more pairs than counters.
        let of_marks = if has_second { words_for(cells) * 8 } else { 0 };
        let (expected, found) =
            (first.bytes(cells, width) + second.bytes(second_cells, width) + of_marks, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        let mut rest = Rest { payload: &frame.payload, start: 0 };
        let counters = rest.counters(cells, width, &first, frame.verified)?;
        let second = if has_second {
            let counters = rest.counters(second_cells, width, &second, frame.verified)?;
            let marks = rest.words(of_marks)?;
            if cells % 64 != 0 && marks.as_slice().last().is_some_and(|last| last >> (cells % 64) != 0) {
                return Err(DecodeError::Padding { field: "end of the payload" });
            }
            Some(Box::new(Second { counters, marks }))
        } else {
            None
        };
        let occupied = shell::occupied(frame, "occupied cells", cells, || counters.occupied())?;
        let occupied = occupied.unwrap_or_else(|| counters.occupied());
        let fpr = math::bloom_fpr_of_any_size(cells, capacity, probes);
        let size = SpectralSize { capacity, cells, probes, width, rule, fpr_asked, fpr };
        Ok(Self { counters, second, size, paths: Paths::default(), occupied, degraded })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn details(&self) -> Details<'_> {
        let second = self.second.as_ref().map_or(0, |second| second.counters.len());
        let counters = CounterReport {
            counters: self.size.cells + second,
            bits: fixed(self.size.width),
            saturated: self.saturated(),
            overflowed: self.overflowed(),
            rule: Some(self.size.rule),
            degraded: self.degraded,
        };
        Details { counters: Some(counters), ..Details::default() }
    }

    fn guarantee(&self) -> Guarantee {
        if capabilities(self.size.rule).removes {
            Guarantee::NoFalseNegativesIfDeletesValid
        } else {
            Guarantee::NoFalseNegatives
        }
    }

    fn can(&self) -> Option<Capabilities> {
        Some(capabilities(self.size.rule))
    }

    fn unsupported(&self, operation: &'static str) -> Option<Error> {
        let (family, rule) = (FAMILY.name, self.size.rule.name());
        // What one rule can and another cannot, minimum selection can.
        let other = CountingRule::MinimumSelection.name();
        matches!(operation, "remove" | "merge").then_some(Error::UnsupportedByRule {
            family,
            rule,
            operation,
            other,
        })
    }
}

impl Empty for Cells {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let size = spec.spectral()?;
        let counters = Counters::zeroed(size.cells, size.width)?;
        let second = match size.rule {
            CountingRule::RecurringMinimum => Some(Box::new(Second::zeroed(&size)?)),
            CountingRule::MinimumSelection | CountingRule::MinimalIncrease => None,
        };
        Ok(Self { counters, second, size, paths: spec.paths, occupied: 0, degraded: false })
    }

    /// No counter is saturated afterwards, and the filter is no longer degraded.
    fn clear(&mut self) {
        self.counters.clear();
        if let Some(second) = &mut self.second {
            second.counters.clear();
            second.marks.as_mut_slice().fill(0);
        }
        (self.occupied, self.degraded) = (0, false);
    }
}

impl Inserts for Cells {
    type Error = Infallible;

    #[inline]
    fn insert(&mut self, digest: Digest) -> Result<Insertion, Infallible> {
        Ok(self.insert_times(digest, 1))
    }

    #[inline(always)]
    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Infallible> {
        let (size, mut fresh) = (self.size, 0);
        let mut second = self.second.as_mut().map(|second| second.view_mut());
        let places = (size.cells, size.probes);
        write_ahead(self.paths, self.counters.view_mut(), places, keys, hash, |counters, digest| {
            let raised = raise(counters, second.as_mut(), digest, 1, &size);
            fresh += raised;
            told(Insertion::new_if(raised > 0));
        });
        self.occupied += fresh;
        Ok(())
    }
}

impl Removes for Cells {
    /// By minimal increase nothing is removed, and every key is absent.
    fn remove(&mut self, digest: Digest) -> Removal {
        if capabilities(self.size.rule).removes { self.take(digest, 1) } else { Removal::Absent }
    }

    fn remove_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        outcomes: &mut Vec<Removal>,
    ) {
        let remove = |cells: &mut Self, digests: &[Digest]| {
            outcomes.extend(digests.iter().map(|&digest| cells.remove(digest)));
        };
        pipeline(self, keys, hash, false, |_, _| {}, remove);
    }
}

/// Never too low by minimum selection and minimal increase; by recurring minimum hardly ever.
impl Counts for Cells {
    #[inline]
    fn count(&self, digest: Digest) -> u64 {
        self.estimate(self.counters.view(), digest)
    }

    #[inline(always)]
    fn count_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), counts: &mut Vec<u64>) {
        read_ahead(self.paths, self.counters.view(), self.places(), keys, hash, |counters, digest| {
            counts.push(self.estimate(counters, digest));
        });
    }

    fn ceiling(&self) -> u64 {
        self.size.width.max()
    }
}

impl Merges for Cells {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        if self.second.is_some() {
            return Err(Mismatch::Unmergeable { rule: self.size.rule.name() });
        }
        let both = self.occupied > 0 && other.occupied > 0;
        self.degraded |= other.degraded || (both && self.size.rule == CountingRule::MinimalIncrease);
        self.occupied = self.counters.add_all(&other.counters);
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
    }
}

impl Spectral {
    /// Inserts a key `times` times at once. With 0 nothing changes.
    #[inline]
    pub fn insert_times(&mut self, key: impl Key, times: u64) -> Insertion {
        if times == 0 {
            return Insertion::Perhaps;
        }
        let digest = self.hashing().digest_of(key);
        self.0.add_inserted(times);
        self.0.kernel.insert_times(digest, times)
    }

    /// Removes a key `times` times at once. It is [`Absent`](Removal::Absent) if it was certainly not in that often; then nothing
    /// has changed.
    ///
    /// # Errors
    /// [`Error::UnsupportedByRule`] for a filter that counts by minimal increase.
    pub fn remove_times(&mut self, key: impl Key, times: u64) -> Result<Removal, Error> {
        shell::must_remove(self)?;
        let digest = self.hashing().digest_of(key);
        Ok(if times == 0 { Removal::Removed } else { self.0.kernel.take(digest, times) })
    }

    /// The number of counters, without those of a second filter.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.0.kernel.size.cells
    }

    /// How wide each counter is.
    #[must_use]
    pub fn width(&self) -> Width {
        self.0.kernel.size.width
    }

    /// How it counts.
    #[must_use]
    pub fn rule(&self) -> CountingRule {
        self.0.kernel.size.rule
    }

    /// Positions per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.0.kernel.size.probes
    }

    /// The value of a counter of the first filter; `None` behind the last.
    #[must_use]
    pub fn counter(&self, position: u64) -> Option<u64> {
        (position < self.cells()).then(|| self.0.kernel.counters.view().get(position))
    }

    /// How many counters are at their top, where they stay. No counter of variable width is.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        self.0.kernel.saturated()
    }

    /// How many counters of variable width are above 15, and take 16 bytes more each.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.0.kernel.overflowed()
    }

    /// Whether filters were merged that count by minimal increase: the lowest counter in each is not the lowest in both together,
    /// so that more estimates are too high than if all keys had been inserted here. None is too low.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.0.kernel.degraded
    }
}

/// Raises the counters of a key by its rule, and returns how many of the first filter were 0.
#[inline(always)]
fn raise(
    counters: &mut CountersMut<'_>,
    second: Option<&mut SecondMut<'_>>,
    digest: Digest,
    times: u64,
    size: &SpectralSize,
) -> u64 {
    with_distinct(digest, size.probes, size.cells, |places| {
        // All are prefetched before the first is read. (In a batch they have been prefetched already.)
        places.iter().for_each(|&place| counters.view().prefetch(place));
        let was_zero = |before: u64| u64::from(before == 0);
        match size.rule {
            CountingRule::MinimumSelection => {
                places.iter().map(|&place| was_zero(counters.add(place, times))).sum()
            }
            CountingRule::MinimalIncrease => {
                let least = counters.view().least(places.iter().copied());
                let to = least.saturating_add(times);
                places.iter().map(|&place| was_zero(counters.raise(place, to))).sum()
            }
            CountingRule::RecurringMinimum => {
                let fresh = places.iter().map(|&place| was_zero(counters.add(place, times))).sum();
                if let Some(second) = second {
                    second.follow(counters.view(), places, digest, times, size);
                }
                fresh
            }
        }
    })
}

impl SecondMut<'_> {
    /// After the first filter has counted a key at these places.
    #[inline]
    fn follow(
        &mut self,
        first: CountersRef<'_>,
        places: &[u64],
        digest: Digest,
        times: u64,
        size: &SpectralSize,
    ) {
        let cells = secondary_cells(size.cells);
        if is_marked(self.marks, digest, size) {
            with_distinct(other(digest), size.probes, cells, |places| {
                places.iter().for_each(|&place| {
                    self.counters.add(place, times);
                });
            });
            return;
        }
        let least = first.least(places.iter().copied());
        let alone = places.iter().filter(|&&place| first.get(place) == least).count() == 1;
        if alone {
            mark(self.marks, digest, size);
            with_distinct(other(digest), size.probes, cells, |places| {
                places.iter().for_each(|&place| {
                    self.counters.raise(place, least);
                });
            });
        }
    }
}

/// Lowers the counters of a key by `times`, and returns how many are 0 now; `None` if one shows that the key is not in that
/// often.
fn lower(
    counters: &mut CountersMut<'_>,
    digest: Digest,
    times: u64,
    (cells, probes): (u64, u32),
    width: Width,
) -> Option<u64> {
    with_distinct(digest, probes, cells, |places| {
        // All are read before one is changed. One at its top may stand for any number.
        let too_low = |&place: &u64| counters.get(place) < times.min(width.max());
        if places.iter().any(too_low) {
            return None;
        }
        Some(places.iter().map(|&place| u64::from(counters.subtract(place, times) == 0)).sum())
    })
}

/// The bits of each counter, if that is a fixed number.
const fn fixed(width: Width) -> Option<u32> {
    match width {
        Width::Fixed(bits) => Some(bits),
        Width::Variable => None,
    }
}

fn stored_width(bits: u32) -> Result<Width, DecodeError> {
    match bits {
        0 => Ok(Width::Variable),
        4..=32 => Ok(Width::Fixed(bits)),
        found => Err(DecodeError::Value { field: "bits of a counter", found: found.into() }),
    }
}

/// Ids on disk. Never reused.
const fn rule_id(rule: CountingRule) -> u32 {
    match rule {
        CountingRule::MinimumSelection => 1,
        CountingRule::MinimalIncrease => 2,
        CountingRule::RecurringMinimum => 3,
    }
}

fn stored_rule(id: u32) -> Result<CountingRule, DecodeError> {
    let found = DecodeError::Value { field: "counting rule", found: id.into() };
    CountingRule::ALL.into_iter().find(|&rule| rule_id(rule) == id).ok_or(found)
}

/// What the parameters say about some counters.
struct Claim {
    saturated: u64,
    /// Those above 15, where the width is variable.
    pairs: u64,
}

impl Claim {
    fn read(fields: &mut Fields<'_>) -> Result<Self, DecodeError> {
        Ok(Self { saturated: fields.u64("saturated counters")?, pairs: fields.u64("counters above 15")? })
    }

    fn check(&self, cells: u64, width: Width) -> Result<(), DecodeError> {
        let (saturated, pairs) = if width == Width::Variable { (0, cells) } else { (cells, 0) };
        if self.saturated > saturated {
            return Err(DecodeError::Value { field: "saturated counters", found: self.saturated });
        }
        if self.pairs > pairs {
            return Err(DecodeError::Value { field: "counters above 15", found: self.pairs });
        }
        Ok(())
    }

    /// How many bytes the counters and the pairs take.
    fn bytes(&self, cells: u64, width: Width) -> u64 {
        words_for(cells * u64::from(width.base())) * 8 + self.pairs * 16
    }
}

/// A payload, from the front.
struct Rest<'a> {
    payload: &'a Bytes,
    start: usize,
}

impl Rest<'_> {
    /// The next `bytes` bytes. The length of the payload was checked before.
    fn words(&mut self, bytes: u64) -> Result<Words, DecodeError> {
        let short = DecodeError::Payload { problem: "not whole words, or no memory for them" };
        let end = usize::try_from(bytes).ok().and_then(|bytes| self.start.checked_add(bytes)).ok_or(short)?;
        let part = self.payload.part(self.start..end).ok_or(short)?;
        self.start = end;
        Words::from_bytes(part).ok_or(short)
    }

    fn counters(
        &mut self,
        cells: u64,
        width: Width,
        claim: &Claim,
        verified: bool,
    ) -> Result<Counters, DecodeError> {
        let words = self.words(words_for(cells * u64::from(width.base())) * 8)?;
        let pairs = self.words(claim.pairs * 16)?;
        let counters = Counters::from_words(words, pairs, cells, width, claim.saturated)
            .ok_or(DecodeError::Padding { field: "end of the counters" })?;
        // Looked at only when the whole payload is read anyway, so that a large file opens by its header. Until then
        // a wrong pair gives a wrong count, and nothing worse.
        if verified && !counters.are_sound() {
            return Err(match width {
                Width::Variable => DecodeError::Payload { problem: "counters above 15 are not as listed" },
                Width::Fixed(_) => DecodeError::Value { field: "saturated counters", found: claim.saturated },
            });
        }
        Ok(counters)
    }
}
