//! What people take before they know filters, measured beside them: hash sets of the keys and of their digests, and a
//! bitmap with one hash. If the exact set fits, it is the one to take.

use std::hash::BuildHasherDefault;
use std::hint::black_box;
use std::time::Instant;

use hashbrown::HashSet;
use mayhap::probing::reduce;
use mayhap::{Bitmap, Bloom, Digest, DigestHasher, Hashing, Insertion, SpecError, math};

use crate::{Drawn, Keys, Proportion};

/// One structure that is no filter of ours, filled and asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Baseline {
    /// What it is.
    pub name: &'static str,
    /// What it takes, in bytes.
    pub bytes: u64,
    /// What theory says about its errors.
    pub fpr_predicted: f64,
    /// False positives among absent keys.
    pub false_positives: Proportion,
    /// Keys that are in and were denied.
    pub false_negatives: u64,
    /// Nanoseconds per key inserted.
    pub insert_ns: f64,
    /// Nanoseconds per question for a key that is in.
    pub hit_ns: f64,
    /// Nanoseconds per question for a key that is not.
    pub miss_ns: f64,
}

/// Bits of the bitmap with one hash, for each key: as in the story of the 20 million URLs and 100 million bits.
pub const BITMAP_BITS_PER_KEY: u64 = 5;

/// The fastest hash set at hand.
type Set<K> = HashSet<K, foldhash::fast::FixedState>;

/// The ladder from a hash set of keys down to a bitmap, of the drawn keys.
///
/// # Errors
/// [`SpecError`] if there is no memory for the bitmap.
pub fn baselines(drawn: &Drawn, hashing: Hashing) -> Result<Vec<Baseline>, SpecError> {
    let distinct = drawn.distinct as f64;
    let bits = BITMAP_BITS_PER_KEY * (drawn.members.len() as u64).max(1);
    let more = Hashing::Xxh3 { seed: !hashing.seed().unwrap_or(0) };
    let digest_160 = |key: &[u8]| -> [u32; 5] {
        let (first, more) = (hashing.digest(key), more.digest(key).a as u32);
        [first.a as u32, (first.a >> 32) as u32, first.b as u32, (first.b >> 32) as u32, more]
    };
    let place = |key: &[u8]| reduce(hashing.digest(key).a, bits);
    Ok(vec![
        measured(
            "hash set of keys",
            0.0,
            drawn,
            Set::<Box<[u8]>>::default(),
            |set, key| set.insert(key.into()),
            |set, key| set.contains(key),
            |set| set.allocation_size() as u64 + set.iter().map(|key| key.len() as u64).sum::<u64>(),
        ),
        measured(
            "hash set of 160-bit digests",
            0.0,
            drawn,
            Set::default(),
            |set, key| set.insert(digest_160(key)),
            |set, key| set.contains(&digest_160(key)),
            |set| set.allocation_size() as u64,
        ),
        measured(
            "hash set of 128-bit digests",
            math::hash_width_floor(distinct, 128),
            drawn,
            HashSet::<Digest, BuildHasherDefault<DigestHasher>>::default(),
            |set, key| set.insert(hashing.digest(key)),
            |set, key| set.contains(&hashing.digest(key)),
            |set| set.allocation_size() as u64,
        ),
        measured(
            "hash set of 64-bit digests",
            math::hash_width_floor(distinct, 64),
            drawn,
            Set::default(),
            |set, key| set.insert(hashing.digest(key).a),
            |set, key| set.contains(&hashing.digest(key).a),
            |set| set.allocation_size() as u64,
        ),
        measured(
            "bitmap, one hash, 5 bits a key",
            math::one_hash_bitmap_fpr(bits, distinct),
            drawn,
            Bitmap::zeroed(bits)?,
            |bitmap, key| bitmap.set(place(key)).expect("a place below the number of bits"),
            |bitmap, key| bitmap.contains(place(key)),
            |bitmap| bitmap.universe().div_ceil(8),
        ),
    ])
}

/// The last step of the ladder, filled and asked as the others are: a Bloom filter.
///
/// # Errors
/// [`SpecError`] if there is no such filter.
pub fn with_bloom(drawn: &Drawn, fpr: f64) -> Result<Baseline, SpecError> {
    let bloom = Bloom::new(drawn.members.len() as u64, fpr)?;
    Ok(measured(
        "Bloom filter",
        math::bloom_fpr(bloom.bits(), drawn.distinct as f64, bloom.probes()),
        drawn,
        bloom,
        |bloom, key| bloom.insert(key) == Insertion::New,
        |bloom, key| bloom.contains(key),
        |bloom| bloom.bits().div_ceil(8),
    ))
}

/// Fills a structure one key after the other, and asks it for all of them and for the absent ones.
fn measured<S>(
    name: &'static str,
    fpr_predicted: f64,
    drawn: &Drawn,
    mut set: S,
    mut insert: impl FnMut(&mut S, &[u8]) -> bool,
    contains: impl Fn(&S, &[u8]) -> bool,
    bytes: impl FnOnce(&S) -> u64,
) -> Baseline {
    let per_key =
        |started: Instant, keys: &Keys| started.elapsed().as_nanos() as f64 / keys.len().max(1) as f64;
    let started = Instant::now();
    drawn.members.for_each(|key| {
        black_box(insert(&mut set, key));
    });
    let insert_ns = per_key(started, &drawn.members);
    let ask = |keys: &Keys| {
        let (started, mut hits) = (Instant::now(), 0);
        keys.for_each(|key| hits += u64::from(contains(&set, key)));
        (per_key(started, keys), Proportion { hits, trials: keys.len() as u64 })
    };
    let (hit_ns, hits) = ask(&drawn.members);
    let (miss_ns, false_positives) = ask(&drawn.absent);
    Baseline {
        name,
        bytes: bytes(&set),
        fpr_predicted,
        false_positives,
        false_negatives: hits.trials - hits.hits,
        insert_ns,
        hit_ns,
        miss_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Absent, Data};

    #[test]
    fn each_step_down_is_smaller_and_only_the_bitmap_errs() {
        for data in [Data::Url, Data::Gaussian { scale: 1e5 }] {
            let drawn = data.draw(1, 100_000, 50_000, Absent::Same);
            let rows = baselines(&drawn, Hashing::default()).unwrap();
            assert!(rows.is_sorted_by_key(|row| core::cmp::Reverse(row.bytes)), "{rows:#?}");
            for row in rows {
                assert_eq!(row.false_negatives, 0, "{}", row.name);
                assert!(row.false_positives.agrees_with(row.fpr_predicted, 0.01, 4.0), "{row:?}");
                assert_eq!(row.false_positives.hits > 0, row.name.starts_with("bitmap"), "{row:?}");
            }
            let bloom = with_bloom(&drawn, 0.01).unwrap();
            assert!(bloom.false_positives.agrees_with(bloom.fpr_predicted, 0.01, 4.0), "{bloom:?}");
        }
    }
}
