//! Files that earlier versions wrote: their bytes and their answers never change.
//!
//! The files are made by `examples/write_golden.rs`, once, and then only read. If a test fails here, it
//! is the code that is wrong. `docs/format.md` shows the first of them byte by byte; the last tests
//! compare the two.

use std::collections::HashSet;

use mayhap::registry::FAMILIES;
use mayhap::wire::{Summing, checksum};
use mayhap::{AnyFilter, Blocked, Bloom, Digest, Hashing, Layout, Secret, Spec, encode, open, positions};
use mayhap_eval::{ABSENT, KeyKind};

/// A file, and what it was when it was written.
struct Golden {
    name: &'static str,
    bytes: &'static [u8],
    hashing: Hashing,
    /// Keys that are in.
    len: u64,
    /// How many of the questions are answered with "perhaps".
    hits: usize,
    /// Checksum of all answers in order, one byte each.
    answers: u64,
}

const SECRET: Secret = Secret::new(*b"0123456789abcdef");

const GOLDEN: &[Golden] = &[
    Golden {
        name: "bloom",
        bytes: include_bytes!("golden/bloom-v1.mayhap"),
        hashing: Hashing::Xxh3 { seed: 0 },
        len: 200,
        hits: 94,
        answers: 0xf590_9f89_f942_63ba,
    },
    Golden {
        name: "bloom-seeded",
        bytes: include_bytes!("golden/bloom-seeded-v1.mayhap"),
        hashing: Hashing::Xxh3 { seed: 0x0123_4567_89ab_cdef },
        len: 200,
        hits: 92,
        answers: 0x4156_d031_b27f_1292,
    },
    Golden {
        name: "bloom-keyed",
        bytes: include_bytes!("golden/bloom-keyed-v1.mayhap"),
        hashing: Hashing::Keyed(SECRET),
        len: 200,
        hits: 100,
        answers: 0xf91f_bff3_f430_ddb5,
    },
    Golden {
        name: "exact",
        bytes: include_bytes!("golden/exact-v1.mayhap"),
        hashing: Hashing::Xxh3 { seed: 0 },
        len: 200,
        hits: 0,
        answers: 0x99b4_d8e5_f223_fef7,
    },
    Golden {
        name: "bitmap",
        bytes: include_bytes!("golden/bitmap-v1.mayhap"),
        hashing: Hashing::Integer,
        len: 200,
        hits: 200,
        answers: 0xd241_0273_e729_335e,
    },
    #[cfg(feature = "std")]
    Golden {
        name: "roaring",
        bytes: include_bytes!("golden/roaring-v1.mayhap"),
        hashing: Hashing::Integer,
        len: 5200,
        hits: 3334,
        answers: 0x5455_3b2e_3d4e_df9f,
    },
    Golden {
        name: "blocked",
        bytes: include_bytes!("golden/blocked-v1.mayhap"),
        hashing: Hashing::Xxh3 { seed: 0 },
        len: 200,
        hits: 105,
        answers: 0x0614_7bd8_56de_cfac,
    },
    Golden {
        name: "blocked-fastest",
        bytes: include_bytes!("golden/blocked-fastest-v1.mayhap"),
        hashing: Hashing::Xxh3 { seed: 0 },
        len: 200,
        hits: 58,
        answers: 0x91c1_08de_510d_c30c,
    },
    Golden {
        name: "cuckoo",
        bytes: include_bytes!("golden/cuckoo-v1.mayhap"),
        hashing: Hashing::Xxh3 { seed: 0 },
        len: 200,
        hits: 67,
        answers: 0xbd8f_3d69_ec6a_d5f7,
    },
    Golden {
        name: "cuckoo-compact",
        bytes: include_bytes!("golden/cuckoo-compact-v1.mayhap"),
        hashing: Hashing::Xxh3 { seed: 0 },
        len: 200,
        hits: 67,
        answers: 0xbd8f_3d69_ec6a_d5f7,
    },
];

impl Golden {
    fn open(&self) -> Box<dyn AnyFilter> {
        open(self.bytes.to_vec().into(), Some(&SECRET)).unwrap()
    }

    /// The keys that were inserted.
    fn keys(&self) -> Vec<Vec<u8>> {
        let integer = |integer: u64| integer.to_le_bytes().to_vec();
        match self.name {
            "bitmap" => (0..200).map(|index| integer(index * 7)).collect(),
            "roaring" => (0..200)
                .map(|index| integer(index * index * 1_000_003))
                .chain((0..5000).map(|low| integer((7 << 32) + 3 * low)))
                .collect(),
            _ => (0..200).map(|index| KeyKind::ALL[index as usize % 5].key(7, index)).collect(),
        }
    }

