//! What each family says that it takes is what it plans.

use mayhap::{FAMILIES, Family, Space, Spec};

const KEYS: u64 = 1_000_000;

fn planned(family: &Family, fpr: f64) -> f64 {
    (family.plan)(&Spec::sized(KEYS, fpr)).expect(family.name).bits_per_key()
}

/// At the planned number of keys; what grows takes the first of its two numbers then, and plans for 20 doublings.
#[test]
fn a_plan_takes_the_space_that_its_family_names() {
    for family in FAMILIES {
        let Some(Space { per_key, less, more }) = family.profile.space else { continue };
        for fpr in [0.03, 0.01, 0.001, 1e-4, 1e-6] {
            let (said, planned) = (per_key(-f64::log2(fpr)), planned(family, fpr));
            let within = (said - less..=said + more).contains(&planned);
            assert!(within, "{} at {fpr}: {planned} bits per key, {said} were said", family.name);
        }
    }
}

/// The number behind the words: the first factor of `1.44 n log2(1/p)`, to what is printed of it.
#[test]
fn the_words_of_a_cost_begin_with_its_number() {
    for family in FAMILIES {
        let Some(space) = family.profile.space else { continue };
        let words = family.cost.space;
        let factor: f64 = words.split(' ').next().unwrap().parse().unwrap_or(1.0);
        let slope = (space.per_key)(21.0) - (space.per_key)(20.0);
        let number = if slope == 0.0 { (space.per_key)(1.0) } else { slope };
        assert!((number / factor - 1.0).abs() < 0.011, "{}: {words} and {number}", family.name);
    }
}

/// Those whose space follows from other numbers.
#[test]
fn space_that_depends_on_other_numbers_is_as_its_family_names_it() {
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
