//! RedisBloom's cuckoo filters (`CF.*`): what `CF.SCANDUMP` gives and `CF.LOADCHUNK` takes.
//!
//! A filter is one table of fingerprints or several, and a key is in any of them. The [chunks](super::redis_dump) are a
//! header and the tables, slot after slot:
//!
//! ```text
//!  0  u64  keys that are in             32  u16  slots of a bucket
//!  8  u64  buckets of the first table   34  u16  moves before an insert gives up
//! 16  u64  removed since the tables     36  u16  growth: buckets of a table, in those of the one before;
//!          were last compacted                   a power of two, 0 does not grow
//! 24  u64  tables
//!
//! key ─▶ 64 bits ─▶ fingerprint 5a, 1 to 255;  bucket i, bucket j = i ^ 5a c            modulo a power of two, in each table
//! ```
//!
//! Keys are bytes as given. A key that is inserted again takes another slot. If there is no room in any table, fingerprints
//! of the newest are moved, a limited number of times; if that does not help they go back, and there is a further table.
//! When more than a tenth of the keys has been removed, those of the newest tables move to older ones, and an empty table
//! goes.
//!
//! The rate cannot be chosen: [`Making::fpr`] is not looked at. Fingerprints have 8 bits, and every table adds its errors to
//! those of the others: `fpr_now` of a report tells.
//!
//! **We differ** in that an empty filter can be dumped. `CF.SCANDUMP` ends before it begins if no key is in, so that a
//! server in its place has to look at [`inserted`](RedisCuckoo::inserted) first. A capacity below two buckets, which
//! `CF.RESERVE` refuses, is taken for two.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::num::{NonZeroU8, NonZeroU16};
use core::ops::Range;

use super::Format;
use super::Making;
use super::redis_dump::{self, Array, Dump};
use crate::bits::OutOfMemory;
use crate::error::{DecodeError, Full, Knob, Limit, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{Capabilities, Details, Guarantee, LayerReport, Slots};
use crate::filters::cuckoo::FAMILY;
use crate::hash::{ForeignHash, Hashing};
use crate::math;
use crate::narrow::{index, low_u16};
use crate::probing::Probing;
use crate::rates::Rate;
use crate::raw::simd::prefetch;
use crate::shell::{Counts, Inserts, Kernel, Removes, Shell, filter};
use crate::spec::{CAPACITY, KnobRange, MAX_BITS, Plan};
use crate::traits::{Insertion, Removal};
use crate::wire::{Fields, Frame, Writer};

/// The format `redisbloom-cuckoo`.
pub static FORMAT: Format = Format {
    name: "redisbloom-cuckoo",
    summary: "RedisBloom's cuckoo filters, the chunks of CF.SCANDUMP in one file",
    fits: redis_dump::fits::<RedisCuckoo>,
    read: |bytes, _| Ok(Box::new(redis_dump::read::<RedisCuckoo>(bytes.as_slice())?)),
    write: Some(|filter| {
        let filter: &dyn Any = filter;
        filter.downcast_ref::<RedisCuckoo>().map(redis_dump::write)
    }),
    make: Some(|making| Ok(Box::new(make(making)?))),
};

/// The defaults of `CF.RESERVE`.
const DEFAULT_BUCKET: NonZeroU8 = NonZeroU8::new(2).expect("not 0");
const DEFAULT_MOVES: NonZeroU16 = NonZeroU16::new(20).expect("not 0");
const DEFAULT_GROWTH: u32 = 1;

/// The highest power of two in 16 bits.
const GROWTH: KnobRange = Knob::Growth.within(0, 1 << 15);

/// The most tables that a filter grows to. Every one of them is asked for each key.
const MAX_TABLES: usize = 1 << 16;

/// What a fingerprint is multiplied with, for its other bucket.
const OTHER: u64 = 0x5bd1_e995;

/// Bits of a fingerprint.
const FINGERPRINT: u32 = 8;

/// The share of the keys that are in; when more have been removed since, tables are compacted.
const REMOVED: f64 = 0.10;

filter! {
    /// A cuckoo filter as RedisBloom's.
    ///
    /// Its number of inserted keys is its own count: those that were inserted, without those that were removed.
    RedisCuckoo(Tables) = FAMILY {
        /// One that is in already takes another slot.
        inserts_until_full,
        removes,
        /// So many slots have its fingerprint, among those that may be of the key.
        counts,
    }
}

/// Its tables of fingerprints.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    keys: u64,
    /// Since the tables were last compacted.
    removed: u64,
    /// Slots of a bucket, at least 1.
    bucket: u16,
    moves: u16,
    growth: u16,
    /// Oldest first. There is always one. Each has a power of two of buckets.
    tables: Vec<Array>,
}

