//! Filters of RedisBloom and of the crate `bloomfilter`, both ways.

use std::collections::HashMap;
use std::num::{NonZeroU8, NonZeroU16};

use mayhap::interop::bloomfilter_crate::{self, VALKEY_SEED};
use mayhap::interop::redis_dump::{Dump, Loading};
use mayhap::interop::redisbloom::{Growth, RedisBloom};
use mayhap::interop::redisbloom_cuckoo::RedisCuckoo;
use mayhap::interop::{self, Making, Reading, recognise};
use mayhap::{
    AnyFilter, Bytes, Combine, DecodeError, Full, Insertion, Knob, Limit, Mismatch, Parameter, SpecError,
    Value, combine,
};

use crate::crafted;
use crate::foreign::{Golden, insert_all, is_hardened, make, read, sha256, through_our_container, write};

/// The chunks of a dump, with their iterators, as the server gave them.
fn chunks(golden: &Golden) -> Vec<(i64, Vec<u8>)> {
    let chunks = golden.manifest["chunks"].as_array().expect("chunks");
    let chunk = |chunk: &serde_json::Value| {
        let bytes = golden.read(chunk["file"].as_str().expect("a name"));
        assert_eq!(sha256(&bytes), chunk["sha256"].as_str().expect("a sum"));
        (chunk["iterator"].as_i64().expect("a number"), bytes)
    };
    chunks.iter().map(chunk).collect()
}

/// The file of some chunks.
fn dump_file(chunks: &[(i64, Vec<u8>)]) -> Vec<u8> {
    let frame = |(iterator, bytes): &(i64, Vec<u8>)| {
        [&iterator.to_le_bytes()[..], &(bytes.len() as u64).to_le_bytes(), bytes].concat()
    };
    chunks.iter().flat_map(frame).collect()
}

fn chunks_of<F: Dump>(filter: &F) -> Vec<(i64, Vec<u8>)> {
    filter.chunks().map(|chunk| (chunk.iterator, chunk.bytes.into_owned())).collect()
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    let names: Vec<String> =
        Golden::names("redisbloom", 15).into_iter().filter(|name| name.starts_with(prefix)).collect();
    assert_eq!(names.len(), count);
    names
}

/// The words of a command, as they stand in a manifest.
struct Command(Vec<String>);

impl Command {
    fn of(golden: &Golden, default: &str) -> Self {
        let text = golden.manifest["reserve"].as_str().unwrap_or(default);
        Self(text.split(' ').map(String::from).collect())
    }

    fn has(&self, word: &str) -> bool {
        self.0.iter().any(|other| other == word)
    }

    fn option(&self, word: &str, default: u32) -> u32 {
        let place = self.0.iter().position(|other| other == word);
        place.map_or(default, |place| self.0[place + 1].parse().expect("a number"))
    }
}

/// The header of a chain of one empty link, as an old version made it.
fn legacy_start(golden: &Golden) -> Vec<u8> {
    let start = &golden.manifest["start"];
    let (error, bits) = (start["error"].as_f64().unwrap(), start["bits"].as_u64().unwrap());
    let bits_per_key = error.ln().abs() / 0.480453013918201;
    let probes = (core::f64::consts::LN_2 * bits_per_key).ceil() as u32;
    [
        &0u64.to_le_bytes()[..],
        &1u32.to_le_bytes(),
        &(golden.number("options") as u32).to_le_bytes(),
        &2u32.to_le_bytes(),
        &(bits / 8).to_le_bytes(),
        &bits.to_le_bytes(),
        &0u64.to_le_bytes(),
        &error.to_le_bytes(),
        &bits_per_key.to_le_bytes(),
        &probes.to_le_bytes(),
        &start["entries"].as_u64().unwrap().to_le_bytes(),
        &[start["n2"].as_u64().unwrap() as u8],
    ]
    .concat()
}

/// Empty, as the server began with it.
fn reserved_bloom(golden: &Golden) -> RedisBloom {
    if golden.manifest.get("start").is_some() {
        return RedisBloom::begin(&legacy_start(golden), 1 << 20).unwrap();
    }
    let command = Command::of(golden, "0.01 100");
    let (fpr, capacity) = (command.0[0].parse().unwrap(), command.0[1].parse().unwrap());
    let times = command.option("EXPANSION", 2);
    let growth = if command.has("NONSCALING") { Growth::Never { told: times } } else { Growth::Times(times) };
    RedisBloom::reserve(capacity, fpr, growth).unwrap()
}

