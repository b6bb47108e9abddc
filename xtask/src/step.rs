//! Running steps one after the other: each is announced, timed, and the first failure ends the run.
//!
//! The announcements go to stdout, between the outputs of the commands, so that a log reads in order.

use std::path::Path;
use std::time::Instant;

use crate::cargo::Cargo;

/// One thing to check.
pub(crate) struct Step {
    /// What a person calls it.
    pub(crate) name: &'static str,
    /// How it is done.
    pub(crate) work: Work,
}

/// How a step does its work.
pub(crate) enum Work {
    /// By a call of cargo.
    Cargo(Cargo),
    /// By looking at the repository itself.
    Rule {
        /// Gets the repository's root; an error lists what breaks the rule.
        check: fn(&Path) -> Result<(), String>,
        /// The command that checks this rule without the rest.
        rerun: &'static str,
    },
}

impl Work {
    /// The command that repeats this work alone.
    pub(crate) fn rerun(&self) -> String {
        match self {
            Self::Cargo(call) => call.to_string(),
            Self::Rule { rerun, .. } => (*rerun).to_owned(),
        }
    }

    fn run(&self, root: &Path) -> Result<(), String> {
        match self {
            Self::Cargo(call) => call.run(root),
            Self::Rule { check, .. } => check(root),
        }
    }
}

/// Runs `steps` in order, in `root`. `title` begins every line of ours.
///
/// # Errors
///
/// The first step that failed, why, and the command to run it again.
pub(crate) fn run_all(title: &str, steps: &[Step], root: &Path) -> Result<(), String> {
    let start = Instant::now();
    let count = steps.len();
    for (step, number) in steps.iter().zip(1..) {
        let Step { name, work } = step;
        match work {
            Work::Cargo(call) => println!("{title}: {number}/{count} {name}: {call}"),
            Work::Rule { .. } => println!("{title}: {number}/{count} {name}"),
        }
        let step_start = Instant::now();
        let result = work.run(root);
        let seconds = step_start.elapsed().as_secs_f64();
        if let Err(reason) = result {
            return Err(format!(
                "{reason}\n{title}: step {number}/{count} ({name}) failed after {seconds:.1} s\n\
                 {title}: to run it again: {}",
                work.rerun()
            ));
        }
        println!("{title}: {number}/{count} {name}: passed in {seconds:.1} s");
    }
    println!("{title}: all {count} steps passed in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &'static str, check: fn(&Path) -> Result<(), String>) -> Step {
        Step { name, work: Work::Rule { check, rerun: "cargo xtask rules" } }
    }

    #[test]
    fn the_first_failure_ends_the_run_and_is_named() {
        let steps = [
            rule("fine", |_| Ok(())),
            rule("broken", |_| Err("it leaks".to_owned())),
            rule("never reached", |_| panic!("ran after a failure")),
        ];
        let error = run_all("test", &steps, Path::new(".")).unwrap_err();
        assert!(error.starts_with("it leaks\ntest: step 2/3 (broken) failed after "), "{error}");
        assert!(error.ends_with("\ntest: to run it again: cargo xtask rules"), "{error}");
    }

    #[test]
    fn no_failure_is_success() {
        assert_eq!(run_all("test", &[rule("fine", |_| Ok(()))], Path::new(".")), Ok(()));
    }
}
