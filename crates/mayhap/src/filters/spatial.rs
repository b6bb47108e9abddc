//! Spatial Bloom filter: many sets in one filter, and the answer is which one.
//!
//! **Answers** "in which of these areas is this key?"
//! **Promise** a key that is in an area is never told to be in none, nor in a lower one; an absent key is told to be in
//! some area with the asked rate at capacity.
//! **Not for** one set (a label is eight bits where [`Bloom`](crate::Bloom) has one); keys that leave; areas whose
//! confusion costs the same both ways, since all errors go upwards.
//!
//! ```text
//!   areas: 1 quiet, 2 work, 3 danger       cells     0 2 0 0 1 0 3 0 2 0 0 3 0
//!   insert a key into 2: raise to 2                    ▲     ▲             ▲      2, 2 (was 1), 3 (stays)
//!   ask: the lowest of 2, 2, 3 is 2: work, perhaps
//! ```
//!
//! | operation | cache lines                  | can fail     |
//! |-----------|------------------------------|--------------|
//! | label     | `probes`; 2 for most misses  | no           |
//! | insert    | `probes`                     | no such area |
//! | merge     | all, in order                | mismatch     |
//!
//! Areas have the numbers from 1 on, and may have names. A higher number outranks a lower one: where keys of two areas
//! meet in a cell, the higher one takes it. So an error can only raise a label. A key whose cells have all been taken by
//! higher areas is told to be in one of those (*inter-set error*), and keys of the highest area are always told right.
//! Put the areas that must not be missed last. A key that was inserted into several areas is in the highest of them.
//!
//! [`area_report`](AnyFilter::area_report) tells what to expect of each area, and what has come of it. Its figures need
//! nothing from the caller, but they are a little sharper if areas are inserted one after the other, lowest first.
//!
//! **Paper** Palmieri, Calderoni, Maio, *Spatial Bloom Filters: Enabling Privacy in Location-Aware Applications*,
//! Inscrypt 2014; Calderoni, Palmieri, Maio, *Probabilistic Properties of the Spatial Bloom Filters and Their Relevance to
//! Cryptographic Protocols*, 2018.
//! **We differ** in that areas may be inserted in any order, and that the number of cells is the one that the rate needs,
//! where the reference takes the next power of two.
//!
//! ```
//! use mayhap::Spatial;
//!
//! let mut zones = Spatial::new(&["quiet", "work", "danger"], 10_000, 0.001)?;
//! zones.insert("kitchen", 1)?;
//! zones.insert("furnace", 3)?;
//! assert_eq!(zones.label("furnace"), Some(3)); // certain: nothing is higher
//! assert!(zones.label("kitchen") >= Some(1)); // 1, or higher by mistake, but never none
//! assert_eq!(zones.name(3), Some("danger"));
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use super::counting::{read_ahead, write_ahead};
use crate::batch::copy;
use crate::bits::{Bytes, Counters, CountersMut, CountersRef, Width, Words, words_for};
use crate::error::{AreaNameProblem, DecodeError, Full, Limit, Mismatch, SpecError};
use crate::family::{
    self, AnyFilter, AreaReport, AreasReport, Capabilities, Cost, Family, Guarantee, Make, Report,
};
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::math;
use crate::narrow::{index, low_u8, low_u16};
use crate::paths::Paths;
use crate::probing::{Probing, positions};
use crate::rates::{self, Rate};
use crate::spec::{MAX_BITS, Plan, SpatialSize, Spec};
use crate::traits::{Filter, Insertion, Label, Labels, Merge};
use crate::wire::{Fields, Frame, LABELS, Summing, Writer};

