//! The seeds of the tests that draw their operations: fixed in the usual run, so that a failure repeats; free in the long one.

use std::hash::{BuildHasher as _, RandomState};

use proptest::test_runner::{Config, RngSeed};

const SEED: u64 = 1970;

/// This many cases. The seed is fixed, unless `MAYHAP_TEST_ALL` is set, as by `cargo xtask test --all`: then each run has
/// another. `PROPTEST_RNG_SEED` sets it in either.
pub(crate) fn config(cases: u32) -> Config {
    let is_long = std::env::var_os("MAYHAP_TEST_ALL").is_some();
    let set = std::env::var("PROPTEST_RNG_SEED").ok();
    let seed = match set.map(|seed| seed.parse().expect("PROPTEST_RNG_SEED is a number")) {
        Some(seed) => seed,
        None if is_long => RandomState::new().hash_one(0),
        None => SEED,
    };
    // Printed when the test fails.
    println!("to repeat: PROPTEST_RNG_SEED={seed}");
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() }
}
