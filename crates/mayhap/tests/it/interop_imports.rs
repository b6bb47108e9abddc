//! Filters of other programs that are read and asked: Parquet's, FastFilter's, those of Python packages, Roaring bitmaps.

use mayhap::interop::{self, HashRule, Keys, Making, Reading, recognise, sbbf};
use mayhap::{AnyFilter, Bytes, Combine, DecodeError};
use sha2::Digest as _;

use crate::foreign::{Golden, Lines, insert_all, is_hardened, make, read, through_our_container, write};

fn error(format: &str, bytes: &[u8], reading: &Reading) -> DecodeError {
    match interop::format(format).unwrap().read(bytes.to_vec().into(), reading) {
        Ok(filter) => panic!("{format}: {:?} was read", filter.report()),
        Err(error) => error,
    }
}

fn default_error(format: &str, bytes: &[u8]) -> DecodeError {
    error(format, bytes, &Reading::default())
}

/// The file with a number at a place.
fn with<const N: usize>(file: &[u8], place: usize, number: [u8; N]) -> Vec<u8> {
    let mut changed = file.to_vec();
    changed[place..place + N].copy_from_slice(&number);
    changed
}

#[test]
fn parquet_filters_are_read_asked_rebuilt_and_written_as_parquet_has_them() {
    for name in Golden::names("parquet", 9) {
        let golden = Golden::new("parquet", &name);
        let file = golden.read(golden.text("sbbf_file"));
        assert_eq!(recognise(&file).unwrap().name, "sbbf", "{name}");
        let filter = read("sbbf", file.clone(), &Reading::default());
        golden.check(&*filter, |key| key);
        assert_eq!(filter.report().bits, golden.number("num_bytes") * 8);
        assert_eq!(write("sbbf", &*filter), file, "{name}");
        let back = through_our_container(&*filter);
        golden.check(&*back, |key| key);
        assert_eq!(write("sbbf", &*back), file, "{name}");

        // A reader of Parquet hands out the bits alone, and they lie in the Parquet file.
        let header = golden.number("header_bytes") as usize;
        let bits = sbbf::of_bitset(Bytes::from(file[header..].to_vec())).unwrap();
        assert_eq!(write("sbbf", &*bits), file, "{name}");
        let whole = golden.file();
        let offset = golden.number("bloom_filter_offset") as usize;
        assert_eq!(whole[offset..][..file.len()], file[..], "{name}");

        // From the keys, to the bit.
        let empty = vec![0; file.len() - header];
        let mut made = sbbf::of_bitset(Bytes::from(empty)).unwrap();
        insert_all(&mut *made, &golden.inserted());
        assert_eq!(write("sbbf", &*made), file, "{name}");
    }
}

/// `pa-bytes` is left out: pyarrow makes a filter smaller if there are fewer rows than was said.
#[test]
fn parquet_filters_are_sized_as_pyarrow_does() {
    for name in ["pa-int", "pa-long", "pa-mixed", "pa-str"] {
        let golden = Golden::new("parquet", name);
        let mut made = make("sbbf", &Making::new(golden.number("ndv"), golden.rate("fpp")));
        insert_all(&mut *made, &golden.inserted());
        assert_eq!(write("sbbf", &*made), golden.read(golden.text("sbbf_file")), "{name}");
        assert_eq!(made.report().inserted, Some(golden.number("inserted_first")));
    }
    let refused = interop::format("sbbf").unwrap().make(&Making::new(1 << 40, 0.01)).err().unwrap();
    assert!(refused.to_string().contains("1073741824"), "{refused}");
}

#[test]
fn a_parquet_filter_folds_to_the_one_that_would_have_been_made_so_small() {
    // 1200 keys at 1 % and 600 of them, in as many blocks; and 48, which are no power of two.
    let golden = Golden::new("parquet", "pa-long");
    for (blocks, fewer) in [(64, [32, 16, 1]), (48, [24, 16, 3])] {
        let of_blocks = |blocks: usize| {
            let mut filter = sbbf::of_bitset(Bytes::from(vec![0; 32 * blocks])).unwrap();
            insert_all(&mut *filter, &golden.inserted()[..100]);
            filter
        };
        let filter = of_blocks(blocks);
        for blocks in fewer {
            let small = of_blocks(blocks);
            let folded = filter.as_fold().unwrap().fold_to(small.report().fpr_now * 1.001).unwrap();
            assert_eq!(write("sbbf", &*folded), write("sbbf", &*small), "{blocks} blocks");
        }
    }
    let full = read("sbbf", golden.read("pa-long.sbbf"), &Reading::default());
    let rate = full.report().fpr_now;
    let refused = full.as_fold().unwrap().fold_to(rate).err().unwrap();
    assert!(refused.to_string().contains("by 2, the least divisor of 16384 bits"), "{refused}");
    assert!(full.as_fold().unwrap().fold_to(rate / 2.0).is_err());
}

