//! Files of other programs: the same locks and the same care, whatever the bytes mean.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use mayhap::Bytes;

use crate::error::StoreError;
use crate::file::{Access, UpdateError, open_to_read, replace_by, write_by};
use crate::lock;
use crate::map::map;

/// The bytes of a file. What [`open`](crate::open) says of maps holds here too.
///
/// # Errors
/// [`StoreError`] names the file, and what the system says.
pub fn read_bytes(path: &Path, access: Access) -> Result<Bytes, StoreError> {
    let (mut file, metadata) = open_to_read(path)?;
    if access == Access::Map && metadata.is_file() && metadata.len() > 0 {
        return Ok(Bytes::shared(map(&file, path).map_err(StoreError::io(path, "map"))?));
    }
    Ok(all_of(path, &mut file)?.into())
}

fn all_of(path: &Path, file: &mut File) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(StoreError::io(path, "read"))?;
    Ok(bytes)
}

/// Writes bytes to a file. Whatever happens, the name means the old file or the whole new one, as for
/// [`write`](crate::write()).
///
/// # Errors
/// [`StoreError`] names the file and what the system says; then the old file is untouched.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_by(path, |out| out.write_all(bytes))
}

/// Changes a file under its lock: `change` makes new bytes of the old ones, which then take their place at once.
///
/// # Errors
/// [`UpdateError`] tells the file's problems from those of the change.
pub fn update_bytes<T, E>(
    path: &Path,
    change: impl FnOnce(Bytes) -> Result<(Vec<u8>, T), E>,
) -> Result<T, UpdateError<E>> {
    let path = &lock::target(path)?;
    let mut file = lock::exclusive(path)?;
    file.rewind().map_err(StoreError::io(path, "read"))?;
    let old = all_of(path, &mut file)?;
    let (new, outcome) = change(old.into()).map_err(UpdateError::Change)?;
    replace_by(path, Some(&file), |out| out.write_all(&new))?;
    Ok(outcome)
}
