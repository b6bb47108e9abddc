//! Programs that are started and measured: our command, and those of others that do the same work.

use std::env;
use std::fs;
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

/// A program of the system.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Where programs are installed that are measured beside ours: `target/peers`.
fn peers() -> Result<PathBuf> {
    Ok(folder()?.parent().context("the program's folder has a parent")?.join("peers"))
}

/// A program of a crate; the reason where it is not to be had.
///
/// `version` says which versions cargo may install where the program is missing. A test of the harness installs
/// nothing.
pub(crate) fn of_crate(
    name: &str,
    version: &str,
    program: &str,
    size: Size,
) -> Result<Result<PathBuf, String>> {
    let root = peers()?;
    let installed = root.join("bin").join(program);
    if installed.is_file() {
        return Ok(Ok(installed));
    }
    if let Some(found) = in_path(program) {
        return Ok(Ok(found));
    }
    if size.quick {
        return Ok(Err("not in PATH, and --quick installs nothing".to_owned()));
    }
    println!("{program} is not in PATH: cargo installs {name} {version} in {}", root.display());
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["install", "--quiet", "--locked", name, "--version", version, "--root"]).arg(&root);
    let status = cargo.status().context("cargo")?;
    Ok(if status.success() && installed.is_file() {
        Ok(installed)
    } else {
        Err(format!("not in PATH, and cargo could not install it ({status})"))
    })
}

/// The version of a program that [`of_crate`] has found: as cargo has noted it, since not every program prints one.
pub(crate) fn crate_version(name: &str, program: &Path) -> String {
    let noted =
        peers().and_then(|root| Ok(fs::read_to_string(root.join(".crates.toml"))?)).unwrap_or_default();
    let in_peers = peers().is_ok_and(|root| program.starts_with(root));
    let line = noted.lines().find_map(|line| line.strip_prefix('"')?.strip_prefix(name)?.strip_prefix(' '));
    match line.and_then(|rest| rest.split(' ').next()).filter(|_| in_peers) {
        Some(version) => format!("{name} {version}"),
        None => version(program),
    }
}

/// The Python of a virtual environment that has a package; the reason where it is not to be had.
///
/// The environment is the one that `cargo xtask peers` makes.
pub(crate) fn with_python(package: &str, size: Size) -> Result<Result<PathBuf, String>> {
    let folder = peers()?.join("python");
    let python = folder.join("bin").join("python");
    let succeeds = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    let imports = || {
        let mut import = Command::new(&python);
        import.args(["-c", &format!("import {package}")]).stderr(Stdio::null());
        succeeds(&mut import)
    };
    if imports() {
        return Ok(Ok(python));
    }
    if size.quick {
        return Ok(Err(format!("not in {}, and --quick installs nothing", folder.display())));
    }
    println!("Python's {package} is missing: pip installs it in {}", folder.display());
    let pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"];
    if !succeeds(Command::new(&python).args(pip).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()))
    {
        succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
    }
    succeeds(Command::new(&python).args(pip).args(["install", package]));
    Ok(if imports() { Ok(python) } else { Err(format!("pip could not install it in {}", folder.display())) })
}

/// The version of a package that [`with_python`] has found.
pub(crate) fn python_version(python: &Path, package: &str) -> String {
    let script = format!("import {package}; print({package}.__version__)");
    let output = Command::new(python).args(["-c", &script]).output();
    let text = output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    format!("{package} {}", if text.is_empty() { "of unknown version" } else { text.trim() })
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
