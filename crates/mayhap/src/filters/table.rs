//! Table: shortened digests in cache lines, for "did this come before?" at the speed of memory.
//!
//! **Answers** "was this key inserted?", and while inserting "is it new?", for as many keys as come.
//! **Promise** a key that is in is never denied; an absent key is admitted if it has the name of a key that is in: with a
//! chance of `n / N`, for `n` keys and `N` names.
//! **Not for** rates above 1e-8, at which a `Bloom` has fewer bits; removing.
//!
//! ```text
//!   key ─▶ digest ─▶ first half, scaled down: a name below N ─▶ scaled up: 0101100111010…   below lines · 2^r
//!                                                                    line ─┘└─ remainder, r bits
//!
//!   line, 64 bytes      [ remainder 0 | 0 | remainder 3 | 0 | remainder 1 | 1 | …                         | how many ]
//!                                       └─ lines from its own         └─ from the line before, which is full
//! ```
//!
//! | operation | cache lines            | can fail                                   |
//! |-----------|------------------------|--------------------------------------------|
//! | contains  | 1, seldom a neighbour  | no                                         |
//! | insert    | 1, seldom a neighbour  | no memory to grow; then nothing has changed |
//! | growing   | all, in order          | no memory; then nothing has changed        |
//! | merge     | all, in order          | mismatch, no memory; then nothing changed  |
//!
//! The line tells the first part of a name, which is not stored: Knuth's quotienting. A remainder whose line is full goes to
//! one of the next three, with the distance beside it; if those are full too, the name goes to a list. As nothing is removed,
//! a line that is not full ends every search.
//!
//! **Growing** by a half: remainders are read in order and written in order, since a name that is scaled up rises with the
//! name and tells it back. `N` stays, so that no key changes its name. Memory that was read is given back meanwhile, where the
//! system takes it, so that both tables together take hardly more than the new one. The bits that a larger table has in the
//! number of its line its remainders need not have.
//!
//! **Paper** Knuth, *The Art of Computer Programming* 3, 1973, exercise 6.4.13, and Cleary, *Compact Hash Tables Using
//! Bidirectional Linear Probing*, IEEE ToC 1984, for a table that stores what the place does not tell. Lines and lanes,
//! names of any number, and growing by a half are ours.
//!
//! ```
//! use mayhap::{Insertion, Table};
//!
//! let mut seen = Table::with_fpr(1e-9)?;
//! assert_eq!(seen.insert("https://example.org/")?, Insertion::New);
//! assert_eq!(seen.insert("https://example.org/")?, Insertion::Perhaps);
//! assert!(seen.contains("https://example.org/") && !seen.contains("https://example.org/a"));
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::batch;
use crate::bits::{Bytes, Remainders, Words};
use crate::error::{DecodeError, Error, Full, Limit, Mismatch, SpecError};
use crate::family::{self, AnyFilter, Capabilities, Cost, Family, Guarantee, Make, Report, Slots};
use crate::hash::{Digest, Hashing, Key, Secret};
use crate::math;
use crate::narrow::index;
use crate::paths::Paths;
use crate::probing::Probing;
use crate::raw::simd::{Compare, Line, LineWork, prefetch, with_lines};
use crate::spec::{Plan, Spec, TABLE_CAPACITY, TableSize};
use crate::table_shape::{DISTANCE_BITS, FARTHEST, Place, Shape};
use crate::traits::{Filter, Insert, Insertion, Merge};
use crate::wire::{Fields, Frame, Summing, Writer};

/// The family `table`.
pub static FAMILY: Family = Family {
    id: 20,
    name: "table",
    summary: "is it new? for rates of 1e-8 and below",
    can: Capabilities {
        inserts: true,
        removes: false,
        counts: false,
        labels: false,
        merges: true,
        intersects: false,
        subtracts: false,
        folds: false,
        grows: true,
        exact: false,
    },
    cost: Cost {
        query: "O(1)",
        insert: "O(1) amortized",
        space: "1.15 to 1.75 n (log2(1/p) + 6 + doublings)",
    },
    make: Make::Empty(|spec| Ok(Box::new(Table::from_spec(spec)?))),
    shared: None,
    plan: |spec| {
        let size = spec.table()?;
        let TableSize { capacity, fpr_asked, fpr, .. } = size;
        // As many names beside the lines as the keys that are asked for bring; where none are, as many as it takes.
        let bits = size.bits() + 64 * size.crowded(spec.capacity().unwrap_or(capacity));
        Ok(Plan { capacity, fpr_asked, fpr, bits, probes: None })
    },
    decode: |frame, hashing| Ok(Box::new(Table::decode(frame, hashing)?)),
    // Growing needs other words.
    in_place: false,
};

