//! Instructions per key, counted by valgrind and not timed: the same number on every machine, whatever else it does.
//!
//! The table is committed, in `instructions.md` of this crate: `--check` compares with it, `--write` writes it.
//!
//! Each row runs twice, with one round of keys and with several: the difference is what the keys cost, without the start of
//! the process. Filters are small, so that all paths are those of filters in cache.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use mayhap::{
    AnyFilter, Blocked, Bloom, Counting, Cuckoo, Digest, Expanding, Fuse, Hashing, Insertion, Layout, Spec,
};
use mayhap_eval::SplitMix64;

use crate::Size;

/// Says to the process that valgrind runs which row it is, and how many rounds.
const ROW: &str = "MAYHAP_BENCH_ROW";
const ROUNDS: &str = "MAYHAP_BENCH_ROUNDS";

/// Keys of one round.
const KEYS: usize = 10_000;
/// Rounds of the long run.
const MANY: u64 = 5;
/// Keys of a batch.
const BATCH: usize = 1000;

const FAMILIES: [&str; 6] = ["bloom", "blocked", "counting", "cuckoo", "fuse", "expanding"];
const TASKS: [&str; 9] =
    ["insert", "hit", "miss", "insert batch", "hit batch", "miss batch", "insert dyn", "hit dyn", "miss dyn"];

/// The committed table.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.md");

/// How many instructions per key more than in the committed table are an error. Other versions of the compiler count a little
/// more or less.
const MOST_MORE: f64 = 2.0;

/// What becomes of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Record {
    /// It is printed.
    #[default]
    Print,
    /// It is printed and compared with the committed one.
    Check,
    /// It is printed, and committed from now on.
    Write,
}

/// Counts, and prints the table.
///
/// # Errors
/// The cells that are above the committed table, if it is compared; or why nothing could be counted.
pub(crate) fn run(size: Size, record: Record) -> Result<()> {
    let mut table = format!("| family | {} |\n|---{}|\n", TASKS.join(" | "), "|--:".repeat(TASKS.len()));
    for family in FAMILIES {
        let mut cells = Vec::new();
        for task in TASKS {
            if family == "fuse" && task.starts_with("insert") {
                cells.push("–".to_owned());
                continue;
            }
            let rounds = if size.quick { 2 } else { MANY };
            let (short, long) = (counted(family, task, 1)?, counted(family, task, rounds)?);
            let per_key = (long - short) as f64 / ((rounds - 1) * KEYS as u64) as f64;
            cells.push(format!("{per_key:.1}"));
        }
        table.push_str(&format!("| {family} | {} |\n", cells.join(" | ")));
    }
    println!("instructions per key, {KEYS} u64 keys at 1%, batches of {BATCH}\n\n{table}");
    match record {
        Record::Print => Ok(()),
        Record::Check => {
            let committed = std::fs::read_to_string(FILE).context(FILE)?;
            let risen = risen(&committed, &table);
            ensure!(
                risen.is_empty(),
                "more instructions per key than in crates/mayhap-bench/instructions.md:\n{}\nif that is intended, run \
                 `cargo xtask bench instructions --write` and commit the file",
                risen.join("\n")
            );
            Ok(())
        }
        Record::Write => {
            let text = format!(
                "# Instructions per key\n\nCounted by valgrind with {KEYS} `u64` keys at 1%, in batches of {BATCH}, for \
                 filters in cache, on a processor with AVX2.\n`cargo xtask bench instructions --write` writes this file; \
                 `cargo xtask test --all` fails if a number is more than {MOST_MORE} above it.\n\n{table}"
            );
            std::fs::write(FILE, text).context(FILE)
        }
    }
}

/// The cells of a table by family and task.
fn cells(table: &str) -> impl Iterator<Item = (&str, &str, f64)> {
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    rows.flat_map(|(family, cells)| {
        let cells = TASKS.into_iter().zip(cells.trim_end_matches(" |").split(" | "));
        cells.filter_map(move |(task, cell)| Some((family, task, cell.parse().ok()?)))
    })
}

/// The cells that are too far above those of the committed table, or are missing there.
fn risen(committed: &str, table: &str) -> Vec<String> {
    let before = |family, task| cells(committed).find(|&(f, t, _)| (f, t) == (family, task));
    let compared = cells(table).filter_map(|(family, task, now)| match before(family, task) {
        Some((.., before)) if now <= before + MOST_MORE => None,
        Some((.., before)) => Some(format!("  {family}, {task}: {before} before, {now} now")),
        None => Some(format!("  {family}, {task}: not in the table, {now} now")),
    });
    compared.collect()
}

/// The instructions of a whole process.
fn counted(family: &str, task: &str, rounds: u64) -> Result<u64> {
    let program = std::env::current_exe()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .env(ROW, format!("{family}/{task}"))
        .env(ROUNDS, rounds.to_string())
        .output()
        .context("valgrind, which counts the instructions")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{family}, {task}: {text}");
    let line = text.lines().find_map(|line| line.split_once("Collected : "));
    let (_, number) = line.with_context(|| format!("no number of instructions in {text}"))?;
    Ok(number.trim().parse()?)
}

