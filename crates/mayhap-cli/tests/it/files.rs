//! Files are written whole or not at all, and stay what they are.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

use crate::runner::{Folder, is_root, lines};

#[test]
fn mode_and_owner_are_kept() {
    let folder = Folder::new();
    for mode in [0o600, 0o640, 0o664, 0o606] {
        folder.mayhap("build -o f -n 100").input("a\n").run().ends(0);
        fs::set_permissions(folder.path("f"), fs::Permissions::from_mode(mode)).unwrap();
        if is_root() {
            std::os::unix::fs::chown(folder.path("f"), Some(12_345), Some(54_321)).unwrap();
        }
        let before = folder.path("f").metadata().unwrap();
        for command in ["build -o f -n 100", "add f", "merge -o f f"] {
            folder.mayhap(command).input("b\n").run().ends(0);
            let after = folder.path("f").metadata().unwrap();
            assert_eq!(after.mode(), before.mode(), "{command}");
            assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()), "{command}");
        }
        fs::remove_file(folder.path("f")).unwrap();
    }
}

#[test]
fn a_new_file_gets_the_mode_of_any_new_file() {
    let folder = Folder::new();
    for (umask, mode) in [("022", 0o644), ("077", 0o600), ("002", 0o664), ("000", 0o666)] {
        folder.sh(&format!("umask {umask}; rm -f f; \"$MAYHAP\" build -o f")).run().ends(0);
        assert_eq!(folder.path("f").metadata().unwrap().mode() & 0o7777, mode, "umask {umask}");
    }
}

#[test]
fn a_symbolic_link_stays_and_its_target_changes() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    folder.mayhap("build -o data/f -n 100").input("a\n").run().ends(0);
    symlink("data/f", folder.path("link")).unwrap();
    symlink("link", folder.path("link to the link")).unwrap();
    symlink("data/made later", folder.path("dangling")).unwrap();
    folder.mayhap("add").arg("link to the link").input("b\n").run().ends(0);
    folder.mayhap("check data/f").input("a\nb\n").run().ends(0).prints("a\nb\n");
    folder.mayhap("build -o link -n 100").input("c\n").run().ends(0);
    folder.mayhap("check data/f").input("a\nb\nc\n").run().ends(0).prints("c\n");
    folder.mayhap("build -o dangling").input("d\n").run().ends(0);
    assert!(folder.path("data/made later").is_file());
    for (link, target) in [("link", "data/f"), ("link to the link", "link"), ("dangling", "data/made later")]
    {
        assert_eq!(fs::read_link(folder.path(link)).unwrap().to_str(), Some(target));
    }
    assert_eq!(folder.names(), ["dangling", "data", "link", "link to the link"]);
}

#[test]
fn links_in_a_circle_are_an_error() {
    let folder = Folder::new();
    symlink("one", folder.path("two")).unwrap();
    symlink("two", folder.path("one")).unwrap();
    folder.mayhap("build -o one").run().ends(2).says(": cannot write: ");
    assert!(folder.path("one").is_symlink() && folder.path("two").is_symlink());
}

#[test]
fn a_failing_build_leaves_the_old_file_and_nothing_else() {
    let folder = Folder::new();
    folder.mayhap("build -o f").input("a\n").run().ends(0);
    let before = folder.read("f");
    folder.write("bad", "1\n2\nx\n");
    for command in [
        "build -o f absent",
        "build -o f bad absent",
        "build --as u64 -o f bad",
        "build --as u64 -n 10 -o f bad",
        "build -p 5 -o f bad",
        "merge -o f f bad",
        "merge --minus -o f f f",
        "add --as u64 f bad",
    ] {
        folder.mayhap(command).run().ends(2).prints("");
        assert!(folder.read("f") == before, "{command}");
        assert_eq!(folder.names(), ["bad", "f"], "{command}");
    }
}

#[test]
fn devices_and_pipes_stay_what_they_are() {
    let folder = Folder::new();
    folder.mayhap("build -o f").input("a\n").run().ends(0);
    folder.mayhap("build -o /dev/null").input("a\n").run().ends(0);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    folder.sh("mkfifo p; cat p > got & \"$MAYHAP\" build -o p && wait").input("a\n").run().ends(0);
    assert!(fs::symlink_metadata(folder.path("p")).unwrap().file_type().is_fifo());
    assert!(folder.read("got") == folder.read("f"));
    folder.mayhap("build -o /dev/stdout").input("a\n").run().ends(0).prints(folder.read("f"));
    assert_eq!(folder.names(), ["f", "got", "p"]);
}

