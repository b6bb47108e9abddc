//! `mayhap dedup`: the first occurrence of each record.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use mayhap::key_rules::KeyRules;
use mayhap::{
    AnyFilter, Bloom, Digest, Exact, Family, Hashing, Spec, SpecError, Table, Windowed, with_key_rules,
};
use mayhap_store::{Access, Held, hold, open};
use serde_json::json;

use crate::args::{Common, KeyArgs};
use crate::cmd::add::{check_kind, need};
use crate::cmd::build::settle;
use crate::formats::{FileFormat, shown, start_of};
use crate::input::Inputs;
use crate::output::is_stdout;
use crate::same_file::{must_not_be_input, must_not_be_output};
use crate::secret::SecretArgs;
use crate::seen::{LimitReached, Limits, Seen};
use crate::stream::{Batch, Event, Output, Reading, Source};
use crate::{YES, numbers, report};

/// False-positive rate if none is requested: of ten million different records, a hundredth of one is lost.
const FPR: f64 = 1e-9;

/// The same for a window: a record in ten thousand is dropped that is no repeat.
const WINDOW_FPR: f64 = 1e-4;

/// Room for keys at first, if their number is unknown.
const AT_FIRST: u64 = 1024;

/// Keys for which there is room at first at the most: 350 MB.
const AT_ONCE: u64 = 1 << 26;

/// A state is full when its rate is above this multiple of the rate it was made for.
const FULL: f64 = 10.0;

/// The families of states that dedup makes. A file of one of them is a state, also without the mark, as before there was one.
static STATES: [&Family; 3] = [Table::FAMILY, Exact::FAMILY, Windowed::FAMILY];

/// An odd number: multiplied by it, a trace of records depends on each of them and on their order.
const TRACE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Of the rate that is asked for, this is left for a second table, should the first have been made for too few keys.
const SPARE: f64 = 1.0 / 64.0;

/// Print the first occurrence of each record, in order
///
/// One pass over the input; the number of records need not be known. A different key takes 42 bits of memory, up to twice as
/// many in a stream, and at most one new record in a billion is mistaken for a repeat and dropped. --exact and --verify drop
/// none. --window remembers only the last records, in constant memory.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mayhap dedup urls.txt > fresh.txt\n  mayhap dedup -d, -k2 --header events.csv\n  \
                  cat more.txt | mayhap dedup --state seen.mayhap\n  find . -print0 | mayhap dedup -z\n  \
                  tail -f access.log | mayhap dedup --window 1M\n  \
                  mayhap dedup --memory 256MiB --max-fpr 1e-4 --stats urls.txt > fresh.txt"
)]
pub(crate) struct Args {
    /// Files with records; none or - is standard input
    files: Vec<PathBuf>,
    /// Maximum probability of wrongly dropping a unique record [default: 1e-9; with --window 1e-4]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true)]
    fpr: Option<f64>,
    /// Keep 128 bits of each key: drops no unique record
    #[arg(long, conflicts_with_all = ["fpr", "memory", "max_fpr", "window"])]
    exact: bool,
    /// Compare whole keys in a second pass over the files
    ///
    /// Drops no unique record. The keys that repeat are kept in memory.
    #[arg(long, conflicts_with_all = ["exact", "memory", "max_fpr", "window", "state", "only_once"])]
    verify: bool,
    /// Print the repeats instead of the first occurrences
    #[arg(long)]
    repeated: bool,
    /// Print only records that never repeat (two passes)
    #[arg(long, conflicts_with_all = ["repeated", "memory", "max_fpr", "window", "state"])]
    only_once: bool,
    /// Also drop what earlier runs with FILE have printed
    ///
    /// The file is created if it does not exist, and locked while in use.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Accept a state that `mayhap dedup` did not make, such as a filter of `mayhap build`: new records are wrongly dropped
    /// at its rate
    #[arg(long, requires = "state")]
    state_any: bool,
    /// Accept a key column or JSON field that differs from that of earlier runs with the state file
    #[arg(long, requires = "state")]
    state_any_keys: bool,
    /// Do not change the state file
    ///
    /// Without --state: print the report and no record.
    #[arg(long)]
    dry_run: bool,
    /// Memory limit for the keys; exceeding it is an error
    #[arg(long, value_name = "SIZE", value_parser = numbers::size, conflicts_with_all = ["window", "state"])]
    memory: Option<u64>,
    /// Stop if unique records would be dropped more often
    ///
    /// [default: the rate of -p; with --state, ten times the rate that the file was made for]
    #[arg(long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true)]
    max_fpr: Option<f64>,
    /// Remember only about the last N records
    ///
    /// A record that occurred before those is printed again.
    #[arg(long, value_name = "N", value_parser = numbers::capacity, allow_hyphen_values = true)]
    window: Option<u64>,
    /// The first record is a header
    ///
    /// It is printed and not compared, and dropped where a later file starts with it too.
    #[arg(long)]
    header: bool,
    /// Flush the output after each record. Without this, output is still flushed whenever input pauses
    #[arg(long)]
    line_buffered: bool,
    /// Print a report to standard error
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    stats: Option<StatsFormat>,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    secret: SecretArgs,
}

