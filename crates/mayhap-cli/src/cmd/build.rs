//! `mayhap build`: a filter file from keys.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use mayhap::interop::{Format, HashRule, Making, go};
use mayhap::sizes::{DEFAULT_FPR, STARTING_CAPACITY};
use mayhap::{
    AnyFilter, CountingRule, Digest, FAMILIES, Family, Full, Guarantee, Hashing, Insertion, Layout, Limit,
    Make, MakeOfTwo, OutOfMemory, Report, Spec, SpecError, Summing, family,
};
use mayhap_store::Spool;
use serde_json::{Value, json};

use crate::YES;
use crate::args::{Common, KeyArgs};
use crate::cmd::add::{check_all, check_kind, insert_files};
use crate::distinct::Distinct;
use crate::except::{self, Excepted};
use crate::formats::{self, FileFormat, write, write_as};
use crate::input::{Buffer, Inputs};
use crate::keys::{Kind, Selector};
use crate::known_keys;
use crate::numbers;
use crate::output::{Target, is_stdout};
use crate::report;
use crate::same_file::must_not_be_output;
use crate::secret::{ForBuild, SecretArgs};
use crate::spelling::warn_of_loss;
use crate::suggest::unknown;

/// Build a filter file from keys
///
/// The number of keys need not be known: files are counted first, streams are hashed first. The family and size that were
/// chosen are printed. A filter that is built larger than needed (-n) with --foldable can be shrunk later by `mayhap fold`,
/// without its keys.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  mayhap build -o block.mayhap block.txt\n  \
cat urls.txt | mayhap build -p 1e-4 -o urls.mayhap\n  mayhap build --fastest -o urls.mayhap urls.txt\n  mayhap build --counts -o hits.mayhap -d' ' -k1 access.log\n  \
mayhap build --removable -p 0.1% -o urls.mayhap urls.txt\n  \
mayhap build --label allow=allow.txt --label block=block.txt -o hosts.mayhap\n  \
tail -f access.log | mayhap build --grow -o seen.mayhap\n  \
mayhap build --static -p 0.4% -o urls.mayhap urls.txt\n  \
cat urls.txt | mayhap build --static --memory 512MiB -o urls.mayhap\n  \
mayhap build --smallest -p 0.1% -o urls.mayhap urls.txt\n  \
mayhap build --universe all.txt -o old.mayhap old.txt\n  mayhap build --exact --as u64 -o ids.mayhap ids.txt")]
pub(crate) struct Args {
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the output even if it is not a filter. Key files are never replaced
    #[arg(long)]
    force: bool,
    /// Files with keys, one a line; none or - is standard input
    files: Vec<PathBuf>,
    /// Number of keys [default: as many as there are]
    #[arg(short = 'n', long, value_name = "N", value_parser = numbers::capacity, allow_hyphen_values = true)]
    capacity: Option<u64>,
    /// False-positive rate at capacity [default: 1%]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = numbers::rate, allow_hyphen_values = true)]
    fpr: Option<f64>,
    /// Number of bits; with --to go and --probes, as its New(m, k) takes it
    #[arg(long, value_name = "BITS", value_parser = numbers::bits, allow_hyphen_values = true)]
    bits: Option<u64>,
    /// Number of probes per key
    #[arg(long, value_name = "K", value_parser = numbers::probes, allow_hyphen_values = true)]
    probes: Option<u32>,
    /// Family; `mayhap families` lists them [default: bloom]
    #[arg(long, value_name = "NAME", value_parser = family_name)]
    family: Option<&'static Family>,
    /// No errors: an exact set
    ///
    /// The family exact; with --as u64 bitmap or roaring, by density.
    #[arg(long, conflicts_with = "family")]
    exact: bool,
    /// The fastest filter: blocked in the layout fastest
    #[arg(long, conflicts_with_all = ["family", "exact", "layout"])]
    fastest: bool,
    /// Count occurrences, for `mayhap count`: spectral
    #[arg(long, conflicts_with_all = ["family", "exact", "fastest", "layout"])]
    counts: bool,
    /// Counting rule of the family spectral: minimum-selection (keys can be removed), minimal-increase (fewer
    /// wrong counts) or recurring-minimum (the smallest errors, 75% more memory) [default: minimal-increase]
    #[arg(long, value_name = "NAME", value_parser = rule_name)]
    counting_rule: Option<CountingRule>,
    /// Bits per counter: 2 to 16 in the family counting [default: 4], 2 to 8 in dleft [default: 2], 4 to 32
    /// in spectral [default: as many as each needs], 2 to 16 in the families shifting [default: none, and no changes]
    #[arg(long, value_name = "BITS", value_parser = numbers::counter_bits, allow_hyphen_values = true)]
    counter_bits: Option<u32>,
    /// Largest count of the family shifting-multiplicity: 1 to 57 [default: 57]
    #[arg(long, value_name = "N", value_parser = numbers::max_count, allow_hyphen_values = true)]
    max_count: Option<u32>,
    /// Keys can be removed: cuckoo
    ///
    /// With --counts: spectral by minimum-selection.
    #[arg(long, conflicts_with_all = ["family", "exact", "fastest"])]
    removable: bool,
    /// The filter grows with its keys: expanding
    ///
    /// -n is the number of keys that it has room for at first [default: 1024].
    #[arg(long, conflicts_with_all = ["family", "exact", "fastest", "counts", "static_"])]
    grow: bool,
    /// Number of doublings through which the families expanding and table keep their rate [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=48))]
    doublings: Option<u32>,
    /// Label of the keys of FILE, for `mayhap label`: spatial; repeatable
    ///
    /// A later label outranks an earlier one: a key of both files has the later one. Two sets that do not change also fit
    /// --family shifting-association, which tells a key of both.
    #[arg(long, value_name = "NAME=FILE", value_parser = name_and_file, conflicts_with_all = ["files", "exact", "fastest", "counts", "removable"])]
    label: Vec<(String, PathBuf)>,
    /// Capacity of each layer of the family scalable, as a multiple of the one before; with 0 the filter does not grow, and
    /// a full one is an error [default: 2]
    #[arg(long, value_name = "FACTOR", value_parser = numbers::growth, allow_hyphen_values = true)]
    growth: Option<u32>,
    /// Rate of each layer of the family scalable, as a multiple of that of the one before [default: 0.85]
    #[arg(long, value_name = "FACTOR", value_parser = numbers::tightening, allow_hyphen_values = true)]
    tightening: Option<f64>,
    /// The set never changes: fuse, small and fast
    #[arg(long = "static", conflicts_with_all = ["family", "exact", "fastest", "counts", "removable"])]
    static_: bool,
    /// The set never changes, smallest filter: ribbon
    #[arg(long, conflicts_with_all = ["family", "exact", "fastest", "counts", "removable", "grow", "static_"])]
    smallest: bool,
    /// All other keys that are looked up: universe, no error
    ///
    /// FILE has all other keys that will be looked up, or all keys that exist: no answer about any of them is wrong. -p is
    /// then the false-positive rate of keys that are in neither file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["exact", "fastest", "counts", "removable", "grow", "static_", "smallest", "label"])]
    universe: Option<PathBuf>,
    /// Memory limit for building, such as 512MiB
    ///
    /// Includes hashed keys and the filter; keys beyond it go to temporary files (TMPDIR). For families that are built
    /// from all keys at once: --static, --smallest, --universe [default: no limit].
    #[arg(long, value_name = "SIZE", value_parser = numbers::size, allow_hyphen_values = true)]
    memory: Option<u64>,
    /// Layout, if the family has several: compact or fastest [default: compact, of cuckoo, fuse and ribbon
    /// fastest]
    #[arg(long, value_name = "NAME", value_parser = layout_name, conflicts_with = "exact")]
    layout: Option<Layout>,
    /// Round the size up, by at most 1%, so that `mayhap fold` can shrink the filter
    #[arg(long)]
    foldable: bool,
    /// Hash seed; only filters of the same seed merge
    #[arg(long, value_name = "SEED", value_parser = numbers::seed, default_value = "0")]
    seed: u64,
    /// Hash with a new secret, written to OUTPUT.key
    ///
    /// For keys that an attacker may choose. The secret comes from the random generator of the operating system. It is
    /// written to OUTPUT.key, readable by its owner only, or to the file of --key-file if that does not exist yet. An
    /// existing key file is used with --key-file and never overwritten. Keep the secret: without it no lookup is possible.
    #[arg(long, conflicts_with = "seed")]
    keyed: bool,
    #[command(flatten)]
    secret: SecretArgs,
    /// How keys become digests: by the seed or the secret.
    #[arg(skip)]
    hashing: Hashing,
    /// Exceptions: the keys of FILE are answered no, exactly
    ///
    /// Known false positives, or whatever must not be taken for a key of the set. They are selected from FILE as the keys
    /// are; a key that is in the set as well is an error. A later `mayhap add` of one drops the exception. Each takes 16
    /// bytes.
    #[arg(long, alias = "allow", value_name = "FILE")]
    except: Option<PathBuf>,
    /// Hash rule of another program, in a mayhap file: guava, go, dcso, spark, redisbloom, redisbloom-cuckoo,
    /// bloomfilter-crate or sbbf. `mayhap convert` makes the program's file of it
    #[arg(
        long, value_name = "NAME", value_parser = formats::makeable, help_heading = "Files of other programs",
        conflicts_with_all = NOT_FOR_OTHERS
    )]
    format: Option<FileFormat>,
    /// Write a file of another program, by its rules; the names are those of --format, go-json and go-gob
    #[arg(
        long, value_name = "NAME", value_parser = formats::makeable, help_heading = "Files of other programs",
        conflicts_with_all = NOT_FOR_OTHERS
    )]
    to: Option<FileFormat>,
    /// Version of the program: of guava before 33.4 with other probes for few keys, before 17 by its first
    /// strategy; of spark before 4.1 in its first version; of redisbloom before 8 at rates above 25% [default: the newest]
    #[arg(long, value_name = "VERSION", value_parser = numbers::version, help_heading = "Files of other programs")]
    peer_version: Option<(u32, u32)>,
    /// Hash function of the keys, where the program leaves it open: xxh64 (runtime filters of Spark's SQL)
    #[arg(long, value_name = "NAME", value_parser = formats::hash_rule, help_heading = "Files of other programs")]
    hash: Option<HashRule>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

