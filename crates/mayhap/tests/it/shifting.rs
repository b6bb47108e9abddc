//! The family `shifting`: what the experiments do not check, and crafted files.
//!
//! The measured rates pass within 4 standard deviations, those of the count and those of the rate from one seed to the
//! next: a chance of 6e-5 each that a right filter fails. There are 38 comparisons, so 2.4e-3 for all; drawn once, since
//! the seeds are fixed.

use mayhap::{
    AnyFilter, Bloom, Combine, DecodeError, Error, Guarantee, Hashing, Removal, Remove, Secret, Shifting,
    Spec, combine,
};
use mayhap_eval::{ABSENT, KeyKind, Proportion};

use crate::{crafted, many};

/// So many places, probes and shifts.
fn sized(starts: u64, probes: u32, shifts: u32) -> Spec {
    Spec::new().with_bits(starts + 56).with_probes(probes).with_shifts(shifts)
}

/// The same with counters.
fn counted(starts: u64, probes: u32, counter_bits: u32) -> Spec {
    let bits = (starts + 56) * u64::from(1 + counter_bits);
    Spec::new().with_bits(bits).with_probes(probes).with_counter_bits(counter_bits)
}

fn filled(spec: &Spec, keys: impl IntoIterator<Item = u64>) -> Shifting {
    let mut filter = Shifting::from_spec(spec).unwrap();
    filter.insert_all(&keys.into_iter().collect::<Vec<_>>());
    filter
}

#[test]
fn a_key_that_is_in_takes_half_as_many_loads_as_probes_and_another_fewer() {
    for (probes, shifts) in [(8, 1), (12, 1), (2, 1), (6, 2), (9, 2), (8, 3)] {
        let filter = filled(&sized(100_000, probes, shifts).with_capacity(10_000), 0..10_000);
        for key in 0..1_000u64 {
            let mut loads = 0;
            assert!(filter.contains_traced(key, |_| loads += 1));
            assert_eq!(loads, probes / (shifts + 1));
        }
        // An absent key is found out by its first windows.
        let mut loads = 0;
        for key in ABSENT..ABSENT + 10_000 {
            let hit = filter.contains_traced(key, |byte| {
                loads += 1;
                assert!(byte < (100_000 + 56) / 8);
            });
            assert_eq!(hit, filter.contains(key));
        }
        assert!(loads < 30_000, "{loads} loads for 10,000 absent keys");
    }
}

#[test]
fn every_kind_of_key_meets_the_prediction() {
    for (column, p) in [0.3, 0.03, 0.01, 1e-3].into_iter().enumerate() {
        for kind in KeyKind::ALL {
            let (n, seed) = (50_000, column as u64);
            let spec = Spec::sized(n, p).with_hashing(Hashing::Xxh3 { seed });
            let mut filter = Shifting::from_spec(&spec).unwrap();
            let keys = |from: u64, count: u64| {
                (from..from + count).map(|index| kind.key(1, index)).collect::<Vec<_>>()
            };
            filter.insert_all(&keys(0, n));
            let mut hits = Vec::new();
            filter.contains_each(&keys(0, n), &mut hits);
            assert!(hits.iter().all(|&hit| hit), "{kind}: a key was denied");
            hits.clear();
            filter.contains_each(&keys(ABSENT, 200_000), &mut hits);
            let measured =
                Proportion { hits: hits.iter().filter(|&&hit| hit).count() as u64, trials: 200_000 };
            let expected = filter.fpr_at_capacity();
            assert!(
                expected <= p && measured.agrees_with(expected, 0.01, 4.0),
                "{kind} at {p}: {measured:?}"
            );
        }
    }
}

#[test]
fn it_takes_a_percent_more_bits_than_a_bloom_filter() {
    for (p, most) in [(0.1, 1.06), (0.01, 1.02), (0.001, 1.02), (1e-4, 1.02)] {
        let (bloom, shifting) =
            (Spec::sized(1_000_000, p).bloom().unwrap(), Spec::sized(1_000_000, p).shifting().unwrap());
        let ratio = shifting.bits() as f64 / bloom.bits as f64;
        assert!((1.0..most).contains(&ratio), "{p}: {ratio}");
        assert!(shifting.fpr <= p && shifting.probes.is_multiple_of(2));
    }
}

