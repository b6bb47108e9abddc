//! Opening files: sound ones answer, damaged ones are refused, whatever is wrong with them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use mayhap::wire::PAGE;
use mayhap::{AnyFilter, Bloom, DecodeError, Exact, Hashing, Spec, Summing, encode};
use mayhap_store::{Access, Check, Checked, StoreError, open, open_checked, open_sealed, write};

const BOTH: [Access; 2] = [Access::Map, Access::Read];

fn key(i: u64) -> Vec<u8> {
    format!("key-{i}").into_bytes()
}

fn bloom() -> Bloom {
    let mut bloom = Bloom::new(1000, 0.01).unwrap();
    bloom.extend((0..1000).map(key));
    bloom
}

fn exact() -> Exact {
    let mut exact = Exact::default();
    for i in 0..100 {
        exact.insert(key(i)).unwrap();
    }
    exact
}

/// A filter and the keys that it holds.
type Filled = (Box<dyn AnyFilter>, Vec<Vec<u8>>);

/// One of each family.
fn filters() -> Vec<Filled> {
    let mut all: Vec<Filled> = vec![
        (Box::new(bloom()), (0..1000).map(key).collect()),
        (Box::new(exact()), (0..100).map(key).collect()),
    ];
    for name in ["bitmap", "roaring"] {
        let mayhap::Make::Empty(make) = mayhap::family(name).unwrap().make else { continue };
        let mut filter = make(&Spec::new().with_capacity(1000)).unwrap();
        let keys: Vec<Vec<u8>> = (0..1000u64).step_by(7).map(|i| i.to_le_bytes().to_vec()).collect();
        let keys_as_slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        filter.insert_keys(&keys_as_slices, &mut Vec::new()).unwrap();
        all.push((filter, keys));
    }
    all
}

fn file_of(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("filter");
    fs::write(&path, bytes).unwrap();
    path
}

fn refused(path: &Path, access: Access, what: &str) -> DecodeError {
    match open(path, access, None) {
        Err(StoreError::Decode { path: named, source }) => {
            assert_eq!(named, path, "{what}");
            source
        }
        other => panic!("{what}, {access:?}: {other:?}"),
    }
}

#[test]
fn every_family_answers_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter");
    for (filter, keys) in filters() {
        write(&path, &*filter).unwrap();
        for access in BOTH {
            let opened = open(&path, access, None).unwrap();
            assert_eq!((opened.filter.family(), opened.checked), (filter.family(), Checked::All));
            assert!(opened.is_verified() && !opened.lacks_checksum());
            assert!(opened.metadata.is_none());
            assert!(keys.iter().all(|key| opened.filter.contains(key)));
            assert_eq!(opened.filter.report(), filter.report());
        }
    }
}

#[test]
fn a_file_cut_at_any_byte_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (filter, _) in filters() {
        let bytes = encode(&*filter, Summing::Payload).to_vec();
        let path = file_of(folder.path(), &bytes);
        let file = File::options().write(true).open(&path).unwrap();
        for length in (0..bytes.len()).rev() {
            file.set_len(length as u64).unwrap();
            for access in BOTH {
                refused(&path, access, &format!("{} cut to {length}", filter.family().name));
            }
        }
    }
}

#[test]
fn a_file_with_bytes_behind_its_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = bloom().to_bytes();
    for extra in [1, PAGE] {
        bytes.resize(bytes.len() + extra, 0);
        let path = file_of(folder.path(), &bytes);
        for access in BOTH {
            assert!(matches!(refused(&path, access, "longer"), DecodeError::Trailing { .. }));
        }
    }
}

#[cfg(unix)]
#[test]
fn every_flipped_bit_of_the_header_is_refused() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().unwrap();
    for (filter, _) in filters() {
        let bytes = encode(&*filter, Summing::Payload).to_vec();
        let path = file_of(folder.path(), &bytes);
        let file = File::options().write(true).open(&path).unwrap();
        for at in 0..PAGE {
            for bit in 0..8 {
                file.write_all_at(&[bytes[at] ^ 1 << bit], at as u64).unwrap();
                for access in BOTH {
                    refused(&path, access, &format!("{} with bit {bit} of byte {at}", filter.family().name));
                }
            }
            file.write_all_at(&bytes[at..=at], at as u64).unwrap();
        }
        assert!(open(&path, Access::Read, None).is_ok(), "it is whole again");
    }
}

/// Who asks for the header only believes it. What the filter then answers may be wrong, but it answers.
#[cfg(unix)]
#[test]
fn a_flipped_bit_of_the_payload_is_refused_and_harmless_to_those_who_look_at_the_header() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().unwrap();
    for (filter, keys) in filters() {
        let bytes = encode(&*filter, Summing::Payload).to_vec();
        let path = file_of(folder.path(), &bytes);
        let file = File::options().write(true).open(&path).unwrap();
        for at in (PAGE..bytes.len()).step_by(3) {
            let bit = at % 8;
            file.write_all_at(&[bytes[at] ^ 1 << bit], at as u64).unwrap();
            let what = format!("{} with bit {bit} of byte {at}", filter.family().name);
            for access in BOTH {
                assert!(matches!(
                    refused(&path, access, &what),
                    DecodeError::Checksum { field: "payload", .. }
                ));
            }
            if let Ok(opened) = open_checked(&path, Access::Map, Check::Header, None) {
                let _ = keys.iter().filter(|key| opened.filter.contains(key)).count();
                let _ = opened.filter.report();
            }
            file.write_all_at(&bytes[at..=at], at as u64).unwrap();
        }
    }
}

