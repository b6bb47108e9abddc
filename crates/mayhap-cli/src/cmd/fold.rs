//! `mayhap fold`: a smaller file from one that was made too large.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use mayhap::FoldError;
use serde_json::json;

use crate::args::{Common, OpenArgs};
use crate::cmd::add::need;
use crate::cmd::build::print_beside;
use crate::formats::write_as;
use crate::output::Target;
use crate::same_file::must_not_be_output;
use crate::{YES, numbers, report};

/// Shrink a filter file that is larger than needed to a false-positive rate
///
/// The keys are not needed. A filter is folded by a divisor of its number of bits, so build one that may have to shrink
/// with --foldable. The smallest result that keeps the rate is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap build -n 100M --foldable -o seen.mayhap urls.txt\n  \
mayhap fold -p 1% -o small.mayhap seen.mayhap")]
pub(crate) struct Args {
    /// False-positive rate of the result, at most
    #[arg(short = 'p', long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true)]
    fpr: f64,
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the output even if it is not a filter. Key files are never replaced
    #[arg(long)]
    force: bool,
    /// The filter file
    filter: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let path = &args.filter;
    must_not_be_output(None, [&**path])?;
    let (opened, format, summing) = args.open.open_whole(path, None, common)?;
    let filter = opened.filter;
    let family = filter.family();
    need(path, &*filter, "fold", |can| can.folds)?;
    let folded = filter.as_fold().ok_or(filter.unsupported("fold"))?.fold_to(args.fpr);
    let folded = folded.map_err(|e| anyhow!("{}: {}", path.display(), explain(e)))?;
    common.say_if_locked(&args.output);
    write_as(format, Target { path: &args.output, force: args.force }, &*folded, summing)?;
    args.open.secret.remind(common, folded.hashing(), path, &args.output);

    let (before, after) = (filter.report(), folded.report());
    let factor = before.bits / after.bits;
    let (size, size_before) = (after.bits.div_ceil(8), before.bits.div_ceil(8));
    if args.json {
        let value = json!({
            "output": args.output.to_string_lossy(), "family": family.name, "factor": factor,
            "bits_before": before.bits, "fpr_before": before.fpr_now, "capacity": after.capacity,
            "inserted": after.inserted, "estimated_len": after.estimated_len, "bits": after.bits,
            "bytes": size, "probes": after.probes, "fill": after.fill, "fpr_asked": after.fpr_asked,
            "fpr_now": after.fpr_now, "fpr_at_capacity": after.fpr_at_capacity,
        });
        print_beside(&args.output, &value)?;
        return Ok(YES);
    }
    common.say(format_args!(
        "{}: folded by {}, from {} to {}; false-positive rate now {}, before {}",
        args.output.display(),
        report::grouped(factor),
        report::bytes(size_before),
        report::bytes(size),
        report::rate(after.fpr_now),
        report::rate(before.fpr_now),
    ));
    Ok(YES)
}

/// Why not, in the numbers of the command line, and what to do.
fn explain(error: FoldError) -> String {
    match error {
        FoldError::TooFull { asked, now } => format!(
            "its false-positive rate is already {}, requested was {}; nothing was written",
            report::rate(now),
            report::rate(asked),
        ),
        FoldError::NoFold { bits, asked, factor, fpr } => format!(
            "no fold keeps the rate at {}: by {factor}, the least divisor of its {} bits, it is {}; nothing was \
             written (build it with --foldable for more divisors)",
            report::rate(asked),
            report::grouped(bits),
            report::rate(fpr),
        ),
        error => error.to_string(),
    }
}
