//! House rule: the modules of the library import downwards only, in the order of [`LAYERS`].
//!
//! Read are the paths that begin with `crate`, `super` or `self`, in `use` and elsewhere, also nested ones. What is compiled
//! for tests only may import everything, and so may [`EXEMPT`].

use std::fs;
use std::path::Path;

use crate::tokens::{code_only, is_word, tokens};
use crate::tree;

/// The modules of the library in layers, highest first. Modules of one layer may import each other.
const LAYERS: [&[&str]; 10] = [
    &["registry", "interop", "exceptions", "advise"],
    &["filters"],
    &["shell"],
    &["family", "traits", "rates"],
    &["retrieval", "spec", "wire", "key_rules", "table_shape", "intersection", "limit"],
    &["bits"],
    &["raw::simd"],
    &["probing", "batch", "shards", "cell_lanes"],
    &["hash", "raw::xxh3"],
    &["raw::memory", "raw::detect", "math", "error", "narrow", "paths", "threads"],
];

/// The library.
const SOURCE: &str = "crates/mayhap/src";

/// The imports upwards that are meant. The check of what is requested of a family, and of the family that a file names, gives
/// the names of others, which only the registry knows.
const UPWARDS: [(&str, &str); 1] = [("family", "registry")];

/// Files that export what others define.
const EXEMPT: [&str; 2] = ["lib.rs", "internals.rs"];

/// Checks every file of the library.
///
/// # Errors
///
/// One line for each import that points up, as `file:line: what`, for each module that is in no layer, and for each name in
/// [`LAYERS`] that is no module.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let source = root.join(SOURCE);
    let mut problems = Vec::new();
    let mut modules = Vec::new();
    for name in tree::files(&source)? {
        if !name.ends_with(".rs") || EXEMPT.contains(&name.as_str()) {
            continue;
        }
        let module = module_of(&name);
        let text = fs::read(source.join(&name)).map_err(|error| format!("{SOURCE}/{name}: {error}"))?;
        for (line, what) in findings(&module, &String::from_utf8_lossy(&text)) {
            problems.push(format!("{SOURCE}/{name}:{line}: {what}"));
        }
        modules.push(module);
    }
    problems.dedup();
    let unknown =
        LAYERS.iter().copied().flatten().filter(|name| !modules.iter().any(|module| module == *name));
    problems.extend(
        unknown.map(|name| format!("`{name}` is in LAYERS in xtask/src/layers.rs, but is no module")),
    );
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// The path of a file's module: `raw::simd` for `raw/simd/mod.rs`.
fn module_of(file: &str) -> String {
    let path = file.trim_end_matches(".rs");
    path.strip_suffix("/mod").unwrap_or(path).replace('/', "::")
}

/// The layer that a path belongs to, from the top, and the module that is named there.
fn layer(path: &str) -> Option<(usize, &'static str)> {
    let modules =
        LAYERS.iter().zip(0..).flat_map(|(modules, layer)| modules.iter().map(move |&name| (layer, name)));
    modules.into_iter().find(|(_, name)| is_within(path, name))
}

/// Whether a path is that of a module, or of something in it.
fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Line number (from 1) and description of whatever breaks the rule in a module.
fn findings(module: &str, source: &str) -> Vec<(usize, String)> {
    let own = layer(module);
    // A folder whose modules are in different layers.
    let is_divided = LAYERS.iter().copied().flatten().any(|name| is_within(name, module));
    if own.is_none() && !is_divided {
        let what = format!("module `{module}` is in no layer: add it to LAYERS in xtask/src/layers.rs");
        return vec![(1, what)];
    }
    let mut found = Vec::new();
    for (line, path) in imports(module, source) {
        match (own, layer(&path)) {
            (Some((own, from)), Some((above, to))) if above < own && !UPWARDS.contains(&(from, to)) => {
                found.push((line, format!("layer `{from}` imports layer `{to}` above it")));
            }
            (Some(_), Some(_)) => {}
            (None, _) => {
                found.push((
                    line,
                    format!("`{module}` has modules in several layers, and may import nothing itself"),
                ));
            }
            (_, None) => {
                let what =
                    format!("`crate::{path}` is in no layer: import it from the module that defines it");
                found.push((line, what));
            }
        }
    }
    found
}

