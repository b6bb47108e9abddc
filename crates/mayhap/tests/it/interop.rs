//! Filters of other programs, both ways: Guava, Go, DCSO, Spark.

use mayhap::interop::guava::{self, Strategy};
use mayhap::interop::{self, HashRule, Making, Reading, dcso, go, recognise};
use mayhap::key_rules::KeyRules;
use mayhap::with_key_rules;

use crate::foreign::{self, Golden, insert_all, is_hardened, make, read, through_our_container, write};

fn utf16(key: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(key).expect("UTF-8");
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Key bytes by what the funnel makes of them.
fn funnel(golden: &Golden) -> fn(Vec<u8>) -> Vec<u8> {
    match golden.text("funnel") {
        "Funnels.unencodedCharsFunnel()" | "Funnels.stringFunnel(UTF-16LE)" => utf16,
        _ => |key| key,
    }
}

#[test]
fn guava_files_are_read_asked_rebuilt_and_written_as_guava_does() {
    for name in Golden::names("guava", 20) {
        let golden = Golden::new("guava", &name);
        let file = golden.file();
        assert_eq!(recognise(&file).unwrap().name, "guava", "{name}");
        let filter = read("guava", file.clone(), &Reading::default());
        golden.check(&*filter, funnel(&golden));
        assert_eq!(write("guava", &*filter), file, "{name}");
        let back = through_our_container(&*filter);
        golden.check(&*back, funnel(&golden));
        assert_eq!(write("guava", &*back), file, "{name}");

        // From the keys, to the bit.
        let strategy = if name.starts_with("g32") { Strategy::Mitz32 } else { Strategy::Mitz64 };
        let version = if name.contains("guava33") { None } else { Some((31, 1)) };
        let capacity = golden.number("expected_insertions").max(1);
        let making = Making { version, ..Making::new(capacity, golden.rate("fpp")) };
        let mut made = guava::create(&making, strategy).unwrap();
        let keys: Vec<Vec<u8>> = golden.inserted().into_iter().map(funnel(&golden)).collect();
        insert_all(&mut *made, &keys);
        assert_eq!(write("guava", &*made), file, "{name}");
    }
}

#[test]
fn hostile_guava_files_are_errors() {
    let file = Golden::new("guava", "g64-bytes").file();
    is_hardened("guava", &file, &Reading::default());
}

#[test]
fn go_files_are_read_asked_rebuilt_and_written_as_go_does() {
    for name in Golden::names("go-bloom", 10) {
        let golden = Golden::new("go-bloom", &name);
        let binary = golden.file();
        let files = [
            ("go", binary.clone()),
            ("go-json", golden.read(golden.text("file_json"))),
            ("go-gob", golden.read(golden.text("file_gob"))),
        ];
        for (format, file) in &files {
            assert_eq!(recognise(file).unwrap().name, *format, "{name}");
            let filter = read(format, file.clone(), &Reading::default());
            golden.check(&*filter, |key| key);
            let back = through_our_container(&*filter);
            golden.check(&*back, |key| key);
            // From each to each.
            for (other, file) in &files {
                assert_eq!(write(other, &*filter), *file, "{name}");
                assert_eq!(write(other, &*back), *file, "{name}");
            }
        }
        let mut made = match golden.text("constructor") {
            "New" => go::new(golden.number("m"), golden.number("k")).unwrap(),
            _ => make("go", &Making::new(golden.number("n"), golden.rate("fpp"))),
        };
        insert_all(&mut *made, &golden.inserted());
        assert_eq!(write("go", &*made), binary, "{name}");
    }
}

/// The values that `baseHashes` and `location` of Go's package give, and the bits of files that it wrote.
#[test]
fn locations_are_those_of_go_and_fit_filters_of_any_size() {
    let expected = [
        0x57fb_d3bf_bbce_f0e5,
        0x02bf_6494_a8d4_2de2,
        0xafdf_8244_bfd4_607b,
        0x0c61_5dfc_756f_9779,
        0x9f6b_94a2_cf4c_72bd,
        0xb286_c19e_b0df_0d0e,
        0x5fa6_df4e_c7df_3fa7,
    ];
    assert_eq!(go::locations(b"user:0", 7), expected);
    assert_eq!(go::locations(b"user:0", 2), expected[..2]);
    for name in Golden::names("go-bloom", 10) {
        let golden = Golden::new("go-bloom", &name);
        let file = golden.file();
        let number = |at: usize| u64::from_be_bytes(*file[at..].first_chunk().unwrap());
        let (bits, probes) = (number(0), u32::try_from(number(8)).unwrap());
        let mut words = vec![0u64; file[24..].len() / 8];
        for key in golden.inserted() {
            for location in go::locations(&key, probes) {
                let position = location % bits;
                words[position as usize / 64] |= 1 << (position % 64);
            }
        }
        assert!(words.iter().flat_map(|word| word.to_be_bytes()).eq(file[24..].iter().copied()), "{name}");
    }
}

/// `New(0, 2)`: the modulus is 1 and the bit set has no bit until a key comes.
#[test]
fn a_go_bit_set_of_no_bits_grows_with_its_first_key() {
    let mut filter = go::new(0, 2).unwrap();
    let empty = [1u64, 2, 0].map(u64::to_be_bytes).concat();
    assert_eq!(write("go", &*filter), empty);
    let mut read_again = read("go", empty, &Reading::default());
    assert!(!read_again.contains(b"key"));
    for filter in [&mut filter, &mut read_again] {
        insert_all(&mut **filter, &[b"key".to_vec()]);
        assert_eq!(write("go", &**filter), [1u64, 2, 1, 1].map(u64::to_be_bytes).concat());
        through_our_container(&**filter);
    }
}

/// A digest is not enough for Go's positions. Key rules beside the filter hid its bytes: every key was probably in.
#[test]
fn a_filter_with_key_rules_looks_keys_up_by_their_bytes() {
    let mut filter = go::new(1000, 4).unwrap();
    insert_all(&mut *filter, &[b"in".to_vec()]);
    let filter = with_key_rules(filter, Some(KeyRules::default()));
    assert!(filter.contains(b"in") && !filter.contains(b"not in"));
}

/// `FromWithM`: there are more bits than the modulus.
#[test]
fn a_go_bit_set_can_be_longer_than_its_modulus() {
    let file = [10u64, 1, 128, 0b11, 1 << 63].map(u64::to_be_bytes).concat();
    assert!(recognise(&file).unwrap_err().candidates.is_empty());
    let filter = read("go", file.clone(), &Reading::default());
    assert_eq!(filter.report().bits, 10);
    assert_eq!(write("go", &*through_our_container(&*filter)), file);
}

#[test]
fn dcso_files_are_read_asked_rebuilt_and_written_as_dcso_does() {
    for name in Golden::names("dcso", 5) {
        let golden = Golden::new("dcso", &name);
        let file = golden.file();
        assert_eq!(recognise(&file).unwrap().name, "dcso", "{name}");
        let filter = read("dcso", file.clone(), &Reading::default());
        golden.check(&*filter, |key| key);
        let plain = write("dcso", &*filter);
        assert_eq!(foreign::sha256(&plain), golden.text("sha256_uncompressed"), "{name}");
        assert_eq!(dcso::is_gzip(&file), name == "d-gzip");
        let back = through_our_container(&*filter);
        golden.check(&*back, |key| key);
        assert_eq!(write("dcso", &*back), plain, "{name}");
        let packed = read("dcso", dcso::gzip(&plain), &Reading::default());
        assert_eq!(write("dcso", &*packed), plain, "{name}");

        let mut made = make("dcso", &Making::new(golden.number("n"), golden.rate("fpp")));
        insert_all(&mut *made, &golden.inserted());
        let data = golden.text("attached_data").as_bytes();
        assert_eq!([&write("dcso", &*made), data].concat(), plain, "{name}");
    }
}

#[test]
fn spark_files_are_read_asked_rebuilt_and_written_as_spark_does() {
    for name in Golden::names("spark", 13) {
        let golden = Golden::new("spark", &name);
        let file = golden.file();
        assert_eq!(recognise(&file).unwrap().name, "spark", "{name}");
        let filter = read("spark", file.clone(), &Reading::default());
        assert_eq!(write("spark", &*filter), file, "{name}");
        let back = through_our_container(&*filter);
        assert_eq!(write("spark", &*back), file, "{name}");
        let version = if name.starts_with("v1") { Some((4, 0)) } else { None };
        if name == "v2-dataframe-range1000" {
            let keys: Vec<Vec<u8>> = (0..1000i64).map(|key| key.to_le_bytes().to_vec()).collect();
            assert!(keys.iter().all(|key| filter.contains(key)));
            let mut made = make("spark", &Making::new(1000, 0.01));
            insert_all(&mut *made, &keys);
            assert_eq!(write("spark", &*made), file, "{name}");
            continue;
        }
        // Every integer is a long.
        let item = |key: Vec<u8>| match golden.kind() {
            foreign::Lines::Decimal32 => {
                i64::from(i32::from_le_bytes(key.try_into().unwrap())).to_le_bytes().to_vec()
            }
            _ => key,
        };
        golden.check(&*filter, item);
        golden.check(&*back, item);
        let seed = golden.manifest["seed"].as_i64().unwrap() as i32 as u32;
        let making = Making::new(golden.number("expected_items"), golden.rate("fpp"));
        let mut made = make("spark", &Making { version, seed: seed.into(), ..making });
        let keys: Vec<Vec<u8>> = golden.inserted().into_iter().map(item).collect();
        insert_all(&mut *made, &keys);
        assert_eq!(write("spark", &*made), file, "{name}");
    }
}

/// The values are those of a running Spark: `xxhash64('user:0')` and so on.
#[test]
fn a_runtime_filter_of_sparks_sql_is_asked_by_the_values_themselves() {
    let hashes = [2_329_537_736_397_141_650i64, -7_001_672_635_703_045_582, -6_698_625_589_789_238_999];
    let mut fed = make("spark", &Making::new(3, 1e-6));
    insert_all(&mut *fed, &hashes.map(|hash| hash.to_le_bytes().to_vec()));
    let file = write("spark", &*fed);
    let sql = Reading { hash: Some(HashRule::Xxh64), ..Reading::default() };
    let filter = read("spark", file.clone(), &sql);
    for key in [&b"user:0"[..], &1i64.to_le_bytes(), &1i32.to_le_bytes()] {
        assert!(filter.contains(key) && !fed.contains(key), "{key:x?}");
    }
    let mut filter = through_our_container(&*filter);
    assert_eq!(write("spark", &*filter), file);
    insert_all(&mut *filter, &[b"more".to_vec()]);
    assert!(filter.contains(b"more"));
    let refused = mayhap::combine(&mut *filter, &*fed, mayhap::Combine::Union).unwrap_err();
    assert_eq!(refused.to_string(), "hash functions differ: spark-sql-xxh64 and spark-murmur3-x86-32");
}

#[test]
fn hostile_files_are_errors() {
    let reading = Reading::default();
    is_hardened("go", &Golden::new("go-bloom", "est-mixed").file(), &reading);
    is_hardened("go-json", &Golden::new("go-bloom", "est-mixed").read("est-mixed.bloom.json"), &reading);
    is_hardened("go-gob", &Golden::new("go-bloom", "est-mixed").read("est-mixed.gob"), &reading);
    is_hardened("dcso", &Golden::new("dcso", "d-data").file(), &reading);
    is_hardened("dcso", &Golden::new("dcso", "d-gzip").file(), &reading);
    is_hardened("spark", &Golden::new("spark", "v1-bytes").file(), &reading);
    is_hardened("spark", &Golden::new("spark", "v2-bytes").file(), &reading);
}

/// A bit set that is shorter than the other one must not cut off what that one holds.
#[test]
fn a_merge_of_go_bit_sets_of_different_lengths_keeps_the_bits_of_both() {
    let file = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>();
    let pairs =
        [(file(&[1, 3, 0]), file(&[1, 3, 1, 1])), (file(&[64, 2, 5, 0b101]), file(&[64, 2, 64, 1 << 63]))];
    for (short, long) in pairs {
        for (ours, theirs) in [(&short, &long), (&long, &short)] {
            let mut ours = read("go", ours.clone(), &Reading::default());
            let theirs = read("go", theirs.clone(), &Reading::default());
            let ones = ours.report().fill * ours.report().bits as f64
                + theirs.report().fill * theirs.report().bits as f64;
            mayhap::combine(&mut *ours, &*theirs, mayhap::Combine::Union).unwrap();
            let merged = read("go", write("go", &*ours), &Reading::default());
            assert_eq!(merged.report().fill * merged.report().bits as f64, ones);
        }
    }
}

/// A JSON file that is none of Go's is not taken apart: its first field is unknown.
#[test]
fn other_json_is_refused_at_its_first_field() {
    let other = [&b"{\"a\":["[..], &b"0,".repeat(1000), b"0]}"].concat();
    let error = interop::format("go-json").unwrap().read(other.into(), &Reading::default()).err().unwrap();
    assert!(error.to_string().contains("not a JSON object of whole numbers m and k and a text b"), "{error}");
}

/// Keys in any number, by their bytes and by their digests where those are enough: the loops of other programs' filters are the
/// shell's, and those of hashes that are wider than a digest their own.
#[test]
fn batches_of_other_programs_answer_as_single_keys() {
    let keys: Vec<Vec<u8>> = (0..1100u32).map(|i| format!("key:{i}").into_bytes()).collect();
    let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut made = 0;
    for format in interop::FORMATS.iter().filter(|format| format.makes()) {
        for len in [0, 1, 31, 32, 33, 256, 257, 1100] {
            // Too small, so that absent keys are in by chance.
            let making = Making::new(300, 0.2);
            let mut many = format.make(&making).unwrap();
            let mut single = format.make(&making).unwrap();
            let (mut told, mut expected) = (Vec::new(), Vec::new());
            many.insert_keys(&slices[..len], &mut told).unwrap();
            slices[..len].iter().for_each(|key| single.insert_keys(&[*key], &mut expected).unwrap());
            assert_eq!(told, expected, "{}, {len} keys", format.name);
            assert_eq!(format.write(&*many), format.write(&*single), "{}, {len} keys", format.name);

            let single: Vec<bool> = slices.iter().map(|key| many.contains(key)).collect();
            assert!(single[..len].iter().all(|&hit| hit));
            for asked in [0, 1, 31, 32, 33, 1100] {
                let mut hits = vec![false];
                many.contains_keys(&slices[..asked], &mut hits);
                assert_eq!(hits[1..], single[..asked], "{}, {asked} of {len} keys", format.name);
                let digests: Vec<_> = slices[..asked].iter().map(|key| many.hashing().digest(key)).collect();
                let mut hits = Vec::new();
                many.contains_batch(&digests, &mut hits);
                if many.as_insert().is_some() {
                    assert_eq!(hits, single[..asked], "{}, {asked} digests", format.name);
                } else {
                    assert!(hits.iter().all(|&hit| hit), "a digest is not enough: perhaps in");
                }
            }
        }
        made += 1;
    }
    assert!(made >= 8, "{made} formats");
}
