//! Exceptions, around a filter of every family: denied exactly, and nobody else is.

use std::num::NonZeroU16;
use std::ops::Range;

use mayhap::wire::{EXCEPTIONS, Header};
use mayhap::{
    AnyFilter, Bloom, Combine, Cuckoo, DecodeError, Digest, Error, FAMILIES, Family, Hashing, Insertion,
    Labels, Make, Mismatch, Parameter, Removal, Spec, Summing, combine, encode, encode_with, except, open,
};

use crate::crafted;

const MEMBERS: u64 = 3000;
/// So many that about 100 of them are false positives.
const FPR: f64 = 0.03;
const ALLOWED: Range<u64> = 10_000..13_500;
const OTHERS: Range<u64> = 20_000..24_000;

fn digest(family: &Family, key: u64) -> Digest {
    let integers = family.can.exact && family.name != "exact";
    if integers { Hashing::Integer } else { Hashing::default() }.digest_of(key)
}

fn digests(family: &Family, keys: Range<u64>) -> Vec<Digest> {
    keys.map(|key| digest(family, key)).collect()
}

/// A filter with these keys; in families of many sets all are in area 1, and in one of two sets in both.
fn filled(family: &Family, capacity: u64, keys: Range<u64>) -> Box<dyn AnyFilter> {
    let spec = Spec::sized(capacity, FPR);
    let digests = digests(family, keys);
    match family.make {
        Make::Empty(make) => {
            let mut filter = make(&spec).unwrap();
            insert(&mut *filter, &digests);
            filter
        }
        Make::Counted(make) => make(&spec, &mut digests.iter().map(|&digest| (digest, 2))).unwrap(),
        Make::OfTwo(make) => make(&spec, &digests, &digests).unwrap(),
        Make::FromDigests(make) => {
            make(&spec, &digests.iter().map(|digest| digest.a).collect::<Vec<u64>>(), 1).unwrap()
        }
        // With as many others, that nobody asks for.
        Make::Within(make) => {
            let halves = |digests: &[Digest]| digests.iter().map(|digest| digest.a).collect::<Vec<u64>>();
            let others = self::digests(family, 1 << 40..(1 << 40) + capacity);
            make(&spec.with_others(capacity), &halves(&digests), &halves(&others), 1).unwrap()
        }
        _ => panic!("{}: another way to be made", family.name),
    }
}

fn insert(filter: &mut dyn AnyFilter, digests: &[Digest]) -> Vec<Insertion> {
    let mut outcomes = Vec::new();
    if filter.can().inserts {
        filter.as_insert().unwrap().insert_batch(digests, &mut outcomes).unwrap();
    } else {
        let label = filter.as_label_mut().unwrap();
        label.insert_labelled_batch(digests, NonZeroU16::MIN, &mut outcomes).unwrap();
    }
    outcomes
}

/// Whether keys can be inserted into this filter, with a label or without.
fn takes_keys(filter: &mut dyn AnyFilter) -> bool {
    filter.can().inserts || matches!(filter.family().make, Make::Empty(_))
}

fn excepted(family: &Family) -> Box<dyn AnyFilter> {
    except(filled(family, MEMBERS, 0..MEMBERS), digests(family, ALLOWED))
}

fn answers(filter: &dyn AnyFilter, digests: &[Digest]) -> Vec<bool> {
    let mut hits = Vec::new();
    filter.contains_batch(digests, &mut hits);
    hits
}

fn file_of(filter: &dyn AnyFilter) -> Vec<u8> {
    encode(filter, Summing::Payload).to_vec()
}

fn exceptions(filter: &dyn AnyFilter) -> u64 {
    filter.exceptions().map_or(0, |exceptions| exceptions.keys)
}

