//! `mayhap check`: grep for keys.

use crate::runner::Folder;

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
    folder.mayhap("build --ignore-case --trim -o g").input("a\n").run().ends(0);
    folder.mayhap("check g --ignore-case --trim --key").arg(" A ").run().ends(0).prints(" A \n");
    folder.mayhap("build --as u64 -o h").input("1\n").run().ends(0);
    folder.mayhap("check h --key 1 --key z").run().ends(2).says("mayhap: --key number 2: \"z\" is not");
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
    // The file says so.
    folder.mayhap("check f").input("2\n3\n").run().ends(0).prints("2\n");
    // Without the section it cannot, but its family does.
    let bare = mayhap::with_key_rules(mayhap::open(folder.read("f").into(), None).unwrap(), None);
    folder.write("f", mayhap::encode(&*bare, mayhap::Summing::Payload).to_vec());
    folder
        .mayhap("check f")
        .input("2\n")
        .run()
        .ends(2)
        .says("mayhap: f: the family bitmap holds integers; say --as u64");
}

/// Exact sets, so that no answer is a matter of luck.
fn block_and_allow() -> Folder {
    let folder = Folder::new();
    folder.mayhap("build --exact -o block").input("a\nb\n").run().ends(0);
    folder.mayhap("build --exact -o allow").input("b\nc\n").run().ends(0);
    folder
}

#[test]
fn which_names_the_filters_that_match() {
    let folder = block_and_allow();
    let check = |arguments: &str| {
        folder.mayhap(&format!("check block allow --which {arguments}")).input("x\na\nb\nc\n").run()
    };
    check("").ends(0).prints("block\ta\nblock,allow\tb\nallow\tc\n").stays_quiet();
    check("--annotate")
        .ends(0)
        .prints("\tx\tno\nblock\ta\tmayhap\nblock,allow\tb\tmayhap\nallow\tc\tmayhap\n");
    check("-v").ends(0).prints("\tx\n");
    check("-c").ends(0).prints("3\n");
    check("-cv").ends(0).prints("1\n");
    check("-n").ends(0).prints("block\t2:a\nblock,allow\t3:b\nallow\t4:c\n");
    check("-q").ends(0).prints("");
    check("--key b --key x").ends(0).prints("block,allow\tb\n");
    check("--key x").ends(1).prints("");
    folder.write("records", "a\n");
    check("records --key b")
        .ends(2)
        .prints("")
        .says_only("mayhap: records: files with records cannot be used with --key; leave one of them out");
    folder.mayhap("check block allow --which").input("x\n").run().ends(1).prints("");
    folder.mayhap("check block --which").input("a\nc\n").run().ends(0).prints("block\ta\n");
    folder.mayhap("check block allow --which -z").input("b\0x\0").run().ends(0).prints("block,allow\tb\0");
    folder
        .mayhap("check block allow --which -d, -k2")
        .input("1,a\n2,c\n")
        .run()
        .ends(0)
        .prints("block\t1,a\nallow\t2,c\n");
}

#[test]
fn which_knows_filter_files_from_files_with_records() {
    let folder = block_and_allow();
    folder.write("one", "a\nc\n");
    folder.write("two", "b\nx\n");
    folder
        .mayhap("check block allow --which one two")
        .run()
        .ends(0)
        .prints("block\ta\nallow\tc\nblock,allow\tb\n");
    folder
        .mayhap("check --which block allow one - two")
        .input("b")
        .run()
        .ends(0)
        .prints("block\ta\nallow\tc\nblock,allow\tb\nblock,allow\tb\n");
    folder
        .mayhap("check block one allow --which")
        .run()
        .ends(2)
        .prints("")
        .says_only("mayhap: allow: a filter file behind files with records; give all filter files first");
    folder.mayhap("check block absent --which").run().ends(2).says("absent: cannot open");
    folder.mayhap("check one block --which").run().ends(2).says("one: not a mayhap file");
    // Without --which the second file has records, whatever it looks like.
    folder.mayhap("check block one").run().ends(0).prints("a\n");
    // A damaged filter is refused and not taken for records.
    let mut damaged = folder.read("allow");
    damaged[100] ^= 1;
    folder.write("allow", damaged);
    folder.mayhap("check block allow --which").input("a\n").run().ends(2).prints("").says("allow: damaged");
}

#[test]
fn which_asks_filters_of_different_families_and_seeds() {
    let folder = Folder::new();
    folder.mayhap("build -o one -p 1e-6 --seed 1").input("1\n2\n").run().ends(0);
    folder.mayhap("build -o two -p 1e-6 --seed 2 --removable").input("2\n3\n").run().ends(0);
    folder.mayhap("build -o three --exact").input("3\n1\n").run().ends(0);
    folder
        .mayhap("check one two three two --which")
        .input("1\n2\n3\n4\n")
        .run()
        .ends(0)
        .prints("one,three\t1\none,two,two\t2\ntwo,three,two\t3\n");
    folder.mayhap("build -o integers --exact --as u64").input("1\n").run().ends(0);
    folder.mayhap("check three integers --which").input("1\n").run().ends(0).prints("three,integers\t1\n");
}

