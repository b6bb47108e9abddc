//! `docs/coverage.md`: every test, command and function that it names exists.

use std::collections::HashMap;
use std::path::Path;

use crate::documents;
use crate::runner::{COMMANDS, Folder};

const DOCUMENT: &str = "docs/coverage.md";

/// The rows of all tables: topic, what shows it, tests.
fn rows(text: &str) -> Vec<[String; 3]> {
    let (prose, _) = documents::split(text);
    let mut rows = Vec::new();
    for table in documents::tables(&prose) {
        assert_eq!(table[0], ["topic", "shown by", "test"]);
        for row in &table[1..] {
            let cells: [&str; 3] = row[..].try_into().unwrap_or_else(|_| panic!("not three cells: {row:?}"));
            rows.push(cells.map(String::from));
        }
    }
    rows
}

#[test]
fn every_test_that_is_named_exists() {
    let text = documents::read(DOCUMENT);
    let mut files: HashMap<&str, String> = HashMap::new();
    let rows = rows(&text);
    assert!(rows.len() > 70, "only {} topics", rows.len());
    let mut named = Vec::new();
    for [topic, _, tests] in &rows {
        let tests = documents::quoted(tests);
        assert!(!tests.is_empty(), "{topic}: no test");
        named.extend(tests.into_iter().map(str::to_string));
    }
    for test in &named {
        let (file, function) = test.split_once("::").unwrap_or_else(|| panic!("{test} is no file::function"));
        let source = files.entry(file).or_insert_with(|| documents::read(file));
        if file.starts_with("crates/mayhap-eval/src/papers/") {
            // An experiment. `crates/mayhap-eval/tests/papers.rs` runs all that `PAPERS` lists.
            let name = function.to_uppercase().replace('_', "-");
            assert!(
                mayhap_eval::PAPERS.iter().any(|paper| paper.name == name),
                "no experiment is called {name}"
            );
            assert!(source.contains(&format!("fn {function}(")), "{file} has no experiment {function}");
            continue;
        }
        let at = source.find(&format!("fn {function}()"));
        let at = at.unwrap_or_else(|| panic!("{file} has no function {function}"));
        // Attributes may stand between: the function of a module's test is indented.
        let before: Vec<&str> = source[..at].lines().rev().map(str::trim).take(4).collect();
        assert!(before.contains(&"#[test]"), "{function} in {file} is no test");
    }
}

#[test]
fn every_command_that_is_named_exists_with_its_options() {
    let folder = Folder::new();
    let text = documents::read(DOCUMENT);
    let mut helps: HashMap<String, String> = HashMap::new();
    let mut help = |command: &str| -> String {
        let print = || {
            let done = folder.mayhap(&format!("{command} --help")).run().ends(0);
            String::from_utf8(done.out).expect("text")
        };
        helps.entry(command.into()).or_insert_with(print).clone()
    };
    let mut commands = 0;
    for [topic, shown, _] in rows(&text) {
        for call in documents::quoted(&shown).into_iter().filter_map(|call| call.strip_prefix("mayhap ")) {
            let mut words = call.split(' ');
            let command = words.next().expect("a command");
            assert!(COMMANDS.contains(&command), "{topic}: there is no command {command}");
            let help = help(command);
            for option in words.filter(|word| word.starts_with('-')) {
                let option = option.split('=').next().unwrap_or(option);
                let listed = help.split([' ', ',', '\n']).any(|word| word == option);
                assert!(listed, "{topic}: {command} has no option {option}");
            }
            commands += 1;
        }
    }
    assert!(commands > 50, "only {commands} commands");
}

/// The text of all sources below a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *text += &std::fs::read_to_string(&path).expect("a source");
        }
    }
}

#[test]
fn every_part_of_the_library_that_is_named_exists() {
    let mut library = String::new();
    sources(&documents::project().join("crates/mayhap/src"), &mut library);
    let text = documents::read(DOCUMENT);
    for [topic, shown, _] in rows(&text) {
        let shown = documents::quoted(&shown);
        assert!(!shown.is_empty(), "{topic}: nothing shows it");
        for name in shown.into_iter().filter(|name| !name.starts_with("mayhap ")) {
            let last = name.rsplit("::").next().expect("a name");
            let defined = ["fn LAST(", "fn LAST<", "struct LAST", "enum LAST", "    LAST {"];
            let defined = defined.iter().any(|form| library.contains(&form.replace("LAST", last)));
            assert!(defined, "{topic}: the library has no {name}");
        }
    }
}
