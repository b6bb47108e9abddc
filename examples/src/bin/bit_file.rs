//! A bit array kept in a file: `cargo run -p mayhap-examples --bin bit_file [KEYS]`
//!
//! The file is written once, for all the keys that are to come. Each day's keys are then put in under a lock, where they
//! lie: the file is mapped and not written anew. Whoever asks maps it too, and reads the pages that the answers are on.
//! In the end the file is byte for byte that of a filter that got all keys at once.

use std::error::Error;
use std::fs;
use std::path::Path;

use mayhap::Bloom;
use mayhap_eval::{ABSENT, KeyKind};
use mayhap_examples::{agrees, keys_or};
use mayhap_store::{Access, open, update, write};

const DAYS: u64 = 5;
/// From 16 MiB on a file is changed in place; a smaller one is written anew, which survives every accident.
const LEAST_BITS: u64 = 16 << 23;
const PROBES: u32 = 7;

fn url(index: u64) -> Vec<u8> {
    KeyKind::Url.key(11, index)
}

/// Which file a name stands for: another one, if it was written anew. Where there is no such number, nothing is shown.
#[cfg(unix)]
fn identity(path: &Path) -> Result<u64, Box<dyn Error>> {
    Ok(std::os::unix::fs::MetadataExt::ino(&fs::metadata(path)?))
}
#[cfg(not(unix))]
fn identity(_: &Path) -> Result<u64, Box<dyn Error>> {
    Ok(0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let keys_per_day = keys_or(5_000_000)? / DAYS;
    let bits = LEAST_BITS.max(10 * DAYS * keys_per_day);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("seen.mayhap");
    let empty = Bloom::with_bits(bits, PROBES)?;
    write(&path, &empty)?;
    let (file, length) = (identity(&path)?, fs::metadata(&path)?.len());
    println!("bits: {bits}");
    println!("bytes of the file: {length}");

    for day in 0..DAYS {
        let keys: Vec<Vec<u8>> = (day * keys_per_day..(day + 1) * keys_per_day).map(url).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        update(&path, None, |filter| filter.insert_keys(&keys, &mut Vec::new()))
            .map_err(|problem| format!("{}: cannot be updated: {problem:?}", path.display()))?;
        let seen = open(&path, Access::Map, None)?.filter;
        let report = seen.report();
        println!("day {}: {} keys in, {:.4} of the bits set", day + 1, (day + 1) * keys_per_day, report.fill);
        assert!(keys.iter().all(|key| seen.contains(key)), "a key that was put in is denied");
        assert_eq!(report.inserted, Some((day + 1) * keys_per_day));
    }
    println!("bytes of the file: {}", fs::metadata(&path)?.len());
    println!("still the same file: {}", identity(&path)? == file);
    assert_eq!((identity(&path)?, fs::metadata(&path)?.len()), (file, length));

    let seen = open(&path, Access::Map, None)?.filter;
    let (asked, rate) = (500_000, seen.report().fpr_now);
    let wrong = (ABSENT..ABSENT + asked).filter(|&index| seen.contains(&url(index))).count() as u64;
    println!("absent keys: {asked}");
    println!("  admitted: {wrong}, expected {:.1}", rate * asked as f64);
    assert!(agrees(wrong, asked, rate));

    let mut at_once = empty;
    at_once.extend((0..DAYS * keys_per_day).map(url));
    let same = fs::read(&path)? == at_once.to_bytes();
    println!("the same bytes as a filter built at once: {same}");
    assert!(same);
    Ok(())
}
