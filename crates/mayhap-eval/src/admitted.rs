//! Experiments that circulate about filters of other programs, and that can be repeated key by key: the same keys, hashed and
//! placed as there, so that exactly the same absent ones are admitted.

use mayhap::interop::{self, Making};
use mayhap::{ForeignHash, Hashing, SpecError, math};

use crate::{Finding, Proportion};

/// What a filter admitted of absent keys.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// Whose filter.
    pub filter: &'static str,
    /// What its keys are.
    pub what: &'static str,
    /// Number of keys that were inserted.
    pub keys: u64,
    /// The filter's.
    pub bits: u64,
    /// Positions per key.
    pub probes: u32,
    /// So many absent keys were asked for.
    pub asked: u64,
    /// These were admitted, in ascending order.
    pub admitted: Vec<u64>,
    /// How many were reported; `None` if the report is of more keys.
    pub reported: Option<u64>,
    /// Whether they are the reported ones: by their numbers where those were printed, else as many.
    pub is_as_reported: bool,
    /// The rate, what theory says of it, and the interval.
    pub finding: Finding,
}

/// So many even numbers are in by the report, and these odd ones below 1000 are admitted.
const EVEN_NUMBERS: u64 = 10_000_000;
const ODD_ADMITTED: [u64; 10] = [45, 49, 55, 243, 309, 321, 361, 643, 723, 901];

/// A class that is often copied: the first 64 bits of Murmur3 of the key's text, as two numbers of 32 bits, and positions
/// hash1 + i hash2, from i = 1, modulo the number of bits; all of it with the signs of Java's `int`.
#[derive(Debug)]
struct JavaClass {
    words: Vec<u64>,
    bits: i32,
    probes: i32,
}

impl JavaClass {
    /// Bits and probes are cut off.
    fn new(keys: u64, fpr: f64) -> Self {
        let bits = (-(keys as f64) * libm::log(fpr) / core::f64::consts::LN_2.powi(2)) as i32;
        let probes = (f64::from(bits) / keys as f64 * core::f64::consts::LN_2) as i32;
        Self { words: vec![0; bits as usize / 64 + 1], bits, probes: probes.max(1) }
    }

    fn positions(&self, number: u64) -> impl Iterator<Item = usize> + use<> {
        let hash = Hashing::Foreign(ForeignHash::Murmur3).digest(number.to_string().as_bytes()).a;
        let (one, other) = (hash as i32, (hash >> 32) as i32);
        let bits = self.bits;
        (1..=self.probes).map(move |i| one.wrapping_add(i.wrapping_mul(other)).rem_euclid(bits) as usize)
    }

    fn insert(&mut self, number: u64) {
        for position in self.positions(number) {
            self.words[position / 64] |= 1 << (position % 64);
        }
    }

    fn contains(&self, number: u64) -> bool {
        self.positions(number).all(|position| self.words[position / 64] >> (position % 64) & 1 == 1)
    }
}

/// The class of an essay with even numbers, asked for odd ones: those below 1000, of a shorter list all up to its end.
#[must_use]
pub fn admitted_by_a_java_class(keys: u64) -> Admitted {
    let mut filter = JavaClass::new(keys, 0.01);
    (0..keys).for_each(|index| filter.insert(2 * index));
    let is_reported = keys == EVEN_NUMBERS;
    let asked = if is_reported { 500 } else { keys };
    let admitted: Vec<u64> =
        (0..asked).map(|index| 2 * index + 1).filter(|&odd| filter.contains(odd)).collect();
    let (bits, probes) = (u64::from(filter.bits.unsigned_abs()), filter.probes.unsigned_abs());
    Admitted {
        filter: "a Java class of an essay",
        what: "even numbers",
        keys,
        bits,
        probes,
        asked,
        is_as_reported: is_reported && admitted == ODD_ADMITTED,
        reported: is_reported.then_some(ODD_ADMITTED.len() as u64),
        finding: finding("even numbers in, odd asked", &admitted, asked, (bits, keys, probes)),
        admitted,
    }
}

/// Of Guava's filter with so many integers 947 of the next 100,000 were reported.
const INTEGERS: u64 = 1_000_000;
const INTEGERS_ADMITTED: u64 = 947;

