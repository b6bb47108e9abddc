//! `mayhap man`: manual pages.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::YES;
use crate::args::Cli;

/// Write manual pages to a folder
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder; it must exist
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    clap_mangen::generate_to(Cli::command(), &args.folder)
        .with_context(|| format!("{}: cannot write manual pages", args.folder.display()))?;
    Ok(YES)
}
