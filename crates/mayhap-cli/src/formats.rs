//! Filter files of other programs on the command line: which format a file has, opening it, changing it, writing it.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use mayhap::interop::{self, FORMATS, Format, HashRule, Keys, Reading, dcso};
use mayhap::{AnyFilter, Bytes, DecodeError, Secret, Summing};
use mayhap_store::{
    Access, Checked, Opened, UpdateError, read_bytes, remake, update, update_bytes, write_bytes,
};

use crate::keys::Kind;
use crate::output::{Target, is_stdout};
use crate::parquet_file;
use crate::report;
use crate::suggest::unknown;

/// The format of a filter file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FileFormat {
    /// Ours.
    Mayhap,
    /// A Parquet file, whose columns have filters.
    Parquet,
    /// Another program's.
    Foreign(&'static Format),
}

impl FileFormat {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mayhap => "mayhap",
            Self::Parquet => "parquet",
            Self::Foreign(format) => format.name,
        }
    }
}

/// All names, for messages.
fn names(formats: impl Iterator<Item = &'static str>) -> String {
    ["mayhap"].into_iter().chain(formats).collect::<Vec<_>>().join(", ")
}

/// A format that is read.
pub(crate) fn readable(name: &str) -> Result<FileFormat, String> {
    match name {
        "mayhap" => Ok(FileFormat::Mayhap),
        "parquet" => Ok(FileFormat::Parquet),
        _ => interop::format(name).map(FileFormat::Foreign).ok_or_else(|| {
            let all =
                ["mayhap"].into_iter().chain(FORMATS.iter().map(|format| format.name)).chain(["parquet"]);
            unknown("format", name, &all.collect::<Vec<_>>())
        }),
    }
}

/// A format that is written.
pub(crate) fn writable(name: &str) -> Result<FileFormat, String> {
    let all = || names(FORMATS.iter().filter(|format| format.writes()).map(|format| format.name));
    match readable(name)? {
        FileFormat::Foreign(format) if !format.writes() => {
            Err(format!("files of the format {name} are only read; those that are written are {}", all()))
        }
        FileFormat::Parquet => {
            Err(format!("Parquet files are only read; those that are written are {}", all()))
        }
        format => Ok(format),
    }
}

/// A format whose filters are built.
pub(crate) fn makeable(name: &str) -> Result<FileFormat, String> {
    match readable(name)? {
        FileFormat::Foreign(format) if format.makes() => Ok(FileFormat::Foreign(format)),
        FileFormat::Mayhap => Ok(FileFormat::Mayhap),
        _ => {
            let all = names(FORMATS.iter().filter(|format| format.makes()).map(|format| format.name));
            Err(format!(
                "filters of the format {name} are read, and not built; those that are built are {all}"
            ))
        }
    }
}

/// A hash function by its name.
pub(crate) fn hash_rule(name: &str) -> Result<HashRule, String> {
    HashRule::ALL
        .into_iter()
        .find(|rule| rule.name() == name)
        .ok_or_else(|| unknown("hash function", name, &HashRule::ALL.map(HashRule::name)))
}

/// What keys are to a program that tells kinds apart: lines are text unless something else is said.
pub(crate) fn reading(kind: Kind, hash: Option<HashRule>) -> Reading {
    let keys = match kind {
        Kind::Bytes => Keys::Text,
        Kind::Hex | Kind::Utf16 => Keys::Bytes,
        Kind::U64 | Kind::I64 | Kind::I32 => Keys::Integers,
    };
    Reading { keys, hash }
}

