//! One small type per way of failing, holding facts; the sentence is made by `Display`.
//!
//! Every text is one line in lower case: what was expected, what was found and, when there is one, the way out, in terms of
//! the library. A program adds its own flags.
//!
//! An error is either another one under a wider type, as in [`Error::Full`]: then it has the text of that one and the same
//! source. Or it says what failed, and [`source`](core::error::Error::source) says why, as in [`Mismatch::Full`]. So a report
//! that prints an error and its sources says nothing twice.

use alloc::format;
use alloc::string::String;
use core::fmt;

/// A key was not taken, and the filter is as it was before that key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// What stood in the way.
    pub limit: Limit,
    /// How many keys of the same batch went in before it (0 for a single insert).
    pub inserted: u64,
}

/// What a full filter ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The filter holds as many keys as it can.
    Keys {
        /// How many it was made for.
        capacity: u64,
    },
    /// A bitmap has a place for the integers below `universe` only.
    Universe {
        /// The first integer that has no place.
        universe: u64,
        /// The integer that was to be inserted.
        key: u64,
    },
    /// A set of integers was given a key that is not 8 bytes long.
    NotAnInteger,
    /// No slot that the key may have is free, and no moves of other keys free one.
    Slots {
        /// How many keys the filter was made for.
        capacity: u64,
        /// The slots that are taken.
        used: u64,
        /// The slots that there are.
        slots: u64,
    },
    /// There is no memory to grow.
    Memory {
        /// How much was asked of the allocator.
        bytes: u64,
    },
    /// What the filter says of itself would make it grow further than what it holds can justify.
    Growth {
        /// The bytes that it would take.
        bytes: u64,
        /// The most that is justified.
        most: u64,
    },
    /// The filter came from bytes that were not verified, and is damaged.
    Damaged,
    /// The key, with others that look the same, is in as often as it can be.
    Copies {
        /// How often that is.
        most: u64,
    },
    /// There is no room for the key, although the filter is not full: keys that were inserted several times take the slots
    /// that it may have.
    Repeats {
        /// How often a key can be in, where others leave it the room.
        most: u64,
        /// The slots that are taken.
        used: u64,
        /// The slots that there are.
        slots: u64,
    },
    /// The filter has no such area.
    Area {
        /// The area that the key was to be in.
        area: u16,
        /// How many there are; they have the numbers from 1 on.
        areas: u16,
    },
    /// The filter has grown as often as it can.
    Layers {
        /// The layers that it has.
        most: u64,
    },
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Limit::Keys { capacity } => {
                write!(f, "the filter is full: it was made for {capacity} keys; build a larger one")
            }
            Limit::Universe { universe, key } => write!(
                f,
                "{key} has no place in a bitmap of the integers below {universe}; build it with a larger \
                 capacity, or use the family roaring"
            ),
            Limit::NotAnInteger => {
                f.write_str("this set holds integers, and the key is not one (8 little-endian bytes)")
            }
            Limit::Slots { capacity, used, slots } => write!(
                f,
                "the filter is full: {used} of {slots} slots are taken and there is no room for this key; it was made \
                 for {capacity} keys; build a larger one"
            ),
            Limit::Growth { bytes, most } => write!(
                f,
                "the filter is full, and its header asks for {bytes} bytes to grow where its size justifies {most}; the \
                 file is damaged or crafted"
            ),
            Limit::Damaged => f.write_str("the filter is damaged and nothing was changed"),
            Limit::Copies { most } => write!(
                f,
                "the key is in {most} times already, or others are that look the same, and more do not fit; insert \
                 each key once, or use a family that counts"
            ),
            Limit::Repeats { most, used, slots } => write!(
                f,
                "there is no room for this key, although only {used} of {slots} slots are taken: keys that were inserted \
                 several times take the slots that it may have, and a key can be in at most {most} times; insert each key \
                 once, or use a family that counts"
            ),
            Limit::Area { area, areas } => write!(
                f,
                "there is no area {area}: the filter was made for the areas 1 to {areas}; build it for more"
            ),
            Limit::Layers { most } => write!(
                f,
                "the filter is full: it has grown to {most} layers, which is the limit; build one with a larger \
                 capacity, or that grows faster"
            ),
            Limit::Memory { bytes } => write!(
                f,
                "the filter is full, and {bytes} bytes of memory to grow were asked for and not granted"
            ),
        }
    }
}

impl core::error::Error for Full {}

