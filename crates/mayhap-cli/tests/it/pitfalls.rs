//! `docs/pitfalls.md`: every command prints what stands there, and the right values are right.

use std::path::Path;

use crate::documents;
use crate::runner;
use crate::runner::Folder;
use mayhap::math::{self, ProbesRule};
use serde_json::Value;

const DOCUMENT: &str = "docs/pitfalls.md";

/// Commands and what they print, as `$ command` and the lines below it.
fn transcript(text: &str) -> Vec<(&str, String)> {
    let mut calls: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), calls.last_mut()) {
            (Some(command), _) => calls.push((command, String::new())),
            (None, Some((_, output))) => *output += &format!("{line}\n"),
            (None, None) => panic!("a block begins with a command, not with {line:?}"),
        }
    }
    calls
}

#[test]
fn every_command_prints_what_the_document_shows() {
    let text = documents::read(DOCUMENT);
    let (_, blocks) = documents::split(&text);
    let programs = Path::new(env!("CARGO_BIN_EXE_mayhap")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a path"));
    let folder = Folder::new();
    let mut asked = 0;
    for block in &blocks {
        assert_eq!(block.language, "console", "{}", block.text);
        for (command, shown) in transcript(&block.text) {
            let done = folder.sh(command).env("PATH", &path).run();
            let (printed, errors) = (String::from_utf8(done.out).expect("text"), done.err);
            assert!(
                printed == shown && errors.is_empty(),
                "{DOCUMENT}: $ {command}\n--- shown\n{shown}--- printed\n{printed}--- errors\n{errors}"
            );
            asked += u32::from(command.contains("mayhap "));
        }
    }
    assert!(asked >= 20, "only {asked} commands of ours were found in {DOCUMENT}");
}

#[test]
fn every_pitfall_of_the_table_has_its_section_and_every_section_a_command() {
    let text = documents::read(DOCUMENT);
    let (prose, _) = documents::split(&text);
    let sections: Vec<&str> = documents::headings(&prose)
        .into_iter()
        .filter(|(level, _)| *level == 2)
        .map(|(_, text)| text)
        .collect();
    let table = documents::tables(&prose).remove(0);
    let links: Vec<&str> = table[1..]
        .iter()
        .map(|row| row[1].split_once("](#").and_then(|(_, link)| link.strip_suffix(')')).expect(row[1]))
        .collect();
    let anchors: Vec<String> = sections.iter().map(|section| documents::anchor(section)).collect();
    assert_eq!(links, anchors);
    for part in text.split("\n## ").skip(1) {
        assert!(part.contains("\n$ mayhap ") || part.contains("$(mayhap "), "no command of ours in {part}");
    }
}

fn calc(arguments: &str) -> Value {
    Folder::new().mayhap(&format!("calc --json {arguments}")).run().ends(0).json()
}

fn bloom(arguments: &str) -> Value {
    let report = calc(&format!("{arguments} --family bloom"));
    let rows = report["families"].as_array().expect("a list");
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].clone()
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} in {row}"))
}

#[track_caller]
fn close(found: f64, expected: f64, relative: f64) {
    assert!((found / expected - 1.0).abs() <= relative, "found {found}, expected {expected}");
}

#[test]
fn a_percent_is_a_hundredth() {
    let (right, wrong) = (bloom("-n 10M -p 0.001%"), bloom("-n 10M -p 1e-4"));
    assert_eq!((number(&right, "fpr"), &right["probes"]), (1e-5, &17.into()));
    close(number(&wrong, "fpr") / number(&right, "fpr"), 10.0, 1e-12);
    Folder::new().mayhap("calc -n 10M -p 0.001%").run().ends(0).shows("rate  1e-5\n");
}

#[test]
fn one_percent_is_9_585_bits_and_7_probes_and_13_bits_and_8_probes_are_a_fifth_of_it() {
    let right = bloom("-n 1M -p 1%");
    close(number(&right, "bits_per_key"), 9.585, 1e-4);
    assert_eq!(right["probes"], 7);
    close(number(&bloom("-n 1M --bits 13M --probes 8"), "fpr_at_capacity"), 0.002, 0.01);
}

#[test]
fn the_rate_falls_to_the_best_number_of_probes_and_rises_behind_it() {
    let rate =
        |probes: u32| number(&bloom(&format!("-n 1M --bits 10M --probes {probes}")), "fpr_at_capacity");
    let rates: Vec<f64> = (1..=28).map(rate).collect();
    assert!(rates[..7].is_sorted_by(|more, less| more > less), "{rates:?}");
    assert!(rates[6..].is_sorted_by(|less, more| less < more), "{rates:?}");
    assert!(rates[27] > 1.5 * rates[0], "{rates:?}");
}

