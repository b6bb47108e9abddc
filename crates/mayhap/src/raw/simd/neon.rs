//! Blocks with 128-bit registers: two lanes at once. NEON is part of every 64-bit ARM.

use core::arch::aarch64::{
    uint32x2_t, uint64x2_t, vandq_u64, vbicq_u64, vdup_n_u32, vdupq_n_u64, vld1_u32, vld1q_u64, vmaxvq_u32,
    vmull_u32, vorrq_u64, vreinterpretq_s64_u64, vreinterpretq_u32_u64, vshlq_n_u64, vshlq_u64, vshrq_n_u64,
    vst1q_u64, vsubq_u64,
};

use super::portable::{Line, SALTS, Split, split_mask, word};

/// The salts of two lanes.
#[inline(always)]
fn salts(lane: usize) -> uint32x2_t {
    let pair: &[u32; 2] = SALTS[lane..lane + 2].try_into().expect("two salts");
    // SAFETY: the reference is to two numbers, and NEON is there.
    unsafe { vld1_u32(pair.as_ptr()) }
}

/// The top `32 - FROM` bits of each lane's 32-bit product, where `SHIFT` is `32 + FROM`.
#[inline(always)]
fn indexes<const SHIFT: i32>(word: u32, lane: usize) -> uint64x2_t {
    // SAFETY: arithmetic in registers, and NEON is there.
    unsafe { vshrq_n_u64::<SHIFT>(vshlq_n_u64::<32>(vmull_u32(vdup_n_u32(word), salts(lane)))) }
}

/// A one at each index.
#[inline(always)]
fn bits(index: uint64x2_t) -> uint64x2_t {
    // SAFETY: arithmetic in registers, and NEON is there.
    unsafe { vshlq_u64(vdupq_n_u64(1), vreinterpretq_s64_u64(index)) }
}

/// Words 0 and 1, 2 and 3, 4 and 5, 6 and 7.
type Registers = [uint64x2_t; 4];

#[inline(always)]
fn line_mask<const FULL: u32, const HALF: bool>(half: u64) -> Registers {
    // SAFETY: arithmetic in registers, and NEON is there.
    unsafe {
        let mut mask = [vdupq_n_u64(0); 4];
        for round in 0..FULL {
            let word = word(half, round);
            for (pair, mask) in mask.iter_mut().enumerate() {
                *mask = vorrq_u64(*mask, bits(indexes::<58>(word, 2 * pair)));
            }
        }
        if HALF {
            let word = word(half, FULL);
            for pair in 0..2 {
                let index = indexes::<57>(word, 2 * pair);
                let bit = bits(vandq_u64(index, vdupq_n_u64(63)));
                // 0: the lower word of the lane, 1: the upper one.
                let upper = vshrq_n_u64::<6>(index);
                let lower_only = vsubq_u64(upper, vdupq_n_u64(1));
                let upper_only = vsubq_u64(vdupq_n_u64(0), upper);
                mask[pair] = vorrq_u64(mask[pair], vandq_u64(bit, lower_only));
                mask[pair + 2] = vorrq_u64(mask[pair + 2], vandq_u64(bit, upper_only));
            }
        }
        mask
    }
}

#[inline(always)]
fn load<const W: usize>(words: &[u64; W], pair: usize) -> uint64x2_t {
    let pair: &[u64; 2] = words[2 * pair..2 * pair + 2].try_into().expect("two words");
    // SAFETY: the reference is to two words.
    unsafe { vld1q_u64(pair.as_ptr()) }
}

/// Whether all bits of the mask are set.
#[inline(always)]
fn covers<const W: usize, const R: usize>(words: &[u64; W], mask: &[uint64x2_t; R]) -> bool {
    // SAFETY: arithmetic in registers, and NEON is there.
    unsafe {
        let mut missing = vdupq_n_u64(0);
        for (pair, &mask) in mask.iter().enumerate() {
            missing = vorrq_u64(missing, vbicq_u64(mask, load(words, pair)));
        }
        vmaxvq_u32(vreinterpretq_u32_u64(missing)) == 0
    }
}

#[inline(always)]
fn set<const W: usize, const R: usize>(words: &mut [u64; W], mask: &[uint64x2_t; R]) -> bool {
    let new = !covers(words, mask);
    for (pair, &mask) in mask.iter().enumerate() {
        // SAFETY: arithmetic in registers, and NEON is there.
        let both = unsafe { vorrq_u64(mask, load(words, pair)) };
        let place: &mut [u64; 2] = (&mut words[2 * pair..2 * pair + 2]).try_into().expect("two words");
        // SAFETY: the reference is to two words.
        unsafe { vst1q_u64(place.as_mut_ptr(), both) };
    }
    new
}

#[inline(always)]
fn has_line<const FULL: u32, const HALF: bool>(line: &Line, half: u64) -> bool {
    covers(line, &line_mask::<FULL, HALF>(half))
}

#[inline(always)]
fn set_line<const FULL: u32, const HALF: bool>(line: &mut Line, half: u64) -> bool {
    set(line, &line_mask::<FULL, HALF>(half))
}

/// The eight shifts of 32-bit lanes are cheap in plain code; only the comparison is done in registers.
#[inline(always)]
fn split_registers(half: u64) -> [uint64x2_t; 2] {
    let mask = split_mask(half);
    [load(&mask, 0), load(&mask, 1)]
}

#[inline(always)]
fn has_split(split: &Split, half: u64) -> bool {
    covers(split, &split_registers(half))
}

#[inline(always)]
fn set_split(split: &mut Split, half: u64) -> bool {
    set(split, &split_registers(half))
}

super::blocks::kernels!();