/// Where a key may be: the buckets are the remainders of these numbers, in every table.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    fingerprint: u8,
    first: u64,
    second: u64,
}

impl Buckets {
    fn of(hash: u64) -> Self {
        let fingerprint = (hash % 255) as u8 + 1;
        Self::around(hash, fingerprint)
    }

    /// Of a fingerprint that is in a bucket.
    fn around(first: u64, fingerprint: u8) -> Self {
        Self { fingerprint, first, second: first ^ (u64::from(fingerprint) * OTHER) }
    }
}

/// The slots of a bucket in a table.
fn slots_of(table: &[u8], bucket: u16, number: u64) -> Range<usize> {
    let bucket = usize::from(bucket);
    let buckets = (table.len() / bucket) as u64;
    let start = index(number & (buckets - 1)) * bucket;
    start..start + bucket
}

/// The first slot of one of two buckets that has this; 0 is an empty one.
fn find(table: &[u8], bucket: u16, place: Buckets, wanted: u8) -> Option<usize> {
    [place.first, place.second].into_iter().find_map(|number| {
        let slots = slots_of(table, bucket, number);
        let start = slots.start;
        table[slots].iter().position(|&slot| slot == wanted).map(|at| start + at)
    })
}

fn make(making: &Making) -> Result<RedisCuckoo, SpecError> {
    making.without(Knob::Seed, FORMAT.name)?;
    let growth = making.growth.unwrap_or(DEFAULT_GROWTH);
    GROWTH.check(growth.into())?;
    let growth = low_u16(growth.into());
    RedisCuckoo::reserve(making.capacity, DEFAULT_BUCKET, DEFAULT_MOVES, growth)
}

impl RedisCuckoo {
    /// An empty filter, as `CF.RESERVE` makes it: for so many keys, with so many slots in a bucket, so many moves before an
    /// insert gives up, and a further table of so many times the buckets then, which is rounded up to a power of two; 0
    /// does not grow.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn reserve(
        capacity: u64,
        bucket_size: NonZeroU8,
        max_iterations: NonZeroU16,
        expansion: u16,
    ) -> Result<Self, SpecError> {
        CAPACITY.check(capacity.into())?;
        GROWTH.check(expansion.into())?;
        let growth = if expansion == 0 { 0 } else { expansion.next_power_of_two() };
        let bucket = u16::from(bucket_size.get());
        let buckets = (capacity / u64::from(bucket)).max(2).next_power_of_two();
        let slots = buckets * u64::from(bucket);
        if slots > MAX_BITS / u64::from(FINGERPRINT) {
            return Err(SpecError::TooLarge { bits: slots * u64::from(FINGERPRINT), limit: MAX_BITS });
        }
        let tables = Vec::from([Array::zeroed(slots)?]);
        Ok(Self::of(Tables { keys: 0, removed: 0, bucket, moves: max_iterations.get(), growth, tables }))
    }

    fn of(kernel: Tables) -> Self {
        let hashing = Hashing::Foreign(ForeignHash::Murmur64a);
        Self(Shell { hashing, inserted: kernel.counted(), kernel })
    }

    /// How many were removed since the tables were last compacted.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.0.kernel.removed
    }

    /// Its tables, oldest first. A key is compared with the slots of two buckets in each.
    #[must_use]
    pub fn layers(&self) -> Vec<LayerReport> {
        self.0.kernel.layers()
    }

    /// Moves the fingerprints of the newest tables to older ones, and drops tables that are empty then.
    pub fn compact(&mut self) {
        self.0.kernel.compact();
    }
}

