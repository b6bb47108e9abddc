//! `mayhap eval`: experiments. What theory says about a family, and what happens with keys.

mod classic;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use mayhap::{FAMILIES, Family, Hashing, Knob, Layout, Make, Spec, math};
use mayhap_eval::{
    Absent, Baseline, Candidate, Data, Drawn, HASH_FUNCTIONS, HASHED_KEYS, Impossible, NoChart, PAPERS,
    Paper, Runs, SplitMix64, TIMED_BYTES, Task, Texts, baselines,
};
use serde_json::{Value, json};

use crate::args::{Common, KeyArgs};
use crate::cmd::build::family_name;
use crate::input::Buffer;
use crate::output::{is_stdout, must_take_picture, write_picture};
use crate::suggest::unknown;
use crate::{YES, numbers, report};

/// Measure families: rate against prediction, times, bits per key
///
/// Keys are drawn from a distribution, so some occur twice: predictions use the number of distinct keys, or what a filter of
/// fingerprints, layers or slices holds of them. Absent keys are drawn from the same distribution, without those that an
/// exact set finds among the keys.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mayhap eval --family all --data uniform,gaussian,exponential -n 1M -p 1%\n  mayhap eval --family bloom,blocked --data zipf:1.1,url --repeat 5\n  mayhap eval -n 1M --plot plots\n  mayhap eval --hashes -n 1M\n  mayhap eval --suite classic\n  mayhap eval --suite papers --only BLM-1,CKO-2\n\nData: uniform[:BOUND] (2^31), gaussian[:SCALE] (1e8; the mean is 8 scales), exponential[:SCALE] (1e8),\nzipf[:EXPONENT] (1; of four times as many integers as keys), sequential, uuid, url,\nfile:PATH (records of your own, each taken once: half of them, or -n, are in; the others are the absent keys)"
)]
pub(crate) struct Args {
    /// Families, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = family, default_value = "all", conflicts_with_all = ["suite", "hashes"])]
    family: Vec<FamilyChoice>,
    /// Distributions of the keys, separated by commas; file:PATH for the records of a file
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = source, default_value = "uniform", conflicts_with_all = ["suite", "hashes"])]
    data: Vec<Source>,
    /// Number of keys [default: 1M; 10M in --suite classic; half of the records of a file]
    #[arg(short = 'n', long, value_name = "N", value_parser = numbers::capacity, allow_hyphen_values = true)]
    capacity: Option<u64>,
    /// False-positive rate
    #[arg(short = 'p', long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true, default_value = "1%", conflicts_with = "suite")]
    fpr: f64,
    /// Number of runs with other keys
    ///
    /// Rates are those of all runs together, times are medians.
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u64).range(1..=1000), default_value = "1", conflicts_with_all = ["suite", "hashes"])]
    repeat: u64,
    /// Number of lookups of absent keys
    ///
    /// [default: enough for 10,000 false positives, up to 10M, or those that a file has]
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_hyphen_values = true, conflicts_with = "suite")]
    questions: Option<u64>,
    /// Absent keys: of the same distribution, or odd numbers where keys are even
    #[arg(long, value_enum, default_value = "same", conflicts_with_all = ["suite", "hashes"])]
    absent: AbsentChoice,
    /// Seed of the random keys
    #[arg(long, value_name = "SEED", value_parser = numbers::seed, allow_hyphen_values = true, default_value = "1")]
    seed: u64,
    /// Write plots into DIR (SVG)
    ///
    /// Bits against rate, rate against keys, time against keys, time against load.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["suite", "hashes"])]
    plot: Option<PathBuf>,
    /// Replace files of --plot even if they are not SVG images
    #[arg(long, requires = "plot")]
    force: bool,
    /// Compare hash functions instead: speed, and the rate of a Bloom filter
    #[arg(long, conflicts_with = "suite")]
    hashes: bool,
    /// Rerun known experiments instead
    ///
    /// Those of the papers, or the classic ones of articles about Bloom filters.
    #[arg(long, value_enum)]
    suite: Option<Suite>,
    /// Only these experiments of --suite papers, such as BLM-1,CKO-2
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = paper, requires = "suite")]
    only: Vec<&'static Paper>,
    /// Guava's jar, for --suite classic [default: /usr/share/java/guava.jar]
    #[arg(long, value_name = "JAR")]
    guava: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Suite {
    Classic,
    Papers,
}

