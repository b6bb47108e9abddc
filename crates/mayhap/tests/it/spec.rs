//! What is requested of a new filter, and what is granted.

use mayhap::math::MAX_PROBES;
use mayhap::sizes::{MAX_BITS, MIN_FPR};
use mayhap::{CountingRule, FAMILIES, Knob, Layout, Spec, SpecError, Width, math};

/// As floating-point numbers 2^63 - 1 and 2^63 are the same, and one of them is too many names.
#[test]
fn a_table_that_cannot_double_as_often_as_it_would_like_has_the_most_names() {
    for (capacity, fpr) in [(10_000, 1e-9), (300_000, 1e-9), (1024, 1e-12), (1 << 30, 1e-9)] {
        let size = Spec::sized(capacity, fpr).table().expect("a size");
        assert!(size.capacity >= capacity && size.fpr <= fpr, "{size:?}");
        assert_eq!(size.told_apart(), (1 << 63) - 1);
    }
}

#[test]
fn any_two_or_three_numbers_give_the_rest() {
    let full = Spec::sized(1_000_000, 0.01).bloom().unwrap();
    assert_eq!((full.bits, full.probes, full.fpr_asked), (9_585_059, 7, 0.01));
    assert!((full.fpr - 0.010039).abs() < 1e-6);
    let solve = |spec: Spec| spec.bloom().unwrap();
    let again = [
        Spec::new().with_capacity(1_000_000).with_bits(9_585_059),
        Spec::new().with_capacity(1_000_000).with_bits(9_585_059).with_probes(7),
        Spec::new().with_bits(9_585_059).with_fpr(0.01),
    ];
    for spec in again {
        let solved = solve(spec);
        assert_eq!((solved.bits, solved.probes, solved.capacity), (9_585_059, 7, 1_000_000), "{spec:?}");
    }
    let by_probes = solve(Spec::sized(1_000_000, 0.01).with_probes(4));
    assert!(by_probes.fpr <= 0.01 && by_probes.bits > full.bits);
    assert!(
        solve(Spec::new().with_capacity(1_000_000).with_bits(by_probes.bits - 1).with_probes(4)).fpr > 0.01
    );
    let capacity = solve(Spec::new().with_bits(by_probes.bits).with_fpr(0.01).with_probes(4)).capacity;
    assert_eq!(capacity, 1_000_000);
    let roomy = solve(Spec::sized(1_000_000, 0.01).with_bits(20_000_000));
    assert!(roomy.probes < 7 && roomy.fpr <= 0.01, "the fewest probes that meet the rate");
    let half = solve(Spec::new().with_capacity(1000).with_probes(10));
    assert!((half.fpr * 1024.0 - 1.0).abs() < 1e-2);
    let half = solve(Spec::new().with_bits(14_427).with_probes(10));
    assert!((999..=1001).contains(&half.capacity));
}

#[test]
fn a_foldable_size_is_at_most_one_percent_larger() {
    for spec in [
        Spec::sized(1_000_000, 0.01),
        Spec::sized(1_000_000, 0.01).with_probes(5),
        Spec::sized(1_000_000, 0.01).with_bits(12_345_678),
        Spec::new().with_bits(12_345_678).with_fpr(0.01),
    ] {
        let (plain, foldable) = (spec.bloom().unwrap(), spec.foldable().bloom().unwrap());
        assert!(foldable.bits > plain.bits && foldable.bits - plain.bits <= plain.bits / 100);
        assert_eq!(foldable.bits, math::foldable_bits(plain.bits));
        assert_eq!((foldable.probes, foldable.capacity), (plain.probes, plain.capacity));
        assert!(foldable.fpr < plain.fpr);
    }
    // What is refused is refused before and after it is rounded up.
    for bits in [MAX_BITS - 1, MAX_BITS + 1, u64::MAX] {
        let refused = Spec::new().with_bits(bits).with_fpr(0.01).foldable().bloom();
        let is_requested = bits > MAX_BITS;
        assert_eq!(matches!(refused, Err(SpecError::TooLarge { .. })), !is_requested);
        assert_eq!(matches!(refused, Err(SpecError::Range { knob: Knob::Bits, .. })), is_requested);
    }
    assert!(matches!(Spec::sized(1 << 48, MIN_FPR).foldable().bloom(), Err(SpecError::TooLarge { .. })));
}

