//! Key bytes to [`Digest`]: the only place where keys are hashed, and each key only once.
//!
//! A [`Key`] hands out its bytes, a [`Hashing`] turns them into 128 bits, and everything after that
//! (positions, fingerprints, blocks, shards) is arithmetic on those bits. The hashing scheme and its
//! seed belong to a filter's identity: they stand in its file, and two filters that differ in them
//! never merge.

use core::fmt;

use siphasher::sip128::SipHasher13;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::error::{Mismatch, Parameter, Value};
use crate::narrow::low_u64;
use crate::raw::xxh3;

#[cfg(feature = "interop")]
pub(crate) mod foreign;

#[cfg(feature = "interop")]
pub use foreign::ForeignHash;

/// A key after hashing: 128 bits, made once, at the edge. Filters never see key bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    /// The first half: where a key goes (the high bits choose block, bucket or first position).
    pub a: u64,
    /// The second half: what is independent of the place (stride, fingerprint).
    pub b: u64,
}

impl Digest {
    /// A digest from the 128 bits of a hash, low half first.
    #[must_use]
    pub const fn from_u128(bits: u128) -> Self {
        Self { a: low_u64(bits), b: (bits >> 64) as u64 }
    }
}

/// What can be asked for: something that is a string of bytes.
///
/// Integers of every width are widened to 64 bits (signed ones keep their sign) and become 8
/// little-endian bytes, without a tag: `7u8`, `7i64` and `7usize` are one key, and so is the byte
/// string `[7, 0, 0, 0, 0, 0, 0, 0]`. A `str` is its UTF-8 bytes. A type of your own is a key as soon
/// as it says which bytes it is:
///
/// ```
/// use mayhap::{Bloom, Key};
///
/// struct Visit { user: u32, day: u32 }
///
/// impl Key for Visit {
///     fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
///         let mut bytes = [0; 8];
///         bytes[..4].copy_from_slice(&self.user.to_le_bytes());
///         bytes[4..].copy_from_slice(&self.day.to_le_bytes());
///         then(&bytes)
///     }
/// }
///
/// let mut seen = Bloom::new(1000, 0.01)?;
/// seen.insert(Visit { user: 7, day: 20_000 });
/// assert!(seen.contains(Visit { user: 7, day: 20_000 }));
/// # Ok::<(), mayhap::Error>(())
/// ```
pub trait Key {
    /// Calls `then` with the key's bytes, once. Equal keys must give equal bytes, in every run.
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R;

    // Integers have faster ways to the digests of their bytes. Other digests would make unreadable files, so other
    // crates cannot override these methods: they cannot name `Here`.

    #[doc(hidden)]
    #[inline]
    fn digest(&self, hashing: &Hashing, _: Here) -> Digest {
        self.with_bytes(|bytes| hashing.digest(bytes))
    }

    /// The digests of as many keys as there is room for.
    #[doc(hidden)]
    #[inline]
    fn digests(keys: &[Self], hashing: &Hashing, digests: &mut [Digest], _: Here)
    where
        Self: Sized,
    {
        digests.iter_mut().zip(keys).for_each(|(digest, key)| *digest = key.digest(hashing, Here));
    }

    /// The first halves of those digests, for filters that need no more.
    #[doc(hidden)]
    #[inline]
    fn halves(keys: &[Self], hashing: &Hashing, halves: &mut [u64], _: Here)
    where
        Self: Sized,
    {
        halves.iter_mut().zip(keys).for_each(|(half, key)| *half = key.digest(hashing, Here).a);
    }
}

/// A parameter of methods that only this crate can call or override, since no other can name its type.
///
/// ```compile_fail,E0050
/// struct Name(String);
///
/// impl mayhap::Key for Name {
///     fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
///         then(self.0.as_bytes())
///     }
///     fn digest(&self, hashing: &mayhap::Hashing) -> mayhap::Digest {
///         hashing.digest(b"the same for all")
///     }
/// }
/// ```
mod here {
    #[derive(Clone, Copy)]
    #[expect(unnameable_types, reason = "a public trait takes it")]
    pub struct Here;
}

