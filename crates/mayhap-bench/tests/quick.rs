//! The harness itself, once at a tiny size: every contender runs, keeps its keys and its rate.

use std::fs;
use std::process::Command;

/// The columns that are looked at; the order is the file's.
struct Line<'a> {
    contender: &'a str,
    role: &'a str,
    operation: &'a str,
    asked: f64,
    fpr: Option<f64>,
    lost: Option<u64>,
}

fn read(csv: &str) -> Vec<Line<'_>> {
    let mut lines = csv.lines().skip_while(|line| line.starts_with('#'));
    let columns: Vec<&str> = lines.next().expect("a heading").split(',').collect();
    let column = |name: &str| columns.iter().position(|column| *column == name).expect(name);
    let (contender, role, operation) = (column("contender"), column("role"), column("operation"));
    let (asked, fpr, lost) = (column("fpr_asked"), column("fpr"), column("lost"));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(fields.len(), columns.len(), "{line}");
            Line {
                contender: fields[contender],
                role: fields[role],
                operation: fields[operation],
                asked: fields[asked].parse().unwrap(),
                fpr: fields[fpr].parse().ok(),
                lost: fields[lost].parse().ok(),
            }
        })
        .collect()
}

#[test]
fn every_contender_runs_and_keeps_its_promise() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("quick.csv");
    let output = Command::new(env!("CARGO_BIN_EXE_mayhap-bench"))
        .args(["filters", "--quick", "--csv"])
        .arg(&csv)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for part in ["u64 keys, n = 10k, fpr asked 1%", "url keys, n = 10k, fpr asked 0.1%", "vs sbbf foldhash"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }

    let csv = fs::read_to_string(&csv).unwrap();
    let lines = read(&csv);
    let removals =
        |name: &str| lines.iter().filter(|line| line.contender == name && line.operation == "remove").count();
    assert_eq!(["mayhap cuckoo batch", "qfilter foldhash", "mayhap bloom"].map(removals), [4, 4, 0]);
    for name in ["mayhap bloom", "sbbf foldhash", "fastbloom foldhash", "limit lines loop"] {
        let hits = lines.iter().filter(|line| line.contender == name && line.operation == "hit");
        assert_eq!(hits.count(), 4, "{name}: two kinds of keys at two rates");
    }
    for line in lines.iter().filter(|line| line.role != "limit") {
        let (fpr, lost) = (line.fpr.expect("measured"), line.lost.expect("counted"));
        // Fingerprints of 8 bits whatever is asked, and a full table forgets: as it says itself.
        if line.contender.starts_with("cuckoofilter") {
            continue;
        }
        assert_eq!(lost, 0, "{} denied a key that was inserted", line.contender);
        // 10 false positives are expected at the lower rate; 40 never come by chance.
        assert!(fpr <= 4.0 * line.asked, "{} errs at {fpr}, asked {}", line.contender, line.asked);
    }
}

#[test]
fn the_last_inserts_of_a_cuckoo_filter_are_timed() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_mayhap-bench")).args(["cuckoo", "--quick"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for part in ["fpr asked 0.186%", "mayhap cuckoo batch", "vs cuckoofilter foldhash", "last 1%"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn shifting_filters_are_compared_with_the_classic_ones() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_mayhap-bench")).args(["shifting", "--quick"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("  {name}  ")));
        let line = line.unwrap_or_else(|| panic!("{name} is missing:\n{text}"));
        line.trim_start()[name.len()..].split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // Values and loads of keys that are in are what the structure says: half, half, as many.
    for (name, values, loads) in [
        ("bloom", "8", "8.00/"),
        ("shifting", "5", "4.00/"),
        ("two bloom filters", "20", ""),
        ("shifting-association", "12", "10.00/"),
        ("spectral, as many bits", "2", "2.00/"),
        ("shifting-multiplicity", "8", "8.00/"),
    ] {
        let row = row(name);
        assert!(row[1] == values && row[2].starts_with(loads), "{name}: {row:?}");
    }
}

#[test]
fn a_filter_that_grew_is_held_against_one_made_at_once() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_mayhap-bench")).args(["growth", "--quick"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for part in
        ["mayhap expanding at once batch", "vs qfilter grown foldhash", "doublings", "grown, times the time"]
    {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn static_filters_are_held_against_their_peers() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_mayhap-bench")).args(["static", "--quick"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "mayhap fuse 2 threads",
        "mayhap fuse compact, 10k keys: ",
        "vs jdb_xorf Bf8 batch",
        "times limit touches 4: ",
        "mayhap ribbon compact, 10k keys: ",
        "times mayhap fuse batch: ",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

/// `dedup` with a script in place of the command, so that no other package has to be built for a test of the harness.
#[cfg(unix)]
fn dedup(script: &str) -> (bool, String) {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let stand_in = folder.path().join("mayhap");
    fs::write(&stand_in, script).unwrap();
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_mayhap-bench"))
        .args(["dedup", "--quick", "--mayhap"])
        .arg(&stand_in)
        .arg("--folder")
        .arg(folder.path())
        .output()
        .unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["mayhap"], "what else was written is gone");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), format!("{out}\n{err}"))
}