#[test]
fn bloom_filters_of_redis_are_read_asked_rebuilt_and_dumped_as_redisbloom_does() {
    for name in names("bf-", 11) {
        let golden = Golden::new("redisbloom", &name);
        let (chunks, keys) = (chunks(&golden), golden.inserted());
        let file = dump_file(&chunks);
        assert_eq!(recognise(&file).unwrap().name, "redisbloom", "{name}");
        let filter = read("redisbloom", file.clone(), &Reading::default());
        golden.check(&*filter, |key| key);
        assert_eq!(write("redisbloom", &*filter), file, "{name}");
        let back = through_our_container(&*filter);
        golden.check(&*back, |key| key);
        assert_eq!(write("redisbloom", &*back), file, "{name}");
        assert_eq!(filter.family().name, "scalable");

        // From the keys, to the bit.
        let mut made = reserved_bloom(&golden);
        let outcomes: Vec<Insertion> = keys.iter().map(|key| made.insert(key).unwrap()).collect();
        assert!(chunks_of(&made) == chunks, "{name}: headers {:x?} and {:x?}", made.header(), chunks[0].1);
        let new = outcomes.iter().filter(|&&outcome| outcome == Insertion::New).count() as u64;
        assert_eq!(made.inserted(), Some(new));
        if let Some(added) = golden.manifest["adds_that_returned_1"].as_u64() {
            assert_eq!(new, added, "{name}");
        }
        // In batches, and by the numbers that a command line has.
        let command = Command::of(&golden, "0.01 100");
        if golden.manifest.get("start").is_none() && !command.has("NONSCALING") {
            let growth = command.has("EXPANSION").then(|| command.option("EXPANSION", 2));
            let sized = Making::new(command.0[1].parse().unwrap(), command.0[0].parse().unwrap());
            let mut made = make("redisbloom", &Making { growth, version: Some((2, 8)), ..sized });
            insert_all(&mut *made, &keys);
            assert_eq!(write("redisbloom", &*made), file, "{name}");
        }

        // What the server says of it, link by link.
        let told = golden.manifest["debug"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
        let width = if made.hashing().name() == "murmur64a-twice" { 64 } else { 32 };
        let said: Vec<String> = std::iter::once(format!("size:{}", made.inserted().unwrap()))
            .chain(made.layers().iter().map(|layer| {
                format!(
                    "bytes:{} bits:{} hashes:{} hashwidth:{width} capacity:{} size:{}",
                    layer.bits / 8,
                    layer.bits,
                    layer.probes,
                    layer.capacity,
                    layer.keys
                )
            }))
            .collect();
        let told: Vec<&str> = told.map(|line| line.split(" ratio:").next().unwrap()).collect();
        assert_eq!(said, told, "{name}");
    }
}

fn reserved_cuckoo(golden: &Golden) -> RedisCuckoo {
    let command = Command::of(golden, "");
    RedisCuckoo::reserve(
        command.0[0].parse().unwrap(),
        NonZeroU8::new(command.option("BUCKETSIZE", 2) as u8).unwrap(),
        NonZeroU16::new(command.option("MAXITERATIONS", 20) as u16).unwrap(),
        command.option("EXPANSION", 1) as u16,
    )
    .unwrap()
}

#[test]
fn cuckoo_filters_of_redis_are_read_asked_rebuilt_and_dumped_as_redisbloom_does() {
    for name in names("cf-", 4) {
        let golden = Golden::new("redisbloom", &name);
        let (chunks, keys) = (chunks(&golden), golden.inserted());
        let file = dump_file(&chunks);
        assert_eq!(recognise(&file).unwrap().name, "redisbloom-cuckoo", "{name}");
        let filter = read("redisbloom-cuckoo", file.clone(), &Reading::default());
        golden.check(&*filter, |key| key);
        assert_eq!(write("redisbloom-cuckoo", &*filter), file, "{name}");
        let back = through_our_container(&*filter);
        golden.check(&*back, |key| key);
        assert_eq!(write("redisbloom-cuckoo", &*back), file, "{name}");
        assert_eq!(filter.family().name, "cuckoo");

        // From the keys, to the byte: inserted, grown, removed, compacted.
        let removed = golden.number("deleted_first") as usize;
        let mut made = reserved_cuckoo(&golden);
        keys.iter().for_each(|key| {
            made.insert(key).unwrap();
        });
        assert!(keys[..removed].iter().all(|key| made.remove(key).is_removed()), "{name}");
        assert!(chunks_of(&made) == chunks, "{name}: headers {:x?} and {:x?}", made.header(), chunks[0].1);
        assert!(keys[removed..].iter().all(|key| made.count(key) >= 1));
        assert_eq!(made.inserted(), golden.manifest["info"]["Number of items inserted"].as_u64());
        assert_eq!(made.removed(), golden.manifest["info"]["Number of items deleted"].as_u64().unwrap());
        let report = made.report();
        assert_eq!(made.inserted().unwrap() as f64, report.fill * report.capacity as f64);
        // The rate that is told is about the one that there is.
        let told = 2000.0 * report.fpr_now;
        let found = golden.number("absent_positives") as f64;
        assert!((found - told).abs() < 5.0 * told.sqrt(), "{name}: {found} of 2000, {told:.1} expected");
    }
    // By the numbers that a command line has.
    let golden = Golden::new("redisbloom", "cf-default");
    let mut made = make("redisbloom-cuckoo", &Making::new(1000, 0.01));
    insert_all(&mut *made, &golden.inserted());
    assert_eq!(write("redisbloom-cuckoo", &*made), dump_file(&chunks(&golden)));
}

#[test]
fn a_dump_is_scanned_and_loaded_chunk_by_chunk() {
    let golden = Golden::new("redisbloom", "bf-scaling-x2");
    let filter: RedisBloom = load(&chunks(&golden));
    // As a client of the server asks: with the iterator that came before, until there is no more.
    let (mut iterator, mut scanned) = (0, Vec::new());
    while let Some(chunk) = filter.scan(iterator) {
        iterator = chunk.iterator;
        scanned.push((chunk.iterator, chunk.bytes.into_owned()));
    }
    assert_eq!(scanned, chunks(&golden));
    assert!([-1, i64::MIN, i64::MAX, 2690].iter().all(|&beyond| filter.scan(beyond).is_none()));

    // In smaller pieces, one of them twice.
    let mut loading = Loading::<RedisBloom>::begin(&filter.header(), 1 << 20).unwrap();
    let mut end = 1;
    for piece in filter.arrays().flat_map(|array| array.chunks(100)) {
        assert!(!loading.is_complete());
        end += piece.len() as i64;
        loading.load_chunk(end, piece).unwrap();
        loading.load_chunk(end, piece).unwrap();
    }
    assert!(loading.is_complete());
    assert_eq!(chunks_of(loading.filter()), chunks(&golden));

    // Out of order, over the end of a link, behind the end, empty, or with iterators that mean nothing.
    let mut loading = Loading::<RedisBloom>::begin(&filter.header(), 1 << 20).unwrap();
    let iterator = |found: i64| Err(DecodeError::Value { field: "iterator of a chunk", found: found as u64 });
    let length = |found| Err(DecodeError::Value { field: "length of a chunk", found });
    assert_eq!(loading.load_chunk(457, &[0; 312]), iterator(457));
    assert_eq!(loading.load_chunk(146, &[0; 145]), length(145));
    assert_eq!(loading.load_chunk(1, &[]), length(0));
    for none in [0, -1, i64::MIN, i64::MAX, 3] {
        assert_eq!(loading.load_chunk(none, &[0; 3]), iterator(none));
    }
    loading.load_chunk(145, &[0; 144]).unwrap();
    let missing = DecodeError::Truncated {
        field: "all arrays together",
        needed: 144 + 312 + 696 + 1536,
        available: 144,
    };
    assert_eq!(loading.clone().finish().unwrap_err(), missing);
    // A server says how much memory a key may take.
    let refused = Loading::<RedisBloom>::begin(&filter.header(), 1000).unwrap_err();
    assert!(matches!(refused, DecodeError::Truncated { available: 1000, .. }), "{refused}");
}

fn load<F: Dump>(chunks: &[(i64, Vec<u8>)]) -> F {
    let mut loading = Loading::<F>::begin(&chunks[0].1, 1 << 20).unwrap();
    chunks[1..].iter().for_each(|(iterator, bytes)| loading.load_chunk(*iterator, bytes).unwrap());
    loading.finish().unwrap()
}

#[test]
fn long_arrays_are_dumped_in_pieces_of_16_mib() {
    let mut filter = RedisBloom::reserve(20_000_000, 0.001, Growth::Times(2)).unwrap();
    filter.insert(b"key").unwrap();
    let length = filter.arrays().map(<[u8]>::len).sum::<usize>();
    let lengths: Vec<usize> = filter.chunks().map(|chunk| chunk.bytes.len()).collect();
    assert_eq!(lengths, [73, 16 << 20, 16 << 20, length - (32 << 20)]);
    assert_eq!(filter.scan(1 + (16 << 20)).unwrap().iterator, 1 + (32 << 20));
    let file = write("redisbloom", &filter);
    assert_eq!(recognise(&file).unwrap().name, "redisbloom");
    let back = read("redisbloom", file.clone(), &Reading::default());
    assert!(back.contains(b"key"));
    assert_eq!(write("redisbloom", &*back), file);
}

#[test]
fn a_filter_of_redis_that_does_not_grow_refuses_keys_when_it_is_full() {
    let golden = Golden::new("redisbloom", "bf-nonscaling");
    let mut filter: RedisBloom = load(&chunks(&golden));
    assert_eq!(filter.growth(), Growth::Never { told: 2 });
    assert!(!filter.can().grows);
    let full = Full { limit: Limit::Keys { capacity: 1000 }, inserted: 0 };
    let before = chunks_of(&filter);
    let absent = golden.absent().into_iter().find(|key| !filter.contains(key)).unwrap();
    assert_eq!(filter.insert(&absent), Err(full));
    assert_eq!(filter.insert(&golden.inserted()[0]), Ok(Insertion::Perhaps));
    assert_eq!(chunks_of(&filter), before);

    // EXPANSION 0 is the same, and says so in its header.
    let none = make("redisbloom", &Making { growth: Some(0), ..Making::new(1000, 0.01) });
    let header = &write("redisbloom", &*none)[16..36];
    assert_eq!(header, b"\0\0\0\0\0\0\0\0\x01\0\0\0\x0d\0\0\0\0\0\0\0");

    // Versions from 8 on grant no higher rate than 0.25.
    let [old, new] = [Some((2, 8)), None].map(|version| {
        let making = Making { version, growth: Some(0), ..Making::new(1000, 0.3) };
        make("redisbloom", &making).report().fpr_asked
    });
    assert_eq!((old, new), (0.3, 0.25));

    let two = NonZeroU8::new(2).unwrap();
    let mut cuckoo = RedisCuckoo::reserve(8, two, NonZeroU16::MIN, 0).unwrap();
    let before = loop {
        let before = chunks_of(&cuckoo);
        let number = cuckoo.inserted().unwrap();
        match cuckoo.insert(number.to_le_bytes()) {
            Ok(_) => assert!(number < 8),
            Err(full) => {
                assert_eq!(full.limit, Limit::Slots { capacity: 8, used: number, slots: 8 });
                break before;
            }
        }
    };
    assert_eq!(chunks_of(&cuckoo), before, "a refused key moved others");
}

#[test]
fn growth_ends_before_numbers_do() {
    // A file may claim any capacity, growth and rate; the next link is then a full filter and no panic.
    let mut header = RedisBloom::reserve(1, 0.5, Growth::Times(2)).unwrap().header();
    let grown = |header: &[u8]| {
        let mut filter = RedisBloom::begin(header, 1 << 20).unwrap();
        filter.insert(b"a").unwrap();
        filter.insert(b"b").unwrap_err().limit
    };
    header[16..20].fill(0);
    assert_eq!(grown(&header), Limit::Keys { capacity: 1 });
    // 2^32 - 1 times 2^40 keys.
    header[16..20].fill(0xff);
    header[64..72].copy_from_slice(&(1u64 << 40).to_le_bytes());
    for keys in [0..8, 36..44] {
        header[keys].copy_from_slice(&((1u64 << 40) - 1).to_le_bytes());
    }
    assert!(matches!(grown(&header), Limit::Growth { bytes, most } if bytes > 1 << 48 && most < 1 << 25));

    // The rates of links with one key each halve until there is no lower number.
    let mut filter = RedisBloom::reserve(1, 0.01, Growth::Times(1)).unwrap();
    let mut key = 0u64;
    let full = loop {
        key += 1;
        if let Err(full) = filter.insert(key.to_le_bytes()) {
            break full;
        }
        assert!(key < 3000);
    };
    assert!(matches!(full.limit, Limit::Layers { most: 1000..1100 }), "{full}");
    through_our_container(&filter);
}

#[test]
fn chains_that_are_alike_merge_if_their_keys_fit() {
    let chain = |keys: std::ops::Range<u64>| {
        let mut chain = RedisBloom::reserve(100, 0.01, Growth::Times(2)).unwrap();
        keys.for_each(|key| {
            chain.insert(key.to_le_bytes()).unwrap();
        });
        chain
    };
    let mut ours = chain(0..40);
    combine(&mut ours, &chain(40..90), Combine::Union).unwrap();
    assert!((0..90u64).all(|key| ours.contains(key.to_le_bytes())));
    assert_eq!(write("redisbloom", &ours), write("redisbloom", &chain(0..90)));

    let full = Mismatch::Full(Full { limit: Limit::Keys { capacity: 100 }, inserted: 0 });
    let before = chunks_of(&ours);
    assert_eq!(ours.merge(&chain(0..50)), Err(full));
    // The other has a second link, and its first is full.
    assert_eq!(ours.merge(&chain(0..120)), Err(full));
    let other = RedisBloom::reserve(200, 0.01, Growth::Times(2)).unwrap();
    assert_eq!(
        ours.merge(&other),
        Err(Mismatch::Differ { what: Parameter::Bits, ours: Value::Whole(1152), theirs: Value::Whole(2240) })
    );
    let other = RedisBloom::reserve(100, 0.01, Growth::Times(4)).unwrap();
    assert_eq!(ours.merge(&other), Err(Mismatch::PeerField { field: "ways to grow" }));
    assert_eq!(chunks_of(&ours), before);

    let mut empty = chain(0..0);
    empty.merge(&chain(0..120)).unwrap();
    assert_eq!(chunks_of(&empty), chunks_of(&chain(0..120)));
}

#[test]
fn keys_of_a_cuckoo_filter_come_and_go_as_often_as_they_like() {
    for (bucket, growth) in [(1, 1), (2, 1), (4, 2), (3, 4)] {
        let mut filter =
            RedisCuckoo::reserve(16, NonZeroU8::new(bucket).unwrap(), NonZeroU16::new(20).unwrap(), growth)
                .unwrap();
        let mut exact = HashMap::<u64, u64>::new();
        let mut state = 1u64;
        for _ in 0..4000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (state >> 33) % 300;
            let count = exact.entry(key).or_default();
            if state >> 60 < 9 {
                filter.insert(key.to_le_bytes()).unwrap();
                *count += 1;
            } else if *count > 0 {
                assert!(filter.remove(key.to_le_bytes()).is_removed());
                *count -= 1;
            }
            assert_eq!(filter.inserted(), filter.report().estimated_len.map(|len| len as u64));
        }
        assert_eq!(filter.inserted(), Some(exact.values().sum::<u64>()));
        for (key, &count) in &exact {
            assert!(filter.count(key.to_le_bytes()) >= count);
            assert!(filter.contains(key.to_le_bytes()) || count == 0);
        }
        let tables = filter.layers().len();
        assert!(tables > 1);
        for (key, count) in exact {
            assert!((0..count).all(|_| filter.remove(key.to_le_bytes()).is_removed()));
        }
        assert_eq!((filter.inserted(), filter.details().slots.unwrap().used), (Some(0), 0));
        assert!(filter.layers().len() < tables);
        through_our_container(&filter);
        let file = write("redisbloom-cuckoo", &filter);
        assert_eq!(recognise(&file).unwrap().name, "redisbloom-cuckoo", "an empty one");
    }
}

