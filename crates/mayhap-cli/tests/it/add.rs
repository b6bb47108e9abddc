//! `mayhap add`: keys into a file that exists, alone and among others.

use std::io::{Read, Write};
use std::time::Duration;

use crate::runner::{Folder, lines};
use mayhap::wire::{Header, mark_writing};

/// Payloads from 16 MiB on are changed where they lie.
const LARGE: &str = "--bits 140M --probes 3";

#[test]
fn added_keys_are_found_and_the_old_ones_too() {
    let folder = Folder::new();
    folder.mayhap("build -o f -n 100").input("a\nb\n").run().ends(0);
    folder
        .mayhap("add f")
        .input("b\nc\nd\n")
        .run()
        .ends(0)
        .prints("")
        .says_only("mayhap: f: 3 keys added, 2 of them new");
    folder.mayhap("check f").input("a\nb\nc\nd\ne\n").run().ends(0).prints("a\nb\nc\nd\n");
    assert_eq!(folder.mayhap("info --json f").run().ends(0).json()["inserted"], 5);
    folder.mayhap("add --quiet f").input("e\n").run().ends(0).stays_quiet();
    folder.mayhap("add f").run().ends(0).says_only("mayhap: f: 0 keys added");
    assert_eq!(folder.names(), ["f"]);
}

#[test]
fn every_family_takes_keys() {
    let folder = Folder::new();
    for (family, kind) in [("bloom", ""), ("exact", ""), ("bitmap", "--as u64"), ("roaring", "--as u64")] {
        folder.mayhap(&format!("build -o f --family {family} {kind} -n 1000")).input("1\n").run().ends(0);
        folder.mayhap(&format!("add f {kind}")).input("2\n999\n").run().ends(0);
        folder.mayhap(&format!("check f {kind}")).input("1\n2\n3\n999\n").run().ends(0).prints("1\n2\n999\n");
        folder.mayhap("info --verify f").run().ends(0);
    }
    // The file says that its keys are integers.
    folder.mayhap("add f").input("3\n").run().ends(0);
    folder.mayhap("check f").input("3\n").run().ends(0).prints("3\n");
    folder.mayhap("add f").input("x\n").run().ends(2).says("\"x\" is not a whole number");
}

#[test]
fn a_full_filter_refuses_all_and_keeps_what_it_has() {
    let folder = Folder::new();
    folder.mayhap("build -o f --removable -n 1000").input(lines("", 900)).run().ends(0);
    let before = folder.read("f");
    folder
        .mayhap("add f")
        .input(lines("more-", 1000))
        .run()
        .ends(2)
        .prints("")
        .says("of 1056 slots are taken and there is no room for this key; it was made for 1000 keys; build a larger one");
    assert!(folder.read("f") == before);
    folder.mayhap("add f").input(lines("more-", 100)).run().ends(0);
    folder.mayhap("check -c f").input(lines("", 900)).run().ends(0).prints("900\n");
}

#[test]
fn an_overfull_filter_is_warned_about() {
    let folder = Folder::new();
    folder.mayhap("build -o f -n 10").input("a\n").run().ends(0);
    folder
        .mayhap("add f")
        .input(lines("", 1000))
        .run()
        .ends(0)
        .says("and was made for 10; its false-positive rate");
}

#[test]
fn a_bad_record_in_the_middle_changes_nothing() {
    let folder = Folder::new();
    let mut keys = lines("", 100_000);
    keys.push_str("x\n");
    keys.push_str(&lines("", 1000));
    for size in ["-n 1000", LARGE] {
        folder.mayhap(&format!("build --as u64 -o f {size}")).input("1\n2\n").run().ends(0);
        let before = folder.read("f");
        folder.mayhap("add --as u64 f").input(&keys).run().ends(2).says_only(
            "mayhap: (standard input): line 100001: \"x\" is not a whole number from 0 to 18446744073709551615",
        );
        assert!(folder.read("f") == before, "{size}");
        assert_eq!(folder.names(), ["f"]);
    }
}

