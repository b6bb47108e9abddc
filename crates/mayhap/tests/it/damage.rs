//! Damage is never hidden under a new checksum, and whatever a loader accepts can be used, written and read again.
#![cfg(feature = "std")]

use std::collections::{BTreeMap, BTreeSet};

use mayhap::interop::redisbloom::{Growth, RedisBloom};
use mayhap::wire::{Header, PAGE};
use mayhap::{
    AnyFilter, Combine, DecodeError, Error, FAMILIES, FoldError, Full, Limit, Mismatch, Scalable, Summing,
    combine, encode, open,
};
use mayhap_eval::Random;

use crate::crafted::{self, PARAMS, open_by_header, with};

/// All golden files but the keyed one, which needs its secret; `plain` are those without sections, which the tests here can
/// seal again.
fn golden(plain: bool) -> BTreeMap<String, Vec<u8>> {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).unwrap();
    let mut files = BTreeMap::new();
    for entry in folder {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "mayhap") {
            let bytes = std::fs::read(&path).unwrap();
            let header = Header::decode(&bytes, bytes.len() as u64).unwrap();
            if header.hashing.key_id == 0
                && (!plain || header.sections.is_empty())
                && header.payload.offset == PAGE as u64
            {
                files.insert(path.file_stem().unwrap().to_str().unwrap().to_string(), bytes);
            }
        }
    }
    files
}

fn bytes_of(filter: &dyn AnyFilter) -> Vec<u8> {
    encode(filter, Summing::Payload).to_vec()
}

/// F2, in the library: a file that was opened by its header was merged, folded and written under a new checksum.
#[test]
fn what_was_not_verified_is_verified_before_it_is_combined_or_written() {
    let (mut families, mut combined) = (BTreeSet::new(), 0);
    for (name, file) in golden(false) {
        for share in [0.3, 0.7] {
            let mut damaged = file.clone();
            let payload = Header::decode(&file, file.len() as u64).unwrap().payload.length;
            let place = PAGE + (payload as f64 * share) as usize;
            damaged[place] ^= 0x10;
            // Some see by the structure that it is damaged, and some read all of it in any case.
            let Ok(mut filter) = open_by_header(&damaged) else { continue };
            families.insert(filter.family().name);
            let is_checksum = |error| matches!(error, DecodeError::Checksum { field: "payload", .. });
            assert!(mayhap::verify(&*filter).is_err_and(is_checksum), "{name}");
            let refused = |bytes: Vec<u8>| open(bytes.into(), None).err().is_some_and(is_checksum);
            assert!(refused(bytes_of(&*filter)), "{name}: written under a good checksum");

            let mut whole = open(file.clone().into(), None).unwrap();
            mayhap::verify(&*whole).unwrap();
            for how in [Combine::Union, Combine::Intersection, Combine::Difference] {
                match combine(&mut *whole, &*filter, how) {
                    Err(
                        Error::Unsupported { .. }
                        | Error::UnsupportedByRule { .. }
                        | Error::UnsupportedWithoutCounters { .. },
                    ) => continue,
                    Err(Error::Mismatch(error)) => {
                        assert_eq!(error, Mismatch::Damaged { theirs: true }, "{name}")
                    }
                    other => panic!("{name}, {how:?}: {other:?}"),
                }
                let error = combine(&mut *filter, &*whole, how).unwrap_err();
                assert_eq!(error, Error::Mismatch(Mismatch::Damaged { theirs: false }), "{name}");
                combined += 1;
            }
            assert!(bytes_of(&*whole) == file, "{name}: a merge that failed has changed it");
            if let Some(fold) = filter.as_fold() {
                assert!(fold.fold_to(0.9).is_err_and(|error| error == FoldError::Damaged), "{name}");
            }
            // The words are copied by the first insert, and remember all the same.
            let keys: Vec<Vec<u8>> = (0..100u64).map(|key| key.to_le_bytes().to_vec()).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            match filter.insert_keys(&keys, &mut Vec::new()) {
                Ok(()) | Err(Error::Unsupported { .. } | Error::UnsupportedWithoutCounters { .. }) => {}
                Err(Error::Full(Full { limit: Limit::Damaged | Limit::Slots { .. }, .. })) => {}
                Err(error) => panic!("{name}: {error}"),
            }
            assert!(refused(bytes_of(&*filter)), "{name}: written under a good checksum after an insert");
        }
    }
    // All but those that read everything when they are opened.
    let all: BTreeSet<_> = FAMILIES.iter().map(|family| family.name).collect();
    let left: Vec<_> = all.difference(&families).copied().collect();
    assert_eq!(left, ["roaring"]);
    assert!(combined >= 30, "{combined}");
}

