//! Filters that are made of all of their keys at once, in bounded memory.
//!
//! The keys are hashed and put aside, 8 bytes each: in memory, and in temporary files as far as `--memory` is not enough.
//! Their number tells how large the filter is and how much memory building it takes.

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};
use mayhap::shards::{DigestShards, most_threads, working_bytes};
use mayhap::{AnyFilter, BuildError, Hashing, MakeFromDigests, MakeWithin, Spec, SpecError, math};
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
    let mut spool = spooled(memory, LEAST_SPOOL_BYTES, hashing, (inputs, selector), common)?;
    let keys = spool.len();
    let spec = spec(keys);
    let threads = match memory {
        Some(memory) => fit(&mut spool, memory, filter_bytes(&spec)?, common.threads())?,
        None => common.threads(),
    };
    let progress = Mutex::new(common.progress_of_keys("building", keys));
    make(&spec, &Watched { spool: &spool, progress: &progress }, threads).map_err(|e| with_way_out(e, memory))
}

/// A set within a universe, both in inputs, with at most so many bytes of memory. Neither the memory nor the threads change it.
pub(crate) fn build_within(
    make: MakeWithin,
    filter_bytes: impl Fn(&Spec) -> Result<u64>,
    spec: impl Fn(u64) -> Spec,
    hashing: Hashing,
    memory: Option<u64>,
    (set, universe, selector): (&Inputs, &Inputs, &Selector),
    common: &Common,
) -> Result<Box<dyn AnyFilter>> {
    // A quarter for what is known of each of the two.
    let quarter = memory.map(|memory| memory / 4);
    let least = 4 * LEAST_SPOOL_BYTES;
    let mut set = spooled(quarter, least, hashing, (set, selector), common)?;
    let mut others = spooled(quarter, least, hashing, (universe, selector), common)?;
    let spec = spec(set.len());
    let mut threads = common.threads();
    if let Some(memory) = memory {
        let others_held = (8 * others.len()) >> math::shard_bits(others.len());
        let shard = set.len() >> math::shard_bits(set.len());
        let working = WITHIN_BYTES * (shard + 64) + 2 * others_held;
        // Both stages are put together in the end, and are there twice for a moment.
        let filter = filter_bytes(&spec.with_others(others.len()))?.saturating_mul(2);
        threads = threads_for(
            memory,
            filter,
            threads,
            |threads| working.saturating_mul(threads as u64),
            set.len(),
        )?;
        let working = working.saturating_mul(threads as u64).saturating_add(filter);
        if working.saturating_add(set.bytes_in_memory() + others.bytes_in_memory()) > memory {
            set.spill()?;
            others.spill()?;
        }
    }
    let progress = Mutex::new(common.progress_of_keys("building", set.len() + others.len()));
    let (set, others) =
        (Watched { spool: &set, progress: &progress }, Watched { spool: &others, progress: &progress });
    make(&spec, &set, &others, threads).map_err(|e| with_way_out(e, memory))
}

/// A filter of all keys at once needs memory for them too, and other bits do not change that.
fn with_way_out(error: BuildError, memory: Option<u64>) -> anyhow::Error {
    match error {
        BuildError::Spec(SpecError::Memory { bytes }) => {
            let way_out = match memory {
                None => "limit it with --memory SIZE, which puts hashed keys in temporary files",
                Some(_) => "give a smaller --memory",
            };
            anyhow!(
                "no memory: the system did not grant {} while the filter was built; {way_out}, use fewer --threads, or \
                 use a machine with more memory",
                report::bytes(bytes),
            )
        }
        error => error.into(),
    }
}

/// What a shard of a set within a universe takes for each of its keys while it is built: the half, those that are told in the
/// second stage, which are up to four times as many, and their equations.
const WITHIN_BYTES: u64 = 160;

/// The halves of all keys of the inputs.
fn spooled(
    memory: Option<u64>,
    least: u64,
    hashing: Hashing,
    (inputs, selector): (&Inputs, &Selector),
    common: &Common,
) -> Result<DigestSpool> {
    if let Some(memory) = memory.filter(|&memory| memory < LEAST_SPOOL_BYTES) {
        let (asked, least) = (report::bytes(memory * (least / LEAST_SPOOL_BYTES)), report::bytes(least));
        return Err(anyhow!(
            "--memory {asked}: hashed keys alone take {least} at the least; give that or more"
        ));
    }
    let spool = DigestSpool::new(memory.unwrap_or(u64::MAX));
    let progress = common.progress("hashing", inputs);
    let start = || (Vec::new(), spool.sorter());
    inputs.in_parallel(common.threads(), &progress, start, |(digests, sorter), chunk| {
        selector.digests(chunk, hashing, digests)?;
        Ok(sorter.push(digests)?)
    })?;
    drop(progress);
    Ok(spool)
}

/// How many threads can build, with so much memory. Keys for which there is none then go to the temporary file.
fn fit(spool: &mut DigestSpool, memory: u64, filter: u64, threads: usize) -> Result<usize> {
    let keys = spool.len();
    let threads = most_threads(math::shard_bits(keys), threads);
    let working = |threads| working_bytes(keys, threads);
    let threads = threads_for(memory, filter, threads, working, keys)?;
    let needed = |threads| filter.saturating_add(working(threads));
    if needed(threads).saturating_add(spool.bytes_in_memory()) > memory {
        spool.spill()?;
    }
    Ok(threads)
}

/// As many threads as can work with so much memory, of which the filter takes a part.
fn threads_for(
    memory: u64,
    filter: u64,
    threads: usize,
    working: impl Fn(usize) -> u64,
    keys: u64,
) -> Result<usize> {
    let needed = |threads| filter.saturating_add(working(threads));
    (1..=threads).rev().find(|&threads| needed(threads) <= memory).ok_or_else(|| {
        // In whole MiB, so that what is said can be given.
        let least = needed(1).next_multiple_of(1 << 20);
        anyhow!(
            "--memory {}: building a filter of {} keys takes {} at the least, {} of it for the filter; give that or more",
            report::bytes(memory),
            report::grouped(keys),
            report::bytes(least),
            report::bytes(filter),
        )
    })
}

/// Shows how many keys have been taken.
struct Watched<'a> {
    spool: &'a DigestSpool,
    progress: &'a Mutex<Progress>,
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
