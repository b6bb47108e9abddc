//! From a record to the bytes of its key: column, JSON field, trimming, case, kind, URL.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow, bail};
use mayhap::{AnyFilter, Digest, Hashing, Insertion};
use memchr::memchr_iter;
use memchr::memmem::Finder;
use serde_json::Value;

use crate::except::Excepted;
use crate::input::Chunk;
use crate::json_key::{NOT_A_STRING, put_canonical};
use crate::url_key::UrlRule;

/// The text between columns. A name of its own, since `Vec` on a command line means repetition.
pub(crate) type Delimiter = Vec<u8>;

/// The names and indexes on the way to a JSON field.
pub(crate) type JsonPath = Vec<String>;

/// How the text of a record becomes key bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// The bytes as they are
    #[default]
    Bytes,
    /// Hexadecimal digits, two a byte
    Hex,
    /// A decimal number from 0 to 2^64 - 1, as 8 little-endian bytes
    U64,
    /// A decimal number from -2^63 to 2^63 - 1, as 8 little-endian bytes
    I64,
    /// A decimal number from -2^31 to 2^31 - 1, as 4 little-endian bytes
    I32,
    /// UTF-8 text, as UTF-16LE
    Utf16,
}

/// A column of a record.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// The text between columns.
    between: Finder<'static>,
    /// From 1.
    number: usize,
    /// The start of a further field in quotes, where such a field is an error: what is between its quotes may be anything.
    quoted: Option<Finder<'static>>,
}

impl Column {
    /// Quotes are bytes like others, or an error.
    pub(crate) fn new(between: &[u8], number: usize, takes_quotes: bool) -> Self {
        let quoted = (!takes_quotes).then(|| Finder::new(&[between, b"\""].concat()).into_owned());
        Self { between: Finder::new(between).into_owned(), number, quoted }
    }

    fn of<'a>(&self, record: &'a [u8]) -> Result<&'a [u8]> {
        if let Some(quoted) = &self.quoted
            && (record.first() == Some(&b'"') || quoted.find(record).is_some())
        {
            bail!(
                "a field begins with a quote, as in quoted CSV, which is not read: columns are cut at each delimiter; \
                 --literal-quotes takes quotes as bytes"
            );
        }
        let width = self.between.needle().len();
        let mut start = 0;
        for found in 1..=self.number {
            let end = self.between.find(&record[start..]).map(|offset| start + offset);
            match end {
                Some(end) if found < self.number => start = end + width,
                Some(end) => return Ok(&record[start..end]),
                None if found == self.number => return Ok(&record[start..]),
                None => bail!(
                    "only {found} {}, and the key is field {}",
                    if found == 1 { "field" } else { "fields" },
                    self.number
                ),
            }
        }
        unreachable!("the loop returns at the number at the latest")
    }
}

/// A field of a JSON line.
#[derive(Clone, Debug)]
pub(crate) struct JsonField {
    pub(crate) path: JsonPath,
    /// Values other than strings are told from strings; set if there was one. Without it, each is its text as it stands.
    pub(crate) others: Option<Arc<AtomicBool>>,
}

/// Which part of a record is the key.
#[derive(Debug, Default)]
pub(crate) struct Selector {
    /// Drop one `\r` before the newline.
    pub(crate) crlf: bool,
    pub(crate) column: Option<Column>,
    pub(crate) json: Option<JsonField>,
    pub(crate) trim: bool,
    pub(crate) ignore_case: bool,
    pub(crate) kind: Kind,
    /// The text is a URL and its normal form the key.
    pub(crate) url: Option<UrlRule>,
    /// Keys that must not come.
    pub(crate) excepted: Option<Arc<Excepted>>,
}

/// The keys of some records. Only what does not lie in the record as it is has been copied.
#[derive(Default)]
struct Keys<'a> {
    copied: Vec<u8>,
    /// In the record, or in what was copied.
    places: Vec<Result<&'a [u8], Range<usize>>>,
}

impl Keys<'_> {
    fn slices(&self) -> Vec<&[u8]> {
        let places = self.places.iter();
        places
            .map(|place| place.as_ref().map_or_else(|range| &self.copied[range.clone()], |part| *part))
            .collect()
    }
}

