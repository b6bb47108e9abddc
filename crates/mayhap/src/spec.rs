//! What was asked for, and what is granted. The one place that validates sizes and rates.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::bits::{BEHIND, BLOCK, OVERHEAD, OutOfMemory, SLOTS, WINDOW, Width, bucket_bits};
use crate::cell_lanes::MAX_WIDTH;
use crate::error::SpecError;
use crate::hash::Hashing;
use crate::math::{self, BlockShape, MAX_PROBES, ProbesRule, WINDOWED_GENERATIONS};
use crate::narrow::{low_u32, small, whole, whole_u32};
use crate::paths::Paths;
use crate::table_shape::Shape;

/// The most keys that a filter may be planned for: 2^48, 281 million million.
pub const MAX_CAPACITY: u64 = 1 << 48;

/// The most bits that a filter may have: 2^48, 32 TiB. Far beyond any machine, and low enough that
/// no sum or product of sizes overflows.
pub const MAX_BITS: u64 = 1 << 48;

/// The lowest false-positive rate that may be asked for: 2^-64.
pub const MIN_FPR: f64 = 1.0 / (u64::MAX as f64);

/// The false-positive rate where nobody said one: 1%.
pub const DEFAULT_FPR: f64 = 0.01;

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
    capacity: Option<u64>,
    fpr: Option<f64>,
    bits: Option<u64>,
    probes: Option<u32>,
    layout: Option<Layout>,
    foldable: bool,
    counter_bits: Option<u32>,
    counting_rule: Option<CountingRule>,
    areas: Option<u32>,
    growth: Option<u32>,
    tightening: Option<f64>,
    shifts: Option<u32>,
    max_count: Option<u32>,
    doublings: Option<u32>,
    others: Option<u64>,
    hashing: Hashing,
    /// Which loops the filter takes; asked for by tests.
    pub(crate) paths: Paths,
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

/// The widths of a counting filter's counters.
const COUNTING_BITS: (u32, u32) = (2, 16);

/// Four bits hold all that a set puts into a counter: [`math::counter_overflow_bound`].
const COUNTING_DEFAULT_BITS: u32 = 4;

/// The widths of a spectral filter's counters, if they are fixed.
const SPECTRAL_BITS: (u32, u32) = (4, 32);

/// The widths of a d-left filter's counters.
pub(crate) const DLEFT_COUNTER_BITS: (u32, u32) = (2, 8);

/// Two bits count the different keys that share a fingerprint: more than two hardly ever do.
const DLEFT_DEFAULT_COUNTER_BITS: u32 = 2;

/// The widths of a d-left filter's remainders.
pub(crate) const DLEFT_REMAINDER_BITS: (u32, u32) = (2, MAX_WIDTH - DLEFT_COUNTER_BITS.1);

/// The lowest rate that a full d-left filter reaches, with the longest remainders.
pub const DLEFT_MIN_FPR: f64 = math::DLEFT_KEYS as f64 / (1u64 << DLEFT_REMAINDER_BITS.1) as f64;

/// What a blocked filter can be asked for, and is not.
pub const BLOCKED_MIN_FPR: f64 = 1e-9;

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
        self.capacity = Some(capacity);
        self
    }

    /// Asks for a false-positive rate at capacity.
    #[must_use]
    pub const fn with_fpr(mut self, fpr: f64) -> Self {
        self.fpr = Some(fpr);
        self
    }

    /// Asks for a number of bits.
    #[must_use]
    pub const fn with_bits(mut self, bits: u64) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Asks for a number of probes.
    #[must_use]
    pub const fn with_probes(mut self, probes: u32) -> Self {
        self.probes = Some(probes);
        self
    }

    /// Asks for a layout, of a family that has several.
    #[must_use]
    pub const fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
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
        self.foldable = true;
        self
    }

    /// Asks for counters of so many bits, of a family that counts.
    #[must_use]
    pub const fn with_counter_bits(mut self, bits: u32) -> Self {
        self.counter_bits = Some(bits);
        self
    }

    /// Asks for a way to count, of a family that has several.
    #[must_use]
    pub const fn with_counting_rule(mut self, rule: CountingRule) -> Self {
        self.counting_rule = Some(rule);
        self
    }

    /// Asks for so many areas, of a family of many sets. Means nothing to a family of one.
    #[must_use]
    pub const fn with_areas(mut self, areas: u32) -> Self {
        self.areas = Some(areas);
        self
    }

    /// Asks for layers that have room for so many times the keys of the one before, of a family that grows by them.
    /// 1 makes all layers equal; 0 makes a filter that does not grow, and says when it is full. A layer has at most 64 times
    /// the bits of all layers before it, or 16 MiB if that is more.
    #[must_use]
    pub const fn with_growth(mut self, growth: u32) -> Self {
        self.growth = Some(growth);
        self
    }

    /// Asks for layers whose rates are so many times that of the one before, of a family that grows by them.
    #[must_use]
    pub const fn with_tightening(mut self, tightening: f64) -> Self {
        self.tightening = Some(tightening);
        self
    }

    /// Asks for so many offsets per window, of the family `shifting`.
    #[must_use]
    pub const fn with_shifts(mut self, shifts: u32) -> Self {
        self.shifts = Some(shifts);
        self
    }

    /// Asks for counts up to this one, of the family `shifting-multiplicity`.
    #[must_use]
    pub const fn with_max_count(mut self, count: u32) -> Self {
        self.max_count = Some(count);
        self
    }

    /// Asks that the rate be kept through so many doublings, of a family that doubles.
    #[must_use]
    pub const fn with_doublings(mut self, doublings: u32) -> Self {
        self.doublings = Some(doublings);
        self
    }

    /// Says that so many other keys are known, which are not in the set: of the family `universe`.
    #[must_use]
    pub const fn with_others(mut self, others: u64) -> Self {
        self.others = Some(others);
        self
    }

    /// How many other keys are said to be known.
    #[must_use]
    pub const fn others(&self) -> Option<u64> {
        self.others
    }

    /// The number of keys that was asked for.
    #[must_use]
    pub const fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    /// The false-positive rate that was asked for.
    #[must_use]
    pub const fn fpr(&self) -> Option<f64> {
        self.fpr
    }

    /// The number of bits that was asked for.
    #[must_use]
    pub const fn bits(&self) -> Option<u64> {
        self.bits
    }

    /// The layout that was asked for.
    #[must_use]
    pub const fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// The width of counters that was asked for.
    #[must_use]
    pub const fn counter_bits(&self) -> Option<u32> {
        self.counter_bits
    }

    /// The way to count that was asked for.
    #[must_use]
    pub const fn counting_rule(&self) -> Option<CountingRule> {
        self.counting_rule
    }

    /// The number of areas that was asked for.
    #[must_use]
    pub const fn areas(&self) -> Option<u32> {
        self.areas
    }

    /// The largest count that was asked for.
    #[must_use]
    pub const fn max_count(&self) -> Option<u32> {
        self.max_count
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

    /// Each number by itself. Everything that sizes a filter calls this first.
    fn check(&self) -> Result<(), SpecError> {
        if let Some(asked) = self.shifts {
            return Err(SpecError::NoShifts { asked });
        }
        if let Some(asked) = self.max_count {
            return Err(SpecError::NoMaxCount { asked });
        }
        if let Some(asked) = self.capacity.filter(|n| !(1..=MAX_CAPACITY).contains(n)) {
            return Err(SpecError::Capacity { asked, limit: MAX_CAPACITY });
        }
        // No range contains NaN, so it is refused here too.
        if let Some(asked) = self.fpr.filter(|p| !(MIN_FPR..1.0).contains(p)) {
            return Err(SpecError::Fpr { asked });
        }
        if let Some(asked) = self.bits.filter(|m| !(1..=MAX_BITS).contains(m)) {
            return Err(SpecError::Bits { asked, limit: MAX_BITS });
        }
        if let Some(asked) = self.probes.filter(|k| !(1..=MAX_PROBES).contains(k)) {
            return Err(SpecError::Probes { asked });
        }
        // The family that has layers looks at these first, and asks for the rest without them.
        if self.growth.is_some() || self.tightening.is_some() {
            return Err(SpecError::NoLayers);
        }
        Ok(())
    }

    /// A layout is refused by families that have no choice of them.
    fn no_layout(&self) -> Result<(), SpecError> {
        self.layout.map_or(Ok(()), |layout| Err(SpecError::Layout { asked: layout.name() }))
    }

    /// A rule is refused by families that have no choice of them.
    fn no_rule(&self) -> Result<(), SpecError> {
        self.counting_rule.map_or(Ok(()), |rule| Err(SpecError::CountingRule { asked: rule.name() }))
    }

    /// Counters are refused by families that have none.
    fn no_counters(&self) -> Result<(), SpecError> {
        self.no_rule()?;
        self.counter_bits.map_or(Ok(()), |asked| Err(SpecError::NoCounters { asked }))
    }

    /// The width of the counters that were asked for, if any were.
    fn counter_width(&self, (least, most): (u32, u32)) -> Result<Option<u32>, SpecError> {
        match self.counter_bits {
            Some(asked) if !(least..=most).contains(&asked) => {
                Err(SpecError::CounterBits { asked, least, most })
            }
            width => Ok(width),
        }
    }

    /// The number of keys asked for, or the number that fits the bits asked for; for families whose
    /// size is a fixed number of bits per key.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong or missing.
    pub fn keys(&self, bits_per_key: u64) -> Result<u64, SpecError> {
        self.check()?;
        self.no_layout()?;
        self.no_counters()?;
        let fits = self.bits.map(|bits| (bits / bits_per_key).max(1));
        let keys = self.capacity.or(fits).ok_or(SpecError::Incomplete)?;
        if let Some(bits) = self.bits.filter(|&bits| bits / bits_per_key < keys) {
            return Err(SpecError::Unreachable { bits, needed: keys.saturating_mul(bits_per_key) });
        }
        Ok(keys)
    }

    /// Solves for what was not asked, by the formulas of the classic Bloom filter.
    ///
    /// Two or three of the four numbers are enough, as long as one of capacity and bits is among
    /// them. Without a rate the filter is meant to be half full; without probes the best number is
    /// taken.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn bloom(&self) -> Result<BloomSize, SpecError> {
        self.check()?;
        self.no_layout()?;
        self.no_counters()?;
        let rule = ProbesRule::Nearest;
        let (capacity, bits, probes) = match (self.capacity, self.bits, self.fpr, self.probes) {
            (Some(n), None, Some(p), None) => (n, math::bloom_bits(n, p), math::bloom_probes(p, rule)),
            (Some(n), None, Some(p), Some(k)) => (n, math::bloom_bits_for_probes(n, p, k), k),
            (Some(n), Some(m), None, None) => (n, m, math::best_probes(m, n)),
            (Some(n), Some(m), None, Some(k)) => (n, m, k),
            (Some(n), Some(m), Some(p), None) => {
                let needed = || {
                    let best = math::best_probes(m, n);
                    (best.saturating_sub(1).max(1)..=MAX_PROBES)
                        .map(|k| math::bloom_bits_for_probes(n, p, k))
                        .min()
                        .unwrap_or(u64::MAX)
                };
                let probes = math::least_probes(m, n, p)
                    .ok_or_else(|| SpecError::Unreachable { bits: m, needed: needed() })?;
                (n, m, probes)
            }
            (None, Some(m), Some(p), None) => (
                at_least_one(math::bloom_capacity(m, p), m, || math::bloom_bits(1, p))?,
                m,
                math::bloom_probes(p, rule),
            ),
            (None, Some(m), Some(p), Some(k)) => {
                let capacity = math::bloom_capacity_for_probes(m, p, k);
                (at_least_one(capacity, m, || math::bloom_bits_for_probes(1, p, k))?, m, k)
            }
            // Half full: the rate is 2^-k.
            (Some(n), None, None, Some(k)) => (n, math::bloom_bits_for_probes(n, half_full(k), k), k),
            (None, Some(m), None, Some(k)) => {
                (math::bloom_capacity_for_probes(m, half_full(k), k).max(1), m, k)
            }
            (Some(_), Some(_), Some(_), Some(_)) => return Err(SpecError::TooMuch),
            (None, None, _, _) | (Some(_), None, None, None) | (None, Some(_), None, None) => {
                return Err(SpecError::Incomplete);
            }
        };
        let bits = if self.foldable { math::foldable_bits(bits) } else { bits };
        if bits > MAX_BITS {
            return Err(SpecError::Bits { asked: bits, limit: MAX_BITS });
        }
        let fpr = math::bloom_fpr_of_any_size(bits, capacity, probes);
        Ok(BloomSize { capacity, bits, probes, fpr_asked: self.fpr.unwrap_or(fpr), fpr })
    }
}

