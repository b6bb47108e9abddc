//! Measured false-positive rates against `math.rs`.
//!
//! A cell (so many keys, such a rate, one kind of keys) passes if the measured rate is within 5 standard
//! deviations of the predicted one: those of the count, and those of the rate from one seed to the next
//! (`math::fpr_deviation`). A correct filter fails a cell with a chance of 5.7e-7. The grid has 75 cells,
//! so the chance of a false alarm in it is 4.3e-5; the window of 256 sizes adds 1.5e-4, and the 25 slow
//! cells 1.4e-5. It is drawn once: the seeds are fixed, so a test that passes goes on passing until the
//! code changes.
//!
//! Each cell also asks for every key that is in, of which none may be denied.

use mayhap::filters::bloom::Measured;
use mayhap::math::{self, ProbesRule};
use mayhap::{AnyFilter, Bloom, Digest, Filter, Hashing, Insert, Key, Spec};
use mayhap_eval::{ABSENT, KeyKind, Proportion};

const SIGMAS: f64 = 5.0;

/// Digests of keys `start..start + count` of a kind, a few thousand at a time.
fn for_each_batch(hashing: Hashing, kind: KeyKind, start: u64, count: u64, mut then: impl FnMut(&[Digest])) {
    let (mut key, mut digests) = (Vec::new(), Vec::with_capacity(4096));
    for index in start..start + count {
        key.clear();
        kind.write_key(1, index, &mut key);
        digests.push(hashing.digest(&key));
        if digests.len() == 4096 {
            then(&digests);
            digests.clear();
        }
    }
    then(&digests);
}

fn insert(bloom: &mut Bloom, kind: KeyKind, count: u64) {
    let mut outcomes = Vec::with_capacity(4096);
    for_each_batch(bloom.hashing(), kind, 0, count, |digests| {
        bloom.insert_batch(digests, &mut outcomes).unwrap();
        outcomes.clear();
    });
}

/// How many of these keys are admitted.
fn ask(bloom: &Bloom, kind: KeyKind, start: u64, count: u64) -> Proportion {
    let (mut hits, mut answers) = (0, Vec::with_capacity(4096));
    for_each_batch(bloom.hashing(), kind, start, count, |digests| {
        bloom.contains_batch(digests, &mut answers);
        hits += answers.drain(..).filter(|&answer| answer).count() as u64;
    });
    Proportion { hits, trials: count }
}

/// What `n` keys should give: the usual formula, and the exact mean where the filter is too small for it.
fn predicted(bloom: &Bloom, n: u64) -> f64 {
    let (m, k) = (bloom.bits(), bloom.probes());
    if m >= 1 << 16 { math::bloom_fpr(m, n as f64, k) } else { math::bloom_fpr_exact(m as u32, n as u32, k) }
}

#[track_caller]
fn check_rate(bloom: &Bloom, kind: KeyKind, n: u64, probes: u64) {
    let present = ask(bloom, kind, 0, n);
    assert_eq!(present.hits, n, "{kind} keys, n = {n}: keys were denied");
    let measured = ask(bloom, kind, ABSENT, probes);
    let expected = predicted(bloom, n);
    let rho = math::fpr_deviation(bloom.bits(), n as f64, bloom.probes());
    assert!(
        measured.agrees_with(expected, rho, SIGMAS),
        "{kind} keys, n = {n}: {measured:?}, that is {:.3e}; predicted {expected:.3e}, rho {rho:.1e}",
        measured.rate().unwrap()
    );
}

/// Enough absent keys for 10,000 hits, but no more than `most`: then 1e-5 still gives 100.
fn probes_for(p: f64, most: u64) -> u64 {
    ((1e4 / p) as u64).clamp(200_000, most)
}

const RATES: [f64; 5] = [0.3, 0.03, 0.01, 1e-3, 1e-5];

