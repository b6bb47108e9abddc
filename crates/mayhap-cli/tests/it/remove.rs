//! `mayhap remove`: keys out of a file, where the family can.

use crate::runner::{Folder, families, lines};

#[test]
fn removed_keys_are_gone_and_the_status_tells_of_absent_ones() {
    let folder = Folder::new();
    for (family, kind) in [("exact", ""), ("bitmap", "--as u64"), ("roaring", "--as u64")] {
        folder
            .mayhap(&format!("build -o f --family {family} {kind} -n 10"))
            .input("1\n2\n3\n4\n")
            .run()
            .ends(0);
        let remove = |keys: &str| folder.mayhap(&format!("remove f {kind}")).input(keys).run().prints("");
        remove("2\n3\n").ends(0).says_only("mayhap: f: 2 keys removed, 0 were not in");
        remove("4\n7\n2\n").ends(1).says_only("mayhap: f: 1 key removed, 2 were not in");
        folder.mayhap(&format!("check f {kind}")).input("1\n2\n3\n4\n").run().ends(0).prints("1\n");
        folder.mayhap("info --verify f").run().ends(0);
        remove("").ends(0);
        folder.mayhap(&format!("remove --quiet f {kind}")).input("9\n").run().ends(1).stays_quiet();
    }
    assert_eq!(folder.names(), ["f"]);
}

#[test]
fn a_filter_forgets_what_is_removed_and_nothing_else() {
    let folder = Folder::new();
    for layout in ["fastest", "compact"] {
        let (stay, leave) = (lines("stay-", 5000), lines("leave-", 5000));
        folder
            .mayhap(&format!("build -o f --removable --layout {layout} -p 1e-6"))
            .input(format!("{stay}{leave}"))
            .run()
            .ends(0);
        let remove = |keys: &str| folder.mayhap("remove f").input(keys).run().prints("");
        remove(&leave).ends(0).says_only("mayhap: f: 5,000 keys removed, 0 were not in");
        folder.mayhap("check -c f").input(&stay).run().ends(0).prints("5000\n");
        folder.mayhap("check f").input(&leave).run().ends(1).prints("");
        let before = folder.read("f");
        remove(&leave).ends(1).says_only("mayhap: f: 0 keys removed, 5,000 were not in");
        assert!(folder.read("f") == before);
        folder.mayhap("info --verify f").run().ends(0);
        // Twice in is once in after one removal.
        folder.mayhap("add f").input("twice\ntwice\n").run().ends(0);
        remove("twice\n").ends(0);
        folder.mayhap("check f").input("twice\n").run().ends(0).prints("twice\n");
        remove("twice\ntwice\n").ends(1).says_only("mayhap: f: 1 key removed, 1 was not in");
    }
}

#[test]
fn a_family_that_cannot_is_refused_with_those_that_can() {
    let folder = Folder::new();
    folder.mayhap("build -o f").input("a\n").run().ends(0);
    let before = folder.read("f");
    folder.mayhap("remove f").input("a\n").run().ends(2).says_only(&format!(
        "mayhap: f: the family bloom cannot remove; build the filter with --family {}",
        families(|family| family.can.removes, " or "),
    ));
    assert!(folder.read("f") == before);
}

#[test]
fn keys_leave_a_counting_filter_one_by_one() {
    let folder = Folder::new();
    for options in ["--family counting", "--family dleft", "--counts --counting-rule minimum-selection"] {
        folder.mayhap(&format!("build -o f {options} -n 100 -p 1e-6")).input("1\n2\n2\n3\n").run().ends(0);
        let remove = |keys: &str| folder.mayhap("remove f").input(keys).run().prints("");
        remove("1\n2\n").ends(0).says_only("mayhap: f: 2 keys removed, 0 were not in");
        folder.mayhap("count f").input("1\n2\n3\n").run().ends(0).prints("1\t0\n2\t1\n3\t1\n");
        remove("1\n2\n").ends(1).says_only("mayhap: f: 1 key removed, 1 was not in");
        folder.mayhap("check f").input("1\n2\n3\n").run().ends(0).prints("3\n");
        folder.mayhap("info --verify f").run().ends(0);
    }
}

/// 20 removals answered "20 keys removed", status 0, and the key stayed.
#[test]
fn a_key_with_saturated_counters_was_told_to_be_removed() {
    let folder = Folder::new();
    let often = "often\n".repeat(300);
    for (options, most) in [
        ("--family counting", "300"),
        ("--family dleft --counter-bits 2", "300"),
        ("--counts --counting-rule minimum-selection --counter-bits 4", "300"),
        ("--family shifting --counter-bits 4", "300"),
        ("--family expanding", "300"),
    ] {
        folder
            .mayhap(&format!("build -o f {options} -n 1000 -p 1e-6"))
            .input(format!("once\n{often}"))
            .run()
            .ends(0);
        let remove = |keys: &str| folder.mayhap("remove f").input(keys).run().prints("");
        let said = format!(
            "mayhap: f: 0 keys removed, 0 were not in\nmayhap: f: {most} keys cannot be removed: saturated counters"
        );
        remove(&often).ends(1).says_only(&said);
        folder.mayhap("check f").input("often\n").run().ends(0).prints("often\n");
        // Others leave as ever.
        remove("once\nnever\noften\n").ends(1).says_only(
            "mayhap: f: 1 key removed, 1 was not in\nmayhap: f: 1 key cannot be removed: saturated counters",
        );
        folder.mayhap("check f").input("once\n").run().ends(1).prints("");
        folder.mayhap("info --verify f").run().ends(0);
    }
}

/// The family can, but not when it counts so.
#[test]
fn a_rule_that_cannot_is_refused_with_one_that_can() {
    let folder = Folder::new();
    folder.mayhap("build -o f --counts").input("a\n").run().ends(0);
    let before = folder.read("f");
    folder.mayhap("remove f").input("a\n").run().ends(2).says_only(&format!(
        "mayhap: f: the family spectral cannot remove by the rule minimal-increase; by minimum-selection it can; \
         build the filter with --counting-rule minimum-selection, or with --family {}",
        families(|family| family.can.removes, " or "),
    ));
    assert!(folder.read("f") == before);
}

#[test]
fn a_bad_record_changes_nothing() {
    let folder = Folder::new();
    folder.mayhap("build -o f --exact --as u64").input("1\n2\n").run().ends(0);
    let before = folder.read("f");
    folder.mayhap("remove f --as u64").input("1\ntwo\n").run().ends(2).says("line 2: \"two\" is not");
    folder.mayhap("remove f --as u64 absent").run().ends(2).says("absent: cannot open");
    folder.mayhap("remove f").input("1\ntwo\n").run().ends(2).says("line 2: \"two\" is not");
    assert!(folder.read("f") == before);
}
