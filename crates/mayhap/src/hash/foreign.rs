//! The hash functions of other programs' filters, from their published definitions.
//!
//! Each is here because files of the program exist whose keys were hashed so, and for no other reason: filters of our own
//! have no use for them. Test vectors stand below.

use sha2::{Digest as _, Sha256};
use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::xxh3_128;
use xxhash_rust::xxh64::xxh64;

use super::Digest;
use crate::narrow::{low_u32, low_u64};

/// How another program hashes its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignHash {
    /// Murmur3 x64 128 with the seed 0: Guava.
    Murmur3,
    /// Murmur3 x64 128 of the key, and of the key and a byte 1: Go's bits-and-blooms. [Wide](ForeignHash::is_wide).
    Murmur3Twice,
    /// FNV-1 of 64 bits: DCSO's bloom.
    Fnv1,
    /// Murmur3 x86 32 with a tail of Spark's own, twice.
    Spark {
        /// The seed of the first of the two; the first is the seed of the second.
        seed: i32,
    },
    /// What Spark's SQL feeds its runtime filters with: XXH64 with the seed 42 of the key, which is then an item of
    /// [`Spark`](ForeignHash::Spark).
    SparkSql {
        /// As for [`Spark`](ForeignHash::Spark).
        seed: i32,
    },
    /// MurmurHash64A twice: RedisBloom's Bloom filters.
    Murmur64aTwice,
    /// MurmurHash2 of 32 bits twice: Bloom filters of very old versions of RedisBloom.
    Murmur2Twice,
    /// MurmurHash64A with the seed 0: RedisBloom's cuckoo filters.
    Murmur64a,
    /// XXH64 with the seed 0: Parquet, and text in FastFilter's Python package.
    Xxh64,
    /// The first 16 bytes of SHA-256, little-endian: a rule for rbloom, whose users bring their own.
    Sha256,
    /// SipHash-1-3 under two keys, which stand in the filter: the crate `bloomfilter`. [Wide](ForeignHash::is_wide).
    SipTwice,
    /// Several rounds of XXH3, MD5, SHA-1 or SHA-2 under salts: pybloom-live. [Wide](ForeignHash::is_wide).
    Salted,
    /// FNV-1a of 64 bits with a basis for each probe, byte by byte: pyprobables. [Wide](ForeignHash::is_wide).
    Fnv1a,
    /// The same of text, code point by code point. [Wide](ForeignHash::is_wide).
    Fnv1aText,
}

