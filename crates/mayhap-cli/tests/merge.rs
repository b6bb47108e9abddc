//! `mayhap merge`: union, intersection, difference, and what stands in their way.

mod runner;

use runner::{Folder, families, lines};

/// Two files of 3 keys each, with b and c in both.
fn two(options: &str) -> Folder {
    let folder = Folder::new();
    folder.mayhap(&format!("build -o one {options}")).input("1\n2\n3\n").run().ends(0);
    folder.mayhap(&format!("build -o two {options}")).input("2\n3\n4\n").run().ends(0);
    folder
}

#[test]
fn union_intersection_and_difference() {
    for (options, kind) in [
        ("--exact", ""),
        ("--family bitmap --as u64 -n 10", "--as u64"),
        ("--family roaring --as u64", "--as u64"),
        ("-n 1000 -p 1e-9", ""),
    ] {
        let folder = two(options);
        let check = || folder.mayhap(&format!("check all {kind}")).input("0\n1\n2\n3\n4\n5\n").run().ends(0);
        folder.mayhap("merge -o all one two").run().ends(0).prints("").says("mayhap: all: about 4 keys");
        check().prints("1\n2\n3\n4\n");
        folder.mayhap("merge --intersect -o all one two").run().ends(0);
        check().prints("2\n3\n");
        if options.starts_with("-n") {
            continue;
        }
        folder.mayhap("merge --minus -o all one two").run().ends(0);
        check().prints("1\n");
        folder.mayhap("merge --minus -o all two one").run().ends(0);
        check().prints("4\n");
        folder.mayhap("info --verify all").run().ends(0);
    }
}

#[test]
fn one_file_and_many_files() {
    let folder = Folder::new();
    for i in 0..10 {
        folder.mayhap(&format!("build -o f{i} -n 1000")).input(format!("{i}\n")).run().ends(0);
    }
    folder.mayhap("merge -o all f0 f1 f2 f3 f4 f5 f6 f7 f8 f9").run().ends(0);
    folder.mayhap("check all").input(lines("", 12)).run().ends(0).prints(lines("", 10));
    folder.mayhap("merge -o same f0").run().ends(0);
    assert!(folder.read("same") == folder.read("f0"));
    folder.mayhap("merge -o none").run().ends(2).says("<FILTERS>");
}

#[test]
fn a_family_that_cannot_is_refused_with_those_that_can() {
    let folder = two("");
    folder.mayhap("merge --minus -o all one two").run().ends(2).says_only(&format!(
        "mayhap: one: the family bloom cannot subtract; build the filter with --family {}",
        families(|family| family.can.subtracts, " or "),
    ));
    folder.mayhap("merge --minus --intersect -o all one two").run().ends(2).says("cannot be used with");
    assert_eq!(folder.names(), ["one", "two"]);
}

#[test]
fn mismatches_are_named() {
    let folder = two("-n 1000");
    let cases = [
        (
            "-n 2000",
            "one and other: numbers of bits differ: 9586 and 19171; build both with the same -n and -p",
        ),
        ("--bits 9586 --probes 6", "one and other: numbers of probes differ: 7 and 6"),
        ("-n 1000 --seed 1", "one and other: seeds differ: 0000000000000000 and 0000000000000001"),
        ("--exact", "one and other: families differ: bloom and exact"),
    ];
    for (options, message) in cases {
        folder.mayhap(&format!("build -o other {options}")).input("1\n").run().ends(0);
        folder.mayhap("merge -o all one two other").run().ends(2).says_only(&format!("mayhap: {message}"));
        assert_eq!(folder.names(), ["one", "other", "two"]);
    }
}

#[test]
fn too_high_a_rate_is_refused_and_nothing_written() {
    let folder = Folder::new();
    folder.mayhap("build -o one -n 1000").input(lines("a", 1000)).run().ends(0);
    folder.mayhap("build -o two -n 1000").input(lines("b", 1000)).run().ends(0);
    folder
        .mayhap("merge --max-fpr 2% -o all one two")
        .run()
        .ends(2)
        .says("mayhap: the result's false-positive rate would be ")
        .says(", the limit is 2% (0.02, 1 in 50); nothing was written");
    assert_eq!(folder.names(), ["one", "two"]);
    folder
        .mayhap("merge --max-fpr 50% -o all one two")
        .run()
        .ends(0)
        .says("mayhap: warning: it holds about 1,99");
    folder.mayhap("merge --max-fpr 5 -o all one two").run().ends(2).says("did you mean 5% (0.05)?");
}

#[test]
fn the_output_may_be_one_of_the_inputs() {
    for options in ["-n 1000", "--exact"] {
        let folder = two(options);
        folder.mayhap("merge -o two one two").run().ends(0);
        folder.mayhap("check two").input("1\n2\n3\n4\n").run().ends(0).prints("1\n2\n3\n4\n");
        folder.mayhap("info --verify two").run().ends(0);
        folder.mayhap("merge -o one one").run().ends(0);
        folder.mayhap("check one").input("1\n2\n3\n").run().ends(0).prints("1\n2\n3\n");
    }
}

#[test]
fn the_json_report_never_mixes_with_the_filter() {
    let folder = two("-n 1000");
    let merged = folder.mayhap("merge --json -o all one two").run().ends(0).stays_quiet().json();
    assert_eq!((&merged["output"], &merged["family"]), (&"all".into(), &"bloom".into()));
    for name in ["estimated_len", "fill", "fpr_now"] {
        assert!(merged[name].is_number(), "{name}");
    }
    let merged = folder.mayhap("merge --json -o - one two").run().ends(0).prints(folder.read("all"));
    assert!(merged.err.starts_with('{'), "the report goes to standard error: {}", merged.err);
}

#[test]
fn inputs_that_are_no_filters_are_named() {
    let folder = two("");
    folder.write("text", "some text\n");
    folder
        .mayhap("merge -o all one text")
        .run()
        .ends(2)
        .says_only("mayhap: text: not a mayhap file: it starts with \"some\" instead of \"MYHP\"");
    folder.mayhap("merge -o all absent one").run().ends(2).says("mayhap: absent: cannot open: ");
    assert!(!folder.path("all").exists());
}