impl Tables {
    fn layers(&self) -> Vec<LayerReport> {
        let layer = |table: &Array| {
            let (capacity, keys) = (table.as_slice().len() as u64, used(table));
            let fill = keys as f64 / capacity as f64;
            let fpr_now = self.rate_at(fill);
            let probes = 2 * u32::from(self.bucket);
            LayerReport { capacity, keys, bits: capacity * u64::from(FINGERPRINT), probes, fill, fpr_now }
        };
        self.tables.iter().map(layer).collect()
    }

    /// The rate of one table.
    fn rate_at(&self, load: f64) -> f64 {
        math::cuckoo_fpr_with_slots(FINGERPRINT, self.bucket.into(), load)
    }

    fn capacity(&self) -> u64 {
        self.tables.iter().map(|table| table.as_slice().len() as u64).sum()
    }

    fn used(&self) -> u64 {
        self.tables.iter().map(used).sum()
    }

    fn newest(&self) -> &Array {
        self.tables.last().expect("there is always one")
    }

    /// Takes an empty slot of either bucket, in the newest table that has one.
    fn put(&mut self, place: Buckets) -> bool {
        let bucket = self.bucket;
        self.tables.iter_mut().rev().any(|table| put_in(table, bucket, place))
    }

    /// Moves fingerprints of the newest table until one finds an empty slot; if none does they are all where they were.
    fn put_by_moves(&mut self, place: Buckets) -> bool {
        let (bucket, moves) = (self.bucket, self.moves);
        let table = self.tables.last_mut().expect("there is always one").as_mut_slice();
        let (mut homeless, mut number) = (place.fingerprint, place.first);
        let mut moved = Vec::new();
        for step in 0..moves {
            let slot = slots_of(table, bucket, number).start + usize::from(step % bucket);
            core::mem::swap(&mut homeless, &mut table[slot]);
            moved.push(slot);
            number ^= u64::from(homeless) * OTHER;
            let slots = slots_of(table, bucket, number);
            if let Some(empty) = table[slots].iter_mut().find(|slot| **slot == 0) {
                *empty = homeless;
                return true;
            }
        }
        for slot in moved.into_iter().rev() {
            core::mem::swap(&mut homeless, &mut table[slot]);
        }
        false
    }

    fn next_table(&self) -> Result<Array, Full> {
        let full = |limit| Err(Full { limit, inserted: 0 });
        if self.growth == 0 {
            let slots = self.capacity();
            return full(Limit::Slots { capacity: slots, used: self.used(), slots });
        }
        if self.tables.len() >= MAX_TABLES {
            return full(Limit::Layers { most: MAX_TABLES as u64 });
        }
        let bytes = (self.newest().as_slice().len() as u64).saturating_mul(self.growth.into());
        if bytes > MAX_BITS / u64::from(FINGERPRINT) {
            return full(Limit::Memory { bytes });
        }
        Array::zeroed(bytes).or_else(|OutOfMemory { bytes }| full(Limit::Memory { bytes }))
    }

    fn compact(&mut self) {
        while let Some((newest, older)) = self.tables.split_last_mut()
            && !older.is_empty()
        {
            let bucket = self.bucket;
            let mut all_moved = true;
            for (slot, fingerprint) in newest.as_mut_slice().iter_mut().enumerate() {
                if *fingerprint != 0 {
                    let place = Buckets::around((slot / usize::from(bucket)) as u64, *fingerprint);
                    if older.iter_mut().any(|table| put_in(table, bucket, place)) {
                        *fingerprint = 0;
                    } else {
                        all_moved = false;
                    }
                }
            }
            if !all_moved {
                break;
            }
            self.tables.pop();
        }
        self.removed = 0;
    }

