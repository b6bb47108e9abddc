//! The family `expanding`: what is its own beside the promises of every family.
//!
//! Rates are compared with the formula by `|observed - expected| <= 5 sqrt(E (1 - E) / q + (rho E)^2)`, which a right
//! filter misses with a chance below 6e-7; the seeds are fixed.

use std::collections::HashMap;

use mayhap::sizes::DEFAULT_DOUBLINGS;
use mayhap::wire::{Frame, Verify};
use mayhap::{
    AnyFilter, DecodeError, Digest, Error, Expanding, Filter, Full, Hashing, Insert, Insertion, Knob, Limit,
    Removal, Spec, SpecError, decode, math,
};
use mayhap_eval::{ABSENT, Random};
use proptest::prelude::*;

use crate::crafted::reseal;

/// The share of absent keys that are admitted.
fn measured(filter: &Expanding, questions: u64) -> f64 {
    let asked: Vec<u64> = (0..questions).map(|i| ABSENT + i).collect();
    let mut hits = Vec::new();
    filter.contains_each(&asked, &mut hits);
    hits.iter().filter(|&&hit| hit).count() as f64 / questions as f64
}

#[track_caller]
fn assert_holds(filter: &Expanding, keys: std::ops::Range<u64>) {
    let keys: Vec<u64> = keys.collect();
    let mut hits = Vec::new();
    filter.contains_each(&keys, &mut hits);
    assert!(hits.iter().all(|&hit| hit), "keys were denied");
}

/// Inserts keys from `next` on until one more would double the filter once more than this.
fn grow_to(filter: &mut Expanding, next: &mut u64, doublings: u32) {
    while filter.doublings().made < doublings || filter.slots().used < filter.capacity() {
        let room = filter.capacity() - filter.slots().used;
        let count = if filter.doublings().made < doublings { room + 1 } else { room };
        let keys: Vec<u64> = (*next..*next + count).collect();
        filter.insert_all(&keys).unwrap();
        *next += count;
    }
}

/// Slots that a question looks at, counted: their number does not grow with the doublings. Runs are what is looked at, and
/// their lengths follow from the load alone.
#[test]
fn a_question_reads_as_many_slots_after_ten_doublings_as_before() {
    let slots_read = |filter: &Expanding| {
        let (words, stride) = (filter.words(), 3 + 1 + filter.fingerprint_bits() as usize);
        let blocks = words.len() / stride;
        let runs: u32 = (0..blocks).map(|block| words[block * stride].count_ones()).sum();
        // A run is read by those who ask for its quotient.
        let sum = filter.slots().used as f64 / f64::from(runs);
        sum * f64::from(runs) / filter.slots().slots as f64
    };
    let mut grown = Expanding::with_slots(1024, 12).unwrap();
    let mut next = 0;
    grow_to(&mut grown, &mut next, 10);
    let mut at_once = Expanding::with_slots(1 << 20, 12).unwrap();
    let mut first = 0;
    grow_to(&mut at_once, &mut first, 0);
    let (grown, at_once) = (slots_read(&grown), slots_read(&at_once));
    assert!((grown / at_once - 1.0).abs() < 0.1, "{grown} and {at_once}");
}

