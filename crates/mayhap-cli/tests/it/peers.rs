//! Foreign formats, with the real programs that they belong to: the peer opens what we write, we open what the
//! peer writes, and both give the same answers, on members and on absent keys.
//!
//! `cargo xtask peers` installs the peers. The test of one that is missing is skipped, and says so; in CI it
//! fails. What drives the peers is in the folder `peers`; each driver begins with how it is called.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bloomfilter::Bloom;
use flate2::read::MultiGzDecoder;
use mayhap::interop::bloomfilter_crate::VALKEY_SEED;

use crate::runner::{Folder, lines};

/// The rate that every filter here is made for.
const FPR: &str = "0.01";

/// A program or library with filter files of its own. A kind of keys or files has the peer's name for it.
trait Peer {
    /// Writes a filter of `keys`, one per line, with room for `capacity` of them.
    fn make(&self, file: &Path, capacity: usize, kind: &str, keys: &str);

    /// One digit for each key: 1 for perhaps, 0 for no.
    fn ask(&self, file: &Path, kind: &str, keys: &str) -> String;
}

/// One kind of file with one kind of keys, as the peer calls it and as we do.
struct Case {
    kind: &'static str,
    format: &'static str,
    /// What keys are, as an option of ours.
    keys: &'static str,
    /// What the file does not say of itself, as an option of ours.
    file: &'static str,
    /// Options that are for building alone.
    making: &'static str,
    /// How names of such files end.
    suffix: &'static str,
}

impl Case {
    const fn new(kind: &'static str, format: &'static str, keys: &'static str) -> Self {
        Self { kind, format, keys, file: "", making: "", suffix: "" }
    }

    /// The options with which we open a file of the peer's.
    fn foreign(&self) -> String {
        format!("--format {} {} {}", self.format, self.file, self.keys)
    }
}

/// Keys, one per line.
struct Keys {
    members: String,
    /// Members that come later.
    more: String,
    absent: String,
}

impl Keys {
    fn new(members: usize, key: impl Fn(usize) -> String) -> Self {
        let keys = |range: std::ops::Range<usize>| range.map(|i| key(i) + "\n").collect();
        Self {
            members: keys(0..members),
            more: keys(members..members + 200),
            absent: keys(members + 200..members + 2200),
        }
    }

    /// Text that is not the same in every encoding: beyond ASCII, beyond Latin, beyond 16 bits.
    fn text() -> Self {
        Self::new(800, |i| format!("{}{i}", ["user:", "Käse ", "鍵", "𝄞 "][i % 4]))
    }

    /// Numbers all over the type, on both sides of zero.
    fn numbers(bits: u32) -> Self {
        let spread = |i: usize| (i as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) >> (64 - bits);
        Self::new(800, move |i| spread(i).to_string())
    }

    /// Room for all of them.
    fn capacity(&self) -> usize {
        self.members.lines().count() + self.more.lines().count()
    }

    /// Members and absent keys: what both sides are asked.
    fn questions(&self) -> String {
        format!("{}{}", self.members, self.absent)
    }

    /// Answers to the questions, divided into those about members and those about absent keys.
    fn divide<'a>(&self, answers: &'a str) -> (&'a str, &'a str) {
        answers.split_at(self.members.lines().count())
    }
}

/// What we say about keys, as the peers do.
#[track_caller]
fn we_say(folder: &Folder, file: &str, options: &str, keys: &str) -> String {
    let done = folder.mayhap(&format!("check --annotate {options} {file} -")).input(keys).run().ends(0);
    let text = String::from_utf8(done.out).expect("keys that are text");
    let answer = |line: &str| match line.rsplit_once('\t') {
        Some((_, "mayhap")) => '1',
        Some((_, "no")) => '0',
        _ => panic!("no answer: {line}"),
    };
    text.lines().map(answer).collect()
}

/// A file that the peer has just written, and what the peer says about it.
struct Meeting<'a> {
    peer: &'a dyn Peer,
    case: &'a Case,
    keys: &'a Keys,
    folder: Folder,
    theirs: String,
    questions: String,
    answers: String,
}

impl<'a> Meeting<'a> {
    #[track_caller]
    fn new(peer: &'a dyn Peer, case: &'a Case, keys: &'a Keys) -> Self {
        let (folder, theirs, questions) = (Folder::new(), format!("theirs{}", case.suffix), keys.questions());
        peer.make(&folder.path(&theirs), keys.capacity(), case.kind, &keys.members);
        let answers = peer.ask(&folder.path(&theirs), case.kind, &questions);
        let (members, absent) = keys.divide(&answers);
        assert!(!members.contains('0'), "the peer denies a member: {members}");
        assert!(absent.contains('0'), "the peer denies nothing");
        Self { peer, case, keys, folder, theirs, questions, answers }
    }

