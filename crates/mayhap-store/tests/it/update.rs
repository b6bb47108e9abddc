//! Changing files: under a lock, by replacement or in place, and after an accident.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use mayhap::key_rules::{KeyRules, Spelling};
use mayhap::wire::{KEY_RULES, METADATA, PAGE, mark_writing};
use mayhap::{
    AnyFilter, Bloom, Combine, Error, Exact, Hashing, Spec, Summing, combine, encode_with, except,
    with_key_rules,
};
use mayhap_store::{
    Access, Check, Checked, Sizes, UpdateError, is_locked, open, open_checked, update, update_sized, write,
};

/// The least payload that is changed in place: 16 MiB.
const IN_PLACE_BITS: u64 = 16 << 23;

fn small() -> Bloom {
    Bloom::new(10_000, 1e-6).unwrap()
}

fn large() -> Bloom {
    Bloom::with_bits(IN_PLACE_BITS, 5).unwrap()
}

fn insert(path: &Path, keys: &[String]) -> usize {
    let keys: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let change = |filter: &mut dyn AnyFilter| {
        let mut outcomes = Vec::new();
        filter.insert_keys(&keys, &mut outcomes).map(|()| outcomes.len())
    };
    update(path, None, change).unwrap()
}

fn keys(writer: u64, round: u64) -> Vec<String> {
    (0..20).map(|i| format!("{writer}-{round}-{i}")).collect()
}

fn holds_all(path: &Path, keys: &[String]) -> bool {
    let opened = open(path, Access::Read, None).unwrap();
    keys.iter().all(|key| opened.filter.contains(key.as_bytes()))
}

fn file(folder: &tempfile::TempDir, filter: &dyn AnyFilter) -> PathBuf {
    let path = folder.path().join("filter");
    write(&path, filter).unwrap();
    path
}

#[test]
fn writers_lose_no_key() {
    let filters: [(Box<dyn AnyFilter>, u64); 3] =
        [(Box::new(small()), 50), (Box::new(Exact::default()), 50), (Box::new(large()), 5)];
    for (filter, rounds) in filters {
        let folder = tempfile::tempdir().unwrap();
        let path = file(&folder, &*filter);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    (0..rounds).for_each(|round| assert_eq!(insert(path, &keys(writer, round)), 20))
                });
            }
        });
        for writer in 0..4 {
            assert!((0..rounds).all(|round| holds_all(&path, &keys(writer, round))));
        }
        let opened = open(&path, Access::Read, None).unwrap();
        assert_eq!((opened.filter.report().inserted, opened.checked), (Some(4 * rounds * 20), Checked::All));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }
}

#[test]
fn an_update_fails_with_an_error_that_callers_can_box() {
    fn boxed(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
        update(path, None, |_| Err::<(), _>(Error::Unsupported { family: "fuse", operation: "insert" }))?;
        Ok(())
    }
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    assert!(boxed(&missing).unwrap_err().to_string().contains("cannot open"));
    let path = file(&folder, &small());
    assert!(boxed(&path).unwrap_err().to_string().contains("fuse"));
}

