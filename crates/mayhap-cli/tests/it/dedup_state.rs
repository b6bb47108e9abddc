//! `mayhap dedup --state`: runs that carry on from each other, at once, and through crashes.

use std::collections::HashSet;
use std::fs::{self, File};

use crate::oracle::{firsts, joined, records, repeats, report};
use crate::runner;
use crate::runner::{Folder, lines};
use mayhap_eval::Random;

/// The family of a state file.
#[track_caller]
fn family(folder: &Folder, name: &str) -> String {
    let info = folder.mayhap(&format!("info --json --verify {name}")).run().ends(0).json();
    info["family"].as_str().expect("a family").to_owned()
}

fn random_lines(seed: u64, count: usize, distinct: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let line = |_| format!("https://example.org/{}\n", random.next_u64() % distinct).into_bytes();
    (0..count).flat_map(line).collect()
}

// One run after the other.

#[test]
fn runs_one_after_the_other_print_what_one_run_would() {
    let folder = Folder::new();
    let parts: Vec<Vec<u8>> = (1..6).map(|seed| random_lines(seed, 10_000 * seed as usize, 40_000)).collect();
    let whole = parts.concat();
    for (options, kind, single) in [
        ("", "table", "dedup"),
        ("--exact", "exact", "dedup --exact"),
        ("--window 5000 -p 1e-9", "windowed", "dedup --window 5000 -p 1e-9"),
        ("-p 1e-6", "table", "dedup -p 1e-6"),
    ] {
        for repeated in ["", "--repeated"] {
            let _ = fs::remove_file(folder.path("s"));
            let mut printed = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                // What made the file need not be said again.
                let options = if number % 2 == 0 { options } else { "" };
                let line = format!("dedup --state s --stats=json {options} {repeated}");
                let done = folder.mayhap(&line).input(part).run().ends(0);
                assert_eq!(report(&done)["read"], records(part, b'\n').len(), "{line}");
                printed.extend(done.out);
            }
            let one = folder.mayhap(&format!("{single} {repeated}")).input(&whole).run().ends(0);
            assert!(printed == one.out, "{options} {repeated}");
            if kind != "windowed" {
                let oracle = if repeated.is_empty() { firsts(&whole) } else { repeats(&whole) };
                assert!(printed == oracle, "{options} {repeated}");
            }
            assert_eq!(family(&folder, "s"), kind);
        }
    }
    assert_eq!(folder.names(), ["s"], "nothing else is left");
}

#[test]
fn the_state_is_made_if_it_is_not_there_even_of_nothing() {
    let folder = Folder::new();
    folder.mayhap("dedup --state s").run().ends(0).prints("").stays_quiet();
    assert_eq!(family(&folder, "s"), "table");
    folder.mayhap("dedup --state s").input("a\n").run().ends(0).prints("a\n");
    folder.mayhap("check s").input("a\nb\n").run().ends(0).prints("a\n");
    folder.mayhap("add s").input("b\n").run().ends(0);
    folder.mayhap("dedup --state s").input("a\nb\nc\n").run().ends(0).prints("c\n");
}

#[test]
fn a_filter_of_any_family_that_inserts_is_carried_on() {
    let folder = Folder::new();
    let before = lines("old ", 2000);
    let input = [&before[..], &lines("new ", 2000), &lines("new ", 10)].concat();
    for name in
        ["bloom", "blocked", "cuckoo", "scalable", "expanding", "exact", "counting", "table", "windowed"]
    {
        folder.mayhap(&format!("build -o s -n 10k -p 1e-6 --family {name}")).input(&before).run().ends(0);
        let done = folder.mayhap("dedup --state-any --state s").input(&input).run().ends(0);
        assert!(done.out == lines("new ", 2000).as_bytes(), "{name}");
        assert_eq!(family(&folder, "s"), name, "it stays what it is");
        let all = folder.mayhap("check -c s").input(&input).run().ends(0);
        all.prints("4010\n");
        folder.mayhap("dedup --state-any --state s").input(&input).run().ends(0).prints("");
    }
}

