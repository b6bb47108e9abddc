//! What comes in: records that are too long, marks and encodings, inputs that are closed or that are the output too, and
//! memory that is not granted.

use std::io::Write;

use crate::runner::{Folder, lines};

/// A gzip file of these bytes.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A folder with the filter `f` of the keys 0 to 9.
fn digits() -> Folder {
    let folder = Folder::new();
    folder.mayhap("build --exact -o f").input(lines("", 10)).run().ends(0);
    folder
}

/// The line was not told: only records that could be wrong were counted.
#[test]
fn a_record_beyond_the_limit_is_an_error_with_its_line() {
    let folder = digits();
    // The long one is in the first read, or in a later one.
    for before in [0, 1, 3, 60_000] {
        let good = lines("key ", before);
        for (name, long) in [("ended", "x".repeat(1001) + "\nrest\n"), ("not ended", "x".repeat(600_000))] {
            let input = good.clone() + &long;
            folder.write("plain", &input);
            folder.write("packed.gz", gzip(input.as_bytes()));
            let line = before + 1;
            for command in
                ["dedup --exact", "dedup --threads 1", "check -v f", "build -o new", "build -n 1k -o new"]
            {
                let prints = if command.starts_with("build") { "" } else { &good };
                let call = |file: &str| folder.mayhap(&format!("{command} --max-record 1000 {file}"));
                let says = |place: &str| {
                    format!(
                        "mayhap: {place}: line {line}: the record is longer than 1000 B; allow longer ones with --max-record"
                    )
                };
                println!("{command}, {before} before, {name}");
                call("plain").run().ends(2).prints(prints).says(&says("plain"));
                call("packed.gz").run().ends(2).prints(prints).says(&says("packed.gz"));
                call("").input(&input).run().ends(2).prints(prints).says(&says("(standard input)"));
            }
        }
    }
    assert!(!folder.path("new").exists());
    let many = "x".repeat(1000) + "\n" + &"y".repeat(1000);
    folder.mayhap("dedup --max-record 1000").input(&many).run().ends(0).prints(many.clone() + "\n");
    folder.mayhap("dedup --max-record 999").input(&many).run().ends(2).prints("").says("line 1: ");
    folder
        .mayhap("dedup -z --max-record 9")
        .input("a\0long enough\0")
        .run()
        .ends(2)
        .prints("a\0")
        .says("line 2: ");
    folder.mayhap("sort --max-record 4").input("12\n34\n56789\n").run().ends(2).prints("").says("line 3: ");
    folder.mayhap("dedup --max-record 0").run().ends(2).says("the least is 1");
}

/// What others have read of standard input does not count, and what is given twice is counted each time.
#[cfg(unix)]
#[test]
fn the_line_of_a_long_record_is_counted_from_where_reading_started() {
    let folder = Folder::new();
    folder.write("plain", "one\ntwo\nthree\nlong long long\n");
    let script = "(read line; exec $MAYHAP dedup --max-record 9) < plain";
    folder
        .sh(script)
        .run()
        .ends(2)
        .prints("two\nthree\n")
        .says("(standard input): line 3: the record is longer");
    folder
        .mayhap("dedup --max-record 13 plain plain")
        .run()
        .ends(2)
        .says("plain: line 4: the record is longer");
}

/// It took twice its bytes, and more of several at once.
#[cfg(target_os = "linux")]
#[test]
fn a_long_record_takes_its_bytes_and_a_little_more() {
    const MIB: usize = 1 << 20;
    // Just above a power of two: memory that doubles would be 256 MiB.
    let folder = digits();
    let one = vec![b'x'; 140 * MIB];
    folder.write("one.gz", gzip(&one));
    folder.write("one", &one);
    let several: Vec<u8> =
        (b'a'..b'e').flat_map(|byte| [vec![byte; 140 * MIB], b"\n".to_vec()].concat()).collect();
    folder.write("several", several);
    // The record, 64 MiB, and what the program takes without any record. With one arena, threads do not reserve address space.
    let limit = (140 + 64 + 16) << 10;
    for command in
        ["build -o g", "build --static -o g", "check -v -c f", "check -v f", "dedup", "dedup --threads 1"]
    {
        for (input, file) in [("one", ""), ("one.gz", "one.gz"), ("several", ""), ("several", "several")] {
            let from = if file.is_empty() { format!("cat {input} |") } else { String::new() };
            let script = format!(
                "ulimit -v {limit}; {from} MALLOC_ARENA_MAX=1 \"$MAYHAP\" {command} --threads 4 {file} > /dev/null"
            );
            let script =
                if command.contains("--threads") { script.replace("--threads 4", "") } else { script };
            folder.sh(&script).run().ends(0);
        }
    }
}