pub(crate) use here::Here;

impl Key for [u8] {
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self)
    }
}

impl<const N: usize> Key for [u8; N] {
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self)
    }
}

impl Key for str {
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self.as_bytes())
    }
}

impl Key for alloc::vec::Vec<u8> {
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self)
    }
}

impl Key for alloc::string::String {
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(self.as_bytes())
    }
}

impl<K: Key + ?Sized> Key for &K {
    #[inline]
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(then)
    }

    #[inline]
    fn digest(&self, hashing: &Hashing, here: Here) -> Digest {
        (**self).digest(hashing, here)
    }
}

/// Widening needs no thought about the type's range, so one line per type is all there is to say.
macro_rules! integer_keys {
    ($($integer:ty as $wide:ty),*) => {$(
        impl Key for $integer {
            #[inline]
            fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
                then(&(*self as $wide).to_le_bytes())
            }

            #[inline]
            fn digest(&self, hashing: &Hashing, _: Here) -> Digest {
                hashing.digest_word((*self as $wide) as u64)
            }
        }
    )*};
}
integer_keys!(u8 as u64, u16 as u64, u32 as u64, usize as u64);
integer_keys!(i8 as i64, i16 as i64, i32 as i64, i64 as i64, isize as i64);

/// The kind of key whose batches are worth vector instructions.
impl Key for u64 {
    #[inline]
    fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
        then(&self.to_le_bytes())
    }

    #[inline]
    fn digest(&self, hashing: &Hashing, _: Here) -> Digest {
        hashing.digest_word(*self)
    }

    #[inline]
    fn digests(keys: &[Self], hashing: &Hashing, digests: &mut [Digest], here: Here) {
        match hashing {
            Hashing::Xxh3 { seed } => xxh3::digests(keys, *seed, digests),
            _ => digests.iter_mut().zip(keys).for_each(|(digest, key)| *digest = key.digest(hashing, here)),
        }
    }

    #[inline]
    fn halves(keys: &[Self], hashing: &Hashing, halves: &mut [u64], here: Here) {
        match hashing {
            Hashing::Xxh3 { seed } => xxh3::halves(keys, *seed, halves),
            _ => halves.iter_mut().zip(keys).for_each(|(half, key)| *half = key.digest(hashing, here).a),
        }
    }
}

/// The 16 secret bytes of a keyed hash. Its `Debug` shows the [`id`](Secret::id) only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; 16]);

impl Secret {
    /// Takes 16 bytes that should come from a good random source: this library has none of its own.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Tells secrets apart without showing them: a hash of a fixed text under the secret.
    ///
    /// The id, not the secret, is written into files.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.digest(b"mayhap: id of a secret").a
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        let hash = SipHasher13::new_with_key(&self.0).hash(bytes);
        Digest { a: hash.h1, b: hash.h2 }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(id {:016x})", self.id())
    }
}

/// How key bytes become a [`Digest`]. Part of every filter and of every file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hashing {
    /// xxh3-128 with a seed: fast, for keys that no attacker chooses.
    Xxh3 {
        /// Filters with different seeds make independent errors, and do not merge.
        seed: u64,
    },
    /// SipHash-1-3-128 under a secret: for keys that an opponent may choose.
    Keyed(Secret),
    /// No hash: the key is an integer and its own position. For exact sets of integers.
    Integer,
    /// The hash function of another program, for its filters alone: see [`interop`](crate::interop).
    #[cfg(feature = "interop")]
    Foreign(ForeignHash),
}

/// xxh3-128 of 8 bytes: the branch of the algorithm for 4 to 8 bytes, for exactly 8. [`xxh3`] has the same for
/// several keys at once, and the tests compare both with the whole algorithm.
pub(crate) mod xxh3_of_word {
    use super::Digest;
    use crate::narrow::{low_u32, low_u64};

