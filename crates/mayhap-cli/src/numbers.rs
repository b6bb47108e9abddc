//! Numbers as people write them: `10M`, `1e7`, `1%`, `1in1M`, `64MiB`.

use mayhap::math::MAX_PROBES;
use mayhap::sizes::{MAX_BITS, MAX_CAPACITY, MIN_FPR};
use mayhap::{Knob, SpecError};

const COUNTS: &str = "10M, 10_000_000 or 1e7";
const SIZES: &str = "64MiB, 1GB or 4096";
const RATES: &str = "1%, 0.01, 1e-6 or 1in1M";

/// A number with a factor behind it.
fn scaled(text: &str, factors: &[(&str, u64)], examples: &str) -> Result<f64, String> {
    let clean = text.trim().replace('_', "");
    let lower = clean.to_ascii_lowercase();
    let (digits, factor) = factors
        .iter()
        .filter_map(|(suffix, factor)| Some((lower.strip_suffix(suffix)?, *factor)))
        .find(|(digits, _)| digits.ends_with(|c: char| c.is_ascii_digit() || c == '.'))
        .unwrap_or((&lower, 1));
    // Rust reads "inf" and "nan" as numbers; nobody means them.
    let number: f64 = match digits.trim().parse() {
        Ok(number) if digits.contains(|c: char| c.is_ascii_digit()) => number,
        _ => return Err(format!("{text:?} is not a number; give one such as {examples}")),
    };
    Ok(number * factor as f64)
}

fn whole(text: &str, value: f64, what: &str, examples: &str) -> Result<u64, String> {
    if value.is_nan() || value < 0.0 {
        return Err(format!("{text:?} is negative; {what} is a whole number, such as {examples}"));
    }
    if value >= u64::MAX as f64 {
        return Err(format!("{text:?} is beyond 64 bits; {what} must be below 1.8e19"));
    }
    if value.fract() != 0.0 {
        return Err(format!("{text:?} is not whole; {what} is a whole number, such as {examples}"));
    }
    Ok(value as u64)
}

/// A number of keys or bits: `10M`, `10_000_000`, `1e7`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    const FACTORS: &[(&str, u64)] = &[
        ("ki", 1 << 10),
        ("mi", 1 << 20),
        ("gi", 1 << 30),
        ("ti", 1 << 40),
        ("k", 1_000),
        ("m", 1_000_000),
        ("g", 1_000_000_000),
        ("b", 1_000_000_000),
        ("t", 1_000_000_000_000),
    ];
    // Integers beyond 2^53 lose digits as floats.
    if let Ok(exact) = text.trim().replace('_', "").parse() {
        return Ok(exact);
    }
    whole(text, scaled(text, FACTORS, COUNTS)?, "a count", COUNTS)
}

/// The library's text for a number that is not 1 to `most`.
fn out_of_range(knob: Knob, asked: u64, most: u64) -> String {
    let (least, most) = (1u64.into(), most.into());
    SpecError::Range { knob, asked: asked.into(), least, most }.to_string()
}

/// A number of keys that a filter is made for: at least 1.
pub(crate) fn capacity(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err(out_of_range(Knob::Capacity, 0, MAX_CAPACITY)),
        count => Ok(count),
    }
}

/// A number of bits: at least 1.
pub(crate) fn bits(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err(out_of_range(Knob::Bits, 0, MAX_BITS)),
        count => Ok(count),
    }
}

/// A number of probes.
pub(crate) fn probes(text: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(probes) if (1..=MAX_PROBES).contains(&probes) => Ok(probes),
        Ok(asked) => Err(out_of_range(Knob::Probes, asked.into(), MAX_PROBES.into())),
        Err(_) => Err(format!("{text:?} is not a number of probes; it must be 1 to {MAX_PROBES}")),
    }
}

/// A number of bits of a counter. Which of them a family has is the family's to say.
pub(crate) fn counter_bits(text: &str) -> Result<u32, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("{text:?} is not a number of bits of a counter, such as 4, 8 or 16"))
}

/// A largest count. Which of them a family has is the family's to say.
pub(crate) fn max_count(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is not a largest count, such as 15 or 57"))
}

/// An amount of memory in bytes: `64MiB`, `1GB`, `4096`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const FACTORS: &[(&str, u64)] = &[
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("k", 1 << 10),
        ("m", 1 << 20),
        ("g", 1 << 30),
        ("t", 1 << 40),
        ("b", 1),
    ];
    match whole(text, scaled(text, FACTORS, SIZES)?, "a size", SIZES)? {
        0 => Err("a size of 0 bytes holds nothing; the least is 1".into()),
        bytes if bytes > u64::MAX / 8 => Err(format!("{text:?} is more than any machine has")),
        bytes => Ok(bytes),
    }
}

