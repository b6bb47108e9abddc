//! d-left counting filters.

use crate::narrow::whole;

/// Keys for which a d-left filter has a bucket in each of its four subtables: 6 for each of 8 cells.
///
/// With 6 of 8 taken on average, the share of buckets that would need a ninth cell is 2.4e-138 after inserts and
/// 1.7e-27 after any number of removes and inserts: Bonomi et al. 2006, by their differential equations.
pub const DLEFT_KEYS: u64 = 24;

/// The number of fingerprints of a d-left filter: `buckets 2^remainder_bits`.
pub fn dleft_fingerprints(buckets: u64, remainder_bits: u32) -> f64 {
    libm::scalbn(buckets as f64, remainder_bits.min(4000) as i32)
}

/// False-positive rate of a d-left filter: the chance that an absent key has the fingerprint of one of `n` keys,
/// `1 - e^(-n / (buckets 2^r))`.
///
/// A match in any subtable is a match of whole fingerprints, because each subtable has a bijection of them. 24 keys for
/// each bucket and 14 bits give 0.1464 %. `n <= 0` gives 0.
///
/// Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese 2006, who bound it by `24 / 2^r`.
pub fn dleft_fpr(buckets: u64, remainder_bits: u32, n: f64) -> f64 {
    if n <= 0.0 { 0.0 } else { -libm::expm1(-n / dleft_fingerprints(buckets, remainder_bits)) }
}

/// Least number of buckets of a d-left filter with room for `n` keys at or below the rate `p`.
pub fn dleft_buckets(n: u64, p: f64, remainder_bits: u32) -> u64 {
    let room = n.div_ceil(DLEFT_KEYS).max(1);
    let wanted = n as f64 / -libm::log1p(-p.min(1.0)) / dleft_fingerprints(1, remainder_bits);
    // The conversion ends at the top, which is more than anybody grants. Rounding may have lost a bucket.
    let least = room.max(whole(libm::ceil(wanted)));
    if dleft_fpr(least, remainder_bits, n as f64) <= p { least } else { least.saturating_add(1) }
}

/// Most keys for which so many buckets of a d-left filter have room at or below the rate `p`.
pub fn dleft_capacity(buckets: u64, p: f64, remainder_bits: u32) -> u64 {
    let kept = dleft_fingerprints(buckets, remainder_bits) * -libm::log1p(-p.min(1.0));
    let most = buckets.saturating_mul(DLEFT_KEYS).min(whole(kept));
    if dleft_fpr(buckets, remainder_bits, most as f64) <= p { most } else { most.saturating_sub(1) }
}

/// Distinct keys in a d-left filter, from the number of its fingerprints; infinite when it has all of them.
///
/// Source: throws into urns, as in [`estimated_len`](super::estimated_len).
pub fn dleft_estimated_len(buckets: u64, remainder_bits: u32, found: u64) -> f64 {
    let all = dleft_fingerprints(buckets, remainder_bits);
    -all * libm::log1p(-(found as f64 / all).min(1.0))
}
