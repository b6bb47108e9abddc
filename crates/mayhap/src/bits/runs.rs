//! Numbers of some bits under quotients: sorted runs in slots, found by rank and select.
//!
//! A number is the first part of a longer one: its bits, then a 1, then zeros. So the lowest 1 tells how long it is, and no
//! number is 0. One is the first part of another if they differ in that 1 and below it only.
//!
//! The table of a quotient filter in the form of Pandey, Bender, Johnson and Patro, *A General-Purpose Counting Filter:
//! Making Every Bit Count*, SIGMOD 2017. There is a slot for each quotient. The numbers under one quotient are a run of
//! neighbouring slots, in ascending order, and the runs follow each other in the order of their quotients: each starts in
//! its quotient's own slot, or behind the run before it if that reaches further. The last runs may go on at the front.
//! So where a number lies depends on what is in, and not on the order in which it came.
//!
//! 64 slots are a block of whole words, all of it near together:
//!
//! ```text
//!   word 0   bit i: there is a run of quotient i of this block
//!   word 1   bit i: a run ends in slot i of this block
//!   word 2   so many slots, from the first of this block on, belong to runs of quotients before it
//!   then     the 64 slots, packed
//! ```
//!
//! One more word behind the last block lets every slot be read as a part of two words.
//!
//! Whatever is in the words, nothing here reads out of range or does not end. What changes them expects them to be as they
//! are written here: [`Runs::is_whole`].

use alloc::vec::Vec;
use core::hint::select_unpredictable;
use core::ops::Range;

use crate::narrow::{index, low_u32, low_u64, small_len};
use crate::raw::simd::{Ranks, prefetch};

/// Slots of a block: one bit of a word each.
pub(crate) const BLOCK: usize = 64;

/// Words of a block before its slots.
const HEADER: usize = 3;

/// Bits that a slot takes beside its number.
pub(crate) const OVERHEAD: u32 = small_len(HEADER);

/// The shape of a table: how many blocks, and how wide a slot.
///
/// Slots are looked at several at a time, as lanes of one word: as many as fit there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    /// As many as were asked for, whether or not this machine has memory for them.
    blocks: u64,
    width: usize,
    lanes: usize,
    /// The lowest bit of each lane.
    ones: u64,
}

/// Where a quotient's own slot is: the first word of its block, and its bit there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    base: usize,
    bit: u32,
}

/// What a number meets in its run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    /// How often it is there.
    pub(crate) copies: u32,
    /// Whether it or a first part of it is there.
    pub(crate) is_known: bool,
}

/// The slots of a run that one word holds: where they start, and their bits. What a question needs at last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aim {
    at: usize,
    shift: u32,
    bits: u32,
}

/// Slots of a run, counted from the first slot of its quotient's block and on into the blocks behind it.
struct Run {
    /// The first slot behind all runs of lower quotients.
    before: usize,
    /// The first slot behind this run; if there is none, the same as `before`.
    end: usize,
}

/// A number, its slot in a block, and what it does to the ends there.
struct Newcomer {
    place: usize,
    number: u64,
    is_end: u64,
    was_end: u64,
}

/// A search for a slot that no run covers: before it, as many runs have ended as have begun.
struct Pending {
    /// The slot from which on it is searched, in its block.
    from: usize,
    /// Quotients of the block below this are counted.
    counted: usize,
    /// Runs that have begun before the slot `from`, and not ended, of those that are counted.
    begun: u32,
}

impl Pending {
    /// The first free slot of a block, or what is pending for the next one.
    #[inline(always)]
    fn first_free(self, ranks: impl Ranks, occupied: u64, ends: u64) -> Result<usize, Self> {
        let Self { mut from, mut counted, mut begun } = self;
        loop {
            begun += ranks.count(occupied & ranks.low(small_len(from) + 1) & !ranks.low(small_len(counted)));
            if begun == 0 {
                return Ok(from);
            }
            let rest = ends >> from << from;
            // More than 64 pending runs do not end in this block.
            let last = if begun <= small_len(BLOCK) { ranks.pick(rest, begun - 1) } else { 0 };
            counted = from + 1;
            if last == 0 || last == 1 << (BLOCK - 1) {
                begun -= ranks.count(rest).min(begun);
                begun += ranks.count(occupied & !ranks.low(small_len(counted)));
                return Err(Self { from: 0, counted: 0, begun });
            }
            (from, begun) = (last.trailing_zeros() as usize + 1, 0);
        }
    }
}

/// The first words of a block whose slots begin in it.
#[derive(Clone, Copy)]
struct Header {
    occupied: u64,
    ends: u64,
    /// The ends from the first slot on that belongs to this block's quotients, moved up by one bit; below them, a bit for
    /// where those slots begin. So the bit with `n` others below it stands at the first slot behind `n` runs. What ends in
    /// the last slot of the block is not seen.
    bounds: u64,
}

impl Header {
    #[inline(always)]
    fn of(words: &[u64], base: usize) -> Option<Self> {
        let &[occupied, ends, offset] = words[base..].first_chunk::<HEADER>()?;
        if offset >= BLOCK as u64 {
            return None;
        }
        Some(Self { occupied, ends, bounds: (ends >> offset << offset) << 1 | 1 << offset })
    }
}

/// Whether a number is a first part of another.
#[inline(always)]
pub(crate) const fn is_first_part(one: u64, other: u64) -> bool {
    one ^ other <= one ^ one.wrapping_sub(1)
}

/// 64 bits from within a word on.
#[inline(always)]
fn window(words: &[u64], at: usize, shift: u32) -> u64 {
    let pair = u128::from(words[at]) | u128::from(words[at + 1]) << 64;
    low_u64(pair >> shift)
}

/// The bits from `from` up to and without `to`; both are at most 64.
#[inline(always)]
const fn between(from: usize, to: usize) -> u64 {
    low(to) & !low(from)
}