    /// Keys to ask for. None of the byte strings was inserted; of the integers some were.
    fn questions(&self) -> Vec<Vec<u8>> {
        (0..10_000)
            .map(|index: u64| match self.name {
                "bitmap" => index.to_le_bytes().to_vec(),
                "roaring" => ((7 << 32) + index).to_le_bytes().to_vec(),
                _ => KeyKind::ALL[index as usize % 5].key(7, ABSENT + index),
            })
            .collect()
    }
}

#[test]
fn every_family_has_a_golden_file() {
    let named: HashSet<&str> = GOLDEN.iter().map(|golden| golden.name).collect();
    assert_eq!(named.len(), GOLDEN.len());
    for family in FAMILIES {
        assert!(named.contains(family.name), "{}: run cargo xtask golden, and add it here", family.name);
    }
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).unwrap();
    for entry in folder {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = name.strip_suffix("-v1.mayhap").is_some_and(|stem| named.contains(stem));
        let expected = known || name == "MANIFEST" || (name == "roaring-v1.mayhap" && !cfg!(feature = "std"));
        assert!(expected, "{name}: a golden file that no test reads");
    }
}

#[test]
fn golden_files_are_read_and_written_byte_for_byte() {
    for golden in GOLDEN {
        let filter = golden.open();
        assert!(golden.name.starts_with(filter.family().name), "{}", golden.name);
        assert_eq!(filter.hashing(), golden.hashing, "{}", golden.name);
        assert!(encode(&*filter, Summing::Payload).to_vec() == golden.bytes, "{}", golden.name);
    }
}

/// Made again from its keys, a filter is still the same file.
#[test]
fn the_same_keys_still_give_the_same_file() {
    for golden in GOLDEN {
        let old = golden.open();
        let mayhap::family::Make::Empty(make) = old.family().make else { panic!("made otherwise") };
        // In a bitmap the capacity is the universe; in the others it is the number asked for.
        let capacity = if golden.name == "bitmap" { 2000 } else { 200 };
        let mut spec = Spec::sized(capacity, 0.01).with_hashing(golden.hashing);
        if golden.name == "blocked-fastest" {
            spec = spec.with_layout(Layout::Fastest);
        } else if golden.name == "cuckoo-compact" {
            spec = spec.with_layout(Layout::Compact);
        }
        let mut new = make(&spec).unwrap();
        let keys = golden.keys();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        new.insert_keys(&keys, &mut Vec::new()).unwrap();
        assert!(encode(&*new, Summing::Payload).to_vec() == golden.bytes, "{}", golden.name);
    }
}

#[test]
fn golden_files_give_the_answers_of_old() {
    for golden in GOLDEN {
        let filter = golden.open();
        for key in golden.keys() {
            assert!(filter.contains(&key), "{}: {key:?} was inserted, and is denied", golden.name);
        }
        let answers: Vec<u8> = golden.questions().iter().map(|key| filter.contains(key).into()).collect();
        let hits = answers.iter().filter(|&&answer| answer == 1).count();
        let sum = checksum(&answers);
        assert_eq!((hits, sum), (golden.hits, golden.answers), "{}: {hits}, {sum:#x}", golden.name);
        let report = filter.report();
        assert_eq!(report.inserted, Some(golden.len), "{}", golden.name);
        if filter.family().can.exact {
            assert_eq!(report.estimated_len, Some(golden.len as f64), "{}", golden.name);
        }
    }
}

// The document.

const FORMAT: &str = include_str!("../../../docs/format.md");

/// The bytes that a line of the dump stands for, with the offset at its start.
fn dumped(line: &str) -> (usize, Vec<u8>) {
    let bytes = line.split(';').next().unwrap();
    let (offset, bytes) = bytes.split_once("  ").unwrap();
    let offset = usize::from_str_radix(offset, 16).unwrap();
    let byte = |digits: &str| u8::from_str_radix(digits, 16).unwrap();
    let bytes = match bytes.trim().split_once(" x ") {
        Some((one, times)) => vec![byte(one); times.parse().unwrap()],
        None => bytes.split_whitespace().map(byte).collect(),
    };
    (offset, bytes)
}

#[test]
fn the_dump_in_the_document_is_the_golden_file() {
    let (_, dump) = FORMAT.split_once("```hexdump\n").unwrap();
    let (dump, _) = dump.split_once("```").unwrap();
    let mut file = Vec::new();
    for line in dump.lines() {
        let (offset, bytes) = dumped(line);
        assert_eq!(offset, file.len(), "{line}");
        let expected = &GOLDEN[0].bytes[offset..offset + bytes.len()];
        assert_eq!(bytes, expected, "{line}");
        file.extend(bytes);
    }
    assert_eq!(file.len(), GOLDEN[0].bytes.len(), "the dump is not the whole file");
}

