//! Filters of other programs whose files of ours are golden: `tests/golden/foreign-*`.

use std::path::Path;

use mayhap::interop::{self, HashRule, Keys, Reading, row_groups};
use mayhap::{AnyFilter, Bytes};

/// The name of the golden file, and the filter in it as the program wrote it.
pub(crate) fn containers() -> Vec<(&'static str, Box<dyn AnyFilter>)> {
    let text = Reading::default();
    let bytes = Reading { keys: Keys::Bytes, hash: None };
    let integers = Reading { keys: Keys::Integers, hash: None };
    let hashed = |rule| Reading { hash: Some(rule), ..Reading::default() };
    let mut all: Vec<(&'static str, Box<dyn AnyFilter>)> = [
        ("guava-64", "guava", "guava/g64-utf8-n1.bloom", &text),
        ("guava-32", "guava", "guava/g32-int.bloom", &text),
        ("go", "go", "go-bloom/est-mixed.bin", &text),
        ("dcso", "dcso", "dcso/d-data.bloom", &text),
        ("spark-1", "spark", "spark/v1-bytes.bloom", &text),
        ("spark-2", "spark", "spark/v2-bytes-negseed.bloom", &text),
        ("spark-sql", "spark", "spark/v2-long.bloom", &hashed(HashRule::Xxh64)),
        ("bloomfilter-crate", "bloomfilter-crate", "bloomfilter-crate/other-seed.filter0.bloom", &text),
        ("sbbf", "sbbf", "parquet/pa-int.sbbf", &text),
        ("xor8", "xor8", "fastfilter/xor8-u64.bin", &integers),
        ("fuse16", "fuse16", "fastfilter/fuse16-str.bin", &text),
        ("pybloom-live", "pybloom-live", "pybloom-live/pl-plain.bloom", &text),
        ("pybloom-live-md5", "pybloom-live", "pybloom-live/pl-scalable.sbloom", &hashed(HashRule::Md5)),
        ("pyprobables", "pyprobables", "pyprobables/pp-bytes.blm", &bytes),
        ("pyprobables-expanding", "pyprobables", "pyprobables/pp-expanding.eblm", &text),
        ("rbloom", "rbloom", "rbloom/r-bytes.bloom", &hashed(HashRule::Sha256)),
    ]
    .into_iter()
    .map(|(name, format, file, reading)| (name, read(format, of_program(file).into(), reading)))
    .collect();
    all.push(("redisbloom", read("redisbloom", dump("bf-expansion4", &[1, 65, 345, 1593]), &text)));
    all.push(("redisbloom-cuckoo", read("redisbloom-cuckoo", dump("cf-bucket4", &[1, 257, 769]), &text)));
    let groups = ["parquet/pa-int.sbbf", "parquet/dd-int.sbbf"].map(|file| of_program(file).into());
    all.push(("row-groups", row_groups::of_row_groups(&groups).expect("two filters")));
    all
}

fn of_program(file: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(file)).expect(file)
}

fn read(format: &str, bytes: Bytes, reading: &Reading) -> Box<dyn AnyFilter> {
    interop::format(format).expect(format).read(bytes, reading).expect(format)
}

/// Chunks of Redis with their iterators, as the command line has them.
fn dump(name: &str, iterators: &[i64]) -> Bytes {
    let mut bytes = Vec::new();
    for (number, iterator) in iterators.iter().enumerate() {
        let chunk = of_program(&format!("redisbloom/{name}.chunk{number}.bin"));
        bytes.extend(iterator.to_le_bytes());
        bytes.extend((chunk.len() as u64).to_le_bytes());
        bytes.extend(chunk);
    }
    bytes.into()
}
