//! Cells in four buckets, looked at together: a bucket in each lane of a register.

use crate::cell_lanes::{CellLanes, FourPlaces};
use crate::paths::Paths;
#[cfg(target_arch = "x86_64")]
use crate::raw::detect;

/// Writes for each key whether a cell of one of its buckets has the remainder that belongs to it. `any` is the definition;
/// it is called for buckets near the end of the words. Returns `false` and writes nothing if there are no instructions for it or
/// the cells are too wide.
#[inline]
pub(crate) fn any_of_four(
    paths: Paths,
    words: &[u64],
    lanes: &CellLanes,
    places: &[FourPlaces],
    hits: &mut [bool],
    any: impl Fn(&FourPlaces) -> bool,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if lanes.shape.width() <= WIDEST && paths.takes(detect::has_avx2) {
        // SAFETY: the instructions were detected.
        unsafe { avx2::any_of_four(words, lanes, places, hits, any) };
        return true;
    }
    let _ = (paths, words, lanes, places, hits, any);
    false
}

/// Two wider cells do not fit the bits that a byte leaves of a word.
#[cfg(target_arch = "x86_64")]
const WIDEST: u32 = 30;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use core::arch::x86_64::{
        __m128i, __m256i, _mm_cvtsi64_si128, _mm_loadu_si128, _mm256_add_epi64, _mm256_and_si256,
        _mm256_andnot_si256, _mm256_loadu_si256, _mm256_or_si256, _mm256_permute4x64_epi64, _mm256_set_m128i,
        _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_sll_epi64, _mm256_srl_epi64, _mm256_testz_si256,
        _mm256_unpackhi_epi64, _mm256_unpacklo_epi64, _mm256_xor_si256,
    };

    use crate::cell_lanes::{CellLanes, FourPlaces};

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn any_of_four(
        words: &[u64],
        lanes: &CellLanes,
        places: &[FourPlaces],
        hits: &mut [bool],
        any: impl Fn(&FourPlaces) -> bool,
    ) {
        match lanes.together() {
            4 => any_of_each::<4>(words, lanes, places, hits, any),
            _ => any_of_each::<2>(words, lanes, places, hits, any),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn any_of_each<const TOGETHER: u64>(
        words: &[u64],
        lanes: &CellLanes,
        places: &[FourPlaces],
        hits: &mut [bool],
        any: impl Fn(&FourPlaces) -> bool,
    ) {
        let width = u64::from(lanes.shape.width());
        let last_load = (4 / TOGETHER - 1) * TOGETHER * width / 4;
        // So far 16 bytes can be read with each load of a bucket that starts there; nowhere, if this is 0.
        let room = (size_of_val(words) as u64).saturating_sub(last_load + 15);
        for (hit, places) in hits.iter_mut().zip(places) {
            let starts = places.buckets.map(|bucket| bucket * width);
            let end = starts[0].max(starts[1]).max(starts[2].max(starts[3]));
            *hit = if end < room {
                // SAFETY: all four starts are below `room`.
                unsafe { any_by_lanes::<TOGETHER>(words, lanes, &starts, &places.remainders) }
            } else {
                any_at_the_end(places, &any)
            };
        }
    }

    #[cold]
    #[inline(never)]
    fn any_at_the_end(places: &FourPlaces, any: &impl Fn(&FourPlaces) -> bool) -> bool {
        any(places)
    }

    /// The same as [`CellLanes::matching`], for the same cells of four buckets at a time.
    ///
    /// # Safety
    /// From each of `starts`, which count bytes, 16 more can be read than the bytes before the last load of a bucket.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    unsafe fn any_by_lanes<const TOGETHER: u64>(
        words: &[u64],
        lanes: &CellLanes,
        starts: &[u64; 4],
        remainders: &[u64; 4],
    ) -> bool {
        let all = |value: u64| _mm256_set1_epi64x(value.cast_signed());
        let count = |bits: u64| _mm_cvtsi64_si128(bits.cast_signed());
        let width = u64::from(lanes.shape.width());
        let (tops, counters) = (all(lanes.tops), all(lanes.counters));
        let below = all(lanes.tops - lanes.ones);
        // SAFETY: four words are read, and the array has four.
        let remainders = unsafe { _mm256_loadu_si256(remainders.as_ptr().cast()) };
        // The order in which unpacking leaves the buckets.
        let remainders = _mm256_permute4x64_epi64::<0b11_01_10_00>(remainders);
        let mut wanted = _mm256_sll_epi64(remainders, count(lanes.shape.counter_bits.into()));
        wanted = _mm256_or_si256(wanted, _mm256_sll_epi64(wanted, count(width)));
        if TOGETHER == 4 {
            wanted = _mm256_or_si256(wanted, _mm256_sll_epi64(wanted, count(2 * width)));
        }
        let matching = |cells: __m256i| {
            let other = _mm256_andnot_si256(counters, _mm256_xor_si256(cells, wanted));
            let differing = _mm256_or_si256(_mm256_add_epi64(_mm256_and_si256(other, below), below), other);
            let taken = _mm256_add_epi64(_mm256_and_si256(cells, counters), below);
            _mm256_andnot_si256(differing, taken)
        };
        let bytes: *const u8 = words.as_ptr().cast();
        let mut found = _mm256_setzero_si256();
        // One load has the cells of two words.
        for load in 0..4 / TOGETHER {
            let from = load * 2 * TOGETHER * width;
            let at = |start: u64| -> __m128i {
                // SAFETY: the caller's promise; any address will do.
                unsafe { _mm_loadu_si128(bytes.add(crate::narrow::index(start + from / 8)).cast()) }
            };
            let [first, second, third, fourth] = *starts;
            let (one, other) =
                (_mm256_set_m128i(at(second), at(first)), _mm256_set_m128i(at(fourth), at(third)));
            let (low, high) = (_mm256_unpacklo_epi64(one, other), _mm256_unpackhi_epi64(one, other));
            // A load starts with a byte and its first cell with that or in the middle of it: a shift is at most 64.
            let (start, end) = (from % 8, from % 8 + TOGETHER * width);
            let behind =
                _mm256_or_si256(_mm256_srl_epi64(low, count(end)), _mm256_sll_epi64(high, count(64 - end)));
            let both = _mm256_or_si256(matching(_mm256_srl_epi64(low, count(start))), matching(behind));
            found = _mm256_or_si256(found, both);
        }
        _mm256_testz_si256(found, tops) == 0
    }
}
