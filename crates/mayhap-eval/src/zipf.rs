//! Records of which few come often and many rarely, as words in texts and pages in logs do.

use crate::Random;

/// Record indexes below `distinct`, without an end: index `i` comes with a chance in proportion to
/// `1 / (i + 1)^exponent`.
///
/// An exponent of 0 makes all alike; words of a text are near 1.
///
/// ```
/// use mayhap_eval::Zipf;
///
/// let records: Vec<u64> = Zipf::new(1, 100, 1.0).take(10_000).collect();
/// let times = |index| records.iter().filter(|&&record| record == index).count();
/// assert!(times(0) > 5 * times(9) && times(9) > times(99));
/// ```
#[derive(Clone, Debug)]
pub struct Zipf {
    random: Random,
    /// For each index, the chance that a record is not above it.
    up_to: Vec<f64>,
}

impl Zipf {
    /// The stream that belongs to `seed`.
    ///
    /// # Panics
    ///
    /// If there is no record to choose from, or the exponent is negative or no number.
    pub fn new(seed: u64, distinct: u64, exponent: f64) -> Self {
        assert!(distinct > 0, "a stream of no records");
        assert!(exponent >= 0.0, "the exponent is {exponent}, but must not be negative");
        // `libm`, so that every machine draws the same records.
        let weights = (1..=distinct).map(|rank| libm::pow(rank as f64, -exponent));
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        up_to.iter_mut().for_each(|chance| *chance /= sum);
        Self { random: Random::new(seed), up_to }
    }
}

impl Iterator for Zipf {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let draw = self.random.unit_f64();
        // The last chance is 1, and no draw is.
        Some(self.up_to.partition_point(|&chance| chance <= draw) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_as_often_as_their_rank_says() {
        for exponent in [0.0, 0.5, 1.0, 2.0] {
            let (distinct, records) = (50, 200_000);
            let mut times = vec![0u64; distinct];
            Zipf::new(3, distinct as u64, exponent)
                .take(records)
                .for_each(|index| times[index as usize] += 1);
            let whole: f64 = (1..=distinct).map(|rank| (rank as f64).powf(-exponent)).sum();
            for (index, &found) in times.iter().enumerate() {
                let chance = (index as f64 + 1.0).powf(-exponent) / whole;
                let expected = chance * records as f64;
                let deviation = (expected * (1.0 - chance)).sqrt();
                assert!(
                    (found as f64 - expected).abs() < 5.0 * deviation + 1.0,
                    "exponent {exponent}, record {index}: {found}, expected {expected}"
                );
            }
        }
    }

    #[test]
    fn streams_never_change() {
        let records: Vec<u64> = Zipf::new(1, 1000, 1.0).take(12).collect();
        assert_eq!(records, [243, 150, 0, 149, 1, 46, 906, 27, 0, 1, 550, 6]);
    }

    #[test]
    fn one_record_comes_always() {
        assert!(Zipf::new(2, 1, 1.0).take(100).all(|index| index == 0));
    }

    #[test]
    #[should_panic(expected = "the exponent is -1, but must not be negative")]
    fn a_negative_exponent_is_refused() {
        Zipf::new(0, 10, -1.0);
    }
}
