//! Spectral Bloom filter: how often was a key inserted?
//!
//! **Answers** "how often was this key inserted?", and "was it at all?"
//! **Promise** an estimate is never too low by the rules minimum selection and minimal increase; it is too high
//! with at most the asked rate at capacity. A key that is in is never denied.
//! **Not for** exact counts; sets, in which every key is there once ([`Counting`](crate::Counting) takes the same
//! space and removes more cheaply, [`Bloom`](crate::Bloom) takes a quarter).
//!
//! ```text
//!   key ─▶ digest ─▶ different positions     counters  0 7 0 0 3 0 0 0 4 0 0 3 0
//!                    1, 4, 11                            ▲     ▲             ▲      the lowest: 3 times, perhaps
//!   minimum selection     raises all three:              8     4             4
//!   minimal increase      only the lowest ones:          7     4             4
//! ```
//!
//! | rule                | wrong estimates                 | removes | merges | memory |
//! |---------------------|---------------------------------|---------|--------|--------|
//! | `minimum-selection` | as often as false positives     | yes     | yes    | 1      |
//! | `minimal-increase`  | about half as often, and smaller | no     | yes, with more errors | 1 |
//! | `recurring-minimum` | about half as often, the smallest | yes   | no     | 1.75   |
//!
//! | operation | cache lines                  | can fail |
//! |-----------|------------------------------|----------|
//! | contains  | `probes`; 2 for most misses  | no       |
//! | count     | `probes`                     | no       |
//! | insert    | `probes`                     | no       |
//! | remove    | `probes`                     | the rule has none |
//! | merge     | all, in order                | mismatch |
//!
//! By recurring minimum, a key whose lowest counter stands alone (two that agree are nearly always right) goes to a
//! second filter of half the size, and a Bloom filter marks it. The few keys that are marked by chance may be
//! estimated too low, and after removals some others too; none of them is denied.
//!
//! Counters take 4 bits, and those above 15 are continued in a list of 16 bytes each. Where that is not wanted, 4 to
//! 32 bits can be asked for: then a counter that reaches its top stays there, and its count is that or more.
//!
//! **Paper** Cohen, Matias, *Spectral Bloom Filters*, SIGMOD 2003.
//! **We differ** in that counters are not packed by their lengths, that the different positions of a key are taken,
//! and that keys of the second filter are marked: without the mark its counts go stale. A key that is marked but has
//! a zero in the second filter was never there, so its first estimate stands.
//!
//! ```
//! use mayhap::Spectral;
//!
//! let mut words = Spectral::new(10_000, 0.01)?;
//! for word in "the cat and the dog and the bird".split(' ') {
//!     words.insert(word);
//! }
//! assert!(words.count("the") >= 3); // never too low
//! assert_eq!(words.count("fish"), 0); // with this seed; another one may err, once in a while
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::counting::{read_ahead, write_ahead};
use crate::batch::copy;
use crate::bits::{Bytes, Counters, CountersMut, CountersRef, Width, Words, words_for};
use crate::error::{DecodeError, Error, Full, Mismatch, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, CounterReport, Family, Guarantee, Make, Report};
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::math;
use crate::narrow::index;
use crate::paths::Paths;
use crate::probing::{Probing, positions, with_distinct};
use crate::rates::{self, Rate};
use crate::spec::{CountingRule, MAX_BITS, Plan, Spec, SpectralSize, secondary_cells, spectral_bits};
use crate::traits::{Count, Filter, Insert, Insertion, Merge, Removal, Remove};
use crate::wire::{Fields, Frame, Summing, Writer};