/// The family `spatial`.
pub static FAMILY: Family = Family {
    id: 12,
    name: "spatial",
    summary: "many sets in one filter: which one is a key in?",
    can: Capabilities {
        inserts: false,
        removes: false,
        counts: false,
        labels: true,
        merges: true,
        intersects: false,
        subtracts: false,
        folds: false,
        grows: false,
        exact: false,
    },
    probing: &[Probing::Scaled],
    cost: Cost { query: "O(k)", insert: "O(k)", space: "11.5 n log2(1/p)" },
    make: Make::Empty(|spec| Ok(Box::new(Spatial::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(Spatial::decode(frame, hashing)?)),
    // The numbers of each area lie behind the cells and change with them.
    in_place: false,
};

fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let size = spec.spatial()?;
    let SpatialSize { capacity, probes, fpr_asked, fpr, .. } = size;
    Ok(Plan { capacity, fpr_asked, fpr, bits: size.bits(), probes: Some(probes) })
}

/// The bytes that the name of an area may have. A name is a word or two.
pub const MAX_NAME: usize = 255;

/// A spatial Bloom filter.
#[derive(Clone, Debug)]
pub struct Spatial {
    /// The label of each cell. Labels are raised like counters, and a key's is the lowest of its cells.
    cells: Counters,
    size: SpatialSize,
    hashing: Hashing,
    paths: Paths,
    /// Insert calls; unknown after a merge.
    inserted: Option<u64>,
    /// Cells that have a label.
    occupied: u64,
    areas: Vec<Area>,
    /// The highest area that has a key; 0 if none has.
    highest: u16,
    /// Whether areas came one after the other, lowest first. If not, higher labels have hidden how often a key of a lower
    /// area found its own, and nobody counts that any more.
    ascending: bool,
}

/// What is known of one area.
#[derive(Clone, Debug, Default, PartialEq)]
struct Area {
    /// Empty if it has none.
    name: String,
    /// Insert calls; after a merge those of both.
    inserted: u64,
    /// Cells that have its label.
    cells: u64,
    /// How often a key found its label in a cell; 0 if areas did not ascend.
    self_collisions: u64,
}

/// Two filters are equal if they give the same answer to every key: same size, names, hashing and cells.
impl PartialEq for Spatial {
    fn eq(&self, other: &Self) -> bool {
        self.must_match(other).is_ok() && self.cells == other.cells
    }
}

impl Spatial {
    /// An empty filter of areas with these names, lowest first, for so many keys in all of them together at such a
    /// false-positive rate. An empty name is none.
    ///
    /// # Errors
    /// [`SpecError`] names the number or the name that makes no sense, or the memory that was not granted.
    pub fn new(areas: &[&str], capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        let number = u32::try_from(areas.len()).unwrap_or(u32::MAX);
        let mut filter = Self::from_spec(&Spec::sized(capacity, fpr).with_areas(number))?;
        filter.name_areas(areas)?;
        Ok(filter)
    }

    /// An empty filter of whatever was asked for, whose areas have no names. Bits are those of all cells together.
    ///
    /// # Errors
    /// As for [`new`](Spatial::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let (size, hashing) = (spec.spatial()?, spec.hashed()?);
        let cells = Counters::zeroed(size.cells, Width::Fixed(size.label_bits))?;
        let areas = vec![Area::default(); size.areas.into()];
        let (paths, inserted) = (spec.paths, Some(0));
        let (occupied, highest, ascending) = (0, 0, true);
        Ok(Self { cells, size, hashing, paths, inserted, occupied, areas, highest, ascending })
    }

    /// Inserts a key into an area. [`New`](Insertion::New): it was certainly in no area before.
    ///
    /// # Errors
    /// [`Full`] if there is no such area; then nothing has changed.
    #[inline]
    pub fn insert(&mut self, key: impl Key, area: u16) -> Result<Insertion, Full> {
        let digest = self.hashing.digest_of(key);
        let mut outcome = Insertion::Perhaps;
        self.put_all(&[digest], copy, area, |told| outcome = told)?;
        Ok(outcome)
    }

    /// The area that a key is perhaps in: its own, or a higher one. `None` is certain.
    #[must_use]
    #[inline]
    pub fn label(&self, key: impl Key) -> Option<u16> {
        let label = self.lowest(self.hashing.digest_of(key));
        (label > 0).then_some(label)
    }

    /// Whether a key is perhaps in some area. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_digest(self.hashing.digest_of(key))
    }

    /// The lowest label of a key's cells: 0 is none.
    #[inline]
    fn lowest(&self, digest: Digest) -> u16 {
        label_of(self.cells.view(), digest, &self.size)
    }

    /// Inserts many keys into an area, several at a time in flight.
    ///
    /// # Errors
    /// As for [`insert`](Spatial::insert).
    pub fn insert_all<K: Key>(&mut self, keys: &[K], area: u16) -> Result<(), Full> {
        let hashing = self.hashing;
        self.put_all(keys, |keys, digests| K::digests(keys, &hashing, digests), area, |_| {})
    }

    /// Asks for the areas of many keys, several at a time in flight; appends one answer each, as
    /// [`label`](Spatial::label) gives it.
    pub fn label_each<K: Key>(&self, keys: &[K], labels: &mut Vec<Option<u16>>) {
        labels.reserve(keys.len());
        let hashing = self.hashing;
        let hash = |keys: &[K], digests: &mut [Digest]| K::digests(keys, &hashing, digests);
        self.tell(keys, hash, |label| labels.push((label > 0).then_some(label)));
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    pub fn contains_each<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        hits.reserve(keys.len());
        let hashing = self.hashing;
        let hash = |keys: &[K], digests: &mut [Digest]| K::digests(keys, &hashing, digests);
        self.tell(keys, hash, |label| hits.push(label > 0));
    }

    #[inline(always)]
    fn tell<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [Digest]), mut told: impl FnMut(u16)) {
        let size = self.size;
        read_ahead(self.paths, self.cells.view(), (size.cells, size.probes), keys, hash, |cells, digest| {
            told(label_of(cells, digest, &size));
        });
    }

    #[inline(always)]
    fn put_all<K>(
        &mut self,
        keys: &[K],
        hash: impl Fn(&[K], &mut [Digest]),
        area: u16,
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Full> {
        if area == 0 || area > self.size.areas {
            let limit = Limit::Area { area, areas: self.size.areas };
            return Err(Full { limit, inserted: 0 });
        }
        if !keys.is_empty() {
            if self.ascending && area < self.highest {
                self.ascending = false;
                self.areas.iter_mut().for_each(|area| area.self_collisions = 0);
            }
            self.highest = self.highest.max(area);
        }
        let (lower, ours) = self.areas.split_at_mut(usize::from(area) - 1);
        let ours = &mut ours[0];
        let (size, mut gained, mut fresh, mut own) = (self.size, 0, 0, 0);
        write_ahead(
            self.paths,
            self.cells.view_mut(),
            (size.cells, size.probes),
            keys,
            hash,
            |cells, digest| {
                let raised = raise(cells, digest, &size, area, lower);
                gained += raised.gained;
                fresh += raised.fresh;
                own += raised.own;
                told(Insertion::new_if(raised.fresh > 0));
            },
        );
        let calls = keys.len() as u64;
        self.occupied += fresh;
        ours.cells += gained;
        // A crafted file may claim any numbers: they end at the top instead of going round.
        ours.inserted = ours.inserted.saturating_add(calls);
        if self.ascending {
            ours.self_collisions = ours.self_collisions.saturating_add(own);
        }
        self.inserted = self.inserted.map(|before| before.saturating_add(calls));
        Ok(())
    }

    /// Forgets all keys. The names stay.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.occupied = 0;
        self.inserted = Some(0);
        self.highest = 0;
        self.ascending = true;
        for area in &mut self.areas {
            *area = Area { name: core::mem::take(&mut area.name), ..Area::default() };
        }
    }

    /// How many areas there are; they have the numbers from 1 on.
    #[must_use]
    pub fn areas(&self) -> u16 {
        self.size.areas
    }

    /// What an area is called, if it has a name.
    #[must_use]
    pub fn name(&self, area: u16) -> Option<&str> {
        let area = self.areas.get(usize::from(area.checked_sub(1)?))?;
        Some(area.name.as_str()).filter(|name| !name.is_empty())
    }

    /// The area of this name.
    #[must_use]
    pub fn area(&self, name: &str) -> Option<u16> {
        let index = self.areas.iter().position(|area| area.name == name && !name.is_empty())?;
        Some(low_u16(index as u64) + 1)
    }

    /// The number of cells.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.size.cells
    }

    /// Bits of the label in each cell: 8 or 16.
    #[must_use]
    pub fn label_bits(&self) -> u32 {
        self.size.label_bits
    }

    /// The label of a cell, 0 if it is empty; `None` behind the last.
    #[must_use]
    pub fn cell(&self, position: u64) -> Option<u16> {
        (position < self.size.cells).then(|| low_u16(self.cells.view().get(position)))
    }

    /// Positions per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.size.probes
    }

    /// The number of keys it was made for, in all areas together.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.size.capacity
    }

    /// How keys are hashed.
    #[must_use]
    pub fn hashing(&self) -> Hashing {
        self.hashing
    }

    /// How many keys went in, repeats included. `None` after a merge.
    #[must_use]
    pub fn inserted(&self) -> Option<u64> {
        self.inserted
    }

    /// How many different keys are probably in; infinite when no cell is empty.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        math::estimated_len(self.size.cells, self.occupied, self.size.probes)
    }

    /// The share of the cells that have a label.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.occupied as f64 / self.size.cells as f64
    }

    /// The rate at which absent keys are told to be in some area, of the filter as it is.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        self.rate().value
    }

    fn rate(&self) -> Rate {
        let cells = self.cells.view();
        rates::scaled(self.size.cells, self.size.probes, self.occupied, |place| !cells.is_zero(place))
    }

    /// The same with as many keys as it was made for.
    #[must_use]
    pub fn fpr_at_capacity(&self) -> f64 {
        self.size.fpr
    }

    /// Whether `other` has the same size, probes, areas, names and hashing.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        let (ours, theirs) = (self.size, other.size);
        if ours.areas != theirs.areas {
            return Err(Mismatch::Areas { ours: ours.areas, theirs: theirs.areas });
        }
        if ours.cells != theirs.cells {
            return Err(Mismatch::Bits { ours: ours.bits(), theirs: theirs.bits() });
        }
        if ours.probes != theirs.probes {
            return Err(Mismatch::Probes { ours: ours.probes, theirs: theirs.probes });
        }
        let mut names = self.areas.iter().zip(&other.areas);
        if let Some(index) = names.position(|(ours, theirs)| ours.name != theirs.name) {
            return Err(Mismatch::AreaName { area: low_u16(index as u64) + 1 });
        }
        self.hashing.must_equal(&other.hashing)
    }

    /// Union: afterwards each area of this filter holds the keys of both, as if they had been inserted here.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        let (mut ours, theirs) = (self.cells.view_mut(), other.cells.view());
        for position in 0..self.size.cells {
            let label = theirs.get(position);
            if label > 0 {
                ours.raise(position, label);
            }
        }
        let held = tally(self.cells.view(), &self.size);
        self.occupied = self.size.cells - held[0];
        for ((ours, theirs), &cells) in self.areas.iter_mut().zip(&other.areas).zip(&held[1..]) {
            *ours = Area {
                name: core::mem::take(&mut ours.name),
                inserted: ours.inserted.saturating_add(theirs.inserted),
                cells,
                self_collisions: 0,
            };
        }
        self.highest = self.highest.max(other.highest);
        // Which cells both had written before a higher area took them is lost.
        self.ascending = false;
        self.inserted = None;
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
    }

    /// The filter as it stands in a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        family::encode(self, Summing::Payload).to_vec()
    }

    /// A filter from the bytes of a file.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        family::from_bytes(bytes, None, &FAMILY, Self::decode)
    }

    /// A keyed filter from the bytes of a file.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with them, or that the secret is another one.
    pub fn from_bytes_keyed(bytes: &[u8], secret: &Secret) -> Result<Self, DecodeError> {
        family::from_bytes(bytes, Some(secret), &FAMILY, Self::decode)
    }

    fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        header.must_probe_by(&[Probing::Scaled])?;
        let mut fields = Fields::new(&header.params);
        let cells = fields.u64("cells")?;
        let probes = fields.u32("probes")?;
        let label_bits = fields.u32("bits of a label")?;
        let capacity = fields.u64("capacity")?;
        let fpr_asked = fields.rate("asked rate")?;
        let areas = fields.u32("areas")?;
        let ascending = fields.u32("whether areas ascended")?;
        fields.end("parameters", header.params.len())?;
        let value = |field, found: u64| DecodeError::Value { field, found };
        if label_bits != 8 && label_bits != 16 {
            return Err(value("bits of a label", label_bits.into()));
        }
        let areas = match u16::try_from(areas) {
            Ok(number @ 1..) if (number <= u8::MAX.into()) == (label_bits == 8) => number,
            _ => return Err(value("areas", areas.into())),
        };
        if !(1..=MAX_BITS / u64::from(label_bits)).contains(&cells) {
            return Err(value("cells", cells));
        }
        if !(1..=math::MAX_PROBES).contains(&probes) {
            return Err(value("probes", probes.into()));
        }
        if ascending > 1 {
            return Err(value("whether areas ascended", ascending.into()));
        }
        header.must_be_hashed(hashing)?;
        let fpr = math::bloom_fpr_of_any_size(cells, capacity, probes);
        let size = SpatialSize { capacity, cells, probes, areas, label_bits, fpr_asked, fpr };
        let (expected, found) = (words_for(size.bits()) * 8, header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        let section = frame.take_section(LABELS);
        let section = section.ok_or(DecodeError::Truncated { field: "areas", needed: 1, available: 0 })?;
        let areas = decode_areas(section.as_slice(), &size, ascending == 1)?;
        let occupied = areas.iter().map(|area| area.cells).fold(0, u64::saturating_add);
        match frame.header.ones {
            Some(found) if found != occupied => return Err(value("occupied cells", found)),
            _ if occupied > cells => return Err(value("occupied cells", occupied)),
            _ => {}
        }
        let inserted = frame.header.inserted;
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let words = Words::from_bytes(payload)
            .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
        // A counter that holds the highest label is at its top.
        let saturated = areas.get(usize::from(max_label(&size)) - 1).map_or(0, |area| area.cells);
        let width = Width::Fixed(label_bits);
        let counters = Counters::from_words(words, Vec::new().into(), cells, width, saturated)
            .ok_or(DecodeError::Padding { field: "end of the payload" })?;
        // Counted only when the whole payload is read anyway, so that a large file opens by its header.
        if frame.verified {
            let held = tally(counters.view(), &size);
            if held.iter().sum::<u64>() != cells {
                return Err(DecodeError::Payload { problem: "a label above the number of areas" });
            }
            if let Some((area, _)) = areas.iter().zip(&held[1..]).find(|(area, held)| area.cells != **held) {
                return Err(value("cells of an area", area.cells));
            }
        }
        let highest =
            areas.iter().rposition(|area| area.inserted > 0).map_or(0, |index| low_u16(index as u64) + 1);
        let ascending = ascending == 1;
        let (cells, paths) = (counters, Paths::default());
        Ok(Self { cells, size, hashing, paths, inserted, occupied, areas, highest, ascending })
    }

    fn encode_areas(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for Area { name, inserted, cells, self_collisions } in &self.areas {
            for number in [inserted, cells, self_collisions] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.push(low_u8(name.len() as u64));
            bytes.extend(name.as_bytes());
        }
        bytes
    }
}