#[test]
fn nonsense_is_refused_by_name_with_limit_and_way_out() {
    let fpr = |p| Spec::sized(1000, p);
    let cases = [
        (fpr(f64::NAN), "2^-64 (5.4e-20), not NaN"),
        (fpr(f64::INFINITY), ", not inf"),
        (fpr(f64::NEG_INFINITY), ", not -inf"),
        (fpr(0.0), "for no errors at all use an exact family"),
        (fpr(1.0), "must be below 1 and at least 2^-64 (5.4e-20), not 1"),
        (fpr(5.0), "did you mean 5% (0.05)?"),
        (fpr(-0.01), ", not -0.01"),
        (fpr(1e-300), ", not 1e-300"),
        (fpr(5.4e-20), "at least 2^-64"),
        (Spec::sized(0, 0.01), "capacity must be 1 to 281474976710656, not 0"),
        (
            Spec::sized(1 << 63, 0.01),
            "capacity must be 1 to 281474976710656, not 9223372036854775808; split the set",
        ),
        (Spec::sized(u64::MAX, 0.01), "split the set"),
        (Spec::sized(1 << 48, 0.01), "the limit is 281474976710656"),
        (Spec::new().with_bits(0).with_fpr(0.01), "bits must be 1 to 281474976710656, not 0"),
        (Spec::new().with_bits(u64::MAX).with_fpr(0.01), "not 18446744073709551615"),
        (Spec::sized(1000, 0.01).with_probes(0), "probes must be 1 to 64, not 0"),
        (Spec::sized(1000, 0.01).with_probes(65), "probes must be 1 to 64, not 65"),
        (Spec::new(), "too little to size a filter"),
        (Spec::new().with_capacity(5), "too little to size a filter"),
        (Spec::new().with_bits(5), "too little to size a filter"),
        (Spec::new().with_fpr(0.5).with_probes(3), "too little to size a filter"),
        (Spec::sized(1000, 0.01).with_bits(9586).with_probes(7), "leave out the one to be computed"),
        (Spec::sized(1000, 0.01).with_bits(5000), "5000 bits cannot give that"),
        (Spec::new().with_bits(10).with_fpr(1e-9), "it takes 44"),
        (
            Spec::sized(1000, 0.01).with_layout(Layout::Fastest),
            "bloom takes no layout; blocked, cuckoo, fuse",
        ),
    ];
    for (spec, text) in cases {
        let message = spec.bloom().expect_err(text).to_string();
        assert!(message.contains(text), "{spec:?} says: {message}");
    }
    let error = Spec::sized(1000, 0.01).with_bits(5000).bloom().unwrap_err();
    let SpecError::Unreachable { needed, .. } = error else { panic!("{error}") };
    assert!(Spec::sized(1000, 0.01).with_bits(needed).bloom().is_ok());
    assert!(Spec::sized(1000, 0.01).with_bits(needed - 1).bloom().is_err());
}

#[test]
fn the_edges_that_make_sense_are_granted() {
    for (n, p) in [(1, 0.5), (1, 0.999_999), (1, MIN_FPR), (1 << 40, 0.01), (1 << 41, MIN_FPR)] {
        let sized = Spec::sized(n, p).bloom().unwrap();
        assert!(sized.bits >= 1 && (1..=MAX_PROBES).contains(&sized.probes));
        assert!(sized.fpr <= p * 1.3 + 1e-12, "{n} keys at {p}: {sized:?}");
    }
}

