//! Spatial Bloom filter: many sets in one filter, and the answer is which one.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use super::counting::{read_ahead, write_ahead};
use crate::bits::{Counters, CountersMut, CountersRef, Width, words_for};
use crate::error::{
    AreaNameProblem, DecodeError, Full, Knob, Limit, Mismatch, Parameter, SpecError, must_agree,
};
use crate::family::{AreaReport, AreasReport, Cost, Details, Family, Make, Profile, Space};
use crate::filters::bloom::BloomSize;
use crate::hash::{Digest, Hashing};
use crate::math;
use crate::narrow::{index, low_u8, low_u16};
use crate::paths::Paths;
use crate::probing::{Probing, positions};
use crate::rates::{self, Rate};
use crate::shell::{self, Empty, Kernel, Labels, Merges, filter};
use crate::spec::{MAX_BITS, Plan, Size, Spec};
use crate::traits::{Insertion, Label};
use crate::wire::{Fields, Frame, LABELS, Writer};

/// The family `spatial`.
pub(crate) static FAMILY: Family = Family {
    id: 12,
    name: "spatial",
    summary: "many sets in one filter: which one is a key in?",
    can: Spatial::CAN,
    knobs: &[Knob::Probes.any(), Knob::Areas.within(1, MAX_AREAS)],
    probing: &[Probing::SCALED],
    cost: Cost { query: "O(k)", insert: "O(k)", space: "11.5 n log2(1/p)" },
    make: Make::Empty(|spec| Ok(Box::new(Spatial::from_spec(spec)?))),
    shared: None,
    plan: |spec| Ok(spec.spatial()?.plan()),
    decode: |frame, hashing| Ok(Box::new(Spatial::decode(frame, hashing)?)),
    // The numbers of each area lie behind the cells and change with them.
    in_place: false,
    profile: Profile {
        space: Some(Space { per_key: |bits| 11.542 * bits, less: 0.01, more: 0.01 }),
        ..Profile::USUAL
    },
};

/// The numbers of a spatial filter, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SpatialSize {
    /// The number of keys it is made for, in all areas together.
    pub capacity: u64,
    /// Its cells.
    pub cells: u64,
    /// Positions per key.
    pub probes: u32,
    /// Its areas, with the numbers from 1 on.
    pub areas: u16,
    /// Bits of the label in each cell: 8 or 16.
    pub label_bits: u32,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate that these integers give at capacity: of absent keys that get some label.
    pub fpr: f64,
}

impl SpatialSize {
    /// The bits of all cells together.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.cells.saturating_mul(self.label_bits as u64)
    }
}

impl Size for SpatialSize {
    fn plan(&self) -> Plan {
        let Self { capacity, probes, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: Some(probes) }
    }
}

/// The most areas: as many as labels of 16 bits tell apart, one of which is "none".
pub const MAX_AREAS: u32 = u16::MAX as u32;

/// The number of areas if none is requested: as many as labels of 8 bits tell apart.
const AREAS_OF_A_BYTE: u16 = u8::MAX as u16;

impl Spec {
    /// Solves for what is not requested, for a spatial filter: a Bloom filter of all keys with labels in place of bits, of 8
    /// bits for up to 255 areas, else of 16.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(100_000, 0.001).with_areas(3).spatial()?;
    /// assert_eq!((sized.cells, sized.probes, sized.label_bits), (1_437_759, 10, 8));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn spatial(&self) -> Result<SpatialSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let areas = asked.areas.map_or(AREAS_OF_A_BYTE, |areas| low_u16(areas.into()));
        let label_bits = if areas <= AREAS_OF_A_BYTE { 8 } else { 16 };
        let BloomSize { capacity, bits: cells, probes, fpr_asked, fpr } =
            asked.cells(|cells| cells.saturating_mul(label_bits.into()))?;
        Ok(SpatialSize { capacity, cells, probes, areas, label_bits, fpr_asked, fpr })
    }
}

/// The most bytes that the name of an area can have.
const MAX_NAME: usize = 255;