#[test]
fn blobs_of_the_crate_are_read_asked_rebuilt_and_written_as_it_does() {
    for name in ["fixed-seed", "other-seed"] {
        let golden = Golden::new("bloomfilter-crate", name);
        let file = golden.read(&format!("{name}.filter0.bloom"));
        assert_eq!(recognise(&file).unwrap().name, "bloomfilter-crate", "{name}");
        let filter = read("bloomfilter-crate", file.clone(), &Reading::default());
        golden.check(&*filter, |key| key);
        assert_eq!(write("bloomfilter-crate", &*filter), file, "{name}");
        let back = through_our_container(&*filter);
        golden.check(&*back, |key| key);
        assert_eq!(write("bloomfilter-crate", &*back), file, "{name}");

        // From the keys, to the bit.
        let making = Making::new(golden.number("capacity"), golden.rate("fpp"));
        let mut made = bloomfilter_crate::create(&making, seed_of(&golden)).unwrap();
        insert_all(&mut *made, &golden.inserted());
        assert_eq!(write("bloomfilter-crate", &*made), file, "{name}");
        through_our_container(&*made);
        if name == "fixed-seed" {
            let mut made = make("bloomfilter-crate", &making);
            insert_all(&mut *made, &golden.inserted());
            assert_eq!(write("bloomfilter-crate", &*made), file);
        }
    }
}