/// Tables smaller than this stay in the second-level cache, where prefetching brings nothing.
const PREFETCH_FROM_BYTES: usize = 128 * 1024;

/// Keys that are inserted before it is looked whether the table must grow.
const STRETCH: usize = 4096;

/// Lines that are read while growing before their memory is given back: 16 MiB.
const GIVEN_BACK: usize = 1 << 18;

/// What a search ends with.
enum Found {
    /// The key.
    Key,
    /// Room for it, in this line, which has so many remainders.
    Room { line: usize, count: u32, distance: u64 },
    /// Full lines.
    NoRoom,
}

/// The lines of a table, to be searched.
#[inline(always)]
fn search(compare: impl Compare, remainders: Remainders, lines: &[Line], place: Place) -> Found {
    for distance in 0..=FARTHEST {
        // There are as many behind the last line of a key. A crafted file cannot have fewer.
        let at = index(place.line + distance);
        let line = &lines[at];
        if remainders.has(compare, line, place.remainder | distance) {
            return Found::Key;
        }
        let count = remainders.count(line);
        if count < remainders.slots() {
            return Found::Room { line: at, count, distance };
        }
    }
    Found::NoRoom
}

/// Puts what is known to be new where there is room; `false` if there is none near its line.
#[inline(always)]
fn push(remainders: Remainders, lines: &mut [Line], place: Place) -> bool {
    for distance in 0..=FARTHEST {
        let line = &mut lines[index(place.line + distance)];
        let count = remainders.count(line);
        if count < remainders.slots() {
            remainders.push(line, count, place.remainder | distance);
            return true;
        }
    }
    false
}

/// A table of shortened digests.
#[derive(Clone, Debug)]
pub struct Table {
    words: Words,
    shape: Shape,
    /// The names of the keys for which there was no room near their lines.
    crowded: BTreeSet<u64>,
    /// How many keys are in the lines.
    used: u64,
    /// Keys that went in, repeats included; unknown after a merge.
    inserted: Option<u64>,
    fpr_asked: f64,
    hashing: Hashing,
    paths: Paths,
    /// The lines are known to be as they are written here. If not, they are looked at before they are changed.
    is_whole: bool,
}

/// Two tables are equal if they have the same lines, keys and hashing. The same keys in another order make other lines.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.hashing.must_equal(&other.hashing).is_ok()
            && self.words == other.words
            && self.crowded == other.crowded
    }
}