/// Does the work of a row, if the environment names one.
pub(crate) fn row() -> Result<bool> {
    let (Ok(row), Ok(rounds)) = (std::env::var(ROW), std::env::var(ROUNDS)) else { return Ok(false) };
    let (family, task) = row.split_once('/').context("family/task")?;
    let rounds: u64 = rounds.parse()?;
    let spec = Spec::sized(MANY * KEYS as u64, 0.01);
    match family {
        "bloom" => work(
            task,
            rounds,
            Bloom::from_spec(&spec)?,
            |filter, key| {
                filter.insert(key);
            },
            |filter, keys| filter.insert_all(keys),
            |filter, key| filter.contains(key),
            Bloom::contains_each,
        ),
        "blocked" => work(
            task,
            rounds,
            Blocked::from_spec(&spec.with_layout(Layout::Compact))?,
            |filter, key| {
                filter.insert(key);
            },
            |filter, keys| filter.insert_all(keys),
            |filter, key| filter.contains(key),
            Blocked::contains_each,
        ),
        "counting" => work(
            task,
            rounds,
            Counting::from_spec(&spec)?,
            |filter, key| {
                filter.insert(key);
            },
            |filter, keys| filter.insert_all(keys),
            |filter, key| filter.contains(key),
            Counting::contains_each,
        ),
        "cuckoo" => work(
            task,
            rounds,
            Cuckoo::from_spec(&spec)?,
            |filter, key| {
                filter.insert(key).expect("room");
            },
            |filter, keys| filter.insert_all(keys).expect("room"),
            |filter, key| filter.contains(key),
            Cuckoo::contains_each,
        ),
        "expanding" => work(
            task,
            rounds,
            Expanding::from_spec(&spec)?,
            |filter, key| {
                filter.insert(key).expect("room");
            },
            |filter, keys| filter.insert_all(keys).expect("room"),
            |filter, key| filter.contains(key),
            Expanding::contains_each,
        ),
        _ => {
            let keys: Vec<u64> = (0..MANY).flat_map(round_of).collect();
            let fuse = Fuse::build(&keys, 0.01)?;
            work(
                task,
                rounds,
                fuse,
                |_, _| {},
                |_, _| {},
                |filter, key| filter.contains(key),
                Fuse::contains_each,
            );
        }
    }
    Ok(true)
}

/// Keys of a round, always the same.
fn round_of(round: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(round);
    (0..KEYS).map(|_| random.next_u64()).collect()
}

fn work<F: AnyFilter>(
    task: &str,
    rounds: u64,
    mut filter: F,
    insert: impl Fn(&mut F, u64),
    insert_all: impl Fn(&mut F, &[u64]),
    contains: impl Fn(&F, u64) -> bool,
    contains_each: impl Fn(&F, &[u64], &mut Vec<bool>),
) {
    let (what, how) = task.split_once(' ').unwrap_or((task, ""));
    if what == "hit" {
        insert_all(&mut filter, &round_of(0));
    }
    let hashing: Hashing = filter.hashing();
    let mut hits = Vec::with_capacity(BATCH);
    let mut outcomes: Vec<Insertion> = Vec::with_capacity(BATCH);
    let mut found = 0;
    // All are made, also by the short run: what that takes is no part of the difference. A lookup of a key that is in may be
    // repeated; inserts are of keys of their own.
    let all: Vec<(Vec<u64>, Vec<Digest>)> = (0..MANY)
        .map(|round| {
            let keys = round_of(match what {
                "hit" => 0,
                "insert" => round,
                _ => round + 1000,
            });
            let digests = keys.iter().map(|&key| hashing.digest_of(key)).collect();
            (keys, digests)
        })
        .collect();
    for (keys, digests) in &all[..rounds as usize] {
        match (what, how) {
            ("insert", "") => keys.iter().for_each(|&key| insert(&mut filter, key)),
            (_, "") => found += keys.iter().filter(|&&key| contains(&filter, key)).count(),
            ("insert", "batch") => keys.chunks(BATCH).for_each(|keys| insert_all(&mut filter, keys)),
            (_, "batch") => {
                for keys in keys.chunks(BATCH) {
                    hits.clear();
                    contains_each(&filter, keys, &mut hits);
                    found += usize::from(hits[0]);
                }
            }
            ("insert", _) => {
                let face: &mut dyn AnyFilter = &mut filter;
                for digests in digests.chunks(BATCH) {
                    outcomes.clear();
                    let inserts = face.as_insert().expect("it inserts");
                    inserts.insert_batch(digests, &mut outcomes).expect("room");
                    found += outcomes.len();
                }
            }
            _ => {
                let face: &dyn AnyFilter = &filter;
                for digests in digests.chunks(BATCH) {
                    hits.clear();
                    face.contains_batch(digests, &mut hits);
                    found += usize::from(hits[0]);
                }
            }
        }
    }
    std::hint::black_box((found, filter));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_rises_is_named_and_a_new_one_too() {
        let committed =
            "| family | insert | hit |\n|---|--:|--:|\n| bloom | 100.0 | 50.0 |\n| fuse | – | 20.0 |\n";
        assert!(risen(committed, committed).is_empty());
        assert!(risen(committed, &committed.replace("50.0", "52.0")).is_empty());
        let higher = committed.replace("50.0", "52.1");
        assert_eq!(risen(committed, &higher), ["  bloom, hit: 50 before, 52.1 now"]);
        let more = format!("{committed}| table | 1.0 | – |\n");
        assert_eq!(risen(committed, &more), ["  table, insert: not in the table, 1 now"]);
    }

    #[test]
    fn the_committed_table_has_every_cell() {
        let committed = std::fs::read_to_string(FILE).unwrap();
        assert_eq!(cells(&committed).count(), FAMILIES.len() * TASKS.len() - 3);
    }
}