fn seed_of(golden: &Golden) -> [u8; 32] {
    let hex = golden.text("seed_hex");
    std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal"))
}

/// A filter that valkey-bloom has grown is several blobs; each is one file here.
#[test]
fn blobs_of_a_filter_that_has_grown_answer_together() {
    let golden = Golden::new("bloomfilter-crate", "scaled-x2");
    assert_eq!(seed_of(&golden), VALKEY_SEED);
    let file = |i: usize| golden.read(&format!("scaled-x2.filter{i}.bloom"));
    let blobs: Vec<Box<dyn AnyFilter>> =
        (0..4).map(|i| read("bloomfilter-crate", file(i), &Reading::default())).collect();
    let contains = |blobs: &[Box<dyn AnyFilter>], key: &[u8]| blobs.iter().any(|blob| blob.contains(key));
    assert!(golden.inserted().iter().all(|key| contains(&blobs, key)));
    let answers: String =
        golden.absent().iter().map(|key| if contains(&blobs, key) { '1' } else { '0' }).collect();
    assert_eq!(answers, golden.text("absent_results"));

    // From the keys: the next begins when one has as many as it is for.
    let mut made: Vec<Box<dyn AnyFilter>> = Vec::new();
    let mut left = 0u64;
    for key in golden.inserted() {
        if contains(&made, &key) {
            continue;
        }
        if left == 0 {
            let number = made.len() as i32;
            left = 100 << number;
            made.push(make("bloomfilter-crate", &Making::new(left, 0.01 * 0.5f64.powi(number))));
        }
        insert_all(&mut **made.last_mut().unwrap(), &[key]);
        left -= 1;
    }
    assert_eq!(made.len(), 4);
    for (i, made) in made.iter().enumerate() {
        assert_eq!(write("bloomfilter-crate", &**made), file(i), "blob {i}");
    }
}

