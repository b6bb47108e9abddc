//! Random operations against an exact model: never a false negative, and no error at all of exact families.

use std::any::Any;
use std::collections::HashMap;

use mayhap::family::Make;
use mayhap::registry::FAMILIES;
use mayhap::wire::Summing;
use mayhap::{
    AnyFilter, AtomicBloom, Bloom, Combine, Family, Hashing, Insertion, Spec, combine, encode, open,
};
use mayhap_eval::KeyKind;
use proptest::prelude::*;

/// Keys have numbers below this. Few, so that repeats and removals of present keys are common.
const KEYS: u64 = 300;

#[derive(Clone, Debug)]
enum Operation {
    Insert(u64),
    InsertMany(Vec<u64>),
    Remove(u64),
    Contains(u64),
    Merge(Vec<u64>),
    Intersect(Vec<u64>),
    Subtract(Vec<u64>),
    SaveAndOpen,
    Clear,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || 0..KEYS;
    let many = || prop::collection::vec(0..KEYS, 0..100);
    let operation = prop_oneof![
        30 => key().prop_map(Operation::Insert),
        5 => many().prop_map(Operation::InsertMany),
        20 => key().prop_map(Operation::Remove),
        20 => key().prop_map(Operation::Contains),
        3 => many().prop_map(Operation::Merge),
        1 => many().prop_map(Operation::Intersect),
        1 => many().prop_map(Operation::Subtract),
        5 => Just(Operation::SaveAndOpen),
        1 => Just(Operation::Clear),
    ];
    prop::collection::vec(operation, 1..120)
}

/// A filter and what it should hold: how often each key is in.
struct Pair {
    family: &'static Family,
    filter: Box<dyn AnyFilter>,
    model: HashMap<u64, u64>,
    /// Insert calls, as long as the filter claims to know them.
    calls: u64,
}

fn make(family: &Family) -> Box<dyn AnyFilter> {
    let Make::Empty(make) = family.make else { panic!("{}: another way to be made", family.name) };
    // A bitmap has room for all keys. A filter is over-full long before, which must not cost a key.
    let probe = make(&Spec::sized(1, 0.01)).unwrap();
    let capacity = if probe.hashing() == Hashing::Integer { KEYS } else { 50 };
    make(&Spec::sized(capacity, 0.03)).unwrap()
}

impl Pair {
    fn new(family: &'static Family) -> Self {
        Self { family, filter: make(family), model: HashMap::new(), calls: 0 }
    }

    fn key(&self, number: u64) -> Vec<u8> {
        match self.filter.hashing() {
            Hashing::Integer => number.to_le_bytes().to_vec(),
            _ => KeyKind::ALL[(number % 5) as usize].key(9, number),
        }
    }

    fn note(&mut self, number: u64, outcome: Insertion) {
        self.calls += 1;
        let before = self.model.contains_key(&number);
        // "New" is certain in every family. "Perhaps" is certain in an exact one.
        assert!(outcome == Insertion::Perhaps || !before, "{number} is said to be new");
        assert!(
            outcome == Insertion::New || before || !self.family.can.exact,
            "{number} is not said to be new"
        );
        let times = self.model.entry(number).or_insert(0);
        *times = if self.family.can.exact { 1 } else { *times + 1 };
    }

