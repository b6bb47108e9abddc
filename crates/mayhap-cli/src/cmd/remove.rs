//! `mayhap remove`: keys out of a filter file.

use std::path::PathBuf;

use anyhow::Result;
use mayhap::{AnyFilter, Removal};

use crate::args::{Common, KeyArgs, OpenArgs};
use crate::cmd::add::{Ready, ReadyKeys, ready_for, secret_of, still_takes_keys};
use crate::cmd::build::settle;
use crate::formats::update_file;
use crate::{NO, YES, report};

/// Remove keys from a filter file
///
/// Exit status 1 if some keys were not in, or cannot be removed because their counters are saturated. Remove only keys that
/// were added: otherwise a filter loses another key, with about its false-positive rate (exact sets do not). A key that
/// was added several times is removed once for each record.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap remove removable.mayhap old.txt\n  \
head -n 3 urls.txt | mayhap remove removable.mayhap")]
pub(crate) struct Args {
    /// The filter file
    filter: PathBuf,
    /// Files with keys, one a line; none or - is standard input
    files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    open: OpenArgs,
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let path = &args.filter;
    let keys = (&args.files[..], None, &args.keys);
    let ready = ready_for(path, "remove", |can| can.removes, keys, &args.open, common)?;
    let Ready { hashing, format, reading, keys: ReadyKeys::Digests(spool), rules, .. } = ready else {
        anyhow::bail!("{}: nothing is removed from filters of this rule", path.display());
    };
    let keys = spool.len();

    let change = |filter: &mut dyn AnyFilter| {
        still_takes_keys(filter, hashing, rules.as_ref())?;
        let unsupported = filter.unsupported("remove");
        let remove = filter.as_remove().ok_or(unsupported)?;
        let (mut removed, mut stuck, mut outcomes) = (0, 0, Vec::new());
        spool.drain(|digests| {
            outcomes.clear();
            remove.remove_batch(digests, &mut outcomes);
            for outcome in &outcomes {
                match outcome {
                    Removal::Removed => removed += 1,
                    Removal::Stuck => stuck += 1,
                    Removal::Absent => {}
                }
            }
            anyhow::Ok(())
        })?;
        settle(filter)?;
        Ok((removed, stuck))
    };
    common.say_if_locked(path);
    let (removed, stuck) = update_file(path, format, &reading, secret_of(hashing).as_ref(), change)?;
    let absent: u64 = keys - removed - stuck;
    common.say(format_args!(
        "{}: {} removed, {} not in",
        path.display(),
        report::counted(removed, "key"),
        if absent == 1 { "1 was".into() } else { format!("{} were", report::grouped(absent)) },
    ));
    if stuck > 0 {
        common.say(format_args!(
            "{}: {} cannot be removed: saturated counters",
            path.display(),
            report::counted(stuck, "key"),
        ));
    }
    Ok(if absent == 0 && stuck == 0 { YES } else { NO })
}
