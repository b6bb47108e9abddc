//! The repository: where it is, and which files belong to it.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable when it runs us; the value from compile time is for a binary started by hand.
    let package = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}

/// All files below `folder`, as sorted paths relative to it with `/` between the parts.
///
/// Hidden files, symbolic links and build folders are left out. Cargo marks a build folder with
/// `CACHEDIR.TAG`, so one that is not called `target` is recognised too.
///
/// # Errors
///
/// The folder that could not be read.
pub(crate) fn files(folder: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(prefix) = pending.pop() {
        let here = folder.join(&prefix);
        if here.join("CACHEDIR.TAG").exists() {
            continue;
        }
        let unreadable = |error| format!("{}: {error}", here.display());
        for entry in fs::read_dir(&here).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() {
                pending.push(format!("{prefix}{name}/"));
            } else if kind.is_file() {
                found.push(format!("{prefix}{name}"));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_files_are_found_by_relative_name() {
        let found = files(&root().join("xtask")).unwrap();
        assert!(found.contains(&"Cargo.toml".to_owned()), "{found:?}");
        assert!(found.contains(&"src/tree.rs".to_owned()), "{found:?}");
    }
}
