//! The README in two languages: the same commands, tables, names and links. `cargo xtask promises` runs the examples.

use crate::documents;

const CHINESE: &str = "README.zh-CN.md";

/// What to do if the two differ.
const HOW_TO_MEND: &str = "whatever is changed in README.md has to be changed in README.zh-CN.md too: copy the code block \
                           as it stands, or translate the heading, the row or the paragraph with its names and numbers; \
                           then run cargo test -p mayhap-cli --test it readme::";

/// The numbers of a text, in any order: a translation may turn the words around.
fn numbers(text: &str) -> Vec<&str> {
    let mut numbers: Vec<&str> = text
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .map(|number| number.trim_matches('.'))
        .filter(|number| !number.is_empty())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The targets of links and pictures, but for those within the document, whose headings are translated.
fn targets<'a>(prose: &[&'a str]) -> Vec<&'a str> {
    let mut targets: Vec<&str> = prose
        .iter()
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.starts_with('#') && !target.starts_with("README"))
        .collect();
    targets.sort_unstable();
    targets
}

#[test]
fn the_first_line_of_each_links_to_the_other() {
    for (document, other) in [("README.md", CHINESE), (CHINESE, "README.md")] {
        let text = documents::read(document);
        let first = text.lines().next().expect("a line");
        assert!(first.contains(&format!("]({other})")), "{document} begins with {first:?}");
    }
}

#[test]
fn the_chinese_readme_has_the_same_code_blocks() {
    let (english, chinese) = (documents::read("README.md"), documents::read(CHINESE));
    let ((_, english), (_, chinese)) = (documents::split(&english), documents::split(&chinese));
    for (ours, theirs) in english.iter().zip(&chinese) {
        assert_eq!(ours, theirs, "a code block differs; {HOW_TO_MEND}");
    }
    assert_eq!(english.len(), chinese.len(), "the numbers of code blocks differ; {HOW_TO_MEND}");
}

#[test]
fn the_chinese_readme_has_the_same_headings_tables_names_and_links() {
    let (english, chinese) = (documents::read("README.md"), documents::read(CHINESE));
    let ((english, _), (chinese, _)) = (documents::split(&english), documents::split(&chinese));
    let (ours, theirs) = (documents::headings(&english), documents::headings(&chinese));
    for ((level, ours), (their_level, theirs)) in ours.iter().zip(&theirs) {
        assert_eq!(level, their_level, "{ours:?} is the heading {theirs:?}?; {HOW_TO_MEND}");
    }
    assert_eq!(ours.len(), theirs.len(), "the numbers of headings differ; {HOW_TO_MEND}");

    let (ours, theirs) = (documents::tables(&english), documents::tables(&chinese));
    assert_eq!(ours.len(), theirs.len(), "the numbers of tables differ; {HOW_TO_MEND}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.len(), theirs.len(), "the table {:?} has other rows; {HOW_TO_MEND}", ours[0]);
        for (ours, theirs) in ours.iter().zip(theirs) {
            let both = format!("{ours:?} and {theirs:?}");
            assert_eq!(ours.len(), theirs.len(), "columns of {both}; {HOW_TO_MEND}");
            for (ours, theirs) in ours.iter().zip(theirs) {
                let (names, their_names) = (documents::quoted(ours), documents::quoted(theirs));
                assert_eq!(names, their_names, "names in {both}; {HOW_TO_MEND}");
                assert_eq!(numbers(ours), numbers(theirs), "numbers in {both}; {HOW_TO_MEND}");
            }
        }
    }

    let (ours, theirs) = (targets(&english), targets(&chinese));
    assert_eq!(ours, theirs, "links or pictures differ; {HOW_TO_MEND}");

    // Every option and name of the text, in any order.
    let names = |prose: &[&str]| {
        let text: Vec<&str> = prose.iter().filter(|line| !line.starts_with('|')).copied().collect();
        // A name may be broken by the end of a line.
        let text = text.join(" ");
        let mut names: Vec<String> = documents::quoted(&text).into_iter().map(String::from).collect();
        names.sort();
        names
    };
    assert_eq!(names(&english), names(&chinese), "names in the text; {HOW_TO_MEND}");
}
