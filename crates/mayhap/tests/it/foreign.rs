//! Files that other programs wrote, with the keys that they inserted and their answers to others.

use std::path::{Path, PathBuf};

use mayhap::interop::{self, Making, Reading};
use mayhap::{AnyFilter, Bytes};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// One filter with its manifest.
pub(crate) struct Golden {
    folder: PathBuf,
    pub(crate) manifest: Value,
}

/// What is said of a key file by its name.
pub(crate) enum Lines {
    Text,
    Hex,
    Decimal64,
    Decimal32,
}

impl Golden {
    /// The filter of this name.
    pub(crate) fn new(folder: &str, name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(folder);
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect(name);
        Self { folder, manifest: serde_json::from_str(&text).expect(name) }
    }

    /// The names of all filters of a folder, sorted; there are so many.
    pub(crate) fn names(folder: &str, count: usize) -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(folder);
        let entries = std::fs::read_dir(path).expect(folder);
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
        let mut names: Vec<String> = names
            .filter_map(|name| name.strip_suffix(".json").map(String::from))
            .filter(|name| !name.ends_with(".bloom"))
            .collect();
        names.sort();
        assert_eq!(names.len(), count, "filters in {folder}: {names:?}");
        names
    }

    /// A field of the manifest, as text.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.manifest[field].as_str().unwrap_or_else(|| panic!("{field} in {}", self.manifest))
    }

    /// A field of the manifest, as a whole number.
    pub(crate) fn number(&self, field: &str) -> u64 {
        self.manifest[field].as_u64().unwrap_or_else(|| panic!("{field} in {}", self.manifest))
    }

    /// A field of the manifest, as a rate.
    pub(crate) fn rate(&self, field: &str) -> f64 {
        self.manifest[field].as_f64().unwrap_or_else(|| panic!("{field} in {}", self.manifest))
    }

    /// A file beside the manifest.
    pub(crate) fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(file)).expect(file)
    }

    /// The file that the manifest names, unchanged since it was made.
    pub(crate) fn file(&self) -> Vec<u8> {
        let bytes = self.read(self.text("file"));
        assert_eq!(sha256(&bytes), self.text("sha256"), "{}", self.text("file"));
        bytes
    }

    fn keys(&self, file: &str, first: &str) -> Vec<Vec<u8>> {
        let name = self.text(file);
        let text = std::fs::read(self.folder.join(name)).expect(name);
        let first = self.number(first) as usize;
        let lines = text.strip_suffix(b"\n").unwrap_or(&text).split(|&byte| byte == b'\n');
        let keys: Vec<Vec<u8>> = lines.take(first).map(|line| bytes_of(line, kind_of(name))).collect();
        assert_eq!(keys.len(), first, "{name}");
        keys
    }

    /// How the keys are written down.
    pub(crate) fn kind(&self) -> Lines {
        kind_of(self.text("inserted_keys"))
    }

    /// The keys that were inserted, as the bytes that they are by default: numbers little-endian.
    pub(crate) fn inserted(&self) -> Vec<Vec<u8>> {
        self.keys("inserted_keys", "inserted_first")
    }

    /// Keys that were not.
    pub(crate) fn absent(&self) -> Vec<Vec<u8>> {
        self.keys("absent_keys", "absent_first")
    }

    /// Every key that was inserted is in, and all other answers are those of the program. Asked one by one, in batches of
    /// keys, and by digests where they do.
    pub(crate) fn check(&self, filter: &dyn AnyFilter, as_keys: impl Fn(Vec<u8>) -> Vec<u8>) {
        let name = self.text("format");
        let inserted: Vec<Vec<u8>> = self.inserted().into_iter().map(&as_keys).collect();
        let absent: Vec<Vec<u8>> = self.absent().into_iter().map(&as_keys).collect();
        // Some were removed again, in the order in which they came.
        let removed = self.manifest["deleted_first"].as_u64().unwrap_or(0) as usize;
        if let Some(key) = inserted[removed..].iter().find(|key| !filter.contains(key)) {
            panic!("{name}: {key:x?} is denied");
        }
        let expected = self.text("absent_results");
        let one_by_one: String = absent.iter().map(|key| digit(filter.contains(key))).collect();
        assert_eq!(one_by_one, expected, "{name}");
        let keys: Vec<&[u8]> = absent.iter().map(Vec::as_slice).collect();
        let mut hits = Vec::new();
        filter.contains_keys(&keys, &mut hits);
        assert_eq!(hits.iter().map(|&hit| digit(hit)).collect::<String>(), expected, "{name}: by keys");
        let hashing = filter.hashing();
        let digests: Vec<_> = keys.iter().map(|key| hashing.digest(key)).collect();
        hits.clear();
        filter.contains_batch(&digests, &mut hits);
        if matches!(hashing, mayhap::Hashing::Foreign(hash) if hash.is_wide()) {
            assert!(hits.iter().all(|&hit| hit), "{name}: a digest that says nothing was denied");
        } else {
            assert_eq!(
                hits.iter().map(|&hit| digit(hit)).collect::<String>(),
                expected,
                "{name}: by digests"
            );
        }
    }
}

