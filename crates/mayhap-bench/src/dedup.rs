//! `dedup`: `mayhap dedup` of a large text against copying it through a pipe and against `gzip -dc`, held to the bars of the
//! project; and against the other tools for that job, with three kinds of text. The output of each goes to another file.

mod table;
mod texts;
mod tools;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use mayhap_eval::Occurrence;
use memchr::memchr_iter;
use tempfile::TempDir;

pub(crate) use self::texts::Kind;
use self::texts::{Lines, Text};
use self::tools::Writes;
use crate::options::TextOptions;
use crate::{Size, memory, programs, report};

/// The bars: times of `cat FILE | cat` for a file and for a pipe, times of `gzip -dc`, and anonymous memory.
const FILE_TIMES: f64 = 1.5;
const PIPE_TIMES: f64 = 2.2;
const GZIP_TIMES: f64 = 1.2;
const FILE_MEMORY: u64 = 110 << 20;
const PIPE_MEMORY: u64 = 150 << 20;

/// Number of runs in which memory is measured for the bars. They are not timed, since measuring takes time.
const WATCHED: usize = 3;

/// How a program gets the text.
#[derive(Clone, Copy)]
enum Source {
    Argument,
    Input,
    /// From `cat`.
    Pipe,
}

/// Which lines a program keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keeps {
    All,
    Firsts,
    /// The first occurrences but for those that are wrongly taken for repeats, one in a billion.
    Approximately,
}

/// One command line.
struct Contender {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<&'static str>,
    source: Source,
    file: PathBuf,
    writes: Writes,
    keeps: Keeps,
}

/// What one run of it took.
struct Run {
    seconds: f64,
    kept: u64,
    /// Where it was watched, and the system tells.
    peak: Option<u64>,
}

/// The runs of one command line.
#[derive(Default)]
struct Runs {
    seconds: Vec<f64>,
    kept: Option<u64>,
    peak: Option<u64>,
}

impl Runs {
    fn add(&mut self, run: &Run) {
        self.seconds.push(run.seconds);
        self.look(run);
    }

    /// A run whose time does not count.
    fn look(&mut self, run: &Run) {
        self.kept = Some(self.kept.map_or(run.kept, |kept| kept.min(run.kept)));
        self.peak = self.peak.max(run.peak);
    }
}

/// A ratio beside what it is held to.
struct Verdict {
    ratio: Option<f64>,
    of: &'static str,
    bar: Bar,
}

#[derive(Clone, Copy)]
enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

impl Bar {
    fn shown(self, value: f64) -> String {
        let (words, bar, met) = match self {
            Self::AtMost(bar) => ("at most", bar, value <= bar),
            Self::AtLeast(bar) => ("at least", bar, value >= bar),
        };
        format!("{words} {bar}: {}", if met { "met" } else { "MISSED" })
    }
}

pub(crate) fn run(size: Size, options: &TextOptions) -> Result<()> {
    let mayhap = options.mayhap.clone().map_or_else(programs::mayhap, Ok)?;
    let rounds = options.rounds.unwrap_or(if size.quick { 1 } else { 9 });
    let compared = options.peer_rounds.unwrap_or(if size.quick { 1 } else { 3 });
    let lines = options.lines.unwrap_or(size.keys(20_000_000));
    let tools = if compared > 0 { table::Tools::find(size)? } else { table::Tools::none() };
    for &kind in &options.inputs {
        let has_bars = kind == Kind::Urls && rounds > 0;
        if !has_bars && compared == 0 {
            continue;
        }
        let place = Place::new(kind, lines, options.folder.as_deref())?;
        if has_bars {
            hold_to_bars(&place, &mayhap, rounds, size)?;
        }
        if compared > 0 {
            table::compare(&place, &mayhap, &tools, compared)?;
        }
    }
    Ok(())
}

