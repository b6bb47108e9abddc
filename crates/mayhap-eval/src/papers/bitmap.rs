//! Bitmaps: exact sets of integers.

use std::collections::BTreeSet;

use mayhap::{AnyFilter, BitmapSet, Combine, Error, RoaringSet, Spec, SpecError, combine, math};

use crate::{Finding, Random};

pub(super) fn bmp_1(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "BMP-1";
    const UNIVERSE: u64 = 10_000_000;
    let mut random = Random::new(seed);
    let mut draws: Vec<u64> = (0..1_000_000).map(|_| random.below(UNIVERSE)).collect();
    let mut set = BitmapSet::from_spec(&Spec::new().with_capacity(UNIVERSE))?;
    for &draw in &draws {
        set.insert(draw)?;
    }
    draws.sort_unstable();
    draws.dedup();
    let unlike = set.bitmap().iter().zip(&draws).filter(|&(found, &sorted)| found != sorted).count();
    let unlike_backwards =
        set.bitmap().iter().rev().zip(draws.iter().rev()).filter(|&(found, &sorted)| found != sorted).count();
    let missing = draws.len().abs_diff(set.bitmap().iter().count());
    let distinct = UNIVERSE as f64 * math::expected_fill(UNIVERSE, 1e6, 1);

    // A million different integers of 32 bits: two bytes each, and eight for each of their 65,536 containers.
    let mut different = BTreeSet::new();
    while different.len() < 1_000_000 {
        different.insert(random.below(1 << 32));
    }
    let mut sparse = RoaringSet::from_spec(&Spec::new().with_capacity(1_000_000))?;
    for integer in different {
        sparse.insert(integer)?;
    }
    let bytes = sparse.report().bits as f64 / 8.0;
    Ok(vec![
        Finding::exactly(
            NAME,
            "integers out of order or missing",
            0.0,
            (unlike + unlike_backwards + missing) as f64,
        ),
        Finding::within(NAME, "distinct integers", distinct, 4.0 * 205.0, draws.len() as f64),
        Finding::within(NAME, "bytes of a sparse set, as Roaring", 2_524_296.0, 100.0, bytes),
    ])
}

pub(super) fn bmp_2(seed: u64) -> Result<Vec<Finding>, Error> {
    const NAME: &str = "BMP-2";
    const UNIVERSES: [u64; 8] = [1, 63, 64, 65, 511, 512, 513, 1_000_000];
    let mut random = Random::new(seed);
    let (mut of_ranks, mut of_sets) = (0, 0);
    for universe in UNIVERSES {
        // Sparse, half full, and dense.
        for chance in [16, 512, 1000] {
            let mut draw = || -> Result<BitmapSet, Error> {
                let mut set = BitmapSet::from_spec(&Spec::new().with_capacity(universe))?;
                for integer in 0..universe {
                    if random.below(1024) < chance {
                        set.insert(integer)?;
                    }
                }
                Ok(set)
            };
            let (ours, theirs) = (draw()?, draw()?);
            of_ranks += broken_laws_of_ranks(&ours)?;
            of_sets += broken_laws_of_sets(&ours, &theirs)?;
        }
    }
    Ok(vec![
        Finding::exactly(NAME, "broken laws of rank and select", 0.0, of_ranks as f64),
        Finding::exactly(NAME, "broken laws of union, intersection and difference", 0.0, of_sets as f64),
    ])
}

/// `rank(select(r)) = r`, and `select(rank(i)) = i` for an `i` that is in.
fn broken_laws_of_ranks(set: &BitmapSet) -> Result<u64, Error> {
    let ranked = set.bitmap().ranked().map_err(SpecError::from)?;
    let lost_ranks =
        (0..ranked.count_ones()).filter(|&rank| ranked.select(rank).map(|at| ranked.rank(at)) != Some(rank));
    let lost_integers = set.bitmap().iter().filter(|&at| ranked.select(ranked.rank(at)) != Some(at));
    Ok(lost_ranks.count() as u64 + lost_integers.count() as u64)
}

/// `|A or B| + |A and B| = |A| + |B|`, and `A minus B` is what is in `A` and not in `B`.
fn broken_laws_of_sets(ours: &BitmapSet, theirs: &BitmapSet) -> Result<u64, Error> {
    let combined = |how| -> Result<BitmapSet, Error> {
        let mut set = ours.clone();
        combine(&mut set, theirs, how)?;
        Ok(set)
    };
    let (either, both) = (combined(Combine::Union)?, combined(Combine::Intersection)?);
    let ours_alone = combined(Combine::Difference)?;
    let ones = |set: &BitmapSet| set.bitmap().count_ones();
    let unequal_counts = u64::from(ones(&either) + ones(&both) != ones(ours) + ones(theirs));
    let wrong = (0..ours.bitmap().universe()).filter(|&at| {
        let expected = ours.bitmap().contains(at) && !theirs.bitmap().contains(at);
        ours_alone.bitmap().contains(at) != expected
    });
    Ok(unequal_counts + wrong.count() as u64)
}
