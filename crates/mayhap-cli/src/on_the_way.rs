//! How many bytes of records are in memory at a time, between the thread that reads them and those that work on them.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Bytes that may be on their way before the reader waits. One chunk may be larger: it goes alone.
const MOST: usize = 32 << 20;

/// The bytes that are on their way from the reader to those who work on them.
#[derive(Debug, Default)]
pub(crate) struct OnTheWay {
    bytes: Mutex<usize>,
    is_less: Condvar,
}

/// Some of those bytes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    bytes: usize,
    of: Arc<OnTheWay>,
}

impl OnTheWay {
    /// Waits until there is room for this many bytes, and takes them.
    pub(crate) fn share(self: &Arc<Self>, bytes: usize) -> Share {
        *self.with_room(bytes) += bytes;
        Share { bytes, of: self.clone() }
    }

    /// Waits until there is room for this many bytes. It stays free, since only the reader takes any.
    pub(crate) fn wait_for(&self, bytes: usize) {
        drop(self.with_room(bytes));
    }

    fn with_room(&self, bytes: usize) -> std::sync::MutexGuard<'_, usize> {
        let lock = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_too_much = |all: &mut usize| *all > 0 && all.saturating_add(bytes) > MOST;
        self.is_less.wait_while(lock, is_too_much).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        *self.of.bytes.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.of.is_less.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_that_is_too_large_goes_alone() {
        let on_the_way = Arc::new(OnTheWay::default());
        let giant = on_the_way.share(100 * MOST);
        let waiting = on_the_way.clone();
        let next = std::thread::spawn(move || drop(waiting.share(1)));
        // It cannot end before the giant is gone. If it did, this would be noticed most of the time only.
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!next.is_finished());
        drop(giant);
        next.join().unwrap();
        // Small ones go together, up to the limit.
        let small: Vec<Share> = (0..32).map(|_| on_the_way.share(MOST / 32)).collect();
        drop(small);
        on_the_way.wait_for(usize::MAX);
    }
}
