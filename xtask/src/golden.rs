//! House rule: golden files are added, never changed. They are what earlier versions wrote, and stand for
//! the files that users have: if one must change to make a test pass, it is the code that is wrong.
//!
//! Each folder `crates/*/tests/golden` has a `MANIFEST` with one line per file, `name length checksum`:
//!
//! ```text
//! bloom-v1.mayhap 4160 9c1185a5c5e9fc54
//! ```
//!
//! Lines are only ever appended. The checksum is FNV-1a of 64 bits: it guards against accidents, not
//! against malice, and fits in a few lines here. A `README.md` beside the files is not one of them.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::cargo::{Cargo, Output};
use crate::tree;

const MANIFEST: &str = "MANIFEST";

/// Where the library's golden files are, from the root.
const LIBRARY: &str = "crates/mayhap/tests/golden";

/// Checks every folder of golden files against its manifest.
///
/// # Errors
///
/// One line for each file that was changed, is gone, or was never recorded.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut problems = Vec::new();
    for folder in folders(root)? {
        let Comparison { broken, new } = Comparison::of(&folder)?;
        let unrecorded = new.iter().map(|Entry { name, .. }| {
            format!("{name}: not in the manifest; record it with: cargo xtask golden")
        });
        problems.extend(broken.into_iter().chain(unrecorded).map(|problem| located(&folder, &problem)));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Writes golden files for the families that lack one, and records all new files in the manifests.
///
/// # Errors
///
/// The example failed, or a recorded file is not as it was; then no line is appended to its manifest.
pub(crate) fn update(root: &Path) -> Result<(), String> {
    fs::create_dir_all(root.join(LIBRARY)).map_err(|error| format!("{LIBRARY}: {error}"))?;
    Cargo::line(&format!("run -q -p mayhap --example write_golden -- {LIBRARY}")).run(root, Output::Live)?;
    for folder in folders(root)? {
        for entry in record(&folder)? {
            println!("recorded {entry}");
        }
    }
    Ok(())
}

/// A problem that begins with a file's name, with the file's folder before it.
fn located(folder: &Path, problem: &str) -> String {
    folder.join(problem).display().to_string()
}

/// Appends the files of `folder` that its manifest lacks, and returns them.
fn record(folder: &Path) -> Result<Vec<Entry>, String> {
    let Comparison { broken, new } = Comparison::of(folder)?;
    if !broken.is_empty() {
        let problems: Vec<_> = broken.iter().map(|problem| located(folder, problem)).collect();
        return Err(problems.join("\n"));
    }
    if !new.is_empty() {
        let path = folder.join(MANIFEST);
        append(&path, &new).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(new)
}

fn append(path: &Path, entries: &[Entry]) -> io::Result<()> {
    let before = read_if_any(path)?;
    let mut lines = String::new();
    if !before.is_empty() && !before.ends_with('\n') {
        lines.push('\n');
    }
    for entry in entries {
        lines.push_str(&format!("{entry}\n"));
    }
    OpenOptions::new().create(true).append(true).open(path)?.write_all(lines.as_bytes())
}

/// The folders of golden files that exist.
fn folders(root: &Path) -> Result<Vec<PathBuf>, String> {
    let crates = root.join("crates");
    let unreadable = |error| format!("{}: {error}", crates.display());
    let mut folders = Vec::new();
    for entry in fs::read_dir(&crates).map_err(unreadable)? {
        let folder = entry.map_err(unreadable)?.path().join("tests").join("golden");
        if folder.is_dir() {
            folders.push(folder);
        }
    }
    folders.sort();
    Ok(folders)
}

/// One file, as recorded or as found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    length: u64,
    checksum: u64,
}

impl Entry {
    fn of(name: &str, content: &[u8]) -> Self {
        Self { name: name.to_owned(), length: content.len() as u64, checksum: fnv1a(content) }
    }

    /// Reads a line as `Display` writes it, and no other.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let entry = Self {
            name: fields.next()?.to_owned(),
            length: fields.next()?.parse().ok()?,
            checksum: u64::from_str_radix(fields.next()?, 16).ok()?,
        };
        (entry.to_string() == line).then_some(entry)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:016x}", self.name, self.length, self.checksum)
    }
}

/// What a folder holds, against what its manifest says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Comparison {
    /// Files that are not as recorded, one sentence each.
    broken: Vec<String>,
    /// Files without a line in the manifest.
    new: Vec<Entry>,
}

