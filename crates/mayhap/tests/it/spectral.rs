//! The family `spectral`: what the experiments do not check, and crafted files.
//!
//! The experiments have fixed seeds and enough runs that the mean share of wrong estimates has a standard deviation of
//! 5% of itself at most. They pass within 15% of the expected values, and minimum selection within 8% of the rate of
//! false positives.

use mayhap::{
    AnyFilter, Bloom, Combine, Count, CountingRule, DecodeError, Error, Hashing, Insertion, Mismatch,
    Removal, Remove, Secret, Spec, Spectral, Width, combine, open,
};
use mayhap_eval::{ABSENT, Zipf};

use CountingRule::{MinimalIncrease, MinimumSelection, RecurringMinimum};

use crate::{crafted, many};

/// So many counters by this rule; of variable width if `counter_bits` is `None`.
fn sized(cells: u64, probes: u32, rule: CountingRule, counter_bits: Option<u32>) -> Spec {
    let width = u64::from(counter_bits.unwrap_or(4));
    let bits = match rule {
        RecurringMinimum => cells * width + cells.div_ceil(2) * width + cells,
        _ => cells * width,
    };
    let spec = Spec::new().with_bits(bits).with_probes(probes).with_counting_rule(rule);
    counter_bits.map_or(spec, |bits| spec.with_counter_bits(bits))
}

fn filled(spec: &Spec, keys: impl IntoIterator<Item = u64>) -> Spectral {
    let mut filter = Spectral::from_spec(spec).unwrap();
    filter.insert_all(&keys.into_iter().collect::<Vec<_>>());
    filter
}

const PROBES: u32 = 5;

/// Why recurring minimum is not the default: with the second filter taken out of the same counters it is worse than no
/// second filter.
#[test]
fn a_second_filter_pays_only_if_its_memory_is_extra() {
    let wrong = |rule, cells: u64| -> usize {
        let of_stream = |seed| {
            let stream: Vec<u64> = Zipf::new(seed, 1000, 0.5).take(100_000).collect();
            let mut truth = vec![0u64; 1000];
            stream.iter().for_each(|&key| truth[key as usize] += 1);
            let filter =
                filled(&sized(cells, PROBES, rule, None).with_hashing(Hashing::Xxh3 { seed }), stream);
            (0..1000u64).filter(|&key| filter.count(key) != truth[key as usize]).count()
        };
        (0..10).map(of_stream).sum()
    };
    let (selection, split) = (wrong(MinimumSelection, 7143), wrong(RecurringMinimum, 2 * 7143 / 3));
    assert!(2 * split > 3 * selection, "wrong counts: {selection} without a second filter, {split} with one");
}

#[test]
fn all_that_was_inserted_leaves() {
    for counter_bits in [None, Some(16), Some(32)] {
        let spec = sized(7143, PROBES, MinimumSelection, counter_bits);
        let stream: Vec<u64> = Zipf::new(1, 1000, 1.0).take(50_000).collect();
        let mut filter = filled(&spec, stream.iter().copied());
        assert_eq!(filter.overflowed() > 100, counter_bits.is_none());
        assert!(stream.iter().all(|&key| filter.remove(key).unwrap().is_removed()));
        assert!((0..filter.cells()).all(|place| filter.counter(place) == Some(0)));
        assert_eq!((filter.fill(), filter.overflowed(), filter.saturated()), (0.0, 0, 0));
        let empty = Spectral::from_spec(&spec).unwrap();
        assert!(filter == empty);
        assert_eq!(crafted::payload(&filter.to_bytes()), crafted::payload(&empty.to_bytes()));
    }
}

/// Whether a key is in is asked of the same positions as in a Bloom filter, so that the rate of false positives is that
/// of one: by every rule, the counters above 0 are its ones.
#[test]
fn its_false_positives_are_those_of_a_bloom_filter() {
    let stream: Vec<u64> = Zipf::new(6, 2000, 1.0).take(20_000).collect();
    for hashing in [Hashing::Xxh3 { seed: 1 }, Hashing::Keyed(Secret::new([1; 16]))] {
        let mut bloom = Bloom::from_spec(&Spec::sized(1500, 0.01).with_hashing(hashing)).unwrap();
        bloom.extend(stream.iter().copied());
        for rule in CountingRule::ALL {
            let spec = sized(bloom.bits(), bloom.probes(), rule, None).with_hashing(hashing);
            let filter = filled(&spec, stream.iter().copied());
            let ones = (0..bloom.bits()).filter(|&place| filter.counter(place).unwrap() > 0);
            assert!(ones.eq((0..bloom.bits()).filter(|&place| bloom.contains_positions(&[place]).unwrap())));
            assert_eq!((filter.fpr(), filter.estimated_len()), (bloom.fpr(), bloom.estimated_len()));
            assert!((ABSENT..ABSENT + 20_000).all(|key| filter.contains(key) == bloom.contains(key)));
        }
    }
}

