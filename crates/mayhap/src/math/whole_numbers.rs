//! Divisors, and searches among whole numbers.

// Public for the tests, through `internals`.
#![cfg_attr(not(feature = "internals"), allow(unreachable_pub))]

use alloc::vec;
use alloc::vec::Vec;

/// The prime factors, from the least to the largest, as often as they divide. None for 0 and 1.
///
/// By trial division: a prime near `2^48` takes 8 million steps, which is 0.1 s.
pub fn prime_factors(mut number: u64) -> Vec<u64> {
    let mut factors = Vec::new();
    let mut divisor = 2;
    while number > 1 && divisor <= number / divisor {
        if number.is_multiple_of(divisor) {
            factors.push(divisor);
            number /= divisor;
        } else {
            divisor += if divisor == 2 { 1 } else { 2 };
        }
    }
    if number > 1 {
        factors.push(number);
    }
    factors
}

/// All divisors, from 1 to the number itself. None for 0.
pub fn divisors(number: u64) -> Vec<u64> {
    let mut divisors = if number == 0 { Vec::new() } else { vec![1] };
    // Those with one power more of a prime are new only if they have the highest power so far.
    let (mut last, mut newest) = (0, 0..0);
    for prime in prime_factors(number) {
        newest = if prime == last { newest.end..divisors.len() } else { 0..divisors.len() };
        last = prime;
        for index in newest.clone() {
            divisors.push(divisors[index] * prime);
        }
    }
    divisors.sort_unstable();
    divisors
}

/// The largest `n` for which `fits(n)`, which must be true up to some `n` and false from there on.
pub(crate) fn most_keys(m: u64, fits: impl Fn(u64) -> bool) -> u64 {
    if m == 0 {
        return 0;
    }
    let first = first_false(1, u64::MAX, &fits);
    if fits(first) { first } else { first - 1 }
}

/// The first number in `low..high` for which `holds` is false; `high` if there is none.
pub(crate) fn first_false(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The greatest common divisor; `gcd(a, 0)` is `a`.
pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prime_factors_multiply_to_the_number() {
        assert_eq!(prime_factors(9_646_080), [[2; 12].as_slice(), &[3, 5, 157]].concat());
        assert_eq!(prime_factors(281_474_976_710_597), [281_474_976_710_597], "a prime just below 2^48");
        assert!(prime_factors(0).is_empty() && prime_factors(1).is_empty());
        for number in (1..5000).chain([1 << 48, (1 << 48) - 1, 16_777_213 * 16_777_213]) {
            let factors = prime_factors(number);
            assert_eq!(factors.iter().product::<u64>(), number);
            assert!(factors.is_sorted() && factors.iter().all(|&p| prime_factors(p) == [p]), "{number}");
        }
    }

    #[test]
    fn divisors_are_all_that_divide() {
        for number in (0u64..2000).chain([9600, 30_030, 65_536, 83_160]) {
            let expected: Vec<u64> = (1..=number).filter(|&d| number.is_multiple_of(d)).collect();
            assert_eq!(divisors(number), expected, "{number}");
        }
        assert_eq!(divisors(1 << 48).len(), 49);
        assert_eq!(gcd(0, 0), 0);
        assert_eq!((gcd(12, 18), gcd(7, 0), gcd(0, 7), gcd(1 << 63, 3 << 40)), (6, 7, 7, 1 << 40));
    }
}
