//! `mayhap eval --suite classic`: experiments that circulate about Bloom filters, beside Guava.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use mayhap_eval::{
    Admitted, CLASSIC_KEYS, ClassicFilter, ClassicRate, ClassicTimes, HASH_FUNCTIONS, TIMED_BYTES,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Args;
use crate::args::Common;
use crate::{YES, report};

/// Keys of one kind, in one structure.
struct Timing {
    structure: &'static str,
    keys: &'static str,
    times: ClassicTimes,
}

const ROUNDS: usize = 5;
const CLASSIC_FPR: f64 = 0.03;

pub(super) fn run(args: &Args, common: &Common) -> Result<u8> {
    let keys = args.keys(CLASSIC_KEYS)?;
    let progress = common.progress_of_any_keys("measuring");
    let advance = |keys: u64| progress.advance(keys as usize);
    let rates = mayhap_eval::classic_rates(keys, args.seed, &advance);
    // A tenth of them for Guava, whose report is of a million.
    let admitted =
        [mayhap_eval::admitted_by_a_java_class(keys), mayhap_eval::admitted_by_guava((keys / 10).max(1))?];
    advance(2 * keys);
    let (timings, why) = timings(args, keys, &advance)?;
    drop(progress);
    let hashes: Vec<(&str, Option<f64>, f64)> =
        [("md5", Some(4.857)), ("murmur3-x86-32", Some(2.057)), ("xxh3-128", None)]
            .into_iter()
            .filter_map(|(name, reported)| {
                let function = HASH_FUNCTIONS.iter().find(|function| function.name == name)?;
                Some((name, reported, mayhap_eval::time_hash(function) * 1e-9 * CLASSIC_KEYS as f64))
            })
            .collect();
    let crossings = [("semi-sorted", true, 0.024), ("plain", false, 0.0037)]
        .map(|(name, semi_sorted, reported)| (name, reported, mayhap_eval::cuckoo_crossing(semi_sorted)));
    if args.json {
        let rates: Vec<Value> = rates.iter().map(rate_json).collect();
        let timings: Vec<Value> = timings
            .iter()
            .map(|timing| {
                let ClassicTimes { add_ns, hit_ns, miss_ns, admitted } = timing.times;
                json!({
                    "structure": timing.structure, "keys": timing.keys, "capacity": keys, "insert_ns": add_ns,
                    "hit_ns": hit_ns, "miss_ns": miss_ns, "fpr_measured": admitted as f64 / keys as f64,
                })
            })
            .collect();
        let hashes: Vec<Value> = hashes
            .iter()
            .map(|(name, reported, seconds)| json!({ "hash": name, "reported_seconds": reported, "seconds": seconds }))
            .collect();
        let crossings: Vec<Value> = crossings
            .iter()
            .map(|(name, reported, rate)| json!({ "cuckoo": name, "reported": reported, "rate": rate }))
            .collect();
        let admitted: Vec<Value> = admitted.iter().map(admitted_json).collect();
        report::print_json(&json!({
            "rates": rates, "admitted": admitted, "times": timings, "guava": why, "hashes": hashes, "crossings": crossings,
        }))?;
        return Ok(YES);
    }
    print_rates(&rates)?;
    print_admitted(&admitted)?;
    print_times(&timings, keys, why.as_deref())?;
    writeln!(report::stdout(), "\n10,000,000 hashes of a key of {TIMED_BYTES} bytes, seconds:")?;
    let cells: Vec<Vec<String>> = hashes
        .iter()
        .map(|(name, reported, seconds)| {
            vec![(*name).into(), as_reported(*reported), format!("{seconds:.2}")]
        })
        .collect();
    report::print_table(&["hash", "reported", "measured"], &cells, &[])?;
    writeln!(
        report::stdout(),
        "\nBelow these rates a cuckoo filter takes fewer bits per key than a Bloom filter:"
    )?;
    let cells: Vec<Vec<String>> = crossings
        .iter()
        .map(|(name, reported, rate)| {
            vec![(*name).into(), report::percent(*reported), report::percent(*rate)]
        })
        .collect();
    report::print_table(&["cuckoo", "reported", "computed"], &cells, &[])?;
    Ok(YES)
}

