//! The `mayhap` command: is this key in the set? "No", or "mayhap".
//!
//! It is a library with one function so that cargo compiles it beside the code generation of the libraries that it uses; a
//! program alone waits until all of them are finished. Nothing here is for other programs.

mod advice;
mod args;
#[cfg(unix)]
mod cmd;
mod compression;
mod distinct;
mod drawing;
mod except;
mod formats;
mod help;
mod input;
mod json_key;
mod keys;
mod known_keys;
mod numbers;
mod on_the_way;
mod output;
mod parquet_file;
mod parquet_footer;
mod progress;
mod report;
mod same_file;
mod secret;
mod seen;
mod spelling;
mod stream;
mod suggest;
mod url_key;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};

use args::{Cli, Command};
use mayhap_store::StoreError;
use mayhap_store::fault::{Stream, was_closed};

/// Something matched, or all went well.
pub(crate) const YES: u8 = 0;
/// Nothing matched, or something did not hold.
pub(crate) const NO: u8 = 1;
/// Bad arguments, bad input, or the system refused.
const ERROR: u8 = 2;

/// Runs the command with the arguments of this process. Returns its exit status.
#[must_use]
pub fn run() -> ExitCode {
    mayhap_store::fault::install("mayhap: ", "; --no-mmap reads files that others truncate", ERROR.into());
    let Cli { mut common, command } = match help::parse() {
        Ok(cli) => cli,
        Err(instead) => return print_instead(instead),
    };
    common.records_to_terminal = command.prints_records() && io::stdout().is_terminal();
    ignore_file_size_signal();
    let warnings = command.warnings();
    let outcome = match command {
        Command::Dedup(args) => cmd::dedup::run(&args, &common),
        Command::Build(args) => cmd::build::run(&args, &common),
        Command::Add(args) => cmd::add::run(&args, &common),
        Command::Remove(args) => cmd::remove::run(&args, &common),
        Command::Check(args) => cmd::check::run(&args, &common),
        Command::Count(args) => cmd::count::run(&args, &common),
        Command::Label(args) => cmd::label::run(&args, &common),
        Command::Test(args) => cmd::test::run(&args, &common),
        Command::Info(args) => cmd::info::run(&args),
        Command::Merge(args) => cmd::merge::run(&args, &common),
        Command::Fold(args) => cmd::fold::run(&args, &common),
        Command::Convert(args) => cmd::convert::run(&args, &common),
        Command::Calc(args) => cmd::calc::run(&args),
        Command::Advise(args) => cmd::advise::run(&args),
        Command::Eval(args) => cmd::eval::run(&args, &common),
        Command::Families(args) => cmd::families::run(&args),
        Command::Sort(args) => cmd::sort::run(&args, &common),
        Command::Explain(args) => cmd::explain::run(&args, &common),
        Command::Hash(args) => cmd::hash::run(&args),
        Command::Demo(args) => cmd::demo::run(&args),
        Command::Completions(args) => cmd::completions::run(&args),
        Command::Man(args) => cmd::man::run(&args),
    };
    warnings.take().iter().for_each(|warning| common.say(warning));
    match outcome.and_then(|status| Ok(report::stdout().flush().map(|()| status)?)) {
        Ok(status) => ExitCode::from(status),
        // The reader has closed the pipe: `mayhap dedup | head -1` is no error.
        Err(error) if is_closed_pipe(&error) => ExitCode::from(YES),
        Err(error) => {
            report::note(format_args!("mayhap: {}", advice::chain(&error)));
            ExitCode::from(ERROR)
        }
    }
}

/// Prints help or the version to standard output, or an error in the arguments to standard error.
fn print_instead(mut instead: clap::Error) -> ExitCode {
    make_visible(&mut instead);
    let status = u8::try_from(instead.exit_code()).unwrap_or(ERROR);
    let printed = if !instead.use_stderr() && was_closed(Stream::Out) {
        Err(io::Error::other("it is closed"))
    } else {
        instead.print().and_then(|()| io::stdout().flush())
    };
    match printed {
        Err(error) if !instead.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            report::note(format_args!("mayhap: {}", report::of_stdout(error)));
            ExitCode::from(ERROR)
        }
        _ => ExitCode::from(status),
    }
}

/// Arguments are shown in messages, and may hold anything.
fn make_visible(error: &mut clap::Error) {
    let shown = |text: &String| report::visible(text).into_owned();
    let changed: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| {
            let visible = match value {
                ContextValue::String(text) => ContextValue::String(shown(text)),
                ContextValue::Strings(texts) => ContextValue::Strings(texts.iter().map(shown).collect()),
                _ => return None,
            };
            (visible != *value).then_some((kind, visible))
        })
        .collect();
    if !changed.is_empty() {
        // The tips have the argument in them too, between escape sequences of their own.
        error.remove(ContextKind::Suggested);
    }
    for (kind, value) in changed {
        error.insert(kind, value);
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    // A filter that was not written to a pipe is an error.
    error.chain().take_while(|cause| !cause.is::<StoreError>()).any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(closed)
            || cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|e| e.io_error_kind() == Some(io::ErrorKind::BrokenPipe))
    })
}

/// A write beyond the limit on file sizes should be an error like a full disk, so that temporary files
/// are removed; by default the signal would end the program first.
fn ignore_file_size_signal() {
    #[cfg(unix)]
    {
        let caught = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        // If it cannot be registered the default stays, which is no reason to stop.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, caught);
    }
}
