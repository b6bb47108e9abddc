//! Keyed filters: the secret beside the file, and what is said without it.

use crate::runner::{Folder, lines};

fn key_of(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).unwrap().trim_end().to_string()
}

#[test]
fn the_secret_is_found_beside_the_filter_by_every_command() {
    let folder = Folder::new();
    let keys = lines("key-", 1000);
    folder.write("keys", &keys);
    folder
        .mayhap("build --keyed -o f keys")
        .run()
        .ends(0)
        .says("is in f.key; keep it, since nothing answers without it");
    let secret = key_of(&folder, "f.key");
    assert!(secret.len() == 32 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()), "{}", secret.len());
    assert_eq!(folder.read("f.key").len(), 33);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.path("f.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    folder.mayhap("check -c f keys").run().ends(0).prints("1000\n");
    folder.mayhap("add f").input("more\n").run().ends(0);
    folder.mayhap("check f").input("more\n").run().ends(0).prints("more\n");
    folder.mayhap("test f keys").run().ends(0);
    folder.mayhap("build --keyed -o large -n 9000 --foldable keys").run().ends(0);
    folder.mayhap("fold -p 10% -o small large").run().ends(0).says(
        "small: keyed, with the secret in large.key; name that with --key-file, or copy it to small.key",
    );
    folder.mayhap("check -c small --key-file large.key keys").run().ends(0).prints("1000\n");
    folder.mayhap("merge -o both f f").run().ends(0).says("both: keyed, with the secret in f.key; ");
    folder.mayhap("check -c both --key-file f.key keys").run().ends(0).prints("1000\n");
    for (family, command) in [("counting", "count"), ("spectral", "count"), ("cuckoo", "count")] {
        // The secret is another one each time: a count that is too high by a collision must be out of the question.
        folder.mayhap(&format!("build --keyed -o {family} --family {family} -p 1e-8 keys")).run().ends(0);
        folder.mayhap(&format!("{command} {family} --key key-1")).run().ends(0).shows("key-1\t1");
    }
    folder.mayhap("remove cuckoo").input("key-1\n").run().ends(0);
    folder.mayhap("build --keyed -o areas --label one=keys").run().ends(0);
    folder.mayhap("label areas --key key-1").run().ends(0).prints("key-1\tone\n");
    folder.mayhap("build --keyed -o static --static keys").run().ends(0);
    folder.mayhap("check -c static keys").run().ends(0).prints("1000\n");
    // Each has a secret of its own.
    let names = ["f.key", "counting.key", "spectral.key", "cuckoo.key", "areas.key", "static.key"];
    let mut secrets: Vec<String> = names.iter().map(|name| key_of(&folder, name)).collect();
    secrets.sort();
    secrets.dedup();
    assert_eq!(secrets.len(), names.len());
    // No file but its own has it.
    let bytes: Vec<u8> =
        (0..16).map(|i| u8::from_str_radix(&secret[2 * i..2 * i + 2], 16).unwrap()).collect();
    let file = folder.read("f");
    assert!(!file.windows(16).any(|window| window == bytes));
    assert!(!file.windows(32).any(|window| window == secret.as_bytes()));
}

#[test]
fn without_the_secret_or_with_another_it_is_an_error_with_the_way_out() {
    let folder = Folder::new();
    folder.write("keys", "a\nb\n");
    let built = folder.mayhap("build --keyed --json -o f --removable keys").run().ends(0).json();
    assert_eq!((&built["keyed"], &built["key_file"]), (&true.into(), &"f.key".into()));
    let id = built["key_id"].as_str().unwrap().to_string();
    std::fs::rename(folder.path("f.key"), folder.path("elsewhere")).unwrap();
    folder.mayhap("build --keyed -o other keys").run().ends(0);
    let other = folder.mayhap("info --json other").run().json()["key_id"].as_str().unwrap().to_string();
    assert_ne!(id, other);
    let commands = ["check f", "add f", "remove f", "count f", "test f keys", "merge -o g f f"];
    for command in commands {
        let missing = format!(
            "mayhap: f: the filter is keyed, and its secret, whose id is {id}, was not found beside it (f.key: cannot \
             read the key file: No such file or directory (os error 2)); give its file with --key-file"
        );
        folder.mayhap(command).input("a\n").run().ends(2).says_only(&missing);
        let wrong = format!(
            "mayhap: f: the filter is keyed with the secret {id}, and the one in other.key is {other}; give the file of \
             the right one with --key-file"
        );
        folder
            .mayhap(&format!("{command} --key-file other.key"))
            .input("a\n")
            .run()
            .ends(2)
            .says_only(&wrong);
        let none = "mayhap: nowhere: cannot read the key file: No such file or directory (os error 2)";
        folder.mayhap(&format!("{command} --key-file nowhere")).input("a\n").run().ends(2).says_only(none);
    }
    for command in ["check f", "count f", "test f keys", "add f", "remove f"] {
        folder.mayhap(&format!("{command} --key-file elsewhere")).input("a\n").run().ends(0);
    }
    // A secret that is not needed is no error.
    folder.mayhap("build -o plain keys").run().ends(0);
    folder.mayhap("check plain --key-file elsewhere keys").run().ends(0).prints("a\nb\n");
    // Filters under different secrets do not merge.
    folder.mayhap("build --keyed -o f2 keys").run().ends(0);
    folder.mayhap("build --keyed -o f3 keys").run().ends(0);
    folder.mayhap("merge -o g f2 f3").run().ends(2).says("f2 and f3: ids of the secrets differ: ");
}

