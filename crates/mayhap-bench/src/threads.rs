//! One filter filled by several threads, against one thread, by wall time.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use mayhap::{Blocked, Bloom, Layout, Spec};
use mayhap_eval::{SplitMix64, median};

use crate::Size;

/// Fills a filter with so many threads: nanoseconds per key, and its bits, to be compared.
type Fill = Box<dyn Fn(&[u64], usize) -> (f64, Vec<u64>)>;

pub(crate) fn run(size: Size) -> Result<()> {
    let keys: Vec<u64> = (0..size.keys(100_000_000)).map(|index| SplitMix64::at(1, index)).collect();
    let spec = Spec::sized(keys.len() as u64, 0.01);
    let blocked = |layout| -> Fill {
        Box::new(move |keys, threads| {
            let started = Instant::now();
            let mut filter = Blocked::from_spec(&spec.with_layout(layout)).expect("memory");
            filter.insert_all_parallel(black_box(keys), threads);
            (since(started, keys), filter.words().to_vec())
        })
    };
    let bloom: Fill = Box::new(move |keys, threads| {
        let started = Instant::now();
        let mut filter = Bloom::from_spec(&spec).expect("memory");
        filter.insert_all_parallel(black_box(keys), threads);
        (since(started, keys), filter.words().to_vec())
    });
    let fills = [
        ("blocked compact", blocked(Layout::Compact)),
        ("blocked fastest", blocked(Layout::Fastest)),
        ("bloom", bloom),
    ];
    let rounds = size.repetitions().min(3);
    println!(
        "insert_all_parallel, {} u64 keys, 1%: ns of wall time per key from nothing to the full filter, \
         median of {rounds} interleaved rounds",
        keys.len()
    );
    println!("  {:18} {:>9} {:>9} {:>7}", "", "1 thread", "2 threads", "gain");
    for (name, fill) in fills {
        let (mut one, mut two, mut gains) = (vec![], vec![], vec![]);
        for _ in 0..rounds {
            let (alone, alone_bits) = fill(&keys, 1);
            let (both, both_bits) = fill(&keys, 2);
            ensure!(alone_bits == both_bits, "{name}: two threads set other bits than one");
            one.push(alone);
            two.push(both);
            gains.push(alone / both);
        }
        println!("  {name:18} {:9.1} {:9.1} {:6.2}x", middle(one), middle(two), middle(gains));
    }
    println!();
    Ok(())
}

/// Nanoseconds per key.
fn since(started: Instant, keys: &[u64]) -> f64 {
    started.elapsed().as_nanos() as f64 / keys.len() as f64
}

fn middle(mut values: Vec<f64>) -> f64 {
    median(&mut values).expect("one round at least")
}
