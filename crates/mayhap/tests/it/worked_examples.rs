//! The examples with which filters are explained, as tests; the texts of all errors; the forms for serde.
//!
//! Sorting with a byte of bits, the words of 11, 32 and 106 and the sign-in state of 100 million users are
//! beside the code, in `bits/bitmap.rs`. What other libraries call things is in `interfaces.rs`.

use mayhap::wire::PAGE;
use mayhap::{
    AnyFilter, BitmapSet, Bloom, Cuckoo, DecodeError, Error, FoldError, Full, Insertion, Layout, Limit,
    Mismatch, OutOfRange, Spec, SpecError, Summing, encode, open,
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
        signed_in.insert(user).unwrap();
    }
    assert!(signed_in.remove(7u64).is_removed());
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
    let mayhap::Make::Empty(make) = family.make else { panic!("made otherwise") };
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
}

/// An error and its sources, as reports print them.
fn chain(error: &dyn std::error::Error) -> Vec<String> {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect()
}

#[test]
fn a_source_is_not_said_twice() {
    let full = Full { limit: Limit::Keys { capacity: 1000 }, inserted: 0 };
    let texts = ["the keys of both do not fit".to_string(), full.to_string()];
    assert_eq!(chain(&Mismatch::Full(full)), texts);
    assert_eq!(chain(&Error::from(Mismatch::Full(full))), texts);
    assert_eq!(chain(&Error::from(full)), texts[1..]);
    let spec = SpecError::Incomplete;
    for error in [
        Error::from(spec),
        Error::from(mayhap::BuildError::from(spec)),
        Error::from(mayhap::AdviseError::from(spec)),
    ] {
        assert_eq!(chain(&error), [spec.to_string()]);
    }
}

