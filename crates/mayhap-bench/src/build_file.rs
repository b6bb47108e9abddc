//! `mayhap build` from a file of lines, against `wc -l` plus one pass of xxh3-128 over the lines.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};
use mayhap_eval::{median, write_url};
use memchr::memchr_iter;
use xxhash_rust::xxh3::xxh3_128;

use crate::{Size, memory, programs};

/// 50 bytes with the newline.
const URL: usize = 49;

/// The bars: time of a build over time of the limit, and memory beyond the filter.
const TIMES: f64 = 2.5;
const MEMORY: u64 = 64 << 20;

pub(crate) fn run(size: Size) -> Result<()> {
    let lines = size.keys(10_000_000);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("urls.txt");
    write_lines(&file, lines)?;
    let binary = programs::mayhap()?;
    // A file system in memory, so that no sync is timed.
    let memory = Path::new("/dev/shm");
    let outputs = if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? };
    let output = outputs.path().join("urls.mayhap");

    println!(
        "mayhap build, {lines} lines of 50 bytes, 1%; median of {} interleaved runs",
        size.repetitions()
    );
    let (mut wc, mut hash, mut build, mut known, mut ratios) = (vec![], vec![], vec![], vec![], vec![]);
    let mut peak = 0;
    // The first round warms the page cache and does not count.
    for round in 0..=size.repetitions() {
        let counted =
            time(|| Ok(Command::new("wc").arg("-l").arg(&file).stdout(Stdio::null()).status()?.success()))?;
        let hashed = time(|| Ok(hash_lines(&file)? == lines))?;
        let started = Instant::now();
        let mut command = Command::new(&binary);
        let mut child = command.args(["build", "--quiet", "-o"]).arg(&output).arg(&file).spawn()?;
        peak = peak.max(memory::peak_until_end(&mut child)?.unwrap_or(0));
        let built = started.elapsed().as_secs_f64();
        let with_n = time(|| {
            let mut command = Command::new(&binary);
            command.args(["build", "--quiet", "-n", &lines.to_string(), "-o"]).arg(&output).arg(&file);
            Ok(command.status()?.success())
        })?;
        if round > 0 {
            wc.push(counted);
            hash.push(hashed);
            build.push(built);
            known.push(with_n);
            ratios.push(built / (counted + hashed));
        }
    }
    let filter = fs::metadata(&output)?.len();
    let of = |values: &mut Vec<f64>| median(values).unwrap_or(f64::NAN);
    println!("  wc -l                     {:.3} s", of(&mut wc));
    println!("  xxh3-128 over its lines   {:.3} s", of(&mut hash));
    println!("  mayhap build              {:.3} s", of(&mut build));
    println!("  mayhap build -n           {:.3} s", of(&mut known));
    println!("  ratio of build to the sum {:.2}  (bar: {TIMES})", of(&mut ratios));
    let (beyond, limit) = (peak.saturating_sub(filter) as f64 / 1048576.0, MEMORY >> 20);
    println!(
        "  peak anonymous memory     {:.1} MiB: the filter and {beyond:.1} MiB  (bar: {limit})\n",
        peak as f64 / 1048576.0
    );
    Ok(())
}

fn write_lines(path: &Path, lines: u64) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut line = Vec::new();
    for index in 0..lines {
        line.clear();
        write_url(1, index, URL, &mut line);
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(out.flush()?)
}

fn time(work: impl FnOnce() -> Result<bool>) -> Result<f64> {
    let started = Instant::now();
    ensure!(work()?, "a contender failed");
    Ok(started.elapsed().as_secs_f64())
}

/// The plainest right program: large reads, memchr, hash.
fn hash_lines(path: &Path) -> Result<u64> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 18];
    let (mut kept, mut lines, mut sum) = (0, 0, 0u128);
    loop {
        let read = file.read(&mut buffer[kept..])?;
        if read == 0 {
            break;
        }
        let filled = kept + read;
        let mut start = 0;
        for end in memchr_iter(b'\n', &buffer[..filled]) {
            sum ^= xxh3_128(&buffer[start..end]);
            start = end + 1;
            lines += 1;
        }
        buffer.copy_within(start..filled, 0);
        kept = filled - start;
    }
    black_box(sum);
    Ok(lines)
}
