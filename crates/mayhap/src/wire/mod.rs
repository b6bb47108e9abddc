//! The container of every family: a header of whole pages, the payload, sections. `docs/format.md`
//! describes it byte by byte. Nothing here knows a family.

mod frame;
mod reader;
mod writer;

pub use crate::hash::{HashingProblem, StoredHashing};
pub use frame::{
    EXCEPTIONS, Extent, Flags, Frame, Header, KEY_RULES, LABELS, MAX_HEADER, METADATA, PAGE, PEER_DATA,
    Verify, mark_writing, take_as_writing,
};
pub use reader::Fields;
pub use writer::{Encoded, Params, Summing, Writer};

/// Checksum of all parts of a file.
pub fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}
