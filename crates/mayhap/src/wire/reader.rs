//! Reads little-endian fields one after the other, and never beyond the end.

use crate::error::DecodeError;

/// The bytes of a header or of a family's parameters, read from the front.
#[derive(Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Starts at the front.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] names the field.
    pub fn bytes<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated {
            field,
            needed: N as u64,
            available: self.rest.len() as u64,
        })?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// The next byte.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] names the field.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(u8::from_le_bytes(self.bytes(field)?))
    }

    /// The next two bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] names the field.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.bytes(field)?))
    }

    /// The next four bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] names the field.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.bytes(field)?))
    }

    /// The next eight bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] names the field.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.bytes(field)?))
    }

    /// The next sixteen bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] names the field.
    pub fn u128(&mut self, field: &'static str) -> Result<u128, DecodeError> {
        Ok(u128::from_le_bytes(self.bytes(field)?))
    }

    /// A rate in the next eight bytes: a number from 0 to 1.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] or [`DecodeError::Value`] name the field.
    pub fn rate(&mut self, field: &'static str) -> Result<f64, DecodeError> {
        let rate = f64::from_bits(self.u64(field)?);
        let found = rate.to_bits();
        if (0.0..=1.0).contains(&rate) { Ok(rate) } else { Err(DecodeError::Value { field, found }) }
    }

    /// The next four bytes, which must be zero.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] or [`DecodeError::Padding`] name the field.
    pub fn zero_u32(&mut self, field: &'static str) -> Result<(), DecodeError> {
        if self.u32(field)? == 0 { Ok(()) } else { Err(DecodeError::Padding { field }) }
    }

    /// All has been read.
    ///
    /// # Errors
    /// [`DecodeError::Length`] if not.
    pub fn end(self, field: &'static str, whole: usize) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            rest => Err(DecodeError::Length { field, expected: (whole - rest) as u64, found: whole as u64 }),
        }
    }

    /// What has not been read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
