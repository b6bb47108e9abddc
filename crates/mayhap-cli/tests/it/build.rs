//! `mayhap build`: what it makes of keys, and how it chooses.

use crate::runner::{Folder, families, lines};
use serde_json::Value;

/// Some 10 chunks of input.
const MANY: u64 = 200_000;

#[test]
fn every_key_is_found_and_few_others() {
    let folder = Folder::new();
    let keys = lines("key-", 20_000);
    folder.write("keys", &keys);
    folder.write("others", lines("other-", 20_000));
    let built = folder.mayhap("build -o f keys").run().ends(0).prints("");
    assert!(
        built.err.starts_with(
            "mayhap: f: bloom with 20,000 keys in 23.40 KiB, 7 probes; false-positive rate now "
        ),
        "{}",
        built.err
    );
    folder.mayhap("check f keys").run().ends(0).prints(&keys).stays_quiet();
    let found = folder.mayhap("check -c f others").run().ends(0);
    let found: u64 = String::from_utf8_lossy(&found.out).trim().parse().unwrap();
    // 200 are expected; 5 standard deviations are 70.
    assert!((130..=270).contains(&found), "{found} of 20000 at 1%");
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let folder = Folder::new();
    folder.write("keys", lines("https://example.org/page/", MANY));
    folder.mayhap("build -o one keys --threads 1").run().ends(0);
    let one = folder.read("one");
    for threads in [2, 3, 8, 64] {
        folder.mayhap(&format!("build -o many keys --threads {threads}")).run().ends(0);
        assert!(folder.read("many") == one, "{threads} threads");
    }
    folder.mayhap("build -o many keys --threads 0").run().ends(2).says("from 1 to 1024");
}

#[test]
fn a_stream_gives_the_same_filter_as_a_file() {
    let folder = Folder::new();
    // More than the 2^20 digests that are held in memory.
    let keys = lines("", 1_100_000);
    folder.write("keys", &keys);
    folder.mayhap("build -o from-file keys").run().ends(0);
    folder.mayhap("build -o from-stream").input(&keys).run().ends(0);
    assert!(folder.read("from-file") == folder.read("from-stream"));
    folder.mayhap("build -o given -n 1100000 -").input(&keys).run().ends(0);
    assert!(folder.read("from-file") == folder.read("given"));
}

#[test]
fn the_family_follows_from_what_is_asked() {
    let folder = Folder::new();
    folder.write("dense", lines("", 5000));
    folder.write("sparse", (0..500u64).map(|i| format!("{}\n", i * 1_000_000_007)).collect::<String>());
    let cases = [
        ("dense", "bloom"),
        ("dense --exact", "exact"),
        ("dense --exact --as u64", "bitmap"),
        ("sparse --exact --as u64", "roaring"),
        ("dense --family bloom", "bloom"),
        ("dense --family exact", "exact"),
        ("dense --family bitmap --as u64", "bitmap"),
        ("dense --family roaring --as u64", "roaring"),
        ("dense --family blocked", "blocked"),
        ("dense --fastest", "blocked"),
        ("dense --family counting", "counting"),
        ("dense --family dleft", "dleft"),
        ("dense --family spectral", "spectral"),
        ("dense --counts", "spectral"),
        ("dense --family cuckoo", "cuckoo"),
        ("dense --removable", "cuckoo"),
        ("dense --removable --layout compact", "cuckoo"),
        ("dense --family scalable", "scalable"),
        ("dense --family scalable -n 100 --growth 4 --tightening 0.5", "scalable"),
        ("dense --family windowed", "windowed"),
        ("dense --family expanding", "expanding"),
        ("dense --grow", "expanding"),
        ("dense --grow --removable -n 100 --doublings 8", "expanding"),
    ];
    for (arguments, family) in cases {
        let built = folder.mayhap(&format!("build -o f --json {arguments}")).run().ends(0);
        assert_eq!(built.json()["family"], family, "{arguments}");
        let keys = arguments.split(' ').next().unwrap();
        let kind = if arguments.contains("u64") { "--as u64" } else { "" };
        folder.mayhap(&format!("check f {kind} {keys}")).run().ends(0).prints(folder.read(keys));
    }
    folder
        .mayhap("build -o g --family nonesuch dense")
        .run()
        .ends(2)
        .says(&format!("no family is called \"nonesuch\"; there are {}", families(|_| true, ", ")));
    folder
        .mayhap("build -o g --family bitmap dense")
        .run()
        .ends(2)
        .says_only("mayhap: the family bitmap holds integers; say --as u64");
    folder.mayhap("build -o g --exact --family bloom dense").run().ends(2).says("cannot be used with");
    assert!(!folder.path("g").exists());
}

