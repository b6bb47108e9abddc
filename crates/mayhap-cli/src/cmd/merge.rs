//! `mayhap merge`: union, intersection and difference of filter files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use mayhap::{Combine, combine};
use serde_json::json;

use crate::args::{Common, OpenArgs};
use crate::cmd::add::need;
use crate::cmd::build::{warn_if_over_capacity, write};
use crate::{YES, numbers, report};

/// Merge filter files into one that holds the keys of all
///
/// They must agree in family, size, probes and hash; a difference is named.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The filter files
    #[arg(required = true, num_args = 1..)]
    filters: Vec<PathBuf>,
    /// Keep only the keys that are in all of them
    #[arg(long, conflicts_with = "minus")]
    intersect: bool,
    /// Keep only the keys of the first that are in none of the others
    #[arg(long)]
    minus: bool,
    /// Write nothing if the result's false-positive rate is above this
    #[arg(long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true)]
    max_fpr: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    open: OpenArgs,
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let how = match (args.intersect, args.minus) {
        (true, _) => Combine::Intersection,
        (_, true) => Combine::Difference,
        _ => Combine::Union,
    };
    let (first, others) = args.filters.split_first().context("no filter file is given")?;
    let mut result = args.open.open(first)?.filter;
    let family = result.family();
    match how {
        Combine::Union => need(first, family, "merge", |family| family.can.merges),
        Combine::Intersection => need(first, family, "intersect", |family| family.can.intersects),
        Combine::Difference => need(first, family, "subtract", |family| family.can.subtracts),
    }?;
    for path in others {
        let other = args.open.open(path)?.filter;
        combine(&mut *result, &*other, how)
            .map_err(|e| anyhow!("{} and {}: {e}", first.display(), path.display()))?;
    }
    let report = result.report();
    if let Some(limit) = args.max_fpr.filter(|&limit| report.fpr_now > limit) {
        anyhow::bail!(
            "the result's false-positive rate would be {}, the limit is {}; nothing was written",
            report::rate(report.fpr_now),
            report::rate(limit),
        );
    }
    write(&args.output, &*result)?;
    if args.json {
        let value = json!({
            "output": args.output.to_string_lossy(), "family": result.family().name,
            "estimated_len": report.estimated_len, "fill": report.fill, "fpr_now": report.fpr_now,
        });
        // With the filter itself on standard output the report must not be there too.
        if args.output == Path::new("-") {
            report::note(value);
        } else {
            report::print_json(&value)?;
        }
    } else {
        let keys = report
            .estimated_len
            .map_or("an unknown number of".into(), |len| report::grouped(len.round() as u64));
        common.say(format_args!(
            "{}: about {keys} keys, false-positive rate now {}",
            args.output.display(),
            report::rate(report.fpr_now),
        ));
        warn_if_over_capacity(common, &*result);
    }
    Ok(YES)
}