    /// xxh3's first prime, and what the length 8 adds to it.
    pub(crate) const PRIME: u64 = 0x9E37_79B1_85EB_CA87 + (8 << 2);
    pub(crate) const PRIME_A: u64 = 0x9FB2_1C65_1E98_DF25;
    pub(crate) const PRIME_B: u64 = 0x1656_6791_9E37_79F9;

    /// What a key is XORed with.
    #[inline(always)]
    pub(crate) const fn flip(seed: u64) -> u64 {
        // Bytes 16 to 32 of xxh3's default secret.
        const SECRET: u64 = 0xdb97_9083_e96d_d4de ^ 0x1f67_b3b7_a4a4_4072;
        SECRET.wrapping_add(seed ^ (low_u32(seed).swap_bytes() as u64) << 32)
    }

    /// A caller that drops a half does not pay for it.
    #[inline(always)]
    pub(crate) fn digest(word: u64, flip: u64) -> Digest {
        let product = u128::from(word ^ flip) * u128::from(PRIME);
        let (low, high) = (low_u64(product), (product >> 64) as u64);
        let high = high.wrapping_add(low << 1);
        let low = low ^ high >> 3;
        let low = (low ^ low >> 35).wrapping_mul(PRIME_A);
        let high = (high ^ high >> 37).wrapping_mul(PRIME_B);
        Digest { a: low ^ low >> 28, b: high ^ high >> 32 }
    }
}

/// Ids on disk. Never reused.
mod id {
    pub(super) const XXH3: u8 = 1;
    pub(super) const KEYED: u8 = 2;
    pub(super) const INTEGER: u8 = 3;
    /// The first of the ids of other programs' hash functions, all of which need the feature `interop`.
    pub(super) const FOREIGN: u8 = 32;
}

/// The version of each scheme that this library computes. A changed result is a new version.
const VERSION: u8 = 1;

impl Default for Hashing {
    fn default() -> Self {
        Self::Xxh3 { seed: 0 }
    }
}

impl Hashing {
    /// Hashes a key's bytes.
    ///
    /// Under [`Hashing::Integer`] the key must be 8 little-endian bytes; any other length gives a
    /// digest that no set of integers contains or accepts (its second half is not 0).
    #[must_use]
    #[inline]
    pub fn digest(&self, key: &[u8]) -> Digest {
        match self {
            Self::Xxh3 { seed } => Digest::from_u128(xxh3_128_with_seed(key, *seed)),
            Self::Keyed(secret) => secret.digest(key),
            Self::Integer => match key.try_into() {
                Ok(bytes) => Digest { a: u64::from_le_bytes(bytes), b: 0 },
                Err(_) => Digest { a: 0, b: u64::MAX },
            },
            #[cfg(feature = "interop")]
            Self::Foreign(hash) => hash.digest(key),
        }
    }

    /// Hashes anything that is a [`Key`].
    #[must_use]
    #[inline]
    pub fn digest_of(&self, key: impl Key) -> Digest {
        key.digest(self, Here)
    }

    /// Hashes as many keys as there is room for digests: integers several at a time.
    #[inline]
    pub fn digest_each<K: Key>(&self, keys: &[K], digests: &mut [Digest]) {
        K::digests(keys, self, digests, Here);
    }

    /// Hashes an integer: the same as its 8 little-endian bytes.
    #[inline]
    fn digest_word(&self, word: u64) -> Digest {
        match self {
            Self::Xxh3 { seed } => xxh3_of_word::digest(word, xxh3_of_word::flip(*seed)),
            Self::Keyed(secret) => secret.digest(&word.to_le_bytes()),
            Self::Integer => Digest { a: word, b: 0 },
            #[cfg(feature = "interop")]
            Self::Foreign(hash) => hash.digest(&word.to_le_bytes()),
        }
    }

