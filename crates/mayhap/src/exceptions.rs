//! Exceptions: keys that a filter denies, exactly, although its bits may admit them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::num::NonZeroU16;

use crate::bits::{Bytes, OutOfMemory};
use crate::error::{DecodeError, Error, FoldError, Full, Mismatch, SpecError};
use crate::family::{
    AnyFilter, Capabilities, Details, Exceptions, Family, Report, bare, by_digests, insert_by_digests,
};
use crate::filters::exact::Exact;
use crate::hash::{Digest, Hashing};
use crate::key_rules::{Cut, KeyRules};
use crate::traits::{
    Associate, Association, Count, Filter, Fold, Insert, Insertion, Intersect, Label, Labels, Merge, Removal,
    Remove, Subtract,
};
use crate::wire::{EXCEPTIONS, KEY_RULES, Writer};

/// The filter, but with *no* for these keys.
///
/// **Answers** what the filter answers, but *no* to every exception.
/// **Promise** an exception is denied until it is inserted; no other answer changes, so that no key that is in is denied.
/// **Not for** keys that are in the set: [`except`] believes its caller that they are not.
///
/// ```text
///   digest ─▶ filter ─▶ no                                             no
///                    └▶ mayhap ─▶ among the sorted exceptions? ─▶ no   mayhap
///                                                             └▶ yes   no
/// ```
///
/// Only keys that the filter admits are looked up, so that a miss costs what it did before.
///
/// | operation        | what becomes of an exception                                             |
/// |------------------|--------------------------------------------------------------------------|
/// | insert, label    | dropped, when the key is in                                              |
/// | remove           | stays; the key was not in, and the filter is not asked                   |
/// | merge            | stays if neither filter says yes to it                                   |
/// | intersect        | stays, and those of the other come with it: what either denies is not in both |
/// | fold             | stays                                                                    |
///
/// Exact sets need no exceptions. A set of exceptions that is itself approximate would deny members, so it is exact: 128 bits
/// a key.
///
/// The same wrapper carries the [key rules](crate::key_rules) of a file beside any filter.
///
/// All are kept where the filter can still change, since any change can make a false positive of a key that is none yet;
/// of a filter that stays as it is, only those that it admits. An exact set denies them by itself and is left as it is.
/// So is a filter by the rules of another program, whose digests do not tell every key from every other.
/// Calling it again adds to them; without keys it makes a filter that takes the exceptions of another in a merge.
///
/// ```
/// use mayhap::{AnyFilter, Bloom, Digest, Filter, except};
///
/// let mut seen = Bloom::new(1000, 0.01)?;
/// for key in 0..1000u64 {
///     seen.insert(key);
/// }
/// let hashing = seen.hashing();
/// let wrong: Vec<Digest> =
///     (1000..9000u64).map(|key| hashing.digest_of(key)).filter(|&key| seen.contains_digest(key)).collect();
/// assert!(!wrong.is_empty()); // 1% of them
/// let filter = except(Box::new(seen), wrong.iter().copied());
/// assert!(wrong.iter().all(|&key| !filter.contains_digest(key)));
/// assert!((0..1000u64).all(|key| filter.contains(&key.to_le_bytes())));
/// # Ok::<(), mayhap::Error>(())
/// ```
#[must_use]
pub fn except(filter: Box<dyn AnyFilter>, keys: impl IntoIterator<Item = Digest>) -> Box<dyn AnyFilter> {
    if filter.can().exact || filter.program().is_some() {
        return filter;
    }
    let mut excepted = Excepted::of(filter);
    let keeps_all = may_change(excepted.filter.can());
    excepted.exceptions.get_or_insert_with(|| Exact::hashed(excepted.filter.hashing()));
    for key in keys {
        if keeps_all || excepted.filter.contains_digest(key) {
            excepted.put(key);
        }
    }
    Box::new(excepted)
}

/// The filter with these rules in place of those that it has: they are [told](AnyFilter::key_rules) and written into its file.
#[must_use]
pub fn with_key_rules(filter: Box<dyn AnyFilter>, rules: Option<KeyRules>) -> Box<dyn AnyFilter> {
    if filter.key_rules() == rules.as_ref() {
        return filter;
    }
    let wrapped = Excepted { rules, ..Excepted::of(filter) };
    if wrapped.rules.is_none() && wrapped.exceptions.is_none() { wrapped.filter } else { Box::new(wrapped) }
}

