//! What other libraries call it: every operation of Guava's `BloomFilter`, Go's bits-and-blooms, the C++ cuckoo filter,
//! some Rust crates, a `BitSet` and a class that people write themselves has its equal here.
//!
//! `docs/library.md` maps the names; its tests look for each of ours in this file.

use mayhap::math::{self, ProbesRule};
use mayhap::{Bitmap, Bloom, Cuckoo, Fuse, Insertion, Key, Limit, Mismatch, Parameter, Spec, SpecError};

#[test]
fn guava_put_might_contain_and_the_rest() {
    // create(funnel, n): 3% unless one says otherwise, and 5 hashes for it, always.
    struct Person {
        name: String,
        born: u16,
    }
    // A funnel.
    impl Key for Person {
        fn with_bytes<R>(&self, then: impl FnOnce(&[u8]) -> R) -> R {
            then(&[self.name.as_bytes(), &self.born.to_le_bytes()].concat())
        }
    }
    let ada = || Person { name: "Ada".into(), born: 1815 };
    let mut filter = Bloom::new(500, 0.03).unwrap();
    assert_eq!(filter.probes(), 5);
    // put: did a bit change?
    assert_eq!(filter.insert(ada()), Insertion::New);
    assert_eq!(filter.insert(ada()), Insertion::Perhaps);
    // mightContain
    assert!(filter.contains(ada()));
    // approximateElementCount, expectedFpp
    assert_eq!(filter.estimated_len().round(), 1.0);
    assert!(filter.fpr() < 1e-8 && (filter.fpr_at_capacity() - 0.03).abs() < 1e-4);
    // copy
    let mut copy = filter.clone();
    copy.insert("only in the copy");
    assert!(copy != filter && copy.contains(ada()));
    // isCompatible, putAll
    assert_eq!(filter.must_match(&copy), Ok(()));
    filter.merge(&copy).unwrap();
    assert!(filter == copy);
    let smaller = Bloom::new(400, 0.03).unwrap();
    assert!(matches!(filter.must_match(&smaller), Err(Mismatch::Differ { what: Parameter::Bits, .. })));
    assert!(matches!(filter.intersect(&smaller), Err(Mismatch::Differ { what: Parameter::Bits, .. })));
    // writeTo, readFrom
    assert_eq!(Bloom::from_bytes(&filter.to_bytes()).unwrap(), filter);
    // optimalNumOfBits, optimalNumOfHashFunctions
    assert_eq!(math::bloom_bits_guava(1_000_000, 0.01), 9_585_058);
    assert_eq!(math::bloom_probes(0.01, ProbesRule::Nearest), 7);
    // toBloomFilter collects a stream.
    let collected: Bloom = (0..100u64).collect();
    assert!((0..100u64).all(|key| collected.contains(key)) && collected.capacity() == 100);
}

#[test]
fn go_bits_and_blooms_add_test_and_the_rest() {
    // New, Cap, K
    let mut filter = Bloom::with_bits(1000, 4).unwrap();
    assert_eq!((filter.bits(), filter.probes()), (1000, 4));
    // NewWithEstimates, EstimateParameters
    let size = Spec::sized(1_000_000, 0.01).bloom().unwrap();
    assert_eq!((size.bits, size.probes), (9_585_059, 7));
    assert_eq!(math::bloom_probes_for_bits(size.bits, 1_000_000, ProbesRule::Up), 7);
    // Add, AddString, Test, TestString
    filter.insert(b"bytes");
    filter.insert("text");
    assert!(filter.contains(b"bytes") && filter.contains("text"));
    let (many, mut found) = (["one", "two"], Vec::new());
    filter.insert_all(&many);
    filter.contains_each(&many, &mut found);
    assert_eq!(found, [true, true]);
    // TestAndAdd, TestAndAddString, TestOrAdd, TestOrAddString: was it there, perhaps?
    assert_eq!(filter.insert("text"), Insertion::Perhaps);
    assert_eq!(filter.insert("new"), Insertion::New);
    // Locations, TestLocations
    let locations: Vec<u64> = filter.positions("text").collect();
    assert_eq!(locations.len(), 4);
    assert_eq!(filter.contains_positions(&locations), Ok(true));
    assert_eq!(filter.insert_positions(&locations), Ok(Insertion::Perhaps));
    // From: a filter over words that exist.
    let over = Bloom::from_words(filter.words().to_vec(), 1000, 4).unwrap();
    assert!(over == filter && over.contains("text") && over.inserted().is_none());
    let too_few = Bloom::from_words(vec![0; 15], 1000, 4);
    assert_eq!(too_few, Err(SpecError::Words { expected: 16, found: 15 }));
    let behind = Bloom::from_words(vec![u64::MAX; 16], 1000, 4);
    assert_eq!(behind, Err(SpecError::Words { expected: 16, found: 16 }));
    // Copy, Equal, Merge
    let mut copy = filter.clone();
    assert!(copy == filter);
    copy.insert("more");
    filter.merge(&copy).unwrap();
    assert!(filter == copy);
    // EstimateFalsePositiveRate fills a filter and asks what is not in.
    let mut filled = Bloom::new(1000, 0.01).unwrap();
    filled.extend(0..1000u64);
    let measured = filled.measure_fpr(1_000_000..1_100_000u64);
    assert!((measured.rate().unwrap() - 0.01).abs() < 0.005, "{measured:?}");
    // ClearAll
    filter.clear();
    assert!(!filter.contains("text") && filter.words().iter().all(|&word| word == 0));
    assert_eq!((filter.inserted(), filter.fill()), (Some(0), 0.0));
    // WriteTo and ReadFrom. JSON and gob are below.
    assert_eq!(Bloom::from_bytes(&copy.to_bytes()).unwrap(), copy);
}