/// The lowest bits, so many of them.
#[inline(always)]
const fn low(bits: usize) -> u64 {
    if bits >= BLOCK { u64::MAX } else { below(small_len(bits)) }
}

/// The same for fewer than 64.
#[inline(always)]
const fn below(bit: u32) -> u64 {
    (1u64 << (bit % u64::BITS)) - 1
}

impl Runs {
    /// A table of so many slots, a multiple of 64 and not 0, for numbers of up to so many bits, 1 to 63.
    pub(crate) fn new(slots: u64, width: u32) -> Self {
        let lanes = 64 / width;
        let ones = (0..lanes).map(|lane| 1 << (lane * width)).sum();
        Self { blocks: slots / BLOCK as u64, width: width as usize, lanes: lanes as usize, ones }
    }

    /// The words that it takes.
    pub(crate) fn words(&self) -> u64 {
        self.blocks * self.stride() as u64 + 1
    }

    /// The blocks of a table whose words are there. Each takes at least as many bytes as it has slots, so that positions
    /// up to two laps behind the last slot fit a `usize`, too.
    #[inline(always)]
    fn blocks(&self) -> usize {
        index(self.blocks)
    }

    fn slots(&self) -> usize {
        self.blocks() * BLOCK
    }

    #[inline(always)]
    fn stride(&self) -> usize {
        HEADER + self.width
    }

    /// Where a quotient's own slot is.
    #[inline(always)]
    pub(crate) fn spot(&self, quotient: u64) -> Spot {
        let (block, bit) = (index(quotient / BLOCK as u64), low_u32(quotient % BLOCK as u64));
        Spot { base: block * self.stride(), bit }
    }

    /// Asks for the words that a question for this quotient looks at.
    #[inline(always)]
    pub(crate) fn prefetch(&self, words: &[u64], spot: Spot) {
        self.prefetch_header(words, spot);
        prefetch(words, spot.base + HEADER + spot.bit as usize * self.width / 64);
    }

    /// Asks for the first words of this quotient's block.
    #[inline(always)]
    pub(crate) fn prefetch_header(&self, words: &[u64], spot: Spot) {
        // They may lie in two lines.
        prefetch(words, spot.base);
        prefetch(words, spot.base + HEADER - 1);
    }

    /// The first word of the block that has a slot, counted from the first slot of the block at `base`; and its place
    /// there.
    #[inline(always)]
    fn reach(&self, base: usize, slot: usize) -> (usize, usize) {
        let (mut reached, end) = (base + slot / BLOCK * self.stride(), self.blocks() * self.stride());
        // Once, if at all; more often only if the words are not whole.
        while reached >= end {
            reached -= end;
        }
        (reached, slot % BLOCK)
    }

    #[inline(always)]
    fn slot(&self, words: &[u64], base: usize, index: usize) -> u64 {
        let bit = index * self.width;
        window(words, base + HEADER + bit / 64, small_len(bit) % 64) & low(self.width)
    }

    #[inline(always)]
    fn set_slot(&self, words: &mut [u64], base: usize, index: usize, number: u64) {
        let bit = index * self.width;
        let (at, shift) = (base + HEADER + bit / 64, bit % 64);
        let (mask, number) = (u128::from(low(self.width)) << shift, u128::from(number) << shift);
        words[at] = words[at] & !(low_u64(mask)) | low_u64(number);
        words[at + 1] = words[at + 1] & !((mask >> 64) as u64) | (number >> 64) as u64;
    }

    /// Whether there is a run of this quotient.
    #[inline(always)]
    pub(crate) fn is_occupied(&self, words: &[u64], spot: Spot) -> bool {
        words[spot.base] >> spot.bit & 1 == 1
    }

    /// The highest bit of each lane.
    #[inline(always)]
    const fn highs(&self) -> u64 {
        self.ones << (self.width - 1)
    }

    /// The highest bit of each lane that is 0.
    #[inline(always)]
    const fn zeros(&self, lanes: u64) -> u64 {
        let highs = self.highs();
        // The sum sets the highest bit of a lane if any other is set, and never leaves the lane.
        !((lanes & !highs).wrapping_add(highs - self.ones) | lanes) & highs
    }

    /// The highest bit of each lane whose number is a first part of `number`.
    #[inline(always)]
    const fn first_parts(&self, lanes: u64, number: u64) -> u64 {
        let differences = lanes ^ number.wrapping_mul(self.ones);
        // All bits up to the lowest 1 of each lane. A lane without any spoils those above it only, which are behind the
        // run.
        let tails = lanes ^ lanes.wrapping_sub(self.ones);
        self.zeros(differences & !tails)
    }

    /// The highest bit of each lane whose number is at most `number`.
    #[inline(always)]
    const fn not_above(&self, lanes: u64, number: u64) -> u64 {
        let (highs, number) = (self.highs(), number.wrapping_mul(self.ones));
        // Compared without their highest bits first: no difference leaves its lane.
        let low = (number | highs).wrapping_sub(lanes & !highs);
        (number & !lanes | !(number ^ lanes) & low) & highs
    }

    /// The slots of the run of this quotient, which there is. `None` if they are too many, or beyond the quotient's block:
    /// then only [`any_far`](Runs::any_far) can tell.
    #[inline(always)]
    pub(crate) fn aim(&self, ranks: impl Ranks, words: &[u64], spot: Spot) -> Option<Aim> {
        let Header { occupied, bounds, .. } = Header::of(words, spot.base)?;
        let first = ranks.pick(bounds, ranks.count(occupied & below(spot.bit)));
        // Those above the first; none if there is no first.
        let above = bounds & !(first ^ first.wrapping_sub(1));
        let start = first.trailing_zeros().max(spot.bit) as usize;
        let len = (above.trailing_zeros() as usize).wrapping_sub(start);
        if above == 0 || len > self.lanes {
            return None;
        }
        let (bit, bits) = (start * self.width, len * self.width);
        Some(Aim { at: spot.base + HEADER + bit / 64, shift: small_len(bit) % 64, bits: small_len(bits) })
    }

