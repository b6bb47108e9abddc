//! `build --format` and `build --to`: filters by the rules of other programs, to the byte what those programs make.

use crate::foreign::{Sample, sample, samples};
use crate::runner::{Folder, lines};

/// A filter of another program, and the options that make it.
struct Made {
    sample: Sample,
    options: String,
    /// Halves of it add up to the same bytes, which tell nothing of their history.
    merges: bool,
}

fn made(sample: Sample, capacity: f64, fpr: f64, more: &str, merges: bool) -> Made {
    let options = format!("-n {} -p {fpr} {} {more}", capacity.max(1.0), sample.kind);
    Made { sample, options, merges }
}

fn of_guava() -> Vec<Made> {
    let make = |sample: Sample| {
        let version = match &sample.name {
            name if name.starts_with("g32") => "--peer-version 16.0",
            name if name.contains("guava33") => "",
            _ => "--peer-version 31.1.0",
        };
        let (capacity, fpr) = (sample.number("expected_insertions"), sample.number("fpp"));
        made(sample, capacity.unwrap(), fpr.unwrap(), version, true)
    };
    samples("guava", 20).into_iter().map(make).collect()
}

fn of_go() -> Vec<Made> {
    // Those of `New` have bits and probes that no number of keys and no rate gives.
    let estimated = samples("go-bloom", 30).into_iter().filter(|sample| sample.name.starts_with("est-"));
    estimated
        .map(|sample| {
            let (capacity, fpr) = (sample.number("n"), sample.number("fpp"));
            made(sample, capacity.unwrap(), fpr.unwrap(), "", true)
        })
        .collect()
}

/// Files of DCSO's count the keys that changed something, so that halves do not add up. `d-data` has data that no filter
/// has, and `d-gzip` is made by the name of its file.
fn of_dcso() -> Vec<Made> {
    let plain =
        samples("dcso", 5).into_iter().filter(|sample| sample.name != "d-data" && sample.name != "d-gzip");
    plain
        .map(|sample| {
            let (capacity, fpr) = (sample.number("n"), sample.number("fpp"));
            made(sample, capacity.unwrap(), fpr.unwrap(), "", false)
        })
        .collect()
}

fn of_spark() -> Vec<Made> {
    let told = samples("spark", 13).into_iter().filter(|sample| sample.number("expected_items").is_some());
    told.map(|sample| {
        let version = if sample.name.starts_with("v1") { "--peer-version 4.0" } else { "" };
        let seed = sample.manifest["seed"].as_i64().unwrap() as i32 as u32;
        let more = if seed == 0 { version.into() } else { format!("{version} --seed {seed}") };
        let (capacity, fpr) = (sample.number("expected_items"), sample.number("fpp"));
        made(sample, capacity.unwrap(), fpr.unwrap(), &more, true)
    })
    .collect()
}

/// Those that were reserved by a command, and grow.
fn of_redisbloom() -> Vec<Made> {
    let grows = |sample: &Sample| {
        let reserved = sample.manifest["reserve"].as_str();
        sample.name.starts_with("bf-") && reserved.is_some_and(|words| !words.ends_with("NONSCALING"))
    };
    let growing = samples("redisbloom", 15).into_iter().filter(grows);
    growing
        .map(|sample| {
            let reserve = sample.manifest["reserve"].as_str().unwrap().to_string();
            let words: Vec<&str> = reserve.split(' ').collect();
            let growth = words.get(3).map_or(String::new(), |growth| format!("--growth {growth}"));
            // Later ones grant no rate above one in four.
            let more = format!("--peer-version 2.8 {growth}");
            made(sample, words[1].parse().unwrap(), words[0].parse().unwrap(), &more, false)
        })
        .collect()
}

fn of_others() -> Vec<Made> {
    let cuckoo = sample("redisbloom", "cf-default");
    let crate_ = sample("bloomfilter-crate", "fixed-seed");
    let sbbf = ["pa-int", "pa-long", "pa-mixed", "pa-str"].map(|name| {
        let sample = sample("parquet", name);
        let (capacity, fpr) = (sample.number("ndv"), sample.number("fpp"));
        made(sample, capacity.unwrap(), fpr.unwrap(), "", true)
    });
    [made(cuckoo, 1000.0, 0.02, "", false), made(crate_, 1000.0, 0.01, "", true)]
        .into_iter()
        .chain(sbbf)
        .collect()
}

