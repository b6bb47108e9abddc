//! Opponents who know the hash and choose their keys.

use mayhap::{Bloom, Error, Hashing, Secret, Spec, math, positions};

use super::{RHO, absent, admitted, insert, key};
use crate::{ABSENT, Finding, Proportion, Random};

/// A secret as an operating system would give it, but made from the seed.
fn secret(random: &mut Random) -> Secret {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&random.next_u64().to_le_bytes());
    bytes[8..].copy_from_slice(&random.next_u64().to_le_bytes());
    Secret::new(bytes)
}

pub(super) fn adv_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "ADV-1";
    const MEMBERS: u64 = 1000;
    const FORGED: usize = 100;
    let spec = Spec::sized(MEMBERS, 1e-3);
    let filled = |spec: Spec| -> Result<Bloom, Error> {
        let mut bloom = Bloom::from_spec(&spec)?;
        insert(&mut bloom, seed, 0..MEMBERS)?;
        Ok(bloom)
    };
    // The opponent fills a filter at home and asks nobody.
    let copy = filled(spec)?;
    let admitted_at_home = (0..10_000_000).filter(|&index| copy.contains(key(seed, ABSENT + index)));
    let forged: Vec<u64> = admitted_at_home.take(FORGED).collect();
    let hashed = forged.last().map_or(f64::INFINITY, |&last| last as f64 + 1.0);
    let succeed = |bloom: &Bloom| {
        forged.iter().filter(|&&index| bloom.contains(key(seed, ABSENT + index))).count() as u64
    };

    let mut random = Random::new(seed);
    let mut under_secrets = Proportion { hits: 0, trials: 0 };
    for _ in 0..300 {
        let keyed = filled(spec.with_hashing(Hashing::Keyed(secret(&mut random))))?;
        under_secrets.hits += succeed(&keyed);
        under_secrets.trials += forged.len() as u64;
    }
    let fpr = math::bloom_fpr(copy.bits(), MEMBERS as f64, copy.probes());
    Ok(vec![
        Finding::between(NAME, "hashes for 100 forged keys", FORGED as f64 / fpr, 0.0..=1e6, hashed),
        Finding::exactly(
            NAME,
            "forged keys admitted, public seed",
            FORGED as f64,
            succeed(&filled(spec)?) as f64,
        ),
        Finding::rate(NAME, "forged keys admitted, under a secret", fpr, RHO, under_secrets),
    ])
}

pub(super) fn adv_2(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "ADV-2";
    const MEMBERS: u64 = 10_000;
    const BITS: u64 = 95_851;
    const PROBES: u32 = 7;
    let spec = Spec::new().with_capacity(MEMBERS).with_bits(BITS).with_probes(PROBES);
    let (chosen, tried) = all_fresh(MEMBERS as usize, BITS, PROBES, seed);
    let holding = |spec: Spec, keys: &[u64]| -> Result<Bloom, Error> {
        let mut bloom = Bloom::from_spec(&spec)?;
        bloom.insert_all(keys);
        Ok(bloom)
    };
    let keyed = spec.with_hashing(Hashing::Keyed(secret(&mut Random::new(seed))));
    let random_keys = super::keys(seed, absent(2 * MEMBERS)).split_off(MEMBERS as usize);
    let asked = |bloom: &Bloom| admitted(bloom, seed, ABSENT + 2 * MEMBERS..ABSENT + 2 * MEMBERS + 400_000);

    let polluted = holding(spec, &chosen)?;
    let fill = (MEMBERS * u64::from(PROBES)) as f64 / BITS as f64;
    let mut findings = vec![
        // The mean of 1 / (1 - fill)^7 while the fill goes from 0 to 0.73.
        Finding::between(
            NAME,
            "keys tried for each chosen one",
            590.0,
            500.0..=700.0,
            tried / MEMBERS as f64,
        ),
        Finding::within(NAME, "share of bits set, chosen keys", fill, 0.001, polluted.fill()),
        Finding::rate(
            NAME,
            "false positives, chosen keys",
            math::fpr_from_fill(fill, PROBES),
            RHO,
            asked(&polluted),
        ),
    ];
    for (whose, bloom) in [
        ("random keys", holding(spec, &random_keys)?),
        ("chosen keys under a secret", holding(keyed, &chosen)?),
    ] {
        let members = MEMBERS as f64;
        let fill = math::expected_fill(BITS, members, PROBES);
        let deviations = 4.0 * math::fill_deviation(BITS, members, PROBES);
        findings.push(Finding::within(
            NAME,
            format!("share of bits set, {whose}"),
            fill,
            deviations,
            bloom.fill(),
        ));
        let (fpr, rho) = (math::bloom_fpr(BITS, members, PROBES), math::fpr_deviation(BITS, members, PROBES));
        findings.push(Finding::rate(NAME, format!("false positives, {whose}"), fpr, rho, asked(&bloom)));
    }
    Ok(findings)
}

/// Keys of which each sets as many fresh bits as it has probes; and how many were tried.
fn all_fresh(count: usize, bits: u64, probes: u32, seed: u64) -> (Vec<u64>, f64) {
    let hashing = Hashing::default();
    let mut set = vec![false; bits as usize];
    let mut fresh = Vec::with_capacity(probes as usize);
    let mut tried = 0;
    let chosen = (0..)
        .map(|index| {
            tried = index + 1;
            key(seed, index)
        })
        .filter(|&key| {
            fresh.clear();
            for bit in positions(hashing.digest_of(key), probes, bits) {
                if set[bit as usize] || fresh.contains(&bit) {
                    return false;
                }
                fresh.push(bit);
            }
            fresh.iter().for_each(|&bit| set[bit as usize] = true);
            true
        })
        .take(count)
        .collect();
    (chosen, tried as f64)
}