#[test]
fn what_is_no_file_or_no_filter_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for access in BOTH {
        let absent = folder.path().join("absent");
        let text = crate::chain(&open(&absent, access, None).unwrap_err());
        assert!(text.starts_with(&format!("{}: cannot open: ", absent.display())), "{text}");
        let text = crate::chain(&open(folder.path(), access, None).unwrap_err());
        assert!(text.starts_with(&format!("{}: cannot ", folder.path().display())), "{text}");
        let path = file_of(folder.path(), b"hello, world");
        assert!(matches!(refused(&path, access, "text"), DecodeError::Magic { found } if &found == b"hell"));
        let path = file_of(folder.path(), b"");
        assert!(matches!(refused(&path, access, "nothing"), DecodeError::Truncated { .. }));
    }
}

#[cfg(unix)]
#[test]
fn a_filter_that_was_read_survives_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = file_of(folder.path(), &bloom().to_bytes());
    let opened = open(&path, Access::Read, None).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    assert!((0..1000).all(|i| opened.filter.contains(&key(i))));
}

/// Files are replaced by renaming: whoever has the old one mapped keeps it.
#[cfg(unix)]
#[test]
fn a_mapped_filter_survives_its_replacement() {
    let folder = tempfile::tempdir().unwrap();
    let path = file_of(folder.path(), &bloom().to_bytes());
    let opened = open(&path, Access::Map, None).unwrap();
    write(&path, &Bloom::new(10, 0.1).unwrap()).unwrap();
    assert!((0..1000).all(|i| opened.filter.contains(&key(i))));
    fs::remove_file(&path).unwrap();
    assert!((0..1000).all(|i| opened.filter.contains(&key(i))));
}

#[test]
fn keyed_filters_ask_for_their_secret() {
    let folder = tempfile::tempdir().unwrap();
    let secret = mayhap::Secret::new([7; 16]);
    let spec = Spec::sized(100, 0.01).with_hashing(Hashing::Keyed(secret));
    let mut keyed = Bloom::from_spec(&spec).unwrap();
    keyed.insert("a");
    let path = folder.path().join("filter");
    write(&path, &keyed).unwrap();
    for access in BOTH {
        assert!(matches!(refused(&path, access, "no secret"), DecodeError::SecretNeeded { .. }));
        let wrong = mayhap::Secret::new([8; 16]);
        assert!(matches!(
            open(&path, access, Some(&wrong)),
            Err(StoreError::Decode { source: DecodeError::SecretWrong { .. }, .. })
        ));
        assert!(open(&path, access, Some(&secret)).unwrap().filter.contains(b"a"));
    }
}

#[test]
fn a_keyed_filter_can_be_looked_at_without_its_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let secret = mayhap::Secret::new([7; 16]);
    let mut bloom = Bloom::from_spec(&Spec::sized(1000, 0.01).with_hashing(Hashing::Keyed(secret))).unwrap();
    bloom.extend((0..500).map(key));
    write(&path, &bloom).unwrap();
    for access in BOTH {
        let (sealed, opened) = (
            open_sealed(&path, access, Check::default()).unwrap(),
            open(&path, access, Some(&secret)).unwrap(),
        );
        assert_eq!(sealed.filter.report(), opened.filter.report());
        assert_eq!((sealed.key_id, opened.key_id), (Some(secret.id()), Some(secret.id())));
        assert_eq!(sealed.checked, opened.checked);
    }
    // What is wrong with the bytes is refused here too.
    let mut bytes = fs::read(&path).unwrap();
    bytes[PAGE + 3] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(open_sealed(&path, Access::Read, Check::Header).is_err());
    write(&path, &self::bloom()).unwrap();
    assert_eq!(open_sealed(&path, Access::Map, Check::Header).unwrap().key_id, None);
}

/// Both sides of the size up to which a map is verified.
#[test]
fn a_map_is_verified_up_to_a_size_and_beyond_it_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = bloom().to_bytes();
    let payload = (bytes.len() - PAGE) as u64;
    let path = file_of(folder.path(), &bytes);
    for (check, checked) in [
        (Check::UpTo(payload), Checked::All),
        (Check::UpTo(payload - 1), Checked::Header),
        (Check::All, Checked::All),
        (Check::Header, Checked::Header),
    ] {
        let opened = open_checked(&path, Access::Map, check, None).unwrap();
        assert_eq!((opened.checked, opened.is_verified()), (checked, checked == Checked::All));
        // What is read is in memory already, and always verified.
        assert!(open_checked(&path, Access::Read, check, None).unwrap().is_verified());
    }
    bytes[PAGE + 100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    for check in [Check::UpTo(payload), Check::All, Check::default()] {
        assert!(open_checked(&path, Access::Map, check, None).is_err(), "{check:?}");
    }
    // What was not verified is not written again, and the file that was to be replaced stays.
    let opened = open_checked(&path, Access::Map, Check::UpTo(payload - 1), None).unwrap();
    let other = folder.path().join("other");
    fs::write(&other, "old").unwrap();
    let error = write(&other, &*opened.filter).unwrap_err();
    assert!(matches!(error, StoreError::Decode { source: DecodeError::Checksum { .. }, .. }), "{error}");
    assert_eq!(fs::read(&other).unwrap(), b"old");
}
