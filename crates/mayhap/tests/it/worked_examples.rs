//! The examples with which filters are explained, as tests; the texts of all errors; the forms for serde.
//!
//! Sorting with a byte of bits, the words of 11, 32 and 106 and the sign-in state of 100 million users are
//! beside the code, in `bits/bitmap.rs`. What other libraries call things is in `interfaces.rs`.

use mayhap::bits::OutOfRange;
use mayhap::filters::bitmap::BitmapSet;
use mayhap::wire::{PAGE, Summing};
use mayhap::{
    AnyFilter, Bloom, Cuckoo, DecodeError, Error, Filter, FoldError, Full, Insertion, Layout, Limit,
    Mismatch, Remove, Spec, SpecError, encode, open,
};

// Filters with positions from a textbook.

#[test]
fn a_key_at_positions_8_1_6_13() {
    let mut bloom = Bloom::with_bits(16, 4).unwrap();
    assert_eq!(bloom.insert_positions(&[8, 1, 6, 13]), Ok(Insertion::New));
    assert_eq!(bloom.words(), [0b0010_0001_0100_0010]);
    assert_eq!(bloom.contains_positions(&[8, 1, 6, 13]), Ok(true));
    assert_eq!(bloom.contains_positions(&[8, 1, 6, 12]), Ok(false));
    assert_eq!(bloom.insert_positions(&[13, 6, 1, 8]), Ok(Insertion::Perhaps));
    assert_eq!(bloom.fill(), 4.0 / 16.0);
}

#[test]
fn a_position_behind_the_end_is_refused_and_changes_nothing() {
    let mut bloom = Bloom::with_bits(16, 4).unwrap();
    let behind = OutOfRange { index: 16, universe: 16 };
    assert_eq!(bloom.insert_positions(&[8, 1, 16, 13]), Err(behind));
    assert_eq!(bloom.contains_positions(&[16]), Err(behind));
    assert_eq!((bloom.words(), bloom.inserted()), (&[0][..], Some(0)));
}

#[test]
fn hello_and_xyz_make_sadj_a_false_positive() {
    let mut bloom = Bloom::with_bits(8, 4).unwrap();
    let (hello, xyz, sadj) = ([1, 2, 3, 4], [2, 3, 4, 5], [1, 3, 4, 5]);
    bloom.insert_positions(&hello).unwrap();
    assert_eq!(bloom.contains_positions(&sadj), Ok(false));
    bloom.insert_positions(&xyz).unwrap();
    assert_eq!(bloom.contains_positions(&sadj), Ok(true), "never inserted, and admitted");
    assert_eq!(bloom.insert_positions(&sadj), Ok(Insertion::Perhaps));
}

/// Why a Bloom filter has no `remove`: who clears the bits of a loses b.
#[test]
fn clearing_the_bits_of_a_loses_b() {
    let mut bloom = Bloom::with_bits(16, 2).unwrap();
    let (a, b) = ([3, 5], [5, 10]);
    bloom.insert_positions(&a).unwrap();
    bloom.insert_positions(&b).unwrap();
    let mut words = bloom.words().to_vec();
    for position in a {
        words[0] &= !(1 << position);
    }
    let cleared = Bloom::from_words(words, 16, 2).unwrap();
    assert_eq!(bloom.contains_positions(&b), Ok(true));
    assert_eq!(cleared.contains_positions(&b), Ok(false), "b was inserted, and is denied");
    assert!(bloom.as_remove().is_none());
}

/// The picture that everybody knows: 18 bits, three hashes, w hits two ones and one zero.
#[test]
fn x_y_z_are_in_and_w_is_not_with_three_hashes() {
    let mut bloom = Bloom::with_bits(18, 3).unwrap();
    for positions in [[1, 5, 13], [4, 11, 16], [3, 5, 11]] {
        assert_eq!(bloom.insert_positions(&positions), Ok(Insertion::New));
    }
    let ones: Vec<u64> = (0..18).filter(|position| bloom.words()[0] >> position & 1 == 1).collect();
    assert_eq!(ones, [1, 3, 4, 5, 11, 13, 16]);
    assert_eq!(bloom.contains_positions(&[4, 13, 15]), Ok(false));

    // And with real keys, whose positions follow from the hash.
    let mut bloom = Bloom::with_bits(18, 3).unwrap();
    bloom.extend(["x", "y", "z"]);
    assert!(["x", "y", "z"].iter().all(|key| bloom.contains(key)));
    assert!(!bloom.contains("w"), "certain for this seed and this version: digests never change");
}

