//! `mayhap families`: what there is to choose from.

use std::io::Write;

use anyhow::Result;
use mayhap::Family;
use mayhap::registry::FAMILIES;
use serde_json::json;

use crate::{YES, report};

/// List the families, what each can do and what it costs
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mayhap families\n  mayhap families --wide\n  mayhap families bloom cuckoo\n  \
mayhap families --json"
)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
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
    let rows: Vec<Vec<String>> = FAMILIES
        .iter()
        .map(|family| {
            let cost = family.cost;
            let cells = [family.name, cost.query, cost.insert, cost.space];
            let mut row: Vec<String> = cells.iter().map(ToString::to_string).collect();
            row.extend([abilities(family), family.summary.to_string()]);
            row
        })
        .collect();
    report::print_table(
        &["family", "query", "insert", "bits", "can", "what it is"],
        &rows,
        &[1, 2, 3, 4, 5],
    )?;
    writeln!(
        report::stdout(),
        "\nn keys, k probes, p false-positive rate, U the largest integer, m others of a universe"
    )?;
    Ok(YES)
}
