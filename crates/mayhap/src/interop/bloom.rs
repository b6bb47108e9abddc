//! Bloom filters of other programs: one array of bits, and the program's way from a key to its positions.
//!
//! In our file format such a filter is of the family `bloom`, with a hash function and a probing rule of its own, so that
//! it can be mapped, asked and added to where it lies.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use crate::batch::BATCH;
use crate::bits::{Bytes, Words, words_for};
use crate::error::{DecodeError, Error, Full, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{self, AnyFilter, Capabilities, Family, Guarantee, Report};
use crate::filters::bloom::FAMILY;
use crate::hash::foreign::{murmur3_x64_128, siphash13};
use crate::hash::{Digest, ForeignHash, Hashing};
use crate::math;
use crate::narrow::{index, whole};
use crate::probing::Probing;
use crate::probing::foreign::ForeignPositions;
use crate::raw::simd::prefetch;
use crate::spec::MAX_BITS;
use crate::traits::{Filter, Insert, Insertion, Intersect, Merge};
use crate::wire::{Fields, Frame, PEER_DATA, Writer};

/// A Bloom filter by the rules of another program.
#[derive(Clone, Debug)]
pub(super) struct ForeignBloom {
    /// At least as many as `bits` needs. Bits from there on are zero, or else mean nothing to anybody.
    pub(super) words: Words,
    pub(super) shape: Shape,
    /// Insert calls, if it was made by us and they are known.
    inserted: Option<u64>,
    pub(super) peer: Peer,
}

/// What says where the bits of a key are, and how good the filter is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    /// The program's modulus.
    pub(super) bits: u64,
    pub(super) probes: u32,
    pub(super) hashing: ForeignHash,
    pub(super) probing: Probing,
    /// What it was made for; if the program does not say, what it would be at the best rate for its probes.
    pub(super) capacity: u64,
    pub(super) fpr_asked: f64,
}

/// What else a program's file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Guava,
    /// Bits of the bit set, as the file says; not always as many as the modulus.
    Go {
        length: u64,
    },
    /// Inserts that changed a bit; the flags but for the version; and data of its user.
    Dcso {
        changes: u64,
        flags: u64,
        data: Vec<u8>,
    },
    Spark,
    /// The keys of the two hash functions.
    Crate {
        seed: [u8; 32],
    },
    Rbloom,
}

impl Peer {
    /// Whose rule it is.
    const fn rule(&self) -> &'static str {
        match self {
            Self::Guava => "guava",
            Self::Go { .. } => "go",
            Self::Dcso { .. } => "dcso",
            Self::Spark => "spark",
            Self::Crate { .. } => "bloomfilter-crate",
            Self::Rbloom => "rbloom",
        }
    }
}

/// Of the hash of a key, and that of the key and a byte 1.
pub(super) fn go_positions(key: &[u8], probes: u32, bits: u64) -> ForeignPositions {
    let mut longer = Vec::with_capacity(key.len() + 1);
    longer.extend_from_slice(key);
    longer.push(1);
    ForeignPositions::go(murmur3_x64_128(key), murmur3_x64_128(&longer), probes, bits)
}

impl Shape {
    /// Of a file that tells neither how many keys it was made for nor at which rate: the most keys for which its program
    /// would have chosen so many probes, and the rate that it has with them. So nobody is told that it is too full who does
    /// not know that it is not.
    pub(super) fn told_nothing(bits: u64, probes: u32, hashing: ForeignHash, probing: Probing) -> Self {
        // The best number of probes is rounded up, down, or to the nearest.
        let rounding = match hashing {
            ForeignHash::Murmur3Twice => 1.0,
            ForeignHash::Sha256 => 0.0,
            _ => 0.5,
        };
        let best = (f64::from(probes) - rounding).max(0.5);
        let capacity = (whole(bits as f64 * core::f64::consts::LN_2 / best)).max(1);
        let fpr_asked = math::bloom_fpr(bits, capacity as f64, probes);
        Self { bits, probes, hashing, probing, capacity, fpr_asked }
    }
}

impl ForeignBloom {
    /// An empty one.
    pub(super) fn empty(shape: Shape, peer: Peer) -> Result<Self, SpecError> {
        if !(1..=MAX_BITS).contains(&shape.bits) {
            return Err(SpecError::TooLarge { bits: shape.bits, limit: MAX_BITS });
        }
        Ok(Self { words: Words::zeroed(words_for(shape.bits))?, shape, inserted: Some(0), peer })
    }

    /// Of the bits of a file, which are as many words as they take, or more.
    pub(super) fn of(words: Words, shape: Shape, peer: Peer) -> Self {
        debug_assert!(words.len() as u64 >= words_for(shape.bits));
        Self { words, shape, inserted: None, peer }
    }