impl Spec {
    /// Solves for what was not asked, for a blocked filter: by the mixture over the loads of its blocks, and
    /// not by the classic formula.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn blocked(&self) -> Result<BlockedSize, SpecError> {
        self.check()?;
        self.no_counters()?;
        let layout = self.layout.unwrap_or_default();
        if let Some(asked) = self.fpr.filter(|&p| p < BLOCKED_MIN_FPR) {
            return Err(SpecError::FprBelow { asked, least: BLOCKED_MIN_FPR });
        }
        let shapes: Vec<BlockShape> = BLOCK_SHAPES
            .into_iter()
            .filter(|shape| (*shape == BlockShape::Split) == (layout == Layout::Fastest))
            .filter(|shape| self.probes.is_none_or(|probes| shape.probes() == probes))
            .collect();
        if shapes.is_empty() {
            return Err(SpecError::BlockedProbes { asked: self.probes.unwrap_or(0) });
        }
        // Of several shapes the one with the best result is taken.
        let (shape, capacity, blocks) = match (self.capacity, self.bits, self.fpr) {
            (Some(n), None, Some(p)) => {
                let shape =
                    shapes.iter().copied().find(|&shape| shapes.len() == 1 || shape == smallest_shape(p));
                shape.map(|shape| (shape, n, math::blocked_blocks(shape, n, p)))
            }
            (Some(n), Some(m), p) => {
                let sized = shapes.into_iter().map(|shape| (shape, n, (m / shape.bits()).max(1)));
                let best = sized.min_by(|a, b| blocked_rate(*a).total_cmp(&blocked_rate(*b)));
                if let Some((best, p)) = best.zip(p).filter(|(best, p)| blocked_rate(*best) > *p) {
                    let needed = math::blocked_blocks(best.0, n, p) * best.0.bits();
                    return Err(SpecError::Unreachable { bits: m, needed });
                }
                best
            }
            (None, Some(m), Some(p)) => {
                let blocks = |shape: BlockShape| (m / shape.bits()).max(1);
                let sized = shapes
                    .into_iter()
                    .map(|shape| (shape, math::blocked_capacity(shape, blocks(shape), p), blocks(shape)));
                sized.max_by_key(|(_, capacity, _)| *capacity)
            }
            _ => return Err(SpecError::Incomplete),
        }
        .ok_or(SpecError::Incomplete)?;
        let bits = blocks.saturating_mul(shape.bits());
        if capacity == 0 {
            let needed = math::blocked_blocks(shape, 1, self.fpr.unwrap_or(0.5)) * shape.bits();
            return Err(SpecError::Unreachable { bits, needed });
        }
        if bits > MAX_BITS {
            return Err(SpecError::Bits { asked: bits, limit: MAX_BITS });
        }
        let fpr = blocked_rate((shape, capacity, blocks));
        Ok(BlockedSize { capacity, blocks, shape, fpr_asked: self.fpr.unwrap_or(fpr), fpr })
    }
}

