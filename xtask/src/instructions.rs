//! The instructions per key that the benchmarks count, compared with their committed table. That takes valgrind.

use std::path::Path;

use crate::cargo::{Cargo, Output};
use crate::install::{self, Package, runs};

static VALGRIND: [Package; 1] =
    [Package { brings: "valgrind", name: "valgrind", is_here: || runs("valgrind", "--version") }];

/// Counts and compares.
///
/// # Errors
///
/// The numbers that have risen, or that valgrind is missing.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    if let [missing, ..] = &install::packages(&VALGRIND)[..] {
        return Err(missing.to_string());
    }
    Cargo::line("run --release -q -p mayhap-bench -- instructions --check").run(root, Output::Live)
}
