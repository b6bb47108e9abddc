//! Blocked Bloom filters: a mixture over blocks.

use alloc::vec;
use alloc::vec::Vec;

use crate::narrow::{index, low_u32, whole_usize};

/// What a key does in its block: one bit in each lane of each round.
///
/// A line has 512 bits. A full round sets one bit in each of its 8 words of 64 bits, a half round one in each
/// of its 4 pairs of words. A split block has 256 bits and 8 lanes of 32 bits, one bit in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockShape {
    /// A line with so many full rounds and perhaps a half one.
    Line {
        /// Full rounds.
        full: u32,
        /// Whether there is a half round.
        half: bool,
    },
    /// A split block.
    Split,
}

impl BlockShape {
    /// Bits of a block.
    pub const fn bits(self) -> u64 {
        match self {
            Self::Line { .. } => 512,
            Self::Split => 256,
        }
    }

    /// Bits that a key sets.
    pub const fn probes(self) -> u32 {
        match self {
            Self::Line { full, half } => 8 * full + if half { 4 } else { 0 },
            Self::Split => 8,
        }
    }

    /// Chance that one key leaves a given bit of its block alone.
    fn leaves(self) -> f64 {
        match self {
            Self::Line { full, half } => {
                libm::pow(63.0 / 64.0, f64::from(full)) * if half { 127.0 / 128.0 } else { 1.0 }
            }
            Self::Split => 31.0 / 32.0,
        }
    }
}

/// Chances `g(j)` that a block which holds `j` keys admits an absent one, for `j` below `len`: exact.
///
/// Lanes are independent once the number of keys is known, since every key sets one bit in each. With several
/// rounds the lanes' occupancy is followed throw by throw, for words and half rounds together.
///
/// Source: Putze, Sanders, Singler, *Cache-, Hash- and Space-Efficient Bloom Filters*, 2007; occupancy as in
/// [`bloom_fpr_exact`](super::bloom_fpr_exact).
pub fn block_rates(shape: BlockShape, len: usize) -> Vec<f64> {
    // One bit a lane: the share of ones of a lane, to the power of the lanes.
    let single = |lane: f64, lanes: f64| {
        (0..len).map(|j| libm::pow(-libm::expm1(j as f64 * libm::log1p(-1.0 / lane)), lanes)).collect()
    };
    match shape {
        BlockShape::Split => single(32.0, 8.0),
        BlockShape::Line { full: 1, half: false } => single(64.0, 8.0),
        BlockShape::Line { full: 0, .. } => single(128.0, 4.0),
        BlockShape::Line { full, half } => pair_rates(full, half, len),
    }
}

/// `g(j)` for several rounds, from the joint occupancy of the two words of a pair.
fn pair_rates(full: u32, half: bool, len: usize) -> Vec<f64> {
    const SIDE: usize = 65;
    let share = |ones: usize| ones as f64 / 64.0;
    // What a pair with so many ones in its words admits.
    let mut admits = vec![[0.0; SIDE]; SIDE];
    for (x, row) in admits.iter_mut().enumerate() {
        for (y, admits) in row.iter_mut().enumerate() {
            let words = libm::pow(share(x) * share(y), f64::from(full));
            *admits = words * if half { (share(x) + share(y)) / 2.0 } else { 1.0 };
        }
    }
    // chance[x][y]: so many ones in the lower and in the upper word.
    let mut chance = vec![[0.0; SIDE]; SIDE];
    chance[0][0] = 1.0;
    let mut rates = Vec::with_capacity(len);
    for _ in 0..len {
        let pairs = chance.iter().flatten().zip(admits.iter().flatten());
        let admitted: f64 = pairs.map(|(chance, admits)| chance * admits).sum();
        rates.push(libm::pow(admitted, 4.0));
        // One more key. From the top down, so that the smaller counts are still those before the throw.
        for _ in 0..full {
            for x in (0..SIDE).rev() {
                let below = if x > 0 { chance[x - 1] } else { [0.0; SIDE] };
                let enters = if x > 0 { 1.0 - share(x - 1) } else { 0.0 };
                for (chance, below) in chance[x].iter_mut().zip(below) {
                    *chance = *chance * share(x) + below * enters;
                }
            }
            for row in &mut chance {
                for y in (0..SIDE).rev() {
                    let from_below = if y > 0 { row[y - 1] * (1.0 - share(y - 1)) } else { 0.0 };
                    row[y] = row[y] * share(y) + from_below;
                }
            }
        }
        if half {
            for x in (0..SIDE).rev() {
                for y in (0..SIDE).rev() {
                    let lower = if x > 0 { chance[x - 1][y] * (1.0 - share(x - 1)) } else { 0.0 };
                    let upper = if y > 0 { chance[x][y - 1] * (1.0 - share(y - 1)) } else { 0.0 };
                    chance[x][y] = chance[x][y] * (share(x) + share(y)) / 2.0 + (lower + upper) / 2.0;
                }
            }
        }
    }
    rates
}