/// A value of a parameter, in an error.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Value {
    /// A whole number.
    Whole(u64),
    /// A rate, or another number that is not whole.
    Rate(f64),
    /// A seed or the id of a secret, shown in hexadecimal.
    Id(u64),
    /// A word, such as the name of a layout, or why there is no number.
    Word(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Whole(number) => write!(f, "{number}"),
            // Plain decimals of 1e-300 would fill the screen with zeros.
            Self::Rate(rate) if rate != 0.0 && rate.abs() < 1e-4 => write!(f, "{rate:e}"),
            Self::Rate(rate) => write!(f, "{rate}"),
            Self::Id(id) => write!(f, "{id:016x}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Whole(number.into())
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Whole(number.into())
    }
}

impl From<f64> for Value {
    fn from(rate: f64) -> Self {
        Self::Rate(rate)
    }
}

impl From<&'static str> for Value {
    fn from(word: &'static str) -> Self {
        Self::Word(word)
    }
}

/// What two filters must have in common to be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parameter {
    /// The program whose rules they follow.
    Program,
    /// The hash function.
    Hashing,
    /// The seed of the hash function.
    Seed,
    /// The secret of the hash function, shown by its id.
    Secret,
    /// The rule from hash to positions.
    Positions,
    /// How blocks are laid out.
    Layout,
    /// The number of bits.
    Bits,
    /// The number of bytes.
    Bytes,
    /// The number of positions of a key.
    Probes,
    /// The number of buckets.
    Buckets,
    /// The number of slots.
    Slots,
    /// The bits of a fingerprint.
    FingerprintBits,
    /// The number of distinct hashes of keys.
    DistinctKeys,
    /// The number of offsets per window.
    Shifts,
    /// The bits of a counter.
    CounterBits,
    /// The rule for counting.
    CountingRule,
    /// The number of areas.
    Areas,
}

impl Parameter {
    /// What differs, in words, and how to build filters that agree in it; no text where the first says it all.
    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Program => ("the programs whose rules they follow", ""),
            Self::Hashing => ("hash functions", ""),
            Self::Seed => ("seeds", "build both with the same seed"),
            Self::Secret => ("ids of the secrets", "build both with the same secret"),
            Self::Positions => ("rules from hash to positions", ""),
            Self::Layout => ("layouts", "build both with the same layout"),
            Self::Bits => ("numbers of bits", "build both with the same capacity and false-positive rate"),
            Self::Bytes => ("numbers of bytes", "build both with the same capacity and false-positive rate"),
            Self::Probes => {
                ("numbers of probes", "build both with the same capacity and false-positive rate")
            }
            Self::Buckets => ("numbers of buckets", "build both with the same capacity"),
            Self::Slots => (
                "numbers of slots",
                "neither is the other doubled; build both with the same capacity, or both without one",
            ),
            Self::FingerprintBits => {
                ("bits per fingerprint", "build both with the same capacity and false-positive rate")
            }
            Self::DistinctKeys => (
                "numbers of distinct key hashes",
                "build both with the same capacity and false-positive rate",
            ),
            Self::Shifts => ("numbers of shifts", "build both with the same number"),
            Self::CounterBits => ("bits per counter", "build both with the same counters"),
            Self::CountingRule => ("counting rules", "build both with the same rule"),
            Self::Areas => ("numbers of areas", "build both with the same labels in the same order"),
        }
    }
}

/// Two filters cannot be combined, and this is the first reason.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Mismatch {
    /// They are of different families.
    Family {
        /// The one that was to change.
        ours: &'static str,
        /// The one that was to be combined with it.
        theirs: &'static str,
    },
    /// They differ in a parameter.
    Differ {
        /// In which.
        what: Parameter,
        /// That of the filter that was to change.
        ours: Value,
        /// That of the filter that was to be combined with it.
        theirs: Value,
    },
    /// They agree, but what counts by this rule does not merge.
    Unmergeable {
        /// The rule.
        rule: &'static str,
    },
    /// The one that was to be merged has exceptions, and the one that was to change cannot have any.
    Exceptions {
        /// How many.
        theirs: u64,
    },
    /// Their keys are spelled by different [rules](crate::key_rules).
    Spelling,
    /// They call an area differently.
    AreaName {
        /// Which.
        area: u16,
    },
    /// They differ in something that only their program knows.
    PeerField {
        /// In what.
        field: &'static str,
    },
    /// They agree, but there is no memory for the result.
    Memory {
        /// How much was asked of the allocator.
        bytes: u64,
    },
    /// The layers of both together would err more often than was asked for.
    Rate {
        /// The rate that was asked for, of the one that was to change.
        asked: f64,
        /// The sum of the rates of all layers.
        sum: f64,
    },
    /// One of them came from bytes that were not verified, and is damaged.
    Damaged {
        /// Whether it is the one that was to be merged, or else the one that was to change.
        theirs: bool,
    },
    /// They agree, but the keys of both do not fit.
    Full(Full),
}

