//! The steps of `cargo xtask test`, in the order in which they begin, and which of them wait for others.

use crate::cargo::{CLIPPY, Cargo, RUSTFMT};
use crate::step::{Step, Work};
use crate::{api, golden, instructions, layers, links, miri, peers, promises, targets, unsafety};

const BUILD: &str = "tests, built";
const PEERS: &str = "peers";
const TESTS: &str = "tests";

/// Every check of the project. With `all`, the tests are built for release, the slow ones
/// run too, and so does the library under Miri and on other machines.
///
/// The lints and the documentation are compiled while the tests run: cargo builds for one call at a time.
pub(crate) fn test(all: bool) -> Vec<Step> {
    let cargo = |name, call| Step::new(name, Work::Cargo(call));
    let mut steps = vec![cargo("format", Cargo::line("fmt --all -- --check").needing(&RUSTFMT)), peers(all)];
    steps.extend(rules());
    steps.extend([
        cargo(BUILD, tests(all, "--no-run")).after(&["format"]).live(),
        // Plain `cargo test`: it is there wherever cargo is, and it runs the doctests, README included.
        Step::new(TESTS, Work::Tests { call: tests(all, ""), log: promises::log_of_tests })
            .after(&[BUILD, PEERS])
            .live(),
        promises(all).after(&[TESTS]),
        cargo(
            "lints",
            Cargo::line("clippy --workspace --all-targets --all-features -- -D warnings").needing(&CLIPPY),
        )
        .after(&[BUILD]),
        // The lints saw all features at once; these are the other combinations.
        cargo("library without std", Cargo::line("check -p mayhap --no-default-features")).after(&[BUILD]),
        cargo(
            "library without std, with serde",
            Cargo::line("check -p mayhap --no-default-features --features serde"),
        )
        .after(&[BUILD]),
        cargo("library with default features", Cargo::line("check -p mayhap")).after(&[BUILD]),
        cargo(
            "documentation",
            Cargo::line("doc --workspace --no-deps").with_env("RUSTDOCFLAGS", "-D warnings"),
        )
        .after(&[BUILD]),
    ]);
    if all {
        // Miri and emulators take memory and time from nothing that is measured, but much of both.
        steps.push(public_api().after(&[TESTS]));
        steps.push(counted_instructions().after(&[TESTS]));
        steps.push(under_miri().after(&[TESTS]));
        steps.push(other_targets().after(&[TESTS]));
    }
    steps
}

/// The run of all tests. `option` goes to cargo.
///
/// The benchmarks take a dozen other libraries with them, a twelfth of all that is compiled: usually they are only linted.
fn tests(all: bool, option: &str) -> Cargo {
    if all {
        Cargo::line(&format!("test {option} --workspace --all-features --release -- --include-ignored"))
            .with_env("MAYHAP_TEST_ALL", "1")
    } else {
        Cargo::line(&format!("test {option} --workspace --exclude mayhap-bench --all-features"))
    }
}

/// The real programs that the tests ask; with `all`, those too that are a large download.
pub(crate) fn peers(all: bool) -> Step {
    let work = if all {
        Work::Rule { check: peers::all, rerun: "cargo xtask peers --all" }
    } else {
        Work::Rule { check: peers::usual, rerun: "cargo xtask peers" }
    };
    Step::new(PEERS, work)
}

/// Every promise of the documents, compared with the tests of the same run.
fn promises(all: bool) -> Step {
    let check = if all { promises::after_all_tests } else { promises::after_tests };
    Step::new("promises", Work::Rule { check, rerun: "cargo xtask promises" })
}

/// Every promise of the documents, with the tests that they name; or with the last run of tests, whatever it was.
pub(crate) fn promises_alone(last_tests: bool) -> Step {
    let check = if last_tests { promises::after_tests } else { promises::alone };
    Step::new("promises", Work::Rule { check, rerun: "cargo xtask promises" })
}

/// The library on other machines.
pub(crate) fn other_targets() -> Step {
    let work = Work::Rule { check: targets::check, rerun: "cargo xtask targets" };
    Step::new("other machines", work)
}

/// The public API of the library, compared with the committed text.
pub(crate) fn public_api() -> Step {
    Step::new("public API", Work::Rule { check: api::check, rerun: "cargo xtask api --check" })
}

/// The instructions per key, compared with the committed table.
fn counted_instructions() -> Step {
    let rerun = "cargo xtask bench instructions --check";
    Step::new("instructions per key", Work::Rule { check: instructions::check, rerun })
}

/// The library under Miri.
pub(crate) fn under_miri() -> Step {
    Step::new("Miri", Work::Rule { check: miri::check, rerun: "cargo xtask miri" })
}

/// The house rules that no lint covers.
pub(crate) fn rules() -> Vec<Step> {
    let rule = |name, check| Step::new(name, Work::Rule { check, rerun: "cargo xtask rules" });
    vec![
        rule("house rule: unsafe only where it is allowed", unsafety::check),
        rule("house rule: modules import downwards only", layers::check),
        rule("house rule: golden files are unchanged", golden::check),
        rule("house rule: links in documents lead somewhere", links::check),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(all: bool) -> Vec<String> {
        test(all).iter().map(|step| step.work.rerun()).collect()
    }

    #[test]
    fn all_replaces_the_test_run_and_its_peers_and_adds_other_machines() {
        let (plain, all) = (commands(false), commands(true));
        let changed: Vec<_> = plain.iter().zip(&all).filter(|(plain, all)| plain != all).collect();
        assert_eq!(
            all[plain.len()..],
            [
                "cargo xtask api --check",
                "cargo xtask bench instructions --check",
                "cargo xtask miri",
                "cargo xtask targets"
            ]
        );
        let [(_, peers), (built, built_for_release), (run, run_all)] = changed[..] else {
            panic!("{changed:?}");
        };
        assert_eq!(*peers, "cargo xtask peers --all");
        assert_eq!(*built, "cargo test --no-run --workspace --exclude mayhap-bench --all-features");
        assert_eq!(*run, "cargo test --workspace --exclude mayhap-bench --all-features");
        let env = "MAYHAP_TEST_ALL=1";
        assert_eq!(
            *built_for_release,
            format!("{env} cargo test --no-run --workspace --all-features --release -- --include-ignored")
        );
        assert_eq!(
            *run_all,
            format!("{env} cargo test --workspace --all-features --release -- --include-ignored")
        );
    }

    /// What is built for one must be what the other runs, or all is built twice.
    #[test]
    fn the_tests_that_are_built_are_those_that_run() {
        for all in [false, true] {
            let steps = test(all);
            let command = |name| steps.iter().find(|step| step.name == name).unwrap().work.rerun();
            assert_eq!(command(BUILD).replace(" --no-run", ""), command(TESTS));
        }
    }
}
