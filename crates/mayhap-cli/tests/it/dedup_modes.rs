//! The modes of `mayhap dedup` against programs that everybody has, and against a set of all records.

use std::collections::HashSet;
use std::io::Write;

use crate::oracle;
use crate::oracle::{firsts, joined, records, repeats, report, singles};
use crate::runner::{Folder, lines};

/// Options that keep every first record, but for one in a billion.
const FAITHFUL: [&str; 8] = [
    "",
    "-p 1e-12",
    "--exact",
    "--verify",
    "--verify -p 1e-3",
    "--memory 64MiB",
    "--memory 64MiB --max-fpr 1e-6",
    "--threads 1",
];

/// What a program of the system makes of the file `input`.
#[cfg(unix)]
fn system(folder: &Folder, script: &str) -> Option<Vec<u8>> {
    let done = folder.sh(script).env("LC_ALL", "C").run();
    if done.status.code() == Some(127) {
        println!("skipped: {script} is not here");
        return None;
    }
    Some(done.ends(0).out)
}

#[cfg(unix)]
#[test]
fn the_output_is_that_of_awk_and_the_set_that_of_sort() {
    let folder = Folder::new();
    for (name, input) in oracle::inputs() {
        println!("{name}");
        folder.write("input", &input);
        let done = folder.mayhap("dedup input").run().ends(0).stays_quiet();
        if let Some(awk) = system(&folder, "awk '!s[$0]++' input") {
            assert!(done.out == awk, "{name}: not what awk prints");
        }
        if let Some(sort) = system(&folder, "sort -u input") {
            let mut sorted = records(&done.out, b'\n');
            sorted.sort_unstable();
            assert!(joined(sorted, b'\n') == sort, "{name}: not what sort -u prints");
        }
        let repeated = folder.mayhap("dedup --repeated input").run().ends(0).stays_quiet();
        if let Some(awk) = system(&folder, "awk 's[$0]++' input") {
            assert!(repeated.out == awk, "{name}: not the repeats of awk");
        }
        let once = folder.mayhap("dedup --only-once input").run().ends(0).stays_quiet();
        if let Some(uniq) = system(&folder, "sort input | uniq -u") {
            let mut sorted = records(&once.out, b'\n');
            sorted.sort_unstable();
            assert!(joined(sorted, b'\n') == uniq, "{name}: not what uniq -u prints");
        }
    }
}

#[test]
fn every_mode_prints_what_a_set_of_all_records_would() {
    let folder = Folder::new();
    for (name, input) in oracle::inputs() {
        folder.write("input", &input);
        let (first, repeated, once) = (firsts(&input), repeats(&input), singles(&input));
        let count = |lines: &[u8]| records(lines, b'\n').len() as u64;
        // Each shape with some of the options, so that all options see most shapes.
        for (index, options) in FAITHFUL.into_iter().enumerate() {
            if input.len() > 1_000_000 && (index + name.len()) % 4 != 0 {
                continue;
            }
            for (output, wanted) in [("", &first), ("--repeated", &repeated)] {
                let line = format!("dedup --stats=json {options} {output}");
                let stream = (index + name.len()) % 2 == 0;
                let call = match stream {
                    true => folder.mayhap(&line).input(&input),
                    false => folder.mayhap(&line).arg("input"),
                };
                let done = call.run().ends(0);
                assert!(done.out == *wanted, "{line} of {name}");
                let report = report(&done);
                assert_eq!(report["read"], count(&input), "{line} of {name}");
                assert_eq!(report["printed"], count(wanted), "{line} of {name}");
            }
        }
        for options in ["--only-once", "--only-once --exact", "--only-once -p 1e-12"] {
            let done = folder.mayhap(&format!("dedup --stats=json {options}")).input(&input).run().ends(0);
            assert!(done.out == once, "{options} of {name}");
            assert_eq!(report(&done)["printed"], count(&once), "{options} of {name}");
            folder.mayhap(&format!("dedup {options} input")).run().ends(0).prints(&once);
        }
    }
}