    /// We open the peer's file.
    #[track_caller]
    fn we_read(&self) {
        self.we_agree(&self.theirs, &self.case.foreign());
    }

    /// The peer's file goes into our container.
    #[track_caller]
    fn we_keep(&self) {
        self.convert(&self.theirs, &self.case.foreign(), "theirs.mayhap", "mayhap");
        self.we_agree("theirs.mayhap", self.case.keys);
    }

    /// What was kept comes out of our container again.
    #[track_caller]
    fn we_give_back(&self) {
        let back = format!("back{}", self.case.suffix);
        self.convert("theirs.mayhap", "", &back, self.case.format);
        self.is_the_peers_file(&back);
    }

    /// We add keys to the peer's file, and the peer opens it.
    #[track_caller]
    fn we_continue(&self) {
        let Case { kind, format, suffix, .. } = self.case;
        let continued = format!("continued{suffix}");
        self.folder.write(&continued, self.folder.read(&self.theirs));
        let foreign = self.case.foreign();
        self.folder.mayhap(&format!("add {foreign} {continued} -")).input(&self.keys.more).run().ends(0);
        let asked = format!("{}{}", self.keys.more, self.questions);
        let answers = self.peer.ask(&self.folder.path(&continued), kind, &asked);
        let members = self.keys.more.lines().count() + self.keys.members.lines().count();
        assert!(!answers[..members].contains('0'), "{format} {kind}: the peer denies a key: {answers}");
        assert_eq!(we_say(&self.folder, &continued, &foreign, &asked), answers, "{format} {kind}: continued");
    }

    /// From the same keys we write the peer's file: at once, and by way of our container.
    #[track_caller]
    fn we_write(&self) {
        let Case { format, keys, suffix, .. } = self.case;
        let ours = format!("ours{suffix}");
        self.build(&format!("--to {format}"), &ours);
        self.is_the_peers_file(&ours);
        self.the_peer_agrees(&ours);
        let exported = format!("exported{suffix}");
        self.build(&format!("--format {format}"), "ours.mayhap");
        self.we_agree("ours.mayhap", keys);
        self.convert("ours.mayhap", "", &exported, format);
        self.the_peer_agrees(&exported);
        self.convert(&exported, &self.case.foreign(), "imported.mayhap", "mayhap");
        self.we_agree("imported.mayhap", keys);
    }

    #[track_caller]
    fn build(&self, what: &str, output: &str) {
        let (Case { keys, making, .. }, capacity) = (self.case, self.keys.capacity());
        let line = format!("build {what} {making} {keys} -n {capacity} -p {FPR} -o {output} -");
        self.folder.mayhap(&line).input(&self.keys.members).run().ends(0);
    }

    #[track_caller]
    fn convert(&self, input: &str, options: &str, output: &str, to: &str) {
        self.folder.mayhap(&format!("convert {options} {input} -o {output} --to {to}")).run().ends(0);
    }

    #[track_caller]
    fn we_agree(&self, file: &str, options: &str) {
        let Case { kind, format, .. } = self.case;
        let ours = we_say(&self.folder, file, options, &self.questions);
        assert_eq!(ours, self.answers, "{format} {kind}: our answers about {file}");
    }

    #[track_caller]
    fn the_peer_agrees(&self, file: &str) {
        let Case { kind, format, .. } = self.case;
        let theirs = self.peer.ask(&self.folder.path(file), kind, &self.questions);
        assert_eq!(theirs, self.answers, "{format} {kind}: the peer's answers about {file}");
    }

    /// Compressed bytes are the compressor's choice, so it is what they stand for that is compared.
    #[track_caller]
    fn is_the_peers_file(&self, file: &str) {
        let Case { kind, format, .. } = self.case;
        let (ours, theirs) = (content(&self.folder, file), content(&self.folder, &self.theirs));
        assert!(ours == theirs, "{format} {kind}: {file} is not what the peer wrote");
    }
}

/// The bytes of a file, after decompression.
fn content(folder: &Folder, name: &str) -> Vec<u8> {
    let bytes = folder.read(name);
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes;
    }
    let mut plain = Vec::new();
    MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain).expect("gzip");
    plain
}

/// A format whose files we read and keep in files of ours.
#[track_caller]
fn one_way<'a>(peer: &'a dyn Peer, case: &'a Case, keys: &'a Keys) -> Meeting<'a> {
    let meeting = Meeting::new(peer, case, keys);
    meeting.we_read();
    meeting.we_keep();
    meeting
}

