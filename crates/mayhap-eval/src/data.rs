//! Sets of keys as experiments draw them: from a distribution, with repeats, and absent keys to ask for.
//!
//! Numbers come from a distribution, so that some come twice: what a filter is filled with is the number of *distinct*
//! keys, and predictions start from it. Absent keys are drawn from the same distribution and those that are in are
//! dropped by an exact set, or they are disjoint by construction. Where a set is so dense that no absent key is left, there
//! is none, and nothing is measured.

use core::f64::consts::TAU;
use core::fmt;
use core::str::FromStr;

use hashbrown::HashSet;
use mayhap::{Digest, Hashing};

use crate::{ABSENT, KeyKind, Random, SplitMix64, Zipf};

/// Where keys come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Data {
    /// Integers below a bound, all with the same chance.
    Uniform {
        /// The bound.
        below: u64,
    },
    /// Integers around a mean of 8 scales, so that none is negative.
    Gaussian {
        /// The standard deviation.
        scale: f64,
    },
    /// Integers of which small ones come more often.
    Exponential {
        /// The mean.
        scale: f64,
    },
    /// Integers of which few come very often. There are four times as many as draws.
    Zipf {
        /// 0 makes all alike; words of a text are near 1.
        exponent: f64,
    },
    /// One integer after the other.
    Sequential,
    /// UUIDs as text.
    Uuid,
    /// Addresses of web pages.
    Url,
}

impl Data {
    /// One of each, as the names alone mean them.
    pub const ALL: [Self; 7] = [
        Self::Uniform { below: 1 << 31 },
        Self::Gaussian { scale: 1e8 },
        Self::Exponential { scale: 1e8 },
        Self::Zipf { exponent: 1.0 },
        Self::Sequential,
        Self::Uuid,
        Self::Url,
    ];

    /// The name without a number.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform { .. } => "uniform",
            Self::Gaussian { .. } => "gaussian",
            Self::Exponential { .. } => "exponential",
            Self::Zipf { .. } => "zipf",
            Self::Sequential => "sequential",
            Self::Uuid => "uuid",
            Self::Url => "url",
        }
    }

    /// The kind of keys that are text.
    const fn text(self) -> Option<KeyKind> {
        match self {
            Self::Uuid => Some(KeyKind::Uuid),
            Self::Url => Some(KeyKind::Url),
            _ => None,
        }
    }

    /// Numbers drawn one after the other. Another `stream` of the same seed gives others.
    fn numbers(self, seed: u64, stream: u64, keys: u64, absent: Absent) -> Box<dyn Iterator<Item = u64>> {
        let mut random = Random::new(SplitMix64::at(seed, stream));
        match self {
            Self::Uniform { below } => Box::new(core::iter::repeat_with(move || random.below(below))),
            Self::Gaussian { scale } => Box::new(core::iter::repeat_with(move || {
                // Box and Muller (1958); the second of the pair is not needed.
                let (one, other) = (1.0 - random.unit_f64(), random.unit_f64());
                let normal = libm::sqrt(-2.0 * libm::log(one)) * libm::cos(TAU * other);
                ((8.0 + normal) * scale) as u64
            })),
            Self::Exponential { scale } => Box::new(core::iter::repeat_with(move || {
                (-libm::log(1.0 - random.unit_f64()) * scale) as u64
            })),
            Self::Zipf { exponent } => {
                Box::new(Zipf::new(SplitMix64::at(seed, stream), keys.saturating_mul(4).max(1), exponent))
            }
            // What is asked comes after what is in, or between.
            Self::Sequential => {
                Box::new(if stream == MEMBERS || absent == Absent::Disjoint { 0.. } else { keys.. })
            }
            Self::Uuid | Self::Url => unreachable!("text is not drawn but made from an index"),
        }
    }

    /// What [`draw`](Self::draw) takes at the most while it draws, in bytes: keys, and for numbers a hash set of them all.
    #[must_use]
    pub fn drawing_bytes(self, keys: u64, questions: u64) -> u64 {
        let all = keys.saturating_add(questions);
        match self.text() {
            // Texts of up to 58 bytes and their ends, in memory that doubles.
            Some(_) => all.saturating_mul(2 * (58 + 8)),
            None => {
                // Up to 7 of 8 places are taken, with a byte beside each; while it grows, the smaller set is there too.
                let places = (all.saturating_mul(8) / 7 + 1).checked_next_power_of_two().unwrap_or(u64::MAX);
                let set = places.saturating_mul(9).saturating_mul(3) / 2;
                // The table of a Zipf distribution has 8 bytes for each of four times as many integers.
                let table = if matches!(self, Self::Zipf { .. }) { keys.saturating_mul(32) } else { 0 };
                all.saturating_mul(8).saturating_add(set).saturating_add(table)
            }
        }
    }

    /// The keys of an experiment, and absent ones to ask for.
    ///
    /// ```
    /// use mayhap_eval::{Absent, Data};
    ///
    /// let drawn = Data::Exponential { scale: 1e4 }.draw(1, 10_000, 1000, Absent::Same);
    /// assert!(drawn.distinct < 10_000 && drawn.absent.len() == 1000);
    /// // Every key is 0, and nothing is left to ask for.
    /// let drawn = Data::Exponential { scale: 1e-5 }.draw(1, 10_000, 1000, Absent::Same);
    /// assert_eq!((drawn.distinct, drawn.absent.len()), (1, 0));
    /// ```
    #[must_use]
    pub fn draw(self, seed: u64, keys: u64, questions: u64, absent: Absent) -> Drawn {
        if let Some(kind) = self.text() {
            let texts = |first: u64, count: u64| {
                let mut texts = Texts::default();
                (first..first + count).for_each(|index| texts.push(|out| kind.write_key(seed, index, out)));
                Keys::Texts(texts)
            };
            // Distinct indexes are distinct keys.
            return Drawn {
                members: texts(0, keys),
                absent: texts(ABSENT, questions),
                distinct: keys,
                asked: questions,
            };
        }
        // Even numbers are in and odd ones are not, where that is wanted.
        let (factor, odd) = match absent {
            Absent::Same => (1, 0),
            Absent::Disjoint => (2, 1),
        };
        let drawn = |stream| self.numbers(seed, stream, keys, absent).map(move |number| factor * number);
        let members: Vec<u64> = drawn(MEMBERS).take(keys as usize).collect();
        let mut seen: Seen = members.iter().copied().collect();
        let distinct = seen.len() as u64;
        let (mut found, mut asked) = (Vec::with_capacity(questions as usize), 0);
        // A dense set leaves few draws that are not in, and each is asked for once.
        for number in drawn(QUESTIONS).take(questions.saturating_mul(PATIENCE) as usize) {
            if found.len() as u64 == questions {
                break;
            }
            asked += 1;
            if seen.insert(number | odd) {
                found.push(number | odd);
            }
        }
        Drawn { members: Keys::Numbers(members), absent: Keys::Numbers(found), distinct, asked }
    }
}