/// How a report at the end looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StatsFormat {
    Text,
    Json,
}

impl Args {
    fn fpr(&self) -> f64 {
        self.fpr.unwrap_or(if self.window.is_some() { WINDOW_FPR } else { FPR })
    }

    /// Where a run ends that keeps no state: about so many records come.
    fn limits(&self, records: Option<u64>) -> Limits {
        let is_table = !self.exact && self.window.is_none() && self.memory.is_none();
        let asked = (!self.exact && self.window.is_none()).then(|| self.fpr());
        let then = records.filter(|_| is_table).map(|records| {
            let keys = (records / 2).clamp(AT_FIRST, AT_ONCE);
            (records, Spec::sized(keys, SPARE * self.fpr()))
        });
        Limits {
            most_fpr: self.max_fpr.or(asked),
            memory: self.memory,
            // If no table can be made for such a rate, the first one grows until it has its own.
            then: then.filter(|(_, spec)| spec.table().is_ok()),
            is_strict: self.max_fpr.is_some() || self.memory.is_some(),
            is_state: false,
        }
    }

    /// Where a run ends that keeps this state. Beyond ten times its rate a filter that was made for a few keys would drop
    /// nearly every new record.
    fn state_limits(&self, filter: &dyn AnyFilter) -> Limits {
        let asked = filter.report().fpr_asked;
        let most_fpr = self.max_fpr.or((asked > 0.0).then_some((FULL * asked).min(1.0)));
        Limits { most_fpr, is_strict: most_fpr.is_some(), is_state: true, ..Limits::default() }
    }

    /// The rules of a new state.
    fn state_rules(&self) -> KeyRules {
        let mut rules = self.keys.rules();
        rules.cut.header = self.header;
        KeyRules { is_state: true, ..rules }
    }

    /// Words for the user: said at once, or kept for the report if that is JSON.
    fn warn(&self, common: &Common, warnings: &mut Vec<String>, text: String) {
        if self.stats == Some(StatsFormat::Json) {
            warnings.push(text);
        } else {
            common.say(text);
        }
    }

    fn prints(&self) -> bool {
        !self.dry_run || self.state.is_some()
    }