#[test]
fn removable_takes_cuckoo_and_says_so() {
    let folder = Folder::new();
    let keys = lines("key-", 20_000);
    folder.write("keys", &keys);
    for (layout, size) in [("fastest", "25.70"), ("compact", "23.13")] {
        let built =
            folder.mayhap(&format!("build -o f --removable --layout {layout} keys")).run().ends(0).prints("");
        let said = format!(
            "mayhap: --removable: the family cuckoo, whose keys can be removed\n\
             mayhap: f: cuckoo ({layout}) with 20,000 keys in {size} KiB; false-positive rate now 0.74"
        );
        assert!(built.err.starts_with(&said), "{}", built.err);
        folder.mayhap("check -c f keys").run().ends(0).prints("20000\n");
    }
    // Where a key lies depends on those before it, and still the threads do not matter; nor does the way in.
    folder.mayhap("build -o one --removable keys --threads 1 --quiet").run().ends(0).stays_quiet();
    for threads in [2, 8] {
        folder.mayhap(&format!("build -o many --removable keys --threads {threads}")).run().ends(0);
        assert!(folder.read("many") == folder.read("one"), "{threads} threads");
        folder.mayhap(&format!("build -o many --removable --threads {threads}")).input(&keys).run().ends(0);
        assert!(folder.read("many") == folder.read("one"), "{threads} threads, a stream");
    }
    for arguments in ["--removable --family bloom", "--removable --exact", "--removable --fastest"] {
        folder.mayhap(&format!("build -o g {arguments} keys")).run().ends(2).says("cannot be used with");
    }
    folder.mayhap("build -o g --removable --probes 7 keys").run().ends(2).says_only(
        "mayhap: cuckoo takes no probes; bloom, blocked, counting, spectral, spatial, shifting, shifting-association and \
         shifting-multiplicity do; leave --probes out or choose another --family",
    );
    assert!(!folder.path("g").exists());
}

#[test]
fn grow_needs_no_number_and_keeps_the_rate() {
    let folder = Folder::new();
    let keys = lines("key-", 50_000);
    folder.write("keys", &keys);
    let built = folder.mayhap("build -o f --grow -p 0.1% keys").run().ends(0).prints("");
    let said = "mayhap: --grow: the family expanding, doubled 6 times\n\
                mayhap: f: expanding with 50,000 keys in ";
    assert!(built.err.starts_with(said), "{}", built.err);
    folder.mayhap("check -c f keys").run().ends(0).prints("50000\n");
    let info = folder.mayhap("info f --json").run().ends(0).json();
    assert_eq!((&info["doublings"], &info["planned_doublings"]), (&6.into(), &20.into()));
    assert_eq!((&info["slots"], &info["over_capacity"]), (&73_728.into(), &false.into()));
    assert!(info["fpr_now"].as_f64().unwrap() <= 0.001 && info["load"].as_f64().unwrap() > 0.6);
    folder.mayhap("info f").run().ends(0).shows("doublings     6; the rate is kept through 20");
    // One pass over a stream gives the same, and so do threads.
    folder.mayhap("build -o g --grow -p 0.1% --threads 2").input(&keys).run().ends(0);
    assert!(folder.read("f") == folder.read("g"));
    // It goes on growing, and keys can leave.
    folder.mayhap("add f").input(lines("more-", 50_000)).run().ends(0);
    folder.mayhap("remove f keys").run().ends(0);
    folder.mayhap("check -c f").input(lines("more-", 50_000)).run().ends(0).prints("50000\n");
    let info = folder.mayhap("info f --json").run().ends(0).json();
    assert_eq!((&info["doublings"], &info["estimated_len"]), (&7.into(), &50_000.0.into()));
    // -n is where it starts: nothing to double.
    let built = folder.mayhap("build -o h --grow -n 50k --doublings 5 keys --json").run().ends(0).json();
    assert_eq!((&built["family"], &built["inserted"]), (&"expanding".into(), &50_000.into()));
    assert_eq!(folder.mayhap("info h --json").run().ends(0).json()["doublings"], 0);
    folder
        .mayhap("build -o i --doublings 5 keys")
        .run()
        .ends(2)
        .says_only("mayhap: bloom takes no doublings; expanding and table do; leave --doublings out or choose another --family");
    folder.mayhap("build -o i --grow --exact keys").run().ends(2).says("cannot be used with");
    // Those that start alike merge, whatever their size.
    folder.mayhap("build -o small --grow -p 0.1%").input(lines("small-", 10)).run().ends(0);
    folder.mayhap("merge -o all f small g").run().ends(0);
    folder.mayhap("check -c all").input(lines("small-", 10)).run().ends(0).prints("10\n");
    folder.mayhap("check -c all keys").run().ends(0).prints("50000\n");
    folder.mayhap("merge -o all f h").run().ends(2).says("bits per fingerprint differ");
    assert!(!folder.path("i").exists());
}

