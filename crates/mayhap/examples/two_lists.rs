//! Two lists in one filter: who is on which? `cargo run -p mayhap --example two_lists`
//!
//! A gateway keeps the content of some servers, of which some are cached, some pinned, and some both. For each request it
//! asks one filter instead of two: one pass over the same cache lines, and it can tell "both" from "an error of one".

use mayhap::{Association, Bloom, Error, Part, ShiftingAssociation, Spec};

fn main() -> Result<(), Error> {
    let name = |index: u32| format!("object {index}");
    let cached: Vec<String> = (0..60_000).map(name).collect();
    let pinned: Vec<String> = (40_000..100_000).map(name).collect();

    let filter = ShiftingAssociation::of_sets(&Spec::new().with_fpr(0.001), &cached, &pinned)?;
    for index in [10, 50_000, 90_000] {
        println!("{}: {}", name(index), filter.association(name(index)).text());
    }

    // All objects are on a list, so that every clear answer is right.
    let (mut clear, mut unclear) = (0, 0);
    for index in 0..100_000 {
        let truth = match index {
            0..40_000 => Part::FirstOnly,
            40_000..60_000 => Part::Both,
            _ => Part::SecondOnly,
        };
        let answer = filter.association(name(index));
        assert!(answer.allows(truth));
        if answer.is_clear() { clear += 1 } else { unclear += 1 }
    }
    println!(
        "one filter, {} bits per object: {clear} answers are clear, {unclear} are not",
        filter.bits() / 100_000
    );

    // The classic way, with as many positions per key.
    let bloom = |keys: &[String]| -> Result<Bloom, Error> {
        let spec = Spec::new().with_capacity(keys.len() as u64).with_probes(filter.probes());
        let mut bloom = Bloom::from_spec(&spec)?;
        bloom.insert_all(keys);
        Ok(bloom)
    };
    let (in_first, in_second) = (bloom(&cached)?, bloom(&pinned)?);
    let clear = (0..100_000)
        .filter(|&index| in_first.contains(name(index)) != in_second.contains(name(index)))
        .count();
    let bits = (in_first.bits() + in_second.bits()) / 100_000;
    println!(
        "two Bloom filters, {bits} bits per object: {clear} answers are clear, {} are not",
        100_000 - clear
    );

    assert_eq!(filter.association("a stranger"), Association::Neither);
    println!("a stranger: {}", filter.association("a stranger").text());
    Ok(())
}
