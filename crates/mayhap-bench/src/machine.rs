//! What the figures were measured on.

use std::fs;
use std::process::Command;

/// Processor, caches, memory, system, compiler and the versions of the peers, on a few lines.
pub(crate) fn description() -> String {
    format!(
        "machine: {}, {} cores; {}; {} GiB of memory; instructions: {}\n\
         system:  {}; huge pages: {}; load when it started: {}\n\
         build:   {}; {}, for {}\n\
         peers:   {}",
        cpuinfo("model name"),
        std::thread::available_parallelism().map_or(0, usize::from),
        caches(),
        memory_gib(),
        instructions(),
        read("/proc/sys/kernel/osrelease"),
        huge_pages(),
        read("/proc/loadavg").split(' ').next().unwrap_or("unknown"),
        compiler(),
        if cfg!(debug_assertions) { "NOT A RELEASE BUILD" } else { "release" },
        target(),
        peers(),
    )
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or("unknown".to_owned(), |text| text.trim().to_owned())
}

fn cpuinfo(name: &str) -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpuinfo
        .lines()
        .find(|line| line.starts_with(name))
        .and_then(|line| line.split_once(':'))
        .map_or("unknown".to_owned(), |(_, value)| value.trim().to_owned())
}

/// `L1d 32K, L2 512K, L3 32768K`: of the first core.
fn caches() -> String {
    let mut found = Vec::new();
    for index in 0..8 {
        let of = |field: &str| {
            fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{field}"))
        };
        let (Ok(level), Ok(kind), Ok(size)) = (of("level"), of("type"), of("size")) else { continue };
        let letter = match kind.trim() {
            "Instruction" => continue,
            "Data" => "d",
            _ => "",
        };
        found.push(format!("L{}{letter} {}", level.trim(), size.trim()));
    }
    if found.is_empty() { format!("cache {}", cpuinfo("cache size")) } else { found.join(", ") }
}

fn memory_gib() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) >> 20
}

/// Those that filters care about.
fn instructions() -> String {
    let flags = cpuinfo("flags");
    let has = |name: &&str| flags.split(' ').any(|flag| flag == *name);
    let found: Vec<&str> = ["avx2", "avx512f", "bmi2", "aes"].into_iter().filter(has).collect();
    if found.is_empty() { "unknown".to_owned() } else { found.join(" ") }
}

/// The policy between the brackets: `always`, `madvise` or `never`.
fn huge_pages() -> String {
    let policies = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let chosen = policies.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(policies.clone(), |(policy, _)| policy.to_owned())
}

/// The compiler on the path, which under `cargo run` is the one that built this.
fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or("unknown compiler".to_owned(), |text| text.trim().to_owned())
}

/// The target, and whether it was compiled for this machine only.
fn target() -> String {
    let extra = if cfg!(target_feature = "avx2") { " with avx2" } else { " baseline" };
    format!("{}{extra}", std::env::consts::ARCH)
}

/// The libraries under test with the versions that were compiled in.
const PEERS: [&str; 13] = [
    "autoscale_cuckoo_filter",
    "bloomfilter",
    "cuckoofilter",
    "datasketches",
    "fastbloom",
    "foldhash",
    "growable-bloom-filter",
    "hashbrown",
    "jdb_xorf",
    "qfilter",
    "sbbf-rs-safe",
    "sux",
    "xorf",
];

fn peers() -> String {
    let lock = include_str!("../../../Cargo.lock");
    let version = |name: &str| {
        let entry = format!("name = \"{name}\"\nversion = \"");
        // Where several versions are in use, this crate has the newest; the file lists it last.
        let rest = &lock[lock.rfind(&entry)? + entry.len()..];
        rest.split('"').next()
    };
    let named = PEERS.map(|name| format!("{name} {}", version(name).unwrap_or("unknown")));
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_version() {
        let peers = peers();
        assert!(!peers.contains("unknown"), "{peers}");
    }
}
