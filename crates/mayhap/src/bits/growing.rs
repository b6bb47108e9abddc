//! Words that come in parts, and are written where they stay.

use super::words::{OutOfMemory, Words};

/// Words at the end of which others are put. What was reserved and never touched takes no memory.
#[derive(Debug, Default)]
pub(crate) struct GrowingWords {
    words: Words,
    used: usize,
}

impl GrowingWords {
    /// None yet, with room for so many. If the room is not granted at once, perhaps it is by and by.
    pub(crate) fn with_room(words: u64) -> Self {
        Self { words: Words::zeroed(words).unwrap_or_default(), used: 0 }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Makes room for so many more, which are zeros.
    fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let needed = self.used + more;
        if self.words.len() < needed {
            let mut longer = Words::zeroed(needed.max(self.words.len() / 2 * 3) as u64)?;
            longer.as_mut_slice()[..self.used].copy_from_slice(&self.words.as_slice()[..self.used]);
            self.words = longer;
        }
        Ok(())
    }

    /// Puts words at the end.
    pub(crate) fn append(&mut self, part: &[u64]) -> Result<(), OutOfMemory> {
        self.reserve(part.len())?;
        self.words.as_mut_slice()[self.used..self.used + part.len()].copy_from_slice(part);
        self.used += part.len();
        Ok(())
    }

    /// Puts so many zeros at the end.
    pub(crate) fn append_zeros(&mut self, zeros: usize) -> Result<(), OutOfMemory> {
        self.reserve(zeros)?;
        self.used += zeros;
        Ok(())
    }

    /// All of them.
    pub(crate) fn finish(mut self) -> Words {
        self.words.truncate(self.used);
        self.words
    }
}