    /// Asks for the words that are aimed at.
    #[inline(always)]
    pub(crate) fn prefetch_aim(words: &[u64], aim: Aim) {
        prefetch(words, aim.at);
        prefetch(words, aim.at + 1);
    }

    /// Whether one of the numbers that are aimed at is a first part of this one.
    #[inline(always)]
    pub(crate) fn any(&self, ranks: impl Ranks, words: &[u64], aim: Aim, number: u64) -> bool {
        let lanes = window(words, aim.at, aim.shift);
        self.first_parts(lanes, number) & ranks.low(aim.bits) != 0
    }

    /// Whether the run of this quotient, which there is, has a first part of this number; wherever it is.
    #[cold]
    #[inline(never)]
    pub(crate) fn any_far(&self, ranks: impl Ranks, words: &[u64], spot: Spot, number: u64) -> bool {
        self.far(ranks, words, spot).is_some_and(|run| {
            let slots = run.before.max(spot.bit as usize)..run.end;
            self.numbers(words, spot, slots).any(|(_, slot)| is_first_part(slot, number))
        })
    }

    /// Any run, wherever it ends. `None` only if the words are not as they should be.
    fn far(&self, ranks: impl Ranks, words: &[u64], spot: Spot) -> Option<Run> {
        let earlier = ranks.count(words[spot.base] & below(spot.bit));
        let offset = index(words[spot.base + 2].min(self.slots() as u64));
        let mut ends = Ends::new(self, words, spot.base, offset);
        let before = match earlier {
            0 => offset,
            earlier => ends.nth(ranks, earlier - 1)? + 1,
        };
        let end = if self.is_occupied(words, spot) { ends.nth(ranks, 0)? + 1 } else { before };
        Some(Run { before, end })
    }

