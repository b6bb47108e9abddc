//! `mayhap completions` and `mayhap man`: made from the same definition as the parser.

use crate::runner::{COMMANDS, Folder};

#[test]
fn every_shell_gets_every_command_and_option() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let done = folder.mayhap(&format!("completions {shell}")).run().ends(0).stays_quiet();
        let script = String::from_utf8(done.out).unwrap();
        for command in COMMANDS {
            assert!(script.contains(command), "{command} is missing for {shell}");
        }
        for option in ["capacity", "json-key", "ignore-case", "max-fpr", "annotate", "threads"] {
            assert!(script.contains(option), "--{option} is missing for {shell}");
        }
    }
    folder.mayhap("completions tcsh").run().ends(2).says("[possible values: bash, zsh, fish]");
}

#[cfg(unix)]
#[test]
fn the_shell_accepts_its_script() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        if !folder.sh(&format!("command -v {shell}")).run().status.success() {
            println!("skipped: {shell} is not installed");
            continue;
        }
        folder
            .sh(&format!("\"$MAYHAP\" completions {shell} > script && {shell} -n script"))
            .run()
            .ends(0)
            .stays_quiet();
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::new();
    folder.mayhap("man .").run().ends(0).prints("").stays_quiet();
    let mut expected: Vec<String> = COMMANDS.iter().map(|command| format!("mayhap-{command}.1")).collect();
    expected.push("mayhap.1".into());
    expected.sort();
    assert_eq!(folder.names(), expected);
    for name in &expected {
        let page = String::from_utf8(folder.read(name)).unwrap();
        assert!(page.contains(".TH") && page.contains(".SH SYNOPSIS"), "{name}");
    }
    folder.mayhap("man absent").run().ends(2).says("mayhap: absent: cannot write manual pages: ");
}