    fn positions(&self, key: &[u8]) -> ForeignPositions {
        let Shape { bits, probes, hashing, .. } = self.shape;
        match &self.peer {
            Peer::Go { .. } => go_positions(key, probes, bits),
            Peer::Crate { seed } => {
                let (first, second) = seed.split_first_chunk::<16>().expect("32 bytes");
                let second = second.first_chunk().expect("32 bytes");
                // A slice is hashed with its length before it.
                let parts = [&(key.len() as u64).to_le_bytes()[..], key];
                ForeignPositions::of_crate(siphash13(first, &parts), siphash13(second, &parts), probes, bits)
            }
            _ => self.positions_of(Hashing::Foreign(hashing).digest(key)),
        }
    }

    fn positions_of(&self, digest: Digest) -> ForeignPositions {
        ForeignPositions::of(self.shape.probing, digest, self.shape.probes, self.shape.bits)
    }

    fn is_wide(&self) -> bool {
        self.shape.hashing.is_wide()
    }

    #[inline]
    fn all_set(&self, mut positions: ForeignPositions) -> bool {
        let words = self.words.as_slice();
        positions.all(|position| words[index(position / 64)] >> (position % 64) & 1 == 1)
    }

    fn set(&mut self, positions: impl Iterator<Item = u64>) -> Insertion {
        let words = self.words.as_mut_slice();
        let mut changed = false;
        for position in positions {
            if let Peer::Go { length } = &mut self.peer {
                // A bit set that is too short grows with its highest bit.
                *length = (*length).max(position + 1);
            }
            let (word, mask) = (&mut words[index(position / 64)], 1 << (position % 64));
            changed |= *word & mask == 0;
            *word |= mask;
        }
        self.inserted = self.inserted.map(|calls| calls.saturating_add(1));
        if let Peer::Dcso { changes, .. } = &mut self.peer {
            *changes = changes.saturating_add(changed.into());
        }
        Insertion::new_if(changed)
    }

    /// Asks for a batch at a time, so that their cache lines come together.
    fn ask_all<K>(&self, keys: &[K], positions: impl Fn(&K) -> ForeignPositions, hits: &mut Vec<bool>) {
        let words = self.words.as_slice();
        for keys in keys.chunks(BATCH) {
            let batch: Vec<ForeignPositions> = keys.iter().map(&positions).collect();
            for positions in &batch {
                // Half of the bits are set at most, so that a key that is absent hardly gets further.
                positions.take(2).for_each(|position| prefetch(words, index(position / 64)));
            }
            hits.extend(batch.iter().map(|&positions| self.all_set(positions)));
        }
    }

    /// Inserts a batch at a time, so that their cache lines come together.
    fn put_all<K>(
        &mut self,
        keys: &[K],
        positions: impl Fn(&Self, &K) -> ForeignPositions,
        outcomes: &mut Vec<Insertion>,
    ) {
        let mut batch = Vec::with_capacity(BATCH * self.shape.probes as usize);
        for keys in keys.chunks(BATCH) {
            batch.clear();
            keys.iter().for_each(|key| batch.extend(positions(self, key)));
            let words = self.words.as_slice();
            batch.iter().for_each(|position| prefetch(words, index(position / 64)));
            for of_key in batch.chunks_exact(self.shape.probes as usize) {
                outcomes.push(self.set(of_key.iter().copied()));
            }
        }
    }

    fn ones(&self) -> u64 {
        self.words.count_ones()
    }

    /// What must be the same before bits are combined.
    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        let (ours, theirs) = (&self.shape, &other.shape);
        must_agree(self, other, |filter| [(Parameter::Program, filter.peer.rule().into())])?;
        Hashing::Foreign(ours.hashing).must_equal(&Hashing::Foreign(theirs.hashing))?;
        must_agree(self, other, |filter| {
            let shape = &filter.shape;
            [
                (Parameter::Positions, shape.probing.name().into()),
                (Parameter::Bits, shape.bits.into()),
                (Parameter::Bytes, (8 * filter.words.len() as u64).into()),
                (Parameter::Probes, shape.probes.into()),
            ]
        })?;
        match (&self.peer, &other.peer) {
            (Peer::Crate { seed: ours }, Peer::Crate { seed: theirs }) if ours != theirs => {
                Err(Mismatch::PeerField { field: "keys of the hash functions" })
            }
            // Its own program joins no others.
            (Peer::Dcso { .. }, Peer::Dcso { .. })
                if (ours.capacity, ours.fpr_asked) != (theirs.capacity, theirs.fpr_asked) =>
            {
                Err(Mismatch::PeerField { field: "capacities or rates asked for" })
            }
            _ => Ok(()),
        }
    }

    fn combine(
        &mut self,
        other: &Self,
        bits: fn(u64, u64) -> u64,
        changes: fn(u64, u64) -> u64,
    ) -> Result<(), Mismatch> {
        self.must_match(other)?;
        for (ours, theirs) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *ours = bits(*ours, *theirs);
        }
        match (&mut self.peer, &other.peer) {
            (Peer::Dcso { changes: ours, .. }, Peer::Dcso { changes: theirs, .. }) => {
                *ours = changes(*ours, *theirs);
            }
            // The longer bit set holds the bits of both.
            (Peer::Go { length: ours }, Peer::Go { length: theirs }) => *ours = (*ours).max(*theirs),
            _ => {}
        }
        self.inserted = None;
        Ok(())
    }
}

