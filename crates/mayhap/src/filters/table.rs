//! Table: shortened digests in cache lines, for "did this come before?" at the speed of memory.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::batch;
use crate::bits::{Bytes, Remainders, Words};
use crate::error::{DecodeError, Full, Knob, Limit, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{Cost, Details, Family, Make, Profile, Slots};
use crate::hash::{Hashing, Key};
use crate::math;
use crate::narrow::{index, whole};
use crate::paths::Paths;
use crate::probing::Probing;
use crate::rates::Rate;
use crate::raw::simd::{Compare, Line, LineWork, prefetch, with_lines};
use crate::shell::{Empty, Inserts, Kernel, Merges, filter};
use crate::spec::{
    DEFAULT_DOUBLINGS, MAX_BITS, MOST_DOUBLINGS, Plan, Request, STARTING_CAPACITY, Size, Spec,
};
use crate::table_shape::{DISTANCE_BITS, FARTHEST, LineAndRemainder, TableShape};
use crate::traits::Insertion;
use crate::wire::{Fields, Frame, Writer};

/// The family `table`.
pub(crate) static FAMILY: Family = Family {
    id: 20,
    name: "table",
    summary: "is it new? for rates of 1e-8 and below",
    can: Table::CAN,
    knobs: &[Knob::Doublings.within(0, MOST_DOUBLINGS)],
    probing: &[PROBING],
    cost: Cost {
        query: "O(1)",
        insert: "O(1) amortized",
        space: "1.15 to 1.75 n (log2(1/p) + 6 + doublings)",
    },
    make: Make::Empty(|spec| Ok(Box::new(Table::from_spec(spec)?))),
    shared: None,
    plan,
    decode: |frame, hashing| Ok(Box::new(Table::decode(frame, hashing)?)),
    // Growing needs other words.
    in_place: false,
    profile: Profile { is_ordered: true, has_kernels: true, ..Profile::USUAL },
};

/// A line and a remainder, from the digest's first half.
const PROBING: Probing = Probing::new(20, "table");

/// The numbers of a table, all known.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TableSize {
    /// The number of keys that it takes before it grows.
    pub capacity: u64,
    /// Its lines, and how keys belong to them.
    shape: TableShape,
    /// The requested rate, or `fpr` if none was requested.
    pub fpr_asked: f64,
    /// The rate with as many keys as the capacity.
    pub fpr: f64,
}

impl TableSize {
    /// The bits of all lines.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.shape.bits()
    }

    /// How many of `keys` keys have their names beside the lines, on average: 64 bits each. It depends on which lines they
    /// belong to, and so on the keys: of 5000 keys that fill the table they are 49, give or take 11.
    #[must_use]
    pub fn crowded(&self, keys: u64) -> u64 {
        self.shape.crowded(keys)
    }

    /// How many keys are told from each other.
    #[must_use]
    pub const fn told_apart(&self) -> u64 {
        self.shape.names()
    }
}

impl Size for TableSize {
    fn plan(&self) -> Plan {
        let Self { capacity, fpr_asked, fpr, .. } = *self;
        Plan { capacity, fpr_asked, fpr, bits: self.bits(), probes: None }
    }
}

/// With as many names beside the lines as the requested keys bring on average.
fn plan(spec: &Spec) -> Result<Plan, SpecError> {
    let size = spec.table()?;
    let bits = size.bits() + 64 * size.crowded(spec.capacity().unwrap_or(size.capacity));
    Ok(Plan { bits, ..size.plan() })
}