/// In one go, in a file of ours first, in two steps, and by two filters that become one.
fn is_made_to_the_byte(made: &Made) {
    let (folder, sample, options) = (Folder::new(), &made.sample, &made.options);
    let (name, format, kind) = (&sample.name, sample.format, sample.kind);
    let keys = sample.inserted();
    let count = keys.lines().count();
    folder.write("keys", &keys);
    let (first, rest) = keys.split_at(keys.split_inclusive('\n').take(count / 2).map(str::len).sum());
    folder.write("first", first);
    folder.write("rest", rest);
    let run = |arguments: &str| folder.mayhap(arguments).run().ends(0);
    let must_be_theirs = |file: &str, how: &str| {
        assert!(folder.read(file) == sample.file, "{name} of {format}, {how}: another file");
    };

    run(&format!("build --to {format} -o file {options} keys")).says(" by the rules of ");
    must_be_theirs("file", "in one go");
    folder.mayhap(&format!("build --to {format} -o file {options}")).input(&keys).run().ends(0);
    must_be_theirs("file", "from standard input");
    let output = folder.mayhap(&format!("build --to {format} -o - {options} keys")).run().ends(0).out;
    assert!(output == sample.file, "{name}: another output");
    run(&format!("build --format {format} -o ours {options} keys"));
    run(&format!("convert ours -o file --to {format}"));
    must_be_theirs("file", "by way of ours");
    sample.must_answer(&folder, "ours", "");

    run(&format!("build --to {format} -o file {options} first"));
    run(&format!("add file {kind} rest"));
    must_be_theirs("file", "in two steps");
    run(&format!("build --format {format} -o ours {options} first"));
    folder.mayhap(&format!("add ours {kind}")).input(rest).run().ends(0);
    run(&format!("convert ours -o file --to {format}"));
    must_be_theirs("file", "in two steps, by way of ours");

    if made.merges {
        run(&format!("build --to {format} -o one {options} first"));
        run(&format!("build --to {format} -o two {options} rest"));
        run("merge -o file one two");
        must_be_theirs("file", "merged");
        run("convert two -o ours --to mayhap");
        run("merge -o both one ours");
        assert_eq!(folder.mayhap("info --json both").run().ends(0).json()["format"], "mayhap");
        run(&format!("convert both -o file --to {format}"));
        must_be_theirs("file", "merged with one of ours");
    }
}

fn are_made(all: Vec<Made>, count: usize) {
    assert_eq!(all.len(), count);
    all.iter().for_each(is_made_to_the_byte);
}

#[test]
fn filters_of_guava_are_made() {
    are_made(of_guava(), 20);
}

#[test]
fn filters_of_go_are_made() {
    are_made(of_go(), 18);
}

#[test]
fn filters_of_dcso_are_made() {
    are_made(of_dcso(), 3);
}

#[test]
fn filters_of_spark_are_made() {
    are_made(of_spark(), 12);
}

#[test]
fn filters_of_redisbloom_are_made() {
    are_made(of_redisbloom(), 5);
}

#[test]
fn filters_of_others_are_made() {
    are_made(of_others(), 6);
}

/// Without -n it is made for the keys that there are, at the rate of one percent.
#[test]
fn keys_are_counted_if_nobody_says_how_many_there_are() {
    let folder = Folder::new();
    for (program, name, options) in [
        ("guava", "g64-bytes", ""),
        ("go-bloom", "est-plain", ""),
        ("dcso", "d-plain", ""),
        ("spark", "v2-long", ""),
        ("bloomfilter-crate", "fixed-seed", ""),
        ("parquet", "pa-str", ""),
        ("guava", "g64-utf8-default", "-p 3%"),
        ("spark", "v1-str-plain", "-p 3% --peer-version 4"),
    ] {
        let sample = sample(program, name);
        let keys = sample.inserted();
        folder.write("keys", &keys);
        folder.write("first", keys.split_inclusive('\n').take(400).collect::<String>());
        folder.write("rest", keys.split_inclusive('\n').skip(400).collect::<String>());
        let build = format!("build --to {} -o file {} {options}", sample.format, sample.kind);
        folder.mayhap(&format!("{build} keys")).run().ends(0);
        assert!(folder.read("file") == sample.file, "{name} from a file: another file");
        folder.mayhap(&format!("{build} first rest")).run().ends(0);
        assert!(folder.read("file") == sample.file, "{name} from two files: another file");
        folder.mayhap(&build).input(&keys).run().ends(0);
        assert!(folder.read("file") == sample.file, "{name} from standard input: another file");
        folder.sh(&format!("gzip -c keys > keys.gz && $MAYHAP {build} keys.gz")).run().ends(0);
        assert!(folder.read("file") == sample.file, "{name} from gzip: another file");
    }
}

