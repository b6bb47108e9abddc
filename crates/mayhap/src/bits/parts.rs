//! Words in parts, each of which one thread at a time may write.

use alloc::vec::Vec;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::words::Words;
use crate::raw::memory::{Memory, MemoryPart};

/// Words that several threads fill without atomic operations: a thread that has gathered enough to do in a part takes it
/// for as long as that lasts.
pub(crate) struct Parts(Vec<Mutex<MemoryPart>>);

impl Parts {
    /// Parts of so many words; the last one may be shorter.
    pub(crate) fn of(words: Words, words_per_part: usize) -> Self {
        Self(words.into_memory().split(words_per_part).into_iter().map(Mutex::new).collect())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Works on one part, when no other thread does.
    pub(crate) fn with<R>(&self, part: usize, work: impl FnOnce(&mut [u64]) -> R) -> R {
        // A thread that panicked has set whole bits or none, as every insert does.
        let mut part: MutexGuard<'_, MemoryPart> =
            self.0[part].lock().unwrap_or_else(PoisonError::into_inner);
        work(part.as_mut_slice())
    }

    /// The words again.
    pub(crate) fn joined(self) -> Words {
        let part = |part: Mutex<MemoryPart>| part.into_inner().unwrap_or_else(PoisonError::into_inner);
        Memory::join(self.0.into_iter().map(part)).into()
    }
}
