//! Bits of a key in its block: the definition, in plain code.
//!
//! A key sets one bit in each *lane* of its block. From the first half `a` of its digest come the block
//! (its high bits, by [`reduce`]) and 32-bit words (one per round), and from each word one bit index
//! per lane, by multiplication with the lane's odd constant:
//!
//! ```text
//! line (512 bits), a full round:  8 lanes of 64 bits     bit  (word * SALT[i] mod 2^32) >> 26
//! line, the half round:           4 lanes of 128 bits    bit  (word * SALT[i] mod 2^32) >> 25
//!                                 lane i = words i and i + 4
//! split block (256 bits):         8 lanes of 32 bits     bit  (word * SALT[i] mod 2^32) >> 27
//! ```

use crate::narrow::low_u32;

/// Words in a line.
pub(crate) const LINE: usize = 8;

/// A cache line of bits.
pub(crate) type Line = [u64; LINE];

/// Half a cache line of bits: 8 lanes of 32 bits, two to a word, the lower one first.
pub(crate) type Split = [u64; 4];

/// Odd constants, one per lane: those of the split-block filter in Apache Impala and Parquet.
pub(super) const SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// Odd constants that make the words of later rounds: digits of the golden ratio and of the square
/// root of 3.
const ROUNDS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B];

/// The 32 bits that a round takes its bit indexes from. The block is chosen by the high bits of the
/// half, the first word is its low bits, and later words are mixed from all bits.
#[inline(always)]
pub(super) fn word(half: u64, round: u32) -> u32 {
    match round {
        0 => low_u32(half),
        round => (half.wrapping_mul(ROUNDS[round as usize - 1]) >> 32) as u32,
    }
}

/// The bits of a key in its line: 8 per full round, 4 in the half round.
#[inline(always)]
pub(crate) fn line_mask(half: u64, full: u32, half_round: bool) -> Line {
    let mut mask = [0; LINE];
    for round in 0..full {
        let word = word(half, round);
        for (mask, salt) in mask.iter_mut().zip(SALTS) {
            *mask |= 1u64 << (word.wrapping_mul(salt) >> 26);
        }
    }
    if half_round {
        let word = word(half, full);
        for lane in 0..LINE / 2 {
            let bit = word.wrapping_mul(SALTS[lane]) >> 25;
            mask[lane + LINE / 2 * (bit >> 6) as usize] |= 1u64 << (bit & 63);
        }
    }
    mask
}

/// The bits of a key in its split block.
#[inline(always)]
pub(crate) fn split_mask(half: u64) -> Split {
    let word = word(half, 0);
    core::array::from_fn(|i| {
        let bit = |lane: usize| 1u64 << (word.wrapping_mul(SALTS[lane]) >> 27);
        bit(2 * i) | bit(2 * i + 1) << 32
    })
}

/// Whether all bits of a mask are set, without a branch on the way.
#[inline(always)]
fn covers<const W: usize>(block: &[u64; W], mask: &[u64; W]) -> bool {
    block.iter().zip(mask).fold(0, |missing, (block, mask)| missing | (mask & !block)) == 0
}

/// Sets all bits of a mask, and says whether one was missing.
#[inline(always)]
fn set<const W: usize>(block: &mut [u64; W], mask: &[u64; W]) -> bool {
    let new = !covers(block, mask);
    block.iter_mut().zip(mask).for_each(|(block, mask)| *block |= mask);
    new
}

#[inline(always)]
fn has_line<const FULL: u32, const HALF: bool>(line: &Line, half: u64) -> bool {
    covers(line, &line_mask(half, FULL, HALF))
}

#[inline(always)]
fn set_line<const FULL: u32, const HALF: bool>(line: &mut Line, half: u64) -> bool {
    set(line, &line_mask(half, FULL, HALF))
}

#[inline(always)]
fn has_split(split: &Split, half: u64) -> bool {
    covers(split, &split_mask(half))
}

#[inline(always)]
fn set_split(split: &mut Split, half: u64) -> bool {
    set(split, &split_mask(half))
}

super::blocks::kernels!();
