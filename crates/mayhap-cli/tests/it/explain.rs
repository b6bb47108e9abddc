//! `mayhap explain`: small filters, drawn key by key.

use crate::runner::Folder;
use mayhap::{Bloom, Counting, Cuckoo, Hashing, Layout, Shifting, Spatial, Spec};
use serde_json::Value;

fn explained(arguments: &str) -> Value {
    Folder::new().mayhap(&format!("explain --json {arguments}")).run().ends(0).stays_quiet().json()
}

fn numbers(value: &Value) -> Vec<u64> {
    let list = value.as_array().unwrap_or_else(|| panic!("no list: {value}"));
    list.iter().map(|number| number.as_u64().expect("a number")).collect()
}

const KEYS: [&str; 5] = ["hello", "world", "ada", "bob", "hello"];

/// As many others as will have a false positive among them.
fn others() -> Vec<String> {
    (0..40).map(|index| format!("other{index}")).collect()
}

/// Arguments that insert [`KEYS`] and ask for the first of them and for all others.
fn with_keys(arguments: &str) -> String {
    let asked: Vec<String> = others().iter().map(|key| format!("--ask {key}")).collect();
    format!("{} {arguments} --ask hello {}", KEYS.join(" "), asked.join(" "))
}

/// The picture that `docs/command.md` shows.
#[test]
fn a_small_filter_is_drawn_as_textbooks_do() {
    let command = "explain hello xyz --ask sadj --ask abc --bits 8 --at hello=1,2,3,4 --at xyz=2,3,4,5 --at sadj=1,3,4,5 \
                   --at abc=3,6,0";
    let expected = "\
bloom: 8 bits, positions as they were given

hello  at 1, 2, 3, 4
   0 1 2 3 4 5 6 7
   0 1 1 1 1 0 0 0
     + + + +
  newly set: 1, 2, 3, 4

xyz  at 2, 3, 4, 5
   0 1 2 3 4 5 6 7
   0 1 1 1 1 1 0 0
       = = = +
  set already: 2, 3, 4; newly set: 5

sadj?  at 1, 3, 4, 5
   0 1 2 3 4 5 6 7
   0 1 1 1 1 1 0 0
     =   = = =
  all are set: perhaps
  a false positive: not one of the keys, yet all its bits are set

abc?  at 3, 6, 0
   0 1 2 3 4 5 6 7
   0 1 1 1 1 1 0 0
         =     x
  bit 6 is not set: no, certainly
";
    let folder = Folder::new();
    folder.mayhap(command).run().ends(0).stays_quiet().prints(expected);
    let document = crate::documents::read("docs/command.md");
    assert!(
        document.contains(&format!("$ mayhap {command}\n{expected}")),
        "another picture is in docs/command.md"
    );
    // No terminal, no colour; and with NO_COLOR neither.
    folder.mayhap(command).env("NO_COLOR", "1").run().ends(0).prints(expected);
}

#[test]
fn a_bloom_filter_is_the_librarys() {
    for (bits, probes, seed) in [(16, 3, 0), (64, 5, 7), (1, 1, 0), (4096, 9, 99)] {
        let report = explained(&with_keys(&format!("--bits {bits} --probes {probes} --seed {seed}")));
        let spec = Spec::new().with_bits(bits).with_probes(probes).with_hashing(Hashing::Xxh3 { seed });
        let mut bloom = Bloom::from_spec(&spec).unwrap();
        for (key, step) in KEYS.iter().zip(report["inserted"].as_array().unwrap()) {
            let positions: Vec<u64> = bloom.positions(key).collect();
            assert_eq!(numbers(&step["positions"]), positions, "{step}");
            let is_set = |bloom: &Bloom, at: u64| bloom.contains_positions(&[at]).unwrap();
            let mut new: Vec<u64> = positions.into_iter().filter(|&at| !is_set(&bloom, at)).collect();
            let mut seen = Vec::new();
            new.retain(|at| {
                !seen.contains(at) && {
                    seen.push(*at);
                    true
                }
            });
            assert_eq!(numbers(&step["new"]), new, "{step}");
            bloom.insert(key);
            let cells: Vec<u64> = (0..bits).map(|at| is_set(&bloom, at).into()).collect();
            assert_eq!(numbers(&step["cells"]), cells, "{step}");
        }
        check_answers(&report, |key| bloom.contains(key));
        for step in report["asked"].as_array().unwrap() {
            let positions: Vec<u64> = bloom.positions(step["key"].as_str().unwrap()).collect();
            let read = numbers(&step["read"]);
            assert!(positions.starts_with(&read) && numbers(&step["positions"]) == positions, "{step}");
            let first_unset = positions.iter().find(|&&at| !bloom.contains_positions(&[at]).unwrap());
            assert_eq!(step["stops_at"].as_u64(), first_unset.copied(), "{step}");
            assert_eq!(read.last().copied(), first_unset.or(positions.last()).copied(), "{step}");
        }
    }
}