/// One line nine times over is one too many, and says what to do.
#[test]
fn a_removable_filter_takes_eight_copies() {
    let folder = Folder::new();
    let repeated = |times: usize| "again\n".repeat(times) + &lines("", 5000);
    folder.mayhap("build -o f --removable").input(repeated(8)).run().ends(0);
    let reason = "the key is in 8 times already, or others are that look the same, and more do not fit; insert each \
                  key once, or use a family that counts (mayhap dedup drops repeats)";
    let refused = folder.mayhap("build -o g --removable").input(repeated(9)).run().ends(2).prints("");
    refused.says_only(&format!("mayhap: record 9: {reason}"));
    folder.write("keys", format!("{}again\n", repeated(8)));
    let refused = folder.mayhap("build -o g --removable keys").run().ends(2).prints("");
    refused.says_only(&format!("mayhap: keys: line 5009: {reason}"));
    folder.write("first", "a\n");
    let refused = folder.mayhap("build -o g --removable -n 9000 first keys").run().ends(2).prints("");
    refused.says_only(&format!("mayhap: keys: line 5009: {reason}"));
    assert!(!folder.path("g").exists());
    folder
        .mayhap("add f")
        .input("x\nagain\n")
        .run()
        .ends(2)
        .says_only(&format!("mayhap: f: record 2: {reason}"));
}

/// "Build a larger one" was the advice, and a larger one could not help.
#[test]
fn a_removable_filter_that_repeats_have_filled_says_so() {
    let folder = Folder::new();
    // Keys that share buckets fill them before any is in eight times; of one after the other the first is in so often.
    let together: String = (0..10).map(|key| format!("{key}\n").repeat(9)).collect();
    let repeated = lines("", 10).repeat(9) + &together;
    folder.write("keys", &repeated);
    for (source, place) in [("keys", "mayhap: keys: line "), ("-", "mayhap: ")] {
        for size in ["-n 60", "-n 100", "", "-n 1000", "-n 100000"] {
            let call = folder.mayhap(&format!("build --removable -o f {size} {source}")).input(&repeated);
            let done = call.run().ends(2).prints("").says(place).says(" 8 times");
            assert!(!done.err.contains("larger"), "{}", done.err);
            done.says("insert each key once, or use a family that counts (mayhap dedup drops repeats)");
        }
    }
    // Different keys that are too many do want a larger one.
    let done = folder.mayhap("build --removable -n 100 -o f").input(lines("", 500)).run().ends(2);
    done.says("the filter is full: ").says("build a larger one");
}

#[test]
fn options_that_mean_nothing_together_are_refused() {
    let folder = Folder::new();
    let call = |line: &str| folder.mayhap(line).input("a\n").run().ends(2).prints("");
    call("build --exact -p 1% -o f").says_only(
        "mayhap: --exact and -p: an exact set has no false positives, so that there is no rate to choose; leave one of \
         them out",
    );
    for command in ["build -o f", "dedup", "sort"] {
        call(&format!("{command} -z --crlf")).says("cannot be used with");
    }
    call("advise -n 10 --counts=0").says("the largest count");
    assert_eq!(folder.names(), [""; 0]);
}