#[test]
fn parquet_filters_of_one_size_merge() {
    let golden = Golden::new("parquet", "pa-str");
    let file = golden.read("pa-str.sbbf");
    let empty = || sbbf::of_bitset(Bytes::from(vec![0; 2048])).unwrap();
    let (mut left, mut right) = (empty(), empty());
    let keys = golden.inserted();
    insert_all(&mut *left, &keys[..500]);
    insert_all(&mut *right, &keys[500..]);
    mayhap::combine(&mut *left, &*right, Combine::Union).unwrap();
    assert_eq!(write("sbbf", &*left), file);
    let other = sbbf::of_bitset(Bytes::from(vec![0; 1024])).unwrap();
    let refused = mayhap::combine(&mut *left, &*other, Combine::Union).unwrap_err();
    assert!(refused.to_string().starts_with("numbers of bits differ: 16384 and 8192"), "{refused}");
}

#[test]
fn hostile_parquet_filters_are_errors() {
    let file = Golden::new("parquet", "pa-int").read("pa-int.sbbf");
    is_hardened("sbbf", &file, &Reading::default());
    let bits = &file[16..];
    // 2^60 bytes, as a varint of nine bytes; -1; 2^31 - 32 bytes; 512 in one byte more than it takes; 33 bytes; none.
    for (length, said) in [
        (&b"\x80\x80\x80\x80\x80\x80\x80\x80\x20"[..], "length of the bits is 0"),
        (b"\x01", "length of the bits is 1"),
        (b"\xc0\xff\xff\xff\x0f", "bits takes 2147483616 bytes, 512 are there"),
        (b"\xff\xff\xff\xff\x7f", "length of the bits is 34359738367"),
        (b"\x80\x88\x00", "length of the bits is 1024"),
        (b"\x42", "length of the bits is 33"),
        (b"\x00", "length of the bits is 0"),
    ] {
        let rest = b"\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0";
        let error = default_error("sbbf", &[b"\x15", length, rest, bits].concat());
        assert!(error.to_string().contains(said), "{error}");
    }
    for (place, field) in
        [(0, "field of the length"), (4, "algorithm"), (9, "hash function"), (13, "compression")]
    {
        let error = default_error("sbbf", &with(&file, place, [0x2c]));
        assert!(error.to_string().starts_with(field), "{error}");
    }
    assert_eq!(default_error("sbbf", &[&file[..], b"\0"].concat()), DecodeError::Trailing { bytes: 1 });
    assert!(sbbf::of_bitset(Bytes::from(vec![0; 31])).is_err());
    assert!(sbbf::of_bitset(Bytes::from(Vec::new())).is_err());
}

/// Keys of the numbers are integers, others are hashed.
fn reading_of(golden: &Golden) -> Reading {
    let keys = match golden.kind() {
        Lines::Decimal64 | Lines::Decimal32 => Keys::Integers,
        Lines::Hex => Keys::Bytes,
        Lines::Text => Keys::Text,
    };
    Reading { keys, hash: None }
}

#[test]
fn fastfilter_files_are_read_and_answer_as_fastfilter_does() {
    for name in Golden::names("fastfilter", 8) {
        let golden = Golden::new("fastfilter", &name);
        let (format, _) = name.split_once('-').unwrap();
        let file = golden.file();
        assert_eq!(recognise(&file).unwrap().name, format, "{name}");
        let filter = read(format, file, &reading_of(&golden));
        assert_eq!(filter.program(), Some(format));
        golden.check(&*filter, |key| key);
        golden.check(&*through_our_container(&*filter), |key| key);
        let keys = golden.number("inserted_first");
        assert_eq!(filter.report().capacity, keys, "{name}");
        assert!(!filter.report().over_capacity());
        assert!(filter.hashing() != mayhap::Hashing::Integer || !filter.contains(b"no integer"));
        let refused = interop::format(format).unwrap().write(&*filter).unwrap_err();
        assert!(refused.to_string().contains("are read, and never written"), "{refused}");
    }
}