#[test]
fn info_shows_the_header_without_the_secret() {
    let folder = Folder::new();
    folder.write("good", lines("good-", 10));
    folder.mayhap("build --keyed -o f --except good -").input(lines("key-", 100)).run().ends(0);
    let with = folder.mayhap("info --json --key-file f.key f").run().ends(0).json();
    let id = with["key_id"].as_str().unwrap().to_string();
    assert!(id.len() == 16 && with["keyed"] == true && with["seed"].is_null() && with["inserted"] == 100);
    assert_eq!(with["exceptions"], 10);
    std::fs::remove_file(folder.path("f.key")).unwrap();
    assert_eq!(folder.mayhap("info --json f").run().ends(0).json(), with);
    let verified = folder.mayhap("info --json --verify f").run().ends(0).json();
    assert_eq!(verified["checksum"], "ok");
    folder
        .mayhap("info f")
        .run()
        .ends(0)
        .shows(&format!("hash          siphash-1-3-128, keyed, key id {id}"));
    folder.mayhap("info f --key-file f.key").run().ends(2).says("f.key: cannot read the key file");
    folder.mayhap("build -o plain -").input("a\n").run().ends(0);
    let plain = folder.mayhap("info --json plain").run().ends(0).json();
    assert!(plain["keyed"] == false && plain["key_id"].is_null());
}

#[test]
fn a_key_file_is_used_or_made() {
    let folder = Folder::new();
    folder.write("keys", "a\nb\n");
    // Made where it is said, then used.
    folder.mayhap("build --keyed --key-file secret -o f keys").run().ends(0);
    let secret = folder.read("secret");
    folder.mayhap("build --keyed --key-file secret -o g keys").run().ends(0);
    folder.mayhap("build --key-file secret -o h keys").run().ends(0);
    assert!(folder.read("secret") == secret && folder.read("f") == folder.read("g"));
    assert!(folder.read("f") == folder.read("h"));
    folder.mayhap("merge -o both --key-file secret f g h").run().ends(0);
    assert_eq!(folder.names(), ["both", "f", "g", "h", "keys", "secret"]);
    // Written by hand, in capitals and without an end.
    folder.write("own", "0123456789ABCDEF0123456789ABCDEF");
    folder.mayhap("build --key-file own -o i keys").run().ends(0);
    folder.mayhap("check i --key-file own keys").run().ends(0).prints("a\nb\n");
    // To standard output.
    let filter = folder.mayhap("build --key-file own -o - keys").run().ends(0).out;
    assert!(filter == folder.read("i"));
    folder.mayhap("build --keyed --key-file new -o - keys").run().ends(0);
    assert_eq!(folder.read("new").len(), 33);
}

#[test]
fn a_secret_is_never_overwritten_nor_left_behind() {
    let folder = Folder::new();
    folder.write("keys", "a\nb\n");
    folder.write("f.key", "precious");
    let taken = "mayhap: f.key: there is a key file already, and a secret is never overwritten; use it with --key-file \
                 f.key, or move it away if no filter needs it";
    folder.mayhap("build --keyed -o f keys").run().ends(2).says_only(taken);
    assert_eq!(folder.read("f.key"), b"precious");
    // What fails leaves no secret: a bad record, a file that cannot be written.
    folder.write("bad", "1\nx\n");
    folder.mayhap("build --keyed -o g --as u64 bad").run().ends(2).says("bad: line 2");
    std::fs::create_dir(folder.path("d")).unwrap();
    folder.mayhap("build --keyed -o d keys").run().ends(2).says("d: cannot write");
    folder
        .mayhap("build --keyed -o missing/f keys")
        .run()
        .ends(2)
        .says("missing/f.key: cannot write the key file");
    assert_eq!(folder.names(), ["bad", "d", "f.key", "keys"]);
}

