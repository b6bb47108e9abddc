//! From wide numbers to narrow ones. An `as` that drops bits does not say whether that is meant; each function here does.
//!
//! Sizes and positions are `u64` on every machine, `usize` only where memory is indexed. On a 32-bit machine a file may
//! claim more than `usize` holds. Whatever decides an allocation, or comes from outside and was compared with nothing,
//! goes through `usize::try_from` and is refused; what is proved to fit goes through [`index`].

/// A position in memory, or a length of it.
///
/// The caller has proved that it is at most the length of a slice that exists, or a constant below 2^32. The usual proof:
/// the number of words that the parameters give was compared, as `u64`, with the number of words that are there, and
/// positions are below it. A slice has at most `isize::MAX` bytes, so that twice the number of bytes still fits `usize`.
#[inline(always)]
pub(crate) const fn index(position: u64) -> usize {
    debug_assert!(fits(position, usize::MAX as u64), "a position beyond the memory of this machine");
    #[expect(clippy::cast_possible_truncation, reason = "proved by the caller")]
    {
        position as usize
    }
}

/// Whether a machine whose highest address is `highest` has such a position.
const fn fits(position: u64, highest: u64) -> bool {
    position <= highest
}

/// A small number: of bits, of slots in a block, of probes. The caller has proved that it is below 2^32.
#[inline(always)]
pub(crate) const fn small(number: u64) -> u32 {
    debug_assert!(number <= u32::MAX as u64, "a number that is not small");
    #[expect(clippy::cast_possible_truncation, reason = "proved by the caller")]
    {
        number as u32
    }
}

/// The same for a number of things in memory.
#[inline(always)]
pub(crate) const fn small_len(number: usize) -> u32 {
    small(number as u64)
}

/// The lower half, on purpose.
#[inline(always)]
pub(crate) const fn low_u64(wide: u128) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the name says so")]
    {
        wide as u64
    }
}

/// The lowest 32 bits, on purpose.
#[inline(always)]
pub(crate) const fn low_u32(wide: u64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the name says so")]
    {
        wide as u32
    }
}

/// The lowest 16 bits, on purpose.
#[inline(always)]
pub(crate) const fn low_u16(wide: u64) -> u16 {
    #[expect(clippy::cast_possible_truncation, reason = "the name says so")]
    {
        wide as u16
    }
}

/// The lowest 8 bits, on purpose.
#[inline(always)]
pub(crate) const fn low_u8(wide: u64) -> u8 {
    #[expect(clippy::cast_possible_truncation, reason = "the name says so")]
    {
        wide as u8
    }
}

/// The whole part of a number: 0 for a negative one or NaN, `u64::MAX` for one that is too large.
#[inline(always)]
pub(crate) const fn whole(number: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that does not fit gives the nearest integer that does"
    )]
    {
        number as u64
    }
}

/// The same in 32 bits, `u32::MAX` for one that is too large.
#[inline(always)]
pub(crate) const fn whole_u32(number: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that does not fit gives the nearest integer that does"
    )]
    {
        number as u32
    }
}

/// The same as a length, `usize::MAX` for one that is too large.
#[inline(always)]
pub(crate) const fn whole_usize(number: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float that does not fit gives the nearest integer that does"
    )]
    {
        number as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_beyond_32_bits_does_not_fit_a_32_bit_machine() {
        let (narrow, wide) = (u64::from(u32::MAX), u64::MAX);
        for position in [0, 1, narrow - 1, narrow] {
            assert!(fits(position, narrow) && fits(position, wide), "{position}");
        }
        for position in [narrow + 1, 1 << 32, 1 << 40, wide] {
            assert!(!fits(position, narrow) && fits(position, wide), "{position}");
        }
    }

    #[test]
    #[should_panic(expected = "a number that is not small")]
    #[cfg(debug_assertions)]
    fn a_number_that_is_not_small_is_noticed() {
        small_len(small(1 << 32) as usize);
    }

    #[test]
    fn floats_that_do_not_fit_give_the_nearest_number_that_does() {
        assert_eq!((whole(-1.5), whole(f64::NAN), whole(2.9), whole(1e30)), (0, 0, 2, u64::MAX));
        assert_eq!((whole_u32(-1.0), whole_u32(5e9)), (0, u32::MAX));
        assert_eq!((whole_usize(-1.0), whole_usize(3.5), whole_usize(1e30)), (0, 3, usize::MAX));
    }

    #[test]
    fn the_lowest_bits_are_kept() {
        assert_eq!(low_u64(0x1234 << 64 | 0x5678), 0x5678);
        assert_eq!(low_u32(0x1234_5678_9abc_def0), 0x9abc_def0);
        assert_eq!((low_u16(0x1234_5678), low_u8(0x1234)), (0x5678, 0x34));
    }
}