/// What other programs' filters do not have.
const NOT_FOR_OTHERS: [&str; 21] = [
    "family",
    "exact",
    "fastest",
    "counts",
    "counting_rule",
    "counter_bits",
    "max_count",
    "removable",
    "grow",
    "doublings",
    "label",
    "tightening",
    "static_",
    "smallest",
    "universe",
    "memory",
    "layout",
    "foldable",
    "keyed",
    "key_file",
    "except",
];

/// The family of this name.
pub(crate) fn family_name(name: &str) -> Result<&'static Family, String> {
    family(name).ok_or_else(|| {
        let names: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
        unknown("family", name, &names)
    })
}

fn name_and_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.into(), file.into())),
        _ => Err(format!("{text:?} is not NAME=FILE, such as block=bad.txt")),
    }
}

fn layout_name(name: &str) -> Result<Layout, String> {
    Layout::ALL
        .into_iter()
        .find(|layout| layout.name() == name)
        .ok_or_else(|| unknown("layout", name, &Layout::ALL.map(Layout::name)))
}

fn rule_name(name: &str) -> Result<CountingRule, String> {
    CountingRule::ALL
        .into_iter()
        .find(|rule| rule.name() == name)
        .ok_or_else(|| unknown("counting rule", name, &CountingRule::ALL.map(CountingRule::name)))
}

