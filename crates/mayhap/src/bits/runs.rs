//! Numbers of some bits under quotients: sorted runs in slots, found by rank and select.
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
use core::ops::Range;

use crate::simd::{Ranks, prefetch};

/// Slots of a block: one bit of a word each.
pub(crate) const BLOCK: usize = 64;

/// Words of a block before its slots.
const HEADER: usize = 3;

/// Bits that a slot takes beside its number.
pub(crate) const OVERHEAD: u32 = HEADER as u32;

/// The shape of a table: how many blocks, and how wide a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs {
    blocks: usize,
    width: usize,
}

/// Where a quotient's own slot is: the first word of its block, and its bit there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    base: usize,
    bit: u32,
}

/// Decides, having met all numbers of a run in order, whether one more comes in.
pub(crate) trait Admission {
    /// Meets one.
    fn meet(&mut self, number: u64);
    /// Decides.
    fn is_admitted(&self) -> bool;
}

/// Slots of a run, counted from the first slot of its quotient's block and on into the blocks behind it.
struct Run {
    /// The first slot behind all runs of lower quotients.
    before: usize,
    /// The first slot behind this run; if there is none, the same as `before`.
    end: usize,
}

/// The bits from `from` up to and without `to`; both are at most 64.
#[inline(always)]
const fn between(from: usize, to: usize) -> u64 {
    low(to) & !low(from)
}

/// The lowest bits, so many of them.
#[inline(always)]
const fn low(bits: usize) -> u64 {
    if bits >= BLOCK { u64::MAX } else { (1 << bits) - 1 }
}

impl Runs {
    /// A table of so many slots, a multiple of 64 and not 0, for numbers of up to so many bits, 1 to 63.
    pub(crate) fn new(slots: u64, width: u32) -> Self {
        Self { blocks: slots as usize / BLOCK, width: width as usize }
    }

    /// The words that it takes.
    pub(crate) fn words(&self) -> u64 {
        self.blocks as u64 * self.stride() as u64 + 1
    }

    fn slots(&self) -> usize {
        self.blocks * BLOCK
    }

    #[inline(always)]
    fn stride(&self) -> usize {
        HEADER + self.width
    }

    /// Where a quotient's own slot is.
    #[inline(always)]
    pub(crate) fn spot(&self, quotient: u64) -> Spot {
        Spot { base: quotient as usize / BLOCK * self.stride(), bit: quotient as u32 % BLOCK as u32 }
    }

    /// Asks for the words that a question for this quotient looks at.
    #[inline(always)]
    pub(crate) fn prefetch(&self, words: &[u64], spot: Spot) {
        prefetch(words, spot.base);
        prefetch(words, spot.base + HEADER + spot.bit as usize * self.width / 64);
    }

    /// The first word of the block that has a slot, counted from the first slot of the block at `base`; and its place
    /// there.
    fn reach(&self, base: usize, slot: usize) -> (usize, usize) {
        let block = (base / self.stride() + slot / BLOCK) % self.blocks;
        (block * self.stride(), slot % BLOCK)
    }

    #[inline(always)]
    fn slot(&self, words: &[u64], base: usize, index: usize) -> u64 {
        let bit = index * self.width;
        let at = base + HEADER + bit / 64;
        let pair = u128::from(words[at]) | u128::from(words[at + 1]) << 64;
        (pair >> (bit % 64)) as u64 & low(self.width)
    }

    #[inline(always)]
    fn set_slot(&self, words: &mut [u64], base: usize, index: usize, number: u64) {
        let bit = index * self.width;
        let (at, shift) = (base + HEADER + bit / 64, bit % 64);
        let (mask, number) = (u128::from(low(self.width)) << shift, u128::from(number) << shift);
        words[at] = words[at] & !(mask as u64) | number as u64;
        words[at + 1] = words[at + 1] & !((mask >> 64) as u64) | (number >> 64) as u64;
    }

    /// Whether there is a run of this quotient.
    #[inline(always)]
    pub(crate) fn is_occupied(&self, words: &[u64], spot: Spot) -> bool {
        words[spot.base] >> spot.bit & 1 == 1
    }

    /// Whether the run of this quotient, which there is, has a number that the test accepts.
    #[inline(always)]
    pub(crate) fn any(
        &self,
        ranks: impl Ranks,
        words: &[u64],
        spot: Spot,
        test: impl Fn(u64) -> bool,
    ) -> bool {
        match self.near(ranks, words, spot) {
            Some(run) => run.into_iter().any(|index| test(self.slot(words, spot.base, index))),
            None => self.any_far(ranks, words, spot, test),
        }
    }

