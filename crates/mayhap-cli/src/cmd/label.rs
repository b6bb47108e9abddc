//! `mayhap label`: which of many sets is a key in?

use std::io::{self, BufWriter, Write};
use std::num::NonZeroU16;
use std::path::PathBuf;

use anyhow::Result;
use mayhap::{Label, Labels};

use crate::args::{Common, KeyArgs, LookupArgs, OpenArgs, Tally};
use crate::cmd::add::{check_kind, need};
use crate::input::{Buffer, Inputs};
use crate::same_file::must_not_be_output;
use crate::{YES, report};

/// Print each record with the labels that its key probably has
///
/// Prints the record, a tab and the label, which is empty for a key that has none. Several labels are separated by
/// commas. In the family spatial a wrong label is always one that was given later than the right one.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mayhap build --label allow=allow.txt --label block=block.txt -o hosts.mayhap\n  \
mayhap label hosts.mayhap --key evil.example\n  mayhap label hosts.mayhap hosts.txt | cut -f2 | sort | uniq -c"
)]
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
    need(&args.filter, filter, "label", |can| can.labels)?;
    let keys = args.keys.for_file(&args.filter, filter)?;
    check_kind(&args.filter, filter, &keys)?;
    let args = &Args { keys, ..args.clone() };
    let label = filter.as_label().ok_or(filter.unsupported("label"))?;
    let mut out = BufWriter::with_capacity(1 << 16, report::stdout());
    let inputs = args.key.is_empty().then(|| args.keys.inputs(&args.files));
    must_not_be_output(inputs.as_ref(), [&*args.filter])?;
    let printed = match inputs {
        Some(inputs) => label_inputs(args, common, (&inputs, label), &mut out),
        None => label_arguments(args, label, &mut out),
    };
    // What was found before a bad record is printed.
    out.flush()?;
    args.lookup.tell(printed?, &[opened.checked], &args.keys.warnings);
    Ok(YES)
}

fn label_arguments(args: &Args, filter: &dyn Label, out: &mut impl Write) -> Result<Tally> {
    let (selector, mut scratch, mut tally) = (args.keys.selector(), Vec::new(), Tally::default());
    for (index, text) in args.key.iter().enumerate() {
        let record = text.as_encoded_bytes();
        let key = selector
            .key(record, &mut scratch)
            .map_err(|e| e.context(format!("--key number {}", index + 1)))?;
        let labels = filter.label_digest(filter.hashing().digest(key));
        tally.note_printed(labels != Labels::None);
        print(args, filter, out, record, &labels)?;
    }
    Ok(tally)
}

fn label_inputs(
    args: &Args,
    common: &Common,
    (inputs, filter): (&Inputs, &dyn Label),
    out: &mut impl Write,
) -> Result<Tally> {
    let selector = args.keys.selector();
    let progress = common.progress("labelling", inputs);
    let (mut chunks, mut buffer) = (inputs.chunks(), Buffer::default());
    let (mut digests, mut labels, mut tally) = (Vec::new(), Vec::new(), Tally::default());
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        // Of all records, or of those before a bad one.
        let good = selector.digests(&chunk, filter.hashing(), &mut digests);
        labels.clear();
        filter.label_batch(&digests, &mut labels);
        for (record, labels) in chunk.printed().zip(&labels) {
            tally.note_printed(*labels != Labels::None);
            print(args, filter, out, record, labels)?;
        }
        good?;
        if chunk.last_for_now {
            out.flush()?;
        }
        buffer = chunk.bytes;
    }
    Ok(tally)
}

/// A tab, whatever is between the columns of the record: the labels are always behind the last one.
fn print(
    args: &Args,
    filter: &dyn Label,
    out: &mut impl Write,
    record: &[u8],
    labels: &Labels,
) -> io::Result<()> {
    let (record, carriage_return) = args.keys.before_carriage_return(record);
    out.write_all(record)?;
    out.write_all(b"\t")?;
    match labels {
        Labels::None => {}
        Labels::One(area) => print_label(filter, out, *area)?,
        Labels::Several(areas) => {
            for (index, area) in areas.iter().enumerate() {
                if index > 0 {
                    out.write_all(b",")?;
                }
                print_label(filter, out, *area)?;
            }
        }
    }
    out.write_all(carriage_return)?;
    out.write_all(&[args.keys.terminator()])
}

/// An area without a name is called by its number.
fn print_label(filter: &dyn Label, out: &mut impl Write, area: NonZeroU16) -> io::Result<()> {
    match filter.area_name(area) {
        Some(name) => out.write_all(report::printed(name).as_bytes()),
        None => write!(out, "{area}"),
    }
}