/// Which family, as far as the arguments say.
enum Choice {
    Family(&'static Family),
    /// An exact set of integers: bitmap or roaring, when the integers are known.
    Integers,
}

impl Args {
    fn target(&self) -> Target<'_> {
        Target { path: &self.output, force: self.force }
    }

    fn choice(&self) -> Choice {
        match self.family {
            Some(family) => Choice::Family(family),
            None if self.fastest => Choice::Family(mayhap::Blocked::FAMILY),
            None if self.counts => Choice::Family(mayhap::Spectral::FAMILY),
            None if !self.label.is_empty() => Choice::Family(mayhap::Spatial::FAMILY),
            None if self.static_ => Choice::Family(mayhap::Fuse::FAMILY),
            None if self.smallest => Choice::Family(mayhap::Ribbon::FAMILY),
            None if self.universe.is_some() => Choice::Family(mayhap::Universe::FAMILY),
            None if self.grow => Choice::Family(mayhap::Expanding::FAMILY),
            None if self.removable => Choice::Family(mayhap::Cuckoo::FAMILY),
            None if self.exact && self.keys.kind() == Kind::U64 => Choice::Integers,
            None if self.exact => Choice::Family(mayhap::Exact::FAMILY),
            None => Choice::Family(mayhap::Bloom::FAMILY),
        }
    }

    /// What is asked for, with the number of keys that is known by now.
    fn spec(&self, capacity: u64) -> Spec {
        let mut spec = Spec::new().with_hashing(self.hashing);
        if self.foldable {
            spec = spec.foldable();
        }
        // Two sets have no number to choose.
        let is_of_two =
            matches!(self.choice(), Choice::Family(family) if matches!(family.make, Make::OfTwo(_)));
        if !self.label.is_empty() && !is_of_two {
            spec = spec.with_areas(u32::try_from(self.label.len()).unwrap_or(u32::MAX));
        }
        // Rate, bits and probes say how many keys it is made for, however many there are.
        let sized = self.fpr.is_some() && self.bits.is_some() && self.probes.is_some();
        if let Some(capacity) = self.capacity.or((!sized).then_some(capacity.max(1))) {
            spec = spec.with_capacity(capacity);
        }
        if let Some(bits) = self.bits {
            spec = spec.with_bits(bits);
        }
        if let Some(probes) = self.probes {
            spec = spec.with_probes(probes);
        }
        if let Some(layout) = self.layout.or(self.fastest.then_some(Layout::Fastest)) {
            spec = spec.with_layout(layout);
        }
        let removable = (self.counts && self.removable).then_some(CountingRule::MinimumSelection);
        if let Some(rule) = self.counting_rule.or(removable) {
            spec = spec.with_counting_rule(rule);
        }
        if let Some(bits) = self.counter_bits {
            spec = spec.with_counter_bits(bits);
        }
        if let Some(growth) = self.growth {
            spec = spec.with_growth(growth);
        }
        if let Some(tightening) = self.tightening {
            spec = spec.with_tightening(tightening);
        }
        if let Some(count) = self.max_count {
            spec = spec.with_max_count(count);
        }
        if let Some(doublings) = self.doublings {
            spec = spec.with_doublings(doublings);
        }
        match self.fpr {
            Some(fpr) => spec.with_fpr(fpr),
            // The rate of unknown keys follows from the others.
            None if self.universe.is_some() => spec,
            None if self.bits.is_none() => spec.with_fpr(DEFAULT_FPR),
            None => spec,
        }
    }
}

impl Args {
    /// The files with keys that are read besides the inputs.
    fn others_read(&self) -> impl Iterator<Item = &Path> {
        self.label
            .iter()
            .map(|(_, file)| file)
            .chain(&self.universe)
            .chain(&self.except)
            .map(PathBuf::as_path)
    }
}

pub(crate) fn run(args: &Args, common: &Common) -> Result<u8> {
    if args.secret.is_given() && args.seed != 0 {
        return Err(anyhow!(
            "--seed and --key-file: keys are hashed under a seed or under a secret; leave one of them out"
        ));
    }
    let format = args.format.or(args.to).unwrap_or(FileFormat::Mayhap);
    if let FileFormat::Foreign(format) = format {
        return build_foreign(args, format, common);
    }
    if let Some(FileFormat::Foreign(to)) = args.to {
        return Err(anyhow!(
            "--format mayhap and --to {}: a filter by our rules cannot become a file of that format; leave --format out",
            to.name
        ));
    }
    if args.hash.is_some() || args.peer_version.is_some() {
        return Err(anyhow!(
            "--hash and --peer-version are for --format and --to: the rules of other programs"
        ));
    }
    let secret = ForBuild::new(&args.output, args.keyed, &args.secret)?;
    let mut args = args.clone();
    args.hashing = secret.hashing().unwrap_or(Hashing::Xxh3 { seed: args.seed });
    // Messages name their lines: of exceptions, and of a key that is in too often.
    args.keys.numbered =
        args.except.is_some() || matches!(args.choice(), Choice::Family(family) if takes_few_copies(family));
    build(&args, &secret, common)
}

