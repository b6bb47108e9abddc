//! Static filters: binary fuse, ribbon, two-stage ribbon.

use crate::narrow::{low_u64, whole, whole_u32};

/// Shards have at least so many keys: from here on their size costs no space.
const LEAST_SHARD: u64 = 1_600_000;

/// At most 2^20 shards.
pub const MAX_SHARD_BITS: u32 = 20;

/// How many of the highest bits of a digest tell the shard of a static filter of so many keys, so that a shard has 1.6 to
/// 3.2 million.
pub fn shard_bits(keys: u64) -> u32 {
    (keys / LEAST_SHARD).max(1).ilog2().min(MAX_SHARD_BITS)
}

/// The most places of a segment: 2^18.
pub const MAX_SEGMENT_LOG: u32 = 18;

/// Segments of a binary fuse filter of so many keys: the logarithm of their length, and the number of those that are the
/// first of a key. Three or four `ways` need two or three segments behind them.
///
/// Source: Graf, Lemire 2022, whose numbers were found by experiment. They round down.
pub fn fuse_segments(keys: u64, ways: u32) -> (u32, u64) {
    if keys < 2 {
        return (2, 1);
    }
    let ln = libm::log(keys as f64);
    let (log, factor) = match ways {
        3 => (ln / libm::log(3.33) + 2.25, 0.875 + 0.25 * libm::log(1e6) / ln),
        _ => (ln / libm::log(2.91) - 0.5, 0.77 + 0.305 * libm::log(6e5) / ln),
    };
    // Keys whose first places are the same must differ in the others, whatever the rounding says of a handful of keys.
    let log = whole_u32(libm::floor(log).max(2.0)).min(MAX_SEGMENT_LOG);
    let slots = whole(libm::round(keys as f64 * factor.max(if ways == 3 { 1.125 } else { 1.075 })));
    (log, slots.div_ceil(1 << log).saturating_sub(u64::from(ways) - 1).max(1))
}

/// False-positive rate of a static filter with fingerprints of so many bits: that an absent key has the fingerprint, or the
/// half digest of one of the keys.
pub fn fuse_fpr(width: u32, keys: u64) -> f64 {
    libm::scalbn(1.0, -(width as i32)) + equal_halves(keys)
}

/// A layer of a bumped ribbon has so many slots per key: too few, on purpose.
const RIBBON_SLOTS: f64 = 0.965;

/// Fewer keys than this are not worth a layer that bumps.
pub(crate) const RIBBON_LEAST: u64 = 2000;

/// Blocks of 64 slots of a layer that bumps, for so many keys.
pub(crate) fn ribbon_blocks(keys: u64) -> u64 {
    (whole(libm::ceil(keys as f64 * RIBBON_SLOTS))).div_ceil(64)
}

/// Blocks of 64 slots of the last layer, for so many keys: 5 % more slots than keys, and another 5 % with each attempt.
///
/// Source: Dillinger, Walzer 2021: 10,000 keys and rows of 64 bits are solved with 5 % nine times of ten; here there are fewer
/// keys.
pub(crate) fn ribbon_last_blocks(keys: u64, row_bits: u32, attempt: u64) -> u64 {
    let slots = whole(libm::ceil(keys as f64 * (1.05 + 0.05 * attempt as f64)));
    slots.div_ceil(64).max(u64::from(row_bits) / 64)
}

/// The slots of a bucket of a layer that bumps are 2 to this.
///
/// Source: Dillinger, Hübschle-Schneider, Sanders, Walzer 2022: `w^2 / (4 log2 w)`, rounded down to a power of two.
pub(crate) const fn ribbon_bucket_log(row_bits: u32) -> u32 {
    if row_bits == 64 { 7 } else { 9 }
}

/// The share of its keys that a layer bumps.
const fn ribbon_bumped(row_bits: u32) -> f64 {
    if row_bits == 64 { 0.0364 } else { 0.0356 }
}

/// How many of its keys a layer bumps, on average: those for which it has no slots, and as many as slots stay empty. Some of
/// these are lost at the ends of a layer, whatever its length, and so a small one bumps more.
///
/// Measured: layers of 2000 to 50,000 keys leave 29 to 90 slots empty with rows of 64 bits, and 43 to 63 with rows of 128.
pub(crate) fn ribbon_bumped_keys(keys: u64, row_bits: u32) -> u64 {
    let (ends, one_in) = if row_bits == 64 { (28, 770) } else { (53, 2000) };
    (keys + ends + keys / one_in).saturating_sub(64 * ribbon_blocks(keys))
}

/// Slots at which keys start in a layer of so many blocks of 64.
pub(crate) const fn ribbon_starts(blocks: u64, row_bits: u32) -> u64 {
    (blocks * 64 + 1).saturating_sub(row_bits as u64)
}