/// Compares what `parameters` lists of two filters.
///
/// # Errors
/// [`Mismatch::Differ`] names the first difference.
pub(crate) fn must_agree<T: Copy, const N: usize>(
    ours: T,
    theirs: T,
    parameters: impl Fn(T) -> [(Parameter, Value); N],
) -> Result<(), Mismatch> {
    let mut both = parameters(ours).into_iter().zip(parameters(theirs));
    match both.find(|((_, ours), (_, theirs))| ours != theirs) {
        Some(((what, ours), (_, theirs))) => Err(Mismatch::Differ { what, ours, theirs }),
        None => Ok(()),
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Family { ours, theirs } => write!(f, "families differ: {ours} and {theirs}"),
            Self::Differ { what, ours, theirs } => {
                let (name, way_out) = what.texts();
                write!(f, "{name} differ: {ours} and {theirs}")?;
                if way_out.is_empty() { Ok(()) } else { write!(f, "; {way_out}") }
            }
            Self::Unmergeable { rule } => {
                write!(f, "filters that count by {rule} cannot merge; those by minimum-selection can")
            }
            Self::AreaName { area } => write!(
                f,
                "the names of area {area} differ; build both with the same labels in the same order"
            ),
            Self::PeerField { field } => write!(f, "their {field} differ"),
            Self::Exceptions { theirs } => write!(
                f,
                "the other filter has {theirs} exceptions and this one has no place for them; give it one with except"
            ),
            Self::Spelling => f.write_str("their keys are spelled differently"),
            Self::Memory { bytes } => {
                write!(f, "{bytes} bytes of memory are needed for the result and were not granted")
            }
            Self::Damaged { theirs } => {
                let which = if *theirs { "second" } else { "first" };
                write!(
                    f,
                    "the {which} filter is damaged: the checksum of its payload does not match its bytes"
                )
            }
            Self::Rate { asked, sum } => write!(
                f,
                "the layers of both together have a false-positive rate of up to {}, and {} was asked for; build one \
                 filter with the keys of both, or both with larger capacities",
                Rate(*sum),
                Rate(*asked)
            ),
            Self::Full(_) => f.write_str("the keys of both do not fit"),
        }
    }
}

impl core::error::Error for Mismatch {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Full(full) => Some(full),
            _ => None,
        }
    }
}

/// A static filter was not built.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// See [`SpecError`].
    Spec(SpecError),
    /// The keys cannot be had.
    Source {
        /// What the source says.
        problem: String,
    },
    /// Keys are in the set and among those that are not.
    Overlap {
        /// How many there are, of those that were looked at.
        keys: u64,
    },
    /// No seed gave a filter. By chance this does not happen.
    Unsolved {
        /// How many different keys there were.
        keys: u64,
        /// How many seeds were tried.
        tries: u64,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(error) => error.fmt(f),
            Self::Source { problem } => write!(f, "the keys cannot be read: {problem}"),
            Self::Overlap { keys } => write!(
                f,
                "{keys} keys or more are in the set and among the others too; take them out of one of the two"
            ),
            Self::Unsolved { keys, tries } => write!(
                f,
                "no filter of {keys} keys was found with {tries} seeds; the keys seem to be chosen for it; hash with another \
                 seed or a secret"
            ),
        }
    }
}

impl core::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Spec(error) => error.source(),
            _ => None,
        }
    }
}

impl From<SpecError> for BuildError {
    fn from(e: SpecError) -> Self {
        Self::Spec(e)
    }
}

/// A filter cannot be folded as asked, and nothing was made.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FoldError {
    /// The factor does not divide the number of bits.
    Factor {
        /// The bits that there are.
        bits: u64,
        /// The factor that was asked for.
        factor: u64,
    },
    /// The false-positive rate is not a number between 2^-64 and 1.
    Fpr {
        /// What was asked.
        asked: f64,
    },
    /// The filter errs more often already.
    TooFull {
        /// The rate that was asked for.
        asked: f64,
        /// The rate of the filter as it is.
        now: f64,
    },
    /// No divisor of the number of bits keeps the rate.
    NoFold {
        /// The bits that there are.
        bits: u64,
        /// The rate that was asked for.
        asked: f64,
        /// The least divisor above 1.
        factor: u64,
        /// The rate of the filter folded by it.
        fpr: f64,
    },
    /// The memory for the result could not be had.
    Memory {
        /// How much was asked of the allocator.
        bytes: u64,
    },
    /// The filter came from bytes that were not verified, and is damaged.
    Damaged,
}

