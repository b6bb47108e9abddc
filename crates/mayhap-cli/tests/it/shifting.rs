//! The families `shifting`, `shifting-association` and `shifting-multiplicity` from the shell.

use crate::runner::{Folder, families};

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
        [("58", "counts up to 58 were asked for; it must be 1 to 57"), ("x", "is not a largest count")]
    {
        let built = folder.mayhap(&format!("build -o f --family shifting-multiplicity --max-count {count}"));
        built.input("a\n").run().ends(2).says(text);
    }
    folder
        .mayhap("build -o f --max-count 5")
        .input("a\n")
        .run()
        .ends(2)
        .says("this family has no such limit to choose");
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
fn two_sets_are_for_the_library() {
    let folder = Folder::new();
    folder
        .mayhap("build -o f --family shifting-association")
        .input("a\n")
        .run()
        .ends(2)
        .says("the family shifting-association is made of two sets, which this command does not take");
    assert!(!folder.path("f").exists());
}
