//! The metadata at the end of a Parquet file: its columns, and where each row group has the filter of one of them.
//!
//! Reads as much of Thrift's compact protocol as this takes, and skips the rest. Every number here was chosen by the author of the
//! file: no count reserves memory before the bytes for it were seen, and nothing recurses by what a file claims.
//!
//! Fields by their ids in `parquet.thrift` of the Parquet format.

use anyhow::{Context, Result, bail};

/// Deeper than any table in use, and few enough names to join.
const MOST_DEPTH: usize = 200;

/// Structs within structs: descriptions of types, statistics.
const MOST_NESTING: u32 = 16;

/// How much of the columns' names an error shows: a list for people.
const MOST_SHOWN: usize = 4096;

/// The physical type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    Bytes,
    FixedLengthBytes,
}

impl Type {
    fn of(number: i64) -> Result<Self> {
        Ok(match number {
            0 => Self::Boolean,
            1 => Self::Int32,
            2 => Self::Int64,
            3 => Self::Int96,
            4 => Self::Float,
            5 => Self::Double,
            6 => Self::Bytes,
            7 => Self::FixedLengthBytes,
            other => bail!("a column of its schema has the type {other}, and types end at 7"),
        })
    }
}

/// A column: its number among the columns that have values, and their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    number: u64,
    pub(crate) kind: Type,
}

/// The filter of a column in a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// Its length with the header; old writers do not say it.
    pub(crate) bytes: Option<u64>,
}

/// What was found in a schema.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    /// The column that was asked for.
    pub(crate) column: Option<Column>,
    /// The names of all columns, for people.
    pub(crate) names: String,
    columns: u64,
}

/// Looks for the column `wanted`, a path with dots, in the metadata of a file.
pub(crate) fn schema(metadata: &[u8], wanted: Option<&str>) -> Result<Schema> {
    let mut thrift = Thrift { rest: metadata };
    match thrift.find(2, LIST)? {
        true => elements(&mut thrift, wanted),
        false => bail!("its metadata has no schema"),
    }
}

/// Walks the elements of the schema, which stand in the order of a walk over the tree: a group before its children.
fn elements<'a>(thrift: &mut Thrift<'a>, wanted: Option<&str>) -> Result<Schema> {
    let count = thrift.structs()?;
    let mut schema = Schema { column: None, names: String::new(), columns: 0 };
    // The groups on the way down: the name, and the children that are still to come.
    let mut groups: Vec<(&'a str, u64)> = Vec::new();
    for element in 0..count {
        while groups.pop_if(|(_, children)| *children == 0).is_some() {}
        match groups.last_mut() {
            Some((_, children)) => *children -= 1,
            None if element > 0 => bail!("its schema has more elements than the groups claim"),
            None => {}
        }
        let (mut id, mut kind, mut name, mut children) = (0, None, "", 0);
        while let Some(field) = thrift.field(&mut id)? {
            match (id, field) {
                (1, I32) => kind = Some(thrift.number()?),
                (4, BINARY) => name = thrift.text()?,
                (5, I32) => {
                    children = u64::try_from(thrift.number()?).context("a group has less than no columns")?
                }
                _ => thrift.skip(field, MOST_NESTING)?,
            }
        }
        if children > count {
            bail!("a group of its schema claims {children} columns, and there are {count}");
        }
        // The root is a group also in a table without columns.
        if children > 0 || element == 0 {
            groups.push((name, children));
            if groups.len() > MOST_DEPTH {
                bail!("its schema has more than {MOST_DEPTH} groups within each other");
            }
            continue;
        }
        let path = || groups.iter().skip(1).map(|(name, _)| *name).chain([name]);
        if schema.column.is_none() && wanted.is_some_and(|wanted| is_path(wanted, path())) {
            let kind = Type::of(kind.context("a column of its schema has no type")?)?;
            schema.column = Some(Column { number: schema.columns, kind });
        }
        schema.columns += 1;
        show(&mut schema.names, path());
    }
    if groups.iter().any(|(_, children)| *children > 0) {
        bail!("its schema has fewer elements than the groups claim");
    }
    Ok(schema)
}

/// Whether the text is these names, joined by dots.
fn is_path<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> bool {
    let mut rest = Some(text);
    let mut is_first = true;
    for name in names {
        let begin = if is_first { rest } else { rest.and_then(|rest| rest.strip_prefix('.')) };
        rest = begin.and_then(|rest| rest.strip_prefix(name));
        is_first = false;
        if rest.is_none() {
            return false;
        }
    }
    rest == Some("")
}

/// Appends a column's path to the list for people, as long as there is room.
fn show<'a>(names: &mut String, path: impl Iterator<Item = &'a str>) {
    const MORE: &str = ", ...";
    if names.ends_with(MORE) {
        return;
    }
    let before = names.len();
    for (place, name) in path.enumerate() {
        names.push_str(match place {
            0 if before == 0 => "",
            0 => ", ",
            _ => ".",
        });
        names.push_str(name);
        if names.len() > MOST_SHOWN {
            names.truncate(before);
            names.push_str(MORE);
            return;
        }
    }
}