/// A false-positive rate: `0.01`, `1e-6`, `1%`, `1in1M`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let rate = if let Some(percent) = lower.strip_suffix('%') {
        scaled(percent, &[], RATES)? / 100.0
    } else if let Some((one, many)) = lower.split_once("in").filter(|_| !lower.contains("inf")) {
        let many = count(many)?;
        if many == 0 {
            return Err(format!("{text:?} divides by zero"));
        }
        count(one)? as f64 / many as f64
    } else {
        scaled(&lower, &[], RATES)?
    };
    if (MIN_FPR..1.0).contains(&rate) { Ok(rate) } else { Err(SpecError::Fpr { asked: rate }.to_string()) }
}

/// How many times the keys of the layer before; its limit is the library's to say.
pub(crate) fn growth(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a growth; it is a whole number, such as 2"))
}

/// How many times the rate of the layer before; its limits are the library's to say.
pub(crate) fn tightening(text: &str) -> Result<f64, String> {
    scaled(text, &[], "0.85 or 0.5")
}

/// A seed: a 64-bit number, decimal or hexadecimal with `0x`.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("{text:?} is not a 64-bit number, such as 42 or 0x2a"))
}

/// The version of a program: its major and minor number, whatever follows.
pub(crate) fn version(text: &str) -> Result<(u32, u32), String> {
    let mut parts = text.split('.');
    let mut next = |missing: Option<u32>| match parts.next() {
        Some(part) => part.parse().ok(),
        None => missing,
    };
    next(None)
        .zip(next(Some(0)))
        .ok_or_else(|| format!("{text:?} is not the version of a program, such as 4.0 or 33.4.8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn human_numbers_are_understood() {
        for text in ["10M", "10_000_000", "1e7", "10m", "0.01G", "10000k", " 10M "] {
            assert_eq!(count(text), Ok(10_000_000), "{text}");
        }
        assert_eq!(count("1.5k"), Ok(1500));
        assert_eq!(count("1Ki"), Ok(1024));
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(count("9007199254740993"), Ok(9_007_199_254_740_993));
        for text in ["64MiB", "64m", "67108864", "67108864B", "0.0625GiB"] {
            assert_eq!(size(text), Ok(64 << 20), "{text}");
        }
        assert_eq!(size("1GB"), Ok(1_000_000_000));
        for text in ["1%", "0.01", "1e-2", "1in100", "10 in 1k", "1.0%"] {
            assert_eq!(rate(text), Ok(0.01), "{text}");
        }
        assert_eq!(rate("1in1M"), Ok(1e-6));
        assert_eq!((seed("42"), seed("0x2A")), (Ok(42), Ok(42)));
    }

    #[test]
    fn nonsense_is_refused_with_what_was_asked() {
        for text in ["", "abc", "NaN", "inf", "-inf", "1e400x", "M", "--", "1.2.3", "%"] {
            assert!(count(text).is_err_and(|e| e.contains("not a number")), "{text}: {:?}", count(text));
            assert!(rate(text).is_err(), "{text}");
            assert!(size(text).is_err(), "{text}");
        }
        let cases = [
            (count("-5"), "negative"),
            (count("1.5"), "not whole"),
            (count("1e30"), "beyond 64 bits"),
            (count("1e999"), "beyond 64 bits"),
            (capacity("0"), "capacity must be 1 to 281474976710656, not 0"),
            (size("0"), "the least is 1"),
            (size("1e19"), "more than any machine has"),
            (rate("5").map(|_| 0), "did you mean 5% (0.05)?"),
            (rate("0").map(|_| 0), "exact family"),
            (rate("100%").map(|_| 0), "must be below 1"),
            (rate("-1%").map(|_| 0), "not -0.01"),
            (rate("1e-300").map(|_| 0), "at least 2^-64"),
            (rate("1in0").map(|_| 0), "divides by zero"),
            (rate("nan").map(|_| 0), "\"nan\" is not a number; give one such as 1%, 0.01, 1e-6 or 1in1M"),
            (rate("-inf").map(|_| 0), "\"-inf\" is not a number"),
            (bits("0"), "bits must be 1 to 281474976710656, not 0"),
            (probes("0").map(u64::from), "probes must be 1 to 64, not 0"),
            (probes("65").map(u64::from), "probes must be 1 to 64, not 65"),
            (probes("-1").map(u64::from), "\"-1\" is not a number of probes; it must be 1 to 64"),
            (seed("-1"), "not a 64-bit number"),
        ];
        for (result, text) in cases {
            let message = result.expect_err(text);
            assert!(message.contains(text), "expected {text:?} in {message:?}");
        }
    }
}