/// A format that we write, too.
#[track_caller]
fn both_ways(peer: &dyn Peer, case: &Case, keys: &Keys) {
    let meeting = one_way(peer, case, keys);
    // Errors are what shows that both sides look at the same bits.
    assert!(keys.divide(&meeting.answers).1.contains('1'), "no absent key is a false positive");
    meeting.we_give_back();
    meeting.we_continue();
    meeting.we_write();
}

/// A peer that is not here: its test ends without a result, except in CI.
fn without(peer: &str) {
    const WAY_OUT: &str = "`cargo xtask peers` installs what it can, with --all also Spark";
    let in_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!in_ci, "in CI every peer must be here, and there is no {peer}; {WAY_OUT}");
    // Not `eprintln`, which the test harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: no {peer}; {WAY_OUT}");
}

fn runs(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The driver of this name, as a source file.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("peers").join(name)
}

/// Where `cargo xtask peers` puts what no package manager has.
fn installed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers").join(name)
}

/// A driver of ours, ready to run. The folder has what was compiled.
struct Driver {
    folder: Folder,
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Driver {
    fn run(&self, arguments: &[&str], file: &Path, keys: &str) -> String {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(arguments[0]).arg(file).args(&arguments[1..]);
        let done = self.folder.call(command).input(keys).run().ends(0);
        String::from_utf8(done.out).expect("digits").trim_end().to_owned()
    }

    /// A class that was written against the library in `jar`; without a compiler there is none.
    fn java(class: &str, jar: &Path) -> Option<Self> {
        if !jar.exists() || !runs("javac", "-version") {
            return None;
        }
        let folder = Folder::new();
        let mut compile = Command::new("javac");
        compile.arg("-cp").arg(jar).arg("-d").arg(folder.path("")).arg(source(&format!("{class}.java")));
        folder.call(compile).run().ends(0);
        let classes = env::join_paths([jar, &folder.path("")]).expect("paths without colons");
        // Programs that end at once are not worth an optimizing compiler.
        let arguments = ["-XX:TieredStopAtLevel=1".into(), "-cp".into(), classes, class.into()];
        Some(Self { folder, program: "java".into(), arguments: arguments.into() })
    }

    /// A Python package in our virtual environment.
    fn python(package: &str) -> Option<Self> {
        let program = installed("python/bin/python");
        let mut import = Command::new(&program);
        import.arg("-c").arg(format!("import {package}")).stdin(Stdio::null()).stderr(Stdio::null());
        if !import.status().is_ok_and(|status| status.success()) {
            return None;
        }
        let arguments = vec![source("python_peers.py").into(), package.into()];
        Some(Self { folder: Folder::new(), program, arguments })
    }
}

impl Peer for Driver {
    fn make(&self, file: &Path, capacity: usize, kind: &str, keys: &str) {
        self.run(&["make", &capacity.to_string(), FPR, kind], file, keys);
    }

    fn ask(&self, file: &Path, kind: &str, keys: &str) -> String {
        self.run(&["ask", kind], file, keys)
    }
}

const GUAVA_CASES: [Case; 4] = [
    Case::new("utf8", "guava", ""),
    Case::new("utf16", "guava", "--as utf16"),
    Case::new("i32", "guava", "--as i32"),
    Case::new("i64", "guava", "--as i64"),
];

fn guava_agrees(jar: &Path) {
    let Some(guava) = Driver::java("GuavaPeer", jar) else {
        return without("Guava or no Java compiler");
    };
    for (case, keys) in
        GUAVA_CASES.iter().zip([Keys::text(), Keys::text(), Keys::numbers(32), Keys::numbers(64)])
    {
        both_ways(&guava, case, &keys);
    }

    // For very few keys it depends on the version how many positions a key has.
    let folder = Folder::new();
    let is_same = |capacity, version: &str| {
        let key = "user:0\n";
        guava.make(&folder.path("theirs"), capacity, "utf8", key);
        let line = format!("build --to guava --peer-version {version} -n {capacity} -p {FPR} -o ours -");
        folder.mayhap(&line).input(key).run().ends(0);
        folder.read("ours") == folder.read("theirs")
    };
    let version =
        ["33.3", "33.4"].into_iter().find(|version| is_same(1, version)).expect("a rule that is known");
    assert!((2..=6).all(|capacity| is_same(capacity, version)), "filters for few keys, as before {version}");
}

#[test]
fn guava() {
    guava_agrees(Path::new("/usr/share/java/guava.jar"));
}

/// The same keys, in the same run.
#[test]
fn guava_is_timed_beside_the_classic_experiments() {
    if Driver::java("GuavaPeer", Path::new("/usr/share/java/guava.jar")).is_none() {
        return without("Guava or no Java compiler");
    }
    let report = Folder::new().mayhap("eval --suite classic -n 50k --json").run().ends(0).json();
    assert_eq!(report["guava"], serde_json::Value::Null, "{report}");
    let times = report["times"].as_array().expect("a list");
    let guava: Vec<_> = times.iter().filter(|row| row["structure"] == "Guava").collect();
    assert_eq!(guava.len(), 2, "{times:?}");
    for row in guava {
        let rate = row["fpr_measured"].as_f64().expect("a rate");
        assert!((rate - 0.03).abs() < 0.005 && row["insert_ns"].as_f64() > Some(0.0), "{row}");
    }
}

/// The library of this name that came with Spark.
fn jar_of_spark(start: &str) -> PathBuf {
    let entries = fs::read_dir(installed("spark")).into_iter().flatten();
    let mut jars = entries.map(|entry| entry.expect("an entry").path());
    let is_wanted =
        |jar: &PathBuf| jar.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start));
    jars.find(is_wanted).unwrap_or_else(|| installed("spark").join(start))
}