/// A rate of 8.8e-37% was shown.
#[test]
fn an_exact_set_has_no_rate() {
    let folder = Folder::new();
    folder
        .mayhap("build --exact -o f")
        .input(lines("", 3))
        .run()
        .ends(0)
        .says("; exact, no false positives\n");
    let info = folder.mayhap("info f").run().ends(0).shows("rate now      0 (exact)\n");
    info.shows("at capacity   0 (exact)\n");
    folder.mayhap("merge -o g f f").run().ends(0).says("false-positive rate now 0 (exact)\n");
}

#[test]
fn layouts_are_chosen_shown_and_kept() {
    let folder = Folder::new();
    let (keys, others) = (lines("key-", 20_000), lines("other-", 20_000));
    folder.write("keys", &keys);
    folder.write("others", others);
    for (arguments, layout, block) in [
        ("--family blocked", "compact", 512),
        ("--family blocked --layout compact", "compact", 512),
        ("--family blocked --layout fastest", "fastest", 256),
        ("--fastest", "fastest", 256),
    ] {
        let built = folder.mayhap(&format!("build -o f {arguments} keys")).run().ends(0).prints("");
        let text = format!("mayhap: f: blocked ({layout}) with 20,000 keys in ");
        assert!(built.err.starts_with(&text) && built.err.contains(", 8 probes;"), "{}", built.err);
        let built = folder.mayhap(&format!("build -o f --json {arguments} keys")).run().ends(0).json();
        assert_eq!((&built["family"], &built["layout"]), (&"blocked".into(), &layout.into()), "{arguments}");
        assert_eq!(built["bits"].as_u64().unwrap() % block, 0);
        let info = folder.mayhap("info --json f").run().ends(0).json();
        assert_eq!((&info["layout"], &info["bits"]), (&layout.into(), &built["bits"]), "{arguments}");
        folder.mayhap("info f").run().ends(0).shows(&format!("\nlayout        {layout}\n"));
        folder.mayhap("check f keys").run().ends(0).prints(&keys).stays_quiet();
        let found = folder.mayhap("check -c f others").run().ends(0);
        let found: u64 = String::from_utf8_lossy(&found.out).trim().parse().unwrap();
        // 200 are expected; 5 standard deviations are 70.
        assert!((130..=270).contains(&found), "{arguments}: {found} of 20000 at 1%");
        folder.mayhap("test f keys").run().ends(0);
    }
    // One key by one, in threads, from a stream: the same bytes.
    folder.mayhap("build -o f --fastest keys --threads 1").run().ends(0);
    folder.mayhap("build -o g --fastest keys --threads 8").run().ends(0);
    folder.mayhap("build -o h --fastest").input(&keys).run().ends(0);
    assert!(folder.read("f") == folder.read("g") && folder.read("f") == folder.read("h"));
    // Layouts do not mix.
    folder.mayhap("build -o c --family blocked keys").run().ends(0);
    folder.mayhap("merge -o m f c").run().ends(2).says("differ");
    folder.mayhap("merge -o m f g").run().ends(0);
    folder.mayhap("check m keys").run().ends(0).prints(&keys);
}

#[test]
fn a_layout_that_the_family_lacks_is_refused() {
    let folder = Folder::new();
    folder.write("keys", "1\n2\n");
    for (arguments, family) in [
        ("", "bloom"),
        ("--family bloom", "bloom"),
        ("--family exact", "exact"),
        ("--family bitmap --as u64", "bitmap"),
        ("--family roaring --as u64", "roaring"),
    ] {
        folder.mayhap(&format!("build -o f --layout fastest {arguments} keys")).run().ends(2).prints("").says_only(
            &format!(
                "mayhap: {family} takes no layout; blocked, cuckoo, fuse, ribbon and universe do; leave --layout out or \
                 choose another --family"
            ),
        );
    }
    folder
        .mayhap("build -o f --family blocked --layout quickest keys")
        .run()
        .ends(2)
        .says("no layout is called \"quickest\"; there are compact, fastest");
    for arguments in [
        "--fastest --family bloom",
        "--fastest --exact",
        "--fastest --layout compact",
        "--exact --layout compact",
    ] {
        folder.mayhap(&format!("build -o f {arguments} keys")).run().ends(2).says("cannot be used with");
    }
    folder
        .mayhap("build -o f --fastest --probes 7 keys")
        .run()
        .ends(2)
        .says_only("mayhap: probes must be 8, not 7 (--probes)");
    folder
        .mayhap("build -o f --fastest -p 1e-12 keys")
        .run()
        .ends(2)
        .says("must be at least 1e-9 in this family, not 1e-12; use bloom");
    assert_eq!(folder.names(), ["keys"]);
}

