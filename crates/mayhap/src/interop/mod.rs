//! Other programs' filters: read, ask, add to, merge, and write back as they were.
//!
//! A foreign filter is a filter of ours that hashes and probes as its program does: it answers what the program answers,
//! for every key. The bits of one program mean nothing to another, so nothing is ever converted between two rules: that
//! takes the keys. What is possible is another *file* of the same rule: the program's own, or ours, which knows how its
//! keys are hashed, has checksums and can be mapped.
//!
//! | format | program | reads | writes | makes | key bytes |
//! |---|---|---|---|---|---|
//! | [`guava`] | Guava's `BloomFilter` | yes | yes | yes | what the funnel makes: UTF-8, UTF-16LE, 4 or 8 little-endian bytes |
//! | [`go`] | bits-and-blooms: binary, JSON, gob | yes | yes | yes | as given |
//! | [`dcso`] | DCSO's bloom, also in gzip | yes | yes | yes | as given |
//! | [`spark`] | Spark's sketch, versions 1 and 2 | yes | yes | yes | UTF-8, bytes, or a long as 8 little-endian bytes |
//! | [`redisbloom`] | RedisBloom's `BF.*`: the chunks of a dump | yes | yes | yes | as given |
//! | [`redisbloom_cuckoo`] | RedisBloom's `CF.*`: the chunks of a dump | yes | yes | yes | as given |
//! | [`bloomfilter_crate`] | the crate `bloomfilter`, of which valkey-bloom's are made | yes | yes | yes | as given |
//! | [`sbbf`] | Parquet's split-block filter, cut out | yes | yes | yes | the value in PLAIN encoding, without a length |
//! | [`row_groups`] | the filters of a column of a Parquet file, whose bytes the caller reads | yes | – | – | the same |
//! | [`fastfilter`] | FastFilter: xor8, xor16, fuse8, fuse16 | yes | – | – | 8 little-endian bytes, or text through XXH64 |
//! | [`pybloom_live`] | pybloom-live, plain and scalable | yes | – | – | UTF-8 |
//! | [`pyprobables`] | pyprobables, plain and expanding | yes | – | – | UTF-8, or bytes |
//! | [`rbloom`] | rbloom, with a hash that is named | yes | yes | – | as given |
//! | [`roaring`] | Roaring bitmaps, 32 and 64 bits | yes | yes | – | 8 little-endian bytes |
//!
//! ```
//! use mayhap::Bytes;
//! use mayhap::interop::{Reading, self};
//!
//! // One key, "user:0", as Guava 31.1 wrote it.
//! let file = b"\x01\x06\0\0\0\x01\x10\0\x04\x20\x01\x08\0\x02";
//! let format = interop::recognise(file)?;
//! assert_eq!(format.name, "guava");
//! let filter = format.read(Bytes::shared(*file), &Reading::default())?;
//! assert!(filter.contains(b"user:0"));
//! assert_eq!(format.write(&*filter)?, file);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::bits::Bytes;
use crate::error::{DecodeError, Knob, SpecError};
use crate::family::{AnyFilter, Family};
use crate::hash::Hashing;
use crate::probing::Probing;
use crate::spec::{CAPACITY, MIN_FPR};
use crate::wire::Frame;

mod big_endian;
mod bloom;
pub mod bloomfilter_crate;
pub mod dcso;
pub mod fastfilter;
mod frozen;
pub mod go;
pub mod guava;
pub mod pybloom_live;
pub mod pyprobables;
pub mod rbloom;
pub mod redis_dump;
pub mod redisbloom;
pub mod redisbloom_cuckoo;
#[cfg(feature = "roaring")]
pub mod roaring;
pub mod row_groups;
pub mod sbbf;
pub mod spark;

