//! What an experiment found: values beside those that theory or a paper gives.

use crate::Proportion;

/// One value of an experiment, as it was reported, as it should be, and as it was measured here.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Which experiment, such as `BLM-1`.
    pub experiment: &'static str,
    /// Which value of it, with the parameters that matter.
    pub what: String,
    /// What the paper or the report says, where it says something.
    pub reported: Option<f64>,
    /// What theory says for exactly these parameters and keys.
    pub expected: f64,
    /// What was measured.
    pub measured: f64,
    /// Between these the measured value must lie.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

impl Finding {
    /// Whether the measured value lies where it must.
    #[must_use]
    pub fn agrees(&self) -> bool {
        (self.low..=self.high).contains(&self.measured)
    }

    /// A value that may be so far from the expected one.
    #[must_use]
    pub fn within(
        experiment: &'static str,
        what: impl Into<String>,
        expected: f64,
        tolerance: f64,
        measured: f64,
    ) -> Self {
        Self {
            experiment,
            what: what.into(),
            reported: None,
            expected,
            measured,
            low: expected - tolerance,
            high: expected + tolerance,
        }
    }

    /// A rate that was measured by counting, judged at 4 standard deviations: `rho` is the relative deviation of the true
    /// rate from one instance to the next.
    ///
    /// # Panics
    /// If nothing was asked: an experiment asks first.
    #[must_use]
    pub fn rate(
        experiment: &'static str,
        what: impl Into<String>,
        expected: f64,
        rho: f64,
        counted: Proportion,
    ) -> Self {
        let (low, high) = counted.agreeing_rates(expected, rho, 4.0).expect("a rate, and trials");
        let measured = counted.rate().expect("trials");
        Self { experiment, what: what.into(), reported: None, expected, measured, low, high }
    }

    /// The same finding, with what others said about it.
    #[must_use]
    pub fn reported_as(mut self, value: f64) -> Self {
        self.reported = Some(value);
        self
    }
}
