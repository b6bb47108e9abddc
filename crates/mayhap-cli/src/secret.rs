//! Secrets of keyed filters: the file that holds one, where commands look for it, and how a new one is made.
//!
//! A key file is one line of 32 hexadecimal digits. No message shows any of them: secrets are told apart by their ids.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};
use mayhap::{DecodeError, Hashing, Secret};
use mayhap_store::StoreError;

use crate::args::Common;
use crate::output::is_stdout;

/// The secret of the filter `NAME` is looked for in `NAME.key`.
const EXTENSION: &str = ".key";

/// Longer than any key file: what is no key file need not be read.
const MOST: u64 = 256;

/// Options of every command that opens a filter file which may be keyed.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SecretArgs {
    /// File with the secret of a keyed filter: one line of 32 hexadecimal digits [default: FILTER.key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The secret in it, which is read once: it may come through a pipe.
    #[arg(skip)]
    secret: OnceLock<Secret>,
}

impl SecretArgs {
    /// Whether a file was named.
    pub(crate) fn is_given(&self) -> bool {
        self.key_file.is_some()
    }

    /// Opens a filter with the secret that was given, or with that beside it. A filter that is not keyed needs none,
    /// and what lies beside it is then no concern.
    pub(crate) fn open<T>(
        &self,
        filter: &Path,
        open: impl FnOnce(Option<&Secret>) -> Result<T, StoreError>,
    ) -> Result<T> {
        let path = self.key_file.clone().unwrap_or_else(|| beside(filter));
        let secret = if self.is_given() {
            Ok(match self.secret.get() {
                Some(secret) => *secret,
                None => *self.secret.get_or_init({
                    let secret = read(&path)?;
                    move || secret
                }),
            })
        } else if path.exists() && !path.is_file() {
            // A pipe that happens to have the name would keep us waiting.
            Err(anyhow!("{}: not a file", path.display()))
        } else {
            read(&path)
        };
        open(secret.as_ref().ok()).map_err(|error| explain(error, filter, &path, secret.err()))
    }

    /// A filter made of others has their secret, and no key file beside it unless one is put there.
    pub(crate) fn remind(&self, common: &Common, hashing: Hashing, input: &Path, output: &Path) {
        let own = beside(output);
        if matches!(hashing, Hashing::Keyed(_)) && !own.exists() {
            let path = self.key_file.clone().unwrap_or_else(|| beside(input));
            common.say(format_args!(
                "{}: keyed, with the secret in {}; name that with --key-file, or copy it to {}",
                output.display(),
                path.display(),
                own.display(),
            ));
        }
    }
}

/// What a missing or wrong secret means for the user of a command.
fn explain(
    error: StoreError,
    filter: &Path,
    key_file: &Path,
    problem: Option<anyhow::Error>,
) -> anyhow::Error {
    let (filter, looked) = (filter.display(), key_file.display());
    match (&error, problem) {
        (StoreError::Decode { source: DecodeError::SecretNeeded { key_id }, .. }, Some(problem)) => anyhow!(
            "{filter}: the filter is keyed, and its secret, whose id is {key_id:016x}, was not found beside it \
             ({problem:#}); give its file with --key-file"
        ),
        (StoreError::Decode { source: DecodeError::SecretWrong { needed, given }, .. }, _) => anyhow!(
            "{filter}: the filter is keyed with the secret {needed:016x}, and the one in {looked} is {given:016x}; give \
             the file of the right one with --key-file"
        ),
        _ => error.into(),
    }
}

fn beside(filter: &Path) -> PathBuf {
    let mut name = filter.as_os_str().to_owned();
    name.push(EXTENSION);
    name.into()
}

fn read(path: &Path) -> Result<Secret> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST).read_to_end(&mut text))
        .with_context(|| format!("{}: cannot read the key file", path.display()))?;
    parse(&text).ok_or_else(|| {
        anyhow!("{}: not a key file, which is one line of 32 hexadecimal digits", path.display())
    })
}

/// Refuses to write a file where a secret is, whatever that is called here.
pub(crate) fn must_not_be_one(output: &Path) -> Result<()> {
    if output.is_file() && read(output).is_ok() {
        bail!(
            "{}: is a key file, and a secret is never overwritten; write to another file",
            output.display()
        );
    }
    Ok(())
}