#[test]
fn a_filter_that_cannot_insert_is_refused_and_stays() {
    let folder = Folder::new();
    for name in ["fuse", "ribbon"] {
        folder.mayhap(&format!("build -o s --family {name}")).input("a\n").run().ends(0);
        let before = folder.read("s");
        let done = folder.mayhap("dedup --state s").input("b\n").run().ends(2).prints("");
        done.says("mayhap: s: ").says(name).says("bloom").says("table");
        assert!(folder.read("s") == before, "{name}");
    }
}

#[test]
fn a_state_of_another_kind_than_asked_for_is_refused_and_stays() {
    let folder = Folder::new();
    for (made, asked, flag) in [
        ("", "--exact", "--exact"),
        ("", "--window 10", "--window"),
        ("--exact", "--window 10", "--window"),
        ("--exact", "-p 1e-3", "-p"),
        ("--window 10", "--exact", "--exact"),
    ] {
        let _ = fs::remove_file(folder.path("s"));
        folder.mayhap(&format!("dedup --state s {made}")).input("a\n").run().ends(0);
        let before = folder.read("s");
        let done = folder.mayhap(&format!("dedup --state s {asked}")).input("b\n").run().ends(2).prints("");
        assert!(
            done.err.starts_with("mayhap: s: ") && done.err.contains(flag),
            "{made} {asked}: {}",
            done.err
        );
        assert!(folder.read("s") == before, "{made} {asked}");
    }
}

#[test]
fn what_is_no_filter_is_refused_and_stays() {
    let folder = Folder::new();
    fs::create_dir(folder.path("folder")).unwrap();
    folder.write("text", "a\nb\n");
    folder.mayhap("dedup --state s").input("a\n").run().ends(0);
    let mut damaged = folder.read("s");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    folder.write("damaged", &damaged);
    folder.write("short", &damaged[..middle]);
    for name in ["text", "damaged", "short"] {
        let before = folder.read(name);
        let done = folder.mayhap(&format!("dedup --state {name}")).input("b\n").run().ends(2).prints("");
        done.says(&format!("mayhap: {name}: "));
        assert!(folder.read(name) == before, "{name}");
    }
    folder.mayhap("dedup --state folder").input("b\n").run().ends(2).prints("").says("mayhap: folder: ");
    folder
        .mayhap("dedup --state no/such/s")
        .input("b\n")
        .run()
        .ends(2)
        .prints("")
        .says("mayhap: no/such/s: ");
}

#[test]
fn keys_are_those_of_the_options() {
    let folder = Folder::new();
    folder.mayhap("dedup --state s --url").input("HTTP://a.org\n").run().ends(0).prints("HTTP://a.org\n");
    let input = "http://a.org:80/#x\nhttp://b.org\n";
    folder.mayhap("dedup --state s --url").input(input).run().ends(0).prints("http://b.org\n");
    folder.mayhap("dedup --state t -d, -k2").input("1,a\n2,b\n").run().ends(0).prints("1,a\n2,b\n");
    let other = folder.mayhap("dedup --state t -z").input("b\0c\0").run().ends(2).prints("");
    other
        .says("the key is the whole record, and was field 2 between \",\" in earlier runs")
        .says("--state-any-keys");
    folder.mayhap("dedup --state t -d, -k1").input("b,c\n").run().ends(2).says("--state-any-keys");
    folder.mayhap("dedup --state t -z --state-any-keys").input("b\0c\0").run().ends(0).prints("c\0");
    folder.mayhap("dedup --state t -d, -k2").input("1,c\n2,d\n").run().ends(0).prints("2,d\n");
    // The stored spelling is applied; an option that contradicts it is an error.
    folder
        .mayhap("dedup --state s")
        .input("http://B.org/#y\nhttp://c.org\n")
        .run()
        .ends(0)
        .prints("http://c.org\n");
    folder.mayhap("dedup --state s --trim").input("x\n").run().ends(2).says("--trim says otherwise");
    folder.mayhap("dedup --state j --json-key /i").input("{\"i\":1}\n{\"i\":\"1\"}\n").run().ends(0);
    folder
        .mayhap("dedup --state j --json-key /i")
        .input("{\"i\":1.0}\n{\"i\":\"1\"}\n")
        .run()
        .ends(0)
        .prints("");
    folder.mayhap("dedup --state j --state-any-keys").input("1\n").run().ends(2).says("--json-key");
}

