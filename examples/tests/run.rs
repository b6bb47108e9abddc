//! Runs every program, and compares what it prints with what is true of its data.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::process::{Command, Output};

use mayhap_eval::Random;

/// All programs: name, file, and how many keys are enough for a test. Zero is for one that takes no number.
const PROGRAMS: [(&str, &str, u64); 10] = [
    ("bit_file", env!("CARGO_BIN_EXE_bit_file"), 50_000),
    ("cache_guard", env!("CARGO_BIN_EXE_cache_guard"), 5_000),
    ("crawler", env!("CARGO_BIN_EXE_crawler"), 20_000),
    ("fraud_accounts", env!("CARGO_BIN_EXE_fraud_accounts"), 50_000),
    ("intersection", env!("CARGO_BIN_EXE_intersection"), 20_000),
    ("names_on_a_list", env!("CARGO_BIN_EXE_names_on_a_list"), 5_000),
    ("proxies", env!("CARGO_BIN_EXE_proxies"), 0),
    ("spam_senders", env!("CARGO_BIN_EXE_spam_senders"), 50_000),
    ("spelling", env!("CARGO_BIN_EXE_spelling"), 20_000),
    ("telephone_numbers", env!("CARGO_BIN_EXE_telephone_numbers"), 50_000),
];

fn start(name: &str, argument: Option<&str>) -> Output {
    let (_, file, _) = PROGRAMS.iter().find(|program| program.0 == name).unwrap();
    Command::new(file).args(argument).output().unwrap()
}

/// What the program prints, if all holds.
fn run(name: &str, keys: Option<u64>) -> String {
    let output = start(name, keys.map(|keys| keys.to_string()).as_deref());
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} {keys:?}\n{out}\n{err}");
    assert!((4..=25).contains(&out.lines().count()), "{name}\n{out}");
    out
}

/// The program with few keys: their number, and what it prints.
fn run_small(name: &str) -> (u64, String) {
    let keys = PROGRAMS.iter().find(|program| program.0 == name).unwrap().2;
    (keys, run(name, Some(keys)))
}

/// The numbers behind `label: `, one for each line that begins with it.
fn figures(out: &str, label: &str) -> Vec<f64> {
    let after = |line: &str| line.trim().strip_prefix(label)?.strip_prefix(": ").map(str::to_owned);
    let number = |text: String| {
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        text[..end].parse().unwrap_or_else(|_| panic!("no number behind {label:?}\n{out}"))
    };
    out.lines().filter_map(after).map(number).collect()
}

fn figure(out: &str, label: &str) -> f64 {
    match figures(out, label)[..] {
        [figure] => figure,
        _ => panic!("{label:?} is there not once\n{out}"),
    }
}

#[test]
fn every_program_is_in_the_table_and_run_here() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bin");
    let file_name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let files: BTreeSet<String> = fs::read_dir(folder).unwrap().map(file_name).collect();
    let tested: BTreeSet<String> = PROGRAMS.iter().map(|(name, ..)| format!("{name}.rs")).collect();
    assert_eq!(files, tested);

    let table = include_str!("../README.md");
    for (name, ..) in PROGRAMS {
        assert!(table.contains(&format!("| [`{name}`](src/bin/{name}.rs) |")), "{name}");
        let source = fs::read_to_string(format!("{folder}/{name}.rs")).unwrap();
        assert!(
            source.lines().next().unwrap().contains(&format!("-p mayhap-examples --bin {name}")),
            "{name}"
        );
    }
}

#[test]
fn a_number_that_makes_no_sense_is_refused() {
    for (name, ..) in PROGRAMS.iter().filter(|program| program.2 > 0) {
        for given in ["0", "999", "many", "-5000"] {
            let output = start(name, Some(given));
            let err = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success() && output.stdout.is_empty(), "{name} {given}");
            let said = format!("{given} was given, but a number of keys from 1000 on is expected");
            assert!(err.contains(&said), "{name}: {err}");
        }
    }
}

#[test]
fn crawler() {
    let (pages, out) = run_small("crawler");
    // The same crawl over page numbers.
    let (mut reached, mut to_fetch) = (HashSet::from([0]), vec![0]);
    while let Some(page) = to_fetch.pop() {
        let links = (0..8).map(|link| mayhap_eval::SplitMix64::at(page, link) % pages);
        to_fetch.extend(links.filter(|&linked| reached.insert(linked)));
    }
    let reached = reached.len() as f64;
    let [exactly, by_filter] = figures(&out, "pages fetched")[..] else { panic!("{out}") };
    assert_eq!(exactly, reached);
    assert_eq!(by_filter + figure(&out, "pages missed"), reached);
    assert_eq!(figures(&out, "links"), [8.0 * exactly, 8.0 * by_filter]);
}

#[test]
fn spam_senders() {
    let (senders, out) = run_small("spam_senders");
    assert_eq!(figures(&out, "spam"), [100_000.0; 2]);
    assert_eq!(figures(&out, "spam stopped"), [100_000.0; 2]);
    let [fuse, ribbon] = figures(&out, "bytes of the file")[..] else { panic!("{out}") };
    assert!(senders as f64 <= ribbon && ribbon < fuse, "{out}");
    assert_eq!(figure(&out, "bytes of the list as text"), 26.0 * senders as f64);
}