fn rate_json(rate: &ClassicRate) -> Value {
    let finding = rate.finding.as_ref().ok();
    json!({
        "what": rate.what, "capacity": rate.keys, "distinct": rate.distinct, "questions": rate.asked,
        "fpr_asked": rate.fpr, "family": rate.family, "reported": rate.reported, "corrected": rate.corrected, "right": rate.right,
        "fpr_predicted": finding.map(|finding| finding.expected),
        "fpr_measured": finding.map(|finding| finding.measured),
        "fpr_low": finding.map(|finding| finding.low),
        "fpr_high": finding.map(|finding| finding.high),
        "agrees": finding.map(mayhap_eval::Finding::agrees),
        "impossible": rate.finding.as_ref().err().map(ToString::to_string),
    })
}

/// As it was printed: no digit is dropped.
fn as_reported(value: Option<f64>) -> String {
    value.map_or("–".into(), |value| value.to_string())
}

fn admitted_json(admitted: &Admitted) -> Value {
    let finding = &admitted.finding;
    json!({
        "filter": admitted.filter, "what": admitted.what, "capacity": admitted.keys, "bits": admitted.bits, "probes": admitted.probes,
        "questions": admitted.asked, "admitted": admitted.admitted, "false_positives": admitted.admitted.len(),
        "reported": admitted.reported, "as_reported": admitted.reported.map(|_| admitted.is_as_reported),
        "fpr_predicted": finding.expected, "fpr_measured": finding.measured, "fpr_low": finding.low,
        "fpr_high": finding.high, "agrees": finding.agrees(),
    })
}

fn print_admitted(all: &[Admitted]) -> Result<()> {
    /// More are not listed.
    const MOST: usize = 20;
    writeln!(report::stdout(), "\nFilters of other programs, the same keys in the same places:")?;
    for admitted in all {
        let (finding, count) = (&admitted.finding, admitted.admitted.len());
        let list = admitted.admitted.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let list = if count <= MOST { format!(": {list}") } else { String::new() };
        let verdict = match (admitted.reported, admitted.is_as_reported) {
            (None, _) => "",
            (Some(_), false) => "; NOT WHAT WAS REPORTED",
            (Some(_), true) if count <= MOST => "; exactly the numbers that were reported",
            (Some(_), true) => "; exactly as many as were reported",
        };
        writeln!(
            report::stdout(),
            "{}: {} {} in {} bits with {} probes, {} others asked\n  {count} admitted{list}\n  rate {}, predicted {}, must be \
             in {}–{}{}{verdict}",
            admitted.filter,
            report::grouped(admitted.keys),
            admitted.what,
            report::grouped(admitted.bits),
            admitted.probes,
            report::grouped(admitted.asked),
            report::short(finding.measured),
            report::short(finding.expected),
            report::short(finding.low),
            report::short(finding.high),
            if finding.agrees() { "" } else { ": DISAGREES" },
        )?;
    }
    Ok(())
}