    fn header(&self) -> Vec<u8> {
        let buckets = self.tables[0].as_slice().len() as u64 / u64::from(self.bucket);
        let numbers = [self.keys, buckets, self.removed, self.tables.len() as u64];
        let mut header: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        header.extend([self.bucket, self.moves, self.growth].into_iter().flat_map(u16::to_le_bytes));
        header
    }

    fn arrays(&self) -> impl Iterator<Item = &[u8]> {
        self.tables.iter().map(Array::as_slice)
    }
}

/// Takes an empty slot of either bucket.
fn put_in(table: &mut Array, bucket: u16, place: Buckets) -> bool {
    let empty = find(table.as_slice(), bucket, place, 0);
    if let Some(slot) = empty {
        table.as_mut_slice()[slot] = place.fingerprint;
    }
    empty.is_some()
}

fn used(table: &Array) -> u64 {
    table.as_slice().iter().map(|&slot| u64::from(slot != 0)).sum()
}

/// What a header tells.
struct Header {
    keys: u64,
    buckets: u64,
    removed: u64,
    tables: u64,
    bucket: u16,
    moves: u16,
    growth: u16,
}

impl Header {
    fn parse(header: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(header);
        let parsed = Self {
            keys: fields.u64("keys")?,
            buckets: fields.u64("buckets")?,
            removed: fields.u64("removed keys")?,
            tables: fields.u64("tables")?,
            bucket: fields.u16("slots of a bucket")?,
            moves: fields.u16("moves")?,
            growth: fields.u16("growth")?,
        };
        fields.end("header", header.len())?;
        let refused = |field, found| Err(DecodeError::Value { field, found });
        if !parsed.buckets.is_power_of_two() {
            return refused("buckets", parsed.buckets);
        }
        if parsed.tables == 0 {
            return refused("tables", 0);
        }
        if parsed.bucket == 0 {
            return refused("slots of a bucket", 0);
        }
        // A filter that does not grow has one table.
        if !parsed.growth.is_power_of_two() && (parsed.growth != 0 || parsed.tables != 1) {
            return refused("growth", parsed.growth.into());
        }
        Ok(parsed)
    }

    /// The slots of each table; `None` beyond all numbers.
    fn tables(&self) -> impl Iterator<Item = Option<u64>> {
        let mut slots = self.buckets.checked_mul(self.bucket.into());
        (0..self.tables).map(move |_| {
            let these = slots;
            slots = slots.and_then(|slots| slots.checked_mul(self.growth.into()));
            these
        })
    }
}

impl Dump for RedisCuckoo {
    fn lengths(header: &[u8], limit: u64) -> Result<Vec<u64>, DecodeError> {
        redis_dump::fitting(Header::parse(header)?.tables(), limit)
    }

    fn begin(header: &[u8], limit: u64) -> Result<Self, DecodeError> {
        let lengths = Self::lengths(header, limit)?;
        let Header { keys, removed, bucket, moves, growth, .. } = Header::parse(header)?;
        let tables = lengths.into_iter().map(Array::zeroed).collect::<Result<_, _>>();
        let tables = tables.map_err(|OutOfMemory { bytes }| DecodeError::Memory { bytes })?;
        Ok(Self::of(Tables { keys, removed, bucket, moves, growth, tables }))
    }

    fn header(&self) -> Vec<u8> {
        self.0.kernel.header()
    }

    fn arrays(&self) -> impl Iterator<Item = &[u8]> {
        self.0.kernel.arrays()
    }

    fn array_mut(&mut self, index: usize) -> &mut [u8] {
        self.0.kernel.tables[index].as_mut_slice()
    }
}

impl Kernel for Tables {
    type Hash = u64;

    const GUARANTEE: Guarantee = Guarantee::NoFalseNegativesIfDeletesValid;