#[test]
fn with_counters_keys_leave_again_and_the_bits_are_those_of_the_rest() {
    let spec = counted(100_000, 8, 4).with_capacity(10_000);
    let mut filter = filled(&spec, 0..10_000);
    assert_eq!((filter.saturated(), filter.counter_bits()), (0, Some(4)));
    let plain = filled(&sized(100_000, 8, 1).with_capacity(10_000), 0..10_000);
    let absent: Vec<u64> = (ABSENT..ABSENT + 100_000).collect();
    let answers = |filter: &Shifting| {
        let mut hits = Vec::new();
        filter.contains_each(&absent, &mut hits);
        hits
    };
    assert_eq!(answers(&filter), answers(&plain), "the same bits as without counters");
    assert!((0..5_000u64).all(|half| filter.remove(2 * half + 1).unwrap().is_removed()));
    assert!((0..5_000u64).all(|half| filter.contains(2 * half)));
    let fresh = filled(&spec, (0..5_000).map(|half| 2 * half));
    assert!(filter == fresh && crafted::payload(&filter.to_bytes()) == crafted::payload(&fresh.to_bytes()));
    assert_eq!(filter.fill(), fresh.fill());
    let before = filter.to_bytes();
    let certain: Vec<u64> = absent.into_iter().filter(|key| !filter.contains(key)).collect();
    assert!(
        certain.iter().all(|key| !filter.remove(key).unwrap().is_removed()) && filter.to_bytes() == before
    );
}

/// Saturated counters stay, as in a counting filter.
#[test]
fn a_key_that_saturates_its_counters_stays() {
    let mut filter = Shifting::from_spec(&counted(10_000, 8, 2)).unwrap();
    filter.extend(["often"; 9]);
    assert_eq!(filter.saturated(), 8);
    assert!((0..9).all(|_| filter.remove("often") == Ok(Removal::Stuck)) && filter.contains("often"));
    assert_eq!(filter.details().counters.unwrap().saturated, 8);
    let again = Shifting::from_bytes(&filter.to_bytes()).unwrap();
    assert!(again == filter && again.saturated() == 8);
}

#[test]
fn what_it_can_depends_on_its_counters() {
    let (mut plain, mut counted) = (filled(&sized(1000, 4, 1), 0..9), filled(&counted(1000, 4, 4), 0..9));
    assert!(plain.as_remove().is_none() && plain.as_intersect().is_some() && !plain.can().removes);
    assert!(counted.as_remove().is_some() && counted.as_intersect().is_none() && !counted.can().intersects);
    let refused = Error::UnsupportedWithoutCounters { family: "shifting", operation: "remove" };
    assert_eq!(plain.remove(1u64), Err(refused.clone()));
    assert_eq!(refused.to_string(), "the family shifting cannot remove without counters; with them it can");
    assert!(!plain.remove_digest(plain.hashing().digest_of(1u64)).is_removed());
    assert_eq!(plain.report().guarantee, Guarantee::NoFalseNegatives);
    assert_eq!(counted.report().guarantee, Guarantee::NoFalseNegativesIfDeletesValid);
    let other = counted.clone();
    let refused = Error::Unsupported { family: "shifting", operation: "intersect" };
    assert_eq!(combine(&mut counted, &other, Combine::Intersection), Err(refused.clone()));
    assert_eq!(counted.intersect(&other), Err(refused));
    assert!(counted == other && plain.details().counters.is_none());
}

#[test]
fn many_keys_at_once_are_as_one_by_one() {
    // In the cache, and beyond it, where batches prefetch and put keys off that pass their first window.
    for (starts, probes, shifts) in
        [(1000, 8, 1), (40_000_000, 8, 1), (40_000_000, 2, 1), (40_000_000, 12, 3)]
    {
        for hashing in [Hashing::Xxh3 { seed: 5 }, Hashing::Keyed(Secret::new([9; 16]))] {
            let empty = Shifting::from_spec(&sized(starts, probes, shifts).with_hashing(hashing)).unwrap();
            for len in [0, 1, 31, 32, 33, 500] {
                // Every third key comes twice.
                let keys: Vec<u64> = (0..len).map(|i| if i % 3 == 0 { i / 6 } else { i }).collect();
                let absent: Vec<u64> = (len..2 * len + 5).collect();
                if starts < 10_000 || len == 33 || len == 500 {
                    many::equal_single(&empty, &keys, &absent);
                }
            }
        }
    }
    let empty = Shifting::from_spec(&counted(3000, 6, 4)).unwrap();
    many::equal_single(&empty, &(0..500u64).collect::<Vec<_>>(), &(500..900).collect::<Vec<_>>());
    many::equal_single(&empty, &["a", "b", "a"], &["c", "d"]);
}

