//! Bytes from files and standard input, decompressed, in chunks of whole records.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use memchr::{Memchr, memchr_iter, memrchr};

use crate::progress::Progress;

/// Reads of this size keep the number of system calls low and stay in the second-level cache.
const CHUNK: usize = 256 * 1024;

/// Room in a pipe, where we may say so: as much as a user may take by default.
#[cfg(target_os = "linux")]
const PIPE: usize = 1 << 20;

/// Where keys come from.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    /// No path at all means standard input, and so does `-`.
    pub(crate) paths: Vec<PathBuf>,
    /// `\n` or NUL.
    pub(crate) terminator: u8,
    /// Whether compressed input is recognised.
    pub(crate) decompress: bool,
    /// Whether records are numbered while reading, which costs a pass over the bytes: for records that
    /// can be wrong, and for commands that print the numbers.
    pub(crate) numbered: bool,
    /// What came from inputs that can be read only once, by their paths.
    pub(crate) aside: HashMap<PathBuf, Arc<File>>,
}

impl Inputs {
    fn sources(&self) -> Vec<&Path> {
        match self.paths.len() {
            0 => vec![Path::new("-")],
            _ => self.paths.iter().map(PathBuf::as_path).collect(),
        }
    }

    /// The same, but what can be read only once is there once.
    fn sources_once(&self) -> Vec<&Path> {
        let mut seen = HashSet::new();
        let mut sources = self.sources();
        sources.retain(|path| !self.aside.contains_key(*path) || seen.insert(path.to_path_buf()));
        sources
    }

    /// Whether every input is a plain file, so that it can be read twice at the cost of a read.
    pub(crate) fn can_be_counted(&self) -> Result<bool> {
        for path in self.sources() {
            if path == Path::new("-") {
                return Ok(false);
            }
            // A named pipe must be opened once only: its writer would take the first close for the end.
            let metadata = path.metadata().with_context(|| format!("{}: cannot open", path.display()))?;
            if !metadata.is_file() || Input::new(open(path)?, path, self.decompress)?.compressed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// About how many records there are in plain files, from their sizes and from samples of them: rather a few too many.
    /// `None` if an input is a stream or compressed.
    pub(crate) fn estimated_records(&self) -> Result<Option<u64>> {
        if !self.can_be_counted()? {
            return Ok(None);
        }
        // What the system makes as it is read has no size.
        let is_made = |path: &&Path| {
            path.metadata().is_ok_and(|metadata| metadata.len() == 0)
                && File::open(path).and_then(|mut file| file.read(&mut [0])).is_ok_and(|read| read > 0)
        };
        if self.sources().iter().any(is_made) {
            return Ok(None);
        }
        let estimates = self.sources().into_iter().map(|path| {
            let estimate = estimated_records(&open(path)?, self.terminator);
            estimate.with_context(|| format!("{}: cannot read", path.display()))
        });
        estimates.sum::<Result<u64>>().map(Some)
    }

    /// Whether inputs can be read only once.
    fn is_stream(path: &Path) -> Result<bool> {
        if path == Path::new("-") {
            return Ok(true);
        }
        let metadata = path.metadata().with_context(|| format!("{}: cannot open", path.display()))?;
        // A folder is refused when it is opened.
        Ok(!metadata.is_file() && !metadata.is_dir())
    }

    /// Puts what can be read only once aside, in a temporary file without a name, so that all inputs can be read twice.
    pub(crate) fn set_aside(&mut self) -> Result<()> {
        for path in self.sources().into_iter().map(Path::to_path_buf).collect::<Vec<_>>() {
            if self.aside.contains_key(&path) || !Self::is_stream(&path)? {
                continue;
            }
            let from = if path == Path::new("-") { stdin().context("standard input")? } else { open(&path)? };
            let copied = tempfile::tempfile().and_then(|mut file| {
                io::copy(&mut &from, &mut file)?;
                Ok(file)
            });
            let file = copied.with_context(|| {
                let (name, folder) = (Input::name_of(&path), std::env::temp_dir());
                let folder = folder.display();
                format!(
                    "{name}: cannot put it aside in {folder}; name another folder with TMPDIR, or give a file"
                )
            })?;
            self.aside.insert(path, Arc::new(file));
        }
        Ok(())
    }

    /// The size of all inputs together, if it can be known, for the progress bar.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        self.paths
            .iter()
            .map(|path| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.len()))
            .sum::<Option<u64>>()
            .filter(|_| !self.paths.is_empty())
    }

