//! Positions anywhere among the bits: the loops of the classic filter.
//!
//! A miss is told by its first unset bit, and half of the bits are unset: a loop that looks at them one by one and
//! stops at the first is mispredicted once per key, and each time the processor has waited for memory to learn it.
//! So positions are looked at in groups without a branch inside: three or so, of which a missing key passes all
//! with a chance of 1 in 8, and then four at a time.

use crate::batch::{BATCH, pipeline};
use crate::hash::Digest;
use crate::narrow::{index, low_u32};
use crate::paths::Paths;
use crate::probing::{Walk, reduce};
#[cfg(target_arch = "x86_64")]
use crate::raw::detect;

/// Filters smaller than this are asked and filled without prefetching: each position would cost an instruction more
/// and a miss of the second-level cache less, which the processor hides by itself.
const PREFETCH_FROM_BYTES: usize = 4 << 20;

/// Whether the words of a filter are to be prefetched.
#[inline(always)]
pub(crate) fn is_far<W>(paths: Paths, words: &[W]) -> bool {
    paths.is_far(size_of_val(words), PREFETCH_FROM_BYTES)
}

/// Positions per group behind the first.
const GROUP: u32 = 4;

/// How many positions are looked at before the first decision: what the groups behind leave, but two at least.
#[inline(always)]
const fn first_group(probes: u32) -> u32 {
    match probes % GROUP {
        first @ (0 | 1) if probes > first => first + GROUP,
        first => first,
    }
}

/// What every access below relies on: there is a last bit, and it has a word. (Without bits the index of the last
/// one is beyond all words.)
#[inline(always)]
fn must_hold(words: &[u64], bits: u64) {
    assert!(bits.wrapping_sub(1) / 64 < words.len() as u64, "fewer words than bits need");
}

/// The bits of a filter, at least `bits` of them.
#[derive(Clone, Copy)]
struct Bits<'a> {
    words: &'a [u64],
    bits: u64,
}

impl<'a> Bits<'a> {
    #[inline(always)]
    fn new(words: &'a [u64], bits: u64) -> Self {
        must_hold(words, bits);
        Self { words, bits }
    }

    /// 1 in the lowest place if the next position is set; what is above means nothing.
    #[inline(always)]
    fn next(self, walk: &mut Walk) -> u64 {
        let position = reduce(walk.next(), self.bits);
        // SAFETY: a reduced value is below `bits`, which is not 0, and those bits have words.
        let word = unsafe { *self.words.get_unchecked(index(position / 64)) };
        word >> (position % 64)
    }

    /// Whether the next `probes` positions are all set, without a decision on the way.
    #[inline(always)]
    fn all(self, walk: &mut Walk, probes: u32) -> bool {
        (0..probes).fold(1, |all, _| all & self.next(walk)) & 1 == 1
    }

    /// The same, deciding after each group.
    #[inline(always)]
    fn all_in_groups(self, walk: &mut Walk, probes: u32) -> bool {
        (0..probes / GROUP).all(|_| self.all(walk, GROUP)) && self.all(walk, probes % GROUP)
    }

    #[inline(always)]
    fn prefetch(self, mut walk: Walk, probes: u32) {
        for _ in 0..probes {
            super::prefetch(self.words, index(reduce(walk.next(), self.bits) / 64));
        }
    }
}

/// Asks for one key.
#[inline(always)]
fn contains(words: &[u64], bits: u64, probes: u32, digest: Digest) -> bool {
    let (bits, mut walk, first) = (Bits::new(words, bits), Walk::new(digest), first_group(probes));
    bits.all(&mut walk, first) && bits.all_in_groups(&mut walk, probes - first)
}

/// Sets the positions of one key, and hands over for each what its word was, shifted so that its bit is the lowest.
/// A caller that does not look pays nothing for it.
#[inline(always)]
fn set(words: &mut [u64], bits: u64, probes: u32, digest: Digest, mut was: impl FnMut(u64)) {
    must_hold(words, bits);
    let mut walk = Walk::new(digest);
    for _ in 0..probes {
        let position = reduce(walk.next(), bits);
        // SAFETY: a reduced value is below `bits`, which is not 0, and those bits have words.
        let word = unsafe { words.get_unchecked_mut(index(position / 64)) };
        was(*word >> (position % 64));
        *word |= 1 << (position % 64);
    }
}

