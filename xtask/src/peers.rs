//! The real programs whose filter files we read and write, for the tests that ask them.
//!
//! What is missing is installed where that can be done: Debian packages by root, Python packages into a
//! virtual environment under `target/peers`. What is there is left alone. Tests of peers that are still
//! missing are skipped, and named here; in CI, where nobody would see that, a missing peer is an error.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::install::{self, Package, exists, runs, succeeds};

static PACKAGES: &[Package] = &[
    Package {
        brings: "a Java compiler",
        name: "default-jdk-headless",
        is_here: || runs("javac", "-version"),
    },
    Package { brings: "Guava", name: "libguava-java", is_here: || exists("/usr/share/java/guava.jar") },
    Package { brings: "Go", name: "golang-go", is_here: || runs("go", "version") },
    Package {
        brings: "Go's bits-and-blooms",
        name: "golang-github-willf-bloom-dev",
        is_here: || exists("/usr/share/gocode/src/github.com/bits-and-blooms/bloom"),
    },
    Package {
        brings: "DCSO's bloom",
        name: "golang-github-dcso-bloom-cli",
        is_here: || runs("bloom", "--version"),
    },
    // Python itself comes with it.
    Package {
        brings: "Python's virtual environments",
        name: "python3-venv",
        is_here: || succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])),
    },
];

/// A Python module, and the packages that it takes, separated by spaces.
type Module = (&'static str, &'static str);

/// The versions are those that made the golden files: later ones may hash otherwise.
static MODULES: &[Module] = &[
    ("duckdb", "duckdb"),
    ("pybloom_live", "pybloom-live~=4.0"),
    ("probables", "pyprobables~=0.7"),
    // It gives text to xxhash, which takes only bytes from version 4 on.
    ("pyfusefilter", "pyfusefilter~=1.3 xxhash<4"),
    ("pyroaring", "pyroaring~=1.2"),
    ("rbloom", "rbloom~=1.5"),
];

/// Installs the peers that are missing, without those that are too large for every day.
///
/// # Errors
///
/// In CI: the peers that are missing and cannot be had.
pub(crate) fn usual(root: &Path) -> Result<(), String> {
    ensure(root, false)
}

/// Installs all peers that are missing.
///
/// # Errors
///
/// In CI: the peers that are missing and cannot be had.
pub(crate) fn all(root: &Path) -> Result<(), String> {
    ensure(root, true)
}

fn ensure(root: &Path, with_spark: bool) -> Result<(), String> {
    let folder = root.join("target").join("peers");
    let mut missing: Vec<String> = install::packages(PACKAGES).iter().map(ToString::to_string).collect();
    let python = Python { folder: folder.join("python") };
    missing.extend(python.modules());
    if with_spark {
        missing.extend(spark(&folder.join("spark"), &python));
    }
    if missing.is_empty() {
        println!("  every peer is here");
    }
    let in_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    verdict(&missing, in_ci).map(|notes| print!("{notes}"))
}

/// What it means that some peers are missing: a note outside CI, an error in it.
fn verdict(missing: &[String], in_ci: bool) -> Result<String, String> {
    if in_ci && !missing.is_empty() {
        return Err(format!("in CI every peer must be here; missing: {}", missing.join("; ")));
    }
    Ok(missing.iter().map(|peer| format!("  its tests are skipped: {peer}\n")).collect())
}

/// Our virtual environment.
struct Python {
    folder: PathBuf,
}

impl Python {
    fn call(&self) -> Command {
        Command::new(self.folder.join("bin").join("python"))
    }

    /// Runs pip, which says itself what is wrong; whether it helped is seen by what is there then.
    fn pip<'a>(&self, args: impl IntoIterator<Item = &'a str>) {
        let quiet = ["-m", "pip", "--quiet", "--disable-pip-version-check", "--retries", "2"];
        succeeds(self.call().args(quiet).args(args));
    }

    /// Installs the modules, and says what is missing afterwards.
    fn modules(&self) -> Vec<String> {
        let missing = |why: &str, modules: &[&Module]| {
            modules.iter().map(|(_, package)| format!("Python's {package}: {why}")).collect()
        };
        if !self.is_here() {
            println!("  making a virtual environment: {}", self.folder.display());
            let made = succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&self.folder));
            if !made {
                return missing("there is no virtual environment to put it in", &self.lacking());
            }
        }
        for (_, package) in self.lacking() {
            println!("  installing with pip: {package}");
            // One by one: where one of them has no build for this machine, the others are still had.
            self.pip(["install"].into_iter().chain(package.split(' ')));
        }
        missing("pip could not install it", &self.lacking())
    }

    /// Whether it was made, and to the end: pip is the last that it gets.
    fn is_here(&self) -> bool {
        succeeds(self.call().args(["-m", "pip", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    fn lacking(&self) -> Vec<&'static Module> {
        let import = |module: &str| {
            let mut call = self.call();
            call.arg("-c").arg(format!("import {module}"));
            succeeds(call.stderr(Stdio::null()))
        };
        MODULES.iter().filter(|(module, _)| !import(module)).collect()
    }
}

/// Makes sure of Spark's sketch library, the Guava that Spark brings included, and says if it is missing.
///
/// The whole of Spark is hundreds of megabytes; of the package, only these libraries are kept.
fn spark(folder: &Path, python: &Python) -> Option<String> {
    const ARCHIVES: [&str; 2] = ["spark-sketch_", "guava-"];
    let files = || -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let is_archive = |file: &Path, start: &str| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(start) && name.ends_with(".jar")
    };
    let is_here = || ARCHIVES.iter().all(|start| files().iter().any(|file| is_archive(file, start)));
    if is_here() {
        return None;
    }
    println!("  fetching with pip: pyspark");
    let target = folder.display().to_string();
    let download = "download --no-cache-dir --no-deps --no-binary pyspark pyspark>=4.1 --dest";
    python.pip(download.split(' ').chain([&*target]));
    for package in files().iter().filter(|file| file.extension().is_some_and(|extension| extension == "gz")) {
        let wanted = ARCHIVES.map(|start| format!("*/jars/{start}*.jar"));
        let unpack = ["--strip-components=3", "--wildcards", "-C", &target, "-xzf"];
        succeeds(Command::new("tar").args(unpack).arg(package).args(wanted));
        if let Err(error) = fs::remove_file(package) {
            println!("  {}: {error}", package.display());
        }
    }
    (!is_here()).then(|| "Spark's sketch library (Python package pyspark): pip could not fetch it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_peer_is_an_error_in_ci_only() {
        let missing = ["Go (package golang-go): only root can install it".to_owned()];
        assert_eq!(
            verdict(&missing, false).unwrap(),
            "  its tests are skipped: Go (package golang-go): only root can install it\n"
        );
        assert!(verdict(&missing, true).unwrap_err().ends_with(&missing[0]));
        assert_eq!(verdict(&[], true).unwrap(), "");
    }
}
