//! RedisBloom's Bloom filters (`BF.*`): what `BF.SCANDUMP` gives and `BF.LOADCHUNK` takes.
//!
//! A filter is a chain of links, each a Bloom filter for more keys and at a lower rate than the one before. The
//! [chunks](super::redis_dump) are a header and the bits of the links:
//!
//! ```text
//!  0  u64  keys in all links          of each link, 53 bytes:
//!  8  u32  links, at least 1           0  u64  bytes              32  f64  bits per key
//! 12  u32  options                     8  u64  bits = 8 bytes     40  u32  probes
//! 16  u32  growth                     16  u64  keys               44  u64  capacity
//! 20  the links                       24  f64  rate               52  u8   n2: positions among 2^n2 bits; 0: among all
//!
//! options   1  sizes are not rounded up to powers of two      4  hashed to 64 bits
//!           2  capacities are numbers of bits                 8  does not grow
//! ```
//!
//! Keys are bytes as given. A key that is perhaps in already is not inserted again, and not counted: the number of keys is
//! that of the inserts which changed something. Links of very old versions (options 1 or 4 not set) are read, asked and
//! added to; such a chain goes on in its own way.
//!
//! **We differ** in that a chain whose capacities are numbers of bits does not grow, and in that two chains can be merged,
//! if their links are made alike and the keys of both fit them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use super::Format;
use super::MOST_PROBES;
use super::Making;
use super::redis_dump::{self, Array, Dump};
use crate::bits::OutOfMemory;
use crate::error::{DecodeError, Full, Knob, Limit, Mismatch, Parameter, SpecError, must_agree};
use crate::family::{Capabilities, Details, LayerReport};
use crate::filters::scalable::{FAMILY, GROWTH, MAX_GROWTH};
use crate::hash::{Digest, ForeignHash, Hashing};
use crate::math;
use crate::narrow::{index, low_u8, small, small_len, whole};
use crate::probing::Probing;
use crate::probing::foreign::ForeignPositions;
use crate::rates::Rate;
use crate::raw::simd::prefetch;
use crate::shell::{Inserts, Kernel, Merges, Shell, filter};
use crate::spec::{MAX_BITS, MAX_CAPACITY, Plan};
use crate::traits::Insertion;
use crate::wire::{Fields, Frame, Writer};

/// The format `redisbloom`.
pub static FORMAT: Format = Format {
    name: "redisbloom",
    summary: "RedisBloom's Bloom filters, the chunks of BF.SCANDUMP in one file",
    fits: redis_dump::fits::<RedisBloom>,
    read: |bytes, _| Ok(Box::new(redis_dump::read::<RedisBloom>(bytes.as_slice())?)),
    write: Some(|filter| {
        let filter: &dyn Any = filter;
        filter.downcast_ref::<RedisBloom>().map(redis_dump::write)
    }),
    make: Some(|making| Ok(Box::new(make(making)?))),
};

/// Each link is for so many times the keys of the one before, by default.
const DEFAULT_GROWTH: u32 = 2;

/// The highest rate that is granted, from version 8 on.
const MOST_FPR: f64 = 0.25;

/// The rate of a link is so many times that of the one before, and that of the first so many times the one asked for.
const TIGHTENING: f64 = 0.5;

/// The square of the natural logarithm of 2, and that logarithm, with the digits that RedisBloom takes.
const LN2_SQUARED: f64 = 0.480453013918201;
#[expect(clippy::approx_constant, reason = "one digit less is another number of probes, sometimes")]
const LN2: f64 = 0.693147180559945;

/// Bits of the options.
const NO_ROUND: u32 = 1;
const CAPACITY_IS_BITS: u32 = 2;
const FORCE_64: u32 = 4;
const NO_SCALING: u32 = 8;
const KNOWN_OPTIONS: u32 = 15;

/// The bytes of the header before the links, and of each link in it.
const HEADER: usize = 20;
const LINK: usize = 53;

/// What becomes of a filter that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// The next link is for so many times the keys of the last. 0 is `EXPANSION 0`: it does not grow.
    Times(u32),
    /// It refuses keys: `NONSCALING`.
    Never {
        /// The growth that its header tells, and that nobody uses; 2 by default.
        told: u32,
    },
}

filter! {
    /// A Bloom filter as RedisBloom's.
    ///
    /// Its number of inserted keys is that of the inserts which changed something.
    RedisBloom(Links) = FAMILY {
        /// It grows if it has to. A key that is perhaps in already is not inserted again.
        inserts_until_full,
        ///
        /// That is refused, too, if the keys of two links do not fit one.
        merges,
    }
}