    const IS_FOREIGN: bool = true;

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let place = Buckets::of(hash);
        let has = |table: &Array| find(table.as_slice(), self.bucket, place, place.fingerprint).is_some();
        self.tables.iter().any(has)
    }

    /// Both buckets in the newest table, which is the largest.
    fn prefetch(&self, hash: u64) {
        let (newest, Buckets { first, second, .. }) = (self.newest().as_slice(), Buckets::of(hash));
        for number in [first, second] {
            prefetch(newest, slots_of(newest, self.bucket, number).start);
        }
    }

    fn plan(&self) -> Plan {
        let (capacity, full) = (self.capacity(), self.rate_at(1.0));
        let fpr = math::compounded_fpr(self.tables.iter().map(|_| full));
        Plan { capacity, fpr_asked: full, fpr, bits: capacity * u64::from(FINGERPRINT), probes: None }
    }

    fn fill(&self) -> f64 {
        self.used() as f64 / self.capacity() as f64
    }

    fn rate(&self) -> Rate {
        Rate::computed(math::compounded_fpr(self.layers().iter().map(|layer| layer.fpr_now)))
    }

    fn estimated_len(&self) -> f64 {
        self.used() as f64
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(self, other, |filter| {
            let slots = filter.capacity();
            [
                (Parameter::Slots, slots.into()),
                (Parameter::Buckets, (slots / u64::from(filter.bucket)).into()),
            ]
        })
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.arrays().eq(other.arrays())
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::REDIS_BLOOM_CUCKOO);
        out.ones(self.used());
        redis_dump::encode(self.header(), self.arrays(), out);
    }

    fn read(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        let RedisCuckoo(Shell { kernel, hashing: expected, .. }) = redis_dump::decode(frame)?;
        super::must_be_hashed(frame, hashing, expected)?;
        Ok(kernel)
    }

    /// It takes more and more keys, but does not keep its rate: it does not grow as others do.
    fn can(&self) -> Option<Capabilities> {
        Some(Capabilities { merges: false, ..FAMILY.can })
    }

    fn counted(&self) -> Option<u64> {
        Some(self.keys)
    }

    fn program(&self) -> Option<&'static str> {
        Some(FORMAT.name)
    }

    fn details(&self) -> Details<'_> {
        let slots = Slots { slots: self.capacity(), used: self.used(), evictions: None };
        Details { layers: self.layers(), slots: Some(slots), ..Details::default() }
    }
}

impl Inserts for Tables {
    type Error = Full;

    fn insert(&mut self, hash: u64) -> Result<Insertion, Full> {
        let known = self.contains(hash);
        let place = Buckets::of(hash);
        if !self.put(place) && !self.put_by_moves(place) {
            let mut table = self.next_table()?;
            put_in(&mut table, self.bucket, place);
            self.tables.push(table);
        }
        self.keys = self.keys.saturating_add(1);
        Ok(Insertion::new_if(!known))
    }
}

impl Removes for Tables {
    fn remove(&mut self, hash: u64) -> Removal {
        let (bucket, place) = (self.bucket, Buckets::of(hash));
        let removed = self.tables.iter_mut().rev().any(|table| {
            let slot = find(table.as_slice(), bucket, place, place.fingerprint);
            if let Some(slot) = slot {
                table.as_mut_slice()[slot] = 0;
            }
            slot.is_some()
        });
        if removed {
            self.keys = self.keys.saturating_sub(1);
            self.removed = self.removed.saturating_add(1);
            if self.tables.len() > 1 && self.removed as f64 > self.keys as f64 * REMOVED {
                self.compact();
            }
        }
        Removal::removed_if(removed)
    }
}

impl Counts for Tables {
    fn count(&self, hash: u64) -> u64 {
        let Buckets { fingerprint, first, second } = Buckets::of(hash);
        let mut count = 0;
        for table in self.arrays() {
            let (ours, others) = (slots_of(table, self.bucket, first), slots_of(table, self.bucket, second));
            // Both may be the same one.
            let others = if others == ours { 0..0 } else { others };
            let slots = table[ours].iter().chain(&table[others]);
            count += slots.filter(|&&slot| slot == fingerprint).count() as u64;
        }
        count
    }
}
