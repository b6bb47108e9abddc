//! `mayhap sort`: integers, sorted and deduplicated by a bitmap.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use mayhap::bits::Bitmap;
use roaring::RoaringTreemap;

use crate::args::{Common, KeyArgs};
use crate::input::Buffer;
use crate::keys::{Kind, number};
use crate::same_file::must_not_be_output;
use crate::{YES, report};

/// Sort unsigned integers and drop repeats, with a bitmap
///
/// One bit per possible integer where they are dense, a compressed bitmap where they are sparse.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files with integers, one a line; none or - is standard input
    files: Vec<PathBuf>,
    /// Largest first
    #[arg(short, long)]
    reverse: bool,
    /// Print only how many different ones there are
    #[arg(short, long)]
    count: bool,
    #[command(flatten)]
    keys: KeyArgs,
}

/// A dense bitmap of up to 16 MiB is used without further thought.
const ALWAYS_DENSE: u64 = 1 << 27;
/// Beyond that, one integer in 64 must be there for it to be the smaller one.
const DENSE: u64 = 64;

enum Set {
    Dense { bitmap: Bitmap, ones: u64 },
    Sparse { set: RoaringTreemap, ones: u64 },
}

impl Set {
    fn new() -> Result<Self> {
        Ok(Self::Dense { bitmap: Bitmap::zeroed(1 << 16)?, ones: 0 })
    }

    fn insert(&mut self, integer: u64) -> Result<()> {
        if let Self::Dense { bitmap, ones } = self {
            let room = DENSE.saturating_mul(*ones).max(ALWAYS_DENSE);
            if integer >= bitmap.universe() && integer < room {
                bitmap.resize((integer + 1).next_power_of_two())?;
            } else if integer >= bitmap.universe() {
                let set = RoaringTreemap::from_sorted_iter(bitmap.iter()).context("a bitmap is sorted")?;
                *self = Self::Sparse { set, ones: *ones };
            }
        }
        match self {
            Self::Dense { bitmap, ones } => *ones += u64::from(bitmap.set(integer)?),
            Self::Sparse { set, ones } => *ones += u64::from(set.insert(integer)),
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        match self {
            Self::Dense { ones, .. } | Self::Sparse { ones, .. } => *ones,
        }
    }

    fn iter(&self) -> Box<dyn DoubleEndedIterator<Item = u64> + '_> {
        match self {
            Self::Dense { bitmap, .. } => Box::new(bitmap.iter()),
            Self::Sparse { set, .. } => Box::new(set.iter()),
        }
    }
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    if args.keys.kind != Kind::Bytes || args.keys.selector().url.is_some() {
        anyhow::bail!("sort reads unsigned decimal integers; leave out --as, --url and --strip-query");
    }
    let mut inputs = args.keys.inputs(&args.files);
    inputs.numbered = true;
    must_not_be_output(&inputs, [])?;
    let (selector, mut scratch) = (args.keys.selector(), Vec::new());
    let progress = common.progress("reading", &inputs);
    let mut set = Set::new()?;
    let (mut chunks, mut buffer) = (inputs.chunks(), Buffer::default());
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        for (index, record) in chunk.records().enumerate() {
            // `sort -n` forgives white space, also the carriage returns of other systems.
            let integer = selector
                .key(record, &mut scratch)
                .and_then(|text| number(text.trim_ascii(), "from 0 to 18446744073709551615"))
                .with_context(|| chunk.place(index))?;
            set.insert(integer)?;
        }
        buffer = chunk.bytes;
    }
    drop(progress);
    let mut out = BufWriter::with_capacity(1 << 16, report::stdout());
    if args.count {
        writeln!(out, "{}", set.len())?;
    } else {
        let end = [args.keys.terminator()];
        let mut print = |integer: u64| {
            write!(out, "{integer}")?;
            out.write_all(&end)
        };
        if args.reverse {
            set.iter().rev().try_for_each(&mut print)?;
        } else {
            set.iter().try_for_each(&mut print)?;
        }
    }
    out.flush()?;
    Ok(YES)
}
