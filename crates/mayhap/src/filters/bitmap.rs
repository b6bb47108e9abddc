//! Bitmap: exact membership of integers below a bound, one bit each.
//!
//! **Answers** "is this integer in the set?"
//! **Promise** no wrong answer.
//! **Not for** integers far apart (below about one in 64: take `roaring`); keys that are not integers.
//!
//! ```text
//!   integer 11 ─▶ bit 11        bits  0 0 0 0 0 0 0 0 0 0 0 1 0 …
//! ```
//!
//! | operation | cache lines | can fail                       |
//! |-----------|-------------|--------------------------------|
//! | contains  | 1           | no                             |
//! | insert    | 1           | `Full` at and above the bound  |
//! | remove    | 1           | no                             |
//!
//! **Paper** Bentley, *Programming Pearls*, column 1: sorting with a bitmap.
//!
//! The bits themselves, with ranges, rank and select, are [`Bitmap`].
//!
//! ```
//! use mayhap::filters::bitmap::BitmapSet;
//! use mayhap::{Insert, Remove, Filter, Spec};
//!
//! let mut set = BitmapSet::from_spec(&Spec::new().with_capacity(100))?;
//! set.insert_integer(42)?;
//! assert!(set.contains(&42u64.to_le_bytes()));
//! assert!(set.insert_integer(100).is_err());
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::bits::{Bitmap, Bytes, OutOfMemory, Words, words_for};
use crate::error::{DecodeError, Full, Limit, Mismatch, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, Family, Guarantee, Make, Report};
use crate::hash::{Digest, Hashing};
use crate::probing::Probing;
use crate::spec::{MAX_BITS, Plan, Spec};
use crate::traits::{Filter, Insert, Insertion, Intersect, Merge, Removal, Remove, Subtract};
use crate::wire::{Fields, Frame, Writer};

/// The family `bitmap`.
pub static FAMILY: Family = Family {
    id: 3,
    name: "bitmap",
    summary: "no errors: one bit for each possible integer",
    can: Capabilities {
        inserts: true,
        removes: true,
        counts: false,
        labels: false,
        merges: true,
        intersects: true,
        subtracts: true,
        folds: false,
        grows: false,
        exact: true,
    },
    cost: Cost { query: "O(1)", insert: "O(1)", space: "U" },
    make: Make::Empty(|spec| Ok(Box::new(BitmapSet::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(BitmapSet::decode(frame, hashing)?)),
    in_place: false,
};

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let bits = spec.keys(1)?;
    Ok(Plan { capacity: bits, fpr_asked: 0.0, fpr: 0.0, bits, probes: None })
}

/// An exact set of integers below a bound.
#[derive(Clone, Debug)]
pub struct BitmapSet {
    bitmap: Bitmap,
    ones: u64,
    inserted: Option<u64>,
}

impl PartialEq for BitmapSet {
    fn eq(&self, other: &Self) -> bool {
        self.bitmap == other.bitmap
    }
}

impl BitmapSet {
    /// An empty set of the integers below the capacity.
    ///
    /// # Errors
    /// [`SpecError`] names what makes no sense, or the memory that was not granted.
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        spec.unhashed()?;
        Ok(Self { bitmap: Bitmap::zeroed(plan(spec)?.bits)?, ones: 0, inserted: Some(0) })
    }

    /// The bits.
    #[must_use]
    pub fn bitmap(&self) -> &Bitmap {
        &self.bitmap
    }

    /// Inserts an integer. [`Insertion::Perhaps`] means here: it was in.
    ///
    /// # Errors
    /// [`Full`] if it is not below the bound; then nothing has changed.
    pub fn insert_integer(&mut self, integer: u64) -> Result<Insertion, Full> {
        let changed = self.bitmap.set(integer).map_err(|e| Full {
            limit: Limit::Universe { universe: e.universe, key: e.index },
            inserted: 0,
        })?;
        self.ones += u64::from(changed);
        self.inserted = self.inserted.map(|calls| calls.saturating_add(1));
        Ok(Insertion::new_if(changed))
    }

    fn combine(
        &mut self,
        other: &Self,
        how: impl FnOnce(&mut Bitmap, &Bitmap) -> Result<(), OutOfMemory>,
    ) -> Result<(), Mismatch> {
        how(&mut self.bitmap, &other.bitmap).map_err(|refused| Mismatch::Memory { bytes: refused.bytes })?;
        self.ones = self.bitmap.count_ones();
        self.inserted = None;
        Ok(())
    }

    fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        header.must_probe_by(Probing::None)?;
        if hashing != Hashing::Integer {
            let stored = header.hashing;
            return Err(DecodeError::Hashing { scheme: stored.scheme, version: stored.version });
        }
        let mut fields = Fields::new(&header.params);
        let universe = fields.u64("bits")?;
        if !(1..=MAX_BITS).contains(&universe) {
            return Err(DecodeError::Value { field: "bits", found: universe });
        }
        fields.end("parameters", header.params.len())?;
        let (expected, found) = (words_for(universe) * 8, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        if let Some(found) = header.ones.filter(|&ones| ones > universe) {
            return Err(DecodeError::Value { field: "set bits", found });
        }
        let (inserted, ones) = (header.inserted, header.ones);
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let words = Words::from_bytes(payload)
            .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
        let bitmap = Bitmap::from_words(words, universe)
            .ok_or(DecodeError::Padding { field: "end of the payload" })?;
        let ones = match ones {
            // Counted only when the whole payload is read anyway.
            Some(found) if frame.verified && found != bitmap.count_ones() => {
                return Err(DecodeError::Value { field: "set bits", found });
            }
            Some(ones) => ones,
            None => bitmap.count_ones(),
        };
        Ok(Self { bitmap, ones, inserted })
    }
}