/// The process was aborted.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_is_not_granted_is_an_error() {
    let folder = Folder::new();
    let limited = |kib: u64, line: &str| {
        let script = format!("ulimit -v {kib}; MALLOC_ARENA_MAX=1 exec \"$MAYHAP\" {line}");
        folder.sh(&script).output(std::process::Stdio::null()).run().ends(2)
    };
    let zeros = std::fs::File::create(folder.path("zeros")).unwrap();
    zeros.set_len(900 << 20).unwrap();
    for command in ["build -o f zeros", "dedup zeros", "dedup --ignore-case zeros"] {
        limited(200_000, command).says("mayhap: zeros: line 1: no memory for a record of more than ");
    }
    zeros.set_len(100 << 20).unwrap();
    limited(200_000, "dedup --ignore-case zeros")
        .says("mayhap: zeros: line 1: no memory for a key of 104857600 bytes");
    drop(zeros);
    folder.sh("seq 1 2000000 > keys").run().ends(0);
    limited(60_000, "dedup --exact keys").says("bytes of memory to grow were asked for and not granted");
    folder.sh("seq 1 4000000 > keys").run().ends(0);
    for kib in [60_000, 80_000, 100_000] {
        limited(kib, "build --family fuse -o f keys").says("no memory: ").says("limit it with --memory SIZE");
    }
    limited(1_000_000, "eval -n 100M --family bloom")
        .says("mayhap: -n 100000000: ")
        .says("give a smaller -n");
    folder.sh("seq 0 1000003 2000000000000 > sparse").run().ends(0);
    limited(100_000, "sort -c sparse").says("mayhap: after ").says("the system grants no more memory");
    folder.sh("seq 0 5000000000003 10000000000000000000 > sparser").run().ends(0);
    limited(200_000, "sort -c sparser").says("mayhap: after ").says("the system grants no more memory");
    assert!(!folder.path("f").exists());
}