// States that are full.

/// 23 of 100,000 new lines were printed, and the rest dropped with status 0.
#[test]
fn a_state_that_is_full_stops_before_anything_is_dropped() {
    let folder = Folder::new();
    folder.mayhap("build -o seen").input(lines("old ", 10)).run().ends(0);
    let before = folder.read("seen");
    let new = lines("new ", 100_000);
    // It was not made for this.
    let done = folder.mayhap("dedup --state seen").input(&new).run().ends(2).prints("");
    done.says("seen: a filter of the family bloom, which dedup did not make").says("--state-any");
    assert!(folder.read("seen") == before);
    // It fills on the way: all that was noted is printed, and remembered.
    let done = folder.mayhap("dedup --state-any --state seen").input(&new).run().ends(2);
    done.says("mayhap: seen: after ")
        .says("the false-positive rate is")
        .says("what was printed is remembered");
    let done = folder.mayhap("info --json seen").run().ends(0).json();
    let now = done["fpr_now"].as_f64().unwrap();
    assert!(now > 0.1 && now < 0.25, "{now}");
    let full = folder.mayhap("dedup --quiet --state-any --state seen").input("x\n").run().ends(2).prints("");
    full.says("seen: is full").says("it was made for 0.01").says("--max-fpr");
    folder.mayhap("dedup --state-any --state seen --dry-run").input("x\n").run().ends(2).prints("");
    // Whoever says so may go on.
    folder.mayhap("dedup --state-any --state seen --max-fpr 0.9").input(lines("x", 5)).run().ends(0);
    folder
        .mayhap("dedup --state-any --state seen --max-fpr 0.001")
        .input("x\n")
        .run()
        .ends(2)
        .says("--max-fpr is");
}

#[test]
fn what_a_filling_state_printed_is_what_it_remembers() {
    let folder = Folder::new();
    for (made, count) in
        [("-n 3", 2000), ("-n 100", 20_000), ("-n 20k", 400_000), ("-n 5 --family blocked", 2000)]
    {
        let new = lines("https://example.org/", count);
        folder.mayhap(&format!("build {made} -o s")).run().ends(0);
        let done = folder.mayhap("dedup --state-any --state s").input(&new).run().ends(2);
        let printed = records(&done.out, b'\n').len();
        assert!(printed > 0 && (printed as u64) < count);
        // Every line that was printed is in, and what came behind is as new as for a filter of that rate.
        folder.mayhap("check -v -c s").input(&done.out).run().ends(1).prints("0\n");
        let state = folder.mayhap("info --json s").run().ends(0).json();
        let (inserted, now) = (state["inserted"].as_u64().unwrap(), state["fpr_now"].as_f64().unwrap());
        // Beyond those that were printed only false positives and repeats were inserted again.
        assert!(
            inserted >= printed as u64 && (inserted as f64) < 1.0 + 1.3 * printed as f64,
            "{made}: {inserted} {printed}"
        );
        let rest = &new.as_bytes()[new.len() / 2..];
        let hits = folder.mayhap("check -c s").input(rest).run();
        let hits: f64 = String::from_utf8(hits.out).unwrap().trim().parse().unwrap();
        let asked = records(rest, b'\n').len() as f64;
        assert!(hits / asked < now + 6.0 * (now / asked).sqrt() + 0.02, "{made}: {hits} of {asked}, {now}");
    }
}