#[test]
fn a_change_that_fails_leaves_the_file_as_it_was() {
    for filter in [small(), large()] {
        let folder = tempfile::tempdir().unwrap();
        let path = file(&folder, &filter);
        insert(&path, &keys(0, 0));
        let before = fs::read(&path).unwrap();
        let refused = update(&path, None, |_| Err::<(), _>("no"));
        assert!(matches!(refused, Err(UpdateError::Change("no"))));
        assert!(fs::read(&path).unwrap() == before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_change_in_place_gives_the_same_bytes_as_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &large());
    insert(&path, &keys(0, 0));
    let mut expected = large();
    expected.extend(keys(0, 0).iter().map(String::as_str));
    assert!(fs::read(&path).unwrap() == expected.to_bytes());
}

/// A merge may leave the size, and then the file, or stay in the map: no key is lost either way.
#[test]
fn a_merge_of_another_size_replaces_the_file_or_stays_in_place() {
    for (bits, expected) in [(IN_PLACE_BITS / 2, IN_PLACE_BITS), (IN_PLACE_BITS * 2, IN_PLACE_BITS * 2)] {
        let folder = tempfile::tempdir().unwrap();
        let path = file(&folder, &large());
        insert(&path, &keys(0, 0));
        let mut other = Bloom::with_bits(bits, 5).unwrap();
        other.extend(0..10_000u64);
        update(&path, None, |filter| combine(filter, &other, Combine::Union)).unwrap();
        assert!(holds_all(&path, &keys(0, 0)));
        let opened = open(&path, Access::Read, None).unwrap();
        assert!((0..10_000u64).all(|key| opened.filter.contains(&key.to_le_bytes())));
        assert_eq!((opened.filter.report().bits, opened.checked), (expected, Checked::All));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

/// A map once kept its lock, and so every writer waiting, for as long as it lived.
#[test]
fn a_mapped_filter_keeps_no_writer_waiting() {
    for filter in [small(), large()] {
        let folder = tempfile::tempdir().unwrap();
        let path = file(&folder, &filter);
        let opened = open(&path, Access::Map, None).unwrap();
        insert(&path, &keys(0, 0));
        write(&path, &*opened.filter).unwrap();
    }
}

/// Readers once waited until a writer had finished, and for the endless ones forever.
#[test]
fn a_file_that_is_being_changed_is_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &large());
    insert(&path, &keys(0, 0));
    update(&path, None, |filter| {
        filter.insert_keys(&[b"late"], &mut Vec::new()).unwrap();
        assert!(is_locked(&path));
        for access in [Access::Map, Access::Read] {
            for check in [Check::Header, Check::default(), Check::All] {
                let opened = open_checked(&path, access, check, None).unwrap();
                assert_eq!((opened.checked, opened.filter.report().inserted), (Checked::BeingWritten, None));
                assert!(!opened.is_verified() && opened.lacks_checksum());
                assert!(keys(0, 0).iter().all(|key| opened.filter.contains(key.as_bytes())));
            }
        }
        Ok::<(), ()>(())
    })
    .unwrap();
    assert!(!is_locked(&path));
    let opened = open(&path, Access::Map, None).unwrap();
    assert!(opened.filter.contains(b"late") && opened.checked == Checked::All);
}

/// A lock by itself is no mark: whoever holds a file to replace it later leaves it as it is.
#[test]
fn a_file_that_is_locked_and_not_changed_is_read_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &small());
    let locked = fs::File::options().write(true).open(&path).unwrap();
    locked.lock().unwrap();
    for access in [Access::Map, Access::Read] {
        assert_eq!(open(&path, access, None).unwrap().checked, Checked::All);
    }
    let mut bytes = fs::read(&path).unwrap();
    bytes[PAGE + 100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    for access in [Access::Map, Access::Read] {
        let error = open(&path, access, None).unwrap_err().to_string();
        assert!(error.contains("damaged: the checksum of the payload"), "{error}");
    }
}

/// Readers that verify while the payload changes under them find no damage, and every key of before.
#[test]
fn readers_among_writers_in_place_find_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &Bloom::with_bits(1 << 23, 5).unwrap());
    let (sizes, done) = (Sizes { in_place_from: 0, sum_up_to: u64::MAX }, AtomicU64::new(0));
    let insert = |round: u64| {
        let keys: Vec<[u8; 8]> = (0..50).map(|i| (50 * round + i).to_le_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        update_sized(&path, None, sizes, |filter| filter.insert_keys(&keys, &mut Vec::new())).unwrap();
        done.store(round + 1, Ordering::SeqCst);
    };
    const ROUNDS: u64 = 200;
    std::thread::scope(|scope| {
        scope.spawn(|| (0..ROUNDS).for_each(insert));
        for access in [Access::Map, Access::Read] {
            let (path, done) = (&path, &done);
            scope.spawn(move || {
                loop {
                    let before = done.load(Ordering::SeqCst);
                    let opened = open_checked(path, access, Check::All, None).unwrap();
                    assert!(matches!(opened.checked, Checked::All | Checked::BeingWritten), "{opened:?}");
                    assert!((0..50 * before).all(|key| opened.filter.contains(&key.to_le_bytes())));
                    if before == ROUNDS {
                        assert_eq!(opened.checked, Checked::All);
                        break;
                    }
                }
            });
        }
    });
}

/// The writer is alive, so that its header will be whole soon.
#[test]
fn a_header_that_is_half_written_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &small());
    let whole = fs::read(&path).unwrap();
    let torn = [&whole[..64], &[0xff; 32], &whole[96..]].concat();
    fs::write(&path, &torn).unwrap();
    assert!(open(&path, Access::Map, None).is_err(), "nobody is about to make it whole");
    for access in [Access::Map, Access::Read] {
        fs::write(&path, &torn).unwrap();
        let locked = fs::File::options().write(true).open(&path).unwrap();
        locked.lock().unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| open(&path, access, None).unwrap().checked);
            std::thread::sleep(std::time::Duration::from_millis(20));
            fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(&whole[..PAGE]).unwrap();
            assert_eq!(reader.join().unwrap(), Checked::All);
        });
    }
}