/// The rate is kept through every planned doubling, also just before the next one; and so is the bound on the bits.
#[test]
fn the_asked_rate_and_size_are_kept_through_all_planned_doublings() {
    for (fpr, doublings) in [(0.01, 8), (0.05, 9), (0.001, 7), (0.12, 10)] {
        let spec = Spec::sized(500, fpr).with_doublings(doublings);
        let mut filter = Expanding::from_spec(&spec).unwrap();
        let mut next = 0;
        for made in 0..=doublings {
            grow_to(&mut filter, &mut next, made);
            assert!(filter.fpr() <= fpr * 1.001, "{fpr}, {made} doublings: {}", filter.fpr());
            let questions = 300_000;
            let spread = (fpr * (1.0 - fpr) / questions as f64 + (0.03 * fpr).powi(2)).sqrt();
            let observed = measured(&filter, questions);
            assert!(observed <= fpr + 5.0 * spread, "{fpr}, {made} doublings: {observed}");
            let bits_per_key = filter.bits() as f64 / filter.estimated_len();
            let load = filter.slots().load();
            let bound = (-fpr.log2() + f64::from(doublings + 2).log2() + 4.0) / load;
            assert!(bits_per_key <= bound, "{fpr}: {bits_per_key} bits per key, {bound} allowed");
        }
        assert!(filter.fpr_at_capacity() <= fpr);
        assert_holds(&filter, 0..next);
    }
    // Every rate and plan, by the formulas alone.
    for doublings in [0, 1, 5, 20, 40] {
        for exponent in 29..400 {
            let fpr = 10f64.powf(-f64::from(exponent) / 32.0);
            let size = Spec::sized(1 << 20, fpr).with_doublings(doublings).expanding().unwrap();
            assert!(size.fpr <= fpr);
            let slot = size.bits() as f64 / size.slots as f64;
            assert!(slot <= -fpr.log2() + f64::from(doublings + 2).log2() + 4.0, "{fpr} {doublings}: {slot}");
        }
    }
}

#[test]
fn long_fingerprints_take_bits_of_both_halves() {
    // 50 bits, and 11 for the slots: beyond 64 after four doublings, and from then on with the second half.
    let mut filter = Expanding::new(1000, 1e-14).unwrap();
    assert_eq!(filter.fingerprint_bits(), 50);
    let keys: Vec<u64> = (0..200_000).collect();
    for part in keys.chunks(777) {
        filter.insert_all(part).unwrap();
        assert!(filter.contains(part[0]) && filter.contains(0u64));
    }
    assert!(filter.doublings().made >= 7);
    assert_holds(&filter, 0..200_000);
    assert_eq!(measured(&filter, 200_000), 0.0);
    assert!(keys.iter().all(|&key| filter.remove(key).is_removed()));
    assert_eq!((filter.slots().used, filter.estimated_len()), (0, 0.0));
    assert!(filter.words().iter().all(|&word| word == 0));
    // Halves that are the same, and digests that are not.
    let digest = |b: u64| Digest { a: 0x1234_5678_9abc_def0, b };
    filter.insert_digest(digest(1 << 63)).unwrap();
    assert!(filter.contains_digest(digest(1 << 63)) && !filter.contains_digest(digest(1)));
}

#[test]
fn a_doubling_happens_when_nine_tenths_are_taken_and_not_before() {
    let mut filter = Expanding::new(1000, 0.01).unwrap();
    let capacity = filter.capacity();
    assert!((1000..1060).contains(&capacity));
    for key in 0..capacity {
        filter.insert(key).unwrap();
    }
    assert_eq!(filter.doublings().made, 0);
    let before = filter.clone();
    // A key that is in, or an outcome of Perhaps, needs no room.
    assert_eq!(filter.insert_new(5u64).unwrap(), Insertion::Perhaps);
    assert!(filter == before && filter.doublings().made == 0);
    filter.insert(1u64 << 50).unwrap();
    assert_eq!((filter.doublings().made, filter.doublings().planned), (1, DEFAULT_DOUBLINGS));
    assert_eq!(filter.slots().slots, 2 * before.slots().slots);
    assert_eq!(filter.slots().used, capacity + 1);
    assert_holds(&filter, 0..capacity);
}

