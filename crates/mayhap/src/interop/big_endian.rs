//! Words and numbers of the programs that write the highest byte first.

use alloc::vec::Vec;

use crate::bits::{OutOfMemory, Words};
use crate::error::DecodeError;

/// The words of as many bytes as there are.
pub(super) fn words(bytes: &[u8]) -> Result<Words, DecodeError> {
    let (chunks, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(DecodeError::Trailing { bytes: rest.len() as u64 });
    }
    let memory = |OutOfMemory { bytes }| DecodeError::Memory { bytes };
    let mut words = Words::zeroed(chunks.len() as u64).map_err(memory)?;
    for (word, chunk) in words.as_mut_slice().iter_mut().zip(chunks) {
        *word = u64::from_be_bytes(*chunk);
    }
    Ok(words)
}

/// Appends words.
pub(super) fn put_words(out: &mut Vec<u8>, words: &[u64]) {
    out.reserve(8 * words.len());
    words.iter().for_each(|word| out.extend(word.to_be_bytes()));
}

/// The next number of 32 bits, and what follows it; `None` at the end.
pub(super) fn u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// The next number of 64 bits, and what follows it; `None` at the end.
pub(super) fn u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), rest))
}