    /// Slots and the numbers in them.
    fn numbers<'a>(
        &'a self,
        words: &'a [u64],
        spot: Spot,
        slots: Range<usize>,
    ) -> impl Iterator<Item = (usize, u64)> + 'a {
        slots.map(move |slot| {
            let (base, index) = self.reach(spot.base, slot);
            (slot, self.slot(words, base, index))
        })
    }

    /// Inserts a number under a quotient, if what it meets there admits it. There must be a free slot. Whether it is in
    /// now, and what it has met.
    #[inline(always)]
    pub(crate) fn insert(
        &self,
        ranks: impl Ranks,
        words: &mut [u64],
        spot: Spot,
        number: u64,
        admits: impl Fn(Met) -> bool,
    ) -> (bool, Met) {
        match self.insert_near(ranks, words, spot, number, &admits) {
            Some(outcome) => outcome,
            None => self.insert_far(ranks, words, spot, number, &admits),
        }
    }

    /// Within one block: all but few. `None`, and nothing has changed, if more is looked at. How many runs and slots there
    /// are is random, so that little here branches on it.
    #[inline(always)]
    fn insert_near(
        &self,
        ranks: impl Ranks,
        words: &mut [u64],
        Spot { base, bit }: Spot,
        number: u64,
        admits: &impl Fn(Met) -> bool,
    ) -> Option<(bool, Met)> {
        let Header { occupied, ends, bounds } = Header::of(words, base)?;
        let bit = bit as usize;
        let first = ranks.pick(bounds, ranks.count(occupied & below(small_len(bit))));
        let above = bounds & !(first ^ first.wrapping_sub(1));
        let is_run = occupied >> bit & 1 == 1;
        if first == 0 || is_run && above == 0 {
            return None;
        }
        let start = bit.max(first.trailing_zeros() as usize);
        let end = select_unpredictable(is_run, above.trailing_zeros() as usize, start);
        let (mut place, mut met, mut from) = (start, Met::default(), start);
        loop {
            let len = (end - from).min(self.lanes);
            let slot = from * self.width;
            let lanes = window(words, base + HEADER + slot / 64, small_len(slot) % 64);
            let mask = ranks.low(small_len(len * self.width));
            place += ranks.count(self.not_above(lanes, number) & mask) as usize;
            met.copies += ranks.count(self.zeros(lanes ^ number.wrapping_mul(self.ones)) & mask);
            met.is_known |= self.first_parts(lanes, number) & mask != 0;
            from += len;
            if from >= end {
                break;
            }
        }
        if !admits(met) {
            return Some((false, met));
        }
        // At the end of its run it is the new end; the old one is not, if there was a run.
        let (is_end, was_end) = (u64::from(place == end), u64::from(place == end && is_run));
        let newcomer = Newcomer { place, number, is_end: is_end << place, was_end: was_end << place >> 1 };
        let pending = Pending { from: end, counted: bit + 1, begun: 0 };
        let free = match pending.first_free(ranks, occupied, ends) {
            Ok(free) => free,
            Err(pending) => {
                self.spill(ranks, words, base, newcomer, pending)?;
                words[base] = occupied | 1 << bit;
                return Some((true, met));
            }
        };
        let moved = ranks.low(small_len(free)) & !ranks.low(small_len(place));
        let changed = (ends & !moved | (ends & moved) << 1 | newcomer.is_end) & !newcomer.was_end;
        words[base] = occupied | 1 << bit;
        words[base + 1] = changed;
        self.move_up(words, base, place, free, number);
        Some((true, met))
    }

    /// Puts a number to its place in a block that has no free slot behind it: the blocks behind it move up, as far as the
    /// first that has one. `None`, and nothing has changed, if there is none.
    // Inlined, as all that counts bits and is not rare: a function of its own would not have the caller's instructions.
    #[inline(always)]
    fn spill(
        &self,
        ranks: impl Ranks,
        words: &mut [u64],
        base: usize,
        newcomer: Newcomer,
        mut pending: Pending,
    ) -> Option<()> {
        let (mut last, mut blocks) = (base, 0);
        let free = loop {
            last = self.reach(last, BLOCK).0;
            blocks += 1;
            if blocks > self.blocks() {
                return None;
            }
            match pending.first_free(ranks, words[last], words[last + 1]) {
                Ok(free) => break free,
                Err(behind) => pending = behind,
            }
        };
        // From the last block to the second, each with what the one before it hands over.
        let end = self.blocks() * self.stride();
        let mut to = free;
        for _ in 0..blocks {
            words[last + 2] += 1;
            let before = if last == 0 { end - self.stride() } else { last - self.stride() };
            let ends = words[last + 1];
            let moved = ranks.low(small_len(to));
            words[last + 1] =
                ends & !(moved << 1 | 1) | (ends & moved) << 1 | words[before + 1] >> (BLOCK - 1);
            let handed = self.slot(words, before, BLOCK - 1);
            self.move_up(words, last, 0, to, handed);
            (last, to) = (before, BLOCK - 1);
        }
        let Newcomer { place, number, is_end, was_end } = newcomer;
        let (ends, moved) = (words[base + 1], between(place, BLOCK - 1));
        words[base + 1] = (ends & low(place) | (ends & moved) << 1 | is_end) & !was_end;
        self.move_up(words, base, place, BLOCK - 1, number);
        Some(())
    }

    #[cold]
    #[inline(never)]
    fn insert_far(
        &self,
        ranks: impl Ranks,
        words: &mut [u64],
        spot: Spot,
        number: u64,
        admits: &impl Fn(Met) -> bool,
    ) -> (bool, Met) {
        let mut met = Met::default();
        let Some(Run { before, end }) = self.far(ranks, words, spot) else { return (false, met) };
        let is_run = self.is_occupied(words, spot);
        let mut place = before;
        if is_run {
            place = before.max(spot.bit as usize);
            for (_, resident) in self.numbers(words, spot, place..end) {
                met.copies += u32::from(resident == number);
                met.is_known |= is_first_part(resident, number);
                place += usize::from(resident <= number);
            }
            if !admits(met) {
                return (false, met);
            }
        }
        let Some(free) = self.free_from(ranks, words, spot, end) else { return (false, met) };
        if is_run && place == end {
            self.set_end(words, spot, end - 1, false);
        }
        // From the last block to the first, each with what the one before it hands over.
        for block in (place / BLOCK..=free / BLOCK).rev() {
            let (base, _) = self.reach(spot.base, block * BLOCK);
            let from = place.saturating_sub(block * BLOCK);
            let to = (free - block * BLOCK).min(BLOCK - 1);
            let (mut incoming, mut is_end) = (number, !is_run || place == end);
            if block > place / BLOCK {
                let (before, last) = self.reach(spot.base, block * BLOCK - 1);
                incoming = self.slot(words, before, last);
                is_end = words[before + 1] >> last & 1 == 1;
            }
            let (ends, moved) = (words[base + 1], between(from, to));
            words[base + 1] = ends & !between(from, to + 1) | (ends & moved) << 1 | u64::from(is_end) << from;
            self.move_up(words, base, from, to, incoming);
        }
        words[spot.base] |= 1 << spot.bit;
        for block in 1..=free / BLOCK {
            let (base, _) = self.reach(spot.base, block * BLOCK);
            words[base + 2] += 1;
        }
        (true, met)
    }

    fn set_end(&self, words: &mut [u64], spot: Spot, slot: usize, is_end: bool) {
        let (base, index) = self.reach(spot.base, slot);
        words[base + 1] = words[base + 1] & !(1 << index) | u64::from(is_end) << index;
    }

    /// The first slot from `slot` on that no run covers, if the runs up to this quotient's end before `slot`.
    fn free_from(&self, ranks: impl Ranks, words: &[u64], spot: Spot, slot: usize) -> Option<usize> {
        let mut base = spot.base;
        let mut quotients = words[base] & !low(spot.bit as usize + 1);
        // Runs that have begun and not ended; and how far they are counted.
        let (mut begun, mut block, mut index) = (0, 0, slot);
        while index >= BLOCK {
            begun += ranks.count(quotients);
            (block, index) = (block + 1, index - BLOCK);
            (base, _) = self.reach(spot.base, block * BLOCK);
            quotients = words[base];
        }
        while block <= slot / BLOCK + self.blocks() {
            let now = quotients & low(index + 1);
            begun += ranks.count(now);
            quotients ^= now;
            if begun == 0 {
                return Some(block * BLOCK + index);
            }
            let ends = words[base + 1] & !low(index);
            let last = ranks.pick(ends, (begun - 1).min(63));
            if last != 0 && begun <= 64 {
                begun = 0;
                index = last.trailing_zeros() as usize + 1;
            } else {
                begun -= ranks.count(ends).min(begun);
                index = BLOCK;
            }
            if index == BLOCK {
                begun += ranks.count(quotients);
                (block, index) = (block + 1, 0);
                (base, _) = self.reach(spot.base, block * BLOCK);
                quotients = words[base];
            }
        }
        None
    }

    /// Moves the slots from `from` up to and without `to` of a block to the next slot each, and writes a number to `from`.
    /// That of `to` is overwritten.
    #[inline(always)]
    fn move_up(&self, words: &mut [u64], base: usize, from: usize, to: usize, number: u64) {
        let width = self.width;
        let bit = from * width;
        let (at, shift, bits) = (base + HEADER + bit / 64, bit % 64, (to - from) * width);
        if shift + bits + width < 128 {
            // All of it is in two words.
            let pair = u128::from(words[at]) | u128::from(words[at + 1]) << 64;
            let mask = ((1 << (bits + width)) - 1) << shift;
            let moved = (pair >> shift) << width | u128::from(number);
            let pair = pair & !mask | moved << shift & mask;
            words[at] = low_u64(pair);
            words[at + 1] = (pair >> 64) as u64;
            return;
        }
        self.move_words_up(words, base, bit + width, bit + bits + width);
        self.set_slot(words, base, from, number);
    }

    /// Moves bits of a block's slots up by the width of one, to those from `from` up to and without `to`.
    #[inline(never)]
    fn move_words_up(&self, words: &mut [u64], base: usize, from: usize, to: usize) {
        let (slots, width) = (base + HEADER, self.width);
        for at in (from / 64..=(to - 1) / 64).rev() {
            // Before the first word of the slots is one of the header, whose bits the mask leaves out.
            let moved = words[slots + at] << width | words[slots + at - 1] >> (64 - width);
            let mask = between(from.saturating_sub(at * 64), (to - at * 64).min(64));
            words[slots + at] = words[slots + at] & !mask | moved & mask;
        }
    }

    /// Moves the slots behind `from` up to `to` of a block to the slot before each, and writes a number to `to`. That of
    /// `from` is overwritten.
    #[inline(always)]
    fn move_down(&self, words: &mut [u64], base: usize, from: usize, to: usize, number: u64) {
        let width = self.width;
        let bit = from * width;
        let (at, shift, bits) = (base + HEADER + bit / 64, bit % 64, (to - from) * width);
        if shift + bits + width < 128 {
            let pair = u128::from(words[at]) | u128::from(words[at + 1]) << 64;
            let (kept, mask) = ((1 << bits) - 1, ((1 << (bits + width)) - 1) << shift);
            let moved = (pair >> shift >> width) & kept | u128::from(number) << bits;
            let pair = pair & !mask | moved << shift;
            words[at] = low_u64(pair);
            words[at + 1] = (pair >> 64) as u64;
            return;
        }
        self.move_words_down(words, base, bit, bit + bits);
        self.set_slot(words, base, to, number);
    }

    /// Moves bits of a block's slots down by the width of one, to those from `from` up to and without `to`.
    #[inline(never)]
    fn move_words_down(&self, words: &mut [u64], base: usize, from: usize, to: usize) {
        let (slots, width) = (base + HEADER, self.width);
        for at in from / 64..=(to - 1) / 64 {
            let moved = words[slots + at] >> width | words[slots + at + 1] << (64 - width);
            let mask = between(from.saturating_sub(at * 64), (to - at * 64).min(64));
            words[slots + at] = words[slots + at] & !mask | moved & mask;
        }
    }

    /// Removes one number of a quotient's run: that of which `choose` says how many stand before it.
    #[inline(always)]
    pub(crate) fn remove(
        &self,
        ranks: impl Ranks,
        words: &mut [u64],
        spot: Spot,
        choose: impl FnOnce(&mut dyn Iterator<Item = u64>) -> Option<usize>,
    ) -> bool {
        if !self.is_occupied(words, spot) {
            return false;
        }
        let near = self.near(ranks, words, spot);
        let Some(run) = near.clone().or_else(|| self.far_slots(ranks, words, spot)) else { return false };
        let chosen = choose(&mut self.numbers(words, spot, run.clone()).map(|(_, number)| number));
        let Some(place) = chosen.map(|nth| run.start + nth) else { return false };
        let last = near.and_then(|run| self.settled_near(ranks, words, spot, run.end));
        // The last slot of those that lie behind their quotients because of this one.
        let last = last.unwrap_or_else(|| self.settled_from(words, spot, run.end)) - 1;
        for block in place / BLOCK..=last / BLOCK {
            let (base, _) = self.reach(spot.base, block * BLOCK);
            let from = place.saturating_sub(block * BLOCK);
            let to = (last - block * BLOCK).min(BLOCK - 1);
            let ends = words[base + 1];
            let mut changed = ends & !between(from, to + 1) | (ends >> 1) & between(from, to);
            let mut number = 0;
            if block < last / BLOCK {
                let (next, first) = self.reach(spot.base, (block + 1) * BLOCK);
                number = self.slot(words, next, first);
                changed |= (words[next + 1] & 1) << to;
            }
            words[base + 1] = changed;
            self.move_down(words, base, from, to, number);
        }
        if run.len() == 1 {
            words[spot.base] &= !(1 << spot.bit);
        } else if place + 1 == run.end {
            self.set_end(words, spot, place - 1, true);
        }
        for block in 1..=last / BLOCK {
            let (base, _) = self.reach(spot.base, block * BLOCK);
            words[base + 2] -= 1;
        }
        true
    }

    /// The slots of a run that ends in its quotient's block, before the last slot: all but few.
    #[inline(always)]
    fn near(&self, ranks: impl Ranks, words: &[u64], spot: Spot) -> Option<Range<usize>> {
        let Header { occupied, bounds, .. } = Header::of(words, spot.base)?;
        let first = ranks.pick(bounds, ranks.count(occupied & below(spot.bit)));
        let above = bounds & !(first ^ first.wrapping_sub(1));
        (above != 0).then(|| first.trailing_zeros().max(spot.bit) as usize..above.trailing_zeros() as usize)
    }

    #[cold]
    #[inline(never)]
    fn far_slots(&self, ranks: impl Ranks, words: &[u64], spot: Spot) -> Option<Range<usize>> {
        let run = self.far(ranks, words, spot)?;
        Some(run.before.max(spot.bit as usize)..run.end)
    }

    /// As [`settled_from`](Runs::settled_from), if it is in the quotient's block.
    #[inline(always)]
    fn settled_near(&self, ranks: impl Ranks, words: &[u64], spot: Spot, slot: usize) -> Option<usize> {
        let Header { occupied, ends, .. } = Header::of(words, spot.base)?;
        let (mut slot, mut counted) = (slot, spot.bit as usize + 1);
        loop {
            // Runs whose quotients lie before this slot are behind their own.
            let begun = ranks.count(occupied & ranks.low(small_len(slot)) & !ranks.low(small_len(counted)));
            if begun == 0 {
                return Some(slot);
            }
            let last = ranks.pick(ends >> slot << slot, begun - 1);
            counted = slot;
            slot = last.trailing_zeros() as usize + 1;
            if slot >= BLOCK {
                return None;
            }
        }
    }

    /// The first slot from `slot` on that is free or has its own quotient's run, if the run of this quotient ends before
    /// `slot`.
    fn settled_from(&self, words: &[u64], spot: Spot, slot: usize) -> usize {
        let mut ends = Ends::new(self, words, spot.base, slot);
        let (mut slot, mut block) = (slot, 0);
        let mut quotients = words[spot.base] & !low(spot.bit as usize + 1);
        loop {
            while quotients == 0 {
                block += 1;
                if block * BLOCK >= slot {
                    return slot;
                }
                quotients = words[self.reach(spot.base, block * BLOCK).0];
            }
            let quotient = block * BLOCK + quotients.trailing_zeros() as usize;
            quotients &= quotients - 1;
            if quotient >= slot {
                return slot;
            }
            match ends.next() {
                Some(end) => slot = end + 1,
                None => return slot,
            }
        }
    }

    /// All quotients and numbers, ascending.
    pub(crate) fn iter<'a>(&self, words: &'a [u64]) -> Numbers<'a> {
        Numbers { runs: *self, words, quotients: words[0], block: 0, next: index(words[2]) }
    }

    /// Whether the words are as this table writes them: every run where it belongs, ascending and without a 0, and nothing
    /// where nothing is. Calls `each` with every number.
    pub(crate) fn is_whole(&self, words: &[u64], mut each: impl FnMut(u64)) -> bool {
        let slots = self.slots();
        // No slot is looked at twice, so that one lap behind the last is as far as it goes.
        let at = |slot: usize| {
            let block = slot / BLOCK;
            let block = if block < self.blocks() { block } else { block - self.blocks() };
            (block * self.stride(), slot % BLOCK)
        };
        let is_end = |slot: usize| words[at(slot).0 + 1] >> at(slot).1 & 1 == 1;
        let number = |slot: usize| self.slot(words, at(slot).0, at(slot).1);
        let is_empty = |slot: usize| !is_end(slot) && number(slot) == 0;
        // So many slots at the front belong to the last runs.
        let wrapped = words[2];
        if wrapped >= slots as u64 || words.last() != Some(&0) {
            return false;
        }
        let wrapped = index(wrapped);
        let mut next = wrapped;
        for block in 0..self.blocks() {
            let base = block * self.stride();
            if words[base + 2] != next.saturating_sub(block * BLOCK) as u64 {
                return false;
            }
            let mut quotients = words[base];
            while quotients != 0 {
                let quotient = block * BLOCK + quotients.trailing_zeros() as usize;
                quotients &= quotients - 1;
                if !(next..quotient).all(is_empty) {
                    return false;
                }
                next = next.max(quotient);
                let mut highest = 1;
                loop {
                    // Beyond this, slots would be looked at for the second time.
                    if next == slots + wrapped || number(next) < highest {
                        return false;
                    }
                    highest = number(next);
                    each(highest);
                    next += 1;
                    if is_end(next - 1) {
                        break;
                    }
                }
            }
        }
        next.saturating_sub(slots) == wrapped && (next..slots).all(is_empty)
    }
}