/// The pages of a hole have no place on the disk, and a full one ended the process when they got bits.
#[cfg(target_os = "linux")]
#[test]
fn a_sparse_file_has_its_blocks_before_it_is_changed_in_place() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &large());
    let whole = fs::read(&path).unwrap();
    // As `cp --sparse=always` makes it: only what is not 0 is written.
    fs::remove_file(&path).unwrap();
    let mut copy = fs::File::create(&path).unwrap();
    copy.write_all(&whole[..PAGE]).unwrap();
    copy.set_len(whole.len() as u64).unwrap();
    let blocks = || 512 * path.metadata().unwrap().blocks();
    if blocks() >= whole.len() as u64 {
        println!("skipped: this file system has no holes");
        return;
    }
    update(&path, None, |_| {
        assert!(blocks() >= whole.len() as u64, "{} of {} bytes are there", blocks(), whole.len());
        Ok::<(), ()>(())
    })
    .unwrap();
    assert!(fs::read(&path).unwrap() == whole, "and it holds what it held");
}

#[test]
fn an_interrupted_change_is_seen_and_repaired() {
    for filter in [small(), large()] {
        let folder = tempfile::tempdir().unwrap();
        let path = file(&folder, &filter);
        insert(&path, &keys(0, 0));
        let mut bytes = fs::read(&path).unwrap();
        mark_writing(&mut bytes[..PAGE]);
        bytes[PAGE + 100] |= 1;
        fs::write(&path, bytes).unwrap();
        for access in [Access::Map, Access::Read] {
            let opened = open(&path, access, None).unwrap();
            assert_eq!((opened.checked, opened.filter.report().inserted), (Checked::Interrupted, None));
            assert!(keys(0, 0).iter().all(|key| opened.filter.contains(key.as_bytes())));
        }
        insert(&path, &keys(0, 1));
        assert_eq!(open(&path, Access::Read, None).unwrap().checked, Checked::All);
        assert!(holds_all(&path, &keys(0, 0)) && holds_all(&path, &keys(0, 1)));
    }
}

#[test]
fn notes_are_kept() {
    for filter in [small(), large()] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter");
        fs::write(&path, encode_with(&filter, Summing::Payload, &[(METADATA, b"a note")]).to_vec()).unwrap();
        insert(&path, &keys(0, 0));
        let opened = open(&path, Access::Map, None).unwrap();
        assert_eq!(opened.metadata.as_ref().map(|bytes| bytes.as_slice()), Some(&b"a note"[..]));
        assert!(holds_all(&path, &keys(0, 0)));
    }
}

/// A file with sections was rewritten as a whole.
#[cfg(unix)]
#[test]
fn a_large_file_with_notes_and_key_rules_is_updated_in_place() {
    use std::os::unix::fs::MetadataExt;
    let spelling = Spelling { trim: true, ..Spelling::default() };
    let rules = KeyRules { spelling, ..KeyRules::default() };
    for notes in [&[][..], &[(METADATA, &b"a note"[..])]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter");
        let filter = with_key_rules(Box::new(large()), Some(rules.clone()));
        fs::write(&path, encode_with(&*filter, Summing::Payload, notes).to_vec()).unwrap();
        let before = fs::metadata(&path).unwrap();
        insert(&path, &keys(0, 0));
        let after = fs::metadata(&path).unwrap();
        assert_eq!((before.ino(), before.len()), (after.ino(), after.len()));
        for access in [Access::Map, Access::Read] {
            let opened = open(&path, access, None).unwrap();
            assert_eq!(opened.filter.key_rules(), Some(&rules));
            assert_eq!(opened.metadata.is_some(), !notes.is_empty());
        }
        assert!(holds_all(&path, &keys(0, 0)));
        // Other rules take a file of their own.
        let change = |filter: &mut dyn AnyFilter| {
            filter.as_insert().unwrap().insert_digest(Hashing::default().digest(b"one more")).unwrap();
            Ok::<_, ()>(filter.set_key_rules(KeyRules::default()))
        };
        assert!(update(&path, None, change).unwrap());
        let opened = open(&path, Access::Read, None).unwrap();
        assert_eq!(opened.filter.key_rules(), Some(&KeyRules::default()));
        assert_eq!(opened.metadata.is_some(), !notes.is_empty());
        assert!(opened.filter.contains(b"one more") && holds_all(&path, &keys(0, 0)));
        assert_ne!(fs::metadata(&path).unwrap().ino(), before.ino());
    }
    // Another writer's order of sections.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter");
    let sections = [(METADATA, &b"a note"[..]), (KEY_RULES, &rules.encode()[..])];
    fs::write(&path, encode_with(&large(), Summing::Payload, &sections).to_vec()).unwrap();
    insert(&path, &keys(0, 0));
    let opened = open(&path, Access::Read, None).unwrap();
    assert!(opened.filter.key_rules() == Some(&rules) && opened.metadata.is_some());
    assert!(holds_all(&path, &keys(0, 0)));
}