/// Readies filters for a union of all of them, one after the other: each gets those exceptions of the others that it denies
/// anyway. Otherwise a key that no filter admits, but a union of some does, would be lost as an exception of the next.
pub fn share_exceptions(filters: &mut [Box<dyn AnyFilter>]) {
    let mut all = Vec::new();
    for filter in &*filters {
        all.extend(apart(&**filter).1.into_iter().flat_map(Exact::digests));
    }
    all.sort_unstable();
    all.dedup();
    for filter in filters {
        let denied: Vec<Digest> = all.iter().copied().filter(|&key| !filter.contains_digest(key)).collect();
        let bare: Box<dyn AnyFilter> = Box::new(Exact::default());
        *filter = except(core::mem::replace(filter, bare), denied);
    }
}

/// Whether an operation can make the filter admit a key that it denies.
pub(crate) const fn may_change(can: Capabilities) -> bool {
    can.inserts || can.labels || can.merges || can.intersects || can.folds
}

/// A filter with what its file says beside it. Offered only as a filter of any family, since what it can do is what its filter
/// can do.
struct Excepted {
    filter: Box<dyn AnyFilter>,
    /// Hashed as the filter's keys, if it may have any.
    exceptions: Option<Exact>,
    rules: Option<KeyRules>,
}

/// Why the expectations below hold: an `as_...` of this type looks first.
const OFFERED: &str = "offered only where the filter has it";

impl Excepted {
    fn of(filter: Box<dyn AnyFilter>) -> Self {
        let any: &dyn Any = &*filter;
        if any.is::<Self>() {
            let any: Box<dyn Any> = filter;
            return *any.downcast().expect("looked at above");
        }
        Self { filter, exceptions: None, rules: None }
    }

    /// Only for those that may have exceptions.
    fn put(&mut self, key: Digest) {
        let exceptions = self.exceptions.as_mut().expect("looked at by the caller");
        exceptions.insert_digest(key).expect("an exact set takes every digest");
    }

    fn has_exceptions(&self) -> bool {
        self.exceptions.as_ref().is_some_and(|exceptions| !exceptions.is_empty())
    }

    fn is_exception(&self, digest: Digest) -> bool {
        self.exceptions.as_ref().is_some_and(|exceptions| exceptions.contains_digest(digest))
    }

    /// The rules for the keys of both, or a mismatch.
    fn joined_rules(&self, other: &dyn AnyFilter) -> Result<Option<KeyRules>, Mismatch> {
        let (ours, theirs) =
            (self.rules.clone().unwrap_or_default(), other.key_rules().cloned().unwrap_or_default());
        let spelling = ours.spelling.joined(&theirs.spelling).ok_or(Mismatch::Spelling)?;
        let cut = if ours.cut == theirs.cut { ours.cut.clone() } else { Cut::default() };
        // Of what no file says anything, the result says nothing.
        let says = self.rules.is_some() && other.key_rules().is_some() || !spelling.is_plain();
        Ok(says.then_some(KeyRules { spelling, cut, ..ours }))
    }

    /// Exceptions for themselves alone, if the other filter has any.
    fn make_room_for(&mut self, theirs: Option<&Exact>) -> Result<(), Mismatch> {
        match theirs.map_or(0, Exact::len) {
            keys @ 1.. if self.exceptions.is_none() => Err(Mismatch::Exceptions { theirs: keys }),
            _ => Ok(()),
        }
    }

    /// Keys that went in are no exceptions any more, and were certainly not in before.
    fn drop_inserted(&mut self, digests: &[Digest], outcomes: &mut [Insertion]) {
        let Some(exceptions) = self.exceptions.as_mut().filter(|exceptions| !exceptions.is_empty()) else {
            return;
        };
        for (&digest, outcome) in digests.iter().zip(outcomes) {
            if exceptions.remove_digest(digest).is_removed() {
                *outcome = Insertion::New;
            }
        }
    }

    /// After a batch: all went in, or as many as the error says.
    fn after_batch(
        &mut self,
        inserted: Result<(), Full>,
        digests: &[Digest],
        outcomes: &mut [Insertion],
    ) -> Result<(), Full> {
        let done = match &inserted {
            Ok(()) => digests.len(),
            Err(full) => usize::try_from(full.inserted).unwrap_or(usize::MAX).min(digests.len()),
        };
        self.drop_inserted(&digests[..done], outcomes);
        inserted
    }
}

