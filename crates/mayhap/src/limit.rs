//! What no filter can be faster than, for benchmarks: the same digest, prefetch and load, without the filter.

use crate::batch::pipeline;
use crate::bits::Words;
use crate::hash::{Digest, Hashing, Here, Key};
use crate::narrow::index;
use crate::probing::{positions, reduce};
use crate::raw::simd::prefetch;

/// Hashes each key, asks for the cache line that the digest chooses, and loads one word from it: what a filter
/// with one cache line per key cannot avoid. Returns a sum, so that nothing is left out.
pub fn touch_lines<K: Key>(words: &Words, keys: &[K]) -> u64 {
    let words = words.as_slice();
    let lines = words.len() as u64 / 8;
    let place = |half: u64| index(reduce(half, lines)) * 8;
    let mut sum = 0u64;
    let hash = |keys: &[K], halves: &mut [u64]| K::halves(keys, &Hashing::default(), halves, Here);
    pipeline(
        &mut sum,
        keys,
        hash,
        true,
        |_, half| prefetch(words, place(half)),
        |sum, halves| {
            halves.iter().for_each(|&half| *sum = sum.wrapping_add(words[place(half)]));
        },
    );
    sum
}

/// The same for `probes` positions of a classic filter.
pub fn touch_probes<K: Key>(words: &Words, keys: &[K], probes: u32) -> u64 {
    let words = words.as_slice();
    let bits = words.len() as u64 * 64;
    let places = |digest: Digest| positions(digest, probes, bits).map(|position| index(position / 64));
    let mut sum = 0u64;
    let hash = |keys: &[K], digests: &mut [Digest]| K::digests(keys, &Hashing::default(), digests, Here);
    let ahead = |_: &u64, digest: Digest| places(digest).for_each(|place| prefetch(words, place));
    pipeline(&mut sum, keys, hash, true, ahead, |sum, digests| {
        for &digest in digests {
            *sum = places(digest).fold(*sum, |sum, place| sum.wrapping_add(words[place]));
        }
    });
    sum
}

/// The same for `touches` cache lines per key that have nothing to do with each other: what a filter of as many places
/// cannot avoid.
pub fn touch_places<K: Key>(words: &Words, keys: &[K], touches: u32) -> u64 {
    let words = words.as_slice();
    let places = |half: u64| {
        let mut state = half;
        (0..touches).map(move |_| {
            let place = index(reduce(state, words.len() as u64));
            state = state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            place
        })
    };
    let mut sum = 0u64;
    let hash = |keys: &[K], halves: &mut [u64]| K::halves(keys, &Hashing::default(), halves, Here);
    let ahead = |_: &u64, half: u64| places(half).for_each(|place| prefetch(words, place));
    pipeline(&mut sum, keys, hash, true, ahead, |sum, halves| {
        for &half in halves {
            *sum = places(half).fold(*sum, |sum, place| sum.wrapping_add(words[place]));
        }
    });
    sum
}
