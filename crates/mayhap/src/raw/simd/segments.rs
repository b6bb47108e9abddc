//! Where the keys of a binary fuse filter lie: arithmetic without memory, for one key and for many at a time.

use crate::batch::BATCH;
use crate::narrow::{index, small_len};
use crate::paths::Paths;
use crate::probing::{folded, reduce};
#[cfg(target_arch = "x86_64")]
use crate::raw::{detect, xxh3};
use crate::shards::shard_of;

/// The fingerprint is made of the whole hash; the caller takes as many of the lowest bits as it has.
#[inline(always)]
const fn fingerprint(hash: u64) -> u64 {
    hash ^ hash >> 32
}

/// Where the keys of a shard lie. Four words without gaps: 256 bits are loaded at once.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) seed: u64,
    /// The number of places that are the first of a key; a multiple of the segment.
    pub(crate) starts: u64,
    /// The places of a segment are 2 to this.
    pub(crate) segment_log: u64,
    /// Places of all shards before it.
    pub(crate) offset: u64,
}

impl Shard {
    pub(crate) fn slots(&self, ways: u32) -> u64 {
        self.starts + (u64::from(ways - 1) << self.segment_log)
    }

    /// The places of a key among all slots, and its fingerprint, under other bits. `bits` tell the shard, and say nothing
    /// more here.
    #[inline(always)]
    pub(crate) fn places<const WAYS: usize>(&self, half: u64, bits: u32) -> ([u64; WAYS], u64) {
        let hash = folded(half ^ self.seed);
        let first = reduce(half << bits, self.starts);
        let segment = 1 << self.segment_log;
        let mask = segment - 1;
        let mut places = [first + self.offset; WAYS];
        for (i, place) in places.iter_mut().enumerate().skip(1) {
            *place = ((first + i as u64 * segment) ^ (hash >> turn::<WAYS>(i) & mask)) + self.offset;
        }
        (places, fingerprint(hash))
    }
}

/// From which bit of the hash on it tells the place in a segment.
#[inline(always)]
const fn turn<const WAYS: usize>(i: usize) -> u32 {
    small_len(if WAYS == 3 { 18 * (2 - i) } else { 16 * (i - 1) })
}

/// The places and fingerprints of a batch of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places<const WAYS: usize> {
    pub(crate) places: [[u64; BATCH]; WAYS],
    pub(crate) fingerprints: [u64; BATCH],
}

impl<const WAYS: usize> Default for Places<WAYS> {
    fn default() -> Self {
        Self { places: [[0; BATCH]; WAYS], fingerprints: [0; BATCH] }
    }
}

/// Places the first `count` keys of a batch, and perhaps some more, in 2^bits shards; or all in the one shard that there is.
/// `short`: each shard has fewer than 2^32 first places.
#[inline]
pub(crate) fn place_all<const WAYS: usize>(
    paths: Paths,
    shards: &[Shard],
    bits: u32,
    short: bool,
    (halves, count): (&[u64; BATCH], usize),
    to: &mut Places<WAYS>,
) {
    #[cfg(target_arch = "x86_64")]
    if short && paths.takes(detect::has_avx2) {
        // SAFETY: the instructions were detected.
        return unsafe { avx2_place_all(shards, bits, (halves, count), to) };
    }
    let _ = (paths, short);
    place_one_by_one(shards, bits, (halves, count), to);
}

#[inline]
fn place_one_by_one<const WAYS: usize>(
    shards: &[Shard],
    bits: u32,
    (halves, count): (&[u64; BATCH], usize),
    to: &mut Places<WAYS>,
) {
    for (i, &half) in halves[..count].iter().enumerate() {
        let shard = match shards {
            [only] => only,
            _ => &shards[index(shard_of(half, bits))],
        };
        let (places, fingerprint) = shard.places::<WAYS>(half, bits);
        places.iter().zip(&mut to.places).for_each(|(&place, to)| to[i] = place);
        to.fingerprints[i] = fingerprint;
    }
}

