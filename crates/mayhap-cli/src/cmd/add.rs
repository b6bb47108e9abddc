//! `mayhap add`: more keys into a filter file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use mayhap::interop::{Reading, pybloom_live};
use mayhap::key_rules::KeyRules;
use mayhap::{AnyFilter, Capabilities, Error, FAMILIES, Hashing, Secret, except};
use mayhap_store::{Check, Spool};

use crate::YES;
use crate::args::{Common, KeyArgs, OpenArgs};
use crate::cmd::build::{hash_all, insert_spooled, warn_if_over_capacity};
use crate::except::{Excepted, check_stdin};
use crate::formats::{FileFormat, reading, remake_file, update_file};
use crate::input::{Buffer, Inputs};
use crate::keys::{Kind, Selector, is_asked_by_keys};
use crate::report;
use crate::same_file::must_not_be_input;

/// Add keys to a filter file, in place
///
/// The file is locked while it is updated, so that two writers at once lose no key. If a record is bad or a key finds no
/// room, no key is added. With --except keys are read only if files are named.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap add urls.mayhap more.txt\n  \
cut -d' ' -f1 access.log | mayhap add block.mayhap")]
pub(crate) struct Args {
    /// The filter file
    filter: PathBuf,
    /// Files with keys, one a line; none or - is standard input
    files: Vec<PathBuf>,
    /// Exceptions: the keys of FILE are answered no, exactly, from now on
    ///
    /// False positives that were found out. A key of FILE that really is in is denied too: the filter cannot tell. A later
    /// `mayhap add` of one drops the exception. Each takes 16 bytes.
    #[arg(long, alias = "allow", value_name = "FILE")]
    except: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    open: OpenArgs,
}

/// Refuses what a file's filter cannot do, and names the families that can.
pub(crate) fn need(
    path: &Path,
    filter: &dyn AnyFilter,
    operation: &'static str,
    can: impl Fn(&Capabilities) -> bool,
) -> Result<()> {
    if can(&filter.can()) {
        return Ok(());
    }
    if let Some(rule) = filter.program() {
        anyhow::bail!(
            "{}: a filter by the rules of {rule} cannot {operation}; build one of ours from the keys",
            path.display()
        );
    }
    let others: Vec<_> =
        FAMILIES.iter().filter(|family| can(&family.can)).map(|family| family.name).collect();
    let (path, error, others) = (path.display(), filter.unsupported(operation), others.join(" or "));
    let rule = match error {
        Error::UnsupportedByRule { other, .. } => format!(" --counting-rule {other}, or with"),
        Error::UnsupportedWithoutCounters { .. } => " --counter-bits 4, or with".to_string(),
        _ => String::new(),
    };
    Err(anyhow::anyhow!("{path}: {error}; build the filter with{rule} --family {others}"))
}

/// Integers must come as integers.
pub(crate) fn check_kind(path: &Path, filter: &dyn AnyFilter, keys: &KeyArgs) -> Result<()> {
    let is_integer = match keys.kind() {
        Kind::U64 | Kind::I64 => true,
        // Brought to 64 bits for a program that has no others.
        Kind::I32 => filter.program().is_some(),
        _ => false,
    };
    if filter.program() == Some(pybloom_live::FORMAT.name) && is_integer {
        anyhow::bail!(
            "{}: the program hashes the text of a number, as it stands in the line; leave --as out",
            path.display()
        );
    }
    if filter.hashing() == Hashing::Integer && !is_integer {
        anyhow::bail!("{}: the family {} holds integers; say --as u64", path.display(), filter.family().name);
    }
    Ok(())
}

/// Keys that are known to be good, ready for a file that is locked then.
pub(crate) struct Ready {
    /// What they were made ready for.
    pub(crate) hashing: Hashing,
    pub(crate) format: FileFormat,
    pub(crate) reading: Reading,
    pub(crate) keys: ReadyKeys,
    /// Keys that are to be denied.
    pub(crate) excepted: Option<Arc<Excepted>>,
    /// The rules of the file that was looked at, and those with these keys in it.
    pub(crate) rules: Option<(KeyRules, KeyRules)>,
}

