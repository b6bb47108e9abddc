//! House rule: relative links in the documents lead to files and headings that exist.
//!
//! Links in code are not looked at. Links to other sites are not either: they need a network.

use std::collections::HashMap;
use std::path::Path;
use std::{fs, iter};

use crate::tree;

/// Checks every Markdown file of the repository.
///
/// # Errors
///
/// One line for each link that leads nowhere, as `file:line: what`.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let files = tree::files(root)?;
    let mut documents = Vec::new();
    for name in files.iter().filter(|name| name.ends_with(".md")) {
        let text = fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))?;
        documents.push((name.as_str(), text));
    }
    let problems = problems(&documents, &files);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// The links of the documents, as name and text, that lead nowhere.
fn problems(documents: &[(&str, String)], files: &[String]) -> Vec<String> {
    let anchors: HashMap<&str, Vec<String>> =
        documents.iter().map(|(name, text)| (*name, anchors(text))).collect();
    let mut problems = Vec::new();
    for (name, text) in documents {
        for (line, link) in links(text) {
            // A link to another site names its scheme.
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { Some((*name).to_owned()) } else { resolved(name, path) };
            let found = target.as_deref().filter(|target| exists(target, files));
            let problem = match (found, anchor) {
                (None, _) => format!("there is no file `{path}`"),
                (Some(_), "") => continue,
                (Some(target), anchor) => match anchors.get(target) {
                    Some(anchors) if anchors.iter().any(|known| known == anchor) => continue,
                    Some(_) => format!("no heading of {target} has the anchor `#{anchor}`"),
                    None => continue,
                },
            };
            problems.push(format!("{name}:{line}: {problem}"));
        }
    }
    problems
}

/// A file of that name, or a folder with files.
fn exists(target: &str, files: &[String]) -> bool {
    let folder = format!("{}/", target.trim_end_matches('/'));
    files.iter().any(|file| file == target || file.starts_with(&folder))
}

/// The path that a link in `document` names, from the root. `None` if it leads out of the repository.
fn resolved(document: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The lines outside of code blocks, with their numbers and without code in backticks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!inside && !fence).then_some((number, line))
    })
}

/// The targets of links and pictures, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            // In backticks it is code and no link.
            let is_code = line[..at].matches('`').count() % 2 == 1;
            let Some((target, _)) = line[at + 2..].split_once(')') else { continue };
            if !is_code {
                links.push((number, target.split(' ').next().unwrap_or(target)));
            }
        }
    }
    links
}

/// The anchors of the headings, as GitHub makes them: of equal ones the second ends in `-1`.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor: String = heading
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
            .flat_map(
                |c| if c == ' ' { iter::once('-').collect::<Vec<_>>() } else { c.to_lowercase().collect() },
            )
            .collect();
        let mut unique = anchor.clone();
        for number in 1.. {
            if !anchors.contains(&unique) {
                break;
            }
            unique = format!("{anchor}-{number}");
        }
        anchors.push(unique);
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let documents =
            [("docs/a.md", text.to_owned()), ("README.md", "# Top\n## What, why?\n## Top\n".into())];
        let files = ["README.md", "docs/a.md", "docs/plots/x.svg"].map(str::to_owned);
        problems(&documents, &files)
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "# Here\n[a](../README.md#what-why) [b](#here) ![c](plots/x.svg) [d](plots) [e](../README.md#top-1)\n\
                    [f](https://example.org/#x) `[g](no)`\n```sh\n[h](no)\n```\n";
        assert_eq!(found(text), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_named_with_their_lines() {
        let text = "x\n[a](b.md) and [b](#there)\n[c](../README.md#why) [d](../../out.md)\n";
        assert_eq!(
            found(text),
            [
                "docs/a.md:2: there is no file `b.md`",
                "docs/a.md:2: no heading of docs/a.md has the anchor `#there`",
                "docs/a.md:3: no heading of README.md has the anchor `#why`",
                "docs/a.md:3: there is no file `../../out.md`",
            ]
        );
    }
}
