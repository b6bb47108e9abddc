//! Every loop of every family over small data: batches of all lengths do what single keys do, whatever the size of the
//! filter, the processor and the number of threads would choose.
//!
//! What a filter does with single keys in its usual loops is the measure; `model.rs` and `conformance.rs` compare that with
//! exact sets, on every path too. All keys are fixed.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use mayhap::internals::{Paths, Taken, taken, with_paths};
use mayhap::shards::MemoryShards;
use mayhap::{
    AnyFilter, AtomicBlocked, AtomicBloom, Blocked, Bloom, BuildError, Counting, CountingRule, Cuckoo,
    Digest, Dleft, Expanding, FAMILIES, Family, Fuse, Hashing, Insertion, Layout, Make, Profile, Ribbon,
    Scalable, SharedInsert, Shifting, Spec, SpecError, Spectral, Summing, Table, Windowed, encode, open,
};

use crate::paths;

/// A family and what is asked of it.
struct Variant {
    family: &'static Family,
    spec: Spec,
    name: String,
}

impl Variant {
    fn on(&self, paths: Paths) -> Spec {
        with_paths(self.spec, paths)
    }
}

/// Every family with every layout, rule of counting, width of counters and several rates that it takes. Those that grow begin
/// small, so that a few thousand keys are many layers or doublings.
fn variants(capacity: u64) -> Vec<Variant> {
    let mut all = Vec::new();
    for &family in FAMILIES {
        let start = if family.can.grows { 40 } else { capacity };
        let mut specs = Vec::new();
        for fpr in [0.1, 0.01, 0.001, 1e-6] {
            let plain = Spec::sized(start, fpr);
            specs.push((plain, format!("{} at {fpr}", family.name)));
            for layout in Layout::ALL {
                let name = format!("{}, {} at {fpr}", family.name, layout.name());
                specs.push((plain.with_layout(layout), name));
            }
        }
        for rule in CountingRule::ALL {
            let spec = Spec::sized(start, 0.01).with_counting_rule(rule);
            specs.push((spec, format!("{}, {}", family.name, rule.name())));
        }
        for bits in [2, 4, 8] {
            let spec = Spec::sized(start, 0.01).with_counter_bits(bits);
            specs.push((spec, format!("{}, counters of {bits} bits", family.name)));
        }
        for (spec, name) in specs {
            if (family.plan)(&spec).is_ok() {
                all.push(Variant { family, spec, name });
            }
        }
    }
    assert!(all.len() > 3 * FAMILIES.len());
    all
}

fn digest(hashing: Hashing, key: u64) -> Digest {
    hashing.digest_of(key)
}

fn area(digest: Digest) -> NonZeroU16 {
    NonZeroU16::new(1 + (digest.b % 3) as u16).unwrap()
}

fn spec_error(error: BuildError) -> SpecError {
    match error {
        BuildError::Spec(error) => error,
        other => panic!("{other}"),
    }
}

/// A filter of these keys, inserted one by one where it takes keys one by one.
fn filled(variant: &Variant, paths: Paths, keys: &[Digest]) -> Box<dyn AnyFilter> {
    let spec = variant.on(paths);
    let halves = || keys.iter().map(|digest| digest.a).collect::<Vec<u64>>();
    match variant.family.make {
        Make::Empty(make) => {
            let mut filter = make(&variant.areas(spec)).unwrap();
            for &key in keys {
                insert_one(&mut *filter, key);
            }
            filter
        }
        Make::Counted(make) => make(&spec, &mut keys.iter().map(|&key| (key, 1 + key.b % 3))).unwrap(),
        Make::OfTwo(make) => make(&spec, &keys[..2 * keys.len() / 3], &keys[keys.len() / 3..]).unwrap(),
        Make::FromDigests(make) => make(&spec, &halves(), 2).map_err(spec_error).unwrap(),
        Make::Within(make) => {
            let others: Vec<u64> = (0..1000).map(|key| digest(spec.hashing(), (1 << 50) + key).a).collect();
            make(&spec, &halves(), &others, 2).map_err(spec_error).unwrap()
        }
        _ => panic!("{}: another way to be made", variant.name),
    }
}

