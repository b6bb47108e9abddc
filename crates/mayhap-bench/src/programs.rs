//! Programs that are started and measured: our command, and those of others that do the same work.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::Size;

/// The command itself, built for users beside this program.
pub(crate) fn mayhap() -> Result<PathBuf> {
    let binary = folder()?.join("mayhap");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--package", "mayhap-cli"])
        .status()
        .context("cargo")?;
    ensure!(
        status.success() && binary.is_file(),
        "{} could not be built; run this with --release",
        binary.display()
    );
    Ok(binary)
}

/// The folder of this program.
fn folder() -> Result<PathBuf> {
    Ok(env::current_exe()?.parent().context("the program has a folder")?.to_path_buf())
}

/// A program by its name; the reason where it is not to be had.
///
/// `version` says which versions cargo may install where the program is missing. A test of the harness installs
/// nothing.
pub(crate) fn find(name: &str, version: Option<&str>, size: Size) -> Result<Result<PathBuf, String>> {
    let path = env::var_os("PATH").unwrap_or_default();
    if let Some(found) = env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file()) {
        return Ok(Ok(found));
    }
    let Some(version) = version else { return Ok(Err("not in PATH".to_owned())) };
    let root = folder()?.parent().context("the program's folder has a parent")?.join("peers");
    let installed = root.join("bin").join(name);
    if installed.is_file() {
        return Ok(Ok(installed));
    }
    if size.quick {
        return Ok(Err("not in PATH, and --quick installs nothing".to_owned()));
    }
    println!("{name} is not in PATH: cargo installs version {version} of it in {}", root.display());
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["install", "--quiet", "--locked", name, "--version", version, "--root"]).arg(&root);
    let status = cargo.status().context("cargo")?;
    Ok(if status.success() && installed.is_file() {
        Ok(installed)
    } else {
        Err(format!("not in PATH, and cargo could not install it ({status})"))
    })
}

/// The first line that a program tells about its version.
pub(crate) fn version(program: &Path) -> String {
    // mawk knows only the second.
    let ways: [&[&str]; 2] = [&["--version"], &["-W", "version"]];
    let told = ways.into_iter().find_map(|way| {
        let output = Command::new(program).args(way).stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().next().filter(|_| output.status.success())?;
        Some(line.trim().to_owned())
    });
    told.unwrap_or_else(|| format!("{} of unknown version", program.display()))
}