impl Table {
    /// An empty table that takes so many keys before it grows, at such a false-positive rate also when it has doubled 20
    /// times, or as often as 63 bits of a digest allow.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn new(capacity: u64, fpr: f64) -> Result<Self, SpecError> {
        Self::from_spec(&Spec::sized(capacity, fpr))
    }

    /// An empty table for any number of keys: it starts with room for 1024.
    ///
    /// # Errors
    /// As for [`new`](Table::new).
    pub fn with_fpr(fpr: f64) -> Result<Self, SpecError> {
        Self::new(TABLE_CAPACITY, fpr)
    }

    /// An empty table of whatever was asked for.
    ///
    /// # Errors
    /// As for [`new`](Table::new).
    pub fn from_spec(spec: &Spec) -> Result<Self, SpecError> {
        let TableSize { shape, fpr_asked, .. } = spec.table()?;
        Ok(Self { paths: spec.paths, ..Self::empty(shape, fpr_asked, spec.hashed()?)? })
    }

    fn empty(shape: Shape, fpr_asked: f64, hashing: Hashing) -> Result<Self, SpecError> {
        Ok(Self {
            words: Words::zeroed(shape.all_lines() * 8)?,
            shape,
            crowded: BTreeSet::new(),
            used: 0,
            inserted: Some(0),
            fpr_asked,
            hashing,
            paths: Paths::default(),
            is_whole: true,
        })
    }

    /// Inserts a key: [`Insertion::Perhaps`] says that it was perhaps in, and nothing has changed.
    ///
    /// # Errors
    /// [`Full`] if it must grow and there is no memory; then nothing has changed.
    #[inline]
    pub fn insert(&mut self, key: impl Key) -> Result<Insertion, Full> {
        let digest = self.hashing.digest_of(key);
        self.put(digest.a)
    }

    /// Whether a key is perhaps in. `false` is certain.
    #[must_use]
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.has(self.hashing.digest_of(key).a)
    }

    /// Asks for many keys, several at a time in flight; appends one answer each.
    pub fn contains_all<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.ask(keys, |keys, halves| K::halves(keys, &hashing, halves), hits);
    }

    /// Inserts many keys in order, several at a time in flight; appends one outcome each. A key that comes twice in them is
    /// new once.
    ///
    /// # Errors
    /// [`Full`] says for how many there is an outcome, before it had to grow and there was no memory.
    pub fn insert_all<K: Key>(&mut self, keys: &[K], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        let hashing = self.hashing;
        self.fill(keys, |keys, halves| K::halves(keys, &hashing, halves), outcomes)
    }

    #[inline]
    fn has(&self, half: u64) -> bool {
        let name = self.shape.name_of(half);
        let (remainders, lines) = (self.shape.remainders, lines(&self.words));
        match with_lines(self.paths, Search { remainders, lines, place: self.shape.place(name) }) {
            Found::Key => true,
            Found::Room { .. } => false,
            Found::NoRoom => self.crowded.contains(&name),
        }
    }

    fn put(&mut self, half: u64) -> Result<Insertion, Full> {
        let full = |limit| Full { limit, inserted: 0 };
        self.must_be_whole().map_err(full)?;
        if self.used >= self.capacity() && !self.has(half) {
            self.grow().map_err(full)?;
        }
        let mut new = [false];
        self.put_all(&[half], batch::copy, |is_new| new[0] = is_new);
        Ok(Insertion::new_if(new[0]))
    }

    #[inline(always)]
    fn ask<K>(&self, keys: &[K], hash: impl Fn(&[K], &mut [u64]) + Copy, hits: &mut Vec<bool>) {
        hits.reserve(keys.len());
        let (paths, shape, remainders) = (self.paths, self.shape, self.shape.remainders);
        let (lines, crowded) = (lines(&self.words), &self.crowded);
        with_lines(paths, AskAll { paths, shape, remainders, lines, crowded, keys, hash, hits });
    }

    fn fill<K>(
        &mut self,
        keys: &[K],
        hash: impl Fn(&[K], &mut [u64]) + Copy,
        outcomes: &mut Vec<Insertion>,
    ) -> Result<(), Full> {
        self.must_be_whole().map_err(|limit| Full { limit, inserted: 0 })?;
        outcomes.reserve(keys.len());
        let mut left = keys;
        while !left.is_empty() {
            let room = self.capacity().saturating_sub(self.used);
            if room == 0 {
                // Only a key that is new makes it grow.
                let mut hits = Vec::new();
                self.ask(&left[..left.len().min(STRETCH)], hash, &mut hits);
                let known = hits.iter().take_while(|&&hit| hit).count();
                self.inserted = self.inserted.map(|calls| calls.saturating_add(known as u64));
                outcomes.extend((0..known).map(|_| Insertion::Perhaps));
                left = &left[known..];
                if known == hits.len() {
                    continue;
                }
                let inserted = (keys.len() - left.len()) as u64;
                self.grow().map_err(|limit| Full { limit, inserted })?;
                continue;
            }
            let (now, later) = left.split_at(left.len().min(index(room.min(STRETCH as u64))));
            self.put_all(now, hash, |is_new| outcomes.push(Insertion::new_if(is_new)));
            left = later;
        }
        Ok(())
    }

    /// Puts keys for which there is room.
    #[inline(always)]
    fn put_all<K>(&mut self, keys: &[K], hash: impl Fn(&[K], &mut [u64]) + Copy, told: impl FnMut(bool)) {
        let (paths, shape, remainders) = (self.paths, self.shape, self.shape.remainders);
        let (lines, crowded) = (lines_mut(&mut self.words), &mut self.crowded);
        self.used += with_lines(paths, PutAll { paths, shape, remainders, lines, crowded, keys, hash, told });
        self.inserted = self.inserted.map(|calls| calls.saturating_add(keys.len() as u64));
    }

    /// A table with half as many lines more.
    #[cold]
    fn grow(&mut self) -> Result<(), Limit> {
        let shape = self.shape.larger().ok_or(Limit::Keys { capacity: self.capacity() })?;
        self.move_to(shape)
    }

    /// Room for so many keys more, each of them a new one.
    fn make_room(&mut self, keys: u64) -> Result<(), Limit> {
        let needed = self.used.saturating_add(keys);
        let mut shape = self.shape;
        while shape.capacity() < needed {
            shape = shape.larger().ok_or(Limit::Keys { capacity: self.capacity() })?;
        }
        if shape == self.shape { Ok(()) } else { self.move_to(shape) }
    }

    /// Moves everything to a larger table. The old memory is given back as it is read.
    fn move_to(&mut self, shape: Shape) -> Result<(), Limit> {
        let mut words =
            Words::zeroed(shape.all_lines() * 8).map_err(|no| Limit::Memory { bytes: no.bytes })?;
        let (mut used, mut crowded) = (0, BTreeSet::new());
        let all = index(self.shape.all_lines());
        for from in (0..all).step_by(GIVEN_BACK) {
            let to = all.min(from + GIVEN_BACK);
            let moved = Move {
                from: (self.shape, self.shape.remainders, &lines(&self.words)[from..to], from as u64),
                to: (shape, shape.remainders, lines_mut(&mut words)),
                crowded: &mut crowded,
            };
            used += moved.run();
            self.words.give_back(8 * from..8 * to);
        }
        for &name in &self.crowded {
            if push(shape.remainders, lines_mut(&mut words), shape.place(name)) {
                used += 1;
            } else {
                crowded.insert(name);
            }
        }
        (self.words, self.shape) = (words, shape);
        (self.used, self.crowded) = (used, crowded);
        Ok(())
    }

    /// What came from a file of which only the header was verified is looked at before it is changed.
    #[inline(always)]
    fn must_be_whole(&mut self) -> Result<(), Limit> {
        if self.is_whole { Ok(()) } else { self.make_sure() }
    }

    #[cold]
    fn make_sure(&mut self) -> Result<(), Limit> {
        if self.words.verify().is_err() || !self.is_as_written() {
            return Err(Limit::Damaged);
        }
        self.is_whole = true;
        Ok(())
    }

    /// Whether everything is as this library writes it, with as many keys in the lines as the header says. A key that stands
    /// there twice does no harm and is not looked for.
    fn is_as_written(&self) -> bool {
        let (shape, remainders, lines) = (self.shape, self.shape.remainders, lines(&self.words));
        let is_full = |line: &Line| remainders.count(line) == remainders.slots();
        let is_whole = |(at, line): (usize, &Line)| {
            remainders.is_whole(line, shape.remainder_bits + DISTANCE_BITS)
                && remainders.iter(line).all(|entry| {
                    // The lines between its own and this one are full, and it is what a name is scaled up to.
                    at.checked_sub((entry & FARTHEST) as usize).is_some_and(|own| {
                        lines[own..at].iter().all(is_full)
                            && shape.has_name_at(own as u64, entry >> DISTANCE_BITS)
                    })
                })
        };
        let is_crowded = |&name: &u64| {
            let place = shape.place(name);
            matches!(with_lines(self.paths, Search { remainders, lines, place }), Found::NoRoom)
        };
        self.counted() == self.used
            && lines.iter().enumerate().all(is_whole)
            && self.crowded.iter().all(is_crowded)
    }

    /// How many keys the lines say that they hold.
    fn counted(&self) -> u64 {
        lines(&self.words).iter().map(|line| u64::from(self.shape.remainders.count(line))).sum()
    }

    /// Forgets all keys. Its lines stay as many as they are.
    pub fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.crowded.clear();
        (self.inserted, self.used, self.is_whole) = (Some(0), 0, true);
    }

    /// The keys that it takes before it grows again.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Bits of all lines and of the keys beside them.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.shape.bits() + 64 * self.crowded.len() as u64
    }

    /// Bytes of memory, everything included.
    #[must_use]
    pub fn size_in_bytes(&self) -> u64 {
        // A tree of 64-bit numbers has up to twice their size.
        (size_of::<Self>() + self.words.len() * 8 + self.crowded.len() * 16) as u64
    }

    /// How many keys are told from each other: the false-positive rate is the number of keys, divided by this.
    #[must_use]
    pub fn told_apart(&self) -> u64 {
        self.shape.names
    }

    /// How many slots there are and are taken.
    #[must_use]
    pub fn slots(&self) -> Slots {
        Slots { slots: self.shape.slots(), used: self.used, evictions: None }
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

    /// How many different keys are in.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a filter is not a collection")]
    pub fn len(&self) -> u64 {
        self.used + self.crowded.len() as u64
    }

    /// The false-positive rate of the table as it is.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        math::table_fpr(self.len(), self.shape.names)
    }

    /// The false-positive rate when it must grow again.
    #[must_use]
    pub fn fpr_at_capacity(&self) -> f64 {
        math::table_fpr(self.capacity(), self.shape.names)
    }

    /// Whether `other` can be merged with this one.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    pub fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        let (ours, theirs) = (self.shape.names, other.shape.names);
        if ours != theirs {
            return Err(Mismatch::Names { ours, theirs });
        }
        self.hashing.must_equal(&other.hashing)
    }

    /// Union: afterwards this table holds every key of both. Their sizes may differ.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference, the memory that was not granted, or what cannot grow any more; then nothing
    /// has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        let refused = |limit| match limit {
            Limit::Memory { bytes } => Mismatch::Memory { bytes },
            limit => Mismatch::Full(Full { limit, inserted: 0 }),
        };
        self.must_be_whole().map_err(refused)?;
        if !other.is_whole && !other.is_as_written() {
            return Err(refused(Limit::Damaged));
        }
        let new = other.names().filter(|&name| !self.has(self.shape.half_of(name))).count();
        self.make_room(new as u64).map_err(refused)?;
        // A few at a time: the others' lines are in order, and so are ours.
        let (mut waiting, mut all) = ([0; 64], other.names());
        loop {
            let mut len = 0;
            for (place, name) in waiting.iter_mut().zip(&mut all) {
                *place = self.shape.half_of(name);
                len += 1;
            }
            if len == 0 {
                break;
            }
            self.put_all(&waiting[..len], batch::copy, |_| {});
        }
        self.inserted = None;
        Ok(())
    }

    /// The names of all keys.
    fn names(&self) -> impl Iterator<Item = u64> + '_ {
        let in_lines = lines(&self.words).iter().enumerate().flat_map(move |(at, line)| {
            let own = move |entry: u64| at as u64 - (entry & FARTHEST);
            let name = move |entry| self.shape.name_at(own(entry), entry >> DISTANCE_BITS);
            self.shape.remainders.iter(line).map(name)
        });
        in_lines.chain(self.crowded.iter().copied())
    }

    /// The table as it stands in a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        family::encode(self, Summing::Payload).to_vec()
    }

    /// A table from the bytes of a file.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        family::from_bytes(bytes, None, &FAMILY, Self::decode)
    }

    /// A keyed table from the bytes of a file.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with them, or that the secret is another one.
    pub fn from_bytes_keyed(bytes: &[u8], secret: &Secret) -> Result<Self, DecodeError> {
        family::from_bytes(bytes, Some(secret), &FAMILY, Self::decode)
    }

    fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        header.must_probe_by(Probing::Table)?;
        header.must_be_hashed(hashing)?;
        let mut fields = Fields::new(&header.params);
        let lines = fields.u64("lines")?;
        let names = fields.u64("keys that are told from each other")?;
        let fpr_asked = fields.rate("asked rate")?;
        let crowded = fields.u64("keys beside the lines")?;
        fields.end("parameters", header.params.len())?;
        if !(Shape::FEWEST_LINES..=Shape::MOST_NAMES).contains(&names) {
            return Err(DecodeError::Value { field: "keys that are told from each other", found: names });
        }
        let shape = Shape::new(names, lines).ok_or(DecodeError::Value { field: "lines", found: lines })?;
        let line_bytes = shape.bits() / 8;
        let (expected, found) = (crowded.saturating_mul(8).saturating_add(line_bytes), header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        let (inserted, keys) = (header.inserted, header.ones);
        let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
        let end = index(line_bytes);
        let wrong = DecodeError::Payload { problem: "not whole words, or no memory for them" };
        let (Some(in_lines), Some(beside)) = (payload.part(0..end), payload.part(end..payload.len())) else {
            return Err(wrong);
        };
        let crowded = crowded_from(beside.as_slice(), names)?;
        let words = Words::from_bytes(in_lines).ok_or(wrong)?;
        let is_whole = frame.verified;
        let paths = Paths::default();
        let mut table =
            Self { words, shape, crowded, used: 0, inserted, fpr_asked, hashing, paths, is_whole };
        table.used = match keys {
            Some(found) => {
                let used = found.checked_sub(table.crowded.len() as u64);
                let is_possible =
                    |&used: &u64| used <= shape.all_slots() && (!is_whole || used == table.counted());
                used.filter(is_possible).ok_or(DecodeError::Value { field: "keys", found })?
            }
            None => table.counted(),
        };
        // Looked at only when the whole payload is read anyway, so that a large file opens by its header. What no writer
        // gives may then be answered wrongly, does no harm, and is looked at before it is changed.
        if is_whole && !table.is_as_written() {
            return Err(DecodeError::Payload { problem: "a line that no writer gives" });
        }
        Ok(table)
    }
}

