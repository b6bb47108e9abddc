//! `mayhap advise`: what is taken for which needs, and the command that it gives works.

use std::collections::BTreeSet;

use crate::runner::{Folder, lines};

#[test]
fn the_advice_of_the_reference_is_given() {
    let folder = Folder::new();
    for (needs, family, probes, low, high) in [
        // 28.57 MiB; 1.25 MiB; of a static set within half a percent of 957 MiB.
        ("-n 1e7 -p 1e-5 --mergeable", "bloom", Some(17), 28.56, 28.58),
        ("-n 1M -p 1% --removable", "cuckoo", None, 1.24, 1.27),
        ("-n 1G -p 0.00390625 --static --smallest", "ribbon", None, 953.0, 962.0),
    ] {
        let advice = folder.mayhap(&format!("advise --json {needs}")).run().ends(0).json();
        assert_eq!(advice["family"], family, "{needs}");
        assert_eq!(
            advice["probes"],
            probes.map_or(serde_json::Value::Null, serde_json::Value::from),
            "{needs}"
        );
        let mebibytes = advice["bytes"].as_f64().unwrap() / (1 << 20) as f64;
        assert!((low..high).contains(&mebibytes), "{needs}: {mebibytes} MiB");
        assert_eq!(advice["runners_up"].as_array().unwrap().len(), 2, "{needs}");
    }
    let unknown = folder.mayhap("advise --json --grow --removable").run().ends(0).json();
    assert_eq!(unknown["family"], "expanding");
}

#[test]
fn it_says_so_if_the_exact_set_fits() {
    let folder = Folder::new();
    folder.mayhap("advise -n 1000 --memory 1GiB").run().ends(0).shows("exact");
    let advice = folder.mayhap("advise --json -n 1000 --memory 1GiB").run().ends(0).json();
    assert_eq!((&advice["exact"], &advice["rule"]), (&true.into(), &0.into()));
}

/// Needs that lead to every rule, alone and with what else can be said. Some together are refused, which is right.
fn all_needs() -> Vec<String> {
    let main = [
        "-n 2000",
        "--about 2000",
        "-n 2000 --fastest",
        "-n 2000 --fastest -p 0.01%",
        "-n 2000 --smallest",
        "-n 2000 -p 1e-9",
        "-n 2000 -p 0.00390625",
        "-n 2000 --mergeable",
        "-n 2000 --removable",
        "-n 2000 --removable --copies 100",
        "-n 2000 --removable --copies 40000",
        "-n 2000 --removable --steady",
        "-n 2000 --removable --mergeable",
        "-n 2000 --static",
        "-n 2000 --static --smallest",
        "-n 2000 --static --fastest",
        "-n 20000 --static",
        "-n 20000 --static --smallest -p 1e-15",
        "-n 2000 --counts",
        "-n 2000 --counts --mergeable",
        "-n 2000 --counts=40 --static",
        "-n 2000 --counts --removable",
        "--grow",
        "--grow --steady",
        "--grow --removable",
        "--window 2000",
        "-n 2000 --universe 2000",
        "-n 2000 --universe 2000 --static -p 1%",
        "-n 2000 --sets 1",
        "-n 2000 --sets 2",
        "-n 2000 --sets 2 --static",
        "-n 2000 --sets 2 --static --universe 0",
        "-n 2000 --sets 5",
        "-n 2000 --integers 100k",
        "-n 2000 --integers 4G",
        "-n 2000 --integers 4G --removable",
    ];
    let more = [
        "",
        "--exceptions 100",
        "--hostile-queries",
        "--hostile-inserts --exceptions 100",
        "--memory 1GiB",
        "--memory 1GiB --hostile-queries",
        "--memory 2200",
        "--memory 700B",
        "--universe 2000 --exceptions 100",
        "--integers 100k --hostile-inserts",
    ];
    main.iter().flat_map(|main| more.iter().map(move |more| format!("{main} {more}"))).collect()
}