#[test]
fn it_takes_four_times_the_bits_of_a_bloom_filter_and_more_for_a_second_one() {
    let plan = mayhap::family("spectral").unwrap().plan;
    let asked = Spec::sized(1_000_000, 0.01);
    let bits = |rule| plan(&asked.with_counting_rule(rule)).unwrap().bits;
    assert_eq!((plan(&asked).unwrap().bits, bits(MinimumSelection)), (4 * 9_585_059, 4 * 9_585_059));
    assert_eq!(bits(RecurringMinimum), 4 * 9_585_059 + 4 * 4_792_530 + 9_585_059);
    assert_eq!(plan(&asked.with_counter_bits(32)).unwrap().bits, 32 * 9_585_059);
}

// What each rule can.

#[test]
fn each_rule_offers_what_it_can_and_no_more() {
    for (rule, removes, merges) in
        [(MinimumSelection, true, true), (MinimalIncrease, false, true), (RecurringMinimum, true, false)]
    {
        let mut filter = filled(&sized(1000, 5, rule, None), 0..10);
        let (can, before) = (filter.can(), filter.to_bytes());
        assert_eq!((can.removes, can.merges, can.counts, can.inserts), (removes, merges, true, true));
        assert_eq!((filter.as_remove().is_some(), filter.as_merge().is_some()), (removes, merges));
        assert!(
            filter.as_intersect().is_none() && filter.as_subtract().is_none() && filter.as_fold().is_none()
        );
        if rule == CountingRule::default() {
            assert_eq!(filter.family().can, can);
        }
        if !removes {
            let error = filter.remove(3u64).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the family spectral cannot remove by the rule minimal-increase; by minimum-selection it can"
            );
            let digest = filter.hashing().digest_of(3u64);
            assert!(!filter.remove_digest(digest).is_removed());
        }
        if !merges {
            let other = filter.clone();
            assert_eq!(filter.merge(&other), Err(Mismatch::Unmergeable { rule: "recurring-minimum" }));
            let error = combine(&mut filter, &other, Combine::Union).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the family spectral cannot merge by the rule recurring-minimum; by minimum-selection it can"
            );
        }
        assert_eq!(
            filter.unsupported("intersect"),
            Error::Unsupported { family: "spectral", operation: "intersect" }
        );
        assert!(filter.to_bytes() == before, "a refusal changed something");
        // What it is stays in its file.
        let mut opened = open(before.into(), None).unwrap();
        assert_eq!((opened.as_remove().is_some(), opened.as_merge().is_some()), (removes, merges));
        assert_eq!(opened.details().counters.unwrap().rule, Some(rule));
    }
    assert_eq!(Spectral::new(10, 0.01).unwrap().rule(), MinimalIncrease);
    assert_eq!(Spectral::new(10, 0.01).unwrap().width(), Width::Variable);
}

#[test]
fn merging_adds_and_by_minimal_increase_says_that_it_is_worse() {
    let stream: Vec<u64> = Zipf::new(4, 1000, 1.0).take(40_000).collect();
    let (left, right) = stream.split_at(20_000);
    for rule in [MinimumSelection, MinimalIncrease] {
        let spec = sized(7143, PROBES, rule, None);
        let whole = filled(&spec, stream.iter().copied());
        let mut merged = filled(&spec, left.iter().copied());
        merged.merge(&filled(&spec, right.iter().copied())).unwrap();
        assert_eq!(merged.is_degraded(), rule == MinimalIncrease);
        assert_eq!(merged.details().counters.unwrap().degraded, rule == MinimalIncrease);
        assert_eq!((merged == whole, merged.fill()), (rule == MinimumSelection, whole.fill()));
        assert!((0..1000).all(|key: u64| {
            let truth = stream.iter().filter(|&&other| other == key).count() as u64;
            merged.count(key) >= truth
        }));
        let again = Spectral::from_bytes(&merged.to_bytes()).unwrap();
        assert!(again == merged && again.is_degraded() == merged.is_degraded());
        // Nothing and something is no worse than something.
        let mut nothing = Spectral::from_spec(&spec).unwrap();
        nothing.merge(&whole).unwrap();
        nothing.merge(&Spectral::from_spec(&spec).unwrap()).unwrap();
        assert!(nothing == whole && !nothing.is_degraded());
        nothing.merge(&merged).unwrap();
        assert_eq!(nothing.is_degraded(), rule == MinimalIncrease);
        nothing.clear();
        assert!(!nothing.is_degraded() && nothing == Spectral::from_spec(&spec).unwrap());
    }
}

