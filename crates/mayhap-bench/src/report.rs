//! Tables for people, a CSV file for programs, and the ratios that the project's bars are written in.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use mayhap_eval::median;

use crate::contenders::{AGAINST, AGAINST_GROWING, AGAINST_REMOVING, EXPANDING, LINES, OURS_AGAINST, Role};
use crate::machine;
use crate::measure::{Operation, Row, Rows, Time};

/// `100k`, `10M`, `2500`.
pub(crate) fn short(number: u64) -> String {
    match number {
        _ if number.is_multiple_of(1_000_000) => format!("{}M", number / 1_000_000),
        _ if number.is_multiple_of(1_000) => format!("{}k", number / 1_000),
        _ => number.to_string(),
    }
}

/// `1%`, `0.1%`: without the noise of binary fractions.
fn percent(rate: f64) -> String {
    let digits = format!("{:.6}", 100.0 * rate);
    format!("{}%", digits.trim_end_matches('0').trim_end_matches('.'))
}

fn heading(Rows { task, .. }: &Rows) -> String {
    format!("{} keys, n = {}, fpr asked {}", task.kind, short(task.keys), percent(task.fpr))
}

pub(crate) fn middle(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    median(&mut values.into_iter().collect::<Vec<_>>())
}

pub(crate) fn least(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().reduce(f64::min)
}

/// A cell of a table; a dash where there is nothing to say.
fn cell(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
}

/// CPU time per key, median and minimum; what the filter takes and how often it is wrong.
pub(crate) fn print_table(rows: &Rows) {
    if rows.rows.is_empty() {
        return;
    }
    println!("{}: ns of CPU time per key, median (least); rounds: {}", heading(rows), rows.plan.rounds);
    println!(
        "  {:28} {:>15} {:>15} {:>15} {:>15} {:>15} {:>9} {:>9} {:>8} {:>6} {:>5}",
        "", "insert", "hit", "miss", "half", "remove", "wall/cpu", "bits/key", "fpr", "waste", "lost"
    );
    for row in &rows.rows {
        print!("  {:28}", row.name);
        for operation in Operation::ALL {
            let times = row.times(operation);
            let cpu = || times.iter().map(|time| time.cpu);
            let text = match (middle(cpu()), least(cpu())) {
                (Some(median), Some(least)) => format!("{median:.1} ({least:.1})"),
                _ => "-".to_owned(),
            };
            print!(" {text:>15}");
        }
        // The filter's own word where there is one; else what the system saw, marked.
        let bits = match (row.bits_per_key, row.resident_bits_per_key) {
            (None, Some(resident)) => format!("~{resident:.1}"),
            (own, _) => cell(own, 2),
        };
        let fpr = row.fpr.map_or("-".to_owned(), |rate| format!("{:.3}%", 100.0 * rate));
        let lost = row.lost.map_or("-".to_owned(), |lost| lost.to_string());
        let waste = waste(row).map_or("-".to_owned(), |share| format!("{:.0}%", 100.0 * share));
        println!(" {:>9} {bits:>9} {fpr:>8} {waste:>6} {lost:>5}", cell(wall_over_cpu(row), 2));
    }
    println!();
}

/// About 1 on a quiet machine with one thread; more says that something else wanted the processor, less
/// that the contender used several.
fn wall_over_cpu(row: &Row) -> Option<f64> {
    let times = || row.rounds.iter().flatten().flatten();
    let cpu: f64 = times().map(|time| time.cpu).sum();
    let wall: f64 = times().map(|time| time.wall).sum();
    (cpu > 0.0).then(|| wall / cpu)
}

/// The bits beyond the least that any filter of the measured rate needs, as a share of those.
fn waste(row: &Row) -> Option<f64> {
    let rate = row.fpr.filter(|&rate| rate > 0.0)?;
    Some(row.bits_per_key? / -rate.log2() - 1.0)
}

/// Our rows against the peers that the bars name, and against the limits.
pub(crate) fn print_ratios(results: &[Rows]) {
    let is_ours = |row: &&Row| matches!(row.role, Role::Ours { .. });
    if !results.iter().any(|rows| rows.rows.iter().any(|row| is_ours(&row))) {
        return;
    }
    println!("Ratios of CPU time, each the median over the rounds of the ratio within one round.");
    println!("vs a peer: how many times as fast we are (above 1 we win). vs a limit: how many times");
    println!("its time we take (1 is the floor); an insert is held against the limit's hit.\n");
    for rows in results {
        println!("{}", heading(rows));
        for row in rows.rows.iter().filter(is_ours) {
            let removes = !row.times(Operation::Remove).is_empty();
            let peers: &[&str] = match removes {
                _ if row.name.starts_with(EXPANDING) => &AGAINST_GROWING,
                true => &AGAINST_REMOVING,
                false => &AGAINST,
            };
            let ours = OURS_AGAINST.into_iter().filter(|(name, _)| *name == row.name).map(|(_, other)| other);
            for name in peers.iter().copied().chain(ours) {
                if let Some(peer) = rows.rows.iter().find(|other| other.name == name) {
                    let gain = |operation| ratio(&cpu(peer, operation), &cpu(row, operation));
                    print_ratio(row, peer, &Operation::ALL, gain);
                }
            }
            against_floor(rows, row);
        }
        println!();
    }
}