/// Set, clear, test, in the file that the command line would use.
#[test]
fn sign_in_state_survives_its_file() {
    let users = 100_000_000;
    let plan = (mayhap::family("bitmap").unwrap().plan)(&Spec::new().with_capacity(users)).unwrap();
    assert_eq!(plan.bits / 8, 12_500_000);
    let mut signed_in = BitmapSet::from_spec(&Spec::new().with_capacity(users)).unwrap();
    for user in [0, 7, 99_999_999] {
        signed_in.insert_integer(user).unwrap();
    }
    let seven = signed_in.hashing().digest_of(7u64);
    assert!(signed_in.remove_digest(seven).is_removed());
    let file = encode(&signed_in, Summing::Payload).to_vec();
    assert_eq!(file.len(), PAGE + 12_500_000);
    let again = open(file.into(), None).unwrap();
    let is_in = |user: u64| again.contains(&user.to_le_bytes());
    assert!(is_in(0) && !is_in(7) && is_in(99_999_999) && !is_in(100_000_000));
}

#[cfg(feature = "std")]
#[test]
fn four_billion_alone_takes_under_100_bytes_behind_the_header() {
    let family = mayhap::family("roaring").unwrap();
    let mayhap::family::Make::Empty(make) = family.make else { panic!("made otherwise") };
    let mut set = make(&Spec::new().with_capacity(1)).unwrap();
    set.insert_keys(&[&4_000_000_000u64.to_le_bytes()], &mut Vec::new()).unwrap();
    let file = encode(&*set, Summing::Payload).to_vec();
    assert!(file.len() < PAGE + 100, "{} bytes", file.len());
}

/// Merging filters of one size that were made for different numbers of keys.
#[test]
fn the_rate_at_capacity_follows_the_larger_capacity() {
    let sized = |capacity| {
        Bloom::from_spec(&Spec::new().with_capacity(capacity).with_bits(10_000).with_probes(5)).unwrap()
    };
    let (mut few, many) = (sized(100), sized(2000));
    few.merge(&many).unwrap();
    assert_eq!((few.capacity(), few.fpr_at_capacity()), (2000, many.fpr_at_capacity()));
    assert_eq!(Bloom::from_bytes(&few.to_bytes()).unwrap().report(), few.report());
}

// Texts.

#[track_caller]
fn says(error: impl Into<Error>, text: &str) {
    let error = error.into();
    assert_eq!(error.to_string(), text);
    assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
    // The umbrella says what its part says, so that the part is not offered as its source: reports would say it twice.
    assert!(std::error::Error::source(&error).is_none(), "{text}");
}

/// The texts below are of errors as values; these are the same errors where they arise.
#[test]
fn errors_arise_with_their_texts() {
    let make = |name: &str, spec: &Spec| match mayhap::family(name).unwrap().make {
        mayhap::family::Make::Empty(make) => make(spec),
        _ => panic!("{name} is made otherwise"),
    };
    let mut cuckoo = Cuckoo::with_slots(1000, 8, Layout::Fastest).unwrap();
    (0..8).for_each(|_| assert!(cuckoo.insert("a").is_ok()));
    says(
        cuckoo.insert("a").unwrap_err(),
        "the key is in 8 times already, or others are that look the same, and more do not fit; insert each key once \
         (mayhap dedup drops repeats), or use a family that counts",
    );
    let mut bitmap = make("bitmap", &Spec::new().with_capacity(128)).unwrap();
    says(
        bitmap.insert_keys(&[b"abc"], &mut Vec::new()).unwrap_err(),
        "this set holds integers, and the key is not one (8 little-endian bytes)",
    );
    says(
        bitmap.insert_keys(&[&4_000_000_000u64.to_le_bytes()], &mut Vec::new()).unwrap_err(),
        "4000000000 has no place in a bitmap of the integers below 128; build it with a larger capacity, or \
         use the family roaring",
    );
    let areas = |areas| Spec::sized(100, 0.01).with_areas(areas);
    says(make("spatial", &areas(0)).err().unwrap(), "0 areas were asked for; a filter has 1 to 65535");
    let (mut three, two) = (make("spatial", &areas(3)).unwrap(), make("spatial", &areas(2)).unwrap());
    let digest = three.hashing().digest_of("key");
    let seven = std::num::NonZeroU16::new(7).unwrap();
    says(
        three.as_label_mut().unwrap().insert_labelled(digest, seven).unwrap_err(),
        "there is no area 7: the filter was made for the areas 1 to 3; build it for more",
    );
    says(
        mayhap::combine(&mut *three, &*two, mayhap::Combine::Union).unwrap_err(),
        "numbers of areas differ: 3 and 2; build both with the same labels in the same order",
    );
    let (mut bloom, exact) =
        (make("bloom", &Spec::sized(100, 0.01)).unwrap(), make("exact", &Spec::sized(100, 0.01)).unwrap());
    says(
        mayhap::combine(&mut *bloom, &*exact, mayhap::Combine::Union).unwrap_err(),
        "families differ: bloom and exact",
    );
}