/// A file of a family that dedup makes is a state without a mark, as states of earlier versions are.
#[test]
fn states_carry_a_mark_and_older_ones_are_known_by_their_family() {
    let folder = Folder::new();
    folder.mayhap("dedup --state s").input("a\n").run().ends(0);
    folder.mayhap("info s").run().ends(0).shows("mayhap dedup, as a state");
    assert_eq!(folder.mayhap("info --json s").run().ends(0).json()["state"], true);
    let mut table = mayhap::Table::new(1000, 1e-9).unwrap();
    table.insert("a").unwrap();
    folder.write("old", table.to_bytes());
    folder.mayhap("dedup --state old").input("a\nb\n").run().ends(0).prints("b\n");
    folder.mayhap("dedup --state old --json-key /x").input("{\"x\":\"b\"}\n").run().ends(0).prints("");
    for family in ["exact", "windowed", "table"] {
        folder.mayhap(&format!("build --family {family} -n 100 -o s")).input("a\n").run().ends(0);
        folder.mayhap("dedup --state s").input("a\nb\n").run().ends(0).prints("b\n");
    }
    folder.mayhap("build --family cuckoo -n 100 -o s").input("a\n").run().ends(0);
    folder.mayhap("dedup --state s").input("a\nb\n").run().ends(2).says("--state-any");
}

/// Warnings stood on the same stream as the JSON.
#[test]
fn the_report_stays_json_with_warnings() {
    let folder = Folder::new();
    folder.mayhap("build -n 1000 -p 1e-3 -o s").input(lines("", 1000)).run().ends(0);
    let line = "dedup --state-any --state s --stats=json";
    let done = folder.mayhap(line).input(lines("x", 300)).run().ends(0);
    let report: serde_json::Value = serde_json::from_str(&done.err).expect("nothing but JSON");
    let warnings = report["warnings"].as_array().unwrap();
    assert!(warnings.len() == 1 && warnings[0].as_str().unwrap().contains("the false-positive rate is"));
}

#[test]
fn a_header_is_printed_in_every_run_and_is_no_key() {
    let folder = Folder::new();
    folder.mayhap("dedup --header --state s").input("h\na\n").run().ends(0).prints("h\na\n");
    folder.mayhap("dedup --header --state s").input("h\na\nb\nh\n").run().ends(0).prints("h\nb\nh\n");
    folder.mayhap("dedup --header --state s").input("h\na\nb\nc\nh\n").run().ends(0).prints("h\nc\n");
}

#[test]
fn a_dry_run_prints_what_is_new_and_changes_nothing() {
    let folder = Folder::new();
    for options in ["", "--exact", "--window 100"] {
        folder
            .mayhap(&format!("dedup --dry-run --state s {options}"))
            .input("a\na\n")
            .run()
            .ends(0)
            .prints("a\n");
        assert!(!folder.path("s").exists(), "{options}");
        folder.mayhap(&format!("dedup --state s {options}")).input("a\n").run().ends(0).prints("a\n");
        let (before, changed) = (folder.read("s"), folder.path("s").metadata().unwrap().modified().unwrap());
        for _ in 0..2 {
            let done = folder.mayhap("dedup --dry-run --state s").input("b\na\nb\nc\n").run().ends(0);
            done.prints("b\nc\n");
            let done =
                folder.mayhap("dedup --dry-run --repeated --state s").input("b\na\nb\nc\n").run().ends(0);
            done.prints("a\nb\n");
        }
        assert!(folder.read("s") == before, "{options}");
        assert_eq!(folder.path("s").metadata().unwrap().modified().unwrap(), changed, "{options}");
        assert_eq!(folder.names(), ["s"]);
        fs::remove_file(folder.path("s")).unwrap();
    }
}

// What goes wrong.

