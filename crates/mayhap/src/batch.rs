//! Many keys at a time: hash a few, ask for their cache lines, then act on them.
//!
//! One key at a time waits for memory once per key. With a batch in flight the waits overlap, which at
//! ten million keys and more is worth a factor of two to four.

/// So many keys are in flight: enough to hide a miss, few enough that their digests stay in the
/// first-level cache.
pub(crate) const BATCH: usize = 32;

/// Hashes a batch of keys, prefetches for each if the storage is `far` from the processor, and acts on the batch
/// before, whose lines have had time to come; until all keys are done. `state` is what the last two look at: the
/// filter's storage.
#[inline(always)]
pub(crate) fn pipeline<K, H: Copy + Default, S: ?Sized>(
    state: &mut S,
    keys: &[K],
    hash: impl Fn(&[K], &mut [H]),
    far: bool,
    prefetch: impl Fn(&S, H),
    mut act: impl FnMut(&mut S, &[H]),
) {
    let mut hashes = [[H::default(); BATCH]; 2];
    let (mut turn, mut waiting) = (0, 0);
    // The first empty batch at the end lets the last one out, the second gives `act` a turn for what it has put
    // off. `hash` and `act` are called in one place only, so that they are inlined, into whatever instructions
    // the caller has.
    for keys in keys.chunks(BATCH).chain([&keys[..0]; 2]) {
        let coming = &mut hashes[turn][..keys.len()];
        hash(keys, coming);
        if far {
            coming.iter().for_each(|&hash| prefetch(state, hash));
        }
        act(state, &hashes[1 - turn][..waiting]);
        (turn, waiting) = (1 - turn, keys.len());
    }
}
