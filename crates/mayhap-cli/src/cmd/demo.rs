//! `mayhap demo`: the first impression, on data that it makes itself.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use hashbrown::HashSet;
use mayhap::bits::Bitmap;
use mayhap::filters::exact::DigestSet;
use mayhap::probing::reduce;
use mayhap::{Bloom, Hashing, math};
use mayhap_eval::{ABSENT, Proportion, Stream, write_url};

use crate::cmd::calc::BITMAP_BITS_PER_KEY;
use crate::{YES, numbers, report};

/// Show what a filter is worth: from a hash set to a Bloom filter, then build, check and dedup
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Use so many URLs
    #[arg(short = 'n', long, value_name = "N", value_parser = numbers::capacity, default_value = "2M")]
    urls: u64,
}

/// The fastest hash set at hand.
type Set<K> = HashSet<K, foldhash::fast::FixedState>;

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

/// All URLs one after the other.
struct Urls(Vec<u8>);

impl Urls {
    fn new(first: u64, count: u64) -> Self {
        let mut bytes = Vec::with_capacity(count as usize * URL);
        (first..first + count).for_each(|index| write_url(SEED, index, URL, &mut bytes));
        Self(bytes)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.chunks_exact(URL)
    }
}

struct Row {
    name: &'static str,
    bytes: u64,
    seconds: f64,
    expected: f64,
    wrong: Proportion,
}

/// One step: fill it, look at its size, ask for URLs that are not in.
fn step<S>(
    name: &'static str,
    expected: f64,
    urls: &Urls,
    absent: &Urls,
    fill: impl FnOnce(&Urls) -> S,
    bytes: impl FnOnce(&S) -> u64,
    contains: impl Fn(&S, &[u8]) -> bool,
) -> Result<Row> {
    let started = Instant::now();
    let set = black_box(fill(urls));
    let seconds = started.elapsed().as_secs_f64();
    ensure!(urls.iter().take(100_000).all(|url| contains(&set, url)), "{name} denied a URL that is in");
    let hits = absent.iter().filter(|url| contains(&set, url)).count() as u64;
    let wrong = Proportion { hits, trials: absent.iter().count() as u64 };
    Ok(Row { name, bytes: bytes(&set), seconds, expected, wrong })
}

fn ladder(count: u64) -> Result<()> {
    let urls = Urls::new(0, count);
    let absent = Urls::new(ABSENT, count.min(500_000));
    let hashing = Hashing::default();
    let bits = count * BITMAP_BITS_PER_KEY;
    let bloom = Bloom::new(count, FPR)?;
    let bitmap = Bitmap::zeroed(bits)?;
    let digest_160 = |url: &[u8]| -> [u32; 5] {
        let (first, more) = (hashing.digest(url), Hashing::Xxh3 { seed: 1 }.digest(url).a as u32);
        [first.a as u32, (first.a >> 32) as u32, first.b as u32, (first.b >> 32) as u32, more]
    };
    let rows = [
        step(
            "hash set of strings",
            0.0,
            &urls,
            &absent,
            |urls| urls.iter().map(Box::<[u8]>::from).collect::<Set<_>>(),
            |set| set.allocation_size() as u64 + count * URL as u64,
            |set, url| set.contains(url),
        )?,
        step(
            "hash set of 160-bit digests",
            0.0,
            &urls,
            &absent,
            |urls| urls.iter().map(digest_160).collect::<Set<_>>(),
            |set| set.allocation_size() as u64,
            |set, url| set.contains(&digest_160(url)),
        )?,
        step(
            "hash set of 128-bit digests",
            count as f64 / u128::MAX as f64,
            &urls,
            &absent,
            |urls| urls.iter().map(|url| hashing.digest(url)).collect::<DigestSet>(),
            |set| set.allocation_size() as u64,
            |set, url| set.contains(&hashing.digest(url)),
        )?,
        step(
            "hash set of 64-bit digests",
            math::hash_width_floor(count as f64, 64),
            &urls,
            &absent,
            |urls| urls.iter().map(|url| hashing.digest(url).a).collect::<Set<_>>(),
            |set| set.allocation_size() as u64,
            |set, url| set.contains(&hashing.digest(url).a),
        )?,
        step(
            "bitmap, one hash, 5 bits a key",
            math::one_hash_bitmap_fpr(bits, count as f64),
            &urls,
            &absent,
            |urls| {
                let mut bitmap = bitmap;
                for url in urls.iter() {
                    let _ = bitmap.set(reduce(hashing.digest(url).a, bits));
                }
                bitmap
            },
            |bitmap| bitmap.universe().div_ceil(8),
            |bitmap, url| bitmap.contains(reduce(hashing.digest(url).a, bits)),
        )?,
        step(
            "Bloom filter, 1%",
            bloom.fpr_at_capacity(),
            &urls,
            &absent,
            |urls| {
                let mut bloom = bloom;
                bloom.extend(urls.iter());
                bloom
            },
            |bloom| bloom.bits().div_ceil(8),
            |bloom, url| bloom.contains(url),
        )?,
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.name.to_string(),
                report::bytes(row.bytes),
                report::short(row.bytes as f64 / count as f64),
                format!("{:.2} s", row.seconds),
                percent_or_none(row.expected),
                percent_or_none(row.wrong.rate().unwrap_or(0.0)),
            ]
        })
        .collect();
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
    Ok(command.status()?.success())
}