#[test]
fn what_others_cannot_be_made_of_is_refused() {
    for format in ["redisbloom", "redisbloom-cuckoo", "bloomfilter-crate"] {
        let format = interop::format(format).unwrap();
        let refused = |making: Making| format.make(&making).err().unwrap();
        let seed = refused(Making { seed: 7, ..Making::new(10, 0.1) });
        assert_eq!(seed, SpecError::NotFor { knob: Knob::Seed, family: format.name, others: &[] });
        assert!(matches!(refused(Making::new(0, 0.1)), SpecError::Range { knob: Knob::Capacity, .. }));
        assert!(matches!(refused(Making::new(1 << 48, 1e-9)), SpecError::TooLarge { .. }));
        let growth = refused(Making { growth: Some(1 << 20), ..Making::new(10, 0.1) });
        assert!(matches!(
            growth,
            SpecError::Range { knob: Knob::Growth, most: Value::Whole(32_768), .. }
                | SpecError::NotFor { knob: Knob::Growth, .. }
        ));
        // Another's filter is not written.
        let other = make("guava", &Making::new(10, 0.1));
        assert!(format.write(&*other).is_err());
    }
}

#[test]
fn crafted_files_of_ours_are_refused_or_do_no_harm() {
    let ours = |filter: &dyn AnyFilter| mayhap::encode(filter, mayhap::Summing::Payload).to_vec();
    let opened = |file: Vec<u8>| mayhap::open(file.into(), None).map(|_| ()).unwrap_err();
    let redis = |name, format| {
        ours(&*read(format, dump_file(&chunks(&Golden::new("redisbloom", name))), &Reading::default()))
    };
    let bloom = redis("bf-scaling-x2", "redisbloom");
    let cuckoo = redis("cf-deletes", "redisbloom-cuckoo");
    let blob = ours(&*make("bloomfilter-crate", &Making::new(100, 0.01)));
    for (file, expected, family, hash) in
        [(&bloom, "scalable", 10u16, 37), (&cuckoo, "cuckoo", 9, 39), (&blob, "bloom", 1, 42)]
    {
        let (refused, _) = crafted::damage(file, 8, 3000);
        assert!(refused > 0);
        // Family and hash function do not go with the rule.
        assert_eq!(file[6..8], family.to_le_bytes());
        let other = crafted::with(file, 6, &12u16.to_le_bytes());
        assert_eq!(opened(other), DecodeError::OtherFamily { expected, found: "spatial" });
        assert_eq!(file[12], hash);
        let other = crafted::with(file, 12, &[38]);
        assert_eq!(opened(other), DecodeError::Hashing { scheme: 38, version: 1 });
    }
    // A bitmap of the crate has whole bytes.
    let bits = u64::from_le_bytes(blob[crafted::PARAMS..][..8].try_into().unwrap());
    let other = crafted::with(&blob, crafted::PARAMS, &(bits - 1).to_le_bytes());
    assert_eq!(opened(other), DecodeError::Value { field: "bits", found: bits - 1 });
}

