//! `mayhap convert`: another file of the same filter.

use std::path::PathBuf;

use anyhow::Result;
use mayhap::interop::{Format, fastfilter, pyprobables};
use serde_json::json;

use crate::args::{Common, OpenArgs};
use crate::cmd::build::{is_same_file, print_beside};
use crate::formats::{self, FileFormat, write_as};
use crate::keys::Kind;
use crate::output::Target;
use crate::same_file::must_not_be_output;
use crate::spelling::warn_of_loss;
use crate::{YES, report};

/// Write a filter as a file of another format, with the same answers
///
/// Only between formats with the same hash rule, such as a filter of Guava in a mayhap file or in Guava's own: the bits of one
/// program mean nothing to another, and a filter does not hold its keys. A conversion that would change an answer is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap build --to guava -o users.bloom urls.txt\n  \
mayhap convert users.bloom -o users.mayhap --to mayhap\n  \
mayhap convert users.mayhap -o users.guava --to guava\n  \
mayhap build --to go-json -o seen.json urls.txt\n  \
mayhap convert seen.json -o seen.bin --to go")]
pub(crate) struct Args {
    /// The filter file
    filter: PathBuf,
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the output even if it is not a filter. Key files are never replaced
    #[arg(long)]
    force: bool,
    /// Output format: mayhap, guava, go, go-json, go-gob, dcso (in gzip if OUTPUT ends in .gz), spark, redisbloom,
    /// redisbloom-cuckoo, bloomfilter-crate, sbbf, rbloom, roaring
    #[arg(long, value_name = "NAME", value_parser = formats::writable)]
    to: FileFormat,
    /// Type of the keys, if the program hashes types differently and its file does not say which
    #[arg(long = "as", value_name = "KIND", value_enum)]
    kind: Option<Kind>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

/// Formats whose programs hash keys of different kinds differently, and what to say. A file of ours has to know: a guess could
/// deny every key.
static OF_SEVERAL_KINDS: [(&Format, &str); 5] = [
    (&fastfilter::XOR8, INTEGERS_OR_NOT),
    (&fastfilter::XOR16, INTEGERS_OR_NOT),
    (&fastfilter::FUSE8, INTEGERS_OR_NOT),
    (&fastfilter::FUSE16, INTEGERS_OR_NOT),
    (&pyprobables::FORMAT, "--as bytes if they are text, or else --as hex"),
];
const INTEGERS_OR_NOT: &str = "--as i64 or --as u64 if they are integers, or else --as bytes";

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let path = &args.filter;
    must_not_be_output(None, [&**path])?;
    let (opened, from, summing) = args.open.open_whole(path, args.kind, common)?;
    let filter = opened.filter;
    let mut kinds = OF_SEVERAL_KINDS.iter().filter(|(format, _)| from == FileFormat::Foreign(format));
    if let (None, Some((format, say))) = (args.kind, kinds.next()) {
        anyhow::bail!(
            "{}: the format {} does not tell what its keys are; say {say}",
            path.display(),
            format.name
        );
    }
    if is_same_file(path, &args.output) && args.to == FileFormat::Mayhap && from == FileFormat::Mayhap {
        anyhow::bail!("{}: is a mayhap file already", path.display());
    }
    common.say_if_locked(&args.output);
    let target = Target { path: &args.output, force: args.force };
    write_as(args.to, target, &*filter, summing).map_err(|e| {
        match e.is::<mayhap::interop::ConvertError>() {
            true => e.context(path.display().to_string()),
            false => e,
        }
    })?;
    if args.to != FileFormat::Mayhap {
        warn_of_loss(common, &args.output, args.to.name(), &*filter);
    }
    args.open.secret.remind(common, filter.hashing(), path, &args.output);
    let (report, to) = (filter.report(), args.to.name());
    if args.json {
        let value = json!({
            "output": args.output.to_string_lossy(), "from": from.name(), "to": to, "rule": filter.program(),
            "family": filter.family().name, "bits": report.bits, "fpr_now": report.fpr_now,
        });
        print_beside(&args.output, &value)?;
    } else {
        common.say(format_args!(
            "{}: from {} to {to}, {}, false-positive rate now {}",
            args.output.display(),
            from.name(),
            report::bytes(report.bits.div_ceil(8)),
            report::rate_now(&report),
        ));
    }
    Ok(YES)
}