impl fmt::Display for FoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Factor { bits, factor } => {
                write!(f, "{bits} bits do not fold by {factor}, which does not divide them")
            }
            Self::Fpr { asked } => SpecError::Fpr { asked }.fmt(f),
            Self::TooFull { asked, now } => write!(
                f,
                "the filter is too full: its false-positive rate is {} already, asked was {}",
                Rate(now),
                Rate(asked)
            ),
            Self::NoFold { bits, asked, factor, fpr } => write!(
                f,
                "no fold keeps the false-positive rate at {}: by {factor}, the least divisor of {bits} bits, \
                 it is {}",
                Rate(asked),
                Rate(fpr)
            ),
            Self::Memory { bytes } => {
                write!(f, "{bytes} bytes of memory are needed for the result and were not granted")
            }
            Self::Damaged => {
                f.write_str("the filter is damaged: the checksum of its payload does not match its bytes")
            }
        }
    }
}

impl core::error::Error for FoldError {}

/// A rate in a sentence: three digits that count.
pub(crate) struct Rate(pub(crate) f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            rate if rate >= 0.1 => write!(f, "{rate:.3}"),
            rate if rate >= 0.01 => write!(f, "{rate:.4}"),
            rate if rate >= 0.001 => write!(f, "{rate:.5}"),
            rate => write!(f, "{rate:.2e}"),
        }
    }
}

/// A least rate in a sentence: three digits that count, rounded up, so that the number that is read is one that is granted.
struct AtLeast(f64);

impl fmt::Display for AtLeast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = |rate: f64| format!("{rate:.2e}").parse().unwrap_or(rate);
        let nearest: f64 = rounded(self.0);
        write!(f, "{:e}", if nearest < self.0 { rounded(1.005 * self.0) } else { nearest })
    }
}

/// What can be requested of a new filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Knob {
    /// The number of keys.
    Capacity,
    /// The false-positive rate.
    Fpr,
    /// The number of bits.
    Bits,
    /// The number of positions per key.
    Probes,
    /// One of several layouts.
    Layout,
    /// A number of bits with many divisors.
    Foldable,
    /// The width of counters.
    CounterBits,
    /// One of several ways to count.
    CountingRule,
    /// The number of sets.
    Areas,
    /// The factor by which layers grow.
    Growth,
    /// The factor by which the rates of layers fall.
    Tightening,
    /// The number of offsets per window.
    Shifts,
    /// The largest count.
    MaxCount,
    /// The number of doublings for which the rate is kept.
    Doublings,
    /// The number of known keys that are not in the set.
    Others,
    /// The bits of a fingerprint.
    FingerprintBits,
    /// The generations that are remembered in full.
    Generations,
    /// A seed of the hash function.
    Seed,
}

impl Knob {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Capacity,
        Self::Fpr,
        Self::Bits,
        Self::Probes,
        Self::Layout,
        Self::Foldable,
        Self::CounterBits,
        Self::CountingRule,
        Self::Areas,
        Self::Growth,
        Self::Tightening,
        Self::Shifts,
        Self::MaxCount,
        Self::Doublings,
        Self::Others,
        Self::FingerprintBits,
        Self::Generations,
        Self::Seed,
    ];

    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Fpr => "false-positive rate",
            Self::Bits => "bits",
            Self::Probes => "probes",
            Self::Layout => "layout",
            Self::Foldable => "foldable size",
            Self::CounterBits => "counter bits",
            Self::CountingRule => "counting rule",
            Self::Areas => "areas",
            Self::Growth => "growth",
            Self::Tightening => "tightening",
            Self::Shifts => "shifts",
            Self::MaxCount => "largest count",
            Self::Doublings => "doublings",
            Self::Others => "other keys",
            Self::FingerprintBits => "fingerprint bits",
            Self::Generations => "generations",
            Self::Seed => "seed",
        }
    }
}

