//! `shifting`: the three shifting filters, each against the classic filters for the same job.
//!
//! What the paper promises is fewer hash values and fewer memory accesses. So both are counted, and the cache lines that
//! real questions touch; and then it is timed what is left of that, and measured how often answers are right.

use std::hint::black_box;

use anyhow::{Result, ensure};
use mayhap::{
    Bloom, CountingRule, Hashing, Shifting, ShiftingAssociation, ShiftingMultiplicity, Spec, Spectral, math,
    positions,
};
use mayhap_eval::{ABSENT, median};

use crate::measure::Stopwatch;
use crate::options::Options;

/// Keys whose touched lines are counted.
const SAMPLE: u64 = 100_000;
/// The most keys that are asked in one timed pass.
const ASKED: u64 = 2_000_000;
/// Counts are spread evenly from 1 to this.
const MAX_COUNT: u32 = 57;
/// Bits of the counters of the classic filter of counts: the fewest that hold the largest count.
const COUNTER_BITS: u32 = 6;

/// A question to many keys at once; returns a sum over the answers.
type Ask<'a> = Box<dyn Fn(&[u64]) -> u64 + 'a>;
/// The loads of one question: calls the function with the first and the last byte of each.
type Touch<'a> = Box<dyn Fn(u64, &mut dyn FnMut(u64, u64)) + 'a>;

/// A filter with its questions.
struct Contender<'a> {
    name: &'static str,
    bits: u64,
    /// Values that are made of a key's digest.
    values: u32,
    single: Ask<'a>,
    batch: Ask<'a>,
    touch: Touch<'a>,
    /// Shares of right answers to keys that are in and to keys that are not: what right is depends on the job.
    right: [f64; 2],
    formula: [f64; 2],
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let n = options.size.keys(10_000_000);
    let rounds = options.repetitions;
    println!("shifting filters against classic ones, {n} u64 keys, medians of {rounds} rounds");
    println!(
        "  values: made of the digest, which is one hash of the key; loads and 64-byte lines: counted, per question"
    );
    println!("  right: measured, and in brackets by the formula\n");
    membership(n, rounds)?;
    association(n, rounds)?;
    multiplicity(n, rounds)
}

fn to(n: u64) -> Vec<u64> {
    (0..n).collect()
}

fn share(hits: usize, of: usize) -> f64 {
    hits as f64 / of as f64
}

/// Is it in? 10 bits per key, 8 probes.
fn membership(n: u64, rounds: usize) -> Result<()> {
    let (keys, absent) = (to(n), absent(n));
    let (bits, probes) = (10 * n, 8);
    let spec = Spec::new().with_capacity(n).with_probes(probes);
    let mut bloom = Bloom::from_spec(&spec.with_bits(bits))?;
    let mut shifting = Shifting::from_spec(&spec.with_bits(bits + 56))?;
    bloom.insert_all(&keys);
    shifting.insert_all(&keys);
    let (mut of_bloom, mut of_shifting) = (Vec::new(), Vec::new());
    bloom.contains_each(&absent, &mut of_bloom);
    shifting.contains_each(&absent, &mut of_shifting);
    let denied = |hits: &[bool]| share(hits.iter().filter(|&&hit| !hit).count(), hits.len());
    let contenders = [
        Contender {
            name: "bloom",
            bits: bloom.bits(),
            values: probes,
            single: Box::new(|keys| sum(keys, |key| bloom.contains(key).into())),
            batch: Box::new(|keys| many(keys, |keys, hits| bloom.contains_each(keys, hits), u64::from)),
            touch: Box::new(|key, load| touch_bloom(&bloom, key, load)),
            right: [1.0, denied(&of_bloom)],
            formula: [1.0, 1.0 - math::bloom_fpr(bits, n as f64, probes)],
        },
        Contender {
            name: "shifting",
            bits: shifting.bits(),
            values: probes / 2 + 1,
            single: Box::new(|keys| sum(keys, |key| shifting.contains(key).into())),
            batch: Box::new(|keys| many(keys, |keys, hits| shifting.contains_each(keys, hits), u64::from)),
            touch: Box::new(|key, load| {
                shifting.contains_traced(key, |byte| load(byte, byte + 7));
            }),
            right: [1.0, denied(&of_shifting)],
            formula: [1.0, 1.0 - math::shifting_fpr(bits, n as f64, probes, 1)],
        },
    ];
    report("membership: in, or not; 8 probes", &contenders, &keys, &absent, n, rounds)
}