#[test]
fn counts_take_the_family_spectral_and_say_so() {
    let folder = Folder::new();
    folder.write("keys", lines("key-", 1000));
    let built = folder.mayhap("build -o f --counts keys").run().ends(0).prints("");
    let text = "mayhap: f: spectral (minimal-increase) with 1,000 keys in 4.68 KiB, 7 probes; ";
    assert!(built.err.starts_with(text), "{}", built.err);
    for rule in ["minimum-selection", "minimal-increase", "recurring-minimum"] {
        for counts in ["--counts", "--family spectral"] {
            let built = folder
                .mayhap(&format!("build -o f --json {counts} --counting-rule {rule} keys"))
                .run()
                .ends(0)
                .stays_quiet()
                .json();
            assert_eq!((&built["family"], &built["counting_rule"]), (&"spectral".into(), &rule.into()));
            assert_eq!(built["saturated_counters"], 0);
        }
    }
    for arguments in ["--family spectral", "--exact", "--fastest", "--layout compact"] {
        folder
            .mayhap(&format!("build -o g --counts {arguments} keys"))
            .run()
            .ends(2)
            .says("cannot be used with");
    }
    let refusals = [
        (
            "--counting-rule minimum-selection",
            "bloom takes no counting rule; spectral does; leave --counting-rule out",
        ),
        (
            "--family counting --counting-rule minimum-selection",
            "counting takes no counting rule; spectral does",
        ),
        ("--counter-bits 8", "takes no counter bits; counting, dleft, spectral, shifting"),
        ("--exact --counter-bits 8", "exact takes no counter bits; counting, dleft, spectral, shifting"),
        ("--family counting --counter-bits 17", "counter bits must be 2 to 16, not 17 (--counter-bits)"),
        ("--counts --counter-bits 2", "counter bits must be 4 to 32, not 2"),
        ("--counts --counter-bits four", "\"four\" is not a number of bits of a counter, such as 4, 8 or 16"),
        (
            "--counts --counting-rule most",
            "no counting rule is called \"most\"; there are minimum-selection, minimal-increase, recurring-minimum",
        ),
        ("--counts --foldable", "spectral does not fold; bloom does; leave --foldable out"),
        ("--counts --layout compact", "cannot be used with"),
    ];
    for (arguments, text) in refusals {
        folder.mayhap(&format!("build -o g {arguments} keys")).run().ends(2).prints("").says(text);
    }
    assert!(!folder.path("g").exists());
}

/// A log of a million lines about a hundred hosts needs counters for a hundred keys.
#[test]
fn counters_are_made_for_the_different_keys() {
    let folder = Folder::new();
    let log: String = (0..50_000u64).map(|i| format!("host-{}\n", i * i % 101)).collect();
    folder.write("log", &log);
    let from_file = folder.mayhap("build -o f --counts --json log").run().ends(0).json();
    assert_eq!((&from_file["capacity"], &from_file["inserted"]), (&51.into(), &50_000.into()));
    folder.mayhap("build -o g --counts").input(&log).run().ends(0);
    assert!(folder.read("f") == folder.read("g"), "a stream gives the same filter as a file");
    folder.mayhap("build -o h --counts -n 51").input(&log).run().ends(0);
    assert!(folder.read("f") == folder.read("h"));
    // Beyond the number that is counted exactly it is an estimate, which does not make anybody warn.
    let keys = lines("", 100_000);
    let built = folder.mayhap("build -o f --counts").input(&keys).run().ends(0);
    assert!(!built.err.contains("warning"), "{}", built.err);
    let capacity = folder.mayhap("info --json f").run().ends(0).json()["capacity"].as_u64().unwrap();
    assert!((99_000..=103_000).contains(&capacity), "{capacity}");
}

