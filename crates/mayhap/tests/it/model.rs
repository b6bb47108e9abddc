//! Random operations against an exact model: never a false negative, and no error at all of exact families.

use std::any::Any;
use std::collections::{HashMap, VecDeque};

use mayhap::internals::{Paths, with_paths};
use mayhap::{
    AnyFilter, AtomicBlocked, AtomicBloom, Blocked, Bloom, Combine, Error, FAMILIES, Family, Hashing,
    Insertion, Key, Layout, Make, Removal, Secret, SharedInsert, Spec, Summing, combine, encode, open,
};
use mayhap_eval::KeyKind;
use proptest::prelude::*;

use crate::{many, paths};

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
    /// The loops that the filter takes.
    paths: Paths,
    filter: Box<dyn AnyFilter>,
    model: HashMap<u64, u64>,
    /// Insert calls, as long as the filter claims to know them.
    calls: u64,
    /// The last keys that were inserted, as many as a filter that forgets must remember.
    recent: VecDeque<u64>,
}

fn make(family: &Family, paths: Paths) -> Box<dyn AnyFilter> {
    let Make::Empty(make) = family.make else { panic!("{}: another way to be made", family.name) };
    // A bitmap has room for all keys. A filter is over-full long before, which must not cost a key; or it says that it
    // is full, and has not changed.
    let probe = make(&Spec::sized(1, 0.01)).unwrap();
    let capacity = if probe.hashing() == Hashing::Integer { KEYS } else { 50 };
    make(&with_paths(Spec::sized(capacity, 0.03), paths)).unwrap()
}

impl Pair {
    fn new(family: &'static Family, paths: Paths) -> Self {
        let filter = make(family, paths);
        Self { family, paths, filter, model: HashMap::new(), calls: 0, recent: VecDeque::new() }
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
        self.forget_all_but_the_last(number);
    }

    fn forget_all_but_the_last(&mut self, number: u64) {
        if self.filter.details().window.is_none() {
            return;
        }
        self.recent.push_back(number);
        if self.recent.len() as u64 > self.filter.report().capacity
            && let Some(oldest) = self.recent.pop_front()
        {
            *self.model.get_mut(&oldest).unwrap() -= 1;
            self.model.retain(|_, times| *times > 0);
        }
    }

    fn file(&self) -> Vec<u8> {
        encode(&*self.filter, Summing::Payload).to_vec()
    }

