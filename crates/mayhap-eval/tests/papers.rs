//! The experiments of the papers agree with theory, whatever the seed.
//!
//! A rate that is right fails with a chance of 6e-5. There are about a hundred of them, so 6e-3 for each seed; drawn once,
//! since the seeds are fixed.

use std::collections::HashSet;

use mayhap_eval::{Finding, PAPERS};

/// Those that take about a second or more with the tests' optimisation.
const SLOW: [&str; 18] = [
    "BMP-1", "BLM-2", "BLK-5", "CBF-1", "DLC-3", "SPC-1", "SPC-2", "SPC-3", "SPC-4", "SCL-1", "SCL-2",
    "SCL-3", "SCL-4", "CKO-1", "FUS-1", "STA-1", "RIB-3", "FGT-1",
];

fn run(name: &str, seed: u64) -> Vec<Finding> {
    let paper = PAPERS.iter().find(|paper| paper.name == name).expect("an experiment of the suite");
    (paper.run)(seed).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs the slow experiments or the others.
fn check(slow: bool, seed: u64) {
    for name in PAPERS.iter().map(|paper| paper.name).filter(|name| SLOW.contains(name) == slow) {
        let findings = run(name, seed);
        assert!(!findings.is_empty(), "{name} found nothing");
        for finding in findings {
            assert_eq!(finding.experiment, name);
            assert!(finding.agrees(), "seed {seed}: {finding:?}");
        }
    }
}

#[test]
fn quick_experiments_agree() {
    check(false, 1);
}

#[test]
fn quick_experiments_agree_with_other_keys() {
    check(false, 2);
}

#[test]
#[ignore = "slow: run with cargo xtask test --all"]
fn slow_experiments_agree() {
    check(true, 1);
}

#[test]
#[ignore = "slow: run with cargo xtask test --all"]
fn slow_experiments_agree_with_other_keys() {
    check(true, 2);
}

#[test]
fn every_experiment_has_a_name_of_its_own() {
    let names: HashSet<&str> = PAPERS.iter().map(|paper| paper.name).collect();
    assert_eq!(names.len(), PAPERS.len());
    assert!(SLOW.iter().all(|name| names.contains(name)));
}

#[test]
fn a_seed_repeats_a_run() {
    for name in ["BLM-1", "QTF-1", "ADV-2"] {
        assert_eq!(run(name, 7), run(name, 7));
        assert_ne!(run(name, 7), run(name, 8));
    }
}
