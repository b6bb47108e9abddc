//! `mayhap build --static`: filters of all keys at once, in bounded memory.

use std::io::Write;
use std::path::Path;

use crate::runner::{Folder, lines};

/// Files in a folder.
fn files_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// A folder for temporary files.
fn temporary(folder: &Folder) -> String {
    let path = folder.path("temporary");
    std::fs::create_dir_all(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Some 11 MiB are needed for 300,000 keys and 2.3 more for the keys themselves, so that with 12 MiB these go to a file.
#[test]
fn neither_memory_nor_threads_nor_the_kind_of_input_change_the_filter() {
    let folder = Folder::new();
    let temporary = temporary(&folder);
    let keys = lines("key-", 300_000);
    let (first, second) = keys.split_at(keys[..keys.len() / 3].rfind('\n').unwrap() + 1);
    folder.write("keys", &keys);
    folder.write("one", first);
    folder.write("two", second);
    folder.write("few", lines("key-", 1000));
    folder.mayhap("build --static -p 0.4% -o expected keys").run().ends(0);
    let expected = folder.read("expected");
    for options in
        ["--memory 12MiB", "--memory 12MiB --threads 1", "--memory 1GiB --threads 3", "--threads 8"]
    {
        for files in ["one two", "keys", "two one few", "one - two"] {
            let call = folder.mayhap(&format!("build --static -p 0.4% {options} -o f {files}"));
            let built = call.env("TMPDIR", &temporary).run().ends(0);
            assert!(built.err.contains("fuse (fastest) with 300,000 keys"), "{}", built.err);
            assert!(folder.read("f") == expected, "{options} {files}");
        }
        let call = folder.mayhap(&format!("build --static -p 0.4% {options} -o f"));
        call.env("TMPDIR", &temporary).input(&keys).run().ends(0);
        assert!(folder.read("f") == expected, "{options}, a stream");
    }
    assert_eq!(files_in(Path::new(&temporary)), 0);
    folder.mayhap("check -c f keys").run().ends(0).prints("300000\n");
}

#[test]
fn too_little_memory_is_refused_with_what_it_takes() {
    let folder = Folder::new();
    let temporary = temporary(&folder);
    let keys = lines("key-", 300_000);
    let build = |memory: &str| {
        let call = folder.mayhap(&format!("build --static -p 0.4% --memory {memory} -o f"));
        call.env("TMPDIR", &temporary).input(&keys).run()
    };
    build("10MiB").ends(2).says_only(
        "mayhap: --memory 10.00 MiB: building a filter of 300,000 keys takes 11.00 MiB at the least, 340.00 KiB of it for the \
         filter; give that or more",
    );
    build("4096").ends(2).says_only(
        "mayhap: --memory 4.00 KiB: hashed keys alone take 1.00 MiB at the least; give that or more",
    );
    assert_eq!((folder.path("f").exists(), files_in(Path::new(&temporary))), (false, 0));
    build("11MiB").ends(0);
    assert!(folder.path("f").exists());
}

#[test]
fn memory_is_for_families_of_known_keys() {
    let folder = Folder::new();
    folder.write("keys", "1\n2\n");
    for (options, family) in
        [("", "bloom"), ("--exact", "exact"), ("--exact --as u64", "exact"), ("--fastest", "blocked")]
    {
        let refused = folder.mayhap(&format!("build {options} --memory 1GiB -o f keys")).run().ends(2);
        let says = format!("; the memory of the family {family} follows from -n and -p\n");
        assert!(
            refused
                .err
                .starts_with("mayhap: --memory is for families that are made of all keys at once (fuse")
        );
        assert!(refused.err.ends_with(&says), "{}", refused.err);
    }
    folder.mayhap("build --static --memory 0 -o f keys").run().ends(2).says("the least is 1");
    assert!(!folder.path("f").exists());
}

/// The same key over and over lies in one part, which spills for itself.
#[cfg(unix)]
#[test]
fn a_full_disk_is_an_error_that_names_the_folder() {
    let folder = Folder::new();
    let temporary = temporary(&folder);
    let script = "ulimit -f 100; yes | head -n 1000000 | $MAYHAP build --static --memory 1MiB -o f";
    folder.sh(script).env("TMPDIR", &temporary).run().ends(2).says(&format!(
        "mayhap: {temporary}: cannot write a temporary file (TMPDIR can name a folder with more room): "
    ));
    assert_eq!((folder.path("f").exists(), files_in(Path::new(&temporary))), (false, 0));
    let script = "yes | head -n 1000000 | $MAYHAP build --static --memory 1MiB -o f";
    folder.sh(script).env("TMPDIR", "/nonexistent").run().ends(2).says("mayhap: /nonexistent: cannot write");
}

/// A file without a name is nowhere to be found while it is used, nor afterwards.
#[cfg(target_os = "linux")]
#[test]
fn nothing_is_left_of_a_build_that_is_killed() {
    let folder = Folder::new();
    let temporary = temporary(&folder);
    let call = folder.mayhap("build --static --memory 1MiB -o f").env("TMPDIR", &temporary);
    let mut child = call.start();
    let mut input = child.stdin.take().unwrap();
    let open_files = format!("/proc/{}/fd", child.id());
    let spills = || {
        let targets =
            std::fs::read_dir(&open_files).unwrap().filter_map(|file| file.unwrap().path().read_link().ok());
        targets.into_iter().any(|target| target.starts_with(&temporary))
    };
    let some = "again\n".repeat(100_000);
    let started = std::time::Instant::now();
    while !spills() {
        input.write_all(some.as_bytes()).unwrap();
        assert!(started.elapsed().as_secs() < 60, "no temporary file is open");
    }
    assert_eq!(files_in(Path::new(&temporary)), 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((folder.path("f").exists(), files_in(Path::new(&temporary))), (false, 0));
}

/// Builds from a stream of so many keys, and returns the most memory that it took, in bytes, and what it said.
#[cfg(target_os = "linux")]
fn peak_of(folder: &Folder, options: &str, keys: u64) -> (u64, String) {
    let mut child = folder.mayhap(&format!("build --static -p 0.4% {options}")).start();
    let mut input = std::io::BufWriter::with_capacity(1 << 16, child.stdin.take().unwrap());
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    std::thread::scope(|scope| {
        scope.spawn(move || (0..keys).for_each(|i| writeln!(input, "{i}").unwrap()));
        while child.try_wait().unwrap().is_none() {
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            let highest = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let highest = highest.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
            peak = peak.max(highest.unwrap_or(0) << 10);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    (peak, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow: 100 million keys, twice"]
fn a_hundred_million_keys_are_built_in_512_mib() {
    let folder = Folder::new();
    let temporary = temporary(&folder);
    let (peak, said) = peak_of(&folder, "--memory 512MiB --progress -o f", 100_000_000);
    assert!(peak > 100 << 20 && peak <= 700 << 20, "{} MiB", peak >> 20);
    for part in
        ["mayhap: hashing: ", "mayhap: building: ", " keys/s\n", "with 100,000,000 keys in 107.50 MiB"]
    {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    // And without a limit: 16 bytes per key to work with.
    let (peak, _) = peak_of(&folder, "-o g", 100_000_000);
    let filter = std::fs::metadata(folder.path("g")).unwrap().len();
    assert!(peak - filter <= 1_600_000_000, "{} MiB", peak >> 20);
    assert!(folder.read("f") == folder.read("g"));
    assert_eq!(files_in(Path::new(&temporary)), 0);
}

/// Where threads work on the largest shares of the keys.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow: 20 and 25.5 million keys"]
fn sixteen_bytes_per_key_are_enough_from_20_million_keys_on() {
    let folder = Folder::new();
    for keys in [20_000_000, 25_500_000] {
        let (peak, _) = peak_of(&folder, "-o f", keys);
        let filter = std::fs::metadata(folder.path("f")).unwrap().len();
        assert!(peak - filter <= 16 * keys, "{keys} keys: {} bytes each", (peak - filter) / keys);
    }
}

/// Keys that are put aside while they come: 13 million take more than is allowed.
#[test]
#[ignore = "slow: 13 million keys, twice"]
fn keys_spill_while_they_are_read() {
    let folder = Folder::new();
    let keys = lines("", 13_000_000);
    folder.mayhap("build --static -o f").input(&keys).run().ends(0);
    folder.mayhap("build --static --memory 85MiB -o g").input(&keys).run().ends(0);
    assert!(folder.read("f") == folder.read("g"));
}
