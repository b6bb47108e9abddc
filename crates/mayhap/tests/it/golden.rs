//! Files that earlier versions wrote: their bytes and their answers never change.
//!
//! The files are made by `examples/write_golden.rs`, once, and then only read. If a test fails here, it
//! is the code that is wrong. `docs/format.md` shows the first of them byte by byte; the last tests
//! compare the two.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use mayhap::wire::checksum;
use mayhap::{
    AnyFilter, Blocked, Bloom, CountingRule, Digest, FAMILIES, Hashing, Labels, Layout, Make, Secret, Spec,
    Summing, encode, except, open, positions,
};
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
    /// Checksum of the counts of all questions and keys, in order, 8 little-endian bytes each.
    counts: Option<u64>,
    /// Checksum of the labels of all questions and keys, in order, 2 little-endian bytes each, 0 for none.
    labels: Option<u64>,
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).expect(text)
}

const SECRET: Secret = Secret::new(*b"0123456789abcdef");

/// The files in `tests/golden`, with the answers in `tests/answers/golden.txt`.
static GOLDEN: LazyLock<Vec<Golden>> = LazyLock::new(|| {
    let lines = include_str!("../answers/golden.txt").lines().filter(|line| !line.starts_with('#'));
    let all: Vec<Golden> = lines.map(Golden::of_line).collect();
    all.into_iter().filter(|golden| golden.name != "roaring" || cfg!(feature = "std")).collect()
});

impl Golden {
    /// One line of the file of answers.
    fn of_line(line: &'static str) -> Self {
        let mut fields = line.split(' ');
        let mut next = || fields.next().unwrap_or_else(|| panic!("too few fields: {line}"));
        let (name, hashing, len, hits) = (next(), next(), next(), next());
        let hashing = match hashing {
            "integer" => Hashing::Integer,
            "keyed" => Hashing::Keyed(SECRET),
            other => Hashing::Xxh3 { seed: hex(other.strip_prefix("seed:").expect(line)) },
        };
        let sums: HashMap<&str, u64> = fields
            .map(|field| field.split_once(':').expect(line))
            .map(|(what, sum)| (what, hex(sum)))
            .collect();
        assert!(sums.keys().all(|what| ["contains", "counts", "labels"].contains(what)), "{line}");
        let file = format!("{}/tests/golden/{name}-v1.mayhap", env!("CARGO_MANIFEST_DIR"));
        Self {
            name,
            bytes: std::fs::read(&file).expect(&file).leak(),
            hashing,
            len: len.parse().expect(line),
            hits: hits.parse().expect(line),
            answers: sums["contains"],
            counts: sums.get("counts").copied(),
            labels: sums.get("labels").copied(),
        }
    }

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
            // Up to 40 times in turns, so that some counters take more than 4 bits.
            name if name.starts_with("spectral") => (0..40)
                .flat_map(|round| (0..200u64).filter(move |index| index % 40 >= round))
                .map(|index| KeyKind::ALL[index as usize % 5].key(7, index))
                .collect(),
            // Four times the same in a window of so many, which goes round.
            "windowed-aged" | "windowed-squares-aged" => {
                (0..200u64).map(|index| KeyKind::ALL[index as usize % 5].key(7, index % 50)).collect()
            }
            "dleft-4-bits" => (0..3)
                .flat_map(|round| (0..200u64).filter(move |index| index % 3 >= round))
                .map(|index| KeyKind::ALL[index as usize % 5].key(7, index))
                .collect(),
            // Those that made it grow, and 60 that belong to one line.
            "table-grown" => {
                let key = |index| KeyKind::ALL[index as usize % 5].key(7, index);
                let crowd = (1500..).map(key).filter(|key| self.hashing.digest(key).a >> 56 == 0x77);
                (0..1500).map(key).chain(crowd.take(60)).collect()
            }
            "ribbon-layers" | "ribbon-compact" => {
                (0..5000).map(|index| KeyKind::ALL[index as usize % 5].key(7, index)).collect()
            }
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

/// The keys that a golden universe has outside of its set.
fn others() -> Vec<Vec<u8>> {
    (0..2000).map(|index| KeyKind::ALL[index as usize % 5].key(7, 1_000_000 + index)).collect()
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
        // Those of other programs' filters have a test file of their own: interop_golden.rs.
        let known = name.strip_suffix("-v1.mayhap").is_some_and(|stem| named.contains(stem))
            || name.starts_with("foreign-");
        let expected = known || name == "MANIFEST" || (name == "roaring-v1.mayhap" && !cfg!(feature = "std"));
        assert!(expected, "{name}: a golden file that no test reads");
    }
}

#[test]
fn golden_files_are_read_and_written_byte_for_byte() {
    for golden in GOLDEN.iter() {
        let filter = golden.open();
        assert!(golden.name.starts_with(filter.family().name), "{}", golden.name);
        assert_eq!(filter.hashing(), golden.hashing, "{}", golden.name);
        assert!(encode(&*filter, Summing::Payload).to_vec() == golden.bytes, "{}", golden.name);
    }
}

