//! Hash functions side by side: how fast they are, and the false-positive rate that each really gives.
//!
//! A Bloom filter needs more bits of hash than most functions of old have. What is measured is the function, not how its
//! bits are spread: 32 or 64 bits are mixed to a digest as well as can be, and then all are treated alike. What is left are
//! the keys that have the same hash, which nothing can tell apart.

use std::hint::black_box;
use std::time::Instant;

use core::hash::Hasher;

use mayhap::{Bloom, Digest, Filter, ForeignHash, Hashing, Insert, Secret, SpecError, math};
use md5::Digest as _;
use siphasher::sip::SipHasher24;
use xxhash_rust::xxh3::xxh3_64;

use crate::{ABSENT, KeyKind, Proportion, SplitMix64, median};
use Written::{HighestFirst, LowestFirst};

/// A hash function.
#[derive(Clone, Copy, Debug)]
pub struct HashFunction {
    /// As people call it.
    pub name: &'static str,
    /// How many bits it gives. A digest has at most 128 of them.
    pub bits: u32,
    hash: Hash,
    written: Written,
}

#[derive(Clone, Copy, Debug)]
enum Hash {
    /// 32 or 64 bits.
    Narrow(fn(&[u8]) -> u64),
    /// 128 bits, the first byte lowest.
    Wide(fn(&[u8]) -> u128),
    /// More than a digest has.
    Bytes(fn(&[u8]) -> Vec<u8>),
}

/// In which order programs print the bytes of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// The lowest byte first, as Guava prints Murmur3. A hash that is defined as bytes has its first byte first.
    LowestFirst,
    /// As a number.
    HighestFirst,
}

impl HashFunction {
    const fn narrow(name: &'static str, bits: u32, hash: fn(&[u8]) -> u64, written: Written) -> Self {
        Self { name, bits, hash: Hash::Narrow(hash), written }
    }

    const fn wide(name: &'static str, hash: fn(&[u8]) -> u128, written: Written) -> Self {
        Self { name, bits: 128, hash: Hash::Wide(hash), written }
    }

    const fn bytes(name: &'static str, bits: u32, hash: fn(&[u8]) -> Vec<u8>) -> Self {
        Self { name, bits, hash: Hash::Bytes(hash), written: LowestFirst }
    }

    /// The digest of a key: the hash itself if it has 128 bits, else what becomes of it.
    #[must_use]
    pub fn digest(&self, key: &[u8]) -> Digest {
        match self.hash {
            Hash::Narrow(hash) => mixed(hash(key)),
            Hash::Wide(hash) => Digest::from_u128(hash(key)),
            Hash::Bytes(hash) => {
                let bytes = hash(key);
                let (first, _) = bytes.split_first_chunk().expect("more than 128 bits");
                Digest::from_u128(u128::from_le_bytes(*first))
            }
        }
    }