/// Every format, in the order in which lists show them. Each is in its own file.
pub static FORMATS: &[&Format] = &[
    &guava::FORMAT,
    &go::FORMAT,
    &go::JSON,
    &go::GOB,
    &dcso::FORMAT,
    &spark::FORMAT,
    &redisbloom::FORMAT,
    &redisbloom_cuckoo::FORMAT,
    &bloomfilter_crate::FORMAT,
    &sbbf::FORMAT,
    &fastfilter::XOR8,
    &fastfilter::XOR16,
    &fastfilter::FUSE8,
    &fastfilter::FUSE16,
    &pybloom_live::FORMAT,
    &pyprobables::FORMAT,
    &rbloom::FORMAT,
    #[cfg(feature = "roaring")]
    &roaring::FORMAT,
];

/// A foreign format: what a file of it can be made into, and what can be made into one.
#[derive(Debug)]
pub struct Format {
    /// The word for it everywhere: `--format`, module, golden files.
    pub name: &'static str,
    /// Whose it is, in one line.
    pub summary: &'static str,
    /// Whether bytes are of this form, as far as their structure tells: lengths, ranges, what must be zero. Looks at little
    /// of them, since it is asked of every file. Never, if a file of the form has no structure to speak of.
    fits: fn(&[u8]) -> bool,
    read: Read,
    write: Option<Write>,
    make: Option<Make>,
}

/// Makes a filter of a file.
type Read = fn(Bytes, &Reading) -> Result<Box<dyn AnyFilter>, DecodeError>;
/// Makes a file of a filter, if it is one of the format's.
type Write = fn(&dyn AnyFilter) -> Option<Vec<u8>>;
/// Makes an empty filter of what was asked for.
type Make = fn(&Making) -> Result<Box<dyn AnyFilter>, SpecError>;

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// What a file does not say of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What its keys are.
    pub keys: Keys,
    /// The hash function of its keys, where its users choose one: `sha256` for rbloom, `xxh64` for the runtime filters of
    /// Spark's SQL, `md5` for files of pybloom-live before version 4.
    pub hash: Option<HashRule>,
}

/// What keys are to the program that inserts them, where it tells kinds apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keys {
    /// Text in UTF-8. What is no UTF-8 is bytes.
    #[default]
    Text,
    /// Bytes.
    Bytes,
    /// Integers, as 8 little-endian bytes.
    Integers,
}

/// A hash function that the caller names, since the file does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HashRule {
    /// The first 16 bytes of SHA-256, little-endian.
    Sha256,
    /// XXH64 with the seed 42, whose result is the item.
    Xxh64,
    /// MD5 where XXH3 is the rule today.
    Md5,
}

impl HashRule {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sha256, Self::Xxh64, Self::Md5];

    /// The word for it: `--hash sha256`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Xxh64 => "xxh64",
            Self::Md5 => "md5",
        }
    }

    /// The name of the format whose files leave it open.
    #[must_use]
    pub fn format(self) -> &'static str {
        match self {
            Self::Sha256 => rbloom::FORMAT.name,
            Self::Xxh64 => spark::FORMAT.name,
            Self::Md5 => pybloom_live::FORMAT.name,
        }
    }
}

/// What an empty filter of a foreign rule is to be.
#[derive(Clone, Debug)]
pub struct Making {
    /// For so many keys.
    pub capacity: u64,
    /// At such a false-positive rate.
    pub fpr: f64,
    /// As this version of the program makes it, where that matters: major and minor number. The newest if `None`.
    pub version: Option<(u32, u32)>,
    /// Where the program has a seed.
    pub seed: u64,
    /// Each layer has room for so many times the keys of the one before, where the program has layers; its default if
    /// `None`, and 0 does not grow.
    pub growth: Option<u32>,
    /// What its keys are, and how they are hashed where that can be chosen.
    pub reading: Reading,
}

impl Making {
    /// For so many keys at such a rate, by the newest version of the program.
    #[must_use]
    pub fn new(capacity: u64, fpr: f64) -> Self {
        Self { capacity, fpr, version: None, seed: 0, growth: None, reading: Reading::default() }
    }