#[test]
fn a_full_filter_says_what_to_do() {
    let full = |limit| Full { limit, inserted: 3 };
    says(
        full(Limit::Keys { capacity: 1000 }),
        "the filter is full: it was made for 1000 keys; build a larger one",
    );
    says(
        full(Limit::Universe { universe: 100, key: 4_000_000_000 }),
        "4000000000 has no place in a bitmap of the integers below 100; build it with a larger capacity, or \
         use the family roaring",
    );
    says(
        full(Limit::NotAnInteger),
        "this set holds integers, and the key is not one (8 little-endian bytes)",
    );
    says(
        full(Limit::Slots { capacity: 1000, used: 1030, slots: 1056 }),
        "the filter is full: 1030 of 1056 slots are taken and there is no room for this key; it was made for 1000 \
         keys; build a larger one",
    );
    says(
        full(Limit::Area { area: 7, areas: 3 }),
        "there is no area 7: the filter was made for the areas 1 to 3; build it for more",
    );
    says(
        full(Limit::Copies { most: 8 }),
        "the key is in 8 times already, or others are that look the same, and more do not fit; insert each key once \
         (mayhap dedup drops repeats), or use a family that counts",
    );
    says(
        full(Limit::Repeats { most: 8, used: 60, slots: 120 }),
        "there is no room for this key, although only 60 of 120 slots are taken: keys that were inserted several times \
         take the slots that it may have, and a key can be in at most 8 times; insert each key once (mayhap dedup drops \
         repeats), or use a family that counts",
    );
    says(
        full(Limit::Layers { most: 1024 }),
        "the filter is full: it has grown to 1024 layers, which is the limit; build one with a larger capacity, or that \
         grows faster",
    );
    says(
        full(Limit::Memory { bytes: 4096 }),
        "the filter is full, and 4096 bytes of memory to grow were asked for and not granted",
    );
}

#[test]
fn areas_that_cannot_be_are_named() {
    use mayhap::error::AreaNameProblem as Problem;
    says(SpecError::Areas { asked: 0, limit: 65_535 }, "0 areas were asked for; a filter has 1 to 65535");
    says(
        SpecError::AreaNames { names: 2, areas: 3 },
        "2 names were given for 3 areas; give one to each, which may be empty",
    );
    let named = |problem| SpecError::AreaName { area: 3, problem };
    says(
        named(Problem::Long { bytes: 300, limit: 255 }),
        "the name of area 3 has 300 bytes; the limit is 255",
    );
    says(
        named(Problem::Control),
        "the name of area 3 has a control character, such as a tab or a line end; leave it out",
    );
    says(named(Problem::Taken { by: 1 }), "the name of area 3 is that of area 1 too; give each its own");
    says(DecodeError::AreaName { area: 3, problem: Problem::NotText }, "the name of area 3 is not UTF-8");
    says(
        Mismatch::Areas { ours: 3, theirs: 2 },
        "numbers of areas differ: 3 and 2; build both with the same labels in the same order",
    );
    says(
        Mismatch::AreaName { area: 2 },
        "the names of area 2 differ; build both with the same labels in the same order",
    );
}

