//! Many keys at once, by the methods of a type that hash keys themselves.

use std::fmt::Debug;

use mayhap::{
    AnyFilter, Blocked, Counting, Dleft, Filter, Insert, Insertion, Key, Scalable, Shifting, Spectral,
    Summing, Windowed, encode,
};

/// The methods of a type that no trait of the library has: those that take keys of any kind.
pub(crate) trait Typed: AnyFilter + Filter + Insert + Clone + PartialEq + Debug {
    /// Whether old keys make room for new ones.
    const FORGETS: bool;
    fn insert_one(&mut self, key: impl Key) -> Insertion;
    fn insert_many<K: Key>(&mut self, keys: &[K]);
    fn holds(&self, key: impl Key) -> bool;
    fn holds_many<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>);
    /// The counts of keys one by one, and behind `counts` those of all at once, if the type counts.
    fn counts<K: Key + Copy>(&self, keys: &[K], counts: &mut Vec<u64>) -> Option<Vec<u64>>;
}

macro_rules! typed {
    ($type:ty, $forgets:literal, |$inserted:ident| $unwrap:expr, |$filter:ident, $keys:ident, $all:ident| $counts:expr) => {
        impl Typed for $type {
            const FORGETS: bool = $forgets;
            fn insert_one(&mut self, key: impl Key) -> Insertion {
                let $inserted = self.insert(key);
                $unwrap
            }
            fn insert_many<K: Key>(&mut self, keys: &[K]) {
                let $inserted = self.insert_all(keys);
                $unwrap
            }
            fn holds(&self, key: impl Key) -> bool {
                self.contains(key)
            }
            fn holds_many<K: Key>(&self, keys: &[K], hits: &mut Vec<bool>) {
                self.contains_each(keys, hits);
            }
            fn counts<K: Key + Copy>(&self, $keys: &[K], $all: &mut Vec<u64>) -> Option<Vec<u64>> {
                let $filter = self;
                $counts
            }
        }
    };
    ($type:ty, $forgets:literal, |$inserted:ident| $unwrap:expr) => {
        typed!($type, $forgets, |$inserted| $unwrap, |_filter, _keys, _all| None);
    };
    ($type:ty, counts, |$inserted:ident| $unwrap:expr) => {
        typed!($type, false, |$inserted| $unwrap, |filter, keys, all| {
            filter.count_each(keys, all);
            Some(keys.iter().map(|&key| filter.count(key)).collect())
        });
    };
}

typed!(Blocked, false, |inserted| inserted);
typed!(Counting, counts, |inserted| inserted);
typed!(Dleft, counts, |inserted| inserted.unwrap());
typed!(Scalable, false, |inserted| inserted.unwrap());
typed!(Shifting, false, |inserted| inserted);
typed!(Spectral, counts, |inserted| inserted);
typed!(Windowed, true, |inserted| inserted);

fn bytes_of<K: Key>(keys: &[K]) -> Vec<Vec<u8>> {
    keys.iter().map(|key| key.with_bytes(<[u8]>::to_vec)).collect()
}

/// One by one, by typed slices, by digests and by bytes: one filter and one set of answers.
pub(crate) fn equal_single<F: Typed, K: Key + Copy>(empty: &F, keys: &[K], absent: &[K]) {
    let file = |filter: &F| encode(filter, Summing::Payload).to_vec();
    let digests = |keys: &[K]| keys.iter().map(|&key| empty.hashing().digest_of(key)).collect::<Vec<_>>();
    let mut single = empty.clone();
    let outcomes: Vec<Insertion> = keys.iter().map(|&key| single.insert_one(key)).collect();
    let expected_file = file(&single);
    let mut all = empty.clone();
    all.insert_many(keys);
    assert!(all == single && file(&all) == expected_file, "{empty:?}: insert_all differs from insert");
    assert!(all.report() == single.report(), "{empty:?}: insert_all reports something else");
    let (mut by_digest, mut told) = (empty.clone(), Vec::new());
    by_digest.insert_batch(&digests(keys), &mut told).unwrap();
    assert!(by_digest == single && told == outcomes, "{empty:?}: insert_batch differs from insert");
    let bytes = bytes_of(keys);
    let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let (mut by_bytes, mut told) = (empty.clone(), Vec::new());
    by_bytes.insert_keys(&bytes, &mut told).unwrap();
    assert!(by_bytes == single && told == outcomes, "{empty:?}: insert_keys differs from insert");

    let asked: Vec<K> = absent.iter().chain(keys).copied().collect();
    let expected: Vec<bool> = asked.iter().map(|&key| single.holds(key)).collect();
    assert!(F::FORGETS || !expected[absent.len()..].contains(&false), "{empty:?}: keys were denied");
    // Answers are appended.
    let mut hits = vec![true, false];
    single.holds_many(&asked, &mut hits);
    assert!(
        hits[..2] == [true, false] && hits[2..] == expected,
        "{empty:?}: contains_each differs from contains"
    );
    hits.clear();
    single.contains_batch(&digests(&asked), &mut hits);
    assert!(hits == expected, "{empty:?}: contains_batch differs from contains");
    let bytes = bytes_of(&asked);
    let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    hits.clear();
    single.contains_keys(&bytes, &mut hits);
    assert!(hits == expected, "{empty:?}: contains_keys differs from contains");

    let mut counts = vec![7];
    let Some(expected_counts) = single.counts(&asked, &mut counts) else { return };
    assert!(counts[0] == 7 && counts[1..] == expected_counts, "{empty:?}: count_each differs from count");
    let found = expected.iter().zip(&expected_counts).all(|(&hit, &count)| hit == (count > 0));
    assert!(found, "{empty:?}: contains differs from count");
    counts.clear();
    single.as_count().unwrap().count_batch(&digests(&asked), &mut counts);
    assert!(counts == expected_counts, "{empty:?}: count_batch differs from count");
}

/// In order, of every length around a batch, and no further ahead than a batch.
#[test]
fn an_iterator_of_answers_agrees_with_single_lookups() {
    let mut filter = Blocked::new(1000, 0.1).unwrap();
    filter.insert_all(&(0..500u64).collect::<Vec<_>>());
    for length in [0, 1, 255, 256, 257, 512, 1000] {
        let keys = || (250..250 + length).map(|key: u64| key * 3 % 1000);
        let expected: Vec<(u64, bool)> = keys().map(|key| (key, filter.contains(key))).collect();
        let answers = filter.contains_iter(keys());
        assert_eq!(answers.size_hint(), (length as usize, Some(length as usize)));
        assert!(answers.eq(expected.iter().copied()), "{length} keys");
        let half =
            |present: bool| expected.iter().filter(move |(_, is_in)| *is_in == present).map(|(key, _)| *key);
        assert!(filter.filter_present(keys()).eq(half(true)), "{length} keys");
        assert!(filter.filter_absent(keys()).eq(half(false)), "{length} keys");
    }
    let taken = std::cell::Cell::new(0);
    let endless = std::iter::repeat_with(|| {
        taken.set(taken.get() + 1);
        "key"
    });
    assert_eq!(filter.contains_iter(endless).take(3).count(), 3);
    assert_eq!(taken.get(), 256);
}
