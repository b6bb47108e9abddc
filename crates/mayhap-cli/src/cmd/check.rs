//! `mayhap check`: grep for keys.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use mayhap::key_rules::Spelling;
use mayhap::{AnyFilter, Digest, Hashing};

use crate::args::{Common, KeyArgs, LookupArgs, OpenArgs, Tally};
use crate::cmd::add::check_kind;
use crate::formats::{shown, start_of};
use crate::input::{Buffer, Chunk, Inputs};
use crate::keys::{Selector, is_asked_by_keys};
use crate::same_file::must_not_be_output;
use crate::{NO, YES, report};

/// Print the records whose keys are probably in a filter
///
/// Exit status 0 if a record matched, 1 if none did, 2 for an error.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mayhap check block.mayhap hosts.txt\n  mayhap check block.mayhap access.log -d' ' -k1\n  \
mayhap check -v old.mayhap < urls.txt > fresh.txt\n  \
mayhap check -q block.mayhap --key evil.example && echo blocked\n  \
mayhap check block.mayhap allow.mayhap --which hosts.txt | cut -f1 | sort"
)]
pub(crate) struct Args {
    /// The filter file; with --which, several
    filter: PathBuf,
    /// Files with records; none or - is standard input
    files: Vec<PathBuf>,
    /// Look up keys in several filter files and print their names
    ///
    /// Before each record: the names of the filters that its key is probably in, separated by commas, and a tab. Give the
    /// filter files first; they are recognised by their first bytes.
    #[arg(long)]
    which: bool,
    /// Print the records whose keys are not in
    #[arg(short = 'v', long)]
    invert: bool,
    /// Print only the number of matching records
    #[arg(short, long, conflicts_with_all = ["quick", "annotate"])]
    count: bool,
    /// Print nothing and stop at the first match
    #[arg(short = 'q', long = "quick", conflicts_with = "annotate")]
    quick: bool,
    /// Print line numbers
    #[arg(short = 'n', long)]
    line_number: bool,
    /// Print all records with a column added: mayhap or no
    #[arg(long, conflicts_with = "invert")]
    annotate: bool,
    /// Look up this key instead of reading input; repeatable
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    key: Vec<std::ffi::OsString>,
    #[command(flatten)]
    pub(crate) lookup: LookupArgs,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    open: OpenArgs,
}

impl Args {
    /// Whether it prints records, and not only what it found.
    pub(crate) fn prints_records(&self) -> bool {
        !self.count && !self.quick
    }

    /// The filter files, and the files with records.
    fn split(&self) -> Result<(Vec<&Path>, &[PathBuf])> {
        let more = if self.which { self.files.iter().take_while(|path| is_filter(path)).count() } else { 0 };
        let (filters, files) = self.files.split_at(more);
        if let Some(path) = files.iter().find(|path| self.which && is_filter(path)) {
            anyhow::bail!(
                "{}: a filter file behind files with records; give all filter files first",
                path.display()
            );
        }
        // By its magic: records of whatever kind may look like another program's filter.
        let is_ours = |path: &&PathBuf| start_of(path).is_some_and(|start| &start == b"MYHP");
        if let Some(path) = files.iter().filter(|_| !self.which).find(is_ours) {
            anyhow::bail!("{} is a filter; add --which to ask several", path.display());
        }
        if let Some(path) = files.first().filter(|_| !self.key.is_empty()) {
            anyhow::bail!(
                "{}: files with records cannot be used with --key; leave one of them out",
                path.display()
            );
        }
        Ok(([&self.filter].into_iter().chain(filters).map(PathBuf::as_path).collect(), files))
    }
}

/// Whether a regular file starts as our filter files do, or is one of another program's by its structure. What cannot be
/// read is told when it is read for its records.
fn is_filter(path: &Path) -> bool {
    start_of(path).is_some_and(|start| !matches!(shown(path, start), Ok(None)))
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let (paths, files) = args.split()?;
    let inputs = args.key.is_empty().then(|| args.keys.inputs(files));
    if !args.quick {
        must_not_be_output(inputs.as_ref(), paths.iter().copied())?;
    }
    let (mut filters, mut checked) = (Vec::with_capacity(paths.len()), Vec::with_capacity(paths.len()));
    for path in &paths {
        let opened = args.lookup.open(path, &args.keys, &args.open)?;
        let keys = args.keys.for_file(path, &*opened.filter)?;
        check_kind(path, &*opened.filter, &keys)?;
        filters.push(Asked { filter: opened.filter, keys });
        checked.push(opened.checked);
    }
    let names = paths.iter().map(|path| report::printed_name(path.as_os_str())).collect();
    let out = BufWriter::with_capacity(1 << 16, report::stdout());
    let mut args = args.clone();
    args.keys.crlf |= filters.iter().any(|asked| asked.keys.crlf);
    let args = &args;
    let mut printer = Printer { args, names, out, tally: Tally::default() };
    let asked = match inputs {
        Some(inputs) => check_inputs(args, common, inputs, &filters, &mut printer),
        None => check_arguments(args, &filters, &mut printer),
    };
    let Printer { mut out, tally, .. } = printer;
    // What was found before a bad record is printed.
    out.flush()?;
    asked?;
    if args.count {
        writeln!(out, "{}", tally.matched)?;
    }
    out.flush()?;
    args.lookup.tell(tally, &checked, &args.keys.warnings);
    Ok(if tally.matched > 0 { YES } else { NO })
}

