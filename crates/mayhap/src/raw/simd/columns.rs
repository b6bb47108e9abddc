//! Which of the slots that a row picks are set, column by column: an even or an odd number of them.

use crate::paths::Paths;
#[cfg(target_arch = "x86_64")]
use crate::raw::detect;

/// Looks at several columns at a time, with whatever instructions there are.
pub(crate) trait Parities: Copy {
    /// Bit i is the parity of the bits of `row` that are set in the window of column i as well, for so many columns; bits
    /// above them are anything. The window is the word `low[i]` without its lowest `shift` bits, and as many of those of
    /// `high[i]`. Both have words up to the next multiple of [`AT_ONCE`] columns.
    fn parities(self, low: &[u64], high: &[u64], columns: usize, shift: u32, row: u64) -> u64;
}

/// Columns that are looked at together.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only AVX2 looks at several"))]
pub(crate) const AT_ONCE: usize = 8;

/// Something to be done with columns, compiled once for each way to look at them. Its `run` is to be inlined.
pub(crate) trait ColumnWork {
    /// What comes out.
    type Output;

    /// Does it.
    fn run(self, parities: impl Parities) -> Self::Output;
}

/// Does some work with the best instructions that there are.
#[inline(always)]
pub(crate) fn with_parities<W: ColumnWork>(paths: Paths, work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if paths.takes(detect::has_avx2_and_popcnt) {
        // SAFETY: the instructions were detected.
        return unsafe { vectors::run(work) };
    }
    let _ = paths;
    work.run(Portable)
}

/// The definition, without any machine's instructions.
#[derive(Clone, Copy)]
struct Portable;

impl Parities for Portable {
    #[inline(always)]
    fn parities(self, low: &[u64], high: &[u64], columns: usize, shift: u32, row: u64) -> u64 {
        let window = |(&low, &high): (&u64, &u64)| (low >> shift | high << 1 << (63 - shift)) & row;
        let parity = |window: u64| u64::from(window.count_ones() & 1);
        low[..columns].iter().zip(high).map(window).rev().fold(0, |all, window| all << 1 | parity(window))
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use core::arch::x86_64::*;

    use super::{AT_ONCE, ColumnWork, Parities};

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn run<W: ColumnWork>(work: W) -> W::Output {
        work.run(Avx2(()))
    }

    /// Exists only where the instructions do: `run` alone makes one.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(());

    impl Parities for Avx2 {
        #[inline(always)]
        fn parities(self, low: &[u64], high: &[u64], columns: usize, shift: u32, row: u64) -> u64 {
            let groups = columns.div_ceil(AT_ONCE);
            let (low, high) = (&low.as_chunks().0[..groups], &high.as_chunks().0[..groups]);
            let mut all = 0;
            for (low, high) in low.iter().zip(high).rev() {
                // SAFETY: an `Avx2` exists only on a processor that has the instructions.
                all = all << AT_ONCE | unsafe { eight(low, high, shift, row) };
            }
            all
        }
    }

    /// The parities of eight columns.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn eight(low: &[u64; AT_ONCE], high: &[u64; AT_ONCE], shift: u32, row: u64) -> u64 {
        let (right, left) = (_mm_cvtsi32_si128(shift as i32), _mm_cvtsi32_si128(64 - shift as i32));
        let row = _mm256_set1_epi64x(row as i64);
        let window = |low: &[u64], high: &[u64]| {
            // SAFETY: both have four words.
            let (low, high) = unsafe {
                (_mm256_loadu_si256(low.as_ptr().cast()), _mm256_loadu_si256(high.as_ptr().cast()))
            };
            // A shift by 64 gives 0.
            let window = _mm256_or_si256(_mm256_srl_epi64(low, right), _mm256_sll_epi64(high, left));
            _mm256_and_si256(window, row)
        };
        let (first, second) = (window(&low[..4], &high[..4]), window(&low[4..], &high[4..]));
        // Each folded to 32 bits, the first four into the even lanes and the others into the odd ones.
        let first = _mm256_xor_si256(first, _mm256_srli_epi64::<32>(first));
        let second = _mm256_xor_si256(second, _mm256_slli_epi64::<32>(second));
        let mut lanes = _mm256_blend_epi32::<0b1010_1010>(first, second);
        lanes = _mm256_xor_si256(lanes, _mm256_slli_epi32::<16>(lanes));
        lanes = _mm256_xor_si256(lanes, _mm256_slli_epi32::<8>(lanes));
        lanes = _mm256_xor_si256(lanes, _mm256_slli_epi32::<4>(lanes));
        lanes = _mm256_xor_si256(lanes, _mm256_slli_epi32::<2>(lanes));
        lanes = _mm256_xor_si256(lanes, _mm256_slli_epi32::<1>(lanes));
        let in_order = _mm256_permutevar8x32_epi32(lanes, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
        _mm256_movemask_ps(_mm256_castsi256_ps(in_order)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;
    use alloc::vec::Vec;

    struct Ask<'a>(&'a [u64], &'a [u64], usize, u32, u64);

    impl ColumnWork for Ask<'_> {
        type Output = u64;

        fn run(self, parities: impl Parities) -> u64 {
            parities.parities(self.0, self.1, self.2, self.3, self.4) & ((1 << self.2) - 1)
        }
    }

    #[test]
    fn the_best_instructions_find_the_parities_that_a_loop_finds() {
        let words: Vec<u64> = (0..300u64).map(|i| Hashing::default().digest_of(i).a).collect();
        for columns in 0..=32 {
            for shift in 0..64 {
                let (low, high) = (&words[shift..], &words[100 + shift..]);
                let row = words[shift + columns] | 1;
                let slot = |i: usize, slot: usize| match shift + slot {
                    slot @ 0..64 => low[i] >> slot & 1,
                    slot => high[i] >> (slot - 64) & 1,
                };
                let one = |i: usize| (0..64).fold(0, |odd, at| odd ^ (row >> at & slot(i, at)));
                let expected = (0..columns).fold(0, |all, i| all | one(i) << i);
                assert_eq!(Ask(low, high, columns, shift as u32, row).run(Portable), expected);
                assert_eq!(
                    with_parities(Paths::default(), Ask(low, high, columns, shift as u32, row)),
                    expected
                );
            }
        }
    }
}