/// The names beside the lines, ascending.
fn crowded_from(bytes: &[u8], names: u64) -> Result<BTreeSet<u64>, DecodeError> {
    let numbers = bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let is_good =
        numbers.clone().is_sorted_by(|one, next| one < next) && numbers.clone().all(|name| name < names);
    if is_good {
        Ok(numbers.collect())
    } else {
        Err(DecodeError::Payload { problem: "the keys beside the lines are not in order" })
    }
}

#[inline(always)]
fn lines(words: &Words) -> &[Line] {
    words.as_slice().as_chunks().0
}

#[inline(always)]
fn lines_mut(words: &mut Words) -> &mut [Line] {
    words.as_mut_slice().as_chunks_mut().0
}

/// One search.
struct Search<'a> {
    remainders: Remainders,
    lines: &'a [Line],
    place: Place,
}

impl LineWork for Search<'_> {
    type Output = Found;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Found {
        search(compare, self.remainders, self.lines, self.place)
    }
}

/// A key in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    name: u64,
    place: Place,
}

/// Hashes keys and finds their places.
#[inline(always)]
fn take_off<K>(shape: Shape, hash: impl Fn(&[K], &mut [u64]), keys: &[K], flights: &mut [Flight]) {
    let mut halves = [0; batch::BATCH];
    let halves = &mut halves[..keys.len()];
    hash(keys, halves);
    for (flight, &half) in flights.iter_mut().zip(&*halves) {
        let name = shape.name_of(half);
        *flight = Flight { name, place: shape.place(name) };
    }
}

