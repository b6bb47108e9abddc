//! Storage without opinions: bytes, words, bits, cells. Nothing here knows a key or a filter.

mod atomic;
mod bitmap;
mod buckets;
mod bytes;
mod cells;
mod counted_buckets;
mod counters;
mod growing;
mod overflow;
#[cfg(feature = "std")]
mod parts;
mod remainders;
mod resize;
mod runs;
mod scatter;
mod seal;
mod windows;
mod words;

pub use atomic::AtomicWords;
pub use bitmap::{Bitmap, Ones, OutOfRange, Ranked};
pub(crate) use buckets::{Buckets, Lanes, SLOTS, bucket_bits};
pub use bytes::{Bytes, ExclusiveBytes};
pub use cells::Cells;
pub(crate) use counted_buckets::{BucketsMut, BucketsRef, CountedBuckets};
pub use counters::Width;
pub(crate) use counters::{Counters, CountersMut, CountersRef};
pub(crate) use growing::GrowingWords;
#[cfg(feature = "std")]
pub(crate) use parts::Parts;
pub(crate) use remainders::{LINE_BITS, Remainders};
pub use resize::{overlap, resized};
pub(crate) use runs::{Aim, BLOCK, Filler, Met, OVERHEAD, Runs, Spot, is_first_part};
pub(crate) use scatter::{Scatter, region_words, set_in_region};
pub use windows::BEHIND;
pub(crate) use windows::{WINDOW, Windows, WindowsMut, WindowsRef};
pub use words::{OutOfMemory, Words, words_for};