#[test]
fn what_is_no_key_file_is_refused_and_not_shown() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    for text in
        ["", "\n", "hunter2hunter2", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdefg"]
    {
        folder.write("k", text);
        let said = "mayhap: k: not a key file, which is one line of 32 hexadecimal digits";
        folder.mayhap("build --key-file k -o f keys").run().ends(2).says_only(said);
    }
    folder.mayhap("build --keyed -o f keys").run().ends(0);
    folder.write("f.key", "hunter2\n");
    let refused = folder.mayhap("check f keys").run().ends(2).says("f.key: not a key file");
    assert!(!refused.err.contains("hunter2"), "{}", refused.err);
    // Beside a filter that is not keyed it is nobody's business.
    folder.mayhap("build -o plain keys").run().ends(0);
    folder.write("plain.key", "hunter2\n");
    folder.mayhap("check plain keys").run().ends(0).prints("a\n");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = Folder::new();
    folder.write("keys", "1\n");
    folder.mayhap("build --keyed -o - keys").run().ends(2).says_only(
        "mayhap: --keyed: standard output has no file beside it for the secret; say where with --key-file",
    );
    folder.mayhap("build --keyed --seed 1 -o f keys").run().ends(2).says("--keyed");
    folder
        .mayhap("build --key-file nowhere -o f keys")
        .run()
        .ends(2)
        .says("nowhere: cannot read the key file")
        .says("; --keyed makes a new secret there");
    for options in ["--exact --as u64", "--family bitmap --as u64", "--family roaring --as u64"] {
        folder.mayhap(&format!("build --keyed {options} -o f keys")).run().ends(2);
    }
    folder
        .mayhap("build --keyed --key-file f -o f keys")
        .run()
        .ends(2)
        .says_only("mayhap: f: is both the key file and the file to write");
    assert_eq!(folder.names(), ["keys"]);
}

#[test]
fn static_families_and_universes_are_keyed_too() {
    let folder = Folder::new();
    folder.write("keys", lines("key-", 500));
    folder.write("others", lines("other-", 1000));
    for options in ["--smallest", "--static", "--universe others"] {
        folder.mayhap(&format!("build --keyed --key-file secret -o f {options} keys")).run().ends(0);
        assert_eq!(folder.mayhap("info --json f").run().json()["keyed"], true);
        folder.mayhap("check -c f --key-file secret keys").run().ends(0).prints("500\n");
        folder.mayhap("check -c f keys").run().ends(2);
    }
}

/// By another spelling, a link or another command a filter was written over its secret.
#[test]
fn a_secret_is_never_overwritten_by_a_filter() {
    let folder = Folder::new();
    folder.write("keys", lines("key-", 10));
    folder.mayhap("build --keyed --key-file ./x -o x keys").run().ends(2).says("never overwritten");
    assert_eq!(folder.names(), ["keys"]);
    folder.mayhap("build --keyed -o f keys").run().ends(0);
    folder.mayhap("build --key-file f.key -o g keys").run().ends(0);
    let secret = folder.read("f.key");
    for command in [
        "build --key-file f.key -o ./f.key keys",
        "build --key-file f.key -o f.key keys",
        "build -o f.key keys",
        "merge -o f.key f g --key-file f.key",
        "merge -o ./f.key f f",
        "fold -p 50% -o f.key f",
    ] {
        folder.mayhap(command).run().ends(2);
        assert!(folder.read("f.key") == secret, "{command}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path("f.key"), folder.path("link")).unwrap();
        folder.mayhap("build --key-file f.key -o link keys").run().ends(2).says("is a key file");
        assert!(folder.read("f.key") == secret);
        // A secret that can be read once is read once.
        let script = "mkfifo pipe; cat f.key > pipe & \"$MAYHAP\" merge -o both f g --key-file pipe";
        folder.sh(script).run().ends(0);
    }
    folder.mayhap("build --seed 7 --key-file f.key -o h keys").run().ends(2).says("leave one of them out");
}
