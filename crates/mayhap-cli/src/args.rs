//! The command line's definition: what every command shares. Each command's own arguments stand in its
//! file. Help, completions and manual pages are all made from this.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::{ArgAction, Args, Parser, Subcommand};
use mayhap::{AnyFilter, ForeignHash, Hashing, Summing};
use mayhap_store::{Access, Check, Checked, Opened};
use serde_json::json;

use crate::cmd;
use crate::cmd::dedup::StatsFormat;
use crate::formats::{FileFormat, FormatArgs};
use crate::input::{Inputs, MAX_RECORD, Warnings};
use crate::keys::{self, Column, Delimiter, JsonField, JsonPath, Kind, Selector};
use crate::numbers;
use crate::progress::{Manner, Progress, Unit};
use crate::report;
use crate::secret::SecretArgs;
use crate::url_key::{self, UrlRule};

/// Is this key in the set? "No", or "mayhap".
///
/// Compact files tell you whether a key is in a set too big for memory: a filter finds every key that was inserted, and
/// admits an absent key only at the false-positive rate that you request.
#[derive(Debug, Parser)]
#[command(name = "mayhap", version, max_term_width = 80, infer_subcommands = false)]
#[command(
    after_help = "Examples:\n  mayhap dedup urls.txt > fresh.txt\n  mayhap build -o block.mayhap block.txt\n  \
mayhap check block.mayhap hosts.txt\n  mayhap demo\n\n\
Numbers: -n 10M, 1e7; -p 1%, 0.01, 1e-6, 1in1M; --memory 64MiB, 1GB.\n\
Exit status: 0 success or yes, 1 no (check, remove, test), 2 error."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One variant per command; its file is `cmd/<name>.rs`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Dedup(cmd::dedup::Args),
    Build(Box<cmd::build::Args>),
    Add(cmd::add::Args),
    Remove(cmd::remove::Args),
    Check(cmd::check::Args),
    Count(cmd::count::Args),
    Label(cmd::label::Args),
    Test(cmd::test::Args),
    Info(cmd::info::Args),
    Merge(cmd::merge::Args),
    Fold(cmd::fold::Args),
    Convert(cmd::convert::Args),
    Calc(cmd::calc::Args),
    Advise(cmd::advise::Args),
    Eval(cmd::eval::Args),
    Families(cmd::families::Args),
    Sort(cmd::sort::Args),
    Explain(cmd::explain::Args),
    Hash(cmd::hash::Args),
    Demo(cmd::demo::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

impl Command {
    /// Whether it prints records while it reads others.
    pub(crate) fn prints_records(&self) -> bool {
        match self {
            Self::Check(args) => args.prints_records(),
            Self::Dedup(_) | Self::Count(_) | Self::Label(_) => true,
            _ => false,
        }
    }

    /// What there is to say about the inputs of a command that reads keys.
    pub(crate) fn warnings(&self) -> Warnings {
        let keys = match self {
            Self::Dedup(args) => &args.keys,
            Self::Build(args) => &args.keys,
            Self::Add(args) => &args.keys,
            Self::Remove(args) => &args.keys,
            Self::Check(args) => &args.keys,
            Self::Count(args) => &args.keys,
            Self::Label(args) => &args.keys,
            Self::Test(args) => &args.keys,
            _ => return Warnings::default(),
        };
        keys.warnings.clone()
    }
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Common {
    /// Number of threads [default: the number of cores]
    #[arg(long, global = true, hide_short_help = true, value_name = "N", value_parser = threads)]
    threads: Option<usize>,
    /// Suppress warnings and progress
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Always show progress, as plain lines if standard error is not a terminal or records are printed to one
    #[arg(long, global = true, hide_short_help = true, overrides_with = "no_progress")]
    progress: bool,
    /// Never show progress
    #[arg(long, global = true, hide_short_help = true)]
    no_progress: bool,
    /// Whether the command prints records to a terminal while it reads.
    #[arg(skip)]
    pub(crate) records_to_terminal: bool,
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err(format!("{text:?} is not a number of threads from 1 to 1024")),
    }
}

impl Common {
    /// How many threads to use.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// A progress bar for reading these inputs.
    pub(crate) fn progress(&self, what: &'static str, inputs: &Inputs) -> Progress {
        Progress::new(self.manner(), what, Unit::Bytes, inputs.total_bytes())
    }

    /// A progress bar for work on so many keys.
    pub(crate) fn progress_of_keys(&self, what: &'static str, keys: u64) -> Progress {
        Progress::new(self.manner(), what, Unit::Keys, Some(keys))
    }

    /// A progress bar for an unknown number of keys.
    pub(crate) fn progress_of_any_keys(&self, what: &'static str) -> Progress {
        Progress::new(self.manner(), what, Unit::Keys, None)
    }

    /// A step of long work, for those who want to see progress and cannot be told a share.
    pub(crate) fn tell_progress(&self, step: impl std::fmt::Display) {
        if self.manner() != Manner::Hidden {
            report::note(format_args!("mayhap: {step}"));
        }
    }

    fn manner(&self) -> Manner {
        let wanted = match (self.progress, self.no_progress || self.quiet) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        Manner::new(wanted, std::io::stderr().is_terminal(), self.records_to_terminal)
    }

    /// Says that a file is waited for, if another process holds it. To be called before it is changed or replaced.
    pub(crate) fn say_if_locked(&self, path: &Path) {
        if mayhap_store::is_locked(path) {
            self.say_waiting(path);
        }
    }

    /// Says that a file is waited for.
    pub(crate) fn say_waiting(&self, path: &Path) {
        self.say(format_args!("{}: waiting for another process that uses it", path.display()));
    }

    /// A word to the user on standard error.
    pub(crate) fn say(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            report::note(format_args!("mayhap: {text}"));
        }
    }
}

