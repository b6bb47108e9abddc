//! The library under Miri, which interprets it and watches every access to memory: the portable loops, the allocator and the
//! filters that threads share, with small data.
//!
//! Miri is a part of nightly toolchains, so this is not among the usual checks.

use std::path::Path;
use std::process::Command;

use crate::install::succeeds;

/// The tests that are small enough, each with the arguments of cargo that choose it.
const TESTS: [&[&str]; 2] = [
    &["--test", "under_miri"],
    // What is unsafe and not a loop: memory of one's own, in parts, shared.
    &["--lib", "--", "memory::", "parts::", "atomic::", "words::"],
];

/// Runs them, after installing Miri.
///
/// # Errors
///
/// The command that failed, or the one that brings Miri.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let components = ["component", "add", "miri", "rust-src", "--toolchain", "nightly"];
    if !succeeds(Command::new("rustup").args(components)) {
        return Err("Miri could not be installed; run `rustup toolchain install nightly` and \
                    `rustup component add miri rust-src --toolchain nightly`"
            .to_owned());
    }
    for test in TESTS {
        let mut call = Command::new("rustup");
        // On x86-64 libm has a square root in assembly, which Miri cannot interpret.
        call.args(["run", "nightly", "cargo", "miri", "test", "-p", "mayhap", "--all-features"])
            .args(["--features", "libm/force-soft-floats"])
            .args(test)
            // The cargo that runs this one has said which compiler is its own.
            .env_remove("CARGO")
            .env_remove("RUSTC")
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .current_dir(root);
        let status = call.status().map_err(|error| format!("rustup did not start: {error}"))?;
        if !status.success() {
            return Err(format!("Miri found something, or the tests {} failed under it", test.join(" ")));
        }
    }
    Ok(())
}
