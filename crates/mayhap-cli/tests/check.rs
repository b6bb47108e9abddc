//! `mayhap check`: grep for keys.

mod runner;

use runner::Folder;

/// An exact set of a, b and c, so that no answer is a matter of luck.
fn abc() -> Folder {
    let folder = Folder::new();
    folder.mayhap("build --exact -o f").input("a\nb\nc\n").run().ends(0);
    folder
}

#[test]
fn prints_what_is_in_or_what_is_not() {
    let folder = abc();
    let check = |options: &str, input: &str| folder.mayhap(&format!("check f {options}")).input(input).run();
    check("", "x\nc\ny\na\nc\n").ends(0).prints("c\na\nc\n").stays_quiet();
    check("-v", "x\nc\ny\na\nc\n").ends(0).prints("x\ny\n").stays_quiet();
    check("", "x\ny\n").ends(1).prints("");
    check("-v", "a\nb\n").ends(1).prints("");
    check("", "").ends(1).prints("");
}

#[test]
fn counts_numbers_and_annotates() {
    let folder = abc();
    let check = |options: &str, input: &str| folder.mayhap(&format!("check f {options}")).input(input).run();
    check("-c", "x\nc\na\n").ends(0).prints("2\n");
    check("-c", "x\n").ends(1).prints("0\n");
    check("-cv", "x\nc\na\n").ends(0).prints("1\n");
    check("-n", "x\nc\ny\na").ends(0).prints("2:c\n4:a\n");
    check("-nv", "x\nc\ny\na").ends(0).prints("1:x\n3:y\n");
    check("--annotate", "x\nc\n").ends(0).prints("x\tno\nc\tmayhap\n");
    check("--annotate", "x\ny\n").ends(1).prints("x\tno\ny\tno\n");
    check("--annotate -d, -k2", "1,x\n2,c\n").ends(0).prints("1,x,no\n2,c,mayhap\n");
    check("--annotate -n", "x\nc\n").ends(0).prints("1:x\tno\n2:c\tmayhap\n");
    for options in ["-c -q", "-c --annotate", "-q --annotate", "-v --annotate"] {
        check(options, "").ends(2).says("cannot be used with");
    }
}

#[test]
fn line_numbers_start_again_in_each_file() {
    let folder = abc();
    folder.write("one", "x\na");
    folder.write("two", "b\n");
    folder.mayhap("check -n f one two").run().ends(0).prints("2:a\n1:b\n");
}

#[test]
fn quick_stops_at_the_first() {
    let folder = abc();
    folder.mayhap("check -q f").input("x\na\n").run().ends(0).prints("").stays_quiet();
    folder.mayhap("check -q f").input("x\n").run().ends(1).prints("").stays_quiet();
    folder.mayhap("check -qv f").input("a\n").run().ends(1);
    // The second file is not even opened.
    folder.write("one", "a\n");
    folder.mayhap("check -q f one absent").run().ends(0);
}

#[test]
fn keys_can_be_arguments() {
    let folder = abc();
    folder.mayhap("check f --key x --key a --key b").run().ends(0).prints("a\nb\n");
    folder.mayhap("check -q f --key x").run().ends(1).prints("");
    folder.mayhap("check -n f --key x --key a").run().ends(0).prints("2:a\n");
    folder.mayhap("check -v f --key -x --key -q").run().ends(0).prints("-x\n-q\n");
    folder.mayhap("check f --ignore-case --trim --key").arg(" A ").run().ends(0).prints(" A \n");
    folder
        .mayhap("check f --as u64 --key 1 --key z")
        .run()
        .ends(2)
        .says("mayhap: --key number 2: \"z\" is not");
    folder.mayhap("check f --key a file").run().ends(2).says("cannot be used with");
}

#[test]
fn answers_come_before_the_input_ends() {
    use std::io::{BufRead, BufReader, Write};
    let folder = abc();
    let mut child = folder.mayhap("check f").start();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().for_each(|line| drop(sender.send(line.unwrap())))
    });
    input.write_all(b"x\na\n").unwrap();
    assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(20)).as_deref(), Ok("a"));
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_filter_from_a_pipe_and_one_that_is_read_whole_answer_the_same() {
    let folder = abc();
    folder.mayhap("check --no-mmap f").input("x\na\n").run().ends(0).prints("a\n");
    #[cfg(unix)]
    folder.sh("cat f | \"$MAYHAP\" check /dev/stdin --key x --key a").run().ends(0).prints("a\n");
}

#[test]
fn integers_are_asked_for_as_integers() {
    let folder = Folder::new();
    folder.mayhap("build --exact --as u64 -o f").input("1\n2\n").run().ends(0);
    folder.mayhap("check --as u64 f").input("2\n3\n").run().ends(0).prints("2\n");
    folder
        .mayhap("check f")
        .input("2\n")
        .run()
        .ends(2)
        .says("mayhap: f: the family bitmap holds integers; say --as u64");
}