impl Spec {
    /// Solves for what is not requested, for a table: it tells as many keys from each other as the rate and the planned doublings
    /// need, and its lines are as many as it starts with.
    ///
    /// ```
    /// use mayhap::Spec;
    ///
    /// let sized = Spec::sized(20_000_000, 1e-9).with_doublings(0).table()?;
    /// assert!(sized.capacity >= 20_000_000 && sized.fpr <= 1e-9);
    /// assert!(sized.bits() < 42 * 20_000_000);
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SpecError`] names what is wrong, missing or contradictory.
    pub fn table(&self) -> Result<TableSize, SpecError> {
        let asked = FAMILY.check(self)?;
        let size = |shape: TableShape| {
            let (capacity, fpr) = (shape.capacity(), math::table_fpr(shape.capacity(), shape.names()));
            TableSize { capacity, shape, fpr_asked: asked.fpr.unwrap_or(fpr), fpr }
        };
        // A rate that no table has with these keys is refused as such, whatever the bits.
        if let Some(n) = asked.capacity {
            let names = asked.fpr.map_or(Ok(1), |p| asked.names(n, p))?;
            TableShape::for_keys(n, names).ok_or(SpecError::TooLarge { bits: u64::MAX, limit: MAX_BITS })?;
        }
        let sized = asked.solved(
            |n, p| TableShape::for_keys(n, asked.names(n, p).ok()?).map(size),
            // As many names as fit: one bit more of each remainder, as long as that is not too much.
            |n, bits, p| {
                let smallest = TableShape::for_keys(n, p.map_or(Ok(1), |p| asked.names(n, p)).ok()?)?;
                let more = (1..u64::BITS).map_while(|more| {
                    let names =
                        smallest.names().checked_shl(more).filter(|names| names >> more == smallest.names());
                    TableShape::for_keys(n, names?.min(TableShape::MOST_NAMES))
                        .filter(|shape| shape.bits() <= bits)
                });
                (smallest.bits() <= bits).then(|| size(more.last().unwrap_or(smallest)))
            },
            |bits, p| {
                TableShape::within(bits, |n| asked.names(n, p).unwrap_or(TableShape::MOST_NAMES)).map(size)
            },
        )?;
        match asked.fpr {
            Some(asked) if sized.fpr > asked => Err(SpecError::FprBelow { asked, least: sized.fpr }),
            _ => Ok(sized),
        }
    }
}

impl Request {
    /// The names with which `n` keys have the rate `fpr`, also after the planned doublings; after as many as possible, if
    /// none are requested.
    fn names(&self, n: u64, fpr: f64) -> Result<u64, SpecError> {
        // A table may take a few keys more than it was asked for.
        let now = 1.001 * n.max(1000) as f64 / fpr;
        let most = TableShape::MOST_NAMES as f64;
        let doubled = now * libm::exp2(self.doublings.unwrap_or(DEFAULT_DOUBLINGS).into());
        if now > most || (doubled > most && self.doublings.is_some()) {
            let asked = if self.doublings.is_some() { doubled } else { now };
            return Err(SpecError::FprBelow { asked: fpr, least: fpr * asked / most });
        }
        // The most is no number that a float has, and is rounded up there.
        Ok((whole(doubled.min(most))).min(TableShape::MOST_NAMES))
    }
}

/// Tables smaller than this stay in the second-level cache, where prefetching brings nothing.
const PREFETCH_FROM_BYTES: usize = 128 * 1024;

/// Keys that are inserted before the loop tests again whether the table must grow.
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
fn search(compare: impl Compare, remainders: Remainders, lines: &[Line], place: LineAndRemainder) -> Found {
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
fn push(remainders: Remainders, lines: &mut [Line], place: LineAndRemainder) -> bool {
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

filter! {
    /// A table of shortened digests.
    ///
    /// **Answers** "was this key inserted?", and while inserting "is it new?", for an unknown number of keys.
    /// **Promise** a key that is in is never denied; an absent key is admitted if it has the name of a key that is in: with a
    /// chance of `n / N`, for `n` keys and `N` names.
    /// **Not for** rates above 1e-8, at which a `Bloom` has fewer bits; removing.
    ///
    /// ```text
    ///   key ─▶ digest ─▶ first half, scaled down: a name below N ─▶ scaled up: 0101100111010…   below lines · 2^r
    ///                                                                    line ─┘└─ remainder, r bits
    ///
    ///   line, 64 bytes      [ remainder 0 | 0 | remainder 3 | 0 | remainder 1 | 1 | …                         | how many ]
    ///                                       └─ lines from its own         └─ from the line before, which is full
    /// ```
    ///
    /// | operation | cache lines            | can fail                                   |
    /// |-----------|------------------------|--------------------------------------------|
    /// | contains  | 1, seldom a neighbour  | no                                         |
    /// | insert    | 1, seldom a neighbour  | no memory to grow; then nothing has changed |
    /// | growing   | all, in order          | no memory; then nothing has changed        |
    /// | merge     | all, in order          | mismatch, no memory; then nothing changed  |
    ///
    /// The line tells the first part of a name, which is not stored: Knuth's quotienting. A remainder whose line is full goes to
    /// one of the next three, with the distance beside it; if those are full too, the name goes to a list. As nothing is removed,
    /// a line that is not full ends every search.
    ///
    /// **Growing** by a half: remainders are read in order and written in order, since a name that is scaled up rises with the
    /// name and tells it back. `N` stays, so that no key changes its name. Memory that was read is given back meanwhile, where the
    /// system takes it, so that both tables together take hardly more than the new one. The bits that a larger table has in the
    /// number of its line its remainders need not have.
    ///
    /// **Paper** Knuth, *The Art of Computer Programming* 3, 1973, exercise 6.4.13, and Cleary, *Compact Hash Tables Using
    /// Bidirectional Linear Probing*, IEEE ToC 1984, for a table that stores what the place does not tell. Lines and lanes,
    /// names of any number, and growing by a half are ours.
    ///
    /// Its capacity is the number of keys that it takes before it grows again, and the rate at capacity is the one then. Two
    /// tables are equal if they have the same lines, which depend on the order of the keys.
    ///
    /// ```
    /// use mayhap::{Insertion, Table};
    ///
    /// let mut seen = Table::with_fpr(1e-9)?;
    /// assert_eq!(seen.insert("https://example.org/")?, Insertion::New);
    /// assert_eq!(seen.insert("https://example.org/")?, Insertion::Perhaps);
    /// assert!(seen.contains("https://example.org/") && !seen.contains("https://example.org/a"));
    /// # Ok::<(), mayhap::Error>(())
    /// ```
    Table(Remnants) = FAMILY {
        /// It takes `capacity` keys before it grows, and keeps its rate until it has doubled 20 times, or as often as 63 bits
        /// of a digest allow.
        new,
        /// Clearing leaves the number of its lines.
        specified,
        /// [`Insertion::Perhaps`] says that it was probably in, and nothing has changed.
        inserts_until_full,
        matches,
        ///
        /// Their sizes may differ. [`Mismatch`] also says if there is no memory, or the table cannot grow any more.
        merges,
        grows,
    }
}

