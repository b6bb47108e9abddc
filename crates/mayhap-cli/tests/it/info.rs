//! `mayhap info`: what a file is, how full, and how far it was checked.

use crate::runner::{Folder, lines};
use serde_json::Value;

fn built() -> Folder {
    let folder = Folder::new();
    folder.mayhap("build -o f --seed 0x2a").input(lines("", 1000)).run().ends(0);
    folder
}

#[test]
fn the_json_report_has_the_fields_that_programs_rely_on() {
    let folder = built();
    let info = folder.mayhap("info --json f").run().ends(0).stays_quiet().json();
    let expected = [
        ("format", Value::from("mayhap")),
        ("family", "bloom".into()),
        ("capacity", 1000.into()),
        ("inserted", 1000.into()),
        ("bits", 9586.into()),
        ("bytes", 1199.into()),
        ("probes", 7.into()),
        ("fpr_asked", 0.01.into()),
        ("hash", "xxh3-128".into()),
        ("seed", "000000000000002a".into()),
        ("version", 1.into()),
        ("checksum", "header-ok".into()),
        ("over_capacity", false.into()),
        ("guarantee", "no false negatives".into()),
    ];
    for (name, value) in expected {
        assert_eq!(info[name], value, "{name}");
    }
    let between = [
        ("estimated_len", 950.0, 1050.0),
        ("fill", 0.45, 0.55),
        ("fpr_now", 0.005, 0.02),
        ("fpr_at_capacity", 0.0100, 0.0101),
        ("bits_per_key", 9.0, 10.2),
    ];
    for (name, low, high) in between {
        let value = info[name].as_f64().unwrap_or_else(|| panic!("{name}"));
        assert!((low..=high).contains(&value), "{name} is {value}");
    }
    let checked = folder.mayhap("info --json --verify f").run().ends(0).json();
    assert_eq!(checked["checksum"], "ok");
}

#[test]
fn the_report_for_people_says_the_same() {
    let folder = built();
    let info = folder.mayhap("info f").run().ends(0).stays_quiet();
    for line in [
        "family        bloom (the classic: smallest that inserts and merges)",
        "capacity      1,000 keys",
        "inserted      1,000",
        "size          9,586 bits, 1.17 KiB",
        "probes        7",
        "requested     1%",
        "guarantee     no false negatives",
        "hash          xxh3-128, seed 000000000000002a",
        "format        mayhap, version 1",
        "checksum      header-ok (--verify reads the rest)",
    ] {
        let text = String::from_utf8_lossy(&info.out);
        assert!(text.lines().any(|found| found == line), "expected {line:?} in\n{text}");
    }
    folder.mayhap("info --verify f").run().ends(0).shows("checksum      ok\n");
}

#[test]
fn every_family_is_described() {
    let folder = Folder::new();
    for (family, kind) in [("exact", ""), ("bitmap", "--as u64"), ("roaring", "--as u64")] {
        folder.mayhap(&format!("build -o f --family {family} {kind}")).input("1\n5\n1\n").run().ends(0);
        for verify in ["", "--verify"] {
            let info = folder.mayhap(&format!("info --json {verify} f")).run().ends(0).json();
            assert_eq!((&info["family"], &info["estimated_len"]), (&family.into(), &2.0.into()));
            assert_eq!((&info["probes"], &info["guarantee"]), (&Value::Null, &"exact".into()));
        }
    }
}

#[test]
fn counters_are_described_with_those_that_are_saturated() {
    let folder = Folder::new();
    folder.write("keys", format!("{}b\n", "a\n".repeat(20)));
    let info = |options: &str| {
        folder.mayhap(&format!("build -o f --quiet -n 100 {options} keys")).run().ends(0);
        folder.mayhap("info --verify f").run().ends(0);
        let text = String::from_utf8(folder.mayhap("info f").run().ends(0).out).unwrap();
        (text, folder.mayhap("info --json f").run().ends(0).json())
    };
    let fields = [
        "counters",
        "counter_bits",
        "saturated_counters",
        "overflowed_counters",
        "counting_rule",
        "degraded",
    ];
    let values = |json: &Value| fields.map(|name| json[name].clone());

    let (text, json) = info("--family counting");
    assert!(text.contains("\ncounters      959 of 4 bits\nsaturated     7\nfill "), "{text}");
    assert_eq!(values(&json), [959.into(), 4.into(), 7.into(), 0.into(), Value::Null, false.into()]);
    assert_eq!(json["guarantee"], "no false negatives if only present keys were removed");

    let (text, json) = info("--counts");
    let lines = "\ncounters       959 of 4 bits, and 7 of them have more\nsaturated      0\ncounting rule  minimal-increase\n";
    assert!(text.contains(lines), "{text}");
    assert_eq!(
        values(&json),
        [959.into(), Value::Null, 0.into(), 7.into(), "minimal-increase".into(), false.into()]
    );
    assert_eq!(
        (&json["bits"], &json["guarantee"]),
        (&(959 * 4 + 7 * 128).into(), &"no false negatives".into())
    );
    folder.mayhap("merge -o f f f").run().ends(0);
    folder
        .mayhap("info f")
        .run()
        .ends(0)
        .shows("\ncounting rule  minimal-increase, merged: counts are less exact");
    assert_eq!(folder.mayhap("info --json f").run().ends(0).json()["degraded"], true);

    let (_, json) = info("--counts --counting-rule recurring-minimum --counter-bits 4");
    assert_eq!((&json["counters"], &json["counter_bits"]), (&(959 + 480).into(), &4.into()));
    assert!(json["saturated_counters"].as_u64() >= Some(7), "{json}");

    let (text, json) = info("");
    assert!(!text.contains("counters") && !text.contains("saturated"), "{text}");
    assert!(values(&json).iter().all(Value::is_null));
}