/// The largest label that the bits hold.
fn max_label(size: &SpatialSize) -> u16 {
    u16::MAX >> (16 - size.label_bits)
}

/// Reads the section of areas. What it allocates is paid for by the bytes at hand.
fn decode_areas(bytes: &[u8], size: &SpatialSize, ascending: bool) -> Result<Vec<Area>, DecodeError> {
    /// Of one without a name.
    const LEAST: usize = 25;
    let needed = usize::from(size.areas) * LEAST;
    if bytes.len() < needed {
        let (needed, available) = (needed as u64, bytes.len() as u64);
        return Err(DecodeError::Truncated { field: "areas", needed, available });
    }
    let mut rest = bytes;
    let mut areas = Vec::with_capacity(size.areas.into());
    for number in 1..=size.areas {
        let mut fields = Fields::new(rest);
        let inserted = fields.u64("keys of an area")?;
        let cells = fields.u64("cells of an area")?;
        let self_collisions = fields.u64("collisions of an area")?;
        let length = fields.u8("length of a name")?;
        if cells > size.cells {
            return Err(DecodeError::Value { field: "cells of an area", found: cells });
        }
        if !ascending && self_collisions > 0 {
            return Err(DecodeError::Value { field: "collisions of an area", found: self_collisions });
        }
        let (name, behind) = fields.rest().split_at_checked(length.into()).ok_or(DecodeError::Truncated {
            field: "name of an area",
            needed: length.into(),
            available: fields.rest().len() as u64,
        })?;
        let name = core::str::from_utf8(name)
            .map_err(|_| DecodeError::AreaName { area: number, problem: AreaNameProblem::NotText })?;
        areas.push(Area { name: name.to_string(), inserted, cells, self_collisions });
        rest = behind;
    }
    if !rest.is_empty() {
        let (expected, found) = ((bytes.len() - rest.len()) as u64, bytes.len() as u64);
        return Err(DecodeError::Length { field: "areas", expected, found });
    }
    check_names(areas.iter().map(|area| area.name.as_str()))
        .map_err(|(area, problem)| DecodeError::AreaName { area, problem })?;
    Ok(areas)
}