/// A filter by the rules of another program, in a file of ours or of its own.
fn build_foreign(args: &Args, format: &'static Format, common: &Common) -> Result<u8> {
    if args.secret.is_given() {
        return Err(anyhow!(
            "--key-file: filters of the format {} have no secret; leave it out",
            format.name
        ));
    }
    must_not_be_output(Some(&args.keys.inputs(&args.files)), [])?;
    if let Some(path) = args.files.iter().find(|path| is_same_file(path, &args.output)) {
        return Err(anyhow!("{}: is both a file with keys and the file to write", path.display()));
    }
    let making = |capacity: u64| Making {
        version: args.peer_version,
        seed: args.seed,
        growth: args.growth,
        reading: formats::reading(args.keys.kind(), args.hash),
        ..Making::new(args.capacity.unwrap_or(capacity.max(1)), args.fpr.unwrap_or(DEFAULT_FPR))
    };
    // Nonsense is refused before a long input is read.
    formats::must_leave_open(format, args.hash)?;
    if args.peer_version.is_some() && !matches!(format.name, "guava" | "spark" | "redisbloom") {
        return Err(anyhow!(
            "--peer-version: filters of the format {} are the same in all versions that are known; leave it out",
            format.name
        ));
    }
    let size = go_size(args, format)?;
    let make = |keys: u64| match size {
        Some((bits, probes)) => go::new(bits, probes),
        None => format.make(&making(keys)),
    };
    let small = format.make(&Making { capacity: 1, ..making(1) });
    if let (Some(FileFormat::Foreign(to)), Ok(small)) = (args.to, small)
        && to.write(&*small).is_err()
    {
        return Err(anyhow!(
            "--format {0} and --to {1}: a filter by the rules of {0} cannot become a file of the format {1}; leave \
             --format out",
            format.name,
            to.name
        ));
    }
    let probe = format.make(&making(1000))?;
    let granted = probe.report().fpr_asked;
    if let Some(asked) = args.fpr.filter(|&asked| asked < granted) {
        return Err(anyhow!(
            "-p {}: filters of the format {} have a rate of {}, whatever is requested; leave it out",
            report::short(asked),
            format.name,
            report::rate(granted),
        ));
    }
    check_kind(&args.output, &*probe, &args.keys)?;
    let selector = args.keys.selector_for(&*probe);
    drop(probe);
    let to = args.to.unwrap_or(FileFormat::Mayhap);
    args.target().must_take(to)?;
    let mut inputs = args.keys.inputs(&args.files);
    let keys = match args.capacity {
        Some(_) => 0,
        None if size.is_some() => 0,
        None => {
            inputs.set_aside()?;
            check_all(&inputs, &selector, common)?
        }
    };
    let mut filter = make(keys)?;
    insert_files(&mut *filter, &inputs, &selector, common)?;
    let filter = args.keys.describe(filter);
    common.say_if_locked(&args.output);
    write_as(to, args.target(), &*filter, Summing::Payload)?;
    if to != FileFormat::Mayhap {
        warn_of_loss(common, &args.output, to.name(), &*filter);
    }
    describe(args, None, common, &*filter)?;
    Ok(YES)
}

/// The bits and probes of Go's `New`, which no other program's filters are made of.
fn go_size(args: &Args, format: &Format) -> Result<Option<(u64, u64)>> {
    let is_of_go = [&go::FORMAT, &go::JSON, &go::GOB].contains(&format);
    match (args.bits, args.probes) {
        (None, None) => Ok(None),
        _ if !is_of_go => Err(anyhow!(
            "--bits and --probes: filters of the format {} are made of a number of keys (-n) and a rate (-p), those of go \
             alone of bits and probes; leave them out",
            format.name
        )),
        (Some(_), Some(_)) if args.capacity.is_some() || args.fpr.is_some() => Err(anyhow!(
            "--bits and --probes say all of a filter of the format {}; leave -n and -p out",
            format.name
        )),
        (Some(bits), Some(probes)) => Ok(Some((bits, probes.into()))),
        _ => Err(anyhow!(
            "a filter of the format {} is made by --bits and --probes together, or by -n and -p; give both of one",
            format.name
        )),
    }
}