/// Every path in a module's code that begins with `crate`, `super` or `self`, without `crate`, and its line. Code for tests
/// is left out.
fn imports(module: &str, source: &str) -> Vec<(usize, String)> {
    let code = code_only(source);
    let mut line = 1;
    let mut words = Vec::new();
    for token in tokens(&code) {
        match token {
            "\n" => line += 1,
            _ => words.push((line, token)),
        }
    }
    let mut reader = Reader { words: &words, at: 0, found: Vec::new() };
    let mut module: Vec<&str> = module.split("::").collect();
    // For each open brace, whether it is that of a module.
    let mut open = Vec::new();
    while let Some(word) = reader.word(0) {
        match word {
            "#" if reader.skip_test() => continue,
            "mod" if reader.word(2) == Some("{") => {
                module.extend(reader.word(1));
                open.push(true);
                reader.at += 2;
            }
            "{" => open.push(false),
            "}" => {
                let is_module = open.pop() == Some(true);
                if is_module {
                    module.pop();
                }
            }
            // `pub(in crate::raw)` imports nothing.
            "in" if reader.word(1) == Some("crate") => reader.at += 1,
            "crate" | "super" | "self" if reader.is_path() => {
                reader.tree(&module, true);
                continue;
            }
            _ => {}
        }
        reader.at += 1;
    }
    reader.found
}

/// Goes through the words of a file.
struct Reader<'a> {
    /// With their lines.
    words: &'a [(usize, &'a str)],
    at: usize,
    found: Vec<(usize, String)>,
}