#[derive(Clone, Copy, Debug)]
enum FamilyChoice {
    All,
    One(&'static Family),
}

fn family(name: &str) -> Result<FamilyChoice, String> {
    if name == "all" { Ok(FamilyChoice::All) } else { family_name(name).map(FamilyChoice::One) }
}

/// Where keys come from.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Drawn(Data),
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drawn(data) => data.fmt(f),
            Self::File(path) => f.pad(&format!("file:{}", path.display())),
        }
    }
}

fn source(text: &str) -> Result<Source, String> {
    match text.strip_prefix("file:") {
        Some("") => Err("behind file: there must be the name of a file, such as file:keys.txt".into()),
        Some(path) => Ok(Source::File(path.into())),
        None => data(text).map(Source::Drawn),
    }
}

fn data(text: &str) -> Result<Data, String> {
    let name = text.split(':').next().unwrap_or(text);
    let names = Data::ALL.map(Data::name);
    if !names.contains(&name) {
        return Err(format!("{}; file:PATH has keys of your own", unknown("data", name, &names)));
    }
    text.parse().map_err(|refused: mayhap_eval::UnknownData| refused.to_string())
}

fn paper(name: &str) -> Result<&'static Paper, String> {
    PAPERS.iter().find(|paper| paper.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
        unknown("experiment", name, &names)
    })
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum AbsentChoice {
    Same,
    Disjoint,
}

/// Its table has 32 bytes for each key.
const MOST_ZIPF: u64 = 20_000_000;

const DEFAULT_KEYS: u64 = 1_000_000;

/// More keys than this do not fit beside the sets that the experiment itself needs.
const MOST: u64 = 100_000_000;

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let (of_papers, of_classic) =
        (matches!(args.suite, Some(Suite::Papers)), matches!(args.suite, Some(Suite::Classic)));
    ensure!(args.only.is_empty() || of_papers, "--only names experiments of --suite papers; leave it out");
    ensure!(
        args.capacity.is_none() || !of_papers,
        "-n: every experiment of --suite papers has its own number of keys"
    );
    ensure!(args.guava.is_none() || of_classic, "--guava is for --suite classic; leave it out");
    match args.suite {
        Some(Suite::Classic) => classic::run(args, common),
        Some(Suite::Papers) => papers(args, common),
        None if args.hashes => hashes(args, common),
        None => families(args, common),
    }
}

impl Args {
    fn keys(&self, default: u64) -> Result<u64> {
        let keys = self.capacity.unwrap_or(default);
        ensure!(
            keys <= MOST,
            "-n {keys} was asked for; an experiment holds all keys, and the limit is {MOST}"
        );
        Ok(keys)
    }

    fn questions(&self) -> Result<u64> {
        let questions = self.questions.unwrap_or((10_000.0 / self.fpr).clamp(1e5, 1e7) as u64);
        ensure!(
            (1..=MOST).contains(&questions),
            "{questions} questions were requested; it must be 1 to {MOST}"
        );
        Ok(questions)
    }
}

/// The keys of one experiment: how many of them, and those of a file.
struct Sized<'a> {
    source: &'a Source,
    keys: u64,
    questions: u64,
    texts: Texts,
}

impl<'a> Sized<'a> {
    fn new(source: &'a Source, args: &Args, common: &Common) -> Result<Self> {
        let (keys, questions) = (args.keys(DEFAULT_KEYS)?, args.questions()?);
        let Source::File(path) = source else {
            return Ok(Self { source, keys, questions, texts: Texts::default() });
        };
        let texts = read(path, common)?;
        let different = texts.len() as u64;
        let keys = args.capacity.unwrap_or(different.div_ceil(2));
        ensure!(
            keys > 0 && keys < different,
            "{source} has {different} different records, and {keys} of them as keys leave none to ask for; give {}",
            if different < 2 { "a file with more of them" } else { "a smaller -n, or none for half of them" }
        );
        Ok(Self { source, keys, questions: questions.min(different - keys), texts })
    }

    fn draw(&self, seed: u64, absent: Absent) -> Drawn {
        match self.source {
            Source::Drawn(data) => data.draw(seed, self.keys, self.questions, absent),
            Source::File(_) => Drawn::split(&self.texts, self.keys, self.questions, seed),
        }
    }