/// A chain of Bloom filters.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    options: u32,
    growth: u32,
    /// Oldest first. There is always one.
    links: Vec<Link>,
}

#[derive(Clone, Debug)]
struct Link {
    bits: Array,
    shape: LinkHeader,
}

/// What the header tells of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LinkHeader {
    bytes: u64,
    keys: u64,
    fpr: f64,
    bits_per_key: f64,
    probes: u32,
    capacity: u64,
    /// Positions are among the first 2^n2 bits; 0 if they are among all.
    n2: u8,
}

impl LinkHeader {
    /// Of an empty link. It may have more bits than anybody can.
    fn new(capacity: u64, fpr: f64, options: u32) -> Self {
        // The logarithm of the system, as RedisBloom takes it: that of `libm` differs in the last digit for some rates, and
        // all digits stand in the header.
        let bits_per_key = fpr.ln().abs() / LN2_SQUARED;
        let probes = small(probes_for(bits_per_key));
        let wanted = capacity as f64 * bits_per_key;
        let whole_words = |bits: u64| bits.clamp(1, 1 << 60).next_multiple_of(64) / 8;
        if options & NO_ROUND != 0 {
            let bytes = whole_words(whole(wanted));
            return Self { bytes, keys: 0, fpr, bits_per_key, probes, capacity, n2: 0 };
        }
        // Below 2 bits the rule gives 1 bit or none, and 0 would mean another one.
        let n2 = low_u8(whole((libm::floor(libm::log2(wanted)) + 1.0).clamp(1.0, 60.0)));
        let bits = 1u64 << n2;
        let spare = whole(bits as f64 - wanted);
        let capacity = capacity.saturating_add(whole(spare as f64 / bits_per_key));
        Self { bytes: whole_words(bits), keys: 0, fpr, bits_per_key, probes, capacity, n2 }
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, DecodeError> {
        let refused = |field, found| Err(DecodeError::Value { field, found });
        let bytes = fields.u64("bytes of a link")?;
        let bits = fields.u64("bits of a link")?;
        let keys = fields.u64("keys of a link")?;
        let fpr = f64::from_bits(fields.u64("rate of a link")?);
        let bits_per_key = f64::from_bits(fields.u64("bits per key of a link")?);
        let probes = fields.u32("probes of a link")?;
        let capacity = fields.u64("capacity of a link")?;
        let n2 = fields.u8("n2 of a link")?;
        if bits == 0 || bytes.checked_mul(8) != Some(bits) {
            return refused("bits of a link", bits);
        }
        // No memory counts further; and so no sum of keys comes near the end of the numbers.
        if keys > MAX_CAPACITY {
            return refused("keys of a link", keys);
        }
        // Written so that a NaN is refused, too.
        if !(fpr > 0.0 && fpr < 1.0) {
            return refused("rate of a link", fpr.to_bits());
        }
        let probes = super::probes(probes.into())?;
        if !bits_per_key.is_finite() || probes_for(bits_per_key) != u64::from(probes) {
            return refused("bits per key of a link", bits_per_key.to_bits());
        }
        if n2 > 63 || (n2 > 0 && bits < 1 << n2) {
            return refused("n2 of a link", n2.into());
        }
        Ok(Self { bytes, keys, fpr, bits_per_key, probes, capacity, n2 })
    }

    fn write(&self, header: &mut Vec<u8>) {
        header.extend(self.bytes.to_le_bytes());
        header.extend((self.bytes * 8).to_le_bytes());
        header.extend(self.keys.to_le_bytes());
        header.extend(self.fpr.to_le_bytes());
        header.extend(self.bits_per_key.to_le_bytes());
        header.extend(self.probes.to_le_bytes());
        header.extend(self.capacity.to_le_bytes());
        header.push(self.n2);
    }

    /// Positions are below.
    const fn modulus(&self) -> u64 {
        if self.n2 == 0 { self.bytes * 8 } else { 1 << self.n2 }
    }

    /// Without memory.
    #[inline]
    fn positions(&self, digest: Digest, options: u32) -> ForeignPositions {
        let narrow = options & FORCE_64 == 0 && matches!(self.n2, 1..=31);
        if narrow {
            ForeignPositions::redis_32(digest, self.probes, self.modulus())
        } else {
            ForeignPositions::of(Probing::REDIS_BLOOM, digest, self.probes, self.modulus())
        }
    }

    fn is_full(&self) -> bool {
        self.keys >= self.capacity
    }
}

fn probes_for(bits_per_key: f64) -> u64 {
    whole(libm::ceil(LN2 * bits_per_key))
}

impl Link {
    fn empty(shape: LinkHeader) -> Result<Self, OutOfMemory> {
        Ok(Self { bits: Array::zeroed(shape.bytes)?, shape })
    }

