//! One call of cargo, and the toolchain components such a call may need.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// What becomes of what a command prints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output<'a> {
    /// It goes straight to our own output.
    Live,
    /// The same, and what goes to standard output is written to a file too.
    Kept(&'a Path),
    /// It is shown behind the command if that fails, as a part of the error.
    IfItFails,
}

/// A cargo command line. `Display` is the line a person types to run it again.
pub(crate) struct Cargo {
    args: Vec<String>,
    env: Vec<(&'static str, &'static str)>,
    needs: Option<&'static Component>,
}

impl Cargo {
    /// `cargo` with these arguments.
    pub(crate) fn new(args: impl IntoIterator<Item = String>) -> Self {
        Self { args: args.into_iter().collect(), env: Vec::new(), needs: None }
    }

    /// `cargo` with the words of `line` as arguments; there is no quoting.
    pub(crate) fn line(line: &str) -> Self {
        Self::new(line.split_whitespace().map(str::to_owned))
    }

    /// Sets an environment variable for this call.
    pub(crate) fn with_env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// Makes sure of a toolchain component before the call.
    pub(crate) fn needing(mut self, component: &'static Component) -> Self {
        self.needs = Some(component);
        self
    }

    /// Runs it in `root`.
    ///
    /// # Errors
    ///
    /// A component is missing, cargo did not start, or cargo failed.
    pub(crate) fn run(&self, root: &Path, output: Output<'_>) -> Result<(), String> {
        if let Some(component) = self.needs {
            component.ensure(root)?;
        }
        let mut command = Command::new(program());
        command.args(&self.args).envs(self.env.iter().copied()).current_dir(root);
        let not_started = |error| format!("cargo did not start: {error}");
        let (status, said) = match output {
            Output::Live => (command.status().map_err(not_started)?, String::new()),
            Output::Kept(log) => {
                let unwritable = |error| format!("{}: {error}", log.display());
                log.parent().map_or(Ok(()), fs::create_dir_all).map_err(unwritable)?;
                let mut kept = File::create(log).map_err(unwritable)?;
                let mut child = command.stdout(Stdio::piped()).spawn().map_err(not_started)?;
                if let Some(said) = child.stdout.take() {
                    copy_lines(BufReader::new(said), &mut kept).map_err(unwritable)?;
                }
                (child.wait().map_err(not_started)?, String::new())
            }
            Output::IfItFails => {
                let done = command.stdin(Stdio::null()).output().map_err(not_started)?;
                let said =
                    [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                (done.status, said.concat())
            }
        };
        if status.success() { Ok(()) } else { Err(format!("{said}`{self}` ended with {}", outcome(status))) }
    }
}

impl fmt::Display for Cargo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value))?;
        }
        f.write_str("cargo")?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

/// An optional part of a Rust toolchain. Minimal installations lack them.
pub(crate) struct Component {
    /// Its name for rustup.
    name: &'static str,
    /// The cargo subcommand it brings.
    subcommand: &'static str,
    /// Its name as a Debian package, for toolchains that came from there.
    package: &'static str,
}

/// `cargo fmt`.
pub(crate) static RUSTFMT: Component = Component { name: "rustfmt", subcommand: "fmt", package: "rustfmt" };

/// `cargo clippy`.
pub(crate) static CLIPPY: Component =
    Component { name: "clippy", subcommand: "clippy", package: "rust-clippy" };

impl Component {
    /// Installs the component with rustup if it is missing.
    ///
    /// # Errors
    ///
    /// The component is still missing: its name and how to install it.
    fn ensure(&self, root: &Path) -> Result<(), String> {
        if self.is_present(root) {
            return Ok(());
        }
        println!("the toolchain lacks {0}; trying `rustup component add {0}`", self.name);
        let install = Command::new("rustup").args(["component", "add", self.name]).current_dir(root).status();
        match install {
            Ok(status) if status.success() && self.is_present(root) => Ok(()),
            Ok(_) => Err(format!(
                "the toolchain lacks {0}, and rustup could not add it; try: rustup component add {0}",
                self.name
            )),
            Err(_) => Err(format!(
                "the toolchain lacks {0}; install it with: rustup component add {0} \
                 (or, for a toolchain from Debian packages: apt install {1})",
                self.name, self.package
            )),
        }
    }

    fn is_present(&self, root: &Path) -> bool {
        Command::new(program())
            .args([self.subcommand, "--version"])
            .current_dir(root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

/// Copies to our output and to a file, line by line, so that progress is seen.
fn copy_lines(mut from: impl BufRead, kept: &mut File) -> io::Result<()> {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        io::stdout().lock().write_all(&line)?;
        kept.write_all(&line)?;
        line.clear();
    }
    Ok(())
}

/// The cargo that started us, so that `cargo +nightly xtask test` tests with nightly.
fn program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn outcome(status: ExitStatus) -> String {
    // `ExitStatus` names the signal where there was one.
    status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

/// `word` as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shown_line_can_be_typed() {
        let doc = Cargo::line("doc --no-deps").with_env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(doc.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
        let odd = Cargo::new(["run", "it's", ""].map(str::to_owned));
        assert_eq!(odd.to_string(), r"cargo run 'it'\''s' ''");
    }
}
