//! The family `scalable`: sizes and rates that the experiments do not check, growth, merging, and crafted files.
//!
//! The measured rates of SCL-1 to SCL-4 pass within 4 standard deviations, of the count and of 2% from one seed to the
//! next (a chance of 6e-5 each that a right filter fails, drawn once: the seeds are fixed).

use mayhap::{
    AnyFilter, Bloom, DecodeError, Full, Hashing, Insertion, Knob, Limit, Mismatch, Parameter, Scalable,
    Secret, Spec, SpecError, Summing, Value, encode, math, open,
};
use mayhap_eval::{ABSENT, Proportion, Random};

use crate::{crafted, many};

fn filled(spec: &Spec, keys: impl IntoIterator<Item = u64>) -> Scalable {
    let mut filter = Scalable::from_spec(spec).unwrap();
    filter.insert_all(&keys.into_iter().collect::<Vec<_>>()).unwrap();
    filter
}

fn ask(filter: &Scalable, keys: std::ops::Range<u64>) -> Proportion {
    let (mut hits, mut found) = (Vec::new(), 0);
    for start in keys.clone().step_by(1 << 20) {
        let part: Vec<u64> = (start..keys.end.min(start + (1 << 20))).collect();
        hits.clear();
        filter.contains_each(&part, &mut hits);
        found += hits.iter().filter(|&&hit| hit).count() as u64;
    }
    Proportion { hits: found, trials: keys.end - keys.start }
}

fn ask_absent(filter: &Scalable, count: u64) -> Proportion {
    ask(filter, ABSENT..ABSENT + count)
}

fn holds_all(filter: &Scalable, keys: std::ops::Range<u64>) -> bool {
    let asked = ask(filter, keys);
    asked.hits == asked.trials
}

// Acceptance experiments: 10^6 keys into a filter that begins with 10^4.

/// To a hundred times the capacity, at 0.1%: the rate of all layers together is below that.
fn a_hundred_times_the_capacity(capacity: u64) {
    let mut filter = Scalable::new(capacity, 0.001).unwrap();
    let keys: Vec<u64> = (0..100 * capacity).collect();
    for part in keys.chunks(capacity as usize) {
        filter.insert_all(part).unwrap();
    }
    assert!(holds_all(&filter, 0..100 * capacity));
    let measured = ask_absent(&filter, 10_000_000);
    // The upper end of what the true rate can be, at a confidence of 1 - 1e-6.
    let (_, high) = measured.clopper_pearson(1.0 - 1e-6).unwrap();
    assert!(high <= 0.001, "{measured:?}: up to {high}");
    assert!(measured.agrees_with(filter.fpr(), 0.0, 5.0), "{measured:?}, reported {}", filter.fpr());
    assert_eq!(filter.layers().len(), 7);
}

#[test]
fn a_hundred_times_ten_thousand_keys_keep_the_rate() {
    a_hundred_times_the_capacity(10_000);
}

#[test]
#[ignore = "slow: run with cargo xtask test --all"]
fn a_hundred_times_a_hundred_thousand_keys_keep_the_rate() {
    a_hundred_times_the_capacity(100_000);
}

// Growth.

#[test]
fn layers_have_the_sizes_and_rates_of_the_paper() {
    let filter = filled(&Spec::sized(1000, 0.01).with_growth(3).with_tightening(0.6), 0..100_000);
    for (number, layer) in filter.layers().iter().enumerate() {
        let rate = 0.01 * 0.4 * 0.6f64.powi(number as i32);
        assert_eq!(layer.capacity, 1000 * 3u64.pow(number as u32));
        assert_eq!(layer.probes, (-rate.log2()).ceil() as u32);
        let half_full = layer.capacity as f64 * f64::from(layer.probes) / std::f64::consts::LN_2;
        assert!((layer.bits as f64 - half_full).abs() <= 1.0);
        assert!(layer.keys == layer.capacity || number == filter.layers().len() - 1);
        assert!(layer.keys < layer.capacity || (layer.fill - 0.5).abs() < 0.03, "{layer:?}");
    }
    let taken: u64 = filter.layers().iter().map(|layer| layer.keys).sum();
    // Those that were taken for repeats are the false positives on the way.
    assert!((99_000..100_000).contains(&taken));
    assert_eq!(filter.inserted(), Some(100_000));
    assert!((filter.estimated_len() / taken as f64 - 1.0).abs() < 0.01);
}

