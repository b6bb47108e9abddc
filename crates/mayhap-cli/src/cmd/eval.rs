//! `mayhap eval`: experiments. What theory says about a family, and what happens with keys.

use std::io::Write;

use anyhow::{Result, ensure};
use mayhap::registry::{self, FAMILIES};
use mayhap::{Family, Hashing, Layout, math};
use mayhap_eval::{Absent, Baseline, Candidate, Data, Impossible, Runs, Task, baselines};
use serde_json::{Value, json};

use crate::args::Common;
use crate::{YES, numbers, report};

/// Measure families with keys of your choice: the rate against the predicted one, times, bits per key
///
/// Keys are drawn from a distribution, so some come twice: predictions start from the number of different ones. Absent keys
/// are drawn from the same distribution, and those that are in are dropped by an exact set.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mayhap eval --family all --data uniform,gaussian,exponential -n 1M -p 1%\n  mayhap eval --family bloom,blocked --data zipf:1.1,url --repeat 5\n  mayhap eval -n 1M --plot plots\n  mayhap eval --hashes -n 1M\n  mayhap eval --suite classic\n\nData: uniform[:BOUND], gaussian[:SCALE], exponential[:SCALE], zipf[:EXPONENT], sequential, uuid, url"
)]
pub(crate) struct Args {
    /// Families, by name; all of them without it
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = family, default_value = "all")]
    family: Vec<FamilyChoice>,
    /// Where keys come from
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = data, default_value = "uniform")]
    data: Vec<Data>,
    /// Number of keys
    #[arg(short = 'n', long, value_name = "N", value_parser = numbers::capacity, allow_hyphen_values = true, default_value = "1M")]
    capacity: u64,
    /// False-positive rate
    #[arg(short = 'p', long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true, default_value = "1%")]
    fpr: f64,
    /// Do everything so often, with other keys: rates are those of all together, times are medians
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u64).range(1..=1000), default_value = "1")]
    repeat: u64,
    /// Ask for so many absent keys [default: enough for 10,000 false positives, up to 10M]
    #[arg(long, value_name = "N", value_parser = numbers::capacity)]
    questions: Option<u64>,
    /// Absent keys: from the same distribution, or odd numbers where even ones are in
    #[arg(long, value_enum, default_value = "same")]
    absent: AbsentChoice,
    /// Every seed gives other keys, always the same
    #[arg(long, value_name = "SEED", value_parser = numbers::seed, default_value = "1")]
    seed: u64,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug)]
