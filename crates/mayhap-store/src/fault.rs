//! A message in place of a silent death when a mapped file fails under its reader.
//!
//! An access to a page of a map that the system cannot provide is the signal SIGBUS: another program made the file
//! shorter, or the disk failed. By default the process dies without a word. A program that calls [`install`] at its
//! start says which file it was and exits with a status of its own.
//!
//! The names of mapped files stand in a static table of atomics, since a signal handler may neither lock nor allocate.
//!
//! And a standard stream that was closed when the program was started: Rust opens `/dev/null` in its place before `main`,
//! so that what is written to it vanishes without an error. [`was_closed`] tells.
#![allow(unsafe_code)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

/// So many maps can be told by name. A fault in a further one ends the process as if there were no handler.
const SLOTS: usize = 256;

/// Of a longer name, the last so many bytes are kept.
const NAME: usize = 512;

/// A mapped range of addresses and the name of its file.
struct Slot {
    is_taken: AtomicBool,
    start: AtomicUsize,
    /// 0 while the slot is free or being filled, so that no address is in it.
    end: AtomicUsize,
    name: [AtomicU8; NAME],
    name_length: AtomicUsize,
}

static MAPS: [Slot; SLOTS] = [const {
    Slot {
        is_taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        name: [const { AtomicU8::new(0) }; NAME],
        name_length: AtomicUsize::new(0),
    }
}; SLOTS];

/// A standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard input.
    In = 0,
    /// Standard output.
    Out = 1,
    /// Standard error.
    Error = 2,
}

/// Whether a standard stream was closed when the program was started. Known on Linux; elsewhere it is "no".
#[must_use]
pub fn was_closed(stream: Stream) -> bool {
    CLOSED.load(Ordering::Relaxed) >> stream as u8 & 1 == 1
}

/// A bit for each standard stream that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

#[cfg(target_os = "linux")]
extern "C" fn note_closed_streams() {
    for stream in [Stream::In, Stream::Out, Stream::Error] {
        // SAFETY: it only asks, about a number that need not be an open file.
        if unsafe { libc::fcntl(stream as libc::c_int, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << stream as u8, Ordering::Relaxed);
        }
    }
}

// SAFETY: the C library calls what stands in this section before `main`, and with it before Rust's runtime opens
// `/dev/null`. The function needs nothing of that runtime.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_CLOSED_STREAMS: extern "C" fn() = note_closed_streams;

/// The entry of a map in the table, for as long as the map lives.
#[derive(Debug)]
pub(crate) struct Entry(Option<usize>);

impl Entry {
    /// Notes which file is mapped at these addresses.
    pub(crate) fn new(bytes: &[u8], path: &Path) -> Self {
        let is_free = |slot: &Slot| {
            slot.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let Some(index) = MAPS.iter().position(is_free) else { return Self(None) };
        let slot = &MAPS[index];
        let name = path.as_os_str().as_encoded_bytes();
        let name = &name[name.len().saturating_sub(NAME)..];
        for (to, &from) in slot.name.iter().zip(name) {
            // A name must not be able to control the terminal. Characters that do are among those beyond ASCII too.
            let is_harmless = from.is_ascii() && !from.is_ascii_control();
            to.store(if is_harmless { from } else { b'?' }, Ordering::Relaxed);
        }
        slot.name_length.store(name.len(), Ordering::Relaxed);
        let start = bytes.as_ptr().addr();
        slot.start.store(start, Ordering::Relaxed);
        slot.end.store(start + bytes.len(), Ordering::Release);
        Self(Some(index))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(index) = self.0 {
            MAPS[index].end.store(0, Ordering::Relaxed);
            MAPS[index].is_taken.store(false, Ordering::Release);
        }
    }
}

/// The name of the file that is mapped at an address: as much of it as fits.
#[cfg_attr(not(unix), allow(dead_code, reason = "only the handler looks for names"))]
fn name_at(address: usize, name: &mut [u8; NAME]) -> Option<&[u8]> {
    let holds = |slot: &&Slot| {
        slot.end.load(Ordering::Acquire) > address && slot.start.load(Ordering::Relaxed) <= address
    };
    let slot = MAPS.iter().find(holds)?;
    for (to, from) in name.iter_mut().zip(&slot.name) {
        *to = from.load(Ordering::Relaxed);
    }
    name.get(..slot.name_length.load(Ordering::Relaxed))
}

pub use handler::install;

#[cfg(unix)]
mod handler {
    use std::ffi::{c_int, c_void};
    use std::sync::OnceLock;

