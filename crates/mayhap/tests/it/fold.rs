//! Folding, and merging across sizes: no key is lost, and the rate is the one that the fill tells.
//!
//! A rate passes if it is within 5 standard deviations of `fpr()`, which counts the bits of that very
//! filter: a correct one fails with a chance of 5.7e-7, and there are about 60 cells. Seeds are fixed.
//!
//! `cargo test -p mayhap --test it fold:: -- --nocapture` prints what was measured.

use mayhap::bits::resized;
use mayhap::{
    AnyFilter, Bloom, Combine, FAMILIES, Filter, FoldError, Hashing, Knob, Make, Mismatch, Parameter, Secret,
    Spec, Value, combine, internals, math, open,
};
use mayhap_eval::{ABSENT, Proportion, Random};

const SIGMAS: f64 = 5.0;

fn sized(bits: u64, probes: u32, seed: u64) -> Bloom {
    let hashing = Hashing::Xxh3 { seed };
    Bloom::from_spec(&Spec::new().with_bits(bits).with_probes(probes).with_hashing(hashing)).unwrap()
}

fn filled(bits: u64, probes: u32, keys: std::ops::Range<u64>) -> Bloom {
    let mut bloom = sized(bits, probes, bits ^ keys.end);
    bloom.extend(keys);
    bloom
}

fn holds(bloom: &Bloom, mut keys: std::ops::Range<u64>) -> bool {
    keys.all(|key| bloom.contains(key))
}

/// The measured rate is the one that the filter tells of itself.
#[track_caller]
fn meets_its_rate(bloom: &Bloom, trials: u64, what: &str) {
    let measured = bloom.measure_fpr(ABSENT..ABSENT + trials);
    let measured = Proportion { hits: measured.hits, trials: measured.trials };
    let (rate, fpr) = (measured.rate().unwrap(), bloom.fpr());
    println!("{what}: {} bits, {} probes, rate {fpr:.4e}, measured {rate:.4e}", bloom.bits(), bloom.probes());
    assert!(measured.agrees_with(fpr, 0.0, SIGMAS), "{what}: {measured:?}, that is {rate}; told {fpr}");
    let ones: u64 = bloom.words().iter().map(|word| u64::from(word.count_ones())).sum();
    assert_eq!(bloom.fill(), ones as f64 / bloom.bits() as f64, "{what}: the ones are counted right");
}

// Folding.

#[test]
fn a_fold_is_the_filter_that_the_keys_would_have_made_there() {
    for (bits, probes) in [(64, 3), (9600, 7), (9_646_080, 7), (30_030, 1), (2 * 3 * 5 * 7 * 997, 20)] {
        let keys = 0..(bits / 100).max(1);
        let large = filled(bits, probes, keys.clone());
        for factor in (1..=bits.min(1000)).filter(|&factor| bits.is_multiple_of(factor)) {
            let folded = large.fold(factor).unwrap();
            let mut direct = Bloom::from_spec(
                &Spec::new().with_bits(bits / factor).with_probes(probes).with_hashing(large.hashing()),
            )
            .unwrap();
            direct.extend(keys.clone());
            assert!(folded == direct, "{bits} bits folded by {factor}");
            assert_eq!((folded.inserted(), folded.fill()), (large.inserted(), direct.fill()));
            assert!(folded.capacity() <= large.capacity() && folded.capacity() >= 1);
        }
    }
}

#[test]
fn a_factor_that_does_not_divide_is_refused_by_name() {
    let bloom = filled(9585, 7, 0..100);
    for factor in [0, 2, 7, 9586, u64::MAX] {
        assert_eq!(bloom.fold(factor), Err(FoldError::Factor { bits: 9585, factor }));
    }
    assert_eq!(
        bloom.fold(2).unwrap_err().to_string(),
        "9585 bits do not fold by 2, which does not divide them"
    );
    assert_eq!(bloom.fold(1).unwrap(), bloom);
    assert_eq!(bloom.fold(9585).unwrap().fpr(), 1.0, "one bit");
}

/// By trying every divisor.
fn smallest_fold(bloom: &Bloom, fpr: f64) -> Option<u64> {
    let bits = bloom.bits();
    let fits = |&factor: &u64| {
        bits.is_multiple_of(factor)
            && bloom.fold(factor).unwrap().fpr() <= fpr
            && math::bloom_fpr_of_any_size(bits / factor, 1, bloom.probes()) <= fpr
    };
    (2..=bits).rev().find(fits)
}