#[test]
fn slots_are_reported_where_there_are_some() {
    let folder = Folder::new();
    folder.mayhap("build -o f --removable -p 0.1%").input(lines("", 1000)).run().ends(0);
    let info = folder.mayhap("info --json f").run().ends(0).json();
    let expected = [("slots", 1056), ("bits", 1056 * 13), ("inserted", 1000), ("capacity", 1000)];
    for (name, value) in expected {
        assert_eq!(info[name], value, "{name}");
    }
    let (load, evictions) = (info["load"].as_f64().unwrap(), info["evictions"].as_u64().unwrap());
    assert!(load == 1000.0 / 1056.0 && info["fill"] == load && info["estimated_len"] == 1000.0, "{info}");
    assert!((20..500).contains(&evictions), "{evictions}");
    assert_eq!(info["guarantee"], "no false negatives if only present keys were removed");
    folder
        .mayhap("info f")
        .run()
        .ends(0)
        .shows("load          94.7%, 1,000 of 1,056 slots\n")
        .shows(&format!("evictions     {evictions}\n"));
    // Removing leaves the evictions as they are.
    folder.mayhap("remove f").input(lines("", 500)).run().ends(0);
    let info = folder.mayhap("info --json f").run().ends(0).json();
    assert_eq!((&info["evictions"], &info["inserted"]), (&evictions.into(), &1000.into()));
    assert_eq!(info["estimated_len"], 500.0);
    let bloom = built().mayhap("info --json f").run().ends(0).json();
    assert_eq!(
        (&bloom["slots"], &bloom["load"], &bloom["evictions"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
}

#[test]
fn an_overfull_filter_is_warned_about() {
    let folder = Folder::new();
    folder.mayhap("build -o f -n 10").input(lines("", 1000)).run().ends(0);
    folder.mayhap("info f").run().ends(0).shows("warning       over capacity");
    let info = folder.mayhap("info --json f").run().ends(0).json();
    assert_eq!(
        (&info["over_capacity"], &info["estimated_len"]),
        (&true.into(), &Value::Null),
        "it is saturated"
    );
}

#[test]
fn a_flipped_payload_bit_is_found_by_verify_and_not_read_otherwise() {
    let folder = built();
    let sound = folder.mayhap("info --json f").run().ends(0);
    for (byte, bit) in [(4096, 0), (4700, 3), (5000, 7)] {
        let mut bytes = folder.read("f");
        bytes[byte] ^= 1 << bit;
        folder.write("g", bytes);
        folder.mayhap("info --json g").run().ends(0).prints(&sound.out);
        folder
            .mayhap("info --verify g")
            .run()
            .ends(2)
            .prints("")
            .says("mayhap: g: damaged: the checksum of the payload is ");
        folder.mayhap("check --no-mmap g").input("1\n").run().ends(2).says("g: damaged");
        folder.mayhap("add g").input("1\n").run().ends(2).says("g: damaged");
    }
}

#[test]
fn a_heatmap_shows_every_part_of_a_filter() {
    let folder = Folder::new();
    folder.write("keys", lines("key-", 50_000));
    for family in ["bloom", "cuckoo", "ribbon"] {
        folder.mayhap(&format!("build --family {family} -o f keys")).run().ends(0);
        folder.mayhap("info f --heatmap f.svg").run().ends(0).shows("family");
        let svg = String::from_utf8(folder.read("f.svg")).unwrap();
        assert_eq!(svg.matches("<title>").count(), 32 * 64, "{family}");
        assert!(svg.ends_with("</svg>\n"));
        // Half of the bits of a full filter are set, in every part of it. (Others have numbers that tell of the filter too.)
        if family != "bloom" {
            continue;
        }
        let shares =
            svg.split("<title>").skip(1).map(|tile| tile.split('%').next().unwrap().parse::<f64>().unwrap());
        assert!(
            shares.clone().all(|share| (20.0..80.0).contains(&share)),
            "{family}: {:?}",
            shares.collect::<Vec<_>>()
        );
    }
    folder.write("empty", "");
    folder.mayhap("build --family ribbon -o g empty").run().ends(0);
    folder.mayhap("info g --heatmap g.svg").run().ends(0);
}