#[test]
fn counters_take_the_place_of_bits() {
    let bloom = Spec::sized(1_000_000, 0.01).bloom().unwrap();
    for bits in 2..=16 {
        let sized = Spec::sized(1_000_000, 0.01).with_counter_bits(bits).counting().unwrap();
        assert_eq!((sized.cells, sized.probes, sized.fpr), (bloom.bits, bloom.probes, bloom.fpr));
        // The memory, and no bit less, gives the same back.
        let memory = bloom.bits * u64::from(bits);
        let asked = Spec::new().with_counter_bits(bits).with_capacity(1_000_000);
        assert_eq!(asked.with_bits(memory).counting().unwrap().cells, bloom.bits);
        assert_eq!(asked.with_bits(memory - 1).counting().unwrap().cells, bloom.bits - 1);
    }
    for rule in CountingRule::ALL {
        let asked = Spec::new().with_capacity(1_000_000).with_counting_rule(rule);
        for width in [None, Some(4), Some(11), Some(32)] {
            let asked = width.map_or(asked, |bits| asked.with_counter_bits(bits));
            let sized = asked.with_fpr(0.01).spectral().unwrap();
            assert_eq!((sized.cells, sized.probes, sized.rule), (bloom.bits, bloom.probes, rule));
            assert_eq!(sized.width, width.map_or(Width::Variable, Width::Fixed));
            let memory = (mayhap::family("spectral").unwrap().plan)(&asked.with_fpr(0.01)).unwrap().bits;
            assert_eq!(asked.with_bits(memory).spectral().unwrap().cells, bloom.bits);
            assert_eq!(asked.with_bits(memory - 1).spectral().unwrap().cells, bloom.bits - 1);
        }
    }
}

#[test]
fn counters_that_cannot_be_had_are_refused_with_the_way_out() {
    let sized = Spec::sized(1000, 0.01);
    let rule = sized.with_counting_rule(CountingRule::MinimumSelection);
    let refused: [(Result<(), SpecError>, &str); 11] = [
        (sized.with_counter_bits(1).counting().map(drop), "counter bits must be 2 to 16, not 1"),
        (sized.with_counter_bits(17).counting().map(drop), "counter bits must be 2 to 16, not 17"),
        (sized.with_counter_bits(3).spectral().map(drop), "counter bits must be 4 to 32, not 3"),
        (sized.with_counter_bits(33).spectral().map(drop), "must be 4 to 32"),
        (
            sized.with_counter_bits(4).bloom().map(drop),
            "bloom takes no counter bits; counting, dleft, spectral, shifting, shifting-association and \
             shifting-multiplicity do",
        ),
        (sized.with_counter_bits(4).blocked().map(drop), "blocked takes no counter bits"),
        (rule.bloom().map(drop), "bloom takes no counting rule; spectral does"),
        (rule.counting().map(drop), "counting takes no counting rule; spectral does"),
        (sized.with_layout(Layout::Fastest).counting().map(drop), "counting takes no layout"),
        (sized.with_layout(Layout::Fastest).spectral().map(drop), "spectral takes no layout"),
        (
            sized.with_bits(20_000).counting().map(drop),
            "20000 bits cannot give that false-positive rate for so many keys; it takes 38",
        ),
    ];
    for (refused, text) in refused {
        let message = refused.expect_err(text).to_string();
        assert!(message.contains(text), "{message}");
    }
    for (n, bits) in [(1u64 << 46, 4), (1 << 45, 16)] {
        let spec = Spec::sized(n, 0.01).with_counter_bits(bits);
        assert!(matches!(spec.counting(), Err(SpecError::TooLarge { limit: MAX_BITS, .. })));
        assert!(matches!(spec.spectral(), Err(SpecError::TooLarge { limit: MAX_BITS, .. })));
    }
}

