//! The family `table`: what is its own beside the promises of every family.
//!
//! The rate against the formula is measured beside the code, in `filters/table.rs`: what a `Spec` gives is too low to be
//! measured.

use std::collections::HashSet;

use mayhap::wire::{Frame, Verify};
use mayhap::{
    DecodeError, Digest, Filter, Full, Hashing, Insert, Insertion, Knob, Limit, Merge, Mismatch, Parameter,
    Spec, SpecError, Summing, Table, Value, decode, encode,
};
use mayhap_eval::{ABSENT, Random};

use crate::crafted::reseal;

/// A table for so many keys that begins with the fewest lines and tells many more keys from each other than come here: the
/// chance that any two have one name is below 1e-7.
fn small() -> Table {
    Table::with_fpr(1e-9).unwrap()
}

fn insert(table: &mut Table, keys: impl Iterator<Item = u64>) -> Vec<Insertion> {
    let mut outcomes = Vec::new();
    table.insert_each(&keys.collect::<Vec<_>>(), &mut outcomes).unwrap();
    outcomes
}

#[track_caller]
fn assert_holds(table: &Table, keys: impl Iterator<Item = u64>) {
    let keys: Vec<u64> = keys.collect();
    let mut hits = Vec::new();
    table.contains_each(&keys, &mut hits);
    assert!(hits.len() == keys.len() && hits.iter().all(|&hit| hit), "keys were denied");
}

#[track_caller]
fn assert_lacks(table: &Table, keys: impl Iterator<Item = u64>) {
    let keys: Vec<u64> = keys.collect();
    let mut hits = Vec::new();
    table.contains_each(&keys, &mut hits);
    assert!(hits.iter().all(|&hit| !hit), "absent keys were admitted");
}

/// Digests of which all belong to the same line, as long as there are fewer than 2^32 lines: only their low half differs.
fn crowd(count: u64) -> Vec<Digest> {
    (0..count).map(|i| Digest { a: 0x1234_5678_0000_0000 + (i << 12), b: i }).collect()
}

#[test]
fn it_is_a_set_through_all_sizes() {
    let mut random = Random::new(11);
    let (mut table, mut model) = (small(), HashSet::new());
    let (mut calls, mut grown, mut capacity) = (0, 0, table.capacity());
    let draw = |random: &mut Random, model: &HashSet<u64>| random.below(2 * model.len() as u64 + 10);
    while model.len() < 120_000 {
        let (keys, outcomes) = match random.below(4) {
            0 => {
                let key = draw(&mut random, &model);
                (vec![key], vec![table.insert(key).unwrap()])
            }
            1 => {
                let key = draw(&mut random, &model);
                let digest = table.hashing().digest_of(key);
                (vec![key], vec![table.insert_digest(digest).unwrap()])
            }
            way => {
                let count = random.below(1 + model.len() as u64 / 3);
                let keys: Vec<u64> = (0..count).map(|_| draw(&mut random, &model)).collect();
                let mut outcomes = Vec::new();
                if way == 2 {
                    table.insert_each(&keys, &mut outcomes).unwrap();
                } else {
                    let digests: Vec<Digest> = keys.iter().map(|&k| table.hashing().digest_of(k)).collect();
                    table.insert_batch(&digests, &mut outcomes).unwrap();
                }
                (keys, outcomes)
            }
        };
        calls += keys.len() as u64;
        assert_eq!(keys.len(), outcomes.len());
        for (key, outcome) in keys.into_iter().zip(outcomes) {
            assert_eq!(outcome == Insertion::New, model.insert(key), "{key}");
        }
        assert_eq!((table.len(), table.inserted()), (model.len() as u64, Some(calls)));
        if table.capacity() != capacity {
            assert!(table.capacity() > capacity && table.slots().used <= table.capacity());
            (grown, capacity) = (grown + 1, table.capacity());
            assert_holds(&table, model.iter().copied());
            assert_lacks(&table, (0..1000).map(|i| ABSENT + i));
            let again = Table::from_bytes(&table.to_bytes()).unwrap();
            assert!(again == table);
        }
    }
    assert!(grown >= 10, "grew {grown} times");
    table.clear();
    assert_eq!((table.len(), table.inserted(), table.capacity()), (0, Some(0), capacity));
    assert_lacks(&table, 0..1000);
}

