//! Every promise, for every family. A new family is tested here as soon as it stands in `FAMILIES`.
//!
//! Sets of integers get small integers as keys, the others byte strings of all kinds. All randomness
//! has a fixed seed.

use std::cell::Cell;
use std::collections::HashSet;
use std::num::NonZeroU16;
use std::ops::Range;

use mayhap::internals::{Paths, with_paths};
use mayhap::key_rules::{Cut, JsonKeys, KeyRules, Spelling};
use mayhap::wire::{Flags, Frame, Header, KEY_RULES, METADATA, PAGE, Verify, mark_writing};
use mayhap::{
    AnyFilter, Bloom, BuildError, Bytes, Combine, CountingRule, DecodeError, Digest, Error, Expanding,
    FAMILIES, Family, Full, Guarantee, Hashing, Insertion, Labels, Limit, Make, Mismatch, Parameter, Removal,
    Report, Secret, Spec, SpecError, Summing, Value, combine, encode, encode_with, except, open,
    with_key_rules,
};
use mayhap_eval::{KeyKind, Random};

use crate::crafted::reseal;
use crate::paths;

// Fixtures.

thread_local! {
    /// The loops that the filters of this test take.
    static PATHS: Cell<Paths> = Cell::default();
}

fn make_as(family: &Family, spec: &Spec) -> Result<Box<dyn AnyFilter>, SpecError> {
    let spec = &with_paths(*spec, PATHS.get());
    match family.make {
        Make::Empty(make) => make(spec),
        Make::Counted(make) => make(spec, &mut std::iter::empty()),
        Make::OfTwo(make) => make(spec, &[], &[]),
        Make::FromDigests(make) => make(spec, &Vec::new(), 1).map_err(spec_error),
        Make::Within(make) => make(spec, &Vec::new(), &Vec::new(), 1).map_err(spec_error),
        _ => panic!("{}: another way to be made", family.name),
    }
}

fn spec_error(error: BuildError) -> SpecError {
    match error {
        BuildError::Spec(error) => error,
        other => panic!("{other}"),
    }
}

/// A filter with these keys. A family that is made of all of its keys at once gets each of them once, and if it is of
/// two sets a third of them into each and a third into both.
fn make_with(family: &Family, spec: &Spec, keys: &[Vec<u8>]) -> Box<dyn AnyFilter> {
    let spec = &with_paths(*spec, PATHS.get());
    let digests: Vec<Digest> = keys.iter().map(|key| spec.hashing().digest(key)).collect();
    let made = match family.make {
        Make::Counted(make) => make(spec, &mut digests.iter().map(|&digest| (digest, 1))),
        Make::FromDigests(make) => {
            let halves: Vec<u64> = digests.iter().map(|digest| digest.a).collect();
            make(spec, &halves, 1).map_err(spec_error)
        }
        // With twice as many others, that nobody asks for.
        Make::Within(make) => {
            let halves: Vec<u64> = digests.iter().map(|digest| digest.a).collect();
            let other = |i: u64| spec.hashing().digest(format!("other {i}").as_bytes()).a;
            let others: Vec<u64> = (0..2 * keys.len() as u64).map(other).collect();
            make(spec, &halves, &others, 1).map_err(spec_error)
        }
        Make::OfTwo(make) => make(spec, &digests[..2 * keys.len() / 3], &digests[keys.len() / 3..]),
        _ => make_as(family, spec).map(|mut filter| {
            insert(&mut *filter, keys);
            filter
        }),
    };
    made.unwrap()
}

/// Whether keys can still be inserted when the filter is made.
fn takes_keys(family: &Family) -> bool {
    matches!(family.make, Make::Empty(_))
}

fn make(family: &Family, capacity: u64) -> Box<dyn AnyFilter> {
    make_as(family, &Spec::sized(capacity, 0.01)).unwrap()
}

fn takes_integers(family: &Family) -> bool {
    make(family, 1).hashing() == Hashing::Integer
}

/// Whether a family keeps fingerprints in slots, so that inserts fail some time after its capacity. All others take any
/// number of keys.
fn has_slots(family: &Family) -> bool {
    make(family, 1).details().slots.is_some()
}

/// Whether a family forgets all but the last keys, so that more than its capacity make no false positives but denials.
fn forgets(family: &Family) -> bool {
    make(family, 1).report().guarantee == Guarantee::NoFalseNegativesInWindow
}

/// The keys that a filter may not deny after all of these: all, or as many as it remembers.
fn undeniable<'a>(filter: &dyn AnyFilter, keys: &'a [Vec<u8>]) -> &'a [Vec<u8>] {
    if forgets(filter.family()) {
        let kept = usize::try_from(filter.report().capacity).unwrap_or(usize::MAX);
        return &keys[keys.len().saturating_sub(kept)..];
    }
    keys
}

/// Key number `index` for a family. Different numbers give different keys.
fn key(family: &Family, index: u64) -> Vec<u8> {
    key_of(takes_integers(family), index)
}

fn key_of(is_integer: bool, index: u64) -> Vec<u8> {
    if is_integer {
        return index.to_le_bytes().to_vec();
    }
    // What real programs trip over comes first.
    match index {
        0 => Vec::new(),
        1 => vec![0],
        2 => vec![0; 2],
        3 => vec![0xff, 0xfe, 0x80],
        4 => b"line\r\n".to_vec(),
        5 => "née".into(),
        6 => vec![b'x'; 100_000],
        _ => KeyKind::ALL[(index % 5) as usize].key(1, index),
    }
}

fn keys(family: &Family, indexes: Range<u64>) -> Vec<Vec<u8>> {
    // Looked up once: it makes a filter.
    let are_integers = takes_integers(family);
    indexes.map(|index| key_of(are_integers, index)).collect()
}

fn slices(keys: &[Vec<u8>]) -> Vec<&[u8]> {
    keys.iter().map(Vec::as_slice).collect()
}

fn digests(filter: &dyn AnyFilter, keys: &[Vec<u8>]) -> Vec<Digest> {
    keys.iter().map(|key| filter.hashing().digest(key)).collect()
}

/// The area of a key in a family of many sets: one of three, and always the same.
fn area(filter: &dyn AnyFilter, digest: Digest) -> NonZeroU16 {
    let areas = filter.as_label().map_or(1, |label| label.areas().min(3));
    NonZeroU16::new(1 + (digest.b % u64::from(areas)) as u16).unwrap()
}

fn insert(filter: &mut dyn AnyFilter, keys: &[Vec<u8>]) -> Vec<Insertion> {
    let mut outcomes = Vec::new();
    if !filter.family().can.inserts {
        for digest in digests(filter, keys) {
            let area = area(filter, digest);
            outcomes.push(filter.as_label_mut().unwrap().insert_labelled(digest, area).unwrap());
        }
        return outcomes;
    }
    filter.insert_keys(&slices(keys), &mut outcomes).unwrap();
    outcomes
}

fn holds_all(filter: &dyn AnyFilter, keys: &[Vec<u8>]) -> bool {
    keys.iter().all(|key| filter.contains(key))
}

/// A filter with the keys of these numbers.
fn filled(family: &Family, capacity: u64, indexes: Range<u64>) -> Box<dyn AnyFilter> {
    make_with(family, &Spec::sized(capacity, 0.01), &keys(family, indexes))
}

fn file_of(filter: &dyn AnyFilter) -> Vec<u8> {
    encode(filter, Summing::Payload).to_vec()
}

fn reopen(file: &[u8]) -> Result<Box<dyn AnyFilter>, DecodeError> {
    let mut filter = open(file.to_vec().into(), None)?;
    filter.set_paths(PATHS.get());
    Ok(filter)
}

fn expect_refused(file: Vec<u8>, what: &str) -> DecodeError {
    match open(file.into(), None) {
        Err(error) => error,
        Ok(_) => panic!("{what}: accepted"),
    }
}

fn payload_of(file: &[u8]) -> &[u8] {
    let header = Header::decode(file, file.len() as u64).unwrap();
    let Range { start, end } = header.payload.offset..header.payload.offset + header.payload.length;
    &file[start as usize..end as usize]
}

fn answers(filter: &dyn AnyFilter, family: &Family, indexes: Range<u64>) -> Vec<bool> {
    keys(family, indexes).iter().map(|key| filter.contains(key)).collect()
}