#[test]
fn a_damaged_or_absent_file_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &small());
    let sound = fs::read(&path).unwrap();
    let asked = Cell::new(false);
    let refuse = || {
        let change = |_: &mut dyn AnyFilter| {
            asked.set(true);
            Ok::<(), ()>(())
        };
        assert!(matches!(update(&path, None, change), Err(UpdateError::Store(_))));
        assert!(!asked.get(), "the change is not even tried");
    };
    for (length, at) in
        [(0, 0), (3, 0), (44, 0), (PAGE, 0), (sound.len() - 1, 0), (sound.len(), 50), (sound.len(), PAGE + 9)]
    {
        let mut damaged = sound[..length].to_vec();
        if at > 0 {
            damaged[at] ^= 1;
        }
        fs::write(&path, &damaged).unwrap();
        refuse();
        assert!(fs::read(&path).unwrap() == damaged);
    }
    fs::remove_file(&path).unwrap();
    refuse();
    assert!(!path.exists());
}

/// A name that is given to another file while a writer waits for its lock means the other file.
#[cfg(unix)]
#[test]
fn the_lock_is_on_the_file_that_the_name_means() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, &small());
    let held = fs::File::options().write(true).open(&path).unwrap();
    held.lock().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| insert(&path, &keys(0, 0)));
        std::thread::sleep(std::time::Duration::from_millis(100));
        // Another filter takes the name.
        let other = folder.path().join("other");
        write(&other, &Bloom::from_spec(&Spec::sized(500, 1e-6)).unwrap()).unwrap();
        fs::rename(&other, &path).unwrap();
        drop(held);
        assert_eq!(writer.join().unwrap(), 20);
    });
    assert_eq!(open(&path, Access::Map, None).unwrap().filter.report().capacity, 500);
    assert!(holds_all(&path, &keys(0, 0)));
}

#[test]
fn a_large_file_with_exceptions_is_replaced_and_keeps_them() {
    let folder = tempfile::tempdir().unwrap();
    let hashing = large().hashing();
    let (kept, dropped) = (hashing.digest(b"kept"), hashing.digest(b"0-0-0"));
    let path = file(&folder, &*except(Box::new(large()), [kept, dropped]));
    assert_eq!(insert(&path, &keys(0, 0)), 20);
    let opened = open(&path, Access::Read, None).unwrap();
    assert_eq!(opened.checked, Checked::All);
    assert_eq!(opened.filter.exceptions().unwrap().keys, 1);
    assert!(opened.filter.contains(b"0-0-0") && !opened.filter.contains(b"kept"));
    assert!(holds_all(&path, &keys(0, 0)));
}

/// The checksum of a file that was changed in place was renewed over whatever damage was there.
#[test]
fn a_change_in_place_verifies_the_old_checksum_first() {
    // In place with a new checksum, in place without one, and by replacement.
    for (in_place_from, sum_up_to) in [(0, u64::MAX), (0, 0), (u64::MAX, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let mut filter = small();
        filter.extend(0..5000u64);
        let path = file(&folder, &filter);
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        // As many bits are set as before, so that no count can tell.
        let other = (PAGE + 1..whole.len()).find(|&at| whole[at] != whole[PAGE]).unwrap();
        damaged.swap(PAGE, other);
        fs::write(&path, &damaged).unwrap();
        let insert = || {
            update_sized(&path, None, Sizes { in_place_from, sum_up_to }, |filter| {
                filter.insert_keys(&[b"new"], &mut Vec::new())
            })
        };
        assert!(matches!(insert(), Err(UpdateError::Store(error)) if error.to_string().contains("damaged")));
        assert!(fs::read(&path).unwrap() == damaged, "a damaged file was changed");
        fs::write(&path, &whole).unwrap();
        for _ in 0..2 {
            insert().unwrap();
            let opened = open(&path, Access::Read, None).unwrap();
            let unsummed = in_place_from == 0 && sum_up_to == 0;
            assert_eq!(opened.checked, if unsummed { Checked::Unsummed } else { Checked::All });
            assert!(opened.filter.contains(b"new") && opened.lacks_checksum() == unsummed);
        }
    }
}