fn refusal(format: &str, file: &[u8]) -> DecodeError {
    let format = interop::format(format).expect(format);
    assert_ne!(recognise(file).map(|format| format.name), Ok(format.name));
    format.read(Bytes::from(file.to_vec()), &Reading::default()).map(|_| ()).unwrap_err()
}

/// The same with a field that is changed.
fn changed(file: &[u8], at: usize, field: &[u8]) -> Vec<u8> {
    let mut changed = file.to_vec();
    changed[at..at + field.len()].copy_from_slice(field);
    changed
}

const HUGE: u64 = 1 << 60;

#[test]
fn hostile_dumps_of_bloom_filters_are_errors() {
    let file = dump_file(&chunks(&Golden::new("redisbloom", "bf-empty")));
    is_hardened("redisbloom", &file, &Reading::default());
    is_hardened(
        "redisbloom",
        &dump_file(&chunks(&Golden::new("redisbloom", "bf-legacy32-pow2"))),
        &Reading::default(),
    );
    // The header begins at 16, its link at 36, and the chunk behind it at 89.
    let value = |field, found| DecodeError::Value { field, found };
    let refused = |at, field: &[u8]| refusal("redisbloom", &changed(&file, at, field));
    let bits = |bits: f64| bits.to_bits();
    for (at, field, error) in [
        (0, 2u64, value("iterator of the header", 2)),
        (8, HUGE, DecodeError::Truncated { field: "chunk", needed: HUGE, available: 73 + 16 + 16 }),
        (16, 1, value("keys of all links", 1)),
        (36 + 8, 0, value("bits of a link", 0)),
        (36 + 8, 129, value("bits of a link", 129)),
        (36 + 16, HUGE, value("keys of a link", HUGE)),
        (36 + 24, bits(0.0), value("rate of a link", bits(0.0))),
        (36 + 24, bits(1.0), value("rate of a link", bits(1.0))),
        (36 + 24, bits(-0.5), value("rate of a link", bits(-0.5))),
        (36 + 24, bits(f64::NAN), value("rate of a link", bits(f64::NAN))),
        (36 + 32, bits(f64::NAN), value("bits per key of a link", bits(f64::NAN))),
        (36 + 32, bits(f64::INFINITY), value("bits per key of a link", bits(f64::INFINITY))),
        (36 + 32, bits(20.0), value("bits per key of a link", bits(20.0))),
        (89, 16, value("iterator of a chunk", 16)),
        (89, u64::MAX, value("iterator of a chunk", u64::MAX)),
        (97, HUGE, DecodeError::Truncated { field: "chunk", needed: HUGE, available: 16 }),
    ] {
        assert_eq!(refused(at, &field.to_le_bytes()), error);
    }
    for (at, field, error) in [
        (24, 0u32, value("links", 0)),
        (24, 2, DecodeError::Truncated { field: "links", needed: 106, available: 53 }),
        (24, u32::MAX, DecodeError::Truncated { field: "links", needed: 53 * 0xffff_ffff, available: 53 }),
        (28, 16, DecodeError::Flags { found: 16 }),
        (36 + 40, 0, value("probes", 0)),
        (36 + 40, u32::MAX, value("probes", u32::MAX.into())),
    ] {
        assert_eq!(refused(at, &field.to_le_bytes()), error);
    }
    assert_eq!(refused(36 + 52, &[64]), value("n2 of a link", 64));
    assert_eq!(refused(36 + 52, &[8]), value("n2 of a link", 8));
    // A link of 2^57 bytes, which agree with its 2^60 bits. Nothing of the kind is allocated.
    let claims = [1u64 << 57, HUGE].map(u64::to_le_bytes).concat();
    let needed = (1 << 57) + 16;
    let error = DecodeError::Truncated { field: "all arrays together", needed, available: 32 };
    assert_eq!(refused(36, &claims), error);
    assert_eq!(
        error.to_string(),
        "truncated: all arrays together takes 144115188075855888 bytes, 32 are there"
    );
    // Very many links take no more time than their bytes do: in the square of their number this would not end.
    let link = [&file[36..36 + 52], &[0]].concat();
    let header =
        [&0u64.to_le_bytes()[..], &200_000u32.to_le_bytes(), &file[28..36], &link.repeat(200_000)].concat();
    let arrays = (1..=200_000).map(|i| (16 * i + 1, vec![0; 16]));
    let many = dump_file(&std::iter::once((1, header)).chain(arrays).collect::<Vec<_>>());
    assert_eq!(recognise(&many).unwrap().name, "redisbloom");
    let filter = read("redisbloom", many.clone(), &Reading::default());
    assert!(write("redisbloom", &*filter) == many);
    // A chunk that is not there, half there, there twice, or behind the end.
    let chunk = &file[89..];
    let without = DecodeError::Truncated { field: "all arrays together", needed: 32, available: 0 };
    assert_eq!(refusal("redisbloom", &file[..89]), without);
    let twice = refusal("redisbloom", &[&file, chunk].concat());
    assert_eq!(twice, value("iterator of a chunk", 17));
    let half = [&file[..89], &9u64.to_le_bytes(), &8u64.to_le_bytes(), &[0; 8], &[0; 8]].concat();
    assert!(matches!(refusal("redisbloom", &half), DecodeError::Truncated { .. }));
    let behind = [&file, &18u64.to_le_bytes()[..], &1u64.to_le_bytes(), &[0]].concat();
    assert_eq!(refusal("redisbloom", &behind), value("iterator of a chunk", 18));
    let end = [&file, &0u64.to_le_bytes()[..], &0u64.to_le_bytes()].concat();
    assert_eq!(refusal("redisbloom", &end), value("iterator of a chunk", 0));
}