/// The lines of a table, and the names beside them.
#[derive(Clone, Debug)]
pub(crate) struct Remnants {
    words: Words,
    shape: TableShape,
    /// The names of the keys for which there was no room near their lines.
    crowded: BTreeSet<u64>,
    /// The number of keys in the lines.
    used: u64,
    fpr_asked: f64,
    paths: Paths,
    /// The lines are known to be as they are written here. If not, they are verified before they are changed.
    is_whole: bool,
}

fn full(limit: Limit) -> Full {
    Full { limit, inserted: 0 }
}

impl Remnants {
    fn of(shape: TableShape, fpr_asked: f64) -> Result<Self, SpecError> {
        Ok(Self {
            words: Words::zeroed(shape.all_lines() * 8)?,
            shape,
            crowded: BTreeSet::new(),
            used: 0,
            fpr_asked,
            paths: Paths::default(),
            is_whole: true,
        })
    }

    fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    fn bits(&self) -> u64 {
        self.shape.bits() + 64 * self.crowded.len() as u64
    }

    fn len(&self) -> u64 {
        self.used + self.crowded.len() as u64
    }

    fn used_slots(&self) -> Slots {
        Slots { slots: self.shape.slots(), used: self.used, evictions: None }
    }

    #[inline(always)]
    fn ask<K>(&self, keys: &[K], hash: &impl Fn(&[K], &mut [u64]), hits: &mut [bool]) {
        let (paths, shape, remainders) = (self.paths, self.shape, self.shape.remainders);
        let (lines, crowded) = (lines(&self.words), &self.crowded);
        with_lines(paths, AskAll { paths, shape, remainders, lines, crowded, keys, hash, hits });
    }

    /// Puts keys for which there is room.
    #[inline(always)]
    fn put<K>(&mut self, keys: &[K], hash: &impl Fn(&[K], &mut [u64]), told: impl FnMut(bool)) {
        let (paths, shape, remainders) = (self.paths, self.shape, self.shape.remainders);
        let (lines, crowded) = (lines_mut(&mut self.words), &mut self.crowded);
        self.used += with_lines(paths, PutAll { paths, shape, remainders, lines, crowded, keys, hash, told });
    }

    /// A table with half as many lines more.
    #[cold]
    fn grow(&mut self) -> Result<(), Limit> {
        let shape = self.shape.larger().ok_or(Limit::Keys { capacity: self.capacity() })?;
        self.move_to(shape)
    }

