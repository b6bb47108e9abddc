//! Storage without opinions: bytes, words, bits, cells. Nothing here knows a key or a filter.

mod atomic;
mod bitmap;
mod bytes;
mod cells;
mod counters;
mod overflow;
mod resize;
mod words;

pub use atomic::AtomicWords;
pub use bitmap::{Bitmap, Ones, OutOfRange, Ranked};
pub use bytes::{Bytes, ExclusiveBytes};
pub use cells::Cells;
pub use counters::Width;
pub(crate) use counters::{Counters, CountersMut, CountersRef};
pub use resize::{overlap, resized};
pub use words::{OutOfMemory, Words, words_for};