#[test]
fn a_cuckoo_filter_is_sized_by_any_two_numbers() {
    // CKO: a million keys at 0.1% take 13 bits in 263,158 buckets, at 1% 10 bits.
    for (p, width, bits) in [(0.001, 13, 13_684_216), (0.01, 10, 10_526_320), (0.00186, 12, 12_631_584)] {
        let spec = Spec::sized(1_000_000, p);
        let size = spec.cuckoo().unwrap();
        assert_eq!((size.buckets, size.width, size.bits()), (263_158, width, bits));
        assert!(size.fpr <= p && size.layout == Layout::Fastest && size.fpr_asked == p);
        // Semi-sorting stores a bit less per slot, of fingerprints as long.
        let sorted = spec.with_layout(Layout::Compact).cuckoo().unwrap();
        assert_eq!((sorted.width, sorted.bits()), (width, bits - 4 * 263_158));
        let by_bits = Spec::new().with_capacity(1_000_000).with_bits(bits);
        assert_eq!(by_bits.cuckoo().unwrap().width, width);
        assert_eq!(by_bits.with_fpr(p).cuckoo().unwrap(), size);
        let fewer = Spec::sized(1_000_000, p).with_bits(bits - 1).cuckoo();
        assert_eq!(fewer, Err(SpecError::Unreachable { bits: bits - 1, needed: bits }));
        let capacity = Spec::new().with_bits(bits).with_fpr(p).cuckoo().unwrap();
        assert_eq!((capacity.width, capacity.buckets), (width, 263_158));
        assert!((1_000_000..1_000_010).contains(&capacity.capacity) && capacity.fpr <= p);
    }
}

#[test]
fn a_cuckoo_filter_has_edges_too() {
    let refused = |spec: Spec| spec.cuckoo().unwrap_err().to_string();
    assert!(refused(Spec::sized(100, 1e-10)).contains("must be at least 1."));
    assert!(refused(Spec::sized(100, 0.1).with_probes(7)).contains("cuckoo takes no probes; bloom"));
    assert!(refused(Spec::new().with_capacity(100)).contains("too little"));
    assert!(refused(Spec::new().with_bits(31).with_fpr(0.5)).contains("it takes 32"));
    assert!(refused(Spec::sized(1 << 48, 0.5)).contains("the limit is"));
    // Both halves of what the digest tells must fit it.
    assert_eq!(Spec::sized(1 << 40, 1e-6).cuckoo().unwrap().width, 23);
    assert!(refused(Spec::sized(1 << 40, 1e-8)).contains("in this family, not 1e-8"));
    for (n, p) in [(1, 0.999), (1, 1e-8), (3, 0.3), (1 << 33, 1e-6), (1000, 0.5), (50_000_000, 0.5)] {
        for layout in Layout::ALL {
            let size = Spec::sized(n, p).with_layout(layout).cuckoo().unwrap();
            assert!(size.fpr <= p && size.capacity == n, "{size:?}");
        }
    }
    // So many keys do not find room with fingerprints that would do for the rate.
    assert_eq!(Spec::sized(50_000_000, 0.5).cuckoo().unwrap().width, 7);
}

/// The search for blocks ended at the largest filter, which was then granted at whatever rate it had.
#[test]
fn a_blocked_filter_beyond_the_limit_is_refused_and_not_granted_at_a_worse_rate() {
    for layout in [Layout::Compact, Layout::Fastest] {
        for (n, p) in [(1 << 48, 0.5), (1 << 48, 1e-9), (1 << 46, 0.01)] {
            let refused = Spec::sized(n, p).with_layout(layout).blocked();
            assert!(matches!(refused, Err(SpecError::TooLarge { .. })), "{n} keys at {p}: {refused:?}");
        }
        for (n, p) in [(1 << 44, 0.01), (1 << 40, 1e-5), (1, 0.999), (10, 0.9), (1, 1e-9)] {
            let sized = Spec::sized(n, p).with_layout(layout).blocked().unwrap();
            assert!(sized.fpr <= p && sized.blocks * sized.shape.bits() <= MAX_BITS, "{sized:?}");
        }
    }
}