/// So many draws are tried for each absent key that is wanted.
const PATIENCE: u64 = 10;

const MEMBERS: u64 = 0;
const QUESTIONS: u64 = 1;

type Seen = HashSet<u64, foldhash::fast::FixedState>;

/// Where absent keys come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Absent {
    /// From the distribution of the keys that are in; those that are in are dropped by an exact set.
    #[default]
    Same,
    /// Disjoint by construction: even numbers are in, odd ones are asked for.
    Disjoint,
}

/// Keys to insert and keys to ask for.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// To insert, with repeats.
    pub members: Keys,
    /// To ask for: none is a member, and none comes twice. Empty if there is none.
    pub absent: Keys,
    /// How many of the members are different.
    pub distinct: u64,
    /// How many draws it took to find the absent ones.
    pub asked: u64,
}

impl Drawn {
    /// Keys of one's own: `keys` of these texts, which must be different, are to be inserted, and of the others at most
    /// `questions` to be asked for. Another seed takes others.
    ///
    /// ```
    /// use mayhap_eval::{Drawn, Texts};
    ///
    /// let mut texts = Texts::default();
    /// ["a", "b", "a", "c", "d"].iter().for_each(|text| texts.push(|out| out.extend_from_slice(text.as_bytes())));
    /// let drawn = Drawn::split(&texts.distinct(), 2, 100, 1);
    /// assert_eq!((drawn.members.len(), drawn.absent.len()), (2, 2));
    /// ```
    #[must_use]
    pub fn split(texts: &Texts, keys: u64, questions: u64, seed: u64) -> Self {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        let mut random = Random::new(seed);
        // Fisher and Yates.
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        let (members, others) = order.split_at(order.len().min(keys as usize));
        let gathered = |indexes: &[usize]| {
            let mut gathered = Texts::default();
            indexes.iter().for_each(|&index| gathered.push(|out| out.extend_from_slice(texts.get(index))));
            Keys::Texts(gathered)
        };
        let others = &others[..others.len().min(questions as usize)];
        Self {
            members: gathered(members),
            absent: gathered(others),
            distinct: members.len() as u64,
            asked: others.len() as u64,
        }
    }
}

/// Some keys.
#[derive(Clone, Debug)]
pub enum Keys {
    /// Integers.
    Numbers(Vec<u64>),
    /// Anything else.
    Texts(Texts),
}