#[test]
fn a_mismatch_names_the_first_difference() {
    use Mismatch as M;
    says(M::Family { ours: "bloom", theirs: "exact" }, "families differ: bloom and exact");
    says(
        M::Bits { ours: 100, theirs: 200 },
        "numbers of bits differ: 100 and 200; build both with the same -n and -p",
    );
    says(M::Probes { ours: 5, theirs: 7 }, "numbers of probes differ: 5 and 7");
    says(M::Hashing { ours: "xxh3-128", theirs: "integer" }, "hash functions differ: xxh3-128 and integer");
    says(M::Seed { ours: 1, theirs: 42 }, "seeds differ: 0000000000000001 and 000000000000002a");
    says(
        M::Secret { ours: 10, theirs: 11 },
        "secrets differ: the ids are 000000000000000a and 000000000000000b",
    );
    says(M::Memory { bytes: 4096 }, "4096 bytes of memory are needed for the result and were not granted");
    says(
        M::Buckets { ours: 58, theirs: 60 },
        "numbers of buckets differ: 58 and 60; build both with the same -n",
    );
    says(
        M::Fingerprints { ours: 10, theirs: 13 },
        "lengths of fingerprints differ: 10 and 13 bits; build both with the same -n and -p",
    );
    let limit = Limit::Slots { capacity: 10, used: 20, slots: 24 };
    says(
        M::Full(Full { limit, inserted: 0 }),
        "the keys of both do not fit: the filter is full: 20 of 24 slots are taken and there is no room for this key; \
         it was made for 10 keys; build a larger one",
    );
    says(
        M::Rate { asked: 0.01, sum: 0.0134 },
        "the layers of both together have a false-positive rate of up to 0.0134, and 0.0100 was asked for; build one \
         filter with the keys of both, or both with larger capacities",
    );
    says(M::CounterBits { ours: Some(4), theirs: None }, "widths of counters differ: 4 bits and variable");
    says(
        M::CountingRule { ours: "minimum-selection", theirs: "minimal-increase" },
        "counting rules differ: minimum-selection and minimal-increase",
    );
    says(
        M::Unmergeable { rule: "recurring-minimum" },
        "filters that count by recurring-minimum cannot merge; those by minimum-selection can",
    );
}

#[test]
fn a_refused_fold_says_why() {
    use FoldError as F;
    says(F::Factor { bits: 9586, factor: 4 }, "9586 bits do not fold by 4, which does not divide them");
    says(
        F::Fpr { asked: 5.0 },
        "a false-positive rate of 5 was asked for; it must be below 1 and at least 2^-64 (5.4e-20); did you \
         mean 5% (0.05)?",
    );
    says(
        F::TooFull { asked: 0.01, now: 0.15753 },
        "the filter is too full: its false-positive rate is 0.158 already, asked was 0.0100",
    );
    says(
        F::NoFold { bits: 9586, asked: 1e-6, factor: 2, fpr: 0.0012345 },
        "no fold keeps the false-positive rate at 1.00e-6: by 2, the least divisor of 9586 bits, it is 0.00123",
    );
    says(F::Memory { bytes: 4096 }, "4096 bytes of memory are needed for the result and were not granted");
}

#[test]
fn a_refused_file_says_why() {
    use DecodeError as D;
    for (error, text) in [
        (
            D::Truncated { field: "payload", needed: 100, available: 7 },
            "truncated: payload takes 100 bytes, 7 are there",
        ),
        (D::Trailing { bytes: 3 }, "3 bytes follow the end of the filter"),
        (
            D::Magic { found: *b"PK\x03\x04" },
            "not a mayhap file: it starts with \"PK\\x03\\x04\" instead of \"MYHP\"",
        ),
        (
            D::Version { found: 2 },
            "format version 2 is unknown to this program, which reads version 1; update mayhap",
        ),
        (D::Family { found: 900 }, "unknown family id 900; update mayhap"),
        (D::Hashing { scheme: 9, version: 1 }, "unknown hash function: id 9, version 1; update mayhap"),
        (D::Probing { found: 9 }, "unknown probing rule 9 for this family; update mayhap"),
        (D::Flags { found: 0x18 }, "unknown flags 0x18; update mayhap"),
        (D::Section { found: 9 }, "unknown section 9; update mayhap"),
        (D::Value { field: "probes", found: 0 }, "probes is 0, which no writer gives it"),
        (
            D::Length { field: "payload", expected: 8, found: 16 },
            "payload should be 8 bytes long and is said to be 16",
        ),
        (D::Padding { field: "reserved byte" }, "reserved byte should be zero and is not"),
        (
            D::Checksum { field: "payload", stored: 1, computed: 2 },
            "damaged: the checksum of the payload is 0000000000000001, its bytes give 0000000000000002",
        ),
        (
            D::SecretNeeded { key_id: 0xabc },
            "the filter is keyed: the secret with the id 0000000000000abc is needed",
        ),
        (
            D::SecretWrong { needed: 1, given: 2 },
            "the filter is keyed with the secret 0000000000000001; the one given has the id 0000000000000002",
        ),
        (D::Payload { problem: "digests are not sorted" }, "damaged payload: digests are not sorted"),
        (D::Memory { bytes: 5 }, "5 bytes of memory are needed and were not granted"),
    ] {
        says(error, text);
    }
}