fn each_family(mut test: impl FnMut(&'static Family)) {
    for family in FAMILIES {
        // Seen only when a test fails.
        println!("family {}", family.name);
        test(family);
    }
}

#[test]
fn exceptions_are_denied_and_no_other_answer_changes() {
    each_family(|family| {
        let (plain, filter) = (filled(family, MEMBERS, 0..MEMBERS), excepted(family));
        let (members, allowed) = (digests(family, 0..MEMBERS), digests(family, ALLOWED));
        let others = digests(family, OTHERS);
        let wrong = answers(&*plain, &allowed).iter().filter(|&&hit| hit).count() as u64;
        // A table tells more keys from each other than it is asked to, where that costs nothing.
        assert_eq!(wrong > 0, !family.can.exact && family.name != "table", "{wrong} false positives");

        assert!(answers(&*filter, &members).iter().all(|&hit| hit));
        assert!(answers(&*filter, &allowed).iter().all(|&hit| !hit));
        assert_eq!(answers(&*filter, &others), answers(&*plain, &others));
        // One by one, and by their bytes.
        for keys in [0..MEMBERS, ALLOWED, OTHERS] {
            let digests = digests(family, keys.clone());
            let one: Vec<bool> = digests.iter().map(|&digest| filter.contains_digest(digest)).collect();
            assert_eq!(one, answers(&*filter, &digests));
            let keys: Vec<[u8; 8]> = keys.map(u64::to_le_bytes).collect();
            let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
            let mut hits = vec![true];
            filter.contains_keys(&keys, &mut hits);
            assert_eq!(hits[1..], one);
        }

        let can = plain.can();
        let stored = match can.inserts || can.labels || can.merges || can.intersects || can.folds {
            _ if can.exact => 0,
            true => allowed.len() as u64,
            // It never changes, so only what it would admit is kept.
            false => wrong,
        };
        assert!(family.name != "fuse" || stored < 200, "{stored}");
        assert_eq!(exceptions(&*filter), stored);
        assert_eq!(filter.report(), plain.report());
        assert_eq!((filter.family(), filter.hashing()), (plain.family(), plain.hashing()));
        if family.can.exact {
            assert!(file_of(&*filter) == file_of(&*plain));
        }
    });
}

#[test]
fn a_filter_with_exceptions_can_do_what_it_can_without() {
    each_family(|family| {
        let (mut plain, mut filter) = (filled(family, 100, 0..50), excepted(family));
        assert_eq!(filter.can(), plain.can());
        let offered = |filter: &mut dyn AnyFilter| {
            [
                filter.as_insert().is_some(),
                filter.as_remove().is_some(),
                filter.as_count().is_some(),
                filter.as_label().is_some(),
                filter.as_label_mut().is_some(),
                filter.as_merge().is_some(),
                filter.as_intersect().is_some(),
                filter.as_subtract().is_some(),
                filter.as_fold().is_some(),
            ]
        };
        assert_eq!(offered(&mut *filter), offered(&mut *plain));
        assert_eq!(filter.unsupported("fly"), plain.unsupported("fly"));
        if let Some(exceptions) = filter.exceptions() {
            assert_eq!(filter.details(), exceptions.without.details());
        }
    });
}

#[test]
fn exceptions_count_as_none_and_have_no_label() {
    each_family(|family| {
        let filter = excepted(family);
        let allowed = digests(family, ALLOWED);
        if let Some(count) = filter.as_count() {
            let mut counts = vec![7];
            count.count_batch(&allowed, &mut counts);
            assert!(counts[0] == 7 && counts[1..].iter().all(|&count| count == 0));
            assert!(allowed.iter().all(|&digest| count.count_digest(digest) == 0));
            assert!((0..MEMBERS).all(|key| count.count_digest(digest(family, key)) > 0));
            assert!(count.ceiling() > 0);
        }
        if let Some(label) = filter.as_label() {
            let mut labels = vec![Labels::One(NonZeroU16::MIN)];
            label.label_batch(&allowed, &mut labels);
            assert!(labels[0] != Labels::None && labels[1..].iter().all(|labels| *labels == Labels::None));
            assert!(allowed.iter().all(|&digest| label.label_digest(digest) == Labels::None));
            assert!((0..MEMBERS).all(|key| label.label_digest(digest(family, key)) != Labels::None));
            assert!(label.areas() > 0 && label.area_name(NonZeroU16::MIN).is_none_or(|name| name.is_empty()));
        }
    });
}

#[test]
fn what_is_written_is_read_again_to_the_byte() {
    each_family(|family| {
        let filter = excepted(family);
        let file = file_of(&*filter);
        let header = Header::decode(&file, file.len() as u64).unwrap();
        let sections = header.sections.iter().filter(|(id, _)| *id == EXCEPTIONS).count();
        assert_eq!(sections, usize::from(!family.can.exact));
        for opened in [open(file.clone().into(), None), crafted::open_by_header(&file)] {
            let opened = opened.unwrap();
            assert!(file_of(&*opened) == file);
            assert_eq!(exceptions(&*opened), exceptions(&*filter));
            for keys in [0..MEMBERS, ALLOWED, OTHERS] {
                let digests = digests(family, keys);
                assert_eq!(answers(&*opened, &digests), answers(&*filter, &digests));
            }
        }
    });
}

#[test]
fn an_exception_that_is_inserted_is_one_no_more() {
    each_family(|family| {
        let mut filter = filled(family, 4 * MEMBERS, 0..MEMBERS);
        if family.can.exact || !takes_keys(&mut *filter) {
            return;
        }
        let allowed = digests(family, ALLOWED);
        filter = except(filter, allowed.iter().copied());
        let before = exceptions(&*filter);
        // Two of them, and one twice: certainly new, and then perhaps not.
        let outcomes = insert(&mut *filter, &[allowed[0], allowed[1], allowed[0]]);
        assert_eq!(outcomes, [Insertion::New, Insertion::New, Insertion::Perhaps]);
        assert_eq!(exceptions(&*filter), before - 2);
        assert!(filter.contains_digest(allowed[0]) && filter.contains_digest(allowed[1]));
        // Alone.
        let outcome = match filter.can().inserts {
            true => filter.as_insert().unwrap().insert_digest(allowed[2]),
            false => filter.as_label_mut().unwrap().insert_labelled(allowed[2], NonZeroU16::MIN),
        };
        assert_eq!(outcome, Ok(Insertion::New));
        assert!(filter.contains_digest(allowed[2]) && exceptions(&*filter) == before - 3);
        // More keys than it had make other keys false positives, but none of the exceptions.
        insert(&mut *filter, &digests(family, 5000..5000 + MEMBERS));
        assert!(answers(&*filter, &allowed[3..]).iter().all(|&hit| !hit));
        let again = open(file_of(&*filter).into(), None).unwrap();
        assert_eq!(exceptions(&*again), before - 3);
        assert!(answers(&*again, &allowed[..3]).iter().all(|&hit| hit));
        assert!(answers(&*again, &allowed[3..]).iter().all(|&hit| !hit));
        // All of them: a file like that of a filter that never had any.
        insert(&mut *filter, &allowed[3..]);
        assert!(answers(&*filter, &allowed).iter().all(|&hit| hit));
        let file = file_of(&*filter);
        let header = Header::decode(&file, file.len() as u64).unwrap();
        assert!(header.sections.iter().all(|(id, _)| *id != EXCEPTIONS));
        assert!(open(file.into(), None).unwrap().exceptions().is_none());
    });
}

#[test]
fn a_key_that_finds_no_room_stays_an_exception() {
    let hashing = Hashing::default();
    let keys: Vec<Digest> = (0..2000u64).map(|key| hashing.digest_of(key)).collect();
    let mut filter = except(Box::new(Cuckoo::new(1000, 0.01).unwrap()), keys.iter().copied());
    let mut outcomes = Vec::new();
    let full = filter.as_insert().unwrap().insert_batch(&keys, &mut outcomes).unwrap_err();
    let done = full.inserted as usize;
    assert!(done > 1000 && done < 2000 && outcomes.len() == done);
    assert!(outcomes.iter().all(|&outcome| outcome == Insertion::New));
    assert_eq!(exceptions(&*filter), (2000 - done) as u64);
    assert!(answers(&*filter, &keys[..done]).iter().all(|&hit| hit));
    assert!(answers(&*filter, &keys[done..]).iter().all(|&hit| !hit));
    let before = file_of(&*filter);
    assert!(filter.as_insert().unwrap().insert_digest(keys[done]).is_err());
    assert!(file_of(&*filter) == before);
}

#[test]
fn removing_an_exception_changes_nothing() {
    each_family(|family| {
        if !family.can.removes || family.can.exact {
            return;
        }
        let mut filter = excepted(family);
        let Some(remove) = filter.as_remove() else { return };
        let (allowed, members) = (digests(family, ALLOWED), digests(family, 0..MEMBERS));
        let mut removed = vec![Removal::Removed];
        remove.remove_batch(&allowed, &mut removed);
        assert!(removed[0].is_removed());
        assert!(removed[1..].iter().all(|&removed| removed == Removal::Absent));
        assert!(allowed.iter().all(|&digest| !remove.remove_digest(digest).is_removed()));
        assert!(file_of(&*filter) == file_of(&*excepted(family)));
        // Members among them go, and only they.
        let mixed: Vec<Digest> =
            allowed.iter().zip(&members).flat_map(|(&a, &b)| [a, b]).take(2000).collect();
        let mut removed = Vec::new();
        filter.as_remove().unwrap().remove_batch(&mixed, &mut removed);
        let is_right = |pair: &[Removal]| pair[0] == Removal::Absent && pair[1] != Removal::Absent;
        assert!(removed.chunks_exact(2).all(is_right));
        assert!(answers(&*filter, &members[1000..]).iter().all(|&hit| hit));
        assert_eq!(exceptions(&*filter), allowed.len() as u64);
    });
}

#[test]
fn a_merge_keeps_what_no_input_admits() {
    each_family(|family| {
        if !family.can.merges || family.can.exact {
            return;
        }
        // The exceptions of ours are members of theirs from 1200 on, and the other way round below 100.
        let ours = || filled(family, 3000, 0..500);
        let theirs = || filled(family, 3000, 1200..1700);
        let (of_ours, of_theirs) =
            (digests(family, 1000..1400), [digests(family, 0..100), digests(family, 900..1100)].concat());
        for (with_ours, with_theirs) in [(true, true), (true, false), (false, true), (false, false)] {
            let of_ours = if with_ours { &of_ours[..] } else { &[] };
            let of_theirs = if with_theirs { &of_theirs[..] } else { &[] };
            let mut merged = except(ours(), of_ours.iter().copied());
            let other = match with_theirs {
                true => except(theirs(), of_theirs.iter().copied()),
                false => theirs(),
            };
            let before = [&*merged, &*other].map(|filter| answers(filter, &[of_ours, of_theirs].concat()));
            combine(&mut *merged, &*other, Combine::Union).unwrap();
            assert!(answers(&*merged, &digests(family, 0..500)).iter().all(|&hit| hit));
            assert!(answers(&*merged, &digests(family, 1200..1700)).iter().all(|&hit| hit));
            let mut kept = std::collections::HashSet::new();
            for (index, &key) in of_ours.iter().chain(of_theirs).enumerate() {
                if !before[0][index] && !before[1][index] {
                    assert!(!merged.contains_digest(key));
                    kept.insert(key);
                }
            }
            assert_eq!(exceptions(&*merged), kept.len() as u64);
            let again = open(file_of(&*merged).into(), None).unwrap();
            assert!(kept.iter().all(|&key| !again.contains_digest(key)));
        }
        // Without a place for them the merge is refused, and with none to place it is not.
        let mut plain = ours();
        let before = file_of(&*plain);
        let refused = combine(&mut *plain, &*except(theirs(), of_theirs.iter().copied()), Combine::Union);
        assert_eq!(refused, Err(Error::Mismatch(Mismatch::Exceptions { theirs: 300 })));
        assert!(file_of(&*plain) == before);
        combine(&mut *plain, &*except(theirs(), []), Combine::Union).unwrap();
    });
}

#[test]
fn a_merge_that_is_refused_changes_no_exception() {
    let hashing = Hashing::default();
    let keys = (0..100u64).map(|key| hashing.digest_of(key));
    let mut filter = except(Box::new(Bloom::new(100, 0.01).unwrap()), keys.clone());
    let mut other =
        Bloom::from_spec(&Spec::sized(100, 0.01).with_hashing(Hashing::Xxh3 { seed: 1 })).unwrap();
    for key in 0..100u64 {
        other.insert(key);
    }
    let before = file_of(&*filter);
    for how in [Combine::Union, Combine::Intersection] {
        let refused = combine(&mut *filter, &other, how).unwrap_err();
        assert!(
            matches!(refused, Error::Mismatch(Mismatch::Differ { what: Parameter::Seed, .. })),
            "{refused}"
        );
    }
    // Merging fails after the exceptions were looked at.
    let full = |from: u64| {
        let mut cuckoo = Cuckoo::new(1000, 0.01).unwrap();
        for key in from..from + 900 {
            cuckoo.insert(key).unwrap();
        }
        cuckoo
    };
    let mut cuckoo = except(Box::new(full(0)), (5000..5100u64).map(|key| hashing.digest_of(key)));
    let whole = file_of(&*cuckoo);
    let refused = combine(&mut *cuckoo, &full(5000), Combine::Union).unwrap_err();
    assert!(matches!(refused, Error::Mismatch(Mismatch::Full(_))), "{refused}");
    assert!(file_of(&*cuckoo) == whole && file_of(&*filter) == before);
}

#[test]
fn an_intersection_denies_what_either_denies() {
    each_family(|family| {
        if !family.can.intersects || family.can.exact {
            return;
        }
        let mut ours = except(filled(family, 3000, 0..1000), digests(family, 5000..6000));
        let theirs = except(filled(family, 3000, 500..1500), digests(family, 5500..6500));
        combine(&mut *ours, &*theirs, Combine::Intersection).unwrap();
        assert_eq!(exceptions(&*ours), 1500);
        assert!(answers(&*ours, &digests(family, 500..1000)).iter().all(|&hit| hit));
        assert!(answers(&*ours, &digests(family, 5000..6500)).iter().all(|&hit| !hit));
    });
}

#[test]
fn a_folded_filter_keeps_its_exceptions() {
    let hashing = Hashing::default();
    let mut large = Bloom::from_spec(&Spec::sized(20_000, 0.001).foldable()).unwrap();
    for key in 0..1000u64 {
        large.insert(key);
    }
    let keys: Vec<Digest> = (5000..15_000u64).map(|key| hashing.digest_of(key)).collect();
    let filter = except(Box::new(large), keys.iter().copied());
    let folded = filter.as_fold().unwrap().fold_to(0.05).unwrap();
    assert!(folded.report().bits < filter.report().bits / 2);
    let wrong = answers(folded.exceptions().unwrap().without, &keys).iter().filter(|&&hit| hit).count();
    assert!(wrong > 0, "folding makes false positives, or this shows nothing");
    assert!(answers(&*folded, &keys).iter().all(|&hit| !hit));
    assert!((0..1000u64).all(|key| folded.contains(&key.to_le_bytes())));
}

/// A false positive that was found out is remembered, and cannot be used twice.
#[test]
fn exceptions_are_added_one_by_one() {
    let mut bloom = Bloom::new(1000, 0.01).unwrap();
    for key in 0..1000u64 {
        bloom.insert(key);
    }
    let hashing = bloom.hashing();
    let mut filter: Box<dyn AnyFilter> = Box::new(bloom);
    let mut found = 0;
    for key in (1000..6000u64).map(|key| hashing.digest_of(key)) {
        if filter.contains_digest(key) {
            found += 1;
            filter = except(filter, [key]);
            assert!(!filter.contains_digest(key));
        }
    }
    assert!(found > 0 && exceptions(&*filter) == found);
    assert!((0..1000u64).all(|key| filter.contains(&key.to_le_bytes())));
}

// Bytes from outside.

fn refused(filter: &dyn AnyFilter, sections: &[(u32, &[u8])]) -> DecodeError {
    let file = encode_with(filter, Summing::Payload, sections).to_vec();
    match open(file.into(), None) {
        Err(error) => error,
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn exceptions_that_no_writer_writes_are_refused() {
    let bloom = Bloom::new(100, 0.01).unwrap();
    let digest = |a: u64, b: u64| [a.to_le_bytes(), b.to_le_bytes()].concat();
    let good = [digest(1, 2), digest(1, 3), digest(2, 0)].concat();
    let file = encode_with(&bloom, Summing::Payload, &[(EXCEPTIONS, &good)]).to_vec();
    assert_eq!(exceptions(&*open(file.into(), None).unwrap()), 3);
    for length in [0, 8, 15, 17, 40, 47] {
        let field = "length of the exceptions";
        let expected = DecodeError::Value { field, found: length as u64 };
        assert_eq!(refused(&bloom, &[(EXCEPTIONS, &good[..length])]), expected);
    }
    let unsorted = DecodeError::Payload { problem: "exceptions do not ascend" };
    for bad in [
        [digest(1, 2), digest(1, 2)].concat(),
        [digest(1, 3), digest(1, 2)].concat(),
        [digest(2, 0), digest(1, 9)].concat(),
    ] {
        assert_eq!(refused(&bloom, &[(EXCEPTIONS, &bad)]), unsorted);
    }
    // Twice, and where they mean nothing.
    let twice = refused(&bloom, &[(EXCEPTIONS, &good), (EXCEPTIONS, &good)]);
    assert_eq!(twice, DecodeError::Excepted);
    each_family(|family| {
        let filter = filled(family, 100, 0..10);
        let file = encode_with(&*filter, Summing::Payload, &[(EXCEPTIONS, &good)]).to_vec();
        let opened = open(file.into(), None).map(|filter| exceptions(&*filter));
        let expected = DecodeError::Excepted;
        assert_eq!(opened, if family.can.exact { Err(expected) } else { Ok(3) });
    });
}

#[test]
fn a_type_that_has_no_exceptions_does_not_ignore_them() {
    let filter = except(Box::new(Bloom::new(100, 0.01).unwrap()), [Digest { a: 1, b: 2 }]);
    let error = Bloom::from_bytes(&file_of(&*filter)).unwrap_err();
    assert_eq!(error, DecodeError::Excepted);
    assert_eq!(
        error.to_string(),
        "the file has exceptions (section 2), which neither an exact set nor a type of one family has; read it as a \
         filter of any family"
    );
}

#[test]
fn truncated_and_damaged_files_are_refused() {
    for family in FAMILIES.iter().filter(|family| !family.can.exact) {
        println!("family {}", family.name);
        let filter = filled(family, 40, 0..30);
        // Enough that some are kept of one that keeps only its false positives.
        let keys = if filter.can().inserts || filter.can().labels { 100..110 } else { 100..3000 };
        let filter = except(filter, digests(family, keys));
        let file = file_of(&*filter);
        for length in (0..file.len()).step_by(97).chain(file.len() - 200..file.len()) {
            assert!(open(file[..length].to_vec().into(), None).is_err(), "{}: {length}", family.name);
        }
        // Every bit of the exceptions, and of their entry in the list.
        let header = Header::decode(&file, file.len() as u64).unwrap();
        let (_, extent) = header.sections.iter().find(|(id, _)| *id == EXCEPTIONS).unwrap();
        let entry = 96 + header.params.len();
        let places = (extent.offset as usize..file.len()).chain(entry..entry + 32 * header.sections.len());
        for place in places {
            for bit in 0..8 {
                let mut damaged = file.clone();
                damaged[place] ^= 1 << bit;
                assert!(open(damaged.into(), None).is_err(), "{}: bit {bit} of {place}", family.name);
            }
        }
    }
}

/// A union of some admits keys that none of them admits, and the exceptions of the next one were lost for that.
#[test]
fn merging_three_keeps_what_none_admits_in_any_order() {
    each_family(|family| {
        if !family.can.merges || family.can.exact {
            return;
        }
        let allowed = digests(family, 5000..6000);
        let parts = || {
            let mut parts =
                [0..400, 400..800, 800..1200].map(|range| filled(family, 3000, range)).into_iter();
            let (first, second) = (parts.next().unwrap(), parts.next().unwrap());
            [first, second, except(parts.next().unwrap(), allowed.iter().copied())]
        };
        let denied: Vec<Digest> = {
            let parts = parts();
            let is_denied = |key: &Digest| parts.iter().all(|part| !part.contains_digest(*key));
            allowed.iter().copied().filter(is_denied).collect()
        };
        assert!(denied.len() > 900);
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let mut filters = parts();
            mayhap::share_exceptions(&mut filters);
            let mut filters = filters.map(Some);
            let mut merged = filters[order[0]].take().unwrap();
            for index in &order[1..] {
                combine(&mut *merged, &*filters[*index].take().unwrap(), Combine::Union).unwrap();
            }
            assert!(denied.iter().all(|&key| !merged.contains_digest(key)), "{order:?}");
            assert_eq!(exceptions(&*merged), denied.len() as u64, "{order:?}");
        }
    });
}
