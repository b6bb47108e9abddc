//! The family `counting`: what the experiments do not check, and crafted files.
//!
//! The measured rates pass within 4 standard deviations (a chance of 6e-5 each that a right filter fails, drawn once:
//! the seeds are fixed).

use mayhap::{Bloom, Count, Counting, DecodeError, Hashing, Insertion, Removal, Secret, Spec};
use mayhap_eval::ABSENT;

use crate::{crafted, many};

/// So many counters of so many bits.
fn sized(cells: u64, probes: u32, counter_bits: u32) -> Spec {
    Spec::new().with_bits(cells * u64::from(counter_bits)).with_probes(probes).with_counter_bits(counter_bits)
}

fn filled(spec: &Spec, keys: impl IntoIterator<Item = u64>) -> Counting {
    let mut filter = Counting::from_spec(spec).unwrap();
    filter.insert_all(&keys.into_iter().collect::<Vec<_>>());
    filter
}

/// An absent key that is admitted is removed like one that is in: it takes counts of other keys with it.
#[test]
fn an_absent_key_that_is_admitted_is_removed_with_counts_of_others() {
    let mut filter = filled(&Spec::sized(1000, 0.1), 0..1000);
    let admitted: Vec<u64> = (ABSENT..ABSENT + 1000).filter(|&key| filter.contains(key)).collect();
    assert!(admitted.len() > 50, "{}", admitted.len());
    for key in admitted {
        let (before, count, was_in) = (filter.fill(), filter.count(key), filter.contains(key));
        assert_eq!(filter.remove(key), Removal::removed_if(was_in));
        assert_eq!(filter.count(key), count.saturating_sub(1));
        assert!(filter.fill() <= before);
    }
    assert!((0..1000u64).any(|key| !filter.contains(key)), "no key is denied");
}

#[test]
fn a_key_that_saturates_its_counters_stays() {
    let mut filter = Counting::new(1000, 0.01).unwrap();
    filter.extend(["often"; 20]);
    assert_eq!((filter.count("often"), filter.ceiling(), filter.saturated()), (15, 15, 7));
    let before = filter.clone();
    // It was told that all 20 were removed.
    assert!((0..20).all(|_| filter.remove("often") == Removal::Stuck) && filter == before);
    let mut outcomes = Vec::new();
    filter.remove_all(&["often", "never"], &mut outcomes);
    assert_eq!(outcomes, [Removal::Stuck, Removal::Absent]);
    assert!(filter.contains("often"));
    assert_eq!((filter.count("often"), filter.saturated()), (15, 7));
}

#[test]
fn it_takes_four_times_the_bits_of_a_bloom_filter() {
    let plan = mayhap::family("counting").unwrap().plan;
    for (p, bits_per_key) in [(0.03, 29.2), (0.01, 38.3), (0.001, 57.5), (1e-4, 76.7)] {
        let planned = plan(&Spec::sized(1_000_000, p)).unwrap();
        assert!((planned.bits_per_key() - bits_per_key).abs() < 0.05, "{p}: {}", planned.bits_per_key());
        assert_eq!(planned.bits, 4 * Spec::sized(1_000_000, p).bloom().unwrap().bits);
    }
    let mebibytes = plan(&Spec::sized(1_000_000, 0.01)).unwrap().bits as f64 / 8.0 / 1024.0 / 1024.0;
    assert!((mebibytes - 4.57).abs() < 0.005, "{mebibytes}");
}

#[test]
fn no_counter_of_a_full_filter_saturates() {
    for p in [0.1, 0.01, 1e-4] {
        let filter = filled(&Spec::sized(200_000, p), 0..200_000);
        assert_eq!(filter.saturated(), 0, "{p}");
    }
}

/// Two probes of a key meet in nearly every key of a filter this small.
#[test]
fn probes_that_meet_count_once() {
    let mut filter = Counting::from_spec(&sized(5, 20, 8)).unwrap();
    assert_eq!(filter.insert(1u64), Insertion::New);
    assert!((0..5).all(|place| filter.counter(place).unwrap() <= 1));
    assert_eq!((filter.count(1u64), filter.counter(5)), (1, None));
    assert!(filter.remove(1u64).is_removed());
    assert!((0..5).all(|place| filter.counter(place) == Some(0)));
    assert_eq!(filter.fill(), 0.0);
}

#[test]
fn what_is_certainly_not_in_is_not_removed_and_changes_nothing() {
    let mut filter = filled(&Spec::sized(1000, 0.01), 0..900);
    let before = filter.to_bytes();
    let certain: Vec<u64> = (ABSENT..ABSENT + 10_000).filter(|key| !filter.contains(key)).collect();
    assert!(certain.len() > 9_800);
    assert!(certain.iter().all(|key| !filter.remove(key).is_removed()));
    assert!(filter.to_bytes() == before);
}

