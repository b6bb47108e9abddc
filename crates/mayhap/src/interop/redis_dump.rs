//! RedisBloom's dumps: what `SCANDUMP` gives and `LOADCHUNK` takes, of Bloom filters and of cuckoo filters.
//!
//! A dump is the header of a filter, then its arrays in pieces. Each comes with an iterator, which asks for the next one,
//! and which must be given back with the piece when it is loaded:
//!
//! ```text
//! SCANDUMP 0    ─▶   1       header
//! SCANDUMP 1    ─▶   145     144 bytes, all of the first array          145 = 1 + the bytes of arrays so far
//! SCANDUMP 145  ─▶   457     312 bytes, all of the second
//! SCANDUMP 457  ─▶   0       nothing: the end
//! ```
//!
//! A piece is part of one array, and has 16 MiB at most. In a file, the chunks stand one after the other, without the end:
//!
//! ```text
//! i64 iterator | u64 length | bytes        little-endian
//! ```
//!
//! ```
//! use mayhap::interop::redis_dump::{Dump, Loading};
//! use mayhap::interop::redisbloom::{Growth, RedisBloom};
//!
//! let mut seen = RedisBloom::reserve(100, 0.01, Growth::Times(2))?;
//! seen.insert(b"user:0")?;
//! let mut loading = Loading::<RedisBloom>::begin(&seen.header(), 1 << 20)?;
//! for chunk in seen.chunks().skip(1) {
//!     loading.load_chunk(chunk.iterator, &chunk.bytes)?;
//! }
//! assert!(loading.finish()?.contains(b"user:0"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::bits::{OutOfMemory, Words};
use crate::error::DecodeError;
use crate::narrow::index;
use crate::wire::{Fields, Frame, Writer};

/// The most bytes of an array in one chunk.
const PIECE: usize = 16 << 20;

/// What stands before a chunk in a file.
const BEFORE: usize = 16;

/// One reply of `SCANDUMP`, and what `LOADCHUNK` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// 1 for the header; else 1 and the bytes of arrays up to the end of these.
    pub iterator: i64,
    /// The header, or a piece of an array.
    pub bytes: Cow<'a, [u8]>,
}

/// A filter that is dumped and loaded in chunks.
pub trait Dump: Sized {
    /// How long the arrays of such a header are, in order. Together with what stands before each in a file, they take
    /// `limit` bytes at most.
    ///
    /// # Errors
    /// [`DecodeError`] if this is no header, or the arrays take more.
    fn lengths(header: &[u8], limit: u64) -> Result<Vec<u64>, DecodeError>;

    /// The filter of such a header before its arrays have come: they are zero.
    ///
    /// # Errors
    /// As for [`lengths`](Dump::lengths), or there is no memory for them.
    fn begin(header: &[u8], limit: u64) -> Result<Self, DecodeError>;

    /// What comes first.
    fn header(&self) -> Vec<u8>;

    /// The arrays, in order.
    fn arrays(&self) -> impl Iterator<Item = &[u8]>;

    /// One of them.
    ///
    /// # Panics
    /// If there are not so many.
    fn array_mut(&mut self, index: usize) -> &mut [u8];

    /// The chunk that `SCANDUMP` answers to an iterator: 0, or that of the chunk before. `None` at the end.
    fn scan(&self, iterator: i64) -> Option<Chunk<'_>> {
        let Some(at) = iterator.checked_sub(1).and_then(|at| usize::try_from(at).ok()) else {
            return (iterator == 0).then(|| Chunk { iterator: 1, bytes: Cow::Owned(self.header()) });
        };
        let mut offset = at;
        for array in self.arrays() {
            match array.get(offset..) {
                Some(rest) if !rest.is_empty() => {
                    let piece = &rest[..rest.len().min(PIECE)];
                    return Some(Chunk { iterator: (at + piece.len() + 1) as i64, bytes: piece.into() });
                }
                _ => offset -= array.len(),
            }
        }
        None
    }

    /// All chunks, the header first.
    fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> {
        chunks_of(self.header(), self.arrays())
    }
}

