//! Writing files: whole or not at all, with the mode and the links that were there.

use std::fs;
use std::path::Path;

use mayhap::Bloom;
use mayhap_store::{Access, StoreError, open, write};

fn holding(key: &str) -> Bloom {
    let mut bloom = Bloom::new(100, 0.001).unwrap();
    bloom.insert(key);
    bloom
}

fn holds(path: &Path, key: &str) -> bool {
    open(path, Access::Read, None).unwrap().filter.contains(key.as_bytes())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_file_and_one_that_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter");
    for key in ["a", "b"] {
        write(&path, &holding(key)).unwrap();
        assert!(holds(&path, key));
        assert!(fs::read(&path).unwrap() == holding(key).to_bytes());
    }
    assert!(!holds(&path, "a"));
    assert_eq!(names(folder.path()), ["filter"]);
}

#[test]
fn folders_are_named_when_they_are_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let text = crate::chain(&write(folder.path(), &holding("a")).unwrap_err());
    assert!(text.starts_with(&format!("{}: cannot write: ", folder.path().display())), "{text}");
    let path = folder.path().join("absent").join("filter");
    let error = write(&path, &holding("a")).unwrap_err();
    let text = crate::chain(&error);
    assert!(text.starts_with(&format!("{}: cannot create a file in its folder: ", path.display())), "{text}");
    assert!(matches!(error, StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound));
    assert!(!text.contains(".mayhap-"), "temporary names help nobody: {text}");
    assert!(names(folder.path()).is_empty());
}

/// The lock is on the file that the name means, so that of two writers the second wins as a whole.
#[test]
fn writers_at_the_same_time_leave_one_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter");
    write(&path, &holding("0")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || (0..50).for_each(|_| write(path, &holding(&writer.to_string())).unwrap()));
        }
        for _ in 0..200 {
            let found = open(&path, Access::Read, None).unwrap();
            assert_eq!(found.filter.report().inserted, Some(1));
        }
    });
    assert_eq!(names(folder.path()), ["filter"]);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_mode_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter");
        write(&path, &holding("a")).unwrap();
        fs::write(folder.path().join("other"), "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&folder.path().join("other")), "that of any new file");
        for wanted in [0o600, 0o644, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
            write(&path, &holding("b")).unwrap();
            assert_eq!(mode(&path) & 0o7777, wanted);
        }
    }

    #[test]
    fn links_are_followed_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("data")).unwrap();
        // Relative to the folder of the link, absolute, and to a link in another folder.
        symlink("data/one", at("one")).unwrap();
        symlink(at("data/two"), at("two")).unwrap();
        symlink("../one", at("data/back")).unwrap();
        for name in ["one", "two", "data/back", "one"] {
            write(&at(name), &holding(name)).unwrap();
            assert!(at(name).is_symlink() && holds(&at(name), name), "{name}");
        }
        assert_eq!(names(&at("data")), ["back", "one", "two"]);
        assert_eq!(names(folder.path()), ["data", "one", "two"]);
    }

    #[test]
    fn links_in_a_circle_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one");
        symlink("one", &path).unwrap();
        assert!(write(&path, &holding("a")).is_err());
        assert!(path.is_symlink());
    }
}
