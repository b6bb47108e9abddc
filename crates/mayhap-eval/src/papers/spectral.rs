//! Spectral filters: how often a key came.

use mayhap::{CountingRule, Error, Spec, Spectral, math};

use super::{key, keys};
use crate::{Finding, SplitMix64, Zipf};

const PROBES: u32 = 5;
const RECORDS: usize = 100_000;

/// A stream of records, and what was simulated of the three rules.
struct Setting {
    name: &'static str,
    distinct: u64,
    exponent: f64,
    /// Distinct keys times probes, over counters.
    gamma: f64,
    runs: u64,
    simulated: [Simulated; 3],
}

/// What one rule makes of a stream.
struct Simulated {
    rule: CountingRule,
    /// The share of keys whose estimate is wrong.
    wrong: f64,
    /// The root of the mean square error of the estimates.
    error: f64,
}

/// By minimum selection, minimal increase and recurring minimum.
const fn simulated(wrong: [f64; 3], error: [f64; 3]) -> [Simulated; 3] {
    [
        Simulated { rule: CountingRule::MinimumSelection, wrong: wrong[0], error: error[0] },
        Simulated { rule: CountingRule::MinimalIncrease, wrong: wrong[1], error: error[1] },
        Simulated { rule: CountingRule::RecurringMinimum, wrong: wrong[2], error: error[2] },
    ]
}

/// So many counters of variable width; recurring minimum has a second filter and a marker beside them.
fn empty(cells: u64, rule: CountingRule) -> Result<Spectral, Error> {
    let bits = match rule {
        CountingRule::RecurringMinimum => 4 * cells + 4 * cells.div_ceil(2) + cells,
        CountingRule::MinimumSelection | CountingRule::MinimalIncrease => 4 * cells,
    };
    let spec = Spec::new().with_bits(bits).with_probes(PROBES).with_counting_rule(rule);
    Ok(Spectral::from_spec(&spec)?)
}

impl Setting {
    fn findings(&self, seed: u64) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        for expected in &self.simulated {
            self.compare(expected, seed, &mut findings)?;
        }
        Ok(findings)
    }

    fn compare(&self, expected: &Simulated, seed: u64, findings: &mut Vec<Finding>) -> Result<(), Error> {
        let cells = (self.distinct as f64 * f64::from(PROBES) / self.gamma).round() as u64;
        let (mut wrong, mut low, mut error) = (0u64, 0u64, 0.0);
        for run in 0..self.runs {
            let seed = SplitMix64::at(seed, run);
            let mut truth = vec![0u64; self.distinct as usize];
            let stream = Zipf::new(seed, self.distinct, self.exponent).take(RECORDS);
            let stream: Vec<u64> = stream
                .map(|record| {
                    truth[record as usize] += 1;
                    key(seed, record)
                })
                .collect();
            let mut filter = empty(cells, expected.rule)?;
            filter.insert_all(&stream);
            let mut counts = Vec::new();
            filter.count_all(&keys(seed, 0..self.distinct), &mut counts);
            let mut squares = 0.0;
            for (&count, &truth) in counts.iter().zip(&truth) {
                wrong += u64::from(count != truth);
                low += u64::from(count < truth);
                squares += (count as f64 - truth as f64).powi(2);
            }
            error += (squares / self.distinct as f64).sqrt() / self.runs as f64;
        }
        let share = |keys: u64| keys as f64 / (self.distinct * self.runs) as f64;
        let (name, rule) = (self.name, expected.rule.name());
        let about = |what: &str, value: f64, tolerance: f64, measured: f64| {
            Finding::within(name, format!("{what}, {rule}"), value, tolerance * value, measured)
        };
        let fpr = math::bloom_fpr(cells, self.distinct as f64, PROBES);
        let wrong = match expected.rule {
            CountingRule::MinimumSelection => {
                about("wrong counts", fpr, 0.08, share(wrong)).reported_as(expected.wrong)
            }
            CountingRule::MinimalIncrease | CountingRule::RecurringMinimum => {
                about("wrong counts", expected.wrong, 0.15, share(wrong))
            }
        };
        findings.push(wrong);
        // Keys that are marked by chance are told too low; how many was simulated for a load of 0.7 only.
        let most_low = match expected.rule {
            CountingRule::MinimumSelection | CountingRule::MinimalIncrease => Some(0.0),
            CountingRule::RecurringMinimum => (self.gamma <= 0.7).then_some(7e-5),
        };
        if let Some(most) = most_low {
            let what = format!("counts too low, {rule}");
            findings.push(Finding::between(name, what, 0.0, 0.0..=most, share(low)));
        }
        findings.push(about("root mean square error", expected.error, 0.15, error));
        Ok(())
    }
}

pub(super) fn spc_1(seed: u64) -> Result<Vec<Finding>, Error> {
    let simulated = simulated([0.0315, 0.0179, 0.0159], [11.0, 1.6, 0.4]);
    Setting { name: "SPC-1", distinct: 1000, exponent: 0.5, gamma: 0.7, runs: 40, simulated }.findings(seed)
}

pub(super) fn spc_2(seed: u64) -> Result<Vec<Finding>, Error> {
    let simulated = simulated([0.0319, 0.0141, 0.0136], [3.6, 0.9, 0.3]);
    Setting { name: "SPC-2", distinct: 1000, exponent: 1.0, gamma: 0.7, runs: 40, simulated }.findings(seed)
}

pub(super) fn spc_3(seed: u64) -> Result<Vec<Finding>, Error> {
    let simulated = simulated([0.1009, 0.0606, 0.0547], [21.0, 3.1, 3.9]);
    Setting { name: "SPC-3", distinct: 1000, exponent: 0.5, gamma: 1.0, runs: 40, simulated }.findings(seed)
}

pub(super) fn spc_4(seed: u64) -> Result<Vec<Finding>, Error> {
    let simulated = simulated([0.0320, 0.0127, 0.0152], [0.97, 0.27, 0.30]);
    Setting { name: "SPC-4", distinct: 10_000, exponent: 0.5, gamma: 0.7, runs: 10, simulated }.findings(seed)
}

pub(super) fn spc_5(seed: u64) -> Result<Vec<Finding>, Error> {
    let mut filter = empty(7143, CountingRule::MinimumSelection)?;
    let stream: Vec<u64> = Zipf::new(seed, 1000, 1.0).take(RECORDS).map(|record| key(seed, record)).collect();
    filter.insert_all(&stream);
    for &key in &stream {
        filter.remove(key)?;
    }
    let left = (0..filter.cells()).filter(|&place| filter.counter(place) != Some(0)).count();
    Ok(vec![Finding::exactly("SPC-5", "counters that are not 0", 0.0, left as f64)])
}
