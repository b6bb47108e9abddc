//! Which bytes of a record are its key: columns, JSON fields, white space, case, kinds, ends.

use crate::runner::Folder;

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
    refused("-d, -k3", b"a,b,c\na,b\n", "2: only 2 fields, and the key is field 3");
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
    assert_eq!(found("--trim", b"  a b\t\n", "", b"a b\n  a b\t\nab\n"), b"a b\n  a b\t\n");
    assert_eq!(found("--trim", b"a b\n", "--trim", b" a b \na b\r\nab\n"), b" a b \na b\r\n");
    assert_eq!(found("--ignore-case", b"AbC\n", "", b"abc\nAbC\nab\n"), b"abc\nAbC\n");
    assert_eq!(found("--ignore-case", b"abc\n", "--ignore-case", b"ABC\nabc\nABD\n"), b"ABC\nabc\n");
    // ASCII only: other letters stay what they are.
    assert_eq!(found("--ignore-case", "é\n".as_bytes(), "", "É\né\n".as_bytes()), "é\n".as_bytes());
    assert_eq!(found("--trim --ignore-case", b"b\n", "-d, -k2", b"a, B ,c\n"), b"a, B ,c\n");
}

#[test]
fn record_ends() {
    assert_eq!(found("", b"a\n", "-z", b"a\0b\0a"), b"a\0a\0");
    assert_eq!(found("-z", b"a\nb\0c", "-z", b"c\0a\nb\0"), b"c\0a\nb\0");
    assert_eq!(
        found("--crlf", b"a\n", "--crlf", b"a\r\nb\r\na\n"),
        b"a\r\na\n",
        "output lines are the original bytes"
    );
    assert_eq!(found("--crlf", b"a\r\nb\r\n", "", b"a\nb\na\r\nc\n"), b"a\nb\na\r\n");
    assert_eq!(
        found("--crlf", b"a\r\r\n", "", b"a\na\r\na\r\r\n"),
        b"a\r\r\n",
        "one carriage return is dropped"
    );
    assert_eq!(found("", b"a\r\n", "", b"a\na\r\n"), b"a\r\n", "without --crlf it is part of the key");
}

