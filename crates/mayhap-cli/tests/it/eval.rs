//! `mayhap eval`: experiments are repeatable, complete, and honest about what cannot be measured.

use std::collections::BTreeSet;

use crate::runner;
use crate::runner::Folder;
use serde_json::Value;

fn rows(arguments: &str, list: &str) -> Vec<Value> {
    let report = Folder::new().mayhap(&format!("eval --json {arguments}")).run().ends(0).stays_quiet().json();
    report[list].as_array().unwrap_or_else(|| panic!("{list} in {report}")).clone()
}

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("{field} in {row}"))
}

/// Every family with keys of three distributions: nothing lost, and the rate is the predicted one. With 4 standard
/// deviations, one of 16,000 rows would disagree by chance; the seed is fixed.
#[test]
fn every_family_measures_what_was_predicted() {
    let data = ["uniform", "gaussian", "exponential"];
    let runs = rows(&format!("--family all --data {} -n 20k -p 0.01", data.join(",")), "runs");
    for data in data {
        let names: BTreeSet<&str> = runs
            .iter()
            .filter(|run| run["data"] == data)
            .map(|run| run["family"].as_str().unwrap())
            .collect();
        let all = runner::families(|_| true, " ");
        assert_eq!(names, all.split(' ').collect(), "{data}");
    }
    for run in &runs {
        assert_eq!((&run["false_negatives"], &run["impossible"]), (&0.into(), &Value::Null), "{run}");
        assert_eq!(run["wrong_in_universe"], 0, "{run}");
        let (low, high) = (number(run, "fpr_low"), number(run, "fpr_high"));
        assert!((low..=high).contains(&number(run, "fpr_measured")), "{run}");
        assert!((low..=high).contains(&number(run, "fpr_predicted")), "{run}");
        assert_eq!(
            (&run["agrees"], &run["capacity"], &run["fpr_asked"]),
            (&true.into(), &20_000.into(), &0.01.into())
        );
        for field in ["insert_ns", "hit_ns", "miss_ns", "bits_per_key"] {
            assert!(number(run, field) > 0.0, "{field} in {run}");
        }
        // The interval says something: it is not as wide as the rate itself, where the rate was measured at all.
        if number(run, "fpr_predicted") > 5e-3 {
            assert!(high - low < 0.4 * number(run, "fpr_predicted"), "{run}");
        }
    }
}

#[test]
fn absent_keys_can_be_disjoint_by_construction_and_runs_can_be_repeated() {
    let arguments = "--family bloom,scalable,fuse --data sequential,zipf:1.1,uuid,url -n 10k --repeat 3";
    for absent in ["same", "disjoint"] {
        for run in rows(&format!("{arguments} --absent {absent}"), "runs") {
            assert_eq!(
                (&run["agrees"], &run["repeat"], &run["false_negatives"]),
                (&true.into(), &3.into(), &0.into()),
                "{run}"
            );
            let distinct = number(&run, "distinct");
            assert_eq!(distinct < 9000.0, run["data"] == "zipf:1.1", "{run}");
        }
    }
}

#[test]
fn a_run_is_repeatable_by_its_seed() {
    let counted = |seed: u32| -> Vec<(Value, Value, Value)> {
        let runs = rows(
            &format!("--family bloom,blocked,cuckoo --data gaussian:1e4,url -n 5000 --seed {seed}"),
            "runs",
        );
        runs.into_iter()
            .map(|run| {
                (run["distinct"].clone(), run["false_positives"].clone(), run["fpr_predicted"].clone())
            })
            .collect()
    };
    assert_eq!(counted(7), counted(7));
    assert_ne!(counted(7), counted(8));
}