    #[cold]
    #[inline(never)]
    fn any_far(&self, ranks: impl Ranks, words: &[u64], spot: Spot, test: impl Fn(u64) -> bool) -> bool {
        self.far(ranks, words, spot).is_some_and(|run| {
            self.numbers(words, spot, run.before.max(spot.bit as usize)..run.end).any(|(_, number)| test(number))
        })
    }

    /// The run ends from the first slot on that belongs to this block's quotients, moved up by one bit; below them, a bit
    /// for where those slots begin. So the bit with `n` others below it stands at the first slot behind `n` runs. `None` if
    /// the slots do not begin in this block. What ends in its last slot is not seen.
    #[inline(always)]
    fn bounds(words: &[u64], base: usize) -> Option<u64> {
        let (ends, offset) = (words[base + 1], words[base + 2]);
        (offset < BLOCK as u64).then(|| (ends >> offset << offset) << 1 | 1 << offset)
    }

    /// The slots of a run that ends in its quotient's block, before the last slot: all but few.
    #[inline(always)]
    fn near(&self, ranks: impl Ranks, words: &[u64], spot: Spot) -> Option<Range<usize>> {
        let bounds = Self::bounds(words, spot.base)?;
        let first = ranks.pick(bounds, ranks.count(words[spot.base] & low(spot.bit as usize)));
        // Those above the first; none if there is no first.
        let above = bounds & !(first ^ first.wrapping_sub(1));
        (above != 0)
            .then(|| first.trailing_zeros().max(spot.bit) as usize..above.trailing_zeros() as usize)
    }