#[test]
fn its_bloom_filter_is_the_one_that_its_keys_make() {
    for hashing in [Hashing::Xxh3 { seed: 7 }, Hashing::Keyed(Secret::new([3; 16]))] {
        for (counter_bits, cells, probes) in
            [(4, 20_001, 7), (2, 20_000, 7), (5, 777, 3), (16, 64, 1), (4, 1, 2)]
        {
            let spec = sized(cells, probes, counter_bits).with_hashing(hashing);
            let mut filter = filled(&spec, 0..3000);
            // Those that leave leave the bits that they alone had set; saturated counters have none that leave.
            let leave = if filter.saturated() == 0 { 1000..3000 } else { 0..0 };
            let keys = if leave.is_empty() { 0..3000 } else { 0..1000 };
            leave.for_each(|key: u64| assert!(filter.remove(key).is_removed()));
            let mut expected =
                Bloom::from_spec(&Spec::new().with_bits(cells).with_probes(probes).with_hashing(hashing))
                    .unwrap();
            expected.extend(keys);
            let bloom = filter.to_bloom().unwrap();
            assert!(bloom == expected, "{counter_bits} bits, {cells} counters");
            assert_eq!((bloom.fill(), bloom.inserted()), (filter.fill(), None));
            assert_eq!((bloom.capacity(), bloom.hashing()), (filter.capacity(), hashing));
        }
    }
}

#[test]
fn many_keys_at_once_are_as_one_by_one() {
    // In the cache, and beyond it, where batches prefetch.
    for (cells, counter_bits) in [(1000, 4), (1000, 3), (1 << 20, 4), (1 << 20, 5), (1 << 18, 16)] {
        for hashing in [Hashing::Xxh3 { seed: 5 }, Hashing::Keyed(Secret::new([9; 16]))] {
            let empty = Counting::from_spec(&sized(cells, 7, counter_bits).with_hashing(hashing)).unwrap();
            for len in [0, 1, 31, 32, 33, 64, 65, 500] {
                // Every third key comes twice.
                let keys: Vec<u64> = (0..len).map(|i| if i % 3 == 0 { i / 6 } else { i }).collect();
                let absent: Vec<u64> = (len..2 * len + 5).collect();
                many::equal_single(&empty, &keys, &absent);
                let texts: Vec<String> = keys.iter().map(u64::to_string).collect();
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                many::equal_single(&empty, &texts, &["a", "b"]);
            }
        }
    }
}

// Files.

#[test]
fn crafted_parameters_are_refused() {
    let file = filled(&sized(1003, 5, 5).with_capacity(100), 0..100).to_bytes();
    let refused = |at: usize, bytes: &[u8]| {
        Counting::from_bytes(&crafted::with(&file, crafted::PARAMS + at, bytes)).expect_err("crafted")
    };
    let value = |field, found| DecodeError::Value { field, found };
    for cells in [0, (1 << 48) / 5 + 1, 1 << 60, u64::MAX] {
        assert_eq!(refused(0, &u64::to_le_bytes(cells)), value("counters", cells));
    }
    assert!(matches!(refused(0, &2000u64.to_le_bytes()), DecodeError::Length { field: "payload", .. }));
    for probes in [0, 65, u32::MAX] {
        assert_eq!(refused(8, &probes.to_le_bytes()), value("probes", probes.into()));
    }
    for bits in [0, 1, 17, 64, u32::MAX] {
        assert_eq!(refused(12, &bits.to_le_bytes()), value("bits of a counter", bits.into()));
    }
    assert_eq!(refused(24, &2f64.to_le_bytes()), value("asked rate", 2f64.to_bits()));
    for saturated in [1, 1003, 1004, u64::MAX] {
        assert_eq!(refused(32, &u64::to_le_bytes(saturated)), value("saturated counters", saturated));
    }
    let short = crafted::with(&file, 44, &36u32.to_le_bytes());
    assert!(Counting::from_bytes(&short).is_err());
    // 1003 counters of 5 bits take 5015 bits, and the last word has 41 to spare.
    let last = file.len() - 1;
    let padded = crafted::with(&file, last, &[0x80]);
    assert_eq!(
        Counting::from_bytes(&padded).unwrap_err(),
        DecodeError::Padding { field: "end of the payload" }
    );
    let other = Bloom::new(10, 0.01).unwrap().to_bytes();
    assert_eq!(
        Counting::from_bytes(&other).unwrap_err(),
        DecodeError::OtherFamily { expected: "counting", found: "bloom" }
    );
}

#[test]
fn a_saturated_counter_is_counted_in_its_file() {
    let mut filter = Counting::from_spec(&sized(1000, 4, 2)).unwrap();
    filter.extend(["often"; 5]);
    assert_eq!(filter.saturated(), 4);
    let file = filter.to_bytes();
    assert_eq!(Counting::from_bytes(&file).unwrap().saturated(), 4);
    for claimed in [0u64, 3, 5] {
        let crafted = crafted::with(&file, crafted::PARAMS + 32, &claimed.to_le_bytes());
        let error = DecodeError::Value { field: "saturated counters", found: claimed };
        assert_eq!(Counting::from_bytes(&crafted).unwrap_err(), error);
        // Who reads the header only believes it: wrong, and harmless.
        let opened = crafted::open_by_header(&crafted).unwrap();
        assert_eq!(opened.details().counters.unwrap().saturated, claimed);
    }
}

#[test]
fn damage_is_refused_or_harmless() {
    for counter_bits in [2, 4, 5, 8, 16] {
        let filter =
            filled(&sized(997, 7, counter_bits).with_capacity(100), (0..120).chain(0..40).chain(0..9));
        let (refused, opened) = crafted::damage(&filter.to_bytes(), counter_bits.into(), 2000);
        assert!(refused > 100 && opened > 20, "{counter_bits} bits: {refused} refused, {opened} opened");
    }
}
