//! Opening a file that another process may be changing in place.
//!
//! Readers take no lock. Most writers replace a file by renaming, which an open file does not notice. Large Bloom and blocked
//! filters are changed in place, in this order: the header is marked as being written, bits of the payload turn from 0
//! to 1, and the header is renewed. So a payload that does not fit an unmarked header is damaged only if the header is
//! still the same afterwards.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use mayhap::wire::{Header, PAGE, take_as_writing};
use mayhap::{Bytes, DecodeError};

use crate::error::StoreError;
use crate::file::{Access, Check, Checked, Opened, Unlock, decode_with};
use crate::lock;
use crate::map::map;

/// After so many writers that came in between, a file is taken as it stands.
const WRITERS: u32 = 3;

/// A header that is being written is looked at so many times, with pauses.
const LOOKS: u32 = 400;
const PAUSE: Duration = Duration::from_millis(5);

/// Opens a regular file.
pub(crate) fn open(
    path: &Path,
    mut file: File,
    access: Access,
    check: Check,
    unlock: Unlock<'_>,
) -> Result<Opened, StoreError> {
    let check = if access == Access::Read { Check::All } else { check };
    let mut writers = 0;
    loop {
        let (start, header) = whole_header(path, &mut file)?;
        let bytes = match access {
            Access::Map => Bytes::shared(map(&file, path).map_err(StoreError::io(path, "map"))?),
            Access::Read => all_of(path, &mut file)?.into(),
        };
        let decoded = decode_with(header.clone(), &bytes, check, unlock);
        let is_marked = matches!(&decoded, Ok(opened) if opened.checked == Checked::Interrupted);
        let found = if is_marked && lock::is_held(&file) {
            decoded.map(being_written)
        } else if decoded.is_ok() && !is_marked || start_of(path, &mut file)? == start {
            // Sound; or no writer was here meanwhile, so that a mark was left by one that died, and an error is damage.
            decoded
        } else if writers < WRITERS {
            writers += 1;
            continue;
        } else {
            as_it_stands(header, &bytes, unlock)
        };
        return found.map_err(StoreError::decode(path));
    }
}

/// The header of a file, its bytes and what they say. One that is in the middle of being written is looked at again.
fn whole_header(path: &Path, file: &mut File) -> Result<(Vec<u8>, Header), StoreError> {
    let mut looks = 0;
    loop {
        let start = start_of(path, file)?;
        let total = file.metadata().map_err(StoreError::io(path, "look at"))?.len();
        let damage = match Header::decode(&start, total) {
            Ok(header) => return Ok((start, header)),
            Err(e @ DecodeError::Checksum { .. }) if looks < LOOKS => e,
            Err(e) => return Err(StoreError::decode(path)(e)),
        };
        // In this order: if nobody had the lock, the last writer had finished before the second look.
        if !lock::is_held(file) && start_of(path, file)? == start {
            return Err(StoreError::decode(path)(damage));
        }
        looks += 1;
        sleep(PAUSE);
    }
}

/// The bytes of the header; fewer if the file is too short for one, or is none of ours.
fn start_of(path: &Path, file: &mut File) -> Result<Vec<u8>, StoreError> {
    let mut read = |bytes: usize| -> io::Result<Vec<u8>> {
        let mut start = Vec::new();
        file.rewind()?;
        file.take(bytes as u64).read_to_end(&mut start)?;
        Ok(start)
    };
    let start = read(PAGE).map_err(StoreError::io(path, "read"))?;
    match Header::length(&start) {
        Ok(length) if length > PAGE => read(length).map_err(StoreError::io(path, "read")),
        _ => Ok(start),
    }
}

fn all_of(path: &Path, file: &mut File) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(StoreError::io(path, "read"))?;
    Ok(bytes)
}

/// Every key from before the writer is in, and nothing else is known: neither counts nor a checksum.
fn as_it_stands(mut header: Header, bytes: &Bytes, unlock: Unlock<'_>) -> Result<Opened, DecodeError> {
    take_as_writing(&mut header);
    decode_with(header, bytes, Check::Header, unlock).map(being_written)
}

fn being_written(opened: Opened) -> Opened {
    Opened { checked: Checked::BeingWritten, ..opened }
}