/// Names can be printed in a line and tell areas apart; an empty one is none.
pub(crate) fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), (u16, AreaNameProblem)> {
    let mut taken = BTreeMap::new();
    for (area, name) in (1..=u16::MAX).zip(names) {
        if name.len() > MAX_NAME {
            return Err((area, AreaNameProblem::Long { bytes: name.len(), limit: MAX_NAME }));
        }
        if name.contains(char::is_control) {
            return Err((area, AreaNameProblem::Control));
        }
        if let Some(by) = taken.insert(name, area).filter(|_| !name.is_empty()) {
            return Err((area, AreaNameProblem::Taken { by }));
        }
    }
    Ok(())
}

/// How many cells have each label, from 0 for the empty ones. Reads everything. Labels above the number of areas, which no
/// writer gives, are left out.
fn tally(cells: CountersRef<'_>, size: &SpatialSize) -> Vec<u64> {
    let mut held = vec![0; usize::from(size.areas) + 1];
    for position in 0..size.cells {
        if let Some(held) = held.get_mut(index(cells.get(position))) {
            *held += 1;
        }
    }
    held
}

/// The lowest label of a key's cells.
#[inline(always)]
fn label_of(cells: CountersRef<'_>, digest: Digest, size: &SpatialSize) -> u16 {
    low_u16(cells.least(positions(digest, size.probes, size.cells)))
}

