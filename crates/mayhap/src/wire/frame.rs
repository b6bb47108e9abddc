//! The header, and the frame around a payload.

use alloc::vec::Vec;
use core::ops::BitOr;

use super::{Fields, checksum};
use crate::bits::Bytes;
use crate::error::DecodeError;
use crate::hash::{Hashing, HashingProblem, Secret, StoredHashing};
use crate::narrow::{low_u64, small_len};
use crate::probing::Probing;

/// Header, payload and sections start on multiples of this, so that a map can start there too.
pub const PAGE: usize = 4096;

/// No header is longer: parameters and the list of sections are small. Checked before it is read.
pub const MAX_HEADER: usize = 1 << 20;

/// The section with a file's name and notes; every family carries it.
pub const METADATA: u32 = 1;

/// The section with the digests of keys that the filter denies; for every family that is not exact.
pub const EXCEPTIONS: u32 = 2;

/// The section with the areas of a filter of many sets; for the families that have them.
pub const LABELS: u32 = 3;

/// The section with what another program's file has beside its filter.
pub const PEER_DATA: u32 = 4;

/// The section with [how keys were made](crate::key_rules); every family carries it.
pub const KEY_RULES: u32 = 5;

const MAGIC: [u8; 4] = *b"MYHP";
const FORMAT: u16 = 1;

/// Where the parameters start.
const FIXED: usize = 96;
const SECTION: usize = 32;
/// The header's own checksum, in its last bytes.
const SUM: usize = 8;

/// Where the flags stand.
const FLAGS_AT: usize = 8;

/// What is out of the ordinary about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The number of insert calls is unknown: the filter was merged or intersected.
    pub const UNCOUNTED: Self = Self(1);
    /// A writer is at work in the payload, or died there: counts and payload checksum are void.
    pub const WRITING: Self = Self(2);
    /// There is no payload checksum: the payload was updated in place. The counts are right.
    pub const UNSUMMED: Self = Self(4);

    const KNOWN: u32 = 7;

    /// Whether all of these are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A stretch of the file with its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// From the start of the file; a multiple of [`PAGE`].
    pub offset: u64,
    /// In bytes.
    pub length: u64,
    /// xxh3-64 of the bytes.
    pub checksum: u64,
}

impl Extent {
    /// Its end, or `None` beyond 2^64.
    fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.length)
    }

    /// The first page behind it; at the end of the number range if there is none.
    pub(super) fn end_page(&self) -> u64 {
        self.end().and_then(|end| end.checked_next_multiple_of(PAGE as u64)).unwrap_or(u64::MAX)
    }

    /// These bytes, which stand there, have its checksum.
    ///
    /// # Errors
    /// [`DecodeError::Checksum`] with the name of the part.
    pub fn verify(&self, field: &'static str, bytes: &[u8]) -> Result<(), DecodeError> {
        let (stored, computed) = (self.checksum, checksum(bytes));
        if stored == computed { Ok(()) } else { Err(DecodeError::Checksum { field, stored, computed }) }
    }

    fn range(&self) -> Option<core::ops::Range<usize>> {
        Some(usize::try_from(self.offset).ok()?..usize::try_from(self.end()?).ok()?)
    }
}

/// Everything that the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The family's id.
    pub family: u16,
    /// What is out of the ordinary.
    pub flags: Flags,
    /// The hash function and its seed.
    pub hashing: StoredHashing,
    /// The id of the probing rule.
    pub probing: u8,
    /// Insert calls, if known.
    pub inserted: Option<u64>,
    /// Of an intersection, how many keys it probably holds and one more, or the highest number if that is not known; 0 of
    /// any other filter.
    pub intersection: u64,
    /// Set bits or occupied cells, if known.
    pub ones: Option<u64>,
    /// The family's parameters.
    pub params: Vec<u8>,
    /// Where the payload is.
    pub payload: Extent,
    /// Where the sections are, with their ids.
    pub sections: Vec<(u32, Extent)>,
}

impl Header {
    /// Positions are found by one of these rules.
    ///
    /// # Errors
    /// [`DecodeError::Probing`] if they are not.
    pub fn must_probe_by(&self, rules: &[Probing]) -> Result<(), DecodeError> {
        let found = self.probing;
        if rules.iter().any(|rule| rule.id() == found) { Ok(()) } else { Err(DecodeError::Probing { found }) }
    }

