//! `mayhap test`: does a filter file keep its promises?

use crate::runner::{Folder, lines};

fn built() -> Folder {
    let folder = Folder::new();
    folder.write("keys", lines("key-", 10_000));
    folder.write("absent", lines("absent-", 10_000));
    folder.mayhap("build -o f keys").run().ends(0);
    folder
}

#[test]
fn a_right_filter_holds() {
    let folder = built();
    folder
        .mayhap("test f keys")
        .run()
        .ends(0)
        .shows("lookups        10,000\nnot found      0\n")
        .shows("\nverdict        holds\n");
    folder.mayhap("test f keys --absent absent").run().ends(0).shows(", 10,000 absent keys\n");
    folder.mayhap("test f").input(lines("key-", 5)).run().ends(0).shows("lookups        5\n");
    folder.mayhap("build --exact -o g keys").run().ends(0);
    folder.mayhap("test g keys").run().ends(0).shows("not measured: there was no absent key to ask for");
    folder
        .mayhap("test g keys --absent absent")
        .run()
        .ends(0)
        .shows("rate measured  0%, 95% interval 0% to ");
}

/// What `build` has just made was said to fail: claimed 0.1432%, measured 0.4907%.
#[test]
fn small_filters_that_were_just_built_failed() {
    let folder = Folder::new();
    folder.write("domains", "evil.com\nbad.org\n");
    for (keys, options) in [
        (2, "--family bloom"),
        (10, "--family shifting"),
        (20, "--family shifting"),
        (100, "--family shifting"),
        (1, "--family counting"),
        (3, "--family scalable"),
        (5, "--family fuse --layout compact"),
        (2, "--family cuckoo"),
        (10, "--family shifting-multiplicity"),
    ] {
        folder.write("keys", lines("", keys));
        folder.mayhap(&format!("build -o f {options} keys")).run().ends(0);
        folder.mayhap("test f keys").run().ends(0).shows("verdict        holds");
    }
    folder.mayhap("build -o f domains").run().ends(0);
    folder.mayhap("test f domains").run().ends(0).shows("verdict        holds");
}

#[test]
fn a_rate_that_is_an_estimate_is_called_one() {
    let folder = Folder::new();
    folder.write("keys", lines("", 10));
    folder.mayhap("build -o f --family shifting keys").run().ends(0);
    folder.mayhap("info f").run().ends(0).shows(", estimated; 95% interval ");
    folder.mayhap("test f keys").run().ends(0).shows(", estimated; 95% interval ");
    let info = folder.mayhap("info --json f").run().ends(0).json();
    let bound = |name: &str, index: usize| info[name][index].as_f64().unwrap();
    let (now, low, high) =
        (info["fpr_now"].as_f64().unwrap(), bound("fpr_interval", 0), bound("fpr_interval", 1));
    assert!(low < now && now < high, "{info}");
    let tested = folder.mayhap("test --json f keys").run().ends(0).json();
    assert_eq!(tested["fpr_claimed_interval"], info["fpr_interval"]);
    // The rate of few bits is computed from them.
    folder.mayhap("build -o f keys").run().ends(0);
    assert!(folder.mayhap("info --json f").run().json()["fpr_interval"].is_null());
}

#[test]
fn an_overfull_filter_holds_at_the_rate_that_it_has() {
    let folder = built();
    folder.mayhap("build -o f -n 2000 keys").run().ends(0);
    folder.mayhap("test f keys --absent absent").run().ends(0).shows("verdict        holds");
}

#[test]
fn a_missing_key_fails() {
    let folder = built();
    folder
        .mayhap("test f")
        .input("key-1\nabsent-1\nabsent-2\n")
        .run()
        .ends(1)
        .shows("\nnot found      2\n")
        .shows("FAILS: keys are missing");
}

#[test]
fn a_rate_that_is_not_the_claimed_one_fails() {
    let folder = built();
    let failed = folder.mayhap("test f keys --absent keys").run();
    failed.ends(1).shows("FAILS: the measured rate is not the claimed one").shows("rate measured  100%");
}

#[test]
fn the_json_report_has_its_fields() {
    let folder = built();
    let held = folder.mayhap("test --json f keys --absent absent").run().ends(0).stays_quiet().json();
    assert_eq!((&held["keys"], &held["missing"], &held["held"]), (&10_000.into(), &0.into(), &true.into()));
    assert_eq!(held["absent_asked"], 10_000);
    let number = |name: &str| held[name].as_f64().unwrap_or_else(|| panic!("{name}"));
    assert!(number("fpr_low") <= number("fpr_measured") && number("fpr_measured") <= number("fpr_high"));
    assert!(number("fpr_claimed") > 0.005);
    let failed = folder.mayhap("test --json f").input("absent-1\n").run().ends(1).json();
    assert_eq!((&failed["missing"], &failed["held"]), (&1.into(), &false.into()));
}

#[test]
fn what_cannot_be_tested_is_an_error() {
    let folder = built();
    folder.mayhap("test keys keys").run().ends(2).says("keys: not a mayhap file");
    folder.mayhap("test f nonesuch").run().ends(2).says("nonesuch: cannot open");
    folder.mayhap("test f keys --absent nonesuch").run().ends(2).says("nonesuch: cannot open");
    folder.mayhap("build --as u64 -o integers").input("1\n").run().ends(0);
    folder.mayhap("test integers keys").run().ends(2).says("keys: line 1: \"key-0\" is not a whole number");
}
