//! The inputs of `dedup`: lines made from a seed, with what a perfect dedup keeps of them.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Result, bail};
use mayhap_eval::{Occurrence, SplitMix64, UrlLines};
use xxhash_rust::xxh3::xxh3_64;

const SEED: u64 = 1;
const REPEATS: f64 = 0.3;
const LOG_LINES: u64 = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 30% of the lines are repeats.
    Urls,
    /// As many draws as there are values, so that a share of 1 - 1/e of the values occurs.
    Integers,
    /// Few distinct lines, each as frequent as the others.
    Logs,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Urls, Self::Integers, Self::Logs];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Urls => "urls",
            Self::Integers => "integers",
            Self::Logs => "logs",
        }
    }

    pub(crate) fn parse(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => Ok(kind),
            None => bail!("unknown input {name:?}; there are urls, integers and logs"),
        }
    }

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Urls => "URLs",
            Self::Integers => "integers",
            Self::Logs => "log lines",
        }
    }
}

/// The lines one by one, always the same ones.
#[derive(Clone, Debug)]
pub(crate) enum Lines {
    Urls(UrlLines),
    /// Draws with replacement; `seen` has a place for each value.
    Drawn {
        kind: Kind,
        next: u64,
        lines: u64,
        seen: Vec<bool>,
    },
}

impl Lines {
    pub(crate) fn new(kind: Kind, lines: u64) -> Self {
        match kind {
            Kind::Urls => Self::Urls(UrlLines::new(SEED, lines, REPEATS)),
            Kind::Integers => Self::Drawn { kind, next: 0, lines, seen: vec![false; lines as usize] },
            Kind::Logs => Self::Drawn { kind, next: 0, lines, seen: vec![false; LOG_LINES as usize] },
        }
    }

    /// Appends the next line with its line end, and says whether it is a repeat; `None` after the last.
    pub(crate) fn write_next(&mut self, out: &mut Vec<u8>) -> Option<Occurrence> {
        let (kind, index, seen) = match self {
            Self::Urls(lines) => return lines.write_next(out),
            Self::Drawn { next, lines, .. } if next == lines => return None,
            Self::Drawn { kind, next, seen, .. } => {
                *next += 1;
                (*kind, *next, seen)
            }
        };
        let value = ((u128::from(SplitMix64::at(SEED, index)) * seen.len() as u128) >> 64) as u64;
        if kind == Kind::Integers {
            writeln!(out, "{value}").ok()?;
        } else {
            write_log_line(value, out).ok()?;
        }
        let repeat = std::mem::replace(&mut seen[value as usize], true);
        Some(if repeat { Occurrence::Repeat } else { Occurrence::First })
    }
}

/// It has no time stamp, because lines with time stamps hardly ever repeat, and no comma, because `hist -u` quotes lines that have
/// one.
fn write_log_line(value: u64, out: &mut Vec<u8>) -> io::Result<()> {
    const LEVELS: [&str; 4] = ["INFO ", "INFO ", "WARN ", "ERROR"];
    const SERVICES: [&str; 6] = ["checkout", "search", "accounts", "mail", "images", "gateway"];
    const EVENTS: [&str; 5] = [
        "request served from cache",
        "upstream answered late",
        "connection closed by peer",
        "session token renewed",
        "job finished",
    ];
    let random = SplitMix64::at(SEED, !value);
    let pick = |words: &[&'static str], shift: u32| words[(random >> shift) as usize % words.len()];
    writeln!(
        out,
        "{} [{}-{}] {} path=/api/v2/items/{value} status={}",
        pick(&LEVELS, 0),
        pick(&SERVICES, 8),
        (random >> 16) % 8,
        pick(&EVENTS, 24),
        ["200", "200", "304", "404", "503"][(random >> 32) as usize % 5],
    )
}

/// What was written into a file.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) kind: Kind,
    pub(crate) lines: u64,
    pub(crate) distinct: u64,
    /// The sum of the hashes of the distinct lines: it does not depend on their order.
    pub(crate) sum: u64,
}

impl Text {
    pub(crate) fn write(kind: Kind, lines: u64, path: &Path) -> Result<Self> {
        let (mut source, mut buffer) = (Lines::new(kind, lines), Vec::with_capacity(1 << 20));
        let mut file = File::create(path)?;
        let (mut distinct, mut sum, mut start) = (0, 0_u64, 0);
        while let Some(occurrence) = source.write_next(&mut buffer) {
            if occurrence == Occurrence::First {
                distinct += 1;
                sum = sum.wrapping_add(xxh3_64(&buffer[start..]));
            }
            if buffer.len() > (1 << 20) - 128 {
                file.write_all(&buffer)?;
                buffer.clear();
            }
            start = buffer.len();
        }
        file.write_all(&buffer)?;
        // On the disk before anything is timed, so that the system need not write it meanwhile.
        file.sync_all()?;
        Ok(Self { kind, lines, distinct, sum })
    }

    pub(crate) fn source(&self) -> Lines {
        Lines::new(self.kind, self.lines)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_input_has_the_distinct_lines_that_it_says() {
        for (kind, least, most) in
            [(Kind::Urls, 14_000, 14_000), (Kind::Integers, 12_500, 12_800), (Kind::Logs, 4_850, 5_000)]
        {
            let (mut source, mut line, mut seen) = (Lines::new(kind, 20_000), Vec::new(), BTreeSet::new());
            let mut lines = 0;
            while let Some(occurrence) = source.write_next(&mut line) {
                lines += 1;
                assert!(!line.contains(&1) && line.ends_with(b"\n"), "{kind:?}");
                assert_eq!(
                    seen.insert(std::mem::take(&mut line)),
                    occurrence == Occurrence::First,
                    "{kind:?}"
                );
            }
            assert_eq!(lines, 20_000);
            assert!((least..=most).contains(&seen.len()), "{kind:?}: {}", seen.len());
            let folder = tempfile::tempdir().unwrap();
            let text = Text::write(kind, 20_000, &folder.path().join("text")).unwrap();
            let sum = seen.iter().fold(0_u64, |sum, line| sum.wrapping_add(xxh3_64(line)));
            assert_eq!((text.distinct, text.sum), (seen.len() as u64, sum), "{kind:?}");
        }
    }
}