impl Spec {
    /// Solves for what was not asked, for a counting filter: a Bloom filter with counters in place of bits.
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
        self.check()?;
        self.no_rule()?;
        let counter_bits = self.counter_width(COUNTING_BITS)?.unwrap_or(COUNTING_DEFAULT_BITS);
        let bits = |cells: u64| cells.saturating_mul(counter_bits.into());
        let BloomSize { capacity, bits: cells, probes, fpr_asked, fpr } = self.cells(bits)?;
        Ok(CountingSize { capacity, cells, probes, counter_bits, fpr_asked, fpr })
    }

    /// Solves for what was not asked, for a spectral filter: as many counters as a Bloom filter has bits, whose
    /// false positives are the wrong estimates of minimum selection.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn spectral(&self) -> Result<SpectralSize, SpecError> {
        self.check()?;
        let width = self.counter_width(SPECTRAL_BITS)?.map_or(Width::Variable, Width::Fixed);
        let rule = self.counting_rule.unwrap_or_default();
        let bits = |cells: u64| spectral_bits(cells, width, rule);
        let BloomSize { capacity, bits: cells, probes, fpr_asked, fpr } = self.cells(bits)?;
        Ok(SpectralSize { capacity, cells, probes, width, rule, fpr_asked, fpr })
    }

    /// A Bloom filter with cells in place of bits, so many of which take so many `bits`.
    fn cells(&self, bits: impl Fn(u64) -> u64) -> Result<BloomSize, SpecError> {
        // The most that fit, by halving the range: `bits` grows with the cells.
        let most = |memory: u64| {
            let (mut fit, mut too_many) = (0, memory + 1);
            while too_many - fit > 1 {
                let middle = fit + (too_many - fit) / 2;
                if bits(middle) <= memory { fit = middle } else { too_many = middle }
            }
            fit.max(1)
        };
        let asked = Self {
            bits: self.bits.map(most),
            foldable: false,
            counter_bits: None,
            counting_rule: None,
            ..*self
        };
        let sized = asked.bloom().map_err(|e| match (e, self.bits) {
            (SpecError::Unreachable { needed, .. }, Some(memory)) => {
                SpecError::Unreachable { bits: memory, needed: bits(needed) }
            }
            (SpecError::Bits { asked, limit }, _) => SpecError::Bits { asked: bits(asked), limit },
            (e, _) => e,
        })?;
        match bits(sized.bits) {
            asked if asked > MAX_BITS => Err(SpecError::Bits { asked, limit: MAX_BITS }),
            _ => Ok(sized),
        }
    }
}

impl Spec {
    /// Solves for what was not asked, for a d-left filter: the remainders and the number of buckets that take the
    /// fewest bits.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(1_000_000, 0.01).dleft()?;
    /// assert_eq!((sized.buckets, sized.remainder_bits, sized.counter_bits), (41_667, 12, 2));
    /// assert!(sized.fpr < 0.006); // the next shorter remainder would take more buckets and more bits
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn dleft(&self) -> Result<DleftSize, SpecError> {
        self.check()?;
        self.no_layout()?;
        self.no_rule()?;
        let counter_bits = self.counter_width(DLEFT_COUNTER_BITS)?.unwrap_or(DLEFT_DEFAULT_COUNTER_BITS);
        if let Some(asked) = self.probes {
            return Err(SpecError::NoProbes { asked });
        }
        if let Some(asked) = self.fpr.filter(|&p| p < DLEFT_MIN_FPR) {
            return Err(SpecError::FprBelow { asked, least: DLEFT_MIN_FPR });
        }
        let size = |capacity: u64, buckets: u64, remainder_bits: u32| {
            let fpr = math::dleft_fpr(buckets, remainder_bits, capacity as f64);
            let fpr_asked = self.fpr.unwrap_or(fpr);
            DleftSize { capacity, buckets, remainder_bits, counter_bits, fpr_asked, fpr }
        };
        let remainders = || DLEFT_REMAINDER_BITS.0..=DLEFT_REMAINDER_BITS.1;
        let smallest = |n: u64, p: f64| {
            remainders()
                .map(|bits| size(n, math::dleft_buckets(n, p, bits), bits))
                .min_by_key(DleftSize::bits)
        };
        let needed = |n: u64| smallest(n, self.fpr.unwrap_or(1.0)).map_or(MAX_BITS, |size| size.bits());
        let fit = |memory: u64, bits: u32| memory / size(1, 1, bits).bits();
        let sized = match (self.capacity, self.bits, self.fpr) {
            (Some(n), None, Some(p)) => smallest(n, p),
            // The lowest rate that the bits give, with room for all keys.
            (Some(n), Some(memory), p) => {
                let sizes = remainders().map(|bits| size(n, fit(memory, bits), bits));
                let best = sizes
                    .filter(|size| size.buckets >= n.div_ceil(math::DLEFT_KEYS))
                    .min_by(|one, other| one.fpr.total_cmp(&other.fpr))
                    .filter(|size| p.is_none_or(|p| size.fpr <= p));
                Some(best.ok_or_else(|| SpecError::Unreachable { bits: memory, needed: needed(n) })?)
            }
            (None, Some(memory), Some(p)) => {
                let capacity = |buckets, bits| math::dleft_capacity(buckets, p, bits);
                let sizes = remainders().map(|bits| (fit(memory, bits), bits));
                let best = sizes
                    .map(|(buckets, bits)| size(capacity(buckets, bits), buckets, bits))
                    .max_by_key(|size| size.capacity)
                    .filter(|size| size.capacity > 0);
                Some(best.ok_or_else(|| SpecError::Unreachable { bits: memory, needed: needed(1) })?)
            }
            _ => None,
        };
        match sized.ok_or(SpecError::Incomplete)? {
            size if size.bits() > MAX_BITS => Err(SpecError::Bits { asked: size.bits(), limit: MAX_BITS }),
            size => Ok(size),
        }
    }

    /// Solves for what was not asked, for a cuckoo filter: its fingerprints are as long as the rate needs, and its
    /// buckets as many as the keys need. In the layout `compact` buckets are semi-sorted.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn cuckoo(&self) -> Result<CuckooSize, SpecError> {
        self.check()?;
        if let Some(asked) = self.probes {
            return Err(SpecError::NoProbes { asked });
        }
        let layout = self.layout.unwrap_or(Layout::Fastest);
        let widths = cuckoo_widths(layout);
        let size = |capacity: u64, buckets: u64, width: u32| {
            let fpr = math::cuckoo_fpr(width, capacity as f64 / (buckets * u64::from(SLOTS)) as f64);
            CuckooSize { capacity, buckets, width, layout, fpr_asked: self.fpr.unwrap_or(fpr), fpr }
        };
        // The first half of the digest tells bucket and fingerprint, so that both together have 64 bits.
        let tells = |size: &CuckooSize| size.buckets <= 1 << (64 - size.width);
        let fits = |size: &CuckooSize| size.width >= math::cuckoo_least_width(size.capacity, size.buckets);
        let granted = |size: &CuckooSize| fits(size) && self.fpr.is_none_or(|p| size.fpr <= p);
        let size = match (self.capacity, self.bits, self.fpr) {
            (Some(n), None, Some(asked)) => {
                let buckets = math::cuckoo_buckets(n);
                let sized = || widths.clone().map(|width| size(n, buckets, width)).filter(tells);
                let least = sized().map(|size| size.fpr).fold(1.0, f64::min);
                sized().find(granted).ok_or(SpecError::FprBelow { asked, least })?
            }
            (Some(n), Some(bits), _) => {
                let buckets = math::cuckoo_buckets(n);
                let mut sized = widths.map(|width| size(n, buckets, width)).filter(tells);
                let best = sized.clone().rfind(|size| size.bits() <= bits).filter(granted);
                let mut needed = || sized.find(granted).map_or(MAX_BITS, |size| size.bits());
                best.ok_or_else(|| SpecError::Unreachable { bits, needed: needed() })?
            }
            (None, Some(bits), Some(_)) => {
                let sized = |width: u32| {
                    let buckets = bits / u64::from(bucket_bits(width, layout == Layout::Compact));
                    let buckets = buckets - buckets % 2;
                    size(math::cuckoo_capacity(buckets), buckets, width)
                };
                let needed = 2 * u64::from(bucket_bits(*widths.start(), layout == Layout::Compact));
                let mut sized = widths.map(sized).filter(|size| size.capacity > 0).filter(tells);
                sized.find(granted).ok_or(SpecError::Unreachable { bits, needed })?
            }
            _ => return Err(SpecError::Incomplete),
        };
        if size.bits() > MAX_BITS {
            return Err(SpecError::Bits { asked: size.bits(), limit: MAX_BITS });
        }
        Ok(size)
    }
}

/// The capacity that an expanding filter starts with where nobody said one.
pub const EXPANDING_CAPACITY: u64 = 1024;