/// Beside a Bloom filter of the right size, for 10 to 10,000 times the first capacity, at 1%.
#[test]
fn the_memory_is_that_of_the_paper_on_average() {
    for (growth, tightening, expected) in [
        (2, 0.5, 3.23),
        (2, 0.6, 2.94),
        (2, 0.8, 2.52),
        (2, 0.85, 2.5),
        (2, 0.9, 2.5),
        (4, 0.5, 4.02),
        (4, 0.85, 3.57),
    ] {
        let bits = |keys: f64| {
            let (mut bits, mut room, mut capacity, mut rate) = (0.0, 0.0, 1000.0, 0.01 * (1.0 - tightening));
            while room < keys {
                bits += capacity * f64::from(math::bloom_probes(rate, math::ProbesRule::Up))
                    / std::f64::consts::LN_2;
                room += capacity;
                (capacity, rate) = (capacity * f64::from(growth), rate * tightening);
            }
            bits / math::bloom_bits(keys as u64, 0.01) as f64
        };
        let keys = (0..=3000).map(|step| 10_000.0 * 10f64.powf(f64::from(step) / 1000.0));
        let average = keys.map(bits).sum::<f64>() / 3001.0;
        assert!((average / expected - 1.0).abs() < 0.015, "{growth}, {tightening}: {average}");
    }
}

#[test]
fn repeats_do_not_make_it_grow() {
    let mut filter = Scalable::new(100, 0.001).unwrap();
    for _ in 0..1000 {
        filter.insert_all(&(0..100u64).collect::<Vec<_>>()).unwrap();
    }
    assert_eq!((filter.layers().len(), filter.inserted()), (1, Some(100_000)));
    assert_eq!(filter.insert(0u64), Ok(Insertion::Perhaps));
}

/// Each layer alone errs as it should, and not where another errs: the rate of both is that of independent ones.
#[test]
fn layers_err_independently() {
    let layers = |count: u64| filled(&Spec::sized(20_000, 0.5).with_growth(1).with_tightening(0.9), 0..count);
    let filter = layers(60_000);
    let expected = math::compounded_fpr(filter.layers().iter().map(|layer| layer.fpr_now));
    let measured = ask_absent(&filter, 2_000_000);
    assert!(filter.layers().len() == 3 && expected > 0.05);
    assert!(measured.agrees_with(expected, 0.0, 5.0), "{measured:?}, expected {expected}");
}

#[test]
fn a_filter_that_does_not_grow_says_that_it_is_full() {
    let spec = Spec::redisbloom(1000, 0.01, 0);
    assert_eq!(spec.scalable().unwrap().layer_fpr, 0.01);
    let mut filter = Scalable::from_spec(&spec).unwrap();
    let keys: Vec<u64> = (0..2000).collect();
    let full = filter.insert_all(&keys).unwrap_err();
    assert_eq!(full.limit, Limit::Keys { capacity: 1000 });
    // Those that it took for repeats found room too.
    assert!((1000..1050).contains(&full.inserted), "{full:?}");
    assert_eq!(filter.inserted(), Some(full.inserted));
    let before = filter.to_bytes();
    assert_eq!(filter.insert(keys[full.inserted as usize]), Err(Full { inserted: 0, ..full }));
    assert_eq!(filter.to_bytes(), before);
    assert_eq!(filter.insert(0u64), Ok(Insertion::Perhaps));
    assert!(holds_all(&filter, 0..full.inserted) && filter.fpr() < 0.0101);
    assert_eq!(full.to_string(), "the filter is full: it was made for 1000 keys; build a larger one");
}

#[test]
fn growth_ends_somewhere() {
    let mut filter = Scalable::from_spec(&Spec::sized(1, 0.01).with_growth(1)).unwrap();
    let mut inserted = 0;
    let full = loop {
        match filter.insert(inserted) {
            Ok(_) => inserted += 1,
            Err(full) => break full,
        }
    };
    assert_eq!(full, Full { limit: Limit::Layers { most: 1024 }, inserted: 0 });
    assert!(holds_all(&filter, 0..inserted) && filter.layers().len() == 1024);
    assert!(filter.layers().iter().all(|layer| layer.probes <= 64));
    let again = Scalable::from_bytes(&filter.to_bytes()).unwrap();
    assert_eq!(again, filter);
}

