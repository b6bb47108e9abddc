//! `cargo xtask`: the project's one entry point for people and CI.
//!
//! | file         | subject                                                          |
//! |--------------|------------------------------------------------------------------|
//! | `main.rs`    | the commands and their arguments                                 |
//! | `checks.rs`  | which steps `cargo xtask test` takes, in order                   |
//! | `step.rs`    | running steps: announce, time, two at a time, end at a failure   |
//! | `cargo.rs`   | one call of cargo, and the toolchain components it needs         |
//! | `unsafety.rs`| house rule: `unsafe` appears only where it is allowed            |
//! | `layers.rs`  | house rule: modules of the library import downwards only            |
//! | `links.rs`   | house rule: links in documents lead to files and headings        |
//! | `golden.rs`  | house rule: golden files are added, never changed; the manifests |
//! | `miri.rs`    | the library under Miri                                           |
//! | `api.rs`     | the public API of the library as a committed text                |
//! | `targets.rs` | the library on other machines                                    |
//! | `install.rs` | programs that tests need: whether they are here, how to get them  |
//! | `peers.rs`   | the real programs whose files we read and write: installing them |
//! | `promises.rs`| every promise of the documents is executed                       |
//! | `tokens.rs`  | Rust source without comments and literals, for house rules       |
//! | `tree.rs`    | where the repository is, and its files                           |
//!
//! Only the standard library is used, so that the first `cargo xtask` on a fresh machine starts in seconds.

mod api;
mod cargo;
mod checks;
mod golden;
mod install;
mod instructions;
mod layers;
mod links;
mod miri;
mod peers;
mod promises;
mod step;
mod targets;
mod tokens;
mod tree;
mod unsafety;

use std::process::ExitCode;

use crate::cargo::{Cargo, Output};

const HELP: &str = "\
usage: cargo xtask <command>

  test [--all]       every check of the project: format, lints, features, tests, docs, house rules
                     --all: release build, the slow tests (MAYHAP_TEST_ALL=1), public API, Miri and other machines too
  promises [--last-tests]
                     only what the documents promise: runs every row of docs/coverage.md, every example, and compares
                     --last-tests: builds nothing, and takes tests for passed that the last run has passed
  rules              only the house rules: where `unsafe` may stand, imports downwards, golden files
                     unchanged, links in documents
  targets            only the library on other machines: 32-bit, ARM, big-endian, WebAssembly; installs what is missing
                     (targets by rustup; linkers, emulators and node on Debian as root), or fails and names the command
  miri               only the library under Miri: memory accesses of the portable loops, the allocator, shared filters
  peers [--all]      only what the tests with real peers need: installs what is missing, on Debian as root
                     --all: Spark too, a large download
  api [--check]      write the public API of the library to crates/mayhap/public-api.txt; installs what is missing
                     --check: only compare it with that file
  golden             write golden files for families that lack one, and record them in the manifests
  bench [--quick]    compare mayhap with other libraries and commands; arguments go to mayhap-bench as they are
  help               this text

exit code: 0 all well, 1 a step failed, 2 the command line was not understood
";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Test { all: bool },
    Promises { last_tests: bool },
    Rules,
    Targets,
    Peers { all: bool },
    Miri,
    Api { check: bool },
    Golden,
    Bench { args: Vec<String> },
    Help,
}

impl Task {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    ///
    /// A sentence about the first argument that was not understood.
    fn parse(args: &[String]) -> Result<Self, String> {
        let Some((command, rest)) = args.split_first() else {
            return Err("expected a command".to_owned());
        };
        let task = match command.as_str() {
            // Everything after `bench` belongs to mayhap-bench, `--help` included.
            "bench" => return Ok(Self::Bench { args: rest.to_vec() }),
            _ if rest.iter().any(|arg| arg == "--help" || arg == "-h") => return Ok(Self::Help),
            "test" => match rest {
                [flag, tail @ ..] if flag == "--all" => (Self::Test { all: true }, tail),
                _ => (Self::Test { all: false }, rest),
            },
            "peers" => match rest {
                [flag, tail @ ..] if flag == "--all" => (Self::Peers { all: true }, tail),
                _ => (Self::Peers { all: false }, rest),
            },
            "promises" => match rest {
                [flag, tail @ ..] if flag == "--last-tests" => (Self::Promises { last_tests: true }, tail),
                _ => (Self::Promises { last_tests: false }, rest),
            },
            "api" => match rest {
                [flag, tail @ ..] if flag == "--check" => (Self::Api { check: true }, tail),
                _ => (Self::Api { check: false }, rest),
            },
            "rules" => (Self::Rules, rest),
            "targets" => (Self::Targets, rest),
            "miri" => (Self::Miri, rest),
            "golden" => (Self::Golden, rest),
            "help" | "--help" | "-h" => (Self::Help, rest),
            other => return Err(format!("unknown command `{other}`")),
        };
        match task {
            (task, []) => Ok(task),
            (_, [extra, ..]) => Err(format!("`{command}` does not take `{extra}`")),
        }
    }

