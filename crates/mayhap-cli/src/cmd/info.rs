//! `mayhap info`: what a filter file is and how full.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use mayhap::key_rules::{Cut, JsonKeys, KeyRules};
use mayhap::math::AreaRates;
use mayhap::wire::Header;
use mayhap::{
    AnyFilter, AreaReport, AreasReport, Associate, CounterReport, CountingRule, Details, Doublings,
    LayerReport, Layout, Summing,
};
use mayhap_store::{Access, Check, Checked, open_checked, open_sealed};
use serde_json::{Value, json};

use crate::cmd::build::is_same_file;
use crate::formats::{FileFormat, FormatArgs};
use crate::output::{is_stdout, write_picture};
use crate::same_file::must_not_be_output;
use crate::secret::SecretArgs;
use crate::spelling::{as_options, described};
use crate::{YES, report};

/// Show a filter file's family, size, fill and rates
///
/// Reads only the header, however large the file is, and the bits of a `blocked` filter of at most 1 MiB. The file of
/// another program is read as a whole.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap info urls.mayhap\n  mayhap info --verify urls.mayhap\n  \
mayhap info urls.mayhap --heatmap fill.svg\n  mayhap info urls.mayhap --json")]
pub(crate) struct Args {
    /// The filter file
    filter: PathBuf,
    /// Read the whole file and verify its checksum
    #[arg(long)]
    verify: bool,
    /// Draw the fill of each part of the filter into FILE (SVG)
    ///
    /// The share of set bits, from the start of the filter to its end. With - the picture goes to standard output, without
    /// a report, and --json to standard error.
    #[arg(long, value_name = "FILE")]
    heatmap: Option<PathBuf>,
    /// Replace the file of --heatmap even if it is not an SVG image. The filter and key files are never replaced
    #[arg(long, requires = "heatmap")]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    secret: SecretArgs,
    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let access = if args.verify { Access::Read } else { Access::Map };
    let path = &args.filter;
    must_not_be_output(None, [&**path])?;
    let format = args.format.of(path)?;
    // What is known without the secret is shown without it; one that is given must be the right one.
    let opened = match (format, args.secret.is_given()) {
        (FileFormat::Mayhap, true) => {
            args.secret.open(path, |secret| open_checked(path, access, Check::Header, secret))?
        }
        (FileFormat::Mayhap, false) => open_sealed(path, access, Check::Header)?,
        _ => args.format.open_foreign(path, format, access, None)?,
    };
    let (filter, checked) = (&*opened.filter, opened.checked);
    let is_picture_printed = args.heatmap.as_deref().is_some_and(is_stdout);
    if let Some(picture) = &args.heatmap {
        if is_same_file(path, picture) {
            bail!("{}: is the filter; draw it into another file", picture.display());
        }
        write_picture(picture, &heatmap(filter, &args.filter.to_string_lossy()), args.force)?;
    }
    let report = filter.report();
    let is_ours = format == FileFormat::Mayhap;
    let Details { layout, counters, slots, areas, layers, window, doublings, others, .. } = filter.details();
    let exceptions = filter.exceptions().map_or(0, |exceptions| exceptions.keys);
    let sets = filter
        .as_associate()
        .map(Associate::set_names)
        .filter(|names| names.iter().any(|name| !name.is_empty()));
    let hashing = filter.hashing();
    let key_id = opened.key_id.map(|id| format!("{id:016x}"));
    let per_key = report.estimated_len.filter(|&len| len >= 1.0).map(|len| report.bits as f64 / len);
    let seed = hashing.seed().map(|seed| format!("{seed:016x}"));
    if args.json {
        let mut value = json!({
            "format": format.name(),
            "rule": filter.program(),
            "family": filter.family().name,
            "layout": layout.map(Layout::name),
            "capacity": report.capacity,
            "inserted": report.inserted,
            "estimated_len": report.estimated_len,
            "bits": report.bits,
            "bytes": report.bits.div_ceil(8),
            "bits_per_key": per_key,
            "probes": report.probes,
            "counters": counters.map(|c| c.counters),
            "counter_bits": counters.and_then(|c| c.bits),
            "saturated_counters": counters.map(|c| c.saturated),
            "overflowed_counters": counters.map(|c| c.overflowed),
            "counting_rule": counters.and_then(|c| c.rule).map(CountingRule::name),
            "degraded": counters.map(|c| c.degraded),
            "label_bits": areas.as_ref().map(|areas| areas.label_bits),
            "emptiness": areas.as_ref().map(|areas| areas.emptiness),
            "safeness": areas.as_ref().map(|areas| areas.safeness),
            "safeness_expected": areas.as_ref().map(|areas| areas.safeness_expected),
            "mislabelled": areas.as_ref().map(|areas| areas.mislabelled),
            "areas": areas.as_ref().map(areas_json),
            "fill": report.fill,
            "layers": (!layers.is_empty()).then(|| layers.iter().map(layer_as_json).collect::<Vec<_>>()),
            "window": window.map(|window| json!({
                "remembered": window.remembered, "forgotten": window.forgotten,
                "generation": window.generation, "slices": window.slices,
            })),
            "slots": slots.map(|slots| slots.slots),
            "load": slots.map(|slots| slots.load()),
            "evictions": slots.and_then(|slots| slots.evictions),
            "doublings": doublings.map(|doublings| doublings.made),
            "planned_doublings": doublings.map(|doublings| doublings.planned),
            "fpr_asked": report.fpr_asked,
            "fpr_now": report.fpr_now,
            "fpr_at_capacity": report.fpr_at_capacity,
            "over_capacity": report.over_capacity(),
            "others": others,
            "guarantee": report.guarantee.text(),
            "hash": hashing.name(),
            "seed": seed,
            "version": is_ours.then_some(1),
            "checksum": report::checked(checked),
        });
        // Set apart: the macro has a limit.
        value["capacity_guessed"] = filter.guesses_capacity().into();
        value["sets"] = sets.map(|names| names.to_vec()).into();
        value["fpr_interval"] = json!(report.fpr_interval);
        value["keyed"] = key_id.is_some().into();
        value["key_id"] = key_id.into();
        value["exceptions"] = exceptions.into();
        if let Some(KeyRules { spelling, cut, is_state, .. }) = filter.key_rules() {
            value["spelling"] = json!({
                "options": as_options(spelling), "crlf": spelling.crlf, "trim": spelling.trim,
                "ignore_case": spelling.ignore_case, "as": spelling.kind.name(), "url": spelling.url.is_some(),
                "strip_query": spelling.url.as_deref().filter(|list| !list.is_empty()),
                "json": match spelling.json {
                    JsonKeys::None => None,
                    JsonKeys::Strings => Some("strings"),
                    JsonKeys::Mixed => Some("values"),
                },
            });
            value["cut"] = json!({
                "delimiter": cut.delimiter.as_deref().map(String::from_utf8_lossy), "field": cut.field,
                "header": cut.header, "json_key": cut.pointer,
            });
            value["state"] = (*is_state).into();
        }
        match is_picture_printed {
            true => report::note_json(&value),
            false => report::print_json(&value)?,
        }
        return Ok(YES);
    }
    if is_picture_printed {
        return Ok(YES);
    }
    let unknown = || "unknown".to_string();
    let hash = match (key_id, seed) {
        (Some(id), _) => format!("{}, keyed, key id {id}", hashing.name()),
        (_, Some(seed)) => format!("{}, seed {seed}", hashing.name()),
        (_, None) => hashing.name().to_string(),
    };
    // What the file does not say is what it would be at the best rate for its probes.
    let guess = if filter.guesses_capacity() { "; a guess, the file does not say it" } else { "" };
    let mut pairs = vec![("family", format!("{} ({})", filter.family().name, filter.family().summary))];
    if let Some(layout) = layout {
        pairs.push(("layout", layout.name().to_string()));
    }
    pairs.extend(
        filter.program().map(|rule| ("rule", format!("{rule}: hashed and probed as that program does"))),
    );
    pairs.extend([
        ("capacity", format!("{}{guess}", report::counted(report.capacity, "key"))),
        ("inserted", report.inserted.map_or_else(unknown, report::grouped)),
        (
            "estimated",
            report.estimated_len.map_or_else(unknown, |len| report::counted(len.round() as u64, "key")),
        ),
        (
            "size",
            format!("{} bits, {}", report::grouped(report.bits), report::bytes(report.bits.div_ceil(8))),
        ),
        ("bits per key", per_key.map_or_else(unknown, report::short)),
    ]);
    if let Some(probes) = report.probes {
        pairs.push(("probes", probes.to_string()));
    }
    if let Some(counters) = counters {
        pairs.push(("counters", describe(&counters)));
        pairs.push(("saturated", report::grouped(counters.saturated)));
        if let Some(rule) = counters.rule {
            let merged =
                if counters.degraded { ", merged: counts are less exact than it promises" } else { "" };
            pairs.push(("counting rule", format!("{}{merged}", rule.name())));
        }
    }
    pairs.extend(sets.map(|names| ("sets", names.join(", "))));
    if let Some(areas) = &areas {
        pairs.push(("areas", format!("{}, labels of {} bits", areas.areas.len(), areas.label_bits)));
        pairs.push(("emptiness", report::percent(areas.emptiness)));
        pairs.push((
            "safeness",
            format!(
                "{} that all labels are right (expected {}); about {} keys have a higher label",
                report::percent(areas.safeness),
                report::percent(areas.safeness_expected),
                report::short(areas.mislabelled),
            ),
        ));
    }
    if !layers.is_empty() {
        pairs.push(("layers", layers.len().to_string()));
        pairs.extend(layers.iter().map(|layer| ("", describe_layer(layer))));
    }
    if let Some(window) = window {
        let [remembered, forgotten, generation] =
            [window.remembered, window.forgotten, window.generation].map(report::grouped);
        pairs.push((
            "window",
            format!(
                "the last {remembered} keys, and nothing of those before the last {forgotten}; {} slices, {generation} keys \
                 a generation",
                window.slices
            ),
        ));
    }
    if let Some(slots) = slots {
        let (used, all) = (report::grouped(slots.used), report::grouped(slots.slots));
        pairs.push(("load", format!("{}, {used} of {all} slots", report::percent(slots.load()))));
        pairs.extend(slots.evictions.map(|evictions| ("evictions", report::grouped(evictions))));
    } else {
        pairs.push(("fill", report::percent(report.fill)));
    }
    pairs.extend(others.map(|others| ("known others", report::grouped(others))));
    pairs.extend(doublings.map(|Doublings { made, planned, .. }| {
        ("doublings", format!("{made}; the rate is kept through {planned}"))
    }));
    if exceptions > 0 {
        let size = report::bytes(16 * exceptions);
        pairs.push((
            "exceptions",
            format!("{}, {size}, answered no exactly", report::counted(exceptions, "key")),
        ));
    }
    if let Some(rules) = filter.key_rules() {
        pairs.push(("keys", format!("spelled {}", as_options(&rules.spelling))));
        if rules.cut != Cut::default() {
            pairs.push(("cut from", described(&rules.cut)));
        }
        if rules.is_state {
            pairs.push(("made by", "mayhap dedup, as a state".to_string()));
        }
    }
    pairs.extend([
        ("requested", format!("{}{guess}", report::rate(report.fpr_asked))),
        ("rate now", report::rate_now(&report)),
        ("at capacity", report::rate_at_capacity(&report)),
        ("guarantee", report.guarantee.text().to_string()),
        ("hash", hash),
        ("format", if is_ours { "mayhap, version 1".to_string() } else { format.name().to_string() }),
        ("checksum", explain(checked).to_string()),
    ]);
    if report.over_capacity() {
        pairs.push(("warning", "over capacity: the rate is above the requested one".to_string()));
    }
    report::print_pairs(&pairs)?;
    if let Some(areas) = &areas {
        print_areas(areas)?;
    }
    Ok(YES)
}

