//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::instructions::Record;
use crate::keys::Kind;
use crate::{Size, dedup};

pub(crate) const USAGE: &str = "\
usage: mayhap-bench [filters] [cuckoo] [shifting] [growth] [static] [threads] [build-file] [dedup]
       [instructions] [options]

  filters            filters against their peers and against physical limits
  threads            two threads that fill one filter of 100 million keys, against one
  cuckoo             filters that remove, 10 million u64 keys at 12 bits, and the last percent of inserts
  shifting           shifting filters against classic ones: loads, cache lines, times, right answers
  growth             filters that grew from 1024 keys to 10 million u64 keys, against one made for all of them
  static             filters of keys that are known, u64 keys at 8 bits of fingerprint, against xorf and jdb_xorf
  build-file         `mayhap build` against `wc -l` and one pass of hashing
  dedup              `mayhap dedup` of 20 million lines against `cat` and gzip; and against DuckDB, polars, hist, huniq, runiq,
                     cuniq, sort and awk with three kinds of text: tables in Markdown; 4 GB of files
  instructions       instructions per key of six families, one by one, in batches and at run time; needs valgrind
                     [--check: compares with the committed table; --write: writes it]
                     without any of them, all run but this

options, for `filters`; for `cuckoo` --repetitions, --csv and --quick, for `growth` also --keys and --fpr, for `static`
also --keys; for `shifting` --repetitions and --quick:
  --keys 1M,10M      numbers of keys (100k,1M,10M unless said; 100M takes 10 GB and long)
  --kind u64,url     kinds of keys (both)
  --fpr 1%,0.1%      false-positive rates to ask for (both)
  --only NAME,...    contenders with one of these texts in their name (all)
  --repetitions N    interleaved repetitions (5)
  --csv FILE         writes every figure there, too
  --quick            everything once at a tiny size: a test of the harness, not a measurement

options, for `dedup`, besides --quick:
  --lines 20M        lines of text
  --inputs urls,...  kinds of text: urls, integers, logs (all)
  --rounds N         interleaved rounds of mayhap and `cat` (9), and of mayhap and gzip (at most 3); 0 leaves them out
  --peer-rounds N    rounds of the comparison with other tools (3; a tool that takes more than 20 s runs once); 0 leaves it out
  --folder DIR       where the text and what is made of it lie for the time (the folder for temporary files)
  --mayhap FILE      the command to measure (the one of this repository, which is built)

  --list             the names of the contenders
  --help             this text
";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Help,
    List,
    Run(Box<Options>),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) filters: bool,
    pub(crate) threads: bool,
    pub(crate) cuckoo: bool,
    pub(crate) shifting: bool,
    pub(crate) growth: bool,
    pub(crate) static_: bool,
    pub(crate) build_file: bool,
    pub(crate) dedup: bool,
    pub(crate) instructions: bool,
    pub(crate) record: Record,
    pub(crate) text: TextOptions,
    pub(crate) size: Size,
    pub(crate) keys: Vec<u64>,
    pub(crate) keys_given: bool,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) rates: Vec<f64>,
    pub(crate) only: Vec<String>,
    pub(crate) repetitions: usize,
    pub(crate) csv: Option<PathBuf>,
}

/// What is asked of `dedup`, where anything is.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TextOptions {
    pub(crate) lines: Option<u64>,
    pub(crate) inputs: Vec<dedup::Kind>,
    pub(crate) rounds: Option<usize>,
    pub(crate) peer_rounds: Option<usize>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) mayhap: Option<PathBuf>,
}

/// Absent probes start at 2^40, and nobody has the memory for more keys than this.
const MOST_KEYS: u64 = 10_000_000_000;

pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command> {
    let mut arguments = arguments.into_iter();
    let mut quick = false;
    let (mut filters, mut cuckoo, mut shifting, mut growth) = (false, false, false, false);
    let (mut static_, mut threads, mut build_file, mut dedup) = (false, false, false, false);
    let (mut instructions, mut record) = (false, Record::Print);
    let mut text = TextOptions::default();
    let (mut keys, mut kinds, mut rates, mut only) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut repetitions, mut csv) = (None, None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value; see --help"));
        match argument.as_str() {
            "filters" => filters = true,
            "threads" => threads = true,
            "cuckoo" => cuckoo = true,
            "shifting" => shifting = true,
            "growth" => growth = true,
            "static" => static_ = true,
            "build-file" => build_file = true,
            "dedup" => dedup = true,
            "instructions" => instructions = true,
            "--check" => record = Record::Check,
            "--write" => record = Record::Write,
            "--quick" => quick = true,
            "--list" => return Ok(Command::List),
            "--help" | "-h" => return Ok(Command::Help),
            "--keys" => keys = list(&value()?, number)?,
            "--kind" => kinds = list(&value()?, Kind::parse)?,
            "--fpr" => rates = list(&value()?, rate)?,
            "--only" => only = list(&value()?, |name| Ok(name.to_owned()))?,
            "--repetitions" => repetitions = Some(number(&value()?)? as usize),
            "--lines" => text.lines = Some(number(&value()?)?),
            "--inputs" => text.inputs = list(&value()?, dedup::Kind::parse)?,
            "--rounds" => text.rounds = Some(rounds(&value()?)?),
            "--peer-rounds" => text.peer_rounds = Some(rounds(&value()?)?),
            "--folder" => text.folder = Some(PathBuf::from(value()?)),
            "--mayhap" => text.mayhap = Some(PathBuf::from(value()?)),
            "--csv" => csv = Some(PathBuf::from(value()?)),
            _ => bail!("unknown argument {argument:?}; see --help"),
        }
    }
    let size = Size { quick };
    let keys_given = !keys.is_empty();
    if !keys_given {
        keys = if quick { vec![10_000] } else { vec![100_000, 1_000_000, 10_000_000] };
    }
    if kinds.is_empty() {
        kinds = vec![Kind::U64, Kind::Url];
    }
    if text.inputs.is_empty() {
        text.inputs = dedup::Kind::ALL.to_vec();
    }
    if rates.is_empty() {
        rates = vec![0.01, 0.001];
    }
    let all = !(filters
        || cuckoo
        || shifting
        || growth
        || static_
        || threads
        || build_file
        || dedup
        || instructions);
    Ok(Command::Run(Box::new(Options {
        filters: filters || all,
        cuckoo: cuckoo || all,
        shifting: shifting || all,
        growth: growth || all,
        static_: static_ || all,
        threads: threads || all,
        build_file: build_file || all,
        dedup: dedup || all,
        instructions,
        record,
        text,
        size,
        keys,
        keys_given,
        kinds,
        rates,
        only,
        repetitions: repetitions.unwrap_or(size.repetitions()),
        csv,
    })))
}