    /// A filter for about so many records, or for any number. One that is kept must be good for later ones too.
    fn filter(&self, records: Option<u64>, is_kept: bool) -> Result<Box<dyn AnyFilter>> {
        if self.exact {
            return Ok(Box::new(Exact::default()));
        }
        if let Some(window) = self.window {
            return Ok(Box::new(Windowed::new(window, self.fpr())?));
        }
        if let Some(memory) = self.memory {
            return self.limited(memory, records);
        }
        let spec = match records {
            Some(records) if !is_kept => {
                // Of very many records most may be repeats, so that the table begins smaller, and grows if they are not.
                let doublings = (records.saturating_sub(1) / AT_ONCE)
                    .checked_ilog2()
                    .map_or(0, |doublings| doublings + 1);
                let fpr = (1.0 - SPARE) * self.fpr();
                let spec = Spec::sized((records >> doublings).max(AT_FIRST), fpr).with_doublings(doublings);
                // If the rate cannot be kept for all of them, it may be for as many as are different.
                let for_some = Spec::sized(records.clamp(AT_FIRST, AT_ONCE), self.fpr());
                if spec.table().is_ok() { spec } else { for_some }
            }
            records => Spec::sized(records.unwrap_or(0).clamp(AT_FIRST, AT_ONCE), self.fpr()),
        };
        Table::from_spec(&spec).map(|table| -> Box<dyn AnyFilter> { Box::new(table) }).map_err(|e| match e {
            SpecError::FprBelow { .. } => {
                anyhow!(
                    "-p {} is too low for what is kept of a key; give a larger one, or say --exact",
                    self.fpr()
                )
            }
            e => e.into(),
        })
    }

    /// A filter of at most so many bytes: a table, unless a Bloom filter takes many more keys. It is slower.
    fn limited(&self, memory: u64, records: Option<u64>) -> Result<Box<dyn AnyFilter>> {
        let fpr = self.max_fpr.unwrap_or_else(|| self.fpr());
        // Keys whose lines are full lie beside them.
        let in_lines = memory - memory / 32;
        if let Some(records) = records {
            // With room for a sample that misleads.
            let spec = Spec::sized(records.saturating_mul(4).max(AT_FIRST), fpr).with_doublings(0);
            if spec.table().is_ok_and(|size| size.bits() / 8 <= in_lines) {
                return Ok(Box::new(Table::from_spec(&spec)?));
            }
        }
        let bloom = Spec::new().with_bits(memory.saturating_mul(8)).with_fpr(fpr);
        let table = Spec::new().with_bits(in_lines.saturating_mul(8)).with_fpr(fpr).with_doublings(0);
        let in_bloom = bloom.bloom().map_or(0, |size| size.capacity);
        if table.table().is_ok_and(|size| size.capacity >= in_bloom - in_bloom / 8) {
            return Ok(Box::new(Table::from_spec(&table)?));
        }
        let made = Bloom::from_spec(&bloom).with_context(|| format!("--memory {}", report::bytes(memory)))?;
        Ok(Box::new(made))
    }
}

/// What was done with records.
#[derive(Debug, Default)]
struct Counts {
    read: u64,
    printed: u64,
    /// The order and the keys of all records, so that two passes can be compared.
    trace: u64,
    /// The signal that ended it.
    stopped: Option<i32>,
    /// The limit that ended it. All that was noted is printed.
    full: Option<LimitReached>,
}

/// A trace of more records.
fn traced(trace: u64, digests: &[Digest]) -> u64 {
    digests.iter().fold(trace, |trace, digest| (trace ^ digest.a).wrapping_mul(TRACE).rotate_left(29))
}

