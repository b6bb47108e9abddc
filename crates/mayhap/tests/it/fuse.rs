//! Binary fuse filters: they are found for every number of keys, hold all of them, and err as often as they say.

use mayhap::shards::{DigestShards, MemoryShards, shard_of};
use mayhap::{AnyFilter, BuildError, Error, Fuse, Hashing, Layout, Secret, Spec, SpecError};
use mayhap_eval::Proportion;

fn asked(width: u32, layout: Layout) -> Spec {
    Spec::new().with_fpr(2f64.powi(-(width as i32))).with_layout(layout)
}

fn keys(count: u64, seed: u64) -> Vec<u64> {
    (0..count).map(|i| (i ^ seed << 40).wrapping_mul(0xD6E8_FEB8_6659_FD93)).collect()
}

fn built(keys: &[u64], width: u32, layout: Layout) -> Fuse {
    Fuse::build_with(keys, &asked(width, layout), 1).unwrap()
}

fn holds_all(fuse: &Fuse, keys: &[u64]) -> bool {
    let mut hits = Vec::new();
    fuse.contains_each(keys, &mut hits);
    hits.len() == keys.len() && hits.iter().all(|&hit| hit)
}

/// A number that no seed of [`keys`] gives.
fn absent(i: u64) -> u64 {
    (i | 1 << 50).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

fn admitted(fuse: &Fuse, count: u64) -> Proportion {
    let absent: Vec<u64> = (0..count).map(absent).collect();
    let mut hits = Vec::new();
    fuse.contains_each(&absent, &mut hits);
    Proportion { hits: hits.iter().filter(|&&hit| hit).count() as u64, trials: count }
}

/// Peers fail near 11,500 keys one time in three.
#[test]
fn every_small_number_of_keys_gives_a_filter() {
    let all = keys(20_000, 7);
    let numbers = (0..400).chain((400..20_000).step_by(97)).chain(11_400..11_500);
    for n in numbers {
        let keys = &all[..n];
        let layout = if n % 2 == 0 { Layout::Fastest } else { Layout::Compact };
        let fuse = built(keys, 8, layout);
        assert!(holds_all(&fuse, keys), "{n} keys");
        assert_eq!(fuse.keys(), n as u64);
        assert!(n > 0 || !fuse.contains(1u64));
    }
}

#[test]
fn a_static_filter_without_keys_has_rate_zero_and_counts_its_keys_as_inserted() {
    let spec = Spec::new().with_fpr(0.01);
    for layout in Layout::ALL {
        let empty = Fuse::build_with::<u64>(&[], &spec.with_layout(layout), 1).unwrap();
        let ribbon = mayhap::Ribbon::build_with::<u64>(&[], &spec.with_layout(layout), 1).unwrap();
        assert_eq!((empty.fpr(), empty.report().fpr_now, ribbon.fpr()), (0.0, 0.0, 0.0));
    }
    let fuse = Fuse::build_with(&["a", "b", "a"], &spec, 1).unwrap();
    assert_eq!((fuse.keys(), fuse.inserted(), fuse.capacity(), fuse.estimated_len()), (2, Some(2), 2, 2.0));
    assert!(fuse == Fuse::from_bytes(&fuse.to_bytes()).unwrap());
}

#[test]
#[ignore = "twenty thousand builds of each kind"]
fn every_number_of_keys_up_to_twenty_thousand_gives_a_filter() {
    let all = keys(20_000, 3);
    for n in 0..20_000 {
        for layout in Layout::ALL {
            assert!(holds_all(&built(&all[..n], 8, layout), &all[..n]), "{n} keys");
        }
    }
}

/// Where segments become longer, or the factor ends to fall.
#[test]
fn edges_of_the_sizes_give_filters_with_many_seeds() {
    let log = |n: u64, ways: u32| mayhap::math::fuse_segments(n, ways).0;
    for (ways, layout) in [(3, Layout::Fastest), (4, Layout::Compact)] {
        let edges: Vec<u64> = (2..2_000_000).filter(|&n| log(n, ways) != log(n - 1, ways)).collect();
        assert!(edges.len() > 8, "{edges:?}");
        for edge in edges {
            for seed in 0..if edge < 20_000 { 8 } else { 2 } {
                for n in [edge - 1, edge, edge + 1] {
                    let keys = keys(n, seed);
                    assert!(holds_all(&built(&keys, 8, layout), &keys), "{n} keys");
                }
            }
        }
    }
}

#[test]
fn repeats_do_no_harm_and_change_nothing() {
    let once = keys(5000, 1);
    for layout in Layout::ALL {
        let fuse = built(&once, 8, layout);
        let mut often: Vec<u64> = once.iter().chain(&once[..100]).copied().collect();
        assert_eq!(built(&often, 8, layout), fuse);
        // One of them a thousand times, and all in another order.
        often.extend([once[17]; 1000]);
        often.reverse();
        let again = built(&often, 8, layout);
        assert_eq!(again, fuse);
        assert_eq!((again.keys(), again.to_bytes()), (5000, fuse.to_bytes()));
    }
    let same = built(&[9; 100_000], 8, Layout::Fastest);
    assert_eq!(same.keys(), 1);
    assert!(same.contains(9u64) && same.size_in_bytes() < 1000);
}

#[test]
fn fingerprints_have_4_to_32_bits() {
    let keys = keys(3000, 2);
    for width in 4..=32 {
        for layout in Layout::ALL {
            let fuse = built(&keys, width, layout);
            assert_eq!((fuse.fingerprint_bits(), fuse.layout()), (width, layout));
            assert!(holds_all(&fuse, &keys) && keys.iter().all(|&key| fuse.contains(key)));
            let again = Fuse::from_bytes(&fuse.to_bytes()).unwrap();
            assert!(again == fuse && holds_all(&again, &keys));
            // With so few questions only a gross error shows: five deviations.
            let (measured, rate) = (admitted(&fuse, 50_000), 2f64.powi(-(width as i32)));
            assert!(measured.agrees_with(rate, 0.0, 5.0), "{width} bits: {measured:?}");
            let single = |i: u64| fuse.contains(absent(i));
            assert_eq!((0..50_000).filter(|&i| single(i)).count() as u64, measured.hits);
        }
    }
}

/// In four shards: the threads do not show, and the shards hold what they should.
#[test]
fn threads_do_not_change_the_filter() {
    let keys = keys(6_500_000, 5);
    let build = |threads| Fuse::build_with(&keys, &asked(8, Layout::Fastest), threads).unwrap();
    let one = build(1);
    assert!(holds_all(&one, &keys[..1_000_000]) && one.keys() == 6_500_000);
    assert!(one.bits() as f64 / 6.5e6 < 9.05, "{}", one.bits());
    let two = build(2);
    assert!(one == two && one.to_bytes() == two.to_bytes());
    let measured = admitted(&one, 1_000_000);
    assert!(measured.agrees_with(1.0 / 256.0, 0.0, 5.0), "{measured:?}");
}

#[test]
fn shards_are_handed_over_once_and_whole() {
    let keys = keys(10_000, 4);
    let hashing = Hashing::default();
    let shards = MemoryShards::hashed(&keys, hashing, 3, 2);
    let halves: Vec<u64> = keys.iter().map(|&key| hashing.digest(&key.to_le_bytes()).a).collect();
    assert_eq!(DigestShards::len(&shards), 10_000);
    for bits in [1, 3] {
        let shards = MemoryShards::hashed(&keys, hashing, 3, 2);
        for shard in 0..1 << bits {
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            shards.take(shard, bits, &mut found).unwrap();
            halves.take(shard, bits, &mut expected).unwrap();
            found.sort_unstable();
            expected.sort_unstable();
            assert!(found == expected && found.iter().all(|&half| shard_of(half, bits) == shard));
        }
    }
}

struct Broken;

impl DigestShards for Broken {
    fn len(&self) -> u64 {
        10_000_000
    }

    fn take(&self, shard: u64, _: u32, halves: &mut Vec<u64>) -> Result<(), BuildError> {
        halves.extend([shard << 62, shard << 62 | 1]);
        if shard == 2 { Err(BuildError::Source { problem: "disk gone".into() }) } else { Ok(()) }
    }
}

#[test]
fn a_source_that_fails_is_an_error() {
    for threads in [1, 2] {
        let spec = Spec::sized(10_000_000, 0.01);
        let error = Fuse::from_shards(&spec, &Broken, threads).unwrap_err();
        assert_eq!(error.to_string(), "the keys cannot be read: disk gone");
    }
}

#[test]
fn what_cannot_be_had_is_refused_with_the_way_out() {
    let refused = |spec: Spec| Fuse::build_with(&[1u64, 2], &spec, 1).unwrap_err().to_string();
    assert!(refused(Spec::new()).contains("too little"));
    assert!(refused(Spec::new().with_fpr(1e-12)).contains("in this family, not 1e-12"));
    assert!(refused(Spec::new().with_fpr(0.01).with_probes(3)).contains("fuse takes no probes; bloom"));
    assert!(
        refused(Spec::new().with_fpr(0.01).with_counter_bits(4))
            .contains("fuse takes no counter bits; counting")
    );
    assert!(refused(Spec::new().with_fpr(0.01).with_bits(3)).contains("it takes"));
    assert!(Fuse::build(&["x"], 0.0).is_err());
    // By bits: as long fingerprints as they allow.
    let keys = keys(100_000, 6);
    let by_bits = Fuse::build_with(&keys, &Spec::new().with_bits(1_200_000), 1).unwrap();
    assert_eq!((by_bits.fingerprint_bits(), by_bits.bits() <= 1_200_000), (10, true));
    let unsolved = BuildError::Unsolved { keys: 5, tries: 64 };
    assert!(Error::from(unsolved).to_string().contains("hash with another seed"));
    assert_eq!(
        Error::from(BuildError::from(SpecError::Incomplete)).to_string(),
        SpecError::Incomplete.to_string()
    );
}

#[test]
fn keyed_filters_need_their_secret() {
    let secret = Secret::new(*b"0123456789abcdef");
    let spec = asked(8, Layout::Fastest).with_hashing(Hashing::Keyed(secret));
    let keys = keys(2000, 8);
    let fuse = Fuse::build_with(&keys, &spec, 1).unwrap();
    let bytes = fuse.to_bytes();
    assert!(Fuse::from_bytes(&bytes).unwrap_err().to_string().contains("secret"));
    assert!(holds_all(&Fuse::from_bytes_keyed(&bytes, &secret).unwrap(), &keys));
    assert_eq!(fuse.hashing(), Hashing::Keyed(secret));
}

/// As STA-1, with 16 shards.
#[test]
#[ignore = "slow: 26 million keys in 16 shards"]
fn sixteen_shards_hold_what_one_filter_holds() {
    let keys = keys(26_000_000, 9);
    let build = |threads| Fuse::build_with(&keys, &asked(8, Layout::Fastest), threads).unwrap();
    assert_eq!(mayhap::math::shard_bits(26_000_000), 4);
    let one = build(1);
    assert!(holds_all(&one, &keys) && one.keys() == 26_000_000);
    for threads in [2, 8] {
        assert!(build(threads).to_bytes() == one.to_bytes(), "{threads} threads");
    }
    let measured = admitted(&one, 1_000_000);
    assert!(measured.agrees_with(1.0 / 256.0, 0.0, 5.0), "{measured:?}");
}
