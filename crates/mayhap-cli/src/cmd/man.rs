//! `mayhap man`: manual pages.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::output::is_stdout;
use crate::{YES, help};

/// Write manual pages to a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mkdir -p man1 && mayhap man man1")]
pub(crate) struct Args {
    /// The folder; it must exist
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    ensure!(
        !is_stdout(&args.folder),
        "-: there are several pages, which do not fit on standard output; name a folder"
    );
    clap_mangen::generate_to(help::command(), &args.folder)
        .with_context(|| format!("{}: cannot write manual pages", args.folder.display()))?;
    Ok(YES)
}
