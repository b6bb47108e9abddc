//! Where a static filter gets its keys from: the first halves of their digests, a part of all at a time.
//!
//! A static filter is made of all of its keys at once. With many keys it is made of parts (*shards*) that are built one
//! after the other or by several threads, so that working memory is a matter of a part. Whoever has the digests, in memory
//! or in files, hands them over by shards.

use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::mem;
#[cfg(feature = "std")]
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::BuildError;
#[cfg(feature = "std")]
use crate::hash::{Hashing, Here, Key};
use crate::math;
use crate::narrow::whole;
#[cfg(feature = "std")]
use crate::narrow::{index, whole_usize};
#[cfg(feature = "std")]
use crate::threads;

/// The first halves of digests, by their highest bits.
pub trait DigestShards: Sync {
    /// How many there are, repeats included; at most so many.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends those whose highest `bits` bits are `shard`, in any order. Asked once for each shard, with the same `bits`,
    /// which is at most 32.
    ///
    /// # Errors
    /// [`BuildError::Source`] if they cannot be had.
    fn take(&self, shard: u64, bits: u32, halves: &mut Vec<u64>) -> Result<(), BuildError>;
}

/// Which shard a half is in.
#[inline(always)]
pub const fn shard_of(half: u64, bits: u32) -> u64 {
    // In two steps, for 0 bits.
    half >> 1 >> (63 - bits)
}

/// What building a shard takes at most for each of its keys, besides the part of the filter that comes of it: in bytes, for
/// each thread. Every family that is made of shards keeps to it.
pub const WORKING_BYTES: u64 = 36;

/// How many threads build 2^bits shards, if so many may: one for four shards, so that what they work with is at most
/// [`WORKING_BYTES`] for every fourth key. Two always, if there are two shards.
#[must_use]
pub fn most_threads(bits: u32, threads: usize) -> usize {
    let shards = usize::try_from(1u64 << bits).unwrap_or(usize::MAX);
    threads.min((shards / 4).max(2)).min(shards).max(1)
}

/// The most working memory of a build from so many keys, in bytes, without the filter and without the source.
#[must_use]
pub fn working_bytes(keys: u64, threads: usize) -> u64 {
    let bits = math::shard_bits(keys);
    let mean = (keys >> bits) as f64;
    // Six deviations: more in one of a million shards is rarer than one in a thousand.
    let shard = if bits == 0 { mean } else { mean + 6.0 * libm::sqrt(mean) };
    most_threads(bits, threads) as u64 * WORKING_BYTES * (whole(shard) + 64)
}

/// Builds each of 2^bits shards by one of `threads` threads, each of which has a workspace, and hands what comes of them to
/// `join`, in the order of the shards. The first error ends it.
pub(crate) fn built_in_order<W, P: Send>(
    bits: u32,
    threads: usize,
    workspace: impl Fn() -> W + Sync,
    build: impl Fn(&mut W, u64) -> Result<P, BuildError> + Sync,
    mut join: impl FnMut(P) -> Result<(), BuildError> + Send,
) -> Result<(), BuildError> {
    #[cfg(feature = "std")]
    if most_threads(bits, threads) > 1 {
        return built_in_parallel(bits, most_threads(bits, threads), workspace, build, join);
    }
    let _ = threads;
    let mut workspace = workspace();
    (0..1u64 << bits).try_for_each(|shard| join(build(&mut workspace, shard)?))
}

