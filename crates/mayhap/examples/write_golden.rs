//! Writes a golden file for each family that has none yet: `write_golden FOLDER`.
//!
//! Golden files stand for the files that users have. They are added, never changed, so a file that is
//! there is left alone; `tests/golden.rs` holds every later version to its bytes and its answers.
//! `cargo xtask golden` calls this and records the new files.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::num::NonZeroU16;
use std::path::Path;

use mayhap::family::Make;
use mayhap::registry::FAMILIES;
use mayhap::wire::Summing;
use mayhap::{AnyFilter, CountingRule, Family, Hashing, Layout, Secret, Spec, encode};
use mayhap_eval::KeyKind;

/// How many keys are in each file.
const KEYS: u64 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: write_golden FOLDER")?;
    let folder = Path::new(&folder);
    for family in FAMILIES {
        // In families of many sets, three of them.
        write(folder, family.name, family, Spec::new().with_areas(3))?;
    }
    let bloom = &mayhap::filters::bloom::FAMILY;
    let hashed = |hashing| Spec::new().with_hashing(hashing);
    write(folder, "bloom-seeded", bloom, hashed(Hashing::Xxh3 { seed: 0x0123_4567_89ab_cdef }))?;
    write(folder, "bloom-keyed", bloom, hashed(Hashing::Keyed(Secret::new(*b"0123456789abcdef"))))?;
    let blocked = &mayhap::filters::blocked::FAMILY;
    write(folder, "blocked-fastest", blocked, Spec::new().with_layout(Layout::Fastest))?;
    let counting = &mayhap::filters::counting::FAMILY;
    write(folder, "counting-5-bits", counting, Spec::new().with_counter_bits(5))?;
    let (spectral, by) = (&mayhap::filters::spectral::FAMILY, |rule| Spec::new().with_counting_rule(rule));
    write(folder, "spectral-selection", spectral, by(CountingRule::MinimumSelection))?;
    write(folder, "spectral-recurring", spectral, by(CountingRule::RecurringMinimum))?;
    write(folder, "spectral-8-bits", spectral, Spec::new().with_counter_bits(8))?;
    let dleft = &mayhap::filters::dleft::FAMILY;
    write(folder, "dleft-4-bits", dleft, Spec::new().with_counter_bits(4))?;
    let fuse = &mayhap::filters::fuse::FAMILY;
    write(folder, "fuse-compact", fuse, Spec::new().with_layout(Layout::Compact))?;
    let cuckoo = &mayhap::filters::cuckoo::FAMILY;
    write(folder, "cuckoo-compact", cuckoo, Spec::new().with_layout(Layout::Compact))?;
    let spatial = &mayhap::filters::spatial::FAMILY;
    write(folder, "spatial-16-bits", spatial, Spec::new().with_areas(300))?;
    Ok(())
}

/// Inserts keys; into areas that ascend where there are areas, which have names if they are three.
fn insert(filter: &mut dyn AnyFilter, keys: &[&[u8]]) -> Result<(), Box<dyn Error>> {
    let hashing = filter.hashing();
    let Some(label) = filter.as_label_mut() else {
        return Ok(filter.insert_keys(keys, &mut Vec::new())?);
    };
    let areas = label.areas();
    if areas == 3 {
        label.name_areas(&["quiet", "work", "danger"])?;
    }
    for (index, key) in keys.iter().enumerate() {
        let area = 1 + index * usize::from(areas) / keys.len();
        label.insert_labelled(hashing.digest(key), NonZeroU16::try_from(area as u16)?)?;
    }
    Ok(())
}

/// Writes `FOLDER/<name>-v1.mayhap` of what is asked for, at 1%, unless it is there.
fn write(folder: &Path, name: &str, family: &Family, spec: Spec) -> Result<(), Box<dyn Error>> {
    let spec = spec.with_capacity(capacity(family)).with_fpr(0.01);
    let make = match family.make {
        Make::Empty(make) => make,
        Make::FromDigests(make) => {
            let empty = make(&spec, &Vec::new(), 1)?;
            let halves: Vec<u64> =
                (0..KEYS).map(|index| spec.hashing().digest(&key(&*empty, index)).a).collect();
            return write_file(folder, name, &*make(&spec, &halves, 1)?);
        }
        _ => return Err(format!("{}: made in a way that this program does not know", family.name).into()),
    };
    let mut filter = make(&spec)?;
    let rounds = match name {
        // Counted up to 40 times in turns, so that some counters take more than 4 bits.
        _ if family.name == "spectral" => 40,
        // Up to 3 times.
        "dleft-4-bits" => 3,
        _ => 1,
    };
    let indexes = (0..rounds).flat_map(|round| (0..KEYS).filter(move |index| index % rounds >= round));
    let keys: Vec<Vec<u8>> = indexes.map(|index| key(&*filter, index)).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    insert(&mut *filter, &keys)?;
    if family.name == "roaring" {
        // A container of the dense kind as well, in another 32-bit range.
        let dense: Vec<[u8; 8]> = (0..5000u64).map(|low| ((7 << 32) + 3 * low).to_le_bytes()).collect();
        let dense: Vec<&[u8]> = dense.iter().map(<[u8; 8]>::as_slice).collect();
        filter.insert_keys(&dense, &mut Vec::new())?;
    }
    write_file(folder, name, &*filter)
}

fn write_file(folder: &Path, name: &str, filter: &dyn AnyFilter) -> Result<(), Box<dyn Error>> {
    let path = folder.join(format!("{name}-v1.mayhap"));
    match OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(mut file) => {
            file.write_all(&encode(filter, Summing::Payload).to_vec())?;
            println!("wrote {}", path.display());
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
    }
}

fn capacity(family: &Family) -> u64 {
    // A bitmap needs a place for each integer. The others are full with their keys.
    if family.name == "bitmap" { 2000 } else { KEYS }
}

/// The keys of `tests/golden.rs`: byte strings of all kinds, or integers.
fn key(filter: &dyn AnyFilter, index: u64) -> Vec<u8> {
    match filter.hashing() {
        Hashing::Integer if filter.family().name == "bitmap" => (index * 7).to_le_bytes().to_vec(),
        Hashing::Integer => (index * index * 1_000_003).to_le_bytes().to_vec(),
        _ => KeyKind::ALL[(index % 5) as usize].key(7, index),
    }
}
