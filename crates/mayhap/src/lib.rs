//! Is this key in the set? **No**, or **mayhap**: Bloom filters and their lineage, for sets too large
//! to hold.
//!
//! ```
//! use mayhap::Bloom;
//!
//! let mut seen = Bloom::new(1_000_000, 0.01)?; // a million keys, 1% false positives: 1.2 MB
//! for url in ["https://a.example/", "https://b.example/"] {
//!     seen.insert(url);
//! }
//! assert!(seen.contains("https://a.example/")); // probably in: true for every key inserted
//! let bytes = seen.to_bytes(); // the same bytes that the `mayhap` command reads and writes
//! assert_eq!(Bloom::from_bytes(&bytes)?, seen);
//! # Ok::<(), mayhap::Error>(())
//! ```
//!
//! # Which filter do I want?
//!
//! | you have | take | because |
//! |---|---|---|
//! | a set that fits in memory | [`Exact`] or a hash set | no errors |
//! | integers below some bound | [`BitmapSet`] | one bit per possible integer, exact |
//! | integers far apart | `RoaringSet`, of the feature `roaring` | exact, and small when sparse |
//! | a known number of keys of any kind | [`Bloom`] | 9.6 bits per key at 1%, inserts and merges |
//! | the same, and speed matters more than 5% of space | [`Blocked`] | one cache line per key |
//! | the same, filled by many threads | [`AtomicBloom`], [`AtomicBlocked`] | inserts through `&self` |
//! | half the memory accesses of [`Bloom`] | [`Shifting`] | two bits with one load; removes if it has counters |
//! | keys that are removed | [`Cuckoo`] | 10.5 bits per key at 1%, 13.7 at 0.1% |
//! | keys that are removed, and inserts of equal time | [`Dleft`] | remainders in buckets; says when it is full |
//! | keys that are removed, and filters that merge | [`Counting`] | a counter in place of each bit; becomes a [`Bloom`] |
//! | counts of keys | [`Spectral`] | never too low, and rarely too high |
//! | counts up to 57, known beforehand | [`ShiftingMultiplicity`] | a bit at a distance in place of counters |
//! | several sets: which one is a key in? | [`Spatial`] | a label in place of each bit |
//! | two sets: which one is a key in, or both? | [`ShiftingAssociation`] | one load where two filters take two |
//! | a set that never changes | [`Fuse`] | 9.0 bits per key at 0.4%; no inserts |
//! | the same, in the least space | [`Ribbon`] | 8.03 bits per key at 0.4%, and any rate |
//! | a set, and a list of all other keys that are looked up | [`Universe`] | no wrong answer about either |
//! | an unknown number of keys | [`Scalable`] | grows, and keeps its rate |
//! | the same, with removals and fast lookups | [`Expanding`] | doubles, and keeps its rate and its speed |
//! | an endless stream: was it among the last n? | [`Windowed`] | forgets older keys; 20.4 bits per key at 1% |
//! | a stream of many keys: is it new? | [`Table`] | one cache line; grows; 41.8 bits per key at 1e-9 |
//! | one of these, and keys that it must not admit | [`except`] | denies them exactly, for 128 bits each |
//!
//! [`advise::advise`] reads such a table for you: it takes what is [needed](advise::Needs) and gives the family, what to ask of it,
//! its size and rate, two others that would do, and what to know before. If the exact set fits the memory, it says so.
//!
//! ```
//! use mayhap::advise::{Needs, Warning, advise};
//!
//! let advice = advise(&Needs::new().with_keys(1_000_000_000).with_fpr(0.001).fixed())?;
//! assert_eq!((advice.choice.family.name, advice.choice.bytes >> 20), ("ribbon", 1192)); // MiB
//! assert_eq!(advice.runners_up[0].choice.family.name, "fuse"); // larger, and faster
//! assert!(matches!(advice.warnings[..], [Warning::Large { .. }])); // more than 2^32 bits
//! # Ok::<(), mayhap::Error>(())
//! ```
//!
//! # The road of a key
//!
//! A [`Key`] is bytes; [`Hashing`] makes them a [`Digest`] of 128 bits, once; a family derives
//! positions from the digest and stores bits; [`encode`] makes a file of it. Programs that learn the
//! family at run time (from a file or a flag) use [`open`], [`AnyFilter`] and [`FAMILIES`].
//!
//! # Features
//!
//! - `std` (default): detection of the processor's instructions, threads, huge pages on Linux. Without it the library needs
//!   `alloc` only.
//! - `interop`: the files of other programs, in the module `interop`.
//! - `roaring`: the family `roaring`, exact sets of integers as Roaring bitmaps.
//! - `serde`: `Serialize` and `Deserialize` for [`Bloom`].
//!
//! A file that needs a feature which is off is refused with [`DecodeError::Feature`].
#![no_std]
// Sizes and positions are `u64` until they are proved to fit: see `narrow`.
#![warn(clippy::cast_possible_truncation)]
#![warn(unnameable_types)]
#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "tests know their numbers"))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

