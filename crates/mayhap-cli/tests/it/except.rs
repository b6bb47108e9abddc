//! `mayhap build --except` and `add --except`: keys that are answered no, exactly.

use crate::runner::{Folder, lines};
use mayhap::{FAMILIES, Make};

/// The options that build a family from the keys in `keys`; its keys may have to be integers or to have labels.
fn options(family: &str) -> &'static str {
    match family {
        "bitmap" => "--as u64 -n 100000 keys",
        "roaring" => "--as u64 keys",
        "spatial" => "--label one=keys",
        _ => "keys",
    }
}

/// The lines of the integers in a range.
fn integers(range: std::ops::Range<u64>) -> String {
    range.map(|integer| format!("{integer}\n")).collect()
}

fn kind(family: &str) -> &'static str {
    if matches!(family, "bitmap" | "roaring") { "--as u64" } else { "" }
}

#[test]
fn every_family_denies_what_is_allowed_and_nothing_else() {
    let folder = Folder::new();
    folder.write("keys", integers(0..2000));
    folder.write("good", integers(10_000..12_000));
    for family in FAMILIES {
        // Made of two sets, which the command does not take, or takes in another way.
        if matches!(family.make, Make::OfTwo(_) | Make::Within(_)) {
            continue;
        }
        let (name, options, kind) = (family.name, options(family.name), kind(family.name));
        folder.mayhap(&format!("build -o plain -p 3% --family {name} {options}")).run().ends(0);
        folder
            .mayhap(&format!("build -o f -p 3% --family {name} {options} --except good"))
            .run()
            .ends(0)
            .says("--except: 2,000 keys are answered no, exactly; ");
        let count = |file: &str, keys: &str| {
            let done = folder.mayhap(&format!("check -c {file} {kind} {keys}")).run();
            String::from_utf8_lossy(&done.out).trim().parse::<u64>().unwrap()
        };
        assert_eq!(count("f", "keys"), 2000, "{name}");
        assert_eq!(count("f", "good"), 0, "{name}");
        let wrong = count("plain", "good");
        // A table tells more keys from each other than it is asked to, where that costs nothing.
        assert_eq!(wrong > 0, !family.can.exact && name != "table", "{name}: {wrong}");
        let info = folder.mayhap("info --json --verify f").run().ends(0).json();
        let stored = info["exceptions"].as_u64().unwrap();
        assert_eq!(stored > 0, !family.can.exact, "{name}");
        assert!(stored == 2000 || stored == wrong, "{name}: {stored}");
        assert_eq!(info["checksum"], "ok", "{name}");
        folder.mayhap(&format!("test f {kind} keys --absent good")).run().ends(0);
        folder.mayhap(&format!("test f {kind} keys")).run().ends(0);
        if family.can.counts {
            let counts = folder.mayhap("count f good").run().ends(0);
            let counts = String::from_utf8_lossy(&counts.out).into_owned();
            assert!(counts.lines().all(|line| line.ends_with("\t0")), "{name}");
        }
        if family.can.labels {
            let labels = folder.mayhap("label f good").run().ends(0);
            assert!(String::from_utf8_lossy(&labels.out).lines().all(|line| line.ends_with('\t')), "{name}");
        }
    }
}

#[test]
fn a_key_in_both_is_an_error_with_both_lines_and_nothing_is_written() {
    let folder = Folder::new();
    folder.write("keys", "a\nb\nc\nd\n");
    folder.write("good", "x\ny\nd\nc\n");
    let said = "mayhap: good: line 4: the key is also in the set, at keys: line 3; it cannot be in and be an exception: \
                take it out of one of the two";
    for options in [
        "",
        "-n 10",
        "--static",
        "--counts",
        "--exact",
        "--removable",
        "--family shifting-multiplicity",
        "--grow",
    ] {
        folder.mayhap(&format!("build -o f --except good {options} keys")).run().ends(2).says_only(said);
    }
    folder.mayhap("build -o f --except good --label a=keys").run().ends(2).says_only(said);
    folder
        .mayhap("build -o f --except good -")
        .input("1\nd\n")
        .run()
        .ends(2)
        .says("set, at (standard input): line 2;");
    // As integers, 7 and 07 are one key.
    folder.write("integers", "5\n6\n7\n");
    folder.write("few", "9\n07\n");
    let both = "mayhap: few: line 2: the key is also in the set, at integers: line 3;";
    for options in ["--exact --as u64", "--as u64", "--family bitmap --as u64"] {
        folder.mayhap(&format!("build -o f --except few {options} integers")).run().ends(2).says(both);
    }
    assert_eq!(folder.names(), ["few", "good", "integers", "keys"]);
}