/// One insert takes no more memory than the layers before justify, whatever growth the file claims.
#[test]
fn a_layer_is_at_most_64_times_as_large_as_those_before() {
    // 16 MiB are always granted.
    for (capacity, most) in [(1000, 16 << 23), (1 << 18, 64 * ((1 << 18) * 15))] {
        let mut filter = filled(&Spec::sized(capacity, 0.01).with_growth(32_768), 0..capacity);
        let mut key = capacity;
        while filter.layers().len() == 1 {
            filter.insert(key).unwrap();
            key += 1;
        }
        let [first, second] = filter.layers()[..] else { panic!("two layers") };
        assert!(second.bits <= most.max(16 << 23) && second.bits > 32 * first.bits, "{second:?}");
        assert!(second.capacity < 32_768 * capacity);
        assert!(holds_all(&filter, 0..key));
    }
}

#[test]
fn redisbloom_parameters() {
    let filter = filled(&Spec::redisbloom(1000, 0.01, 2), 0..7000);
    let probes: Vec<u32> = filter.layers().iter().map(|layer| layer.probes).collect();
    // p/2 takes 8, and each halving one more.
    assert_eq!(probes, [8, 9, 10]);
    assert_eq!((filter.growth(), filter.tightening()), (2, 0.5));
}

// Specs.

#[test]
fn what_cannot_be_had_is_refused_with_the_way_out() {
    let sized = Spec::sized(1000, 0.01);
    let refused = |spec: Spec, text: &str| {
        let error = spec.scalable().expect_err(text).to_string();
        assert!(error.contains(text), "{error}");
    };
    refused(sized.with_growth(32_769), "growth must be 0 to 32768, not 32769; 0 does not grow");
    for tightening in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY, 0.999] {
        refused(sized.with_tightening(tightening), "tightening must be 0.01 to 0.99, not");
    }
    refused(sized.with_probes(7), "scalable takes no probes; bloom, blocked, counting");
    refused(Spec::sized(1000, 1e-13), "must be at least 1e-12 in this family, not 1e-13; use bloom");
    refused(
        sized.with_bits(10_000),
        "10000 bits cannot give that false-positive rate for so many keys; it takes 14427",
    );
    refused(Spec::new().with_capacity(1000), "too little");
    for (knob, family, other) in [
        (Knob::Growth, "bloom", sized.with_growth(2).bloom().map(drop)),
        (Knob::Tightening, "windowed", sized.with_tightening(0.5).windowed().map(drop)),
    ] {
        assert_eq!(other, Err(SpecError::NotFor { knob, family, others: &["scalable"] }));
    }
    // Any two numbers: bits are those of the first layer.
    let whole = sized.scalable().unwrap();
    assert_eq!((whole.probes, whole.bits), (10, 14_427));
    let by_bits = Spec::new().with_capacity(1000).with_bits(14_500).scalable().unwrap();
    assert_eq!((by_bits.probes, by_bits.bits), (10, 14_427));
    assert!((by_bits.fpr_asked * 0.15 * 1024.0 - 1.0).abs() < 1e-9);
    assert_eq!(sized.with_bits(20_000).scalable(), Ok(whole));
    assert_eq!(Spec::new().with_fpr(0.01).with_bits(14_427).scalable().unwrap().capacity, 1000);
    assert!(matches!(
        Spec::new().with_capacity(1000).with_bits(2000).scalable(),
        Err(SpecError::Unreachable { .. })
    ));
}

// Merging.

#[test]
fn layers_with_room_for_both_become_one() {
    let spec = Spec::sized(1000, 0.01);
    let mut ours = filled(&spec, 0..400);
    ours.merge(&filled(&spec, 300..800)).unwrap();
    assert!(holds_all(&ours, 0..800));
    assert_eq!((ours.layers().len(), ours.inserted()), (1, None));
    // The same again, and nothing, change nothing.
    let before = ours.to_bytes();
    ours.merge(&filled(&spec, 300..800)).unwrap();
    ours.merge(&Scalable::from_spec(&spec).unwrap()).unwrap();
    ours.merge(&ours.clone()).unwrap();
    assert_eq!(ours.to_bytes(), before);
}

