//! `mayhap calc`: sizes and rates, before anything is built.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use mayhap::{BitmapSet, FAMILIES, Family, Knob, Layout, Plan, Spec, math};
use mayhap_eval::{Axis, BITMAP_BITS_PER_KEY, Chart, Scale, Series};
use serde_json::json;

use crate::cmd::families::{LETTERS, abilities, letters};
use crate::output::{is_stdout, write_picture};
use crate::{YES, numbers, report};

/// Size a filter: give two or three of -n, -p, --bits and --probes, get the rest
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mayhap calc -n 40M -p 1in1M\n  mayhap calc --size 64MiB -p 1e-6\n  mayhap calc -n 1M --bits 10M\n  mayhap calc -n 1M -p 1% --plot bits.svg\n  mayhap calc -n 1M -p 1% --family bloom,cuckoo"
)]
pub(crate) struct Args {
    /// Number of keys
    #[arg(short = 'n', long, value_name = "N", value_parser = numbers::capacity, allow_hyphen_values = true)]
    capacity: Option<u64>,
    /// False-positive rate
    #[arg(short = 'p', long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true)]
    fpr: Option<f64>,
    /// Number of bits
    #[arg(long, value_name = "BITS", value_parser = numbers::bits, allow_hyphen_values = true)]
    bits: Option<u64>,
    /// Memory, in place of --bits
    #[arg(long, value_name = "BYTES", value_parser = numbers::size, allow_hyphen_values = true, conflicts_with = "bits")]
    size: Option<u64>,
    /// Number of probes per key
    #[arg(long, value_name = "K", value_parser = numbers::probes, allow_hyphen_values = true)]
    probes: Option<u32>,
    /// Only these families, such as bloom,cuckoo
    ///
    /// [default: all, and the structures people usually start with]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = super::build::family_name)]
    family: Vec<&'static Family>,
    /// Number of all keys that exist, in the set or not, for the bound and the family universe
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_hyphen_values = true)]
    universe: Option<u64>,
    /// The keys are integers below N: as --universe, and the family bitmap is shown
    #[arg(long, value_name = "N", value_parser = numbers::count, allow_hyphen_values = true, conflicts_with = "universe")]
    integers: Option<u64>,
    /// Length of a key in bytes, for hash sets of keys
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(0..=1 << 30), default_value = "50")]
    key_bytes: u64,
    /// Draw bits per key against the rate into FILE (SVG)
    ///
    /// For all families and the bound. With - the picture goes to standard output, without the table, and --json to
    /// standard error.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Replace the file of --plot even if it is not an SVG image. Key files are never replaced
    #[arg(long, requires = "plot")]
    force: bool,
    /// Show all columns, however wide
    #[arg(long)]
    wide: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let mut spec = Spec::new();
    if let Some(capacity) = args.capacity {
        spec = spec.with_capacity(capacity);
    }
    if let Some(fpr) = args.fpr {
        spec = spec.with_fpr(fpr);
    }
    if let Some(bits) = args.bits.or(args.size.map(|bytes| bytes.saturating_mul(8))) {
        spec = spec.with_bits(bits);
    }
    if let Some(probes) = args.probes {
        spec = spec.with_probes(probes);
    }
    // What is wrong or missing is said once, by the family that uses all four numbers.
    let sized = spec.bloom()?;
    let (universe, mut others) = (args.universe.or(args.integers), None);
    if let Some(all) = universe {
        ensure!(
            sized.capacity <= all,
            "{} keys do not fit in a universe of {all}; --universe and --integers count the keys of the set, too",
            sized.capacity
        );
        others = Some(all - sized.capacity);
    }
    // The other families answer for the same number of keys, unless the memory was given: then each
    // says how many fit.
    if args.capacity.is_none() && args.bits.is_none() && args.size.is_none() {
        spec = spec.with_capacity(sized.capacity);
    }
    let is_bitmap = |family: &Family| family == BitmapSet::FAMILY;
    let chosen = |family: &&Family| match args.family.is_empty() {
        // Its bits are those of all integers up to the largest one, which only --integers tells.
        true => args.integers.is_some() || !is_bitmap(family),
        false => args.family.contains(family),
    };
    let spec_of = |family: &Family| match others.filter(|_| family.takes(Knob::Others)) {
        Some(others) => spec.with_others(others),
        None => spec,
    };
    let planned = |family: &'static Family| match args.integers.filter(|_| is_bitmap(family)) {
        Some(below) => {
            let mut rows = rows(family, &spec_of(family).with_capacity(below));
            rows.iter_mut().for_each(|row| row.plan.capacity = sized.capacity);
            rows
        }
        None => rows(family, &spec_of(family)),
    };
    let plans: Vec<Row> = FAMILIES.iter().copied().filter(chosen).flat_map(planned).collect();
    // A family that is asked for by name says why it has no row; in a list of all it is left out.
    for family in &args.family {
        if plans.iter().all(|row| row.family != *family) {
            (family.plan)(&spec_of(family)).with_context(|| family.name)?;
        }
    }
    let baselines = baselines(sized.capacity, args.key_bytes);
    let bloom_bytes = sized.bits as f64 / 8.0;
    let is_picture_printed = args.plot.as_deref().is_some_and(is_stdout);
    if let Some(path) = &args.plot {
        write_picture(path, &plot(sized.capacity)?, args.force)?;
    }

    if args.json {
        let families: Vec<_> = plans.iter().map(as_json).collect();
        let baselines: Vec<_> = baselines
            .iter()
            .map(|row| {
                let bits_per_key = 8.0 * row.bytes as f64 / sized.capacity as f64;
                json!({
                    "name": row.name, "bytes": row.bytes, "bits_per_key": bits_per_key, "fpr": row.fpr,
                    "times_bloom": row.bytes as f64 / bloom_bytes,
                })
            })
            .collect();
        let finite_bound = universe.map(|all| {
            json!({ "bits": math::lower_bound_bits_finite(all, sized.capacity, sized.fpr_asked), "universe": all })
        });
        let value = json!({
            "families": families, "finite_bound": finite_bound, "baselines": baselines,
            "some_collision": math::some_collision(sized.bits, sized.capacity),
        });
        match is_picture_printed {
            true => report::note_json(&value),
            false => report::print_json(&value)?,
        }
        return Ok(YES);
    }
    if is_picture_printed {
        return Ok(YES);
    }
    let bytes = sized.bits.div_ceil(8);
    writeln!(
        report::stdout(),
        "keys  {}\nrate  {}\nbound {} bits per key: no filter can be smaller\n{}size  {} bits of bloom: {} or {}",
        report::grouped(sized.capacity),
        report::rate(sized.fpr_asked),
        report::short(math::lower_bound_bits(1.0, sized.fpr_asked)),
        universe.map_or(String::new(), |all| finite_bound(all, sized.capacity, sized.fpr_asked)),
        report::grouped(sized.bits),
        report::decimal_bytes(bytes),
        report::bytes(bytes),
    )?;
    if sized.probes == 1 {
        let shared = math::some_collision(sized.bits, sized.capacity);
        writeln!(
            report::stdout(),
            "pairs {}: the chance that any two keys share a bit, which is not the rate",
            report::percent(shared)
        )?;
    }
    writeln!(report::stdout())?;
    print_plans(&plans, args)?;
    if !args.family.is_empty() {
        return Ok(YES);
    }
    writeln!(report::stdout(), "\nwithout a filter, keys of {} bytes:", args.key_bytes)?;
    let rows: Vec<Vec<String>> = baselines
        .iter()
        .map(|row| {
            let per_key = 8.0 * row.bytes as f64 / sized.capacity as f64;
            let error = if row.fpr < 1e-12 { "none".into() } else { report::rate(row.fpr) };
            let times = format!("{}x", report::short(row.bytes as f64 / bloom_bytes));
            vec![row.name.to_string(), report::short(per_key), report::bytes(row.bytes), error, times]
        })
        .collect();
    report::print_table(&["structure", "bits/key", "bytes", "error", "of bloom"], &rows, &[])?;
    Ok(YES)
}