    /// The first half of a key's digest, for filters that need no more.
    #[must_use]
    #[inline]
    pub fn half_of(&self, key: impl Key) -> u64 {
        self.digest_of(key).a
    }

    /// The scheme's name, as reports and `info` show it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Xxh3 { .. } => "xxh3-128",
            Self::Keyed(_) => "siphash-1-3-128",
            Self::Integer => "integer",
            #[cfg(feature = "interop")]
            Self::Foreign(hash) => hash.name(),
        }
    }

    /// The seed, where there is one that may be shown.
    #[must_use]
    pub const fn seed(&self) -> Option<u64> {
        match self {
            Self::Xxh3 { seed } => Some(*seed),
            Self::Keyed(_) | Self::Integer => None,
            #[cfg(feature = "interop")]
            Self::Foreign(hash) => hash.seed(),
        }
    }

    /// Whether keys are hashed as filters of our own need it: to 128 bits that look random.
    #[must_use]
    pub const fn is_our_own(&self) -> bool {
        matches!(self, Self::Xxh3 { .. } | Self::Keyed(_))
    }

    /// Filters that hash differently share no bits: they must not be combined.
    ///
    /// # Errors
    /// [`Mismatch`] names scheme, seed or secret.
    pub fn must_equal(&self, other: &Self) -> Result<(), Mismatch> {
        let (what, ours, theirs) = match (self, other) {
            _ if self == other => return Ok(()),
            (Self::Xxh3 { seed: ours }, Self::Xxh3 { seed: theirs }) => {
                (Parameter::Seed, Value::Id(*ours), Value::Id(*theirs))
            }
            (Self::Keyed(ours), Self::Keyed(theirs)) => {
                (Parameter::Secret, Value::Id(ours.id()), Value::Id(theirs.id()))
            }
            #[cfg(feature = "interop")]
            (Self::Foreign(ours), Self::Foreign(theirs)) if ours.name() == theirs.name() => {
                let seed = |hash: &ForeignHash| Value::Id(hash.seed().unwrap_or(0));
                (Parameter::Seed, seed(ours), seed(theirs))
            }
            _ => (Parameter::Hashing, self.name().into(), other.name().into()),
        };
        Err(Mismatch::Differ { what, ours, theirs })
    }

    /// What stands in a file's header.
    #[doc(hidden)]
    #[must_use]
    pub fn stored(&self) -> StoredHashing {
        let (scheme, seed, key_id) = match self {
            Self::Xxh3 { seed } => (id::XXH3, u128::from(*seed), 0),
            Self::Keyed(secret) => (id::KEYED, 0, secret.id()),
            Self::Integer => (id::INTEGER, 0, 0),
            #[cfg(feature = "interop")]
            Self::Foreign(hash) => (hash.id(), hash.seed().unwrap_or(0).into(), 0),
        };
        StoredHashing { scheme, version: VERSION, seed, key_id }
    }
}

/// A [`Hashing`] as the file header has it: ids and seed, but never a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredHashing {
    /// Which scheme.
    pub scheme: u8,
    /// Which version of it.
    pub version: u8,
    /// The seed, zero for a keyed scheme.
    pub seed: u128,
    /// The [`Secret::id`] of a keyed scheme, else zero.
    pub key_id: u64,
}

/// Why a stored hashing cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashingProblem {
    /// This library does not know the scheme or its version.
    Unknown,
    /// The scheme is another program's, and this library was built without the feature `interop`.
    Feature,
    /// The seed or key id has a value that the scheme never writes.
    Seed,
    /// The scheme is keyed and no secret was given.
    SecretNeeded,
    /// The scheme is keyed and the secret given is another one.
    SecretWrong {
        /// The id of the secret that was given.
        given: u64,
    },
}

impl StoredHashing {
    /// Whether a secret is needed to hash keys.
    #[must_use]
    pub const fn is_keyed(&self) -> bool {
        self.scheme == id::KEYED
    }

