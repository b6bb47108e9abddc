//! `mayhap count`: how often did a key come?

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use mayhap::Count;

use crate::args::{Common, KeyArgs, LookupArgs, OpenArgs, Tally};
use crate::cmd::add::{check_kind, need};
use crate::input::{Buffer, Inputs};
use crate::same_file::must_not_be_output;
use crate::{YES, report};

/// Print each record with how often its key was inserted (an estimate)
///
/// Prints the record, a tab and the count, which is 0 for a key that is not in. A count is never too low (almost never with
/// the counting rule recurring-minimum), up to the largest value of a counter.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap build --counts -o hits.mayhap -d' ' -k1 access.log\n  \
mayhap count hits.mayhap --key 192.0.2.1\n  \
mayhap count counts.mayhap urls.txt | awk -F'\\t' '$2 > 1'")]
pub(crate) struct Args {
    /// The filter file
    filter: PathBuf,
    /// Files with records; none or - is standard input
    files: Vec<PathBuf>,
    /// Look up this key instead of reading input; repeatable
    #[arg(long, value_name = "KEY", conflicts_with = "files", allow_hyphen_values = true)]
    key: Vec<std::ffi::OsString>,
    #[command(flatten)]
    lookup: LookupArgs,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    open: OpenArgs,
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let opened = args.lookup.open(&args.filter, &args.keys, &args.open)?;
    let filter = &*opened.filter;
    need(&args.filter, filter, "count", |can| can.counts)?;
    let keys = args.keys.for_file(&args.filter, filter)?;
    check_kind(&args.filter, filter, &keys)?;
    let args = &Args { keys, ..args.clone() };
    let count = filter.as_count().ok_or(filter.unsupported("count"))?;
    let mut out = BufWriter::with_capacity(1 << 16, report::stdout());
    let inputs = args.key.is_empty().then(|| args.keys.inputs(&args.files));
    must_not_be_output(inputs.as_ref(), [&*args.filter])?;
    let printed = match inputs {
        Some(inputs) => count_inputs(args, common, (&inputs, count), &mut out),
        None => count_arguments(args, count, &mut out),
    };
    // What was found before a bad record is printed.
    out.flush()?;
    args.lookup.tell(printed?, &[opened.checked], &args.keys.warnings);
    Ok(YES)
}

fn count_arguments(args: &Args, filter: &dyn Count, out: &mut impl Write) -> Result<Tally> {
    let (selector, mut scratch, mut tally) = (args.keys.selector(), Vec::new(), Tally::default());
    for (index, text) in args.key.iter().enumerate() {
        let record = text.as_encoded_bytes();
        let key = selector
            .key(record, &mut scratch)
            .map_err(|e| e.context(format!("--key number {}", index + 1)))?;
        let count = filter.count_digest(filter.hashing().digest(key));
        tally.note_printed(count > 0);
        print(args, out, record, count)?;
    }
    Ok(tally)
}

fn count_inputs(
    args: &Args,
    common: &Common,
    (inputs, filter): (&Inputs, &dyn Count),
    out: &mut impl Write,
) -> Result<Tally> {
    let selector = args.keys.selector();
    let progress = common.progress("counting", inputs);
    let (mut chunks, mut buffer) = (inputs.chunks(), Buffer::default());
    let (mut digests, mut counts, mut tally) = (Vec::new(), Vec::new(), Tally::default());
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        // Of all records, or of those before a bad one.
        let good = selector.digests(&chunk, filter.hashing(), &mut digests);
        counts.clear();
        filter.count_batch(&digests, &mut counts);
        for (record, &count) in chunk.printed().zip(&counts) {
            tally.note_printed(count > 0);
            print(args, out, record, count)?;
        }
        good?;
        if chunk.last_for_now {
            out.flush()?;
        }
        buffer = chunk.bytes;
    }
    Ok(tally)
}

/// A tab, whatever is between the columns of the record: the count is always behind the last one.
fn print(args: &Args, out: &mut impl Write, record: &[u8], count: u64) -> io::Result<()> {
    let (record, carriage_return) = args.keys.before_carriage_return(record);
    out.write_all(record)?;
    write!(out, "\t{count}")?;
    out.write_all(carriage_return)?;
    out.write_all(&[args.keys.terminator()])
}