/// What is whole passes, also when it was opened by its header.
#[test]
fn what_was_not_verified_and_is_whole_is_combined_and_written() {
    for (name, file) in golden(false) {
        let (mut one, other) = (open_by_header(&file).unwrap(), open_by_header(&file).unwrap());
        assert!(bytes_of(&*one) == file, "{name}");
        mayhap::verify(&*one).unwrap();
        let merged = combine(&mut *one, &*other, Combine::Union);
        assert!(!matches!(merged, Err(Error::Mismatch(Mismatch::Damaged { .. }))), "{name}");
        open(bytes_of(&*one).into(), None).unwrap();
    }
}

/// The values that a field is given.
fn values() -> Vec<[u8; 8]> {
    let mut values: Vec<u64> = vec![0, 1, 2, 3, 63, 64, 65, 255, 1000];
    values.extend([16, 31, 32, 40, 41, 47, 48, 52, 62, 63].map(|bit| 1 << bit));
    values.extend([u64::MAX, (1 << 48) - 1, u64::MAX >> 1]);
    values.extend(
        [0.0, 1e-300, 1e-9, 0.01, 0.5, 0.999, 1.0, 1.5, f64::NAN, f64::INFINITY, -1.0].map(f64::to_bits),
    );
    values.into_iter().map(u64::to_le_bytes).collect()
}