/// Options of every command that opens a filter file: what the file does not say of itself.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Files of other programs")]
pub(crate) struct FormatArgs {
    /// Format of the filter file: mayhap, guava, go, go-json, go-gob, dcso, spark, redisbloom, redisbloom-cuckoo,
    /// bloomfilter-crate, parquet (with --column), sbbf, xor8, xor16, fuse8, fuse16, pybloom-live, pyprobables, rbloom (with
    /// --hash), roaring [default: what its structure shows]
    #[arg(long, value_name = "NAME", value_parser = readable)]
    pub(crate) format: Option<FileFormat>,
    /// Column of a Parquet file whose filter is used
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Option<String>,
    /// Hash function of the keys, if the file does not name it: sha256 (rbloom), xxh64 (runtime filters of Spark's SQL),
    /// md5 (pybloom-live before version 4)
    #[arg(long, value_name = "NAME", value_parser = hash_rule)]
    pub(crate) hash: Option<HashRule>,
}

impl FormatArgs {
    /// The format of a file: the one that was named, or else the one that its bytes leave.
    pub(crate) fn of(&self, path: &Path) -> Result<FileFormat> {
        if std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
            bail!("{}: an empty file is no filter", path.display());
        }
        let format = self.named_or_shown(path)?;
        if let (FileFormat::Mayhap, Some(hash)) = (format, self.hash) {
            bail!(
                "{}: --hash {}: a mayhap file says by itself how its keys are hashed; leave it out",
                path.display(),
                hash.name()
            );
        }
        Ok(format)
    }

    fn named_or_shown(&self, path: &Path) -> Result<FileFormat> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        if self.column.is_some() {
            return Ok(FileFormat::Parquet);
        }
        // What cannot be read is reported when it is opened.
        let Some(start) = start_of(path) else { return Ok(FileFormat::Mayhap) };
        shown(path, start)?.ok_or_else(|| {
            let unknown = DecodeError::Magic { found: start };
            anyhow!(
                "{}: {unknown}; if another program wrote it, name its format with --format",
                path.display()
            )
        })
    }

    /// Opens a file that is not ours, to be asked for keys of a kind.
    pub(crate) fn open_foreign(
        &self,
        path: &Path,
        format: FileFormat,
        access: Access,
        kind: Option<Kind>,
    ) -> Result<Opened> {
        if format != FileFormat::Parquet && self.column.is_some() {
            bail!("{}: --column is for Parquet files", path.display());
        }
        let filter = match format {
            FileFormat::Mayhap => bail!("{}: a mayhap file is opened as one", path.display()),
            FileFormat::Parquet => parquet_file::open(path, self.column.as_deref(), kind)?,
            FileFormat::Foreign(format) => {
                must_leave_open(format, self.hash).with_context(|| path.display().to_string())?;
                let bytes = read_bytes(path, access)?;
                read(path, format, bytes, &reading(kind.unwrap_or_default(), self.hash))?
            }
        };
        Ok(Opened { filter, checked: Checked::Nothing, metadata: None, key_id: None })
    }
}

/// The first bytes of a regular file: what is none can be read once.
pub(crate) fn start_of(path: &Path) -> Option<[u8; 4]> {
    let mut start = [0; 4];
    let is_read =
        path.is_file() && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok());
    is_read.then_some(start)
}

/// The format that the bytes of a file leave, if there is one; an error if there are several.
pub(crate) fn shown(path: &Path, start: [u8; 4]) -> Result<Option<FileFormat>> {
    match &start {
        b"MYHP" => return Ok(Some(FileFormat::Mayhap)),
        b"PAR1" => return Ok(Some(FileFormat::Parquet)),
        _ => {}
    }
    match interop::recognise(read_bytes(path, Access::Map)?.as_slice()) {
        Ok(format) => Ok(Some(FileFormat::Foreign(format))),
        Err(unknown) if unknown.candidates.is_empty() => Ok(None),
        Err(unknown) => Err(anyhow!("{}: {unknown} with --format", path.display())),
    }
}

/// Refuses a hash function that has no place in a format, and would be ignored.
pub(crate) fn must_leave_open(format: &Format, hash: Option<HashRule>) -> Result<()> {
    match hash {
        Some(hash) if hash.format() != format.name => bail!(
            "--hash {} is for the format {}, and this one is {}; leave it out",
            hash.name(),
            hash.format(),
            format.name
        ),
        _ => Ok(()),
    }
}

