//! `mayhap count`: how often a key came.

use crate::runner::{Folder, families, lines};

/// a once, b twice, c a thousand times, at a rate at which no answer is a matter of luck.
fn abc(options: &str) -> Folder {
    let folder = Folder::new();
    let keys = format!("a\nb\n{}b\n", "c\n".repeat(1000));
    folder.mayhap(&format!("build -o f -n 100 -p 1e-9 {options}")).input(keys).run().ends(0);
    folder
}

#[test]
fn prints_each_record_a_tab_and_its_count() {
    for options in ["--counts", "--counts --counting-rule minimum-selection", "--counts --counter-bits 16"] {
        let folder = abc(options);
        let count =
            |arguments: &str, input: &str| folder.mayhap(&format!("count f {arguments}")).input(input).run();
        count("", "x\nc\nb\na\nc\n").ends(0).prints("x\t0\nc\t1000\nb\t2\na\t1\nc\t1000\n").stays_quiet();
        // The last newline is optional, and nothing is an answer too.
        count("", "a").ends(0).prints("a\t1\n");
        count("", "x\n").ends(0).prints("x\t0\n");
        count("", "").ends(0).prints("");
        count("--no-mmap", "b\n").ends(0).prints("b\t2\n");
        folder.write("one", "a\nx");
        folder.write("two", "b\n");
        folder.mayhap("count f one - two").input("c\n").run().ends(0).prints("a\t1\nx\t0\nc\t1000\nb\t2\n");
    }
}

#[test]
fn counters_that_end_say_their_end() {
    let folder = abc("--family counting");
    folder.mayhap("count f --key a --key b --key c").run().ends(0).prints("a\t1\nb\t2\nc\t15\n");
    let folder = abc("--counts --counter-bits 8");
    folder.mayhap("count f --key a --key b --key c").run().ends(0).prints("a\t1\nb\t2\nc\t255\n");
}

#[test]
fn keys_are_selected_as_everywhere() {
    let folder = abc("--counts");
    let count =
        |arguments: &str, input: &str| folder.mayhap(&format!("count f {arguments}")).input(input).run();
    count("-z", "b\0c\0").ends(0).prints("b\t2\0c\t1000\0");
    count("-d, -k2", "1,b,x\n2,c,y\n").ends(0).prints("1,b,x\t2\n2,c,y\t1000\n");
    count("--json-key /key", "{\"key\":\"b\"}\n").ends(0).prints("{\"key\":\"b\"}\t2\n");
    count("-d, -k2", "1,b\n2\n").ends(2).says("line 2: only 1 field, and the key is field 2");
    for (options, asked, printed) in [
        ("--crlf", "b\r\n", "b\t2\r\n"),
        ("--trim --ignore-case", " B \n", " B \t2\n"),
        ("--as hex", "62\n", "62\t2\n"),
    ] {
        let keys = if options == "--as hex" { "62\n62\n" } else { "b\nb\n" };
        folder.mayhap(&format!("build --counts {options} -o g")).input(keys).run().ends(0);
        folder.mayhap("count g").input(asked).run().ends(0).prints(printed);
    }
    folder.mayhap("build --counts --as u64 -o g").input("1\n").run().ends(0);
    folder.mayhap("count g").input("one\n").run().ends(2).prints("").says("line 1: \"one\" is not");
}

#[test]
fn keys_can_be_arguments() {
    let folder = abc("--counts");
    folder.mayhap("count f --key x --key c --key -b").run().ends(0).prints("x\t0\nc\t1000\n-b\t0\n");
    folder.mayhap("build --counts --ignore-case --trim -o g").input("B\n b\n").run().ends(0);
    folder.mayhap("count g --key").arg(" B ").run().ends(0).prints(" B \t2\n");
    folder.mayhap("build --counts --as u64 -o h").input("1\n").run().ends(0);
    folder.mayhap("count h --key 1 --key z").run().ends(2).says("mayhap: --key number 2: \"z\" is not");
    folder.mayhap("count f --key a file").run().ends(2).says("cannot be used with");
}

#[test]
fn a_family_that_does_not_count_is_refused_with_those_that_do() {
    let folder = Folder::new();
    for (family, options) in
        [("bloom", ""), ("blocked", "--fastest"), ("exact", "--exact"), ("bitmap", "--exact --as u64")]
    {
        folder.mayhap(&format!("build -o f {options}")).input("1\n").run().ends(0);
        folder.mayhap("count f").input("1\n").run().ends(2).prints("").says_only(&format!(
            "mayhap: f: the family {family} cannot count; build the filter with --family {}",
            families(|family| family.can.counts, " or "),
        ));
    }
    folder.mayhap("count absent").run().ends(2).says("absent: cannot open");
}

#[test]
fn counts_go_on_with_added_keys() {
    let folder = abc("--counts");
    folder.mayhap("add f").input("b\nd\n").run().ends(0).says_only("mayhap: f: 2 keys added, 1 of them new");
    folder.mayhap("count f").input("b\nd\nc\n").run().ends(0).prints("b\t3\nd\t1\nc\t1000\n");
    folder.mayhap("info --verify f").run().ends(0);
}

#[test]
fn counts_of_many_keys_are_never_too_low_and_rarely_too_high() {
    let folder = Folder::new();
    // Key i comes 1 + i % 50 times.
    let log: String = (0..50u64)
        .flat_map(|round| (0..20_000u64).filter(move |key| key % 50 >= round))
        .map(|key| format!("key-{key}\n"))
        .collect();
    folder.mayhap("build -o f --counts").input(&log).run().ends(0);
    let asked = lines("key-", 20_000);
    let counted = folder.mayhap("count f").input(&asked).run().ends(0);
    let text = String::from_utf8(counted.out).unwrap();
    let mut wrong = 0;
    for (key, line) in text.lines().enumerate() {
        let (name, count) = line.split_once('\t').unwrap();
        let (count, truth): (usize, usize) = (count.parse().unwrap(), 1 + key % 50);
        assert_eq!(name, format!("key-{key}"));
        assert!(count >= truth, "{line}: it came {truth} times");
        wrong += usize::from(count > truth);
    }
    // Made for 1%, of which minimal increase makes less: 200 would be expected, 5 standard deviations are 70.
    assert!(wrong <= 270, "{wrong} of 20000");
}

#[test]
fn answers_come_before_the_input_ends() {
    use std::io::{BufRead, BufReader, Write};
    let folder = abc("--counts");
    let mut child = folder.mayhap("count f").start();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().for_each(|line| drop(sender.send(line.unwrap())))
    });
    input.write_all(b"b\n").unwrap();
    assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(20)).as_deref(), Ok("b\t2"));
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_report_at_the_end_on_request() {
    let folder = Folder::new();
    folder.mayhap("build --counts -n 1000 -p 1e-9 -o f").input("a\na\nb\n").run().ends(0);
    let report = r#"{"matched":1,"printed":2,"read":2,"verified":true,"warnings":[]}"#;
    for command in ["count f --verify --stats=json", "count f --stats=json --key a --key x"] {
        folder.mayhap(command).input("a\nx\n").run().ends(0).prints("a\t2\nx\t0\n").says_only(report);
    }
}