/// `mayhap dedup` against copying and unpacking the same text.
fn hold_to_bars(place: &Place, mayhap: &Path, rounds: usize, size: Size) -> Result<()> {
    place.pack()?;
    place.announce(rounds)?;
    let ours = |name, source, file: &Path| Contender {
        name,
        program: mayhap.to_path_buf(),
        arguments: vec!["dedup"],
        source,
        file: file.to_path_buf(),
        writes: Writes::Lines,
        keeps: Keeps::Approximately,
    };
    let from_file = ours("mayhap dedup FILE", Source::Argument, &place.path);
    let from_pipe = ours("cat FILE | mayhap dedup", Source::Pipe, &place.path);
    let from_gzip = ours("mayhap dedup FILE.gz", Source::Argument, &place.gzip);
    let other = |name, program, arguments, source, file: &Path| Contender {
        name,
        program: PathBuf::from(program),
        arguments,
        source,
        file: file.to_path_buf(),
        writes: Writes::Lines,
        keeps: Keeps::All,
    };
    let copy = other("cat FILE | cat", "cat", vec![], Source::Pipe, &place.path);
    let unpack = other("gzip -dc FILE.gz", "gzip", vec!["-dc"], Source::Argument, &place.gzip);

    place.run(&copy, false)?;
    let watched = if size.quick { 1 } else { WATCHED };
    let [mut file, mut pipe, mut gzip] = [Runs::default(), Runs::default(), Runs::default()];
    for (contender, runs) in [(&from_file, &mut file), (&from_pipe, &mut pipe), (&from_gzip, &mut gzip)] {
        for _ in 0..watched {
            runs.look(&place.run(contender, true)?);
        }
        place.compare(contender)?;
    }

    let mut copied = Runs::default();
    for _ in 0..rounds {
        for (contender, runs) in [(&copy, &mut copied), (&from_file, &mut file), (&from_pipe, &mut pipe)] {
            runs.add(&place.run(contender, false)?);
        }
    }
    let of_copy = |runs: &Runs, bar| Verdict {
        ratio: report::ratio(&runs.seconds, &copied.seconds),
        of: copy.name,
        bar: Bar::AtMost(bar),
    };
    print_row(copy.name, &copied, None, None);
    print_row(from_file.name, &file, Some(of_copy(&file, FILE_TIMES)), Some(FILE_MEMORY));
    print_row(from_pipe.name, &pipe, Some(of_copy(&pipe, PIPE_TIMES)), Some(PIPE_MEMORY));

    let mut unpacked = Runs::default();
    for _ in 0..rounds.min(3) {
        unpacked.add(&place.run(&unpack, false)?);
        gzip.add(&place.run(&from_gzip, false)?);
    }
    print_row(unpack.name, &unpacked, None, None);
    let ratio = report::ratio(&gzip.seconds, &unpacked.seconds);
    let verdict = Verdict { ratio, of: unpack.name, bar: Bar::AtMost(GZIP_TIMES) };
    print_row(from_gzip.name, &gzip, Some(verdict), None);

    println!();
    Ok(())
}

/// The text, packed and not, and where outputs go. All of it goes away in the end.
struct Place {
    folder: TempDir,
    text: Text,
    path: PathBuf,
    gzip: PathBuf,
    output: PathBuf,
}

impl Place {
    fn new(kind: Kind, count: u64, within: Option<&Path>) -> Result<Self> {
        let within = within.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let folder = tempfile::Builder::new().prefix("mayhap-bench-").tempdir_in(&within);
        let folder = folder.with_context(|| format!("{}", within.display()))?;
        let at = |name| folder.path().join(name);
        let (path, gzip, output) = (at("text.txt"), at("text.txt.gz"), at("output.txt"));
        let text = Text::write(kind, count, &path)
            .with_context(|| format!("{}: cannot make the text; --folder says where", within.display()))?;
        read_once(&path)?;
        Ok(Self { folder, text, path, gzip, output })
    }

    fn pack(&self) -> Result<()> {
        let packed = File::create(&self.gzip)?;
        let status = Command::new("gzip").arg("-c").arg(&self.path).stdout(packed.try_clone()?).status();
        ensure!(status.context("gzip")?.success(), "gzip failed");
        packed.sync_all()?;
        read_once(&self.gzip)
    }

