//! Filters that other programs wrote, as files for the command line, with the keys that went in and the answers to others.
//! They lie with the library's tests.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::runner::Folder;

/// A filter file of another program.
pub(crate) struct Sample {
    pub(crate) name: String,
    /// The word for `--format`.
    pub(crate) format: &'static str,
    pub(crate) file: Vec<u8>,
    pub(crate) manifest: Value,
    /// What has to be said of its keys.
    pub(crate) kind: &'static str,
    /// What has to be said of the file.
    pub(crate) hash: &'static str,
}

/// The folder of a program.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap/tests/foreign").join(name)
}

/// The first lines of a key file.
pub(crate) fn keys(file: &str, first: usize) -> String {
    let text = std::fs::read_to_string(folder("keys").join(file)).expect(file);
    let lines: Vec<&str> = text.split_inclusive('\n').take(first).collect();
    assert_eq!(lines.len(), first, "{file}");
    lines.concat()
}

/// All filters of a program, one for each of its files; there are so many.
pub(crate) fn samples(program: &str, count: usize) -> Vec<Sample> {
    let entries = std::fs::read_dir(folder(program)).expect(program);
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut names: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".json").map(String::from))
        .filter(|name| !name.ends_with(".bloom"))
        .collect();
    names.sort();
    let samples: Vec<Sample> = names.iter().flat_map(|name| of_name(program, name)).collect();
    assert_eq!(samples.len(), count, "{names:?}");
    samples
}

/// The filter of this name, in the first of its files.
pub(crate) fn sample(program: &str, name: &str) -> Sample {
    of_name(program, name).into_iter().next().expect(name)
}

fn of_name(program: &str, name: &str) -> Vec<Sample> {
    let path = folder(program);
    let read = |file: &str| std::fs::read(path.join(file)).expect(file);
    let manifest: Value = serde_json::from_slice(&read(&format!("{name}.json"))).expect(name);
    let said = |field: &str| read(manifest[field].as_str().expect(field));
    let files = match program {
        "guava" => vec![("guava", said("file"))],
        "go-bloom" => {
            vec![("go", said("file")), ("go-json", said("file_json")), ("go-gob", said("file_gob"))]
        }
        "dcso" => vec![("dcso", said("file"))],
        "spark" => vec![("spark", said("file"))],
        "redisbloom" => {
            let format = if name.starts_with("cf-") { "redisbloom-cuckoo" } else { "redisbloom" };
            let chunks = manifest["chunks"].as_array().expect("chunks").iter().map(|chunk| {
                let bytes = read(chunk["file"].as_str().expect("a name"));
                let iterator = chunk["iterator"].as_i64().expect("a number");
                [&iterator.to_le_bytes()[..], &(bytes.len() as u64).to_le_bytes(), &bytes].concat()
            });
            vec![(format, chunks.collect::<Vec<_>>().concat())]
        }
        // A filter that has grown is several, which its answers are those of together.
        "bloomfilter-crate" => (0..manifest["filters"].as_array().expect("filters").len())
            .map(|number| ("bloomfilter-crate", read(&format!("{name}.filter{number}.bloom"))))
            .collect(),
        "parquet" => vec![("sbbf", said("sbbf_file")), ("parquet", said("file"))],
        "fastfilter" => {
            let formats = ["xor8", "xor16", "fuse8", "fuse16"];
            let format = formats.into_iter().find(|format| name.starts_with(format));
            vec![(format.expect(name), said("file"))]
        }
        "pybloom-live" => vec![("pybloom-live", said("file"))],
        "pyprobables" => vec![("pyprobables", said("file"))],
        "rbloom" => vec![("rbloom", said("file"))],
        "roaring" => vec![("roaring", said("file"))],
        _ => panic!("{program} has no files"),
    };
    let hash = match program {
        "rbloom" => "--hash sha256",
        _ => "",
    };
    let sample = |(format, file): (&'static str, Vec<u8>)| Sample {
        name: name.to_string(),
        format,
        file,
        kind: kind(&manifest),
        hash,
        manifest: manifest.clone(),
    };
    files.into_iter().map(sample).collect()
}

/// How the keys are written down.
fn kind(manifest: &Value) -> &'static str {
    let funnel = manifest["funnel"].as_str().unwrap_or("");
    let keys = manifest["inserted_keys"].as_str().unwrap_or("");
    match keys.rsplit('.').next() {
        _ if funnel.contains("unencodedChars") || funnel.contains("UTF-16LE") => "--as utf16",
        Some("hex") => "--as hex",
        Some("i64") => "--as i64",
        Some("i32") => "--as i32",
        // Where it has to be said of a file that becomes ours; it is the default everywhere else.
        Some("txt") => "--as bytes",
        _ => "--as u64",
    }
}

impl Sample {
    /// A number of the manifest, if it is there.
    pub(crate) fn number(&self, field: &str) -> Option<f64> {
        self.manifest[field].as_f64()
    }

    fn keys(&self, file: &str, first: &str) -> String {
        let name = self.manifest[file].as_str().unwrap_or_else(|| panic!("{file} of {}", self.name));
        let first = self.manifest[first].as_u64().expect(first) as usize;
        keys(name.strip_prefix("../keys/").expect(name), first)
    }

    /// The records of the keys that were inserted.
    pub(crate) fn inserted(&self) -> String {
        self.keys("inserted_keys", "inserted_first")
    }

    /// The records of those that were, and are still in.
    pub(crate) fn present(&self) -> String {
        let removed = self.manifest["deleted_first"].as_u64().unwrap_or(0) as usize;
        self.inserted().split_inclusive('\n').skip(removed).collect()
    }

    /// The records of keys that were not.
    pub(crate) fn absent(&self) -> String {
        self.keys("absent_keys", "absent_first")
    }

    /// What the program says of each of those: 0 or 1.
    pub(crate) fn answers(&self) -> &str {
        self.manifest["absent_results"].as_str().expect("answers")
    }

    /// A file that is asked with some options answers as the program does.
    #[track_caller]
    pub(crate) fn must_answer(&self, folder: &Folder, file: &str, options: &str) {
        let options = format!("{options} {}", self.kind);
        let present = self.present();
        let count = present.lines().count();
        let status = i32::from(count == 0);
        folder
            .mayhap(&format!("check -c {file} {options}"))
            .input(&present)
            .run()
            .ends(status)
            .prints(format!("{count}\n"));
        let done = folder.mayhap(&format!("check --annotate {file} {options}")).input(self.absent()).run();
        assert_eq!(said(&done.out), self.answers(), "{} with {options}", self.name);
    }
}

/// The last column of annotated records: 1 for perhaps, 0 for no.
pub(crate) fn said(out: &[u8]) -> String {
    let lines = out.strip_suffix(b"\n").unwrap_or(out).split(|&byte| byte == b'\n');
    let digit = |line: &[u8]| match line.rsplit(|&byte| byte == b'\t').next() {
        Some(b"mayhap") => '1',
        Some(b"no") => '0',
        _ => panic!("{}", line.escape_ascii()),
    };
    lines.map(digit).collect()
}