/// The doublings through which an expanding filter keeps its rate, where nobody said how many: from a thousand keys to a
/// thousand million.
pub const EXPANDING_DOUBLINGS: u32 = 20;

/// The most doublings that an expanding filter plans for.
pub(crate) const EXPANDING_MOST_DOUBLINGS: u32 = 48;

/// The lengths of an expanding filter's fingerprints. Of `f` bits, the keys of each doubling that is `f` back or more take
/// 1 of `2^(f + 1)` slots for good, wherever the filter has got to. With 4 bits half of all slots are taken so after 20
/// doublings; with fewer it would soon double without getting room.
pub(crate) const EXPANDING_WIDTHS: RangeInclusive<u32> = 4..=50;

impl Spec {
    /// Solves for what was not asked, for an expanding filter: its fingerprints are as long as the rate and the planned
    /// doublings need, and its slots as many as it starts with.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(1024, 0.01).expanding()?;
    /// assert_eq!((sized.slots, sized.fingerprint_bits, sized.doublings), (1152, 10, 20));
    /// assert!(sized.fpr <= 0.01); // just before the 21st doubling
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn expanding(&self) -> Result<ExpandingSize, SpecError> {
        self.check()?;
        self.no_layout()?;
        self.no_counters()?;
        if let Some(asked) = self.probes {
            return Err(SpecError::NoProbes { asked });
        }
        let doublings = self.doublings.unwrap_or(EXPANDING_DOUBLINGS);
        if doublings > EXPANDING_MOST_DOUBLINGS {
            return Err(SpecError::Doublings { asked: doublings, most: EXPANDING_MOST_DOUBLINGS });
        }
        let size = |slots: u64, fingerprint_bits: u32| {
            let fpr = math::expanding_fpr(fingerprint_bits, doublings, math::EXPANDING_LOAD);
            let (capacity, fpr_asked) = (math::expanding_capacity(slots), self.fpr.unwrap_or(fpr));
            ExpandingSize { capacity, slots, fingerprint_bits, doublings, fpr_asked, fpr }
        };
        let least = *EXPANDING_WIDTHS.start();
        let needed = self.fpr.map(|p| math::expanding_fingerprint(p, doublings).max(least));
        if let Some((asked, _)) = self.fpr.zip(needed).filter(|(_, bits)| !EXPANDING_WIDTHS.contains(bits)) {
            let least = math::expanding_fpr(*EXPANDING_WIDTHS.end(), doublings, math::EXPANDING_LOAD);
            return Err(SpecError::FprBelow { asked, least });
        }
        let size = match (self.capacity, self.bits, needed) {
            (Some(n), None, Some(width)) => size(math::expanding_slots(n), width),
            // The longest fingerprints that fit.
            (Some(n), Some(bits), needed) => {
                let slots = math::expanding_slots(n);
                let smallest = size(slots, needed.unwrap_or(least)).bits();
                if smallest > bits {
                    return Err(SpecError::Unreachable { bits, needed: smallest });
                }
                let fit = bits / slots - u64::from(1 + OVERHEAD);
                size(slots, small(fit.min((*EXPANDING_WIDTHS.end()).into())))
            }
            (None, Some(bits), Some(width)) => {
                let least = size(BLOCK as u64, width);
                match bits / least.bits() {
                    0 => return Err(SpecError::Unreachable { bits, needed: least.bits() }),
                    blocks => size(blocks * BLOCK as u64, width),
                }
            }
            _ => return Err(SpecError::Incomplete),
        };
        match size.bits() {
            asked if asked > MAX_BITS => Err(SpecError::Bits { asked, limit: MAX_BITS }),
            _ => Ok(size),
        }
    }
}

/// The numbers of an expanding filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpandingSize {
    /// The number of keys that it takes before it doubles.
    pub capacity: u64,
    /// Its slots, a multiple of 64.
    pub slots: u64,
    /// Bits of a new key's fingerprint.
    pub fingerprint_bits: u32,
    /// The doublings through which the rate is kept.
    pub doublings: u32,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate after all those doublings, when it is full again.
    pub fpr: f64,
}

impl ExpandingSize {
    /// The bits of all slots, with what lies beside them.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.slots.saturating_mul((self.fingerprint_bits + 1 + OVERHEAD) as u64)
    }

    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: None }
    }
}

/// The capacity that a table starts with where nobody said one.
pub const TABLE_CAPACITY: u64 = 1024;

impl Spec {
    /// Solves for what was not asked, for a table: it tells as many keys from each other as the rate and the planned doublings
    /// need, and its lines are as many as it starts with.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(20_000_000, 1e-9).with_doublings(0).table()?;
    /// assert!(sized.capacity >= 20_000_000 && sized.fpr <= 1e-9);
    /// assert!(sized.bits() < 42 * 20_000_000);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn table(&self) -> Result<TableSize, SpecError> {
        self.check()?;
        self.no_layout()?;
        self.no_counters()?;
        if let Some(asked) = self.probes {
            return Err(SpecError::NoProbes { asked });
        }
        if let Some(asked) = self.doublings.filter(|&asked| asked > EXPANDING_MOST_DOUBLINGS) {
            return Err(SpecError::Doublings { asked, most: EXPANDING_MOST_DOUBLINGS });
        }
        let size = |shape: Shape| {
            let (capacity, fpr) = (shape.capacity(), math::table_fpr(shape.capacity(), shape.names()));
            TableSize { capacity, shape, fpr_asked: self.fpr.unwrap_or(fpr), fpr }
        };
        let too_large = SpecError::Bits { asked: u64::MAX, limit: MAX_BITS };
        let size = match (self.capacity, self.bits, self.fpr) {
            (Some(n), None, Some(fpr)) => {
                size(Shape::for_keys(n, self.table_names(n, fpr)?).ok_or(too_large)?)
            }
            // As many names as fit.
            (Some(n), Some(bits), fpr) => {
                let least = fpr.map_or(Ok(1), |fpr| self.table_names(n, fpr))?;
                let smallest = Shape::for_keys(n, least).ok_or(too_large)?;
                if smallest.bits() > bits {
                    return Err(SpecError::Unreachable { bits, needed: smallest.bits() });
                }
                // One bit more of each remainder, as long as that is not too much.
                let more = (1..u64::BITS).map_while(|more| {
                    let names =
                        smallest.names().checked_shl(more).filter(|names| names >> more == smallest.names());
                    Shape::for_keys(n, names?.min(Shape::MOST_NAMES)).filter(|shape| shape.bits() <= bits)
                });
                size(more.last().unwrap_or(smallest))
            }
            (None, Some(bits), Some(fpr)) => {
                let least = Shape::for_keys(1, 1).ok_or(too_large)?.bits();
                let names = |n: u64| self.table_names(n, fpr).unwrap_or(Shape::MOST_NAMES);
                match Shape::within(bits, names) {
                    Some(shape) => size(shape),
                    None => return Err(SpecError::Unreachable { bits, needed: least }),
                }
            }
            _ => return Err(SpecError::Incomplete),
        };
        match size.bits() {
            asked if asked > MAX_BITS => Err(SpecError::Bits { asked, limit: MAX_BITS }),
            _ if self.fpr.is_some_and(|asked| size.fpr > asked) => {
                Err(SpecError::FprBelow { asked: size.fpr_asked, least: size.fpr })
            }
            _ => Ok(size),
        }
    }

    /// The names with which `n` keys have the rate `fpr`, also after the planned doublings; after as many as possible, where
    /// nobody said how many.
    fn table_names(&self, n: u64, fpr: f64) -> Result<u64, SpecError> {
        // A table may take a few keys more than it was asked for.
        let now = 1.001 * n.max(1000) as f64 / fpr;
        let most = Shape::MOST_NAMES as f64;
        let doubled = now * libm::exp2(self.doublings.unwrap_or(EXPANDING_DOUBLINGS).into());
        if now > most || (doubled > most && self.doublings.is_some()) {
            let asked = if self.doublings.is_some() { doubled } else { now };
            return Err(SpecError::FprBelow { asked: fpr, least: fpr * asked / most });
        }
        // The most is no number that a float has, and is rounded up there.
        Ok((whole(doubled.min(most))).min(Shape::MOST_NAMES))
    }
}