/// A filter, and how keys are taken for it.
struct Asked {
    filter: Box<dyn AnyFilter>,
    keys: KeyArgs,
}

fn check_arguments(args: &Args, filters: &[Asked], printer: &mut Printer<'_>) -> Result<()> {
    let mut scratch = Vec::new();
    for (index, text) in args.key.iter().enumerate() {
        let (record, mut hits) = (text.as_encoded_bytes(), Vec::with_capacity(filters.len()));
        for Asked { filter, keys } in filters {
            let key = keys.selector_for(&**filter);
            let key = key.key(record, &mut scratch);
            let key = key.map_err(|e| e.context(format!("--key number {}", index + 1)))?;
            hits.push(filter.contains(key));
        }
        if printer.print(record, index as u64 + 1, |filter| hits[filter])? {
            break;
        }
    }
    Ok(())
}

fn check_inputs(
    args: &Args,
    common: &Common,
    mut inputs: Inputs,
    filters: &[Asked],
    printer: &mut Printer<'_>,
) -> Result<()> {
    let selectors: Vec<Selector> =
        filters.iter().map(|asked| asked.keys.selector_for(&*asked.filter)).collect();
    inputs.numbered |= args.line_number || selectors.iter().any(Selector::can_fail);
    inputs.warns_of_carriage_returns &= !args.keys.crlf;
    // Keys are hashed again for a filter whose keys are spelled differently.
    let spellings: Vec<Spelling> = filters.iter().map(|asked| asked.keys.rules().spelling).collect();
    let progress = common.progress("checking", &inputs);
    let (mut chunks, mut buffer) = (inputs.chunks(), Buffer::default());
    let mut hits: Vec<Vec<bool>> = vec![Vec::new(); filters.len()];
    let mut digests = Digests::default();
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        digests.made = None;
        let mut good = Ok(());
        for (index, (Asked { filter, .. }, hits)) in filters.iter().zip(&mut hits).enumerate() {
            hits.clear();
            let asked = if is_asked_by_keys(&**filter) {
                selectors[index].ask(&chunk, &**filter, hits)
            } else {
                let made = (filter.hashing(), &spellings[index]);
                let (digests, made) = digests.of(&chunk, &selectors[index], made);
                filter.contains_batch(digests, hits);
                made
            };
            good = good.and(asked);
        }
        // All records, or those before a bad one.
        let answered = hits.iter().map(Vec::len).min().unwrap_or(0);
        for (index, record) in chunk.printed().take(answered).enumerate() {
            let number = chunk.first_record + index as u64;
            if printer.print(record, number, |filter| hits[filter][index])? {
                return Ok(());
            }
        }
        good?;
        if chunk.last_for_now {
            printer.out.flush()?;
        }
        buffer = chunk.bytes;
    }
    Ok(())
}

/// The digests of a chunk. Filters that hash alike share them.
#[derive(Default)]
struct Digests<'a> {
    digests: Vec<Digest>,
    /// How they were made, if they are those of this chunk. (Filters of one hashing take keys of a kind alike.)
    made: Option<(Hashing, &'a Spelling)>,
}

impl<'a> Digests<'a> {
    /// Those of the records before a bad one, and what is wrong with that.
    fn of(
        &mut self,
        chunk: &Chunk,
        selector: &Selector,
        made: (Hashing, &'a Spelling),
    ) -> (&[Digest], Result<()>) {
        let mut good = Ok(());
        if self.made != Some(made) {
            good = selector.digests(chunk, made.0, &mut self.digests);
            self.made = Some(made);
        }
        (&self.digests, good)
    }
}

struct Printer<'a> {
    args: &'a Args,
    /// The names of the filter files.
    names: Vec<Cow<'a, [u8]>>,
    out: BufWriter<report::Stdout>,
    tally: Tally,
}

impl Printer<'_> {
    /// Prints a record if it is wanted; `hit` tells whether it is perhaps in a filter. `true`: that is enough.
    fn print(&mut self, record: &[u8], number: u64, hit: impl Fn(usize) -> bool) -> io::Result<bool> {
        let any = (0..self.names.len()).any(&hit);
        let wanted = any != self.args.invert;
        self.tally.read += 1;
        self.tally.matched += u64::from(wanted);
        if self.args.quick {
            return Ok(wanted);
        }
        if self.args.count || !(wanted || self.args.annotate) {
            return Ok(false);
        }
        self.tally.printed += 1;
        if self.args.which {
            let mut between: &[u8] = b"";
            for (_, name) in self.names.iter().enumerate().filter(|&(filter, _)| hit(filter)) {
                self.out.write_all(between)?;
                self.out.write_all(name)?;
                between = b",";
            }
            self.out.write_all(b"\t")?;
        }
        if self.args.line_number {
            write!(self.out, "{number}:")?;
        }
        let (record, carriage_return) = self.args.keys.before_carriage_return(record);
        self.out.write_all(record)?;
        if self.args.annotate {
            self.out.write_all(self.args.keys.between())?;
            self.out.write_all(if any { b"mayhap" } else { b"no" })?;
        }
        self.out.write_all(carriage_return)?;
        self.out.write_all(&[self.args.keys.terminator()])?;
        Ok(false)
    }
}
