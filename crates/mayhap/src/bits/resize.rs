//! The bits of one array brought to another length.
//!
//! Both arrays divide the same line from 0 to 1: bit `p` of `from` bits stands for everything between
//! `p / from` and `(p + 1) / from`. Brought to `to` bits it becomes every bit whose part of the line
//! overlaps its own. What was thrown at the line (a hash, reduced by multiplication) and found its bit
//! set in the one array therefore finds it set in the other.
//!
//! ```text
//!   4 bits  |    0    |    1    |    2    |    3    |
//!   6 bits  |  0   |  1   |  2   |  3   |  4   |  5   |      bit 1 of 4 becomes the bits 1 and 2 of 6
//!   2 bits  |         0         |         1         |      bits 0 and 1 of 4 become bit 0 of 2: a fold
//! ```

use core::ops::Range;

use super::words::{OutOfMemory, Words, words_for};
use crate::math::gcd;
use crate::narrow::{index, low_u64};

/// Lengths up to this can be resized: 64 of one and one of the other are added without overflow.
const MOST: u64 = 1 << 56;

/// The bits of `to` that overlap the bits `positions` of `from`.
///
/// From `floor(start * to / from)` to below `ceil(end * to / from)`. If `to` divides `from`, one bit
/// becomes one bit, `position / (from / to)`.
///
/// # Panics
/// If `from` is 0.
///
/// ```
/// use mayhap::bits::overlap;
///
/// assert_eq!(overlap(1..2, 4, 6), 1..3);
/// assert_eq!(overlap(17..18, 1000, 100), 1..2);
/// ```
#[must_use]
pub const fn overlap(positions: Range<u64>, from: u64, to: u64) -> Range<u64> {
    let (from, to) = (from as u128, to as u128);
    let (start, end) = (positions.start as u128 * to, positions.end as u128 * to);
    low_u64(start / from)..low_u64(end.div_ceil(from))
}

/// The first `from` bits of some words, brought to `to` bits in words of their own.
///
/// # Errors
/// [`OutOfMemory`], instead of ending the program.
///
/// # Panics
/// If a length is 0 or above 2^56, or a bit is set behind the first `from`.
pub fn resized(words: &[u64], from: u64, to: u64) -> Result<Words, OutOfMemory> {
    assert!((1..=MOST).contains(&from) && (1..=MOST).contains(&to), "lengths from 1 to 2^56");
    let mut resized = Words::zeroed(words_for(to))?;
    let out = resized.as_mut_slice();
    // In lowest terms a fold by c is 1 to c, and its divisions are short ones.
    let common = gcd(from, to);
    let (from, to) = (from / common, to / common);
    // `overlap` without 128-bit divisions: 64 * to * (words so far) = whole * from + part, all the way.
    let (step, rest) = (64 * to / from, 64 * to % from);
    let (mut whole, mut part) = (0, 0);
    for &word in words {
        let mut left = word;
        // Run by run: neighbours become neighbours, so a run becomes a run.
        while left != 0 {
            let start = u64::from(left.trailing_zeros());
            let end = start + u64::from((left >> start).trailing_ones());
            let (first, rest) = ((part + start * to) / from, (part + start * to) % from);
            let over = rest + (end - start) * to;
            // Most runs of a fold end in the bit that they start in: no second division for those.
            let last = first + if over <= from { 1 } else { over.div_ceil(from) };
            set_range(out, whole + first..whole + last);
            // The carry runs through the lowest run and clears it.
            left &= left.wrapping_add(1 << start);
        }
        (whole, part) = (whole + step, part + rest);
        if part >= from {
            (whole, part) = (whole + 1, part - from);
        }
    }
    Ok(resized)
}

