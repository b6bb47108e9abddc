//! What is requested of a new filter, and how a family solves for its size. The one place that validates sizes and rates.
//!
//! A caller sets numbers in a [`Spec`]. [`Family::check`](crate::family::Family::check) compares them with the
//! [knobs](KnobRange) of the family, and gives its sizing the [`Request`]: no number that the family does not have, and none
//! out of range. The sizing itself is in the family's file; what most of them share is [`Request::solved`].

use crate::bits::OutOfMemory;
use crate::error::{Knob, SpecError, Value};
use crate::hash::Hashing;
use crate::math::MAX_PROBES;
use crate::paths::Paths;

/// The most keys that a filter may be planned for: 2^48, 281 million million.
pub const MAX_CAPACITY: u64 = 1 << 48;

/// The most bits that a filter may have: 2^48, 32 TiB. Far beyond any machine, and low enough that
/// no sum or product of sizes overflows.
pub const MAX_BITS: u64 = 1 << 48;

/// The lowest false-positive rate that may be asked for: 2^-64.
pub const MIN_FPR: f64 = 1.0 / (u64::MAX as f64);

/// The false-positive rate where nobody said one: 1%.
pub const DEFAULT_FPR: f64 = 0.01;

/// The capacity that a growing filter starts with if none is requested.
pub const STARTING_CAPACITY: u64 = 1024;

/// The doublings through which a growing filter keeps its rate if none are requested: from a thousand keys to a thousand
/// million.
pub const DEFAULT_DOUBLINGS: u32 = 20;

/// The most doublings that a growing filter plans for.
pub const MOST_DOUBLINGS: u32 = 48;

/// What is asked of a new filter: any two or three of capacity, rate, bits and probes; and how to hash.
///
/// ```
/// use mayhap::Spec;
///
/// let sized = Spec::sized(1_000_000, 0.01).bloom()?;
/// assert_eq!((sized.bits, sized.probes), (9_585_059, 7));
/// # Ok::<(), mayhap::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spec {
    request: Request,
    hashing: Hashing,
    /// Which loops the filter takes; requested by tests.
    pub(crate) paths: Paths,
}

/// The numbers of a [`Spec`]. A family gets them from [`Family::check`](crate::family::Family::check) only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) capacity: Option<u64>,
    pub(crate) fpr: Option<f64>,
    pub(crate) bits: Option<u64>,
    pub(crate) probes: Option<u32>,
    pub(crate) layout: Option<Layout>,
    pub(crate) foldable: bool,
    pub(crate) counter_bits: Option<u32>,
    pub(crate) counting_rule: Option<CountingRule>,
    pub(crate) areas: Option<u32>,
    pub(crate) growth: Option<u32>,
    pub(crate) tightening: Option<f64>,
    pub(crate) shifts: Option<u32>,
    pub(crate) max_count: Option<u32>,
    pub(crate) doublings: Option<u32>,
    pub(crate) others: Option<u64>,
}

/// How a blocked filter or a cuckoo filter is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The fewer bits: blocks of a cache line, or semi-sorted buckets. The default of blocked filters.
    #[default]
    Compact,
    /// The less work per key: blocks of half a cache line, for 4% more bits at 1%, 7% at 0.1%, 37% at 1e-5; or buckets as
    /// they are, for a bit more per slot. The default of cuckoo filters.
    Fastest,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Self; 2] = [Self::Compact, Self::Fastest];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Fastest => "fastest",
        }
    }
}

/// How a spectral filter counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountingRule {
    /// Every counter of a key is raised. Keys can be removed, filters merge, and as many estimates are wrong as
    /// there are false positives.
    MinimumSelection,
    /// Only the lowest counters of a key are raised: fewer wrong estimates, and no way back.
    #[default]
    MinimalIncrease,
    /// As minimum selection, and keys whose lowest counter stands alone have others in a second, smaller filter:
    /// the smallest errors, for half as many counters and a bit each more. Filters do not merge.
    RecurringMinimum,
}

impl CountingRule {
    /// Every rule.
    pub const ALL: [Self; 3] = [Self::MinimumSelection, Self::MinimalIncrease, Self::RecurringMinimum];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MinimumSelection => "minimum-selection",
            Self::MinimalIncrease => "minimal-increase",
            Self::RecurringMinimum => "recurring-minimum",
        }
    }
}

impl Spec {
    /// Nothing asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The usual question: room for so many keys at such a rate.
    #[must_use]
    pub fn sized(capacity: u64, fpr: f64) -> Self {
        Self::new().with_capacity(capacity).with_fpr(fpr)
    }

    /// Asks for room for so many keys.
    #[must_use]
    pub const fn with_capacity(mut self, capacity: u64) -> Self {
        self.request.capacity = Some(capacity);
        self
    }

    /// Asks for a false-positive rate at capacity.
    #[must_use]
    pub const fn with_fpr(mut self, fpr: f64) -> Self {
        self.request.fpr = Some(fpr);
        self
    }

