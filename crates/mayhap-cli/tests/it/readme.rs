//! The README in two languages: the same commands, tables, names and links. `cargo xtask promises` runs the examples.

use crate::documents;

const CHINESE: &str = "README.zh-CN.md";

/// What to do if the two differ.
const HOW_TO_MEND: &str = "whatever is changed in README.md has to be changed in README.zh-CN.md too: copy the commands of \
                           a code block and translate its comments, or write the heading, the row or the paragraph with \
                           its names and numbers; then run cargo test -p mayhap-cli --test it readme::";

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
    prose
        .iter()
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.starts_with('#') && !target.starts_with("README"))
        .collect()
}

#[test]
fn the_first_line_of_each_links_to_the_other() {
    for (document, other) in [("README.md", CHINESE), (CHINESE, "README.md")] {
        let text = documents::read(document);
        let first = text.lines().next().expect("a line");
        assert!(first.contains(&format!("]({other})")), "{document} begins with {first:?}");
    }
}

/// A line of a code block, as code and comment. A shell comment begins with `#` at the start of a word, one in Rust with `//`,
/// both outside of quotes. What a command prints has no comments.
fn code_and_comment<'a>(language: &str, line: &'a str) -> (&'a str, Option<&'a str>) {
    let mark = match language {
        "rust" => "//",
        "sh" | "sh skip" => "#",
        "console" if line.starts_with("$ ") => "#",
        _ => return (line, None),
    };
    let mut quote = None;
    for (at, c) in line.char_indices() {
        let starts_word = line[..at].chars().next_back().is_none_or(char::is_whitespace);
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"') => quote = Some(c),
            (None, '\'') if mark == "#" => quote = Some(c),
            (None, _) if starts_word && line[at..].starts_with(mark) => {
                return (line[..at].trim_end(), Some(&line[at..]));
            }
            (None, _) => {}
        }
    }
    (line, None)
}

fn is_chinese(text: &str) -> bool {
    text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
}

#[test]
fn comments_are_told_from_code() {
    for (language, line, code, comment) in [
        ("sh", "mayhap dedup a > b   # drops repeats", "mayhap dedup a > b", Some("# drops repeats")),
        ("sh", "# all of it", "", Some("# all of it")),
        ("sh skip", "echo 'a # b' \"# c\" d#e", "echo 'a # b' \"# c\" d#e", None),
        ("console", "$ wc -l # lines", "$ wc -l", Some("# lines")),
        ("console", "3 # printed", "3 # printed", None),
        ("rust", "seen.insert(\"https://a/\"); // one", "seen.insert(\"https://a/\");", Some("// one")),
        ("rust", "# Ok::<(), E>(())", "# Ok::<(), E>(())", None),
        ("text", "a # b // c", "a # b // c", None),
    ] {
        assert_eq!(code_and_comment(language, line), (code, comment), "{language}: {line}");
    }
}

#[test]
fn the_chinese_readme_has_the_same_commands_with_comments_in_chinese() {
    let (english, chinese) = (documents::read("README.md"), documents::read(CHINESE));
    let ((_, english), (_, chinese)) = (documents::split(&english), documents::split(&chinese));
    let mut comments = 0;
    for (ours, theirs) in english.iter().zip(&chinese) {
        let (language, text) = (&ours.language, &ours.text);
        assert_eq!(*language, theirs.language, "the language of a code block: {text}; {HOW_TO_MEND}");
        for (ours, theirs) in text.lines().zip(theirs.text.lines()) {
            let (code, comment) = code_and_comment(language, ours);
            let (their_code, their_comment) = code_and_comment(language, theirs);
            assert_eq!(code, their_code, "a code block differs; {HOW_TO_MEND}");
            let both = format!("{ours:?} and {theirs:?}");
            assert_eq!(comment.is_some(), their_comment.is_some(), "the comments of {both}; {HOW_TO_MEND}");
            assert!(their_comment.is_none_or(is_chinese), "the comment is not in Chinese: {theirs:?}");
            comments += u32::from(comment.is_some());
        }
        let lines = (text.lines().count(), theirs.text.lines().count());
        assert_eq!(lines.0, lines.1, "the lines of a code block: {text}; {HOW_TO_MEND}");
    }
    assert_eq!(english.len(), chinese.len(), "the numbers of code blocks differ; {HOW_TO_MEND}");
    assert!(comments > 10, "only {comments} comments were compared");
}

/// What those search for who read Chinese; the first of them in the first paragraph.
const TERMS: &str = "布隆过滤器 误判率 哈希函数 位数组 漏报 假阳性 假阴性 缓存穿透 计数布隆过滤器 布谷鸟过滤器 可扩展布隆过滤器 \
                     谱布隆过滤器 空间布隆过滤器 移位布隆过滤器 位图 去重 黑名单 查询 过滤器类型";

#[test]
fn the_chinese_readme_has_the_words_that_are_searched_for() {
    let chinese = documents::read(CHINESE);
    let missing: Vec<&str> = TERMS.split_whitespace().filter(|term| !chinese.contains(term)).collect();
    assert!(missing.is_empty(), "{missing:?} are not in {CHINESE}");
    let first =
        chinese.lines().skip_while(|line| !line.starts_with("# ")).skip(1).find(|line| !line.is_empty());
    assert!(first.is_some_and(|line| line.contains("布隆过滤器")), "{CHINESE} begins with {first:?}");
}

/// Those of `ours` that `theirs` does not have, or not as often.
fn missing<T: PartialEq>(ours: Vec<T>, mut theirs: Vec<T>) -> Vec<T> {
    let is_missing = |one: &T| match theirs.iter().position(|other| other == one) {
        Some(at) => {
            theirs.swap_remove(at);
            false
        }
        None => true,
    };
    ours.into_iter().filter(is_missing).collect()
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

    // The Chinese text may have more: terms that are searched for, and a page of its own.
    let links = missing(targets(&english), targets(&chinese));
    assert!(links.is_empty(), "links or pictures are missing: {links:?}; {HOW_TO_MEND}");

    // Every option and name of the text, in any order.
    let names = |prose: &[&str]| {
        let text: Vec<&str> = prose.iter().filter(|line| !line.starts_with('|')).copied().collect();
        // A name may be broken by the end of a line.
        let text = text.join(" ");
        documents::quoted(&text).into_iter().map(String::from).collect::<Vec<_>>()
    };
    let names = missing(names(&english), names(&chinese));
    assert!(names.is_empty(), "names in the text are missing: {names:?}; {HOW_TO_MEND}");
}
