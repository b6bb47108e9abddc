//! The README's shell examples, run as they stand, and its tables, compared with the program.

use std::path::Path;
use std::process::Command;

use crate::documents;
use crate::runner::{COMMANDS, Folder};
use mayhap::registry::FAMILIES;
use mayhap::{Layout, Spec};

/// The first block of shell lines with this text.
fn example(text: &str) -> String {
    let readme = documents::read("README.md");
    let (_, blocks) = documents::split(&readme);
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
fn the_examples_with_several_sets_do_what_their_comments_say() {
    let (labels, which) = (example("mayhap label"), example("--which"));
    let (text, _) = run(&format!("{labels}{which}"));
    assert!(text.starts_with("evil.example\tblock\nfamily        spatial"), "{text}");
    assert!(text.contains("block.mayhap\tevil.example\nallow.mayhap\tgood.example\n"), "{text}");
    let counts: Vec<&str> = text.lines().rev().take(2).map(str::trim).collect();
    assert_eq!(counts, ["1 block.mayhap", "1 allow.mayhap"], "{text}");
}

#[test]
fn the_examples_of_dropping_repeats_do_what_their_comments_say() {
    let urls = "printf '%s\\n' a b a > urls.txt\n";
    let (text, errors) = run(&format!("{urls}{}cat fresh.txt\n", example("mayhap dedup --only-once")));
    // The first run with a state prints both, the second nothing; then what never repeats, then all, then fresh.txt.
    assert_eq!(text, "a\nb\nb\na\nb\na\nb\n");
    assert!(errors.starts_with("mayhap: read 3, printed 2, dropped 1; "), "{errors}");
}

#[test]
fn the_shell_example_does_what_its_comments_say() {
    // `check -v` finds nothing, which is status 1: what its comment says.
    let script = example("mayhap build").replace("mayhap check -v", "! mayhap check -v");
    let (text, errors) = run(&script);
    assert!(text.starts_with("https://example.org/\nfamily        bloom"), "{text}");
    assert!(text.ends_with("https://example.org/\nhttps://example.net/\n"), "{text}");
    assert!(errors.contains("bloom with 2 keys"), "{errors}");
}

#[test]
fn the_example_with_exceptions_does_what_its_comments_say() {
    let files = "printf '%s\\n' good.example > allow.txt; printf '%s\\n' evil.example > block.txt\n";
    let (text, errors) = run(&format!("{files}{}ls\n", example("--keyed")));
    let names = "allow.txt\nbad.mayhap\nbad.mayhap.key\nblock.txt\n";
    assert_eq!(text, format!("evil.example\ngood.example\n{names}"));
    assert!(errors.contains("--allow: 1 keys are answered no, exactly"), "{errors}");
}

#[test]
fn the_examples_of_advice_give_what_their_comments_say() {
    let script = example("mayhap advise");
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
    let script = example("mayhap eval --hashes");
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
    let readme = documents::read("README.md");
    let (prose, _) = documents::split(&readme);
    let rows = table(&prose, &["you have", "`mayhap advise`"]);
    let folder = Folder::new();
    let mut rules = Vec::new();
    for row in &rows[1..] {
        let (flags, family) = (row[1].trim_matches('`'), row[2].trim_matches('`'));
        let advice = folder.mayhap(&format!("advise --json {flags}")).run().ends(0).json();
        assert_eq!(advice["family"], family, "{flags}");
        let bytes = advice["bytes"].as_f64().expect("a size");
        let size = format!("{:.2} MiB", bytes / f64::from(1 << 20));
        assert_eq!(row[3], size, "the size of {family} for mayhap advise {flags}; correct README.md");
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

#[test]
fn the_table_of_families_is_that_of_the_registry() {
    let readme = documents::read("README.md");
    let (prose, _) = documents::split(&readme);
    let rows = table(&prose, &["you have", "family", "bits per key"]);
    let (mut listed, mut compared) = (Vec::new(), 0);
    for row in &rows[1..] {
        let names = documents::quoted(row[1]);
        let family = mayhap::family(names[0]).unwrap_or_else(|| panic!("no family is called {}", names[0]));
        let layout = names.get(1).map(|name| {
            let layout = Layout::ALL.into_iter().find(|layout| layout.name() == *name);
            layout.unwrap_or_else(|| panic!("no layout is called {name}"))
        });
        if layout.is_none() {
            listed.push(family.name);
            let cost = family.cost;
            assert_eq!(
                row[4],
                format!("{} / {} / {}", cost.query, cost.insert, cost.space),
                "the cost of {}",
                family.name
            );
        }
        for (bits, rate) in bits_at_rate(row[2]) {
            let spec = Spec::sized(1_000_000, rate);
            let plan =
                (family.plan)(&layout.map_or(spec, |layout| spec.with_layout(layout))).expect(family.name);
            let planned = plan.bits_per_key();
            assert!(
                (planned / bits - 1.0).abs() < 0.01,
                "{} {layout:?} at {rate}: {bits} in README.md, {planned} are planned",
                family.name
            );
            compared += 1;
        }
    }
    let mut all: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
    all.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, all);
    assert!(compared > 30, "only {compared} numbers of bits per key were found");
}

#[test]
fn every_command_is_in_its_table() {
    let readme = documents::read("README.md");
    let (prose, _) = documents::split(&readme);
    let rows = table(&prose, &["command", "job"]);
    let mut listed: Vec<&str> = rows[1..].iter().flat_map(|row| documents::quoted(row[0])).collect();
    listed.sort_unstable();
    let mut all = Vec::from(COMMANDS);
    all.sort_unstable();
    assert_eq!(listed, all);
}

/// What people know from elsewhere; every name has its row.
const NAMES_ELSEWHERE: [(&str, &str); 5] = [
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
    ("`BitSet`", "set clear test nextSetBit and or andNot"),
    ("a class of one's own", "add contains n m k rate"),
];

/// The words of a text that could be names.
fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

#[test]
fn every_name_from_elsewhere_has_a_name_here_that_the_tests_call() {
    let readme = documents::read("README.md");
    let (prose, _) = documents::split(&readme);
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
            assert!(there.contains(&(from, name)), "{name} of {from} is not in the table of README.md");
        }
    }
}