/// Where each row group has its filter of the column: `None` for a row group without one.
pub(crate) fn filters(metadata: &[u8], schema: &Schema, column: Column) -> Result<Vec<Option<Place>>> {
    let mut thrift = Thrift { rest: metadata };
    if !thrift.find(4, LIST)? {
        bail!("its metadata has no row groups");
    }
    let groups = thrift.structs()?;
    let mut places = Vec::new();
    for number in 0..groups {
        let (mut id, mut place) = (0, None);
        while let Some(field) = thrift.field(&mut id)? {
            if (id, field) == (1, LIST) {
                let chunks = thrift.structs()?;
                if chunks != schema.columns {
                    bail!("row group {number} has {chunks} columns, and the schema {}", schema.columns);
                }
                for chunk in 0..chunks {
                    if chunk == column.number {
                        let found = chunk_place(&mut thrift)?;
                        place = Some(found.with_context(|| {
                            format!(
                                "row group {number} has no metadata of the column, which may be encrypted"
                            )
                        })?);
                    } else {
                        thrift.skip(STRUCT, MOST_NESTING)?;
                    }
                }
            } else {
                thrift.skip(field, MOST_NESTING)?;
            }
        }
        places.push(place.with_context(|| format!("row group {number} has no columns"))?);
    }
    Ok(places)
}

/// Of a chunk of a column, what its metadata says of a filter; `None` if it has no metadata.
fn chunk_place(thrift: &mut Thrift<'_>) -> Result<Option<Option<Place>>> {
    let (mut id, mut found) = (0, None);
    while let Some(field) = thrift.field(&mut id)? {
        if (id, field) != (3, STRUCT) {
            thrift.skip(field, MOST_NESTING)?;
            continue;
        }
        let (mut id, mut offset, mut bytes) = (0, None, None);
        while let Some(field) = thrift.field(&mut id)? {
            match (id, field) {
                (14, I64) => offset = Some(thrift.number()?),
                (15, I32) => bytes = Some(thrift.number()?),
                _ => thrift.skip(field, MOST_NESTING)?,
            }
        }
        // As if it had none: a negative offset is how some writers say so.
        let offset = offset.and_then(|offset| u64::try_from(offset).ok());
        let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok());
        found = Some(offset.map(|offset| Place { offset, bytes }));
    }
    Ok(found)
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

struct Thrift<'a> {
    rest: &'a [u8],
}