#[test]
fn fraud_accounts() {
    let (accounts, out) = run_small("fraud_accounts");
    let [planned, _] = figures(&out, "MiB")[..] else { panic!("{out}") };
    assert_eq!(planned, 28.57);
    assert_eq!(figures(&out, "probes"), [17.0; 2]);
    assert_eq!(figure(&out, "fraudsters missed"), 0.0);
    assert_eq!(figure(&out, "bits"), (accounts as f64 * 1e5f64.ln() / 2f64.ln().powi(2)).ceil());
}

#[test]
fn telephone_numbers() {
    let (listed, out) = run_small("telephone_numbers");
    let mut random = Random::new(5);
    let (mut list, mut asked) = (HashSet::new(), Vec::new());
    while (list.len() as u64) < listed {
        let number = random.below(1_000_000_000);
        if list.insert(number) && list.len() <= 5_000 {
            asked.push(number);
        }
    }
    asked.extend((0..5_000).map(|_| random.below(1_000_000_000)));
    let on_list = asked.iter().filter(|number| list.contains(number)).count() as f64;
    assert_eq!(figure(&out, "on the list"), on_list);
    assert_eq!(figure(&out, "found by the filter"), on_list);
    assert_eq!(figure(&out, "not on the list"), 10_000.0 - on_list);
}

#[test]
fn spelling() {
    let (_, out) = run_small("spelling");
    assert_eq!(figure(&out, "in the dictionary and underlined"), 0.0);
    assert_eq!(figure(&out, "in the dictionary") + figure(&out, "other slips"), 500_000.0);
    assert!(out.contains("\nmayhap is underlined after it was inserted: false\n"), "{out}");
}

#[test]
fn names_on_a_list() {
    let (names, out) = run_small("names_on_a_list");
    assert_eq!(figure(&out, "stopped"), names as f64);
    assert_eq!(figure(&out, "names stopped"), names as f64);
    assert_eq!(figure(&out, "known travellers stopped for nothing"), 0.0);
    let [known, strangers] = figures(&out, "stopped for nothing")[..] else { panic!("{out}") };
    assert_eq!(figure(&out, "strangers stopped for nothing"), strangers);
    assert!(
        figure(&out, "bytes with exceptions") >= figure(&out, "bytes of the list") + 16.0 * known,
        "{out}"
    );
    assert!(out.ends_with("a known traveller is found when put on the list: true\n"), "{out}");
}

#[test]
fn proxies() {
    let out = run("proxies", None);
    assert!(out.contains("east holds 10000 pages; its summary takes "), "{out}");
    assert!(out.contains("\nwest wants 7000 pages that east has: it asks east for 7000\n"), "{out}");
}

#[test]
fn cache_guard() {
    let (rows, out) = run_small("cache_guard");
    let requests = 2 * rows;
    let found = |what: &str, found: u64| {
        let lines = out.lines().filter(|line| line.trim().starts_with(what));
        assert_eq!(
            lines.filter(|line| line.ends_with(&format!(" {found} found"))).count(),
            2,
            "{what}\n{out}"
        );
    };
    found(&format!("{requests} requests for rows"), requests);
    found(&format!("{requests} requests for what never was"), 0);
    found(&format!("{requests} requests for {} deleted rows", rows / 10), 0);
    let rows = rows - rows / 10 + rows / 20;
    found(&format!("{rows} rows left or added"), rows);
    let without = figure(&out, "queries for nothing without a guard");
    assert_eq!(without, 2.0 * requests as f64);
    assert!(figure(&out, "queries for nothing with a guard") * 100.0 < without, "{out}");
}

#[test]
fn intersection() {
    let (keys, out) = run_small("intersection");
    let common = keys as f64 / 10.0;
    assert_eq!(figure(&out, "common, exactly"), common);
    assert_eq!(figure(&out, "an exact set of the common ones"), common);
    assert_eq!(figure(&out, "candidates that west sends"), common + figure(&out, "sent for nothing"));
    assert_eq!(figure(&out, "a filter of the common bits misses"), 0.0);
    let sent = figure(&out, "bytes of the filter that east sends") + figure(&out, "bytes of them");
    assert!(sent * 4.0 < figure(&out, "bytes of a list"), "{out}");
}

#[test]
fn bit_file() {
    let (keys, out) = run_small("bit_file");
    let [before, after] = figures(&out, "bytes of the file")[..] else { panic!("{out}") };
    assert_eq!(before, after);
    assert!(before >= figure(&out, "bits") / 8.0, "{out}");
    assert!(out.contains(&format!("\nday 5: {keys} keys in, ")), "{out}");
    assert!(out.contains("\nstill the same file: true\n"), "{out}");
    assert!(out.ends_with("\nthe same bytes as a filter built at once: true\n"), "{out}");
}

#[test]
#[ignore = "slow: as many keys as the programs take by themselves"]
fn all_programs_with_as_many_keys_as_in_the_table() {
    for (name, ..) in PROGRAMS {
        run(name, None);
    }
}