/// The slots in which runs end, ascending, from one on; counted from the first slot of a block.
struct Ends<'a> {
    runs: &'a Runs,
    words: &'a [u64],
    base: usize,
    block: usize,
    /// Those of the block that are not yet counted.
    ends: u64,
    /// Blocks that may still be looked at.
    left: usize,
}

impl<'a> Ends<'a> {
    fn new(runs: &'a Runs, words: &'a [u64], base: usize, slot: usize) -> Self {
        let (at, index) = runs.reach(base, slot);
        Self {
            runs,
            words,
            base,
            block: slot / BLOCK,
            ends: words[at + 1] & !low(index),
            left: runs.blocks(),
        }
    }

    /// The next block; `None` if all were looked at.
    fn advance(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        self.block += 1;
        self.ends = self.words[self.runs.reach(self.base, self.block * BLOCK).0 + 1];
        Some(())
    }

    /// The end that has so many others before it.
    fn nth(&mut self, ranks: impl Ranks, mut rank: u32) -> Option<usize> {
        while ranks.count(self.ends) <= rank {
            rank -= ranks.count(self.ends);
            self.advance()?;
        }
        let end = ranks.pick(self.ends, rank);
        self.ends &= !(end | (end - 1));
        Some(self.block * BLOCK + end.trailing_zeros() as usize)
    }

