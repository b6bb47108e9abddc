//! `growth`: a filter that grew from 1024 keys, against one that was made for all of them at once and against a peer that
//! grew as well; and how much memory the growth takes at its height.

use anyhow::Result;
use mayhap::Expanding;

use crate::contenders::{self, EXPANDING, GROWN_FROM, QFILTER_GROWN, Task};
use crate::keys::{KeySet, Kind};
use crate::measure::{self, Operation, Plan, Rows};
use crate::memory;
use crate::options::Options;
use crate::report::{self, Csv};

const BATCH: &str = "mayhap expanding batch";
const AT_ONCE: &str = "mayhap expanding at once";
const AT_ONCE_BATCH: &str = "mayhap expanding at once batch";

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut csv = Csv::create(options.csv.as_deref().filter(|_| !options.filters && !options.cuckoo))?;
    let numbers = if options.keys_given { options.keys.clone() } else { vec![options.size.keys(10_000_000)] };
    for keys in numbers {
        for &fpr in &options.rates {
            let plan = Plan::new(keys, options.repetitions, options.size);
            let set = KeySet::numbers(plan);
            let task = Task { kind: Kind::U64, keys, fpr };
            let mut table = contenders::table::<u64>(task);
            table
                .retain(|contender| contender.name.starts_with(EXPANDING) || contender.name == QFILTER_GROWN);
            table.extend(contenders::expanding(task, [AT_ONCE, AT_ONCE_BATCH], keys));
            let rows = measure::run(task, plan, &table, &set);
            report::print_table(&rows);
            csv.append(&rows)?;
            against_at_once(&rows);
            peak(&set.present, fpr);
            report::print_ratios(&[rows]);
        }
    }
    Ok(())
}

/// How many times as long questions take after growth.
fn against_at_once(rows: &Rows) {
    let row = |name: &str| rows.rows.iter().find(|row| row.name == name).expect("in the table");
    println!("grown, times the time of the one made at once:");
    for (grown, at_once) in [(EXPANDING, AT_ONCE), (BATCH, AT_ONCE_BATCH)] {
        print!("  {grown:28}");
        for operation in Operation::ALL {
            let cpu = |name| report::cpu(row(name), operation);
            let ratio = report::ratio(&cpu(grown), &cpu(at_once)).unwrap_or(f64::NAN);
            print!("  {} {ratio:.2}x", operation.name());
        }
        println!();
    }
}

/// The most memory at any time of the growth, against the filter at its end.
fn peak(keys: &[u64], fpr: f64) {
    let (filter, peak) = memory::peak_of(|| {
        let mut filter = Expanding::new(GROWN_FROM, fpr).expect("memory");
        filter.insert_all(keys).expect("memory");
        filter
    });
    let bytes = filter.size_in_bytes();
    let doublings = filter.doublings().made;
    match peak {
        Some(peak) => println!(
            "memory: {bytes} bytes after {doublings} doublings, at most {peak} on the way: {:.2} times\n",
            peak as f64 / bytes as f64
        ),
        None => println!("memory: {bytes} bytes after {doublings} doublings\n"),
    }
}