fn build(args: &Args, secret: &ForBuild, common: &Common) -> Result<u8> {
    let inputs = args.keys.inputs(&args.files);
    must_not_be_output(Some(&inputs), args.others_read())?;
    let mut selector = args.keys.selector();
    let files = args.files.iter().map(PathBuf::as_path).chain(args.others_read());
    if let Some(path) = files.into_iter().find(|path| is_same_file(path, &args.output)) {
        return Err(anyhow!("{}: is both a file with keys and the file to write", path.display()));
    }
    if args.exact && args.fpr.is_some() {
        return Err(anyhow!(
            "--exact and -p: an exact set has no false positives, so that there is no rate to choose; leave one of them \
             out"
        ));
    }
    if args.removable && args.counting_rule == Some(CountingRule::MinimalIncrease) {
        return Err(anyhow!(
            "--removable: the counting rule minimal-increase cannot remove keys; leave the \
             rule out"
        ));
    }
    if args.memory.is_some() {
        need_known_keys(&args.choice())?;
    }
    if let Choice::Family(family) = args.choice() {
        need_labels(args, family)?;
    }
    // Nonsense is refused before a long input is read.
    let family = match args.choice() {
        Choice::Family(family) => family,
        // Nothing else can be requested of a set of integers that compresses them.
        Choice::Integers => mayhap::BitmapSet::FAMILY,
    };
    need_universe(args, family)?;
    let spec = args.spec(1_000_000);
    let spec = if args.universe.is_some() { spec.with_others(1_000_000) } else { spec };
    match (family.plan)(&spec) {
        // Whether the bits are enough depends on the number of keys, which is not known yet.
        Err(SpecError::Unreachable { .. }) if args.capacity.is_none() => {}
        plan => drop(plan?),
    }
    args.target().must_take(FileFormat::Mayhap)?;
    let excepted = read_excepted(args, common)?;
    selector.excepted = excepted.clone();
    let filter = match args.choice() {
        Choice::Family(family) if is_of_integers(family) => {
            need_integers(args, family)?;
            let spool = hash_all(&inputs, &selector, Hashing::Integer, common)?;
            integers(args, spool, Some(family), common)?
        }
        Choice::Integers => {
            let spool = hash_all(&inputs, &selector, Hashing::Integer, common)?;
            integers(args, spool, None, common)?
        }
        Choice::Family(family @ Family { make: Make::FromDigests(make), .. }) => {
            let bytes = |spec: &Spec| Ok((family.plan)(spec)?.bits.div_ceil(8));
            let source = (&inputs, &selector);
            known_keys::build(
                *make,
                bytes,
                |keys| args.spec(keys),
                args.hashing,
                args.memory,
                source,
                common,
            )?
        }
        Choice::Family(family @ Family { make: Make::Within(make), .. }) => {
            let universe = args.universe.as_slice();
            let universe = args.keys.inputs(universe);
            let bytes = |spec: &Spec| Ok((family.plan)(spec)?.bits.div_ceil(8));
            let source = (&inputs, &universe, &selector);
            known_keys::build_within(
                *make,
                bytes,
                |keys| args.spec(keys),
                args.hashing,
                args.memory,
                source,
                common,
            )?
        }
        Choice::Family(Family { make: Make::OfTwo(make), .. }) => of_two(args, *make, &selector, common)?,
        Choice::Family(family) if !args.label.is_empty() => labelled(args, family, &selector, common)?,
        Choice::Family(Family { make: Make::Counted(make), .. }) => {
            let hashing = args.hashing;
            let counts = count_all(hash_all(&inputs, &selector, hashing, common)?)?;
            make(&args.spec(counts.len() as u64), &mut counts.into_iter())?
        }
        Choice::Family(family) => {
            let hashing = args.hashing;
            let starts_small = family == mayhap::Expanding::FAMILY && args.bits.is_none();
            if let Some(capacity) = args.capacity.or(starts_small.then_some(STARTING_CAPACITY)) {
                in_one_pass(&args.spec(capacity), family, &inputs, &selector, common)?
            } else if inputs.can_be_counted()? {
                let keys = if is_for_repeats(family) {
                    count_distinct(&inputs, &selector, hashing, common)?
                } else {
                    let progress = common.progress("counting", &inputs);
                    inputs.count_records(&progress)?
                };
                in_one_pass(&args.spec(keys), family, &inputs, &selector, common)?
            } else {
                let mut distinct = Distinct::default();
                let for_repeats = is_for_repeats(family);
                let look = |digests: &[Digest]| {
                    if for_repeats {
                        distinct.note(digests)
                    }
                };
                let spool = hash_all_and(&inputs, &selector, hashing, common, look)?;
                let keys = if for_repeats { distinct.capacity() } else { spool.len() };
                from_spool(&args.spec(keys), family, spool)?
            }
        }
    };
    let filter = match &excepted {
        Some(excepted) => excepted.except_from(filter, common),
        None => filter,
    };
    let mut filter = args.keys.describe(filter);
    settle(&mut *filter)?;
    common.say_if_locked(&args.output);
    secret.save(|| write(args.target(), &*filter, Summing::Payload))?;
    if args.grow {
        let doublings = filter.details().doublings.map_or(0, |doublings| doublings.made);
        let times = if doublings == 1 { "once".into() } else { format!("{doublings} times") };
        common.say(format_args!("--grow: the family {}, doubled {times}", filter.family().name));
    } else if args.removable {
        common
            .say(format_args!("--removable: the family {}, whose keys can be removed", filter.family().name));
    }
    describe(args, secret.place(), common, &*filter)?;
    Ok(YES)
}

/// The keys of `--except`, hashed as those of the filter will be.
fn read_excepted(args: &Args, common: &Common) -> Result<Option<Arc<Excepted>>> {
    let is_of_integers = match args.choice() {
        Choice::Integers => true,
        Choice::Family(family) => is_of_integers(family),
    };
    if is_of_integers && matches!(args.hashing, Hashing::Keyed(_)) {
        return Err(anyhow!(
            "an exact set of integers is not hashed, and makes no errors that anybody could provoke; leave the secret \
             out (--keyed, --key-file)"
        ));
    }
    let Some(path) = &args.except else { return Ok(None) };
    if args.universe.is_some() {
        return Err(anyhow!(
            "--except: all keys of --universe that are not in the set are answered no, exactly; put these among them"
        ));
    }
    let labelled: Vec<PathBuf> = args.label.iter().map(|(_, file)| file.clone()).collect();
    let files = if labelled.is_empty() { &args.files } else { &labelled };
    except::check_stdin(path, files)?;
    let hashing = if is_of_integers { Hashing::Integer } else { args.hashing };
    Ok(Some(Arc::new(Excepted::read(path, &args.keys, hashing, common)?)))
}

/// Whether two names mean one regular file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let (one, other) = (one.canonicalize(), other.canonicalize());
    one.is_ok_and(|one| one.is_file() && other.is_ok_and(|other| other == one))
}

fn is_of_integers(family: &Family) -> bool {
    family.can.exact && family.name != mayhap::Exact::FAMILY.name
}

/// Whether a family is made for repeated keys, so that its size follows from the different ones.
fn is_for_repeats(family: &Family) -> bool {
    family == mayhap::Spectral::FAMILY
}

/// Whether a family refuses a key that is in too often.
fn takes_few_copies(family: &Family) -> bool {
    family == mayhap::Cuckoo::FAMILY
}

/// About how many different keys there are in plain files.
fn count_distinct(inputs: &Inputs, selector: &Selector, hashing: Hashing, common: &Common) -> Result<u64> {
    let progress = common.progress("counting", inputs);
    let start = || (Vec::new(), Distinct::default());
    let found = inputs.in_parallel(common.threads(), &progress, start, |(digests, distinct), chunk| {
        selector.digests(chunk, hashing, digests)?;
        distinct.note(digests);
        Ok(())
    })?;
    let found = found.into_iter().map(|(_, distinct)| distinct).reduce(Distinct::join);
    Ok(found.unwrap_or_default().capacity())
}

fn need_integers(args: &Args, family: &Family) -> Result<()> {
    if args.keys.kind() != Kind::U64 {
        return Err(anyhow!("the family {} holds integers; say --as u64", family.name));
    }
    Ok(())
}