/// Four keys at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn avx2_place_all<const WAYS: usize>(
    shards: &[Shard],
    bits: u32,
    (halves, count): (&[u64; BATCH], usize),
    to: &mut Places<WAYS>,
) {
    use core::arch::x86_64::{
        __m256i, _mm_cvtsi32_si128, _mm256_add_epi64, _mm256_and_si256, _mm256_loadu_si256, _mm256_mul_epu32,
        _mm256_permute2x128_si256, _mm256_set1_epi64x, _mm256_sll_epi64, _mm256_sllv_epi64, _mm256_srl_epi64,
        _mm256_srli_epi64, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_unpackhi_epi64,
        _mm256_unpacklo_epi64, _mm256_xor_si256,
    };

    let one = _mm256_set1_epi64x(1);
    let row = |shard: &Shard| {
        // SAFETY: a shard is four words in a row.
        unsafe { _mm256_loadu_si256(core::ptr::from_ref(shard).cast::<__m256i>()) }
    };
    // Four rows become four columns: seeds, first places, lengths, offsets.
    let columns = |rows: [__m256i; 4]| {
        let (low, high) = (_mm256_unpacklo_epi64(rows[0], rows[1]), _mm256_unpackhi_epi64(rows[0], rows[1]));
        let (low_too, high_too) =
            (_mm256_unpacklo_epi64(rows[2], rows[3]), _mm256_unpackhi_epi64(rows[2], rows[3]));
        [
            _mm256_permute2x128_si256::<0x20>(low, low_too),
            _mm256_permute2x128_si256::<0x20>(high, high_too),
            _mm256_permute2x128_si256::<0x31>(low, low_too),
            _mm256_permute2x128_si256::<0x31>(high, high_too),
        ]
    };
    let only = columns([row(&shards[0]); 4]);
    let (own, rest) = to.places.split_at_mut(1);
    for (i, four) in halves.as_chunks::<4>().0.iter().enumerate().take(count.div_ceil(4)) {
        let [seeds, starts, logs, offsets] = match shards {
            [_] => only,
            _ => columns(four.map(|half| row(&shards[index(shard_of(half, bits))]))),
        };
        // SAFETY: four words are read.
        let words = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
        let (low, high) = xxh3::avx2::wide_products(_mm256_xor_si256(words, seeds), crate::probing::PHI);
        let hashes = _mm256_xor_si256(low, high);
        // The highest 64 of the 96 bits of the product, in two steps: the first places are fewer than 2^32.
        let scaled = _mm256_sll_epi64(words, _mm_cvtsi32_si128(bits.cast_signed()));
        let below = _mm256_srli_epi64::<32>(_mm256_mul_epu32(scaled, starts));
        let above = _mm256_mul_epu32(_mm256_srli_epi64::<32>(scaled), starts);
        let mut first = _mm256_srli_epi64::<32>(_mm256_add_epi64(above, below));
        let segments = _mm256_sllv_epi64(one, logs);
        let mask = _mm256_sub_epi64(segments, one);
        let store = |to: &mut [u64; BATCH], four: __m256i| {
            let to = &mut to.as_chunks_mut::<4>().0[i];
            // SAFETY: four words are written.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), four) }
        };
        store(&mut own[0], _mm256_add_epi64(first, offsets));
        for (way, to) in rest.iter_mut().enumerate() {
            first = _mm256_add_epi64(first, segments);
            let count = _mm_cvtsi32_si128(turn::<WAYS>(way + 1).cast_signed());
            let turned = _mm256_and_si256(_mm256_srl_epi64(hashes, count), mask);
            store(to, _mm256_add_epi64(_mm256_xor_si256(first, turned), offsets));
        }
        store(&mut to.fingerprints, _mm256_xor_si256(hashes, _mm256_srli_epi64::<32>(hashes)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn agree<const WAYS: usize>(shards: &[Shard], bits: u32, halves: &[u64; BATCH]) {
        let (mut best, mut plain) = (Places::<WAYS>::default(), Places::<WAYS>::default());
        place_all(Paths::default(), shards, bits, true, (halves, BATCH), &mut best);
        place_one_by_one(shards, bits, (halves, BATCH), &mut plain);
        assert!(best == plain, "{bits} bits\n{best:?}\n{plain:?}");
        // Of fewer keys at least those are placed.
        for count in [0, 1, 4, 5, 31] {
            let mut few = Places::<WAYS>::default();
            place_all(Paths::default(), shards, bits, true, (halves, count), &mut few);
            assert_eq!(few.fingerprints[..count], plain.fingerprints[..count]);
            assert!(few.places.iter().zip(&plain.places).all(|(few, plain)| few[..count] == plain[..count]));
        }
    }

    #[test]
    fn the_best_places_are_the_portable_ones() {
        for bits in [0, 1, 5, 10] {
            let shard = |i: u64| Shard {
                seed: folded(i + 1),
                starts: (i * 77 % 1000 + 1) << (i % 18),
                segment_log: i % 18,
                offset: i << 33,
            };
            let mut shards: Vec<Shard> = (0..1 << bits).map(shard).collect();
            shards[0].starts = u64::from(u32::MAX);
            for batch in 0..200u64 {
                let mut halves = core::array::from_fn(|i| folded(batch << 32 | i as u64));
                halves[..4].copy_from_slice(&[0, u64::MAX, 1, 1 << 63]);
                agree::<3>(&shards, bits, &halves);
                agree::<4>(&shards, bits, &halves);
                agree::<3>(&shards[..1], bits, &halves);
            }
        }
    }
}
