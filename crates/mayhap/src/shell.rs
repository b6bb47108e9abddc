//! What every filter has around its algorithm, written once.
//!
//! A family's file has a *kernel*: storage, and arithmetic on the hashes of keys. It implements [`Kernel`] and, of the traits
//! below, those that say what else it can do. [`Shell`] adds what all filters share: the hash, the number of insert calls, the
//! batches, the file. [`filter!`](crate::shell::filter) declares the public type around a shell, with its methods, its
//! run-time face and its [`Capabilities`](crate::family::Capabilities).
//!
//! ```text
//!   key ─▶ Shell: hash of the key ─▶ Kernel: positions, bits
//!              │                        │
//!              └── number of inserts    └── parameters and payload ─▶ Shell: file
//! ```
//!
//! What loops over many keys is never inlined: the compiler inlines a closure that is called in one place, and a second copy of
//! the loop around it makes that two. Those of the run-time face are compiled once, the others once per type of key.
//!
//! A user sees `Bloom`, never a shell: compiler errors, completion and documentation show the methods that the family has, and no
//! others.

use alloc::vec::{self, Vec};
use core::convert::Infallible;
use core::iter;
use core::num::NonZeroU16;

use crate::batch::{BATCH, copy, pipeline};
use crate::bits::{Bytes, OutOfMemory, Words};
use crate::error::{BuildError, DecodeError, Error, Full, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{self, AnyFilter, Capabilities, Details, Family, Guarantee, Report};
use crate::hash::{Digest, Hashing, Here, Key, Secret};
use crate::paths::Paths;
use crate::rates::Rate;
use crate::shards::DigestShards;
#[cfg(feature = "std")]
use crate::shards::MemoryShards;
use crate::spec::{Plan, Spec};
use crate::traits::{self, Insertion, Removal};
use crate::wire::{Frame, Header, Summing, Writer};

/// What a kernel takes of a key's hash.
pub(crate) trait KeyHash: Copy + Default {
    fn of(hashing: &Hashing, key: impl Key) -> Self;

    /// The hashes of as many keys as there is room for.
    fn of_each<T: Key>(keys: &[T], hashing: &Hashing, hashes: &mut [Self]);

    fn of_digest(digest: Digest) -> Self;

    /// The hashes of as many keys, from their digests.
    #[inline(always)]
    fn of_digests(digests: &[Digest], hashes: &mut [Self]) {
        hashes.iter_mut().zip(digests).for_each(|(hash, &digest)| *hash = Self::of_digest(digest));
    }

    /// The requested hashing.
    ///
    /// # Errors
    /// [`SpecError::Hashing`] if it does not give such hashes.
    fn hashing(spec: &Spec) -> Result<Hashing, SpecError> {
        spec.hashed()
    }

    /// The hashing of a file gives such hashes.
    ///
    /// # Errors
    /// [`DecodeError::Hashing`] if it does not.
    fn must_be_of(header: &Header, hashing: Hashing) -> Result<(), DecodeError> {
        header.must_be_hashed(hashing)
    }
}

/// All 128 bits.
impl KeyHash for Digest {
    #[inline(always)]
    fn of(hashing: &Hashing, key: impl Key) -> Self {
        hashing.digest_of(key)
    }

    #[inline(always)]
    fn of_each<T: Key>(keys: &[T], hashing: &Hashing, hashes: &mut [Self]) {
        T::digests(keys, hashing, hashes, Here);
    }

    #[inline(always)]
    fn of_digest(digest: Digest) -> Self {
        digest
    }

    #[inline(always)]
    fn of_digests(digests: &[Digest], hashes: &mut [Self]) {
        hashes.copy_from_slice(digests);
    }
}

/// The first 64 bits.
impl KeyHash for u64 {
    #[inline(always)]
    fn of(hashing: &Hashing, key: impl Key) -> Self {
        hashing.half_of(key)
    }

    #[inline(always)]
    fn of_each<T: Key>(keys: &[T], hashing: &Hashing, hashes: &mut [Self]) {
        T::halves(keys, hashing, hashes, Here);
    }

    #[inline(always)]
    fn of_digest(digest: Digest) -> Self {
        digest.a
    }
}

/// An integer, which stands for itself; `None` for a key that is none.
impl KeyHash for Option<u64> {
    fn of(hashing: &Hashing, key: impl Key) -> Self {
        Self::of_digest(hashing.digest_of(key))
    }

    fn of_each<T: Key>(keys: &[T], hashing: &Hashing, hashes: &mut [Self]) {
        hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = Self::of(hashing, key));
    }

    fn of_digest(digest: Digest) -> Self {
        (digest.b == 0).then_some(digest.a)
    }

    fn hashing(spec: &Spec) -> Result<Hashing, SpecError> {
        spec.unhashed().map(|()| Hashing::Integer)
    }

    fn must_be_of(header: &Header, hashing: Hashing) -> Result<(), DecodeError> {
        header.must_be_integers(hashing)
    }
}

/// The algorithm of a family, and its storage.
///
/// A loop over many keys takes the keys and the function that hashes a few of them, so that [`pipeline`](crate::batch::pipeline)
/// can hash while it waits for memory.
pub(crate) trait Kernel: Clone {
    /// What it takes of a key's hash.
    type Hash: KeyHash;

    /// Which wrong answers are possible.
    const GUARANTEE: Guarantee = Guarantee::NoFalseNegatives;

    /// Whether it follows the rules of another program. [`read`](Kernel::read) checks its probing rule and its hash function
    /// itself then.
    const IS_FOREIGN: bool = false;

    /// Whether a key is probably in. `false` is certain: it is not in.
    fn contains(&self, hash: Self::Hash) -> bool;

    /// Prefetches what an operation on a key reads first, for the loops below that are not the kernel's own.
    fn prefetch(&self, _hash: Self::Hash) {}

    /// Answers for each key, in a slice of their number.
    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Self::Hash]), hits: &mut [bool]) {
        let mut hits = hits.iter_mut();
        let ahead = |(): &(), hash| self.prefetch(hash);
        pipeline(&mut (), keys, hash, true, ahead, |(), hashes| {
            hashes.iter().zip(&mut hits).for_each(|(&hash, hit)| *hit = self.contains(hash));
        });
    }

    /// As [`contains_each`](Kernel::contains_each), for a kernel that hashes keys in another way.
    #[inline(always)]
    fn contains_keys<T: Key>(&self, keys: &[T], hashing: &Hashing, hits: &mut [bool]) {
        self.contains_each(keys, |keys, hashes| Self::Hash::of_each(keys, hashing, hashes), hits);
    }

    /// As [`contains_each`](Kernel::contains_each), of keys that are hashed already.
    #[inline(always)]
    fn contains_digests(&self, digests: &[Digest], hits: &mut [bool]) {
        self.contains_each(digests, Self::Hash::of_digests, hits);
    }

    /// Whether its positions need more than a digest. It hashes the bytes of keys itself then, and of a digest it says that
    /// its key is probably in.
    fn is_wide(&self) -> bool {
        false
    }

    /// As [`contains_each`](Kernel::contains_each), by the bytes of keys, if it [is wide](Kernel::is_wide).
    fn contains_bytes(&self, _keys: &[&[u8]], hits: &mut [bool]) {
        hits.fill(true);
    }

    /// What it was made for, and its bits.
    fn plan(&self) -> Plan;

    /// The share of its places that are taken.
    fn fill(&self) -> f64;

    /// The rate of false positives as it is.
    fn rate(&self) -> Rate;

    /// How many different keys are probably in; infinite if that cannot be told, no number if it is not known.
    fn estimated_len(&self) -> f64;

    /// Whether the places of `other` mean the same.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference.
    fn must_match(&self, other: &Self) -> Result<(), Mismatch>;

    /// Whether both hold the same, if they match.
    fn holds_the_same(&self, other: &Self) -> bool;

    /// Writes the rule of its positions, its parameters, its payload and how many of its places are taken.
    fn write<'a>(&'a self, out: &mut Writer<'a>);

    /// Takes these from a file. Its probing rule has been found to be one of the family's.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with the file.
    fn read(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError>;

    /// Which wrong answers are possible, where that depends on how it was made.
    fn guarantee(&self) -> Guarantee {
        Self::GUARANTEE
    }

    /// What it can do, where that depends on how it was made. Otherwise it is what its family can do.
    fn can(&self) -> Option<Capabilities> {
        None
    }

    /// The error for an operation that it lacks and other filters of its family have.
    fn unsupported(&self, _operation: &'static str) -> Option<Error> {
        None
    }

    /// Takes these loops from now on, if it has a choice.
    fn take_paths(&mut self, _paths: Paths) {}

    /// Takes the memory that writing needs, where that is more than it has.
    ///
    /// # Errors
    /// [`OutOfMemory`], and nothing has changed.
    fn settle(&mut self) -> Result<(), OutOfMemory> {
        Ok(())
    }

    /// Bytes of memory beside the kernel itself.
    fn held_bytes(&self) -> u64 {
        self.plan().bits.div_ceil(8)
    }

    /// How many keys it was built of, if all were given at once. They count as inserted.
    fn keys(&self) -> Option<u64> {
        None
    }

    /// How many keys are in by a count of its own, if it keeps one in place of the number of insert calls.
    fn counted(&self) -> Option<u64> {
        None
    }

    /// The program whose rules it follows, if it is not ours.
    fn program(&self) -> Option<&'static str> {
        None
    }

    /// Whether its capacity and its requested rate are guesses, because its program does not write them down.
    fn guesses_capacity(&self) -> bool {
        false
    }

    /// What there is to say of it that not every filter has.
    fn details(&self) -> Details<'_> {
        Details::default()
    }
}