/// Texts one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all of them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Each of them once, in the order in which they came first.
    #[must_use]
    pub fn distinct(&self) -> Self {
        let mut seen = HashSet::<&[u8], foldhash::fast::FixedState>::default();
        let mut distinct = Self::default();
        for text in (0..self.len()).map(|index| self.get(index)) {
            if seen.insert(text) {
                distinct.push(|out| out.extend_from_slice(text));
            }
        }
        distinct
    }

    /// Adds the text that is written.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Text number `index`.
    fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

/// Enough to keep several cache misses in flight, few enough for the first-level cache.
const BATCH: usize = 256;

impl Keys {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.ends.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all of them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Numbers(numbers) => 8 * numbers.len() as u64,
            Self::Texts(texts) => texts.bytes.len() as u64,
        }
    }

    /// The largest, if they are integers.
    #[must_use]
    pub fn largest(&self) -> Option<u64> {
        match self {
            Self::Numbers(numbers) => numbers.iter().copied().max(),
            Self::Texts(_) => None,
        }
    }

    /// Calls `then` with the bytes of each.
    pub fn for_each(&self, mut then: impl FnMut(&[u8])) {
        match self {
            Self::Numbers(numbers) => numbers.iter().for_each(|number| then(&number.to_le_bytes())),
            Self::Texts(texts) => (0..texts.ends.len()).for_each(|index| then(texts.get(index))),
        }
    }

    /// Calls `then` with the digests of all of them, a batch at a time.
    ///
    /// # Errors
    /// The one of `then`.
    pub fn try_digests<E>(
        &self,
        hashing: Hashing,
        mut then: impl FnMut(&[Digest]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut digests = [Digest { a: 0, b: 0 }; BATCH];
        match self {
            Self::Numbers(numbers) => {
                for batch in numbers.chunks(BATCH) {
                    hashing.digest_each(batch, &mut digests[..batch.len()]);
                    then(&digests[..batch.len()])?;
                }
            }
            Self::Texts(texts) => {
                for start in (0..texts.ends.len()).step_by(BATCH) {
                    let len = BATCH.min(texts.ends.len() - start);
                    for (index, digest) in digests[..len].iter_mut().enumerate() {
                        *digest = hashing.digest(texts.get(start + index));
                    }
                    then(&digests[..len])?;
                }
            }
        }
        Ok(())
    }

    /// The digests of all of them.
    #[must_use]
    pub fn digests(&self, hashing: Hashing) -> Vec<Digest> {
        let mut all = Vec::with_capacity(self.len());
        let gathered = self.try_digests(hashing, |digests| {
            all.extend_from_slice(digests);
            Ok::<(), core::convert::Infallible>(())
        });
        let Ok(()) = gathered;
        all
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match *self {
            Self::Uniform { below } => below as f64,
            Self::Gaussian { scale } | Self::Exponential { scale } => scale,
            Self::Zipf { exponent } => exponent,
            Self::Sequential | Self::Uuid | Self::Url => return f.pad(self.name()),
        };
        // What the name alone means needs no number.
        if Self::ALL.contains(self) {
            return f.pad(self.name());
        }
        let number = if number == 0.0 || (1e-3..1e6).contains(&number) {
            number.to_string()
        } else {
            format!("{number:e}")
        };
        f.pad(&format!("{}:{number}", self.name()))
    }
}

impl FromStr for Data {
    type Err = UnknownData;

    fn from_str(text: &str) -> Result<Self, UnknownData> {
        let refused = |why| UnknownData { text: text.into(), why };
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number.parse::<f64>().map_err(|_| refused(Why::Number))?)),
            None => (text, None),
        };
        let plain =
            Self::ALL.into_iter().find(|data| data.name() == name).ok_or_else(|| refused(Why::Name))?;
        let Some(number) = number else { return Ok(plain) };
        if !number.is_finite() || number < 0.0 {
            return Err(refused(Why::Number));
        }
        match plain {
            Self::Uniform { .. } if (1.0..=9e18).contains(&number) => {
                Ok(Self::Uniform { below: number as u64 })
            }
            Self::Gaussian { .. } if number <= MAX_SCALE => Ok(Self::Gaussian { scale: number }),
            Self::Exponential { .. } if number <= MAX_SCALE => Ok(Self::Exponential { scale: number }),
            Self::Zipf { .. } if number <= 100.0 => Ok(Self::Zipf { exponent: number }),
            Self::Sequential | Self::Uuid | Self::Url => Err(refused(Why::NoNumber)),
            _ => Err(refused(Why::Range)),
        }
    }
}

/// Draws of this scale and doubled are still integers of 64 bits: none is above 50 scales.
const MAX_SCALE: f64 = 1e17;

/// There is no such data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownData {
    text: String,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Name,
    Number,
    NoNumber,
    Range,
}