impl Variant {
    fn areas(&self, spec: Spec) -> Spec {
        if self.family.can.labels { spec.with_areas(3) } else { spec }
    }

    /// The digests of these integers, as this family hashes.
    fn digests(&self, keys: impl Iterator<Item = u64>) -> Vec<Digest> {
        let empty = filled(self, Paths::default(), &[]);
        keys.map(|key| digest(empty.hashing(), key)).collect()
    }
}

fn insert_one(filter: &mut dyn AnyFilter, key: Digest) -> Insertion {
    if let Some(label) = filter.as_label_mut() {
        return label.insert_labelled(key, area(key)).unwrap();
    }
    filter.as_insert().unwrap().insert_digest(key).unwrap()
}

fn file_of(filter: &dyn AnyFilter) -> Vec<u8> {
    encode(filter, Summing::Payload).to_vec()
}

/// Lengths around the widths of all loops, and all up to 200.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=200).chain([255, 256, 257, 511, 512, 513, 544, 1023, 1024, 1025, 1500])
}

/// Keys that are in and others, about as many of each, in no order that a loop could have.
fn mixed(present: &[Digest], absent: &[Digest], length: usize, turn: &mut u64) -> Vec<Digest> {
    let next = |_| {
        *turn += 1;
        let chosen = digest(Hashing::default(), *turn);
        let from = if chosen.a.is_multiple_of(2) { present } else { absent };
        from[(chosen.b % from.len() as u64) as usize]
    };
    (0..length).map(next).collect()
}

/// Whether this machine has every instruction for which there is a kernel.
fn has_all_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt");
    #[cfg(not(target_arch = "x86_64"))]
    cfg!(target_arch = "aarch64")
}

/// A kernel that is no longer called, and a path that has become the usual one, contradict the families' profiles.
#[test]
fn every_path_takes_the_loops_of_its_name() {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, paths) in paths::ALL.iter().copied() {
        for variant in variants(700) {
            let (present, absent) = (variant.digests(0..700), variant.digests(1 << 20..(1 << 20) + 700));
            let mut filter = filled(&variant, paths, &present);
            // What was taken while it was made.
            let _ = taken();
            filter.contains_batch(&absent, &mut Vec::new());
            if let Some(insert) = filter.as_insert() {
                // Those with slots may be full.
                let _ = insert.insert_batch(&absent, &mut Vec::new());
            }
            let Taken { kernels, portable, far, .. } = taken();
            if path.contains("portable") {
                assert_eq!(kernels, 0, "{}, {path}: a kernel was taken", variant.name);
            } else if has_all_instructions() {
                assert_eq!(portable, 0, "{}, {path}: no kernel was taken", variant.name);
            }
            for (loops, on_path, count) in
                [("kernels", "usual", kernels), ("portable", "portable", portable), ("far", "far", far)]
            {
                if count > 0 && path == on_path {
                    found.entry(loops).or_default().insert(variant.family.name);
                }
            }
        }
    }
    // Keys are gathered by the methods that take many at once.
    for (paths, gathers) in [(Paths::default(), false), (paths::FAR, false), (paths::GATHERED, true)] {
        let mut bloom = Bloom::from_spec(&with_paths(Spec::sized(5000, 0.01), paths)).unwrap();
        let _ = taken();
        bloom.insert_all(&(0..5000).collect::<Vec<u64>>());
        assert_eq!(taken().gathered > 0, gathers, "{paths:?}");
    }
    #[cfg(target_arch = "x86_64")]
    if has_all_instructions() {
        let those = |has: fn(&Profile) -> bool| {
            FAMILIES.iter().filter(|family| has(&family.profile)).map(|family| family.name).collect()
        };
        let kernels: BTreeSet<_> = those(|profile| profile.has_kernels);
        let expected = [
            ("far", those(|profile| profile.prefetches)),
            ("kernels", kernels.clone()),
            ("portable", kernels),
        ];
        assert_eq!(found, BTreeMap::from(expected));
    }
}