#[test]
fn hostile_dumps_of_cuckoo_filters_are_errors() {
    let file = dump_file(&chunks(&Golden::new("redisbloom", "cf-bucket4")));
    is_hardened("redisbloom-cuckoo", &file, &Reading::default());
    // The header begins at 16, the chunk behind it at 54.
    let value = |field, found| DecodeError::Value { field, found };
    let refused = |at, field: &[u8]| refusal("redisbloom-cuckoo", &changed(&file, at, field));
    let available = (file.len() - 54) as u64;
    let missing = |needed| DecodeError::Truncated { field: "all arrays together", needed, available };
    for (at, field, error) in [
        (0, 2u64, value("iterator of the header", 2)),
        (16 + 8, 0, value("buckets", 0)),
        (16 + 8, 65, value("buckets", 65)),
        (16 + 8, HUGE, missing((HUGE << 2) + 16)),
        (16 + 8, 1 << 63, missing(u64::MAX)),
        (16 + 24, 0, value("tables", 0)),
        (16 + 24, 3, missing(256 + 512 + 1024 + 48)),
        // Tables end when no bytes are left for them.
        (16 + 24, HUGE, missing(256 + 512 + 1024 + 48)),
        // The second chunk is behind the end then.
        (16 + 24, 1, value("iterator of a chunk", 769)),
        (54, 256, value("iterator of a chunk", 256)),
        (62, HUGE, DecodeError::Truncated { field: "chunk", needed: HUGE, available: available - 16 }),
    ] {
        assert_eq!(refused(at, &field.to_le_bytes()), error);
    }
    for (at, field, error) in [
        (16 + 32, 0u16, value("slots of a bucket", 0)),
        (16 + 36, 0, value("growth", 0)),
        (16 + 36, 3, value("growth", 3)),
    ] {
        assert_eq!(refused(at, &field.to_le_bytes()), error);
    }
    // A header of another length.
    for length in [37u64, 39] {
        let header = [&file[16..54], b"\0"].concat();
        let header = &header[..length as usize];
        let other = [&1u64.to_le_bytes()[..], &length.to_le_bytes(), header, &file[54..]].concat();
        let error = refusal("redisbloom-cuckoo", &other);
        assert!(matches!(error, DecodeError::Truncated { .. } | DecodeError::Length { .. }), "{error}");
    }
    // Counts that are not true change no answer.
    let lies = changed(&changed(&file, 16, &u64::MAX.to_le_bytes()), 32, &u64::MAX.to_le_bytes());
    let mut filter = read("redisbloom-cuckoo", lies, &Reading::default());
    Golden::new("redisbloom", "cf-bucket4").check(&*filter, |key| key);
    insert_all(&mut *filter, &[b"key".to_vec()]);
    assert!(filter.contains(b"key"));
}