fn list<T>(text: &str, item: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    text.split(',').map(|part| item(part.trim())).collect()
}

/// `2500`, `100k`, `10M`.
fn number(text: &str) -> Result<u64> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let number = number.with_context(|| format!("{text:?} is not a number such as 2500, 100k or 10M"))?;
    ensure!((1..=MOST_KEYS).contains(&number), "{text:?} is not between 1 and {MOST_KEYS}");
    Ok(number)
}

/// A number that may be 0.
fn rounds(text: &str) -> Result<usize> {
    if text == "0" { Ok(0) } else { Ok(number(text)? as usize) }
}

/// `1%` or `0.01`.
fn rate(text: &str) -> Result<f64> {
    let (digits, factor) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 0.01));
    let rate = digits.parse::<f64>().with_context(|| format!("{text:?} is not a rate such as 1% or 0.01"))?;
    let rate = rate * factor;
    ensure!(rate > 0.0 && rate < 0.5, "{text:?} is not a rate between 0 and 50%");
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Command> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    fn options(line: &str) -> Options {
        match run(line) {
            Ok(Command::Run(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn lists_units_and_percentages_are_read() {
        let read =
            options("filters --keys 100k,10M,77 --kind url --fpr 1%,0.001 --only sbbf,mayhap --csv x.csv");
        assert_eq!(read.keys, [100_000, 10_000_000, 77]);
        assert_eq!(read.kinds, [Kind::Url]);
        assert_eq!(read.rates, [0.01, 0.001]);
        assert_eq!(read.only, ["sbbf", "mayhap"]);
        assert_eq!(read.csv, Some(PathBuf::from("x.csv")));
        assert!(read.filters && !read.build_file);
    }

    #[test]
    fn without_a_name_everything_runs() {
        let read = options("--quick");
        assert!(
            read.filters && read.cuckoo && read.shifting && read.build_file && read.dedup && read.size.quick
        );
        assert_eq!((read.keys, read.repetitions), (vec![10_000], 1));
        assert_eq!(options("").repetitions, 5);
        let read = options("build-file");
        assert!(read.build_file && !read.filters && !read.cuckoo);
        let read = options("dedup --lines 2M --inputs logs,urls --rounds 3 --peer-rounds 0 --folder x");
        assert!(read.dedup && !read.build_file && !read.filters);
        let TextOptions { lines, inputs, rounds, peer_rounds, folder, mayhap } = read.text;
        assert_eq!(inputs, [dedup::Kind::Logs, dedup::Kind::Urls]);
        assert_eq!((lines, rounds, peer_rounds), (Some(2_000_000), Some(3), Some(0)));
        assert_eq!((folder, mayhap), (Some(PathBuf::from("x")), None));
        let read = options("cuckoo");
        assert!(read.cuckoo && !read.filters && !read.build_file && !read.growth);
        let read = options("growth --keys 100M");
        assert!(read.growth && read.keys_given && !read.filters && !read.cuckoo);
        let read = options("static --keys 1M");
        assert!(read.static_ && read.keys_given && !read.growth && !read.filters);
        let read = options("shifting");
        assert!(read.shifting && !read.cuckoo && !read.filters);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let complaint = |line| run(line).unwrap_err().to_string();
        assert_eq!(complaint("--keys"), "--keys needs a value; see --help");
        assert_eq!(complaint("--keys 1G"), "\"1G\" is not a number such as 2500, 100k or 10M");
        assert_eq!(complaint("--keys 0"), "\"0\" is not between 1 and 10000000000");
        assert_eq!(complaint("--fpr 120%"), "\"120%\" is not a rate between 0 and 50%");
        assert_eq!(complaint("--kind uuid"), "unknown kind of keys \"uuid\"; there are u64 and url");
        assert_eq!(
            complaint("dedup --inputs lines"),
            "unknown input \"lines\"; there are urls, integers and logs"
        );
        assert_eq!(complaint("filter"), "unknown argument \"filter\"; see --help");
    }
}