/// Many questions.
struct AskAll<'a, K, H> {
    paths: Paths,
    shape: Shape,
    remainders: Remainders,
    lines: &'a [Line],
    crowded: &'a BTreeSet<u64>,
    keys: &'a [K],
    hash: H,
    hits: &'a mut Vec<bool>,
}

impl<K, H: Fn(&[K], &mut [u64])> LineWork for AskAll<'_, K, H> {
    type Output = ();

    #[inline(always)]
    fn run(self, compare: impl Compare) {
        let Self { paths, shape, remainders, mut lines, crowded, keys, hash, hits } = self;
        let far = paths.is_far(size_of_val(lines), PREFETCH_FROM_BYTES);
        batch::pipeline(
            &mut lines,
            keys,
            |keys, flights| take_off(shape, &hash, keys, flights),
            far,
            |lines, flight: Flight| prefetch(lines, index(flight.place.line)),
            |lines, flights| {
                for flight in flights {
                    hits.push(match search(compare, remainders, lines, flight.place) {
                        Found::Key => true,
                        Found::Room { .. } => false,
                        Found::NoRoom => crowded.contains(&flight.name),
                    });
                }
            },
        );
    }
}

/// Many inserts, for all of which there is room. How many went into the lines.
struct PutAll<'a, K, H, T> {
    paths: Paths,
    shape: Shape,
    remainders: Remainders,
    lines: &'a mut [Line],
    crowded: &'a mut BTreeSet<u64>,
    keys: &'a [K],
    hash: H,
    told: T,
}