/// Errors of real calls.
#[test]
fn errors_arise_with_their_texts() {
    let make = |name: &str, spec: &Spec| match mayhap::family(name).unwrap().make {
        mayhap::Make::Empty(make) => make(spec),
        _ => panic!("{name} is made otherwise"),
    };
    let mut cuckoo = Cuckoo::with_slots(1000, 8, Layout::Fastest).unwrap();
    (0..8).for_each(|_| assert!(cuckoo.insert("a").is_ok()));
    says(
        cuckoo.insert("a").unwrap_err(),
        "the key is in 8 times already, or others are that look the same, and more do not fit; insert each key once, or \
         use a family that counts",
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
    says(make("spatial", &areas(0)).err().unwrap(), "areas must be 1 to 65535, not 0");
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

/// The texts of all errors. Some values are hard to reach by calls; those that are not arise in the test above and elsewhere.
#[test]
fn errors_have_the_texts_of_the_snapshot() {
    use mayhap::{AreaNameProblem as Problem, Knob, Parameter, Value};
    use {DecodeError as D, FoldError as F, Mismatch as M, SpecError as S};
    fn differ(what: Parameter, ours: impl Into<Value>, theirs: impl Into<Value>) -> Error {
        Mismatch::Differ { what, ours: ours.into(), theirs: theirs.into() }.into()
    }
    fn range<T: Into<Value>>(knob: Knob, asked: T, least: T, most: T) -> Error {
        SpecError::Range { knob, asked: asked.into(), least: least.into(), most: most.into() }.into()
    }
    let errors: Vec<Error> = vec![
        Full { limit: Limit::Keys { capacity: 1000 }, inserted: 3 }.into(),
        Full { limit: Limit::Universe { universe: 100, key: 4_000_000_000 }, inserted: 3 }.into(),
        Full { limit: Limit::NotAnInteger, inserted: 3 }.into(),
        Full { limit: Limit::Slots { capacity: 1000, used: 1030, slots: 1056 }, inserted: 3 }.into(),
        Full { limit: Limit::Area { area: 7, areas: 3 }, inserted: 3 }.into(),
        Full { limit: Limit::Copies { most: 8 }, inserted: 3 }.into(),
        Full { limit: Limit::Repeats { most: 8, used: 60, slots: 120 }, inserted: 3 }.into(),
        Full { limit: Limit::Layers { most: 1024 }, inserted: 3 }.into(),
        Full { limit: Limit::Memory { bytes: 4096 }, inserted: 3 }.into(),
        S::AreaNames { names: 2, areas: 3 }.into(),
        S::AreaName { area: 3, problem: Problem::Long { bytes: 300, limit: 255 } }.into(),
        S::AreaName { area: 3, problem: Problem::Control }.into(),
        S::AreaName { area: 3, problem: Problem::Taken { by: 1 } }.into(),
        D::AreaName { area: 3, problem: Problem::NotText }.into(),
        differ(Parameter::Areas, 3u64, 2u64),
        M::AreaName { area: 2 }.into(),
        M::Family { ours: "bloom", theirs: "exact" }.into(),
        differ(Parameter::Bits, 100u64, 200u64),
        differ(Parameter::Probes, 5u64, 7u64),
        differ(Parameter::Hashing, "xxh3-128", "integer"),
        differ(Parameter::Seed, Value::Id(1), Value::Id(42)),
        differ(Parameter::Secret, Value::Id(10), Value::Id(11)),
        M::Memory { bytes: 4096 }.into(),
        differ(Parameter::Buckets, 58u64, 60u64),
        differ(Parameter::Slots, 128u64, 192u64),
        differ(Parameter::FingerprintBits, 10u64, 13u64),
        M::Full(Full { limit: Limit::Slots { capacity: 10, used: 20, slots: 24 }, inserted: 0 }).into(),
        M::Rate { asked: 0.01, sum: 0.0134 }.into(),
        differ(Parameter::CounterBits, 4u64, "variable"),
        differ(Parameter::CountingRule, "minimum-selection", "minimal-increase"),
        M::Unmergeable { rule: "recurring-minimum" }.into(),
        F::Factor { bits: 9586, factor: 4 }.into(),
        F::Fpr { asked: 5.0 }.into(),
        F::TooFull { asked: 0.01, now: 0.15753 }.into(),
        F::NoFold { bits: 9586, asked: 1e-6, factor: 2, fpr: 0.0012345 }.into(),
        F::Memory { bytes: 4096 }.into(),
        D::Truncated { field: "payload", needed: 100, available: 7 }.into(),
        D::Trailing { bytes: 3 }.into(),
        D::Magic { found: *b"PK\x03\x04" }.into(),
        D::Version { found: 2 }.into(),
        D::Family { found: 900 }.into(),
        D::OtherFamily { expected: "bloom", found: "cuckoo" }.into(),
        D::Hashing { scheme: 9, version: 1 }.into(),
        D::Probing { found: 9 }.into(),
        D::Flags { found: 0x18 }.into(),
        D::Section { found: 9 }.into(),
        D::Value { field: "probes", found: 0 }.into(),
        D::Length { field: "payload", expected: 8, found: 16 }.into(),
        D::Padding { field: "reserved byte" }.into(),
        D::Checksum { field: "payload", stored: 1, computed: 2 }.into(),
        D::SecretNeeded { key_id: 0xabc }.into(),
        D::SecretWrong { needed: 1, given: 2 }.into(),
        D::Payload { problem: "digests are not sorted" }.into(),
        D::Memory { bytes: 5 }.into(),
        range(Knob::Capacity, 0u64, 1u64, 1u64 << 48),
        range(Knob::Capacity, 1u64 << 50, 1u64, 1u64 << 48),
        S::Fpr { asked: 0.0 }.into(),
        S::Fpr { asked: 3.0 }.into(),
        S::Fpr { asked: f64::NAN }.into(),
        S::Fpr { asked: -1.0 }.into(),
        S::FprBelow { asked: 1e-10, least: 1e-9 }.into(),
        S::TooLarge { bits: 1 << 50, limit: 1 << 48 }.into(),
        range(Knob::Probes, 12u32, 8u32, 8u32),
        S::Incomplete.into(),
        S::TooMuch.into(),
        S::Unreachable { bits: 10, needed: 20 }.into(),
        S::Words { expected: 3, found: 2 }.into(),
        S::Hashing { asked: "integer" }.into(),
        S::Step { knob: Knob::Probes, asked: 7u32.into(), step: 2u32.into() }.into(),
        range(Knob::Growth, 40_000u32, 0u32, 32_768u32),
        range(Knob::Tightening, 1.5, 0.01, 0.99),
        S::NotFor { knob: Knob::Probes, family: "cuckoo", others: &["bloom", "blocked", "counting"] }.into(),
        S::NotFor { knob: Knob::CountingRule, family: "bloom", others: &["spectral"] }.into(),
        S::NotFor { knob: Knob::Seed, family: "guava", others: &[] }.into(),
        S::Memory { bytes: 8 }.into(),
        Error::Unsupported { family: "bloom", operation: "remove" },
        Error::UnsupportedByRule {
            family: "spectral",
            rule: "minimal-increase",
            operation: "remove",
            other: "minimum-selection",
        },
    ];
    let found: String = errors.iter().map(|error| format!("{error}\n")).collect();
    for (found, expected) in found.lines().zip(include_str!("error_texts.txt").lines()) {
        assert_eq!(found, expected, "or change crates/mayhap/tests/it/error_texts.txt");
        assert!(!found.ends_with('.'));
    }
    assert_eq!(
        (errors.len(), found.lines().count()),
        (found.lines().count(), include_str!("error_texts.txt").lines().count())
    );
    for error in &errors {
        let chain = chain(error);
        assert!(chain.windows(2).all(|pair| !pair[0].contains(&pair[1])), "{chain:?}");
        assert_eq!(
            chain.len(),
            if matches!(error, Error::Mismatch(M::Full(_))) { 2 } else { 1 },
            "{chain:?}"
        );
    }
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
