//! The other tools for the same job, and where they come from.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Source;
use super::texts::Kind;
use crate::{Size, programs};

/// A tool, and the command line that drops repeats with it.
pub(super) struct Tool {
    /// The command as tables show it.
    pub(super) name: &'static str,
    pub(super) origin: Origin,
    pub(super) arguments: &'static [&'static str],
    pub(super) source: Source,
    pub(super) writes: Writes,
    /// What a reader has to know beside the order of the output.
    pub(super) note: &'static str,
    /// How many times the time of `mayhap dedup FILE` it has to take for URLs, where the project has set a bar.
    pub(super) times: Option<f64>,
}

/// How a tool is found, and installed if it is missing.
pub(super) enum Origin {
    Path(&'static str),
    Crate {
        name: &'static str,
        version: &'static str,
        program: &'static str,
    },
    /// A Python package, and the script that uses it.
    Python {
        package: &'static str,
        script: &'static str,
    },
}

/// Where the result goes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Writes {
    Lines,
    /// The tool opens the output file itself: its name is one more argument.
    LinesToFile,
    /// Only the number of distinct lines.
    Number,
}

/// Python's packages get a column of integers as one, since they are made for typed columns; no byte of the texts separates
/// or quotes fields.
const DUCKDB: &str = r#"
import sys, duckdb
kind, text, output = sys.argv[1:]
column = "BIGINT" if kind == "integers" else "VARCHAR"
duckdb.sql("SET enable_progress_bar = false")
duckdb.sql(f"""
    COPY (SELECT DISTINCT line FROM read_csv(
        '{text}', header=false, auto_detect=false, delim='\x01', quote='', escape='', columns={{'line': '{column}'}}
    )) TO '{output}' (FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE '')
""")
"#;
const POLARS: &str = r#"
import sys, polars
kind, text, output = sys.argv[1:]
column = polars.Int64 if kind == "integers" else polars.String
lines = polars.scan_csv(text, has_header=False, separator="\x01", quote_char=None, schema={"line": column})
lines.unique().sink_csv(output, include_header=False, separator="\x01", quote_style="never")
"#;

pub(super) const TOOLS: [Tool; 8] = [
    Tool {
        name: "DuckDB, `SELECT DISTINCT`",
        origin: Origin::Python { package: "duckdb", script: DUCKDB },
        arguments: &[],
        source: Source::Argument,
        writes: Writes::LinesToFile,
        note: "",
        times: None,
    },
    Tool {
        name: "polars, `unique`",
        origin: Origin::Python { package: "polars", script: POLARS },
        arguments: &[],
        source: Source::Argument,
        writes: Writes::LinesToFile,
        note: "",
        times: None,
    },
    Tool {
        name: "`hist -u FILE`",
        origin: Origin::Crate { name: "hist-rs", version: "~0.1", program: "hist" },
        arguments: &["-u"],
        source: Source::Argument,
        writes: Writes::Lines,
        // Seen in 0.1.8: it writes CSV, and ends with an error at a line that is not UTF-8.
        note: "quotes lines with a comma",
        times: None,
    },
    Tool {
        name: "`huniq < FILE`",
        origin: Origin::Crate { name: "huniq", version: "~2.7", program: "huniq" },
        arguments: &[],
        source: Source::Input,
        writes: Writes::Lines,
        note: "keeps 64-bit hashes",
        times: Some(14.0),
    },
    Tool {
        name: "`runiq -f quick FILE`",
        origin: Origin::Crate { name: "runiq", version: "~2.1", program: "runiq" },
        arguments: &["-f", "quick"],
        source: Source::Argument,
        writes: Writes::Lines,
        note: "keeps 64-bit hashes",
        times: Some(14.0),
    },
    Tool {
        name: "`cuniq FILE`",
        origin: Origin::Crate { name: "cuniq", version: "~2.0", program: "cuniq" },
        arguments: &[],
        source: Source::Argument,
        writes: Writes::Number,
        note: "",
        times: None,
    },
    Tool {
        name: "`sort -u -S 4G --parallel=2 FILE`",
        origin: Origin::Path("sort"),
        arguments: &["-u", "-S", "4G", "--parallel=2"],
        source: Source::Argument,
        writes: Writes::Lines,
        note: "",
        times: Some(10.0),
    },
    Tool {
        name: "`awk '!s[$0]++' FILE`",
        origin: Origin::Path("awk"),
        arguments: &["!s[$0]++"],
        source: Source::Argument,
        writes: Writes::Lines,
        note: "",
        times: Some(35.0),
    },
];

impl Tool {
    /// The program that runs it; the reason where it is not to be had.
    pub(super) fn program(&self, size: Size) -> Result<Result<PathBuf, String>> {
        match self.origin {
            Origin::Path(name) => Ok(programs::in_path(name).ok_or_else(|| "not in PATH".to_owned())),
            Origin::Crate { name, version, program } => programs::of_crate(name, version, program, size),
            Origin::Python { package, .. } => programs::with_python(package, size),
        }
    }

    /// Its version, as it says itself.
    pub(super) fn version(&self, program: &Path) -> String {
        match self.origin {
            Origin::Python { package, .. } => programs::python_version(program, package),
            Origin::Crate { name, .. } => programs::crate_version(name, program),
            Origin::Path(_) => programs::version(program),
        }
    }

    /// All arguments before the name of the text.
    pub(super) fn all_arguments(&self, kind: Kind) -> Vec<&'static str> {
        match self.origin {
            Origin::Python { script, .. } => vec!["-c", script, kind.name()],
            _ => self.arguments.to_vec(),
        }
    }
}