    fn copied(&self) -> Result<Self, OutOfMemory> {
        let mut copy = Self::empty(self.shape)?;
        copy.bits.as_mut_slice().copy_from_slice(self.bits.as_slice());
        Ok(copy)
    }

    #[inline]
    fn contains(&self, digest: Digest, options: u32) -> bool {
        let bits = self.bits.as_slice();
        let mut positions = self.shape.positions(digest, options);
        positions.all(|position| bits[index(position / 8)] >> (position % 8) & 1 == 1)
    }

    fn insert(&mut self, digest: Digest, options: u32) {
        let bits = self.bits.as_mut_slice();
        for position in self.shape.positions(digest, options) {
            bits[index(position / 8)] |= 1 << (position % 8);
        }
        self.shape.keys += 1;
    }

    /// Set bits that positions can have.
    fn ones(&self) -> u64 {
        self.bits.count_ones().min(self.shape.modulus())
    }

    fn report(&self) -> LayerReport {
        let LinkHeader { keys, probes, capacity, bytes, .. } = self.shape;
        let fill = self.ones() as f64 / self.shape.modulus() as f64;
        let fpr_now = math::fpr_from_fill(fill, probes);
        LayerReport { capacity, keys, bits: bytes * 8, probes, fill, fpr_now }
    }
}

/// An empty filter; a growth that is not requested is the program's default.
fn make(making: &Making) -> Result<RedisBloom, SpecError> {
    making.without(Knob::Seed, FORMAT.name)?;
    let growth = Growth::Times(making.growth.unwrap_or(DEFAULT_GROWTH));
    let fpr = if making.is_since((8, 0)) { making.fpr.min(MOST_FPR) } else { making.fpr };
    RedisBloom::reserve(making.capacity, fpr, growth)
}

impl RedisBloom {
    /// An empty filter, as `BF.RESERVE` makes it.
    ///
    /// # Errors
    /// [`SpecError`] names the number that makes no sense, or the memory that was not granted.
    pub fn reserve(capacity: u64, fpr: f64, growth: Growth) -> Result<Self, SpecError> {
        Making::new(capacity, fpr).check()?;
        let (growth, scaling) = match growth {
            Growth::Times(times) => (times, times != 0),
            Growth::Never { told } => (told, false),
        };
        GROWTH.check(growth.into())?;
        let options = NO_ROUND | FORCE_64 | if scaling { 0 } else { NO_SCALING };
        let shape = LinkHeader::new(capacity, if scaling { fpr * TIGHTENING } else { fpr }, options);
        if shape.bytes > MAX_BITS / 8 {
            return Err(SpecError::TooLarge { bits: shape.bytes * 8, limit: MAX_BITS });
        }
        Ok(Self::of(Links { options, growth, links: Vec::from([Link::empty(shape)?]) }))
    }

    fn of(kernel: Links) -> Self {
        Self(Shell { hashing: kernel.hashing(), inserted: kernel.counted(), kernel })
    }

    /// What becomes of it when it is full.
    #[must_use]
    pub fn growth(&self) -> Growth {
        let Links { options, growth, .. } = self.0.kernel;
        if options & NO_SCALING == 0 { Growth::Times(growth) } else { Growth::Never { told: growth } }
    }

    /// Its links, oldest first.
    #[must_use]
    pub fn layers(&self) -> Vec<LayerReport> {
        self.0.kernel.links.iter().map(Link::report).collect()
    }
}

impl Links {
    fn hashing(&self) -> Hashing {
        let wide = self.options & FORCE_64 != 0;
        Hashing::Foreign(if wide { ForeignHash::Murmur64aTwice } else { ForeignHash::Murmur2Twice })
    }

    /// How many keys its links are made for, all together.
    fn capacity(&self) -> u64 {
        self.shapes().map(|shape| shape.capacity).fold(0, u64::saturating_add)
    }

    fn shapes(&self) -> impl Iterator<Item = &LinkHeader> {
        self.links.iter().map(|link| &link.shape)
    }

    fn newest(&self) -> &Link {
        self.links.last().expect("there is always one")
    }

    /// The newest link, or one after it if it is full.
    fn link_with_room(&mut self) -> Result<&mut Link, Full> {
        if self.newest().shape.is_full() {
            let next = self.next_link()?;
            self.links.push(next);
        }
        Ok(self.links.last_mut().expect("there is always one"))
    }