fn print_rates(rates: &[ClassicRate]) -> Result<()> {
    writeln!(report::stdout(), "False-positive rates:")?;
    let cells: Vec<Vec<String>> = rates
        .iter()
        .filter_map(|rate| {
            let finding = rate.finding.as_ref().ok()?;
            Some(vec![
                rate.what.clone(),
                report::grouped(rate.keys),
                report::percent(rate.distinct as f64 / rate.keys as f64),
                report::grouped(rate.asked),
                report::percent(rate.fpr),
                rate.family.into(),
                as_reported(rate.reported),
                as_reported(rate.corrected),
                report::measured(rate.right),
                report::measured(finding.expected),
                report::measured(finding.measured),
                format!("{}–{}", report::measured(finding.low), report::measured(finding.high)),
                if finding.agrees() { String::new() } else { "DISAGREES".into() },
            ])
        })
        .collect();
    let head = [
        "keys",
        "number",
        "different",
        "asked",
        "rate",
        "family",
        "reported",
        "corrected",
        "right if all differ",
        "predicted",
        "measured",
        "must be in",
        "",
    ];
    report::print_table(&head, &cells, &[5, 12])?;
    if rates.iter().any(|rate| rate.corrected.is_some()) {
        writeln!(
            report::stdout(),
            "corrected: the false positives were divided by all lookups; of the absent keys alone it is this."
        )?;
    }
    for rate in rates {
        if let Err(why) = &rate.finding {
            writeln!(
                report::stdout(),
                "{} keys, {}, {}: impossible: {why}",
                report::grouped(rate.keys),
                rate.what,
                rate.family
            )?;
        }
    }
    Ok(())
}

fn print_times(timings: &[Timing], keys: u64, why: Option<&str>) -> Result<()> {
    writeln!(
        report::stdout(),
        "\nSeconds for {} keys at {}; reported were 3.853 for 10 million adds, 3.907 for as many checks, 8.798 for both:",
        report::grouped(keys),
        report::percent(CLASSIC_FPR)
    )?;
    let seconds = |ns: f64| ns * 1e-9 * keys as f64;
    let cells: Vec<Vec<String>> = timings
        .iter()
        .map(|timing| {
            let times = timing.times;
            let theirs = timings.iter().find(|other| other.structure == GUAVA && other.keys == timing.keys);
            let ratio = |of: fn(&ClassicTimes) -> f64| {
                theirs.map_or("–".into(), |theirs| format!("{:.1}x", of(&theirs.times) / of(&times)))
            };
            vec![
                timing.structure.into(),
                timing.keys.into(),
                format!("{:.3}", seconds(times.add_ns)),
                format!("{:.3}", seconds(times.hit_ns)),
                format!("{:.3}", seconds(times.miss_ns)),
                report::measured(times.admitted as f64 / keys as f64),
                ratio(|times| times.add_ns),
                ratio(|times| times.hit_ns),
                ratio(|times| times.miss_ns),
                ratio(|times| times.add_ns + times.hit_ns + times.miss_ns),
            ]
        })
        .collect();
    let head = [
        "structure",
        "keys",
        "add",
        "ask, in",
        "ask, not in",
        "rate",
        "add: Guava/this",
        "in",
        "not in",
        "all",
    ];
    report::print_table(&head, &cells, &[1])?;
    writeln!(
        report::stdout(),
        "One thread, hashing included, median of {ROUNDS} rounds; keys are made before the clock runs. Guava encodes text as\n\
         UTF-8 while it does; ours is bytes already."
    )?;
    if let Some(why) = why {
        writeln!(report::stdout(), "Guava was not measured: {why}")?;
    }
    Ok(())
}

/// All filters and Guava, in turn, with keys of both kinds; and why there is no Guava, if there is none.
fn timings(args: &Args, keys: u64, advance: &dyn Fn(u64)) -> Result<(Vec<Timing>, Option<String>)> {
    let (members, absent) = mayhap_eval::classic_numbers(keys, args.seed);
    let (mut rows, _) = timed(args, NUMBERS, &members, &absent, advance)?;
    drop((members, absent));
    let (members, absent) = mayhap_eval::classic_uuids(keys, args.seed);
    let (more, why) = timed(args, UUIDS, &members, &absent, advance)?;
    rows.extend(more);
    Ok((rows, why))
}

const NUMBERS: &str = "number";
const UUIDS: &str = "uuid";
const GUAVA: &str = "Guava";