/// The filter of this type, if it is one, whatever exceptions it has.
pub(super) fn as_foreign_bloom(filter: &dyn AnyFilter) -> Option<&ForeignBloom> {
    let filter: &dyn Any = filter;
    filter.downcast_ref()
}

impl crate::traits::sealed::Sealed for ForeignBloom {}

impl Filter for ForeignBloom {
    fn hashing(&self) -> Hashing {
        Hashing::Foreign(self.shape.hashing)
    }

    /// A digest does not tell the positions of a key under a wide hash: it is perhaps in.
    fn contains_digest(&self, digest: Digest) -> bool {
        self.is_wide() || self.all_set(self.positions_of(digest))
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.all_set(self.positions(key))
    }

    fn contains_batch(&self, digests: &[Digest], hits: &mut Vec<bool>) {
        if self.is_wide() {
            hits.resize(hits.len() + digests.len(), true);
        } else {
            self.ask_all(digests, |&digest| self.positions_of(digest), hits);
        }
    }
}

/// Only where a digest tells the positions: see `as_insert`.
impl Insert for ForeignBloom {
    fn insert_digest(&mut self, digest: Digest) -> Result<Insertion, Full> {
        Ok(self.set(self.positions_of(digest)))
    }

    fn insert_batch(&mut self, digests: &[Digest], outcomes: &mut Vec<Insertion>) -> Result<(), Full> {
        self.put_all(digests, |filter, &digest| filter.positions_of(digest), outcomes);
        Ok(())
    }
}

impl Merge for ForeignBloom {
    fn merge_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.combine(family::same_type(self, other)?, |ours, theirs| ours | theirs, u64::saturating_add)
    }
}

impl Intersect for ForeignBloom {
    fn intersect_from(&mut self, other: &dyn AnyFilter) -> Result<(), Mismatch> {
        self.combine(family::same_type(self, other)?, |ours, theirs| ours & theirs, u64::min)
    }
}

impl AnyFilter for ForeignBloom {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    fn program(&self) -> Option<&'static str> {
        Some(self.peer.rule())
    }

    fn can(&self) -> Capabilities {
        Capabilities { folds: false, ..FAMILY.can }
    }

    /// What the program's file says nothing of was worked out from the bits and the probes.
    fn guesses_capacity(&self) -> bool {
        let Shape { bits, probes, hashing, probing, .. } = self.shape;
        self.shape == Shape::told_nothing(bits, probes, hashing, probing)
    }

    fn report(&self) -> Report {
        let Shape { bits, probes, capacity, fpr_asked, .. } = self.shape;
        let ones = self.ones().min(bits);
        let estimated_len = math::estimated_len(bits, ones, probes);
        let fill = ones as f64 / bits as f64;
        Report {
            capacity,
            inserted: self.inserted,
            estimated_len: estimated_len.is_finite().then_some(estimated_len),
            bits,
            probes: Some(probes),
            fill,
            fpr_asked,
            fpr_now: math::fpr_from_fill(fill, probes),
            fpr_interval: None,
            fpr_at_capacity: math::bloom_fpr(bits, capacity as f64, probes),
            guarantee: Guarantee::NoFalseNegatives,
        }
    }

    fn encode<'a>(&'a self, out: &mut Writer<'a>) {
        let Shape { bits, probes, probing, capacity, fpr_asked, .. } = self.shape;
        out.probing(probing);
        out.counts(self.inserted, self.ones());
        let params = out.params().u64(bits).u32(probes).u32(0).u64(capacity).f64(fpr_asked);
        match &self.peer {
            Peer::Guava | Peer::Spark | Peer::Rbloom => {}
            Peer::Go { length } => {
                params.u64(*length);
            }
            Peer::Dcso { changes, flags, .. } => {
                params.u64(*changes).u64(*flags);
            }
            Peer::Crate { seed } => seed.as_chunks().0.iter().for_each(|chunk| {
                params.u64(u64::from_le_bytes(*chunk));
            }),
        }
        out.words(&self.words);
        if let Peer::Dcso { data, .. } = &self.peer
            && !data.is_empty()
        {
            out.section(PEER_DATA, &data[..]);
        }
    }

    fn contains_keys(&self, keys: &[&[u8]], hits: &mut Vec<bool>) {
        self.ask_all(keys, |key| self.positions(key), hits);
    }

    fn insert_keys(&mut self, keys: &[&[u8]], outcomes: &mut Vec<Insertion>) -> Result<(), Error> {
        self.put_all(keys, |filter, key| filter.positions(key), outcomes);
        Ok(())
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        if self.is_wide() { None } else { Some(self) }
    }
    fn as_merge(&mut self) -> Option<&mut dyn Merge> {
        Some(self)
    }
    fn as_intersect(&mut self) -> Option<&mut dyn Intersect> {
        Some(self)
    }
}

