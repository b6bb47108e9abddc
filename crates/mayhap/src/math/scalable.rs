//! Scalable filters: rates of layers.

/// False-positive rate of several filters of which one admits a key: `1 - prod (1 - p_i)`, if their errors are
/// independent. At most the sum of the rates.
///
/// Source: Almeida, Baquero, Preguiça, Hutchison, *Scalable Bloom Filters*, 2007.
pub fn compounded_fpr(rates: impl IntoIterator<Item = f64>) -> f64 {
    // As a sum of logarithms, so that a rate of 1e-20 is not lost in 1 - 1e-20.
    -libm::expm1(rates.into_iter().map(|p| libm::log1p(-p.clamp(0.0, 1.0))).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_layers_add_up() {
        assert_eq!(compounded_fpr([]), 0.0);
        assert_eq!(compounded_fpr([0.5, 0.5]), 0.75);
        assert_eq!(compounded_fpr([1e-20, 1e-20]), 2e-20);
        assert_eq!(compounded_fpr([0.1, 1.0]), 1.0);
        // A scalable filter at 1% with a tightening of 0.85, grown for ever.
        let rates = (0..1000).map(|layer| 0.01 * 0.15 * libm::pow(0.85, f64::from(layer)));
        assert!((0.0099..0.01).contains(&compounded_fpr(rates)));
    }
}