/// The first line of a list never matched.
#[test]
fn a_byte_order_mark_is_no_part_of_a_key() {
    let folder = Folder::new();
    let marked = b"\xef\xbb\xbfevil.example\nbad.example\n";
    folder.write("marked", marked);
    folder.write("marked.gz", gzip(marked));
    folder.write("plain", "bad.example\nevil.example\nok.example\n");
    for build in ["", "-n 10", "--static", "--exact", "--threads 1", "--format guava"] {
        for file in ["marked", "marked.gz"] {
            folder.mayhap(&format!("build {build} -o f {file}")).run().ends(0);
            folder.mayhap("check f --key evil.example").run().ends(0).prints("evil.example\n");
            // The record is printed as it stands.
            folder.mayhap("check f").arg(file).run().ends(0).prints(marked).stays_quiet();
            folder
                .mayhap("check --annotate f")
                .arg(file)
                .run()
                .ends(0)
                .prints(b"\xef\xbb\xbfevil.example\tmayhap\nbad.example\tmayhap\n");
            folder.mayhap("test f").arg(file).run();
        }
    }
    for options in ["", "--exact", "--verify", "--threads 1", "--ignore-case", "--state s"] {
        let dedup = |files: &str| folder.mayhap(&format!("dedup {options} {files}")).run().ends(0);
        dedup("marked plain").prints([&marked[..], b"ok.example\n"].concat());
        let _ = std::fs::remove_file(folder.path("s"));
        // It stays with its record.
        dedup("plain marked").prints("bad.example\nevil.example\nok.example\n");
        let _ = std::fs::remove_file(folder.path("s"));
    }
    // Each input may have one, and only at its start.
    folder.mayhap("dedup marked marked.gz").run().ends(0).prints(marked);
    folder.mayhap("dedup").input("a\n\u{feff}a\n").run().ends(0).prints("a\n\u{feff}a\n");
    folder.mayhap("dedup --header").input("\u{feff}h\nh\n").run().ends(0).prints("\u{feff}h\nh\n");
    folder.write("one", "\u{feff}id\n1\n");
    folder.write("two", "id\n1\n2\n");
    folder.mayhap("dedup --header one two").run().ends(0).prints("\u{feff}id\n1\n2\n");
    folder.mayhap("sort").input("\u{feff}3\n1\n").run().ends(0).prints("1\n3\n");
    folder.mayhap("dedup -d, -k1").input("\u{feff}a,1\na,2\n").run().ends(0).prints("\u{feff}a,1\n");
    folder.mayhap("dedup -z").input("\u{feff}a\0a\0").run().ends(0).prints("\u{feff}a\0");
    // A mark alone is no record.
    folder.mayhap("dedup --stats").input("\u{feff}").run().ends(0).prints("").says("read 0, printed 0");
    folder.mayhap("build --counts -o c").input("a\na\n").run().ends(0);
    folder.mayhap("count c").input("\u{feff}a\nb\n").run().ends(0).prints("\u{feff}a\t2\nb\t0\n");
    folder.mayhap("build --label x=two -o l").run().ends(0);
    folder.mayhap("label l").input("\u{feff}id\n").run().ends(0).prints("\u{feff}id\tx\n");
}

/// It was cut at the bytes of newlines, and its records were wrong.
#[test]
fn utf_16_is_refused_with_the_way_out() {
    let folder = digits();
    let text = "a\na\nb\n".encode_utf16();
    let little: Vec<u8> = [0xff, 0xfe].into_iter().chain(text.clone().flat_map(u16::to_le_bytes)).collect();
    let big: Vec<u8> = [0xfe, 0xff].into_iter().chain(text.flat_map(u16::to_be_bytes)).collect();
    for bytes in [little, big, vec![0xff, 0xfe]] {
        folder.write("text", &bytes);
        folder.write("text.gz", gzip(&bytes));
        for file in ["text", "text.gz"] {
            let says = format!(
                "mayhap: {file}: the text is UTF-16, by its first bytes; convert it: iconv -f UTF-16 -t UTF-8"
            );
            for command in ["dedup", "dedup -z", "dedup --threads 1", "build -o new", "check f", "sort"] {
                folder.mayhap(command).arg(file).run().ends(2).prints("").says_only(&says);
            }
        }
    }
    folder.mayhap("dedup").input(b"a\n\xff\xfe\n").run().ends(0).prints(b"a\n\xff\xfe\n");
    assert!(!folder.path("new").exists());
}