    /// Room for this number of further keys, each of them new.
    fn make_room(&mut self, keys: u64) -> Result<(), Limit> {
        let needed = self.used.saturating_add(keys);
        let mut shape = self.shape;
        while shape.capacity() < needed {
            shape = shape.larger().ok_or(Limit::Keys { capacity: self.capacity() })?;
        }
        if shape == self.shape { Ok(()) } else { self.move_to(shape) }
    }

    /// Moves everything to a larger table. The old memory is given back as it is read.
    fn move_to(&mut self, shape: TableShape) -> Result<(), Limit> {
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

    /// A table from a file of which only the header was verified is verified before it is changed.
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

    /// The names of all keys.
    fn names(&self) -> impl Iterator<Item = u64> + '_ {
        let in_lines = lines(&self.words).iter().enumerate().flat_map(move |(at, line)| {
            let own = move |entry: u64| at as u64 - (entry & FARTHEST);
            let name = move |entry| self.shape.name_at(own(entry), entry >> DISTANCE_BITS);
            self.shape.remainders.iter(line).map(name)
        });
        in_lines.chain(self.crowded.iter().copied())
    }
}

impl Kernel for Remnants {
    type Hash = u64;

    #[inline]
    fn contains(&self, half: u64) -> bool {
        let name = self.shape.name_of(half);
        let (remainders, lines) = (self.shape.remainders, lines(&self.words));
        match with_lines(self.paths, Search { remainders, lines, place: self.shape.place(name) }) {
            Found::Key => true,
            Found::Room { .. } => false,
            Found::NoRoom => self.crowded.contains(&name),
        }
    }

    #[inline(always)]
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [u64]), hits: &mut [bool]) {
        self.ask(keys, &hash, hits);
    }

    fn plan(&self) -> Plan {
        let (capacity, bits) = (self.capacity(), self.bits());
        let fpr = math::table_fpr(capacity, self.shape.names);
        Plan { capacity, fpr_asked: self.fpr_asked, fpr, bits, probes: None }
    }

    fn held_bytes(&self) -> u64 {
        // A tree of 64-bit numbers has up to twice their size.
        (self.words.len() * 8 + self.crowded.len() * 16) as u64
    }

    fn fill(&self) -> f64 {
        self.used_slots().load()
    }

    fn rate(&self) -> Rate {
        Rate::computed(math::table_fpr(self.len(), self.shape.names))
    }

    fn estimated_len(&self) -> f64 {
        self.len() as f64
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(self, other, |table| [(Parameter::DistinctKeys, table.shape.names.into())])
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.shape == other.shape && self.words == other.words && self.crowded == other.crowded
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(PROBING);
        out.ones(self.len());
        out.params().u64(self.shape.lines).u64(self.shape.names);
        out.params().f64(self.fpr_asked).u64(self.crowded.len() as u64);
        out.words(&self.words);
        let beside: Vec<u8> = self.crowded.iter().flat_map(|name| name.to_le_bytes()).collect();
        out.bytes(beside);
    }

    fn read(frame: &mut Frame, _: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let mut fields = Fields::new(&header.params);
        let lines = fields.u64("lines")?;
        let names = fields.u64("keys that are told from each other")?;
        let fpr_asked = fields.rate("asked rate")?;
        let crowded = fields.u64("keys beside the lines")?;
        fields.end("parameters", header.params.len())?;
        if !(TableShape::FEWEST_LINES..=TableShape::MOST_NAMES).contains(&names) {
            return Err(DecodeError::Value { field: "keys that are told from each other", found: names });
        }
        let shape =
            TableShape::new(names, lines).ok_or(DecodeError::Value { field: "lines", found: lines })?;
        let line_bytes = shape.bits() / 8;
        let (expected, found) = (crowded.saturating_mul(8).saturating_add(line_bytes), header.payload.length);
        if expected != found {
            return Err(DecodeError::Length { field: "payload", expected, found });
        }
        let keys = header.ones;
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
        let mut table = Self { words, shape, crowded, used: 0, fpr_asked, paths, is_whole };
        table.used = match keys {
            Some(found) => {
                let used = found.checked_sub(table.crowded.len() as u64);
                let is_possible =
                    |&used: &u64| used <= shape.all_slots() && (!is_whole || used == table.counted());
                used.filter(is_possible).ok_or(DecodeError::Value { field: "keys", found })?
            }
            None => table.counted(),
        };
        // Verified only when the whole payload is read anyway, so that a large file opens by its header. Lines that no writer
        // gives may then be answered wrongly, which does no harm, and are verified before they are changed.
        if is_whole && !table.is_as_written() {
            return Err(DecodeError::Payload { problem: "a line that no writer gives" });
        }
        Ok(table)
    }

    fn take_paths(&mut self, paths: Paths) {
        self.paths = paths;
    }

    fn details(&self) -> Details<'_> {
        Details { slots: Some(self.used_slots()), ..Details::default() }
    }
}