/// The crates fastbloom, bloomfilter and xorf.
#[test]
fn rust_crates_insert_set_check_and_try_from() {
    // with_false_pos(p).expected_items(n); new_for_fp_rate(n, p)
    let mut filter = Bloom::new(1000, 0.01).unwrap();
    // insert of fastbloom and check_and_set of bloomfilter say whether it was there.
    assert_eq!(filter.insert("key"), Insertion::New);
    assert_eq!(filter.insert("key"), Insertion::Perhaps);
    // contains, check
    assert!(filter.contains("key"));
    filter.clear();
    assert!(!filter.contains("key"));
    // try_from of xorf takes distinct 64-bit numbers only.
    let fuse = Fuse::build(&["a", "b", "a"], 0.01).unwrap();
    assert!(fuse.contains("a") && fuse.contains("b"));
}

/// Files of Guava and of Go, by their own rules: MURMUR128_MITZ_64 and MITZ_32; binary, JSON and gob.
#[cfg(feature = "std")]
#[test]
fn files_of_guava_and_go_are_made_written_and_read() {
    use mayhap::interop::guava::{self, Strategy};
    use mayhap::interop::{self, Making, Reading};
    use mayhap::{AnyFilter, Bytes};

    fn filled(mut filter: Box<dyn AnyFilter>) -> Box<dyn AnyFilter> {
        filter.insert_keys(&[b"text"], &mut Vec::new()).unwrap();
        filter
    }
    let making = Making::new(500, 0.03);
    for (name, filter) in [
        ("guava", filled(guava::create(&making, Strategy::Mitz64).unwrap())),
        ("guava", filled(guava::create(&making, Strategy::Mitz32).unwrap())),
        ("go", filled(interop::go::new(1000, 4).unwrap())),
        ("go-json", filled(interop::go::new(1000, 4).unwrap())),
        ("go-gob", filled(interop::go::new(1000, 4).unwrap())),
    ] {
        let format = interop::format(name).unwrap();
        let file = format.write(&*filter).unwrap();
        let again = format.read(Bytes::shared(file.clone()), &Reading::default()).unwrap();
        assert!(again.contains(b"text") && !again.contains(b"other"), "{name}");
        assert_eq!(format.write(&*again).unwrap(), file, "{name}");
    }
}

#[test]
fn cuckoofilter_add_contain_delete_and_what_happens_when_it_is_full() {
    let mut filter = Cuckoo::new(1000, 0.01).unwrap();
    // Add, Contain
    assert_eq!(filter.insert("key"), Ok(Insertion::New));
    assert!(filter.contains("key"));
    // Size, SizeInBytes
    assert_eq!(filter.slots().used, 1);
    assert!((filter.bits() / 8..2000).contains(&filter.size_in_bytes()), "{}", filter.size_in_bytes());
    // Delete: false, and nothing changes, if the key is certainly not in.
    assert!(filter.remove("key").is_removed() && !filter.remove("key").is_removed());
    assert_eq!(filter.slots().used, 0);
    // NotEnoughSpace: nobody is dropped, and what is refused has changed nothing.
    let mut inserted = 0u64;
    let full = loop {
        match filter.insert(inserted) {
            Ok(_) => inserted += 1,
            Err(full) => break full,
        }
    };
    assert!(matches!(full.limit, Limit::Slots { capacity: 1000, .. }) && inserted >= 1000, "{full:?}");
    let before = filter.to_bytes();
    assert!(filter.insert(inserted).is_err());
    assert_eq!(filter.to_bytes(), before);
    assert!((0..inserted).all(|key| filter.contains(key)));
}

#[test]
fn bit_set_set_clear_test_iterate_and_or_andnot() {
    let bits = |numbers: &[u64]| {
        let mut bitmap = Bitmap::zeroed(128).unwrap();
        for &number in numbers {
            assert_eq!(bitmap.set(number), Ok(true));
        }
        bitmap
    };
    let (mut one, other) = (bits(&[4, 7, 2, 5, 3]), bits(&[3, 4, 100]));
    // get, nextSetBit, cardinality
    assert_eq!((one.test(7), one.test(6)), (Ok(true), Ok(false)));
    assert_eq!(one.iter().collect::<Vec<_>>(), [2, 3, 4, 5, 7]);
    assert_eq!(one.count_ones(), 5);
    // clear
    assert_eq!((one.clear(7), one.clear(7)), (Ok(true), Ok(false)));
    // or, and, andNot
    let mut union = one.clone();
    union.union_with(&other).unwrap();
    assert!(union.iter().eq([2, 3, 4, 5, 100]));
    let mut both = one.clone();
    both.intersect_with(&other).unwrap();
    assert!(both.iter().eq([3, 4]));
    one.subtract(&other);
    assert!(one.iter().eq([2, 5]));
}

#[test]
fn a_class_of_ones_own_add_contains_and_its_numbers() {
    // n, m, k and the theoretical rate.
    let mut filter = Bloom::new(10_000_000, 1e-5).unwrap();
    let (capacity, bits, probes) = (filter.capacity(), filter.bits(), filter.probes());
    assert_eq!((capacity, bits, probes), (10_000_000, 239_626_460, 17));
    assert!((filter.fpr_at_capacity() / 1.0019e-5 - 1.0).abs() < 1e-4);
    assert_eq!(format!("{:.2}", bits as f64 / 8.0 / 1024.0 / 1024.0), "28.57");
    filter.insert("334324324234234");
    assert!(filter.contains("334324324234234"));
}
