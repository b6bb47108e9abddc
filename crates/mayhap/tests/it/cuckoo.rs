//! The cuckoo filter: what its users rely on when it is nearly full.
//!
//! Rates pass if they are within 5 standard deviations of the prediction: those of the count, and those of the rate from
//! one seed to the next (`math::cuckoo_fpr_deviation`). A correct filter fails a comparison with a chance of 5.7e-7; there
//! are 44 of them, so the chance of a false alarm is 2.5e-5. It is drawn once: the seeds are fixed.

use std::collections::HashMap;

use mayhap::{
    AnyFilter, Cuckoo, DecodeError, Digest, Error, Filter, Full, Hashing, Insert, Insertion, Key, Knob,
    Layout, Limit, Mismatch, Parameter, Removal, Remove, Secret, Spec, SpecError, Summing, Value, encode,
    math,
};
use mayhap_eval::{ABSENT, Proportion, Random};

use crate::crafted::reseal;

const SIGMAS: f64 = 5.0;

fn seeded(seed: u64, capacity: u64, fpr: f64, layout: Layout) -> Cuckoo {
    let spec = Spec::sized(capacity, fpr).with_layout(layout).with_hashing(Hashing::Xxh3 { seed });
    Cuckoo::from_spec(&spec).unwrap()
}

/// How many of so many integers that were never inserted are admitted.
fn ask(cuckoo: &Cuckoo, trials: u64) -> Proportion {
    let mut hits = Vec::new();
    let mut count = 0;
    for start in (0..trials).step_by(1 << 16) {
        let keys: Vec<u64> = (start..trials.min(start + (1 << 16))).map(|i| ABSENT + i).collect();
        hits.clear();
        cuckoo.contains_each(&keys, &mut hits);
        count += hits.iter().filter(|&&hit| hit).count() as u64;
    }
    Proportion { hits: count, trials }
}

/// Whether a measured rate is the predicted one.
fn agrees(cuckoo: &Cuckoo, measured: Proportion) -> bool {
    let slots = cuckoo.slots();
    let rho = math::cuckoo_fpr_deviation(cuckoo.fingerprint_bits(), slots.slots / 4, slots.load());
    measured.agrees_with(cuckoo.fpr(), rho, SIGMAS)
}

fn holds(cuckoo: &Cuckoo, keys: &[u64]) -> bool {
    let mut hits = Vec::new();
    cuckoo.contains_each(keys, &mut hits);
    hits.len() == keys.len() && hits.iter().all(|&hit| hit)
}

/// Inserts integers from 0 on until one is refused; how many went in.
fn fill(cuckoo: &mut Cuckoo) -> u64 {
    (0u64..).find(|&key| cuckoo.insert(key).is_err()).unwrap()
}

#[test]
fn the_asked_rate_is_met_at_capacity() {
    for (column, p) in [0.5, 0.2, 0.03, 0.01, 0.00186, 1e-3, 1e-4, 1e-5, 1e-6].into_iter().enumerate() {
        for layout in Layout::ALL {
            for (n, most) in [(1_000, 200_000), (100_000, 4_000_000)] {
                let mut cuckoo = seeded(n + column as u64, n, p, layout);
                let keys: Vec<u64> = (0..n).collect();
                cuckoo.insert_all(&keys).unwrap();
                assert!(holds(&cuckoo, &keys));
                // Of a small one the rate is that of the fingerprints at hand, which chance makes a little more or less.
                let (now, planned) = (cuckoo.fpr(), cuckoo.fpr_at_capacity());
                let rho = math::cuckoo_fpr_deviation(
                    cuckoo.fingerprint_bits(),
                    cuckoo.buckets(),
                    cuckoo.slots().load(),
                );
                assert!(planned <= p && (now / planned - 1.0).abs() < 5.0 * rho + 1e-9, "{now}, {planned}");
                let measured = ask(&cuckoo, most);
                assert!(
                    agrees(&cuckoo, measured),
                    "{n} keys at {p}, {layout:?}: {measured:?}, predicted {:e}",
                    cuckoo.fpr()
                );
            }
        }
    }
}