    fn next_link(&self) -> Result<Link, Full> {
        let full = |limit| Err(Full { limit, inserted: 0 });
        let newest = &self.newest().shape;
        let capacity = newest.capacity.saturating_mul(self.growth.into());
        if self.options & (NO_SCALING | CAPACITY_IS_BITS) != 0 || capacity == 0 {
            return full(Limit::Keys { capacity: self.capacity() });
        }
        let shape = LinkHeader::new(capacity, newest.fpr * TIGHTENING, self.options);
        // The rate is below all numbers then, or nearly.
        if shape.probes > MOST_PROBES {
            return full(Limit::Layers { most: self.links.len() as u64 });
        }
        // The rate of a link is at most 1/2, so that half of it takes at most twice the bits per key; powers of two double it
        // again. Only a crafted header asks for more, such as one whose link claims more keys than it has bits for.
        let most = newest.bytes.saturating_mul(4 * u64::from(self.growth.min(MAX_GROWTH)));
        if shape.bytes > most.saturating_add(8) {
            return full(Limit::Growth { bytes: shape.bytes, most });
        }
        if shape.bytes > MAX_BITS / 8 {
            return full(Limit::Memory { bytes: shape.bytes });
        }
        Link::empty(shape).or_else(|OutOfMemory { bytes }| full(Limit::Memory { bytes }))
    }

    fn header(&self) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER + self.links.len() * LINK);
        let keys: u64 = self.shapes().map(|shape| shape.keys).sum();
        header.extend(keys.to_le_bytes());
        header.extend(small_len(self.links.len()).to_le_bytes());
        header.extend(self.options.to_le_bytes());
        header.extend(self.growth.to_le_bytes());
        self.shapes().for_each(|shape| shape.write(&mut header));
        header
    }

    fn arrays(&self) -> impl Iterator<Item = &[u8]> {
        self.links.iter().map(|link| link.bits.as_slice())
    }
}

/// What a header tells.
struct Header {
    options: u32,
    growth: u32,
    shapes: Vec<LinkHeader>,
}

impl Header {
    fn parse(header: &[u8]) -> Result<Self, DecodeError> {
        let mut fields = Fields::new(header);
        let keys = fields.u64("keys of all links")?;
        let links = fields.u32("links")?;
        let options = fields.u32("options")?;
        let growth = fields.u32("growth")?;
        if links == 0 {
            return Err(DecodeError::Value { field: "links", found: 0 });
        }
        if options & !KNOWN_OPTIONS != 0 {
            return Err(DecodeError::Flags { found: options & !KNOWN_OPTIONS });
        }
        super::must_be_long("links", u64::from(links) * LINK as u64, fields.rest())?;
        let shapes: Vec<LinkHeader> =
            (0..links).map(|_| LinkHeader::read(&mut fields)).collect::<Result<_, DecodeError>>()?;
        // None is above 2^48, and there are less than 2^32 of them: a u128 holds the sum.
        if shapes.iter().map(|shape| u128::from(shape.keys)).sum::<u128>() != u128::from(keys) {
            return Err(DecodeError::Value { field: "keys of all links", found: keys });
        }
        Ok(Self { options, growth, shapes })
    }
}

impl Dump for RedisBloom {
    fn lengths(header: &[u8], limit: u64) -> Result<Vec<u64>, DecodeError> {
        let shapes = Header::parse(header)?.shapes;
        redis_dump::fitting(shapes.iter().map(|shape| Some(shape.bytes)), limit)
    }

    fn begin(header: &[u8], limit: u64) -> Result<Self, DecodeError> {
        Self::lengths(header, limit)?;
        let Header { options, growth, shapes } = Header::parse(header)?;
        let links = shapes.into_iter().map(Link::empty).collect::<Result<_, _>>();
        let links = links.map_err(|OutOfMemory { bytes }| DecodeError::Memory { bytes })?;
        Ok(Self::of(Links { options, growth, links }))
    }

    fn header(&self) -> Vec<u8> {
        self.0.kernel.header()
    }

    fn arrays(&self) -> impl Iterator<Item = &[u8]> {
        self.0.kernel.arrays()
    }

    fn array_mut(&mut self, index: usize) -> &mut [u8] {
        self.0.kernel.links[index].bits.as_mut_slice()
    }
}

impl Kernel for Links {
    type Hash = Digest;

    const IS_FOREIGN: bool = true;

    #[inline]
    fn contains(&self, digest: Digest) -> bool {
        self.links.iter().rev().any(|link| link.contains(digest, self.options))
    }

