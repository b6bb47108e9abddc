//! Binary fuse filters: built once, asked ever after.

use mayhap::{Error, Fuse, Layout, Spec, math};

use super::{absent, admitted, denied, keys, none_denied};
use crate::Finding;

const KEYS: u64 = 1_000_000;

pub(super) fn fus_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "FUS-1";
    let (mut findings, mut missed) = (Vec::new(), 0);
    for (keys, three, four) in [
        (1_000, 1_408.0, 1_376.0),
        (10_000, 12_800.0, 12_288.0),
        (100_000, 118_784.0, 112_640.0),
        (1_000_000, 1_130_496.0, 1_077_248.0),
        (10_000_000, 11_272_192.0, 10_764_288.0),
        (100_000_000, 112_590_848.0, 107_544_576.0),
    ] {
        for (ways, expected) in [(3, three), (4, four)] {
            let (log, segments) = math::fuse_segments(keys, ways);
            let slots = (segments + u64::from(ways) - 1) << log;
            findings.push(Finding::exactly(
                NAME,
                format!("slots for {keys} keys, {ways} ways"),
                expected,
                slots as f64,
            ));
        }
    }
    let members = keys(seed, 0..KEYS);
    for (width, layout, asked, bits_per_key) in [
        (8, Layout::Fastest, 4_000_000, Some(9.044)),
        (8, Layout::Compact, 4_000_000, Some(8.618)),
        (11, Layout::Compact, 4_000_000, None),
        (16, Layout::Fastest, 20_000_000, None),
    ] {
        let spec = Spec::new().with_fpr(2f64.powi(-width)).with_layout(layout);
        let fuse = Fuse::build_with(&members, &spec, 1)?;
        let fpr = math::fuse_fpr(fuse.fingerprint_bits(), KEYS);
        let what = format!("false positives, {width} bits, {}", layout.name());
        let planned = 2f64.powi(-width);
        findings.push(Finding::within(
            NAME,
            format!("rate that the filter reports, {width} bits, {}", layout.name()),
            planned,
            1e-6 * planned,
            fuse.fpr(),
        ));
        // One filter's rate is another's.
        findings.push(Finding::rate(NAME, what, fpr, 0.0, admitted(&fuse, seed, absent(asked))));
        missed += denied(&fuse, seed, 0..KEYS);
        if let Some(expected) = bits_per_key {
            let what = format!("bits per key, {}", layout.name());
            // The value is known to three decimals.
            findings.push(Finding::within(NAME, what, expected, 0.001, fuse.bits() as f64 / KEYS as f64));
        }
    }
    findings.push(none_denied(NAME, missed));
    Ok(findings)
}

pub(super) fn sta_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "STA-1";
    const KEYS: u64 = 10_000_000;
    let members = keys(seed, 0..KEYS);
    let build = |threads| Fuse::build_with(&members, &Spec::new().with_fpr(1.0 / 256.0), threads);
    let alone = build(1)?;
    let asked = admitted(&alone, seed, absent(4_000_000));
    let mut findings = vec![
        none_denied(NAME, denied(&alone, seed, 0..KEYS)),
        Finding::exactly(NAME, "keys, as the filter counts them", KEYS as f64, alone.keys() as f64),
        Finding::rate(NAME, "false positives", math::fuse_fpr(8, KEYS), 0.0, asked),
    ];
    let bytes = alone.to_bytes();
    for threads in [2, 8] {
        let others = build(threads)?.to_bytes();
        let unlike =
            bytes.len().abs_diff(others.len()) + bytes.iter().zip(&others).filter(|(a, b)| a != b).count();
        findings.push(Finding::exactly(
            NAME,
            format!("bytes that {threads} threads change"),
            0.0,
            unlike as f64,
        ));
    }
    Ok(findings)
}
