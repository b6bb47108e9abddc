//! Filter files of other programs: what is refused, with the reason and the way out, and that nothing is written then.

use crate::foreign::{sample, samples};
use crate::runner::{Folder, lines};

/// Some files of other programs by short names.
fn files() -> Folder {
    let folder = Folder::new();
    for (file, program, name) in [
        ("guava", "guava", "g64-utf8-mixed"),
        ("go", "go-bloom", "est-plain"),
        ("dcso", "dcso", "d-plain"),
        ("spark", "spark", "v2-long"),
        ("redis", "redisbloom", "bf-scaling-x2"),
        ("cuckoo", "redisbloom", "cf-default"),
        ("sbbf", "parquet", "pa-str"),
        ("xor8", "fastfilter", "xor8-str"),
        ("pl", "pybloom-live", "pl-plain"),
        ("pp", "pyprobables", "pp-plain"),
        ("rbloom", "rbloom", "r-plain"),
        ("roaring", "roaring", "array-only"),
    ] {
        folder.write(file, sample(program, name).file);
    }
    let parquet = samples("parquet", 18).into_iter().rfind(|sample| sample.name == "pa-str");
    folder.write("parquet", parquet.expect("a Parquet file").file);
    folder.mayhap("build -o ours -n 10").input("a\n").run().ends(0);
    folder
}

#[test]
fn bits_of_one_rule_do_not_become_those_of_another() {
    let folder = files();
    let before = folder.names();
    let kept = "other rules give other bits, and those take the keys";
    for (file, to, said) in [
        (
            "guava",
            "go",
            "guava: a filter of the family bloom by the rules of guava, hashed by murmur3-x64-128, cannot become a file of \
             the format go: other rules give other bits, and those take the keys; build it from the keys, with --to go",
        ),
        (
            "ours",
            "guava",
            "ours: a filter of the family bloom by the rules of mayhap, hashed by xxh3-128, cannot become a file of the \
             format guava: other rules give other bits, and those take the keys; build it from the keys, with --to guava",
        ),
        ("go", "guava", kept),
        ("go", "dcso", kept),
        ("dcso", "spark", kept),
        ("spark", "guava", kept),
        ("redis", "redisbloom-cuckoo", kept),
        ("cuckoo", "redisbloom", kept),
        ("redis", "bloomfilter-crate", kept),
        ("sbbf", "guava", kept),
        ("xor8 --as bytes", "sbbf", kept),
        ("pl", "go", kept),
        ("guava", "rbloom", kept),
        ("guava", "roaring", kept),
        ("roaring", "go", kept),
    ] {
        let done = folder.mayhap(&format!("convert {file} -o out --to {to}")).run().ends(2).prints("");
        if said == kept {
            done.says(said)
        } else {
            done.says_only(&format!("mayhap: {said}"))
        };
    }
    let written = "those that are written are mayhap, guava, go, go-json, go-gob, dcso, spark, redisbloom, \
         redisbloom-cuckoo, bloomfilter-crate, sbbf, rbloom, roaring";
    for to in ["xor8", "fuse16", "pyprobables", "pybloom-live"] {
        folder
            .mayhap(&format!("convert guava -o out --to {to}"))
            .run()
            .ends(2)
            .says(&format!("files of the format {to} are only read; {written}"));
    }
    let parquet = folder.mayhap("convert guava -o out --to parquet").run().ends(2);
    parquet.says(&format!("Parquet files are only read; {written}"));
    assert_eq!(folder.names(), before);
}

#[test]
fn a_format_that_nobody_knows_is_refused_with_those_that_there_are() {
    let folder = files();
    for command in
        ["check", "info", "add", "remove", "count", "merge -o out", "fold -p 1% -o out", "test", "label"]
    {
        folder.mayhap(&format!("{command} guava --format guave")).run().ends(2).says(
            "no format is called \"guave\"; did you mean \"guava\"? There are mayhap, guava, go, go-json, go-gob, dcso, spark, ",
        );
    }
    folder
        .mayhap("convert guava -o out --to guave")
        .run()
        .ends(2)
        .says("no format is called \"guave\"; did you mean \"guava\"? There are ");
}