/// Options of every command that reads keys.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Keys")]
pub(crate) struct KeyArgs {
    /// Records end with NUL instead of a newline
    #[arg(short = 'z', long)]
    pub(crate) null: bool,
    /// Drop a carriage return before the newline
    #[arg(long, conflicts_with = "null")]
    pub(crate) crlf: bool,
    /// Column separator [default: a tab, with --field]
    ///
    /// A text, or the escapes \t, \0, \\ and \xHH.
    #[arg(short, long, value_name = "C", value_parser = keys::delimiter, requires = "field")]
    delimiter: Option<Delimiter>,
    /// The key is column N, from 1; the whole record is printed
    #[arg(short = 'k', long, value_name = "N", value_parser = field)]
    pub(crate) field: Option<usize>,
    /// Treat a quote at the start of a field as a plain byte; without this it is an error, since quoted CSV is not read
    #[arg(long, requires = "delimiter")]
    literal_quotes: bool,
    /// The key is a field of a JSON line, such as /user/id
    ///
    /// The key of a string is its text. Other values are told from strings: 1 and "1" are two keys.
    #[arg(long, value_name = "POINTER", value_parser = keys::json_path, conflicts_with = "field")]
    pub(crate) json_key: Option<JsonPath>,
    /// Use the text of every JSON value, so that 1 and "1" are one key, as in a list of plain ids
    #[arg(long, requires = "json_key")]
    pub(crate) json_raw: bool,
    /// Remove white space around the key, also U+3000 of Chinese texts
    #[arg(long)]
    pub(crate) trim: bool,
    /// Compare keys case-insensitively (ASCII)
    #[arg(long)]
    pub(crate) ignore_case: bool,
    /// Key type [default: bytes, or as in the filter file]
    ///
    /// How the text of a record becomes the bytes of its key.
    #[arg(long = "as", value_name = "KIND", value_enum)]
    pub(crate) kind: Option<Kind>,
    /// Normalize keys that are URLs
    ///
    /// Lower-case host, no default port, no fragment, no dot segments, query names sorted. A key that is not a URL is used
    /// as it is.
    #[arg(long, conflicts_with = "kind")]
    pub(crate) url: bool,
    /// Remove these query names from URLs, separated by commas: gclid,utm_* or * for all (implies --url)
    #[arg(long, value_name = "LIST", value_parser = url_key::stripping, conflicts_with = "kind")]
    pub(crate) strip_query: Option<UrlRule>,
    /// Do not decompress input
    #[arg(long)]
    no_decompress: bool,
    /// Longest accepted record [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = numbers::size, allow_hyphen_values = true)]
    max_record: Option<u64>,
    /// Whether a command needs the numbers of all records for its messages.
    #[arg(skip)]
    pub(crate) numbered: bool,
    /// JSON values are looked up by their text, as in a file of plain keys.
    #[arg(skip)]
    pub(crate) json_as_text: bool,
    /// Whether a JSON value was a key that is no string.
    #[arg(skip)]
    pub(crate) others: Arc<AtomicBool>,
    /// What there is to say about the inputs. `dedup --stats=json` takes it for its report; the rest is said at the end.
    #[arg(skip)]
    pub(crate) warnings: Warnings,
}

