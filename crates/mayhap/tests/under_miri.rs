//! Every family with a hundred keys, small enough for Miri, which watches each access to memory: the portable loops, the
//! allocator, filters that threads share. `cargo xtask miri` runs it so; here it runs with the other tests too.

#[path = "it/paths.rs"]
#[allow(dead_code, reason = "the other binary uses the rest")]
mod paths;

use std::num::NonZeroU16;

use mayhap::internals::{Paths, with_paths};
use mayhap::{
    AnyFilter, AtomicBlocked, AtomicBloom, Blocked, Bloom, Digest, FAMILIES, Family, Fuse, Hashing, Layout,
    Make, Ribbon, SharedInsert, Spec, Summing, encode, open,
};

const KEYS: u64 = 100;

fn digests(hashing: Hashing, from: u64) -> Vec<Digest> {
    (from..from + KEYS).map(|key| hashing.digest_of(key)).collect()
}

fn filled(family: &Family, paths: Paths) -> Box<dyn AnyFilter> {
    // Those that grow do so.
    let capacity = if family.can.grows { 20 } else { KEYS };
    let spec = with_paths(Spec::sized(capacity, 0.02), paths);
    let halves = |from| digests(spec.hashing(), from).iter().map(|digest| digest.a).collect::<Vec<u64>>();
    match family.make {
        Make::Empty(make) => {
            let mut filter = make(&if family.can.labels { spec.with_areas(3) } else { spec }).unwrap();
            let keys = digests(filter.hashing(), 0);
            let (first, rest) = keys.split_at(33);
            for keys in [first, rest] {
                let mut outcomes = Vec::new();
                match filter.as_label_mut() {
                    Some(label) => label.insert_labelled_batch(keys, NonZeroU16::MIN, &mut outcomes).unwrap(),
                    None => filter.as_insert().unwrap().insert_batch(keys, &mut outcomes).unwrap(),
                }
            }
            filter
        }
        Make::Counted(make) => {
            make(&spec, &mut digests(spec.hashing(), 0).into_iter().map(|key| (key, 2))).unwrap()
        }
        Make::OfTwo(make) => {
            make(&spec, &digests(spec.hashing(), 0)[..60], &digests(spec.hashing(), 0)[40..]).unwrap()
        }
        Make::FromDigests(make) => make(&spec, &halves(0), 2).unwrap(),
        Make::Within(make) => make(&spec, &halves(0), &halves(1 << 40), 2).unwrap(),
        _ => panic!("{}: another way to be made", family.name),
    }
}

/// Batches and single keys, a file and back, a merge, removals.
fn use_it(family: &Family, paths: Paths) {
    let mut filter = filled(family, paths);
    let (present, absent) = (digests(filter.hashing(), 0), digests(filter.hashing(), 1 << 20));
    let mixed: Vec<Digest> = present.iter().zip(&absent).flat_map(|(&one, &two)| [one, two]).collect();
    for length in [0, 1, 32, 33, mixed.len()] {
        let mut hits = Vec::new();
        filter.contains_batch(&mixed[..length], &mut hits);
        assert!(hits.iter().step_by(2).all(|&hit| hit), "{}", family.name);
        assert!(hits.iter().zip(&mixed).all(|(&hit, &key)| filter.contains_digest(key) == hit));
    }
    let file = encode(&*filter, Summing::Payload).to_vec();
    let again = open(file.clone().into(), None).unwrap();
    assert!(present.iter().all(|&key| again.contains_digest(key)));
    if let Some(merge) = filter.as_merge() {
        // Into itself: everything is in already, or there are two of each.
        let _ = merge.merge_from(&*again);
    }
    if let Some(remove) = filter.as_remove() {
        let mut removed = Vec::new();
        remove.remove_batch(&present[..40], &mut removed);
    }
    assert!(present[40..].iter().all(|&key| filter.contains_digest(key)), "{}", family.name);
}

#[test]
fn every_family_keeps_to_its_memory() {
    for family in FAMILIES {
        for paths in [paths::PORTABLE, paths::GATHERED_PORTABLE] {
            use_it(family, paths);
        }
    }
}

#[test]
fn threads_that_share_a_filter_keep_to_its_memory() {
    for family in FAMILIES {
        let Some(shared) = family.shared else { continue };
        for paths in [paths::PORTABLE, paths::GATHERED_PORTABLE] {
            let filter = shared(&with_paths(Spec::sized(KEYS, 0.02), paths)).unwrap();
            let keys = digests(filter.hashing(), 0);
            std::thread::scope(|scope| {
                let filter = &filter;
                keys.chunks(40).for_each(|keys| {
                    scope.spawn(move || filter.insert_batch(keys));
                });
            });
            let filter = filter.finish();
            assert!(keys.iter().all(|&key| filter.contains_digest(key)), "{}", family.name);
        }
    }
}

#[test]
fn atomic_filters_keep_to_their_memory() {
    let spec = with_paths(Spec::sized(KEYS, 0.02), paths::GATHERED_PORTABLE);
    let (bloom, blocked) = (AtomicBloom::from_spec(&spec).unwrap(), AtomicBlocked::from_spec(&spec).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (bloom, blocked) = (&bloom, &blocked);
            scope.spawn(move || {
                let keys = digests(Hashing::default(), thread * KEYS / 2);
                bloom.insert_digests(&keys);
                SharedInsert::insert_batch(blocked, &keys);
                // Both write and read what the other writes.
                (0..KEYS).for_each(|key| {
                    bloom.insert(key);
                    blocked.insert(key);
                    assert!(bloom.contains(key) && blocked.contains(key));
                });
            });
        }
    });
    let (bloom, blocked) = (bloom.into_bloom(), blocked.into_blocked());
    assert!((0..KEYS).all(|key| bloom.contains(key) && blocked.contains(key)));
}

#[test]
fn threads_that_fill_or_build_a_filter_keep_to_its_memory() {
    let keys: Vec<u64> = (0..3 * KEYS).collect();
    let spec = with_paths(Spec::sized(3 * KEYS, 0.02), paths::GATHERED_PORTABLE);
    let (mut bloom, mut blocked) = (Bloom::from_spec(&spec).unwrap(), Blocked::from_spec(&spec).unwrap());
    bloom.insert_all_parallel(&keys, 3);
    blocked.insert_all_parallel(&keys, 3);
    let built = spec.with_layout(Layout::Compact);
    let (fuse, ribbon) =
        (Fuse::build_with(&keys, &built, 2).unwrap(), Ribbon::build_with(&keys, &built, 2).unwrap());
    for key in &keys {
        assert!(bloom.contains(key) && blocked.contains(key) && fuse.contains(key) && ribbon.contains(key));
    }
}