#[test]
fn growing_takes_half_as_many_lines_more_and_keeps_the_names() {
    let mut table = small();
    let names = table.told_apart();
    for key in 0..20_000u64 {
        let (capacity, used, bits) = (table.capacity(), table.slots().used, table.bits());
        table.insert(key).unwrap();
        assert_eq!(table.told_apart(), names);
        assert_eq!(table.capacity() != capacity, used == capacity);
        if used == capacity {
            let ratio = table.bits() as f64 / bits as f64;
            assert!((1.3..1.6).contains(&ratio), "{ratio}");
        }
    }
    // What has come before does not make it grow.
    while table.slots().used < table.capacity() {
        table.insert(50_000 + table.len()).unwrap();
    }
    let capacity = table.capacity();
    assert!(insert(&mut table, 0..20_000).iter().all(|&outcome| outcome == Insertion::Perhaps));
    assert_eq!((table.insert(7u64), table.capacity()), (Ok(Insertion::Perhaps), capacity));
    assert_eq!(table.insert(u64::MAX), Ok(Insertion::New));
    assert!(table.capacity() > capacity);
}

#[test]
fn keys_that_crowd_at_one_line_are_kept() {
    let crowd = crowd(10_000);
    let mut one_by_one = small();
    for &digest in &crowd {
        assert_eq!(one_by_one.insert_digest(digest), Ok(Insertion::New));
        assert_eq!(one_by_one.insert_digest(digest), Ok(Insertion::Perhaps));
    }
    let (mut table, mut outcomes) = (small(), Vec::new());
    table.insert_batch(&crowd, &mut outcomes).unwrap();
    assert!(outcomes.iter().all(|&outcome| outcome == Insertion::New));
    assert!(table == one_by_one);
    assert_eq!(table.len(), 10_000);
    // The line and the next three are full, and the others empty.
    assert!(table.slots().used <= 4 * 15, "{}", table.slots().used);
    let small = table.capacity();
    let holds = |table: &Table| {
        let mut hits = Vec::new();
        table.contains_batch(&crowd, &mut hits);
        assert!(hits.iter().all(|&hit| hit));
        assert!(crowd.iter().all(|&digest| table.contains_digest(digest)));
        // Others of that line are not in.
        let between = crowd.iter().map(|digest| Digest { a: digest.a + (1 << 11), b: 0 });
        assert_eq!(between.filter(|&digest| table.contains_digest(digest)).count(), 0);
    };
    holds(&table);
    let mut again = Table::from_bytes(&table.to_bytes()).unwrap();
    assert!(again == table);
    for table in [&mut table, &mut again] {
        insert(table, 0..100_000);
        assert_eq!(table.len(), 110_000);
        assert!(table.capacity() > 20 * small);
        holds(table);
        assert_holds(table, 0..100_000);
    }
    assert!(again == table && Table::from_bytes(&table.to_bytes()).unwrap() == table);
    assert_eq!(table.bits() % 64, 0);
    assert!(table.size_in_bytes() > table.bits() / 8);
    // And merged, from beside the lines to beside the lines.
    let mut merged = Table::with_fpr(1e-9).unwrap();
    insert(&mut merged, 50_000..150_000);
    merged.merge(&table).unwrap();
    assert_eq!(merged.len(), 160_000);
    holds(&merged);
    assert_holds(&merged, 0..150_000);
    table.clear();
    assert_eq!((table.len(), table.contains_digest(crowd[9_999])), (0, false));
}

#[test]
fn tables_of_different_sizes_are_merged() {
    for (ours, theirs) in
        [(0..100u64, 50..60_000), (0..60_000, 59_000..59_500), (0..1, 1..2), (0..0, 0..3000)]
    {
        let (mut one, mut two) = (small(), small());
        insert(&mut one, ours.clone());
        insert(&mut two, theirs.clone());
        let before = two.to_bytes();
        one.merge(&two).unwrap();
        assert!(two.to_bytes() == before);
        let all: HashSet<u64> = ours.chain(theirs).collect();
        assert_eq!((one.len(), one.inserted()), (all.len() as u64, None));
        assert!(one.slots().used <= one.capacity());
        assert_holds(&one, all.iter().copied());
        assert_lacks(&one, (0..1000).map(|i| ABSENT + i));
        // It is a table like any other.
        assert!(Table::from_bytes(&one.to_bytes()).unwrap() == one);
        insert(&mut one, 200_000..300_000);
        assert_holds(&one, all.into_iter().chain(200_000..300_000));
        // Itself again changes nothing.
        let len = one.len();
        let copy = one.clone();
        one.merge(&copy).unwrap();
        assert_eq!(one.len(), len);
    }
}