#[test]
fn shifting_filters_are_sized_by_any_two_or_three_numbers() {
    type Solved = Result<(u64, u64, u32, u64, f64), SpecError>;
    let families: [fn(&Spec) -> Solved; 3] = [
        |spec| spec.shifting().map(|s| (s.capacity, s.starts, s.probes, s.bits(), s.fpr)),
        |spec| spec.shifting_association().map(|s| (s.capacity, s.starts, s.probes, s.bits(), s.fpr)),
        |spec| spec.shifting_multiplicity().map(|s| (s.capacity, s.starts, s.probes, s.bits(), s.fpr)),
    ];
    for solve in families {
        for (n, p) in [(1_000_000, 0.01), (12_345, 1e-5), (1, 0.5), (1 << 40, 0.01), (7, 0.999)] {
            let (capacity, starts, probes, bits, fpr) = solve(&Spec::sized(n, p)).unwrap();
            assert!(capacity == n && bits == starts + 56 && fpr <= p, "{n} at {p}");
            // No place less, and the same from the bits.
            let by_bits = Spec::new().with_capacity(n).with_bits(bits);
            assert_eq!(solve(&by_bits.with_probes(probes)).unwrap(), (n, starts, probes, bits, fpr));
            assert!(solve(&by_bits).unwrap().4 <= p);
            if starts > 1 {
                assert!(solve(&by_bits.with_bits(bits - 1).with_probes(probes)).unwrap().4 > p);
                let refused = solve(&Spec::sized(n, p).with_bits(bits - 1));
                assert_eq!(refused, Err(SpecError::Unreachable { bits: bits - 1, needed: bits }));
            }
            let most = solve(&Spec::new().with_bits(bits).with_fpr(p)).unwrap();
            assert!(
                most.0 >= n && most.4 <= p && (n < 1000 || most.0 as f64 <= 1.001 * n as f64),
                "{most:?} of {n}"
            );
        }
        // Counters take their bits.
        for width in 2..=16 {
            let (_, starts, probes, bits, _) =
                solve(&Spec::sized(1000, 0.01).with_counter_bits(width)).unwrap();
            assert_eq!(bits, (starts + 56) * u64::from(1 + width));
            let again =
                Spec::new().with_capacity(1000).with_bits(bits).with_probes(probes).with_counter_bits(width);
            assert_eq!(solve(&again).unwrap().1, starts);
        }
        for (spec, text) in [
            (Spec::sized(1000, 0.01).with_counter_bits(17), "counter bits must be 2 to 16"),
            (Spec::sized(1000, 0.01).with_bits(56), "56 bits cannot give that"),
            (Spec::sized(1 << 48, 1e-9), "the limit is"),
            (Spec::sized(1000, 0.01).with_layout(Layout::Fastest), "takes no layout"),
            (Spec::sized(1000, 0.01).with_bits(20_000).with_probes(6), "leave out the one"),
            (Spec::new().with_bits(10_000), "too little to size"),
        ] {
            let message = solve(&spec).expect_err(text).to_string();
            assert!(message.contains(text), "{message}");
        }
        let half = solve(&Spec::new().with_capacity(1000).with_probes(10)).unwrap();
        assert_eq!(half.1, 14_427);
        assert_eq!(solve(&Spec::new().with_bits(14_427 + 56).with_probes(10)).unwrap().0, 1000);
    }
}

