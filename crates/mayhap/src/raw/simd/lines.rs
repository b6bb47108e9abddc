//! Sixteen 32-bit lanes of a cache line, compared with one value at once.

use crate::narrow::low_u32;
use crate::paths::Paths;
#[cfg(target_arch = "x86_64")]
use crate::raw::detect;

/// A cache line. Lane `2 i` is the low half of word `i`, lane `2 i + 1` its high half.
pub(crate) type Line = [u64; 8];

/// How a line is compared.
pub(crate) trait Compare: Copy {
    /// A bit for each lane that has this value.
    fn equal(self, line: &Line, value: u32) -> u32;
}

/// Something to be done with lines, compiled once for each way to compare. Its `run` is to be inlined.
pub(crate) trait LineWork {
    /// What comes out.
    type Output;

    /// Does it.
    fn run(self, compare: impl Compare) -> Self::Output;
}

/// Does some work with the best instructions that there are.
#[inline(always)]
pub(crate) fn with_lines<W: LineWork>(paths: Paths, work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if paths.takes(detect::has_avx2) {
        // SAFETY: the instructions were detected.
        return unsafe { avx2::run(work) };
    }
    let _ = paths;
    work.run(Portable)
}

/// The definition, without any machine's instructions.
#[derive(Clone, Copy)]
struct Portable;

impl Compare for Portable {
    #[inline(always)]
    fn equal(self, line: &Line, value: u32) -> u32 {
        let lanes = line.iter().flat_map(|&word| [low_u32(word), (word >> 32) as u32]);
        lanes.enumerate().fold(0, |equal, (lane, held)| equal | u32::from(held == value) << lane)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use core::arch::x86_64::{
        _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_loadu_si256, _mm256_movemask_ps, _mm256_set1_epi32,
    };

    use super::{Compare, Line, LineWork};

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn run<W: LineWork>(work: W) -> W::Output {
        work.run(Avx2(()))
    }

    /// Exists only where the instructions do: `run` alone makes one.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(());

    impl Compare for Avx2 {
        #[inline(always)]
        fn equal(self, line: &Line, value: u32) -> u32 {
            // SAFETY: an `Avx2` exists only on a processor that has the instructions, and a line has twice 32 bytes.
            unsafe {
                let value = _mm256_set1_epi32(value.cast_signed());
                let half = |from: usize| {
                    let lanes = _mm256_loadu_si256(line.as_ptr().add(from).cast());
                    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(lanes, value))).cast_unsigned()
                };
                half(0) | half(4) << 8
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;

    struct Equal<'a>(&'a Line, u32);

    impl LineWork for Equal<'_> {
        type Output = u32;

        fn run(self, compare: impl Compare) -> u32 {
            compare.equal(self.0, self.1)
        }
    }

    #[test]
    fn the_best_instructions_find_the_lanes_that_a_loop_finds() {
        for i in 0..5000u64 {
            // Few values, so that lanes are often equal; and one that is in every bit.
            let line: Line = core::array::from_fn(|word| {
                let digest = Hashing::default().digest_of(8 * i + word as u64);
                digest.a & 0x3_0000_0003 | digest.b & 0x8000_0000_8000_0000
            });
            for value in [0, 1, 2, 3, 0x8000_0000, 0x8000_0003, 5] {
                let mut expected = 0;
                for (index, word) in line.iter().enumerate() {
                    expected |= u32::from(word & 0xffff_ffff == u64::from(value)) << (2 * index);
                    expected |= u32::from(word >> 32 == u64::from(value)) << (2 * index + 1);
                }
                assert_eq!(Equal(&line, value).run(Portable), expected);
                assert_eq!(with_lines(Paths::default(), Equal(&line, value)), expected);
            }
        }
    }
}