/// Without white space at its ends: that of ASCII, and the ideographic space of Chinese and Japanese texts.
fn trimmed(text: &[u8]) -> &[u8] {
    const IDEOGRAPHIC: &[u8] = "\u{3000}".as_bytes();
    let mut text = text.trim_ascii();
    while let Some(rest) = text.strip_prefix(IDEOGRAPHIC) {
        text = rest.trim_ascii_start();
    }
    while let Some(rest) = text.strip_suffix(IDEOGRAPHIC) {
        text = rest.trim_ascii_end();
    }
    text
}

impl Selector {
    /// Whether a record can be wrong, so that its number is needed for the message.
    pub(crate) fn can_fail(&self) -> bool {
        self.column.is_some() || self.json.is_some() || self.kind != Kind::Bytes
    }

    /// Whether the key is the record.
    fn is_whole_record(&self) -> bool {
        !self.can_fail() && !self.crlf && !self.trim && !self.ignore_case && self.url.is_none()
    }

    /// The key of a record, in the record or in `scratch`.
    pub(crate) fn key<'a>(&self, record: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        Ok(self.part_or_scratch(record, scratch)?.unwrap_or(scratch))
    }

    /// The key of a record: a part of the record, or `None` if it is in `scratch`.
    fn part_or_scratch<'a>(&self, record: &'a [u8], scratch: &mut Vec<u8>) -> Result<Option<&'a [u8]>> {
        let part = self.part(record, scratch)?;
        if let Some(rule) = &self.url
            && let Some(normal) = rule.rewritten(part.unwrap_or(scratch))
        {
            *scratch = normal;
            return Ok(None);
        }
        Ok(part)
    }

    /// The key of a record but for its URL: a part of the record, or `None` if it is in `scratch`.
    fn part<'a>(&self, record: &'a [u8], scratch: &mut Vec<u8>) -> Result<Option<&'a [u8]>> {
        let mut text = record;
        if self.crlf {
            text = text.strip_suffix(b"\r").unwrap_or(text);
        }
        if let Some(column) = &self.column {
            text = column.of(text)?;
        }
        if let Some(field) = &self.json {
            return self.json_key(field, text, scratch);
        }
        if self.kind == Kind::Bytes && !self.ignore_case {
            return Ok(Some(if self.trim { trimmed(text) } else { text }));
        }
        self.convert(text, scratch)
    }

    /// The key of a JSON line, in `scratch`. What is done to text is done to strings only.
    fn json_key<'a>(
        &self,
        field: &JsonField,
        text: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<Option<&'a [u8]>> {
        match (json_field(text, &field.path)?, &field.others) {
            (Value::String(text), _) => self.convert(text.as_bytes(), scratch),
            // A number is one, whether or not it stands in quotes.
            (other, Some(others)) if self.kind == Kind::Bytes => {
                others.store(true, Ordering::Relaxed);
                scratch.clear();
                scratch.push(NOT_A_STRING);
                put_canonical(&other, scratch);
                Ok(None)
            }
            (other, Some(_)) if self.kind == Kind::Utf16 => {
                bail!(
                    "{} is no string, and UTF-16 text is made of strings; --json-raw takes its text",
                    short(&other)
                )
            }
            (other, _) => self.convert(other.to_string().as_bytes(), scratch),
        }
    }

    fn convert<'a>(&self, text: &[u8], scratch: &mut Vec<u8>) -> Result<Option<&'a [u8]>> {
        let text = if self.trim { trimmed(text) } else { text };
        scratch.clear();
        scratch
            .try_reserve(text.len())
            .map_err(|_| anyhow!("no memory for a key of {} bytes", text.len()))?;
        if self.ignore_case && self.kind == Kind::Bytes {
            scratch.extend_from_slice(text);
            scratch.make_ascii_lowercase();
        } else if self.ignore_case {
            convert(self.kind, &text.to_ascii_lowercase(), scratch)?;
        } else {
            convert(self.kind, text, scratch)?;
        }
        Ok(None)
    }

    /// Calls `then` with the keys of all records of a chunk.
    pub(crate) fn with_keys<R>(&self, chunk: &Chunk, then: impl FnOnce(&[&[u8]]) -> R) -> Result<R> {
        let (keys, good) = self.keys(chunk);
        good?;
        Ok(then(&keys.slices()))
    }

    /// The keys of all records of a chunk, or of those before a bad one, and what is wrong with that.
    fn keys<'a>(&self, chunk: &'a Chunk) -> (Keys<'a>, Result<()>) {
        let (mut keys, mut scratch) = (Keys::default(), Vec::new());
        for (index, record) in chunk.records().enumerate() {
            match self.part_or_scratch(record, &mut scratch) {
                Ok(Some(part)) => keys.places.push(Ok(part)),
                Ok(None) => {
                    let start = keys.copied.len();
                    keys.copied.extend_from_slice(&scratch);
                    keys.places.push(Err(start..keys.copied.len()));
                }
                Err(error) => return (keys, Err(error.context(chunk.place(index)))),
            }
        }
        (keys, Ok(()))
    }

    /// Asks a filter for all records of a chunk, or for those before a bad one; appends one answer each.
    pub(crate) fn ask(&self, chunk: &Chunk, filter: &dyn AnyFilter, hits: &mut Vec<bool>) -> Result<()> {
        if is_asked_by_keys(filter) {
            let (keys, good) = self.keys(chunk);
            filter.contains_keys(&keys.slices(), hits);
            return good;
        }
        let mut digests = Vec::new();
        let good = self.digests(chunk, filter.hashing(), &mut digests);
        filter.contains_batch(&digests, hits);
        good
    }

    /// Inserts the keys of all records of a chunk; how many of them were new.
    pub(crate) fn insert(&self, chunk: &Chunk, filter: &mut dyn AnyFilter) -> Result<u64> {
        let mut outcomes = Vec::new();
        self.with_keys(chunk, |keys| filter.insert_keys(keys, &mut outcomes))??;
        Ok(outcomes.iter().filter(|&&outcome| outcome == Insertion::New).count() as u64)
    }

    /// The digests of all records of a chunk, or of those before a bad one.
    pub(crate) fn digests(&self, chunk: &Chunk, hashing: Hashing, out: &mut Vec<Digest>) -> Result<()> {
        out.clear();
        if self.is_whole_record() {
            out.extend(chunk.records().map(|record| hashing.digest(record)));
        } else {
            let mut scratch = Vec::new();
            for (index, record) in chunk.records().enumerate() {
                let key = self.key(record, &mut scratch).map_err(|e| e.context(chunk.place(index)))?;
                out.push(hashing.digest(key));
            }
        }
        self.excepted.as_ref().map_or(Ok(()), |excepted| excepted.refuse(chunk, out))
    }
}

