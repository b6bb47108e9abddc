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

impl Limits {
    fn is_none(&self) -> bool {
        self.most_fpr.is_none() && self.memory.is_none()
    }
}

/// Keys that are noted before it is looked whether a limit is reached.
const AT_A_TIME: usize = 512;

impl Seen {
    pub(crate) fn new(filter: Box<dyn AnyFilter>, limits: Limits) -> Self {
        Self { filter, limits, wrongly: 0.0, noted: 0, outcomes: Vec::new() }
    }

    /// Notes keys in order, and tells of each whether it is new. If a limit is reached, of those before.
    pub(crate) fn note(&mut self, digests: &[Digest], new: &mut Vec<bool>) -> Result<()> {
        new.clear();
        let mut left = digests;
        while let Some(&next) = left.first() {
            let most = match self.room() {
                _ if self.limits.is_none() => left.len(),
                // What is known needs no room.
                Some(0) if self.filter.contains_digest(next) => 1,
                Some(0) => return Err(self.has_no_room()),
                room => room.map_or(AT_A_TIME, |room| room.min(AT_A_TIME)),
            };
            let (now, later) = left.split_at(most.min(left.len()));
            self.note_now(now, new)?;
            left = later;
        }
        Ok(())
    }

    fn note_now(&mut self, digests: &[Digest], new: &mut Vec<bool>) -> Result<()> {
        let (before, start) = (self.fpr(), new.len());
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
        let after = self.fpr();
        if let Some(most) = self.limits.most_fpr.filter(|&most| after > most) {
            new.truncate(start);
            return Err(anyhow!(
                "after {} records, the false-positive rate is {}, and {} is the limit; give more --memory, or a larger \
                 --max-fpr",
                report::grouped(self.noted),
                report::short(after),
                report::short(most),
            ));
        }
        let news = new[start..].iter().filter(|&&new| new).count();
        self.wrongly += (before + after) / 2.0 * news as f64;
        self.noted += digests.len() as u64;
        Ok(())
    }

    /// How many keys can come before it grows, if it must not.
    fn room(&self) -> Option<usize> {
        self.limits.memory.filter(|_| self.filter.can().grows)?;
        let report = self.filter.report();
        Some((report.capacity as f64 - report.estimated_len.unwrap_or(f64::INFINITY)).max(0.0) as usize)
    }

    fn has_no_room(&self) -> anyhow::Error {
        anyhow!(
            "after {} records, there is no room for more keys in the {} that --memory allows; give more, or a larger \
             --max-fpr",
            report::grouped(self.noted),
            report::bytes(self.limits.memory.unwrap_or(0)),
        )
    }

    /// Whether each key is perhaps in.
    pub(crate) fn has(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        hits.clear();
        self.filter.contains_batch(digests, hits);
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
