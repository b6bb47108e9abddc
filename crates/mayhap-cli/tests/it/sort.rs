//! `mayhap sort`: integers, sorted and without repeats.

use std::collections::BTreeSet;

use crate::runner::Folder;
use mayhap_eval::Random;

fn text<'a>(numbers: impl IntoIterator<Item = &'a u64>) -> String {
    numbers.into_iter().map(|number| format!("{number}\n")).collect()
}

#[test]
fn dense_and_sparse_integers_are_sorted_like_a_tree_would() {
    let folder = Folder::new();
    let mut random = Random::new(1);
    let cases: [(&str, usize, u64); 5] = [
        ("tiny", 10, 20),
        ("dense", 100_000, 150_000),
        ("sparse", 20_000, u64::MAX),
        // Beyond the bitmap that is always dense.
        ("in between", 50_000, 1 << 31),
        ("repeats", 50_000, 10),
    ];
    for (name, count, below) in cases {
        let mut numbers: Vec<u64> = (0..count).map(|_| random.next_u64() % below).collect();
        numbers.extend([0, below - 1]);
        let sorted: BTreeSet<u64> = numbers.iter().copied().collect();
        let sort =
            |options: &str| folder.mayhap(&format!("sort {options}")).input(text(&numbers)).run().ends(0);
        sort("").prints(text(&sorted)).stays_quiet();
        sort("--reverse").prints(text(sorted.iter().rev()));
        sort("-r -c").prints(format!("{}\n", sorted.len()));
        sort("--count").prints(format!("{}\n", sorted.len()));
        println!("{name} is right");
    }
}

#[test]
fn files_forms_and_ends() {
    let folder = Folder::new();
    folder.write("one", "3\n1");
    folder.write("two", "2\r\n  18446744073709551615 \n007\n");
    folder.mayhap("sort one two").run().ends(0).prints("1\n2\n3\n7\n18446744073709551615\n");
    folder.mayhap("sort one - two").input("0").run().ends(0).prints("0\n1\n2\n3\n7\n18446744073709551615\n");
    folder.mayhap("sort -z").input("3\x001\x002").run().ends(0).prints("1\x002\x003\0");
    folder.mayhap("sort -d, -k2").input("a,9\nb,8\n").run().ends(0).prints("8\n9\n");
    folder.mayhap("sort").run().ends(0).prints("");
    folder.mayhap("sort -c").run().ends(0).prints("0\n");
}

#[test]
fn what_is_no_integer_is_refused_by_line() {
    let folder = Folder::new();
    folder.write("numbers", "1\n2\n");
    folder.write("bad", "3\n4\nfive\n");
    folder
        .mayhap("sort numbers bad")
        .run()
        .ends(2)
        .prints("")
        .says_only("mayhap: bad: line 3: \"five\" is not a whole number from 0 to 18446744073709551615");
    for (input, line) in
        [("1\n\n2\n", 2), ("-1\n", 1), ("1\n1.0\n", 2), ("1\n2\n18446744073709551616\n", 3), ("+1", 1)]
    {
        let place = format!("mayhap: (standard input): line {line}: ");
        folder.mayhap("sort").input(input).run().ends(2).prints("").says(&place);
    }
    folder.mayhap("sort --as u64 numbers").run().ends(2).says("leave out --as");
}
