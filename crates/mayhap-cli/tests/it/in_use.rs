//! Files that other processes use, shorten, or leave behind unfinished.
#![cfg(unix)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::Instant;

use crate::runner::{Call, Done, Folder, lines, wait};
use mayhap_eval::Random;
use mayhap_store::{Sizes, update_sized};
use rustix::process::{Pid, Signal, kill_process};

/// A program that has answered its first line, so that it has its files open, and waits for more.
struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts it with a line that it prints.
    fn start(call: Call, line: &str) -> Self {
        let mut child = call.start();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        input.write_all(line.as_bytes()).unwrap();
        let mut printed = String::new();
        output.read_line(&mut printed).unwrap();
        assert_eq!(printed, line);
        Self { child, input, output }
    }

    /// Gives it a last line, waits for its end and tells its signal, its status and what it said.
    fn end(self, line: &str) -> (Option<i32>, Option<i32>, String) {
        let Self { mut child, mut input, mut output } = self;
        // It may be dead already.
        let _ = input.write_all(line.as_bytes());
        drop(input);
        let status = wait(&mut child, "a program with an open input");
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).unwrap();
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (status.signal(), status.code(), errors)
    }
}

/// It ended by SIGBUS, with status 135 and without a word.
#[test]
fn a_filter_that_is_shortened_under_check_is_an_error_with_its_name() {
    let folder = Folder::new();
    for build in ["-n 1M", "-n 1M --family blocked", "-n 1M --family cuckoo"] {
        for (options, survives) in [("", false), ("--no-mmap", true)] {
            folder.mayhap(&format!("build {build} -o f")).input("1\n").run().ends(0);
            let running = Running::start(folder.mayhap(&format!("check f {options}")), "1\n");
            File::options().write(true).open(folder.path("f")).unwrap().set_len(0).unwrap();
            let (signal, code, errors) = running.end("1\n");
            assert_eq!(
                (signal, code),
                (None, Some(if survives { 0 } else { 2 })),
                "{build} {options}: {errors}"
            );
            let message = "mayhap: f: the file became shorter while it was in use, or its disk is full or failing; \
                           --no-mmap reads files that others truncate\n";
            assert_eq!(errors, if survives { "" } else { message });
        }
    }
}

/// The handler is for our maps only: what others send ends the program as ever.
#[test]
fn a_signal_that_is_no_fault_of_a_file_ends_the_program_as_ever() {
    let folder = Folder::new();
    folder.mayhap("build -o f").input("1\n").run().ends(0);
    let running = Running::start(folder.mayhap("check f"), "1\n");
    kill_process(Pid::from_child(&running.child), Signal::BUS).unwrap();
    let (signal, code, errors) = running.end("");
    assert_eq!((signal, code, &errors[..]), (Some(Signal::BUS.as_raw()), None, ""));
}

fn temporary_files(folder: &Folder) -> Vec<String> {
    folder.names().into_iter().filter(|name| name.starts_with(".mayhap-")).collect()
}

/// Killed runs once left their temporary files behind, for ever.
#[test]
fn what_killed_runs_leave_is_gone_after_the_next_one() {
    let folder = Folder::new();
    folder.write("keys", lines("", 100_000));
    let start = |command: &str| folder.mayhap(command).start();
    let commands = ["build -o f -n 4M keys", "add f keys", "merge -o f f f"];
    folder.mayhap(commands[0]).run().ends(0);
    let mut random = Random::new(7);
    for round in 0..21 {
        let command = commands[round % commands.len()];
        let started = Instant::now();
        assert!(wait(&mut start(command), command).success());
        let run = started.elapsed();
        let mut child = start(command);
        std::thread::sleep(run * (random.next_u64() % 1000) as u32 / 1000);
        let _ = child.kill();
        wait(&mut child, command);
        assert!(temporary_files(&folder).len() <= 1, "after {command}");
        folder.mayhap("build -o g").input("a\n").run().ends(0);
        assert!(temporary_files(&folder).is_empty(), "after {command} and another run");
        folder.mayhap("info --verify f").run().ends(0);
    }
}

/// As an earlier version, or another system, leaves them.
#[test]
fn every_command_that_writes_removes_what_was_left_behind() {
    let folder = Folder::new();
    folder.mayhap("build -o f -n 100").input("a\n").run().ends(0);
    for command in ["build -o f -n 100", "build -o new", "add f", "merge -o f f f", "dedup --state s"] {
        folder.write(".mayhap-Ab12cd.tmp", "half a filter");
        folder.write(".mayhap-notes", "not ours");
        // Another process is writing this one.
        let used = File::create(folder.path(".mayhap-inuse0.tmp")).unwrap();
        used.lock().unwrap();
        folder.mayhap(command).input("b\n").run().ends(0);
        assert_eq!(temporary_files(&folder), [".mayhap-inuse0.tmp", ".mayhap-notes"], "{command}");
    }
    folder.mayhap("build -o f -n 100").input("a\n").run().ends(0);
    assert_eq!(temporary_files(&folder), [".mayhap-notes"], "nobody holds the other one any more");
}