    /// What drawing takes at the most, in bytes.
    fn drawing_bytes(&self) -> u64 {
        match self.source {
            Source::Drawn(data) => data.drawing_bytes(self.keys, self.questions),
            // The chosen texts, their ends and the order, in memory that doubles.
            Source::File(_) => 2 * (self.texts.bytes() + 16 * self.texts.len() as u64),
        }
    }
}

/// The records of a file, each once.
fn read(path: &Path, common: &Common) -> Result<Texts> {
    let keys = KeyArgs::default();
    let inputs = keys.inputs(&[path.to_path_buf()]);
    let progress = common.progress("reading", &inputs);
    let (mut chunks, mut buffer, mut texts) = (inputs.chunks(), Buffer::default(), Texts::default());
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        chunk.records().for_each(|record| texts.push(|out| out.extend_from_slice(record)));
        ensure!(
            texts.len() as u64 <= 2 * MOST,
            "{}: an experiment holds all keys, and the limit is {} records; give a part of them",
            path.display(),
            2 * MOST
        );
        buffer = chunk.bytes;
    }
    Ok(texts.distinct())
}

/// One candidate with one kind of data.
struct Row {
    candidate: Candidate,
    data: Source,
    keys: u64,
    outcome: Result<Runs, Impossible>,
}

fn families(args: &Args, common: &Common) -> Result<u8> {
    let keys = args.keys(DEFAULT_KEYS)?;
    let draws_zipf = args.data.iter().any(|data| matches!(data, Source::Drawn(Data::Zipf { .. })));
    ensure!(
        !draws_zipf || keys <= MOST_ZIPF,
        "-n {keys} was asked for; zipf draws from four times as many integers, which are held, and the limit is {MOST_ZIPF}"
    );
    if let Some(folder) = &args.plot {
        ensure!(
            !is_stdout(folder),
            "--plot -: there are several pictures, which do not fit on standard output; name a folder"
        );
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        // Before the experiments, which take long.
        for name in PICTURES {
            must_take_picture(&folder.join(name), args.force)?;
        }
    }
    let with_baselines = args.family.iter().any(|choice| matches!(choice, FamilyChoice::All));
    let sized: Vec<Sized<'_>> =
        args.data.iter().map(|data| Sized::new(data, args, common)).collect::<Result<_>>()?;
    let candidates = |keys: u64| -> Vec<Candidate> {
        args.family
            .iter()
            .flat_map(|choice| match choice {
                FamilyChoice::All => FAMILIES.to_vec(),
                FamilyChoice::One(family) => vec![*family],
            })
            .flat_map(|family| Candidate::all(family, keys, args.fpr))
            .collect()
    };
    for data in &sized {
        let working =
            candidates(data.keys).iter().map(|candidate| working_bytes(candidate, data.keys, args.fpr)).max();
        let ladder = if with_baselines { data.keys.saturating_mul(LADDER_BYTES) } else { 0 };
        must_be_granted(data.drawing_bytes().saturating_add(working.unwrap_or(0).max(ladder)), data.keys)?;
    }
    let absent = match args.absent {
        AbsentChoice::Same => Absent::Same,
        AbsentChoice::Disjoint => Absent::Disjoint,
    };
    // Inserted once, and asked for once.
    let one = |data: &Sized<'_>| 2 * data.keys + data.questions;
    let all = sized.iter().map(|data| one(data) * args.repeat * candidates(data.keys).len() as u64).sum();
    let progress = common.progress_of_keys("measuring", all);
    let (mut rows, mut ladders) = (Vec::new(), Vec::new());
    for data in &sized {
        let (keys, candidates) = (data.keys, candidates(data.keys));
        let mut outcomes: Vec<Result<Vec<_>, Impossible>> =
            candidates.iter().map(|_| Ok(Vec::new())).collect();
        for repeat in 0..args.repeat {
            let seed = if repeat == 0 { args.seed } else { SplitMix64::at(args.seed, repeat) };
            let drawn = data.draw(seed, absent);
            let task = Task { keys, fpr: args.fpr, seed };
            for (&candidate, outcome) in candidates.iter().zip(&mut outcomes) {
                if let Ok(runs) = outcome {
                    match mayhap_eval::run(candidate, &task, &drawn) {
                        Ok(run) => runs.push(run),
                        Err(why) => *outcome = Err(why),
                    }
                }
                progress.advance(one(data) as usize);
            }
            if with_baselines && repeat == 0 {
                ladders.push((
                    data.source.clone(),
                    drawn.distinct,
                    baselines(&drawn, Hashing::Xxh3 { seed })?,
                ));
            }
        }
        rows.extend(candidates.iter().zip(outcomes).map(|(&candidate, outcome)| {
            let outcome = outcome.map(|runs| Runs::new(runs).expect("at least one repeat"));
            Row { candidate, data: data.source.clone(), keys, outcome }
        }));
    }
    drop(progress);
    if args.json {
        let runs: Vec<Value> = rows.iter().map(|row| as_json(row, args)).collect();
        let ladders: Vec<Value> = ladders
            .iter()
            .flat_map(|(data, distinct, rows)| rows.iter().map(|row| baseline_json(data, *distinct, row)))
            .collect();
        report::print_json(&json!({ "runs": runs, "baselines": ladders }))?;
    } else {
        print(args, &rows, &ladders, &sized)?;
    }
    if let Some(folder) = &args.plot {
        plots(folder, keys, args, common)?;
    }
    Ok(YES)
}

