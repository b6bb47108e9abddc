//! Reads the documents beside the code, whose commands, tables and code blocks the tests compare with the program.

use std::path::{Path, PathBuf};

/// The folder of the whole project.
pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the project.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(project().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A fenced block of code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
}

/// The lines outside of code blocks, and the blocks.
pub(crate) fn split(document: &str) -> (Vec<&str>, Vec<Block>) {
    let (mut prose, mut blocks) = (Vec::new(), Vec::<Block>::new());
    let mut inside = false;
    for line in document.lines() {
        match (inside, line.strip_prefix("```")) {
            (false, Some(language)) => {
                blocks.push(Block { language: language.into(), text: String::new() });
                inside = true;
            }
            (true, Some(_)) => inside = false,
            (true, None) => {
                let block = blocks.last_mut().expect("a block has begun");
                block.text.push_str(line);
                block.text.push('\n');
            }
            (false, None) => prose.push(line),
        }
    }
    assert!(!inside, "a code block does not end");
    (prose, blocks)
}

/// The headings, as level and text.
pub(crate) fn headings<'a>(prose: &[&'a str]) -> Vec<(usize, &'a str)> {
    let heading = |line: &&'a str| {
        let text = line.trim_start_matches('#');
        let level = line.len() - text.len();
        (level > 0).then(|| text.strip_prefix(' ')).flatten().map(|text| (level, text))
    };
    prose.iter().filter_map(heading).collect()
}

/// A table: rows of cells, the head first.
pub(crate) type Table<'a> = Vec<Vec<&'a str>>;

/// The tables. A bar within a cell is written `\|`.
pub(crate) fn tables<'a>(prose: &[&'a str]) -> Vec<Table<'a>> {
    let mut tables = Vec::new();
    for lines in prose.split(|line| !line.starts_with('|')).filter(|lines| lines.len() > 2) {
        let rows = lines.iter().enumerate().filter(|(index, _)| *index != 1);
        tables.push(rows.map(|(_, line)| cells(line)).collect());
    }
    tables
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')).unwrap_or_else(|| {
        panic!("a row of a table must begin and end with a bar: {line}");
    });
    let (mut cells, mut start) = (Vec::new(), 0);
    for (end, _) in line.match_indices('|').filter(|(at, _)| !line[..*at].ends_with('\\')) {
        cells.push(line[start..end].trim());
        start = end + 1;
    }
    cells.push(line[start..].trim());
    cells
}

/// The texts between backticks.
pub(crate) fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The place that a heading can be linked by.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}