/// What the family makes of a stream depends on the order of its keys, and the order does not depend on the threads.
#[test]
fn threads_do_not_change_the_order_of_keys() {
    let folder = Folder::new();
    let log: String = (0..150_000u64).map(|i| format!("page-{}\n", i * i % 30_011)).collect();
    folder.write("log", &log);
    folder.mayhap("build -o one --counts -n 3000 --threads 1 log").run().ends(0);
    for threads in [1, 2, 8] {
        for capacity in ["-n 3000", ""] {
            folder.mayhap(&format!("build -o f --counts {capacity} --threads {threads} log")).run().ends(0);
            folder
                .mayhap(&format!("build -o g --counts {capacity} --threads {threads}"))
                .input(&log)
                .run()
                .ends(0);
            assert!(folder.read("f") == folder.read("g"), "{threads} threads, {capacity:?}");
        }
        folder.mayhap(&format!("build -o f --counts -n 3000 --threads {threads}")).input("").run().ends(0);
        folder.mayhap(&format!("add f --threads {threads}")).input(&log).run().ends(0);
        assert!(folder.read("f") == folder.read("one"), "added by {threads} threads");
    }
}

#[test]
fn saturated_counters_are_warned_about() {
    let folder = Folder::new();
    folder.write("keys", "a\n".repeat(20));
    let built = folder.mayhap("build -o f --family counting -n 100 keys").run().ends(0);
    let warning =
        "mayhap: warning: 7 of its counters are saturated and stay so: their keys cannot be removed";
    assert!(built.err.lines().nth(1).unwrap_or_default().starts_with(warning), "{}", built.err);
    for wider in ["--family counting --counter-bits 8", "--counts"] {
        let built = folder.mayhap(&format!("build -o f {wider} -n 100 keys")).run().ends(0);
        assert!(!built.err.contains("warning"), "{}", built.err);
    }
}

#[test]
fn a_bitmap_takes_the_integers_below_its_capacity() {
    let folder = Folder::new();
    folder.mayhap("build -o f --family bitmap --as u64 -n 100").input("7\n99\n").run().ends(0);
    folder.mayhap("check f --as u64").input("7\n8\n99\n100\n").run().ends(0).prints("7\n99\n");
    folder.mayhap("build -o g --family bitmap --as u64 -n 100").input("7\n100\n").run().ends(2).says_only(
        "mayhap: 100 has no place in a bitmap of the integers below 100; build it with a larger capacity, or \
         use the family roaring",
    );
    assert_eq!(folder.names(), ["f"]);
}

#[test]
fn human_numbers_mean_what_they_say() {
    let folder = Folder::new();
    folder.write("keys", lines("", 1000));
    folder.mayhap("build -o f -n 10000 -p 0.001 keys").run().ends(0);
    let plain = folder.read("f");
    for arguments in ["-n 10k -p 0.1%", "-n 1e4 -p 1e-3", "-n 10_000 -p 1in1000", "-n 0.01M -p 1in1k"] {
        folder.mayhap(&format!("build -o f {arguments} keys")).run().ends(0);
        assert!(folder.read("f") == plain, "{arguments}");
    }
}

#[test]
fn sizes_can_be_given_in_any_combination() {
    let folder = Folder::new();
    folder.write("keys", lines("", 1000));
    let cases = [
        // Arguments, then bits, probes and capacity.
        ("", 9586, 7, 1000),
        ("-p 0.1%", 14_378, 10, 1000),
        ("-n 10k", 95_851, 7, 10_000),
        ("--bits 20k", 20_000, 14, 1000),
        ("--bits 20k --probes 3", 20_000, 3, 1000),
        ("--bits 20k -n 2000", 20_000, 7, 2000),
        ("--bits 20k -p 1%", 20_000, 2, 1000),
        ("--bits 20k -p 1% --probes 4", 20_000, 4, 1900),
    ];
    for (arguments, bits, probes, capacity) in cases {
        let built = folder.mayhap(&format!("build -o f keys --json {arguments}")).run().ends(0).json();
        let found = (&built["bits"], &built["probes"], &built["capacity"]);
        assert_eq!(found, (&bits.into(), &probes.into(), &capacity.into()), "{arguments}");
    }
    folder
        .mayhap("build -o g keys -n 1000 -p 1% --bits 20k --probes 4")
        .run()
        .ends(2)
        .says("are all given; leave out the one to be computed");
    folder
        .mayhap("build -o g keys -p 1% --bits 5000")
        .run()
        .ends(2)
        .says("5000 bits cannot give that false-positive rate for so many keys; it takes 9593");
    assert!(!folder.path("g").exists());
}

