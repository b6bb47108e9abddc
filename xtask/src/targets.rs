//! The library on machines that are not this one: 32-bit, ARM, big-endian, the browser's.
//!
//! Each needs a standard library for the target (rustup fetches it), and some a linker and an emulator.
//! What is missing is named and skipped: it is no fault of the code.

use std::path::Path;
use std::process::{Command, Stdio};

/// One foreign machine.
struct Target {
    name: &'static str,
    /// What it shows.
    why: &'static str,
    /// Programs beside cargo, with the Debian package that brings each.
    programs: &'static [(&'static str, &'static str)],
    env: &'static [(&'static str, &'static str)],
    /// The cargo command, without the target.
    command: &'static [&'static str],
}

const TESTS: &[&str] = &[
    "test",
    "-q",
    "-p",
    "mayhap",
    "--all-features",
    "--lib",
    "--test",
    "conformance",
    "--test",
    "golden",
    "--test",
    "worked_examples",
];

static TARGETS: &[Target] = &[
    Target { name: "i686-unknown-linux-musl", why: "32-bit sizes", programs: &[], env: &[], command: TESTS },
    Target {
        name: "aarch64-unknown-linux-gnu",
        why: "the NEON kernels",
        programs: &[("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"), ("qemu-aarch64", "qemu-user")],
        env: &[
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
        ],
        command: TESTS,
    },
    Target {
        name: "s390x-unknown-linux-gnu",
        why: "big-endian words",
        programs: &[("s390x-linux-gnu-gcc", "gcc-s390x-linux-gnu"), ("qemu-s390x", "qemu-user")],
        env: &[
            ("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER", "s390x-linux-gnu-gcc"),
            ("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER", "qemu-s390x -L /usr/s390x-linux-gnu"),
        ],
        command: TESTS,
    },
    Target {
        name: "wasm32-unknown-unknown",
        why: "the browser (compiled only)",
        programs: &[],
        env: &[],
        command: &["check", "-q", "-p", "mayhap", "--all-features"],
    },
    Target {
        name: "wasm32-unknown-unknown",
        why: "no standard library (compiled only)",
        programs: &[],
        env: &[],
        command: &["check", "-q", "-p", "mayhap", "--no-default-features", "--features", "serde"],
    },
];

/// Tests the library on every foreign machine that can be had here.
///
/// # Errors
///
/// The command that failed.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    TARGETS.iter().try_for_each(|target| target.check(root))
}

impl Target {
    fn check(&self, root: &Path) -> Result<(), String> {
        let Self { name, why, .. } = self;
        if let Some(missing) = self.missing() {
            println!("  {name} ({why}): skipped: {missing}");
            return Ok(());
        }
        println!("  {name} ({why})");
        let status = Command::new("cargo")
            .args(self.command)
            .args(["--target", name])
            .envs(self.env.iter().copied())
            .current_dir(root)
            .status()
            .map_err(|error| format!("cargo did not start: {error}"))?;
        let line = || format!("cargo {} --target {name}", self.command.join(" "));
        if status.success() { Ok(()) } else { Err(format!("`{}` failed", line())) }
    }

    fn missing(&self) -> Option<String> {
        for (program, package) in self.programs {
            if !answers(program, &["--version"]) {
                return Some(format!("there is no {program}; apt install {package}"));
            }
        }
        (!answers("rustup", &["target", "add", self.name]))
            .then(|| format!("rustup target add {} did not work", self.name))
    }
}

fn answers(program: &str, args: &[&str]) -> bool {
    let silent = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    silent.is_ok_and(|status| status.success())
}
