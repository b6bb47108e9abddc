//! Bumped ribbon filters: hardly more bits than no filter can do without.

use mayhap::{Error, Layout, Ribbon, Spec, math};

use super::{absent, admitted, denied, keys, none_denied};
use crate::Finding;

const KEYS: u64 = 1_000_000;

pub(super) fn rib_3(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "RIB-3";
    let members = keys(seed, 0..KEYS);
    let (mut findings, mut missed) = (Vec::new(), 0);
    // The percentages that the reference library reports.
    for (width, layout, columns, interval, reported) in [
        (64, Layout::Fastest, 8, 0.20..=0.40, 0.23),
        (128, Layout::Compact, 8, 0.07..=0.15, 0.09),
        (64, Layout::Fastest, 1, 1.5..=1.8, 1.6),
    ] {
        let fpr = 2f64.powi(-columns);
        let spec = Spec::sized(KEYS, fpr).with_layout(layout);
        let ribbon = Ribbon::build_with(&members, &spec, 1)?;
        let over = |bits: u64| 100.0 * (math::overhead(bits as f64, KEYS as f64, fpr) - 1.0);
        let setting = format!("{columns}-bit fingerprints, rows of {width}");
        let what = format!("percent of bits above the bound, {setting}");
        let planned = over(spec.ribbon()?.bits());
        findings
            .push(Finding::between(NAME, what, planned, interval, over(ribbon.bits())).reported_as(reported));
        let asked = admitted(&ribbon, seed, absent(1_000_000));
        // One filter's rate is another's.
        findings.push(Finding::rate(NAME, format!("false positives, {setting}"), fpr, 0.0, asked));
        missed += denied(&ribbon, seed, 0..KEYS);
    }
    findings.push(none_denied(NAME, missed));
    Ok(findings)
}
