//! `mayhap completions`: for the shell.

use anyhow::Result;
use clap::{CommandFactory, ValueEnum};

use crate::YES;
use crate::args::Cli;

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
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(YES)
}
