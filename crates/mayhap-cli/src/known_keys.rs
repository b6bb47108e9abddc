//! Filters that are made of all of their keys at once, in bounded memory.
//!
//! The keys are hashed and put aside, 8 bytes each: in memory, and in temporary files as far as `--memory` is not enough.
//! Their number tells how large the filter is and how much memory building it takes.

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};
use mayhap::family::MakeFromDigests;
use mayhap::shards::{DigestShards, most_threads, working_bytes};
use mayhap::{AnyFilter, BuildError, Hashing, Spec, math};
use mayhap_store::{DigestSpool, LEAST_SPOOL_BYTES};

use crate::args::Common;
use crate::input::Inputs;
use crate::keys::Selector;
use crate::progress::Progress;
use crate::report;

/// A filter of all keys of the inputs, with at most so many bytes of memory for what was read of them, for building, and for
/// the filter itself. Neither the memory nor the threads change the filter.
pub(crate) fn build(
    make: MakeFromDigests,
    filter_bytes: impl Fn(&Spec) -> Result<u64>,
    spec: impl Fn(u64) -> Spec,
    hashing: Hashing,
    memory: Option<u64>,
    (inputs, selector): (&Inputs, &Selector),
    common: &Common,
) -> Result<Box<dyn AnyFilter>> {
    if let Some(memory) = memory.filter(|&memory| memory < LEAST_SPOOL_BYTES) {
        let (asked, least) = (report::bytes(memory), report::bytes(LEAST_SPOOL_BYTES));
        return Err(anyhow!(
            "--memory {asked}: hashed keys alone take {least} at the least; give that or more"
        ));
    }
    let mut spool = DigestSpool::new(memory.unwrap_or(u64::MAX));
    let progress = common.progress("hashing", inputs);
    let start = || (Vec::new(), spool.sorter());
    inputs.in_parallel(common.threads(), &progress, start, |(digests, sorter), chunk| {
        selector.digests(chunk, hashing, digests)?;
        Ok(sorter.push(digests)?)
    })?;
    drop(progress);
    let keys = spool.len();
    let spec = spec(keys);
    let threads = match memory {
        Some(memory) => fit(&mut spool, memory, filter_bytes(&spec)?, common.threads())?,
        None => common.threads(),
    };
    let progress = Mutex::new(common.progress_of_keys("building", keys));
    Ok(make(&spec, &Watched { spool: &spool, progress }, threads)?)
}

/// How many threads can build, with so much memory. Keys for which there is none then go to the temporary file.
fn fit(spool: &mut DigestSpool, memory: u64, filter: u64, threads: usize) -> Result<usize> {
    let keys = spool.len();
    let threads = most_threads(math::shard_bits(keys), threads);
    let needed = |threads| filter.saturating_add(working_bytes(keys, threads));
    let Some(threads) = (1..=threads).rev().find(|&threads| needed(threads) <= memory) else {
        // In whole MiB, so that what is said can be given.
        let least = needed(1).next_multiple_of(1 << 20);
        return Err(anyhow!(
            "--memory {}: building a filter of {} keys takes {} at the least, {} of it for the filter; give that or more",
            report::bytes(memory),
            report::grouped(keys),
            report::bytes(least),
            report::bytes(filter),
        ));
    };
    if needed(threads).saturating_add(spool.bytes_in_memory()) > memory {
        spool.spill()?;
    }
    Ok(threads)
}

/// Shows how many keys have been taken.
struct Watched<'a> {
    spool: &'a DigestSpool,
    progress: Mutex<Progress>,
}

impl DigestShards for Watched<'_> {
    fn len(&self) -> u64 {
        self.spool.len()
    }

    fn take(&self, shard: u64, bits: u32, halves: &mut Vec<u64>) -> Result<(), BuildError> {
        let before = halves.len();
        self.spool.take(shard, bits, halves)?;
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).advance(halves.len() - before);
        Ok(())
    }
}