fn each_family(mut test: impl FnMut(&'static Family)) {
    for family in FAMILIES {
        // Seen only when a test fails.
        println!("family {}", family.name);
        test(family);
    }
}

/// The same with every loop that a family has, whatever the size, the processor and the number of keys would choose.
fn each_family_on_every_path(mut test: impl FnMut(&'static Family)) {
    for (path, paths) in paths::ALL.iter().copied() {
        println!("path {path}");
        PATHS.set(paths);
        each_family(&mut test);
    }
    PATHS.set(Paths::default());
}

// What a family says about itself.

#[test]
fn ids_and_names_are_unique_and_found() {
    let ids: HashSet<u16> = FAMILIES.iter().map(|family| family.id).collect();
    let names: HashSet<&str> = FAMILIES.iter().map(|family| family.name).collect();
    assert_eq!((ids.len(), names.len()), (FAMILIES.len(), FAMILIES.len()));
    each_family(|family| {
        assert!(family.id > 0);
        assert!(family.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", family.name);
        assert!(!family.summary.is_empty() && !family.summary.contains('\n'));
        assert_eq!(mayhap::family(family.name), Some(family));
        assert_eq!(make(family, 10).family(), family);
    });
    assert_eq!(mayhap::family("no such family"), None);
}

#[test]
fn capabilities_are_those_that_a_filter_offers() {
    each_family(|family| {
        let mut filter = make(family, 100);
        let exact = family.can.exact;
        let mut offered = family.can;
        offered.inserts = filter.as_insert().is_some();
        offered.removes = filter.as_remove().is_some();
        offered.counts = filter.as_count().is_some();
        offered.labels = filter.as_label().is_some();
        offered.merges = filter.as_merge().is_some();
        offered.intersects = filter.as_intersect().is_some();
        offered.subtracts = filter.as_subtract().is_some();
        offered.folds = filter.as_fold().is_some();
        assert_eq!(offered, family.can);
        assert_eq!(filter.can(), offered);
        assert_eq!(filter.unsupported("fly"), Error::Unsupported { family: family.name, operation: "fly" });
        assert_eq!(filter.as_label_mut().is_some(), family.can.labels);
        assert_eq!(filter.report().guarantee == Guarantee::Exact, exact);
        let mut outcomes = Vec::new();
        let inserted = filter.insert_keys(&[&key(family, 7)], &mut outcomes);
        let refused = filter.unsupported("insert");
        assert_eq!(inserted, if family.can.inserts { Ok(()) } else { Err(refused) });
    });
}

#[test]
fn a_plan_is_what_is_built() {
    each_family(|family| {
        for (capacity, fpr) in [(1, 0.5), (10, 0.01), (1000, 0.001), (12_345, 0.03)] {
            let mut spec = Spec::sized(capacity, fpr);
            if matches!(family.make, Make::Within(_)) {
                spec = spec.with_others(2 * capacity);
            }
            let built = match family.make {
                Make::Empty(make) => make(&spec),
                _ => Ok(make_with(family, &spec, &keys(family, 0..capacity))),
            };
            let (plan, report) = ((family.plan)(&spec).unwrap(), built.unwrap().report());
            assert_eq!(plan.capacity, report.capacity);
            assert_eq!(plan.probes, report.probes);
            assert_eq!(plan.fpr_asked, report.fpr_asked);
            assert_eq!(plan.fpr, report.fpr_at_capacity);
            // A family that grows starts empty, and its plan is for the capacity.
            if !family.can.grows {
                // How many keys a ribbon bumps depends on them.
                let slack = (family.profile.slack)(report.bits);
                assert!(plan.bits.abs_diff(report.bits) <= slack, "{} and {} bits", plan.bits, report.bits);
            }
            assert!(plan.bits_per_key() > 0.0);
        }
    });
}

#[test]
fn nonsense_is_refused_without_a_panic_or_an_allocation() {
    let before = peak_of_memory();
    let sized = |p| Spec::sized(1000, p);
    let nonsense = [
        ("rate not a number", sized(f64::NAN)),
        ("rate infinite", sized(f64::INFINITY)),
        ("rate minus infinite", sized(f64::NEG_INFINITY)),
        ("rate 0", sized(0.0)),
        ("rate -0", sized(-0.0)),
        ("rate 1", sized(1.0)),
        ("rate above 1", sized(1.000_001)),
        ("rate in percent", sized(5.0)),
        ("rate negative", sized(-0.01)),
        ("rate 1e-300", sized(1e-300)),
        ("rate subnormal", sized(f64::from_bits(1))),
        ("capacity 0", Spec::sized(0, 0.01)),
        ("capacity 2^63", Spec::sized(1 << 63, 0.01)),
        ("capacity 2^64 - 1", Spec::sized(u64::MAX, 0.01)),
        ("bits 0", Spec::new().with_bits(0).with_fpr(0.01)),
        ("bits 2^48 + 1", Spec::new().with_bits((1 << 48) + 1).with_fpr(0.01)),
        ("bits 2^64 - 1", Spec::new().with_bits(u64::MAX).with_fpr(0.01)),
        ("bits 2^64 - 1 and capacity", Spec::new().with_bits(u64::MAX).with_capacity(1)),
        ("probes 0", sized(0.01).with_probes(0)),
        ("probes 65", sized(0.01).with_probes(65)),
        ("probes 2^32 - 1", sized(0.01).with_probes(u32::MAX)),
        ("nothing", Spec::new()),
        ("a rate only", Spec::new().with_fpr(0.01)),
        ("probes only", Spec::new().with_probes(3)),
        ("more keys than bits allow", Spec::new().with_capacity(1 << 40).with_bits(8).with_fpr(0.01)),
    ];
    each_family(|family| {
        for (what, spec) in &nonsense {
            let planned = (family.plan)(spec).err();
            let made = make_as(family, spec).err();
            assert!(planned.is_some() && made.is_some(), "{what}: accepted");
            // Not by `==`: a rate that is not a number differs from itself.
            assert_eq!(format!("{planned:?}"), format!("{made:?}"), "{what}");
            if let Some(shared) = family.shared {
                assert!(shared(spec).is_err(), "{what}");
            }
        }
        // Within the limits, though no machine has it: planned at once, because nothing is built.
        let absurd = Spec::new().with_capacity(1 << 40).with_fpr(0.01);
        assert!((family.plan)(&absurd).unwrap().bits > 1 << 40 || family.can.exact);
    });
    assert_little_memory_was_asked_for_since(before);
}

#[test]
fn a_family_hashes_or_does_not() {
    let keyed = Hashing::Keyed(Secret::new([7; 16]));
    each_family(|family| {
        let make =
            |hashing| make_as(family, &Spec::sized(10, 0.01).with_hashing(hashing)).map(|f| f.hashing());
        let refused = |hashing: Hashing| Err(SpecError::Hashing { asked: hashing.name() });
        if takes_integers(family) {
            assert_eq!(make(Hashing::Integer), Ok(Hashing::Integer));
            for hashing in [keyed, Hashing::Xxh3 { seed: 1 }] {
                assert_eq!(make(hashing), refused(hashing));
            }
        } else {
            assert_eq!(make(Hashing::Integer), refused(Hashing::Integer));
            for hashing in [keyed, Hashing::Xxh3 { seed: 1 }] {
                assert_eq!(make(hashing), Ok(hashing));
            }
        }
    });
}

// Keys.

#[test]
fn no_key_that_is_in_is_ever_denied() {
    each_family_on_every_path(|family| {
        let count = 10_000;
        let mut filter = filled(family, count, 0..count);
        assert!(holds_all(&*filter, &keys(family, 0..count)));
        assert_eq!(filter.report().inserted, Some(count));
        if has_slots(family) && !family.can.grows {
            // Until there is no room: nobody is lost, and the refused key changes nothing.
            let mut held = count;
            let refused = loop {
                let before = file_of(&*filter);
                let given = keys(family, held..held + 100);
                let mut outcomes = Vec::new();
                match filter.insert_keys(&slices(&given), &mut outcomes) {
                    Ok(()) => held += 100,
                    Err(Error::Full(full)) => {
                        assert!(outcomes.len() as u64 == full.inserted && full.inserted < 100);
                        held += full.inserted;
                        assert!(file_of(&*filter) != before || full.inserted == 0);
                        break key(family, held);
                    }
                    Err(other) => panic!("{other}"),
                }
            };
            let before = file_of(&*filter);
            let digest = filter.hashing().digest(&refused);
            assert!(filter.as_insert().unwrap().insert_digest(digest).is_err());
            assert_eq!(file_of(&*filter), before);
            assert!(held > count && holds_all(&*filter, &keys(family, 0..held)));
            assert_eq!(filter.report().inserted, Some(held));
            assert!(filter.report().over_capacity());
        } else if !takes_integers(family) {
            // Three times as many as it was made for: more errors, unless it grows, but no denial.
            if takes_keys(family) {
                insert(&mut *filter, &keys(family, count..3 * count));
            } else {
                filter = filled(family, count, 0..3 * count);
            }
            let all = keys(family, 0..3 * count);
            assert!(holds_all(&*filter, undeniable(&*filter, &all)));
            let keeps_its_rate = family.can.exact
                || family.can.grows
                || forgets(family)
                || matches!(family.make, Make::FromDigests(_) | Make::Within(_));
            assert_eq!(filter.report().over_capacity(), !keeps_its_rate);
            if forgets(family) {
                // Older than what it holds anything of, only by chance: 1% of 10,000, where more than 160 have a
                // chance below 1e-8.
                let gone = answers(&*filter, family, 0..count).iter().filter(|&&hit| hit).count();
                assert!(filter.details().window.unwrap().forgotten < 2 * count && gone <= 160, "{gone}");
            }
        }
    });
}

#[test]
fn exact_families_admit_nothing_else() {
    each_family_on_every_path(|family| {
        let filter = filled(family, 10_000, 0..5000);
        let admitted = answers(&*filter, family, 5000..10_000).iter().filter(|&&hit| hit).count();
        if family.can.exact {
            assert_eq!(admitted, 0);
            assert_eq!(filter.report().estimated_len, Some(5000.0));
        } else {
            // 5000 probes at 1% or less: more than 100 hits have a chance below 1e-9.
            assert!(admitted <= 100, "{admitted} of 5000");
        }
    });
}

#[test]
fn batches_answer_like_single_calls() {
    each_family_on_every_path(|family| {
        // Half full, and nearly empty.
        for capacity in [2000, 20_000] {
            let filter = filled(family, capacity, 0..1000);
            let asked = keys(family, 500..1500);
            let single: Vec<bool> = asked.iter().map(|key| filter.contains(key)).collect();
            let digests = digests(&*filter, &asked);
            assert_eq!(single, digests.iter().map(|&d| filter.contains_digest(d)).collect::<Vec<_>>());
            for len in [0, 1, 31, 32, 33, 63, 64, 65, 1000] {
                // Answers are appended: what is there already stays.
                let mut hits = vec![true, false];
                filter.contains_batch(&digests[..len], &mut hits);
                assert_eq!(hits, [&[true, false], &single[..len]].concat(), "{len} digests");
                let mut hits = vec![false];
                filter.contains_keys(&slices(&asked[..len]), &mut hits);
                assert_eq!(hits, [&[false], &single[..len]].concat(), "{len} keys");
            }
        }
    });
}

#[test]
fn batches_insert_like_single_calls() {
    each_family_on_every_path(|family| {
        if !family.can.inserts {
            return;
        }
        for capacity in [2000, 20_000] {
            let mut given = keys(family, 0..1000);
            // Repeats inside one batch, in the next one and far away.
            given[20] = given[19].clone();
            given[40] = given[10].clone();
            given[900] = given[5].clone();
            let [mut by_one, mut by_digests, mut by_keys] = [0; 3].map(|_| make(family, capacity));
            let digests = digests(&*by_one, &given);
            let one = by_one.as_insert().unwrap();
            let single: Vec<Insertion> = digests.iter().map(|&d| one.insert_digest(d).unwrap()).collect();
            for repeat in [20, 40, 900] {
                assert_eq!(single[repeat], Insertion::Perhaps);
            }
            let mut outcomes = vec![Insertion::New];
            by_digests.as_insert().unwrap().insert_batch(&digests, &mut outcomes).unwrap();
            assert_eq!(outcomes[1..], single);
            assert_eq!(insert(&mut *by_keys, &given), single);
            assert_eq!(file_of(&*by_digests), file_of(&*by_one));
            assert_eq!(file_of(&*by_keys), file_of(&*by_one));
        }
    });
}

#[test]
fn a_full_filter_says_how_many_went_in_and_keeps_them() {
    each_family_on_every_path(|family| {
        if !takes_integers(family) {
            return;
        }
        let mut filter = make(family, 100);
        let mut given = keys(family, 0..70);
        given.push(b"seven b".to_vec());
        given.extend(keys(family, 70..80));
        let mut outcomes = Vec::new();
        let full = Full { limit: Limit::NotAnInteger, inserted: 70 };
        assert_eq!(filter.insert_keys(&slices(&given), &mut outcomes), Err(full.into()));
        assert_eq!((outcomes.len(), filter.report().inserted), (70, Some(70)));
        assert!(
            holds_all(&*filter, &given[..70]) && !filter.contains(&given[70]) && !filter.contains(&given[71])
        );
        for key in [&b""[..], &[0; 7], &[0; 9], &[0; 16]] {
            let digest = filter.hashing().digest(key);
            assert!(!filter.contains(key));
            assert!(filter.as_insert().unwrap().insert_digest(digest).is_err());
            assert!(!filter.as_remove().unwrap().remove_digest(digest).is_removed());
        }
        if family.can.grows {
            insert(&mut *filter, &[u64::MAX.to_le_bytes().to_vec()]);
            assert!(filter.contains(&u64::MAX.to_le_bytes()));
        } else {
            for key in [100, 101, u64::MAX] {
                let given = [key.to_le_bytes().to_vec()];
                let error = filter.insert_keys(&slices(&given), &mut outcomes).unwrap_err();
                assert_eq!(error, Full { limit: Limit::Universe { universe: 100, key }, inserted: 0 }.into());
                assert!(!filter.contains(&given[0]));
            }
        }
        assert!(holds_all(&*filter, &given[..70]));
    });
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
fn threads_build_the_same_bytes_as_one_thread() {
    each_family_on_every_path(|family| {
        let Some(shared) = family.shared else { return };
        let spec = Spec::sized(20_000, 0.01).with_hashing(Hashing::Xxh3 { seed: 5 });
        let shared = shared(&with_paths(spec, PATHS.get())).unwrap();
        let keys = keys(family, 0..20_000);
        let digests: Vec<Digest> = keys.iter().map(|key| shared.hashing().digest(key)).collect();
        std::thread::scope(|scope| {
            for part in digests.chunks(2500) {
                scope.spawn(|| shared.insert_batch(part));
            }
        });
        let mut alone = make_as(family, &spec).unwrap();
        insert(&mut *alone, &keys);
        assert_eq!(file_of(&*shared.finish()), file_of(&*alone));
    });
}

/// At least as often as it is in, in single calls and in batches, also from a file.
#[test]
fn counts_are_never_too_low() {
    each_family_on_every_path(|family| {
        if !family.can.counts {
            return;
        }
        // In some families each repeat takes another slot, and copies of one key have two buckets only.
        for capacity in [if has_slots(family) { 9000 } else { 1000 }, 500_000] {
            let filter = match family.make {
                Make::Counted(make) => {
                    let counts = (0..1000).map(|index| (key(family, index), 5 - index / 200));
                    let mut counts = counts.map(|(key, count)| (Hashing::default().digest(&key), count));
                    make(&Spec::sized(capacity, 0.01), &mut counts).unwrap()
                }
                _ => {
                    let mut filter = make(family, capacity);
                    (0..5).for_each(|times| drop(insert(&mut *filter, &keys(family, 0..1000 - 200 * times))));
                    filter
                }
            };
            let again = reopen(&file_of(&*filter)).unwrap();
            let digests = digests(&*filter, &keys(family, 0..2000));
            let count = filter.as_count().unwrap();
            let single: Vec<u64> = digests.iter().map(|&digest| count.count_digest(digest)).collect();
            for (index, &found) in single.iter().enumerate() {
                let truth = 5u64.saturating_sub(index as u64 / 200);
                assert!(found >= truth.min(count.ceiling()), "key {index}: {found}, is in {truth} times");
            }
            let truth = |index: usize| 5u64.saturating_sub(index as u64 / 200).min(count.ceiling());
            let right = single.iter().enumerate().filter(|&(index, &found)| found == truth(index));
            // 2000 estimates of which at most 1% is wrong: more than 60 have a chance below 1e-9.
            assert!(right.count() >= 1940);
            for len in [0, 1, 31, 32, 33, 2000] {
                let mut counts = vec![77];
                again.as_count().unwrap().count_batch(&digests[..len], &mut counts);
                assert_eq!(counts, [&[77], &single[..len]].concat());
            }
        }
    });
}

/// Of families of many sets: a key is told to be in its area, by single calls and in batches, also from a file. Errors
/// are held to the family by its own tests.
#[test]
fn labelled_keys_are_in_some_area() {
    each_family_on_every_path(|family| {
        if !family.can.labels {
            return;
        }
        for capacity in [2000, 20_000] {
            let mut given = keys(family, 0..1000);
            given[20] = given[19].clone();
            let [mut by_one, mut by_batch] = [0; 2].map(|_| make(family, capacity));
            let (digests, areas) = (digests(&*by_one, &given), by_one.as_label().unwrap().areas());
            let areas: Vec<_> = (1..=areas.min(3)).filter_map(NonZeroU16::new).collect();
            for (part, &area) in areas.iter().enumerate() {
                let part = &digests[part * 300..][..300];
                let one = by_one.as_label_mut().unwrap();
                let single: Vec<_> =
                    part.iter().map(|&digest| one.insert_labelled(digest, area).unwrap()).collect();
                let mut outcomes = vec![Insertion::Perhaps];
                by_batch.as_label_mut().unwrap().insert_labelled_batch(part, area, &mut outcomes).unwrap();
                assert_eq!(outcomes[1..], single);
            }
            assert!(file_of(&*by_one) == file_of(&*by_batch));
            let behind = NonZeroU16::new(by_one.as_label().unwrap().areas() + 1).unwrap();
            let refused = by_one.as_label_mut().unwrap().insert_labelled(digests[0], behind).unwrap_err();
            assert!(matches!(refused.limit, Limit::Area { .. }) && refused.inserted == 0, "{refused}");
            assert!(file_of(&*by_one) == file_of(&*by_batch), "refused, and yet it has changed");
            let again = reopen(&file_of(&*by_one)).unwrap();
            let (label, again) = (by_one.as_label().unwrap(), again.as_label().unwrap());
            let single: Vec<Labels> = digests.iter().map(|&digest| label.label_digest(digest)).collect();
            assert!(single[..300 * areas.len()].iter().all(|labels| *labels != Labels::None));
            for (digest, labels) in digests.iter().zip(&single) {
                assert_eq!(label.contains_digest(*digest), *labels != Labels::None);
            }
            for len in [0, 1, 31, 32, 33, 1000] {
                let mut labels = vec![Labels::None];
                again.label_batch(&digests[..len], &mut labels);
                assert_eq!(labels[1..], single[..len]);
            }
        }
    });
}

// Set operations.

/// Keys 0..600 here, 400..1000 there: 200 in common.
fn two(family: &Family) -> (Box<dyn AnyFilter>, Box<dyn AnyFilter>) {
    (filled(family, 1500, 0..600), filled(family, 1500, 400..1000))
}

/// As it is, but for the insert calls: a filter that was merged does not know them.
fn uncounted(filter: &dyn AnyFilter) -> (Vec<u8>, Report) {
    let mut report = filter.report();
    report.inserted = None;
    (payload_of(&file_of(filter)).to_vec(), report)
}

#[test]
fn merging_equals_inserting_both() {
    each_family_on_every_path(|family| {
        if !family.can.merges {
            return;
        }
        let (mut ours, theirs) = two(family);
        let before = file_of(&*theirs);
        combine(&mut *ours, &*theirs, Combine::Union).unwrap();
        assert!(holds_all(&*ours, &keys(family, 0..1000)));
        // What both have is inserted twice, which families that count can tell.
        let mut both = filled(family, 1500, 0..600);
        insert(&mut *both, &keys(family, 400..1000));
        if !family.profile.is_ordered {
            assert_eq!(uncounted(&*ours), uncounted(&*both));
        }
        assert_eq!(ours.report().inserted, None);
        assert_eq!(file_of(&*theirs), before);
        // With nothing, and with itself.
        let all = uncounted(&*ours);
        let (again, nothing) = (reopen(&file_of(&*ours)).unwrap(), make(family, 1500));
        combine(&mut *ours, &*nothing, Combine::Union).unwrap();
        assert_eq!(uncounted(&*ours), all);
        if family.name == "cuckoo" {
            // The 200 in common are in twice. All of them twice do not fit, and then nothing changes.
            assert_eq!(ours.details().slots.unwrap().used, 1200);
            let full = combine(&mut *ours, &*again, Combine::Union).unwrap_err();
            assert!(matches!(full, Error::Mismatch(Mismatch::Full(_))), "{full}");
            assert_eq!(uncounted(&*ours), all);
        } else {
            combine(&mut *ours, &*again, Combine::Union).unwrap();
        }
        assert!(uncounted(&*ours) == all || family.can.counts || family.profile.keeps_copies);
        assert!(holds_all(&*ours, &keys(family, 0..1000)));
    });
}

#[test]
fn intersecting_keeps_what_both_have() {
    each_family_on_every_path(|family| {
        if !family.can.intersects {
            return;
        }
        let (mut ours, theirs) = two(family);
        let (rate_of_ours, rate_of_theirs) = (ours.report().fpr_now, theirs.report().fpr_now);
        combine(&mut *ours, &*theirs, Combine::Intersection).unwrap();
        assert!(holds_all(&*ours, &keys(family, 400..600)));
        assert_eq!(ours.report().inserted, None);
        if family.can.exact {
            assert_eq!(uncounted(&*ours), uncounted(&*filled(family, 1500, 400..600)));
        } else {
            assert!(ours.report().fpr_now <= rate_of_ours.min(rate_of_theirs));
        }
        let nothing = make(family, 1500);
        combine(&mut *ours, &*nothing, Combine::Intersection).unwrap();
        assert_eq!(uncounted(&*ours), uncounted(&*nothing));
    });
}

#[test]
fn subtracting_removes_what_the_other_has() {
    each_family_on_every_path(|family| {
        let (mut ours, theirs) = two(family);
        let outcome = combine(&mut *ours, &*theirs, Combine::Difference);
        if !family.can.subtracts {
            let refused = Error::Unsupported { family: family.name, operation: "subtract" };
            assert_eq!(outcome, Err(refused));
            assert_eq!(file_of(&*ours), file_of(&*two(family).0));
            return;
        }
        outcome.unwrap();
        assert_eq!(uncounted(&*ours), uncounted(&*filled(family, 1500, 0..400)));
    });
}

#[test]
fn removing_undoes_inserting() {
    each_family_on_every_path(|family| {
        if !takes_keys(family) {
            return;
        }
        let mut filter = filled(family, 1000, 0..600);
        if filter.as_remove().is_none() {
            return;
        }
        let before = payload_of(&file_of(&*filter)).to_vec();
        let more = keys(family, 600..900);
        let digests = digests(&*filter, &more);
        let outcomes = insert(&mut *filter, &more);
        let Some(remove) = filter.as_remove() else { return };
        for &digest in &digests {
            assert!(remove.remove_digest(digest).is_removed());
        }
        match filter.details().slots.filter(|slots| slots.evictions.is_some()) {
            // The new keys may have moved the old ones.
            Some(slots) => assert_eq!(slots.used, 600),
            None => assert_eq!(payload_of(&file_of(&*filter)), before),
        }
        assert!(holds_all(&*filter, &keys(family, 0..600)));
        if family.can.exact {
            assert!(outcomes.iter().all(|&outcome| outcome == Insertion::New));
            assert!(digests.iter().all(|&digest| !filter.contains_digest(digest)));
            let remove = filter.as_remove().unwrap();
            assert!(
                digests.iter().all(|&digest| !remove.remove_digest(digest).is_removed()),
                "removed twice"
            );
            assert_eq!(filter.report().estimated_len, Some(600.0));
        }
    });
}

/// Those that are in, some of them twice in one batch, and those that are not.
#[test]
fn removing_many_equals_removing_each() {
    each_family_on_every_path(|family| {
        for count in [600, 60_000] {
            let filter = filled(family, count, 0..count);
            let (mut one, mut other) = (reopen(&file_of(&*filter)).unwrap(), filter);
            let leaving = [keys(family, 0..count / 2), keys(family, count / 3..count / 2 + 40)].concat();
            let digests = digests(&*one, &leaving);
            let (Some(singly), Some(together)) = (one.as_remove(), other.as_remove()) else { return };
            let single: Vec<Removal> = digests.iter().map(|&digest| singly.remove_digest(digest)).collect();
            let mut many = vec![Removal::Absent];
            together.remove_batch(&digests, &mut many);
            assert_eq!(many[1..], single);
            assert_eq!(uncounted(&*one), uncounted(&*other));
            assert_eq!(one.report().estimated_len, other.report().estimated_len);
        }
    });
}

#[test]
fn a_cleared_filter_is_empty_and_takes_keys_again() {
    each_family_on_every_path(|family| {
        let mut filter = filled(family, 300, 0..300);
        let is_cleared = filter.clear();
        // What is built of all its keys at once stays as it is.
        assert_eq!(is_cleared, !matches!(family.make, Make::FromDigests(_) | Make::Within(_)));
        if !is_cleared {
            return;
        }
        assert!(!answers(&*filter, family, 0..1000).contains(&true), "a key is in");
        assert_eq!(filter.report().inserted, Some(0));
        let again = reopen(&file_of(&*filter)).unwrap();
        assert_eq!(again.report(), filter.report());
        if !takes_keys(family) {
            return;
        }
        // Those that grow may keep their size.
        if !family.can.grows {
            assert!(file_of(&*filter) == file_of(&*make(family, 300)), "other bytes than a new one");
        }
        let keys = keys(family, 0..300);
        insert(&mut *filter, &keys);
        assert!(holds_all(&*filter, undeniable(&*filter, &keys)), "a key is denied");
    });
}

/// Nobody else's digests may stand in the way: the same, with all old keys in a decoded filter.
#[test]
fn removing_works_on_what_came_from_a_file() {
    each_family_on_every_path(|family| {
        let mut filter = reopen(&file_of(&*filled(family, 1000, 0..600))).unwrap();
        let first = digests(&*filter, &keys(family, 0..300));
        let Some(remove) = filter.as_remove() else { return };
        assert!(first.iter().all(|&digest| remove.remove_digest(digest).is_removed()));
        let again = reopen(&file_of(&*filter)).unwrap();
        assert!(holds_all(&*again, &keys(family, 300..600)));
        if family.can.exact {
            assert_eq!(answers(&*again, family, 0..600), [[false; 300], [true; 300]].concat());
        }
        assert_eq!(again.report(), filter.report());
    });
}

fn filled_as(family: &Family, spec: &Spec) -> Box<dyn AnyFilter> {
    make_with(family, spec, &keys(family, 0..50))
}

#[test]
fn filters_that_differ_are_not_combined() {
    for ours in FAMILIES {
        for theirs in FAMILIES {
            let mut filter = filled(ours, 100, 0..50);
            let before = file_of(&*filter);
            let outcome = combine(&mut *filter, &*filled(theirs, 100, 0..50), Combine::Union);
            if ours == theirs {
                assert_eq!(outcome.is_ok(), ours.can.merges);
            } else {
                let mismatch = Mismatch::Family { ours: ours.name, theirs: theirs.name };
                assert_eq!(outcome, Err(mismatch.into()));
                assert_eq!(file_of(&*filter), before);
                let other = make(theirs, 100);
                if let Some(merge) = filter.as_merge() {
                    assert!(merge.merge_from(&*other).is_err());
                }
            }
        }
    }
}

#[test]
fn filters_that_hash_differently_are_not_combined() {
    let (secret, other) = (Secret::new([1; 16]), Secret::new([2; 16]));
    let seed = |seed| Hashing::Xxh3 { seed };
    let cases = [
        (
            seed(1),
            seed(2),
            Mismatch::Differ { what: Parameter::Seed, ours: Value::Id(1), theirs: Value::Id(2) },
        ),
        (
            Hashing::Keyed(secret),
            Hashing::Keyed(other),
            Mismatch::Differ {
                what: Parameter::Secret,
                ours: Value::Id(secret.id()),
                theirs: Value::Id(other.id()),
            },
        ),
        (
            seed(0),
            Hashing::Keyed(other),
            Mismatch::Differ {
                what: Parameter::Hashing,
                ours: Value::Word("xxh3-128"),
                theirs: Value::Word("siphash-1-3-128"),
            },
        ),
    ];
    each_family(|family| {
        if takes_integers(family) {
            return;
        }
        for (ours, theirs, mismatch) in cases {
            let make = |hashing| {
                make_with(family, &Spec::sized(100, 0.01).with_hashing(hashing), &keys(family, 0..50))
            };
            let (mut ours, theirs) = (make(ours), make(theirs));
            let before = file_of(&*ours);
            for how in [Combine::Union, Combine::Intersection, Combine::Difference] {
                match combine(&mut *ours, &*theirs, how) {
                    Err(Error::Unsupported { .. }) => {}
                    outcome => assert_eq!(outcome, Err(mismatch.into()), "{how:?}"),
                }
            }
            assert_eq!(file_of(&*ours), before);
        }
    });
}

type Boxed = Box<dyn AnyFilter>;

fn differ(what: Parameter, ours: u64, theirs: u64) -> Mismatch {
    Mismatch::Differ { what, ours: ours.into(), theirs: theirs.into() }
}

/// Filters of one family and other parameters.
#[test]
fn filters_of_other_parameters_are_not_combined() {
    let of = |name: &str, spec: Spec| filled_as(mayhap::family(name).unwrap(), &spec);
    let bits = |bits: u64, probes: u32| Spec::new().with_bits(bits).with_probes(probes);
    let counters = |bits: u32, spec: Spec| spec.with_counter_bits(bits);
    let dleft = |buckets: u64, remainder_bits: u32, counter_bits: u32| {
        let bits = 32 * buckets * u64::from(remainder_bits + counter_bits);
        let spec = Spec::new().with_capacity(24 * buckets).with_bits(bits).with_counter_bits(counter_bits);
        of("dleft", spec)
    };
    let rule = |rule: CountingRule, spec: Spec| of("spectral", spec.with_counting_rule(rule));
    let shifting = |bits: u64, probes: u32, shifts: u32| {
        Spec::new().with_bits(bits).with_probes(probes).with_shifts(shifts)
    };
    let expanding = |slots: u64, fingerprint_bits: u32| -> Box<dyn AnyFilter> {
        let mut filter = Expanding::with_slots(slots, fingerprint_bits).unwrap();
        filter.insert("a").unwrap();
        Box::new(filter)
    };
    let least = CountingRule::MinimumSelection;
    let cases: Vec<(Boxed, Boxed, Mismatch)> = vec![
        (
            of("counting", counters(4, bits(4000, 5))),
            of("counting", counters(4, bits(4004, 5))),
            differ(Parameter::Bits, 4000, 4004),
        ),
        (
            of("counting", counters(4, bits(4000, 5))),
            of("counting", counters(4, bits(4000, 6))),
            differ(Parameter::Probes, 5, 6),
        ),
        (
            of("counting", counters(4, bits(4000, 5))),
            of("counting", counters(8, bits(8000, 5))),
            differ(Parameter::CounterBits, 4, 8),
        ),
        (dleft(100, 10, 2), dleft(101, 10, 2), differ(Parameter::Buckets, 100, 101)),
        (dleft(100, 10, 2), dleft(100, 11, 2), differ(Parameter::FingerprintBits, 10, 11)),
        (dleft(100, 10, 2), dleft(100, 10, 4), differ(Parameter::CounterBits, 2, 4)),
        (
            rule(least, bits(4000, 5)),
            rule(CountingRule::MinimalIncrease, bits(4000, 5)),
            Mismatch::Differ {
                what: Parameter::CountingRule,
                ours: Value::Word("minimum-selection"),
                theirs: Value::Word("minimal-increase"),
            },
        ),
        (
            rule(least, bits(4000, 5)),
            rule(least, counters(8, bits(8000, 5))),
            Mismatch::Differ {
                what: Parameter::CounterBits,
                ours: Value::Word("variable"),
                theirs: Value::Whole(8),
            },
        ),
        (rule(least, bits(4000, 5)), rule(least, bits(4004, 5)), differ(Parameter::Bits, 4000, 4004)),
        (rule(least, bits(4000, 5)), rule(least, bits(4000, 6)), differ(Parameter::Probes, 5, 6)),
        (
            of("shifting", shifting(1056, 6, 1)),
            of("shifting", shifting(1057, 6, 1)),
            differ(Parameter::Bits, 1056, 1057),
        ),
        (
            of("shifting", shifting(1056, 6, 1)),
            of("shifting", shifting(1056, 8, 1)),
            differ(Parameter::Probes, 6, 8),
        ),
        (
            of("shifting", shifting(1056, 6, 1)),
            of("shifting", shifting(1056, 6, 2)),
            differ(Parameter::Shifts, 1, 2),
        ),
        (
            of("shifting", shifting(1056, 6, 1)),
            of("shifting", counters(4, bits(5 * 1056, 6))),
            Mismatch::Differ {
                what: Parameter::CounterBits,
                ours: Value::Word("none"),
                theirs: Value::Whole(4),
            },
        ),
        (expanding(128, 10), expanding(192, 10), differ(Parameter::Slots, 128, 192)),
        (expanding(128, 10), expanding(128, 11), differ(Parameter::FingerprintBits, 10, 11)),
    ];
    let mut wrong = Vec::new();
    for (mut ours, theirs, mismatch) in cases {
        let before = file_of(&*ours);
        let outcome = combine(&mut *ours, &*theirs, Combine::Union);
        assert!(outcome.is_ok() || file_of(&*ours) == before, "{mismatch}, and it has changed");
        if outcome != Err(mismatch.into()) {
            wrong.push((ours.family().name, mismatch, outcome));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

// Files.

/// A filter in each state in which a file may find it.
fn states(family: &Family) -> Vec<Box<dyn AnyFilter>> {
    let mut states = vec![make(family, 1500), filled(family, 1500, 0..1), filled(family, 1500, 0..1000)];
    let (mut merged, other) = two(family);
    if combine(&mut *merged, &*other, Combine::Union).is_ok() {
        states.push(merged);
    }
    let mut thinned = filled(family, 1500, 0..1000);
    let digests = digests(&*thinned, &keys(family, 100..900));
    if let Some(remove) = thinned.as_remove() {
        digests.iter().for_each(|&digest| assert!(remove.remove_digest(digest).is_removed()));
        states.push(thinned);
    }
    states
}

#[test]
fn a_file_gives_the_same_answers_report_and_bytes() {
    each_family_on_every_path(|family| {
        for filter in states(family) {
            let file = file_of(&*filter);
            let again = reopen(&file).unwrap();
            assert_eq!(again.family(), family);
            assert_eq!(again.hashing(), filter.hashing());
            assert_eq!(again.report(), filter.report());
            assert_eq!(answers(&*again, family, 0..3000), answers(&*filter, family, 0..3000));
            assert_eq!(file_of(&*again), file);
            let encoded = encode(&*filter, Summing::Payload);
            assert_eq!(encoded.len(), file.len() as u64);
            assert_eq!(encoded.header(), &file[..encoded.header().len()]);
            // Whoever opened it can go on, wherever the allocator put the bytes.
            let mut odd = vec![0];
            odd.extend(&file);
            let part = Bytes::from(odd).part(1..file.len() + 1).unwrap();
            let mut again = open(part, None).unwrap();
            if takes_keys(family) {
                insert(&mut *again, &keys(family, 900..1000));
                assert!(holds_all(&*again, &keys(family, 900..1000)));
            }
        }
    });
}

#[test]
fn bytes_do_not_depend_on_the_order_of_inserts() {
    each_family_on_every_path(|family| {
        if !takes_keys(family) {
            return;
        }
        if family.profile.is_ordered {
            return;
        }
        let mut upwards = keys(family, 0..5000);
        if takes_keys(family) {
            upwards.push(upwards[0].clone());
        } else {
            upwards.truncate(4998);
        }
        let mut downwards = upwards.clone();
        // Whoever is made of two sets at once gets the same ones.
        let part = if takes_keys(family) { downwards.len() } else { downwards.len() / 3 };
        downwards.chunks_mut(part).for_each(<[_]>::reverse);
        let [one, other] =
            [upwards, downwards].map(|keys| file_of(&*make_with(family, &Spec::sized(5000, 0.01), &keys)));
        assert!(one == other);
    });
}

#[test]
fn a_filter_in_exclusive_bytes_is_written_where_it_lies() {
    each_family_on_every_path(|family| {
        if !family.in_place || cfg!(target_endian = "big") {
            return;
        }
        let file = file_of(&*filled(family, 1000, 0..500));
        let mut frame = Frame::parse(&file.clone().into(), Verify::All).unwrap();
        // Vectors of words are aligned as the filter needs it.
        let words: Vec<u64> = payload_of(&file)
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let place = Box::leak(words.into_boxed_slice());
        let address = place.as_ptr().addr();
        frame.payload = Bytes::exclusive(bytemuck::cast_slice_mut::<u64, u8>(place));
        let hashing = frame.hashing(None).unwrap();
        let mut filter = mayhap::decode(&mut frame, hashing).unwrap();
        filter.set_paths(PATHS.get());
        insert(&mut *filter, &keys(family, 500..1000));
        let encoded = encode(&*filter, Summing::Payload);
        assert_eq!(encoded.pieces()[1].as_ptr().addr(), address);
        assert!(encoded.to_vec() == file_of(&*filled(family, 1000, 0..1000)));
    });
}

#[test]
fn a_keyed_filter_opens_with_its_secret_only() {
    let bytes = *b"sixteen bytes...";
    let (secret, other) = (Secret::new(bytes), Secret::new([2; 16]));
    each_family(|family| {
        if takes_integers(family) {
            return;
        }
        let spec = Spec::sized(100, 0.01).with_hashing(Hashing::Keyed(secret));
        let file = file_of(&*make_with(family, &spec, &keys(family, 0..100)));
        assert!(!file.windows(bytes.len()).any(|window| window == bytes), "the secret stands in the file");
        let again = open(file.clone().into(), Some(&secret)).unwrap();
        assert!(holds_all(&*again, &keys(family, 0..100)));
        assert_eq!(file_of(&*again), file);
        let open = |secret| open(file.clone().into(), secret).err();
        assert_eq!(open(None), Some(DecodeError::SecretNeeded { key_id: secret.id() }));
        let wrong = DecodeError::SecretWrong { needed: secret.id(), given: other.id() };
        assert_eq!(open(Some(&other)), Some(wrong));
        // Another secret sets other bits: what the file holds is not the unkeyed filter.
        assert!(payload_of(&file) != payload_of(&file_of(&*filled(family, 100, 0..100))));
    });
}

#[test]
fn a_secret_that_is_not_needed_is_ignored() {
    each_family(|family| {
        let file = file_of(&*filled(family, 100, 0..100));
        assert!(open(file.into(), Some(&Secret::new([3; 16]))).is_ok());
    });
}

// Damage.

#[test]
fn every_truncation_is_refused() {
    each_family(|family| {
        // Each length of a tiny file.
        let tiny = file_of(&*filled(family, 8, 0..3));
        for len in 0..tiny.len() {
            expect_refused(tiny[..len].to_vec(), &format!("{len} bytes"));
        }
        assert!(reopen(&tiny).is_ok());
        // Each length of a header page, and some of a larger payload.
        let file = file_of(&*filled(family, 20_000, 0..20_000));
        let mut random = Random::new(1);
        let places = (0..200).map(|_| PAGE + random.below((file.len() - PAGE) as u64) as usize);
        for len in (0..PAGE).chain(places).chain([file.len() - 1]) {
            let error = expect_refused(file[..len].to_vec(), &format!("{len} bytes"));
            assert!(matches!(error, DecodeError::Truncated { .. }), "{len} bytes: {error}");
        }
        let mut longer = file.clone();
        longer.push(0);
        assert_eq!(expect_refused(longer, "one byte more"), DecodeError::Trailing { bytes: 1 });
    });
}

#[test]
fn every_flipped_bit_of_a_header_is_refused() {
    each_family(|family| {
        let file = file_of(&*filled(family, 100, 0..100));
        let bytes = |place: usize, bit: u32| {
            let mut damaged = file.clone();
            damaged[place] ^= 1 << bit;
            damaged
        };
        for place in 0..PAGE {
            for bit in 0..8 {
                let error = expect_refused(bytes(place, bit), &format!("bit {bit} of byte {place}"));
                let expected = match place {
                    0..4 => matches!(error, DecodeError::Magic { .. }),
                    4..6 => matches!(error, DecodeError::Version { .. }),
                    // Where the file is long enough for the other length, the checksum is not there.
                    40..44 => matches!(
                        error,
                        DecodeError::Value { field: "header length", .. }
                            | DecodeError::Truncated { .. }
                            | DecodeError::Checksum { field: "header", .. }
                    ),
                    _ => matches!(error, DecodeError::Checksum { field: "header", .. }),
                };
                assert!(expected, "bit {bit} of byte {place}: {error}");
            }
        }
    });
}

#[test]
fn flipped_bits_of_a_payload_are_refused_by_its_checksum() {
    each_family(|family| {
        let file = file_of(&*filled(family, 5000, 0..5000));
        let mut random = Random::new(2);
        for _ in 0..500 {
            let place = PAGE + random.below(payload_of(&file).len() as u64) as usize;
            let mut damaged = file.clone();
            damaged[place] ^= 1 << random.below(8);
            let error = expect_refused(damaged.clone(), &format!("byte {place}"));
            assert!(matches!(error, DecodeError::Checksum { field: "payload", .. }), "byte {place}: {error}");
            // Who looks at the header only does not see it, and comes to no harm.
            let mut frame = Frame::parse(&damaged.into(), Verify::Header).unwrap();
            assert!(!frame.verified);
            let hashing = frame.hashing(None).unwrap();
            if let Ok(mut filter) = mayhap::decode(&mut frame, hashing) {
                use_it(&mut *filter, family);
            }
        }
    });
}

/// Calls everything that a program may call. Nothing may panic, whatever the filter was made of.
fn use_it(filter: &mut dyn AnyFilter, family: &Family) {
    let report = filter.report();
    assert!(report.fpr_now >= 0.0 && !report.over_capacity() | !family.can.exact);
    let keys = keys(family, 0..40);
    let mut hits = Vec::new();
    filter.contains_keys(&slices(&keys), &mut hits);
    let mut outcomes = Vec::new();
    let inserted = filter.insert_keys(&slices(&keys), &mut outcomes);
    assert!(inserted.is_err() || holds_all(filter, undeniable(filter, &keys)));
    let digests = digests(filter, &keys);
    if let Some(label) = filter.as_label_mut() {
        let highest = NonZeroU16::new(label.areas()).unwrap();
        label.insert_labelled_batch(&digests, highest, &mut outcomes).unwrap();
        label.insert_labelled_batch(&digests, NonZeroU16::MIN, &mut outcomes).unwrap();
        label.label_batch(&digests, &mut Vec::new());
        assert!(holds_all(filter, &keys) && filter.details().areas.is_some());
    }
    if let Some(remove) = filter.as_remove() {
        digests.iter().for_each(|&digest| {
            remove.remove_digest(digest);
        });
    }
    let file = file_of(filter);
    if let Ok(other) = reopen(&file) {
        for how in [Combine::Union, Combine::Difference, Combine::Intersection] {
            let _ = combine(filter, &*other, how);
        }
    }
    let _ = filter.report();
}

/// Opens what was resealed, and uses what opens.
fn open_resealed(mut file: Vec<u8>, family: &Family) -> Result<(), DecodeError> {
    reseal(&mut file);
    // What opens may be of another family, if it was that field that was changed.
    let mut filter = reopen(&file)?;
    let family =
        if takes_integers(filter.family()) == takes_integers(family) { family } else { filter.family() };
    use_it(&mut *filter, family);
    let again = file_of(&*filter);
    assert!(reopen(&again).is_ok(), "what was opened and written cannot be opened again");
    Ok(())
}

#[test]
fn resealed_damage_is_refused_or_harmless() {
    let before = peak_of_memory();
    each_family(|family| {
        let file = file_of(&*filled(family, 300, 0..300));
        let (mut refused, mut opened) = (0, 0);
        let mut count = |outcome: Result<(), DecodeError>| match outcome {
            Ok(()) => opened += 1,
            Err(_) => refused += 1,
        };
        // Each bit of the fields and the parameters, and of the zeros behind them.
        for bit in 0..200 * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            count(open_resealed(damaged, family));
        }
        // Some bits of everything, several at once.
        let mut random = Random::new(3);
        for round in 0..if IS_NATIVE { 4000 } else { 400 } {
            let mut damaged = file.clone();
            for _ in 0..=round % 4 {
                let from_payload = random.below(2) == 0;
                let place = if from_payload {
                    PAGE + random.below((file.len() - PAGE) as u64) as usize
                } else {
                    random.below(140) as usize
                };
                damaged[place] ^= 1 << random.below(8);
            }
            count(open_resealed(damaged, family));
        }
        // Whole fields with numbers at the edges.
        for place in (0..140).step_by(4) {
            for value in [0u64, 1, 63, 64, 65, 1 << 31, u32::MAX.into(), 1 << 47, 1 << 48, 1 << 63, u64::MAX]
            {
                for width in [4, 8] {
                    let mut damaged = file.clone();
                    damaged[place..place + width].copy_from_slice(&value.to_le_bytes()[..width]);
                    count(open_resealed(damaged, family));
                }
            }
        }
        assert!(refused > 1000 && opened > 100, "{refused} refused, {opened} opened");
    });
    assert_little_memory_was_asked_for_since(before);
}

/// One change to a file, and the refusal that must follow.
type Crafted<'a> = (&'a str, &'a dyn Fn(&mut Vec<u8>), fn(&DecodeError) -> bool);

fn put(at: usize, bytes: &[u8]) -> impl Fn(&mut Vec<u8>) + use<> {
    let bytes = bytes.to_vec();
    move |file| file[at..at + bytes.len()].copy_from_slice(&bytes)
}

#[test]
fn crafted_headers_are_refused_by_name() {
    let before = peak_of_memory();
    use DecodeError as E;
    each_family(|family| {
        let file = file_of(&*filled(family, 300, 0..300));
        let length = payload_of(&file).len() as u64;
        let other_probing = if file[14] == 0 { 1 } else { 0 };
        let cases: &[Crafted<'_>] = &[
            ("another magic", &put(0, b"RIFF"), |e| *e == E::Magic { found: *b"RIFF" }),
            ("version 0", &put(4, &[0, 0]), |e| *e == E::Version { found: 0 }),
            ("version 2", &put(4, &[2, 0]), |e| *e == E::Version { found: 2 }),
            ("family 0", &put(6, &[0, 0]), |e| *e == E::Family { found: 0 }),
            ("family 65535", &put(6, &[255, 255]), |e| *e == E::Family { found: 65_535 }),
            ("flag 8", &put(8, &[8]), |e| *e == E::Flags { found: 8 }),
            ("all flags", &put(8, &[255; 4]), |e| *e == E::Flags { found: 0xffff_fff8 }),
            ("hashing 0", &put(12, &[0]), |e| *e == E::Hashing { scheme: 0, version: 1 }),
            ("hashing 99", &put(12, &[99]), |e| *e == E::Hashing { scheme: 99, version: 1 }),
            ("hashing version 2", &put(13, &[2]), |e| matches!(e, E::Hashing { version: 2, .. })),
            ("probing 99", &put(14, &[99]), |e| *e == E::Probing { found: 99 }),
            ("probing of another family", &put(14, &[other_probing]), |e| matches!(e, E::Probing { .. })),
            ("reserved byte", &put(15, &[1]), |e| matches!(e, E::Padding { .. })),
            ("seed beyond 64 bits", &put(24, &[1]), |e| matches!(e, E::Value { field: "seed", .. })),
            ("key id without a key", &put(32, &[1]), |e| matches!(e, E::Value { field: "seed", .. })),
            ("header length 0", &put(40, &[0; 4]), |e| *e == E::Value { field: "header length", found: 0 }),
            ("header length 100", &put(40, &[100, 0, 0, 0]), |e| {
                *e == E::Value { field: "header length", found: 100 }
            }),
            ("header length 2^32 - 4096", &put(40, &0xffff_f000u32.to_le_bytes()), |e| {
                *e == E::Value { field: "header length", found: 0xffff_f000 }
            }),
            ("header length 1 MiB", &put(40, &(1u32 << 20).to_le_bytes()), |e| {
                matches!(e, E::Truncated { field: "header", needed: 0x10_0000, .. })
            }),
            ("parameters of 2^32 - 1 bytes", &put(44, &[255; 4]), |e| {
                matches!(e, E::Length { field: "header", .. })
            }),
            ("parameters of 0 bytes", &put(44, &[0; 4]), |e| matches!(e, E::Padding { .. })),
            ("2^32 - 1 sections", &put(48, &[255; 4]), |e| matches!(e, E::Length { field: "header", .. })),
            ("100 sections", &put(48, &[100, 0, 0, 0]), |e| {
                // They fit the header, and are all zero: none stands where it should.
                matches!(e, E::Value { field: "offset of a part", found: 0 })
            }),
            ("reserved word", &put(52, &[1]), |e| matches!(e, E::Padding { .. })),
            ("payload over the header", &put(56, &0u64.to_le_bytes()), |e| {
                *e == E::Value { field: "offset of a part", found: 0 }
            }),
            ("payload in the middle of a page", &put(56, &4104u64.to_le_bytes()), |e| {
                *e == E::Value { field: "offset of a part", found: 4104 }
            }),
            ("payload a page later", &put(56, &8192u64.to_le_bytes()), |e| {
                *e == E::Value { field: "offset of a part", found: 8192 }
            }),
            ("payload at the end of the numbers", &put(56, &u64::MAX.to_le_bytes()), |e| {
                *e == E::Value { field: "offset of a part", found: u64::MAX }
            }),
            ("payload of 2^64 - 1 bytes", &put(64, &u64::MAX.to_le_bytes()), |e| {
                matches!(e, E::Truncated { field: "payload", needed: u64::MAX, .. })
            }),
            ("payload of 2^47 bytes", &put(64, &(1u64 << 47).to_le_bytes()), |e| {
                matches!(e, E::Truncated { field: "payload", .. })
            }),
            ("payload one byte shorter", &put(64, &(length - 1).to_le_bytes()), |e| {
                // With a section behind it, the byte is in the gap or missed by the family.
                *e == E::Trailing { bytes: 1 }
                    || matches!(
                        e,
                        E::Padding { field: "gap before a section" } | E::Length { field: "payload", .. }
                    )
            }),
            ("a byte behind the end", &|file| file.push(0), |e| *e == E::Trailing { bytes: 1 }),
            ("a page behind the end", &|file| file.extend([0; PAGE]), |e| *e == E::Trailing { bytes: 4096 }),
            ("a byte in the end of the header", &put(4000, &[1]), |e| {
                *e == E::Padding { field: "end of the header" }
            }),
            ("more ones than there is room", &put(88, &u64::MAX.to_le_bytes()), |e| {
                matches!(e, E::Value { found: u64::MAX, .. })
            }),
            (
                "a payload of no bytes",
                &|file| {
                    file.truncate(PAGE);
                    file[64..72].fill(0);
                },
                |e| {
                    matches!(e, E::Length { field: "payload", .. } | E::Payload { .. })
                        || matches!(e, E::Value { field: "offset of a part", .. })
                },
            ),
        ];
        for (what, change, expected) in cases {
            let mut crafted = file.clone();
            change(&mut crafted);
            reseal(&mut crafted);
            let error = expect_refused(crafted, what);
            assert!(expected(&error), "{what}: {error}");
        }
    });
    assert_little_memory_was_asked_for_since(before);
}

/// A header that is longer than it has to be hides nothing, but there is one way to write a filter.
#[test]
fn a_header_with_a_page_too_many_is_refused() {
    each_family(|family| {
        let file = file_of(&*filled(family, 300, 0..300));
        let mut crafted = [&file[..PAGE - 8], &[0; PAGE + 8], &file[PAGE..]].concat();
        put(40, &8192u32.to_le_bytes())(&mut crafted);
        put(56, &8192u64.to_le_bytes())(&mut crafted);
        reseal(&mut crafted);
        let error = expect_refused(crafted, "two pages");
        assert!(matches!(error, DecodeError::Length { field: "header", found: 8192, .. }), "{error}");
    });
}

/// The first field of these families is a number of bits, and decides how much is read.
#[test]
fn crafted_sizes_are_refused_before_anything_is_allocated() {
    let before = peak_of_memory();
    each_family(|family| {
        let file = file_of(&*filled(family, 300, 0..300));
        for size in [0, 1, 1 << 20, 1 << 41, 1 << 47, 1 << 48, (1 << 48) + 1, 1 << 63, u64::MAX] {
            let mut crafted = file.clone();
            put(96, &u64::to_le_bytes(size))(&mut crafted);
            reseal(&mut crafted);
            match reopen(&crafted) {
                Err(DecodeError::Value { found, .. }) => assert_eq!(found, size),
                Err(DecodeError::Length { field, .. }) => assert_eq!(field, "payload"),
                Err(other) => panic!("{size}: {other}"),
                // Where the first field is only a capacity, it promises nothing.
                Ok(_) => assert_eq!(family.name, "roaring"),
            }
        }
    });
    assert_little_memory_was_asked_for_since(before);
}

#[test]
fn crafted_bloom_parameters_are_refused() {
    let file = Bloom::new(300, 0.01).unwrap().to_bytes();
    let refused = |at: usize, bytes: &[u8]| {
        let mut crafted = file.clone();
        put(at, bytes)(&mut crafted);
        reseal(&mut crafted);
        let error = Bloom::from_bytes(&crafted).expect_err("crafted");
        assert_eq!(expect_refused(crafted, "crafted"), error);
        error
    };
    for probes in [0, 65, 1 << 20, u32::MAX] {
        let expected = DecodeError::Value { field: "probes", found: probes.into() };
        assert_eq!(refused(104, &probes.to_le_bytes()), expected);
    }
    assert_eq!(refused(108, &[1]), DecodeError::Padding { field: "padding of the parameters" });
    for rate in [f64::NAN, f64::INFINITY, -0.5, 1.5, -f64::MIN_POSITIVE] {
        let expected = DecodeError::Value { field: "asked rate", found: rate.to_bits() };
        assert_eq!(refused(120, &rate.to_le_bytes()), expected);
    }
    // 300 keys at 1% take 2876 bits, so the last word has 4 bits too many.
    let last = file.len() - 1;
    assert_eq!(refused(last, &[0x10]), DecodeError::Padding { field: "end of the payload" });
    // An empty filter has no ones, whatever its header says.
    assert_eq!(refused(88, &[1]), DecodeError::Value { field: "set bits", found: 1 });
    // Hashing by itself is for integers.
    assert_eq!(refused(12, &[3]), DecodeError::Hashing { scheme: 3, version: 1 });
}

#[test]
fn a_crafted_number_of_inserts_does_not_overflow() {
    each_family(|family| {
        if !takes_keys(family) {
            return;
        }
        let mut file = file_of(&*filled(family, 300, 0..100));
        put(80, &u64::MAX.to_le_bytes())(&mut file);
        reseal(&mut file);
        let mut filter = reopen(&file).unwrap();
        insert(&mut *filter, &keys(family, 100..200));
        assert_eq!(filter.report().inserted, Some(u64::MAX));
    });
}

#[test]
fn a_crafted_number_of_ones_does_not_underflow() {
    each_family(|family| {
        if !takes_keys(family) {
            return;
        }
        let mut file = file_of(&*filled(family, 300, 0..100));
        put(88, &1u64.to_le_bytes())(&mut file);
        reseal(&mut file);
        let error = expect_refused(file.clone(), "one");
        assert!(matches!(error, DecodeError::Value { found: 1, .. }), "{error}");
        // A map of a large file is believed without counting.
        let mut frame = Frame::parse(&file.into(), Verify::Header).unwrap();
        let hashing = frame.hashing(None).unwrap();
        if let Ok(mut filter) = mayhap::decode(&mut frame, hashing) {
            use_it(&mut *filter, family);
        }
    });
}

/// Where this suite runs without an emulator. Others are emulated as a rule, where a second takes ten.
const IS_NATIVE: bool = cfg!(any(target_arch = "x86_64", target_arch = "x86"));

/// The most memory that the process has ever had at once, in KiB; only Linux tells. It is address space, where zeroed memory
/// that was never touched counts, which is just what a claim of 2^47 bits would cost. An emulator reserves address space
/// before the system refuses it, so that there only memory counts that was touched.
fn peak_of_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = if IS_NATIVE { "VmPeak:" } else { "VmHWM:" };
    let peak = status.lines().find_map(|line| line.strip_prefix(field));
    Some(peak.unwrap().trim().trim_end_matches(" kB").parse().unwrap())
}

/// Since the process had a peak `before`. Where the peak is not told, as in WebAssembly, addresses have 32 bits, and such a
/// claim is not granted.
fn assert_little_memory_was_asked_for_since(before: Option<u64>) {
    // Other tests run beside this one; the allocator reserves at most 128 MiB of address space for each of their threads.
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let most = if IS_NATIVE { (8 << 20) + (threads << 17) } else { 2 << 20 };
    if let (Some(before), Some(after)) = (before, peak_of_memory()) {
        // The kernel sums what its processors have counted, and may tell a little less than before.
        assert!(
            after.saturating_sub(before) < most,
            "a peak of {before} KiB of memory has become {after} KiB"
        );
    }
}

// Sections and flags.

/// A file with sections, as a later family or a tool may write them.
fn with_sections(family: &Family, sections: &[(u32, &[u8])]) -> Vec<u8> {
    encode_with(&*filled(family, 300, 0..300), Summing::Payload, sections).to_vec()
}

#[test]
fn metadata_is_carried_and_an_unknown_section_is_refused() {
    each_family(|family| {
        let notes = b"name=seen urls".as_slice();
        let file = with_sections(family, &[(METADATA, notes)]);
        let frame = Frame::parse(&file.clone().into(), Verify::All).unwrap();
        // A family may have sections of its own, before it.
        let (id, found) = frame.sections.last().unwrap();
        assert_eq!((*id, found.as_slice()), (METADATA, notes));
        assert!(frame.header.sections.iter().all(|(_, extent)| extent.offset.is_multiple_of(PAGE as u64)));
        let again = reopen(&file).unwrap();
        assert!(holds_all(&*again, &keys(family, 0..300)));
        for sections in
            [&[(99, notes)][..], &[(METADATA, notes), (99, b"")], &[(0, notes)], &[(u32::MAX, notes)]]
        {
            let unknown = sections.iter().find(|(id, _)| *id != METADATA).unwrap().0;
            let error = expect_refused(with_sections(family, sections), "an unknown section");
            assert_eq!(error, DecodeError::Section { found: unknown });
        }
    });
}

#[test]
fn bloom_from_bytes_minds_sections_like_open() {
    let bloom = mayhap::family("bloom").unwrap();
    let file = with_sections(bloom, &[(99, b"perhaps a list of exceptions")]);
    assert_eq!(Bloom::from_bytes(&file).unwrap_err(), DecodeError::Section { found: 99 });
    assert!(Bloom::from_bytes(&with_sections(bloom, &[(METADATA, b"")])).is_ok());
}

#[test]
fn a_file_of_a_known_family_is_not_called_one_of_an_unknown_family() {
    each_family(|family| {
        let outcome = Bloom::from_bytes(&file_of(&*filled(family, 10, 0..10)));
        match family.name {
            "bloom" => assert!(outcome.is_ok()),
            _ => {
                let other = DecodeError::OtherFamily { expected: "bloom", found: family.name };
                assert_eq!(outcome.unwrap_err(), other);
            }
        }
    });
    let mut unknown = file_of(&*filled(mayhap::family("bloom").unwrap(), 10, 0..10));
    unknown = crate::crafted::with(&unknown, 6, &900u16.to_le_bytes());
    assert_eq!(open(unknown.into(), None).err().unwrap(), DecodeError::Family { found: 900 });
}

fn rules_of(spelling: Spelling) -> KeyRules {
    let cut = Cut { field: Some(2), ..Cut::default() };
    KeyRules { spelling, cut, ..KeyRules::default() }
}

#[test]
fn how_keys_were_made_is_told_and_written_again() {
    let spelling = Spelling { ignore_case: true, url: Some("utm_*".into()), ..Spelling::default() };
    for rules in [KeyRules::default(), rules_of(spelling)] {
        each_family(|family| {
            let bare = filled(family, 300, 0..300);
            let without = bare.report();
            let file = file_of(&*with_key_rules(bare, Some(rules.clone())));
            let again = reopen(&file).unwrap();
            assert_eq!(again.key_rules(), Some(&rules));
            assert!(again.exceptions().is_none() && again.report() == without);
            assert!(holds_all(&*again, &keys(family, 0..300)));
            assert_eq!(file_of(&*again), file);
            // As many bytes as without, but for the section.
            assert_eq!(file_of(&*with_key_rules(again, None)), file_of(&*filled(family, 300, 0..300)));
            let unknown = with_sections(family, &[(KEY_RULES, &[7, 0, 0, 0, 0, 0, 0, 0])]);
            assert_eq!(expect_refused(unknown, "a rule of later"), DecodeError::KeyRule { found: 7 });
        });
    }
}

#[test]
fn filters_whose_keys_are_spelled_differently_are_not_combined() {
    let trimmed = rules_of(Spelling { trim: true, ..Spelling::default() });
    let how = [Combine::Union, Combine::Intersection, Combine::Difference];
    each_family(|family| {
        for how in how {
            let filter =
                |rules: Option<&KeyRules>| with_key_rules(filled(family, 300, 0..100), rules.cloned());
            let joined = |ours: Option<&KeyRules>, theirs: Option<&KeyRules>| {
                let mut ours = filter(ours);
                let done = combine(&mut *ours, &*filter(theirs), how);
                done.map(|()| (ours.key_rules().cloned(), holds_all(&*ours, &keys(family, 0..100))))
            };
            let Ok((None, kept)) = joined(None, None) else {
                // It cannot, or not by its own rule.
                continue;
            };
            let plain = KeyRules::default();
            assert_eq!(joined(Some(&trimmed), Some(&trimmed)), Ok((Some(trimmed.clone()), kept)));
            assert_eq!(joined(Some(&plain), Some(&plain)), Ok((Some(plain.clone()), kept)));
            assert_eq!(joined(None, Some(&plain)), Ok((None, kept)));
            assert_eq!(joined(Some(&plain), None), Ok((None, kept)));
            for (ours, theirs) in
                [(Some(&trimmed), None), (None, Some(&trimmed)), (Some(&trimmed), Some(&plain))]
            {
                assert_eq!(joined(ours, theirs), Err(Mismatch::Spelling.into()), "{how:?}");
            }
        }
    });
}

#[test]
fn exceptions_and_rules_are_beside_each_other() {
    each_family(|family| {
        let bare = filled(family, 300, 0..300);
        if bare.can().exact {
            return;
        }
        let (hashing, rules) = (bare.hashing(), rules_of(Spelling { crlf: true, ..Spelling::default() }));
        let absent: Vec<_> = keys(family, 1000..5000).iter().map(|key| hashing.digest(key)).collect();
        let filter = except(with_key_rules(bare, Some(rules.clone())), absent.iter().copied());
        let again = reopen(&file_of(&*filter)).unwrap();
        assert_eq!(again.key_rules(), Some(&rules));
        assert!(absent.iter().all(|&key| !again.contains_digest(key)));
        assert!(holds_all(&*again, &keys(family, 0..300)));
        assert_eq!(file_of(&*again), file_of(&*filter));
    });
}

/// A typed filter has no place for rules: to drop them would be to deny keys later.
#[test]
fn a_type_of_one_family_opens_plain_keys_only() {
    let bloom = |rules| file_of(&*with_key_rules(Box::new(Bloom::new(100, 0.01).unwrap()), Some(rules)));
    let cut_only = rules_of(Spelling::default());
    assert!(Bloom::from_bytes(&bloom(KeyRules::default())).is_ok());
    assert!(Bloom::from_bytes(&bloom(cut_only)).is_ok());
    let strings = rules_of(Spelling { json: JsonKeys::Strings, ..Spelling::default() });
    assert!(Bloom::from_bytes(&bloom(strings)).is_ok());
    for spelling in [
        Spelling { ignore_case: true, ..Spelling::default() },
        Spelling { json: JsonKeys::Mixed, ..Spelling::default() },
    ] {
        assert_eq!(Bloom::from_bytes(&bloom(rules_of(spelling))).unwrap_err(), DecodeError::Spelled);
    }
}

#[test]
fn damaged_sections_are_refused() {
    each_family(|family| {
        let file = with_sections(family, &[(METADATA, b"name=a"), (METADATA, b"name=b")]);
        assert!(reopen(&file).is_ok());
        for len in 0..file.len() {
            expect_refused(file[..len].to_vec(), &format!("{len} bytes"));
        }
        let second = Header::decode(&file, file.len() as u64).unwrap().sections[1].1;
        let mut damaged = file.clone();
        damaged[second.offset as usize] ^= 1;
        let error = expect_refused(damaged, "a flipped bit");
        assert!(matches!(error, DecodeError::Checksum { field: "section", .. }), "{error}");
        let mut hidden = file.clone();
        hidden[second.offset as usize - 1] = 1;
        reseal(&mut hidden);
        let error = expect_refused(hidden, "something between two sections");
        assert_eq!(error, DecodeError::Padding { field: "gap before a section" });
        // Two sections over each other: the second starts where the first does.
        let first = Header::decode(&file, file.len() as u64).unwrap().sections[0].1;
        let params = u32::from_le_bytes(file[44..48].try_into().unwrap()) as usize;
        let mut overlapping = file.clone();
        put(96 + params + 32 + 8, &first.offset.to_le_bytes())(&mut overlapping);
        reseal(&mut overlapping);
        let error = expect_refused(overlapping, "overlapping sections");
        assert_eq!(error, DecodeError::Value { field: "offset of a part", found: first.offset });
        let mut padded = file.clone();
        put(96 + params + 4, &[1])(&mut padded);
        reseal(&mut padded);
        let error = expect_refused(padded, "a section's padding");
        assert_eq!(error, DecodeError::Padding { field: "section padding" });
    });
}

#[test]
fn many_sections_make_the_header_longer() {
    each_family(|family| {
        let sections = vec![(METADATA, &b"x"[..]); 200];
        let file = with_sections(family, &sections);
        assert_eq!(Header::length(&file), Ok(2 * PAGE));
        assert!(holds_all(&*reopen(&file).unwrap(), &keys(family, 0..300)));
    });
}

/// A writer that died: the counts and the checksum in the header are those of before.
#[test]
fn an_interrupted_update_is_recounted_and_not_summed() {
    each_family(|family| {
        let done = filled(family, 300, 0..200);
        let mut file = file_of(&*filled(family, 300, 0..100));
        mark_writing(&mut file[..PAGE]);
        let header = Header::decode(&file, file.len() as u64).unwrap();
        assert!(header.flags.contains(Flags::WRITING) && !header.flags.contains(Flags::UNSUMMED));
        assert_eq!((header.inserted, header.ones), (None, None));
        if !family.in_place {
            assert!(holds_all(&*reopen(&file).unwrap(), &keys(family, 0..100)));
            return;
        }
        // The new payload under the old header.
        file.truncate(PAGE);
        file.extend(payload_of(&file_of(&*done)));
        let again = reopen(&file).unwrap();
        assert!(holds_all(&*again, &keys(family, 0..200)));
        let mut report = done.report();
        report.inserted = None;
        assert_eq!(again.report(), report);
        // Written again, it is a file like any other, that does not know its calls.
        let renewed = file_of(&*again);
        let header = Header::decode(&renewed, renewed.len() as u64).unwrap();
        assert_eq!(header.flags, Flags::UNCOUNTED);
        assert!(reopen(&renewed).is_ok());
    });
}

#[test]
fn a_file_without_a_payload_checksum_keeps_its_counts() {
    each_family(|family| {
        let filter = filled(family, 300, 0..100);
        let file = encode(&*filter, Summing::Skip).to_vec();
        let header = Header::decode(&file, file.len() as u64).unwrap();
        assert_eq!((header.flags, header.payload.checksum), (Flags::UNSUMMED, 0));
        assert_eq!(header.inserted, Some(100));
        let again = reopen(&file).unwrap();
        assert_eq!(again.report(), filter.report());
        // Written whole, it has a checksum again.
        assert!(file_of(&*again) == file_of(&*filter));
        // A damaged payload is not found by a checksum that is not there: refused or used, no panic.
        let mut random = Random::new(4);
        for _ in 0..200 {
            let mut damaged = file.clone();
            let place = PAGE + random.below((file.len() - PAGE) as u64) as usize;
            damaged[place] ^= 1 << random.below(8);
            if let Ok(mut filter) = reopen(&damaged) {
                use_it(&mut *filter, family);
            }
        }
    });
}

#[test]
fn what_is_no_file_at_all_is_refused() {
    let cases: [(&[u8], DecodeError); 4] = [
        (b"", DecodeError::Truncated { field: "magic", needed: 4, available: 0 }),
        (b"MYH", DecodeError::Truncated { field: "magic", needed: 4, available: 3 }),
        (b"PK\x03\x04 and more", DecodeError::Magic { found: *b"PK\x03\x04" }),
        (b"MYHP\x02\x00", DecodeError::Version { found: 2 }),
    ];
    for (bytes, error) in cases {
        assert_eq!(reopen(bytes).err(), Some(error));
    }
    let mut random = Random::new(5);
    for _ in 0..2000 {
        let mut noise: Vec<u8> = (0..random.below(9000)).map(|_| random.next_u64() as u8).collect();
        assert!(reopen(&noise).is_err());
        if let Some(start) = noise.get_mut(..6) {
            start.copy_from_slice(b"MYHP\x01\x00");
            assert!(reopen(&noise).is_err());
        }
    }
}

/// The kinds of keys of `mayhap-eval` never meet, which the tests above rely on.
#[test]
fn keys_of_different_numbers_are_different() {
    each_family(|family| {
        let all: HashSet<Vec<u8>> = keys(family, 0..30_000).into_iter().collect();
        assert_eq!(all.len(), 30_000);
    });
}
