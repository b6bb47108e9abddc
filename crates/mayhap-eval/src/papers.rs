//! The experiments of the papers, run again: what theory expects beside what our filters do.
//!
//! Each has the name under which it is known here and the parameters that it was published or simulated with. Keys
//! are made from the seed, so that a run can be repeated and another seed is another draw. A rate passes within 4
//! standard deviations, those of the count and those from one filter to the next: a right one fails with a chance of
//! 6e-5.

mod adversary;
mod bitmap;
mod blocked;
mod bloom;
mod counting;
mod cuckoo;
mod dleft;
mod expanding;
mod fuse;
mod ribbon;
mod scalable;
mod shifting;
mod spatial;
mod spectral;
mod universe;
mod windowed;

use core::ops::Range;

use mayhap::{Digest, Error, Filter, Full, Hashing, Insert};

use crate::{ABSENT, Finding, Proportion, SplitMix64};

/// One experiment of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// What it is called, such as `BLM-1`.
    pub name: &'static str,
    /// What is done in it.
    pub title: &'static str,
    /// Does it, with keys made from a seed.
    ///
    /// # Errors
    /// If a filter is refused, for example because there is no memory for it.
    pub run: fn(seed: u64) -> Result<Vec<Finding>, Error>,
}

/// The whole suite, by structure.
pub static PAPERS: &[Paper] = &[
    Paper { name: "BMP-1", title: "a million draws, sorted by a bitmap", run: bitmap::bmp_1 },
    Paper { name: "BMP-2", title: "laws of sets, of rank and of select", run: bitmap::bmp_2 },
    Paper { name: "BLM-1", title: "a million keys in a Bloom filter at 1 %", run: bloom::blm_1 },
    Paper { name: "BLM-2", title: "ten million keys at 1 in 100,000", run: bloom::blm_2 },
    Paper { name: "BLM-3", title: "20 probes in few bits, where bad positions show", run: bloom::blm_3 },
    Paper { name: "BLM-4", title: "union and intersection", run: bloom::blm_4 },
    Paper { name: "BLM-5", title: "sizes of Bloom filters", run: bloom::blm_5 },
    Paper { name: "BLK-1", title: "split blocks of 256 bits", run: blocked::blk_1 },
    Paper { name: "BLK-4", title: "blocks of 512 bits in 8 sectors", run: blocked::blk_4 },
    Paper { name: "BLK-5", title: "blocked filters sized for a rate", run: blocked::blk_5 },
    Paper { name: "CBF-1", title: "a million keys in counters, of which half leave", run: counting::cbf_1 },
    Paper { name: "CBF-2", title: "removing keys that were never in", run: counting::cbf_2 },
    Paper { name: "CBF-3", title: "a key that saturates its counters", run: counting::cbf_3 },
    Paper { name: "DLC-1", title: "rates of full d-left filters", run: dleft::dlc_1 },
    Paper { name: "DLC-2", title: "loads of buckets after inserts", run: dleft::dlc_2 },
    Paper { name: "DLC-3", title: "loads after removes and inserts in turn", run: dleft::dlc_3 },
    Paper { name: "SPC-1", title: "counts of 1000 keys, Zipf 0.5, load 0.7", run: spectral::spc_1 },
    Paper { name: "SPC-2", title: "counts of 1000 keys, Zipf 1.0, load 0.7", run: spectral::spc_2 },
    Paper { name: "SPC-3", title: "counts of 1000 keys, Zipf 0.5, load 1.0", run: spectral::spc_3 },
    Paper { name: "SPC-4", title: "counts of 10,000 keys, Zipf 0.5, load 0.7", run: spectral::spc_4 },
    Paper { name: "SPC-5", title: "all that was counted leaves", run: spectral::spc_5 },
    Paper { name: "SCL-1", title: "growth from 1 %, tightened by a half", run: scalable::scl_1 },
    Paper { name: "SCL-2", title: "growth from 0.5 %, tightened by a half", run: scalable::scl_2 },
    Paper { name: "SCL-3", title: "growth from 0.1 %, tightened by a tenth", run: scalable::scl_3 },
    Paper { name: "SCL-4", title: "growth by 4 from 1 %, tightened by a tenth", run: scalable::scl_4 },
    Paper { name: "SPA-1", title: "ten areas of 10,000 keys", run: spatial::spa_1 },
    Paper { name: "SPA-2", title: "255 areas of 1000 keys", run: spatial::spa_2 },
    Paper { name: "SHB-1", title: "shifting filters with one shift", run: shifting::shb_1 },
    Paper { name: "SHB-2", title: "shifting filters with more shifts", run: shifting::shb_2 },
    Paper { name: "SHB-3", title: "which of two sets", run: shifting::shb_3 },
    Paper { name: "SHB-4", title: "counts up to 57 as shifts", run: shifting::shb_4 },
    Paper { name: "SHB-5", title: "loads per question", run: shifting::shb_5 },
    Paper { name: "CKO-1", title: "rates of cuckoo filters at a load of 95 %", run: cuckoo::cko_1 },
    Paper { name: "CKO-2", title: "the load at the first refusal", run: cuckoo::cko_2 },
    Paper { name: "CKO-3", title: "copies of one key", run: cuckoo::cko_3 },
    Paper { name: "CKO-4", title: "filled and emptied again", run: cuckoo::cko_4 },
    Paper { name: "CKO-5", title: "nobody is lost when one is refused", run: cuckoo::cko_5 },
    Paper { name: "FUS-1", title: "lengths and rates of binary fuse filters", run: fuse::fus_1 },
    Paper { name: "STA-1", title: "ten million keys in shards, on threads", run: fuse::sta_1 },
    Paper { name: "RIB-3", title: "bits and rates of bumped ribbons", run: ribbon::rib_3 },
    Paper { name: "QTF-1", title: "a quotient filter, and the union of two", run: expanding::qtf_1 },
    Paper { name: "EXP-1", title: "ten doublings", run: expanding::exp_1 },
    Paper { name: "EXP-2", title: "doublings until fingerprints run out", run: expanding::exp_2 },
    Paper {
        name: "FGT-1",
        title: "age-partitioned filters at the end of a generation",
        run: windowed::fgt_1,
    },
    Paper { name: "CAS-1", title: "exact answers over a known universe", run: universe::cas_1 },
    Paper {
        name: "ADV-1",
        title: "forged keys, with a public seed and under a secret",
        run: adversary::adv_1,
    },
    Paper { name: "ADV-2", title: "chosen keys that fill a filter", run: adversary::adv_2 },
];

