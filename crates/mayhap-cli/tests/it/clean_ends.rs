//! How commands end when something stands in the way: a full state, two signals, no memory, a closed stream, an output that is
//! an input.

use crate::runner;
use crate::runner::{Folder, lines};
use serde_json::Value;

/// What was printed was not saved, and the error named no file.
#[test]
fn what_a_state_with_buckets_printed_is_saved_when_it_is_full() {
    let folder = Folder::new();
    for family in ["cuckoo", "dleft"] {
        folder.mayhap(&format!("build --family {family} -n 500 -o s")).run().ends(0);
        // The rate is no limit: the buckets are.
        let line = "dedup --state-any --state s --max-fpr 0.99 --stats=json";
        let done = folder.mayhap(line).input(lines("key ", 20_000)).run().ends(2);
        let printed = done.out.iter().filter(|&&byte| byte == b'\n').count();
        assert!(printed >= 500, "{family}: {printed}");
        folder.mayhap("check -v -c s").input(&done.out).run().ends(1).prints("0\n");
        assert_eq!(
            folder.mayhap("info --json s").run().ends(0).json()["inserted"],
            printed as u64,
            "{family}"
        );
        // The report comes first, and the reason behind it.
        let (report, reason) = done.err.split_once('\n').expect("two lines");
        let report: Value = serde_json::from_str(report).expect("JSON");
        assert_eq!(report["printed"], printed as u64);
        assert!(
            reason.starts_with("mayhap: s: after ") && reason.contains("what was printed is remembered"),
            "{reason}"
        );
    }
}

/// `timeout -s INT` signals its child and then the group of it: the second one ended the program before the state was saved.
#[cfg(target_os = "linux")]
#[test]
fn two_signals_at_once_are_one() {
    use std::io::{Read, Write};

    use rustix::process::{Pid, Signal, kill_process};
    for round in 0..10 {
        let folder = Folder::new();
        let mut child = folder.mayhap("dedup --state s --stats=json").start();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        input.write_all(b"a\n").unwrap();
        let mut line = [0; 2];
        output.read_exact(&mut line).unwrap();
        for _ in 0..3 {
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        let ended = runner::wait(&mut child, "signalled");
        assert_eq!(ended.code(), Some(128 + 15), "round {round}: {ended}");
        let mut report = String::new();
        child.stderr.take().unwrap().read_to_string(&mut report).unwrap();
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report["stopped_by_signal"], 15);
        drop(input);
        folder.mayhap("check -c s").input("a\n").run().ends(0).prints("1\n");
    }
}

/// It was taken for one that a killed run had left, and became one with other keys, another rate and no secret.
#[test]
fn an_empty_table_that_build_made_is_kept_as_it_was_made() {
    let folder = Folder::new();
    folder.mayhap("build --family table -n 12345 -p 0.001 --ignore-case -o s").input("").run().ends(0);
    let made = folder.mayhap("info --json s").run().ends(0).json();
    folder.mayhap("dedup --state s").input("a\nA\nb\n").run().ends(0).prints("a\nb\n");
    let kept = folder.mayhap("info --json s").run().ends(0).json();
    for field in ["family", "capacity", "fpr_asked", "spelling", "seed"] {
        assert_eq!(kept[field], made[field], "{field}");
    }
    assert!(made["capacity"].as_u64().is_some_and(|capacity| capacity >= 12_345));
    folder.mayhap("dedup --exact --state s").input("a\n").run().ends(2).says("--exact was asked for");
}

/// The process was aborted, or it panicked.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_an_exact_set_does_not_get_is_an_error() {
    let folder = Folder::new();
    folder.sh("seq 1 1500000 > one; seq 1000001 2500000 > two").run().ends(0);
    folder.sh("$MAYHAP build --exact -o a one && $MAYHAP build --exact -o b two").run().ends(0);
    let mut refused = 0;
    // Small enough that something is refused, wherever the steps of an allocator lie, and large enough that the program starts.
    for mib in (40..200).step_by(20) {
        for command in [
            "dedup --exact --state s one",
            "build --exact -o f one",
            "merge -o f a b",
            "merge --intersect -o f a b",
            "add a two",
            "build --counts -o f one",
        ] {
            folder.sh("rm -f s f; cp a kept").run().ends(0);
            let script =
                format!("ulimit -v {}; MALLOC_ARENA_MAX=1 exec \"$MAYHAP\" --threads 1 {command}", mib << 10);
            let done = folder.sh(&script).output(std::process::Stdio::null()).run();
            match done.status.code() {
                Some(0) => {}
                Some(2) => {
                    refused += 1;
                    let done = done.says("memory");
                    assert!(!done.err.contains("panicked"), "{command} in {mib} MiB: {}", done.err);
                }
                status => panic!("{command} in {mib} MiB: {status:?} {}", done.err),
            }
            folder.sh("cp kept a").run().ends(0);
        }
    }
    assert!(refused >= 12, "only {refused} were refused");
}

