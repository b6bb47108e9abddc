//! `mayhap sort`: integers, sorted and deduplicated by a bitmap.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use mayhap::Bitmap;
use roaring::RoaringTreemap;

use crate::args::{Common, KeyArgs};
use crate::input::Buffer;
use crate::keys::{Kind, number};
use crate::same_file::must_not_be_output;
use crate::{YES, report};

/// Sort unsigned integers and drop repeats, with a bitmap
///
/// Dense integers take one bit per possible integer, sparse ones a compressed bitmap.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap sort ids.txt\n  mayhap sort --reverse numbers.txt\n  \
mayhap sort --count ids.txt numbers.txt")]
pub(crate) struct Args {
    /// Files with integers, one a line; none or - is standard input
    files: Vec<PathBuf>,
    /// Largest first
    #[arg(short, long)]
    reverse: bool,
    /// Print only the number of distinct integers
    #[arg(short, long)]
    count: bool,
    #[command(flatten)]
    keys: KeyArgs,
}

/// A dense bitmap of up to 16 MiB is used without further thought.
const ALWAYS_DENSE: u64 = 1 << 27;
/// Beyond that, one integer in 64 must be there for it to be the smaller one.
const DENSE: u64 = 64;

/// The number of integers that go into a compressed bitmap between two checks of the memory.
const AT_A_TIME: u64 = 1 << 16;
/// What an integer takes of a compressed bitmap at the most: if it is far from all others, a node of a tree, a list of
/// containers and a container are made for it, each with room for more.
const MOST_BYTES: u64 = 512;

/// The compressed bitmap takes its memory piece by piece, and ends the process if there is none. So as much as it may take
/// next is asked for before, and given back.
fn must_be_granted(bytes: u64, integers: u64) -> Result<()> {
    let granted = usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if !granted {
        bail!(
            "after {} different integers, the system grants no more memory for them; sort parts of the input, or use \
             `sort -n -u`",
            report::grouped(integers),
        );
    }
    Ok(())
}

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
                // Compressed it has the same bytes at the most, and a few more for each container of 8 KiB.
                must_be_granted(bitmap.universe() / 8 / 64 * 65 + AT_A_TIME * MOST_BYTES, *ones)?;
                let set = RoaringTreemap::from_sorted_iter(bitmap.iter()).context("a bitmap is sorted")?;
                *self = Self::Sparse { set, ones: *ones };
            }
        }
        match self {
            Self::Dense { bitmap, ones } => *ones += u64::from(bitmap.set(integer)?),
            Self::Sparse { set, ones } => {
                if set.insert(integer) {
                    *ones += 1;
                    if ones.is_multiple_of(AT_A_TIME) {
                        must_be_granted(AT_A_TIME * MOST_BYTES, *ones)?;
                    }
                }
            }
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
    if args.keys.kind() != Kind::Bytes || args.keys.selector().url.is_some() {
        bail!("sort reads unsigned decimal integers; leave out --as, --url and --strip-query");
    }
    let mut inputs = args.keys.inputs(&args.files);
    inputs.numbered = true;
    // Spaces around an integer are forgiven, and so are carriage returns.
    inputs.warns_of_carriage_returns = false;
    must_not_be_output(Some(&inputs), [])?;
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