impl Selector {
    /// Where the records of a chunk end, with their terminators, and the digests of all but the first ones.
    pub(crate) fn split(
        &self,
        chunk: &Chunk,
        skipped: usize,
        hashing: Hashing,
        ends: &mut Vec<usize>,
        digests: &mut Vec<Digest>,
    ) -> Result<()> {
        ends.clear();
        digests.clear();
        let bytes = chunk.bytes.as_slice();
        let whole = self.is_whole_record();
        let mut scratch = Vec::new();
        let mut hash = |index: usize, record: &[u8]| {
            if index >= skipped {
                let key = self.key(record, &mut scratch).map_err(|e| e.context(chunk.place(index)))?;
                digests.push(hashing.digest(key));
            }
            anyhow::Ok(())
        };
        let mut start = chunk.start();
        for end in memchr_iter(chunk.terminator, bytes) {
            if !whole {
                hash(ends.len(), &bytes[start..end])?;
            }
            start = end + 1;
            ends.push(start);
        }
        if start < bytes.len() {
            if !whole {
                hash(ends.len(), &bytes[start..])?;
            }
            ends.push(bytes.len());
        }
        if whole {
            // In a loop of its own, which has nothing else to do.
            let mut start = skipped.checked_sub(1).map_or(chunk.start(), |last| ends[last]);
            digests.extend(ends[skipped..].iter().map(|&end| {
                let record = &bytes[start..end];
                start = end;
                hashing.digest(record.strip_suffix(&[chunk.terminator]).unwrap_or(record))
            }));
        }
        Ok(())
    }
}

/// Whether digests say too little for a filter: another program's, which hashes to more bits.
pub(crate) fn is_asked_by_keys(filter: &dyn AnyFilter) -> bool {
    matches!(filter.hashing(), Hashing::Foreign(hash) if hash.is_wide())
}