impl<'a> Thrift<'a> {
    fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.rest.split_first().context("its metadata ends too early")?;
        self.rest = rest;
        Ok(byte)
    }

    fn bytes(&mut self, count: u64) -> Result<&'a [u8]> {
        let parts = usize::try_from(count).ok().and_then(|count| self.rest.split_at_checked(count));
        let (bytes, rest) = parts.context("its metadata ends too early")?;
        self.rest = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<&'a str> {
        let length = self.varint()?;
        str::from_utf8(self.bytes(length)?).context("a name in its metadata is not UTF-8")
    }

    /// A number with a sign, which is its lowest bit.
    fn number(&mut self) -> Result<i64> {
        let bits = self.varint()?;
        Ok((bits >> 1) as i64 ^ -((bits & 1) as i64))
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for place in 0..10 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        bail!("its metadata has a number of more than 64 bits")
    }

    /// Goes on to the field of this id and kind; `false` if the struct ends before.
    fn find(&mut self, wanted: u64, wanted_kind: u8) -> Result<bool> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            if (id, kind) == (wanted, wanted_kind) {
                return Ok(true);
            }
            self.skip(kind, MOST_NESTING)?;
        }
        Ok(false)
    }

    /// How many structs are in a list of them.
    fn structs(&mut self) -> Result<u64> {
        let (count, kind) = self.list()?;
        // Writers may give an empty list any kind.
        if kind != STRUCT && count > 0 {
            bail!("a list of its metadata has elements of the kind {kind}, and structs are due");
        }
        Ok(count)
    }

    /// The kind of the next field, and its id by that of the one before; `None` at the end of a struct.
    fn field(&mut self, id: &mut u64) -> Result<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *id = match byte >> 4 {
            0 => self.varint()? / 2,
            step => id.saturating_add(step.into()),
        };
        Ok(Some(byte & 0x0f))
    }

    /// How many elements, and their kind.
    fn list(&mut self) -> Result<(u64, u8)> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        // Every element takes a byte.
        if count > self.rest.len() as u64 {
            bail!("a list of its metadata claims {count} elements, and {} bytes are left", self.rest.len());
        }
        Ok((count, byte & 0x0f))
    }

    fn skip(&mut self, kind: u8, nesting: u32) -> Result<()> {
        let within = nesting.checked_sub(1).context("its metadata has structs too deep within each other")?;
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.bytes(1).map(drop),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.bytes(8).map(drop),
            BINARY => {
                let length = self.varint()?;
                self.bytes(length).map(drop)
            }
            LIST | SET => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.element(kind, within))
            }
            MAP => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, within)?;
                    self.element(kinds & 0x0f, within)
                })
            }
            STRUCT => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, within)?;
                }
                Ok(())
            }
            kind => bail!("its metadata has a field of the kind {kind}, which there is not"),
        }
    }

    /// In lists and maps a truth value takes a byte.
    fn element(&mut self, kind: u8, nesting: u32) -> Result<()> {
        if kind == TRUE || kind == FALSE { self.bytes(1).map(drop) } else { self.skip(kind, nesting) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 1, then a schema of groups that each have `children`: field 4 is a name, field 5 the number.
    fn nested(groups: u64, children: u64) -> Vec<u8> {
        let mut bytes = vec![0x15, 0x02, 0x19, 0xfc];
        put(&mut bytes, groups + 1);
        for _ in 0..groups {
            bytes.extend([0x48, 0x01, b'g', 0x15]);
            put(&mut bytes, 2 * children);
            bytes.push(0);
        }
        // The column within: INT64.
        bytes.extend([0x15, 0x04, 0x38, 0x01, b'c', 0]);
        // Field 4: one row group of one chunk, whose metadata has fields 14 and 15.
        bytes.extend([0x29, 0x1c, 0x19, 0x1c, 0x3c, 0xe6]);
        put(&mut bytes, 2 * 1000);
        bytes.push(0x15);
        put(&mut bytes, 2 * 64);
        bytes.extend([0, 0, 0, 0]);
        bytes
    }

    fn put(bytes: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }

    #[test]
    fn a_column_and_its_filter_are_found() {
        let metadata = nested(3, 1);
        let schema = schema(&metadata, Some("g.g.c")).unwrap();
        assert_eq!(schema.names, "g.g.c");
        let column = schema.column.unwrap();
        assert_eq!(column, Column { number: 0, kind: Type::Int64 });
        let places = filters(&metadata, &schema, column).unwrap();
        assert_eq!(places, [Some(Place { offset: 1000, bytes: Some(64) })]);
        for wanted in ["", "g", "g.g", "g.g.", "g.g.cc", "g.c", ".g.g.c"] {
            assert_eq!(super::schema(&metadata, Some(wanted)).unwrap().column, None, "{wanted:?}");
        }
    }

    #[test]
    fn schemas_are_refused_that_are_too_deep_or_claim_too_much() {
        assert!(schema(&nested(100, 1), None).is_ok());
        let error = |metadata: &[u8]| schema(metadata, None).unwrap_err().to_string();
        assert_eq!(error(&nested(30_000, 1)), "its schema has more than 200 groups within each other");
        assert_eq!(
            error(&nested(1, i32::MAX as u64)),
            "a group of its schema claims 2147483647 columns, and there are 2"
        );
        assert_eq!(error(&nested(1, 2)), "its schema has fewer elements than the groups claim");
        assert_eq!(error(&nested(2, 0)), "its schema has more elements than the groups claim");
        let list = [0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(error(&list), "a list of its metadata claims 4294967295 elements, and 0 bytes are left");
    }

    /// A long name of a group is not copied for each of its columns.
    #[test]
    fn the_names_for_people_are_bounded() {
        let mut names = String::new();
        for _ in 0..100 {
            show(&mut names, ["n".repeat(1000).as_str(), "c"].into_iter());
        }
        assert!(names.len() < MOST_SHOWN + 10, "{}", names.len());
        assert!(names.ends_with(".c, ..."));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_an_answer_or_an_error() {
        let whole = nested(3, 1);
        let ask = |metadata: &[u8]| {
            let schema = schema(metadata, Some("g.g.c")).ok()?;
            filters(metadata, &schema, schema.column?).ok()
        };
        assert!(ask(&whole).is_some());
        for end in 0..whole.len() - 4 {
            assert_eq!(ask(&whole[..end]), None, "{end}");
        }
        for place in 0..whole.len() {
            for value in 0..=u8::MAX {
                let mut changed = whole.clone();
                changed[place] = value;
                let _ = ask(&changed);
            }
        }
    }
}