    fn announce(&self, rounds: usize) -> Result<()> {
        println!(
            "mayhap dedup, {} lines with URLs, {:.2} GB ({:.2} GB as gzip), {} distinct lines; rounds: {rounds}",
            report::short(self.text.lines),
            fs::metadata(&self.path)?.len() as f64 / 1e9,
            fs::metadata(&self.gzip)?.len() as f64 / 1e9,
            self.text.distinct,
        );
        println!(
            "wall seconds: median (least); a ratio is the median of those within a round; memory is anonymous"
        );
        println!(
            "  {:32} {:>15} {:>26}  {:19} {:>9}  {:18} {:>11}",
            "", "wall s", "times", "bar", "peak MiB", "bar", "lines kept"
        );
        Ok(())
    }

    /// Runs it with a fresh file for its output, and counts the lines there.
    fn run(&self, contender: &Contender, watched: bool) -> Result<Run> {
        let run = self.time(contender, watched).with_context(|| contender.name.to_owned())?;
        self.check(contender, run.kept)?;
        Ok(run)
    }

    fn time(&self, contender: &Contender, watched: bool) -> Result<Run> {
        // A large file that is cut to nothing would take its time.
        match fs::remove_file(&self.output) {
            Err(error) if error.kind() != ErrorKind::NotFound => bail!(error),
            _ => {}
        }
        let mut command = Command::new(&contender.program);
        command.args(&contender.arguments).env("LC_ALL", "C").env("TMPDIR", self.folder.path());
        command.stdin(Stdio::null());
        let started = Instant::now();
        let mut cat = None;
        match contender.source {
            Source::Argument => {
                command.arg(&contender.file);
            }
            Source::Input => {
                command.stdin(File::open(&contender.file)?);
            }
            Source::Pipe => {
                let mut child = Command::new("cat").arg(&contender.file).stdout(Stdio::piped()).spawn()?;
                command.stdin(child.stdout.take().context("the output of cat")?);
                cat = Some(child);
            }
        }
        if contender.writes == Writes::LinesToFile {
            command.arg(&self.output);
        } else {
            command.stdout(File::create(&self.output)?);
        }
        let mut child = command.spawn()?;
        // It holds our end of the pipe: without a reader `cat` has to end.
        drop(command);
        let process = child.id();
        let mut wait = || -> Result<f64> {
            let ended = child.wait()?;
            ensure!(ended.success(), "the program failed: {ended}");
            if let Some(mut cat) = cat.take() {
                let ended = cat.wait()?;
                ensure!(ended.success(), "cat failed: {ended}");
            }
            Ok(started.elapsed().as_secs_f64())
        };
        let (seconds, peak) = if watched { memory::peak_during(process, wait) } else { (wait(), None) };
        let kept = match contender.writes {
            Writes::Number => fs::read_to_string(&self.output)?.trim().parse().context("not a number")?,
            _ => count_lines(&self.output)?,
        };
        Ok(Run { seconds: seconds?, kept, peak })
    }

    /// Whether that many lines are right.
    fn check(&self, contender: &Contender, kept: u64) -> Result<()> {
        let distinct = self.text.distinct;
        let right = match contender.keeps {
            Keeps::All => kept == self.text.lines,
            Keeps::Firsts => kept == distinct,
            Keeps::Approximately => kept <= distinct && kept + wrongly_dropped_at_most(distinct) >= distinct,
        };
        ensure!(
            right,
            "{} kept {kept} lines of {}, of which {distinct} are distinct",
            contender.name,
            self.text.lines
        );
        Ok(())
    }

    /// Compares the output of the last run with the text: byte by byte the first occurrences, in order.
    fn compare(&self, contender: &Contender) -> Result<()> {
        let dropped = match firsts_in(self.last_output()?, self.text.source())? {
            Firsts::ButFor(dropped) => dropped,
            Firsts::Broken { line, found } => bail!(
                "{}: line {line} of the output is not the next first occurrence: {found}",
                contender.name
            ),
        };
        if dropped > 0 {
            println!("  {} wrongly dropped {dropped} of {}", contender.name, self.text.distinct);
        }
        Ok(())
    }

    fn last_output(&self) -> Result<BufReader<File>> {
        Ok(BufReader::with_capacity(1 << 20, File::open(&self.output)?))
    }
}

/// So that a file is in memory.
fn read_once(path: &Path) -> Result<()> {
    io::copy(&mut File::open(path)?, &mut io::sink())?;
    Ok(())
}