/// The numbers of a table, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableSize {
    /// The number of keys that it takes before it grows.
    pub capacity: u64,
    /// Its lines, and how keys belong to them.
    pub(crate) shape: Shape,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate with as many keys as the capacity.
    pub fpr: f64,
}

impl TableSize {
    /// The bits of all lines.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.shape.bits()
    }

    /// How many of so many keys have their names beside the lines, on average: 64 bits each. It depends on which lines they
    /// belong to, and so on the keys: of 5000 keys that fill the table they are 49, give or take 11.
    #[must_use]
    pub fn crowded(&self, keys: u64) -> u64 {
        self.shape.crowded(keys)
    }

    /// How many keys are told from each other.
    #[must_use]
    pub const fn told_apart(&self) -> u64 {
        self.shape.names()
    }

    /// With as many names beside the lines as `keys` keys bring on average.
    pub(crate) fn plan(&self, keys: u64) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        let bits = self.bits() + 64 * self.crowded(keys);
        Plan { capacity, fpr_asked, fpr, bits, probes: None }
    }
}

/// The numbers of a d-left filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DleftSize {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// The buckets of each of its four subtables, of eight cells each.
    pub buckets: u64,
    /// Bits of the remainder in each cell.
    pub remainder_bits: u32,
    /// Bits of the counter in each cell.
    pub counter_bits: u32,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl DleftSize {
    /// All cells of all subtables.
    #[must_use]
    pub const fn cells(&self) -> u64 {
        self.buckets.saturating_mul(32)
    }

    /// The bits of all cells together.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.cells().saturating_mul((self.remainder_bits + self.counter_bits) as u64)
    }
    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(4) }
    }
}

/// The bits of a spectral filter while no counter is above 15.
pub(crate) fn spectral_bits(cells: u64, width: Width, rule: CountingRule) -> u64 {
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
pub(crate) const fn secondary_cells(cells: u64) -> u64 {
    cells.div_ceil(2)
}

/// The numbers of a counting filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountingSize {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// Its counters.
    pub cells: u64,
    /// Positions per key.
    pub probes: u32,
    /// Bits of each counter.
    pub counter_bits: u32,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl CountingSize {
    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, cells, probes, counter_bits, fpr_asked, fpr } = *self;
        Plan { capacity, fpr_asked, fpr, bits: cells * counter_bits as u64, probes: Some(probes) }
    }
}

/// The numbers of a spectral filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity: of false positives, and of wrong estimates by minimum
    /// selection.
    pub fpr: f64,
}

impl SpectralSize {
    /// While no counter is above 15.
    pub(crate) fn plan(&self) -> Plan {
        let Self { capacity, cells, probes, width, rule, fpr_asked, fpr } = *self;
        Plan { capacity, fpr_asked, fpr, bits: spectral_bits(cells, width, rule), probes: Some(probes) }
    }
}

impl Spec {
    /// Solves for what was not asked, for a binary fuse filter: its fingerprints are as long as the rate needs, or the bits
    /// allow. Three places per key in the layout `fastest`, which is the default, and four in `compact`.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn fuse(&self) -> Result<FuseSize, SpecError> {
        self.check()?;
        self.no_counters()?;
        if let Some(asked) = self.probes {
            return Err(SpecError::NoProbes { asked });
        }
        let ways = if self.layout == Some(Layout::Compact) { 4 } else { 3 };
        let capacity = self.capacity.ok_or(SpecError::Incomplete)?;
        let sized = |width: u32| {
            let fpr = math::fuse_fpr(width, capacity);
            FuseSize { capacity, width, ways, fpr_asked: self.fpr.unwrap_or(fpr), fpr }
        };
        let mut sizes = FuseSize::WIDTHS.map(sized);
        // Who asks for 2^-8 means 8 bits, although equal digests add a little.
        let granted = |size: &FuseSize| self.fpr.is_none_or(|p| size.fpr <= p * (1.0 + 1e-6));
        let size = match (self.bits, self.fpr) {
            (Some(bits), _) => {
                let best = sizes.clone().rfind(|size| size.bits() <= bits).filter(granted);
                let mut needed = || sizes.find(granted).map_or(MAX_BITS, |size| size.bits());
                best.ok_or_else(|| SpecError::Unreachable { bits, needed: needed() })?
            }
            (None, Some(asked)) => {
                let least = sizes.clone().map(|size| size.fpr).fold(1.0, f64::min);
                sizes.find(granted).ok_or(SpecError::FprBelow { asked, least })?
            }
            (None, None) => return Err(SpecError::Incomplete),
        };
        match size.bits() {
            asked if asked > MAX_BITS => Err(SpecError::Bits { asked, limit: MAX_BITS }),
            _ => Ok(size),
        }
    }
}

/// The numbers of a binary fuse filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FuseSize {
    /// The number of different keys it is made of.
    pub capacity: u64,
    /// Bits per fingerprint.
    pub width: u32,
    /// Places per key: 3 or 4.
    pub ways: u32,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate that these integers give.
    pub fpr: f64,
}

impl FuseSize {
    /// The lengths that fingerprints have.
    pub(crate) const WIDTHS: RangeInclusive<u32> = 4..=32;

    /// Bits of all fingerprints together, if the shards have the same number of keys.
    #[must_use]
    pub fn bits(&self) -> u64 {
        let shards = 1 << math::shard_bits(self.capacity);
        let (log, segments) = math::fuse_segments(self.capacity.div_ceil(shards), self.ways);
        let slots = (segments + u64::from(self.ways) - 1) << log;
        shards * slots.next_multiple_of(64) * u64::from(self.width)
    }

    pub(crate) fn plan(&self) -> Plan {
        let Self { capacity, ways, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(ways) }
    }

    /// Four places per key are `compact`, three `fastest`.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        if self.ways == 4 { Layout::Compact } else { Layout::Fastest }
    }
}

impl Spec {
    /// Solves for what was not asked, for a bumped ribbon filter: its fingerprints are as long as the rate needs, or the bits
    /// allow; where that is no whole number, some keys have one bit more than others. Rows of 64 bits in the layout
    /// `fastest`, which is the default, and of 128 in `compact`.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn ribbon(&self) -> Result<RibbonSize, SpecError> {
        self.check()?;
        self.no_counters()?;
        if let Some(asked) = self.probes {
            return Err(SpecError::NoProbes { asked });
        }
        let row_bits = if self.layout == Some(Layout::Compact) { 128 } else { 64 };
        let capacity = self.capacity.ok_or(SpecError::Incomplete)?;
        // Columns in parts of 2^32, so that they are one number.
        let sized = |parts: u64| {
            let (columns, more) = ((parts >> 32) as u32, low_u32(parts));
            let fpr = math::ribbon_fpr(columns, more, capacity);
            RibbonSize { capacity, columns, more, row_bits, fpr_asked: self.fpr.unwrap_or(fpr), fpr }
        };
        // Who asks for 2^-8 means 8 columns, although equal digests add a little. Where they add much they get more columns.
        let granted = |size: &RibbonSize| size.fpr <= size.fpr_asked * (1.0 + 1e-6);
        let for_rate = |p: f64| {
            let size = sized(math::ribbon_columns(p));
            let size = if granted(&size) { size } else { sized(math::ribbon_columns(p - (size.fpr - p))) };
            let least = sized(32 << 32).fpr;
            if granted(&size) { Ok(size) } else { Err(SpecError::FprBelow { asked: p, least }) }
        };
        let needed = self.fpr.map(for_rate).transpose()?;
        let size = match (self.bits, needed) {
            (Some(bits), needed) => {
                // The most columns whose slots are not too many. None has fewer bits than nothing.
                let (mut fits, mut behind) = (0u64, (32 << 32) + 1);
                while behind - fits > 1 {
                    let middle = fits.midpoint(behind);
                    if sized(middle).bits() <= bits { fits = middle } else { behind = middle }
                }
                let size = sized(fits);
                let least = needed.map_or(sized(1).bits(), |size| size.bits());
                if fits == 0 || needed.is_some_and(|needed| size.fpr > needed.fpr * (1.0 + 1e-6)) {
                    return Err(SpecError::Unreachable { bits, needed: least });
                }
                size
            }
            (None, Some(size)) => size,
            (None, None) => return Err(SpecError::Incomplete),
        };
        match size.bits() {
            asked if asked > MAX_BITS => Err(SpecError::Bits { asked, limit: MAX_BITS }),
            _ => Ok(RibbonSize { fpr: size.planned_fpr(), ..size }),
        }
    }
}

