//! The memory of this process and of those it starts: how much it is, and that the allocator hands it out the same way
//! to everybody.

use std::env;
use std::fs;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

/// The variables of glibc that fix its thresholds. Unless they are set, each large block that is freed
/// raises them, and whoever comes later gets used pages where the first got fresh ones: neither the times
/// nor the growth of the process would compare. Other allocators do not look at them.
const FIXED: [(&str, &str); 2] = [
    // Blocks of 1 MiB and more come from the system and go back to it, as in a program with one filter.
    ("MALLOC_MMAP_THRESHOLD_", "1048576"),
    // Smaller ones are kept and used again.
    ("MALLOC_TRIM_THRESHOLD_", "67108864"),
];

/// Set in the process that [`run_steady`] starts.
const MARK: &str = "MAYHAP_BENCH_STEADY";

/// Whether this process was started with a steady allocator.
pub(crate) fn is_steady() -> bool {
    env::var_os(MARK).is_some()
}

/// Runs this program with the same arguments and a steady allocator, and waits for it.
///
/// Another process, because the variables are read before `main`, and because the programs that
/// `build-file` and `dedup` start must not inherit them.
pub(crate) fn run_steady() -> Result<()> {
    let mut command = Command::new(env::current_exe()?);
    let status = command.args(env::args_os().skip(1)).envs(FIXED).env(MARK, "1").status()?;
    ensure!(status.success(), "the comparison of filters failed: {status}");
    Ok(())
}

/// The resident memory of this process in bytes, where the system tells.
pub(crate) fn resident() -> Option<u64> {
    status("self", "VmRSS:")
}

/// By how many bytes some work lets the resident memory of this process grow at most; `None` where the system does not tell.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, Option<u64>) {
    // Linux forgets the highest mark when it is told this number; without a mark of its own the work tells nothing.
    let forgotten = fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = resident().filter(|_| forgotten);
    let result = work();
    (result, status("self", "VmHWM:").zip(before).map(|(highest, before)| highest.saturating_sub(before)))
}

/// How often the memory of a program is looked at.
const EVERY: Duration = Duration::from_millis(5);

/// Does some work while a program runs that was started, such as waiting for it; with the most anonymous memory that the
/// program was seen to hold, where the system tells.
///
/// Another thread looks, so that the end of the work is not seen late.
pub(crate) fn peak_during<T>(process: u32, work: impl FnOnce() -> T) -> (T, Option<u64>) {
    let process = process.to_string();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = None;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(status(&process, "RssAnon:"));
                thread::park_timeout(EVERY);
            }
            peak
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        watch.thread().unpark();
        (result, watch.join().unwrap_or(None))
    })
}

/// Waits for a program that was started; the most anonymous memory that it was seen to hold, where the system tells.
pub(crate) fn peak_until_end(child: &mut Child) -> Result<Option<u64>> {
    let (ended, peak) = peak_during(child.id(), || child.wait());
    let ended = ended?;
    ensure!(ended.success(), "the program failed: {ended}");
    Ok(peak)
}

/// A field, in bytes, of what Linux tells about a process.
fn status(process: &str, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib << 10)
}
