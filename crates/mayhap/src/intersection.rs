//! How many keys an intersection of filters holds.
//!
//! Its bits do not tell: bits that different keys set on either side are common bits too. Two filters of 100,000 different
//! keys each have as many bits in common as one of 42,800 keys. So the number is taken from three sizes, those of the two
//! filters and of their union, while both are at hand, and kept.

use crate::narrow::whole;

/// What is known of the keys of an intersection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intersection {
    /// How many keys are probably in both, if that is known.
    keys: Option<u64>,
    /// Set bits when it was made: with more of them keys have been inserted since.
    ones: u64,
}

impl Intersection {
    /// Of so many keys, if that is a number, in so many set bits. Without any it is an empty filter as others are.
    pub(crate) fn of(keys: f64, ones: u64) -> Option<Self> {
        // Two numbers at the top are taken in a file.
        let keys = (keys.is_finite() && keys < (u64::MAX / 4) as f64).then(|| whole(libm::round(keys)));
        (ones > 0).then_some(Self { keys, ones })
    }

    /// Of an unknown number of keys: one that was merged, or intersected again.
    pub(crate) const UNKNOWN: Self = Self { keys: None, ones: 0 };

    /// What a union of two filters is, of which one may be an intersection.
    pub(crate) fn of_union(ours: Option<Self>, theirs: Option<Self>) -> Option<Self> {
        ours.or(theirs).map(|_| Self::UNKNOWN)
    }

    /// How many keys are probably in a filter with so many set bits; not a number if that is not known.
    pub(crate) fn len(self, ones: u64) -> f64 {
        self.keys.filter(|_| self.ones == ones).map_or(f64::NAN, |keys| keys as f64)
    }

    /// The same keys in other bits.
    pub(crate) fn moved(self, from: u64, to: u64) -> Self {
        if self.ones == from { Self { ones: to, ..self } } else { Self::UNKNOWN }
    }

    /// As it stands in a header, in the place of the insert calls, which an intersection does not know: 0 for a filter that
    /// is none, the highest number for one of an unknown number of keys, and else that number and one.
    pub(crate) fn stored(intersection: Option<Self>, ones: u64) -> u64 {
        intersection
            .map_or(0, |known| known.keys.filter(|_| known.ones == ones).map_or(u64::MAX, |keys| keys + 1))
    }

    /// From a header.
    pub(crate) fn read(stored: u64, ones: u64) -> Option<Self> {
        match stored {
            0 => None,
            u64::MAX => Some(Self::UNKNOWN),
            more => Some(Self { keys: Some(more - 1), ones }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_keeps_what_is_known() {
        for (keys, ones) in [(0.0, 5), (42_809.4, 7), (f64::INFINITY, 7), (f64::NAN, 1), (1e300, 3)] {
            let intersection = Intersection::of(keys, ones).unwrap();
            let read = Intersection::read(Intersection::stored(Some(intersection), ones), ones).unwrap();
            assert_eq!(read.len(ones).to_bits(), intersection.len(ones).to_bits(), "{keys}");
            // Keys have been inserted since, and their number is unknown.
            let later =
                Intersection::read(Intersection::stored(Some(intersection), ones + 1), ones + 1).unwrap();
            assert!(intersection.len(ones + 1).is_nan() && later.len(ones + 1).is_nan());
        }
        assert_eq!((Intersection::stored(None, 3), Intersection::read(0, 3)), (0, None));
        assert_eq!(Intersection::of(f64::NAN, 0), None);
    }
}