/// In the first set, in the second, or in both? A third of the keys each, 10 probes, half full.
fn association(n: u64, rounds: usize) -> Result<()> {
    let (keys, absent) = (to(n), absent(n));
    let (first, second) = (&keys[..2 * keys.len() / 3], &keys[keys.len() / 3..]);
    let probes = 10;
    let half_full = Spec::new().with_probes(probes);
    let shifting = ShiftingAssociation::of_sets(&half_full.with_capacity(n), first, second)?;
    let bloom = |keys: &[u64]| -> Result<Bloom> {
        let mut bloom = Bloom::from_spec(&half_full.with_capacity(keys.len() as u64))?;
        bloom.insert_all(keys);
        Ok(bloom)
    };
    let (one, other) = (bloom(first)?, bloom(second)?);
    let mut answers = Vec::new();
    shifting.association_each(&keys, &mut answers);
    let clear = answers.iter().filter(|answer| answer.is_clear()).count();
    let neither = absent.iter().filter(|&key| !shifting.contains(key)).count();
    let clear_of_two = keys.iter().filter(|&key| one.contains(key) != other.contains(key)).count();
    let neither_of_two = absent.iter().filter(|&key| !one.contains(key) && !other.contains(key)).count();
    let (f, f_of_two) = (
        math::bloom_fpr(shifting.starts(), n as f64, probes),
        math::bloom_fpr(one.bits(), first.len() as f64, probes),
    );
    let both_batch = |keys: &[u64]| {
        let (mut hits, mut hits_of_other) = (Vec::new(), Vec::new());
        one.contains_each(keys, &mut hits);
        other.contains_each(keys, &mut hits_of_other);
        hits.iter().zip(&hits_of_other).map(|(&hit, &other)| u64::from(hit) + 2 * u64::from(other)).sum()
    };
    let contenders = [
        Contender {
            name: "two bloom filters",
            bits: one.bits() + other.bits(),
            values: 2 * probes,
            single: Box::new(|keys| {
                sum(keys, |key| u64::from(one.contains(key)) + 2 * u64::from(other.contains(key)))
            }),
            batch: Box::new(both_batch),
            touch: Box::new(|key, load| {
                touch_bloom(&one, key, load);
                // Lines of another filter are other lines.
                let behind = one.bits().next_multiple_of(64);
                touch_bloom(&other, key, &mut |from, to| load(from + behind, to + behind));
            }),
            right: [share(clear_of_two, keys.len()), share(neither_of_two, absent.len())],
            formula: [math::two_blooms_clear(f_of_two), 1.0 - math::any_of(f_of_two, 2)],
        },
        Contender {
            name: "shifting-association",
            bits: shifting.bits(),
            values: probes + 2,
            single: Box::new(|keys| sum(keys, |key| shifting.association(key) as u64)),
            batch: Box::new(|keys| {
                many(keys, |keys, answers| shifting.association_each(keys, answers), |answer| answer as u64)
            }),
            touch: Box::new(|key, load| {
                shifting.association_traced(key, |byte| load(byte, byte + 7));
            }),
            right: [share(clear, keys.len()), share(neither, absent.len())],
            formula: [math::association_clear(f), 1.0 - math::any_of(f, 3)],
        },
    ];
    let title = "two sets: right is a clear answer, or that a key of neither is in neither; 10 probes";
    report(title, &contenders, &keys, &absent, n, rounds)
}

