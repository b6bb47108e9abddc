//! `--progress`, `--no-progress` and `--quiet`.

use std::io::Write;
use std::time::Duration;

use crate::runner::{Done, Folder};

/// Runs a command on an input that takes more than a second to come.
fn slowly(options: &str) -> Done {
    let folder = Folder::new();
    let mut child = folder.mayhap(&format!("dedup {options}")).start();
    let mut input = child.stdin.take().unwrap();
    for line in ["a\n", "b\n", "a\n"] {
        input.write_all(line.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(600));
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    Done::from((format!("dedup {options}"), output))
}

#[test]
fn it_is_shown_on_standard_error_only_and_when_asked() {
    std::thread::scope(|scope| {
        for (options, shown) in [
            ("", false),
            ("--progress", true),
            ("--no-progress", false),
            ("--quiet", false),
            ("--quiet --progress", true),
            ("--progress --no-progress", false),
            ("--no-progress --progress", true),
        ] {
            scope.spawn(move || {
                let done = slowly(options).ends(0).prints("a\nb\n");
                match shown {
                    true => drop(done.says("mayhap: deduplicating: ").says("/s\n")),
                    false => drop(done.stays_quiet()),
                }
            });
        }
    });
}

#[test]
fn short_work_shows_none() {
    let folder = Folder::new();
    folder.mayhap("dedup --progress").input("a\n").run().ends(0).prints("a\n").stays_quiet();
    folder.mayhap("build --quiet --progress -o f").input("a\n").run().ends(0).prints("").stays_quiet();
}

#[test]
fn quiet_leaves_results_and_errors() {
    let folder = Folder::new();
    folder.mayhap("build --quiet -o f -n 1").input("a\nb\n").run().ends(0).prints("").stays_quiet();
    folder.mayhap("--quiet add f").input("c\n").run().ends(0).prints("").stays_quiet();
    folder.mayhap("merge --quiet -o g f f").run().ends(0).prints("").stays_quiet();
    folder.mayhap("check --quiet f").input("a\n").run().ends(0).prints("a\n").stays_quiet();
    folder.mayhap("info --quiet f").run().ends(0).shows("family").stays_quiet();
    folder.mayhap("dedup --quiet absent").run().ends(2).says("mayhap: absent: cannot open: ");
}