/// Labels are for families of many sets, and those do not do without.
fn need_labels(args: &Args, family: &Family) -> Result<()> {
    let is_of_two = matches!(family.make, Make::OfTwo(_));
    if is_of_two && args.label.len() != 2 {
        return Err(anyhow!(
            "the family {} tells the keys of two sets from each other, and {} given; name both with --label A=FILE \
             --label B=FILE, or use --family {} for another number of sets",
            family.name,
            match args.label.len() {
                0 => "none is".to_string(),
                1 => "one is".to_string(),
                sets => format!("{sets} are"),
            },
            mayhap::Spatial::FAMILY.name,
        ));
    }
    if args.label.is_empty() && !family.can.inserts && family.can.labels {
        return Err(anyhow!(
            "the family {} takes keys with labels only; give them with --label NAME=FILE",
            family.name
        ));
    }
    let mut seen = HashSet::new();
    if let Some((name, _)) = args.label.iter().find(|(name, _)| !seen.insert(name)) {
        return Err(anyhow!(
            "the label {name:?} is given twice; give all of its keys in one file, or by --label {name}=-"
        ));
    }
    if args.label.iter().filter(|(_, file)| file == Path::new("-")).count() > 1 {
        return Err(anyhow!("standard input can be read once, and two labels are to be read from it"));
    }
    Ok(())
}

/// Keys of many sets, one set after the other. All are hashed first: the size follows from all of them together.
fn labelled(
    args: &Args,
    family: &'static Family,
    selector: &Selector,
    common: &Common,
) -> Result<Box<dyn AnyFilter>> {
    let names: Vec<&str> = args.label.iter().map(|(name, _)| name.as_str()).collect();
    let named = |spec: &Spec| {
        let mut filter = empty(spec, family)?;
        let unsupported = filter.unsupported("label");
        filter.as_label_mut().ok_or(unsupported)?.name_areas(&names)?;
        anyhow::Ok(filter)
    };
    // Names that cannot be are refused before a long input is read.
    let areas = u32::try_from(names.len()).unwrap_or(u32::MAX);
    named(&Spec::sized(1, 0.5).with_areas(areas))?;
    let mut spools = Vec::with_capacity(names.len());
    for (_, file) in &args.label {
        let inputs = args.keys.inputs(std::slice::from_ref(file));
        spools.push(hash_all(&inputs, selector, args.hashing, common)?);
    }
    let mut filter = named(&args.spec(spools.iter().map(Spool::len).sum()))?;
    let (unsupported, mut outcomes) = (filter.unsupported("label"), Vec::new());
    let label = filter.as_label_mut().ok_or(unsupported)?;
    for (area, spool) in (1..=u16::MAX).filter_map(NonZeroU16::new).zip(spools) {
        spool.drain(|digests| {
            outcomes.clear();
            anyhow::Ok(label.insert_labelled_batch(digests, area, &mut outcomes)?)
        })?;
    }
    Ok(filter)
}

/// The keys of two sets, of which a key may be in both.
fn of_two(args: &Args, make: MakeOfTwo, selector: &Selector, common: &Common) -> Result<Box<dyn AnyFilter>> {
    let names: Vec<&str> = args.label.iter().map(|(name, _)| name.as_str()).collect();
    let names: [&str; 2] = names.try_into().map_err(|_| anyhow!("two labels are needed"))?;
    let named = |spec: &Spec, first: &[Digest], second: &[Digest]| {
        let mut filter = make(spec, first, second)?;
        let unsupported = filter.unsupported("label");
        filter.as_associate_mut().ok_or(unsupported)?.name_sets(names)?;
        anyhow::Ok(filter)
    };
    // Names that cannot be are refused before a long input is read.
    named(&Spec::sized(1, 0.5), &[], &[])?;
    let mut sets = [const { Vec::new() }; 2];
    for ((_, file), set) in args.label.iter().zip(&mut sets) {
        let inputs = args.keys.inputs(std::slice::from_ref(file));
        hash_all(&inputs, selector, args.hashing, common)?.drain(|digests| {
            set.extend_from_slice(digests);
            anyhow::Ok(())
        })?;
        set.sort_unstable();
        set.dedup();
    }
    let [first, second] = sets;
    let both = first.iter().filter(|digest| second.binary_search(digest).is_ok()).count();
    named(&args.spec((first.len() + second.len() - both) as u64), &first, &second)
}

/// Both parts of a universe are needed, or none.
fn need_universe(args: &Args, family: &Family) -> Result<()> {
    let is_stream = |path: &Path| path == Path::new("-");
    let keys_stream = args.files.is_empty() || args.files.iter().any(|path| is_stream(path));
    if keys_stream && args.universe.as_deref().is_some_and(is_stream) {
        return Err(anyhow!(
            "the keys and --universe cannot both be standard input; name a file for one of them"
        ));
    }
    match (&args.universe, family.make) {
        (None, Make::Within(_)) => Err(anyhow!(
            "the family {} tells the keys of a set from all others that there are; name a file of those with --universe",
            family.name
        )),
        _ => Ok(()),
    }
}

fn is_of_known_keys(family: &Family) -> bool {
    matches!(family.make, Make::FromDigests(_) | Make::Within(_))
}

fn need_known_keys(choice: &Choice) -> Result<()> {
    let name = match choice {
        Choice::Family(family) if is_of_known_keys(family) => return Ok(()),
        Choice::Family(family) => family.name,
        Choice::Integers => "exact",
    };
    let others = FAMILIES.iter().filter(|family| is_of_known_keys(family));
    let others: Vec<_> = others.map(|family| family.name).collect();
    Err(anyhow!(
        "--memory is for families that are made of all keys at once ({}); the memory of the family {name} follows from \
         -n and -p",
        others.join(", ")
    ))
}

/// Prints a report as JSON; to standard error if the filter itself is on standard output.
pub(crate) fn print_beside(output: &Path, value: &Value) -> Result<()> {
    if is_stdout(output) {
        report::note_json(value);
    } else {
        report::print_json(value)?;
    }
    Ok(())
}

