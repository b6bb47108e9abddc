//! `mayhap advise`: which filter do I want?

use std::io::Write;

use anyhow::Result;
use mayhap::advise::{Advice, Beyond, Choice, First, Needs, Reason, advise};
use mayhap::{CountingRule, Hashing, Layout, Make, math};
use serde_json::{Value, json};

use crate::{YES, numbers, report};

/// Recommend a filter family: its size, the build command and two alternatives
///
/// Describe your needs as options; the first matching rule wins. If an exact set fits --memory, it is recommended.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap advise -n 10M -p 0.001%\n  mayhap advise -n 1M --removable\n  \
mayhap advise -n 1G -p 0.4% --static --smallest\n  mayhap advise --grow --removable\n  \
mayhap advise -n 100M --memory 64MiB\n  mayhap advise --window 1M -p 1%")]
pub(crate) struct Args {
    /// Number of distinct keys
    #[arg(short = 'n', long, value_name = "N", value_parser = numbers::capacity, allow_hyphen_values = true)]
    capacity: Option<u64>,
    /// Estimated number of distinct keys; there may be more
    #[arg(long, value_name = "N", value_parser = numbers::capacity, conflicts_with = "capacity")]
    about: Option<u64>,
    /// False-positive rate, at most [default: 1%]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true)]
    fpr: Option<f64>,
    /// Memory limit of the filter
    #[arg(long, value_name = "SIZE", value_parser = numbers::size, allow_hyphen_values = true)]
    memory: Option<u64>,
    /// Optimize for lookup speed
    #[arg(long, conflicts_with = "smallest")]
    fastest: bool,
    /// Optimize for size
    #[arg(long)]
    smallest: bool,
    /// Keys are removed
    #[arg(long)]
    removable: bool,
    /// Each key may be inserted up to N times, and removed as often
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    copies: Option<u64>,
    /// No insert takes much longer than others
    #[arg(long)]
    steady: bool,
    /// Filters are merged
    #[arg(long)]
    mergeable: bool,
    /// The number of keys may grow without limit
    #[arg(long)]
    grow: bool,
    /// All keys are known at build time, and the set never changes
    #[arg(long = "static")]
    static_: bool,
    /// Count occurrences; N is the highest count, if known
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, value_parser = numbers::count)]
    counts: Option<Option<u64>>,
    /// Number of sets: which of them is a key in?
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sets: Option<u32>,
    /// Number of other keys, all known at build time, without false positives among them
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    universe: Option<u64>,
    /// Keys are integers below this one
    #[arg(long, value_name = "BELOW", value_parser = numbers::count)]
    integers: Option<u64>,
    /// Remember the last N keys of an endless stream
    #[arg(long, value_name = "N", value_parser = numbers::capacity)]
    window: Option<u64>,
    /// Number of known absent keys that must be answered no
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    exceptions: Option<u64>,
    /// Inserted keys come from untrusted sources
    #[arg(long)]
    hostile_inserts: bool,
    /// Looked-up keys come from untrusted sources
    #[arg(long)]
    hostile_queries: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    fn needs(&self) -> Needs {
        let mut needs = Needs::new();
        let mut number = |asked: Option<u64>, with: fn(Needs, u64) -> Needs| {
            if let Some(asked) = asked {
                needs = with(needs, asked);
            }
        };
        number(self.capacity, Needs::with_keys);
        number(self.about, Needs::with_about_keys);
        number(self.memory, Needs::with_budget);
        number(self.copies, Needs::with_copies);
        number(self.universe, Needs::with_others);
        number(self.integers, Needs::with_integers);
        number(self.window, Needs::with_window);
        number(self.exceptions, Needs::with_exceptions);
        match self.counts {
            Some(None) => needs = needs.counted(),
            Some(Some(count)) => needs = needs.with_max_count(count),
            None => {}
        }
        if let Some(fpr) = self.fpr {
            needs = needs.with_fpr(fpr);
        }
        if let Some(sets) = self.sets {
            needs = needs.with_sets(sets);
        }
        type Say = fn(Needs) -> Needs;
        let flags: [(bool, Say); 9] = [
            (self.fastest, |needs| needs.with_first(First::Speed)),
            (self.smallest, |needs| needs.with_first(First::Space)),
            (self.removable, Needs::removable),
            (self.steady, Needs::steady),
            (self.mergeable, Needs::mergeable),
            (self.grow, Needs::growing),
            (self.static_, Needs::fixed),
            (self.hostile_inserts, Needs::with_hostile_inserters),
            (self.hostile_queries, Needs::with_hostile_queriers),
        ];
        flags.into_iter().filter(|(asked, _)| *asked).fold(needs, |needs, (_, with)| with(needs))
    }
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let advice = advise(&args.needs())?;
    let Advice { choice, why, runners_up, warnings, .. } = &advice;
    if args.json {
        let others: Vec<Value> = runners_up
            .iter()
            .map(|other| {
                let mut value = as_json(args, &other.choice);
                value["because"] = other.reason.text().into();
                value
            })
            .collect();
        let mut value = as_json(args, choice);
        value["rule"] = why.number().into();
        value["why"] = why.text().into();
        value["runners_up"] = others.into();
        value["warnings"] = warnings.iter().map(ToString::to_string).collect::<Vec<_>>().into();
        report::print_json(&value)?;
        return Ok(YES);
    }
    let plan = &choice.plan;
    let mut pairs = vec![
        ("take", report::family(choice.family.name, choice.spec.layout())),
        ("because", why.text().to_string()),
        ("it is", choice.family.summary.to_string()),
        ("keys", report::grouped(plan.capacity)),
        (
            "size",
            format!("{}, {} bits per key", report::bytes(choice.bytes), report::short(plan.bits_per_key())),
        ),
    ];
    pairs.extend(plan.probes.map(|probes| ("probes", probes.to_string())));
    if !choice.can.exact {
        pairs.push(("rate requested", report::rate(plan.fpr_asked)));
        pairs.push(("rate", report::rate(plan.fpr)));
        let beyond = match choice.beyond {
            Beyond::Rate(rate) => report::rate(rate),
            other => other.to_string(),
        };
        pairs.push(("at 150% of keys", beyond));
    }
    pairs.push(("guarantee", choice.guarantee.text().to_string()));
    pairs.push(("build it", command(args, choice)));
    for other in runners_up {
        let (plan, bytes) = (&other.choice.plan, report::bytes(other.choice.bytes));
        let name = report::family(other.choice.family.name, other.choice.spec.layout());
        // The size is that of one, and there is one for each set.
        let times = match (other.reason, args.sets) {
            (Reason::OneForEachSet, Some(sets)) => format!("{sets} of "),
            _ => String::new(),
        };
        let rate = if other.choice.can.exact { "exact".into() } else { report::percent(plan.fpr) };
        pairs.push(("or", format!("{name}: {times}{bytes}, {rate}; {}", other.reason.text())));
    }
    pairs.extend(warnings.iter().map(|warning| ("note", warning.to_string())));
    report::print_pairs(&pairs)?;
    report::stdout().flush()?;
    Ok(YES)
}

