//! Input that tools lose lines over, and pipes that close early.

use std::io::{BufRead, BufReader};

use crate::runner::{Folder, lines, wait};

/// Builds, checks and deduplicates: no record may get lost or be made up.
#[track_caller]
fn round_trip(name: &str, input: &[u8], distinct: &[u8]) {
    let folder = Folder::new();
    folder.write("input", input);
    for stream in [false, true] {
        let call = |line: &str| match stream {
            false => folder.mayhap(&format!("{line} input")),
            true => folder.mayhap(line).input(input),
        };
        call("build --family exact -o f").run().ends(0);
        call("build -o g").run().ends(0);
        let mut whole = input.to_vec();
        if whole.last().is_some_and(|&last| last != b'\n') {
            whole.push(b'\n');
        }
        let status = i32::from(input.is_empty());
        call("check f").run().ends(status).prints(&whole).stays_quiet();
        call("check g").run().ends(status).prints(&whole).stays_quiet();
        call("check -v f").run().ends(1).prints("");
        let records = whole.iter().filter(|&&byte| byte == b'\n').count();
        let kept = distinct.iter().filter(|&&byte| byte == b'\n').count();
        call("dedup --stats")
            .run()
            .ends(0)
            .prints(distinct)
            .says(&format!("read {records}, printed {kept}, dropped {}", records - kept));
        call("test f").run().ends(0);
    }
    println!("{name} is right");
}

#[test]
fn no_record_is_lost() {
    round_trip("nothing", b"", b"");
    round_trip("an empty line", b"\n", b"\n");
    round_trip("empty lines", b"\n\n\n", b"\n");
    round_trip("empty lines between", b"a\n\nb\n\n", b"a\n\nb\n");
    round_trip("no final newline", b"a\nb", b"a\nb\n");
    round_trip("a repeat without a final newline", b"a\nb\na", b"a\nb\n");
    round_trip("NUL bytes", b"\0\na\0b\na\0c\n\0\n\0\0", b"\0\na\0b\na\0c\n\0\0\n");
    round_trip(
        "invalid UTF-8",
        b"\xff\n\xfe\n\xff\n\xc3\n\xed\xa0\x80\n",
        b"\xff\n\xfe\n\xc3\n\xed\xa0\x80\n",
    );
    round_trip("carriage returns", b"a\r\nb\r\na\r\na\n\r\n", b"a\r\nb\r\na\n\r\n");
    round_trip("a byte order mark", b"\xef\xbb\xbfa\na\n\xef\xbb\xbfa\n", b"\xef\xbb\xbfa\n\xef\xbb\xbfa\n");
    round_trip("white space", b" \n  \n\t\n \n", b" \n  \n\t\n");
}

#[test]
fn long_lines_are_records_like_any_other() {
    let mut line = vec![b'x'; 10 << 20];
    let (first, mut second) = (line.clone(), line.clone());
    second[7_000_000] = b'y';
    line.push(b'\n');
    let distinct = [&first[..], b"\n", &second[..], b"\nshort\n"].concat();
    let input = [&first[..], b"\n", &second[..], b"\nshort\n", &line[..], &second[..]].concat();
    round_trip("lines of 10 MiB", &input, &distinct);
}

/// Each read of a pipe once cleared as much memory as the line was long by then.
#[cfg(unix)]
#[test]
fn a_long_line_through_a_pipe_takes_linear_time() {
    let folder = Folder::new();
    // Of the processor, so that other processes do not count. The second line of `times` is that of the children.
    let seconds = |bytes: u64| -> f64 {
        let script = format!("head -c {bytes} /dev/zero | \"$MAYHAP\" dedup --stats > /dev/null; times");
        let done = folder.sh(&script).run().ends(0).says("read 1, printed 1");
        let text = String::from_utf8(done.out).expect("text");
        let times = text.lines().nth(1).expect("two lines").split_whitespace();
        let seconds = |time: &str| {
            let (minutes, seconds) = time.trim_end_matches('s').split_once('m').expect("minutes");
            60.0 * minutes.parse::<f64>().unwrap() + seconds.parse::<f64>().unwrap()
        };
        times.map(seconds).sum()
    };
    // Twice for linear time, four times for quadratic; and what is too short to be measured well.
    let (short, long) = (seconds(150_000_000), seconds(300_000_000));
    assert!(long < 3.0 * short + 0.5, "{short} seconds, and {long} for a line of twice the length");
}

