//! The keys that came before, and how often a new one is taken for one of them.

use std::fmt;
use std::mem::take;

use anyhow::Result;
use mayhap::{AnyFilter, Digest, Full, Insertion, Spec, Table};

use crate::{advice, report};

/// A filter that is told keys, and tells of each whether it is new.
pub(crate) struct Seen {
    pub(crate) filter: Box<dyn AnyFilter>,
    /// One that has no room for more keys.
    full: Option<Box<dyn AnyFilter>>,
    /// Its false-positive rate, which does not change.
    full_fpr: f64,
    limits: Limits,
    /// How many new keys were probably taken for old ones.
    wrongly: f64,
    noted: u64,
    /// The rate, until keys are put in.
    fpr: Option<f64>,
    outcomes: Vec<Insertion>,
    hits: Vec<bool>,
    unknown: Vec<Digest>,
}

/// Where it ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// The false-positive rate may not rise above this.
    pub(crate) most_fpr: Option<f64>,
    /// The filter may not grow beyond this.
    pub(crate) memory: Option<u64>,
    /// The filter may not take more keys than this, because with more the rate would be higher than was asked for; others go
    /// to this table.
    pub(crate) then: Option<(u64, Spec)>,
    /// The limit was given by the user, or the filter is kept: it is checked often.
    pub(crate) is_strict: bool,
    /// The filter is kept for later runs.
    pub(crate) is_state: bool,
}

/// Keys that are noted at most before it is looked whether a strict limit is reached.
const AT_A_TIME: u64 = 512;

/// The error for a limit that is reached. All keys that were noted before are told.
#[derive(Debug)]
pub(crate) struct LimitReached(String);

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LimitReached {}

impl Seen {
    pub(crate) fn new(filter: Box<dyn AnyFilter>, limits: Limits) -> Self {
        let (outcomes, hits, unknown) = Default::default();
        Self {
            filter,
            full: None,
            full_fpr: 0.0,
            limits,
            wrongly: 0.0,
            noted: 0,
            fpr: None,
            outcomes,
            hits,
            unknown,
        }
    }

    /// Keys that may be noted before it is looked again whether a limit is reached: few enough that the rate of a small filter
    /// hardly rises meanwhile.
    fn at_a_time(&self) -> usize {
        if !self.limits.is_strict {
            return usize::MAX;
        }
        (self.filter.report().capacity / 16).clamp(1, AT_A_TIME) as usize
    }

    /// Notes keys in order, and tells of each whether it is new. If a limit is reached, of those before.
    pub(crate) fn note(&mut self, digests: &[Digest], new: &mut Vec<bool>) -> Result<()> {
        new.clear();
        let (mut left, at_a_time) = (digests, self.at_a_time());
        while let Some(&next) = left.first() {
            let most = at_a_time.min(left.len());
            let most = match self.room() {
                // What is known needs no room.
                Some(0) if self.filter.contains_digest(next) => 1,
                Some(0) => match self.limits.then.take() {
                    Some((_, spec)) => {
                        let full = std::mem::replace(&mut self.filter, Box::new(Table::from_spec(&spec)?));
                        self.full_fpr = full.report().fpr_now;
                        self.full = Some(full);
                        self.fpr = None;
                        continue;
                    }
                    None => return Err(self.has_no_room().into()),
                },
                room => room.map_or(most, |room| room.min(most)),
            };
            let (now, later) = left.split_at(most.min(left.len()));
            match self.full.take() {
                None => self.note_now(now, new)?,
                Some(full) => {
                    let noted = self.note_behind(&*full, now, new);
                    self.full = Some(full);
                    noted?;
                }
            }
            left = later;
        }
        Ok(())
    }

    /// The same, if some keys are in a filter that is full.
    fn note_behind(&mut self, full: &dyn AnyFilter, digests: &[Digest], new: &mut Vec<bool>) -> Result<()> {
        let (mut hits, mut unknown) = (take(&mut self.hits), take(&mut self.unknown));
        hits.clear();
        unknown.clear();
        full.contains_batch(digests, &mut hits);
        unknown.extend(digests.iter().zip(&hits).filter(|(_, hit)| !**hit).map(|(&digest, _)| digest));
        let mut told = Vec::with_capacity(unknown.len());
        let noted = self.note_now(&unknown, &mut told);
        let mut told = told.into_iter();
        // As far as it came, if it did not come to the end.
        new.extend(hits.iter().map_while(|&hit| if hit { Some(false) } else { told.next() }));
        self.noted += (digests.len() - unknown.len()) as u64;
        (self.hits, self.unknown) = (hits, unknown);
        noted
    }