#[test]
fn a_key_without_a_place_changes_nothing() {
    let folder = Folder::new();
    folder.mayhap("build -o f --family bitmap --as u64 -n 100").input("1\n").run().ends(0);
    let before = folder.read("f");
    folder
        .mayhap("add f --as u64")
        .input("5\n100\n")
        .run()
        .ends(2)
        .says("mayhap: f: 100 has no place in a bitmap of the integers below 100");
    assert!(folder.read("f") == before);
}

#[test]
fn what_is_no_filter_is_named() {
    let folder = Folder::new();
    folder.write("text", "a\n");
    folder.mayhap("add text").run().ends(2).says("mayhap: text: truncated: magic takes 4 bytes, 2 are there");
    folder.mayhap("add absent").run().ends(2).says("mayhap: absent: cannot open: ");
    folder.mayhap("build -o f").input("a\n").run().ends(0);
    folder.mayhap("add f absent").run().ends(2).says("mayhap: absent: cannot open: ");
}

/// Writers at the same time, many rounds. Each must find its lock on the file that the name means.
fn writers_lose_no_key(size: &str, rounds: u64, writers: u64) {
    const EACH: u64 = 50;
    let folder = Folder::new();
    folder.mayhap(&format!("build -o f {size}")).run().ends(0);
    for round in 0..rounds {
        std::thread::scope(|scope| {
            for writer in 0..writers {
                let call = folder.mayhap("add f").input(lines(&format!("{round}-{writer}-"), EACH));
                scope.spawn(move || call.run().ends(0));
            }
        });
    }
    let all: String = (0..rounds)
        .flat_map(|round| (0..writers).map(move |writer| lines(&format!("{round}-{writer}-"), EACH)))
        .collect();
    folder.mayhap("check -v f").input(&all).run().ends(1).prints("");
    let info = folder.mayhap("info --json --verify f").run().ends(0).json();
    assert_eq!(info["inserted"], rounds * writers * EACH);
    assert_eq!(info["checksum"], "ok");
    assert_eq!(folder.names(), ["f"]);
}

#[test]
fn writers_of_a_small_file_lose_no_key() {
    writers_lose_no_key("-n 100k -p 1e-6", 40, 2);
    writers_lose_no_key("-n 100k -p 1e-6", 10, 8);
    writers_lose_no_key("--exact", 20, 3);
}

#[test]
fn writers_of_a_large_file_lose_no_key() {
    writers_lose_no_key(LARGE, 15, 2);
    writers_lose_no_key(LARGE, 3, 5);
}

#[cfg(unix)]
#[test]
fn small_files_are_replaced_and_large_ones_changed_in_place() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new();
    let inode = || folder.path("f").metadata().unwrap().ino();
    for (size, stays) in [("-n 1000", false), (LARGE, true)] {
        folder.mayhap(&format!("build -o f {size}")).input("a\n").run().ends(0);
        // Held open, so that the number is not given to the next file.
        let (before, _held) = (inode(), std::fs::File::open(folder.path("f")).unwrap());
        folder.mayhap("add f").input("b\n").run().ends(0);
        assert_eq!(inode() == before, stays, "{size}");
        folder.mayhap("check f").input("a\nb\nc\n").run().ends(0).prints("a\nb\n");
    }
}

#[test]
fn readers_see_whole_files_while_writers_work() {
    let folder = Folder::new();
    for size in ["-n 100k", LARGE] {
        folder.mayhap(&format!("build -o f {size}")).input(lines("old-", 1000)).run().ends(0);
        std::thread::scope(|scope| {
            let writers: Vec<_> =
                (0..6).map(|i| folder.mayhap("add f").input(lines(&format!("new-{i}-"), 1000))).collect();
            scope.spawn(|| writers.into_iter().for_each(|call| drop(call.run().ends(0))));
            for _ in 0..10 {
                folder
                    .mayhap("check -c f")
                    .input(lines("old-", 1000))
                    .run()
                    .ends(0)
                    .prints("1000\n")
                    .stays_quiet();
                folder.mayhap("info --verify f").run().ends(0);
            }
        });
    }
}

