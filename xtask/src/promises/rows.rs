//! The rows of `docs/coverage.md`.

use std::fmt;

use super::expected::Expected;
use super::table::{self, quoted};

/// The columns of the tables that are executed.
const HEAD: [&str; 6] = ["#", "place", "the essay says", "shown by", "result", "where it errs"];
const HEAD_OF_PROMISES: [&str; 4] = ["#", "promise", "shown by", "result"];

/// One item of an essay, or one sentence that users can rely on.
pub(super) struct Row {
    pub(super) number: String,
    pub(super) says: String,
    pub(super) shown: Vec<Item>,
}

/// What shows an item, and what it must give.
pub(super) struct Item {
    pub(super) what: What,
    pub(super) expected: Expected,
    /// It takes too long for every run.
    pub(super) only_with_all: bool,
}

pub(super) enum What {
    Command(String),
    Test(String),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "$ {command}"),
            Self::Test(name) => write!(f, "test {name}"),
        }
    }
}

impl Row {
    /// The tests that it names.
    pub(super) fn tests(&self) -> Vec<String> {
        let name = |item: &Item| match &item.what {
            What::Test(name) if !item.only_with_all => Some(name.clone()),
            _ => None,
        };
        self.shown.iter().filter_map(name).collect()
    }
}

/// All rows of a document.
///
/// # Errors
///
/// A row that nothing executes, or that every result would satisfy; a number that is there twice or missing.
pub(super) fn of(document: &str) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = Vec::new();
    let mut problems = Vec::new();
    for table in table::tables(document) {
        let head: Vec<&str> = table.rows[0].iter().map(String::as_str).collect();
        let (says, shown, result) = if head == HEAD {
            (2, 3, 4)
        } else if head == HEAD_OF_PROMISES {
            (1, 2, 3)
        } else {
            problems.push(format!("line {}: a table with other columns than {HEAD:?}", table.line));
            continue;
        };
        for cells in &table.rows[1..] {
            if cells.len() != head.len() {
                problems.push(format!("{}: {} cells and not {}", cells.join(" | "), cells.len(), head.len()));
                continue;
            }
            match items(&cells[shown], &cells[result]) {
                Ok(shown) => {
                    rows.push(Row { number: cells[0].clone(), says: cells[says].clone(), shown });
                }
                Err(problem) => problems.push(format!("{}: {problem}", cells[0])),
            }
        }
    }
    problems.extend(gaps(&rows));
    if problems.is_empty() { Ok(rows) } else { Err(problems.join("\n")) }
}

/// Rows whose number does not follow that of the row before.
fn gaps(rows: &[Row]) -> Vec<String> {
    let split = |number: &str| {
        let (essay, item) = number.split_once('.')?;
        Some((essay.to_owned(), item.parse::<u32>().ok()?))
    };
    let mut before = (String::new(), 0);
    let mut problems = Vec::new();
    for row in rows {
        let Some((essay, item)) = split(&row.number) else {
            problems.push(format!("{:?} is no number of a row", row.number));
            continue;
        };
        let expected = if before.0 == essay { before.1 + 1 } else { 1 };
        if item != expected {
            problems.push(format!("{}: the next row of this part is {essay}.{expected:02}", row.number));
        }
        before = (essay, item);
    }
    problems
}

/// The parts of two cells, which belong together.
fn items(shown: &str, result: &str) -> Result<Vec<Item>, String> {
    let (shown, results): (Vec<&str>, Vec<&str>) =
        (shown.split("<br>").collect(), result.split("<br>").collect());
    if shown.len() != results.len() {
        return Err(format!("{} things show it, and there are {} results", shown.len(), results.len()));
    }
    shown.into_iter().zip(results).map(|(shown, result)| item(shown, result)).collect()
}

fn item(shown: &str, result: &str) -> Result<Item, String> {
    let shown = shown.trim();
    let text = shown.strip_prefix('`').and_then(|text| text.strip_suffix('`'));
    let text = text.ok_or_else(|| format!("{shown:?} is neither a command nor a test"))?;
    let (only_with_all, text) = text.strip_prefix("all").map_or((false, text), |text| (true, text.trim()));
    if let Some(name) = text.strip_prefix("test ") {
        if result.trim() != "passes" {
            return Err(format!("the result of a test is `passes`, not {result:?}"));
        }
        return Ok(Item {
            what: What::Test(name.trim().into()),
            expected: Expected::default(),
            only_with_all,
        });
    }
    let command =
        text.strip_prefix("$ ").ok_or_else(|| format!("{text:?} is neither a command nor a test"))?;
    if !command.contains("mayhap") {
        return Err(format!("{command:?} is no command of ours"));
    }
    Ok(Item { what: What::Command(command.into()), expected: Expected::of(result)?, only_with_all })
}

/// The sentences of "What you can rely on" that no row has.
pub(super) fn sentences_without_row(readme: &str, rows: &[Row]) -> Vec<String> {
    let plain = |text: &str| {
        let text = quoted(text);
        [text.0.join(" "), text.1].concat().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let promised: Vec<String> = rows.iter().map(|row| plain(&row.says)).collect();
    let section = readme.split("\n## What you can rely on\n").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let sentences: Vec<String> =
        section.trim().split("\n- ").map(|item| item.trim_start_matches("- ").replace('\n', " ")).collect();
    sentences.into_iter().filter(|sentence| !promised.contains(&plain(sentence))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(row: &str) -> String {
        format!("| {} |\n|---|\n{row}\n", HEAD.join(" | "))
    }

    #[test]
    fn a_row_has_its_command_its_tests_and_what_they_give() {
        let row = "| 1.01 | p | m bits | `$ mayhap calc -n 1`<br>`test blm_1`<br>`all$ mayhap eval` | `9`<br>passes<br>`x` | |";
        let rows = of(&document(row)).unwrap();
        assert_eq!(rows[0].shown.len(), 3);
        assert_eq!(rows[0].tests(), ["blm_1"]);
        assert!(rows[0].shown[2].only_with_all);
    }

    #[test]
    fn nominal_rows_are_errors() {
        for (row, problem) in [
            ("| 1.01 | p | m | `$ mayhap calc` | looks right | |", "does not say what"),
            ("| 1.01 | p | m | `$ echo 1` | `1` | |", "no command of ours"),
            ("| 1.01 | p | m | `Spatial::label` | `1` | |", "neither"),
            ("| 1.01 | p | m | `test x` | `1` | |", "passes"),
            ("| 1.01 | p | m |  | `1` | |", "neither"),
            ("| 1.01 | p | m | `$ mayhap calc`<br>`test x` | `1` | |", "results"),
            ("| 1.02 | p | m | `test x` | passes | |", "1.01"),
            ("| 1.01 | p | m | `test x` | passes |", "cells"),
        ] {
            let error = of(&document(row)).err().expect(row);
            assert!(error.contains(problem), "{row}: {error}");
        }
    }

    #[test]
    fn a_sentence_of_the_readme_needs_a_row() {
        let readme =
            "# m\n\n## What you can rely on\n\n- Nothing is\n  lost.\n- Rates `p` hold.\n\n## Next\n\n- x\n";
        let text = "| # | promise | shown by | result |\n|---|---|---|---|\n\
                    | r.01 | Nothing is lost. | `test x` | passes |\n";
        let rows = of(text).unwrap();
        assert_eq!(sentences_without_row(readme, &rows), ["Rates `p` hold."]);
    }
}
