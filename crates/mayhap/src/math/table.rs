//! Tables of remainders.

use alloc::vec;
use alloc::vec::Vec;

/// How many of `n` keys of a table find no room, on average: each belongs to one of so many lines of so many slots, and may be in
/// the next `farthest` ones.
///
/// What a line has no room for goes on to the next one, as in a queue. A key that comes finds no room if its line and the next
/// ones are all full, and does not wait then. So their number is the integral of that chance while keys come. It is 10 to 20 %
/// high, because those who find no room are missed in the fullest stretches and not, as here, everywhere.
pub(crate) fn table_crowded(n: u64, lines: u64, slots: u32, farthest: u32) -> f64 {
    // Up to half full there are no stretches of full lines; and after so many lines the queue has forgotten where it began.
    const STEPS: u32 = 8;
    const MEMORY: u64 = 24;
    // A queue is longer than this once in 10^5: at 7 of 8 filled its lengths fall off by a quarter each, whatever the slots.
    const LONGEST: usize = 40;
    let (slots, lines_f, step) = (slots as usize, lines.max(1) as f64, n as f64 / 2.0 / f64::from(STEPS));
    let chance_at = |keys: f64| {
        let arrivals = poisson(keys / lines_f, slots + LONGEST);
        let queued = |waiting: &[f64]| -> Vec<f64> {
            let mut queue = vec![0.0; slots + 2 * LONGEST];
            for (before, chance) in waiting.iter().enumerate() {
                for (more, arrival) in arrivals.iter().enumerate() {
                    queue[before + more] += chance * arrival;
                }
            }
            queue
        };
        let mut waiting = vec![1.0];
        let (mut sum, mut last) = (0.0, 0.0);
        for _ in 0..lines.min(MEMORY) {
            let first = queued(&waiting);
            // Full lines only, from this one on.
            let mut full = first[slots..slots + LONGEST].to_vec();
            for _ in 0..farthest {
                full = queued(&full)[slots..slots + LONGEST].to_vec();
            }
            last = full.iter().sum();
            sum += last;
            let empty: f64 = first[..slots].iter().sum();
            waiting = first[slots..slots + LONGEST].to_vec();
            waiting[0] += empty;
        }
        (sum + last * lines.saturating_sub(MEMORY) as f64) / lines_f
    };
    (0..STEPS).fold(0.0, |crowded, turn| {
        let keys = n as f64 / 2.0 + step * (f64::from(turn) + 0.5) - crowded;
        let ahead = step * chance_at(keys);
        crowded + step * chance_at(keys - ahead / 2.0)
    })
}

/// The chances of 0, 1, ... arrivals, below `len` of them, where so many are expected.
fn poisson(mean: f64, len: usize) -> Vec<f64> {
    let mut chance = libm::exp(-mean);
    let next = |count: usize| {
        let now = chance;
        chance *= mean / (count + 1) as f64;
        now
    };
    (0..len).map(next).collect()
}

/// False-positive rate of a table of `n` keys with `names` names: another key has the name of one of them with the chance
/// `n / names`.
#[must_use]
pub fn table_fpr(n: u64, names: u64) -> f64 {
    // A table may have room for more keys than there are names.
    (n as f64 / names as f64).min(1.0)
}