// How full it gets.

/// A table of buckets of any size, by the paper and without packing: for sizes that the filter does not have.
struct Plain {
    buckets: Vec<Vec<u32>>,
    size: usize,
    xor: bool,
}

impl Plain {
    fn other(&self, bucket: u64, fingerprint: u32) -> u64 {
        let len = self.buckets.len() as u64;
        let spread = u64::from(fingerprint).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = spread.wrapping_mul(spread | 1);
        if self.xor {
            bucket ^ (mixed >> 32) & (len - 1)
        } else {
            let sum = 2 * ((u128::from(mixed) * u128::from(len / 2)) >> 64) as u64 + 1;
            (sum + len - bucket) % len
        }
    }

    /// Breadth-first over at most 512 full buckets.
    fn insert(&mut self, half: u64) -> bool {
        let fingerprint = 1 + (((half.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) * 4095) >> 32) as u32;
        let first = ((u128::from(half) * self.buckets.len() as u128) >> 64) as u64;
        let mut steps = vec![(first, None), (self.other(first, fingerprint), None)];
        let len = |bucket: u64| self.buckets[bucket as usize].len();
        if len(steps[1].0) < len(first) {
            steps.swap(0, 1);
        }
        let mut next = 0;
        while next < steps.len() && next < 2050 {
            let (bucket, _) = steps[next];
            if self.buckets[bucket as usize].len() < self.size {
                let (mut at, mut slot) = (next, None);
                loop {
                    let (bucket, from) = steps[at];
                    let moved = from.map_or(fingerprint, |(before, slot): (usize, usize)| {
                        self.buckets[steps[before].0 as usize][slot]
                    });
                    match slot {
                        None => self.buckets[bucket as usize].push(moved),
                        Some(slot) => self.buckets[bucket as usize][slot] = moved,
                    }
                    let Some((before, from)) = from else { return true };
                    (at, slot) = (before, Some(from));
                }
            }
            if next < 512 {
                for slot in 0..self.size {
                    steps.push((self.other(bucket, self.buckets[bucket as usize][slot]), Some((next, slot))));
                }
            }
            next += 1;
        }
        false
    }
}

/// The load at which such a table refuses its first key.
fn first_failure(buckets: usize, size: usize, xor: bool, seed: u64) -> f64 {
    let mut table = Plain { buckets: vec![Vec::new(); buckets], size, xor };
    let hashing = Hashing::Xxh3 { seed };
    let held = (0u64..).find(|&key| !table.insert(hashing.half_of(key))).unwrap();
    held as f64 / (buckets * size) as f64
}

#[test]
fn tables_with_buckets_of_any_size_are_as_full_as_the_paper_says_at_the_first_failure() {
    for xor in [false, true] {
        // The fewer slots, the more the load varies, and the less a table costs.
        for (size, tables, low, high) in
            [(1, 32, 0.48, 0.52), (2, 8, 0.855, 0.885), (4, 3, 0.955, 1.0), (8, 2, 0.985, 1.0)]
        {
            let loads = (0..tables).map(|seed| first_failure(1 << 15, size, xor, seed));
            let mean = loads.sum::<f64>() / tables as f64;
            assert!((low..=high).contains(&mean), "{size} slots in a bucket, xor {xor}: {mean}");
        }
    }
}

/// What it was made for goes in: at every small capacity, at both ends of the rates.
#[test]
fn every_capacity_is_reached() {
    for layout in Layout::ALL {
        for n in (1..400).chain((400..3000).step_by(37)).chain([10_000, 50_000]) {
            for p in [0.4, 0.01, 1e-8] {
                let mut cuckoo = seeded(n, n, p, layout);
                let keys: Vec<u64> = (0..n).collect();
                if let Err(full) = cuckoo.insert_all(&keys) {
                    panic!("{n} keys at {p}, {layout:?}: {full}, after {}", full.inserted);
                }
            }
        }
    }
}