/// Inserts one key, and says whether it was new. Inlined where it is called, so that nothing is left of the answer
/// if the caller does not use it.
#[inline(always)]
pub(crate) fn insert(words: &mut [u64], bits: u64, probes: u32, digest: Digest) -> bool {
    let mut all = 1;
    set(words, bits, probes, digest, |was| all &= was);
    all & 1 == 0
}

/// Inserts one key, and says how many bits that set.
#[inline(always)]
fn insert_counting(words: &mut [u64], bits: u64, probes: u32, digest: Digest) -> u32 {
    let mut set_before = 0;
    set(words, bits, probes, digest, |was| set_before += low_u32(was) & 1);
    probes - set_before
}

/// A key whose first positions are set, on its way to the others.
#[derive(Clone, Copy, Default)]
struct Survivor {
    walk: Walk,
    /// Where its answer goes.
    answer: usize,
}

/// Those of one batch at most.
struct Queue {
    survivors: [Survivor; BATCH],
    len: usize,
}

impl Queue {
    fn new() -> Self {
        Self { survivors: [Survivor::default(); BATCH], len: 0 }
    }

    /// Written for every key and kept for some: a branch would be mispredicted.
    #[inline(always)]
    fn push_if(&mut self, passes: bool, survivor: Survivor) {
        self.survivors[self.len % BATCH] = survivor;
        self.len += usize::from(passes);
    }

    #[inline(always)]
    fn as_slice(&self) -> &[Survivor] {
        &self.survivors[..self.len]
    }

    /// All of them; they are in no more.
    #[inline(always)]
    fn drain(&mut self) -> impl Iterator<Item = Survivor> + use<> {
        let len = core::mem::take(&mut self.len);
        self.survivors.into_iter().take(len)
    }
}

/// Asks for many keys out of cache; writes one answer each, whatever was there before.
#[inline(always)]
fn ask<K>(
    words: &[u64],
    bits: u64,
    probes: u32,
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    hits: &mut [bool],
) {
    // Out of cache a line costs more than a decision. One position of each key, two of those that pass, then the
    // rest: a missing key touches two and a half lines on average. Each step is taken a batch later than the one
    // before, when its lines have come.
    let bits = Bits::new(words, bits);
    let first = 1;
    let second = 2.min(probes - first);
    let rest = probes - first - second;
    let (mut passed_first, mut passed_second) = (Queue::new(), Queue::new());
    let mut asked = 0;
    pipeline(
        &mut (),
        keys,
        hash,
        true,
        |(), digest| bits.prefetch(Walk::new(digest), first),
        |(), digests| {
            for Survivor { mut walk, answer } in passed_second.drain() {
                hits[answer] = bits.all_in_groups(&mut walk, rest);
            }
            for Survivor { mut walk, answer } in passed_first.drain() {
                let passes = bits.all(&mut walk, second);
                passed_second.push_if(passes, Survivor { walk, answer });
            }
            passed_second.as_slice().iter().for_each(|survivor| bits.prefetch(survivor.walk, rest));
            // Only those that pass two steps get an answer later on; the others have theirs now.
            hits[asked..asked + digests.len()].fill(false);
            for (i, &digest) in digests.iter().enumerate() {
                let mut walk = Walk::new(digest);
                let passes = bits.all(&mut walk, first);
                passed_first.push_if(passes, Survivor { walk, answer: asked + i });
            }
            passed_first.as_slice().iter().for_each(|survivor| bits.prefetch(survivor.walk, second));
            asked += digests.len();
        },
    );
    debug_assert!(asked == keys.len(), "every key was asked for");
    debug_assert!(
        passed_first.len == 0 && passed_second.len == 0,
        "the pipeline ends two turns after its last key"
    );
}