impl Filter for BitmapSet {
    fn hashing(&self) -> Hashing {
        Hashing::Integer
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        digest.b == 0 && self.bitmap.contains(digest.a)
    }
}

impl Insert for BitmapSet {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        if digest.b != 0 {
            return Err(Full { limit: Limit::NotAnInteger, inserted: 0 });
        }
        self.insert_integer(digest.a)
    }
}

impl Remove for BitmapSet {
    fn remove_digest(&mut self, digest: Digest) -> Removal {
        let removed = digest.b == 0 && self.bitmap.clear(digest.a) == Ok(true);
        // Saturating: a mapped file's header is believed, and may say fewer than there are.
        self.ones = self.ones.saturating_sub(u64::from(removed));
        Removal::removed_if(removed)
    }
}

impl Merge for BitmapSet {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.combine(family::same_type(self, other)?, Bitmap::union_with)
    }
}

impl Intersect for BitmapSet {
    fn intersect_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.combine(family::same_type(self, other)?, Bitmap::intersect_with)
    }
}

impl Subtract for BitmapSet {
    fn subtract_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.combine(family::same_type(self, other)?, |ours, theirs| {
            ours.subtract(theirs);
            Ok(())
        })
    }
}

impl AnyFilter for BitmapSet {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    fn report(&self) -> Report {
        let universe = self.bitmap.universe();
        Report {
            capacity: universe,
            inserted: self.inserted,
            estimated_len: Some(self.ones as f64),
            bits: universe,
            probes: None,
            fill: self.ones as f64 / universe as f64,
            fpr_asked: 0.0,
            fpr_now: 0.0,
            fpr_interval: None,
            fpr_at_capacity: 0.0,
            guarantee: Guarantee::Exact,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        out.counts(self.inserted, self.ones);
        out.params().u64(self.bitmap.universe());
        out.words(self.bitmap.words());
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }
    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        Some(self)
    }
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }
    fn as_intersect(&mut self) -> Option<&mut dyn Intersect> {
        Some(self)
    }
    fn as_subtract(&mut self) -> Option<&mut dyn Subtract> {
        Some(self)
    }
}
