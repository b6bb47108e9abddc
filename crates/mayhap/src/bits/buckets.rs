//! Buckets of four slots, packed without gaps: a bucket is read, compared and written as one number.
//!
//! ```text
//!   lanes, 4 x width bits       [ slot 3 | slot 2 | slot 1 | slot 0 ]      0 = empty
//!   plain                       the lanes as they are: 4 width bits
//!   sorted                      [ 4 x low (width - 4) bits | rank: 12 bits ]: 4 width - 4 bits
//! ```
//!
//! Occupied slots come first: a slot above an empty one is empty. So a bucket is full if its last slot is taken, a new
//! fingerprint is pushed in at slot 0 by one shift, and of two buckets the one with fewer fingerprints is the smaller
//! number. Every write of a bucket keeps it so.
//!
//! A bucket starts at any half byte, and the number that is read for it may reach beyond its end. Behind the last bucket
//! there are therefore [`tail`](Buckets::tail) words of zeros.

use core::fmt::Debug;
use core::hint::select_unpredictable;
use core::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

use crate::narrow::{index, low_u16, low_u32, low_u64};
use crate::raw::simd::prefetch;

/// Slots per bucket.
pub(crate) const SLOTS: u32 = 4;

/// An unsigned number that holds the lanes of a bucket: `u64` up to 16 bits per lane, `u128` up to 32.
pub(crate) trait Lanes:
    Copy
    + Debug
    + Ord
    + Default
    + From<u32>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    const BITS: u32;

    /// The number that starts at this byte, little-endian.
    fn read(words: &[u64], byte: usize) -> Self;

    fn write(self, words: &mut [u64], byte: usize);

    fn minus(self, other: Self) -> Self;

    fn times(self, other: Self) -> Self;

    /// Its lowest 32 bits.
    fn low(self) -> u32;
}

impl Lanes for u64 {
    const BITS: u32 = 64;

    #[inline(always)]
    fn read(words: &[u64], byte: usize) -> Self {
        if cfg!(target_endian = "little") {
            let bytes: &[u8] = bytemuck::cast_slice(words);
            return Self::from_le_bytes(bytes[byte..byte + 8].try_into().expect("8 bytes"));
        }
        let (word, shift) = (byte / 8, byte % 8 * 8);
        let above = if shift > 0 { words[word + 1] << (64 - shift) } else { 0 };
        words[word] >> shift | above
    }

    #[inline(always)]
    fn write(self, words: &mut [u64], byte: usize) {
        if cfg!(target_endian = "little") {
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
            bytes[byte..byte + 8].copy_from_slice(&self.to_le_bytes());
            return;
        }
        let (word, shift) = (byte / 8, byte % 8 * 8);
        words[word] = words[word] & !(u64::MAX << shift) | self << shift;
        if shift > 0 {
            words[word + 1] = words[word + 1] & (u64::MAX << shift) | self >> (64 - shift);
        }
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }

    #[inline(always)]
    fn low(self) -> u32 {
        low_u32(self)
    }
}

impl Lanes for u128 {
    const BITS: u32 = 128;

    #[inline(always)]
    fn read(words: &[u64], byte: usize) -> Self {
        Self::from(u64::read(words, byte)) | Self::from(u64::read(words, byte + 8)) << 64
    }

    #[inline(always)]
    fn write(self, words: &mut [u64], byte: usize) {
        low_u64(self).write(words, byte);
        ((self >> 64) as u64).write(words, byte + 8);
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }

    #[inline(always)]
    fn low(self) -> u32 {
        low_u32(low_u64(self))
    }
}

/// How buckets lie in words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets<L, const SORTED: bool> {
    /// Bits per fingerprint.
    width: u32,
    /// The lowest bit of each lane.
    ones: L,
    /// The highest bit of each lane.
    tops: L,
    /// All bits of all lanes.
    all: L,
}

/// Bits per bucket.
pub(crate) const fn bucket_bits(width: u32, sorted: bool) -> u32 {
    SLOTS * width - if sorted { SLOTS } else { 0 }
}

impl<L: Lanes, const SORTED: bool> Buckets<L, SORTED> {
    /// Buckets of fingerprints of so many bits, which must fit.
    pub(crate) fn new(width: u32) -> Self {
        debug_assert!(width > SLOTS * u32::from(SORTED) && SLOTS * width <= L::BITS);
        let one = L::from(1);
        let ones = one | one << width | one << (2 * width) | one << (3 * width);
        Self { width, ones, tops: ones << (width - 1), all: !L::default() >> (L::BITS - SLOTS * width) }
    }

    /// Words of zeros that must follow the last bucket.
    pub(crate) const fn tail() -> u64 {
        (L::BITS / 64) as u64
    }