/// Sets the bits of a range that is not empty.
#[inline]
fn set_range(words: &mut [u64], range: Range<u64>) {
    let (first, last) = (index(range.start / 64), index((range.end - 1) / 64));
    let (head, tail) = (!0 << (range.start % 64), !0 >> (63 - (range.end - 1) % 64));
    if first == last {
        words[first] |= head & tail;
    } else {
        words[first] |= head;
        words[first + 1..last].fill(!0);
        words[last] |= tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probing::reduce;
    use alloc::vec;
    use alloc::vec::Vec;
    use mayhap_eval::Random;
    use proptest::prelude::*;

    fn ones(words: &[u64]) -> Vec<u64> {
        (0..words.len() as u64 * 64).filter(|p| words[(p / 64) as usize] >> (p % 64) & 1 == 1).collect()
    }

    fn with_ones(positions: &[u64], bits: u64) -> Vec<u64> {
        let mut words = vec![0; words_for(bits) as usize];
        positions.iter().for_each(|p| words[(p / 64) as usize] |= 1 << (p % 64));
        words
    }

    proptest! {
        // The heart of folding: floor(floor(y) / c) = floor(y / c) for whole c, with y = x * m / 2^64.
        #[test]
        fn reducing_to_a_part_is_reducing_and_dividing(
            x: u64, part in 1..=1u64 << 40, factor in 1..=1u64 << 20,
        ) {
            prop_assert_eq!(reduce(x, part), reduce(x, part * factor) / factor);
        }

        #[test]
        fn what_hits_a_bit_hits_one_that_it_becomes(
            x: u64, from in 1..=1u64 << 48, to in 1..=1u64 << 48,
        ) {
            let position = reduce(x, from);
            prop_assert!(overlap(position..position + 1, from, to).contains(&reduce(x, to)));
        }

        // And no more than that: both ends are hit by something that hits the bit.
        #[test]
        fn a_bit_becomes_no_more_than_it_must(
            share: u64, from in 1..=1u64 << 31, to in 1..=1u64 << 31,
        ) {
            let position = reduce(share, from);
            let became = overlap(position..position + 1, from, to);
            // The first x at or above a share p/m of 2^64.
            let first_x = |p: u64, m: u64| (u128::from(p) << 64).div_ceil(u128::from(m));
            let low = first_x(position, from).max(first_x(became.start, to));
            let high = (first_x(position + 1, from) - 1).min(first_x(became.end, to) - 1);
            for x in [low, high] {
                prop_assert_eq!(reduce(x as u64, from), position);
            }
            prop_assert_eq!(reduce(low as u64, to), became.start);
            prop_assert_eq!(reduce(high as u64, to), became.end - 1);
        }

        #[test]
        fn words_are_resized_by_definition(
            from in 1..700u64, to in 1..700u64, shares in prop::collection::vec(any::<u64>(), 0..300),
        ) {
            let positions: Vec<u64> = shares.iter().map(|&share| reduce(share, from)).collect();
            let became = resized(&with_ones(&positions, from), from, to).unwrap();
            let mut expected: Vec<u64> = positions.iter().flat_map(|&p| overlap(p..p + 1, from, to)).collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(ones(became.as_slice()), expected);
        }
    }

    #[test]
    fn large_lengths_do_not_overflow() {
        // A source of 2^48 bits is not to be had, but its first words are; `to` is what memory allows.
        let mut random = Random::new(1);
        for (from, to) in [(1u64 << 48, 4096), ((1 << 48) - 59, 4099), (MOST, 64)] {
            let words: Vec<u64> = (0..1000).map(|_| random.next_u64()).collect();
            let became = resized(&words, from, to).unwrap();
            let expected = ones(&words).last().map(|&p| overlap(0..p + 1, from, to)).unwrap();
            assert_eq!(ones(became.as_slice()), expected.collect::<Vec<_>>(), "{from} to {to}");
        }
        for to in [1 << 26, (1 << 26) + 1] {
            let became = resized(&[0b1011], 4, to).unwrap();
            let expected = to - (overlap(3..4, 4, to).start - overlap(1..2, 4, to).end);
            assert_eq!(became.count_ones(), expected);
        }
    }

    #[test]
    fn a_full_array_stays_full() {
        for (from, to) in [(64, 64), (64, 1), (1, 64), (128, 640), (100, 99), (99, 100), (1000, 3)] {
            let all: Vec<u64> = (0..from).collect();
            let became = resized(&with_ones(&all, from), from, to).unwrap();
            assert_eq!(became.count_ones(), to, "{from} to {to}");
        }
    }
}
