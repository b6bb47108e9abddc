//! Keys in blocks, one at a time and many: the loops, compiled once for each instruction set.

use crate::batch::pipeline;
use crate::narrow::index;
use crate::paths::Paths;
use crate::probing::reduce;

/// Filters smaller than this are asked without prefetching: the processor hides the second-level cache by itself.
const PREFETCH_FROM_BYTES: usize = 256 << 10;

/// Which of a filter's blocks a slice of words holds: those from `first` on, of `total`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) first: u64,
    pub(crate) total: u64,
}

/// The block of a key.
#[inline(always)]
pub(crate) fn place<B>(blocks: &[B], half: u64) -> usize {
    index(reduce(half, blocks.len() as u64))
}

/// Asks for many keys; writes one answer each, whatever was there before.
#[inline(always)]
pub(super) fn ask<B, K>(
    paths: Paths,
    blocks: &[B],
    keys: &[K],
    hash: impl Fn(&[K], &mut [u64]),
    hits: &mut [bool],
    has: impl Fn(&B, u64) -> bool,
) {
    if blocks.is_empty() {
        hits.fill(false);
        return;
    }
    let far = paths.is_far(size_of_val(blocks), PREFETCH_FROM_BYTES);
    let mut left = hits;
    pipeline(
        &mut left,
        keys,
        hash,
        far,
        |_, half| super::prefetch(blocks, place(blocks, half)),
        |left, halves| {
            let hits = left.split_off_mut(..halves.len()).expect("one answer per key");
            for (hit, &half) in hits.iter_mut().zip(halves) {
                // SAFETY: `place` is below the number of blocks, which is not 0: a half is below 2^64, so
                // its product with the number, shifted down by 64 bits, is below the number.
                *hit = has(unsafe { blocks.get_unchecked(place(blocks, half)) }, half);
            }
        },
    );
}

/// Inserts many keys that all belong into this part; tells of each whether it was new.
#[inline(always)]
pub(super) fn put<B, K>(
    paths: Paths,
    mut blocks: &mut [B],
    part: Part,
    keys: &[K],
    hash: impl Fn(&[K], &mut [u64]),
    mut told: impl FnMut(bool),
    set: impl Fn(&mut B, u64) -> bool,
) {
    let place = |half: u64| index(reduce(half, part.total).wrapping_sub(part.first));
    let far = paths.is_far(size_of_val(blocks), PREFETCH_FROM_BYTES);
    pipeline(
        &mut blocks,
        keys,
        hash,
        far,
        |blocks, half| super::prefetch(blocks, place(half)),
        |blocks, halves| halves.iter().for_each(|&half| told(set(&mut blocks[place(half)], half))),
    );
}

/// Asks for one key, by the words of all blocks and the first half of its digest.
type Contains = unsafe fn(&[u64], u64) -> bool;
/// Inserts one key, and says whether it was new.
type Insert = unsafe fn(&mut [u64], u64) -> bool;

/// What is done with one key in blocks of one shape. Chosen once per filter.
#[derive(Clone, Copy)]
pub(crate) struct Single {
    /// May be called on this machine.
    contains: Contains,
    /// May be called on this machine.
    insert: Insert,
}

impl Single {
    /// # Safety
    /// The machine has the instructions that both were compiled for.
    pub(super) const unsafe fn new(contains: Contains, insert: Insert) -> Self {
        Self { contains, insert }
    }

    /// Asks for one key, by the words of all blocks and the first half of its digest.
    #[inline(always)]
    pub(crate) fn contains(&self, words: &[u64], half: u64) -> bool {
        // SAFETY: promised to `new`.
        unsafe { (self.contains)(words, half) }
    }

    /// Inserts one key, and says whether it was new.
    #[inline(always)]
    pub(crate) fn insert(&self, words: &mut [u64], half: u64) -> bool {
        // SAFETY: promised to `new`.
        unsafe { (self.insert)(words, half) }
    }
}

impl core::fmt::Debug for Single {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Single")
    }
}

