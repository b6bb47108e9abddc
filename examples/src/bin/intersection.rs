//! Who is in both sets? `cargo run -p mayhap-examples --bin intersection [KEYS]`
//!
//! Two shops want to know their common customers, and neither wants to send its whole list. East sends a filter; west
//! sends back those of its customers whom the filter admits; east drops the few who are not its own. The result is exact.
//! How many there will be the two filters tell beforehand.

use std::collections::HashSet;
use std::error::Error;

use mayhap::{Bloom, Exact};
use mayhap_eval::{ABSENT, KeyKind};
use mayhap_examples::{agrees, keys_or};

const FPR: f64 = 0.01;

fn customer(index: u64) -> String {
    KeyKind::Uuid.key(10, index).into_iter().map(char::from).collect()
}

fn bytes(customers: &[String]) -> usize {
    customers.iter().map(|customer| customer.len() + 1).sum()
}

fn main() -> Result<(), Box<dyn Error>> {
    let keys = keys_or(500_000)?;
    let common = keys / 10;
    let east: Vec<String> = (0..keys).map(customer).collect();
    let west: Vec<String> = (keys - common..2 * keys - common).map(customer).collect();
    println!("customers of each: {keys}");
    println!("bytes of a list: {}", bytes(&east));

    let (mut of_east, mut of_west) = (Bloom::new(keys, FPR)?, Bloom::new(keys, FPR)?);
    of_east.insert_all(&east);
    of_west.insert_all(&west);
    let estimated = of_east.estimated_intersection_len(&of_west)?;
    println!("common, as two filters estimate: {estimated:.0}");

    let sent = of_east.to_bytes();
    let mut answers = Vec::new();
    Bloom::from_bytes(&sent)?.contains_each(&west, &mut answers);
    let candidates: Vec<String> =
        west.iter().zip(&answers).filter(|&(_, &perhaps)| perhaps).map(|(key, _)| key.clone()).collect();
    println!("bytes of the filter that east sends: {}", sent.len());
    println!("candidates that west sends: {}", candidates.len());
    println!("bytes of them: {}", bytes(&candidates));

    let own: HashSet<&String> = east.iter().collect();
    let found = candidates.iter().filter(|key| own.contains(key)).count() as u64;
    let (strangers, others) = (candidates.len() as u64 - found, keys - common);
    println!("common, exactly: {found}");
    println!("sent for nothing: {strangers}, expected {:.0}", of_east.fpr() * others as f64);
    assert_eq!(found, common, "a common customer is missed");
    assert!(agrees(strangers, others, of_east.fpr()));
    assert!((estimated - common as f64).abs() < 0.02 * keys as f64);

    // In one place, a filter of the common ones is the common bits of two filters. Chance adds bits, and so errors.
    of_east.intersect(&of_west)?;
    let missed = (keys - common..keys).filter(|&index| !of_east.contains(customer(index))).count();
    let of_neither = of_east.measure_fpr((ABSENT..ABSENT + 500_000).map(customer));
    println!("a filter of the common bits misses: {missed}");
    println!("  admits of others: {} of {}", of_neither.hits, of_neither.trials);
    assert_eq!(missed, 0);
    assert!(of_neither.hits as f64 <= 1.2 * FPR * of_neither.trials as f64);

    // Where the sets fit the memory, exact ones do the same without errors.
    let (mut exact, mut other) = (Exact::default(), Exact::default());
    exact.insert_all(&east)?;
    other.insert_all(&west)?;
    exact.intersect(&other)?;
    println!("an exact set of the common ones: {}", exact.len());
    assert_eq!(exact.len(), common);
    Ok(())
}