filter! {
    /// A spatial Bloom filter.
    ///
    /// **Answers** "in which of these areas is this key?"
    /// **Promise** the label of a key that is in an area is never none, nor a lower area; an absent key gets a label with the
    /// requested rate at capacity.
    /// **Not for** one set (a label is eight bits where [`Bloom`](crate::Bloom) has one); keys that are removed; areas whose
    /// confusion costs the same both ways, since all errors go upwards.
    ///
    /// ```text
    ///   areas: 1 quiet, 2 work, 3 danger       cells     0 2 0 0 1 0 3 0 2 0 0 3 0
    ///   insert a key into 2: raise to 2                    ▲     ▲             ▲      2, 2 (was 1), 3 (stays)
    ///   ask: the lowest of 2, 2, 3 is 2: work, perhaps
    /// ```
    ///
    /// | operation | cache lines                  | can fail     |
    /// |-----------|------------------------------|--------------|
    /// | label     | `probes`; 2 for most misses  | no           |
    /// | insert    | `probes`                     | no such area |
    /// | merge     | all, in order                | mismatch     |
    ///
    /// Areas have the numbers from 1 on, and may have names. A higher number outranks a lower one: where keys of two areas
    /// meet in a cell, the higher one takes it. So an error can only raise a label. A key whose cells have all been taken by
    /// higher areas gets the label of one of those (*inter-set error*), and the labels of keys of the highest area are always right.
    /// Put the areas that must not be missed last. A key that was inserted into several areas is in the highest of them.
    ///
    /// [`details`](crate::AnyFilter::details) has the expected and the actual error rates of each area. They are a little sharper
    /// if keys are inserted area after area, lowest first.
    ///
    /// **Paper** Palmieri, Calderoni, Maio, *Spatial Bloom Filters: Enabling Privacy in Location-Aware Applications*,
    /// Inscrypt 2014; Calderoni, Palmieri, Maio, *Probabilistic Properties of the Spatial Bloom Filters and Their Relevance to
    /// Cryptographic Protocols*, 2018.
    /// **We differ** in that areas may be inserted in any order, and that the number of cells is the one that the rate needs,
    /// where the reference takes the next power of two.
    ///
    /// Its [capacity](Spatial::capacity) is the number of keys in all areas together. It contains a key that is probably in some
    /// area. Two filters are equal if they give the same answer to every key: same size, names, hashing and cells.
    ///
    /// ```
    /// use mayhap::Spatial;
    ///
    /// let mut zones = Spatial::new(&["quiet", "work", "danger"], 10_000, 0.001)?;
    /// zones.insert("kitchen", 1)?;
    /// zones.insert("furnace", 3)?;
    /// assert_eq!(zones.label("furnace"), Some(3)); // certain: nothing is higher
    /// assert!(zones.label("kitchen") >= Some(1)); // 1, or higher by mistake, but never none
    /// assert_eq!(zones.name(3), Some("danger"));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Spatial(Cells) = FAMILY {
        /// Its areas have no names. Bits are those of all cells together.
        ///
        /// [`clear`](Spatial::clear) keeps the names.
        specified,
        /// It is the area of the key or a higher one.
        labels,
        matches,
        /// Each area holds the keys of both filters, as if they had been inserted here.
        merges,
    }
}

/// The cells of a spatial Bloom filter, and what is known of its areas.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// The label of each cell. Labels are raised like counters, and the label of a key is the lowest of its cells.
    cells: Counters,
    size: SpatialSize,
    paths: Paths,
    /// Cells that have a label.
    occupied: u64,
    areas: Vec<Area>,
    /// The highest area that has a key; 0 if none has.
    highest: u16,
    /// Whether keys were inserted area after area, lowest first. If not, higher labels have hidden how often a key of a lower
    /// area found its own label, and that is not counted any more.
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
    /// How often a key found its label in a cell; 0 if the areas were not in ascending order.
    self_collisions: u64,
}

impl Cells {
    /// The lowest label of a key's cells: 0 is none.
    #[inline]
    fn lowest(&self, digest: Digest) -> u16 {
        label_of(self.cells.view(), digest, &self.size)
    }

    /// Calls `each` with the lowest label of every key's cells.
    #[inline(always)]
    fn lowest_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), mut each: impl FnMut(u16)) {
        let size = self.size;
        read_ahead(self.paths, self.cells.view(), (size.cells, size.probes), keys, hash, |cells, digest| {
            each(label_of(cells, digest, &size));
        });
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

impl Kernel for Cells {
    type Hash = Digest;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.lowest(digest) > 0
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), hits: &mut [bool]) {
        let mut hits = hits.iter_mut();
        self.lowest_each(keys, hash, |label| {
            if let Some(hit) = hits.next() {
                *hit = label > 0;
            }
        });
    }

    fn plan(&self) -> Plan {
        self.size.plan()
    }

    fn held_bytes(&self) -> u64 {
        let names: usize = self.areas.iter().map(|area| area.name.capacity()).sum();
        self.size.bits().div_ceil(8) + (self.areas.capacity() * size_of::<Area>() + names) as u64
    }

    fn fill(&self) -> f64 {
        self.occupied as f64 / self.size.cells as f64
    }

    fn rate(&self) -> Rate {
        let cells = self.cells.view();
        rates::scaled(self.size.cells, self.size.probes, self.occupied, |place| !cells.is_zero(place))
    }

    fn estimated_len(&self) -> f64 {
        math::estimated_len(self.size.cells, self.occupied, self.size.probes)
    }

    fn details(&self) -> Details<'_> {
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
        let report = AreasReport {
            label_bits,
            emptiness: 1.0 - self.fill(),
            safeness_expected: areas.iter().map(|area| area.expected.safeness).product(),
            safeness: areas.iter().map(|area| area.now.safeness).product(),
            mislabelled: areas.iter().map(|area| area.inserted as f64 * area.now.isep).sum(),
            areas,
        };
        Details { areas: Some(report), ..Details::default() }
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(self.size, other.size, |size| {
            [
                (Parameter::Areas, size.areas.into()),
                (Parameter::Bits, size.bits().into()),
                (Parameter::Probes, size.probes.into()),
            ]
        })?;
        let mut names = self.areas.iter().zip(&other.areas);
        match names.position(|(ours, theirs)| ours.name != theirs.name) {
            Some(index) => Err(Mismatch::AreaName { area: low_u16(index as u64) + 1 }),
            None => Ok(()),
        }
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.cells == other.cells
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let SpatialSize { capacity, cells, probes, areas, label_bits, fpr_asked, .. } = self.size;
        out.probing(Probing::SCALED);
        out.ones(self.occupied);
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

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
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
        let words = shell::take_all_words(frame)?;
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
        Ok(Self { cells, size, paths, occupied, areas, highest, ascending })
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }
}

