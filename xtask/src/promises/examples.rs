//! Examples: the blocks of shell lines in the documents, those of `--help`, and the table of families.

use std::path::Path;
use std::time::Instant;

use super::Verdict;
use super::expected::matched;
use super::shell::Shell;
use super::table::{self, quoted};

/// The documents whose examples are run, each in one folder that is empty at first, in their order.
///
/// A block fenced as `sh` must end with status 0. In one fenced as `console`, `$ ` begins a command, and what it prints to
/// both outputs must be the lines below, where `…` is any text within a line, and alone on a line any lines. A block
/// fenced as `sh skip` is not run. README.zh-CN.md is not among them: a test compares its commands and what they print with
/// those of README.md.
pub(super) const DOCUMENTS: [&str; 9] = [
    "README.md",
    "docs/README.md",
    FAMILIES,
    "docs/command.md",
    "docs/recipes.md",
    "docs/formats.md",
    "docs/hostile.md",
    "docs/pitfalls.md",
    "docs/zh-CN.md",
];

/// The document with the table of families, each with the command that builds one.
pub(super) const FAMILIES: &str = "docs/families.md";

/// What the examples find in their folder: `--help` and the table of families name these files.
const FILES: &str = "\
    seq -f 'https://example.org/%g' 1 2000 > urls.txt
    cp urls.txt keys.txt
    seq -f 'https://example.org/%g' 1900 2100 > more.txt
    seq -f 'https://example.org/%g' 1 50 > old.txt
    seq -f 'https://other.example/%g' 1 2000 > others.txt
    cp others.txt absent.txt
    cp others.txt all.txt; cat urls.txt >> all.txt
    printf '%s\\n' evil.example bad.example > block.txt
    printf '%s\\n' good.example > allow.txt
    printf '%s\\n' good.example > good.txt
    cp block.txt deny.txt
    cat block.txt allow.txt > hosts.txt
    seq 1 2000 > ids.txt
    seq 1 3 4000 > numbers.txt
    printf 'id,user\\n1,ann\\n2,bob\\n3,ann\\n' > events.csv
    printf '{\"id\":1,\"user\":{\"id\":7}}\\n{\"id\":2,\"user\":{\"id\":8}}\\n' > events.jsonl
    seq -f '192.0.2.%g GET /page' 1 200 > access.log
    mayhap build --quiet -o old.mayhap old.txt
    mayhap build --quiet -o urls.mayhap urls.txt
    mayhap build --quiet -o block.mayhap block.txt
    mayhap build --quiet -o allow.mayhap allow.txt
    mayhap build --quiet --label allow=allow.txt --label block=block.txt -p 1e-6 -o hosts.mayhap
    mayhap build --quiet --counts -o counts.mayhap urls.txt
    mayhap build --quiet --removable -o removable.mayhap urls.txt
    mayhap build --quiet -n 1M -o large.mayhap urls.txt
";

/// A block of code: its language, the number of its first line, its lines.
struct Block<'a> {
    language: &'a str,
    line: usize,
    lines: Vec<&'a str>,
}

fn blocks(document: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut inside = false;
    for (index, line) in document.lines().enumerate() {
        match (inside, line.strip_prefix("```")) {
            (false, Some(language)) => {
                blocks.push(Block { language: language.trim(), line: index + 2, lines: Vec::new() });
                inside = true;
            }
            (true, Some(_)) => inside = false,
            (true, None) => {
                if let Some(block) = blocks.last_mut() {
                    block.lines.push(line);
                }
            }
            (false, None) => {}
        }
    }
    blocks
}

/// The commands of a block fenced as `console`, each with its line and the lines below it.
fn transcript<'a>(block: &Block<'a>) -> Vec<(usize, String, Vec<&'a str>)> {
    let mut commands: Vec<(usize, String, Vec<&str>)> = Vec::new();
    for (index, line) in block.lines.iter().enumerate() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((block.line + index, command.to_owned(), Vec::new())),
            // A command that goes on in the next line.
            (None, Some((_, command, shown))) if command.ends_with('\\') && shown.is_empty() => {
                command.push('\n');
                command.push_str(line.strip_prefix("> ").unwrap_or(line));
            }
            (None, Some((_, _, shown))) => shown.push(line),
            (None, None) => commands.push((block.line + index, String::new(), vec![line])),
        }
    }
    commands
}

