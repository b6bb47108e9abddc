//! Keys that do not exist, kept away from a cache and its database: `cargo run -p mayhap-examples --bin cache_guard [ROWS]`
//!
//! A cache cannot keep what does not exist: each question for it goes through to the database. A filter of the keys that
//! exist answers most of them. Rows come and go, and so do their keys in the filter: a cuckoo filter. The database is a
//! real one, SQLite, and every query that reaches it is counted. (Where such keys are sent on purpose, take a keyed
//! filter, so that nobody can look for keys that it admits.)

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::ops::Range;

use mayhap::Cuckoo;
use mayhap_eval::{ABSENT, Random, Zipf};
use mayhap_examples::{agrees, keys_or};
use rusqlite::{Connection, OptionalExtension, params};

const FPR: f64 = 0.001;
/// The cache keeps so many rows, those that came last.
const CACHED: usize = 10_000;

fn key(index: u64) -> String {
    format!("user:{index}")
}

struct Shop {
    database: Connection,
    cache: HashMap<String, String>,
    cached: VecDeque<String>,
    guard: Option<Cuckoo>,
    queries: u64,
}

impl Shop {
    fn get(&mut self, key: &str) -> Result<Option<String>, Box<dyn Error>> {
        if self.guard.as_ref().is_some_and(|guard| !guard.contains(key)) {
            return Ok(None); // certain
        }
        if let Some(row) = self.cache.get(key) {
            return Ok(Some(row.clone()));
        }
        self.queries += 1;
        let select = "SELECT row FROM users WHERE key = ?1";
        let row: Option<String> =
            self.database.query_row(select, [key], |columns| columns.get(0)).optional()?;
        if let Some(row) = &row {
            self.cache.insert(key.into(), row.clone());
            self.cached.push_back(key.into());
            if self.cached.len() > CACHED {
                self.cached.pop_front().map(|oldest| self.cache.remove(&oldest));
            }
        }
        Ok(row)
    }

    fn insert(&mut self, index: u64) -> Result<(), Box<dyn Error>> {
        let row = params![key(index), format!("row {index}")];
        self.database.execute("INSERT INTO users VALUES (?1, ?2)", row)?;
        if let Some(guard) = &mut self.guard {
            guard.insert(key(index))?;
        }
        Ok(())
    }

    /// The guard forgets a key only if there was a row: what is not in must not be removed.
    fn delete(&mut self, index: u64) -> Result<(), Box<dyn Error>> {
        let deleted = self.database.execute("DELETE FROM users WHERE key = ?1", [key(index)])?;
        self.cache.remove(&key(index));
        if let Some(guard) = self.guard.as_mut().filter(|_| deleted > 0) {
            assert!(guard.remove(key(index)).is_removed(), "a key that is in is denied");
        }
        Ok(())
    }

    /// All or none, and one wait for the disk.
    fn change(
        &mut self,
        indexes: Range<u64>,
        change: impl Fn(&mut Self, u64) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        self.database.execute_batch("BEGIN")?;
        indexes.into_iter().try_for_each(|index| change(self, index))?;
        Ok(self.database.execute_batch("COMMIT")?)
    }
}

/// Asks for keys; gives how many queries that took and how many answers had a row.
fn ask(shop: &mut Shop, keys: impl Iterator<Item = u64>) -> Result<(u64, u64), Box<dyn Error>> {
    let (before, mut found) = (shop.queries, 0);
    for index in keys {
        let row = shop.get(&key(index))?;
        assert!(row.as_ref().is_none_or(|row| *row == format!("row {index}")), "the row of another key");
        found += u64::from(row.is_some());
    }
    Ok((shop.queries - before, found))
}

fn main() -> Result<(), Box<dyn Error>> {
    let rows = keys_or(100_000)?;
    let (requests, deleted, added) = (2 * rows, rows / 10, rows / 20);
    let mut for_nothing = Vec::new();
    for guarded in [false, true] {
        let folder = tempfile::tempdir()?;
        let database = Connection::open(folder.path().join("users.sqlite"))?;
        database.execute_batch("CREATE TABLE users (key TEXT PRIMARY KEY, row TEXT) WITHOUT ROWID")?;
        let guard = if guarded { Some(Cuckoo::new(rows, FPR)?) } else { None };
        let mut shop = Shop { database, cache: HashMap::new(), cached: VecDeque::new(), guard, queries: 0 };
        shop.change(0..rows, Shop::insert)?;
        println!("{} a guard: {rows} rows", if guarded { "with" } else { "without" });

        let (queries, found) = ask(&mut shop, Zipf::new(8, rows, 1.0).take(requests as usize))?;
        println!("  {requests} requests for rows: {queries} queries, {found} found");
        assert_eq!(found, requests, "a row is not found");

        let (absent, found) = ask(&mut shop, ABSENT..ABSENT + requests)?;
        println!("  {requests} requests for what never was: {absent} queries, {found} found");
        assert_eq!(found, 0);
        if let Some(guard) = &shop.guard {
            println!("  expected queries: {:.0}", guard.fpr() * requests as f64);
            println!("  bytes of the guard: {}", guard.size_in_bytes());
            assert!(agrees(absent, requests, guard.fpr()));
        }

        shop.change(0..deleted, Shop::delete)?;
        let mut random = Random::new(9);
        let (gone, found) = ask(&mut shop, (0..requests).map(|_| random.below(deleted)))?;
        println!("  {requests} requests for {deleted} deleted rows: {gone} queries, {found} found");
        assert_eq!(found, 0, "a deleted row is found");

        shop.change(rows..rows + added, Shop::insert)?;
        let (_, found) = ask(&mut shop, deleted..rows + added)?;
        println!("  {} rows left or added: {found} found", rows + added - deleted);
        assert_eq!(found, rows + added - deleted, "a row is not found");
        for_nothing.push(absent + gone);
    }
    println!("queries for nothing without a guard: {}", for_nothing[0]);
    println!("queries for nothing with a guard: {}", for_nothing[1]);
    assert!(for_nothing[1] * 100 < for_nothing[0]);
    Ok(())
}
