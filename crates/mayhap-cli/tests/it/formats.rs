//! Filter files of other programs: what they wrote is read, asked, told about, converted and changed.

use std::io::Read;

use crate::foreign::{Sample, said, sample, samples};
use crate::runner::{Folder, lines};

/// What a file of DCSO's holds, in gzip or not.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain) {
        Ok(_) => plain,
        Err(_) => bytes.to_vec(),
    }
}

/// Asked by its name and, where it shows, without; told about; in a file of ours and back.
fn holds_what_its_program_put_in(sample: &Sample) {
    let (folder, format, hash) = (Folder::new(), sample.format, sample.hash);
    folder.write("file", &sample.file);
    sample.must_answer(&folder, "file", &format!("--format {format} {hash}"));
    let is_shown = format != "rbloom";
    if is_shown {
        sample.must_answer(&folder, "file", hash);
    }
    tells_what_it_is(sample, &folder);

    let (name, kind) = (if is_shown { String::new() } else { format!("--format {format}") }, sample.kind);
    folder
        .mayhap(&format!("convert file -o ours --to mayhap {name} {hash} {kind}"))
        .run()
        .ends(0)
        .says(&format!("mayhap: ours: from {format} to mayhap"));
    sample.must_answer(&folder, "ours", "");
    let ours = folder.mayhap("info --json --verify ours").run().ends(0).json();
    assert_eq!((&ours["format"], &ours["checksum"]), (&"mayhap".into(), &"ok".into()), "{}", sample.name);
    let only_read = ["xor8", "xor16", "fuse8", "fuse16", "pybloom-live", "pyprobables"].contains(&format);
    let back = folder.mayhap(&format!("convert ours -o back --to {format}")).run();
    if only_read {
        back.ends(2).says(&format!("files of the format {format} are only read"));
        assert!(!folder.path("back").exists());
    } else {
        back.ends(0);
        assert!(folder.read("back") == unpacked(&sample.file), "{}: another file", sample.name);
    }
}

fn tells_what_it_is(sample: &Sample, folder: &Folder) {
    let (format, hash) = (sample.format, sample.hash);
    let info = folder.mayhap(&format!("info --json file --format {format} {hash}")).run().ends(0).json();
    let is_chain = sample.name == "pl-scalable" || sample.name == "pp-expanding";
    let (rule, family) = match format {
        "go" | "go-json" | "go-gob" => ("go", "bloom"),
        "redisbloom" => (format, "scalable"),
        "redisbloom-cuckoo" => (format, "cuckoo"),
        "sbbf" => (format, "blocked"),
        "xor8" | "xor16" | "fuse8" | "fuse16" => (format, "fuse"),
        _ if is_chain => (format, "scalable"),
        _ => (format, "bloom"),
    };
    let name = &sample.name;
    assert_eq!(info["format"], format, "{name}");
    assert_eq!(info["rule"], rule, "{name}");
    assert_eq!(info["family"], family, "{name}");
    assert_eq!((&info["checksum"], &info["version"]), (&"none".into(), &serde_json::Value::Null), "{name}");
    let told = |field: &str| info[field].as_f64();
    let manifest = |fields: &[&str]| fields.iter().find_map(|field| sample.number(field));
    let bits = manifest(&["bit_size", "m", "number_bits", "size_in_bits"]);
    let bits = bits.or(sample.number("num_bytes").map(|bytes| 8.0 * bytes));
    if let Some(bits) = bits {
        assert_eq!(told("bits"), Some(bits), "{name}");
        if let Some(ones) = sample.number("bits_set") {
            let fill = told("fill").unwrap();
            assert!((fill - ones / bits).abs() < 1e-9, "{name}: fill {fill}, {ones} of {bits} bits");
        }
    }
    if let Some(probes) = manifest(&["num_hash_functions", "k", "num_slices", "number_hashes"]) {
        assert_eq!(told("probes"), Some(probes), "{name}");
    }
    if let Some(rate) = sample.number("expected_fpp") {
        assert!((told("fpr_now").unwrap() - rate).abs() <= 1e-9 * rate.max(1e-9), "{name}: {info}");
    }
    if let Some(capacity) =
        manifest(&["n", "capacity"]).filter(|_| ["dcso", "pybloom-live"].contains(&format))
    {
        assert_eq!(told("capacity"), Some(capacity), "{name}");
    }
    // What the program makes of its bits, if it does: a saturated filter of Guava's is an exception there.
    match manifest(&["approximate_element_count", "approximated_size", "approx_items"]) {
        Some(count) if told("fill") < Some(1.0) => {
            let estimated = told("estimated_len").unwrap();
            assert!((estimated - count).abs() <= 0.51, "{name}: {estimated} and {count}");
        }
        Some(_) | None if told("fill") == Some(1.0) && family == "bloom" => {
            assert_eq!(info["estimated_len"], serde_json::Value::Null, "{name}");
        }
        _ => {}
    }
    let rates = ["fpr_asked", "fpr_now", "fpr_at_capacity"].map(|field| told(field).unwrap());
    assert!(rates.iter().all(|rate| (0.0..=1.0).contains(rate)), "{name}: {rates:?}");
    folder
        .mayhap(&format!("info file --format {format} {hash}"))
        .run()
        .ends(0)
        .shows(&format!("{rule}: hashed and probed as that program does"));
}