    /// The byte in which a bucket starts, and how many bits of that byte are another's: none or four.
    #[inline(always)]
    fn place(&self, bucket: u64) -> (usize, u32) {
        let bit = bucket * u64::from(bucket_bits(self.width, SORTED));
        (index(bit / 8), (bit % 8) as u32)
    }

    /// Asks for the cache line of a bucket; for both if it straddles two.
    #[inline(always)]
    pub(crate) fn prefetch(&self, words: &[u64], bucket: u64) {
        let (byte, _) = self.place(bucket);
        prefetch(words, byte / 8);
        prefetch(words, byte / 8 + (L::BITS / 64) as usize);
    }

    /// The lanes of a bucket, with anything above them: [`has`](Buckets::has) does not mind.
    #[inline(always)]
    pub(crate) fn peek(&self, words: &[u64], bucket: u64) -> L {
        let (byte, shift) = self.place(bucket);
        let raw = L::read(words, byte) >> shift;
        if SORTED { self.unsort(raw) } else { raw }
    }

    /// The lanes of a bucket.
    #[inline(always)]
    pub(crate) fn load(&self, words: &[u64], bucket: u64) -> L {
        self.peek(words, bucket) & self.all
    }

    /// Writes the lanes of a bucket.
    #[inline(always)]
    pub(crate) fn store(&self, words: &mut [u64], bucket: u64, lanes: L) {
        let (byte, shift) = self.place(bucket);
        let (own, raw) = if SORTED { (self.all >> SLOTS, self.sort(lanes)) } else { (self.all, lanes) };
        let around = L::read(words, byte) & !(own << shift);
        (around | raw << shift).write(words, byte);
    }

    /// The fingerprint in every lane.
    #[inline(always)]
    fn repeated(&self, fingerprint: u32) -> L {
        L::from(fingerprint).times(self.ones)
    }

    /// The top bit of each lane that is zero; perhaps also of lanes above the lowest such one, because a borrow goes
    /// upwards. (Mycroft's test for a zero byte.)
    #[inline(always)]
    fn zeros(&self, lanes: L) -> L {
        lanes.minus(self.ones) & !lanes & self.tops
    }

    /// Whether one of two buckets has the fingerprint. No branches.
    #[inline(always)]
    pub(crate) fn either_has(&self, one: L, other: L, fingerprint: u32) -> bool {
        let wanted = self.repeated(fingerprint);
        (self.zeros(one ^ wanted) | self.zeros(other ^ wanted)) != L::default()
    }

    /// Whether no slot is free.
    #[inline(always)]
    pub(crate) fn is_full(&self, lanes: L) -> bool {
        lanes >> (3 * self.width) != L::default()
    }

    /// The bucket with one fingerprint more. It must not be full.
    #[inline(always)]
    pub(crate) fn with(&self, lanes: L, fingerprint: u32) -> L {
        lanes << self.width | L::from(fingerprint)
    }

    /// Of two buckets the first one that has the fingerprint, with one copy less; and whether it is the second. Nothing if
    /// neither has it.
    #[inline(always)]
    pub(crate) fn without(&self, one: L, other: L, fingerprint: u32) -> Option<(L, bool)> {
        let wanted = self.repeated(fingerprint);
        let (in_one, in_other) = (self.zeros(one ^ wanted), self.zeros(other ^ wanted));
        // Which of the two has it is a coin that no branch predictor knows.
        let is_other = in_one == L::default();
        let found = select_unpredictable(is_other, in_other, in_one);
        let lanes = select_unpredictable(is_other, other, one);
        if found == L::default() {
            return None;
        }
        // The lowest mark is a true one, at the top of its lane. What is above that lane moves down by one.
        let lowest = found & L::default().minus(found);
        let below = (lowest >> (self.width - 1)).minus(L::from(1));
        Some((lanes & below | lanes >> self.width & !below, is_other))
    }

    /// The fingerprint in a slot; 0 if it is empty.
    #[inline(always)]
    pub(crate) fn slot(&self, lanes: L, slot: u32) -> u32 {
        (lanes >> (slot * self.width)).low() & (u32::MAX >> (32 - self.width))
    }

    /// The bucket with another fingerprint in a slot that was not empty.
    #[inline(always)]
    pub(crate) fn replaced(&self, lanes: L, slot: u32, fingerprint: u32) -> L {
        let shift = slot * self.width;
        let lane = L::from(u32::MAX >> (32 - self.width)) << shift;
        lanes & !lane | L::from(fingerprint) << shift
    }

    /// All slots of a bucket, from the first on; empty ones are 0 and come last.
    pub(crate) fn slots(&self, lanes: L) -> [u32; SLOTS as usize] {
        [0, 1, 2, 3].map(|slot| self.slot(lanes, slot))
    }