/// Each filter in turn and then Guava, round after round: what slows the machine down for a while slows all of them.
fn timed<K: mayhap::Key>(
    args: &Args,
    keys: &'static str,
    members: &[K],
    absent: &[K],
    advance: &dyn Fn(u64),
) -> Result<(Vec<Timing>, Option<String>)> {
    let mut rounds: Vec<Vec<ClassicTimes>> = vec![Vec::new(); ClassicFilter::ALL.len()];
    let (mut guava, mut theirs) = (Guava::start(args, keys, members.len()), Vec::new());
    for _ in 0..ROUNDS {
        for (filter, rounds) in ClassicFilter::ALL.into_iter().zip(&mut rounds) {
            rounds.push(filter.time(members, absent, CLASSIC_FPR)?);
            advance(3 * members.len() as u64);
        }
        match guava.as_mut().map(Guava::round) {
            Ok(Ok(times)) => theirs.push(times),
            Ok(Err(why)) => guava = Err(why),
            Err(_) => {}
        }
    }
    let filters = ClassicFilter::ALL.map(ClassicFilter::name).into_iter().zip(rounds);
    let why = guava.err().map(|why| format!("{why:#}"));
    let guava = why.is_none().then_some((GUAVA, theirs));
    let all = filters.chain(guava);
    Ok((all.map(|(structure, rounds)| Timing { structure, keys, times: middle(&rounds) }).collect(), why))
}

/// The median of each time.
fn middle(rounds: &[ClassicTimes]) -> ClassicTimes {
    let middle = |of: fn(&ClassicTimes) -> f64| {
        mayhap_eval::median(&mut rounds.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    ClassicTimes {
        add_ns: middle(|times| times.add_ns),
        hit_ns: middle(|times| times.hit_ns),
        miss_ns: middle(|times| times.miss_ns),
        admitted: rounds[0].admitted,
    }
}

/// Where Debian puts it.
const GUAVA_JAR: &str = "/usr/share/java/guava.jar";

/// Guava itself, with the same keys.
struct Guava {
    java: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Has the program for as long as it runs.
    _folder: TempDir,
}

impl Guava {
    /// A machine for each kind of keys, so that what one has taught its compiler does not slow down the other.
    fn start(args: &Args, kind: &str, keys: usize) -> Result<Self> {
        let jar = args.guava.as_deref().unwrap_or(Path::new(GUAVA_JAR));
        ensure!(
            jar.exists(),
            "{} is not there; install Guava, or say where it is with --guava",
            jar.display()
        );
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let source = folder.path().join("GuavaTimes.java");
        std::fs::write(&source, include_str!("../../guava/GuavaTimes.java"))?;
        let mut java = Command::new("java");
        java.arg("-cp").arg(jar).arg(&source).arg(kind).args([keys.to_string(), CLASSIC_FPR.to_string()]);
        java.args([args.seed.to_string(), ROUNDS.to_string()]);
        java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut java = java.spawn().context("java cannot be run; install a JDK")?;
        let lines = BufReader::new(java.stdout.take().context("java has no output")?).lines();
        Ok(Self { java, lines, _folder: folder })
    }

    /// Lets it do one round.
    fn round(&mut self) -> Result<ClassicTimes> {
        let ended = "java ended before it was done; is there a JDK, and is this Guava's jar?";
        self.java.stdin.as_mut().context(ended)?.write_all(b"\n").context(ended)?;
        let line = self.lines.next().context(ended)??;
        guava_times(&line).with_context(|| format!("java printed what is not understood: {line}"))
    }
}

impl Drop for Guava {
    fn drop(&mut self) {
        // It has nothing to lose. If it has ended, there is nobody to stop.
        let _ = self.java.kill();
        let _ = self.java.wait();
    }
}

fn guava_times(line: &str) -> Option<ClassicTimes> {
    let mut words = line.split_whitespace();
    let mut number = || words.next()?.parse().ok();
    let (add_ns, hit_ns, miss_ns) = (number()?, number()?, number()?);
    Some(ClassicTimes { add_ns, hit_ns, miss_ns, admitted: words.next()?.parse().ok()? })
}