    /// All inputs in order, chunk by chunk.
    pub(crate) fn chunks(&self) -> Chunks {
        Chunks {
            waiting: self.sources_once().into_iter().rev().map(Path::to_path_buf).collect(),
            inputs: self.clone(),
            current: None,
            carry: Vec::new(),
            given: 0,
            failed: None,
        }
    }

    /// How many records there are in plain files. One thread: counting is as fast as reading.
    pub(crate) fn count_records(&self, progress: &Progress) -> Result<u64> {
        let mut records = 0;
        // Small enough to stay in the cache that the kernel copies through.
        let mut buffer = vec![0; 64 << 10];
        for path in self.sources() {
            let (mut file, mut last) = (open(path)?, self.terminator);
            loop {
                let read =
                    file.read(&mut buffer).with_context(|| format!("{}: cannot read", path.display()))?;
                let Some(&byte) = buffer[..read].last() else { break };
                last = byte;
                records += memchr_iter(self.terminator, &buffer[..read]).count() as u64;
                progress.advance(read);
            }
            records += u64::from(last != self.terminator);
        }
        Ok(records)
    }

    /// Reads in this thread and works on the chunks in others, each with a state of its own, in any
    /// order. The first error in the order of the input ends it.
    pub(crate) fn in_parallel<S: Send>(
        &self,
        threads: usize,
        progress: &Progress,
        state: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, &Chunk) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let (full_out, full_in) = sync_channel::<Chunk>(2 * threads);
        let (empty_out, empty_in) = sync_channel::<Buffer>(4 * threads);
        let queue = Mutex::new(full_in);
        let failed: Mutex<Option<(u64, anyhow::Error)>> = Mutex::new(None);
        let worker = || {
            let mut state = state();
            while let Some(chunk) = next(&queue) {
                if let Err(error) = work(&mut state, &chunk) {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    if failed.as_ref().is_none_or(|(earlier, _)| chunk.number < *earlier) {
                        *failed = Some((chunk.number, error));
                    }
                }
                // Nobody waits for an empty buffer: if the channel is full it is one too many.
                let _ = empty_out.try_send(chunk.bytes);
            }
            state
        };
        let has_failed = || failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let (states, read) = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(worker)).collect();
            let mut chunks = self.chunks();
            let read = loop {
                let buffer = empty_in.try_recv().unwrap_or_default();
                match chunks.next(buffer) {
                    Ok(Some(chunk)) if !has_failed() => {
                        progress.advance(chunk.bytes.len());
                        if full_out.send(chunk).is_err() {
                            break Ok(());
                        }
                    }
                    Ok(_) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            drop(full_out);
            let states: Vec<S> = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect();
            (states, read)
        });
        // A bad record lies before the place where reading failed.
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((_, error)) => Err(error),
            None => read.map(|()| states),
        }
    }
}

fn next(queue: &Mutex<Receiver<Chunk>>) -> Option<Chunk> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Memory for a chunk. It is cleared once, when it is made, and not for each read into it.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    len: usize,
}

impl Buffer {
    /// How many bytes were read into it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Whether it has grown beyond what most chunks need.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes.len() > 4 * CHUNK
    }

    /// Room for one more read.
    fn room(&mut self) -> &mut [u8] {
        let end = self.len + CHUNK;
        if self.bytes.len() < end {
            // Doubling, so that a long record costs linear time.
            self.bytes.resize(end.max(2 * self.len), 0);
        }
        &mut self.bytes[self.len..end]
    }

    /// Starts anew with these bytes.
    fn restart(&mut self, bytes: &[u8]) {
        self.len = 0;
        while self.bytes.len() < bytes.len() {
            self.bytes.resize(bytes.len() + CHUNK, 0);
        }
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        self.len = bytes.len();
    }
}