    /// Any run, wherever it ends. `None` only if the words are not as they should be.
    fn far(&self, ranks: impl Ranks, words: &[u64], spot: Spot) -> Option<Run> {
        let earlier = ranks.count(words[spot.base] & low(spot.bit as usize));
        let offset = words[spot.base + 2].min(self.slots() as u64) as usize;
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

    /// Inserts a number under a quotient, if the run that is there admits it. There must be a free slot.
    #[inline(always)]
    pub(crate) fn insert(
        &self,
        ranks: impl Ranks,
        words: &mut [u64],
        spot: Spot,
        number: u64,
        admission: &mut impl Admission,
    ) -> bool {
        match self.insert_near(ranks, words, spot, number, admission) {
            Some(is_in) => is_in,
            None => self.insert_far(ranks, words, spot, number, admission),
        }
    }

    /// Within one block: all but few. `None`, and nothing has changed, if more is looked at.
    #[inline(always)]
    fn insert_near(
        &self,
        ranks: impl Ranks,
        words: &mut [u64],
        Spot { base, bit }: Spot,
        number: u64,
        admission: &mut impl Admission,
    ) -> Option<bool> {
        let (occupied, ends, bit) = (words[base], words[base + 1], bit as usize);
        let bounds = Self::bounds(words, base)?;
        let first = ranks.pick(bounds, ranks.count(occupied & low(bit)));
        if first == 0 {
            return None;
        }
        let before = first.trailing_zeros() as usize;
        let is_run = occupied >> bit & 1 == 1;
        let (mut place, mut end) = (before, before);
        if is_run {
            let above = bounds & !(first ^ (first - 1));
            if above == 0 {
                return None;
            }
            end = above.trailing_zeros() as usize;
            place = before.max(bit);
            for index in place..end {
                let resident = self.slot(words, base, index);
                admission.meet(resident);
                place += usize::from(resident <= number);
            }
            if !admission.is_admitted() {
                return Some(false);
            }
        } else if before <= bit {
            words[base] = occupied | 1 << bit;
            words[base + 1] = ends | 1 << bit;
            self.set_slot(words, base, bit, number);
            return Some(true);
        }
        // The first slot that no run covers: behind it, as many runs have ended as have begun.
        let (mut free, mut counted) = (end, bit + 1);
        loop {
            let begun = ranks.count(occupied & between(counted, free + 1));
            if begun == 0 {
                break;
            }
            let last = ranks.pick(ends >> free << free, begun - 1);
            counted = free + 1;
            free = last.trailing_zeros() as usize + 1;
            if free >= BLOCK {
                return None;
            }
        }
        let moved = between(place, free);
        let mut changed = ends & !moved | (ends & moved) << 1;
        if place == end {
            // It is the run's new end; the old one is not, if there was a run.
            changed |= 1 << place;
            changed &= !(u64::from(is_run) << place >> 1);
        }
        words[base] = occupied | 1 << bit;
        words[base + 1] = changed;
        self.move_up(words, base, place, free);
        self.set_slot(words, base, place, number);
        Some(true)
    }

    #[cold]
    #[inline(never)]
    fn insert_far(
        &self,
        ranks: impl Ranks,
        words: &mut [u64],
        spot: Spot,
        number: u64,
        admission: &mut impl Admission,
    ) -> bool {
        let Some(Run { before, end }) = self.far(ranks, words, spot) else { return false };
        let is_run = self.is_occupied(words, spot);
        let mut place = before;
        if is_run {
            place = before.max(spot.bit as usize);
            for (_, resident) in self.numbers(words, spot, place..end) {
                admission.meet(resident);
                place += usize::from(resident <= number);
            }
            if !admission.is_admitted() {
                return false;
            }
        }
        let Some(free) = self.free_from(ranks, words, spot, end) else { return false };
        if is_run && place == end {
            self.set_end(words, spot, end - 1, false);
        }
        for block in (place / BLOCK..=free / BLOCK).rev() {
            let (base, _) = self.reach(spot.base, block * BLOCK);
            let from = place.saturating_sub(block * BLOCK);
            let to = (free - block * BLOCK).min(BLOCK - 1);
            self.move_up(words, base, from, to);
            let (ends, moved) = (words[base + 1], between(from, to));
            words[base + 1] = ends & !between(from, to + 1) | (ends & moved) << 1;
            if block > place / BLOCK {
                let (before, last) = self.reach(spot.base, block * BLOCK - 1);
                let number = self.slot(words, before, last);
                self.set_slot(words, base, 0, number);
                words[base + 1] |= words[before + 1] >> last & 1;
            }
        }
        let (base, index) = self.reach(spot.base, place);
        self.set_slot(words, base, index, number);
        self.set_end(words, spot, place, !is_run || place == end);
        words[spot.base] |= 1 << spot.bit;
        for block in 1..=free / BLOCK {
            let (base, _) = self.reach(spot.base, block * BLOCK);
            words[base + 2] += 1;
        }
        true
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
        while block <= slot / BLOCK + self.blocks {
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

    /// Moves the slots from `from` up to and without `to` of a block to the next slot each. That of `to` is overwritten.
    #[inline(always)]
    fn move_up(&self, words: &mut [u64], base: usize, from: usize, to: usize) {
        if from >= to {
            return;
        }
        let width = self.width;
        let (from, to) = ((from + 1) * width, (to + 1) * width);
        let (first, last) = (from / 64, (to - 1) / 64);
        let slots = base + HEADER;
        for at in (first..=last).rev() {
            // Before the first word of the slots is one of the header, whose bits the mask leaves out.
            let moved = words[slots + at] << width | words[slots + at - 1] >> (64 - width);
            let above = from.saturating_sub(at * 64);
            let mask = between(above, (to - at * 64).min(64));
            words[slots + at] = words[slots + at] & !mask | moved & mask;
        }
    }

    /// Moves the slots behind `from` up to `to` of a block to the slot before each. That of `from` is overwritten.
    fn move_down(&self, words: &mut [u64], base: usize, from: usize, to: usize) {
        if from >= to {
            return;
        }
        let width = self.width;
        let (from, to) = (from * width, to * width);
        let slots = base + HEADER;
        for at in from / 64..=(to - 1) / 64 {
            let moved = words[slots + at] >> width | words[slots + at + 1] << (64 - width);
            let above = from.saturating_sub(at * 64);
            let mask = between(above, (to - at * 64).min(64));
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
        let Some(Run { before, end }) = self.far(ranks, words, spot) else { return false };
        let start = before.max(spot.bit as usize);
        let chosen = choose(&mut self.numbers(words, spot, start..end).map(|(_, number)| number));
        let Some(place) = chosen.map(|nth| start + nth) else { return false };
        // The last slot of those that lie behind their quotients because of this one.
        let last = self.settled_from(words, spot, end) - 1;
        let (is_last, is_only) = (place + 1 == end, start + 1 == end);
        for block in place / BLOCK..=last / BLOCK {
            let (base, _) = self.reach(spot.base, block * BLOCK);
            let from = place.saturating_sub(block * BLOCK);
            let to = (last - block * BLOCK).min(BLOCK - 1);
            self.move_down(words, base, from, to);
            let ends = words[base + 1];
            let mut changed = ends & !between(from, to + 1) | (ends >> 1) & between(from, to);
            let mut number = 0;
            if block < last / BLOCK {
                let (next, first) = self.reach(spot.base, (block + 1) * BLOCK);
                number = self.slot(words, next, first);
                changed |= (words[next + 1] & 1) << to;
            }
            words[base + 1] = changed;
            self.set_slot(words, base, to, number);
        }
        if is_only {
            words[spot.base] &= !(1 << spot.bit);
        } else if is_last {
            self.set_end(words, spot, place - 1, true);
        }
        for block in 1..=last / BLOCK {
            let (base, _) = self.reach(spot.base, block * BLOCK);
            words[base + 2] -= 1;
        }
        true
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
        let quotients = words[0];
        Numbers { runs: *self, words, quotients, block: 0, quotient: 0, next: words[2] as usize, is_in_run: false }
    }

    /// Whether the words are as this table writes them: every run where it belongs, ascending and without a 0, and nothing
    /// where nothing is. Calls `each` with every number.
    pub(crate) fn is_whole(&self, words: &[u64], mut each: impl FnMut(u64)) -> bool {
        let slots = self.slots();
        // No slot is looked at twice, so that one lap behind the last is as far as it goes.
        let at = |slot: usize| {
            let block = slot / BLOCK;
            let block = if block < self.blocks { block } else { block - self.blocks };
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
        let wrapped = wrapped as usize;
        let mut next = wrapped;
        for block in 0..self.blocks {
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
        Self { runs, words, base, block: slot / BLOCK, ends: words[at + 1] & !low(index), left: runs.blocks }
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
    /// Those of the block that are still to come.
    quotients: u64,
    block: usize,
    quotient: u64,
    next: usize,
    is_in_run: bool,
}

impl Iterator for Numbers<'_> {
    type Item = (u64, u64);

    #[inline(always)]
    fn next(&mut self) -> Option<(u64, u64)> {
        if !self.is_in_run {
            while self.quotients == 0 {
                self.block += 1;
                if self.block >= self.runs.blocks {
                    return None;
                }
                self.quotients = self.words[self.block * self.runs.stride()];
            }
            let quotient = self.block * BLOCK + self.quotients.trailing_zeros() as usize;
            self.quotients &= self.quotients - 1;
            self.quotient = quotient as u64;
            self.next = self.next.max(quotient);
        }
        let mut block = self.next / BLOCK;
        if block >= self.runs.blocks {
            block -= self.runs.blocks;
        }
        let (base, index) = (block * self.runs.stride(), self.next % BLOCK);
        self.is_in_run = self.words[base + 1] >> index & 1 == 0;
        self.next += 1;
        Some((self.quotient, self.runs.slot(self.words, base, index)))
    }
}

/// Fills an empty table in the order of quotients.
pub(crate) struct Filler<'a> {
    runs: Runs,
    words: &'a mut [u64],
    /// The quotient of the last run, the slot where it starts, and the number that is its highest.
    quotient: u64,
    start: usize,
    highest: u64,
    /// The first slot behind everything.
    next: usize,
    /// The last block that knows how many of its slots belong to earlier runs.
    block: usize,
    /// What came when the last slot was taken: it belongs to the front.
    late: Vec<(u64, u64)>,
}

impl<'a> Filler<'a> {
    /// The words must all be zero.
    pub(crate) fn new(runs: Runs, words: &'a mut [u64]) -> Self {
        Self { runs, words, quotient: 0, start: 0, highest: 0, next: 0, block: 0, late: Vec::new() }
    }

    /// The next number: of the same quotient as the one before, or of a higher one. Numbers of one quotient come in any
    /// order, best ascending.
    #[inline(always)]
    pub(crate) fn push(&mut self, quotient: u64, number: u64) {
        let runs = self.runs;
        if quotient != self.quotient || self.next == self.start {
            self.close();
            self.begin(quotient);
        }
        if self.next >= runs.slots() {
            self.late.push((quotient, number));
            return;
        }
        let (base, index) = (self.next / BLOCK * runs.stride(), self.next % BLOCK);
        if number >= self.highest {
            let bit = index * runs.width;
            let (at, shift) = (base + HEADER + bit / 64, bit % 64);
            let shifted = u128::from(number) << shift;
            self.words[at] |= shifted as u64;
            self.words[at + 1] |= (shifted >> 64) as u64;
            self.highest = number;
        } else {
            self.push_down(number);
        }
        self.next += 1;
    }

    #[inline(always)]
    fn begin(&mut self, quotient: u64) {
        let block = quotient as usize / BLOCK;
        if block > self.block {
            self.count_earlier(block);
        }
        self.next = self.next.max(quotient as usize);
        (self.quotient, self.start, self.highest) = (quotient, self.next, 0);
        if self.next < self.runs.slots() {
            self.words[block * self.runs.stride()] |= 1 << (quotient % BLOCK as u64);
        }
    }

    /// Marks the end of the last run, if there is one.
    #[inline(always)]
    fn close(&mut self) {
        if self.next > self.start {
            let end = self.next - 1;
            self.words[end / BLOCK * self.runs.stride() + 1] |= 1 << (end % BLOCK);
        }
    }

    /// Tells the blocks up to this one how many of their slots belong to runs before them.
    fn count_earlier(&mut self, block: usize) {
        for block in self.block + 1..=block {
            self.words[block * self.runs.stride() + 2] = self.next.saturating_sub(block * BLOCK) as u64;
        }
        self.block = block;
    }

    /// Puts a number where it belongs among those of its run.
    #[cold]
    fn push_down(&mut self, number: u64) {
        let runs = self.runs;
        let at = |slot: usize| (slot / BLOCK * runs.stride(), slot % BLOCK);
        let mut slot = self.next;
        while slot > self.start {
            let (base, index) = at(slot - 1);
            let before = runs.slot(self.words, base, index);
            if before <= number {
                break;
            }
            let (base, index) = at(slot);
            runs.set_slot(self.words, base, index, before);
            slot -= 1;
        }
        let (base, index) = at(slot);
        runs.set_slot(self.words, base, index, number);
    }

    /// The table is filled.
    pub(crate) fn finish(mut self, ranks: impl Ranks) {
        self.close();
        self.count_earlier(self.runs.blocks - 1);
        for (quotient, number) in self.late {
            self.runs.insert(ranks, self.words, self.runs.spot(quotient), number, &mut Anyone);
        }
    }
}

/// Admits all.
struct Anyone;

impl Admission for Anyone {
    fn meet(&mut self, _: u64) {}

    fn is_admitted(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;
    use crate::simd::{Work, with_ranks};
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
                return runs.insert(ranks, words, spot, number, &mut Anyone);
            }
            let found = runs.is_occupied(words, spot) && runs.any(ranks, words, spot, |found| found == number);
            assert_eq!(found, runs.remove(ranks, words, spot, |mut run| Iterator::position(&mut run, |n| n == number)));
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
                        || list.len() < runs.slots() - 1 && dice.below(100) < if step % 1500 < 1000 { 75 } else { 25 };
                    // Crowded: near the end of the table only.
                    let quotient = if crowded { blocks * 64 - 1 - dice.below(40) } else { dice.below(blocks * 64) };
                    let number = 1 + dice.below((1 << width.min(5)) - 1);
                    let item = match dice.below(4) {
                        0 if !is_insert => (quotient, number),
                        _ if !is_insert => list[dice.below(list.len() as u64) as usize],
                        _ => (quotient, number),
                    };
                    let known = list.binary_search(&item);
                    let changed = with_ranks(Change {
                        runs,
                        words: &mut words,
                        quotient: item.0,
                        number: item.1,
                        is_insert,
                    });
                    match known {
                        Ok(at) | Err(at) if is_insert => list.insert(at, item),
                        Ok(at) => drop(list.remove(at)),
                        Err(_) => assert!(!changed),
                    }
                    assert_eq!(changed, is_insert || known.is_ok());
                    if step % 16 == 0 {
                        let mut count = 0;
                        assert!(runs.is_whole(&words, |_| count += 1), "{blocks} blocks, {width} bits, step {step}");
                        assert_eq!(count, list.len());
                        assert!(runs.iter(&words).eq(list.iter().copied()));
                        // The same words, however they came about.
                        let mut again = vec![0; words.len()];
                        with_ranks(Refill(runs, &list, &mut again));
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
            with_ranks(Change { runs, words: &mut words, quotient, number, is_insert: true });
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
                        self.0.is_occupied(self.1, spot) && self.0.any(ranks, self.1, spot, |number| number > 90)
                    }
                }
                sum += u64::from(with_ranks(Look(runs, &damaged, quotient)));
            }
            assert!(sum <= 192);
        }
    }
}
