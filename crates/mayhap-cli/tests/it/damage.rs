//! Damaged filter files: every command that asks them, or writes them again, refuses them and says so.

use crate::runner::{Folder, lines};

/// Where the payload starts.
const PAGE: usize = 4096;

/// A family, how its files are built, and what else its commands need to be told.
const FAMILIES: [(&str, &str); 8] = [
    ("bloom", "-n 20000"),
    ("blocked", "--family blocked -n 20000"),
    ("counting", "--family counting -n 20000"),
    ("cuckoo", "--family cuckoo -n 20000"),
    ("exact", "--exact"),
    ("table", "--family table -n 20000"),
    ("scalable", "--family scalable -n 20000"),
    ("expanding", "--family expanding -n 20000"),
];

/// `a` with 20,000 keys, of which a bad sector has taken 64 bytes, and `b` with one.
fn damaged(build: &str) -> Folder {
    let folder = Folder::new();
    folder.write("k", lines("", 20_000));
    folder.mayhap(&format!("build {build} -o a k")).run().ends(0);
    folder.mayhap(&format!("build {build} -o b")).input("zz\n").run().ends(0);
    zero(&folder, "a", PAGE + 2000);
    folder
}

fn zero(folder: &Folder, name: &str, at: usize) {
    let mut bytes = folder.read(name);
    bytes[at..at + 64].fill(0);
    folder.write(name, bytes);
}

/// The command fails, names the file and says that it is damaged; no file has come or changed.
#[track_caller]
fn is_refused(folder: &Folder, command: &str) {
    let state = || folder.names().into_iter().map(|name| (folder.read(&name), name)).collect::<Vec<_>>();
    let before = state();
    folder.mayhap(command).input("1\n").run().ends(2).prints("").says("mayhap: a: damaged: the checksum");
    assert!(state() == before, "{command} changed a file");
}

/// F2: 347 keys were denied under a good checksum.
#[test]
fn merge_fold_and_convert_gave_damage_a_good_checksum() {
    for (family, build) in FAMILIES {
        let folder = damaged(build);
        for more in ["", " --no-mmap"] {
            is_refused(&folder, &format!("merge -o o a b{more}"));
            is_refused(&folder, &format!("merge -o o b a{more}"));
            is_refused(&folder, &format!("merge -o b a b{more}"));
            is_refused(&folder, &format!("convert --to mayhap -o o a{more}"));
        }
        if family == "bloom" || family == "exact" {
            is_refused(&folder, "merge --intersect -o o b a");
        }
        if family == "exact" {
            is_refused(&folder, "merge --minus -o o b a");
        }
        if family == "bloom" {
            is_refused(&folder, "fold -p 0.5 -o o a");
        }
        is_refused(&folder, "add a");
    }
}

/// B5: "certainly not in" was said of keys that were in, with status 1.
#[test]
fn check_count_label_and_test_answered_from_damaged_files() {
    for (_, build) in FAMILIES {
        let folder = damaged(build);
        for command in ["check -c a k", "check a k", "check -q a --key 1", "check --which b a k", "test a k"]
        {
            is_refused(&folder, command);
        }
    }
    let folder = damaged("--counts -n 20000");
    is_refused(&folder, "count a k");
    is_refused(&folder, "merge -o o a b");
    let folder = damaged("--family counting -n 20000");
    is_refused(&folder, "count a k");
    is_refused(&folder, "remove a k");
    let folder = Folder::new();
    folder.write("k", lines("", 20_000));
    folder.write("l", lines("l", 100));
    folder.mayhap("build --label x=k --label y=l -o a").run().ends(0);
    zero(&folder, "a", PAGE + 2000);
    is_refused(&folder, "label a k");
}

/// The header alone is what `info` looks at, and it says so; with --verify it is an error.
#[test]
fn info_looks_at_the_header_of_a_damaged_file() {
    let folder = damaged("-n 20000");
    folder.mayhap("info a").run().ends(0).shows("header-ok");
    is_refused(&folder, "info --verify a");
}

/// A file of 16 MiB and more is changed in place; its checksum was renewed over the damage.
#[test]
fn add_in_place_renewed_the_checksum_of_a_damaged_file() {
    let folder = Folder::new();
    folder.mayhap("build -n 15M -o a").input(lines("", 100_000)).run().ends(0);
    assert!(folder.read("a").len() > PAGE + (16 << 20));
    // Two bytes change places, so that as many bits are set as before: no count can tell.
    let mut bytes = folder.read("a");
    let (one, other) = {
        let mut set = (PAGE..bytes.len()).filter(|&at| bytes[at] != 0);
        let one = set.next().expect("a set bit");
        (one, set.find(|&at| bytes[at] != bytes[one]).expect("another byte"))
    };
    bytes.swap(one, other);
    folder.write("a", &bytes);
    is_refused(&folder, "add a");
    bytes.swap(one, other);
    folder.write("a", &bytes);
    folder.mayhap("add a").input("1\nnew\n").run().ends(0);
    folder.mayhap("info --verify a").run().ends(0);
}

/// Without a checksum nothing can be verified, so that the result must not look as if it were.
#[test]
fn a_file_without_a_checksum_gets_none_by_merge_fold_or_convert() {
    for (flag, state) in [(4, "unsummed"), (2, "interrupted")] {
        let folder = Folder::new();
        folder.mayhap("build -n 20000 -o a").input(lines("", 100)).run().ends(0);
        folder.mayhap("build -n 20000 -o b").input("zz\n").run().ends(0);
        let mut bytes = folder.read("a");
        bytes[8] |= flag;
        let sum = mayhap::wire::checksum(&bytes[..PAGE - 8]);
        bytes[PAGE - 8..PAGE].copy_from_slice(&sum.to_le_bytes());
        folder.write("a", bytes);
        assert_eq!(folder.mayhap("info --json a").run().ends(0).json()["checksum"], state);
        for command in
            ["merge -o o a b", "merge -o o b a", "fold -p 0.5 -o o a", "convert --to mayhap -o o a"]
        {
            folder.mayhap(command).run().ends(0).says("mayhap: warning: a: it has no checksum");
            assert_eq!(
                folder.mayhap("info --json o").run().ends(0).json()["checksum"],
                "unsummed",
                "{command}"
            );
            folder.mayhap("check -c o").input(lines("", 100)).run().ends(0).prints("100\n");
        }
        // Keys that are added give a small file a new checksum, as they always did.
        folder.mayhap("add a").input("new\n").run().ends(0);
        assert_eq!(folder.mayhap("info --json --verify a").run().ends(0).json()["checksum"], "ok");
        folder.mayhap("merge -o o a b").run().ends(0);
        assert_eq!(folder.mayhap("info --json --verify o").run().ends(0).json()["checksum"], "ok");
    }
}
