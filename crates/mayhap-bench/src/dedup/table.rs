//! `mayhap dedup` beside the other tools, as a table in Markdown.

use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use xxhash_rust::xxh3::xxh3_64;

use super::tools::{TOOLS, Tool, Writes};
use super::{Bar, Contender, Firsts, Keeps, Kind, Place, Runs, Source, firsts_in};
use crate::{Size, report};

/// A command that takes longer than this in the first round runs only once.
const SLOW_SECONDS: f64 = 20.0;

/// `mayhap dedup` in the ways that are compared.
const OURS: [(&str, &[&str], Source, Keeps); 4] = [
    ("`mayhap dedup FILE`", &["dedup"], Source::Argument, Keeps::Approximately),
    ("`cat FILE \\| mayhap dedup`", &["dedup"], Source::Pipe, Keeps::Approximately),
    ("`mayhap dedup --exact FILE`", &["dedup", "--exact"], Source::Argument, Keeps::Firsts),
    ("`cat FILE \\| mayhap dedup --exact`", &["dedup", "--exact"], Source::Pipe, Keeps::Firsts),
];

/// The other tools, as far as they are to be had.
pub(super) struct Tools(Vec<(&'static Tool, PathBuf)>);

impl Tools {
    pub(super) fn none() -> Self {
        Self(Vec::new())
    }

    /// Finds or installs them, and prints their versions.
    pub(super) fn find(size: Size) -> Result<Self> {
        let (mut found, mut versions) = (Vec::new(), Vec::new());
        for tool in &TOOLS {
            match tool.program(size)? {
                Ok(program) => {
                    versions.push(tool.version(&program));
                    found.push((tool, program));
                }
                Err(reason) => println!("{} is missing: {reason}", tool.name),
            }
        }
        println!("tools: {}\n", versions.join(", "));
        Ok(Self(found))
    }
}

/// In which order an output has the distinct lines.
#[derive(Debug, PartialEq)]
enum Order {
    /// In that of the text.
    Kept {
        lost: u64,
    },
    Sorted,
    Other,
    /// It has only their number.
    None,
}

/// One row of the table.
struct Row {
    contender: Contender,
    note: &'static str,
    times: Option<f64>,
    runs: Runs,
    order: Option<Order>,
    /// How many lines `mayhap` says that it may have lost.
    expected: Option<f64>,
    failed: Option<String>,
}

/// Runs all of them in turns, and prints the table.
pub(super) fn compare(place: &Place, mayhap: &Path, tools: &Tools, rounds: usize) -> Result<()> {
    let mut rows = Vec::new();
    for (name, arguments, source, keeps) in OURS {
        let contender = Contender {
            name,
            program: mayhap.to_path_buf(),
            arguments: arguments.to_vec(),
            source,
            file: place.path.clone(),
            writes: Writes::Lines,
            keeps,
        };
        let expected = expected_loss(place, &contender)?;
        rows.push(Row::new(contender, "", None, expected));
    }
    for (tool, program) in &tools.0 {
        let contender = Contender {
            name: tool.name,
            program: program.clone(),
            arguments: tool.all_arguments(place.text.kind),
            source: tool.source,
            file: place.path.clone(),
            writes: tool.writes,
            keeps: Keeps::Firsts,
        };
        rows.push(Row::new(contender, tool.note, tool.times, None));
    }
    for round in 0..rounds {
        for (index, row) in rows.iter_mut().enumerate() {
            let is_slow = row.runs.seconds.first().is_some_and(|&seconds| seconds > SLOW_SECONDS);
            if row.failed.is_some() || is_slow {
                continue;
            }
            match row.run(place) {
                Err(error) if index < OURS.len() => return Err(error),
                Err(error) => row.failed = Some(format!("{error:#}").replace('\n', " ")),
                Ok(seconds) => {
                    eprintln!("round {} of {rounds}: {seconds:7.3} s {}", round + 1, row.contender.name)
                }
            }
        }
    }
    print_table(place, &mut rows, rounds)
}

impl Row {
    fn new(contender: Contender, note: &'static str, times: Option<f64>, expected: Option<f64>) -> Self {
        Self { contender, note, times, runs: Runs::default(), order: None, expected, failed: None }
    }

    /// One run, whose output is read the first time.
    fn run(&mut self, place: &Place) -> Result<f64> {
        let run = place.run(&self.contender, true)?;
        self.runs.add(&run);
        if self.order.is_none() {
            let order = if self.contender.writes == Writes::Number {
                Order::None
            } else {
                order(place).with_context(|| self.contender.name.to_owned())?
            };
            self.order = Some(order);
        }
        Ok(run.seconds)
    }

    fn median(&self) -> f64 {
        report::middle(self.runs.seconds.iter().copied()).unwrap_or(f64::INFINITY)
    }

    fn output(&self) -> String {
        let mut parts = vec![match self.order {
            Some(Order::Kept { .. }) => "in order".to_owned(),
            Some(Order::Sorted) => "sorted".to_owned(),
            Some(Order::Other) => "unordered".to_owned(),
            Some(Order::None) | None => "only the number".to_owned(),
        }];
        match (self.contender.keeps, &self.order, self.expected) {
            (Keeps::Approximately, Some(Order::Kept { lost }), expected) => {
                let expected = expected.map_or("unknown".to_owned(), significant);
                parts.push(format!("{expected} lines expected to be lost, {lost} lost"));
            }
            (_, _, Some(_)) => parts.push("complete".to_owned()),
            _ => {}
        }
        if !self.note.is_empty() {
            parts.push(self.note.to_owned());
        }
        parts.join("; ")
    }
}

/// Two significant digits.
fn significant(value: f64) -> String {
    if value == 0.0 || (1e-4..100.0).contains(&value) {
        let decimals = if value == 0.0 { 0 } else { (1.0 - value.log10().floor()).max(0.0) as usize };
        return format!("{value:.decimals$}");
    }
    format!("{value:.1e}")
}

/// What `mayhap dedup --stats` says, in a run that is not timed.
fn expected_loss(place: &Place, contender: &Contender) -> Result<Option<f64>> {
    let mut command = Command::new(&contender.program);
    command.args(&contender.arguments).arg("--stats=json").stdin(Stdio::null()).stdout(Stdio::null());
    match contender.source {
        Source::Argument => command.arg(&contender.file),
        Source::Input | Source::Pipe => command.stdin(fs::File::open(&place.path)?),
    };
    let output = command.stderr(Stdio::piped()).output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}\nthe program failed: {}; {told}", contender.name, output.status);
    let value = told.split_once("\"expected_wrongly_dropped\":").map(|(_, rest)| rest.trim_start());
    Ok(value.and_then(|rest| rest.split([',', '}']).next()?.trim().parse().ok()))
}

/// Reads the output of the last run, which must hold the distinct lines and nothing else.
fn order(place: &Place) -> Result<Order> {
    if let Firsts::ButFor(lost) = firsts_in(place.last_output()?, place.text.source())? {
        return Ok(Order::Kept { lost });
    }
    let (order, sum) = order_and_sum(place.last_output()?)?;
    if sum != place.text.sum {
        bail!("the lines of the output are not the distinct lines of the text");
    }
    Ok(order)
}

fn order_and_sum(mut output: impl BufRead) -> Result<(Order, u64)> {
    let (mut line, mut last, mut sum, mut sorted) = (Vec::new(), Vec::new(), 0_u64, true);
    while output.read_until(b'\n', &mut line)? > 0 {
        sum = sum.wrapping_add(xxh3_64(&line));
        sorted &= last <= line;
        std::mem::swap(&mut last, &mut line);
        line.clear();
    }
    Ok((if sorted { Order::Sorted } else { Order::Other }, sum))
}

fn print_table(place: &Place, rows: &mut [Row], rounds: usize) -> Result<()> {
    let text = &place.text;
    println!(
        "{} {}, {} distinct, {:.2} GB; {}\n",
        report::short(text.lines),
        text.kind.heading(),
        text.distinct,
        fs::metadata(&place.path)?.len() as f64 / 1e9,
        if rounds == 1 { "one run".to_owned() } else { format!("medians of {rounds} runs in turns") },
    );
    println!("| | time | least | memory | output |\n|---|--:|--:|--:|---|");
    let ours = rows[0].median();
    rows.sort_by(|a, b| a.median().total_cmp(&b.median()));
    for row in rows.iter() {
        let name = row.contender.name;
        if let Some(reason) = &row.failed {
            println!("| {name} | | | | failed: {reason} |");
            continue;
        }
        let mut time = format!("{:.2} s", row.median());
        if row.runs.seconds.len() < rounds {
            time.push_str(" (1 run)");
        }
        let least = report::least(row.runs.seconds.iter().copied()).unwrap_or_default();
        let memory =
            row.runs.peak.map_or("-".to_owned(), |peak| format!("{:.0} MiB", peak as f64 / 1048576.0));
        println!("| {name} | {time} | {least:.2} s | {memory} | {} |", row.output());
    }
    println!();
    if text.kind == Kind::Urls {
        for row in rows.iter().filter(|row| row.failed.is_none()) {
            if let Some(bar) = row.times {
                let ratio = row.median() / ours;
                let verdict = Bar::AtLeast(bar).shown(ratio);
                println!("{} takes {ratio:.2} times `mayhap dedup FILE`; {verdict}", row.contender.name);
            }
        }
        println!();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_sorted_or_not_and_has_the_same_sum() {
        let (sorted, sum) = order_and_sum(&b"a\nb\nc\n"[..]).unwrap();
        assert_eq!(sorted, Order::Sorted);
        assert_eq!(order_and_sum(&b"b\na\nc\n"[..]).unwrap(), (Order::Other, sum));
        assert_ne!(order_and_sum(&b"a\nb\nb\n"[..]).unwrap().1, sum);
    }

    #[test]
    fn expected_losses_have_two_digits() {
        assert_eq!([0.0, 0.0141, 1.52, 3.0e-24].map(significant), ["0", "0.014", "1.5", "3.0e-24"]);
    }
}
