//! `mayhap calc`: sizes and rates before anything is built.

use crate::runner;
use crate::runner::Folder;
use mayhap_eval::Proportion;
use serde_json::Value;

fn families(arguments: &str) -> Vec<Value> {
    let report = Folder::new().mayhap(&format!("calc --json {arguments}")).run().ends(0).stays_quiet().json();
    report["families"].as_array().expect("a list").clone()
}

fn bloom(arguments: &str) -> Value {
    let all = families(arguments);
    all.into_iter().find(|family| family["family"] == "bloom").expect("bloom")
}

#[test]
fn the_json_report_has_the_fields_that_programs_rely_on() {
    let all = families("-n 1000000 -p 0.01");
    let expected = [
        ("family", Value::from("bloom")),
        ("capacity", 1_000_000.into()),
        ("fpr", 0.01.into()),
        ("bits", 9_585_059.into()),
        ("bytes", 1_198_133.into()),
        ("probes", 7.into()),
        ("bits_per_key", 9.585059.into()),
        ("inserts", true.into()),
        ("removes", false.into()),
        ("counts", false.into()),
        ("labels", false.into()),
        ("merges", true.into()),
        ("grows", false.into()),
    ];
    for (name, value) in expected {
        assert_eq!(all[0][name], value, "{name}");
    }
    let overhead = all[0]["overhead"].as_f64().unwrap();
    assert!((overhead - std::f64::consts::LOG2_E).abs() < 1e-4, "{overhead}");
    let mut names: Vec<_> = all.iter().map(|family| family["family"].as_str().unwrap()).collect();
    // A family with several layouts has a row for each.
    names.dedup();
    // What a bitmap takes depends on which integers there may be.
    assert_eq!(names.join(" "), runner::families(|family| family.name != "bitmap", " "));
    for family in all.iter().filter(|family| family["exact"] == true) {
        assert_eq!((&family["probes"], &family["overhead"]), (&Value::Null, &Value::Null), "{family}");
    }
}

#[test]
fn the_report_for_people_shows_sizes_and_rates() {
    let report = Folder::new().mayhap("calc -n 10M -p 1e-5").run().ends(0).stays_quiet();
    let text = String::from_utf8_lossy(&report.out);
    assert!(text.starts_with("keys  10,000,000\nrate  1e-5\nbound 16.6 bits per key"), "{text}");
    let bloom = text.lines().find(|line| line.starts_with("bloom")).unwrap_or_else(|| panic!("{text}"));
    let cells: Vec<_> = bloom.split_whitespace().collect();
    assert_eq!(cells[1..5], ["24", "28.57", "MiB", "17"], "{text}");
    assert_eq!(self::bloom("-n 10M -p 1e-5")["probes"], 17);
}

#[test]
fn blocked_has_a_row_for_each_layout() {
    let blocked = |arguments: &str| -> Vec<Value> {
        families(arguments).into_iter().filter(|family| family["family"] == "blocked").collect()
    };
    let rows = blocked("-n 1M -p 0.1%");
    let layouts: Vec<_> = rows.iter().map(|row| row["layout"].as_str().unwrap()).collect();
    assert_eq!(layouts, ["compact", "fastest"]);
    for (row, per_key, block) in [(&rows[0], 15.72, 512), (&rows[1], 16.89, 256)] {
        assert!((row["bits_per_key"].as_f64().unwrap() - per_key).abs() < 0.02, "{row}");
        assert!(row["fpr_at_capacity"].as_f64().unwrap() <= 0.001, "{row}");
        assert_eq!((row["bits"].as_u64().unwrap() % block, &row["probes"]), (0, &8.into()));
    }
    assert_eq!(bloom("-n 1M -p 0.1%")["layout"], Value::Null);
    // Only what can be had.
    let layouts =
        |arguments: &str| blocked(arguments).iter().map(|row| row["layout"].clone()).collect::<Vec<_>>();
    assert_eq!(layouts("-n 1M -p 1e-5 --probes 16"), ["compact"]);
    assert!(layouts("-n 1M -p 1e-5 --probes 7").is_empty() && layouts("-n 1M -p 1e-12").is_empty());
    let text = Folder::new().mayhap("calc -n 1M -p 0.1%").run().ends(0);
    let text = String::from_utf8_lossy(&text.out).into_owned();
    for row in ["blocked (compact) 15.7", "blocked (fastest) 16.9"] {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.lines().any(|line| words(line).starts_with(row)), "{text}");
    }
}

