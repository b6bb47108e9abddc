//! What a count of hits allows us to say about a rate.
//!
//! No function here returns NaN or divides by zero: where there is no answer, there is `None`.

use core::f64::consts::{PI, SQRT_2};

use libm::{erfc, exp, fabs, lgamma, log, log1p, sqrt};

/// Hits among independent trials, such as false positives among absent probes.
///
/// More hits than trials are a mistake of the caller; they have no rate and no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proportion {
    /// How many trials hit.
    pub hits: u64,
    /// How many trials there were.
    pub trials: u64,
}

impl Proportion {
    /// The observed rate, or `None` without trials.
    pub fn rate(self) -> Option<f64> {
        (self.trials > 0 && self.hits <= self.trials).then(|| self.hits as f64 / self.trials as f64)
    }

    /// The interval of Wilson (1927) for the true rate: short, and right on average.
    ///
    /// `None` without trials, or if `confidence` is not strictly between 0 and 1.
    pub fn wilson(self, confidence: f64) -> Option<(f64, f64)> {
        let rate = self.rate()?;
        let z = -normal_quantile(tail_beyond(confidence)?)?;
        let trials = self.trials as f64;
        let spread = z * sqrt(rate * (1.0 - rate) / trials + z * z / (4.0 * trials * trials));
        let centre = rate + z * z / (2.0 * trials);
        let scale = 1.0 + z * z / trials;
        // At the ends the formula gives 0 and 1, but for rounding.
        let low = if self.hits == 0 { 0.0 } else { (centre - spread) / scale };
        let high = if self.hits == self.trials { 1.0 } else { (centre + spread) / scale };
        Some((low, high))
    }

    /// The exact interval of Clopper and Pearson (1934) for the true rate: never covers less than promised.
    ///
    /// `None` without trials, or if `confidence` is not strictly between 0 and 1.
    ///
    /// ```
    /// use mayhap_eval::Proportion;
    ///
    /// // No hit in 100 trials leaves room for a rate of 3.6 %.
    /// let (low, high) = Proportion { hits: 0, trials: 100 }.clopper_pearson(0.95).unwrap();
    /// assert_eq!(low, 0.0);
    /// assert!((high - 0.0362).abs() < 0.0001);
    /// ```
    pub fn clopper_pearson(self, confidence: f64) -> Option<(f64, f64)> {
        self.rate()?;
        let tail = tail_beyond(confidence)?;
        let low = match self.hits {
            0 => 0.0,
            _ => bisect(0.0, 1.0, |rate| self.chance_of_as_many(rate) < tail),
        };
        let high = match self.trials - self.hits {
            0 => 1.0,
            _ => bisect(0.0, 1.0, |rate| self.chance_of_as_few(rate) > tail),
        };
        Some((low, high))
    }

    /// Whether this count is compatible with the rate `expected`, at `sigmas` standard deviations.
    ///
    /// `rho` is the relative standard deviation of the true rate from one instance (one seed) to the next; 0
    /// if every instance has exactly the rate `expected`. The rule is
    ///
    /// ```text
    /// |rate - expected| <= sigmas * sqrt(expected * (1 - expected) / trials + (rho * expected)^2)
    /// ```
    ///
    /// A correct filter fails it with the chance [`normal_two_sided_tail`]`(sigmas)`: 6.3e-5 at 4 and 5.7e-7
    /// at 5. That holds only if many hits *and* many misses are expected, because counts are skewed: 5 sigmas
    /// give a false alarm 35 times as often as stated when 5 hits are expected, 4 times at 50, and 1.1 times
    /// at 1000 (computed for a Poisson count). Below 1000 the count is therefore judged by the exact binomial
    /// tails, averaged over a normal true rate if `rho` is not 0: it passes if neither tail is rarer than
    /// half the stated chance.
    ///
    /// Without trials nothing was shown: `false`. Also `false` if `expected` is not in `0.0..=1.0`, or `rho`
    /// or `sigmas` is negative or not a number, or `rho` is infinite.
    ///
    /// ```
    /// use mayhap_eval::Proportion;
    ///
    /// assert!(Proportion { hits: 10, trials: 500 }.agrees_with(0.0101, 0.02, 4.0));
    /// assert!(!Proportion { hits: 20_000, trials: 1_000_000 }.agrees_with(0.0101, 0.02, 4.0));
    /// ```
    pub fn agrees_with(self, expected: f64, rho: f64, sigmas: f64) -> bool {
        let Some(rate) = self.rate() else { return false };
        if !((0.0..=1.0).contains(&expected) && (0.0..f64::INFINITY).contains(&rho) && sigmas >= 0.0) {
            return false;
        }
        let trials = self.trials as f64;
        if expected.min(1.0 - expected) * trials >= 1_000.0 {
            let deviation = sqrt(expected * (1.0 - expected) / trials + (rho * expected) * (rho * expected));
            return fabs(rate - expected) <= sigmas * deviation;
        }
        let tail = normal_two_sided_tail(sigmas) / 2.0;
        let as_many = over_instances(expected, rho, |rate| self.chance_of_as_many(rate));
        let as_few = over_instances(expected, rho, |rate| self.chance_of_as_few(rate));
        as_many >= tail && as_few >= tail
    }

