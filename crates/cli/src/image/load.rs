//! Images from files.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use super::{backend::Backend, each};
use crate::{
    failure::CommandError,
    terminal::{Terminal, visible},
};

/// The name of stdin.
const STDIN: &str = "-";

#[derive(Debug, Clone, clap::Args)]
pub(super) struct LoadArgs {
    /// Archives or directories; `-`, or none at all, reads an archive from stdin
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Same as FILE, as in docker and podman
    #[arg(short, long, value_name = "FILE")]
    input: Vec<PathBuf>,
}

pub(super) async fn run(
    backend: &Backend,
    args: &LoadArgs,
    terminal: &mut Terminal<'_>,
) -> Result<(), CommandError> {
    let files = args.files.iter().chain(&args.input);
    let mut names: Vec<String> = files
        .map(|file| file.to_string_lossy().into_owned())
        .collect();
    if names.is_empty() {
        if io::stdin().is_terminal() {
            let message = "name a file, or send an archive on stdin".to_owned();
            return Err(CommandError::Usage(message));
        }
        names.push(STDIN.to_owned());
    }
    each(&names, terminal, async |file, terminal| {
        let loaded = if file == STDIN {
            let archive = from_stdin()?;
            backend.load(archive.path(), "stdin").await?
        } else {
            // The runtime may have another working directory.
            let path = std::path::absolute(Path::new(file))?;
            backend.load(&path, file).await?
        };
        let lines = loaded.iter().map(|name| format!("{}\n", visible(name)));
        terminal.print(lines.collect::<String>())
    })
    .await
}

/// The archive on stdin as a file, which the runtime can read more than once.
fn from_stdin() -> anyhow::Result<tempfile::NamedTempFile> {
    let made = tempfile::Builder::new().prefix("rubelet-image-").tempfile();
    let mut file = made.context("cannot make a file for what comes on stdin")?;
    let copied = io::copy(&mut io::stdin().lock(), &mut file).and_then(|_| file.flush());
    copied.with_context(|| {
        let to = file.path().display();
        format!(
            "cannot write what comes on stdin to {to}; TMPDIR names a directory with more space"
        )
    })?;
    Ok(file)
}
