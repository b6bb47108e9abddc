//! `mayhap demo`: the first impression, on data that it makes itself.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use mayhap::Hashing;
use mayhap_eval::{ABSENT, Drawn, Keys, Stream, Texts, baselines, with_bloom, write_url};

use super::calc::{DATABASE, IDS, database_bytes, ids_bytes};
use crate::{YES, numbers, report};

/// Compare a hash set with a Bloom filter, then build, check and dedup
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap demo -n 20k")]
pub(crate) struct Args {
    /// Number of URLs
    #[arg(short = 'n', long, value_name = "N", value_parser = numbers::capacity, default_value = "2M")]
    urls: u64,
}

const URL: usize = 50;
const FPR: f64 = 0.01;
const SEED: u64 = 2026;
const REPEATS: f64 = 0.3;

pub(crate) fn run(args: &Args) -> Result<u8> {
    let urls = args.urls;
    ensure!(urls <= 100_000_000, "-n {urls} is more than a demonstration can hold; the limit is 100M");
    writeln!(report::stdout(), "{} URLs of {URL} bytes: which have we seen?\n", report::grouped(urls))?;
    ladder(urls)?;
    shell(urls)?;
    writeln!(report::stdout(), "Next: mayhap --help, mayhap calc -n 40M -p 1in1M, mayhap families")?;
    Ok(YES)
}

fn ladder(count: u64) -> Result<()> {
    let urls = |first: u64, count: u64| {
        let mut texts = Texts::default();
        (first..first + count).for_each(|index| texts.push(|out| write_url(SEED, index, URL, out)));
        Keys::Texts(texts)
    };
    let asked = count.min(500_000);
    let drawn = Drawn { members: urls(0, count), absent: urls(ABSENT, asked), distinct: count, asked };
    let mut rows = baselines(&drawn, Hashing::default())?;
    rows.push(with_bloom(&drawn, FPR)?);
    ensure!(rows.iter().all(|row| row.false_negatives == 0), "a URL that is in was denied");
    // What the demonstration does not run is computed.
    let computed = |name: &str, bytes: u64| {
        let per_key = report::short(bytes as f64 / count as f64);
        let (none, not_run) = ("none".to_string(), "not run".to_string());
        vec![name.to_string(), report::bytes(bytes), per_key, not_run.clone(), none, not_run]
    };
    let measured: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.name.to_string(),
                report::bytes(row.bytes),
                report::short(row.bytes as f64 / count as f64),
                format!("{:.2} s", row.insert_ns * 1e-9 * count as f64),
                percent_or_none(row.fpr_predicted),
                percent_or_none(row.false_positives.rate().unwrap_or(0.0)),
            ]
        })
        .collect();
    // The ids before the bitmap and the filter.
    let (sets, bits) = measured.split_at(measured.len() - 2);
    let cells: Vec<Vec<String>> = [
        &[computed(DATABASE, database_bytes(count, URL as u64))],
        sets,
        &[computed(IDS, ids_bytes(count))],
        bits,
    ]
    .concat();
    report::print_table(
        &["structure", "memory", "bytes/key", "fill", "error expected", "measured"],
        &cells,
        &[],
    )?;
    writeln!(
        report::stdout(),
        "\nIf the exact set fits your memory, use the exact set. If not, that is what the last line is for.\n"
    )?;
    Ok(())
}

fn percent_or_none(rate: f64) -> String {
    if rate < 1e-12 { "none".into() } else { report::percent(rate) }
}

/// The same from the shell, with files.
fn shell(count: u64) -> Result<()> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let here = folder.path();
    write_file(&here.join("urls.txt"), 0..count)?;
    write_file(&here.join("other.txt"), ABSENT..ABSENT + count.min(1_000_000))?;
    write_file(&here.join("crawl.txt"), Stream::new(SEED, count, REPEATS))?;
    let lines = [
        "mayhap build -p 1% -o urls.mayhap urls.txt",
        "mayhap info urls.mayhap",
        "mayhap check -c urls.mayhap urls.txt",
        "mayhap check -c urls.mayhap other.txt",
        "mayhap test urls.mayhap urls.txt --absent other.txt",
        "mayhap dedup --stats crawl.txt > fresh.txt",
    ];
    writeln!(
        report::stdout(),
        "urls.txt: all of them; other.txt: URLs that are not in it; crawl.txt: 30% repeats\n"
    )?;
    for line in lines {
        writeln!(report::stdout(), "$ {line}")?;
        let started = Instant::now();
        let status = execute(here, line)?;
        ensure!(status, "{line}: failed");
        writeln!(report::stdout(), "  ({:.2} s)\n", started.elapsed().as_secs_f64())?;
    }
    let (crawl, fresh) = (lines_of(&here.join("crawl.txt"))?, lines_of(&here.join("fresh.txt"))?);
    let distinct = Stream::new(SEED, count, REPEATS).distinct();
    writeln!(
        report::stdout(),
        "crawl.txt has {} lines, fresh.txt {}: exactly the {} different ones\n",
        report::grouped(crawl),
        report::grouped(fresh),
        report::grouped(distinct),
    )?;
    ensure!(fresh == distinct, "dedup printed {fresh} lines instead of {distinct}");
    Ok(())
}

fn write_file(path: &Path, indexes: impl Iterator<Item = u64>) -> Result<()> {
    let name = || path.display().to_string();
    let mut out = BufWriter::with_capacity(1 << 18, File::create(path).with_context(name)?);
    let mut line = Vec::new();
    for index in indexes {
        line.clear();
        write_url(SEED, index, URL, &mut line);
        line.push(b'\n');
        out.write_all(&line).with_context(name)?;
    }
    out.flush().with_context(name)
}

fn lines_of(path: &Path) -> Result<u64> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    Ok(memchr::memchr_iter(b'\n', &bytes).count() as u64)
}

/// Runs one line as a shell would: this program, its words, and perhaps a file for its output.
fn execute(folder: &Path, line: &str) -> Result<bool> {
    std::io::stdout().flush()?;
    let (words, output) = match line.split_once(" > ") {
        Some((words, output)) => (words, Some(output)),
        None => (line, None),
    };
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(words.split(' ').skip(1)).current_dir(folder);
    if let Some(output) = output {
        command.stdout(Stdio::from(File::create(folder.join(output))?));
    }
    // Where nothing matches, `check` says so by a status of 1.
    let nothing_matched = words.starts_with("mayhap check").then_some(1);
    let code = command.status()?.code();
    Ok(code == Some(0) || (code.is_some() && code == nothing_matched))
}
