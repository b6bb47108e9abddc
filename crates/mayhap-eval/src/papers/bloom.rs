//! Classic Bloom filters.

use core::ops::Range;

use mayhap::math::{self, ProbesRule};
use mayhap::{Bloom, Error, Hashing, Spec};

use super::{absent, admitted, as_reported, denied, insert, none_denied};
use crate::{Finding, Proportion, SplitMix64};

/// What Guava takes for a million keys at 1 %.
const BITS: u64 = 9_585_058;
const PROBES: u32 = 7;

fn filled(seed: u64, indexes: Range<u64>) -> Result<Bloom, Error> {
    let spec = Spec::new().with_capacity(1_000_000).with_bits(BITS).with_probes(PROBES);
    let mut bloom = Bloom::from_spec(&spec)?;
    insert(&mut bloom, seed, indexes)?;
    Ok(bloom)
}

pub(super) fn blm_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "BLM-1";
    let bloom = filled(seed, 0..1_000_000)?;
    let (fpr, rho) = (math::bloom_fpr(BITS, 1e6, PROBES), math::fpr_deviation(BITS, 1e6, PROBES));
    let fill = math::expected_fill(BITS, 1e6, PROBES);
    let asked = admitted(&bloom, seed, absent(4_000_000));
    Ok(vec![
        none_denied(NAME, denied(&bloom, seed, 0..1_000_000)),
        Finding::rate(NAME, "false positives", fpr, rho, asked),
        as_reported(NAME, "false positives", bloom.fpr(), asked),
        Finding::within(NAME, "share of bits set", fill, 0.0005, bloom.fill()),
        Finding::within(NAME, "keys, as estimated from the bits", 1e6, 1040.0, bloom.estimated_len()),
    ])
}

pub(super) fn blm_2(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "BLM-2";
    let mut bloom = Bloom::new(10_000_000, 1e-5)?;
    insert(&mut bloom, seed, 0..10_000_000)?;
    let (bits, probes) = (bloom.bits(), bloom.probes());
    let (fpr, rho) = (math::bloom_fpr(bits, 1e7, probes), math::fpr_deviation(bits, 1e7, probes));
    Ok(vec![
        none_denied(NAME, denied(&bloom, seed, 0..10_000_000)),
        Finding::rate(NAME, "false positives", fpr, rho, admitted(&bloom, seed, absent(20_000_000))),
    ])
}

pub(super) fn blm_3(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "BLM-3";
    const BITS: u32 = 2876;
    let (mut all, mut missed) = (Proportion { hits: 0, trials: 0 }, 0);
    for filter in 0..40 {
        let hashing = Hashing::Xxh3 { seed: SplitMix64::at(seed, filter) };
        let spec = Spec::new().with_bits(BITS.into()).with_probes(20).with_hashing(hashing);
        let mut bloom = Bloom::from_spec(&spec)?;
        insert(&mut bloom, seed, 0..100)?;
        missed += denied(&bloom, seed, 0..100);
        let asked = admitted(&bloom, seed, absent(1_000_000));
        all = Proportion { hits: all.hits + asked.hits, trials: all.trials + asked.trials };
    }
    let fpr = math::bloom_fpr_exact(BITS, 100, 20);
    let measured = all.hits as f64 / all.trials as f64;
    Ok(vec![
        none_denied(NAME, missed),
        // Plain double hashing has 50 to 380 times the rate. Ten of the 40 that are expected have a chance of 1e-8.
        Finding::between(NAME, "false positives of 40 filters", fpr, 2.5e-7..=3e-6, measured),
    ])
}

pub(super) fn blm_4(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "BLM-4";
    let (ours, theirs) = (filled(seed, 0..600_000)?, filled(seed, 400_000..1_000_000)?);
    let (mut either, mut both) = (ours.clone(), ours.clone());
    either.merge(&theirs)?;
    both.intersect(&theirs)?;
    let ones = both.words().iter().map(|word| u64::from(word.count_ones())).sum();
    let fresh = filled(seed, 0..1_000_000)?;
    let unlike = either.words().iter().zip(fresh.words()).filter(|(merged, fresh)| merged != fresh).count();
    // A bit of both filters need not be one of a common key: why the number of keys is not taken from the common bits.
    let fill = |keys| math::expected_fill(BITS, keys, PROBES);
    let common_bits = BITS as f64 * (2.0 * fill(6e5) - fill(1e6));
    let naive = math::estimated_len(BITS, common_bits as u64, PROBES);
    Ok(vec![
        Finding::within(NAME, "keys of the union", 1e6, 1100.0, ours.estimated_union_len(&theirs)?),
        Finding::within(
            NAME,
            "keys of the intersection",
            2e5,
            1500.0,
            ours.estimated_intersection_len(&theirs)?,
        ),
        Finding::within(NAME, "keys that the intersection says it holds", 2e5, 1500.0, both.estimated_len()),
        Finding::within(
            NAME,
            "keys of the intersection, naively from its bits",
            naive,
            1500.0,
            math::estimated_len(BITS, ones, PROBES),
        )
        .reported_as(290_800.0),
        Finding::exactly(NAME, "words unlike those of a filter of the union", 0.0, unlike as f64),
        Finding::exactly(
            NAME,
            "keys of both, denied by the intersection",
            0.0,
            denied(&both, seed, 400_000..600_000) as f64,
        ),
    ])
}

pub(super) fn blm_5(_seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "BLM-5";
    let mut findings = Vec::new();
    for (keys, fpr, bits, probes) in [
        (1_000_000, 0.01, 9_585_059.0, 7.0),
        (10_000_000, 1e-5, 239_626_460.0, 17.0),
        (10_000_000, 0.03, 72_984_409.0, 5.0),
        (1_000_000, 1e-3, 14_377_588.0, 10.0),
        (1_000_000_000, 0.01, 9_585_058_378.0, 7.0),
    ] {
        let size = Spec::sized(keys, fpr).bloom()?;
        findings.push(Finding::exactly(NAME, format!("bits, {keys} keys at {fpr}"), bits, size.bits as f64));
        findings.push(Finding::exactly(
            NAME,
            format!("probes, {keys} keys at {fpr}"),
            probes,
            size.probes.into(),
        ));
    }
    let guava = (math::bloom_bits_guava(1_000_000, 0.01), math::bloom_probes(0.01, ProbesRule::Nearest));
    findings.push(Finding::exactly(NAME, "bits, by Guava's rule", BITS as f64, guava.0 as f64));
    findings.push(Finding::exactly(NAME, "probes, by Guava's rule", PROBES.into(), guava.1.into()));
    Ok(findings)
}
