//! Writes a golden file for each family that has none yet: `write_golden FOLDER`.
//!
//! Golden files stand for the files that users have. They are added, never changed, so a file that is
//! there is left alone; `tests/it/golden.rs` holds every later version to its bytes and its answers.
//! `cargo xtask golden` calls this and records the new files.

#[path = "../tests/foreign/containers.rs"]
mod containers;

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::num::NonZeroU16;
use std::path::Path;

use mayhap::{
    AnyFilter, CountingRule, Digest, FAMILIES, Family, Hashing, Knob, Layout, Make, Secret, Spec, Summing,
    encode, except,
};
use mayhap_eval::{ABSENT, KeyKind};

/// How many keys are in each file.
const KEYS: u64 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: write_golden FOLDER")?;
    let folder = Path::new(&folder);
    for family in FAMILIES {
        // In families of many sets, three of them.
        let spec = if family.takes(Knob::Areas) { Spec::new().with_areas(3) } else { Spec::new() };
        write(folder, family.name, family, spec)?;
    }
    let bloom = mayhap::Bloom::FAMILY;
    let hashed = |hashing| Spec::new().with_hashing(hashing);
    write(folder, "bloom-seeded", bloom, hashed(Hashing::Xxh3 { seed: 0x0123_4567_89ab_cdef }))?;
    write(folder, "bloom-keyed", bloom, hashed(Hashing::Keyed(Secret::new(*b"0123456789abcdef"))))?;
    let blocked = mayhap::Blocked::FAMILY;
    write(folder, "blocked-fastest", blocked, Spec::new().with_layout(Layout::Fastest))?;
    let counting = mayhap::Counting::FAMILY;
    write(folder, "counting-5-bits", counting, Spec::new().with_counter_bits(5))?;
    let (spectral, by) = (mayhap::Spectral::FAMILY, |rule| Spec::new().with_counting_rule(rule));
    write(folder, "spectral-selection", spectral, by(CountingRule::MinimumSelection))?;
    write(folder, "spectral-recurring", spectral, by(CountingRule::RecurringMinimum))?;
    write(folder, "spectral-8-bits", spectral, Spec::new().with_counter_bits(8))?;
    let dleft = mayhap::Dleft::FAMILY;
    write(folder, "dleft-4-bits", dleft, Spec::new().with_counter_bits(4))?;
    let counters = Spec::new().with_counter_bits(4);
    write(folder, "shifting-counters", mayhap::Shifting::FAMILY, counters)?;
    write(folder, "shifting-2-shifts", mayhap::Shifting::FAMILY, Spec::new().with_shifts(2))?;
    let association = mayhap::ShiftingAssociation::FAMILY;
    write(folder, "shifting-association-counters", association, counters)?;
    let multiplicity = mayhap::ShiftingMultiplicity::FAMILY;
    write(folder, "shifting-multiplicity-counters", multiplicity, counters)?;
    let fuse = mayhap::Fuse::FAMILY;
    write(folder, "fuse-compact", fuse, Spec::new().with_layout(Layout::Compact))?;
    // As many keys as make several layers.
    let ribbon = mayhap::Ribbon::FAMILY;
    write(folder, "ribbon-layers", ribbon, Spec::new())?;
    write(folder, "ribbon-compact", ribbon, Spec::new().with_layout(Layout::Compact))?;
    let cuckoo = mayhap::Cuckoo::FAMILY;
    write(folder, "cuckoo-compact", cuckoo, Spec::new().with_layout(Layout::Compact))?;
    let expanding = mayhap::Expanding::FAMILY;
    write(folder, "expanding-grown", expanding, Spec::new().with_doublings(3))?;
    write(folder, "table-grown", mayhap::Table::FAMILY, Spec::new().with_doublings(30))?;
    write(folder, "scalable-grown", mayhap::Scalable::FAMILY, Spec::new())?;
    // Those without "squares" are of the rule that filters had before.
    write(folder, "windowed-squares", mayhap::Windowed::FAMILY, Spec::new())?;
    write(folder, "windowed-squares-aged", mayhap::Windowed::FAMILY, Spec::new())?;
    let spatial = mayhap::Spatial::FAMILY;
    write(folder, "spatial-16-bits", spatial, Spec::new().with_areas(300))?;
    write(folder, "bloom-exceptions", bloom, Spec::new())?;
    for (name, filter) in containers::containers() {
        put(folder, &format!("foreign-{name}"), &*filter)?;
    }
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
    let spec = spec.with_capacity(capacity(name)).with_fpr(0.01);
    let digest = |index: u64| spec.hashing().digest(&KeyKind::ALL[(index % 5) as usize].key(7, index));
    let absent =
        |index: u64| spec.hashing().digest(&KeyKind::ALL[(index % 5) as usize].key(7, ABSENT + index));
    let filter = match family.make {
        Make::Empty(make) => filled(make(&spec)?, name)?,
        // Each count from 1 to 40.
        Make::Counted(make) => make(&spec, &mut (0..KEYS).map(|index| (digest(index), index % 40 + 1)))?,
        Make::FromDigests(make) => {
            let halves: Vec<u64> = (0..capacity(name)).map(|index| digest(index).a).collect();
            make(&spec, &halves, 1)?
        }
        // And ten times as many that are not in.
        Make::Within(make) => {
            let set: Vec<u64> = (0..KEYS).map(|index| digest(index).a).collect();
            let others: Vec<u64> = (0..10 * KEYS).map(|index| digest(1_000_000 + index).a).collect();
            make(&spec, &set, &others, 1)?
        }
        // 80 in the first only, 40 in both, 80 in the second only.
        Make::OfTwo(make) => {
            let digests: Vec<Digest> = (0..KEYS).map(digest).collect();
            make(&spec, &digests[..120], &digests[80..])?
        }
        _ => return Err(format!("{}: made in a way that this program does not know", family.name).into()),
    };
    let filter = if name == "bloom-exceptions" {
        // What it would admit of the first 5000 absent keys, and some that it would not.
        let keys: Vec<Digest> = (0..5000).map(absent).collect();
        let wrong: Vec<Digest> = keys.iter().copied().filter(|&key| filter.contains_digest(key)).collect();
        except(filter, wrong.into_iter().chain(keys.into_iter().take(10)))
    } else {
        filter
    };
    put(folder, name, &*filter)
}

