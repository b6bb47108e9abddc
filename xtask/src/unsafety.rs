//! House rule: `unsafe` stands in [`ALLOWED`] and nowhere else, not even in tests and benches.
//!
//! The lint `unsafe_code` is denied, but any file may lift it for itself. This check reads every Rust file
//! of the repository as the compiler does, without comments and literals, and reports the keyword
//! `unsafe` and every attribute that lifts the lint.

use std::fs;
use std::path::Path;

use crate::tokens::{code_only, tokens};
use crate::tree;

/// Where `unsafe` may stand: a folder (ends with `/`) or a file.
const ALLOWED: [&str; 3] =
    ["crates/mayhap/src/raw/", "crates/mayhap-store/src/map.rs", "crates/mayhap-store/src/fault.rs"];

/// Lint levels below `deny`.
const LIFTING: [&str; 3] = ["allow", "expect", "warn"];

/// Checks every Rust file of the repository.
///
/// # Errors
///
/// One line for each place that breaks the rule, as `file:line: what`.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut problems = Vec::new();
    for name in tree::files(root)? {
        if !name.ends_with(".rs") || is_allowed(&name) {
            continue;
        }
        // Lossy: a file that is not UTF-8 is the compiler's business, its keywords are ours.
        let source = fs::read(root.join(&name)).map_err(|error| format!("{name}: {error}"))?;
        for (line, what) in findings(&String::from_utf8_lossy(&source)) {
            problems.push(format!("{name}:{line}: {what}"));
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(format!("{}\nunsafe is allowed only in {}", problems.join("\n"), ALLOWED.join(" and ")))
    }
}

fn is_allowed(name: &str) -> bool {
    ALLOWED.iter().any(|place| if place.ends_with('/') { name.starts_with(place) } else { name == *place })
}

