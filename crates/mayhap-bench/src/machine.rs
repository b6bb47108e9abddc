//! What the figures were measured on.

use std::fs;

/// Processor, cores, caches, memory, page size policy: one line.
pub(crate) fn description() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        cpuinfo
            .lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split_once(':'))
            .map_or("unknown".to_string(), |(_, value)| value.trim().to_string())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: u64 = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0);
    format!(
        "{}, {cores} cores, {} GiB of memory, cache {}",
        field("model name"),
        kib >> 20,
        field("cache size")
    )
}