impl ForeignHash {
    /// Whether the positions of a key need more than 128 bits of hash. Such filters are asked by their keys: a digest names
    /// a key, and says nothing of its positions.
    #[must_use]
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::Murmur3Twice | Self::SipTwice | Self::Salted | Self::Fnv1a | Self::Fnv1aText)
    }

    /// As reports show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Murmur3 => "murmur3-x64-128",
            Self::Murmur3Twice => "murmur3-x64-128-twice",
            Self::Fnv1 => "fnv1-64",
            Self::Spark { .. } => "spark-murmur3-x86-32",
            Self::SparkSql { .. } => "spark-sql-xxh64",
            Self::Murmur64aTwice => "murmur64a-twice",
            Self::Murmur2Twice => "murmur2-32-twice",
            Self::Murmur64a => "murmur64a",
            Self::Xxh64 => "xxh64",
            Self::Sha256 => "sha256",
            Self::SipTwice => "siphash-1-3-twice",
            Self::Salted => "pybloom-live",
            Self::Fnv1a => "fnv1a-64",
            Self::Fnv1aText => "fnv1a-64-text",
        }
    }

    /// The seed, where there is one.
    #[must_use]
    pub const fn seed(self) -> Option<u64> {
        match self {
            Self::Spark { seed } | Self::SparkSql { seed } => Some(seed as u32 as u64),
            _ => None,
        }
    }

    /// The id on disk. Never reused.
    pub(super) const fn id(self) -> u8 {
        match self {
            Self::Murmur3 => 32,
            Self::Murmur3Twice => 33,
            Self::Fnv1 => 34,
            Self::Spark { .. } => 35,
            Self::SparkSql { .. } => 36,
            Self::Murmur64aTwice => 37,
            Self::Murmur2Twice => 38,
            Self::Murmur64a => 39,
            Self::Xxh64 => 40,
            Self::Sha256 => 41,
            Self::SipTwice => 42,
            Self::Salted => 43,
            Self::Fnv1a => 44,
            Self::Fnv1aText => 45,
        }
    }

    /// The scheme with this id; its seed is 0.
    pub(super) const fn from_id(id: u8) -> Option<Self> {
        Some(match id {
            32 => Self::Murmur3,
            33 => Self::Murmur3Twice,
            34 => Self::Fnv1,
            35 => Self::Spark { seed: 0 },
            36 => Self::SparkSql { seed: 0 },
            37 => Self::Murmur64aTwice,
            38 => Self::Murmur2Twice,
            39 => Self::Murmur64a,
            40 => Self::Xxh64,
            41 => Self::Sha256,
            42 => Self::SipTwice,
            43 => Self::Salted,
            44 => Self::Fnv1a,
            45 => Self::Fnv1aText,
            _ => return None,
        })
    }

    /// The same scheme with another seed; `None` if it has none.
    pub(super) const fn with_seed(self, seed: u32) -> Option<Self> {
        match self {
            Self::Spark { .. } => Some(Self::Spark { seed: seed as i32 }),
            Self::SparkSql { .. } => Some(Self::SparkSql { seed: seed as i32 }),
            _ if seed == 0 => Some(self),
            _ => None,
        }
    }

    /// Out of the way of the hash functions that filters of our own use.
    #[cold]
    #[inline(never)]
    pub(super) fn digest(self, key: &[u8]) -> Digest {
        match self {
            Self::Murmur3 => murmur3_x64_128(key),
            Self::Fnv1 => Digest { a: fnv1_64(key), b: 0 },
            Self::Spark { seed } => spark_pair(key, seed),
            Self::SparkSql { seed } => spark_pair(&xxh64(key, SPARK_SQL_SEED).to_le_bytes(), seed),
            Self::Murmur64aTwice => {
                let a = murmur64a(key, MURMUR64);
                Digest { a, b: murmur64a(key, a) }
            }
            Self::Murmur2Twice => {
                let a = murmur2_32(key, 0x9747_b28c);
                Digest { a: a.into(), b: murmur2_32(key, a).into() }
            }
            Self::Murmur64a => Digest { a: murmur64a(key, 0), b: 0 },
            Self::Xxh64 => Digest { a: xxh64(key, 0), b: 0 },
            Self::Sha256 => {
                let hash = Sha256::digest(key);
                let (first, _) = hash.split_first_chunk::<16>().expect("32 bytes");
                Digest::from_u128(u128::from_le_bytes(*first))
            }
            Self::Murmur3Twice | Self::SipTwice | Self::Salted | Self::Fnv1a | Self::Fnv1aText => {
                Digest::from_u128(xxh3_128(key))
            }
        }
    }
}

/// The seed of every `xxhash64` in Spark's SQL.
const SPARK_SQL_SEED: u64 = 42;

/// The two hashes of an item, the first in the low half. (An integer is an item of 8 little-endian bytes.)
fn spark_pair(item: &[u8], seed: i32) -> Digest {
    let first = spark_murmur3(item, seed as u32);
    let second = spark_murmur3(item, first);
    Digest { a: u64::from(second) << 32 | u64::from(first), b: 0 }
}

/// Murmur3 x64 128 with the seed 0.
pub(crate) fn murmur3_x64_128(key: &[u8]) -> Digest {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let stir_1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let stir_2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = halves(*block);
        h1 = (h1 ^ stir_1(k1)).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ stir_2(k2)).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // Zeros behind the tail stir to zero, so that a half that is not there changes nothing.
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    let (k1, k2) = halves(last);
    h1 ^= stir_1(k1) ^ key.len() as u64;
    h2 ^= stir_2(k2) ^ key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = murmur3_finish(h1);
    h2 = murmur3_finish(h2);
    h1 = h1.wrapping_add(h2);
    Digest { a: h1, b: h2.wrapping_add(h1) }
}