fn grid(kind: KeyKind) {
    for n in [1_000, 100_000, 1_000_000] {
        for (column, p) in RATES.into_iter().enumerate() {
            // A seed of its own for each cell, so that no cell repeats another's luck.
            let seed = n + column as u64;
            let spec = Spec::sized(n, p).with_hashing(Hashing::Xxh3 { seed });
            let mut bloom = Bloom::from_spec(&spec).unwrap();
            insert(&mut bloom, kind, n);
            check_rate(&bloom, kind, n, probes_for(p, 10_000_000));
        }
    }
}

// One test for each kind, so that the machine's threads share them.

#[test]
fn sequential_integers_meet_the_prediction() {
    grid(KeyKind::Sequential);
}

#[test]
fn random_integers_meet_the_prediction() {
    grid(KeyKind::Random);
}

#[test]
fn urls_meet_the_prediction() {
    grid(KeyKind::Url);
}

#[test]
fn uuids_meet_the_prediction() {
    grid(KeyKind::Uuid);
}

#[test]
fn keys_with_a_common_prefix_meet_the_prediction() {
    grid(KeyKind::CommonPrefix);
}

#[test]
fn all_kinds_of_keys_are_in_the_grid() {
    // A sixth kind needs a test of its own above.
    assert_eq!(KeyKind::ALL.len(), 5);
}

#[test]
#[ignore = "slow: run with cargo xtask test --all"]
fn ten_million_keys_meet_the_prediction() {
    for kind in KeyKind::ALL {
        for p in RATES {
            let mut bloom = Bloom::new(10_000_000, p).unwrap();
            insert(&mut bloom, kind, 10_000_000);
            check_rate(&bloom, kind, 10_000_000, probes_for(p, 20_000_000));
        }
    }
}

/// Not only round numbers of bits: every size in a window, even and odd, prime and not.
#[test]
fn every_number_of_bits_in_a_window_meets_the_prediction() {
    let (n, probes, trials) = (1000, 7, 20_000);
    let (mut hits, mut expected) = (0, 0.0);
    for bits in 9_500..9_756 {
        let spec = Spec::new().with_bits(bits).with_probes(probes).with_capacity(n);
        let mut bloom = Bloom::from_spec(&spec).unwrap();
        insert(&mut bloom, KeyKind::Sequential, n);
        let measured = ask(&bloom, KeyKind::Sequential, ABSENT, trials);
        let rate = predicted(&bloom, n);
        // 1% of 20,000: five deviations of the count and of the instance, in the exact rule.
        let rho = math::fpr_deviation(bits, n as f64, probes);
        assert!(measured.agrees_with(rate, rho, SIGMAS), "{bits} bits: {measured:?}, predicted {rate}");
        (hits, expected) = (hits + measured.hits, expected + rate * trials as f64);
    }
    // All filters hash alike, so their errors are not independent: the sum only rules out a bias.
    assert!((hits as f64 / expected - 1.0).abs() < 0.1, "{hits} hits, {expected} predicted");
}

/// Keyed hashing is held to the same rate.
#[test]
fn a_keyed_filter_meets_the_prediction() {
    let hashing = Hashing::Keyed(mayhap::Secret::new([7; 16]));
    let mut bloom = Bloom::from_spec(&Spec::sized(100_000, 0.01).with_hashing(hashing)).unwrap();
    insert(&mut bloom, KeyKind::Sequential, 100_000);
    check_rate(&bloom, KeyKind::Sequential, 100_000, 1_000_000);
}

// The acceptance experiments.

/// 9,585,058 bits and 7 probes: what Guava takes for a million keys at 1%.
fn million(range: std::ops::Range<u64>) -> Bloom {
    let spec = Spec::new().with_capacity(1_000_000).with_bits(9_585_058).with_probes(7);
    let mut bloom = Bloom::from_spec(&spec).unwrap();
    bloom.extend(range);
    bloom
}

#[test]
fn blm_1_a_million_keys_at_one_percent() {
    let bloom = million(0..1_000_000);
    check_rate(&bloom, KeyKind::Sequential, 1_000_000, 4_000_000);
    let measured = ask(&bloom, KeyKind::Sequential, ABSENT, 4_000_000);
    assert!(measured.agrees_with(0.01004, 0.0012, 4.0), "{measured:?}");
    assert!((bloom.fill() - 0.5183).abs() < 0.0005, "{}", bloom.fill());
    assert!((bloom.estimated_len() - 1e6).abs() < 1040.0, "{}", bloom.estimated_len());
    // The rate that the filter reports of itself, from its fill.
    assert!(measured.agrees_with(bloom.fpr(), 0.0, 4.0), "{measured:?}, reported {}", bloom.fpr());
}