#[test]
fn the_smallest_fold_that_keeps_the_rate_is_found() {
    let mut random = Random::new(7);
    let mut found = 0;
    for bits in [64, 960, 1024, 5040, 9600, 9973, 8192, 2 * 9973, 15_015] {
        for probes in [1, 4, 9] {
            let keys = random.below(bits / 20 + 2);
            let mut filters = vec![filled(bits, probes, 0..keys)];
            // Runs of ones, as a merge across sizes leaves them: a larger factor may fit where a smaller
            // one does not.
            if bits.is_multiple_of(5) {
                let small = filled(bits / 5, probes, 0..keys / 5);
                let words = resized(small.words(), bits / 5, bits).unwrap();
                filters.push(Bloom::from_words(words, bits, probes).unwrap());
            }
            for bloom in filters {
                for fpr in [1e-6, 1e-3, 0.01, 0.1, 0.5, 0.9] {
                    let what = format!("{} bits, {probes} probes, {keys} keys to {fpr}", bloom.bits());
                    match (bloom.fold_to(fpr), smallest_fold(&bloom, fpr)) {
                        (Ok(folded), Some(factor)) => {
                            found += 1;
                            assert_eq!(folded.bits(), bloom.bits() / factor, "{what}");
                            // The capacity is that of the formula, which is a little low for few bits.
                            assert!(folded.fpr() <= fpr && folded.fpr_at_capacity() <= 1.2 * fpr, "{what}");
                            assert!(!folded.report().over_capacity(), "{what}");
                            assert_eq!(folded, bloom.fold(factor).unwrap());
                            assert_eq!(folded.inserted(), bloom.inserted());
                            assert_eq!(folded.report().fpr_asked, fpr);
                        }
                        (Err(FoldError::TooFull { asked, now }), _) => {
                            assert!(asked == fpr && now == bloom.fpr() && now > asked, "{what}");
                        }
                        (Err(FoldError::NoFold { bits, asked, factor, fpr: least }), None) => {
                            assert!(bits == bloom.bits() && asked == fpr && least > fpr, "{what}");
                            assert_eq!(factor, internals::prime_factors(bits)[0], "{what}");
                        }
                        (got, expected) => panic!("{what}: {got:?}, expected {expected:?}"),
                    }
                }
            }
        }
    }
    assert!(found > 50, "{found} folds");
}

#[test]
fn a_larger_factor_fits_where_a_smaller_one_does_not() {
    // Spread tenfold, so that a fold by 10 (and by 2 and 5) is free, and one by 3 is not.
    let small = filled(3000, 7, 0..200);
    let words = resized(small.words(), 3000, 30_000).unwrap();
    let spread = Bloom::from_words(words, 30_000, 7).unwrap();
    let (rate, tenfold) = (spread.fpr(), spread.fold(10).unwrap().fpr());
    assert_eq!(rate, tenfold);
    assert!(spread.fold(3).unwrap().fpr() > rate);
    assert_eq!(spread.fold_to(rate).unwrap().bits(), 3000);
}

/// Beyond 16 MiB a sample refuses what clearly does not fit. It must not refuse too much.
#[test]
fn the_smallest_fold_of_a_large_filter_is_found() {
    let mut large = Bloom::from_spec(&Spec::sized(15_000_000, 0.01).foldable()).unwrap();
    large.extend(0..300_000u64);
    let bits = large.bits();
    let folded = large.fold_to(0.01).unwrap();
    let factor = bits / folded.bits();
    assert!(folded.fpr() <= 0.01 && factor > 30 && holds(&folded, 0..300_000), "{factor}");
    for larger in
        internals::divisors(bits).into_iter().filter(|larger| (factor + 1..8 * factor).contains(larger))
    {
        assert!(large.fold(larger).unwrap().fpr() > 0.01, "{larger} fits too");
    }
    // And at a rate that is exactly met.
    let rate = large.fold(24).unwrap().fpr();
    assert_eq!(large.fold_to(rate).unwrap().bits(), bits / 24);
}