/// Does everything that there is to be done with a filter and another of its kind, and reads each result again.
fn use_all(name: &str, file: &[u8], pristine: &[u8]) {
    let opened = || open(file.to_vec().into(), None).unwrap();
    let again = |filter: &dyn AnyFilter, what: &str| {
        if let Err(error) = open(bytes_of(filter).into(), None) {
            panic!("{name}: what {what} gave is written and cannot be read: {error}");
        }
    };
    again(&*opened(), "loading");
    let keys: Vec<Vec<u8>> = (0..40u64).map(|key| key.to_le_bytes().to_vec()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut filter = opened();
    let _ = filter.insert_keys(&keys, &mut Vec::new());
    again(&*filter, "insert");
    assert!(filter.report().bits <= 17 << 23, "{name}: {} bits after an insert", filter.report().bits);
    let hashing = filter.hashing();
    if let Some(remove) = filter.as_remove() {
        keys.iter().for_each(|key| {
            remove.remove_digest(hashing.digest(key));
        });
    }
    again(&*filter, "remove");
    if let Some(label) = filter.as_label_mut() {
        let area = std::num::NonZeroU16::MIN;
        keys.iter().for_each(|key| {
            let _ = label.insert_labelled(hashing.digest(key), area);
        });
    }
    again(&*filter, "insert with a label");
    for how in [Combine::Union, Combine::Intersection, Combine::Difference] {
        for (which, first, second) in [
            ("itself", file, file),
            ("the pristine one", file, pristine),
            ("the crafted one", pristine, file),
        ] {
            let mut ours = open(first.to_vec().into(), None).unwrap();
            let theirs = open(second.to_vec().into(), None).unwrap();
            if combine(&mut *ours, &*theirs, how).is_ok() {
                again(&*ours, &format!("{how:?} with {which}"));
                let _ = ours.insert_keys(&keys, &mut Vec::new());
                again(&*ours, &format!("an insert after {how:?} with {which}"));
            }
        }
    }
    let filter = opened();
    for fpr in [0.01, 0.5, 0.99] {
        if let Some(Ok(folded)) = filter.as_fold().map(|fold| fold.fold_to(fpr)) {
            again(&*folded, "fold");
        }
    }
}

/// F5, for every family: each field of the header is given each of many values, and whatever is accepted is used.
#[test]
fn nothing_that_is_accepted_makes_an_operation_write_what_cannot_be_read() {
    let (mut accepted, mut tried) = (BTreeMap::new(), 0);
    for (name, file) in golden(true) {
        // Large files take long and have no other fields.
        if file.len() > 64 << 10 {
            continue;
        }
        let header = Header::decode(&file, file.len() as u64).unwrap();
        let end = PARAMS + header.params.len();
        for at in (80..end).step_by(4) {
            for value in values() {
                for width in [4, 8] {
                    if at + width > end || (width == 4 && value[4..] != [0; 4]) {
                        continue;
                    }
                    let crafted = with(&file, at, &value[..width]);
                    tried += 1;
                    if crafted != file && open(crafted.clone().into(), None).is_ok() {
                        *accepted.entry(name.clone()).or_insert(0) += 1;
                        use_all(&format!("{name}, {value:?} at {at}"), &crafted, &file);
                    }
                }
            }
        }
    }
    assert!(tried > 10_000 && accepted.len() > 30, "{tried} tried, accepted {accepted:?}");
}

/// The same with several fields at once, some of them copied from others: what a field may be depends on its neighbours.
#[test]
fn no_fields_that_agree_make_an_operation_write_what_cannot_be_read() {
    let (mut random, values, mut accepted) = (Random::new(5), values(), 0);
    for (name, file) in golden(true) {
        if file.len() > 16 << 10 {
            continue;
        }
        let header = Header::decode(&file, file.len() as u64).unwrap();
        let fields = (16 + header.params.len() as u64) / 8;
        for round in 0..300 {
            let mut crafted = file.clone();
            for _ in 0..2 + round % 2 {
                let at = 80 + 8 * random.below(fields) as usize;
                let value = match random.below(3) {
                    0 => {
                        let from = 80 + 8 * random.below(fields) as usize;
                        crafted[from..from + 8].try_into().unwrap()
                    }
                    _ => values[random.below(values.len() as u64) as usize],
                };
                crafted = with(&crafted, at, &value);
            }
            if open(crafted.clone().into(), None).is_ok() {
                accepted += 1;
                use_all(&format!("{name}, round {round}"), &crafted, &file);
            }
        }
    }
    assert!(accepted > 500, "{accepted}");
}

/// F5: the keys of a layer became more than its capacity, and the file that was written could not be opened.
#[test]
fn a_scalable_merge_keeps_the_keys_of_a_layer_below_its_capacity() {
    let mut ours = Scalable::new(1000, 0.01).unwrap();
    (0..100u64).for_each(|key| {
        ours.insert(key).unwrap();
    });
    let file = ours.to_bytes();
    // A layer has its number and probes, its bits, its capacity and its keys.
    let layer = PARAMS + 48;
    let crafted = with(&file, layer + 16, &(1u64 << 48).to_le_bytes());
    let crafted = with(&crafted, layer + 24, &(1u64 << 41).to_le_bytes());
    let theirs = Scalable::from_bytes(&crafted).unwrap();
    ours.merge(&theirs).unwrap();
    let merged = Scalable::from_bytes(&ours.to_bytes()).unwrap();
    assert!(merged.layers().iter().all(|layer| layer.keys <= layer.capacity));
    let mut other = Scalable::from_bytes(&crafted).unwrap();
    other.merge(&Scalable::from_bytes(&file).unwrap()).unwrap();
    Scalable::from_bytes(&other.to_bytes()).unwrap();
}

/// F11: one insert into a file of 4280 bytes made one of 968 MB.
#[test]
fn a_small_crafted_scalable_does_not_grow_by_more_than_it_justifies() {
    let mut filter = Scalable::new(100, 0.01).unwrap();
    filter.insert(1u64).unwrap();
    let file = filter.to_bytes();
    assert!(file.len() < 4400);
    let layer = PARAMS + 48;
    for (first, growth, number) in
        [(1u64 << 29, 2u32, 0u32), (100, 2, 22), (100, 32_768, 1), (1 << 40, 32_768, 1000)]
    {
        let full = with(&file, PARAMS + 8, &first.to_le_bytes());
        let full = with(&full, PARAMS + 40, &growth.to_le_bytes());
        let full = with(&full, layer, &number.to_le_bytes());
        for capacity in [1u64, 1 << 40] {
            let full = with(&full, layer + 16, &capacity.to_le_bytes());
            let full = with(&full, layer + 24, &capacity.to_le_bytes());
            let mut filter = Scalable::from_bytes(&full).unwrap();
            (0..50u64).for_each(|key| {
                filter.insert(key).unwrap();
            });
            // 16 MiB, whatever is claimed.
            assert!(filter.bits() / 8 <= 17 << 20, "{first} {growth} {number}: {} bytes", filter.bits() / 8);
            assert!((0..50u64).all(|key| filter.contains(key)));
            Scalable::from_bytes(&filter.to_bytes()).unwrap();
        }
    }
}

/// What was not crafted grows as it did: by its growth, layer by layer.
#[test]
fn a_scalable_filter_grows_by_its_growth() {
    for growth in [2, 4, 16] {
        let spec = mayhap::Spec::sized(1000, 0.01).with_growth(growth);
        let mut filter = Scalable::from_spec(&spec).unwrap();
        filter.insert_all(&(0..100_000u64).collect::<Vec<_>>()).unwrap();
        let capacities: Vec<u64> = filter.layers().iter().map(|layer| layer.capacity).collect();
        let expected: Vec<u64> =
            (0..capacities.len()).map(|n| 1000 * u64::from(growth).pow(n as u32)).collect();
        assert!(capacities == expected && capacities.len() > 2, "{capacities:?}");
    }
}

/// F11: a dump of 169 bytes took 539 MB with its next key.
#[test]
fn a_small_crafted_redisbloom_dump_does_not_grow_by_more_than_it_justifies() {
    let small = RedisBloom::reserve(10, 0.01, Growth::Times(2)).unwrap();
    let frame = encode(&small, Summing::Payload).to_vec();
    let payload = crafted::payload(&frame).to_vec();
    // 16 bytes lie before the header of the filter, its own fields take 20, and the capacity of a link is its seventh field.
    let place = 16 + 20 + 44;
    assert_eq!(payload[place..place + 8], 10u64.to_le_bytes());
    for capacity in [1u64 << 20, 1 << 28, 1 << 33] {
        let mut crafted = payload.clone();
        crafted[place..place + 8].copy_from_slice(&capacity.to_le_bytes());
        // As many keys as its capacity, in the link and all together.
        crafted[place - 28..place - 20].copy_from_slice(&capacity.to_le_bytes());
        crafted[16..24].copy_from_slice(&capacity.to_le_bytes());
        let file = crafted::with_payload(&frame, &crafted);
        let mut filter = open(file.into(), None).unwrap();
        let limit = filter.insert_keys(&[b"key"], &mut Vec::new()).unwrap_err();
        assert!(matches!(limit, Error::Full(Full { limit: Limit::Growth { .. }, .. })), "{limit}");
    }
    // One that is what it says grows as Redis makes it grow.
    for (capacity, fpr, growth) in
        [(1u64, 0.9, 1), (10, 0.01, 2), (100, 0.4999, 32_768), (3, 1e-9, 4), (1000, 0.25, 1)]
    {
        let mut filter = RedisBloom::reserve(capacity, fpr, Growth::Times(growth)).unwrap();
        for key in 0..5 * capacity + 20 {
            filter.insert(key.to_le_bytes()).unwrap();
        }
        assert!(filter.layers().len() > 1);
    }
}

/// F11: 1 MB of gzip became a filter of 1 GiB.
#[test]
fn a_filter_in_gzip_is_bounded_as_a_plain_one() {
    let format = mayhap::interop::format("dcso").unwrap();
    let read = |bytes: Vec<u8>| format.read(bytes.into(), &mayhap::interop::Reading::default());
    let of = |capacity: u64| {
        let filter = format.make(&mayhap::interop::Making::new(capacity, 0.01)).unwrap();
        format.write(&*filter).unwrap()
    };
    let gzip = |bytes: &[u8], level| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    // An empty filter of 12 MB is read in any case, and one of 60 MB when it is not packed further than 16 times.
    let (small, large) = (of(10_000_000), of(50_000_000));
    assert!(read(gzip(&small, 6)).is_ok());
    let bomb = gzip(&large, 6);
    assert!(bomb.len() < 100_000);
    assert!(read(bomb.clone()).err().unwrap().to_string().contains("unpack it first"));
    assert!(mayhap::interop::recognise(&bomb).is_err());
    assert!(read(large.clone()).is_ok());
    // What we write is read again.
    let packed = mayhap::interop::dcso::gzip(&large);
    assert_eq!(format.write(&*read(packed).unwrap()).unwrap(), large);
}