#[test]
fn blm_2_ten_million_keys_at_one_in_a_hundred_thousand() {
    let mut bloom = Bloom::new(10_000_000, 1e-5).unwrap();
    assert_eq!((bloom.bits(), bloom.probes()), (239_626_460, 17));
    insert(&mut bloom, KeyKind::Sequential, 10_000_000);
    let measured = ask(&bloom, KeyKind::Sequential, ABSENT, 20_000_000);
    assert!(measured.agrees_with(1.0019e-5, 0.002, 4.0), "{measured:?}");
}

/// Many probes in few bits: where schemes that derive their positions badly give themselves away. The
/// rate of independent hashes is 1.0e-6, plain double hashing has 50 to 380 times as much.
#[test]
fn blm_3_a_tiny_filter_with_twenty_probes() {
    let mut hits = 0;
    for seed in 0..40 {
        let spec = Spec::new().with_bits(2876).with_probes(20).with_hashing(Hashing::Xxh3 { seed });
        let mut bloom = Bloom::from_spec(&spec).unwrap();
        bloom.extend(0..100u64);
        assert!((0..100u64).all(|key| bloom.contains(key)));
        hits += ask(&bloom, KeyKind::Sequential, ABSENT, 1_000_000).hits;
    }
    let all = Proportion { hits, trials: 40_000_000 };
    assert!(all.rate().unwrap() <= 3e-6, "{all:?}");
    // And not fewer than a filter of that fill must have: 1.0e-6 gives 40, and 10 have a chance of 1e-8.
    assert!(hits > 10, "{all:?}");
}

#[test]
fn blm_4_union_and_intersection() {
    let (a, b) = (million(0..600_000), million(400_000..1_000_000));
    let union = a.estimated_union_len(&b).unwrap();
    let common = a.estimated_intersection_len(&b).unwrap();
    assert!((union - 1e6).abs() < 1100.0, "{union}");
    assert!((common - 200_000.0).abs() < 1500.0, "{common}");

    let mut merged = a.clone();
    merged.merge(&b).unwrap();
    assert!(merged.words() == million(0..1_000_000).words(), "not the filter of the union");
    assert_eq!(merged.estimated_len(), union);

    let mut both = a.clone();
    both.intersect(&b).unwrap();
    assert!((400_000..600_000u64).all(|key| both.contains(key)));
    let fresh = million(400_000..600_000);
    assert!(both.fpr() <= a.fpr().min(b.fpr()) && both.fpr() >= fresh.fpr());
    // The ones that both have by chance are taken for keys: nearly half as many again.
    let naive = both.estimated_len();
    assert!((naive - 290_800.0).abs() < 1500.0, "{naive}");
}

#[test]
fn blm_5_the_sizing_table() {
    for (n, p, bits, probes, rate, mebibytes) in [
        (1_000_000, 0.01, 9_585_059, 7, 0.010_039, 1.14),
        (10_000_000, 1e-5, 239_626_460, 17, 1.0019e-5, 28.57),
        (10_000_000, 0.03, 72_984_409, 5, 0.030_004, 8.70),
        (1_000_000, 1e-3, 14_377_588, 10, 1.0002e-3, 1.71),
        (1_000_000_000, 0.01, 9_585_058_378, 7, 0.010_039, 1142.6),
    ] {
        let size = Spec::sized(n, p).bloom().unwrap();
        assert_eq!((size.bits, size.probes), (bits, probes), "{n} keys at {p}");
        assert!((size.fpr / rate - 1.0).abs() < 1e-3, "{n} keys at {p}: {}", size.fpr);
        let mib = bits as f64 / 8.0 / 1024.0 / 1024.0;
        assert!((mib / mebibytes - 1.0).abs() < 5e-3, "{n} keys at {p}: {mib} MiB");
    }
    // Guava truncates, and the essay's class takes one probe fewer.
    assert_eq!(math::bloom_bits_guava(1_000_000, 0.01), 9_585_058);
    assert_eq!(math::bloom_probes(0.01, ProbesRule::Down), 6);
}

