//! Comparison of mayhap with its peers and with physical limits: everything in one run, repetitions
//! interleaved, medians shown. Figures of different runs do not compare: the machines are noisy.
//!
//! `cargo xtask bench` runs all; `--quick` at a tiny size, as a test that the harness works.

mod build_file;
mod filters;
mod machine;

use anyhow::{Result, bail};

/// What to run and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) quick: bool,
}

impl Size {
    /// The full number, or a tiny one.
    pub(crate) fn keys(self, full: u64) -> u64 {
        if self.quick { full / 1000 } else { full }
    }

    pub(crate) fn repetitions(self) -> usize {
        if self.quick { 1 } else { 5 }
    }
}

fn main() -> Result<()> {
    let mut size = Size { quick: false };
    let mut wanted = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--quick" => size.quick = true,
            "filters" | "build-file" => wanted.push(argument),
            _ => bail!("unknown argument {argument:?}; there are filters, build-file and --quick"),
        }
    }
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    println!("{}\n", machine::description());
    if runs("filters") {
        filters::run(size)?;
    }
    if runs("build-file") {
        build_file::run(size)?;
    }
    Ok(())
}
