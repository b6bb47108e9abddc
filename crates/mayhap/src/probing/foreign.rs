//! The positions of other programs' filters: each rule takes a key's hash to places among `bits` bits.
//!
//! ```text
//! Guava 64      c = a;  k times: (c without its sign) mod bits;  c += b
//! Guava 32      a, b = halves of the hash;  i = 1..=k: c = a + i b in 32 bits;  (c < 0 ? !c : c) mod bits;  Spark 1 too
//! Spark 2       c = a (2^31 - 1);  k times: c += b;  (c < 0 ? !c : c) mod bits
//! Go            h0 + 0 h2,  h1 + 1 h3,  h0 + 2 h3,  h1 + 3 h2,  h0 + 4 h2, ...   mod bits
//! DCSO          k times: h = (h g) mod p;  h mod bits
//! RedisBloom    (a + i b) mod bits, in 64 or in 32 bits
//! bloomfilter   a,  b,  then (a + i b) mod p,   mod bits
//! rbloom        k times: s = s m + 1 in 128 bits;  (s >> 32 in 64 bits) mod bits
//! ```

use super::Probing;
use crate::hash::Digest;
use crate::narrow::{low_u32, low_u64};

/// The rules of other programs.
impl Probing {
    /// Guava's MURMUR128_MITZ_64.
    pub(crate) const GUAVA_64: Self = Self::new(32, "guava-mitz-64");
    /// Guava's MURMUR128_MITZ_32.
    pub(crate) const GUAVA_32: Self = Self::new(33, "guava-mitz-32");
    /// Go's bits-and-blooms.
    pub(crate) const GO: Self = Self::new(34, "go");
    /// DCSO's bloom.
    pub(crate) const DCSO: Self = Self::new(35, "dcso");
    /// Spark's version 1.
    pub(crate) const SPARK_1: Self = Self::new(36, "spark-v1");
    /// Spark's version 2.
    pub(crate) const SPARK_2: Self = Self::new(37, "spark-v2");
    /// RedisBloom's Bloom filters.
    pub(crate) const REDIS_BLOOM: Self = Self::new(38, "redisbloom");
    /// RedisBloom's cuckoo filters.
    pub(crate) const REDIS_BLOOM_CUCKOO: Self = Self::new(39, "redisbloom-cuckoo");
    /// The crate `bloomfilter`.
    pub(crate) const BLOOMFILTER_CRATE: Self = Self::new(40, "bloomfilter-crate");
    /// Parquet's split blocks.
    pub(crate) const SBBF: Self = Self::new(41, "sbbf");
    /// FastFilter's xor filters.
    pub(crate) const XOR: Self = Self::new(42, "xor");
    /// FastFilter's binary fuse filters.
    pub(crate) const FAST_FILTER_FUSE: Self = Self::new(43, "fastfilter-fuse");
    /// rbloom.
    pub(crate) const RBLOOM: Self = Self::new(44, "rbloom");
    /// pybloom-live.
    pub(crate) const PYBLOOM_LIVE: Self = Self::new(45, "pybloom-live");
    /// pyprobables.
    pub(crate) const PYPROBABLES: Self = Self::new(46, "pyprobables");

    /// All of them, by their ids.
    const FOREIGN: [Self; 15] = [
        Self::GUAVA_64,
        Self::GUAVA_32,
        Self::GO,
        Self::DCSO,
        Self::SPARK_1,
        Self::SPARK_2,
        Self::REDIS_BLOOM,
        Self::REDIS_BLOOM_CUCKOO,
        Self::BLOOMFILTER_CRATE,
        Self::SBBF,
        Self::XOR,
        Self::FAST_FILTER_FUSE,
        Self::RBLOOM,
        Self::PYBLOOM_LIVE,
        Self::PYPROBABLES,
    ];

    /// The rule with this id, if it is another program's.
    pub(crate) fn foreign(id: u8) -> Option<Self> {
        Self::FOREIGN.into_iter().find(|rule| rule.id == id)
    }
}

/// A key's positions in another program's filter, in the order of the program. `bits` is not 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignPositions {
    walk: Walk,
    left: u32,
    bits: u64,
}

#[derive(Clone, Copy, Debug)]
enum Walk {
    Guava64 { c: u64, step: u64 },
    Guava32 { c: i32, step: i32 },
    Spark2 { c: i64, step: i64 },
    Go { hashes: [u64; 4], i: u64 },
    Dcso { h: u64 },
    Redis64 { c: u64, step: u64 },
    Redis32 { c: u32, step: u32 },
    Crate { a: u64, b: u64, i: u64 },
    Rbloom { s: u128 },
}

/// 2^64 - 59, the largest prime below 2^64. DCSO's modulus, and the `bloomfilter` crate's.
const PRIME: u64 = 0xffff_ffff_ffff_ffc5;
/// What DCSO multiplies with.
const DCSO_GENERATOR: u64 = 18_446_744_073_709_550_147;
/// What rbloom multiplies with.
const RBLOOM_MULTIPLIER: u128 = 47_026_247_687_942_121_848_144_207_491_837_418_733;