    fn next(&mut self) -> Option<usize> {
        while self.ends == 0 {
            self.advance()?;
        }
        let end = self.ends.trailing_zeros() as usize;
        self.ends &= self.ends - 1;
        Some(self.block * BLOCK + end)
    }
}

/// Quotients and numbers, ascending. The words must be whole.
pub(crate) struct Numbers<'a> {
    runs: Runs,
    words: &'a [u64],
    /// Those of the block whose runs have not ended.
    quotients: u64,
    block: usize,
    /// The next slot, or one before it that is free.
    next: usize,
}

impl Iterator for Numbers<'_> {
    type Item = (u64, u64);

    // How long a run is, no branch predictor knows: what follows from it is computed.
    #[inline(always)]
    fn next(&mut self) -> Option<(u64, u64)> {
        while self.quotients == 0 {
            self.block += 1;
            if self.block >= self.runs.blocks() {
                return None;
            }
            self.quotients = self.words[self.block * self.runs.stride()];
        }
        let quotient = self.block * BLOCK + self.quotients.trailing_zeros() as usize;
        let slot = self.next.max(quotient);
        self.next = slot + 1;
        let mut block = slot / BLOCK;
        if block >= self.runs.blocks() {
            block -= self.runs.blocks();
        }
        let (base, index) = (block * self.runs.stride(), slot % BLOCK);
        let is_end = self.words[base + 1] >> index & 1;
        self.quotients &= self.quotients.wrapping_sub(is_end);
        Some((quotient as u64, self.runs.slot(self.words, base, index)))
    }
}