#[test]
fn many_keys_at_once_are_as_one_by_one() {
    let mut random = Random::new(8);
    // Repeats near and far, through several doublings, and out of the cache at the end.
    let keys: Vec<u64> =
        (0..150_000u64).map(|i| if random.below(3) == 0 { random.below(i + 1) } else { i }).collect();
    let (mut single, mut batch) = (Expanding::with_fpr(0.001).unwrap(), Expanding::with_fpr(0.001).unwrap());
    let told: Vec<Insertion> = keys.iter().map(|&key| single.insert(key).unwrap()).collect();
    batch.insert_all(&keys).unwrap();
    assert_eq!(batch.to_bytes(), single.to_bytes());
    let digests: Vec<Digest> = keys.iter().map(|&key| single.hashing().digest_of(key)).collect();
    let (mut by_digest, mut outcomes) = (Expanding::with_fpr(0.001).unwrap(), Vec::new());
    by_digest.insert_batch(&digests, &mut outcomes).unwrap();
    assert!(by_digest == single && outcomes == told);
    let asked: Vec<u64> = (0..300_000).collect();
    let mut hits = vec![true];
    single.contains_each(&asked, &mut hits);
    assert!(asked.iter().zip(&hits[1..]).all(|(&key, &hit)| single.contains(key) == hit));
    // As a set.
    let (mut single, mut batch) = (Expanding::with_fpr(0.001).unwrap(), Expanding::with_fpr(0.001).unwrap());
    let told: Vec<Insertion> = keys.iter().map(|&key| single.insert_new(key).unwrap()).collect();
    outcomes.clear();
    batch.insert_new_all(&keys, &mut outcomes).unwrap();
    assert!(outcomes == told && batch.to_bytes() == single.to_bytes());
    let (mut by_digest, mut outcomes) = (Expanding::with_fpr(0.001).unwrap(), Vec::new());
    by_digest.insert_new_batch(&digests, &mut outcomes).unwrap();
    assert!(outcomes == told && by_digest == single);
    let new = told.iter().filter(|&&outcome| outcome == Insertion::New).count() as u64;
    assert_eq!((single.estimated_len(), single.inserted()), (new as f64, Some(new)));
    // All of it again: nothing is new, also at the brink of a doubling.
    let mut next = 1u64 << 40;
    while single.slots().used < single.capacity() {
        single.insert_new(next).unwrap();
        next += 1;
    }
    let before = single.to_bytes();
    outcomes.clear();
    single.insert_new_all(&keys, &mut outcomes).unwrap();
    assert!(outcomes.iter().all(|&outcome| outcome == Insertion::Perhaps) && outcomes.len() == keys.len());
    assert_eq!(single.to_bytes(), before);
}

/// Large tables take keys region by region. The bytes are the same, and the doublings come at the same keys.
#[test]
fn keys_that_are_gathered_by_region_give_the_same_bytes() {
    let mut random = Random::new(9);
    let keys: Vec<u64> =
        (0..3_000_000u64).map(|i| if random.below(9) == 0 { random.below(i + 1) } else { i }).collect();
    let (mut gathered, mut batch) = (Expanding::with_fpr(0.01).unwrap(), Expanding::with_fpr(0.01).unwrap());
    gathered.insert_all(&keys).unwrap();
    keys.chunks(10_000).for_each(|keys| batch.insert_all(keys).unwrap());
    assert!(gathered.size_in_bytes() > 8_000_000 && gathered.inserted() == Some(3_000_000));
    assert!(gathered.to_bytes() == batch.to_bytes());
}

/// The bytes follow from the keys between two doublings, and not from their order.
#[test]
fn bytes_do_not_depend_on_the_order_between_doublings() {
    let [upwards, downwards] = [false, true].map(|is_reversed| {
        let mut filter = Expanding::new(1000, 0.01).unwrap();
        let start = filter.slots().slots;
        let mut next = 0;
        for doublings in 0..4 {
            let mut keys: Vec<u64> = (next..math::expanding_capacity(start << doublings)).collect();
            next += keys.len() as u64;
            if is_reversed {
                keys.reverse();
            }
            filter.insert_all(&keys).unwrap();
        }
        assert_eq!((filter.doublings().made, filter.slots().used), (3, next));
        filter.to_bytes()
    });
    assert!(upwards == downwards);
}