fn hold(program: &str, count: usize) {
    for sample in samples(program, count) {
        holds_what_its_program_put_in(&sample);
    }
}

#[test]
fn files_of_guava() {
    hold("guava", 20);
}

#[test]
fn files_of_go() {
    hold("go-bloom", 30);
}

#[test]
fn files_of_dcso() {
    hold("dcso", 5);
}

#[test]
fn files_of_spark() {
    for sample in samples("spark", 13) {
        if sample.name == "v2-dataframe-range1000" {
            let folder = Folder::new();
            folder.write("file", &sample.file);
            folder.mayhap("check -c file --as i64").input(lines("", 1000)).run().ends(0).prints("1000\n");
            tells_what_it_is(&sample, &folder);
        } else {
            holds_what_its_program_put_in(&sample);
        }
    }
}

#[test]
fn dumps_of_redisbloom() {
    hold("redisbloom", 15);
}

#[test]
fn files_of_the_crate_bloomfilter() {
    for name in ["fixed-seed", "other-seed"] {
        holds_what_its_program_put_in(&sample("bloomfilter-crate", name));
    }
}

/// A key is in if it is in one of them.
#[test]
fn a_filter_in_several_files_is_asked_by_which() {
    let samples: Vec<Sample> =
        samples("bloomfilter-crate", 6).into_iter().filter(|sample| sample.name == "scaled-x2").collect();
    let folder = Folder::new();
    let names: Vec<String> = (0..samples.len()).map(|number| format!("f{number}")).collect();
    for (name, sample) in names.iter().zip(&samples) {
        folder.write(name, &sample.file);
    }
    let (names, sample) = (names.join(" "), &samples[0]);
    let done =
        folder.mayhap(&format!("check --which --annotate {names}")).input(sample.absent()).run().ends(0);
    assert_eq!(said(&done.out), sample.answers());
    let done = folder.mayhap(&format!("check --which {names} -c")).input(sample.present()).run().ends(0);
    done.prints(format!("{}\n", sample.present().lines().count()));
    // Together with one of ours and one of another program.
    folder.mayhap("build -o ours -n 10").input("mine\n").run().ends(0);
    folder.mayhap("build -o guava --to guava -n 10").input("mine\ntheirs\n").run().ends(0);
    folder
        .mayhap("check --which ours guava --annotate")
        .input("mine\ntheirs\nnobody's\n")
        .run()
        .ends(0)
        .prints("ours,guava\tmine\tmayhap\nguava\ttheirs\tmayhap\n\tnobody's\tno\n");
}

#[test]
fn filters_cut_out_of_parquet_files() {
    for sample in samples("parquet", 18).iter().filter(|sample| sample.format == "sbbf") {
        holds_what_its_program_put_in(sample);
    }
}

