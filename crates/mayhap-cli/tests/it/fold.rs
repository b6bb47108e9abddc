//! `mayhap fold`: smaller files without the keys, and what stands in the way.

use crate::runner::{Folder, families, lines};

/// A filter for a million keys that holds few.
fn roomy(options: &str, keys: u64) -> Folder {
    let folder = Folder::new();
    folder.write("keys", lines("key-", keys));
    folder.mayhap(&format!("build -n 1M -o roomy keys {options}")).run().ends(0);
    folder
}

#[test]
fn a_roomy_filter_shrinks_to_the_rate_and_keeps_every_key() {
    let folder = roomy("--foldable", 10_000);
    folder.write("others", lines("other-", 200_000));
    let folded = folder.mayhap("fold -p 1% -o small roomy").run().ends(0).prints("");
    assert!(
        folded.err.starts_with(
            "mayhap: small: folded by 96, from 1.15 MiB to 12.27 KiB; false-positive rate now 0.799%"
        ),
        "{}",
        folded.err
    );
    folder.mayhap("check small keys").run().ends(0).prints(folder.read("keys"));
    folder.mayhap("test small keys --absent others").run().ends(0).shows("holds");
    folder.mayhap("info --verify small").run().ends(0).shows("requested     1%");
    let info = folder.mayhap("info --json small").run().ends(0).json();
    assert_eq!((&info["inserted"], &info["over_capacity"]), (&10_000.into(), &false.into()));
    assert!((10_000..11_000).contains(&info["capacity"].as_u64().unwrap()), "{info}");
    assert!(info["fpr_now"].as_f64().unwrap() <= 0.01);
    // It goes on taking keys, and can replace the one that it came from.
    folder.mayhap("add small").input("one more\n").run().ends(0);
    folder.mayhap("check small --key").arg("one more").run().ends(0);
    folder.mayhap("fold -p 1% -o roomy roomy").run().ends(0);
    folder.mayhap("check roomy keys").run().ends(0).prints(folder.read("keys"));
}

#[test]
fn foldable_costs_at_most_one_percent_and_changes_no_answer() {
    let folder = roomy("", 10_000);
    folder.mayhap("build -n 1M -o foldable keys --foldable").run().ends(0);
    let bits = |name: &str| {
        folder.mayhap(&format!("info --json {name}")).run().ends(0).json()["bits"].as_u64().unwrap()
    };
    let (plain, foldable) = (bits("roomy"), bits("foldable"));
    assert_eq!((plain, foldable), (9_585_059, 9_646_080));
    folder.mayhap("check foldable keys").run().ends(0).prints(folder.read("keys"));
    // From a stream, whose keys are counted, the same as with their number.
    folder.mayhap("build --foldable -o stream").input(lines("key-", 10_000)).run().ends(0);
    folder.mayhap("build --foldable -n 10000 -o given keys").run().ends(0);
    assert!(folder.read("stream") == folder.read("given"));
    for (options, name) in [("--family exact", "exact"), ("--exact --as u64", "bitmap")] {
        folder.mayhap(&format!("build --foldable {options} -o refused keys")).run().ends(2).says_only(
            &format!(
                "mayhap: {name} does not fold; bloom does; leave --foldable out or choose another --family"
            ),
        );
    }
    folder.mayhap("build --help").run().ends(0).shows("--foldable").shows("mayhap fold");
}

#[test]
fn the_json_report_never_mixes_with_the_filter() {
    let folder = roomy("--foldable", 10_000);
    let report = folder.mayhap("fold --json -p 1% -o small roomy").run().ends(0).stays_quiet().json();
    assert_eq!((&report["output"], &report["family"]), (&"small".into(), &"bloom".into()));
    assert_eq!((&report["factor"], &report["bits"]), (&96.into(), &100_480.into()));
    assert_eq!((&report["bits_before"], &report["inserted"]), (&9_646_080.into(), &10_000.into()));
    assert_eq!((&report["bytes"], &report["probes"]), (&12_560.into(), &7.into()));
    for name in ["fill", "fpr_asked", "fpr_now", "fpr_before", "fpr_at_capacity", "capacity"] {
        assert!(report[name].is_number(), "{name}");
    }
    let folded = folder.mayhap("fold --json -p 1% -o - roomy").run().ends(0).prints(folder.read("small"));
    assert!(folded.err.starts_with('{'), "the report goes to standard error: {}", folded.err);
    folder.mayhap("fold --quiet -p 1% -o - roomy").run().ends(0).prints(folder.read("small")).stays_quiet();
}

#[test]
fn what_cannot_be_folded_says_why_and_nothing_is_written() {
    let folder = roomy("--foldable", 10_000);
    folder.mayhap("fold -p 1% -o small roomy").run().ends(0);
    let small = folder.read("small");
    // Already as small as the rate allows.
    folder
        .mayhap("fold -p 1% -o new small")
        .run()
        .ends(2)
        .prints("")
        .says("mayhap: small: no fold keeps the rate at 1%: by 2, the least divisor of its 100,480 bits, it is 1")
        .says("; nothing was written (build it with --foldable for more divisors)");
    // Already too full.
    folder
        .mayhap("fold -p 1e-6 -o small small")
        .run()
        .ends(2)
        .says("mayhap: small: its false-positive rate is already 0.799%")
        .says(", requested was 1e-6; nothing was written");
    assert!(folder.read("small") == small && !folder.path("new").exists());
    // A prime number of bits, however empty.
    folder.mayhap("build -o prime --bits 9973 --probes 3").input("key\n").run().ends(0);
    folder
        .mayhap("fold -p 1% -o new prime")
        .run()
        .ends(2)
        .says("by 9973, the least divisor of its 9,973 bits, it is 100%");
    for family in ["exact", "bitmap --as u64", "roaring --as u64"] {
        folder.mayhap(&format!("build -o set --family {family}")).input("1\n").run().ends(0);
        folder.mayhap("fold -p 1% -o new set").run().ends(2).says_only(&format!(
            "mayhap: set: the family {} cannot fold; build the filter with --family {}",
            family.split(' ').next().unwrap(),
            families(|family| family.can.folds, " or "),
        ));
    }
    folder.mayhap("fold -p 5 -o new roomy").run().ends(2).says("did you mean 5% (0.05)?");
    folder.mayhap("fold -o new roomy").run().ends(2).says("--fpr <RATE>");
    folder.mayhap("fold -p 1% roomy").run().ends(2).says("--output <FILE>");
    folder.mayhap("fold -p 1% -o new absent").run().ends(2).says("mayhap: absent: cannot open: ");
    folder.mayhap("fold -p 1% -o new keys").run().ends(2).says("mayhap: keys: not a mayhap file");
    assert!(!folder.path("new").exists());
}