/// The filter of the bytes of a section: at least one digest, each above the one before.
pub(crate) fn decode(filter: Box<dyn AnyFilter>, section: Bytes) -> Result<Box<dyn AnyFilter>, DecodeError> {
    if filter.can().exact || filter.program().is_some() {
        return Err(DecodeError::Excepted);
    }
    if section.is_empty() || !section.len().is_multiple_of(size_of::<Digest>()) {
        return Err(DecodeError::Value { field: "length of the exceptions", found: section.len() as u64 });
    }
    let problem = DecodeError::Payload { problem: "exceptions do not ascend" };
    let exceptions = Exact::of_sorted(section, filter.hashing()).ok_or(problem)?;
    Ok(Box::new(Excepted { filter, exceptions: Some(exceptions), rules: None }))
}

impl crate::traits::sealed::Sealed for Excepted {}

impl Filter for Excepted {
    fn hashing(&self) -> Hashing {
        self.filter.hashing()
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        self.filter.contains_digest(digest) && !self.is_exception(digest)
    }

    /// By its bytes, which some filters of other programs need.
    fn contains(&self, key: &[u8]) -> bool {
        self.filter.contains(key) && !(self.has_exceptions() && self.is_exception(self.hashing().digest(key)))
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        let before = hits.len();
        self.filter.contains_batch(digests, hits);
        if !self.has_exceptions() {
            return;
        }
        for (&digest, hit) in digests.iter().zip(&mut hits[before..]) {
            *hit = *hit && !self.is_exception(digest);
        }
    }
}

impl Insert for Excepted {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        let mut outcome = self.filter.as_insert().expect(OFFERED).insert_digest(digest)?;
        self.drop_inserted(&[digest], core::slice::from_mut(&mut outcome));
        Ok(outcome)
    }

    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        let before = outcomes.len();
        let inserted = self.filter.as_insert().expect(OFFERED).insert_batch(digests, outcomes);
        self.after_batch(inserted, digests, &mut outcomes[before..])
    }
}

impl Remove for Excepted {
    fn remove_digest(&mut self, digest: Digest) -> Removal {
        if self.is_exception(digest) {
            return Removal::Absent;
        }
        self.filter.as_remove().expect(OFFERED).remove_digest(digest)
    }

    fn remove_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Removal>) {
        if !self.has_exceptions() {
            return self.filter.as_remove().expect(OFFERED).remove_batch(digests, outcomes);
        }
        let asked: Vec<Digest> =
            digests.iter().copied().filter(|&digest| !self.is_exception(digest)).collect();
        let mut answers = Vec::with_capacity(asked.len());
        self.filter.as_remove().expect(OFFERED).remove_batch(&asked, &mut answers);
        let mut answers = answers.into_iter();
        let outcome = |&digest: &Digest| match self.is_exception(digest) {
            true => Removal::Absent,
            false => answers.next().expect("one for each"),
        };
        outcomes.extend(digests.iter().map(outcome));
    }
}

impl Count for Excepted {
    fn count_digest(&self, digest: Digest) -> u64 {
        match self.filter.as_count().expect(OFFERED).count_digest(digest) {
            count if count > 0 && self.is_exception(digest) => 0,
            count => count,
        }
    }

    fn ceiling(&self) -> u64 {
        self.filter.as_count().expect(OFFERED).ceiling()
    }

    fn count_batch(&self, digests: &[Digest], counts: &mut Vec<u64>) {
        let before = counts.len();
        self.filter.as_count().expect(OFFERED).count_batch(digests, counts);
        for (&digest, count) in digests.iter().zip(&mut counts[before..]) {
            if *count > 0 && self.is_exception(digest) {
                *count = 0;
            }
        }
    }
}

impl Label for Excepted {
    fn areas(&self) -> u16 {
        self.filter.as_label().expect(OFFERED).areas()
    }

    fn area_name(&self, area: NonZeroU16) -> Option<&str> {
        self.filter.as_label().expect(OFFERED).area_name(area)
    }

    fn name_areas(&mut self, names: &[&str]) -> Result<(), SpecError> {
        self.filter.as_label_mut().expect(OFFERED).name_areas(names)
    }

