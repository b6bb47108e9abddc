//! `mayhap hash`: hashes as other programs print them.

use crate::runner::Folder;

#[test]
fn the_hashes_of_a_key_are_those_of_other_programs() {
    let folder = Folder::new();
    folder
        .mayhap("hash 334324324234234sfsfsdfwwrtregreg --hash murmur3-x86-32")
        .run()
        .ends(0)
        .stays_quiet()
        .prints("murmur3-x86-32\t539aa3e7\n");
    // In the order in which they are named, in one list or several, in any case.
    folder.mayhap("hash abc --hash SHA1,md5 --hash bkdr").run().ends(0).prints(
        "sha1\ta9993e364706816aba3e25717850c26c9cd0d89d\nmd5\t900150983cd24fb0d6963f7d28e17f72\nbkdr\t001998f2\n",
    );
    folder
        .mayhap("hash hello --hash murmur3-x64-128")
        .run()
        .ends(0)
        .prints("murmur3-x64-128\t029bbd41b3a7d8cb191dae486a901e5b\n");
}

#[test]
fn all_functions_have_a_line_of_two_columns() {
    let folder = Folder::new();
    let text = folder.mayhap("hash hello").run().ends(0).stays_quiet().out;
    let text = String::from_utf8(text).unwrap();
    let names: Vec<&str> = text.lines().map(|line| line.split_once('\t').unwrap().0).collect();
    for name in [
        "xxh3-128",
        "xxh3-64",
        "murmur3-x64-128",
        "murmur3-x86-32",
        "siphash-1-3-128",
        "md5",
        "bkdr",
        "js",
        "rs",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(text.lines().all(|line| line.split('\t').nth(1).unwrap().len() >= 8), "{text}");
    assert!(text.lines().all(|line| line.split('\t').count() == 2), "{text}");
}

#[test]
fn several_keys_stand_behind_their_hashes_and_json_has_all() {
    let folder = Folder::new();
    folder.mayhap("hash a b --hash rs,fnv1a-64").run().ends(0).prints(
        "rs\t00000061\ta\nfnv1a-64\taf63dc4c8601ec8c\ta\nrs\t00000062\tb\nfnv1a-64\taf63df4c8601f1a5\tb\n",
    );
    let report = folder.mayhap("hash 1 --as u64 --hash rs --json").run().ends(0).json();
    assert_eq!(report["hashes"][0]["key"], "1");
    assert_eq!((&report["hashes"][0]["hash"], &report["hashes"][0]["bits"]), (&"rs".into(), &32.into()));
    assert_eq!(report["hashes"][0]["hex"].as_str().unwrap().len(), 8);
    assert_eq!(report["hashes"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_no_function_or_no_key_is_refused() {
    let folder = Folder::new();
    folder
        .mayhap("hash a --hash crc32")
        .run()
        .ends(2)
        .prints("")
        .says("no hash function is called \"crc32\"; there are xxh3-128, ");
    folder.mayhap("hash x --as u64").run().ends(2).prints("").says("x: ");
    folder.mayhap("hash").run().ends(2).prints("");
}