    /// The least and the greatest rate that as many trials may show and still [agree](Self::agrees_with) with the rate
    /// `expected`.
    ///
    /// `None` without trials, or where nothing agrees.
    ///
    /// ```
    /// use mayhap_eval::Proportion;
    ///
    /// let (low, high) = Proportion { hits: 10, trials: 500 }.agreeing_rates(0.0101, 0.0, 4.0).unwrap();
    /// assert_eq!((low, high), (0.0, 16.0 / 500.0));
    /// ```
    pub fn agreeing_rates(self, expected: f64, rho: f64, sigmas: f64) -> Option<(f64, f64)> {
        let agrees = |hits: u64| Self { hits, ..self }.agrees_with(expected, rho, sigmas);
        let middle = (expected * self.trials as f64).round() as u64;
        if self.trials == 0 || !agrees(middle) {
            return None;
        }
        // Agreement begins and ends once.
        let (mut low, mut agreeing) = (0, middle);
        while low < agreeing {
            let at = low + (agreeing - low) / 2;
            if agrees(at) {
                agreeing = at;
            } else {
                low = at + 1;
            }
        }
        let (mut high, mut beyond) = (middle, self.trials + 1);
        while beyond - high > 1 {
            let at = high + (beyond - high) / 2;
            if agrees(at) {
                high = at;
            } else {
                beyond = at;
            }
        }
        Some((low as f64 / self.trials as f64, high as f64 / self.trials as f64))
    }

    /// The chance of this many hits or more, if the true rate is `rate`.
    fn chance_of_as_many(self, rate: f64) -> f64 {
        match self.hits {
            0 => 1.0,
            hits => incomplete_beta(hits as f64, (self.trials - hits) as f64 + 1.0, rate, 1.0 - rate),
        }
    }

    /// The chance of this many hits or fewer, if the true rate is `rate`.
    fn chance_of_as_few(self, rate: f64) -> f64 {
        match self.trials - self.hits {
            0 => 1.0,
            misses => incomplete_beta(misses as f64, self.hits as f64 + 1.0, 1.0 - rate, rate),
        }
    }
}

/// The chance left on each side of a two-sided interval.
fn tail_beyond(confidence: f64) -> Option<f64> {
    (confidence > 0.0 && confidence < 1.0).then(|| (1.0 - confidence) / 2.0)
}

/// The mean of `chance(rate)` over instances, whose rates are normal with mean `expected` and relative
/// deviation `rho`.
fn over_instances(expected: f64, rho: f64, chance: impl Fn(f64) -> f64) -> f64 {
    if rho == 0.0 {
        return chance(expected);
    }
    // The trapezoidal rule is all but exact for a bell curve. Eight deviations leave out 1e-15; sixteen steps
    // in each resolve the tails for every rho up to 1, far more than any filter has.
    let (mut sum, mut weights) = (0.0, 0.0);
    for step in -128..=128 {
        let deviations = f64::from(step) / 16.0;
        let weight = exp(-deviations * deviations / 2.0);
        sum += weight * chance((expected * (1.0 + rho * deviations)).clamp(0.0, 1.0));
        weights += weight;
    }
    sum / weights
}

/// The value that a standard normal variable stays below with the chance `chance`.
///
/// `None` if `chance` is not strictly between 0 and 1.
pub fn normal_quantile(chance: f64) -> Option<f64> {
    if !(chance > 0.0 && chance < 1.0) {
        return None;
    }
    // The lower half only: there `erfc` keeps its relative precision down to the smallest chance.
    if chance > 0.5 {
        return normal_quantile(1.0 - chance).map(|z| -z);
    }
    // Beyond 39 deviations the chance is less than the smallest f64.
    Some(bisect(-39.0, 0.0, |z| erfc(-z / SQRT_2) / 2.0 < chance))
}

