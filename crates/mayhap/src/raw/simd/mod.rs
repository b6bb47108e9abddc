//! The loops over keys, lines and buckets that are worth a machine's own instructions.
//!
//! [`portable`] is the definition; every other file of instructions implements the same operations for one
//! instruction set. The choice is made once per batch, and once per filter for single keys.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod blocks;
mod cells;
mod columns;
mod lines;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
pub(crate) mod probes;
mod ranks;
mod segments;

pub(crate) use blocks::{Part, Single, place};
pub(crate) use cells::any_of_four;
pub(crate) use columns::{ColumnWork, Parities, with_parities};
pub(crate) use lines::{Compare, Line, LineWork, with_lines};
pub(crate) use portable::{line_mask, split_mask};
pub(crate) use ranks::{Ranks, Work, with_ranks};
pub(crate) use segments::{Places, Shard, place_all};

#[cfg(target_arch = "x86_64")]
use super::detect;
use crate::math::BlockShape;
use crate::paths::Paths;

/// Asks for the cache line of `slice[index]` before it is needed. Out of range is no error: nothing
/// happens, since a prefetch never changes an answer.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    // A wrapping address needs no check and is never read.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    let address = slice.as_ptr().wrapping_add(index);
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction reads nothing into the program and takes any address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; the instruction only hints.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (slice, index);
}

/// Asks for many keys by the first halves of their digests; writes one answer each, whatever was there before.
#[inline(always)]
pub(crate) fn contains_all<K>(
    paths: Paths,
    words: &[u64],
    shape: BlockShape,
    keys: &[K],
    hash: impl Fn(&[K], &mut [u64]),
    hits: &mut [bool],
) {
    #[cfg(target_arch = "x86_64")]
    if paths.takes(detect::has_avx2) {
        // SAFETY: the instructions were detected.
        return unsafe { avx2::contains_all(paths, words, shape, keys, hash, hits) };
    }
    #[cfg(target_arch = "aarch64")]
    if paths.takes(|| true) {
        return neon::contains_all(paths, words, shape, keys, hash, hits);
    }
    portable::contains_all(paths, words, shape, keys, hash, hits);
}

/// Inserts many keys that all belong into this part of the blocks; tells of each whether it was new.
#[inline(always)]
pub(crate) fn insert_all<K>(
    paths: Paths,
    words: &mut [u64],
    part: Part,
    shape: BlockShape,
    keys: &[K],
    hash: impl Fn(&[K], &mut [u64]),
    told: impl FnMut(bool),
) {
    #[cfg(target_arch = "x86_64")]
    if paths.takes(detect::has_avx2) {
        // SAFETY: the instructions were detected.
        return unsafe { avx2::insert_all(paths, words, part, shape, keys, hash, told) };
    }
    #[cfg(target_arch = "aarch64")]
    if paths.takes(|| true) {
        return neon::insert_all(paths, words, part, shape, keys, hash, told);
    }
    portable::insert_all(paths, words, part, shape, keys, hash, told);
}

/// What is done with single keys in blocks of a shape.
pub(crate) fn single(paths: Paths, shape: BlockShape) -> Single {
    #[cfg(target_arch = "x86_64")]
    if paths.takes(detect::has_avx2) {
        // SAFETY: the instructions were detected.
        return unsafe { avx2::single(shape) };
    }
    #[cfg(target_arch = "aarch64")]
    if paths.takes(|| true) {
        // SAFETY: NEON is part of every 64-bit ARM.
        return unsafe { neon::single(shape) };
    }
    let _ = paths;
    // SAFETY: plain code runs everywhere.
    unsafe { portable::single(shape) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::blocked::BLOCK_SHAPES;
    use crate::hash::Hashing;
    use alloc::vec;
    use alloc::vec::Vec;

    fn copy(halves: &[u64], to: &mut [u64]) {
        to.copy_from_slice(halves);
    }

    fn halves(from: u64) -> Vec<u64> {
        (from..from + 10_000).map(|key| Hashing::default().digest_of(key).a).collect()
    }

    /// Filters below and above the size from which on lines are prefetched.
    #[test]
    fn the_best_kernels_do_what_the_portable_ones_do() {
        let (paths, present, absent) = (Paths::default(), halves(0), halves(1 << 40));
        for shape in BLOCK_SHAPES {
            for blocks in [1, 7, 190, 5_000] {
                let part = Part { first: 0, total: blocks };
                let zeros = vec![0; (blocks * shape.bits() / 64) as usize];
                let (mut plain, mut best, mut one_by_one) = (zeros.clone(), zeros.clone(), zeros);
                let (mut new, mut new_best) = (vec![], vec![]);
                let keys = &present[..2000];
                portable::insert_all(paths, &mut plain, part, shape, keys, copy, |is_new| new.push(is_new));
                insert_all(paths, &mut best, part, shape, keys, copy, |is_new| new_best.push(is_new));
                let single = single(paths, shape);
                let new_single: Vec<bool> = keys.iter().map(|&h| single.insert(&mut one_by_one, h)).collect();
                assert!(plain == best && plain == one_by_one, "{shape:?}, {blocks} blocks");
                assert!(new == new_best && new == new_single, "{shape:?}, {blocks} blocks");
                for asked in [&present, &absent] {
                    // What stands there before is no answer.
                    let (mut hits, mut hits_best) = (vec![true; asked.len()], vec![true; asked.len()]);
                    portable::contains_all(paths, &plain, shape, asked, copy, &mut hits);
                    contains_all(paths, &plain, shape, asked, copy, &mut hits_best);
                    let hits_single: Vec<bool> = asked.iter().map(|&h| single.contains(&plain, h)).collect();
                    assert!(hits == hits_best && hits == hits_single, "{shape:?}, {blocks} blocks");
                }
                assert!(keys.iter().all(|&half| single.contains(&plain, half)));
            }
        }
    }

    #[test]
    fn parts_make_the_whole() {
        let (paths, present) = (Paths::default(), halves(0));
        for shape in BLOCK_SHAPES {
            let (total, stride) = (5_000, shape.bits() as usize / 64);
            let mut whole = vec![0; 5_000 * stride];
            insert_all(paths, &mut whole, Part { first: 0, total }, shape, &present, copy, |_| {});
            let mut parts = vec![0; 5_000 * stride];
            let (low, high) = parts.split_at_mut(1_234 * stride);
            let (below, above): (Vec<u64>, Vec<u64>) =
                present.iter().partition(|&&half| crate::probing::reduce(half, total) < 1_234);
            insert_all(paths, low, Part { first: 0, total }, shape, &below, copy, |_| {});
            insert_all(paths, high, Part { first: 1_234, total }, shape, &above, copy, |_| {});
            assert!(whole == parts, "{shape:?}");
        }
    }
}