/// Each thread takes the next free shard.
#[cfg(feature = "std")]
fn built_in_parallel<W, P: Send>(
    bits: u32,
    threads: usize,
    workspace: impl Fn() -> W + Sync,
    build: impl Fn(&mut W, u64) -> Result<P, BuildError> + Sync,
    join: impl FnMut(P) -> Result<(), BuildError> + Send,
) -> Result<(), BuildError> {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    /// What was built before its turn waits.
    struct InOrder<P, J> {
        next: u64,
        waiting: BTreeMap<u64, P>,
        join: J,
    }

    let next = AtomicU64::new(0);
    let in_order = Mutex::new(InOrder { next: 0, waiting: BTreeMap::new(), join });
    let step = |workspace: &mut W, shard| {
        let part = build(workspace, shard)?;
        let mut in_order = in_order.lock().unwrap_or_else(PoisonError::into_inner);
        in_order.waiting.insert(shard, part);
        let InOrder { next, waiting, join } = &mut *in_order;
        while let Some(part) = waiting.remove(next) {
            join(part)?;
            *next += 1;
        }
        Ok(())
    };
    let work = || {
        let mut workspace = workspace();
        loop {
            let shard = next.fetch_add(1, Ordering::Relaxed);
            if shard >> bits != 0 {
                return Ok(());
            }
            if let Err(error) = step(&mut workspace, shard) {
                // No thread needs to go on.
                next.store(1 << bits, Ordering::Relaxed);
                return Err(error);
            }
        }
    };
    let mut outcomes = threads::run(threads, work).into_iter();
    outcomes.try_for_each(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Halves in memory, in shards from the start.
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct MemoryShards {
    bits: u32,
    len: u64,
    shards: Vec<std::sync::Mutex<Vec<Vec<u64>>>>,
}

#[cfg(feature = "std")]
impl MemoryShards {
    /// None yet, in 2^bits shards.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        let shards = (0..1u64 << bits).map(|_| std::sync::Mutex::default()).collect();
        Self { bits, len: 0, shards }
    }

    /// The halves of many keys, hashed by `threads` threads.
    #[must_use]
    pub fn hashed<K: Key + Sync>(keys: &[K], hashing: Hashing, bits: u32, threads: usize) -> Self {
        let mut all = Self::new(bits);
        all.len = keys.len() as u64;
        let run = keys.len().div_ceil(threads.max(1)).max(1);
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(keys) = keys.chunks(run).nth(next.fetch_add(1, Ordering::Relaxed)) {
                let mut own = Gathered::new(bits, keys.len());
                let mut halves = [0; 256];
                for keys in keys.chunks(halves.len()) {
                    let halves = &mut halves[..keys.len()];
                    K::halves(keys, &hashing, halves, Here);
                    own.extend(halves);
                }
                all.give(own);
            }
        };
        for outcome in threads::run(threads.min(keys.len().div_ceil(run)), work) {
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        all
    }

    /// Puts more halves in.
    pub fn extend(&mut self, halves: impl IntoIterator<Item = u64>) {
        for half in halves {
            let shard = &mut self.shards[index(shard_of(half, self.bits))];
            let parts = shard.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            // One list, to which all are added.
            if parts.is_empty() {
                parts.push(Vec::new());
            }
            parts[0].push(half);
            self.len += 1;
        }
    }

    fn give(&self, gathered: Gathered) {
        for (shard, halves) in self.shards.iter().zip(gathered.shards) {
            shard.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(halves);
        }
    }
}

/// What one thread has gathered.
#[cfg(feature = "std")]
struct Gathered {
    bits: u32,
    shards: Vec<Vec<u64>>,
}

#[cfg(feature = "std")]
impl Gathered {
    /// With room for as many keys, of which each shard gets about as many.
    fn new(bits: u32, keys: usize) -> Self {
        let shards = index(1 << bits);
        let mean = keys as f64 / shards as f64;
        // Five deviations: a shard that needs more moves once.
        let room = if shards == 1 { keys } else { whole_usize(mean + 5.0 * mean.sqrt()) + 8 };
        Self { bits, shards: (0..shards).map(|_| Vec::with_capacity(room)).collect() }
    }

    fn extend(&mut self, halves: &[u64]) {
        for &half in halves {
            self.shards[index(shard_of(half, self.bits))].push(half);
        }
    }
}

#[cfg(feature = "std")]
impl DigestShards for MemoryShards {
    fn len(&self) -> u64 {
        self.len
    }

    fn take(&self, shard: u64, bits: u32, halves: &mut Vec<u64>) -> Result<(), BuildError> {
        if bits > self.bits {
            let problem = alloc::format!("2^{} shards were prepared, 2^{bits} are asked for", self.bits);
            return Err(BuildError::Source { problem });
        }
        let finer = self.bits - bits;
        for part in shard << finer..(shard + 1) << finer {
            let taken = mem::take(
                &mut *self.shards[index(part)].lock().unwrap_or_else(std::sync::PoisonError::into_inner),
            );
            for part in taken {
                if halves.is_empty() {
                    *halves = part;
                } else {
                    halves.extend(part);
                }
            }
        }
        Ok(())
    }
}

/// Halves in one list, for few keys and without the standard library.
impl DigestShards for Vec<u64> {
    fn len(&self) -> u64 {
        self.len() as u64
    }

    fn take(&self, shard: u64, bits: u32, halves: &mut Vec<u64>) -> Result<(), BuildError> {
        halves.extend(self.iter().filter(|&&half| shard_of(half, bits) == shard));
        Ok(())
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    // A thread was started even for one key, which traps where there are none.
    #[test]
    fn any_number_of_threads_hashes_every_key_once() {
        let hashing = Hashing::default();
        for len in [0, 1, 2, 3, 255, 256, 257, 1000] {
            let keys: Vec<u64> = (0..len).collect();
            let mut expected: Vec<u64> = keys.iter().map(|&key| hashing.digest_of(key).a).collect();
            expected.sort_unstable();
            for threads in [0, 1, 2, 3, 7, 2000] {
                let shards = MemoryShards::hashed(&keys, hashing, 2, threads);
                assert_eq!(shards.len(), len);
                let mut halves = Vec::new();
                for shard in 0..4 {
                    let mut own = Vec::new();
                    shards.take(shard, 2, &mut own).unwrap();
                    assert!(own.iter().all(|&half| shard_of(half, 2) == shard));
                    halves.extend(own);
                }
                halves.sort_unstable();
                assert_eq!(halves, expected, "{len} keys, {threads} threads");
            }
        }
    }

    // On a 32-bit machine 2^32 shards were a shift beyond the number, and none.
    #[test]
    fn no_number_of_shards_is_too_large_for_the_number_of_threads() {
        assert_eq!([0, 1, 2, 3, 20, 32].map(|bits| most_threads(bits, 8)), [1, 2, 2, 2, 8, 8]);
    }
}
