//! The keys: which are inserted, which are asked, and what the peers want to know about their type.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::hash::{BuildHasher, Hash};

use anyhow::{Result, bail};
use foldhash::fast::FixedState;
use mayhap_eval::{ABSENT, KeyKind, SplitMix64};
use sux::utils::ToSig;

use crate::measure::Plan;

const SEED: u64 = 1;

/// What keys look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Random 64-bit numbers.
    U64,
    /// Addresses of 42 to 58 bytes, 50 on average.
    Url,
}

impl Kind {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text {
            "u64" => Ok(Self::U64),
            "url" => Ok(Self::Url),
            _ => bail!("unknown kind of keys {text:?}; there are u64 and url"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::U64 => "u64",
            Self::Url => "url",
        })
    }
}

/// The hash that stands in wherever a peer lets its user choose one: the fastest good one of the day.
pub(crate) fn foldhash() -> FixedState {
    FixedState::with_seed(1)
}

/// A type of keys that every contender takes.
pub(crate) trait BenchKey: Copy + Eq + Hash + Sync + mayhap::Key + Borrow<Self::Signed> {
    /// What sux takes a signature of.
    type Signed: ?Sized + ToSig<[u64; 2]> + fmt::Debug + Sync + 'static;

    /// Whether the keys are 64-bit numbers, so that [`numbers`](BenchKey::numbers) costs nothing.
    const NUMERIC: bool;

    /// For filters of 64-bit numbers, which leave the hashing of anything else to their user.
    fn number(self, hasher: &FixedState) -> u64;

    /// All of them, copied only where they must be hashed.
    fn numbers(keys: &[Self]) -> Cow<'_, [u64]>;
}

impl BenchKey for u64 {
    type Signed = u64;

    const NUMERIC: bool = true;

    #[inline]
    fn number(self, _: &FixedState) -> u64 {
        self
    }

    fn numbers(keys: &[Self]) -> Cow<'_, [u64]> {
        Cow::Borrowed(keys)
    }
}

impl BenchKey for &str {
    type Signed = str;

    const NUMERIC: bool = false;

    #[inline]
    fn number(self, hasher: &FixedState) -> u64 {
        hasher.hash_one(self)
    }

    fn numbers(keys: &[Self]) -> Cow<'_, [u64]> {
        let hasher = foldhash();
        Cow::Owned(keys.iter().map(|key| key.number(&hasher)).collect())
    }
}

/// What goes in and what is asked.
pub(crate) struct KeySet<K> {
    /// Inserted, in this order. The first of them are asked.
    pub(crate) present: Vec<K>,
    /// Never inserted. Disjoint from `present` by construction: their indexes start at [`ABSENT`], and
    /// distinct indexes give distinct keys.
    pub(crate) absent: Vec<K>,
    /// One or the other, as a coin says: a regular pattern would be learnt by the branch predictor.
    pub(crate) half: Vec<K>,
}

impl<K: Copy> KeySet<K> {
    fn new(plan: Plan, present: Vec<K>, absent: Vec<K>) -> Self {
        let coin = |index: usize| SplitMix64::at(SEED + 1, index as u64) & 1 == 1;
        let pick = |index: usize| if coin(index) { present[index] } else { absent[index] };
        let half = (0..plan.probes).map(pick).collect();
        Self { present, absent, half }
    }
}

impl KeySet<u64> {
    pub(crate) fn numbers(plan: Plan) -> Self {
        let make = |from: u64, keys: u64| (from..from + keys).map(|i| SplitMix64::at(SEED, i)).collect();
        Self::new(plan, make(0, plan.keys), make(ABSENT, plan.absent))
    }
}

impl<'k> KeySet<&'k str> {
    pub(crate) fn texts(plan: Plan, present: &'k Text, absent: &'k Text) -> Self {
        Self::new(plan, present.keys(), absent.keys())
    }
}

/// URLs one behind the other, as they lie in a file that was read: no allocation per key.
pub(crate) struct Text {
    text: String,
    lengths: Vec<u8>,
}

impl Text {
    /// Those to insert and those that stay out.
    pub(crate) fn pair(plan: Plan) -> (Self, Self) {
        (Self::urls(0, plan.keys), Self::urls(ABSENT, plan.absent))
    }

    fn urls(from: u64, keys: u64) -> Self {
        let mut bytes = Vec::with_capacity(keys as usize * 50);
        let mut lengths = Vec::with_capacity(keys as usize);
        for index in from..from + keys {
            let start = bytes.len();
            KeyKind::Url.write_key(SEED, index, &mut bytes);
            lengths.push(u8::try_from(bytes.len() - start).expect("at most 58"));
        }
        Self { text: String::from_utf8(bytes).expect("ASCII"), lengths }
    }

    fn keys(&self) -> Vec<&str> {
        let mut rest = self.text.as_str();
        let mut keys = Vec::with_capacity(self.lengths.len());
        for &length in &self.lengths {
            let (key, behind) = rest.split_at(length.into());
            keys.push(key);
            rest = behind;
        }
        keys
    }
}
