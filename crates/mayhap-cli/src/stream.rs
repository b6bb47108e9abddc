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

use anyhow::Result;
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
    /// The thread that asks.
    Here(Chunks),
    /// Another one, which reads and perhaps hashes too.
    Thread(Receiver<Event>),
}

/// What happens next.
pub(crate) enum Event {
    /// More records.
    Batch(Batch),
    /// A record or an input is bad.
    Failed(anyhow::Error),
    /// Somebody wants us to stop: the number of the signal.
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
    /// The header, as soon as it is known.
    header: Option<Vec<u8>>,
}

impl Hasher {
    fn hash(&mut self, chunk: Chunk, batch: &mut Batch) -> Result<()> {
        batch.header = None;
        if self.has_header && chunk.starts_input {
            let first = chunk.records().next().unwrap_or_default();
            match &self.header {
                None => {
                    self.header = Some(first.to_vec());
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
            From::Here(inputs.chunks())
        } else {
            let (events, coming) = sync_channel(WAITING);
            if minds_signals {
                listen(events.clone())?;
            }
            let (chunks, hasher) = (inputs.chunks(), hasher.clone());
            // Nobody waits for it: if the program ends while it waits for input, it ends too.
            std::thread::spawn(move || read(chunks, hasher, &spent, &events));
            From::Thread(coming)
        };
        Ok((Self { hasher, from }, give_back))
    }

    pub(crate) fn next(&mut self) -> Event {
        match &mut self.from {
            From::Here(chunks) => {
                let mut batch = Batch::default();
                next(chunks, &mut self.hasher, &mut batch)
                    .map_or_else(Event::Failed, |more| if more { Event::Batch(batch) } else { Event::Ended })
            }
            // A reader that is gone without a word has panicked, and said so.
            From::Thread(coming) => coming.recv().unwrap_or(Event::Ended),
        }
    }
}

/// The next batch; `false` at the end.
fn next(chunks: &mut Chunks, hasher: &mut Hasher, batch: &mut Batch) -> Result<bool> {
    let buffer = std::mem::take(&mut batch.chunk.bytes);
    match chunks.next(buffer)? {
        Some(chunk) => hasher.hash(chunk, batch).map(|()| true),
        None => Ok(false),
    }
}

fn read(mut chunks: Chunks, mut hasher: Hasher, spent: &Spent, events: &SyncSender<Event>) {
    loop {
        let mut batch = spent.try_recv().unwrap_or_default();
        let event = match next(&mut chunks, &mut hasher, &mut batch) {
            Ok(true) => Event::Batch(batch),
            Ok(false) => Event::Ended,
            Err(error) => Event::Failed(error),
        };
        let is_last = !matches!(event, Event::Batch(_));
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

/// Passes signals on that ask us to stop.
#[cfg(unix)]
fn listen(events: SyncSender<Event>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        // Once nobody listens any more, there is nothing to stop.
        signals.forever().all(|signal| events.send(Event::Stopped(signal)).is_ok())
    });
    Ok(())
}

#[cfg(not(unix))]
fn listen(_: SyncSender<Event>) -> io::Result<()> {
    Ok(())
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
                    // Nobody waits for it: if there are enough, it is one too many.
                    let _ = spent.try_send(batch);
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
        let _ = self.give_back.try_send(batch);
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
