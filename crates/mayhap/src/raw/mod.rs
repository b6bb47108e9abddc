//! Raw memory, and the instructions of one machine: the only folder of the library with unsafe code.
//!
//! | module   | subject                                                    |
//! |----------|------------------------------------------------------------|
//! | `detect` | which instructions the processor has                       |
//! | `memory` | the words of a filter                                      |
//! | `xxh3`   | the hash of many integers; [`hash`](crate::hash) calls it  |
//! | `simd`   | the loops of the families                                  |
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod detect;
pub(crate) mod memory;
pub(crate) mod simd;
pub(crate) mod xxh3;