// The same in Chinese.

const CHINESE: &str = "README.zh-CN.md";

/// What to do if the two differ.
const HOW_TO_MEND: &str = "whatever is changed in README.md has to be changed in README.zh-CN.md too: copy the code block \
                           as it stands, or translate the heading, the row or the paragraph with its names and numbers; \
                           then run cargo test -p mayhap-cli --test it readme::";

/// The numbers of a text, in any order: a translation may turn the words around.
fn numbers(text: &str) -> Vec<&str> {
    let mut numbers: Vec<&str> = text
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .map(|number| number.trim_matches('.'))
        .filter(|number| !number.is_empty())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The targets of links and pictures, but for those within the document, whose headings are translated.
fn targets<'a>(prose: &[&'a str]) -> Vec<&'a str> {
    let mut targets: Vec<&str> = prose
        .iter()
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.starts_with('#') && !target.starts_with("README"))
        .collect();
    targets.sort_unstable();
    targets
}

#[test]
fn the_first_line_of_each_links_to_the_other() {
    for (document, other) in [("README.md", CHINESE), (CHINESE, "README.md")] {
        let text = documents::read(document);
        let first = text.lines().next().expect("a line");
        assert!(first.contains(&format!("]({other})")), "{document} begins with {first:?}");
    }
}

#[test]
fn the_chinese_readme_has_the_same_code_blocks() {
    let (english, chinese) = (documents::read("README.md"), documents::read(CHINESE));
    let ((_, english), (_, chinese)) = (documents::split(&english), documents::split(&chinese));
    for (ours, theirs) in english.iter().zip(&chinese) {
        assert_eq!(ours, theirs, "a code block differs; {HOW_TO_MEND}");
    }
    assert_eq!(english.len(), chinese.len(), "the numbers of code blocks differ; {HOW_TO_MEND}");
}

#[test]
fn the_chinese_readme_has_the_same_headings_tables_names_and_links() {
    let (english, chinese) = (documents::read("README.md"), documents::read(CHINESE));
    let ((english, _), (chinese, _)) = (documents::split(&english), documents::split(&chinese));
    let (ours, theirs) = (documents::headings(&english), documents::headings(&chinese));
    for ((level, ours), (their_level, theirs)) in ours.iter().zip(&theirs) {
        assert_eq!(level, their_level, "{ours:?} is the heading {theirs:?}?; {HOW_TO_MEND}");
    }
    assert_eq!(ours.len(), theirs.len(), "the numbers of headings differ; {HOW_TO_MEND}");

    let (ours, theirs) = (documents::tables(&english), documents::tables(&chinese));
    assert_eq!(ours.len(), theirs.len(), "the numbers of tables differ; {HOW_TO_MEND}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.len(), theirs.len(), "the table {:?} has other rows; {HOW_TO_MEND}", ours[0]);
        for (ours, theirs) in ours.iter().zip(theirs) {
            let both = format!("{ours:?} and {theirs:?}");
            assert_eq!(ours.len(), theirs.len(), "columns of {both}; {HOW_TO_MEND}");
            for (ours, theirs) in ours.iter().zip(theirs) {
                let (names, their_names) = (documents::quoted(ours), documents::quoted(theirs));
                assert_eq!(names, their_names, "names in {both}; {HOW_TO_MEND}");
                assert_eq!(numbers(ours), numbers(theirs), "numbers in {both}; {HOW_TO_MEND}");
            }
        }
    }

    let (ours, theirs) = (targets(&english), targets(&chinese));
    assert_eq!(ours, theirs, "links or pictures differ; {HOW_TO_MEND}");

    // Every option and name of the text, in any order.
    let names = |prose: &[&str]| {
        let text: Vec<&str> = prose.iter().filter(|line| !line.starts_with('|')).copied().collect();
        // A name may be broken by the end of a line.
        let text = text.join(" ");
        let mut names: Vec<String> = documents::quoted(&text).into_iter().map(String::from).collect();
        names.sort();
        names
    };
    assert_eq!(names(&english), names(&chinese), "names in the text; {HOW_TO_MEND}");
}
