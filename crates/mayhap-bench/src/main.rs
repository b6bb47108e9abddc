//! Comparison of mayhap with its peers and with physical limits: everything in one run, repetitions
//! interleaved, medians and minima shown. Figures of different runs do not compare: the machines are noisy.
//!
//! `cargo xtask bench` runs all; `--quick` at a tiny size, as a test that the harness works. The method
//! and how to read the tables: `docs/speed.md`.

mod build_file;
mod contenders;
mod cuckoo;
mod dedup;
mod growth;
mod instructions;
mod keys;
mod known;
mod limits;
mod machine;
mod measure;
mod memory;
mod options;
mod programs;
mod report;
mod shifting;
mod threads;

use anyhow::{Result, ensure};

use crate::contenders::{Contender, Task};
use crate::keys::{BenchKey, KeySet, Kind, Text};
use crate::measure::{Plan, Rows};
use crate::options::{Command, Options, USAGE};
use crate::report::Csv;

/// How large: in full, or as a test that the harness works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) quick: bool,
}

impl Size {
    /// The full number, or a tiny one.
    pub(crate) fn keys(self, full: u64) -> u64 {
        if self.quick { full / 1000 } else { full }
    }

    pub(crate) fn repetitions(self) -> usize {
        if self.quick { 1 } else { 5 }
    }
}

fn main() -> Result<()> {
    if instructions::row()? {
        return Ok(());
    }
    let options = match options::parse(std::env::args().skip(1))? {
        Command::Help => {
            print!("{USAGE}");
            return Ok(());
        }
        Command::List => {
            // The names depend on the rate only where a peer offers a fixed one.
            let names = names(&[0.01, 0.001]);
            names.iter().for_each(|name| println!("{name}"));
            return Ok(());
        }
        Command::Run(options) => options,
    };
    if memory::is_steady() {
        if options.filters {
            filters(&options)?;
        }
        if options.cuckoo {
            cuckoo::run(&options)?;
        }
        if options.shifting {
            shifting::run(&options)?;
        }
        if options.growth {
            growth::run(&options)?;
        }
        if options.static_ {
            known::run(&options)?;
        }
        return Ok(());
    }
    println!("{}\n", machine::description());
    if options.filters {
        check_names(&options)?;
    }
    let own = options.cuckoo || options.shifting || options.growth || options.static_;
    if options.filters || own {
        memory::run_steady()?;
    }
    if options.threads {
        threads::run(options.size)?;
    }
    if options.build_file {
        build_file::run(options.size)?;
    }
    if options.instructions {
        instructions::run(options.size, options.record)?;
    }
    if options.dedup {
        dedup::run(options.size, &options.text)?;
    }
    Ok(())
}

/// The names of all contenders at these rates.
fn names(rates: &[f64]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for &fpr in rates {
        for contender in contenders::table::<u64>(Task { kind: Kind::U64, keys: 1, fpr }) {
            if !names.contains(&contender.name) {
                names.push(contender.name);
            }
        }
    }
    names
}

fn check_names(options: &Options) -> Result<()> {
    let known = names(&options.rates);
    for wanted in &options.only {
        ensure!(
            known.iter().any(|name| name.contains(wanted.as_str())),
            "no contender has {wanted:?} in its name; there are: {}",
            known.join(", ")
        );
    }
    Ok(())
}

/// Every contender, for each kind, number of keys and rate; then the ratios, which are what counts.
fn filters(options: &Options) -> Result<()> {
    let mut csv = Csv::create(options.csv.as_deref())?;
    let mut results: Vec<Rows> = Vec::new();
    for &kind in &options.kinds {
        for &keys in &options.keys {
            let plan = Plan::new(keys, options.repetitions, options.size);
            match kind {
                Kind::U64 => {
                    let set = KeySet::numbers(plan);
                    compare(options, kind, plan, &set, &mut csv, &mut results)?;
                }
                Kind::Url => {
                    let (present, absent) = Text::pair(plan);
                    let set = KeySet::texts(plan, &present, &absent);
                    compare(options, kind, plan, &set, &mut csv, &mut results)?;
                }
            }
        }
    }
    report::print_ratios(&results);
    Ok(())
}

fn compare<K: BenchKey>(
    options: &Options,
    kind: Kind,
    plan: Plan,
    set: &KeySet<K>,
    csv: &mut Csv,
    results: &mut Vec<Rows>,
) -> Result<()> {
    for &fpr in &options.rates {
        let task = Task { kind, keys: plan.keys, fpr };
        let mut table = contenders::table::<K>(task);
        let wanted = |contender: &Contender<'_, K>| {
            options.only.is_empty() || options.only.iter().any(|part| contender.name.contains(part.as_str()))
        };
        table.retain(wanted);
        let rows = measure::run(task, plan, &table, set);
        report::print_table(&rows);
        csv.append(&rows)?;
        results.push(rows);
    }
    Ok(())
}