/// It can be made without keys, and be without keys again.
pub(crate) trait Empty: Kernel {
    /// An empty one.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    fn empty(spec: &Spec) -> Result<Self, SpecError>;

    fn clear(&mut self);
}

/// It is built of all its keys at once.
pub(crate) trait Built: Kernel {
    /// One with the keys of `source`, built by `threads` threads. Their number does not change it.
    ///
    /// # Errors
    /// [`BuildError`] says what cannot be built, or what is wrong with the source.
    fn built(spec: &Spec, source: &dyn DigestShards, threads: usize) -> Result<Self, BuildError>;
}

/// Keys can be inserted one after the other.
pub(crate) trait Inserts: Kernel {
    /// [`Full`], or [`Infallible`] if there is always room.
    type Error: Into<Full>;

    /// Inserts a key.
    ///
    /// # Errors
    /// There is no room; then nothing has changed.
    fn insert(&mut self, hash: Self::Hash) -> Result<Insertion, Self::Error>;

    /// Inserts keys in order, and tells of each.
    ///
    /// # Errors
    /// There was no room for one: those before it are in, and have been told of.
    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Self::Hash]),
        mut told: impl FnMut(Insertion),
    ) -> Result<(), Self::Error> {
        let mut outcome = Ok(());
        for_each_batch(self, keys, hash, |kernel, hashes| {
            if outcome.is_ok() {
                outcome = hashes.iter().try_for_each(|&hash| kernel.insert(hash).map(&mut told));
            }
        });
        outcome
    }

    /// Inserts keys without telling whether they are new. `done` is called once for each key that is in, or for many at
    /// once.
    ///
    /// # Errors
    /// As [`insert_each`](Inserts::insert_each).
    #[inline(always)]
    fn insert_all<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Self::Hash]),
        mut done: impl FnMut(u64),
    ) -> Result<(), Self::Error> {
        self.insert_each(keys, hash, |_| done(1))
    }

    /// As [`insert_each`](Inserts::insert_each), by the bytes of keys, if it [is wide](Kernel::is_wide).
    ///
    /// # Errors
    /// As [`insert_each`](Inserts::insert_each).
    fn insert_bytes(&mut self, _keys: &[&[u8]], _told: impl FnMut(Insertion)) -> Result<(), Self::Error> {
        unreachable!("digests are enough")
    }

    /// As [`insert_all`](Inserts::insert_all), for a kernel that hashes keys in another way.
    ///
    /// # Errors
    /// As [`insert_each`](Inserts::insert_each).
    #[inline(always)]
    fn insert_all_keys<T: Key>(
        &mut self,
        keys: &[T],
        hashing: &Hashing,
        done: impl FnMut(u64),
    ) -> Result<(), Self::Error> {
        self.insert_all(keys, |keys, hashes| Self::Hash::of_each(keys, hashing, hashes), done)
    }
}

/// Keys can be removed.
pub(crate) trait Removes: Inserts {
    fn remove(&mut self, hash: Self::Hash) -> Removal;

    /// Removes keys in order; appends one outcome each.
    fn remove_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Self::Hash]),
        outcomes: &mut Vec<Removal>,
    ) {
        for_each_batch(self, keys, hash, |kernel, hashes| {
            outcomes.extend(hashes.iter().map(|&hash| kernel.remove(hash)));
        });
    }

    /// As [`remove_each`](Removes::remove_each), for a kernel that hashes keys in another way.
    #[inline(always)]
    fn remove_keys<T: Key>(&mut self, keys: &[T], hashing: &Hashing, outcomes: &mut Vec<Removal>) {
        self.remove_each(keys, |keys, hashes| Self::Hash::of_each(keys, hashing, hashes), outcomes);
    }
}

/// Keys are counted.
pub(crate) trait Counts: Kernel {
    fn count(&self, hash: Self::Hash) -> u64;

    /// Appends the count of each key.
    fn count_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Self::Hash]), counts: &mut Vec<u64>) {
        let ahead = |(): &(), hash| self.prefetch(hash);
        pipeline(&mut (), keys, hash, true, ahead, |(), hashes| {
            counts.extend(hashes.iter().map(|&hash| self.count(hash)));
        });
    }

    /// The highest count that it can tell.
    fn ceiling(&self) -> u64 {
        u64::MAX
    }
}

/// It holds many sets, which are called areas and have the numbers from 1 on, and says which of them a key is in.
pub(crate) trait Labels: Kernel {
    /// The number of areas.
    fn areas(&self) -> u16;

    /// The name of an area, if it has one.
    fn area_name(&self, area: u16) -> Option<&str>;

    /// Gives names to all areas, in order; an empty one is none.
    ///
    /// # Errors
    /// [`SpecError`] if there are more or fewer names than areas, or a name is not allowed; then nothing has changed.
    fn name_areas(&mut self, names: &[&str]) -> Result<(), SpecError>;

    /// The area that a key is probably in, or `None`.
    fn label(&self, hash: Self::Hash) -> Option<NonZeroU16>;

    /// Calls `each` with the label of every key, in order.
    fn label_each<T>(
        &self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Self::Hash]),
        each: impl FnMut(Option<NonZeroU16>),
    );

    /// Inserts keys into an area in order, and calls `each` with the outcome of every one.
    ///
    /// # Errors
    /// There is no such area; then nothing has changed.
    fn insert_into<T>(
        &mut self,
        area: u16,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Self::Hash]),
        each: impl FnMut(Insertion),
    ) -> Result<(), Full>;
}

/// There is a union.
pub(crate) trait Merges: Kernel {
    /// Holds every key of both afterwards. They hash alike.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch>;
}

/// There is an intersection.
pub(crate) trait Intersects: Kernel {
    /// Holds every key that was in both afterwards. They hash alike.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    fn intersect(&mut self, other: &Self) -> Result<(), Mismatch>;
}

/// There is a difference.
pub(crate) trait Subtracts: Kernel {
    /// Holds the keys that were in it and not in the other afterwards. They hash alike.
    ///
    /// # Errors
    /// [`Mismatch`] names the first difference; then nothing has changed.
    fn subtract(&mut self, other: &Self) -> Result<(), Mismatch>;
}

/// A kernel with what all filters share.
#[derive(Clone, Debug)]
pub(crate) struct Shell<K> {
    pub(crate) kernel: K,
    pub(crate) hashing: Hashing,
    /// Insert calls; unknown after a merge or an interrupted update.
    pub(crate) inserted: Option<u64>,
}

/// The number of keys that are hashed before a loop that is compiled once, for all kinds of keys that come at run time.
const CHUNK: usize = 1024;

/// Up to this number of keys are hashed into less space.
const FEW: usize = 256;

impl<K: Kernel> Shell<K> {
    /// A filter that was built of all its keys.
    pub(crate) fn of_built(kernel: K, hashing: Hashing) -> Self {
        Self { inserted: kernel.keys(), kernel, hashing }
    }

