//! `mayhap dedup`: the first occurrence of each record.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use mayhap::Hashing;
use mayhap::filters::exact::DigestSet;
use serde_json::json;

use crate::args::{Common, KeyArgs};
use crate::input::Buffer;
use crate::{YES, report};

/// Print the first occurrence of each record, in order
///
/// One pass, and the number of records need not be known. Each different key costs 16 bytes and some
/// room in a hash set of 128-bit digests.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  cat urls.txt | mayhap dedup > fresh.txt\n  mayhap dedup -d, -k2 events.csv\n  find . -print0 | mayhap dedup -z"
)]
pub(crate) struct Args {
    /// Files with records; none or - is standard input
    files: Vec<PathBuf>,
    /// Print the repeats instead
    #[arg(long)]
    repeated: bool,
    /// Print a report to standard error at the end
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    stats: Option<StatsFormat>,
    #[command(flatten)]
    keys: KeyArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum StatsFormat {
    Text,
    Json,
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let started = Instant::now();
    let inputs = args.keys.inputs(&args.files);
    let (selector, hashing) = (args.keys.selector(), Hashing::default());
    let progress = common.progress("deduplicating", &inputs);
    let mut seen = DigestSet::default();
    let mut out = BufWriter::with_capacity(1 << 18, report::stdout());
    let (mut read, mut printed) = (0u64, 0u64);
    let (mut chunks, mut buffer, mut digests) = (inputs.chunks(), Buffer::default(), Vec::new());
    let end = [args.keys.terminator()];
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        selector.digests(&chunk, hashing, &mut digests)?;
        for (record, &digest) in chunk.records().zip(&digests) {
            read += 1;
            if seen.insert(digest) != args.repeated {
                printed += 1;
                out.write_all(record)?;
                out.write_all(&end)?;
            }
        }
        if chunk.last_for_now {
            out.flush()?;
        }
        buffer = chunk.bytes;
    }
    out.flush()?;
    drop(progress);

    let keys = seen.len() as f64;
    // Each new key meets the ones before it: n^2 / 2 pairs of 128-bit digests.
    let wrongly = keys * keys / 2.0 / u128::MAX as f64;
    let rate = keys / u128::MAX as f64;
    let memory = seen.allocation_size();
    let seconds = started.elapsed().as_secs_f64();
    match args.stats {
        None => {}
        Some(StatsFormat::Json) => report::note(json!({
            "read": read, "printed": printed, "dropped": read - printed,
            "expected_wrongly_dropped": wrongly, "fpr_now": rate, "memory_bytes": memory,
            "seconds": seconds, "records_per_second": read as f64 / seconds.max(1e-9),
        })),
        Some(StatsFormat::Text) => report::note(format_args!(
            "mayhap: read {}, printed {}, dropped {}; expected number of wrongly dropped records {}; \
             {} of memory for the keys, {seconds:.2} s, {} records per second",
            report::grouped(read),
            report::grouped(printed),
            report::grouped(read - printed),
            report::short(wrongly),
            report::bytes(memory as u64),
            report::grouped((read as f64 / seconds.max(1e-9)) as u64),
        )),
    }
    Ok(YES)
}
