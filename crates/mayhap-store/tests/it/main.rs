//! All tests of files, in one program.

mod held;
mod open;
mod update;
mod write;

/// An error and its sources on a line, as the command prints them.
fn chain(error: &dyn std::error::Error) -> String {
    let errors = std::iter::successors(Some(error), |error| error.source());
    errors.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
