//! Filters of other programs in files of ours: what earlier versions wrote is what this one writes and reads.

use std::path::Path;

use mayhap::wire::{Frame, Verify};
use mayhap::{DecodeError, FAMILIES, Summing, encode, open};

use crate::containers;

fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::fs::read(folder.join(format!("foreign-{name}-v1.mayhap"))).expect(name)
}

#[test]
fn filters_of_other_programs_give_the_golden_files_and_come_back_from_them() {
    for (name, filter) in containers::containers() {
        let file = golden(name);
        assert_eq!(encode(&*filter, Summing::Payload).to_vec(), file, "{name}");
        let back = open(file.clone().into(), None).expect(name);
        assert_eq!((back.program(), back.hashing()), (filter.program(), filter.hashing()), "{name}");
        assert_eq!(encode(&*back, Summing::Payload).to_vec(), file, "{name}");
        let keys: Vec<[u8; 8]> = (0..2000u64).map(u64::to_le_bytes).collect();
        assert!(keys.iter().all(|key| back.contains(key) == filter.contains(key)), "{name}");
    }
}

/// A file with this byte of its header changed, and the checksum of the header renewed.
fn with_header_byte(file: &[u8], place: usize, value: u8) -> Vec<u8> {
    let mut file = file.to_vec();
    file[place] = value;
    let length = u32::from_le_bytes(file[40..44].try_into().unwrap()) as usize;
    let sum = mayhap::wire::checksum(&file[..length - 8]);
    file[length - 8..length].copy_from_slice(&sum.to_le_bytes());
    file
}

/// Every hash function, probing rule and family in place of its own: an error, or a filter that does not panic.
#[test]
fn headers_that_do_not_belong_together_are_refused() {
    let (hashing, probing, family) = (12, 14, 6);
    for (name, _) in containers::containers() {
        let file = golden(name);
        for (place, values) in [(hashing, 0..64), (probing, 0..64), (family, 0..24)] {
            for value in values.filter(|&value| value != file[place]) {
                let Ok(filter) = open(with_header_byte(&file, place, value).into(), None) else { continue };
                // What else it can be: the same bits under another rule that has the same parameters.
                assert!(
                    place != family || name == "row-groups",
                    "{name}: family {value} instead of {}",
                    file[place]
                );
                let _ = (filter.contains(b"key"), filter.report());
            }
        }
    }
}

#[test]
fn families_of_ours_refuse_the_hash_functions_of_others() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for family in FAMILIES {
        let file = std::fs::read(folder.join(format!("{}-v1.mayhap", family.name))).expect(family.name);
        for scheme in 32..=45 {
            let error = open(with_header_byte(&file, 12, scheme).into(), None).err();
            assert_eq!(error, Some(DecodeError::Hashing { scheme, version: 1 }), "{}", family.name);
        }
    }
}

/// What is in the parameters of a foreign filter is looked at before it is believed.
#[test]
fn crafted_parameters_never_panic_nor_allocate_the_world() {
    for (name, _) in containers::containers() {
        let file = golden(name);
        let frame = Frame::parse(&file.clone().into(), Verify::All).expect(name);
        let params = frame.header.params.len();
        for place in 96..96 + params {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                if let Ok(mut filter) = open(with_header_byte(&file, place, value).into(), None) {
                    let _ = (filter.contains(b"key"), filter.report(), filter.details());
                    let _ = filter.insert_keys(&[b"key"], &mut Vec::new());
                    let _ = encode(&*filter, Summing::Payload).to_vec();
                }
            }
        }
    }
}

/// The modulus of Guava and Spark is the number of all bits: a file of ours with another one would become a file of theirs
/// with other answers.
#[test]
fn a_modulus_that_a_programs_own_file_cannot_have_is_refused() {
    for (name, bits) in [("guava-64", 63), ("guava-32", 3775), ("spark-1", 5759), ("rbloom", 4361)] {
        let mut file = golden(name);
        file[96..104].copy_from_slice(&u64::to_le_bytes(bits));
        let low = file[96];
        let error = open(with_header_byte(&file, 96, low).into(), None).err();
        assert_eq!(error, Some(DecodeError::Value { field: "bits", found: bits }), "{name}");
    }
}

/// What a program's own file could not say, ours does not either.
#[test]
fn parameters_that_a_programs_own_file_cannot_have_are_refused() {
    // Go: the length of the bit set; DCSO: the version in the flags; Guava: the probes.
    for (name, place, value, field) in
        [("go", 128, 0, "length of the bit set"), ("dcso", 136, 0, "version"), ("guava-64", 105, 4, "probes")]
    {
        let mut file = golden(name);
        if name == "go" {
            file[128..136].fill(0);
        }
        let error = open(with_header_byte(&file, place, value).into(), None).err();
        let is_refused = matches!(error, Some(DecodeError::Value { field: found, .. }) if found == field);
        assert!(is_refused, "{name}: {error:?}");
    }
}

/// Exceptions are told from other keys by digests, which the hash functions of others are too weak for.
#[test]
fn filters_of_other_programs_have_no_exceptions() {
    for (name, filter) in containers::containers() {
        let hashing = filter.hashing();
        let filter = mayhap::except(filter, [hashing.digest(b"key")]);
        assert!(filter.exceptions().is_none(), "{name}");
    }
    let section = [7u8; 16];
    for (name, filter) in containers::containers() {
        let file = mayhap::encode_with(&*filter, Summing::Payload, &[(2, &section)]).to_vec();
        assert!(open(file.into(), None).is_err(), "{name}");
    }
}