/// Whatever fails, the old state stays; and where there was none, there is none.
#[cfg(target_os = "linux")]
#[test]
fn a_failure_leaves_the_old_state() {
    let folder = Folder::new();
    folder.write("good", lines("", 300_000));
    folder.write("bad", [lines("", 300_000), "x\n".into()].concat());
    fs::create_dir(folder.path("folder")).unwrap();
    folder.mayhap("dedup --as u64 --state old").input("1\n2\n").run().ends(0);
    let before = folder.read("old");
    let names = folder.names();
    for state in ["old", "new"] {
        let line = |files: &str| format!("dedup --as u64 --state {state} {files}");
        folder.mayhap(&line("bad")).run().ends(2).says("bad: line 300001: ");
        folder.mayhap(&line("good absent")).run().ends(2).says("absent: cannot open: ");
        folder.mayhap(&line("good folder")).run().ends(2).says("folder: is a folder");
        let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        folder.mayhap(&line("good")).output(full()).run().ends(2).says("standard output");
        folder.mayhap(&line("")).input("7\n").output(full()).run().ends(2).says("standard output");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        folder.mayhap(&line("good")).output(writer).run().ends(0).stays_quiet();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        folder.mayhap(&line("")).input("7\n").output(writer).run().ends(0).stays_quiet();
        assert!(folder.read("old") == before, "{state}");
        assert_eq!(folder.names(), names, "{state}");
    }
}

#[cfg(unix)]
#[test]
fn mode_and_symbolic_link_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    folder.mayhap("dedup --state data/s").input("a\n").run().ends(0);
    fs::set_permissions(folder.path("data/s"), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("data/s", folder.path("link")).unwrap();
    folder.mayhap("dedup --state link").input("a\nb\n").run().ends(0).prints("b\n");
    assert!(folder.path("link").is_symlink());
    assert_eq!(folder.path("data/s").metadata().unwrap().permissions().mode() & 0o7777, 0o640);
    folder.mayhap("dedup --state data/s").input("a\nb\nc\n").run().ends(0).prints("c\n");
}

#[cfg(unix)]
mod signals {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Child;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::runner::wait;

    fn send(child: &Child, signal: Signal) {
        kill_process(Pid::from_child(child), signal).expect("the program runs");
    }