/// The lower bound for a finite universe of keys.
fn finite_bound(all: u64, keys: u64, fpr: f64) -> String {
    let bits = math::lower_bound_bits_finite(all, keys, fpr);
    let whole = if bits < 1000.0 { report::measured(bits) } else { report::grouped(bits.ceil() as u64) };
    let per_key = report::measured(bits / keys as f64);
    format!("      {whole} bits in all, {per_key} per key, if there are only {} keys\n", report::grouped(all))
}

/// What people take before they know filters.
struct Baseline {
    name: &'static str,
    bytes: u64,
    fpr: f64,
}

/// The ladder down to a filter. Hash sets are those of hashbrown, which is the standard library's.
fn baselines(keys: u64, key_bytes: u64) -> Vec<Baseline> {
    // A pointer and a length.
    const STRING: u64 = 16;
    let digests = |bits: u32| math::hash_set_bytes(keys, u64::from(bits / 8));
    let bitmap = keys.saturating_mul(BITMAP_BITS_PER_KEY);
    vec![
        Baseline { name: DATABASE, bytes: database_bytes(keys, key_bytes), fpr: 0.0 },
        Baseline {
            name: "hash set of keys",
            bytes: math::hash_set_bytes(keys, STRING).saturating_add(keys.saturating_mul(key_bytes)),
            fpr: 0.0,
        },
        Baseline { name: "hash set of 160-bit digests", bytes: digests(160), fpr: 0.0 },
        Baseline {
            name: "hash set of 128-bit digests",
            bytes: digests(128),
            fpr: math::hash_width_floor(keys as f64, 128),
        },
        Baseline {
            name: "hash set of 64-bit digests",
            bytes: digests(64),
            fpr: math::hash_width_floor(keys as f64, 64),
        },
        Baseline {
            name: "half-full table of 64-bit digests",
            bytes: keys.saturating_mul(16),
            fpr: math::hash_width_floor(keys as f64, 64),
        },
        Baseline { name: IDS, bytes: ids_bytes(keys), fpr: 0.0 },
        Baseline {
            name: "bitmap, one hash, 5 bits a key",
            bytes: bitmap.div_ceil(8),
            fpr: math::one_hash_bitmap_fpr(bitmap, keys as f64),
        },
    ]
}

