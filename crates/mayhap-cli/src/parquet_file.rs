//! The filters that a Parquet file has for a column: found by the file's metadata, read alone.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::keys::Kind;
use crate::parquet_footer::{self, Type};
use anyhow::{Context, Result, anyhow, bail};
use mayhap::interop::{row_groups, sbbf};
use mayhap::{AnyFilter, Bytes};

/// More than any header takes.
const HEADER: u64 = 64;

/// The filter of a column: a value is perhaps in if it is perhaps in one of the row groups.
pub(crate) fn open(path: &Path, column: Option<&str>, kind: Option<Kind>) -> Result<Box<dyn AnyFilter>> {
    let name = path.display();
    let mut file = File::open(path).with_context(|| format!("{name}: cannot open"))?;
    let length = file.metadata().with_context(|| format!("{name}: cannot look at"))?.len();
    let not_read = || format!("{name}: not a Parquet file that can be read");
    let metadata = metadata(&mut file, length).with_context(not_read)?;
    let schema = parquet_footer::schema(&metadata, column).with_context(not_read)?;
    let Some(column) = column else {
        bail!("{name}: a Parquet file; name a column with --column ({})", schema.names);
    };
    let found = schema
        .column
        .with_context(|| format!("{name}: there is no column {column:?}; there are {}", schema.names))?;
    must_be_of_kind(found.kind, kind).with_context(|| format!("{name}: column {column:?}"))?;
    let (mut filters, mut total) = (Vec::new(), 0);
    let places = parquet_footer::filters(&metadata, &schema, found).with_context(not_read)?;
    for (number, place) in places.into_iter().enumerate() {
        let Some(parquet_footer::Place { offset, bytes }) = place else {
            bail!(
                "{name}: column {column:?} has no filter in row group {number}, which may hold any value; write the file \
                 with one"
            );
        };
        let place = format!("{name}: the filter of column {column:?} in row group {number}");
        let filter = read(&mut file, length, offset, bytes).context(place)?;
        total += filter.len() as u64;
        // Row groups that share the bytes of one filter could ask for any memory.
        if total > length {
            bail!("{name}: the filters of column {column:?} take more bytes than the file, {length}, has");
        }
        filters.push(filter);
    }
    if filters.is_empty() {
        bail!("{name}: a Parquet file without rows, and without filters");
    }
    row_groups::of_row_groups(&filters).with_context(|| format!("{name}: column {column:?}"))
}

/// What stands before the last 8 bytes, which are its length and four letters.
fn metadata(file: &mut File, length: u64) -> Result<Vec<u8>> {
    let mut end = [0; 8];
    let before =
        length.checked_sub(8).with_context(|| format!("it has {length} bytes, less than an end takes"))?;
    file.seek(SeekFrom::Start(before))?;
    file.read_exact(&mut end)?;
    let [a, b, c, d, magic @ ..] = end;
    match &magic {
        b"PAR1" => {}
        b"PARE" => bail!("its metadata is encrypted"),
        _ => bail!("it does not end with PAR1"),
    }
    let claimed = u64::from(u32::from_le_bytes([a, b, c, d]));
    let Some(begin) = before.checked_sub(claimed) else {
        bail!("its metadata claims {claimed} bytes, and {before} are there");
    };
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(begin))?;
    file.take(claimed).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The header and the bits. What the metadata claims is compared with the length of the file before it is believed.
fn read(file: &mut File, length: u64, offset: u64, bytes: Option<u64>) -> Result<Bytes> {
    let available = length.saturating_sub(offset);
    let mut part = |bytes: u64| {
        let mut part = Vec::new();
        file.seek(SeekFrom::Start(offset))?;
        file.take(bytes).read_to_end(&mut part)?;
        anyhow::Ok(part)
    };
    let bytes = match bytes {
        Some(bytes) => bytes,
        None => sbbf::length(&part(HEADER)?)?,
    };
    if bytes > available {
        bail!("it takes {bytes} bytes, and {available} are there");
    }
    Ok(part(bytes)?.into())
}

/// A column of numbers is asked for numbers: other bytes are in no filter of it.
fn must_be_of_kind(column: Type, kind: Option<Kind>) -> Result<()> {
    let Some(kind) = kind else { return Ok(()) };
    let (found, fits, say) = match column {
        Type::Int32 => ("INT32", matches!(kind, Kind::I32 | Kind::Hex), "--as i32"),
        Type::Int64 => ("INT64", matches!(kind, Kind::I64 | Kind::U64 | Kind::Hex), "--as i64"),
        Type::Float => ("FLOAT", kind == Kind::Hex, "--as hex, with the bytes in little-endian order"),
        Type::Double => ("DOUBLE", kind == Kind::Hex, "--as hex, with the bytes in little-endian order"),
        Type::Int96 => ("INT96", kind == Kind::Hex, "--as hex, with the bytes in little-endian order"),
        Type::Boolean | Type::Bytes | Type::FixedLengthBytes => return Ok(()),
    };
    if fits { Ok(()) } else { Err(anyhow!("its values are of the type {found}; say {say}")) }
}
