//! A command in a folder of its own, with our `mayhap` first on the path.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

use super::expected::Expected;

/// Where commands run.
pub(super) struct Shell {
    path: String,
    folders: PathBuf,
    next: AtomicUsize,
}

/// What a command printed to both outputs, as on a terminal, and how it ended.
pub(super) struct Done {
    pub(super) status: Option<i32>,
    pub(super) output: String,
}

impl Shell {
    /// With the programs of `binary`. Folders are made below `folders`, which is emptied.
    ///
    /// # Errors
    ///
    /// There is no `mayhap`, or the folder cannot be made.
    pub(super) fn new(binary: &Path, folders: &Path) -> Result<Self, String> {
        let program = binary.join("mayhap");
        if !program.exists() {
            return Err(format!("{} is not built; run `cargo build`", program.display()));
        }
        let unwritable = |error| format!("{}: {error}", folders.display());
        if folders.exists() {
            fs::remove_dir_all(folders).map_err(unwritable)?;
        }
        // Stand-ins for programs that do not end, first on the path.
        let stand_ins = folders.join("bin");
        fs::create_dir_all(&stand_ins).map_err(unwritable)?;
        for (name, script) in STAND_INS {
            let path = stand_ins.join(name);
            fs::write(&path, script).map_err(unwritable)?;
            let made = Command::new("chmod").arg("+x").arg(&path).status();
            if !made.is_ok_and(|status| status.success()) {
                return Err(format!("{} cannot be made executable", path.display()));
            }
        }
        let path =
            format!("{}:{}:{}", stand_ins.display(), binary.display(), env::var("PATH").unwrap_or_default());
        Ok(Self { path, folders: folders.to_owned(), next: AtomicUsize::new(0) })
    }

    /// A fresh empty folder.
    pub(super) fn folder(&self) -> PathBuf {
        let folder = self.folders.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        folder
    }

    /// Runs a script in a folder.
    pub(super) fn run(&self, script: &str, folder: &Path) -> Done {
        let done = Command::new("sh")
            .args(["-e", "-c", &format!("exec 2>&1\n{script}")])
            .env("PATH", &self.path)
            .env_remove("MAYHAP_TEST_ALL")
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("sh: {error}"));
        Done { status: done.status.code(), output: String::from_utf8_lossy(&done.stdout).into_owned() }
    }

    /// Runs a command in a fresh folder and compares.
    ///
    /// # Errors
    ///
    /// What is different.
    pub(super) fn expects(&self, command: &str, expected: &Expected) -> Result<String, String> {
        let folder = self.folder();
        let done = self.run(command, &folder);
        let result = expected.compare(done.status, &done.output);
        // Of those that hold nothing is left, as some make large files.
        if result.is_ok() {
            let _ = fs::remove_dir_all(&folder);
        }
        result
    }
}

/// Programs of examples that would not end, or are not ours.
const STAND_INS: [(&str, &str); 1] = [(
    "tail",
    // `tail -f FILE` follows a file for ever; here it ends with the file.
    "#!/bin/sh\nif [ \"$1\" = -f ] || [ \"$1\" = -F ]; then shift; exec cat \"$@\"; fi\nexec /usr/bin/tail \"$@\"\n",
)];