/// As xor8: 84 fingerprints. As pyprobables: 80 bytes of bits and a footer of 66 keys at one percent.
#[test]
fn a_file_that_may_be_of_two_formats_is_of_none_until_it_is_named() {
    let folder = Folder::new();
    let mut file = vec![0; 16 + 84];
    file[..8].copy_from_slice(&7u64.to_le_bytes());
    file[8..16].copy_from_slice(&28u64.to_le_bytes());
    file[80..88].copy_from_slice(&66u64.to_le_bytes());
    file[88..96].copy_from_slice(&0u64.to_le_bytes());
    file[96..].copy_from_slice(&0.01f32.to_le_bytes());
    folder.write("both", &file);
    for command in ["info", "check", "add", "convert -o out --to mayhap", "merge -o out", "test", "count"] {
        folder
            .mayhap(&format!("{command} both"))
            .run()
            .ends(2)
            .prints("")
            .says_only("mayhap: both: may be of the formats xor8 or pyprobables; say which with --format");
    }
    for format in ["xor8", "pyprobables"] {
        let info = folder.mayhap(&format!("info both --format {format} --json")).run().ends(0).json();
        assert_eq!(info["format"], format);
    }
    assert_eq!(folder.names(), ["both"]);
}

#[test]
fn what_a_file_does_not_say_must_be_said() {
    let folder = files();
    for (arguments, said) in [
        (
            "info rbloom",
            "rbloom: not a mayhap file: it starts with \"\\x06\\x00\\x00\\x00\" instead of \"MYHP\"; if another program \
             wrote it, name its format with --format",
        ),
        (
            "check rbloom --format rbloom --key a",
            "rbloom: not a filter of the format rbloom: the file does not say how its keys were hashed; name the rule, if \
             it is one that is known: sha256 (--hash sha256)",
        ),
        (
            "check rbloom --format rbloom --hash md5 --key a",
            "rbloom: --hash md5 is for the format pybloom-live, and this one is rbloom; leave it out",
        ),
        (
            "check guava --hash sha256 --key a",
            "guava: --hash sha256 is for the format rbloom, and this one is guava; leave it out",
        ),
        (
            "add guava --hash xxh64",
            "guava: --hash xxh64 is for the format spark, and this one is guava; leave it out",
        ),
        (
            "build --to guava --hash xxh64 -o out",
            "--hash xxh64 is for the format spark, and this one is guava; leave it out",
        ),
        (
            "convert xor8 -o out --to mayhap",
            "xor8: the format xor8 does not tell what its keys are; say --as i64 or --as u64 if they are integers, or else \
             --as bytes",
        ),
        ("info guava --format guava --column c", "guava: --column is for Parquet files"),
        ("info parquet", "parquet: a Parquet file; name a column with --column (c)"),
        ("info parquet --column d", "parquet: there is no column \"d\"; there are c"),
        ("check roaring --key 1", "roaring: the family roaring holds integers; say --as u64"),
    ] {
        folder.mayhap(arguments).run().ends(2).prints("").says_only(&format!("mayhap: {said}"));
    }
    folder.mayhap("info guava --column c").run().ends(2).says("guava: not a Parquet file that can be read: ");
    folder.mayhap("info ours --column c").run().ends(2).says("ours: not a Parquet file that can be read: ");
    folder.mayhap("info guava --hash crc32").run().ends(2).says("no hash function is called \"crc32\"");
}