/// The size is known: every key goes straight into the filter.
fn in_one_pass(
    spec: &Spec,
    family: &'static Family,
    inputs: &Inputs,
    selector: &Selector,
    common: &Common,
) -> Result<Box<dyn AnyFilter>> {
    let progress = common.progress("building", inputs);
    if let Some(make) = family.shared {
        let filter = make(spec)?;
        let hashing = filter.hashing();
        inputs.in_parallel(common.threads(), &progress, Vec::new, |digests, chunk| {
            selector.digests(chunk, hashing, digests)?;
            filter.insert_batch(digests);
            Ok(())
        })?;
        return Ok(filter.finish());
    }
    let mut filter = empty(spec, family)?;
    let (mut chunks, mut buffer, mut digests) = (inputs.chunks(), Buffer::default(), Vec::new());
    while let Some(chunk) = chunks.next(buffer)? {
        progress.advance(chunk.bytes.len());
        selector.digests(&chunk, filter.hashing(), &mut digests)?;
        insert_all(&mut *filter, &digests)
            .map_err(|error| at_repeat(error, |index| chunk.place(index as usize)))?;
        buffer = chunk.bytes;
    }
    Ok(filter)
}

fn empty(spec: &Spec, family: &'static Family) -> Result<Box<dyn AnyFilter>> {
    match family.make {
        Make::Empty(make) => Ok(make(spec)?),
        _ => Err(anyhow!("the family {} cannot be built from a stream", family.name)),
    }
}

/// Inserts digests into a filter of any family.
pub(crate) fn insert_all(filter: &mut dyn AnyFilter, digests: &[Digest]) -> Result<u64> {
    let unsupported = filter.unsupported("insert");
    let insert = filter.as_insert().ok_or(unsupported)?;
    let mut outcomes = Vec::with_capacity(digests.len());
    insert.insert_batch(digests, &mut outcomes)?;
    Ok(outcomes.iter().filter(|&&outcome| outcome == Insertion::New).count() as u64)
}

/// Adds the place of a key to an error that says that it, or others that share its slots, is in too often. The place is told by
/// the key's number in its batch.
pub(crate) fn at_repeat(error: anyhow::Error, place: impl FnOnce(u64) -> String) -> anyhow::Error {
    match error.downcast_ref() {
        Some(Full { limit: Limit::Copies { .. } | Limit::Repeats { .. }, inserted }) => {
            let place = place(*inserted);
            error.context(place)
        }
        _ => error,
    }
}

/// Inserts digests that were put aside, in the order of their records; how many were new.
pub(crate) fn insert_spooled(filter: &mut dyn AnyFilter, spool: Spool) -> Result<u64> {
    let (mut before, mut new) = (0, 0);
    spool.drain(|digests| {
        new += insert_all(filter, digests)
            .map_err(|error| at_repeat(error, |index| format!("record {}", before + index + 1)))?;
        before += digests.len() as u64;
        anyhow::Ok(())
    })?;
    settle(filter)?;
    Ok(new)
}

/// Readies a filter to be written, or says that there is no memory for it.
pub(crate) fn settle(filter: &mut dyn AnyFilter) -> Result<()> {
    filter.settle().map_err(|OutOfMemory { bytes }| {
        anyhow!("out of memory: could not allocate {} to write it", report::bytes(bytes))
    })
}

/// The digests of all keys, in order.
pub(crate) fn hash_all(
    inputs: &Inputs,
    selector: &Selector,
    hashing: Hashing,
    common: &Common,
) -> Result<Spool> {
    hash_all_and(inputs, selector, hashing, common, |_| {})
}

/// Digests put aside in the order of their chunks, whichever thread is ready first: the bytes of some filters depend on
/// it.
struct InOrder {
    spool: Spool,
    next: u64,
    /// What came before its turn.
    waiting: BTreeMap<u64, Vec<Digest>>,
}

/// The same, with a look at each batch in any order.
fn hash_all_and(
    inputs: &Inputs,
    selector: &Selector,
    hashing: Hashing,
    common: &Common,
    look: impl FnMut(&[Digest]) + Send,
) -> Result<Spool> {
    let progress = common.progress("hashing", inputs);
    let put_aside = Mutex::new((InOrder { spool: Spool::new(), next: 0, waiting: BTreeMap::new() }, look));
    inputs.in_parallel(common.threads(), &progress, Vec::new, |digests, chunk| {
        selector.digests(chunk, hashing, digests)?;
        let mut put_aside = put_aside.lock().unwrap_or_else(PoisonError::into_inner);
        let (in_order, look) = &mut *put_aside;
        look(digests);
        in_order.push(chunk.number, digests)
    })?;
    Ok(put_aside.into_inner().unwrap_or_else(PoisonError::into_inner).0.spool)
}

impl InOrder {
    fn push(&mut self, number: u64, digests: &[Digest]) -> Result<()> {
        if number != self.next {
            self.waiting.insert(number, digests.to_vec());
            return Ok(());
        }
        let refused = "cannot write to the folder for temporary files (TMPDIR)";
        self.spool.push(digests).context(refused)?;
        self.next += 1;
        while let Some(digests) = self.waiting.remove(&self.next) {
            self.spool.push(&digests).context(refused)?;
            self.next += 1;
        }
        Ok(())
    }
}

/// How often each key came, for families that store just that.
fn count_all(spool: Spool) -> Result<HashMap<Digest, u64>> {
    let mut counts: HashMap<Digest, u64> = HashMap::new();
    spool.drain(|digests| {
        counts.try_reserve(digests.len()).map_err(|_| {
            anyhow!("no memory to count more than {} different keys", report::grouped(counts.len() as u64))
        })?;
        digests.iter().for_each(|&digest| *counts.entry(digest).or_insert(0) += 1);
        anyhow::Ok(())
    })?;
    Ok(counts)
}

