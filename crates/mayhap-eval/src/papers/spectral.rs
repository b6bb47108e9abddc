//! Spectral filters: how often a key came.

use mayhap::{CountingRule, Error, Spec, Spectral, math};

use CountingRule::{MinimalIncrease, MinimumSelection, RecurringMinimum};

use super::{key, keys};
use crate::{Finding, Proportion, SplitMix64, Zipf};

const PROBES: u32 = 5;
const RECORDS: usize = 100_000;

/// Streams of records, and what the rules make of them.
///
/// The expected values are those of a simulation without any filter of ours, at positions drawn at random: 1500
/// streams of 1000 keys (1000 at the load of 1.0), or 300 of 10,000. The reported ones are of 10 to 40 streams. Here
/// there are as many as it takes for the tolerances to be 4 standard deviations, which the simulation has told too.
struct Setting {
    name: &'static str,
    distinct: u64,
    exponent: f64,
    /// Distinct keys times probes, over counters.
    gamma: f64,
    runs: u64,
    rules: [Rule; 3],
}

/// What one rule makes of the streams.
#[derive(Clone, Copy)]
struct Rule {
    rule: CountingRule,
    /// The share of keys whose estimate is wrong.
    wrong: Simulated,
    /// The root of the mean square error of the estimates of a stream, as a mean over the streams.
    error: Simulated,
    /// Whether the error differs too much from one stream to the next to be judged by so few: then it may be up to three
    /// times the expected one.
    error_varies: bool,
}

#[derive(Clone, Copy)]
struct Simulated {
    expected: f64,
    reported: f64,
}

const fn rule(rule: CountingRule, wrong: (f64, f64), error: (f64, f64)) -> Rule {
    const fn simulated((expected, reported): (f64, f64)) -> Simulated {
        Simulated { expected, reported }
    }
    Rule { rule, wrong: simulated(wrong), error: simulated(error), error_varies: false }
}

const fn varied(rule: Rule) -> Rule {
    Rule { error_varies: true, ..rule }
}

/// Counts by minimum selection are wrong as often as a Bloom filter admits an absent key.
fn false_positives(gamma: f64) -> f64 {
    math::fpr_from_fill(1.0 - (-gamma).exp(), PROBES)
}

/// So many counters of variable width; recurring minimum has a second filter and a marker beside them.
fn empty(cells: u64, rule: CountingRule) -> Result<Spectral, Error> {
    let bits = match rule {
        RecurringMinimum => 4 * cells + 4 * cells.div_ceil(2) + cells,
        _ => 4 * cells,
    };
    let spec = Spec::new().with_bits(bits).with_probes(PROBES).with_counting_rule(rule);
    Ok(Spectral::from_spec(&spec)?)
}

/// What one rule made of the streams so far.
#[derive(Clone, Copy, Default)]
struct Tally {
    keys: u64,
    wrong: u64,
    low: u64,
    /// Root mean square errors, one of each stream, added up.
    errors: f64,
}

impl Tally {
    fn add(&mut self, counts: &[u64], truth: &[u64]) {
        let mut squares = 0.0;
        for (&count, &truth) in counts.iter().zip(truth) {
            self.wrong += u64::from(count != truth);
            self.low += u64::from(count < truth);
            squares += (count as f64 - truth as f64).powi(2);
        }
        self.keys += truth.len() as u64;
        self.errors += (squares / truth.len() as f64).sqrt();
    }
}

impl Setting {
    fn cells(&self) -> u64 {
        (self.distinct as f64 * f64::from(PROBES) / self.gamma).round() as u64
    }

    fn findings(&self, seed: u64) -> Result<Vec<Finding>, Error> {
        let mut tallies = [Tally::default(); 3];
        for run in 0..self.runs {
            let seed = SplitMix64::at(seed, run);
            let records: Vec<u64> = Zipf::new(seed, self.distinct, self.exponent).take(RECORDS).collect();
            let mut truth = vec![0; self.distinct as usize];
            records.iter().for_each(|&record| truth[record as usize] += 1);
            let stream: Vec<u64> = records.iter().map(|&record| key(seed, record)).collect();
            for (rule, tally) in self.rules.iter().zip(&mut tallies) {
                let mut filter = empty(self.cells(), rule.rule)?;
                filter.insert_all(&stream);
                let mut counts = Vec::new();
                filter.count_each(&keys(seed, 0..self.distinct), &mut counts);
                tally.add(&counts, &truth);
            }
        }
        Ok(self.rules.iter().zip(tallies).flat_map(|(rule, tally)| self.compare(rule, tally)).collect())
    }