/// The family `spectral`.
pub static FAMILY: Family = Family {
    id: 7,
    name: "spectral",
    summary: "counts the occurrences of each key",
    // What the default rule can.
    can: capabilities(CountingRule::MinimalIncrease),
    cost: Cost { query: "O(k)", insert: "O(k)", space: "5.77 n log2(1/p) and up" },
    make: Make::Empty(|spec| Ok(Box::new(Spectral::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(Spectral::decode(frame, hashing)?)),
    in_place: false,
};

/// What a filter can do that counts by this rule.
pub(crate) const fn capabilities(rule: CountingRule) -> Capabilities {
    Capabilities {
        inserts: true,
        // Nobody knows which counters a key has raised.
        removes: !matches!(rule, CountingRule::MinimalIncrease),
        counts: true,
        labels: false,
        // A key that is marked here and not there has half of its count in the second filter.
        merges: !matches!(rule, CountingRule::RecurringMinimum),
        intersects: false,
        subtracts: false,
        folds: false,
        grows: false,
        exact: false,
    }
}

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let SpectralSize { capacity, cells, probes, width, rule, fpr_asked, fpr } = spec.spectral()?;
    Ok(Plan { capacity, fpr_asked, fpr, bits: spectral_bits(cells, width, rule), probes: Some(probes) })
}

/// A spectral Bloom filter.
#[derive(Clone, Debug)]
pub struct Spectral {
    counters: Counters,
    /// For recurring minimum.
    second: Option<Box<Second>>,
    size: SpectralSize,
    hashing: Hashing,
    paths: Paths,
    /// Inserted keys, repeats included; unknown after a merge.
    inserted: Option<u64>,
    /// Counters above 0, without those of the second filter.
    occupied: u64,
    /// Counters by minimal increase that were added up: what is in them is no longer minimal.
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

/// The digest for the second filter. With the key's own, whoever meets it in the first filter would meet it there
/// again: half the counters, and positions that are half as far.
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

/// Two filters are equal if they give the same answer to every key, now and after the same changes: same size, rule,
/// hashing and counters.
impl PartialEq for Spectral {
    fn eq(&self, other: &Self) -> bool {
        self.must_match(other).is_ok() && self.counters == other.counters && self.second == other.second
    }
}

impl Spectral {
    /// An empty filter for so many different keys, of which at most this share is estimated too high at capacity.
    /// It counts by minimal increase, in counters of variable width.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty filter of whatever was asked for. Bits are those of all counters together, and of the second filter.
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
    ///
    /// # Errors
    /// As for [`new`](Spectral::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let (size, hashing) = (spec.spectral()?, spec.hashed()?);
        let counters = Counters::zeroed(size.cells, size.width)?;
        let second = match size.rule {
            CountingRule::RecurringMinimum => Some(Box::new(Second::zeroed(&size)?)),
            CountingRule::MinimumSelection | CountingRule::MinimalIncrease => None,
        };
        let (paths, inserted) = (spec.paths, Some(0));
        Ok(Self { counters, second, size, hashing, paths, inserted, occupied: 0, degraded: false })
    }

    /// Inserts a key, once more if it is in.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Insertion {
        self.insert_times(key, 1)
    }

    /// Inserts a key so many times at once. (Not at all is no time: nothing changes.)
    #[inline]
    pub fn insert_times(&mut self, key: impl Key, times: u64) -> Insertion {
        if times == 0 {
            return Insertion::Perhaps;
        }
        let digest = self.hashing.digest_of(key);
        self.put(digest, times)
    }

    #[inline]
    fn put(&mut self, digest: Digest, times: u64) -> Insertion {
        let mut second = self.second.as_mut().map(|second| second.view_mut());
        let fresh = raise(&mut self.counters.view_mut(), second.as_mut(), digest, times, &self.size);
        self.occupied += fresh;
        // A crafted file may claim any number of calls: they end at the top instead of going round.
        self.inserted = self.inserted.map(|calls| calls.saturating_add(times));
        Insertion::new_if(fresh > 0)
    }

    /// Whether a key is perhaps in. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_digest(self.hashing.digest_of(key))
    }

    /// How often a key is in, perhaps.
    #[must_use]
    #[inline]
    pub fn count(&self, key: impl Key) -> u64 {
        self.count_digest(self.hashing.digest_of(key))
    }

    /// Removes a key, once. A key whose counters are all saturated is [stuck](Removal::Stuck): nobody knows how often it is
    /// in.
    ///
    /// A key that was never inserted must not be removed: if all of its counters are above 0 by chance, others
    /// lose theirs.
    ///
    /// # Errors
    /// [`Error::UnsupportedByRule`] for a filter that counts by minimal increase.
    #[inline]
    pub fn remove(&mut self, key: impl Key) -> Result<Removal, Error> {
        self.remove_times(key, 1)
    }

    /// Removes a key so many times at once. It is [absent](Removal::Absent) if it was certainly not in so often; then nothing
    /// has changed.
    ///
    /// # Errors
    /// As for [`remove`](Spectral::remove).
    pub fn remove_times(&mut self, key: impl Key, times: u64) -> Result<Removal, Error> {
        if !self.can().removes {
            return Err(self.unsupported("remove"));
        }
        let digest = self.hashing.digest_of(key);
        Ok(if times == 0 { Removal::Removed } else { self.take(digest, times) })
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
                // A key that is marked by chance has nothing there, which zeros may tell.
                let places = (secondary_cells(size.cells), size.probes);
                lower(&mut counters, other(digest), times, places, size.width);
            }
        }
        Removal::Removed
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    pub fn contains_all<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.ask(keys, |keys, digests| K::digests(keys, &hashing, digests), hits);
    }

    /// Asks how often many keys are in, several at a time in flight; appends one count each.
    pub fn count_all<K: Key>(&self, keys: &[K], counts: &mut Vec<u64>) {
        let hashing = self.hashing;
        self.tell(keys, |keys, digests| K::digests(keys, &hashing, digests), counts);
    }

    /// Inserts many keys, several at a time in flight.
    pub fn insert_all<K: Key>(&mut self, keys: &[K]) {
        let hashing = self.hashing;
        self.put_all(keys, |keys, digests| K::digests(keys, &hashing, digests), |_| {});
    }

    #[inline(always)]
    fn ask<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), hits: &mut Vec<bool>) {
        hits.reserve(keys.len());
        let SpectralSize { cells, probes, .. } = self.size;
        read_ahead(self.paths, self.counters.view(), (cells, probes), keys, hash, |counters, digest| {
            hits.push(!positions(digest, probes, cells).any(|place| counters.is_zero(place)));
        });
    }

    #[inline(always)]
    fn tell<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), counts: &mut Vec<u64>) {
        let SpectralSize { cells, probes, .. } = self.size;
        read_ahead(self.paths, self.counters.view(), (cells, probes), keys, hash, |counters, digest| {
            counts.push(self.estimate(counters, digest));
        });
    }

    #[inline(always)]
    fn put_all<K>(
        &mut self,
        keys: &[K],
        hash: impl Fn(&[K], &mut [Digest]),
        mut told: impl FnMut(Insertion),
    ) {
        let (size, mut fresh) = (self.size, 0);
        let mut second = self.second.as_mut().map(|second| second.view_mut());
        let places = (size.cells, size.probes);
        write_ahead(self.paths, self.counters.view_mut(), places, keys, hash, |counters, digest| {
            let raised = raise(counters, second.as_mut(), digest, 1, &size);
            fresh += raised;
            told(Insertion::new_if(raised > 0));
        });
        self.occupied += fresh;
        self.inserted = self.inserted.map(|calls| calls.saturating_add(keys.len() as u64));
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

    /// Forgets all keys, and that counters were saturated or merged.
    pub fn clear(&mut self) {
        self.counters.clear();
        if let Some(second) = &mut self.second {
            second.counters.clear();
            second.marks.as_mut_slice().fill(0);
        }
        self.occupied = 0;
        self.inserted = Some(0);
        self.degraded = false;
    }

    /// The number of counters, without those of a second filter.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.size.cells
    }

    /// How wide each counter is.
    #[must_use]
    pub fn width(&self) -> Width {
        self.size.width
    }

    /// How it counts.
    #[must_use]
    pub fn rule(&self) -> CountingRule {
        self.size.rule
    }

    /// Positions per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.size.probes
    }

    /// The number of different keys it was made for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.size.capacity
    }

    /// The value of a counter of the first filter; `None` behind the last.
    #[must_use]
    pub fn counter(&self, position: u64) -> Option<u64> {
        (position < self.size.cells).then(|| self.counters.view().get(position))
    }

    /// How many counters are at their top, where they stay. None of variable width is.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        let second = self.second.as_ref().map_or(0, |second| second.counters.saturated());
        self.counters.saturated().saturating_add(second)
    }

    /// How many counters of variable width are above 15, and take 16 bytes more each.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.counters.overflowed() + self.second.as_ref().map_or(0, |second| second.counters.overflowed())
    }

    /// Whether filters were merged that count by minimal increase: what was least in each is not least in both
    /// together, so that more estimates are too high than if all keys had been inserted here. None is too low.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.degraded
    }

    /// How keys are hashed.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// How many keys went in, repeats included, and those that have left too. `None` after a merge.
    #[must_use]
    pub fn inserted(&self) -> Option<u64> {
        self.inserted
    }

    /// How many different keys are probably in; infinite when no counter is 0.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        math::estimated_len(self.size.cells, self.occupied, self.size.probes)
    }

    /// The share of the counters that are not 0.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.occupied as f64 / self.size.cells as f64
    }

    /// The false-positive rate of the filter as it is, from its fill: how many absent keys have a count.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        self.rate().value
    }

    fn rate(&self) -> Rate {
        let counters = self.counters.view();
        rates::scaled(self.size.cells, self.size.probes, self.occupied, |place| !counters.is_zero(place))
    }

    /// The false-positive rate with as many keys as it was made for.
    #[must_use]
    pub fn fpr_at_capacity(&self) -> f64 {
        self.size.fpr
    }

    /// Whether `other` has the same size, probes, counters, rule and hashing.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        let (ours, theirs) = (self.size, other.size);
        if ours.rule != theirs.rule {
            return Err(Mismatch::CountingRule { ours: ours.rule.name(), theirs: theirs.rule.name() });
        }
        if ours.width != theirs.width {
            let (ours, theirs) = (fixed(ours.width), fixed(theirs.width));
            return Err(Mismatch::CounterBits { ours, theirs });
        }
        if ours.cells != theirs.cells {
            let bits = |size: SpectralSize| spectral_bits(size.cells, size.width, size.rule);
            return Err(Mismatch::Bits { ours: bits(ours), theirs: bits(theirs) });
        }
        if ours.probes != theirs.probes {
            return Err(Mismatch::Probes { ours: ours.probes, theirs: theirs.probes });
        }
        self.hashing.must_equal(&other.hashing)
    }

    /// Union: afterwards this filter holds every key of both, as often as both together.
    ///
    /// By minimum selection it is as if all had been inserted here. By minimal increase estimates are never too low
    /// either, but too high more often than if they had been: [`is_degraded`](Spectral::is_degraded).
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference, or says that filters do not merge which count by recurring minimum;
    /// then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        if self.second.is_some() {
            return Err(Mismatch::Unmergeable { rule: self.size.rule.name() });
        }
        let both = self.occupied > 0 && other.occupied > 0;
        self.degraded |= other.degraded || (both && self.size.rule == CountingRule::MinimalIncrease);
        self.occupied = self.counters.add_all(&other.counters);
        self.inserted = None;
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
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
        header.must_probe_by(Probing::Scaled)?;
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
        if cells == 0 || spectral_bits(cells, width, rule) > MAX_BITS {
            return Err(DecodeError::Value { field: "counters", found: cells });
        }
        if !(1..=math::MAX_PROBES).contains(&probes) {
            return Err(DecodeError::Value { field: "probes", found: probes.into() });
        }
        let has_second = rule == CountingRule::RecurringMinimum;
        let second_cells = if has_second { secondary_cells(cells) } else { 0 };
        first.check(cells, width)?;
        second.check(second_cells, width)?;
        header.must_be_hashed(hashing)?;
        // No sum overflows: there are less than 2^48 bits, and no more pairs than counters.
        let of_marks = if has_second { words_for(cells) * 8 } else { 0 };
        let (expected, found) =
            (first.bytes(cells, width) + second.bytes(second_cells, width) + of_marks, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        let ones = header.ones;
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
        let occupied = match ones {
            Some(found) if found > cells || (frame.verified && found != counters.occupied()) => {
                return Err(DecodeError::Value { field: "occupied cells", found });
            }
            Some(ones) => ones,
            None => counters.occupied(),
        };
        let fpr = math::bloom_fpr_of_any_size(cells, capacity, probes);
        let size = SpectralSize { capacity, cells, probes, width, rule, fpr_asked, fpr };
        let (paths, inserted) = (Paths::default(), frame.header.inserted);
        Ok(Self { counters, second, size, hashing, paths, inserted, occupied, degraded })
    }
}

