//! Thirty million keys in batches, and mixed lookups beside an exact set: no key is lost, and the rate is the claimed one.
//!
//! Small data on every path is in `all_paths.rs`; this is the same question at the size at which the loops for large filters
//! are chosen by themselves. Minutes, so only with `cargo xtask test --all`.

use std::num::NonZeroU16;

use mayhap::{AnyFilter, Digest, Hashing, Insertion, Labels, Make, Removal, Spec, family};

/// Numbers below this are keys or absent, about as many of either.
const NUMBERS: u64 = 60_000_000;

/// Whether a number is a key: decided by another hash than that of the filter.
fn is_key(number: u64) -> bool {
    Hashing::Xxh3 { seed: 0xE8AC }.digest_of(number).a.is_multiple_of(2)
}

fn area(number: u64) -> NonZeroU16 {
    NonZeroU16::new(1 + (number / 10_000 % 3) as u16).unwrap()
}

/// Batch lengths that no loop has: 1 to 6,000.
fn length(turn: u64) -> usize {
    1 + (Hashing::Xxh3 { seed: 0xBA7C }.digest_of(turn).a % 6000) as usize
}

/// The keys, as numbers, in their order.
fn keys() -> impl Iterator<Item = u64> {
    (0..NUMBERS).filter(|&number| is_key(number))
}

/// Hands batches of numbers over, with their digests.
fn in_batches(hashing: Hashing, numbers: impl Iterator<Item = u64>, mut each: impl FnMut(&[u64], &[Digest])) {
    let (mut numbers, mut turn) = (numbers.peekable(), 0);
    let (mut some, mut digests) = (Vec::new(), Vec::new());
    while numbers.peek().is_some() {
        turn += 1;
        some.clear();
        some.extend(numbers.by_ref().take(length(turn)));
        digests.clear();
        digests.extend(some.iter().map(|&number| hashing.digest_of(number)));
        each(&some, &digests);
    }
}

fn built(name: &str, fpr: f64) -> Box<dyn AnyFilter> {
    let (family, hashing) = (family(name).unwrap(), Hashing::default());
    let count = keys().count() as u64;
    assert!(count.abs_diff(NUMBERS / 2) < 50_000, "{count} keys");
    // Those that grow begin with a thousandth, so that several layers or doublings are large.
    let capacity = if family.can.grows { count / 1000 } else { count };
    let spec = Spec::sized(capacity, fpr);
    match family.make {
        Make::Empty(make) => {
            let mut filter = make(&if family.can.labels { spec.with_areas(3) } else { spec }).unwrap();
            let mut outcomes: Vec<Insertion> = Vec::new();
            in_batches(hashing, keys(), |numbers, digests| {
                outcomes.clear();
                match filter.as_label_mut() {
                    Some(label) => {
                        let mut rest = digests;
                        for numbers in numbers.chunk_by(|&one, &two| area(one) == area(two)) {
                            let (own, later) = rest.split_at(numbers.len());
                            label.insert_labelled_batch(own, area(numbers[0]), &mut outcomes).unwrap();
                            rest = later;
                        }
                    }
                    None => filter.as_insert().unwrap().insert_batch(digests, &mut outcomes).unwrap(),
                }
                assert_eq!(outcomes.len(), digests.len());
            });
            filter
        }
        Make::FromDigests(make) => {
            let halves: Vec<u64> = keys().map(|key| hashing.digest_of(key).a).collect();
            make(&spec, &halves, 2).unwrap()
        }
        _ => panic!("{name}: another way to be made"),
    }
}