#[test]
fn other_layers_come_to_its_own_as_long_as_the_rate_allows() {
    let spec = Spec::sized(1000, 0.01);
    let (mut ours, theirs) = (filled(&spec, 0..3000), filled(&spec, 10_000..12_500));
    ours.merge(&theirs).unwrap();
    assert!(holds_all(&ours, 0..3000) && holds_all(&ours, 10_000..12_500));
    assert_eq!(ours.layers().len(), 4);
    assert!(ours.fpr() <= 0.01 && ours.fpr_at_capacity() <= 0.01);
    // It goes on growing, with room in older layers first, and keeps its rate.
    ours.insert_all(&(20_000..120_000u64).collect::<Vec<_>>()).unwrap();
    assert!(ours.layers().iter().rev().skip(1).all(|layer| layer.keys == layer.capacity));
    assert!(holds_all(&ours, 20_000..120_000) && holds_all(&ours, 0..3000));
    let measured = ask_absent(&ours, 2_000_000);
    assert!(measured.clopper_pearson(1.0 - 1e-6).unwrap().1 <= 0.01, "{measured:?}");
    assert!(ours.fpr_at_capacity() <= 0.01);
    assert_eq!(Scalable::from_bytes(&ours.to_bytes()).unwrap(), ours);
    // Two that have grown far do not fit under one rate.
    let before = ours.to_bytes();
    let error = ours.merge(&filled(&spec, 200_000..300_000)).unwrap_err();
    let Mismatch::Rate { asked: 0.01, sum } = error else { panic!("{error}") };
    assert!(sum > 0.01 && sum < 0.02);
    assert!(
        error.to_string().starts_with("the layers of both together have a false-positive rate of up to 0.01")
    );
    assert_eq!(ours.to_bytes(), before);
}

#[test]
fn filters_that_hash_differently_do_not_merge() {
    let spec = Spec::sized(1000, 0.01);
    let mut ours = filled(&spec, 0..100);
    let theirs = filled(&spec.with_hashing(Hashing::Xxh3 { seed: 7 }), 0..100);
    assert_eq!(
        ours.merge(&theirs),
        Err(Mismatch::Differ { what: Parameter::Seed, ours: Value::Id(0), theirs: Value::Id(7) })
    );
    // Other sizes and rules are no obstacle.
    ours.merge(&filled(&Spec::redisbloom(50, 0.001, 4), 500..600)).unwrap();
    assert!(holds_all(&ours, 0..100) && holds_all(&ours, 500..600));
}

// Batches.

