//! An output that is also an input would be read as it is written, without an end.

use std::fs::Metadata;
use std::path::Path;

use anyhow::{Result, bail};

use crate::input::{self, Inputs};
use crate::report;

/// Refuses to write to standard output what is read from the same file: one with records, if any are read, or another one.
pub(crate) fn must_not_be_output<'a>(
    inputs: Option<&'a Inputs>,
    others: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    let Ok(output) = report::stdout_file().and_then(|file| file.metadata()) else { return Ok(()) };
    let inputs = inputs.into_iter().flat_map(Inputs::sources);
    let inputs = inputs.map(|path| (input::name_of(path), input::metadata_of(path)));
    let others = others.into_iter().map(|path| (path.display().to_string(), path.metadata()));
    for (name, metadata) in inputs.chain(others) {
        if metadata.is_ok_and(|metadata| are_one(&metadata, &output)) {
            let emptied = if output.len() == 0 { ", and the shell has emptied it" } else { "" };
            bail!("{name}: is the output too{emptied}; write to another file");
        }
    }
    Ok(())
}

/// Refuses to change a filter file whose bytes are read as records.
pub(crate) fn must_not_be_input(inputs: &Inputs, filter: &Path) -> Result<()> {
    let Ok(changed) = filter.metadata() else { return Ok(()) };
    let is_changed =
        |path: &&Path| input::metadata_of(path).is_ok_and(|metadata| are_one(&metadata, &changed));
    match inputs.sources().into_iter().find(is_changed) {
        Some(path) => bail!("{}: is the filter too; name the file with the keys", input::name_of(path)),
        None => Ok(()),
    }
}

#[cfg(unix)]
fn are_one(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn are_one(_: &Metadata, _: &Metadata) -> bool {
    false
}