/// Every number is looked up in mixed batches; then the keys one by one, and of families that remove, half of the keys go.
fn check(name: &str, fpr: f64) {
    let mut filter = built(name, fpr);
    let claimed = filter.report().fpr_now;
    let (mut lost, mut wrong, mut absent) = (0u64, 0u64, 0u64);
    let (mut hits, mut labels) = (Vec::new(), Vec::new());
    in_batches(filter.hashing(), 0..NUMBERS, |numbers, digests| {
        hits.clear();
        filter.contains_batch(digests, &mut hits);
        for ((&number, &digest), &hit) in numbers.iter().zip(digests).zip(&hits) {
            let is_in = is_key(number);
            lost += u64::from(is_in && !hit);
            wrong += u64::from(!is_in && hit);
            absent += u64::from(!is_in);
            // Single lookups are slow out of cache: a sixteenth of them.
            assert!(number % 16 != 0 || filter.contains_digest(digest) == hit, "{name}: {number} one by one");
        }
        if let Some(label) = filter.as_label() {
            labels.clear();
            label.label_batch(digests, &mut labels);
            for (&number, told) in numbers.iter().zip(&labels) {
                // A cell keeps the highest area that was written to it.
                let fits = |told: &Labels| matches!(told, Labels::One(told) if *told >= area(number));
                assert!(!is_key(number) || fits(told), "{name}: {number} has {told:?}");
            }
        }
        if let Some(count) = filter.as_count() {
            let counted = digests.iter().zip(numbers).step_by(97);
            lost += counted.filter(|(key, number)| is_key(**number) && count.count_digest(**key) == 0).count()
                as u64;
        }
    });
    assert_eq!(lost, 0, "{name}: keys are denied");
    // Seven deviations of the measurement: 1 in 10^11.
    let expected = claimed * absent as f64;
    let allowed = 7.0 * (expected * (1.0 - claimed)).sqrt() + 7.0;
    println!("{name}: {wrong} of {absent} absent keys admitted, {expected:.0} expected");
    assert!((wrong as f64 - expected).abs() <= allowed, "{name}: {wrong} of {absent}, {expected} expected");

    let Some(remove) = filter.as_remove() else { return };
    let (mut removed, hashing) = (Vec::new(), remove.hashing());
    in_batches(hashing, keys().filter(|key| key % 2 == 1), |_, digests| {
        remove.remove_batch(digests, &mut removed)
    });
    // Where a few keys share a counter of two bits it is saturated, and they stay: of dleft, about one key in 100,000.
    let stuck = removed.iter().filter(|&&removed| removed == Removal::Stuck).count();
    println!("{name}: {stuck} of {} keys cannot be removed", removed.len());
    assert!(!removed.contains(&Removal::Absent), "{name}: a key that is in was not there to be removed");
    assert!(stuck < removed.len() / 10_000, "{name}: {stuck} keys cannot be removed");
    in_batches(hashing, keys().filter(|key| key % 2 == 0), |_, digests| {
        hits.clear();
        filter.contains_batch(digests, &mut hits);
        assert!(hits.iter().all(|&hit| hit), "{name}: a key was lost by removing others");
    });
}

macro_rules! at_scale {
    ($($test:ident: $family:literal, $fpr:literal;)*) => {
        $(
            #[test]
            #[ignore = "30 million keys: cargo xtask test --all"]
            fn $test() {
                check($family, $fpr);
            }
        )*
    };
}

at_scale! {
    bloom_holds_30_million_keys: "bloom", 0.01;
    blocked_holds_30_million_keys: "blocked", 0.01;
    counting_holds_30_million_keys: "counting", 0.01;
    spectral_holds_30_million_keys: "spectral", 0.01;
    scalable_holds_30_million_keys: "scalable", 0.01;
    expanding_holds_30_million_keys: "expanding", 0.01;
    windowed_holds_30_million_keys: "windowed", 0.01;
    spatial_holds_30_million_keys: "spatial", 0.01;
    shifting_holds_30_million_keys: "shifting", 0.01;
    cuckoo_holds_30_million_keys: "cuckoo", 0.01;
    dleft_holds_30_million_keys: "dleft", 0.01;
    table_holds_30_million_keys: "table", 1e-6;
    fuse_holds_30_million_keys: "fuse", 0.01;
    ribbon_holds_30_million_keys: "ribbon", 0.01;
}