/// How much a rate differs from one filter to the next, as a share of it, where an experiment says nothing sharper.
const RHO: f64 = 0.02;

/// Keys per call: so many that a call costs little for each, and so few that their digests stay in the cache.
const BATCH: usize = 4096;

/// Key number `index`: those below [`ABSENT`] are inserted, the others only asked for.
fn key(seed: u64, index: u64) -> u64 {
    SplitMix64::at(seed, index)
}

fn keys(seed: u64, indexes: Range<u64>) -> Vec<u64> {
    indexes.map(|index| key(seed, index)).collect()
}

/// So many keys that no experiment inserts.
const fn absent(count: u64) -> Range<u64> {
    ABSENT..ABSENT + count
}

/// The digests of keys, a batch at a time.
fn for_each_batch<E>(
    hashing: Hashing,
    seed: u64,
    indexes: Range<u64>,
    mut then: impl FnMut(&[Digest]) -> Result<(), E>,
) -> Result<(), E> {
    let mut digests = Vec::with_capacity(BATCH);
    for start in indexes.clone().step_by(BATCH) {
        let end = indexes.end.min(start + BATCH as u64);
        digests.clear();
        digests.extend((start..end).map(|index| hashing.digest_of(key(seed, index))));
        then(&digests)?;
    }
    Ok(())
}

fn insert(filter: &mut dyn Insert, seed: u64, indexes: Range<u64>) -> Result<(), Full> {
    let mut outcomes = Vec::with_capacity(BATCH);
    for_each_batch(filter.hashing(), seed, indexes, |digests| {
        outcomes.clear();
        filter.insert_batch(digests, &mut outcomes)
    })
}

/// How many of these keys are admitted.
fn admitted(filter: &dyn Filter, seed: u64, indexes: Range<u64>) -> Proportion {
    let mut counted = Proportion { hits: 0, trials: 0 };
    let mut hits = Vec::with_capacity(BATCH);
    let Ok(()) = for_each_batch(filter.hashing(), seed, indexes, |digests| {
        hits.clear();
        filter.contains_batch(digests, &mut hits);
        counted.hits += hits.iter().filter(|&&hit| hit).count() as u64;
        counted.trials += hits.len() as u64;
        Ok::<(), core::convert::Infallible>(())
    });
    counted
}

/// How many of these keys, which are in, are denied.
fn denied(filter: &dyn Filter, seed: u64, indexes: Range<u64>) -> u64 {
    let asked = admitted(filter, seed, indexes);
    asked.trials - asked.hits
}

/// The same rate beside what the filter reports, which knows its own bits: only the count may differ.
fn as_reported(experiment: &'static str, what: &str, fpr: f64, counted: Proportion) -> Finding {
    Finding::rate(experiment, format!("{what}, as the filter reports"), fpr, 0.0, counted)
}

/// Every filter's first promise.
fn none_denied(experiment: &'static str, denied: u64) -> Finding {
    Finding::exactly(experiment, "keys that are in, and denied", 0.0, denied as f64)
}