    /// Keys are hashed, and not integers that stand for themselves or hashed as by another program.
    ///
    /// # Errors
    /// [`DecodeError::Hashing`] if they are not.
    pub fn must_be_hashed(&self, hashing: Hashing) -> Result<(), DecodeError> {
        let stored = self.hashing;
        if hashing.is_our_own() {
            return Ok(());
        }
        Err(DecodeError::Hashing { scheme: stored.scheme, version: stored.version })
    }

    /// Keys are integers that stand for themselves.
    ///
    /// # Errors
    /// [`DecodeError::Hashing`] if they are not.
    pub fn must_be_integers(&self, hashing: Hashing) -> Result<(), DecodeError> {
        let stored = self.hashing;
        if hashing == Hashing::Integer {
            return Ok(());
        }
        Err(DecodeError::Hashing { scheme: stored.scheme, version: stored.version })
    }

    /// The length of a header with so many bytes of parameters and so many sections.
    pub(super) fn length_for(params: usize, sections: usize) -> usize {
        (FIXED + params + sections * SECTION + SUM).next_multiple_of(PAGE)
    }

    /// How many bytes the header takes, from the first bytes of a file: read so many, then decode.
    ///
    /// # Errors
    /// [`DecodeError`] if these are not the first bytes of a mayhap file that this version reads.
    pub fn length(start: &[u8]) -> Result<usize, DecodeError> {
        let mut fields = Fields::new(start);
        let found = fields.bytes("magic")?;
        if found != MAGIC {
            return Err(DecodeError::Magic { found });
        }
        let found = fields.u16("format version")?;
        if found != FORMAT {
            return Err(DecodeError::Version { found });
        }
        fields.bytes::<34>("header")?;
        let length = fields.u32("header length")? as usize;
        if length == 0 || !length.is_multiple_of(PAGE) || length > MAX_HEADER {
            return Err(DecodeError::Value { field: "header length", found: length as u64 });
        }
        Ok(length)
    }

    /// Decodes and checks a header. `start` must hold all of it; `total` is the length of the file.
    ///
    /// # Errors
    /// [`DecodeError`]; nothing has been allocated that the bytes at hand do not pay for.
    pub fn decode(start: &[u8], total: u64) -> Result<Self, DecodeError> {
        let length = Self::length(start)?;
        let header = start.get(..length).ok_or(DecodeError::Truncated {
            field: "header",
            needed: length as u64,
            available: start.len() as u64,
        })?;
        let (body, stored) = header.split_last_chunk::<SUM>().expect("a header is at least a page");
        let (stored, computed) = (u64::from_le_bytes(*stored), checksum(body));
        if stored != computed {
            return Err(DecodeError::Checksum { field: "header", stored, computed });
        }

        let mut fields = Fields::new(body);
        fields.bytes::<6>("magic")?;
        let family = fields.u16("family")?;
        let flags = fields.u32("flags")?;
        if flags & !Flags::KNOWN != 0 {
            return Err(DecodeError::Flags { found: flags & !Flags::KNOWN });
        }
        let flags = Flags(flags);
        let (scheme, version) = (fields.u8("hashing")?, fields.u8("hashing version")?);
        let probing = fields.u8("probing")?;
        if fields.u8("reserved byte")? != 0 {
            return Err(DecodeError::Padding { field: "reserved byte" });
        }
        let (seed, key_id) = (fields.u128("seed")?, fields.u64("key id")?);
        let hashing = StoredHashing { scheme, version, seed, key_id };
        fields.u32("header length")?;
        let params = fields.u32("length of the parameters")? as usize;
        let sections = fields.u32("number of sections")? as usize;
        fields.zero_u32("reserved word")?;
        let payload = extent(&mut fields)?;
        let (inserted, ones) = (fields.u64("insert calls")?, fields.u64("set bits")?);

        // Both fit 32 bits, so the product fits 64; the header's length has been checked already.
        let needed = FIXED as u64 + params as u64 + sections as u64 * SECTION as u64 + SUM as u64;
        if needed.next_multiple_of(PAGE as u64) != length as u64 {
            return Err(DecodeError::Length { field: "header", expected: needed, found: length as u64 });
        }
        let (params, mut rest) = fields.rest().split_at(params);
        let mut directory = Vec::with_capacity(sections);
        for _ in 0..sections {
            let mut fields = Fields::new(rest);
            let id = fields.u32("section id")?;
            fields.zero_u32("section padding")?;
            directory.push((id, extent(&mut fields)?));
            rest = fields.rest();
        }
        if rest.iter().any(|&byte| byte != 0) {
            return Err(DecodeError::Padding { field: "end of the header" });
        }

        let void = flags.contains(Flags::WRITING);
        let header = Self {
            family,
            flags,
            hashing,
            probing,
            inserted: (!void && !flags.contains(Flags::UNCOUNTED)).then_some(inserted),
            intersection: match flags.contains(Flags::UNCOUNTED) {
                // A writer that died may have inserted keys.
                true if void && inserted > 0 => u64::MAX,
                true => inserted,
                false => 0,
            },
            ones: (!void).then_some(ones),
            params: params.to_vec(),
            payload,
            sections: directory,
        };
        header.check_layout(length as u64, total)?;
        Ok(header)
    }

