//! Runs the `mayhap` binary in a temporary folder and compares what it says.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use mayhap::{FAMILIES, Family};
use serde_json::Value;
use tempfile::TempDir;

/// Every command.
pub(crate) const COMMANDS: [&str; 22] = [
    "dedup",
    "build",
    "add",
    "remove",
    "check",
    "count",
    "label",
    "test",
    "info",
    "merge",
    "fold",
    "convert",
    "calc",
    "advise",
    "eval",
    "families",
    "sort",
    "explain",
    "hash",
    "demo",
    "completions",
    "man",
];

/// A program that runs longer than this hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A temporary folder that the program runs in.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect(name);
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect(name)
    }

    /// The names of all files in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a folder");
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
        names.sort();
        names
    }

    /// A call of the program with these arguments, separated by white space.
    pub(crate) fn mayhap(&self, arguments: &str) -> Call {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mayhap"));
        command.args(arguments.split_whitespace());
        self.call(command)
    }

    /// A call of the shell, in which `$MAYHAP` is the program.
    pub(crate) fn sh(&self, script: &str) -> Call {
        let mut command = Command::new("sh");
        command.env("MAYHAP", env!("CARGO_BIN_EXE_mayhap")).args(["-c", script]);
        self.call(command)
    }

    /// A call of another program.
    pub(crate) fn call(&self, mut command: Command) -> Call {
        command.current_dir(self.0.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Call { command, input: Vec::new() }
    }
}

/// A program that is about to run.
pub(crate) struct Call {
    command: Command,
    input: Vec<u8>,
}

impl Call {
    /// Adds an argument that has white space in it, or is not text.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// What it gets on standard input; nothing by default.
    pub(crate) fn input(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.input = bytes.as_ref().to_vec();
        self
    }

    /// Where its standard output goes, in place of a pipe that is read.
    pub(crate) fn output(mut self, output: impl Into<Stdio>) -> Self {
        self.command.stdout(output);
        self
    }

    /// Where its standard error goes, in place of a pipe that is read.
    pub(crate) fn errors(mut self, errors: impl Into<Stdio>) -> Self {
        self.command.stderr(errors);
        self
    }

    /// Starts it and leaves the rest to the caller.
    pub(crate) fn start(mut self) -> Child {
        self.command.spawn().expect("the program starts")
    }

    /// Runs it to its end.
    pub(crate) fn run(mut self) -> Done {
        let line = format!("{:?}", self.command);
        let mut child = self.command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let input = self.input;
        let (status, out, err) = std::thread::scope(|scope| {
            // A program that has seen enough closes the pipe, which is its right.
            scope.spawn(move || stdin.write_all(&input));
            let out = scope.spawn(|| all_of(out));
            let err = scope.spawn(|| all_of(err));
            let status = wait(&mut child, &line);
            (status, out.join().expect("a reader"), err.join().expect("a reader"))
        });
        Done { line, status, out, err: String::from_utf8_lossy(&err).into_owned() }
    }
}

fn all_of(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut bytes).expect("a pipe");
    }
    bytes
}

/// Waits for a program, but not for ever.
pub(crate) fn wait(child: &mut Child, line: &str) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if started.elapsed() > PATIENCE {
            child.kill().expect("a child");
            panic!("{line} hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    line: String,
    pub(crate) status: ExitStatus,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl From<(String, Output)> for Done {
    fn from((line, output): (String, Output)) -> Self {
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { line, status: output.status, out: output.stdout, err }
    }
}

impl Done {
    /// It ended with this status.
    #[track_caller]
    pub(crate) fn ends(self, status: i32) -> Self {
        assert_eq!(
            self.status.code(),
            Some(status),
            "{}\nended with {:?}, expected {status}\n{}",
            self.line,
            self.status,
            self.texts()
        );
        self
    }

    /// It printed exactly this to standard output.
    #[track_caller]
    pub(crate) fn prints(self, expected: impl AsRef<[u8]>) -> Self {
        let expected = expected.as_ref();
        assert!(
            self.out == expected,
            "{}\nexpected output: {}\n{}",
            self.line,
            short(expected),
            self.texts()
        );
        self
    }

    /// It printed this somewhere on standard output.
    #[track_caller]
    pub(crate) fn shows(self, expected: &str) -> Self {
        let found = String::from_utf8_lossy(&self.out).contains(expected);
        assert!(found, "{}\nexpected in the output: {expected}\n{}", self.line, self.texts());
        self
    }

    /// It said this somewhere on standard error.
    #[track_caller]
    pub(crate) fn says(self, expected: &str) -> Self {
        let found = self.err.contains(expected);
        assert!(found, "{}\nexpected on standard error: {expected}\n{}", self.line, self.texts());
        self
    }

    /// It said exactly this line on standard error.
    #[track_caller]
    pub(crate) fn says_only(self, expected: &str) -> Self {
        let found = self.err.strip_suffix('\n') == Some(expected);
        assert!(found, "{}\nexpected on standard error only: {expected}\n{}", self.line, self.texts());
        self
    }

    /// It said nothing on standard error.
    #[track_caller]
    pub(crate) fn stays_quiet(self) -> Self {
        assert!(self.err.is_empty(), "{}\nexpected no word on standard error\n{}", self.line, self.texts());
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.out);
        parsed.unwrap_or_else(|e| panic!("{}\nno JSON: {e}\n{}", self.line, self.texts()))
    }

    fn texts(&self) -> String {
        format!("output: {}\nstandard error: {}", short(&self.out), self.err)
    }
}

fn short(bytes: &[u8]) -> String {
    const MOST: usize = 2000;
    let more = if bytes.len() > MOST { format!("… ({} bytes)", bytes.len()) } else { String::new() };
    format!("{}{more}", bytes[..bytes.len().min(MOST)].escape_ascii())
}

/// The lines `<prefix>0`, `<prefix>1`, ... up to a number.
pub(crate) fn lines(prefix: &str, count: u64) -> String {
    (0..count).map(|i| format!("{prefix}{i}\n")).collect()
}

/// The names of the families that can do something.
pub(crate) fn families(can: impl Fn(&Family) -> bool, between: &str) -> String {
    let names: Vec<_> = FAMILIES.iter().filter(|family| can(family)).map(|family| family.name).collect();
    names.join(between)
}

/// Whether permissions do not apply to us.
#[cfg(unix)]
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