#[test]
fn a_mixed_batch_of_any_length_is_answered_as_its_keys_are() {
    for variant in variants(700) {
        let (present, absent) = (variant.digests(0..700), variant.digests(1 << 20..(1 << 20) + 2000));
        let usual = file_of(&*filled(&variant, Paths::default(), &present));
        for (path, paths) in paths::ALL.iter().copied() {
            let of = format!("{}, {path}", variant.name);
            let filter = filled(&variant, paths, &present);
            let file = file_of(&*filter);
            // Shards change where the keys of a static filter lie; nothing else changes a byte.
            let sharded = matches!(variant.family.make, Make::FromDigests(_) | Make::Within(_));
            assert!(file == usual || (sharded && path.starts_with("gathered")), "{of}: other bytes");
            // The same filter in its usual loops is the measure.
            let measure = open(file.into(), None).unwrap();
            for &key in present.iter().chain(&absent) {
                assert_eq!(filter.contains_digest(key), measure.contains_digest(key), "{of}");
            }
            assert!(present.iter().all(|&key| filter.contains_digest(key)), "{of}: a key is denied");
            let mut turn = 0;
            for length in lengths() {
                let batch = mixed(&present, &absent, length, &mut turn);
                let single: Vec<bool> = batch.iter().map(|&key| measure.contains_digest(key)).collect();
                // Behind other answers, and in memory that holds old ones.
                let mut hits = vec![true; 2 * length + 3];
                hits.truncate(3);
                filter.contains_batch(&batch, &mut hits);
                assert!(hits[..3] == [true; 3] && hits[3..] == single, "{of}, {length} keys");
                if let Some(count) = filter.as_count() {
                    let mut counts = vec![77];
                    count.count_batch(&batch, &mut counts);
                    let single = batch.iter().map(|&key| measure.as_count().unwrap().count_digest(key));
                    assert!(counts[1..].iter().copied().eq(single), "{of}, {length} counts");
                }
                if let Some(label) = filter.as_label() {
                    let mut labels = Vec::new();
                    label.label_batch(&batch, &mut labels);
                    let single = batch.iter().map(|&key| measure.as_label().unwrap().label_digest(key));
                    assert!(labels.into_iter().eq(single), "{of}, {length} labels");
                }
            }
        }
    }
}

/// Batches of all lengths with repeats within and between them, far beyond the first layer of those that grow; then, where
/// keys can be removed, removals in such batches.
#[test]
fn batches_of_any_length_insert_and_remove_as_their_keys_do() {
    let lengths: Vec<usize> = lengths().collect();
    let total: usize = lengths.iter().sum();
    for variant in variants(total as u64) {
        let Make::Empty(make) = variant.family.make else { continue };
        // Every eleventh key is a repeat.
        let numbers = (0..total as u64).map(|i| if i % 11 == 10 { i / 2 } else { i });
        let keys = variant.digests(numbers);
        let mut measure = make(&variant.areas(variant.spec)).unwrap();
        let outcomes: Vec<Insertion> = keys.iter().map(|&key| insert_one(&mut *measure, key)).collect();
        let inserted = file_of(&*measure);
        let mut removed = Vec::new();
        if let Some(remove) = measure.as_remove() {
            removed.extend(keys.iter().step_by(2).map(|&key| remove.remove_digest(key)));
        }
        let left = file_of(&*measure);
        for (path, paths) in paths::ALL.iter().copied() {
            let of = format!("{}, {path}", variant.name);
            let mut filter = make(&variant.areas(variant.on(paths))).unwrap();
            let (mut told, mut rest) = (Vec::new(), &keys[..]);
            for &length in &lengths {
                let (batch, later) = rest.split_at(length);
                rest = later;
                match filter.as_label_mut() {
                    // A batch has one area.
                    Some(label) => batch.chunk_by(|&one, &two| area(one) == area(two)).for_each(|keys| {
                        label.insert_labelled_batch(keys, area(keys[0]), &mut told).unwrap();
                    }),
                    None => filter.as_insert().unwrap().insert_batch(batch, &mut told).unwrap(),
                }
            }
            assert!(told == outcomes, "{of}: other outcomes");
            assert!(file_of(&*filter) == inserted, "{of}: other bytes");
            let Some(remove) = filter.as_remove() else { continue };
            let halved: Vec<Digest> = keys.iter().copied().step_by(2).collect();
            let (mut told, mut rest) = (Vec::new(), &halved[..]);
            for &length in lengths.iter().rev() {
                let (batch, later) = rest.split_at(length.min(rest.len()));
                rest = later;
                remove.remove_batch(batch, &mut told);
            }
            assert!(told == removed, "{of}: other removals");
            assert!(file_of(&*filter) == left, "{of}: other bytes after removals");
        }
    }
}