/// Reads all records, asks for each batch which of its records to keep, and prints those.
fn pass(
    args: &Args,
    common: &Common,
    (inputs, hashing, prints): (&Inputs, Hashing, bool),
    mut judge: impl FnMut(&Batch, &mut Vec<bool>) -> Result<()>,
) -> Result<Counts> {
    let reading = Reading {
        selector: args.keys.selector(),
        hashing,
        has_header: args.header,
        threads: common.threads(),
        // The state is saved and the report printed after a signal too.
        minds_signals: args.state.is_some() || args.stats.is_some() || args.dry_run,
    };
    let progress = common.progress("deduplicating", inputs);
    let (mut source, give_back) = Source::new(inputs, reading)?;
    let mut output = Output::new(prints, common.threads(), give_back)?;
    let (mut counts, mut keep) = (Counts::default(), Vec::new());
    let ended = loop {
        match source.next() {
            Event::Ended => break Ok(()),
            Event::Failed(error) => break Err(error),
            Event::Stopped(signal) => {
                counts.stopped = Some(signal);
                break Ok(());
            }
            Event::Batch(mut batch) => {
                progress.advance(batch.chunk.bytes.len());
                let judged = judge(&batch, &mut keep);
                // Those before the one at which it ended are printed.
                counts.trace = traced(counts.trace, &batch.digests);
                counts.read += batch.len() as u64;
                counts.printed += batch.retain(&keep) as u64;
                output.write(batch)?;
                if let Err(error) = judged {
                    break Err(error);
                }
            }
        }
    };
    // What was judged is printed, whatever came behind it.
    let written = output.finish();
    match ended.map_err(anyhow::Error::downcast::<LimitReached>) {
        Ok(()) => {}
        Err(Ok(full)) => counts.full = Some(full),
        Err(Err(error)) => return Err(error),
    }
    written?;
    Ok(counts)
}

/// What the end report says of the keys that came before.
struct Memory {
    /// Expected number of wrongly dropped records.
    wrongly: f64,
    fpr: f64,
    fill: f64,
    layers: usize,
    bytes: u64,
}

impl Memory {
    fn of(seen: &mut Seen) -> Self {
        Self {
            wrongly: seen.wrongly(),
            fpr: seen.fpr(),
            fill: seen.filter.report().fill,
            layers: seen.filters().map(|filter| filter.details().layers.len().max(1)).sum(),
            bytes: seen.filters().map(|filter| filter.report().bits / 8).sum(),
        }
    }
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let (started, mut warnings) = (Instant::now(), Vec::new());
    let mut inputs = args.keys.inputs(&args.files);
    must_not_be_output(Some(&inputs), args.state.as_deref())?;
    if let Some(state) = &args.state {
        must_not_be_input(&inputs, state)?;
    }
    let (counts, memory) = if args.verify || args.only_once {
        inputs.set_aside()?;
        in_two_passes(args, common, &inputs)?
    } else if let Some(state) = &args.state {
        with_state(args, common, state, &mut warnings)?
    } else {
        let records = inputs.estimated_records()?;
        let seen = Seen::new(args.filter(records, false)?, args.limits(records));
        let (counts, mut seen) = in_one_pass(args, common, &inputs, seen)?;
        (counts, Memory::of(&mut seen))
    };
    if args.stats == Some(StatsFormat::Json) {
        warnings.extend(args.keys.warnings.take());
    }
    tell(args, &counts, &memory, &warnings, started.elapsed().as_secs_f64());
    if let Some(full) = counts.full {
        let full = anyhow::Error::from(full);
        return Err(match &args.state {
            Some(state) => full.context(state.display().to_string()),
            None => full,
        });
    }
    // As a shell tells that a signal ended a command.
    Ok(counts.stopped.map_or(YES, |signal| 128u8.saturating_add(signal as u8)))
}

fn in_one_pass(args: &Args, common: &Common, inputs: &Inputs, mut seen: Seen) -> Result<(Counts, Seen)> {
    let from = (inputs, seen.filter.hashing(), args.prints());
    let counts = pass(args, common, from, |batch, keep| {
        let noted = seen.note(&batch.digests, keep);
        if args.repeated {
            keep.iter_mut().for_each(|keep| *keep = !*keep);
        }
        noted
    })?;
    Ok((counts, seen))
}