/// Hashed, or in files for a filter that needs more than digests.
pub(crate) enum ReadyKeys {
    Digests(Spool),
    Files { inputs: Inputs, selector: Box<Selector>, records: u64 },
}

/// All keys for a file, hashed as its filter hashes. The lock is taken only when all keys are known to be good.
pub(crate) fn ready_for(
    path: &Path,
    operation: &'static str,
    can: impl Fn(&Capabilities) -> bool,
    (files, except, keys): (&[PathBuf], Option<&Path>, &KeyArgs),
    open: &OpenArgs,
    common: &Common,
) -> Result<Ready> {
    let reads_keys = except.is_none() || !files.is_empty();
    if let Some(except) = except.filter(|_| reads_keys) {
        check_stdin(except, files)?;
    }
    match open.format.of(path)? {
        FileFormat::Foreign(format) if format.writes() => {}
        FileFormat::Mayhap => {}
        format => anyhow::bail!(
            "{}: files of the format {} are only read; build a filter of ours from the keys",
            path.display(),
            format.name()
        ),
    }
    // A first look; all of it is verified under the lock, before it is changed.
    let (opened, format) = open.open_with_format(path, Some(keys.kind()), Check::Header)?;
    let filter = opened.filter;
    if except.is_some() {
        takes_exceptions(path, &*filter)?;
    }
    if reads_keys {
        need(path, &*filter, operation, can)?;
    }
    let mut keys = keys.for_file(path, &*filter)?;
    check_kind(path, &*filter, &keys)?;
    // Messages name the lines of a key that is in both.
    keys.numbered |= except.is_some();
    let keys = &keys;
    let rules = filter.key_rules().cloned();
    let (hashing, mut selector) = (filter.hashing(), keys.selector_for(&*filter));
    let by_keys = is_asked_by_keys(&*filter);
    drop(filter);
    let mut inputs = keys.inputs(files);
    if reads_keys {
        must_not_be_input(&inputs, path)?;
    }
    let excepted = match except {
        None => None,
        Some(except) => {
            must_not_be_input(&keys.inputs(&[except.to_path_buf()]), path)?;
            Some(Arc::new(Excepted::read(except, keys, hashing, common)?))
        }
    };
    selector.excepted = excepted.clone();
    let keys_ready = if !reads_keys {
        ReadyKeys::Digests(Spool::new())
    } else if by_keys {
        inputs.set_aside()?;
        let records = check_all(&inputs, &selector, common)?;
        ReadyKeys::Files { inputs, selector: Box::new(selector), records }
    } else {
        ReadyKeys::Digests(hash_all(&inputs, &selector, hashing, common)?)
    };
    let reading = reading(keys.kind(), open.format.hash);
    let rules = rules.map(|rules| {
        let after = keys.rules_after(&rules);
        (rules, after)
    });
    Ok(Ready { hashing, format, reading, keys: keys_ready, excepted, rules })
}

/// Exceptions stand in a file of ours beside a filter that errs.
fn takes_exceptions(path: &Path, filter: &dyn AnyFilter) -> Result<()> {
    if let Some(rule) = filter.program() {
        anyhow::bail!(
            "{}: a filter by the rules of {rule} has no exceptions; build one of ours from the keys, with --except",
            path.display()
        );
    }
    if filter.can().exact {
        anyhow::bail!(
            "{}: the family {} makes no errors, so that it takes no exceptions; mayhap remove takes keys out",
            path.display(),
            filter.family().name
        );
    }
    Ok(())
}

/// How many records there are, if all of them have keys.
pub(crate) fn check_all(inputs: &Inputs, selector: &Selector, common: &Common) -> Result<u64> {
    let progress = common.progress("looking at keys", inputs);
    let (mut chunks, mut buffer, mut records) = (inputs.chunks(), Buffer::default(), 0);
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        records += selector.with_keys(&chunk, |keys| keys.len() as u64)?;
        buffer = chunk.bytes;
    }
    Ok(records)
}