/// The numbers of a bumped ribbon filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RibbonSize {
    /// The number of different keys it is made of.
    pub capacity: u64,
    /// Bits per fingerprint.
    pub columns: u32,
    /// The share of the fingerprints that have one bit more, in parts of 2^32.
    pub more: u32,
    /// Bits of a row: 64 or 128.
    pub row_bits: u32,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate that these integers give.
    pub fpr: f64,
}

impl RibbonSize {
    /// Bits of all slots and buckets together, if the shards have the same number of keys and as many are bumped as usual.
    #[must_use]
    pub fn bits(&self) -> u64 {
        let shards = 1 << math::shard_bits(self.capacity);
        let words =
            math::ribbon_words(self.capacity.div_ceil(shards), self.row_bits, self.columns, self.more);
        shards * words * 64
    }

    pub(crate) fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: None }
    }

    /// The rate of as many keys.
    pub(crate) fn planned_fpr(&self) -> f64 {
        math::ribbon_planned_fpr(self.capacity, self.row_bits, self.columns, self.more)
    }

    /// Bits of a fingerprint, on average.
    #[must_use]
    pub fn columns_on_average(&self) -> f64 {
        f64::from(self.columns) + f64::from(self.more) / 4_294_967_296.0
    }

    /// Rows of 128 bits are `compact`, of 64 `fastest`.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        if self.row_bits == 128 { Layout::Compact } else { Layout::Fastest }
    }
}

impl Spec {
    /// Solves for what was not asked, for a set within a known universe: as many columns in the first stage as make both
    /// stages smallest for so many [others](Spec::with_others), or more if the rate for keys that nobody knew asks for them.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn universe(&self) -> Result<UniverseSize, SpecError> {
        self.check()?;
        self.no_counters()?;
        if let Some(asked) = self.probes {
            return Err(SpecError::NoProbes { asked });
        }
        let row_bits = if self.layout == Some(Layout::Compact) { 128 } else { 64 };
        let capacity = self.capacity.ok_or(SpecError::Incomplete)?;
        if let Some(asked) = self.others.filter(|&others| others > MAX_CAPACITY) {
            return Err(SpecError::Capacity { asked, limit: MAX_CAPACITY });
        }
        if self.others.is_none() && self.fpr.is_none() {
            return Err(SpecError::Incomplete);
        }
        let for_others = self.others.map_or(0, |others| (others / capacity).max(1).ilog2());
        // The second stage admits one in two of those that the first one admits.
        let mut columns = for_others.min(UniverseSize::MOST_COLUMNS);
        let fpr = |columns| math::universe_fpr(columns);
        if let Some(asked) = self.fpr {
            let least = fpr(UniverseSize::MOST_COLUMNS);
            let wanted = (columns..=UniverseSize::MOST_COLUMNS).find(|&columns| fpr(columns) <= asked);
            columns = wanted.ok_or(SpecError::FprBelow { asked, least })?;
        }
        let fpr = fpr(columns);
        let others = self.others.unwrap_or(0);
        let fpr_asked = self.fpr.unwrap_or(fpr);
        let size = UniverseSize { capacity, others, columns, row_bits, fpr_asked, fpr };
        match (size.bits(), self.bits) {
            (needed, Some(bits)) if bits < needed => Err(SpecError::Unreachable { bits, needed }),
            (asked, _) if asked > MAX_BITS => Err(SpecError::Bits { asked, limit: MAX_BITS }),
            _ => Ok(size),
        }
    }
}

/// The numbers of a set within a known universe, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UniverseSize {
    /// The number of different keys of the set.
    pub capacity: u64,
    /// The number of keys that are known not to be in it.
    pub others: u64,
    /// Columns of the first stage.
    pub columns: u32,
    /// Bits of a row: 64 or 128.
    pub row_bits: u32,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate of keys that nobody knew. Of the others none is admitted.
    pub fpr: f64,
}

impl UniverseSize {
    /// The first stage has at most so many.
    pub(crate) const MOST_COLUMNS: u32 = 32;

    /// Bits of both stages together, if shards have the same number of keys and as many are bumped as usual.
    #[must_use]
    pub fn bits(&self) -> u64 {
        let shards = 1 << math::shard_bits(self.capacity);
        let (keys, others) = (self.capacity.div_ceil(shards), self.others / shards);
        let first = match self.columns {
            0 => 0,
            columns => math::ribbon_words(keys, self.row_bits, columns, 0),
        };
        let admitted = keys + (others >> self.columns);
        shards * 64 * (first + math::ribbon_words(admitted, self.row_bits, 1, 0))
    }

    pub(crate) fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: None }
    }

    /// Rows of 128 bits are `compact`, of 64 `fastest`.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        if self.row_bits == 128 { Layout::Compact } else { Layout::Fastest }
    }
}

/// The lengths that fingerprints have: semi-sorting takes their upper 4 bits, and must leave one.
pub(crate) const fn cuckoo_widths(layout: Layout) -> RangeInclusive<u32> {
    match layout {
        Layout::Fastest => 4..=32,
        Layout::Compact => 5..=32,
    }
}

/// The numbers of a cuckoo filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CuckooSize {
    /// The number of different keys it is made for.
    pub capacity: u64,
    /// Its buckets, of four slots each; an even number.
    pub buckets: u64,
    /// Bits per fingerprint.
    pub width: u32,
    /// Semi-sorted (`compact`) or not (`fastest`).
    pub layout: Layout,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl CuckooSize {
    /// Bits of all buckets together.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.buckets * bucket_bits(self.width, matches!(self.layout, Layout::Compact)) as u64
    }
    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: None }
    }
}

/// All shapes of blocks that filters have.
pub(crate) const BLOCK_SHAPES: [BlockShape; 6] = [
    BlockShape::Line { full: 0, half: true },
    BlockShape::Line { full: 1, half: false },
    BlockShape::Line { full: 1, half: true },
    BlockShape::Line { full: 2, half: false },
    BlockShape::Line { full: 2, half: true },
    BlockShape::Split,
];

/// The lines that need the fewest bits for a rate. The bounds are where [`math::blocked_blocks`] of two
/// neighbours meet, at ten million keys.
fn smallest_shape(fpr: f64) -> BlockShape {
    let (full, half) = match fpr {
        p if p >= 0.019 => (0, true),
        p if p >= 6.7e-4 => (1, false),
        p if p >= 1.1e-5 => (1, true),
        p if p >= 1.3e-7 => (2, false),
        _ => (2, true),
    };
    BlockShape::Line { full, half }
}

/// The rate of a blocked filter at capacity.
pub(crate) fn blocked_rate((shape, capacity, blocks): (BlockShape, u64, u64)) -> f64 {
    let loads = math::block_loads(capacity as f64 / blocks as f64);
    math::blocked_fpr(&math::block_rates(shape, loads), blocks, capacity as f64)
}

/// The numbers of a blocked filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockedSize {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// Its blocks.
    pub blocks: u64,
    /// What a key does in its block.
    pub shape: BlockShape,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl BlockedSize {
    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, blocks, shape, fpr_asked, fpr } = *self;
        Plan { capacity, fpr_asked, fpr, bits: blocks * shape.bits(), probes: Some(shape.probes()) }
    }

    pub(crate) const fn layout(&self) -> Layout {
        match self.shape {
            BlockShape::Line { .. } => Layout::Compact,
            BlockShape::Split => Layout::Fastest,
        }
    }
}

/// Bits that hold not even one key at the asked rate are too few.
fn at_least_one(capacity: u64, bits: u64, needed: impl FnOnce() -> u64) -> Result<u64, SpecError> {
    if capacity == 0 { Err(SpecError::Unreachable { bits, needed: needed() }) } else { Ok(capacity) }
}

/// The rate of a half-full filter: 2^-k.
fn half_full(probes: u32) -> f64 {
    libm::exp2(-f64::from(probes))
}

/// Twice the keys in each layer: modest growth. Four for fast growth takes more room on average.
const DEFAULT_GROWTH: u32 = 2;