/// How often? Counts from 1 to 57, 8 probes and 17.3 bits per key; the classic filters with as many bits, and with as
/// many probes.
fn multiplicity(n: u64, rounds: usize) -> Result<()> {
    let (keys, absent) = (to(n), absent(n));
    let count = |key: u64| 1 + key % u64::from(MAX_COUNT);
    let (starts, probes) = ((17.312_34 * n as f64) as u64, 8);
    let spec = Spec::new().with_capacity(n).with_probes(probes).with_bits(starts + 56);
    let shifting = ShiftingMultiplicity::of_counts(&spec, keys.iter().map(|&key| (key, count(key))))?;
    let spectral = |bits: u64| -> Result<Spectral> {
        let spec = Spec::new()
            .with_capacity(n)
            .with_bits(bits)
            .with_counter_bits(COUNTER_BITS)
            .with_counting_rule(CountingRule::MinimalIncrease);
        let mut spectral = Spectral::from_spec(&spec)?;
        for &key in &keys {
            spectral.insert_times(key, count(key));
        }
        Ok(spectral)
    };
    let small = spectral(shifting.bits())?;
    let large =
        spectral(u64::from(COUNTER_BITS) * (f64::from(probes) * n as f64 / std::f64::consts::LN_2) as u64)?;
    let mut counts = Vec::new();
    shifting.count_each(&keys, &mut counts);
    ensure!(keys.iter().zip(&counts).all(|(&key, &told)| told >= count(key)), "a count was too low");
    let right = |told: &dyn Fn(u64) -> u64| {
        let members = keys.iter().filter(|&&key| told(key) == count(key)).count();
        let others = absent.iter().filter(|&&key| told(key) == 0).count();
        [share(members, keys.len()), share(others, absent.len())]
    };
    let f = math::bloom_fpr(starts, n as f64, probes);
    let contenders = [
        classic("spectral, as many bits", &small, n, right(&|key| small.count(key))),
        classic("spectral, as many probes", &large, n, right(&|key| large.count(key))),
        Contender {
            name: "shifting-multiplicity",
            bits: shifting.bits(),
            values: probes,
            single: Box::new(|keys| sum(keys, |key| shifting.count(key))),
            batch: Box::new(|keys| {
                many(keys, |keys, counts| shifting.count_each(keys, counts), |count| count)
            }),
            touch: Box::new(|key, load| {
                shifting.count_traced(key, |byte| load(byte, byte + 7));
            }),
            right: right(&|key| shifting.count(key)),
            formula: [
                math::multiplicity_correct_on_average(f, MAX_COUNT),
                math::multiplicity_correct(f, 0, MAX_COUNT),
            ],
        },
    ];
    let title = "counts from 1 to 57: right is the very count, or 0 for an absent key; spectral has counters of 6 bits";
    report(title, &contenders, &keys, &absent, n, rounds)
}

fn classic<'a>(name: &'static str, filter: &'a Spectral, n: u64, right: [f64; 2]) -> Contender<'a> {
    // Of the simpler rule, minimum selection: this one gets no more wrong.
    let least = 1.0 - math::bloom_fpr(filter.cells(), n as f64, filter.probes());
    Contender {
        name,
        bits: filter.cells() * u64::from(COUNTER_BITS),
        values: filter.probes(),
        single: Box::new(|keys| sum(keys, |key| filter.count(key))),
        batch: Box::new(|keys| many(keys, |keys, counts| filter.count_each(keys, counts), |count| count)),
        touch: Box::new(|key, load| touch_counters(filter, key, load)),
        right,
        formula: [least; 2],
    }
}

fn absent(n: u64) -> Vec<u64> {
    (ABSENT..ABSENT + n.min(ASKED)).collect()
}

fn sum(keys: &[u64], ask: impl Fn(u64) -> u64) -> u64 {
    keys.iter().map(|&key| ask(key)).sum()
}

fn many<A: Copy>(keys: &[u64], ask: impl Fn(&[u64], &mut Vec<A>), value: impl Fn(A) -> u64) -> u64 {
    let mut answers = Vec::with_capacity(keys.len());
    ask(keys, &mut answers);
    answers.into_iter().map(value).sum()
}

/// What a question to a Bloom filter looks at: groups of positions, as many first as leave fours, until one of a group is
/// not set.
fn touch_bloom(bloom: &Bloom, key: u64, load: &mut dyn FnMut(u64, u64)) {
    let places: Vec<u64> = bloom.positions(key).collect();
    let first = match places.len() % 4 {
        rest @ (0 | 1) if places.len() > rest => rest + 4,
        rest => rest,
    };
    let (first, others) = places.split_at(first);
    for group in std::iter::once(first).chain(others.chunks(4)) {
        group.iter().for_each(|place| load(place / 64 * 8, place / 64 * 8 + 7));
        if !bloom.contains_positions(group).expect("positions of the filter itself") {
            return;
        }
    }
}

