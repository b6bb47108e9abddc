//! Opening, writing and updating filter files.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use mayhap::wire::{
    Extent, Flags, Frame, Header, KEY_RULES, MAX_HEADER, METADATA, PAGE, Verify, mark_writing,
};
use mayhap::{AnyFilter, Bytes, DecodeError, FAMILIES, Hashing, Secret, Summing, encode_with, verify};

use crate::error::StoreError;
use crate::lock::{self, folder_of};
use crate::map::map_mut;
use crate::reader;
use crate::space;
use crate::temporary::Temporary;

/// Up to this payload, the checksum is compared when a file is opened by a map: one pass, a quarter of a second at most
/// if the file is in the cache, and little beside the lookups that follow. Beyond it, opening a file of many GiB for one
/// question would read all of it.
const VERIFY_UP_TO: u64 = 256 << 20;

/// The sizes of payloads at which files are treated differently. Tests have smaller ones, so that no test needs large files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// From here on, a family that can be changed in place is: below it, a whole new file is written, which survives every
    /// accident.
    pub in_place_from: u64,
    /// Up to here, the checksum is renewed after a change in place. Beyond it, one more key would cost a pass over the whole
    /// file.
    pub sum_up_to: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { in_place_from: 16 << 20, sum_up_to: 256 << 20 }
    }
}

/// How much of a mapped file is compared with its checksums before it is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The header and the sections, for a look at the file: what the filter answers may be wrong if the payload is damaged.
    Header,
    /// The payload too, if it has at most this many bytes.
    UpTo(u64),
    /// All of it, whatever its size. For everybody who writes what was read under a checksum of its own.
    All,
}

/// The payload too up to 256 MiB.
impl Default for Check {
    fn default() -> Self {
        Self::UpTo(VERIFY_UP_TO)
    }
}

/// How a file's bytes get into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Mapped: nothing is copied, and as much is checked as [`Check`] says.
    ///
    /// The file must not be changed by others while it is mapped:
    ///
    /// - If a program truncates the file, the next access to a page behind its new end raises the signal SIGBUS, which
    ///   ends the process. [`fault::install`](crate::fault::install) makes it exit with a message that names the file.
    /// - If a program overwrites bytes of the file, the slices that the filter reads change while they are borrowed. To Rust
    ///   that is undefined behaviour, although [`open`] is a safe function. In practice the filter may give wrong answers.
    /// - [`update`] on another handle, in this process or in another one, writes a large Bloom or blocked filter in place,
    ///   under those slices as well. It only turns bits of the payload from 0 to 1, a whole word at a time, so a reader sees
    ///   each word before or after the change, and a key that is in stays in.
    ///
    /// [`write()`] is no such change: it replaces the file by renaming, and the map keeps the old one.
    ///
    /// Use [`Read`](Access::Read) for files that others may change.
    Map,
    /// Read: all of it is copied and checked. Later changes of the file do not reach the filter. Use it for files that others
    /// may truncate or overwrite, for files that are updated in place if the strict rules of Rust matter more than the time
    /// to copy, and for what cannot be mapped.
    Read,
}

/// How far a file's checksums have been compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The header's.
    Header,
    /// All of them.
    All,
    /// The header's; the payload has none, since it was updated in place.
    Unsummed,
    /// The header's; a writer died at work in the payload, so that counts and checksum are void.
    Interrupted,
    /// The header's; a writer is at work in the payload. Every key from before is in, counts and checksum are void.
    BeingWritten,
    /// There are none: another program's file.
    Nothing,
}

/// An open filter file.
pub struct Opened {
    /// The filter.
    pub filter: Box<dyn AnyFilter>,
    /// How far it was checked.
    pub checked: Checked,
    /// The metadata section, to be kept when the file is written again.
    pub metadata: Option<Bytes>,
    /// The id of the secret that its keys are hashed under, if it is keyed.
    pub key_id: Option<u64>,
}

impl Opened {
    /// Whether the payload was compared with its checksum. If not, damage may make the filter deny a key that is in it.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.checked == Checked::All
    }

    /// Whether the file should have a checksum of its payload, and has none: it was updated in place.
    #[must_use]
    pub fn lacks_checksum(&self) -> bool {
        matches!(self.checked, Checked::Unsummed | Checked::Interrupted | Checked::BeingWritten)
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opened({}, {:?})", self.filter.family().name, self.checked)
    }
}

