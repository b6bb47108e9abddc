//! Pictures of small filters for a terminal: rows of cells with their numbers, and buckets of slots.

use std::collections::BTreeMap;
use std::io::IsTerminal;

/// Arrays of so many cells have a number above each; longer ones only before each row.
const NUMBERED: usize = 100;
/// Columns of a row.
const COLUMNS: usize = 72;
/// Cells are counted in groups of so many.
const GROUP: usize = 8;
/// Of a picture with more rows only those are drawn that something happens in.
const MOST_ROWS: usize = 8;

/// What happens in a cell. It is drawn as a sign; the colour only repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Empty before.
    New,
    /// More than before.
    Raised,
    /// As it has to be already.
    Same,
    /// More than was asked for, which stays.
    Stays,
    /// Less than before.
    Lowered,
    /// Empty.
    Missing,
}

impl Mark {
    const fn sign(self) -> char {
        match self {
            Self::New => '+',
            Self::Raised => '^',
            Self::Same => '=',
            Self::Stays => '>',
            Self::Lowered => '-',
            Self::Missing => 'x',
        }
    }

    const fn colour(self) -> u8 {
        match self {
            Self::New | Self::Raised => 32,
            Self::Same | Self::Stays => 33,
            Self::Lowered | Self::Missing => 31,
        }
    }
}

/// Whether there is colour: on a terminal, unless `NO_COLOR` is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ink(bool);

impl Ink {
    pub(crate) fn of_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self(!refused && std::io::stdout().is_terminal())
    }

    fn paint(self, text: &str, mark: Option<Mark>) -> String {
        match mark {
            Some(mark) if self.0 => format!("\x1b[{}m{text}\x1b[0m", mark.colour()),
            _ => text.into(),
        }
    }
}

/// A picture, row by row.
#[derive(Debug, Default)]
pub(crate) struct Picture(Vec<Row>);

#[derive(Debug)]
struct Row {
    lines: Vec<String>,
    /// Whether something happens in it.
    touched: bool,
}

impl Picture {
    /// Cells one after the other, with marks by their numbers.
    pub(crate) fn of_cells(cells: &[String], marks: &BTreeMap<u64, Mark>, ink: Ink) -> Self {
        let numbered = cells.len() <= NUMBERED;
        let longest = cells.iter().map(String::len).max().unwrap_or(1);
        let last = (cells.len().max(1) - 1).to_string().len();
        // A gap between cells, but for single digits in long rows.
        let width = match (numbered, longest) {
            (true, _) => longest.max(last) + 1,
            (false, 1) => 1,
            (false, _) => longest + 1,
        };
        let per_row = (COLUMNS / width / GROUP * GROUP).max(GROUP);
        let per_row = if numbered { per_row } else { 1 << per_row.ilog2() };
        let row = |(index, row): (usize, &[String])| {
            let first = index * per_row;
            let mark = |offset: usize| marks.get(&((first + offset) as u64)).copied();
            let line = |text: &dyn Fn(usize) -> (String, Option<Mark>), head: &str| {
                let mut line = String::from(head);
                for offset in 0..row.len() {
                    if !numbered && offset > 0 && offset % GROUP == 0 {
                        line.push(' ');
                    }
                    let (text, mark) = text(offset);
                    line.push_str(&" ".repeat(width.saturating_sub(text.len())));
                    line.push_str(&ink.paint(&text, mark));
                }
                line.trim_end().to_string()
            };
            let (blank, head) = match numbered {
                true => (String::new(), String::new()),
                false => (" ".repeat(last + 2), format!("{first:>last$}  ")),
            };
            let mut lines = Vec::new();
            if numbered {
                lines.push(line(&|offset| ((first + offset).to_string(), None), &blank));
            }
            lines.push(line(&|offset| (row[offset].clone(), mark(offset)), &head));
            let touched = (0..row.len()).any(|offset| mark(offset).is_some());
            if touched {
                let sign = |offset| mark(offset).map_or(String::new(), |mark| mark.sign().to_string());
                lines.push(line(&|offset| (sign(offset), mark(offset)), &blank));
            }
            Row { lines, touched }
        };
        Self(cells.chunks(per_row).enumerate().map(row).collect())
    }

    /// Buckets one below the other, with what is to be said of some of them.
    pub(crate) fn of_buckets(
        buckets: &[Vec<String>],
        notes: &BTreeMap<u64, (Mark, String)>,
        ink: Ink,
    ) -> Self {
        let width = (buckets.len().max(1) - 1).to_string().len();
        let row = |(index, slots): (usize, &Vec<String>)| {
            let note = notes.get(&(index as u64));
            let line = format!("bucket {index:>width$}  [ {} ]", slots.join(" | "));
            let line = match note {
                Some((mark, note)) => format!("{line}  {}", ink.paint(&format!("< {note}"), Some(*mark))),
                None => line,
            };
            Row { lines: vec![line], touched: note.is_some() }
        };
        Self(buckets.iter().enumerate().map(row).collect())
    }

    /// Whether it is too long to be drawn whole each time.
    pub(crate) fn is_long(&self) -> bool {
        self.0.len() > MOST_ROWS
    }

    /// All of its lines.
    pub(crate) fn whole(&self) -> Vec<&str> {
        self.0.iter().flat_map(|row| &row.lines).map(String::as_str).collect()
    }

    /// Its lines; of a long one those in which something happens.
    pub(crate) fn lines(&self) -> Vec<&str> {
        if !self.is_long() {
            return self.whole();
        }
        let mut lines: Vec<&str> = Vec::new();
        for row in &self.0 {
            if row.touched {
                lines.extend(row.lines.iter().map(String::as_str));
            } else if lines.last() != Some(&"...") {
                lines.push("...");
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(count: usize) -> Vec<String> {
        (0..count).map(|index| (index % 2).to_string()).collect()
    }

    #[test]
    fn a_long_picture_shows_the_rows_in_which_something_happens() {
        let marks = BTreeMap::from([(70, Mark::New), (1023, Mark::Missing)]);
        let picture = Picture::of_cells(&texts(1024), &marks, Ink(false));
        let row = "01010101 01010101 01010101 01010101 01010101 01010101 01010101 01010101";
        let sign = |column: usize, sign: char| format!("      {}{sign}", " ".repeat(column));
        let expected =
            ["...", &format!("  64  {row}"), &sign(6, '+'), "...", &format!(" 960  {row}"), &sign(70, 'x')];
        assert_eq!(picture.lines(), expected);
        assert_eq!(picture.whole().len(), 16 + 2);
    }

    #[test]
    fn colour_repeats_the_sign() {
        let marks = BTreeMap::from([(1, Mark::Same)]);
        let picture = Picture::of_cells(&texts(3), &marks, Ink(true));
        assert_eq!(picture.lines(), [" 0 1 2", " 0 \x1b[33m1\x1b[0m 0", "   \x1b[33m=\x1b[0m"]);
    }
}