#[test]
fn fixed_counters_stop_at_their_top_and_stay_there() {
    for rule in CountingRule::ALL {
        let mut filter = Spectral::from_spec(&sized(1000, 5, rule, Some(4))).unwrap();
        filter.insert_times("often", 100);
        assert_eq!((filter.count("often"), filter.ceiling()), (15, 15));
        assert!(filter.saturated() >= 5, "{rule:?}: {}", filter.saturated());
        if filter.can().removes {
            for times in [1, 50, 100] {
                assert_eq!(filter.remove_times("often", times), Ok(Removal::Stuck), "{rule:?}, {times}");
            }
            assert_eq!(filter.count("often"), 15);
        }
        let mut wide = Spectral::from_spec(&sized(1000, 5, rule, Some(32))).unwrap();
        wide.insert_times("often", 100);
        assert_eq!((wide.count("often"), wide.saturated(), wide.ceiling()), (100, 0, u64::from(u32::MAX)));
        let mut any = Spectral::from_spec(&sized(1000, 5, rule, None)).unwrap();
        any.insert_times("often", 1 << 40);
        assert_eq!((any.count("often"), any.saturated(), any.ceiling()), (1 << 40, 0, u64::MAX));
        assert!(any.overflowed() >= 5);
        any.insert_times("often", u64::MAX);
        assert_eq!((any.count("often"), any.inserted()), (u64::MAX, Some(u64::MAX)));
    }
}

#[test]
fn so_many_times_at_once_are_as_one_after_the_other() {
    for rule in CountingRule::ALL {
        let empty = Spectral::from_spec(&sized(500, 4, rule, None)).unwrap();
        let (mut at_once, mut one_by_one) = (empty.clone(), empty.clone());
        for key in 0..100u64 {
            let times = 1 + key % 40;
            at_once.insert_times(key, times);
            one_by_one.extend((0..times).map(|_| key));
        }
        assert_eq!(at_once.inserted(), one_by_one.inserted());
        // The second filter starts with what was there when a key came to stand alone.
        if rule != RecurringMinimum {
            assert!(at_once == one_by_one, "{rule:?}");
        }
        assert!((0..100u64).all(|key| at_once.count(key) > key % 40 || rule == RecurringMinimum));
        assert_eq!(at_once.insert_times("nothing", 0), Insertion::Perhaps);
        assert!(!at_once.contains("nothing"));
        if rule == MinimumSelection {
            let before = at_once.clone();
            assert!(!at_once.remove_times(7u64, 1000).unwrap().is_removed() && at_once == before);
            assert!(at_once.remove_times(7u64, 0).unwrap().is_removed() && at_once == before);
            for key in 0..100u64 {
                assert!(at_once.remove_times(key, 1 + key % 40).unwrap().is_removed());
            }
            assert_eq!(at_once.fill(), 0.0);
        }
    }
}

// Many keys at once.

#[test]
fn many_keys_at_once_are_as_one_by_one() {
    for rule in CountingRule::ALL {
        // In the cache, and beyond it, where batches prefetch.
        for (cells, counter_bits) in [(1000, None), (1000, Some(7)), (1 << 20, None), (1 << 18, Some(16))] {
            for hashing in [Hashing::Xxh3 { seed: 5 }, Hashing::Keyed(Secret::new([9; 16]))] {
                let spec = sized(cells, 7, rule, counter_bits).with_hashing(hashing);
                let empty = Spectral::from_spec(&spec).unwrap();
                for len in [0, 1, 31, 32, 33, 64, 65, 500] {
                    // The first ones come over and over.
                    let keys: Vec<u64> = (0..len).map(|i| if i % 3 == 0 { i % 7 } else { i }).collect();
                    let absent: Vec<u64> = (ABSENT..ABSENT + len + 5).collect();
                    many::equal_single(&empty, &keys, &absent);
                    let texts: Vec<String> = keys.iter().map(u64::to_string).collect();
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    many::equal_single(&empty, &texts, &["a", "b"]);
                }
            }
        }
    }
}