/// Every answer is the library's, and the report tells which are wrong.
fn check_answers(report: &Value, contains: impl Fn(&str) -> bool) {
    let asked = report["asked"].as_array().unwrap();
    assert_eq!(asked.len(), 1 + others().len());
    for step in asked {
        let key = step["key"].as_str().unwrap();
        let (perhaps, is_in) = (contains(key), KEYS.contains(&key));
        assert_eq!(step["answer"], if perhaps { "perhaps" } else { "no" }, "{step}");
        assert_eq!((&step["is_in"], &step["false_positive"]), (&is_in.into(), &(perhaps && !is_in).into()));
    }
    assert_eq!(asked[0]["answer"], "perhaps");
}

#[test]
fn what_is_explained_is_what_build_makes() {
    let folder = Folder::new();
    folder.write("keys", KEYS.join("\n"));
    for (family, cells, bits, probes) in
        [("bloom", 16, 16, 3), ("counting", 16, 64, 3), ("shifting", 24, 80, 4)]
    {
        let report =
            explained(&with_keys(&format!("--family {family} --bits {cells} --probes {probes} --seed 5")));
        assert_eq!(report["bits"], bits, "{family}");
        let build = format!("build --family {family} --bits {bits} --probes {probes} --seed 5 -o f keys");
        folder.mayhap(&build).run().ends(0);
        let asked = report["asked"].as_array().unwrap();
        let lines: String = asked.iter().map(|step| format!("{}\n", step["key"].as_str().unwrap())).collect();
        let expected: String = asked
            .iter()
            .filter(|step| step["answer"] == "perhaps")
            .map(|step| format!("{}\n", step["key"].as_str().unwrap()))
            .collect();
        folder.mayhap("check f").input(lines).run().ends(0).prints(expected);
        // The command that it names is this one.
        let shown = folder.mayhap(&format!(
            "explain {} --family {family} --bits {cells} --probes {probes} --seed 5",
            KEYS.join(" ")
        ));
        let command = format!("(mayhap build --family {family} --bits {bits} --probes {probes} --seed 5)\n");
        shown.run().ends(0).shows(&command);
    }
}

#[test]
fn counters_are_the_librarys_and_stay_at_their_top() {
    let report = explained(&with_keys("--family counting --counter-bits 2 --bits 12"));
    let spec = Spec::new().with_bits(24).with_probes(3).with_counter_bits(2);
    let mut counting = Counting::from_spec(&spec).unwrap();
    for (key, step) in KEYS.iter().zip(report["inserted"].as_array().unwrap()) {
        counting.insert(key);
        let cells: Vec<u64> = (0..12).map(|at| counting.counter(at).unwrap()).collect();
        assert_eq!(numbers(&step["cells"]), cells, "{step}");
    }
    check_answers(&report, |key| counting.contains(key));
    assert_eq!(report["asked"][0]["count"], counting.count("hello"));
    let folder = Folder::new();
    folder
        .mayhap("explain a a a a --family counting --counter-bits 2 --ask a")
        .run()
        .ends(0)
        .shows("at the top of 3, where it stays: ")
        .shows("all are above 0: perhaps, 3 times at most, by its lowest counter (it is one of the keys)");
}