/// Writes the file of a filter, unless it is there.
fn put(folder: &Path, name: &str, filter: &dyn AnyFilter) -> Result<(), Box<dyn Error>> {
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

/// Inserts the keys.
fn filled(mut filter: Box<dyn AnyFilter>, name: &str) -> Result<Box<dyn AnyFilter>, Box<dyn Error>> {
    let family = filter.family();
    let rounds = match name {
        // Counted up to 40 times in turns, so that some counters take more than 4 bits.
        _ if family.name == "spectral" => 40,
        // Up to 3 times.
        "dleft-4-bits" => 3,
        _ => 1,
    };
    let indexes = (0..rounds).flat_map(|round| (0..KEYS).filter(move |index| index % rounds >= round));
    // Four times the same in a window of so many, which goes round.
    let different = if name == "windowed-squares-aged" { KEYS / 4 } else { KEYS };
    let keys: Vec<Vec<u8>> = indexes.map(|index| key(&*filter, index % different)).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    insert(&mut *filter, &keys)?;
    if name == "table-grown" {
        // As many as make it grow, and then 60 that belong to one line, where there is no room for all of them.
        let grow = (KEYS..1500).map(|index| key(&*filter, index));
        let crowd = (1500..).map(|index| key(&*filter, index));
        let crowd = crowd.filter(|key| Hashing::default().digest(key).a >> 56 == 0x77).take(60);
        let keys: Vec<Vec<u8>> = grow.chain(crowd).collect();
        insert(&mut *filter, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    }
    if family.name == "roaring" {
        // A container of the dense kind as well, in another 32-bit range.
        let dense: Vec<[u8; 8]> = (0..5000u64).map(|low| ((7 << 32) + 3 * low).to_le_bytes()).collect();
        let dense: Vec<&[u8]> = dense.iter().map(<[u8; 8]>::as_slice).collect();
        filter.insert_keys(&dense, &mut Vec::new())?;
    }
    Ok(filter)
}

fn capacity(name: &str) -> u64 {
    match name {
        // A bitmap needs a place for each integer.
        "bitmap" => 2000,
        // Grows to four layers.
        "scalable-grown" => 20,
        // Doubles twice, and holds fingerprints of several lengths.
        "expanding-grown" => 20,
        "windowed-squares-aged" => KEYS / 4,
        "ribbon-layers" | "ribbon-compact" => 5000,
        // The others are full with their keys.
        _ => KEYS,
    }
}

/// The keys of `tests/it/golden.rs`: byte strings of all kinds, or integers.
fn key(filter: &dyn AnyFilter, index: u64) -> Vec<u8> {
    match filter.hashing() {
        Hashing::Integer if filter.family().name == "bitmap" => (index * 7).to_le_bytes().to_vec(),
        Hashing::Integer => (index * index * 1_000_003).to_le_bytes().to_vec(),
        _ => KeyKind::ALL[(index % 5) as usize].key(7, index),
    }
}