#[test]
fn many_keys_at_once_are_as_one_by_one() {
    let integers: Vec<u64> = (0..20_000).map(|index| index * 7 % 15_000).collect();
    let absent: Vec<u64> = (ABSENT..ABSENT + 5000).collect();
    // The last is out of cache.
    for capacity in [10, 1000, 3_000_000] {
        let empty = Scalable::new(capacity, 0.01).unwrap();
        many::equal_single(&empty, &integers, &absent);
        // Layers with room that are not the last.
        let mut merged = filled(&Spec::sized(capacity, 0.01), 50_000..50_015);
        if merged.merge(&filled(&Spec::sized(capacity, 0.01), 60_000..60_017)).is_ok() {
            many::equal_single(&merged, &integers, &absent);
        }
    }
    let texts: Vec<String> = (0..3000).map(|index| format!("https://example.org/{index}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    many::equal_single(&Scalable::new(100, 0.01).unwrap(), &texts[..2000], &texts[2000..]);
}

// Files.

#[test]
fn a_grown_filter_survives_its_file() {
    let secret = Secret::new([5; 16]);
    let mut filter = filled(&Spec::sized(100, 0.01).with_hashing(Hashing::Keyed(secret)), 0..5000);
    let again = Scalable::from_bytes_keyed(&filter.to_bytes(), &secret).unwrap();
    assert_eq!(again, filter);
    assert_eq!((again.layers(), again.report()), (filter.layers(), filter.report()));
    let mut again = again;
    for key in 5000..20_000u64 {
        assert_eq!(again.insert(key), filter.insert(key));
    }
    assert_eq!(again, filter);
    assert!(matches!(Scalable::from_bytes(&filter.to_bytes()), Err(DecodeError::SecretNeeded { .. })));
    filter.clear();
    assert_eq!(
        filter,
        Scalable::from_spec(&Spec::sized(100, 0.01).with_hashing(Hashing::Keyed(secret))).unwrap()
    );
    assert!(Scalable::from_bytes(&Bloom::new(10, 0.1).unwrap().to_bytes()).is_err());
}

#[test]
fn crafted_parameters_are_refused() {
    let filter = filled(&Spec::sized(100, 0.01), 0..250);
    let file = filter.to_bytes();
    assert_eq!(filter.layers().len(), 2);
    let refused = |at: usize, bytes: &[u8]| {
        Scalable::from_bytes(&crafted::with(&file, crafted::PARAMS + at, bytes)).expect_err("crafted")
    };
    let value = |field, found| DecodeError::Value { field, found };
    for size in [0, (1 << 48) + 1, u64::MAX] {
        assert_eq!(refused(0, &size.to_le_bytes()), value("bits of all layers", size));
        assert_eq!(refused(8, &size.to_le_bytes()), value("capacity of the first layer", size));
    }
    assert_eq!(refused(0, &1u64.to_le_bytes()), value("bits of all layers", 1));
    for (at, field) in
        [(16, "asked rate"), (24, "rate that is left"), (32, "tightening"), (88, "rate of a layer")]
    {
        for rate in [-0.1, 1.1, f64::NAN] {
            assert_eq!(refused(at, &f64::to_le_bytes(rate)), value(field, rate.to_bits()));
        }
    }
    assert_eq!(refused(40, &40_000u32.to_le_bytes()), value("growth", 40_000));
    for layers in [0u32, 1025, u32::MAX] {
        assert_eq!(refused(44, &layers.to_le_bytes()), value("layers", layers.into()));
    }
    assert!(matches!(refused(44, &1u32.to_le_bytes()), DecodeError::Length { field: "parameters", .. }));
    assert!(matches!(refused(44, &3u32.to_le_bytes()), DecodeError::Truncated { .. }));
    // The first layer: number, probes, bits, capacity, keys, set bits.
    assert_eq!(refused(48, &5u32.to_le_bytes()), value("layers", 2));
    for probes in [0u32, 65] {
        assert_eq!(refused(52, &probes.to_le_bytes()), value("probes of a layer", probes.into()));
    }
    for bits in [0u64, (1 << 48) + 1, u64::MAX] {
        assert_eq!(refused(56, &bits.to_le_bytes()), value("bits of a layer", bits));
    }
    assert_eq!(refused(64, &0u64.to_le_bytes()), value("capacity of a layer", 0));
    assert_eq!(refused(72, &101u64.to_le_bytes()), value("keys of a layer", 101));
    assert_eq!(refused(80, &u64::MAX.to_le_bytes()), value("set bits of a layer", u64::MAX));
    // 1443 bits and 3319 have the ends of their last words free.
    assert_eq!(filter.layers()[0].bits % 64, 35);
    let end = 4096 + filter.layers()[0].bits.div_ceil(64) as usize * 8 - 1;
    let padded = crafted::with(&file, end, &[0x80]);
    assert_eq!(Scalable::from_bytes(&padded).unwrap_err(), DecodeError::Padding { field: "end of a layer" });
}

#[test]
fn damage_is_refused_or_harmless() {
    let file = filled(&Spec::sized(20, 0.01), 0..500).to_bytes();
    let (mut random, mut refused, mut opened) = (Random::new(1), 0, 0);
    for round in 0..5000 {
        let place = if round % 2 == 0 {
            80 + random.below(350)
        } else {
            4096 + random.below(file.len() as u64 - 4096)
        };
        let mut byte = [file[place as usize]];
        byte[0] ^= 1 << random.below(8);
        let damaged = crafted::with(&file, place as usize, &byte);
        for (all, outcome) in
            [(true, open(damaged.clone().into(), None)), (false, crafted::open_by_header(&damaged))]
        {
            let Ok(mut filter) = outcome else {
                refused += 1;
                continue;
            };
            opened += 1;
            let digests: Vec<_> = (0..60u64).map(|key| filter.hashing().digest_of(key)).collect();
            let inserted = filter.as_insert().unwrap().insert_batch(&digests, &mut Vec::new());
            assert!(inserted.is_err() || digests.iter().all(|&digest| filter.contains_digest(digest)));
            assert!(filter.report().fpr_now >= 0.0 && !filter.details().layers.is_empty());
            let again = encode(&*filter, Summing::Payload).to_vec();
            // Who looked at the header only believes it, and writes it again.
            assert!(
                !all || open(again.into(), None).is_ok(),
                "what was opened and written cannot be opened again"
            );
        }
    }
    assert!(refused > 1000 && opened > 1000, "{refused} refused, {opened} opened");
}
