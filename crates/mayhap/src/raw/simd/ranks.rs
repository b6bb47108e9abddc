//! Counting and finding the set bits of words, by the machine's own instructions where it has them.

use crate::paths::Paths;
#[cfg(target_arch = "x86_64")]
use crate::raw::detect;

/// What is done with the bits of a word.
pub(crate) trait Ranks: Copy {
    /// How many bits are set.
    fn count(self, word: u64) -> u32;

    /// The word with one of its set bits only: the one that has `rank` others below it. 0 if there are not so many.
    /// `rank` is at most 63.
    fn pick(self, word: u64, rank: u32) -> u64;

    /// The lowest bits, so many of them: all from 64 on. At most 255.
    fn low(self, bits: u32) -> u64;
}

/// Something to be done with words, compiled once for each way to look at their bits. Its `run` is to be inlined.
pub(crate) trait Work {
    /// What comes out.
    type Output;

    /// Does it.
    fn run(self, ranks: impl Ranks) -> Self::Output;
}

/// Does some work with the best instructions that there are.
#[inline(always)]
pub(crate) fn with_ranks<W: Work>(paths: Paths, work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if paths.takes(detect::has_bmi2_and_popcnt) {
        // SAFETY: the instructions were detected.
        return unsafe { bmi2::run(work) };
    }
    let _ = paths;
    work.run(Portable)
}

/// The definition, without any machine's instructions.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Ranks for Portable {
    #[inline(always)]
    fn count(self, word: u64) -> u32 {
        word.count_ones()
    }

    /// Vigna, *Broadword Implementation of Rank/Select Queries*, 2008: running counts of all bytes by one product, the
    /// byte by one comparison of all of them, and then bit by bit.
    #[inline(always)]
    fn pick(self, word: u64, rank: u32) -> u64 {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGHS: u64 = 0x80 * ONES;
        let pairs = word - ((word >> 1) & (0x55 * ONES));
        let nibbles = (pairs & (0x33 * ONES)) + ((pairs >> 2) & (0x33 * ONES));
        // Byte i counts the bits of bytes 0 to i.
        let counts = ((nibbles + (nibbles >> 4)) & (0x0f * ONES)).wrapping_mul(ONES);
        if u64::from(rank) >= counts >> 56 {
            return 0;
        }
        // The high bit of each byte says whether its count is at most `rank`; no count is above 64.
        let below = (((u64::from(rank) * ONES) | HIGHS) - counts) & HIGHS;
        let shift = below.count_ones() * 8;
        let before = counts << 8 >> shift & 0xff;
        let mut byte = word >> shift & 0xff;
        for _ in before..rank.into() {
            byte &= byte - 1;
        }
        (byte & byte.wrapping_neg()) << shift
    }

    #[inline(always)]
    fn low(self, bits: u32) -> u64 {
        if bits >= u64::BITS { u64::MAX } else { (1 << bits) - 1 }
    }
}

#[cfg(target_arch = "x86_64")]
mod bmi2 {
    use core::arch::x86_64::{_bzhi_u64, _pdep_u64};

    use super::{Ranks, Work};

    #[target_feature(enable = "bmi1,bmi2,popcnt")]
    pub(super) fn run<W: Work>(work: W) -> W::Output {
        work.run(Bmi2(()))
    }

    /// Exists only where the instructions do: `run` alone makes one.
    #[derive(Clone, Copy)]
    pub(super) struct Bmi2(());

    impl Ranks for Bmi2 {
        #[inline(always)]
        fn count(self, word: u64) -> u32 {
            word.count_ones()
        }

        #[inline(always)]
        fn pick(self, word: u64, rank: u32) -> u64 {
            // SAFETY: a `Bmi2` exists only on a processor that has the instruction.
            unsafe { _pdep_u64(1 << rank, word) }
        }

        #[inline(always)]
        fn low(self, bits: u32) -> u64 {
            // SAFETY: as above.
            unsafe { _bzhi_u64(u64::MAX, bits) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;

    struct Pick(u64, u32);

    impl Work for Pick {
        type Output = (u32, u64, u64);

        fn run(self, ranks: impl Ranks) -> (u32, u64, u64) {
            (ranks.count(self.0), ranks.pick(self.0, self.1), ranks.low(2 * self.1))
        }
    }

    #[test]
    fn the_best_instructions_find_the_bits_that_a_loop_finds() {
        let random = (0..2000u64).map(|i| {
            let digest = Hashing::default().digest_of(i);
            // Sparse and dense ones too.
            [digest.a, digest.a & digest.b, digest.a | digest.b, digest.a >> (digest.b % 64)]
        });
        for word in random.flatten().chain([0, 1, 1 << 63, u64::MAX, u64::MAX - 1]) {
            let mut left = word;
            for rank in 0..64 {
                let lowest = left & left.wrapping_neg();
                let expected = (word.count_ones(), lowest, ((1u128 << (2 * rank)) - 1) as u64);
                assert_eq!(Pick(word, rank).run(Portable), expected, "{word:x}, {rank}");
                assert_eq!(with_ranks(Paths::default(), Pick(word, rank)), expected, "{word:x}, {rank}");
                left ^= lowest;
            }
        }
    }
}