impl Empty for Remnants {
    fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let TableSize { shape, fpr_asked, .. } = spec.table()?;
        Self::of(shape, fpr_asked)
    }

    fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.crowded.clear();
        (self.used, self.is_whole) = (0, true);
    }
}

impl Inserts for Remnants {
    type Error = Full;

    fn insert(&mut self, half: u64) -> Result<Insertion, Full> {
        self.must_be_whole().map_err(full)?;
        if self.used >= self.capacity() && !self.contains(half) {
            self.grow().map_err(full)?;
        }
        let mut new = [false];
        self.put(&[half], &batch::copy, |is_new| new[0] = is_new);
        Ok(Insertion::new_if(new[0]))
    }

    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [u64]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Full> {
        self.must_be_whole().map_err(full)?;
        let mut left = keys;
        while !left.is_empty() {
            let room = self.capacity().saturating_sub(self.used);
            if room == 0 {
                // Only a key that is new makes it grow.
                let mut hits = alloc::vec![false; left.len().min(STRETCH)];
                self.ask(&left[..hits.len()], &hash, &mut hits);
                let known = hits.iter().take_while(|&&hit| hit).count();
                (0..known).for_each(|_| told(Insertion::Perhaps));
                left = &left[known..];
                if known == hits.len() {
                    continue;
                }
                self.grow().map_err(full)?;
                continue;
            }
            let (now, later) = left.split_at(left.len().min(index(room.min(STRETCH as u64))));
            self.put(now, &hash, |is_new| told(Insertion::new_if(is_new)));
            left = later;
        }
        Ok(())
    }
}

impl Merges for Remnants {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        let refused = |limit| match limit {
            Limit::Memory { bytes } => Mismatch::Memory { bytes },
            limit => Mismatch::Full(full(limit)),
        };
        self.must_be_whole().map_err(refused)?;
        if !other.is_whole && !other.is_as_written() {
            return Err(refused(Limit::Damaged));
        }
        let new = other.names().filter(|&name| !self.contains(self.shape.half_of(name))).count();
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
            self.put(&waiting[..len], &batch::copy, |_| {});
        }
        Ok(())
    }
}

impl Table {
    /// An empty table for any number of keys: it starts with room for 1024.
    ///
    /// # Errors
    /// As for [`new`](Table::new).
    pub fn with_fpr(fpr: f64) -> Result<Self, SpecError> {
        Self::new(STARTING_CAPACITY, fpr)
    }

    /// Inserts many keys in order, several at a time in flight; appends one outcome each. A key that comes twice in them is
    /// new once.
    ///
    /// # Errors
    /// [`Full`] says for how many there is an outcome, before it had to grow and there was no memory.
    pub fn insert_each<K: Key>(&mut self, keys: &[K], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        self.0.insert_each(keys, outcomes)
    }

    /// How many keys are told from each other: the false-positive rate is the number of keys, divided by this.
    #[must_use]
    pub fn told_apart(&self) -> u64 {
        self.0.kernel.shape.names
    }

    /// The number of slots, and how many are used.
    #[must_use]
    pub fn slots(&self) -> Slots {
        self.0.kernel.used_slots()
    }

    /// The number of different keys in the table.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a filter is not a collection")]
    pub fn len(&self) -> u64 {
        self.0.kernel.len()
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
    place: LineAndRemainder,
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
    place: LineAndRemainder,
}

/// Hashes keys and finds their places.
#[inline(always)]
fn take_off<K>(shape: TableShape, hash: impl Fn(&[K], &mut [u64]), keys: &[K], flights: &mut [Flight]) {
    let mut halves = [0; batch::BATCH];
    let halves = &mut halves[..keys.len()];
    hash(keys, halves);
    for (flight, &half) in flights.iter_mut().zip(&*halves) {
        let name = shape.name_of(half);
        *flight = Flight { name, place: shape.place(name) };
    }
}

/// Many lookups.
struct AskAll<'a, K, H> {
    paths: Paths,
    shape: TableShape,
    remainders: Remainders,
    lines: &'a [Line],
    crowded: &'a BTreeSet<u64>,
    keys: &'a [K],
    hash: H,
    hits: &'a mut [bool],
}