fn from_spool(spec: &Spec, family: &'static Family, spool: Spool) -> Result<Box<dyn AnyFilter>> {
    let mut filter = empty(spec, family)?;
    insert_spooled(&mut *filter, spool)?;
    Ok(filter)
}

/// A bitmap takes one bit for every integer up to the largest; from one in 64 on it is the smaller one.
const DENSE: u64 = 64;

/// A nearly empty bitmap of at least this many bytes gets a warning.
const WASTE: u64 = 1 << 20;

fn integers(
    args: &Args,
    spool: Spool,
    family: Option<&'static Family>,
    common: &Common,
) -> Result<Box<dyn AnyFilter>> {
    use mayhap::{BitmapSet, RoaringSet};
    let keys = spool.len();
    let mut roaring = empty(&args.spec(keys.max(1)), RoaringSet::FAMILY)?;
    let mut largest = 0;
    spool.drain(|digests| {
        largest = digests.iter().map(|digest| digest.a).fold(largest, u64::max);
        insert_all(&mut *roaring, digests).map(drop)
    })?;
    let universe = args.capacity.unwrap_or(largest.saturating_add(1));
    let distinct = roaring.report().estimated_len.unwrap_or(0.0) as u64;
    let family =
        family.unwrap_or(if universe / DENSE <= distinct { BitmapSet::FAMILY } else { RoaringSet::FAMILY });
    if family == RoaringSet::FAMILY {
        return Ok(roaring);
    }
    // Who says how many integers there can be will add some.
    if args.capacity.is_none() && universe / DENSE > distinct && universe / 8 >= WASTE {
        common.say(format_args!(
            "warning: a bitmap takes one bit for every integer up to the largest, {}: {} for {}; --family roaring holds \
             {} in {}, and --family bloom in about 10 bits a key",
            report::grouped(largest),
            report::bytes(universe.div_ceil(8)),
            if distinct == 1 { "1 key".into() } else { format!("{} keys", report::grouped(distinct)) },
            if distinct == 1 { "it" } else { "them" },
            report::bytes(roaring.report().bits.div_ceil(8)),
        ));
    }
    let mut dense = empty(&Spec::new().with_capacity(universe.max(1)), family)?;
    let roaring: &dyn std::any::Any = &*roaring;
    let set = roaring.downcast_ref::<RoaringSet>().expect("made above");
    let insert = dense.as_insert().expect("a bitmap takes inserts");
    for integer in set.iter() {
        insert.insert_digest(Digest { a: integer, b: 0 })?;
    }
    Ok(dense)
}

/// What was built, with the id and the place of its secret if it has one.
fn describe(
    args: &Args,
    secret: Option<(u64, &Path)>,
    common: &Common,
    filter: &dyn AnyFilter,
) -> Result<()> {
    let (report, details) = (filter.report(), filter.details());
    let family = filter.family().name;
    let size = report.bits.div_ceil(8);
    if args.json {
        let value = json!({
            "output": args.output.to_string_lossy(), "family": family,
            "layout": details.layout.map(Layout::name),
            "counting_rule": details.counters.and_then(|c| c.rule).map(CountingRule::name),
            "saturated_counters": details.counters.map(|c| c.saturated), "capacity": report.capacity,
            "inserted": report.inserted, "estimated_len": report.estimated_len, "bits": report.bits,
            "bytes": size, "probes": report.probes, "fill": report.fill, "fpr_asked": report.fpr_asked,
            "fpr_now": report.fpr_now, "fpr_at_capacity": report.fpr_at_capacity,
            "keyed": secret.is_some(), "key_id": secret.map(|(id, _)| format!("{id:016x}")),
            "key_file": secret.map(|(_, path)| path.to_string_lossy()),
            "rule": filter.program(), "format": args.to.unwrap_or(FileFormat::Mayhap).name(),
            "exceptions": filter.exceptions().map_or(0, |exceptions| exceptions.keys),
        });
        print_beside(&args.output, &value)?;
        return Ok(());
    }
    let probes = report
        .probes
        .map_or(String::new(), |probes| format!(", {}", report::counted(probes.into(), "probe")));
    let keys = report::counted(report.inserted.unwrap_or(0), "key");
    common.say(format_args!(
        "{}: {}{} with {keys} in {}{probes}; {}",
        args.output.display(),
        report::kind(filter),
        filter.program().map_or(String::new(), |rule| format!(" by the rules of {rule}")),
        report::bytes(size),
        match report.guarantee {
            Guarantee::Exact => "exact, no false positives".to_string(),
            _ => format!("false-positive rate now {}", report::rate(report.fpr_now)),
        },
    ));
    if let Some((id, path)) = secret {
        common.say(format_args!(
            "keyed: its secret, with the id {id:016x}, is in {}; keep it, since nothing answers without it",
            path.display(),
        ));
    }
    warn_if_over_capacity(common, &report);
    if let Some(saturated) = details.counters.map(|c| c.saturated).filter(|&saturated| saturated > 0) {
        common.say(format_args!(
            "warning: {} of its counters are saturated and stay so: their keys cannot be removed, and their counts are \
             that or more; use wider ones (--counter-bits), or --counts",
            report::grouped(saturated),
        ));
    }
    Ok(())
}

/// A filter that holds more than it was made for errs more often than was asked: its user must know.
pub(crate) fn warn_if_over_capacity(common: &Common, report: &Report) {
    if report.over_capacity() {
        let held = report.estimated_len.map_or("more keys than can be told".into(), |len| {
            format!("about {}", report::counted(len.round() as u64, "key"))
        });
        common.say(format_args!(
            "warning: it holds {held} and was made for {}; its false-positive rate is now {}, requested was {}",
            report::grouped(report.capacity),
            report::rate(report.fpr_now),
            report::rate(report.fpr_asked),
        ));
    }
}