/// `mayhap dedup` as others would write it. What a test makes of the rule does not change `--exact`.
#[cfg(unix)]
const STAND_IN: &str = "#!/bin/sh
shift
rule='!s[$0]++'
for option; do case $option in --exact) rule='!(s[$0]++)'; shift;; --*) shift;; esac; done
case $1 in *.gz) gzip -dc \"$1\" | awk \"$rule\";; *) awk \"$rule\" \"$@\";; esac
echo '{\"expected_wrongly_dropped\": 1.4e-2, \"layers\": 1}' >&2
";

#[cfg(unix)]
#[test]
fn dedup_is_timed_against_copying_and_against_other_tools() {
    let (success, text) = dedup(STAND_IN);
    assert!(success, "{text}");
    for (name, of, kept) in [
        ("cat FILE | cat", "", "20000"),
        ("mayhap dedup FILE", "cat FILE | cat  at most 1.5: ", "14000"),
        ("cat FILE | mayhap dedup", "cat FILE | cat  at most 2.2: ", "14000"),
        ("gzip -dc FILE.gz", "", "20000"),
        ("mayhap dedup FILE.gz", "gzip -dc FILE.gz  at most 1.2: ", "14000"),
    ] {
        let line = text.lines().find(|line| line.starts_with(&format!("  {name}  ")));
        let line = line.unwrap_or_else(|| panic!("{name} is missing:\n{text}"));
        assert!(line.contains(of) && line.ends_with(kept), "{line}");
    }
    for heading in ["20k URLs, 14000 distinct, ", "20k integers, ", "20k log lines, "] {
        assert!(text.contains(heading), "{heading} is missing:\n{text}");
    }
    let lossy = "in order; 0.014 lines expected to be lost, 0 lost";
    for (name, output) in [
        ("`mayhap dedup FILE`", lossy),
        ("`cat FILE \\| mayhap dedup`", lossy),
        ("`mayhap dedup --exact FILE`", "in order; complete"),
        ("`cat FILE \\| mayhap dedup --exact`", "in order; complete"),
        ("`sort -u -S 4G --parallel=2 FILE`", "sorted"),
        ("`awk '!s[$0]++' FILE`", "in order"),
    ] {
        let rows = text.lines().filter(|line| {
            line.starts_with(&format!("| {name} | ")) && line.ends_with(&format!(" | {output} |"))
        });
        assert_eq!(rows.count(), 3, "{name}, one for each input:\n{text}");
    }
    assert!(text.contains("`awk '!s[$0]++' FILE` takes "), "{text}");
    // Nothing is installed for a test: they are measured where they are at hand.
    for (name, output) in [
        ("DuckDB, `SELECT DISTINCT`", "unordered"),
        ("polars, `unique`", "unordered"),
        ("`hist -u FILE`", "in order; quotes lines with a comma"),
        ("`huniq < FILE`", "in order; keeps 64-bit hashes"),
        ("`runiq -f quick FILE`", "in order; keeps 64-bit hashes"),
        ("`cuniq FILE`", "only the number"),
    ] {
        let missing = text.lines().any(|line| {
            line.starts_with(&format!("{name} is missing: not in "))
                && line.ends_with("and --quick installs nothing")
        });
        let rows = text.lines().filter(|line| {
            line.starts_with(&format!("| {name} | ")) && line.ends_with(&format!(" | {output} |"))
        });
        assert_eq!(rows.count(), if missing { 0 } else { 3 }, "{name}:\n{text}");
    }
}

#[cfg(unix)]
#[test]
fn lines_that_dedup_wrongly_drops_are_told() {
    let (success, text) = dedup(&STAND_IN.replace("!s[$0]++", "!s[$0]++ && ++n != 5"));
    assert!(success, "{text}");
    assert!(text.contains("  mayhap dedup FILE wrongly dropped 1 of 14000\n"), "{text}");
    assert!(text.contains("| in order; 0.014 lines expected to be lost, 1 lost |"), "{text}");

    let (success, text) = dedup(&STAND_IN.replace("!s[$0]++", "!s[$0]++ && ++n > 5"));
    assert!(!success, "{text}");
    let complaint = "mayhap dedup FILE kept 13995 lines of 20000, of which 14000 are distinct";
    assert!(text.contains(complaint), "{text}");
}

#[cfg(unix)]
#[test]
fn a_dedup_that_keeps_what_it_should_not_is_named() {
    let (success, text) = dedup(&STAND_IN.replace("!s[$0]++", "1"));
    assert!(!success, "{text}");
    let complaint = "mayhap dedup FILE kept 20000 lines of 20000, of which 14000 are distinct";
    assert!(text.contains(complaint), "{text}");

    // As many as there should be, but sorted.
    let (success, text) = dedup("#!/bin/sh\nshift\nsort -u \"$@\"\n");
    assert!(!success, "{text}");
    assert!(text.contains("is not the next first occurrence: https://"), "{text}");

    let (success, text) = dedup("#!/bin/sh\nexit 3\n");
    assert!(!success, "{text}");
    assert!(
        text.contains("mayhap dedup FILE\n") && text.contains("the program failed: exit status: 3"),
        "{text}"
    );
}

#[test]
fn an_unknown_contender_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_mayhap-bench"))
        .args(["filters", "--only", "sbff"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("no contender has \"sbff\" in its name; there are: mayhap bloom,"), "{text}");
}