/// Rows and columns of the picture.
const TILES: (usize, usize) = (32, 64);

/// A tile for each part of the payload: white if none of its bits is set, dark if all are. In a filter whose hash is good all
/// tiles of bits look alike; what is full in front and empty behind was crafted, cut or badly hashed.
fn heatmap(filter: &dyn AnyFilter, name: &str) -> String {
    const SIDE: usize = 12;
    let encoded = mayhap::encode(filter, Summing::Skip);
    let header = encoded.header().len();
    let mut bytes = encoded.to_vec().split_off(header);
    // Without the sections behind it.
    let payload = Header::decode(encoded.header(), encoded.len()).map(|header| header.payload.length);
    bytes.truncate(payload.ok().and_then(|length| usize::try_from(length).ok()).unwrap_or(bytes.len()));
    // At least a byte to a tile: a small filter has fewer.
    let (rows, columns) = if bytes.len() >= TILES.0 * TILES.1 {
        TILES
    } else {
        (bytes.len().div_ceil(TILES.1).max(1), TILES.1)
    };
    let (width, height) = (columns * SIDE, rows * SIDE + 24);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let tiles = (rows * columns).min(bytes.len());
    for tile in 0..tiles {
        let part = &bytes[bytes.len() * tile / tiles..bytes.len() * (tile + 1) / tiles];
        let ones: u64 = part.iter().map(|byte| u64::from(byte.count_ones())).sum();
        let share = ones as f64 / (8 * part.len()) as f64;
        let shade = |dark: f64| (255.0 + share * (dark - 255.0)).round() as u8;
        let (x, y) = (tile % columns * SIDE, tile / columns * SIDE);
        svg.push_str(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"#{:02x}{:02x}{:02x}\"><title>{}</title></rect>\n",
            shade(8.0),
            shade(48.0),
            shade(107.0),
            report::percent(share),
        ));
    }
    let name = report::visible(name).replace('&', "&amp;").replace('<', "&lt;");
    let (low, fill) = (rows * SIDE + 16, report::percent(filter.report().fill));
    svg.push_str(&format!("<text x=\"4\" y=\"{low}\">{name}: fill {fill}</text>\n</svg>\n"));
    svg
}

