//! `mayhap dedup`: the first occurrence of each record.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use mayhap::filters::exact::DigestSet;
use mayhap::{AnyFilter, Digest, Hashing, Insertion, Windowed};
use serde_json::json;

use crate::args::{Common, KeyArgs};
use crate::input::Buffer;
use crate::{YES, numbers, report};

/// False-positive rate of a window where nobody said one: a record in ten thousand is dropped that is no repeat.
const WINDOW_FPR: f64 = 1e-4;

/// Print the first occurrence of each record, in order
///
/// One pass, and the number of records need not be known. Each different key costs 16 bytes and some
/// room in a hash set of 128-bit digests. With --window only the last records are remembered, in memory that does not
/// grow, and a record is printed if it was not among them.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  cat urls.txt | mayhap dedup > fresh.txt\n  mayhap dedup -d, -k2 events.csv\n  find . -print0 | mayhap dedup -z\n  tail -f events.log | mayhap dedup --window 1M"
)]
pub(crate) struct Args {
    /// Files with records; none or - is standard input
    files: Vec<PathBuf>,
    /// Remember the last N records only, and somewhat more: a record that came before is printed again
    #[arg(long, value_name = "N", value_parser = numbers::capacity, allow_hyphen_values = true)]
    window: Option<u64>,
    /// With --window: how often a record may be dropped that is no repeat [default: 1e-4]
    #[arg(
        short = 'p', long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true,
        requires = "window"
    )]
    fpr: Option<f64>,
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

/// The keys that came before.
enum Seen {
    /// All of them, by their digests.
    All(DigestSet),
    /// The last ones. A key that is new is taken for a repeat so often, as a sum of the rates at each.
    Window { filter: Box<Windowed>, wrongly: f64 },
}

impl Seen {
    fn new(args: &Args) -> Result<Self> {
        Ok(match args.window {
            None => Self::All(DigestSet::default()),
            Some(window) => {
                let filter = Windowed::new(window, args.fpr.unwrap_or(WINDOW_FPR))?;
                Self::Window { filter: Box::new(filter), wrongly: 0.0 }
            }
        })
    }

    fn hashing(&self) -> Hashing {
        match self {
            Self::All(_) => Hashing::default(),
            Self::Window { filter, .. } => filter.hashing(),
        }
    }

    /// Notes keys in order; tells of each whether it is new.
    fn note(&mut self, digests: &[Digest], new: &mut Vec<bool>) -> Result<()> {
        new.clear();
        match self {
            Self::All(seen) => new.extend(digests.iter().map(|&digest| seen.insert(digest))),
            Self::Window { filter, wrongly } => {
                let (before, mut outcomes) = (filter.fpr(), Vec::new());
                mayhap::Insert::insert_batch(&mut **filter, digests, &mut outcomes)?;
                new.extend(outcomes.iter().map(|&outcome| outcome == Insertion::New));
                let rate = (before + filter.fpr()) / 2.0;
                *wrongly += rate * new.iter().filter(|&&new| new).count() as f64;
            }
        }
        Ok(())
    }

    fn state(&self) -> State {
        match self {
            Self::All(seen) => {
                let keys = seen.len() as f64;
                State {
                    // Each new key meets the ones before it: n^2 / 2 pairs of 128-bit digests.
                    wrongly: keys * keys / 2.0 / u128::MAX as f64,
                    rate: keys / u128::MAX as f64,
                    memory: seen.allocation_size() as u64,
                    fill: None,
                }
            }
            Self::Window { filter, wrongly } => {
                let report = filter.report();
                let (rate, memory, fill) = (report.fpr_now, report.bits / 8, Some(report.fill));
                State { wrongly: *wrongly, rate, memory, fill }
            }
        }
    }
}

/// What the end report says of the keys that came before.
struct State {
    /// Expected number of wrongly dropped records.
    wrongly: f64,
    rate: f64,
    memory: u64,
    /// Of a filter.
    fill: Option<f64>,
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let started = Instant::now();
    let inputs = args.keys.inputs(&args.files);
    let mut seen = Seen::new(args)?;
    let (selector, hashing) = (args.keys.selector(), seen.hashing());
    let progress = common.progress("deduplicating", &inputs);
    let mut out = BufWriter::with_capacity(1 << 18, report::stdout());
    let (mut read, mut printed) = (0u64, 0u64);
    let (mut chunks, mut buffer) = (inputs.chunks(), Buffer::default());
    let (mut digests, mut new) = (Vec::new(), Vec::new());
    let end = [args.keys.terminator()];
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        selector.digests(&chunk, hashing, &mut digests)?;
        seen.note(&digests, &mut new)?;
        for (record, &new) in chunk.records().zip(&new) {
            read += 1;
            if new != args.repeated {
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

    let State { wrongly, rate, memory, fill } = seen.state();
    let seconds = started.elapsed().as_secs_f64();
    match args.stats {
        None => {}
        Some(StatsFormat::Json) => report::note(json!({
            "read": read, "printed": printed, "dropped": read - printed,
            "expected_wrongly_dropped": wrongly, "fpr_now": rate, "fill": fill, "memory_bytes": memory,
            "seconds": seconds, "records_per_second": read as f64 / seconds.max(1e-9),
        })),
        Some(StatsFormat::Text) => report::note(format_args!(
            "mayhap: read {}, printed {}, dropped {}; expected number of wrongly dropped records {}{}; \
             {} of memory for the keys, {seconds:.2} s, {} records per second",
            report::grouped(read),
            report::grouped(printed),
            report::grouped(read - printed),
            report::short(wrongly),
            fill.map_or(String::new(), |fill| {
                format!("; fill {}, false-positive rate now {}", report::percent(fill), report::rate(rate))
            }),
            report::bytes(memory),
            report::grouped((read as f64 / seconds.max(1e-9)) as u64),
        )),
    }
    Ok(YES)
}
