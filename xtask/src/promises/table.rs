//! The tables of a Markdown document.

/// A table with the number of its first line: rows of cells, the head first.
pub(super) struct Table {
    pub(super) line: usize,
    pub(super) rows: Vec<Vec<String>>,
}

/// The tables outside of code blocks.
pub(super) fn tables(document: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut inside_code, mut inside_table) = (false, false);
    for (index, line) in document.lines().enumerate() {
        if line.starts_with("```") {
            inside_code = !inside_code;
        }
        if inside_code || !line.starts_with('|') {
            inside_table = false;
            continue;
        }
        if !inside_table {
            tables.push(Table { line: index + 1, rows: Vec::new() });
            inside_table = true;
        }
        let cells = cells(line);
        // The line of dashes below the head.
        if cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| c == '-' || c == ':')) {
            continue;
        }
        if let Some(table) = tables.last_mut() {
            table.rows.push(cells);
        }
    }
    tables
}

/// The cells of a row. A bar within a cell is written `\|`.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|');
    let (mut cells, mut cell, mut escaped) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match (escaped, c) {
            (true, '|') => cell.push('|'),
            (true, other) => cell.extend(['\\', other]),
            (false, '\\') => {}
            (false, '|') => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            (false, other) => cell.push(other),
        }
        escaped = c == '\\' && !escaped;
    }
    cells
}

/// The texts between backticks, and those around them joined.
pub(super) fn quoted(text: &str) -> (Vec<String>, String) {
    let parts: Vec<&str> = text.split('`').collect();
    let inside = parts.iter().skip(1).step_by(2).map(|part| (*part).to_owned()).collect();
    (inside, parts.iter().step_by(2).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_within_cells_are_escaped_and_dashes_are_no_row() {
        let text =
            "x\n| a | b |\n|---|--:|\n| `seq 9 \\| wc` | printf '\\n' |\n\n```text\n| no | row |\n```\n";
        let tables = tables(text);
        assert_eq!(tables.len(), 1);
        assert_eq!(tables[0].line, 2);
        assert_eq!(tables[0].rows, [["a", "b"], ["`seq 9 | wc`", r"printf '\n'"]]);
    }

    #[test]
    fn quoted_texts_and_the_words_around_them() {
        assert_eq!(quoted("exit 1 `a` and `b c`"), (vec!["a".into(), "b c".into()], "exit 1  and ".into()));
    }
}
