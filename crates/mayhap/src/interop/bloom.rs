//! Bloom filters of other programs: one array of bits, and the program's way from a key to its positions.
//!
//! In our file format such a filter is of the family `bloom`, with a hash function and a probing rule of its own, so that
//! it can be mapped, asked and added to where it lies.

use alloc::vec::Vec;
use core::any::Any;
use core::convert::Infallible;

use crate::batch::{BATCH, pipeline};
use crate::bits::{Words, words_for};
use crate::error::{DecodeError, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{AnyFilter, Capabilities};
use crate::filters::bloom::FAMILY;
use crate::hash::foreign::{murmur3_x64_128, siphash13};
use crate::hash::{Digest, ForeignHash, Hashing};
use crate::math;
use crate::narrow::{index, whole};
use crate::probing::Probing;
use crate::probing::foreign::ForeignPositions;
use crate::rates::Rate;
use crate::raw::simd::prefetch;
use crate::shell::{self, Inserts, Intersects, Kernel, Merges, Shell, run_time_filter};
use crate::spec::{MAX_BITS, Plan};
use crate::traits::Insertion;
use crate::wire::{Fields, Frame, PEER_DATA, Writer};

run_time_filter! {
    /// A Bloom filter by the rules of another program.
    ForeignBloom(ForeignBits) = FAMILY { inserts, merges, intersects }
}

/// Its bits, and where those of a key are.
#[derive(Clone, Debug)]
pub(super) struct ForeignBits {
    /// At least as many as `bits` needs. Bits from there on are zero, or else mean nothing to anybody.
    pub(super) words: Words,
    pub(super) shape: Rules,
    pub(super) peer: Peer,
}

/// What says where the bits of a key are, and how good the filter is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rules {
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
    const fn program(&self) -> &'static str {
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

/// From a key to its positions, apart from the bits.
#[derive(Clone, Copy)]
struct Way {
    shape: Rules,
    /// The keys of the two hash functions, where they are chosen.
    seed: [u8; 32],
}

impl Way {
    fn of_digest(&self, digest: Digest) -> ForeignPositions {
        let Rules { bits, probes, probing, .. } = self.shape;
        ForeignPositions::of(probing, digest, probes, bits)
    }

    fn of_key(&self, key: &[u8]) -> ForeignPositions {
        let Rules { bits, probes, hashing, .. } = self.shape;
        match hashing {
            ForeignHash::Murmur3Twice => go_positions(key, probes, bits),
            ForeignHash::SipTwice => {
                let (first, second) = self.seed.split_first_chunk::<16>().expect("32 bytes");
                let second = second.first_chunk().expect("32 bytes");
                // A slice is hashed with its length before it.
                let parts = [&(key.len() as u64).to_le_bytes()[..], key];
                ForeignPositions::of_crate(siphash13(first, &parts), siphash13(second, &parts), probes, bits)
            }
            _ => self.of_digest(Hashing::Foreign(hashing).digest(key)),
        }
    }

    fn of_digests<T>(self, hash: impl Fn(&[T], &mut [Digest])) -> impl Fn(&[T], &mut [ForeignPositions]) {
        move |keys, places| {
            let mut digests = [Digest::default(); BATCH];
            let digests = &mut digests[..keys.len()];
            hash(keys, digests);
            places.iter_mut().zip(&*digests).for_each(|(place, &digest)| *place = self.of_digest(digest));
        }
    }

    fn of_keys(self) -> impl Fn(&[&[u8]], &mut [ForeignPositions]) {
        move |keys, places| places.iter_mut().zip(keys).for_each(|(place, key)| *place = self.of_key(key))
    }
}

impl Rules {
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
    pub(super) fn empty(shape: Rules, peer: Peer) -> Result<Self, SpecError> {
        if !(1..=MAX_BITS).contains(&shape.bits) {
            return Err(SpecError::TooLarge { bits: shape.bits, limit: MAX_BITS });
        }
        let mut empty = Self::of(Words::zeroed(words_for(shape.bits))?, shape, peer);
        empty.0.inserted = Some(0);
        Ok(empty)
    }

    /// Of the bits of a file, which are as many words as they take, or more.
    pub(super) fn of(words: Words, shape: Rules, peer: Peer) -> Self {
        debug_assert!(words.len() as u64 >= words_for(shape.bits));
        let hashing = Hashing::Foreign(shape.hashing);
        Self(Shell { kernel: ForeignBits { words, shape, peer }, hashing, inserted: None })
    }
}

impl ForeignBits {
    fn way(&self) -> Way {
        let seed = if let Peer::Crate { seed } = self.peer { seed } else { [0; 32] };
        Way { shape: self.shape, seed }
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
        if let Peer::Dcso { changes, .. } = &mut self.peer {
            *changes = changes.saturating_add(changed.into());
        }
        Insertion::new_if(changed)
    }

    /// Half of the bits are set at most, so that a key that is absent hardly gets beyond its first two positions.
    fn all_set_each<T>(&self, keys: &[T], place: impl Fn(&[T], &mut [ForeignPositions]), hits: &mut [bool]) {
        let (words, mut hits) = (self.words.as_slice(), hits.iter_mut());
        let ahead = |(): &(), positions: ForeignPositions| {
            positions.take(2).for_each(|position| prefetch(words, index(position / 64)));
        };
        pipeline(&mut (), keys, place, true, ahead, |(), places| {
            places.iter().zip(&mut hits).for_each(|(&positions, hit)| *hit = self.all_set(positions));
        });
    }

    /// Their positions are worked out once, since that takes longer than to keep them.
    fn set_each<T>(
        &mut self,
        keys: &[T],
        place: impl Fn(&[T], &mut [ForeignPositions]),
        mut told: impl FnMut(Insertion),
    ) {
        let probes = self.shape.probes as usize;
        let (mut places, mut batch) =
            ([ForeignPositions::default(); BATCH], Vec::with_capacity(BATCH * probes));
        for keys in keys.chunks(BATCH) {
            let places = &mut places[..keys.len()];
            place(keys, places);
            batch.clear();
            places.iter().for_each(|&positions| batch.extend(positions));
            let words = self.words.as_slice();
            batch.iter().for_each(|position| prefetch(words, index(position / 64)));
            batch.chunks_exact(probes).for_each(|of_key| told(self.set(of_key.iter().copied())));
        }
    }

    /// Set bits that positions can have, or nearly: those behind the last one are zero.
    fn ones(&self) -> u64 {
        self.words.count_ones()
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
        Ok(())
    }
}

/// The bits of the filter, if it is of this type, whatever exceptions it has.
pub(super) fn as_foreign_bloom(filter: &dyn AnyFilter) -> Option<&ForeignBits> {
    let filter: &dyn Any = filter;
    filter.downcast_ref().map(|ForeignBloom(shell)| &shell.kernel)
}

impl Kernel for ForeignBits {
    type Hash = Digest;

    const IS_FOREIGN: bool = true;

    fn contains(&self, digest: Digest) -> bool {
        self.is_wide() || self.all_set(self.way().of_digest(digest))
    }

    fn contains_each<T>(&self, keys: &[T], hash: impl Fn(&[T], &mut [Digest]), hits: &mut [bool]) {
        if self.is_wide() {
            return hits.fill(true);
        }
        self.all_set_each(keys, self.way().of_digests(hash), hits);
    }

    fn is_wide(&self) -> bool {
        self.shape.hashing.is_wide()
    }

    fn contains_bytes(&self, keys: &[&[u8]], hits: &mut [bool]) {
        self.all_set_each(keys, self.way().of_keys(), hits);
    }

    fn plan(&self) -> Plan {
        let Rules { bits, probes, capacity, fpr_asked, .. } = self.shape;
        let fpr = math::bloom_fpr(bits, capacity as f64, probes);
        Plan { capacity, fpr_asked, fpr, bits, probes: Some(probes) }
    }

    fn fill(&self) -> f64 {
        self.ones().min(self.shape.bits) as f64 / self.shape.bits as f64
    }

    fn rate(&self) -> Rate {
        Rate::computed(math::fpr_from_fill(self.fill(), self.shape.probes))
    }

    fn estimated_len(&self) -> f64 {
        let Rules { bits, probes, .. } = self.shape;
        math::estimated_len(bits, self.ones().min(bits), probes)
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        let (ours, theirs) = (&self.shape, &other.shape);
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

    fn holds_the_same(&self, other: &Self) -> bool {
        self.words == other.words
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        let Rules { bits, probes, probing, capacity, fpr_asked, .. } = self.shape;
        out.probing(probing);
        out.ones(self.ones());
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

    fn read(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        let header = &frame.header;
        let probing =
            Probing::foreign(header.probing).ok_or(DecodeError::Probing { found: header.probing })?;
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
            (Probing::GUAVA_64 | Probing::GUAVA_32, H::Murmur3) => Peer::Guava,
            (Probing::GO, H::Murmur3Twice) => {
                let length = fields.u64("length of the bit set")?;
                super::go::check_length(bits, length)?;
                words = words.max(words_for(length));
                Peer::Go { length }
            }
            (Probing::DCSO, H::Fnv1) => {
                let (changes, flags) = (fields.u64("changes")?, fields.u64("flags")?);
                super::dcso::check_flags(flags)?;
                Peer::Dcso { changes, flags, data: Vec::new() }
            }
            (Probing::SPARK_1, H::Spark { seed: 0 } | H::SparkSql { seed: 0 })
            | (Probing::SPARK_2, H::Spark { .. } | H::SparkSql { .. }) => Peer::Spark,
            (Probing::BLOOMFILTER_CRATE, H::SipTwice) => Peer::Crate { seed: fields.bytes("seed")? },
            (Probing::RBLOOM, H::Sha256) => Peer::Rbloom,
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
        if let Peer::Dcso { data, .. } = &mut peer
            && let Some(section) = frame.take_section(PEER_DATA)
        {
            *data = section.as_slice().to_vec();
        }
        let words = shell::take_words(frame, words * 8)?;
        let shape = Rules { bits, probes, hashing: hash, probing, capacity, fpr_asked };
        Ok(Self { words, shape, peer })
    }

    fn can(&self) -> Option<Capabilities> {
        Some(Capabilities { folds: false, ..FAMILY.can })
    }

    fn program(&self) -> Option<&'static str> {
        Some(self.peer.program())
    }

    /// What the program's file says nothing of was worked out from the bits and the probes.
    fn guesses_capacity(&self) -> bool {
        let Rules { bits, probes, hashing, probing, .. } = self.shape;
        self.shape == Rules::told_nothing(bits, probes, hashing, probing)
    }
}

impl Inserts for ForeignBits {
    type Error = Infallible;

    fn insert(&mut self, digest: Digest) -> Result<Insertion, Infallible> {
        Ok(self.set(self.way().of_digest(digest)))
    }

    fn insert_each<T>(
        &mut self,
        keys: &[T],
        hash: impl Fn(&[T], &mut [Digest]),
        told: impl FnMut(Insertion),
    ) -> Result<(), Infallible> {
        self.set_each(keys, self.way().of_digests(hash), told);
        Ok(())
    }

    fn insert_bytes(&mut self, keys: &[&[u8]], told: impl FnMut(Insertion)) -> Result<(), Infallible> {
        self.set_each(keys, self.way().of_keys(), told);
        Ok(())
    }
}

impl Merges for ForeignBits {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |ours, theirs| ours | theirs, u64::saturating_add)
    }
}

impl Intersects for ForeignBits {
    fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.combine(other, |ours, theirs| ours & theirs, u64::min)
    }
}

/// The rule and the hash function do not belong together.
pub(super) fn unfit(frame: &Frame) -> DecodeError {
    let stored = frame.header.hashing;
    DecodeError::Hashing { scheme: stored.scheme, version: stored.version }
}