/// The chance that a normal variable is more than `sigmas` standard deviations away from its mean.
///
/// ```
/// assert_eq!(format!("{:.1e}", mayhap_eval::normal_two_sided_tail(5.0)), "5.7e-7");
/// ```
pub fn normal_two_sided_tail(sigmas: f64) -> f64 {
    erfc(fabs(sigmas) / SQRT_2)
}

/// The middle value, or the mean of the two middle ones; `None` if there are none. Reorders `values`.
pub fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    if values.is_empty() {
        return None;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| even).unwrap_or(upper);
    Some(lower + (upper - lower) / 2.0)
}

/// The place between `low` and `high` where `before` turns from true to false.
fn bisect(mut low: f64, mut high: f64, before: impl Fn(f64) -> bool) -> f64 {
    // Each round halves the interval. It ends when two neighbouring numbers are left; near 0 these are so
    // close that the number of rounds ends it, with an error below 2^-200.
    for _ in 0..200 {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if before(middle) { low = middle } else { high = middle }
    }
    low + (high - low) / 2.0
}

/// The regularised incomplete beta function I_x(a, b), for `a` and `b` of at least 1 and x + y = 1.
///
/// It is the chance of `a` or more hits in `a + b - 1` trials of rate `x`. The caller gives both `x` and `y`,
/// because the smaller of them would lose digits if computed from the other.
fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    // The fraction converges fast below the mean; beyond it the other tail is taken.
    if x < (a + 1.0) / (a + b + 2.0) {
        exp(log_beta_weight(a, b, x, y)) * beta_fraction(a, b, x) / a
    } else {
        1.0 - exp(log_beta_weight(b, a, y, x)) * beta_fraction(b, a, y) / b
    }
}

/// ln(x^a y^b / B(a, b)), for x + y = 1.
///
/// The plain sum of logarithms and `lgamma` loses all digits for many trials: each part grows with `a + b`
/// while the result stays small. With Stirling's formula taken out of `lgamma`, the large parts cancel on
/// paper; what is left has the form of Loader, *Fast and Accurate Computation of Binomial Probabilities*,
/// 2000.
fn log_beta_weight(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let sum = a + b;
    // The two quotients times a and b add up to 0, so subtracting them changes nothing but the rounding.
    let excess = |share: f64, part: f64| {
        let relative = (share * sum - part) / part;
        part * (log1p(relative) - relative)
    };
    excess(x, a) + excess(y, b) + log(a / sum * b / (2.0 * PI)) / 2.0 + stirling_error(sum)
        - stirling_error(a)
        - stirling_error(b)
}