#[test]
fn a_hundred_million_bits_are_12_500_000_bytes() {
    let row = bloom("-n 20M --bits 1e8 --probes 1");
    assert_eq!((&row["bits"], &row["bytes"]), (&100_000_000.into(), &12_500_000.into()));
    // What is wrongly said is the number of bytes that as many bytes are, in mebibytes.
    assert_eq!((100_000_000f64 / f64::from(1 << 20)).floor(), 95.0);
    let mega = |unit: &str| number(&bloom(&format!("-p 1% --size 1{unit}")), "bytes");
    assert_eq!((mega("MB"), mega("MiB")), (1_000_000.0, f64::from(1 << 20)));
}

#[test]
fn some_collision_has_39_percent_and_the_error_rate_is_a_hundredth_of_one() {
    let report = calc("-n 10k --bits 1e8 --probes 1 --family bloom");
    close(number(&report, "some_collision"), 0.393_449, 1e-5);
    close(number(&report["families"][0], "fpr_at_capacity"), 1e-4, 1e-3);
}

/// What the formulas give with and without their minus.
#[test]
fn without_their_minus_the_formulas_make_no_sense() {
    let (n, p, k) = (1e6, 0.01f64, 7);
    let bits = -n * p.ln() / 2f64.ln().powi(2);
    assert_eq!(bits.ceil(), number(&bloom("-n 1M -p 1%"), "bits"));
    assert!(n * p.ln() / 2f64.ln().powi(2) < 0.0);
    let load = f64::from(k) * n / bits;
    close((1.0 - (-load).exp()).powi(k), number(&bloom("-n 1M -p 1%"), "fpr_at_capacity"), 1e-5);
    assert!((1.0 - load.exp()).powi(k) < 0.0 && (1.0 - load.exp()).powi(8) > 1.0);
    assert_eq!(math::bloom_probes(p, ProbesRule::Nearest), 7);
}

/// Bits per key of bloom, cuckoo in the layout compact (semi-sorted) and cuckoo in the layout fastest.
fn bits_per_key(rate: f64) -> [f64; 3] {
    let report = calc(&format!("-n 1M -p {rate} --family bloom,cuckoo"));
    let rows = report["families"].as_array().expect("a list");
    let names: Vec<(&str, Option<&str>)> =
        rows.iter().map(|row| (row["family"].as_str().expect("a name"), row["layout"].as_str())).collect();
    assert_eq!(names, [("bloom", None), ("cuckoo", Some("compact")), ("cuckoo", Some("fastest"))]);
    [0, 1, 2].map(|row| number(&rows[row], "bits_per_key"))
}

#[test]
fn cuckoo_meets_bloom_at_2_4_percent_semi_sorted_and_at_0_37_percent_plain() {
    // Bits per key are equal where log2(1/p) / ln 2 = (log2(1/p) + more) / 0.95.
    let meet = |more: f64| (-(more / 0.95) / (1.0 / 2f64.ln() - 1.0 / 0.95)).exp2();
    close(meet(2.0), 0.024, 0.02);
    close(meet(3.0), 0.0037, 0.02);
    // At powers of two a fingerprint's last bit is used to the full, and it is as the formulas say.
    for exponent in 3..=12 {
        let rate = 2f64.powi(-exponent);
        let [bloom, compact, plain] = bits_per_key(rate);
        assert_eq!(compact < bloom, rate < meet(2.0), "{rate}: {compact} against {bloom}");
        assert_eq!(plain < bloom, rate < meet(3.0), "{rate}: {plain} against {bloom}");
    }
    // What the document shows.
    let [bloom, compact, plain] = bits_per_key(0.01);
    assert!(compact < bloom && bloom < plain);
}

#[test]
fn a_filter_stops_keys_that_do_not_exist_and_no_request_for_one_that_does() {
    let folder = Folder::new();
    folder.write("users", runner::lines("user-", 1000));
    folder.mayhap("build -o users.mayhap users").run().ends(0);
    let passed = |requests: String| -> u64 {
        let done = folder.mayhap("check -c users.mayhap").input(requests).run();
        String::from_utf8(done.out).expect("text").trim().parse().expect("a number")
    };
    // 1% of 1000, and not five deviations more.
    assert!(passed(runner::lines("nobody-", 1000)) < 26);
    assert_eq!(passed("user-7\n".repeat(1000)), 1000);
}