#[test]
fn the_four_bytes_behind_a_fuse_filter_of_16_bits_mean_nothing() {
    let golden = Golden::new("fastfilter", "fuse16-u64");
    let file = golden.file();
    let short = &file[..file.len() - 4];
    assert_eq!(recognise(short).unwrap().name, "fuse16");
    golden.check(&*read("fuse16", short.to_vec(), &reading_of(&golden)), |key| key);
    let changed = with(&file, file.len() - 4, *b"what");
    let filter = read("fuse16", changed.clone(), &reading_of(&golden));
    golden.check(&*filter, |key| key);
    golden.check(&*through_our_container(&*filter), |key| key);
    for more in [&changed[..changed.len() - 1], &changed[..changed.len() - 3]] {
        assert!(matches!(default_error("fuse16", more), DecodeError::Trailing { .. }));
    }
    assert_eq!(default_error("fuse16", &[&file[..], b"\0"].concat()), DecodeError::Trailing { bytes: 5 });
}

#[test]
fn hostile_fastfilter_files_are_errors() {
    for name in ["xor8-str", "xor16-u64", "fuse8-str", "fuse16-u64"] {
        let golden = Golden::new("fastfilter", name);
        let (format, _) = name.split_once('-').unwrap();
        is_hardened(format, &golden.file(), &reading_of(&golden));
    }
    let xor = Golden::new("fastfilter", "xor8-str").file();
    for (block, said) in [
        (0u64, "places of a block is 0"),
        (1 << 60, "places of a block is 1152921504606846976"),
        (u64::from(u32::MAX), "fingerprints takes 12884901885 bytes, 1260 are there"),
        (419, "3 bytes follow the end"),
    ] {
        let error = default_error("xor8", &with(&xor, 8, block.to_le_bytes()));
        assert!(error.to_string().contains(said), "{error}");
    }
    let fuse = Golden::new("fastfilter", "fuse8-str").file();
    let whole = |keys: u32, segment: u32, segments: u32, first: u32, places: u32| {
        let fields: Vec<u8> =
            [keys, segment, segments, first, places].into_iter().flat_map(u32::to_le_bytes).collect();
        [&fuse[..8], &fields, &fuse[28..]].concat()
    };
    assert_eq!(whole(1000, 128, 9, 1152, 1408), fuse);
    for (changed, said) in [
        (whole(1000, 0, 9, 0, 0), "places of a segment is 0"),
        (whole(1000, 127, 9, 1143, 1397), "places of a segment is 127"),
        (whole(1000, 128, 0, 0, 256), "segments is 0"),
        (whole(1000, 128, 9, 1151, 1408), "places of the first segments is 1151"),
        (whole(1000, 1 << 31, 2, 0, 0), "places of the first segments is 0"),
        (whole(1000, 128, 9, 1152, 1409), "places is 1409"),
        (whole(1409, 128, 9, 1152, 1408), "keys is 1409"),
        (whole(1000, 1 << 28, 9, 9 << 28, 11 << 28), "fingerprints takes 2952790016 bytes, 1408 are there"),
    ] {
        let error = default_error("fuse8", &changed);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn pybloom_live_files_are_read_and_answer_as_pybloom_live_does() {
    for name in Golden::names("pybloom-live", 4) {
        let golden = Golden::new("pybloom-live", &name);
        let file = golden.file();
        assert_eq!(recognise(&file).unwrap().name, "pybloom-live", "{name}");
        let filter = read("pybloom-live", file.clone(), &Reading::default());
        golden.check(&*filter, |key| key);
        golden.check(&*through_our_container(&*filter), |key| key);
        let report = filter.report();
        assert_eq!(report.fpr_asked, golden.rate("error_rate"));
        if name == "pl-scalable" {
            assert_eq!(filter.family().name, "scalable");
            assert_eq!(filter.details().layers.len() as u64, golden.number("filters"));
            assert_eq!((report.capacity, report.inserted), (1500, Some(984)));
        } else {
            assert_eq!(filter.family().name, "bloom");
            assert_eq!(report.capacity, golden.number("capacity"));
            assert_eq!(report.inserted, Some(golden.number("count")));
            assert_eq!(report.probes.map(u64::from), Some(golden.number("num_slices")));
        }
    }
}

/// A plain file of pybloom-live with these keys, from the description of the format, with numbers of so many bytes.
fn pybloom_live_file(
    (slices, slice): (u64, u64),
    number: usize,
    keys: &[Vec<u8>],
    hash: impl Fn(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let mut bits = vec![0u8; (slices * slice).div_ceil(8) as usize];
    for key in keys {
        let hashes = (0u32..).flat_map(|salt| hash(&[&hash(&salt.to_le_bytes()), &key[..]].concat()));
        let bytes: Vec<u8> = hashes.take(slices as usize * number).collect();
        for (index, bytes) in (0..slices).zip(bytes.chunks(number)) {
            let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            let place = index * slice + value % slice;
            bits[(place / 8) as usize] |= 1 << (place % 8);
        }
    }
    let header = [0.01f64.to_bits(), slices, slice, 1000, keys.len() as u64].map(u64::to_le_bytes).concat();
    [header, bits].concat()
}

/// Nothing in the file tells the two apart but the answers.
#[test]
fn a_pybloom_live_file_of_old_is_hashed_by_md5_where_somebody_says_so() {
    let keys = Golden::new("pybloom-live", "pl-plain").inserted();
    let file = pybloom_live_file((7, 1370), 2, &keys, |bytes| md5::Md5::digest(bytes).to_vec());
    let old = Reading { hash: Some(HashRule::Md5), ..Reading::default() };
    let filter = read("pybloom-live", file.clone(), &old);
    let back = through_our_container(&*filter);
    assert!(keys.iter().all(|key| filter.contains(key) && back.contains(key)));
    let today = read("pybloom-live", file, &Reading::default());
    assert!(keys.iter().filter(|key| today.contains(key)).count() < 50);
}

/// Hash functions of more bits, numbers of more bytes, and more slices than one hash has numbers.
#[test]
fn pybloom_live_takes_the_hash_function_that_its_slices_need() {
    let keys = Golden::new("pybloom-live", "pl-plain").inserted();
    let sha384 = |bytes: &[u8]| sha2::Sha384::digest(bytes).to_vec();
    let sha512 = |bytes: &[u8]| sha2::Sha512::digest(bytes).to_vec();
    let files = [
        ("SHA-384", pybloom_live_file((17, 1443), 2, &keys, sha384)),
        ("SHA-384", pybloom_live_file((24, 0x7fff), 2, &keys, sha384)),
        ("SHA-384 of longer numbers", pybloom_live_file((12, 0x8000), 4, &keys, sha384)),
        ("SHA-512", pybloom_live_file((25, 1443), 2, &keys, sha512)),
        ("SHA-512 twice", pybloom_live_file((33, 1443), 2, &keys, sha512)),
        ("SHA-512 thrice, of longer numbers", pybloom_live_file((40, 0x8000), 4, &keys, sha512)),
    ];
    for (what, file) in files {
        let filter = read("pybloom-live", file, &Reading::default());
        assert!(keys.iter().all(|key| filter.contains(key)), "{what}");
        assert!(
            !Golden::new("pybloom-live", "pl-plain").absent().iter().any(|key| filter.contains(key)),
            "{what}"
        );
    }
}

#[test]
fn an_empty_scalable_file_of_pybloom_live_has_no_layer() {
    let file = [
        &2u32.to_le_bytes()[..],
        &0.9f64.to_le_bytes(),
        &100u64.to_le_bytes(),
        &0.01f64.to_le_bytes(),
        &[0; 4],
    ];
    let filter = read("pybloom-live", file.concat(), &Reading::default());
    assert!(!filter.contains(b"key") && filter.details().layers.is_empty());
    assert_eq!((filter.report().bits, filter.report().fpr_now, filter.report().fill), (0, 0.0, 0.0));
    through_our_container(&*filter);
}

#[test]
fn hostile_pybloom_live_files_are_errors() {
    let plain = Golden::new("pybloom-live", "pl-plain").file();
    let scalable = Golden::new("pybloom-live", "pl-scalable").file();
    is_hardened("pybloom-live", &plain, &Reading::default());
    is_hardened("pybloom-live", &scalable, &Reading::default());
    let nan = f64::NAN.to_le_bytes();
    for (changed, said) in [
        (with(&plain, 0, nan), "rate is"),
        (with(&plain, 0, (-0.01f64).to_le_bytes()), "rate is"),
        (with(&plain, 0, [0; 8]), "rate is 0,"),
        (with(&plain, 0, 1f64.to_le_bytes()), "rate is"),
        (with(&plain, 8, 0u64.to_le_bytes()), "probes is 0"),
        (with(&plain, 8, 1075u64.to_le_bytes()), "probes is 1075"),
        (with(&plain, 16, 0u64.to_le_bytes()), "bits of a slice is 0"),
        (
            with(&plain, 16, (1u64 << 60).to_le_bytes()),
            "bits takes 1008806316530991104 bytes, 1199 are there",
        ),
        (with(&plain, 16, u64::MAX.to_le_bytes()), "bits of a slice is 18446744073709551615"),
        (with(&plain, 24, 0u64.to_le_bytes()), "capacity is 0"),
        (with(&plain, 1238, [0xff]), "end of the bits should be zero"),
        (with(&scalable, 0, [0; 4]), "growth is 0"),
        (with(&scalable, 4, 1.5f64.to_le_bytes()), "tightening is"),
        (with(&scalable, 12, 0u64.to_le_bytes()), "capacity is 0"),
        (with(&scalable, 20, nan), "rate is"),
        (
            with(&scalable, 28, u32::MAX.to_le_bytes()),
            "lengths of the layers takes 34359738360 bytes, 2128 are there",
        ),
        (
            with(&scalable, 32, (1u64 << 60).to_le_bytes()),
            "layer takes 1152921504606846976 bytes, 2096 are there",
        ),
        (with(&scalable, 32, 163u64.to_le_bytes()), "bits takes 124 bytes, 123 are there"),
        ([&scalable[..], b"\0"].concat(), "1 bytes follow the end"),
        ([&plain[..], b"\0"].concat(), "1 bytes follow the end"),
    ] {
        let error = default_error("pybloom-live", &changed);
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
}

#[test]
fn pyprobables_files_are_read_and_answer_as_pyprobables_does() {
    for name in Golden::names("pyprobables", 4) {
        let golden = Golden::new("pyprobables", &name);
        let file = golden.file();
        assert_eq!(recognise(&file).unwrap().name, "pyprobables", "{name}");
        let filter = read("pyprobables", file, &reading_of(&golden));
        golden.check(&*filter, |key| key);
        golden.check(&*through_our_container(&*filter), |key| key);
        let report = filter.report();
        assert!((report.fpr_asked - golden.rate("fpp")).abs() < 1e-8);
        if name == "pp-expanding" {
            assert_eq!(filter.family().name, "scalable");
            assert_eq!(filter.details().layers.len() as u64, golden.number("expansions") + 1);
            // Some seemed to be in already, and were not taken.
            assert_eq!(filter.details().layers.iter().map(|layer| layer.keys).sum::<u64>(), 984);
            assert_eq!((report.capacity, report.inserted), (1200, Some(1000)));
        } else {
            assert_eq!(filter.family().name, "bloom");
            assert_eq!(report.bits, golden.number("number_bits"));
            assert_eq!(report.probes.map(u64::from), Some(golden.number("number_hashes")));
            assert_eq!(report.inserted, Some(golden.number("elements_added")));
        }
    }
}

#[test]
fn text_of_pyprobables_is_not_its_utf8_beyond_ascii() {
    let golden = Golden::new("pyprobables", "pp-mixed");
    let as_bytes = Reading { keys: Keys::Bytes, hash: None };
    let filter = read("pyprobables", golden.file(), &as_bytes);
    for key in golden.inserted() {
        assert!(filter.contains(&key) || !key.is_ascii(), "{}", String::from_utf8_lossy(&key));
    }
    assert!(golden.inserted().iter().any(|key| !filter.contains(key)));
}

#[test]
fn hostile_pyprobables_files_are_errors() {
    let plain = Golden::new("pyprobables", "pp-plain").file();
    let expanding = Golden::new("pyprobables", "pp-expanding").file();
    is_hardened("pyprobables", &plain, &Reading::default());
    is_hardened("pyprobables", &expanding, &Reading::default());
    let footer = plain.len() - 20;
    for (changed, said) in [
        (plain[footer + 1..].to_vec(), "footer takes 20 bytes, 19 are there"),
        (with(&plain, footer, 0u64.to_le_bytes()), "capacity is 0"),
        (with(&plain, footer, (1u64 << 60).to_le_bytes()), "capacity is 1152921504606846976"),
        (with(&plain, footer, 1001u64.to_le_bytes()), "bits takes 1200 bytes, 1199 are there"),
        (with(&plain, footer, 999u64.to_le_bytes()), "2 bytes follow the end"),
        (with(&plain, footer + 16, f32::NAN.to_le_bytes()), "rate is"),
        (with(&plain, footer + 16, (-0.5f32).to_le_bytes()), "rate is"),
        (with(&plain, footer + 16, 1f32.to_le_bytes()), "rate is"),
        (with(&plain, footer + 16, 0.999f32.to_le_bytes()), "probes is 0"),
        (with(&plain, footer - 1, [0xff]), "end of the bits should be zero"),
        (with(&expanding, expanding.len() - 28, (1u64 << 61).to_le_bytes()), "1120 bytes follow the end"),
        (with(&expanding, expanding.len() - 28, 0u64.to_le_bytes()), "1120 bytes follow the end"),
    ] {
        let error = default_error("pyprobables", &changed);
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
}

#[test]
fn rbloom_files_are_read_asked_rebuilt_and_written_as_rbloom_does() {
    let reading = Reading { keys: Keys::Bytes, hash: Some(HashRule::Sha256) };
    for name in Golden::names("rbloom", 3) {
        let golden = Golden::new("rbloom", &name);
        let file = golden.file();
        let filter = read("rbloom", file.clone(), &reading);
        golden.check(&*filter, |key| key);
        assert_eq!(filter.report().bits, golden.number("size_in_bits"));
        assert_eq!(write("rbloom", &*filter), file, "{name}");
        let back = through_our_container(&*filter);
        golden.check(&*back, |key| key);
        assert_eq!(write("rbloom", &*back), file, "{name}");
        // From the keys, to the bit.
        let mut empty = file.clone();
        empty[8..].fill(0);
        let mut made = read("rbloom", empty, &reading);
        insert_all(&mut *made, &golden.inserted());
        assert_eq!(write("rbloom", &*made), file, "{name}");
    }
}

#[test]
fn hostile_rbloom_files_are_errors() {
    let file = Golden::new("rbloom", "r-bytes").file();
    let reading = Reading { keys: Keys::Bytes, hash: Some(HashRule::Sha256) };
    is_hardened("rbloom", &file, &reading);
    assert!(recognise(&file).unwrap_err().candidates.is_empty());
    for hash in [None, Some(HashRule::Md5)] {
        let unsaid = error("rbloom", &file, &Reading { hash, ..Reading::default() });
        assert_eq!(
            unsaid.to_string(),
            "the file does not say how its keys were hashed; name the rule, if it is one that is known: sha256"
        );
    }
    for (changed, said) in [
        (with(&file, 0, 0u64.to_le_bytes()), "probes is 0"),
        (with(&file, 0, (1u64 << 60).to_le_bytes()), "probes is 1152921504606846976"),
        (file[..8].to_vec(), "bits is 0"),
        (file[..7].to_vec(), "probes takes 8 bytes, 7 are there"),
    ] {
        let error = error("rbloom", &changed, &reading);
        assert!(error.to_string().contains(said), "{error}");
    }
}

fn integers(filter: &dyn AnyFilter) -> impl Fn(u64) -> bool + '_ {
    |integer| filter.contains(&integer.to_le_bytes())
}

#[test]
fn roaring_files_are_read_as_sets_of_our_own_and_written_as_they_were() {
    for name in Golden::names("roaring", 3) {
        let golden = Golden::new("roaring", &name);
        let file = golden.file();
        assert_eq!(recognise(&file).unwrap().name, "roaring", "{name}");
        let filter = read("roaring", file.clone(), &Reading::default());
        assert_eq!((filter.family().name, filter.program()), ("roaring", None));
        let report = filter.report();
        assert_eq!(report.estimated_len, Some(golden.number("cardinality") as f64));
        let has = integers(&*filter);
        for end in ["first", "last"] {
            let ends = golden.manifest[end].as_array().unwrap();
            assert!(ends.iter().all(|value| has(value.as_u64().unwrap())), "{name}");
        }
        assert!(!has(1 << 32));
        let inside = (0..200_000).filter(|&value| has(value));
        let top = if has(u64::from(u32::MAX)) { u64::from(u32::MAX) } else { 0 };
        let top = if has(4_000_000_000) { 4_000_000_000 } else { top };
        assert_eq!(inside.sum::<u64>() + top, golden.number("sum"), "{name}");
        assert_eq!(write("roaring", &*filter), file, "{name}");
        assert_eq!(write("roaring", &*through_our_container(&*filter)), file, "{name}");
    }
}

#[test]
fn a_roaring_set_beyond_32_bits_is_written_in_64() {
    let mut filter = read("roaring", Golden::new("roaring", "array-only").file(), &Reading::default());
    insert_all(&mut *filter, &[(1u64 << 40).to_le_bytes().to_vec()]);
    let file = write("roaring", &*filter);
    assert_eq!(file[..8], 2u64.to_le_bytes());
    assert_eq!(recognise(&file).unwrap().name, "roaring");
    let back = read("roaring", file.clone(), &Reading::default());
    assert!([1, 2, 3, 70_000, 4_000_000_000, 1 << 40].into_iter().all(integers(&*back)));
    assert_eq!(back.report().estimated_len, Some(6.0));
    assert_eq!(write("roaring", &*back), file);
    is_hardened("roaring", &file, &Reading::default());

    // No set, and one that is empty.
    for none in [&[0; 8][..], &[&1u64.to_le_bytes()[..], &[0; 4], b"\x3a\x30\0\0\0\0\0\0"].concat()] {
        let empty = read("roaring", none.to_vec(), &Reading::default());
        assert_eq!(write("roaring", &*empty), b"\x3a\x30\0\0\0\0\0\0");
        through_our_container(&*empty);
    }
    // Twice the same half.
    let set = &Golden::new("roaring", "array-only").file()[..];
    let twice = [&2u64.to_le_bytes()[..], &[7, 0, 0, 0], set, &[7, 0, 0, 0], set].concat();
    assert_eq!(
        default_error("roaring", &twice).to_string(),
        "damaged payload: the sets of a 64-bit roaring bitmap are not in order"
    );
}

#[test]
fn hostile_roaring_files_are_errors() {
    for name in ["array-bitmap-run", "array-only", "empty"] {
        is_hardened("roaring", &Golden::new("roaring", name).file(), &Reading::default());
    }
    let file = Golden::new("roaring", "array-only").file();
    let end = file.len();
    for (changed, said) in [
        (with(&file, 4, u32::MAX.to_le_bytes()), "containers is 4294967295"),
        (with(&file, 4, 65_536u32.to_le_bytes()), "descriptions takes 262144 bytes"),
        (file[..end - 1].to_vec(), "container takes 2 bytes, 1 are there"),
        ([&file[..], b"\0"].concat(), "1 bytes follow the end"),
        ((1u64 << 60).to_le_bytes().to_vec(), "high half takes 4 bytes, 0 are there"),
        ([&1u64.to_le_bytes()[..], &[0; 12]].concat(), "cookie is 0"),
        (Vec::new(), "number of sets takes 8 bytes, 0 are there"),
    ] {
        let error = default_error("roaring", &changed);
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
    // The first container has 1, 2, 3: out of order, and twice the same.
    let place = file.windows(6).position(|values| values == [1, 0, 2, 0, 3, 0]).unwrap();
    for values in [[2, 0, 1, 0, 3, 0], [1, 0, 1, 0, 3, 0]] {
        let error = default_error("roaring", &with(&file, place, values));
        assert!(error.to_string().contains("not in order"), "{error}");
    }
}

/// A number of 2 bytes modulo 28,756 is uneven, so that the share of set bits alone says 0.09%.
#[test]
fn the_rate_of_a_pybloom_live_filter_is_the_one_that_strangers_find() {
    let golden = Golden::new("pybloom-live", "pl-large");
    let filter = read("pybloom-live", golden.file(), &Reading::default());
    let trials = 400_000u64;
    let hits = (0..trials).filter(|key| filter.contains(&key.to_le_bytes())).count() as u64;
    let claimed = filter.report().fpr_now;
    assert!(claimed > 0.0011, "{claimed}");
    // A right rate is refused with a chance of one in 1.7 million; and the keys are always the same.
    let measured = mayhap_eval::Proportion { hits, trials };
    assert!(measured.agrees_with(claimed, 0.0, 5.0), "{claimed} claimed, {hits} of {trials}");
}