/// They waited for the end of the stream, which may have none, and said nothing.
#[test]
fn a_state_in_use_is_read_at_once() {
    let folder = Folder::new();
    folder.mayhap("build --counts -n 1000 -p 1e-9 -o s").input("old\nold\n").run().ends(0);
    let running = Running::start(folder.mayhap("dedup --state-any --state s"), "new\n");
    folder.mayhap("check s").input("old\nnew\n").run().ends(0).prints("old\n").stays_quiet();
    folder.mayhap("check --no-mmap s").input("old\nnew\n").run().ends(0).prints("old\n").stays_quiet();
    folder.mayhap("count s").input("old\nnew\n").run().ends(0).prints("old\t2\nnew\t0\n").stays_quiet();
    folder.mayhap("test s").input("old\n").run().ends(0);
    folder.mayhap("merge -o m s").run().ends(0);
    for (options, checksum) in [("", "header-ok"), ("--verify", "ok")] {
        let info = folder.mayhap(&format!("info --json s {options}")).run().ends(0).json();
        assert_eq!((&info["checksum"], &info["inserted"]), (&checksum.into(), &2.into()));
    }
    folder.mayhap("dedup --dry-run --state-any --state s").input("old\nnew\n").run().ends(0).prints("new\n");
    assert_eq!(running.end(""), (None, Some(0), String::new()));
    folder.mayhap("check s").input("old\nnew\n").run().ends(0).prints("old\nnew\n");
}

/// Nothing is in until the first run has saved.
#[test]
fn a_state_that_is_just_being_made_is_empty() {
    let folder = Folder::new();
    let running = Running::start(folder.mayhap("dedup --state s"), "a\n");
    folder.mayhap("check s --key a").run().ends(1).prints("").stays_quiet();
    let info = folder.mayhap("info --json --verify s").run().ends(0).json();
    assert_eq!((&info["inserted"], &info["checksum"]), (&0.into(), &"ok".into()));
    assert_eq!(running.end("").1, Some(0));
    folder.mayhap("check s --key a").run().ends(0).prints("a\n");
}

#[test]
fn info_tells_a_file_that_is_being_written_from_one_whose_writer_died() {
    let folder = Folder::new();
    folder.mayhap("build -n 1000 -p 1e-9 -o f").input("old\n").run().ends(0);
    let sizes = Sizes { in_place_from: 0, sum_up_to: u64::MAX };
    let look = |checksum: &str| {
        for options in ["", "--verify"] {
            let info =
                |more: &str| folder.mayhap(&format!("info f {options} {more}")).run().ends(0).stays_quiet();
            assert_eq!(info("--json").json()["checksum"], checksum);
            info("").shows(checksum);
        }
        let report = r#"{"matched":1,"printed":1,"read":2,"verified":false,"warnings":[]}"#;
        folder
            .mayhap("check f --stats=json")
            .input("old\nabsent\n")
            .run()
            .ends(0)
            .prints("old\n")
            .says_only(report);
        folder.mayhap("check f --stats").input("old\n").run().ends(0).says("payload not verified: ");
        folder.mayhap("merge -o m f").run().ends(0).says("warning: f: it has no checksum");
    };
    let mut marked = Vec::new();
    update_sized(&folder.path("f"), None, sizes, |_| {
        look("being written");
        marked = folder.read("f");
        Ok::<(), ()>(())
    })
    .unwrap();
    folder.write("f", marked);
    look("interrupted");
}

/// Starts a command that has to wait for the holder of `s`, lets the holder go, and returns what the command says.
fn waits(folder: &Folder, command: &str, input: &str) -> Done {
    let running = Running::start(folder.mayhap("dedup --state-any --state s"), "held\n");
    let mut child = folder.mayhap(command).start();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    errors.read_line(&mut said).unwrap();
    assert_eq!(said, "mayhap: s: waiting for another process that uses it\n", "{command}");
    assert!(child.try_wait().unwrap().is_none(), "{command} waits");
    assert_eq!(running.end("").1, Some(0));
    let status = wait(&mut child, command);
    errors.read_to_string(&mut said).unwrap();
    let mut out = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    assert_eq!(said.matches("waiting").count(), 1, "{command}: {said}");
    (command.to_string(), std::process::Output { status, stdout: out, stderr: said.into_bytes() }).into()
}

