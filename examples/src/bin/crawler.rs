//! A crawler that skips pages it has seen: `cargo run -p mayhap-examples --bin crawler [PAGES]`
//!
//! It follows every link that is new to it. How many there will be nobody knows, so the filter grows. A page that is
//! wrongly taken for a seen one is never fetched; a page that was seen is never fetched again. The same crawl with an
//! exact set shows what was missed.

use std::collections::{HashSet, VecDeque};
use std::error::Error;

use mayhap::{Expanding, Insertion};
use mayhap_eval::{KeyKind, SplitMix64};
use mayhap_examples::{agrees, keys_or};

const LINKS_PER_PAGE: u64 = 8;
const FPR: f64 = 0.001;

/// Fetches a page and what it links to. Gives what was fetched, and how many links were followed or skipped.
fn crawl(
    pages: u64,
    mut is_new: impl FnMut(&[u8]) -> Result<bool, Box<dyn Error>>,
) -> Result<(HashSet<u64>, u64), Box<dyn Error>> {
    let (mut fetched, mut links) = (HashSet::new(), 0);
    let mut to_fetch = VecDeque::from([0]);
    is_new(&KeyKind::Url.key(1, 0))?;
    while let Some(page) = to_fetch.pop_front() {
        assert!(fetched.insert(page), "page {page} is fetched a second time");
        for link in 0..LINKS_PER_PAGE {
            let linked = SplitMix64::at(page, link) % pages;
            links += 1;
            if is_new(&KeyKind::Url.key(1, linked))? {
                to_fetch.push_back(linked);
            }
        }
    }
    Ok((fetched, links))
}

fn main() -> Result<(), Box<dyn Error>> {
    let pages = keys_or(500_000)?;

    let (mut addresses, mut text) = (HashSet::new(), 0);
    let (reachable, links_in_all) = crawl(pages, |url| {
        let is_new = addresses.insert(url.to_vec());
        text += if is_new { url.len() } else { 0 };
        Ok(is_new)
    })?;
    println!("pages: {pages}");
    println!("with an exact set");
    println!("  links: {links_in_all}");
    println!("  pages fetched: {}", reachable.len());
    println!("  bytes of the addresses alone: {text}");

    let mut seen = Expanding::with_fpr(FPR)?;
    let mut expected = 0.0;
    let (fetched, links) = crawl(pages, |url| {
        let rate = seen.fpr();
        let is_new = seen.insert_new(url)? == Insertion::New;
        expected += if is_new { rate } else { 0.0 };
        Ok(is_new)
    })?;
    let missed = (reachable.len() - fetched.len()) as u64;
    println!("with a filter that grows, for {}%", FPR * 100.0);
    println!("  links: {links}");
    println!("  pages fetched: {}", fetched.len());
    println!("  pages missed: {missed}, expected {expected:.0}");
    println!("  doublings: {}", seen.doublings().made);
    println!("  bytes: {}", seen.size_in_bytes());

    assert!(fetched.is_subset(&reachable));
    // Hardly a page is linked to by missed ones only, so that the misses are those of the filter.
    assert!(agrees(missed, reachable.len() as u64, expected / reachable.len() as f64));
    assert!(seen.fpr() <= FPR);
    assert!(seen.size_in_bytes() * 4 < text as u64, "the filter is not small");
    Ok(())
}
