//! Roaring bitmap: exact membership of integers, small also when they are far apart.
//!
//! **Answers** "is this integer in the set?"
//! **Promise** no wrong answer, for every 64-bit integer.
//! **Not for** keys that are not integers; dense sets (a `bitmap` is smaller and faster there).
//!
//! ```text
//!   integer ─▶ high 48 bits: container · low 16 bits: place     array (≤ 4096) | bitmap | runs
//! ```
//!
//! | operation | cache lines             | can fail |
//! |-----------|-------------------------|----------|
//! | contains  | a few (two searches)    | no       |
//! | insert    | a few, may move 8 KiB   | no       |
//! | remove    | a few, may move 8 KiB   | no       |
//!
//! **Paper** Lemire, Kai, Kaser, *Consistently faster and smaller compressed bitmaps with Roaring*, 2016.
//! **We differ** in nothing: the `roaring` crate does it, and the payload is the portable 64-bit form.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ::roaring::RoaringTreemap;

use crate::error::{DecodeError, Full, Limit, Mismatch, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, Family, Guarantee, Make, Report};
use crate::hash::{Digest, Hashing};
use crate::narrow::whole;
use crate::probing::Probing;
use crate::spec::{Plan, Spec};
use crate::traits::{Filter, Insert, Insertion, Intersect, Merge, Removal, Remove, Subtract};
use crate::wire::{Fields, Frame, Writer};

/// The family `roaring`.
pub static FAMILY: Family = Family {
    id: super::ROARING,
    name: "roaring",
    summary: "no errors: compressed bitmap for sparse integers",
    can: Capabilities {
        inserts: true,
        removes: true,
        counts: false,
        labels: false,
        merges: true,
        intersects: true,
        subtracts: true,
        folds: false,
        grows: true,
        exact: true,
    },
    cost: Cost { query: "O(log n)", insert: "O(log n)", space: "16 to 176 n, at most U" },
    make: Make::Empty(|spec| Ok(Box::new(RoaringSet::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(RoaringSet::decode(frame, hashing)?)),
    in_place: false,
};

/// Containers of one 32-bit range.
const CONTAINERS: f64 = 65_536.0;
/// An array container of more values than this becomes a bitmap of so many bits.
const ARRAY_MAX: f64 = 4096.0;
const BITMAP_BITS: f64 = 65_536.0;

/// The size depends on the keys. The plan is for integers drawn uniformly from 32 bits: 2 bytes a
/// value, 8 bytes a container that is not empty, a bitmap where an array would be larger.
fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let capacity = spec.keys(16)?;
    let per_container = capacity as f64 / CONTAINERS;
    let used = CONTAINERS * -libm::expm1(-per_container);
    let values = if per_container <= ARRAY_MAX { 16.0 * capacity as f64 } else { used * BITMAP_BITS };
    let bits = whole(libm::ceil(160.0 + used * 64.0 + values));
    Ok(Plan { capacity, fpr_asked: 0.0, fpr: 0.0, bits, probes: None })
}

/// An exact set of 64-bit integers.
#[derive(Clone, Debug)]
pub struct RoaringSet {
    set: RoaringTreemap,
    capacity: u64,
    inserted: Option<u64>,
}

impl PartialEq for RoaringSet {
    fn eq(&self, other: &Self) -> bool {
        self.set == other.set
    }
}

impl RoaringSet {
    /// An empty set. The capacity is noted and no limit.
    ///
    /// # Errors
    /// [`SpecError`] names what makes no sense.
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        spec.unhashed()?;
        Ok(Self { set: RoaringTreemap::new(), capacity: plan(spec)?.capacity, inserted: Some(0) })
    }

    /// A set of the `roaring` crate's, of which nobody knows how it came to be.
    #[must_use]
    pub fn of(set: RoaringTreemap) -> Self {
        let capacity = set.len().max(1);
        Self { set, capacity, inserted: None }
    }

    /// The set as the `roaring` crate has it.
    #[must_use]
    pub fn treemap(&self) -> &RoaringTreemap {
        &self.set
    }

    fn combine(&mut self, how: impl FnOnce(&mut RoaringTreemap)) {
        how(&mut self.set);
        self.inserted = None;
        self.capacity = self.capacity.max(self.set.len());
    }

    fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        // Every byte is read in any case, and nothing of the bytes is kept that could be compared later.
        frame.verify_payload()?;
        let header = &frame.header;
        header.must_probe_by(Probing::None)?;
        if hashing != Hashing::Integer {
            let stored = header.hashing;
            return Err(DecodeError::Hashing { scheme: stored.scheme, version: stored.version });
        }
        let mut fields = Fields::new(&header.params);
        let capacity = fields.u64("capacity")?;
        fields.end("parameters", header.params.len())?;
        let mut payload = frame.payload.as_slice();
        let set = RoaringTreemap::deserialize_from(&mut payload)
            .map_err(|_| DecodeError::Payload { problem: "not a portable 64-bit roaring bitmap" })?;
        if !payload.is_empty() {
            return Err(DecodeError::Payload { problem: "bytes follow the roaring bitmap" });
        }
        if let Some(found) = header.ones.filter(|&ones| ones != set.len()) {
            return Err(DecodeError::Value { field: "occupied cells", found });
        }
        Ok(Self { set, capacity, inserted: header.inserted })
    }
}

