//! `mayhap add`: more keys into a filter file.

use std::path::{Path, PathBuf};

use anyhow::Result;
use mayhap::family::Capabilities;
use mayhap::registry::FAMILIES;
use mayhap::{AnyFilter, Error, Family, Hashing, Secret};
use mayhap_store::{Access, Spool, UpdateError, open, update};

use crate::YES;
use crate::args::{Common, KeyArgs};
use crate::cmd::build::{hash_all, insert_all, warn_if_over_capacity};
use crate::keys::Kind;
use crate::report;
use crate::secret::SecretArgs;

/// Add keys to a filter file, in place
///
/// The file is locked meanwhile: of two writers none loses a key. Nothing is added if a record is bad or a key finds no
/// room.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The filter file
    filter: PathBuf,
    /// Files with keys, one a line; none or - is standard input
    files: Vec<PathBuf>,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    secret: SecretArgs,
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
pub(crate) fn check_kind(path: &Path, hashing: Hashing, family: &Family, keys: &KeyArgs) -> Result<()> {
    if hashing == Hashing::Integer && !matches!(keys.kind, Kind::U64 | Kind::I64) {
        anyhow::bail!("{}: the family {} holds integers; say --as u64", path.display(), family.name);
    }
    Ok(())
}

/// The digests of all keys for a file, with the hashing that its header tells. The lock is taken only when all keys are
/// known to be good.
pub(crate) fn hash_for(
    path: &Path,
    operation: &'static str,
    can: impl Fn(&Capabilities) -> bool,
    (files, keys): (&[PathBuf], &KeyArgs),
    secret: &SecretArgs,
    common: &Common,
) -> Result<(Hashing, Spool)> {
    let (hashing, family) = {
        let opened = secret.open(path, |secret| open(path, Access::Map, secret))?;
        need(path, &*opened.filter, operation, can)?;
        (opened.filter.hashing(), opened.filter.family())
    };
    check_kind(path, hashing, family, keys)?;
    let spool = hash_all(&keys.inputs(files), &keys.selector(), hashing, common)?;
    Ok((hashing, spool))
}

/// The secret of a file that was opened before.
pub(crate) fn secret_of(hashing: Hashing) -> Option<Secret> {
    match hashing {
        Hashing::Keyed(secret) => Some(secret),
        _ => None,
    }
}

/// Between the look at a file and its lock somebody may have replaced it by another filter.
pub(crate) fn still_hashes(filter: &dyn AnyFilter, hashing: Hashing) -> Result<()> {
    if filter.hashing() != hashing {
        anyhow::bail!("the file was replaced by one that hashes differently; run it again");
    }
    Ok(())
}

/// Tells the file's problems, which have a name already, from those of the change.
pub(crate) fn unwrap_update<T>(path: &Path, result: Result<T, UpdateError<anyhow::Error>>) -> Result<T> {
    result.map_err(|e| match e {
        UpdateError::Store(e) => e.into(),
        UpdateError::Change(e) => e.context(path.display().to_string()),
    })
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let path = &args.filter;
    let keys = (&args.files[..], &args.keys);
    let (hashing, spool) = hash_for(path, "insert", |can| can.inserts, keys, &args.secret, common)?;
    let keys = spool.len();

    let change = |filter: &mut dyn AnyFilter| {
        still_hashes(filter, hashing)?;
        let mut new = 0;
        spool.drain(|digests| {
            new += insert_all(filter, digests)?;
            anyhow::Ok(())
        })?;
        warn_if_over_capacity(common, filter);
        Ok(new)
    };
    let new = unwrap_update(path, update(path, secret_of(hashing).as_ref(), change))?;
    common.say(format_args!(
        "{}: {} keys added, {} of them were new",
        path.display(),
        report::grouped(keys),
        report::grouped(new),
    ));
    Ok(YES)
}