#[test]
#[ignore = "fetching Spark is a large download: cargo xtask test --all"]
fn the_guava_that_spark_brings() {
    guava_agrees(&jar_of_spark("guava-"));
}

#[test]
#[ignore = "fetching Spark is a large download: cargo xtask test --all"]
fn spark() {
    let Some(spark) = Driver::java("SparkPeer", &jar_of_spark("spark-sketch_")) else {
        return without("Spark or no Java compiler");
    };
    both_ways(&spark, &Case::new("string", "spark", ""), &Keys::text());
    both_ways(&spark, &Case::new("long", "spark", "--as i64"), &Keys::numbers(64));
    // The first version is what Spark no longer makes unless it is asked to.
    let making = "--peer-version 4.0";
    both_ways(&spark, &Case { making, ..Case::new("string-v1", "spark", "") }, &Keys::text());
    both_ways(&spark, &Case { making, ..Case::new("long-v1", "spark", "--as i64") }, &Keys::numbers(64));
}

#[test]
fn go() {
    const LIBRARIES: &str = "/usr/share/gocode";
    let is_here = Path::new(LIBRARIES).join("src/github.com/bits-and-blooms/bloom").exists();
    if !is_here || !runs("go", "version") {
        return without("Go or no bits-and-blooms");
    }
    let folder = Folder::new();
    let program = folder.path("go_peer");
    let mut compile = Command::new("go");
    // The library is found where the package manager puts it, and nothing is fetched.
    compile.envs([("GO111MODULE", "off"), ("GOPATH", LIBRARIES), ("CGO_ENABLED", "0")]);
    compile.env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"));
    compile.arg("build").arg("-o").arg(&program).arg(source("go_peer.go"));
    folder.call(compile).run().ends(0);
    let go = Driver { folder, program, arguments: Vec::new() };
    for (kind, format) in [("binary", "go"), ("json", "go-json"), ("gob", "go-gob")] {
        both_ways(&go, &Case::new(kind, format, ""), &Keys::text());
    }
}

/// The command `bloom`, which needs no driver. The kind is plain or gzip.
struct Dcso {
    folder: Folder,
}

impl Dcso {
    fn run(&self, kind: &str, arguments: &[&str], file: &Path, keys: &str) -> String {
        let mut command = Command::new("bloom");
        command.args((kind == "gzip").then_some("--gzip")).args(arguments).arg(file);
        let done = self.folder.call(command).input(keys).run().ends(0);
        String::from_utf8(done.out).expect("text")
    }
}

impl Peer for Dcso {
    fn make(&self, file: &Path, capacity: usize, kind: &str, keys: &str) {
        self.run(kind, &["create", "-n", &capacity.to_string(), "-p", FPR], file, "");
        self.run(kind, &["insert"], file, keys);
    }

    fn ask(&self, file: &Path, kind: &str, keys: &str) -> String {
        let printed = self.run(kind, &["check"], file, keys);
        let mut printed = printed.lines().peekable();
        let answers =
            keys.lines().map(|key| if printed.next_if_eq(&key).is_some() { '1' } else { '0' }).collect();
        assert_eq!(printed.next(), None, "bloom prints what it was not asked");
        answers
    }
}