#[test]
fn files_of_fastfilter() {
    hold("fastfilter", 8);
}

#[test]
fn files_of_python_packages() {
    hold("pybloom-live", 4);
    hold("pyprobables", 4);
    hold("rbloom", 3);
}

#[test]
fn bitmaps_of_roaring() {
    for sample in samples("roaring", 3) {
        let folder = Folder::new();
        folder.write("file", &sample.file);
        for format in ["", "--format roaring"] {
            let info = folder.mayhap(&format!("info --json file {format}")).run().ends(0).json();
            assert_eq!((&info["format"], &info["family"]), (&"roaring".into(), &"roaring".into()));
            assert_eq!(info["estimated_len"].as_f64(), sample.number("cardinality"));
            assert_eq!(info["fpr_now"], 0.0);
        }
        folder.mayhap("convert file -o ours --to mayhap").run().ends(0);
        for (file, kind) in [("file", "u64"), ("ours", "u64"), ("file", "i64")] {
            for number in ["first", "last"].iter().flat_map(|&end| sample.manifest[end].as_array().unwrap()) {
                let key = number.as_u64().unwrap();
                let check = format!("check {file} --as {kind} --key {key}");
                folder.mayhap(&check).run().ends(0).prints(format!("{key}\n"));
            }
            // None of them holds this one, nor one of more than 32 bits.
            for key in ["4294967294", "4294967296"] {
                folder.mayhap(&format!("check {file} --as {kind} --key {key}")).run().ends(1);
            }
        }
        folder.mayhap("convert ours -o back --to roaring").run().ends(0);
        assert!(folder.read("back") == sample.file, "{}: another file", sample.name);
    }
    // Ours becomes one of theirs, and takes keys as one.
    let folder = Folder::new();
    folder.mayhap("build -o ours --family roaring --as u64").input("1\n2\n3\n70000\n").run().ends(0);
    folder.mayhap("convert ours -o theirs --to roaring").run().ends(0);
    folder.mayhap("add theirs --as u64").input("4000000000\n").run().ends(0);
    assert!(folder.read("theirs") == sample("roaring", "array-only").file);
    folder.mayhap("remove theirs --as u64").input("70000\n").run().ends(0);
    folder.mayhap("check theirs --as u64").input("3\n70000\n").run().ends(0).prints("3\n");
}

/// Key by key, in place, in the format that the file has.
#[test]
fn added_keys_are_in_the_file_of_the_other_program() {
    for (program, name) in [
        ("guava", "g64-long"),
        ("guava", "g32-unencoded-mixed"),
        ("go-bloom", "est-plain"),
        ("dcso", "d-data"),
        ("spark", "v1-str-plain"),
        ("spark", "v2-int"),
        ("redisbloom", "bf-scaling-x2"),
        ("redisbloom", "cf-default"),
        ("bloomfilter-crate", "fixed-seed"),
        ("parquet", "pa-bytes"),
        ("rbloom", "r-plain"),
    ] {
        let (folder, sample) = (Folder::new(), sample(program, name));
        let (kind, hash, format) = (sample.kind, sample.hash, sample.format);
        let absent = sample.absent();
        let more: String = absent.split_inclusive('\n').take(30).collect();
        folder.write("file", &sample.file);
        let named = if format == "rbloom" { "--format rbloom" } else { "" };
        let options = format!("{named} {hash} {kind}");
        folder
            .mayhap(&format!("add file {options}"))
            .input(&more)
            .run()
            .ends(0)
            .says("mayhap: file: 30 keys added");
        let all = sample.present() + &more;
        let count = all.lines().count();
        let check = |options: &str| {
            let done = folder.mayhap(&format!("check -c file {options}")).input(&all).run();
            done.ends(0).prints(format!("{count}\n"));
        };
        check(&options);
        check(&format!("--format {format} {hash} {kind}"));
        assert_eq!(folder.names(), ["file"], "{name}");
        // In a file of ours the same keys make the same filter.
        folder.write("theirs", &sample.file);
        folder.mayhap(&format!("convert theirs -o ours --to mayhap {options}")).run().ends(0);
        folder.mayhap(&format!("add ours {kind}")).input(&more).run().ends(0);
        folder.mayhap(&format!("convert ours -o back --to {format}")).run().ends(0);
        assert!(folder.read("back") == folder.read("file"), "{name}: another file");
    }
}

