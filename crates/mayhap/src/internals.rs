//! For the tests of this project: choosing the loops that a filter takes, and counting the memory that it holds. Nothing here is stable.

pub use crate::paths::{Paths, Switches};
pub use crate::simd::mapped_bytes;
use crate::spec::Spec;

/// The same request, for a filter that takes other loops than usual.
#[must_use]
pub const fn with_paths(mut spec: Spec, paths: Paths) -> Spec {
    spec.paths = paths;
    spec
}
