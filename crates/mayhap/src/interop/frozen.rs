//! Bloom filters of other programs that are only asked: the file as it is, and where in it the bits of each layer are.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

use crate::bits::Bytes;
use crate::error::DecodeError;
use crate::family::{AnyFilter, Capabilities, Details, Family, Guarantee, LayerReport, Report};
use crate::filters::{bloom, scalable};
use crate::hash::{Digest, ForeignHash, Hashing};
use crate::math;
use crate::narrow::index;
use crate::probing::Probing;
use crate::traits::Filter;
use crate::wire::Writer;

/// From a key to its positions, all of which need more than a digest.
pub(super) trait Rule: Debug + Send + Sync + Sized + 'static {
    /// Whose rule it is: the name of the format.
    const NAME: &'static str;
    const PROBING: Probing;

    /// Whether all positions of a key are set in one of the layers.
    fn is_in(filter: &Frozen<Self>, key: &[u8]) -> bool;

    /// The false-positive rate of a layer as it is.
    fn fpr(filter: &Frozen<Self>, layer: &Layer) -> f64 {
        math::fpr_from_fill(layer.fill(filter.file.as_slice()), layer.probes)
    }

    /// What the file does not say, for a file of ours.
    fn put_params(&self, out: &mut Writer<'_>);
}

/// One Bloom filter of another program or a stack of them, in the bytes of its file.
#[derive(Debug)]
pub(super) struct Frozen<R> {
    pub(super) file: Bytes,
    /// Oldest first.
    pub(super) layers: Vec<Layer>,
    /// Whether it is a stack, also if it has one layer or none yet.
    pub(super) is_stack: bool,
    /// Insert calls, as the program has counted them.
    pub(super) inserted: u64,
    pub(super) fpr_asked: f64,
    pub(super) hashing: ForeignHash,
    pub(super) rule: R,
}

/// One Bloom filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layer {
    /// The byte of the file with its first bits.
    pub(super) start: usize,
    pub(super) bits: u64,
    pub(super) probes: u32,
    pub(super) capacity: u64,
    /// Those that it has taken, as the program has counted them.
    pub(super) keys: u64,
}

impl Layer {
    /// How many bytes so many bits take.
    pub(super) const fn bytes_for(bits: u64) -> u64 {
        bits.div_ceil(8)
    }

    fn of<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        &file[self.start..][..index(Self::bytes_for(self.bits))]
    }

    /// Whether a bit is set. The lowest of a byte is its first.
    #[inline]
    pub(super) fn is_set(&self, file: &[u8], position: u64) -> bool {
        file[self.start + index(position / 8)] >> (position % 8) & 1 == 1
    }

    /// Bits behind the last one mean nothing, and are zero.
    pub(super) fn must_end_in_zeros(&self, file: &[u8]) -> Result<(), DecodeError> {
        match self.of(file).last() {
            Some(last) if !self.bits.is_multiple_of(8) && last >> (self.bits % 8) != 0 => {
                Err(DecodeError::Padding { field: "end of the bits" })
            }
            _ => Ok(()),
        }
    }

    fn ones(&self, file: &[u8]) -> u64 {
        self.of(file).iter().map(|byte| u64::from(byte.count_ones())).sum()
    }

    /// The set bits from one position to before another.
    pub(super) fn ones_between(&self, file: &[u8], from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let bytes = &self.of(file)[index(from / 8)..index(to.div_ceil(8))];
        let all: u64 = bytes.iter().map(|byte| u64::from(byte.count_ones())).sum();
        let before = bytes[0] & !(0xff << (from % 8));
        let behind = bytes[bytes.len() - 1] & !(0xff >> ((8 - to % 8) % 8));
        all - u64::from(before.count_ones()) - u64::from(behind.count_ones())
    }

    fn fill(&self, file: &[u8]) -> f64 {
        self.ones(file) as f64 / self.bits as f64
    }
}

impl<R: Rule> Frozen<R> {
    /// As a filter of a file of ours, whose header must name the same family.
    pub(super) fn of_family(self, found: u16) -> Result<Box<dyn AnyFilter>, DecodeError> {
        self.family().must_be(found)?;
        Ok(Box::new(self))
    }

    fn report_of(&self, layer: &Layer) -> LayerReport {
        let Layer { bits, probes, capacity, keys, .. } = *layer;
        let fill = layer.fill(self.file.as_slice());
        LayerReport { capacity, keys, bits, probes, fill, fpr_now: R::fpr(self, layer) }
    }

    fn ones(&self) -> u64 {
        self.layers.iter().map(|layer| layer.ones(self.file.as_slice())).sum()
    }
}

impl<R: Rule> crate::traits::sealed::Sealed for Frozen<R> {}

impl<R: Rule> Filter for Frozen<R> {
    fn hashing(&self) -> Hashing {
        Hashing::Foreign(self.hashing)
    }

    /// A digest does not tell the positions of a key: it is perhaps in.
    fn contains_digest(&self, _: Digest) -> bool {
        true
    }

    fn contains(&self, key: &[u8]) -> bool {
        R::is_in(self, key)
    }
}

impl<R: Rule> AnyFilter for Frozen<R> {
    fn family(&self) -> &'static Family {
        if self.is_stack { &scalable::FAMILY } else { &bloom::FAMILY }
    }

    fn program(&self) -> Option<&'static str> {
        Some(R::NAME)
    }

    fn can(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn report(&self) -> Report {
        let file = self.file.as_slice();
        let bits = self.layers.iter().fold(0, |bits: u64, layer| bits.saturating_add(layer.bits));
        let len = |layer: &Layer| math::estimated_len(layer.bits, layer.ones(file), layer.probes);
        let estimated_len: f64 = self.layers.iter().map(len).sum();
        let full = |layer: &Layer| math::bloom_fpr(layer.bits, layer.capacity as f64, layer.probes);
        Report {
            capacity: self.layers.iter().fold(0, |keys, layer| keys.saturating_add(layer.capacity)),
            inserted: Some(self.inserted),
            estimated_len: estimated_len.is_finite().then_some(estimated_len),
            bits,
            probes: if self.is_stack { None } else { self.layers.first().map(|layer| layer.probes) },
            fill: self.ones() as f64 / bits.max(1) as f64,
            fpr_asked: self.fpr_asked,
            fpr_now: math::compounded_fpr(self.layers.iter().map(|layer| R::fpr(self, layer))),
            fpr_interval: None,
            fpr_at_capacity: math::compounded_fpr(self.layers.iter().map(full)),
            guarantee: Guarantee::NoFalseNegatives,
        }
    }

    fn details(&self) -> Details<'_> {
        let layers = if self.is_stack { &*self.layers } else { &[] };
        Details { layers: layers.iter().map(|layer| self.report_of(layer)).collect(), ..Details::default() }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(R::PROBING);
        out.counts(Some(self.inserted), self.ones());
        self.rule.put_params(out);
        out.bytes(self.file.as_slice());
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        hits.extend(keys.iter().map(|key| R::is_in(self, key)));
    }
}