/// Inserts the keys of files, by the keys themselves; how many were new.
pub(crate) fn insert_files(
    filter: &mut dyn AnyFilter,
    inputs: &Inputs,
    selector: &Selector,
    common: &Common,
) -> Result<u64> {
    let progress = common.progress("building", inputs);
    let (mut chunks, mut buffer, mut new) = (inputs.chunks(), Buffer::default(), 0);
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        new += selector.insert(&chunk, filter)?;
        buffer = chunk.bytes;
    }
    Ok(new)
}

/// The secret of a file that was opened before.
pub(crate) fn secret_of(hashing: Hashing) -> Option<Secret> {
    match hashing {
        Hashing::Keyed(secret) => Some(secret),
        _ => None,
    }
}

/// Between the look at a file and its lock another process may have replaced it.
pub(crate) fn still_takes_keys(
    filter: &dyn AnyFilter,
    hashing: Hashing,
    rules: Option<&(KeyRules, KeyRules)>,
) -> Result<()> {
    if filter.hashing() != hashing {
        anyhow::bail!("the file was replaced by one that hashes differently; run it again");
    }
    let spelling = |rules: &KeyRules| rules.spelling.clone();
    let (expected, found) = (rules.map(|(before, _)| spelling(before)), filter.key_rules().map(spelling));
    // Another writer may have added JSON values that are no strings: these keys are as good as before.
    if expected != found
        && !matches!((&expected, &found), (Some(one), Some(other)) if one.joined(other).is_some())
    {
        anyhow::bail!("the file was replaced by one whose keys are spelled differently; run it again");
    }
    Ok(())
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let path = &args.filter;
    let keys = (&args.files[..], args.except.as_deref(), &args.keys);
    let ready = ready_for(path, "insert", |can| can.inserts, keys, &args.open, common)?;
    let Ready { hashing, format, reading, keys, excepted, rules } = ready;
    let count = match &keys {
        ReadyKeys::Digests(spool) => spool.len(),
        ReadyKeys::Files { records, .. } => *records,
    };

    let change = |filter: &mut dyn AnyFilter| {
        still_takes_keys(filter, hashing, rules.as_ref())?;
        let new = match keys {
            // Exceptions alone are also for filters that take no keys.
            ReadyKeys::Digests(spool) if spool.is_empty() && excepted.is_some() => 0,
            ReadyKeys::Digests(spool) => insert_spooled(filter, spool)?,
            ReadyKeys::Files { inputs, selector, .. } => insert_files(filter, &inputs, &selector, common)?,
        };
        if let (Some((_, after)), Some(found)) = (rules, filter.key_rules())
            && let Some(spelling) = found.spelling.joined(&after.spelling)
        {
            filter.set_key_rules(KeyRules { spelling, ..found.clone() });
        }
        Ok((new, filter.report()))
    };
    common.say_if_locked(path);
    let secret = secret_of(hashing);
    let (new, report) = match &excepted {
        None => update_file(path, format, &reading, secret.as_ref(), change)?,
        Some(excepted) => {
            let digests = excepted.digests();
            let (changed, admitted) = remake_file(path, secret.as_ref(), |mut filter| {
                takes_exceptions(path, &*filter)?;
                let mut hits = Vec::with_capacity(digests.len());
                filter.contains_batch(&digests, &mut hits);
                let admitted = hits.into_iter().filter(|&hit| hit).count() as u64;
                let changed = change(&mut *filter)?;
                Ok((except(filter, digests.iter().copied()), (changed, admitted)))
            })?;
            let were = if admitted == 1 { "was" } else { "were" };
            common.say(format_args!(
                "{}: {} answered no from now on, exactly, {} of which {were} admitted before; a key that really is in is \
                 denied too",
                path.display(),
                report::subject(digests.len() as u64, "key"),
                report::grouped(admitted),
            ));
            changed
        }
    };
    if excepted.is_none() || !args.files.is_empty() {
        let keys = count;
        common.say(format_args!(
            "{}: {} added{}",
            path.display(),
            report::counted(keys, "key"),
            if new < keys { format!(", {} of them new", report::grouped(new)) } else { String::new() },
        ));
    }
    // Only now is it true: the disk may have been full.
    warn_if_over_capacity(common, &report);
    Ok(YES)
}