    /// The same around another kernel.
    pub(crate) fn with(&self, kernel: K) -> Self {
        Self { kernel, hashing: self.hashing, inserted: self.inserted }
    }

    #[inline(always)]
    pub(crate) fn contains(&self, key: impl Key) -> bool {
        self.kernel.contains(K::Hash::of(&self.hashing, key))
    }

    #[inline(always)]
    pub(crate) fn contains_each<T: Key>(&self, keys: &[T], hits: &mut Vec<bool>) {
        let hashing = self.hashing;
        self.kernel.contains_keys(keys, &hashing, appended(hits, keys.len()));
    }

    pub(crate) fn contains_iter<I: IntoIterator<Item: Key>>(&self, keys: I) -> Answers<'_, K, I::IntoIter> {
        Answers {
            shell: self,
            keys: keys.into_iter().fuse(),
            batch: Vec::new().into_iter(),
            hits: Vec::new(),
        }
    }

    /// The loop behind the run-time face.
    #[inline(never)]
    pub(crate) fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        self.kernel.contains_digests(digests, appended(hits, digests.len()));
    }

    pub(crate) fn contains_bytes(&self, key: &[u8]) -> bool {
        let mut hit = [false];
        if self.kernel.is_wide() {
            self.kernel.contains_bytes(&[key], &mut hit);
            return hit[0];
        }
        self.contains(key)
    }

    pub(crate) fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        if self.kernel.is_wide() {
            return self.kernel.contains_bytes(keys, appended(hits, keys.len()));
        }
        let Ok(()) = for_each_chunk(keys, &self.hashing, |digests| {
            self.contains_batch(digests, hits);
            Ok::<(), Infallible>(())
        });
    }

    /// A crafted file may claim any number of calls: they end at the top instead of going round.
    #[inline(always)]
    pub(crate) fn add_inserted(&mut self, calls: u64) {
        if let Some(inserted) = &mut self.inserted {
            *inserted = inserted.saturating_add(calls);
        }
    }

    /// How many keys went in, if that is known.
    pub(crate) fn inserted(&self) -> Option<u64> {
        self.kernel.counted().or(self.inserted)
    }

    pub(crate) fn report(&self) -> Report {
        let (rate, estimated_len) = (self.kernel.rate(), self.kernel.estimated_len());
        let Plan { capacity, fpr_asked, fpr, bits, probes } = self.kernel.plan();
        Report {
            capacity,
            inserted: self.inserted(),
            estimated_len: estimated_len.is_finite().then_some(estimated_len),
            bits,
            probes,
            fill: self.kernel.fill(),
            fpr_asked,
            fpr_now: rate.value,
            fpr_interval: rate.interval(),
            fpr_at_capacity: fpr,
            guarantee: self.kernel.guarantee(),
        }
    }

    /// Hashing is compared last, since it can be chosen again most easily.
    pub(crate) fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        self.must_follow_one_program(other)?;
        self.kernel.must_match(&other.kernel)?;
        self.hashing.must_equal(&other.hashing)
    }

    fn must_follow_one_program(&self, other: &Self) -> Result<(), Mismatch> {
        must_agree(&self.kernel, &other.kernel, |kernel| {
            [(Parameter::Program, kernel.program().unwrap_or("mayhap").into())]
        })
    }

    pub(crate) fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.inserted(self.inserted());
        self.kernel.write(out);
    }

    pub(crate) fn decode(frame: &mut Frame, hashing: Hashing, family: &Family) -> Result<Self, DecodeError> {
        if K::IS_FOREIGN {
            family.must_be(frame.header.family)?;
        } else {
            frame.header.must_probe_by(family.probing)?;
            K::Hash::must_be_of(&frame.header, hashing)?;
        }
        let kernel = K::read(frame, hashing)?;
        let inserted = kernel.keys().or(frame.header.inserted);
        Ok(Self { kernel, hashing, inserted })
    }
}

/// Two filters are equal if they give the same answer to every key: same parameters, hashing and contents.
impl<K: Kernel> PartialEq for Shell<K> {
    fn eq(&self, other: &Self) -> bool {
        self.must_match(other).is_ok() && self.kernel.holds_the_same(&other.kernel)
    }
}

impl<K: Empty> Shell<K> {
    pub(crate) fn empty(spec: &Spec) -> Result<Self, SpecError> {
        let mut kernel = K::empty(spec)?;
        kernel.take_paths(spec.paths);
        Ok(Self { kernel, hashing: K::Hash::hashing(spec)?, inserted: Some(0) })
    }

    pub(crate) fn clear(&mut self) {
        self.kernel.clear();
        self.inserted = Some(0);
    }
}

impl<K: Built> Shell<K> {
    #[cfg(feature = "std")]
    pub(crate) fn build<T: Key + Sync>(
        keys: &[T],
        spec: &Spec,
        threads: usize,
        family: &Family,
    ) -> Result<Self, BuildError> {
        let spec = spec.with_capacity(keys.len().max(1) as u64);
        // A spec that cannot be met is refused before the keys are hashed.
        (family.plan)(&spec)?;
        let bits = spec.paths.shard_bits(keys.len() as u64);
        let shards = MemoryShards::hashed(keys, K::Hash::hashing(&spec)?, bits, threads);
        Self::from_shards(&spec, &shards, threads, family)
    }

    pub(crate) fn from_shards(
        spec: &Spec,
        source: &dyn DigestShards,
        threads: usize,
        family: &Family,
    ) -> Result<Self, BuildError> {
        (family.plan)(spec)?;
        let hashing = K::Hash::hashing(spec)?;
        Ok(Self::of_built(K::built(spec, source, threads)?, hashing))
    }
}

impl<K: Inserts> Shell<K> {
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: impl Key) -> Result<Insertion, K::Error> {
        let hash = K::Hash::of(&self.hashing, key);
        self.insert_hash(hash)
    }

    #[inline(always)]
    pub(crate) fn insert_hash(&mut self, hash: K::Hash) -> Result<Insertion, K::Error> {
        let outcome = self.kernel.insert(hash)?;
        self.add_inserted(1);
        Ok(outcome)
    }

    #[inline(always)]
    pub(crate) fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        self.insert_hash(K::Hash::of_digest(digest)).map_err(Into::into)
    }

    /// Says how many are in where there is no room for more.
    #[inline(always)]
    pub(crate) fn insert_all<T: Key>(&mut self, keys: &[T]) -> Result<(), Full> {
        let hashing = self.hashing;
        let mut done = 0;
        let outcome = self.kernel.insert_all_keys(keys, &hashing, |keys| done += keys);
        self.add_inserted(done);
        outcome.map_err(|full| Full { inserted: done, ..full.into() })
    }

    /// Inserts keys that are hashed already, without telling whether they are new.
    pub(crate) fn insert_digests(&mut self, digests: &[Digest])
    where
        K: Inserts<Error = Infallible>,
    {
        let Ok(()) = self.kernel.insert_each(digests, K::Hash::of_digests, |_| {});
        self.add_inserted(digests.len() as u64);
    }

    /// Says how many are in where there is no room for more.
    #[inline(always)]
    pub(crate) fn insert_each<T: Key>(
        &mut self,
        keys: &[T],
        outcomes: &mut Vec<Insertion>,
    ) -> Result<(), Full> {
        let hashing = self.hashing;
        let hash = |keys: &[T], hashes: &mut [K::Hash]| K::Hash::of_each(keys, &hashing, hashes);
        self.append_outcomes(keys.len(), outcomes, |kernel, outcomes| {
            kernel.insert_each(keys, hash, |outcome| outcomes.push(outcome))
        })
    }

    #[inline(always)]
    fn append_outcomes(
        &mut self,
        len: usize,
        outcomes: &mut Vec<Insertion>,
        insert: impl FnOnce(&mut K, &mut Vec<Insertion>) -> Result<(), K::Error>,
    ) -> Result<(), Full> {
        let before = outcomes.len();
        outcomes.reserve(len);
        let outcome = insert(&mut self.kernel, outcomes);
        let done = (outcomes.len() - before) as u64;
        self.add_inserted(done);
        outcome.map_err(|full| Full { inserted: done, ..full.into() })
    }

    /// The loop behind the run-time face.
    #[inline(never)]
    pub(crate) fn insert_batch(
        &mut self,
        digests: &[Digest],
        outcomes: &mut Vec<Insertion>,
    ) -> Result<(), Full> {
        self.append_outcomes(digests.len(), outcomes, |kernel, outcomes| {
            kernel.insert_each(digests, K::Hash::of_digests, |outcome| outcomes.push(outcome))
        })
    }

    pub(crate) fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        if self.kernel.is_wide() {
            return self.append_outcomes(keys.len(), outcomes, |kernel, outcomes| {
                kernel.insert_bytes(keys, |outcome| outcomes.push(outcome))
            });
        }
        let (hashing, mut done) = (self.hashing, 0);
        for_each_chunk(keys, &hashing, |digests| {
            let inserted = self.insert_batch(digests, outcomes);
            inserted.map_err(|full| Full { inserted: done + full.inserted, ..full })?;
            done += digests.len() as u64;
            Ok(())
        })
    }
}

