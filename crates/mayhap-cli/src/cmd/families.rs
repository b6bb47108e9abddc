//! `mayhap families`: what there is to choose from.

use std::io::Write;

use anyhow::Result;
use mayhap::{FAMILIES, Family};
use serde_json::json;

use crate::cmd::build::family_name;
use crate::{YES, report};

/// List the families, what each can do and what it costs
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mayhap families\n  mayhap families --wide\n  mayhap families bloom cuckoo\n  \
mayhap families --json"
)]
pub(crate) struct Args {
    /// Only these families, with all that is known of them [default: a table of all]
    #[arg(value_name = "NAME", value_parser = family_name)]
    names: Vec<&'static Family>,
    /// All columns, however wide: the cost of operations, the size
    #[arg(long)]
    wide: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    fn is_chosen(&self, family: &&Family) -> bool {
        self.names.is_empty() || self.names.contains(family)
    }
}

/// What the letters of a table mean.
pub(crate) const LETTERS: &str = "can: i insert, r remove, c count, l label, m merge, g grow";

const QUANTITIES: &str = "n keys, k probes, p false-positive rate, U largest integer, m other known keys";

/// What a family can do, in a letter each.
pub(crate) fn letters(family: &Family) -> String {
    let can = family.can;
    let letters = [
        (can.inserts, 'i'),
        (can.removes, 'r'),
        (can.counts, 'c'),
        (can.labels, 'l'),
        (can.merges, 'm'),
        (can.grows, 'g'),
    ];
    letters.map(|(can, letter)| if can { letter } else { '-' }).iter().collect()
}

/// What a family can do, in words.
pub(crate) fn abilities(family: &Family) -> String {
    let can = family.can;
    let words = [
        (can.inserts, "insert"),
        (can.removes, "remove"),
        (can.counts, "count"),
        (can.labels, "label"),
        (can.merges, "merge"),
        (can.intersects, "intersect"),
        (can.subtracts, "subtract"),
        (can.folds, "fold"),
        (can.grows, "grow"),
    ];
    words.iter().filter(|(can, _)| *can).map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    if args.json {
        let families: Vec<_> = FAMILIES
            .iter()
            .filter(|family| args.is_chosen(family))
            .map(|family| {
                json!({
                    "family": family.name, "summary": family.summary, "exact": family.can.exact,
                    "inserts": family.can.inserts, "removes": family.can.removes,
                    "counts": family.can.counts, "labels": family.can.labels,
                    "merges": family.can.merges, "intersects": family.can.intersects,
                    "subtracts": family.can.subtracts, "folds": family.can.folds,
                    "grows": family.can.grows,
                    "query": family.cost.query, "insert": family.cost.insert, "space": family.cost.space,
                })
            })
            .collect();
        report::print_json(&json!({ "families": families }))?;
        return Ok(YES);
    }
    if args.wide {
        print_wide(args)?;
    } else if args.names.is_empty() {
        let cells = |family: &&Family| vec![family.name.into(), letters(family), family.summary.into()];
        let rows: Vec<Vec<String>> = FAMILIES.iter().map(cells).collect();
        report::print_table(&["family", "can", "what it is"], &rows, &[1, 2])?;
        writeln!(report::stdout(), "\n{LETTERS}\nMore: mayhap families NAME, mayhap families --wide")?;
    } else {
        print_each(&args.names)?;
    }
    Ok(YES)
}

fn print_wide(args: &Args) -> Result<()> {
    let rows: Vec<Vec<String>> = FAMILIES
        .iter()
        .filter(|family| args.is_chosen(family))
        .map(|family| {
            let cost = family.cost;
            let cells = [family.name, cost.query, cost.insert, cost.space];
            let mut row: Vec<String> = cells.iter().map(ToString::to_string).collect();
            row.extend([abilities(family), family.summary.to_string()]);
            row
        })
        .collect();
    let head = ["family", "query", "insert", "bits", "can", "what it is"];
    report::print_table(&head, &rows, &[1, 2, 3, 4, 5])?;
    writeln!(report::stdout(), "\n{QUANTITIES}")?;
    Ok(())
}

fn print_each(families: &[&Family]) -> Result<()> {
    for family in families {
        let can = Some(abilities(family)).filter(|can| !can.is_empty()).unwrap_or("only lookups".into());
        report::print_pairs(&[
            ("family", family.name.into()),
            ("what it is", family.summary.into()),
            ("can", can),
            ("query", family.cost.query.into()),
            ("insert", family.cost.insert.into()),
            ("bits", family.cost.space.into()),
        ])?;
        writeln!(report::stdout())?;
    }
    writeln!(report::stdout(), "{QUANTITIES}")?;
    Ok(())
}
