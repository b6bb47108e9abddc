//! The `mayhap` program. All of it is in the library beside this file, which says why.

use std::process::ExitCode;

fn main() -> ExitCode {
    mayhap_cli::run()
}