#[test]
fn a_full_disk_is_an_error_of_the_file() {
    if !fs::exists("/dev/full").unwrap() {
        println!("skipped: there is no /dev/full here");
        return;
    }
    let folder = Folder::new();
    folder.write("keys", lines("", 1000));
    folder.mayhap("build -o f keys").run().ends(0);
    let full = "No space left on device (os error 28)";
    folder
        .mayhap("build -o /dev/full keys")
        .run()
        .ends(2)
        .says_only(&format!("mayhap: /dev/full: cannot write: {full}"));
    let standard_output = format!("mayhap: standard output: {full}");
    for command in [
        "dedup keys",
        "check f keys",
        "check -c f keys",
        "sort keys",
        "sort -c keys",
        "build -o - keys",
        "merge -o - f",
        "info f",
        "info --json f",
        "calc -n 1M -p 1%",
        "calc -n 1M -p 1% --json",
        "families",
        "families --json",
        "test f keys",
        "completions bash",
    ] {
        let output = fs::File::options().write(true).open("/dev/full").unwrap();
        folder.mayhap(command).output(output).run().ends(2).says_only(&standard_output);
    }
    // That nobody can read the words is no reason to fail, least of all after the work is done.
    for command in
        ["build -o g keys", "add g keys", "merge -o g g", "dedup --stats keys", "dedup --stats=json keys"]
    {
        let errors = fs::File::options().write(true).open("/dev/full").unwrap();
        folder.mayhap(command).errors(errors).run().ends(0);
    }
}

/// "It holds about 200,000 keys" was said of a file that was not changed.
#[test]
fn keys_that_could_not_be_written_are_not_said_to_be_in() {
    let folder = Folder::new();
    folder.write("keys", lines("", 20_000));
    folder.mayhap("build -n 10k -p 1e-9 -o f").input("a\n").run().ends(0);
    folder.mayhap("build -n 10k -p 1e-9 -o g").input("a\n").run().ends(0);
    let done = folder.sh("ulimit -f 10; exec \"$MAYHAP\" add f keys").run().ends(2);
    assert!(!done.err.contains("holds"), "{}", done.err);
    assert!(folder.read("f") == folder.read("g"));
    folder.mayhap("add f keys").run().ends(0).says("20,000 keys added").says("warning: it holds about");
}

/// The limit on the size of files stands for a full disk: the write fails in the middle.
#[test]
fn a_write_that_fails_in_the_middle_leaves_the_old_file_and_nothing_else() {
    let folder = Folder::new();
    folder.mayhap("build -o f -n 1M").input("a\n").run().ends(0);
    let before = folder.read("f");
    for command in ["build -o f -n 2M", "build -o new -n 2M", "add f", "merge -o f f f", "merge -o new f f"] {
        folder
            .sh(&format!("ulimit -f 100; exec \"$MAYHAP\" {command}"))
            .input("b\n")
            .run()
            .ends(2)
            .says(": cannot write: File too large");
        assert!(folder.read("f") == before, "{command}");
        assert_eq!(folder.names(), ["f"], "{command}");
    }
    folder
        .sh("ulimit -f 100; exec \"$MAYHAP\" build -o new")
        .input(lines("", 1_100_000))
        .run()
        .ends(2)
        .says("cannot write to the folder for temporary files (TMPDIR): File too large");
    assert_eq!(folder.names(), ["f"]);
}

#[test]
fn a_folder_that_takes_no_files_is_an_error() {
    let folder = Folder::new();
    folder.mayhap("build -o absent/f").run().ends(2).says_only(
        "mayhap: absent/f: cannot create a file in its folder: No such file or directory (os error 2)",
    );
    folder.mayhap("build -o .").run().ends(2).says("mayhap: .: cannot write: is a directory");
    if cfg!(target_os = "linux") {
        folder
            .mayhap("build -o /proc/f")
            .run()
            .ends(2)
            .says("mayhap: /proc/f: cannot create a file in its folder: ");
    }
    fs::create_dir(folder.path("closed")).unwrap();
    folder.mayhap("build -o closed/f").input("a\n").run().ends(0);
    let before = folder.read("closed/f");
    fs::set_permissions(folder.path("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    if is_root() {
        println!("skipped: permissions do not apply to root");
    } else {
        for command in ["build -o closed/f", "build -o closed/g", "add closed/f"] {
            folder
                .mayhap(command)
                .input("b\n")
                .run()
                .ends(2)
                .says("cannot create a file in its folder: Permission denied");
        }
    }
    assert!(folder.read("closed/f") == before);
    fs::set_permissions(folder.path("closed"), fs::Permissions::from_mode(0o755)).unwrap();
}
