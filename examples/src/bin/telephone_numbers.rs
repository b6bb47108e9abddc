//! Ten thousand telephone numbers asked of five million: `cargo run -p mayhap-examples --bin telephone_numbers [NUMBERS]`
//!
//! Which of them are on the list? A Bloom filter says so in a tenth of the list's bytes. But telephone numbers are
//! integers, and exact sets of integers are small too: here it takes less than twice the filter's bytes and is never
//! wrong. Then the exact set is the better choice.

use std::error::Error;

use mayhap::{AnyFilter, Bloom, Filter, Insert, Insertion, RoaringSet, Spec};
use mayhap_eval::Random;
use mayhap_examples::{agrees, keys_or};

const FPR: f64 = 0.01;
const ASKED: u64 = 10_000;
/// Eleven digits, as mobile numbers in China have; all begin with 13.
const NUMBERS: std::ops::Range<u64> = 13_000_000_000..14_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let listed = keys_or(5_000_000)?;
    let mut random = Random::new(5);
    let mut draw = || NUMBERS.start + random.below(NUMBERS.end - NUMBERS.start);

    let mut exact = RoaringSet::from_spec(&Spec::new().with_capacity(listed))?;
    let mut filter = Bloom::new(listed, FPR)?;
    let mut asked = Vec::new();
    for count in 0..listed {
        // A number that comes twice is drawn again.
        let number = loop {
            let number = draw();
            if exact.insert_digest(exact.hashing().digest_of(number))? == Insertion::New {
                break number;
            }
        };
        filter.insert(number);
        if count < ASKED / 2 {
            asked.push(number);
        }
    }
    asked.extend((asked.len() as u64..ASKED).map(|_| draw()));

    println!("numbers listed: {listed}");
    println!("bytes as text: {}", listed * 12);
    println!("bytes as a bitmap of all numbers: {}", (NUMBERS.end - NUMBERS.start) / 8);
    println!("bytes as a compressed bitmap, exact: {}", exact.report().bits / 8);
    println!("bytes as a Bloom filter for {}%: {}", FPR * 100.0, filter.bits() / 8);

    let mut answers = Vec::new();
    filter.contains_each(&asked, &mut answers);
    let (mut on_list, mut found, mut wrong) = (0, 0, 0);
    for (&number, &perhaps) in asked.iter().zip(&answers) {
        let truth = exact.contains_digest(exact.hashing().digest_of(number));
        on_list += u64::from(truth);
        found += u64::from(truth && perhaps);
        wrong += u64::from(!truth && perhaps);
    }
    let absent = ASKED - on_list;
    println!("numbers asked: {ASKED}");
    println!("  on the list: {on_list}");
    println!("  found by the filter: {found}");
    println!("  not on the list: {absent}");
    println!("  found for nothing: {wrong}, expected {:.0}", filter.fpr() * absent as f64);
    assert_eq!(found, on_list, "a number on the list is denied");
    assert!(agrees(wrong, absent, filter.fpr_at_capacity()));
    Ok(())
}