impl<K: Removes> Shell<K> {
    #[inline(always)]
    pub(crate) fn remove(&mut self, key: impl Key) -> Removal {
        let hash = K::Hash::of(&self.hashing, key);
        self.kernel.remove(hash)
    }

    pub(crate) fn remove_digest(&mut self, digest: Digest) -> Removal {
        self.kernel.remove(K::Hash::of_digest(digest))
    }

    #[inline(always)]
    pub(crate) fn remove_all<T: Key>(&mut self, keys: &[T], outcomes: &mut Vec<Removal>) {
        let hashing = self.hashing;
        outcomes.reserve(keys.len());
        self.kernel.remove_keys(keys, &hashing, outcomes);
    }

    #[inline(never)]
    pub(crate) fn remove_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Removal>) {
        outcomes.reserve(digests.len());
        self.kernel.remove_each(digests, K::Hash::of_digests, outcomes);
    }
}

impl<K: Counts> Shell<K> {
    #[inline(always)]
    pub(crate) fn count(&self, key: impl Key) -> u64 {
        self.kernel.count(K::Hash::of(&self.hashing, key))
    }

    pub(crate) fn count_digest(&self, digest: Digest) -> u64 {
        self.kernel.count(K::Hash::of_digest(digest))
    }

    #[inline(always)]
    pub(crate) fn count_each<T: Key>(&self, keys: &[T], counts: &mut Vec<u64>) {
        let hashing = self.hashing;
        counts.reserve(keys.len());
        self.kernel.count_each(keys, |keys, hashes| K::Hash::of_each(keys, &hashing, hashes), counts);
    }

    #[inline(never)]
    pub(crate) fn count_batch(&self, digests: &[Digest], counts: &mut Vec<u64>) {
        counts.reserve(digests.len());
        self.kernel.count_each(digests, K::Hash::of_digests, counts);
    }
}

impl<K: Labels> Shell<K> {
    #[inline(always)]
    pub(crate) fn label(&self, key: impl Key) -> Option<u16> {
        self.kernel.label(K::Hash::of(&self.hashing, key)).map(NonZeroU16::get)
    }

    pub(crate) fn label_digest(&self, digest: Digest) -> traits::Labels {
        labels_of(self.kernel.label(K::Hash::of_digest(digest)))
    }

    #[inline(always)]
    pub(crate) fn label_each<T: Key>(&self, keys: &[T], labels: &mut Vec<Option<u16>>) {
        let hashing = self.hashing;
        let hash = |keys: &[T], hashes: &mut [K::Hash]| K::Hash::of_each(keys, &hashing, hashes);
        labels.reserve(keys.len());
        self.kernel.label_each(keys, hash, |label| labels.push(label.map(NonZeroU16::get)));
    }

    #[inline(never)]
    pub(crate) fn label_batch(&self, digests: &[Digest], labels: &mut Vec<traits::Labels>) {
        labels.reserve(digests.len());
        self.kernel.label_each(digests, K::Hash::of_digests, |label| labels.push(labels_of(label)));
    }

    #[inline(always)]
    pub(crate) fn insert_into(&mut self, area: u16, key: impl Key) -> Result<Insertion, Full> {
        self.insert_hash_into(area, K::Hash::of(&self.hashing, key))
    }

    pub(crate) fn insert_digest_into(&mut self, area: u16, digest: Digest) -> Result<Insertion, Full> {
        self.insert_hash_into(area, K::Hash::of_digest(digest))
    }

    #[inline(always)]
    fn insert_hash_into(&mut self, area: u16, hash: K::Hash) -> Result<Insertion, Full> {
        let mut outcome = Insertion::Perhaps;
        self.kernel.insert_into(area, &[hash], copy, |of_key| outcome = of_key)?;
        self.add_inserted(1);
        Ok(outcome)
    }

    #[inline(always)]
    pub(crate) fn insert_all_into<T: Key>(&mut self, area: u16, keys: &[T]) -> Result<(), Full> {
        let hashing = self.hashing;
        let hash = |keys: &[T], hashes: &mut [K::Hash]| K::Hash::of_each(keys, &hashing, hashes);
        self.kernel.insert_into(area, keys, hash, |_| {})?;
        self.add_inserted(keys.len() as u64);
        Ok(())
    }

    #[inline(never)]
    pub(crate) fn insert_batch_into(
        &mut self,
        area: u16,
        digests: &[Digest],
        outcomes: &mut Vec<Insertion>,
    ) -> Result<(), Full> {
        self.kernel.insert_into(area, digests, K::Hash::of_digests, |outcome| outcomes.push(outcome))?;
        self.add_inserted(digests.len() as u64);
        Ok(())
    }
}

fn labels_of(label: Option<NonZeroU16>) -> traits::Labels {
    label.map_or(traits::Labels::None, traits::Labels::One)
}

impl<K: Merges> Shell<K> {
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, K::merge)
    }
}

impl<K: Intersects> Shell<K> {
    pub(crate) fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, K::intersect)
    }
}

impl<K: Subtracts> Shell<K> {
    pub(crate) fn subtract(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, K::subtract)
    }
}

impl<K: Kernel> Shell<K> {
    /// How many calls have made the result is not known: some keys may have been in both.
    fn combine(
        &mut self,
        other: &Self,
        combine: impl Fn(&mut K, &K) -> Result<(), Mismatch>,
    ) -> Result<(), Mismatch> {
        self.must_follow_one_program(other)?;
        self.hashing.must_equal(&other.hashing)?;
        combine(&mut self.kernel, &other.kernel)?;
        self.inserted = None;
        Ok(())
    }
}

/// Room for `len` answers more.
#[inline(always)]
fn appended(hits: &mut Vec<bool>, len: usize) -> &mut [bool] {
    let start = hits.len();
    hits.resize(start + len, false);
    &mut hits[start..]
}

/// Keys with their answers, in order; a batch of keys is taken before the answer to its first.
pub(crate) struct Answers<'a, K, I: Iterator> {
    shell: &'a Shell<K>,
    keys: iter::Fuse<I>,
    batch: vec::IntoIter<I::Item>,
    /// Of the whole batch.
    hits: Vec<bool>,
}

impl<K: Kernel, I: Iterator<Item: Key>> Iterator for Answers<'_, K, I> {
    type Item = (I::Item, bool);

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.len() == 0 {
            let keys: Vec<I::Item> = self.keys.by_ref().take(FEW).collect();
            self.hits.clear();
            self.shell.contains_each(&keys, &mut self.hits);
            self.batch = keys.into_iter();
        }
        let hit = self.hits.len() - self.batch.len();
        Some((self.batch.next()?, self.hits[hit]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let ((least, most), waiting) = (self.keys.size_hint(), self.batch.len());
        (least.saturating_add(waiting), most.and_then(|most| most.checked_add(waiting)))
    }
}