/// What an insert has done to cells.
struct Raised {
    /// Cells that have got the label.
    gained: u64,
    /// Those of them that were empty.
    fresh: u64,
    /// How often the label was there already.
    own: u64,
}

/// Raises the cells of a key to a label. Lower areas lose those that they had.
#[inline(always)]
fn raise(
    cells: &mut CountersMut<'_>,
    digest: Digest,
    size: &SpatialSize,
    area: u16,
    lower: &mut [Area],
) -> Raised {
    let area = u64::from(area);
    let mut raised = Raised { gained: 0, fresh: 0, own: 0 };
    // All are asked for before the first is waited for. (In a batch they have been asked for already.)
    positions(digest, size.probes, size.cells).for_each(|position| cells.view().prefetch(position));
    for position in positions(digest, size.probes, size.cells) {
        let before = cells.raise(position, area);
        raised.own += u64::from(before == area);
        raised.gained += u64::from(before < area);
        raised.fresh += u64::from(before == 0);
        if (1..area).contains(&before) {
            // A header that was not compared with its payload may have claimed fewer.
            let loser = &mut lower[index(before) - 1];
            loser.cells = loser.cells.saturating_sub(1);
        }
    }
    raised
}

impl Filter for Spatial {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.lowest(digest) > 0
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        hits.reserve(digests.len());
        self.tell(digests, copy, |label| hits.push(label > 0));
    }
}