// Files.

/// The parameters, by their places.
const WIDTH: usize = crafted::PARAMS + 12;
const RULE: usize = crafted::PARAMS + 16;
const DEGRADED: usize = crafted::PARAMS + 20;
const SATURATED: usize = crafted::PARAMS + 40;
const PAIRS: usize = crafted::PARAMS + 48;
const SECOND_SATURATED: usize = crafted::PARAMS + 56;
const SECOND_PAIRS: usize = crafted::PARAMS + 64;

fn refused(file: &[u8]) -> DecodeError {
    Spectral::from_bytes(file).expect_err("crafted")
}

#[test]
fn crafted_parameters_are_refused() {
    let file = filled(&sized(1003, 5, MinimumSelection, Some(5)), 0..100).to_bytes();
    let put = |at: usize, bytes: &[u8]| refused(&crafted::with(&file, at, bytes));
    let value = |field, found| DecodeError::Value { field, found };
    for cells in [0, (1 << 48) / 5 + 1, 1 << 60, u64::MAX] {
        assert_eq!(put(crafted::PARAMS, &u64::to_le_bytes(cells)), value("counters", cells));
    }
    assert!(matches!(
        put(crafted::PARAMS, &2000u64.to_le_bytes()),
        DecodeError::Length { field: "payload", .. }
    ));
    for probes in [0, 65, u32::MAX] {
        assert_eq!(put(crafted::PARAMS + 8, &probes.to_le_bytes()), value("probes", probes.into()));
    }
    for bits in [1, 2, 3, 33, u32::MAX] {
        assert_eq!(put(WIDTH, &bits.to_le_bytes()), value("bits of a counter", bits.into()));
    }
    for rule in [0, 4, u32::MAX] {
        assert_eq!(put(RULE, &rule.to_le_bytes()), value("counting rule", rule.into()));
    }
    for degraded in [1, 2, u32::MAX] {
        assert_eq!(put(DEGRADED, &degraded.to_le_bytes()), value("degraded", degraded.into()));
    }
    for saturated in [1, 1003, 1004, u64::MAX] {
        assert_eq!(put(SATURATED, &u64::to_le_bytes(saturated)), value("saturated counters", saturated));
    }
    // Without a second filter there is nothing in it; fixed counters have no pairs.
    assert_eq!(put(SECOND_SATURATED, &[1]), value("saturated counters", 1));
    assert_eq!(put(SECOND_PAIRS, &[1]), value("counters above 15", 1));
    assert_eq!(put(PAIRS, &[1]), value("counters above 15", 1));
    let last = file.len() - 1;
    assert_eq!(put(last, &[0x80]), DecodeError::Padding { field: "end of the counters" });
}

/// 10 counters: 15, 16 and more, and small ones.
fn with_pairs() -> (Vec<u8>, Vec<u64>) {
    let mut filter = Spectral::from_spec(&sized(10, 1, MinimumSelection, None)).unwrap();
    for key in 0..40u64 {
        filter.insert_times(key, 1 + key % 9);
    }
    assert!(filter.overflowed() >= 2, "{}", filter.overflowed());
    let file = filter.to_bytes();
    let words: Vec<u64> =
        crafted::payload(&file).chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    (file, words)
}