/// Hashes keys that come at run time, a chunk at a time, until an error. Few keys do not pay for the space of many, which is
/// zeroed first.
fn for_each_chunk<E>(
    keys: &[&[u8]],
    hashing: &Hashing,
    act: impl FnMut(&[Digest]) -> Result<(), E>,
) -> Result<(), E> {
    fn chunks<const SPACE: usize, E>(
        keys: &[&[u8]],
        hashing: &Hashing,
        mut act: impl FnMut(&[Digest]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut digests = [Digest::default(); SPACE];
        for keys in keys.chunks(SPACE) {
            let digests = &mut digests[..keys.len()];
            Key::digests(keys, hashing, digests, Here);
            act(digests)?;
        }
        Ok(())
    }
    match keys.len() {
        few if few <= BATCH => chunks::<BATCH, _>(keys, hashing, act),
        few if few <= FEW => chunks::<FEW, _>(keys, hashing, act),
        _ => chunks::<CHUNK, _>(keys, hashing, act),
    }
}

/// Changes a kernel by the hashes of keys, a batch at a time, each of which is prefetched while the one before is worked on.
fn for_each_batch<K: Kernel, T>(
    kernel: &mut K,
    keys: &[T],
    hash: impl Fn(&[T], &mut [K::Hash]),
    act: impl FnMut(&mut K, &[K::Hash]),
) {
    pipeline(kernel, keys, hash, true, |kernel, hash| kernel.prefetch(hash), act);
}

impl From<Infallible> for Full {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The payload of a file as words, if it has `bytes` bytes.
pub(crate) fn take_words(frame: &mut Frame, bytes: u64) -> Result<Words, DecodeError> {
    let found = frame.header.payload.length;
    if found != bytes {
        return Err(DecodeError::Length { field: "payload", expected: bytes, found });
    }
    take_all_words(frame)
}

/// The payload of a file as words, however many there are.
pub(crate) fn take_all_words(frame: &mut Frame) -> Result<Words, DecodeError> {
    let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
    Words::from_bytes(payload)
        .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })
}

/// The number of keys that a filter was built of is at most `most`, and the header has the same number.
pub(crate) fn must_be_built_of(frame: &Frame, keys: u64, most: u64) -> Result<(), DecodeError> {
    if let Some(found) = frame.header.ones.filter(|&ones| ones > most) {
        return Err(DecodeError::Value { field: "number of keys", found });
    }
    if keys > most || frame.header.ones.is_some_and(|ones| ones != keys) {
        return Err(DecodeError::Value { field: "keys", found: keys });
    }
    Ok(())
}

/// How many of `places` are taken, as the header says or by `count`. It is compared only when the whole payload is read anyway,
/// so that a large file opens by its header.
pub(crate) fn occupied(
    frame: &Frame,
    field: &'static str,
    places: u64,
    count: impl Fn() -> u64,
) -> Result<Option<u64>, DecodeError> {
    match frame.header.ones {
        Some(found) if found > places || (frame.verified && found != count()) => {
            Err(DecodeError::Value { field, found })
        }
        ones => Ok(ones),
    }
}

/// Whether keys can be inserted into a filter.
///
/// # Errors
/// What the filter says of inserting if they cannot.
pub(crate) fn must_insert(filter: &impl AnyFilter) -> Result<(), Error> {
    if filter.can().inserts { Ok(()) } else { Err(filter.unsupported("insert")) }
}

/// Whether keys can be removed from a filter.
///
/// # Errors
/// What the filter says of removing if they cannot.
pub(crate) fn must_remove(filter: &impl AnyFilter) -> Result<(), Error> {
    if filter.can().removes { Ok(()) } else { Err(filter.unsupported("remove")) }
}

/// A filter as it stands in a file.
pub(crate) fn to_bytes(filter: &dyn AnyFilter) -> Vec<u8> {
    family::encode(filter, Summing::Payload).to_vec()
}

/// A filter of one family from the bytes of a file.
pub(crate) fn from_bytes<K: Kernel>(
    bytes: &[u8],
    secret: Option<&Secret>,
    family: &Family,
) -> Result<Shell<K>, DecodeError> {
    family::from_bytes(bytes, secret, family, |frame, hashing| Shell::decode(frame, hashing, family))
}

