//! Many keys at a time: hash a few, ask for their cache lines, then act on them.
//!
//! One key at a time waits for memory once per key. With a batch in flight the waits overlap, which at
//! ten million keys and more is worth a factor of two to four.

/// So many keys are in flight: enough to hide a miss, few enough that their digests stay in the
/// first-level cache.
pub(crate) const BATCH: usize = 32;

/// Hashes a batch of keys, prefetching as it goes, and hands the hashes over; until all keys are done.
///
/// `state` is what both look at: the filter's storage.
#[inline(always)]
pub(crate) fn pipeline<K, H: Copy + Default, S: ?Sized>(
    state: &mut S,
    keys: &[K],
    hash: impl Fn(&K) -> H,
    prefetch: impl Fn(&S, H),
    mut act: impl FnMut(&mut S, &[H]),
) {
    // Whole batches have a length that the compiler knows.
    let (whole, rest) = keys.as_chunks::<BATCH>();
    for keys in whole {
        let hashes = keys.each_ref().map(|key| {
            let hash = hash(key);
            prefetch(state, hash);
            hash
        });
        act(state, &hashes);
    }
    let mut hashes = [H::default(); BATCH];
    for (slot, key) in hashes.iter_mut().zip(rest) {
        *slot = hash(key);
    }
    act(state, &hashes[..rest.len()]);
}