#[test]
fn any_two_or_three_numbers_give_the_rest() {
    let cases = [
        // Arguments, then capacity, bits and probes.
        ("-n 1M -p 1%", 1_000_000, 9_585_059, 7),
        ("-n 1M --bits 9585059", 1_000_000, 9_585_059, 7),
        ("-n 1M --size 1198133", 1_000_000, 9_585_064, 7),
        ("--bits 9585059 -p 1%", 1_000_000, 9_585_059, 7),
        ("-n 1M --bits 9585059 --probes 7", 1_000_000, 9_585_059, 7),
        ("-n 1M -p 1% --probes 7", 1_000_000, 9_592_955, 7),
        ("-n 1M -p 1% --bits 20M", 1_000_000, 20_000_000, 2),
        ("-p 1% --bits 9592955 --probes 7", 1_000_000, 9_592_955, 7),
        ("-n 1000 --probes 10", 1000, 14_427, 10),
        ("--bits 14427 --probes 10", 1000, 14_427, 10),
        ("--size 64MiB -p 1e-6", 18_670_410, 536_870_912, 20),
    ];
    for (arguments, capacity, bits, probes) in cases {
        let found = bloom(arguments);
        let found = (&found["capacity"], &found["bits"], &found["probes"]);
        assert_eq!(found, (&capacity.into(), &bits.into(), &probes.into()), "{arguments}");
    }
}

#[test]
fn human_numbers_mean_what_they_say() {
    let plain = families("-n 40000000 -p 0.000001");
    for arguments in ["-n 40M -p 1in1M", "-n 40_000_000 -p 0.0001%", "-n 4e7 -p 1e-6", "-n 0.04G -p 1in1e6"] {
        assert_eq!(families(arguments), plain, "{arguments}");
    }
    assert_eq!(families("-n 1M --size 1MB"), families("-n 1M --size 1000000"));
    assert_eq!(families("-n 1M --size 1MiB"), families("-n 1M --bits 8388608"));
}

