//! Where output goes: what a terminal shows, what may be replaced, and what `-` is.

use std::fs;

use crate::runner;
use crate::runner::{Folder, lines};

/// A terminal that a program writes to.
#[cfg(unix)]
mod terminal {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::sync::{Arc, Mutex};
    use std::thread::JoinHandle;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    pub(crate) struct Terminal {
        device: File,
        shown: Arc<Mutex<Vec<u8>>>,
        reader: JoinHandle<()>,
    }

    impl Terminal {
        pub(crate) fn new() -> Self {
            let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
            grantpt(&ours).expect("a terminal");
            unlockpt(&ours).expect("a terminal");
            let name = ptsname(&ours, Vec::new()).expect("a terminal");
            let name = std::ffi::OsStr::from_bytes(name.to_bytes());
            let device = File::options().read(true).write(true).open(name).expect("a terminal");
            let shown = Arc::default();
            let reader = std::thread::spawn({
                let shown = Arc::clone(&shown);
                move || read_all(ours, &shown)
            });
            Self { device, shown, reader }
        }

        pub(crate) fn device(&self) -> File {
            self.device.try_clone().expect("a terminal")
        }

        /// Whether it has shown this so far.
        pub(crate) fn has_shown(&self, part: &str) -> bool {
            let shown = self.shown.lock().expect("a reader");
            shown.windows(part.len()).any(|window| window == part.as_bytes())
        }

        /// What it has shown, with the line ends that programs wrote. The programs must have ended.
        pub(crate) fn shown(self) -> String {
            drop(self.device);
            self.reader.join().expect("a reader");
            let shown = std::mem::take(&mut *self.shown.lock().expect("a reader"));
            String::from_utf8(shown).expect("text").replace("\r\n", "\n")
        }
    }

    fn read_all(ours: OwnedFd, shown: &Mutex<Vec<u8>>) {
        let (mut ours, mut piece) = (File::from(ours), [0; 4096]);
        // It ends with an error, when nobody has it open any more.
        while let Ok(read @ 1..) = ours.read(&mut piece) {
            shown.lock().expect("a reader").extend_from_slice(&piece[..read]);
        }
    }
}

/// Writes five lines to a program, slowly enough that progress is due; then one of them again until the terminal shows what
/// is expected, if something is. Says whether the program succeeded.
#[cfg(unix)]
fn feed_slowly(
    mut child: std::process::Child,
    terminal: &terminal::Terminal,
    expected: Option<&str>,
) -> bool {
    use std::io::Write;
    let mut input = child.stdin.take().unwrap();
    for number in 0..5 {
        writeln!(input, "line-{number}").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(600));
    }
    let started = std::time::Instant::now();
    while expected.is_some_and(|expected| !terminal.has_shown(expected)) {
        assert!(started.elapsed() < runner::PATIENCE, "{expected:?} is not shown");
        writeln!(input, "line-0").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    drop(input);
    runner::wait(&mut child, "a program on a terminal").success()
}

/// Each record once left a status line behind.
#[cfg(unix)]
#[test]
fn no_progress_is_drawn_among_records_on_a_terminal() {
    let folder = Folder::new();
    folder.mayhap("build -o f").input(lines("line-", 5)).run().ends(0);
    std::thread::scope(|scope| {
        for command in ["dedup", "dedup --threads 1", "check f"] {
            let folder = &folder;
            scope.spawn(move || {
                let terminal = terminal::Terminal::new();
                let call = folder.mayhap(command).output(terminal.device()).errors(terminal.device());
                assert!(feed_slowly(call.start(), &terminal, None), "{command}");
                assert_eq!(terminal.shown(), lines("line-", 5), "{command}");
            });
        }
    });
}