fn field(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("fields are counted from 1".into()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("{text:?} is not a number of a field")),
    }
}

impl KeyArgs {
    /// What ends a record.
    pub(crate) fn terminator(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    /// A record without the carriage return that `--crlf` drops, and that carriage return: a column that a command adds goes
    /// between the two.
    pub(crate) fn before_carriage_return<'a>(&self, record: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let len = record.strip_suffix(b"\r").filter(|_| self.crlf).unwrap_or(record).len();
        record.split_at(len)
    }

    /// What is put between the columns that a command adds.
    pub(crate) fn between(&self) -> &[u8] {
        self.delimiter.as_deref().unwrap_or(b"\t")
    }

    /// How keys are taken from records for a filter, which may have its own way with a kind: what is a number of 32 bits to
    /// the user is one of 64 bits to a program that knows no others.
    pub(crate) fn selector_for(&self, filter: &dyn AnyFilter) -> Selector {
        let widens = filter.program().is_some()
            && matches!(filter.hashing(), Hashing::Integer | Hashing::Foreign(ForeignHash::Spark { .. }));
        let selector = self.selector();
        let kind = if widens && selector.kind == Kind::I32 { Kind::I64 } else { selector.kind };
        Selector { kind, ..selector }
    }

    /// How the text becomes key bytes.
    pub(crate) fn kind(&self) -> Kind {
        self.kind.unwrap_or_default()
    }

    /// How URLs become keys, if they do.
    pub(crate) fn url_rule(&self) -> Option<UrlRule> {
        self.strip_query.clone().or_else(|| self.url.then(UrlRule::default))
    }

    /// Whether a JSON value that is no string is told from the string of its text.
    pub(crate) fn tells_json_types(&self) -> bool {
        !self.json_raw && !self.json_as_text
    }

    /// How keys are taken from records.
    pub(crate) fn selector(&self) -> Selector {
        let others = self.tells_json_types().then(|| self.others.clone());
        // Between tabs a quote is usual.
        let takes_quotes = self.literal_quotes || self.delimiter.is_none();
        Selector {
            crlf: self.crlf,
            column: self.field.map(|number| Column::new(self.between(), number, takes_quotes)),
            json: self.json_key.clone().map(|path| JsonField { path, others }),
            trim: self.trim,
            ignore_case: self.ignore_case,
            kind: self.kind(),
            url: self.url_rule(),
            excepted: None,
        }
    }

    /// Where records come from.
    pub(crate) fn inputs(&self, paths: &[PathBuf]) -> Inputs {
        Inputs {
            paths: paths.to_vec(),
            terminator: self.terminator(),
            decompress: !self.no_decompress,
            numbered: self.numbered || self.selector().can_fail(),
            max_record: self.max_record.unwrap_or(MAX_RECORD),
            // Neither a trimmed key nor a field of JSON has it.
            warns_of_carriage_returns: !(self.null || self.crlf || self.trim || self.json_key.is_some()),
            warnings: self.warnings.clone(),
            aside: Default::default(),
        }
    }
}

/// What was done with records that were looked up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) read: u64,
    pub(crate) matched: u64,
    pub(crate) printed: u64,
}

impl Tally {
    /// One more record, of a command that prints all of them.
    pub(crate) fn note_printed(&mut self, matched: bool) {
        self.read += 1;
        self.matched += u64::from(matched);
        self.printed += 1;
    }
}

/// Options of the commands that look keys up.
#[derive(Clone, Debug, Args)]
pub(crate) struct LookupArgs {
    /// Verify the checksum of a filter of any size
    ///
    /// Without this, filters above 256 MiB are mapped and not verified.
    #[arg(long)]
    verify: bool,
    /// Print a report to standard error
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    stats: Option<StatsFormat>,
}

