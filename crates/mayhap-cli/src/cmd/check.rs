//! `mayhap check`: grep for keys.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use mayhap::AnyFilter;

use crate::args::{Common, KeyArgs, OpenArgs};
use crate::cmd::add::check_kind;
use crate::input::Buffer;
use crate::{NO, YES, report};

/// Print the records whose keys are perhaps in
///
/// Exit status 0 if a record was printed (or would have been), 1 if none, 2 for an error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap check bad.mayhap access.log -d' ' -k1\n  \
mayhap check -v seen.mayhap < urls.txt > fresh.txt\n  mayhap check -q bad.mayhap --key evil.example && echo blocked")]
pub(crate) struct Args {
    /// The filter file
    filter: PathBuf,
    /// Files with records; none or - is standard input
    files: Vec<PathBuf>,
    /// Print those that are certainly not in
    #[arg(short = 'v', long)]
    invert: bool,
    /// Print only how many
    #[arg(short, long, conflicts_with_all = ["quick", "annotate"])]
    count: bool,
    /// Print nothing and stop at the first
    #[arg(short = 'q', long = "quick", conflicts_with = "annotate")]
    quick: bool,
    /// Print line numbers
    #[arg(short = 'n', long)]
    line_number: bool,
    /// Print all records, with a further column: mayhap or no
    #[arg(long, conflicts_with = "invert")]
    annotate: bool,
    /// Ask for this key instead of reading any; can be repeated
    #[arg(long, value_name = "KEY", conflicts_with = "files", allow_hyphen_values = true)]
    key: Vec<std::ffi::OsString>,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    open: OpenArgs,
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let opened = args.open.open(&args.filter)?;
    let filter = &*opened.filter;
    check_kind(&args.filter, filter.hashing(), filter.family(), &args.keys)?;
    let mut printer = Printer { args, out: BufWriter::with_capacity(1 << 16, report::stdout()), matched: 0 };
    if args.key.is_empty() {
        check_inputs(args, common, filter, &mut printer)?;
    } else {
        check_arguments(args, filter, &mut printer)?;
    }
    let Printer { mut out, matched, .. } = printer;
    if args.count {
        writeln!(out, "{matched}")?;
    }
    out.flush()?;
    Ok(if matched > 0 { YES } else { NO })
}

fn check_arguments(args: &Args, filter: &dyn AnyFilter, printer: &mut Printer<'_>) -> Result<()> {
    let (selector, mut scratch) = (args.keys.selector(), Vec::new());
    for (index, text) in args.key.iter().enumerate() {
        let record = text.as_encoded_bytes();
        let key = selector
            .key(record, &mut scratch)
            .map_err(|e| e.context(format!("--key number {}", index + 1)))?;
        if printer.print(record, index as u64 + 1, filter.contains(key))? {
            break;
        }
    }
    Ok(())
}

fn check_inputs(
    args: &Args,
    common: &Common,
    filter: &dyn AnyFilter,
    printer: &mut Printer<'_>,
) -> Result<()> {
    let mut inputs = args.keys.inputs(&args.files);
    inputs.numbered |= args.line_number;
    let (selector, hashing) = (args.keys.selector(), filter.hashing());
    let progress = common.progress("checking", &inputs);
    let (mut chunks, mut buffer) = (inputs.chunks(), Buffer::default());
    let (mut digests, mut hits) = (Vec::new(), Vec::new());
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        selector.digests(&chunk, hashing, &mut digests)?;
        hits.clear();
        filter.contains_batch(&digests, &mut hits);
        for (index, (record, &hit)) in chunk.records().zip(&hits).enumerate() {
            if printer.print(record, chunk.first_record + index as u64, hit)? {
                return Ok(());
            }
        }
        if chunk.last_for_now {
            printer.out.flush()?;
        }
        buffer = chunk.bytes;
    }
    Ok(())
}

struct Printer<'a> {
    args: &'a Args,
    out: BufWriter<report::Stdout>,
    matched: u64,
}

impl Printer<'_> {
    /// Prints a record if it is wanted. `true`: that is enough.
    fn print(&mut self, record: &[u8], number: u64, hit: bool) -> io::Result<bool> {
        let wanted = hit != self.args.invert;
        self.matched += u64::from(wanted);
        if self.args.quick {
            return Ok(wanted);
        }
        if self.args.count || !(wanted || self.args.annotate) {
            return Ok(false);
        }
        if self.args.line_number {
            write!(self.out, "{number}:")?;
        }
        self.out.write_all(record)?;
        if self.args.annotate {
            self.out.write_all(self.args.keys.between())?;
            self.out.write_all(if hit { b"mayhap" } else { b"no" })?;
        }
        self.out.write_all(&[self.args.keys.terminator()])?;
        Ok(false)
    }
}