/// What the largest hash set of the ladder takes for a key: a text of up to 58 bytes, and its place.
const LADDER_BYTES: u64 = 140;

/// What a filter takes at the most while it is filled, beside the drawn keys: it may be twice there as it grows, in memory
/// that has doubled, and families that are made of all keys at once have their digests besides.
fn working_bytes(candidate: &Candidate, keys: u64, fpr: f64) -> u64 {
    let spec = Spec::sized(keys, fpr);
    let spec = if candidate.family.takes(Knob::Others) { spec.with_others(keys) } else { spec };
    let filter = (candidate.family.plan)(&spec).map_or(0, |plan| plan.bits / 2);
    let per_key = match candidate.family.make {
        // An integer far from all others has a container of its own, and perhaps a node of a tree.
        _ if candidate.family == mayhap::RoaringSet::FAMILY => 300,
        Make::Empty(_) => 0,
        Make::Within(_) => 256,
        _ => 96,
    };
    filter.saturating_add(keys.saturating_mul(per_key))
}

/// Asks for so much memory and gives it back. The sets of an experiment grow as keys come, and if they cannot, the process
/// ends without a word; so it is known before.
fn must_be_granted(bytes: u64, keys: u64) -> Result<()> {
    let granted = usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    ensure!(
        granted,
        "-n {keys}: an experiment holds all of its keys, which takes up to {}, and the system does not grant that much \
         memory; give a smaller -n",
        report::bytes(bytes)
    );
    Ok(())
}

