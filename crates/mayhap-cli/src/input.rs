//! Bytes from files and standard input, decompressed, in chunks of whole records.

use std::collections::{HashMap, HashSet, TryReserveError};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
#[cfg(unix)]
use mayhap_store::fault::{Stream, was_closed};
use memchr::{Memchr, memchr_iter, memrchr};

use crate::compression::{Compression, peek};
use crate::on_the_way::{OnTheWay, Share};
use crate::progress::Progress;
use crate::report;

/// Reads of this size keep the number of system calls low and stay in the second-level cache.
const CHUNK: usize = 256 * 1024;

/// What a buffer grows by at the most.
const MOST_GROWTH: usize = 16 << 20;

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
    /// The bytes that a record may have.
    pub(crate) max_record: u64,
    /// Whether a carriage return at the end of a record would become a part of its key without anybody having said so.
    pub(crate) warns_of_carriage_returns: bool,
    /// Where warnings go.
    pub(crate) warnings: Warnings,
    /// What came from inputs that can be read only once, by their paths.
    pub(crate) aside: HashMap<PathBuf, Arc<File>>,
}

/// The bytes that a record may have where the user does not say.
pub(crate) const MAX_RECORD: u64 = 1 << 30;

/// What the user should know about the inputs of a run. Each warning is there once, however often inputs are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    waiting: Vec<String>,
    of_carriage_returns: bool,
}

impl Warnings {
    fn of_carriage_returns(&self, name: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut told.of_carriage_returns, true) {
            told.waiting.push(format!(
                "warning: {name}: its lines end in CR LF, and the carriage return (CR) is part of each key; drop it with \
                 --crlf where keys are put in (lookups then drop it too), or with tr -d '\\r'"
            ));
        }
    }

    pub(crate) fn add(&self, warning: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.push(warning);
    }

    /// The warnings since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting)
    }
}

impl Inputs {
    pub(crate) fn sources(&self) -> Vec<&Path> {
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
                let (name, folder) = (name_of(&path), std::env::temp_dir());
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
            on_the_way: None,
        }
    }

    /// The same, for chunks that other threads work on: the reader waits while too many bytes are on their way to them.
    pub(crate) fn chunks_for_threads(&self) -> Chunks {
        Chunks { on_the_way: Some(Arc::default()), ..self.chunks() }
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
                if !chunk.bytes.is_large() {
                    let _ = empty_out.try_send(chunk.bytes);
                }
            }
            state
        };
        let has_failed = || failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let (states, read) = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(worker)).collect();
            let mut chunks = self.chunks_for_threads();
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

    /// How many bytes it has to have for one more read.
    fn needed(&self) -> usize {
        if self.len + CHUNK <= self.bytes.len() {
            return self.bytes.len();
        }
        // Doubling, so that a long record costs linear time. A very long one grows in steps instead: the system moves such
        // large blocks without copying them, and only the last step is memory that the record does not need.
        self.len + self.len.clamp(CHUNK, MOST_GROWTH)
    }

    fn grow(&mut self, bytes: usize) -> Result<(), TryReserveError> {
        let missing = bytes.saturating_sub(self.bytes.len());
        self.bytes.try_reserve_exact(missing)?;
        self.bytes.resize(self.bytes.len() + missing, 0);
        Ok(())
    }

    /// Room for one more read.
    fn room(&mut self) -> Result<&mut [u8], TryReserveError> {
        self.grow(self.needed())?;
        Ok(&mut self.bytes[self.len..self.len + CHUNK])
    }

    /// Starts anew with these bytes.
    fn restart(&mut self, bytes: &[u8]) -> Result<(), TryReserveError> {
        self.grow(bytes.len())?;
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        self.len = bytes.len();
        Ok(())
    }
}

/// Whole records of one input.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) bytes: Buffer,
    /// Its share of what is on its way, which is given back when the bytes are.
    pub(crate) share: Option<Share>,
    /// The bytes of a byte order mark before its first record, which are no part of the key.
    mark: usize,
    /// The input's name, for messages.
    pub(crate) name: Arc<str>,
    /// Its place among all chunks of all inputs, from 0.
    pub(crate) number: u64,
    /// The number of the first record in its input, from 1, if records are numbered.
    pub(crate) first_record: u64,
    /// Nothing more was waiting when it was read: results should be printed now.
    pub(crate) last_for_now: bool,
    /// Its first record is the first of its input.
    pub(crate) starts_input: bool,
    pub(crate) terminator: u8,
}