/// Fills an empty table in the order of quotients.
///
/// Whether a run goes on is random, so that hardly anything branches on it.
pub(crate) struct Filler<'a> {
    runs: Runs,
    words: &'a mut [u64],
    /// The quotient of the last run, the slot where it starts, and the number that is its highest.
    quotient: u64,
    start: usize,
    highest: u64,
    /// The first slot behind everything.
    next: usize,
    /// The block of the last quotient, and those of its quotients that have runs: not yet written.
    block: usize,
    occupied: u64,
    /// The block of the last slot, and the ends in it: not yet written.
    slot_block: usize,
    ends: u64,
    /// What came when the last slot was taken: it belongs to the front.
    late: Vec<(u64, u64)>,
}

impl<'a> Filler<'a> {
    /// The words must all be zero.
    pub(crate) fn new(runs: Runs, words: &'a mut [u64]) -> Self {
        Self {
            runs,
            words,
            quotient: u64::MAX,
            start: 0,
            highest: 0,
            next: 0,
            block: 0,
            occupied: 0,
            slot_block: 0,
            ends: 0,
            late: Vec::new(),
        }
    }

    /// The next number: of the same quotient as the one before, or of a higher one. Numbers of one quotient come in any
    /// order, best ascending.
    #[inline(always)]
    pub(crate) fn push(&mut self, quotient: u64, number: u64) {
        let (runs, block) = (self.runs, index(quotient / BLOCK as u64));
        if block != self.block {
            runs.write_quotients(self.words, self.block..block, self.occupied, self.next);
            (self.block, self.occupied) = (block, 0);
        }
        let (slot, is_same) = (self.next.max(index(quotient)), quotient == self.quotient);
        if slot / BLOCK != self.slot_block {
            if slot >= runs.slots() {
                self.late.push((quotient, number));
                return;
            }
            // A run that goes on has its last number in the last slot of the block.
            let ends = self.ends & !(u64::from(is_same) << (BLOCK - 1));
            self.words[self.slot_block * runs.stride() + 1] = ends;
            (self.slot_block, self.ends) = (slot / BLOCK, 0);
        }
        // Each number ends its run, and the one before it does not if it is of the same.
        let index = slot % BLOCK;
        self.ends = self.ends & !(u64::from(is_same) << index >> 1) | 1 << index;
        self.occupied |= 1 << (quotient % BLOCK as u64);
        self.next = slot + 1;
        self.start = select_unpredictable(is_same, self.start, slot);
        if number < select_unpredictable(is_same, self.highest, 0) {
            return runs.sort_in(self.words, self.start, slot, number);
        }
        (self.quotient, self.highest) = (quotient, number);
        let bit = index * runs.width;
        let at = slot / BLOCK * runs.stride() + HEADER + bit / 64;
        let shifted = u128::from(number) << (bit % 64);
        self.words[at] |= low_u64(shifted);
        self.words[at + 1] |= (shifted >> 64) as u64;
    }

    /// The table is filled.
    pub(crate) fn finish(self, ranks: impl Ranks) {
        let Self { runs, words, .. } = self;
        runs.write_quotients(words, self.block..runs.blocks() - 1, self.occupied, self.next);
        words[self.slot_block * runs.stride() + 1] = self.ends;
        for (quotient, number) in self.late {
            runs.insert(ranks, words, runs.spot(quotient), number, |_| true);
        }
    }
}

// Apart from the filler, which is thus kept in registers.
impl Runs {
    /// Writes which quotients of the first of these blocks have runs, and tells those behind it, and the one behind the
    /// last, how many of their slots belong to earlier runs, which reach up to `next`.
    #[inline(never)]
    fn write_quotients(&self, words: &mut [u64], blocks: Range<usize>, occupied: u64, next: usize) {
        let stride = self.stride();
        words[blocks.start * stride] = occupied;
        for block in blocks.start + 1..=blocks.end {
            words[block * stride + 2] = next.saturating_sub(block * BLOCK) as u64;
        }
    }

    /// Puts a number where it belongs among those of a run, which has all slots from `start` up to this one, which is free.
    #[cold]
    #[inline(never)]
    fn sort_in(&self, words: &mut [u64], start: usize, mut slot: usize, number: u64) {
        let at = |slot: usize| (slot / BLOCK * self.stride(), slot % BLOCK);
        while slot > start {
            let (base, index) = at(slot - 1);
            let before = self.slot(words, base, index);
            if before <= number {
                break;
            }
            let (base, index) = at(slot);
            self.set_slot(words, base, index, before);
            slot -= 1;
        }
        let (base, index) = at(slot);
        self.set_slot(words, base, index, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;
    use crate::raw::simd::{Work, with_ranks};
    use alloc::vec;

    /// Digits that look random, the same in every run.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, sides: u64) -> u64 {
            self.0 += 1;
            Hashing::Xxh3 { seed: 1 }.digest_of(self.0).a % sides
        }
    }

