//! A stream of records in which some are repeats of earlier ones, for dedup.

use crate::Random;

/// Record indexes with a given share of repeats, spread evenly over the stream.
///
/// The number of repeats is exact, not only expected, so [`distinct`](Self::distinct) is what a perfect dedup
/// keeps. New records count up from 0: a record is new exactly when its index exceeds all before it. A repeat
/// is drawn from all earlier distinct records with equal chance. Each index is meant for
/// [`KeyKind::write_key`](crate::KeyKind::write_key).
///
/// ```
/// use mayhap_eval::Stream;
///
/// let stream = Stream::new(1, 1_000, 0.3);
/// assert_eq!(stream.distinct(), 700);
/// let kept: std::collections::BTreeSet<u64> = stream.collect();
/// assert_eq!(kept.len(), 700);
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    random: Random,
    distinct: u64,
    new_left: u64,
    repeats_left: u64,
}

impl Stream {
    /// A stream of `records` records, of which the share `repeats`, rounded to whole records, are repeats.
    ///
    /// The first record cannot repeat anything, so at most `records - 1` are repeats.
    ///
    /// # Panics
    ///
    /// If `repeats` is not in `0.0..=1.0`.
    pub fn new(seed: u64, records: u64, repeats: f64) -> Self {
        assert!((0.0..=1.0).contains(&repeats), "the share of repeats is {repeats}, but must be from 0 to 1");
        let repeats = (records as f64 * repeats).round() as u64;
        let repeats = repeats.min(records.saturating_sub(1));
        let distinct = records - repeats;
        Self { random: Random::new(seed), distinct, new_left: distinct, repeats_left: repeats }
    }

    /// How many distinct records the whole stream has.
    pub const fn distinct(&self) -> u64 {
        self.distinct
    }
}

impl Iterator for Stream {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let left = self.new_left + self.repeats_left;
        if left == 0 {
            return None;
        }
        // Selection sampling (Knuth, TAOCP 2, 3.4.2, algorithm S): every arrangement of the exact number of
        // repeats is equally likely, and nothing has to be stored.
        let seen = self.distinct - self.new_left;
        if seen > 0 && self.random.below(left) < self.repeats_left {
            self.repeats_left -= 1;
            Some(self.random.below(seen))
        } else {
            self.new_left -= 1;
            Some(seen)
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.new_left + self.repeats_left);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_exact_and_repeat_something() {
        for (records, share, distinct) in
            [(0, 0.5, 0), (1, 1.0, 1), (10, 1.0, 1), (10, 0.0, 10), (1_000, 0.3, 700), (7, 0.5, 3)]
        {
            let stream = Stream::new(8, records, share);
            assert_eq!(stream.distinct(), distinct);
            assert_eq!(stream.size_hint(), (records as usize, Some(records as usize)));
            let mut seen = 0;
            let mut given = 0;
            for index in stream {
                assert!(index <= seen, "{index} came before {seen}");
                seen += u64::from(index == seen);
                given += 1;
            }
            assert_eq!((given, seen), (records, distinct));
        }
    }

    #[test]
    fn repeats_are_spread_over_the_stream() {
        let records: Vec<u64> = Stream::new(9, 100_000, 0.3).collect();
        let new_in_first_half = 1 + records[..50_000].iter().max().unwrap();
        // Hypergeometric: 35000 expected, deviation sqrt(50000 * 0.3 * 0.7 * 0.5) = 72.
        assert!(new_in_first_half.abs_diff(35_000) < 360, "{new_in_first_half}");
    }

    #[test]
    fn streams_never_change() {
        let records: Vec<u64> = Stream::new(1, 20, 0.5).collect();
        assert_eq!(records, [0, 1, 2, 2, 1, 3, 0, 3, 0, 0, 2, 4, 5, 6, 5, 2, 4, 7, 8, 9]);
        assert_ne!(records, Stream::new(2, 20, 0.5).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "the share of repeats is 30, but must be from 0 to 1")]
    fn a_percentage_is_refused() {
        Stream::new(0, 10, 30.0);
    }
}