impl LookupArgs {
    /// Opens a filter file for lookups of keys of a kind. A damaged one is refused, unless it is mapped and too large to be
    /// verified without being asked for it.
    pub(crate) fn open(&self, path: &Path, keys: &KeyArgs, open: &OpenArgs) -> Result<Opened> {
        let opened = open.open_with_format(path, Some(keys.kind()), self.check())?.0;
        if self.verify && !opened.is_verified() {
            keys.warnings.add(format!(
                "warning: {}: not verified: {}",
                path.display(),
                why_unverified(opened.checked)
            ));
        }
        Ok(opened)
    }

    fn check(&self) -> Check {
        if self.verify { Check::All } else { Check::default() }
    }

    /// Prints the report, if it is wanted. The filters were checked so far. JSON takes the warnings with it.
    pub(crate) fn tell(
        &self,
        Tally { read, matched, printed }: Tally,
        checked: &[Checked],
        warnings: &Warnings,
    ) {
        let unverified = checked.iter().find(|&&checked| checked != Checked::All);
        match self.stats {
            None => {}
            Some(StatsFormat::Json) => report::note_json(&json!({
                "read": read, "matched": matched, "printed": printed, "verified": unverified.is_none(),
                "warnings": warnings.take(),
            })),
            Some(StatsFormat::Text) => report::note(format_args!(
                "mayhap: read {}, matched {}, printed {}; payload {}",
                report::grouped(read),
                report::grouped(matched),
                report::grouped(printed),
                unverified.map_or("verified".into(), |&checked| format!(
                    "not verified: {}",
                    why_unverified(checked)
                )),
            )),
        }
    }
}

fn why_unverified(checked: Checked) -> &'static str {
    match checked {
        Checked::All => "it is verified",
        Checked::Header => "it has more than 256 MiB; use --verify",
        Checked::Unsummed | Checked::Interrupted => "it has no checksum, since it was updated in place",
        Checked::BeingWritten => "another process is writing it",
        Checked::Nothing => "files of this format have no checksum",
    }
}

/// Options of every command that opens a filter file.
#[derive(Clone, Debug, Args)]
pub(crate) struct OpenArgs {
    /// Read and verify the whole file instead of mapping it
    #[arg(long, action = ArgAction::SetTrue)]
    pub(crate) no_mmap: bool,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

impl OpenArgs {
    /// Opens a filter file to be written again under another name or as another one: all of it is verified, and one without
    /// a checksum gets none.
    pub(crate) fn open_whole(
        &self,
        path: &Path,
        kind: Option<Kind>,
        common: &Common,
    ) -> Result<(Opened, FileFormat, Summing)> {
        let (opened, format) = self.open_with_format(path, kind, Check::All)?;
        let summing = if opened.lacks_checksum() { Summing::Skip } else { Summing::Payload };
        if opened.lacks_checksum() {
            common.say(format_args!(
                "warning: {}: it has no checksum, since it was updated in place, and damage to it would not be noticed; \
                 the result gets none either (a filter that is built from the keys has one)",
                path.display(),
            ));
        }
        Ok((opened, format, summing))
    }

    /// Opens a filter file, for keys of a kind or for none, and tells its format.
    pub(crate) fn open_with_format(
        &self,
        path: &Path,
        kind: Option<Kind>,
        check: Check,
    ) -> Result<(Opened, FileFormat)> {
        let access = if self.no_mmap { Access::Read } else { Access::Map };
        let format = self.format.of(path)?;
        let opened = match format {
            FileFormat::Mayhap => {
                self.secret.open(path, |secret| mayhap_store::open_checked(path, access, check, secret))?
            }
            format => self.format.open_foreign(path, format, access, kind)?,
        };
        Ok((opened, format))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_verified_at_any_size_on_request() {
        for (arguments, expected) in
            [(&["check", "f"][..], Check::default()), (&["check", "f", "--verify"], Check::All)]
        {
            let cli = Cli::try_parse_from(["mayhap"].iter().chain(arguments)).unwrap();
            let Command::Check(args) = cli.command else { panic!("another command") };
            assert_eq!(args.lookup.check(), expected);
        }
    }
}