/// Runs the examples of a document.
pub(super) fn of_document(name: &str, document: &str, shell: &Shell) -> Vec<Verdict> {
    let folder = shell.folder();
    let mut verdicts = Vec::new();
    for block in blocks(document) {
        match block.language {
            "sh" => {
                let script = block.lines.join("\n");
                verdicts.push(verdict(format!("{name}:{}", block.line), &script, || {
                    let done = shell.run(&script, &folder);
                    match done.status {
                        Some(0) => Ok("status 0".into()),
                        status => Err(format!("it ended with {status:?}\n{}", done.output)),
                    }
                }));
            }
            "console" => {
                for (line, command, shown) in transcript(&block) {
                    verdicts.push(verdict(format!("{name}:{line}"), &command, || {
                        prints(&command, &shown, &folder, shell)
                    }));
                }
            }
            _ => {}
        }
    }
    verdicts
}

/// Whether a command prints these lines.
fn prints(command: &str, shown: &[&str], folder: &Path, shell: &Shell) -> Result<String, String> {
    if command.is_empty() {
        return Err("a block fenced as console begins with a command".into());
    }
    let done = shell.run(command, folder);
    let printed: Vec<&str> = done.output.lines().collect();
    // An error that is not shown is no success.
    let failed = !matches!(done.status, Some(0 | 1)) && shown.is_empty();
    if failed || !agree(&printed, shown) {
        let (status, output) = (done.status, done.output);
        return Err(format!(
            "it should print\n{}\nand printed (status {status:?})\n{output}",
            shown.join("\n")
        ));
    }
    Ok(format!("{} lines as shown", printed.len()))
}

/// Compares lines; `…` alone is any number of them.
fn agree(printed: &[&str], shown: &[&str]) -> bool {
    match (printed, shown) {
        ([], []) => true,
        (_, [gap, rest @ ..]) if gap.trim() == "…" => {
            (0..=printed.len()).any(|skipped| agree(&printed[skipped..], rest))
        }
        ([line, printed @ ..], [pattern, shown @ ..]) => {
            // The end of a line is a part of it.
            let (line, pattern) = (format!("{line}\n"), format!("{pattern}\n"));
            matched(&line, &pattern) == Some(line.len()) && agree(printed, shown)
        }
        _ => false,
    }
}

fn verdict(number: String, command: &str, run: impl FnOnce() -> Result<String, String>) -> Verdict {
    let start = Instant::now();
    let result = run();
    let by = command.lines().collect::<Vec<_>>().join("; ");
    Verdict { number, says: "example".into(), by, result, took: start.elapsed() }
}

/// The subcommands that the overview lists.
///
/// # Errors
///
/// It lists none.
pub(super) fn commands(shell: &Shell) -> Result<Vec<String>, String> {
    let folder = shell.folder();
    let overview = shell.run("mayhap --help", &folder).output;
    let section = overview.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let name = |line: &str| {
        let word = line.strip_prefix("  ")?.split_whitespace().next()?;
        let known = shell.run(&format!("mayhap {word} --help"), &folder).status == Some(0);
        (!line.starts_with("   ") && known && word != "help").then(|| word.to_owned())
    };
    let names: Vec<String> = section.take_while(|line| line.starts_with("  ")).filter_map(name).collect();
    if names.len() < 20 { Err(format!("`mayhap --help` lists only {names:?}")) } else { Ok(names) }
}

/// The small twin of an example that measures for a minute, with fewer keys.
fn small(example: &str) -> String {
    if !example.starts_with("mayhap eval ") || example.contains("papers") {
        example.to_owned()
    } else if example.contains("-n 1M") {
        example.replace("-n 1M", "-n 20k")
    } else {
        format!("{example} -n 20k")
    }
}