/// A column is asked for what it holds.
#[test]
fn keys_of_a_parquet_column_are_of_its_type() {
    let folder = Folder::new();
    for (name, kinds, said) in [
        ("pa-int", ["", "--as i64", "--as u64"], "INT32; say --as i32"),
        ("dd-long", ["", "--as i32", "--as utf16"], "INT64; say --as i64"),
    ] {
        let sample = samples("parquet", 18).into_iter().rfind(|sample| sample.name == name).expect(name);
        folder.write("file", &sample.file);
        for kind in kinds {
            folder
                .mayhap(&format!("check file --column c {kind} --key 1"))
                .run()
                .ends(2)
                .prints("")
                .says_only(&format!("mayhap: file: column \"c\": its values are of the type {said}"));
        }
    }
}

#[test]
fn files_that_are_only_read_are_not_changed() {
    let folder = files();
    for (file, format) in
        [("xor8", "xor8"), ("pl", "pybloom-live"), ("pp", "pyprobables"), ("parquet --column c", "parquet")]
    {
        let name = file.split(' ').next().unwrap();
        let before = folder.read(name);
        for command in ["add", "remove"] {
            let done = folder.mayhap(&format!("{command} {file}")).input("a\n").run();
            done.ends(2).says(&format!("mayhap: {name}: files of the format {format} are only read; "));
        }
        assert!(folder.read(name) == before, "{name} was changed");
        // In a file of ours it is not changed either.
        folder.mayhap(&format!("convert {file} -o frozen --to mayhap --as bytes")).run().ends(0);
        let before = folder.read("frozen");
        if name != "parquet" {
            folder.mayhap("add frozen").input("a\n").run().ends(2).says("cannot insert");
            folder.mayhap("merge -o out frozen frozen").run().ends(2).says("cannot merge");
        }
        assert!(folder.read("frozen") == before, "{name} was changed");
    }
    for (command, said) in [
        (
            "remove guava",
            "guava: a filter by the rules of guava cannot remove; build one of ours from the keys",
        ),
        (
            "count guava --key a",
            "guava: a filter by the rules of guava cannot count; build one of ours from the keys",
        ),
        (
            "fold guava -p 10% -o out",
            "guava: a filter by the rules of guava cannot fold; build one of ours from the keys",
        ),
        (
            "label guava --key a",
            "guava: a filter by the rules of guava cannot label; build one of ours from the keys",
        ),
        (
            "remove redis",
            "redis: a filter by the rules of redisbloom cannot remove; build one of ours from the keys",
        ),
    ] {
        folder.mayhap(command).run().ends(2).says(said);
    }
    assert!(!folder.path("out").exists());
}

#[test]
fn only_filters_that_agree_merge() {
    let folder = files();
    folder.mayhap("build --to guava -n 1000 -o other").input("a\n").run().ends(0);
    folder.mayhap("build --to spark -n 1200 --seed 1 -o seeded").input("a\n").run().ends(0);
    for (files, said) in [
        ("guava go", "guava and go: hash functions differ: murmur3-x64-128 and murmur3-x64-128-twice"),
        (
            "guava other",
            "other and guava: numbers of bits differ: 9600 and 4800; build both with the same capacity and false-positive rate (-n and -p)",
        ),
        ("guava ours", "guava and ours: "),
        ("spark seeded", "spark and seeded: "),
        ("guava cuckoo", "guava and cuckoo: "),
    ] {
        folder.mayhap(&format!("merge -o out {files}")).run().ends(2).says(&format!("mayhap: {said}"));
    }
    assert!(!folder.path("out").exists());
}

#[test]
fn a_state_of_dedup_is_one_of_ours() {
    let folder = files();
    for format in ["guava", "go", "sbbf", "redisbloom-cuckoo"] {
        folder.mayhap(&format!("build --format {format} -o state -n 10")).run().ends(0);
        let before = folder.read("state");
        folder.mayhap("dedup --state state").input("a\n").run().ends(2).prints("").says(
            " cannot be a state, since it hashes keys differently; leave it to `mayhap check -v` and `mayhap add`",
        );
        assert!(folder.read("state") == before);
    }
    let before = folder.read("guava");
    let done = folder.mayhap("dedup --state guava").input("a\n").run().ends(2).prints("");
    done.says("guava: a file of the format guava cannot be a state, since it hashes keys differently; ");
    assert!(folder.read("guava") == before);
}

