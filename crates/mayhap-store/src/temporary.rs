//! Files on their way to a name: without one until they are complete, or with a temporary one.
//!
//! Where the system has files without names (Linux), an unfinished file vanishes with its process, however that ends. It
//! gets a temporary name only for the moment between its link and its renaming. Elsewhere it has a temporary name all the
//! time. Temporary files are locked while they are in use, so that one that a killed process left behind is known by its
//! free lock. The next writer in the folder removes it.

use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::{Builder, TempPath};

const PREFIX: &str = ".mayhap-";
const SUFFIX: &str = ".tmp";
/// Letters and digits between the two.
const RANDOM: usize = 6;

/// A new file in a folder, with the mode of any new file. It vanishes unless it is given its name.
pub(crate) struct Temporary {
    pub(crate) file: File,
    name: Option<TempPath>,
}

impl Temporary {
    /// Makes one, and removes those that killed processes have left in the folder.
    pub(crate) fn new_in(folder: &Path) -> io::Result<Self> {
        system::sweep(folder);
        if let Some(file) = system::without_name(folder) {
            return Ok(Self { file, name: None });
        }
        Self::with_name(folder)
    }

    fn with_name(folder: &Path) -> io::Result<Self> {
        loop {
            // Created like any new file, so that it gets the mode of one: read and write for all, less the
            // umask.
            let open = |name: &Path| File::options().read(true).write(true).create_new(true).open(name);
            let (file, name) = names().make_in(folder, open)?.into_parts();
            // Between its creation and its lock, another process may have taken it for one that was left behind.
            if system::lock(&file, &name) {
                return Ok(Self { file, name: Some(name) });
            }
        }
    }

    /// Puts it in the place of the file of this name, if there is one.
    pub(crate) fn replace(self, path: &Path, folder: &Path) -> io::Result<()> {
        let name = match self.name {
            Some(name) => name,
            None => names().make_in(folder, |name| system::link(&self.file, name))?.into_temp_path(),
        };
        name.persist(path).map_err(|e| e.error)
    }

    /// Gives it this name, and gives it back with its lock. An error of the kind `AlreadyExists` if the name is taken.
    pub(crate) fn put_new(self, path: &Path) -> io::Result<File> {
        match self.name {
            Some(name) => name.persist_noclobber(path).map_err(|e| e.error)?,
            None => system::link(&self.file, path)?,
        }
        Ok(self.file)
    }
}

/// Temporary names.
fn names() -> Builder<'static, 'static> {
    let mut names = Builder::new();
    names.prefix(PREFIX).suffix(SUFFIX).rand_bytes(RANDOM);
    names
}

