//! Files that somebody wants to be believed: changed, and with the right checksums.

use mayhap::wire::{Header, PAGE, Verify, checksum};
use mayhap::{AnyFilter, DecodeError, decode, encode, open};
use mayhap_eval::Random;

/// Where the parameters of a family start.
pub(crate) const PARAMS: usize = 96;

/// The file with these bytes in this place, and its checksums renewed.
pub(crate) fn with(file: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    resealed(file)
}

/// The file with another payload, whose length and checksum the header is given.
pub(crate) fn with_payload(file: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut file = file[..PAGE].to_vec();
    file[64..72].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    file.extend(payload);
    resealed(file)
}

pub(crate) fn payload(file: &[u8]) -> &[u8] {
    &file[PAGE..]
}

/// Renews all checksums: the file is then believed. Offsets and lengths are those in the file, where it has them.
pub(crate) fn reseal(file: &mut [u8]) {
    let u32_at = |file: &[u8], at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let u64_at = |file: &[u8], at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let header = match u32_at(file, 40) as usize {
        length if length >= PAGE && length.is_multiple_of(PAGE) && length <= file.len() => length,
        _ => PAGE,
    };
    let sum_of = |file: &[u8], at: usize| {
        let start = usize::try_from(u64_at(file, at)).ok()?;
        let end = start.checked_add(usize::try_from(u64_at(file, at + 8)).ok()?)?;
        Some(checksum(file.get(start..end)?))
    };
    let sections = (u32_at(file, 48) as usize).min(20);
    let first = 96 + (u32_at(file, 44) as usize).min(header);
    let places = std::iter::once(56).chain((0..sections).map(|section| first + 32 * section + 8));
    for place in places.filter(|place| place + 24 <= header - 8).collect::<Vec<_>>() {
        if let Some(sum) = sum_of(file, place) {
            file[place + 16..place + 24].copy_from_slice(&sum.to_le_bytes());
        }
    }
    let sum = checksum(&file[..header - 8]);
    file[header - 8..header].copy_from_slice(&sum.to_le_bytes());
}

/// The file with its checksums renewed.
pub(crate) fn resealed(mut file: Vec<u8>) -> Vec<u8> {
    reseal(&mut file);
    file
}

/// Opens damaged and crafted copies of a file, and uses what opens: refused or harmless, and never a panic. Returns
/// how many were refused and how many opened.
pub(crate) fn damage(file: &[u8], seed: u64, rounds: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let (mut refused, mut opened) = (0, 0);
    for round in 0..rounds {
        let mut damaged = file.to_vec();
        for _ in 0..=round % 3 {
            let place = match random.below(2) {
                0 => PAGE + random.below((file.len() - PAGE) as u64) as usize,
                _ => 80 + random.below(100) as usize,
            };
            damaged[place] ^= 1 << random.below(8);
        }
        match open(resealed(damaged.clone()).into(), None) {
            Ok(mut filter) => {
                opened += 1;
                use_it(&mut *filter);
                let again = encode(&*filter, mayhap::Summing::Payload).to_vec();
                assert!(
                    open(again.into(), None).is_ok(),
                    "what was opened and written cannot be opened again"
                );
            }
            Err(_) => refused += 1,
        }
        // Who looks at the header only believes the payload, and comes to no harm.
        if let Ok(mut filter) = open_by_header(&resealed(damaged)) {
            use_it(&mut *filter);
        }
    }
    (refused, opened)
}

/// As a large file is opened: mapped, without a look at its payload.
pub(crate) fn open_by_header(file: &[u8]) -> Result<Box<dyn AnyFilter>, DecodeError> {
    Header::decode(file, file.len() as u64)?;
    let mut frame = mayhap::wire::Frame::parse(&file.to_vec().into(), Verify::Header)?;
    let hashing = frame.hashing(None)?;
    decode(&mut frame, hashing)
}

fn use_it(filter: &mut dyn AnyFilter) {
    let hashing = filter.hashing();
    let digests: Vec<_> = (0..60u64).map(|key| hashing.digest_of(key)).collect();
    let (mut hits, mut counts) = (Vec::new(), Vec::new());
    if let Some(insert) = filter.as_insert() {
        insert.insert_batch(&digests, &mut Vec::new()).unwrap();
    }
    // Who counts by what a damaged file says may lose a key; all others hold what they are given.
    let keeps =
        filter.can().inserts && filter.report().guarantee != mayhap::Guarantee::FalseNegativesPossible;
    filter.contains_batch(&digests, &mut hits);
    assert!(!keeps || hits.iter().all(|&hit| hit), "a key was inserted and is denied");
    if let Some(count) = filter.as_count() {
        count.count_batch(&digests, &mut counts);
        assert!(!keeps || counts.iter().all(|&count| count > 0), "a key was inserted and counts as none");
    }
    if let Some(remove) = filter.as_remove() {
        digests.iter().for_each(|&digest| {
            let _ = remove.remove_digest(digest);
        });
    }
    let (_, _) = (filter.report(), filter.details());
    let file = encode(filter, mayhap::Summing::Payload).to_vec();
    if let Ok(other) = open_by_header(&file) {
        let _ = mayhap::combine(filter, &*other, mayhap::Combine::Union);
    }
}