    fn note_now(&mut self, digests: &[Digest], new: &mut Vec<bool>) -> Result<()> {
        let (before, start) = (self.fpr(), new.len());
        let can = self.filter.can();
        let unsupported = self.filter.unsupported("insert");
        let mut inserted = Ok(());
        if (can.removes || can.counts) && !can.exact {
            // Such a filter keeps a key as often as it is inserted, and some keep it a few times only.
            for &digest in digests {
                let is_new = !self.filter.contains_digest(digest);
                if is_new
                    && let Err(error) =
                        self.filter.as_insert().ok_or(unsupported.clone())?.insert_digest(digest)
                {
                    inserted = Err(error);
                    break;
                }
                new.push(is_new);
            }
        } else {
            self.outcomes.clear();
            inserted = self.filter.as_insert().ok_or(unsupported)?.insert_batch(digests, &mut self.outcomes);
            // As far as it came: what is in by now must be printed.
            new.extend(self.outcomes.iter().map(|&outcome| outcome == Insertion::New));
        }
        let news = new[start..].iter().filter(|&&new| new).count();
        if news > 0 {
            self.fpr = None;
        }
        let after = self.fpr();
        self.wrongly += (before + after) / 2.0 * news as f64;
        self.noted += (new.len() - start) as u64;
        if let Err(error) = inserted {
            return Err(self.takes_no_more(&error).into());
        }
        match self.limits.most_fpr {
            Some(most) if after > most => Err(self.is_full(most).into()),
            _ => Ok(()),
        }
    }

    /// The error if the rate is above this.
    pub(crate) fn is_full(&mut self, most: f64) -> LimitReached {
        let (now, most) = (report::short(self.fpr()), report::short(most));
        let way_out = match (self.limits.memory, &self.limits.is_state) {
            (Some(_), _) => "give more --memory, or a larger --max-fpr",
            (_, true) => "what was printed is remembered; begin another file, or give a larger --max-fpr",
            (_, false) => "give a larger -p or --max-fpr, or say --exact",
        };
        let noted = report::grouped(self.noted);
        LimitReached(format!(
            "after {noted} records, the false-positive rate is {now}, and {most} is the limit; {way_out}"
        ))
    }

    /// How many keys it can take, if there is a limit.
    fn room(&self) -> Option<usize> {
        // It must not grow.
        let is_limited = self.limits.memory.is_some() && self.filter.can().grows;
        if self.limits.then.is_none() && !is_limited {
            return None;
        }
        let report = self.filter.report();
        let most = self.limits.then.map_or(report.capacity, |(most, _)| most.max(report.capacity));
        Some((most as f64 - report.estimated_len.unwrap_or(f64::INFINITY)).max(0.0) as usize)
    }

    /// The error if the filter refuses a key.
    fn takes_no_more(&self, error: &Full) -> LimitReached {
        let way_out =
            if self.limits.is_state { "; what was printed is remembered; begin another file" } else { "" };
        LimitReached(format!(
            "after {} records: {}{way_out}",
            report::grouped(self.noted),
            advice::shown(error)
        ))
    }

    fn has_no_room(&self) -> LimitReached {
        LimitReached(format!(
            "after {} records, there is no room for more keys in the {} that --memory allows; give more, or a larger \
             --max-fpr",
            report::grouped(self.noted),
            report::bytes(self.limits.memory.unwrap_or(0)),
        ))
    }

    /// Whether each key is perhaps in.
    pub(crate) fn has(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        hits.clear();
        self.filter.contains_batch(digests, hits);
    }

    /// The rate at which a new key is taken for an old one.
    pub(crate) fn fpr(&mut self) -> f64 {
        *self.fpr.get_or_insert_with(|| self.filter.report().fpr_now + self.full_fpr)
    }

    /// All filters, the one that keys are put in first.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &dyn AnyFilter> {
        [Some(&self.filter), self.full.as_ref()].into_iter().flatten().map(|filter| &**filter)
    }

    /// The expected number of keys that were new and taken for old ones.
    pub(crate) fn wrongly(&self) -> f64 {
        self.wrongly
    }
}
