//! Which bytes of a record are its key: columns, JSON fields, white space, case, kinds, ends.

mod runner;

use runner::Folder;

/// Builds an exact set with some options and asks for records with others.
#[track_caller]
fn found(build: &str, keys: &[u8], check: &str, records: &[u8]) -> Vec<u8> {
    let folder = Folder::new();
    folder.mayhap(&format!("build --family exact -o f {build}")).input(keys).run().ends(0);
    let done = folder.mayhap(&format!("check f {check}")).input(records).run();
    assert!(done.status.code() != Some(2), "{}", done.err);
    done.out
}

/// What a wrong record is told.
#[track_caller]
fn refused(options: &str, records: &[u8], message: &str) {
    let folder = Folder::new();
    for command in ["build -o f", "dedup"] {
        let place = format!("mayhap: (standard input): line {message}");
        folder.mayhap(&format!("{command} {options}")).input(records).run().ends(2).says_only(&place);
    }
    assert!(folder.names().is_empty());
}

#[test]
fn keys_are_bytes() {
    assert_eq!(found("", b"a\xff\0b\nc\n", "", b"a\xff\0b\na\xff\na\nc\n"), b"a\xff\0b\nc\n");
    assert_eq!(found("", b"a\n", "", b"A\n a\na \na\r\na\n"), b"a\n");
    // Composed and decomposed letters are different bytes.
    assert_eq!(found("", "é\n".as_bytes(), "", "e\u{301}\né\n".as_bytes()), "é\n".as_bytes());
}

#[test]
fn columns() {
    assert_eq!(found("", b"b\n", "-d, -k2", b"a,b,c\nb,a\nx,b\n"), b"a,b,c\nx,b\n");
    assert_eq!(found("-d: -k1", b"root:x:0\nmail:x:8\n", "", b"root\nx\nmail\n"), b"root\nmail\n");
    assert_eq!(found("", b"b\n", "-k2", b"a\tb\nb\ta\n"), b"a\tb\n", "a tab is the default");
    assert_eq!(found("", b"b\n", "-d \\t -k 2", b"a\tb\nb\ta\n"), b"a\tb\n");
    assert_eq!(found("", b"b\n", "-d \\x1f -k 2", b"a\x1fb\n"), b"a\x1fb\n");
    assert_eq!(found("", b"b\n", "-d \\0 -k 2", b"a\0b\n"), b"a\0b\n");
    assert_eq!(found("", b"b\n", "-d :: -k 3", b"a::x::b\n"), b"a::x::b\n");
    assert_eq!(found("", b"\n", "-d, -k2", b"a,,c\na,b\n"), b"a,,c\n", "an empty column is an empty key");
    assert_eq!(found("", b"b\n", "--delimiter=| --field=2", b"a|b\n"), b"a|b\n");
    refused("-d, -k3", b"a,b,c\na,b\n", "2: there are 2 fields, and field 3 is the key");
    let folder = Folder::new();
    folder.mayhap("dedup -d,").run().ends(2).says("--field <N>");
    folder.mayhap("dedup -k0").run().ends(2).says("fields are counted from 1");
    folder.mayhap("dedup -kx").run().ends(2).says("\"x\" is not a number of a field");
    folder.mayhap("dedup -k1 -d \\q").run().ends(2).says("give a character, \\t, \\0, \\\\ or \\xHH");
}

#[test]
fn json_fields() {
    let records = br#"{"user":{"id":7,"name":"x"},"tags":["a","b"]}
{"user":{"id":8,"name":"y"},"tags":["c"]}
"#;
    let first = &records[..records.iter().position(|&byte| byte == b'\n').unwrap() + 1];
    assert_eq!(found("", b"7\n", "--json-key /user/id", records), first);
    assert_eq!(found("", b"x\n", "--json-key .user.name", records), first);
    assert_eq!(found("", b"a\n", "--json-key /tags/0", records), first);
    assert_eq!(found("--json-key /user/name", records, "", b"x\ny\nz\n"), b"x\ny\n");
    assert_eq!(found("--as u64", b"7\n", "--as u64 --json-key /user/id", records), first);
    let folder = Folder::new();
    folder
        .mayhap("dedup --json-key /a")
        .input("{\"a\":1}\n{\"b\":1}\n")
        .run()
        .ends(2)
        .says("line 2: ")
        .says("no field \"a\"");
    folder
        .mayhap("dedup --json-key /a")
        .input("{\"a\":1}\n{\"a\":\n")
        .run()
        .ends(2)
        .says("line 2: ")
        .says("not JSON");
    folder.mayhap("dedup --json-key a").run().ends(2).says("\"a\" is no JSON pointer, such as /user/id");
    folder.mayhap("dedup --json-key /a -k1").run().ends(2).says("cannot be used with");
}