    /// Whether a bucket is one that [`store`](Buckets::store) writes: empty slots last and, if it is sorted, a rank that
    /// exists and slots in order.
    pub(crate) fn is_written(&self, words: &[u64], bucket: u64) -> bool {
        let (byte, shift) = self.place(bucket);
        let lanes = self.load(words, bucket);
        let slots = self.slots(lanes);
        if SORTED {
            let own = self.all >> SLOTS;
            return self.sort(lanes) == L::read(words, byte) >> shift & own;
        }
        slots.is_sorted_by_key(|&slot| slot == 0)
    }

    fn low_mask(&self) -> u32 {
        !(u32::MAX << (self.width - NIBBLE))
    }

    /// From lanes to the stored form: slots descend, and their upper nibbles, which then descend too, are one of 3876
    /// multisets.
    fn sort(&self, lanes: L) -> L {
        let [a, b, c, d] = self.slots(lanes);
        // Five comparisons sort four numbers; no branches.
        let (a, b) = (a.max(b), a.min(b));
        let (c, d) = (c.max(d), c.min(d));
        let (a, c) = (a.max(c), a.min(c));
        let (b, d) = (b.max(d), b.min(d));
        let (b, c) = (b.max(c), b.min(c));
        let (rest, mask) = (self.width - NIBBLE, self.low_mask());
        let nibble = |slot: u32| (slot >> rest) as usize;
        let rank = RANKS[0][nibble(a)] + RANKS[1][nibble(b)] + RANKS[2][nibble(c)] + RANKS[3][nibble(d)];
        let low = |slot: u32| L::from(slot & mask);
        let lows = low(a) | low(b) << rest | low(c) << (2 * rest) | low(d) << (3 * rest);
        L::from(rank.into()) | lows << RANK_BITS
    }

    /// From the stored form to lanes. A rank that does not exist, from a damaged file, has the nibbles of no fingerprint.
    #[inline(always)]
    fn unsort(&self, raw: L) -> L {
        let nibbles = u32::from(NIBBLES[(raw.low() & 0xfff) as usize]);
        let (rest, mask) = (self.width - NIBBLE, self.low_mask());
        let lane = |slot: u32| {
            let low = (raw >> (RANK_BITS + slot * rest)).low() & mask;
            L::from((nibbles >> (NIBBLE * slot) & 0xf) << rest | low) << (slot * self.width)
        };
        lane(0) | lane(1) | lane(2) | lane(3)
    }
}

/// The upper bits of a fingerprint that are sorted.
const NIBBLE: u32 = 4;

/// 3876 multisets of four nibbles fit 12 bits, where the nibbles themselves take 16.
const RANK_BITS: u32 = 12;

/// The rank of nibbles a >= b >= c >= d is `C(a+3,4) + C(b+2,3) + C(c+1,2) + d`, by the combinatorial number system: each
/// of these tables has one term.
const RANKS: [[u16; 16]; 4] = {
    let mut ranks = [[0; 16]; 4];
    let mut n = 0;
    while n < 16 {
        let m = low_u16(n as u64);
        ranks[0][n] = (m + 3) * (m + 2) / 2 * (m + 1) / 3 * m / 4;
        ranks[1][n] = (m + 2) * (m + 1) * m / 6;
        ranks[2][n] = (m + 1) * m / 2;
        ranks[3][n] = m;
        n += 1;
    }
    ranks
};