/// One in a billion is expected, ten times that is not seen; and a small text may have some bad luck, too.
fn wrongly_dropped_at_most(distinct: u64) -> u64 {
    2 + distinct / 100_000_000
}

/// How an output differs from the first occurrences in their order.
#[derive(Debug, PartialEq)]
enum Firsts {
    /// Only in the number of missing lines.
    ButFor(u64),
    /// A line is not one of them, or not in its place.
    Broken { line: u64, found: String },
}

fn firsts_in(mut output: impl BufRead, mut lines: Lines) -> io::Result<Firsts> {
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    let (mut line, mut dropped) = (1, 0);
    output.read_until(b'\n', &mut found)?;
    while let Some(occurrence) = lines.write_next(&mut expected) {
        if occurrence == Occurrence::First {
            if found == expected {
                found.clear();
                output.read_until(b'\n', &mut found)?;
                line += 1;
            } else {
                dropped += 1;
            }
        }
        expected.clear();
    }
    if found.is_empty() {
        return Ok(Firsts::ButFor(dropped));
    }
    let found = String::from_utf8_lossy(&found[..found.len().min(100)]).trim_end().to_owned();
    Ok(Firsts::Broken { line, found })
}

fn count_lines(path: &Path) -> Result<u64> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 18];
    let mut lines = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(lines);
        }
        lines += memchr_iter(b'\n', &buffer[..read]).count() as u64;
    }
}

fn print_row(name: &str, runs: &Runs, verdict: Option<Verdict>, memory: Option<u64>) {
    let values = || runs.seconds.iter().copied();
    let wall = match (report::middle(values()), report::least(values())) {
        (Some(median), Some(least)) => format!("{median:.3} ({least:.3})"),
        _ => "-".to_owned(),
    };
    let (ratio, bar) = match verdict {
        Some(Verdict { ratio: Some(ratio), of, bar }) => (format!("{ratio:.2} {of}"), bar.shown(ratio)),
        _ => Default::default(),
    };
    let mib = |bytes: u64| bytes as f64 / 1048576.0;
    let peak = runs.peak.map_or("-".to_owned(), |peak| format!("{:.1}", mib(peak)));
    let limit = runs.peak.zip(memory).map(|(peak, most)| Bar::AtMost(mib(most)).shown(mib(peak)));
    let kept = runs.kept.map_or("-".to_owned(), |kept| kept.to_string());
    let limit = limit.unwrap_or_default();
    println!("  {name:32} {wall:>15} {ratio:>26}  {bar:19} {peak:>9}  {limit:18} {kept:>11}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first occurrences, and the whole text.
    fn texts(lines: &Lines) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let (mut lines, mut line) = (lines.clone(), Vec::new());
        let (mut firsts, mut all) = (Vec::new(), Vec::new());
        while let Some(occurrence) = lines.write_next(&mut line) {
            if occurrence == Occurrence::First {
                firsts.push(line.clone());
            }
            all.push(std::mem::take(&mut line));
        }
        (firsts, all)
    }

    #[test]
    fn an_output_is_the_first_occurrences_but_for_dropped_ones() {
        let lines = Lines::new(Kind::Urls, 100);
        let (mut firsts, all) = texts(&lines);
        let examine = |output: &[Vec<u8>]| firsts_in(output.concat().as_slice(), lines.clone()).unwrap();
        assert_eq!(examine(&firsts), Firsts::ButFor(0));
        assert_eq!(examine(&[]), Firsts::ButFor(70));
        assert!(matches!(examine(&all), Firsts::Broken { found, .. } if found.starts_with("https://")));
        firsts.swap(3, 4);
        assert!(matches!(examine(&firsts), Firsts::Broken { line: 5, .. }));
        firsts.swap(3, 4);
        firsts.remove(69);
        firsts.remove(11);
        assert_eq!(examine(&firsts), Firsts::ButFor(2));
    }

    #[test]
    fn bars_are_met_at_their_value() {
        assert_eq!(Bar::AtMost(1.5).shown(1.5), "at most 1.5: met");
        assert_eq!(Bar::AtMost(110.0).shown(110.1), "at most 110: MISSED");
        assert_eq!(Bar::AtLeast(14.0).shown(13.9), "at least 14: MISSED");
    }
}