/// Guava's own filter with the first integers, asked for the next ones.
///
/// # Errors
/// [`SpecError`] if there is no such filter.
///
/// # Panics
/// If Guava's format is not known any more.
pub fn admitted_by_guava(keys: u64) -> Result<Admitted, SpecError> {
    let format = interop::format("guava").expect("a format of ours");
    let mut filter = format.make(&Making::new(keys, 0.01))?;
    let asked = (keys / 10).max(1);
    let mut outcomes = Vec::new();
    let mut hits = Vec::new();
    let integers = |first: u64, count: u64| -> Vec<[u8; 4]> {
        (first..first + count).map(|integer| (integer as i32).to_le_bytes()).collect()
    };
    for batch in integers(0, keys).chunks(4096) {
        let batch: Vec<&[u8]> = batch.iter().map(<[u8; 4]>::as_slice).collect();
        outcomes.clear();
        filter.insert_keys(&batch, &mut outcomes).expect("a Bloom filter is never full");
    }
    for batch in integers(keys, asked).chunks(4096) {
        let batch: Vec<&[u8]> = batch.iter().map(<[u8; 4]>::as_slice).collect();
        filter.contains_keys(&batch, &mut hits);
    }
    let admitted: Vec<u64> =
        (keys..).zip(&hits).filter(|&(_, &hit)| hit).map(|(integer, _)| integer).collect();
    let report = filter.report();
    let (bits, probes) = (report.bits, report.probes.unwrap_or(0));
    let is_reported = keys == INTEGERS;
    Ok(Admitted {
        filter: "Guava",
        what: "integers",
        keys,
        bits,
        probes,
        asked,
        is_as_reported: is_reported && admitted.len() as u64 == INTEGERS_ADMITTED,
        reported: is_reported.then_some(INTEGERS_ADMITTED),
        finding: finding("integers in, the next ones asked", &admitted, asked, (bits, keys, probes)),
        admitted,
    })
}

fn finding(what: &str, admitted: &[u64], asked: u64, (bits, keys, probes): (u64, u64, u32)) -> Finding {
    let measured = Proportion { hits: admitted.len() as u64, trials: asked };
    let expected = math::bloom_fpr(bits, keys as f64, probes);
    // As in the comparison of hash functions.
    let (low, high) = measured.agreeing_rates(expected, 0.005, 4.0).unwrap_or((expected, expected));
    Finding {
        experiment: "classic",
        what: what.into(),
        reported: None,
        expected,
        measured: measured.rate().unwrap_or(0.0),
        low,
        high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten million even numbers in 95,850,583 bits with 6 probes.
    #[test]
    fn the_same_odd_numbers_are_admitted_as_in_java() {
        let all = admitted_by_a_java_class(EVEN_NUMBERS);
        assert_eq!((all.bits, all.probes, all.asked), (95_850_583, 6, 500));
        assert_eq!(all.admitted, ODD_ADMITTED);
        assert!(all.is_as_reported && all.finding.agrees(), "{all:?}");
        assert!((all.finding.expected - 0.010_143_159_512_273).abs() < 1e-12, "{}", all.finding.expected);
    }

    #[test]
    fn a_smaller_list_is_within_the_interval_and_nothing_was_reported_of_it() {
        for keys in [1000, 100_000] {
            let some = admitted_by_a_java_class(keys);
            assert!(some.finding.agrees() && !some.admitted.is_empty(), "{some:?}");
            assert_eq!((some.asked, some.reported, some.is_as_reported), (keys, None, false));
            let some = admitted_by_guava(keys).unwrap();
            assert!(some.finding.agrees(), "{some:?}");
            assert_eq!((some.asked, some.reported, some.is_as_reported), (keys / 10, None, false));
        }
    }

    #[test]
    fn guava_admits_947_of_100_000_integers() {
        let all = admitted_by_guava(INTEGERS).unwrap();
        assert_eq!((all.bits, all.probes, all.admitted.len()), (9_585_088, 7, 947));
        assert!(all.is_as_reported && all.finding.agrees(), "{:?}", all.finding);
    }
}