/// So many entries of [`block_rates`] cover all loads that occur at a mean of `mean` keys per block.
pub fn block_loads(mean: f64) -> usize {
    let mean = mean.clamp(0.0, 600.0);
    whole_usize(mean + 12.0 * libm::sqrt(mean)) + 32
}

/// False-positive rate of a blocked filter of so many blocks with `n` keys: the mean of [`block_rates`] over
/// the binomial load of a block. Sizing by the classic formula instead misses the wanted rate, because
/// blocks with more keys than the mean err more than the others gain.
///
/// Above a mean of 600 keys per block the filter is full: 1. `n <= 0` gives 0.
///
/// Source: Putze, Sanders, Singler 2007.
pub fn blocked_fpr(rates: &[f64], blocks: u64, n: f64) -> f64 {
    let share = 1.0 / blocks.max(1) as f64;
    let mean = n * share;
    if n.is_nan() || n <= 0.0 {
        return 0.0;
    }
    if mean > 600.0 {
        return 1.0;
    }
    if blocks <= 1 {
        return rates.get(whole_usize(n)).or(rates.last()).copied().unwrap_or(1.0);
    }
    let mut chance = libm::exp(n * libm::log1p(-share));
    let mut rate = 0.0;
    for j in 0..block_loads(mean) {
        rate += chance * rates.get(j).or(rates.last()).copied().unwrap_or(1.0);
        let left = n - j as f64;
        if left <= 0.0 {
            break;
        }
        chance *= left / (j + 1) as f64 * share / (1.0 - share);
    }
    rate.min(1.0)
}

/// False-positive rate of blocks with these bits, 64 to a word: that of the filter as it is, whatever keys have set them.
///
/// An absent key meets each block as often as any other, and there a one in each lane with a chance of the lane's share of ones.
/// The mean of that over the blocks is what [`blocked_fpr`] expects before the bits are known: of few blocks some are fuller
/// than others by chance, and those say most of the yeses. No words give 0.
pub fn blocks_fpr(shape: BlockShape, words: &[u64]) -> f64 {
    let admitted = |block: &[u64]| -> f64 {
        match shape {
            BlockShape::Line { full, half } => {
                let share = |word: &u64| f64::from(word.count_ones()) / 64.0;
                let words: f64 = block.iter().map(share).product();
                let (lower, upper) = block.split_at(block.len() / 2);
                let pair = |(lower, upper): (&u64, &u64)| (share(lower) + share(upper)) / 2.0;
                let pairs: f64 = if half { lower.iter().zip(upper).map(pair).product() } else { 1.0 };
                libm::pow(words, f64::from(full)) * pairs
            }
            BlockShape::Split => {
                let share = |lane: u64| f64::from(low_u32(lane).count_ones()) / 32.0;
                block.iter().map(|&word| share(word) * share(word >> 32)).product()
            }
        }
    };
    let blocks = words.chunks_exact(index(shape.bits() / 64));
    let count = blocks.len().max(1) as f64;
    blocks.map(admitted).sum::<f64>() / count
}

