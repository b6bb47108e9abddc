//! All families, and opening a file of any of them. The only file that knows every family.

use alloc::boxed::Box;

use crate::bits::Bytes;
use crate::error::{DecodeError, Knob};
use crate::exceptions::{self, with_key_rules};
use crate::family::{AnyFilter, Family};
use crate::filters;
use crate::hash::{Hashing, Secret};
#[cfg(feature = "interop")]
use crate::interop;
use crate::key_rules::KeyRules;
use crate::probing::is_foreign;
use crate::wire::{EXCEPTIONS, Frame, KEY_RULES, Verify};

/// Every family, in the order in which lists show them.
pub static FAMILIES: &[&Family] = &[
    &filters::bloom::FAMILY,
    &filters::blocked::FAMILY,
    &filters::counting::FAMILY,
    &filters::dleft::FAMILY,
    &filters::spectral::FAMILY,
    &filters::cuckoo::FAMILY,
    &filters::fuse::FAMILY,
    &filters::ribbon::FAMILY,
    &filters::universe::FAMILY,
    &filters::spatial::FAMILY,
    &filters::scalable::FAMILY,
    &filters::windowed::FAMILY,
    &filters::shifting::FAMILY,
    &filters::shifting_association::FAMILY,
    &filters::shifting_multiplicity::FAMILY,
    &filters::expanding::FAMILY,
    &filters::table::FAMILY,
    &filters::exact::FAMILY,
    &filters::bitmap::FAMILY,
    #[cfg(feature = "roaring")]
    &filters::roaring::FAMILY,
];

/// The names of the families that take a knob, in their order.
pub(crate) fn names_with(knob: Knob) -> &'static [&'static str] {
    let (names, count) = &NAMES_WITH[knob as usize];
    &names[..*count]
}

/// For each knob, by its number, the families that take it, and how many they are.
static NAMES_WITH: [([&str; FAMILIES.len()], usize); Knob::ALL.len()] = {
    let mut all = [([""; FAMILIES.len()], 0); Knob::ALL.len()];
    // Loops over ranges are no constants yet.
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut own = 0;
        while own < FAMILIES[family].knobs.len() {
            let (names, count) = &mut all[FAMILIES[family].knobs[own].knob as usize];
            names[*count] = FAMILIES[family].name;
            *count += 1;
            own += 1;
        }
        family += 1;
    }
    all
};

/// The family of this name.
#[must_use]
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().copied().find(|family| family.name == name)
}

/// Opens a filter of any family from the bytes of its file.
///
/// ```
/// use mayhap::{Bloom, Filter};
///
/// let mut bloom = Bloom::new(100, 0.01)?;
/// bloom.insert("key");
/// let filter = mayhap::open(bloom.to_bytes().into(), None)?;
/// assert_eq!(filter.family().name, "bloom");
/// assert!(filter.contains(b"key"));
/// # Ok::<(), mayhap::Error>(())
/// ```
///
/// # Errors
/// [`DecodeError`] says what is wrong with the bytes, or that a secret is needed.
pub fn open(bytes: Bytes, secret: Option<&Secret>) -> Result<Box<dyn AnyFilter>, DecodeError> {
    let mut frame = Frame::parse(&bytes, Verify::All)?;
    let hashing = frame.hashing(secret)?;
    decode(&mut frame, hashing)
}

/// Makes a filter of a frame, by the family that its header names.
///
/// # Errors
/// [`DecodeError`] if the family is unknown or refuses the frame.
pub fn decode(frame: &mut Frame, hashing: Hashing) -> Result<Box<dyn AnyFilter>, DecodeError> {
    let rules = frame.take_section(KEY_RULES);
    let rules = rules.map(|section| KeyRules::decode(section.as_slice())).transpose()?;
    let filter = decode_filter(frame, hashing)?;
    Ok(with_key_rules(filter, rules))
}

fn decode_filter(frame: &mut Frame, hashing: Hashing) -> Result<Box<dyn AnyFilter>, DecodeError> {
    #[cfg(not(feature = "interop"))]
    if is_foreign(frame.header.probing) {
        return Err(DecodeError::Feature { feature: "interop" });
    }
    #[cfg(feature = "interop")]
    if is_foreign(frame.header.probing) {
        // Many of them are not kept in words, which would remember a checksum that was not compared.
        frame.verify_payload()?;
        let filter = interop::decode(frame, hashing)?;
        frame.end()?;
        return Ok(filter);
    }
    let found = frame.header.family;
    let family = FAMILIES.iter().find(|family| family.id == found).ok_or(unknown(found))?;
    let exceptions = frame.take_section(EXCEPTIONS);
    let filter = (family.decode)(frame, hashing)?;
    frame.end()?;
    match exceptions {
        None => Ok(filter),
        Some(section) => exceptions::decode(filter, section),
    }
}

/// Why a file whose family is not in [`FAMILIES`] cannot be read.
fn unknown(found: u16) -> DecodeError {
    #[cfg(not(feature = "roaring"))]
    if found == filters::ROARING {
        return DecodeError::Feature { feature: "roaring" };
    }
    DecodeError::Family { found }
}
