//! Blocks with 256-bit registers: all lanes of a round at once.

use core::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_loadu_si256, _mm256_mul_epu32, _mm256_mullo_epi32, _mm256_or_si256,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi32, _mm256_setr_epi64x, _mm256_setzero_si256,
    _mm256_sllv_epi32, _mm256_sllv_epi64, _mm256_srli_epi32, _mm256_srli_epi64, _mm256_storeu_si256,
    _mm256_sub_epi64, _mm256_testc_si256,
};

use super::Kernels;
use super::portable::{Line, SALTS, Shape, Split, place, word};

/// Whether the processor has AVX2. Without the standard library only what the build promises counts.
#[inline]
pub(super) fn is_available() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(feature = "std"))]
    return cfg!(target_feature = "avx2");
}

/// Only for machines on which [`is_available`] said yes: [`Kernels::best`] sees to that.
pub(super) const KERNELS: Kernels = Kernels {
    name: "avx2",
    contains_lines: |lines, halves, shape, hits| {
        // SAFETY: handed out only where AVX2 was detected.
        unsafe { contains_lines(lines, halves, shape, hits) }
    },
    insert_lines: |lines, halves, shape, new| {
        // SAFETY: handed out only where AVX2 was detected.
        unsafe { insert_lines(lines, halves, shape, new) }
    },
    contains_splits: |splits, halves, _, hits| {
        // SAFETY: handed out only where AVX2 was detected.
        unsafe { contains_splits(splits, halves, hits) }
    },
    insert_splits: |splits, halves, _, new| {
        // SAFETY: handed out only where AVX2 was detected.
        unsafe { insert_splits(splits, halves, new) }
    },
};

/// The two halves of a line: words 0 to 3 and 4 to 7.
type Registers = (__m256i, __m256i);

#[inline]
#[target_feature(enable = "avx2")]
fn salts(first: usize) -> __m256i {
    let salt = |i: usize| i64::from(SALTS[first + i]);
    _mm256_setr_epi64x(salt(0), salt(1), salt(2), salt(3))
}

/// Bit indexes of four lanes: the product's bits `from` to 31.
#[inline]
#[target_feature(enable = "avx2")]
fn indexes<const FROM: i32>(word: u32, salts: __m256i) -> __m256i {
    let product = _mm256_mul_epu32(_mm256_set1_epi64x(i64::from(word)), salts);
    let below = _mm256_set1_epi64x((1 << (32 - FROM)) - 1);
    _mm256_and_si256(_mm256_srli_epi64::<FROM>(product), below)
}