#[test]
fn an_added_key_is_an_exception_no_more() {
    let folder = Folder::new();
    folder.write("good", lines("good-", 1000));
    for family in ["bloom", "blocked", "counting", "cuckoo", "expanding"] {
        folder
            .mayhap(&format!("build -o f -n 5000 -p 5% --family {family} --except good -"))
            .input(lines("key-", 1000))
            .run()
            .ends(0);
        folder.mayhap("add f").input("good-7\ngood-8\n").run().ends(0).says_only("mayhap: f: 2 keys added");
        folder.mayhap("check f").input(lines("good-", 1000)).run().ends(0).prints("good-7\ngood-8\n");
        // Others that are added make none of the rest a false positive.
        folder.mayhap("add f").input(lines("more-", 4000)).run().ends(0);
        folder.mayhap("check f").input(lines("good-", 1000)).run().ends(0).prints("good-7\ngood-8\n");
        folder.mayhap("check -c f").input(lines("key-", 1000)).run().ends(0).prints("1000\n");
        assert_eq!(folder.mayhap("info --json f").run().json()["exceptions"], 998);
    }
}

#[test]
fn removing_an_exception_is_removing_what_is_not_in() {
    let folder = Folder::new();
    folder.write("good", lines("good-", 1000));
    folder.mayhap("build -o f -p 10% --removable --except good -").input(lines("key-", 1000)).run().ends(0);
    let before = folder.read("f");
    folder.mayhap("remove f good").run().ends(1).says_only("mayhap: f: 0 keys removed, 1,000 were not in");
    assert!(folder.read("f") == before);
    folder.mayhap("remove f").input(lines("key-", 500)).run().ends(0);
    folder.mayhap("check -c f").input(lines("key-", 1000)).run().ends(0);
    folder.mayhap("check f good").run().ends(1).prints("");
}

#[test]
fn a_merge_keeps_what_no_input_says_yes_to() {
    let folder = Folder::new();
    folder.write("good", lines("good-", 500));
    let build = |name: &str, keys: &str, more: &str| {
        folder.mayhap(&format!("build -o {name} -n 3000 -p 5% {more} -")).input(keys).run().ends(0);
    };
    build("with", &lines("a-", 1000), "--except good");
    build("without", &(lines("b-", 1000) + "good-3\n"), "");
    for order in ["with without", "without with", "without with with"] {
        folder.mayhap(&format!("merge -o both {order}")).run().ends(0);
        // Those that the other says yes to, truly or falsely.
        let yes = folder.mayhap("check without good").run().ends(0).out;
        folder.mayhap("check both good").run().ends(0).prints(&yes);
        assert!(yes.windows(7).any(|line| line == b"good-3\n"));
        let kept = 500 - yes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        assert_eq!(folder.mayhap("info --json both").run().json()["exceptions"], kept);
        folder.mayhap("check -c both").input(lines("a-", 1000) + &lines("b-", 1000)).run().prints("2000\n");
        let merged = folder.mayhap(&format!("merge --json -o both {order}")).run().ends(0).json();
        assert_eq!(merged["exceptions"], kept);
    }
    // What either denies is not in both.
    folder.mayhap("merge --intersect -o both without with").run().ends(0);
    folder.mayhap("check both good").run().ends(1).prints("");
    // Different sizes.
    folder.mayhap("build -o large -n 9000 -p 1% -").input(lines("c-", 1000)).run().ends(0);
    folder.mayhap("merge -o both large with").run().ends(0);
    let yes = folder.mayhap("check large good").run().out;
    folder.mayhap("check both good").run().prints(&yes);
}

#[test]
fn a_folded_file_keeps_its_exceptions() {
    let folder = Folder::new();
    folder.write("good", lines("good-", 2000));
    folder.mayhap("build -o f -n 50000 --foldable --except good -").input(lines("key-", 1000)).run().ends(0);
    folder.mayhap("fold -p 10% -o small f").run().ends(0);
    assert!(folder.read("small").len() < folder.read("f").len());
    folder.mayhap("check small good").run().ends(1).prints("");
    folder.mayhap("check -c small").input(lines("key-", 1000)).run().ends(0).prints("1000\n");
    assert_eq!(folder.mayhap("info --json small").run().json()["exceptions"], 2000);
}