/// The nibbles of each rank, the first and largest in the lowest bits. Ranks from 3876 on do not exist.
static NIBBLES: [u16; 1 << RANK_BITS] = {
    let mut nibbles = [0; 1 << RANK_BITS];
    let (mut a, mut b, mut c, mut d) = (0, 0, 0, 0);
    let mut rank = 0;
    while rank < 3876 {
        nibbles[rank] = a | b << 4 | c << 8 | d << 12;
        // The next in the order of ranks: d runs up to c, c up to b, b up to a.
        rank += 1;
        if d < c {
            d += 1;
        } else if c < b {
            c += 1;
            d = 0;
        } else if b < a {
            b += 1;
            (c, d) = (0, 0);
        } else {
            a += 1;
            (b, c, d) = (0, 0, 0);
        }
    }
    nibbles
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::words_for;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn ranks_and_nibbles_are_inverse() {
        let term = |nibble: usize, of: usize| RANKS[nibble][of];
        let mut rank = 0;
        for a in 0..16 {
            for b in 0..=a {
                for c in 0..=b {
                    for d in 0..=c {
                        let sum = term(0, a) + term(1, b) + term(2, c) + term(3, d);
                        assert_eq!(usize::from(sum), rank, "{a} {b} {c} {d}");
                        assert_eq!(usize::from(NIBBLES[rank]), a | b << 4 | c << 8 | d << 12);
                        rank += 1;
                    }
                }
            }
        }
        assert_eq!(rank, 3876);
    }

    /// Every operation against vectors of fingerprints, and neighbours must not move.
    fn agrees_with_vectors<L: Lanes, const SORTED: bool>(width: u32) {
        const BUCKETS: u64 = 37;
        let buckets = Buckets::<L, SORTED>::new(width);
        let bits = BUCKETS * u64::from(bucket_bits(width, SORTED));
        let mut words = vec![0u64; (words_for(bits) + Buckets::<L, SORTED>::tail()) as usize];
        let mut model = vec![Vec::new(); BUCKETS as usize];
        let mut random = 1u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            ((u128::from(random ^ random >> 29) * u128::from(below)) >> 64) as u64
        };
        let most = u64::from(u32::MAX >> (32 - width));
        for step in 0..4000 {
            let bucket = next(BUCKETS);
            // Few values, so that repeats and removals of present ones are common; and now and then any.
            let values = if step % 3 == 0 { most } else { most.min(5) };
            let fingerprint = most as u32 - next(values) as u32;
            let lanes = buckets.load(&words, bucket);
            let slots: &mut Vec<u32> = &mut model[bucket as usize];
            let present = slots.contains(&fingerprint);
            assert_eq!(buckets.either_has(lanes, L::default(), fingerprint), present, "width {width}");
            assert_eq!(buckets.either_has(L::default(), lanes, fingerprint), present);
            let peeked = buckets.peek(&words, bucket);
            assert_eq!(buckets.either_has(peeked, peeked, fingerprint), present);
            assert_eq!(buckets.is_full(lanes), slots.len() == 4);
            match next(3) {
                0 if slots.len() < 4 => {
                    slots.push(fingerprint);
                    buckets.store(&mut words, bucket, buckets.with(lanes, fingerprint));
                }
                1 if !slots.is_empty() => {
                    let slot = next(slots.len() as u64) as u32;
                    let old = buckets.slot(lanes, slot);
                    let at = slots.iter().position(|&slot| slot == old).expect("what a lane holds is in");
                    slots[at] = fingerprint;
                    buckets.store(&mut words, bucket, buckets.replaced(lanes, slot, fingerprint));
                }
                _ => {
                    let without = buckets.without(lanes, L::default(), fingerprint);
                    assert_eq!(without.is_some(), present, "width {width}");
                    let second = buckets.without(L::default(), lanes, fingerprint);
                    assert_eq!(second, without.map(|(lanes, _)| (lanes, true)));
                    if let Some((lanes, is_other)) = without {
                        assert!(!is_other);
                        slots.swap_remove(slots.iter().position(|&slot| slot == fingerprint).unwrap());
                        buckets.store(&mut words, bucket, lanes);
                    }
                }
            }
            let mut found = buckets.slots(buckets.load(&words, bucket)).to_vec();
            assert!(found.is_sorted_by_key(|&slot| slot == 0), "an empty slot before a full one");
            found.retain(|&slot| slot != 0);
            found.sort_unstable();
            model[bucket as usize].sort_unstable();
            assert_eq!(found, model[bucket as usize], "width {width}");
        }
        for (bucket, slots) in model.iter().enumerate() {
            let lanes = buckets.load(&words, bucket as u64);
            assert_eq!(buckets.slots(lanes).iter().filter(|&&slot| slot != 0).count(), slots.len());
            assert!(buckets.is_written(&words, bucket as u64));
            // Fewer fingerprints are a smaller number.
            for (other, fewer) in model.iter().enumerate().filter(|(_, other)| other.len() < slots.len()) {
                assert!(buckets.load(&words, other as u64) < lanes, "{fewer:?} and {slots:?}");
            }
        }
        let tail = words.len() - Buckets::<L, SORTED>::tail() as usize;
        assert!(words[tail..].iter().all(|&word| word == 0));
    }

    #[test]
    fn buckets_of_every_width_agree_with_vectors() {
        for width in 4..=16 {
            agrees_with_vectors::<u64, false>(width);
        }
        for width in 5..=16 {
            agrees_with_vectors::<u64, true>(width);
        }
        for width in 4..=32 {
            agrees_with_vectors::<u128, false>(width);
        }
        for width in 5..=32 {
            agrees_with_vectors::<u128, true>(width);
        }
    }

    #[test]
    fn what_no_writer_gives_is_told() {
        let plain = Buckets::<u64, false>::new(8);
        for (word, written) in [
            (0, true),
            (0x01, true),
            (0x0201, true),
            (0x0403_0201, true),
            (0x0100, false),
            (0x0100_0302, false),
        ] {
            assert_eq!(plain.is_written(&[word, 0], 0), written, "{word:x}");
        }
        let sorted = Buckets::<u64, true>::new(8);
        for (word, written) in [(0, true), (3875, true), (3876, false), (0x0ffe, false), (0x0001_0000, false)]
        {
            assert_eq!(sorted.is_written(&[word, 0], 0), written, "{word:x}");
        }
    }
}