/// How many of a layer's blocks have no extra column, so that at least the share `more` of the keys, in parts of 2^32, starts
/// in those that have one. No key starts in the last slots.
pub(crate) fn ribbon_plain_blocks(blocks: u64, row_bits: u32, more: u32) -> u64 {
    if more == 0 {
        return blocks;
    }
    let plain = (u128::from(ribbon_starts(blocks, row_bits)) * ((1u128 << 32) - u128::from(more))) >> 32;
    low_u64(plain / 64)
}

/// The rate of those who start in a layer of so many blocks, if they have no fingerprint there.
pub(crate) fn ribbon_layer_fpr(blocks: u64, row_bits: u32, columns: u32, more: u32) -> f64 {
    let starts = ribbon_starts(blocks, row_bits);
    if starts == 0 {
        return 0.0;
    }
    let plain = (64 * ribbon_plain_blocks(blocks, row_bits, more)).min(starts) as f64 / starts as f64;
    libm::scalbn(0.5 + plain / 2.0, -(columns as i32))
}

/// The rate of a shard, from the rates of its layers: the others go on to the next one.
pub(crate) fn ribbon_shard_fpr(layers: impl Iterator<Item = f64>, row_bits: u32) -> f64 {
    let (mut rate, mut reached, mut last) = (0.0, 1.0, 0.0);
    for layer in layers {
        rate += reached * (1.0 - ribbon_bumped(row_bits)) * layer;
        reached *= ribbon_bumped(row_bits);
        last = layer;
    }
    // The last one bumps no key.
    rate + reached * last
}

/// Blocks of each layer of a shard of a bumped ribbon of so many keys.
fn ribbon_layers(keys: u64, row_bits: u32) -> impl Iterator<Item = (u64, bool)> {
    let (mut left, mut level, mut ended) = (keys, 0, false);
    core::iter::from_fn(move || {
        if ended {
            return None;
        }
        ended = left < RIBBON_LEAST || level == 4;
        let blocks = if ended { ribbon_last_blocks(left, row_bits, 0) } else { ribbon_blocks(left) };
        level += 1;
        left = ribbon_bumped_keys(left, row_bits);
        Some((blocks, ended))
    })
}

/// False-positive rate of a ribbon filter of so many keys: that an absent key has the fingerprint, or the half digest of one
/// of the keys. At most [`ribbon_fpr`], since whole blocks have one column more.
pub(crate) fn ribbon_planned_fpr(keys: u64, row_bits: u32, columns: u32, more: u32) -> f64 {
    let shard = keys.div_ceil(1 << shard_bits(keys));
    let layers =
        ribbon_layers(shard, row_bits).map(|(blocks, _)| ribbon_layer_fpr(blocks, row_bits, columns, more));
    ribbon_shard_fpr(layers, row_bits) + equal_halves(keys)
}

/// The chance that an absent key has the half digest of one of so many.
pub(crate) fn equal_halves(keys: u64) -> f64 {
    libm::scalbn(keys as f64, -64)
}

/// Words that a shard of a bumped ribbon of so many keys takes: the slots of each layer, and two bits for each bucket.
pub(crate) fn ribbon_words(keys: u64, row_bits: u32, columns: u32, more: u32) -> u64 {
    let mut words = 0;
    for (blocks, is_last) in ribbon_layers(keys, row_bits) {
        words += blocks * u64::from(columns) + blocks - ribbon_plain_blocks(blocks, row_bits, more);
        if !is_last {
            words += (blocks * 64).div_ceil(1 << ribbon_bucket_log(row_bits)).div_ceil(32);
        }
    }
    words
}

/// Columns that the rate `p` needs, in parts of 2^32: if it is no power of two, some fingerprints have one bit more than
/// others. At most 32, which may not be enough.
pub(crate) fn ribbon_columns(p: f64) -> u64 {
    // The next power of two above it, exactly: frexp gives p as a number from a half to one, and that power.
    let (fraction, exponent) = libm::frexp(p.clamp(1e-300, 1.0 - f64::EPSILON));
    // p = (2 fraction) 2^(exponent - 1), and the first factor is from 1 to 2: with `more` of them longer it is 2 - more.
    let columns = (-exponent) as u64;
    let more = whole(libm::ceil((2.0 - 2.0 * fraction) * 4_294_967_296.0));
    ((columns << 32) + more).min(32 << 32)
}

/// The most that the false-positive rate of a ribbon filter can be: that an absent key has the fingerprint, or the half
/// digest of one of the keys.
pub fn ribbon_fpr(columns: u32, more: u32, keys: u64) -> f64 {
    let share = f64::from(more) / 4_294_967_296.0;
    libm::scalbn(1.0 - share / 2.0, -(columns as i32)) + equal_halves(keys)
}

/// The rate at which a set within a known universe admits keys that are of neither part of it: the first stage admits one in
/// 2^columns, and the second one in two of them. A set without others has no more to tell them by.
pub fn universe_fpr(columns: u32) -> f64 {
    libm::scalbn(0.5, -(columns as i32))
}
