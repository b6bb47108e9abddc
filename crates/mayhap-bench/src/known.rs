//! `static`: filters of keys that are known and stay, at 8 bits of fingerprint, against the peers that have just those, and
//! against as many prefetched loads from as much memory.
//!
//! Building is held against the peers by the clock on the wall, since two threads do it; questions by CPU time.

use anyhow::Result;

use crate::contenders::{self, FUSE, JDB_XORF, JDB_XORF_BATCH, KNOWN, Known, KnownFloor, Task, XORF};
use crate::keys::{KeySet, Kind};
use crate::measure::{self, Operation, Plan, Row, Rows};
use crate::options::Options;
use crate::report::{self, Csv};

/// Fingerprints of one byte, as the peers have them.
const FPR: f64 = 1.0 / 256.0;

/// The limits, by the number of loads.
const LIMITS: [(u32, &str); 2] = [(3, "limit touches 3"), (4, "limit touches 4")];

pub(crate) fn run(options: &Options) -> Result<()> {
    let alone = !options.filters && !options.cuckoo && !options.growth;
    let mut csv = Csv::create(options.csv.as_deref().filter(|_| alone))?;
    for &keys in &options.keys {
        let plan = Plan::new(keys, options.repetitions, options.size);
        let set = KeySet::numbers(plan);
        let task = Task { kind: Kind::U64, keys, fpr: FPR };
        let mut table = contenders::table::<u64>(task);
        let is_ours = |name: &str| KNOWN.iter().any(|known| known.names().contains(&name));
        let is_peer = |name: &str| [XORF, JDB_XORF, JDB_XORF_BATCH].contains(&name);
        table.retain(|contender| is_ours(contender.name) || is_peer(contender.name));
        // As much memory as the filter with so many places takes.
        for (touches, name) in LIMITS {
            let floor = KnownFloor::Touches(touches);
            let known = KNOWN.iter().find(|known| known.floor == floor).expect("a filter of so many places");
            let bytes = (keys as f64 * known.most_bits / 8.0) as u64;
            table.push(contenders::touches(name, bytes, touches));
        }
        let rows = measure::run(task, plan, &table, &set);
        report::print_table(&rows);
        csv.append(&rows)?;
        KNOWN.iter().for_each(|known| against_peers(known, &rows));
        println!();
    }
    Ok(())
}

impl Known {
    fn names(&self) -> [&'static str; 3] {
        [self.single, self.batch, self.two_threads]
    }
}

/// What the bars of static filters are written in. Above 1 we win against a peer; against a limit it is how many times its
/// time we take.
fn against_peers(known: &Known, rows: &Rows) {
    let row = |name: &str| rows.rows.iter().find(|row| row.name == name).expect("in the table");
    let [single, batch, two] = known.names().map(row);
    let [xorf, jdb, jdb_batch] = [XORF, JDB_XORF, JDB_XORF_BATCH].map(row);
    let floor = match known.floor {
        KnownFloor::Touches(touches) => {
            LIMITS.into_iter().find(|(some, _)| *some == touches).expect("one of them").1
        }
        KnownFloor::Fuse => FUSE.batch,
    };
    let (keys, bits) = (report::short(rows.task.keys), batch.bits_per_key.unwrap_or(f64::NAN));
    println!("{}, {keys} keys: {bits:.3} bits per key (bar {})", known.single, known.most_bits);
    let built = |row: &Row| report::middle(report::wall(row, Operation::Insert)).unwrap_or(f64::NAN);
    let (one, both) = (built(batch), built(two));
    println!("  build, wall: {one:.1} ns per key with one thread, {both:.1} with two");
    for (name, peer) in [(XORF, xorf), (JDB_XORF, jdb)] {
        let gain = |ours| {
            let wall = |row| report::wall(row, Operation::Insert);
            report::ratio(&wall(peer), &wall(ours)).unwrap_or(f64::NAN)
        };
        println!("    vs {name:20} {:5.2}x, with two {:5.2}x", gain(batch), gain(two));
    }
    let times = |above: &Row, below: &Row| {
        [Operation::Hit, Operation::Miss]
            .map(|of| report::ratio(&report::cpu(above, of), &report::cpu(below, of)).unwrap_or(f64::NAN))
    };
    for (how, ours, peers) in [
        ("batch", batch, [(XORF, xorf), (JDB_XORF_BATCH, jdb_batch)]),
        ("single", single, [(XORF, xorf), (JDB_XORF, jdb)]),
    ] {
        for (name, peer) in peers {
            let [hit, miss] = times(peer, ours);
            println!("  {how:6} vs {name:20} hit {hit:5.2}x  miss {miss:5.2}x");
        }
    }
    let [hit, miss] = times(batch, row(floor));
    println!("  batch, times {floor}: hit {hit:.2}  miss {miss:.2} (bar {})", known.most_times);
}