/// Runs the examples that `--help` of a subcommand ends with; without `all` as small as they can be.
pub(super) fn of_help(command: &str, shell: &Shell, all: bool) -> Vec<Verdict> {
    let folder = shell.folder();
    let help = shell.run(&format!("mayhap {command} --help"), &folder).output;
    let examples: Vec<&str> = help
        .lines()
        .skip_while(|line| line.trim() != "Examples:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .map(str::trim)
        .filter(|line| line.contains("mayhap "))
        .collect();
    let files = shell.run(FILES, &folder);
    let number = format!("mayhap {command} --help");
    if files.status != Some(0) {
        let result = Err(format!("the files of the examples could not be made\n{}", files.output));
        return vec![verdict(number, FILES, || result)];
    }
    let run = |example: &&str| {
        let example = if all { (*example).to_owned() } else { small(example) };
        verdict(number.clone(), &example, || {
            let done = shell.run(&example, &folder);
            match done.status {
                // 1 is an answer: nothing found, something absent.
                Some(status @ (0 | 1)) => Ok(format!("status {status}")),
                status => Err(format!("it ended with {status:?}\n{}", done.output)),
            }
        })
    };
    examples.iter().map(run).collect()
}

/// Builds each family of the table by the command that stands there, and looks at what was built.
pub(super) fn of_families(document: &str, shell: &Shell) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for table in table::tables(document) {
        let column = |name: &str| table.rows[0].iter().position(|head| head == name);
        let (Some(family), Some(build)) = (column("family"), column("build")) else { continue };
        for row in &table.rows[1..] {
            let name = quoted(&row[family]).0.into_iter().next().unwrap_or_default();
            for command in quoted(&row[build]).0 {
                verdicts.push(verdict(format!("{FAMILIES}: {name}"), &command, || {
                    let folder = shell.folder();
                    let script = format!("{FILES}\nmkdir built\n{command}\n");
                    let done = shell.run(&script, &folder);
                    let output = command.split_whitespace().skip_while(|word| *word != "-o").nth(1);
                    let Some(output) = output else { return Err("no `-o FILE` in the command".into()) };
                    if done.status != Some(0) {
                        return Err(done.output);
                    }
                    let info = shell.run(&format!("mayhap info {output}"), &folder).output;
                    let line = info.lines().find(|line| line.starts_with("family ")).unwrap_or_default();
                    if line.split_whitespace().nth(1) == Some(&name) {
                        Ok(line.to_owned())
                    } else {
                        Err(format!("a {name} was expected\n{info}"))
                    }
                }));
            }
        }
    }
    if verdicts.len() < 20 {
        let problem = format!("only {} commands in a column `build`", verdicts.len());
        verdicts.push(verdict(FAMILIES.into(), "", || Err(problem)));
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_measures_has_a_small_twin() {
        assert_eq!(small("mayhap eval -n 1M --plot plots"), "mayhap eval -n 20k --plot plots");
        assert_eq!(small("mayhap eval --suite classic"), "mayhap eval --suite classic -n 20k");
        for whole in ["mayhap eval --suite papers --only CKO-2", "mayhap build -n 1M -o f urls.txt"] {
            assert_eq!(small(whole), whole);
        }
    }

    #[test]
    fn shown_lines_are_compared_to_their_ends() {
        assert!(agree(&["a", "b"], &["a", "b"]));
        assert!(!agree(&["a", "bc"], &["a", "b"]));
        assert!(!agree(&["a", "b", "c"], &["a", "b"]));
        assert!(!agree(&["a"], &["a", "b"]));
        assert!(agree(&["took 3 s", "b"], &["took … s", "b"]));
        assert!(agree(&["a", "x", "y", "b"], &["a", "…", "b"]));
        assert!(!agree(&["a", "x", "y"], &["a", "…", "b"]));
    }

    #[test]
    fn a_transcript_is_commands_with_what_they_print() {
        let document = "x\n```console\n$ one \\\n  two\nout\n$ three\n```\n```sh skip\nfour\n```\n";
        let blocks = blocks(document);
        assert_eq!((blocks.len(), blocks[0].line, blocks[1].language), (2, 3, "sh skip"));
        let calls = transcript(&blocks[0]);
        assert_eq!(calls[0], (3, "one \\\n  two".to_owned(), vec!["out"]));
        assert_eq!(calls[1], (6, "three".to_owned(), vec![]));
    }
}