fn chunks_of<'a>(header: Vec<u8>, arrays: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = Chunk<'a>> {
    let header = Chunk { iterator: 1, bytes: header.into() };
    let pieces = arrays.flat_map(|array| array.chunks(PIECE)).scan(1, |iterator, piece| {
        *iterator += piece.len() as i64;
        Some(Chunk { iterator: *iterator, bytes: piece.into() })
    });
    core::iter::once(header).chain(pieces)
}

/// A filter whose chunks are on their way.
#[derive(Clone, Debug)]
pub struct Loading<F> {
    filter: F,
    /// Where each array ends, counted through all of them.
    ends: Vec<u64>,
    /// All bytes before have come.
    received: u64,
}

impl<F: Dump> Loading<F> {
    /// Begins with a header. Its arrays may take so many bytes, and get them now.
    ///
    /// # Errors
    /// [`DecodeError`] if this is no header, or they take more, or there is no memory for them.
    pub fn begin(header: &[u8], limit: u64) -> Result<Self, DecodeError> {
        let ends = ends_of(F::lengths(header, limit)?);
        Ok(Self { filter: F::begin(header, limit)?, ends, received: 0 })
    }

    /// Takes the next chunk, or one that has come before.
    ///
    /// # Errors
    /// [`DecodeError`] if it is not a piece of an array, or those before it have not come; then nothing has changed.
    pub fn load_chunk(&mut self, iterator: i64, bytes: &[u8]) -> Result<(), DecodeError> {
        let ChunkRange { array, offset, end } =
            ChunkRange::of(&self.ends, iterator, bytes.len(), self.received)?;
        self.filter.array_mut(array)[offset..][..bytes.len()].copy_from_slice(bytes);
        self.received = self.received.max(end);
        Ok(())
    }

    /// Whether all bytes have come.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ends.last() == Some(&self.received)
    }

    /// The filter as far as it has come. What is not there is denied.
    #[must_use]
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// The filter.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if it is not complete.
    pub fn finish(self) -> Result<F, DecodeError> {
        must_be_complete(&self.ends, self.received)?;
        Ok(self.filter)
    }
}

/// Where the bytes of a chunk belong.
struct ChunkRange {
    array: usize,
    /// In the array.
    offset: usize,
    /// Behind them, counted through all arrays.
    end: u64,
}

impl ChunkRange {
    fn of(ends: &[u64], iterator: i64, length: usize, received: u64) -> Result<Self, DecodeError> {
        let refused = DecodeError::Value { field: "iterator of a chunk", found: iterator as u64 };
        let end = iterator.checked_sub(1).and_then(|end| u64::try_from(end).ok()).ok_or(refused)?;
        let start = end.checked_sub(length as u64).filter(|&start| start <= received).ok_or(refused)?;
        let array = ends.partition_point(|&end| end <= start);
        let whole = *ends.get(array).ok_or(refused)?;
        if length == 0 || end > whole {
            return Err(DecodeError::Value { field: "length of a chunk", found: length as u64 });
        }
        let before = array.checked_sub(1).map_or(0, |before| ends[before]);
        Ok(Self { array, offset: index(start - before), end })
    }
}

fn ends_of(lengths: Vec<u64>) -> Vec<u64> {
    let mut end = 0;
    lengths.into_iter().map(|length| (end += length, end).1).collect()
}

fn must_be_complete(ends: &[u64], received: u64) -> Result<(), DecodeError> {
    let needed = ends.last().copied().unwrap_or(0);
    if received == needed {
        return Ok(());
    }
    Err(DecodeError::Truncated { field: "all arrays together", needed, available: received })
}

/// The lengths of arrays, if they can all be there; `None` is a length beyond all numbers. Ends before it has more of them
/// than fit.
pub(super) fn fitting(
    lengths: impl Iterator<Item = Option<u64>>,
    limit: u64,
) -> Result<Vec<u64>, DecodeError> {
    let mut needed = 0u64;
    lengths
        .map(|length| {
            let length = length.unwrap_or(u64::MAX);
            needed = needed.saturating_add(length).saturating_add(BEFORE as u64);
            if needed <= limit {
                Ok(length)
            } else {
                Err(DecodeError::Truncated { field: "all arrays together", needed, available: limit })
            }
        })
        .collect()
}