#[test]
fn lines_of_all_lengths_around_the_size_of_a_read() {
    const READ: usize = 256 * 1024;
    for length in [READ - 2, READ - 1, READ, READ + 1, 2 * READ - 1, 2 * READ, 64 * 1024] {
        let line = vec![b'a'; length];
        let input = [&line[..], b"\nb\n", &line[..], b"\n", &line[..]].concat();
        round_trip(&format!("lines of {length}"), &input, &[&line[..], b"\nb\n"].concat());
    }
}

#[test]
fn an_empty_input_builds_a_filter_that_says_no() {
    let folder = Folder::new();
    folder.write("empty", "");
    for options in ["", "--exact", "--exact --as u64", "-n 100", "empty", "--family roaring --as u64"] {
        let kind = if options.contains("u64") { "--as u64" } else { "" };
        folder.mayhap(&format!("build -o f {options}")).run().ends(0);
        folder.mayhap(&format!("check {kind} f")).input(lines("", 1000)).run().ends(1).prints("");
        let info = folder.mayhap("info --json --verify f").run().ends(0).json();
        assert_eq!((&info["inserted"], &info["fpr_now"]), (&0.into(), &0.0.into()), "{options}");
        folder.mayhap(&format!("add {kind} f")).input("0\n").run().ends(0);
        folder.mayhap(&format!("check -c {kind} f")).input("0\n").run().ends(0).prints("1\n");
    }
}

#[test]
fn several_inputs_are_read_in_order_and_never_joined() {
    let folder = Folder::new();
    folder.write("one", "a\nb");
    folder.write("two", "c\n");
    folder.write("none", "");
    folder.write("three", "d");
    folder.mayhap("dedup one two none three").run().ends(0).prints("a\nb\nc\nd\n");
    folder.mayhap("dedup one - three").input("x\ny").run().ends(0).prints("a\nb\nx\ny\nd\n");
    folder.mayhap("dedup - two").input("x").run().ends(0).prints("x\nc\n");
    // Standard input is at its end when it is named again.
    folder.mayhap("dedup - one -").input("x\n").run().ends(0).prints("x\na\nb\n");
    for options in ["", "-n 10"] {
        folder
            .mayhap(&format!("build --family exact {options} -o f one - three"))
            .input("x\ny")
            .run()
            .ends(0);
        folder.mayhap("check f").input("a\nb\nbx\nx\ny\nyd\nd\n").run().ends(0).prints("a\nb\nx\ny\nd\n");
    }
    folder.mayhap("dedup one absent three").run().ends(2).says("mayhap: absent: cannot open: ");
    folder.mayhap("dedup one .").run().ends(2).says_only("mayhap: .: is a folder; give the files in it");
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_are_names() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let name = std::ffi::OsStr::from_bytes(b"k\xff y");
    let path = folder.path("").join(name);
    if std::fs::write(&path, "a\n").is_err() {
        println!("skipped: the file system takes no such names");
        return;
    }
    folder.mayhap("dedup").arg(&path).run().ends(0).prints("a\n");
    folder.mayhap("build").arg("-o").arg(path.with_extension("f")).arg(&path).run().ends(0);
}

/// Reads one line and closes the pipe, as `| head -1` does.
fn head(folder: &Folder, line: &str) -> String {
    let mut child = folder.mayhap(line).start();
    drop(child.stdin.take());
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let status = wait(&mut child, line);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(status.code(), Some(0), "{line}: {said}");
    assert_eq!(said, "", "{line}");
    first
}

#[test]
fn a_closed_pipe_ends_every_command_quietly() {
    let folder = Folder::new();
    folder.write("keys", lines("", 500_000));
    folder.mayhap("build -o f keys").run().ends(0);
    for command in ["dedup keys", "check f keys", "sort keys", "check --annotate f keys"] {
        assert!(head(&folder, command).starts_with('0'), "{command}");
    }
    for command in ["calc -n 1M -p 1%", "calc -n 1M -p 1% --json", "families", "info f", "info --json f"] {
        head(&folder, command);
    }
    for shell in ["bash", "zsh", "fish"] {
        head(&folder, &format!("completions {shell}"));
    }
}

#[test]
fn a_pipe_that_was_never_open_ends_every_command_quietly() {
    let folder = Folder::new();
    folder.write("keys", lines("", 1000));
    folder.mayhap("build -o f keys").run().ends(0);
    for command in [
        "dedup keys",
        "check f keys",
        "sort keys",
        "sort -c keys",
        "calc -n 1M -p 1%",
        "families",
        "info f",
        "info --json f",
        "test f keys",
        "completions bash",
        "build --quiet -o - keys",
        "merge --quiet -o - f",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        folder.mayhap(command).output(writer).run().ends(0).stays_quiet();
    }
}