    fn other(&self, numbers: &[u64]) -> Pair {
        let mut other = Pair::new(self.family, self.paths);
        other.apply(&Operation::InsertMany(numbers.to_vec()));
        other
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Insert(number) => {
                let digest = self.filter.hashing().digest(&self.key(*number));
                let before = self.filter.details().slots.map(|_| self.file());
                match self.filter.as_insert().unwrap().insert_digest(digest) {
                    Ok(outcome) => self.note(*number, outcome),
                    Err(full) => {
                        assert_eq!(full.inserted, 0);
                        assert_eq!(Some(self.file()), before, "{full}: and yet it has changed");
                    }
                }
            }
            Operation::InsertMany(numbers) => {
                let keys: Vec<Vec<u8>> = numbers.iter().map(|&number| self.key(number)).collect();
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                let mut outcomes = Vec::new();
                match self.filter.insert_keys(&keys, &mut outcomes) {
                    Ok(()) => assert_eq!(outcomes.len(), numbers.len()),
                    Err(Error::Full(full)) if self.filter.details().slots.is_some() => {
                        assert_eq!(outcomes.len() as u64, full.inserted);
                    }
                    Err(error) => panic!("{error}"),
                }
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
                let (file, report) = (self.file(), self.filter.report());
                self.filter = open(file.into(), None).unwrap();
                self.filter.set_paths(self.paths);
                assert_eq!(self.filter.report(), report);
            }
            Operation::Clear => {
                if !self.filter.clear() {
                    self.filter = make(self.family, self.paths);
                }
                self.model.clear();
                self.recent.clear();
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
            assert_eq!(remove.remove_digest(digest) == Removal::Absent, !before);
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
        if let Some(count) = self.filter.as_count() {
            let digest = self.filter.hashing().digest(&self.key(number));
            let (counted, times) =
                (count.count_digest(digest), self.model.get(&number).copied().unwrap_or(0));
            assert!(counted >= times.min(count.ceiling()), "{number} is in {times} times, counted {counted}");
        }
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
        if let Some(slots) = self.filter.details().slots.filter(|slots| slots.evictions.is_some()) {
            // Here each repeat takes another slot.
            assert_eq!(slots.used, self.model.values().sum::<u64>());
        }
    }
}

proptest! {
    #![proptest_config(crate::seeds::config(200))]

    #[test]
    fn every_family_agrees_with_a_set_on_every_path(operations in operations(), path in 0..paths::ALL.len()) {
        // Families of many sets have models of their own.
        for family in FAMILIES.iter().filter(|family| family.can.inserts) {
            let mut pair = Pair::new(family, paths::ALL[path].1);
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

/// Small ones in filters of their own, large ones with atomic bits or in parts; a filter that had keys before; more
/// threads than keys are worth.
#[test]
fn threads_set_the_bits_that_one_sets() {
    let keys: Vec<u64> = (0..150_000).collect();
    for (capacity, fpr) in [(1_000, 0.01), (200_000, 0.01), (100_000_000, 0.0001)] {
        for layout in [None, Some(Layout::Compact), Some(Layout::Fastest)] {
            let spec = Spec::sized(capacity, fpr);
            for threads in [0, 1, 2, 5, 100] {
                let inserted = keys.len() as u64 + 1;
                if let Some(layout) = layout {
                    let mut alone = Blocked::from_spec(&spec.with_layout(layout)).unwrap();
                    alone.insert(u64::MAX);
                    let mut many = alone.clone();
                    alone.insert_all(&keys);
                    many.insert_all_parallel(&keys, threads);
                    assert!(many == alone, "{capacity} keys, {layout:?}, {threads} threads");
                    assert_eq!((many.inserted(), many.fill()), (Some(inserted), alone.fill()));
                } else {
                    let mut alone = Bloom::from_spec(&spec).unwrap();
                    alone.insert(u64::MAX);
                    let mut many = alone.clone();
                    alone.insert_all(&keys);
                    many.insert_all_parallel(&keys, threads);
                    assert!(many == alone, "{capacity} keys, {threads} threads");
                    assert_eq!((many.inserted(), many.fill()), (Some(inserted), alone.fill()));
                }
            }
        }
    }
}

/// A key whose bytes are a bug of its owner.
#[test]
fn a_key_that_panics_in_a_thread_costs_no_other_key() {
    struct Bad(u64);
    impl Key for Bad {
        fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
            assert!(self.0 < 100_000, "bad key");
            then(&self.0.to_le_bytes())
        }
    }
    let bad: Vec<Bad> = (50_000..150_000).map(Bad).collect();
    let mut blocked = Blocked::new(200_000, 0.01).unwrap();
    let mut bloom = Bloom::new(200_000, 0.01).unwrap();
    let mut large = Bloom::new(100_000_000, 0.01).unwrap();
    blocked.extend(0..50_000u64);
    bloom.extend(0..50_000u64);
    large.extend(0..50_000u64);
    let panics = |work: &mut dyn FnMut()| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).expect_err("a bad key");
    };
    panics(&mut || blocked.insert_all_parallel(&bad, 3));
    panics(&mut || bloom.insert_all_parallel(&bad, 3));
    panics(&mut || large.insert_all_parallel(&bad, 3));
    let all = |contains: &dyn Fn(u64) -> bool| (0..50_000).all(contains);
    assert!(
        all(&|key| blocked.contains(key))
            && all(&|key| bloom.contains(key))
            && all(&|key| large.contains(key))
    );
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

/// Every shape that a blocked filter has: its layout and its probes.
const SHAPES: [(Layout, u32); 6] = [
    (Layout::Compact, 4),
    (Layout::Compact, 8),
    (Layout::Compact, 12),
    (Layout::Compact, 16),
    (Layout::Compact, 20),
    (Layout::Fastest, 8),
];

fn shaped((layout, probes): (Layout, u32), capacity: u64, bits: u64) -> Spec {
    Spec::new().with_capacity(capacity).with_bits(bits).with_probes(probes).with_layout(layout)
}

/// As `threads_lose_no_bits`, for blocks: one by one and in batches of digests.
#[test]
fn threads_lose_no_bits_of_blocks() {
    for (bits, keys) in [(1024, 3_000u64), (400_000, 40_000)] {
        for shape in SHAPES {
            let spec = shaped(shape, keys, bits);
            let mut alone = Blocked::from_spec(&spec).unwrap();
            alone.extend(0..keys);
            for in_batches in [false, true] {
                let shared = AtomicBlocked::from_spec(&spec).unwrap();
                std::thread::scope(|scope| {
                    for thread in 0..8 {
                        let shared = &shared;
                        // Each in its own order, and each key by two threads.
                        let own = (0..keys).map(move |index| (index * 7919 + thread * 31) % keys);
                        let own = own.filter(move |key| (key + thread) % 8 < 2);
                        scope.spawn(move || {
                            if in_batches {
                                let own: Vec<_> =
                                    own.map(|key| SharedInsert::hashing(shared).digest_of(key)).collect();
                                own.chunks(1000).for_each(|batch| {
                                    shared.insert_batch(batch);
                                });
                                return;
                            }
                            for key in own {
                                shared.insert(key);
                                assert!(shared.contains(key), "a thread does not see its own key {key}");
                            }
                        });
                    }
                });
                assert!((0..keys).all(|key| shared.contains(key)));
                let shared = shared.into_blocked();
                assert!(shared.words() == alone.words(), "{shape:?}: other bits than one thread sets");
                assert!(shared == alone && shared.fill() == alone.fill());
                assert_eq!(shared.inserted(), Some(2 * keys));
            }
        }
    }
}

/// Of many threads that insert one new key into blocks, at least one is told that it is new.
#[test]
fn somebody_is_told_that_a_key_is_new_to_its_block() {
    for shape in SHAPES {
        // So many bits that no key is in by chance.
        let shared = AtomicBlocked::from_spec(&shaped(shape, 100, 1 << 22)).unwrap();
        for key in 0..100u64 {
            let told: Vec<Insertion> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| shared.insert(key))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(told.contains(&Insertion::New), "{shape:?}, key {key}: {told:?}");
            assert_eq!(shared.insert(key), Insertion::Perhaps);
        }
    }
}

#[test]
fn many_keys_at_once_are_as_one_by_one() {
    let texts: Vec<String> = (0..20_000).map(|index| format!("key {index}, as a text")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    // One block, one that stays in the cache, and one that is worth prefetching.
    for bits in [512, 100_000, 2 << 20] {
        for shape in SHAPES {
            for hashing in [Hashing::Xxh3 { seed: 5 }, Hashing::Keyed(Secret::new([9; 16]))] {
                let empty = Blocked::from_spec(&shaped(shape, 1000, bits).with_hashing(hashing)).unwrap();
                // Around the size of a batch, and no key at all.
                for len in
                    [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 3000]
                {
                    // Every third key comes twice.
                    let integers: Vec<u64> = (0..len).map(|i| if i % 3 == 0 { i / 6 } else { i }).collect();
                    let absent: Vec<u64> = (len..2 * len + 5).collect();
                    many::equal_single(&empty, &integers, &absent);
                    if len == 65 || len == 3000 {
                        let pick = |integers: &[u64]| -> Vec<&str> {
                            integers.iter().map(|&index| texts[index as usize]).collect()
                        };
                        let (texts, absent) = (pick(&integers), pick(&absent));
                        many::equal_single(&empty, &texts, &absent);
                        let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
                        let absent: Vec<&[u8]> = absent.iter().map(|text| text.as_bytes()).collect();
                        many::equal_single(&empty, &bytes, &absent);
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::seeds::config(100))]

    #[test]
    fn blocked_agrees_with_a_set(
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..200),
        bits in 1u64..20_000,
        shape in prop::sample::select(SHAPES.to_vec()),
        seed in any::<u64>(),
    ) {
        let spec = shaped(shape, 100, bits).with_hashing(Hashing::Xxh3 { seed });
        let mut blocked = Blocked::from_spec(&spec).unwrap();
        let mut model = std::collections::HashSet::new();
        for key in &keys {
            let outcome = blocked.insert(key);
            prop_assert!(outcome == Insertion::Perhaps || !model.contains(key));
            model.insert(key);
            prop_assert!(blocked.contains(key));
        }
        prop_assert!(keys.iter().all(|key| blocked.contains(key)));
        prop_assert_eq!(blocked.inserted(), Some(keys.len() as u64));
        let ones: u64 = blocked.words().iter().map(|word| u64::from(word.count_ones())).sum();
        prop_assert_eq!(blocked.fill(), ones as f64 / blocked.bits() as f64);
        let file = encode(&blocked, Summing::Payload).to_vec();
        let opened = open(file.clone().into(), None).unwrap();
        prop_assert_eq!(opened.report(), blocked.report());
        let any: &dyn Any = &*opened;
        prop_assert_eq!(any.downcast_ref::<Blocked>(), Some(&blocked));
        let atomic = AtomicBlocked::from_spec(&spec).unwrap();
        keys.iter().for_each(|key| { atomic.insert(key); });
        let atomic = atomic.into_blocked();
        prop_assert_eq!(encode(&atomic, Summing::Payload).to_vec(), file);
    }
}