#[test]
fn folded_filters_keep_every_key_and_meet_their_rate() {
    for (capacity, keys, asked) in [
        (1_000_000, 10_000, 0.01),
        (1_000_000, 100_000, 0.01),
        (1_000_000, 333_333, 0.02),
        (100_000, 1000, 1e-3),
        (100_000, 99_999, 0.3),
    ] {
        let mut large = Bloom::from_spec(&Spec::sized(capacity, 0.01).foldable()).unwrap();
        large.extend(0..keys);
        let folded = large.fold_to(asked).unwrap();
        let what = format!("{keys} keys in a filter for {capacity}, folded to {asked}");
        assert!(holds(&folded, 0..keys), "{what}");
        assert!(folded.fpr() <= asked && folded.bits() < large.bits(), "{what}");
        assert!(folded.capacity() as f64 >= 0.99 * keys as f64, "{what}: {}", folded.capacity());
        assert_eq!(folded.inserted(), Some(keys));
        // 2, 3 and 5 are among the divisors: never more than half as large again as it had to be.
        let needed = math::bloom_bits_for_probes(keys, asked, folded.probes());
        let surplus = folded.bits() as f64 / needed as f64;
        assert!(surplus < if folded.bits() * 2 > large.bits() { 2.0 } else { 1.52 }, "{what}: {surplus}");
        // The prediction from the fill before.
        let predicted = math::resized_fill(large.bits(), folded.bits(), large.fill());
        let spread = math::fill_deviation(folded.bits(), keys as f64, folded.probes());
        assert!((folded.fill() - predicted).abs() < SIGMAS * spread, "{what}: {}", folded.fill());
        meets_its_rate(&folded, 1_000_000, &what);
        // And as a file.
        let again = Bloom::from_bytes(&folded.to_bytes()).unwrap();
        assert!(again == folded && again.report() == folded.report());
    }
}

#[test]
fn what_cannot_be_folded_says_why() {
    let full = filled(9600, 7, 0..1000);
    let Err(FoldError::TooFull { asked: 1e-6, now }) = full.fold_to(1e-6) else { panic!() };
    assert_eq!(now, full.fpr());
    let error = full.fold_to(0.02).unwrap_err();
    assert!(matches!(error, FoldError::NoFold { bits: 9600, factor: 2, .. }), "{error}");
    assert!(
        error.to_string().starts_with(
            "no fold keeps the false-positive rate at 0.0200: by 2, the least divisor of 9600 bits, it is 0.1"
        ),
        "{error}"
    );
    for fpr in [0.0, 1.0, -1.0, f64::NAN, 1e-30] {
        assert!(matches!(full.fold_to(fpr), Err(FoldError::Fpr { .. })), "{fpr}");
    }
    // An empty filter keeps room for a key.
    let empty = sized(1 << 20, 7, 0).fold_to(0.01).unwrap();
    assert_eq!((empty.bits(), empty.fpr()), (16, 0.0));
    assert!(empty.capacity() >= 1 && empty.fpr_at_capacity() <= 0.01);
    assert!(matches!(empty.fold_to(0.01), Err(FoldError::NoFold { bits: 16, factor: 2, .. })));
    assert!(matches!(sized(1, 1, 0).fold_to(0.5), Err(FoldError::NoFold { bits: 1, .. })));
}

// Merging across sizes.

/// The number of keys at which so many bits and probes are this full.
fn keys_for(bits: u64, probes: u32, fill: f64) -> u64 {
    (-(1.0 - fill).ln() * bits as f64 / f64::from(probes)) as u64
}