fn print_ratio(row: &Row, other: &Row, operations: &[Operation], of: impl Fn(Operation) -> Option<f64>) {
    print!("  {:29} vs {:24}", row.name, other.name);
    for &operation in operations {
        if let Some(ratio) = of(operation) {
            print!("  {} {ratio:5.2}x", operation.name());
        }
    }
    println!();
}

pub(crate) fn cpu(row: &Row, operation: Operation) -> Vec<f64> {
    row.times(operation).iter().map(|time| time.cpu).collect()
}

pub(crate) fn wall(row: &Row, operation: Operation) -> Vec<f64> {
    row.times(operation).iter().map(|time| time.wall).collect()
}

/// The median of the ratios of two contenders round by round, so that a slow minute hits both sides.
pub(crate) fn ratio(above: &[f64], below: &[f64]) -> Option<f64> {
    middle(above.iter().zip(below).map(|(above, below)| above / below))
}

/// Against the best limit of its kind: a floor is the lowest that was seen.
fn against_floor(rows: &Rows, row: &Row) {
    let Role::Ours { floor } = row.role else { return };
    let limits = rows.rows.iter().filter(|limit| limit.role == Role::Limit && limit.name.starts_with(floor));
    let typical = |row: &Row| middle(cpu(row, Operation::Hit)).unwrap_or(f64::INFINITY);
    let Some(best) = limits.min_by(|a, b| typical(a).total_cmp(&typical(b))) else { return };
    // All probes of a classic filter are the floor of what needs them all; a miss stops early.
    let operations: &[Operation] =
        if floor == LINES { &Operation::ALL[..4] } else { &[Operation::Insert, Operation::Hit] };
    print_ratio(row, best, operations, |operation| {
        let limit = if operation == Operation::Insert { Operation::Hit } else { operation };
        ratio(&cpu(row, operation), &cpu(best, limit))
    });
}

const COLUMNS: &str = "kind,keys,fpr_asked,contender,role,operation,cpu_ns_median,cpu_ns_least,\
                       wall_ns_median,wall_ns_least,rounds,bits_per_key,resident_bits_per_key,fpr,lost";

/// The CSV file, if one is wanted: one line per contender and operation.
pub(crate) struct Csv(Option<BufWriter<File>>);

impl Csv {
    pub(crate) fn create(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file = File::create(path).with_context(|| format!("{}", path.display()))?;
        let mut out = BufWriter::new(file);
        for line in machine::description().lines() {
            writeln!(out, "# {line}")?;
        }
        writeln!(out, "{COLUMNS}")?;
        Ok(Self(Some(out)))
    }

    /// Written through after every task: an interrupted run keeps what it has.
    pub(crate) fn append(&mut self, rows: &Rows) -> Result<()> {
        let Some(out) = &mut self.0 else { return Ok(()) };
        let task = rows.task;
        let field = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        for row in &rows.rows {
            let role = match row.role {
                Role::Ours { .. } => "ours",
                Role::Peer => "peer",
                Role::Limit => "limit",
            };
            for operation in Operation::ALL {
                let times = row.times(operation);
                if times.is_empty() {
                    continue;
                }
                let of = |part: fn(&Time) -> f64| {
                    let values = || times.iter().map(part);
                    format!("{},{}", field(middle(values())), field(least(values())))
                };
                writeln!(
                    out,
                    "{},{},{},{},{role},{},{},{},{},{},{},{},{}",
                    task.kind,
                    task.keys,
                    task.fpr,
                    row.name,
                    operation.name(),
                    of(|time| time.cpu),
                    of(|time| time.wall),
                    times.len(),
                    field(row.bits_per_key),
                    field(row.resident_bits_per_key),
                    field(row.fpr),
                    row.lost.map_or(String::new(), |lost| lost.to_string()),
                )?;
            }
        }
        Ok(out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_rates_are_short() {
        assert_eq!([100_000, 10_000_000, 2_500].map(short), ["100k", "10M", "2500"]);
        assert_eq!([0.01, 0.001, 0.3].map(percent), ["1%", "0.1%", "30%"]);
    }

    #[test]
    fn a_ratio_is_taken_within_each_round() {
        // The second round was three times as slow for both.
        assert_eq!(ratio(&[2.0, 6.0, 2.0], &[1.0, 3.0, 1.0]), Some(2.0));
        assert_eq!(ratio(&[], &[]), None);
    }
}
