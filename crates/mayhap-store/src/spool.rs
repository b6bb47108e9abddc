//! Digests put aside until their number is known.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};

use mayhap::Digest;

/// So many digests stay in memory: 16 MiB.
const IN_MEMORY: usize = 1 << 20;

/// Digests are handed out in batches of so many.
const BATCH: usize = 1 << 15;

/// A list of digests that spills to a temporary file without a name, 16 bytes each, when it gets
/// long. The file is gone with the process, however that ends.
#[derive(Debug, Default)]
pub struct Spool {
    recent: Vec<Digest>,
    spilled: Option<BufWriter<File>>,
    len: u64,
}

impl Spool {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many digests were put in.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends digests.
    ///
    /// # Errors
    /// What the system says about the temporary file.
    pub fn push(&mut self, digests: &[Digest]) -> io::Result<()> {
        self.recent.extend_from_slice(digests);
        self.len += digests.len() as u64;
        if self.recent.len() >= IN_MEMORY {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(BufWriter::with_capacity(1 << 16, tempfile::tempfile()?)),
        };
        for digest in self.recent.drain(..) {
            spilled.write_all(&digest.a.to_le_bytes())?;
            spilled.write_all(&digest.b.to_le_bytes())?;
        }
        Ok(())
    }

    /// Hands out all digests in the order in which they came, batch by batch.
    ///
    /// # Errors
    /// What the system says about the temporary file, or what `each` says.
    pub fn drain<E: From<io::Error>>(
        self,
        mut each: impl FnMut(&[Digest]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(spilled) = self.spilled {
            let mut file = spilled.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            let mut bytes = vec![0; 16 * BATCH];
            let mut digests = Vec::with_capacity(BATCH);
            let mut left = self.len - self.recent.len() as u64;
            while left > 0 {
                let count = left.min(BATCH as u64) as usize;
                let bytes = &mut bytes[..16 * count];
                file.read_exact(bytes)?;
                digests.clear();
                digests.extend(bytes.chunks_exact(16).map(|digest| {
                    Digest::from_u128(u128::from_le_bytes(digest.try_into().expect("chunks of 16")))
                }));
                each(&digests)?;
                left -= count as u64;
            }
        }
        self.recent.chunks(BATCH).try_for_each(each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_come_back_in_order_from_memory_and_from_the_file() {
        for count in [0, 1, 1000, IN_MEMORY as u64 + 7, 2 * IN_MEMORY as u64 + 12_345] {
            let mut spool = Spool::new();
            let digest = |i: u64| Digest { a: i, b: !i };
            for i in (0..count).step_by(1000) {
                let batch: Vec<Digest> = (i..count.min(i + 1000)).map(digest).collect();
                spool.push(&batch).unwrap();
            }
            assert_eq!(spool.len(), count);
            let mut next = 0;
            spool
                .drain(|batch| {
                    for &found in batch {
                        assert_eq!(found, digest(next));
                        next += 1;
                    }
                    io::Result::Ok(())
                })
                .unwrap();
            assert_eq!(next, count);
        }
    }
}