#[test]
fn a_refused_spec_says_the_limit_and_the_way_out() {
    use SpecError as S;
    let limit = 1 << 48;
    let rate = "it must be below 1 and at least 2^-64 (5.4e-20)";
    says(S::Capacity { asked: 0, limit }, "a capacity of 0 keys was asked for; the least is 1");
    says(
        S::Capacity { asked: 1 << 50, limit },
        "a capacity of 1125899906842624 keys was asked for; the limit is 281474976710656; split the set",
    );
    says(
        S::Fpr { asked: 0.0 },
        &format!(
            "a false-positive rate of 0 was asked for; {rate}; for no errors at all use an exact family"
        ),
    );
    says(
        S::Fpr { asked: 3.0 },
        &format!("a false-positive rate of 3 was asked for; {rate}; did you mean 3% (0.03)?"),
    );
    says(S::Fpr { asked: f64::NAN }, &format!("a false-positive rate of NaN was asked for; {rate}"));
    says(S::Fpr { asked: -1.0 }, &format!("a false-positive rate of -1 was asked for; {rate}"));
    says(S::Bits { asked: 0, limit }, "0 bits were asked for; the least is 1");
    says(
        S::Bits { asked: 1 << 50, limit },
        "that takes 1125899906842624 bits; the limit is 281474976710656; split the set or accept a higher \
         false-positive rate",
    );
    says(S::Probes { asked: 65 }, "65 probes were asked for; it must be 1 to 64");
    says(
        S::Incomplete,
        "too little to size a filter: give the capacity or the bits, and one more of capacity, false-positive \
         rate, bits and probes",
    );
    says(
        S::TooMuch,
        "capacity, false-positive rate, bits and probes are all given; leave out the one to be computed",
    );
    says(
        S::Unreachable { bits: 10, needed: 20 },
        "10 bits cannot give that false-positive rate for so many keys; it takes 20",
    );
    says(
        S::Words { expected: 3, found: 2 },
        "that many bits take 3 words with nothing behind the last bit; found 2",
    );
    says(S::Hashing { asked: "integer" }, "the family cannot work with the hash function integer");
    says(
        S::NoProbes { asked: 7 },
        "7 probes were asked for, and this family has no probes to choose; leave them out",
    );
    says(
        S::Fingerprint { asked: 3 },
        "fingerprints of 3 bits were asked for; a cuckoo filter has 4 to 32, and 5 to 32 in the layout compact",
    );
    says(
        S::Growth { asked: 40_000, limit: 32_768 },
        "a growth by 40000 was asked for; it must be 1 to 32768, or 0 for a filter that does not grow",
    );
    says(
        S::Tightening { asked: 1.5 },
        "a tightening by 1.5 was asked for; it must be at least 0.01 and at most 0.99",
    );
    says(
        S::NoLayers,
        "a growth or a tightening was asked for, and this family does not grow by layers; scalable does, and of other programs' filters those of redisbloom",
    );
    says(
        S::Generations { asked: 22, limit: 21 },
        "22 generations were asked for; it must be 1 to 21, three for each slice of a key",
    );
    says(S::Memory { bytes: 8 }, "8 bytes of memory were asked for and not granted; ask for fewer bits");
    says(
        S::CounterBits { asked: 40, least: 4, most: 32 },
        "counters of 40 bits were asked for; this family has them of 4 to 32",
    );
    says(
        S::NoCounters { asked: 8 },
        "counters of 8 bits were asked for, and this family has no counters; counting, dleft and spectral have",
    );
    says(
        S::CountingRule { asked: "minimal-increase" },
        "the counting rule minimal-increase was asked for, and this family has no choice of rules; spectral has",
    );
    says(Error::Unsupported { family: "bloom", operation: "remove" }, "the family bloom cannot remove");
    says(
        Error::UnsupportedByRule {
            family: "spectral",
            rule: "minimal-increase",
            operation: "remove",
            other: "minimum-selection",
        },
        "the family spectral cannot remove by the rule minimal-increase; by minimum-selection it can",
    );
}