impl<K, H: Fn(&[K], &mut [u64]), T: FnMut(bool)> LineWork for PutAll<'_, K, H, T> {
    type Output = u64;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> u64 {
        let Self { paths, shape, remainders, mut lines, crowded, keys, hash, mut told } = self;
        let far = paths.is_far(size_of_val(lines), PREFETCH_FROM_BYTES);
        let mut stored = 0;
        // The batch before, whose lines were looked at.
        let (mut waiting, mut len) = ([Flight::default(); batch::BATCH], 0);
        batch::pipeline(
            &mut lines,
            keys,
            |keys, flights| take_off(shape, &hash, keys, flights),
            far,
            |lines, flight: Flight| prefetch(lines, index(flight.place.line)),
            |lines, flights| {
                if far {
                    // Where a line is full the next one will be needed, perhaps.
                    for flight in flights {
                        let line = index(flight.place.line);
                        if remainders.count(&lines[line]) == remainders.slots() {
                            prefetch(lines, line + 1);
                        }
                    }
                }
                for flight in &waiting[..len] {
                    told(match search(compare, remainders, lines, flight.place) {
                        Found::Key => false,
                        Found::Room { line, count, distance } => {
                            remainders.push(&mut lines[line], count, flight.place.remainder | distance);
                            stored += 1;
                            true
                        }
                        Found::NoRoom => crowded.insert(flight.name),
                    });
                }
                len = flights.len();
                waiting[..len].copy_from_slice(flights);
            },
        );
        debug_assert!(len == 0, "the pipeline ends a turn after its last key");
        stored
    }
}