#[test]
fn the_eighth_copy_stays_for_good() {
    let mut filter = Expanding::with_fpr(0.001).unwrap();
    for _ in 0..7 {
        filter.insert("seven").unwrap();
    }
    assert_eq!(filter.slots().used, 7);
    assert!((0..7).all(|_| filter.remove("seven").is_removed()));
    assert!(!filter.contains("seven") && !filter.remove("seven").is_removed());
    // A million would not make it longer, nor any question slower.
    for _ in 0..10_000 {
        filter.insert("often").unwrap();
    }
    assert_eq!((filter.slots().used, filter.inserted(), filter.doublings().made), (8, Some(10_007), 0));
    for _ in 0..20_000 {
        assert!(filter.remove("often") == Removal::Stuck && filter.contains("often"));
    }
    assert_eq!(filter.slots().used, 8);
}

/// Old fingerprints are shorter, and the one of two keys that a removal takes must not be the other's.
#[test]
fn removing_takes_the_longest_match() {
    let mut filter = Expanding::with_slots(64, 4).unwrap();
    let mut model: Vec<u64> = Vec::new();
    let mut random = Random::new(5);
    for step in 0..30_000u64 {
        if step < 2000 || random.below(2) == 0 {
            filter.insert(step).unwrap();
            model.push(step);
        } else if !model.is_empty() {
            let key = model.swap_remove(random.below(model.len() as u64) as usize);
            assert!(filter.remove(key).is_removed(), "step {step}: a key that is in was denied");
        }
        if step % 1000 == 0 {
            assert!(model.iter().all(|&key| filter.contains(key)), "step {step}");
        }
    }
    assert!(model.iter().all(|&key| filter.contains(key)));
    assert!(filter.doublings().made > 4);
    let again = Expanding::from_bytes(&filter.to_bytes()).unwrap();
    assert!(again == filter && again.report() == filter.report());
}

#[test]
fn all_keys_leave_again() {
    let mut filter = Expanding::with_slots(128, 14).unwrap();
    let keys: Vec<u64> = (0..50_000).collect();
    filter.insert_all(&keys).unwrap();
    let mut removed = Vec::new();
    filter.remove_all(&keys[..40_000], &mut removed);
    assert!(removed.iter().all(|&was_in| was_in.is_removed()));
    assert_holds(&filter, 40_000..50_000);
    assert!(keys[40_000..].iter().all(|&key| filter.remove(key).is_removed()));
    assert_eq!((filter.slots().used, filter.fpr()), (0, 0.0));
    assert!(filter.words().iter().all(|&word| word == 0));
    assert!(!filter.remove(1u64).is_removed());
}

