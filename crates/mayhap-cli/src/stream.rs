//! Records on their way through a command that prints some of them, in order: read and hashed in one thread, judged in
//! another, written in a third.
//!
//! Chunks of a few hundred kilobytes are handed on. What is kept of a chunk is moved together where it lies and written with
//! one call, and its memory goes back to the reader.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
#[cfg(unix)]
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use mayhap::{Digest, Hashing};

use crate::input::{Chunk, Chunks, Inputs};
use crate::keys::Selector;
use crate::report;

/// Chunks that wait between two threads: enough that neither waits for the other by chance.
const WAITING: usize = 4;

/// A chunk of records and the digests of their keys.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) chunk: Chunk,
    /// Where each record ends, with its terminator.
    pub(crate) ends: Vec<usize>,
    /// The digests of all records but a header.
    pub(crate) digests: Vec<Digest>,
    /// The first record is a header, which is no key: whether it is printed.
    pub(crate) header: Option<bool>,
}

impl Batch {
    /// The records, a header among them.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The records that have digests, in the same order.
    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.chunk.records().skip(usize::from(self.header.is_some()))
    }

    /// Leaves the records that are to be kept, and tells how many. `keep` is for those that have digests.
    pub(crate) fn retain(&mut self, keep: &[bool]) -> usize {
        let all = self.header.into_iter().chain(keep.iter().copied());
        self.chunk.retain(&self.ends, all)
    }
}

/// Where batches come from.
pub(crate) struct Source {
    hasher: Hasher,
    from: From,
}

enum From {
    /// The thread that asks. And what came behind the last batch, if that was a bad record.
    Here(Box<Chunks>, Option<anyhow::Error>),
    /// Another one, which reads and hashes.
    Thread(Receiver<Event>),
}

/// What happens next.
pub(crate) enum Event {
    /// More records.
    Batch(Batch),
    /// A record or an input is bad.
    Failed(anyhow::Error),
    /// The number of the signal that asks to stop.
    Stopped(i32),
    /// All inputs are read.
    Ended,
}

/// Splits chunks into records and hashes their keys.
#[derive(Clone)]
struct Hasher {
    selector: Arc<Selector>,
    hashing: Hashing,
    /// Whether inputs start with a header.
    has_header: bool,
    /// The digest of the header, as soon as it is known: a copy of it would be another long record.
    header: Option<Digest>,
}

impl Hasher {
    fn hash(&mut self, chunk: Chunk, batch: &mut Batch) -> Result<()> {
        batch.header = None;
        if self.has_header && chunk.starts_input {
            let first = Hashing::default().digest(chunk.records().next().unwrap_or_default());
            match self.header {
                None => {
                    self.header = Some(first);
                    batch.header = Some(true);
                }
                Some(header) => batch.header = (header == first).then_some(false),
            }
        }
        batch.chunk = chunk;
        let skipped = usize::from(batch.header.is_some());
        let Batch { chunk, ends, digests, .. } = batch;
        self.selector.split(chunk, skipped, self.hashing, ends, digests)
    }
}

/// Memory that is used again.
type Spent = Receiver<Batch>;

/// How records are read.
pub(crate) struct Reading {
    pub(crate) selector: Selector,
    pub(crate) hashing: Hashing,
    pub(crate) has_header: bool,
    pub(crate) threads: usize,
    /// A signal ends it, as if the input ended there.
    pub(crate) minds_signals: bool,
}

impl Source {
    /// Begins to read. Batches that were used are to be sent back through the channel.
    pub(crate) fn new(inputs: &Inputs, reading: Reading) -> Result<(Self, SyncSender<Batch>)> {
        let Reading { selector, hashing, has_header, threads, minds_signals } = reading;
        let hasher = Hasher { selector: Arc::new(selector), hashing, has_header, header: None };
        let (give_back, spent) = sync_channel(4 * WAITING);
        let from = if threads == 1 && !minds_signals {
            From::Here(Box::new(inputs.chunks()), None)
        } else {
            let (events, coming) = sync_channel(WAITING);
            if minds_signals {
                listen(events.clone())?;
            }
            let (chunks, hasher) = (inputs.chunks_for_threads(), hasher.clone());
            // Nobody waits for it: if the program ends while it waits for input, it ends too.
            std::thread::spawn(move || read(chunks, hasher, &spent, &events));
            From::Thread(coming)
        };
        Ok((Self { hasher, from }, give_back))
    }

    pub(crate) fn next(&mut self) -> Event {
        match &mut self.from {
            From::Here(chunks, failed) => {
                if let Some(error) = failed.take() {
                    return Event::Failed(error);
                }
                let mut batch = Batch::default();
                match next(chunks, &mut self.hasher, &mut batch) {
                    Ok(true) => Event::Batch(batch),
                    Ok(false) => Event::Ended,
                    // The records before the bad one are good.
                    Err(error) if batch.len() > 0 => {
                        *failed = Some(error);
                        Event::Batch(batch)
                    }
                    Err(error) => Event::Failed(error),
                }
            }
            From::Thread(coming) => coming.recv().unwrap_or_else(|_| Event::Failed(reader_failed())),
        }
    }
}