/// One array of a filter. Never seen as words, so that the order of their bytes does not matter.
#[derive(Clone, Debug)]
pub(super) struct Array {
    words: Words,
    length: usize,
}

impl Array {
    pub(super) fn zeroed(length: u64) -> Result<Self, OutOfMemory> {
        let words = Words::zeroed(length.div_ceil(8))?;
        Ok(Self { words, length: index(length) })
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(self.words.as_slice())[..self.length]
    }

    #[inline]
    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(self.words.as_mut_slice())[..self.length]
    }

    pub(super) fn count_ones(&self) -> u64 {
        self.words.count_ones()
    }
}

/// The next chunk of a file, and what follows it.
fn next_chunk(file: &[u8]) -> Result<(i64, &[u8], &[u8]), DecodeError> {
    let mut fields = Fields::new(file);
    let iterator = fields.u64("iterator of a chunk")? as i64;
    let length = fields.u64("length of a chunk")?;
    let rest = fields.rest();
    let chunk = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
    let available = rest.len() as u64;
    let (bytes, rest) = chunk.ok_or(DecodeError::Truncated { field: "chunk", needed: length, available })?;
    Ok((iterator, bytes, rest))
}

/// Checks all but what the arrays hold: the header, and that every byte of every array is there once and in order. Gives
/// the header, and the chunks behind it.
fn parse<F: Dump>(file: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let (iterator, header, chunks) = next_chunk(file)?;
    if iterator != 1 {
        return Err(DecodeError::Value { field: "iterator of the header", found: iterator as u64 });
    }
    let ends = ends_of(F::lengths(header, chunks.len() as u64)?);
    let (mut rest, mut received) = (chunks, 0);
    while !rest.is_empty() {
        let (iterator, bytes, behind) = next_chunk(rest)?;
        let end = ChunkRange::of(&ends, iterator, bytes.len(), received)?.end;
        if end != received + bytes.len() as u64 {
            return Err(DecodeError::Value { field: "iterator of a chunk", found: iterator as u64 });
        }
        (rest, received) = (behind, end);
    }
    must_be_complete(&ends, received)?;
    Ok((header, chunks))
}

/// Whether a file is a dump of such a filter.
pub(super) fn fits<F: Dump>(file: &[u8]) -> bool {
    parse::<F>(file).is_ok()
}

/// The filter of a file.
pub(super) fn read<F: Dump>(file: &[u8]) -> Result<F, DecodeError> {
    let (header, mut rest) = parse::<F>(file)?;
    let mut loading = Loading::begin(header, rest.len() as u64)?;
    while !rest.is_empty() {
        let (iterator, bytes, behind) = next_chunk(rest)?;
        loading.load_chunk(iterator, bytes)?;
        rest = behind;
    }
    loading.finish()
}

/// A file of all chunks, in pieces that are not copied.
fn file_pieces<'a>(chunks: impl Iterator<Item = Chunk<'a>>) -> impl Iterator<Item = Cow<'a, [u8]>> {
    chunks.flat_map(|Chunk { iterator, bytes }| {
        let mut before = Vec::with_capacity(BEFORE);
        before.extend(iterator.to_le_bytes());
        before.extend((bytes.len() as u64).to_le_bytes());
        [Cow::Owned(before), bytes]
    })
}

/// The file of a filter.
pub(super) fn write<F: Dump>(filter: &F) -> Vec<u8> {
    file_pieces(filter.chunks()).fold(Vec::new(), |mut file, piece| {
        file.extend_from_slice(&piece);
        file
    })
}

/// In our own file the payload is the dump, which says all that there is to say.
pub(super) fn encode<'a>(header: Vec<u8>, arrays: impl Iterator<Item = &'a [u8]>, out: &mut Writer<'a>) {
    file_pieces(chunks_of(header, arrays)).for_each(|piece| out.bytes(piece));
}

/// The filter of a file of ours.
pub(super) fn decode<F: Dump>(frame: &Frame) -> Result<F, DecodeError> {
    let params = &frame.header.params;
    Fields::new(params).end("parameters", params.len())?;
    read(frame.payload.as_slice())
}