#[cfg(unix)]
mod system {
    use std::fs::{self, File};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};

    use super::{PREFIX, RANDOM, SUFFIX};
    use crate::lock;

    /// A locked file in a folder that has no name there. `None` where there is no such thing.
    #[cfg(target_os = "linux")]
    pub(super) fn without_name(folder: &Path) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, folder, flags, Mode::from_raw_mode(0o666)).ok()?);
        // Kernels before 6.0 may forget the umask here. They do not for files with names.
        let is_masked = file.metadata().ok()?.permissions().mode() & 0o777 != 0o666;
        let is_named_by_proc = lock::is_named(&file, &name_of(&file)).unwrap_or(false);
        (is_masked && is_named_by_proc && file.try_lock().is_ok()).then_some(file)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn without_name(_folder: &Path) -> Option<File> {
        None
    }

    /// The name under which the system shows an open file.
    fn name_of(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }

    /// Gives a file without a name one that is not taken.
    pub(super) fn link(file: &File, name: &Path) -> io::Result<()> {
        Ok(linkat(CWD, name_of(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Locks a new file. `false` if a process that sweeps has removed it, or is about to.
    pub(super) fn lock(file: &File, name: &Path) -> bool {
        match file.try_lock() {
            Ok(()) => lock::is_named(file, name).unwrap_or(false),
            Err(fs::TryLockError::WouldBlock) => false,
            // Without locks nothing is swept.
            Err(fs::TryLockError::Error(_)) => true,
        }
    }

    /// Removes temporary files that nobody holds. What cannot be removed stays.
    pub(super) fn sweep(folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            if is_temporary(entry.file_name().as_encoded_bytes()) {
                remove_if_left(&entry.path());
            }
        }
    }

    fn is_temporary(name: &[u8]) -> bool {
        name.strip_prefix(PREFIX.as_bytes())
            .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()))
            .is_some_and(|middle| middle.len() == RANDOM && middle.iter().all(u8::is_ascii_alphanumeric))
    }

    /// While we hold its lock and the name still means it, no process can use it: its writer is dead, or looks at the name
    /// when it gets the lock.
    fn remove_if_left(path: &Path) {
        // Neither a link nor a pipe, which anyone may have put here.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let Ok(file) = openat(CWD, path, flags, Mode::empty()).map(File::from) else { return };
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file && file.try_lock().is_ok() && lock::is_named(&file, path).unwrap_or(false) {
            let _ = fs::remove_file(path);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::temporary::Temporary;

        fn names(folder: &Path) -> Vec<String> {
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
            let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
            names.sort();
            names
        }

        #[test]
        fn what_is_left_behind_is_removed_and_what_is_in_use_is_not() {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            for name in [".mayhap-abc123.tmp", ".mayhap-ABCdef.tmp"] {
                fs::write(at(name), "left behind").unwrap();
            }
            // These are not ours.
            let others = [
                ".mayhap-.tmp",
                ".mayhap-a.tmp",
                ".mayhap-abc12.tmp",
                ".mayhap-abc-23.tmp",
                "mayhap-abc123.tmp",
            ];
            others.iter().for_each(|name| fs::write(at(name), "").unwrap());
            std::os::unix::fs::symlink("mayhap-abc123.tmp", at(".mayhap-link00.tmp")).unwrap();
            fs::create_dir(at(".mayhap-folder.tmp")).unwrap();
            let used = Temporary::with_name(folder.path()).unwrap();
            let used_name = used.name.as_ref().unwrap().to_path_buf();
            drop(Temporary::new_in(folder.path()).unwrap());
            assert!(used_name.exists());
            let mut expected: Vec<String> = others.map(String::from).to_vec();
            expected.extend([".mayhap-link00.tmp".into(), ".mayhap-folder.tmp".into()]);
            expected.push(used_name.file_name().unwrap().to_str().unwrap().into());
            expected.sort();
            assert_eq!(names(folder.path()), expected);
            used.replace(&at("done"), folder.path()).unwrap();
            assert!(at("done").exists() && !used_name.exists());
        }

        #[test]
        fn a_file_gets_its_name_by_either_way() {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            for way in [Temporary::with_name, Temporary::new_in] {
                let way = |folder| way(folder).unwrap();
                fs::write(at("old"), "old").unwrap();
                let kind = way(folder.path()).put_new(&at("old")).unwrap_err().kind();
                assert_eq!(kind, io::ErrorKind::AlreadyExists);
                let made = way(folder.path()).put_new(&at("new")).unwrap();
                assert!(File::open(at("new")).unwrap().try_lock().is_err(), "it has its lock");
                drop(made);
                way(folder.path()).replace(&at("old"), folder.path()).unwrap();
                assert_eq!(fs::read(at("old")).unwrap(), b"");
                assert_eq!(names(folder.path()), ["new", "old"]);
                fs::remove_file(at("new")).unwrap();
            }
        }

        /// A file that a sweeping process takes between its creation and its lock is given up.
        #[test]
        fn a_file_that_was_swept_before_its_lock_is_not_used() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(".mayhap-abc123.tmp");
            let file = File::create(&path).unwrap();
            let sweeping = File::open(&path).unwrap();
            sweeping.try_lock().unwrap();
            assert!(!lock(&file, &path), "another process has it");
            fs::remove_file(&path).unwrap();
            drop(sweeping);
            assert!(!lock(&file, &path), "it is gone");
        }

        #[test]
        fn writers_that_sweep_all_the_time_lose_no_file() {
            let folder = tempfile::tempdir().unwrap();
            std::thread::scope(|scope| {
                for writer in 0..4 {
                    let folder = folder.path();
                    scope.spawn(move || {
                        for round in 0..100 {
                            sweep(folder);
                            let way = if round % 2 == 0 { Temporary::new_in } else { Temporary::with_name };
                            let temporary = way(folder).unwrap();
                            let path = folder.join(format!("{writer}-{round}"));
                            temporary.replace(&path, folder).unwrap();
                        }
                    });
                }
            });
            assert_eq!(names(folder.path()).len(), 400);
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn without_name(_folder: &Path) -> Option<File> {
        None
    }

    pub(super) fn link(_file: &File, _name: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn lock(_file: &File, _name: &Path) -> bool {
        true
    }

    /// A name can be that of a file in use, and nothing tells.
    pub(super) fn sweep(_folder: &Path) {}
}
