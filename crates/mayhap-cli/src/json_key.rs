//! JSON values as keys: a string is its text, any other value its canonical text behind the byte 0xFF.
//!
//! No UTF-8 text has the byte 0xFF, so that `1` is not `"1"`, nor `null` `"null"`. `docs/format.md` specifies the text: no
//! blanks, the members of an object in the order of their names, and every number by its value, whatever its spelling.

use serde_json::Value;

/// What stands before the text of a value that is no string.
pub(crate) const NOT_A_STRING: u8 = 0xFF;

/// Appends the canonical text of a value.
pub(crate) fn put_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Number(number) => put_number(&number.to_string(), out),
        Value::Array(values) => {
            out.push(b'[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                put_canonical(value, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            // A map that is sorted by names.
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend(Value::String(name.clone()).to_string().into_bytes());
                out.push(b':');
                put_canonical(value, out);
            }
            out.push(b'}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => out.extend(value.to_string().into_bytes()),
    }
}

/// Appends a number as sign, digits without zeros at either end, `e` and exponent, or `0`: exact, whatever its length, and
/// never written out.
fn put_number(text: &str, out: &mut Vec<u8>) {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        out.push(b'0');
        return;
    }
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    // Lengths of texts in memory: they fit.
    let shift = trailing as i64 - fraction.len() as i64;
    if is_negative {
        out.push(b'-');
    }
    out.extend(significant.as_bytes());
    out.push(b'e');
    out.extend(sum(exponent, shift).into_bytes());
}

/// A decimal integer of any length, as JSON writes exponents, and a small one.
fn sum(text: &str, small: i64) -> String {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start_matches('0');
    // Up to here 128 bits are enough.
    if digits.len() <= 36 {
        let value: i128 = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(0) };
        let value = if is_negative { -value } else { value };
        return (value + i128::from(small)).to_string();
    }
    // So large that the small one changes neither its sign nor, but for a carry, its first digits.
    let grows = is_negative == (small < 0);
    let mut digits: Vec<u8> = digits.bytes().map(|digit| digit - b'0').collect();
    let mut carry = small.unsigned_abs();
    for digit in digits.iter_mut().rev() {
        if carry == 0 {
            break;
        }
        let value = u64::from(*digit);
        if grows {
            let sum = value + carry % 10;
            (*digit, carry) = ((sum % 10) as u8, carry / 10 + sum / 10);
        } else {
            let less = carry % 10;
            let borrows = value < less;
            let rest = if borrows { value + 10 - less } else { value - less };
            (*digit, carry) = (rest as u8, carry / 10 + u64::from(borrows));
        }
    }
    let first = if carry > 0 { carry.to_string() } else { String::new() };
    let rest: String = digits.iter().map(|&digit| char::from(b'0' + digit)).collect();
    let all = first + &rest;
    format!("{}{}", if is_negative { "-" } else { "" }, all.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        let mut out = Vec::new();
        put_canonical(&serde_json::from_str(text).unwrap(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn equal_numbers_are_one_text() {
        for (texts, expected) in [
            (&["1", "1.0", "1e0", "10e-1", "0.1E+1", "1.000", "100e-2"][..], "1e0"),
            (&["0", "-0", "0.0", "-0.000e7", "0e-99999999999999999999999999999999999999999"], "0"),
            (&["10", "1e1", "1E+01", "0.00001e6"], "1e1"),
            (&["-12.5", "-125e-1", "-1.25e1"], "-125e-1"),
            (&["1e400", "10e399", "0.1e401"], "1e400"),
            (&["18446744073709551617"], "18446744073709551617e0"),
            (&["0.30000000000000004"], "30000000000000004e-17"),
            (&["1e99999999999999999999999999999999999999999"], "1e99999999999999999999999999999999999999999"),
            (
                &["10e99999999999999999999999999999999999999999"],
                "1e100000000000000000000000000000000000000000",
            ),
            (
                &["0.1e100000000000000000000000000000000000000000"],
                "1e99999999999999999999999999999999999999999",
            ),
            (
                &["10e-100000000000000000000000000000000000000000"],
                "1e-99999999999999999999999999999999999999999",
            ),
            (
                &["1.5e-99999999999999999999999999999999999999999"],
                "15e-100000000000000000000000000000000000000000",
            ),
        ] {
            for text in texts {
                assert_eq!(canonical(text), expected, "{text}");
            }
        }
    }

    /// Against arithmetic of 128 bits, where that is enough, and shifted into the long form.
    #[test]
    fn sums_of_long_exponents_are_exact() {
        let base = 10i128.pow(37);
        for small in [0, 1, 9, 10, 11, 99, 100, 12_345, i64::MAX, -1, -9, -10, -99, -100, -98_765, i64::MIN] {
            for value in [base, base + 7, 3 * base + 999_999, 12 * base - 1, -base, -base - 7, 1 - 12 * base]
            {
                assert_eq!(
                    sum(&value.to_string(), small),
                    (value + i128::from(small)).to_string(),
                    "{value} {small}"
                );
            }
        }
    }

    #[test]
    fn members_are_sorted_and_blanks_dropped() {
        assert_eq!(
            canonical(r#" { "b" : [ 1.0 , true , null ] , "a" : "x\u0041\n" } "#),
            r#"{"a":"xA\n","b":[1e0,true,null]}"#
        );
        assert_eq!(canonical("[]"), "[]");
        assert_eq!(canonical("{}"), "{}");
    }
}
