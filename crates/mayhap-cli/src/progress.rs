//! Progress on standard error, for work that lasts more than a second.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report;

const QUIET_FOR: Duration = Duration::from_secs(1);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Keys,
}

impl Unit {
    fn template(self, total: Option<u64>) -> &'static str {
        match (self, total) {
            (Self::Bytes, Some(_)) => "{msg} {wide_bar} {percent:>3}% {binary_bytes_per_sec}, {eta} left",
            (Self::Bytes, None) => "{msg} {spinner} {binary_bytes} {binary_bytes_per_sec}, {elapsed}",
            (Self::Keys, Some(_)) => "{msg} {wide_bar} {percent:>3}% {per_sec}, {eta} left",
            (Self::Keys, None) => "{msg} {spinner} {human_pos} keys {per_sec}, {elapsed}",
        }
    }

    fn amount(self, number: u64) -> String {
        match self {
            Self::Bytes => HumanBytes(number).to_string(),
            Self::Keys => format!("{} keys", report::grouped(number)),
        }
    }
}

/// Counts bytes read or keys done, and shows them if somebody wants to see.
pub(crate) struct Progress(Option<Shown>);

struct Shown {
    what: &'static str,
    unit: Unit,
    total: Option<u64>,
    started: Instant,
    done: Cell<u64>,
    next: Cell<Instant>,
    /// Drawn over itself on a terminal; elsewhere plain lines are printed.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Progress through so many bytes or keys, or through an unknown number.
    ///
    /// `wanted` is `--progress` or `--no-progress`; without either it is shown on a terminal only.
    pub(crate) fn new(wanted: Option<bool>, what: &'static str, unit: Unit, total: Option<u64>) -> Self {
        let terminal = std::io::stderr().is_terminal();
        if !wanted.unwrap_or(terminal) {
            return Self(None);
        }
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
            bar.set_style(ProgressStyle::with_template(unit.template(total)).expect("a valid template"));
            bar.with_message(what)
        });
        let started = Instant::now();
        Self(Some(Shown {
            what,
            unit,
            total,
            started,
            done: Cell::new(0),
            next: Cell::new(started + QUIET_FOR),
            bar,
        }))
    }

    /// Counts more of them.
    pub(crate) fn advance(&self, number: usize) {
        let Some(shown) = &self.0 else { return };
        let done = shown.done.get() + number as u64;
        shown.done.set(done);
        if let Some(bar) = &shown.bar {
            bar.set_position(done);
        }
        let now = Instant::now();
        if now < shown.next.get() {
            return;
        }
        shown.next.set(now + QUIET_FOR);
        match &shown.bar {
            Some(bar) if bar.is_hidden() => bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5)),
            Some(_) => {}
            None => {
                let rate = shown.unit.amount((done as f64 / shown.started.elapsed().as_secs_f64()) as u64);
                let part = match shown.total {
                    Some(total) => format!("{:.0}%", 100.0 * done as f64 / total.max(1) as f64),
                    None => shown.unit.amount(done),
                };
                report::note(format_args!("mayhap: {}: {part}, {rate}/s", shown.what));
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.0.as_ref().and_then(|shown| shown.bar.as_ref()) {
            bar.finish_and_clear();
        }
    }
}
