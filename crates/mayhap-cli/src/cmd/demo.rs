//! demo
use anyhow::Result;
/// Walk
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(_args: &Args) -> Result<u8> {
    Ok(0)
}