/// Lines that are moved to a larger table.
struct Move<'a> {
    /// Some lines of the old table, and the number of the first.
    from: (Shape, Remainders, &'a [Line], u64),
    to: (Shape, Remainders, &'a mut [Line]),
    crowded: &'a mut BTreeSet<u64>,
}

impl Move<'_> {
    /// How many went into lines.
    fn run(self) -> u64 {
        let (old, held, from, first) = self.from;
        let (new, remainders, to) = self.to;
        let mut moved = 0;
        for (at, line) in from.iter().enumerate() {
            for entry in held.iter(line) {
                let own = first + at as u64 - (entry & FARTHEST);
                let name = old.name_at(own, entry >> DISTANCE_BITS);
                if push(remainders, to, new.place(name)) {
                    moved += 1;
                } else {
                    self.crowded.insert(name);
                }
            }
        }
        moved
    }
}

fn first_halves(digests: &[Digest], halves: &mut [u64]) {
    halves.iter_mut().zip(digests).for_each(|(half, digest)| *half = digest.a);
}

impl Filter for Table {
    fn hashing(&self) -> Hashing {
        self.hashing
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.has(digest.a)
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        self.ask(digests, first_halves, hits);
    }
}

impl Insert for Table {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        self.put(digest.a)
    }

    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        self.fill(digests, first_halves, outcomes)
    }
}

impl Merge for Table {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.merge(family::same_type(self, other)?)
    }
}

impl AnyFilter for Table {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn slots(&self) -> Option<Slots> {
        Some(self.slots())
    }

