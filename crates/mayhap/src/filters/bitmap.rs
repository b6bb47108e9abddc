//! Bitmap: exact membership of integers below a bound, one bit each.

use alloc::boxed::Box;

use crate::bits::{Bitmap, OutOfMemory, words_for};
use crate::error::{DecodeError, Full, Limit, Mismatch, SpecError};
use crate::family::{Cost, Family, Guarantee, Make, Profile};
use crate::hash::Hashing;
use crate::paths::Paths;
use crate::probing::Probing;
use crate::rates::Rate;
use crate::shell::{self, Empty, Inserts, Intersects, Kernel, Merges, Removes, Subtracts, filter};
use crate::spec::{MAX_BITS, Plan, Spec};
use crate::traits::{Insertion, Removal};
use crate::wire::{Fields, Frame, Writer};

/// The family `bitmap`.
pub(crate) static FAMILY: Family = Family {
    id: 3,
    name: "bitmap",
    summary: "no errors: one bit for each possible integer",
    can: BitmapSet::CAN,
    knobs: &[],
    probing: &[Probing::NONE],
    cost: Cost { query: "O(1)", insert: "O(1)", space: "U" },
    make: Make::Empty(|spec| Ok(Box::new(BitmapSet::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(BitmapSet::decode(frame, hashing)?)),
    in_place: false,
    profile: Profile { prefetches: false, ..Profile::USUAL },
};

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let bits = FAMILY.check(spec)?.keys(1)?;
    Ok(Plan { capacity: bits, fpr_asked: 0.0, fpr: 0.0, bits, probes: None })
}

filter! {
    /// An exact set of integers below a bound.
    ///
    /// **Answers** "is this integer in the set?"
    /// **Promise** no wrong answer.
    /// **Not for** integers far apart (below about one in 64: take `roaring`); keys that are not integers.
    ///
    /// ```text
    ///   integer 11 ─▶ bit 11        bits  0 0 0 0 0 0 0 0 0 0 0 1 0 …
    /// ```
    ///
    /// | operation | cache lines | can fail                       |
    /// |-----------|-------------|--------------------------------|
    /// | contains  | 1           | no                             |
    /// | insert    | 1           | `Full` at and above the bound  |
    /// | remove    | 1           | no                             |
    ///
    /// **Paper** Bentley, *Programming Pearls*, column 1: sorting with a bitmap.
    ///
    /// The bits themselves, with ranges, rank and select, are [`Bitmap`].
    ///
    /// No answer is wrong: what is said of keys that are probably in holds for keys that are in. Keys that are no integers are
    /// not in.
    ///
    /// ```
    /// use mayhap::{BitmapSet, Spec};
    ///
    /// let mut set = BitmapSet::from_spec(&Spec::new().with_capacity(100))?;
    /// set.insert(42u64)?;
    /// assert!(set.contains(42u64) && !set.contains(43u64));
    /// assert!(set.insert(100u64).is_err());
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    BitmapSet(Integers) = FAMILY {
        /// It takes the integers below the capacity.
        specified,
        /// [`Insertion::Perhaps`] means here: it was in.
        ///
        /// [`Full`] if the key is not an integer below the bound.
        inserts_until_full,
        removes,
        merges,
        intersects,
        subtracts,
        exact,
    }
}

/// The bits of a set of integers.
#[derive(Clone, Debug)]
pub(crate) struct Integers {
    bitmap: Bitmap,
    /// Set bits.
    ones: u64,
}

impl Integers {
    fn combine(
        &mut self,
        other: &Self,
        how: impl FnOnce(&mut Bitmap, &Bitmap) -> Result<(), OutOfMemory>,
    ) -> Result<(), Mismatch> {
        how(&mut self.bitmap, &other.bitmap).map_err(|refused| Mismatch::Memory { bytes: refused.bytes })?;
        self.ones = self.bitmap.count_ones();
        Ok(())
    }
}

impl Kernel for Integers {
    type Hash = Option<u64>;

    const GUARANTEE: Guarantee = Guarantee::Exact;

    fn contains(&self, integer: Option<u64>) -> bool {
        integer.is_some_and(|integer| self.bitmap.contains(integer))
    }

    fn plan(&self) -> Plan {
        let universe = self.bitmap.universe();
        Plan { capacity: universe, fpr_asked: 0.0, fpr: 0.0, bits: universe, probes: None }
    }

    fn fill(&self) -> f64 {
        self.ones as f64 / self.bitmap.universe() as f64
    }

    fn rate(&self) -> Rate {
        Rate::computed(0.0)
    }

    fn estimated_len(&self) -> f64 {
        self.ones as f64
    }

    fn must_match(&self, _: &Self) -> Result<(), Mismatch> {
        Ok(())
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.bitmap == other.bitmap
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.ones(self.ones);
        out.params().u64(self.bitmap.universe());
        out.words(self.bitmap.words());
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let universe = fields.u64("bits")?;
        if !(1..=MAX_BITS).contains(&universe) {
            return Err(DecodeError::Value { field: "bits", found: universe });
        }
        fields.end("parameters", header.params.len())?;
        let words = shell::take_words(frame, words_for(universe) * 8)?;
        let bitmap = Bitmap::from_words(words, universe)
            .ok_or(DecodeError::Padding { field: "end of the payload" })?;
        let ones = shell::occupied(frame, "set bits", universe, || bitmap.count_ones())?;
        let ones = ones.unwrap_or_else(|| bitmap.count_ones());
        Ok(Self { bitmap, ones })
    }

    fn take_paths(&mut self, _: Paths) {}
}

impl Empty for Integers {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        Ok(Self { bitmap: Bitmap::zeroed(plan(spec)?.bits)?, ones: 0 })
    }

    fn clear(&mut self) {
        self.bitmap.clear_all();
        self.ones = 0;
    }
}

impl Inserts for Integers {
    type Error = Full;

    fn insert(&mut self, integer: Option<u64>) -> Result<Insertion, Full> {
        let full = |limit| Full { limit, inserted: 0 };
        let integer = integer.ok_or(full(Limit::NotAnInteger))?;
        let changed = self
            .bitmap
            .set(integer)
            .map_err(|e| full(Limit::Universe { universe: e.universe, key: e.index }))?;
        self.ones += u64::from(changed);
        Ok(Insertion::new_if(changed))
    }
}

impl Removes for Integers {
    fn remove(&mut self, integer: Option<u64>) -> Removal {
        let removed = integer.is_some_and(|integer| self.bitmap.clear(integer) == Ok(true));
        // Saturating: the header of a mapped file is believed, and may claim fewer than there are.
        self.ones = self.ones.saturating_sub(u64::from(removed));
        Removal::removed_if(removed)
    }
}

impl Merges for Integers {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, Bitmap::union_with)
    }
}

impl Intersects for Integers {
    fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, Bitmap::intersect_with)
    }
}

impl Subtracts for Integers {
    fn subtract(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |ours, theirs| {
            ours.subtract(theirs);
            Ok(())
        })
    }
}

impl BitmapSet {
    /// The bits.
    #[must_use]
    pub fn bitmap(&self) -> &Bitmap {
        &self.0.kernel.bitmap
    }
}