impl Chunk {
    /// The records, without their ends and without the byte order mark of the input: what keys are taken from.
    pub(crate) fn records(&self) -> Records<'_> {
        Records { start: self.mark, ..self.printed() }
    }

    /// The records as they are printed, without their ends: all of their bytes.
    pub(crate) fn printed(&self) -> Records<'_> {
        let bytes = self.bytes.as_slice();
        Records { bytes, ends: memchr_iter(self.terminator, bytes), start: 0 }
    }

    /// Where the first record starts, behind the byte order mark of the input.
    pub(crate) fn start(&self) -> usize {
        self.mark
    }

    /// How many records there are.
    pub(crate) fn count(&self) -> u64 {
        let records = &self.bytes.as_slice()[self.mark..];
        let ends = memchr_iter(self.terminator, records).count() as u64;
        ends + u64::from(records.last().is_some_and(|&last| last != self.terminator))
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
        // The last record of an input may have no end. If it is kept, it gets one: there is room where the end of the input
        // was read.
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
    /// The beginning of a record whose end has not been read yet. Of the reads that a chunk is made of only the last have a
    /// record end, so that this is never longer than two of them.
    carry: Vec<u8>,
    /// How many chunks have been given out.
    given: u64,
    /// What stopped a read behind the last chunk.
    failed: Option<anyhow::Error>,
    on_the_way: Option<Arc<OnTheWay>>,
}

/// Where a chunk ends.
struct Cut {
    at: usize,
    /// Nothing more was waiting when it was read.
    last_for_now: bool,
    /// What came behind it, if that was an error.
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
            buffer.restart(&self.carry).map_err(|_| input.has_no_memory(&buffer, terminator))?;
            let Cut { at: cut, last_for_now, failed } =
                input.fill(&mut buffer, &self.inputs, self.on_the_way.as_deref())?;
            self.failed = failed;
            let ended = cut == buffer.len() && last_for_now && input.ended;
            self.carry.clear();
            if self.failed.is_none() {
                self.carry.extend_from_slice(&buffer.as_slice()[cut..]);
            }
            buffer.len = cut;
            let starts_input = std::mem::take(&mut input.is_fresh);
            let mark =
                if starts_input && buffer.as_slice().starts_with(UTF8_MARK) { UTF8_MARK.len() } else { 0 };
            let mut chunk = Chunk {
                bytes: std::mem::take(&mut buffer),
                share: None,
                mark,
                name: input.name.clone(),
                number: self.given,
                first_record: input.records + 1,
                last_for_now,
                starts_input,
                terminator,
            };
            if input.carriage_returns.are_in_all(&chunk, ended) && self.inputs.warns_of_carriage_returns {
                self.inputs.warnings.of_carriage_returns(&input.name);
            }
            input.given += cut as u64;
            if ended {
                self.current = None;
            } else if input.is_counted {
                input.records += chunk.count();
            }
            if chunk.bytes.len() > 0 {
                self.given += 1;
                chunk.share = self.on_the_way.as_ref().map(|all| all.share(chunk.bytes.bytes.len()));
                return Ok(Some(chunk));
            }
            buffer = chunk.bytes;
        }
    }
}

/// The number of records at the start of an input that are examined for carriage returns.
const LOOKED_AT: u32 = 1000;

/// Whether the first records of an input all end in a carriage return.
#[derive(Debug, Default)]
struct CarriageReturns {
    records: u32,
    is_decided: bool,
}

impl CarriageReturns {
    /// Looks at the next chunk of the input, which may be its last. `true` as soon as the answer is yes, once.
    fn are_in_all(&mut self, chunk: &Chunk, is_last: bool) -> bool {
        if self.is_decided {
            return false;
        }
        let (bytes, mut start) = (chunk.bytes.as_slice(), chunk.mark);
        for end in memchr_iter(chunk.terminator, bytes) {
            if !bytes[start..end].ends_with(b"\r") {
                self.is_decided = true;
                return false;
            }
            start = end + 1;
            self.records += 1;
            if self.records == LOOKED_AT {
                self.is_decided = true;
                return true;
            }
        }
        self.is_decided = is_last;
        is_last && self.records > 0
    }
}

struct ReadMore {
    bytes: usize,
    /// Less came than there was room for, of a pipe or a terminal, which has nothing more at the moment.
    short: bool,
}

/// What some programs put at the start of UTF-8 text.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// What UTF-16 text starts with. (UTF-32 starts with the first of them too.)
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// One open input.
struct Input {
    name: Arc<str>,
    reader: Box<dyn Read + Send>,
    compressed: bool,
    /// Another handle, since the reader has the first.
    handle: Handle,
    /// Whether records are counted as they are read.
    is_counted: bool,
    /// The records that were given out, if they are counted.
    records: u64,
    /// The bytes that were given out.
    given: u64,
    /// The bytes that were read.
    read: u64,
    ended: bool,
    /// Nothing of it has been given out.
    is_fresh: bool,
    carriage_returns: CarriageReturns,
}