/// Least number of blocks that keep `n` keys at or below the rate `p`, or `2^41` if it takes more: beyond any size
/// that a filter may have.
pub fn blocked_blocks(shape: BlockShape, n: u64, p: f64) -> u64 {
    // No shape is smaller than the information bound; so no block holds more keys than this.
    let most = shape.bits() as f64 / libm::log2(1.0 / p.clamp(1e-12, 0.9)).max(0.15);
    let rates = block_rates(shape, block_loads(most));
    let (mut low, mut high) = (0, 1 << 41);
    // Too few up to `low`, enough from `high` on.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if blocked_fpr(&rates, middle, n as f64) <= p { high = middle } else { low = middle }
    }
    high
}

/// Most keys that so many blocks keep at or below the rate `p`.
pub fn blocked_capacity(shape: BlockShape, blocks: u64, p: f64) -> u64 {
    let most = shape.bits() as f64 / libm::log2(1.0 / p.clamp(1e-12, 0.9)).max(0.15);
    let rates = block_rates(shape, block_loads(most));
    let (mut low, mut high) = (0, blocks.saturating_mul(600));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if blocked_fpr(&rates, blocks, middle as f64) <= p { low = middle } else { high = middle }
    }
    low
}

/// Distinct keys in a blocked filter, from its ones; infinite when all are set.
///
/// A bit stays 0 with the chance `(1 - (1 - q)/blocks)^n`, where `q` is the chance that a key of the same block
/// leaves it alone.
///
/// Source: Swamidass and Baldi 2007, for blocks.
pub fn blocked_estimated_len(shape: BlockShape, blocks: u64, ones: u64) -> f64 {
    let fill = ones as f64 / (blocks.max(1) as f64 * shape.bits() as f64);
    libm::log1p(-fill.min(1.0)) / libm::log1p(-(1.0 - shape.leaves()) / blocks.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Sizes for a rate, computed independently with the joint occupancy of the two words of a pair (a short
    // numerical program in another language), and the values of the literature for the split block.
    #[test]
    fn blocked_filters_need_the_bits_that_the_mixture_says() {
        let line = |full, half| BlockShape::Line { full, half };
        let cases = [
            (line(0, true), 0.1, 4.89),
            (line(0, true), 0.03, 7.56),
            (line(1, false), 0.01, 10.10),
            (line(1, false), 0.001, 15.72),
            (line(1, true), 1e-4, 22.09),
            (line(1, true), 1e-5, 30.08),
            (line(2, false), 1e-5, 30.00),
            (line(2, false), 1e-6, 39.01),
            (line(2, true), 1e-7, 50.32),
            (BlockShape::Split, 0.1, 5.99),
            (BlockShape::Split, 0.01, 10.53),
            (BlockShape::Split, 0.001, 16.89),
        ];
        for (shape, p, bits) in cases {
            let n = 10_000_000;
            let blocks = blocked_blocks(shape, n, p);
            let found = (blocks * shape.bits()) as f64 / n as f64;
            assert!((found - bits).abs() < 0.011, "{shape:?} at {p}: {found} bits per key, expected {bits}");
            let capacity = blocked_capacity(shape, blocks, p);
            assert!((n..n + n / 10_000).contains(&capacity), "{shape:?} at {p}: {capacity}");
        }
    }

    #[test]
    fn blocked_rates_have_their_ends_and_no_panics() {
        let shape = BlockShape::Line { full: 1, half: true };
        let rates = block_rates(shape, 700);
        assert!(rates[0] == 0.0 && rates.is_sorted() && rates[699] <= 1.0);
        for n in [f64::NAN, -1.0, 0.0] {
            assert_eq!(blocked_fpr(&rates, 10, n), 0.0);
        }
        assert_eq!(blocked_fpr(&rates, 10, f64::INFINITY), 1.0);
        assert_eq!(blocked_fpr(&rates, 1, 5.0), rates[5]);
        assert!(blocked_fpr(&[], 10, 5.0) <= 1.0);
        for p in [f64::NAN, 0.0, 1.0, 1e-300] {
            assert!(blocked_blocks(shape, u64::MAX, p) >= 1 && blocked_capacity(shape, 1, p) <= 600);
        }
        let estimated = blocked_estimated_len(shape, 1000, 1000 * 512);
        assert!(estimated.is_infinite() && estimated > 0.0);
        assert_eq!(blocked_estimated_len(shape, 1000, 0), 0.0);
    }
}