/// What a question to a spectral filter looks at: counters one by one, until one is 0.
fn touch_counters(filter: &Spectral, key: u64, load: &mut dyn FnMut(u64, u64)) {
    let digest = Hashing::default().digest_of(key);
    for place in positions(digest, filter.probes(), filter.cells()) {
        let bit = place * u64::from(COUNTER_BITS);
        load(bit / 8, (bit + u64::from(COUNTER_BITS) - 1) / 8);
        if filter.counter(place) == Some(0) {
            return;
        }
    }
}

/// Loads and different lines per question.
fn touched(touch: &Touch<'_>, keys: impl Iterator<Item = u64>) -> (f64, f64) {
    let (mut questions, mut loads, mut all_lines, mut lines) = (0u64, 0u64, 0usize, Vec::new());
    for key in keys {
        lines.clear();
        touch(key, &mut |from, to| {
            loads += 1;
            lines.extend(from / 64..=to / 64);
        });
        lines.sort_unstable();
        lines.dedup();
        all_lines += lines.len();
        questions += 1;
    }
    (loads as f64 / questions as f64, all_lines as f64 / questions as f64)
}

/// Counts what is touched, times all contenders in turns, and prints the table.
fn report(
    title: &str,
    contenders: &[Contender<'_>],
    keys: &[u64],
    absent: &[u64],
    n: u64,
    rounds: usize,
) -> Result<()> {
    // Keys that are asked: every so many, in an order that has nothing to do with that of the inserts.
    let asked = n.min(ASKED);
    let present: Vec<u64> =
        (0..asked).map(|index| keys[(index.wrapping_mul(0x9E37_79B9_7F4A_7C15) % n) as usize]).collect();
    let absent = &absent[..asked as usize];
    let mut times = vec![[const { Vec::new() }; 4]; contenders.len()];
    for round in 0..rounds {
        for turn in 0..contenders.len() {
            let index = (round + turn) % contenders.len();
            let Contender { single, batch, .. } = &contenders[index];
            for (place, (ask, keys)) in
                [(single, &present[..]), (single, absent), (batch, &present[..]), (batch, absent)]
                    .into_iter()
                    .enumerate()
            {
                let mut watch = Stopwatch::default();
                black_box(watch.time(|| ask(black_box(keys))));
                times[index][place].push(watch.per_key(asked).cpu);
            }
        }
    }
    println!("{title}");
    println!(
        "  {:26} {:>8} {:>6} {:>11} {:>11} {:>13} {:>13} {:>19} {:>19}",
        "", "bits/key", "values", "loads", "lines", "ns single", "ns batch", "right in", "right absent"
    );
    println!(
        "  {:26} {:>8} {:>6} {:>11} {:>11} {:>13} {:>13}",
        "", "", "", "in/absent", "in/absent", "in/absent", "in/absent"
    );
    for (contender, times) in contenders.iter().zip(&mut times) {
        let [single_in, single_absent, batch_in, batch_absent] = times;
        let middle = |values: &mut Vec<f64>| median(values).unwrap_or(f64::NAN);
        let (loads, lines) = touched(&contender.touch, present.iter().copied().take(SAMPLE as usize));
        let (loads_absent, lines_absent) =
            touched(&contender.touch, absent.iter().copied().take(SAMPLE as usize));
        println!(
            "  {:26} {:>8.2} {:>6} {loads:>5.2}/{loads_absent:<5.2} {lines:>5.2}/{lines_absent:<5.2} {:>6.1}/{:<6.1} \
             {:>6.1}/{:<6.1} {:>9.5} ({:.5}) {:>9.5} ({:.5})",
            contender.name,
            contender.bits as f64 / n as f64,
            contender.values,
            middle(single_in),
            middle(single_absent),
            middle(batch_in),
            middle(batch_absent),
            contender.right[0],
            contender.formula[0],
            contender.right[1],
            contender.formula[1],
        );
    }
    println!();
    Ok(())
}
