//! `mayhap label`: which of many sets is a key in?

use std::io::{self, BufWriter, Write};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use mayhap::{AnyFilter, Associate, Association, Digest, Hashing, Label, Labels};

use crate::args::{Common, KeyArgs, LookupArgs, OpenArgs, Tally};
use crate::cmd::add::{check_kind, need};
use crate::input::{Buffer, Inputs};
use crate::same_file::must_not_be_output;
use crate::{YES, report};

/// Print each record with the labels that its key probably has
///
/// Prints the record, a tab and the label, which is empty for a key that has none. Several labels are separated by
/// commas. In the family spatial a wrong label is always one that was given later than the right one. Of the two sets A and B
/// of shifting-association a key of both has A,B; what is left open is said: "A or B", "A, perhaps B", "A or B or both".
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
    let sets = Sets::of(&args.filter, filter)?;
    let keys = args.keys.for_file(&args.filter, filter)?;
    check_kind(&args.filter, filter, &keys)?;
    let args = &Args { keys, ..args.clone() };
    let mut out = BufWriter::with_capacity(1 << 16, report::stdout());
    let inputs = args.key.is_empty().then(|| args.keys.inputs(&args.files));
    must_not_be_output(inputs.as_ref(), [&*args.filter])?;
    let printed = match inputs {
        Some(inputs) => label_inputs(args, common, (&inputs, sets), &mut out),
        None => label_arguments(args, sets, &mut out),
    };
    // What was found before a bad record is printed.
    out.flush()?;
    args.lookup.tell(printed?, &[opened.checked], &args.keys.warnings);
    Ok(YES)
}

/// The sets of a filter: areas, each of which may have a name, or two that are told together.
#[derive(Clone, Copy)]
enum Sets<'a> {
    Areas(&'a dyn Label),
    Two(&'a dyn Associate),
}

/// What a filter says of one key.
#[derive(PartialEq)]
enum Answer {
    Areas(Labels),
    Two(Association),
}

impl Answer {
    fn is_in_any(&self) -> bool {
        !matches!(self, Self::Areas(Labels::None) | Self::Two(Association::Neither))
    }
}

impl<'a> Sets<'a> {
    fn of(path: &Path, filter: &'a dyn AnyFilter) -> Result<Self> {
        if let Some(two) = filter.as_associate() {
            return Ok(Self::Two(two));
        }
        if let Some(areas) = filter.as_label() {
            return Ok(Self::Areas(areas));
        }
        need(path, filter, "label", |can| can.labels).map_err(|error| match filter.program() {
            Some(_) => error,
            None => anyhow!("{error}, or for two sets with --family shifting-association"),
        })?;
        Err(filter.unsupported("label").into())
    }

    fn hashing(self) -> Hashing {
        match self {
            Self::Areas(filter) => filter.hashing(),
            Self::Two(filter) => filter.hashing(),
        }
    }

    fn ask(self, digests: &[Digest], answers: &mut Vec<Answer>) {
        match self {
            Self::Areas(filter) => {
                let mut labels = Vec::with_capacity(digests.len());
                filter.label_batch(digests, &mut labels);
                answers.extend(labels.into_iter().map(Answer::Areas));
            }
            Self::Two(filter) => {
                let mut associations = Vec::with_capacity(digests.len());
                filter.association_batch(digests, &mut associations);
                answers.extend(associations.into_iter().map(Answer::Two));
            }
        }
    }

    /// A set without a name is called by its number.
    fn print_name(self, out: &mut impl Write, set: NonZeroU16) -> io::Result<()> {
        let name = match self {
            Self::Areas(filter) => filter.area_name(set),
            Self::Two(filter) => {
                filter.set_names().get(usize::from(set.get()) - 1).copied().filter(|name| !name.is_empty())
            }
        };
        match name {
            Some(name) => out.write_all(report::printed(name).as_bytes()),
            None => write!(out, "{set}"),
        }
    }

    fn print(self, out: &mut impl Write, answer: &Answer) -> io::Result<()> {
        let (one, two) = (NonZeroU16::MIN, NonZeroU16::MIN.saturating_add(1));
        let mut names = |first, between: &str, second| {
            self.print_name(out, first)?;
            out.write_all(between.as_bytes())?;
            self.print_name(out, second)
        };
        match answer {
            Answer::Areas(Labels::None) | Answer::Two(Association::Neither) => Ok(()),
            Answer::Areas(Labels::One(area)) => self.print_name(out, *area),
            Answer::Areas(Labels::Several(areas)) => {
                for (index, area) in areas.iter().enumerate() {
                    if index > 0 {
                        out.write_all(b",")?;
                    }
                    self.print_name(out, *area)?;
                }
                Ok(())
            }
            Answer::Two(Association::FirstOnly) => self.print_name(out, one),
            Answer::Two(Association::SecondOnly) => self.print_name(out, two),
            Answer::Two(Association::Both) => names(one, ",", two),
            Answer::Two(Association::FirstAndPerhapsSecond) => names(one, ", perhaps ", two),
            Answer::Two(Association::SecondAndPerhapsFirst) => names(two, ", perhaps ", one),
            Answer::Two(Association::OneOfBoth) => names(one, " or ", two),
            Answer::Two(Association::Unknown) => {
                names(one, " or ", two)?;
                out.write_all(b" or both")
            }
        }
    }
}

fn label_arguments(args: &Args, sets: Sets<'_>, out: &mut impl Write) -> Result<Tally> {
    let (selector, mut scratch, mut tally) = (args.keys.selector(), Vec::new(), Tally::default());
    let mut answers = Vec::new();
    for (index, text) in args.key.iter().enumerate() {
        let record = text.as_encoded_bytes();
        let key = selector
            .key(record, &mut scratch)
            .map_err(|e| e.context(format!("--key number {}", index + 1)))?;
        answers.clear();
        sets.ask(&[sets.hashing().digest(key)], &mut answers);
        for answer in &answers {
            tally.note_printed(answer.is_in_any());
            print(args, sets, out, record, answer)?;
        }
    }
    Ok(tally)
}

fn label_inputs(
    args: &Args,
    common: &Common,
    (inputs, sets): (&Inputs, Sets<'_>),
    out: &mut impl Write,
) -> Result<Tally> {
    let selector = args.keys.selector();
    let progress = common.progress("labelling", inputs);
    let (mut chunks, mut buffer) = (inputs.chunks(), Buffer::default());
    let (mut digests, mut answers, mut tally) = (Vec::new(), Vec::new(), Tally::default());
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        // Of all records, or of those before a bad one.
        let good = selector.digests(&chunk, sets.hashing(), &mut digests);
        answers.clear();
        sets.ask(&digests, &mut answers);
        for (record, answer) in chunk.printed().zip(&answers) {
            tally.note_printed(answer.is_in_any());
            print(args, sets, out, record, answer)?;
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
    sets: Sets<'_>,
    out: &mut impl Write,
    record: &[u8],
    answer: &Answer,
) -> io::Result<()> {
    let (record, carriage_return) = args.keys.before_carriage_return(record);
    out.write_all(record)?;
    out.write_all(b"\t")?;
    sets.print(out, answer)?;
    out.write_all(carriage_return)?;
    out.write_all(&[args.keys.terminator()])
}
