//! The README's shell example, run as it stands.

use std::path::Path;
use std::process::Command;

/// The first block of shell lines that builds a filter.
fn example() -> String {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let mut blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.find(|block| block.contains("mayhap build")).unwrap().to_string()
}

#[test]
fn the_shell_example_does_what_its_comments_say() {
    let folder = tempfile::tempdir().unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_mayhap")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    // `check -v` finds nothing, which is status 1: what its comment says.
    let script = example().replace("mayhap check -v", "! mayhap check -v");
    let shell =
        Command::new("sh").args(["-e", "-c", &script]).env("PATH", path).current_dir(folder.path()).output();
    let output = shell.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.starts_with("https://example.org/\nfamily        bloom"), "{text}");
    assert!(text.ends_with("https://example.org/\nhttps://example.net/\n"), "{text}");
    assert!(errors.contains("bloom with 2 keys"), "{errors}");
}
