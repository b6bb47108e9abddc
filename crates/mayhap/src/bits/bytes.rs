//! A run of bytes with an owner: a vector, a mapped file, a mapped file that may be written.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::seal::Seal;

/// Memory that one holder may write, such as a private or shared map of a file.
///
/// `as_ref` and `as_mut` must return the same bytes at the same address each time.
pub trait ExclusiveBytes: AsRef<[u8]> + AsMut<[u8]> + Send + Sync {}

impl<T: AsRef<[u8]> + AsMut<[u8]> + Send + Sync> ExclusiveBytes for T {}

/// Bytes with an owner, so that a filter can live in a mapped file without copying it.
///
/// Those of a payload whose checksum was not compared carry it along.
pub struct Bytes(pub(super) Owner, pub(super) Option<Arc<Seal>>);

pub(super) enum Owner {
    /// `is_heap`: a vector, which takes memory as long as one part of it is held.
    Shared {
        owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
        range: Range<usize>,
        is_heap: bool,
    },
    Exclusive(Box<dyn ExclusiveBytes>),
}

impl Bytes {
    /// Bytes that are only read. The owner may be a `Vec<u8>`, a map, a `&'static [u8]`.
    pub fn shared(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let range = 0..owner.as_ref().len();
        Self(Owner::Shared { owner: Arc::new(owner), range, is_heap: false }, None)
    }

    /// Bytes that are written in place: what a filter changes, the owner sees.
    pub fn exclusive(owner: impl ExclusiveBytes + 'static) -> Self {
        Self(Owner::Exclusive(Box::new(owner)), None)
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Owner::Shared { owner, range, .. } => &(**owner).as_ref()[range.clone()],
            Owner::Exclusive(owner) => (**owner).as_ref(),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part, without copying shared bytes; `None` if the range is not inside.
    #[must_use]
    pub fn part(&self, part: Range<usize>) -> Option<Self> {
        let bytes = self.as_slice().get(part.clone())?;
        Some(match &self.0 {
            Owner::Shared { owner, range, is_heap } => {
                let range = range.start + part.start..range.start + part.end;
                let owner = Arc::clone(owner);
                Self(Owner::Shared { owner, range, is_heap: *is_heap }, self.1.clone())
            }
            Owner::Exclusive(_) => Self::shared(bytes.to_vec()),
        })
    }

    /// Whether they keep much more memory than their own: a part of a vector does, as long as it is held.
    pub(super) fn keeps_more(&self) -> bool {
        match &self.0 {
            Owner::Shared { owner, range, is_heap: true } => {
                let all = (**owner).as_ref().len();
                range.len() < all - all / 64
            }
            _ => false,
        }
    }

    /// The checksum was compared.
    pub(crate) fn set_verified(&mut self) {
        self.1 = None;
    }

    /// The same bytes, whose checksum is this and was not compared yet. For shared ones only.
    pub(crate) fn unverified(self, stored: u64) -> Self {
        let Some(all) = self.part(0..self.len()) else { return self };
        Self(self.0, Some(Seal::new(all, stored)))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(mut bytes: Vec<u8>) -> Self {
        bytes.shrink_to_fit();
        let range = 0..bytes.len();
        Self(Owner::Shared { owner: Arc::new(bytes), range, is_heap: true }, None)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Owner::Shared { .. } => "shared",
            Owner::Exclusive(_) => "exclusive",
        };
        write!(f, "Bytes({kind}, {} bytes)", self.len())
    }
}
