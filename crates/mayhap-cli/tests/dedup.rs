//! `mayhap dedup`: the first occurrence of each record, compared with a set of whole records.

mod runner;

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc::channel;
use std::time::Duration;

use mayhap_eval::Random;
use runner::Folder;
use serde_json::Value;

/// What a set of all records would print: the first ones and the repeats.
fn oracle(input: &[u8], end: u8) -> (Vec<u8>, Vec<u8>) {
    let (mut first, mut repeated) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    let input = input.strip_suffix(&[end]).unwrap_or(input);
    for record in input.split(|&byte| byte == end) {
        let out = if seen.insert(record) { &mut first } else { &mut repeated };
        out.extend_from_slice(record);
        out.push(end);
    }
    (first, repeated)
}

fn random_lines(count: usize, distinct: u64) -> Vec<u8> {
    let mut random = Random::new(distinct);
    (0..count)
        .flat_map(|_| format!("https://example.org/{}\n", random.next_u64() % distinct).into_bytes())
        .collect()
}

#[test]
fn prints_what_a_set_of_all_records_would() {
    let folder = Folder::new();
    let mut long = vec![b'x'; 1 << 20];
    long.extend(b"\nshort\n");
    let inputs: Vec<Vec<u8>> = vec![
        random_lines(200_000, 50_000),
        random_lines(1000, 1),
        (0..100_000u64).flat_map(|i| format!("{i}\n").into_bytes()).collect(),
        b"\n\n\na\n\na\n".to_vec(),
        b"a\nb\na".to_vec(),
        b"a\r\na\nb\r\na\r\n".to_vec(),
        b"\0\n\0\0\n\0\n\xff\xfe\n\xff\n\xff\xfe\n\xc3\x28\n".to_vec(),
        b"a \na\n a\nA\na\n".to_vec(),
        [long.clone(), long.clone(), long].concat(),
        b"one line, no end".to_vec(),
        b"\n".to_vec(),
    ];
    for input in inputs {
        folder.write("input", &input);
        let (first, repeated) = oracle(&input, b'\n');
        folder.mayhap("dedup input").run().ends(0).prints(&first).stays_quiet();
        folder.mayhap("dedup").input(&input).run().ends(0).prints(&first).stays_quiet();
        folder.mayhap("dedup --repeated input").run().ends(0).prints(&repeated).stays_quiet();
    }
    folder.mayhap("dedup").run().ends(0).prints("");
}

#[test]
fn records_may_end_with_nul() {
    let input = b"a\nb\0c\0a\nb\0\0\0last";
    let (first, repeated) = oracle(input, 0);
    let folder = Folder::new();
    folder.mayhap("dedup -z").input(input).run().ends(0).prints(first);
    folder.mayhap("dedup -z --repeated").input(input).run().ends(0).prints(repeated);
}

#[test]
fn the_key_decides_and_the_whole_record_is_printed() {
    let folder = Folder::new();
    let cases = [
        ("-d, -k2", "1,a,x\n2,b,x\n3,a,y\n", "1,a,x\n2,b,x\n"),
        (
            "--json-key /id",
            "{\"id\":1,\"t\":5}\n{\"t\":6,\"id\":1}\n{\"id\":2}\n",
            "{\"id\":1,\"t\":5}\n{\"id\":2}\n",
        ),
        ("--ignore-case", "Ab\naB\nb\n", "Ab\nb\n"),
        ("--trim", " a\na \nb\n", " a\nb\n"),
        ("--crlf", "a\r\na\nb\r\n", "a\r\nb\r\n"),
        ("--as u64", "1\n01\n2\n", "1\n2\n"),
        ("--as hex", "ff\nFF\n00\n", "ff\n00\n"),
    ];
    for (options, input, expected) in cases {
        folder.mayhap(&format!("dedup {options}")).input(input).run().ends(0).prints(expected);
    }
}

#[test]
fn statistics_add_up() {
    let folder = Folder::new();
    let input = random_lines(100_000, 30_000);
    let (first, repeated) = oracle(&input, b'\n');
    let count = |lines: &[u8]| lines.iter().filter(|&&byte| byte == b'\n').count() as u64;
    for (options, printed, dropped) in [("", &first, &repeated), ("--repeated", &repeated, &first)] {
        let done = folder
            .mayhap(&format!("dedup --stats=json {options}"))
            .input(&input)
            .run()
            .ends(0)
            .prints(printed);
        let stats: Value = serde_json::from_str(&done.err).expect("JSON on standard error");
        assert_eq!((&stats["read"], &stats["printed"]), (&100_000.into(), &count(printed).into()));
        assert_eq!(stats["dropped"], count(dropped));
        assert!(stats["expected_wrongly_dropped"].as_f64().is_some_and(|expected| expected < 1e-25));
        assert!(stats["fpr_now"].as_f64().is_some_and(|rate| rate > 0.0 && rate < 1e-30));
        assert!(stats["memory_bytes"].as_u64().is_some_and(|bytes| bytes >= 16 * 28_000));
        assert!(stats["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    }
    let text = folder.mayhap("dedup --stats").input("a\na\nb\n").run().ends(0).prints("a\nb\n");
    text.says("mayhap: read 3, printed 2, dropped 1; expected number of wrongly dropped records ");
    folder.mayhap("dedup --stats=xml").run().ends(2).says("[possible values: text, json]");
}

#[test]
fn a_slow_producer_sees_its_line_before_its_input_ends() {
    let folder = Folder::new();
    let mut child = folder.mayhap("dedup").start();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().for_each(|line| drop(sender.send(line.unwrap())))
    });
    let mut next = |written: &[u8]| {
        input.write_all(written).unwrap();
        receiver.recv_timeout(Duration::from_secs(20)).expect("a line before the input ends")
    };
    assert_eq!(next(b"a\n"), "a");
    assert_eq!(next(b"a\nb\n"), "b");
    assert_eq!(next(b"half of a line, \nand"), "half of a line, ");
    // The first bytes of a compressed file do not keep it waiting either.
    assert_eq!(next(b" the rest\n"), "and the rest");
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(receiver.recv().is_err(), "nothing more");
}

#[test]
fn a_record_that_looks_like_the_start_of_a_compressed_file_is_printed_at_once() {
    let folder = Folder::new();
    let mut child = folder.mayhap("dedup").start();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().for_each(|line| drop(sender.send(line.unwrap())))
    });
    input.write_all(b"BZh\n").unwrap();
    assert_eq!(receiver.recv_timeout(Duration::from_secs(20)).as_deref(), Ok("BZh"));
    drop(input);
    assert!(child.wait().unwrap().success());
}