/// Opens a filter file. A damaged one is refused, if it is read or has no more than 256 MiB: see [`Check`].
///
/// With [`Access::Map`] the file must not be changed by others as long as the filter lives: a truncated file ends the process
/// with SIGBUS, and an update in place writes the pages that the filter reads. If others may change the file, use
/// [`Access::Read`], which copies it.
///
/// # Errors
/// [`StoreError`] names the file, and what the system or the decoder says.
pub fn open(path: &Path, access: Access, secret: Option<&Secret>) -> Result<Opened, StoreError> {
    open_checked(path, access, Check::default(), secret)
}

/// Opens a filter file, and says how much of it is checked if it is mapped. What [`open`] says of maps holds here too.
///
/// # Errors
/// As [`open`].
pub fn open_checked(
    path: &Path,
    access: Access,
    check: Check,
    secret: Option<&Secret>,
) -> Result<Opened, StoreError> {
    open_by(path, access, check, |frame| frame.hashing(secret))
}

/// Opens a filter file for a look at it, without the secret if it is keyed: what the filter reports of itself is true,
/// but its answers are those of another secret and mean nothing.
///
/// # Errors
/// As [`open`], but for the secret.
pub fn open_sealed(path: &Path, access: Access, check: Check) -> Result<Opened, StoreError> {
    open_by(path, access, check, |frame| match frame.hashing(None) {
        Err(DecodeError::SecretNeeded { .. }) => Ok(Hashing::Keyed(Secret::new([0; 16]))),
        hashing => hashing,
    })
}

/// How the hashing of a file is made a working one.
pub(crate) type Unlock<'a> = &'a dyn Fn(&Frame) -> Result<Hashing, DecodeError>;

/// Opens a file for reading. Readers wait for nobody: files are replaced by renaming, so that an open one stays what it is.
pub(crate) fn open_to_read(path: &Path) -> Result<(File, Metadata), StoreError> {
    let file = File::open(path).map_err(StoreError::io(path, "open"))?;
    let metadata = file.metadata().map_err(StoreError::io(path, "look at"))?;
    if metadata.is_dir() {
        return Err(StoreError::io(path, "read")(io::ErrorKind::IsADirectory.into()));
    }
    lock::wait_to_read(&file);
    Ok((file, metadata))
}

fn open_by(
    path: &Path,
    access: Access,
    check: Check,
    unlock: impl Fn(&Frame) -> Result<Hashing, DecodeError>,
) -> Result<Opened, StoreError> {
    let (mut file, metadata) = open_to_read(path)?;
    if metadata.is_file() && metadata.len() > 0 {
        return reader::open(path, file, access, check, &unlock);
    }
    let bytes = read_all(path, &mut file)?;
    decode_by(&bytes.into(), Check::All, &unlock).map_err(StoreError::decode(path))
}