/// In KiB. A little more than the largest dictionary that `xz` makes (1.5 GiB) takes.
const XZ_MEMORY: u32 = 2 << 20;

/// What an input is called in messages.
pub(crate) fn name_of(path: &Path) -> String {
    if path == Path::new("-") { "(standard input)".into() } else { path.display().to_string() }
}

/// What the system says about an input.
pub(crate) fn metadata_of(path: &Path) -> io::Result<Metadata> {
    if path == Path::new("-") { stdin()?.metadata() } else { path.metadata() }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("{}: cannot open", path.display()))
}

impl Inputs {
    fn open(&self, path: &Path) -> Result<Input> {
        if let Some(file) = self.aside.get(path) {
            let rewound = file.try_clone().and_then(|mut file| file.rewind().map(|()| file));
            return self.input(rewound.with_context(|| name_of(path))?, path);
        }
        if path == Path::new("-") {
            return self.input(stdin().context("standard input")?, path);
        }
        let file = open(path)?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            anyhow::bail!("{}: is a folder; give the files in it", path.display());
        }
        self.input(file, path)
    }

    fn input(&self, file: File, path: &Path) -> Result<Input> {
        let input = Input::new(file, path, self.decompress)?;
        // A plain file can be read again when the number of a record is needed, which is rare. A stream cannot, and what is
        // decompressed takes long again; next to either of them, counting takes no time.
        let is_counted = self.numbered || input.compressed || !matches!(input.handle, Handle::File(_));
        Ok(Input { is_counted, ..input })
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
    fn new(mut file: File, path: &Path, decompress: bool) -> Result<Self> {
        let name: Arc<str> = name_of(path).into();
        let start = if decompress { peek(&mut file).with_context(|| name.to_string())? } else { Vec::new() };
        let handle = Handle::of(&file);
        let format = Compression::of(&start);
        let whole = io::Cursor::new(start).chain(file);
        let reader: Box<dyn Read + Send> = match format {
            None => Box::new(whole),
            Some(Compression::Gzip) => Box::new(flate2::read::MultiGzDecoder::new(whole)),
            Some(Compression::Zstd) => {
                Box::new(zstd::stream::read::Decoder::new(whole).with_context(|| name.to_string())?)
            }
            Some(Compression::Xz) => Box::new(lzma_rust2::XzReader::new_mem_limit(whole, true, XZ_MEMORY)),
            Some(Compression::Bzip2) => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
        };
        Ok(Self {
            name,
            reader,
            compressed: format.is_some(),
            handle,
            is_counted: false,
            records: 0,
            given: 0,
            read: 0,
            ended: false,
            is_fresh: true,
            carriage_returns: CarriageReturns::default(),
        })
    }

    /// Reads until there is a whole record, or many, and tells where the last of them ends.
    fn fill(&mut self, buffer: &mut Buffer, inputs: &Inputs, on_the_way: Option<&OnTheWay>) -> Result<Cut> {
        let Inputs { terminator, max_record, .. } = *inputs;
        let mut searched = 0;
        let cut = loop {
            // A record that is too large for others to be on their way goes alone, and it is not read before they are gone.
            if let Some(on_the_way) = on_the_way.filter(|_| buffer.needed() > 4 * CHUNK) {
                on_the_way.wait_for(buffer.needed());
            }
            let read = match self.read_more(buffer, terminator) {
                Ok(read) => read,
                // The whole records before it are good.
                Err(error) => match memrchr(terminator, buffer.as_slice()) {
                    Some(end) => break Cut { at: end + 1, last_for_now: true, failed: Some(error) },
                    None => return Err(error),
                },
            };
            if self.is_fresh {
                self.must_not_be_utf16(buffer.as_slice())?;
            }
            if read.bytes == 0 {
                break Cut { at: buffer.len(), last_for_now: true, failed: None };
            }
            if buffer.len() >= CHUNK || read.short {
                if let Some(end) = memrchr(terminator, &buffer.as_slice()[searched..]) {
                    break Cut { at: searched + end + 1, last_for_now: read.short, failed: None };
                }
                // One long record: what has been searched is not searched again.
                searched = buffer.len();
                if searched as u64 > max_record {
                    return Err(self.is_too_long(0, inputs));
                }
            }
        };
        self.without_long_records(cut, buffer, inputs)
    }

    /// Cuts before the first record that is too long.
    fn without_long_records(&self, cut: Cut, buffer: &Buffer, inputs: &Inputs) -> Result<Cut> {
        // So it is always, unless the limit is low.
        if cut.at as u64 <= inputs.max_record {
            return Ok(cut);
        }
        let bytes = &buffer.as_slice()[..cut.at];
        let (mut start, mut records) = (0, 0);
        for end in memchr_iter(inputs.terminator, bytes).chain([bytes.len()]) {
            if end.saturating_sub(start) as u64 > inputs.max_record {
                let error = self.is_too_long(records, inputs);
                return match start {
                    0 => Err(error),
                    at => Ok(Cut { at, last_for_now: true, failed: Some(error) }),
                };
            }
            start = end + 1;
            records += 1;
        }
        Ok(cut)
    }

    /// The error for a record that is too long. `records` is the number of records of the same read before it.
    fn is_too_long(&self, records: u64, inputs: &Inputs) -> anyhow::Error {
        let end =
            if inputs.terminator == 0 { "NUL" } else { "a newline; -z is for records that end with NUL" };
        anyhow!(
            "{}: the record is longer than {}; allow longer ones with --max-record, or see whether records end with {end}",
            self.place(records, inputs.terminator),
            report::bytes(inputs.max_record),
        )
    }

    fn has_no_memory(&self, buffer: &Buffer, terminator: u8) -> anyhow::Error {
        anyhow!(
            "{}: no memory for a record of more than {}; --max-record refuses long records earlier",
            self.place(0, terminator),
            report::bytes(buffer.len() as u64),
        )
    }

    /// PowerShell and others write it, and what is cut at the byte of a newline is no text any more.
    fn must_not_be_utf16(&self, start: &[u8]) -> Result<()> {
        if UTF16_MARKS.iter().any(|mark| start.starts_with(mark)) {
            anyhow::bail!(
                "{}: the text is UTF-16, by its first bytes; convert it: iconv -f UTF-16 -t UTF-8",
                self.name
            );
        }
        Ok(())
    }

    /// The place of a record, for a message. `records` is the number of records of the same read before it.
    fn place(&self, records: u64, terminator: u8) -> String {
        let before = if self.is_counted { Ok(self.records) } else { self.count_again(terminator) };
        match before {
            Ok(before) => format!("{}: line {}", self.name, before + records + 1),
            Err(_) => format!("{}: a record behind byte {}", self.name, self.given),
        }
    }

    /// The number of records that were given out of a plain file, which is read again.
    fn count_again(&self, terminator: u8) -> io::Result<u64> {
        let (Handle::File(file) | Handle::Stream(file)) = &self.handle else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut file: &File = file;
        // Standard input may have been read by others before us.
        let start = file.stream_position()?.saturating_sub(self.read);
        file.seek(io::SeekFrom::Start(start))?;
        let (mut rest, mut records, mut buffer) = (file.take(self.given), 0, [0; 16 << 10]);
        loop {
            match rest.read(&mut buffer)? {
                0 => return Ok(records),
                read => records += memchr_iter(terminator, &buffer[..read]).count() as u64,
            }
        }
    }

    fn read_more(&mut self, buffer: &mut Buffer, terminator: u8) -> Result<ReadMore> {
        if buffer.room().is_err() {
            return Err(self.has_no_memory(buffer, terminator));
        }
        let bytes = loop {
            match self.reader.read(buffer.room()?) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        let bytes = bytes.with_context(|| {
            let what = if self.compressed { "cannot decompress" } else { "cannot read" };
            format!("{}: {what}", self.name)
        })?;
        buffer.len += bytes;
        self.read += bytes as u64;
        self.ended = bytes == 0;
        let short = bytes < CHUNK && self.handle.is_dry();
        Ok(ReadMore { bytes, short })
    }
}

/// Another handle of an open input.
enum Handle {
    /// A plain file.
    File(File),
    /// A pipe or a terminal: its writer may pause.
    Stream(File),
    /// There is none, since the system refused.
    None,
}

impl Handle {
    fn of(file: &File) -> Self {
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        // A reader and a writer that wait for each other less often. The system may refuse, and it makes no difference.
        #[cfg(target_os = "linux")]
        if !is_file {
            let _ = rustix::pipe::fcntl_setpipe_size(file, PIPE);
        }
        match file.try_clone() {
            Ok(file) if is_file => Self::File(file),
            Ok(file) => Self::Stream(file),
            Err(_) => Self::None,
        }
    }

    /// Whether it is a stream of which a read would have to wait.
    #[cfg(unix)]
    fn is_dry(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Self::Stream(file) = self else { return false };
        let mut waiting = [PollFd::new(file, PollFlags::IN)];
        !poll(&mut waiting, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    #[cfg(not(unix))]
    fn is_dry(&self) -> bool {
        matches!(self, Self::Stream(_))
    }
}

/// Standard input without the small buffer of the standard library.
#[cfg(unix)]
fn stdin() -> io::Result<File> {
    use std::os::fd::AsFd;
    if was_closed(Stream::In) {
        return Err(io::Error::other("it is closed; give a file, or < /dev/null for no keys"));
    }
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn stdin() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
}
