//! The README's shell example, run as it stands.

use std::path::Path;
use std::process::Command;

/// The first block of shell lines with this text.
fn example(text: &str) -> String {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let mut blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.find(|block| block.contains(text)).unwrap().to_string()
}

/// Runs a script in a fresh folder. Returns what it prints to both outputs.
fn run(script: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_mayhap")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let shell =
        Command::new("sh").args(["-e", "-c", script]).env("PATH", path).current_dir(folder.path()).output();
    let output = shell.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}\n{errors}");
    (text, errors)
}

#[test]
fn the_examples_with_several_sets_do_what_their_comments_say() {
    let (labels, which) = (example("mayhap label"), example("--which"));
    let (text, _) = run(&format!("{labels}{which}"));
    assert!(text.starts_with("evil.example\tblock\nfamily        spatial"), "{text}");
    assert!(text.contains("block.mayhap\tevil.example\nallow.mayhap\tgood.example\n"), "{text}");
    let counts: Vec<&str> = text.lines().rev().take(2).map(str::trim).collect();
    assert_eq!(counts, ["1 block.mayhap", "1 allow.mayhap"], "{text}");
}

#[test]
fn the_examples_of_dropping_repeats_do_what_their_comments_say() {
    let urls = "printf '%s\\n' a b a > urls.txt\n";
    let (text, errors) = run(&format!("{urls}{}cat fresh.txt\n", example("mayhap dedup --only-once")));
    // The first run with a state prints both, the second nothing; then what never repeats, then all, then fresh.txt.
    assert_eq!(text, "a\nb\nb\na\nb\na\nb\n");
    assert!(errors.starts_with("mayhap: read 3, printed 2, dropped 1; "), "{errors}");
}

#[test]
fn the_shell_example_does_what_its_comments_say() {
    // `check -v` finds nothing, which is status 1: what its comment says.
    let script = example("mayhap build").replace("mayhap check -v", "! mayhap check -v");
    let (text, errors) = run(&script);
    assert!(text.starts_with("https://example.org/\nfamily        bloom"), "{text}");
    assert!(text.ends_with("https://example.org/\nhttps://example.net/\n"), "{text}");
    assert!(errors.contains("bloom with 2 keys"), "{errors}");
}

#[test]
fn the_example_with_exceptions_does_what_its_comments_say() {
    let files = "printf '%s\\n' good.example > allow.txt; printf '%s\\n' evil.example > block.txt\n";
    let (text, errors) = run(&format!("{files}{}ls\n", example("--keyed")));
    let names = "allow.txt\nbad.mayhap\nbad.mayhap.key\nblock.txt\n";
    assert_eq!(text, format!("evil.example\ngood.example\n{names}"));
    assert!(errors.contains("--allow: 1 keys are answered no, exactly"), "{errors}");
}
