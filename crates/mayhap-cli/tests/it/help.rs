//! `--help`, `--version`, and what is said when nothing or nonsense is asked.

use crate::runner::{COMMANDS, Folder};

#[test]
fn every_command_explains_itself() {
    let folder = Folder::new();
    let overview = folder.mayhap("--help").run().ends(0).stays_quiet();
    for command in COMMANDS {
        let listed =
            String::from_utf8_lossy(&overview.out).lines().any(|line| line.trim_start().starts_with(command));
        assert!(listed, "{command} is missing in the overview");
        let usage = format!("Usage: mayhap {command}");
        let long = folder.mayhap(&format!("{command} --help")).run().ends(0).stays_quiet().shows(&usage);
        let short = folder.mayhap(&format!("{command} -h")).run().ends(0).stays_quiet().shows(&usage);
        assert!(long.out.len() >= short.out.len());
        folder.mayhap(&format!("help {command}")).run().ends(0).prints(&long.out);
    }
}

#[test]
fn the_overview_tells_of_numbers_and_of_the_exit_status() {
    let folder = Folder::new();
    folder
        .mayhap("--help")
        .run()
        .ends(0)
        .shows("Exit status: 0 success or yes, 1 no (check, remove, test), 2 error.")
        .shows("Numbers: -n 10M, 1e7; -p 1%, 0.01, 1e-6, 1in1M; --memory 64MiB, 1GB.");
}

#[test]
fn the_version_is_the_packages() {
    let folder = Folder::new();
    folder.mayhap("--version").run().ends(0).prints(concat!("mayhap ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn nothing_and_nonsense_are_errors() {
    let folder = Folder::new();
    folder.mayhap("").run().ends(2).prints("").says("Usage: mayhap");
    folder.mayhap("bild").run().ends(2).prints("").says("a similar subcommand exists: 'build'");
    folder.mayhap("build --outptu f").run().ends(2).says("a similar argument exists: '--output'");
    folder.mayhap("build").run().ends(2).says("--output <FILE>");
    for command in ["add", "remove", "check", "count", "label", "test", "info"] {
        folder.mayhap(command).run().ends(2).prints("").says("<FILTER>");
    }
}

/// The number of lines, and of characters in the longest.
fn measure(text: &[u8]) -> (usize, usize) {
    let text = String::from_utf8_lossy(text);
    (text.lines().count(), text.lines().map(|line| line.chars().count()).max().unwrap_or(0))
}

#[test]
fn short_help_fits_one_screen_and_long_help_has_examples() {
    let folder = Folder::new();
    let overview = folder.mayhap("-h").run().ends(0).stays_quiet();
    let (lines, columns) = measure(&overview.out);
    assert!(lines <= 25 && columns <= 80, "mayhap -h: {lines} lines, {columns} columns");
    let text = String::from_utf8_lossy(&overview.out).into_owned();
    for command in COMMANDS {
        assert!(text.split([' ', ',', '\n']).any(|word| word == command), "{command} is missing in\n{text}");
        let short = folder.mayhap(&format!("{command} -h")).run().ends(0).stays_quiet();
        let (lines, columns) = measure(&short.out);
        assert!(lines <= 40 && columns <= 80, "mayhap {command} -h: {lines} lines, {columns} columns");
        let long = folder.mayhap(&format!("{command} --help")).run().ends(0).stays_quiet();
        let (_, columns) = measure(&long.out);
        assert!(columns <= 80, "mayhap {command} --help: {columns} columns");
        // An example that is wrapped cannot be copied.
        let long = String::from_utf8_lossy(&long.out).into_owned();
        let (_, examples) =
            long.split_once("\nExamples:\n").unwrap_or_else(|| panic!("no examples in\n{long}"));
        let examples: Vec<&str> = examples.lines().take_while(|line| !line.is_empty()).collect();
        assert!(!examples.is_empty(), "no examples in\n{long}");
        for example in examples {
            let is_whole = example.starts_with("  ") && example.contains(&format!("mayhap {command}"));
            assert!(is_whole || example.contains("mayhap build "), "mayhap {command} --help: {example:?}");
        }
    }
    // Global options may stand before it, and no arguments at all are an error with the same text.
    folder.mayhap("--quiet -h").run().ends(0).prints(&overview.out);
    folder.mayhap("").run().ends(2).prints("").says("Usage: mayhap <COMMAND> [OPTIONS] [FILE]...");
}

#[test]
fn short_help_leaves_out_what_long_help_has() {
    let folder = Folder::new();
    let short = folder.mayhap("dedup -h").run().ends(0);
    let short = String::from_utf8_lossy(&short.out).into_owned();
    let long = folder.mayhap("dedup --help").run().ends(0);
    let long = String::from_utf8_lossy(&long.out).into_owned();
    for option in ["--state-any", "--literal-quotes", "--max-record", "--threads"] {
        assert!(!short.contains(option) && long.contains(option), "{option}");
    }
    for option in ["--exact", "--state", "--window", "--field"] {
        assert!(short.contains(option) && long.contains(option), "{option}");
    }
}

#[test]
fn tables_of_families_fit_80_columns() {
    let folder = Folder::new();
    for command in [
        "families",
        "families bloom cuckoo expanding",
        "calc -n 1M -p 1%",
        "calc -n 300T -p 1e-12",
        "calc --size 64MiB -p 1e-6",
        "calc --size 16TiB -p 1%",
        "calc -n 1k --bits 1M",
    ] {
        let done = folder.mayhap(command).run();
        let (lines, columns) = measure(&done.out);
        assert!(columns <= 80, "mayhap {command}: {columns} columns\n{}", String::from_utf8_lossy(&done.out));
        assert!(lines > 5 || command.contains("300T"), "mayhap {command}: {lines} lines");
    }
    let wide = folder.mayhap("calc -n 1M -p 1% --wide").run().ends(0);
    wide.shows("family").shows("keys").shows("size").shows("insert remove merge intersect subtract grow");
}

#[test]
fn misspelt_names_are_answered_with_the_nearest() {
    let folder = Folder::new();
    for (call, message) in [
        ("dedupe", "a similar subcommand exists: 'dedup'"),
        ("dedup --windwo 3", "a similar argument exists: '--window'"),
        (
            "build -o f --family blom",
            "no family is called \"blom\"; did you mean \"bloom\"? There are bloom, ",
        ),
        ("build -o f --family CUCKOO", "did you mean \"cuckoo\"?"),
        ("build -o f --layout fast", "no layout is called \"fast\"; did you mean \"fastest\"?"),
        ("build -o f --counting-rule minimal", "did you mean \"minimal-increase\"?"),
        ("build -o f --to guaav", "no format is called \"guaav\"; did you mean \"guava\"?"),
        ("info f --format redis", "did you mean \"redisbloom\"?"),
        ("check f --hash sha265", "no hash function is called \"sha265\"; did you mean \"sha256\"?"),
        ("calc -n 1M -p 1% --family ribon", "did you mean \"ribbon\"?"),
        ("families shift", "did you mean \"shifting\"?"),
        ("eval --data unifrom", "no data is called \"unifrom\"; did you mean \"uniform\"?"),
        ("eval --family al", "no family is called \"al\""),
        ("explain a --family spacial", "did you mean \"spatial\"?"),
    ] {
        folder.mayhap(call).run().ends(2).prints("").says(message);
    }
}
