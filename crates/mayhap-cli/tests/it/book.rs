//! The documents beside the README: their tables, compared with the program. `cargo xtask promises` runs their examples.

use std::path::Path;
use std::process::Command;

use crate::documents;
use crate::runner::{COMMANDS, Folder};
use mayhap::{Capabilities, FAMILIES as REGISTRY, Layout, Spec};

/// The document with all families and the rules of `advise`.
const FAMILIES: &str = "docs/families.md";

/// The document with all subcommands.
const COMMAND: &str = "docs/command.md";

/// The document with the names of other libraries.
const LIBRARY: &str = "docs/library.md";

/// The first block of shell lines of a document with this text.
fn example(document: &str, text: &str) -> String {
    let document = documents::read(document);
    let (_, blocks) = documents::split(&document);
    let mut scripts = blocks.into_iter().filter(|block| block.language == "sh");
    scripts.find(|block| block.text.contains(text)).unwrap_or_else(|| panic!("no example has {text}")).text
}

/// Runs a script in a fresh folder. Returns what it prints to both outputs.
fn run(script: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_mayhap")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let shell =
        Command::new("sh").args(["-e", "-c", script]).env("PATH", path).current_dir(folder.path()).output();
    let output = shell.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}\n{errors}");
    (text, errors)
}

#[test]
fn the_examples_of_advice_give_what_their_comments_say() {
    let script = example(FAMILIES, "mayhap advise");
    for (line, parts) in
        script.lines().zip([["bloom", "28.57 MiB"], ["cuckoo", "25.10 MiB"], ["exact", "the exact set fits"]])
    {
        let (text, _) = run(line);
        for part in parts {
            assert!(text.contains(part), "{line}\nexpected {part} in\n{text}");
        }
        let comment = line.split_once('#').expect("a comment").1;
        assert!(comment.contains(parts[0]) && comment.contains(parts[1]) || parts[0] == "exact", "{line}");
    }
    assert_eq!(script.lines().count(), 3);
}

#[test]
fn the_examples_of_looking_before_choosing_measure_and_draw() {
    let script = example(COMMAND, "mayhap eval --hashes");
    let (text, said) = run(&format!("{script}\nls bits.svg plots"));
    for part in
        ["gaussian", "url", "murmur3-x86-32", "bits.svg", "bits-against-rate.svg", "time-against-keys.svg"]
    {
        assert!(text.contains(part), "expected {part} in\n{text}");
    }
    assert!(!text.contains("DISAGREES") && !text.contains("LOST"), "{text}");
    assert!(said.contains("4 pictures in plots"), "{said}");
}

/// The table whose head begins so.
fn table<'a>(prose: &[&'a str], head: &[&str]) -> documents::Table<'a> {
    let mut tables = documents::tables(prose).into_iter();
    tables
        .find(|table| table[0].starts_with(head))
        .unwrap_or_else(|| panic!("no table has the head {head:?}"))
}

#[test]
fn the_rules_of_the_advice_are_those_of_advise() {
    let text = documents::read(FAMILIES);
    let (prose, _) = documents::split(&text);
    let rows = table(&prose, &["you have", "`mayhap advise`"]);
    let folder = Folder::new();
    let mut rules = Vec::new();
    for row in &rows[1..] {
        let (flags, family) = (row[1].trim_matches('`'), row[2].trim_matches('`'));
        let advice = folder.mayhap(&format!("advise --json {flags}")).run().ends(0).json();
        assert_eq!(advice["family"], family, "{flags}");
        let bytes = advice["bytes"].as_f64().expect("a size");
        let size = format!("{:.2} MiB", bytes / f64::from(1 << 20));
        assert_eq!(row[3], size, "the size of {family} for mayhap advise {flags}; correct {FAMILIES}");
        rules.push(advice["rule"].as_u64().expect("a rule"));
    }
    assert!(rules.is_sorted(), "rows are not in the order of the rules: {rules:?}");
    rules.dedup();
    assert_eq!(rules, (0..=16).collect::<Vec<_>>());
}

/// A number of bits per key and the rate that it is for, as in `9.6 at 1%`.
fn bits_at_rate(text: &str) -> Vec<(f64, f64)> {
    let part = |part: &str| {
        let (bits, rate) = part.trim().split_once(" at ")?;
        let rate: f64 = rate.strip_suffix('%')?.parse().ok()?;
        Some((bits.parse().ok()?, rate / 100.0))
    };
    text.split(',').filter_map(part).collect()
}

