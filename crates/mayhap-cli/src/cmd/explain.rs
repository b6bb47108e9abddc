//! `mayhap explain`: a small filter, drawn key by key.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;

use anyhow::{Context, Result, bail, ensure};
use mayhap::bits::BEHIND;
use mayhap::{
    BitmapSet, Bloom, Counting, Cuckoo, Hashing, Label, Layout, Removal, Remove, Shifting, Spatial, Spec,
    positions,
};
use serde_json::{Map, Value, json};

use crate::args::Common;
use crate::drawing::{Ink, Mark, Picture};
use crate::keys::{Kind, Selector};
use crate::suggest::unknown;
use crate::{YES, advice, numbers, report};

/// Draw a small filter and the positions of each key, as textbooks do
///
/// The filter has the positions that `mayhap build` would give it. Below the cells: + newly set, = set already,
/// ^ raised, > stays as it is, - cleared or lowered, x empty.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap explain hello world --bits 16 --probes 3 --ask mayhap\n  \
mayhap explain a b --bits 8 --at a=1,2,3 --at b=3,4,5 --ask c --at c=1,3,5\n  \
mayhap explain a b --bits 16 --at a=3,5 --at b=5,10 --remove a --ask b\n  \
mayhap explain 4 7 2 5 3 --family bitmap --bits 8\n  \
mayhap explain ada bob --family cuckoo --ask carol\n  \
mayhap explain --family spatial --label a=kitchen --label b=furnace --ask x")]
pub(crate) struct Args {
    /// Keys to insert, one after the other
    #[arg(value_name = "KEY")]
    keys: Vec<OsString>,
    /// Look up this key after all inserts; repeatable
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    ask: Vec<OsString>,
    /// Remove this key when all are in, and say which others that loses; can be repeated. A Bloom filter cannot remove: here
    /// the bits of the key are cleared, to show why
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    remove: Vec<OsString>,
    /// The family: bitmap, bloom, counting, cuckoo, shifting or spatial. Keys of bitmap are integers
    #[arg(long, value_name = "NAME", default_value = "bloom")]
    family: String,
    /// Number of cells
    ///
    /// Bits of bitmap and bloom, counters of counting, labels of spatial, slots of cuckoo, places of shifting.
    #[arg(long, value_name = "N", value_parser = numbers::bits, allow_hyphen_values = true, default_value = "16")]
    bits: u64,
    /// Number of probes per key [default: 3; of shifting 4]
    #[arg(long, value_name = "K", value_parser = numbers::probes, allow_hyphen_values = true)]
    probes: Option<u32>,
    /// Positions of a key, as in a textbook, for bloom and counting; repeatable
    #[arg(long, value_name = "KEY=POSITION,...", value_parser = key_and_positions)]
    at: Vec<(String, Vec<u64>)>,
    /// A key with its label, for spatial; repeatable
    ///
    /// A later label outranks an earlier one. Keys without a label are areas of their own.
    #[arg(long, value_name = "NAME=KEY", value_parser = name_and_key, conflicts_with = "keys")]
    label: Vec<(String, String)>,
    /// Bits per counter, for counting: 2 to 16 [default: 4]
    #[arg(long, value_name = "BITS", value_parser = numbers::counter_bits, allow_hyphen_values = true)]
    counter_bits: Option<u32>,
    /// Key type
    #[arg(long = "as", value_name = "KIND", value_enum, default_value_t)]
    kind: Kind,
    /// Hash with this seed
    #[arg(long, value_name = "SEED", value_parser = numbers::seed, default_value = "0")]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What can be drawn.
const FAMILIES: [&str; 6] = ["bitmap", "bloom", "counting", "cuckoo", "shifting", "spatial"];
/// Those whose keys can be removed, if only to show what is lost.
const REMOVING: [&str; 4] = ["bitmap", "bloom", "counting", "cuckoo"];
/// More cells fill no picture that anybody looks at.
const MOST_CELLS: u64 = 4096;
/// As many as such a filter is full of.
const MOST_KEYS: usize = 1000;
/// Two hexadecimal digits.
const FINGERPRINT_BITS: u32 = 8;

fn key_and_positions(text: &str) -> Result<(String, Vec<u64>), String> {
    let wrong = || format!("{text:?} is not a key and its positions, such as hello=1,2,3,4");
    let (key, list) = text.rsplit_once('=').ok_or_else(wrong)?;
    let positions = list.split(',').map(|position| position.trim().parse()).collect::<Result<_, _>>();
    Ok((key.into(), positions.map_err(|_| wrong())?))
}

fn name_and_key(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, key)) if !name.is_empty() => Ok((name.into(), key.into())),
        _ => Err(format!("{text:?} is not the name of an area and a key, such as work=kitchen")),
    }
}

/// A key that is inserted or asked for.
#[derive(Debug)]
struct Subject {
    text: String,
    bytes: Vec<u8>,
    /// A textbook's, in place of those of its hash.
    given: Option<Vec<u64>>,
    /// The area of a spatial filter that it goes to.
    area: u16,
}

/// What is shown of one key.
struct Step {
    /// Where it looks, such as `at 3, 9, 14`.
    place: String,
    picture: Picture,
    /// What has come of it.
    outcome: String,
    facts: Map<String, Value>,
}