    struct Change<'a> {
        runs: Runs,
        words: &'a mut [u64],
        quotient: u64,
        number: u64,
        is_insert: bool,
    }

    impl Work for Change<'_> {
        type Output = bool;

        fn run(self, ranks: impl Ranks) -> bool {
            let Self { runs, words, quotient, number, is_insert } = self;
            let spot = runs.spot(quotient);
            if is_insert {
                return runs.insert(ranks, words, spot, number, |_| true).0;
            }
            let slots = runs.far_slots(ranks, words, spot).filter(|_| runs.is_occupied(words, spot));
            let found =
                slots.is_some_and(|slots| runs.numbers(words, spot, slots).any(|(_, found)| found == number));
            assert_eq!(
                found,
                runs.remove(ranks, words, spot, |mut run| Iterator::position(&mut run, |n| n == number))
            );
            found
        }
    }

    struct Refill<'a>(Runs, &'a [(u64, u64)], &'a mut [u64]);

    impl Work for Refill<'_> {
        type Output = ();

        fn run(self, ranks: impl Ranks) {
            let mut filler = Filler::new(self.0, self.2);
            self.1.iter().for_each(|&(quotient, number)| filler.push(quotient, number));
            filler.finish(ranks);
        }
    }

    /// Whether a first part of a number is there, as a filter asks.
    fn runs_any(runs: Runs, ranks: impl Ranks, words: &[u64], spot: Spot, number: u64) -> bool {
        runs.is_occupied(words, spot)
            && match runs.aim(ranks, words, spot) {
                Some(aim) => runs.any(ranks, words, aim, number),
                None => runs.any_far(ranks, words, spot, number),
            }
    }

    struct Ask<'a>(Runs, &'a [u64], u64, u64);

    impl Work for Ask<'_> {
        type Output = bool;

        fn run(self, ranks: impl Ranks) -> bool {
            runs_any(self.0, ranks, self.1, self.0.spot(self.2), self.3)
        }
    }

    /// Random inserts and removals in small tables, from empty to full, whose runs are long, cross blocks and go on at the
    /// front; against a sorted list.
    #[test]
    fn tables_are_what_a_sorted_list_is() {
        let mut dice = Dice(0);
        for (blocks, width) in [(1, 2), (1, 13), (2, 11), (3, 15), (4, 63), (5, 51), (7, 32), (9, 33)] {
            let runs = Runs::new(blocks * 64, width);
            for crowded in [false, true] {
                let mut words = vec![0; runs.words() as usize];
                let mut list: Vec<(u64, u64)> = Vec::new();
                for step in 0..4000 {
                    // Up and down between empty and all slots but one.
                    let is_insert = list.is_empty()
                        || list.len() < runs.slots() - 1
                            && dice.below(100) < if step % 1500 < 1000 { 75 } else { 25 };
                    // Crowded: near the end of the table only.
                    let quotient =
                        if crowded { blocks * 64 - 1 - dice.below(40) } else { dice.below(blocks * 64) };
                    let number = 1 + dice.below((1 << width.min(5)) - 1);
                    let item = match dice.below(4) {
                        0 if !is_insert => (quotient, number),
                        _ if !is_insert => list[dice.below(list.len() as u64) as usize],
                        _ => (quotient, number),
                    };
                    let known = list.binary_search(&item);
                    let changed = with_ranks(
                        crate::paths::Paths::default(),
                        Change { runs, words: &mut words, quotient: item.0, number: item.1, is_insert },
                    );
                    match known {
                        Ok(at) | Err(at) if is_insert => list.insert(at, item),
                        Ok(at) => drop(list.remove(at)),
                        Err(_) => assert!(!changed),
                    }
                    assert_eq!(changed, is_insert || known.is_ok());
                    if step % 16 == 0 {
                        let mut count = 0;
                        assert!(
                            runs.is_whole(&words, |_| count += 1),
                            "{blocks} blocks, {width} bits, step {step}"
                        );
                        assert_eq!(count, list.len());
                        assert!(runs.iter(&words).eq(list.iter().copied()));
                        for _ in 0..20 {
                            let (quotient, asked) =
                                (dice.below(blocks * 64), 1 + dice.below((1 << width.min(6)) - 1));
                            let is_first = |&(q, number): &(u64, u64)| {
                                let length = number.trailing_zeros();
                                q == quotient && number >> length >> 1 == asked >> length >> 1
                            };
                            assert_eq!(
                                with_ranks(
                                    crate::paths::Paths::default(),
                                    Ask(runs, &words, quotient, asked)
                                ),
                                list.iter().any(is_first)
                            );
                        }
                        // The same words, however they came about.
                        let mut again = vec![0; words.len()];
                        with_ranks(crate::paths::Paths::default(), Refill(runs, &list, &mut again));
                        assert!(again == words, "{blocks} blocks, {width} bits, step {step}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_changed_bit_is_noticed_and_does_no_harm() {
        let mut dice = Dice(1 << 32);
        let runs = Runs::new(192, 7);
        let mut words = vec![0; runs.words() as usize];
        for _ in 0..170 {
            let (quotient, number) = (dice.below(192), 1 + dice.below(100));
            with_ranks(
                crate::paths::Paths::default(),
                Change { runs, words: &mut words, quotient, number, is_insert: true },
            );
        }
        for bit in 0..words.len() * 64 {
            let mut damaged = words.clone();
            damaged[bit / 64] ^= 1 << (bit % 64);
            let mut sum = 0u64;
            let (mut before, mut after) = (0u64, 0u64);
            assert!(runs.is_whole(&words, |number| before += number));
            // Another number may take the place of one, in order; then it is the counts that tell.
            if runs.is_whole(&damaged, |number| after += number) {
                assert_ne!(before, after, "bit {bit}");
            }
            for quotient in 0..192 {
                struct Look<'a>(Runs, &'a [u64], u64);
                impl Work for Look<'_> {
                    type Output = bool;
                    fn run(self, ranks: impl Ranks) -> bool {
                        let spot = self.0.spot(self.2);
                        runs_any(self.0, ranks, self.1, spot, 91)
                    }
                }
                sum += u64::from(with_ranks(crate::paths::Paths::default(), Look(runs, &damaged, quotient)));
            }
            assert!(sum <= 192);
        }
    }

    // On a 32-bit machine the number of slots was cut, and a crafted header fitted a small payload.
    #[test]
    fn slots_beyond_32_bits_are_not_cut() {
        for slots in [1 << 31, 1 << 32, (1 << 32) + 64, 1 << 40, 3 << 41] {
            assert_eq!(Runs::new(slots, 5).words(), slots / 64 * 8 + 1);
        }
    }
}