/// They waited without a word.
#[test]
fn writers_say_once_that_they_wait() {
    let folder = Folder::new();
    for (command, input, expected) in [
        ("add s", "b\n", "a\nheld\nb\n"),
        ("remove s", "a\n", "held\n"),
        ("merge -o s m", "", "m\n"),
        ("convert m -o s --to mayhap", "", "m\n"),
        ("build -n 1000 --removable -p 1e-6 -o s", "b\n", "b\n"),
    ] {
        for (name, key) in [("s", "a\n"), ("m", "m\n")] {
            let build = format!("build -n 1000 --removable -p 1e-6 -o {name}");
            folder.mayhap(&build).input(key).run().ends(0);
        }
        waits(&folder, command, input).ends(0);
        folder.mayhap("check s").input("a\nheld\nb\nm\n").run().ends(0).prints(expected);
    }
    // Nobody holds it, nobody waits.
    let done = folder.mayhap("add s").input("b\n").run().ends(0);
    assert!(!done.err.contains("waiting"), "{}", done.err);
}

/// As Ctrl-C sends it; or what ends a program where we, and so the program, were started with that one ignored, as a job in the
/// background is.
fn interrupt() -> Signal {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    if mask >> (Signal::INT.as_raw() - 1) & 1 == 1 { Signal::TERM } else { Signal::INT }
}

/// Commands that write `f`, each over an old one, and what they are given.
const WRITERS: [&str; 4] =
    ["build -o f -n 2M keys", "add f keys", "merge -o f old other", "dedup --state f keys"];

/// Kills each of them at random moments, so often. Afterwards the file is the old one or the new one, no key is lost, and
/// nothing is left over after the next run in the folder.
fn killed_at_random_moments(rounds: u32, signal: Signal) {
    let folder = Folder::new();
    folder.write("keys", lines("new ", 60_000));
    folder.write("old keys", lines("old ", 20_000));
    folder.mayhap("build -n 2M -o old").arg("old keys").run().ends(0);
    folder.mayhap("build -n 2M -o other keys").run().ends(0);
    let state = File::create(folder.path("out")).unwrap();
    folder.mayhap("dedup --state state").arg("old keys").output(state).run().ends(0);
    let names = [folder.names(), vec!["f".into(), "next".into()]].concat();
    let (mut random, mut stopped) = (Random::new(11), 0);
    for command in WRITERS {
        let is_dedup = command.starts_with("dedup");
        let start = || {
            let old = if is_dedup { "state" } else { "old" };
            std::fs::copy(folder.path(old), folder.path("f")).unwrap();
            folder.mayhap(command).output(File::create(folder.path("out")).unwrap()).start()
        };
        let old = folder.read(if is_dedup { "state" } else { "old" });
        let started = Instant::now();
        assert!(wait(&mut start(), command).success());
        let (run, new) = (started.elapsed(), folder.read("f"));
        for round in 0..rounds {
            let mut child = start();
            std::thread::sleep(run * (random.next_u64() % 1100) as u32 / 1000);
            if child.try_wait().unwrap().is_none() {
                kill_process(Pid::from_child(&child), signal).unwrap();
            }
            stopped += u32::from(!wait(&mut child, command).success());
            let found = folder.read("f");
            if found != old && found != new {
                // A run of dedup that is told to end saves what it has printed.
                assert!(
                    is_dedup && signal != Signal::KILL,
                    "{command}, round {round}: neither the old file nor the new one"
                );
                folder.mayhap("check -v -c f out").run().ends(1).prints("0\n");
                let rest = folder.mayhap("dedup --state f keys").run().ends(0);
                assert!(
                    [folder.read("out"), rest.out].concat() == folder.read("keys"),
                    "{command}, round {round}"
                );
            }
            folder.mayhap("info --verify f").run().ends(0);
            if !command.starts_with("build") {
                folder.mayhap("check -v -c f").arg("old keys").run().ends(1).prints("0\n");
            }
            folder.mayhap("build -o next").input("a\n").run().ends(0);
            let left: Vec<String> = folder.names().into_iter().filter(|name| !names.contains(name)).collect();
            assert!(left.is_empty(), "{command}, round {round}: {left:?}");
        }
    }
    println!("{stopped} of {} runs were stopped", rounds * WRITERS.len() as u32);
    assert!(stopped > 0, "the signals come too late to say anything");
}

#[test]
fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    killed_at_random_moments(5, Signal::KILL);
}

#[test]
fn an_interrupted_writer_leaves_the_old_file_or_the_new_one() {
    killed_at_random_moments(5, interrupt());
}

#[test]
#[ignore = "800 runs"]
fn writers_that_are_killed_a_hundred_times() {
    killed_at_random_moments(100, Signal::KILL);
    killed_at_random_moments(100, interrupt());
}