fn halves(block: [u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(block);
    (low_u64(both), (both >> 64) as u64)
}

/// The end of Murmur3 in 64 bits, which is also the whole hash of FastFilter's keys.
pub(crate) const fn murmur3_finish(mut h: u64) -> u64 {
    h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ h >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

/// Murmur3 x86 32 but for its tail: each byte behind the last word of four is, with its sign, a word of its own.
fn spark_murmur3(item: &[u8], seed: u32) -> u32 {
    let mix = |h: u32, k: u32| {
        let k = k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (h ^ k).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    };
    let (words, tail) = item.as_chunks::<4>();
    let h = words.iter().fold(seed, |h, word| mix(h, u32::from_le_bytes(*word)));
    let h = tail.iter().fold(h, |h, &byte| mix(h, byte as i8 as u32));
    let h = h ^ low_u32(item.len() as u64);
    let h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    let h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

/// The multiplier of MurmurHash64A, which RedisBloom takes for a seed too.
const MURMUR64: u64 = 0xc6a4_a793_5bd1_e995;

/// MurmurHash64A.
pub(crate) fn murmur64a(key: &[u8], seed: u64) -> u64 {
    let mut h = seed ^ (key.len() as u64).wrapping_mul(MURMUR64);
    let (words, tail) = key.as_chunks::<8>();
    for word in words {
        let k = u64::from_le_bytes(*word).wrapping_mul(MURMUR64);
        let k = (k ^ k >> 47).wrapping_mul(MURMUR64);
        h = (h ^ k).wrapping_mul(MURMUR64);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        h = (h ^ u64::from_le_bytes(last)).wrapping_mul(MURMUR64);
    }
    h = (h ^ h >> 47).wrapping_mul(MURMUR64);
    h ^ h >> 47
}

/// MurmurHash2 of 32 bits.
fn murmur2_32(key: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut h = seed ^ low_u32(key.len() as u64);
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let k = u32::from_le_bytes(*word).wrapping_mul(M);
        h = h.wrapping_mul(M) ^ (k ^ k >> 24).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        h = (h ^ u32::from_le_bytes(last)).wrapping_mul(M);
    }
    h = (h ^ h >> 13).wrapping_mul(M);
    h ^ h >> 15
}

/// FNV-1 of 64 bits: multiply, then XOR.
fn fnv1_64(key: &[u8]) -> u64 {
    key.iter().fold(FNV_BASIS, |h, &byte| h.wrapping_mul(FNV_PRIME) ^ u64::from(byte))
}

/// Where FNV of 64 bits starts.
pub(crate) const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
/// What it multiplies with.
pub(crate) const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// SipHash-1-3 of 64 bits under 16 bytes.
pub(crate) fn siphash13(key: &[u8; 16], parts: &[&[u8]]) -> u64 {
    use core::hash::Hasher;
    let mut hasher = SipHasher13::new_with_key(key);
    parts.iter().for_each(|part| hasher.write(part));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Values of the programs themselves, or of their published definitions.
    #[test]
    fn hash_functions_of_others_give_their_values() {
        let sixteen: Vec<u8> = (0..16).collect();
        let seventeen: Vec<u8> = (0..17).collect();
        for (key, a, b) in [
            (&b""[..], 0, 0),
            (b"a", 0x8555_5565_f659_7889, 0xe6b5_3a48_510e_895a),
            (b"hello", 0xcbd8_a7b3_41bd_9b02, 0x5b1e_906a_48ae_1d19),
            (&sixteen, 0x4449_24b5_9190_3f30, 0xab90_6456_762f_e845),
            (&seventeen, 0x5c76_f40f_9fe7_c20e, 0xc15f_026b_9eda_a824),
            (b"user:0", 0x57fb_d3bf_bbce_f0e5, 0xd6cd_8d52_26d1_7617),
            (b"user:0\x01", 0x11db_f038_c4df_6076, 0x2bf1_d742_8202_b7cb),
        ] {
            assert_eq!(ForeignHash::Murmur3.digest(key), Digest { a, b }, "{key:x?}");
        }
        for (key, a, b, cuckoo) in [
            ("", 0x1ab1_1ea5_a7b2_c56e, 0xbbdd_cb5a_b56d_d547, 0),
            ("user:0", 0x60ab_e7cc_ad52_81fd, 0x3dc0_5917_99e6_8fce, 0xb847_1007_32c1_9d8c),
            ("abcdefgh", 0xd435_df7a_565a_8af1, 0xbf3d_673c_0b10_29cf, 0xafdb_0257_ff41_aa98),
            ("abcdefghi", 0xa2c0_04e4_4bd0_a465, 0x2845_9a22_cef6_8950, 0xc9b9_d843_5614_6ac2),
        ] {
            let key = key.as_bytes();
            assert_eq!(ForeignHash::Murmur64aTwice.digest(key), Digest { a, b });
            assert_eq!(ForeignHash::Murmur64a.digest(key), Digest { a: cuckoo, b: 0 });
        }
        assert_eq!(fnv1_64(b"user:0"), 0x2ee0_7e93_c93c_ea92);
        assert_eq!(ForeignHash::Xxh64.digest(b"user:0").a, 0x70e4_b6e4_4e5f_a291);
        assert_eq!(ForeignHash::Xxh64.digest(&1u64.to_le_bytes()).a, 0x9f29_cb17_a2a4_9995);
        assert_eq!(ForeignHash::Xxh64.digest(&1u32.to_le_bytes()).a, 0xf42f_9400_1fcb_5351);
    }

    #[test]
    fn the_two_hashes_of_spark_are_those_of_its_table() {
        for (item, first, second) in [
            (&b"user:0"[..], 0x8980_d598, 0x6c23_1b84),
            (b"abcd", 0x43ed_676a, 0x8423_37ac),
            (b"abcde", 0x9401_5d5c, 0xdff7_37f7),
            (b"\xff", 0x6210_6c3e, 0x6aff_0635),
            (b"", 0, 0),
            (&0i64.to_le_bytes(), 0x6385_2afc, 0xcb91_9d2c),
            (&1i64.to_le_bytes(), 0x5307_5d44, 0xb8dd_ba5d),
            (&(-1i64).to_le_bytes(), 0x6275_64e8, 0xd083_e8e2),
            (&(1i64 << 40).to_le_bytes(), 0xa9f6_2f22, 0xff26_7e05),
        ] {
            let expected = Digest { a: second << 32 | first, b: 0 };
            assert_eq!(ForeignHash::Spark { seed: 0 }.digest(item), expected, "{item:x?}");
        }
        for (key, hash) in [
            (&b"user:0"[..], 2_329_537_736_397_141_650i64),
            (&1i64.to_le_bytes(), -7_001_672_635_703_045_582),
            (&1i32.to_le_bytes(), -6_698_625_589_789_238_999),
        ] {
            let fed = ForeignHash::Spark { seed: 5 }.digest(&hash.to_le_bytes());
            assert_eq!(ForeignHash::SparkSql { seed: 5 }.digest(key), fed);
        }
    }

    /// A key of 32 bytes has no tail, and there Spark's function is Murmur3 x86 32 itself: its bytes are 53 9a a3 e7.
    #[test]
    fn without_a_tail_the_hash_of_spark_is_murmur3_x86_32() {
        let key = b"334324324234234sfsfsdfwwrtregreg";
        assert_eq!(spark_murmur3(key, 0).to_le_bytes(), [0x53, 0x9a, 0xa3, 0xe7]);
    }

    /// The seed that valkey-bloom always takes.
    #[test]
    fn siphash_of_a_slice_is_that_of_the_crate() {
        let first = 0xd97b_3e3b_09d8_14a7_da11_78ea_22f5_0f59u128.to_le_bytes();
        let second = 0x8333_0728_cd97_7f30_8788_983e_738a_891du128.to_le_bytes();
        let parts: [&[u8]; 2] = [&6u64.to_le_bytes(), b"user:0"];
        assert_eq!(siphash13(&first, &parts), 0x7b19_80fd_096d_f3e1);
        assert_eq!(siphash13(&second, &parts), 0x9b3e_8271_a1d8_c8d4);
    }

    #[test]
    fn ids_are_their_own_and_come_back() {
        let all: Vec<ForeignHash> = (0..=u8::MAX).filter_map(ForeignHash::from_id).collect();
        assert_eq!(all.len(), 14);
        assert!(all.iter().all(|&hash| ForeignHash::from_id(hash.id()) == Some(hash)));
    }
}
