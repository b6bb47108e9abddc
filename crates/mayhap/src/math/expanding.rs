//! Expanding filters.

/// The share of its slots up to which an expanding filter fills before it doubles: 9 tenths.
pub const EXPANDING_LOAD: f64 = 0.9;

/// Slots of an expanding filter that takes `n` keys before it doubles: blocks of 64, of which 9 tenths are filled.
/// `n` counts up to 2^48.
pub fn expanding_slots(n: u64) -> u64 {
    (10 * n.clamp(1, 1 << 48)).div_ceil(9).next_multiple_of(64)
}

/// Keys that an expanding filter with so many slots takes before it doubles.
pub fn expanding_capacity(slots: u64) -> u64 {
    slots / 10 * 9 + slots % 10 * 9 / 10
}

/// False-positive rate of an expanding filter with fingerprints of `f` bits that has doubled `doublings` times and has
/// the share `load` of its slots filled, all doublings but the last at a load of the same:
/// `1 - e^(-load (doublings + 2) / 2^(f + 1))`.
///
/// Half of its keys came since the last doubling and have all `f` bits; a quarter came before and have one bit less, and
/// so on: each of these parts adds the same, and the keys of the start as much as two of them. Keys without any bits left,
/// of which there are several copies, are no exception.
///
/// Source: Dayan, Bercea, Reviriego, Pagh, *InfiniFilter: Expanding Filters to Infinity and Beyond*, SIGMOD 2023,
/// section 4.1; Poisson numbers of matches.
pub fn expanding_fpr(f: u32, doublings: u32, load: f64) -> f64 {
    -libm::expm1(-load * (f64::from(doublings) + 2.0) * libm::exp2(-f64::from(f) - 1.0))
}

/// The least bits of a fingerprint with which an expanding filter keeps the rate `p` through so many doublings, also just
/// before the next one; at least 1.
pub fn expanding_fingerprint(p: f64, doublings: u32) -> u32 {
    (1..64).find(|&f| expanding_fpr(f, doublings, EXPANDING_LOAD) <= p).unwrap_or(64)
}