    use super::{NAME, name_at};

    /// What the handler says and does, and what was done before it.
    struct Installed {
        before: &'static str,
        after: &'static str,
        status: c_int,
    }

    static INSTALLED: OnceLock<Installed> = OnceLock::new();
    static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

    const REASON: &str = ": the file became shorter while it was in use, or its disk is full or failing";

    /// Installs a handler of SIGBUS for the whole process, once. A fault in a file that this crate has mapped writes a line
    /// to standard error, `before`, the file's name, the reason and `after`, and exits with the status. A fault elsewhere is
    /// left to the handler that was there before. Where there is no such signal, nothing is done.
    ///
    /// It is for programs, at their start; opening a file installs nothing.
    pub fn install(before: &'static str, after: &'static str, status: i32) {
        if INSTALLED.set(Installed { before, after, status }).is_err() {
            return;
        }
        // SAFETY: zeros are a value of all fields of both structures, integers and at most an optional function; `sa_sigaction` gets the address of
        // a function of the type that SA_SIGINFO asks for, which only does what is safe in a signal handler. SA_ONSTACK is
        // for a stack that has no room left: the standard library gives every thread another one.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut previous: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fault as extern "C" fn(_, _, _) as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            if libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous) == 0 {
                let _ = PREVIOUS.set(previous);
            }
        }
    }

    extern "C" fn on_fault(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
        // SAFETY: the system hands a valid structure to a handler that was installed with SA_SIGINFO.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
        // Codes of 0 and below are signals that a process has sent, which have no address.
        let is_sent = code <= 0;
        let mut name = [0; NAME];
        if !is_sent
            && let Some(installed) = INSTALLED.get()
            && let Some(name) = name_at(address, &mut name)
        {
            say_and_exit(installed, name);
        }
        step_aside(is_sent);
    }

    /// Writes the message by one call, so that it stays one line among those of others.
    fn say_and_exit(installed: &Installed, name: &[u8]) -> ! {
        let mut message = [0; 2 * NAME];
        let parts = [installed.before.as_bytes(), name, REASON.as_bytes(), installed.after.as_bytes(), b"\n"];
        let mut length = 0;
        for (to, &from) in message.iter_mut().zip(parts.into_iter().flatten()) {
            *to = from;
            length += 1;
        }
        // SAFETY: `write` and `_exit` may be called in a signal handler; the bytes are those of an array.
        unsafe {
            libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), length);
            libc::_exit(installed.status)
        }
    }

    /// Puts the former handler back for a fault, which comes again when this one returns. A signal that was sent does not:
    /// it gets the default action, and is sent again.
    fn step_aside(is_sent: bool) {
        // SAFETY: `sigaction` and `raise` may be called in a signal handler, and reading a `OnceLock` is an atomic load. Zeros
        // are the default action.
        unsafe {
            let default: libc::sigaction = std::mem::zeroed();
            let previous = PREVIOUS.get().filter(|_| !is_sent).unwrap_or(&default);
            libc::sigaction(libc::SIGBUS, previous, std::ptr::null_mut());
            if is_sent {
                libc::raise(libc::SIGBUS);
            }
        }
    }
}

#[cfg(not(unix))]
mod handler {
    /// There is no SIGBUS here: nothing is installed.
    pub fn install(_before: &'static str, _after: &'static str, _status: i32) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_found_by_its_addresses_while_it_lives() {
        let bytes = vec![0; 100];
        let start = bytes.as_ptr().addr();
        let mut name = [0; NAME];
        let entry = Entry::new(&bytes, Path::new("a\u{1b}b\n"));
        assert_eq!(name_at(start, &mut name), Some(&b"a?b?"[..]));
        assert_eq!(name_at(start + 99, &mut name), Some(&b"a?b?"[..]));
        assert_eq!(name_at(start + 100, &mut name), None);
        assert_eq!(name_at(start - 1, &mut name), None);
        drop(entry);
        assert_eq!(name_at(start, &mut name), None);
        let long = format!("{}end", "x".repeat(NAME));
        let _entry = Entry::new(&bytes, Path::new(&long));
        assert!(name_at(start, &mut name).is_some_and(|name| name.len() == NAME && name.ends_with(b"xend")));
        // More maps than slots are no error. (Not a test of its own: it would take the slots from this one.)
        let entries: Vec<Entry> = (0..2 * SLOTS).map(|_| Entry::new(&bytes, Path::new("f"))).collect();
        assert!(entries.iter().any(|entry| entry.0.is_none()));
    }
}
