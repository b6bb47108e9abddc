//! `mayhap completions`: for the shell.

use std::io::Write;

use anyhow::Result;
use clap::{CommandFactory, ValueEnum};

use crate::args::Cli;
use crate::{YES, report};

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  mayhap completions bash > ~/.local/share/bash-completion/completions/mayhap"
)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    // Into memory first: the generator panics when a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mayhap", &mut script);
    report::stdout().write_all(&script)?;
    Ok(YES)
}