/// Declares the public type of a family: a struct around the [`Shell`] of a kernel.
///
/// It holds no logic. Every method is one call of the shell, which has the code, once; here are names, documentation and the
/// traits of the run-time face. The list has what the family can do, in the words of
/// [`Capabilities`](crate::family::Capabilities), each perhaps with documentation of its own, and
///
/// - `new`: it is made by capacity and rate;
/// - `specified`: it is made empty, of a [`Spec`], and can be cleared;
/// - `built`: it is built of all its keys at once, and of their digests;
/// - `inserts_until_full` in place of `inserts`, where an insert can fail;
/// - `may_insert` and `may_remove` in place of `inserts` and `removes`, where only some filters of the family can, as their
///   [`can`](Kernel::can) says;
/// - `may_intersect` likewise; the family's file implements it;
/// - `associates`: it tells which of two sets a key is in, or both; the family's file implements it;
/// - `matches`: whether two of them can be combined is asked by `must_match`.
macro_rules! filter {
    (
        $(#[$doc:meta])*
        $name:ident($kernel:ty) = $family:ident { $($(#[$more:meta])* $can:ident),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name(pub(crate) $crate::shell::Shell<$kernel>);

        impl $name {
            /// Its family.
            pub const FAMILY: &'static $crate::family::Family = &$family;

            /// What its filters can do.
            #[allow(dead_code, reason = "the family of another program's filter is one of ours, with a list of its own")]
            pub(crate) const CAN: $crate::family::Capabilities = {
                #[allow(unused_mut, reason = "a family may have none")]
                let mut can = $crate::family::Capabilities::NONE;
                $($crate::shell::filter!(@capability can $can);)*
                can
            };
        }

        $($crate::shell::filter!(@methods $name $family, $can, $(#[$more])*);)*

        impl $name {
            /// Whether a key is probably in. `false` is certain: it is not in.
            #[must_use]
            #[inline]
            pub fn contains(&self, key: impl $crate::hash::Key) -> bool {
                self.0.contains(key)
            }

            /// Looks up many keys, several at a time in flight; appends one answer each.
            #[inline(never)]
            pub fn contains_each<K: $crate::hash::Key>(&self, keys: &[K], hits: &mut ::alloc::vec::Vec<bool>) {
                self.0.contains_each(keys, hits);
            }

            /// Keys with their answers, in order, as [`contains_each`](Self::contains_each) finds them: 256 keys are taken at a time.
            pub fn contains_iter<I: IntoIterator<Item: $crate::hash::Key>>(
                &self,
                keys: I,
            ) -> impl Iterator<Item = (I::Item, bool)> {
                self.0.contains_iter(keys)
            }

            /// The keys that are probably in, in order; 256 keys are taken at a time.
            pub fn filter_present<I: IntoIterator<Item: $crate::hash::Key>>(
                &self,
                keys: I,
            ) -> impl Iterator<Item = I::Item> {
                self.contains_iter(keys).filter_map(|(key, is_in)| is_in.then_some(key))
            }

            /// The keys that are certainly not in, in order; 256 keys are taken at a time.
            pub fn filter_absent<I: IntoIterator<Item: $crate::hash::Key>>(
                &self,
                keys: I,
            ) -> impl Iterator<Item = I::Item> {
                self.contains_iter(keys).filter_map(|(key, is_in)| (!is_in).then_some(key))
            }

            /// The number of keys it was made for.
            #[must_use]
            pub fn capacity(&self) -> u64 {
                $crate::shell::Kernel::plan(&self.0.kernel).capacity
            }

            /// How keys are hashed.
            #[must_use]
            pub fn hashing(&self) -> $crate::hash::Hashing {
                self.0.hashing
            }

            /// How many keys went in, repeats included. `None` if that is not known, as after a merge.
            #[must_use]
            pub fn inserted(&self) -> Option<u64> {
                self.0.inserted()
            }

            /// The share of its places that are taken.
            #[must_use]
            pub fn fill(&self) -> f64 {
                $crate::shell::Kernel::fill(&self.0.kernel)
            }

            /// The false-positive rate of the filter as it is.
            #[must_use]
            pub fn fpr(&self) -> f64 {
                $crate::shell::Kernel::rate(&self.0.kernel).value
            }

            /// The false-positive rate with as many keys as it was made for.
            #[must_use]
            pub fn fpr_at_capacity(&self) -> f64 {
                $crate::shell::Kernel::plan(&self.0.kernel).fpr
            }

            /// How many different keys are probably in; infinite when it is too full to tell.
            #[must_use]
            pub fn estimated_len(&self) -> f64 {
                $crate::shell::Kernel::estimated_len(&self.0.kernel)
            }

            /// All its bits, as they stand in a file.
            #[must_use]
            pub fn bits(&self) -> u64 {
                $crate::shell::Kernel::plan(&self.0.kernel).bits
            }

            /// Bytes of memory, everything included.
            #[must_use]
            pub fn size_in_bytes(&self) -> u64 {
                size_of::<Self>() as u64 + $crate::shell::Kernel::held_bytes(&self.0.kernel)
            }

            /// The filter as it stands in a file.
            #[must_use]
            pub fn to_bytes(&self) -> ::alloc::vec::Vec<u8> {
                $crate::shell::to_bytes(self)
            }

            /// A filter from the bytes of a file.
            ///
            /// # Errors
            /// [`DecodeError`](crate::DecodeError) says what is wrong with them.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, $crate::error::DecodeError> {
                $crate::shell::from_bytes(bytes, None, &$family).map(Self)
            }

            /// A keyed filter from the bytes of a file.
            ///
            /// # Errors
            /// [`DecodeError`](crate::DecodeError) says what is wrong with them, or that the secret is another one.
            pub fn from_bytes_keyed(
                bytes: &[u8],
                secret: &$crate::hash::Secret,
            ) -> Result<Self, $crate::error::DecodeError> {
                $crate::shell::from_bytes(bytes, Some(secret), &$family).map(Self)
            }

            pub(crate) fn decode(
                frame: &mut $crate::wire::Frame,
                hashing: $crate::hash::Hashing,
            ) -> Result<Self, $crate::error::DecodeError> {
                $crate::shell::Shell::decode(frame, hashing, &$family).map(Self)
            }
        }

        $crate::shell::filter!(@run_time $name $family { $($can)* });
    };
    (@run_time $name:ident $family:ident { $($can:ident)* }) => {
        impl $crate::traits::sealed::Sealed for $name {}

        impl $crate::traits::Filter for $name {
            fn hashing(&self) -> $crate::hash::Hashing {
                self.0.hashing
            }

            #[inline]
            fn contains_digest(&self, digest: $crate::hash::Digest) -> bool {
                let kernel = &self.0.kernel;
                $crate::shell::Kernel::contains(kernel, $crate::shell::KeyHash::of_digest(digest))
            }

            fn contains(&self, key: &[u8]) -> bool {
                self.0.contains_bytes(key)
            }

            fn contains_batch(&self, digests: &[$crate::hash::Digest], hits: &mut ::alloc::vec::Vec<bool>) {
                self.0.contains_batch(digests, hits);
            }
        }

        impl $crate::family::AnyFilter for $name {
            fn family(&self) -> &'static $crate::family::Family {
                &$family
            }

            fn can(&self) -> $crate::family::Capabilities {
                $crate::shell::Kernel::can(&self.0.kernel).unwrap_or($family.can)
            }

            fn unsupported(&self, operation: &'static str) -> $crate::error::Error {
                let family = $family.name;
                $crate::shell::Kernel::unsupported(&self.0.kernel, operation)
                    .unwrap_or($crate::error::Error::Unsupported { family, operation })
            }

            fn program(&self) -> Option<&'static str> {
                $crate::shell::Kernel::program(&self.0.kernel)
            }

            fn guesses_capacity(&self) -> bool {
                $crate::shell::Kernel::guesses_capacity(&self.0.kernel)
            }

            fn report(&self) -> $crate::family::Report {
                self.0.report()
            }

            fn encode<'a>(&'a self, out: &mut $crate::wire::Writer<'a>) {
                self.0.write(out);
            }

            fn contains_keys(&self, keys: &[&[u8]], hits: &mut ::alloc::vec::Vec<bool>) {
                self.0.contains_keys(keys, hits);
            }

            #[cfg(feature = "internals")]
            fn set_paths(&mut self, paths: $crate::paths::Paths) {
                $crate::shell::Kernel::take_paths(&mut self.0.kernel, paths);
            }

            fn size_in_bytes(&self) -> u64 {
                size_of::<Self>() as u64 + $crate::shell::Kernel::held_bytes(&self.0.kernel)
            }

            fn settle(&mut self) -> Result<(), $crate::bits::OutOfMemory> {
                $crate::shell::Kernel::settle(&mut self.0.kernel)
            }

            fn details(&self) -> $crate::family::Details<'_> {
                $crate::shell::Kernel::details(&self.0.kernel)
            }

            $($crate::shell::filter!(@face $can);)*
        }
    };

    // What the list says, as the table of the family.
    (@capability $table:ident new) => {};
    (@capability $table:ident specified) => {};
    (@capability $table:ident built) => {};
    (@capability $table:ident matches) => {};
    (@capability $table:ident may_insert) => {};
    (@capability $table:ident may_remove) => {};
    (@capability $table:ident associates) => {};
    (@capability $table:ident may_intersect) => { $table.intersects = true };
    (@capability $table:ident inserts_until_full) => { $table.inserts = true };
    (@capability $table:ident $can:ident) => { $table.$can = true };

    // The run-time face.
    (@face specified) => {
        fn clear(&mut self) -> bool {
            self.0.clear();
            true
        }
    };
    (@face inserts) => {
        fn insert_keys(
            &mut self,
            keys: &[&[u8]],
            outcomes: &mut ::alloc::vec::Vec<$crate::traits::Insertion>,
        ) -> Result<(), $crate::error::Error> {
            Ok(self.0.insert_keys(keys, outcomes)?)
        }

        /// Where a digest is not enough there are `insert_keys` alone.
        fn as_insert(&mut self) -> Option<&mut dyn $crate::traits::Insert> {
            let is_wide = $crate::shell::Kernel::is_wide(&self.0.kernel);
            (!is_wide).then_some(self as &mut dyn $crate::traits::Insert)
        }
    };
    (@face inserts_until_full) => { $crate::shell::filter!(@face inserts); };
    (@face removes) => {
        fn as_remove(&mut self) -> Option<&mut dyn $crate::traits::Remove> {
            Some(self)
        }
    };
    (@face may_insert) => {
        fn as_insert(&mut self) -> Option<&mut dyn $crate::traits::Insert> {
            let can = $crate::family::AnyFilter::can(self);
            can.inserts.then_some(self as &mut dyn $crate::traits::Insert)
        }
    };
    (@face may_remove) => {
        fn as_remove(&mut self) -> Option<&mut dyn $crate::traits::Remove> {
            let can = $crate::family::AnyFilter::can(self);
            can.removes.then_some(self as &mut dyn $crate::traits::Remove)
        }
    };
    (@face may_intersect) => {
        fn as_intersect(&mut self) -> Option<&mut dyn $crate::traits::Intersect> {
            let can = $crate::family::AnyFilter::can(self);
            can.intersects.then_some(self as &mut dyn $crate::traits::Intersect)
        }
    };
    (@face counts) => {
        fn as_count(&self) -> Option<&dyn $crate::traits::Count> {
            Some(self)
        }
    };
    (@face labels) => {
        fn as_label(&self) -> Option<&dyn $crate::traits::Label> {
            Some(self)
        }

        fn as_label_mut(&mut self) -> Option<&mut dyn $crate::traits::Label> {
            Some(self)
        }
    };
    (@face merges) => {
        fn as_merge(&mut self) -> Option<&mut dyn $crate::traits::Merge> {
            let can = $crate::family::AnyFilter::can(self);
            can.merges.then_some(self as &mut dyn $crate::traits::Merge)
        }
    };
    (@face intersects) => {
        fn as_intersect(&mut self) -> Option<&mut dyn $crate::traits::Intersect> {
            Some(self)
        }
    };
    (@face subtracts) => {
        fn as_subtract(&mut self) -> Option<&mut dyn $crate::traits::Subtract> {
            Some(self)
        }
    };
    (@face folds) => {
        fn as_fold(&self) -> Option<&dyn $crate::traits::Fold> {
            Some(self)
        }
    };
    (@face associates) => {
        fn as_associate(&self) -> Option<&dyn $crate::traits::Associate> {
            Some(self)
        }

        fn as_associate_mut(&mut self) -> Option<&mut dyn $crate::traits::Associate> {
            Some(self)
        }
    };
    (@face $other:ident) => {};

    // Methods, and the traits of the same subject.
    (@methods $name:ident $family:ident, new, $(#[$more:meta])*) => {
        impl $name {
            /// An empty filter for `capacity` keys at the false-positive rate `fpr`.
            $(#[$more])*
            ///
            /// # Errors
            /// [`SpecError`](crate::SpecError) names the number that makes no sense, or the memory that was not granted.
            pub fn new(capacity: u64, fpr: f64) -> Result<Self, $crate::error::SpecError> {
                Self::from_spec(&$crate::spec::Spec::sized(capacity, fpr))
            }
        }
    };
    (@methods $name:ident $family:ident, specified, $(#[$more:meta])*) => {
        impl $name {
            /// An empty filter as `spec` requests it.
            $(#[$more])*
            ///
            /// # Errors
            /// [`SpecError`](crate::SpecError) names the number that makes no sense, or the memory that was not granted.
            pub fn from_spec(spec: &$crate::spec::Spec) -> Result<Self, $crate::error::SpecError> {
                $crate::shell::Shell::empty(spec).map(Self)
            }

            /// Forgets all keys.
            pub fn clear(&mut self) {
                self.0.clear();
            }
        }
    };
    (@methods $name:ident $family:ident, built, $(#[$more:meta])*) => {
        impl $name {
            /// A filter of these keys, with a false-positive rate of at most `fpr`. Repeated keys do no harm.
            $(#[$more])*
            ///
            /// # Errors
            /// [`BuildError`](crate::BuildError) names the rate that is not possible, or the memory that was not granted.
            #[cfg(feature = "std")]
            pub fn build<K: $crate::hash::Key + Sync>(
                keys: &[K],
                fpr: f64,
            ) -> Result<Self, $crate::error::BuildError> {
                Self::build_with(keys, &$crate::spec::Spec::new().with_fpr(fpr), 1)
            }

            /// A filter of these keys as `spec` requests it, built by `threads` threads. Their number does not change the
            /// filter. The capacity is the number of keys.
            ///
            /// # Errors
            /// [`BuildError`](crate::BuildError) names what is not possible, or the memory that was not granted.
            #[cfg(feature = "std")]
            pub fn build_with<K: $crate::hash::Key + Sync>(
                keys: &[K],
                spec: &$crate::spec::Spec,
                threads: usize,
            ) -> Result<Self, $crate::error::BuildError> {
                $crate::shell::Shell::build(keys, spec, threads, &$family).map(Self)
            }

            /// A filter of keys that are hashed already, built by `threads` threads. Their number does not change the filter.
            ///
            /// # Errors
            /// [`BuildError`](crate::BuildError) names what is not possible, the memory that was not granted, or what is wrong
            /// with the source.
            pub fn from_shards(
                spec: &$crate::spec::Spec,
                source: &dyn $crate::shards::DigestShards,
                threads: usize,
            ) -> Result<Self, $crate::error::BuildError> {
                $crate::shell::Shell::from_shards(spec, source, threads, &$family).map(Self)
            }

            /// How many different keys it was built of. Two keys with the same first 64 bits of hash count as one.
            #[must_use]
            pub fn keys(&self) -> u64 {
                $crate::shell::Kernel::keys(&self.0.kernel).expect("it was built of them")
            }
        }
    };
    (@methods $name:ident $family:ident, matches, $(#[$more:meta])*) => {
        impl $name {
            /// Whether `other` can be combined with this one: same parameters, same hashing.
            $(#[$more])*
            ///
            /// # Errors
            /// [`Mismatch`](crate::Mismatch) names the first difference.
            pub fn must_match(&self, other: &Self) -> Result<(), $crate::error::Mismatch> {
                self.0.must_match(&other.0)
            }
        }
    };
    (@methods $name:ident $family:ident, inserts, $(#[$more:meta])*) => {
        impl $name {
            /// Inserts a key.
            $(#[$more])*
            #[inline]
            pub fn insert(&mut self, key: impl $crate::hash::Key) -> $crate::traits::Insertion {
                let Ok(outcome) = self.0.insert(key);
                outcome
            }

            /// Inserts many keys, several at a time in flight.
            #[inline(never)]
            pub fn insert_all<K: $crate::hash::Key>(&mut self, keys: &[K]) {
                self.0.insert_all(keys).expect("there is always room");
            }
        }

        $crate::shell::filter!(@insert $name);

        impl<K: $crate::hash::Key> Extend<K> for $name {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                keys.into_iter().for_each(|key| {
                    self.insert(key);
                });
            }
        }
    };
    (@methods $name:ident $family:ident, inserts_until_full, $(#[$more:meta])*) => {
        impl $name {
            /// Inserts a key.
            $(#[$more])*
            ///
            /// # Errors
            /// [`Full`](crate::Full) if there is no room; then nothing has changed.
            #[inline]
            pub fn insert(
                &mut self,
                key: impl $crate::hash::Key,
            ) -> Result<$crate::traits::Insertion, $crate::error::Full> {
                self.0.insert(key)
            }

            /// Inserts many keys, several at a time in flight.
            ///
            /// # Errors
            /// [`Full`](crate::Full) says how many are in before the one for which there was no room.
            #[inline(never)]
            pub fn insert_all<K: $crate::hash::Key>(&mut self, keys: &[K]) -> Result<(), $crate::error::Full> {
                self.0.insert_all(keys)
            }
        }

        $crate::shell::filter!(@insert $name);
    };
    (@methods $name:ident $family:ident, may_insert, $(#[$more:meta])*) => {
        impl $name {
            /// Inserts a key.
            $(#[$more])*
            ///
            /// # Errors
            /// [`Error`](crate::Error) if this filter cannot insert keys, as [`can`](crate::AnyFilter::can) says.
            #[inline]
            pub fn insert(
                &mut self,
                key: impl $crate::hash::Key,
            ) -> Result<$crate::traits::Insertion, $crate::error::Error> {
                $crate::shell::must_insert(self)?;
                self.0.insert(key).map_err(|full| $crate::error::Full::from(full).into())
            }
        }

        $crate::shell::filter!(@insert $name);
    };
    (@insert $name:ident) => {
        impl $crate::traits::Insert for $name {
            fn insert_digest(
                &mut self,
                digest: $crate::hash::Digest,
            ) -> Result<$crate::traits::Insertion, $crate::error::Full> {
                self.0.insert_digest(digest)
            }

            fn insert_batch(
                &mut self,
                digests: &[$crate::hash::Digest],
                outcomes: &mut ::alloc::vec::Vec<$crate::traits::Insertion>,
            ) -> Result<(), $crate::error::Full> {
                self.0.insert_batch(digests, outcomes)
            }
        }
    };
    (@methods $name:ident $family:ident, removes, $(#[$more:meta])*) => {
        impl $name {
            /// Removes a key, once if it is in several times.
            $(#[$more])*
            #[inline]
            pub fn remove(&mut self, key: impl $crate::hash::Key) -> $crate::traits::Removal {
                self.0.remove(key)
            }

            /// Removes many keys, several at a time in flight; appends one outcome each. What is said of `remove` and absent
            /// keys holds here.
            #[inline(never)]
            pub fn remove_all<K: $crate::hash::Key>(
                &mut self,
                keys: &[K],
                outcomes: &mut ::alloc::vec::Vec<$crate::traits::Removal>,
            ) {
                self.0.remove_all(keys, outcomes);
            }
        }

        $crate::shell::filter!(@remove $name);
    };
    (@methods $name:ident $family:ident, may_remove, $(#[$more:meta])*) => {
        impl $name {
            /// Removes a key, once if it is in several times.
            $(#[$more])*
            ///
            /// # Errors
            /// [`Error`](crate::Error) if this filter cannot remove keys, as [`can`](crate::AnyFilter::can) says.
            #[inline]
            pub fn remove(
                &mut self,
                key: impl $crate::hash::Key,
            ) -> Result<$crate::traits::Removal, $crate::error::Error> {
                $crate::shell::must_remove(self)?;
                Ok(self.0.remove(key))
            }
        }

        $crate::shell::filter!(@remove $name);
    };
    (@remove $name:ident) => {
        impl $crate::traits::Remove for $name {
            fn remove_digest(&mut self, digest: $crate::hash::Digest) -> $crate::traits::Removal {
                self.0.remove_digest(digest)
            }

            fn remove_batch(
                &mut self,
                digests: &[$crate::hash::Digest],
                outcomes: &mut ::alloc::vec::Vec<$crate::traits::Removal>,
            ) {
                self.0.remove_batch(digests, outcomes);
            }
        }
    };
    (@methods $name:ident $family:ident, counts, $(#[$more:meta])*) => {
        impl $name {
            /// How often a key is probably in.
            $(#[$more])*
            #[must_use]
            #[inline]
            pub fn count(&self, key: impl $crate::hash::Key) -> u64 {
                self.0.count(key)
            }

            /// Counts many keys, several at a time in flight; appends one count each.
            #[inline(never)]
            pub fn count_each<K: $crate::hash::Key>(&self, keys: &[K], counts: &mut ::alloc::vec::Vec<u64>) {
                self.0.count_each(keys, counts);
            }
        }

        impl $crate::traits::Count for $name {
            fn count_digest(&self, digest: $crate::hash::Digest) -> u64 {
                self.0.count_digest(digest)
            }

            fn ceiling(&self) -> u64 {
                $crate::shell::Counts::ceiling(&self.0.kernel)
            }

            fn count_batch(&self, digests: &[$crate::hash::Digest], counts: &mut ::alloc::vec::Vec<u64>) {
                self.0.count_batch(digests, counts);
            }
        }
    };
    (@methods $name:ident $family:ident, labels, $(#[$more:meta])*) => {
        impl $name {
            /// The area that a key is probably in. `None` is certain.
            $(#[$more])*
            #[must_use]
            #[inline]
            pub fn label(&self, key: impl $crate::hash::Key) -> Option<u16> {
                self.0.label(key)
            }

            /// Looks up many keys, several at a time in flight; appends one answer each, as `label` gives it.
            #[inline(never)]
            pub fn label_each<K: $crate::hash::Key>(
                &self,
                keys: &[K],
                labels: &mut ::alloc::vec::Vec<Option<u16>>,
            ) {
                self.0.label_each(keys, labels);
            }

            /// Inserts a key into an area. [`New`](crate::Insertion::New): it was certainly in no area before.
            ///
            /// # Errors
            /// [`Full`](crate::Full) if there is no such area; then nothing has changed.
            #[inline]
            pub fn insert(
                &mut self,
                key: impl $crate::hash::Key,
                area: u16,
            ) -> Result<$crate::traits::Insertion, $crate::error::Full> {
                self.0.insert_into(area, key)
            }

            /// Inserts many keys into an area, several at a time in flight.
            ///
            /// # Errors
            /// [`Full`](crate::Full) if there is no such area; then nothing has changed.
            #[inline(never)]
            pub fn insert_all<K: $crate::hash::Key>(
                &mut self,
                keys: &[K],
                area: u16,
            ) -> Result<(), $crate::error::Full> {
                self.0.insert_all_into(area, keys)
            }

            /// How many areas there are; they have the numbers from 1 on.
            #[must_use]
            pub fn areas(&self) -> u16 {
                $crate::shell::Labels::areas(&self.0.kernel)
            }

            /// The name of an area, if it has one.
            #[must_use]
            pub fn name(&self, area: u16) -> Option<&str> {
                $crate::shell::Labels::area_name(&self.0.kernel, area)
            }

            /// The area of this name.
            #[must_use]
            pub fn area(&self, name: &str) -> Option<u16> {
                (1..=self.areas()).find(|&area| self.name(area) == Some(name))
            }
        }

        impl $crate::traits::Label for $name {
            fn areas(&self) -> u16 {
                $crate::shell::Labels::areas(&self.0.kernel)
            }

            fn area_name(&self, area: ::core::num::NonZeroU16) -> Option<&str> {
                $crate::shell::Labels::area_name(&self.0.kernel, area.get())
            }

            fn name_areas(&mut self, names: &[&str]) -> Result<(), $crate::error::SpecError> {
                $crate::shell::Labels::name_areas(&mut self.0.kernel, names)
            }

            fn insert_labelled(
                &mut self,
                digest: $crate::hash::Digest,
                area: ::core::num::NonZeroU16,
            ) -> Result<$crate::traits::Insertion, $crate::error::Full> {
                self.0.insert_digest_into(area.get(), digest)
            }

            fn insert_labelled_batch(
                &mut self,
                digests: &[$crate::hash::Digest],
                area: ::core::num::NonZeroU16,
                outcomes: &mut ::alloc::vec::Vec<$crate::traits::Insertion>,
            ) -> Result<(), $crate::error::Full> {
                self.0.insert_batch_into(area.get(), digests, outcomes)
            }

            fn label_digest(&self, digest: $crate::hash::Digest) -> $crate::traits::Labels {
                self.0.label_digest(digest)
            }

            fn label_batch(
                &self,
                digests: &[$crate::hash::Digest],
                labels: &mut ::alloc::vec::Vec<$crate::traits::Labels>,
            ) {
                self.0.label_batch(digests, labels);
            }
        }
    };
    (@methods $name:ident $family:ident, merges, $(#[$more:meta])*) => {
        impl $name {
            /// Union: afterwards this filter holds every key of both.
            $(#[$more])*
            ///
            /// # Errors
            /// [`Mismatch`](crate::Mismatch) names the first difference; then nothing has changed.
            pub fn merge(&mut self, other: &Self) -> Result<(), $crate::error::Mismatch> {
                self.0.merge(&other.0)
            }
        }

        $crate::shell::filter!(@merge $name);
    };
    (@merge $name:ident) => {
        impl $crate::traits::Merge for $name {
            fn merge_from(
                &mut self,
                other: &dyn $crate::family::AnyFilter,
            ) -> Result<(), $crate::error::Mismatch> {
                self.0.merge(&$crate::family::same_type(self, other)?.0)
            }
        }
    };
    (@methods $name:ident $family:ident, intersects, $(#[$more:meta])*) => {
        impl $name {
            /// Intersection: afterwards this filter still holds every key that is in both.
            ///
            /// Its rate is that for keys that are in neither. A key of one filter alone is admitted as often as the other filter
            /// admits an absent one.
            $(#[$more])*
            ///
            /// # Errors
            /// [`Mismatch`](crate::Mismatch) names the first difference; then nothing has changed.
            pub fn intersect(&mut self, other: &Self) -> Result<(), $crate::error::Mismatch> {
                self.0.intersect(&other.0)
            }
        }

        $crate::shell::filter!(@intersect $name);
    };
    (@intersect $name:ident) => {
        impl $crate::traits::Intersect for $name {
            fn intersect_from(
                &mut self,
                other: &dyn $crate::family::AnyFilter,
            ) -> Result<(), $crate::error::Mismatch> {
                self.0.intersect(&$crate::family::same_type(self, other)?.0)
            }
        }
    };
    (@methods $name:ident $family:ident, subtracts, $(#[$more:meta])*) => {
        impl $name {
            /// Difference: afterwards this set holds its keys that are not in the other.
            $(#[$more])*
            ///
            /// # Errors
            /// [`Mismatch`](crate::Mismatch) names the first difference; then nothing has changed.
            pub fn subtract(&mut self, other: &Self) -> Result<(), $crate::error::Mismatch> {
                self.0.subtract(&other.0)
            }
        }

        impl $crate::traits::Subtract for $name {
            fn subtract_from(
                &mut self,
                other: &dyn $crate::family::AnyFilter,
            ) -> Result<(), $crate::error::Mismatch> {
                self.subtract($crate::family::same_type(self, other)?)
            }
        }
    };
    (@methods $name:ident $family:ident, $other:ident, $(#[$more:meta])*) => {};
}

/// Declares a type that is met at run time only, as a filter of another program: a struct around the [`Shell`] of a kernel, with
/// the run-time face and what the list says, in the words of [`filter!`].
#[cfg(feature = "interop")]
macro_rules! run_time_filter {
    ($(#[$doc:meta])* $name:ident($kernel:ty) = $family:ident { $($can:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub(super) struct $name(pub(super) $crate::shell::Shell<$kernel>);

        impl $name {
            pub(super) fn decode(
                frame: &mut $crate::wire::Frame,
                hashing: $crate::hash::Hashing,
            ) -> Result<Self, $crate::error::DecodeError> {
                $crate::shell::Shell::decode(frame, hashing, &$family).map(Self)
            }
        }

        $crate::shell::filter!(@run_time $name $family { $($can)* });
        $($crate::shell::run_time_filter!(@traits $name $can);)*
    };
    (@traits $name:ident inserts) => { $crate::shell::filter!(@insert $name); };
    (@traits $name:ident merges) => { $crate::shell::filter!(@merge $name); };
    (@traits $name:ident intersects) => { $crate::shell::filter!(@intersect $name); };
    (@traits $name:ident folds) => {};
}

pub(crate) use filter;
#[cfg(feature = "interop")]
pub(crate) use run_time_filter;