// Serde: an object for people, the bytes of a file for machines.

#[cfg(feature = "serde")]
mod serde_forms {
    use mayhap::{Bloom, Hashing, Secret, Spec};
    use serde::de::value::Error as ValueError;
    use serde::de::{Deserialize, Deserializer, Visitor};
    use serde::ser::{Error as _, Impossible, Serialize, Serializer};
    use serde_json::{Value, json};

    fn sample() -> Bloom {
        let spec = Spec::sized(10, 0.01).with_hashing(Hashing::Xxh3 { seed: u64::MAX });
        let mut bloom = Bloom::from_spec(&spec).unwrap();
        bloom.extend(["a", "b", "c"]);
        bloom
    }

    #[test]
    fn json_is_an_object_with_the_words_in_base64() {
        let bloom = sample();
        let value = serde_json::to_value(&bloom).unwrap();
        let words = value["words"].as_str().unwrap();
        let expected = json!({
            "family": "bloom", "capacity": 10, "fpr": 0.01, "bits": 96, "probes": 7, "hash": "xxh3-128",
            "seed": u64::MAX, "inserted": 3, "words": words,
        });
        assert_eq!(value, expected);
        // 16 bytes of words, of which base64 makes 24 characters.
        assert_eq!(words.len(), 24);
        for text in [serde_json::to_string(&bloom).unwrap(), serde_json::to_string_pretty(&bloom).unwrap()] {
            let again: Bloom = serde_json::from_str(&text).unwrap();
            assert_eq!(again, bloom);
            assert_eq!(again.to_bytes(), bloom.to_bytes());
            assert!(["a", "b", "c"].iter().all(|key| again.contains(key)));
        }
        let mut merged = bloom.clone();
        merged.merge(&bloom).unwrap();
        let text = serde_json::to_string(&merged).unwrap();
        assert!(text.contains("\"inserted\":null"), "{text}");
        assert_eq!(serde_json::from_str::<Bloom>(&text).unwrap().inserted(), None);
    }

    #[test]
    fn hostile_json_is_refused() {
        let sound = serde_json::to_value(sample()).unwrap();
        assert!(serde_json::from_value::<Bloom>(sound.clone()).is_ok());
        let huge = "A".repeat(24);
        // What serde_json says of a wrong number depends on its features, which other crates may set.
        let cases: [(&str, Value, &str); 21] = [
            ("family", json!("exact"), "not a bloom filter"),
            ("hash", json!("md5"), "not a bloom filter"),
            ("bits", json!(0), "do not fit together"),
            ("bits", json!(1u64 << 47), "do not fit together"),
            ("bits", json!(u64::MAX), "do not fit together"),
            ("bits", json!(64), "do not fit together"),
            ("bits", json!(-1), "invalid"),
            ("bits", json!(1.5), "invalid"),
            ("probes", json!(0), "do not fit together"),
            ("probes", json!(65), "do not fit together"),
            ("probes", json!(1u64 << 32), "invalid"),
            ("fpr", json!(-0.1), "fpr is not a rate"),
            ("fpr", json!(1.1), "fpr is not a rate"),
            ("fpr", json!(null), "invalid type"),
            ("words", json!("not base64!"), "words are not base64"),
            ("words", json!("AAAA"), "words are not whole words"),
            ("words", json!(""), "do not fit together"),
            ("words", json!("/////////////////////w=="), "do not fit together"),
            ("words", json!([1, 2]), "invalid type"),
            ("words", json!(huge), "words are not whole words"),
            ("unknown", json!(1), "unknown field"),
        ];
        for (field, value, text) in cases {
            let mut object = sound.clone();
            object[field] = value.clone();
            let error = serde_json::from_value::<Bloom>(object).expect_err(field).to_string();
            assert!(error.contains(text), "{field} = {value}: {error}");
        }
        for field in ["family", "capacity", "fpr", "bits", "probes", "hash", "seed", "words"] {
            let mut object = sound.clone();
            object.as_object_mut().unwrap().remove(field);
            let error = serde_json::from_value::<Bloom>(object).expect_err(field).to_string();
            assert!(error.contains("missing field"), "{field}: {error}");
        }
        for text in ["", "null", "[]", "{}", "17", "\"TVlIUA==\"", "{\"family\":\"bloom\""] {
            assert!(serde_json::from_str::<Bloom>(text).is_err(), "{text}");
        }
        // Twice the same field, and a number of calls at the end of the numbers.
        let twice = serde_json::to_string(&sound).unwrap().replacen('{', "{\"bits\":96,", 1);
        assert!(serde_json::from_str::<Bloom>(&twice).is_err());
        let mut object = sound.clone();
        object["inserted"] = json!(u64::MAX);
        object["capacity"] = json!(u64::MAX);
        let mut bloom: Bloom = serde_json::from_value(object).unwrap();
        bloom.insert("one more");
        assert_eq!(bloom.inserted(), Some(u64::MAX));
    }