    /// Numbers that make sense to every program.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        CAPACITY.check(self.capacity.into())?;
        // Written so that a NaN is refused, too.
        if !(self.fpr >= MIN_FPR && self.fpr < 1.0) {
            return Err(SpecError::Fpr { asked: self.fpr });
        }
        Ok(())
    }

    /// Whether it is made by this version of the program or a later one.
    pub(crate) fn is_since(&self, version: (u32, u32)) -> bool {
        self.version.is_none_or(|asked| asked >= version)
    }

    /// Refuses a seed or a growth that filters of a format do not have.
    pub(crate) fn without(&self, knob: Knob, format: &'static str) -> Result<(), SpecError> {
        let is_requested = match knob {
            Knob::Seed => self.seed != 0,
            Knob::Growth => self.growth.is_some(),
            _ => false,
        };
        if is_requested { Err(SpecError::NotFor { knob, family: format, others: &[] }) } else { Ok(()) }
    }
}

impl Format {
    /// The filter of a file.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with the bytes; nothing has been allocated that they do not pay for.
    pub fn read(&self, bytes: Bytes, reading: &Reading) -> Result<Box<dyn AnyFilter>, DecodeError> {
        (self.read)(bytes, reading)
    }

    /// The bytes of a file of this format.
    ///
    /// # Errors
    /// [`ConvertError`] if the filter follows another rule.
    pub fn write(&self, filter: &dyn AnyFilter) -> Result<Vec<u8>, ConvertError> {
        let write = self.write.ok_or(ConvertError::ReadOnly { format: self.name })?;
        write(crate::family::bare(filter)).ok_or(ConvertError::OtherRule {
            format: self.name,
            family: filter.family().name,
            rule: filter.program(),
            hashing: filter.hashing().name(),
            makes: self.make.is_some(),
        })
    }

    /// Whether files of it are written.
    #[must_use]
    pub const fn writes(&self) -> bool {
        self.write.is_some()
    }

    /// Whether empty filters of its rule are made.
    #[must_use]
    pub const fn makes(&self) -> bool {
        self.make.is_some()
    }

    /// An empty filter by the program's rules.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or says that such filters are only read.
    pub fn make(&self, making: &Making) -> Result<Box<dyn AnyFilter>, SpecError> {
        let make = self.make.ok_or(SpecError::OnlyRead { format: self.name })?;
        making.check()?;
        make(making)
    }
}

/// The format of this name.
#[must_use]
pub fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.name == name)
}

/// The format of a file, if its structure leaves no other.
///
/// # Errors
/// [`Unrecognised`] names those that it may be: none, or several.
pub fn recognise(bytes: &[u8]) -> Result<&'static Format, Unrecognised> {
    let candidates: Vec<_> = FORMATS.iter().copied().filter(|format| (format.fits)(bytes)).collect();
    match candidates[..] {
        [format] => Ok(format),
        _ => Err(Unrecognised { candidates }),
    }
}

/// A file is of no known format, or may be of several.
#[derive(Clone, Debug, PartialEq)]
pub struct Unrecognised {
    /// What it may be.
    pub candidates: Vec<&'static Format>,
}

impl fmt::Display for Unrecognised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.candidates.iter().map(|format| format.name).collect();
        match names[..] {
            [] => f.write_str(
                "neither a mayhap file nor of another format that shows; name its format, if it has one",
            ),
            _ => write!(f, "may be of the formats {}; say which", names.join(" or ")),
        }
    }
}

impl core::error::Error for Unrecognised {}