    /// The layout is canonical: payload and sections follow each other without gaps beyond a page,
    /// and fill the file to its end. So no two parts overlap and nothing hides between them.
    fn check_layout(&self, header: u64, total: u64) -> Result<(), DecodeError> {
        let parts = core::iter::once(("payload", &self.payload))
            .chain(self.sections.iter().map(|(_, extent)| ("section", extent)));
        let mut expected = header;
        let mut end = header;
        for (field, extent) in parts {
            if extent.offset != expected {
                return Err(DecodeError::Value { field: "offset of a part", found: extent.offset });
            }
            // An empty section behind bytes that are missing.
            let (gap, there) = (extent.offset - end, total.saturating_sub(end));
            if there < gap {
                return Err(DecodeError::Truncated {
                    field: "gap before a section",
                    needed: gap,
                    available: there,
                });
            }
            end = extent.end().filter(|&end| end <= total).ok_or(DecodeError::Truncated {
                field,
                needed: extent.length,
                available: total.saturating_sub(extent.offset),
            })?;
            expected = extent.end_page();
        }
        match total - end {
            0 => Ok(()),
            bytes => Err(DecodeError::Trailing { bytes }),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let length = Self::length_for(self.params.len(), self.sections.len());
        let mut out = Vec::with_capacity(length);
        out.extend(MAGIC);
        out.extend(FORMAT.to_le_bytes());
        out.extend(self.family.to_le_bytes());
        out.extend(self.flags.0.to_le_bytes());
        out.extend([self.hashing.scheme, self.hashing.version, self.probing, 0]);
        out.extend(self.hashing.seed.to_le_bytes());
        out.extend(self.hashing.key_id.to_le_bytes());
        for value in [length, self.params.len(), self.sections.len(), 0] {
            out.extend((small_len(value)).to_le_bytes());
        }
        let Extent { offset, length: payload, checksum: sum } = self.payload;
        for value in
            [offset, payload, sum, self.inserted.unwrap_or(self.intersection), self.ones.unwrap_or(0)]
        {
            out.extend(value.to_le_bytes());
        }
        out.extend(&self.params);
        for (id, extent) in &self.sections {
            out.extend(u64::from(*id).to_le_bytes());
            for value in [extent.offset, extent.length, extent.checksum] {
                out.extend(value.to_le_bytes());
            }
        }
        out.resize(length - SUM, 0);
        let sum = checksum(&out);
        out.extend(sum.to_le_bytes());
        out
    }
}

fn extent(fields: &mut Fields<'_>) -> Result<Extent, DecodeError> {
    Ok(Extent {
        offset: fields.u64("offset")?,
        length: fields.u64("length")?,
        checksum: fields.u64("checksum")?,
    })
}

/// Sets the flag [`Flags::WRITING`] in a header that [`Header::decode`] has accepted, and renews its
/// checksum. To be written and synced before the first change to the payload.
pub fn mark_writing(header: &mut [u8]) {
    header[FLAGS_AT] |= Flags::WRITING.0.to_le_bytes()[0];
    let body = header.len() - SUM;
    let sum = checksum(&header[..body]);
    header[body..].copy_from_slice(&sum.to_le_bytes());
}

/// The same in a decoded header, for a file that was read while a writer was at work: counts and payload checksum are void.
pub fn take_as_writing(header: &mut Header) {
    header.flags = header.flags | Flags::WRITING;
    (header.inserted, header.ones) = (None, None);
    if header.intersection > 0 {
        header.intersection = u64::MAX;
    }
}

/// How much of the bytes is looked at before they are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verify {
    /// The header only: what a map of a large file can afford.
    Header,
    /// Everything.
    All,
}