#[test]
fn no_key_makes_a_filter_that_says_no() {
    let folder = Folder::new();
    for format in [
        "guava",
        "go",
        "go-json",
        "go-gob",
        "dcso",
        "spark",
        "redisbloom",
        "redisbloom-cuckoo",
        "bloomfilter-crate",
        "sbbf",
    ] {
        for way in ["--to", "--format"] {
            folder.mayhap(&format!("build {way} {format} -o file")).run().ends(0).says("with 0 keys");
            folder.mayhap("check file").input(lines("key-", 100)).run().ends(1).prints("");
        }
    }
}

#[test]
fn what_was_built_is_told_as_json() {
    let folder = Folder::new();
    let built = folder.mayhap("build --json --to go-json -o file").input("a\nb\n").run().ends(0).json();
    assert_eq!(
        (&built["format"], &built["rule"], &built["family"]),
        (&"go-json".into(), &"go".into(), &"bloom".into())
    );
    assert_eq!((&built["inserted"], &built["capacity"]), (&2.into(), &2.into()));
    let built = folder.mayhap("build --json --format spark -o file").input("a\n").run().ends(0).json();
    assert_eq!((&built["format"], &built["rule"]), (&"mayhap".into(), &"spark".into()));
    let converted = folder.mayhap("convert --json file -o spark --to spark").run().ends(0).json();
    assert_eq!(
        (&converted["from"], &converted["to"], &converted["rule"]),
        (&"mayhap".into(), &"spark".into(), &"spark".into())
    );
    let built = folder.mayhap("build --json --to dcso -o list.gz").input("a\n").run().ends(0).json();
    assert_eq!(built["format"], "dcso");
    assert_eq!(folder.read("list.gz")[..2], [0x1f, 0x8b]);
}

/// The values are those of a running Spark.
#[test]
fn a_runtime_filter_of_sparks_sql_hashes_values_first() {
    let folder = Folder::new();
    let hashes = "2329537736397141650\n-7001672635703045582\n";
    folder.mayhap("build --to spark -p 1e-6 -n 100 --as i64 -o fed").input(hashes).run().ends(0);
    folder.mayhap("build --to spark --hash xxh64 -p 1e-6 -n 100 -o text").input("user:0\n").run().ends(0);
    folder.mayhap("add text --hash xxh64 --as i64").input("1\n").run().ends(0);
    assert!(folder.read("text") == folder.read("fed"), "another file");
    folder.mayhap("check fed --hash xxh64 --key user:0").run().ends(0);
    folder.mayhap("check fed --key user:0").run().ends(1);
    // A file of ours knows it.
    folder.mayhap("convert fed -o ours --to mayhap --hash xxh64").run().ends(0);
    folder.mayhap("check ours --key user:0").run().ends(0);
    folder.mayhap("check ours --as i64 --key 1").run().ends(0);
}

const ALL: &str = "there are mayhap, guava, go, go-json, go-gob, dcso, spark, redisbloom, redisbloom-cuckoo, \
    bloomfilter-crate, sbbf, xor8, xor16, fuse8, fuse16, pybloom-live, pyprobables, rbloom, roaring, parquet";
const BUILT: &str = "those that are built are mayhap, guava, go, go-json, go-gob, dcso, spark, redisbloom, \
    redisbloom-cuckoo, bloomfilter-crate, sbbf";

