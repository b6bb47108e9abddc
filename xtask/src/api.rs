//! The public API of the library as a committed text, so that a change of it is a diff to read.
//!
//! The text is what cargo-public-api makes of rustdoc's JSON. Both are pinned: another compiler or another version of the tool
//! writes other text for the same API. JSON is unstable in rustdoc, and a stable compiler writes it with `RUSTC_BOOTSTRAP`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::install::succeeds;

/// The compiler whose rustdoc is asked. cargo-public-api has to know the format of its JSON.
const TOOLCHAIN: &str = "1.95.0";

/// The version of cargo-public-api.
const VERSION: &str = "0.52.0";

/// All features that a user is offered: `internals` is for the tests of the project.
const FEATURES: &str = "interop,roaring,serde";

/// Where the text is.
const FILE: &str = "crates/mayhap/public-api.txt";

/// Writes the text.
///
/// # Errors
///
/// What could not be installed, built or written.
pub(crate) fn update(root: &Path) -> Result<(), String> {
    let text = text(root)?;
    let (old, file) = (committed(root), root.join(FILE));
    fs::write(&file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
    match difference(&old, &text) {
        changes if changes.is_empty() => println!("{FILE}: unchanged"),
        changes => println!("{changes}{FILE}: written"),
    }
    Ok(())
}

/// Compares the text with the committed one.
///
/// # Errors
///
/// The lines that differ, or what could not be installed or built.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let changes = difference(&committed(root), &text(root)?);
    if changes.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{changes}the public API differs from {FILE}; if that is intended, run `cargo xtask api` and commit the file"
    ))
}

/// The committed text; empty if there is none yet.
fn committed(root: &Path) -> String {
    fs::read_to_string(root.join(FILE)).unwrap_or_default()
}

fn text(root: &Path) -> Result<String, String> {
    let tool = tool(root)?;
    let by_default = listing(root, &tool, "")?;
    let all = listing(root, &tool, FEATURES)?;
    let mut text = format!(
        "# The public API of mayhap, without what is derived or implemented for all types. Written by `cargo xtask api`.\n\n\
         # With default features:\n{by_default}\n# Only with the features {FEATURES}:\n"
    );
    let mut known = counted(&by_default);
    for line in all.lines() {
        match known.get_mut(line) {
            Some(times) if *times > 0 => *times -= 1,
            _ => text.extend([line, "\n"]),
        }
    }
    Ok(text)
}

/// Every line with how often it is there.
fn counted(text: &str) -> BTreeMap<&str, u32> {
    let mut lines = BTreeMap::new();
    text.lines().for_each(|line| *lines.entry(line).or_default() += 1);
    lines
}

/// The lines that only one of two texts has, in the order of the lines.
fn difference(old: &str, new: &str) -> String {
    let mut changes = String::new();
    let (old, new) = (counted(old), counted(new));
    let mut lines: Vec<_> = old.keys().chain(new.keys()).collect();
    lines.sort();
    lines.dedup();
    for line in lines {
        let times = |text: &BTreeMap<&str, u32>| text.get(line).copied().unwrap_or_default();
        for _ in times(&new)..times(&old) {
            let _ = writeln!(changes, "-{line}");
        }
        for _ in times(&old)..times(&new) {
            let _ = writeln!(changes, "+{line}");
        }
    }
    changes
}

/// The API with these features.
fn listing(root: &Path, tool: &Path, features: &str) -> Result<String, String> {
    // Another compiler than the usual one: in the usual folder each would build again what the other has built.
    let target = root.join("target").join("api");
    let mut rustdoc = Command::new("rustup");
    rustdoc
        .args([
            "run",
            TOOLCHAIN,
            "cargo",
            "rustdoc",
            "--quiet",
            "-p",
            "mayhap",
            "--lib",
            "--features",
            features,
        ])
        .arg("--target-dir")
        .arg(&target)
        // The documentation has a step of its own.
        .args(["--", "-Zunstable-options", "--output-format", "json", "--cap-lints", "allow"])
        // The cargo that runs this one has said which compiler is its own.
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(root);
    if !succeeds(&mut rustdoc) {
        return Err(format!("rustdoc could not describe the library (features {features:?})"));
    }
    let mut list = Command::new(tool);
    list.args(["public-api", "-sss", "--rustdoc-json"]).arg(target.join("doc").join("mayhap.json"));
    let done = list.output().map_err(|error| format!("{}: {error}", tool.display()))?;
    if !done.status.success() {
        return Err(format!("cargo-public-api failed: {}", String::from_utf8_lossy(&done.stderr)));
    }
    String::from_utf8(done.stdout).map_err(|error| format!("cargo-public-api: {error}"))
}

/// The compiler and cargo-public-api, installed if they are missing.
fn tool(root: &Path) -> Result<PathBuf, String> {
    let has_toolchain = || {
        let version = Command::new("rustup").args(["run", TOOLCHAIN, "rustdoc", "--version"]).output();
        version.is_ok_and(|output| output.status.success())
    };
    let install = ["toolchain", "install", TOOLCHAIN, "--profile", "minimal"];
    if !has_toolchain() && !succeeds(Command::new("rustup").args(install)) {
        return Err(format!(
            "the compiler that lists the public API could not be installed; run: rustup {}",
            install.join(" ")
        ));
    }
    let folder = root.join("target").join("tools");
    let tool = folder.join("bin").join("cargo-public-api");
    let is_here = || {
        let version = Command::new(&tool).args(["public-api", "--version"]).output();
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(VERSION))
    };
    if is_here() {
        return Ok(tool);
    }
    let line = format!("install cargo-public-api --version {VERSION} --locked --root {}", folder.display());
    println!("  installing cargo-public-api {VERSION} into {}", folder.display());
    let mut install = Command::new("rustup");
    install.args(["run", TOOLCHAIN, "cargo", "install", "cargo-public-api", "--quiet", "--version", VERSION]);
    install.args(["--locked", "--force", "--root"]).arg(&folder).env_remove("CARGO").env_remove("RUSTC");
    if succeeds(&mut install) && is_here() {
        return Ok(tool);
    }
    Err(format!("cargo-public-api could not be installed; run: cargo {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_lines_of_either_side_and_counts_repeats() {
        assert_eq!(difference("a\nb\nb\n", "a\nb\nb\n"), "");
        assert_eq!(difference("a\nb\nb\n", "b\nc\n"), "-a\n-b\n+c\n");
        assert_eq!(difference("", "a\n"), "+a\n");
    }
}
