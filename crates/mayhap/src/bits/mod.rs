//! Storage without opinions: bytes, words, bits, cells. Nothing here knows a key or a filter.

mod atomic;
mod bitmap;
mod buckets;
mod bytes;
mod cells;
mod resize;
mod words;

pub use atomic::AtomicWords;
pub use bitmap::{Bitmap, Ones, OutOfRange, Ranked};
pub(crate) use buckets::{Buckets, Lanes, SLOTS, bucket_bits};
pub use bytes::{Bytes, ExclusiveBytes};
pub use cells::Cells;
pub use resize::{overlap, resized};
pub use words::{OutOfMemory, Words, words_for};