/// The keys were all wrong, and nothing was said.
#[test]
fn lines_that_end_in_carriage_returns_give_a_warning() {
    let folder = digits();
    let crlf = |count: u64| lines("", count).replace('\n', "\r\n");
    let warning = |name: &str| {
        format!(
            "mayhap: warning: {name}: its lines end in CR LF, and the carriage return (CR) is part of each key; drop it with --crlf where keys are put in (lookups then drop it too), or with tr -d '\\r'"
        )
    };
    folder.write("two", crlf(2));
    folder.write("many", crlf(300_000));
    folder.mayhap("build --counts -o counts").input("1\n").run().ends(0);
    folder.mayhap("build --removable -n 4M -o cuckoo").input("1\n").run().ends(0);
    folder.mayhap("build --label x=f -o labels").run().ends(0);
    for (command, status) in [
        ("dedup", 0),
        ("dedup --threads 1", 0),
        ("dedup --verify", 0),
        ("build -o new", 0),
        ("build -n 10 -o new", 0),
        ("build --static -o new", 0),
        ("build --format guava -o new", 0),
        ("add cuckoo", 0),
        ("remove cuckoo", 0),
        ("check f", 1),
        ("count counts", 0),
        ("label labels", 0),
        ("test f", 1),
        // The warning says why.
        ("build --exact --as u64 -o new", 2),
    ] {
        for file in ["two", "many"] {
            let done =
                folder.mayhap(&format!("{command} {file} {file}")).run().ends(status).says(&warning(file));
            assert_eq!(done.err.matches("--crlf").count(), 1, "{command}: {}", done.err);
            let quiet = folder.mayhap(&format!("--quiet {command} {file}")).run().ends(status);
            assert!(!quiet.err.contains("--crlf"), "{command}: {}", quiet.err);
            let given = folder.mayhap(&format!("{command} --crlf {file}")).run();
            assert!(!given.err.contains("CR LF"), "{command}: {}", given.err);
        }
    }
    folder.mayhap("dedup").input("a\r\nb").run().ends(0).says_only(&warning("(standard input)"));
    for quiet in ["", "a\n", "a\r\nb\n", "a\r\n\n", "\n", "a\r"] {
        folder.mayhap("dedup").input(quiet).run().ends(0).stays_quiet();
    }
    // The first thousand decide.
    folder
        .mayhap("dedup --exact")
        .input(crlf(1000) + "a\n")
        .run()
        .ends(0)
        .says_only(&warning("(standard input)"));
    folder.mayhap("dedup --exact").input(crlf(999) + "a\n").run().ends(0).stays_quiet();
    // No carriage return is in these keys.
    folder.mayhap("dedup --trim").input("a\r\n").run().ends(0).stays_quiet();
    folder.mayhap("dedup --json-key /a").input("{\"a\":1}\r\n").run().ends(0).stays_quiet();
    folder.mayhap("dedup -z").input("a\r\0").run().ends(0).stays_quiet();
    folder.mayhap("sort").input("2\r\n1\r\n").run().ends(0).prints("1\n2\n").stays_quiet();
}

/// `check`, `count` and `label` printed nothing of the chunk that the bad record was in.
#[test]
fn what_was_found_before_a_bad_record_is_printed() {
    let folder = digits();
    folder.mayhap("build --counts -o counts").input("1\n").run().ends(0);
    folder.write("one", "1\n");
    folder.mayhap("build --label x=one -o labels").run().ends(0);
    folder.mayhap("build --format guava -o guava").input("1\n").run().ends(0);
    for before in [1, 3, 70_000] {
        let input = "x 1\n".repeat(before) + "bad\nx 1\n";
        folder.write("records", &input);
        for (command, prints) in [
            ("check f", "x 1\n"),
            ("check guava", "x 1\n"),
            ("check f guava --which", "f,guava\tx 1\n"),
            ("check --annotate f", "x 1 mayhap\n"),
            ("count counts", "x 1\t1\n"),
            ("label labels", "x 1\tx\n"),
        ] {
            let call = folder.mayhap(&format!("{command} -k2 records -d")).arg(" ");
            let says = format!("mayhap: records: line {}: ", before + 1);
            call.run().ends(2).prints(prints.repeat(before)).says(&says);
        }
    }
    // A number of some of them would be wrong.
    folder.mayhap("check -c f -k2 records -d").arg(" ").run().ends(2).prints("");
    folder.mayhap("check -q f -k2 records -d").arg(" ").run().ends(0).prints("");
}