#[test]
fn no_size_costs_more_than_6_percent() {
    for n in (1130..5000).chain((5000..40_000_000).step_by(123_457)) {
        let size = Spec::sized(n, 0.00186).cuckoo().unwrap();
        let ideal = n * u64::from(size.width);
        assert!(size.bits() as f64 <= 1.06 * ideal as f64, "{n} keys take {} bits", size.bits());
    }
}

/// A million keys, whatever the power of two.
#[test]
fn a_million_keys_take_what_the_formula_says() {
    let cuckoo = Cuckoo::new(1_000_000, 1e-3).unwrap();
    assert_eq!((cuckoo.fingerprint_bits(), cuckoo.bits()), (13, 4 * 263_158 * 13));
    let bytes = cuckoo.size_in_bytes() as f64;
    assert!((bytes / 1_048_576.0 - 1.63).abs() < 0.01, "{bytes}");
}

// Copies.

#[test]
fn exactly_eight_inserts_of_one_key_succeed() {
    for (slots, width, layout) in [
        (4 << 10, 12, Layout::Fastest),
        (8, 5, Layout::Compact),
        (1000, 32, Layout::Compact),
        (16, 20, Layout::Fastest),
    ] {
        for key in 0..50u64 {
            let mut cuckoo = Cuckoo::with_slots(slots, width, layout).unwrap();
            for copy in 0..8 {
                assert_eq!(cuckoo.count(key), copy);
                assert_eq!(cuckoo.insert(key), Ok(Insertion::new_if(copy == 0)));
            }
            let before = cuckoo.to_bytes();
            let full = Full { limit: Limit::Copies { most: 8 }, inserted: 0 };
            assert_eq!(cuckoo.insert(key), Err(full));
            assert!(cuckoo.to_bytes() == before);
            // In a batch too, which keeps what went in before.
            let told = cuckoo.insert_all(&[key + 1000, key, key + 2000]).unwrap_err();
            assert!(slots < 100 || told == Full { inserted: 1, ..full });
            assert_eq!(cuckoo.inserted(), Some(8 + told.inserted));
            if told.inserted == 1 {
                assert!(cuckoo.remove(key + 1000).is_removed());
            }
            for copy in (0..8).rev() {
                assert!(cuckoo.remove(key).is_removed());
                assert_eq!(cuckoo.count(key), copy);
            }
            assert!(!cuckoo.remove(key).is_removed() && !cuckoo.contains(key));
            assert!(cuckoo.words().iter().all(|&word| word == 0));
        }
    }
}

// No key is lost.

#[test]
fn a_refused_key_changes_nothing_and_loses_nobody() {
    for layout in Layout::ALL {
        for width in [6, 8, 12, 15, 19, 32] {
            let mut cuckoo = Cuckoo::with_slots(20_000, width, layout).unwrap();
            let held = fill(&mut cuckoo);
            let mut keys: Vec<u64> = (0..held).collect();
            // Some still find room, until hardly anybody does.
            let mut refused = 0;
            for key in held.. {
                let before = cuckoo.to_bytes();
                match cuckoo.insert(key) {
                    Ok(_) => keys.push(key),
                    Err(full) => {
                        refused += 1;
                        let Limit::Slots { capacity, used, slots } = full.limit else { panic!("{full}") };
                        assert_eq!((capacity, slots, full.inserted), (cuckoo.capacity(), 20_000, 0));
                        assert_eq!(used, keys.len() as u64);
                        assert!(cuckoo.to_bytes() == before);
                    }
                }
                if refused == 500 {
                    break;
                }
            }
            assert!(holds(&cuckoo, &keys));
            assert!(cuckoo.slots().load() > 0.975, "{}", cuckoo.slots().load());
        }
    }
}

// What users ask for.