/// Files by a rule that is read and not made any more.
const READ_ONLY: [&str; 2] = ["windowed", "windowed-aged"];

/// Made again from its keys, a filter is still the same file.
#[test]
fn the_same_keys_still_give_the_same_file() {
    for golden in GOLDEN.iter().filter(|golden| !READ_ONLY.contains(&golden.name)) {
        let old = golden.open();
        // In a bitmap the capacity is the universe; in the others it is the number asked for.
        let capacity = match golden.name {
            "bitmap" => 2000,
            "scalable-grown" => 20,
            "windowed-squares-aged" => 50,
            "expanding-grown" => 20,
            "ribbon-layers" | "ribbon-compact" => 5000,
            _ => 200,
        };
        let mut spec = Spec::sized(capacity, 0.01).with_hashing(golden.hashing);
        match golden.name {
            "blocked-fastest" => spec = spec.with_layout(Layout::Fastest),
            "cuckoo-compact" | "fuse-compact" | "ribbon-compact" => spec = spec.with_layout(Layout::Compact),
            "counting-5-bits" => spec = spec.with_counter_bits(5),
            "spectral-selection" => spec = spec.with_counting_rule(CountingRule::MinimumSelection),
            "spectral-recurring" => spec = spec.with_counting_rule(CountingRule::RecurringMinimum),
            "spectral-8-bits" => spec = spec.with_counter_bits(8),
            "dleft-4-bits" => spec = spec.with_counter_bits(4),
            "spatial" => spec = spec.with_areas(3),
            "spatial-16-bits" => spec = spec.with_areas(300),
            "shifting-2-shifts" => spec = spec.with_shifts(2),
            name if name.ends_with("-counters") => spec = spec.with_counter_bits(4),
            "expanding-grown" => spec = spec.with_doublings(3),
            "table-grown" => spec = spec.with_doublings(30),
            _ => {}
        }
        let keys = golden.keys();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let digests: Vec<Digest> = keys.iter().map(|key| golden.hashing.digest(key)).collect();
        let new = match old.family().make {
            Make::Empty(make) => {
                let mut new = make(&spec).unwrap();
                match new.as_label_mut() {
                    None => new.insert_keys(&keys, &mut Vec::new()).unwrap(),
                    Some(label) => {
                        if label.areas() == 3 {
                            label.name_areas(&["quiet", "work", "danger"]).unwrap();
                        }
                        for (index, key) in keys.iter().enumerate() {
                            let area = area_of(index, label.areas()).try_into().unwrap();
                            label.insert_labelled(golden.hashing.digest(key), area).unwrap();
                        }
                    }
                }
                new
            }
            Make::Counted(make) => {
                make(&spec, &mut (1..=40).cycle().zip(&digests).map(|(count, &digest)| (digest, count)))
                    .unwrap()
            }
            Make::OfTwo(make) => make(&spec, &digests[..120], &digests[80..]).unwrap(),
            Make::FromDigests(make) => {
                let halves: Vec<u64> = digests.iter().map(|digest| digest.a).collect();
                make(&spec, &halves, 1).unwrap()
            }
            Make::Within(make) => {
                let set: Vec<u64> = digests.iter().map(|digest| digest.a).collect();
                let others: Vec<u64> = others().iter().map(|key| golden.hashing.digest(key).a).collect();
                make(&spec, &set, &others, 1).unwrap()
            }
            _ => panic!("made otherwise"),
        };
        let new = if golden.name == "bloom-exceptions" {
            // What it would admit of the first 5000 questions, and some that it would not.
            let keys = golden.questions().into_iter().take(5000).enumerate();
            let keys = keys.filter(|(index, key)| *index < 10 || new.contains(key));
            let keys: Vec<Digest> = keys.map(|(_, key)| golden.hashing.digest(&key)).collect();
            except(new, keys)
        } else {
            new
        };
        assert!(encode(&*new, Summing::Payload).to_vec() == golden.bytes, "{}", golden.name);
    }
}