/// Whole records of one input.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) bytes: Buffer,
    /// The input's name, for messages.
    pub(crate) name: Arc<str>,
    /// Its place among all chunks of all inputs, from 0.
    pub(crate) number: u64,
    /// The number of the first record in its input, from 1, if records are numbered.
    pub(crate) first_record: u64,
    /// Nothing more was waiting when it was read: whoever prints should print now.
    pub(crate) last_for_now: bool,
    /// Its first record is the first of its input.
    pub(crate) starts_input: bool,
    pub(crate) terminator: u8,
}

impl Chunk {
    /// The records, without their ends.
    pub(crate) fn records(&self) -> Records<'_> {
        let bytes = self.bytes.as_slice();
        Records { bytes, ends: memchr_iter(self.terminator, bytes), start: 0 }
    }

    /// How many records there are.
    pub(crate) fn count(&self) -> u64 {
        let bytes = self.bytes.as_slice();
        let ends = memchr_iter(self.terminator, bytes).count() as u64;
        ends + u64::from(bytes.last().is_some_and(|&last| last != self.terminator))
    }

    /// Leaves the records that are to be kept, in order and each with its end, and tells how many. `ends` says where each ends.
    pub(crate) fn retain(&mut self, ends: &[usize], keep: impl Iterator<Item = bool>) -> usize {
        let Buffer { bytes, len } = &mut self.bytes;
        let (mut start, mut run, mut kept, mut records) = (0, 0, 0, 0);
        for (&end, keep) in ends.iter().zip(keep) {
            if keep {
                records += 1;
            } else {
                // Those before it move together.
                if run < start && run > kept {
                    bytes.copy_within(run..start, kept);
                }
                kept += start - run;
                run = end;
            }
            start = end;
        }
        if run < start && run > kept {
            bytes.copy_within(run..start, kept);
        }
        let last_is_kept = run < start;
        kept += start - run;
        // The last record of an input may have no end. If it is kept, it gets one.
        if last_is_kept && bytes[kept - 1] != self.terminator {
            match bytes.get_mut(kept) {
                Some(byte) => *byte = self.terminator,
                None => bytes.push(self.terminator),
            }
            kept += 1;
        }
        *len = kept;
        records
    }

    /// Where a record of this chunk stands, for a message.
    pub(crate) fn place(&self, index: usize) -> String {
        format!("{}: line {}", self.name, self.first_record + index as u64)
    }
}

/// Iterator over the records of a chunk.
pub(crate) struct Records<'a> {
    bytes: &'a [u8],
    ends: Memchr<'a>,
    start: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.start;
        match self.ends.next() {
            Some(end) => {
                self.start = end + 1;
                Some(&self.bytes[start..end])
            }
            // The last newline of an input is optional.
            None if start < self.bytes.len() => {
                self.start = self.bytes.len();
                Some(&self.bytes[start..])
            }
            None => None,
        }
    }
}

/// Reads inputs one after the other and cuts them after the last record end of each read.
pub(crate) struct Chunks {
    inputs: Inputs,
    /// In reverse order.
    waiting: Vec<PathBuf>,
    current: Option<Input>,
    /// The beginning of a record whose end has not been read yet.
    carry: Vec<u8>,
    /// How many chunks have been given out.
    given: u64,
    /// What stopped a read behind the last chunk.
    failed: Option<anyhow::Error>,
}