/// The flat optimum of the memory, averaged over the numbers of keys that a filter ends with: Almeida et al. 2007.
const DEFAULT_TIGHTENING: f64 = 0.85;

/// As RedisBloom's limit on EXPANSION.
pub(crate) const MAX_GROWTH: u32 = 32_768;

/// The lowest rate that may be asked of a scalable filter. The rates of its layers are lower and fall without end, but
/// their probes end at 64.
pub const SCALABLE_MIN_FPR: f64 = 1e-12;

impl Spec {
    /// The parameters of RedisBloom's `BF.RESERVE` for a scalable filter: half of the rate for the first layer, each
    /// further one half of the one before, and so many times its keys (EXPANSION, 2 by default). 0 stands for
    /// NONSCALING, which has one layer with the whole rate.
    ///
    /// ```
    /// use mayhap::{Scalable, Spec};
    ///
    /// let mut seen = Scalable::from_spec(&Spec::redisbloom(100, 0.01, 0))?;
    /// while seen.insert(seen.inserted().unwrap_or(0)).is_ok() {}
    /// assert!(seen.inserted() >= Some(100)); // full, and as it was
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    #[must_use]
    pub fn redisbloom(capacity: u64, fpr: f64, expansion: u32) -> Self {
        Self::sized(capacity, fpr).with_growth(expansion).with_tightening(0.5)
    }

    /// Solves for what was not asked, for a scalable filter and its first layer. Bits are those of that layer.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(10_000, 0.02).with_tightening(0.5).scalable()?;
    /// assert_eq!((sized.layer_fpr, sized.probes, sized.bits), (0.01, 7, 100_989)); // 7 * 10,000 / ln 2
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn scalable(&self) -> Result<ScalableSize, SpecError> {
        let asked = Self { growth: None, tightening: None, ..*self };
        asked.check()?;
        asked.no_layout()?;
        asked.no_counters()?;
        if let Some(asked) = self.probes {
            return Err(SpecError::NoProbes { asked });
        }
        let growth = self.growth.unwrap_or(DEFAULT_GROWTH);
        if growth > MAX_GROWTH {
            return Err(SpecError::Growth { asked: growth, limit: MAX_GROWTH });
        }
        let tightening = self.tightening.unwrap_or(DEFAULT_TIGHTENING);
        if !(0.01..=0.99).contains(&tightening) {
            return Err(SpecError::Tightening { asked: tightening });
        }
        if let Some(asked) = self.fpr.filter(|&p| p < SCALABLE_MIN_FPR) {
            return Err(SpecError::FprBelow { asked, least: SCALABLE_MIN_FPR });
        }
        let share = first_share(growth, tightening);
        let probes = |p: f64| math::bloom_probes(p * share, ProbesRule::Up);
        let (capacity, probes) = match (self.capacity, self.bits, self.fpr) {
            (Some(n), None, Some(p)) => (n, probes(p)),
            (Some(n), Some(m), p) => {
                // Without a rate, as many as the bits give, but enough for a rate below 1.
                let least = p.map_or_else(|| probes(1.0 - f64::EPSILON), probes);
                let fits = |k: &u32| layer_bits(n, *k) <= m;
                let most = p.map_or(MAX_PROBES, probes);
                let found = (least..=most).rev().find(fits);
                (n, found.ok_or_else(|| SpecError::Unreachable { bits: m, needed: layer_bits(n, least) })?)
            }
            (None, Some(m), Some(p)) => {
                let k = probes(p);
                let fits = math::bloom_capacity_for_probes(m, half_full(k), k);
                (at_least_one(fits, m, || layer_bits(1, k))?, k)
            }
            _ => return Err(SpecError::Incomplete),
        };
        let bits = layer_bits(capacity, probes);
        if bits > MAX_BITS {
            return Err(SpecError::Bits { asked: bits, limit: MAX_BITS });
        }
        let fpr_asked = self.fpr.unwrap_or(half_full(probes) / share);
        let fpr = math::bloom_fpr(bits, capacity as f64, probes);
        let layer_fpr = fpr_asked * share;
        Ok(ScalableSize { capacity, bits, probes, growth, tightening, fpr_asked, layer_fpr, fpr })
    }
}

/// The share of the asked rate that the first layer gets; 1 if it stays the only one.
fn first_share(growth: u32, tightening: f64) -> f64 {
    if growth == 0 { 1.0 } else { 1.0 - tightening }
}

/// Bits of a layer for so many keys that is half full with them: `n k / ln 2`.
pub(crate) fn layer_bits(capacity: u64, probes: u32) -> u64 {
    math::bloom_bits_for_probes(capacity, half_full(probes), probes)
}

/// The numbers of a scalable filter and of its first layer, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalableSize {
    /// The number of keys that its first layer is made for.
    pub capacity: u64,
    /// The bits of that layer.
    pub bits: u64,
    /// Its positions per key.
    pub probes: u32,
    /// Each further layer has room for so many times the keys of the one before; 0 if there is none.
    pub growth: u32,
    /// And so many times its rate.
    pub tightening: f64,
    /// The rate that was asked for: of all layers together, however many there will be.
    pub fpr_asked: f64,
    /// The share of it that the first layer may have.
    pub layer_fpr: f64,
    /// The rate that the first layer has at capacity.
    pub fpr: f64,
}

impl ScalableSize {
    /// Of the first layer.
    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, bits, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits, probes: None }
    }
}

impl Spec {
    /// Solves for what was not asked, for a windowed filter: the slices and generations that take the fewest bits.
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
        self.check()?;
        self.no_layout()?;
        self.no_counters()?;
        if let Some(asked) = self.probes {
            return Err(SpecError::NoProbes { asked });
        }
        // 64 slices for a key keep every rate that may be asked for.
        let smallest = |n: u64, p: f64| WindowedSize::smallest(n, p).ok_or(SpecError::Fpr { asked: p });
        let size = match (self.capacity, self.bits, self.fpr) {
            (Some(n), None, Some(p)) => smallest(n, p)?,
            (Some(n), Some(bits), None) => {
                let all =
                    (1..=MAX_PROBES).flat_map(|k| (1..).zip(math::windowed_fprs(k)).map(move |l| (k, l)));
                let sizes =
                    || all.clone().map(|(k, (l, fpr))| WindowedSize { fpr, ..WindowedSize::of(n, k, l) });
                let fits = sizes().filter(|size| size.bits() <= bits);
                let best = fits.min_by(|one, other| one.fpr.total_cmp(&other.fpr));
                let needed = || sizes().map(|size| size.bits()).min().unwrap_or(MAX_BITS);
                best.ok_or_else(|| SpecError::Unreachable { bits, needed: needed() })?
            }
            (Some(n), Some(bits), Some(p)) => {
                let size = smallest(n, p)?;
                if size.bits() > bits {
                    return Err(SpecError::Unreachable { bits, needed: size.bits() });
                }
                size
            }
            (None, Some(bits), Some(p)) => {
                let needed = smallest(1, p)?.bits();
                // The most keys that fit, by halving the range.
                let fits = |n: u64| WindowedSize::smallest(n, p).filter(|size| size.bits() <= bits);
                let (mut fit, mut too_many) = (0, bits + 1);
                while too_many - fit > 1 {
                    let middle = fit + (too_many - fit) / 2;
                    if fits(middle).is_some() { fit = middle } else { too_many = middle }
                }
                let found = if fit == 0 { None } else { fits(fit) };
                found.ok_or(SpecError::Unreachable { bits, needed })?
            }
            _ => return Err(SpecError::Incomplete),
        };
        if size.bits() > MAX_BITS {
            return Err(SpecError::Bits { asked: size.bits(), limit: MAX_BITS });
        }
        let WindowedSize { probes, generations, generation, slice_bits, .. } = size;
        let fpr = math::windowed_fpr(probes, generations, generation, slice_bits);
        Ok(WindowedSize { fpr_asked: self.fpr.unwrap_or(fpr), fpr, ..size })
    }
}

/// The numbers of a windowed filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate that these integers give at the end of a generation, when it is highest.
    pub fpr: f64,
}

impl WindowedSize {
    /// A filter for the last `capacity` keys with so many slices for each, and so many generations. Its rates are not
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
    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, probes, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(probes) }
    }
}