    /// The hash of a key in hexadecimal digits, in the order in which the programs that use the function print it.
    ///
    /// ```
    /// use mayhap_eval::hash_functions;
    ///
    /// let murmur = hash_functions().find(|function| function.name == "murmur3-x86-32").unwrap();
    /// assert_eq!(murmur.hex(b"334324324234234sfsfsdfwwrtregreg"), "539aa3e7");
    /// ```
    #[must_use]
    pub fn hex(&self, key: &[u8]) -> String {
        let mut bytes = match self.hash {
            Hash::Narrow(hash) => hash(key).to_le_bytes()[..self.bits as usize / 8].to_vec(),
            Hash::Wide(hash) => hash(key).to_le_bytes().to_vec(),
            Hash::Bytes(hash) => hash(key),
        };
        if self.written == HighestFirst {
            bytes.reverse();
        }
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Those that [`run_hash`] and [`time_hash`] compare.
pub static HASH_FUNCTIONS: &[HashFunction] = &[
    HashFunction::wide("xxh3-128", |key| to_u128(Hashing::Xxh3 { seed: 0 }.digest(key)), HighestFirst),
    HashFunction::wide("murmur3-x64-128", |key| to_u128(foreign(ForeignHash::Murmur3, key)), LowestFirst),
    HashFunction::wide(
        "siphash-1-3-128",
        |key| to_u128(Hashing::Keyed(Secret::new(SIPHASH_KEY)).digest(key)),
        LowestFirst,
    ),
    HashFunction::narrow("siphash-2-4-64", 64, siphash_2_4, LowestFirst),
    HashFunction::wide("md5", |key| u128::from_le_bytes(md5::Md5::digest(key).into()), LowestFirst),
    HashFunction::narrow("murmur3-x86-32", 32, |key| murmur3_x86_32(key, 0).into(), LowestFirst),
    HashFunction::narrow("bkdr", 32, |key| bkdr(key).into(), HighestFirst),
    HashFunction::narrow("js", 32, |key| js(key).into(), HighestFirst),
    HashFunction::narrow("rs", 32, |key| rs(key).into(), HighestFirst),
];

/// Those that only [`hash_functions`] has: of other programs' filters, and longer than a filter needs.
static MORE_HASH_FUNCTIONS: &[HashFunction] = &[
    HashFunction::narrow("xxh3-64", 64, xxh3_64, HighestFirst),
    HashFunction::narrow("xxh64", 64, |key| foreign(ForeignHash::Xxh64, key).a, HighestFirst),
    HashFunction::narrow("murmur64a", 64, |key| foreign(ForeignHash::Murmur64a, key).a, HighestFirst),
    // Two hashes make the digest; the second one is of the first one's seed.
    HashFunction::narrow("murmur2-32", 32, |key| foreign(ForeignHash::Murmur2Twice, key).a, HighestFirst),
    HashFunction::narrow(
        "spark-murmur3-x86-32",
        32,
        |key| foreign(ForeignHash::Spark { seed: 0 }, key).a & u64::from(u32::MAX),
        HighestFirst,
    ),
    HashFunction::narrow("fnv1-64", 64, |key| foreign(ForeignHash::Fnv1, key).a, HighestFirst),
    HashFunction::narrow("fnv1a-64", 64, fnv1a_64, HighestFirst),
    HashFunction::bytes("sha1", 160, |key| sha1::Sha1::digest(key).to_vec()),
    HashFunction::bytes("sha256", 256, |key| sha2::Sha256::digest(key).to_vec()),
];

/// All of them.
pub fn hash_functions() -> impl Iterator<Item = &'static HashFunction> + Clone {
    HASH_FUNCTIONS.iter().chain(MORE_HASH_FUNCTIONS)
}

/// The key of SipHash's published values.
const SIPHASH_KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

fn foreign(hash: ForeignHash, key: &[u8]) -> Digest {
    Hashing::Foreign(hash).digest(key)
}

fn to_u128(digest: Digest) -> u128 {
    u128::from(digest.b) << 64 | u128::from(digest.a)
}

/// A digest of fewer bits than it has.
fn mixed(hash: u64) -> Digest {
    Digest { a: SplitMix64::at(hash, 0), b: SplitMix64::at(hash, 1) }
}

fn siphash_2_4(key: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(&SIPHASH_KEY);
    hasher.write(key);
    hasher.finish()
}

/// Murmur3 x86 32 (Appleby 2011).
///
/// ```
/// // Written as bytes, lowest first.
/// let hash = mayhap_eval::murmur3_x86_32(b"334324324234234sfsfsdfwwrtregreg", 0);
/// assert_eq!(hash.to_le_bytes(), [0x53, 0x9a, 0xa3, 0xe7]);
/// ```
#[must_use]
pub fn murmur3_x86_32(key: &[u8], seed: u32) -> u32 {
    let stir = |word: u32| word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let (words, tail) = key.as_chunks::<4>();
    let mut hash = words.iter().fold(seed, |hash, &word| {
        let hash = (hash ^ stir(u32::from_le_bytes(word))).rotate_left(13);
        hash.wrapping_mul(5).wrapping_add(0xe654_6b64)
    });
    // Zeros behind the tail stir to zero.
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    hash ^= stir(u32::from_le_bytes(last)) ^ key.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// The hash of Kernighan and Ritchie's second edition, with a larger factor.
fn bkdr(key: &[u8]) -> u32 {
    key.iter().fold(0, |hash: u32, &byte| hash.wrapping_mul(131).wrapping_add(byte.into()))
}

/// Sobel's hash.
fn js(key: &[u8]) -> u32 {
    key.iter().fold(1_315_423_911, |hash: u32, &byte| {
        hash ^ (hash << 5).wrapping_add(byte.into()).wrapping_add(hash >> 2)
    })
}

/// The hash of Sedgewick's *Algorithms in C*.
fn rs(key: &[u8]) -> u32 {
    let (hash, _) = key.iter().fold((0u32, 63_689u32), |(hash, factor), &byte| {
        (hash.wrapping_mul(factor).wrapping_add(byte.into()), factor.wrapping_mul(378_551))
    });
    hash
}

/// FNV-1a of 64 bits: XOR, then multiply.
fn fnv1a_64(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// What keys look like to a hash function.
#[derive(Clone, Copy, Debug)]
pub struct HashedKeys {
    /// As reports call them.
    pub name: &'static str,
    write: fn(u64, u64, &mut Vec<u8>),
}

/// The keys that each is tried with.
pub static HASHED_KEYS: &[HashedKeys] = &[
    HashedKeys { name: "url", write: |seed, index, out| KeyKind::Url.write_key(seed, index, out) },
    HashedKeys { name: "uuid", write: |seed, index, out| KeyKind::Uuid.write_key(seed, index, out) },
    HashedKeys { name: "decimal", write: |_, index, out| write_decimal(index, out) },
];

/// A number as programs print it, in which few bytes differ: even ones are in, odd ones are asked for.
fn write_decimal(index: u64, out: &mut Vec<u8>) {
    let number = if index < ABSENT { 2 * index } else { 2 * (index - ABSENT) + 1 };
    out.extend_from_slice(format!("{number:016}").as_bytes());
}

/// What one function does with keys of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HashRun {
    /// What theory says for a function that gives random bits, as many as this one has.
    pub fpr_predicted: f64,
    /// What the filter does.
    pub false_positives: Proportion,
}

impl HashRun {
    /// Between these the rate lies if the function's bits are as good as random ones.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        // A Bloom filter's rate differs by half a percent from one of many thousand keys to the next.
        let rates = self.false_positives.agreeing_rates(self.fpr_predicted, 0.005, 4.0);
        rates.unwrap_or((self.fpr_predicted, self.fpr_predicted))
    }
}

/// So many bytes have the keys that are timed.
pub const TIMED_BYTES: usize = 24;

/// Fills a Bloom filter with the digests of a function and asks it for absent keys.
///
/// # Errors
/// [`SpecError`] if there is no such filter.
pub fn run_hash(
    function: &HashFunction,
    keys: &HashedKeys,
    count: u64,
    fpr: f64,
    questions: u64,
    seed: u64,
) -> Result<HashRun, SpecError> {
    let mut bloom = Bloom::new(count, fpr)?;
    let mut key = Vec::new();
    let mut digest = |index: u64| {
        key.clear();
        (keys.write)(seed, index, &mut key);
        function.digest(&key)
    };
    for index in 0..count {
        bloom.insert_digest(digest(index)).expect("a Bloom filter is never full");
    }
    let hits =
        (ABSENT..ABSENT + questions).filter(|&index| bloom.contains_digest(digest(index))).count() as u64;
    let predicted = math::bloom_fpr(bloom.bits(), count as f64, bloom.probes());
    let floor = math::hash_width_floor(count as f64, function.bits);
    Ok(HashRun {
        fpr_predicted: predicted + floor - predicted * floor,
        false_positives: Proportion { hits, trials: questions },
    })
}

/// Nanoseconds for a key of [`TIMED_BYTES`]: the median of several rounds over keys that lie in the cache.
#[must_use]
pub fn time_hash(function: &HashFunction) -> f64 {
    const KEYS: usize = 1024;
    let keys: Vec<[u8; TIMED_BYTES]> = (0..KEYS as u64)
        .map(|index| {
            let mut key = [0; TIMED_BYTES];
            for (part, chunk) in key.chunks_mut(8).enumerate() {
                chunk.copy_from_slice(&SplitMix64::at(part as u64, index).to_le_bytes());
            }
            key
        })
        .collect();
    let mut rounds: Vec<f64> = (0..21)
        .map(|_| {
            let started = Instant::now();
            let mut all = 0;
            for _ in 0..20 {
                for key in black_box(&keys) {
                    all ^= function.digest(key).a;
                }
            }
            black_box(all);
            started.elapsed().as_nanos() as f64 / (20 * KEYS) as f64
        })
        .collect();
    median(&mut rounds).expect("rounds")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published values, or those of other programs.
    #[test]
    fn functions_give_what_they_are_known_for() {
        assert_eq!(murmur3_x86_32(b"", 0), 0);
        assert_eq!(murmur3_x86_32(b"", 1), 0x514e_28b7);
        assert_eq!(murmur3_x86_32(b"Hello, world!", 0x9747_b28c), 0x2488_4cba);
        assert_eq!(murmur3_x86_32(b"aaaa", 0x9747_b28c), 0x5a97_808a);
        assert_eq!(bkdr(b"ab"), 97 * 131 + 98);
        assert_eq!(rs(b"a"), 97);
        assert_eq!(js(b""), 1_315_423_911);
        let md5 = HASH_FUNCTIONS.iter().find(|function| function.name == "md5").unwrap();
        assert_eq!(
            md5.digest(b""),
            Digest::from_u128(
                u128::from_be_bytes(*b"\xd4\x1d\x8c\xd9\x8f\x00\xb2\x04\xe9\x80\x09\x98\xec\xf8\x42\x7e")
                    .swap_bytes()
            )
        );
    }

    /// As other programs print them: `xxhsum`, `md5sum`, `sha1sum`, `sha256sum`, Guava, the published values of FNV and
    /// those of SipHash for the bytes 0 to 14.
    #[test]
    fn hashes_are_written_as_other_programs_print_them() {
        let hex = |name: &str, key: &[u8]| {
            hash_functions().find(|function| function.name == name).expect(name).hex(key)
        };
        for (name, key, expected) in [
            ("murmur3-x86-32", "334324324234234sfsfsdfwwrtregreg", "539aa3e7"),
            ("spark-murmur3-x86-32", "334324324234234sfsfsdfwwrtregreg", "e7a39a53"),
            ("murmur3-x64-128", "hello", "029bbd41b3a7d8cb191dae486a901e5b"),
            ("md5", "abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("sha1", "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("sha256", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("xxh3-128", "", "99aa06d3014798d86001c324468d497f"),
            ("xxh3-64", "", "2d06800538d394c2"),
            ("xxh64", "", "ef46db3751d8e999"),
            ("fnv1-64", "a", "af63bd4c8601b7be"),
            ("fnv1a-64", "a", "af63dc4c8601ec8c"),
            ("rs", "a", "00000061"),
        ] {
            assert_eq!(hex(name, key.as_bytes()), expected, "{name} of {key:?}");
        }
        let bytes: Vec<u8> = (0..15).collect();
        assert_eq!(hex("siphash-2-4-64", &bytes), "e545be4961ca29a1");
        for function in hash_functions() {
            assert_eq!(function.hex(b"key").len(), function.bits as usize / 4, "{}", function.name);
        }
    }

    /// Functions with bits enough give what theory says; and so do those of 32, whose keys meet more often. One
    /// that mixes badly meets more often still.
    #[test]
    fn rates_are_those_of_the_bits_that_there_are() {
        let (count, questions) = (300_000, 2_000_000);
        for function in HASH_FUNCTIONS
            .iter()
            .filter(|function| function.bits >= 64 || function.name.starts_with("murmur"))
        {
            let run = run_hash(function, &HASHED_KEYS[0], count, 1e-4, questions, 1).unwrap();
            assert!(
                run.false_positives.agrees_with(run.fpr_predicted, 0.02, 4.0),
                "{}: {run:?}",
                function.name
            );
        }
        let js = HASH_FUNCTIONS.iter().find(|function| function.name == "js").unwrap();
        let run = run_hash(js, &HASHED_KEYS[2], count, 1e-4, questions, 1).unwrap();
        assert!(run.false_positives.rate().unwrap() > 2.0 * run.fpr_predicted, "{run:?}");
    }
}
