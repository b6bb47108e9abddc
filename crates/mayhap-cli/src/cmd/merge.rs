//! `mayhap merge`: union, intersection and difference of filter files.

use std::path::PathBuf;

use anyhow::{Context, Result};
use mayhap::{AnyFilter, Combine, Summing, combine, share_exceptions};
use serde_json::json;

use crate::args::{Common, OpenArgs};
use crate::cmd::add::need;
use crate::cmd::build::{print_beside, warn_if_over_capacity};
use crate::formats::{FileFormat, write_as};
use crate::output::Target;
use crate::same_file::must_not_be_output;
use crate::spelling::{must_be_alike, warn_of_loss};
use crate::{YES, numbers, report};

/// Merge filter files into one that holds the keys of all
///
/// The filters must have the same family and hash, and for --intersect the same size. A union brings different sizes
/// together where the family allows it, at a higher false-positive rate.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap build -n 10k -o a.mayhap urls.txt\n  \
mayhap build -n 10k -o b.mayhap more.txt\n  mayhap merge -o all.mayhap a.mayhap b.mayhap\n  \
mayhap merge --intersect -o both.mayhap a.mayhap b.mayhap\n  \
mayhap merge --max-fpr 2% -o all.mayhap a.mayhap b.mayhap")]
pub(crate) struct Args {
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the output even if it is not a filter. Key files are never replaced
    #[arg(long)]
    force: bool,
    /// The filter files
    #[arg(required = true, num_args = 1..)]
    filters: Vec<PathBuf>,
    /// Keep only keys that are in all filters
    ///
    /// The result has two false-positive rates: one for keys that are in none of the filters, and a higher one for keys that are
    /// in some of them. A key of one filter alone is admitted as often as the other filter admits an absent key.
    #[arg(long, conflicts_with = "minus")]
    intersect: bool,
    /// Keep only keys of the first filter that are in none of the others
    #[arg(long)]
    minus: bool,
    /// Write nothing if the result's false-positive rate is above this
    #[arg(long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true)]
    max_fpr: Option<f64>,
    /// Print JSON
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
    let intersects = how == Combine::Intersection;
    must_not_be_output(None, args.filters.iter().map(PathBuf::as_path))?;
    let (first, others) = args.filters.split_first().context("no filter file is given")?;
    let mut opened = Vec::with_capacity(args.filters.len());
    let mut summing = Summing::Payload;
    let mut formats = Vec::with_capacity(args.filters.len());
    // A key that is in all filters but one passes if that one admits it.
    let mut one_side = 0.0_f64;
    for path in &args.filters {
        let (part, format, summed) = args.open.open_whole(path, None, common)?;
        if summed == Summing::Skip {
            summing = summed;
        }
        one_side = one_side.max(part.filter.report().fpr_now);
        opened.push(part.filter);
        formats.push(format);
    }
    for (path, other) in args.filters.iter().zip(&opened) {
        must_be_alike((first, &*opened[0]), (path, &**other))?;
    }
    // Files of one format give another of it; of several, one of ours, which holds every filter.
    let format =
        formats.iter().copied().reduce(|one, other| if one == other { one } else { FileFormat::Mayhap });
    let format = format.unwrap_or(FileFormat::Mayhap);
    // Before any two are one: what each of them denies by itself stays denied.
    share_exceptions(&mut opened);
    let mut opened = opened.into_iter();
    let mut next = || opened.next().context("as many filters as names");
    let mut parts = vec![(first, next()?)];
    let (family, hashing) = (parts[0].1.family(), parts[0].1.hashing());
    match how {
        Combine::Union => need(first, &*parts[0].1, "merge", |can| can.merges),
        Combine::Intersection => need(first, &*parts[0].1, "intersect", |can| can.intersects),
        Combine::Difference => need(first, &*parts[0].1, "subtract", |can| can.subtracts),
    }?;
    let join = |ours: &mut (&PathBuf, Box<dyn AnyFilter>), theirs: (&PathBuf, Box<dyn AnyFilter>)| {
        combine(&mut *ours.1, &*theirs.1, how)
            .with_context(|| format!("{} and {}", ours.0.display(), theirs.0.display()))
    };
    // Filters of the same size first, which costs nothing. What is left has different sizes: each is
    // brought to the largest directly, and not by way of those between.
    for path in others {
        let other = next()?;
        if other.family() == family {
            let same = hashing.must_equal(&other.hashing());
            same.with_context(|| format!("{} and {}", first.display(), path.display()))?;
        }
        // Who does not fold does not bring sizes together either: what differs is refused at once.
        let at_once = how != Combine::Union || other.family() != family || !family.can.folds;
        match parts.iter_mut().find(|part| at_once || size(&*part.1) == size(&*other)) {
            Some(part) => join(part, (path, other))?,
            None => parts.push((path, other)),
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.1.report().bits));
    let sizes: Vec<_> = parts.iter().map(|part| describe_size(&*part.1)).collect();
    let summed: Option<f64> = parts.iter().map(|part| part.1.report().estimated_len).sum();
    let mut parts = parts.into_iter();
    let mut result = parts.next().context("no filter file is given")?;
    for part in parts {
        join(&mut result, part)?;
    }
    let result = result.1;
    let report = result.report();
    if let Some(limit) = args.max_fpr.filter(|&limit| report.fpr_now > limit) {
        anyhow::bail!(
            "the result's false-positive rate would be {}, the limit is {}; nothing was written",
            report::rate(report.fpr_now),
            report::rate(limit),
        );
    }
    common.say_if_locked(&args.output);
    write_as(format, Target { path: &args.output, force: args.force }, &*result, summing)?;
    if format != FileFormat::Mayhap {
        warn_of_loss(common, &args.output, format.name(), &*result);
    }
    args.open.secret.remind(common, result.hashing(), first, &args.output);
    let mixed = sizes.len() > 1;
    if mixed {
        common.say(format_args!(
            "the sizes differ ({}); the result has {}. Filters of one size merge at a lower rate",
            sizes.join("; "),
            describe_size(&*result),
        ));
    }
    // A bit that was brought to another size is several, which look like more keys, and the sum of the parts
    // counts common keys twice: the lower one is nearer.
    let keys = match (report.estimated_len, summed) {
        (Some(after), Some(before)) if mixed => Some(after.min(before)),
        // The common bits of another program's filters do not tell how many keys set them.
        _ if intersects && result.program().is_some() => None,
        (after, _) if intersects => after,
        (after, before) => after.or(before),
    };
    if args.json {
        let value = json!({
            "output": args.output.to_string_lossy(), "family": result.family().name,
            "estimated_len": keys, "bits": report.bits, "probes": report.probes,
            "fill": report.fill, "fpr_now": report.fpr_now,
            "fpr_strangers": intersects.then_some(report.fpr_now), "fpr_one_side": intersects.then_some(one_side),
            "exceptions": result.exceptions().map_or(0, |exceptions| exceptions.keys),
        });
        print_beside(&args.output, &value)?;
    } else {
        let about = if mixed { "at most about" } else { "about" };
        let keys = keys.map_or("an unknown number of keys".into(), |len| {
            format!("{about} {}", report::counted(len.round() as u64, "key"))
        });
        common.say(format_args!(
            "{}: {keys}, false-positive rate now {}",
            args.output.display(),
            report::rate_now(&report),
        ));
        if intersects && one_side > 0.0 {
            common.say(format_args!(
                "that is the rate for keys that are in none of the filters; keys of some of them are admitted at up to {}",
                report::rate(one_side),
            ));
        }
        if !mixed {
            warn_if_over_capacity(common, &report);
        } else if report.fpr_now > report.fpr_asked {
            common.say(format_args!(
                "warning: its false-positive rate is now {}, requested was {}",
                report::rate(report.fpr_now),
                report::rate(report.fpr_asked),
            ));
        }
    }
    Ok(YES)
}

/// Filters of one family that agree in this mean the same by the same bits.
fn size(filter: &dyn AnyFilter) -> (u64, Option<u32>) {
    let report = filter.report();
    (report.bits, report.probes)
}

fn describe_size(filter: &dyn AnyFilter) -> String {
    let (bits, probes) = size(filter);
    let probes =
        probes.map_or(String::new(), |probes| format!(", {}", report::counted(probes.into(), "probe")));
    format!("{} bits{probes}", report::grouped(bits))
}