/// With `--key` nothing was compared, and several commands did not look at all.
#[cfg(unix)]
#[test]
fn an_output_that_is_the_filter_is_refused_by_every_command() {
    let folder = Folder::new();
    folder.write("keys", "a\nb\n");
    folder.mayhap("build -n 1000 -o f keys").run().ends(0);
    folder.mayhap("build -n 1000 -o g keys").run().ends(0);
    folder.mayhap("build -n 100 --family counting -o c keys").run().ends(0);
    folder.mayhap("build -n 100 --family counting -o c2 keys").run().ends(0);
    folder.mayhap("dedup --state s keys").run().ends(0);
    for (line, file) in [
        ("check f --key a >> f", "f"),
        ("count c --key a >> c", "c"),
        ("info f >> f", "f"),
        ("info f --heatmap - >> f", "f"),
        ("test f keys >> f", "f"),
        ("test f keys >> keys", "keys"),
        ("merge -o - f g >> f", "f"),
        ("fold -p 0.1 -o - f >> f", "f"),
        ("convert --to mayhap -o - f >> f", "f"),
        ("build -o - keys >> keys", "keys"),
        ("add f f", "f"),
        ("dedup --state s s", "s"),
    ] {
        let before = folder.read(file);
        let done = folder.sh(&format!("exec $MAYHAP {line}")).run().ends(2);
        assert!(done.err.contains(&format!("mayhap: {file}: is the ")), "{line}: {}", done.err);
        assert_eq!(folder.read(file), before, "{line}");
    }
    // These read all before they replace it.
    folder.mayhap("merge -o f f g").run().ends(0);
    folder.mayhap("check -c f keys").run().ends(0).prints("2\n");
}

/// Records vanished with status 0. An open `/dev/null`, as Python's `DEVNULL` is for reading and writing, is no closed stream.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_stream_is_an_error_where_it_is_used() {
    let folder = Folder::new();
    folder.write("keys", "a\nb\n");
    folder.mayhap("build -o f keys").run().ends(0);
    for line in [
        "dedup keys",
        "dedup --threads 1 keys",
        "check f keys",
        "info f",
        "--help",
        "--version",
        "calc -n 1M -p 1%",
    ] {
        folder.sh(&format!("exec $MAYHAP {line} >&-")).run().ends(2).says("standard output: ");
    }
    folder.sh("exec $MAYHAP dedup --state s keys >&-").run().ends(2);
    folder.mayhap("dedup --state s keys").run().ends(0).prints("a\nb\n");
    // Nothing is printed.
    folder.sh("exec $MAYHAP check -q f keys >&-").run().ends(0);
    folder.sh("exec $MAYHAP build -o g <&-").run().ends(2).says("it is closed");
    assert!(!folder.path("g").exists());
    folder.sh("exec $MAYHAP build -o g 0<> /dev/null").run().ends(0);
    folder.sh("exec $MAYHAP dedup --state t keys 1<> /dev/null").run().ends(0);
    folder.mayhap("check -c t keys").run().ends(0).prints("2\n");
}

/// The parser hands numbers on as objects with a member of its own, and took this object for one.
#[test]
fn an_object_does_not_pose_as_a_number() {
    let folder = Folder::new();
    for name in [r"$serde_json::private::Number", r"\u0024serde_json::private::\u004eumber"] {
        let record = format!("{{\"k\":{{\"{name}\":\"1\"}}}}\n");
        for text in [record.clone(), format!("{{\"k\":1}}\n{record}")] {
            folder.mayhap("dedup --json-key /k").input(text).run().ends(2).says("private:: cannot be read");
        }
    }
    // As a value it is a text like others, and so is a name with a quote in it.
    let text =
        "{\"k\":\"$serde_json::private::Number\"}\n{\"k\":{\"a\\\"\\u0024\":1}}\n{\"k\":{\"a\\\"$\":1.0}}\n";
    let done = folder.mayhap("dedup --json-key /k").input(text).run().ends(0);
    assert_eq!(done.out.iter().filter(|&&byte| byte == b'\n').count(), 2);
}

/// `null` and `"null"` were one key.
#[test]
fn utf16_keys_are_made_of_json_strings() {
    let folder = Folder::new();
    let line = "dedup --as utf16 --json-key /k";
    folder.mayhap(line).input("{\"k\":\"null\"}\n").run().ends(0).prints("{\"k\":\"null\"}\n");
    for value in ["null", "1", "[1]"] {
        let text = format!("{{\"k\":\"null\"}}\n{{\"k\":{value}}}\n");
        folder.mayhap(line).input(text).run().ends(2).says("line 2").says("is no string").says("--json-raw");
    }
    folder.mayhap("dedup --as utf16 --json-raw --json-key /k").input("{\"k\":null}\n").run().ends(0);
}

/// Warnings stood as text on the same stream.
#[test]
fn the_report_of_lookups_stays_json_with_warnings() {
    let folder = Folder::new();
    folder.write("keys", "a\r\nb\r\n");
    folder.mayhap("build --family counting -n 100 -o c keys").run().ends(0);
    for command in ["check", "count"] {
        let done = folder.mayhap(&format!("{command} --stats=json c keys")).run();
        let report: Value = serde_json::from_str(&done.err).expect("nothing but JSON");
        let warnings = report["warnings"].as_array().expect("a list");
        assert_eq!(warnings.len(), 1, "{command}: {warnings:?}");
        assert!(warnings[0].as_str().is_some_and(|text| text.contains("--crlf where keys are put in")));
        // In a text report it comes as a line.
        folder
            .mayhap(&format!("{command} --stats c keys"))
            .run()
            .says("warning: keys: its lines end in CR LF");
    }
}

/// It was refused only where lines end in newlines.
#[test]
fn utf16_text_is_refused_with_any_terminator() {
    let folder = Folder::new();
    for options in ["", "-z"] {
        let text = b"\xff\xfea\0\n\0";
        folder.mayhap(&format!("dedup {options}")).input(text).run().ends(2).says("the text is UTF-16");
    }
}
