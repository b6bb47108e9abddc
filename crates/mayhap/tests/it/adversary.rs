//! Opponents who choose their keys, and what stands in their way. `docs/hostile.md` has the rules.
//!
//! All randomness has a fixed seed, so a test that passes once passes always; the bounds say how probable a failure was
//! when the seeds were chosen.

use std::collections::HashSet;

use mayhap::{
    AnyFilter, Blocked, Bloom, Cuckoo, DecodeError, Digest, Hashing, Limit, Scalable, Secret, Spec, except,
    math, open, positions,
};
use mayhap_eval::Random;

use crate::crafted;

/// Secrets as an operating system would give them, but the same in every run.
fn secrets(count: usize) -> impl Iterator<Item = Secret> {
    let mut random = Random::new(15);
    let mut bytes = [0; 16];
    (0..count).map(move |_| {
        bytes[..8].copy_from_slice(&random.next_u64().to_le_bytes());
        bytes[8..].copy_from_slice(&random.next_u64().to_le_bytes());
        Secret::new(bytes)
    })
}

fn of_keys(spec: Spec, keys: impl Iterator<Item = u64>) -> Bloom {
    let mut bloom = Bloom::from_spec(&spec).unwrap();
    for key in keys {
        bloom.insert(key);
    }
    bloom
}

/// Keys whose positions are all fresh, as an opponent with the hash chooses them.
fn polluting(count: usize, bits: u64, probes: u32, hashing: Hashing) -> Vec<u64> {
    let mut set = vec![false; bits as usize];
    let mut keys = Vec::with_capacity(count);
    for key in 0u64.. {
        let digest = hashing.digest_of(key);
        let all: Vec<u64> = positions(digest, probes, bits).take_while(|&bit| !set[bit as usize]).collect();
        if all.len() == probes as usize && all.iter().collect::<HashSet<_>>().len() == all.len() {
            all.iter().for_each(|&bit| set[bit as usize] = true);
            keys.push(key);
            if keys.len() == count {
                break;
            }
        }
    }
    keys
}

/// Rule 3: the alarm. Chosen keys, as in ADV-2, fill a filter six standard deviations above what as many random keys do; under a
/// secret they do not.
#[test]
fn rule_3_chosen_keys_raise_the_alarm() {
    const MEMBERS: usize = 1_000;
    const BITS: u64 = 9_585;
    let spec = Spec::new().with_capacity(MEMBERS as u64).with_bits(BITS).with_probes(7);
    let chosen = polluting(MEMBERS, BITS, 7, Hashing::default());
    let keyed = spec.with_hashing(Hashing::Keyed(secrets(1).next().unwrap()));
    let polluted = of_keys(spec, chosen.iter().copied());
    let honest = of_keys(spec, 1 << 50..(1 << 50) + MEMBERS as u64);
    let keyed = of_keys(keyed, chosen.iter().copied());
    let alarms = |bloom: &Bloom| {
        let (keys, report) = (bloom.inserted().unwrap() as f64, bloom.report());
        let expected = math::expected_fill(bloom.bits(), keys, bloom.probes());
        report.fill > expected + 6.0 * math::fill_deviation(bloom.bits(), keys, bloom.probes())
    };
    assert_eq!([&polluted, &honest, &keyed].map(alarms), [true, false, false]);
}

/// Rule 1: the secret is not in the file, nor in anything that is printed.
#[test]
fn rule_1_a_secret_is_neither_written_nor_shown() {
    let bytes: [u8; 16] = std::array::from_fn(|index| 0xa0 + index as u8);
    let secret = Secret::new(bytes);
    let bloom = of_keys(Spec::sized(100, 0.01).with_hashing(Hashing::Keyed(secret)), 0..100);
    let file = bloom.to_bytes();
    let backwards: Vec<u8> = bytes.iter().rev().copied().collect();
    for part in [&bytes[..8], &bytes[8..], &backwards[..8], &backwards[8..]] {
        assert!(!file.windows(8).any(|window| window == part));
    }
    let wrong = open(file.clone().into(), Some(&Secret::new([1; 16]))).err().unwrap();
    let missing = open(file.into(), None).err().unwrap();
    let texts = [
        format!("{secret:?}"),
        format!("{:?}", Hashing::Keyed(secret)),
        format!("{bloom:?}"),
        format!("{:?}", Spec::sized(1, 0.1).with_hashing(Hashing::Keyed(secret))),
        format!("{wrong:?} {wrong} {missing:?} {missing}"),
    ];
    for text in texts {
        let text = text.to_lowercase();
        for shown in ["a0a1a2", "a0, a1", "0xa0", "160, 161", "a7a6a5"] {
            assert!(!text.contains(shown), "{text}");
        }
    }
    assert!(matches!(missing, DecodeError::SecretNeeded { key_id } if key_id == secret.id()));
}