/// Each says what was asked, the limit and, where there is one, the way out.
#[test]
fn nonsense_is_refused() {
    let rate = "must be below 1 and at least 2^-64 (5.4e-20)";
    let cases: &[(&str, &[&str])] = &[
        ("-n 1M -p NaN", &["\"nan\" is not a number", "such as 1%, 0.01, 1e-6 or 1in1M"]),
        ("-n 1M -p inf", &["\"inf\" is not a number", "such as 1%, 0.01, 1e-6 or 1in1M"]),
        ("-n 1M -p -inf", &["\"-inf\" is not a number"]),
        ("-n 1M -p 0", &["(5.4e-20), not 0", rate, "for no errors at all use an exact family"]),
        ("-n 1M -p 1", &["(5.4e-20), not 1", rate]),
        ("-n 1M -p 100%", &["(5.4e-20), not 1", rate]),
        ("-n 1M -p 5", &["(5.4e-20), not 5", rate, "did you mean 5% (0.05)?"]),
        ("-n 1M -p -1", &["(5.4e-20), not -1", rate]),
        ("-n 1M -p 1e-300", &["'1e-300'", rate]),
        ("-n 1M -p 1in0", &["\"1in0\" divides by zero"]),
        ("-n 0 -p 1%", &["capacity must be 1 to 281474976710656, not 0"]),
        (
            "-n 9223372036854775808 -p 1%",
            &["capacity must be 1 to 281474976710656, not 9223372036854775808; split the set (-n)"],
        ),
        ("-n 1e30 -p 1%", &["\"1e30\" is beyond 64 bits; a count must be below 1.8e19"]),
        ("-n -5 -p 1%", &["\"-5\" is negative; a count is a whole number, such as 10M"]),
        ("-n 1.5 -p 1%", &["\"1.5\" is not whole; a count is a whole number, such as 10M"]),
        ("-n many -p 1%", &["\"many\" is not a number; give one such as 10M"]),
        ("-n 1M --bits 0", &["bits must be 1 to 281474976710656, not 0"]),
        ("-n 1M --bits -1", &["\"-1\" is negative"]),
        ("-n 1M --bits 1e18", &["bits must be 1 to 281474976710656, not 1000000000000000000 (--bits)"]),
        ("-n 1M --size 0", &["a size of 0 bytes holds nothing; the least is 1"]),
        ("-n 1M --size -1", &["\"-1\" is negative; a size is a whole number, such as 64MiB"]),
        ("-n 1M --probes 0", &["probes must be 1 to 64, not 0"]),
        ("-n 1M --probes 65", &["probes must be 1 to 64, not 65"]),
        ("-n 1M --probes -1", &["\"-1\" is not a number of probes; it must be 1 to 64"]),
        ("-n 1M --probes 2.5", &["\"2.5\" is not a number of probes; it must be 1 to 64"]),
        ("-n 1M -p 1% --bits 10M --probes 7", &["all given; leave out the one to be computed"]),
        ("-n 1M -p 1% --bits 5M", &["5000000 bits cannot give that false-positive rate", "it takes 9592955"]),
        ("-n 281474976710656 -p 1%", &["the limit is 281474976710656; split the set or accept"]),
        ("", &["too little to size a filter: give the capacity or the bits, and one more"]),
        ("-n 1M", &["too little to size a filter"]),
        ("-p 1%", &["too little to size a filter"]),
        ("-p 1% --probes 7", &["too little to size a filter"]),
        ("--bits 5M", &["too little to size a filter"]),
        ("--bits 5M --size 5M", &["cannot be used with"]),
    ];
    let folder = Folder::new();
    for (arguments, texts) in cases {
        let refused = folder.mayhap(&format!("calc {arguments}")).run().ends(2).prints("");
        for text in *texts {
            assert!(refused.err.contains(text), "calc {arguments}\nexpected: {text}\nfound: {}", refused.err);
        }
    }
}

/// What people take before they know filters: 20 million addresses of 50 bytes, and 100 million fingerprints.
#[test]
fn the_ladder_stands_beside_the_filters() {
    let folder = Folder::new();
    let report = folder.mayhap("calc --json -n 20M -p 1% --key-bytes 50").run().ends(0).json();
    let rows = report["baselines"].as_array().expect("a list");
    let row = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {rows:?}"));
        (row["bytes"].as_u64().unwrap(), row["fpr"].as_f64().unwrap())
    };
    let (bitmap, error) = row("bitmap, one hash, 5 bits a key");
    assert_eq!(bitmap, 12_500_000);
    assert!((error - 0.181_269).abs() < 1e-6, "{error}");
    assert!(row("hash set of keys").0 > 1_000_000_000);
    let sizes = ["160", "128", "64"].map(|bits| row(&format!("hash set of {bits}-bit digests")).0);
    assert!(sizes.is_sorted_by(|larger, smaller| larger > smaller), "{sizes:?}");
    let report = folder.mayhap("calc --json -n 100M -p 1%").run().ends(0).json();
    let row = |name: &str| {
        let rows = report["baselines"].as_array().expect("a list");
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {rows:?}")).clone()
    };
    let half_full = row("half-full table of 64-bit digests");
    assert_eq!(half_full["bytes"], 1_600_000_000u64);
    // At 1% a filter takes a thirteenth of it.
    assert!((half_full["times_bloom"].as_f64().unwrap() - 13.354).abs() < 1e-3, "{half_full}");
    assert_eq!(row("database table with an index")["bytes"], 11_800_000_000u64);
    assert_eq!(row("list of 4-byte ids")["bits_per_key"], 32.0);
    folder.mayhap("calc -n 20M -p 1%").run().ends(0).shows("18.1%");
}

