//! Input that tools lose lines over, disks that are full and pipes that close early, in every mode of `mayhap dedup`.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::oracle::{firsts, records, repeats, report, singles};
use crate::runner::{Folder, lines, wait};

/// Every mode, with what it prints of an input.
type Oracle = fn(&[u8]) -> Vec<u8>;
const MODES: [(&str, Oracle); 12] = [
    ("", firsts),
    ("-p 1e-12", firsts),
    ("--exact", firsts),
    ("--verify", firsts),
    ("--memory 64MiB", firsts),
    ("--window 1M -p 1e-9", firsts),
    ("--state s", firsts),
    ("--state s --exact", firsts),
    ("--line-buffered", firsts),
    ("--repeated", repeats),
    ("--verify --repeated", repeats),
    ("--only-once", singles),
];

/// No record is lost or made up: what is printed is right, and the report adds up.
#[track_caller]
fn nothing_is_lost(name: &str, input: &[u8]) {
    let folder = Folder::new();
    folder.write("input", input);
    for (options, oracle) in MODES {
        let wanted = oracle(input);
        for stream in [false, true] {
            let line = format!("dedup --stats=json {options}");
            let call = match stream {
                true => folder.mayhap(&line).input(input),
                false => folder.mayhap(&line).arg("input"),
            };
            let done = call.run().ends(0);
            let _ = std::fs::remove_file(folder.path("s"));
            assert!(done.out == wanted, "{line} of {name}, stream: {stream}");
            let report = report(&done);
            assert_eq!(report["read"], records(input, b'\n').len(), "{line} of {name}, stream: {stream}");
            assert_eq!(
                report["printed"],
                records(&wanted, b'\n').len(),
                "{line} of {name}, stream: {stream}"
            );
        }
    }
}

#[test]
fn no_record_is_lost() {
    nothing_is_lost("nothing", b"");
    nothing_is_lost("an empty line", b"\n");
    nothing_is_lost("empty lines", b"\n\n\n");
    nothing_is_lost("empty lines between", b"a\n\nb\n\n");
    nothing_is_lost("no final newline", b"a\nb");
    nothing_is_lost("a repeat without a final newline", b"a\nb\na");
    nothing_is_lost("NUL bytes", b"\0\na\0b\na\0c\n\0\n\0\0");
    nothing_is_lost("invalid UTF-8", b"\xff\n\xfe\n\xff\n\xc3\n\xed\xa0\x80\n\xc3\n");
    nothing_is_lost("carriage returns", b"a\r\nb\r\na\r\na\n\r\n\n\r\n");
    nothing_is_lost("a byte order mark", b"\xef\xbb\xbfa\na\n\xef\xbb\xbfa\n");
    nothing_is_lost("white space", b" \n  \n\t\n \n");
}

/// Records that end where a read ends, just before and just behind it.
#[test]
fn no_record_is_lost_around_the_size_of_a_read() {
    for read in [64 << 10, 256 << 10, 1 << 20] {
        for length in [read - 1, read, read + 1] {
            let line = vec![b'a'; length];
            let input = [&line[..], b"\nb\n\n", &line[..], b"\nb\n", &line[..]].concat();
            let folder = Folder::new();
            folder.write("input", &input);
            for (options, oracle) in MODES {
                let _ = std::fs::remove_file(folder.path("s"));
                let done = folder.mayhap(&format!("dedup {options} input")).run().ends(0);
                assert!(done.out == oracle(&input), "{options}, lines of {length}");
            }
        }
    }
}

/// Two lines of a length that differ in one byte, and a short one, each twice.
fn long_lines(length: usize) -> Vec<u8> {
    let mut input = Vec::with_capacity(4 * length + 100);
    for _ in 0..2 {
        for different in [b'x', b'y'] {
            let start = input.len();
            input.resize(start + length, b'x');
            input[start + length / 3 * 2] = different;
            input.push(b'\n');
        }
        input.extend(b"short\n");
    }
    input.extend(b"end");
    input
}

#[test]
fn a_very_long_line_is_a_record_like_any_other() {
    let input = long_lines(64 << 20);
    let folder = Folder::new();
    folder.write("input", &input);
    for (options, oracle) in [MODES[0], MODES[2], MODES[3], MODES[11]] {
        let done = folder.mayhap(&format!("dedup --stats=json {options} input")).run().ends(0);
        assert!(done.out == oracle(&input), "{options}");
        assert_eq!(report(&done)["read"], 7, "{options}");
    }
}

