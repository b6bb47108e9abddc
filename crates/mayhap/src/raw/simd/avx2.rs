//! Blocks with 256-bit registers: all lanes of a round at once.

use core::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_loadu_si256, _mm256_mullo_epi32, _mm256_or_si256, _mm256_set1_epi32,
    _mm256_set1_epi64x, _mm256_setr_epi32, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_sllv_epi32,
    _mm256_sllv_epi64, _mm256_srli_epi32, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_sub_epi64,
    _mm256_testc_si256,
};

use super::portable::{Line, SALTS, Split, word};

/// The two halves of a line: words 0 to 3 and 4 to 7.
type Registers = (__m256i, __m256i);

/// The products of a round's word with all salts: that of lane `i` in the lower half of element `i`, that of lane
/// `i + 4` in the upper half.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn line_products(word: u32) -> __m256i {
    let [a, b, c, d, e, f, g, h] = SALTS.map(u32::cast_signed);
    _mm256_mullo_epi32(_mm256_set1_epi32(word.cast_signed()), _mm256_setr_epi32(a, e, b, f, c, g, d, h))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn line_mask<const FULL: u32, const HALF: bool>(half: u64) -> Registers {
    let one = _mm256_set1_epi64x(1);
    let mut mask = (_mm256_setzero_si256(), _mm256_setzero_si256());
    for round in 0..FULL {
        let products = line_products(word(half, round));
        // The top 6 bits of each.
        let lower = _mm256_srli_epi64::<58>(_mm256_slli_epi64::<32>(products));
        let upper = _mm256_srli_epi64::<58>(products);
        mask.0 = _mm256_or_si256(mask.0, _mm256_sllv_epi64(one, lower));
        mask.1 = _mm256_or_si256(mask.1, _mm256_sllv_epi64(one, upper));
    }
    if HALF {
        // The top 7 bits of the first four.
        let products = _mm256_slli_epi64::<32>(line_products(word(half, FULL)));
        let index = _mm256_srli_epi64::<57>(products);
        let bit = _mm256_sllv_epi64(one, _mm256_and_si256(index, _mm256_set1_epi64x(63)));
        // 0: the lower word of the lane, 1: the upper one.
        let upper = _mm256_srli_epi64::<63>(products);
        mask.0 = _mm256_or_si256(mask.0, _mm256_and_si256(bit, _mm256_sub_epi64(upper, one)));
        let all_or_none = _mm256_sub_epi64(_mm256_setzero_si256(), upper);
        mask.1 = _mm256_or_si256(mask.1, _mm256_and_si256(bit, all_or_none));
    }
    mask
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn load(line: &Line) -> Registers {
    let pointer: *const __m256i = line.as_ptr().cast();
    // SAFETY: a line is 64 bytes, twice 32, and the loads need no alignment.
    unsafe { (_mm256_loadu_si256(pointer), _mm256_loadu_si256(pointer.add(1))) }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn covers(line: Registers, mask: Registers) -> bool {
    // Both are computed: a branch between them would be taken at random.
    _mm256_testc_si256(line.0, mask.0) & _mm256_testc_si256(line.1, mask.1) == 1
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn has_line<const FULL: u32, const HALF: bool>(line: &Line, half: u64) -> bool {
    covers(load(line), line_mask::<FULL, HALF>(half))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn set_line<const FULL: u32, const HALF: bool>(line: &mut Line, half: u64) -> bool {
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
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn split_mask(half: u64) -> __m256i {
    let [a, b, c, d, e, f, g, h] = SALTS.map(u32::cast_signed);
    let salts = _mm256_setr_epi32(a, b, c, d, e, f, g, h);
    let product = _mm256_mullo_epi32(_mm256_set1_epi32(word(half, 0).cast_signed()), salts);
    _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(product))
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn has_split(split: &Split, half: u64) -> bool {
    // SAFETY: a split block is 32 bytes, and the load needs no alignment.
    let block = unsafe { _mm256_loadu_si256(split.as_ptr().cast()) };
    _mm256_testc_si256(block, split_mask(half)) == 1
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn set_split(split: &mut Split, half: u64) -> bool {
    let pointer: *mut __m256i = split.as_mut_ptr().cast();
    let mask = split_mask(half);
    // SAFETY: a split block is 32 bytes, and neither load nor store needs alignment.
    unsafe {
        let old = _mm256_loadu_si256(pointer);
        _mm256_storeu_si256(pointer, _mm256_or_si256(old, mask));
        _mm256_testc_si256(old, mask) == 0
    }
}

super::blocks::kernels!(#[target_feature(enable = "avx2,bmi1,bmi2")]);
