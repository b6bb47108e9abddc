//! The keys that came before, and how often a new one is taken for one of them.

use anyhow::{Result, anyhow};
use mayhap::{AnyFilter, Digest, Insertion};

use crate::report;

/// A filter that is told keys, and tells of each whether it is new.
pub(crate) struct Seen {
    pub(crate) filter: Box<dyn AnyFilter>,
    limits: Limits,
    /// How many new keys were probably taken for old ones.
    wrongly: f64,
    noted: u64,
    outcomes: Vec<Insertion>,
}

/// Where it ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// The false-positive rate may not rise above this.
    pub(crate) most_fpr: Option<f64>,
    /// The filter may not grow.
    pub(crate) memory: Option<u64>,
}

impl Seen {
    pub(crate) fn new(filter: Box<dyn AnyFilter>, limits: Limits) -> Self {
        Self { filter, limits, wrongly: 0.0, noted: 0, outcomes: Vec::new() }
    }

    /// Notes keys in order, and tells of each whether it is new.
    pub(crate) fn note(&mut self, digests: &[Digest], new: &mut Vec<bool>) -> Result<()> {
        new.clear();
        let before = self.fpr();
        self.must_have_room(digests)?;
        let can = self.filter.can();
        let unsupported = self.filter.unsupported("insert");
        if (can.removes || can.counts) && !can.exact {
            // Such a filter keeps a key as often as it is inserted, and some keep it a few times only.
            for &digest in digests {
                let is_new = !self.filter.contains_digest(digest);
                if is_new {
                    self.filter.as_insert().ok_or(unsupported.clone())?.insert_digest(digest)?;
                }
                new.push(is_new);
            }
        } else {
            self.outcomes.clear();
            self.filter.as_insert().ok_or(unsupported)?.insert_batch(digests, &mut self.outcomes)?;
            new.extend(self.outcomes.iter().map(|&outcome| outcome == Insertion::New));
        }
        let (after, news) = (self.fpr(), new.iter().filter(|&&new| new).count());
        self.wrongly += (before + after) / 2.0 * news as f64;
        self.noted += digests.len() as u64;
        self.must_keep_its_rate(after)
    }

    /// Whether each key is perhaps in.
    pub(crate) fn has(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        hits.clear();
        self.filter.contains_batch(digests, hits);
    }

    /// A filter that grows must not, if its memory is limited.
    fn must_have_room(&self, digests: &[Digest]) -> Result<()> {
        let Some(memory) = self.limits.memory.filter(|_| self.filter.can().grows) else { return Ok(()) };
        let report = self.filter.report();
        let room = report.capacity as f64 - report.estimated_len.unwrap_or(f64::INFINITY);
        if room >= digests.len() as f64 {
            return Ok(());
        }
        let mut hits = Vec::new();
        self.filter.contains_batch(digests, &mut hits);
        if room >= hits.iter().filter(|&&hit| !hit).count() as f64 {
            return Ok(());
        }
        Err(anyhow!(
            "after {} records, the {} that --memory allows have no room for more keys; give more, or a larger --max-fpr",
            report::grouped(self.noted),
            report::bytes(memory),
        ))
    }

    fn must_keep_its_rate(&self, now: f64) -> Result<()> {
        match self.limits.most_fpr {
            Some(most) if now > most => Err(anyhow!(
                "after {} records, the false-positive rate is {}, and {} is the limit; give more --memory, or a larger \
                 --max-fpr",
                report::grouped(self.noted),
                report::short(now),
                report::short(most),
            )),
            _ => Ok(()),
        }
    }

    /// The rate at which a new key is taken for an old one.
    pub(crate) fn fpr(&self) -> f64 {
        self.filter.report().fpr_now
    }

    /// The expected number of keys that were new and taken for old ones.
    pub(crate) fn wrongly(&self) -> f64 {
        self.wrongly
    }
}