    fn other(&self, numbers: &[u64]) -> Pair {
        let mut other = Pair::new(self.family);
        other.apply(&Operation::InsertMany(numbers.to_vec()));
        other
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Insert(number) => {
                let digest = self.filter.hashing().digest(&self.key(*number));
                let outcome = self.filter.as_insert().unwrap().insert_digest(digest).unwrap();
                self.note(*number, outcome);
            }
            Operation::InsertMany(numbers) => {
                let keys: Vec<Vec<u8>> = numbers.iter().map(|&number| self.key(number)).collect();
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                let mut outcomes = Vec::new();
                self.filter.insert_keys(&keys, &mut outcomes).unwrap();
                assert_eq!(outcomes.len(), numbers.len());
                numbers.iter().zip(outcomes).for_each(|(&number, outcome)| self.note(number, outcome));
            }
            Operation::Remove(number) => self.remove(*number),
            Operation::Contains(number) => self.check(*number),
            Operation::Merge(numbers) => {
                let other = self.other(numbers);
                if combine(&mut *self.filter, &*other.filter, Combine::Union).is_ok() {
                    for (number, times) in other.model {
                        let ours = self.model.entry(number).or_insert(0);
                        *ours = if self.family.can.exact { 1 } else { *ours + times };
                    }
                    assert_eq!(self.filter.report().inserted, None);
                }
            }
            Operation::Intersect(numbers) => {
                let other = self.other(numbers);
                if combine(&mut *self.filter, &*other.filter, Combine::Intersection).is_ok() {
                    self.model.retain(|number, _| other.model.contains_key(number));
                }
            }
            Operation::Subtract(numbers) => {
                let other = self.other(numbers);
                let subtracted = combine(&mut *self.filter, &*other.filter, Combine::Difference);
                assert_eq!(subtracted.is_ok(), self.family.can.subtracts);
                if subtracted.is_ok() {
                    self.model.retain(|number, _| !other.model.contains_key(number));
                }
            }
            Operation::SaveAndOpen => {
                let (file, report) = (encode(&*self.filter, Summing::Payload).to_vec(), self.filter.report());
                self.filter = open(file.into(), None).unwrap();
                assert_eq!(self.filter.report(), report);
            }
            Operation::Clear => {
                let any: &mut dyn Any = &mut *self.filter;
                match any.downcast_mut::<Bloom>() {
                    Some(bloom) => bloom.clear(),
                    None => self.filter = make(self.family),
                }
                self.model.clear();
                self.calls = 0;
            }
        }
    }

    fn remove(&mut self, number: u64) {
        let digest = self.filter.hashing().digest(&self.key(number));
        let before = self.model.contains_key(&number);
        let exact = self.family.can.exact;
        let Some(remove) = self.filter.as_remove() else { return };
        // Only an exact family may be asked to remove what is not in.
        if before || exact {
            assert_eq!(remove.remove_digest(digest), before);
        }
        if let Some(times) = self.model.get_mut(&number) {
            *times -= 1;
        }
        self.model.retain(|_, times| *times > 0);
    }

    fn check(&self, number: u64) {
        let (said, is) = (self.filter.contains(&self.key(number)), self.model.contains_key(&number));
        assert!(said || !is, "{number} is in and was denied");
        assert!(is || !said || !self.family.can.exact, "{number} is not in and was admitted");
    }

    fn check_all(&self) {
        (0..KEYS).for_each(|number| self.check(number));
        let report = self.filter.report();
        if let Some(inserted) = report.inserted {
            assert_eq!(inserted, self.calls);
        }
        if self.family.can.exact {
            assert_eq!(report.estimated_len, Some(self.model.len() as f64));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_family_agrees_with_a_set(operations in operations()) {
        for family in FAMILIES {
            let mut pair = Pair::new(family);
            for operation in &operations {
                pair.apply(operation);
            }
            pair.check_all();
        }
    }

    /// The inherent methods of the concrete type, where nobody needs a trait.
    #[test]
    fn bloom_agrees_with_a_set(
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..200),
        bits in 1u64..5000,
        probes in 1u32..=64,
        seed in any::<u64>(),
    ) {
        let spec = Spec::new().with_bits(bits).with_probes(probes).with_hashing(Hashing::Xxh3 { seed });
        let mut bloom = Bloom::from_spec(&spec).unwrap();
        let mut model = std::collections::HashSet::new();
        for key in &keys {
            let outcome = bloom.insert(key);
            prop_assert!(outcome == Insertion::Perhaps || !model.contains(key));
            model.insert(key);
            prop_assert!(bloom.contains(key));
            prop_assert!(bloom.positions(key).all(|position| position < bits));
        }
        prop_assert!(keys.iter().all(|key| bloom.contains(key)));
        prop_assert_eq!(bloom.inserted(), Some(keys.len() as u64));
        let ones: u64 = bloom.words().iter().map(|word| u64::from(word.count_ones())).sum();
        prop_assert_eq!(bloom.fill(), ones as f64 / bits as f64);
        prop_assert_eq!(&Bloom::from_bytes(&bloom.to_bytes()).unwrap(), &bloom);
        let atomic = AtomicBloom::from_spec(&spec).unwrap();
        keys.iter().for_each(|key| { atomic.insert(key); });
        prop_assert_eq!(atomic.into_bloom().to_bytes(), bloom.to_bytes());
    }
}

/// Threads that write the same words at the same time: a bit that is lost is a key that is lost.
#[test]
fn threads_lose_no_bits() {
    // Few bits and many keys, so that all threads meet in the same words.
    for (capacity, keys) in [(100u64, 20_000u64), (200_000, 200_000)] {
        let spec = Spec::sized(capacity, 0.01);
        let mut alone = Bloom::from_spec(&spec).unwrap();
        alone.extend(0..keys);
        for round in 0..5 {
            let shared = AtomicBloom::from_spec(&spec).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    let shared = &shared;
                    // Each in its own order, and each key by two threads.
                    scope.spawn(move || {
                        for index in 0..keys {
                            let key = (index * 7919 + thread * 31) % keys;
                            if (key + thread) % 8 < 2 {
                                shared.insert(key);
                                assert!(shared.contains(key), "a thread does not see its own key {key}");
                            }
                        }
                    });
                }
            });
            assert!((0..keys).all(|key| shared.contains(key)));
            let shared = shared.into_bloom();
            assert!(shared.words() == alone.words(), "round {round}: other bits than one thread sets");
            assert_eq!(shared.fill(), alone.fill());
            assert_eq!(shared.inserted(), Some(2 * keys));
        }
    }
}

/// Of many threads that insert one new key, at least one is told that it is new.
#[test]
fn somebody_is_told_that_a_key_is_new() {
    let shared = AtomicBloom::new(10_000, 1e-9).unwrap();
    for key in 0..500u64 {
        let told: Vec<Insertion> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| shared.insert(key))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(told.contains(&Insertion::New), "key {key}: {told:?}");
        assert_eq!(shared.insert(key), Insertion::Perhaps);
    }
}

/// A filter that was filled goes on with threads and comes back.
#[test]
fn a_bloom_becomes_atomic_and_back() {
    let mut bloom = Bloom::new(1000, 0.01).unwrap();
    bloom.extend(0..500u64);
    let shared = AtomicBloom::from(bloom.clone());
    assert!((0..500u64).all(|key| shared.contains(key)));
    let back = shared.into_bloom();
    assert_eq!(back.to_bytes(), bloom.to_bytes());
    // What is not known does not become known on the way.
    let mut merged = bloom.clone();
    merged.merge(&bloom).unwrap();
    assert_eq!(AtomicBloom::from(merged).into_bloom().inserted(), None);
}