#[test]
fn merged_filters_of_any_sizes_keep_every_key_and_meet_their_rate() {
    let m = 200_000;
    let sizes = [(m, 2 * m), (m, m + 1), (199_999, 300_001), (m, 10 * m), (m, 10 * m - 1), (m, m), (6, 4)];
    let probes = [(7, 7), (7, 4), (3, 10)];
    let fills = [(0.3, 0.3), (0.5, 0.5), (0.5, 0.01)];
    for (bits_a, bits_b) in sizes {
        for (probes_a, probes_b) in probes {
            for (fill_a, fill_b) in fills {
                let seed = Hashing::Xxh3 { seed: bits_a + bits_b + u64::from(probes_a) };
                let make = |bits, probes, fill, start: u64| {
                    let mut bloom =
                        Bloom::from_spec(&Spec::new().with_bits(bits).with_probes(probes).with_hashing(seed))
                            .unwrap();
                    let keys = start..start + keys_for(bits, probes, fill).max(1);
                    bloom.extend(keys.clone());
                    (bloom, keys)
                };
                let (a, keys_a) = make(bits_a, probes_a, fill_a, 0);
                let (b, keys_b) = make(bits_b, probes_b, fill_b, 1 << 32);
                let predicted = math::merged_fpr(bits_a, a.fill(), probes_a, bits_b, b.fill(), probes_b);
                let (mut merged, mut other_way) = (a.clone(), b.clone());
                merged.merge(&b).unwrap();
                other_way.merge(&a).unwrap();

                let what = format!("{bits_a}x{probes_a} at {fill_a} with {bits_b}x{probes_b} at {fill_b}");
                assert!(merged == other_way && merged.words() == other_way.words(), "{what}");
                assert!(holds(&merged, keys_a) && holds(&merged, keys_b), "{what}");
                assert_eq!(merged.probes(), probes_a.min(probes_b), "{what}");
                assert!([bits_a, bits_b].contains(&merged.bits()), "{what}");
                assert_eq!(merged.capacity(), a.capacity().max(b.capacity()), "{what}");
                assert_eq!(merged.inserted(), None, "{what}");
                if bits_a < 100 {
                    continue;
                }
                // Half a bit is the deviation of one; a bit of the shorter stands for all that it
                // overlaps, which makes twice as few independent ones at worst.
                let spread = 0.5 * (2.0 / bits_a.min(bits_b) as f64).sqrt();
                let rho = f64::from(merged.probes()) * spread / merged.fill();
                let off = merged.fpr() / predicted - 1.0;
                assert!(off.abs() < SIGMAS * rho, "{what}: {}, predicted {predicted}", merged.fpr());
                meets_its_rate(&merged, 200_000, &format!("{what} (predicted {predicted:.4e})"));
            }
        }
    }
}

#[test]
fn the_length_with_the_lower_rate_is_taken() {
    let merged = |bits_a, keys_a: u64, bits_b, keys_b: u64| {
        let (mut a, mut b) = (sized(bits_a, 7, 1), sized(bits_b, 7, 1));
        a.extend(0..keys_a);
        b.extend(0..keys_b);
        a.merge(&b).unwrap();
        a.bits()
    };
    assert_eq!(merged(10_000, 1000, 20_000, 2000), 20_000, "spreading to a multiple is free");
    assert_eq!(merged(10_000, 1000, 20_001, 2000), 20_001);
    assert_eq!(merged(10_000, 1000, 10_001, 10), 10_000, "the emptier one gives way");
    assert_eq!(merged(10_000, 10, 10_001, 1000), 10_001);
    assert_eq!(merged(10_000, 1000, 99_999, 10), 10_000);
    assert_eq!(merged(10_000, 1000, 20_000, 0), 10_000, "the shorter if they tie");
    assert_eq!(merged(10_000, 0, 20_000, 0), 10_000);
}

#[test]
fn many_sizes_in_any_order_lose_no_key() {
    let mut random = Random::new(3);
    for round in 0..200 {
        let filters: Vec<(Bloom, std::ops::Range<u64>)> = (0..2 + random.below(4))
            .map(|i| {
                let (bits, start) = (1 + random.below(5000), 1000 * i);
                let mut bloom = sized(bits, 1 + random.below(12) as u32, round);
                let keys = start..start + random.below(100);
                bloom.extend(keys.clone());
                (bloom, keys)
            })
            .collect();
        let mut all = filters[0].0.clone();
        filters[1..].iter().for_each(|(bloom, _)| all.merge(bloom).unwrap());
        for (_, keys) in &filters {
            assert!(holds(&all, keys.clone()), "round {round}");
        }
        let bytes = all.to_bytes();
        assert!(Bloom::from_bytes(&bytes).unwrap() == all);
        // What goes in afterwards is found too, and by batches as well.
        all.insert("later");
        let mut hits = Vec::new();
        all.contains_batch(&[all.hashing().digest_of("later")], &mut hits);
        assert!(all.contains("later") && hits == [true]);
    }
}

