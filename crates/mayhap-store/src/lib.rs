//! Filter files for every door: open by map or by read, lock, replace atomically, update in place.
//!
//! - [`open`] a filter. A map of up to 256 MiB is verified; of a 10 GiB file it reads one page and the pages that the
//!   questions touch. A read takes all of it and checks all of it. [`Opened::is_verified`] tells.
//! - [`write()`] a filter. The name always means a whole file: the old one or the new one.
//! - [`update`] a filter under a lock: small files are replaced, large ones of a family that can are
//!   changed where they lie.
//! - [`hold`] a filter under its lock for as long as it is used, and then put another one in its place.
//! - [`remake`] one into another, such as into the same with exceptions, under the same lock;
//! - [`read_bytes`], [`write_bytes`], [`update_bytes`]: files of other programs, with the same locks and the same care.
//! - [`fault::install`] a handler that explains what happens when a mapped file is truncated.
//! - [`Spool`] digests whose number is not known yet, and [`DigestSpool`] those of a static filter, in bounded memory.
//!
//! ```
//! use mayhap::{Bloom, Filter};
//! use mayhap_store::{Access, open, write};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("seen.mayhap");
//! let mut seen = Bloom::new(1000, 0.01)?;
//! seen.insert("a");
//! write(&path, &seen)?;
//! assert!(open(&path, Access::Map, None)?.filter.contains(b"a"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bytes;
mod error;
pub mod fault;
mod file;
mod held;
mod lock;
mod map;
mod reader;
mod shards;
mod space;
mod spool;
mod temporary;

pub use bytes::{read_bytes, update_bytes, write_bytes};
pub use error::StoreError;
pub use file::{
    Access, Check, Checked, Opened, Sizes, UpdateError, decode, open, open_checked, open_sealed, remake,
    update, update_sized, write, write_summed,
};
pub use held::{Held, hold};
pub use lock::is_locked;
pub use shards::{DigestSpool, LEAST_SPOOL_BYTES, Sorter};
pub use spool::Spool;

#[doc = include_str!("../../../docs/library.md")]
#[cfg(doctest)]
struct Library;