fn as_json(args: &Args, choice: &Choice) -> Value {
    let Choice { family, spec, plan, bytes, beyond, can, guarantee, .. } = choice;
    let at_half_more = match beyond {
        Beyond::Rate(fpr) => Some(*fpr),
        _ => None,
    };
    let overhead = (plan.fpr > 0.0).then(|| math::overhead(plan.bits as f64, plan.capacity as f64, plan.fpr));
    json!({
        "family": family.name, "layout": spec.layout().map(Layout::name),
        "counting_rule": spec.counting_rule().map(CountingRule::name), "counter_bits": spec.counter_bits(),
        "capacity": plan.capacity, "fpr": plan.fpr_asked, "fpr_at_capacity": plan.fpr,
        "fpr_at_half_more": at_half_more, "beyond": beyond.to_string(), "bits": plan.bits, "bytes": bytes,
        "bits_per_key": plan.bits_per_key(), "probes": plan.probes, "overhead": overhead,
        "inserts": can.inserts, "removes": can.removes, "counts": can.counts, "labels": can.labels,
        "merges": can.merges, "grows": can.grows, "exact": can.exact, "guarantee": guarantee.text(),
        "command": command(args, choice),
    })
}

/// The command that builds it; its files are the user's.
fn command(args: &Args, choice: &Choice) -> String {
    let (spec, family) = (&choice.spec, choice.family.name);
    let is_universe = matches!(choice.family.make, Make::Within(_));
    let mut line = format!("mayhap build --family {family}");
    let mut add = |text: String| {
        line.push(' ');
        line.push_str(&text);
    };
    // What does not grow is made for the keys that there are, if their number was not given.
    let is_number_known = [args.capacity, args.about, args.window].iter().any(Option::is_some);
    let is_sized = !is_universe && (is_number_known || choice.can.grows || choice.can.exact);
    if let Some(capacity) = spec.capacity().filter(|_| is_sized) {
        add(format!("-n {capacity}"));
    }
    if let Some(fpr) = spec.fpr().filter(|_| !choice.can.exact) {
        add(format!("-p {}", all_digits(fpr)));
    }
    if let Some(bits) = spec.bits() {
        add(format!("--bits {bits}"));
    }
    if let Some(layout) = spec.layout() {
        add(format!("--layout {}", layout.name()));
    }
    if let Some(bits) = spec.counter_bits() {
        add(format!("--counter-bits {bits}"));
    }
    if let Some(rule) = spec.counting_rule() {
        add(format!("--counting-rule {}", rule.name()));
    }
    if let Some(count) = spec.max_count() {
        add(format!("--max-count {count}"));
    }
    if args.integers.is_some() {
        add("--as u64".into());
    }
    let is_hashed = spec.hashing() != Hashing::Integer;
    if (args.hostile_inserts || args.hostile_queries) && is_hashed {
        add("--keyed".into());
    }
    // All others of a universe are answered no, exceptions among them.
    if is_universe {
        add("--universe OTHERS".into());
    } else if args.exceptions.is_some() && !choice.can.exact {
        add("--except OTHERS".into());
    }
    if matches!(choice.family.make, Make::OfTwo(_)) {
        add("-o FILTER --label NAME=KEYS --label NAME=OTHERS".into());
    } else if choice.can.labels {
        add("-o FILTER --label NAME=KEYS --label NAME=KEYS ...".into());
    } else {
        add("-o FILTER KEYS".into());
    }
    line
}

/// A rate as it is: a little below what the family reaches would be refused.
fn all_digits(rate: f64) -> String {
    if rate < 1e-4 { format!("{rate:e}") } else { rate.to_string() }
}