impl Comparison {
    fn of(folder: &Path) -> Result<Self, String> {
        let path = folder.join(MANIFEST);
        let manifest = read_if_any(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let recorded = parse(&manifest).map_err(|problem| format!("{}: {problem}", path.display()))?;
        let mut found = Vec::new();
        for name in tree::files(folder)? {
            if name == MANIFEST || name == "README.md" {
                continue;
            }
            let path = folder.join(&name);
            if name.contains(char::is_whitespace) {
                return Err(format!("{}: expected a name without white space", path.display()));
            }
            let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            found.push(Entry::of(&name, &content));
        }
        Ok(Self::between(&recorded, &found))
    }

    fn between(recorded: &[Entry], found: &[Entry]) -> Self {
        let with_name = |list: &[Entry], name: &str| list.iter().find(|entry| entry.name == name).cloned();
        let broken = recorded.iter().filter_map(|was| match with_name(found, &was.name) {
            None => Some(format!("{}: recorded in the manifest, but gone; restore it", was.name)),
            Some(is) if is != *was => Some(format!(
                "{}: expected {} bytes with checksum {:016x}, found {} bytes with {:016x}; restore it: \
                 golden files are added, never changed",
                was.name, was.length, was.checksum, is.length, is.checksum
            )),
            Some(_) => None,
        });
        let new = found.iter().filter(|is| with_name(recorded, &is.name).is_none()).cloned();
        Self { broken: broken.collect(), new: new.collect() }
    }
}

fn parse(manifest: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    for (line, number) in manifest.lines().zip(1..) {
        let entry = Entry::parse(line)
            .ok_or_else(|| format!("line {number}: expected `name length checksum`, found `{line}`"))?;
        if entries.iter().any(|earlier| earlier.name == entry.name) {
            return Err(format!("line {number}: {} is recorded twice", entry.name));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn read_if_any(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        result => result,
    }
}

/// FNV-1a of 64 bits, with the offset and the prime of its authors (Fowler, Noll, Vo).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed at the end of its test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("xtask-{test}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn write(&self, name: &str, content: &str) {
            fs::write(self.0.join(name), content).unwrap();
        }

        fn manifest(&self) -> String {
            fs::read_to_string(self.0.join(MANIFEST)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn fnv1a_agrees_with_its_authors() {
        // From the test vectors published with FNV.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let entry = Entry::of("bloom-v1.mayhap", b"a");
        assert_eq!(entry.to_string(), "bloom-v1.mayhap 1 af63dc4c8601ec8c");
        assert_eq!(Entry::parse(&entry.to_string()), Some(entry));
    }

    #[test]
    fn a_line_of_another_shape_is_refused() {
        for line in ["", "a", "a 1", "a 1 2", "a  1 af63dc4c8601ec8c", "a 1 af63dc4c8601ec8c x", "a x 1"] {
            assert_eq!(Entry::parse(line), None, "{line}");
        }
        let twice = "a 1 af63dc4c8601ec8c\na 1 af63dc4c8601ec8c\n";
        assert_eq!(parse(twice), Err("line 2: a is recorded twice".to_owned()));
        assert_eq!(
            parse("a 1 af63dc4c8601ec8c\nb"),
            Err("line 2: expected `name length checksum`, found `b`".to_owned())
        );
    }

    #[test]
    fn changed_missing_and_new_files_are_told_apart() {
        let [same, was, gone] = [("same", "s"), ("changed", "c"), ("gone", "g")]
            .map(|(name, content)| Entry::of(name, content.as_bytes()));
        let is = Entry::of("changed", b"d");
        let new = Entry::of("new", b"n");
        let comparison = Comparison::between(&[same.clone(), was, gone], &[same, is, new.clone()]);
        assert_eq!(comparison.new, [new]);
        assert_eq!(comparison.broken.len(), 2);
        assert!(comparison.broken[0].starts_with("changed: expected 1 bytes"), "{comparison:?}");
        assert!(comparison.broken[1].starts_with("gone: recorded"), "{comparison:?}");
    }

    #[test]
    fn recording_appends_and_never_rewrites() {
        let folder = Folder::new("appends");
        folder.write("b", "foobar");
        folder.write("README.md", "not golden");
        assert_eq!(record(&folder.0).unwrap().len(), 1);
        assert_eq!(folder.manifest(), "b 6 85944171f73967e8\n");

        // A last line without its end, as an editor may leave it; and a name that sorts before.
        folder.write(MANIFEST, "b 6 85944171f73967e8");
        folder.write("a", "a");
        assert_eq!(record(&folder.0).unwrap().len(), 1);
        let both = "b 6 85944171f73967e8\na 1 af63dc4c8601ec8c\n";
        assert_eq!(folder.manifest(), both);
        assert_eq!(record(&folder.0), Ok(Vec::new()));
        assert_eq!(folder.manifest(), both);
    }

    #[test]
    fn recording_refuses_a_changed_file() {
        let folder = Folder::new("refuses");
        folder.write("a", "a");
        record(&folder.0).unwrap();
        folder.write("a", "b");
        folder.write("new", "n");
        let problem = record(&folder.0).unwrap_err();
        assert!(problem.contains("a: expected 1 bytes with checksum af63dc4c8601ec8c"), "{problem}");
        assert_eq!(folder.manifest(), "a 1 af63dc4c8601ec8c\n");
    }

    #[test]
    fn missing_folders_are_fine() {
        let root = Folder::new("missing");
        fs::create_dir_all(root.0.join("crates/one/src")).unwrap();
        assert_eq!(check(&root.0), Ok(()));
    }

    #[test]
    fn a_file_that_was_never_recorded_is_reported() {
        let root = Folder::new("unrecorded");
        let golden = root.0.join("crates/one/tests/golden");
        fs::create_dir_all(&golden).unwrap();
        fs::write(golden.join("a"), "a").unwrap();
        assert!(check(&root.0).unwrap_err().contains("cargo xtask golden"));
        record(&golden).unwrap();
        assert_eq!(check(&root.0), Ok(()));
    }
}
