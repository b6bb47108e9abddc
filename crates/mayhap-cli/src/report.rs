//! How numbers look to people, and how reports are printed.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::sync::OnceLock;

use mayhap::{AnyFilter, Guarantee, Layout};
use mayhap_store::Checked;
use mayhap_store::fault::{Stream, was_closed};
use unicode_width::UnicodeWidthStr;

/// `12345678` as `12,345,678`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes in binary units, as `28.57 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    in_units(bytes, 1024.0, ["KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// Bytes in decimal units, as `29.95 MB`.
pub(crate) fn decimal_bytes(bytes: u64) -> String {
    in_units(bytes, 1000.0, ["kB", "MB", "GB", "TB", "PB"])
}

fn in_units(bytes: u64, step: f64, units: [&str; 5]) -> String {
    let mut value = bytes as f64;
    if value < step {
        return format!("{bytes} B");
    }
    value /= step;
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{value:.2} {}", units[unit])
}

/// A rate as people write it: a percentage down to 0.01%, and below that a power of ten.
pub(crate) fn rate(rate: f64) -> String {
    match rate {
        ..=0.0 => "0".into(),
        // What rounds to 0.01% is written so.
        ..9.995e-5 => short(rate),
        _ => percent(rate),
    }
}

/// The present rate of a filter, and its interval if it is an estimate. The rate of an exact set is that of two keys with
/// the same digest, which nobody will see.
pub(crate) fn rate_now(report: &mayhap::Report) -> String {
    match report.fpr_interval {
        _ if report.guarantee == Guarantee::Exact => "0 (exact)".into(),
        None => rate(report.fpr_now),
        Some((low, high)) => {
            let (now, low, high) = (rate(report.fpr_now), rate(low), rate(high));
            format!("{now}, estimated; 95% interval {low} to {high}")
        }
    }
}

/// The rate of a filter with as many keys as it was made for.
pub(crate) fn rate_at_capacity(report: &mayhap::Report) -> String {
    match report.guarantee {
        Guarantee::Exact => "0 (exact)".into(),
        _ => rate(report.fpr_at_capacity),
    }
}

/// A share as a percentage with three significant digits.
pub(crate) fn percent(share: f64) -> String {
    format!("{}%", short(100.0 * share))
}

/// Three significant digits, without zeros behind them. From a thousand on, a whole number.
pub(crate) fn short(value: f64) -> String {
    match value {
        1000.0..1e7 => grouped(value.round() as u64),
        _ => significant(value, 3),
    }
}

/// Four significant digits: what is measured stands beside what others have published.
pub(crate) fn measured(value: f64) -> String {
    significant(value, 4)
}

fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let behind = digits - 1;
    if !(1e-4..1e7).contains(&value.abs()) {
        let text = format!("{value:.behind$e}");
        // 1.00e-6 reads better as 1e-6.
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    let decimals = (behind as i32 - value.abs().log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// A number with its noun: `1 key`, `2 keys`, `1,000 keys`. The plural has an s.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// The same as the subject of a sentence: `1 key is`, `2 keys are`.
pub(crate) fn subject(number: u64, noun: &str) -> String {
    format!("{} {}", counted(number, noun), if number == 1 { "is" } else { "are" })
}

/// The word for how far a file was checked.
pub(crate) fn checked(checked: Checked) -> &'static str {
    match checked {
        Checked::Header => "header-ok",
        Checked::All => "ok",
        Checked::Unsummed => "unsummed",
        Checked::Interrupted => "interrupted",
        Checked::BeingWritten => "being written",
        Checked::Nothing => "none",
    }
}

/// A family's name, with the layout where it has a choice.
pub(crate) fn family(name: &str, layout: Option<Layout>) -> String {
    layout.map_or(name.into(), |layout| format!("{name} ({})", layout.name()))
}

/// A filter's family, with its layout or counting rule where it has a choice.
pub(crate) fn kind(filter: &dyn AnyFilter) -> String {
    let details = filter.details();
    match details.counters.and_then(|counters| counters.rule) {
        Some(rule) => format!("{} ({})", filter.family().name, rule.name()),
        None => family(filter.family().name, details.layout),
    }
}

/// Standard output, whose errors say that it was standard output.
pub(crate) struct Stdout(StdoutLock<'static>);

/// Standard output, locked.
pub(crate) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if was_closed(Stream::Out) && !bytes.is_empty() {
            return Err(of_stdout(io::Error::other("it is closed")));
        }
        self.0.write(bytes).map_err(of_stdout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(of_stdout)
    }
}

/// An error that says that it was standard output's.
pub(crate) fn of_stdout(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("standard output: {error}"))
}

/// Standard output without a buffer, for those who write much at a time and from any thread.
#[cfg(unix)]
pub(crate) fn stdout_file() -> io::Result<File> {
    use std::os::fd::AsFd;
    if was_closed(Stream::Out) {
        // What is open for reading only refuses to be written, as a closed one would.
        return File::open("/dev/null").map_err(of_stdout);
    }
    Ok(io::stdout().as_fd().try_clone_to_owned().map_err(of_stdout)?.into())
}

#[cfg(windows)]
pub(crate) fn stdout_file() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdout().as_handle().try_clone_to_owned().map_err(of_stdout)?.into())
}

/// Characters that move the cursor, begin escape sequences, turn the direction of text or are not seen at all. The name of a
/// file or a column may hold any of them, and could make a terminal show what is not there.
fn is_deceptive(character: char) -> bool {
    let is_invisible = matches!(
        character,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    );
    is_invisible || (character.is_control() && character != '\t')
}

