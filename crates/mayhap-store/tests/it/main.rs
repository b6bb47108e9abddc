//! All tests of files, in one program.

mod held;
mod open;
mod update;
mod write;