    /// Whether we, and so the program, were started with a signal ignored: a job in the background ignores SIGINT.
    fn is_ignored(signal: Signal) -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        mask >> (signal.as_raw() - 1) & 1 == 1
    }

    /// Times between nothing and somewhat more than a run takes.
    fn moments(rounds: u32, run: Duration) -> impl Iterator<Item = Duration> {
        let mut random = Random::new(1);
        (0..rounds).map(move |_| run * (random.next_u64() % 1200) as u32 / 1000)
    }

    #[test]
    fn kill_leaves_the_old_state_or_the_new_one() {
        let folder = Folder::new();
        folder.write("old keys", lines("old ", 20_000));
        folder.write("new keys", lines("new ", 300_000));
        folder
            .mayhap("dedup --state old")
            .arg("old keys")
            .output(File::create(folder.path("out")).unwrap())
            .run();
        let names = [folder.names(), vec!["s".into()]].concat();
        let start = || {
            fs::copy(folder.path("old"), folder.path("s")).unwrap();
            let out = File::create(folder.path("out")).unwrap();
            folder.mayhap("dedup --state s").arg("new keys").output(out).start()
        };
        let started = Instant::now();
        assert!(wait(&mut start(), "a whole run").success());
        let run = started.elapsed();
        let (mut killed, mut saved) = (0, 0);
        for moment in moments(30, run) {
            let mut child = start();
            std::thread::sleep(moment);
            // It may have ended by itself.
            let _ = child.kill();
            killed += u32::from(wait(&mut child, "a killed run").signal() == Some(9));
            folder.mayhap("info --verify s").run().ends(0);
            let counted = |keys: &str| {
                let done = folder.mayhap("check -c s").arg(keys).run();
                String::from_utf8(done.out).unwrap().trim().parse::<u64>().expect("a number")
            };
            assert_eq!(counted("old keys"), 20_000, "after {moment:?}");
            let new = counted("new keys");
            assert!(
                new == 0 || new == 300_000,
                "{new} keys after {moment:?}: neither the old state nor the new one"
            );
            saved += u32::from(new > 0);
            let left: Vec<String> = folder.names().into_iter().filter(|name| !names.contains(name)).collect();
            assert!(left.len() <= 1, "{left:?} after one kill");
            left.iter().for_each(|name| fs::remove_file(folder.path(name)).unwrap());
        }
        println!("{killed} of 30 were killed, {saved} had saved, a run takes {run:?}");
        assert!(killed > 0, "the kills come too late to say anything: {killed}, {saved}");
        for moment in moments(5, run) {
            let _ = fs::remove_file(folder.path("s"));
            let out = File::create(folder.path("out")).unwrap();
            let mut child = folder.mayhap("dedup --state s").arg("new keys").output(out).start();
            std::thread::sleep(moment);
            let _ = child.kill();
            wait(&mut child, "a killed run without a state before it");
            // The file that is locked may be there, and then it is empty.
            if folder.path("s").exists() {
                folder.mayhap("info --verify s").run().ends(0);
                let count = folder.mayhap("check -c s").arg("new keys").run().out;
                assert!(
                    count == b"0\n" || count == b"300000\n",
                    "{} keys after {moment:?}",
                    count.escape_ascii()
                );
            }
        }
        fs::copy(folder.path("old"), folder.path("s")).unwrap();
        // Nobody holds a lock any more.
        folder.mayhap("dedup --state s").input("old 1\nx\n").run().ends(0).prints("x\n").stays_quiet();
    }

    /// What was printed before the signal is in the state, and what was not printed is not.
    #[test]
    fn a_run_that_is_told_to_end_saves_what_it_printed() {
        let folder = Folder::new();
        let input = lines("https://example.org/", 300_000);
        folder.write("input", &input);
        let start = || {
            let _ = fs::remove_file(folder.path("s"));
            folder.mayhap("dedup --state s input").output(File::create(folder.path("out")).unwrap()).start()
        };
        let started = Instant::now();
        assert!(wait(&mut start(), "a whole run").success());
        let run = started.elapsed();
        for (round, moment) in moments(12, run).enumerate() {
            let (signal, code) = if round % 2 == 0 { (Signal::TERM, 143) } else { (Signal::INT, 130) };
            let mut child = start();
            std::thread::sleep(moment);
            if child.try_wait().unwrap().is_none() {
                send(&child, signal);
            }
            let status = wait(&mut child, "a run that was told to end");
            let printed = folder.read("out");
            match status.code() {
                Some(0) => assert!(printed == input.as_bytes(), "after {moment:?}"),
                // The next test has one that surely comes in time.
                Some(found) => assert_eq!(found, code, "after {moment:?}"),
                // So early that it did not listen yet.
                None => assert!(printed.is_empty(), "after {moment:?}: {status:?}"),
            }
            assert!(input.as_bytes().starts_with(&printed), "after {moment:?}");
            let rest = folder.mayhap("dedup --state s input").run().ends(0);
            assert!(rest.out == input.as_bytes()[printed.len()..], "after {moment:?}: lost or printed twice");
        }
    }

    #[test]
    fn a_run_that_waits_for_input_saves_at_once_when_told_to_end() {
        let folder = Folder::new();
        for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
            if is_ignored(signal) {
                println!("{signal:?} is ignored here");
                continue;
            }
            let _ = fs::remove_file(folder.path("s"));
            let mut child = folder.mayhap("dedup --state s").start();
            let mut input = child.stdin.take().unwrap();
            input.write_all(b"a\nb\na\n").unwrap();
            let mut output = BufReader::new(child.stdout.take().unwrap());
            let mut printed = String::new();
            output.read_line(&mut printed).unwrap();
            output.read_line(&mut printed).unwrap();
            assert_eq!(printed, "a\nb\n");
            send(&child, signal);
            // The input stays open.
            let status = wait(&mut child, "a waiting run");
            assert_eq!(status.code(), Some(code), "{status:?}");
            folder.mayhap("dedup --state s").input("a\nb\nc\n").run().ends(0).prints("c\n");
            drop(input);
        }
    }

    /// Ctrl-C is how a stream ends, and there was no report.
    #[test]
    fn the_report_comes_when_told_to_end() {
        let folder = Folder::new();
        if is_ignored(Signal::INT) {
            return;
        }
        for options in
            ["--stats=json", "--stats=json --state s", "--stats=json --exact", "--stats=json --threads 1"]
        {
            let mut child = folder.mayhap(&format!("dedup {options}")).start();
            let mut input = child.stdin.take().unwrap();
            input.write_all(b"a\nb\na\n").unwrap();
            let mut output = BufReader::new(child.stdout.take().unwrap());
            let mut printed = String::new();
            output.read_line(&mut printed).unwrap();
            output.read_line(&mut printed).unwrap();
            send(&child, Signal::INT);
            assert_eq!(wait(&mut child, "a stream").code(), Some(130));
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            let report: serde_json::Value = serde_json::from_str(&said).expect("nothing but JSON");
            assert_eq!(
                (&report["read"], &report["printed"], &report["dropped"]),
                (&3.into(), &2.into(), &1.into())
            );
            assert_eq!(report["stopped_by_signal"], 2);
            drop(input);
        }
    }

    #[test]
    fn a_second_process_says_that_it_waits_and_goes_on() {
        let folder = Folder::new();
        folder.mayhap("dedup --state s").input("0\n").run().ends(0);
        let mut first = folder.mayhap("dedup --state s").start();
        let mut input = first.stdin.take().unwrap();
        input.write_all(b"a\n").unwrap();
        let mut output = BufReader::new(first.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "a\n");

        let mut second = folder.mayhap("dedup --state s").start();
        second.stdin.take().unwrap().write_all(b"0\na\nb\nc\n").unwrap();
        let mut errors = BufReader::new(second.stderr.take().unwrap());
        let mut said = String::new();
        errors.read_line(&mut said).unwrap();
        assert_eq!(said, "mayhap: s: waiting for another process that uses it\n");
        assert!(second.try_wait().unwrap().is_none(), "it waits");
        input.write_all(b"b\n").unwrap();
        drop(input);
        assert!(wait(&mut first, "the first").success());
        assert!(wait(&mut second, "the second").success());
        let mut printed = String::new();
        second.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        assert_eq!(printed, "c\n");
    }
}