    #[test]
    fn a_keyed_filter_has_no_serde_form() {
        let hashing = Hashing::Keyed(Secret::new([1; 16]));
        let keyed = Bloom::from_spec(&Spec::sized(10, 0.01).with_hashing(hashing)).unwrap();
        let error = serde_json::to_string(&keyed).unwrap_err().to_string();
        assert_eq!(error, "a keyed filter has no serde form; use to_bytes");
    }

    #[test]
    fn the_binary_form_is_the_bytes_of_a_file() {
        let bloom = sample();
        let bytes = bloom.serialize(ToBytes).unwrap();
        assert_eq!(bytes, bloom.to_bytes());
        assert_eq!(Bloom::deserialize(FromBytes(&bytes)).unwrap(), bloom);
        let error = Bloom::deserialize(FromBytes(&bytes[..100])).unwrap_err().to_string();
        assert_eq!(error, "truncated: header takes 4096 bytes, 100 are there");
    }

    /// The least binary format: one byte string.
    struct FromBytes<'a>(&'a [u8]);

    impl<'de> Deserializer<'de> for FromBytes<'_> {
        type Error = ValueError;
        fn is_human_readable(&self) -> bool {
            false
        }
        fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
            visitor.visit_bytes(self.0)
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }

    /// Takes one byte string and refuses everything else.
    struct ToBytes;

    type Refused = Impossible<Vec<u8>, ValueError>;

    fn refused<T>() -> Result<T, ValueError> {
        Err(ValueError::custom("not a byte string"))
    }

    /// Nothing but the argument's type differs from method to method.
    macro_rules! refuse {
        ($($method:ident: $argument:ty),*) => {$(
            fn $method(self, _: $argument) -> Result<Vec<u8>, ValueError> {
                refused()
            }
        )*};
    }

    impl Serializer for ToBytes {
        type Ok = Vec<u8>;
        type Error = ValueError;
        type SerializeSeq = Refused;
        type SerializeTuple = Refused;
        type SerializeTupleStruct = Refused;
        type SerializeTupleVariant = Refused;
        type SerializeMap = Refused;
        type SerializeStruct = Refused;
        type SerializeStructVariant = Refused;

        fn is_human_readable(&self) -> bool {
            false
        }
        fn serialize_bytes(self, bytes: &[u8]) -> Result<Vec<u8>, ValueError> {
            Ok(bytes.to_vec())
        }
        refuse! {
            serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
            serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
            serialize_f64: f64, serialize_char: char, serialize_str: &str, serialize_unit_struct: &'static str
        }
        fn serialize_none(self) -> Result<Vec<u8>, ValueError> {
            refused()
        }
        fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<Vec<u8>, ValueError> {
            refused()
        }
        fn serialize_unit(self) -> Result<Vec<u8>, ValueError> {
            refused()
        }
        fn serialize_unit_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
        ) -> Result<Vec<u8>, ValueError> {
            refused()
        }
        fn serialize_newtype_struct<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: &T,
        ) -> Result<Vec<u8>, ValueError> {
            refused()
        }
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<Vec<u8>, ValueError> {
            refused()
        }
        fn serialize_seq(self, _: Option<usize>) -> Result<Refused, ValueError> {
            refused()
        }
        fn serialize_tuple(self, _: usize) -> Result<Refused, ValueError> {
            refused()
        }
        fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Refused, ValueError> {
            refused()
        }
        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Refused, ValueError> {
            refused()
        }
        fn serialize_map(self, _: Option<usize>) -> Result<Refused, ValueError> {
            refused()
        }
        fn serialize_struct(self, _: &'static str, _: usize) -> Result<Refused, ValueError> {
            refused()
        }
        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Refused, ValueError> {
            refused()
        }
    }
}
