//! `--progress`, `--no-progress` and `--quiet`.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::runner::{Done, Folder, PATIENCE};

/// Runs a command on an input that comes slowly: until progress is shown, if it is expected, and else for two seconds.
fn slowly(options: &str, shown: bool) -> Done {
    let folder = Folder::new();
    let mut child = folder.mayhap(&format!("dedup {options}")).start();
    let (mut input, mut errors) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
    let (said, heard) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let (mut all, mut piece) = (Vec::new(), [0; 1024]);
        while let Ok(read @ 1..) = errors.read(&mut piece) {
            all.extend_from_slice(&piece[..read]);
            let _ = said.send(());
        }
        all
    });
    input.write_all(b"a\nb\n").unwrap();
    let started = Instant::now();
    let deadline = if shown { PATIENCE } else { Duration::from_secs(2) };
    while started.elapsed() < deadline && heard.try_recv().is_err() {
        input.write_all(b"a\n").unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(input);
    let mut output = child.wait_with_output().unwrap();
    output.stderr = reader.join().unwrap();
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
                let done = slowly(options, shown).ends(0).prints("a\nb\n");
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