impl ForeignPositions {
    /// By a rule that needs no more than a digest.
    ///
    /// # Panics
    /// If it does.
    #[inline]
    pub(crate) fn of(probing: Probing, digest: Digest, probes: u32, bits: u64) -> Self {
        let Digest { a, b } = digest;
        let (low, high) = (low_u32(a).cast_signed(), (a >> 32) as i32);
        let walk = match probing {
            Probing::GUAVA_64 => Walk::Guava64 { c: a, step: b },
            Probing::GUAVA_32 | Probing::SPARK_1 => Walk::Guava32 { c: low, step: high },
            Probing::SPARK_2 => {
                Walk::Spark2 { c: i64::from(low) * i64::from(i32::MAX), step: i64::from(high) }
            }
            Probing::DCSO => Walk::Dcso { h: a % PRIME },
            Probing::REDIS_BLOOM => Walk::Redis64 { c: a, step: b },
            Probing::RBLOOM => Walk::Rbloom { s: u128::from(b) << 64 | u128::from(a) },
            other => unreachable!("{other:?} is no rule of a digest alone"),
        };
        Self { walk, left: probes, bits }
    }

    /// RedisBloom's rule in 32 bits, of its oldest filters.
    pub(crate) fn redis_32(digest: Digest, probes: u32, bits: u64) -> Self {
        Self { walk: Walk::Redis32 { c: low_u32(digest.a), step: low_u32(digest.b) }, left: probes, bits }
    }

    /// Of the hash of the key, and that of the key and a byte 1.
    pub(crate) fn go(key: Digest, longer: Digest, probes: u32, bits: u64) -> Self {
        let hashes = [key.a, key.b, longer.a, longer.b];
        Self { walk: Walk::Go { hashes, i: 0 }, left: probes, bits }
    }

    /// Of two hashes, by the crate `bloomfilter`.
    pub(crate) fn of_crate(a: u64, b: u64, probes: u32, bits: u64) -> Self {
        Self { walk: Walk::Crate { a, b, i: 0 }, left: probes, bits }
    }
}

/// None at all.
impl Default for ForeignPositions {
    fn default() -> Self {
        Self { walk: Walk::Dcso { h: 0 }, left: 0, bits: 1 }
    }
}

impl Iterator for ForeignPositions {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let bits = self.bits;
        Some(self.next_unreduced()? % bits)
    }
}

impl ForeignPositions {
    /// The next value, before it is brought to the bits of a filter.
    #[inline]
    pub(crate) fn next_unreduced(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let value = match &mut self.walk {
            Walk::Guava64 { c, step } => {
                let value = *c & i64::MAX as u64;
                *c = c.wrapping_add(*step);
                value
            }
            Walk::Guava32 { c, step } => {
                *c = c.wrapping_add(*step);
                (if *c < 0 { !*c } else { *c }) as u64
            }
            Walk::Spark2 { c, step } => {
                *c = c.wrapping_add(*step);
                (if *c < 0 { !*c } else { *c }) as u64
            }
            Walk::Go { hashes, i } => {
                let odd = *i % 2;
                let stride = hashes[2 + ((*i + odd) % 4 / 2) as usize];
                let value = hashes[odd as usize].wrapping_add(i.wrapping_mul(stride));
                *i += 1;
                value
            }
            Walk::Dcso { h } => {
                *h = h.wrapping_mul(DCSO_GENERATOR) % PRIME;
                *h
            }
            Walk::Redis64 { c, step } => {
                let value = *c;
                *c = c.wrapping_add(*step);
                value
            }
            Walk::Redis32 { c, step } => {
                let value = *c;
                *c = c.wrapping_add(*step);
                value.into()
            }
            Walk::Crate { a, b, i } => {
                let value = match *i {
                    0 => *a,
                    1 => *b,
                    i => a.wrapping_add(i.wrapping_mul(*b)) % PRIME,
                };
                *i += 1;
                value
            }
            Walk::Rbloom { s } => {
                *s = s.wrapping_mul(RBLOOM_MULTIPLIER).wrapping_add(1);
                low_u64(*s >> 32)
            }
        };
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::hash::{ForeignHash, Hashing};

    fn positions(probing: Probing, hash: ForeignHash, probes: u32, bits: u64) -> Vec<u64> {
        let digest = Hashing::Foreign(hash).digest(b"user:0");
        ForeignPositions::of(probing, digest, probes, bits).collect()
    }

    /// Of the key "user:0", as the programs have them.
    #[test]
    fn positions_are_those_of_the_programs() {
        assert_eq!(positions(Probing::GUAVA_64, ForeignHash::Murmur3, 6, 64), [37, 60, 19, 42, 1, 24]);
        assert_eq!(positions(Probing::GUAVA_32, ForeignHash::Murmur3, 6, 64), [36, 35, 29, 33, 32, 32]);
        let hash = |key: &[u8]| Hashing::Foreign(ForeignHash::Murmur3).digest(key);
        let go = ForeignPositions::go(hash(b"user:0"), hash(b"user:0\x01"), 3, 64);
        assert_eq!(go.collect::<Vec<_>>(), [37, 34, 59]);
        let all = u64::MAX;
        let dcso = [0x01c9_a9f6_3d71_f836, 0xbdcb_b601_6902_b222, 0xe60c_99e8_6b87_d2e6];
        assert_eq!(positions(Probing::DCSO, ForeignHash::Fnv1, 3, all), dcso);
    }
}
