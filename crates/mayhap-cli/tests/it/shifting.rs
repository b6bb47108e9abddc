//! The families `shifting`, `shifting-association` and `shifting-multiplicity` from the shell.

use crate::runner::{Folder, families, lines};

#[test]
fn a_shifting_filter_is_built_asked_merged_and_added_to() {
    let folder = Folder::new();
    folder
        .mayhap("build -o f --family shifting -n 100 -p 1e-9")
        .input("a\nb\n")
        .run()
        .ends(0)
        .says("shifting with 2 keys");
    folder.mayhap("check f").input("a\nx\nb\n").run().ends(0).prints("a\nb\n");
    folder.mayhap("build -o g --family shifting -n 100 -p 1e-9").input("c\n").run().ends(0);
    folder.mayhap("merge -o h f g").run().ends(0);
    folder.mayhap("add h").input("d\n").run().ends(0);
    folder.mayhap("check h").input("a\nb\nc\nd\ne\n").run().ends(0).prints("a\nb\nc\nd\n");
    folder.mayhap("remove f").input("a\n").run().ends(2).says_only(&format!(
        "mayhap: f: the family shifting cannot remove without counters; with them it can; build the filter with \
         --counter-bits 4, or with --family {}",
        families(|family| family.can.removes, " or "),
    ));
    folder
        .mayhap("build -o f --family shifting --probes 7 -n 100")
        .input("a\n")
        .run()
        .ends(2)
        .says("a multiple of 2");
}

#[test]
fn with_counters_keys_leave_again() {
    let folder = Folder::new();
    folder
        .mayhap("build -o f --family shifting --counter-bits 4 -n 100 -p 1e-9")
        .input("a\nb\n")
        .run()
        .ends(0);
    folder.mayhap("remove f").input("a\n").run().ends(0);
    folder.mayhap("check f").input("a\nb\n").run().ends(0).prints("b\n");
    folder.mayhap("remove f").input("a\n").run().ends(1);
    let info = folder.mayhap("info f --json").run().ends(0).json();
    assert_eq!(
        (&info["counter_bits"], &info["guarantee"]),
        (&4.into(), &"no false negatives if only present keys were removed".into())
    );
}

#[test]
fn the_input_of_a_filter_of_counts_is_counted_first() {
    let folder = Folder::new();
    let keys = format!("a\nb\n{}b\n", "c\n".repeat(100));
    // A stream, a file, and a number of keys that is given.
    folder.write("keys", &keys);
    for arguments in ["-", "keys", "-n 3 keys"] {
        let built = folder.mayhap(&format!("build -o f --family shifting-multiplicity -p 1e-9 {arguments}"));
        built.input(keys.clone()).run().ends(0).says("shifting-multiplicity with 103 keys");
        folder.mayhap("count f").input("x\nc\nb\na\n").run().ends(0).prints("x\t0\nc\t57\nb\t2\na\t1\n");
        folder.mayhap("check f").input("a\nx\n").run().ends(0).prints("a\n");
        let info = folder.mayhap("info f --json").run().ends(0).json();
        assert_eq!((&info["capacity"], &info["inserted"]), (&3.into(), &103.into()));
    }
    folder
        .mayhap("build -o f --family shifting-multiplicity --max-count 9 -p 1e-9")
        .input(keys.clone())
        .run()
        .ends(0);
    folder.mayhap("count f --key c --key b").run().ends(0).prints("c\t9\nb\t2\n");
    for (count, text) in
        [("58", "largest count must be 1 to 57, not 58 (--max-count)"), ("x", "is not a largest count")]
    {
        let built = folder.mayhap(&format!("build -o f --family shifting-multiplicity --max-count {count}"));
        built.input("a\n").run().ends(2).says(text);
    }
    folder
        .mayhap("build -o f --max-count 5")
        .input("a\n")
        .run()
        .ends(2)
        .says("bloom takes no largest count; shifting-multiplicity does");
    // Nothing is a set too.
    folder.mayhap("build -o f --family shifting-multiplicity").input("").run().ends(0);
    folder.mayhap("count f --key a").run().ends(0).prints("a\t0\n");
}

#[test]
fn counts_change_with_counters_only_and_the_file_remembers_it() {
    let folder = Folder::new();
    folder.mayhap("build -o f --family shifting-multiplicity -p 1e-9").input("a\nb\nb\n").run().ends(0);
    folder
        .mayhap("add f")
        .input("a\n")
        .run()
        .ends(2)
        .says("cannot insert without counters; with them it can");
    folder
        .mayhap("build -o f --family shifting-multiplicity --counter-bits 4 -n 100 -p 1e-9")
        .input("a\nb\nb\n")
        .run()
        .ends(0);
    folder.mayhap("add f").input("a\na\nc\n").run().ends(0);
    folder.mayhap("remove f").input("b\n").run().ends(0);
    folder.mayhap("count f").input("a\nb\nc\n").run().ends(0).prints("a\t3\nb\t1\nc\t1\n");
    let info = folder.mayhap("info f --json").run().ends(0).json();
    assert_eq!(info["guarantee"], "false negatives possible");
}