/// A field of a JSON line.
fn json_field(record: &[u8], path: &[String]) -> Result<Value> {
    must_not_pose_as_number(record)?;
    let mut value: Value = serde_json::from_slice(record).map_err(|e| anyhow!("not JSON: {e}"))?;
    for name in path {
        let found = match &mut value {
            Value::Object(fields) => fields.get_mut(name),
            Value::Array(values) => name.parse::<usize>().ok().and_then(|index| values.get_mut(index)),
            _ => None,
        };
        let found = found.map(Value::take);
        value = found.ok_or_else(|| anyhow!("there is no field {name:?} on the way {}", pointer(path)))?;
    }
    Ok(value)
}

/// The start of a value that is no string, for a message.
fn short(value: &Value) -> String {
    const SHOWN: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Refuses an object that the parser would take for one of its numbers, which it hands on as objects with a member of this
/// name.
fn must_not_pose_as_number(record: &[u8]) -> Result<()> {
    const PRIVATE: &[u8] = b"$serde_json::private::";
    let is_private = |name: &str| name.as_bytes().starts_with(PRIVATE);
    // Any letter of it may stand there as an escape.
    if memchr::memmem::find(record, PRIVATE).is_none() && memchr::memmem::find(record, b"\\u").is_none() {
        return Ok(());
    }
    let mut rest = record;
    while let Some((start, end)) = next_string(rest) {
        let (string, behind) = (&rest[start..end], &rest[end..]);
        if behind.trim_ascii_start().starts_with(b":")
            && serde_json::from_slice::<String>(string).is_ok_and(|name| is_private(&name))
        {
            bail!("a member whose name begins with $serde_json::private:: cannot be read");
        }
        rest = behind;
    }
    Ok(())
}

/// Where the next string of a JSON text starts and ends, with its quotes.
fn next_string(text: &[u8]) -> Option<(usize, usize)> {
    let start = memchr::memchr(b'"', text)?;
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some((start, at + 1));
        }
        at += 2;
    }
}

/// The JSON pointer of a path (RFC 6901).
pub(crate) fn pointer(path: &[String]) -> String {
    path.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
}

/// `/user/id` (RFC 6901) or `.user.id`.
pub(crate) fn json_path(text: &str) -> Result<JsonPath, String> {
    match text.chars().next() {
        None => Ok(Vec::new()),
        Some('/') => {
            let unescape = |name: &str| name.replace("~1", "/").replace("~0", "~");
            Ok(text[1..].split('/').map(unescape).collect())
        }
        Some('.') => Ok(text[1..].split('.').filter(|name| !name.is_empty()).map(String::from).collect()),
        Some(_) => Err(format!("{text:?} is no JSON pointer, such as /user/id")),
    }
}

/// The text between columns: one or more bytes, with `\t`, `\0`, `\\` and `\xHH`.
pub(crate) fn delimiter(text: &str) -> Result<Delimiter, String> {
    let wrong = || format!("{text:?} is no delimiter; give a character, \\t, \\0, \\\\ or \\xHH");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'\\' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let (byte, taken) = match after {
            [b't', ..] => (b'\t', 1),
            [b'0', ..] => (0, 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', high, low, ..] => {
                (digit(*high).zip(digit(*low)).map(|(h, l)| h << 4 | l).ok_or_else(wrong)?, 3)
            }
            _ => return Err(wrong()),
        };
        bytes.push(byte);
        rest = &after[taken..];
    }
    if bytes.is_empty() { Err(wrong()) } else { Ok(bytes) }
}

fn digit(hex: u8) -> Option<u8> {
    char::from(hex).to_digit(16).map(|value| value as u8)
}

fn convert(kind: Kind, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match kind {
        Kind::Bytes => out.extend_from_slice(text),
        Kind::Hex => {
            if text.len() % 2 == 1 {
                bail!("{:?} is not hexadecimal: its number of digits is odd", shown(text));
            }
            for pair in text.chunks_exact(2) {
                let byte = digit(pair[0]).zip(digit(pair[1])).map(|(h, l)| h << 4 | l);
                out.push(byte.ok_or_else(|| anyhow!("{:?} is not hexadecimal", shown(text)))?);
            }
        }
        Kind::U64 => out.extend(number::<u64>(text, "from 0 to 18446744073709551615")?.to_le_bytes()),
        Kind::I64 => {
            out.extend(number::<i64>(text, "from -9223372036854775808 to 9223372036854775807")?.to_le_bytes())
        }
        Kind::I32 => out.extend(number::<i32>(text, "from -2147483648 to 2147483647")?.to_le_bytes()),
        Kind::Utf16 => {
            let text = std::str::from_utf8(text).map_err(|_| anyhow!("{:?} is not UTF-8", shown(text)))?;
            out.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        }
    }
    Ok(())
}