    /// Does it.
    ///
    /// # Errors
    ///
    /// What failed and what to do next, for a person to read.
    fn run(self) -> Result<(), String> {
        let root = tree::root();
        match self {
            Self::Test { all } => step::run_all("xtask test", &checks::test(all), &root),
            Self::Promises { last_tests } => {
                step::run_all("xtask promises", &[checks::promises_alone(last_tests)], &root)
            }
            Self::Rules => step::run_all("xtask rules", &checks::rules(), &root),
            Self::Targets => step::run_all("xtask targets", &[checks::other_targets()], &root),
            Self::Peers { all } => step::run_all("xtask peers", &[checks::peers(all)], &root),
            Self::Miri => step::run_all("xtask miri", &[checks::under_miri()], &root),
            Self::Api { check: true } => step::run_all("xtask api", &[checks::public_api()], &root),
            Self::Api { check: false } => api::update(&root),
            Self::Golden => golden::update(&root),
            Self::Bench { args } => {
                let fixed = ["run", "--release", "-p", "mayhap-bench", "--"].map(str::to_owned);
                Cargo::new(fixed.into_iter().chain(args)).run(&root, Output::Live)
            }
            Self::Help => {
                print!("{HELP}");
                Ok(())
            }
        }
    }
}

fn main() -> ExitCode {
    // Not `env::args`, which panics on arguments that are not Unicode.
    let args: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    match Task::parse(&args) {
        Err(problem) => {
            eprint!("xtask: {problem}\n\n{HELP}");
            ExitCode::from(2)
        }
        Ok(task) => match task.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("{problem}");
                ExitCode::FAILURE
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Task, String> {
        Task::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn commands_are_understood() {
        assert_eq!(parse("test"), Ok(Task::Test { all: false }));
        assert_eq!(parse("test --all"), Ok(Task::Test { all: true }));
        assert_eq!(parse("test --help"), Ok(Task::Help));
        assert_eq!(parse("promises"), Ok(Task::Promises { last_tests: false }));
        assert_eq!(parse("promises --last-tests"), Ok(Task::Promises { last_tests: true }));
        assert_eq!(parse("rules"), Ok(Task::Rules));
        assert_eq!(parse("targets"), Ok(Task::Targets));
        assert_eq!(parse("peers"), Ok(Task::Peers { all: false }));
        assert_eq!(parse("peers --all"), Ok(Task::Peers { all: true }));
        assert_eq!(parse("miri"), Ok(Task::Miri));
        assert_eq!(parse("api"), Ok(Task::Api { check: false }));
        assert_eq!(parse("api --check"), Ok(Task::Api { check: true }));
        assert_eq!(parse("golden"), Ok(Task::Golden));
        assert_eq!(parse("help"), Ok(Task::Help));
    }

    #[test]
    fn bench_passes_everything_through() {
        let args = vec!["--quick".to_owned(), "--help".to_owned()];
        assert_eq!(parse("bench --quick --help"), Ok(Task::Bench { args }));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(parse(""), Err("expected a command".to_owned()));
        assert_eq!(parse("tset"), Err("unknown command `tset`".to_owned()));
        assert_eq!(parse("test --al"), Err("`test` does not take `--al`".to_owned()));
        assert_eq!(parse("test --all x"), Err("`test` does not take `x`".to_owned()));
        assert_eq!(parse("golden x"), Err("`golden` does not take `x`".to_owned()));
    }
}