#[test]
fn shifts_and_counts_that_cannot_be_had_are_refused_with_the_way_out() {
    let sized = Spec::sized(1000, 0.01);
    let refused: [(Result<(), SpecError>, &str); 7] = [
        (sized.with_probes(7).shifting().map(drop), "probes must be a multiple of 2, not 7"),
        (sized.with_shifts(2).with_probes(8).shifting().map(drop), "probes must be a multiple of 3, not 8"),
        (sized.with_shifts(4).shifting().map(drop), "shifts must be 1 to 3, not 4"),
        (sized.with_shifts(1).bloom().map(drop), "bloom takes no shifts; shifting does"),
        (sized.with_max_count(58).shifting_multiplicity().map(drop), "largest count must be 1 to 57, not 58"),
        (sized.with_max_count(0).shifting_multiplicity().map(drop), "largest count must be 1 to 57, not 0"),
        (
            sized.with_max_count(9).spectral().map(drop),
            "spectral takes no largest count; shifting-multiplicity does",
        ),
    ];
    for (refused, text) in refused {
        let message = refused.expect_err(text).to_string();
        assert!(message.contains(text), "{message}");
    }
    assert_eq!(sized.with_shifts(3).shifting().unwrap().probes % 4, 0);
    let (few, many) = (sized.with_max_count(1), sized);
    assert!(few.shifting_multiplicity().unwrap().starts < many.shifting_multiplicity().unwrap().starts);
}

/// Each knob, with a value that whoever has it takes.
fn turned() -> [(Knob, Spec); 12] {
    let sized = Spec::sized(1000, 0.01);
    [
        (Knob::Probes, sized.with_probes(8)),
        (Knob::Layout, sized.with_layout(Layout::Fastest)),
        (Knob::Foldable, sized.foldable()),
        (Knob::CounterBits, sized.with_counter_bits(4)),
        (Knob::CountingRule, sized.with_counting_rule(CountingRule::MinimumSelection)),
        (Knob::Areas, sized.with_areas(3)),
        (Knob::Growth, sized.with_growth(2)),
        (Knob::Tightening, sized.with_tightening(0.5)),
        (Knob::Shifts, sized.with_shifts(1)),
        (Knob::MaxCount, sized.with_max_count(9)),
        (Knob::Doublings, sized.with_doublings(5)),
        (Knob::Others, sized.with_others(5000)),
    ]
}

/// Once areas, doublings, other keys and a foldable size were ignored by families that do not have them.
#[test]
fn no_knob_is_ignored_in_silence() {
    for (knob, spec) in turned() {
        let having = FAMILIES.iter().filter(|family| family.takes(knob)).map(|family| family.name);
        let having: &'static [&'static str] = having.collect::<Vec<_>>().leak();
        assert!(!having.is_empty(), "{knob:?}");
        for family in FAMILIES {
            let planned = (family.plan)(&spec);
            if family.takes(knob) {
                planned.unwrap_or_else(|error| panic!("{} with {knob:?}: {error}", family.name));
            } else {
                let refused = SpecError::NotFor { knob, family: family.name, others: having };
                assert_eq!(planned.unwrap_err().to_string(), refused.to_string(), "{}", family.name);
            }
        }
    }
}

/// Once the error for a layout named two of the five families that have several.
#[test]
fn an_error_names_all_families_that_have_what_was_requested() {
    let refused = Spec::sized(1000, 0.01).with_layout(Layout::Fastest).bloom().unwrap_err();
    let others: &[&str] = &["blocked", "cuckoo", "fuse", "ribbon", "universe"];
    assert!(
        matches!(refused, SpecError::NotFor { knob: Knob::Layout, family: "bloom", others: o } if o == others)
    );
    assert_eq!(refused.to_string(), "bloom takes no layout; blocked, cuckoo, fuse, ribbon and universe do");
}

/// Once it had 16 digits.
#[test]
fn the_least_rate_in_an_error_has_three_digits_and_is_granted() {
    for capacity in [10, 1000, 1_000_000] {
        let refused = |spec: Spec| {
            let text = spec.with_capacity(capacity).fuse().unwrap_err().to_string();
            let (_, rest) = text.split_once("at least ").unwrap();
            rest.split(' ').next().unwrap().to_string()
        };
        let least = refused(Spec::new().with_fpr(1e-12));
        assert!(least.len() <= "2.33e-10".len(), "{least}");
        let spec = Spec::sized(capacity, least.parse().unwrap());
        assert!(spec.fuse().is_ok(), "{least}");
    }
}