pub mod advise;
mod batch;
#[doc(hidden)]
pub mod bits;
mod cell_lanes;
mod error;
mod exceptions;
mod family;
mod filters;
mod hash;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
#[cfg(feature = "interop")]
pub mod interop;
mod intersection;
pub mod key_rules;
#[doc(hidden)]
pub mod limit;
pub mod math;
mod narrow;
mod paths;
#[doc(hidden)]
pub mod probing;
mod rates;
mod raw;
mod registry;
mod retrieval;
pub mod shards;
mod shell;
mod spec;
mod table_shape;
#[cfg(feature = "std")]
mod threads;
mod traits;
#[doc(hidden)]
pub mod wire;

// Every item has one path. What a filter takes, returns or implements is here, so that one import brings it.
pub use bits::{Bitmap, Bytes, ExclusiveBytes, Ones, OutOfMemory, OutOfRange, Ranked, Width, Words};
pub use error::{
    AdviseError, AreaNameProblem, BuildError, DecodeError, Error, FoldError, Full, Knob, Limit, Mismatch,
    Parameter, SpecError, Value,
};
pub use exceptions::{except, share_exceptions, with_key_rules};
pub use family::{
    AnyFilter, AreaReport, AreasReport, Capabilities, Combine, Cost, CounterReport, Details, Doublings,
    Exceptions, Family, Guarantee, LayerReport, Make, MakeCounted, MakeEmpty, MakeFromDigests, MakeOfTwo,
    MakeShared, MakeWithin, Report, Slots, WindowReport, combine, encode, encode_with, verify,
};
pub use filters::bitmap::BitmapSet;
pub use filters::blocked::{AtomicBlocked, Blocked};
pub use filters::bloom::{AtomicBloom, Bloom, Measured};
pub use filters::counting::Counting;
pub use filters::cuckoo::Cuckoo;
pub use filters::dleft::Dleft;
pub use filters::exact::Exact;
pub use filters::expanding::Expanding;
pub use filters::fuse::Fuse;
pub use filters::ribbon::Ribbon;
#[cfg(feature = "roaring")]
pub use filters::roaring::RoaringSet;
pub use filters::scalable::Scalable;
pub use filters::shifting::Shifting;
pub use filters::shifting_association::ShiftingAssociation;
pub use filters::shifting_multiplicity::ShiftingMultiplicity;
pub use filters::spatial::Spatial;
pub use filters::spectral::Spectral;
pub use filters::table::Table;
pub use filters::universe::{Overlap, Universe};
pub use filters::windowed::Windowed;
#[cfg(feature = "interop")]
pub use hash::ForeignHash;
pub use hash::{Digest, Hashing, Key, Secret};
pub use probing::{Positions, positions};
pub use registry::{FAMILIES, family, open};
pub use spec::{CountingRule, KnobRange, Layout, Plan, Spec};
pub use traits::{
    Associate, Association, Count, Filter, Fold, Insert, Insertion, Intersect, Label, Labels, Merge, Part,
    Removal, Remove, SharedInsert, Subtract,
};
pub use wire::{Encoded, Summing};

// For the other crates of the project.
#[doc(hidden)]
pub use family::{Profile, Space};
#[doc(hidden)]
pub use filters::cuckoo::LOOKED_AT_BUCKETS;
#[doc(hidden)]
pub use filters::exact::DigestHasher;
#[doc(hidden)]
pub use registry::decode;

/// What a [`Spec`] is granted by each family, and the bounds of what can be requested.
pub mod sizes {
    pub use crate::filters::blocked::BlockedSize;
    pub use crate::filters::bloom::BloomSize;
    pub use crate::filters::counting::CountingSize;
    pub use crate::filters::cuckoo::CuckooSize;
    pub use crate::filters::dleft::{DLEFT_MIN_FPR, DleftSize};
    pub use crate::filters::expanding::ExpandingSize;
    pub use crate::filters::fuse::FuseSize;
    pub use crate::filters::ribbon::RibbonSize;
    pub use crate::filters::scalable::ScalableSize;
    pub use crate::filters::shifting::ShiftingSize;
    pub use crate::filters::shifting_association::ShiftingAssociationSize;
    pub use crate::filters::shifting_multiplicity::{MAX_COUNT, ShiftingMultiplicitySize};
    pub use crate::filters::spatial::{MAX_AREAS, SpatialSize};
    pub use crate::filters::spectral::SpectralSize;
    pub use crate::filters::table::TableSize;
    pub use crate::filters::universe::UniverseSize;
    pub use crate::filters::windowed::WindowedSize;
    pub use crate::spec::{
        DEFAULT_DOUBLINGS, DEFAULT_FPR, MAX_BITS, MAX_CAPACITY, MIN_FPR, MOST_DOUBLINGS, STARTING_CAPACITY,
    };
}

#[doc = include_str!("../../../README.md")]
#[cfg(doctest)]
struct Readme;