#[test]
fn golden_files_give_the_answers_of_old() {
    for golden in GOLDEN.iter() {
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

/// The areas of the 200 keys ascend.
fn area_of(index: usize, areas: u16) -> u16 {
    1 + (index * usize::from(areas) / 200) as u16
}

#[test]
fn golden_files_give_the_labels_of_old() {
    let mut found = Vec::new();
    for golden in GOLDEN.iter() {
        let filter = golden.open();
        let Some(label) = filter.as_label() else { continue };
        let (questions, keys) = (golden.questions(), golden.keys());
        let one = |key: &Vec<u8>| match label.label_digest(filter.hashing().digest(key)) {
            Labels::None => 0,
            Labels::One(area) => area.get(),
            several => panic!("{several:?}"),
        };
        assert!(keys.iter().enumerate().all(|(index, key)| one(key) >= area_of(index, label.areas())));
        let labels = questions.iter().chain(&keys).map(one);
        found.push((golden.name, checksum(&labels.flat_map(u16::to_le_bytes).collect::<Vec<_>>())));
    }
    let expected: Vec<(&str, u64)> =
        GOLDEN.iter().filter_map(|golden| Some((golden.name, golden.labels?))).collect();
    assert_eq!(found, expected, "{found:#x?}");
}

#[test]
fn golden_files_give_the_counts_of_old() {
    let mut found = Vec::new();
    for golden in GOLDEN.iter() {
        let filter = golden.open();
        let Some(count) = filter.as_count() else { continue };
        let (questions, keys) = (golden.questions(), golden.keys());
        let counts =
            questions.iter().chain(&keys).map(|key| count.count_digest(filter.hashing().digest(key)));
        found.push((golden.name, checksum(&counts.flat_map(u64::to_le_bytes).collect::<Vec<_>>())));
    }
    let expected: Vec<(&str, u64)> =
        GOLDEN.iter().filter_map(|golden| Some((golden.name, golden.counts?))).collect();
    assert_eq!(found, expected, "{found:#x?}");
}

// The document.

const FORMAT: &str = include_str!("../../../../docs/format.md");

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

/// Counters of a filter, by the rules of the document and by nothing else.
struct ByDocument {
    first: Vec<u64>,
    second: Vec<u64>,
    marks: Vec<bool>,
}

impl ByDocument {
    fn new(counters: usize) -> Self {
        Self { first: vec![0; counters], second: vec![0; counters.div_ceil(2)], marks: vec![false; counters] }
    }

    fn insert(&mut self, digest: Digest, probes: u32, rule: u32, top: u64) {
        let places = |digest: Digest, counters: &[u64]| {
            let mut places: Vec<usize> =
                positions(digest, probes, counters.len() as u64).map(|place| place as usize).collect();
            places.sort_unstable();
            places.dedup();
            places
        };
        let own = places(digest, &self.first);
        let lowest = own.iter().map(|&place| self.first[place]).min().unwrap();
        for &place in &own {
            if rule != 2 || self.first[place] == lowest {
                self.first[place] = top.min(self.first[place] + 1);
            }
        }
        if rule != 3 {
            return;
        }
        let factor = 0xBB67_AE85_84CA_A73B;
        let other = Digest { a: digest.a.wrapping_mul(factor), b: digest.b.wrapping_mul(factor) };
        let others = places(other, &self.second);
        let lowest = own.iter().map(|&place| self.first[place]).min().unwrap();
        if own.iter().all(|&place| self.marks[place]) {
            others.iter().for_each(|&place| self.second[place] += 1);
        } else if own.iter().filter(|&&place| self.first[place] == lowest).count() == 1 {
            own.iter().for_each(|&place| self.marks[place] = true);
            others.iter().for_each(|&place| self.second[place] = self.second[place].max(lowest));
        }
    }
}

/// Numbers of so many bits, packed into words.
fn packed(numbers: impl Iterator<Item = u64>, bits: u64) -> Vec<u64> {
    let mut words = Vec::new();
    for (index, number) in numbers.enumerate() {
        for j in 0..bits {
            let bit = index as u64 * bits + j;
            words.resize(words.len().max(1 + (bit / 64) as usize), 0u64);
            words[(bit / 64) as usize] |= (number >> j & 1) << (bit % 64);
        }
    }
    words
}

/// Counters of 4 bits, and pairs for what is above 15.
fn with_pairs(counters: &[u64]) -> Vec<u64> {
    let above = counters.iter().enumerate().filter(|&(_, &count)| count > 15);
    let pairs = above.flat_map(|(place, &count)| [place as u64, count - 15]);
    let mut words = packed(counters.iter().map(|&count| count.min(15)), 4);
    words.extend(pairs);
    words
}

#[test]
fn the_counters_of_golden_files_follow_from_the_document() {
    for (name, rule, bits) in [
        ("counting", 1, 4),
        ("counting-5-bits", 1, 5),
        ("spectral-selection", 1, 0),
        ("spectral", 2, 0),
        ("spectral-8-bits", 2, 8),
        ("spectral-recurring", 3, 0),
    ] {
        let golden = GOLDEN.iter().find(|golden| golden.name == name).unwrap();
        let mut filter = ByDocument::new(1918);
        for key in golden.keys() {
            filter.insert(
                golden.hashing.digest(&key),
                7,
                rule,
                if bits == 0 { u64::MAX } else { (1 << bits) - 1 },
            );
        }
        let mut words = match bits {
            0 => with_pairs(&filter.first),
            bits => packed(filter.first.iter().copied(), bits),
        };
        if rule == 3 {
            assert!(filter.marks.contains(&true) && filter.second.iter().any(|&count| count > 15));
            words.extend(with_pairs(&filter.second));
            words.extend(packed(filter.marks.iter().map(|&mark| mark.into()), 1));
        }
        let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(payload == golden.bytes[4096..], "{name}");
    }
}

/// The buckets and remainders of a fingerprint, by the rules of the document and by nothing else.
fn dleft_places(digest: Digest, buckets: u64, remainder_bits: u32) -> [(u64, u64); 4] {
    const X: [u64; 4] = [0, 0x3c6e_f372_fe94_f82b, 0x510e_527f_ade6_82d1, 0x1f83_d9ab_fb41_bd6b];
    const Y: [u64; 4] = [0, 0xa54f_f53a_5f1d_36f1, 0x9b05_688c_2b3e_6c1f, 0x5be0_cd19_137e_2179];
    let upper = |x: u64| ((u128::from(x) * u128::from(buckets)) >> 64) as u64;
    let (b, q) = (upper(digest.a), digest.b >> (64 - remainder_bits));
    [0, 1, 2, 3].map(|i| {
        let remainder = q ^ b.wrapping_mul(X[i]) >> (64 - remainder_bits);
        ((b + upper(remainder.wrapping_mul(Y[i]))) % buckets, remainder)
    })
}

#[test]
fn the_cells_of_golden_files_follow_from_the_document() {
    for (name, counter_bits) in [("dleft", 2), ("dleft-4-bits", 4)] {
        let golden = GOLDEN.iter().find(|golden| golden.name == name).unwrap();
        // 200 keys at 1%: 9 buckets for 24 keys each, remainders of 12 bits.
        let (buckets, remainder_bits, top) = (9, 12, (1u64 << counter_bits) - 1);
        let mut cells = vec![(0, 0); 32 * buckets];
        for key in golden.keys() {
            let places = dleft_places(golden.hashing.digest(&key), buckets as u64, remainder_bits);
            let bucket = |i: usize| (i * buckets + places[i].0 as usize) * 8;
            let of = |i: usize, cells: &[(u64, u64)]| cells[bucket(i)..bucket(i) + 8].to_vec();
            let is_own =
                |i: usize| move |&(remainder, count): &(u64, u64)| count > 0 && remainder == places[i].1;
            if let Some(i) = (0..4).find(|&i| of(i, &cells).iter().any(is_own(i))) {
                let j = of(i, &cells).iter().position(is_own(i)).unwrap();
                let (_, count) = &mut cells[bucket(i) + j];
                *count = top.min(*count + 1);
                continue;
            }
            // Of equal ones `min_by_key` takes the first.
            let taken = |&i: &usize| of(i, &cells).iter().filter(|(_, count)| *count > 0).count();
            let i = (0..4).min_by_key(taken).unwrap();
            let j = of(i, &cells).iter().position(|&(_, count)| count == 0).unwrap();
            cells[bucket(i) + j] = (places[i].1, 1);
        }
        let numbers = cells.iter().map(|&(remainder, count)| remainder << counter_bits | count);
        let words = packed(numbers, u64::from(remainder_bits) + counter_bits);
        let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert!(payload == golden.bytes[4096..], "{name}");
        let highest = cells.iter().map(|&(_, count)| count).max();
        assert!(highest >= Some(if counter_bits == 2 { 1 } else { 3 }));
    }
}

#[test]
fn the_answers_of_static_filters_follow_from_the_document() {
    const FACTOR: u128 = 0x9e37_79b9_7f4a_7c15;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let fold = |x: u64| {
        let product = u128::from(x) * FACTOR;
        product as u64 ^ (product >> 64) as u64
    };
    for (name, ways) in [("fuse", 3u64), ("fuse-compact", 4)] {
        let golden = GOLDEN.iter().find(|golden| golden.name == name).unwrap();
        let (payload, filter) = (&golden.bytes[4096..], golden.open());
        // 200 keys at 1%: one shard, 7 bits.
        let directory: Vec<u64> = payload[payload.len() - 24..].chunks(8).map(word).collect();
        let (seed, segments, log) = (directory[0], directory[1], directory[2]);
        let slots = ((segments + ways - 1) << log).next_multiple_of(64);
        assert_eq!(payload.len() as u64, 8 * (slots * 7 / 64 + 1 + 3));
        let slot = |place: u64| -> u64 {
            (0..7)
                .map(|i| u64::from(payload[(place * 7 + i) as usize / 8] >> ((place * 7 + i) % 8) & 1) << i)
                .sum()
        };
        for key in golden.questions().iter().chain(&golden.keys()) {
            let a = golden.hashing.digest(key).a;
            let h = fold(a ^ seed);
            let first = ((u128::from(a) * u128::from(segments << log)) >> 64) as u64;
            let shift = |j: u64| if ways == 3 { 18 * (2 - j) } else { 16 * (j - 1) };
            let place = |j: u64| (first + (j << log)) ^ (h >> shift(j) & ((1 << log) - 1));
            let all = (1..ways).map(place).fold(slot(first), |all, place| all ^ slot(place));
            assert_eq!(filter.contains(key), all == (h ^ h >> 32) & 127, "{name}: {key:?}");
        }
    }
}

/// What the words of a ribbon store for a key in a filter of one shard, bit by bit, by the document and by nothing else: the
/// value, the fingerprint, the layer and the hash there.
fn retrieved(words: &[u64], r: u64, m: u64, w: u64, a: u64) -> Option<(u64, u64, usize, u64)> {
    const FACTOR: u128 = 0x9e37_79b9_7f4a_7c15;
    let fold = |x: u64| {
        let product = u128::from(x) * FACTOR;
        product as u64 ^ (product >> 64) as u64
    };
    let high = |x: u64, y: u64| ((u128::from(x) * u128::from(y)) >> 64) as u64;
    let directory = &words[words.len() - 11..];
    let (bucket, low, up) = if w == 64 { (128, 94, 113) } else { (512, 376, 452) };
    let mut layers = Vec::new();
    let mut at = 0;
    for i in 0..directory[0] {
        let (seed, blocks) = (directory[1 + 2 * i as usize], directory[2 + 2 * i as usize]);
        let starts = (64 * blocks + 1).saturating_sub(w);
        let plain = if m == 0 { blocks } else { high(starts << 32, (1 << 32) - m) / 64 };
        let buckets = at + blocks * r + (blocks - plain);
        let is_last = i + 1 == directory[0];
        layers.push((seed, blocks, plain, at, buckets, is_last));
        at = buckets + if is_last { 0 } else { (64 * blocks).div_ceil(bucket).div_ceil(32) };
    }
    assert_eq!(words.len() as u64, at + r + 1 + 11);
    for (i, &(seed, blocks, plain, at, buckets, is_last)) in layers.iter().enumerate() {
        if blocks == 0 {
            return None;
        }
        let h = fold(a ^ seed);
        let start = high(if i == 0 { a } else { h }, 64 * blocks - w + 1);
        let (own, v) = (start / bucket, bucket - 1 - start % bucket);
        let class = u64::from(v > low) + u64::from(v > up);
        if !is_last && class >= words[(buckets + own / 32) as usize] >> (2 * (own % 32)) & 3 {
            continue;
        }
        let columns_of = |block: u64| r + u64::from(block >= plain);
        let slot = |slot: u64, column: u64| {
            let first: u64 = at + (0..slot / 64).map(columns_of).sum::<u64>();
            words[(first + column) as usize] >> (slot % 64) & 1
        };
        let rows = [fold(h ^ 0xa076_1d64_78bd_642f) | 1, fold(h ^ 0xe703_7ed1_a0b4_28db)];
        let columns = columns_of(start / 64);
        let value = (0..columns).map(|column| {
            let picked = (0..w).filter(|&t| rows[t as usize / 64] >> (t % 64) & 1 == 1);
            picked.fold(0, |odd, t| odd ^ slot(start + t, column)) << column
        });
        return Some((value.sum(), (h ^ h >> 32) & ((1 << columns) - 1), i, h));
    }
    None
}

/// A number in the header, and the words of the payload.
fn number(file: &[u8], at: usize, len: usize) -> u64 {
    file[at..at + len].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
}

fn words_of(file: &[u8]) -> Vec<u64> {
    (4096..file.len()).step_by(8).map(|at| number(file, at, 8)).collect()
}

#[test]
fn the_answers_of_ribbons_follow_from_the_document() {
    for (name, w) in [("ribbon", 64u64), ("ribbon-layers", 64), ("ribbon-compact", 128)] {
        let golden = GOLDEN.iter().find(|golden| golden.name == name).unwrap();
        let (filter, file) = (golden.open(), golden.bytes);
        let (r, m) = (number(file, 104, 4), number(file, 108, 4));
        assert_eq!((number(file, 112, 4), number(file, 116, 4)), (w, 0), "one shard");
        let (words, mut seen) = (words_of(file), [0; 5]);
        for key in golden.questions().iter().chain(&golden.keys()) {
            let (value, fingerprint, layer, _) =
                retrieved(&words, r, m, w, golden.hashing.digest(key).a).unwrap();
            assert_eq!(filter.contains(key), value == fingerprint, "{name}: {key:?}");
            seen[layer] += 1;
        }
        assert_eq!(seen[1] > 0, name != "ribbon", "{name}: {seen:?}");
    }
}

#[test]
fn the_answers_of_a_universe_follow_from_the_document() {
    let golden = GOLDEN.iter().find(|golden| golden.name == "universe").unwrap();
    let (filter, file) = (golden.open(), golden.bytes);
    assert_eq!((number(file, 96, 8), number(file, 104, 8)), (200, 2000));
    let (first_words, columns) = (number(file, 112, 8) as usize, number(file, 120, 4));
    assert_eq!((number(file, 124, 4), number(file, 128, 4)), (64, 0), "one shard");
    let words = words_of(file);
    let (first, second) = words.split_at(first_words);
    let is_in = |key: &Vec<u8>| {
        let a = golden.hashing.digest(key).a;
        retrieved(first, columns, 0, 64, a).is_some_and(|(value, fingerprint, ..)| value == fingerprint)
            && retrieved(second, 1, 0, 64, a).is_some_and(|(value, _, _, h)| value == h >> 32 & 1)
    };
    for key in golden.questions().iter().chain(&golden.keys()).chain(&others()) {
        assert_eq!(filter.contains(key), is_in(key), "{key:?}");
    }
    assert!(others().iter().all(|key| !is_in(key)));
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

/// The windows of a key by the rules of the document and by nothing else, read from the bytes of the payload: the offsets,
/// and the bits that are set in all of them.
fn in_all_windows(golden: &Golden, digest: Digest) -> (Vec<u64>, u64) {
    let number = |at: usize| u64::from(u32::from_le_bytes(golden.bytes[at..at + 4].try_into().unwrap()));
    let (places, probes, family) = (number(96), number(104), golden.bytes[6]);
    let reduce = |x: u64, range: u64| ((u128::from(x) * u128::from(range)) >> 64) as u64;
    let (mut x, mut y, mut i) = (digest.a, digest.b, 0u64);
    let mut next = || {
        let value = x;
        i += 1;
        x = x.wrapping_add(y);
        y = y.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        value
    };
    let (offsets, windows) = match family {
        13 => {
            let (shifts, segment) = (number(108), 56 / number(108));
            ((0..shifts).map(|j| j * segment + 1 + reduce(next(), segment)).collect(), probes / (shifts + 1))
        }
        14 => {
            let first = 1 + reduce(next(), 28);
            (vec![first, first + 1 + reduce(next(), 28)], probes)
        }
        _ => (Vec::new(), probes),
    };
    let bit = |place: u64| u64::from(golden.bytes[4096 + (place / 8) as usize] >> (place % 8) & 1);
    let in_all = (0..windows).fold(u64::MAX >> 7, |all, _| {
        let place = reduce(next(), places);
        all & (0..57).fold(0, |window, o| window | bit(place + o) << o)
    });
    (offsets, in_all)
}

#[test]
fn shifting_files_are_read_by_the_rules_of_the_document() {
    use mayhap::{Association, ShiftingAssociation};
    for golden in GOLDEN.iter().filter(|golden| golden.name.starts_with("shifting")) {
        let filter = golden.open();
        let association = ShiftingAssociation::from_bytes(golden.bytes).ok();
        for key in golden.questions().iter().take(2000).chain(&golden.keys()) {
            let digest = golden.hashing.digest(key);
            let (offsets, in_all) = in_all_windows(golden, digest);
            let has = |offset: u64| in_all >> offset & 1 == 1;
            match (&association, filter.as_count()) {
                (Some(association), _) => {
                    let told = association.association(key);
                    assert_eq!(told == Association::Neither, !has(0) && !has(offsets[0]) && !has(offsets[1]));
                    assert_eq!(
                        told == Association::FirstOnly,
                        has(0) && !has(offsets[0]) && !has(offsets[1])
                    );
                    assert_eq!(told == Association::Both, !has(0) && has(offsets[0]) && !has(offsets[1]));
                }
                (_, Some(count)) => {
                    assert_eq!(count.count_digest(digest), u64::from(64 - in_all.leading_zeros()))
                }
                _ => assert_eq!(filter.contains(key), has(0) && offsets.iter().all(|&offset| has(offset))),
            }
        }
    }
}

/// The quotient and the fingerprint of a key, by the rule of the document and by nothing else: in a table that had `start`
/// slots and has doubled so often.
fn quotient_and_fingerprint(digest: Digest, start: u64, doublings: u32, bits: u32) -> (u64, u64) {
    let product = u128::from(digest.a) * u128::from(start);
    let taken = 64 - (start - 1).leading_zeros();
    let stream = u128::from(product as u64 ^ digest.b >> (64 - taken)) << 64 | u128::from(digest.b << taken);
    let bit = |i: u32| (stream >> (127 - i) & 1) as u64;
    let mut quotient = (product >> 64) as u64;
    (0..doublings).for_each(|i| quotient = 2 * quotient + bit(i));
    (quotient, (doublings..doublings + bits).fold(0, |sum, i| 2 * sum + bit(i)))
}

/// All quotients and numbers in the blocks of a payload, by the document and by nothing else.
fn numbers_of(payload: &[u8], slots: usize, width: usize) -> Vec<(u64, u64)> {
    let words: Vec<u64> =
        payload.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    let stride = 3 + width;
    let bit = |block: usize, bit: usize| words[block * stride + bit / 64] >> (bit % 64) & 1;
    let mut numbers = Vec::new();
    let mut slot = words[2] as usize;
    for quotient in (0..slots).filter(|&quotient| bit(quotient / 64, quotient % 64) == 1) {
        assert!(
            quotient % 64 != 0 || words[quotient / 64 * stride + 2] == slot.saturating_sub(quotient) as u64
        );
        slot = slot.max(quotient);
        loop {
            let (block, place) = (slot % slots / 64, slot % 64);
            let value = (0..width).map(|i| bit(block, 192 + place * width + i) << i).sum();
            numbers.push((quotient as u64, value));
            slot += 1;
            if bit(block, 64 + place) == 1 {
                break;
            }
        }
    }
    numbers
}

#[test]
fn the_quotients_and_fingerprints_in_the_document_are_those_of_the_library() {
    for (name, start, doublings, bits) in [("expanding", 256, 0, 10), ("expanding-grown", 64, 2, 8)] {
        let golden = GOLDEN.iter().find(|golden| golden.name == name).unwrap();
        let filter = golden.open();
        let numbers = numbers_of(&golden.bytes[4096..], (start << doublings) as usize, bits as usize + 1);
        assert_eq!(numbers.len(), 200, "{name}");
        let ages: HashSet<u32> = numbers.iter().map(|(_, number)| number.trailing_zeros()).collect();
        assert_eq!(ages.len(), doublings as usize + 1, "{name}");
        let at = |key: &[u8]| quotient_and_fingerprint(golden.hashing.digest(key), start, doublings, bits);
        // All answers follow from the rule and the bytes of the payload.
        for key in golden.questions().iter().chain(&golden.keys()) {
            let (quotient, fingerprint) = at(key);
            let is_in = numbers.iter().any(|&(found, number)| {
                let length = number.trailing_zeros();
                found == quotient && number >> length >> 1 == fingerprint >> length
            });
            assert_eq!(filter.contains(key), is_in, "{name}: {key:?}");
        }
        for key in [&0u64.to_le_bytes()[..], b"mayhap"] {
            let ((quotient, fingerprint), a) = (at(key), golden.hashing.digest(key).a);
            let line = format!(
                "{a:016x}: {start} slots doubled {doublings} times, {bits} bits: quotient {quotient}, fingerprint \
                 {fingerprint}\n"
            );
            assert!(FORMAT.contains(&line), "the document lacks:\n{line}");
        }
        let first =
            numbers.iter().take(4).map(|(q, n)| format!("{n} under {q}")).collect::<Vec<_>>().join(", ");
        let line = format!("- `{name}`: {first}\n");
        assert!(FORMAT.contains(&line), "the document lacks:\n{line}");
    }
    // Beyond the first half of the digest.
    let digest = Digest { a: 0x0123_4567_89ab_cdef, b: 0xfedc_ba98_7654_3210 };
    let (quotient, fingerprint) = quotient_and_fingerprint(digest, 1152, 20, 40);
    let line =
        format!("1152 slots doubled 20 times, 40 bits: quotient {quotient}, fingerprint {fingerprint}\n");
    assert!(FORMAT.contains(&line), "the document lacks:\n{line}");
}

/// A table, by what the document says.
struct Lines {
    names: u64,
    remainder_bits: u32,
    scale: u128,
    /// The numbers in each line.
    numbers: Vec<Vec<u64>>,
    beside: Vec<u64>,
}

impl Lines {
    fn of(file: &[u8]) -> Self {
        let at = |place: usize| u64::from_le_bytes(file[place..place + 8].try_into().unwrap());
        let (lines, names) = (at(96), at(104));
        let remainder_bits = (0..64).find(|&r| u128::from(lines) << r >= names.into()).unwrap();
        let scale = (u128::from(lines) << (remainder_bits + 62)) / u128::from(names);
        let e = (remainder_bits as usize + 2).saturating_sub(32);
        let slots = (508 / (32 + e)).min(15);
        let (payload, mut numbers) = (&file[4096..], Vec::new());
        for line in payload[..64 * (lines as usize + 3)].chunks(64) {
            let bits = |from: usize, count: usize| {
                let bit = |place: usize| u64::from(line[place / 8] >> (place % 8) & 1);
                (0..count).map(|i| bit(from + i) << i).sum::<u64>()
            };
            let count = bits(508, 4) as usize;
            let number = |slot| bits(32 * slot, 32) | bits(32 * slots + e * slot, e) << 32;
            numbers.push((0..count).map(number).collect());
        }
        let beside = payload[64 * (lines as usize + 3)..].chunks(8);
        let beside: Vec<u64> = beside.map(|name| u64::from_le_bytes(name.try_into().unwrap())).collect();
        assert_eq!(beside.len() as u64, at(120));
        Self { names, remainder_bits, scale, numbers, beside }
    }

    fn name_of(&self, digest: Digest) -> u64 {
        ((u128::from(digest.a) * u128::from(self.names)) >> 64) as u64
    }

    fn place_of(&self, name: u64) -> (u64, u64) {
        let scaled = ((u128::from(name) * self.scale) >> 62) as u64;
        (scaled >> self.remainder_bits, scaled & ((1 << self.remainder_bits) - 1))
    }

    /// All names: those in lines with the distance from their own, and those beside them.
    fn all_names(&self) -> Vec<(u64, Option<u64>)> {
        let in_lines = (0u64..).zip(&self.numbers).flat_map(|(line, numbers)| {
            numbers.iter().map(move |number| {
                let scaled = u128::from(line - number % 4) << self.remainder_bits | u128::from(number / 4);
                ((scaled << 62).div_ceil(self.scale) as u64, Some(number % 4))
            })
        });
        in_lines.chain(self.beside.iter().map(|&name| (name, None))).collect()
    }
}

#[test]
fn the_names_in_the_document_are_those_of_the_library() {
    for name in ["table", "table-grown"] {
        let golden = GOLDEN.iter().find(|golden| golden.name == name).unwrap();
        let (filter, lines) = (golden.open(), Lines::of(golden.bytes));
        let names = lines.all_names();
        assert_eq!(names.len() as u64, golden.len, "{name}");
        // In the second some are in each of the lines behind their own, and some beside.
        let distances: HashSet<Option<u64>> = names.iter().map(|&(_, distance)| distance).collect();
        assert_eq!(distances.len(), if name == "table" { 1 } else { 5 }, "{name}");
        let names: HashSet<u64> = names.into_iter().map(|(name, _)| name).collect();
        // All answers follow from the rule and the bytes of the payload.
        for key in golden.questions().iter().chain(&golden.keys()) {
            let is_in = names.contains(&lines.name_of(golden.hashing.digest(key)));
            assert_eq!(filter.contains(key), is_in, "{name}: {key:?}");
        }
        for key in [&0u64.to_le_bytes()[..], b"mayhap"] {
            let digest = golden.hashing.digest(key);
            let own = lines.name_of(digest);
            let (line, remainder) = lines.place_of(own);
            let text = format!(
                "{:016x}: {} lines, {} names: name {own}, line {line}, remainder {remainder}\n",
                digest.a,
                lines.numbers.len() - 3,
                lines.names
            );
            assert!(FORMAT.contains(&text), "the document lacks:\n{text}");
        }
        let first = (0u32..).zip(&lines.numbers).filter(|(_, numbers)| !numbers.is_empty()).take(4);
        let first: Vec<String> = first.map(|(line, numbers)| format!("{} in {line}", numbers[0])).collect();
        let text = format!("- `{name}`: {}\n", first.join(", "));
        assert!(FORMAT.contains(&text), "the document lacks:\n{text}");
    }
}

/// Every id in the document is one of the library, and none of the library's is missing.
/// Section and cells of `spatial`, by what the document says.
#[test]
fn the_areas_of_golden_files_follow_from_the_document() {
    for golden in GOLDEN.iter().filter(|golden| golden.name.starts_with("spatial")) {
        let at = |place: usize, bytes: usize| {
            golden.bytes[place..place + bytes].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        };
        let (m, k, width, areas) = (at(96, 8), at(104, 4) as u32, at(108, 4) as usize / 8, at(128, 4));
        let (mut cells, mut inserted) = (vec![0u16; m as usize], vec![0u64; areas as usize]);
        let mut collisions = inserted.clone();
        for (index, key) in golden.keys().iter().enumerate() {
            let area = area_of(index, areas as u16);
            inserted[usize::from(area) - 1] += 1;
            for place in positions(golden.hashing.digest(key), k, m) {
                let cell = &mut cells[place as usize];
                collisions[usize::from(area) - 1] += u64::from(*cell == area);
                *cell = area.max(*cell);
            }
        }
        for (place, &cell) in cells.iter().enumerate() {
            assert_eq!(at(4096 + place * width, width), u64::from(cell), "{}: cell {place}", golden.name);
        }
        // The entry of the section stands behind the parameters: id, zero, offset, length.
        assert_eq!(at(136, 8), 3);
        let mut place = at(144, 8) as usize;
        for area in 1..=areas as usize {
            let held = cells.iter().filter(|&&cell| usize::from(cell) == area).count() as u64;
            assert_eq!((at(place, 8), at(place + 8, 8)), (inserted[area - 1], held), "{}", golden.name);
            assert_eq!(at(place + 16, 8), collisions[area - 1], "{}: area {area}", golden.name);
            let name = if areas == 3 { ["quiet", "work", "danger"][area - 1] } else { "" };
            assert_eq!(golden.bytes[place + 24], name.len() as u8);
            assert_eq!(&golden.bytes[place + 25..][..name.len()], name.as_bytes());
            place += 25 + name.len();
        }
        assert_eq!(place, golden.bytes.len());
    }
}

#[test]
fn the_document_names_every_family() {
    for family in FAMILIES {
        let title = format!("\n### {} `{}`\n", family.id, family.name);
        assert!(FORMAT.contains(&title), "docs/format.md lacks the family {}", family.name);
    }
}