#[test]
fn a_reader_that_waits_for_input_keeps_no_writer_waiting() {
    let folder = Folder::new();
    for size in ["-n 100k", LARGE] {
        folder.mayhap(&format!("build -o f {size}")).input("a\n").run().ends(0);
        let mut reader = folder.mayhap("check f").start();
        let (mut input, mut output) = (reader.stdin.take().unwrap(), reader.stdout.take().unwrap());
        input.write_all(b"a\n").unwrap();
        output.read_exact(&mut [0; 2]).unwrap();
        folder.mayhap("add f").input("b\n").run().ends(0);
        drop(input);
        assert!(reader.wait().unwrap().success());
    }
}

#[test]
fn a_writer_killed_at_any_moment_loses_no_old_key() {
    let folder = Folder::new();
    for size in ["-n 100k --bits 20M", LARGE] {
        folder.mayhap(&format!("build -o f {size}")).input(lines("old-", 1000)).run().ends(0);
        let keys = folder.write("keys", lines("new-", 20_000));
        for delay in 0..20 {
            let mut child = folder.mayhap("add f").arg(&keys).start();
            std::thread::sleep(Duration::from_millis(2 * delay));
            child.kill().unwrap();
            child.wait().unwrap();
            folder
                .mayhap("check -c f")
                .input(lines("old-", 1000))
                .run()
                .ends(0)
                .prints("1000\n")
                .stays_quiet();
        }
        folder.mayhap("add f keys").run().ends(0);
        folder.mayhap("check -c f keys").run().ends(0).prints("20000\n");
        assert_eq!(folder.mayhap("info --json --verify f").run().ends(0).json()["checksum"], "ok");
    }
}

#[test]
fn an_interrupted_update_is_told_and_repaired_by_the_next() {
    let folder = Folder::new();
    for size in ["-n 1000", LARGE] {
        folder.mayhap(&format!("build -o f {size}")).input(lines("old-", 1000)).run().ends(0);
        let mut bytes = folder.read("f");
        let header = Header::length(&bytes).unwrap();
        mark_writing(&mut bytes[..header]);
        // Some of a key's bits had been set by the one who died.
        bytes[header + 5] |= 0x10;
        folder.write("f", bytes);

        let info = folder.mayhap("info --json f").run().ends(0).json();
        assert_eq!((&info["checksum"], &info["inserted"]), (&"interrupted".into(), &serde_json::Value::Null));
        folder.mayhap("info f").run().ends(0).shows("interrupted (a writer died; no key is lost");
        folder.mayhap("info --verify f").run().ends(0).shows("interrupted");
        folder.mayhap("check -c f").input(lines("old-", 1000)).run().ends(0).prints("1000\n");

        folder.mayhap("add f").input("new\n").run().ends(0);
        folder.mayhap("info f").run().ends(0).shows("checksum      header-ok");
        folder.mayhap("info --verify f").run().ends(0).shows("checksum      ok");
        folder.mayhap("check -c f").input(lines("old-", 1000) + "new\n").run().ends(0).prints("1001\n");
    }
}

/// Families that keep what they hold in cells have no room some way beyond their capacity.
#[test]
fn a_full_filter_is_left_as_it_is() {
    let folder = Folder::new();
    folder.mayhap("build -o f --family dleft -n 10 -p 1e-6").input(lines("old-", 10)).run().ends(0);
    let before = folder.read("f");
    let full = "of 32 slots are taken and there is no room for this key; it was made for 10 keys; build a larger one";
    folder.mayhap("add f").input(lines("new-", 100)).run().ends(2).prints("").says(full);
    assert!(folder.read("f") == before);
    folder.mayhap("build -o g --family dleft -n 10").input(lines("new-", 100)).run().ends(2).says(full);
    folder.mayhap("build -o g --family dleft -n 10 -p 1e-6").input(lines("new-", 24)).run().ends(0);
    folder
        .mayhap("merge -o all f g")
        .run()
        .ends(2)
        .says("the keys of both do not fit: the filter is full: 32 of 32 slots are taken");
    assert_eq!(folder.names(), ["f", "g"]);
    folder.mayhap("check -c f").input(lines("old-", 10)).run().ends(0).prints("10\n");
}