fn with_state(
    args: &Args,
    common: &Common,
    state: &Path,
    warnings: &mut Vec<String>,
) -> Result<(Counts, Memory)> {
    if is_stdout(state) {
        bail!("--state -: a state is read and written again, which standard output cannot be; name a file");
    }
    if let Some(start) = start_of(state)
        && let Some(format @ (FileFormat::Foreign(_) | FileFormat::Parquet)) = shown(state, start)?
    {
        bail!(
            "{}: a file of the format {} cannot be a state, since it hashes keys differently; leave it to `mayhap check \
             -v` and `mayhap add`",
            state.display(),
            format.name()
        );
    }
    let (held, found) = if args.dry_run {
        (None, read_state(args, state)?)
    } else {
        // With its mark, in case that this run is killed.
        let first = with_key_rules(args.filter(None, true)?, Some(args.state_rules()));
        let wait = || {
            let text = format!("{}: waiting for another process that uses it", state.display());
            args.warn(common, warnings, text);
        };
        let (held, filter) = args.secret.open(state, |secret| hold(state, secret, &*first, wait))?;
        // One that dedup made and never put into, because a run was killed, may become anything.
        let is_fresh = held.is_new()
            || (filter.family() == Table::FAMILY
                && filter.report().inserted == Some(0)
                && filter.key_rules().is_some_and(|rules| rules.is_state));
        (Some(held), (!is_fresh).then_some(filter))
    };
    let (mut args, is_new) = (args.clone(), found.is_none());
    let filter = match found {
        Some(filter) => {
            args.keys = must_suit(&args, state, &*filter)?;
            filter
        }
        None => args.filter(args.keys.inputs(&args.files).estimated_records()?, true)?,
    };
    let (args, limits) = (&args, args.state_limits(&*filter));
    must_have_room(args, state, &*filter, &limits)?;
    let inputs = args.keys.inputs(&args.files);
    let (counts, mut seen) = in_one_pass(args, common, &inputs, Seen::new(filter, limits))?;
    // All is printed by now. If it is not remembered in the end it is printed again some time, which is better than never.
    if let Some(held) = held {
        let rules = if is_new {
            Some(args.state_rules())
        } else {
            seen.filter.key_rules().map(|rules| args.keys.rules_after(rules))
        };
        seen.filter = with_key_rules(seen.filter, rules);
        settle(&mut *seen.filter).with_context(|| state.display().to_string())?;
        Held::put(held, &*seen.filter)?;
    }
    let report = seen.filter.report();
    if report.fpr_now > report.fpr_asked && report.fpr_asked > 0.0 && counts.full.is_none() {
        let text = format!(
            "{}: the false-positive rate is {} by now, and it was made for {}; begin another file, or say --exact for it",
            state.display(),
            report::short(report.fpr_now),
            report::short(report.fpr_asked),
        );
        args.warn(common, warnings, text);
    }
    Ok((counts, Memory::of(&mut seen)))
}

/// Refuses a state that would drop new records much more often than it was made for.
fn must_have_room(args: &Args, state: &Path, filter: &dyn AnyFilter, limits: &Limits) -> Result<()> {
    let report = filter.report();
    let Some(most) = limits.most_fpr.filter(|&most| report.fpr_now > most) else { return Ok(()) };
    let why = match args.max_fpr {
        Some(_) => format!("--max-fpr is {}", report::short(most)),
        None => format!("it was made for {}", report::short(report.fpr_asked)),
    };
    bail!(
        "{}: is full: it would drop new records at a rate of {}, and {why}; nothing was read; begin another file, or give a \
         larger --max-fpr",
        state.display(),
        report::rate(report.fpr_now),
    )
}

/// The filter of a state file, if there is one.
fn read_state(args: &Args, state: &Path) -> Result<Option<Box<dyn AnyFilter>>> {
    if !state.try_exists().with_context(|| state.display().to_string())? {
        return Ok(None);
    }
    let opened = args.secret.open(state, |secret| open(state, Access::Read, secret))?;
    Ok(Some(opened.filter))
}

