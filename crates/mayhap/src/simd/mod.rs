//! What needs a machine's own instructions. The only folder of the library that may be unsafe.
//!
//! [`portable`] is the definition; every other file implements the same operations for one instruction
//! set. The choice is made once per batch: [`Kernels::best`].
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

pub(crate) use portable::{Line, Shape, Split, line_mask, place, split_mask};

/// Asks for the cache line of `slice[index]` before it is needed. Out of range is no error: nothing
/// happens, since a prefetch never changes an answer.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(index) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the pointer comes from a reference, so it is valid; the instruction reads nothing
        // into the program, and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(element).cast()) }
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(element) = slice.get(index) {
        // SAFETY: as above; the instruction only hints.
        unsafe {
            core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) core::ptr::from_ref(element), options(nostack, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (slice, index);
}

/// Asks for one key. With AVX2 at hand the call is not inlined, and still takes half the time
/// of plain code (6 ns instead of 12, at 100,000 keys).
#[inline]
pub(crate) fn contains_line(lines: &[Line], half: u64, shape: Shape) -> bool {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_available() {
        // SAFETY: AVX2 was detected.
        return unsafe { avx2::contains_line(lines, half, shape) };
    }
    portable::contains_line(lines, half, shape)
}

/// Inserts one key, and says whether it was new.
#[inline]
pub(crate) fn insert_line(lines: &mut [Line], half: u64, shape: Shape) -> bool {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_available() {
        // SAFETY: AVX2 was detected.
        return unsafe { avx2::insert_line(lines, half, shape) };
    }
    portable::insert_line(lines, half, shape)
}

/// Asks for one key.
#[inline]
pub(crate) fn contains_split(splits: &[Split], half: u64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_available() {
        // SAFETY: AVX2 was detected.
        return unsafe { avx2::contains_split(splits, half) };
    }
    portable::contains_split(splits, half)
}

/// Inserts one key, and says whether it was new.
#[inline]
pub(crate) fn insert_split(splits: &mut [Split], half: u64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if avx2::is_available() {
        // SAFETY: AVX2 was detected.
        return unsafe { avx2::insert_split(splits, half) };
    }
    portable::insert_split(splits, half)
}

/// Asks for many keys: the lines, the first halves of the digests, the shape, one answer each.
type Contains<B> = fn(&[B], &[u64], Shape, &mut [bool]);
/// Inserts many keys; the answer is whether a key was new.
type Insert<B> = fn(&mut [B], &[u64], Shape, &mut [bool]);

/// One implementation of all operations on blocks.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    /// For tests and reports.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) name: &'static str,
    pub(crate) contains_lines: Contains<Line>,
    pub(crate) insert_lines: Insert<Line>,
    pub(crate) contains_splits: Contains<Split>,
    pub(crate) insert_splits: Insert<Split>,
}

const PORTABLE: Kernels = Kernels {
    name: "portable",
    contains_lines: portable::contains_lines,
    insert_lines: portable::insert_lines,
    contains_splits: portable::contains_splits,
    insert_splits: portable::insert_splits,
};

impl Kernels {
    /// The fastest that this machine can run.
    #[inline]
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if avx2::is_available() {
            return avx2::KERNELS;
        }
        #[cfg(target_arch = "aarch64")]
        return neon::KERNELS;
        #[allow(unreachable_code)]
        PORTABLE
    }

    /// All that this machine can run, so that one test runs each against the definition.
    #[cfg(test)]
    pub(crate) fn available() -> alloc::vec::Vec<Self> {
        let mut all = alloc::vec![PORTABLE];
        if Self::best().name != PORTABLE.name {
            all.push(Self::best());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn every_kernel_does_what_the_portable_one_does() {
        let halves: Vec<u64> = (0..10_000u64).map(|key| Hashing::default().digest_of(key).a).collect();
        let absent: Vec<u64> =
            (1 << 40..(1 << 40) + 10_000u64).map(|key| Hashing::default().digest_of(key).a).collect();
        let shapes = [(0, true), (1, false), (1, true), (2, false), (2, true)];
        for (full, half) in shapes {
            let shape = Shape { full, half };
            for blocks in [1, 7, 190] {
                let mut expected: Option<(Vec<Line>, Vec<Split>, Vec<bool>)> = None;
                for kernels in Kernels::available() {
                    let (mut lines, mut splits) =
                        (vec![Line::default(); blocks], vec![Split::default(); blocks]);
                    let mut answers = vec![false; 4 * halves.len()];
                    let (new_lines, rest) = answers.split_at_mut(halves.len());
                    let (new_splits, rest) = rest.split_at_mut(halves.len());
                    let (in_lines, in_splits) = rest.split_at_mut(halves.len());
                    (kernels.insert_lines)(&mut lines, &halves[..2000], shape, &mut new_lines[..2000]);
                    (kernels.insert_splits)(&mut splits, &halves[..2000], shape, &mut new_splits[..2000]);
                    (kernels.contains_lines)(&lines, &halves[..2000], shape, &mut in_lines[..2000]);
                    (kernels.contains_splits)(&splits, &halves[..2000], shape, &mut in_splits[..2000]);
                    assert!(in_lines[..2000].iter().chain(&in_splits[..2000]).all(|&hit| hit));
                    (kernels.contains_lines)(&lines, &absent, shape, in_lines);
                    (kernels.contains_splits)(&splits, &absent, shape, in_splits);
                    match &expected {
                        None => expected = Some((lines, splits, answers)),
                        Some(expected) => {
                            assert_eq!((&lines, &splits), (&expected.0, &expected.1), "{}", kernels.name);
                            assert!(answers == expected.2, "{} answers otherwise, {shape:?}", kernels.name);
                        }
                    }
                }
            }
        }
    }
}