/// A file taken apart: header, payload, sections.
#[derive(Debug)]
pub struct Frame {
    /// The header.
    pub header: Header,
    /// The payload.
    pub payload: Bytes,
    /// The sections with their ids. A family takes out those that it knows.
    pub sections: Vec<(u32, Bytes)>,
    /// Whether the payload's checksum has been compared (or there is none).
    pub verified: bool,
}

impl Frame {
    /// Takes a whole file apart. Nothing is copied.
    ///
    /// # Errors
    /// [`DecodeError`] says what is wrong with it.
    pub fn parse(file: &Bytes, verify: Verify) -> Result<Self, DecodeError> {
        Self::with_header(Header::decode(file.as_slice(), file.len() as u64)?, file, verify)
    }

    /// The same with a header that was decoded before: from a copy of it, since that of a mapped file can change meanwhile.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn with_header(header: Header, file: &Bytes, verify: Verify) -> Result<Self, DecodeError> {
        let part = |extent: &Extent| {
            let missing = DecodeError::Truncated {
                field: "payload",
                needed: extent.length,
                available: file.len() as u64,
            };
            extent.range().and_then(|range| file.part(range)).ok_or(missing)
        };
        let payload = part(&header.payload)?;
        let mut sections = Vec::with_capacity(header.sections.len());
        let mut end = header.payload;
        for (id, extent) in &header.sections {
            // `check_layout` saw that the section starts on the next page, so neither sum overflows.
            let from = end.offset + end.length;
            let gap = Extent { offset: from, length: extent.offset - from, checksum: 0 };
            if part(&gap)?.as_slice().iter().any(|&byte| byte != 0) {
                return Err(DecodeError::Padding { field: "gap before a section" });
            }
            let bytes = part(extent)?;
            extent.verify("section", bytes.as_slice())?;
            sections.push((*id, bytes));
            end = *extent;
        }
        let mut frame = Self { header, payload, sections, verified: false };
        match verify {
            Verify::All => frame.verify_payload()?,
            Verify::Header if frame.has_checksum() => {
                let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
                frame.payload = payload.unverified(frame.header.payload.checksum);
            }
            Verify::Header => {}
        }
        Ok(frame)
    }

    /// Whether there is a checksum of the payload. What was updated in place, or is being updated, has none.
    #[must_use]
    pub fn has_checksum(&self) -> bool {
        let flags = self.header.flags;
        !flags.contains(Flags::WRITING) && !flags.contains(Flags::UNSUMMED)
    }

    /// The hashing that the header names, with the secret if it needs one.
    ///
    /// # Errors
    /// [`DecodeError`] if it is unknown, or the secret is missing or another one.
    pub fn hashing(&self, secret: Option<&Secret>) -> Result<Hashing, DecodeError> {
        let stored = self.header.hashing;
        stored.unlock(secret).map_err(|problem| match problem {
            HashingProblem::Unknown => {
                DecodeError::Hashing { scheme: stored.scheme, version: stored.version }
            }
            HashingProblem::Feature => DecodeError::Feature { feature: "interop" },
            HashingProblem::Seed => DecodeError::Value { field: "seed", found: low_u64(stored.seed) },
            HashingProblem::SecretNeeded => DecodeError::SecretNeeded { key_id: stored.key_id },
            HashingProblem::SecretWrong { given } => {
                DecodeError::SecretWrong { needed: stored.key_id, given }
            }
        })
    }

    /// Takes a section out, if it is there.
    pub fn take_section(&mut self, id: u32) -> Option<Bytes> {
        let place = self.sections.iter().position(|&(found, _)| found == id)?;
        Some(self.sections.remove(place).1)
    }

    /// Nothing is left that the family did not take. An unknown section may change what the
    /// answers mean, so the file is refused; metadata does not.
    ///
    /// # Errors
    /// [`DecodeError::Section`], or [`DecodeError::Excepted`] if it is known elsewhere.
    pub fn end(&self) -> Result<(), DecodeError> {
        match self.sections.iter().find(|(id, _)| *id != METADATA) {
            Some(&(EXCEPTIONS, _)) => Err(DecodeError::Excepted),
            Some(&(found, _)) => Err(DecodeError::Section { found }),
            None => Ok(()),
        }
    }

    /// Reads the whole payload and compares its checksum, if it has one.
    ///
    /// # Errors
    /// [`DecodeError::Checksum`].
    pub fn verify_payload(&mut self) -> Result<(), DecodeError> {
        if self.has_checksum() && !self.verified {
            self.header.payload.verify("payload", self.payload.as_slice())?;
        }
        self.payload.set_verified();
        self.verified = true;
        Ok(())
    }
}