fn areas_json(report: &AreasReport<'_>) -> Vec<Value> {
    let rates = |rates: &AreaRates| {
        json!({
            "cells": rates.cells, "fpr": rates.fpr, "isep": rates.isep, "emersion": rates.emersion,
            "safeness": rates.safeness,
        })
    };
    let area = |area: &AreaReport<'_>| {
        json!({
            "area": area.area, "name": area.name, "inserted": area.inserted, "cells": area.cells,
            "self_collisions": area.self_collisions, "expected": rates(&area.expected),
            "now": rates(&area.now),
        })
    };
    report.areas.iter().map(area).collect()
}

/// A table of those that have a name or keys: rates as expected from the numbers of keys, and as the cells say.
fn print_areas(report: &AreasReport<'_>) -> std::io::Result<()> {
    let shown = report.areas.iter().filter(|area| area.inserted > 0 || !area.name.is_empty());
    let row = |area: &AreaReport<'_>| {
        let both = |of: fn(&AreaRates) -> f64| {
            [report::short(of(&area.expected)), report::short(of(&area.now))].join(" / ")
        };
        vec![
            area.area.to_string(),
            area.name.to_string(),
            report::grouped(area.inserted),
            report::grouped(area.cells),
            both(|rates| rates.fpr),
            both(|rates| rates.isep),
            both(|rates| rates.safeness),
        ]
    };
    let rows: Vec<Vec<String>> = shown.map(row).collect();
    writeln!(report::stdout(), "\nrates of each area: expected / now")?;
    report::print_table(
        &["area", "label", "keys", "cells", "told falsely", "told higher", "none told higher"],
        &rows,
        &[1],
    )
}