/// All bytes of a filter file. One that is no filter is refused before its length decides how much memory is taken.
pub(crate) fn read_all(path: &Path, file: &mut File) -> Result<Vec<u8>, StoreError> {
    let metadata = file.metadata().map_err(StoreError::io(path, "look at"))?;
    if metadata.is_file() {
        let mut start = Vec::new();
        file.rewind()
            .and_then(|()| file.take(MAX_HEADER as u64).read_to_end(&mut start))
            .and_then(|_| file.rewind())
            .map_err(StoreError::io(path, "read"))?;
        Header::decode(&start, metadata.len()).map_err(StoreError::decode(path))?;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(StoreError::io(path, "read"))?;
    Ok(bytes)
}

/// Makes a filter of a whole file's bytes.
///
/// # Errors
/// [`DecodeError`] says what is wrong with them.
pub fn decode(bytes: &Bytes, check: Check, secret: Option<&Secret>) -> Result<Opened, DecodeError> {
    decode_by(bytes, check, &|frame| frame.hashing(secret))
}

fn decode_by(bytes: &Bytes, check: Check, unlock: Unlock<'_>) -> Result<Opened, DecodeError> {
    let header = Header::decode(bytes.as_slice(), bytes.len() as u64)?;
    decode_with(header, bytes, check, unlock)
}

/// Makes a filter of a whole file's bytes and its header, decoded.
pub(crate) fn decode_with(
    header: Header,
    bytes: &Bytes,
    check: Check,
    unlock: Unlock<'_>,
) -> Result<Opened, DecodeError> {
    let mut frame = Frame::with_header(header, bytes, Verify::Header)?;
    // A secret that is missing is told before all of a large file is read.
    let hashing = unlock(&frame)?;
    let stored = frame.header.hashing;
    match check {
        Check::Header => {}
        Check::UpTo(limit) if frame.header.payload.length > limit => {}
        Check::UpTo(_) | Check::All => frame.verify_payload()?,
    }
    let filter = mayhap::decode(&mut frame, hashing)?;
    let checked = match frame.header.flags {
        // Whether the writer is alive, its lock tells: see `reader`.
        flags if flags.contains(Flags::WRITING) => Checked::Interrupted,
        flags if flags.contains(Flags::UNSUMMED) => Checked::Unsummed,
        _ if frame.verified => Checked::All,
        _ => Checked::Header,
    };
    let metadata = frame.sections.into_iter().find(|(id, _)| *id == METADATA).map(|(_, bytes)| bytes);
    Ok(Opened { filter, checked, metadata, key_id: stored.is_keyed().then_some(stored.key_id) })
}

/// Writes a filter to a file. Whatever happens, the name means the old file or the whole new one.
///
/// The mode of an existing file and the target of a symbolic link are kept. What is not a regular
/// file (a device, a pipe) is written to as it is.
///
/// # Errors
/// [`StoreError`] names the file and what the system says; then the old file is untouched.
pub fn write(path: &Path, filter: &dyn AnyFilter) -> Result<(), StoreError> {
    write_summed(path, filter, Summing::Payload)
}

/// The same for a filter that must not get a checksum, because it comes from a file that has none (see
/// [`Opened::lacks_checksum`]): a new one would vouch for bytes that cannot be verified.
///
/// # Errors
/// As [`write`](fn@write).
pub fn write_summed(path: &Path, filter: &dyn AnyFilter, summing: Summing) -> Result<(), StoreError> {
    verify(filter).map_err(StoreError::decode(path))?;
    write_by(path, |out| write_pieces(out, filter, summing, None))
}

/// Puts whatever is written in the place of a file, or into what is no regular file.
pub(crate) fn write_by(
    path: &Path,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(old) if old.is_dir() => Err(StoreError::io(path, "write")(io::ErrorKind::IsADirectory.into())),
        Ok(old) if !old.is_file() => {
            let mut out =
                File::options().write(true).open(path).map_err(StoreError::io(path, "open for writing"))?;
            content(&mut out).map_err(StoreError::io(path, "write"))
        }
        Ok(_) => {
            let path = &lock::target(path)?;
            // A writer that is updating the old file would put its result over ours.
            let lock = lock::exclusive(path)?;
            replace_by(path, Some(&lock), content)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => replace_by(&lock::target(path)?, None, content),
        Err(e) => Err(StoreError::io(path, "write")(e)),
    }
}

fn write_pieces(
    out: &mut impl Write,
    filter: &dyn AnyFilter,
    summing: Summing,
    metadata: Option<&Bytes>,
) -> io::Result<()> {
    let encoded = encode_with(filter, summing, &as_sections(metadata));
    encoded.pieces().into_iter().try_for_each(|piece| out.write_all(piece))?;
    out.flush()
}

fn as_sections(metadata: Option<&Bytes>) -> Vec<(u32, &[u8])> {
    metadata.map(|bytes| (METADATA, bytes.as_slice())).into_iter().collect()
}

/// Writes to a file without a name in the same folder, syncs it, gives it the name, syncs the folder.
pub(crate) fn replace(
    path: &Path,
    old: Option<&File>,
    filter: &dyn AnyFilter,
    metadata: Option<&Bytes>,
) -> Result<(), StoreError> {
    replace_by(path, old, |out| write_pieces(out, filter, Summing::Payload, metadata))
}

/// The same for whatever is written.
pub(crate) fn replace_by(
    path: &Path,
    old: Option<&File>,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let new = written(path, old, content)?;
    new.replace(path, folder_of(path)).map_err(StoreError::io(path, "rename to"))?;
    sync_folder(path);
    Ok(())
}

/// Writes a filter to a file that does not exist, which is locked before it has its name. `None` if there is one by now, and
/// nothing has changed.
pub(crate) fn put_new(path: &Path, filter: &dyn AnyFilter) -> Result<Option<File>, StoreError> {
    let new = written(path, None, |out| write_pieces(out, filter, Summing::Payload, None))?;
    match new.put_new(path) {
        Ok(file) => {
            sync_folder(path);
            Ok(Some(file))
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(e) => Err(StoreError::io(path, "create")(e)),
    }
}

/// The rename itself must reach the disk too. Systems that cannot sync a folder do it by themselves.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
}

/// A file beside a path that waits for its name, synced.
fn written(
    path: &Path,
    old: Option<&File>,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<Temporary, StoreError> {
    let mut new =
        Temporary::new_in(folder_of(path)).map_err(StoreError::io(path, "create a file in its folder"))?;
    if let Some(old) = old {
        keep_owner_and_mode(old, &new.file).map_err(StoreError::io(path, "keep the mode"))?;
    }
    content(&mut new.file).and_then(|()| new.file.sync_all()).map_err(StoreError::io(path, "write"))?;
    Ok(new)
}

fn keep_owner_and_mode(old: &File, new: &File) -> io::Result<()> {
    let old = old.metadata()?;
    #[cfg(unix)]
    {
        // What root updates still belongs to the one who asks it. Others cannot give files away.
        use std::os::unix::fs::{MetadataExt, fchown};
        let _ = fchown(new, Some(old.uid()), Some(old.gid()));
    }
    new.set_permissions(old.permissions())
}

/// Whether no insertion changes the sections, and they stand in the order in which we write them, so that a renewed header
/// says the same of them.
fn stay_in_place(sections: &[(u32, Extent)]) -> bool {
    const MOST_BYTES: u64 = 1 << 20;
    let ids: Vec<u32> = sections.iter().map(|(id, _)| *id).collect();
    let are_small = sections.iter().all(|(_, extent)| extent.length <= MOST_BYTES);
    are_small && matches!(ids[..], [] | [METADATA] | [KEY_RULES] | [KEY_RULES, METADATA])
}

/// The sections of a file that is updated in place.
fn read_sections(path: &Path, file: &mut File, header: &Header) -> Result<Vec<(u32, Bytes)>, StoreError> {
    let mut sections = Vec::with_capacity(header.sections.len());
    for (id, extent) in &header.sections {
        let mut bytes = vec![0; usize::try_from(extent.length).unwrap_or(usize::MAX)];
        file.seek(SeekFrom::Start(extent.offset))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(StoreError::io(path, "read"))?;
        extent.verify("section", &bytes).map_err(StoreError::decode(path))?;
        sections.push((*id, bytes.into()));
    }
    Ok(sections)
}

/// What stopped an update: the file, or the change that was to be made.
#[derive(Debug)]
pub enum UpdateError<E> {
    /// The file.
    Store(StoreError),
    /// The change; the file is as it was.
    Change(E),
}

impl<E> From<StoreError> for UpdateError<E> {
    fn from(e: StoreError) -> Self {
        Self::Store(e)
    }
}

impl<E: fmt::Display> fmt::Display for UpdateError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Change(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for UpdateError<E> {
    /// That of the error within, whose text is the text of this one.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => error.source(),
            Self::Change(error) => error.source(),
        }
    }
}

/// Changes a filter file under its lock, so that of two writers at the same time none loses a key.
///
/// Small files are rewritten and replaced. Large files of a family that can are changed in place: the
/// header is marked, the payload is changed through a map, and the header is renewed. If the process
/// dies in between, the filter still holds every key that it held; its counts are void until they are
/// renewed by the next update. Readers do not wait: they see the old file, or one that is [being written](Checked::BeingWritten).
///
/// `change` gets the filter. If it fails the file stays as it was, so in a file that is changed in
/// place it must fail before its first change or not at all: inserting into such a family never fails.
///
/// A payload that has a checksum is compared with it first, whatever its size: the new one never vouches for old damage.
///
/// # Errors
/// [`UpdateError`] tells the file's problems from those of the change.
pub fn update<T, E>(
    path: &Path,
    secret: Option<&Secret>,
    change: impl FnOnce(&mut dyn AnyFilter) -> Result<T, E>,
) -> Result<T, UpdateError<E>> {
    update_sized(path, secret, Sizes::default(), change)
}

/// [`update`] with other sizes at which files are treated differently.
///
/// # Errors
/// As [`update`].
pub fn update_sized<T, E>(
    path: &Path,
    secret: Option<&Secret>,
    sizes: Sizes,
    change: impl FnOnce(&mut dyn AnyFilter) -> Result<T, E>,
) -> Result<T, UpdateError<E>> {
    let path = &lock::target(path)?;
    let mut file = lock::exclusive(path)?;
    let total = file.metadata().map_err(StoreError::io(path, "look at"))?.len();
    let mut start = vec![0; PAGE.min(usize::try_from(total).unwrap_or(PAGE))];
    let read = |file: &mut File, bytes: &mut [u8]| {
        file.rewind().and_then(|()| file.read_exact(bytes)).map_err(StoreError::io(path, "read"))
    };
    read(&mut file, &mut start)?;
    let length = Header::length(&start).map_err(StoreError::decode(path))?;
    start.resize(length.min(usize::try_from(total).unwrap_or(length)), 0);
    read(&mut file, &mut start)?;
    let header = Header::decode(&start, total).map_err(StoreError::decode(path))?;

    let family = FAMILIES.iter().find(|family| family.id == header.family);
    let in_place = family.is_some_and(|family| family.in_place)
        && header.payload.length >= sizes.in_place_from
        && stay_in_place(&header.sections)
        && cfg!(target_endian = "little");
    if in_place {
        return update_in_place(path, file, (start, header), (secret, sizes), change);
    }

    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(StoreError::io(path, "read"))?;
    let mut opened = decode(&bytes.into(), Check::All, secret).map_err(StoreError::decode(path))?;
    let outcome = change(&mut *opened.filter).map_err(UpdateError::Change)?;
    replace(path, Some(&file), &*opened.filter, opened.metadata.as_ref())?;
    Ok(outcome)
}

/// As [`update`], by a change that may give another filter, such as the same with exceptions: the file is written anew,
/// whatever its size.
///
/// # Errors
/// As [`update`].
pub fn remake<T, E>(
    path: &Path,
    secret: Option<&Secret>,
    change: impl FnOnce(Box<dyn AnyFilter>) -> Result<(Box<dyn AnyFilter>, T), E>,
) -> Result<T, UpdateError<E>> {
    let path = &lock::target(path)?;
    let mut file = lock::exclusive(path)?;
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(StoreError::io(path, "read"))?;
    let opened = decode(&bytes.into(), Check::All, secret).map_err(StoreError::decode(path))?;
    let (filter, outcome) = change(opened.filter).map_err(UpdateError::Change)?;
    replace(path, Some(&file), &*filter, opened.metadata.as_ref())?;
    Ok(outcome)
}

fn update_in_place<T, E>(
    path: &Path,
    mut file: File,
    (mut start, header): (Vec<u8>, Header),
    (secret, sizes): (Option<&Secret>, Sizes),
    change: impl FnOnce(&mut dyn AnyFilter) -> Result<T, E>,
) -> Result<T, UpdateError<E>> {
    let payload = header.payload;
    let length = usize::try_from(payload.length)
        .map_err(|_| StoreError::io(path, "map")(io::ErrorKind::OutOfMemory.into()))?;
    // A page of a map that has no place on a full disk is the end of the process; here it is an error still. On some file
    // systems a look at such a page is enough.
    space::reserve(&file, payload.offset, payload.length)
        .map_err(StoreError::io(path, "reserve its space on the disk"))?;
    let map = map_mut(&file, path, payload.offset, length).map_err(StoreError::io(path, "map"))?;
    let sections = read_sections(path, &mut file, &header)?;
    let mut frame = Frame { header, payload: Bytes::exclusive(map), sections, verified: false };
    let hashing = frame.hashing(secret).map_err(StoreError::decode(path))?;
    // Without a checksum there is nothing to compare, and a look at every bit would make each key of a large file dear.
    if frame.has_checksum() {
        frame.verify_payload().map_err(StoreError::decode(path))?;
    }
    let mut filter = mayhap::decode(&mut frame, hashing).map_err(StoreError::decode(path))?;
    let (bits, rules) = (filter.report().bits, filter.key_rules().cloned());
    let metadata = frame.take_section(METADATA);

    let put_header = |file: &mut File, header: &[u8]| {
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(header))
            .and_then(|()| file.sync_data())
            .map_err(StoreError::io(path, "write"))
    };
    // From here on a crash must not leave counts and a checksum that no longer hold.
    mark_writing(&mut start);
    put_header(&mut file, &start)?;
    let outcome = change(&mut *filter);
    // A filter of another size (a merge can make one) is no longer in the map. It becomes a file of its
    // own; if it cannot, the old one keeps its keys and the mark that its counts are void.
    // So does one whose keys are spelled by other rules now.
    let is_moved = filter.report().bits != bits || filter.key_rules() != rules.as_ref();
    if is_moved {
        let outcome = outcome.map_err(UpdateError::Change)?;
        replace(path, Some(&file), &*filter, metadata.as_ref())?;
        return Ok(outcome);
    }
    let summing = if payload.length <= sizes.sum_up_to { Summing::Payload } else { Summing::Skip };
    let renewed = encode_with(&*filter, summing, &as_sections(metadata.as_ref())).header().to_vec();
    // The bits must be on disk before a header that vouches for them.
    drop(filter);
    file.sync_data().map_err(StoreError::io(path, "sync"))?;
    put_header(&mut file, &renewed)?;
    outcome.map_err(UpdateError::Change)
}
