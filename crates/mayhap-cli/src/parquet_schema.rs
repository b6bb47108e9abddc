//! A look at the schema of a Parquet file before a reader of Parquet believes it: how many columns it claims, and how deep.
//!
//! The reader makes room for as many children as a group claims, and goes down once for each group within a group. Both are
//! numbers of the file. What stands here reads just as much of Thrift's compact form as it takes to see them.

use anyhow::{Context, Result, bail};

/// Deeper than any table that somebody uses, and shallow enough for every stack.
const MOST_DEPTH: usize = 200;

/// Structs within structs, below the elements of the schema: descriptions of types.
const MOST_NESTING: u32 = 16;

/// Refuses a schema whose groups claim more children than there are elements, or that goes too deep.
pub(crate) fn check(metadata: &[u8]) -> Result<()> {
    let mut thrift = Thrift { rest: metadata };
    let mut id = 0;
    while let Some(kind) = thrift.field(&mut id)? {
        if id == 2 && kind == LIST {
            return check_elements(&mut thrift);
        }
        thrift.skip(kind, MOST_NESTING)?;
    }
    Ok(())
}

fn check_elements(thrift: &mut Thrift<'_>) -> Result<()> {
    let (elements, kind) = thrift.list()?;
    if kind != STRUCT {
        bail!("its schema is no list of elements");
    }
    // The children that each group on the way down still waits for.
    let mut waiting: Vec<u64> = Vec::new();
    for _ in 0..elements {
        while waiting.pop_if(|children| *children == 0).is_some() {}
        if let Some(children) = waiting.last_mut() {
            *children -= 1;
        }
        let (mut id, mut children) = (0, 0);
        while let Some(kind) = thrift.field(&mut id)? {
            if id == 5 && kind == I32 {
                children = thrift.varint()? / 2;
            } else {
                thrift.skip(kind, MOST_NESTING)?;
            }
        }
        if children > elements {
            bail!("a group of its schema claims {children} columns, and there are {elements}");
        }
        waiting.push(children);
        if waiting.len() > MOST_DEPTH {
            bail!("its schema has more than {MOST_DEPTH} groups within each other");
        }
    }
    Ok(())
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

impl Thrift<'_> {
    fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.rest.split_first().context("its metadata ends too early")?;
        self.rest = rest;
        Ok(byte)
    }

    fn bytes(&mut self, count: u64) -> Result<()> {
        let count = usize::try_from(count).ok();
        self.rest = count.and_then(|count| self.rest.get(count..)).context("its metadata ends too early")?;
        Ok(())
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
            BYTE => self.bytes(1),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.bytes(8),
            BINARY => {
                let length = self.varint()?;
                self.bytes(length)
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
        if kind == TRUE || kind == FALSE { self.bytes(1) } else { self.skip(kind, nesting) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 1, then a schema of groups that each have one child: field 4 is a name, field 5 the number.
    fn nested(groups: u64, children: u64) -> Vec<u8> {
        let mut bytes = vec![0x15, 0x02, 0x19, 0xfc];
        put(&mut bytes, groups);
        for _ in 0..groups {
            bytes.extend([0x48, 0x01, b'g', 0x15]);
            put(&mut bytes, 2 * children);
            bytes.push(0);
        }
        bytes.push(0);
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
    fn schemas_are_refused_that_are_too_deep_or_claim_too_much() {
        assert!(check(&nested(100, 1)).is_ok());
        let error = |metadata: &[u8]| check(metadata).unwrap_err().to_string();
        assert_eq!(error(&nested(30_000, 1)), "its schema has more than 200 groups within each other");
        assert_eq!(
            error(&nested(1, i32::MAX as u64)),
            "a group of its schema claims 2147483647 columns, and there are 1"
        );
        let list = [0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(error(&list), "a list of its metadata claims 4294967295 elements, and 0 bytes are left");
    }

    #[test]
    fn every_cut_is_an_error_or_says_nothing() {
        let whole = nested(3, 1);
        for end in 0..whole.len() {
            let _ = check(&whole[..end]);
        }
    }
}