// Several at once.

/// Whoever comes first: together they print each key once.
#[test]
fn processes_at_once_share_the_keys() {
    let folder = Folder::new();
    for round in 0..6u64 {
        let there = round % 2 == 0;
        let _ = fs::remove_file(folder.path("s"));
        if there {
            folder.mayhap("dedup --state s").input(lines("https://example.org/", 1000)).run().ends(0);
        }
        let inputs: Vec<Vec<u8>> =
            (0..4).map(|seed| random_lines(10 * round + seed, 20_000, 30_000)).collect();
        let mut children = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            folder.write(&format!("input {number}"), input);
            let out = File::create(folder.path(&format!("out {number}"))).unwrap();
            let call = folder.mayhap("dedup --state s").arg(format!("input {number}"));
            children.push(call.output(out).start());
        }
        for child in &mut children {
            assert!(runner::wait(child, "one of four").success());
        }
        let outputs: Vec<Vec<u8>> = (0..4).map(|number| folder.read(&format!("out {number}"))).collect();
        let printed: Vec<&[u8]> = outputs.iter().flat_map(|output| records(output, b'\n')).collect();
        let together: HashSet<&[u8]> = printed.iter().copied().collect();
        assert_eq!(together.len(), printed.len(), "a key was printed twice");
        let before = if there { lines("https://example.org/", 1000) } else { String::new() };
        let before: HashSet<&[u8]> = records(before.as_bytes(), b'\n').into_iter().collect();
        let wanted: HashSet<&[u8]> = inputs.iter().flat_map(|input| records(input, b'\n')).collect();
        assert!(together == wanted.difference(&before).copied().collect(), "a key was lost or made up");
        // Each in the order of its input.
        for (input, output) in inputs.iter().zip(&outputs) {
            let kept: HashSet<&[u8]> = records(output, b'\n').into_iter().collect();
            let first = firsts(input);
            let kept = records(&first, b'\n').into_iter().filter(|record| kept.contains(record));
            assert!(joined(kept, b'\n') == *output);
        }
    }
}