/// One line of 1 GiB, twice, through a pipe and from a file.
#[cfg(unix)]
#[test]
#[ignore = "reads and writes several gigabytes"]
fn a_line_of_a_gigabyte_is_a_record_like_any_other() {
    let folder = Folder::new();
    let input = "(head -c 1073741824 /dev/zero; echo; echo a; head -c 1073741824 /dev/zero; echo)";
    folder.sh(&format!("{input} > input")).run().ends(0);
    for options in ["", "--exact", "--verify"] {
        for source in [format!("{input} | \"$MAYHAP\" dedup"), "\"$MAYHAP\" dedup input".into()] {
            let script = format!("{source} --stats {options} | wc -c");
            let done = folder.sh(&script).run().ends(0).says("read 3, printed 2, dropped 1");
            assert_eq!(String::from_utf8_lossy(&done.out).trim(), (1073741824 + 3).to_string(), "{script}");
        }
    }
}

/// Reads one line and closes the pipe, as `| head -1` does.
#[test]
fn a_closed_pipe_ends_every_mode_quietly() {
    let folder = Folder::new();
    folder.write("input", [lines("", 300_000), lines("", 300_000)].concat());
    folder.write("once", lines("", 600_000));
    for (options, _) in MODES {
        let file = if options == "--only-once" { "once" } else { "input" };
        let line = format!("dedup {options} {file}");
        let mut child = folder.mayhap(&line).start();
        drop(child.stdin.take());
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let status = wait(&mut child, &line);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((status.code(), &said[..], &first[..]), (Some(0), "", "0\n"), "{line}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        folder.mayhap(&line).output(writer).run().ends(0).stays_quiet();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_in_every_mode() {
    let folder = Folder::new();
    folder.write("large", [lines("", 100_000), lines("", 100_000)].concat());
    folder.write("small", "a\na\nb\n");
    for (options, _) in MODES {
        for file in ["large", "small"] {
            if options == "--only-once" && file == "large" {
                continue;
            }
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let done = folder.mayhap(&format!("dedup {options} {file}")).output(full).run().ends(2);
            done.says("standard output").says("No space left on device");
        }
    }
}

/// The lines that a program prints, as they come.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let output = child.stdout.take().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().for_each(|line| drop(sender.send(line.unwrap())));
    });
    receiver
}

/// `tail -f log | mayhap dedup`: each line is seen at once, and not when the next one comes.
#[test]
fn a_slow_producer_sees_each_line_at_once() {
    let folder = Folder::new();
    for options in
        ["", "--exact", "--memory 64MiB", "--window 10k", "--state s", "--url", "--header", "--repeated"]
    {
        for buffered in ["", "--line-buffered"] {
            let line = format!("dedup {options} {buffered}");
            let mut child = folder.mayhap(&line).start();
            let mut input = child.stdin.take().unwrap();
            let printed = lines_of(&mut child);
            let mut next = |written: &str| {
                input.write_all(written.as_bytes()).unwrap();
                printed
                    .recv_timeout(Duration::from_secs(20))
                    .unwrap_or_else(|_| panic!("{line}: nothing of {written:?}"))
            };
            if options == "--repeated" {
                assert_eq!(next("a\nb\na\n"), "a");
                assert_eq!(next("b\n"), "b");
            } else {
                assert_eq!(next("a\n"), "a", "{line}");
                assert_eq!(next("b\n"), "b", "{line}");
                assert_eq!(next("b\nc\nd"), "c", "{line}");
                assert_eq!(next("e\n"), "de", "{line}");
            }
            drop(input);
            assert!(wait(&mut child, &line).success());
            assert!(printed.recv().is_err(), "{line}: nothing more");
            let _ = std::fs::remove_file(folder.path("s"));
        }
    }
}

/// A producer that never pauses and whose lines are all new: what was read long ago is not held back.
#[test]
fn a_fast_producer_sees_lines_before_its_input_ends() {
    let folder = Folder::new();
    for options in ["", "--line-buffered", "--exact", "--state s"] {
        let line = format!("dedup {options}");
        let mut child = folder.mayhap(&line).start();
        let mut input = child.stdin.take().unwrap();
        let printed = lines_of(&mut child);
        let text = lines("", 300_000);
        input.write_all(text.as_bytes()).unwrap();
        for expected in text.lines() {
            let line = printed.recv_timeout(Duration::from_secs(20));
            assert_eq!(line.as_deref(), Ok(expected), "{options}: all of it, while the input is open");
        }
        drop(input);
        assert!(wait(&mut child, &line).success());
        let _ = std::fs::remove_file(folder.path("s"));
    }
}
