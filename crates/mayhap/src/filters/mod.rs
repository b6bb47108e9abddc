//! One file per family. A family's file holds its module doc, type, probing, capabilities, its
//! `FAMILY` and its unit tests; one line in the registry makes it known everywhere.

pub(crate) mod bitmap;
pub(crate) mod blocked;
pub(crate) mod bloom;
pub(crate) mod counting;
pub(crate) mod cuckoo;
pub(crate) mod dleft;
pub(crate) mod exact;
pub(crate) mod expanding;
pub(crate) mod fuse;
pub(crate) mod ribbon;
#[cfg(feature = "roaring")]
pub(crate) mod roaring;
pub(crate) mod scalable;
pub(crate) mod shifting;
pub(crate) mod shifting_association;
pub(crate) mod shifting_multiplicity;
pub(crate) mod spatial;
pub(crate) mod spectral;
pub(crate) mod table;
pub(crate) mod universe;
pub(crate) mod windowed;

/// The id of the family `roaring`, also where the library was built without it.
pub(crate) const ROARING: u16 = 4;