#[test]
fn cuckoo_shows_fingerprints_buckets_and_moves() {
    let keys: Vec<String> = (0..31).map(|index| format!("key{index}")).collect();
    let asked: Vec<String> = others().iter().map(|key| format!("--ask {key}")).collect();
    let report = explained(&format!("{} {} --family cuckoo --bits 32", keys.join(" "), asked.join(" ")));
    let mut cuckoo = Cuckoo::with_slots(32, 8, Layout::Fastest).unwrap();
    let mut moved = 0;
    for (key, step) in keys.iter().zip(report["inserted"].as_array().unwrap()) {
        let (fingerprint, buckets) = cuckoo.place(key);
        assert_eq!(
            (&step["fingerprint"], numbers(&step["buckets"])),
            (&fingerprint.into(), buckets.to_vec())
        );
        let evictions = cuckoo.slots().evictions;
        match cuckoo.insert(key) {
            Ok(_) => {
                let bucket = step["bucket"].as_u64().unwrap_or_else(|| panic!("{step}"));
                assert!(buckets.contains(&bucket), "{step}");
            }
            Err(full) => assert_eq!(step["refused"], full.to_string()),
        }
        let moves = step["moved"].as_array().unwrap();
        assert_eq!(
            Some(moves.len() as u64),
            cuckoo.slots().evictions.zip(evictions).map(|(is, was)| is - was)
        );
        moved += moves.len();
        for (number, slots) in (0..).zip(step["table"].as_array().unwrap()) {
            let expected = cuckoo.bucket(number).unwrap().map(u64::from);
            assert_eq!(numbers(slots), expected, "bucket {number} after {key}");
        }
    }
    assert!(moved > 0, "nobody moved, so nothing was seen");
    for step in report["asked"].as_array().unwrap() {
        let perhaps = cuckoo.contains(step["key"].as_str().unwrap());
        assert_eq!(step["answer"], if perhaps { "perhaps" } else { "no" }, "{step}");
    }
    let folder = Folder::new();
    folder
        .mayhap("explain ada bob --family cuckoo --bits 8 --ask ada --probes 3")
        .run()
        .ends(0)
        .says("--probes 3 means nothing to cuckoo")
        .shows("cuckoo: 2 buckets of 4 slots, fingerprints of 8 bits\n")
        .shows("(it is one of the keys)\n");
    // One more than there are slots for.
    folder
        .mayhap(&format!("explain {} --family cuckoo --bits 8", "twin ".repeat(9)))
        .run()
        .ends(0)
        .shows("refused: ");
}