#[test]
fn the_positions_in_the_document_are_those_of_the_library() {
    let bloom = Bloom::from_bytes(GOLDEN[0].bytes).unwrap();
    assert_eq!((bloom.bits(), bloom.probes()), (1918, 7));
    for (key, is_in) in [(&0u64.to_le_bytes()[..], true), (b"mayhap", false)] {
        let Digest { a, b } = bloom.hashing().digest_of(key);
        let listed: Vec<u64> = positions(Digest { a, b }, 7, 1918).collect();
        let list = listed.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let hex = key.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        let text = format!(": {hex}\ndigest    a = {a:016x}, b = {b:016x}\npositions {list}\n");
        assert!(FORMAT.contains(&text), "the document lacks:\n{text}");
        assert_eq!(bloom.contains(key), is_in);
        assert!(bloom.positions(key).eq(listed));
    }
    // The table, step by step.
    let Digest { a: mut x, b: mut y } = bloom.hashing().digest_of(0u64);
    for (i, position) in bloom.positions(0u64).enumerate() {
        let row = format!("| {i} | {x:016x} | {y:016x} | {position} |");
        assert!(FORMAT.contains(&row), "the document lacks: {row}");
        x = x.wrapping_add(y);
        y = y.wrapping_add((i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
}

/// The block and the bits of a key, by the rules of the document and by nothing else.
fn block_and_bits(a: u64, blocks: u64, layout: Layout, probes: u32) -> (u64, Vec<u32>) {
    const SALT: [u32; 8] = [
        0x47b6_137b,
        0x4497_4d91,
        0x8824_ad5b,
        0xa2b7_289d,
        0x7054_95c7,
        0x2df1_424b,
        0x9efc_4947,
        0x5c6b_fb31,
    ];
    let w = |round: u32| match round {
        0 => a as u32,
        1 => (a.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32,
        2 => (a.wrapping_mul(0xBB67_AE85_84CA_A73B) >> 32) as u32,
        _ => unreachable!(),
    };
    let product = |round: u32, lane: u32| w(round).wrapping_mul(SALT[lane as usize]);
    let mut bits = Vec::new();
    if layout == Layout::Fastest {
        bits.extend((0..8).map(|lane| 32 * lane + (product(0, lane) >> 27)));
    } else {
        for round in 0..probes / 8 {
            bits.extend((0..8).map(|lane| 64 * lane + (product(round, lane) >> 26)));
        }
        if probes % 8 == 4 {
            let place = |lane: u32| (product(probes / 8, lane) >> 25, lane);
            bits.extend((0..4).map(place).map(|(b, lane)| 64 * (lane + 4 * (b / 64)) + b % 64));
        }
    }
    (((u128::from(a) * u128::from(blocks)) >> 64) as u64, bits)
}

#[test]
fn the_blocks_and_bits_in_the_document_are_those_of_the_library() {
    let shapes = [4, 8, 12, 16, 20].map(|probes| (Layout::Compact, 512, 4, probes));
    let shapes = shapes.into_iter().chain([(Layout::Fastest, 256, 9, 8)]);
    for (layout, block_bits, blocks, probes) in shapes {
        let spec = Spec::new().with_capacity(200).with_bits(blocks * block_bits).with_probes(probes);
        let empty = Blocked::from_spec(&spec.with_layout(layout)).unwrap();
        // What inserting a key alone sets.
        let set = |key: &[u8]| {
            let mut one = empty.clone();
            one.insert(key);
            let is_set = |bit: &u64| one.words()[(bit / 64) as usize] >> (bit % 64) & 1 == 1;
            (0..one.bits()).filter(is_set).collect::<Vec<u64>>()
        };
        for key in (0..500u64).map(u64::to_le_bytes) {
            let (block, bits) = block_and_bits(empty.hashing().digest(&key).a, blocks, layout, probes);
            let mut bits: Vec<u64> = bits.iter().map(|&bit| block * block_bits + u64::from(bit)).collect();
            bits.sort_unstable();
            bits.dedup();
            assert_eq!(set(&key), bits, "{layout:?}, {probes} probes, {key:?}");
        }
        let rule = if layout == Layout::Fastest { "rule 3" } else { "rule 2" };
        for key in [&0u64.to_le_bytes()[..], b"mayhap"] {
            let a = empty.hashing().digest(key).a;
            let (block, bits) = block_and_bits(a, blocks, layout, probes);
            let list = bits.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let line =
                format!("{a:016x}: {rule}, {blocks} blocks, {probes} probes: block {block}, bits {list}\n");
            assert!(FORMAT.contains(&line), "the document lacks:\n{line}");
        }
    }
    // The two keys in the golden files, as the document says.
    for golden in GOLDEN.iter().filter(|golden| golden.name.starts_with("blocked")) {
        let filter = golden.open();
        assert!(filter.contains(&0u64.to_le_bytes()) && !filter.contains(b"mayhap"), "{}", golden.name);
        // All its answers follow from the rules and the bytes of the payload.
        let (payload, probing) = (&golden.bytes[4096..], golden.bytes[14]);
        let (layout, block_bits) = if probing == 3 { (Layout::Fastest, 256) } else { (Layout::Compact, 512) };
        let blocks = payload.len() as u64 * 8 / block_bits;
        for key in golden.questions() {
            let (block, bits) = block_and_bits(golden.hashing.digest(&key).a, blocks, layout, 8);
            let is_set = |&bit: &u32| {
                let bit = block * block_bits + u64::from(bit);
                payload[(bit / 8) as usize] >> (bit % 8) & 1 == 1
            };
            assert_eq!(filter.contains(&key), bits.iter().all(is_set), "{}: {key:?}", golden.name);
        }
    }
}

/// The two buckets and the fingerprint of a key, by the rule of the document and by nothing else.
fn buckets_and_fingerprint(a: u64, buckets: u64, width: u32) -> (u64, u64, u32) {
    let high = |x: u64, y: u64| ((u128::from(x) * u128::from(y)) >> 64) as u64;
    let w = a.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let fingerprint = 1 + ((w * ((1 << width) - 1)) >> 32);
    let first = high(a, buckets);
    let x = fingerprint.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let sum = 2 * high(x.wrapping_mul(x | 1), buckets / 2) + 1;
    (first, (sum + buckets - first) % buckets, fingerprint as u32)
}

/// The fingerprints in a bucket of a payload, by the document and by nothing else.
fn slots_of(payload: &[u8], bucket: u64, width: u32, sorted: bool) -> Vec<u64> {
    let bits = |from: u64, len: u32| {
        (0..u64::from(len))
            .map(|i| u64::from(payload[((from + i) / 8) as usize] >> ((from + i) % 8) & 1) << i)
            .sum()
    };
    let width = u64::from(width);
    if !sorted {
        return (0..4).map(|slot| bits((4 * bucket + slot) * width, width as u32)).collect();
    }
    let start = bucket * (4 * width - 4);
    let rank: u64 = bits(start, 12);
    // All nibbles in the order of their ranks.
    let nibbles = (0..16u64).flat_map(|a| {
        (0..=a).flat_map(move |b| (0..=b).flat_map(move |c| (0..=c).map(move |d| [a, b, c, d])))
    });
    let nibbles = nibbles.into_iter().nth(rank as usize).expect("a rank that exists");
    let low = |slot: u64| bits(start + 12 + slot * (width - 4), width as u32 - 4);
    (0..4).map(|slot| nibbles[slot as usize] << (width - 4) | low(slot)).collect()
}

#[test]
fn the_buckets_and_fingerprints_in_the_document_are_those_of_the_library() {
    for golden in GOLDEN.iter().filter(|golden| golden.name.starts_with("cuckoo")) {
        let sorted = golden.name == "cuckoo-compact";
        let filter = golden.open();
        let payload = &golden.bytes[4096..];
        let (buckets, width) = (58, 10);
        let at = |key: &[u8]| buckets_and_fingerprint(golden.hashing.digest(key).a, buckets, width);
        // All answers follow from the rule and the bytes of the payload.
        for key in golden.questions().iter().chain(&golden.keys()) {
            let (first, second, fingerprint) = at(key);
            let is_in = |bucket| slots_of(payload, bucket, width, sorted).contains(&fingerprint.into());
            assert_eq!(filter.contains(key), is_in(first) || is_in(second), "{}: {key:?}", golden.name);
        }
        let taken = (0..buckets).flat_map(|bucket| slots_of(payload, bucket, width, sorted));
        assert_eq!(taken.filter(|&slot| slot != 0).count(), 200);
        for key in [&0u64.to_le_bytes()[..], b"mayhap"] {
            let ((first, second, fingerprint), a) = (at(key), golden.hashing.digest(key).a);
            let line = format!(
                "{a:016x}: {buckets} buckets, {width} bits: buckets {first} and {second}, fingerprint {fingerprint}\n"
            );
            assert!(FORMAT.contains(&line), "the document lacks:\n{line}");
        }
        let example = slots_of(payload, 0, width, sorted);
        let list = example.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let bytes = &payload[..5];
        let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        let line = format!("`{}`: bytes {hex}, bucket 0 holds {list}\n", golden.name);
        assert!(FORMAT.contains(&line), "the document lacks:\n{line}");
    }
}

/// Every id in the document is one of the library, and none of the library's is missing.
#[test]
fn the_document_names_every_family() {
    for family in FAMILIES {
        let title = format!("\n### {} `{}`\n", family.id, family.name);
        assert!(FORMAT.contains(&title), "docs/format.md lacks the family {}", family.name);
    }
}