impl fmt::Display for UnknownData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no data: ", self.text)?;
        match self.why {
            Why::Name => write!(
                f,
                "take {}, some with a number, such as gaussian:1e8",
                Data::ALL.map(Data::name).join(", ")
            ),
            Why::Number => f.write_str("behind the colon there must be a number that is not negative, such as 1e8"),
            Why::NoNumber => f.write_str("it takes no number"),
            Why::Range => f.write_str(
                "uniform takes a bound from 1 to 9e18, gaussian and exponential a scale up to 1e17, zipf an exponent up to 100",
            ),
        }
    }
}

impl core::error::Error for UnknownData {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for data in Data::ALL {
            assert_eq!(data.to_string().parse(), Ok(data));
        }
        for text in ["gaussian:100", "exponential:1e-5", "uniform:1e12", "zipf:1.2", "zipf:0"] {
            let data: Data = text.parse().unwrap();
            assert_eq!(data.to_string(), text);
            assert_eq!(data.to_string().parse(), Ok(data));
        }
        for text in [
            "normal",
            "uuid:3",
            "gaussian:",
            "gaussian:-1",
            "gaussian:inf",
            "uniform:0",
            "zipf:1e9",
            "uniform:nan",
        ] {
            assert!(text.parse::<Data>().is_err(), "{text}");
        }
    }

    /// The shares of different keys that ten million draws have, at a tenth of the scale and a tenth of the keys.
    #[test]
    fn the_share_of_distinct_keys_is_that_of_the_distribution() {
        let share = |data: Data| data.draw(3, 1_000_000, 0, Absent::Same).distinct as f64 / 1e6;
        assert!((share(Data::Gaussian { scale: 1e7 }) - 0.986).abs() < 0.0005);
        assert!((share(Data::Exponential { scale: 1e7 }) - 0.9755).abs() < 0.0005);
        assert_eq!(share(Data::Sequential), 1.0);
        assert!(share(Data::Zipf { exponent: 1.0 }) < 0.5);
    }

    #[test]
    fn no_absent_key_is_a_member_and_none_comes_twice() {
        for data in Data::ALL.into_iter().chain([Data::Gaussian { scale: 3000.0 }]) {
            for absent in [Absent::Same, Absent::Disjoint] {
                let drawn = data.draw(5, 20_000, 10_000, absent);
                let mut members = HashSet::<Vec<u8>, foldhash::fast::FixedState>::default();
                drawn.members.for_each(|key| {
                    members.insert(key.to_vec());
                });
                assert_eq!(members.len() as u64, drawn.distinct, "{data}");
                let mut all = members.len();
                drawn.absent.for_each(|key| {
                    members.insert(key.to_vec());
                    all += 1;
                });
                assert_eq!(members.len(), all, "{data} {absent:?}");
            }
        }
    }

    #[test]
    fn texts_of_ones_own_are_split_into_members_and_absent_ones() {
        let mut texts = Texts::default();
        (0..1000)
            .for_each(|index| texts.push(|out| out.extend_from_slice(format!("{}", index % 700).as_bytes())));
        let texts = texts.distinct();
        assert_eq!(texts.len(), 700);
        let all = |drawn: &Drawn| {
            let mut all = Vec::new();
            drawn.members.for_each(|key| all.push(key.to_vec()));
            drawn.absent.for_each(|key| all.push(key.to_vec()));
            all
        };
        let drawn = Drawn::split(&texts, 400, 1000, 1);
        assert_eq!((drawn.members.len(), drawn.absent.len(), drawn.distinct), (400, 300, 400));
        let different: HashSet<Vec<u8>, foldhash::fast::FixedState> = all(&drawn).into_iter().collect();
        assert_eq!(different.len(), 700);
        assert_eq!(all(&drawn), all(&Drawn::split(&texts, 400, 1000, 1)));
        assert_ne!(all(&drawn), all(&Drawn::split(&texts, 400, 1000, 2)));
        assert_eq!(Drawn::split(&texts, 400, 10, 1).absent.len(), 10);
    }

    #[test]
    fn draws_never_change() {
        let first = |data: Data| match data.draw(1, 3, 2, Absent::Same) {
            Drawn { members: Keys::Numbers(members), absent: Keys::Numbers(absent), .. } => {
                [members, absent].concat()
            }
            _ => Vec::new(),
        };
        let found: Vec<Vec<u64>> = Data::ALL[..5].iter().map(|&data| first(data)).collect();
        assert_eq!(found, PINNED, "{found:?}");
    }

    const PINNED: [[u64; 5]; 5] = [
        [941797479, 662161409, 1852845433, 171205845, 332429318],
        [761488219, 941284226, 817058127, 822954732, 869004430],
        [57724792, 36866501, 198630382, 8308158, 16818135],
        [1, 0, 7, 9, 3],
        [0, 1, 2, 3, 4],
    ];
}