/// The next batch; `false` at the end.
fn next(chunks: &mut Chunks, hasher: &mut Hasher, batch: &mut Batch) -> Result<bool> {
    let buffer = std::mem::take(&mut batch.chunk.bytes);
    batch.ends.clear();
    batch.digests.clear();
    match chunks.next(buffer)? {
        Some(chunk) => hasher.hash(chunk, batch).map(|()| true),
        None => Ok(false),
    }
}

fn reader_failed() -> anyhow::Error {
    anyhow!("reading ended with a fault of this program, which is told above")
}

/// Tells of a panic: others hold the channel open too.
struct Panics<'a>(&'a SyncSender<Event>);

impl Drop for Panics<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Event::Failed(reader_failed()));
        }
    }
}

fn read(mut chunks: Chunks, mut hasher: Hasher, spent: &Spent, events: &SyncSender<Event>) {
    let _panics = Panics(events);
    loop {
        let mut batch = spent.try_recv().unwrap_or_default();
        let read = next(&mut chunks, &mut hasher, &mut batch);
        let event = match read {
            Ok(true) => Event::Batch(batch),
            Ok(false) => Event::Ended,
            Err(error) => {
                // The records before the bad one are good.
                if batch.len() > 0 && events.send(Event::Batch(batch)).is_err() {
                    return;
                }
                Event::Failed(error)
            }
        };
        let is_last = !matches!(event, Event::Batch(_));
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

/// How long after the first signal others belong to it: `timeout` signals both its child and the group of that child.
#[cfg(unix)]
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// Passes the first signal on that asks us to stop; one that comes [`SAME_SIGNAL`] later or after that ends the program. What
/// the caller has us ignore, as `nohup` does, we ignore.
#[cfg(unix)]
fn listen(events: SyncSender<Event>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let ignored = ignored_signals();
    let minded = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = signal_hook::iterator::Signals::new(minded)?;
    std::thread::spawn(move || {
        let (mut events, mut first) = (Some(events), None);
        for signal in signals.forever() {
            let first = *first.get_or_insert_with(Instant::now);
            match events.take() {
                // In a thread of its own, since the reader of the output may be held up.
                Some(events) => drop(std::thread::spawn(move || events.send(Event::Stopped(signal)).is_ok())),
                None if first.elapsed() < SAME_SIGNAL => {}
                None => drop(signal_hook::low_level::emulate_default_handler(signal)),
            }
        }
    });
    Ok(())
}

/// A bit for each signal that is ignored, where the system tells.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(not(unix))]
fn listen(_: SyncSender<Event>) -> io::Result<()> {
    Ok(())
}

/// Hands memory back to the reader, unless a long record has made it large. Nobody waits for it: if there is enough, it is one
/// too many.
fn return_to(spent: &SyncSender<Batch>, mut batch: Batch) {
    batch.chunk.share = None;
    if !batch.chunk.bytes.is_large() {
        let _ = spent.try_send(batch);
    }
}

/// Where records go to: standard output, by a thread of its own.
pub(crate) struct Output {
    to: To,
    /// Where used batches go.
    give_back: SyncSender<Batch>,
}

enum To {
    Nowhere,
    Here(File),
    Thread { full: SyncSender<Batch>, writer: JoinHandle<io::Result<()>> },
}

impl Output {
    /// Standard output, or nothing if nobody wants to see.
    pub(crate) fn new(is_wanted: bool, threads: usize, give_back: SyncSender<Batch>) -> io::Result<Self> {
        let to = if !is_wanted {
            To::Nowhere
        } else if threads == 1 {
            To::Here(report::stdout_file()?)
        } else {
            let (full, coming) = sync_channel::<Batch>(WAITING);
            let (mut file, spent) = (report::stdout_file()?, give_back.clone());
            let writer = std::thread::spawn(move || {
                coming.into_iter().try_for_each(|batch| {
                    file.write_all(batch.chunk.bytes.as_slice()).map_err(report::of_stdout)?;
                    return_to(&spent, batch);
                    Ok(())
                })
            });
            To::Thread { full, writer }
        };
        Ok(Self { to, give_back })
    }

    /// Writes what a batch holds. Whoever reads sees it soon, but an error is told here only if it is known by now.
    pub(crate) fn write(&mut self, batch: Batch) -> io::Result<()> {
        match &mut self.to {
            To::Nowhere => {}
            To::Here(file) => file.write_all(batch.chunk.bytes.as_slice()).map_err(report::of_stdout)?,
            To::Thread { full, .. } => {
                // The writer ends early only if it failed, which `finish` tells.
                if full.send(batch).is_err() {
                    return self.finish();
                }
                return Ok(());
            }
        }
        return_to(&self.give_back, batch);
        Ok(())
    }

    /// Waits until all is written.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.to, To::Nowhere) {
            To::Thread { full, writer } => {
                drop(full);
                writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
            To::Nowhere | To::Here(_) => Ok(()),
        }
    }
}