/// What was requested of a new filter makes no sense or cannot be had.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SpecError {
    /// The family has no such number to choose.
    NotFor {
        /// What was requested.
        knob: Knob,
        /// Of which family, or of which program's format.
        family: &'static str,
        /// The families that have it.
        others: &'static [&'static str],
    },
    /// A number is out of range.
    Range {
        /// Which.
        knob: Knob,
        /// What was requested.
        asked: Value,
        /// The least.
        least: Value,
        /// The largest.
        most: Value,
    },
    /// A number is no multiple of its step.
    Step {
        /// Which.
        knob: Knob,
        /// What was requested.
        asked: Value,
        /// The step.
        step: Value,
    },
    /// The false-positive rate is not a number between 2^-64 and 1.
    Fpr {
        /// What was requested.
        asked: f64,
    },
    /// The family does not reach down to this false-positive rate.
    FprBelow {
        /// What was requested.
        asked: f64,
        /// The lowest that it reaches.
        least: f64,
    },
    /// There are more or fewer names than areas.
    AreaNames {
        /// The names that were given.
        names: usize,
        /// The areas that there are.
        areas: u16,
    },
    /// An area cannot be called so.
    AreaName {
        /// Which area.
        area: u16,
        /// What is wrong with its name.
        problem: AreaNameProblem,
    },
    /// Filters of another program are read, but not made.
    OnlyRead {
        /// The format.
        format: &'static str,
    },
    /// Another program refuses to make a filter of no bits.
    NoBits {
        /// The requested capacity.
        capacity: u64,
        /// The requested rate.
        fpr: f64,
    },
    /// What is requested takes more bits than a filter may have.
    TooLarge {
        /// The bits that it takes.
        bits: u64,
        /// The most that a filter may have.
        limit: u64,
    },
    /// Too little was said to size a filter.
    Incomplete,
    /// Four numbers were given, or three that contradict each other.
    TooMuch,
    /// The requested bits cannot give the rate for the requested keys.
    Unreachable {
        /// The requested bits.
        bits: u64,
        /// The bits that it would take.
        needed: u64,
    },
    /// The existing words do not have the length that the number of bits calls for, or have bits set
    /// behind the last one.
    Words {
        /// How many words the bits take.
        expected: u64,
        /// How many there were.
        found: u64,
    },
    /// A set of integers cannot hash, and a filter of hashed keys must.
    Hashing {
        /// The scheme that was requested.
        asked: &'static str,
    },
    /// The memory for it could not be had.
    Memory {
        /// How much was asked of the allocator.
        bytes: u64,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotFor { knob, family, others } => {
                match knob {
                    Knob::Foldable => write!(f, "{family} does not fold; "),
                    _ => write!(f, "{family} takes no {}; ", knob.text()),
                }?;
                match others {
                    [] => f.write_str("leave it out"),
                    [only] => write!(f, "{only} does"),
                    [first, between @ .., last] => {
                        f.write_str(first)?;
                        between.iter().try_for_each(|name| write!(f, ", {name}"))?;
                        write!(f, " and {last} do")
                    }
                }
            }
            Self::Range { knob, asked, least, most } if least == most => {
                write!(f, "{} must be {least}, not {asked}", knob.text())
            }
            Self::Range { knob, asked, least, most } => {
                write!(f, "{} must be {least} to {most}, not {asked}", knob.text())?;
                match knob {
                    Knob::Capacity if asked > most => f.write_str("; split the set"),
                    Knob::Growth => f.write_str("; 0 does not grow"),
                    _ => Ok(()),
                }
            }
            Self::Step { knob, asked, step } => {
                write!(f, "{} must be a multiple of {step}, not {asked}", knob.text())
            }
            Self::Fpr { asked } => {
                write!(
                    f,
                    "the false-positive rate must be below 1 and at least 2^-64 (5.4e-20), not {}",
                    Value::Rate(asked)
                )?;
                if asked > 1.0 && asked <= 100.0 {
                    write!(f, "; did you mean {asked}% ({})?", asked / 100.0)?;
                } else if asked == 0.0 {
                    f.write_str("; for no errors at all use an exact family")?;
                }
                Ok(())
            }
            Self::FprBelow { asked, least } => write!(
                f,
                "the false-positive rate must be at least {} in this family, not {asked:e}; use bloom",
                AtLeast(least)
            ),
            Self::AreaNames { names, areas } => {
                write!(f, "{names} names were given for {areas} areas; give one to each, which may be empty")
            }
            Self::AreaName { area, problem } => write!(f, "the name of area {area} {problem}"),
            Self::OnlyRead { format } => {
                write!(f, "filters of the format {format} are read, and not made; build one of our own")
            }
            Self::NoBits { capacity, fpr } => write!(
                f,
                "for {capacity} keys at {} the format allows less than one bit; ask for more keys or a lower rate",
                Rate(fpr)
            ),
            Self::TooLarge { bits, limit } => write!(
                f,
                "that takes {bits} bits; the limit is {limit}; split the set or accept a higher false-positive rate"
            ),
            Self::Incomplete => f.write_str(
                "too little to size a filter: give the capacity or the bits, and one more of capacity, \
                 false-positive rate, bits and probes",
            ),
            Self::TooMuch => f.write_str(
                "capacity, false-positive rate, bits and probes are all given; leave out the one to be computed",
            ),
            Self::Unreachable { bits, needed } => write!(
                f,
                "{bits} bits cannot give that false-positive rate for so many keys; it takes {needed}"
            ),
            Self::Words { expected, found } => write!(
                f,
                "that many bits take {expected} words with nothing behind the last bit; found {found}"
            ),
            Self::Hashing { asked } => write!(f, "the family cannot work with the hash function {asked}"),
            Self::Memory { bytes } => {
                write!(f, "{bytes} bytes of memory were asked for and not granted; ask for fewer bits")
            }
        }
    }
}

