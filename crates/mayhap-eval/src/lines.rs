//! Text for dedup: lines with URLs, of which some came before.

use crate::{SplitMix64, Stream, write_url};

/// The lengths of the URLs are spread evenly over this range, whose middle is 57: 58 with the line end.
const LENGTHS: core::ops::RangeInclusive<u64> = 49..=65;

/// Whether a line came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// No line before it is the same.
    First,
    /// A line before it is the same.
    Repeat,
}

/// Lines with URLs, of which a given share are repeats: what [`Stream`] says, written out.
///
/// The number of repeats is exact, so [`distinct`](Self::distinct) lines are first occurrences. Lines have 50 to
/// 66 bytes with their line end, 58 on average. Nothing is kept of the lines before one, so that there may be any number.
///
/// ```
/// use mayhap_eval::{Occurrence, UrlLines};
///
/// let mut lines = UrlLines::new(1, 100, 0.3);
/// let (mut text, mut firsts) = (Vec::new(), 0);
/// while let Some(occurrence) = lines.write_next(&mut text) {
///     firsts += u64::from(occurrence == Occurrence::First);
/// }
/// assert_eq!((firsts, lines.distinct()), (70, 70));
/// assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), 100);
/// ```
#[derive(Clone, Debug)]
pub struct UrlLines {
    seed: u64,
    stream: Stream,
    /// How many different lines came so far.
    seen: u64,
}

impl UrlLines {
    /// So many lines, of which the share `repeats`, rounded to whole lines, came before.
    ///
    /// # Panics
    ///
    /// If `repeats` is not in `0.0..=1.0`.
    pub fn new(seed: u64, lines: u64, repeats: f64) -> Self {
        Self { seed, stream: Stream::new(seed, lines, repeats), seen: 0 }
    }

    /// How many different lines there are, from the first to the last.
    pub const fn distinct(&self) -> u64 {
        self.stream.distinct()
    }

    /// Appends the next line with its line end to `out`, and tells whether it came before; `None` after the last.
    pub fn write_next(&mut self, out: &mut Vec<u8>) -> Option<Occurrence> {
        let index = self.stream.next()?;
        let spread = LENGTHS.end() - LENGTHS.start() + 1;
        let length = LENGTHS.start() + SplitMix64::at(self.seed, index) % spread;
        write_url(self.seed, index, length as usize, out);
        out.push(b'\n');
        // New records count up: a number that was not reached is one that never came.
        Some(if index == self.seen {
            self.seen += 1;
            Occurrence::First
        } else {
            Occurrence::Repeat
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn lines_are_repeats_exactly_where_they_say_so() {
        let lines = 50_000;
        let mut source = UrlLines::new(5, lines, 0.3);
        let (mut seen, mut line, mut read, mut bytes) = (BTreeSet::new(), Vec::new(), 0, 0);
        while let Some(occurrence) = source.write_next(&mut line) {
            assert_eq!(line.iter().position(|&byte| byte == b'\n'), Some(line.len() - 1));
            assert!((50..=66).contains(&line.len()), "{}", line.len());
            read += 1;
            bytes += line.len();
            let expected = if seen.contains(&line) { Occurrence::Repeat } else { Occurrence::First };
            assert_eq!(occurrence, expected, "line {read}");
            seen.insert(core::mem::take(&mut line));
        }
        assert_eq!((read, seen.len(), source.distinct()), (lines, 35_000, 35_000));
        // A length has deviation sqrt((17^2 - 1) / 12) = 4.9. Those of repeats count several times, so that the mean
        // varies as one of fewer lengths, but of more than 10000: at most 0.049. The bound is 5 of them.
        let mean = bytes as f64 / lines as f64;
        assert!((mean - 58.0).abs() < 0.245, "{mean}");
    }

    #[test]
    fn lines_never_change() {
        let text = |seed| {
            let (mut lines, mut text) = (UrlLines::new(seed, 3, 0.4), Vec::new());
            while lines.write_next(&mut text).is_some() {}
            String::from_utf8(text).unwrap()
        };
        assert_eq!(
            text(1),
            "https://ember-team.example/travel/archive-recip/BzlAJyeLKEJ\n\
             https://grove-film.example/archive/ar/nxujlFajr7L\n\
             https://ember-team.example/travel/archive-recip/BzlAJyeLKEJ\n"
        );
        assert_ne!(text(1), text(2));
    }
}