impl<K, H: Fn(&[K], &mut [u64])> LineWork for AskAll<'_, K, H> {
    type Output = ();

    #[inline(always)]
    fn run(self, compare: impl Compare) {
        let Self { paths, shape, remainders, mut lines, crowded, keys, hash, hits } = self;
        let far = paths.is_far(size_of_val(lines), PREFETCH_FROM_BYTES);
        let mut hits = hits.iter_mut();
        batch::pipeline(
            &mut lines,
            keys,
            |keys, flights| take_off(shape, &hash, keys, flights),
            far,
            |lines, flight: Flight| prefetch(lines, index(flight.place.line)),
            |lines, flights| {
                for (flight, hit) in flights.iter().zip(&mut hits) {
                    *hit = match search(compare, remainders, lines, flight.place) {
                        Found::Key => true,
                        Found::Room { .. } => false,
                        Found::NoRoom => crowded.contains(&flight.name),
                    };
                }
            },
        );
    }
}

/// Many inserts, for all of which there is room. Returns the number stored in lines.
struct PutAll<'a, K, H, T> {
    paths: Paths,
    shape: TableShape,
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
    from: (TableShape, Remainders, &'a [Line], u64),
    to: (TableShape, Remainders, &'a mut [Line]),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::Shell;

    fn of(shape: TableShape, fpr_asked: f64) -> Table {
        let kernel = Remnants::of(shape, fpr_asked).unwrap();
        Table(Shell { kernel, hashing: Hashing::Xxh3 { seed: 7 }, inserted: Some(0) })
    }

    /// What the documents say of a table that was made for 1024 keys and 20 doublings.
    #[test]
    fn bits_per_key_as_it_grows_are_what_the_documents_say() {
        let mut shape = Spec::sized(STARTING_CAPACITY, 1e-9).table().unwrap().shape;
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
        table.contains_each(&asked, &mut hits);
        let observed = hits.iter().filter(|&&hit| hit).count() as f64 / questions as f64;
        let expected = table.fpr();
        let deviation = libm::sqrt(expected * (1.0 - expected) / questions as f64);
        assert!((observed - expected).abs() <= 5.0 * deviation, "{observed} instead of {expected}");
    }

    #[test]
    fn the_rate_is_that_of_the_names_and_rises_with_the_keys() {
        // A rate of 1 in 1000 for 10,000 keys, which costs no bit less than a lower one and is not to be had from a `Spec`.
        let shape = TableShape::new(10_000_000, 1000).unwrap();
        let mut table = of(shape, 0.001);
        let mut outcomes = Vec::new();
        let mut keys = 0u64;
        for (until, rate) in [(10_000u64, 0.001), (40_000, 0.004), (160_000, 0.0159)] {
            let more: Vec<u64> = (keys..until).collect();
            table.insert_each(&more, &mut outcomes).unwrap();
            keys = until;
            // Some keys have the name of another one.
            let new = outcomes.iter().filter(|&&outcome| outcome == Insertion::New).count();
            assert_eq!(new as u64, table.len());
            assert!((table.fpr() / rate - 1.0).abs() < 0.01, "{}", table.fpr());
            assert_rate(&table, 1_000_000);
            assert_eq!(table.told_apart(), 10_000_000);
        }
        assert!(table.0.kernel.shape.lines > 10_000);
    }

    #[test]
    fn a_table_that_has_every_name_takes_no_more_and_admits_everything() {
        let mut table = of(TableShape::new(100, 64).unwrap(), 0.5);
        let keys: Vec<u64> = (0..10_000).collect();
        let mut outcomes = Vec::new();
        table.insert_each(&keys, &mut outcomes).unwrap();
        assert_eq!((table.len(), table.fpr(), table.fpr_at_capacity()), (100, 1.0, 1.0));
        assert_eq!(table.insert(u64::MAX), Ok(Insertion::Perhaps));
        let again = Table::from_bytes(&table.to_bytes()).unwrap();
        assert!(again == table && again.contains(1u64 << 50));
    }
}