// Faults of earlier versions.

#[test]
fn what_is_no_filter_is_not_read_to_its_end() {
    let folder = Folder::new();
    // As large as no memory is.
    File::create(folder.path("sparse")).unwrap().set_len(1 << 42).unwrap();
    folder.mayhap("dedup --state sparse").input("a\n").run().ends(2).prints("").says("sparse: ");
    #[cfg(unix)]
    folder.mayhap("dedup --state /dev/full").input("a\n").run().ends(2).says("it is no regular file");
}

#[test]
fn an_empty_state_that_a_killed_run_left_may_become_another_kind() {
    let folder = Folder::new();
    folder.mayhap("dedup --state s").input("").run().ends(0);
    assert_eq!(family(&folder, "s"), "table");
    folder.mayhap("dedup --exact --state s").input("a\n").run().ends(0).prints("a\n");
    assert_eq!(family(&folder, "s"), "exact");
}

/// It waited for the end of the run that held the state.
#[test]
fn a_dry_run_sees_the_state_of_the_last_run_that_has_ended() {
    use std::io::{Read, Write};
    let folder = Folder::new();
    folder.mayhap("dedup --state s").input("a\n").run().ends(0);
    let mut first = folder.mayhap("dedup --state s").start();
    let (mut input, mut output) = (first.stdin.take().unwrap(), first.stdout.take().unwrap());
    input.write_all(b"b\n").unwrap();
    let mut printed = [0; 2];
    // When it prints, it holds the state.
    output.read_exact(&mut printed).unwrap();
    let dry = || folder.mayhap("dedup --dry-run --state s").input("a\nb\nc\n").run().ends(0);
    dry().prints("b\nc\n");
    drop(input);
    assert!(runner::wait(&mut first, "the first").success());
    dry().prints("c\n");
}

#[cfg(unix)]
#[test]
fn a_signal_that_the_caller_ignores_is_ignored_and_a_second_one_ends_it() {
    use std::io::{Read, Write};

    use rustix::process::{Pid, Signal, kill_process};
    let folder = Folder::new();
    let mut child = folder.sh("trap '' HUP; exec $MAYHAP dedup --state s").start();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut line = [0; 2];
    for text in [b"a\n", b"b\n"] {
        input.write_all(text).unwrap();
        output.read_exact(&mut line).unwrap();
        assert_eq!(&line, text);
        kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    }
    drop(input);
    assert!(runner::wait(&mut child, "ignoring").success());

    // Nobody reads what it prints, so that it cannot end by itself.
    folder.write("many", lines("a line that takes some room ", 200_000));
    let mut child = folder.mayhap("dedup --state s many").start();
    // Up to two minutes: a deadline for a program that hangs.
    let ended = (0..12_000).any(|_| {
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        std::thread::sleep(std::time::Duration::from_millis(10));
        child.try_wait().unwrap().is_some()
    });
    assert!(ended, "it is still there");
}