    /// Asks for a number of bits.
    #[must_use]
    pub const fn with_bits(mut self, bits: u64) -> Self {
        self.request.bits = Some(bits);
        self
    }

    /// Asks for a number of probes.
    #[must_use]
    pub const fn with_probes(mut self, probes: u32) -> Self {
        self.request.probes = Some(probes);
        self
    }

    /// Asks for a layout, of a family that has several.
    #[must_use]
    pub const fn with_layout(mut self, layout: Layout) -> Self {
        self.request.layout = Some(layout);
        self
    }

    /// Asks for a number of bits that has many divisors, so that the filter can be folded later. The bits
    /// that would be granted are rounded up by at most 1%, or to whole words: [`math::foldable_bits`].
    /// Means nothing to a family that does not fold.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(1_000_000, 0.01).foldable().bloom()?;
    /// assert_eq!(sized.bits, 9_646_080); // 9,585,059 without; now 2^12 * 3 * 5 * 157
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    #[must_use]
    pub const fn foldable(mut self) -> Self {
        self.request.foldable = true;
        self
    }

    /// Asks for counters of so many bits, of a family that counts.
    #[must_use]
    pub const fn with_counter_bits(mut self, bits: u32) -> Self {
        self.request.counter_bits = Some(bits);
        self
    }

    /// Asks for a way to count, of a family that has several.
    #[must_use]
    pub const fn with_counting_rule(mut self, rule: CountingRule) -> Self {
        self.request.counting_rule = Some(rule);
        self
    }

    /// Asks for so many areas, of a family of many sets. Means nothing to a family of one.
    #[must_use]
    pub const fn with_areas(mut self, areas: u32) -> Self {
        self.request.areas = Some(areas);
        self
    }

    /// Asks for layers that have room for so many times the keys of the one before, of a family that grows by them.
    /// 1 makes all layers equal; 0 makes a filter that does not grow, and says when it is full. A layer has at most 64 times
    /// the bits of all layers before it, or 16 MiB if that is more.
    #[must_use]
    pub const fn with_growth(mut self, growth: u32) -> Self {
        self.request.growth = Some(growth);
        self
    }

    /// Asks for layers whose rates are so many times that of the one before, of a family that grows by them.
    #[must_use]
    pub const fn with_tightening(mut self, tightening: f64) -> Self {
        self.request.tightening = Some(tightening);
        self
    }

    /// Asks for so many offsets per window, of the family `shifting`.
    #[must_use]
    pub const fn with_shifts(mut self, shifts: u32) -> Self {
        self.request.shifts = Some(shifts);
        self
    }

    /// Asks for counts up to this one, of the family `shifting-multiplicity`.
    #[must_use]
    pub const fn with_max_count(mut self, count: u32) -> Self {
        self.request.max_count = Some(count);
        self
    }

    /// Asks that the rate be kept through so many doublings, of a family that doubles.
    #[must_use]
    pub const fn with_doublings(mut self, doublings: u32) -> Self {
        self.request.doublings = Some(doublings);
        self
    }

    /// Says that so many other keys are known, which are not in the set: of the family `universe`.
    #[must_use]
    pub const fn with_others(mut self, others: u64) -> Self {
        self.request.others = Some(others);
        self
    }

    /// How many other keys are said to be known.
    #[must_use]
    pub const fn others(&self) -> Option<u64> {
        self.request.others
    }

    /// The number of keys that was asked for.
    #[must_use]
    pub const fn capacity(&self) -> Option<u64> {
        self.request.capacity
    }

    /// The false-positive rate that was asked for.
    #[must_use]
    pub const fn fpr(&self) -> Option<f64> {
        self.request.fpr
    }

    /// The number of bits that was asked for.
    #[must_use]
    pub const fn bits(&self) -> Option<u64> {
        self.request.bits
    }

    /// The layout that was asked for.
    #[must_use]
    pub const fn layout(&self) -> Option<Layout> {
        self.request.layout
    }

    /// The width of counters that was asked for.
    #[must_use]
    pub const fn counter_bits(&self) -> Option<u32> {
        self.request.counter_bits
    }

    /// The way to count that was asked for.
    #[must_use]
    pub const fn counting_rule(&self) -> Option<CountingRule> {
        self.request.counting_rule
    }

    /// The number of areas that was asked for.
    #[must_use]
    pub const fn areas(&self) -> Option<u32> {
        self.request.areas
    }

    /// The largest count that was asked for.
    #[must_use]
    pub const fn max_count(&self) -> Option<u32> {
        self.request.max_count
    }

    /// Asks for a way to hash.
    #[must_use]
    pub const fn with_hashing(mut self, hashing: Hashing) -> Self {
        self.hashing = hashing;
        self
    }

    /// How keys are to be hashed.
    #[must_use]
    pub const fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// How keys are to be hashed, by a family that must hash.
    ///
    /// # Errors
    /// [`SpecError::Hashing`] for [`Hashing::Integer`], and for the hash functions of others.
    pub fn hashed(&self) -> Result<Hashing, SpecError> {
        if self.hashing.is_our_own() {
            return Ok(self.hashing);
        }
        Err(SpecError::Hashing { asked: self.hashing.name() })
    }

