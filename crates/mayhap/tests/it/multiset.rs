//! Every family that counts with drawn parameters, against an exact multiset, while every remove is of a key that is in.
//!
//! `model.rs` does the same with all families and one size; here the sizes, the widths and the rules are drawn too.

use std::any::Any;
use std::collections::HashMap;

use mayhap::{
    AnyFilter, Combine, Count, Counting, CountingRule, Dleft, Error, Insertion, Make, Mismatch, Removal,
    Spec, Spectral, Summing, combine, encode, family, open,
};
use proptest::prelude::*;

use CountingRule::{MinimumSelection, RecurringMinimum};

/// Keys are below this. Few, so that repeats and removes of keys that are in are common.
const KEYS: u64 = 200;

#[derive(Clone, Debug)]
enum Operation {
    Insert(u64, u64),
    Remove(u64),
    Merge(Vec<u64>),
    SaveAndOpen,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        35 => (0..KEYS).prop_map(|key| Operation::Insert(key, 1)),
        10 => (0..KEYS, 2..4u64).prop_map(|(key, times)| Operation::Insert(key, times)),
        3 => (0..5u64, 1..100u64).prop_map(|(key, times)| Operation::Insert(key, times)),
        40 => (0..KEYS).prop_map(Operation::Remove),
        2 => prop::collection::vec(0..KEYS, 0..60).prop_map(Operation::Merge),
        4 => Just(Operation::SaveAndOpen),
    ];
    prop::collection::vec(operation, 1..600)
}

/// A family and parameters, from far too small for the keys to roomy.
fn specs() -> impl Strategy<Value = (&'static str, Spec)> {
    let counting = (2u32..=16, 1u64..1500, 1u32..=20).prop_map(|(width, cells, probes)| {
        let spec = Spec::new().with_bits(cells * u64::from(width)).with_counter_bits(width);
        ("counting", spec.with_probes(probes).with_capacity(50))
    });
    let dleft = (1u64..8, 2u32..=30, 2u32..=8).prop_map(|(buckets, remainder_bits, width)| {
        let bits = 32 * buckets * u64::from(remainder_bits + width);
        ("dleft", Spec::new().with_capacity(24 * buckets).with_bits(bits).with_counter_bits(width))
    });
    let rule = prop::sample::select(CountingRule::ALL.to_vec());
    let width = prop_oneof![2 => Just(None), 3 => (4u32..=32).prop_map(Some)];
    let spectral = (rule, width, 1u64..1500, 1u32..=20).prop_map(|(rule, width, cells, probes)| {
        let each = u64::from(width.unwrap_or(4));
        let bits = match rule {
            RecurringMinimum => cells * each + cells.div_ceil(2) * each + cells,
            _ => cells * each,
        };
        let spec = Spec::new().with_bits(bits).with_probes(probes).with_counting_rule(rule).with_capacity(50);
        ("spectral", width.map_or(spec, |width| spec.with_counter_bits(width)))
    });
    let width = prop::option::of(2u32..=16);
    let shifting = (width, 1u64..1500, 1u32..=8, 1u32..=3).prop_map(|(width, starts, groups, shifts)| {
        let bits = (starts + 56) * u64::from(1 + width.unwrap_or(0));
        let spec = Spec::new().with_bits(bits).with_probes(groups * (shifts + 1)).with_shifts(shifts);
        let spec = spec.with_capacity(50);
        ("shifting", width.map_or(spec, |width| spec.with_counter_bits(width)))
    });
    prop_oneof![counting, dleft, spectral, shifting]
}

fn make(name: &str, spec: &Spec) -> Box<dyn AnyFilter> {
    let Make::Empty(make) = family(name).unwrap().make else { panic!("{name}: another way to be made") };
    make(spec).unwrap()
}

fn file(filter: &dyn AnyFilter) -> Vec<u8> {
    encode(filter, Summing::Payload).to_vec()
}

/// What the filter says of its counters is what stands in them.
fn check_counters(filter: &dyn AnyFilter) {
    let any: &dyn Any = filter;
    if let Some(filter) = any.downcast_ref::<Counting>() {
        let values: Vec<u64> = (0..filter.cells()).map(|place| filter.counter(place).unwrap()).collect();
        let occupied = values.iter().filter(|&&value| value > 0).count();
        assert_eq!(filter.fill(), occupied as f64 / filter.cells() as f64);
        let at_top = values.iter().filter(|&&value| value == filter.ceiling()).count();
        assert_eq!(filter.saturated(), at_top as u64);
    }
    if let Some(filter) = any.downcast_ref::<Dleft>() {
        let taken: u64 = filter.loads().iter().zip(0..).map(|(buckets, load)| buckets * load).sum();
        assert_eq!(filter.fill(), taken as f64 / (32 * filter.buckets()) as f64);
    }
    if let Some(filter) = any.downcast_ref::<Spectral>() {
        let values: Vec<u64> = (0..filter.cells()).map(|place| filter.counter(place).unwrap()).collect();
        let occupied = values.iter().filter(|&&value| value > 0).count();
        assert_eq!(filter.fill(), occupied as f64 / filter.cells() as f64);
        if filter.rule() == RecurringMinimum {
            return;
        }
        if filter.width() == mayhap::Width::Variable {
            assert_eq!(filter.overflowed(), values.iter().filter(|&&value| value > 15).count() as u64);
        } else {
            let at_top = values.iter().filter(|&&value| value == filter.ceiling()).count();
            assert_eq!(filter.saturated(), at_top as u64);
        }
    }
}

