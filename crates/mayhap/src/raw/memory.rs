//! A filter's own memory: whole words from a cache line's start on, zeroed, given by the system when they are
//! first touched.
//!
//! It is here, among the unsafe code, because reading it is the first step of every question: the start and the
//! length lie in two fields, where a boxed slice or a map would be matched, checked and cast for every key.

use alloc::alloc::{alloc_zeroed, dealloc, realloc};
use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;

/// Bytes of a cache line.
const LINE: usize = 64;

/// From this many bytes on, huge pages are asked for: two of them, so that at least one fits whatever the
/// alignment.
#[cfg(all(feature = "std", target_os = "linux"))]
const HUGE_FROM: usize = 4 << 20;

/// The bytes of all maps that memories hold now: no allocator counts them. For tests.
#[cfg(feature = "internals")]
static MAPPED: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

/// The bytes that filters of this process hold beside what the allocator gave them.
#[cfg(feature = "internals")]
#[must_use]
pub fn mapped_bytes() -> usize {
    MAPPED.load(core::sync::atomic::Ordering::Relaxed)
}

/// Notes that a map of `before` bytes has `now` bytes.
#[cfg(all(feature = "std", target_os = "linux"))]
fn note_map(before: usize, now: usize) {
    #[cfg(feature = "internals")]
    {
        MAPPED.fetch_add(now, core::sync::atomic::Ordering::Relaxed);
        MAPPED.fetch_sub(before, core::sync::atomic::Ordering::Relaxed);
    }
    #[cfg(not(feature = "internals"))]
    let _ = (before, now);
}

/// Zeroed words of one's own.
pub(crate) struct Memory {
    /// The first of `len` initialised words, valid and in place as long as this lives.
    start: NonNull<u64>,
    len: usize,
    source: Source,
}

enum Source {
    /// Nothing: there are no words.
    None,
    /// The allocator, with the [`layout`] of so many words.
    Heap { words: usize },
    /// The system. The map is held so that it ends with the memory.
    #[cfg(all(feature = "std", target_os = "linux"))]
    Map { held: memmap2::MmapMut },
}

// SAFETY: the words are owned like those of a box, and nothing about them belongs to a thread.
unsafe impl Send for Memory {}
// SAFETY: through a shared reference they are only read.
unsafe impl Sync for Memory {}

/// What the allocator is asked for; `None` if no allocator could grant it.
fn layout(words: usize) -> Option<Layout> {
    Layout::from_size_align(words.checked_mul(8)?, LINE).ok()
}

impl Memory {
    /// So many words, all zero; `None` if they are not granted.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        let layout = layout(len)?;
        if len == 0 {
            return Some(Self::default());
        }
        #[cfg(all(feature = "std", target_os = "linux"))]
        if layout.size() >= HUGE_FROM {
            let mut map = memmap2::MmapMut::map_anon(layout.size()).ok()?;
            // A wish, not a need: a kernel without huge pages serves small ones.
            let _ = map.advise(memmap2::Advice::HugePage);
            note_map(0, map.len());
            // A map starts on a page, so on a cache line, and moves only if it is told to.
            let start = NonNull::new(map.as_mut_ptr().cast())?;
            return Some(Self { start, len, source: Source::Map { held: map } });
        }
        // SAFETY: the layout's size is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }.cast())?;
        Some(Self { start, len, source: Source::Heap { words: len } })
    }

    /// The words.
    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[u64] {
        // SAFETY: `start` and `len` are what they say, and the borrow of `self` keeps writers away.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The words, to be written.
    #[inline(always)]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u64] {
        // SAFETY: as above; the borrow is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Forgets all words behind the first `len` and gives their memory back. What the system gave stays where it is; what the
    /// allocator gave may move. If it is not taken back, it stays with the rest.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        if len == 0 {
            *self = Self::default();
            return;
        }
        self.len = len;
        match &mut self.source {
            Source::None => {}
            Source::Heap { words } => {
                let Some(old) = layout(*words) else { return };
                // SAFETY: it was allocated with this layout, and the new size is neither 0 nor larger than the old one. The
                // borrow is exclusive, so that nobody has a reference to the words, which may move.
                let start = unsafe { realloc(self.start.as_ptr().cast(), old, len * 8) };
                if let Some(start) = NonNull::new(start.cast()) {
                    (self.start, *words) = (start, len);
                }
            }
            #[cfg(all(feature = "std", target_os = "linux"))]
            Source::Map { held } => {
                let before = held.len();
                // SAFETY: the map becomes shorter and does not move, and what is cut off is behind all words.
                if unsafe { held.remap(len * 8, memmap2::RemapOptions::new()) }.is_ok() {
                    note_map(before, held.len());
                }
            }
        }
    }

    /// Gives back words that are no longer needed, as far as they fill huge pages and came from the system: afterwards
    /// those are 0. The others stay as they are.
    pub(crate) fn give_back(&mut self, words: core::ops::Range<usize>) {
        #[cfg(all(feature = "std", target_os = "linux"))]
        if let Source::Map { held } = &self.source {
            const HUGE: usize = 2 << 20;
            let first = self.start.as_ptr().addr();
            let from = (first + 8 * words.start.min(self.len)).next_multiple_of(HUGE);
            let to = (first + 8 * words.end.min(self.len)) / HUGE * HUGE;
            if from < to {
                // SAFETY: the range lies in the map and begins with a page; nobody has a reference to its words, since this one
                // is exclusive; private memory reads as zeros afterwards, which is a number like any other. If the system
                // refuses, the words stay.
                let _ = unsafe {
                    held.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, from - first, to - from)
                };
            }
        }
        #[cfg(not(all(feature = "std", target_os = "linux")))]
        let _ = words;
    }
}