#[test]
fn a_file_in_gzip_stays_in_gzip() {
    let (folder, sample) = (Folder::new(), sample("dcso", "d-gzip"));
    folder.write("file", &sample.file);
    folder.mayhap("add file").input("one more\n").run().ends(0);
    let file = folder.read("file");
    assert_eq!(file[..2], [0x1f, 0x8b]);
    assert_ne!(unpacked(&file), unpacked(&sample.file));
    folder.mayhap("check file --key").arg("one more").run().ends(0);
    // By the name of the output.
    folder.write("plain", unpacked(&sample.file));
    folder.mayhap("convert plain -o packed.gz --to dcso").run().ends(0);
    assert_eq!(folder.read("packed.gz")[..2], [0x1f, 0x8b]);
    assert!(unpacked(&folder.read("packed.gz")) == folder.read("plain"));
    sample.must_answer(&folder, "packed.gz", "");
    folder.mayhap("convert packed.gz -o again --to dcso").run().ends(0);
    assert!(folder.read("again") == folder.read("plain"));
}

#[test]
fn a_bad_record_leaves_the_file_as_it_was() {
    for (program, name) in [
        ("guava", "g64-long"),
        ("go-bloom", "est-plain"),
        ("bloomfilter-crate", "fixed-seed"),
        ("spark", "v2-long"),
    ] {
        let (folder, sample) = (Folder::new(), sample(program, name));
        folder.write("file", &sample.file);
        folder.write("keys", "1\n2\nthree\n4\n");
        let add = |arguments: &str| folder.mayhap(&format!("add file --as i64 {arguments}"));
        add("keys").run().ends(2).says("mayhap: keys: line 3: \"three\" is not a whole number");
        add("").input("1\n2\nthree\n").run().ends(2).says("line 3: ");
        add("keys --format").arg(sample.format).run().ends(2).says("keys: line 3: ");
        assert!(folder.read("file") == sample.file, "{name}: another file");
        assert_eq!(folder.names(), ["file", "keys"]);
    }
}

#[test]
fn fingerprints_of_redisbloom_are_counted_and_removed() {
    let sample = sample("redisbloom", "cf-deletes");
    let folder = Folder::new();
    let keys = sample.inserted();
    let first: String = keys.split_inclusive('\n').take(100).collect();
    for (build, convert) in [("--to", ""), ("--format", "convert file -o file --to redisbloom-cuckoo")] {
        let build = format!("build {build} redisbloom-cuckoo -o file -n 512 --as hex");
        folder.mayhap(&build).input(&keys).run().ends(0);
        let removed = folder.mayhap("remove file --as hex").input(&first).run().ends(0);
        removed.says_only("mayhap: file: 100 keys removed, 0 were not in");
        if !convert.is_empty() {
            folder.mayhap(convert).run().ends(0);
        }
        assert!(folder.read("file") == sample.file, "another file");
    }
    folder.mayhap("remove file").input("never added\n").run().ends(1).says("0 keys removed, 1 was not in");

    for (build, file) in [("--to", "theirs"), ("--format", "ours")] {
        let build = format!("build {build} redisbloom-cuckoo -o {file} -n 1000");
        folder.mayhap(&build).input("twice\nonce\ntwice\n").run().ends(0);
        let count = folder.mayhap(&format!("count {file}")).input("once\ntwice\nnever\n").run();
        count.ends(0).prints("once\t1\ntwice\t2\nnever\t0\n");
        folder.mayhap(&format!("remove {file}")).input("twice\n").run().ends(0);
        folder.mayhap(&format!("count {file} --key twice")).run().ends(0).prints("twice\t1\n");
    }
}

