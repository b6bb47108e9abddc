//! How the keys of a file were made from text: its section 5.
//!
//! A filter knows keys as bytes. Its builder may have dropped white space or case, normalised URLs, taken a column:
//! a lookup that does not do the same is answered *no* although the key is in. So the file says it.
//!
//! - The [`Spelling`] is part of the key: every lookup has to spell keys the same way. Spelling rules that a reader does not
//!   know make a file unreadable for it.
//! - The [`Cut`] belongs to the input that the keys came from. It is for information.
//!
//! The library stores and hands out these rules, and refuses to combine filters whose keys are spelled differently. It does not
//! apply them: a key is the bytes that it is given.
//!
//! ```
//! use mayhap::{AnyFilter, Bloom, Summing, encode, with_key_rules};
//! use mayhap::key_rules::{KeyRules, Spelling};
//!
//! let mut hosts = Bloom::new(1000, 0.01)?;
//! hosts.insert("evil.example");
//! let rules = KeyRules { spelling: Spelling { ignore_case: true, ..Spelling::default() }, ..KeyRules::default() };
//! let file = encode(&*with_key_rules(Box::new(hosts), Some(rules.clone())), Summing::Payload).to_vec();
//!
//! let opened = mayhap::open(file.into(), None)?;
//! assert_eq!(opened.key_rules(), Some(&rules));
//! assert!(opened.contains("Evil.Example".to_ascii_lowercase().as_bytes()));
//! # Ok::<(), mayhap::Error>(())
//! ```

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::DecodeError;
use crate::narrow::small_len;
use crate::wire::Fields;

/// What a file says of how its keys were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRules {
    /// How keys are spelled: a lookup has to do the same.
    pub spelling: Spelling,
    /// How they were cut out of records, for information.
    pub cut: Cut,
    /// The file is a state of `mayhap dedup`.
    pub is_state: bool,
    /// Further entries for information, which this version does not know and keeps: number and bytes.
    pub further: Vec<(u16, Box<[u8]>)>,
}

/// How the text of a key becomes its bytes. The steps are taken in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spelling {
    /// One carriage return at the end of the record is dropped.
    pub crlf: bool,
    /// White space around the key is dropped.
    pub trim: bool,
    /// The letters A to Z become a to z.
    pub ignore_case: bool,
    /// What the text stands for.
    pub kind: KeyKind,
    /// The text is a URL, of which the normal form is the key; without these query names, separated by commas.
    pub url: Option<String>,
    /// Whether keys are values of JSON.
    pub json: JsonKeys,
}

/// What the text of a key stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyKind {
    /// Its bytes.
    #[default]
    Bytes,
    /// Hexadecimal digits, two a byte.
    Hex,
    /// An unsigned integer, as 8 little-endian bytes.
    U64,
    /// A signed integer, as 8 little-endian bytes.
    I64,
    /// A signed integer, as 4 little-endian bytes.
    I32,
    /// UTF-8, as UTF-16LE.
    Utf16,
}

impl KeyKind {
    /// All kinds, each at the place of its number in a file.
    pub const ALL: [Self; 6] = [Self::Bytes, Self::Hex, Self::U64, Self::I64, Self::I32, Self::Utf16];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Hex => "hex",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::Utf16 => "utf16",
        }
    }
}

/// Whether keys are values of JSON: a string is its text, any other value its canonical text behind the byte 0xFF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonKeys {
    /// They are plain text.
    #[default]
    None,
    /// They are, and all of them are strings: their texts.
    Strings,
    /// They are, and not all of them are strings.
    Mixed,
}

/// Which part of a record its key was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The text between columns.
    pub delimiter: Option<Box<[u8]>>,
    /// The number of the column, from 1.
    pub field: Option<u32>,
    /// The first record was a header.
    pub header: bool,
    /// The JSON pointer of the value.
    pub pointer: Option<String>,
}

/// Entries with this bit are for information: a reader that does not know one keeps it. Others change what a key means.
const INFORMATION: u16 = 1 << 15;

const CRLF: u16 = 1;
const TRIM: u16 = 2;
const IGNORE_CASE: u16 = 3;
const KIND: u16 = 4;
const URL: u16 = 5;
const JSON: u16 = 6;
const DELIMITER: u16 = INFORMATION | 1;
const FIELD: u16 = INFORMATION | 2;
const HEADER: u16 = INFORMATION | 3;
const POINTER: u16 = INFORMATION | 4;
const STATE: u16 = INFORMATION | 5;

/// The version of the rules by which a URL becomes its normal form.
const URL_RULES: u8 = 1;