// Files.

#[test]
fn crafted_parameters_are_refused() {
    let file = filled(&counted(1003, 6, 5).with_capacity(100), 0..100).to_bytes();
    let refused = |at: usize, bytes: &[u8]| {
        Shifting::from_bytes(&crafted::with(&file, crafted::PARAMS + at, bytes)).expect_err("crafted")
    };
    let value = |field, found| DecodeError::Value { field, found };
    for starts in [0, 1 << 48, 1 << 60, u64::MAX] {
        assert_eq!(refused(0, &u64::to_le_bytes(starts)), value("places", starts));
    }
    assert!(matches!(refused(0, &2000u64.to_le_bytes()), DecodeError::Length { field: "payload", .. }));
    for probes in [0, 7, 65, 66, u32::MAX] {
        assert_eq!(refused(8, &probes.to_le_bytes()), value("probes", probes.into()));
    }
    for shifts in [0, 4, u32::MAX] {
        assert_eq!(refused(12, &shifts.to_le_bytes()), value("shifts", shifts.into()));
    }
    for window in [0, 25, 56, 58, 64] {
        assert_eq!(refused(16, &u32::to_le_bytes(window)), value("bits of a window", window.into()));
    }
    for bits in [1, 17, u32::MAX] {
        assert_eq!(refused(20, &bits.to_le_bytes()), value("bits of a counter", bits.into()));
    }
    assert!(matches!(refused(20, &0u32.to_le_bytes()), DecodeError::Length { field: "payload", .. }));
    assert_eq!(refused(32, &2f64.to_le_bytes()), value("asked rate", 2f64.to_bits()));
    assert_eq!(refused(40, &2000u64.to_le_bytes()), value("saturated counters", 2000));
    assert_eq!(
        refused(40, &1u64.to_le_bytes()),
        DecodeError::Payload { problem: "bits and counters do not agree" }
    );
    // A bit without its counter: the number of ones is wrong, and if that is mended the counters still are.
    let payload = crafted::payload(&file).to_vec();
    let place = payload.iter().position(|&byte| byte & 1 == 0).unwrap();
    let mut lone = payload.clone();
    lone[place] |= 1;
    let lone = crafted::with_payload(&file, &lone);
    let ones = u64::from_le_bytes(file[88..96].try_into().unwrap());
    assert_eq!(Shifting::from_bytes(&lone).unwrap_err(), value("set bits", ones));
    let lone = crafted::with(&lone, 88, &(ones + 1).to_le_bytes());
    let problem = DecodeError::Payload { problem: "bits and counters do not agree" };
    assert_eq!(Shifting::from_bytes(&lone).unwrap_err(), problem);
    // 1059 bits leave 29 of the last word of bits.
    let mut padded = payload;
    padded[1059 / 64 * 8 + 7] |= 0x80;
    let padded = crafted::with_payload(&file, &padded);
    assert_eq!(
        Shifting::from_bytes(&padded).unwrap_err(),
        DecodeError::Padding { field: "end of the payload" }
    );
    let other = Bloom::new(10, 0.01).unwrap().to_bytes();
    assert_eq!(
        Shifting::from_bytes(&other).unwrap_err(),
        DecodeError::OtherFamily { expected: "shifting", found: "bloom" }
    );
}

#[test]
fn damage_is_refused_or_harmless() {
    for spec in [sized(997, 6, 1), sized(997, 6, 2), counted(997, 6, 4), counted(997, 6, 5)] {
        let filter = filled(&spec.with_capacity(100), (0..120).chain(0..40));
        let (refused, opened) = crafted::damage(&filter.to_bytes(), 3, 1500);
        assert!(refused > 100 && opened > 20, "{spec:?}: {refused} refused, {opened} opened");
    }
}

/// Who explains a filter reads its bits.
#[test]
fn the_bits_of_a_key_are_those_of_its_loads() {
    for shifts in 1..=3 {
        let mut filter = Shifting::from_spec(&sized(300, 12, shifts)).unwrap();
        filter.insert("hello");
        let mut loads = filter.loads("hello").concat();
        assert_eq!(loads.len(), 12);
        loads.sort_unstable();
        loads.dedup();
        let set: Vec<u64> = (0..356).filter(|&bit| filter.bit(bit) == Some(true)).collect();
        assert_eq!((set, filter.bit(356)), (loads, None));
    }
}
