//! The steps of `cargo xtask test`, in order: what fails fastest comes first.

use crate::cargo::{CLIPPY, Cargo, RUSTFMT};
use crate::step::{Step, Work};
use crate::{golden, layers, miri, peers, targets, unsafety};

/// Every check of the project. With `all`, the tests are built for release, the slow ones
/// run too, and so does the library under Miri and on other machines.
pub(crate) fn test(all: bool) -> Vec<Step> {
    let cargo = |name, call| Step { name, work: Work::Cargo(call) };
    // Plain `cargo test`: it is there wherever cargo is, and it runs the doctests, README included.
    let tests = if all {
        Cargo::line("test --workspace --all-features --release -- --include-ignored")
            .with_env("MAYHAP_TEST_ALL", "1")
            // Linking a hundred programs with it took an hour, and large data needs optimised loops only.
            .with_env("CARGO_PROFILE_RELEASE_LTO", "off")
    } else {
        Cargo::line("test --workspace --all-features")
    };
    let mut steps = vec![
        cargo("format", Cargo::line("fmt --all -- --check").needing(&RUSTFMT)),
        cargo(
            "lints",
            Cargo::line("clippy --workspace --all-targets --all-features -- -D warnings").needing(&CLIPPY),
        ),
        // The lints saw all features at once; these are the other combinations.
        cargo("library without std", Cargo::line("check -p mayhap --no-default-features")),
        cargo(
            "library without std, with serde",
            Cargo::line("check -p mayhap --no-default-features --features serde"),
        ),
        cargo("library with default features", Cargo::line("check -p mayhap")),
        peers(all),
        cargo("tests", tests),
        cargo(
            "documentation",
            Cargo::line("doc --workspace --no-deps").with_env("RUSTDOCFLAGS", "-D warnings"),
        ),
    ];
    steps.extend(rules());
    if all {
        steps.push(under_miri());
        steps.push(other_targets());
    }
    steps
}

/// The real programs that the tests ask; with `all`, those too that are a large download.
pub(crate) fn peers(all: bool) -> Step {
    let work = if all {
        Work::Rule { check: peers::all, rerun: "cargo xtask peers --all" }
    } else {
        Work::Rule { check: peers::usual, rerun: "cargo xtask peers" }
    };
    Step { name: "peers", work }
}

/// The library on other machines.
pub(crate) fn other_targets() -> Step {
    let work = Work::Rule { check: targets::check, rerun: "cargo xtask targets" };
    Step { name: "other machines", work }
}

/// The library under Miri.
pub(crate) fn under_miri() -> Step {
    Step { name: "Miri", work: Work::Rule { check: miri::check, rerun: "cargo xtask miri" } }
}

/// The house rules that no lint covers.
pub(crate) fn rules() -> Vec<Step> {
    let rule = |name, check| Step { name, work: Work::Rule { check, rerun: "cargo xtask rules" } };
    vec![
        rule("house rule: unsafe only where it is allowed", unsafety::check),
        rule("house rule: modules import downwards only", layers::check),
        rule("house rule: golden files are unchanged", golden::check),
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
        assert_eq!(all[plain.len()..], ["cargo xtask miri", "cargo xtask targets"]);
        assert_eq!(changed.len(), 2);
        assert_eq!(*changed[0].0, "cargo xtask peers");
        assert_eq!(*changed[0].1, "cargo xtask peers --all");
        assert_eq!(changed[1].0, "cargo test --workspace --all-features");
        assert_eq!(
            changed[1].1,
            "MAYHAP_TEST_ALL=1 CARGO_PROFILE_RELEASE_LTO=off cargo test --workspace --all-features --release -- \
             --include-ignored"
        );
    }
}