/// A decimal number of a record.
pub(crate) fn number<T: std::str::FromStr>(text: &[u8], range: &str) -> Result<T> {
    std::str::from_utf8(text)
        .ok()
        // Rust accepts "+5"; two texts for one number would be a surprise.
        .filter(|text| !text.starts_with('+'))
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| anyhow!("{:?} is not a whole number {range}", shown(text)))
}

/// The beginning of a record, for a message.
fn shown(text: &[u8]) -> String {
    const MOST: usize = 40;
    let start = String::from_utf8_lossy(&text[..text.len().min(MOST)]);
    if text.len() > MOST { format!("{start}…") } else { start.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(selector: &Selector, record: &str) -> Result<Vec<u8>, String> {
        let mut scratch = Vec::new();
        selector.key(record.as_bytes(), &mut scratch).map(<[u8]>::to_vec).map_err(|e| e.to_string())
    }

    fn column_of(between: &str, number: usize) -> Selector {
        let column = Column::new(&delimiter(between).unwrap(), number, false);
        Selector { column: Some(column), ..Selector::default() }
    }

    #[test]
    fn columns_are_counted_from_one() {
        assert_eq!(key(&column_of(",", 1), "a,b,c"), Ok(b"a".into()));
        assert_eq!(key(&column_of(",", 2), "a,b,c"), Ok(b"b".into()));
        assert_eq!(key(&column_of(",", 3), "a,b,c"), Ok(b"c".into()));
        assert_eq!(key(&column_of(",", 2), "a,,c"), Ok(b"".into()));
        assert_eq!(key(&column_of("\\t", 2), "a\tb"), Ok(b"b".into()));
        assert_eq!(key(&column_of("::", 2), "a::b::c"), Ok(b"b".into()));
        assert_eq!(key(&column_of(",", 4), "a,b,c"), Err("only 3 fields, and the key is field 4".into()));
    }

    #[test]
    fn json_fields_are_text_or_json() {
        let at = |path: &str| {
            let json = Some(JsonField { path: json_path(path).unwrap(), others: None });
            Selector { json, ..Selector::default() }
        };
        let record =
            r#"{"user":{"id":7,"name":"a\nb"},"list":[1,[2, 3]],"big":12345678901234567890123,"a/b":1}"#;
        assert_eq!(key(&at("/user/id"), record), Ok(b"7".into()));
        assert_eq!(key(&at(".user.name"), record), Ok(b"a\nb".into()));
        assert_eq!(key(&at("/list/1"), record), Ok(b"[2,3]".into()));
        assert_eq!(key(&at("/big"), record), Ok(b"12345678901234567890123".into()));
        assert_eq!(key(&at("/a~1b"), record), Ok(b"1".into()));
        assert!(key(&at("/user/x"), record).unwrap_err().contains("no field \"x\""));
        assert!(key(&at("/user"), "{").unwrap_err().contains("not JSON"));
        assert!(json_path("user").is_err());
    }

    #[test]
    fn values_are_told_from_strings() {
        let others = Arc::new(AtomicBool::default());
        let json = |kind| {
            let json = JsonField { path: json_path("/v").unwrap(), others: Some(others.clone()) };
            Selector { json: Some(json), kind, trim: true, ignore_case: true, ..Selector::default() }
        };
        assert_eq!(key(&json(Kind::Bytes), r#"{"v":" Null "}"#), Ok(b"null".into()));
        assert_eq!(key(&json(Kind::U64), r#"{"v":7}"#), key(&json(Kind::U64), r#"{"v":"7"}"#));
        assert!(!others.load(Ordering::Relaxed));
        assert_eq!(key(&json(Kind::Bytes), r#"{"v":null}"#), Ok(b"\xffnull".into()));
        assert_eq!(key(&json(Kind::Bytes), r#"{"v":1.50}"#), Ok(b"\xff15e-1".into()));
        assert_eq!(key(&json(Kind::Bytes), r#"{"v":{"B":1}}"#), Ok(b"\xff{\"B\":1e0}".into()));
        assert!(others.load(Ordering::Relaxed));
    }

    #[test]
    fn quoted_fields_are_refused_or_taken_as_they_are() {
        for record in ["\"a,b\",c", "1,\"Smith, J\"", "1,2,\"a"] {
            assert!(key(&column_of(",", 1), record).unwrap_err().contains("--literal-quotes"), "{record}");
            let literal = Selector { column: Some(Column::new(b",", 1, true)), ..Selector::default() };
            assert!(key(&literal, record).is_ok());
        }
        assert_eq!(key(&column_of(",", 2), "5\" disk,3.5\",x"), Ok(b"3.5\"".into()));
    }

    #[test]
    fn kinds_have_their_bytes_and_their_limits() {
        let kind = |kind| Selector { kind, ..Selector::default() };
        assert_eq!(key(&kind(Kind::Hex), "00fFa0"), Ok(vec![0, 255, 160]));
        assert_eq!(key(&kind(Kind::U64), "258"), Ok(vec![2, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!(key(&kind(Kind::I64), "-1"), Ok(vec![255; 8]));
        assert_eq!(key(&kind(Kind::I32), "-2"), Ok(vec![254, 255, 255, 255]));
        assert_eq!(key(&kind(Kind::Utf16), "é"), Ok(vec![0xe9, 0]));
        for (k, text) in [
            (Kind::Hex, "abc"),
            (Kind::Hex, "zz"),
            (Kind::U64, "-1"),
            (Kind::U64, ""),
            (Kind::U64, "+1"),
            (Kind::U64, "18446744073709551616"),
            (Kind::I32, "2147483648"),
            (Kind::I64, "1.0"),
        ] {
            assert!(key(&kind(k), text).is_err(), "{text} as {k:?}");
        }
        let mut scratch = Vec::new();
        assert!(kind(Kind::Utf16).key(b"\xff", &mut scratch).is_err());
    }

    #[test]
    fn trimming_case_and_carriage_returns() {
        let selector = Selector { crlf: true, trim: true, ignore_case: true, ..Selector::default() };
        assert_eq!(key(&selector, " Straße \r"), Ok("straße".into()));
        let selector = Selector { crlf: true, ..Selector::default() };
        assert_eq!(key(&selector, "a\r\r"), Ok(b"a\r".into()));
        assert_eq!(key(&Selector::default(), "a\r"), Ok(b"a\r".into()));
        let selector = Selector { trim: true, ..Selector::default() };
        assert_eq!(key(&selector, "   "), Ok(b"".into()));
        assert_eq!(key(&selector, "\t x y\n "), Ok(b"x y".into()));
        // The blank of Chinese texts, at both ends and not within.
        assert_eq!(key(&selector, "\u{3000} 北\u{3000}京\u{3000}\t"), Ok("北\u{3000}京".into()));
        assert_eq!(key(&selector, "\u{3000}\u{3000}"), Ok(b"".into()));
    }

    #[test]
    fn a_url_is_normalised_wherever_the_key_stands() {
        let url = || Some(UrlRule::default());
        let (text, normal) = ("HTTP://A.org:80/./b#c", Ok(b"http://a.org/b".to_vec()));
        assert_eq!(key(&Selector { url: url(), ..Selector::default() }, text), normal);
        assert_eq!(key(&Selector { url: url(), ..column_of(",", 2) }, &format!("x,{text},y")), normal);
        let json = Some(JsonField { path: json_path("/u").unwrap(), others: None });
        let record = format!("{{\"u\":\"{text}\"}}");
        assert_eq!(key(&Selector { url: url(), json, ..Selector::default() }, &record), normal);
        let selector = Selector { url: url(), ignore_case: true, ..Selector::default() };
        assert_eq!(key(&selector, "http://a.org/B?d&C"), Ok(b"http://a.org/b?c&d".into()));
        assert_eq!(key(&selector, "No URL"), Ok(b"no url".into()));
        let selector = Selector { url: url(), crlf: true, ..Selector::default() };
        assert_eq!(key(&selector, "no URL\r"), Ok(b"no URL".into()));
        assert!(!selector.is_whole_record() && !selector.can_fail());
    }
}
