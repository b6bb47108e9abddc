//! Programs that tests need beside cargo: whether they are here, and Debian packages that bring them.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Something that a Debian package brings, and that may as well have come from elsewhere.
pub(crate) struct Package {
    /// What it is for.
    pub(crate) brings: &'static str,
    /// Its name for apt-get.
    pub(crate) name: &'static str,
    /// Whether what it brings is here.
    pub(crate) is_here: fn() -> bool,
}

/// A package that is not here and could not be installed.
pub(crate) struct Missing {
    pub(crate) package: &'static Package,
    why: &'static str,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { package: Package { brings, name, .. }, why } = self;
        write!(f, "{brings} (package {name}): {why}")
    }
}

/// Installs those packages that are not here, on Debian as root, and says what is missing afterwards.
pub(crate) fn packages(wanted: &'static [Package]) -> Vec<Missing> {
    let lacking = || wanted.iter().filter(|package| !(package.is_here)());
    let names: Vec<_> = lacking().map(|package| package.name).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let why = if !runs("apt-get", "--version") {
        "there is no apt-get here"
    } else if !is_root() {
        "only root can install it"
    } else {
        println!("  installing with apt-get: {}", names.join(" "));
        // Lists that are there are mostly good enough, and asking for new ones takes longer than some packages.
        let _ = apt("install", &names) || apt("update", &[]) && apt("install", &names);
        "apt-get could not install it"
    };
    lacking().map(|package| Missing { package, why }).collect()
}

fn apt(command: &str, names: &[&str]) -> bool {
    let options =
        ["-qq", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=120"];
    let mut call = Command::new("apt-get");
    call.env("DEBIAN_FRONTEND", "noninteractive").arg(command).args(options).args(names);
    succeeds(call.stdout(Stdio::null()))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Whether there is such a file or directory.
pub(crate) fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

/// Whether a program runs with this argument. What it says is not shown.
pub(crate) fn runs(program: &str, argument: &str) -> bool {
    succeeds(Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()))
}

/// Whether a command starts and ends well.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_here_is_left_alone_and_what_cannot_be_had_is_named() {
        static HERE: &[Package] = &[Package { brings: "a shell", name: "no-such-package", is_here: || true }];
        assert!(packages(HERE).is_empty());
        static PACKAGE: Package = Package { brings: "Go", name: "golang-go", is_here: || false };
        let missing = Missing { package: &PACKAGE, why: "only root can install it" };
        assert_eq!(missing.to_string(), "Go (package golang-go): only root can install it");
    }

    #[test]
    fn a_program_that_is_not_there_does_not_run() {
        assert!(!runs("no-such-program-anywhere", "--version"));
        assert!(runs("cargo", "--version"));
    }
}
