//! Running steps: each is announced and timed, two at a time where the machine has two cores, and after the first failure
//! nothing new begins.
//!
//! The announcements go to stdout. A live step writes straight to ours; any other is shown only if it fails, so that two steps
//! at a time do not mix their lines.

use std::num::NonZeroUsize;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::cargo::{Cargo, Output};

/// Cargo itself uses all cores, so that more than two would only get in each other's way.
const MOST_AT_ONCE: usize = 2;

/// One thing to check.
pub(crate) struct Step {
    /// What a person calls it.
    pub(crate) name: &'static str,
    /// How it is done.
    pub(crate) work: Work,
    /// The steps that must have passed before, by their names.
    pub(crate) after: &'static [&'static str],
    /// Whether its output is shown while it runs. At most one such step should run at a time.
    pub(crate) live: bool,
}

/// How a step does its work.
pub(crate) enum Work {
    /// By a call of cargo.
    Cargo(Cargo),
    /// By a call of cargo whose output is kept for the steps behind it.
    Tests {
        /// The call.
        call: Cargo,
        /// The file for what it prints, by the root.
        log: fn(&Path) -> PathBuf,
    },
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
            Self::Cargo(call) | Self::Tests { call, .. } => call.to_string(),
            Self::Rule { rerun, .. } => (*rerun).to_owned(),
        }
    }

    fn run(&self, root: &Path, output: Output<'_>) -> Result<(), String> {
        match self {
            Self::Cargo(call) => call.run(root, output),
            Self::Tests { call, log } => call.run(root, Output::Kept(&log(root))),
            Self::Rule { check, .. } => check(root),
        }
    }
}

impl Step {
    /// A step that waits for no other and is shown if it fails.
    pub(crate) fn new(name: &'static str, work: Work) -> Self {
        Self { name, work, after: &[], live: false }
    }

    /// The same, begun when these have passed.
    pub(crate) fn after(self, after: &'static [&'static str]) -> Self {
        Self { after, ..self }
    }

    /// The same, shown while it runs.
    pub(crate) fn live(self) -> Self {
        Self { live: true, ..self }
    }
}

/// What has become of a step.
#[derive(Clone, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Passed(Duration),
    Failed(String),
}

/// Runs `steps`, in their order as far as they do not wait for each other. `title` begins every line of ours.
///
/// # Errors
///
/// The steps that failed, why, and the commands to run them again.
pub(crate) fn run_all(title: &str, steps: &[Step], root: &Path) -> Result<(), String> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    run_at_once(title, steps, root, cores.min(MOST_AT_ONCE))
}

fn run_at_once(title: &str, steps: &[Step], root: &Path, at_once: usize) -> Result<(), String> {
    for step in steps {
        for before in step.after {
            assert!(steps.iter().any(|other| other.name == *before), "no step {before:?}");
        }
    }
    let start = Instant::now();
    let run = Run {
        title,
        steps,
        root,
        states: Mutex::new(vec![State::Waiting; steps.len()]),
        ended: Condvar::new(),
    };
    thread::scope(|scope| {
        for _ in 1..at_once {
            scope.spawn(|| run.work());
        }
        run.work();
    });
    let states = run.states.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failures: Vec<String> = steps
        .iter()
        .zip(&states)
        .filter_map(|(step, state)| match state {
            State::Failed(reason) => {
                Some(format!("{reason}\n{title}: to run {} again: {}", step.name, step.work.rerun()))
            }
            _ => None,
        })
        .collect();
    if !failures.is_empty() {
        return Err(failures.join("\n"));
    }
    for (step, state) in steps.iter().zip(&states) {
        let State::Passed(took) = state else { unreachable!("{} neither passed nor failed", step.name) };
        println!("{title}: {:8.1} s  {}", took.as_secs_f64(), step.name);
    }
    println!("{title}: all {} steps passed in {:.1} s", steps.len(), start.elapsed().as_secs_f64());
    Ok(())
}

/// The steps of one call of [`run_all`], shared by the threads that do them.
struct Run<'a> {
    title: &'a str,
    steps: &'a [Step],
    root: &'a Path,
    states: Mutex<Vec<State>>,
    /// A step has ended.
    ended: Condvar,
}