/// The filter of a file of ours.
pub(super) fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Box<dyn AnyFilter>, DecodeError> {
    let header = &frame.header;
    FAMILY.must_be(header.family)?;
    let probing = Probing::from_id(header.probing).ok_or(DecodeError::Probing { found: header.probing })?;
    let mut fields = Fields::new(&header.params);
    let bits = fields.u64("bits")?;
    if !(1..=MAX_BITS).contains(&bits) {
        return Err(DecodeError::Value { field: "bits", found: bits });
    }
    let probes = super::probes(fields.u32("probes")?.into())?;
    fields.zero_u32("padding of the parameters")?;
    let capacity = fields.u64("capacity")?;
    let fpr_asked = fields.rate("asked rate")?;
    let mut words = words_for(bits);
    use ForeignHash as H;
    let Hashing::Foreign(hash) = hashing else { return Err(unfit(frame)) };
    let mut peer = match (probing, hash) {
        (Probing::Guava64 | Probing::Guava32, H::Murmur3) => Peer::Guava,
        (Probing::Go, H::Murmur3Twice) => {
            let length = fields.u64("length of the bit set")?;
            super::go::check_length(bits, length)?;
            words = words.max(words_for(length));
            Peer::Go { length }
        }
        (Probing::Dcso, H::Fnv1) => {
            let (changes, flags) = (fields.u64("changes")?, fields.u64("flags")?);
            super::dcso::check_flags(flags)?;
            Peer::Dcso { changes, flags, data: Vec::new() }
        }
        (Probing::Spark1, H::Spark { seed: 0 } | H::SparkSql { seed: 0 })
        | (Probing::Spark2, H::Spark { .. } | H::SparkSql { .. }) => Peer::Spark,
        (Probing::BloomfilterCrate, H::SipTwice) => Peer::Crate { seed: fields.bytes("seed")? },
        (Probing::Rbloom, H::Sha256) => Peer::Rbloom,
        _ => return Err(unfit(frame)),
    };
    fields.end("parameters", header.params.len())?;
    // Where a program's file has whole bytes or words, its modulus is as many bits.
    let unit = match &peer {
        Peer::Guava | Peer::Spark => 64,
        Peer::Crate { .. } | Peer::Rbloom => 8,
        Peer::Go { .. } | Peer::Dcso { .. } => 1,
    };
    // Guava and Spark count words in 31 bits.
    let most = if unit == 64 { i32::MAX as u64 * 64 } else { MAX_BITS };
    if !bits.is_multiple_of(unit) || bits > most {
        return Err(DecodeError::Value { field: "bits", found: bits });
    }
    if matches!(peer, Peer::Guava) && probes > u8::MAX.into() {
        return Err(DecodeError::Value { field: "probes", found: probes.into() });
    }
    if header.payload.length != words * 8 {
        let found = header.payload.length;
        return Err(DecodeError::Length { field: "payload", expected: words * 8, found });
    }
    let inserted = header.inserted;
    if let Peer::Dcso { data, .. } = &mut peer
        && let Some(section) = frame.take_section(PEER_DATA)
    {
        *data = section.as_slice().to_vec();
    }
    let payload = core::mem::replace(&mut frame.payload, Bytes::from(Vec::new()));
    let words = Words::from_bytes(payload)
        .ok_or(DecodeError::Payload { problem: "not whole words, or no memory for them" })?;
    let shape = Shape { bits, probes, hashing: hash, probing, capacity, fpr_asked };
    Ok(Box::new(ForeignBloom { words, shape, inserted, peer }))
}

/// The rule and the hash function do not belong together.
pub(super) fn unfit(frame: &Frame) -> DecodeError {
    let stored = frame.header.hashing;
    DecodeError::Hashing { scheme: stored.scheme, version: stored.version }
}