#[test]
fn what_does_not_match_is_not_merged_and_changes_nothing() {
    let mut table = small();
    insert(&mut table, 0..3000);
    let before = table.to_bytes();
    let other = Table::new(1024, 1e-6).unwrap();
    let (ours, theirs) = (table.told_apart(), other.told_apart());
    assert_eq!(
        table.merge(&other),
        Err(Mismatch::Differ {
            what: Parameter::DistinctKeys,
            ours: Value::Whole(ours),
            theirs: Value::Whole(theirs)
        })
    );
    let seeded = Spec::sized(1024, 1e-9).with_hashing(Hashing::Xxh3 { seed: 5 });
    let other = Table::from_spec(&seeded).unwrap();
    assert!(matches!(
        table.merge(&other),
        Err(Mismatch::Differ { what: Parameter::Hashing, .. }
            | Mismatch::Differ { what: Parameter::Seed, .. })
    ));
    assert!(table.to_bytes() == before);
}

#[test]
fn what_is_asked_is_granted() {
    for fpr in [0.01, 1e-6, 1e-9, 1e-10] {
        for capacity in [1, 1000, 1_000_000, 20_000_000] {
            for doublings in [Some(0), Some(4), None] {
                let spec = Spec::sized(capacity, fpr);
                let spec = doublings.map_or(spec, |doublings| spec.with_doublings(doublings));
                let size = spec.table().unwrap();
                assert!(size.capacity >= capacity && size.fpr <= fpr);
                // Also with as many keys as were planned for.
                let planned = capacity.max(1000) as f64 * f64::from(1 << doublings.unwrap_or(0));
                assert!(planned / size.told_apart() as f64 <= fpr);
                // The same in so many bits.
                let within = Spec::new().with_bits(size.bits()).with_fpr(fpr);
                let within = doublings.map_or(within, |doublings| within.with_doublings(doublings));
                let within = within.table().unwrap();
                assert!(within.bits() <= size.bits() && within.fpr <= fpr);
                let best = Spec::new().with_bits(size.bits()).with_capacity(capacity).table().unwrap();
                assert!(best.bits() <= size.bits() && best.capacity >= capacity);
            }
        }
    }
    // 63 bits of a digest are names.
    let asked = 1e-12;
    let Err(SpecError::FprBelow { least, .. }) = Spec::sized(20_000_000, asked).table() else {
        panic!("granted")
    };
    assert!(Spec::sized(20_000_000, least * 1.01).table().is_ok());
    let far = Spec::sized(1_000_000, 1e-9).with_doublings(40);
    assert!(matches!(far.table(), Err(SpecError::FprBelow { .. })));
    let doublings = Spec::sized(1000, 0.01).with_doublings(49).table().unwrap_err();
    assert_eq!(doublings.to_string(), "doublings must be 0 to 48, not 49");
    let probes = Spec::sized(1000, 0.01).with_probes(3).table();
    assert!(matches!(probes, Err(SpecError::NotFor { knob: Knob::Probes, .. })));
}

/// The bits per key that README and `mayhap families` name.
#[test]
fn bits_per_key_are_what_the_readme_says() {
    let per_key = |n: u64, fpr: f64, doublings: Option<u32>| {
        let spec = Spec::sized(n, fpr);
        let size = doublings.map_or(spec, |d| spec.with_doublings(d)).table().unwrap();
        (size.bits() as f64 / n as f64 * 10.0).round() / 10.0
    };
    let found = [1_000_000, 20_000_000]
        .map(|n| (per_key(n, 1e-9, Some(0)), per_key(n, 1e-9, None), per_key(n, 1e-6, Some(0))));
    assert_eq!(found, [(41.8, 58.5, 39.0), (41.8, 53.2, 39.0)]);
    // A `bloom` has fewer from 1e-8 on.
    let bloom = |fpr| Spec::sized(1_000_000, fpr).bloom().unwrap().bits as f64 / 1e6;
    assert!(bloom(1e-8) < per_key(1_000_000, 1e-8, Some(0)) && bloom(1e-9) > 41.8);
}

