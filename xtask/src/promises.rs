//! Every promise is a thing that runs: the rows of `docs/coverage.md`, the examples of the documents and of `--help`, and the
//! table of families. Each is executed, and what it prints is compared with what stands there.
//!
//! | file          | subject                                                     |
//! |---------------|-------------------------------------------------------------|
//! | `table.rs`    | the tables of a document, their rows and cells              |
//! | `rows.rs`     | the rows of `docs/coverage.md`                              |
//! | `expected.rs` | what a text is expected to contain                          |
//! | `shell.rs`    | a command in a folder of its own                            |
//! | `examples.rs` | blocks of shell lines in documents, examples in `--help`    |
//! | `passed.rs`   | which tests have passed in the same run                     |

mod examples;
mod expected;
mod passed;
mod rows;
mod shell;
mod table;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::cargo::{Cargo, Output};
use passed::Passed;
use shell::Shell;

/// Where the promises stand.
const TABLE: &str = "docs/coverage.md";

/// One promise and what came of it, as it is printed.
struct Verdict {
    /// Number of the row, or the document and the line of an example.
    number: String,
    /// What is promised.
    says: String,
    /// The command or the test that shows it.
    by: String,
    /// What it gave, or why that is not what was promised.
    result: Result<String, String>,
    took: Duration,
}

/// Executes everything, with the tests of the run that `xtask test` has just made.
///
/// # Errors
///
/// The promises that do not hold.
pub(crate) fn after_tests(root: &Path) -> Result<(), String> {
    check(root, false, false)
}

/// The same with the experiments of full size, and the binary that was built for release.
///
/// # Errors
///
/// The promises that do not hold.
pub(crate) fn after_all_tests(root: &Path) -> Result<(), String> {
    check(root, true, false)
}

/// Executes everything, and runs the tests that are named before.
///
/// # Errors
///
/// The promises that do not hold, or the tests that failed.
pub(crate) fn alone(root: &Path) -> Result<(), String> {
    check(root, false, true)
}

/// Where the output of a run of the tests is kept for the promises.
pub(crate) fn log_of_tests(root: &Path) -> std::path::PathBuf {
    target(root).join("xtask/tests.log")
}

fn target(root: &Path) -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into)
}

fn check(root: &Path, all: bool, run_tests: bool) -> Result<(), String> {
    let read = |name: &str| fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"));
    let rows = rows::of(&read(TABLE)?)?;
    let passed = if run_tests { passed_alone(root, &rows)? } else { Passed::read(&log_of_tests(root))? };
    let binary = target(root).join(if all { "release" } else { "debug" });
    let shell = Shell::new(&binary, &target(root).join("xtask/promises"))?;

    let mut jobs: Vec<Job<'_>> = Vec::new();
    for row in &rows {
        for item in &row.shown {
            if !item.only_with_all || all {
                let (shell, passed) = (&shell, &passed);
                jobs.push(Box::new(move || vec![verdict_of_row(row, item, shell, passed)]));
            }
        }
    }
    for name in examples::DOCUMENTS {
        let (text, shell) = (read(name)?, &shell);
        jobs.push(Box::new(move || examples::of_document(name, &text, shell)));
    }
    for command in examples::commands(&shell)? {
        let shell = &shell;
        jobs.push(Box::new(move || examples::of_help(&command, shell, all)));
    }
    {
        let (text, shell) = (read(examples::FAMILIES)?, &shell);
        jobs.push(Box::new(move || examples::of_families(&text, shell)));
    }
    let missing = rows::sentences_without_row(&read("README.md")?, &rows);
    let mut verdicts = at_once(&jobs);
    verdicts.extend(missing.into_iter().map(|sentence| Verdict {
        number: "README.md".into(),
        says: sentence,
        by: String::new(),
        result: Err(format!("this sentence of \"What you can rely on\" has no row in {TABLE}")),
        took: Duration::ZERO,
    }));
    report(&rows, &verdicts)
}

/// Some promises that are executed together, in their order.
type Job<'a> = Box<dyn Fn() -> Vec<Verdict> + Sync + 'a>;

/// All jobs on two threads, with their verdicts in the order of the jobs.
fn at_once(jobs: &[Job<'_>]) -> Vec<Verdict> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Vec<Verdict>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(number) else { return };
            let verdicts = job();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, verdicts));
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().flat_map(|(_, verdicts)| verdicts).collect()
}

fn verdict_of_row(row: &rows::Row, item: &rows::Item, shell: &Shell, passed: &Passed) -> Verdict {
    let start = Instant::now();
    let result = match &item.what {
        rows::What::Test(name) => passed.named(name),
        rows::What::Command(command) => shell.expects(command, &item.expected),
    };
    Verdict {
        number: row.number.clone(),
        says: row.says.clone(),
        by: item.what.to_string(),
        result,
        took: start.elapsed(),
    }
}

/// Runs the tests that rows name, and no others.
fn passed_alone(root: &Path, rows: &[rows::Row]) -> Result<Passed, String> {
    let mut names: Vec<String> = rows.iter().flat_map(rows::Row::tests).collect();
    names.sort();
    names.dedup();
    let log = log_of_tests(root);
    let args = ["test", "--workspace", "--all-features", "--"].map(str::to_owned);
    Cargo::new(args.into_iter().chain(names)).run(root, Output::Kept(&log))?;
    Passed::read(&log)
}

/// Prints every promise.
///
/// # Errors
///
/// Those that do not hold.
fn report(rows: &[rows::Row], verdicts: &[Verdict]) -> Result<(), String> {
    let mut broken = Vec::new();
    for Verdict { number, says, by, result, took } in verdicts {
        let (result, verdict) = match result {
            Ok(result) => (result.as_str(), "holds"),
            Err(reason) => {
                broken.push(format!("{number}: {says}\n  {by}\n  {}", reason.replace('\n', "\n  ")));
                (reason.lines().next().unwrap_or_default(), "BROKEN")
            }
        };
        println!("{number} | {says} | {by} | {result} | {verdict} ({:.1} s)", took.as_secs_f64());
    }
    for essay in 0..5 {
        let of_essay = rows.iter().filter(|row| row.number.starts_with(&format!("{essay}.")));
        println!("essay {essay}: {} items", of_essay.count());
    }
    println!("{} rows, {} executions, {} broken", rows.len(), verdicts.len(), broken.len());
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}