impl Filter for RoaringSet {
    fn hashing(&self) -> Hashing {
        Hashing::Integer
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        digest.b == 0 && self.set.contains(digest.a)
    }
}

impl Insert for RoaringSet {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        if digest.b != 0 {
            return Err(Full { limit: Limit::NotAnInteger, inserted: 0 });
        }
        self.inserted = self.inserted.map(|calls| calls.saturating_add(1));
        Ok(Insertion::new_if(self.set.insert(digest.a)))
    }
}

impl Remove for RoaringSet {
    fn remove_digest(&mut self, digest: Digest) -> Removal {
        Removal::removed_if(digest.b == 0 && self.set.remove(digest.a))
    }
}

impl Merge for RoaringSet {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        let other = family::same_type(self, other)?;
        self.combine(|ours| *ours |= &other.set);
        Ok(())
    }
}

impl Intersect for RoaringSet {
    fn intersect_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        let other = family::same_type(self, other)?;
        self.combine(|ours| *ours &= &other.set);
        Ok(())
    }
}

impl Subtract for RoaringSet {
    fn subtract_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        let other = family::same_type(self, other)?;
        self.combine(|ours| *ours -= &other.set);
        Ok(())
    }
}

impl AnyFilter for RoaringSet {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    fn report(&self) -> Report {
        let len = self.set.len();
        Report {
            capacity: self.capacity.max(len),
            inserted: self.inserted,
            estimated_len: Some(len as f64),
            bits: self.set.serialized_size() as u64 * 8,
            probes: None,
            fill: if len == 0 { 0.0 } else { 1.0 },
            fpr_asked: 0.0,
            fpr_now: 0.0,
            fpr_interval: None,
            fpr_at_capacity: 0.0,
            guarantee: Guarantee::Exact,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        out.counts(self.inserted, self.set.len());
        out.params().u64(self.capacity);
        out.bytes_of(None, || {
            let mut bytes = Vec::with_capacity(self.set.serialized_size());
            self.set.serialize_into(&mut bytes).expect("a vector takes every byte");
            bytes.into()
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    // The worked case of a sparse set: one large number in a handful of bytes.
    #[test]
    fn four_billion_alone_takes_under_100_bytes() {
        let mut set = RoaringSet::from_spec(&Spec::new().with_capacity(1)).unwrap();
        set.insert_digest(Digest { a: 4_000_000_000, b: 0 }).unwrap();
        assert!(set.treemap().serialized_size() < 100, "{}", set.treemap().serialized_size());
        assert!(set.contains(&4_000_000_000u64.to_le_bytes()) && !set.contains(&0u64.to_le_bytes()));
    }

    // 10^6 uniform values below 2^32: 8 + 65,536 * 8 + 2 * 10^6 bytes, and 12 more for the 64-bit
    // form's own header. The plan must agree within a tenth of a percent.
    #[test]
    fn a_million_sparse_integers_take_what_the_format_says() {
        let mut set = RoaringTreemap::new();
        let (mut index, mut distinct) = (0u64, 0);
        while distinct < 1_000_000 {
            index += 1;
            distinct += u64::from(set.insert(Hashing::default().digest_of(index).a >> 32));
        }
        let size = set.serialized_size();
        assert!((2_524_296i64 + 12 - size as i64).abs() <= 100, "{size}");
        let planned = plan(&Spec::new().with_capacity(1_000_000)).unwrap().bits / 8;
        assert!((planned as f64 / size as f64 - 1.0).abs() < 1e-3, "{planned} planned, {size} taken");
    }
}
