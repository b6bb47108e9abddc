//! The experiments of the papers agree with theory, whatever the seed. Each is a test: `BLM-1` is `blm_1`.
//!
//! A rate that is right fails with a chance of 6e-5. There are about two hundred of them, so about 1e-2 for each seed; drawn
//! once, since the seeds are fixed.

use std::collections::BTreeSet;

use mayhap_eval::{Finding, PAPERS};

fn name_of(test: &str) -> String {
    test.to_uppercase().replace('_', "-")
}

fn run(name: &str, seed: u64) -> Vec<Finding> {
    let paper = PAPERS.iter().find(|paper| paper.name == name).expect("an experiment of the suite");
    (paper.run)(seed).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn check(test: &str, seed: u64) {
    let name = name_of(test);
    let findings = run(&name, seed);
    assert!(!findings.is_empty(), "{name} found nothing");
    assert!(findings.iter().all(|finding| finding.experiment == name), "{findings:?}");
    let wrong: Vec<&Finding> = findings.iter().filter(|finding| !finding.agrees()).collect();
    assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
}

macro_rules! experiments {
    ($seed:literal, #[$when:meta], $($experiment:ident)*) => {
        pub(crate) const NAMES: &[&str] = &[$(stringify!($experiment)),*];
        $(
            #[test]
            #[$when]
            fn $experiment() {
                crate::check(stringify!($experiment), $seed);
            }
        )*
    };
}

mod all {
    experiments! {
        1, #[cfg(not(miri))],
        bmp_1 bmp_2 blm_1 blm_2 blm_3 blm_4 blm_5 blk_1 blk_4 blk_5 cbf_1 cbf_2 cbf_3 dlc_1 dlc_2 dlc_3 spc_1
        spc_2 spc_3 spc_4 spc_5 scl_1 scl_2 scl_3 scl_4 spa_1 spa_2 shb_1 shb_2 shb_3 shb_4 shb_5 cko_1 cko_2
        cko_3 cko_4 cko_5 fus_1 sta_1 rib_3 qtf_1 exp_1 exp_2 fgt_1 cas_1 adv_1 adv_2
    }
}

mod with_other_keys {
    experiments! {
        2, #[cfg(not(miri))],
        bmp_2 blm_1 blm_3 blm_4 blm_5 blk_1 blk_4 cbf_2 cbf_3 dlc_1 dlc_2 spc_5 spa_1 spa_2 shb_1 shb_2 shb_3
        shb_4 shb_5 cko_3 cko_4 cko_5 qtf_1 exp_1 exp_2 adv_1 adv_2
    }
}

/// Those that take about a second or more with the tests' optimisation.
mod slow_with_other_keys {
    experiments! {
        2, #[ignore = "slow: run with cargo xtask test --all"],
        bmp_1 blm_2 blk_5 cbf_1 dlc_3 spc_1 spc_2 spc_3 spc_4 scl_1 scl_2 scl_3 scl_4 cko_1 cko_2 fus_1 sta_1
        rib_3 fgt_1 cas_1
    }
}

#[test]
fn every_experiment_is_run_with_two_seeds() {
    let papers: BTreeSet<String> = PAPERS.iter().map(|paper| paper.name.to_string()).collect();
    assert_eq!(papers.len(), PAPERS.len(), "two have one name");
    let names = |tests: &[&[&str]]| tests.concat().into_iter().map(name_of).collect::<BTreeSet<_>>();
    assert_eq!(names(&[all::NAMES]), papers);
    assert_eq!(names(&[with_other_keys::NAMES, slow_with_other_keys::NAMES]), papers);
}

#[test]
fn a_seed_repeats_a_run() {
    for name in ["BLM-1", "QTF-1", "ADV-2"] {
        assert_eq!(run(name, 7), run(name, 7));
        assert_ne!(run(name, 7), run(name, 8));
    }
}