#[test]
fn shifting_shows_pairs_at_one_distance() {
    let report = explained(&with_keys("--family shifting --bits 20 --probes 6"));
    let mut shifting = Shifting::from_spec(&Spec::new().with_bits(76).with_probes(6)).unwrap();
    for (key, step) in KEYS.iter().zip(report["inserted"].as_array().unwrap()) {
        let positions = numbers(&step["positions"]);
        assert_eq!(positions, shifting.loads(key).concat());
        let distances: Vec<u64> = positions.chunks(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(distances.iter().all(|distance| *distance == distances[0] && (1..=56).contains(distance)));
        shifting.insert(key);
        let cells: Vec<u64> = (0..76).map(|at| shifting.bit(at).unwrap().into()).collect();
        assert_eq!(numbers(&step["cells"]), cells);
    }
    check_answers(&report, |key| shifting.contains(key));
    let folder = Folder::new();
    let three = folder.mayhap("explain a --family shifting --bits 16 --probes 3").run().ends(0);
    three.says("bits of shifting come in pairs: 4 probes in place of 3").shows("a  offset ");
}

#[test]
fn spatial_shows_areas_and_which_one_outranks() {
    let labels = "--label quiet=kitchen --label work=desk --label quiet=hall --label danger=furnace";
    let arguments =
        format!("--family spatial {labels} --bits 12 --ask kitchen --ask furnace --ask moon --ask sun");
    let report = explained(&arguments);
    assert_eq!(report["areas"], serde_json::json!(["quiet", "work", "danger"]));
    let mut spatial = Spatial::from_spec(&Spec::new().with_bits(96).with_probes(3).with_areas(3)).unwrap();
    let keys = [("kitchen", 1), ("desk", 2), ("hall", 1), ("furnace", 3)];
    for ((key, area), step) in keys.iter().zip(report["inserted"].as_array().unwrap()) {
        spatial.insert(key, *area).unwrap();
        let cells: Vec<u64> = (0..12).map(|at| spatial.cell(at).unwrap().into()).collect();
        assert_eq!(numbers(&step["cells"]), cells);
    }
    let names = ["quiet", "work", "danger"];
    for step in report["asked"].as_array().unwrap() {
        let label = spatial.label(step["key"].as_str().unwrap());
        let name = label.map(|area| names[usize::from(area) - 1]);
        assert_eq!(step["label"].as_str(), name, "{step}");
        assert_eq!(step["answer"], if name.is_some() { "perhaps" } else { "no" });
    }
    // Without names every key is an area of its own.
    let folder = Folder::new();
    folder
        .mayhap("explain a b --family spatial --ask b")
        .run()
        .ends(0)
        .shows("areas 1, 2 (mayhap build ")
        .shows("in 2, the lowest label (it is one of the keys)");
}

#[test]
fn a_large_filter_shows_where_something_happens_and_then_all() {
    let folder = Folder::new();
    let shown = folder.mayhap("explain hello --bits 1024 --ask world").run().ends(0).shows("  ...\n");
    let text = String::from_utf8(shown.out).unwrap();
    let (_, all) = text.split_once("all of it, with 1 key\n").expect("all of it");
    assert_eq!(all.lines().take_while(|line| !line.is_empty()).count(), 16, "{text}");
    assert!(text.lines().all(|line| line.len() < 90), "{text}");
}

#[test]
fn keys_are_bytes_and_may_be_numbers() {
    let report = explained("7 --as u64 --ask 8");
    let bloom = Bloom::with_bits(16, 3).unwrap();
    assert_eq!(numbers(&report["inserted"][0]["positions"]), bloom.positions(7u64).collect::<Vec<_>>());
    let folder = Folder::new();
    folder.mayhap("explain seven --as u64").run().ends(2).prints("").says("seven");
    folder.mayhap("explain --ask -x").arg("a\tb").run().ends(0).shows("a\\tb  at ");
}

/// The case of a at 3 and 5 and b at 5 and 10: a Bloom filter loses b, a counting one does not.
#[test]
fn clearing_the_bits_of_a_key_loses_another_and_counters_do_not() {
    let folder = Folder::new();
    let keys = "explain a b --bits 16 --at a=3,5 --at b=5,10 --remove a --ask a --ask b";
    let shown = folder.mayhap(keys).run().ends(0).stays_quiet();
    let text = String::from_utf8(shown.out).unwrap();
    let expected = "
a removed  at 3, 5
    0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    0  0  0  0  0  0  0  0  0  0  1  0  0  0  0  0
             -     -
  cleared: 3, 5
  lost: b, which was inserted and is denied from now on
";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("bit 3 is not set: no, certainly\n"), "{text}");
    let denied =
        "bit 5 is not set: no, certainly\n  a false negative: it is one of the keys, and is denied\n";
    assert!(text.ends_with(denied), "{text}");

    let report = explained(&keys.replace("explain ", ""));
    assert_eq!(report["removed"][0]["lost"], serde_json::json!(["b"]));
    assert_eq!(
        (&report["asked"][0]["false_negative"], &report["asked"][1]["false_negative"]),
        (&false.into(), &true.into())
    );

    let keys = keys.replace("explain", "explain --family counting");
    folder
        .mayhap(&keys)
        .run()
        .ends(0)
        .shows("counting: 16 counters, positions as they were given\n")
        .shows("  lowered to 0: 3; lowered: 5\n")
        .shows("counter 3 is not above 0: no, certainly\n")
        .shows("once at most, by its lowest counter (it is one of the keys)\n");
}

/// With the positions of their hash, as the library does it.
#[test]
fn removed_keys_leave_the_filters_that_can_remove() {
    for family in ["counting", "cuckoo"] {
        let report =
            explained(&format!("a b a --family {family} --bits 64 --remove a --remove zz --ask a --ask b"));
        assert_eq!(
            (&report["removed"][0]["removed"], &report["removed"][1]["removed"]),
            (&true.into(), &false.into())
        );
        assert!(numbers(&report["removed"][0]["lost"]).is_empty(), "{report}");
        for asked in report["asked"].as_array().unwrap() {
            assert_eq!((&asked["answer"], &asked["is_in"]), (&"perhaps".into(), &true.into()), "{report}");
        }
        let report = explained(&format!("a b --family {family} --bits 64 --remove a --ask a --ask b"));
        assert_eq!(
            (&report["asked"][0]["answer"], &report["asked"][1]["answer"]),
            (&"no".into(), &"perhaps".into())
        );
    }
    // All copies at once, for a bit does not count.
    let report = explained("a a --bits 64 --remove a --ask a");
    assert_eq!((&report["asked"][0]["answer"], &report["asked"][0]["is_in"]), (&"no".into(), &false.into()));
    // Counters at their top stay there.
    let report = explained("a a a a --family counting --counter-bits 2 --bits 8 --remove a --ask a");
    assert_eq!((&report["removed"][0]["removed"], &report["asked"][0]["count"]), (&false.into(), &3.into()));
}

/// The eight boxes of the textbook, filled with 4, 7, 2, 5 and 3.
#[test]
fn a_bitmap_is_drawn_as_boxes_and_read_in_order() {
    let folder = Folder::new();
    let shown =
        folder.mayhap("explain --family bitmap 4 7 2 5 3 --bits 8 --ask 6").run().ends(0).stays_quiet();
    let text = String::from_utf8(shown.out).unwrap();
    for part in [
        "bitmap: 8 bits, one for each integer below 8 (mayhap build --family bitmap --as u64 -n 8)\n",
        "4  at 4\n   0 1 2 3 4 5 6 7\n   0 0 0 0 1 0 0 0\n           +\n  newly set: 4\n",
        "   0 0 1 1 1 1 0 1\n",
        "\nfrom left to right, which is sorted: 2, 3, 4, 5, 7\n",
        "bit 6 is not set: no, certainly\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let report = explained("--family bitmap 4 7 4 --bits 8 --remove 4");
    assert_eq!(
        (numbers(&report["sorted"]), numbers(&report["removed"][0]["cells"])),
        (vec![7], vec![0, 0, 0, 0, 0, 0, 0, 1])
    );
}

/// Each says what was asked, the limit and the way out.
#[test]
fn nonsense_is_refused() {
    let can = "bitmap, bloom, counting, cuckoo, shifting, spatial";
    let cases = [
        ("", "there is no key to insert; give one, such as mayhap explain hello"),
        (
            "a --bits 4097",
            "--bits 4097 is more than a picture can show; the limit is 4096, and mayhap info --heatmap",
        ),
        ("a --bits 0", "bits must be 1 to 281474976710656, not 0"),
        ("a --probes 65", "probes must be 1 to 64, not 65"),
        ("a --family fuse", &format!("the family fuse cannot be drawn; those that can are {can}")),
        (
            "a --family blom",
            &format!(
                "no family that can be drawn is called \"blom\"; did you mean \"bloom\"? There are {can}"
            ),
        ),
        ("a --at a=1,2,16", "a: "),
        ("a --at a=1,x", "is not a key and its positions, such as hello=1,2,3,4"),
        ("a --at b=1,2", "--at b: that key is neither inserted nor asked for"),
        ("a --family cuckoo --at a=1", "--at is for --family bloom and counting"),
        (
            "a --family spatial --remove a",
            "--remove is for --family bitmap, bloom, counting, cuckoo; keys of",
        ),
        ("4 8 --family bitmap --bits 8", "8 is not below --bits 8; give more bits"),
        ("four --family bitmap", "four"),
        ("--label x=a", "--label is for --family spatial; the family bloom knows no areas"),
        ("--family spatial --label a", "is not the name of an area and a key, such as work=kitchen"),
        ("a --family spatial --label x=b", "cannot be used with"),
        ("a --counter-bits 4", "--counter-bits is for --family counting"),
        ("a --family counting --counter-bits 1", "counter bits must be 2 to 16, not 1"),
    ];
    let folder = Folder::new();
    for (arguments, text) in cases {
        folder.mayhap(&format!("explain {arguments}")).run().ends(2).prints("").says(text);
    }
    let many = vec!["k"; 1001].join(" ");
    let refused = folder.mayhap(&format!("explain {many}")).run().ends(2).prints("");
    refused.says("1001 keys are more than a picture can show; the limit is 1000");
}
