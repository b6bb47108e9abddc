//! Names on a list, with exceptions: `cargo run -p mayhap-examples --bin names_on_a_list [NAMES]`
//!
//! A filter for 1% stops one in a hundred travellers for nothing. Those who travel often would be stopped each time,
//! since the filter never changes its mind. They are known, and so they become exceptions: denied exactly, for 16 bytes
//! each. Nobody who is on the list gets through by that, and an exception who is put on the list later is found.

use std::error::Error;

use mayhap::{AnyFilter, Bloom, Digest, Filter, except};
use mayhap_eval::{ABSENT, SplitMix64};
use mayhap_examples::{agrees, keys_or};
use mayhap_store::{Access, open, write};

const FPR: f64 = 0.01;
/// Travel often, and are known not to be on the list.
const KNOWN: u64 = 200_000;

const FIRST: [&str; 8] = ["Ada", "Bo", "Chen", "Dora", "Emil", "Fang", "Gita", "Hugo"];
const LAST: [&str; 8] = ["Abel", "Berg", "Cao", "Diaz", "Eco", "Fan", "Gray", "Hu"];

/// A name and the number of a passport, which tells people of one name apart.
fn name(index: u64) -> String {
    let id = SplitMix64::at(7, index);
    format!("{} {}, {:x}", FIRST[(id & 7) as usize], LAST[(id >> 3 & 7) as usize], id >> 6)
}

fn stopped(filter: &dyn AnyFilter, people: std::ops::Range<u64>) -> u64 {
    people.filter(|&person| filter.contains(name(person).as_bytes())).count() as u64
}

fn main() -> Result<(), Box<dyn Error>> {
    let names = keys_or(100_000)?;
    let known = ABSENT..ABSENT + KNOWN;
    let strangers = known.end..known.end + KNOWN;

    let mut list = Bloom::new(names, FPR)?;
    list.extend((0..names).map(name));
    let (expected, hashing) = (list.fpr(), list.hashing());
    let (of_list, of_known, of_strangers) =
        (stopped(&list, 0..names), stopped(&list, known.clone()), stopped(&list, strangers.clone()));
    println!("names: {names}");
    println!("  stopped: {of_list}");
    println!("known travellers: {KNOWN}");
    println!("  stopped for nothing: {of_known}, expected {:.0}", expected * KNOWN as f64);
    println!("strangers: {KNOWN}");
    println!("  stopped for nothing: {of_strangers}");
    assert_eq!(of_list, names, "a name on the list is denied");
    assert!(agrees(of_known, KNOWN, expected) && agrees(of_strangers, KNOWN, expected));

    let folder = tempfile::tempdir()?;
    let path = folder.path().join("list.mayhap");
    write(&path, &list)?;
    println!("bytes of the list: {}", std::fs::metadata(&path)?.len());
    let digest = |person| hashing.digest_of(name(person));
    let wrong: Vec<Digest> = known.clone().map(digest).filter(|&key| list.contains_digest(key)).collect();
    write(&path, &*except(Box::new(list), wrong.iter().copied()))?;
    println!("bytes with exceptions: {}", std::fs::metadata(&path)?.len());

    let mut list = open(&path, Access::Read, None)?.filter;
    let (names_after, known_after, strangers_after) =
        (stopped(&*list, 0..names), stopped(&*list, known), stopped(&*list, strangers));
    println!("with exceptions");
    println!("  names stopped: {names_after}");
    println!("  known travellers stopped for nothing: {known_after}");
    println!("  strangers stopped for nothing: {strangers_after}");
    assert_eq!((names_after, known_after, strangers_after), (names, 0, of_strangers));

    let exception =
        wrong.first().copied().ok_or("no known traveller was stopped, so that there is no exception")?;
    let insert = list.as_insert().ok_or("the list takes no more names")?;
    insert.insert_digest(exception)?;
    println!("  a known traveller is found when put on the list: {}", list.contains_digest(exception));
    assert!(list.contains_digest(exception), "an exception that was put on the list is denied");
    Ok(())
}
