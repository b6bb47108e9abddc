//! xxh3-128 of many integers. `hash` has the same for one.

#[cfg(target_arch = "x86_64")]
use super::detect;
use crate::hash::{Digest, xxh3_of_word};

/// The digests of as many integers as there is room for.
#[inline]
pub(crate) fn digests(words: &[u64], seed: u64, digests: &mut [Digest]) {
    let flip = xxh3_of_word::flip(seed);
    #[cfg(target_arch = "x86_64")]
    if detect::has_avx2() {
        // SAFETY: the instructions were detected.
        return unsafe { avx2::digests(words, flip, digests) };
    }
    digests.iter_mut().zip(words).for_each(|(digest, &word)| *digest = xxh3_of_word::digest(word, flip));
}

/// The first halves of those digests.
#[inline]
pub(crate) fn halves(words: &[u64], seed: u64, halves: &mut [u64]) {
    let flip = xxh3_of_word::flip(seed);
    #[cfg(target_arch = "x86_64")]
    if detect::has_avx2() {
        // SAFETY: the instructions were detected.
        return unsafe { avx2::halves(words, flip, halves) };
    }
    halves.iter_mut().zip(words).for_each(|(half, &word)| *half = xxh3_of_word::digest(word, flip).a);
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use core::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_add_epi64, _mm256_blend_epi32, _mm256_loadu_si256,
        _mm256_mul_epu32, _mm256_mullo_epi32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_slli_epi64,
        _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
    };

    use crate::hash::{Digest, xxh3_of_word};

    /// Both halves of the 128-bit products of four words with a constant.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(in crate::raw) fn wide_products(words: __m256i, constant: u64) -> (__m256i, __m256i) {
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
    fn mixed(words: &[u64; 4], flip: u64) -> (__m256i, __m256i) {
        // SAFETY: four words are 32 bytes, and the load needs no alignment.
        let words = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
        let flipped = _mm256_xor_si256(words, _mm256_set1_epi64x(flip.cast_signed()));
        let (low, high) = wide_products(flipped, xxh3_of_word::PRIME);
        let high = _mm256_add_epi64(high, _mm256_add_epi64(low, low));
        (_mm256_xor_si256(low, _mm256_srli_epi64::<3>(high)), high)
    }

    /// The first halves of the digests of as many integers as there is room for.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn halves(words: &[u64], flip: u64, halves: &mut [u64]) {
        let (fours, rest) = words.as_chunks::<4>();
        let (places, last) = halves.as_chunks_mut::<4>();
        for (words, place) in fours.iter().zip(&mut *places) {
            let (low, _) = mixed(words, flip);
            let a = folded::<28>(products(folded::<35>(low), xxh3_of_word::PRIME_A));
            // SAFETY: four words are 32 bytes, and the store needs no alignment.
            unsafe { _mm256_storeu_si256(place.as_mut_ptr().cast(), a) }
        }
        let behind = places.iter_mut().skip(fours.len()).flatten().chain(last);
        behind.zip(rest).for_each(|(half, &word)| *half = xxh3_of_word::digest(word, flip).a);
    }

    /// The digests of as many integers as there is room for.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn digests(words: &[u64], flip: u64, digests: &mut [Digest]) {
        let (fours, rest) = words.as_chunks::<4>();
        let (places, last) = digests.as_chunks_mut::<4>();
        for (words, place) in fours.iter().zip(&mut *places) {
            let (low, high) = mixed(words, flip);
            let a = folded::<28>(products(folded::<35>(low), xxh3_of_word::PRIME_A));
            let b = folded::<32>(products(folded::<37>(high), xxh3_of_word::PRIME_B));
            let (mut firsts, mut seconds) = ([0; 4], [0; 4]);
            // SAFETY: four words are 32 bytes, and the stores need no alignment.
            unsafe {
                _mm256_storeu_si256(firsts.as_mut_ptr().cast(), a);
                _mm256_storeu_si256(seconds.as_mut_ptr().cast(), b);
            }
            // A closure would have these instructions, and no function of `core` could inline it.
            for ((digest, a), b) in place.iter_mut().zip(firsts).zip(seconds) {
                *digest = Digest { a, b };
            }
        }
        let behind = places.iter_mut().skip(fours.len()).flatten().chain(last);
        behind.zip(rest).for_each(|(digest, &word)| *digest = xxh3_of_word::digest(word, flip));
    }
}