    /// Back to a working hashing. A secret that an unkeyed scheme does not need is ignored.
    ///
    /// # Errors
    /// [`HashingProblem`] says what is unknown, out of place or missing.
    pub fn unlock(&self, secret: Option<&Secret>) -> Result<Hashing, HashingProblem> {
        if self.version != VERSION {
            return Err(HashingProblem::Unknown);
        }
        match self.scheme {
            id::XXH3 if self.key_id == 0 => {
                let seed = u64::try_from(self.seed).map_err(|_| HashingProblem::Seed)?;
                Ok(Hashing::Xxh3 { seed })
            }
            id::INTEGER if self.seed == 0 && self.key_id == 0 => Ok(Hashing::Integer),
            id::KEYED if self.seed == 0 => match secret {
                None => Err(HashingProblem::SecretNeeded),
                Some(secret) if secret.id() == self.key_id => Ok(Hashing::Keyed(*secret)),
                Some(secret) => Err(HashingProblem::SecretWrong { given: secret.id() }),
            },
            id::XXH3 | id::INTEGER | id::KEYED => Err(HashingProblem::Seed),
            #[cfg(not(feature = "interop"))]
            id::FOREIGN.. => Err(HashingProblem::Feature),
            #[cfg(feature = "interop")]
            scheme @ id::FOREIGN.. => {
                let hash = ForeignHash::from_id(scheme).ok_or(HashingProblem::Unknown)?;
                let seed = u32::try_from(self.seed).ok().filter(|_| self.key_id == 0);
                let hash = seed.and_then(|seed| hash.with_seed(seed)).ok_or(HashingProblem::Seed)?;
                Ok(Hashing::Foreign(hash))
            }
            _ => Err(HashingProblem::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_all_widths_are_one_key() {
        let hashing = Hashing::default();
        let seven = hashing.digest(&7u64.to_le_bytes());
        for digest in [hashing.digest_of(7u8), hashing.digest_of(7i32), hashing.digest_of(7usize)] {
            assert_eq!(digest, seven);
        }
        assert_eq!(hashing.digest_of(-1i8), hashing.digest_of(-1i64));
        assert_eq!(hashing.digest_of(-1i8), hashing.digest_of(u64::MAX));
        assert_ne!(hashing.digest_of(-1i8), hashing.digest_of(255u8));
    }

    #[test]
    fn the_inlined_hash_of_an_integer_is_the_hash_of_its_bytes() {
        for i in 0..100_000u64 {
            let (word, seed) = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15), (i % 3) * i.rotate_left(40));
            for hashing in [Hashing::Xxh3 { seed }, Hashing::Keyed(Secret::new([7; 16])), Hashing::Integer] {
                assert_eq!(
                    hashing.digest_of(word),
                    hashing.digest(&word.to_le_bytes()),
                    "{hashing:?} of {word}"
                );
            }
        }
    }

    /// Of every length, so that what is left of a vector is right, too; and no further than there is room.
    #[test]
    fn many_digests_are_those_of_each_key() {
        for len in 0..70u64 {
            let keys: alloc::vec::Vec<u64> =
                (0..len).map(|i| (i + len * 1000).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
            for hashing in [
                Hashing::default(),
                Hashing::Xxh3 { seed: len.rotate_left(37) ^ 0x1234_5678_9ABC_DEF0 },
                Hashing::Keyed(Secret::new([7; 16])),
                Hashing::Integer,
            ] {
                let each: alloc::vec::Vec<Digest> = keys.iter().map(|&key| hashing.digest_of(key)).collect();
                let mut digests = alloc::vec![Digest::default(); keys.len()];
                Key::digests(&keys, &hashing, &mut digests, Here);
                assert_eq!(digests, each, "{hashing:?}");
                let mut halves = alloc::vec![7; keys.len() + 3];
                Key::halves(&keys, &hashing, &mut halves, Here);
                let expected = each.iter().map(|digest| digest.a).chain([7; 3]);
                assert!(halves.iter().copied().eq(expected), "{hashing:?}");
            }
        }
    }

    #[test]
    fn text_and_bytes_are_the_same_key() {
        let hashing = Hashing::default();
        let text = alloc::string::String::from("née");
        assert_eq!(hashing.digest_of(&text), hashing.digest_of(text.as_bytes()));
        assert_eq!(hashing.digest_of("née"), hashing.digest(&[b'n', 0xc3, 0xa9, b'e']));
    }

    // Values of other implementations: Python's xxhash package for xxh3-128, and a SipHash-1-3-128
    // written from the paper (checked with the published SipHash-2-4-128 vectors). Pinned, so that an
    // update of a dependency cannot change what our files mean.
    #[test]
    fn digests_are_pinned_for_ever() {
        let xxh3 = Hashing::Xxh3 { seed: 0 };
        let empty = 0x99aa06d3014798d86001c324468d497fu128;
        assert_eq!(xxh3.digest(b""), Digest::from_u128(empty));
        let pinned = [
            (xxh3, "mayhap", 0xea9c_1f96_6e4f_b0d2, 0x6cae_8341_24e1_16cf),
            (Hashing::Xxh3 { seed: 42 }, "mayhap", 0x4957_ee37_b3c6_a3de, 0x30f0_7b9e_b8d6_ea4f),
            (
                Hashing::Keyed(Secret::new(*b"0123456789abcdef")),
                "mayhap",
                0xf8b0_8578_e494_2224,
                0x7909_dd68_8aad_5c49,
            ),
        ];
        for (hashing, key, a, b) in pinned {
            assert_eq!(hashing.digest_of(key), Digest { a, b }, "{hashing:?}");
        }
    }

    #[test]
    fn stored_hashing_comes_back() {
        let secret = Secret::new([9; 16]);
        let spark = Hashing::Foreign(ForeignHash::Spark { seed: -7 });
        let murmur = Hashing::Foreign(ForeignHash::Murmur3);
        for hashing in
            [Hashing::Xxh3 { seed: u64::MAX }, Hashing::Keyed(secret), Hashing::Integer, spark, murmur]
        {
            assert_eq!(hashing.stored().unlock(Some(&secret)), Ok(hashing));
        }
    }

    #[test]
    fn a_secret_is_needed_must_fit_and_is_never_shown() {
        let secret = Secret::new([9; 16]);
        let stored = Hashing::Keyed(secret).stored();
        assert_eq!(stored.seed, 0);
        assert_eq!(stored.unlock(None), Err(HashingProblem::SecretNeeded));
        let other = Secret::new([8; 16]);
        assert_eq!(stored.unlock(Some(&other)), Err(HashingProblem::SecretWrong { given: other.id() }));
        assert!(!alloc::format!("{:?}", Hashing::Keyed(secret)).contains("9, 9"));
    }

    #[test]
    fn unknown_schemes_and_stray_seeds_are_refused() {
        let stored = |scheme, version, seed, key_id| StoredHashing { scheme, version, seed, key_id };
        assert_eq!(stored(0, 1, 0, 0).unlock(None), Err(HashingProblem::Unknown));
        assert_eq!(stored(99, 1, 0, 0).unlock(None), Err(HashingProblem::Unknown));
        assert_eq!(stored(1, 2, 0, 0).unlock(None), Err(HashingProblem::Unknown));
        assert_eq!(stored(1, 1, 1 << 64, 0).unlock(None), Err(HashingProblem::Seed));
        assert_eq!(stored(3, 1, 1, 0).unlock(None), Err(HashingProblem::Seed));
        assert_eq!(stored(32, 1, 1, 0).unlock(None), Err(HashingProblem::Seed));
        assert_eq!(stored(35, 1, 1 << 32, 0).unlock(None), Err(HashingProblem::Seed));
        assert_eq!(stored(35, 1, 0, 1).unlock(None), Err(HashingProblem::Seed));
    }
}