/// A filter that can be drawn.
trait Drawn {
    /// What it is, in a line.
    fn about(&self) -> String;
    /// What it is, for programs.
    fn facts(&self) -> Value;
    /// Inserts a key, and shows what has changed.
    fn insert(&mut self, key: &Subject, ink: Ink) -> Result<Step>;
    /// Asks for a key, of which is known whether it is in.
    fn ask(&self, key: &Subject, is_in: bool, ink: Ink) -> Result<Step>;
    /// Removes a key, and shows what has changed.
    fn remove(&mut self, key: &Subject, ink: Ink) -> Result<Step>;
    fn contains(&self, key: &Subject) -> Result<bool>;
    /// Whether a key is in as often as it was inserted.
    fn has_copies(&self) -> bool;
    /// What can be read from all of it: a text, and a name and a value for programs.
    fn read(&self) -> Option<(String, &'static str, Value)> {
        None
    }
    /// All of it.
    fn picture(&self, ink: Ink) -> Picture;
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    let inserted = args.inserted()?;
    let asked: Vec<Subject> = args.ask.iter().map(|key| args.subject(key, 0)).collect::<Result<_>>()?;
    let removed: Vec<Subject> = args.remove.iter().map(|key| args.subject(key, 0)).collect::<Result<_>>()?;
    let is_used =
        |key: &str| inserted.iter().chain(&removed).chain(&asked).any(|subject| subject.text == key);
    if let Some((key, _)) = args.at.iter().find(|(key, _)| !is_used(key)) {
        bail!("--at {key}: that key is neither inserted nor asked for; add it, or leave its positions out");
    }
    let repeated = |(number, (key, _)): (usize, &(String, Vec<u64>))| {
        args.at[..number].iter().any(|(other, _)| other == key)
    };
    if let Some((_, (key, _))) = args.at.iter().enumerate().find(|&at| repeated(at)) {
        bail!("--at {key}: that key has two lists of positions; give one with all of them");
    }
    let beyond = |positions: &[u64]| positions.iter().copied().find(|&position| position >= args.bits);
    if let Some((key, position)) = args.at.iter().find_map(|(key, list)| Some((key, beyond(list)?))) {
        bail!(
            "--at {key}: position {position} is not below --bits {}; give more bits or another position",
            args.bits
        );
    }
    if args.family == "bitmap" {
        let beyond = |key: &&Subject| integer(key) >= args.bits;
        if let Some(key) = inserted.iter().chain(&removed).chain(&asked).find(beyond) {
            bail!("{} is not below --bits {}; give more bits", key.text, args.bits);
        }
    }
    let mut filter = args.filter(common)?;
    let ink = Ink::of_stdout();
    let about = match args.at.is_empty() {
        true => filter.about(),
        false if args.family == "bloom" => {
            format!("bloom: {} bits, positions as they were given", args.bits)
        }
        false => format!("{}: {} counters, positions as they were given", args.family, args.bits),
    };
    // All of it is made before any of it is shown: after an error there is nothing to see.
    let (mut steps, mut held) = (Vec::new(), Vec::new());
    for key in &inserted {
        let step = filter.insert(key, ink).with_context(|| key.text.clone())?;
        if !step.facts.contains_key("refused") {
            held.push(key);
        }
        steps.push(step);
    }
    let removals: Vec<Step> = removed
        .iter()
        .map(|key| removal(&mut *filter, key, &mut held, ink).with_context(|| key.text.clone()))
        .collect::<Result<_>>()?;
    let is_in = |key: &Subject| held.iter().any(|held| held.bytes == key.bytes);
    let ask = |key: &Subject| filter.ask(key, is_in(key), ink).with_context(|| key.text.clone());
    let answers: Vec<Step> = asked.iter().map(ask).collect::<Result<_>>()?;
    if args.json {
        let mut value = filter.facts();
        value["family"] = args.family.as_str().into();
        value["seed"] = format!("{:016x}", args.seed).into();
        value["inserted"] = listed(&inserted, steps);
        value["removed"] = listed(&removed, removals);
        if let Some((_, name, read)) = filter.read() {
            value[name] = read;
        }
        value["asked"] = listed(&asked, answers);
        report::print_json(&value)?;
        return Ok(YES);
    }
    let mut out = report::stdout();
    writeln!(out, "{about}")?;
    for (key, step) in inserted.iter().zip(&steps) {
        show(&mut out, &key.text, step)?;
    }
    for (key, step) in removed.iter().zip(&removals) {
        show(&mut out, &format!("{} removed", key.text), step)?;
    }
    if let Some((text, _, _)) = filter.read() {
        writeln!(out, "\n{text}")?;
    }
    let picture = filter.picture(ink);
    if picture.is_long() {
        writeln!(out, "\nall of it, with {}", report::counted(held.len() as u64, "key"))?;
        picture.whole().iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    for (key, answer) in asked.iter().zip(&answers) {
        show(&mut out, &format!("{}?", key.text), answer)?;
    }
    Ok(YES)
}

/// Removes a key, and says which of those that are in are denied from now on.
fn removal<'a>(filter: &mut dyn Drawn, key: &Subject, held: &mut Vec<&'a Subject>, ink: Ink) -> Result<Step> {
    let was_in = |held: &[&'a Subject]| {
        held.iter().map(|&key| Ok((key, filter.contains(key)?))).collect::<Result<Vec<_>>>()
    };
    let before = was_in(held)?;
    let mut step = filter.remove(key, ink)?;
    match held.iter().position(|other| other.bytes == key.bytes) {
        _ if step.facts["removed"] != true => {}
        Some(index) if filter.has_copies() => _ = held.remove(index),
        _ => held.retain(|other| other.bytes != key.bytes),
    }
    let mut lost: Vec<&str> = Vec::new();
    for (other, was_in) in before {
        let is_lost = was_in
            && held.iter().any(|held| held.bytes == other.bytes)
            && !filter.contains(other)?
            && !lost.contains(&other.text.as_str());
        if is_lost {
            lost.push(&other.text);
        }
    }
    if !lost.is_empty() {
        let verb = if lost.len() == 1 { "was inserted and is" } else { "were inserted and are" };
        step.outcome.push_str(&format!("\n  lost: {}, which {verb} denied from now on", lost.join(", ")));
    }
    step.facts.insert("lost".into(), json!(lost));
    Ok(step)
}

