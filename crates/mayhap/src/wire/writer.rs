//! Puts a file together without copying the payload.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use xxhash_rust::xxh3::Xxh3;

use super::checksum;
use super::frame::{Extent, Flags, Header, PAGE};
use crate::bits::Words;
use crate::error::DecodeError;
use crate::hash::{Hashing, StoredHashing};
use crate::probing::Probing;

/// Whether the payload is read for its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Summing {
    /// Yes.
    Payload,
    /// No: the header says that there is none. For a large file that was updated in place.
    Skip,
}

/// What a family writes its filter to.
#[derive(Debug)]
pub struct Writer<'a> {
    family: u16,
    hashing: StoredHashing,
    probing: Probing,
    inserted: Option<u64>,
    intersection: u64,
    ones: u64,
    params: Params,
    payload: Vec<Cow<'a, [u8]>>,
    sections: Vec<(u32, Cow<'a, [u8]>)>,
    /// Words from which the payload is made, and which may come from bytes that are not verified.
    sources: Vec<&'a Words>,
    /// Whether only those are wanted, and no payload.
    only_sources: bool,
}

/// A family's parameters, field after field, little-endian.
#[derive(Debug, Default)]
pub struct Params(Vec<u8>);

impl Params {
    /// Appends a number.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends a number.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends a number.
    pub fn f64(&mut self, value: f64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }
}

impl<'a> Writer<'a> {
    pub(crate) fn new(family: u16, hashing: StoredHashing) -> Self {
        Self {
            family,
            hashing,
            probing: Probing::NONE,
            inserted: None,
            intersection: 0,
            ones: 0,
            params: Params::default(),
            payload: Vec::new(),
            sections: Vec::new(),
            sources: Vec::new(),
            only_sources: false,
        }
    }

    /// One that writes nothing, and [verifies](Writer::verify_sources) what it is given.
    pub(crate) fn of_sources() -> Self {
        Self { only_sources: true, ..Self::new(0, Hashing::default().stored()) }
    }

    /// The rule from digest to positions.
    pub fn probing(&mut self, probing: Probing) {
        self.probing = probing;
    }

    /// Insert calls, if they are known.
    pub fn inserted(&mut self, inserted: Option<u64>) {
        self.inserted = inserted;
    }

    /// Set bits, or occupied cells.
    pub fn ones(&mut self, ones: u64) {
        self.ones = ones;
    }

    /// Insert calls, if they are known, and set bits (or occupied cells).
    pub fn counts(&mut self, inserted: Option<u64>, ones: u64) {
        self.inserted = inserted;
        self.ones = ones;
    }

    /// For an intersection, whose insert calls are not known: [`Header::intersection`].
    pub(crate) fn intersection(&mut self, stored: u64) {
        self.intersection = stored;
    }

    /// The parameters.
    pub fn params(&mut self) -> &mut Params {
        &mut self.params
    }

    /// Appends words to the payload.
    pub fn words(&mut self, words: &'a Words) {
        self.bytes_of(Some(words), || words.to_le_bytes());
    }

    /// Appends bytes that are made for it, perhaps of words.
    pub fn bytes_of(&mut self, words: Option<&'a Words>, make: impl FnOnce() -> Cow<'a, [u8]>) {
        self.sources.extend(words);
        if !self.only_sources {
            self.payload.push(make());
        }
    }

    /// Appends bytes to the payload.
    pub fn bytes(&mut self, bytes: impl Into<Cow<'a, [u8]>>) {
        self.payload.push(bytes.into());
    }

    /// Adds a section.
    pub fn section(&mut self, id: u32, bytes: impl Into<Cow<'a, [u8]>>) {
        self.sections.push((id, bytes.into()));
    }

    /// Compares the checksum of the bytes that the payload came from, if that has not been done.
    pub(crate) fn verify_sources(&self) -> Result<(), DecodeError> {
        self.sources.iter().try_for_each(|words| words.verify())
    }

    /// Computes lengths, offsets and checksums.
    ///
    /// A payload that came from damaged bytes gets a checksum that does not fit: what is damaged stays damaged for every reader.
    pub(crate) fn finish(self, summing: Summing) -> Encoded<'a> {
        let header_len = Header::length_for(self.params.0.len(), self.sections.len());
        let length = self.payload.iter().map(|piece| piece.len() as u64).sum();
        let (flags, sum) = match summing {
            Summing::Skip => (Flags::UNSUMMED, 0),
            Summing::Payload => {
                let mut hasher = Xxh3::new();
                self.payload.iter().for_each(|piece| hasher.update(piece));
                let sum = hasher.digest();
                (Flags::NONE, if self.verify_sources().is_ok() { sum } else { !sum })
            }
        };
        let flags = if self.inserted.is_none() { flags | Flags::UNCOUNTED } else { flags };
        let payload = Extent { offset: header_len as u64, length, checksum: sum };
        let mut end = payload.end_page();
        let mut sections = Vec::with_capacity(self.sections.len());
        for (id, bytes) in &self.sections {
            let extent = Extent { offset: end, length: bytes.len() as u64, checksum: checksum(bytes) };
            end = extent.end_page();
            sections.push((*id, extent));
        }
        let header = Header {
            family: self.family,
            flags,
            hashing: self.hashing,
            probing: self.probing.id(),
            inserted: self.inserted,
            intersection: self.intersection,
            ones: Some(self.ones),
            params: self.params.0,
            payload,
            sections,
        };
        let sections = self.sections.into_iter().map(|(_, bytes)| bytes).collect();
        Encoded { header: header.encode(), payload: self.payload, sections }
    }
}

/// A filter ready to be written: the header, and borrowed pieces of everything else.
#[derive(Debug)]
pub struct Encoded<'a> {
    header: Vec<u8>,
    payload: Vec<Cow<'a, [u8]>>,
    sections: Vec<Cow<'a, [u8]>>,
}

static ZEROS: [u8; PAGE] = [0; PAGE];

impl Encoded<'_> {
    /// The header alone, for renewing it where it stands.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// All bytes of the file, piece by piece.
    #[must_use]
    pub fn pieces(&self) -> Vec<&[u8]> {
        let mut pieces: Vec<&[u8]> = Vec::with_capacity(2 + self.payload.len() + 2 * self.sections.len());
        pieces.push(&self.header);
        pieces.extend(self.payload.iter().map(|piece| &**piece));
        let mut length: usize = self.payload.iter().map(|piece| piece.len()).sum();
        for section in &self.sections {
            pieces.push(&ZEROS[..length.next_multiple_of(PAGE) - length]);
            pieces.push(section);
            length = section.len();
        }
        pieces
    }

    /// How many bytes they are together.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.pieces().iter().map(|piece| piece.len() as u64).sum()
    }

    /// Whether there are none: never, a header is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// All bytes of the file in one vector.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces().concat()
    }
}