impl Chunks {
    /// The next chunk, in the memory of `buffer`; `None` at the end of all inputs.
    pub(crate) fn next(&mut self, mut buffer: Buffer) -> Result<Option<Chunk>> {
        let terminator = self.inputs.terminator;
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        loop {
            let input = match &mut self.current {
                Some(input) => input,
                none => match self.waiting.pop() {
                    Some(path) => none.insert(self.inputs.open(&path)?),
                    None => return Ok(None),
                },
            };
            buffer.restart(&self.carry);
            let mut searched = 0;
            let (cut, last_for_now) = loop {
                let read = match input.read_more(&mut buffer) {
                    Ok(read) => read,
                    // The whole records before it are good.
                    Err(error) => match memrchr(terminator, buffer.as_slice()) {
                        Some(end) => {
                            self.failed = Some(error);
                            break (end + 1, true);
                        }
                        None => return Err(error),
                    },
                };
                if read.bytes == 0 {
                    break (buffer.len(), true);
                }
                if buffer.len() >= CHUNK || read.short {
                    if let Some(end) = memrchr(terminator, &buffer.as_slice()[searched..]) {
                        break (searched + end + 1, read.short);
                    }
                    // One long record: what has been searched is not searched again.
                    searched = buffer.len();
                }
            };
            let ended = cut == buffer.len() && last_for_now && input.ended;
            self.carry.clear();
            self.carry.extend_from_slice(&buffer.as_slice()[cut..]);
            buffer.len = cut;
            let chunk = Chunk {
                bytes: std::mem::take(&mut buffer),
                name: input.name.clone(),
                number: self.given,
                first_record: input.records + 1,
                last_for_now,
                starts_input: std::mem::take(&mut input.is_fresh),
                terminator,
            };
            if ended {
                self.current = None;
            } else if self.inputs.numbered {
                input.records += chunk.count();
            }
            if chunk.bytes.len() > 0 {
                self.given += 1;
                return Ok(Some(chunk));
            }
            buffer = chunk.bytes;
        }
    }
}

struct ReadMore {
    bytes: usize,
    /// Less came than there was room for, of a pipe or a terminal, which has nothing more at the moment.
    short: bool,
}

/// One open input.
struct Input {
    name: Arc<str>,
    reader: Box<dyn Read + Send>,
    compressed: bool,
    /// It is no file, and whoever writes it may wait.
    stream: Option<Stream>,
    records: u64,
    ended: bool,
    /// Nothing of it has been given out.
    is_fresh: bool,
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("{}: cannot open", path.display()))
}

impl Inputs {
    fn open(&self, path: &Path) -> Result<Input> {
        if let Some(file) = self.aside.get(path) {
            let rewound = file.try_clone().and_then(|mut file| file.rewind().map(|()| file));
            return Input::new(rewound.with_context(|| Input::name_of(path))?, path, self.decompress);
        }
        if path == Path::new("-") {
            return Input::new(stdin().context("standard input")?, path, self.decompress);
        }
        let file = open(path)?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            anyhow::bail!("{}: is a folder; give the files in it", path.display());
        }
        Input::new(file, path, self.decompress)
    }
}

/// Parts of a file that are looked at to learn how long its records are.
const SAMPLES: u64 = 64;
const SAMPLE: u64 = 16 << 10;

/// About how many records a file has: the number that there are in samples, spread over all of it, and a 64th more.
fn estimated_records(file: &File, terminator: u8) -> io::Result<u64> {
    let size = file.metadata()?.len();
    let (samples, step) = if size <= SAMPLES * SAMPLE { (1, size) } else { (SAMPLES, size / SAMPLES) };
    let (mut records, mut bytes, mut buffer) = (0, 0, Vec::new());
    for sample in 0..samples {
        buffer.clear();
        let mut reader = file;
        reader.seek(io::SeekFrom::Start(sample * step))?;
        let most = if samples == 1 { size } else { SAMPLE };
        bytes += reader.take(most).read_to_end(&mut buffer)? as u64;
        records += memchr_iter(terminator, &buffer).count() as u64;
    }
    let all = u128::from(records) * u128::from(size) / u128::from(bytes.max(1));
    let all = u64::try_from(all).unwrap_or(u64::MAX);
    Ok(all.saturating_add(all / 64).saturating_add(1))
}

impl Input {
    fn name_of(path: &Path) -> String {
        if path == Path::new("-") { "(standard input)".into() } else { path.display().to_string() }
    }

    fn new(mut file: File, path: &Path, decompress: bool) -> Result<Self> {
        let name: Arc<str> = Self::name_of(path).into();
        let start = if decompress { peek(&mut file).with_context(|| name.to_string())? } else { Vec::new() };
        let stream = Stream::of(&file);
        let format = Compression::of(&start);
        let whole = io::Cursor::new(start).chain(file);
        let reader: Box<dyn Read + Send> = match format {
            None => Box::new(whole),
            Some(Compression::Gzip) => Box::new(flate2::read::MultiGzDecoder::new(whole)),
            Some(Compression::Zstd) => {
                Box::new(zstd::stream::read::Decoder::new(whole).with_context(|| name.to_string())?)
            }
            Some(Compression::Xz) => Box::new(liblzma::read::XzDecoder::new_multi_decoder(whole)),
            Some(Compression::Bzip2) => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
        };
        Ok(Self {
            name,
            reader,
            compressed: format.is_some(),
            stream,
            records: 0,
            ended: false,
            is_fresh: true,
        })
    }

