//! `mayhap hash`: what hash functions make of keys.

use std::ffi::OsString;
use std::io::Write;

use anyhow::{Context, Result};
use mayhap_eval::{HashFunction, hash_functions};
use serde_json::{Value, json};

use crate::keys::{Kind, Selector};
use crate::suggest::unknown;
use crate::{YES, report};

/// Print the hashes of keys: one line per function, its name, a tab and hexadecimal digits
///
/// The digits are those that the programs that use a function print: Murmur3 with its lowest byte first, as Guava does; MD5,
/// SHA and SipHash byte by byte; xxHash and all others as numbers. Seeds are 0, but for murmur2-32 (9747b28c, as RedisBloom has
/// it) and for SipHash, whose key is that of its published values, the bytes 0 to 15. With several keys each line ends
/// with a tab and the key.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  mayhap hash hello\n  mayhap hash hello world --hash murmur3-x86-32,md5\n  \
mayhap hash 42 --as u64 --hash xxh3-128 --json"
)]
pub(crate) struct Args {
    /// Keys, one after the other
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
    /// Only these functions, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = function, allow_hyphen_values = true)]
    hash: Vec<&'static HashFunction>,
    /// How the text becomes key bytes
    #[arg(long = "as", value_name = "KIND", value_enum, default_value_t)]
    kind: Kind,
    /// As JSON
    #[arg(long)]
    json: bool,
}

fn function(name: &str) -> Result<&'static HashFunction, String> {
    hash_functions().find(|function| function.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let names: Vec<&str> = hash_functions().map(|function| function.name).collect();
        unknown("hash function", name, &names)
    })
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let functions = if args.hash.is_empty() { hash_functions().collect() } else { args.hash.clone() };
    let selector = Selector { kind: args.kind, ..Selector::default() };
    let mut hashes = Vec::new();
    for key in &args.keys {
        let mut scratch = Vec::new();
        let record = key.as_encoded_bytes();
        let bytes = selector.key(record, &mut scratch).with_context(|| key.to_string_lossy().into_owned())?;
        hashes.extend(functions.iter().map(|&function| (key, function, function.hex(bytes))));
    }
    if args.json {
        let rows: Vec<Value> = hashes
            .iter()
            .map(|(key, function, hex)| {
                json!({ "key": key.to_string_lossy(), "hash": function.name, "bits": function.bits, "hex": hex })
            })
            .collect();
        report::print_json(&json!({ "hashes": rows }))?;
        return Ok(YES);
    }
    let mut out = report::stdout();
    for (key, function, hex) in &hashes {
        write!(out, "{}\t{hex}", function.name)?;
        if args.keys.len() > 1 {
            out.write_all(b"\t")?;
            out.write_all(&report::printed_name(key))?;
        }
        writeln!(out)?;
    }
    Ok(YES)
}
