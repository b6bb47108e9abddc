//! `mayhap merge`: union, intersection, difference, and what stands in their way.

use crate::runner::{Folder, families, lines};

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
fn counters_add_up() {
    for options in [
        "--family counting",
        "--family dleft --counter-bits 5",
        "--counts",
        "--counts --counting-rule minimum-selection --counter-bits 16",
    ] {
        // Of one filter some counters take more than 4 bits, of the other none: they have one size all the same.
        let folder = Folder::new();
        let build = |name: &str, keys: &str| {
            folder.mayhap(&format!("build -o {name} {options} -n 1000 -p 1e-6")).input(keys).run().ends(0);
        };
        build("one", &["1\n", &"2\n".repeat(14)].concat());
        build("two", "2\n3\n");
        let merged = folder.mayhap("merge -o all one two").run().ends(0).says("mayhap: all: about 3 keys");
        assert_eq!(merged.err.lines().count(), 1, "{}", merged.err);
        folder.mayhap("count all").input("0\n1\n2\n3\n").run().ends(0).prints("0\t0\n1\t1\n2\t15\n3\t1\n");
        build("one", &"2\n".repeat(100));
        if options.starts_with("--counts") {
            folder.mayhap("merge -o all one two").run().ends(0);
            folder.mayhap("count all --key 2 --key 3").run().ends(0).prints("2\t101\n3\t1\n");
        }
    }
}

#[test]
fn counters_that_differ_or_do_not_add_are_refused() {
    let folder = Folder::new();
    let build = |name: &str, options: &str| {
        folder.mayhap(&format!("build -o {name} -n 100 {options}")).input("a\n").run().ends(0);
    };
    build("one", "--counts");
    for (options, message) in [
        (
            "--counts --counting-rule minimum-selection",
            "counting rules differ: minimal-increase and minimum-selection; build both with the same rule (--counting-rule)",
        ),
        (
            "--counts --counter-bits 8",
            "bits per counter differ: variable and 8; build both with the same counters (--counter-bits)",
        ),
        (
            "--counts -p 1e-3",
            "numbers of bits differ: 3836 and 5752; build both with the same capacity and false-positive rate (-n and -p)",
        ),
        ("--family counting", "families differ: spectral and counting"),
    ] {
        build("two", options);
        folder
            .mayhap("merge -o all one two")
            .run()
            .ends(2)
            .says_only(&format!("mayhap: one and two: {message}"));
    }
    build("one", "--counts --counting-rule recurring-minimum");
    folder.mayhap("merge -o all one one").run().ends(2).says_only(&format!(
        "mayhap: one: the family spectral cannot merge by the rule recurring-minimum; by minimum-selection it can; \
         build the filter with --counting-rule minimum-selection, or with --family {}",
        families(|family| family.can.merges, " or "),
    ));
    assert_eq!(folder.names(), ["one", "two"]);
}

#[test]
fn mismatches_are_named() {
    let folder = two("-n 1000");
    let cases = [
        (
            "-n 1000 --seed 1",
            "one and other: seeds differ: 0000000000000000 and 0000000000000001; build both with the same seed (--seed)",
        ),
        (
            "-n 2000 --seed 1",
            "one and other: seeds differ: 0000000000000000 and 0000000000000001; build both with the same seed (--seed)",
        ),
        ("--exact", "one and other: families differ: bloom and exact"),
    ];
    for (options, message) in cases {
        folder.mayhap(&format!("build -o other {options}")).input("1\n").run().ends(0);
        folder.mayhap("merge -o all one two other").run().ends(2).says_only(&format!("mayhap: {message}"));
        assert_eq!(folder.names(), ["one", "other", "two"]);
    }
}

/// Two filters of 100,000 different keys were told to have 42,809 in common, and only the rate for strangers was told.
#[test]
fn an_intersection_told_keys_that_it_does_not_have() {
    let folder = Folder::new();
    let build = |name: &str, options: &str, from: u64, to: u64| {
        let keys: String = (from..to).map(|key| format!("{key}\n")).collect();
        folder.mayhap(&format!("build -o {name} -n 100000 {options}")).input(keys).run().ends(0);
    };
    for options in ["", "--family blocked", "--family shifting"] {
        build("one", options, 0, 100_000);
        for common in [0, 50_000] {
            build("two", options, 100_000 - common, 200_000 - common);
            let merged = folder.mayhap("merge --json --intersect -o both one two").run().ends(0).json();
            let number = |name: &str| merged[name].as_f64().unwrap();
            // Three estimates of 100,000 to 200,000 keys, each within 0.3%, and five deviations.
            let keys = number("estimated_len");
            assert!((keys - common as f64).abs() < 1800.0, "{options}: {keys}, {common} are common");
            assert_eq!(merged["fpr_strangers"], merged["fpr_now"]);
            assert!(
                number("fpr_strangers") < 0.005 && (0.008..0.0125).contains(&number("fpr_one_side")),
                "{merged}"
            );
            let info = folder.mayhap("info --json both").run().ends(0).json();
            assert_eq!(info["estimated_len"], merged["estimated_len"], "the file keeps it");
        }
        let said = folder.mayhap("merge --intersect -o both one two").run().ends(0);
        said.says("keys of some of them are admitted at up to ").says("both: about ");
        folder
            .mayhap("merge --intersect -o all both one")
            .run()
            .ends(0)
            .says("all: an unknown number of keys, false-positive rate now ");
        folder.mayhap("merge -o all both one").run().ends(0).says("all: an unknown number of keys");
    }
    let union = folder.mayhap("merge --json -o all one two").run().ends(0).json();
    assert!(union["fpr_strangers"].is_null() && union["fpr_one_side"].is_null(), "{union}");
}