    /// Families of integers do not hash: nobody may have asked for a seed or a secret.
    ///
    /// # Errors
    /// [`SpecError::Hashing`] if somebody did.
    pub fn unhashed(&self) -> Result<(), SpecError> {
        if self.hashing == Hashing::Integer || self.hashing == Hashing::default() {
            return Ok(());
        }
        Err(SpecError::Hashing { asked: self.hashing.name() })
    }

    /// The numbers, of which nothing is known yet: for [`Family::check`](crate::family::Family::check).
    pub(crate) const fn unchecked(&self) -> &Request {
        &self.request
    }

    /// The same for so many keys, unless the number of keys is requested or follows from what is.
    pub(crate) const fn for_keys(mut self, keys: u64) -> Self {
        let Request { capacity, bits, fpr, probes, .. } = self.request;
        if capacity.is_none() && (bits.is_none() || (fpr.is_none() && probes.is_none())) {
            self.request.capacity = Some(if keys == 0 { 1 } else { keys });
        }
        self
    }
}

/// A number that can be requested of a family, and the values that it may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnobRange {
    /// Which.
    pub knob: Knob,
    range: Option<(Value, Value)>,
}

impl Knob {
    /// With any value.
    pub(crate) const fn any(self) -> KnobRange {
        KnobRange { knob: self, range: None }
    }

    /// With a whole number from `least` to `most`.
    pub(crate) const fn within(self, least: u32, most: u32) -> KnobRange {
        self.within_u64(least as u64, most as u64)
    }

    /// The same of larger numbers.
    pub(crate) const fn within_u64(self, least: u64, most: u64) -> KnobRange {
        KnobRange { knob: self, range: Some((Value::Whole(least), Value::Whole(most))) }
    }

    /// With a number from `least` to `most`.
    pub(crate) const fn between(self, least: f64, most: f64) -> KnobRange {
        KnobRange { knob: self, range: Some((Value::Rate(least), Value::Rate(most))) }
    }
}

impl KnobRange {
    /// The least and the largest value, if there is such.
    #[must_use]
    pub const fn range(&self) -> Option<(Value, Value)> {
        self.range
    }

    /// Whether a value is in the range.
    ///
    /// # Errors
    /// [`SpecError`] names the range.
    pub(crate) fn check(&self, asked: Value) -> Result<(), SpecError> {
        match (self.knob, self.range, asked) {
            // No range contains NaN, so it is refused here too.
            (_, Some((least, most)), _) if least <= asked && asked <= most => Ok(()),
            (Knob::Fpr, Some((Value::Rate(least), _)), Value::Rate(asked)) => {
                Err(SpecError::FprBelow { asked, least })
            }
            (knob, Some((least, most)), _) => Err(SpecError::Range { knob, asked, least, most }),
            (_, None, _) => Ok(()),
        }
    }
}

/// The capacity of every family.
pub(crate) const CAPACITY: KnobRange = Knob::Capacity.within_u64(1, MAX_CAPACITY);

/// The bits of every family.
pub(crate) const BITS: KnobRange = Knob::Bits.within_u64(1, MAX_BITS);

/// As many others as keys.
const OTHERS: KnobRange = Knob::Others.within_u64(0, MAX_CAPACITY);