#[test]
fn too_many_keys_are_warned_about() {
    let folder = Folder::new();
    folder.write("keys", lines("", 1000));
    let built = folder.mayhap("build -o f -n 100 keys").run().ends(0);
    let warning = built.err.lines().nth(1).unwrap_or_default();
    assert!(warning.starts_with("mayhap: warning: it holds about ") && warning.contains("was made for 100;"));
    folder.mayhap("build --quiet -o f -n 100 keys").run().ends(0).stays_quiet();
}

#[test]
fn the_json_report_has_its_fields() {
    let folder = Folder::new();
    let built = folder.mayhap("build -o f --json").input("a\nb\na\n").run().ends(0).stays_quiet().json();
    let expected = [
        ("output", Value::from("f")),
        ("family", "bloom".into()),
        ("capacity", 3.into()),
        ("inserted", 3.into()),
        ("bits", 29.into()),
        ("bytes", 4.into()),
        ("probes", 7.into()),
        ("fpr_asked", 0.01.into()),
    ];
    for (name, value) in expected {
        assert_eq!(built[name], value, "{name}");
    }
    for name in ["estimated_len", "fill", "fpr_now", "fpr_at_capacity"] {
        assert!(built[name].is_number(), "{name}");
    }
}

#[test]
fn standard_output_gets_the_filter_and_nothing_else() {
    let folder = Folder::new();
    folder.mayhap("build -o f").input("a\n").run().ends(0);
    folder.mayhap("build -o -").input("a\n").run().ends(0).prints(folder.read("f")).says("mayhap: -: bloom");
    let built = folder.mayhap("build -o - --json").input("a\n").run().ends(0).prints(folder.read("f"));
    assert!(built.err.starts_with('{'), "the report goes to standard error: {}", built.err);
    assert_eq!(folder.names(), ["f"]);
}

#[test]
fn seeds_make_different_filters() {
    let folder = Folder::new();
    let build = |seed: &str| {
        folder.mayhap(&format!("build -o f -n 100 --seed {seed}")).input("a\n").run().ends(0);
        folder.mayhap("check f").input("a\nb\n").run().ends(0).prints("a\n");
        folder.read("f")
    };
    assert!(build("42") == build("0x2a") && build("42") != build("43"));
    folder
        .mayhap("build -o g --seed x")
        .run()
        .ends(2)
        .says("\"x\" is not a 64-bit number, such as 42 or 0x2a");
}

#[test]
fn the_keys_are_not_overwritten_by_the_filter() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder
        .mayhap("build -o ./keys keys")
        .run()
        .ends(2)
        .says_only("mayhap: keys: is both a file with keys and the file to write");
    assert_eq!(folder.read("keys"), b"a\n");
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_opened_once() {
    let folder = Folder::new();
    for capacity in ["", "-n 3"] {
        folder
            .sh(&format!(
                "mkfifo p; printf 'a\\nb\\nc' > p & \"$MAYHAP\" build {capacity} -o f p && wait; rm p"
            ))
            .run()
            .ends(0);
        folder.mayhap("check f").input("c\nb\na\n").run().ends(0).prints("c\nb\na\n");
    }
}

#[test]
fn a_failing_folder_for_temporary_files_is_named() {
    let folder = Folder::new();
    folder
        .mayhap("build -o f")
        .env("TMPDIR", "/nonexistent")
        .input(lines("", 1_100_000))
        .run()
        .ends(2)
        .says("cannot write to the folder for temporary files (TMPDIR)");
    assert!(folder.names().is_empty());
}