impl Spelling {
    /// Whether keys that are spelled by either rule can be in one filter: the rule for all of them, or `None`.
    ///
    /// Strings of JSON are plain keys. Plain keys are no values of JSON that are something else.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Option<Self> {
        use JsonKeys::{Mixed, None as Plain, Strings};
        let json = match (self.json, other.json) {
            (Plain, Plain | Strings) | (Strings, Plain) => Plain,
            (Strings, Strings) => Strings,
            (Mixed, Strings | Mixed) | (Strings, Mixed) => Mixed,
            (Plain, Mixed) | (Mixed, Plain) => return None,
        };
        let (ours, theirs) = (Self { json, ..self.clone() }, Self { json, ..other.clone() });
        (ours == theirs).then_some(ours)
    }

    /// Whether the bytes of a key are those of its text.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        Self { json: JsonKeys::None, ..self.clone() } == Self::default() && self.json != JsonKeys::Mixed
    }
}

impl KeyRules {
    /// The bytes of the section.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Spelling { crlf, trim, ignore_case, kind, url, json } = &self.spelling;
        let Cut { delimiter, field, header, pointer } = &self.cut;
        let mut out = Vec::new();
        let mut put = |id: u16, bytes: &[u8]| {
            out.extend(u32::from(id).to_le_bytes());
            out.extend(small_len(bytes.len()).to_le_bytes());
            out.extend(bytes);
        };
        let flags = [(CRLF, *crlf), (TRIM, *trim), (IGNORE_CASE, *ignore_case)];
        flags.iter().filter(|(_, is_set)| *is_set).for_each(|&(id, _)| put(id, &[]));
        if let Some(number) = KeyKind::ALL.iter().position(|known| known == kind).filter(|&number| number > 0)
        {
            put(KIND, &[small_len(number).to_le_bytes()[0]]);
        }
        if let Some(names) = url {
            put(URL, &[&[URL_RULES], names.as_bytes()].concat());
        }
        match json {
            JsonKeys::None => {}
            JsonKeys::Strings => put(JSON, &[1]),
            JsonKeys::Mixed => put(JSON, &[2]),
        }
        if let Some(delimiter) = delimiter {
            put(DELIMITER, delimiter);
        }
        if let Some(field) = field {
            put(FIELD, &field.to_le_bytes());
        }
        if *header {
            put(HEADER, &[]);
        }
        if let Some(pointer) = pointer {
            put(POINTER, pointer.as_bytes());
        }
        if self.is_state {
            put(STATE, &[]);
        }
        self.further.iter().for_each(|(id, bytes)| put(*id, bytes));
        out
    }

    /// The rules of the bytes of a section.
    ///
    /// # Errors
    /// [`DecodeError::KeyRule`] names a rule of spelling that this version does not know; others say what no writer writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (mut rules, mut fields, mut last) = (Self::default(), Fields::new(bytes), None);
        while !fields.rest().is_empty() {
            let id = fields.u32("key rule")?;
            let id =
                u16::try_from(id).map_err(|_| DecodeError::Value { field: "key rule", found: id.into() })?;
            let length = fields.u32("length of a key rule")? as usize;
            if last.is_some_and(|last| last >= id) {
                return Err(DecodeError::Payload { problem: "key rules do not ascend" });
            }
            last = Some(id);
            let rest = fields.rest();
            let value = rest.get(..length).ok_or(DecodeError::Truncated {
                field: "key rule",
                needed: length as u64,
                available: rest.len() as u64,
            })?;
            fields = Fields::new(&rest[length..]);
            rules.take(id, value)?;
        }
        Ok(rules)
    }

    fn take(&mut self, id: u16, value: &[u8]) -> Result<(), DecodeError> {
        let wrong = || DecodeError::Value { field: "value of a key rule", found: id.into() };
        let text = |bytes: &[u8]| core::str::from_utf8(bytes).map(String::from).map_err(|_| wrong());
        let is_set = || if value.is_empty() { Ok(true) } else { Err(wrong()) };
        let (spelling, cut) = (&mut self.spelling, &mut self.cut);
        match id {
            CRLF => spelling.crlf = is_set()?,
            TRIM => spelling.trim = is_set()?,
            IGNORE_CASE => spelling.ignore_case = is_set()?,
            KIND => {
                let known = |&number: &u8| KeyKind::ALL.get(usize::from(number)).copied();
                let [number] = value else { return Err(wrong()) };
                let kind = known(number).filter(|&kind| kind != KeyKind::Bytes);
                spelling.kind = kind.ok_or_else(wrong)?;
            }
            URL => {
                let Some((&URL_RULES, names)) = value.split_first() else { return Err(wrong()) };
                spelling.url = Some(text(names)?);
            }
            JSON => {
                spelling.json = match value {
                    [1] => JsonKeys::Strings,
                    [2] => JsonKeys::Mixed,
                    _ => return Err(wrong()),
                };
            }
            DELIMITER if !value.is_empty() => cut.delimiter = Some(value.into()),
            FIELD => {
                let number = u32::from_le_bytes(value.try_into().map_err(|_| wrong())?);
                cut.field = Some(number);
            }
            HEADER => cut.header = is_set()?,
            POINTER => cut.pointer = Some(text(value)?),
            STATE => self.is_state = is_set()?,
            DELIMITER => return Err(wrong()),
            _ if id & INFORMATION != 0 => self.further.push((id, value.into())),
            found => return Err(DecodeError::KeyRule { found }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> KeyRules {
        KeyRules {
            spelling: Spelling {
                crlf: true,
                trim: true,
                ignore_case: true,
                kind: KeyKind::Utf16,
                url: Some("gclid,utm_*".into()),
                json: JsonKeys::Mixed,
            },
            cut: Cut {
                delimiter: Some(b"\0,".as_slice().into()),
                field: Some(3),
                header: true,
                pointer: Some("/a/b".into()),
            },
            is_state: true,
            further: Vec::from([(INFORMATION | 77, b"later".as_slice().into())]),
        }
    }

    #[test]
    fn rules_come_back() {
        for rules in [KeyRules::default(), all(), KeyRules { further: Vec::new(), ..all() }] {
            assert_eq!(KeyRules::decode(&rules.encode()), Ok(rules));
        }
        assert!(KeyRules::default().encode().is_empty());
        for kind in KeyKind::ALL {
            let spelling = Spelling { kind, ..Spelling::default() };
            let rules = KeyRules { spelling, ..KeyRules::default() };
            assert_eq!(KeyRules::decode(&rules.encode()), Ok(rules));
        }
    }

    /// These bytes are in `docs/format.md`.
    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let spelling = Spelling { ignore_case: true, kind: KeyKind::U64, ..Spelling::default() };
        let cut = Cut { delimiter: Some(b",".as_slice().into()), field: Some(2), ..Cut::default() };
        let rules = KeyRules { spelling, cut, ..KeyRules::default() };
        #[rustfmt::skip]
        let bytes = [
            3, 0, 0, 0, 0, 0, 0, 0,
            4, 0, 0, 0, 1, 0, 0, 0, 2,
            1, 128, 0, 0, 1, 0, 0, 0, b',',
            2, 128, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0,
        ];
        assert_eq!(rules.encode(), bytes);
    }

    #[test]
    fn what_no_writer_writes_is_refused() {
        let bytes = all().encode();
        for end in 1..bytes.len() {
            // A cut at the end of an entry is the end of the section.
            let cut = KeyRules::decode(&bytes[..end]);
            assert!(cut.is_err() || cut.is_ok_and(|rules| rules.encode() == bytes[..end]), "{end}");
        }
        let entry = |id: u16, value: &[u8]| {
            [&u32::from(id).to_le_bytes()[..], &(value.len() as u32).to_le_bytes(), value].concat()
        };
        for (id, value) in [
            (CRLF, &[1][..]),
            (KIND, &[]),
            (KIND, &[0]),
            (KIND, &[6]),
            (KIND, &[1, 1]),
            (URL, &[]),
            (URL, &[2]),
            (URL, &[1, 255]),
            (JSON, &[0]),
            (JSON, &[3]),
            (DELIMITER, &[]),
            (FIELD, &[1, 0, 0]),
            (POINTER, &[255]),
            (STATE, &[0]),
        ] {
            assert!(KeyRules::decode(&entry(id, value)).is_err(), "{id} {value:?}");
        }
        let unknown = |id| KeyRules::decode(&entry(id, b"x"));
        assert_eq!(unknown(7), Err(DecodeError::KeyRule { found: 7 }));
        assert_eq!(unknown(0), Err(DecodeError::KeyRule { found: 0 }));
        assert!(unknown(INFORMATION | 900).is_ok());
        let twice = [entry(TRIM, &[]), entry(TRIM, &[])].concat();
        let back = [entry(TRIM, &[]), entry(CRLF, &[])].concat();
        assert!(KeyRules::decode(&twice).is_err() && KeyRules::decode(&back).is_err());
        assert!(KeyRules::decode(&[1, 0, 1, 0, 0, 0, 0, 0]).is_err());
    }

    #[test]
    fn spellings_join_where_no_key_changes_its_meaning() {
        let json = |json| Spelling { json, ..Spelling::default() };
        let (plain, strings, mixed) = (json(JsonKeys::None), json(JsonKeys::Strings), json(JsonKeys::Mixed));
        assert_eq!(plain.joined(&strings), Some(plain.clone()));
        assert_eq!(strings.joined(&mixed), Some(mixed.clone()));
        assert_eq!(mixed.joined(&plain), None);
        let other = Spelling { trim: true, ..Spelling::default() };
        assert_eq!(other.joined(&plain), None);
        assert_eq!(other.joined(&other), Some(other.clone()));
        assert!(plain.is_plain() && strings.is_plain() && !mixed.is_plain() && !other.is_plain());
    }
}