/// What a family can do, and the word for it in the table.
fn abilities(can: Capabilities) -> [(bool, &'static str); 9] {
    [
        (can.inserts, "insert"),
        (can.removes, "remove"),
        (can.counts, "count"),
        (can.labels, "label"),
        (can.merges, "merge"),
        (can.intersects, "intersect"),
        (can.subtracts, "subtract"),
        (can.folds, "fold"),
        (can.grows, "grow"),
    ]
}

#[test]
fn the_table_of_families_is_that_of_the_registry() {
    let text = documents::read(FAMILIES);
    let (prose, _) = documents::split(&text);
    let rows = table(&prose, &["family", "bits per key"]);
    let (mut listed, mut compared) = (Vec::new(), 0);
    for row in &rows[1..] {
        let names = documents::quoted(row[0]);
        let family = mayhap::family(names[0]).unwrap_or_else(|| panic!("no family is called {}", names[0]));
        let layout = names.get(1).map(|name| {
            let layout = Layout::ALL.into_iter().find(|layout| layout.name() == *name);
            layout.unwrap_or_else(|| panic!("no layout is called {name}"))
        });
        if layout.is_none() {
            listed.push(family.name);
            let cost = family.cost;
            assert_eq!(
                row[3],
                format!("{} / {} / {}", cost.query, cost.insert, cost.space),
                "the cost of {}",
                family.name
            );
            let (can, more) = row[2].split_once(';').unwrap_or((row[2], ""));
            let named: Vec<&str> = can.split(',').filter_map(|item| item.split_whitespace().next()).collect();
            for (can, word) in abilities(family.can) {
                assert_eq!(
                    named.contains(&word),
                    can,
                    "{} and `{word}` in {FAMILIES}: {}",
                    family.name,
                    row[2]
                );
            }
            assert_eq!(more.trim() == "no errors", family.can.exact, "{} in {FAMILIES}: {more}", family.name);
        }
        for (bits, rate) in bits_at_rate(row[1]) {
            let spec = Spec::sized(1_000_000, rate);
            let plan =
                (family.plan)(&layout.map_or(spec, |layout| spec.with_layout(layout))).expect(family.name);
            let planned = plan.bits_per_key();
            assert!(
                (planned / bits - 1.0).abs() < 0.01,
                "{} {layout:?} at {rate}: {bits} in {FAMILIES}, {planned} are planned",
                family.name
            );
            compared += 1;
        }
    }
    let mut all: Vec<_> = REGISTRY.iter().map(|family| family.name).collect();
    all.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, all);
    let mut chosen: Vec<&str> =
        table(&prose, &["family", "answers"])[1..].iter().map(|row| documents::quoted(row[0])[0]).collect();
    chosen.sort_unstable();
    assert_eq!(chosen, all);
    assert!(compared > 30, "only {compared} numbers of bits per key were found");
}

#[test]
fn every_command_is_in_its_table() {
    let text = documents::read(COMMAND);
    let (prose, _) = documents::split(&text);
    let rows = table(&prose, &["command", "job"]);
    let mut listed: Vec<&str> = rows[1..].iter().flat_map(|row| documents::quoted(row[0])).collect();
    listed.sort_unstable();
    let mut all = Vec::from(COMMANDS);
    all.sort_unstable();
    assert_eq!(listed, all);
}

/// What people know from elsewhere; every name has its row.
const NAMES_ELSEWHERE: [(&str, &str); 8] = [
    (
        "Guava",
        "create put mightContain MURMUR128_MITZ_64 MURMUR128_MITZ_32 expectedFpp approximateElementCount isCompatible \
         putAll copy writeTo readFrom",
    ),
    (
        "Go bits-and-blooms",
        "New From NewWithEstimates EstimateParameters Cap K Add AddString Test TestString TestLocations TestAndAdd \
         TestAndAddString TestOrAdd TestOrAddString Merge Copy ClearAll EstimateFalsePositiveRate Equal Locations JSON \
         gob WriteTo ReadFrom",
    ),
    ("cuckoofilter (C++)", "Add Contain Delete Size SizeInBytes NotEnoughSpace"),
    ("Rust `fastbloom`", "with_false_pos expected_items insert contains"),
    ("Rust `bloomfilter`", "new_for_fp_rate set check check_and_set clear"),
    ("Rust `xorf`", "BinaryFuse8 try_from"),
    ("`BitSet`", "set clear test nextSetBit and or andNot"),
    ("a hand-written class", "add contains n m k rate"),
];

/// The words of a text that could be names.
fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

#[test]
fn every_name_from_elsewhere_has_a_name_here_that_the_tests_call() {
    let text = documents::read(LIBRARY);
    let (prose, _) = documents::split(&text);
    let rows = table(&prose, &["from", "there", "here"]);
    let calls = documents::read("crates/mayhap/tests/it/interfaces.rs");
    let serde = documents::read("crates/mayhap/tests/it/worked_examples.rs");
    let mut from = "";
    let mut there: Vec<(&str, &str)> = Vec::new();
    for row in &rows[1..] {
        if !row[0].is_empty() {
            from = row[0];
        }
        there.extend(words(row[1]).into_iter().map(|word| (from, word)));
        let here = documents::quoted(row[2]);
        assert!(!here.is_empty(), "{row:?}");
        for name in here {
            // The last name of a path or a chain, without its arguments.
            let called = match name {
                "==" => calls.contains("== "),
                "serde" => serde.contains("serde_json::from_str::<Bloom>"),
                "impl Key" => calls.contains("impl Key for"),
                "Full" => calls.contains("Err(full)"),
                "slots().used" => calls.contains(".slots().used"),
                "Spec::sized(n, p).bloom()" => calls.contains("Spec::sized(1_000_000, 0.01).bloom()"),
                _ => {
                    let path = name.split('(').next().unwrap_or(name);
                    let last = path.rsplit("::").next().unwrap_or(path);
                    let method = format!(".{last}(");
                    calls.contains(&method) || path.contains("::") && calls.contains(path)
                }
            };
            assert!(called, "{name} of {from} is not called in crates/mayhap/tests/it/interfaces.rs");
        }
    }
    for (from, names) in NAMES_ELSEWHERE {
        for name in names.split_whitespace() {
            assert!(there.contains(&(from, name)), "{name} of {from} is not in the table of {LIBRARY}");
        }
    }
}
