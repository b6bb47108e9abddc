//! What each family says that it takes is what it plans.

use std::f64::consts::LOG2_E;

use mayhap::{FAMILIES, Family, Spec};

const KEYS: u64 = 1_000_000;

/// Bits per key by the words of [`mayhap::Cost`].
struct Said {
    family: &'static str,
    space: &'static str,
    /// Of `log2(1/p)`.
    per_key: fn(f64) -> f64,
    /// What a plan may take less and more, in bits per key: fingerprints and layers have whole bits.
    less: f64,
    more: f64,
}

/// At the planned number of keys; what grows takes the first of its two numbers then, and plans for 20 doublings.
const SAID: [Said; 15] = [
    Said {
        family: "bloom",
        space: "1.44 n log2(1/p)",
        per_key: |bits| LOG2_E * bits,
        less: 0.01,
        more: 0.01,
    },
    Said {
        family: "blocked",
        space: "1.5 n log2(1/p) and up",
        per_key: |bits| 1.5 * bits,
        less: 0.04,
        more: 9.2,
    },
    Said {
        family: "counting",
        space: "5.77 n log2(1/p)",
        per_key: |bits| 5.771 * bits,
        less: 0.01,
        more: 0.01,
    },
    Said {
        family: "dleft",
        space: "1.33 n (log2(1/p) + 6.6) and up",
        per_key: |bits| 1.333 * (bits + 6.6),
        less: 0.0,
        more: 1.34,
    },
    Said {
        family: "spectral",
        space: "5.77 n log2(1/p) and up",
        per_key: |bits| 5.771 * bits,
        less: 0.01,
        more: 0.01,
    },
    Said {
        family: "cuckoo",
        space: "1.05 n (log2(1/p) + 3) and up",
        per_key: |bits| 1.0527 * (bits + 3.0),
        less: 0.07,
        more: 1.06,
    },
    Said {
        family: "fuse",
        space: "1.13 n log2(1/p) and up",
        per_key: |bits| 1.13 * bits,
        less: 0.0,
        more: 1.14,
    },
    Said {
        family: "ribbon",
        space: "n (log2(1/p) + 0.1)",
        per_key: |bits| bits + 0.1,
        less: 0.06,
        more: 0.02,
    },
    Said {
        family: "spatial",
        space: "11.5 n log2(1/p)",
        per_key: |bits| 11.542 * bits,
        less: 0.01,
        more: 0.01,
    },
    Said {
        family: "scalable",
        space: "1.44 to 2.9 n (log2(1/p) + 3 + layers / 4)",
        per_key: |bits| LOG2_E * (bits + 3.0),
        less: 0.09,
        more: 1.45,
    },
    Said {
        family: "shifting",
        space: "1.45 n log2(1/p)",
        per_key: |bits| 1.45 * bits,
        less: 0.02,
        more: 0.06,
    },
    Said {
        family: "shifting-association",
        space: "1.44 n log2(3/p)",
        per_key: |bits| LOG2_E * (bits + 3f64.log2()),
        less: 0.02,
        more: 0.01,
    },
    Said {
        family: "shifting-multiplicity",
        space: "1.44 n log2(57/p)",
        per_key: |bits| LOG2_E * (bits + 57f64.log2()),
        less: 0.04,
        more: 0.01,
    },
    Said {
        family: "expanding",
        space: "1.1 to 2.2 n (log2(1/p) + log2(doublings + 2) + 3.5)",
        per_key: |bits| 1.1112 * (bits + 22f64.log2() + 3.5),
        less: 0.68,
        more: 0.44,
    },
    Said { family: "exact", space: "128 n", per_key: |_| 128.0, less: 0.0, more: 0.0 },
];

fn planned(family: &Family, fpr: f64) -> f64 {
    (family.plan)(&Spec::sized(KEYS, fpr)).expect(family.name).bits_per_key()
}

#[test]
fn a_plan_takes_the_space_that_its_family_names() {
    for Said { family, space, per_key, less, more } in SAID {
        let family = mayhap::family(family).expect(family);
        assert_eq!(family.cost.space, space, "{}", family.name);
        for fpr in [0.03, 0.01, 0.001, 1e-4, 1e-6] {
            let (said, planned) = (per_key(-f64::log2(fpr)), planned(family, fpr));
            let within = (said - less..=said + more).contains(&planned);
            assert!(within, "{} at {fpr}: {planned} bits per key, {said} were said", family.name);
        }
    }
}

/// Those whose space follows from other numbers.
#[test]
fn every_other_family_is_known_to_be_one() {
    let others: Vec<_> = FAMILIES
        .iter()
        .filter(|family| SAID.iter().all(|said| said.family != family.name))
        .map(|family| family.name)
        .collect();
    assert_eq!(others, ["universe", "windowed", "table", "bitmap", "roaring"]);
    let bits =
        |name: &str, spec: &Spec| (mayhap::family(name).expect(name).plan)(spec).expect(name).bits as f64;
    assert_eq!(bits("bitmap", &Spec::new().with_capacity(KEYS)), KEYS as f64);
    // 1.15 n (log2(1/p) + 6 + doublings), with 20 of them, as long as a name has less than 64 bits.
    for fpr in [1e-3, 1e-4, 1e-6] {
        let said = 1.15 * KEYS as f64 * (26.0 - f64::log2(fpr));
        let planned = bits("table", &Spec::sized(KEYS, fpr));
        assert!((planned / said - 1.0).abs() < 0.03, "{fpr}: {planned} bits, {said} were said");
    }
}

#[test]
fn a_windowed_filter_takes_2_2_to_3_8_times_the_bound() {
    let windowed = mayhap::family("windowed").expect("windowed");
    assert_eq!(windowed.cost.space, "2.2 to 3.8 n log2(1/p)");
    for exponent in 1..=15 {
        let fpr = 10f64.powi(-exponent);
        let times = planned(windowed, fpr) / -fpr.log2();
        assert!((2.15..3.85).contains(&times), "{fpr}: {times}");
    }
}

/// Integers that share neither a container nor the half above it, and those that lie together.
#[cfg(feature = "std")]
#[test]
fn a_roaring_set_takes_16_to_176_bits_per_key_and_at_most_a_bit_per_integer() {
    use mayhap::wire::PAGE;
    use mayhap::{Make, Summing};

    let Make::Empty(make) = mayhap::family("roaring").expect("roaring").make else {
        panic!("made otherwise")
    };
    let payload = |integers: &mut dyn Iterator<Item = u64>| {
        let mut set = make(&Spec::new().with_capacity(KEYS)).unwrap();
        let keys: Vec<[u8; 8]> = integers.map(u64::to_le_bytes).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
        set.insert_keys(&keys, &mut Vec::new()).unwrap();
        8.0 * (mayhap::encode(&*set, Summing::Payload).to_vec().len() - PAGE) as f64
    };
    let apart = payload(&mut (0..2000u64).map(|key| key << 33 | key)) / 2000.0;
    assert!((apart - 176.0).abs() < 1.0, "{apart} bits per key");
    let near = payload(&mut (0..100_000u64).map(|key| 64 * key)) / 100_000.0;
    assert!((16.0..16.2).contains(&near), "{near} bits per key");
    let all = payload(&mut (0..KEYS));
    assert!(all < 1.06 * KEYS as f64, "{all} bits");
}
