//! Message texts and exit statuses. Every message names the file, and the line where there is one.

use crate::runner::{Folder, lines};
use mayhap_eval::Random;

#[test]
fn the_exit_status_is_a_promise() {
    let folder = Folder::new();
    folder.write("keys", "a\nb\n");
    folder.mayhap("build --exact -o f keys").run().ends(0);
    let cases = [
        ("check f --key a", 0),
        ("check f --key x", 1),
        ("check f absent", 2),
        ("check absent --key a", 2),
        ("check keys --key a", 2),
        ("check", 2),
        ("test f keys", 0),
        ("test f f", 1),
        ("test f absent", 2),
        ("remove f absent", 2),
        ("remove f keys", 0),
        ("remove f keys", 1),
        ("build -o f keys", 0),
        ("build -o f absent", 2),
        ("build keys", 2),
        ("add f keys", 0),
        ("add f absent", 2),
        ("info f", 0),
        ("info absent", 2),
        ("merge -o g f f", 0),
        ("merge -o g f absent", 2),
        ("calc -n 1M -p 1%", 0),
        ("calc", 2),
        ("families", 0),
        ("families x", 2),
        ("dedup keys", 0),
        ("dedup absent", 2),
        ("sort keys", 2),
        ("completions bash", 0),
        ("completions", 2),
        ("man .", 0),
        ("man absent", 2),
        ("--help", 0),
        ("--version", 0),
        ("nonesuch", 2),
    ];
    for (command, status) in cases {
        folder.mayhap(command).run().ends(status);
    }
}

#[test]
fn messages_name_the_file_and_what_is_wrong() {
    let folder = Folder::new();
    folder.write("empty", "");
    folder.write("text", "hello\n");
    folder.mayhap("build -o f").input("a\n").run().ends(0);
    let sound = folder.read("f");
    folder.write("truncated", &sound[..4096 + 7]);
    folder.write("longer", [&sound[..], b"more"].concat());
    let mut newer = sound.clone();
    newer[4] = 9;
    folder.write("newer", newer);
    let absent = "No such file or directory (os error 2)";
    let cases: [(&str, String); 9] = [
        ("info absent", format!("absent: cannot open: {absent}")),
        ("check f absent", format!("absent: cannot open: {absent}")),
        ("info empty", "empty: an empty file is no filter".into()),
        ("check empty text", "empty: an empty file is no filter".into()),
        ("info text", "text: not a mayhap file: it starts with \"hell\" instead of \"MYHP\"; if another program wrote it, name its format with --format".into()),
        ("info truncated", "truncated: truncated: payload takes 8 bytes, 7 are there".into()),
        ("info longer", "longer: 4 bytes follow the end of the filter".into()),
        ("info .", ".: cannot read: is a directory".into()),
        ("dedup .", ".: is a folder; give the files in it".into()),
    ];
    for (command, message) in cases {
        let done = folder.mayhap(command).run().ends(2).prints("");
        if cfg!(unix) {
            done.says_only(&format!("mayhap: {message}"));
        }
    }
    folder
        .mayhap("info newer")
        .run()
        .ends(2)
        .says("mayhap: newer: format version 9 ")
        .says("; update mayhap");
}

/// A damaged filter is refused by every command that opens one, and never answers.
#[test]
fn damaged_filters_are_refused_by_name() {
    let folder = Folder::new();
    folder.mayhap("build -o f").input(lines("", 1000)).run().ends(0);
    let sound = folder.read("f");
    let header = mayhap::wire::PAGE;
    let mut random = Random::new(7);
    let mut below = |limit: usize| (random.next_u64() % limit as u64) as usize;
    let refuse = |damaged: &[u8], what: &str| {
        folder.write("damaged", damaged);
        for command in ["info damaged", "check damaged --key 1", "add damaged", "merge -o g damaged"] {
            let done = folder.mayhap(command).run();
            let named = done.err.starts_with("mayhap: damaged: ") && done.err.lines().count() == 1;
            assert!(done.status.code() == Some(2) && named, "{what}: {command}: {done:?}");
            assert!(done.out.is_empty(), "{what}: {command}: {done:?}");
        }
        assert!(folder.read("damaged") == damaged, "{what}: left as it was");
        assert!(!folder.path("g").exists());
    };
    for _ in 0..12 {
        let length = below(header);
        refuse(&sound[..length], &format!("cut to {length}"));
    }
    for _ in 0..12 {
        let length = header + below(sound.len() - header);
        refuse(&sound[..length], &format!("cut to {length}"));
    }
    for _ in 0..25 {
        let (byte, bit) = (below(header), below(8));
        let mut damaged = sound.clone();
        damaged[byte] ^= 1 << bit;
        refuse(&damaged, &format!("bit {bit} of byte {byte}"));
    }
}

/// Random bytes behind a sound start: nothing may panic or take memory without end.
#[test]
fn random_bytes_are_no_filters() {
    let folder = Folder::new();
    let mut random = Random::new(9);
    for length in [1, 3, 4, 5, 40, 44, 100, 4095, 4096, 10_000] {
        let mut bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        for (place, byte) in bytes.iter_mut().zip(b"MYHP\x01\x00") {
            *place = *byte;
        }
        folder.write("random", bytes);
        for command in ["info random", "info --verify random", "check random --key a", "add random"] {
            folder.mayhap(command).run().ends(2).prints("").says("mayhap: random: ");
        }
    }
}
