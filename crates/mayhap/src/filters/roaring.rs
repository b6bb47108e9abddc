//! Roaring bitmap: exact membership of integers, small also when they are far apart.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::error::{DecodeError, Full, Limit, Mismatch, SpecError};
use crate::family::{Cost, Family, Guarantee, Make, Profile};
use crate::hash::Hashing;
use crate::narrow::whole;
use crate::paths::Paths;
use crate::probing::Probing;
use crate::rates::Rate;
use crate::shell::{Empty, Inserts, Intersects, Kernel, Merges, Removes, Subtracts, filter};
use crate::spec::{Plan, Spec};
use crate::traits::{Insertion, Removal};
use crate::wire::{Fields, Frame, Writer};
use ::roaring::RoaringTreemap;

/// The family `roaring`.
pub(crate) static FAMILY: Family = Family {
    id: super::ROARING,
    name: "roaring",
    summary: "no errors: compressed bitmap for sparse integers",
    can: RoaringSet::CAN,
    knobs: &[],
    probing: &[Probing::NONE],
    cost: Cost { query: "O(log n)", insert: "O(log n)", space: "16 to 176 n, at most U" },
    make: Make::Empty(|spec| Ok(Box::new(RoaringSet::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(RoaringSet::decode(frame, hashing)?)),
    in_place: false,
    profile: Profile { is_held_as_written: false, prefetches: false, ..Profile::USUAL },
};

/// Containers of one 32-bit range.
const CONTAINERS: f64 = 65_536.0;
/// An array container of more values than this becomes a bitmap of [`BITMAP_BITS`].
const ARRAY_MAX: f64 = 4096.0;
const BITMAP_BITS: f64 = 65_536.0;

/// The size depends on the keys. The plan is for integers drawn uniformly from 32 bits: 2 bytes a
/// value, 8 bytes a container that is not empty, a bitmap where an array would be larger.
fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let capacity = FAMILY.check(spec)?.keys(16)?;
    let per_container = capacity as f64 / CONTAINERS;
    let used = CONTAINERS * -libm::expm1(-per_container);
    let values = if per_container <= ARRAY_MAX { 16.0 * capacity as f64 } else { used * BITMAP_BITS };
    let bits = whole(libm::ceil(160.0 + used * 64.0 + values));
    Ok(Plan { capacity, fpr_asked: 0.0, fpr: 0.0, bits, probes: None })
}

filter! {
    /// An exact set of 64-bit integers.
    ///
    /// **Answers** "is this integer in the set?"
    /// **Promise** no wrong answer, for every 64-bit integer.
    /// **Not for** keys that are not integers; dense sets (a `bitmap` is smaller and faster there).
    ///
    /// ```text
    ///   integer ─▶ high 48 bits: container · low 16 bits: place     array (≤ 4096) | bitmap | runs
    /// ```
    ///
    /// | operation | cache lines             | can fail |
    /// |-----------|-------------------------|----------|
    /// | contains  | a few (two searches)    | no       |
    /// | insert    | a few, may move 8 KiB   | no       |
    /// | remove    | a few, may move 8 KiB   | no       |
    ///
    /// **Paper** Lemire, Kai, Kaser, *Consistently faster and smaller compressed bitmaps with Roaring*, 2016.
    /// **We differ** in nothing: the `roaring` crate does it, and the payload is the portable 64-bit form.
    ///
    /// No answer is wrong: what is said of keys that are probably in holds for keys that are in. Keys that are no integers are
    /// not in.
    RoaringSet(Integers) = FAMILY {
        /// The capacity is noted and no limit.
        specified,
        /// [`Insertion::Perhaps`] means here: it was in.
        ///
        /// [`Full`] if the key is not an integer.
        inserts_until_full,
        removes,
        merges,
        intersects,
        subtracts,
        grows,
        exact,
    }
}

/// A compressed set of integers.
#[derive(Clone, Debug)]
pub(crate) struct Integers {
    set: RoaringTreemap,
    capacity: u64,
}

impl Integers {
    fn combine(&mut self, how: impl FnOnce(&mut RoaringTreemap)) {
        how(&mut self.set);
        self.capacity = self.capacity.max(self.set.len());
    }
}

impl Kernel for Integers {
    type Hash = Option<u64>;

    const GUARANTEE: Guarantee = Guarantee::Exact;

    fn contains(&self, integer: Option<u64>) -> bool {
        integer.is_some_and(|integer| self.set.contains(integer))
    }

    fn plan(&self) -> Plan {
        let capacity = self.capacity.max(self.set.len());
        let bits = self.set.serialized_size() as u64 * 8;
        Plan { capacity, fpr_asked: 0.0, fpr: 0.0, bits, probes: None }
    }

    fn fill(&self) -> f64 {
        if self.set.is_empty() { 0.0 } else { 1.0 }
    }

    fn rate(&self) -> Rate {
        Rate::computed(0.0)
    }

    fn estimated_len(&self) -> f64 {
        self.set.len() as f64
    }

    fn must_match(&self, _: &Self) -> Result<(), Mismatch> {
        Ok(())
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.set == other.set
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.ones(self.set.len());
        out.params().u64(self.capacity);
        out.bytes_of(None, || {
            let mut bytes = Vec::with_capacity(self.set.serialized_size());
            self.set.serialize_into(&mut bytes).expect("a vector takes every byte");
            bytes.into()
        });
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        // Every byte is read in any case, and none is kept that could be verified later.
        frame.verify_payload()?;
        let header = &frame.header;
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
        Ok(Self { set, capacity })
    }

    fn take_paths(&mut self, _: Paths) {}
}

impl Empty for Integers {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        Ok(Self { set: RoaringTreemap::new(), capacity: plan(spec)?.capacity })
    }

    fn clear(&mut self) {
        self.set.clear();
    }
}