fn labels(label: u16) -> Labels {
    NonZeroU16::new(label).map_or(Labels::None, Labels::One)
}

impl Label for Spatial {
    fn areas(&self) -> u16 {
        self.size.areas
    }

    fn area_name(&self, area: NonZeroU16) -> Option<&str> {
        self.name(area.get())
    }

    fn name_areas(&mut self, names: &[&str]) -> Result<(), SpecError> {
        if names.len() != self.areas.len() {
            return Err(SpecError::AreaNames { names: names.len(), areas: self.size.areas });
        }
        check_names(names.iter().copied())
            .map_err(|(area, problem)| SpecError::AreaName { area, problem })?;
        for (area, name) in self.areas.iter_mut().zip(names) {
            area.name = name.to_string();
        }
        Ok(())
    }

    fn insert_labelled(&mut self, digest: Digest, area: NonZeroU16) -> Result<Insertion, Full> {
        let mut outcome = Insertion::Perhaps;
        self.put_all(&[digest], copy, area.get(), |told| outcome = told)?;
        Ok(outcome)
    }

    fn insert_labelled_batch(
        &mut self,
        digests: &[Digest],
        area: NonZeroU16,
        outcomes: &mut Vec<Insertion>,
    ) -> Result<(), Full> {
        self.put_all(digests, copy, area.get(), |outcome| outcomes.push(outcome))
    }