enum FamilyChoice {
    All,
    One(&'static Family),
}

fn family(name: &str) -> Result<FamilyChoice, String> {
    if name == "all" {
        return Ok(FamilyChoice::All);
    }
    registry::family(name).map(FamilyChoice::One).ok_or_else(|| {
        let names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        format!("no family is called {name:?}; take all, or some of {}", names.join(", "))
    })
}

fn data(text: &str) -> Result<Data, mayhap_eval::UnknownData> {
    text.parse()
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum AbsentChoice {
    Same,
    Disjoint,
}

/// More keys than this do not fit beside the sets that the experiment itself needs.
const MOST: u64 = 100_000_000;

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    families(args, common)
}

/// One candidate with one kind of data.
struct Row {
    candidate: Candidate,
    data: Data,
    outcome: Result<Runs, Impossible>,
}

fn families(args: &Args, common: &Common) -> Result<u8> {
    let questions = args.questions.unwrap_or((10_000.0 / args.fpr).clamp(1e5, 1e7) as u64);
    ensure!(
        args.capacity <= MOST && questions <= MOST,
        "-n {} and {questions} questions were asked for; an experiment holds all keys, and the limit is {MOST} of each",
        args.capacity
    );
    let with_baselines = args.family.iter().any(|choice| matches!(choice, FamilyChoice::All));
    let candidates: Vec<Candidate> = args
        .family
        .iter()
        .flat_map(|choice| match choice {
            FamilyChoice::All => FAMILIES.to_vec(),
            FamilyChoice::One(family) => vec![*family],
        })
        .flat_map(|family| Candidate::all(family, args.capacity, args.fpr))
        .collect();
    let absent = match args.absent {
        AbsentChoice::Same => Absent::Same,
        AbsentChoice::Disjoint => Absent::Disjoint,
    };
    // Inserted once, and asked for once.
    let one = 2 * args.capacity + questions;
    let steps = args.data.len() as u64 * args.repeat * candidates.len() as u64;
    let progress = common.progress_of_keys("measuring", one * steps);
    let (mut rows, mut ladders) = (Vec::new(), Vec::new());
    for &data in &args.data {
        let mut outcomes: Vec<Result<Vec<_>, Impossible>> =
            candidates.iter().map(|_| Ok(Vec::new())).collect();
        for repeat in 0..args.repeat {
            let seed = args.seed.wrapping_add(repeat);
            let drawn = data.draw(seed, args.capacity, questions, absent);
            let task = Task { data, keys: args.capacity, fpr: args.fpr, seed };
            for (&candidate, outcome) in candidates.iter().zip(&mut outcomes) {
                if let Ok(runs) = outcome {
                    match mayhap_eval::run(candidate, &task, &drawn) {
                        Ok(run) => runs.push(run),
                        Err(why) => *outcome = Err(why),
                    }
                }
                progress.advance(one as usize);
            }
            if with_baselines && repeat == 0 {
                ladders.push((data, drawn.distinct, baselines(&drawn, Hashing::Xxh3 { seed })?));
            }
        }
        rows.extend(candidates.iter().zip(outcomes).map(|(&candidate, outcome)| {
            let outcome = outcome.map(|runs| Runs::new(runs).expect("at least one repeat"));
            Row { candidate, data, outcome }
        }));
    }
    drop(progress);
    if args.json {
        let runs: Vec<Value> = rows.iter().map(|row| as_json(row, args)).collect();
        let ladders: Vec<Value> = ladders
            .iter()
            .flat_map(|(data, distinct, rows)| rows.iter().map(|row| baseline_json(*data, *distinct, row)))
            .collect();
        report::print_json(&json!({ "runs": runs, "baselines": ladders }))?;
        return Ok(YES);
    }
    print(args, &rows, &ladders, questions)?;
    Ok(YES)
}

fn print(args: &Args, rows: &[Row], ladders: &[(Data, u64, Vec<Baseline>)], questions: u64) -> Result<()> {
    writeln!(
        report::stdout(),
        "{} keys at {}, {} absent keys asked, seed {}\n",
        report::grouped(args.capacity),
        report::rate(args.fpr),
        report::grouped(questions),
        args.seed
    )?;
    let head = [
        "family",
        "data",
        "different",
        "bits/key",
        "over bound",
        "predicted",
        "measured",
        "must be in",
        "lost",
        "insert",
        "hit",
        "miss",
        "",
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .filter_map(|row| {
            let runs = row.outcome.as_ref().ok()?;
            let (low, high) = runs.fpr_interval();
            let exact = row.candidate.family.can.exact;
            let verdict = match (runs.false_negatives(), runs.agrees()) {
                (0, true) => "",
                (0, false) => "DISAGREES",
                _ => "LOST KEYS",
            };
            Some(vec![
                report::family(row.candidate.family.name, row.candidate.layout),
                row.data.to_string(),
                report::percent(runs.distinct() / args.capacity as f64),
                report::short(runs.bits_per_key()),
                if exact { "–".into() } else { format!("{:.3}x", overhead(runs, args)) },
                if exact { "exact".into() } else { report::short(runs.fpr_predicted()) },
                report::short(runs.fpr_measured()),
                if exact {
                    "–".into()
                } else {
                    format!("{}–{}", report::short(low), report::short(high))
                },
                report::grouped(runs.false_negatives()),
                nanoseconds(runs.insert_ns()),
                nanoseconds(runs.hit_ns()),
                nanoseconds(runs.miss_ns()),
                verdict.into(),
            ])
        })
        .collect();
    report::print_table(&head, &cells, &[1, 12])?;
    for row in rows {
        if let Err(why) = &row.outcome {
            let name = report::family(row.candidate.family.name, row.candidate.layout);
            writeln!(report::stdout(), "{name}, {}: impossible: {why}", row.data)?;
        }
    }
    if ladders.is_empty() {
        return Ok(());
    }
    writeln!(report::stdout(), "\nwithout a filter:")?;
    let cells: Vec<Vec<String>> = ladders
        .iter()
        .flat_map(|(data, distinct, rows)| rows.iter().map(move |row| (data, distinct, row)))
        .map(|(data, distinct, row)| {
            vec![
                row.name.into(),
                data.to_string(),
                report::short(8.0 * row.bytes as f64 / *distinct as f64),
                if row.fpr_predicted < 1e-12 { "none".into() } else { report::short(row.fpr_predicted) },
                row.false_positives.rate().map_or("not asked".into(), report::short),
                nanoseconds(row.insert_ns),
                nanoseconds(row.hit_ns),
                nanoseconds(row.miss_ns),
            ]
        })
        .collect();
    let head = ["structure", "data", "bits/key", "error predicted", "measured", "insert", "hit", "miss"];
    report::print_table(&head, &cells, &[1])?;
    writeln!(
        report::stdout(),
        "\nTimes are nanoseconds per key on one thread, hashing included; filters are asked in batches."
    )?;
    Ok(())
}

fn nanoseconds(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn overhead(runs: &Runs, args: &Args) -> f64 {
    runs.bits_per_key() / math::lower_bound_bits(1.0, args.fpr)
}

fn as_json(row: &Row, args: &Args) -> Value {
    let Row { candidate: Candidate { family, layout }, data, outcome } = row;
    let runs = outcome.as_ref().ok();
    let number = |value: fn(&Runs) -> f64| runs.map(value);
    json!({
        "family": family.name,
        "layout": layout.map(Layout::name),
        "data": data.to_string(),
        "capacity": args.capacity,
        "distinct": number(Runs::distinct),
        "fpr_asked": args.fpr,
        "fpr_predicted": number(Runs::fpr_predicted),
        "fpr_measured": number(Runs::fpr_measured),
        "fpr_low": runs.map(|runs| runs.fpr_interval().0),
        "fpr_high": runs.map(|runs| runs.fpr_interval().1),
        "agrees": runs.map(Runs::agrees),
        "questions": runs.map(|runs| runs.false_positives().trials),
        "false_positives": runs.map(|runs| runs.false_positives().hits),
        "false_negatives": runs.map(Runs::false_negatives),
        "insert_ns": number(Runs::insert_ns),
        "hit_ns": number(Runs::hit_ns),
        "miss_ns": number(Runs::miss_ns),
        "bits_per_key": number(Runs::bits_per_key),
        "overhead": runs.filter(|_| !family.can.exact).map(|runs| overhead(runs, args)),
        "repeat": args.repeat,
        "seed": args.seed,
        "impossible": outcome.as_ref().err().map(ToString::to_string),
    })
}

fn baseline_json(data: Data, distinct: u64, row: &Baseline) -> Value {
    json!({
        "name": row.name,
        "data": data.to_string(),
        "bytes": row.bytes,
        "bits_per_key": 8.0 * row.bytes as f64 / distinct as f64,
        "fpr_predicted": row.fpr_predicted,
        "fpr_measured": row.false_positives.rate(),
        "false_negatives": row.false_negatives,
        "insert_ns": row.insert_ns,
        "hit_ns": row.hit_ns,
        "miss_ns": row.miss_ns,
    })
}
