//! The filters of one column of a Parquet file: one for each of its row groups, as [`sbbf`] has them.
//!
//! A value is perhaps in the column if it is perhaps in a row group. In a file of ours they stand one behind the other, each
//! with its header.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::sbbf::{self, Sbbf};
use crate::bits::Bytes;
use crate::error::DecodeError;
use crate::family::{AnyFilter, Capabilities, Details, Family, Guarantee, LayerReport, Report};
use crate::filters::scalable::FAMILY;
use crate::hash::{Digest, ForeignHash, Hashing};
use crate::narrow::whole;
use crate::probing::Probing;
use crate::traits::Filter;
use crate::wire::{Frame, Writer};

/// The filter of a column, from those of its row groups, each with its header. One alone is a filter of [`sbbf`].
///
/// # Errors
/// [`DecodeError`] if one of them is none, or there is none.
pub fn of_row_groups(filters: &[Bytes]) -> Result<Box<dyn AnyFilter>, DecodeError> {
    let mut groups = Vec::with_capacity(filters.len());
    for filter in filters {
        groups.push(sbbf::read(filter)?);
    }
    match groups.len() {
        0 => Err(DecodeError::Value { field: "number of filters", found: 0 }),
        1 => Ok(Box::new(groups.remove(0))),
        _ => Ok(Box::new(RowGroups { groups })),
    }
}

/// Two filters or more.
#[derive(Clone, Debug)]
struct RowGroups {
    groups: Vec<Sbbf>,
}

impl crate::traits::sealed::Sealed for RowGroups {}

impl Filter for RowGroups {
    fn hashing(&self) -> Hashing {
        Hashing::Foreign(ForeignHash::Xxh64)
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        self.groups.iter().any(|group| group.contains_digest(digest))
    }
}

impl AnyFilter for RowGroups {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    fn program(&self) -> Option<&'static str> {
        Some(sbbf::FORMAT.name)
    }

    fn can(&self) -> Capabilities {
        Capabilities { inserts: false, merges: false, grows: false, ..FAMILY.can }
    }

    /// A value can be in several row groups, so their total number is unknown.
    fn report(&self) -> Report {
        let reports: Vec<Report> = self.groups.iter().map(AnyFilter::report).collect();
        let bits = reports.iter().map(|report| report.bits).sum();
        let any =
            |rate: fn(&Report) -> f64| 1.0 - reports.iter().map(|report| 1.0 - rate(report)).product::<f64>();
        Report {
            capacity: reports.iter().map(|report| report.capacity).fold(0, u64::saturating_add),
            inserted: None,
            estimated_len: None,
            bits,
            probes: None,
            fill: reports.iter().map(|report| report.fill * report.bits as f64).sum::<f64>() / bits as f64,
            fpr_asked: any(|report| report.fpr_asked),
            fpr_now: any(|report| report.fpr_now),
            fpr_interval: None,
            fpr_at_capacity: any(|report| report.fpr_at_capacity),
            guarantee: Guarantee::NoFalseNegatives,
        }
    }

    fn details(&self) -> Details<'_> {
        let layer = |group: &Sbbf| {
            let Report { capacity, estimated_len, bits, probes, fill, fpr_now, .. } = group.report();
            let keys = estimated_len.map_or(0, whole);
            LayerReport { capacity, keys, bits, probes: probes.unwrap_or(0), fill, fpr_now }
        };
        Details { layers: self.groups.iter().map(layer).collect(), ..Details::default() }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::SBBF);
        out.counts(None, self.groups.iter().map(Sbbf::ones).sum());
        self.groups.iter().for_each(|group| out.bytes(sbbf::write(group)));
    }
}

/// The filters of a file of ours.
pub(super) fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Box<dyn AnyFilter>, DecodeError> {
    super::must_be_of(frame, &FAMILY, hashing, Hashing::Foreign(ForeignHash::Xxh64))?;
    if !frame.header.params.is_empty() {
        let found = frame.header.params.len() as u64;
        return Err(DecodeError::Length { field: "parameters", expected: 0, found });
    }
    let payload = super::take_payload(frame);
    let (mut groups, mut start) = (Vec::new(), 0);
    while start < payload.len() {
        let length = sbbf::length(&payload.as_slice()[start..])?;
        let rest = (payload.len() - start) as u64;
        let truncated = DecodeError::Truncated { field: "filter", needed: length, available: rest };
        let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
        let end = end.filter(|&end| end <= payload.len()).ok_or(truncated)?;
        groups.push(sbbf::read(&payload.part(start..end).expect("looked at above"))?);
        start = end;
    }
    match groups.len() {
        0 | 1 => Err(DecodeError::Value { field: "number of filters", found: groups.len() as u64 }),
        _ => Ok(Box::new(RowGroups { groups })),
    }
}