/// The methods of the types, which hash keys themselves and gather them by region.
macro_rules! many_equal_single {
    ($(#[$meta:meta])* $name:ident, $type:ty, $spec:expr, $many:expr, $one:expr) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            let keys: Vec<u64> = (0..30_000u64).map(|i| if i % 13 == 12 { i / 3 } else { i }).collect();
            let (one, many): (fn(&mut $type, u64), fn(&mut $type, &[u64])) = ($one, $many);
            let spec: Spec = $spec;
            let mut single = <$type>::from_spec(&spec).unwrap();
            keys.iter().for_each(|&key| one(&mut single, key));
            for (path, paths) in paths::ALL.iter().copied() {
                let mut filter = <$type>::from_spec(&with_paths(spec, paths)).unwrap();
                // Short calls, then ones that fill a filter several times over.
                let (short, long) = keys.split_at(20_100);
                let mut rest = short;
                for length in 0..=200 {
                    many(&mut filter, &rest[..length]);
                    rest = &rest[length..];
                }
                many(&mut filter, long);
                assert!(filter.to_bytes() == single.to_bytes(), "{path}: other bytes");
                let asked: Vec<u64> = (0..60_000).map(|i| i * 7 % 60_000).collect();
                for keys in [&asked[..], &asked[..1], &asked[..0], &asked[..77]] {
                    let mut hits = vec![true];
                    filter.contains_each(keys, &mut hits);
                    assert!(hits[1..].iter().copied().eq(keys.iter().map(|key| single.contains(key))), "{path}");
                }
                assert!(keys.iter().rev().take(10_000).all(|key| filter.contains(key)), "{path}: denied");
            }
        }
    };
}

many_equal_single!(
    many_keys_of_bloom,
    Bloom,
    Spec::sized(30_000, 0.01),
    |filter, keys| filter.insert_all(keys),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_a_bloom_that_overflows,
    Bloom,
    Spec::sized(900, 0.01),
    |filter, keys| filter.insert_all(keys),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_bloom_by_threads,
    Bloom,
    Spec::sized(30_000, 0.01),
    |filter, keys| filter.insert_all_parallel(keys, 3),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_a_small_bloom_by_threads,
    Bloom,
    Spec::sized(50, 0.1),
    |filter, keys| filter.insert_all_parallel(keys, 3),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_blocked,
    Blocked,
    Spec::sized(30_000, 0.01),
    |filter, keys| filter.insert_all(keys),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_blocked_by_threads,
    Blocked,
    Spec::sized(30_000, 0.01),
    |filter, keys| filter.insert_all_parallel(keys, 3),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_fastest_blocked_by_threads,
    Blocked,
    Spec::sized(30_000, 0.01).with_layout(Layout::Fastest),
    |filter, keys| filter.insert_all_parallel(keys, 3),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_counting,
    Counting,
    Spec::sized(30_000, 0.01),
    |filter, keys| filter.insert_all(keys),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_spectral,
    Spectral,
    Spec::sized(30_000, 0.01),
    |filter, keys| filter.insert_all(keys),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_dleft,
    Dleft,
    Spec::sized(30_000, 0.01),
    |filter, keys| filter.insert_all(keys).unwrap(),
    |filter, key| {
        filter.insert(key).unwrap();
    }
);
many_equal_single!(
    many_keys_of_cuckoo,
    Cuckoo,
    Spec::sized(30_000, 0.01),
    |filter, keys| filter.insert_all(keys).unwrap(),
    |filter, key| {
        filter.insert(key).unwrap();
    }
);
many_equal_single!(
    many_keys_of_scalable,
    Scalable,
    Spec::sized(30, 0.01),
    |filter, keys| filter.insert_all(keys).unwrap(),
    |filter, key| {
        filter.insert(key).unwrap();
    }
);
many_equal_single!(
    many_keys_of_windowed,
    Windowed,
    Spec::sized(15_000, 0.01),
    |filter, keys| filter.insert_all(keys),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_shifting,
    Shifting,
    Spec::sized(30_000, 0.01),
    |filter, keys| filter.insert_all(keys),
    |filter, key| {
        filter.insert(key);
    }
);
many_equal_single!(
    many_keys_of_expanding,
    Expanding,
    Spec::sized(30, 0.01),
    |filter, keys| filter.insert_all(keys).unwrap(),
    |filter, key| {
        filter.insert(key).unwrap();
    }
);
many_equal_single!(
    many_keys_of_expanding_made_at_once,
    Expanding,
    Spec::sized(40_000, 0.01),
    |filter, keys| filter.insert_all(keys).unwrap(),
    |filter, key| {
        filter.insert(key).unwrap();
    }
);
many_equal_single!(
    many_keys_of_table,
    Table,
    Spec::sized(30, 1e-6),
    |filter, keys| filter.insert_all(keys).unwrap(),
    |filter, key| {
        filter.insert(key).unwrap();
    }
);

