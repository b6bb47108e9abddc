//! The checksum of bytes that have not been verified yet.

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use super::bytes::Bytes;
use crate::error::DecodeError;

/// A payload with its stored checksum, shared by everything that was made of it.
///
/// A large file opens by its header alone. Writing a new checksum, or combining the filter with another, would
/// then vouch for unverified bytes. The seal travels with the words, so that the old checksum can be compared first.
pub(crate) struct Seal {
    bytes: Bytes,
    stored: u64,
    /// Whether they were compared, and agreed. What does not agree is compared again each time, which is rare.
    is_whole: AtomicBool,
}

impl Seal {
    /// The seal of these bytes, which must be shared ones: what is written in place has no old state to compare.
    pub(crate) fn new(bytes: Bytes, stored: u64) -> Arc<Self> {
        Arc::new(Self { bytes, stored, is_whole: AtomicBool::new(false) })
    }

    /// Reads all bytes the first time, and remembers what it found.
    pub(crate) fn verify(&self) -> Result<(), DecodeError> {
        if self.is_whole.load(Ordering::Relaxed) {
            return Ok(());
        }
        let computed = xxhash_rust::xxh3::xxh3_64(self.bytes.as_slice());
        if computed != self.stored {
            return Err(DecodeError::Checksum { field: "payload", stored: self.stored, computed });
        }
        self.is_whole.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_whole.load(Ordering::Relaxed) { "Seal(whole)" } else { "Seal(not compared)" })
    }
}