/// Random inserts, removals and questions against a multiset: from empty to full, at the brim, and down again.
#[test]
fn random_operations_agree_with_a_multiset() {
    for (seed, (slots, width, layout)) in [
        (800, 8, Layout::Fastest),
        (804, 5, Layout::Compact),
        (8, 32, Layout::Fastest),
        (1600, 17, Layout::Compact),
    ]
    .into_iter()
    .enumerate()
    {
        let mut cuckoo = Cuckoo::with_slots(slots, width, layout).unwrap();
        let slots = cuckoo.slots().slots;
        let mut model: HashMap<u64, u64> = HashMap::new();
        let mut present: Vec<u64> = Vec::new();
        let mut random = Random::new(seed as u64);
        let (mut calls, mut refusals, mut most) = (0, 0, 0);
        for step in 0..40_000 {
            // The wind turns: it fills, stays at the brim, and empties.
            let inserts = [9, 5, 2][step / 3000 % 3];
            match random.below(10) {
                0 => {
                    let key = random.below(3 * slots);
                    let times = model.get(&key).copied().unwrap_or(0);
                    assert!(cuckoo.count(key) >= times && cuckoo.contains(key) >= (times > 0));
                }
                draw if draw <= inserts => {
                    let key = random.below(3 * slots);
                    let before = (step % 8 == 0).then(|| cuckoo.to_bytes());
                    match cuckoo.insert(key) {
                        Ok(told) => {
                            assert!(told == Insertion::Perhaps || !model.contains_key(&key));
                            *model.entry(key).or_insert(0) += 1;
                            present.push(key);
                            calls += 1;
                        }
                        Err(_) => {
                            refusals += 1;
                            assert!(before.is_none_or(|before| before == cuckoo.to_bytes()));
                        }
                    }
                }
                _ if !present.is_empty() => {
                    let key = present.swap_remove(random.below(present.len() as u64) as usize);
                    assert!(cuckoo.remove(key).is_removed(), "{key} is in and was denied");
                    let times = model.get_mut(&key).unwrap();
                    *times -= 1;
                    if *times == 0 {
                        model.remove(&key);
                    }
                }
                _ => {}
            }
            most = most.max(present.len() as u64);
            assert_eq!((cuckoo.slots().used, cuckoo.inserted()), (present.len() as u64, Some(calls)));
            if step % 500 == 0 {
                assert!(model.iter().all(|(&key, &times)| cuckoo.count(key) >= times));
                cuckoo = Cuckoo::from_bytes(&cuckoo.to_bytes()).unwrap();
            }
        }
        assert!(refusals > 100 && most * 100 >= slots * 97, "{refusals} refused, {most} of {slots}");
        present.iter().for_each(|&key| assert!(cuckoo.remove(key).is_removed()));
        assert!(cuckoo.words().iter().all(|&word| word == 0));
    }
}

/// Removing what was never inserted: refused where that can be seen; else it takes another's fingerprint, about as often
/// as the rate says.
#[test]
fn absent_keys_are_removed_as_rarely_as_they_are_admitted() {
    let n = 100_000;
    let mut cuckoo = seeded(1, n, 0.01, Layout::Fastest);
    let keys: Vec<u64> = (0..n).collect();
    cuckoo.insert_all(&keys).unwrap();
    let full = cuckoo.clone();
    let mut hits = 0;
    for key in 0..400_000 {
        let (admitted, before) = (cuckoo.contains(ABSENT + key), cuckoo.slots().used);
        assert_eq!(cuckoo.remove(ABSENT + key), Removal::removed_if(admitted));
        assert_eq!(cuckoo.slots().used, before - u64::from(admitted));
        if admitted {
            hits += 1;
            // Put back, so that the load stays.
            cuckoo.insert(ABSENT + key).unwrap();
        }
    }
    let measured = Proportion { hits, trials: 400_000 };
    assert!(agrees(&full, measured), "{measured:?}, predicted {}", full.fpr());
    // Nobody is denied: what was put back is what was taken.
    assert!(holds(&cuckoo, &keys));
    // Without putting it back, each takes away one that is then denied or is another's.
    let mut cuckoo = full;
    let taken = (0..2000).filter(|key| cuckoo.remove(ABSENT + key).is_removed()).count();
    let mut left = Vec::new();
    cuckoo.contains_each(&keys, &mut left);
    let denied = left.iter().filter(|&&hit| !hit).count();
    assert!(denied > 0 && denied <= taken, "{taken} taken, {denied} denied");
}

