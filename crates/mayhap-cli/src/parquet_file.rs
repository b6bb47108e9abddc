//! The filters that a Parquet file has for a column: found by the file's metadata, read alone.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use mayhap::AnyFilter;
use mayhap::bits::Bytes;
use mayhap::interop::{row_groups, sbbf};
use parquet::basic::Type;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};

use crate::keys::Kind;
use crate::parquet_schema;

/// More than any header takes.
const HEADER: u64 = 64;

/// The filter of a column: a value is perhaps in if it is perhaps in one of the row groups.
pub(crate) fn open(path: &Path, column: Option<&str>, kind: Option<Kind>) -> Result<Box<dyn AnyFilter>> {
    let name = path.display();
    let mut file = File::open(path).with_context(|| format!("{name}: cannot open"))?;
    let length = file.metadata().with_context(|| format!("{name}: cannot look at"))?.len();
    check_schema(&mut file, length)
        .with_context(|| format!("{name}: not a Parquet file that can be read"))?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file);
    let metadata = metadata.map_err(|e| anyhow!("{name}: not a Parquet file that can be read: {e}"))?;
    let Some(column) = column else {
        bail!("{name}: a Parquet file; name a column with --column ({})", columns(&metadata));
    };
    let (mut filters, mut total) = (Vec::new(), 0);
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let chunk = group.columns().iter().find(|chunk| chunk.column_path().string() == column);
        let chunk = chunk.with_context(|| {
            format!("{name}: there is no column {column:?}; there are {}", columns(&metadata))
        })?;
        must_be_of_kind(chunk, kind).with_context(|| format!("{name}: column {column:?}"))?;
        let Some((offset, bytes)) = place(chunk) else {
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

/// The last 8 bytes say how long the metadata before them is. A file without them is for the reader to refuse.
fn check_schema(file: &mut File, length: u64) -> Result<()> {
    let mut end = [0; 8];
    let Some(before) = length.checked_sub(8) else { return Ok(()) };
    file.seek(SeekFrom::Start(before))?;
    file.read_exact(&mut end)?;
    let [a, b, c, d, magic @ ..] = end;
    let metadata = u64::from(u32::from_le_bytes([a, b, c, d]));
    if magic != *b"PAR1" || metadata > before {
        return Ok(());
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(before - metadata))?;
    file.take(metadata).read_to_end(&mut bytes)?;
    parquet_schema::check(&bytes)
}

fn columns(metadata: &ParquetMetaData) -> String {
    let columns = metadata.file_metadata().schema_descr().columns().iter();
    columns.map(|column| column.path().string()).collect::<Vec<_>>().join(", ")
}

/// Where a filter begins, and how long it is if the file says so: old ones do not.
fn place(chunk: &ColumnChunkMetaData) -> Option<(u64, Option<u64>)> {
    let offset = u64::try_from(chunk.bloom_filter_offset()?).ok()?;
    Some((offset, chunk.bloom_filter_length().and_then(|length| u64::try_from(length).ok())))
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
fn must_be_of_kind(chunk: &ColumnChunkMetaData, kind: Option<Kind>) -> Result<()> {
    let Some(kind) = kind else { return Ok(()) };
    let (found, fits, say) = match chunk.column_type() {
        Type::INT32 => ("INT32", matches!(kind, Kind::I32 | Kind::Hex), "--as i32"),
        Type::INT64 => ("INT64", matches!(kind, Kind::I64 | Kind::U64 | Kind::Hex), "--as i64"),
        Type::FLOAT => ("FLOAT", kind == Kind::Hex, "--as hex, with the bytes in little-endian order"),
        Type::DOUBLE => ("DOUBLE", kind == Kind::Hex, "--as hex, with the bytes in little-endian order"),
        Type::INT96 => ("INT96", kind == Kind::Hex, "--as hex, with the bytes in little-endian order"),
        Type::BOOLEAN | Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => return Ok(()),
    };
    if fits { Ok(()) } else { Err(anyhow!("its values are of the type {found}; say {say}")) }
}