/// Inserts many keys; tells of each how many bits it set.
#[inline(always)]
fn put<K>(
    paths: Paths,
    mut words: &mut [u64],
    bits: u64,
    probes: u32,
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    mut told: impl FnMut(u32),
) {
    let far = is_far(paths, words);
    pipeline(
        &mut words,
        keys,
        hash,
        far,
        |words, digest| Bits::new(words, bits).prefetch(Walk::new(digest), probes),
        |words, digests| {
            digests.iter().for_each(|&digest| told(insert_counting(words, bits, probes, digest)))
        },
    );
}

/// Asks for many keys; writes one answer each, whatever was there before.
pub(crate) fn contains_all<K>(
    paths: Paths,
    words: &[u64],
    bits: u64,
    single: Single,
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    hits: &mut [bool],
) {
    if !is_far(paths, words) {
        let mut left = hits;
        return pipeline(
            &mut left,
            keys,
            hash,
            false,
            |_, _| {},
            |left, digests| {
                let hits = left.split_off_mut(..digests.len()).expect("one answer per key");
                for (hit, &digest) in hits.iter_mut().zip(digests) {
                    *hit = single.contains(words, bits, digest);
                }
            },
        );
    }
    let probes = single.probes;
    #[cfg(target_arch = "x86_64")]
    if paths.takes(detect::has_avx2) {
        // SAFETY: the instructions were detected.
        return unsafe { bmi2::ask(words, bits, probes, keys, hash, hits) };
    }
    baseline::ask(words, bits, probes, keys, hash, hits);
}

/// Inserts many keys; tells of each how many bits it set.
pub(crate) fn insert_all<K>(
    paths: Paths,
    words: &mut [u64],
    bits: u64,
    probes: u32,
    keys: &[K],
    hash: impl Fn(&[K], &mut [Digest]),
    told: impl FnMut(u32),
) {
    #[cfg(target_arch = "x86_64")]
    if paths.takes(detect::has_avx2) {
        // SAFETY: the instructions were detected.
        return unsafe { bmi2::put(paths, words, bits, probes, keys, hash, told) };
    }
    baseline::put(paths, words, bits, probes, keys, hash, told);
}

/// Asks for one key: the words, the number of bits and of probes, the digest.
type Contains = unsafe fn(&[u64], u64, u32, Digest) -> bool;

/// How one key is asked for. Chosen once per filter, by its number of probes: a loop whose length is known is
/// unrolled, and the fewer instructions a key takes, the more keys the processor has in flight.
#[derive(Clone, Copy)]
pub(crate) struct Single {
    /// May be called on this machine, with the number of probes that it was chosen for.
    contains: Contains,
    probes: u32,
}

impl Single {
    pub(crate) fn of(probes: u32, paths: Paths) -> Self {
        #[cfg(target_arch = "x86_64")]
        if paths.takes(detect::has_avx2) {
            // SAFETY: the instructions were detected.
            return unsafe { bmi2::single(probes) };
        }
        let _ = paths;
        // SAFETY: plain code runs everywhere.
        unsafe { baseline::single(probes) }
    }

    /// # Safety
    /// The machine has the instructions that `contains` was compiled for.
    const unsafe fn new(contains: Contains, probes: u32) -> Self {
        Self { contains, probes }
    }

    /// Asks for one key.
    #[inline(always)]
    pub(crate) fn contains(&self, words: &[u64], bits: u64, digest: Digest) -> bool {
        // SAFETY: promised to `new`.
        unsafe { (self.contains)(words, bits, self.probes, digest) }
    }
}

impl core::fmt::Debug for Single {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Single")
    }
}

