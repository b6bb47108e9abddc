//! `mayhap completions`: for the shell.

use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;

use crate::{YES, help, report};

/// Print a completion script for a shell
///
/// To have completions in every shell, write the script to
/// ~/.local/share/bash-completion/completions/mayhap (bash), a folder of $fpath as _mayhap (zsh), or
/// ~/.config/fish/completions/mayhap.fish (fish).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap completions bash > mayhap.bash\n  \
mayhap completions zsh > _mayhap\n  mayhap completions fish > mayhap.fish")]
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
    clap_complete::generate(shell, &mut help::command(), "mayhap", &mut script);
    report::stdout().write_all(&script)?;
    Ok(YES)
}
