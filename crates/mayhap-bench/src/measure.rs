//! Time, rounds, answers: everything between the table of contenders and the report.

use std::hint::black_box;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::Size;
use crate::contenders::{Contender, Filled, Role, Task};
use crate::keys::{BenchKey, KeySet};
use crate::memory::resident;

/// How many keys go in, how many are asked, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) keys: u64,
    /// Keys asked in each timed pass: all of them, up to 10 million, since the times do not change then.
    pub(crate) probes: usize,
    /// Absent keys that exist: more than the probes where those are too few to measure a rate.
    pub(crate) absent: u64,
    /// Passes that one timing sums up, so that small sets are not lost in the resolution of a clock.
    pub(crate) passes: u64,
    pub(crate) rounds: usize,
}

impl Plan {
    pub(crate) fn new(keys: u64, rounds: usize, size: Size) -> Self {
        let probes = keys.min(10_000_000);
        let (least, passes) = if size.quick { (0, 1) } else { (1_000_000, 1_000_000_u64.div_ceil(keys)) };
        Self { keys, probes: probes as usize, absent: probes.max(least), passes: passes.min(100), rounds }
    }
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// From nothing to the full filter: allocation, page faults and, if it must, building included.
    Insert,
    /// Questions for keys that are in.
    Hit,
    /// Questions for keys that are not.
    Miss,
    /// One or the other, as a coin says.
    Half,
    /// All keys out again, where the filter can.
    Remove,
}

impl Operation {
    pub(crate) const ALL: [Self; 5] = [Self::Insert, Self::Hit, Self::Miss, Self::Half, Self::Remove];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Half => "half",
            Self::Remove => "remove",
        }
    }
}

/// Nanoseconds per key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    /// Of the process, on all its threads.
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
}

/// The times of one round, in the order of [`Operation::ALL`].
type Round = [Option<Time>; 5];

/// Everything that was found about one contender in one task.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) rounds: Vec<Round>,
    /// As the filter says itself.
    pub(crate) bits_per_key: Option<f64>,
    /// As the resident memory of the process grew; only for a million keys or more.
    pub(crate) resident_bits_per_key: Option<f64>,
    pub(crate) fpr: Option<f64>,
    /// Keys that were inserted and denied. More than none is a bug of a filter, or its declared flaw.
    pub(crate) lost: Option<u64>,
}

impl Row {
    /// The times of one operation, one per round; empty if it does not apply.
    pub(crate) fn times(&self, operation: Operation) -> Vec<Time> {
        self.rounds.iter().filter_map(|round| round[operation as usize]).collect()
    }
}

/// One task, all contenders.
pub(crate) struct Rows {
    pub(crate) task: Task,
    pub(crate) plan: Plan,
    pub(crate) rows: Vec<Row>,
}

/// Runs every contender once per round; each round starts with another one, so that nobody always comes
/// after the same neighbour.
pub(crate) fn run<K: BenchKey>(
    task: Task,
    plan: Plan,
    contenders: &[Contender<'_, K>],
    keys: &KeySet<K>,
) -> Rows {
    let mut rows: Vec<Row> = contenders.iter().map(new_row).collect();
    for round in 0..plan.rounds {
        for turn in 0..contenders.len() {
            let index = (round + turn) % contenders.len();
            run_once(plan, &contenders[index], keys, &mut rows[index]);
        }
    }
    Rows { task, plan, rows }
}

fn new_row<K>(contender: &Contender<'_, K>) -> Row {
    Row {
        name: contender.name,
        role: contender.role,
        rounds: Vec::new(),
        bits_per_key: None,
        resident_bits_per_key: None,
        fpr: None,
        lost: None,
    }
}

fn run_once<K: BenchKey>(plan: Plan, contender: &Contender<'_, K>, keys: &KeySet<K>, row: &mut Row) {
    let is_filter = contender.role != Role::Limit;
    let per_key = |bytes: u64| bytes as f64 * 8.0 / plan.keys as f64;
    let passes = if is_filter { plan.passes } else { 1 };

    let mut filling = Stopwatch::default();
    let mut filled = None;
    for _ in 0..passes {
        // The one before goes first, and is not timed.
        drop(filled.take());
        let before = resident();
        filled = Some(filling.time(|| (contender.fill)(&keys.present)));
        // Small blocks that were freed and come again do not make the process grow: the most counts.
        let grown = resident().zip(before).map(|(after, before)| per_key(after.saturating_sub(before)));
        if is_filter && plan.keys >= 1_000_000 {
            row.resident_bits_per_key = row.resident_bits_per_key.into_iter().chain(grown).reduce(f64::max);
        }
    }
    let mut filter = filled.expect("at least one pass");
    let insert = filling.per_key(plan.keys * passes);

    let ask = |keys: &[K]| {
        let mut watch = Stopwatch::default();
        let answers = (0..plan.passes).map(|_| watch.time(|| filter.ask(black_box(keys)))).last();
        (watch.per_key(keys.len() as u64 * plan.passes), answers.expect("at least one pass"))
    };
    let (hit, hits) = ask(&keys.present[..plan.probes]);
    let (miss, _) = ask(&keys.absent[..plan.probes]);
    let (half, _) = ask(&keys.half);
    let times = [is_filter.then_some(insert), Some(hit), Some(miss), Some(half)];
    row.bits_per_key = filter.bytes().map(per_key);
    if is_filter {
        let lost = plan.probes as u64 - hits;
        row.lost = row.lost.max(Some(lost));
        if row.fpr.is_none() {
            row.fpr = Some(fpr(&*filter, &keys.absent));
        }
    }
    // The last question: one pass, since nothing is left for a second.
    let mut watch = Stopwatch::default();
    let removed = watch.time(|| filter.remove(black_box(&keys.present)));
    let [insert, hit, miss, half] = times;
    row.rounds.push([insert, hit, miss, half, removed.map(|_| watch.per_key(plan.keys))]);
}

/// Not timed, and over all absent keys.
fn fpr<K>(filter: &dyn Filled<K>, absent: &[K]) -> f64 {
    filter.ask(absent) as f64 / absent.len() as f64
}

/// CPU time and wall time together, added up over passes.
#[derive(Default)]
pub(crate) struct Stopwatch {
    cpu: f64,
    wall: f64,
}

impl Stopwatch {
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (wall, cpu) = (Instant::now(), cpu_time());
        let result = black_box(work());
        self.cpu += cpu_time() - cpu;
        self.wall += wall.elapsed().as_nanos() as f64;
        result
    }

    /// Adds what another one has measured.
    pub(crate) fn add(&mut self, other: &Self) {
        self.cpu += other.cpu;
        self.wall += other.wall;
    }

    pub(crate) fn per_key(&self, keys: u64) -> Time {
        Time { cpu: self.cpu / keys as f64, wall: self.wall / keys as f64 }
    }
}

/// What this process has used of all processors, in nanoseconds.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
