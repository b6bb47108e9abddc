//! The experiments of the papers agree with theory, whatever the seed.
//!
//! A rate that is right fails with a chance of 6e-5. There are some 150 of them, so a chance of 1e-2 for a seed; drawn once,
//! since the seeds are fixed.

use std::collections::HashSet;

use mayhap_eval::{PAPERS, Paper};

/// Those that take a second or more.
const SLOW: [&str; 0] = [];

const SEEDS: [u64; 2] = [1, 2];

fn check<'a>(papers: impl IntoIterator<Item = &'a Paper>) {
    for paper in papers {
        for seed in SEEDS {
            let findings = (paper.run)(seed).unwrap_or_else(|error| panic!("{}: {error}", paper.name));
            assert!(!findings.is_empty(), "{} found nothing", paper.name);
            for finding in findings {
                assert_eq!(finding.experiment, paper.name);
                assert!(finding.agrees(), "seed {seed}: {finding:?}");
            }
        }
    }
}

#[test]
fn quick_experiments_agree() {
    check(PAPERS.iter().filter(|paper| !SLOW.contains(&paper.name)));
}

#[test]
#[ignore = "slow: run with cargo xtask test --all"]
fn slow_experiments_agree() {
    check(PAPERS.iter().filter(|paper| SLOW.contains(&paper.name)));
}

#[test]
fn names_are_unique_and_slow_ones_exist() {
    let names: HashSet<&str> = PAPERS.iter().map(|paper| paper.name).collect();
    assert_eq!(names.len(), PAPERS.len());
    assert!(SLOW.iter().all(|name| names.contains(name)));
}

#[test]
fn a_run_is_repeated_by_its_seed() {
    let run = |name: &str, seed| (PAPERS.iter().find(|paper| paper.name == name).unwrap().run)(seed).unwrap();
    for name in ["BMP-1", "SPC-4", "ADV-2"] {
        assert_eq!(run(name, 7), run(name, 7));
        assert_ne!(run(name, 7), run(name, 8));
    }
}