/// A filter survives our own file format: the same answers, the same bytes of its own format.
pub(crate) fn through_our_container(filter: &dyn AnyFilter) -> Box<dyn AnyFilter> {
    let bytes = mayhap::encode(filter, mayhap::Summing::Payload).to_vec();
    let back = mayhap::open(bytes.clone().into(), None).expect("our own bytes");
    assert_eq!(back.program(), filter.program());
    assert_eq!(back.hashing(), filter.hashing());
    assert_eq!(back.report(), filter.report());
    assert_eq!(mayhap::encode(&*back, mayhap::Summing::Payload).to_vec(), bytes);
    back
}

/// Reads a file of a format, which must be what its structure tells.
pub(crate) fn read(format: &str, bytes: Vec<u8>, reading: &Reading) -> Box<dyn AnyFilter> {
    let format = interop::format(format).expect(format);
    format.read(Bytes::from(bytes), reading).unwrap_or_else(|e| panic!("{}: {e}", format.name))
}

/// Makes an empty filter by the rules of a format.
pub(crate) fn make(format: &str, making: &Making) -> Box<dyn AnyFilter> {
    let format = interop::format(format).expect(format);
    format.make(making).unwrap_or_else(|e| panic!("{}: {e}", format.name))
}

/// Writes a file of a format.
pub(crate) fn write(format: &str, filter: &dyn AnyFilter) -> Vec<u8> {
    let format = interop::format(format).expect(format);
    format.write(filter).unwrap_or_else(|e| panic!("{}: {e}", format.name))
}

/// Inserts keys.
pub(crate) fn insert_all(filter: &mut dyn AnyFilter, keys: &[Vec<u8>]) {
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    filter.insert_keys(&keys, &mut Vec::new()).expect("room for all keys");
}

/// What every loader must survive: cuts anywhere, bytes behind the end, every bit of the first bytes flipped, lengths that
/// claim the world. It never panics, and what it accepts answers and can be written down again.
pub(crate) fn is_hardened(format: &str, bytes: &[u8], reading: &Reading) {
    let name = format;
    let format = interop::format(format).expect(format);
    let try_it = |bytes: Vec<u8>| {
        let _ = interop::recognise(&bytes);
        if let Ok(mut filter) = format.read(Bytes::from(bytes), reading) {
            let _ = (filter.contains(b""), filter.contains(b"key"), filter.report(), filter.details());
            let _ = filter.insert_keys(&[b"key"], &mut Vec::new());
            let ours = mayhap::encode(&*filter, mayhap::Summing::Payload).to_vec();
            mayhap::open(ours.into(), None).unwrap_or_else(|e| panic!("{name}: {e}"));
            let _ = format.write(&*filter);
        }
    };
    for end in (0..bytes.len().min(300)).chain((300..bytes.len()).step_by(97)) {
        try_it(bytes[..end].to_vec());
    }
    try_it([bytes, b"\0"].concat());
    try_it([bytes, b"01234567"].concat());
    let ends = (0..bytes.len().min(120)).chain(bytes.len().saturating_sub(40)..bytes.len());
    for place in ends {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = bytes.to_vec();
            changed[place] ^= change;
            try_it(changed);
        }
    }
    for place in 0..bytes.len().min(120) {
        for (width, value) in [(4, u64::from(u32::MAX)), (4, i32::MAX as u64), (8, u64::MAX), (8, 1 << 61)] {
            for bytes_of_value in [value.to_le_bytes(), (value << (64 - 8 * width)).to_be_bytes()] {
                let mut changed = bytes.to_vec();
                let Some(field) = changed.get_mut(place..place + width) else { continue };
                field.copy_from_slice(&bytes_of_value[..width]);
                try_it(changed);
            }
        }
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digit(hit: bool) -> char {
    if hit { '1' } else { '0' }
}

fn kind_of(name: &str) -> Lines {
    match name.rsplit('.').next() {
        Some("txt") => Lines::Text,
        Some("hex") => Lines::Hex,
        Some("i64") => Lines::Decimal64,
        Some("i32") => Lines::Decimal32,
        _ => panic!("{name} is no key file"),
    }
}

fn bytes_of(line: &[u8], kind: Lines) -> Vec<u8> {
    let text = || std::str::from_utf8(line).expect("ASCII");
    match kind {
        Lines::Text => line.to_vec(),
        Lines::Hex => {
            let pairs = line.chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
            pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal")).collect()
        }
        Lines::Decimal64 => text().parse::<i64>().expect("a number").to_le_bytes().to_vec(),
        Lines::Decimal32 => text().parse::<i32>().expect("a number").to_le_bytes().to_vec(),
    }
}