/// Refuses a state file that is not what was asked for. How keys are taken for it.
fn must_suit(args: &Args, state: &Path, filter: &dyn AnyFilter) -> Result<KeyArgs> {
    need(state, filter, "insert", |can| can.inserts)?;
    let keys = args.keys.for_file(state, filter)?;
    check_kind(state, filter, &keys)?;
    if let Some(rule) = filter.program() {
        bail!(
            "{}: a filter by the rules of {rule} cannot be a state, since it hashes keys differently; leave it to \
             `mayhap check -v` and `mayhap add`",
            state.display()
        );
    }
    let (path, family, report) = (state.display(), filter.family().name, filter.report());
    let rules = filter.key_rules();
    let is_state = rules.is_some_and(|rules| rules.is_state) || STATES.contains(&filter.family());
    if !is_state && !args.state_any {
        bail!(
            "{path}: a filter of the family {family}, which dedup did not make: new records would be dropped at its rate, {}; \
             name another file, or take it with --state-any",
            report::rate(report.fpr_now.max(report.fpr_asked)),
        );
    }
    if let Some((ours, theirs)) = rules.and_then(|rules| keys.other_cut(&rules.cut))
        && !args.state_any_keys
    {
        bail!(
            "{path}: the key is {ours}, and was {theirs} in earlier runs; name another file, or say --state-any-keys if \
             these are the same keys"
        );
    }
    if args.exact && !filter.can().exact {
        bail!(
            "{path}: a filter of the family {family}, and --exact was asked for; leave that out, or name another file"
        );
    }
    if let Some(asked) = args.window
        && (filter.details().window.is_none() || report.capacity != asked)
    {
        let what = match filter.details().window {
            Some(_) => format!("remembers the last {} records", report.capacity),
            None => format!("a filter of the family {family}, which forgets nothing"),
        };
        bail!("{path}: {what}, and --window {asked} was asked for; leave that out, or name another file");
    }
    if let Some(asked) = args.fpr
        && (report.fpr_asked / asked - 1.0).abs() > 1e-6
    {
        let made = report::short(report.fpr_asked);
        bail!(
            "{path}: made for a rate of {made}, and -p {asked} was asked for; leave that out, or name another file"
        );
    }
    Ok(keys)
}

/// Learns in one pass which keys repeat, and prints in another.
fn in_two_passes(args: &Args, common: &Common, inputs: &Inputs) -> Result<(Counts, Memory)> {
    let records = inputs.estimated_records()?;
    // Bytes decide where they are compared, whatever the rate.
    let limits = if args.verify { Limits::default() } else { args.limits(records) };
    let mut first = Seen::new(args.filter(records, false)?, limits);
    let mut repeating = Seen::new(args.filter(None, false)?, Limits::default());
    let hashing = first.filter.hashing();
    let (mut again, mut new): (Vec<Digest>, Vec<bool>) = Default::default();
    let learnt = pass(args, common, (inputs, hashing, false), |batch, keep| {
        first.note(&batch.digests, keep)?;
        again.clear();
        again.extend(batch.digests.iter().zip(&*keep).filter(|(_, new)| !**new).map(|(&digest, _)| digest));
        repeating.note(&again, &mut new)
    })?;
    let mut memory = Memory::of(&mut first);
    drop(first);
    if learnt.stopped.is_some() || learnt.full.is_some() {
        return Ok((learnt, memory));
    }

    let mut hits = Vec::new();
    let counts = if args.only_once {
        let counts = pass(args, common, (inputs, hashing, args.prints()), |batch, keep| {
            repeating.has(&batch.digests, &mut hits);
            keep.clear();
            keep.extend(hits.iter().map(|hit| !hit));
            Ok(())
        })?;
        // Of two keys that are taken for one, neither is printed.
        memory.wrongly = 2.0 * memory.wrongly + repeating.fpr() * counts.printed as f64;
        counts
    } else {
        let (selector, mut scratch, mut whole) =
            (args.keys.selector(), Vec::new(), HashSet::<Box<[u8]>>::new());
        let mut held = 0;
        let counts = pass(args, common, (inputs, hashing, args.prints()), |batch, keep| {
            repeating.has(&batch.digests, &mut hits);
            keep.clear();
            for (record, &repeats) in batch.records().zip(&hits) {
                let mut is_new = true;
                if repeats {
                    let key = selector.key(record, &mut scratch)?;
                    is_new = !whole.contains(key);
                    if is_new {
                        held += key.len() as u64;
                        whole.insert(key.into());
                    }
                }
                keep.push(is_new != args.repeated);
            }
            Ok(())
        })?;
        (memory.wrongly, memory.fpr) = (0.0, 0.0);
        memory.bytes += held + (whole.capacity() * (size_of::<Box<[u8]>>() + 1)) as u64;
        counts
    };
    if counts.stopped.is_none() && (counts.read, counts.trace) != (learnt.read, learnt.trace) {
        bail!(
            "the input changed between the first pass and the second; what was printed is not to be trusted"
        );
    }
    memory.bytes += repeating.filter.report().bits / 8;
    Ok((counts, memory))
}

