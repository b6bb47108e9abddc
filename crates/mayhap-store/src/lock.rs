//! Locks on the file that a name means.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// The file that a name stands for in the end, so that a rename replaces the target of a symbolic
/// link and not the link. A link that the system would not follow is not followed here either.
pub(crate) fn target(path: &Path) -> Result<PathBuf, StoreError> {
    let mut path = path.to_path_buf();
    // A link may point to a file that is yet to be made, which `canonicalize` refuses. 40 is the
    // kernel's own limit on chains of links.
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&path) else { break };
        links::may_follow(&path)?;
        path = match path.parent() {
            Some(folder) => folder.join(next),
            None => next,
        };
    }
    Ok(path)
}

/// The folder that a file lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(unix)]
mod links {
    use std::fs;
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use super::folder_of;
    use crate::error::StoreError;

    /// A link and the folder it lies in.
    #[derive(Clone, Copy)]
    struct Link {
        owner: u32,
        folder_owner: u32,
        folder_mode: u32,
    }

    /// A folder like `/tmp`: sticky, and writable for everyone.
    const STICKY_FOR_ALL: u32 = 0o1002;

    impl Link {
        /// The kernel's rule `fs.protected_symlinks`: in a folder that everyone can write to, another user's link may be a
        /// trap. Links of the user and of the folder's owner are followed.
        fn is_trap(self, user: u32, is_protected: bool) -> bool {
            is_protected
                && self.folder_mode & STICKY_FOR_ALL == STICKY_FOR_ALL
                && self.owner != user
                && self.owner != self.folder_owner
        }
    }

    /// Refuses a link that the kernel would not follow.
    pub(super) fn may_follow(path: &Path) -> Result<(), StoreError> {
        let refuse = StoreError::io(path, "follow the symbolic link");
        let (link, folder) = match (fs::symlink_metadata(path), fs::metadata(folder_of(path))) {
            (Ok(link), Ok(folder)) => (link, folder),
            (Err(e), _) | (_, Err(e)) => return Err(refuse(e)),
        };
        let link = Link { owner: link.uid(), folder_owner: folder.uid(), folder_mode: folder.mode() };
        if link.is_trap(rustix::process::geteuid().as_raw(), is_protected()) {
            let problem = "it belongs to another user, in a folder that everyone can write to (fs.protected_symlinks); \
                           name its target";
            return Err(refuse(io::Error::new(io::ErrorKind::PermissionDenied, problem)));
        }
        Ok(())
    }

    /// Whether the system has the rule, and obeys it. If that cannot be read, it is taken to.
    fn is_protected() -> bool {
        cfg!(target_os = "linux")
            && fs::read("/proc/sys/fs/protected_symlinks")
                .map_or(true, |setting| setting.trim_ascii() != b"0")
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        const ROOT: u32 = 0;
        const US: u32 = 1000;
        const OTHER: u32 = 65_534;

        fn is_trap(owner: u32, (folder_owner, folder_mode): (u32, u32), user: u32) -> bool {
            Link { owner, folder_owner, folder_mode }.is_trap(user, true)
        }

        /// As `may_follow_link` of the kernel decides.
        #[test]
        fn links_of_others_in_sticky_folders_for_all_are_not_followed() {
            let tmp = (ROOT, 0o41777);
            assert!(is_trap(OTHER, tmp, US) && is_trap(OTHER, tmp, ROOT) && is_trap(US, tmp, OTHER));
            assert!(!is_trap(US, tmp, US), "our own");
            assert!(!is_trap(ROOT, tmp, US), "that of the folder's owner");
            assert!(!is_trap(OTHER, (OTHER, 0o41777), ROOT), "the folder and the link have one owner");
            for mode in [0o40777, 0o41775, 0o41755, 0o40700] {
                assert!(!is_trap(OTHER, (ROOT, mode), US), "{mode:o}: not sticky, or not for all");
            }
            let link = Link { owner: OTHER, folder_owner: ROOT, folder_mode: 0o41777 };
            assert!(!link.is_trap(US, false), "the system does not have the rule");
        }

        #[test]
        fn our_own_links_are_followed_wherever_they_are() {
            use std::os::unix::fs::{PermissionsExt, symlink};
            let folder = tempfile::tempdir().unwrap();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
            let link = folder.path().join("link");
            symlink("absent", &link).unwrap();
            assert_eq!(super::super::target(&link).unwrap(), folder.path().join("absent"));
        }
    }
}

#[cfg(not(unix))]
mod links {
    use std::path::Path;

    use crate::error::StoreError;

    /// There is no such rule here.
    pub(super) fn may_follow(_path: &Path) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Opens a file for reading and writing and locks it for oneself alone; waits for others.
///
/// Another writer may replace the file by renaming while we wait: the lock would then be one on a file
/// that has no name any more. So the name is looked at again until it means the file that is locked.
pub(crate) fn exclusive(path: &Path) -> Result<File, StoreError> {
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(StoreError::io(path, "open for writing"))?;
        file.lock().map_err(StoreError::io(path, "lock"))?;
        match is_named(&file, path) {
            Ok(true) => return Ok(file),
            Ok(false) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(StoreError::io(path, "look at")(e)),
        }
    }
}

/// Whether another process holds the lock of a file at the moment, so that [`update`](crate::update()) and
/// [`write`](crate::write()) would wait for it. What cannot be opened or locked is not held.
#[must_use]
pub fn is_locked(path: &Path) -> bool {
    path.is_file() && File::open(path).is_ok_and(|file| is_held(&file))
}

/// Whether a writer holds the lock of a file. Readers ask this at the same time without seeing each other.
pub(crate) fn is_held(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => {
            // A map would keep the lock, also when the file is closed.
            let _ = file.unlock();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        // File systems without locks are taken as they are.
        Err(TryLockError::Error(_)) => false,
    }
}

/// Readers need no lock: a file is replaced as a whole, or only gets further bits. But where a lock keeps others from
/// reading, they wait until it is given back.
pub(crate) fn wait_to_read(file: &File) {
    if !cfg!(unix) && file.lock_shared().is_ok() {
        let _ = file.unlock();
    }
}

#[cfg(unix)]
pub(crate) fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (ours, named) = (file.metadata()?, fs::metadata(path)?);
    Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino()))
}

/// Elsewhere an open file cannot be renamed over, so the name still means it.
#[cfg(not(unix))]
pub(crate) fn is_named(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}