#[test]
fn filters_of_different_sizes_merge() {
    for (ours, theirs) in [(500u64, 40_000u64), (40_000, 500), (900, 900), (20_000, 30_000), (0, 5000)] {
        let (mut one, mut two) = (Expanding::with_fpr(0.01).unwrap(), Expanding::with_fpr(0.01).unwrap());
        one.insert_all(&(0..ours).collect::<Vec<u64>>()).unwrap();
        two.insert_all(&(ours..ours + theirs).collect::<Vec<u64>>()).unwrap();
        let before = two.to_bytes();
        one.merge(&two).unwrap();
        assert_holds(&one, 0..ours + theirs);
        assert_eq!((one.estimated_len(), one.inserted()), ((ours + theirs) as f64, None));
        assert!(one.slots().used <= one.capacity() && one.fpr() < 0.01);
        assert_eq!(two.to_bytes(), before);
        assert!((0..ours + theirs).all(|key| one.remove(key).is_removed()));
        assert_eq!(one.slots().used, 0);
        assert_eq!(Expanding::from_bytes(&one.to_bytes()).unwrap(), one);
    }
    // One that was made for as many slots as the other has after a doubling.
    let (mut small, mut large) =
        (Expanding::with_slots(128, 10).unwrap(), Expanding::with_slots(256, 10).unwrap());
    small.insert_all(&(0..100u64).collect::<Vec<_>>()).unwrap();
    large.insert_all(&(100..220u64).collect::<Vec<_>>()).unwrap();
    let mut both = large.clone();
    both.merge(&small).unwrap();
    small.merge(&large).unwrap();
    assert_holds(&both, 0..220);
    assert!(small == both && small.doublings().made == 1 && both.doublings().made == 0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |spec: Spec| Expanding::from_spec(&spec).unwrap_err();
    let doublings = refused(Spec::sized(10, 0.01).with_doublings(49));
    assert_eq!(doublings.to_string(), "doublings must be 0 to 48, not 49");
    assert!(matches!(
        refused(Spec::sized(10, 0.01).with_probes(3)),
        SpecError::NotFor { knob: Knob::Probes, .. }
    ));
    assert!(matches!(refused(Spec::sized(10, 1e-18)), SpecError::FprBelow { .. }));
    assert!(matches!(refused(Spec::sized(1 << 47, 0.01)), SpecError::TooLarge { .. }));
    for bits in [3, 51, u32::MAX] {
        let error = Expanding::with_slots(64, bits).unwrap_err();
        assert_eq!(error.to_string(), format!("fingerprint bits must be 4 to 50, not {bits}"));
    }
    assert!(Expanding::with_slots(u64::MAX, 10).is_err());
    // With bits: the longest fingerprints that fit, or the most slots.
    let size = Spec::new().with_capacity(1000).with_bits(1152 * 16 + 5).expanding().unwrap();
    assert_eq!((size.slots, size.fingerprint_bits, size.bits()), (1152, 12, 1152 * 16));
    let size = Spec::new().with_bits(1 << 20).with_fpr(0.01).expanding().unwrap();
    assert!(size.bits() <= 1 << 20 && size.bits() > (1 << 20) - 64 * 14);
    let few = Spec::new().with_bits(100).with_fpr(0.01).expanding().unwrap_err();
    assert_eq!(few, SpecError::Unreachable { bits: 100, needed: 64 * 14 });
}

#[test]
fn refusals_say_what_is_wrong() {
    let full = Full { limit: Limit::Memory { bytes: 5 }, inserted: 3 };
    assert_eq!(
        full.to_string(),
        "the filter is full, and 5 bytes of memory to grow were asked for and not granted"
    );
    assert_eq!(
        Full { limit: Limit::Damaged, inserted: 0 }.to_string(),
        "the filter is damaged and nothing was changed"
    );
}

#[test]
fn a_damaged_payload_is_refused_and_never_changed() {
    let mut filter = Expanding::new(100, 0.01).unwrap();
    filter.insert_all(&(0..100u64).collect::<Vec<_>>()).unwrap();
    let file = filter.to_bytes();
    let problem = DecodeError::Payload { problem: "a run that no writer gives" };
    let mut refused = 0;
    for bit in 0..(file.len() - 4096) * 8 {
        let mut damaged = file.clone();
        damaged[4096 + bit / 8] ^= 1 << (bit % 8);
        reseal(&mut damaged);
        match Expanding::from_bytes(&damaged) {
            Err(error) => assert_eq!(error, problem),
            // A fingerprint with another bit, in order and of the same age, is a fingerprint.
            Ok(_) => {
                refused -= 1;
            }
        }
        refused += 1;
        // Who looks at the header only finds out before anything is changed.
        let mut frame = Frame::parse(&damaged.into(), Verify::Header).unwrap();
        let hashing = frame.hashing(None).unwrap();
        let mut opened = decode(&mut frame, hashing).unwrap();
        opened.contains(b"");
        let digest = opened.hashing().digest_of(7u64);
        if opened.as_insert().unwrap().insert_digest(digest).is_err() {
            let damaged = Error::Full(Full { limit: Limit::Damaged, inserted: 0 });
            assert_eq!(opened.insert_keys(&[b"x"], &mut Vec::new()), Err(damaged));
            assert!(!opened.as_remove().unwrap().remove_digest(digest).is_removed());
        } else {
            assert!(opened.contains_digest(digest));
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn crafted_parameters_are_refused() {
    let mut filter = Expanding::new(1000, 0.01).unwrap();
    filter.insert_all(&(0..3000u64).collect::<Vec<_>>()).unwrap();
    let file = filter.to_bytes();
    let refused = |at: usize, bytes: &[u8]| {
        let mut crafted = file.clone();
        crafted[at..at + bytes.len()].copy_from_slice(bytes);
        reseal(&mut crafted);
        Expanding::from_bytes(&crafted).expect_err("crafted")
    };
    let value = |field, found| DecodeError::Value { field, found };
    for bits in [3u32, 51, u32::MAX] {
        assert_eq!(refused(104, &bits.to_le_bytes()), value("bits of a fingerprint", bits.into()));
    }
    assert_eq!(refused(108, &49u32.to_le_bytes()), value("planned doublings", 49));
    assert_eq!(refused(112, &4u32.to_le_bytes()), value("doublings", 4));
    assert_eq!(refused(112, &u32::MAX.to_le_bytes()), value("doublings", u32::MAX.into()));
    assert_eq!(refused(116, &[1]), DecodeError::Padding { field: "padding of the parameters" });
    assert_eq!(refused(96, &100u64.to_le_bytes()), value("slots", 100));
    assert_eq!(refused(128, &u64::MAX.to_le_bytes()), value("copies", u64::MAX));
    assert_eq!(refused(136, &u64::MAX.to_le_bytes()), value("slots of an age", u64::MAX));
}

/// A key, and what is done with it.
fn operations() -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec((0..10u8, 0..60u64), 0..600)
}

proptest! {
    #![proptest_config(crate::seeds::config(150))]

    /// Against an exact multiset: keys come and go, the filter grows, is written and read.
    #[test]
    fn it_agrees_with_a_multiset(
        operations in operations(),
        width in 4u32..20,
        slots in prop::sample::select(vec![64u64, 128, 192]),
    ) {
        let mut filter = Expanding::with_slots(slots, width).unwrap();
        // How often each key is in; from the eighth time on it stays.
        let mut model: HashMap<u64, (u64, bool)> = HashMap::new();
        let mut fresh = 1000;
        for (operation, key) in operations {
            match operation {
                0..4 => {
                    let (count, stays) = model.entry(key).or_default();
                    *count += 1;
                    *stays |= *count >= 8;
                    let is_new = filter.insert(key).unwrap() == Insertion::New;
                    prop_assert!(!is_new || *count == 1);
                }
                4..7 => {
                    // Many others, so that it grows.
                    for _ in 0..20 {
                        filter.insert(fresh).unwrap();
                        model.insert(fresh, (1, false));
                        fresh += 1;
                    }
                }
                7..9 => if let Some((count, stays)) = model.get_mut(&key).filter(|(count, _)| *count > 0) {
                    prop_assert!(filter.remove(key) != Removal::Absent);
                    if !*stays {
                        *count -= 1;
                    }
                },
                _ => {
                    let again = Expanding::from_bytes(&filter.to_bytes()).unwrap();
                    prop_assert!(again == filter);
                    filter = again;
                }
            }
        }
        for (&key, &(count, _)) in &model {
            prop_assert!(count == 0 || filter.contains(key), "key {} is in {} times", key, count);
        }
        prop_assert!(filter.slots().used <= filter.capacity());
    }
}

#[test]
fn seeds_make_different_filters() {
    let spec = |seed| Spec::sized(100, 0.01).with_hashing(Hashing::Xxh3 { seed });
    let [one, other] = [1, 2].map(|seed| {
        let mut filter = Expanding::from_spec(&spec(seed)).unwrap();
        filter.insert_all(&(0..100u64).collect::<Vec<_>>()).unwrap();
        filter
    });
    assert!(one.words() != other.words());
}