#[test]
fn a_parquet_filter_folds() {
    let folder = Folder::new();
    folder.write("keys", lines("key-", 200));
    folder.mayhap("build --to sbbf -n 100k -o large keys").run().ends(0);
    folder.mayhap("build --format sbbf -n 100k -o ours keys").run().ends(0);
    folder.mayhap("fold -p 1% -o small large").run().ends(0).says("mayhap: small: folded by ");
    folder.mayhap("fold -p 1% -o ours-small ours").run().ends(0);
    let info = folder.mayhap("info --json small").run().ends(0).json();
    assert_eq!((&info["format"], &info["rule"]), (&"sbbf".into(), &"sbbf".into()));
    assert!(folder.read("small").len() < folder.read("large").len() / 100);
    folder.mayhap("check -c small keys").run().ends(0).prints("200\n");
    folder.mayhap("convert ours-small -o back --to sbbf").run().ends(0);
    assert!(folder.read("back") == folder.read("small"), "another file");
    folder.mayhap("fold -p 1e-9 -o none small").run().ends(2).says("nothing was written");
}

/// The peers' own absent keys, and random ones.
#[test]
fn a_file_of_another_program_is_tested() {
    for (program, name) in [
        ("guava", "g64-utf8-large"),
        ("go-bloom", "est-large"),
        ("dcso", "d-large"),
        ("spark", "v2-large"),
        ("redisbloom", "bf-large"),
        ("redisbloom", "cf-default"),
        ("bloomfilter-crate", "fixed-seed"),
        ("parquet", "pa-long"),
        ("fastfilter", "fuse8-str"),
        ("fastfilter", "xor16-u64"),
        ("pybloom-live", "pl-plain"),
        ("pyprobables", "pp-plain"),
    ] {
        let (folder, sample) = (Folder::new(), sample(program, name));
        folder.write("file", &sample.file);
        folder.write("present", sample.present());
        folder.write("absent", sample.absent());
        let kind = sample.kind;
        let tested =
            folder.mayhap(&format!("test file present --absent absent {kind} --json")).run().ends(0).json();
        assert_eq!((&tested["missing"], &tested["absent_asked"]), (&0.into(), &2000.into()), "{name}");
        folder.mayhap(&format!("test file present {kind}")).run().ends(0).shows("holds");
        folder.mayhap(&format!("convert file -o ours --to mayhap {kind}")).run().ends(0);
        folder.mayhap(&format!("test ours present --absent absent {kind}")).run().ends(0).shows("holds");
        folder.mayhap(&format!("test file absent {kind}")).run().ends(1).shows("FAILS: keys are missing");
    }
}

/// A count of 35,615 begins with the bytes that gzip does.
#[test]
fn a_roaring_file_that_begins_as_gzip_does_is_not_written_in_gzip() {
    let folder = Folder::new();
    let set: roaring::RoaringTreemap = (0..35_615u64).map(|high| high << 32).collect();
    let mut bytes = Vec::new();
    set.serialize_into(&mut bytes).unwrap();
    assert_eq!(bytes[..2], [0x1f, 0x8b]);
    folder.write("f", &bytes);
    folder.mayhap("add f --format roaring --as u64").input("5\n").run().ends(0);
    folder
        .mayhap("check -c f --format roaring --as u64")
        .input("5\n4294967296\n7\n")
        .run()
        .ends(0)
        .prints("2\n");
}

#[test]
fn what_a_file_does_not_tell_of_its_keys_must_be_said_before_it_becomes_ours() {
    let folder = Folder::new();
    folder.write("f", &sample("pyprobables", "pp-bytes").file);
    folder.mayhap("convert f -o g --to mayhap").run().ends(2).says_only(
        "mayhap: f: the format pyprobables does not tell what its keys are; say --as bytes if they are text, or else --as hex",
    );
    folder.mayhap("convert f -o g --to mayhap --as hex").run().ends(0);
}