fn print(
    args: &Args,
    rows: &[Row],
    ladders: &[(Source, u64, Vec<Baseline>)],
    sized: &[Sized<'_>],
) -> Result<()> {
    let mut lines: Vec<String> = Vec::new();
    for data in sized {
        let of_file = match data.source {
            Source::Drawn(_) => String::new(),
            Source::File(_) => {
                format!("{}, {} different records: ", data.source, report::grouped(data.texts.len() as u64))
            }
        };
        let line = format!(
            "{of_file}{} keys at {}, {} absent keys looked up, seed {}",
            report::grouped(data.keys),
            report::rate(args.fpr),
            report::grouped(data.questions),
            args.seed
        );
        // What is drawn is as many keys of each kind, and needs one line.
        if !lines.contains(&line) {
            writeln!(report::stdout(), "{}", report::printed(&line))?;
            lines.push(line);
        }
    }
    writeln!(report::stdout())?;
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
            let verdict = match (runs.false_negatives(), runs.wrong_in_universe(), runs.agrees()) {
                (0, 0, true) => "",
                (0, 0, false) => "DISAGREES",
                (0, _, _) => "WRONG IN ITS UNIVERSE",
                _ => "LOST KEYS",
            };
            Some(vec![
                report::family(row.candidate.family.name, row.candidate.layout),
                row.data.to_string(),
                report::percent(runs.distinct() / row.keys as f64),
                report::measured(runs.bits_per_key()),
                if exact { "–".into() } else { format!("{:.3}x", overhead(runs, args)) },
                if exact { "exact".into() } else { report::measured(runs.fpr_predicted()) },
                report::measured(runs.fpr_measured()),
                if exact {
                    "–".into()
                } else {
                    format!("{}–{}", report::measured(low), report::measured(high))
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
    writeln!(
        report::stdout(),
        "\nTimes are nanoseconds per key on one thread, hashing included; lookups are in batches."
    )?;
    if ladders.is_empty() {
        return Ok(());
    }
    writeln!(report::stdout(), "\nwithout a filter, one key after the other:")?;
    let cells: Vec<Vec<String>> = ladders
        .iter()
        .flat_map(|(data, distinct, rows)| rows.iter().map(move |row| (data, distinct, row)))
        .map(|(data, distinct, row)| {
            vec![
                row.name.into(),
                data.to_string(),
                report::measured(8.0 * row.bytes as f64 / *distinct as f64),
                if row.fpr_predicted < 1e-12 { "none".into() } else { report::measured(row.fpr_predicted) },
                row.false_positives.rate().map_or("–".into(), report::measured),
                nanoseconds(row.insert_ns),
                nanoseconds(row.hit_ns),
                nanoseconds(row.miss_ns),
            ]
        })
        .collect();
    let head = ["structure", "data", "bits/key", "error predicted", "measured", "insert", "hit", "miss"];
    report::print_table(&head, &cells, &[1])?;
    Ok(())
}

fn nanoseconds(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn overhead(runs: &Runs, args: &Args) -> f64 {
    runs.bits_per_key() / math::lower_bound_bits(1.0, args.fpr)
}

fn as_json(row: &Row, args: &Args) -> Value {
    let Row { candidate: Candidate { family, layout }, data, keys, outcome } = row;
    let runs = outcome.as_ref().ok();
    let number = |value: fn(&Runs) -> f64| runs.map(value);
    json!({
        "family": family.name,
        "layout": layout.map(Layout::name),
        "data": data.to_string(),
        "capacity": keys,
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
        "wrong_in_universe": runs.map(Runs::wrong_in_universe),
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

fn baseline_json(data: &Source, distinct: u64, row: &Baseline) -> Value {
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

/// The files of the pictures.
const PICTURES: [&str; 4] =
    ["bits-against-rate.svg", "rate-against-keys.svg", "time-against-keys.svg", "time-against-load.svg"];

/// Pictures of the experiments that are best seen.
fn plots(folder: &Path, keys: u64, args: &Args, common: &Common) -> Result<()> {
    let progress = common.progress_of_any_keys("drawing");
    let advance = |keys: u64| progress.advance(keys as usize);
    let (seed, fpr) = (args.seed, args.fpr);
    let charts = [
        // All families at eight rates, which need not be as many keys.
        mayhap_eval::bits_against_rate(keys.min(100_000), seed, &advance),
        mayhap_eval::rate_against_keys(keys, fpr, seed, &advance),
        mayhap_eval::time_against_keys(keys, fpr, seed, &caches(), &advance),
        mayhap_eval::insert_time_against_load(keys, fpr, seed, &advance),
    ];
    drop(progress);
    let mut drawn = 0;
    for (name, chart) in PICTURES.into_iter().zip(&charts) {
        let path = folder.join(name);
        match chart.to_svg() {
            Ok(svg) => {
                write_picture(&path, &svg, args.force)?;
                drawn += 1;
            }
            // So few keys, or so low a rate, that nothing was to be seen.
            Err(NoChart::Empty) => common.say(format_args!("{}: there is nothing to draw", path.display())),
            Err(why) => return Err(anyhow!("{}: {why}", path.display())),
        }
    }
    common.say(format_args!("{drawn} pictures in {}", folder.display()));
    Ok(())
}

/// The sizes of the processor's caches, where the system tells them.
fn caches() -> Vec<(u64, String)> {
    let read = |index: u32, what: &str| {
        std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}")).ok()
    };
    (0..8)
        .filter_map(|index| {
            let (kind, level, size) = (read(index, "type")?, read(index, "level")?, read(index, "size")?);
            let bytes = size.trim().strip_suffix('K')?.parse::<u64>().ok()? * 1024;
            (kind.trim() != "Instruction").then(|| (bytes, format!("L{}", level.trim())))
        })
        .collect()
}

fn hashes(args: &Args, common: &Common) -> Result<u8> {
    let (keys, questions) = (args.keys(DEFAULT_KEYS)?, args.questions()?);
    let steps = (HASH_FUNCTIONS.len() * HASHED_KEYS.len()) as u64;
    let progress = common.progress_of_keys("hashing", steps * (keys + questions));
    let mut rows = Vec::new();
    for function in HASH_FUNCTIONS {
        let ns = mayhap_eval::time_hash(function);
        for kind in HASHED_KEYS {
            let run = mayhap_eval::run_hash(function, kind, keys, args.fpr, questions, args.seed)?;
            rows.push((function, ns, kind, run));
            progress.advance((keys + questions) as usize);
        }
    }
    drop(progress);
    if args.json {
        let hashes: Vec<Value> = rows
            .iter()
            .map(|(function, ns, kind, run)| {
                json!({
                    "hash": function.name, "bits": function.bits, "data": kind.name, "capacity": keys,
                    "fpr_asked": args.fpr, "fpr_predicted": run.fpr_predicted,
                    "fpr_measured": run.false_positives.rate(), "fpr_low": run.interval().0, "fpr_high": run.interval().1,
                    "questions": questions, "ns": ns,
                })
            })
            .collect();
        report::print_json(&json!({ "hashes": hashes }))?;
        return Ok(YES);
    }
    writeln!(
        report::stdout(),
        "A Bloom filter of {} keys at {}, {} absent keys looked up\n",
        report::grouped(keys),
        report::rate(args.fpr),
        report::grouped(questions)
    )?;
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|(function, ns, kind, run)| {
            let measured = run.false_positives.rate().unwrap_or(0.0);
            let (low, high) = run.interval();
            let verdict = if measured > high { "worse than random bits" } else { "" };
            vec![
                function.name.into(),
                function.bits.to_string(),
                nanoseconds(*ns),
                kind.name.into(),
                report::measured(run.fpr_predicted),
                report::measured(measured),
                format!("{}–{}", report::measured(low), report::measured(high)),
                verdict.into(),
            ]
        })
        .collect();
    let head = ["hash", "bits", "ns", "keys", "predicted", "measured", "random bits are in", ""];
    report::print_table(&head, &cells, &[3, 7])?;
    writeln!(
        report::stdout(),
        "\nns: for a key of {TIMED_BYTES} bytes. Predicted: for random bits, as many as the hash has; two keys with the same hash \
         cannot be told apart. decimal: even numbers are in, odd ones are looked up."
    )?;
    Ok(YES)
}

fn papers(args: &Args, common: &Common) -> Result<u8> {
    let chosen: Vec<&Paper> = if args.only.is_empty() { PAPERS.iter().collect() } else { args.only.clone() };
    let mut findings = Vec::new();
    for (number, paper) in (1..).zip(&chosen) {
        common.tell_progress(format_args!("{number} of {}: {}, {}", chosen.len(), paper.name, paper.title));
        findings.push((*paper, (paper.run)(args.seed)?));
    }
    let all =
        || findings.iter().flat_map(|(paper, findings)| findings.iter().map(move |finding| (paper, finding)));
    if args.json {
        let rows: Vec<Value> = all()
            .map(|(paper, finding)| {
                json!({
                    "experiment": finding.experiment, "title": paper.title, "what": finding.what,
                    "reported": finding.reported, "expected": finding.expected, "measured": finding.measured,
                    "low": finding.low, "high": finding.high, "agrees": finding.agrees(), "seed": args.seed,
                })
            })
            .collect();
        report::print_json(&json!({ "findings": rows }))?;
        return Ok(YES);
    }
    let cells: Vec<Vec<String>> = all()
        .map(|(_, finding)| {
            vec![
                finding.experiment.into(),
                finding.what.clone(),
                optional(finding.reported),
                report::measured(finding.expected),
                report::measured(finding.measured),
                format!("{}–{}", report::measured(finding.low), report::measured(finding.high)),
                if finding.agrees() { String::new() } else { "DISAGREES".into() },
            ]
        })
        .collect();
    let head = ["experiment", "what", "reported", "expected", "measured", "must be in", ""];
    report::print_table(&head, &cells, &[1, 6])?;
    let agreeing = all().filter(|(_, finding)| finding.agrees()).count();
    writeln!(
        report::stdout(),
        "\n{agreeing} of {} values are where they must be, with the seed {}",
        all().count(),
        args.seed
    )?;
    Ok(YES)
}

fn optional(value: Option<f64>) -> String {
    value.map_or("–".into(), report::measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of other keys was requested of every family, and the filters of those without it counted as nothing.
    #[test]
    fn the_memory_of_an_experiment_has_the_filter_of_every_family() {
        for &family in FAMILIES.iter().filter(|family| !family.can.exact) {
            let working = working_bytes(&Candidate { family, layout: None }, 1_000_000, 0.01);
            assert!(working >= 1_000_000, "{}: {working}", family.name);
        }
    }
}