#[test]
fn what_is_allowed_is_read_as_the_keys_are() {
    let folder = Folder::new();
    folder.write("good.csv", "1,ONE\n2,TWO\n");
    folder
        .mayhap("build -o f -p 50% -d, -k2 --ignore-case --except good.csv -")
        .input((0..200).map(|i| format!("{i},key-{i}\n")).collect::<String>())
        .run()
        .ends(0)
        .says("--except: 2 keys are answered no, exactly; 2 are stored, 32 B");
    folder.mayhap("check f").input("one\ntwo\n").run().ends(1).prints("");
    folder.mayhap("info f").run().ends(0).shows("exceptions    2 keys, 32 B, answered no exactly");
    // Nothing to allow is no error; the file is that of a filter without exceptions.
    folder.write("none", "");
    folder.mayhap("build -o g --except none -").input("a\n").run().ends(0);
    folder.mayhap("build -o h -").input("a\n").run().ends(0);
    assert!(folder.read("g") == folder.read("h"));
    assert_eq!(folder.mayhap("info --json g").run().json()["exceptions"], 0);
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.mayhap("build -o f --except missing keys").run().ends(2).says("missing: cannot open");
    let once = "mayhap: standard input can be read once, and both the keys and those of --except are to be read from it";
    folder.mayhap("build -o f --except -").input("b\n").run().ends(2).says_only(once);
    folder.mayhap("build -o f --except - keys -").input("b\n").run().ends(2).says_only(once);
    folder.mayhap("build -o f --except - keys").input("b\n").run().ends(0);
    folder
        .mayhap("build -o keys --except keys f")
        .run()
        .ends(2)
        .says_only("mayhap: keys: is both a file with keys and the file to write");
    folder.mayhap("build -o g --as u64 --except bad -").input("1\n").run().ends(2);
    folder.write("bad", "1\nx\n");
    folder.mayhap("build -o g --as u64 --except bad -").input("2\n").run().ends(2).says("bad: line 2: ");
    assert_eq!(folder.names(), ["bad", "f", "keys"]);
}

#[test]
fn a_universe_needs_no_exceptions() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.write("all", "a\nb\nc\n");
    folder.write("good", "b\n");
    folder.mayhap("build -o f --universe all --except good keys").run().ends(2).says_only(
        "mayhap: --except: all keys of --universe that are not in the set are answered no, exactly; put these among them",
    );
    assert_eq!(folder.names(), ["all", "good", "keys"]);
}

#[test]
fn merging_three_files_keeps_what_none_of_them_admits() {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        folder.write(&format!("k{name}"), lines(&format!("{name}-"), 3000));
    }
    folder.write("allowed", lines("allowed-", 1000));
    folder.mayhap("build -n 3000 -o a ka").run().ends(0);
    folder.mayhap("build -n 3000 -o b kb").run().ends(0);
    folder.mayhap("build -n 3000 --except allowed -o c kc").run().ends(0);
    let denied = |file: &str| folder.mayhap(&format!("check -v {file} allowed")).run().out;
    let both: Vec<u8> = {
        folder.write("not-a", denied("a"));
        folder.mayhap("check -v b not-a").run().out
    };
    for order in ["a b c", "c a b", "b c a"] {
        folder.mayhap(&format!("merge -o all {order}")).run().ends(0);
        folder.write("no", denied("all"));
        // Those that a and b deny are denied by all three.
        folder.write("both", &both);
        folder.mayhap("check -c all both").run().ends(1).prints("0\n");
        folder.mayhap("check -c all kc").run().ends(0).prints("3000\n");
    }
}

