//! Nanoseconds per insert and per question, single keys, u64, 1%: classic Bloom filters side by side.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use fastbloom::BloomFilter;
use foldhash::fast::FixedState;
use mayhap::{Bloom, Filter};
use mayhap_eval::{ABSENT, SplitMix64, median};

use crate::Size;

const FPR: f64 = 0.01;

/// One contender: insert, hit and miss times of one repetition, and how often it was wrong.
struct Measured {
    insert: f64,
    hit: f64,
    miss: f64,
    false_positives: u64,
    bits_per_key: f64,
}

/// Times `work` per key.
fn per_key(keys: usize, work: impl FnOnce() -> u64) -> (f64, u64) {
    let started = Instant::now();
    let count = black_box(work());
    (started.elapsed().as_nanos() as f64 / keys as f64, count)
}

fn measure<F>(
    present: &[u64],
    absent: &[u64],
    bits: impl Fn(&F) -> u64,
    make: impl Fn() -> F,
    insert: impl Fn(&mut F, u64),
    contains: impl Fn(&F, u64) -> bool,
) -> Measured {
    let mut filter = make();
    let (insert, _) = per_key(present.len(), || {
        present.iter().for_each(|&key| insert(&mut filter, key));
        0
    });
    let ask = |keys: &[u64]| keys.iter().filter(|&&key| contains(&filter, key)).count() as u64;
    let (hit, hits) = per_key(present.len(), || ask(present));
    assert_eq!(hits, present.len() as u64, "a key that was inserted was denied");
    let (miss, false_positives) = per_key(absent.len(), || ask(absent));
    let bits_per_key = bits(&filter) as f64 / present.len() as f64;
    Measured { insert, hit, miss, false_positives, bits_per_key }
}

/// Several questions at once: what `check` does.
fn measure_batches(present: &[u64], absent: &[u64], keys: u64) -> Measured {
    let mut filter = Bloom::new(keys, FPR).expect("memory");
    let hashing = filter.hashing();
    let (mut digests, mut outcomes, mut hits) = (Vec::new(), Vec::new(), Vec::new());
    let (insert, _) = per_key(present.len(), || {
        for batch in present.chunks(1024) {
            digests.clear();
            digests.extend(batch.iter().map(|&key| hashing.digest_of(key)));
            outcomes.clear();
            mayhap::Insert::insert_batch(&mut filter, &digests, &mut outcomes).expect("never full");
        }
        0
    });
    let mut ask = |keys: &[u64]| {
        let mut count = 0;
        for batch in keys.chunks(1024) {
            digests.clear();
            digests.extend(batch.iter().map(|&key| hashing.digest_of(key)));
            hits.clear();
            filter.contains_batch(&digests, &mut hits);
            count += hits.iter().filter(|&&hit| hit).count() as u64;
        }
        count
    };
    let (hit, found) = per_key(present.len(), || ask(present));
    assert_eq!(found, present.len() as u64, "a key that was inserted was denied");
    let (miss, false_positives) = per_key(absent.len(), || ask(absent));
    Measured { insert, hit, miss, false_positives, bits_per_key: filter.bits() as f64 / keys as f64 }
}

pub(crate) fn run(size: Size) -> Result<()> {
    println!("u64 keys, 1%, one thread, ns per key, median of {} interleaved runs", size.repetitions());
    println!(
        "{:>10}  {:28} {:>7} {:>7} {:>7} {:>9} {:>9}",
        "keys", "filter", "insert", "hit", "miss", "bits/key", "fpr"
    );
    for full in [100_000, 1_000_000, 10_000_000] {
        let keys = size.keys(full);
        let present: Vec<u64> = (0..keys).map(|i| SplitMix64::at(1, i)).collect();
        let absent: Vec<u64> = (0..keys).map(|i| SplitMix64::at(1, ABSENT + i)).collect();
        type Contender<'a> = (&'a str, Box<dyn Fn() -> Measured + 'a>);
        let contenders: Vec<Contender<'_>> = vec![
            (
                "mayhap bloom",
                Box::new(|| {
                    measure(
                        &present,
                        &absent,
                        Bloom::bits,
                        || Bloom::new(keys, FPR).expect("memory"),
                        |f, key| {
                            f.insert(key);
                        },
                        |f, key| f.contains(key),
                    )
                }),
            ),
            ("mayhap bloom, batches", Box::new(|| measure_batches(&present, &absent, keys))),
            (
                "fastbloom (SipHash)",
                Box::new(|| {
                    measure(
                        &present,
                        &absent,
                        |f: &BloomFilter| f.num_bits() as u64,
                        || BloomFilter::with_false_pos(FPR).seed(&1).expected_items(keys as usize),
                        |f, key| {
                            f.insert(&key);
                        },
                        |f, key| f.contains(&key),
                    )
                }),
            ),
            (
                "fastbloom (foldhash)",
                Box::new(|| {
                    measure(
                        &present,
                        &absent,
                        |f: &BloomFilter<FixedState>| f.num_bits() as u64,
                        || {
                            BloomFilter::with_false_pos(FPR)
                                .hasher(FixedState::with_seed(1))
                                .expected_items(keys as usize)
                        },
                        |f, key| {
                            f.insert(&key);
                        },
                        |f, key| f.contains(&key),
                    )
                }),
            ),
        ];
        let mut results: Vec<Vec<Measured>> = contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..size.repetitions() {
            for ((_, run), results) in contenders.iter().zip(&mut results) {
                results.push(run());
            }
        }
        for ((name, _), results) in contenders.iter().zip(&results) {
            let of = |field: fn(&Measured) -> f64| {
                median(&mut results.iter().map(field).collect::<Vec<_>>()).unwrap_or(f64::NAN)
            };
            println!(
                "{keys:>10}  {name:28} {:>7.1} {:>7.1} {:>7.1} {:>9.2} {:>8.3}%",
                of(|m| m.insert),
                of(|m| m.hit),
                of(|m| m.miss),
                of(|m| m.bits_per_key),
                100.0 * results[0].false_positives as f64 / keys as f64,
            );
        }
    }
    println!();
    Ok(())
}