/// The loops for one instruction set.
macro_rules! loops {
    ($(#[$instructions:meta])?) => {
        use super::{Digest, Paths, Single};

        $(#[$instructions])?
        pub(super) fn ask<K>(
            words: &[u64],
            bits: u64,
            probes: u32,
            keys: &[K],
            hash: impl Fn(&[K], &mut [Digest]),
            hits: &mut [bool],
        ) {
            super::ask(words, bits, probes, keys, hash, hits);
        }

        $(#[$instructions])?
        pub(super) fn put<K>(
            paths: Paths,
            words: &mut [u64],
            bits: u64,
            probes: u32,
            keys: &[K],
            hash: impl Fn(&[K], &mut [Digest]),
            told: impl FnMut(u32),
        ) {
            super::put(paths, words, bits, probes, keys, hash, told);
        }

        /// With `PROBES` positions; 0 stands for any number.
        $(#[$instructions])?
        fn contains<const PROBES: u32>(words: &[u64], bits: u64, probes: u32, digest: Digest) -> bool {
            super::contains(words, bits, if PROBES == 0 { probes } else { PROBES }, digest)
        }

        /// # Safety
        /// The machine must have the instructions of this module.
        pub(super) const unsafe fn single(probes: u32) -> Single {
            macro_rules! with {
                ($probes:literal) => {
                    // SAFETY: the caller promises it.
                    unsafe { Single::new(contains::<$probes>, probes) }
                };
            }
            match probes {
                1 => with!(1),
                2 => with!(2),
                3 => with!(3),
                4 => with!(4),
                5 => with!(5),
                6 => with!(6),
                7 => with!(7),
                8 => with!(8),
                9 => with!(9),
                10 => with!(10),
                11 => with!(11),
                12 => with!(12),
                13 => with!(13),
                14 => with!(14),
                _ => with!(0),
            }
        }
    };
}

/// What every machine can run.
mod baseline {
    loops!();
}

/// For processors whose multiplication and shifts need no fixed registers.
#[cfg(target_arch = "x86_64")]
mod bmi2 {
    loops!(#[target_feature(enable = "avx2,bmi1,bmi2")]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Hashing;
    use crate::probing::positions;
    use alloc::vec;
    use alloc::vec::Vec;

    fn copy(digests: &[Digest], to: &mut [Digest]) {
        to.copy_from_slice(digests);
    }

    #[test]
    fn the_first_group_leaves_whole_groups() {
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(first_group), [1, 2, 3, 4, 5, 2, 3, 4, 5, 2]);
    }

    /// Any number of keys, of probes and of bits, near and far.
    #[test]
    fn many_keys_get_the_bits_and_answers_of_each() {
        let paths = Paths::default();
        for (bits, keys) in [(1u64, 3), (100, 10), (64 * 1000, 5_000), (64 * 600_000, 1_000)] {
            for probes in [1, 2, 3, 4, 5, 7, 8, 13, 33] {
                let digest = |key: u64| Hashing::Xxh3 { seed: probes.into() }.digest_of(key);
                let (present, absent): (Vec<Digest>, Vec<Digest>) =
                    ((0..keys).map(digest).collect(), (1 << 40..(1 << 40) + keys).map(digest).collect());
                let zeros = vec![0u64; bits.div_ceil(64) as usize];
                let (mut plain, mut single, mut many) = (zeros.clone(), zeros.clone(), zeros);
                let (mut fresh, mut told) = (vec![], vec![]);
                for &digest in &present {
                    let mut set = 0;
                    for position in positions(digest, probes, bits) {
                        let (word, mask) = (&mut plain[(position / 64) as usize], 1 << (position % 64));
                        set += u32::from(*word & mask == 0);
                        *word |= mask;
                    }
                    fresh.push(set);
                    assert_eq!(insert(&mut single, bits, probes, digest), set > 0);
                }
                insert_all(paths, &mut many, bits, probes, &present, copy, |set| told.push(set));
                assert!(plain == single && plain == many && fresh == told, "{bits} bits, {probes} probes");
                let has = |digest: Digest| {
                    positions(digest, probes, bits)
                        .all(|position| plain[(position / 64) as usize] >> (position % 64) & 1 == 1)
                };
                for asked in [&present, &absent] {
                    // What stands there before is no answer.
                    let mut hits = vec![true; asked.len()];
                    contains_all(paths, &plain, bits, Single::of(probes, paths), asked, copy, &mut hits);
                    for (&digest, hit) in asked.iter().zip(hits) {
                        assert_eq!(hit, has(digest));
                        assert_eq!(Single::of(probes, paths).contains(&plain, bits, digest), hit);
                        // SAFETY: plain code runs everywhere.
                        let plain_single = unsafe { baseline::single(probes) };
                        assert_eq!(plain_single.contains(&plain, bits, digest), hit);
                    }
                }
            }
        }
    }
}
