//! Scalable Bloom filters: from 10,000 keys to a million.

use mayhap::{Error, Scalable, Spec, math};

use super::{RHO, absent, admitted, as_reported, denied, insert, none_denied};
use crate::Finding;

/// What was simulated, of a first layer with the rate `first_fpr`.
struct Setting {
    name: &'static str,
    first_fpr: f64,
    tightening: f64,
    growth: u32,
    layers: u32,
    fpr: f64,
    bits_per_key: Option<f64>,
}

impl Setting {
    fn findings(&self, seed: u64) -> Result<Vec<Finding>, Error> {
        let Self { name, first_fpr, tightening, growth, .. } = *self;
        let bound = first_fpr / (1.0 - tightening);
        let spec = Spec::sized(10_000, bound).with_tightening(tightening).with_growth(growth);
        let mut filter = Scalable::from_spec(&spec)?;
        insert(&mut filter, seed, 0..1_000_000)?;
        let layers = filter.layers();
        let expected = math::compounded_fpr(
            layers.iter().map(|layer| math::bloom_fpr(layer.bits, layer.keys as f64, layer.probes)),
        );
        let asked = admitted(&filter, seed, absent(2_000_000));
        let mut findings = vec![
            none_denied(name, denied(&filter, seed, 0..1_000_000)),
            Finding::exactly(name, "layers", self.layers.into(), layers.len() as f64),
            Finding::rate(name, "false positives", expected, RHO, asked).reported_as(self.fpr),
            as_reported(name, "false positives", filter.fpr(), asked),
            Finding::between(name, "rate now, below the bound", expected, 0.0..=bound, filter.fpr()),
            Finding::between(
                name,
                "rate when full, below the bound",
                bound,
                0.0..=bound,
                filter.fpr_at_capacity(),
            ),
        ];
        if let Some(bits) = self.bits_per_key {
            // The value is known to one decimal.
            findings.push(Finding::within(name, "bits per key", bits, 0.05, filter.bits() as f64 / 1e6));
        }
        Ok(findings)
    }
}

pub(super) fn scl_1(seed: u64) -> Result<Vec<Finding>, Error> {
    Setting {
        name: "SCL-1",
        first_fpr: 0.01,
        tightening: 0.5,
        growth: 2,
        layers: 7,
        fpr: 0.01530,
        bits_per_key: Some(22.1),
    }
    .findings(seed)
}

pub(super) fn scl_2(seed: u64) -> Result<Vec<Finding>, Error> {
    Setting {
        name: "SCL-2",
        first_fpr: 0.005,
        tightening: 0.5,
        growth: 2,
        layers: 7,
        fpr: 0.00779,
        bits_per_key: None,
    }
    .findings(seed)
}

pub(super) fn scl_3(seed: u64) -> Result<Vec<Finding>, Error> {
    Setting {
        name: "SCL-3",
        first_fpr: 0.001,
        tightening: 0.9,
        growth: 2,
        layers: 7,
        fpr: 0.00344,
        bits_per_key: Some(20.1),
    }
    .findings(seed)
}

pub(super) fn scl_4(seed: u64) -> Result<Vec<Finding>, Error> {
    Setting {
        name: "SCL-4",
        first_fpr: 0.01,
        tightening: 0.9,
        growth: 4,
        layers: 5,
        fpr: 0.0270,
        bits_per_key: None,
    }
    .findings(seed)
}