    /// The newest link is the largest. Half of its bits are set at most: an absent key hardly gets further.
    fn prefetch(&self, digest: Digest) {
        let Link { bits, shape } = self.newest();
        let positions = shape.positions(digest, self.options).take(2);
        positions.for_each(|position| prefetch(bits.as_slice(), index(position / 8)));
    }

    fn plan(&self) -> Plan {
        let first = &self.links[0].shape;
        let asked = if self.options & NO_SCALING == 0 { first.fpr / TIGHTENING } else { first.fpr };
        let full = |shape: &LinkHeader| math::bloom_fpr(shape.modulus(), shape.capacity as f64, shape.probes);
        Plan {
            capacity: self.capacity(),
            fpr_asked: asked.min(1.0),
            fpr: math::compounded_fpr(self.shapes().map(full)),
            bits: self.shapes().map(|shape| shape.bytes * 8).sum(),
            probes: if let [only] = &*self.links { Some(only.shape.probes) } else { None },
        }
    }

    fn fill(&self) -> f64 {
        let ones: u64 = self.links.iter().map(Link::ones).sum();
        ones as f64 / self.plan().bits as f64
    }

    fn rate(&self) -> Rate {
        Rate::computed(math::compounded_fpr(self.links.iter().map(|link| link.report().fpr_now)))
    }

    fn estimated_len(&self) -> f64 {
        let of_link = |link: &Link| math::estimated_len(link.shape.modulus(), link.ones(), link.shape.probes);
        self.links.iter().map(of_link).sum()
    }

    fn must_match(&self, other: &Self) -> Result<(), Mismatch> {
        if (self.options, self.growth) != (other.options, other.growth) {
            return Err(Mismatch::PeerField { field: "ways to grow" });
        }
        self.shapes().zip(other.shapes()).try_for_each(|(ours, theirs)| {
            must_agree(ours, theirs, |shape| {
                [
                    (Parameter::Bits, shape.modulus().into()),
                    (Parameter::Bytes, shape.bytes.into()),
                    (Parameter::Probes, shape.probes.into()),
                ]
            })
        })
    }

    fn holds_the_same(&self, other: &Self) -> bool {
        self.shapes().eq(other.shapes()) && self.arrays().eq(other.arrays())
    }

    fn write<'a>(&'a self, out: &mut Writer<'a>) {
        out.probing(Probing::REDIS_BLOOM);
        out.ones(self.links.iter().map(Link::ones).sum());
        redis_dump::encode(self.header(), self.arrays(), out);
    }

    fn read(frame: &mut Frame, hashing: Hashing) -> Result<Self, DecodeError> {
        let RedisBloom(Shell { kernel, hashing: expected, .. }) = redis_dump::decode(frame)?;
        super::must_be_hashed(frame, hashing, expected)?;
        Ok(kernel)
    }

    fn can(&self) -> Option<Capabilities> {
        let grows = self.options & (NO_SCALING | CAPACITY_IS_BITS) == 0 && self.growth != 0;
        Some(Capabilities { grows, ..FAMILY.can })
    }

    fn counted(&self) -> Option<u64> {
        Some(self.shapes().map(|shape| shape.keys).sum())
    }

    fn program(&self) -> Option<&'static str> {
        Some(FORMAT.name)
    }

    fn details(&self) -> Details<'_> {
        Details { layers: self.links.iter().map(Link::report).collect(), ..Details::default() }
    }
}

impl Inserts for Links {
    type Error = Full;

    fn insert(&mut self, digest: Digest) -> Result<Insertion, Full> {
        if self.contains(digest) {
            return Ok(Insertion::Perhaps);
        }
        let options = self.options;
        self.link_with_room()?.insert(digest, options);
        Ok(Insertion::New)
    }
}

impl Merges for Links {
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.must_match(other)?;
        for (ours, theirs) in self.shapes().zip(other.shapes()) {
            if ours.keys + theirs.keys > ours.capacity {
                let limit = Limit::Keys { capacity: ours.capacity };
                return Err(Mismatch::Full(Full { limit, inserted: 0 }));
            }
        }
        let more = other.links.iter().skip(self.links.len()).map(Link::copied);
        let more: Vec<Link> =
            more.collect::<Result<_, _>>().map_err(|OutOfMemory { bytes }| Mismatch::Memory { bytes })?;
        for (ours, theirs) in self.links.iter_mut().zip(&other.links) {
            let bytes = ours.bits.as_mut_slice().iter_mut().zip(theirs.bits.as_slice());
            bytes.for_each(|(ours, theirs)| *ours |= theirs);
            ours.shape.keys += theirs.shape.keys;
        }
        self.links.extend(more);
        Ok(())
    }
}
