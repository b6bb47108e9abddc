//! What a set of all records would print, and inputs to try it with.

use std::collections::{HashMap, HashSet};

use mayhap_eval::Random;
use serde_json::Value;

use crate::runner::Done;

/// The records of an input. The last end is optional.
pub(crate) fn records(input: &[u8], end: u8) -> Vec<&[u8]> {
    match input {
        [] => Vec::new(),
        _ => input.strip_suffix(&[end]).unwrap_or(input).split(|&byte| byte == end).collect(),
    }
}

/// The records of an input, each with its key: a byte order mark at the start of the input is no part of it.
fn keyed(input: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut keyed: Vec<_> = records(input, b'\n').into_iter().map(|record| (record, record)).collect();
    if let Some((_, key)) = keyed.first_mut() {
        *key = key.strip_prefix(b"\xef\xbb\xbf").unwrap_or(key);
    }
    keyed
}

/// Records with their ends.
pub(crate) fn joined<'a>(records: impl IntoIterator<Item = &'a [u8]>, end: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        out.extend_from_slice(record);
        out.push(end);
    }
    out
}

/// The first record of each kind.
pub(crate) fn firsts(input: &[u8]) -> Vec<u8> {
    let mut seen = HashSet::new();
    let first = keyed(input).into_iter().filter(|&(_, key)| seen.insert(key));
    joined(first.map(|(record, _)| record), b'\n')
}

/// All records but the first of each kind.
pub(crate) fn repeats(input: &[u8]) -> Vec<u8> {
    let mut seen = HashSet::new();
    let again = keyed(input).into_iter().filter(|&(_, key)| !seen.insert(key));
    joined(again.map(|(record, _)| record), b'\n')
}

/// The records that never come again.
pub(crate) fn singles(input: &[u8]) -> Vec<u8> {
    let mut counts: HashMap<&[u8], u64> = HashMap::new();
    keyed(input).into_iter().for_each(|(_, key)| *counts.entry(key).or_default() += 1);
    let once = keyed(input).into_iter().filter(|(_, key)| counts[key] == 1);
    joined(once.map(|(record, _)| record), b'\n')
}

/// The end report: what was read was printed or dropped.
#[track_caller]
pub(crate) fn report(done: &Done) -> Value {
    let report: Value =
        serde_json::from_str(done.err.trim()).unwrap_or_else(|e| panic!("no report: {e}\n{done:?}"));
    let number = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name} in {report}"));
    assert_eq!(number("read"), number("printed") + number("dropped"), "{report}");
    report
}

/// Inputs of many shapes, each with its name.
pub(crate) fn inputs() -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<(String, Vec<u8>)> =
        vec![("nothing".into(), Vec::new()), ("one line".into(), b"one\n".to_vec())];
    let sizes = [(2, 2), (1000, 1000), (30_000, 20_000), (200_000, 60_000)];
    for (seed, (count, distinct)) in (1u64..).zip(sizes) {
        let mut add = |name: &str, line: &mut dyn FnMut(u64, u64) -> String| {
            let mut random = Random::new(seed);
            let lines = (0..count).map(|index| line(index, random.next_u64()) + "\n");
            inputs.push((format!("{count} {name}"), lines.collect::<String>().into_bytes()));
        };
        add("URLs", &mut |_, random| format!("https://example.org/{}/page", random % distinct));
        add("skewed numbers", &mut |_, random| {
            let share = (random >> 11) as f64 / (1u64 << 53) as f64;
            format!("{}", (share.powi(4) * distinct as f64) as u64)
        });
        add("different numbers", &mut |index, _| index.to_string());
        add("numbers twice in a row", &mut |index, _| (index / 2).to_string());
        add("rounds of the same", &mut |index, _| format!("line {}", index % 777));
        add("lines of all lengths", &mut |_, random| "x".repeat(random as usize % 97));
        add("equal lines", &mut |_, _| "all the same".into());
    }
    inputs
}