/// A finite universe has a smaller lower bound, and only a set of integers below a bound can be a bitmap.
#[test]
fn a_finite_universe_has_a_lower_bound_and_integers_have_a_bitmap() {
    let folder = Folder::new();
    let bound = "      27.48 bits in all, 2.748 per key, if there are only 100 keys\n";
    folder.mayhap("calc -n 10 -p 10% --universe 100").run().ends(0).shows(bound);
    folder
        .mayhap("calc -n 1M -p 1% --universe 4294967296")
        .run()
        .ends(0)
        .shows("      6,627,354 bits in all, 6.627 per");
    let report = folder.mayhap("calc --json -n 100 -p 1% --integers 1000").run().ends(0).json();
    assert!((report["finite_bound"]["bits"].as_f64().unwrap() - 422.467_554).abs() < 1e-4, "{report}");
    assert_eq!(report["finite_bound"]["universe"], 1000);
    let bitmap = |arguments: &str| families(arguments).into_iter().find(|row| row["family"] == "bitmap");
    let row = bitmap("-n 100 -p 1% --integers 1000").expect("a bitmap");
    assert_eq!(
        (&row["bits"], &row["bits_per_key"], &row["capacity"]),
        (&1000.into(), &10.0.into(), &100.into())
    );
    assert_eq!(bitmap("-n 100 -p 1%"), None, "the integers are not known to have a bound");
    assert_eq!(bitmap("-n 100 -p 1% --universe 1000"), None);
    assert_eq!(bitmap("-n 100 -p 1% --family bitmap").expect("it was named")["bits"], 100);
    let refused = folder.mayhap("calc -n 100 -p 1% --integers 99").run().ends(2).prints("");
    refused.says("100 keys do not fit in a universe of 99");
}

#[test]
fn some_families_are_shown_if_they_are_named() {
    let names = |arguments: &str| -> Vec<String> {
        let rows = families(arguments);
        rows.iter().map(|row| row["family"].as_str().expect("a name").to_string()).collect()
    };
    assert_eq!(names("-n 1M -p 1% --family bloom"), ["bloom"]);
    // In the order of all, and with a row for each layout.
    assert_eq!(names("-n 1M -p 1% --family cuckoo,bloom"), ["bloom", "cuckoo", "cuckoo"]);
    let folder = Folder::new();
    let text = folder.mayhap("calc -n 1M -p 1% --family bloom").run().ends(0);
    assert_eq!(text.out.split(|&byte| byte == b'\n').count(), 8, "a head of four lines and a table of two");
    // One that cannot is an error here, and not left out.
    folder.mayhap("calc -n 1M -p 1e-12 --family bloom,blocked").run().ends(2).prints("").says("blocked: ");
    folder
        .mayhap("calc -n 1M -p 1% --family blom")
        .run()
        .ends(2)
        .says("no family is called \"blom\"; did you mean \"bloom\"? There are bloom");
}

#[test]
fn sizes_are_told_in_bits_and_in_both_units_and_with_one_probe_collisions() {
    let folder = Folder::new();
    let size = "size  239,626,460 bits of bloom: 29.95 MB or 28.57 MiB\n";
    let done = folder.mayhap("calc -n 10M -p 1e-5").run().ends(0).shows(size);
    assert!(!String::from_utf8_lossy(&done.out).contains("pairs "));
    folder.mayhap("calc -n 10k --bits 1e8 --probes 1").run().ends(0).shows("\npairs 39.3%: ");
}