/// F1: an answer of one layer stayed for whatever other key stood at its place when the next layer was asked.
#[test]
fn scalable_loses_no_key_when_several_layers_are_large() {
    for (path, paths) in paths::ALL.iter().copied() {
        let mut filter = Scalable::from_spec(&with_paths(Spec::sized(100, 0.01), paths)).unwrap();
        let (present, absent): (Vec<u64>, Vec<u64>) =
            ((0..20_000).collect(), (1 << 40..(1 << 40) + 20_000).collect());
        filter.insert_all(&present).unwrap();
        assert!(present.iter().all(|key| filter.contains(key)), "{path}: a key is denied");
        let mixed: Vec<u64> = present.iter().zip(&absent).flat_map(|(&one, &two)| [one, two]).collect();
        let mut hits = Vec::new();
        filter.contains_each(&mixed, &mut hits);
        assert!(hits.iter().step_by(2).all(|&hit| hit), "{path}: a key is denied in a batch");
        // Ten standard deviations above 200: 1 in 10^20.
        let wrong = hits.iter().skip(1).step_by(2).filter(|&&hit| hit).count();
        assert!(wrong < 342, "{path}: {wrong} of 20,000 absent keys are admitted");
        filter.insert_all(&mixed).unwrap();
        assert!(mixed.iter().all(|key| filter.contains(key)), "{path}: a key that was just added is denied");
    }
}

/// Filters under construction by several threads, on every path: the bytes of one thread.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
fn threads_that_share_a_filter_lose_no_key() {
    for variant in variants(9000) {
        let Some(shared) = variant.family.shared else { continue };
        let keys = variant.digests(0..9000);
        let usual = filled(&variant, Paths::default(), &keys);
        for (path, paths) in paths::ALL.iter().copied() {
            let of = format!("{}, {path}", variant.name);
            let filter = shared(&variant.on(paths)).unwrap();
            std::thread::scope(|scope| {
                for part in keys.chunks(3001) {
                    let filter = &filter;
                    scope.spawn(move || part.chunks(700).for_each(|keys| filter.insert_batch(keys)));
                }
            });
            assert!(file_of(&*filter.finish()) == file_of(&*usual), "{of}: other bytes");
        }
    }
}

