//! Files that commands write, and what they may replace: a filter another filter, a picture another picture, and anything
//! else only if the user says so. A secret is never replaced.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Result, bail};
use mayhap::interop::{Format, HashRule, Reading};
use mayhap_store::{Access, read_bytes, write_bytes};

use crate::formats::{FileFormat, shown, start_of};
use crate::{report, secret};

/// Where a filter goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// A file, or `-` for standard output.
    pub(crate) path: &'a Path,
    /// Whether a file that is not a filter may be replaced.
    pub(crate) force: bool,
}

/// Whether a path means standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

impl Target<'_> {
    /// Refuses to write a filter of a format over a file that is something else.
    pub(crate) fn must_take(&self, format: FileFormat) -> Result<()> {
        must_be_replaceable(self.path, self.force, "a filter", |path| is_filter(path, format))
    }
}

/// Writes an SVG image to a file, or to standard output for `-`.
pub(crate) fn write_picture(path: &Path, svg: &str, force: bool) -> Result<()> {
    if is_stdout(path) {
        return Ok(report::stdout().write_all(svg.as_bytes())?);
    }
    must_take_picture(path, force)?;
    Ok(write_bytes(path, svg.as_bytes())?)
}

/// Refuses to write an SVG image over a file that is something else.
pub(crate) fn must_take_picture(path: &Path, force: bool) -> Result<()> {
    must_be_replaceable(path, force, "an SVG image", is_picture)
}

fn must_be_replaceable(
    path: &Path,
    force: bool,
    kind: &str,
    is_of_kind: impl FnOnce(&Path) -> bool,
) -> Result<()> {
    if is_stdout(path) {
        return Ok(());
    }
    secret::must_not_be_one(path)?;
    // Devices and pipes are written to, and nothing is lost with an empty file.
    let has_contents = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
    if has_contents && !force && !is_of_kind(path) {
        bail!(
            "{}: this file exists and is not {kind}; write to another file, or replace it with --force",
            path.display()
        );
    }
    Ok(())
}

/// Whether a file is a filter of ours, of another format that shows, or of the one that is to be written. A Parquet file holds
/// more than its filters.
fn is_filter(path: &Path, format: FileFormat) -> bool {
    let Some(start) = start_of(path) else { return false };
    match (shown(path, start), format) {
        (Ok(Some(found)), _) => found != FileFormat::Parquet,
        (Ok(None), FileFormat::Foreign(format)) => reads_as(path, format),
        (Ok(None), _) => false,
        // Of one of several formats.
        (Err(_), _) => true,
    }
}

fn reads_as(path: &Path, format: &Format) -> bool {
    let hash = HashRule::ALL.into_iter().find(|rule| rule.format() == format.name);
    let reading = Reading { hash, ..Reading::default() };
    read_bytes(path, Access::Map).is_ok_and(|bytes| format.read(bytes, &reading).is_ok())
}

/// Whether a file begins as SVG images do, perhaps behind a declaration and comments.
fn is_picture(path: &Path) -> bool {
    const START: u64 = 4096;
    let mut start = Vec::new();
    let is_read = File::open(path).is_ok_and(|file| file.take(START).read_to_end(&mut start).is_ok());
    let text = String::from_utf8_lossy(&start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let is_xml = ["<?xml", "<!--", "<!DOCTYPE svg"].iter().any(|start| text.starts_with(start));
    is_read && (text.starts_with("<svg") || (is_xml && text.contains("<svg")))
}