#[test]
fn crafted_pairs_are_refused() {
    let (file, words) = with_pairs();
    assert!(Spectral::from_bytes(&file).is_ok());
    let (counters, pairs) = words.split_first().unwrap();
    let build = |pairs: &[u64]| {
        let payload: Vec<u8> =
            [&[*counters], pairs].concat().iter().flat_map(|word| word.to_le_bytes()).collect();
        let file = crafted::with(&file, PAIRS, &(pairs.len() as u64 / 2).to_le_bytes());
        crafted::with_payload(&file, &payload)
    };
    assert!(build(pairs) == file);
    let not_as_listed = DecodeError::Payload { problem: "counters above 15 are not as listed" };
    let changed = |at: usize, value: u64| {
        let mut pairs = pairs.to_vec();
        pairs[at] = value;
        build(&pairs)
    };
    // No number, one that no sum is, the same place twice, descending, behind the end.
    let mut swapped = pairs.to_vec();
    swapped.swap(0, 2);
    let small = (0..10).find(|place| counters >> (4 * place) & 15 < 15);
    let mut crafted = vec![
        changed(1, 0),
        changed(1, u64::MAX),
        changed(1, u64::MAX - 14),
        changed(2, pairs[0]),
        build(&swapped),
        changed(pairs.len() - 2, 10),
        changed(pairs.len() - 2, u64::MAX),
    ];
    // A pair for a counter that is below 15.
    crafted.extend(small.map(|place| build(&[place, 1])));
    for file in crafted {
        assert_eq!(refused(&file), not_as_listed);
        // Believed by who looks at the header only, and harmless.
        let mut filter = crafted::open_by_header(&file).unwrap();
        let digests: Vec<_> = (0..100u64).map(|key| filter.hashing().digest_of(key)).collect();
        let mut counts = Vec::new();
        filter.as_count().unwrap().count_batch(&digests, &mut counts);
        filter.as_insert().unwrap().insert_batch(&digests, &mut Vec::new()).unwrap();
        let remove = filter.as_remove().unwrap();
        digests.iter().for_each(|&digest| assert!(remove.remove_digest(digest) != Removal::Absent));
    }
    // Fewer pairs than counters above 15 are as good as a sum of 15.
    assert!(Spectral::from_bytes(&build(&pairs[..2])).is_ok() && Spectral::from_bytes(&build(&[])).is_ok());
    // More pairs than counters, and a number of pairs that is not that of the payload.
    let many = crafted::with(&file, PAIRS, &11u64.to_le_bytes());
    assert_eq!(refused(&many), DecodeError::Value { field: "counters above 15", found: 11 });
    let one = crafted::with(&file, PAIRS, &1u64.to_le_bytes());
    assert!(matches!(refused(&one), DecodeError::Length { field: "payload", .. }));
    assert_eq!(
        refused(&crafted::with(&file, SATURATED, &[1])),
        DecodeError::Value { field: "saturated counters", found: 1 }
    );
}

#[test]
fn a_second_filter_is_checked_too() {
    let stream: Vec<u64> = Zipf::new(2, 300, 1.0).take(3000).collect();
    for counter_bits in [None, Some(4), Some(9)] {
        let filter = filled(&sized(999, 4, RecurringMinimum, counter_bits), stream.iter().copied());
        let file = filter.to_bytes();
        assert!(Spectral::from_bytes(&file).unwrap() == filter);
        // 999 marks take 16 words, and the last has 25 bits to spare.
        let marked = crafted::with(&file, file.len() - 1, &[0x80]);
        assert_eq!(refused(&marked), DecodeError::Padding { field: "end of the payload" });
        let (at, field) = match counter_bits {
            None => (SECOND_SATURATED, "saturated counters"),
            Some(_) => (SECOND_PAIRS, "counters above 15"),
        };
        assert_eq!(refused(&crafted::with(&file, at, &[1, 1])), DecodeError::Value { field, found: 0x101 });
        // As another rule it has too many bytes.
        for rule in [1u32, 2] {
            let other = crafted::with(&file, RULE, &rule.to_le_bytes());
            assert!(matches!(refused(&other), DecodeError::Length { .. } | DecodeError::Value { .. }));
        }
    }
}

#[test]
fn damage_is_refused_or_harmless() {
    let stream: Vec<u64> = Zipf::new(3, 100, 1.0).take(1500).collect();
    for rule in CountingRule::ALL {
        for counter_bits in [None, Some(4), Some(7), Some(32)] {
            let filter =
                filled(&sized(501, 5, rule, counter_bits).with_capacity(100), stream.iter().copied());
            let (refused, opened) =
                crafted::damage(&filter.to_bytes(), counter_bits.unwrap_or(0).into(), 1000);
            assert!(
                refused > 100 && opened > 10,
                "{rule:?}, {counter_bits:?}: {refused} refused, {opened} opened"
            );
        }
    }
}