/// Single calls, calls for many keys, by digest and by bytes: one filter and one set of answers, in every packing.
#[test]
fn many_keys_at_once_are_as_one_by_one() {
    fn agree<K: Key + Copy>(empty: &Cuckoo, keys: &[K], absent: &[K]) {
        let mut single = empty.clone();
        let outcomes: Vec<_> = keys.iter().map(|&key| single.insert(key)).collect();
        let went_in = outcomes.iter().take_while(|outcome| outcome.is_ok()).count();
        let refused = outcomes.iter().find_map(|outcome| outcome.err());
        let mut single = empty.clone();
        keys[..went_in].iter().for_each(|&key| assert!(single.insert(key).is_ok()));
        let expected = refused.map_or(Ok(()), |full| Err(Full { inserted: went_in as u64, ..full }));
        let mut all = empty.clone();
        assert_eq!(all.insert_all(keys), expected);
        assert!(all.to_bytes() == single.to_bytes());
        let outcomes: Vec<_> = outcomes.into_iter().map_while(Result::ok).collect();

        let digests: Vec<Digest> = keys.iter().map(|&key| empty.hashing().digest_of(key)).collect();
        let (mut by_digest, mut told) = (empty.clone(), Vec::new());
        assert_eq!(by_digest.insert_batch(&digests, &mut told), expected);
        assert!(by_digest.to_bytes() == single.to_bytes() && told == outcomes);

        let bytes: Vec<Vec<u8>> = keys.iter().map(|key| key.with_bytes(<[u8]>::to_vec)).collect();
        let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let (mut by_bytes, mut told) = (empty.clone(), Vec::new());
        assert_eq!(by_bytes.insert_keys(&bytes, &mut told), expected.map_err(Error::Full));
        assert!(by_bytes.to_bytes() == single.to_bytes() && told == outcomes);

        let asked: Vec<K> = absent.iter().chain(keys).copied().collect();
        let expected: Vec<bool> = asked.iter().map(|&key| single.contains(key)).collect();
        let mut hits = vec![true, false];
        single.contains_each(&asked, &mut hits);
        assert!(hits[..2] == [true, false] && hits[2..] == expected);
        let digests: Vec<Digest> = asked.iter().map(|&key| empty.hashing().digest_of(key)).collect();
        hits.clear();
        single.contains_batch(&digests, &mut hits);
        assert!(hits == expected);

        let expected: Vec<Removal> = asked.iter().map(|&key| single.remove(key)).collect();
        let mut removed = vec![Removal::Absent];
        all.remove_all(&asked, &mut removed);
        assert!(removed[1..] == expected && all.to_bytes() == single.to_bytes());
        assert!(digests.iter().map(|&digest| by_digest.remove_digest(digest)).eq(expected));
        assert!(by_digest.to_bytes() == single.to_bytes());
    }

    let texts: Vec<String> = (0..5000).map(|index| format!("key {index}, as a text")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for layout in Layout::ALL {
        // 4 to 16 bits in one word, more in two; and a table that is worth prefetching.
        for (capacity, p) in [(1500, 0.1), (1500, 1e-3), (1500, 1e-8), (50_000, 1e-8)] {
            for hashing in [Hashing::Xxh3 { seed: 5 }, Hashing::Keyed(Secret::new([9; 16]))] {
                let spec = Spec::sized(capacity, p).with_layout(layout).with_hashing(hashing);
                let empty = Cuckoo::from_spec(&spec).unwrap();
                for len in [0, 1, 31, 32, 33, 65, 1400, 3000] {
                    // Every third key comes twice. 3000 are more than fit the smaller ones.
                    let integers: Vec<u64> = (0..len).map(|i| if i % 3 == 0 { i / 6 } else { i }).collect();
                    agree(&empty, &integers, &(len..2 * len + 5).collect::<Vec<u64>>());
                }
                agree(&empty, &texts[..1000], &texts[2000..3000]);
            }
        }
    }
}

#[test]
fn the_same_keys_in_the_same_order_give_the_same_bytes() {
    let keys: Vec<u64> = (0..20_000).collect();
    let made = |chunk: usize| {
        let mut cuckoo = seeded(9, 20_000, 0.001, Layout::Fastest);
        keys.chunks(chunk).for_each(|keys| cuckoo.insert_all(keys).unwrap());
        cuckoo
    };
    let whole = made(20_000);
    assert!(whole.slots().evictions > Some(500));
    for chunk in [1, 7, 32, 1000] {
        assert!(made(chunk).to_bytes() == whole.to_bytes());
    }
    assert_eq!(made(7), whole);
}

// Merging.

#[test]
fn a_merge_needs_no_keys_and_may_be_full() {
    for (ours, theirs) in [
        (Layout::Fastest, Layout::Fastest),
        (Layout::Compact, Layout::Compact),
        (Layout::Fastest, Layout::Compact),
        (Layout::Compact, Layout::Fastest),
    ] {
        for p in [0.01, 1e-7] {
            let make = |layout, keys: std::ops::Range<u64>| {
                let mut cuckoo = seeded(4, 20_000, p, layout);
                cuckoo.insert_all(&keys.collect::<Vec<_>>()).unwrap();
                cuckoo
            };
            let (mut one, two) = (make(ours, 0..12_000), make(theirs, 10_000..18_000));
            let evictions = one.slots().evictions;
            one.merge(&two).unwrap();
            assert!(holds(&one, &(0..18_000).collect::<Vec<_>>()));
            assert_eq!((one.slots().used, one.inserted(), one.layout()), (20_000, None, ours));
            assert!(one.slots().evictions > evictions);
            // The common keys are in twice.
            assert!((10_000..12_000u64).all(|key| one.count(key) >= 2 && one.remove(key).is_removed()));
            assert!(holds(&one, &(0..18_000).collect::<Vec<_>>()));
            // More than there are slots, and slots without a way to them.
            let before = one.to_bytes();
            let full = one.merge(&make(theirs, 0..12_000)).unwrap_err();
            assert!(matches!(full, Mismatch::Full(Full { limit: Limit::Slots { .. }, .. })), "{full}");
            assert!(one.to_bytes() == before);
            let free = one.slots().slots - one.slots().used;
            let full = one.merge(&make(theirs, 50_000..50_000 + free)).unwrap_err();
            assert!(matches!(full, Mismatch::Full(_)), "{full}");
            assert!(one.to_bytes() == before);
        }
    }
    // Nine copies are one too many.
    let five = |layout| {
        let mut cuckoo = seeded(4, 1000, 0.01, layout);
        (0..5).for_each(|_| assert!(cuckoo.insert("again").is_ok()));
        cuckoo
    };
    let (mut one, two) = (five(Layout::Fastest), five(Layout::Compact));
    let before = one.to_bytes();
    let full = one.merge(&two).unwrap_err();
    assert!(matches!(full, Mismatch::Full(Full { limit: Limit::Copies { most: 8 }, .. })), "{full}");
    assert!(one.to_bytes() == before);
}

#[test]
fn what_differs_is_named() {
    let make = |slots, width| Cuckoo::with_slots(slots, width, Layout::Fastest).unwrap();
    let mut ours = make(800, 12);
    let differs = |theirs: &Cuckoo, ours: &mut Cuckoo| ours.merge(theirs).unwrap_err();
    assert_eq!(
        differs(&make(800, 13), &mut ours),
        Mismatch::Differ {
            what: Parameter::FingerprintBits,
            ours: Value::Whole(12),
            theirs: Value::Whole(13)
        }
    );
    assert_eq!(
        differs(&make(808, 12), &mut ours),
        Mismatch::Differ { what: Parameter::Buckets, ours: Value::Whole(200), theirs: Value::Whole(202) }
    );
    let seeded = seeded(7, math::cuckoo_capacity(200), ours.fpr_at_capacity(), Layout::Fastest);
    assert_eq!(
        differs(&seeded, &mut ours),
        Mismatch::Differ { what: Parameter::Seed, ours: Value::Id(0), theirs: Value::Id(7) }
    );
    assert_ne!(ours, seeded);
}

// Sizes and files.

#[test]
fn slots_and_fingerprints_can_be_asked_for() {
    for (asked, granted) in [(1, 8), (8, 8), (9, 16), (1000, 1000), (1001, 1008)] {
        for layout in Layout::ALL {
            let cuckoo = Cuckoo::with_slots(asked, 9, layout).unwrap();
            assert_eq!(cuckoo.slots().slots, granted);
            assert!(cuckoo.capacity() <= granted && cuckoo.fpr_at_capacity() > 0.0);
        }
    }
    let refused = |slots, width, layout| Cuckoo::with_slots(slots, width, layout).unwrap_err();
    for (width, layout) in
        [(3, Layout::Fastest), (33, Layout::Fastest), (4, Layout::Compact), (0, Layout::Compact)]
    {
        let text = refused(100, width, layout).to_string();
        assert!(text.starts_with("fingerprint bits must be ") && text.ends_with(&format!(", not {width}")));
    }
    // No slots are not too many bits.
    assert!(matches!(
        refused(0, 8, Layout::Fastest),
        SpecError::Range { knob: Knob::Capacity, asked: Value::Whole(0), .. }
    ));
    assert!(matches!(refused(u64::MAX, 8, Layout::Fastest), SpecError::TooLarge { .. }));
    assert!(matches!(refused(1 << 47, 32, Layout::Compact), SpecError::TooLarge { .. }));
}

#[test]
fn a_clone_a_cleared_and_a_decoded_filter_are_what_they_should_be() {
    let mut cuckoo = seeded(2, 5000, 1e-4, Layout::Compact);
    cuckoo.insert_all(&(0..5000u64).collect::<Vec<_>>()).unwrap();
    let decoded = Cuckoo::from_bytes(&cuckoo.to_bytes()).unwrap();
    assert_eq!((&decoded, decoded.slots()), (&cuckoo, cuckoo.slots()));
    assert_eq!(decoded.report(), cuckoo.report());
    assert_eq!(decoded.details().slots, Some(cuckoo.slots()));
    cuckoo.clear();
    assert_eq!(cuckoo.to_bytes(), seeded(2, 5000, 1e-4, Layout::Compact).to_bytes());
    assert_eq!(decoded.clone(), decoded);
    // A key that is read by its digest is the same key.
    let digest = decoded.hashing().digest_of(17u64);
    assert!(decoded.contains_digest(digest) && Filter::contains(&decoded, &17u64.to_le_bytes()));
}

#[test]
fn crafted_files_are_refused_by_name() {
    let mut cuckoo = Cuckoo::with_slots(1000, 8, Layout::Fastest).unwrap();
    cuckoo.insert("a").unwrap();
    let file = cuckoo.to_bytes();
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = file.clone();
        change(&mut file);
        reseal(&mut file);
        Cuckoo::from_bytes(&file).expect_err("crafted")
    };
    let put = |at: usize, bytes: &[u8]| {
        let bytes = bytes.to_vec();
        refused(&move |file| file[at..at + bytes.len()].copy_from_slice(&bytes))
    };
    let value = |field, found| DecodeError::Value { field, found };
    assert_eq!(put(14, &[1]), DecodeError::Probing { found: 1 });
    assert_eq!(put(12, &[3]), DecodeError::Hashing { scheme: 3, version: 1 });
    for buckets in [0u64, 1, 251, (1 << 43) + 2, u64::MAX] {
        assert_eq!(put(96, &buckets.to_le_bytes()), value("buckets", buckets));
    }
    for width in [0, 3, 33, u32::MAX] {
        assert_eq!(put(104, &width.to_le_bytes()), value("bits of a fingerprint", width.into()));
    }
    for bits in [0, 27, 31, 33, 64, u32::MAX] {
        assert_eq!(put(108, &bits.to_le_bytes()), value("bits of a bucket", bits.into()));
    }
    // 28 bits are those of a sorted bucket: then the payload is too long.
    assert!(matches!(put(108, &[28]), DecodeError::Length { field: "payload", .. }));
    assert_eq!(put(120, &2.0f64.to_le_bytes()), value("asked rate", 2.0f64.to_bits()));
    for used in [0u64, 2, 1000, 1001, u64::MAX] {
        assert_eq!(put(88, &used.to_le_bytes()), value("occupied slots", used));
    }
    // Behind the last bucket, and a slot above an empty one.
    let last = file.len() - 1;
    assert_eq!(put(last, &[1]), DecodeError::Padding { field: "end of the payload" });
    let taken = file[4096..].iter().position(|&byte| byte != 0).unwrap();
    let free = (0..250).map(|bucket| 4 * bucket).find(|&at| !(at..at + 4).contains(&taken)).unwrap();
    let gap = refused(&|file| {
        file[4096 + free + 2] = 7;
        file[88] = 2;
    });
    assert_eq!(gap, DecodeError::Payload { problem: "a bucket that no writer gives" });
    assert_eq!(
        Cuckoo::from_bytes(&mayhap::Bloom::new(10, 0.1).unwrap().to_bytes()),
        Err(DecodeError::OtherFamily { expected: "cuckoo", found: "bloom" })
    );
}