/// Raises the counters of a key by its rule, and says how many of the first filter's were 0.
#[inline(always)]
fn raise(
    counters: &mut CountersMut<'_>,
    second: Option<&mut SecondMut<'_>>,
    digest: Digest,
    times: u64,
    size: &SpectralSize,
) -> u64 {
    with_distinct(digest, size.probes, size.cells, |places| {
        // All are asked for before the first is waited for. (In a batch they have been asked for already.)
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

/// Lowers the counters of a key, and says how many are 0 now; `None` if one says that the key is not in so often.
fn lower(
    counters: &mut CountersMut<'_>,
    digest: Digest,
    times: u64,
    (cells, probes): (u64, u32),
    width: Width,
) -> Option<u64> {
    with_distinct(digest, probes, cells, |places| {
        // All are looked at before one is changed. One at its top may be any number.
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
    /// So many bytes, which [`Spectral::decode`] has seen to be there.
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

impl Filter for Spectral {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        let counters = self.counters.view();
        !positions(digest, self.size.probes, self.size.cells).any(|place| counters.is_zero(place))
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        self.ask(digests, copy, hits);
    }
}

impl Insert for Spectral {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        Ok(self.put(digest, 1))
    }

    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        self.put_all(digests, copy, |outcome| outcomes.push(outcome));
        Ok(())
    }
}

/// By minimal increase nothing is ever removed, and every key is absent: [`AnyFilter::as_remove`] does not
/// offer it then, and [`Spectral::remove`] says so.
impl Remove for Spectral {
    fn remove_digest(&mut self, digest: Digest) -> Removal {
        if self.can().removes { self.take(digest, 1) } else { Removal::Absent }
    }
}

/// Never too low by minimum selection and minimal increase; by recurring minimum hardly ever.
impl Count for Spectral {
    #[inline]
    fn count_digest(&self, digest: Digest) -> u64 {
        self.estimate(self.counters.view(), digest)
    }

    fn ceiling(&self) -> u64 {
        self.size.width.max()
    }

    fn count_batch(&self, digests: &[Digest], counts: &mut Vec<u64>) {
        self.tell(digests, copy, counts);
    }
}

impl Merge for Spectral {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.merge(family::same_type(self, other)?)
    }
}

impl AnyFilter for Spectral {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn report(&self) -> Report {
        let rate = self.rate();
        let SpectralSize { capacity, cells, probes, width, rule, fpr_asked, fpr } = self.size;
        let estimated_len = self.estimated_len();
        Report {
            capacity,
            inserted: self.inserted,
            estimated_len: estimated_len.is_finite().then_some(estimated_len),
            bits: spectral_bits(cells, width, rule) + 128 * self.overflowed(),
            probes: Some(probes),
            fill: self.fill(),
            fpr_asked,
            fpr_now: rate.value,
            fpr_interval: rate.interval(),
            fpr_at_capacity: fpr,
            guarantee: if self.can().removes {
                Guarantee::NoFalseNegativesIfDeletesValid
            } else {
                Guarantee::NoFalseNegatives
            },
        }
    }

    fn counters(&self) -> Option<CounterReport> {
        let second = self.second.as_ref().map_or(0, |second| second.counters.len());
        Some(CounterReport {
            counters: self.size.cells + second,
            bits: fixed(self.size.width),
            saturated: self.saturated(),
            overflowed: self.overflowed(),
            rule: Some(self.size.rule),
            degraded: self.degraded,
        })
    }

    fn can(&self) -> Capabilities {
        capabilities(self.size.rule)
    }

    fn unsupported(&self, operation: &'static str) -> Error {
        let (family, rule) = (FAMILY.name, self.size.rule.name());
        // What one rule can and another cannot, minimum selection can.
        let other = CountingRule::MinimumSelection.name();
        match operation {
            "remove" | "merge" => Error::UnsupportedByRule { family, rule, operation, other },
            _ => Error::Unsupported { family, operation },
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        let SpectralSize { capacity, cells, probes, width, rule, fpr_asked, .. } = self.size;
        out.probing(Probing::Scaled);
        out.counts(self.inserted, self.occupied);
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

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.contains_all(keys, hits);
    }

    fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Error> {
        let hashing = self.hashing;
        self.put_all(
            keys,
            |keys, digests| Key::digests(keys, &hashing, digests),
            |outcome| outcomes.push(outcome),
        );
        Ok(())
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }
    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        self.can().removes.then_some(self as &mut dyn Remove)
    }
    fn as_count(&self) -> Option<&dyn Count> {
        Some(self)
    }
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        self.can().merges.then_some(self as &mut dyn Merge)
    }
}

impl<K: Key> Extend<K> for Spectral {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| {
            self.insert(key);
        });
    }
}