/// A text on one line, with deceptive characters escaped.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match is_deceptive(character) {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    out.into()
}

/// The text of a JSON value with deceptive characters escaped as JSON escapes them. (Line ends are between its tokens.)
fn visible_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match is_deceptive(character) && character != '\n' {
            // All of them have four digits at the most.
            true => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => out.push(character),
        }
    }
    out
}

fn is_terminal() -> bool {
    static IS_TERMINAL: OnceLock<bool> = OnceLock::new();
    *IS_TERMINAL.get_or_init(|| io::stdout().is_terminal())
}

/// A text from a file as it is printed on standard output: a program gets it as it is, a terminal escaped.
pub(crate) fn printed(text: &str) -> Cow<'_, str> {
    if is_terminal() { visible(text) } else { text.into() }
}

/// The name of a file as it is printed on standard output: a program gets its bytes, a terminal escapes.
pub(crate) fn printed_name(name: &OsStr) -> Cow<'_, [u8]> {
    match is_terminal() {
        true => visible(&name.to_string_lossy()).into_owned().into_bytes().into(),
        false => name.as_encoded_bytes().into(),
    }
}

/// Prints a line to standard error, and one line only. A line that cannot be written is not an error.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}", visible(&line.to_string()));
}

/// Prints a JSON value to standard error, on a line.
pub(crate) fn note_json(value: &serde_json::Value) {
    let _ = writeln!(io::stderr(), "{}", visible_json(&value.to_string()));
}

/// Prints a JSON value and a newline to standard output.
pub(crate) fn print_json(value: &serde_json::Value) -> io::Result<()> {
    let mut out = stdout();
    if is_terminal() {
        return writeln!(out, "{}", visible_json(&serde_json::to_string_pretty(value)?));
    }
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)
}

/// Prints lines of a name and a value, values aligned.
pub(crate) fn print_pairs(pairs: &[(&str, String)]) -> io::Result<()> {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    let mut out = stdout();
    pairs.iter().try_for_each(|(name, value)| writeln!(out, "{name:width$}{}", printed(value)))
}

/// Prints a table: the first column flush left, the others flush right unless `left` says otherwise.
pub(crate) fn print_table(head: &[&str], rows: &[Vec<String>], left: &[usize]) -> io::Result<()> {
    let rows: Vec<Vec<Cow<'_, str>>> =
        rows.iter().map(|row| row.iter().map(|cell| printed(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        cells.chain([head[column].width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut out = stdout();
    let head: Vec<Cow<'_, str>> = head.iter().map(|&name| name.into()).collect();
    for row in [&head].into_iter().chain(&rows) {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            if column > 0 {
                line.push_str("  ");
            }
            // Chinese characters take two columns each.
            let blank = " ".repeat(width - cell.width());
            if column == 0 || left.contains(&column) {
                line.extend([cell, &*blank]);
            } else {
                line.extend([&*blank, cell]);
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deceptive_characters_are_escaped_and_others_are_not() {
        for honest in ["", "a b\tc", "é, 名前, 🦀", "a\\n", "\u{301}"] {
            assert_eq!(visible(honest), honest);
        }
        for (hostile, shown) in [
            ("a\x1b[31m\x07", "a\\u{1b}[31m\\u{7}"),
            ("two\nlines\r", "two\\nlines\\r"),
            ("\u{7f}\u{80}\u{9b}", "\\u{7f}\\u{80}\\u{9b}"),
            ("\u{200b}\u{200f}\u{202a}\u{202e}", "\\u{200b}\\u{200f}\\u{202a}\\u{202e}"),
            ("\u{2028}\u{2029}\u{2060}\u{2064}", "\\u{2028}\\u{2029}\\u{2060}\\u{2064}"),
            ("\u{2066}\u{2069}\u{feff}\u{61c}", "\\u{2066}\\u{2069}\\u{feff}\\u{61c}"),
        ] {
            assert_eq!(visible(hostile), shown);
        }
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!({ "name": "a\u{7f}\u{202e}\u{200b}\u{1b}é", "more": [1, "x\ny"] });
        let text = visible_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!text.contains(|c| is_deceptive(c) && c != '\n'), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn numbers_look_as_people_expect() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(239_626_460 / 8 + 1), "28.57 MiB");
        assert_eq!(decimal_bytes(239_626_460 / 8 + 1), "29.95 MB");
        assert_eq!((decimal_bytes(999), decimal_bytes(1000)), ("999 B".into(), "1.00 kB".into()));
        for (value, text) in [
            (0.0, "0"),
            (1e-18, "1e-18"),
            (1.2345e-9, "1.23e-9"),
            (1e-5, "1e-5"),
            (9.994e-5, "9.99e-5"),
            (9.9999e-5, "0.01%"),
            (1e-4, "0.01%"),
            (0.001_001, "0.1%"),
            (0.009_999, "1%"),
            (0.010_039, "1%"),
            (0.123_45, "12.3%"),
            (0.999_9, "100%"),
            (1.0, "100%"),
        ] {
            assert_eq!(rate(value), text);
        }
        assert_eq!(
            (short(9.585_059), short(38.34), short(1_234_567.0)),
            ("9.59".into(), "38.3".into(), "1,234,567".into())
        );
        assert_eq!((counted(0, "key"), counted(1, "key")), ("0 keys".into(), "1 key".into()));
        assert_eq!(counted(1000, "key"), "1,000 keys");
    }
}