    fn read_more(&mut self, buffer: &mut Buffer) -> Result<ReadMore> {
        let bytes = loop {
            match self.reader.read(buffer.room()) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        let bytes = bytes.with_context(|| {
            let what = if self.compressed { "cannot decompress" } else { "cannot read" };
            format!("{}: {what}", self.name)
        })?;
        buffer.len += bytes;
        self.ended = bytes == 0;
        let short = bytes < CHUNK && self.stream.as_ref().is_some_and(|stream| !stream.has_more());
        Ok(ReadMore { bytes, short })
    }
}

/// A pipe or a terminal.
struct Stream {
    /// Another handle, since a decompressor has the first.
    #[cfg_attr(not(unix), allow(dead_code))]
    file: File,
}

impl Stream {
    /// `None` if it is a file.
    fn of(file: &File) -> Option<Self> {
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return None;
        }
        // A reader and a writer that wait for each other less often. The system may refuse, and it makes no difference.
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(file, PIPE);
        file.try_clone().ok().map(|file| Self { file })
    }

    /// Whether a read would return at once.
    #[cfg(unix)]
    fn has_more(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut waiting = [PollFd::new(&self.file, PollFlags::IN)];
        poll(&mut waiting, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    #[cfg(not(unix))]
    fn has_more(&self) -> bool {
        false
    }
}

/// Standard input without the small buffer of the standard library.
#[cfg(unix)]
fn stdin() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn stdin() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
}

/// What compressed files start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

/// The first bytes, with `None` for a digit from 1 to 9. bzip2's "BZh9" alone is also text, so
/// the start of its first block is looked at too, or of its end if it is empty.
const SIGNATURES: &[(Compression, &[Option<u8>])] = &[
    (Compression::Gzip, &[Some(0x1f), Some(0x8b), Some(8)]),
    (Compression::Zstd, &[Some(0x28), Some(0xb5), Some(0x2f), Some(0xfd)]),
    (Compression::Xz, &[Some(0xfd), Some(b'7'), Some(b'z'), Some(b'X'), Some(b'Z'), Some(0)]),
    (
        Compression::Bzip2,
        &[
            Some(b'B'),
            Some(b'Z'),
            Some(b'h'),
            None,
            Some(0x31),
            Some(0x41),
            Some(0x59),
            Some(0x26),
            Some(0x53),
            Some(0x59),
        ],
    ),
    (
        Compression::Bzip2,
        &[
            Some(b'B'),
            Some(b'Z'),
            Some(b'h'),
            None,
            Some(0x17),
            Some(0x72),
            Some(0x45),
            Some(0x38),
            Some(0x50),
            Some(0x90),
        ],
    ),
];

impl Compression {
    fn of(start: &[u8]) -> Option<Self> {
        let fits = |signature: &[Option<u8>]| start.len() >= signature.len() && agrees(start, signature);
        SIGNATURES.iter().find(|(_, signature)| fits(signature)).map(|(format, _)| *format)
    }
}

fn agrees(start: &[u8], signature: &[Option<u8>]) -> bool {
    let fits = |byte: u8, wanted: Option<u8>| match wanted {
        Some(wanted) => byte == wanted,
        None => (b'1'..=b'9').contains(&byte),
    };
    start.iter().zip(signature).all(|(&byte, &wanted)| fits(byte, wanted))
}

/// Reads as many bytes as it takes to recognise a signature, and not one more than that: a pipe may
/// have brought two bytes and keep us waiting for the third. No signature has a newline in it, so that
/// nothing is read beyond the first line of a text.
fn peek(file: &mut File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    loop {
        let undecided = SIGNATURES
            .iter()
            .any(|(_, signature)| start.len() < signature.len() && agrees(&start, signature));
        if !undecided || file.by_ref().take(1).read_to_end(&mut start)? == 0 {
            return Ok(start);
        }
    }
}
