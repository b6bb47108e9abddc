//! Bumped ribbon filters: they are found for every number of keys, hold all of them, take hardly more than they must and err
//! as often as they say.

use mayhap::shards::{DigestShards, MemoryShards};
use mayhap::{BuildError, Error, Hashing, Knob, Layout, Ribbon, Secret, Spec, SpecError};
use mayhap_eval::Proportion;

use crate::crafted;

fn keys(count: u64, seed: u64) -> Vec<u64> {
    (0..count).map(|i| (i ^ seed << 40).wrapping_mul(0xD6E8_FEB8_6659_FD93)).collect()
}

fn built(keys: &[u64], fpr: f64, layout: Layout) -> Ribbon {
    Ribbon::build_with(keys, &Spec::new().with_fpr(fpr).with_layout(layout), 1).unwrap()
}

fn holds_all(ribbon: &Ribbon, keys: &[u64]) -> bool {
    let mut hits = Vec::new();
    ribbon.contains_each(keys, &mut hits);
    hits.len() == keys.len()
        && hits.iter().all(|&hit| hit)
        && keys.iter().step_by(97).all(|&key| ribbon.contains(key))
}

fn admitted(ribbon: &Ribbon, count: u64) -> Proportion {
    let absent: Vec<u64> = (0..count).map(|i| (i | 1 << 50).wrapping_mul(0xD6E8_FEB8_6659_FD93)).collect();
    let mut hits = Vec::new();
    ribbon.contains_each(&absent, &mut hits);
    Proportion { hits: hits.iter().filter(|&&hit| hit).count() as u64, trials: count }
}

#[test]
fn every_small_number_of_keys_gives_a_filter() {
    let all = keys(20_000, 7);
    for n in (0..400).chain((400..20_000).step_by(197)).chain(1_990..2_010) {
        let keys = &all[..n];
        let layout = if n % 2 == 0 { Layout::Fastest } else { Layout::Compact };
        let ribbon = built(keys, 0.01, layout);
        assert!(holds_all(&ribbon, keys), "{n} keys");
        assert_eq!(ribbon.keys(), n as u64);
        assert!(n > 0 || !ribbon.contains(1u64));
    }
}

#[test]
#[ignore = "twenty thousand builds of each kind"]
fn every_number_of_keys_up_to_twenty_thousand_gives_a_filter() {
    let all = keys(20_000, 3);
    for n in 0..20_000 {
        for layout in Layout::ALL {
            assert!(holds_all(&built(&all[..n], 0.01, layout), &all[..n]), "{n} keys");
        }
    }
}

#[test]
fn every_length_of_fingerprints_is_held() {
    // With more of them equal half digests would add to a rate of 2^-32.
    let keys = keys(4000, 5);
    for columns in 1..=32 {
        for (layout, part) in [(Layout::Fastest, 1.0), (Layout::Compact, 0.7)] {
            let ribbon = built(&keys, 2f64.powi(-columns) * if columns == 32 { 1.0 } else { part }, layout);
            assert!(holds_all(&ribbon, &keys), "{columns} columns");
            assert!((f64::from(columns)..f64::from(columns) + 1.0).contains(&ribbon.fingerprint_bits()));
        }
    }
}

#[test]
fn repeats_do_no_harm_and_change_nothing() {
    let once = keys(5000, 1);
    let mut often = once.clone();
    often.extend_from_slice(&once[..2500]);
    often.extend(std::iter::repeat_n(once[7], 1000));
    often.reverse();
    for layout in Layout::ALL {
        let (plain, repeated) = (built(&once, 0.01, layout), built(&often, 0.01, layout));
        assert_eq!(repeated.keys(), 5000);
        assert!(plain == repeated);
    }
}

/// 3.5 million keys are two shards.
#[test]
fn shards_and_threads_give_the_same_bytes() {
    let keys = keys(3_500_000, 2);
    let spec = Spec::new().with_fpr(0.01);
    let alone = Ribbon::build_with(&keys, &spec, 1).unwrap();
    assert!(holds_all(&alone, &keys));
    let bytes = alone.to_bytes();
    for threads in [2, 8] {
        assert!(Ribbon::build_with(&keys, &spec, threads).unwrap().to_bytes() == bytes, "{threads} threads");
    }
    let backwards: Vec<u64> = keys.iter().rev().copied().collect();
    assert!(Ribbon::build_with(&backwards, &spec, 2).unwrap().to_bytes() == bytes);
}