/// `check`, `count` and `label` read what they wrote, until the disk was full.
#[cfg(unix)]
#[test]
fn no_command_reads_its_own_output() {
    let folder = digits();
    folder.mayhap("build --counts -o counts").input("1\n").run().ends(0);
    folder.write("one", "1\n");
    folder.mayhap("build --label x=one -o labels").run().ends(0);
    let keys = lines("", 10);
    folder.write("a", &keys);
    let is_kept = || assert_eq!(folder.read("a"), keys.as_bytes());
    for command in [
        "check f",
        "check -c f",
        "check --annotate f",
        "check f counts --which",
        "count counts",
        "label labels",
        "sort",
        "dedup",
    ] {
        let ends = |script: &str, says: &str| {
            // Should it write, it does not fill the disk.
            let script = format!("ulimit -f 1000; $MAYHAP {command} {script}");
            folder.sh(&script).run().ends(2).says_only(says);
        };
        ends("a >> a", "mayhap: a: is the output too; write to another file");
        ends("- < a >> a", "mayhap: (standard input): is the output too; write to another file");
        ends("< a >> a", "mayhap: (standard input): is the output too; write to another file");
        ends("one a 1<> a", "mayhap: a: is the output too; write to another file");
        is_kept();
        ends("a > a", "mayhap: a: is the output too, and the shell has emptied it; write to another file");
        folder.write("a", &keys);
        folder.sh(&format!("$MAYHAP {command} < a > b; $MAYHAP {command} a > b")).run();
        is_kept();
    }
    for (command, filter) in [("check", "f"), ("count", "counts"), ("label", "labels")] {
        let before = folder.read(filter);
        let says = format!("mayhap: {filter}: is the output too; write to another file");
        folder.sh(&format!("$MAYHAP {command} {filter} a >> {filter}")).run().ends(2).says_only(&says);
        assert_eq!(folder.read(filter), before);
    }
    // Nothing is written.
    folder.sh("$MAYHAP check -q f a >> a").run().ends(0);
    folder.sh("$MAYHAP check f --key 1 >> a").run().ends(0);
    assert_eq!(folder.read("a"), (keys + "1\n").as_bytes());
}

/// The column was behind the carriage return.
#[test]
fn an_added_column_is_before_the_carriage_return() {
    let folder = digits();
    folder.mayhap("build --crlf -p 1e-9 -o crlf").input("1\n7\n").run().ends(0);
    folder.mayhap("build --counts --crlf -o counts").input("1\n1\n").run().ends(0);
    folder.write("one", "1\n");
    folder.mayhap("build --label x=one --crlf -o labels").run().ends(0);
    let run = |command: &str| folder.mayhap(command).input("1\r\nx\r\n7\n").run().ends(0);
    // The file says that its keys are without it, and so it may be said again.
    for options in ["", "--crlf"] {
        run(&format!("check {options} --annotate crlf"))
            .prints("1\tmayhap\r\nx\tno\r\n7\tmayhap\n")
            .stays_quiet();
        run(&format!("check {options} crlf")).prints("1\r\n7\n").stays_quiet();
        run(&format!("count {options} counts")).prints("1\t2\r\nx\t0\r\n7\t0\n").stays_quiet();
    }
    run("label --crlf labels").prints("1\tx\r\nx\t\r\n7\t\n");
    // It is a part of the record where nobody said otherwise.
    run("check --annotate f").prints("1\r\tno\nx\r\tno\n7\tmayhap\n");
}

/// A closed standard input was an empty one, and an empty filter was written over the old one.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_input_is_an_error() {
    let folder = digits();
    let before = folder.read("f");
    for command in [
        "build -o f",
        "build -n 5 -o f",
        "build --static -o f -",
        "dedup",
        "dedup --verify",
        "check f",
        "sort",
    ] {
        let says = "mayhap: standard input: it is closed; give a file, or < /dev/null for no keys";
        folder.sh(&format!("$MAYHAP {command} <&-")).run().ends(2).prints("").says(says);
        assert_eq!(folder.read("f"), before);
    }
    folder.sh("$MAYHAP check f --key 1 <&-").run().ends(0).prints("1\n");
    folder.sh("$MAYHAP dedup < /dev/null").run().ends(0).prints("").stays_quiet();
    folder.sh("$MAYHAP build -o f < /dev/null").run().ends(0);
    folder.sh("$MAYHAP build -o f /dev/null <&-").run().ends(0);
    folder.mayhap("check f --key 1").run().ends(1);
}
