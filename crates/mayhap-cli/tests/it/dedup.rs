//! `mayhap dedup`: the first occurrence of each record, compared with a set of whole records.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::runner;
use crate::runner::Folder;
use mayhap_eval::Random;
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
    // Half of the rate for each different key, since the table is empty at first.
    let bars = [("", 30_000.0 * 1e-9, 1e-9), ("--exact", 1e-25, 1e-30)];
    let modes = [("", &first, &repeated), ("--repeated", &repeated, &first)];
    for ((kind, most_wrong, most_fpr), (mode, printed, dropped)) in
        bars.into_iter().flat_map(|bar| modes.map(|mode| (bar, mode)))
    {
        let call = folder.mayhap(&format!("dedup --stats=json {kind} {mode}"));
        let done = call.input(&input).run().ends(0).prints(printed);
        let stats: Value = serde_json::from_str(&done.err).expect("JSON on standard error");
        assert_eq!((&stats["read"], &stats["printed"]), (&100_000.into(), &count(printed).into()));
        assert_eq!(stats["dropped"], count(dropped));
        let number = |name: &str| stats[name].as_f64().unwrap_or_else(|| panic!("{name} in {stats}"));
        assert!(number("expected_wrongly_dropped") < most_wrong && number("expected_wrongly_dropped") > 0.0);
        assert!(number("fpr_now") < most_fpr && number("fpr_now") > 0.0);
        assert!(number("memory_bytes") >= 4.0 * 28_000.0 && number("seconds") > 0.0);
        assert_eq!(stats["layers"], 1);
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

// Windows.

/// What the last records say of each: `Some(true)` it must be printed but by a false positive, `Some(false)` it must be
/// dropped, `None` it is between the window and what is surely forgotten.
fn window_oracle(lines: &[u64], remembered: usize, forgotten: usize) -> Vec<Option<bool>> {
    let mut last = std::collections::HashMap::new();
    let judge = |(place, &line): (usize, &u64)| match last.insert(line, place) {
        Some(before) if place - before <= remembered => Some(false),
        Some(before) if place - before <= forgotten => None,
        _ => Some(true),
    };
    lines.iter().enumerate().map(judge).collect()
}

#[test]
fn a_window_drops_all_recent_repeats_and_hardly_anything_else() {
    let folder = Folder::new();
    for (window, distinct, fpr) in [(1000, 3000, 0.01), (5000, 4000, 1e-4), (100, 100_000, 1e-6)] {
        let mut random = Random::new(distinct);
        let lines: Vec<u64> = (0..200_000).map(|_| random.next_u64() % distinct).collect();
        let input: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
        let done = folder
            .mayhap(&format!("dedup --window {window} -p {fpr} --stats=json"))
            .input(&input)
            .run()
            .ends(0);
        let stats: Value = serde_json::from_str(&done.err).expect("JSON on standard error");
        let number = |name: &str| stats[name].as_f64().unwrap_or_else(|| panic!("{name} in {stats}"));
        assert_eq!(number("read"), 200_000.0);
        assert_eq!(number("read"), number("printed") + number("dropped"));
        let printed: Vec<u64> =
            std::str::from_utf8(&done.out).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(printed.len() as f64, number("printed"));

        // Behind the window keys are forgotten gradually, until nothing is left in any slice.
        let sized = mayhap::Spec::sized(window, fpr).windowed().unwrap();
        let forgotten = sized.generation * u64::from(sized.slices());
        let verdicts = window_oracle(&lines, window as usize, forgotten as usize);
        let (mut wrongly, mut must_print, mut next) = (0u64, 0u64, printed.iter().peekable());
        for (line, verdict) in lines.iter().zip(&verdicts) {
            must_print += u64::from(*verdict == Some(true));
            // Lines that may be either are matched as far as the output goes on with them.
            let prints = next.peek() == Some(&line);
            match verdict {
                Some(false) => {}
                _ if prints => drop(next.next()),
                Some(true) => wrongly += 1,
                None => {}
            }
        }
        assert_eq!(next.next(), None, "a repeat within the window, or out of order");
        // Five deviations and a little, as of a Poisson number.
        let expected = fpr * must_print as f64;
        assert!(
            (wrongly as f64) < expected + 5.0 * expected.sqrt() + 5.0,
            "{wrongly} of {must_print} at {fpr}"
        );
        let claimed = number("expected_wrongly_dropped");
        assert!(claimed <= 1.05 * fpr * printed.len() as f64 && claimed > 0.0, "{claimed}");
        assert!(number("memory_bytes") * 8.0 == sized.bits() as f64 && number("fill") < 0.5);
    }
}

#[test]
fn a_window_of_the_whole_input_drops_every_repeat() {
    let folder = Folder::new();
    let input = random_lines(50_000, 20_000);
    let (first, repeated) = oracle(&input, b'\n');
    // One in a billion: nothing is lost here.
    folder.mayhap("dedup --window 50000 -p 1e-9").input(&input).run().ends(0).prints(&first).stays_quiet();
    folder.write("input", &input);
    folder.mayhap("dedup --window 50k -p 1e-9 --repeated input").run().ends(0).prints(&repeated);
}

#[test]
fn a_window_takes_keys_and_streams_like_all_of_dedup() {
    let folder = Folder::new();
    let cases = [
        ("-d, -k2", "1,a,x\n2,b,x\n3,a,y\n", "1,a,x\n2,b,x\n"),
        ("--as u64", "1\n01\n2\n", "1\n2\n"),
        ("-z", "a\0b\0a\0", "a\0b\0"),
    ];
    for (options, input, expected) in cases {
        folder
            .mayhap(&format!("dedup --window 100 -p 1e-9 {options}"))
            .input(input)
            .run()
            .ends(0)
            .prints(expected);
    }
    // Forgotten, and printed again.
    let rounds = ["first\n", &runner::lines("", 1000), "first\nfirst\n"].concat();
    let printed = ["first\n", &runner::lines("", 1000), "first\n"].concat();
    folder.mayhap("dedup --window 10 -p 1e-9").input(rounds).run().ends(0).prints(printed);
    let text = folder.mayhap("dedup --window 10 --stats").input("a\na\nb\n").run().ends(0).prints("a\nb\n");
    text.says("mayhap: read 3, printed 2, dropped 1; expected number of wrongly dropped records ")
        .says("; fill ");
    for (options, text) in [
        ("--window 0", "capacity must be 1 to 281474976710656, not 0"),
        ("--window many", "\"many\" is not a number"),
        ("--window 10 -p 5", "did you mean 5% (0.05)?"),
        ("--window 10 -p 1e-20", "at least 2^-64"),
    ] {
        folder.mayhap(&format!("dedup {options}")).run().ends(2).says(text);
    }
    folder.mayhap("dedup --window 10 --as u64").input("1\nx\n").run().ends(2).says("line 2");
}