fn listed(subjects: &[Subject], steps: Vec<Step>) -> Value {
    let value = |(subject, mut step): (&Subject, Step)| {
        step.facts.insert("key".into(), subject.text.clone().into());
        Value::Object(step.facts)
    };
    subjects.iter().zip(steps).map(value).collect()
}

fn show(out: &mut impl Write, title: &str, step: &Step) -> std::io::Result<()> {
    writeln!(out, "\n{title}  {}", step.place)?;
    step.picture.lines().iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    writeln!(out, "  {}", step.outcome)
}

impl Args {
    /// The keys that go in, in their order.
    fn inserted(&self) -> Result<Vec<Subject>> {
        ensure!(
            self.keys.len() + self.label.len() > 0,
            "there is no key to insert; give one, such as mayhap explain hello"
        );
        let keys = self.keys.len().max(self.label.len());
        ensure!(keys <= MOST_KEYS, "{keys} keys are more than a picture can show; the limit is {MOST_KEYS}");
        if !self.label.is_empty() {
            ensure!(
                self.family == "spatial",
                "--label is for --family spatial; the family {} knows no areas",
                self.family
            );
        }
        let names = self.areas();
        let labelled = self.label.iter().map(|(name, key)| {
            let area = names.iter().position(|known| known == name).unwrap_or(0) + 1;
            self.subject(&OsString::from(key), u16::try_from(area)?)
        });
        let plain = self.keys.iter().zip(1..).map(|(key, number)| self.subject(key, number));
        labelled.chain(plain).collect()
    }

    /// The names of all areas, lowest first.
    fn areas(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in &self.label {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        if names.is_empty() { (1..=self.keys.len()).map(|area| area.to_string()).collect() } else { names }
    }

    fn subject(&self, key: &OsString, area: u16) -> Result<Subject> {
        let record = key.as_encoded_bytes();
        let text = match std::str::from_utf8(record) {
            Ok(text) if !text.chars().any(char::is_control) => text.to_string(),
            _ => record.escape_ascii().to_string(),
        };
        // Nothing else has a place in a bitmap.
        let kind = if self.family == "bitmap" { Kind::U64 } else { self.kind };
        let selector = Selector { kind, ..Selector::default() };
        let mut scratch = Vec::new();
        let bytes = selector.key(record, &mut scratch).with_context(|| text.clone())?.to_vec();
        let given = self.at.iter().find(|(key, _)| *key == text).map(|(_, positions)| positions.clone());
        Ok(Subject { text, bytes, given, area })
    }

    fn filter(&self, common: &Common) -> Result<Box<dyn Drawn>> {
        let Self { bits: cells, family, .. } = self;
        let cells = *cells;
        ensure!(
            cells <= MOST_CELLS,
            "--bits {cells} is more than a picture can show; the limit is {MOST_CELLS}, and mayhap info --heatmap \
             draws a filter of any size"
        );
        ensure!(
            self.at.is_empty() || family == "bloom" || family == "counting",
            "--at is for --family bloom and counting; keys of the family {family} have their own positions"
        );
        let removes = REMOVING.contains(&family.as_str()) || !FAMILIES.contains(&family.as_str());
        ensure!(
            self.remove.is_empty() || removes,
            "--remove is for --family {}; keys of the family {family} cannot be removed",
            REMOVING.join(", ")
        );
        ensure!(
            self.counter_bits.is_none() || family == "counting",
            "--counter-bits is for --family counting; the family {family} is drawn without counters"
        );
        let hashing = Hashing::Xxh3 { seed: self.seed };
        let probes = self.probes.unwrap_or(3);
        let spec = |cell_bits: u64| {
            Spec::new().with_bits(cells * cell_bits).with_probes(probes).with_hashing(hashing)
        };
        let say_without_probes = |why: &str| {
            if let Some(asked) = self.probes {
                common.say(format_args!("--probes {asked} means nothing to {family}: {why}"));
            }
        };
        Ok(match family.as_str() {
            "bitmap" => {
                say_without_probes("every integer has one bit");
                Box::new(Array(BitmapSet::from_spec(&Spec::new().with_capacity(cells))?))
            }
            "bloom" => Box::new(Array(Bloom::from_spec(&spec(1))?)),
            "counting" => {
                let bits = self.counter_bits.unwrap_or(4);
                let counting = Counting::from_spec(&spec(bits.into()).with_counter_bits(bits))?;
                match self.at.is_empty() {
                    true => Box::new(Array(counting)),
                    false => Box::new(Array(Textbook { counters: vec![0; cells as usize], counting })),
                }
            }
            "spatial" => {
                let names = self.areas();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let areas = u32::try_from(names.len())?;
                let label_bits = if areas < 256 { 8 } else { 16 };
                let mut spatial = Spatial::from_spec(&spec(label_bits).with_areas(areas))?;
                spatial.name_areas(&names)?;
                Box::new(Array(spatial))
            }
            "shifting" => {
                let pairs = self.probes.unwrap_or(4).div_ceil(2) * 2;
                if let Some(asked) = self.probes.filter(|&asked| asked != pairs) {
                    common.say(format_args!(
                        "bits of shifting come in pairs: {pairs} probes in place of {asked}"
                    ));
                }
                let spec = Spec::new().with_bits(cells + BEHIND).with_probes(pairs).with_hashing(hashing);
                Box::new(Array(Shifting::from_spec(&spec)?))
            }
            "cuckoo" => {
                say_without_probes("every key has two buckets of four slots");
                Box::new(Cuckoo::with_slots(cells, FINGERPRINT_BITS, Layout::Fastest)?.rehashed(hashing))
            }
            _ if mayhap::family(family).is_some() => {
                bail!("the family {family} cannot be drawn; those that can are {}", FAMILIES.join(", "))
            }
            _ => bail!("{}", unknown("family that can be drawn", family, &FAMILIES)),
        })
    }
}

/// A family whose keys have positions in an array of cells.
trait Cells {
    /// One cell, and one that is not empty.
    const CELL: &str;
    const FILLED: &str;
    /// What makes an absent key look like one that is in.
    const ALL_FILLED: &str;
    fn about(&self) -> String;
    fn facts(&self) -> Value;
    fn cells(&self) -> Vec<u64>;
    /// The cells of a key, in the order in which they are read.
    fn positions(&self, key: &Subject) -> Vec<u64>;
    /// What is said of them, where it is more than their numbers.
    fn place(&self, positions: &[u64]) -> String {
        format!("at {}", list(positions))
    }
    fn put(&mut self, key: &Subject) -> Result<()>;
    fn take(&mut self, _key: &Subject) -> Result<Removal> {
        bail!("it cannot be removed")
    }
    fn contains(&self, key: &Subject) -> Result<bool>;
    /// Whether a key is in as often as it was inserted.
    const HAS_COPIES: bool = false;
    /// What can be read from all cells.
    fn read(&self) -> Option<(String, &'static str, Value)> {
        None
    }
    /// What a cell has gone through, and how that is called.
    fn change(&self, key: &Subject, before: u64, after: u64) -> (Mark, String);
    /// What the answer says beyond *perhaps*: a word for people, a name and a value for programs.
    fn told(&self, _key: &Subject) -> Option<(String, &'static str, Value)> {
        None
    }
}

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A filter of cells.
struct Array<F>(F);

impl<F: Cells> Array<F> {
    /// What has become of the cells of a key that was inserted or removed.
    fn changed(&self, key: &Subject, before: &[u64], ink: Ink) -> Step {
        let (positions, after) = (self.0.positions(key), self.0.cells());
        let mut marks = BTreeMap::new();
        // By what they have gone through, in the order of the positions.
        let mut changes: Vec<(String, Vec<u64>)> = Vec::new();
        let (mut new, mut twice) = (Vec::new(), Vec::new());
        for &position in &positions {
            let (was, is) = (before[position as usize], after[position as usize]);
            let (mark, name) = self.0.change(key, was, is);
            if marks.insert(position, mark).is_some() {
                twice.push(position);
                continue;
            }
            if was == 0 {
                new.push(position);
            }
            match changes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, places)) => places.push(position),
                None => changes.push((name, vec![position])),
            }
        }
        let mut texts: Vec<String> =
            changes.iter().map(|(name, places)| format!("{name}: {}", list(places))).collect();
        if !twice.is_empty() {
            texts.push(format!("met again: {}", list(&twice)));
        }
        let facts = json!({ "positions": positions, "new": new, "cells": after });
        Step {
            place: self.0.place(&positions),
            picture: picture(&after, &marks, ink),
            outcome: texts.join("; "),
            facts: object(facts),
        }
    }
}

