//! For the tests of this project: choosing the loops that a filter takes, counting the memory that it holds, divisors.
//! Nothing here is stable.

pub use crate::math::whole_numbers::{divisors, prime_factors};
pub use crate::paths::{Paths, Switches};
#[cfg(feature = "std")]
pub use crate::paths::{Taken, taken};
pub use crate::raw::memory::mapped_bytes;
use crate::spec::Spec;

/// The same request, for a filter that takes other loops than usual.
#[must_use]
pub const fn with_paths(mut spec: Spec, paths: Paths) -> Spec {
    spec.paths = paths;
    spec
}