    fn compare(&self, rule: &Rule, tally: Tally) -> Vec<Finding> {
        let name = rule.rule.name();
        let about = |what: &str, value: Simulated, tolerance: f64, measured: f64| {
            let (what, spread) = (format!("{what}, {name}"), tolerance * value.expected);
            Finding::within(self.name, what, value.expected, spread, measured).reported_as(value.reported)
        };
        let share = |keys: u64| keys as f64 / tally.keys as f64;
        let tolerance = match rule.rule {
            MinimumSelection => 0.08,
            _ => 0.15,
        };
        let wrong = about("wrong counts", rule.wrong, tolerance, share(tally.wrong));
        let error = tally.errors / self.runs as f64;
        let error = if rule.error_varies {
            let (what, value) = (format!("root mean square error, {name}"), rule.error);
            Finding::between(self.name, what, value.expected, 0.0..=3.0 * value.expected, error)
                .reported_as(value.reported)
        } else {
            about("root mean square error", rule.error, 0.15, error)
        };
        let most_low = match rule.rule {
            // Keys that are marked by chance: at most this share of the keys, and 4 deviations of the count. They become more
            // fast with the load.
            RecurringMinimum => {
                let counted = Proportion { hits: tally.low, trials: tally.keys };
                let rate = if self.gamma <= 0.7 { 7e-5 } else { 2e-3 };
                counted.agreeing_rates(rate, 0.0, 4.0).map(|(_, most)| most)
            }
            _ => Some(0.0),
        };
        let low = most_low.map(|most| {
            Finding::between(self.name, format!("counts too low, {name}"), 0.0, 0.0..=most, share(tally.low))
        });
        [Some(wrong), Some(error), low].into_iter().flatten().collect()
    }
}

pub(super) fn spc_1(seed: u64) -> Result<Vec<Finding>, Error> {
    let rules = [
        rule(MinimumSelection, (false_positives(0.7), 0.0315), (10.97, 11.0)),
        rule(MinimalIncrease, (0.01802, 0.0179), (1.399, 1.6)),
        varied(rule(RecurringMinimum, (0.01578, 0.0159), (0.4, 0.4))),
    ];
    Setting { name: "SPC-1", distinct: 1000, exponent: 0.5, gamma: 0.7, runs: 80, rules }.findings(seed)
}

pub(super) fn spc_2(seed: u64) -> Result<Vec<Finding>, Error> {
    let rules = [
        rule(MinimumSelection, (false_positives(0.7), 0.0319), (3.625, 3.6)),
        rule(MinimalIncrease, (0.01467, 0.0141), (0.8614, 0.9)),
        varied(rule(RecurringMinimum, (0.01407, 0.0136), (0.3, 0.3))),
    ];
    Setting { name: "SPC-2", distinct: 1000, exponent: 1.0, gamma: 0.7, runs: 150, rules }.findings(seed)
}

pub(super) fn spc_3(seed: u64) -> Result<Vec<Finding>, Error> {
    let rules = [
        rule(MinimumSelection, (false_positives(1.0), 0.1009), (20.98, 21.0)),
        rule(MinimalIncrease, (0.06089, 0.0606), (2.957, 3.1)),
        rule(RecurringMinimum, (0.05530, 0.0547), (3.718, 3.9)),
    ];
    Setting { name: "SPC-3", distinct: 1000, exponent: 0.5, gamma: 1.0, runs: 50, rules }.findings(seed)
}

pub(super) fn spc_4(seed: u64) -> Result<Vec<Finding>, Error> {
    let rules = [
        rule(MinimumSelection, (false_positives(0.7), 0.0320), (0.9706, 0.97)),
        rule(MinimalIncrease, (0.01326, 0.0127), (0.2906, 0.27)),
        rule(RecurringMinimum, (0.01574, 0.0152), (0.3130, 0.30)),
    ];
    Setting { name: "SPC-4", distinct: 10_000, exponent: 0.5, gamma: 0.7, runs: 10, rules }.findings(seed)
}

pub(super) fn spc_5(seed: u64) -> Result<Vec<Finding>, Error> {
    let mut filter = empty(7143, MinimumSelection)?;
    let stream: Vec<u64> = Zipf::new(seed, 1000, 1.0).take(RECORDS).map(|record| key(seed, record)).collect();
    filter.insert_all(&stream);
    for &key in &stream {
        filter.remove(key)?;
    }
    let left = (0..filter.cells()).filter(|&place| filter.counter(place) != Some(0)).count();
    Ok(vec![Finding::exactly("SPC-5", "counters that are not 0", 0.0, left as f64)])
}