impl core::error::Error for SpecError {}

/// What is wrong with the name of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AreaNameProblem {
    /// It is too long.
    Long {
        /// Its bytes.
        bytes: usize,
        /// The most that there may be.
        limit: usize,
    },
    /// It is not UTF-8.
    NotText,
    /// It has a tab, a line end or the like, which would break the lines that it is printed in.
    Control,
    /// Another area is called so.
    Taken {
        /// Which.
        by: u16,
    },
}

impl fmt::Display for AreaNameProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Long { bytes, limit } => write!(f, "has {bytes} bytes; the limit is {limit}"),
            Self::NotText => f.write_str("is not UTF-8"),
            Self::Control => {
                f.write_str("has a control character, such as a tab or a line end; leave it out")
            }
            Self::Taken { by } => write!(f, "is that of area {by} too; give each its own"),
        }
    }
}

/// Bytes from outside are not a filter that this version can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end too early.
    Truncated {
        /// What was to be read.
        field: &'static str,
        /// How many bytes it takes.
        needed: u64,
        /// How many there are.
        available: u64,
    },
    /// There are bytes behind the end.
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// It does not start with `MYHP`.
    Magic {
        /// What it starts with.
        found: [u8; 4],
    },
    /// It was written by a newer version, in a format that this one does not know.
    Version {
        /// The format's number.
        found: u16,
    },
    /// No family has this id.
    Family {
        /// The id.
        found: u16,
    },
    /// The file has a filter of another family than the type that was asked for.
    OtherFamily {
        /// The family of the type.
        expected: &'static str,
        /// The family of the file.
        found: &'static str,
    },
    /// The file needs a part of this library that it was built without.
    Feature {
        /// The Cargo feature that brings it.
        feature: &'static str,
    },
    /// No hash function has this id and version.
    Hashing {
        /// The id.
        scheme: u8,
        /// The version.
        version: u8,
    },
    /// No probing rule has this id, or it is not this family's.
    Probing {
        /// The id.
        found: u8,
    },
    /// Flags are set whose meaning is unknown.
    Flags {
        /// The unknown ones.
        found: u32,
    },
    /// A section is there whose meaning is unknown.
    Section {
        /// Its id.
        found: u32,
    },
    /// It has [exceptions](crate::except), which its kind of filter or a type of one family does not have.
    Excepted,
    /// Its keys are spelled by a rule whose meaning is unknown: see [`key_rules`](crate::key_rules).
    KeyRule {
        /// Its number.
        found: u16,
    },
    /// Its keys are spelled by [rules](crate::key_rules) which a type of one family does not keep.
    Spelled,
    /// A field has a value that is never written.
    Value {
        /// Which.
        field: &'static str,
        /// The value, as an integer.
        found: u64,
    },
    /// A length does not follow from the parameters.
    Length {
        /// Of what.
        field: &'static str,
        /// What the parameters give.
        expected: u64,
        /// What the header says.
        found: u64,
    },
    /// Bytes or bits that must be zero are not.
    Padding {
        /// Where.
        field: &'static str,
    },
    /// The bytes were changed since they were written.
    Checksum {
        /// Of what.
        field: &'static str,
        /// What was stored.
        stored: u64,
        /// What the bytes give.
        computed: u64,
    },
    /// The filter is keyed: its keys cannot be hashed without the secret.
    SecretNeeded {
        /// The id of the secret that is needed.
        key_id: u64,
    },
    /// The filter is keyed with another secret.
    SecretWrong {
        /// The id of the secret that is needed.
        needed: u64,
        /// The id of the secret that was given.
        given: u64,
    },
    /// The file of another program does not say how its keys were hashed, and the caller did not.
    HashRule {
        /// A rule that can be named.
        known: &'static str,
    },
    /// The name of an area is not one that a writer gives it.
    AreaName {
        /// Which area.
        area: u16,
        /// What is wrong with its name.
        problem: AreaNameProblem,
    },
    /// The payload is not what the family writes.
    Payload {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The memory for it could not be had.
    Memory {
        /// How much was asked of the allocator.
        bytes: u64,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { field, needed, available } => {
                write!(f, "truncated: {field} takes {needed} bytes, {available} are there")
            }
            Self::Trailing { bytes } => write!(f, "{bytes} bytes follow the end of the filter"),
            Self::Magic { found } => {
                write!(
                    f,
                    "not a mayhap file: it starts with \"{}\" instead of \"MYHP\"",
                    found.escape_ascii()
                )
            }
            Self::Version { found } => {
                write!(
                    f,
                    "format version {found} is unknown to this program, which reads version 1; update mayhap"
                )
            }
            Self::Family { found } => write!(f, "unknown family id {found}; update mayhap"),
            Self::OtherFamily { expected, found } => write!(
                f,
                "the file has a filter of the family {found}, not {expected}; open it as that, or as a filter of any \
                 family"
            ),
            Self::Feature { feature } => write!(f, "this file needs the feature `{feature}`"),
            Self::Hashing { scheme, version } => {
                write!(f, "unknown hash function: id {scheme}, version {version}; update mayhap")
            }
            Self::Probing { found } => {
                write!(f, "unknown probing rule {found} for this family; update mayhap")
            }
            Self::Flags { found } => write!(f, "unknown flags {found:#x}; update mayhap"),
            Self::Excepted => f.write_str(
                "the file has exceptions (section 2), which neither an exact set nor a type of one family has; read it \
                 as a filter of any family",
            ),
            Self::Section { found } => write!(f, "unknown section {found}; update mayhap"),
            Self::KeyRule { found } => {
                write!(f, "its keys are spelled by rule {found}, which this version does not know; update mayhap")
            }
            Self::Spelled => f.write_str(
                "its keys are not spelled as they stand (section 5), and a type of one family does not keep how; open \
                 it as a filter of any family, and spell keys by its key_rules",
            ),
            Self::Value { field, found } => write!(f, "{field} is {found}, which no writer gives it"),
            Self::Length { field, expected, found } => {
                write!(f, "{field} should be {expected} bytes long and is said to be {found}")
            }
            Self::Padding { field } => write!(f, "{field} should be zero and is not"),
            Self::Checksum { field, stored, computed } => write!(
                f,
                "damaged: the checksum of the {field} is {stored:016x}, its bytes give {computed:016x}"
            ),
            Self::SecretNeeded { key_id } => {
                write!(f, "the filter is keyed: the secret with the id {key_id:016x} is needed")
            }
            Self::SecretWrong { needed, given } => write!(
                f,
                "the filter is keyed with the secret {needed:016x}; the one given has the id {given:016x}"
            ),
            Self::HashRule { known } => write!(
                f,
                "the file does not say how its keys were hashed; name the rule, if it is one that is known: {known}"
            ),
            Self::AreaName { area, problem } => write!(f, "the name of area {area} {problem}"),
            Self::Payload { problem } => write!(f, "damaged payload: {problem}"),
            Self::Memory { bytes } => {
                write!(f, "{bytes} bytes of memory are needed and were not granted")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

/// What can be needed of a filter and does not go with everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// A set that stays as it is.
    Static,
    /// Keys that are removed.
    Removes,
    /// Keys that are removed, and inserts that all take the same time.
    SteadyRemoves,
    /// How often a key came.
    Counts,
    /// Which of several sets a key is in.
    Sets,
    /// No wrong answer about known others.
    Universe,
    /// The last keys of a stream.
    Window,
    /// More keys than anybody can say.
    Grows,
    /// Filters that are merged.
    Merges,
}

impl Need {
    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Static => "a set that stays as it is",
            Self::Removes => "removing keys",
            Self::SteadyRemoves => "removing keys and inserts that never take long",
            Self::Counts => "counts",
            Self::Sets => "several sets",
            Self::Universe => "no wrong answer about known others",
            Self::Window => "a window over a stream",
            Self::Grows => "growing without a limit",
            Self::Merges => "merging",
        }
    }
}