#[test]
fn a_keyed_filter_opens_with_its_secret() {
    let (secret, other) = (Secret::new([1; 16]), Secret::new([2; 16]));
    let spec = Spec::sized(100, 0.01).with_hashing(Hashing::Keyed(secret));
    let mut cuckoo = Cuckoo::from_spec(&spec).unwrap();
    cuckoo.insert("key").unwrap();
    let file = encode(&cuckoo, Summing::Payload).to_vec();
    assert_eq!(Cuckoo::from_bytes_keyed(&file, &secret), Ok(cuckoo));
    assert!(matches!(Cuckoo::from_bytes_keyed(&file, &other), Err(DecodeError::SecretWrong { .. })));
    assert!(matches!(Cuckoo::from_bytes(&file), Err(DecodeError::SecretNeeded { .. })));
}

/// Ten million keys at 12 bits, to 95 % of a capacity that is no power of two.
#[test]
#[ignore = "slow: run by cargo xtask test --all"]
fn ten_million_keys_fill_95_percent() {
    let n = 10_000_000;
    let mut cuckoo = Cuckoo::new(n, 0.00186).unwrap();
    assert_eq!(cuckoo.fingerprint_bits(), 12);
    let keys: Vec<u64> = (0..n).collect();
    cuckoo.insert_all(&keys).unwrap();
    assert!((cuckoo.slots().load() - 0.95).abs() < 1e-4);
    assert!(cuckoo.size_in_bytes() as f64 * 8.0 / n as f64 <= 12.7);
    assert!(holds(&cuckoo, &keys));
    let measured = ask(&cuckoo, n);
    assert!(measured.rate().unwrap() <= 0.002 && agrees(&cuckoo, measured), "{measured:?}");
}

/// Who explains a filter reads its buckets.
#[test]
fn every_key_is_in_a_bucket_of_its_place() {
    for layout in Layout::ALL {
        let mut cuckoo = Cuckoo::with_slots(64, 8, layout).unwrap().rehashed(Hashing::Xxh3 { seed: 3 });
        assert_eq!((cuckoo.buckets(), cuckoo.bucket(16)), (16, None));
        cuckoo.insert_all(&(0..50u64).collect::<Vec<_>>()).unwrap();
        for key in 0..50u64 {
            let (fingerprint, [first, second]) = cuckoo.place(key);
            let holds = |bucket| cuckoo.bucket(bucket).unwrap().contains(&fingerprint);
            assert!(first != second && (holds(first) || holds(second)), "{key} in {layout:?}");
        }
        let slots = (0..16).flat_map(|bucket| cuckoo.bucket(bucket).unwrap());
        assert_eq!(slots.filter(|&slot| slot != 0).count(), 50);
        let empty = cuckoo.rehashed(Hashing::default());
        assert_eq!((empty.slots().used, empty.hashing()), (0, Hashing::default()));
    }
}
