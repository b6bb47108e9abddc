//! What can go wrong with a file, with the file's name.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use mayhap::DecodeError;

/// A file could not be read, written or understood.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What was being done, as in "cannot *open*".
        doing: &'static str,
        /// The system's word.
        source: io::Error,
    },
    /// The file is not a filter that this version can read.
    Decode {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// The system has no more memory.
    Memory {
        /// How much it was asked for.
        bytes: u64,
        /// The system's word.
        source: io::Error,
    },
}

impl StoreError {
    /// Wraps the system's word with file and deed.
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.into(), doing, source }
    }

    /// Wraps a decoding error with the file.
    pub(crate) fn decode(path: &Path) -> impl Fn(DecodeError) -> Self {
        move |source| Self::Decode { path: path.into(), source }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, doing, .. } => write!(f, "{}: cannot {doing}", path.display()),
            Self::Decode { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Memory { bytes, .. } => write!(
                f,
                "{bytes} bytes of memory for digests were asked for and not granted; hold fewer in memory"
            ),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::Memory { source, .. } => Some(source),
            // Its text is in ours.
            Self::Decode { source, .. } => source.source(),
        }
    }
}