impl Request {
    /// Each number that every family has, by itself.
    ///
    /// # Errors
    /// [`SpecError`] names the first that is out of range.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        let whole =
            |range: KnobRange, asked: Option<u64>| asked.map_or(Ok(()), |asked| range.check(asked.into()));
        whole(CAPACITY, self.capacity)?;
        whole(OTHERS, self.others)?;
        if let Some(asked) = self.fpr.filter(|p| !(MIN_FPR..1.0).contains(p)) {
            return Err(SpecError::Fpr { asked });
        }
        whole(BITS, self.bits)?;
        whole(Knob::Probes.within(1, MAX_PROBES), self.probes.map(u64::from))
    }

    /// What is requested besides capacity and bits.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (Knob, Value)> {
        let settings: [(Knob, Option<Value>); 13] = [
            (Knob::Fpr, self.fpr.map(Value::from)),
            (Knob::Probes, self.probes.map(Value::from)),
            (Knob::Layout, self.layout.map(|layout| layout.name().into())),
            (Knob::Foldable, self.foldable.then_some(Value::Whole(1))),
            (Knob::CounterBits, self.counter_bits.map(Value::from)),
            (Knob::CountingRule, self.counting_rule.map(|rule| rule.name().into())),
            (Knob::Areas, self.areas.map(Value::from)),
            (Knob::Growth, self.growth.map(Value::from)),
            (Knob::Tightening, self.tightening.map(Value::from)),
            (Knob::Shifts, self.shifts.map(Value::from)),
            (Knob::MaxCount, self.max_count.map(Value::from)),
            (Knob::Doublings, self.doublings.map(Value::from)),
            (Knob::Others, self.others.map(Value::from)),
        ];
        settings.into_iter().filter_map(|(knob, value)| Some((knob, value?)))
    }

    /// Solves for the one of capacity, rate and bits that is not requested. A family says how:
    ///
    /// - `smallest`: the filter with the fewest bits that has room for so many keys and keeps a rate;
    /// - `best`: the filter with the lowest rate that has room for so many keys and takes at most so many bits, if it keeps the
    ///   rate where one is requested;
    /// - `most`: the filter with the largest capacity that takes at most so many bits and keeps a rate.
    ///
    /// # Errors
    /// [`SpecError`] says what is missing, what it would take, or what can be had.
    pub(crate) fn solved<S: Size>(
        &self,
        smallest: impl Fn(u64, f64) -> Option<S>,
        best: impl Fn(u64, u64, Option<f64>) -> Option<S>,
        most: impl Fn(u64, f64) -> Option<S>,
    ) -> Result<S, SpecError> {
        // No filter with these keys has the rate; the lowest is that with bits without a limit.
        let below = |n: u64, asked: f64| {
            let least = best(n, u64::MAX, None).map_or(1.0, |size| size.plan().fpr);
            SpecError::FprBelow { asked, least }
        };
        let unreachable = |n: u64, bits: u64| match self.fpr {
            Some(p) => smallest(n, p).map_or_else(
                || below(n, p),
                |size| SpecError::Unreachable { bits, needed: size.plan().bits },
            ),
            None => {
                let needed = smallest(n, 1.0 - f64::EPSILON).map_or(MAX_BITS, |size| size.plan().bits);
                SpecError::Unreachable { bits, needed }
            }
        };
        let size = match (self.capacity, self.bits, self.fpr) {
            (Some(n), None, Some(p)) => smallest(n, p).ok_or_else(|| below(n, p)),
            (Some(n), Some(bits), p) => best(n, bits, p).ok_or_else(|| unreachable(n, bits)),
            (None, Some(bits), Some(p)) => most(bits, p).ok_or_else(|| unreachable(1, bits)),
            _ => Err(SpecError::Incomplete),
        }?;
        within_limit(size.plan().bits)?;
        Ok(size)
    }

    /// The number of keys, or the number that fits the bits; for families whose size is a fixed number of bits per key.
    ///
    /// # Errors
    /// [`SpecError`] names what is missing, or what it would take.
    pub(crate) fn keys(&self, bits_per_key: u64) -> Result<u64, SpecError> {
        let fits = self.bits.map(|bits| (bits / bits_per_key).max(1));
        let keys = self.capacity.or(fits).ok_or(SpecError::Incomplete)?;
        if let Some(bits) = self.bits.filter(|&bits| bits / bits_per_key < keys) {
            return Err(SpecError::Unreachable { bits, needed: keys.saturating_mul(bits_per_key) });
        }
        within_limit(keys.saturating_mul(bits_per_key)).map(|_| keys)
    }
}

/// The numbers of a filter of one family, all known.
pub(crate) trait Size {
    /// What every family tells of them.
    fn plan(&self) -> Plan;
}

/// So many bits are not too many.
///
/// # Errors
/// [`SpecError::TooLarge`] if they are.
pub(crate) const fn within_limit(bits: u64) -> Result<u64, SpecError> {
    if bits > MAX_BITS { Err(SpecError::TooLarge { bits, limit: MAX_BITS }) } else { Ok(bits) }
}

/// A capacity, which is 0 if the bits are too few for one key.
///
/// # Errors
/// [`SpecError::Unreachable`] then.
pub(crate) fn at_least_one(capacity: u64, bits: u64, needed: impl FnOnce() -> u64) -> Result<u64, SpecError> {
    if capacity == 0 { Err(SpecError::Unreachable { bits, needed: needed() }) } else { Ok(capacity) }
}

/// The rate of a half-full Bloom filter: 2^-k.
pub(crate) fn half_full(probes: u32) -> f64 {
    libm::exp2(-f64::from(probes))
}

impl From<OutOfMemory> for SpecError {
    fn from(refused: OutOfMemory) -> Self {
        Self::Memory { bytes: refused.bytes }
    }
}

/// What a family would build, without building it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// The rate that was asked for.
    pub fpr_asked: f64,
    /// The rate that is reached at capacity.
    pub fpr: f64,
    /// Bits of payload.
    pub bits: u64,
    /// Positions examined per key, where the family has a fixed number.
    pub probes: Option<u32>,
}

impl Plan {
    /// Bits per key at capacity.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.bits as f64 / self.capacity as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// As floating-point numbers 2^63 - 1 and 2^63 are the same, and one of them is too many names.
    #[test]
    fn a_table_that_cannot_double_as_often_as_it_would_like_has_the_most_names() {
        for (capacity, fpr) in [(10_000, 1e-9), (300_000, 1e-9), (1024, 1e-12), (1 << 30, 1e-9)] {
            let size = Spec::sized(capacity, fpr).table().expect("a size");
            assert!(size.capacity >= capacity && size.fpr <= fpr, "{size:?}");
            assert_eq!(size.told_apart(), Shape::MOST_NAMES);
        }
    }