impl<F: Cells> Drawn for Array<F> {
    fn about(&self) -> String {
        self.0.about()
    }

    fn facts(&self) -> Value {
        self.0.facts()
    }

    fn insert(&mut self, key: &Subject, ink: Ink) -> Result<Step> {
        let before = self.0.cells();
        self.0.put(key)?;
        Ok(self.changed(key, &before, ink))
    }

    fn ask(&self, key: &Subject, is_in: bool, ink: Ink) -> Result<Step> {
        // Positions that are given are checked by the filter first.
        let perhaps = self.0.contains(key)?;
        let (positions, cells) = (self.0.positions(key), self.0.cells());
        let stops_at = positions.iter().position(|&position| cells[position as usize] == 0);
        let read = &positions[..stops_at.map_or(positions.len(), |index| index + 1)];
        let mark = |&position: &u64| {
            (position, if cells[position as usize] == 0 { Mark::Missing } else { Mark::Same })
        };
        let told = self.0.told(key);
        let mut outcome = match stops_at {
            Some(index) => {
                format!("{} {} is not {}: no, certainly", F::CELL, positions[index], F::FILLED)
            }
            None => format!("all are {}: perhaps", F::FILLED),
        };
        if let Some((text, _, _)) = told.as_ref().filter(|_| perhaps) {
            outcome.push_str(&format!(", {text}"));
        }
        outcome.push_str(&verdict(perhaps, is_in, F::ALL_FILLED));
        let mut facts = answer(perhaps, is_in);
        facts.insert("positions".into(), json!(positions));
        facts.insert("read".into(), json!(read));
        facts.insert("stops_at".into(), json!(stops_at.map(|index| positions[index])));
        facts.extend(told.map(|(_, name, value)| (name.to_string(), value)));
        Ok(Step {
            place: self.0.place(&positions),
            picture: picture(&cells, &read.iter().map(mark).collect(), ink),
            outcome,
            facts,
        })
    }

    fn remove(&mut self, key: &Subject, ink: Ink) -> Result<Step> {
        let before = self.0.cells();
        let removal = self.0.take(key)?;
        let mut step = match removal {
            Removal::Absent => {
                // Where an answer would have been no.
                let mut step = Drawn::ask(self, key, false, ink)?;
                step.outcome = "it is not in, and nothing changes".into();
                step.facts = object(json!({ "positions": self.0.positions(key), "cells": before }));
                step
            }
            Removal::Removed | Removal::Stuck => self.changed(key, &before, ink),
        };
        step.facts.insert("removed".into(), removal.is_removed().into());
        Ok(step)
    }