impl<'a> Reader<'a> {
    /// The word that comes `behind` words after the next one.
    fn word(&self, behind: usize) -> Option<&'a str> {
        self.words.get(self.at + behind).map(|&(_, word)| word)
    }

    /// Whether the next word is the beginning of a path, not its end or all of it.
    fn is_path(&self) -> bool {
        self.word(1) == Some(":") && self.word(2) == Some(":")
    }

    /// Takes a path and all that is nested in it, and notes each. `module` is what it begins in; a `start` may be `crate`,
    /// `super` or `self`.
    fn tree(&mut self, module: &[&'a str], start: bool) {
        let mut path = module.to_vec();
        let mut line = 0;
        let mut is_start = start;
        while let Some(&(here, word)) = self.words.get(self.at) {
            match word {
                "crate" if is_start => path.clear(),
                "super" if is_start => {
                    path.pop();
                }
                "self" => {}
                "{" => return self.group(&path),
                _ if word.starts_with(is_word) => {
                    is_start = false;
                    path.push(word);
                }
                // `*`, or the `<` of generic arguments: all of the path, as far as it goes.
                _ => break,
            }
            line = here;
            if !self.is_path() {
                self.at += 1;
                break;
            }
            self.at += 3;
        }
        self.found.push((line, path.join("::")));
    }

    /// Takes a group in braces, to which `path` leads.
    fn group(&mut self, path: &[&'a str]) {
        self.at += 1;
        while let Some(word) = self.word(0) {
            match word {
                "}" => {
                    self.at += 1;
                    return;
                }
                "as" => self.at += 2,
                _ if word.starts_with(is_word) => self.tree(path, false),
                _ => self.at += 1,
            }
        }
    }

    /// Takes an attribute that leaves the next item to tests, and that item. `false` if it is none, and nothing is taken.
    fn skip_test(&mut self) -> bool {
        let words = self.words[self.at..].iter().map(|&(_, word)| word);
        let attribute: Vec<&str> = words.take_while(|&word| word != "]").collect();
        let is_test = match attribute[..] {
            ["#", "[", "cfg", "(", "test", ..] => true,
            ["#", "[", "cfg", "(", "all", ..] => {
                attribute.contains(&"test") && !attribute.iter().any(|word| ["any", "not"].contains(word))
            }
            _ => false,
        };
        if !is_test {
            return false;
        }
        self.at += attribute.len() + 1;
        let mut depth = 0;
        while let Some(word) = self.word(0) {
            self.at += 1;
            match word {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            if depth < 0 {
                // The end of what the item is in: it was a field, or the arm of a `match`.
                self.at -= 1;
                break;
            }
            if depth == 0 && (word == "}" || word == ";") {
                break;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths in a module.
    fn paths(module: &str, source: &str) -> Vec<String> {
        imports(module, source).into_iter().map(|(_, path)| path).collect()
    }

    #[test]
    fn nested_imports_are_found() {
        assert_eq!(paths("hash", "use crate::{a, b::c};"), ["a", "b::c"]);
        assert_eq!(
            paths("hash", "use crate::a::{self, b::{c, d as e}, f};"),
            ["a", "a::b::c", "a::b::d", "a::f"]
        );
        assert_eq!(paths("hash", "use crate::a::*;"), ["a"]);
        assert_eq!(paths("hash", "pub(crate) use crate::{\n    a,\n    b,\n};"), ["a", "b"]);
        assert_eq!(
            imports("hash", "\nuse crate::{\n    a,\n    b::{c},\n};").last(),
            Some(&(4, "b::c".to_owned()))
        );
    }

    #[test]
    fn paths_outside_of_use_are_found() {
        assert_eq!(paths("hash", "fn f() -> crate::a::B { crate::c::d::<u8>(1) }"), ["a::B", "c::d"]);
        assert_eq!(paths("hash", "macro_rules! m { () => { $crate::a::b() } }"), ["a::b"]);
    }

    #[test]
    fn relative_paths_are_resolved() {
        assert_eq!(
            paths("a::b", "use super::c; use super::super::d; use self::e;"),
            ["a::c", "d", "a::b::e"]
        );
        assert_eq!(
            paths("a", "mod b { use super::c; use super::super::d; } use super::e;"),
            ["a::c", "d", "e"]
        );
        assert_eq!(paths("a", "mod b { fn f() {} impl X { fn g() { super::c() } } }"), ["a::c"]);
        assert_eq!(paths("a", "mod b;\nuse super::c;"), ["c"]);
    }

    #[test]
    fn what_only_looks_like_an_import_is_none() {
        for source in [
            "pub(crate) fn f(self) { self.g(); }",
            "pub(in crate::raw) fn f() {}",
            "// use crate::a;\n/// See [`crate::a`].\nfn f() {}",
            "const A: &str = \"use crate::a;\";",
            "use core::{fmt, mem};",
        ] {
            assert_eq!(paths("hash", source), [""; 0], "{source}");
        }
    }

    #[test]
    fn tests_import_what_they_like() {
        for source in [
            "#[cfg(test)]\nmod tests { use crate::a; mod b { use crate::c; } }",
            "#[cfg(all(test, feature = \"std\"))]\nmod tests { use crate::a; }",
            "#[cfg(all(feature = \"std\", test))]\nmod tests { use crate::a; }",
            "#[cfg(test)]\nuse crate::a;",
            "struct A {\n#[cfg(test)]\nb: crate::a::B }",
            "#[cfg(test)]\n#[allow(unused)]\nfn f(x: [u8; 2]) { crate::a::b() }",
        ] {
            assert_eq!(paths("hash", &format!("{source}\nuse crate::z;")), ["z"], "{source}");
        }
        for source in
            ["#[cfg(any(feature = \"std\", test))]", "#[cfg(not(test))]", "#[cfg(all(a, not(test)))]"]
        {
            assert_eq!(paths("hash", &format!("{source}\nuse crate::a;")), ["a"], "{source}");
        }
    }

    #[test]
    fn an_import_that_points_up_is_reported() {
        let found = |module, source| findings(module, source);
        let up = |line, from: &str, to: &str| {
            vec![(line, format!("layer `{from}` imports layer `{to}` above it"))]
        };
        assert_eq!(found("hash", "\nuse crate::raw::simd;"), up(2, "hash", "raw::simd"));
        assert_eq!(found("hash::foreign", "use super::super::bits::Words;"), up(1, "hash", "bits"));
        assert_eq!(found("raw::xxh3", "use super::simd::prefetch;"), up(1, "raw::xxh3", "raw::simd"));
        assert_eq!(found("bits::words", "use crate::{error::Full, spec::Spec};"), up(1, "bits", "spec"));
        assert_eq!(found("spec", "use crate::filters::table::Shape;"), up(1, "spec", "filters"));
        // Down, and aside.
        assert_eq!(found("filters::bloom", "use crate::bits::Words; use super::blocked;"), []);
        assert_eq!(found("hash", "use crate::{error, raw::xxh3};"), []);
        // A name that only begins like a module.
        assert_eq!(layer("hashing"), None);
    }

    #[test]
    fn what_is_in_no_layer_is_reported() {
        let what = |module, source| findings(module, source).pop().unwrap().1;
        let (import, file) =
            ("is in no layer: import it from", "is in no layer: add it to LAYERS in xtask/src/layers.rs");
        assert!(what("hash", "use crate::Bloom;").contains(import));
        assert!(what("new", "").contains(file));
        assert!(what("raw::new", "").contains(file));
        assert!(what("raw", "use crate::hash;").contains("may import nothing"));
        assert_eq!(findings("raw", "mod simd;"), []);
    }

    #[test]
    fn files_are_modules() {
        assert_eq!(module_of("hash.rs"), "hash");
        assert_eq!(module_of("raw/simd/mod.rs"), "raw::simd");
        assert_eq!(module_of("raw/simd/avx2.rs"), "raw::simd::avx2");
    }
}