impl Inserts for Integers {
    type Error = Full;

    fn insert(&mut self, integer: Option<u64>) -> Result<Insertion, Full> {
        let integer = integer.ok_or(Full { limit: Limit::NotAnInteger, inserted: 0 })?;
        Ok(Insertion::new_if(self.set.insert(integer)))
    }
}

impl Removes for Integers {
    fn remove(&mut self, integer: Option<u64>) -> Removal {
        Removal::removed_if(integer.is_some_and(|integer| self.set.remove(integer)))
    }
}

impl Merges for Integers {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(|ours| *ours |= &other.set);
        Ok(())
    }
}

impl Intersects for Integers {
    fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(|ours| *ours &= &other.set);
        Ok(())
    }
}

impl Subtracts for Integers {
    fn subtract(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(|ours| *ours -= &other.set);
        Ok(())
    }
}

impl RoaringSet {
    /// Its integers, in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.0.kernel.set.iter()
    }
}

/// For files of other programs.
#[cfg(feature = "interop")]
impl RoaringSet {
    /// A set with an unknown number of inserts.
    pub(crate) fn of(set: RoaringTreemap) -> Self {
        let kernel = Integers { capacity: set.len().max(1), set };
        Self(crate::shell::Shell { kernel, hashing: Hashing::Integer, inserted: None })
    }

    pub(crate) fn treemap(&self) -> &RoaringTreemap {
        &self.0.kernel.set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::AnyFilter;

    // The worked case of a sparse set: one large number in a handful of bytes.
    #[test]
    fn four_billion_alone_takes_under_100_bytes() {
        let mut set = RoaringSet::from_spec(&Spec::new().with_capacity(1)).unwrap();
        set.insert(4_000_000_000u64).unwrap();
        assert!(set.report().bits < 800, "{}", set.report().bits);
        assert!(set.contains(4_000_000_000u64) && !set.contains(0u64));
    }

    // 16 bits for each key were compared with the limit, although the plan never takes that many bits.
    #[test]
    fn a_set_for_a_large_capacity_is_granted() {
        for capacity in [1 << 44, 1 << 46, 1 << 48] {
            assert_eq!(plan(&Spec::new().with_capacity(capacity)).unwrap().capacity, capacity);
            assert!(RoaringSet::from_spec(&Spec::new().with_capacity(capacity)).is_ok());
        }
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