#[test]
fn filters_that_hash_differently_are_refused_whatever_their_sizes() {
    let keyed = Spec::new().with_bits(500).with_probes(3);
    let keyed = Bloom::from_spec(&keyed.with_hashing(Hashing::Keyed(Secret::new([1; 16])))).unwrap();
    let ours = sized(1000, 7, 1);
    for other in [sized(500, 7, 2), sized(1000, 3, 2), keyed] {
        let (mut merged, before) = (ours.clone(), ours.to_bytes());
        let error = merged.merge(&other).unwrap_err();
        assert!(
            matches!(
                error,
                Mismatch::Differ { what: Parameter::Seed, .. }
                    | Mismatch::Differ { what: Parameter::Hashing, .. }
            ),
            "{error}"
        );
        assert!(merged.to_bytes() == before);
    }
    // Intersections of different sizes are refused, whatever the hashing.
    let (mut both, other) = (ours.clone(), sized(500, 7, 1));
    assert_eq!(
        both.intersect(&other),
        Err(Mismatch::Differ { what: Parameter::Bits, ours: Value::Whole(1000), theirs: Value::Whole(500) })
    );
    assert_eq!(
        both.intersect(&sized(1000, 6, 1)),
        Err(Mismatch::Differ { what: Parameter::Probes, ours: Value::Whole(7), theirs: Value::Whole(6) })
    );
}

// Every family.

fn make(family: &mayhap::Family, capacity: u64) -> Box<dyn AnyFilter> {
    let Make::Empty(make) = family.make else { panic!("{}: another way to be made", family.name) };
    let spec = Spec::sized(capacity, 0.01);
    make(&if family.takes(Knob::Foldable) { spec.foldable() } else { spec }).unwrap()
}

fn with_keys(family: &mayhap::Family, capacity: u64, keys: std::ops::Range<u64>) -> Box<dyn AnyFilter> {
    let mut filter = make(family, capacity);
    let keys: Vec<[u8; 8]> = keys.map(u64::to_le_bytes).collect();
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
    filter.insert_keys(&keys, &mut Vec::new()).unwrap();
    filter
}

fn holds_keys(filter: &dyn AnyFilter, mut keys: std::ops::Range<u64>) -> bool {
    keys.all(|key| filter.contains(&key.to_le_bytes()))
}

#[test]
fn every_family_that_folds_keeps_its_keys_and_the_rate() {
    for family in FAMILIES.iter().filter(|family| family.can.folds) {
        let filter = with_keys(family, 100_000, 0..2000);
        let folded = filter.as_fold().unwrap().fold_to(0.01).unwrap();
        let (before, after) = (filter.report(), folded.report());
        assert!(holds_keys(&*folded, 0..2000), "{}", family.name);
        assert!(after.bits < before.bits / 10 && after.fpr_now <= 0.01, "{}: {after:?}", family.name);
        assert_eq!((after.inserted, after.fpr_asked), (before.inserted, 0.01), "{}", family.name);
        assert!(!after.over_capacity() && after.fpr_at_capacity <= 0.01, "{}", family.name);
        assert_eq!(folded.family(), *family);
        let file = mayhap::encode(&*folded, mayhap::Summing::Payload).to_vec();
        assert_eq!(open(file.into(), None).unwrap().report(), after);
        for fpr in [0.0, 1.0, f64::NAN] {
            assert!(filter.as_fold().unwrap().fold_to(fpr).is_err(), "{}", family.name);
        }
    }
}

/// Of different sizes: merged with all keys, or refused and as it was.
#[test]
fn every_family_that_merges_loses_no_key_across_sizes() {
    for family in FAMILIES.iter().filter(|family| family.can.merges && family.can.inserts) {
        for (ours, theirs) in [(1000, 3000), (3000, 1000), (1000, 1001), (1000, 50_000)] {
            let mut merged = with_keys(family, ours, 0..600);
            let other = with_keys(family, theirs, 400..1000);
            let before = merged.report();
            match combine(&mut *merged, &*other, Combine::Union) {
                Ok(()) => assert!(holds_keys(&*merged, 0..1000), "{}: {ours} and {theirs}", family.name),
                Err(error) => assert_eq!(merged.report(), before, "{}: {error}", family.name),
            }
        }
    }
}