#[test]
fn white_space_and_case() {
    assert_eq!(found("--trim", b"  a b\t\n", "", b"a b\n  a b\t\n"), b"a b\n");
    assert_eq!(found("", b"a b\n", "--trim", b" a b \na b\r\nab\n"), b" a b \na b\r\n");
    assert_eq!(found("--ignore-case", b"AbC\n", "", b"abc\nAbC\n"), b"abc\n");
    assert_eq!(found("", b"abc\n", "--ignore-case", b"ABC\nabc\nABD\n"), b"ABC\nabc\n");
    // ASCII only: other letters stay what they are.
    assert_eq!(found("", "é\n".as_bytes(), "--ignore-case", "É\né\n".as_bytes()), "é\n".as_bytes());
    assert_eq!(found("", b"b\n", "-d, -k2 --trim --ignore-case", b"a, B ,c\n"), b"a, B ,c\n");
}

#[test]
fn record_ends() {
    assert_eq!(found("", b"a\n", "-z", b"a\0b\0a"), b"a\0a\0");
    assert_eq!(found("-z", b"a\nb\0c", "-z", b"c\0a\nb\0"), b"c\0a\nb\0");
    assert_eq!(
        found("", b"a\n", "--crlf", b"a\r\nb\r\na\n"),
        b"a\r\na\n",
        "output lines are the original bytes"
    );
    assert_eq!(found("--crlf", b"a\r\nb\r\n", "", b"a\nb\na\r\n"), b"a\nb\n");
    assert_eq!(found("--crlf", b"a\r\r\n", "", b"a\na\r\n"), b"a\r\n", "one carriage return is dropped");
    assert_eq!(found("", b"a\r\n", "", b"a\na\r\n"), b"a\r\n", "without --crlf it is part of the key");
}

#[test]
fn kinds_have_the_bytes_that_are_documented() {
    // Each kind against the same bytes in hexadecimal.
    let cases: [(&str, &[u8], &[u8]); 10] = [
        ("bytes", b"a\n", b"61\n"),
        ("hex", b"00fF\n", b"00ff\n"),
        ("hex", b"\n", b"\n"),
        ("u64", b"258\n", b"0201000000000000\n"),
        ("u64", b"18446744073709551615\n", b"ffffffffffffffff\n"),
        ("i64", b"-2\n", b"feffffffffffffff\n"),
        ("i64", b"-9223372036854775808\n", b"0000000000000080\n"),
        ("i32", b"-2\n", b"feffffff\n"),
        ("i32", b"2147483647\n", b"ffffff7f\n"),
        ("utf16", "aé😀\n".as_bytes(), b"6100e9003dd800de\n"),
    ];
    for (kind, text, hex) in cases {
        assert_eq!(found(&format!("--as {kind}"), text, "--as hex", hex), hex, "{kind}");
        assert_eq!(found("--as hex", hex, &format!("--as {kind}"), text), text, "{kind}");
    }
}

#[test]
fn a_record_that_is_not_of_the_kind_is_an_error_with_its_line() {
    refused("--as hex", b"ab\nabc\n", "2: \"abc\" is not hexadecimal: its number of digits is odd");
    refused("--as hex", b"xy\n", "1: \"xy\" is not hexadecimal");
    refused("--as u64", b"1\n-1\n", "2: \"-1\" is not a whole number from 0 to 18446744073709551615");
    refused("--as u64", b"1\n2\n\n", "3: \"\" is not a whole number from 0 to 18446744073709551615");
    refused("--as u64", b" 1\n", "1: \" 1\" is not a whole number from 0 to 18446744073709551615");
    refused(
        "--as i64",
        b"9223372036854775808\n",
        "1: \"9223372036854775808\" is not a whole number from -9223372036854775808 to 9223372036854775807",
    );
    refused(
        "--as i32",
        b"2147483648\n",
        "1: \"2147483648\" is not a whole number from -2147483648 to 2147483647",
    );
    refused("--as utf16", b"a\n\xff\n", "2: \"\u{fffd}\" is not UTF-8");
    let long = "9".repeat(100);
    refused(
        "--as u64",
        long.as_bytes(),
        &format!("1: \"{}…\" is not a whole number from 0 to 18446744073709551615", "9".repeat(40)),
    );
    let folder = Folder::new();
    folder
        .mayhap("dedup --as float")
        .run()
        .ends(2)
        .says("[possible values: bytes, hex, u64, i64, i32, utf16]");
}

/// Whatever the threads do when, the first wrong line of the input is the one that is told.
#[test]
fn the_first_wrong_line_is_told() {
    let folder = Folder::new();
    let mut input = String::new();
    for i in 0..300_000 {
        input.push_str(if i >= 150_000 && i % 7 == 0 { "wrong\n" } else { "1234567890\n" });
    }
    folder.write("numbers", "1\n2\n");
    folder.write("input", &input);
    for _ in 0..5 {
        folder.mayhap("build --as u64 -o f -n 10 numbers input --threads 8").run().ends(2).says_only(
            "mayhap: input: line 150004: \"wrong\" is not a whole number from 0 to 18446744073709551615",
        );
    }
}