/// A rate that is asked for is kept; and whatever the rate, no repeat is printed and nothing changes places.
#[test]
fn a_weak_rate_drops_hardly_more_than_it_says_and_verify_drops_nothing() {
    let folder = Folder::new();
    let input = lines("https://example.org/", 50_000);
    let input = [input.as_bytes(), input.as_bytes()].concat();
    let first = firsts(&input);
    folder.write("input", &input);
    for rate in [0.5, 0.1, 1e-2, 1e-4f64] {
        let done = folder.mayhap(&format!("dedup -p {rate} --stats=json input")).run().ends(0);
        let mut all = records(&first, b'\n').into_iter();
        for record in records(&done.out, b'\n') {
            assert!(all.any(|first| first == record), "a repeat, or out of order, at {rate}");
        }
        let dropped = records(&first, b'\n').len() - records(&done.out, b'\n').len();
        let most = rate * 50_000.0;
        assert!((dropped as f64) < most + 5.0 * most.sqrt() + 5.0, "{dropped} wrongly dropped at {rate}");
        let claimed = report(&done)["expected_wrongly_dropped"].as_f64().expect("a number");
        assert!(claimed <= 1.05 * most, "{claimed} at {rate}");
        // As many as claimed, with a margin of six deviations.
        assert!(
            (dropped as f64 - claimed).abs() < 6.0 * claimed.sqrt() + 6.0,
            "{dropped}, claimed {claimed} at {rate}"
        );

        let done = folder.mayhap(&format!("dedup --verify -p {rate} --stats=json input")).run().ends(0);
        assert!(done.out == first, "verified at {rate}");
        assert_eq!(report(&done)["expected_wrongly_dropped"], 0.0);
        let done = folder.mayhap(&format!("dedup --verify -p {rate} --repeated")).input(&input).run().ends(0);
        assert!(done.out == repeats(&input), "verified repeats at {rate}");
    }
}

#[test]
fn the_report_has_all_its_fields_in_every_mode() {
    let folder = Folder::new();
    let input = [lines("", 1000), lines("", 500)].concat();
    for options in
        FAITHFUL.into_iter().chain(["--only-once", "--repeated", "--window 10k", "--state s", "--url"])
    {
        let done = folder.mayhap(&format!("dedup --stats=json {options}")).input(&input).run().ends(0);
        let report = report(&done);
        assert_eq!(report["read"], 1500, "{options}");
        for field in ["expected_wrongly_dropped", "fpr_now", "memory_bytes", "seconds", "records_per_second"]
        {
            assert!(
                report[field].as_f64().is_some_and(|number| number >= 0.0),
                "{field} of {options}: {report}"
            );
        }
        for field in ["fill", "layers"] {
            assert!(report.get(field).is_some(), "{field} of {options}: {report}");
        }
        let wrongly = report["expected_wrongly_dropped"].as_f64().unwrap();
        let most = if options.contains("window") { 0.2 } else { 1e-3 * 1000.0 };
        assert!(wrongly <= most, "{options}: {report}");
        assert!(report["memory_bytes"].as_u64().unwrap() > 0, "{options}: {report}");
        let text = folder.mayhap(&format!("dedup --stats {options}")).input("x\nx\ny\n").run().ends(0);
        text.says("read 3, printed ").says(", dropped ");
        let _ = std::fs::remove_file(folder.path("s"));
    }
}

#[test]
fn options_that_exclude_each_other_are_refused_by_name() {
    let folder = Folder::new();
    folder.write("input", "a\n");
    for (one, others) in [
        ("--exact", &["--fpr 1e-3", "--memory 64MiB", "--window 10", "--verify", "--max-fpr 1e-3"][..]),
        ("--verify", &["--window 10", "--state f", "--memory 64MiB", "--only-once", "--exact"]),
        ("--only-once", &["--window 10", "--state f", "--memory 64MiB", "--repeated"]),
        ("--repeated", &["--only-once"]),
    ] {
        for other in others {
            let name = other.split(' ').next().unwrap();
            for line in [format!("dedup {one} {other} input"), format!("dedup {other} {one} input")] {
                folder.mayhap(&line).run().ends(2).prints("").says(one).says(name);
            }
        }
    }
    assert_eq!(folder.names(), ["input"], "nothing is made");
}

#[test]
fn numbers_without_sense_are_refused() {
    let folder = Folder::new();
    for (options, text) in [
        ("-p 5", "did you mean 5% (0.05)?"),
        ("-p 0", "--fpr"),
        ("-p 1", "--fpr"),
        ("-p 1e-30", "2^-64"),
        ("--memory 0", "--memory"),
        ("--memory many", "--memory"),
        ("--memory 64MiB --max-fpr 0", "--max-fpr"),
        ("--memory 64MiB --max-fpr 7", "--max-fpr"),
        ("--window 0", "capacity must be 1 to 281474976710656, not 0"),
    ] {
        folder.mayhap(&format!("dedup {options}")).input("a\n").run().ends(2).prints("").says(text);
    }
}