#[test]
fn what_a_rule_does_not_have_is_refused() {
    let folder = Folder::new();
    folder.write("keys", "a\nb\n");
    for option in [
        "--family bloom",
        "--exact",
        "--fastest",
        "--counts",
        "--counting-rule minimal-increase",
        "--counter-bits 4",
        "--max-count 3",
        "--removable",
        "--grow",
        "--doublings 3",
        "--tightening 0.5",
        "--static",
        "--smallest",
        "--universe keys",
        "--memory 1GiB",
        "--layout compact",
        "--foldable",
        "--keyed",
        "--key-file k",
        "--except keys",
    ] {
        for way in ["--to", "--format"] {
            folder
                .mayhap(&format!("build {way} guava -o file {option} keys"))
                .run()
                .ends(2)
                .says(&format!("'{way} <NAME>' cannot be used with '{}", option.split(' ').next().unwrap()));
        }
    }
    for (options, said) in [
        ("--to guava --seed 1", "guava takes no seed; leave it out (--seed)"),
        ("--to spark --peer-version 4.0 --seed 1", "spark takes no seed; leave it out"),
        ("--to spark --seed 0x100000000", "seed must be 0 to 4294967295, not 4294967296 (--seed)"),
        ("--to guava --growth 2", "guava takes no growth; leave it out (--growth)"),
        (
            "--to go --peer-version 3.3",
            "--peer-version: filters of the format go are the same in all versions",
        ),
        ("--to guava -p 5", "did you mean 5% (0.05)?"),
        (
            "--to redisbloom-cuckoo -p 1%",
            "-p 0.01: filters of the format redisbloom-cuckoo have a rate of 1.56%, whatever is requested; \
             leave it out",
        ),
        ("--to guava -n 0", "capacity must be 1 to 281474976710656, not 0"),
        ("--to guava --as i64", "keys: line 1: \"a\" is not a whole number"),
        ("--to guava --peer-version new", "\"new\" is not the version of a program, such as 4.0 or 33.4.8"),
        ("--peer-version 4.0", "--hash and --peer-version are for --format and --to"),
        ("--hash xxh64", "--hash and --peer-version are for --format and --to"),
        ("--hash crc", "no hash function is called \"crc\"; there are sha256, xxh64, md5"),
        ("--to nothing", ALL),
        ("--format nothing", ALL),
        ("--to xor8", BUILT),
        ("--format rbloom", BUILT),
        ("--to roaring", BUILT),
        ("--to parquet", BUILT),
        ("--format pyprobables", BUILT),
        (
            "--format guava --to go",
            "--format guava and --to go: a filter by the rules of guava cannot become a file of the format go; leave \
             --format out",
        ),
        ("--format mayhap --to go", "--format mayhap and --to go: "),
    ] {
        folder.mayhap(&format!("build {options} -o file keys")).run().ends(2).says(said);
    }
    folder
        .mayhap("build --to guava -o keys keys")
        .run()
        .ends(2)
        .says_only("mayhap: keys: is both a file with keys and the file to write");
    assert_eq!(folder.names(), ["keys"]);
    // One rule in two formats is no contradiction.
    folder.mayhap("build --format go --to go-json -o json keys").run().ends(0);
    assert!(folder.read("json").starts_with(b"{\"m\":"));
}

/// `New(1000, 4)` of a file that Go wrote, with the same keys: byte by byte.
#[test]
fn go_filters_of_given_size_are_those_of_new() {
    let folder = Folder::new();
    for format in ["go", "go-json", "go-gob"] {
        folder
            .mayhap(&format!("build -o f --force --to {format} --bits 1000 --probes 4"))
            .input("x\n")
            .run()
            .ends(0);
        let info = folder.mayhap("info --json f").run().ends(0).json();
        assert_eq!(
            (&info["format"], &info["bits"], &info["probes"]),
            (&format.into(), &1000.into(), &4.into())
        );
        folder.mayhap("check f --key x").run().ends(0).prints("x\n");
    }
    folder.mayhap("build -o f --force --format go --bits 65 --probes 3").input("x\n").run().ends(0);
    assert_eq!(folder.mayhap("info --json f").run().ends(0).json()["bits"], 65);
    for (options, said) in [
        ("--to guava --bits 100 --probes 3", "those of go alone of bits and probes; leave them out"),
        ("--to go --bits 100", "is made by --bits and --probes together, or by -n and -p; give both of one"),
        ("--to go --probes 3", "is made by --bits and --probes together"),
        ("--to go --bits 100 --probes 3 -n 5", "say all of a filter of the format go; leave -n and -p out"),
        ("--to go --bits 100 --probes 3 -p 1%", "leave -n and -p out"),
        (
            "--to spark --probes 3",
            "--bits and --probes: filters of the format spark are made of a number of keys",
        ),
    ] {
        folder.mayhap(&format!("build -o g {options}")).input("x\n").run().ends(2).says(said);
    }
    assert!(!folder.path("g").exists());
}

/// Neither program writes down how many keys a filter was made for.
#[test]
fn what_a_file_does_not_say_is_called_a_guess() {
    let folder = Folder::new();
    for format in ["guava", "go", "spark"] {
        folder.mayhap(&format!("build -o f --force --to {format} -n 1000 -p 1%")).input("x\n").run().ends(0);
        let info = folder.mayhap("info --json f").run().ends(0).json();
        assert_eq!(info["capacity_guessed"], true, "{format}");
        let text = folder.mayhap("info f").run().ends(0);
        let text = String::from_utf8_lossy(&text.out).into_owned();
        assert_eq!(text.matches("; a guess, the file does not say it").count(), 2, "{format}: {text}");
    }
    // A file of ours says it, by whatever rules it is.
    for options in ["--format guava -n 1000 -p 1%", "--to redisbloom -n 1000 -p 1%", "-n 1000"] {
        folder.mayhap(&format!("build -o f --force {options}")).input("x\n").run().ends(0);
        assert_eq!(
            folder.mayhap("info --json f").run().ends(0).json()["capacity_guessed"],
            false,
            "{options}"
        );
    }
}