/// Prints the report at the end.
fn tell(args: &Args, counts: &Counts, memory: &Memory, warnings: &[String], seconds: f64) {
    let &Counts { read, printed, .. } = counts;
    let &Memory { wrongly, fpr, fill, layers, bytes } = memory;
    let per_second = read as f64 / seconds.max(1e-9);
    let format = args.stats.or((!args.prints()).then_some(StatsFormat::Text));
    match format {
        None => {}
        Some(StatsFormat::Json) => report::note_json(&json!({
            "read": read, "printed": printed, "dropped": read - printed,
            "expected_wrongly_dropped": wrongly, "fpr_now": fpr, "fill": fill, "layers": layers,
            "memory_bytes": bytes, "seconds": seconds, "records_per_second": per_second,
            "stopped_by_signal": counts.stopped, "warnings": warnings,
        })),
        Some(StatsFormat::Text) => report::note(format_args!(
            "mayhap: read {}, printed {}, dropped {}; expected number of wrongly {} records {}; fill {}, false-positive \
             rate now {}; {} of memory for the keys{}, {seconds:.2} s, {} records per second",
            report::grouped(read),
            report::grouped(printed),
            report::grouped(read - printed),
            if args.repeated { "printed" } else { "dropped" },
            report::short(wrongly),
            report::percent(fill),
            report::rate(fpr),
            report::bytes(bytes),
            if layers > 1 { format!(" in {layers} layers") } else { String::new() },
            report::grouped(per_second as u64),
        )),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn a_table_for_very_many_records_begins_small_and_keeps_its_rate() {
        let Command::Dedup(args) = Cli::try_parse_from(["mayhap", "dedup"]).unwrap().command else {
            panic!("another command");
        };
        for records in [1000, 1 << 26, (1 << 26) + 1, 1 << 27, 3_000_000_000, 8_000_000_000] {
            let report = args.filter(Some(records), false).unwrap().report();
            assert!(report.bits / 8 < 500 << 20, "{records}: {} bytes", report.bits / 8);
            assert!(report.capacity >= records || records > AT_ONCE);
            // As many different keys as records.
            let most = report.fpr_at_capacity / report.capacity as f64 * records as f64;
            assert!(most <= 1e-9, "{records}: {most}");
            let limits = args.limits(Some(records));
            assert!(limits.then.is_some_and(|(planned, _)| planned == records));
        }
        // For so many different keys there are no names, but they may be repeats.
        let report = args.filter(Some(100_000_000_000), false).unwrap().report();
        assert!(report.bits / 8 < 1 << 30 && report.fpr_at_capacity <= 1e-9);
    }

    #[test]
    fn equal_records_far_apart_do_not_cancel_in_a_trace() {
        let of = |texts: &[&str]| -> Vec<Digest> {
            texts.iter().map(|text| Hashing::default().digest(text.as_bytes())).collect()
        };
        for count in [1, 2, 64, 128, 1000] {
            let (a, b) = (of(&vec!["a"; count]), of(&vec!["b"; count]));
            assert_ne!(traced(0, &a), traced(0, &b), "{count} equal ones");
            assert_eq!(traced(0, &a), traced(traced(0, &a[..count / 3]), &a[count / 3..]));
        }
        assert_ne!(traced(0, &of(&["a", "b"])), traced(0, &of(&["b", "a"])));
    }
}