impl Run<'_> {
    /// Does one step after the other, until none is left that can begin.
    fn work(&self) {
        while let Some(number) = self.next() {
            // A panic that left it running would let the other thread wait for ever.
            let state = panic::catch_unwind(AssertUnwindSafe(|| self.run(number)));
            let panicked =
                |_| State::Failed(format!("internal error in {}; see above", self.steps[number].name));
            self.states()[number] = state.unwrap_or_else(panicked);
            self.ended.notify_all();
        }
    }

    fn states(&self) -> MutexGuard<'_, Vec<State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first step that can begin, and waits for one if others have to end before.
    fn next(&self) -> Option<usize> {
        let mut states = self.states();
        loop {
            if states.iter().any(|state| matches!(state, State::Failed(_))) {
                return None;
            }
            let has_passed = |name: &&str| {
                let steps = self.steps.iter().zip(&*states);
                steps.into_iter().all(|(step, state)| step.name != *name || matches!(state, State::Passed(_)))
            };
            let can_begin = |number: &usize| {
                states[*number] == State::Waiting && self.steps[*number].after.iter().all(has_passed)
            };
            if let Some(number) = (0..states.len()).find(can_begin) {
                states[number] = State::Running;
                return Some(number);
            }
            // What is left waits for a step that is running, or for nothing that can come.
            if !states.contains(&State::Running) {
                return None;
            }
            states = self.ended.wait(states).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self, number: usize) -> State {
        let Self { title, steps, root, .. } = *self;
        let Step { name, work, live, .. } = &steps[number];
        let place = format!("{title}: {}/{} {name}", number + 1, steps.len());
        match work {
            Work::Cargo(call) | Work::Tests { call, .. } => println!("{place}: {call}"),
            Work::Rule { .. } => println!("{place}"),
        }
        let start = Instant::now();
        let result = work.run(root, if *live { Output::Live } else { Output::IfItFails });
        let took = start.elapsed();
        match result {
            Ok(()) => {
                println!("{place}: passed in {:.1} s", took.as_secs_f64());
                State::Passed(took)
            }
            Err(reason) => {
                // At once, since another step may run for minutes yet.
                println!("{place}: failed after {:.1} s", took.as_secs_f64());
                State::Failed(format!("{reason}\n{place}: failed after {:.1} s", took.as_secs_f64()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn rule(name: &'static str, check: fn(&Path) -> Result<(), String>) -> Step {
        Step::new(name, Work::Rule { check, rerun: "cargo xtask rules" })
    }

    fn run(steps: &[Step], at_once: usize) -> Result<(), String> {
        run_at_once("test", steps, Path::new("."), at_once)
    }

    #[test]
    fn the_first_failure_ends_the_run_and_is_named() {
        for at_once in [1, 2] {
            let steps = [
                rule("fine", |_| Ok(())),
                rule("broken", |_| Err("it leaks".to_owned())).after(&["fine"]),
                rule("never reached", |_| panic!("ran after a failure")).after(&["broken"]),
            ];
            let error = run(&steps, at_once).unwrap_err();
            assert!(error.starts_with("it leaks\ntest: 2/3 broken: failed after "), "{error}");
            assert!(error.ends_with("\ntest: to run broken again: cargo xtask rules"), "{error}");
        }
    }

    #[test]
    fn a_panic_is_a_failure_and_no_hang() {
        let steps = [rule("panics", |_| panic!("on purpose")), rule("waits", |_| Ok(())).after(&["panics"])];
        let error = run(&steps, 2).unwrap_err();
        assert!(error.starts_with("internal error in panics"), "{error}");
    }

    #[test]
    fn no_failure_is_success() {
        for at_once in [1, 2] {
            assert_eq!(run(&[rule("fine", |_| Ok(()))], at_once), Ok(()));
            assert_eq!(run(&[], at_once), Ok(()));
        }
    }

    #[test]
    fn a_step_begins_when_those_before_it_have_passed() {
        static PASSED: AtomicU32 = AtomicU32::new(0);
        let steps = [
            rule("last", |_| match PASSED.load(Ordering::Relaxed) {
                2 => Ok(()),
                passed => Err(format!("begun after {passed}")),
            })
            .after(&["first", "second"]),
            rule("first", |_| {
                PASSED.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }),
            rule("second", |_| {
                PASSED.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }),
        ];
        assert_eq!(run(&steps, 2), Ok(()));
    }

    /// Each waits for the other to have begun: in turns they would never end.
    #[test]
    fn independent_steps_run_at_once() {
        static BEGUN: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());
        let meet = |_: &Path| {
            let mut begun = BEGUN.0.lock().unwrap();
            *begun += 1;
            BEGUN.1.notify_all();
            let both =
                BEGUN.1.wait_timeout_while(begun, Duration::from_secs(60), |begun| *begun < 2).unwrap();
            if both.1.timed_out() { Err("alone".to_owned()) } else { Ok(()) }
        };
        assert_eq!(run(&[rule("one", meet), rule("other", meet)], 2), Ok(()));
    }

    #[test]
    #[should_panic(expected = "no step \"nobody\"")]
    fn a_step_that_waits_for_nobody_is_a_mistake() {
        let _ = run(&[rule("waits", |_| Ok(())).after(&["nobody"])], 1);
    }
}
