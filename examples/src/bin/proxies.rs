//! Two proxies that tell each other what they have: `cargo run -p mayhap-examples --bin proxies`
//!
//! A proxy keeps pages for a while, so keys come and go: a counting filter. The neighbour only asks, so what is sent is
//! the Bloom filter of it, a quarter of the counters' bits. A page that the neighbour says it has is asked for there, which is
//! nearer than its origin; now and then it is not there after all, and one question was for nothing. (Fan, Cao, Almeida,
//! Broder, *Summary Cache*, 2000, for which counting filters were made.)

use std::collections::HashSet;

use mayhap::{Bloom, Counting, Error};

/// How many pages a proxy keeps.
const PAGES: u64 = 10_000;

struct Proxy {
    /// In truth, the pages with their contents.
    pages: HashSet<String>,
    cached: Counting,
    /// What the neighbour had when it last said so.
    neighbour: Option<Bloom>,
}

impl Proxy {
    fn new() -> Result<Self, Error> {
        Ok(Self { pages: HashSet::new(), cached: Counting::new(PAGES, 0.01)?, neighbour: None })
    }

    fn store(&mut self, page: &str) {
        if self.pages.insert(page.into()) {
            self.cached.insert(page);
        }
    }

    fn evict(&mut self, page: &str) {
        if self.pages.remove(page) {
            assert!(self.cached.remove(page).is_removed(), "what is in is never denied");
        }
    }

    /// What is sent over the wire.
    fn summary(&self) -> Result<Vec<u8>, Error> {
        Ok(self.cached.to_bloom()?.to_bytes())
    }

    fn hear(&mut self, summary: &[u8]) -> Result<(), Error> {
        self.neighbour = Some(Bloom::from_bytes(summary)?);
        Ok(())
    }

    fn should_ask_neighbour(&self, page: &str) -> bool {
        !self.pages.contains(page) && self.neighbour.as_ref().is_some_and(|bloom| bloom.contains(page))
    }
}

fn page(number: u64) -> String {
    format!("https://example.org/page/{number}")
}

fn main() -> Result<(), Error> {
    let (mut east, mut west) = (Proxy::new()?, Proxy::new()?);
    // Each reads its own part of the web, with a part in common; old pages make room for new ones.
    (0..15_000).for_each(|number| east.store(&page(number)));
    (0..5_000).for_each(|number| east.evict(&page(number)));
    (12_000..22_000).for_each(|number| west.store(&page(number)));

    let (of_east, of_west) = (east.summary()?, west.summary()?);
    println!("east holds {} pages; its summary takes {} bytes", east.pages.len(), of_east.len());
    println!("its counting filter would take {}", east.cached.to_bytes().len());
    east.hear(&of_west)?;
    west.hear(&of_east)?;

    // West wants pages that east has, pages that east had, and pages that nobody has.
    let asked = |range: std::ops::Range<u64>| {
        let pages: Vec<String> = range.map(page).filter(|page| !west.pages.contains(page)).collect();
        (pages.len(), pages.iter().filter(|page| west.should_ask_neighbour(page)).count())
    };
    let (there, found) = asked(5_000..12_000);
    assert_eq!(found, there, "every page that east has is found there");
    println!("west wants {there} pages that east has: it asks east for {found}");
    for (what, range) in [("had", 0..5_000), ("never had", 1_000_000..1_100_000)] {
        let (pages, wasted) = asked(range);
        println!("west wants {pages} pages that east {what}: it asks east for {wasted}, for nothing");
        assert!(wasted * 50 < pages, "about one in a hundred");
    }
    assert!((15_000..22_000).all(|number| east.should_ask_neighbour(&page(number))));
    Ok(())
}