/// Rule 2: a filter that is full says so and takes no more, where its family has an end.
#[test]
fn rule_2_a_full_filter_takes_no_more_keys() {
    let mut scalable = Scalable::from_spec(&Spec::sized(1000, 0.01).with_growth(0)).unwrap();
    let mut taken = 0;
    let full = loop {
        match scalable.insert(taken) {
            Ok(_) => taken += 1,
            Err(full) => break full,
        }
    };
    assert_eq!((taken, full.limit), (1000, Limit::Keys { capacity: 1000 }));
    assert!(scalable.report().fpr_now <= 0.0105);
    let mut cuckoo = Cuckoo::new(1000, 0.01).unwrap();
    let full = (0..10_000u64).find_map(|key| cuckoo.insert(key).err()).unwrap();
    assert!(matches!(full.limit, Limit::Slots { capacity: 1000, .. }));
    // A classic filter has no end: it takes keys, and says that it holds too many.
    let bloom = of_keys(Spec::sized(1000, 0.01), 0..1000);
    assert!(!bloom.report().over_capacity());
    assert!(of_keys(Spec::sized(1000, 0.01), 0..2000).report().over_capacity());
}

/// Rule 5: a false positive that was found out works once.
#[test]
fn rule_5_a_false_positive_is_not_replayed() {
    let bloom = of_keys(Spec::sized(1000, 0.01), 0..1000);
    let hashing = bloom.hashing();
    let forged: Vec<Digest> = (1u64 << 40..)
        .filter(|&key| bloom.contains(key))
        .map(|key| hashing.digest_of(key))
        .take(50)
        .collect();
    let mut filter: Box<dyn AnyFilter> = Box::new(bloom);
    let mut costly = 0;
    for _ in 0..20 {
        for &key in &forged {
            if filter.contains_digest(key) {
                // Here the server has looked, in vain.
                costly += 1;
                filter = except(filter, [key]);
            }
        }
    }
    assert_eq!(costly, 50);
    assert!((0..1000u64).all(|key| filter.contains(&key.to_le_bytes())));
}

/// Rule 6: the same keys under another secret are another filter, and the two do not mix.
#[test]
fn rule_6_a_filter_under_a_new_secret_shares_nothing_with_the_old_one() {
    let keyed: Vec<Bloom> = secrets(2)
        .map(|secret| of_keys(Spec::sized(1000, 0.01).with_hashing(Hashing::Keyed(secret)), 0..1000))
        .collect();
    let mut merged = keyed[0].clone();
    assert!(merged.merge(&keyed[1]).is_err() && merged == keyed[0]);
    let wrong = |bloom: &Bloom| {
        (1u64 << 40..(1 << 40) + 100_000).filter(|&key| bloom.contains(key)).collect::<HashSet<u64>>()
    };
    let (old, new) = (wrong(&keyed[0]), wrong(&keyed[1]));
    // 1000 each, of which independent filters have 10 in common; 40 have a chance below 1e-10.
    assert!(old.len() > 700 && new.len() > 700 && old.intersection(&new).count() < 40);
}

/// Rule 8: bytes that an opponent wrote, with the right checksums, are refused or harmless, also of a keyed filter with
/// exceptions.
#[test]
fn rule_8_crafted_files_are_refused_or_harmless() {
    let secret = secrets(1).next().unwrap();
    let spec = Spec::sized(100, 0.01).with_hashing(Hashing::Keyed(secret));
    let keyed = of_keys(spec, 0..100);
    let hashing = keyed.hashing();
    let filter = except(Box::new(keyed), (1000..1020u64).map(|key| hashing.digest_of(key)));
    let file = mayhap::encode(&*filter, mayhap::Summing::Payload).to_vec();
    let mut random = Random::new(8);
    for _ in 0..20_000 {
        let mut damaged = file.clone();
        for _ in 0..1 + random.below(3) {
            let place = random.below(damaged.len() as u64) as usize;
            damaged[place] ^= 1 << random.below(8);
        }
        let cut = random.below(4) == 0;
        damaged.truncate(if cut { random.below(file.len() as u64 + 1) as usize } else { file.len() });
        if damaged != file {
            assert!(open(damaged.into(), Some(&secret)).is_err());
        }
    }
    // With checksums renewed, where the secret is not in the way.
    let mut blocked = Blocked::new(100, 0.01).unwrap();
    for key in 0..100u64 {
        blocked.insert(key);
    }
    let public = [of_keys(Spec::sized(100, 0.01), 0..100).to_bytes(), blocked.to_bytes()];
    for file in public {
        let (refused, opened) = crafted::damage(&file, 88, 2000);
        assert!(refused > 0 && opened > 0, "{refused} refused, {opened} opened");
    }
}