/// Whatever is advised can be built by the command that stands there, and so can the runners-up. Filters without labels were
/// given some, and others a universe that they do not have.
#[test]
fn the_command_of_the_advice_builds_what_was_advised() {
    let folder = Folder::new();
    folder.write("KEYS", lines("key-", 2000));
    folder.write("OTHERS", lines("other-", 2000));
    folder.write("numbers", lines("", 2000));
    folder.write("more-numbers", (5000..7000).map(|number| format!("{number}\n")).collect::<String>());
    let (mut rules, mut built) = (BTreeSet::new(), BTreeSet::new());
    for needs in all_needs() {
        let done = folder.mayhap(&format!("advise --json {needs}")).run();
        if done.status.code() == Some(2) {
            // Nothing meets all of it, or an option is given twice.
            assert!(!done.err.is_empty() && needs.matches("--").count() > 1, "{needs}: {}", done.err);
            continue;
        }
        let advice = done.ends(0).json();
        rules.insert(advice["rule"].as_u64().unwrap());
        let text = folder.mayhap(&format!("advise {needs}")).run().ends(0);
        text.shows(advice["command"].as_str().unwrap());
        for advice in [&advice].into_iter().chain(advice["runners_up"].as_array().unwrap()) {
            let family = advice["family"].as_str().unwrap();
            let command = advice["command"].as_str().unwrap();
            if !built.insert(command.to_string()) {
                continue;
            }
            let labels = "--label one=KEYS --label two=OTHERS";
            let mut command = command
                .replace("--label NAME=KEYS --label NAME=KEYS ...", labels)
                .replace("--label NAME=KEYS --label NAME=OTHERS", labels)
                .replace("FILTER", "filter");
            if command.contains("--label") {
                command = command.replace("--except OTHERS", "--except numbers");
            }
            if needs.contains("--integers") {
                command = command.replace("KEYS", "numbers").replace("OTHERS", "more-numbers");
            }
            let arguments = command.strip_prefix("mayhap ").expect("our own command");
            folder.mayhap(arguments).run().ends(0);
            let info = folder.mayhap("info --json filter").run().ends(0).json();
            assert_eq!(info["family"], family, "{needs}");
            // What grows starts small, and a universe has as many bits as the others want.
            let is_sized = advice["exact"] == false && advice["grows"] == false && family != "universe";
            if is_sized && advice["capacity"] == 2000 {
                let (planned, built) = (advice["bits"].as_f64().unwrap(), info["bits"].as_f64().unwrap());
                // Under a random secret a small static filter may have to be made again, a little larger.
                let allowed = if command.contains("--keyed") { 0.25 } else { 0.02 };
                assert!(
                    (built / planned - 1.0).abs() < allowed,
                    "{needs}: {built} bits, {planned} were planned"
                );
            }
            for file in ["filter", "filter.key"] {
                let _ = std::fs::remove_file(folder.path(file));
            }
        }
    }
    assert_eq!(rules.into_iter().collect::<Vec<_>>(), (0..=16).collect::<Vec<_>>(), "every rule");
    assert!(built.len() > 100, "{} commands", built.len());
}

#[test]
fn needs_that_nothing_meets_are_refused_with_the_reason() {
    let folder = Folder::new();
    for (needs, said) in [
        (
            "-n 1000 --static --removable",
            "a set that stays as it is and removing keys were asked for, and no family does both",
        ),
        (
            "--static",
            "the number of keys is not known, and a set that stays as it is cannot be sized without it; count them",
        ),
        ("-n 100M --memory 1KiB", "1024 bytes are too few for the family bloom, which takes 119813230"),
        ("-n 10 --integers 5", "10 different integers below 5 were asked for, and there are only 5"),
    ] {
        let done = folder.mayhap(&format!("advise {needs}")).run().ends(2).prints("");
        assert_eq!(done.err.lines().count(), 1, "{needs}: {}", done.err);
        done.says(said);
    }
    folder.mayhap("advise -n 10 --fastest --smallest").run().ends(2).says("cannot be used with");
    folder.mayhap("advise -n 10 --about 10").run().ends(2).says("cannot be used with");
}

#[test]
fn the_text_has_price_guarantee_runners_up_and_warnings() {
    let folder = Folder::new();
    let mut done = folder.mayhap("advise --about 10M -p 0.001% --hostile-inserts").run().ends(0);
    for part in ["take", "bloom", "28.57 MiB", "1e-5", "--keyed", "estimate", "no false negatives"] {
        done = done.shows(part);
    }
}