    fn contains(&self, key: &Subject) -> Result<bool> {
        self.0.contains(key)
    }

    fn has_copies(&self) -> bool {
        F::HAS_COPIES
    }

    fn read(&self) -> Option<(String, &'static str, Value)> {
        self.0.read()
    }

    fn picture(&self, ink: Ink) -> Picture {
        picture(&self.0.cells(), &BTreeMap::new(), ink)
    }
}

fn picture(cells: &[u64], marks: &BTreeMap<u64, Mark>, ink: Ink) -> Picture {
    let texts: Vec<String> = cells.iter().map(ToString::to_string).collect();
    Picture::of_cells(&texts, marks, ink)
}

/// What is known of an answer because it is known which keys are in.
fn verdict(perhaps: bool, is_in: bool, why: &str) -> String {
    match (perhaps, is_in) {
        (true, true) => " (it is one of the keys)".into(),
        (true, false) => format!("\n  a false positive: not one of the keys, yet {why}"),
        (false, true) => "\n  a false negative: it is one of the keys, and is denied".into(),
        (false, false) => String::new(),
    }
}

fn answer(perhaps: bool, is_in: bool) -> Map<String, Value> {
    object(json!({
        "answer": if perhaps { "perhaps" } else { "no" },
        "is_in": is_in,
        "false_positive": perhaps && !is_in,
        "false_negative": !perhaps && is_in,
    }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => Map::from_iter([("value".to_string(), other)]),
    }
}

/// The command that builds a filter with the same positions.
fn built(family: &str, bits: u64, probes: u32, hashing: Hashing) -> String {
    let seed = match hashing {
        Hashing::Xxh3 { seed } if seed != 0 => format!(" --seed {seed}"),
        _ => String::new(),
    };
    format!("(mayhap build --family {family} --bits {bits} --probes {probes}{seed})")
}

impl Cells for Bloom {
    const CELL: &str = "bit";
    const FILLED: &str = "set";
    const ALL_FILLED: &str = "all its bits are set";

    fn about(&self) -> String {
        let (bits, probes) = (self.bits(), self.probes());
        format!("bloom: {bits} bits, {probes} probes {}", built("bloom", bits, probes, self.hashing()))
    }

    fn facts(&self) -> Value {
        json!({ "bits": self.bits(), "probes": self.probes() })
    }

    fn cells(&self) -> Vec<u64> {
        let bit = |position: u64| self.words()[(position / 64) as usize] >> (position % 64) & 1;
        (0..self.bits()).map(bit).collect()
    }

    fn positions(&self, key: &Subject) -> Vec<u64> {
        key.given.clone().unwrap_or_else(|| self.positions(&key.bytes).collect())
    }

    fn put(&mut self, key: &Subject) -> Result<()> {
        match &key.given {
            Some(positions) => self.insert_positions(positions)?,
            None => self.insert(&key.bytes),
        };
        Ok(())
    }

    /// Clears the bits of a key, which loses other keys too: for `--remove`, to show why a Bloom filter cannot remove.
    fn take(&mut self, key: &Subject) -> Result<Removal> {
        if !Cells::contains(self, key)? {
            return Ok(Removal::Absent);
        }
        let (cleared, bits) = (Cells::positions(self, key), Cells::cells(self));
        let rest: Vec<u64> = (0..)
            .zip(bits)
            .filter(|(position, bit)| *bit == 1 && !cleared.contains(position))
            .map(|(position, _)| position)
            .collect();
        self.clear();
        self.insert_positions(&rest)?;
        Ok(Removal::Removed)
    }

    fn contains(&self, key: &Subject) -> Result<bool> {
        match &key.given {
            Some(positions) => Ok(self.contains_positions(positions)?),
            None => Ok(self.contains(&key.bytes)),
        }
    }

    fn change(&self, _: &Subject, before: u64, after: u64) -> (Mark, String) {
        set_or_cleared(before, after)
    }
}

fn set_or_cleared(before: u64, after: u64) -> (Mark, String) {
    match (before, after) {
        (_, 0) => (Mark::Lowered, "cleared".into()),
        (0, _) => (Mark::New, "newly set".into()),
        _ => (Mark::Same, "set already".into()),
    }
}

impl Cells for Counting {
    const CELL: &str = "counter";
    const FILLED: &str = "above 0";
    const ALL_FILLED: &str = "all its counters are above 0";

    fn about(&self) -> String {
        let (cells, bits, probes) = (self.cells(), self.counter_bits(), self.probes());
        let command = built("counting", cells * u64::from(bits), probes, self.hashing());
        // Four bits are what `build` takes unless it is told.
        let width = if bits == 4 { String::new() } else { format!(" --counter-bits {bits}") };
        let command = command.replace(" --bits", &format!("{width} --bits"));
        format!("counting: {cells} counters of {bits} bits, {probes} probes {command}")
    }

    fn facts(&self) -> Value {
        let (cells, bits) = (self.cells(), self.counter_bits());
        json!({ "bits": cells * u64::from(bits), "counter_bits": bits, "probes": self.probes() })
    }

    fn cells(&self) -> Vec<u64> {
        (0..self.cells()).filter_map(|position| self.counter(position)).collect()
    }

    fn positions(&self, key: &Subject) -> Vec<u64> {
        positions(self.hashing().digest_of(&key.bytes), self.probes(), self.cells()).collect()
    }

    const HAS_COPIES: bool = true;

    fn put(&mut self, key: &Subject) -> Result<()> {
        self.insert(&key.bytes);
        Ok(())
    }

    fn take(&mut self, key: &Subject) -> Result<Removal> {
        Ok(self.remove(&key.bytes))
    }

    fn contains(&self, key: &Subject) -> Result<bool> {
        Ok(self.contains(&key.bytes))
    }

    fn change(&self, _: &Subject, before: u64, after: u64) -> (Mark, String) {
        raised_or_lowered(before, after)
    }

    fn told(&self, key: &Subject) -> Option<(String, &'static str, Value)> {
        Some(counted(self.count(&key.bytes)))
    }
}

fn raised_or_lowered(before: u64, after: u64) -> (Mark, String) {
    match (before, after) {
        (0, _) => (Mark::New, "newly above 0".into()),
        (_, 0) => (Mark::Lowered, "lowered to 0".into()),
        _ if before == after => (Mark::Stays, format!("at the top of {after}, where it stays")),
        _ if before > after => (Mark::Lowered, "lowered".into()),
        _ => (Mark::Raised, "raised".into()),
    }
}

fn counted(count: u64) -> (String, &'static str, Value) {
    let times = if count == 1 { "once".into() } else { format!("{count} times") };
    (format!("{times} at most, by its lowest counter"), "count", count.into())
}

/// A counting filter, some of whose keys have the positions of a textbook.
struct Textbook {
    counters: Vec<u64>,
    /// It stays empty: it knows where keys go that have no such positions, and how far a counter counts.
    counting: Counting,
}

impl Textbook {
    /// The counters of a key, each once.
    fn distinct(&self, key: &Subject) -> Vec<usize> {
        let mut positions: Vec<usize> =
            self.positions(key).into_iter().map(|position| position as usize).collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    fn top(&self) -> u64 {
        (1 << self.counting.counter_bits()) - 1
    }

    fn count(&self, key: &Subject) -> u64 {
        self.distinct(key).into_iter().map(|position| self.counters[position]).min().unwrap_or(0)
    }
}

impl Cells for Textbook {
    const CELL: &str = Counting::CELL;
    const FILLED: &str = Counting::FILLED;
    const ALL_FILLED: &str = Counting::ALL_FILLED;
    const HAS_COPIES: bool = true;

    fn about(&self) -> String {
        Cells::about(&self.counting)
    }

    fn facts(&self) -> Value {
        Cells::facts(&self.counting)
    }

    fn cells(&self) -> Vec<u64> {
        self.counters.clone()
    }

    fn positions(&self, key: &Subject) -> Vec<u64> {
        key.given.clone().unwrap_or_else(|| Cells::positions(&self.counting, key))
    }

    fn put(&mut self, key: &Subject) -> Result<()> {
        let top = self.top();
        for position in self.distinct(key) {
            let counter = &mut self.counters[position];
            *counter = top.min(*counter + 1);
        }
        Ok(())
    }

    fn take(&mut self, key: &Subject) -> Result<Removal> {
        let (top, count) = (self.top(), self.count(key));
        if count == 0 {
            return Ok(Removal::Absent);
        }
        for position in self.distinct(key) {
            let counter = &mut self.counters[position];
            // One at its top may have counted more than it shows.
            *counter -= u64::from(*counter < top);
        }
        Ok(if count == top { Removal::Stuck } else { Removal::Removed })
    }

    fn contains(&self, key: &Subject) -> Result<bool> {
        Ok(self.count(key) > 0)
    }

    fn change(&self, _: &Subject, before: u64, after: u64) -> (Mark, String) {
        raised_or_lowered(before, after)
    }

    fn told(&self, key: &Subject) -> Option<(String, &'static str, Value)> {
        Some(counted(self.count(key)))
    }
}

impl Cells for BitmapSet {
    const CELL: &str = "bit";
    const FILLED: &str = "set";
    const ALL_FILLED: &str = "its bit is set";

    fn about(&self) -> String {
        let bits = self.bitmap().universe();
        format!(
            "bitmap: {bits} bits, one for each integer below {bits} (mayhap build --family bitmap --as u64 -n {bits})"
        )
    }

    fn facts(&self) -> Value {
        let probes: Option<u32> = None;
        json!({ "bits": self.bitmap().universe(), "probes": probes })
    }

    fn cells(&self) -> Vec<u64> {
        (0..self.bitmap().universe()).map(|integer| self.bitmap().contains(integer).into()).collect()
    }

    fn positions(&self, key: &Subject) -> Vec<u64> {
        vec![integer(key)]
    }

    fn put(&mut self, key: &Subject) -> Result<()> {
        self.insert(integer(key))?;
        Ok(())
    }

    fn take(&mut self, key: &Subject) -> Result<Removal> {
        Ok(self.remove_digest(Hashing::Integer.digest(&key.bytes)))
    }

    fn contains(&self, key: &Subject) -> Result<bool> {
        Ok(self.bitmap().contains(integer(key)))
    }

    fn change(&self, _: &Subject, before: u64, after: u64) -> (Mark, String) {
        set_or_cleared(before, after)
    }

    fn read(&self) -> Option<(String, &'static str, Value)> {
        let integers: Vec<u64> =
            (0..self.bitmap().universe()).filter(|&integer| self.bitmap().contains(integer)).collect();
        Some((format!("from left to right, which is sorted: {}", list(&integers)), "sorted", json!(integers)))
    }
}

/// The integer that a key of a bitmap is.
fn integer(key: &Subject) -> u64 {
    key.bytes.as_slice().try_into().map_or(u64::MAX, u64::from_le_bytes)
}

impl Cells for Shifting {
    const CELL: &str = "bit";
    const FILLED: &str = "set";
    const ALL_FILLED: &str = "all its bits are set";

    fn about(&self) -> String {
        let (starts, bits, probes) = (self.starts(), self.bits(), self.probes());
        let command = built("shifting", bits, probes, self.hashing());
        format!("shifting: {starts} places and {BEHIND} bits behind them, {probes} probes {command}")
    }

    fn facts(&self) -> Value {
        json!({ "bits": self.bits(), "places": self.starts(), "probes": self.probes() })
    }

    fn cells(&self) -> Vec<u64> {
        (0..self.bits()).filter_map(|position| self.bit(position)).map(u64::from).collect()
    }

    fn positions(&self, key: &Subject) -> Vec<u64> {
        self.loads(&key.bytes).concat()
    }

    fn place(&self, positions: &[u64]) -> String {
        let pairs: Vec<String> =
            positions.chunks(2).map(|pair| format!("{} and {}", pair[0], pair[pair.len() - 1])).collect();
        let offset = positions.get(1).map_or(0, |second| second - positions[0]);
        format!("offset {offset}: at {}", pairs.join(", "))
    }

    fn put(&mut self, key: &Subject) -> Result<()> {
        self.insert(&key.bytes);
        Ok(())
    }

    fn contains(&self, key: &Subject) -> Result<bool> {
        Ok(self.contains(&key.bytes))
    }

    fn change(&self, _: &Subject, before: u64, after: u64) -> (Mark, String) {
        set_or_cleared(before, after)
    }
}

impl Cells for Spatial {
    const CELL: &str = "cell";
    const FILLED: &str = "labelled";
    const ALL_FILLED: &str = "all its cells are labelled";

    fn about(&self) -> String {
        let (cells, probes) = (self.cells(), self.probes());
        let areas: Vec<String> = (1..=self.areas()).map(|area| called(self, area)).collect();
        let bits = cells * u64::from(self.label_bits());
        let labels: String = areas.iter().map(|area| format!(" --label {area}=FILE")).collect();
        let command =
            built("spatial", bits, probes, self.hashing()).replace(" --bits", &format!("{labels} --bits"));
        format!("spatial: {cells} cells, {probes} probes, areas {} {command}", areas.join(", "))
    }

    fn facts(&self) -> Value {
        let names: Vec<_> = (1..=self.areas()).map(|area| self.name(area)).collect();
        let bits = self.cells() * u64::from(self.label_bits());
        json!({ "bits": bits, "probes": self.probes(), "areas": names })
    }

    fn cells(&self) -> Vec<u64> {
        (0..self.cells()).filter_map(|position| self.cell(position)).map(u64::from).collect()
    }

    fn positions(&self, key: &Subject) -> Vec<u64> {
        positions(self.hashing().digest_of(&key.bytes), self.probes(), self.cells()).collect()
    }

    fn put(&mut self, key: &Subject) -> Result<()> {
        self.insert(&key.bytes, key.area)?;
        Ok(())
    }

    fn contains(&self, key: &Subject) -> Result<bool> {
        Ok(self.contains(&key.bytes))
    }

    fn change(&self, key: &Subject, before: u64, after: u64) -> (Mark, String) {
        let area = called(self, key.area);
        match before {
            0 => (Mark::New, format!("newly in {area}")),
            _ if before < after => (Mark::Raised, format!("raised to {area}")),
            _ if before == u64::from(key.area) => (Mark::Same, format!("in {area} already")),
            _ => (Mark::Stays, "in a higher one, where it stays".into()),
        }
    }

    fn told(&self, key: &Subject) -> Option<(String, &'static str, Value)> {
        let label = self.label(&key.bytes)?;
        let text = format!("in {}, the lowest label", called(self, label));
        Some((text, "label", self.name(label).map_or(label.into(), Value::from)))
    }
}

/// An area's number, and its name where that is another word.
fn called(spatial: &Spatial, area: u16) -> String {
    match spatial.name(area) {
        Some(name) if name != area.to_string() => format!("{area} {name}"),
        _ => area.to_string(),
    }
}

/// The fingerprints of all buckets.
fn table(cuckoo: &Cuckoo) -> Vec<Vec<u32>> {
    (0..cuckoo.buckets()).filter_map(|bucket| cuckoo.bucket(bucket)).map(Vec::from).collect()
}

fn picture_of(cuckoo: &Cuckoo, notes: &BTreeMap<u64, (Mark, String)>, ink: Ink) -> Picture {
    let slot = |&fingerprint: &u32| match fingerprint {
        0 => "--".to_string(),
        fingerprint => format!("{fingerprint:02x}"),
    };
    let buckets: Vec<Vec<String>> =
        table(cuckoo).iter().map(|slots| slots.iter().map(slot).collect()).collect();
    Picture::of_buckets(&buckets, notes, ink)
}

/// A fingerprint that was moved to its other bucket.
#[derive(Debug, PartialEq, Eq)]
struct Move {
    fingerprint: u32,
    from: u64,
    to: u64,
}

/// What has left a bucket and is in another one now, and the bucket that has one more of the new fingerprint.
fn moves(before: &[Vec<u32>], after: &[Vec<u32>], new: u32) -> (Vec<Move>, Option<u64>) {
    let without = |from: &[Vec<u32>], taken: &[Vec<u32>]| -> Vec<(u64, u32)> {
        let mut left = Vec::new();
        for (bucket, (from, taken)) in (0..).zip(from.iter().zip(taken)) {
            let mut taken = taken.clone();
            for &fingerprint in from.iter().filter(|&&fingerprint| fingerprint != 0) {
                match taken.iter().position(|&other| other == fingerprint) {
                    Some(index) => _ = taken.swap_remove(index),
                    None => left.push((bucket, fingerprint)),
                }
            }
        }
        left
    };
    let (gone, mut came) = (without(before, after), without(after, before));
    let mut moves = Vec::new();
    for (from, fingerprint) in gone {
        if let Some(index) = came.iter().position(|&(_, other)| other == fingerprint) {
            moves.push(Move { fingerprint, from, to: came.swap_remove(index).0 });
        }
    }
    (moves, came.iter().find(|&&(_, fingerprint)| fingerprint == new).map(|&(bucket, _)| bucket))
}

fn looked_up(fingerprint: u32, [first, second]: [u64; 2]) -> String {
    format!("fingerprint {fingerprint:02x}, buckets {first} and {second}")
}

fn notes_of([first, second]: [u64; 2]) -> BTreeMap<u64, (Mark, String)> {
    let note = |text: &str| (Mark::Same, text.to_string());
    BTreeMap::from([(first, note("first bucket")), (second, note("second bucket"))])
}

impl Drawn for Cuckoo {
    fn about(&self) -> String {
        let (buckets, bits) = (self.buckets(), self.fingerprint_bits());
        let seed = match self.hashing() {
            Hashing::Xxh3 { seed } if seed != 0 => format!(", seed {seed}"),
            _ => String::new(),
        };
        format!("cuckoo: {buckets} buckets of 4 slots, fingerprints of {bits} bits{seed}")
    }

    fn facts(&self) -> Value {
        let probes: Option<u32> = None;
        json!({
            "bits": self.bits(), "probes": probes, "buckets": self.buckets(),
            "fingerprint_bits": self.fingerprint_bits(),
        })
    }

    fn insert(&mut self, key: &Subject, ink: Ink) -> Result<Step> {
        let ((fingerprint, buckets), before) = (self.place(&key.bytes), table(self));
        let outcome = Cuckoo::insert(self, &key.bytes);
        let after = table(self);
        let (moves, went_to) = moves(&before, &after, fingerprint);
        let mut notes = notes_of(buckets);
        for Move { fingerprint, from, to } in &moves {
            let note = (Mark::Raised, format!("{fingerprint:02x} comes from bucket {from}"));
            notes.entry(*to).or_insert(note);
        }
        if let Some(bucket) = went_to {
            notes.insert(bucket, (Mark::New, format!("{fingerprint:02x} goes here")));
        }
        let moved: Vec<Value> = moves
            .iter()
            .map(|Move { fingerprint, from, to }| json!({ "fingerprint": fingerprint, "from": from, "to": to }))
            .collect();
        let mut facts = object(json!({
            "fingerprint": fingerprint, "buckets": buckets, "bucket": went_to, "moved": moved, "table": after,
        }));
        let outcome = match outcome {
            Ok(_) if moves.is_empty() => format!("there is room in bucket {}", went_to.unwrap_or(buckets[0])),
            Ok(_) => {
                let ways: Vec<String> = moves
                    .iter()
                    .map(|Move { fingerprint, from, to }| format!("{fingerprint:02x} from {from} to {to}"))
                    .collect();
                format!("both are full, so others move to their other bucket: {}", ways.join(", "))
            }
            Err(full) => {
                let full = advice::shown(&full);
                facts.insert("refused".into(), full.clone().into());
                format!("refused: {full}")
            }
        };
        Ok(Step {
            place: looked_up(fingerprint, buckets),
            picture: picture_of(self, &notes, ink),
            outcome,
            facts,
        })
    }

    fn ask(&self, key: &Subject, is_in: bool, ink: Ink) -> Result<Step> {
        let (fingerprint, buckets) = self.place(&key.bytes);
        let found = |bucket: &&u64| self.bucket(**bucket).is_some_and(|slots| slots.contains(&fingerprint));
        let holds: Vec<u64> = buckets.iter().filter(found).copied().collect();
        let mut notes = notes_of(buckets);
        for &bucket in &holds {
            notes.insert(bucket, (Mark::Same, format!("{fingerprint:02x} is here")));
        }
        let perhaps = self.contains(&key.bytes);
        let mut outcome = match perhaps {
            true => format!("bucket {} has {fingerprint:02x}: perhaps", list(&holds)),
            false => format!("neither bucket has {fingerprint:02x}: no, certainly"),
        };
        outcome.push_str(&verdict(perhaps, is_in, "another one has its fingerprint"));
        let mut facts = answer(perhaps, is_in);
        facts.extend(object(json!({ "fingerprint": fingerprint, "buckets": buckets, "holds": holds })));
        Ok(Step {
            place: looked_up(fingerprint, buckets),
            picture: picture_of(self, &notes, ink),
            outcome,
            facts,
        })
    }

    fn remove(&mut self, key: &Subject, ink: Ink) -> Result<Step> {
        let ((fingerprint, buckets), before) = (self.place(&key.bytes), table(self));
        let removal = Cuckoo::remove(self, &key.bytes);
        let after = table(self);
        let left =
            (0..).zip(before.iter().zip(&after)).find(|(_, (was, is))| was != is).map(|(index, _)| index);
        let mut notes = notes_of(buckets);
        let outcome = match left {
            Some(bucket) => {
                notes.insert(bucket, (Mark::Lowered, format!("{fingerprint:02x} leaves")));
                format!("{fingerprint:02x} leaves bucket {bucket}")
            }
            None => "it is not in, and nothing changes".into(),
        };
        let facts = json!({
            "fingerprint": fingerprint, "buckets": buckets, "bucket": left, "removed": removal.is_removed(), "table": after,
        });
        Ok(Step {
            place: looked_up(fingerprint, buckets),
            picture: picture_of(self, &notes, ink),
            outcome,
            facts: object(facts),
        })
    }

    fn contains(&self, key: &Subject) -> Result<bool> {
        Ok(Cuckoo::contains(self, &key.bytes))
    }

    fn has_copies(&self) -> bool {
        true
    }

    fn picture(&self, ink: Ink) -> Picture {
        picture_of(self, &BTreeMap::new(), ink)
    }
}