    #[test]
    fn any_two_or_three_numbers_give_the_rest() {
        let full = Spec::sized(1_000_000, 0.01).bloom().unwrap();
        assert_eq!((full.bits, full.probes, full.fpr_asked), (9_585_059, 7, 0.01));
        assert!((full.fpr - 0.010039).abs() < 1e-6);
        let solve = |spec: Spec| spec.bloom().unwrap();
        let again = [
            Spec::new().with_capacity(1_000_000).with_bits(9_585_059),
            Spec::new().with_capacity(1_000_000).with_bits(9_585_059).with_probes(7),
            Spec::new().with_bits(9_585_059).with_fpr(0.01),
        ];
        for spec in again {
            let solved = solve(spec);
            assert_eq!((solved.bits, solved.probes, solved.capacity), (9_585_059, 7, 1_000_000), "{spec:?}");
        }
        let by_probes = solve(Spec::sized(1_000_000, 0.01).with_probes(4));
        assert!(by_probes.fpr <= 0.01 && by_probes.bits > full.bits);
        assert!(
            solve(Spec::new().with_capacity(1_000_000).with_bits(by_probes.bits - 1).with_probes(4)).fpr
                > 0.01
        );
        let capacity = solve(Spec::new().with_bits(by_probes.bits).with_fpr(0.01).with_probes(4)).capacity;
        assert_eq!(capacity, 1_000_000);
        let roomy = solve(Spec::sized(1_000_000, 0.01).with_bits(20_000_000));
        assert!(roomy.probes < 7 && roomy.fpr <= 0.01, "the fewest probes that meet the rate");
        let half = solve(Spec::new().with_capacity(1000).with_probes(10));
        assert!((half.fpr * 1024.0 - 1.0).abs() < 1e-2);
        let half = solve(Spec::new().with_bits(14_427).with_probes(10));
        assert!((999..=1001).contains(&half.capacity));
    }

    #[test]
    fn a_foldable_size_is_at_most_one_percent_larger() {
        for spec in [
            Spec::sized(1_000_000, 0.01),
            Spec::sized(1_000_000, 0.01).with_probes(5),
            Spec::sized(1_000_000, 0.01).with_bits(12_345_678),
            Spec::new().with_bits(12_345_678).with_fpr(0.01),
        ] {
            let (plain, foldable) = (spec.bloom().unwrap(), spec.foldable().bloom().unwrap());
            assert!(foldable.bits > plain.bits && foldable.bits - plain.bits <= plain.bits / 100);
            assert_eq!(foldable.bits, math::foldable_bits(plain.bits));
            assert_eq!((foldable.probes, foldable.capacity), (plain.probes, plain.capacity));
            assert!(foldable.fpr < plain.fpr);
        }
        // What is refused is refused before and after it is rounded up.
        for bits in [MAX_BITS - 1, MAX_BITS + 1, u64::MAX] {
            assert!(matches!(
                Spec::new().with_bits(bits).with_fpr(0.01).foldable().bloom(),
                Err(SpecError::Bits { .. })
            ));
        }
        assert!(matches!(Spec::sized(1 << 48, MIN_FPR).foldable().bloom(), Err(SpecError::Bits { .. })));
    }

    #[test]
    fn nonsense_is_refused_by_name_with_limit_and_way_out() {
        let fpr = |p| Spec::sized(1000, p);
        let cases = [
            (fpr(f64::NAN), "a false-positive rate of NaN was asked for"),
            (fpr(f64::INFINITY), "a false-positive rate of inf"),
            (fpr(f64::NEG_INFINITY), "a false-positive rate of -inf"),
            (fpr(0.0), "for no errors at all use an exact family"),
            (fpr(1.0), "it must be below 1 and at least 2^-64"),
            (fpr(5.0), "did you mean 5% (0.05)?"),
            (fpr(-0.01), "a false-positive rate of -0.01"),
            (fpr(1e-300), "a false-positive rate of 1e-300 was asked for"),
            (fpr(5.4e-20), "at least 2^-64"),
            (Spec::sized(0, 0.01), "a capacity of 0 keys was asked for; the least is 1"),
            (
                Spec::sized(1 << 63, 0.01),
                "a capacity of 9223372036854775808 keys was asked for; the limit is 281474976710656; split the set",
            ),
            (Spec::sized(u64::MAX, 0.01), "split the set"),
            (Spec::sized(1 << 48, 0.01), "the limit is 281474976710656"),
            (Spec::new().with_bits(0).with_fpr(0.01), "0 bits were asked for; the least is 1"),
            (Spec::new().with_bits(u64::MAX).with_fpr(0.01), "the limit is 281474976710656"),
            (Spec::sized(1000, 0.01).with_probes(0), "0 probes were asked for; it must be 1 to 64"),
            (Spec::sized(1000, 0.01).with_probes(65), "it must be 1 to 64"),
            (Spec::new(), "too little to size a filter"),
            (Spec::new().with_capacity(5), "too little to size a filter"),
            (Spec::new().with_bits(5), "too little to size a filter"),
            (Spec::new().with_fpr(0.5).with_probes(3), "too little to size a filter"),
            (Spec::sized(1000, 0.01).with_bits(9586).with_probes(7), "leave out the one to be computed"),
            (Spec::sized(1000, 0.01).with_bits(5000), "5000 bits cannot give that"),
            (Spec::new().with_bits(10).with_fpr(1e-9), "it takes 44"),
            (
                Spec::sized(1000, 0.01).with_layout(Layout::Fastest),
                "the layout fastest was asked for, and this family has no choice of layouts",
            ),
        ];
        for (spec, text) in cases {
            let message = spec.bloom().expect_err(text).to_string();
            assert!(message.contains(text), "{spec:?} says: {message}");
        }
        let error = Spec::sized(1000, 0.01).with_bits(5000).bloom().unwrap_err();
        let SpecError::Unreachable { needed, .. } = error else { panic!("{error}") };
        assert!(Spec::sized(1000, 0.01).with_bits(needed).bloom().is_ok());
        assert!(Spec::sized(1000, 0.01).with_bits(needed - 1).bloom().is_err());
    }