fn u64_at(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap())
}

fn put(file: &mut [u8], at: usize, value: u64) {
    file[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// A file with a change, and with the number of keys that its lines then say.
fn crafted(file: &[u8], slots: u64, change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut file = file.to_vec();
    change(&mut file);
    let (lines, crowded) = (u64_at(&file, 96) as usize + 3, u64_at(&file, 120));
    let counts = (0..lines).map(|line| u64::from(file[4096 + 64 * line + 63] >> 4).min(slots));
    let keys = counts.sum::<u64>() + crowded;
    put(&mut file, 88, keys);
    reseal(&mut file);
    file
}

/// Refused if it is read whole. If only the header is looked at, it answers something and is not changed.
#[track_caller]
fn assert_noticed(file: Vec<u8>) {
    let problem = "a line that no writer gives";
    assert_eq!(Table::from_bytes(&file).err(), Some(DecodeError::Payload { problem }));
    let mut frame = Frame::parse(&file.into(), Verify::Header).unwrap();
    let hashing = frame.hashing(None).unwrap();
    let mut opened = decode(&mut frame, hashing).unwrap();
    let digests: Vec<Digest> = (0..5000u64).map(|key| hashing.digest_of(key)).chain(crowd(100)).collect();
    opened.contains_batch(&digests, &mut Vec::new());
    let before = encode(&*opened, Summing::Payload).to_vec();
    let damaged = Err(Full { limit: Limit::Damaged, inserted: 0 });
    assert_eq!(opened.as_insert().unwrap().insert_digest(digests[0]), damaged.map(|()| Insertion::New));
    assert_eq!(opened.as_insert().unwrap().insert_batch(&digests, &mut Vec::new()), damaged);
    let mut whole = small();
    assert!(whole.merge_from(&*opened).is_err());
    assert_eq!(whole.len(), 0);
    assert!(encode(&*opened, Summing::Payload).to_vec() == before);
}

#[test]
fn damaged_lines_are_refused_and_never_changed() {
    let mut table = small();
    insert(&mut table, 0..300);
    // In the first line.
    table.insert_digest(Digest { a: 0, b: 0 }).unwrap();
    // Crowded at one line, and beside.
    table.insert_batch(&crowd(100), &mut Vec::new()).unwrap();
    let file = table.to_bytes();
    let slots = table.slots().slots / u64_at(&file, 96);
    assert!(slots < 15, "a count of 15 is too many");
    let lines = u64_at(&file, 96) as usize;
    let crowded = u64_at(&file, 120) as usize;
    assert!(crowded > 40);
    let count = |line: usize| u64::from(file[4096 + 64 * line + 63] >> 4);
    assert!(Table::from_bytes(&crafted(&file, slots, |_| {})).is_ok());

    let spare = (1..lines).find(|&line| count(line) > 0 && count(line) + 2 < slots).unwrap();
    let at = 4096 + 64 * spare;
    // More than fit.
    assert_noticed(crafted(&file, slots, |file| file[at + 63] |= 0xf0));
    // Bits behind the last remainder.
    assert_noticed(crafted(&file, slots, |file| file[at + 4 * count(spare) as usize] |= 1));
    // From a line before, which is not full.
    assert!(count(spare - 1) < slots);
    assert_noticed(crafted(&file, slots, |file| file[at] |= 1));
    // From a line before the first.
    assert!(count(0) > 0);
    for distance in 1..4 {
        assert_noticed(crafted(&file, slots, |file| file[4096] = file[4096] & !3 | distance));
    }
    // A key that belongs to a line behind the last.
    assert_eq!(count(lines), 0);
    let behind = 4096 + 64 * lines;
    assert_noticed(crafted(&file, slots, |file| file[behind + 63] = 0x10));
    // A key beside the lines that has room in them.
    let beside = 4096 + 64 * (lines + 3);
    assert_eq!(beside + 8 * crowded, file.len());
    assert_noticed(crafted(&file, slots, |file| put(file, beside, 0)));
    // A key beside the lines that is in them too.
    let name_in_lines = ((u128::from(crowd(1)[0].a) * u128::from(table.told_apart())) >> 64) as u64;
    assert_noticed(crafted(&file, slots, |file| put(file, beside, name_in_lines)));

    // The list itself is looked at in any case.
    let refused = |file: Vec<u8>| {
        let error = Table::from_bytes(&file).unwrap_err();
        let mut frame = Frame::parse(&file.into(), Verify::Header).unwrap();
        let hashing = frame.hashing(None).unwrap();
        assert_eq!(decode(&mut frame, hashing).err(), Some(error));
        error
    };
    let order = DecodeError::Payload { problem: "the keys beside the lines are not in order" };
    let names = table.told_apart();
    for (at, name) in [
        (beside, u64_at(&file, beside + 8)),
        (beside + 8, 0),
        (file.len() - 8, names),
        (file.len() - 8, u64::MAX),
    ] {
        assert_eq!(refused(crafted(&file, slots, |file| put(file, at, name))), order);
    }
}

#[test]
fn a_place_that_no_name_has_is_refused() {
    // Grown once, names are scaled up by a half: a third of all places has none.
    let mut table = small();
    let first = table.capacity();
    insert(&mut table, 0..first + 1);
    while table.capacity() == first {
        table.insert(first + table.len()).unwrap();
    }
    let file = table.to_bytes();
    let slots = table.slots().slots / u64_at(&file, 96);
    let spare =
        (0..90).find(|line| (1..slots as u8 - 1).contains(&(file[4096 + 64 * line + 63] >> 4))).unwrap();
    let at = 4096 + 64 * spare;
    let mut refused = 0;
    for remainder in 0..90u8 {
        // In place of the first in its line; the distance stays 0.
        let file = crafted(&file, slots, |file| {
            file[at] = remainder << 2;
            file[at + 1] = remainder >> 6;
        });
        if Table::from_bytes(&file).is_err() {
            refused += 1;
            assert_noticed(file);
        }
    }
    assert!((20..=40).contains(&refused), "{refused} of 90");
}

#[test]
fn crafted_parameters_are_refused() {
    let mut table = small();
    insert(&mut table, 0..100);
    let file = table.to_bytes();
    let refused = |at: usize, value: u64| {
        let mut crafted = file.clone();
        put(&mut crafted, at, value);
        reseal(&mut crafted);
        Table::from_bytes(&crafted).expect_err("crafted")
    };
    let value = |field, found| DecodeError::Value { field, found };
    for lines in [0, 63, 1 << 39, 1 << 47, u64::MAX] {
        assert_eq!(refused(96, lines), value("lines", lines));
    }
    assert!(matches!(refused(96, 65), DecodeError::Length { field: "payload", .. }));
    for names in [0, 63, 1 << 63, u64::MAX] {
        assert_eq!(refused(104, names), value("keys that are told from each other", names));
    }
    // Fewer names than lines.
    assert_eq!(refused(104, 64), value("lines", u64_at(&file, 96)));
    for rate in [f64::NAN, -0.5, 1.5] {
        assert_eq!(refused(112, rate.to_bits()), value("asked rate", rate.to_bits()));
    }
    for crowded in [1, 1 << 40, 1 << 61, u64::MAX] {
        assert!(matches!(refused(120, crowded), DecodeError::Length { field: "payload", .. }));
    }
    for keys in [0, 99, 101, 1 << 40, u64::MAX] {
        assert_eq!(refused(88, keys), value("keys", keys));
    }
}

/// The names beside the lines were no part of the plan: 1 to 2% of a table that is full.
#[test]
fn a_full_table_was_larger_than_its_plan() {
    for (n, fpr) in [(1000, 0.01), (5000, 1e-3), (20_000, 1e-6), (60_000, 1e-9)] {
        let spec = Spec::sized(n, fpr);
        let planned = (mayhap::family("table").unwrap().plan)(&spec).unwrap();
        let bits = |seed: u64| {
            let mut table = Table::from_spec(&spec.with_hashing(Hashing::Xxh3 { seed })).unwrap();
            insert(&mut table, 0..n);
            assert_eq!(table.capacity(), planned.capacity, "it has grown");
            table.bits()
        };
        let mean = (0..20).map(bits).sum::<u64>() as f64 / 20.0;
        assert!(
            (mean / planned.bits as f64 - 1.0).abs() < 0.005,
            "{n} at {fpr}: {mean}, planned {planned:?}"
        );
    }
}