impl Empty for Cells {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let size = spec.spatial()?;
        let cells = Counters::zeroed(size.cells, Width::Fixed(size.label_bits))?;
        let areas = vec![Area::default(); size.areas.into()];
        Ok(Self { cells, size, paths: spec.paths, occupied: 0, areas, highest: 0, ascending: true })
    }

    /// The names stay.
    fn clear(&mut self) {
        self.cells.clear();
        self.occupied = 0;
        self.highest = 0;
        self.ascending = true;
        for area in &mut self.areas {
            *area = Area { name: core::mem::take(&mut area.name), ..Area::default() };
        }
    }
}

impl Labels for Cells {
    fn areas(&self) -> u16 {
        self.size.areas
    }

    fn area_name(&self, area: u16) -> Option<&str> {
        let area = self.areas.get(usize::from(area.checked_sub(1)?))?;
        Some(area.name.as_str()).filter(|name| !name.is_empty())
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

    #[inline]
    fn label(&self, digest: Digest) -> Option<NonZeroU16> {
        NonZeroU16::new(self.lowest(digest))
    }

    #[inline(always)]
    fn label_each<T>(
        &self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut each: impl FnMut(Option<NonZeroU16>),
    ) {
        self.lowest_each(keys, hash, |label| each(NonZeroU16::new(label)));
    }

    #[inline(always)]
    fn insert_into<T>(
        &mut self,
        area: u16,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        mut each: impl FnMut(Insertion),
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
                each(Insertion::new_if(raised.fresh > 0));
            },
        );
        self.occupied += fresh;
        ours.cells += gained;
        // A crafted file may claim any numbers: the sums saturate instead of wrapping around.
        ours.inserted = ours.inserted.saturating_add(keys.len() as u64);
        if self.ascending {
            ours.self_collisions = ours.self_collisions.saturating_add(own);
        }
        Ok(())
    }
}

impl Merges for Cells {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
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
        // It is not known which cells both had written before a higher area took them.
        self.ascending = false;
        if other.size.capacity > self.size.capacity {
            self.size.capacity = other.size.capacity;
            self.size.fpr = other.size.fpr;
        }
        Ok(())
    }
}

impl Spatial {
    /// An empty filter of areas with these names, lowest first. `capacity` is the number of keys in all areas together, and
    /// `fpr` the rate at which absent keys get a label. An empty name is none.
    ///
    /// # Errors
    /// [`SpecError`] names the number or the name that makes no sense, or the memory that was not granted.
    pub fn new(areas: &[&str], capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        let number = u32::try_from(areas.len()).unwrap_or(u32::MAX);
        let mut filter = Self::from_spec(&Spec::sized(capacity, fpr).with_areas(number))?;
        filter.name_areas(areas)?;
        Ok(filter)
    }

    /// The number of cells.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.0.kernel.size.cells
    }

    /// Bits of the label in each cell: 8 or 16.
    #[must_use]
    pub fn label_bits(&self) -> u32 {
        self.0.kernel.size.label_bits
    }

    /// The label of a cell, 0 if it is empty; `None` behind the last.
    #[must_use]
    pub fn cell(&self, position: u64) -> Option<u16> {
        (position < self.0.kernel.size.cells).then(|| low_u16(self.0.kernel.cells.view().get(position)))
    }

    /// Positions per key.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.0.kernel.size.probes
    }
}

/// The largest label that the bits hold.
fn max_label(size: &SpatialSize) -> u16 {
    u16::MAX >> (16 - size.label_bits)
}

/// Reads the section of areas. It allocates no more than the section has bytes.
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

/// How many cells have each label, from 0 for the empty ones. It reads all cells, and leaves out labels above the number of
/// areas, which no writer gives.
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
    // All are prefetched before the first is read. (In a batch they have been prefetched already.)
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
