//! `mayhap demo`: the ladder from a hash set to a Bloom filter, and the commands that it runs.

use crate::runner::Folder;

/// The cells of a line of the table, which stand apart by two spaces or more.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

/// A size as the table shows it, in bytes.
fn bytes(cell: &str) -> f64 {
    let (number, unit) = cell.split_once(' ').unwrap_or_else(|| panic!("{cell:?} is no size"));
    let factor = match unit {
        "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        _ => panic!("{cell:?} has an unexpected unit"),
    };
    number.parse::<f64>().expect("a number") * factor
}

#[test]
fn every_rung_takes_less_memory_than_the_one_before_and_errs_as_expected() {
    let done = Folder::new().mayhap("demo -n 20000").run().ends(0);
    let text = String::from_utf8(done.out).expect("text");
    let ladder = [
        "hash set of keys",
        "hash set of 160-bit digests",
        "hash set of 128-bit digests",
        "hash set of 64-bit digests",
        "Bloom filter",
        "bitmap, one hash, 5 bits a key",
    ];
    let rows = ladder.map(|name| {
        let line = text.lines().find(|line| line.starts_with(name));
        cells(line.unwrap_or_else(|| panic!("{name} is missing in\n{text}")))
    });
    let sizes = rows.each_ref().map(|row| bytes(row[1]));
    assert!(sizes.is_sorted_by(|larger, smaller| larger > smaller), "{sizes:?}\n{text}");
    // 50 bytes of text, a pointer and a length for each.
    assert!(sizes[0] > 66.0 * 20_000.0, "{text}");
    // 9.585 and 5 bits for each.
    assert!((sizes[4] / (9.585 * 2500.0) - 1.0).abs() < 0.001, "{text}");
    assert!((sizes[5] / 12_500.0 - 1.0).abs() < 0.001, "{text}");
    let errors = rows.map(|row| [row[4].to_string(), row[5].to_string()]);
    assert!(errors[..4].iter().all(|error| error == &["none", "none"]), "{text}");
    let percent = |text: &str| text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    for ([expected, measured], rate, within) in [(&errors[4], 1.004, 0.36), (&errors[5], 18.13, 1.4)] {
        let (expected, measured) = (percent(expected).expect(&text), percent(measured).expect(&text));
        assert!((expected - rate).abs() < 0.05, "{text}");
        // Five deviations of 20,000 questions.
        assert!((measured - rate).abs() < within, "{text}");
    }
    assert!(text.contains("If the exact set fits your memory, use the exact set."), "{text}");
}

#[test]
fn it_runs_the_commands_that_it_shows() {
    let done = Folder::new().mayhap("demo -n 5000").run().ends(0);
    let text = String::from_utf8(done.out).expect("text");
    for command in ["build", "info", "check", "test", "dedup"] {
        assert!(text.contains(&format!("$ mayhap {command} ")), "{command} in\n{text}");
    }
    assert!(text.contains("different ones"), "{text}");
    Folder::new().mayhap("demo -n 1G").run().ends(2).says("the limit is 100M");
}