// Memory.

#[test]
fn memory_that_is_too_small_stops_before_too_much_is_dropped() {
    let folder = Folder::new();
    let input = lines("", 1_000_000);
    folder.write("input", &input);
    for options in ["--memory 64KiB", "--memory 64KiB -p 1e-6", "--memory 1MiB --max-fpr 1e-7"] {
        let done =
            folder.mayhap(&format!("dedup {options} input")).run().ends(2).says("--memory").says("--max-fpr");
        // What was printed until then is right.
        assert!(done.out.len() < input.len() && input.as_bytes().starts_with(&done.out), "{options}");
        assert!(!done.out.is_empty(), "{options}: it did what it could");
    }
}

#[test]
fn memory_is_not_exceeded_and_the_highest_rate_is_kept() {
    let folder = Folder::new();
    let input = [lines("", 200_000), lines("", 200_000)].concat();
    folder.write("input", &input);
    for (memory, bytes, most) in
        [("1MiB", 1u64 << 20, 1e-3f64), ("128KiB", 128 << 10, 0.5), ("64MiB", 64 << 20, 1e-9)]
    {
        let line = format!("dedup --memory {memory} --max-fpr {most} --stats=json input");
        let done = folder.mayhap(&line).run().ends(0);
        let report = report(&done);
        assert!(report["memory_bytes"].as_u64().is_some_and(|used| used <= bytes), "{line}: {report}");
        assert!(report["fpr_now"].as_f64().is_some_and(|rate| rate <= most), "{line}: {report}");
        let printed = records(&done.out, b'\n');
        let distinct: HashSet<&[u8]> = printed.iter().copied().collect();
        assert_eq!(distinct.len(), printed.len(), "{line}: a repeat");
        let wrongly = 200_000.0 - printed.len() as f64;
        let allowed = most * 200_000.0;
        assert!(wrongly <= allowed + 5.0 * allowed.sqrt() + 5.0, "{line}: {wrongly} wrongly dropped");
    }
    // An input that repeats itself does not fill it.
    let twice = [lines("", 1000).repeat(300), "end\n".into()].concat();
    folder.mayhap("dedup --memory 64KiB").input(&twice).run().ends(0).prints(firsts(twice.as_bytes()));
}

// Headers.

#[test]
fn a_header_is_printed_once_and_is_no_key() {
    let folder = Folder::new();
    folder.write("one", "id,name\n1,a\n2,b\n1,a\n");
    folder.write("two", "id,name\n2,b\n3,c\n");
    folder.write("other", "name,id\n1,a\n");
    folder.write("late", "4,d\nid,name\n");
    folder.write("empty", "");
    folder.write("header only", "id,name");
    for options in ["", "--exact", "--verify", "--memory 64MiB", "--window 100 -p 1e-9"] {
        let run = |files: &str| {
            folder.mayhap(&format!("dedup --header {options} {files}")).run().ends(0).stays_quiet()
        };
        run("one").prints("id,name\n1,a\n2,b\n");
        run("one two").prints("id,name\n1,a\n2,b\n3,c\n");
        // Another first record is a record.
        run("one other").prints("id,name\n1,a\n2,b\nname,id\n");
        // The header's text within an input is a record too, and a new one.
        run("one late").prints("id,name\n1,a\n2,b\n4,d\nid,name\n");
        run("one one two").prints("id,name\n1,a\n2,b\n3,c\n");
        run("").prints("");
        let stream = folder.mayhap(&format!("dedup --header {options}")).input("h\nh\na\na\nh");
        stream.run().ends(0).prints("h\nh\na\n");
        let files = folder.mayhap(&format!("dedup --header {options} one -")).input("id,name\n3,c\n1,a\n");
        files.run().ends(0).prints("id,name\n1,a\n2,b\n3,c\n");
        folder
            .mayhap(&format!("dedup --header {options}"))
            .arg("header only")
            .run()
            .ends(0)
            .prints("id,name\n");
    }
    for (options, printed, dropped) in [("", 4, 3), ("--repeated", 3, 4), ("--only-once", 2, 5)] {
        let done = folder.mayhap(&format!("dedup --header --stats=json {options} one two")).run().ends(0);
        assert!(done.out.starts_with(b"id,name\n"), "{options}");
        let report = report(&done);
        assert_eq!(report["read"], 7, "{options}");
        assert_eq!((&report["printed"], &report["dropped"]), (&printed.into(), &dropped.into()), "{options}");
    }
    folder.mayhap("dedup --header --only-once one two").run().ends(0).prints("id,name\n3,c\n");
    folder.mayhap("dedup --header --repeated one two").run().ends(0).prints("id,name\n1,a\n2,b\n");
}