/// What Stirling's formula leaves of ln Γ(z).
fn stirling_error(z: f64) -> f64 {
    if z < 16.0 {
        return lgamma(z) - ((z - 0.5) * log(z) - z + log(2.0 * PI) / 2.0);
    }
    // The first omitted term is below 2e-14 here.
    let square = z * z;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / 1680.0 / square) / square) / square) / z
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), evaluated by the method of Lentz.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    // Stands in for a denominator of zero, as the method prescribes.
    let guard = |value: f64| if fabs(value) < 1e-300 { 1e-300 } else { value };
    let mut numerator = 1.0;
    let mut denominator = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = denominator;
    // A few rounds do for rare hits, a few thousand for a rate of 1/2 in 10^12 trials. The bound only keeps
    // rounding errors from going round for ever.
    for round in 1..1_000_000 {
        let m = f64::from(round);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            denominator = 1.0 / guard(1.0 + coefficient * denominator);
            numerator = guard(1.0 + coefficient / numerator);
            change = numerator * denominator;
            fraction *= change;
        }
        if fabs(change - 1.0) < 1e-15 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn assert_near((low, high): (f64, f64), expected: (f64, f64), tolerance: f64) {
        let near = (low - expected.0).abs() <= tolerance && (high - expected.1).abs() <= tolerance;
        assert!(near, "({low}, {high}), expected {expected:?}");
    }

    const NOTHING: Proportion = Proportion { hits: 0, trials: 0 };
    const IMPOSSIBLE: Proportion = Proportion { hits: 2, trials: 1 };

    #[test]
    fn without_trials_there_is_no_answer() {
        for none in [NOTHING, IMPOSSIBLE] {
            assert_eq!(none.rate(), None);
            assert_eq!(none.wilson(0.95), None);
            assert_eq!(none.clopper_pearson(0.95), None);
            assert!(!none.agrees_with(0.01, 0.0, 5.0));
        }
        assert_eq!(Proportion { hits: 1, trials: 4 }.rate(), Some(0.25));
    }

    #[test]
    fn confidence_must_be_a_chance() {
        let half = Proportion { hits: 5, trials: 10 };
        for confidence in [-0.5, 0.0, 1.0, 95.0, f64::NAN] {
            assert_eq!(half.wilson(confidence), None);
            assert_eq!(half.clopper_pearson(confidence), None);
        }
    }

    /// Newcombe, *Two-sided confidence intervals for the single proportion*, Statistics in Medicine 1998,
    /// table I.
    #[test]
    fn intervals_are_the_published_ones() {
        for (hits, trials, wilson, exact) in [
            (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
            (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
            (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
            (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
        ] {
            let measured = Proportion { hits, trials };
            assert_near(measured.wilson(0.95).unwrap(), wilson, 0.000_05);
            assert_near(measured.clopper_pearson(0.95).unwrap(), exact, 0.000_05);
        }
    }

    /// Expected values from sums of binomial terms with 60 decimal digits.
    #[test]
    fn exact_intervals_are_exact() {
        for (hits, trials, confidence, expected) in [
            (0, 100, 0.95, (0.0, 0.036_216_692_645_176_42)),
            (5, 10, 0.95, (0.187_086_028_447_398_5, 0.812_913_971_552_601_5)),
            (10, 10, 0.95, (0.691_502_892_181_239_2, 1.0)),
            (10, 500, 0.95, (0.009_631_429_586_433_348, 0.036_472_408_292_209_74)),
            (10, 500, 0.99, (0.007_473_458_879_771_266, 0.042_309_277_350_621_07)),
            (81, 263, 0.95, (0.252_736_745_585_271_1, 0.367_621_922_601_351_3)),
        ] {
            assert_near(Proportion { hits, trials }.clopper_pearson(confidence).unwrap(), expected, 1e-13);
        }
    }

    #[test]
    fn ends_have_closed_forms() {
        // Without a hit the upper end solves (1 - rate)^trials = tail.
        for trials in [1, 7, 1_000, 1_000_000_000, 1_000_000_000_000] {
            let high = -libm::expm1(log(0.025) / trials as f64);
            let none = Proportion { hits: 0, trials }.clopper_pearson(0.95).unwrap();
            assert_near(none, (0.0, high), high * 1e-16 * trials as f64 + 1e-13);
            let all = Proportion { hits: trials, trials }.clopper_pearson(0.95).unwrap();
            assert_near(all, (1.0 - high, 1.0), 1e-13);
        }
    }

    #[test]
    fn many_trials_make_the_intervals_meet() {
        for (hits, trials) in [(10_000_000, 1_000_000_000), (5_000_000_000, 10_000_000_000)] {
            let measured = Proportion { hits, trials };
            let wilson = measured.wilson(0.99).unwrap();
            assert_near(measured.clopper_pearson(0.99).unwrap(), wilson, (wilson.1 - wilson.0) * 0.001);
        }
    }

    #[test]
    fn ten_of_five_hundred_do_not_contradict_one_percent() {
        let measured = Proportion { hits: 10, trials: 500 };
        assert_eq!(measured.rate(), Some(0.02));
        let (low, high) = measured.clopper_pearson(0.95).unwrap();
        assert!(low < 0.0101 && 0.0101 < high);
        assert!(measured.agrees_with(0.0101, 0.0, 4.0));
    }

    #[test]
    fn many_hits_are_judged_by_the_stated_rule() {
        // sqrt(0.01 * 0.99 / 10^8 + 0.0002^2) = 0.00020025; four of them are 0.000801, so 80 098 hits.
        let of = |hits| Proportion { hits, trials: 100_000_000 }.agrees_with(0.01, 0.02, 4.0);
        assert!(of(1_080_090) && of(919_910));
        assert!(!of(1_080_110) && !of(919_890));
    }

    /// P(20 or more) = 3.5e-7 and P(21 or more) = 8.1e-8, from exact binomial sums; the limit is 2.9e-7. The
    /// normal rule would refuse 17, which is 70 times as likely.
    #[test]
    fn few_hits_are_judged_exactly() {
        let of = |hits| Proportion { hits, trials: 1_000_000 }.agrees_with(5e-6, 0.0, 5.0);
        let passing: Vec<u64> = (0..100).filter(|&hits| of(hits)).collect();
        assert_eq!(passing, (0..=20).collect::<Vec<_>>());
        // The same of misses, when the rate is near 1.
        let mirrored = |misses: u64| {
            Proportion { hits: 1_000_000 - misses, trials: 1_000_000 }.agrees_with(1.0 - 5e-6, 0.0, 5.0)
        };
        assert!(mirrored(0) && mirrored(20) && !mirrored(21));
    }

    #[test]
    fn too_few_hits_fail_as_well() {
        // e^-20 = 2e-9 is rarer than 2.9e-7, e^-10 = 4.5e-5 is not.
        assert!(!Proportion { hits: 0, trials: 1_000_000 }.agrees_with(20e-6, 0.0, 5.0));
        assert!(Proportion { hits: 0, trials: 1_000_000 }.agrees_with(10e-6, 0.0, 5.0));
    }

    #[test]
    fn the_two_rules_meet() {
        // Just above the border the rule decides, just below it the exact tails, with nearly the same bounds.
        for rho in [0.0, 0.02, 0.1] {
            let bounds = |expected_hits: f64| {
                let trials = 1_000_000;
                let pass = |hits: &u64| {
                    Proportion { hits: *hits, trials }.agrees_with(expected_hits / trials as f64, rho, 4.0)
                };
                let passing: Vec<u64> = (1..3_000).filter(pass).collect();
                (passing[0] as f64 / expected_hits, passing[passing.len() - 1] as f64 / expected_hits)
            };
            assert_near(bounds(999.9), bounds(1_000.1), 0.008);
        }
    }

    #[test]
    fn spread_between_instances_widens_the_exact_rule() {
        let of = |hits, rho| Proportion { hits, trials: 10_000 }.agrees_with(0.01, rho, 5.0);
        assert!(!of(160, 0.0) && of(160, 0.2));
        assert!(!of(50, 0.0) && of(50, 0.2));
        assert!(!of(400, 0.2));
    }

    #[test]
    fn false_alarms_are_as_rare_as_stated() {
        // At 2 sigmas 4.6 % of correct experiments fail at most (counts are whole numbers, so it is less).
        let mut random = Random::new(11);
        let alarms = (0..4_000)
            .filter(|_| {
                let hits = (0..2_000).filter(|_| random.unit_f64() < 0.02).count() as u64;
                !Proportion { hits, trials: 2_000 }.agrees_with(0.02, 0.0, 2.0)
            })
            .count() as u64;
        let (low, high) = Proportion { hits: alarms, trials: 4_000 }.clopper_pearson(0.999_999).unwrap();
        assert!(low < 0.0455 && high > 0.02, "{alarms} alarms");
    }

    #[test]
    fn senseless_expectations_agree_with_nothing() {
        let measured = Proportion { hits: 1, trials: 100 };
        for (expected, rho, sigmas) in [
            (-0.1, 0.0, 5.0),
            (1.1, 0.0, 5.0),
            (f64::NAN, 0.0, 5.0),
            (0.01, -1.0, 5.0),
            (0.01, f64::INFINITY, 5.0),
            (0.01, f64::NAN, 5.0),
            (0.01, 0.0, -1.0),
            (0.01, 0.0, f64::NAN),
        ] {
            assert!(!measured.agrees_with(expected, rho, sigmas), "{expected} {rho} {sigmas}");
        }
        assert!(!measured.agrees_with(0.0, 0.0, 5.0));
        assert!(Proportion { hits: 0, trials: 100 }.agrees_with(0.0, 0.02, 5.0));
        assert!(Proportion { hits: 100, trials: 100 }.agrees_with(1.0, 0.0, 5.0));
    }

    #[test]
    fn quantiles_are_the_tabulated_ones() {
        for (chance, expected) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.995, 2.575_829_303_548_901),
            (0.025, -1.959_963_984_540_054),
            (1e-10, -6.361_340_902_404_056),
        ] {
            let z = normal_quantile(chance).unwrap();
            assert!((z - expected).abs() < 1e-13, "{chance}: {z}");
        }
        for chance in [0.0, 1.0, -1.0, 2.0, f64::NAN] {
            assert_eq!(normal_quantile(chance), None);
        }
    }

    #[test]
    fn tails_are_the_tabulated_ones() {
        for (sigmas, expected) in [(0.0, 1.0), (1.0, 0.317_310_5), (4.0, 6.334_248e-5), (5.0, 5.733_031e-7)] {
            let tail = normal_two_sided_tail(sigmas);
            assert!((tail / expected - 1.0).abs() < 1e-6, "{sigmas}: {tail}");
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0]), Some(3.0));
        assert_eq!(median(&mut [9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&mut [9.0, 1.0, 5.0, 4.0]), Some(4.5));
    }
}
