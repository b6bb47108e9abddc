//! `mayhap test`: does a filter file keep its promises?

use std::path::PathBuf;

use anyhow::Result;
use mayhap::{AnyFilter, Digest, Guarantee};
use mayhap_eval::{Proportion, Random};
use mayhap_store::Check;
use serde_json::json;

use crate::args::{Common, KeyArgs, OpenArgs};
use crate::cmd::add::check_kind;
use crate::input::Buffer;
use crate::same_file::must_not_be_output;
use crate::{NO, YES, report};

/// Test a filter file: all keys are found, and the measured rate is the claimed one
///
/// Exit status 0 if both hold, 1 if not.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap test urls.mayhap urls.txt\n  \
mayhap test urls.mayhap urls.txt --absent others.txt")]
pub(crate) struct Args {
    /// The filter file
    filter: PathBuf,
    /// Files with keys that must be found; none or - is standard input
    files: Vec<PathBuf>,
    /// File with absent keys to measure the rate with [default: random digests]
    #[arg(long, value_name = "FILE")]
    absent: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
    #[command(flatten)]
    open: OpenArgs,
}

/// A right filter fails with a chance of one in 1.7 million.
const SIGMAS: f64 = 5.0;
const CONFIDENCE: f64 = 0.95;
/// Standard deviations on either side of a 95% interval.
const INTERVAL_SIGMAS: f64 = 1.96;

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    must_not_be_output(Some(&args.keys.inputs(&args.files)), [&*args.filter])?;
    let opened = args.open.open_with_format(&args.filter, Some(args.keys.kind()), Check::All)?.0;
    let filter = &*opened.filter;
    let keys = args.keys.for_file(&args.filter, filter)?;
    check_kind(&args.filter, filter, &keys)?;
    let args = &Args { keys, ..args.clone() };
    let present = ask(args, common, filter, &args.files)?;
    // The rate that is claimed is that of the filter by itself, and exceptions would make it look better.
    let filter = filter.exceptions().map_or(filter, |exceptions| exceptions.without);
    let missing = present.trials - present.hits;
    let claim = filter.report();
    let (claimed, exact) = (claim.fpr_now, claim.guarantee == Guarantee::Exact);
    // How far an estimate may be off, relative to it: that adds to what chance does to the measurement.
    let rho = claim.fpr_interval.map_or(0.0, |(_, high)| (high - claimed) / INTERVAL_SIGMAS / claimed);
    let absent = match &args.absent {
        Some(path) => Some(ask(args, common, filter, std::slice::from_ref(path))?),
        // Random digests stand for random keys, which an exact set certainly does not hold.
        None if exact => None,
        None => Some(ask_random(filter, claimed)),
    };
    // Of keys of its universe fewer are admitted than of strangers: none.
    let may_be_less = claim.guarantee == Guarantee::ExactInUniverse;
    let agrees = absent.is_none_or(|absent| {
        let is_less = may_be_less && absent.rate().is_some_and(|rate| rate <= claimed);
        absent.trials == 0 || is_less || absent.agrees_with(claimed, rho, SIGMAS)
    });
    let held = missing == 0 && agrees;

    let measured = absent.and_then(Proportion::rate);
    let interval = absent.and_then(|absent| absent.clopper_pearson(CONFIDENCE));
    if args.json {
        report::print_json(&json!({
            "keys": present.trials, "missing": missing, "absent_asked": absent.map(|a| a.trials),
            "fpr_claimed": claimed, "fpr_claimed_interval": claim.fpr_interval, "fpr_measured": measured,
            "fpr_low": interval.map(|(low, _)| low), "fpr_high": interval.map(|(_, high)| high),
            "held": held,
        }))?;
        return Ok(if held { YES } else { NO });
    }
    let mut pairs = vec![
        ("lookups", report::grouped(present.trials)),
        ("not found", report::grouped(missing)),
        ("rate claimed", report::rate_now(&claim)),
    ];
    match (absent, measured, interval) {
        (Some(absent), Some(measured), Some((low, high))) => pairs.push((
            "rate measured",
            format!(
                "{}, 95% interval {} to {}, {} absent keys",
                report::percent(measured),
                report::percent(low),
                report::percent(high),
                report::grouped(absent.trials),
            ),
        )),
        _ => pairs.push(("rate measured", "not measured: there was no absent key to ask for".into())),
    }
    let verdict = match (missing, agrees) {
        (0, true) => "holds",
        (0, false) => "FAILS: the measured rate is not the claimed one",
        _ => "FAILS: keys are missing",
    };
    pairs.push(("verdict", verdict.into()));
    report::print_pairs(&pairs)?;
    Ok(if held { YES } else { NO })
}

fn ask(args: &Args, common: &Common, filter: &dyn AnyFilter, files: &[PathBuf]) -> Result<Proportion> {
    let inputs = args.keys.inputs(files);
    let selector = args.keys.selector_for(filter);
    let progress = common.progress("testing", &inputs);
    let (mut chunks, mut buffer) = (inputs.chunks(), Buffer::default());
    let mut hits = Vec::new();
    let mut asked = Proportion { hits: 0, trials: 0 };
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        hits.clear();
        selector.ask(&chunk, filter, &mut hits)?;
        asked.trials += hits.len() as u64;
        asked.hits += hits.iter().filter(|&&hit| hit).count() as u64;
        buffer = chunk.bytes;
    }
    Ok(asked)
}

/// Enough questions to expect a thousand false positives, within reason.
fn ask_random(filter: &dyn AnyFilter, claimed: f64) -> Proportion {
    let trials = (1000.0 / claimed.max(1e-12)).clamp(1e5, 1e7) as u64;
    let mut random = Random::new(0x006d_6179_6861_7000);
    let (mut digests, mut hits) = (Vec::new(), Vec::new());
    let mut asked = Proportion { hits: 0, trials };
    for start in (0..trials).step_by(1 << 14) {
        digests.clear();
        hits.clear();
        let count = (trials - start).min(1 << 14);
        digests.extend((0..count).map(|_| Digest { a: random.next_u64(), b: random.next_u64() }));
        if filter.program().is_none() {
            filter.contains_batch(&digests, &mut hits);
        } else {
            // Not every digest is one that another program's hash function gives.
            let keys: Vec<[u8; 8]> = digests.iter().map(|digest| digest.a.to_le_bytes()).collect();
            filter.contains_keys(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>(), &mut hits);
        }
        asked.hits += hits.iter().filter(|&&hit| hit).count() as u64;
    }
    asked
}