/// The loops over keys for one instruction set, from its `has_line`, `set_line`, `has_split` and `set_split`. The
/// shape is a constant in each, so that its rounds are unrolled; closures of a function inherit its instructions.
macro_rules! kernels {
    ($(#[$instructions:meta])?) => {
        use super::blocks::{Part, Single, ask, place, put};
        use crate::math::BlockShape;
        use crate::paths::Paths;

        /// Asks for many keys; one answer each.
        $(#[$instructions])?
        pub(super) fn contains_all<K>(
            paths: Paths,
            words: &[u64],
            shape: BlockShape,
            keys: &[K],
            hash: impl Fn(&[K], &mut [u64]),
            hits: &mut [bool],
        ) {
            let (lines, splits) = (words.as_chunks().0, words.as_chunks().0);
            match shape {
                BlockShape::Line { full: 0, .. } => ask(paths, lines, keys, hash, hits, |l, h| has_line::<0, true>(l, h)),
                BlockShape::Line { full: 1, half: false } => ask(paths, lines, keys, hash, hits, |l, h| has_line::<1, false>(l, h)),
                BlockShape::Line { full: 1, half: true } => ask(paths, lines, keys, hash, hits, |l, h| has_line::<1, true>(l, h)),
                BlockShape::Line { half: false, .. } => ask(paths, lines, keys, hash, hits, |l, h| has_line::<2, false>(l, h)),
                BlockShape::Line { half: true, .. } => ask(paths, lines, keys, hash, hits, |l, h| has_line::<2, true>(l, h)),
                BlockShape::Split => ask(paths, splits, keys, hash, hits, |s, h| has_split(s, h)),
            }
        }

        /// Inserts many keys that all belong into this part; tells of each whether it was new.
        $(#[$instructions])?
        pub(super) fn insert_all<K>(
            paths: Paths,
            words: &mut [u64],
            part: Part,
            shape: BlockShape,
            keys: &[K],
            hash: impl Fn(&[K], &mut [u64]),
            told: impl FnMut(bool),
        ) {
            match shape {
                BlockShape::Line { full: 0, .. } => put(paths, words.as_chunks_mut().0, part, keys, hash, told, |l, h| set_line::<0, true>(l, h)),
                BlockShape::Line { full: 1, half: false } => put(paths, words.as_chunks_mut().0, part, keys, hash, told, |l, h| set_line::<1, false>(l, h)),
                BlockShape::Line { full: 1, half: true } => put(paths, words.as_chunks_mut().0, part, keys, hash, told, |l, h| set_line::<1, true>(l, h)),
                BlockShape::Line { half: false, .. } => put(paths, words.as_chunks_mut().0, part, keys, hash, told, |l, h| set_line::<2, false>(l, h)),
                BlockShape::Line { half: true, .. } => put(paths, words.as_chunks_mut().0, part, keys, hash, told, |l, h| set_line::<2, true>(l, h)),
                BlockShape::Split => put(paths, words.as_chunks_mut().0, part, keys, hash, told, |s, h| set_split(s, h)),
            }
        }

        $(#[$instructions])?
        fn contains_line<const FULL: u32, const HALF: bool>(words: &[u64], half: u64) -> bool {
            let lines = words.as_chunks().0;
            has_line::<FULL, HALF>(&lines[place(lines, half)], half)
        }

        $(#[$instructions])?
        fn insert_line<const FULL: u32, const HALF: bool>(words: &mut [u64], half: u64) -> bool {
            let lines = words.as_chunks_mut().0;
            set_line::<FULL, HALF>(&mut lines[place(lines, half)], half)
        }

        $(#[$instructions])?
        fn contains_split(words: &[u64], half: u64) -> bool {
            let splits = words.as_chunks().0;
            has_split(&splits[place(splits, half)], half)
        }

        $(#[$instructions])?
        fn insert_split(words: &mut [u64], half: u64) -> bool {
            let splits = words.as_chunks_mut().0;
            set_split(&mut splits[place(splits, half)], half)
        }

        /// # Safety
        /// The machine must have the instructions of this file.
        pub(super) const unsafe fn single(shape: BlockShape) -> Single {
            // SAFETY: the caller promises it.
            unsafe {
                match shape {
                    BlockShape::Line { full: 0, .. } => Single::new(contains_line::<0, true>, insert_line::<0, true>),
                    BlockShape::Line { full: 1, half: false } => Single::new(contains_line::<1, false>, insert_line::<1, false>),
                    BlockShape::Line { full: 1, half: true } => Single::new(contains_line::<1, true>, insert_line::<1, true>),
                    BlockShape::Line { half: false, .. } => Single::new(contains_line::<2, false>, insert_line::<2, false>),
                    BlockShape::Line { half: true, .. } => Single::new(contains_line::<2, true>, insert_line::<2, true>),
                    BlockShape::Split => Single::new(contains_split, insert_split),
                }
            }
        }
    };
}
pub(super) use kernels;