#[test]
fn dcso() {
    if !runs("bloom", "--version") {
        return without("bloom command of DCSO");
    }
    let dcso = Dcso { folder: Folder::new() };
    both_ways(&dcso, &Case::new("plain", "dcso", ""), &Keys::text());
    both_ways(&dcso, &Case { suffix: ".gz", ..Case::new("gzip", "dcso", "") }, &Keys::text());

    let file = dcso.folder.path("ours");
    dcso.folder.mayhap("build --to dcso -n 1000 -p 0.01 -o ours -").input(lines("user:", 100)).run().ends(0);
    let shown = dcso.run("plain", &["show"], &file, "");
    for field in
        ["Capacity:\t\t1000", "Elements present:\t100", "FP probability:\t\t1.00e-02", "Hash functions:\t\t7"]
    {
        assert!(shown.contains(field), "{shown}");
    }
}

/// The crate `bloomfilter`, which is linked into this test. The kind is the seed: ours, or a random one.
struct Crate;

impl Peer for Crate {
    fn make(&self, file: &Path, capacity: usize, kind: &str, keys: &str) {
        let fpr = FPR.parse().expect("a number");
        let made = match kind {
            "our seed" => Bloom::<[u8]>::new_for_fp_rate_with_seed(capacity, fpr, &VALKEY_SEED),
            _ => Bloom::new_for_fp_rate(capacity, fpr),
        };
        let mut bloom = made.expect("a filter");
        keys.lines().for_each(|key| bloom.set(key.as_bytes()));
        fs::write(file, bloom.as_slice()).expect("a file");
    }

    fn ask(&self, file: &Path, _kind: &str, keys: &str) -> String {
        let bloom = Bloom::<[u8]>::from_bytes(fs::read(file).expect("a file")).expect("a filter");
        keys.lines().map(|key| if bloom.check(key.as_bytes()) { '1' } else { '0' }).collect()
    }
}

#[test]
fn bloomfilter_crate() {
    let keys = Keys::text();
    both_ways(&Crate, &Case::new("our seed", "bloomfilter-crate", ""), &keys);
    let random = Case::new("a random seed", "bloomfilter-crate", "");
    let meeting = one_way(&Crate, &random, &keys);
    meeting.we_give_back();
    meeting.we_continue();
}

#[test]
fn parquet() {
    let Some(duckdb) = Driver::python("duckdb") else {
        return without("duckdb");
    };
    let reads = |kind, options, keys: &Keys| {
        let case = Case { file: "--column key", ..Case::new(kind, "parquet", options) };
        one_way(&duckdb, &case, keys);
    };
    // More keys than one row group takes, so that the file has several filters.
    reads("text", "", &Keys::new(5000, |i| format!("user:{i}")));
    reads("i32", "--as i32", &Keys::numbers(32));
    reads("i64", "--as i64", &Keys::numbers(64));
}

#[test]
fn fastfilter() {
    let Some(fastfilter) = Driver::python("pyfusefilter") else {
        return without("pyfusefilter");
    };
    for format in ["xor8", "xor16", "fuse8", "fuse16"] {
        one_way(&fastfilter, &Case::new(format, format, "--as bytes"), &Keys::text());
    }
}

#[test]
fn pybloom_live() {
    let Some(pybloom_live) = Driver::python("pybloom_live") else {
        return without("pybloom-live");
    };
    for kind in ["plain", "scalable"] {
        one_way(&pybloom_live, &Case::new(kind, "pybloom-live", ""), &Keys::text());
    }
}

#[test]
fn pyprobables() {
    let Some(pyprobables) = Driver::python("probables") else {
        return without("pyprobables");
    };
    for kind in ["plain", "expanding"] {
        one_way(&pyprobables, &Case::new(kind, "pyprobables", "--as bytes"), &Keys::text());
    }
}

#[test]
fn rbloom() {
    let Some(rbloom) = Driver::python("rbloom") else {
        return without("rbloom");
    };
    let case = Case { file: "--hash sha256", ..Case::new("sha256", "rbloom", "") };
    one_way(&rbloom, &case, &Keys::text()).we_give_back();
}

#[test]
fn roaring() {
    let Some(roaring) = Driver::python("pyroaring") else {
        return without("pyroaring");
    };
    // Some close together, some far apart, so that the set has containers of more than one kind.
    let keys =
        Keys::new(6000, |i| if i % 2 == 0 { i.to_string() } else { (i * 500_009 + 70_000).to_string() });
    one_way(&roaring, &Case::new("bitmap", "roaring", "--as u64"), &keys).we_give_back();
}