#[test]
fn a_header_is_no_wrong_record() {
    let folder = Folder::new();
    folder.write("one", "id,name\n1,a\n01,b\n");
    folder.write("two", "id,name\n2,a\n");
    folder.mayhap("dedup --header -d, -k1 --as u64 one two").run().ends(0).prints("id,name\n1,a\n2,a\n");
    folder.mayhap("dedup -d, -k1 --as u64 one").run().ends(2).says("one: line 1: ");
    folder.mayhap("dedup --header -d, -k1 --as u64 one").arg("one").run().ends(0);
    folder.write("bad", "id,name\n1,a\nx,b\n");
    folder.mayhap("dedup --header -d, -k1 --as u64 bad").run().ends(2).says("bad: line 3: ");
}

// Inputs.

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn several_inputs_and_compressed_ones_are_one_input() {
    let folder = Folder::new();
    let parts = [lines("", 3000), lines("", 4000), lines("x", 10), "no end".into()];
    folder.write("plain", &parts[0]);
    folder.write("packed.gz", gzip(parts[1].as_bytes()));
    folder.write("packed.zst", zstd::encode_all(parts[2].as_bytes(), 1).unwrap());
    let whole = parts.concat();
    let (first, repeated, once) =
        (firsts(whole.as_bytes()), repeats(whole.as_bytes()), singles(whole.as_bytes()));
    let files = "plain packed.gz packed.zst -";
    for options in FAITHFUL {
        let run = |more: &str| {
            folder.mayhap(&format!("dedup {options} {more} {files}")).input(&parts[3]).run().ends(0)
        };
        assert!(run("").out == first, "{options}");
        assert!(run("--repeated").out == repeated, "{options}");
    }
    folder.mayhap(&format!("dedup --only-once {files}")).input(&parts[3]).run().ends(0).prints(once);
    // Two passes over a compressed stream.
    for options in ["--verify", "--exact", ""] {
        folder
            .mayhap(&format!("dedup {options}"))
            .input(gzip(parts[1].as_bytes()))
            .run()
            .ends(0)
            .prints(&parts[1]);
    }
    let twice = gzip([&parts[1][..], "0\n"].concat().as_bytes());
    let once = &parts[1].as_bytes()[2..];
    folder.mayhap("dedup --only-once").input(twice).run().ends(0).prints(once);
    // The same file twice.
    folder.mayhap("dedup --only-once plain plain").run().ends(0).prints("");
    folder.mayhap("dedup --verify plain plain").run().ends(0).prints(&parts[0]);
}

#[test]
fn the_key_decides_in_every_mode() {
    let folder = Folder::new();
    let input = "1,a,x\n2,b,x\n3,a,y\n4,c,z\n";
    for options in FAITHFUL {
        let run =
            |more: &str| folder.mayhap(&format!("dedup {options} {more} -d, -k2")).input(input).run().ends(0);
        run("").prints("1,a,x\n2,b,x\n4,c,z\n");
        run("--repeated").prints("3,a,y\n");
        let urls = "HTTP://a.org\nhttp://a.org/#b\nhttp://b.org/\n";
        let done = folder.mayhap(&format!("dedup {options} --url")).input(urls).run().ends(0);
        done.prints("HTTP://a.org\nhttp://b.org/\n");
        let done = folder.mayhap(&format!("dedup {options} -z")).input("a\nb\0c\0a\nb\0").run().ends(0);
        done.prints("a\nb\0c\0");
    }
    folder.mayhap("dedup --only-once -d, -k2").input(input).run().ends(0).prints("2,b,x\n4,c,z\n");
    folder.mayhap("dedup --only-once -z").input("a\0b\0a").run().ends(0).prints("b\0");
}

#[test]
fn a_bad_record_is_told_with_its_line_in_every_mode() {
    let folder = Folder::new();
    let input = format!("{}x\n", lines("", 100_000));
    folder.write("input", &input);
    for options in FAITHFUL.into_iter().chain(["--only-once", "--repeated", "--window 10"]) {
        let line = format!("dedup --as u64 {options}");
        folder
            .mayhap(&line)
            .arg("input")
            .run()
            .ends(2)
            .says("input: line 100001: \"x\" is not a whole number");
        folder.mayhap(&line).input(&input).run().ends(2).says("(standard input): line 100001: ");
        folder.mayhap(&line).arg("absent").run().ends(2).says("absent: cannot open: ");
    }
}