/// No filter can be advised for what is needed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum AdviseError {
    /// See [`SpecError`].
    Spec(SpecError),
    /// No family does both.
    Conflict {
        /// The one.
        one: Need,
        /// The other.
        other: Need,
    },
    /// What is needed is sized by the number of keys, which is not given.
    KeysUnknown {
        /// What is needed.
        need: Need,
    },
    /// A number that must be at least 1.
    Zero {
        /// Of what.
        what: &'static str,
    },
    /// There are not as many integers as keys.
    Integers {
        /// The keys.
        keys: u64,
        /// The integers are below this one.
        below: u64,
    },
    /// The family that does what is needed takes more memory, at any rate that would be of use.
    Budget {
        /// The family.
        family: &'static str,
        /// Bytes that it may take.
        budget: u64,
        /// Bytes that it takes at the rate that was asked for.
        needed: u64,
        /// The rate that fits, if any does.
        fpr: Option<f64>,
    },
}

impl fmt::Display for AdviseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Spec(e) => e.fmt(f),
            Self::Conflict { one, other } => {
                write!(f, "{} and {} were asked for, and no family does both", one.text(), other.text())?;
                f.write_str(match (one, other) {
                    (Need::Static, _) => "; build it again when it changes, or leave out that it stays as it is",
                    (Need::Universe, _) => {
                        "; build it again when it changes, or leave out the others and list those that are admitted \
                         as exceptions"
                    }
                    (Need::Sets, _) => "; take a filter for each set",
                    (_, Need::Grows) => "; say how many keys there will be, an estimate will do",
                    (Need::Window, Need::Merges) => "; ask the filters of all streams",
                    (Need::Window, _) => "; a window forgets by itself, or leave it out and remove the old keys",
                    _ => "; leave out one of the two",
                })
            }
            Self::KeysUnknown { need } => write!(
                f,
                "the number of keys is not known, and {} cannot be sized without it; count them, or give an \
                 estimate",
                need.text()
            ),
            Self::Zero { what } => write!(f, "{what} was said to be 0; it must be 1 or more"),
            Self::Integers { keys, below } => write!(
                f,
                "{keys} different integers below {below} were asked for, and there are only {below}; count each once, or \
                 raise the bound"
            ),
            Self::Budget { family, budget, needed, fpr } => {
                write!(f, "{budget} bytes are too few for the family {family}, which takes {needed}")?;
                if let Some(fpr) = fpr {
                    write!(f, "; in {budget} it would admit {} of all absent keys", Rate(fpr))?;
                }
                f.write_str("; give it more memory, or fewer keys")
            }
        }
    }
}