#[test]
fn a_plot_has_every_family_that_has_a_rate_and_the_bound() {
    let folder = Folder::new();
    folder.mayhap("calc -n 1M -p 1% --plot bits.svg").run().ends(0);
    let svg = String::from_utf8(folder.read("bits.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for name in ["bound: log2(1/p)", "bloom", "blocked", "cuckoo", "fuse", "ribbon", "counting", "table"] {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    folder.mayhap("calc -n 1M -p 1% --plot absent/bits.svg").run().ends(2).says("absent/bits.svg: ");
}

/// Keys that are random numbers of 32 bits.
fn numbers(count: u64) -> String {
    (0..count).map(|i| format!("{}\n", mayhap_eval::SplitMix64::at(7, i) as u32)).collect()
}

/// What was calculated is what is built: to the bit, or within half a percent where it depends on the keys, and the steps that
/// it comes in. And the rate is the one that was claimed.
#[test]
fn what_is_built_is_what_was_calculated() {
    for (n, p) in [(1000, "1%"), (5000, "0.1%"), (777, "1e-4"), (20_000, "3%"), (60_000, "0.5%")] {
        let folder = Folder::new();
        folder.write("keys", numbers(n));
        folder.write("integers", (0..n).map(|integer| format!("{integer}\n")).collect::<String>());
        let others: String =
            numbers(11 * n).lines().skip(n as usize).map(|line| format!("{line}\n")).collect();
        folder.write("others", &others);
        for row in &[
            families(&format!("-n {n} -p {p} --universe {}", 11 * n)),
            families(&format!("-n {n} -p {p} --family bitmap")),
        ]
        .concat()
        {
            let (family, layout) = (row["family"].as_str().unwrap(), row["layout"].as_str());
            let chosen = layout.map_or(String::new(), |layout| format!("--layout {layout}"));
            let planned = row["bits"].as_f64().unwrap();
            // Which of them depend on the keys, by how much of their bits.
            let (options, within) = match family {
                // Of two sets, which the shell does not take: the library's tests compare it.
                "shifting-association" => continue,
                "spatial" => ("--label one=keys".to_string(), 0.0),
                "bitmap" => ("--as u64 integers".into(), 0.0),
                "roaring" => ("--as u64 keys".into(), 0.005 * planned),
                // Two of the keys may be the same.
                "exact" => ("keys".into(), 0.005 * planned),
                // How many are bumped to the last layer, which comes in blocks of 64 slots.
                "ribbon" => (format!("-n {n} {chosen} keys"), 0.005 * planned + block_of_slots(row)),
                "universe" => {
                    (format!("--universe others {chosen} keys"), 0.005 * planned + block_of_slots(row))
                }
                // How many find no room near their lines: their names take 64 bits each, and chance moves their number.
                "table" => (format!("-n {n} keys"), 0.005 * planned + 64.0 * 3.0 * (n as f64 / 100.0).sqrt()),
                _ => (format!("-n {n} {chosen} keys"), 0.0),
            };
            let family_option = if family == "universe" { "" } else { &format!("--family {family}") };
            folder.mayhap(&format!("build {family_option} -p {p} {options} -o f")).run().ends(0);
            let info = folder.mayhap("info --json f").run().ends(0).json();
            let built = info["bits"].as_f64().unwrap();
            assert_eq!(info["family"], family);
            assert!(
                (built - planned).abs() <= within,
                "{family} {layout:?}, -n {n} -p {p}: {built} bits, calculated {planned}"
            );
            let asked = match family {
                "roaring" => "keys --as u64",
                "bitmap" => "integers --as u64",
                _ => "keys",
            };
            let tested = folder.mayhap(&format!("test --json f {asked}")).run().ends(0).json();
            if let Some(measured) = tested["fpr_measured"].as_f64() {
                // A window that has not gone by and a filter that has not grown err less than they will.
                let later = matches!(family, "windowed" | "expanding");
                assert_rate(row, measured, tested["absent_asked"].as_u64().unwrap(), n, later);
            }
        }
    }
}

/// What was measured is what was calculated, at 5 standard deviations: of the count, and of a rate from one seed to the next,
/// which in blocks is up to 3.3 times that of a Bloom filter.
fn assert_rate(row: &Value, measured: f64, asked: u64, keys: u64, later: bool) {
    let calculated = row["fpr_at_capacity"].as_f64().unwrap();
    let probes = row["probes"].as_f64().unwrap_or(4.0);
    let rho = if row["family"] == "blocked" { 4.0 } else { 2.0 } * 0.5 * (probes / keys as f64).sqrt();
    let counted = Proportion { hits: (measured * asked as f64).round() as u64, trials: asked };
    let less = later && measured <= calculated;
    assert!(less || counted.agrees_with(calculated, rho, 5.0), "{row}: {measured} measured");
}

/// The bits of 64 slots of a ribbon, with fingerprints for this rate.
fn block_of_slots(row: &Value) -> f64 {
    64.0 * (1.0 - row["fpr"].as_f64().unwrap().log2()).ceil()
}