/// A filter cannot become a file of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConvertError {
    /// The format is only read.
    ReadOnly {
        /// Which.
        format: &'static str,
    },
    /// The bits of one rule say nothing about those of another.
    OtherRule {
        /// What it was to become.
        format: &'static str,
        /// The family of the filter.
        family: &'static str,
        /// Whose rule it follows, if not ours.
        rule: Option<&'static str>,
        /// How its keys are hashed.
        hashing: &'static str,
        /// Whether filters of the format can be built.
        makes: bool,
    },
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ReadOnly { format } => {
                write!(
                    f,
                    "files of the format {format} are read, and never written; the format mayhap can hold any"
                )
            }
            Self::OtherRule { format, family, rule, hashing, makes } => {
                let rule = rule.unwrap_or("mayhap");
                write!(
                    f,
                    "a filter of the family {family} by the rules of {rule}, hashed by {hashing}, cannot become a file \
                     of the format {format}: other rules give other bits, and those take the keys"
                )?;
                if makes { f.write_str("; build it from the keys") } else { Ok(()) }
            }
        }
    }
}

impl core::error::Error for ConvertError {}

/// The most positions per key that are read: as many as the least rate above 0 that a double can hold asks for.
pub(crate) const MOST_PROBES: u32 = 1074;

/// A number of positions per key from a file.
pub(crate) fn probes(found: u64) -> Result<u32, DecodeError> {
    match u32::try_from(found) {
        Ok(probes @ 1..=MOST_PROBES) => Ok(probes),
        _ => Err(DecodeError::Value { field: "probes", found }),
    }
}

/// Checks a length that a file declares against what is there, before anything is made of it.
pub(crate) fn must_be_long(field: &'static str, needed: u64, rest: &[u8]) -> Result<(), DecodeError> {
    let available = rest.len() as u64;
    match available.checked_sub(needed) {
        None => Err(DecodeError::Truncated { field, needed, available }),
        Some(0) => Ok(()),
        Some(bytes) => Err(DecodeError::Trailing { bytes }),
    }
}

/// Checks that a frame is of the family that its rule belongs to, and its keys hashed as they are there.
pub(crate) fn must_be_of(
    frame: &Frame,
    family: &Family,
    hashing: Hashing,
    expected: Hashing,
) -> Result<(), DecodeError> {
    family.must_be(frame.header.family)?;
    must_be_hashed(frame, hashing, expected)
}

/// Checks that the keys of a frame are hashed as they are by its rule.
pub(crate) fn must_be_hashed(frame: &Frame, hashing: Hashing, expected: Hashing) -> Result<(), DecodeError> {
    if hashing == expected { Ok(()) } else { Err(bloom::unfit(frame)) }
}

/// The payload, out of its frame.
pub(crate) fn take_payload(frame: &mut Frame) -> Bytes {
    core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()))
}
/// The filter of a frame that holds a foreign one.
pub(crate) fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Box<dyn AnyFilter>, DecodeError> {
    let found = frame.header.probing;
    match Probing::foreign(found).ok_or(DecodeError::Probing { found })? {
        Probing::GUAVA_64
        | Probing::GUAVA_32
        | Probing::GO
        | Probing::DCSO
        | Probing::SPARK_1
        | Probing::SPARK_2
        | Probing::BLOOMFILTER_CRATE
        | Probing::RBLOOM => Ok(Box::new(bloom::ForeignBloom::decode(frame, hashing)?)),
        Probing::REDIS_BLOOM => Ok(Box::new(redisbloom::RedisBloom::decode(frame, hashing)?)),
        Probing::REDIS_BLOOM_CUCKOO => Ok(Box::new(redisbloom_cuckoo::RedisCuckoo::decode(frame, hashing)?)),
        Probing::SBBF if frame.header.family == crate::filters::scalable::FAMILY.id => {
            row_groups::decode(frame, hashing)
        }
        Probing::SBBF => Ok(Box::new(sbbf::Sbbf::decode(frame, hashing)?)),
        Probing::XOR | Probing::FAST_FILTER_FUSE => fastfilter::decode(frame, hashing),
        Probing::PYBLOOM_LIVE => pybloom_live::decode(frame, hashing),
        Probing::PYPROBABLES => pyprobables::decode(frame, hashing),
        _ => Err(DecodeError::Probing { found }),
    }
}