/// Shards as many as there may be, few keys in each, none in some.
#[test]
fn shards_of_few_keys_and_of_none_are_held() {
    /// Claims many keys, so that there are many shards.
    struct Sparse(MemoryShards);

    impl DigestShards for Sparse {
        fn len(&self) -> u64 {
            1_600_000 * 256
        }

        fn take(&self, shard: u64, bits: u32, halves: &mut Vec<u64>) -> Result<(), BuildError> {
            self.0.take(shard, bits, halves)
        }
    }

    let (keys, hashing) = (keys(700, 4), Hashing::default());
    let shards = Sparse(MemoryShards::hashed(&keys, hashing, 8, 1));
    let spec = Spec::sized(700, 1e-4).with_layout(Layout::Compact);
    let ribbon = Ribbon::from_shards(&spec, &shards, 2).unwrap();
    assert!(holds_all(&ribbon, &keys));
    let again = Ribbon::from_bytes(&ribbon.to_bytes()).unwrap();
    assert!(again == ribbon && holds_all(&again, &keys));
    let measured = admitted(&ribbon, 1_000_000);
    assert!(measured.hits < 200, "{measured:?}");
}

#[test]
fn a_keyed_filter_opens_with_its_secret_only() {
    let secret = Secret::new([7; 16]);
    let spec = Spec::new().with_fpr(0.01).with_hashing(Hashing::Keyed(secret));
    let ribbon = Ribbon::build_with(&["a", "b"], &spec, 1).unwrap();
    let bytes = ribbon.to_bytes();
    assert!(Ribbon::from_bytes(&bytes).is_err());
    assert!(Ribbon::from_bytes_keyed(&bytes, &Secret::new([8; 16])).is_err());
    assert!(Ribbon::from_bytes_keyed(&bytes, &secret).unwrap().contains("b"));
}

#[test]
fn what_cannot_be_is_refused_with_the_way_out() {
    let refused = |spec: Spec| match Ribbon::build_with(&[1u64], &spec, 1) {
        Err(BuildError::Spec(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(Spec::new().with_fpr(1e-11)), SpecError::FprBelow { .. }));
    assert!(matches!(refused(Spec::new()), SpecError::Incomplete));
    assert!(matches!(
        refused(Spec::new().with_fpr(0.1).with_probes(3)),
        SpecError::NotFor { knob: Knob::Probes, .. }
    ));
    let error =
        Ribbon::build_with(&keys(1000, 0), &Spec::new().with_fpr(0.01).with_bits(5000), 1).unwrap_err();
    assert!(matches!(error, BuildError::Spec(SpecError::Unreachable { bits: 5000, .. })), "{error}");
    let _: Error = error.into();
    // As many columns as the bits allow.
    let ribbon = Ribbon::build_with(&keys(100_000, 0), &Spec::new().with_bits(1_000_000), 1).unwrap();
    assert!((0.985..1.003).contains(&(ribbon.bits() as f64 / 1e6)), "{}", ribbon.bits());
    assert!((9.8..10.0).contains(&ribbon.fingerprint_bits()));
}

/// The last slots of a layer are nobody's start: blocks with one column more are counted by those who start there. A right
/// filter fails with a chance of 6e-7 each.
#[test]
fn few_keys_keep_their_rate() {
    for (n, fpr) in
        [(1, 0.3), (100, 0.012), (100, 0.75), (150, 0.04), (2100, 0.75), (4000, 0.75), (4000, 0.006)]
    {
        for layout in Layout::ALL {
            let ribbon = built(&keys(n, 11), fpr, layout);
            let measured = admitted(&ribbon, 1_000_000);
            assert!(ribbon.fpr() <= fpr * (1.0 + 1e-6), "{n} keys at {fpr}: {}", ribbon.fpr());
            // How many are bumped, which weighs the layers, is known on average.
            assert!(
                measured.agrees_with(ribbon.fpr(), 0.01, 5.0),
                "{n} keys at {fpr}, {layout:?}: {measured:?}"
            );
        }
    }
}

/// Without columns blocks take no words, and a directory could claim any number of them.
#[test]
fn a_crafted_file_without_columns_is_refused() {
    let file = built(&keys(300, 0), 0.01, Layout::Fastest).to_bytes();
    let crafted = crafted::with(&file, 104, &[0; 8]);
    assert!(Ribbon::from_bytes(&crafted).is_err());
    for shard_bits in [0u32, 15] {
        let mut payload = vec![0u8; 8];
        for _ in 0..1u64 << shard_bits {
            for word in [1, 7, 1 << 42, 0, 0, 0, 0, 0, 0, 0, 0u64] {
                payload.extend(word.to_le_bytes());
            }
        }
        for more in [0u32, 1] {
            let crafted = crafted::with(&file, 104, &[0; 4]);
            let crafted = crafted::with(&crafted, 108, &more.to_le_bytes());
            let crafted = crafted::with(&crafted, 116, &shard_bits.to_le_bytes());
            assert!(Ribbon::from_bytes(&crafted::with_payload(&crafted, &payload)).is_err());
        }
    }
}
