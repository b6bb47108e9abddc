//! Numbers at few of many places: what does not fit a small counter.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{BuildHasherDefault, Hasher};

use hashbrown::HashMap;

use super::words::Words;

/// A number above 0 at each of some places, and 0 at all others.
///
/// The numbers may lie in a mapped file, as pairs of place and number that ascend by place. What changes
/// is kept beside them, and becomes one with them when all is written.
#[derive(Clone)]
pub(super) struct Overflow {
    /// Two words for each place: the place, the number.
    sorted: Words,
    /// What has another number than `sorted` says; 0 if it is gone.
    changed: HashMap<u64, u64, BuildHasherDefault<PlaceHasher>>,
    /// How many places have a number.
    len: u64,
}

/// Places are counted from 0, and a hash table wants high bits too: one multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn write_u64(&mut self, place: u64) {
        // 2^64 divided by the golden ratio, odd.
        self.0 = (self.0 ^ place).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

impl Overflow {
    pub(super) fn new() -> Self {
        Self::from_words(Vec::new().into())
    }

    /// Pairs that lie in existing words. If they do not [ascend](Overflow::is_canonical), some of them are
    /// not found, and nothing worse happens.
    pub(super) fn from_words(sorted: Words) -> Self {
        let len = sorted.len() as u64 / 2;
        Self { sorted, changed: HashMap::default(), len }
    }

    /// Whether places ascend and each pair is one that `allowed` allows.
    pub(super) fn is_canonical(&self, allowed: impl Fn(u64, u64) -> bool) -> bool {
        let pairs = self.sorted.as_slice().as_chunks::<2>().0;
        pairs.is_sorted_by(|a, b| a[0] < b[0]) && pairs.iter().all(|&[place, number]| allowed(place, number))
    }

    /// How many places have a number.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The number at a place.
    #[inline]
    pub(super) fn get(&self, place: u64) -> u64 {
        match self.changed.get(&place) {
            Some(&number) => number,
            None => self.stored(place),
        }
    }

    fn stored(&self, place: u64) -> u64 {
        if self.sorted.is_empty() {
            return 0;
        }
        let pairs = self.sorted.as_slice().as_chunks::<2>().0;
        pairs.binary_search_by_key(&place, |pair| pair[0]).map_or(0, |found| pairs[found][1])
    }

    /// Gives a place another number than it has; 0 takes it away.
    pub(super) fn set(&mut self, place: u64, before: u64, number: u64) {
        if number == self.stored(place) {
            self.changed.remove(&place);
        } else {
            self.changed.insert(place, number);
        }
        // Pairs of a damaged file may be found less often than they were counted.
        match (before, number) {
            (0, 1..) => self.len += 1,
            (1.., 0) => self.len = self.len.saturating_sub(1),
            _ => {}
        }
    }

    /// All places and numbers, ascending.
    fn pairs(&self) -> Vec<[u64; 2]> {
        let mut pairs: Vec<[u64; 2]> = self.sorted.as_slice().as_chunks::<2>().0.to_vec();
        pairs.retain(|[place, _]| !self.changed.contains_key(place));
        pairs.extend(
            self.changed.iter().filter(|&(_, &number)| number > 0).map(|(&place, &number)| [place, number]),
        );
        pairs.sort_unstable();
        pairs
    }

    /// The pairs as they stand in a file, without copying those that did not change.
    pub(super) fn to_le_bytes(&self) -> Cow<'_, [u8]> {
        if self.changed.is_empty() {
            return self.sorted.to_le_bytes();
        }
        Cow::Owned(self.pairs().iter().flatten().flat_map(|word| word.to_le_bytes()).collect())
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }
}

impl PartialEq for Overflow {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.pairs() == other.pairs()
    }
}

impl Eq for Overflow {}

impl fmt::Debug for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Overflow({} places, {} changed)", self.len, self.changed.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    fn reread(overflow: &Overflow) -> Overflow {
        Overflow::from_words(Words::from_bytes(overflow.to_le_bytes().into_owned().into()).unwrap())
    }

    #[test]
    fn numbers_agree_with_a_map_through_writing_and_reading() {
        let (mut overflow, mut model) = (Overflow::new(), BTreeMap::new());
        for step in 0..20_000u64 {
            let random = step.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17);
            let (place, number) = (random % 300, if random >> 60 < 5 { 0 } else { random >> 40 });
            overflow.set(place, overflow.get(place), number);
            if number > 0 {
                model.insert(place, number)
            } else {
                model.remove(&place)
            };
            if step % 1000 == 999 {
                let again = reread(&overflow);
                assert_eq!(again, overflow);
                assert!(again.is_canonical(|place, number| place < 300 && number > 0));
                overflow = again;
            }
            assert_eq!(overflow.len(), model.len() as u64);
            assert_eq!(overflow.get(place), number);
        }
        assert!((0..310).all(|place| overflow.get(place) == model.get(&place).copied().unwrap_or(0)));
    }

    #[test]
    fn pairs_that_do_not_ascend_are_told() {
        let canonical =
            |words: &[u64]| Overflow::from_words(words.to_vec().into()).is_canonical(|_, number| number > 0);
        assert!(canonical(&[]) && canonical(&[7, 1]) && canonical(&[7, 1, 8, 5]));
        assert!(!canonical(&[7, 1, 7, 1]) && !canonical(&[8, 1, 7, 1]) && !canonical(&[7, 0]));
    }

    /// Harmless: an answer may be wrong, but nothing panics and nothing goes below zero.
    #[test]
    fn pairs_in_disorder_do_no_harm() {
        let mut overflow = Overflow::from_words(alloc::vec![9, 1, 3, 2, 9, 4, 1, 5].into());
        for place in 0..12 {
            let before = overflow.get(place);
            overflow.set(place, before, before + 1);
            overflow.set(place, before + 1, 0);
        }
        overflow.set(4, 0, 4);
        assert_eq!(overflow.get(4), 4);
        let _ = (overflow.len(), overflow.to_le_bytes().len());
    }
}