/// No words.
impl Default for Memory {
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0, source: Source::None }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        #[cfg(all(feature = "std", target_os = "linux"))]
        if let Source::Map { held } = &self.source {
            note_map(held.len(), 0);
        }
        if let Source::Heap { words } = self.source
            && let Some(layout) = layout(words)
        {
            // SAFETY: it was allocated with this layout, and this is its end.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) }
        }
    }
}

/// Parts of a memory with different holders; each may write.
#[cfg(feature = "std")]
pub(crate) struct MemoryPart {
    /// The first of `len` words that belong to this part only.
    start: NonNull<u64>,
    len: usize,
    /// Keeps the words where they are. Nothing reads or writes through it as long as there are parts.
    whole: alloc::sync::Arc<Memory>,
}

// SAFETY: the words of a part are owned like those of a box.
#[cfg(feature = "std")]
unsafe impl Send for MemoryPart {}

#[cfg(feature = "std")]
impl MemoryPart {
    /// The words of this part.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u64] {
        // SAFETY: the words lie in memory that lives as long as `whole`, and no other part has them.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(feature = "std")]
impl Memory {
    /// Parts of so many words, in order; the last one may be shorter.
    pub(crate) fn split(self, words: usize) -> alloc::vec::Vec<MemoryPart> {
        let (first, end) = (self.start, self.len);
        let whole = alloc::sync::Arc::new(self);
        let part = |from: usize| {
            let len = words.min(end - from);
            // SAFETY: `from` is below the number of words.
            MemoryPart { start: unsafe { first.add(from) }, len, whole: whole.clone() }
        };
        (0..end).step_by(words.max(1)).map(part).collect()
    }

    /// The memory that was split, from all its parts.
    ///
    /// # Panics
    /// If there is no part, or another one is still held.
    pub(crate) fn join(parts: impl IntoIterator<Item = MemoryPart>) -> Self {
        let last = parts.into_iter().map(|part| part.whole).last().expect("a part");
        alloc::sync::Arc::into_inner(last).expect("all parts")
    }
}

/// The same memory, written by many threads at once. Nobody can read it as plain words meanwhile, since it has
/// no such method.
pub(crate) struct AtomicMemory(Memory);

impl AtomicMemory {
    /// The words.
    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[AtomicU64] {
        // SAFETY: an atomic has the size and bits of its integer, a cache line's start is aligned for both,
        // and as long as this lives every access to the words goes through here.
        unsafe { core::slice::from_raw_parts(self.0.start.as_ptr().cast(), self.0.len) }
    }

    /// Back to plain words.
    pub(crate) fn into_inner(self) -> Memory {
        self.0
    }
}

impl From<Memory> for AtomicMemory {
    fn from(memory: Memory) -> Self {
        Self(memory)
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    fn parts_are_written_apart_and_joined() {
        let large = if cfg!(miri) { 2000 } else { 1 << 20 };
        for (len, words) in [(1, 1), (10, 3), (1000, 999), (large, large / 4)] {
            let memory = Memory::zeroed(len).unwrap();
            let address = memory.as_slice().as_ptr().addr();
            let mut parts = memory.split(words);
            assert_eq!(parts.len(), len.div_ceil(words));
            std::thread::scope(|scope| {
                for (i, part) in parts.iter_mut().enumerate() {
                    scope.spawn(move || part.as_mut_slice().fill(i as u64));
                }
            });
            let memory = Memory::join(parts);
            assert_eq!(memory.as_slice().as_ptr().addr(), address);
            assert!(memory.as_slice().iter().enumerate().all(|(i, &word)| word == (i / words) as u64));
        }
    }

    #[test]
    fn what_is_cut_off_is_forgotten() {
        // Miri knows no huge pages.
        for len in if cfg!(miri) { [100, 1000] } else { [100, 1 << 20] } {
            let mut memory = Memory::zeroed(len).unwrap();
            memory.as_mut_slice().fill(7);
            for (asked, left) in [(len + 1, len), (50, 50), (60, 50), (0, 0)] {
                memory.truncate(asked);
                assert!(memory.as_slice().len() == left && memory.as_slice().iter().all(|&word| word == 7));
                assert!(memory.as_slice().as_ptr().addr().is_multiple_of(LINE) || left == 0);
                let held = match &memory.source {
                    Source::None => 0,
                    Source::Heap { words } => 8 * words,
                    #[cfg(target_os = "linux")]
                    Source::Map { held } => held.len(),
                };
                assert_eq!(held, 8 * left, "what is cut off is given back");
            }
        }
    }

    #[test]
    fn what_is_given_back_is_zero_or_as_it_was_and_the_rest_stays() {
        for len in if cfg!(miri) { [50, 100] } else { [100, 3 << 20] } {
            let mut memory = Memory::zeroed(len).unwrap();
            memory.as_mut_slice().fill(7);
            let (from, to) = (len / 10, len - len / 10);
            memory.give_back(from..to);
            let words = memory.as_mut_slice();
            assert!(words[..from].iter().chain(&words[to..]).all(|&word| word == 7));
            assert!(words[from..to].iter().all(|&word| word == 7 || word == 0));
            let given = words.iter().filter(|&&word| word == 0).count();
            // 19 MiB lie between, in at least 8 huge pages.
            assert_eq!(given >= 8 << 18, len > 100 && cfg!(target_os = "linux"));
            words.fill(9);
            assert!(words.iter().all(|&word| word == 9));
        }
    }

    #[test]
    #[should_panic(expected = "all parts")]
    fn a_part_that_is_missing_is_noticed() {
        let mut parts = Memory::zeroed(10).unwrap().split(5);
        let _held = parts.pop();
        Memory::join(parts);
    }
}
