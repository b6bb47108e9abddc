//! Files that are held while they are used.

use std::fs::{self, File};

use mayhap::Table;
use mayhap_store::{Access, hold, open, write};

fn table(keys: u64) -> Table {
    let mut table = Table::with_fpr(1e-9).unwrap();
    table.insert_all(&(0..keys).collect::<Vec<_>>()).unwrap();
    table
}

fn held_keys(path: &std::path::Path) -> Option<u64> {
    open(path, Access::Read, None).unwrap().filter.report().inserted
}

#[test]
fn a_new_file_is_locked_from_the_beginning_and_goes_away_if_nothing_is_put() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let (held, filter) = hold(&path, None, &table(0), || panic!("nobody has it")).unwrap();
    assert!(held.is_new() && filter.report().inserted == Some(0));
    assert!(File::open(&path).unwrap().try_lock().is_err(), "it is locked");
    drop(held);
    assert!(!path.exists());

    let (held, _) = hold(&path, None, &table(0), || panic!("nobody has it")).unwrap();
    held.put(&table(5)).unwrap();
    assert_eq!(held_keys(&path), Some(5));
    let (held, filter) = hold(&path, None, &table(0), || panic!("nobody has it")).unwrap();
    assert!(!held.is_new() && filter.report().inserted == Some(5));
    drop(held);
    assert_eq!(held_keys(&path), Some(5), "what was there stays");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[cfg(unix)]
#[test]
fn a_file_that_somebody_else_put_there_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    for puts in [true, false] {
        let (held, _) = hold(&path, None, &table(0), || ()).unwrap();
        fs::remove_file(&path).unwrap();
        write(&path, &table(7)).unwrap();
        if puts {
            let error = crate::chain(&held.put(&table(1)).unwrap_err());
            assert!(error.contains("removed or replaced"), "{error}");
        } else {
            drop(held);
        }
        assert_eq!(held_keys(&path), Some(7));
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn many_that_are_the_first_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let path = folder.path().join(format!("state-{round}"));
        std::thread::scope(|scope| {
            for key in 0..6u64 {
                let path = &path;
                scope.spawn(move || {
                    let (held, mut filter) = hold(path, None, &table(0), || ()).unwrap();
                    let digest = filter.hashing().digest(&key.to_le_bytes());
                    filter.as_insert().unwrap().insert_digest(digest).unwrap();
                    // Every third fails.
                    if key % 3 > 0 {
                        held.put(&*filter).unwrap();
                    }
                });
            }
        });
        let filter = open(&path, Access::Read, None).unwrap().filter;
        let is_in = |key: u64| filter.contains_digest(filter.hashing().digest(&key.to_le_bytes()));
        assert!((0..6).filter(|key| key % 3 > 0).all(is_in), "round {round}");
    }
}