#[inline]
#[target_feature(enable = "avx2")]
fn line_mask<const FULL: u32, const HALF: bool>(half: u64) -> Registers {
    let one = _mm256_set1_epi64x(1);
    let mut mask = (_mm256_setzero_si256(), _mm256_setzero_si256());
    for round in 0..FULL {
        let word = word(half, round);
        mask.0 = _mm256_or_si256(mask.0, _mm256_sllv_epi64(one, indexes::<26>(word, salts(0))));
        mask.1 = _mm256_or_si256(mask.1, _mm256_sllv_epi64(one, indexes::<26>(word, salts(4))));
    }
    if HALF {
        let index = indexes::<25>(word(half, FULL), salts(0));
        let bit = _mm256_sllv_epi64(one, _mm256_and_si256(index, _mm256_set1_epi64x(63)));
        // 0: the lower word of the lane, 1: the upper one.
        let upper = _mm256_srli_epi64::<6>(index);
        mask.0 = _mm256_or_si256(mask.0, _mm256_and_si256(bit, _mm256_sub_epi64(upper, one)));
        let all_or_none = _mm256_sub_epi64(_mm256_setzero_si256(), upper);
        mask.1 = _mm256_or_si256(mask.1, _mm256_and_si256(bit, all_or_none));
    }
    mask
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(line: &Line) -> Registers {
    let pointer: *const __m256i = line.as_ptr().cast();
    // SAFETY: a line is 64 bytes, twice 32, and the loads need no alignment.
    unsafe { (_mm256_loadu_si256(pointer), _mm256_loadu_si256(pointer.add(1))) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn covers(line: Registers, mask: Registers) -> bool {
    // Both are computed: a branch between them would be taken at random.
    _mm256_testc_si256(line.0, mask.0) & _mm256_testc_si256(line.1, mask.1) == 1
}

#[target_feature(enable = "avx2")]
fn contains_lines(lines: &[Line], halves: &[u64], shape: Shape, hits: &mut [bool]) {
    match (shape.full, shape.half) {
        (0, _) => contains::<0, true>(lines, halves, hits),
        (1, false) => contains::<1, false>(lines, halves, hits),
        (1, true) => contains::<1, true>(lines, halves, hits),
        (2, false) => contains::<2, false>(lines, halves, hits),
        (_, _) => contains::<2, true>(lines, halves, hits),
    }
}

#[target_feature(enable = "avx2")]
fn insert_lines(lines: &mut [Line], halves: &[u64], shape: Shape, new: &mut [bool]) {
    match (shape.full, shape.half) {
        (0, _) => insert::<0, true>(lines, halves, new),
        (1, false) => insert::<1, false>(lines, halves, new),
        (1, true) => insert::<1, true>(lines, halves, new),
        (2, false) => insert::<2, false>(lines, halves, new),
        (_, _) => insert::<2, true>(lines, halves, new),
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn contains_line(lines: &[Line], half: u64, shape: Shape) -> bool {
    match (shape.full, shape.half) {
        (0, _) => has::<0, true>(lines, half),
        (1, false) => has::<1, false>(lines, half),
        (1, true) => has::<1, true>(lines, half),
        (2, false) => has::<2, false>(lines, half),
        (_, _) => has::<2, true>(lines, half),
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn insert_line(lines: &mut [Line], half: u64, shape: Shape) -> bool {
    match (shape.full, shape.half) {
        (0, _) => set::<0, true>(lines, half),
        (1, false) => set::<1, false>(lines, half),
        (1, true) => set::<1, true>(lines, half),
        (2, false) => set::<2, false>(lines, half),
        (_, _) => set::<2, true>(lines, half),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn has<const FULL: u32, const HALF: bool>(lines: &[Line], half: u64) -> bool {
    covers(load(&lines[place(lines, half)]), line_mask::<FULL, HALF>(half))
}

#[inline]
#[target_feature(enable = "avx2")]
fn set<const FULL: u32, const HALF: bool>(lines: &mut [Line], half: u64) -> bool {
    let place = place(lines, half);
    let line = &mut lines[place];
    let (old, mask) = (load(line), line_mask::<FULL, HALF>(half));
    let pointer: *mut __m256i = line.as_mut_ptr().cast();
    // SAFETY: a line is 64 bytes, twice 32, and the stores need no alignment.
    unsafe {
        _mm256_storeu_si256(pointer, _mm256_or_si256(old.0, mask.0));
        _mm256_storeu_si256(pointer.add(1), _mm256_or_si256(old.1, mask.1));
    }
    !covers(old, mask)
}

#[inline]
#[target_feature(enable = "avx2")]
fn contains<const FULL: u32, const HALF: bool>(lines: &[Line], halves: &[u64], hits: &mut [bool]) {
    for (hit, &half) in hits.iter_mut().zip(halves) {
        *hit = has::<FULL, HALF>(lines, half);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn insert<const FULL: u32, const HALF: bool>(lines: &mut [Line], halves: &[u64], new: &mut [bool]) {
    for (new, &half) in new.iter_mut().zip(halves) {
        *new = set::<FULL, HALF>(lines, half);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn split_mask(half: u64) -> __m256i {
    let [a, b, c, d, e, f, g, h] = SALTS.map(u32::cast_signed);
    let salts = _mm256_setr_epi32(a, b, c, d, e, f, g, h);
    let product = _mm256_mullo_epi32(_mm256_set1_epi32(word(half, 0).cast_signed()), salts);
    _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(product))
}

#[target_feature(enable = "avx2")]
pub(super) fn contains_split(splits: &[Split], half: u64) -> bool {
    let pointer: *const __m256i = splits[place(splits, half)].as_ptr().cast();
    // SAFETY: a split block is 32 bytes, and the load needs no alignment.
    let block = unsafe { _mm256_loadu_si256(pointer) };
    _mm256_testc_si256(block, split_mask(half)) == 1
}

#[target_feature(enable = "avx2")]
pub(super) fn insert_split(splits: &mut [Split], half: u64) -> bool {
    let place = place(splits, half);
    let pointer: *mut __m256i = splits[place].as_mut_ptr().cast();
    let mask = split_mask(half);
    // SAFETY: a split block is 32 bytes, and neither load nor store needs alignment.
    unsafe {
        let old = _mm256_loadu_si256(pointer);
        _mm256_storeu_si256(pointer, _mm256_or_si256(old, mask));
        _mm256_testc_si256(old, mask) == 0
    }
}

#[target_feature(enable = "avx2")]
fn contains_splits(splits: &[Split], halves: &[u64], hits: &mut [bool]) {
    for (hit, &half) in hits.iter_mut().zip(halves) {
        *hit = contains_split(splits, half);
    }
}

#[target_feature(enable = "avx2")]
fn insert_splits(splits: &mut [Split], halves: &[u64], new: &mut [bool]) {
    for (new, &half) in new.iter_mut().zip(halves) {
        *new = insert_split(splits, half);
    }
}