#[test]
fn a_scalable_filter_grows_and_info_shows_its_layers() {
    let folder = Folder::new();
    let keys = lines("key-", 20_000);
    folder.mayhap("build -o f --family scalable -n 1000 -p 0.1%").input(&keys).run().ends(0).prints("");
    folder.mayhap("check -c f").input(&keys).run().ends(0).prints("20000\n");
    folder.mayhap("test f").input(&keys).run().ends(0);
    let info = folder.mayhap("info f --json").run().ends(0).json();
    let layers = info["layers"].as_array().expect("layers");
    let capacities: Vec<u64> = layers.iter().map(|layer| layer["capacity"].as_u64().unwrap()).collect();
    assert_eq!(capacities, [1000, 2000, 4000, 8000, 16_000]);
    assert_eq!((&info["capacity"], &info["over_capacity"]), (&31_000.into(), &false.into()));
    assert!(info["fpr_now"].as_f64().unwrap() <= 0.001);
    let text = folder.mayhap("info f").run().ends(0);
    let text = String::from_utf8_lossy(&text.out);
    assert!(
        text.contains("layers        5\n") && text.contains("1,000 of 1,000 keys, 2.29 KiB, 13 probes"),
        "{text}"
    );
    // It goes on growing, without a word of warning.
    let more = lines("more-", 50_000);
    let added = folder.mayhap("add f").input(&more).run().ends(0);
    assert!(!added.err.contains("warning"), "{}", added.err);
    assert!(folder.mayhap("info f --json").run().json()["fpr_now"].as_f64().unwrap() <= 0.001);

    // RedisBloom's parameters; and one that does not grow.
    folder
        .mayhap("build -o g --family scalable -n 1k --growth 2 --tightening 0.5")
        .input(&keys)
        .run()
        .ends(0);
    let probes = |name: &str| -> Vec<u64> {
        let info = folder.mayhap(&format!("info {name} --json")).run().json();
        info["layers"].as_array().unwrap().iter().map(|layer| layer["probes"].as_u64().unwrap()).collect()
    };
    assert_eq!(probes("g"), [8, 9, 10, 11, 12]);
    folder
        .mayhap("build -o h --family scalable -n 1k --growth 0")
        .input(&keys)
        .run()
        .ends(2)
        .says("the filter is full: it was made for 1000 keys; build a larger one");
    assert!(!folder.path("h").exists());
    for (options, text) in [
        (
            "--family scalable --growth 40000",
            "growth must be 0 to 32768, not 40000; 0 does not grow (--growth)",
        ),
        ("--family scalable --growth two", "\"two\" is not a growth"),
        ("--family scalable --tightening 1", "tightening must be 0.01 to 0.99, not 1 (--tightening)"),
        ("--growth 2", "bloom takes no growth; scalable does; leave --growth out"),
    ] {
        folder.mayhap(&format!("build -o h {options}")).input(&keys).run().ends(2).says(text);
    }
}

#[test]
fn a_windowed_filter_says_what_it_remembers() {
    let folder = Folder::new();
    let keys = lines("key-", 20_000);
    folder.mayhap("build -o f --family windowed -n 1000").input(&keys).run().ends(0).prints("");
    let last = keys.lines().skip(19_000).map(|line| format!("{line}\n")).collect::<String>();
    folder.mayhap("check f").input(&last).run().ends(0).prints(&last);
    let info = folder.mayhap("info f --json").run().ends(0).json();
    let window = |name: &str| info["window"][name].as_u64().unwrap();
    assert!(window("remembered") >= 1000 && window("forgotten") < 1600 && window("slices") > 10, "{info}");
    assert_eq!(info["guarantee"], "no false negatives among the last keys, as many as the capacity");
    assert_eq!((&info["over_capacity"], &info["layers"]), (&false.into(), &Value::Null));
    let text = folder.mayhap("info f").run().ends(0);
    assert!(String::from_utf8_lossy(&text.out).contains("window        the last 1,0"), "{}", text.err);
    folder.mayhap("merge -o g f f").run().ends(2).says("the family windowed cannot merge");
}

#[test]
fn a_bitmap_of_few_large_integers_is_warned_of() {
    let folder = Folder::new();
    folder
        .mayhap("build -o f --family bitmap --as u64")
        .input("40000000\n")
        .run()
        .ends(0)
        .says("warning: a bitmap takes one bit for every integer up to the largest, 40,000,000: 4.77 MiB for 1 key; --family roaring holds it in ");
    let quiet =
        folder.mayhap("build -o f --quiet --family bitmap --as u64").input("40000000\n").run().ends(0);
    assert!(quiet.err.is_empty());
    // With -n the size was chosen, and a small bitmap needs no warning.
    for options in ["--family bitmap -n 50M", "--exact", "--family roaring"] {
        let done = folder.mayhap(&format!("build -o f --as u64 {options}")).input("40000000\n").run().ends(0);
        assert!(!done.err.contains("warning"), "{options}: {}", done.err);
    }
    // The number of the essays, in the smallest form that there is: a bitmap of it takes 500 MB.
    folder.mayhap("build -o f --exact --as u64").input("4000000000\n").run().ends(0);
    let info = folder.mayhap("info --json f").run().ends(0).json();
    assert_eq!(info["family"], "roaring");
    assert!(info["bytes"].as_u64().unwrap() < 100, "{}", info["bytes"]);
}