impl From<OutOfMemory> for SpecError {
    fn from(refused: OutOfMemory) -> Self {
        Self::Memory { bytes: refused.bytes }
    }
}

/// The four numbers of a classic Bloom filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BloomSize {
    /// The number of keys it is made for.
    pub capacity: u64,
    /// Its bits.
    pub bits: u64,
    /// Positions per key.
    pub probes: u32,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity.
    pub fpr: f64,
}

impl BloomSize {
    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, bits, probes, fpr_asked, fpr } = *self;
        Plan { capacity, fpr_asked, fpr, bits, probes: Some(probes) }
    }
}

/// What a family would build, without building it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
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

/// The most areas of a spatial filter: as many as labels of 16 bits tell apart, one of which is "none".
pub const MAX_AREAS: u32 = u16::MAX as u32;

/// As many as labels of 8 bits tell apart; the number of areas where nobody said one.
const AREAS_OF_A_BYTE: u32 = u8::MAX as u32;

impl Spec {
    /// Solves for what was not asked, for a spatial filter: a Bloom filter of all keys with labels in place of bits, of 8
    /// bits for up to 255 areas, else of 16.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(100_000, 0.001).with_areas(3).spatial()?;
    /// assert_eq!((sized.cells, sized.probes, sized.label_bits), (1_437_759, 10, 8));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn spatial(&self) -> Result<SpatialSize, SpecError> {
        self.check()?;
        self.no_counters()?;
        let asked = self.areas.unwrap_or(AREAS_OF_A_BYTE);
        let areas = u16::try_from(asked).ok().filter(|&areas| areas > 0);
        let areas = areas.ok_or(SpecError::Areas { asked, limit: MAX_AREAS })?;
        let label_bits = if asked <= AREAS_OF_A_BYTE { 8 } else { 16 };
        let bits = |cells: u64| cells.saturating_mul(label_bits.into());
        let BloomSize { capacity, bits: cells, probes, fpr_asked, fpr } = self.cells(bits)?;
        Ok(SpatialSize { capacity, cells, probes, areas, label_bits, fpr_asked, fpr })
    }
}

/// The numbers of a spatial filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpatialSize {
    /// The number of keys it is made for, in all areas together.
    pub capacity: u64,
    /// Its cells.
    pub cells: u64,
    /// Positions per key.
    pub probes: u32,
    /// Its areas, with the numbers from 1 on.
    pub areas: u16,
    /// Bits of the label in each cell: 8 or 16.
    pub label_bits: u32,
    /// The rate that was asked for, or `fpr` if none was.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity: at which absent keys are told to be in some area.
    pub fpr: f64,
}

impl SpatialSize {
    /// The bits of all cells together.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.cells.saturating_mul(self.label_bits as u64)
    }

    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, probes, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(probes) }
    }
}

/// The largest count that a shifting filter tells: the bits of one window.
pub const MAX_COUNT: u32 = WINDOW;

impl Spec {
    /// Solves for what was not asked, for a shifting filter. Bits are all that it takes: those behind the last place at
    /// which a window starts, and counters, if any were asked for, included.
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
        let shifts = self.shifts.unwrap_or(1);
        if !(1..=math::MAX_SHIFTS).contains(&shifts) {
            return Err(SpecError::Shifts { asked: shifts, most: math::MAX_SHIFTS });
        }
        let asked = Self { shifts: None, ..*self };
        let (size, counter_bits) =
            asked.windows(shifts + 1, |m, n, k| math::shifting_fpr(m, n, k, shifts))?;
        let BloomSize { capacity, bits: starts, probes, fpr_asked, fpr } = size;
        Ok(ShiftingSize { capacity, starts, probes, shifts, counter_bits, fpr_asked, fpr })
    }

    /// Solves for what was not asked, for a shifting filter of two sets. The capacity is the number of keys in either, the
    /// rate that of keys in neither that are admitted.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn shifting_association(&self) -> Result<ShiftingAssociationSize, SpecError> {
        let (size, counter_bits) = self.windows(1, |m, n, k| math::any_of(math::bloom_fpr(m, n, k), 3))?;
        let BloomSize { capacity, bits: starts, probes, fpr_asked, fpr } = size;
        Ok(ShiftingAssociationSize { capacity, starts, probes, counter_bits, fpr_asked, fpr })
    }

    /// Solves for what was not asked, for a shifting filter of counts. The capacity is the number of different keys, the
    /// rate that of absent keys that get a count. Wrong counts of keys that are in are rarer.
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn shifting_multiplicity(&self) -> Result<ShiftingMultiplicitySize, SpecError> {
        let max_count = self.max_count.unwrap_or(MAX_COUNT);
        if !(1..=MAX_COUNT).contains(&max_count) {
            return Err(SpecError::MaxCount { asked: max_count, most: MAX_COUNT });
        }
        let asked = Self { max_count: None, ..*self };
        let (size, counter_bits) =
            asked.windows(1, |m, n, k| math::any_of(math::bloom_fpr(m, n, k), max_count))?;
        let BloomSize { capacity, bits: starts, probes, fpr_asked, fpr } = size;
        Ok(ShiftingMultiplicitySize { capacity, starts, probes, max_count, counter_bits, fpr_asked, fpr })
    }

    /// A filter that is read in windows: its places, as bits, and the width of its counters. The probes are a multiple of
    /// `step`, `rate` grows with the keys (its second argument) and falls with the places (its first).
    fn windows(
        &self,
        step: u32,
        rate: impl Fn(u64, f64, u32) -> f64,
    ) -> Result<(BloomSize, Option<u32>), SpecError> {
        self.check()?;
        self.no_layout()?;
        self.no_rule()?;
        let counter_bits = self.counter_width(COUNTING_BITS)?;
        if let Some(asked) = self.probes.filter(|probes| !probes.is_multiple_of(step)) {
            return Err(SpecError::ProbesStep { asked, step });
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
            math::first_false(low.max(1), high, misses)
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
                let most = |k: u32| math::first_false(1, MAX_CAPACITY, |n| rate(m, n as f64, k) <= p) - 1;
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
        let bits = window_bits(starts, counter_bits);
        if bits > MAX_BITS {
            return Err(SpecError::Bits { asked: bits, limit: MAX_BITS });
        }
        let fpr = rate(starts, capacity as f64, probes);
        Ok((
            BloomSize { capacity, bits: starts, probes, fpr_asked: self.fpr.unwrap_or(fpr), fpr },
            counter_bits,
        ))
    }

    /// The same for so many keys, unless the number of keys is asked for or follows from what is.
    pub(crate) const fn for_keys(mut self, keys: u64) -> Self {
        if self.capacity.is_none() && (self.bits.is_none() || (self.fpr.is_none() && self.probes.is_none())) {
            self.capacity = Some(if keys == 0 { 1 } else { keys });
        }
        self
    }
}

/// The bits of a filter that is read in windows, from the places at which one starts.
pub(crate) const fn window_bits(starts: u64, counter_bits: Option<u32>) -> u64 {
    let counter = match counter_bits {
        Some(bits) => bits as u64,
        None => 0,
    };
    starts.saturating_add(BEHIND).saturating_mul(1 + counter)
}

/// How many places at which a window starts there are in so many bits, of which there must be enough for one.
const fn window_starts(bits: u64, counter_bits: Option<u32>) -> u64 {
    bits / (window_bits(1, counter_bits) / (1 + BEHIND)) - BEHIND
}

/// The numbers of a shifting filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// The rate that was asked for, or `fpr` if none was.
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
    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, probes, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(probes) }
    }
}

/// The numbers of a shifting filter of two sets, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShiftingAssociationSize {
    /// The number of keys of either set that it is made for.
    pub capacity: u64,
    /// The places at which a window may start.
    pub starts: u64,
    /// Windows per key.
    pub probes: u32,
    /// Bits of the counter of each bit, if it has one.
    pub counter_bits: Option<u32>,
    /// The rate that was asked for, or `fpr` if none was.
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
    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, probes, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(probes) }
    }
}

/// The numbers of a shifting filter of counts, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// The rate that was asked for, or `fpr` if none was.
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
    pub(crate) const fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, probes, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(probes) }
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