#[test]
fn exceptions_that_are_found_later_are_added_to_the_file() {
    let folder = Folder::new();
    folder.write("keys", integers(0..2000));
    folder.write("others", integers(10_000..20_000));
    for family in FAMILIES {
        // Exact sets have none, and a universe has all of its others.
        if family.can.exact || matches!(family.make, Make::OfTwo(_) | Make::Within(_)) {
            continue;
        }
        let (name, options) = (family.name, options(family.name));
        folder.mayhap(&format!("build -o f --force -p 3% --family {name} {options}")).run().ends(0);
        let wrong = folder.mayhap("check f others").run();
        folder.write("wrong", &wrong.out);
        let found = wrong.out.iter().filter(|&&byte| byte == b'\n').count();
        let grouped = found.to_string();
        // No keys are read: standard input would give one.
        let done = folder.mayhap("add f --except wrong").input("50000\n").run().ends(0);
        done.says(&format!(
            "mayhap: f: {grouped} keys are answered no from now on, exactly, {grouped} of which were admitted"
        ));
        let count = |keys: &str| {
            let done = folder.mayhap(&format!("check -c f {keys}")).run();
            String::from_utf8_lossy(&done.out).trim().parse::<usize>().unwrap()
        };
        assert_eq!((count("keys"), count("others")), (2000, 0), "{name}");
        let info = folder.mayhap("info --json --verify f").run().ends(0).json();
        assert_eq!(info["exceptions"].as_u64(), Some(found as u64), "{name}");
        // Again, with one that was no false positive.
        folder.mayhap("add f --except wrong").run().ends(0).says(", 0 of which were admitted before");
    }
}

#[test]
fn a_key_that_is_in_is_denied_by_an_added_exception_until_it_is_added_again() {
    let folder = Folder::new();
    folder.mayhap("build -o f -p 1e-6 -n 100 -").input("a\nb\n").run().ends(0);
    folder.mayhap("add f --except -").input("b\nc\n").run().ends(0).says_only(
        "mayhap: f: 2 keys are answered no from now on, exactly, 1 of which was admitted before; a key that really is in is \
         denied too",
    );
    folder.mayhap("check f").input("a\nb\nc\n").run().ends(0).prints("a\n");
    folder.mayhap("add f").input("b\n").run().ends(0);
    folder.mayhap("check f").input("a\nb\nc\n").run().ends(0).prints("a\nb\n");
    // With files both are done, and a key of both is an error.
    folder.write("more", "d\ne\n");
    folder.write("bad", "e\nx\n");
    folder
        .mayhap("add f more --except bad")
        .run()
        .ends(2)
        .says("bad: line 1: the key is also in the set, at more: line 2;");
    folder.write("bad", "x\n");
    folder.mayhap("add f more --except bad").run().ends(0).says("f: 2 keys added\n");
    folder.mayhap("check f").input("a\nd\ne\nx\n").run().ends(0).prints("a\nd\ne\n");
    assert_eq!(folder.mayhap("info --json f").run().json()["exceptions"], 2);
}

#[test]
fn added_exceptions_that_cannot_be_are_refused() {
    let folder = Folder::new();
    folder.write("good", "x\n");
    folder.mayhap("build -o g --to go -").input("a\n").run().ends(0);
    folder.mayhap("add g --except good").run().ends(2).says(
        "g: a filter by the rules of go has no exceptions; build one of ours from the keys, with --except",
    );
    folder.mayhap("build -o e --exact -").input("a\n").run().ends(0);
    folder.mayhap("add e --except good").run().ends(2).says(
        "e: the family exact makes no errors, so that it takes no exceptions; mayhap remove takes keys out",
    );
    folder.mayhap("build -o f -").input("a\n").run().ends(0);
    folder.mayhap("add f --except f").run().ends(2).says("f: is the filter too; name the file with the keys");
    folder.mayhap("add f --except missing").run().ends(2).says("missing: cannot open");
    folder.mayhap("add f - --except -").input("a\n").run().ends(2).says("standard input can be read once");
    folder.mayhap("check f").input("a\nx\n").run().ends(0).prints("a\n");
}

#[test]
fn the_old_name_of_except_works_and_is_not_shown() {
    let folder = Folder::new();
    folder.write("good", "x\n");
    folder
        .mayhap("build -o f --allow good -")
        .input("a\n")
        .run()
        .ends(0)
        .says("--except: 1 key is answered no");
    folder.mayhap("add f --allow good").run().ends(0).says("1 key is answered no from now on");
    for command in ["build", "add"] {
        let help = folder.mayhap(&format!("{command} --help")).run().ends(0);
        let help = String::from_utf8_lossy(&help.out).into_owned();
        assert!(help.contains("--except <FILE>") && !help.contains("--allow "), "{command}");
    }
}