    #[test]
    fn the_edges_that_make_sense_are_granted() {
        for (n, p) in [(1, 0.5), (1, 0.999_999), (1, MIN_FPR), (1 << 40, 0.01), (1 << 41, MIN_FPR)] {
            let sized = Spec::sized(n, p).bloom().unwrap();
            assert!(sized.bits >= 1 && (1..=MAX_PROBES).contains(&sized.probes));
            assert!(sized.fpr <= p * 1.3 + 1e-12, "{n} keys at {p}: {sized:?}");
        }
    }

    #[test]
    fn counters_take_the_place_of_bits() {
        let bloom = Spec::sized(1_000_000, 0.01).bloom().unwrap();
        for bits in 2..=16 {
            let sized = Spec::sized(1_000_000, 0.01).with_counter_bits(bits).counting().unwrap();
            assert_eq!((sized.cells, sized.probes, sized.fpr), (bloom.bits, bloom.probes, bloom.fpr));
            // The memory, and no bit less, gives the same back.
            let memory = bloom.bits * u64::from(bits);
            let asked = Spec::new().with_counter_bits(bits).with_capacity(1_000_000);
            assert_eq!(asked.with_bits(memory).counting().unwrap().cells, bloom.bits);
            assert_eq!(asked.with_bits(memory - 1).counting().unwrap().cells, bloom.bits - 1);
        }
        for rule in CountingRule::ALL {
            let asked = Spec::new().with_capacity(1_000_000).with_counting_rule(rule);
            for width in [None, Some(4), Some(11), Some(32)] {
                let asked = width.map_or(asked, |bits| asked.with_counter_bits(bits));
                let sized = asked.with_fpr(0.01).spectral().unwrap();
                assert_eq!((sized.cells, sized.probes, sized.rule), (bloom.bits, bloom.probes, rule));
                assert_eq!(sized.width, width.map_or(Width::Variable, Width::Fixed));
                let memory = spectral_bits(sized.cells, sized.width, rule);
                assert_eq!(asked.with_bits(memory).spectral().unwrap().cells, bloom.bits);
                assert_eq!(asked.with_bits(memory - 1).spectral().unwrap().cells, bloom.bits - 1);
            }
        }
        // Foldable means nothing here.
        let foldable = Spec::sized(1_000_000, 0.01).foldable();
        assert_eq!(foldable.counting().unwrap().cells, bloom.bits);
    }

    #[test]
    fn counters_that_cannot_be_had_are_refused_with_the_way_out() {
        let sized = Spec::sized(1000, 0.01);
        let rule = sized.with_counting_rule(CountingRule::MinimumSelection);
        let refused: [(Result<(), SpecError>, &str); 12] = [
            (
                sized.with_counter_bits(1).counting().map(drop),
                "counters of 1 bits were asked for; this family has them of 2 to 16",
            ),
            (
                sized.with_counter_bits(17).counting().map(drop),
                "counters of 17 bits were asked for; this family has them of 2 to 16",
            ),
            (
                sized.with_counter_bits(3).spectral().map(drop),
                "counters of 3 bits were asked for; this family has them of 4 to 32",
            ),
            (sized.with_counter_bits(33).spectral().map(drop), "this family has them of 4 to 32"),
            (
                sized.with_counter_bits(4).bloom().map(drop),
                "counters of 4 bits were asked for, and this family has no counters; counting, dleft and spectral have",
            ),
            (sized.with_counter_bits(4).blocked().map(drop), "this family has no counters"),
            (sized.with_counter_bits(4).keys(64).map(drop), "this family has no counters"),
            (
                rule.bloom().map(drop),
                "the counting rule minimum-selection was asked for, and this family has no choice of rules; spectral has",
            ),
            (rule.counting().map(drop), "no choice of rules; spectral has"),
            (sized.with_layout(Layout::Fastest).counting().map(drop), "no choice of layouts"),
            (sized.with_layout(Layout::Fastest).spectral().map(drop), "no choice of layouts"),
            (
                sized.with_bits(20_000).counting().map(drop),
                "20000 bits cannot give that false-positive rate for so many keys; it takes 38",
            ),
        ];
        for (refused, text) in refused {
            let message = refused.expect_err(text).to_string();
            assert!(message.contains(text), "{message}");
        }
        for (n, bits) in [(1u64 << 46, 4), (1 << 45, 16)] {
            let spec = Spec::sized(n, 0.01).with_counter_bits(bits);
            assert!(matches!(spec.counting(), Err(SpecError::Bits { limit: MAX_BITS, .. })));
            assert!(matches!(spec.spectral(), Err(SpecError::Bits { limit: MAX_BITS, .. })));
        }
    }