#[test]
fn two_sets_are_built_and_a_key_of_both_has_both_labels() {
    let folder = Folder::new();
    folder.write("a", "1\n2\n3\n3\n");
    folder.write("b", "3\n4\n");
    let build = "build -o f --family shifting-association -p 1e-9 --label A=a --label B=b";
    folder.mayhap(build).run().ends(0).says("with 4 keys in");
    folder.mayhap("label f").input("1\n3\n4\nx\n").run().ends(0).prints("1\tA\n3\tA,B\n4\tB\nx\t\n");
    folder.mayhap("label f --key 3 --key x").run().ends(0).prints("3\tA,B\nx\t\n");
    folder.mayhap("check f").input("1\n3\n4\nx\n").run().ends(0).prints("1\n3\n4\n");
    let info = folder.mayhap("info --json --verify f").run().ends(0).json();
    assert_eq!((&info["family"], &info["checksum"]), (&"shifting-association".into(), &"ok".into()));
    assert_eq!(
        (&info["capacity"], &info["sets"][0], &info["sets"][1]),
        (&4.into(), &"A".into(), &"B".into())
    );
    folder.mayhap("info f").run().ends(0).shows("A, B");
    // Exceptions have neither label, at once and later.
    folder.write("good", lines("good-", 300));
    folder
        .mayhap("build -o g --family shifting-association -p 50% --label A=a --label B=b --except good")
        .run()
        .ends(0);
    let labels = folder.mayhap("label g good").run().ends(0);
    assert!(String::from_utf8_lossy(&labels.out).lines().all(|line| line.ends_with('\t')));
    folder
        .mayhap("build -o g --force --family shifting-association -p 50% --label A=a --label B=b")
        .run()
        .ends(0);
    folder.mayhap("add g --except good").run().ends(0);
    folder.mayhap("check -c g good").run().prints("0\n");
    folder.mayhap("label g --key 3").run().ends(0).shows("A");
    folder.write("bad", "x\n4\n");
    folder
        .mayhap("build -o h --family shifting-association --label A=a --label B=b --except bad")
        .run()
        .ends(2)
        .says("bad: line 2: the key is also in the set, at b: line 2");
}

/// In a filter that is much too full for its rate most answers leave something open.
#[test]
fn what_two_sets_leave_open_is_said_and_never_wrong() {
    let folder = Folder::new();
    folder.write("a", lines("a-", 1000) + &lines("both-", 500));
    folder.write("b", lines("b-", 1000) + &lines("both-", 500));
    folder
        .mayhap("build -o f --family shifting-association -p 50% -n 700 --label A=a --label B=b")
        .run()
        .ends(0)
        .says("warning: it holds");
    let mut seen = std::collections::BTreeSet::new();
    for (file, allowed) in [
        ("a", ["A", "A, perhaps B", "A or B", "A or B or both", "A,B", "B, perhaps A"]),
        ("b", ["B", "B, perhaps A", "A or B", "A or B or both", "A,B", "A, perhaps B"]),
    ] {
        let done = folder.mayhap(&format!("label f {file}")).run().ends(0);
        for line in String::from_utf8_lossy(&done.out).lines() {
            let (key, label) = line.split_once('\t').unwrap();
            let clear = if key.starts_with("both") { "A,B" } else { allowed[0] };
            // What is clear is right, and a key of both is never said to be in one of them only.
            let right = match label {
                "A" | "B" | "A,B" => label == clear,
                "A or B" => clear != "A,B",
                "A, perhaps B" => clear != "B",
                "B, perhaps A" => clear != "A",
                other => other == "A or B or both",
            };
            assert!(right, "{line}");
            seen.insert(label.to_string());
        }
    }
    assert_eq!(seen.len(), 7, "{seen:?}");
}

#[test]
fn two_sets_are_two_labels() {
    let folder = Folder::new();
    folder.write("a", "1\n");
    let said = "the family shifting-association tells the keys of two sets from each other, and";
    for (options, given) in [
        ("a", "none is given; name both with --label A=FILE --label B=FILE, or use --family spatial"),
        ("--label A=a", "one is given"),
        ("--label A=a --label B=a --label C=a", "3 are given"),
    ] {
        folder
            .mayhap(&format!("build -o f --family shifting-association {options}"))
            .run()
            .ends(2)
            .says(&format!("{said} {given}"));
    }
    assert!(!folder.path("f").exists());
    // Of another family, the way out names both.
    folder.mayhap("build -o f --family shifting").input("a\n").run().ends(0);
    folder
        .mayhap("label f --key a")
        .run()
        .ends(2)
        .says("build the filter with --family spatial, or for two sets with --family shifting-association");
}
