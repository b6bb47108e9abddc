//! Progress on standard error, for work that lasts more than a second.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report;

const QUIET_FOR: Duration = Duration::from_secs(1);

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Hidden,
    /// A line that is drawn over itself.
    Bar,
    /// A plain line each second.
    Lines,
}

impl Manner {
    /// `wanted` is `--progress` or `--no-progress`. Without either, a bar is drawn on a terminal that records do not go to.
    /// A bar among records would stay behind, a piece for each.
    pub(crate) fn new(wanted: Option<bool>, errors_to_terminal: bool, records_to_terminal: bool) -> Self {
        match (wanted, errors_to_terminal && !records_to_terminal) {
            (Some(false), _) | (None, false) => Self::Hidden,
            (Some(true) | None, true) => Self::Bar,
            (Some(true), false) => Self::Lines,
        }
    }
}

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

/// Counts bytes read or keys done, and shows them if progress is on.
pub(crate) struct Progress(Option<Shown>);

struct Shown {
    what: &'static str,
    unit: Unit,
    total: Option<u64>,
    started: Instant,
    done: Cell<u64>,
    next: Cell<Instant>,
    /// Without one plain lines are printed.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Progress through so many bytes or keys, or through an unknown number.
    pub(crate) fn new(manner: Manner, what: &'static str, unit: Unit, total: Option<u64>) -> Self {
        if manner == Manner::Hidden {
            return Self(None);
        }
        let bar = (manner == Manner::Bar).then(|| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_drawn_only_where_no_records_go() {
        for (wanted, errors_to_terminal, records_to_terminal, manner) in [
            (None, true, false, Manner::Bar),
            (None, true, true, Manner::Hidden),
            (None, false, true, Manner::Hidden),
            (None, false, false, Manner::Hidden),
            (Some(true), true, false, Manner::Bar),
            (Some(true), true, true, Manner::Lines),
            (Some(true), false, true, Manner::Lines),
            (Some(true), false, false, Manner::Lines),
            (Some(false), true, false, Manner::Hidden),
            (Some(false), true, true, Manner::Hidden),
        ] {
            assert_eq!(Manner::new(wanted, errors_to_terminal, records_to_terminal), manner);
        }
    }
}