    #[test]
    fn a_cuckoo_filter_is_sized_by_any_two_numbers() {
        // CKO: a million keys at 0.1% take 13 bits in 263,158 buckets, at 1% 10 bits.
        for (p, width, bits) in [(0.001, 13, 13_684_216), (0.01, 10, 10_526_320), (0.00186, 12, 12_631_584)] {
            let spec = Spec::sized(1_000_000, p);
            let size = spec.cuckoo().unwrap();
            assert_eq!((size.buckets, size.width, size.bits()), (263_158, width, bits));
            assert!(size.fpr <= p && size.layout == Layout::Fastest && size.fpr_asked == p);
            // Semi-sorting stores a bit less per slot, of fingerprints as long.
            let sorted = spec.with_layout(Layout::Compact).cuckoo().unwrap();
            assert_eq!((sorted.width, sorted.bits()), (width, bits - 4 * 263_158));
            let by_bits = Spec::new().with_capacity(1_000_000).with_bits(bits);
            assert_eq!(by_bits.cuckoo().unwrap().width, width);
            assert_eq!(by_bits.with_fpr(p).cuckoo().unwrap(), size);
            let fewer = Spec::sized(1_000_000, p).with_bits(bits - 1).cuckoo();
            assert_eq!(fewer, Err(SpecError::Unreachable { bits: bits - 1, needed: bits }));
            let capacity = Spec::new().with_bits(bits).with_fpr(p).cuckoo().unwrap();
            assert_eq!((capacity.width, capacity.buckets), (width, 263_158));
            assert!((1_000_000..1_000_010).contains(&capacity.capacity) && capacity.fpr <= p);
        }
    }

    #[test]
    fn a_cuckoo_filter_has_edges_too() {
        let refused = |spec: Spec| spec.cuckoo().unwrap_err().to_string();
        assert!(refused(Spec::sized(100, 1e-10)).contains("this family reaches down to 1."));
        assert!(refused(Spec::sized(100, 0.1).with_probes(7)).contains("leave them out"));
        assert!(refused(Spec::new().with_capacity(100)).contains("too little"));
        assert!(refused(Spec::new().with_bits(31).with_fpr(0.5)).contains("it takes 32"));
        assert!(refused(Spec::sized(1 << 48, 0.5)).contains("the limit is"));
        // Both halves of what the digest tells must fit it.
        assert_eq!(Spec::sized(1 << 40, 1e-6).cuckoo().unwrap().width, 23);
        assert!(refused(Spec::sized(1 << 40, 1e-8)).contains("this family reaches down to"));
        for (n, p) in [(1, 0.999), (1, 1e-8), (3, 0.3), (1 << 33, 1e-6), (1000, 0.5), (50_000_000, 0.5)] {
            for layout in Layout::ALL {
                let size = Spec::sized(n, p).with_layout(layout).cuckoo().unwrap();
                assert!(size.fpr <= p && size.capacity == n, "{size:?}");
            }
        }
        // So many keys do not find room with fingerprints that would do for the rate.
        assert_eq!(Spec::sized(50_000_000, 0.5).cuckoo().unwrap().width, 7);
    }

    /// The search for blocks ended at the largest filter, which was then granted at whatever rate it had.
    #[test]
    fn a_blocked_filter_beyond_the_limit_is_refused_and_not_granted_at_a_worse_rate() {
        for layout in [Layout::Compact, Layout::Fastest] {
            for (n, p) in [(1 << 48, 0.5), (1 << 48, 1e-9), (1 << 46, 0.01)] {
                let refused = Spec::sized(n, p).with_layout(layout).blocked();
                assert!(matches!(refused, Err(SpecError::Bits { .. })), "{n} keys at {p}: {refused:?}");
            }
            for (n, p) in [(1 << 44, 0.01), (1 << 40, 1e-5), (1, 0.999), (10, 0.9), (1, BLOCKED_MIN_FPR)] {
                let sized = Spec::sized(n, p).with_layout(layout).blocked().unwrap();
                assert!(sized.fpr <= p && sized.blocks * sized.shape.bits() <= MAX_BITS, "{sized:?}");
            }
        }
    }