    fn report(&self) -> Report {
        Report {
            capacity: self.capacity(),
            inserted: self.inserted,
            estimated_len: Some(self.len() as f64),
            bits: self.bits(),
            probes: None,
            fill: self.slots().load(),
            fpr_asked: self.fpr_asked,
            fpr_now: self.fpr(),
            fpr_interval: None,
            fpr_at_capacity: self.fpr_at_capacity(),
            guarantee: Guarantee::NoFalseNegatives,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::Table);
        out.counts(self.inserted, self.len());
        out.params().u64(self.shape.lines).u64(self.shape.names);
        out.params().f64(self.fpr_asked).u64(self.crowded.len() as u64);
        out.words(&self.words);
        let beside: Vec<u8> = self.crowded.iter().flat_map(|name| name.to_le_bytes()).collect();
        out.bytes(beside);
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.contains_all(keys, hits);
    }

    fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Error> {
        Ok(self.insert_all(keys, outcomes)?)
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASHING: Hashing = Hashing::Xxh3 { seed: 7 };

    /// What the documents say of a table that was made for 1024 keys and 20 doublings.
    #[test]
    fn bits_per_key_as_it_grows_are_what_the_documents_say() {
        let mut shape = Spec::sized(TABLE_CAPACITY, 1e-9).table().unwrap().shape;
        let (mut least, mut most) = (f64::INFINITY, 0f64);
        while shape.capacity() < 1_000_000_000 {
            let larger = shape.larger().unwrap();
            // Full, and with one key more.
            if shape.capacity() > 1_000_000 {
                least = least.min(shape.bits() as f64 / shape.capacity() as f64);
                most = most.max(larger.bits() as f64 / (shape.capacity() + 1) as f64);
            }
            shape = larger;
        }
        assert!((44.5..45.5).contains(&least) && (79.5..80.5).contains(&most), "{least} to {most}");
    }

    /// The share of absent keys that are admitted, against what the table says of itself. Which names there are is known, and
    /// the name of another key is any with the same chance: the hits are binomial. A right table misses by 5 times their
    /// deviation with a chance below 6e-7; the seed is fixed.
    #[track_caller]
    fn assert_rate(table: &Table, questions: u64) {
        let asked: Vec<u64> = (0..questions).map(|i| (1 << 40) + i).collect();
        let mut hits = Vec::new();
        table.contains_all(&asked, &mut hits);
        let observed = hits.iter().filter(|&&hit| hit).count() as f64 / questions as f64;
        let expected = table.fpr();
        let deviation = libm::sqrt(expected * (1.0 - expected) / questions as f64);
        assert!((observed - expected).abs() <= 5.0 * deviation, "{observed} instead of {expected}");
    }

    #[test]
    fn the_rate_is_that_of_the_names_and_rises_with_the_keys() {
        // A rate of 1 in 1000 for 10,000 keys, which costs no bit less than a lower one and is not to be had from a `Spec`.
        let shape = Shape::new(10_000_000, 1000).unwrap();
        let mut table = Table::empty(shape, 0.001, HASHING).unwrap();
        let mut outcomes = Vec::new();
        let mut keys = 0u64;
        for (until, rate) in [(10_000u64, 0.001), (40_000, 0.004), (160_000, 0.0159)] {
            let more: Vec<u64> = (keys..until).collect();
            table.insert_all(&more, &mut outcomes).unwrap();
            keys = until;
            // Some keys have the name of another one.
            let new = outcomes.iter().filter(|&&outcome| outcome == Insertion::New).count();
            assert_eq!(new as u64, table.len());
            assert!((table.fpr() / rate - 1.0).abs() < 0.01, "{}", table.fpr());
            assert_rate(&table, 1_000_000);
            assert_eq!(table.told_apart(), 10_000_000);
        }
        assert!(table.shape.lines > 10_000);
    }

    #[test]
    fn a_table_that_has_every_name_takes_no_more_and_admits_everything() {
        let mut table = Table::empty(Shape::new(100, 64).unwrap(), 0.5, HASHING).unwrap();
        let keys: Vec<u64> = (0..10_000).collect();
        let mut outcomes = Vec::new();
        table.insert_all(&keys, &mut outcomes).unwrap();
        assert_eq!((table.len(), table.fpr(), table.fpr_at_capacity()), (100, 1.0, 1.0));
        assert_eq!(table.insert(u64::MAX), Ok(Insertion::Perhaps));
        let again = Table::from_bytes(&table.to_bytes()).unwrap();
        assert!(again == table && again.contains(1u64 << 50));
    }
}