    fn insert_labelled(&mut self, digest: Digest, area: NonZeroU16) -> Result<Insertion, Full> {
        let mut outcome = self.filter.as_label_mut().expect(OFFERED).insert_labelled(digest, area)?;
        self.drop_inserted(&[digest], core::slice::from_mut(&mut outcome));
        Ok(outcome)
    }

    fn insert_labelled_batch(
        &mut self,
        digests: &[Digest],
        area: NonZeroU16,
        outcomes: &mut Vec<Insertion>,
    ) -> Result<(), Full> {
        let before = outcomes.len();
        let label = self.filter.as_label_mut().expect(OFFERED);
        let inserted = label.insert_labelled_batch(digests, area, outcomes);
        self.after_batch(inserted, digests, &mut outcomes[before..])
    }

    fn label_digest(&self, digest: Digest) -> Labels {
        match self.filter.as_label().expect(OFFERED).label_digest(digest) {
            labels if labels != Labels::None && self.is_exception(digest) => Labels::None,
            labels => labels,
        }
    }

    fn label_batch(&self, digests: &[Digest], labels: &mut Vec<Labels>) {
        let before = labels.len();
        self.filter.as_label().expect(OFFERED).label_batch(digests, labels);
        for (&digest, labels) in digests.iter().zip(&mut labels[before..]) {
            if *labels != Labels::None && self.is_exception(digest) {
                *labels = Labels::None;
            }
        }
    }
}

impl Associate for Excepted {
    fn set_names(&self) -> [&str; 2] {
        self.filter.as_associate().expect(OFFERED).set_names()
    }

    fn name_sets(&mut self, names: [&str; 2]) -> Result<(), SpecError> {
        self.filter.as_associate_mut().expect(OFFERED).name_sets(names)
    }

    fn association_digest(&self, digest: Digest) -> Association {
        match self.filter.as_associate().expect(OFFERED).association_digest(digest) {
            answer if answer != Association::Neither && self.is_exception(digest) => Association::Neither,
            answer => answer,
        }
    }

    fn association_batch(&self, digests: &[Digest], answers: &mut Vec<Association>) {
        let before = answers.len();
        self.filter.as_associate().expect(OFFERED).association_batch(digests, answers);
        for (&digest, answer) in digests.iter().zip(&mut answers[before..]) {
            if *answer != Association::Neither && self.is_exception(digest) {
                *answer = Association::Neither;
            }
        }
    }
}

/// Another filter without its exceptions, and these.
fn apart(other: &dyn AnyFilter) -> (&dyn AnyFilter, Option<&Exact>) {
    let any: &dyn Any = other;
    match any.downcast_ref::<Excepted>() {
        Some(Excepted { filter, exceptions, .. }) => (&**filter, exceptions.as_ref()),
        None => (other, None),
    }
}

impl Merge for Excepted {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.hashing().must_equal(&other.hashing())?;
        let rules = self.joined_rules(other)?;
        let (filter, exceptions) = apart(other);
        self.make_room_for(exceptions)?;
        // Asked before anything changes: afterwards the filter says yes to the keys of both.
        let ours = self.exceptions.iter().flat_map(Exact::digests);
        let dropped: Vec<Digest> = ours.filter(|&key| other.contains_digest(key)).collect();
        let theirs = exceptions.into_iter().flat_map(Exact::digests);
        let gained: Vec<Digest> = theirs.filter(|&key| !self.contains_digest(key)).collect();
        self.filter.as_merge().expect(OFFERED).merge_from(filter)?;
        self.rules = rules;
        if let Some(exceptions) = &mut self.exceptions {
            for key in dropped {
                exceptions.remove_digest(key);
            }
        }
        gained.into_iter().for_each(|key| self.put(key));
        Ok(())
    }
}

impl Intersect for Excepted {
    fn intersect_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        let rules = self.joined_rules(other)?;
        let (filter, exceptions) = apart(other);
        self.make_room_for(exceptions)?;
        self.filter.as_intersect().expect(OFFERED).intersect_from(filter)?;
        self.rules = rules;
        exceptions.into_iter().flat_map(Exact::digests).for_each(|key| self.put(key));
        Ok(())
    }
}

impl Subtract for Excepted {
    fn subtract_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        let rules = self.joined_rules(other)?;
        self.filter.as_subtract().expect(OFFERED).subtract_from(bare(other))?;
        self.rules = rules;
        Ok(())
    }
}