    #[test]
    fn shifting_filters_are_sized_by_any_two_or_three_numbers() {
        type Solved = Result<(u64, u64, u32, u64, f64), SpecError>;
        let families: [fn(&Spec) -> Solved; 3] = [
            |spec| spec.shifting().map(|s| (s.capacity, s.starts, s.probes, s.bits(), s.fpr)),
            |spec| spec.shifting_association().map(|s| (s.capacity, s.starts, s.probes, s.bits(), s.fpr)),
            |spec| spec.shifting_multiplicity().map(|s| (s.capacity, s.starts, s.probes, s.bits(), s.fpr)),
        ];
        for solve in families {
            for (n, p) in [(1_000_000, 0.01), (12_345, 1e-5), (1, 0.5), (1 << 40, 0.01), (7, 0.999)] {
                let (capacity, starts, probes, bits, fpr) = solve(&Spec::sized(n, p)).unwrap();
                assert!(capacity == n && bits == starts + 56 && fpr <= p, "{n} at {p}");
                // No place less, and the same from the bits.
                let by_bits = Spec::new().with_capacity(n).with_bits(bits);
                assert_eq!(solve(&by_bits.with_probes(probes)).unwrap(), (n, starts, probes, bits, fpr));
                assert!(solve(&by_bits).unwrap().4 <= p);
                if starts > 1 {
                    assert!(solve(&by_bits.with_bits(bits - 1).with_probes(probes)).unwrap().4 > p);
                    let refused = solve(&Spec::sized(n, p).with_bits(bits - 1));
                    assert_eq!(refused, Err(SpecError::Unreachable { bits: bits - 1, needed: bits }));
                }
                let most = solve(&Spec::new().with_bits(bits).with_fpr(p)).unwrap();
                assert!(
                    most.0 >= n && most.4 <= p && (n < 1000 || most.0 as f64 <= 1.001 * n as f64),
                    "{most:?} of {n}"
                );
            }
            // Counters take their bits.
            for width in 2..=16 {
                let (_, starts, probes, bits, _) =
                    solve(&Spec::sized(1000, 0.01).with_counter_bits(width)).unwrap();
                assert_eq!(bits, (starts + 56) * u64::from(1 + width));
                let again = Spec::new()
                    .with_capacity(1000)
                    .with_bits(bits)
                    .with_probes(probes)
                    .with_counter_bits(width);
                assert_eq!(solve(&again).unwrap().1, starts);
            }
            for (spec, text) in [
                (Spec::sized(1000, 0.01).with_counter_bits(17), "this family has them of 2 to 16"),
                (Spec::sized(1000, 0.01).with_bits(56), "56 bits cannot give that"),
                (Spec::sized(1 << 48, 1e-9), "the limit is"),
                (Spec::sized(1000, 0.01).with_layout(Layout::Fastest), "no choice of layouts"),
                (Spec::sized(1000, 0.01).with_bits(20_000).with_probes(6), "leave out the one"),
                (Spec::new().with_bits(10_000), "too little to size"),
            ] {
                let message = solve(&spec).expect_err(text).to_string();
                assert!(message.contains(text), "{message}");
            }
            let half = solve(&Spec::new().with_capacity(1000).with_probes(10)).unwrap();
            assert_eq!(half.1, 14_427);
            assert_eq!(solve(&Spec::new().with_bits(14_427 + 56).with_probes(10)).unwrap().0, 1000);
        }
    }

    #[test]
    fn shifts_and_counts_that_cannot_be_had_are_refused_with_the_way_out() {
        let sized = Spec::sized(1000, 0.01);
        let refused: [(Result<(), SpecError>, &str); 7] = [
            (
                sized.with_probes(7).shifting().map(drop),
                "7 probes were asked for; with 1 shifts they are a multiple of 2",
            ),
            (
                sized.with_shifts(2).with_probes(8).shifting().map(drop),
                "with 2 shifts they are a multiple of 3",
            ),
            (sized.with_shifts(4).shifting().map(drop), "4 shifts were asked for; it must be 1 to 3"),
            (
                sized.with_shifts(1).bloom().map(drop),
                "1 shifts were asked for, and this family does not shift; shifting does",
            ),
            (
                sized.with_max_count(58).shifting_multiplicity().map(drop),
                "counts up to 58 were asked for; it must be 1 to 57",
            ),
            (
                sized.with_max_count(0).shifting_multiplicity().map(drop),
                "it must be 1 to 57; spectral counts further",
            ),
            (
                sized.with_max_count(9).spectral().map(drop),
                "counts up to 9 were asked for, and this family has no such",
            ),
        ];
        for (refused, text) in refused {
            let message = refused.expect_err(text).to_string();
            assert!(message.contains(text), "{message}");
        }
        assert_eq!(sized.with_shifts(3).shifting().unwrap().probes % 4, 0);
        let (few, many) = (sized.with_max_count(1), sized);
        assert!(few.shifting_multiplicity().unwrap().starts < many.shifting_multiplicity().unwrap().starts);
    }
}
