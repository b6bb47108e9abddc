//! `cuckoo`: filters that remove, at the rate at which a fingerprint has 12 bits, and what the last inserts cost.
//!
//! A cuckoo filter looks longer for room the fuller it is. So the last percent of the keys, which brings it from 94 to
//! 95 % of its slots, is timed apart from all.

use anyhow::Result;
use mayhap::Cuckoo;
use mayhap_eval::median;

use crate::Size;
use crate::contenders::{self, Task};
use crate::keys::{KeySet, Kind};
use crate::measure::{self, Plan, Stopwatch};
use crate::options::Options;
use crate::report::{self, Csv};

/// With 12 bits per fingerprint, at a load of 0.95.
const FPR: f64 = 0.00186;

/// Parts of the names of those that are compared: `mayhap cuckoo` and its variants, and the peers of the bars.
const WHO: [&str; 3] = ["mayhap cuckoo", contenders::QFILTER, contenders::CUCKOOFILTER];

pub(crate) fn run(options: &Options) -> Result<()> {
    let plan = Plan::new(keys(options.size), options.repetitions, options.size);
    let set = KeySet::numbers(plan);
    let task = Task { kind: Kind::U64, keys: plan.keys, fpr: FPR };
    let mut table = contenders::table::<u64>(task);
    table.retain(|contender| WHO.iter().any(|who| contender.name.starts_with(who)));
    let rows = measure::run(task, plan, &table, &set);
    report::print_table(&rows);
    Csv::create(options.csv.as_deref().filter(|_| !options.filters))?.append(&rows)?;
    report::print_ratios(&[rows]);
    last_percent(plan, &set.present);
    Ok(())
}

fn keys(size: Size) -> u64 {
    size.keys(10_000_000)
}

/// The time of the last percent of the inserts against the mean of all.
fn last_percent(plan: Plan, keys: &[u64]) {
    let (first, last) = keys.split_at(keys.len() / 100 * 99);
    let single: fn(&mut Cuckoo, &[u64]) = |cuckoo, keys| {
        for &key in keys {
            cuckoo.insert(key).expect("made for so many");
        }
    };
    let batch: fn(&mut Cuckoo, &[u64]) = |cuckoo, keys| cuckoo.insert_all(keys).expect("made for so many");
    println!("the last percent of the inserts, to a load of 95%: ns of CPU time per key, medians");
    println!("  {:28} {:>9} {:>9} {:>9}", "", "mean", "last 1%", "ratio");
    for (name, insert) in [("mayhap cuckoo", single), ("mayhap cuckoo batch", batch)] {
        let (mut means, mut lasts, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..plan.rounds {
            let (mut before, mut end) = (Stopwatch::default(), Stopwatch::default());
            let mut cuckoo = before.time(|| {
                let mut cuckoo = Cuckoo::new(plan.keys, FPR).expect("memory");
                insert(&mut cuckoo, first);
                cuckoo
            });
            end.time(|| insert(&mut cuckoo, last));
            let of_last = end.per_key(last.len() as u64).cpu;
            end.add(&before);
            let of_all = end.per_key(keys.len() as u64).cpu;
            means.push(of_all);
            lasts.push(of_last);
            ratios.push(of_last / of_all);
        }
        let middle = |values: &mut Vec<f64>| median(values).unwrap_or(f64::NAN);
        let (mean, last, ratio) = (middle(&mut means), middle(&mut lasts), middle(&mut ratios));
        println!("  {name:28} {mean:>9.1} {last:>9.1} {ratio:>8.1}x");
    }
    println!();
}