/// The same for the filters that are shared by their users.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
fn threads_that_share_an_atomic_filter_lose_no_key() {
    let keys: Vec<u64> = (0..9000).collect();
    let digests: Vec<Digest> = keys.iter().map(|&key| digest(Hashing::default(), key)).collect();
    for (path, paths) in paths::ALL.iter().copied() {
        let spec = with_paths(Spec::sized(9000, 0.01), paths);
        let (bloom, blocked) =
            (AtomicBloom::from_spec(&spec).unwrap(), AtomicBlocked::from_spec(&spec).unwrap());
        std::thread::scope(|scope| {
            for part in digests.chunks(2500) {
                let (bloom, blocked) = (&bloom, &blocked);
                scope.spawn(move || {
                    part.chunks(333).for_each(|keys| {
                        bloom.insert_digests(keys);
                        SharedInsert::insert_batch(blocked, keys);
                    })
                });
            }
        });
        let (mut one, mut two) = (Bloom::from_spec(&spec).unwrap(), Blocked::from_spec(&spec).unwrap());
        keys.iter().for_each(|&key| {
            one.insert(key);
            two.insert(key);
        });
        assert!(keys.iter().all(|key| bloom.contains(key) && blocked.contains(key)), "{path}");
        assert!(bloom.into_bloom() == one && blocked.into_blocked() == two, "{path}: other bits");
    }
}

/// As many shards and threads as one likes: every key is in, and the number of threads changes no byte.
#[test]
fn static_filters_of_any_number_of_shards_hold_their_keys() {
    let keys: Vec<u64> = (0..20_000).collect();
    let asked: Vec<u64> = (0..40_000).map(|i| i * 7 % 40_000).collect();
    for (path, paths) in paths::ALL.iter().copied() {
        for fpr in [0.01, 1.0 / 256.0, 1e-5] {
            for layout in Layout::ALL {
                let spec = with_paths(Spec::new().with_fpr(fpr).with_layout(layout), paths);
                let of = format!("{path}, {fpr}, {}", layout.name());
                let (fuse, ribbon) = (
                    Fuse::build_with(&keys, &spec, 1).unwrap(),
                    Ribbon::build_with(&keys, &spec, 1).unwrap(),
                );
                for threads in [2, 5] {
                    assert!(
                        Fuse::build_with(&keys, &spec, threads).unwrap().to_bytes() == fuse.to_bytes(),
                        "{of}"
                    );
                    assert!(
                        Ribbon::build_with(&keys, &spec, threads).unwrap().to_bytes() == ribbon.to_bytes(),
                        "{of}"
                    );
                }
                let (mut of_fuse, mut of_ribbon) = (Vec::new(), Vec::new());
                fuse.contains_each(&asked, &mut of_fuse);
                ribbon.contains_each(&asked, &mut of_ribbon);
                for (i, key) in asked.iter().enumerate() {
                    assert_eq!(
                        (of_fuse[i], of_ribbon[i]),
                        (fuse.contains(key), ribbon.contains(key)),
                        "{of}"
                    );
                    assert!(*key >= 20_000 || (of_fuse[i] && of_ribbon[i]), "{of}: {key} is denied");
                }
            }
        }
    }
}

/// A source that has more shards prepared than are asked for.
#[test]
fn prepared_shards_are_joined() {
    let halves: Vec<u64> = (0..5000).map(|key| digest(Hashing::default(), key).a).collect();
    let spec = with_paths(Spec::sized(5000, 0.01), paths::GATHERED);
    let mut prepared = MemoryShards::new(5);
    prepared.extend(halves.iter().copied());
    assert!(Fuse::from_shards(&spec, &prepared, 2).unwrap() == Fuse::from_shards(&spec, &halves, 1).unwrap());
}

/// A fold that looks at a sample first finds the factor that one finds without.
#[test]
fn a_fold_by_a_sample_is_a_fold() {
    let spec = Spec::sized(400_000, 0.01).foldable();
    let fold = |&(_, paths): &(&str, Paths)| {
        let mut filter = Bloom::from_spec(&with_paths(spec, paths)).unwrap();
        filter.insert_all(&(0..5000u64).collect::<Vec<_>>());
        filter.fold_to(0.02).unwrap()
    };
    let folded: Vec<Bloom> = paths::ALL.iter().map(fold).collect();
    assert!(folded[0].bits() < 100_000);
    assert!(folded.iter().all(|filter| *filter == folded[0] && (0..5000u64).all(|key| filter.contains(key))));
}