impl core::error::Error for AdviseError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Spec(error) => error.source(),
            _ => None,
        }
    }
}

impl From<SpecError> for AdviseError {
    fn from(e: SpecError) -> Self {
        Self::Spec(e)
    }
}

/// Any way of failing, for code that does not tell them apart.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// See [`SpecError`].
    Spec(SpecError),
    /// See [`DecodeError`].
    Decode(DecodeError),
    /// See [`Mismatch`].
    Mismatch(Mismatch),
    /// See [`FoldError`].
    Fold(FoldError),
    /// See [`Full`].
    Full(Full),
    /// See [`BuildError`].
    Build(BuildError),
    /// See [`AdviseError`].
    Advise(AdviseError),
    /// The family does not have the operation.
    Unsupported {
        /// The family.
        family: &'static str,
        /// The operation, as a verb.
        operation: &'static str,
    },
    /// The family has the operation, but not for filters that count by this rule.
    UnsupportedByRule {
        /// The family.
        family: &'static str,
        /// The rule.
        rule: &'static str,
        /// The operation, as a verb.
        operation: &'static str,
        /// A rule that has it.
        other: &'static str,
    },
    /// The family has the operation, but only for filters whose bits have counters.
    UnsupportedWithoutCounters {
        /// The family.
        family: &'static str,
        /// The operation, as a verb.
        operation: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(e) => e.fmt(f),
            Self::Decode(e) => e.fmt(f),
            Self::Mismatch(e) => e.fmt(f),
            Self::Fold(e) => e.fmt(f),
            Self::Build(e) => e.fmt(f),
            Self::Advise(e) => e.fmt(f),
            Self::Full(e) => e.fmt(f),
            Self::Unsupported { family, operation } => write!(f, "the family {family} cannot {operation}"),
            Self::UnsupportedByRule { family, rule, operation, other } => {
                write!(f, "the family {family} cannot {operation} by the rule {rule}; by {other} it can")
            }
            Self::UnsupportedWithoutCounters { family, operation } => {
                write!(f, "the family {family} cannot {operation} without counters; with them it can")
            }
        }
    }
}

impl core::error::Error for Error {
    /// That of the error within, whose text is the text of this one.
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Spec(error) => error.source(),
            Self::Decode(error) => error.source(),
            Self::Mismatch(error) => error.source(),
            Self::Fold(error) => error.source(),
            Self::Build(error) => error.source(),
            Self::Advise(error) => error.source(),
            Self::Full(error) => error.source(),
            Self::Unsupported { .. }
            | Self::UnsupportedByRule { .. }
            | Self::UnsupportedWithoutCounters { .. } => None,
        }
    }
}

impl From<SpecError> for Error {
    fn from(e: SpecError) -> Self {
        Self::Spec(e)
    }
}

impl From<DecodeError> for Error {
    fn from(e: DecodeError) -> Self {
        Self::Decode(e)
    }
}

impl From<Mismatch> for Error {
    fn from(e: Mismatch) -> Self {
        Self::Mismatch(e)
    }
}

impl From<FoldError> for Error {
    fn from(e: FoldError) -> Self {
        Self::Fold(e)
    }
}

impl From<BuildError> for Error {
    fn from(e: BuildError) -> Self {
        Self::Build(e)
    }
}

impl From<AdviseError> for Error {
    fn from(e: AdviseError) -> Self {
        Self::Advise(e)
    }
}

impl From<Full> for Error {
    fn from(e: Full) -> Self {
        Self::Full(e)
    }
}
