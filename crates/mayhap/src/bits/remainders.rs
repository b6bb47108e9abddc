//! A cache line of remainders: numbers of up to 63 bits, as many as there is room for, with how many they are.
//!
//! ```text
//!   bits 0 … 32 s          the low 32 bits of each remainder, in lanes that are compared all at once
//!   bits 32 s … (32 + e) s the other e bits of each
//!   bits 508 … 512         how many there are
//! ```
//!
//! They stand in the order in which they came. Those behind the last are 0.

use crate::narrow::{low_u32, small_len};
use crate::raw::simd::{Compare, Line};

/// Bits of a line.
pub(crate) const LINE_BITS: u32 = 512;

/// Bits of the number of remainders.
const COUNT_BITS: u32 = 4;
const COUNT_SHIFT: u32 = 64 - COUNT_BITS;

/// How remainders lie in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remainders {
    slots: u32,
    /// Bits of a remainder beyond its lane.
    beyond: u32,
    /// Those bits.
    mask: u64,
}

impl Remainders {
    /// Bits of a lane.
    pub(crate) const LANE: u32 = 32;

    /// Remainders of so many bits, 63 at most.
    pub(crate) const fn of_bits(bits: u32) -> Self {
        let beyond = bits.saturating_sub(Self::LANE);
        let slots = (LINE_BITS - COUNT_BITS) / (Self::LANE + beyond);
        Self { slots, beyond, mask: (1 << beyond) - 1 }
    }

    /// How many fit in a line.
    #[inline(always)]
    pub(crate) const fn slots(&self) -> u32 {
        self.slots
    }

    /// How many there are. Of a damaged line, no more than fit.
    #[inline(always)]
    pub(crate) fn count(&self, line: &Line) -> u32 {
        let count = (line[7] >> COUNT_SHIFT) as u32;
        if count < self.slots { count } else { self.slots }
    }

    /// Whether a line has the remainder.
    #[inline(always)]
    pub(crate) fn has(&self, compare: impl Compare, line: &Line, remainder: u64) -> bool {
        let mut equal = compare.equal(line, low_u32(remainder)) & ((1 << self.count(line)) - 1);
        while equal != 0 {
            if self.beyond(line, equal.trailing_zeros()) == remainder >> Self::LANE {
                return true;
            }
            equal &= equal - 1;
        }
        false
    }

    /// The bits of a remainder beyond its lane.
    #[inline(always)]
    fn beyond(&self, line: &Line, slot: u32) -> u64 {
        let bit = Self::LANE * self.slots + slot * self.beyond;
        let (word, shift) = ((bit / 64) as usize % 8, bit % 64);
        // Twice, since a shift by 64 is none.
        (line[word] >> shift | line[(word + 1) % 8] << 1 << (63 - shift)) & self.mask
    }

    /// Puts a remainder behind the others, of which there are so many, fewer than fit.
    #[inline(always)]
    pub(crate) fn push(&self, line: &mut Line, count: u32, remainder: u64) {
        line[(count / 2) as usize % 8] |= (remainder & 0xffff_ffff) << (Self::LANE * (count % 2));
        let bit = Self::LANE * self.slots + count * self.beyond;
        let (word, shift) = ((bit / 64) as usize % 8, bit % 64);
        let beyond = remainder >> Self::LANE;
        line[word] |= beyond << shift;
        // None of them, if they end with the word: then this may be the first word.
        line[(word + 1) % 8] |= beyond >> 1 >> (63 - shift);
        line[7] += 1 << COUNT_SHIFT;
    }

    /// The remainders.
    #[inline(always)]
    pub(crate) fn iter<'a>(&'a self, line: &'a Line) -> impl Iterator<Item = u64> + 'a {
        (0..self.count(line)).map(|slot| {
            let lane = line[(slot / 2) as usize % 8] >> (Self::LANE * (slot % 2)) & 0xffff_ffff;
            self.beyond(line, slot) << Self::LANE | lane
        })
    }

    /// Whether a line is as this code writes it: with no more remainders than fit, of so many bits, and 0 behind them.
    pub(crate) fn is_whole(&self, line: &Line, bits: u32) -> bool {
        let mut written = Line::default();
        for (count, remainder) in self.iter(line).enumerate() {
            if remainder >> bits != 0 {
                return false;
            }
            self.push(&mut written, small_len(count), remainder);
        }
        written == *line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;
    use crate::raw::simd::{LineWork, with_lines};
    use alloc::vec::Vec;

    struct Has<'a>(Remainders, &'a Line, u64);

    impl LineWork for Has<'_> {
        type Output = bool;

        fn run(self, compare: impl Compare) -> bool {
            self.0.has(compare, self.1, self.2)
        }
    }

    #[test]
    fn what_was_pushed_is_there_and_nothing_else() {
        for bits in 1..=63 {
            let shape = Remainders::of_bits(bits);
            assert_eq!(shape.slots(), (508 / bits.max(32)).min(15), "{bits} bits");
            for round in 0..200u64 {
                let draw = |i: u64| Hashing::Xxh3 { seed: round }.digest_of(i).a >> (64 - bits);
                // With all bits and with none too.
                let all = (1 << bits) - 1;
                let held: Vec<u64> = [0, all].into_iter().chain((2..).map(draw)).take(15).collect();
                let mut line = Line::default();
                for count in 0..shape.slots() {
                    assert_eq!(shape.count(&line), count);
                    assert!(shape.is_whole(&line, bits));
                    assert!(shape.iter(&line).eq(held[..count as usize].iter().copied()));
                    for &other in &held[count as usize..] {
                        let is_in = held[..count as usize].contains(&other);
                        assert_eq!(
                            with_lines(crate::paths::Paths::default(), Has(shape, &line, other)),
                            is_in,
                            "{bits} bits, {count}"
                        );
                    }
                    shape.push(&mut line, count, held[count as usize]);
                    assert!(
                        held[..=count as usize]
                            .iter()
                            .all(|&r| with_lines(crate::paths::Paths::default(), Has(shape, &line, r)))
                    );
                }
                // One that differs in its highest or lowest bit only.
                for flip in [1, 1 << (bits - 1)] {
                    let other = held[shape.slots() as usize - 1] ^ flip;
                    let is_in = held[..shape.slots() as usize].contains(&other);
                    assert_eq!(with_lines(crate::paths::Paths::default(), Has(shape, &line, other)), is_in);
                }
            }
        }
    }

    #[test]
    fn a_damaged_line_is_noticed_and_does_no_harm() {
        let shape = Remainders::of_bits(36);
        let mut line = Line::default();
        (0..5).for_each(|count| shape.push(&mut line, count, u64::from(count) * 7_000_000_000));
        assert!(shape.is_whole(&line, 36));
        for bit in 0..512 {
            let mut damaged = line;
            damaged[bit / 64] ^= 1 << (bit % 64);
            let noticed = !shape.is_whole(&damaged, 36);
            // Another bit of a remainder makes another remainder.
            // And two or eight more of them, all 0, are a line as well.
            let within =
                bit < 5 * 32 || (14 * 32..14 * 32 + 5 * 4).contains(&bit) || [509, 511].contains(&bit);
            assert!(noticed != within, "bit {bit}");
            assert!(shape.iter(&damaged).count() <= 14);
            with_lines(crate::paths::Paths::default(), Has(shape, &damaged, 3));
        }
        assert!(!shape.is_whole(&[u64::MAX; 8], 36));
        assert!(!shape.is_whole(&line, 33));
    }
}