#[test]
fn hostile_blobs_of_the_crate_are_errors() {
    let file = Golden::new("bloomfilter-crate", "scaled-x2").read("scaled-x2.filter0.bloom");
    is_hardened("bloomfilter-crate", &file, &Reading::default());
    let value = |field, found| DecodeError::Value { field, found };
    let refused = |at, field: &[u8]| refusal("bloomfilter-crate", &changed(&file, at, field));
    assert_eq!(refused(0, &[2]), value("version", 2));
    assert_eq!(refused(1, &0u64.to_le_bytes()), value("bytes of the bitmap", 0));
    assert_eq!(refused(1, &HUGE.to_le_bytes()), value("bytes of the bitmap", HUGE));
    let needed = 1 << 40;
    let error = DecodeError::Truncated { field: "bitmap", needed, available: 120 };
    assert_eq!(refused(1, &needed.to_le_bytes()), error);
    assert_eq!(refused(1, &119u64.to_le_bytes()), DecodeError::Trailing { bytes: 1 });
    assert_eq!(refused(9, &0u32.to_le_bytes()), value("probes", 0));
    assert_eq!(refused(9, &1075u32.to_le_bytes()), value("probes", 1075));
    let error = DecodeError::Truncated { field: "keys of the hash functions", needed: 32, available: 31 };
    assert_eq!(refusal("bloomfilter-crate", &file[..44]), error);
}