/// Every key is 0: nothing absent can be drawn, and a rate of 0 would be a lie.
#[test]
fn an_impossible_experiment_is_reported_as_such() {
    let folder = Folder::new();
    let dense = "eval --family bloom,exact --data exponential:1e-5 -n 1000";
    let report = folder.mayhap(dense).run().ends(0);
    let text = String::from_utf8(report.out).unwrap();
    for line in [
        "bloom, exponential:1e-5: impossible: no absent key is left: the 1 different keys",
        "exact, exponential:1e-5: impossible",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    for run in rows("--family bloom --data exponential:1e-5 -n 1000", "runs") {
        assert_eq!((&run["fpr_measured"], &run["agrees"]), (&Value::Null, &Value::Null), "{run}");
        assert!(run["impossible"].as_str().unwrap().contains("no absent key is left"), "{run}");
    }
    let runs = rows("--family bitmap,roaring,bloom --data uuid -n 1000", "runs");
    let why: Vec<bool> = runs.iter().map(|run| run["impossible"].is_string()).collect();
    assert_eq!(why, [true, true, false], "{runs:?}");
    let runs = rows("--family bitmap --data uniform:1e15 -n 1000", "runs");
    assert!(runs[0]["impossible"].as_str().unwrap().contains("the limit here is"), "{runs:?}");
    // The most frequent key comes more often than a cuckoo filter can hold it.
    let runs = rows("--family cuckoo --data zipf -n 10k", "runs");
    assert!(runs[0]["impossible"].as_str().unwrap().contains("is in 8 times already"), "{runs:?}");
    // A rate that a family does not reach.
    let runs = rows("--family blocked -p 1e-12 -n 1000", "runs");
    assert!(runs[0]["impossible"].is_string(), "{runs:?}");
}

/// A filter that keeps copies counted them as keys, and so did the prediction.
#[test]
fn repeated_keys_do_not_change_the_prediction() {
    for run in rows("--family all --data zipf:1 -n 20k", "runs") {
        let copies = run["family"] == "cuckoo";
        assert_eq!(run["impossible"].is_string(), copies, "{run}");
        assert!(copies || run["agrees"] == true && run["false_negatives"] == 0, "{run}");
    }
}

#[test]
fn so_few_keys_that_nothing_is_to_be_seen_are_no_error() {
    let folder = Folder::new();
    folder.mayhap("eval --family bloom -n 1 --plot few").run().ends(0).shows("bloom").says("pictures in few");
    folder.mayhap("eval --family bloom -n 100 -p 1e-18 --questions 1000 --plot low").run().ends(0);
    folder.write("file", "");
    folder.mayhap("eval --family bloom -n 100 --plot file").run().ends(2).prints("").says("file");
}

#[test]
fn the_ladder_is_measured_beside_all_families() {
    let ladder = rows("--family all --data url -n 10k", "baselines");
    let names: Vec<&str> = ladder.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(ladder.iter().all(|row| row["false_negatives"] == 0), "{ladder:?}");
    let bitmap = ladder.last().unwrap();
    assert!((number(bitmap, "fpr_measured") - 0.1813).abs() < 0.01, "{bitmap}");
    assert!(rows("--family bloom --data url -n 1000", "baselines").is_empty());
    Folder::new()
        .mayhap("eval -n 2000")
        .run()
        .ends(0)
        .shows("without a filter, one key after the other:")
        .shows("hash set of 160-bit digests");
}

#[test]
fn nonsense_is_refused() {
    let cases = [
        ("--family blom", "no family is called \"blom\"; did you mean \"bloom\"? There are bloom, blocked"),
        ("--data normal", "no data is called \"normal\"; there are uniform, gaussian"),
        ("--data gaussian:-3", "not negative"),
        ("--data uuid:3", "takes no number"),
        ("-n 0", "capacity must be 1 to"),
        ("-n 1G", "the limit is 100000000"),
        ("-p 5", "did you mean 5% (0.05)?"),
        ("--repeat 0", "0 is not in 1..=1000"),
        ("--questions 1G", "it must be 1 to 100000000"),
        ("--questions 0", "0 questions were requested"),
        ("--data zipf -n 50M", "the limit is 20000000"),
        ("--suite classic --only BLM-1", "--only names experiments of --suite papers"),
        ("--suite papers -n 10", "its own number of keys"),
        ("--suite papers --family cuckoo", "cannot be used with"),
        ("--hashes --data url", "cannot be used with"),
        ("--guava x.jar", "--guava is for --suite classic"),
        ("--plot x --hashes", "cannot be used with"),
        ("--suite papers --only ABC-1", "no experiment is called \"ABC-1\"; there are BMP-1, BMP-2, BLM-1"),
        ("--only BLM-1", "--suite"),
        ("--suite modern", "invalid value 'modern'"),
    ];
    for (arguments, text) in cases {
        Folder::new().mayhap(&format!("eval {arguments}")).run().ends(2).prints("").says(text);
    }
}

#[test]
fn pictures_are_drawn_into_a_folder() {
    let folder = Folder::new();
    folder
        .mayhap("eval --family bloom -n 5000 --plot new/plots")
        .run()
        .ends(0)
        .says("4 pictures in new/plots");
    for (name, series) in [
        ("bits-against-rate", "bound: log2(1/p)"),
        ("rate-against-keys", "bloom, theory"),
        ("time-against-keys", "blocked"),
        ("time-against-load", "cuckoo (fastest)"),
    ] {
        let svg = String::from_utf8(folder.read(&format!("new/plots/{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
        assert!(svg.contains(&format!(">{series}</text>")) && !svg.contains("NaN"), "{name}");
    }
}

/// Half of the distinct records are inserted, and the other half is looked up.
#[test]
fn keys_may_be_the_records_of_a_file() {
    let folder = Folder::new();
    let records: String =
        (0..30_000).map(|index| format!("https://example.org/{}\n", index % 20_000)).collect();
    folder.write("mine", &records);
    let eval = "eval --family bloom,cuckoo,bitmap --data file:mine";
    let report = folder.mayhap(&format!("{eval} --json")).run().ends(0).stays_quiet().json();
    for run in report["runs"].as_array().unwrap() {
        assert_eq!((&run["data"], &run["capacity"]), (&"file:mine".into(), &10_000.into()), "{run}");
        if run["family"] == "bitmap" {
            assert!(run["impossible"].as_str().unwrap().contains("not integers"), "{run}");
            continue;
        }
        assert_eq!((&run["agrees"], &run["false_negatives"]), (&true.into(), &0.into()), "{run}");
        assert_eq!((&run["questions"], &run["distinct"]), (&10_000.into(), &10_000.0.into()), "{run}");
    }
    folder
        .mayhap("eval --family bloom --data file:mine,uuid -n 15k --questions 9k")
        .run()
        .ends(0)
        .shows(
            "file:mine, 20,000 different records: 15,000 keys at 1%, 5,000 absent keys looked up, seed 1\n",
        )
        .shows("\n15,000 keys at 1%, 9,000 absent keys looked up, seed 1\n");
    // The ladder too.
    folder.mayhap("eval --data file:mine").run().ends(0).shows("hash set of keys");
    folder.write("one", "a\na\n");
    for (arguments, text) in [
        (
            "--data file:one",
            "file:one has 1 different records, and 1 of them as keys leave none to ask for; give a file",
        ),
        ("--data file:mine -n 20k", "and 20000 of them as keys leave none to ask for; give a smaller -n"),
        ("--data file:none", "none"),
        ("--data file:", "behind file: there must be the name of a file"),
        ("--data base", "no data is called \"base\"; there are uniform, "),
    ] {
        folder.mayhap(&format!("eval {arguments}")).run().ends(2).prints("").says(text);
    }
}

/// A Chinese character is as wide as two others.
#[test]
fn tables_with_chinese_names_are_aligned() {
    let folder = Folder::new();
    folder.write("键", (0..2000).map(|index| format!("{index}\n")).collect::<String>());
    let shown =
        folder.mayhap("eval --family bloom --data file:键,uuid -n 1000 --questions 500").run().ends(0);
    shown
        .shows("family  data     different")
        .shows("bloom   file:键       100%")
        .shows("bloom   uuid          100%");
}

#[test]
fn hash_functions_are_compared() {
    let hashes = rows("--hashes -n 20k -p 1%", "hashes");
    let names: BTreeSet<&str> = hashes.iter().map(|row| row["hash"].as_str().unwrap()).collect();
    let all = [
        "bkdr",
        "js",
        "md5",
        "murmur3-x64-128",
        "murmur3-x86-32",
        "rs",
        "siphash-1-3-128",
        "siphash-2-4-64",
        "xxh3-128",
    ];
    assert_eq!(names, all.into_iter().collect());
    assert_eq!(hashes.len(), 3 * names.len());
    for row in &hashes {
        assert!(number(row, "ns") > 0.0, "{row}");
        // At 1% of so few keys even 32 bits do.
        assert!((number(row, "fpr_measured") / number(row, "fpr_predicted") - 1.0).abs() < 0.2, "{row}");
    }
    Folder::new().mayhap("eval --hashes -n 2000 --questions 10k").run().ends(0).shows("murmur3-x86-32");
}

#[test]
fn the_classic_experiments_are_one_command() {
    let folder = Folder::new();
    let report = folder
        .mayhap("eval --suite classic -n 100k --json --guava none.jar")
        .run()
        .ends(0)
        .stays_quiet()
        .json();
    let rates = report["rates"].as_array().unwrap();
    assert!(rates.iter().all(|rate| rate["agrees"] == true || rate["impossible"].is_string()), "{rates:?}");
    let reported: Vec<f64> = rates.iter().filter_map(|rate| rate["reported"].as_f64()).collect();
    assert_eq!(reported, [0.030034, 0.028583, 0.027511, 0.029622]);
    let corrected: Vec<f64> = rates.iter().filter_map(|rate| rate["corrected"].as_f64()).collect();
    assert_eq!(corrected, [0.029921]);
    let admitted = report["admitted"].as_array().unwrap();
    assert_eq!((&admitted[0]["capacity"], &admitted[1]["capacity"]), (&100_000.into(), &10_000.into()));
    for filter in admitted {
        assert_eq!((&filter["agrees"], &filter["reported"]), (&true.into(), &Value::Null), "{filter}");
    }
    assert!(
        report["guava"].as_str().unwrap().starts_with("none.jar is not there; install Guava"),
        "{report}"
    );
    assert_eq!(report["times"].as_array().unwrap().len(), 6);
    let text = folder.mayhap("eval --suite classic -n 100k --guava none.jar").run().ends(0).stays_quiet();
    let text = String::from_utf8(text.out).unwrap();
    for line in [
        "gaussian, scale 1e6",
        "impossible: no absent key is left",
        "Guava was not measured",
        "semi-sorted      2.4%",
        "0.029622   0.029921",
        "a Java class of an essay: 100,000 even numbers in 958,505 bits with 6 probes, 100,000 others asked\n",
        "Guava: 10,000 integers in ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn the_experiments_of_the_papers_are_one_command() {
    let findings = rows("--suite papers --only BLM-5,CKO-3,SHB-4 --seed 3", "findings");
    let names: BTreeSet<&str> =
        findings.iter().map(|finding| finding["experiment"].as_str().unwrap()).collect();
    assert_eq!(names, ["BLM-5", "CKO-3", "SHB-4"].into_iter().collect());
    assert!(findings.iter().all(|finding| finding["agrees"] == true), "{findings:?}");
    let folder = Folder::new();
    let report = folder.mayhap("eval --suite papers --only bmp-2 --progress").run().ends(0);
    report.says("1 of 1: BMP-2, laws of sets").shows("values are where they must be, with the seed 1");
}
