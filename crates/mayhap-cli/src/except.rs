//! `--except`: keys that a filter denies exactly, although its bits may admit them.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use mayhap::{AnyFilter, Digest, Hashing, except};

use crate::args::{Common, KeyArgs};
use crate::input::{Buffer, Chunk};
use crate::report;

/// The keys of a file, each with the line that it is first in.
pub(crate) struct Excepted {
    name: String,
    lines: HashMap<Digest, u64, foldhash::fast::RandomState>,
}

impl fmt::Debug for Excepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Excepted({}, {} keys)", self.name, self.lines.len())
    }
}

impl Excepted {
    /// Hashes all keys of a file, as the keys of the filter are.
    pub(crate) fn read(path: &Path, keys: &KeyArgs, hashing: Hashing, common: &Common) -> Result<Self> {
        let inputs = keys.inputs(&[path.to_path_buf()]);
        let selector = keys.selector();
        let progress = common.progress("hashing", &inputs);
        let (mut chunks, mut buffer, mut digests) = (inputs.chunks(), Buffer::default(), Vec::new());
        let mut lines = HashMap::default();
        while let Some(chunk) = chunks.next(buffer)? {
            progress.advance(chunk.bytes.len());
            selector.digests(&chunk, hashing, &mut digests)?;
            for (&digest, line) in digests.iter().zip(chunk.first_record..) {
                lines.entry(digest).or_insert(line);
            }
            buffer = chunk.bytes;
        }
        let name =
            if path == Path::new("-") { "(standard input)".into() } else { path.display().to_string() };
        Ok(Self { name, lines })
    }

    /// A key of the set that is an exception as well is an error: one of the two files is wrong.
    pub(crate) fn refuse(&self, chunk: &Chunk, digests: &[Digest]) -> Result<()> {
        for (index, digest) in digests.iter().enumerate() {
            if let Some(line) = self.lines.get(digest) {
                bail!(
                    "{}: line {line}: the key is also in the set, at {}; it cannot be in and be an exception: take it \
                     out of one of the two",
                    self.name,
                    chunk.place(index),
                );
            }
        }
        Ok(())
    }

    /// All keys.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        self.lines.keys().copied().collect()
    }

    /// The filter that denies them.
    pub(crate) fn except_from(&self, filter: Box<dyn AnyFilter>, common: &Common) -> Box<dyn AnyFilter> {
        let filter = except(filter, self.lines.keys().copied());
        let stored = filter.exceptions().map_or(0, |exceptions| exceptions.keys);
        let given = report::subject(self.lines.len() as u64, "key");
        let why = if filter.can().exact {
            "an exact set denies them by itself".to_string()
        } else {
            format!("{} are stored, {}", report::grouped(stored), report::bytes(16 * stored))
        };
        common.say(format_args!("--except: {given} answered no, exactly; {why}"));
        filter
    }
}

/// Standard input can be read once.
pub(crate) fn check_stdin(except: &Path, files: &[PathBuf]) -> Result<()> {
    let dash = Path::new("-");
    let reads_stdin = files.is_empty() || files.iter().any(|file| file == dash);
    if except == dash && reads_stdin {
        bail!(
            "standard input can be read once, and both the keys and those of --except are to be read from it"
        );
    }
    Ok(())
}