#[test]
fn an_intersection_of_different_sizes_is_refused() {
    let folder = two("-n 1000");
    for (options, message) in [
        (
            "-n 2000",
            "numbers of bits differ: 9586 and 19171; build both with the same capacity and false-positive rate (-n and -p)",
        ),
        (
            "--bits 9586 --probes 6",
            "numbers of probes differ: 7 and 6; build both with the same capacity and false-positive rate (-n and -p)",
        ),
    ] {
        folder.mayhap(&format!("build -o other {options}")).input("1\n").run().ends(0);
        folder
            .mayhap("merge --intersect -o all one two other")
            .run()
            .ends(2)
            .says_only(&format!("mayhap: one and other: {message}"));
        assert_eq!(folder.names(), ["one", "other", "two"]);
    }
}

#[test]
fn different_sizes_are_brought_together_and_said_to_be() {
    let folder = Folder::new();
    let build = |name: &str, options: &str, prefix: &str, count: u64| {
        let build = folder.mayhap(&format!("build -o {name} {options}"));
        build.input(lines(prefix, count)).run().ends(0);
    };
    build("one", "-n 1000", "a", 1000);
    build("two", "-n 2000 -p 0.1%", "b", 1500);
    build("three", "-n 1000", "c", 100);
    build("four", "-n 1000 --probes 4 -p 2%", "d", 100);
    let merged = folder.mayhap("merge -o all one two three").run().ends(0).prints("");
    assert!(
        merged.err.starts_with(
            "mayhap: the sizes differ (28,756 bits, 10 probes; 9,586 bits, 7 probes); the result has 28,756 \
             bits, 7 probes. Filters of one size merge at a lower rate\nmayhap: all: at most about 2,"
        ),
        "{}",
        merged.err
    );
    assert!(merged.err.contains("mayhap: warning: its false-positive rate is now "), "{}", merged.err);
    for (prefix, count) in [("a", 1000), ("b", 1500), ("c", 100)] {
        folder.mayhap("check all").input(lines(prefix, count)).run().ends(0).prints(lines(prefix, count));
    }
    folder.write("absent", lines("absent-", 100_000));
    folder.write("keys", lines("a", 1000));
    folder.mayhap("test all keys --absent absent").run().ends(0).shows("holds");
    // In any order, and by way of the largest: the same file.
    for order in ["one three two", "two one three", "three two one"] {
        folder.mayhap(&format!("merge -o again {order}")).run().ends(0);
        assert!(folder.read("again") == folder.read("all"), "{order}");
    }
    // The rate is the merged one's, and still refused.
    folder.mayhap("merge --max-fpr 1% -o new one two").run().ends(2).says("; nothing was written");
    assert!(!folder.path("new").exists());
    folder.mayhap("merge -o all one two three four").run().ends(0).says("4 probes");
    folder.mayhap("check -c all").input(lines("d", 100)).run().ends(0).prints("100\n");
    // Only the probes differ.
    build("five", "--bits 9586 --probes 5", "e", 100);
    folder.mayhap("merge -o all one five").run().ends(0).says("the result has 9,586 bits, 5 probes");
    let merged = folder.mayhap("merge --json -o all one two").run().ends(0).json();
    assert_eq!((&merged["bits"], &merged["probes"]), (&28_756.into(), &7.into()));
    folder.mayhap("merge --quiet -o all one two").run().ends(0).stays_quiet();
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
        .says(", the limit is 2%; nothing was written");
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
        .says_only("mayhap: text: not a mayhap file: it starts with \"some\" instead of \"MYHP\"; if another program wrote it, name its format with --format");
    folder.mayhap("merge -o all absent one").run().ends(2).says("mayhap: absent: cannot open: ");
    assert!(!folder.path("all").exists());
}