/// The first step of the ladder.
pub(super) const DATABASE: &str = "database table with an index";

/// What it takes: each key stands in the table and in the index, with 9 bytes of both. SQLite 3 takes 118 bytes for a text of
/// 50, the index made last.
pub(super) fn database_bytes(keys: u64, key_bytes: u64) -> u64 {
    keys.saturating_mul(2).saturating_mul(key_bytes.saturating_add(9))
}

/// For keys that have a number already.
pub(super) const IDS: &str = "list of 4-byte ids";

pub(super) fn ids_bytes(keys: u64) -> u64 {
    keys.saturating_mul(4)
}

/// Bits per key against the rate, for so many keys.
fn plot(keys: u64) -> Result<String> {
    // From a third down to one in a million, four a power of ten.
    let rates: Vec<f64> = (2..=24).map(|step| 10f64.powf(-0.25 * f64::from(step))).collect();
    let bound = rates.iter().map(|&rate| (rate, math::lower_bound_bits(1.0, rate))).collect();
    let mut series = vec![Series::bound("bound: log2(1/p)", bound)];
    for family in FAMILIES.iter().filter(|family| !family.can.exact) {
        let point = |&rate: &f64| Some((rate, (family.plan)(&Spec::sized(keys, rate)).ok()?.bits_per_key()));
        let points: Vec<(f64, f64)> = rates.iter().filter_map(point).collect();
        if points.len() > 1 {
            series.push(Series::line(family.name, points));
        }
    }
    let chart = Chart {
        title: format!("{} keys", report::grouped(keys)),
        x: Axis { label: "false-positive rate".into(), scale: Scale::Logarithmic },
        // Families that count or label would rule a linear one.
        y: Axis { label: "bits per key".into(), scale: Scale::Logarithmic },
        series,
        landmarks: Vec::new(),
    };
    Ok(chart.to_svg()?)
}