fn read(path: &Path, format: &Format, bytes: Bytes, reading: &Reading) -> Result<Box<dyn AnyFilter>> {
    let read = format.read(bytes, reading);
    read.with_context(|| format!("{}: not a filter of the format {}", path.display(), format.name))
}

/// Changes a filter file under its lock, whatever its format is.
pub(crate) fn update_file<T>(
    path: &Path,
    format: FileFormat,
    reading: &Reading,
    secret: Option<&Secret>,
    change: impl FnOnce(&mut dyn AnyFilter) -> Result<T>,
) -> Result<T> {
    let result = match format {
        FileFormat::Mayhap => update(path, secret, change),
        FileFormat::Parquet => bail!("{}: Parquet files are only read", path.display()),
        FileFormat::Foreign(format) => update_bytes(path, |bytes| {
            let is_gzip = format == &dcso::FORMAT && dcso::is_gzip(bytes.as_slice());
            let mut filter = format.read(bytes, reading)?;
            let outcome = change(&mut *filter)?;
            let bytes = format.write(&*filter)?;
            Ok((if is_gzip { dcso::gzip(&bytes) } else { bytes }, outcome))
        }),
    };
    result.map_err(|error| named(path, error))
}

/// Makes another filter of a file of ours, under its lock.
pub(crate) fn remake_file<T>(
    path: &Path,
    secret: Option<&Secret>,
    change: impl FnOnce(Box<dyn AnyFilter>) -> Result<(Box<dyn AnyFilter>, T)>,
) -> Result<T> {
    remake(path, secret, change).map_err(|error| named(path, error))
}

/// The file's problems have a name already, those of the change have none.
fn named(path: &Path, error: UpdateError<anyhow::Error>) -> anyhow::Error {
    match error {
        UpdateError::Store(error) => error.into(),
        UpdateError::Change(error) => error.context(path.display().to_string()),
    }
}

/// Writes a filter to a file of a format, or to standard output for `-`. Only a file of ours has a checksum.
pub(crate) fn write_as(
    format: FileFormat,
    target: Target<'_>,
    filter: &dyn AnyFilter,
    summing: Summing,
) -> Result<()> {
    let format = match format {
        FileFormat::Foreign(format) => format,
        FileFormat::Mayhap | FileFormat::Parquet => return write(target, filter, summing),
    };
    let (bytes, output) = (format.write(filter)?, target.path);
    // The program has to be told that a file is in gzip, and its users tell themselves by the name.
    let is_packed = format == &dcso::FORMAT && output.extension().is_some_and(|extension| extension == "gz");
    if is_packed && dcso::data_length(&bytes)? > dcso::MOST_DATA_IN_GZIP {
        bail!(
            "{}: more than 16 MiB of data are attached to the filter, and a file in gzip with so much is not read again; \
             leave the .gz out",
            output.display()
        );
    }
    let bytes = if is_packed { dcso::gzip(&bytes) } else { bytes };
    if !is_stdout(output) {
        target.must_take(FileFormat::Foreign(format))?;
        return Ok(write_bytes(output, &bytes)?);
    }
    Ok(not_to_a_terminal()?.write_all(&bytes)?)
}

/// Writes a filter to a file of ours, or to standard output for `-`.
pub(crate) fn write(target: Target<'_>, filter: &dyn AnyFilter, summing: Summing) -> Result<()> {
    if !is_stdout(target.path) {
        target.must_take(FileFormat::Mayhap)?;
        return Ok(mayhap_store::write_summed(target.path, filter, summing)?);
    }
    let mut out = not_to_a_terminal()?;
    let encoded = mayhap::encode(filter, summing);
    Ok(encoded.pieces().into_iter().try_for_each(|piece| out.write_all(piece))?)
}

fn not_to_a_terminal() -> Result<report::Stdout> {
    if std::io::stdout().is_terminal() {
        bail!("a filter is not for a terminal; use -o FILE or a pipe");
    }
    Ok(report::stdout())
}