#[test]
fn kinds_have_the_bytes_that_are_documented() {
    let cases: [(&str, &[u8], &[u8]); 10] = [
        ("bytes", b"a\n", b"a"),
        ("hex", b"00fF\n", &[0, 255]),
        ("hex", b"\n", b""),
        ("u64", b"258\n", &[2, 1, 0, 0, 0, 0, 0, 0]),
        ("u64", b"18446744073709551615\n", &[255; 8]),
        ("i64", b"-2\n", &[254, 255, 255, 255, 255, 255, 255, 255]),
        ("i64", b"-9223372036854775808\n", &[0, 0, 0, 0, 0, 0, 0, 128]),
        ("i32", b"-2\n", &[254, 255, 255, 255]),
        ("i32", b"2147483647\n", &[255, 255, 255, 127]),
        ("utf16", "aé😀\n".as_bytes(), &[0x61, 0, 0xe9, 0, 0x3d, 0xd8, 0, 0xde]),
    ];
    for (kind, text, bytes) in cases {
        let folder = Folder::new();
        folder.mayhap(&format!("build --family exact -o f --as {kind}")).input(text).run().ends(0);
        let filter = mayhap::open(folder.read("f").into(), None).unwrap();
        assert!(filter.contains(bytes) && filter.report().inserted == Some(1), "{kind}");
        // In another file, made in Rust, which says nothing of its keys.
        let mut made = mayhap::Exact::default();
        made.insert(bytes).unwrap();
        folder.write("g", mayhap::encode(&made, mayhap::Summing::Payload).to_vec());
        folder.mayhap(&format!("check g --as {kind}")).input(text).run().ends(0).prints(text);
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

// The file remembers how its keys are spelled.

/// A key was spelled by rules that the file did not know, and denied.
#[test]
fn a_lookup_spells_keys_as_the_file_says() {
    for (options, key, same) in [
        ("--ignore-case", "Evil.COM", "evil.com"),
        ("--trim", "  evil.com ", "evil.com"),
        ("--url", "HTTP://evil.com:80/#x", "http://evil.com/"),
        ("--strip-query utm_*", "http://a.org/?utm_x=1&b", "http://a.org/?b"),
        ("--crlf", "evil.com\r", "evil.com"),
        ("--as u64", "007", "7"),
        ("--as hex", "fF", "ff"),
    ] {
        let folder = Folder::new();
        let record = format!("{key}\n");
        folder.mayhap(&format!("build --counts --removable {options} -o f")).input(&record).run().ends(0);
        for asked in [key, same] {
            folder.mayhap("check f --key").arg(asked).run().ends(0).prints(format!("{asked}\n"));
            let counted = folder.mayhap("count f --key").arg(asked).run().ends(0);
            let counted_once = counted.out.trim_ascii_end().ends_with(b"\t1");
            assert!(counted_once, "{options} {asked}: {}", counted.out.escape_ascii());
        }
        folder.mayhap("test f").input(&record).run().ends(0);
        folder.mayhap(&format!("check {options} f")).input(&record).run().ends(0).prints(&record);
        folder.mayhap("add f").input(&record).run().ends(0).says("0 of them new");
        folder.mayhap("remove f").input(format!("{same}\n{key}\n")).run().ends(0);
        folder.mayhap("check f --key").arg(key).run().ends(1);
        // It is shown.
        let shown = format!("spelled {options}\n");
        folder.mayhap("info f").run().ends(0).shows(&shown);
        assert_eq!(folder.mayhap("info --json f").run().ends(0).json()["spelling"]["options"], options);
    }
}

#[test]
fn a_label_spells_keys_as_the_file_says() {
    let folder = Folder::new();
    folder.write("bad", "Evil.COM\n");
    folder.mayhap("build --ignore-case --label bad=bad -o f").run().ends(0);
    folder.mayhap("label f --key EVIL.com").run().ends(0).prints("EVIL.com\tbad\n");
}

#[test]
fn options_that_contradict_the_file_are_an_error_that_names_both() {
    let folder = Folder::new();
    folder.mayhap("build -o plain").input("a\n").run().ends(0);
    folder.mayhap("build --ignore-case --trim -o both").input("a\n").run().ends(0);
    folder.mayhap("build --as u64 -o integers").input("1\n").run().ends(0);
    folder.mayhap("build --strip-query b,a* -o urls").input("http://a\n").run().ends(0);
    for (line, file_says, given) in [
        ("check --ignore-case plain --key a", "as they stand", "--ignore-case says"),
        ("check --crlf --trim plain --key a", "as they stand", "--crlf and --trim say"),
        ("check --crlf both --key a", "--trim --ignore-case", "--crlf says"),
        ("check --url plain --key a", "as they stand", "--url says"),
        ("check --as i64 integers --key 1", "--as u64", "--as i64 says"),
        ("check --as bytes integers --key 1", "--as u64", "--as bytes says"),
        ("check --url urls --key a", "--strip-query a*,b", "--url says"),
        ("check --strip-query a urls --key a", "--strip-query a*,b", "--strip-query a says"),
        ("add --trim plain", "as they stand", "--trim says"),
        ("remove --as u64 plain", "cannot remove", ""),
        ("test --as hex plain", "as they stand", "--as hex says"),
    ] {
        folder.mayhap(line).input("a\n").run().ends(2).prints("").says(file_says).says(given);
    }
    // What the file says anyway, in another order, is no contradiction.
    folder.mayhap("check --strip-query a*,b urls --key http://a").run().ends(0);
    folder.mayhap("check --trim both --key A").run().ends(0);
}

/// Cutting belongs to the input, and is stored for information only.
#[test]
fn columns_differ_between_build_and_check() {
    let folder = Folder::new();
    folder.mayhap("build -d: -k2 -o f").input("x:a\ny:b\n").run().ends(0);
    folder.mayhap("check f").input("a\nc\n").run().ends(0).prints("a\n");
    folder.mayhap("check f -d, -k3").input("1,2,b\n").run().ends(0).prints("1,2,b\n");
    folder.mayhap("info f").run().ends(0).shows("field 2 between \":\"");
}

#[test]
fn filters_whose_keys_are_spelled_differently_do_not_merge() {
    let folder = Folder::new();
    for (name, options) in [("plain", ""), ("cased", "--ignore-case"), ("again", "--ignore-case")] {
        folder.mayhap(&format!("build -n 100 {options} -o {name}")).input(format!("{name}\n")).run().ends(0);
    }
    folder
        .mayhap("merge -o m plain cased")
        .run()
        .ends(2)
        .says("plain and cased: their keys are spelled differently: as they stand, and --ignore-case");
    assert!(!folder.path("m").exists());
    folder.mayhap("merge -o m cased again").run().ends(0);
    folder.mayhap("check m --key CASED").run().ends(0);
    folder.mayhap("fold -p 50% -o half m").run();
    folder.mayhap("convert m -o c --to mayhap").run().ends(0);
    folder.mayhap("info c").run().ends(0).shows("spelled --ignore-case");
    // Two filters that are asked together are each asked in their own way.
    let which = folder.mayhap("check plain cased --which").input("CASED\nplain\n").run().ends(0);
    which.prints("cased\tCASED\nplain\tplain\n");
}

#[test]
fn a_foreign_file_says_what_is_lost() {
    let folder = Folder::new();
    let lost = "does not say how its keys are spelled: --ignore-case";
    folder.mayhap("build --format guava --ignore-case -o f").input("A\n").run().ends(0);
    folder.mayhap("convert f -o g --to guava").run().ends(0).says(lost);
    folder.mayhap("build --to guava --ignore-case -o h").input("A\n").run().ends(0).says(lost);
    assert_eq!(folder.read("g"), folder.read("h"));
    // A file that says nothing takes the options as they are.
    folder.mayhap("check --ignore-case g --key A").run().ends(0);
}

// Values of JSON.

#[test]
fn json_values_are_told_from_their_texts() {
    let records = "{\"id\":1}\n{\"id\":\"1\"}\n{\"id\":null}\n{\"id\":\"null\"}\n{\"id\":true}\n{\"id\":\"true\"}\n\
                   {\"id\":{\"b\":1,\"a\":2}}\n{\"id\":\"{\\\"a\\\":2,\\\"b\\\":1}\"}\n";
    let folder = Folder::new();
    folder.mayhap("dedup --json-key /id").input(records).run().ends(0).prints(records);
    let raw = folder.mayhap("dedup --json-raw --json-key /id").input(records).run().ends(0);
    assert_eq!(raw.out.iter().filter(|&&byte| byte == b'\n').count(), 4);
    let equal = "{\"id\":1}\n{\"id\":1.0}\n{\"id\":1e0}\n{\"id\":{\"a\":2.50,\"b\":[]}}\n{\"id\": {\"b\":[ ],\"a\":25e-1}}\n";
    let printed = folder.mayhap("dedup --json-key /id").input(equal).run().ends(0);
    printed.prints("{\"id\":1}\n{\"id\":{\"a\":2.50,\"b\":[]}}\n");
}

#[test]
fn plain_keys_and_json_values_meet_where_they_mean_the_same() {
    let folder = Folder::new();
    let ids = "{\"id\":1}\n{\"id\":\"x\"}\n";
    // In a file of plain keys values are looked up by their text.
    folder.mayhap("build -o plain").input("1\nx\n").run().ends(0);
    folder.mayhap("check plain --json-key /id").input(ids).run().ends(0).prints(ids);
    // A file of JSON strings has plain keys.
    folder.mayhap("build --json-key /id -o strings").input("{\"id\":\"x\"}\n").run().ends(0);
    folder.mayhap("info strings").run().ends(0).shows("JSON strings");
    folder.mayhap("check strings --key x").run().ends(0);
    folder.mayhap("check strings --json-key /id").input(ids).run().ends(0).prints("{\"id\":\"x\"}\n");
    // A number among them makes it another file.
    folder.mayhap("add strings --json-key /id").input("{\"id\":1}\n").run().ends(0);
    folder.mayhap("info strings").run().ends(0).shows("JSON values");
    for line in
        ["check strings --key x", "check strings", "add strings", "check --json-raw --json-key /id strings"]
    {
        folder.mayhap(line).input("{\"id\":1}\n").run().ends(2).says("--json-raw");
    }
    folder.mayhap("check strings").input("x\n").run().ends(2).says("--json-key");
    folder.mayhap("check strings --json-key /id").input(ids).run().ends(0).prints(ids);
    folder.mayhap("check strings --json-key /id").input("{\"id\":\"1\"}\n").run().ends(1).prints("");
    // With --json-raw the keys are plain.
    folder.mayhap("build --json-raw --json-key /id -o raw").input(ids).run().ends(0);
    folder.mayhap("check raw").input("1\nx\n").run().ends(0).prints("1\nx\n");
    folder.mayhap("merge -o m plain raw").run().ends(0);
    folder.mayhap("merge -o m raw strings").run().ends(2).says("JSON values");
}

/// The records before the header of the file's first version: a file without the section works as before.
#[test]
fn a_file_that_says_nothing_takes_every_option() {
    let folder = Folder::new();
    let mut filter = mayhap::Bloom::new(100, 1e-9).unwrap();
    for key in ["a", "1"] {
        filter.insert(key);
    }
    folder.write("f", filter.to_bytes());
    for (line, input) in [
        ("check --ignore-case f", "A\n"),
        ("check --trim f", " a\n"),
        ("check --json-key /id f", "{\"id\":1}\n"),
        ("check --crlf f", "a\r\n"),
    ] {
        folder.mayhap(line).input(input).run().ends(0).prints(input);
    }
    folder.mayhap("add --ignore-case f").input("B\n").run().ends(0);
    assert!(mayhap::Bloom::from_bytes(&folder.read("f")).unwrap().contains("b"));
}

// Quoted CSV.

/// Distinct records were taken for repeats: columns were cut inside of quotes.
#[test]
fn quoted_fields_are_an_error_at_their_line() {
    let csv = "id,name\n1,\"Smith, J\"\n2,\"Smith, K\"\n";
    let folder = Folder::new();
    let done = folder.mayhap("dedup -d, -k2 --header").input(csv).run().ends(2).prints("id,name\n");
    done.says("(standard input): line 2: ").says("--literal-quotes");
    folder.mayhap("build -d, -k1 -o f").input(csv).run().ends(2).says("line 2: ");
    let literal = folder.mayhap("dedup -d, -k2 --header --literal-quotes").input(csv).run().ends(0);
    literal.prints("id,name\n1,\"Smith, J\"\n");
    // A quote inside of a field is a byte.
    folder.mayhap("dedup -d, -k1").input("3.5\" disk,a\n").run().ends(0).prints("3.5\" disk,a\n");
}