/// What one family would build, in one of its layouts if it has a choice.
struct Row {
    family: &'static Family,
    layout: Option<Layout>,
    plan: Plan,
}

/// One row for each layout, or one if there is no choice. A family that cannot give what is requested has none.
fn rows(family: &'static Family, spec: &Spec) -> Vec<Row> {
    let plans = match family.takes(Knob::Layout) {
        true => Vec::from(Layout::ALL.map(|layout| (Some(layout), (family.plan)(&spec.with_layout(layout))))),
        false => vec![(None, (family.plan)(spec))],
    };
    plans.into_iter().filter_map(|(layout, plan)| Some(Row { family, layout, plan: plan.ok()? })).collect()
}

fn overhead(plan: &Plan) -> Option<f64> {
    // An exact set has no rate to compare with, and a filter that admits all keys no bound.
    (plan.fpr_asked > 0.0 && plan.fpr_asked < 1.0)
        .then(|| math::overhead(plan.bits as f64, plan.capacity as f64, plan.fpr_asked))
}

fn as_json(Row { family, layout, plan }: &Row) -> serde_json::Value {
    json!({
        "family": family.name,
        "layout": layout.map(Layout::name),
        "capacity": plan.capacity,
        "fpr": plan.fpr_asked,
        "fpr_at_capacity": plan.fpr,
        "bits": plan.bits,
        "bytes": plan.bits.div_ceil(8),
        "probes": plan.probes,
        "bits_per_key": plan.bits_per_key(),
        "overhead": overhead(plan),
        "inserts": family.can.inserts,
        "removes": family.can.removes,
        "counts": family.can.counts,
        "labels": family.can.labels,
        "merges": family.can.merges,
        "grows": family.can.grows,
        "exact": family.can.exact,
    })
}

/// Prints the table of families. All columns need 140 characters. In 80 there is no place for the number of keys if that was
/// given, nor for the size and what it is over the bound if the size was.
fn print_plans(plans: &[Row], args: &Args) -> Result<()> {
    let is_sized = args.bits.is_some() || args.size.is_some();
    let (has_keys, has_size) = (args.wide || is_sized, args.wide || !is_sized);
    type Cell = fn(&Row) -> String;
    let columns: [(&str, bool, Cell); 8] = [
        ("family", true, |row| report::family(row.family.name, row.layout)),
        ("keys", has_keys, |row| report::grouped(row.plan.capacity)),
        ("bits/key", true, |row| report::short(row.plan.bits_per_key())),
        ("size", has_size, |row| report::bytes(row.plan.bits.div_ceil(8))),
        ("probes", true, |row| row.plan.probes.map_or("–".into(), |probes| probes.to_string())),
        ("rate", true, |row| match row.family.can.exact {
            true => "exact".into(),
            false => report::rate(row.plan.fpr),
        }),
        ("/bound", has_size, |row| overhead(&row.plan).map_or("–".into(), report::short)),
        ("can", true, if args.wide { |row| abilities(row.family) } else { |row| letters(row.family) }),
    ];
    let columns: Vec<_> = columns.into_iter().filter(|(_, is_shown, _)| *is_shown).collect();
    let head: Vec<&str> = columns.iter().map(|(name, ..)| *name).collect();
    let rows: Vec<Vec<String>> =
        plans.iter().map(|row| columns.iter().map(|(.., cell)| cell(row)).collect()).collect();
    report::print_table(&head, &rows, &[head.len() - 1])?;
    if args.family.is_empty() && !args.wide {
        writeln!(report::stdout(), "\n{LETTERS}")?;
        if has_size {
            writeln!(report::stdout(), "/bound: the size over the lower bound")?;
        }
    }
    Ok(())
}
