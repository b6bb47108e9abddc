//! One file per family. A family's file holds its module doc, type, probing, capabilities, its
//! `FAMILY` and its unit tests; one line in the registry makes it known everywhere.

pub mod bitmap;
pub mod blocked;
pub mod bloom;
pub mod counting;
pub mod cuckoo;
pub mod dleft;
pub mod exact;
pub mod expanding;
pub mod fuse;
pub mod ribbon;
#[cfg(feature = "roaring")]
pub mod roaring;
pub mod scalable;
pub mod shifting;
pub mod shifting_association;
pub mod shifting_multiplicity;
pub mod spatial;
pub mod spectral;
pub mod table;
pub mod universe;
pub mod windowed;

/// The id of the family `roaring`, also where the library was built without it.
pub(crate) const ROARING: u16 = 4;
