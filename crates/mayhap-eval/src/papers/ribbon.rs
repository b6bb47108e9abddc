//! Bumped ribbon filters: hardly more bits than no filter can do without.

use mayhap::{Error, Layout, Ribbon, Spec, math};

use super::{absent, admitted, denied, keys, none_denied};
use crate::Finding;

const KEYS: u64 = 1_000_000;

pub(super) fn rib_3(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "RIB-3";
    let members = keys(seed, 0..KEYS);
    let (mut findings, mut missed) = (Vec::new(), 0);
    // The percentages that the reference library reports. Rates between powers of two take up to 0.09 bits more.
    for (width, layout, fpr, interval, reported) in [
        (64, Layout::Fastest, 2f64.powi(-8), 0.20..=0.40, Some(0.23)),
        (128, Layout::Compact, 2f64.powi(-8), 0.07..=0.15, Some(0.09)),
        (64, Layout::Fastest, 2f64.powi(-3), 0.5..=1.0, None),
        (64, Layout::Fastest, 0.5, 1.5..=1.8, Some(1.6)),
        (64, Layout::Fastest, 0.01, 0.0..=1.0 + 9.0 / 6.64, None),
        (128, Layout::Compact, 0.003, 0.0..=1.0 + 9.0 / 8.38, None),
        (64, Layout::Fastest, 0.7, 0.0..=2.0 + 9.0 / 0.51, None),
    ] {
        let spec = Spec::sized(KEYS, fpr).with_layout(layout);
        let ribbon = Ribbon::build_with(&members, &spec, 1)?;
        let over = |bits: u64| 100.0 * (math::overhead(bits as f64, KEYS as f64, fpr) - 1.0);
        let setting = format!("rate {fpr}, rows of {width}");
        let what = format!("percent of bits above the bound, {setting}");
        let planned = over(spec.ribbon()?.bits());
        let built = Finding::between(NAME, what, planned, interval, over(ribbon.bits()));
        findings.push(Finding { reported, ..built });
        // Without columns no key contradicts another, and fewer are bumped.
        let tolerance = if fpr > 0.5 { 0.02 } else { 0.002 };
        let planned = spec.ribbon()?.bits() as f64 / ribbon.bits() as f64;
        findings.push(Finding::within(
            NAME,
            format!("bits, of the plan, {setting}"),
            1.0,
            tolerance,
            planned,
        ));
        // Layers are rounded to whole blocks, in favour of the rate.
        let what = format!("rate that the filter reports, {setting}");
        let interval = fpr * (1.0 - 1e-3)..=fpr * (1.0 + 1e-6);
        findings.push(Finding::between(NAME, what, fpr, interval, ribbon.fpr()));
        let asked = admitted(&ribbon, seed, absent(1_000_000));
        // One filter's rate is another's.
        findings.push(Finding::rate(NAME, format!("false positives, {setting}"), ribbon.fpr(), 0.002, asked));
        missed += denied(&ribbon, seed, 0..KEYS);
    }
    findings.push(none_denied(NAME, missed));
    Ok(findings)
}