fn describe(counters: &CounterReport) -> String {
    let number = report::grouped(counters.counters);
    match counters.bits {
        Some(bits) => format!("{number} of {bits} bits"),
        None => format!("{number} of 4 bits, and {} of them have more", report::grouped(counters.overflowed)),
    }
}

fn describe_layer(layer: &LayerReport) -> String {
    format!(
        "{} of {}, {}, {}, fill {}, rate now {}",
        report::grouped(layer.keys),
        report::counted(layer.capacity, "key"),
        report::bytes(layer.bits.div_ceil(8)),
        report::counted(layer.probes.into(), "probe"),
        report::percent(layer.fill),
        report::rate(layer.fpr_now),
    )
}

fn layer_as_json(layer: &LayerReport) -> Value {
    json!({
        "capacity": layer.capacity, "keys": layer.keys, "bits": layer.bits, "probes": layer.probes,
        "fill": layer.fill, "fpr_now": layer.fpr_now,
    })
}

fn explain(checked: Checked) -> &'static str {
    match checked {
        Checked::Header => "header-ok (--verify reads the rest)",
        Checked::All => "ok",
        Checked::Unsummed => "unsummed (updated in place; a filter built from the keys has a checksum)",
        Checked::Interrupted => "interrupted (a writer died; no key is lost, the next add renews the counts)",
        Checked::BeingWritten => "being written (another process is adding keys; no key is lost)",
        Checked::Nothing => "none (files of this format have no checksum)",
    }
}