/// Line number (from 1) and description of each use of `unsafe`, and of each lifting of its lint.
fn findings(source: &str) -> Vec<(usize, String)> {
    let code = code_only(source);
    let mut found = Vec::new();
    // For each bracket that is open here, the word before it: `allow(a, b(c` gives `allow`, `b`.
    let mut open: Vec<&str> = Vec::new();
    let mut previous = "";
    let mut line = 1;
    for token in tokens(&code) {
        match token {
            "\n" => {
                line += 1;
                continue; // a line break does not part a word from its bracket
            }
            "(" | "[" | "{" => open.push(previous),
            ")" | "]" | "}" => {
                open.pop();
            }
            "unsafe" => found.push((line, "unsafe".to_owned())),
            "unsafe_code" => {
                if let Some(level) = open.last().filter(|level| LIFTING.contains(level)) {
                    found.push((line, format!("{level}(unsafe_code)")));
                }
            }
            _ => {}
        }
        previous = token;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines with findings.
    fn lines(source: &str) -> Vec<usize> {
        findings(source).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn the_keyword_is_found_wherever_code_stands() {
        assert_eq!(lines("fn f() {\n    unsafe { g() }\n}"), [2]);
        assert_eq!(lines("unsafe impl Send for X {}"), [1]);
        assert_eq!(lines("#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn f() {}"), [1, 2]);
        assert_eq!(lines("macro_rules! m { () => {unsafe{}} }"), [1]);
    }

    #[test]
    fn comments_do_not_count() {
        for source in [
            "// unsafe",
            "/// unsafe { }\nfn f() {}",
            "//! unsafe",
            "/* unsafe */",
            "/* /* unsafe */ unsafe */",
            "/*/ unsafe */",
            "/** unsafe\nunsafe */ fn f() {}",
            "/* unsafe, never closed",
        ] {
            assert_eq!(lines(source), [0; 0], "{source}");
        }
    }

    #[test]
    fn literals_do_not_count() {
        for source in [
            r#"let s = "unsafe";"#,
            r#"let s = "\"unsafe";"#,
            r#"let s = "\\"; let t = "unsafe";"#,
            "let s = \"\nunsafe\n\";",
            r##"let s = r"\"; let t = "unsafe";"##,
            r###"let s = r#"" unsafe "#;"###,
            r###"let s = br##""# unsafe "##;"###,
            r#"let s = cr"unsafe";"#,
            r#"let s = b"unsafe";"#,
            r#"let s = ('"', "unsafe", '"');"#,
            r#"let s = ('\'', "unsafe", '\u{22}', b'"', "unsafe");"#,
            r#"let s = ('é', "unsafe", '\\', "unsafe");"#,
        ] {
            assert_eq!(lines(source), [0; 0], "{source}");
        }
    }

    #[test]
    fn other_words_do_not_count() {
        assert_eq!(lines("fn is_unsafe(unsafe_cell: UnsafeCell<u8>, unsafe2: u8, r#unsafe: u8) {}"), [0; 0]);
    }

    #[test]
    fn code_after_what_does_not_count_is_read_again() {
        assert_eq!(lines("/* a */ unsafe {} // b"), [1]);
        assert_eq!(lines("/* a\nb */\nunsafe {}"), [3]);
        assert_eq!(lines("let s = \"a\nb\"; unsafe {}"), [2]);
        assert_eq!(lines("let s = r#\"a\n\"b\"#; unsafe {}"), [2]);
        assert_eq!(lines("let s = '\"'; unsafe {} let t = '\"';"), [1]);
        assert_eq!(lines(r#"let s = "\\"; unsafe {} "";"#), [1]);
        assert_eq!(lines("let s = \"a\\\n  b\";\nunsafe {}"), [3]);
    }

    #[test]
    fn lifetimes_and_labels_are_not_characters() {
        assert_eq!(lines("fn f<'a>(x: &'a u8, y: &'a u8) { unsafe {} }"), [1]);
        assert_eq!(lines("'l: loop { unsafe {} break 'l; }"), [1]);
        assert_eq!(lines("impl X<'_, '_> { unsafe fn f() {} }"), [1]);
    }

    #[test]
    fn words_that_end_like_a_prefix_begin_no_raw_string() {
        assert_eq!(lines(r#"m!(for"\""); unsafe {} "";"#), [1]);
        assert_eq!(lines("let r = 1; let br = r; unsafe {}"), [1]);
    }

    #[test]
    fn lifting_the_lint_is_found() {
        let found = |source| findings(source).into_iter().map(|(_, what)| what).collect::<Vec<_>>();
        assert_eq!(found("#![allow(unsafe_code)]"), ["allow(unsafe_code)"]);
        assert_eq!(found("#[allow(dead_code, unsafe_code)]"), ["allow(unsafe_code)"]);
        assert_eq!(found("#[allow\n(\n    unsafe_code, // why\n)]"), ["allow(unsafe_code)"]);
        assert_eq!(found("#[cfg_attr(test, allow(unsafe_code))]"), ["allow(unsafe_code)"]);
        assert_eq!(found("#[expect(unsafe_code, reason = \"(\")]"), ["expect(unsafe_code)"]);
        assert_eq!(found("#![warn(unsafe_code)]"), ["warn(unsafe_code)"]);
    }

    #[test]
    fn keeping_the_lint_is_fine() {
        assert_eq!(lines("#![deny(unsafe_code)]\n#![forbid(unsafe_code)]\n#![allow(dead_code)]"), [0; 0]);
        assert_eq!(lines("// #![allow(unsafe_code)]\nmod unsafe_code;"), [0; 0]);
    }

    #[test]
    fn only_the_named_places_are_allowed() {
        assert!(is_allowed("crates/mayhap/src/raw/simd/avx2.rs"));
        assert!(is_allowed("crates/mayhap-store/src/map.rs"));
        assert!(is_allowed("crates/mayhap-store/src/fault.rs"));
        assert!(!is_allowed("crates/mayhap/src/raw.rs"));
        assert!(!is_allowed("crates/mayhap-store/src/map.rs.rs"));
        assert!(!is_allowed("crates/mayhap/src/lib.rs"));
    }
}