#[cfg(unix)]
#[test]
fn progress_that_is_asked_for_comes_in_lines_of_its_own_among_records() {
    let folder = Folder::new();
    let terminal = terminal::Terminal::new();
    let call = folder.mayhap("dedup --progress").output(terminal.device()).errors(terminal.device());
    assert!(feed_slowly(call.start(), &terminal, Some("mayhap: deduplicating: ")));
    let shown = terminal.shown();
    let (progress, records): (Vec<&str>, Vec<&str>) =
        shown.lines().partition(|line| line.starts_with("mayhap: deduplicating: ") && line.ends_with("/s"));
    assert!(!progress.is_empty(), "{shown}");
    assert_eq!(records.join("\n") + "\n", lines("line-", 5), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_bar_is_drawn_on_a_terminal_where_no_records_go() {
    let folder = Folder::new();
    folder.mayhap("build -o g").input("a\n").run().ends(0);
    for command in ["build -o f", "check -c g"] {
        let terminal = terminal::Terminal::new();
        let call = folder.mayhap(command).output(terminal.device()).errors(terminal.device());
        // A bar moves the cursor, and is cleared in the end.
        let _ = feed_slowly(call.start(), &terminal, Some("\u{1b}["));
    }
}

const HOSTILE: &str = "a\u{1b}[31m\u{202e}\u{200b}\u{9b}\nmayhap: all is well";
const ESCAPED: &str = r"a\u{1b}[31m\u{202e}\u{200b}\u{9b}\nmayhap: all is well";

#[test]
fn names_in_messages_cannot_hold_escape_sequences_or_line_ends() {
    let folder = Folder::new();
    let said = |call: runner::Call| {
        let done = call.run().ends(2).prints("");
        assert_eq!(done.err.matches(HOSTILE).count(), 0, "{}", done.err);
        assert!(!done.err.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\u{9b}']), "{}", done.err);
        assert!(done.err.lines().all(|line| !line.starts_with("mayhap: all")), "{}", done.err);
        done.says(ESCAPED)
    };
    for command in ["dedup", "build -o f", "check", "info", "merge -o f"] {
        said(folder.mayhap(command).arg(HOSTILE));
    }
    // Messages of the parser.
    said(folder.mayhap("").arg(HOSTILE)).says("unrecognized subcommand");
    for argument in [format!("--{HOSTILE}"), format!("--family={HOSTILE}"), format!("--as={HOSTILE}")] {
        said(folder.mayhap("build -o f").arg(argument));
    }
    said(folder.mayhap("dedup --window").arg(HOSTILE));
    said(folder.mayhap("families").arg(HOSTILE));
    // Reports as well as errors.
    let made = folder.mayhap("build -o").arg(HOSTILE).input("a\n").run().ends(0);
    assert_eq!(made.err.lines().count(), 1, "{}", made.err);
    made.says(ESCAPED);
}

/// A JSON report beside a filter on standard output must stay JSON.
#[test]
fn hostile_names_keep_their_value_in_json() {
    let folder = Folder::new();
    let named = "a\u{7f}\u{202e}b";
    let made = folder.mayhap("build --json -o").arg(named).input("a\n").run().ends(0).json();
    assert_eq!(made["output"], named);
    let beside =
        folder.mayhap("build --json --keyed -o - --key-file").arg(named.to_owned() + "k").input("a\n");
    let beside = beside.run().ends(0);
    assert!(!beside.err.contains(['\u{7f}', '\u{202e}']), "{}", beside.err);
    let value: serde_json::Value = serde_json::from_str(&beside.err).unwrap();
    assert_eq!(value["key_file"], format!("{named}k"));
}

#[cfg(unix)]
#[test]
fn names_on_standard_output_are_escaped_on_a_terminal_and_raw_elsewhere() {
    let folder = Folder::new();
    folder.write("keys", "key\n");
    folder.mayhap("build -o").arg(HOSTILE).arg("keys").run().ends(0);
    folder.mayhap("build -o labels --label").arg("a\u{202e}b=keys").run().ends(0);
    let which = |call: runner::Call| call.arg(HOSTILE).arg("keys");
    which(folder.mayhap("check --which")).run().ends(0).prints(format!("{HOSTILE}\tkey\n"));
    folder.mayhap("label labels keys").run().ends(0).prints("key\ta\u{202e}b\n");
    folder.mayhap("info labels").run().ends(0).shows("a\u{202e}b");
    let on_terminal = |call: runner::Call| {
        let terminal = terminal::Terminal::new();
        call.output(terminal.device()).run().ends(0);
        terminal.shown()
    };
    assert_eq!(on_terminal(which(folder.mayhap("check --which"))), format!("{ESCAPED}\tkey\n"));
    assert_eq!(on_terminal(folder.mayhap("label labels keys")), "key\ta\\u{202e}b\n");
    assert!(on_terminal(folder.mayhap("info labels")).contains("a\\u{202e}b"));
    let json = on_terminal(folder.mayhap("info --json labels"));
    assert!(json.contains("\"a\\u202eb\""), "{json}");
}

/// The precious file of somebody who has swapped two names.
const TEXT: &str = "thesis, chapter one\n";

#[test]
fn a_file_that_is_not_a_filter_is_replaced_only_by_force() {
    let folder = Folder::new();
    folder.write("keys", lines("", 100));
    folder.mayhap("build --foldable -n 10k -o f keys").run().ends(0);
    folder.mayhap("build --format guava -o g keys").run().ends(0);
    let refused =
        "precious: this file exists and is not a filter; write to another file, or replace it with --force";
    for command in [
        "build -o precious keys",
        "build --exact -o precious keys",
        "build --format guava -o precious keys",
        "build --to guava -o precious keys",
        "build --to dcso -o precious keys",
        "merge -o precious f f",
        "fold -p 1% -o precious f",
        "convert g -o precious --to guava",
    ] {
        for contents in [TEXT, "x", "PAR1 and more, PAR1", "{\"a\": 1}\n"] {
            folder.write("precious", contents);
            folder.mayhap(command).run().ends(2).prints("").says_only(&format!("mayhap: {refused}"));
            assert_eq!(folder.read("precious"), contents.as_bytes(), "{command}");
        }
        folder.mayhap(&format!("{command} --force")).run().ends(0);
        assert_ne!(folder.read("precious"), TEXT.as_bytes());
        // A filter is replaced by a filter, and nothing is lost with an empty file.
        folder.mayhap(command).run().ends(0);
        folder.write("precious", "");
        folder.mayhap(command).run().ends(0);
    }
    // Before a long input is read, and without a trace.
    folder.write("precious", TEXT);
    folder.mayhap("build --keyed -o precious absent").run().ends(2).says(refused);
    assert!(!folder.path("precious.key").exists());
}

/// Some formats do not show: their files are known by the format that is written.
#[test]
fn a_filter_of_every_format_that_is_written_is_replaced_by_one_of_it() {
    let folder = Folder::new();
    folder.write("keys", lines("", 1000));
    for format in
        ["guava", "go", "go-json", "go-gob", "dcso", "spark", "redisbloom", "redisbloom-cuckoo", "sbbf"]
    {
        for _ in 0..2 {
            folder.mayhap(&format!("build --to {format} -o {format} keys")).run().ends(0);
        }
        // And by one of ours.
        folder.mayhap(&format!("build -o {format} keys")).run().ends(0);
    }
}

#[cfg(unix)]
#[test]
fn force_writes_through_links_and_never_over_a_secret() {
    let folder = Folder::new();
    folder.write("keys", lines("", 100));
    folder.mayhap("build --keyed -o f keys").run().ends(0);
    folder.mayhap("build -o g keys").run().ends(0);
    let secret = folder.read("f.key");
    std::os::unix::fs::symlink("f.key", folder.path("link")).unwrap();
    for output in ["f.key", "link"] {
        for command in [
            "build keys -o",
            "merge g -o",
            "convert g --to mayhap -o",
            "calc -n 1M -p 1% --plot",
            "info g --heatmap",
            "info f --heatmap",
        ] {
            for force in ["", " --force"] {
                folder
                    .mayhap(&format!("{command} {output}{force}"))
                    .run()
                    .ends(2)
                    .prints("")
                    .says("is a key file, and a secret is never overwritten");
                assert_eq!(folder.read("f.key"), secret, "{command}");
            }
        }
    }
    folder.write("text", TEXT);
    std::os::unix::fs::symlink("text", folder.path("to-text")).unwrap();
    folder
        .mayhap("build -o to-text keys")
        .run()
        .ends(2)
        .says("to-text: this file exists and is not a filter");
    folder.mayhap("build --force -o to-text keys").run().ends(0);
    folder.mayhap("info text").run().ends(0);
}

#[test]
fn a_picture_is_drawn_over_pictures_only() {
    let folder = Folder::new();
    folder.write("keys", lines("", 100));
    folder.mayhap("build -o f keys").run().ends(0);
    folder.mayhap("build -o other keys").run().ends(0);
    folder.mayhap("build --to guava -o guava keys").run().ends(0);
    folder.write("text", TEXT);
    folder.write("page.html", "<html><svg></svg></html>\n");
    let before = folder.read("f");
    for command in ["calc -n 1M -p 1% --plot", "info f --heatmap"] {
        for file in ["other", "guava", "text", "page.html"] {
            let contents = folder.read(file);
            folder.mayhap(&format!("{command} {file}")).run().ends(2).prints("").says_only(&format!(
                "mayhap: {file}: this file exists and is not an SVG image; write to another file, or replace it with --force"
            ));
            assert_eq!(folder.read(file), contents);
        }
        folder.write("empty", "");
        for file in ["new.svg", "new.svg", "empty", "text --force"] {
            folder.mayhap(&format!("{command} {file}")).run().ends(0);
        }
        for drawn in ["new.svg", "empty", "text"] {
            assert!(folder.read(drawn).starts_with(b"<svg"), "{drawn}");
        }
        let drawn = folder.read("new.svg");
        folder.write("declared.svg", [b"<?xml version=\"1.0\"?>\n<!-- by hand -->\n", &drawn[..]].concat());
        folder.mayhap(&format!("{command} declared.svg")).run().ends(0);
        folder.write("text", TEXT);
    }
    for force in ["", " --force"] {
        let done = folder.mayhap(&format!("info f --heatmap f{force}")).run();
        done.ends(2).prints("").says_only("mayhap: f: is the filter; draw it into another file");
    }
    assert!(folder.read("f") == before);
    fs::create_dir(folder.path("plots")).unwrap();
    folder.write("plots/rate-against-keys.svg", TEXT);
    let done = folder.mayhap("eval --family bloom -n 1000 --plot plots").run().ends(2).prints("");
    done.says("rate-against-keys.svg: this file exists and is not an SVG image");
    assert_eq!(folder.read("plots/rate-against-keys.svg"), TEXT.as_bytes());
    folder.mayhap("calc -n 1M -p 1% --force").run().ends(2).says("--plot");
}

#[test]
fn a_dash_is_standard_output_and_never_a_file() {
    let folder = Folder::new();
    folder.mayhap("build -o f").input(lines("", 100)).run().ends(0);
    for command in ["calc -n 1M -p 1% --plot", "info f --heatmap"] {
        let done = folder.mayhap(&format!("{command} -")).run().ends(0).stays_quiet();
        let (start, end) = (done.out.starts_with(b"<svg"), done.out.ends_with(b"</svg>\n"));
        assert!(start && end && done.out.windows(4).filter(|part| part == b"<svg").count() == 1);
        folder.mayhap(&format!("{command} x.svg")).run().ends(0);
        assert!(done.out == folder.read("x.svg"), "{command}");
        let with_report = folder.mayhap(&format!("{command} - --json")).run().ends(0).prints(&done.out);
        serde_json::from_str::<serde_json::Value>(&with_report.err).unwrap();
    }
    folder.mayhap("eval --family bloom -n 100 --plot -").run().ends(2).prints("").says_only(
        "mayhap: --plot -: there are several pictures, which do not fit on standard output; name a folder",
    );
    folder.mayhap("man -").run().ends(2).prints("").says("name a folder");
    folder
        .mayhap("build --keyed --key-file - -o g")
        .input("a\n")
        .run()
        .ends(2)
        .prints("")
        .says("--key-file -: a secret is not written to standard output; name a file");
    folder
        .mayhap("dedup --state -")
        .input("a\n")
        .run()
        .ends(2)
        .prints("")
        .says("--state -: ")
        .says("name a file");
    assert_eq!(folder.names(), ["f", "x.svg"]);
}

#[test]
fn help_that_nobody_gets_is_an_error_and_a_closed_pipe_is_none() {
    if !fs::exists("/dev/full").unwrap() {
        println!("skipped: there is no /dev/full here");
        return;
    }
    let folder = Folder::new();
    folder.mayhap("build -o f").input("a\n").run().ends(0);
    let mut commands = vec![
        "--help".to_string(),
        "-h".into(),
        "help".into(),
        "--version".into(),
        "-V".into(),
        "families".into(),
        "completions zsh".into(),
        "completions fish".into(),
        "advise -n 1M".into(),
        "advise -n 1M --json".into(),
        "explain a".into(),
        "hash a".into(),
        "info --heatmap - f".into(),
        "calc -n 1M -p 1% --plot -".into(),
        "eval --family bloom -n 1000".into(),
        "demo -n 1000".into(),
    ];
    commands.extend(
        runner::COMMANDS.iter().flat_map(|command| [format!("{command} --help"), format!("help {command}")]),
    );
    for command in commands {
        let output = fs::File::options().write(true).open("/dev/full").unwrap();
        let done = folder.mayhap(&command).output(output).run().ends(2);
        done.says_only("mayhap: standard output: No space left on device (os error 28)");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        folder.mayhap(&command).output(writer).run().ends(0).stays_quiet();
    }
    // Without arguments it is an error, whoever reads it.
    folder.mayhap("").run().ends(2).prints("");
}
