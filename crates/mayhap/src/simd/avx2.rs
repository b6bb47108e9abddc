//! Blocks with 256-bit registers: all lanes of a round at once.

use core::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_add_epi64, _mm256_and_si256, _mm256_blend_epi32, _mm256_loadu_si256,
    _mm256_mul_epu32, _mm256_mullo_epi32, _mm256_or_si256, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setr_epi32, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_sllv_epi32, _mm256_sllv_epi64,
    _mm256_srli_epi32, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_testc_si256,
    _mm256_xor_si256,
};

use super::portable::{Line, SALTS, Split, word};
use crate::hash::{Digest, xxh3_of_word};

/// Whether the processor has AVX2, and BMI for the arithmetic around it. Without the standard library only
/// what the build promises counts.
#[inline]
pub(super) fn is_available() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2");
    #[cfg(not(feature = "std"))]
    return cfg!(all(target_feature = "avx2", target_feature = "bmi1", target_feature = "bmi2"));
}

/// Both halves of the 128-bit products of four words with a constant.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn wide_products(words: __m256i, constant: u64) -> (__m256i, __m256i) {
    let (low, high) =
        (_mm256_set1_epi64x(constant.cast_signed()), _mm256_set1_epi64x((constant >> 32).cast_signed()));
    let words_high = _mm256_srli_epi64::<32>(words);
    let (low_low, low_high) = (_mm256_mul_epu32(words, low), _mm256_mul_epu32(words, high));
    let (high_low, high_high) = (_mm256_mul_epu32(words_high, low), _mm256_mul_epu32(words_high, high));
    // Neither sum overflows: (2^32 - 1)^2 + 2^32 - 1 < 2^64.
    let middle = _mm256_add_epi64(high_low, _mm256_srli_epi64::<32>(low_low));
    let zero = _mm256_setzero_si256();
    let carried = _mm256_add_epi64(low_high, _mm256_blend_epi32::<0b1010_1010>(middle, zero));
    let product = _mm256_blend_epi32::<0b1010_1010>(low_low, _mm256_slli_epi64::<32>(carried));
    let carries = _mm256_add_epi64(_mm256_srli_epi64::<32>(middle), _mm256_srli_epi64::<32>(carried));
    (product, _mm256_add_epi64(high_high, carries))
}

/// The lower halves of those products.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn products(words: __m256i, constant: u64) -> __m256i {
    let swapped = _mm256_set1_epi64x(constant.rotate_left(32).cast_signed());
    let low_low = _mm256_mul_epu32(words, _mm256_set1_epi64x(constant.cast_signed()));
    // 32 bits of low times high below, of high times low above; their sum belongs above.
    let crossed = _mm256_mullo_epi32(words, swapped);
    let sum = _mm256_add_epi32(crossed, _mm256_slli_epi64::<32>(crossed));
    let above = _mm256_blend_epi32::<0b1010_1010>(_mm256_setzero_si256(), sum);
    _mm256_add_epi64(low_low, above)
}

/// `x ^ x >> BITS`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn folded<const BITS: i32>(words: __m256i) -> __m256i {
    _mm256_xor_si256(words, _mm256_srli_epi64::<BITS>(words))
}

/// xxh3-128 of four integers, up to its last steps: what the first half and what the second is made of.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn xxh3_mixed(words: &[u64; 4], flip: u64) -> (__m256i, __m256i) {
    // SAFETY: four words are 32 bytes, and the load needs no alignment.
    let words = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
    let flipped = _mm256_xor_si256(words, _mm256_set1_epi64x(flip.cast_signed()));
    let (low, high) = wide_products(flipped, xxh3_of_word::PRIME);
    let high = _mm256_add_epi64(high, _mm256_add_epi64(low, low));
    (_mm256_xor_si256(low, _mm256_srli_epi64::<3>(high)), high)
}

/// The first halves of the digests of as many integers as there is room for.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn xxh3_halves(words: &[u64], flip: u64, halves: &mut [u64]) {
    let (fours, rest) = words.as_chunks::<4>();
    let (places, last) = halves.as_chunks_mut::<4>();
    for (words, place) in fours.iter().zip(&mut *places) {
        let (low, _) = xxh3_mixed(words, flip);
        let a = folded::<28>(products(folded::<35>(low), xxh3_of_word::PRIME_A));
        // SAFETY: four words are 32 bytes, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(place.as_mut_ptr().cast(), a) }
    }
    let behind = places.iter_mut().skip(fours.len()).flatten().chain(last);
    behind.zip(rest).for_each(|(half, &word)| *half = xxh3_of_word::digest(word, flip).a);
}

/// The digests of as many integers as there is room for.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn xxh3_digests(words: &[u64], flip: u64, digests: &mut [Digest]) {
    let (fours, rest) = words.as_chunks::<4>();
    let (places, last) = digests.as_chunks_mut::<4>();
    for (words, place) in fours.iter().zip(&mut *places) {
        let (low, high) = xxh3_mixed(words, flip);
        let a = folded::<28>(products(folded::<35>(low), xxh3_of_word::PRIME_A));
        let b = folded::<32>(products(folded::<37>(high), xxh3_of_word::PRIME_B));
        let (mut firsts, mut seconds) = ([0; 4], [0; 4]);
        // SAFETY: four words are 32 bytes, and the stores need no alignment.
        unsafe {
            _mm256_storeu_si256(firsts.as_mut_ptr().cast(), a);
            _mm256_storeu_si256(seconds.as_mut_ptr().cast(), b);
        }
        *place = core::array::from_fn(|i| Digest { a: firsts[i], b: seconds[i] });
    }
    let behind = places.iter_mut().skip(fours.len()).flatten().chain(last);
    behind.zip(rest).for_each(|(digest, &word)| *digest = xxh3_of_word::digest(word, flip));
}

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
