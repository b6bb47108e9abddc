//! Pseudo-random numbers that are the same on every machine and in every version.
//!
//! Written here and not imported, because pinned keys and recorded experiments depend on every bit of them.

/// The increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64: one addition and one mixing step per number, and any position can be had at once.
///
/// Steele, Lea, Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014, with the constants of
/// Vigna's public-domain `splitmix64.c`.
///
/// ```
/// use mayhap_eval::SplitMix64;
///
/// let mut numbers = SplitMix64::new(7);
/// assert_eq!(numbers.next_u64(), SplitMix64::at(7, 0));
/// assert_eq!(numbers.next_u64(), SplitMix64::at(7, 1));
/// ```
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The sequence that belongs to `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Output number `index` of the sequence of `seed`.
    ///
    /// For a fixed seed this is a bijection of `index`: `GAMMA` is odd and the mixing step can be undone.
    /// Distinct indexes therefore give distinct numbers, which the key generators rely on.
    pub const fn at(seed: u64, index: u64) -> u64 {
        mix(seed.wrapping_add(GAMMA.wrapping_mul(index.wrapping_add(1))))
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }
}

/// The output function of SplitMix64: a bijection, because each line of it is one.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// xoshiro256++: the general generator, for draws in sequence.
///
/// Blackman, Vigna, *Scrambled Linear Pseudorandom Number Generators*, ACM TOMS 2021. The state is filled by
/// [`SplitMix64`], as the authors advise.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The sequence that belongs to `seed`.
    pub const fn new(seed: u64) -> Self {
        // SplitMix64 gives each number once per period, so at most one word is zero: never the all-zero
        // state, from which xoshiro could not leave.
        let mut fill = SplitMix64::new(seed);
        Self { state: [fill.next_u64(), fill.next_u64(), fill.next_u64(), fill.next_u64()] }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..bound`, each with exactly the same chance.
    ///
    /// Lemire, *Fast Random Integer Generation in an Interval*, ACM TOMACS 2019: the high half of a product,
    /// and a redraw in the rare case that would favour some results.
    ///
    /// # Panics
    ///
    /// If `bound` is 0: there is no such number.
    pub const fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below 0");
        // 2^64 mod bound: that many products are one too many.
        let surplus = bound.wrapping_neg() % bound;
        loop {
            let product = self.next_u64() as u128 * bound as u128;
            if product as u64 >= surplus {
                return (product >> 64) as u64;
            }
        }
    }

    /// A multiple of 2^-53 in `[0, 1)`, each with the same chance.
    pub const fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_the_published_numbers() {
        let mut numbers = SplitMix64::new(1_234_567);
        for expected in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ] {
            assert_eq!(numbers.next_u64(), expected);
        }
    }

    #[test]
    fn xoshiro_gives_the_published_numbers() {
        let mut numbers = Random { state: [1, 2, 3, 4] };
        for expected in [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
            14_011_001_112_246_962_877,
            12_406_186_145_184_390_807,
            15_849_039_046_786_891_736,
            10_450_023_813_501_588_000,
        ] {
            assert_eq!(numbers.next_u64(), expected);
        }
    }

    #[test]
    fn seeding_takes_the_first_four_numbers_of_splitmix() {
        assert_eq!(Random::new(9).state, [0, 1, 2, 3].map(|i| SplitMix64::at(9, i)));
    }

    #[test]
    fn below_stays_below_and_is_even() {
        let mut numbers = Random::new(3);
        let mut seen = [0u32; 6];
        for _ in 0..600_000 {
            seen[numbers.below(6) as usize] += 1;
        }
        // Each count has deviation sqrt(600000 * 1/6 * 5/6) = 289; the seed is fixed, the bound is 5 of them.
        assert!(seen.iter().all(|&count| count.abs_diff(100_000) < 1_445), "{seen:?}");
        assert_eq!(numbers.below(1), 0);
    }

    #[test]
    fn below_redraws_what_would_favour_small_results() {
        // With a bound of 3 * 2^62 a method without redraws gives every third result twice as often: the
        // results divisible by 3 would be half of all, not a third.
        let bound = 3 << 62;
        let mut numbers = Random::new(4);
        let divisible = (0..300_000).filter(|_| numbers.below(bound).is_multiple_of(3)).count();
        // Deviation sqrt(300000 * 2/9) = 258.
        assert!(divisible.abs_diff(100_000) < 1_290, "{divisible}");
    }

    #[test]
    #[should_panic(expected = "no number is below 0")]
    fn below_zero_is_refused() {
        Random::new(0).below(0);
    }

    #[test]
    fn unit_stays_in_its_interval_and_fills_it() {
        let mut numbers = Random::new(5);
        let draws: Vec<f64> = (0..100_000).map(|_| numbers.unit_f64()).collect();
        assert!(draws.iter().all(|&u| (0.0..1.0).contains(&u)));
        // The mean has deviation sqrt(1/12/100000) = 0.00091.
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.0046, "{mean}");
    }
}
