//! `--help`, `--version`, and what is said when nothing or nonsense is asked.

use crate::runner::{COMMANDS, Folder};

#[test]
fn every_command_explains_itself() {
    let folder = Folder::new();
    let overview = folder.mayhap("--help").run().ends(0).stays_quiet();
    for command in COMMANDS {
        let listed =
            String::from_utf8_lossy(&overview.out).lines().any(|line| line.trim_start().starts_with(command));
        assert!(listed, "{command} is missing in the overview");
        let usage = format!("Usage: mayhap {command}");
        let long = folder.mayhap(&format!("{command} --help")).run().ends(0).stays_quiet().shows(&usage);
        let short = folder.mayhap(&format!("{command} -h")).run().ends(0).stays_quiet().shows(&usage);
        assert!(long.out.len() >= short.out.len());
        folder.mayhap(&format!("help {command}")).run().ends(0).prints(&long.out);
    }
}

#[test]
fn the_overview_tells_of_numbers_and_of_the_exit_status() {
    let folder = Folder::new();
    folder
        .mayhap("--help")
        .run()
        .ends(0)
        .shows("Exit status: check, remove and test: 0 yes, 1 no, 2 error. All others: 0, or 2 for an error.")
        .shows("Sizes and rates: -n 10M, 1e7; -p 1%, 0.01, 1e-6, 1in1M; --size 64MiB, 1GB.");
}

#[test]
fn the_version_is_the_packages() {
    let folder = Folder::new();
    folder.mayhap("--version").run().ends(0).prints(concat!("mayhap ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn nothing_and_nonsense_are_errors() {
    let folder = Folder::new();
    folder.mayhap("").run().ends(2).prints("").says("Usage: mayhap");
    folder.mayhap("bild").run().ends(2).prints("").says("a similar subcommand exists: 'build'");
    folder.mayhap("build --outptu f").run().ends(2).says("a similar argument exists: '--output'");
    folder.mayhap("build").run().ends(2).says("--output <FILE>");
    for command in ["add", "remove", "check", "count", "label", "test", "info"] {
        folder.mayhap(command).run().ends(2).prints("").says("<FILTER>");
    }
}