fn parse(text: &[u8]) -> Option<Secret> {
    let line = text.strip_suffix(b"\n").unwrap_or(text);
    let digits: &[u8; 32] = line.strip_suffix(b"\r").unwrap_or(line).try_into().ok()?;
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(Secret::new(bytes))
}

/// What a new filter is hashed with, and the key file that is yet to be written.
#[derive(Default)]
pub(crate) struct ForBuild {
    secret: Option<Secret>,
    /// Where the secret is or will be.
    path: PathBuf,
    /// The text of a new key file.
    new: Option<String>,
}

impl ForBuild {
    /// The secret that was asked for: from a file, or a new one from the generator of the operating system.
    pub(crate) fn new(output: &Path, keyed: bool, args: &SecretArgs) -> Result<Self> {
        let path = match &args.key_file {
            None if !keyed => return Ok(Self::default()),
            None if is_stdout(output) => {
                bail!(
                    "--keyed: standard output has no file beside it for the secret; say where with --key-file"
                )
            }
            None => beside(output),
            Some(path) => path.clone(),
        };
        if path == output {
            bail!("{}: is both the key file and the file to write", path.display());
        }
        if keyed && is_stdout(&path) {
            bail!("--key-file -: a secret is not written to standard output; name a file");
        }
        // A dangling link is there too: its target is not made in silence.
        let is_there = path.symlink_metadata().is_ok();
        if args.is_given() && (is_there || !keyed) {
            let secret = read(&path)
                .map_err(|e| if is_there { e } else { anyhow!("{e:#}; --keyed makes a new secret there") })?;
            return Ok(Self { secret: Some(secret), path, new: None });
        }
        if is_there {
            return Err(taken(&path));
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|e| anyhow!("the system gives no random numbers: {e}"))?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { secret: Some(Secret::new(bytes)), path, new: Some(text + "\n") })
    }

    /// How the keys are hashed, if there is a secret.
    pub(crate) fn hashing(&self) -> Option<Hashing> {
        self.secret.map(Hashing::Keyed)
    }

    /// The id of the secret, and where it is.
    pub(crate) fn place(&self) -> Option<(u64, &Path)> {
        self.secret.map(|secret| (secret.id(), &*self.path))
    }

    /// Writes the key file, if it is a new one, then the filter: a filter without its secret would be lost. If that
    /// fails the key file is removed again.
    pub(crate) fn save(&self, write: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(text) = &self.new else { return write() };
        create(&self.path, text.as_bytes())?;
        write().inspect_err(|_| {
            // The error that the user is told of is the first one.
            let _ = fs::remove_file(&self.path);
        })
    }
}

fn taken(path: &Path) -> anyhow::Error {
    let path = path.display();
    anyhow!(
        "{path}: there is a key file already, and a secret is never overwritten; use it with --key-file {path}, or \
         move it away if no filter needs it"
    )
}

/// For its owner alone, and never over a file that is there.
fn create(path: &Path, text: &[u8]) -> Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = match options.open(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(taken(path)),
        opened => opened.with_context(|| format!("{}: cannot write the key file", path.display()))?,
    };
    file.write_all(text).and_then(|()| file.sync_all()).map_err(|e| {
        let _ = fs::remove_file(path);
        anyhow!("{}: cannot write the key file: {e}", path.display())
    })?;
    // Its name must be on the disk before the filter is. Systems that cannot sync a folder do it by themselves.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_one_line_of_32_digits() {
        let secret = Secret::new(*b"0123456789abcdef");
        let text = "30313233343536373839616263646566";
        for good in [text.to_string(), format!("{text}\n"), format!("{text}\r\n"), text.to_uppercase()] {
            assert_eq!(parse(good.as_bytes()), Some(secret), "{good:?}");
        }
        for bad in [
            String::new(),
            "\n".into(),
            text[1..].into(),
            format!("{text}0"),
            format!(" {text}"),
            format!("{text}\n\n"),
            format!("{text}\n{text}\n"),
            text.replace('6', "g"),
            text.replace('6', "+"),
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
