//! The integration tests of the library, as one binary: each binary is linked on its own, and most of the time went there.
//!
//! Binaries of their own are only `held` (its allocator counts the memory of the whole process) and `under_miri` (Miri
//! interprets it, so that it stays small).

mod adversary;
mod advise;
mod all_paths;
mod conformance;
#[path = "../foreign/containers.rs"]
mod containers;
mod costs;
mod counting;
mod crafted;
mod cuckoo;
mod damage;
mod dleft;
mod exceptions;
mod expanding;
mod fold;
mod foreign;
mod fpr;
mod fuse;
mod golden;
mod interfaces;
mod interop;
mod interop_golden;
mod interop_imports;
mod interop_redis;
mod many;
mod model;
mod multiset;
mod paths;
mod ribbon;
mod scalable;
mod scale;
mod seeds;
mod shifting;
mod shifting_association;
mod shifting_multiplicity;
mod small_filters;
mod spatial;
mod spec;
mod spectral;
mod table;
mod universe;
mod windowed;
mod worked_examples;