const OPENING: [&str; 6] =
    ["info", "check --key a", "add", "convert -o out --to mayhap", "merge -o out", "test"];

/// What is no filter is told in one line, whatever it is said to be.
#[test]
fn what_is_no_filter_is_an_error_of_one_line() {
    let folder = Folder::new();
    let noise: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    folder.write("empty", "");
    folder.write("short", "ab");
    folder.write("text", lines("some text ", 300));
    folder.write("noise", noise);
    folder.write("zeros", [0; 4096]);
    let before = folder.names();
    let said = |name: &str| match name {
        "rbloom" => "--format rbloom --hash sha256".to_string(),
        _ => format!("--format {name}"),
    };
    let named = mayhap::interop::FORMATS.iter().map(|format| said(format.name));
    let all: Vec<String> = named.chain([String::new(), "--format parquet --column c".into()]).collect();
    for file in ["empty", "short", "text", "noise", "zeros"] {
        let bytes = folder.read(file);
        for (options, command) in all.iter().flat_map(|options| OPENING.map(|command| (options, command))) {
            let done = folder.mayhap(&format!("{command} {file} {options}")).run().ends(2).prints("");
            assert_eq!(done.err.lines().count(), 1, "{command} {file} {options}: {}", done.err);
            done.says(&format!("mayhap: {file}: "));
        }
        assert!(folder.read(file) == bytes, "{file} was changed");
    }
    assert_eq!(folder.names(), before);
}

/// Half of a file, and one with a number too large in each place of its header.
#[test]
fn damaged_files_are_errors_and_never_panics() {
    let folder = Folder::new();
    for (program, name) in [
        ("guava", "g64-bytes"),
        ("go-bloom", "est-mixed"),
        ("dcso", "d-gzip"),
        ("spark", "v1-bytes"),
        ("redisbloom", "bf-expansion4"),
        ("redisbloom", "cf-bucket4"),
        ("bloomfilter-crate", "other-seed"),
        ("parquet", "pa-int"),
        ("fastfilter", "fuse16-str"),
        ("fastfilter", "xor8-u64"),
        ("pybloom-live", "pl-scalable"),
        ("pyprobables", "pp-expanding"),
        ("roaring", "array-bitmap-run"),
    ] {
        let sample = sample(program, name);
        let (file, format) = (&sample.file, sample.format);
        folder.write("file", &file[..file.len() / 2]);
        for command in OPENING {
            let done = folder.mayhap(&format!("{command} file --format {format}")).run().ends(2).prints("");
            let writes = mayhap::interop::format(format).unwrap().writes();
            match command {
                "add" if !writes => {
                    done.says(&format!("mayhap: file: files of the format {format} are only read"))
                }
                _ => done.says(&format!("mayhap: file: not a filter of the format {format}: ")),
            };
            let done = folder.mayhap(&format!("{command} file")).run().ends(2).prints("");
            assert_eq!(done.err.lines().count(), 1, "{name}, {command}: {}", done.err);
        }
        assert_eq!(folder.names(), ["file"]);
        for place in (0..file.len().min(96)).step_by(8) {
            let mut changed = file.clone();
            changed[place..(place + 8).min(file.len())].fill(0xff);
            folder.write("file", changed);
            for command in ["info", "check --key 1 --as i64", "add --as i64"] {
                let done = folder.mayhap(&format!("{command} file --format {format}")).input("1\n").run();
                let status = done.status.code();
                assert!(status.is_some_and(|status| status <= 2), "{name}, {command}, {place}: {done:?}");
                assert!(!done.err.contains("panicked"), "{name}, {command}, {place}: {}", done.err);
            }
        }
    }
}
