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

/// The lowest false-positive rate that can be requested: 2^-64.
pub const MIN_FPR: f64 = 1.0 / (u64::MAX as f64);

/// The false-positive rate if none is requested: 1%.
pub const DEFAULT_FPR: f64 = 0.01;

/// The capacity that a growing filter starts with if none is requested.
pub const STARTING_CAPACITY: u64 = 1024;

/// The doublings through which a growing filter keeps its rate if none are requested: from a thousand keys to a thousand
/// million.
pub const DEFAULT_DOUBLINGS: u32 = 20;

/// The most doublings that a growing filter plans for.
pub const MOST_DOUBLINGS: u32 = 48;

/// What is requested of a new filter: any two or three of capacity, rate, bits and probes; and how to hash.
///
/// A family refuses a number that it does not have: [`SpecError::NotFor`] names the families that have it.
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
#[non_exhaustive]
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
#[non_exhaustive]
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
    /// Nothing is requested yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The usual request: `capacity` keys at the false-positive rate `fpr`.
    #[must_use]
    pub fn sized(capacity: u64, fpr: f64) -> Self {
        Self::new().with_capacity(capacity).with_fpr(fpr)
    }

    /// Requests room for `capacity` keys.
    #[must_use]
    pub const fn with_capacity(mut self, capacity: u64) -> Self {
        self.request.capacity = Some(capacity);
        self
    }

    /// Requests a false-positive rate at capacity.
    #[must_use]
    pub const fn with_fpr(mut self, fpr: f64) -> Self {
        self.request.fpr = Some(fpr);
        self
    }

    /// Requests a number of bits.
    #[must_use]
    pub const fn with_bits(mut self, bits: u64) -> Self {
        self.request.bits = Some(bits);
        self
    }

    /// Requests a number of positions per key.
    #[must_use]
    pub const fn with_probes(mut self, probes: u32) -> Self {
        self.request.probes = Some(probes);
        self
    }

    /// Requests a layout, of a family that has several.
    #[must_use]
    pub const fn with_layout(mut self, layout: Layout) -> Self {
        self.request.layout = Some(layout);
        self
    }

    /// Requests a number of bits that has many divisors, so that the filter can be folded later. The bits
    /// are rounded up by at most 1%, or to whole words: [`foldable_bits`](crate::math::foldable_bits).
    /// A family that does not fold refuses it.
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

    /// Requests counters of `bits` bits, of a family that has counters.
    #[must_use]
    pub const fn with_counter_bits(mut self, bits: u32) -> Self {
        self.request.counter_bits = Some(bits);
        self
    }

    /// Requests a rule for counting, of a family that has several.
    #[must_use]
    pub const fn with_counting_rule(mut self, rule: CountingRule) -> Self {
        self.request.counting_rule = Some(rule);
        self
    }

    /// Requests `areas` areas, of the family `spatial`. Families of one set refuse it.
    #[must_use]
    pub const fn with_areas(mut self, areas: u32) -> Self {
        self.request.areas = Some(areas);
        self
    }

    /// Requests layers that have room for `growth` times the keys of the one before, of a family that grows by layers.
    /// 1 makes all layers equal; 0 makes a filter that does not grow, and says when it is full. A layer has at most 64 times
    /// the bits of all layers before it, or 16 MiB if that is more.
    #[must_use]
    pub const fn with_growth(mut self, growth: u32) -> Self {
        self.request.growth = Some(growth);
        self
    }

    /// Requests layers whose rates are `tightening` times that of the one before, of a family that grows by layers.
    #[must_use]
    pub const fn with_tightening(mut self, tightening: f64) -> Self {
        self.request.tightening = Some(tightening);
        self
    }

    /// Requests `shifts` offsets per window, of the family `shifting`.
    #[must_use]
    pub const fn with_shifts(mut self, shifts: u32) -> Self {
        self.request.shifts = Some(shifts);
        self
    }

    /// Requests counts up to `count`, of the family `shifting-multiplicity`.
    #[must_use]
    pub const fn with_max_count(mut self, count: u32) -> Self {
        self.request.max_count = Some(count);
        self
    }

    /// Requests that the rate is kept through `doublings` doublings, of the families `expanding` and `table`.
    #[must_use]
    pub const fn with_doublings(mut self, doublings: u32) -> Self {
        self.request.doublings = Some(doublings);
        self
    }

    /// Says that `others` keys are known that are not in the set, of the family `universe`.
    #[must_use]
    pub const fn with_others(mut self, others: u64) -> Self {
        self.request.others = Some(others);
        self
    }

    /// The number of known keys that are not in the set.
    #[must_use]
    pub const fn others(&self) -> Option<u64> {
        self.request.others
    }

    /// The requested number of keys.
    #[must_use]
    pub const fn capacity(&self) -> Option<u64> {
        self.request.capacity
    }

    /// The requested false-positive rate.
    #[must_use]
    pub const fn fpr(&self) -> Option<f64> {
        self.request.fpr
    }

    /// The requested number of bits.
    #[must_use]
    pub const fn bits(&self) -> Option<u64> {
        self.request.bits
    }

    /// The requested layout.
    #[must_use]
    pub const fn layout(&self) -> Option<Layout> {
        self.request.layout
    }

    /// The requested width of counters.
    #[must_use]
    pub const fn counter_bits(&self) -> Option<u32> {
        self.request.counter_bits
    }

    /// The requested rule for counting.
    #[must_use]
    pub const fn counting_rule(&self) -> Option<CountingRule> {
        self.request.counting_rule
    }

    /// The requested number of areas.
    #[must_use]
    pub const fn areas(&self) -> Option<u32> {
        self.request.areas
    }

    /// The requested largest count.
    #[must_use]
    pub const fn max_count(&self) -> Option<u32> {
        self.request.max_count
    }

    /// Requests a hash function.
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

    /// Families of integers do not hash: no seed or secret may have been requested.
    ///
    /// # Errors
    /// [`SpecError::Hashing`] if one was.
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

    /// The same for `keys` keys, unless the number of keys is requested or follows from what is.
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
    /// - `smallest`: the filter with the fewest bits that has room for a number of keys and keeps a rate;
    /// - `best`: the filter with the lowest rate that has room for a number of keys within a number of bits, if it keeps the
    ///   rate where one is requested;
    /// - `most`: the filter with the largest capacity that keeps a rate within a number of bits.
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
        Ok(keys)
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
#[non_exhaustive]
pub struct Plan {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// The requested rate, or that at capacity if none was requested.
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
