//! Physical limits: what no filter can be faster than, measured in the same run on the same keys.
//!
//! - *hash*: the digest alone.
//! - *lines*: the digest and one load from the cache line it chooses: the floor of a filter that keeps
//!   all bits of a key in one line.
//! - *probes*: the digest and all positions of a classic filter: the floor of its inserts and hits. A miss
//!   may stop early and go below it.
//! - *touches*: half a digest and as many loads as a static filter has places: the floor of its questions.
//!
//! Lines and probes lie in as many bits as a classic filter of that rate has, in the library's own memory.
//! Each comes as a plain loop, whose loads the processor overlaps by itself, and in batches with prefetches.

use mayhap::{Hashing, Words, limit, positions};

use crate::keys::BenchKey;

/// The sum of all digests, so that none can be left out.
pub(crate) fn hash<K: BenchKey>(keys: &[K]) -> u64 {
    let hashing = Hashing::default();
    keys.iter().fold(0, |sum: u64, &key| {
        let digest = hashing.digest_of(key);
        sum.wrapping_add(digest.a ^ digest.b)
    })
}

/// One load per key.
pub(crate) fn lines<K: BenchKey>(words: &Words, keys: &[K]) -> u64 {
    let hashing = Hashing::default();
    let words = words.as_slice();
    let lines = words.len() as u64 / 8;
    keys.iter().fold(0, |sum: u64, &key| {
        let digest = hashing.digest_of(key);
        let line = ((u128::from(digest.a) * u128::from(lines)) >> 64) as usize;
        sum.wrapping_add(words[line * 8 + (digest.b % 8) as usize])
    })
}

/// `probes` loads per key.
pub(crate) fn probes<K: BenchKey>(words: &Words, keys: &[K], probes: u32) -> u64 {
    let hashing = Hashing::default();
    let words = words.as_slice();
    let bits = words.len() as u64 * 64;
    keys.iter().fold(0, |sum: u64, &key| {
        let places = positions(hashing.digest_of(key), probes, bits);
        places.fold(sum, |sum, place| sum.wrapping_add(words[(place / 64) as usize] >> (place % 64)))
    })
}

/// One load per key, in batches. A prefetch is unsafe code, which this crate may not have: the library does it.
pub(crate) fn prefetched_lines(words: &Words, keys: &[u64]) -> Option<u64> {
    Some(limit::touch_lines(words, keys))
}

/// `probes` loads per key, in batches.
pub(crate) fn prefetched_probes(words: &Words, keys: &[u64], probes: u32) -> Option<u64> {
    Some(limit::touch_probes(words, keys, probes))
}

/// `touches` loads per key from anywhere, in batches.
pub(crate) fn prefetched_touches(words: &Words, keys: &[u64], touches: u32) -> u64 {
    limit::touch_places(words, keys, touches)
}
