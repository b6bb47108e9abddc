//! Filters of more than 2^32 bits: they open at once and answer right.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::runner::{Done, Folder, lines};
use mayhap::wire::{PAGE, checksum};
use mayhap::{Bloom, Hashing, positions};

const PROBES: u32 = 3;

/// A Bloom filter of so many bits that holds some keys, as a sparse file: the header of a tiny filter
/// with the numbers of a large one (`docs/format.md` tells where they stand), and single bits.
fn write_sparse(path: &Path, bits: u64, keys: &str) {
    let mut header = Bloom::with_bits(64, PROBES).unwrap().to_bytes();
    header.truncate(PAGE);
    let payload = bits.div_ceil(64) * 8;
    let mut ones = 0;
    let mut file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len(PAGE as u64 + payload).unwrap();
    for key in keys.lines() {
        for position in positions(Hashing::default().digest(key.as_bytes()), PROBES, bits) {
            let (place, mut byte) = (SeekFrom::Start(PAGE as u64 + position / 8), [0]);
            file.seek(place).and_then(|_| file.read_exact(&mut byte)).unwrap();
            ones += u64::from(byte[0] >> (position % 8) & 1 == 0);
            byte[0] |= 1 << (position % 8);
            file.seek(place).and_then(|_| file.write_all(&byte)).unwrap();
        }
    }
    let calls = keys.lines().count() as u64;
    // Flags (4: there is no payload checksum), payload length, insert calls, set bits, bits, capacity.
    for (at, value) in [(64, payload), (80, calls), (88, ones), (96, bits), (112, 1_000_000_000)] {
        header[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    header[8] = 4;
    let sum = checksum(&header[..PAGE - 8]);
    header[PAGE - 8..].copy_from_slice(&sum.to_le_bytes());
    file.rewind().and_then(|()| file.write_all(&header)).unwrap();
}

/// Runs a command that must not read or map all of a large file: while it runs, the memory that it has touched and the bytes
/// that it has read are watched.
fn reading_little(folder: &Folder, command: &str, input: &str) -> Done {
    const LITTLE: u64 = 1 << 30;
    let mut child = folder.mayhap(command).start();
    let mut pipe = child.stdin.take().unwrap();
    let process = format!("/proc/{}", child.id());
    let number = |file: &str, name: &str| -> u64 {
        let text = std::fs::read_to_string(format!("{process}/{file}")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
    };
    let (mut touched, mut read) = (0, 0);
    std::thread::scope(|scope| {
        // A program that wants no input closes the pipe.
        scope.spawn(move || drop(pipe.write_all(input.as_bytes())));
        while child.try_wait().unwrap().is_none() {
            touched = touched.max(number("status", "VmHWM:") << 10);
            read = read.max(number("io", "rchar:"));
            if touched.max(read) > LITTLE {
                child.kill().unwrap();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    assert!(touched.max(read) <= LITTLE, "{command}: {touched} bytes of memory, {read} bytes read");
    Done::from((command.to_string(), child.wait_with_output().unwrap()))
}

#[test]
fn a_file_of_5_gib_opens_at_once_answers_and_takes_keys() {
    let folder = Folder::new();
    // 5 GiB and a bit: no multiple of anything.
    let bits = 5 * (1u64 << 33) + 12_345;
    // Few: the system may read megabytes for each new place.
    let keys = lines("key-", 30);
    write_sparse(&folder.path("f"), bits, &keys);
    let high = |key: &str| {
        let mut positions = positions(Hashing::default().digest(key.as_bytes()), PROBES, bits);
        positions.any(|position| position > u64::from(u32::MAX))
    };
    assert!(keys.lines().filter(|key| high(key)).count() >= 25, "positions beyond 2^32 are used");

    let run = |command: &str, input: &str| reading_little(&folder, command, input);
    let info = run("info --json f", "").ends(0).json();
    assert_eq!((&info["bits"], &info["inserted"]), (&bits.into(), &30.into()));
    run("check f", &keys).ends(0).prints(&keys);
    run("check f", &lines("absent-", 30)).ends(1).prints("");
    let added = lines("added-", 30);
    run("add f", &added).ends(0).says("30 keys added");
    let all = keys + &added;
    run("check f", &all).ends(0).prints(&all);
    run("check f", &lines("absent-", 30)).ends(1).prints("");

    let info = folder.mayhap("info --json f").run().ends(0).json();
    assert_eq!((&info["inserted"], &info["checksum"]), (&60.into(), &"unsummed".into()));
    folder.mayhap("info f").run().ends(0).shows("unsummed (updated in place");
}

#[test]
fn the_checksum_is_renewed_up_to_256_mib_and_dropped_beyond() {
    let folder = Folder::new();
    for (bits, checksum) in [(256u64 << 23, "header-ok"), ((256 << 23) + 64, "unsummed")] {
        write_sparse(&folder.path("f"), bits, "a\nb\n");
        folder.mayhap("add f").input("c\n").run().ends(0);
        let info = folder.mayhap("info --json f").run().ends(0).json();
        assert_eq!((&info["checksum"], &info["inserted"]), (&checksum.into(), &3.into()), "{bits} bits");
        folder.mayhap("check f").input("a\nb\nc\nd\n").run().ends(0).prints("a\nb\nc\n");
        std::fs::remove_file(folder.path("f")).unwrap();
    }
}

#[test]
#[ignore = "slow: builds, writes and verifies 4 GiB"]
fn a_filter_of_more_than_2_to_the_32_bits_is_built_and_verified() {
    let folder = Folder::new();
    let bits = 34_359_738_400u64;
    let keys = lines("key-", 100_000);
    folder.mayhap(&format!("build --bits {bits} --probes {PROBES} -o f")).input(&keys).run().ends(0);
    folder.mayhap("check -c f").input(&keys).run().ends(0).prints("100000\n");
    folder.mayhap("check f").input(lines("absent-", 100_000)).run().ends(1).prints("");
    let info = folder.mayhap("info --json --verify f").run().ends(0).json();
    assert_eq!((&info["bits"], &info["checksum"]), (&bits.into(), &"ok".into()));

    let bytes = std::fs::metadata(folder.path("f")).unwrap().len();
    // The section behind it is empty, and starts on a page.
    assert_eq!(bytes, PAGE as u64 + (bits.div_ceil(64) * 8).next_multiple_of(PAGE as u64));
    let mut file = File::open(folder.path("f")).unwrap();
    let mut beyond = 0;
    for key in keys.lines().take(1000) {
        for position in positions(Hashing::default().digest(key.as_bytes()), PROBES, bits) {
            let mut byte = [0];
            file.seek(SeekFrom::Start(PAGE as u64 + position / 8))
                .and_then(|_| file.read_exact(&mut byte))
                .unwrap();
            assert!(byte[0] >> (position % 8) & 1 == 1, "{key} at {position}");
            beyond += u64::from(position > u64::from(u32::MAX));
        }
    }
    assert!(beyond > 2500, "7 in 8 positions lie beyond 2^32: {beyond} of 3000");

    folder.mayhap("add f").input("new\n").run().ends(0);
    assert_eq!(folder.mayhap("info --json --verify f").run().ends(0).json()["checksum"], "unsummed");
    folder.mayhap("check -c f").input(keys + "new\n").run().ends(0).prints("100001\n");
}
