//! Sets within a known universe: no wrong answer about any key of it, in as many bits as the formula says.

use mayhap::{AnyFilter, BuildError, Filter, Layout, Overlap, Spec, Universe};
use mayhap_eval::Proportion;

fn keys(range: std::ops::Range<u64>) -> Vec<u64> {
    range.map(|i| i.wrapping_mul(0xD6E8_FEB8_6659_FD93)).collect()
}

fn answers(universe: &Universe, keys: &[u64]) -> Vec<bool> {
    let mut hits = Vec::new();
    universe.contains_each(keys, &mut hits);
    assert_eq!(hits.len(), keys.len());
    for (&key, &hit) in keys.iter().zip(&hits).step_by(13) {
        assert_eq!(universe.contains(key), hit);
    }
    hits
}

fn wrong(universe: &Universe, set: &[u64], others: &[u64]) -> usize {
    let denied = answers(universe, set).iter().filter(|&&hit| !hit).count();
    denied + answers(universe, others).iter().filter(|&&hit| hit).count()
}

/// A right one fails with a chance of 6e-7.
#[test]
fn keys_that_nobody_knew_are_admitted_at_the_rate_that_it_tells() {
    let universe = Universe::of_sets(&keys(0..20_000), &keys(20_000..200_000)).unwrap();
    let strangers = keys(1 << 40..(1 << 40) + 1_000_000);
    let hits = answers(&universe, &strangers).iter().filter(|&&hit| hit).count() as u64;
    let measured = Proportion { hits, trials: 1_000_000 };
    assert_eq!(universe.fpr(), 1.0 / 16.0);
    assert!(measured.agrees_with(universe.fpr(), 0.0, 5.0), "{measured:?}");
    // A lower one is had for more columns.
    let spec = Spec::new().with_fpr(0.001);
    let lower = Universe::build_with(&keys(0..20_000), &keys(20_000..200_000), &spec, Overlap::Refused, 1);
    let lower = lower.unwrap();
    let hits = answers(&lower, &strangers).iter().filter(|&&hit| hit).count();
    assert!(hits < 1200 && wrong(&lower, &keys(0..20_000), &keys(20_000..200_000)) == 0, "{hits}");
}

#[test]
fn a_key_of_both_is_an_error_or_in_the_set() {
    let (set, others) = (keys(0..1000), keys(990..5000));
    let refused = Universe::of_sets(&set, &others).unwrap_err();
    assert_eq!(refused, BuildError::Overlap { keys: 10 });
    assert!(refused.to_string().contains("take them out of one of the two"));
    let universe = Universe::within(&set, &others).unwrap();
    assert_eq!(wrong(&universe, &set, &others[10..]), 0);
    // The whole universe, and only what is left of it, make the same.
    let whole =
        Universe::build_with(&set, &keys(0..5000), &Spec::new().with_others(4000), Overlap::InTheSet, 1);
    let rest = Universe::build_with(&set, &keys(1000..5000), &Spec::new(), Overlap::InTheSet, 1);
    assert_eq!(wrong(&whole.unwrap(), &set, &others[10..]), 0);
    assert_eq!(wrong(&rest.unwrap(), &set, &others[10..]), 0);
}

#[test]
fn empty_and_small_ones_are_right() {
    for n in 0..60 {
        for m in [0, 1, 7, 64, 500] {
            let (set, others) = (keys(0..n), keys(n..n + m));
            let universe = Universe::of_sets(&set, &others).unwrap();
            assert_eq!(wrong(&universe, &set, &others), 0, "{n} of {m}");
            assert_eq!(universe.keys(), n);
            let again = Universe::from_bytes(&universe.to_bytes()).unwrap();
            assert!(again == universe && wrong(&again, &set, &others) == 0, "{n} of {m}");
        }
    }
    assert!(!Universe::of_sets::<u64, u64>(&[], &[]).unwrap().contains(1u64));
}

/// The order and the number of threads change nothing; shards of the set and finer ones of the others are right.
#[test]
fn shards_and_threads_give_the_same_bytes() {
    let (set, others) = (keys(0..3_300_000), keys(3_300_000..10_000_000));
    let build = |set: &[u64], others: &[u64], threads| {
        Universe::build_with(set, others, &Spec::new(), Overlap::Refused, threads).unwrap()
    };
    let alone = build(&set, &others, 1);
    assert_eq!(wrong(&alone, &set, &others), 0);
    let backwards: Vec<u64> = others.iter().rev().copied().collect();
    assert!(build(&set, &backwards, 2).to_bytes() == alone.to_bytes());
    let report = alone.report();
    assert_eq!((report.inserted, alone.details().others), (Some(3_300_000), Some(6_700_000)));
    assert!(alone.contains_digest(alone.hashing().digest_of(set[5])));
}

/// All right sides of a tiny second stage were the same, and it said yes to everybody. A right one fails with a chance of 6e-7
/// each.
#[test]
fn small_sets_admit_strangers_at_the_rate_that_they_tell() {
    let strangers = keys(1 << 40..(1 << 40) + 100_000);
    for (n, m, fpr) in [(1, 0, None), (50, 1, Some(0.01)), (60, 0, Some(0.2)), (120, 3, Some(0.05))] {
        for layout in Layout::ALL {
            let spec = Spec::new().with_layout(layout);
            let spec = fpr.map_or(spec, |fpr| spec.with_fpr(fpr));
            let universe =
                Universe::build_with(&keys(0..n), &keys(n..n + m), &spec, Overlap::Refused, 1).unwrap();
            let hits = answers(&universe, &strangers).iter().filter(|&&hit| hit).count() as u64;
            let measured = Proportion { hits, trials: 100_000 };
            assert!(measured.agrees_with(universe.fpr(), 0.0, 5.0), "{n} of {m}, {layout:?}: {measured:?}");
        }
    }
}
