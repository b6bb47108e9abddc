//! Help in two lengths. `-h` fits one screen: the main options of a command and its first examples. `--help` has all of them.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

use crate::args::Cli;

/// `mayhap -h`. A test compares the names with those of the parser.
const OVERVIEW: &str = "\
Is this key in the set? \"No\", or \"mayhap\".

Usage: mayhap <COMMAND> [OPTIONS] [FILE]...

  dedup              Print the first occurrence of each record
  build              Build a filter file from keys
  check              Print the records whose keys are probably in a filter
  add, remove        Add keys to a filter file, remove keys from it
  count, label       Print each record with the count or the labels of its key
  info, test         Show a filter file; test its keys and its rate
  merge, fold        Merge filter files; shrink one
  convert            Write a filter as a file of another format
  calc, advise       Size a filter; choose a family
  families           List the families, what each can do and what it costs
  eval, demo         Measure families; compare a hash set with a Bloom filter
  explain            Draw a small filter and the positions of each key
  sort               Sort unsigned integers and drop repeats, with a bitmap
  hash               Print the hash values of a key
  completions, man   Shell completions, manual pages

Numbers: -n 10M, 1e7; -p 1%, 0.01, 1e-6, 1in1M; --memory 64MiB, 1GB.
Exit status: 0 success or yes, 1 no (check, remove, test), 2 error.
More: mayhap --help, mayhap <COMMAND> -h (main options), --help (all options)";

/// The options that `-h` of a command shows. A command that is not listed shows all of them.
const MAIN: &[(&str, &[&str])] = &[
    (
        "dedup",
        &[
            "fpr",
            "exact",
            "verify",
            "repeated",
            "only_once",
            "state",
            "memory",
            "window",
            "header",
            "stats",
            "null",
            "delimiter",
            "field",
            "json_key",
            "ignore_case",
            "url",
        ],
    ),
    (
        "build",
        &[
            "output",
            "capacity",
            "fpr",
            "family",
            "exact",
            "fastest",
            "static_",
            "smallest",
            "removable",
            "counts",
            "grow",
            "label",
            "universe",
            "except",
            "keyed",
            "delimiter",
            "field",
        ],
    ),
    ("add", &["except", "null", "delimiter", "field", "json_key", "kind", "key_file", "format"]),
    ("remove", &["null", "delimiter", "field", "json_key", "kind", "key_file", "format"]),
    (
        "check",
        &[
            "which",
            "invert",
            "count",
            "quick",
            "line_number",
            "annotate",
            "key",
            "stats",
            "null",
            "delimiter",
            "field",
            "json_key",
            "ignore_case",
            "kind",
            "key_file",
        ],
    ),
    ("count", &["key", "stats", "null", "delimiter", "field", "json_key", "kind", "key_file", "format"]),
    ("label", &["key", "stats", "null", "delimiter", "field", "json_key", "kind", "key_file", "format"]),
    ("test", &["absent", "json", "null", "delimiter", "field", "json_key", "kind", "key_file", "format"]),
    ("info", &["verify", "heatmap", "json", "key_file"]),
    ("merge", &["output", "intersect", "minus", "max_fpr", "json", "force", "key_file"]),
    ("fold", &["fpr", "output", "json", "force", "key_file"]),
    ("convert", &["output", "to", "kind", "json", "force", "key_file"]),
    ("sort", &["reverse", "count", "null", "delimiter", "field", "json_key"]),
    (
        "eval",
        &["family", "data", "capacity", "fpr", "repeat", "seed", "plot", "hashes", "suite", "only", "json"],
    ),
    ("explain", &["ask", "remove", "family", "bits", "probes", "at", "label", "json"]),
    (
        "advise",
        &[
            "capacity",
            "fpr",
            "memory",
            "fastest",
            "smallest",
            "removable",
            "grow",
            "static_",
            "counts",
            "sets",
            "universe",
            "integers",
            "window",
            "exceptions",
            "json",
        ],
    ),
];

/// The most examples that `-h` shows.
const FIRST_EXAMPLES: usize = 3;

/// The definition of the command line, with help in both lengths.
pub(crate) fn command() -> clap::Command {
    let names: Vec<String> = Cli::command().get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.iter().fold(Cli::command(), |command, name| command.mut_subcommand(name, in_two_lengths))
}

fn in_two_lengths(command: clap::Command) -> clap::Command {
    let main = MAIN.iter().find(|(name, _)| *name == command.get_name()).map(|(_, main)| *main);
    let notes = command.get_after_help().map(ToString::to_string);
    let command = command.mut_args(|arg| {
        let is_shown = arg.is_positional() || main.is_none_or(|main| main.contains(&arg.get_id().as_str()));
        if is_shown { arg } else { arg.hide_short_help(true) }
    });
    match notes {
        Some(notes) => {
            let first: Vec<&str> = notes.lines().take_while(|line| !line.is_empty()).collect();
            let first = first[..first.len().min(1 + FIRST_EXAMPLES)].join("\n");
            command.after_help(first).after_long_help(notes)
        }
        None => command,
    }
}

/// Parses the arguments of this process.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    parse_from(std::env::args_os().collect())
}

fn parse_from(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let is_long = arguments.iter().any(|argument| argument == "--help" || argument == "help");
    let mut command = if is_long { command() } else { command().override_help(OVERVIEW) };
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overview_names_every_command() {
        let listed: Vec<&str> = OVERVIEW
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split_once("  "))
            .flat_map(|(names, _)| names.split(", "))
            .collect();
        for sub in command().get_subcommands() {
            assert!(listed.contains(&sub.get_name()), "{} is missing in the overview", sub.get_name());
        }
    }

    #[test]
    fn main_options_belong_to_commands() {
        let command = command();
        for (name, main) in MAIN {
            let sub = command.find_subcommand(name).unwrap_or_else(|| panic!("there is no {name}"));
            let known = sub.get_arguments().filter(|arg| main.contains(&arg.get_id().as_str())).count();
            assert!(known + 1 >= main.len(), "{name}: some main options do not exist");
        }
    }
}