#[test]
fn without_a_state_a_dry_run_prints_the_report_only() {
    let folder = Folder::new();
    for options in ["", "--exact", "--repeated", "--memory 64MiB"] {
        let done = folder.mayhap(&format!("dedup --dry-run {options}")).input("a\na\nb\n").run().ends(0);
        done.prints("").says("mayhap: read 3, printed ");
    }
    let done = folder.mayhap("dedup --dry-run --stats=json").input("a\na\nb\n").run().ends(0).prints("");
    let report = report(&done);
    assert_eq!((&report["read"], &report["printed"]), (&3.into(), &2.into()));
}

// Faults of earlier versions.

#[test]
fn a_sample_that_misleads_does_not_raise_the_rate() {
    let folder = Folder::new();
    // A long record wherever a sample is taken, and short ones between.
    let (mut input, mut next, step) = (Vec::new(), 0u64, 64 << 10);
    for part in 1..=64 {
        input.extend(vec![b'x'; 17 << 10]);
        while input.len() < part * step - 16 {
            input.extend(format!("\n{next}").bytes());
            next += 1;
        }
        input.push(b'\n');
        input.resize(part * step, b'y');
    }
    folder.write("input", &input);
    for options in ["", "--only-once", "--verify"] {
        let done = folder.mayhap(&format!("dedup --stats=json {options} input")).run().ends(0);
        let report = report(&done);
        assert!(report["fpr_now"].as_f64().is_some_and(|rate| rate <= 1e-9), "{options}: {report}");
        let expected = if options == "--only-once" { singles(&input) } else { firsts(&input) };
        assert!(done.out == expected, "{options}");
        if options.is_empty() {
            assert_eq!(report["layers"], 2, "a second table: {report}");
        }
    }
}

#[test]
fn a_rate_that_cannot_be_kept_is_an_error_and_not_exceeded() {
    let folder = Folder::new();
    let input = lines("", 5000);
    let done = folder.mayhap("dedup -p 1.2e-16").input(&input).run().ends(2);
    assert!(input.as_bytes().starts_with(&done.out));
    done.says("is the limit; give a larger -p or --max-fpr, or say --exact");
    folder.mayhap("dedup -p 1e-17").input("a\n").run().ends(2).says("say --exact");
}

#[test]
fn memory_counts_what_lies_beside_the_lines() {
    let folder = Folder::new();
    let input = lines("", 188_000);
    let done = folder.mayhap("dedup --memory 1MiB --stats=json").input(&input).run().ends(0).prints(&input);
    let report = report(&done);
    assert!(report["fill"].as_f64().is_some_and(|fill| fill > 0.83), "nearly full: {report}");
    assert!(report["memory_bytes"].as_u64().is_some_and(|bytes| bytes <= 1 << 20), "{report}");
}

#[test]
fn records_before_a_bad_one_are_printed() {
    let folder = Folder::new();
    for threads in ["", "--threads 1"] {
        let call = folder.mayhap(&format!("dedup --as u64 {threads}"));
        call.input("1\n2\n1\nx\n3\n").run().ends(2).prints("1\n2\n").says("line 4");
    }
}

#[test]
fn records_before_damage_in_compressed_input_are_printed() {
    let folder = Folder::new();
    folder.write("text", "a\nb\na\nc");
    folder.sh("gzip text && printf junk >> text.gz").run().ends(0);
    folder.mayhap("dedup text.gz").run().ends(2).prints("a\nb\n").says("text.gz: cannot decompress");
}

#[test]
fn standard_input_is_there_once_also_if_it_is_named_twice() {
    let folder = Folder::new();
    for options in ["", "--only-once", "--verify", "--threads 1"] {
        let call = folder.mayhap(&format!("dedup {options} --stats=json - -"));
        let done = call.input("a\nb\n").run().ends(0).prints("a\nb\n");
        assert_eq!(report(&done)["read"], 2, "{options}");
    }
}

#[cfg(unix)]
#[test]
fn the_output_is_not_read() {
    let folder = Folder::new();
    folder.write("file", "a\na\n");
    folder.sh("$MAYHAP dedup --repeated file >> file").run().ends(2).says("file: is the output too");
    assert_eq!(folder.read("file"), b"a\na\n");
}