    fn label_digest(&self, digest: Digest) -> Labels {
        labels(self.lowest(digest))
    }

    fn label_batch(&self, digests: &[Digest], told: &mut Vec<Labels>) {
        told.reserve(digests.len());
        self.tell(digests, copy, |label| told.push(labels(label)));
    }
}

impl Merge for Spatial {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.merge(family::same_type(self, other)?)
    }
}

impl AnyFilter for Spatial {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn report(&self) -> Report {
        let rate = self.rate();
        let estimated_len = self.estimated_len();
        Report {
            capacity: self.size.capacity,
            inserted: self.inserted,
            estimated_len: estimated_len.is_finite().then_some(estimated_len),
            bits: self.size.bits(),
            probes: Some(self.size.probes),
            fill: self.fill(),
            fpr_asked: self.size.fpr_asked,
            fpr_now: rate.value,
            fpr_interval: rate.interval(),
            fpr_at_capacity: self.size.fpr,
            guarantee: Guarantee::NoFalseNegatives,
        }
    }

    fn area_report(&self) -> Option<AreasReport<'_>> {
        let SpatialSize { cells, probes, label_bits, .. } = self.size;
        let keys: Vec<u64> = self.areas.iter().map(|area| area.inserted).collect();
        let collisions = |area: &Area| self.ascending.then_some(area.self_collisions);
        let held: Vec<_> =
            self.areas.iter().map(|area| (area.inserted, area.cells, collisions(area))).collect();
        let expected = math::spatial_expected(cells, probes, &keys);
        let now = math::spatial_measured(cells, probes, &held);
        let areas = self.areas.iter().zip((1..=u16::MAX).filter_map(NonZeroU16::new)).zip(expected).zip(now);
        let areas: Vec<AreaReport<'_>> = areas
            .map(|(((area, number), expected), now)| AreaReport {
                area: number,
                name: &area.name,
                inserted: area.inserted,
                cells: area.cells,
                self_collisions: collisions(area),
                expected,
                now,
            })
            .collect();
        Some(AreasReport {
            label_bits,
            emptiness: 1.0 - self.fill(),
            safeness_expected: areas.iter().map(|area| area.expected.safeness).product(),
            safeness: areas.iter().map(|area| area.now.safeness).product(),
            mislabelled: areas.iter().map(|area| area.inserted as f64 * area.now.isep).sum(),
            areas,
        })
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        let SpatialSize { capacity, cells, probes, areas, label_bits, fpr_asked, .. } = self.size;
        out.probing(Probing::Scaled);
        out.counts(self.inserted, self.occupied);
        out.params()
            .u64(cells)
            .u32(probes)
            .u32(label_bits)
            .u64(capacity)
            .f64(fpr_asked)
            .u32(areas.into())
            .u32(self.ascending.into());
        out.words(self.cells.words());
        out.section(LABELS, self.encode_areas());
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.contains_each(keys, hits);
    }

    fn as_label(&self) -> Option<&dyn Label> {
        Some(self)
    }
    fn as_label_mut(&mut self) -> Option<&mut dyn Label> {
        Some(self)
    }
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }
}
