//! The library on machines that are not this one: 32-bit, ARM, big-endian, the browser's.
//!
//! Each needs a standard library for the target, and some a linker, an emulator or node. What is missing is installed: by
//! rustup, and by apt-get on Debian as root. What cannot be had is an error that names the command to run: a machine that is
//! skipped in silence is one on which the library does not work for long.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::cargo::{CLIPPY, Cargo, Output};
use crate::install::{self, Package, exists, runs, succeeds};

/// One foreign machine.
struct Target {
    name: &'static str,
    /// What it shows.
    why: &'static str,
    /// What it takes beside the standard library of the target.
    packages: &'static [Package],
    env: &'static [(&'static str, &'static str)],
    /// The cargo command, without the target.
    command: &'static str,
}

/// The unit tests, all in modules `tests`, and those of the integration tests that are about answers and bytes.
const TESTS: &str = "test -q -p mayhap --all-features --lib --test it -- tests:: all_paths:: conformance:: golden:: worked_examples::";

static TARGETS: &[Target] = &[
    Target { name: "i686-unknown-linux-musl", why: "32-bit sizes", packages: &[], env: &[], command: TESTS },
    Target {
        name: "wasm32-wasip1",
        why: "32-bit sizes without threads: the browser's machine, run by node",
        packages: &[Package {
            brings: "node with WASI",
            name: "nodejs",
            is_here: || runs("node", "--eval=require('node:wasi')"),
        }],
        // Cargo starts the tests of a package in its directory.
        env: &[("CARGO_TARGET_WASM32_WASIP1_RUNNER", "node ../../xtask/wasi.mjs")],
        command: TESTS,
    },
    Target {
        name: "aarch64-unknown-linux-gnu",
        why: "the NEON kernels, emulated",
        packages: &[
            Package {
                brings: "a linker for ARM",
                name: "gcc-aarch64-linux-gnu",
                is_here: || runs("aarch64-linux-gnu-gcc", "--version"),
            },
            Package {
                brings: "the C library for ARM",
                name: "libc6-dev-arm64-cross",
                is_here: || exists("/usr/aarch64-linux-gnu/lib/crt1.o"),
            },
            Package {
                brings: "an emulator of ARM",
                name: "qemu-user",
                is_here: || runs("qemu-aarch64", "--version"),
            },
        ],
        env: &[
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
        ],
        command: TESTS,
    },
    Target {
        name: "aarch64-unknown-linux-gnu",
        why: "lints of what is compiled there only",
        packages: &[],
        env: &[],
        command: "clippy -q -p mayhap --all-features --lib -- -D warnings",
    },
    Target {
        name: "s390x-unknown-linux-gnu",
        why: "big-endian words, emulated",
        packages: &[
            Package {
                brings: "a linker for s390x",
                name: "gcc-s390x-linux-gnu",
                is_here: || runs("s390x-linux-gnu-gcc", "--version"),
            },
            Package {
                brings: "the C library for s390x",
                name: "libc6-dev-s390x-cross",
                is_here: || exists("/usr/s390x-linux-gnu/lib/crt1.o"),
            },
            Package {
                brings: "an emulator of s390x",
                name: "qemu-user",
                is_here: || runs("qemu-s390x", "--version"),
            },
        ],
        env: &[
            ("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER", "s390x-linux-gnu-gcc"),
            ("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER", "qemu-s390x -L /usr/s390x-linux-gnu"),
        ],
        command: TESTS,
    },
    Target {
        name: "wasm32-unknown-unknown",
        why: "the browser (compiled only)",
        packages: &[],
        env: &[],
        command: "check -q -p mayhap --all-features",
    },
    Target {
        name: "wasm32-unknown-unknown",
        why: "no standard library (compiled only)",
        packages: &[],
        env: &[],
        command: "check -q -p mayhap --no-default-features --features serde",
    },
];

/// Tests the library on every foreign machine, after installing what that takes.
///
/// # Errors
///
/// What is missing and cannot be installed here, or the command that failed.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    TARGETS.iter().try_for_each(|target| target.check(root))
}

impl Target {
    fn check(&self, root: &Path) -> Result<(), String> {
        let Self { name, why, .. } = self;
        println!("  {name} ({why})");
        self.ensure(root)?;
        let start = Instant::now();
        self.call().run(root, Output::Live)?;
        println!("  {name}: passed in {:.1} s", start.elapsed().as_secs_f64());
        Ok(())
    }

    fn call(&self) -> Cargo {
        // Behind the subcommand: behind the last word it might be an argument of another program.
        let (subcommand, rest) = self.command.split_once(' ').unwrap_or((self.command, ""));
        let call = Cargo::line(&format!("{subcommand} --target {} {rest}", self.name));
        let call = if subcommand == "clippy" { call.needing(&CLIPPY) } else { call };
        self.env.iter().fold(call, |call, &(name, value)| call.with_env(name, value))
    }

    /// Installs what is missing.
    fn ensure(&self, root: &Path) -> Result<(), String> {
        if !self.has_library(root) {
            println!("  trying `rustup target add {}`", self.name);
            let added = succeeds(Command::new("rustup").args(["target", "add", self.name]).current_dir(root));
            if !added || !self.has_library(root) {
                return Err(self.lacks("its standard library", &format!("rustup target add {}", self.name)));
            }
        }
        let missing = install::packages(self.packages);
        if missing.is_empty() {
            return Ok(());
        }
        let (mut what, mut command) = (Vec::new(), "apt-get install -y".to_owned());
        for package in missing {
            command = format!("{command} {}", package.package.name);
            what.push(package.to_string());
        }
        Err(self.lacks(&what.join("; "), &command))
    }

    /// The error for something that is missing and could not be installed.
    fn lacks(&self, what: &str, command: &str) -> String {
        format!("{} cannot be tested without {what}; to install it: {command}", self.name)
    }

    /// Whether the toolchain has the standard library of the target, wherever it came from.
    fn has_library(&self, root: &Path) -> bool {
        let mut call = Command::new("rustc");
        call.args(["--print", "target-libdir", "--target", self.name]).current_dir(root);
        let folder = call.output().ok().filter(|output| output.status.success());
        folder.is_some_and(|output| exists(String::from_utf8_lossy(&output.stdout).trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_target_can_be_typed() {
        let wasm = TARGETS.iter().find(|target| target.name == "wasm32-wasip1").unwrap();
        assert_eq!(
            wasm.call().to_string(),
            "CARGO_TARGET_WASM32_WASIP1_RUNNER='node ../../xtask/wasi.mjs' cargo test --target wasm32-wasip1 -q \
             -p mayhap --all-features --lib --test it -- tests:: all_paths:: conformance:: golden:: worked_examples::"
        );
    }

    #[test]
    fn a_target_that_cannot_be_had_is_an_error_that_names_the_command() {
        // No toolchain has it, and no rustup can add it.
        let nowhere =
            Target { name: "no-such-machine", why: "nothing", packages: &[], env: &[], command: "check" };
        let error = nowhere.check(&crate::tree::root()).unwrap_err();
        assert_eq!(
            error,
            "no-such-machine cannot be tested without its standard library; to install it: \
             rustup target add no-such-machine"
        );
    }

    #[test]
    fn each_kind_of_machine_runs_the_tests() {
        for name in [
            "i686-unknown-linux-musl",
            "wasm32-wasip1",
            "aarch64-unknown-linux-gnu",
            "s390x-unknown-linux-gnu",
        ] {
            assert!(TARGETS.iter().any(|target| target.name == name && target.command == TESTS), "{name}");
        }
    }
}
