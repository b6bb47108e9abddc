//! `mayhap families`: the list of what there is.

use crate::runner::Folder;
use mayhap::FAMILIES;

#[test]
fn every_family_is_listed_with_what_it_can_and_costs() {
    let folder = Folder::new();
    let table = folder.mayhap("families --wide").run().ends(0).stays_quiet();
    let json = folder.mayhap("families --json").run().ends(0).stays_quiet().json();
    let listed = json["families"].as_array().unwrap();
    assert_eq!(listed.len(), FAMILIES.len());
    for (family, listed) in FAMILIES.iter().zip(listed) {
        let text = String::from_utf8_lossy(&table.out);
        let line = text.lines().find(|line| line.split(' ').next() == Some(family.name));
        let line = line.unwrap_or_else(|| panic!("{} is missing in\n{text}", family.name));
        for word in [family.cost.query, family.cost.insert, family.cost.space, family.summary] {
            assert!(line.contains(word), "expected {word:?} in {line:?}");
        }
        let can = family.can;
        for (name, can) in [
            ("inserts", can.inserts),
            ("removes", can.removes),
            ("counts", can.counts),
            ("labels", can.labels),
            ("merges", can.merges),
            ("intersects", can.intersects),
            ("subtracts", can.subtracts),
            ("folds", can.folds),
            ("grows", can.grows),
            ("exact", can.exact),
        ] {
            assert_eq!(listed[name], can, "{name} of {}", family.name);
            let verb = name.trim_end_matches('s');
            assert_eq!(line.contains(&format!(" {verb} ")), can && name != "exact", "{verb} in {line:?}");
        }
        assert_eq!(listed["family"], family.name);
        assert_eq!(listed["query"], family.cost.query);
    }
}