/// The two-list question: which addresses are in the block list, the allow list, both or none? Against sets that know.
fn two_lists(folder: &Folder, addresses: u32) {
    use std::collections::{BTreeMap, HashSet};
    // A bijection of 32 bits, so that addresses look like addresses and never repeat.
    let address = |index: u32| {
        let [a, b, c, d] = index.wrapping_mul(0x9E37_79B1).rotate_left(7).to_be_bytes();
        format!("{a}.{b}.{c}.{d}")
    };
    // A third is blocked, a third allowed, a sixth of all is both, and half is neither.
    let blocked: HashSet<String> = (0..addresses / 3).map(address).collect();
    let allowed: HashSet<String> = (addresses / 6..addresses / 2).map(address).collect();
    let text = |set: &mut dyn Iterator<Item = String>| set.map(|line| line + "\n").collect::<String>();
    folder.write("block.txt", text(&mut blocked.iter().cloned()));
    folder.write("allow.txt", text(&mut allowed.iter().cloned()));
    folder.write("addresses.txt", text(&mut (0..addresses).map(address)));
    folder.mayhap("build -p 0.1% -o block.mayhap block.txt").run().ends(0);
    folder.mayhap("build -p 0.1% -o allow.mayhap allow.txt").run().ends(0);
    let done =
        folder.mayhap("check block.mayhap allow.mayhap --which --annotate addresses.txt").run().ends(0);
    let told = String::from_utf8(done.out).unwrap();
    assert_eq!(told.lines().count(), addresses as usize);
    let mut wrong = BTreeMap::new();
    for (index, line) in (0..addresses).zip(told.lines()) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [which, record, verdict] = columns[..] else { panic!("{line:?}") };
        assert_eq!(record, address(index));
        assert_eq!(verdict == "mayhap", !which.is_empty());
        let told: HashSet<&str> = which.split(',').collect();
        for (name, set) in [("block.mayhap", &blocked), ("allow.mayhap", &allowed)] {
            assert!(
                told.contains(name) || !set.contains(record),
                "{line:?}: it is in {name}, and was denied"
            );
            *wrong.entry(name).or_insert(0) += u64::from(told.contains(name) && !set.contains(record));
        }
    }
    // Two thirds of all are absent from each list, and told to be in with 0.1%: 5 deviations.
    let expected = f64::from(addresses) * 2.0 / 3.0 * 0.001;
    for (name, wrong) in wrong {
        eprintln!("{name}: {wrong} of {} absent addresses, expected {expected:.0}", addresses / 3 * 2);
        assert!((wrong as f64 - expected).abs() < 5.0 * expected.sqrt() + 2.0, "{name}: {wrong}, {expected}");
    }
    // The same question in a line of shell.
    let count = folder
        .sh("\"$MAYHAP\" check block.mayhap allow.mayhap --which --annotate addresses.txt | cut -f1 | sort | uniq -c")
        .run()
        .ends(0);
    let text = String::from_utf8(count.out).unwrap();
    let sum: u64 =
        text.lines().map(|line| line.split_whitespace().next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!((text.lines().count(), sum), (4, addresses.into()), "{text}");
    eprintln!("{text}");
}

#[test]
fn block_list_allow_list_both_or_none() {
    two_lists(&Folder::new(), 20_000);
}

#[test]
#[ignore = "a million addresses"]
fn block_list_allow_list_both_or_none_of_a_million() {
    two_lists(&Folder::new(), 1_000_000);
}

#[test]
fn a_report_at_the_end_on_request() {
    let folder = Folder::new();
    folder.mayhap("build -n 1000 -p 1e-9 -o f").input("a\nb\n").run().ends(0);
    let input = "a\nx\nb\nc\n";
    for (options, counts) in [
        ("", r#""matched":2,"printed":2"#),
        ("-v", r#""matched":2,"printed":2"#),
        ("-c", r#""matched":2,"printed":0"#),
        ("--annotate", r#""matched":2,"printed":4"#),
        ("--which", r#""matched":2,"printed":2"#),
        ("--verify", r#""matched":2,"printed":2"#),
        ("--no-mmap", r#""matched":2,"printed":2"#),
    ] {
        let report = format!("{{{counts},\"read\":4,\"verified\":true,\"warnings\":[]}}");
        folder
            .mayhap(&format!("check f --stats=json {options}"))
            .input(input)
            .run()
            .ends(0)
            .says_only(&report);
    }
    folder
        .mayhap("check f --stats")
        .input(input)
        .run()
        .ends(0)
        .says_only("mayhap: read 4, matched 2, printed 2; payload verified");
    folder
        .mayhap("check -q f --stats=json --key x --key a --key b")
        .run()
        .ends(0)
        .says_only(r#"{"matched":1,"printed":0,"read":2,"verified":true,"warnings":[]}"#);
    // Another program's file has nothing to compare.
    folder.mayhap("build -n 1000 --format guava --to guava -o g").input("a\n").run().ends(0);
    let done = folder.mayhap("check g --verify --stats=json").input(input).run().ends(0);
    done.says("warning: g: not verified: files of this format have no checksum").says(r#""verified":false"#);
    folder.mayhap("check g").input(input).run().ends(0).stays_quiet();
}

/// The bytes of the second filter were taken for records.
#[test]
fn several_filters_without_which_are_refused() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.mayhap("build -o f keys").run().ends(0);
    folder.mayhap("build -o g keys").run().ends(0);
    for (rest, named) in [("g keys", "g"), ("keys g", "g"), ("g --key a", "g")] {
        let done = folder.mayhap(&format!("check f {rest}")).run().ends(2).prints("");
        done.says_only(&format!("mayhap: {named} is a filter; add --which to ask several"));
    }
    folder.mayhap("check --which f g keys").run().ends(0).prints("f,g\ta\n");
}