proptest! {
    #![proptest_config(crate::seeds::config(600))]

    #[test]
    fn it_agrees_with_an_exact_multiset((name, spec) in specs(), operations in operations()) {
        let mut filter = make(name, &spec);
        let digest = |key: u64| spec.hashing().digest_of(key);
        let rule = filter.details().counters.and_then(|counters| counters.rule);
        let mut model: HashMap<u64, u64> = HashMap::new();
        let (mut calls, mut known) = (0, true);
        for operation in operations {
            match operation {
                Operation::Insert(key, times) => {
                    for _ in 0..times {
                        let before = (name == "dleft").then(|| file(&*filter));
                        match filter.as_insert().unwrap().insert_digest(digest(key)) {
                            Ok(outcome) => {
                                prop_assert!(outcome == Insertion::Perhaps || !model.contains_key(&key));
                                *model.entry(key).or_insert(0) += 1;
                                calls += 1;
                            }
                            Err(full) => {
                                // Only `dleft` becomes full, and a key that is in needs no room.
                                prop_assert!(before == Some(file(&*filter)) && !model.contains_key(&key), "{full}");
                            }
                        }
                    }
                }
                Operation::Remove(key) => {
                    let is_in = filter.contains_digest(digest(key));
                    let before = (!is_in).then(|| file(&*filter));
                    let Some(remove) = filter.as_remove() else { continue };
                    if let Some(times) = model.get_mut(&key) {
                        prop_assert!(remove.remove_digest(digest(key)) != Removal::Absent);
                        *times -= 1;
                        model.retain(|_, times| *times > 0);
                    } else if let Some(before) = before {
                        prop_assert!(remove.remove_digest(digest(key)) == Removal::Absent);
                        prop_assert!(file(&*filter) == before);
                    }
                }
                Operation::Merge(keys) => {
                    let mut other = make(name, &spec);
                    let insert = other.as_insert().unwrap();
                    if keys.iter().any(|&key| insert.insert_digest(digest(key)).is_err()) {
                        continue;
                    }
                    let before = file(&*filter);
                    match combine(&mut *filter, &*other, Combine::Union) {
                        Ok(()) => {
                            keys.iter().for_each(|&key| *model.entry(key).or_insert(0) += 1);
                            known = false;
                        }
                        Err(error) => {
                            let is_full = matches!(error, Error::Mismatch(Mismatch::Full(_)));
                            let is_due = if name == "dleft" { is_full } else { rule == Some(RecurringMinimum) };
                            prop_assert!(is_due, "{error}");
                            prop_assert!(file(&*filter) == before);
                        }
                    }
                }
                Operation::SaveAndOpen => {
                    let bytes = file(&*filter);
                    let again = open(bytes.clone().into(), None).unwrap();
                    prop_assert!(again.report() == filter.report() && again.details().counters == filter.details().counters);
                    prop_assert!(file(&*again) == bytes);
                    filter = again;
                }
            }
        }
        for key in 0..KEYS {
            let times = model.get(&key).copied().unwrap_or(0);
            let is_in = filter.contains_digest(digest(key));
            prop_assert!(is_in || times == 0, "{key} is in and was denied");
            let Some(count) = filter.as_count() else { continue };
            let counted = count.count_digest(digest(key));
            prop_assert!(is_in == (counted > 0));
            // By recurring minimum a count may be too low.
            let least = if rule == Some(RecurringMinimum) { 0 } else { times.min(count.ceiling()) };
            prop_assert!(counted >= least, "{key} is in {times} times, counted {counted}");
        }
        prop_assert_eq!(filter.report().inserted, known.then_some(calls));
        check_counters(&*filter);
        // All that is left leaves, and nothing stays but saturated counters.
        if filter.as_remove().is_none() || rule.is_some_and(|rule| rule != MinimumSelection) {
            return Ok(());
        }
        for (key, times) in model {
            for _ in 0..times {
                let removed = filter.as_remove().unwrap().remove_digest(digest(key));
                prop_assert!(removed != Removal::Absent);
            }
        }
        let saturated = filter.details().counters.unwrap().saturated;
        prop_assert!(saturated > 0 || filter.report().fill == 0.0);
        let any: &dyn Any = &*filter;
        if let Some(filter) = any.downcast_ref::<Dleft>() {
            let taken: u64 = filter.loads().iter().zip(0..).map(|(buckets, load)| buckets * load).sum();
            prop_assert_eq!(taken, saturated);
        }
    }
}