impl Fold for Excepted {
    fn fold_to(&self, fpr: f64) -> Result<Box<dyn AnyFilter>, FoldError> {
        let filter = self.filter.as_fold().expect(OFFERED).fold_to(fpr)?;
        Ok(Box::new(Self { filter, exceptions: self.exceptions.clone(), rules: self.rules.clone() }))
    }
}

impl AnyFilter for Excepted {
    fn family(&self) -> &'static Family {
        self.filter.family()
    }
    #[cfg(feature = "internals")]
    fn set_paths(&mut self, paths: crate::paths::Paths) {
        self.filter.set_paths(paths);
    }
    fn program(&self) -> Option<&'static str> {
        self.filter.program()
    }
    fn guesses_capacity(&self) -> bool {
        self.filter.guesses_capacity()
    }
    fn report(&self) -> Report {
        self.filter.report()
    }
    fn details(&self) -> Details<'_> {
        self.filter.details()
    }
    fn can(&self) -> Capabilities {
        self.filter.can()
    }
    fn unsupported(&self, operation: &'static str) -> Error {
        self.filter.unsupported(operation)
    }
    fn exceptions(&self) -> Option<Exceptions<'_>> {
        let exceptions = self.exceptions.as_ref()?;
        Some(Exceptions { keys: exceptions.len(), without: &*self.filter })
    }
    fn wrapped(&self) -> Option<&dyn AnyFilter> {
        Some(&*self.filter)
    }
    fn key_rules(&self) -> Option<&KeyRules> {
        self.rules.as_ref()
    }
    fn set_key_rules(&mut self, rules: KeyRules) -> bool {
        let has_some = self.rules.is_some();
        self.rules = has_some.then_some(rules);
        has_some
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        self.filter.encode(out);
        if let Some(exceptions) = self.exceptions.as_ref().filter(|exceptions| !exceptions.is_empty()) {
            out.section(EXCEPTIONS, exceptions.sorted_bytes());
        }
        if let Some(rules) = &self.rules {
            out.section(KEY_RULES, rules.encode());
        }
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        if self.has_exceptions() {
            by_digests(self, keys, hits)
        } else {
            self.filter.contains_keys(keys, hits)
        }
    }

    fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Error> {
        match self.has_exceptions() {
            true => insert_by_digests(self, keys, outcomes),
            false => self.filter.insert_keys(keys, outcomes),
        }
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        if self.filter.as_insert().is_some() { Some(self) } else { None }
    }
    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        if self.filter.as_remove().is_some() { Some(self) } else { None }
    }
    fn as_count(&self) -> Option<&dyn Count> {
        if self.filter.as_count().is_some() { Some(self) } else { None }
    }
    fn as_label(&self) -> Option<&dyn Label> {
        if self.filter.as_label().is_some() { Some(self) } else { None }
    }
    fn as_label_mut(&mut self) -> Option<&mut dyn Label> {
        if self.filter.as_label_mut().is_some() { Some(self) } else { None }
    }
    fn as_associate(&self) -> Option<&dyn Associate> {
        if self.filter.as_associate().is_some() { Some(self) } else { None }
    }
    fn as_associate_mut(&mut self) -> Option<&mut dyn Associate> {
        if self.filter.as_associate_mut().is_some() { Some(self) } else { None }
    }
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        if self.filter.as_merge().is_some() { Some(self) } else { None }
    }
    fn as_intersect(&mut self) -> Option<&mut dyn Intersect> {
        if self.filter.as_intersect().is_some() { Some(self) } else { None }
    }
    fn as_subtract(&mut self) -> Option<&mut dyn Subtract> {
        if self.filter.as_subtract().is_some() { Some(self) } else { None }
    }
    /// What is denied then needs no exceptions; it can have some again.
    fn clear(&mut self) -> bool {
        let is_cleared = self.filter.clear();
        if let Some(exceptions) = self.exceptions.as_mut().filter(|_| is_cleared) {
            exceptions.clear();
        }
        is_cleared
    }
    fn size_in_bytes(&self) -> u64 {
        self.filter.size_in_bytes() + self.exceptions.as_ref().map_or(0, Exact::size_in_bytes)
    }
    fn settle(&mut self) -> Result<(), OutOfMemory> {
        self.filter.settle()
    }
    fn as_fold(&self) -> Option<&dyn Fold> {
        if self.filter.as_fold().is_some() { Some(self) } else { None }
    }
}