/// A filter made for 1% and given more keys, or fewer.
#[test]
fn an_over_full_filter_errs_as_predicted() {
    let n = 1_000_000;
    let mut bloom = Bloom::new(n, 0.01).unwrap();
    let mut inserted = 0;
    for (share, rate) in
        [(0.5, 2.51e-4), (1.0, 0.010_04), (1.25, 0.0276), (1.5, 0.0579), (2.0, 0.1575), (3.0, 0.436)]
    {
        let keys = (share * n as f64) as u64;
        bloom.extend(inserted..keys);
        inserted = keys;
        let predicted = math::bloom_fpr(bloom.bits(), keys as f64, bloom.probes());
        assert!((predicted / rate - 1.0).abs() < 3e-3, "{share}: {predicted}");
        check_rate(&bloom, KeyKind::Sequential, keys, 1_000_000);
        assert_eq!(bloom.report().over_capacity(), share > 1.0, "{share}");
        assert_eq!(bloom.inserted(), Some(keys));
        let deviation = math::estimated_len_deviation(bloom.bits(), keys as f64, bloom.probes());
        let estimate = bloom.estimated_len();
        assert!((estimate - keys as f64).abs() < SIGMAS * deviation, "{share}: {estimate}, sd {deviation}");
        let fill = math::expected_fill(bloom.bits(), keys as f64, bloom.probes());
        let spread = math::fill_deviation(bloom.bits(), keys as f64, bloom.probes());
        assert!((bloom.fill() - fill).abs() < SIGMAS * spread, "{share}: {}, expected {fill}", bloom.fill());
    }
}

/// From empty to saturated, the estimates stay sane.
#[test]
fn estimates_hold_from_empty_to_full() {
    let mut bloom = Bloom::with_bits(1000, 3).unwrap();
    assert_eq!((bloom.estimated_len(), bloom.fill(), bloom.fpr()), (0.0, 0.0, 0.0));
    assert_eq!(bloom.measure_fpr(0..100u64), Measured { trials: 100, hits: 0 });
    assert_eq!(bloom.measure_fpr(std::iter::empty::<u64>()).rate(), None);
    let mut last = 0.0;
    for key in 0..5000u64 {
        bloom.insert(key);
        bloom.insert(key);
        assert!(bloom.estimated_len() >= last, "the estimate falls");
        assert!((0.0..=1.0).contains(&bloom.fpr()) && (0.0..=1.0).contains(&bloom.fill()));
        last = bloom.estimated_len();
    }
    // 15,000 throws into 1000 bits leave one free with a chance of 3e-4.
    assert_eq!((bloom.fill(), bloom.fpr(), bloom.estimated_len()), (1.0, 1.0, f64::INFINITY));
    let report = bloom.report();
    assert_eq!(report.estimated_len, None);
    assert!(report.over_capacity());
    assert_eq!(bloom.measure_fpr(5000..5100u64).rate(), Some(1.0));
}

/// Ten times the same keys: ten times the calls, but neither more keys nor a higher rate.
#[test]
fn repeats_do_not_count_as_keys() {
    struct Visit(u32, u32);
    impl Key for Visit {
        fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
            then(&[self.0.to_le_bytes(), self.1.to_le_bytes()].concat())
        }
    }
    let mut bloom = Bloom::new(10_000, 0.01).unwrap();
    for round in 0..10 {
        bloom.extend((0..10_000).map(|user| Visit(user, 7)));
        assert_eq!(bloom.inserted(), Some(10_000 * (round + 1)));
    }
    let deviation = math::estimated_len_deviation(bloom.bits(), 1e4, bloom.probes());
    assert!((bloom.estimated_len() - 1e4).abs() < SIGMAS * deviation, "{}", bloom.estimated_len());
    assert!(!bloom.report().over_capacity());
}
