//! The released commit.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::git;

/// A commit and its files.
pub(super) struct Source {
    /// Hash of the commit.
    pub(super) commit: String,
    /// When it was committed, in seconds since 1970.
    pub(super) seconds: u64,
    /// The same in RFC 3339, in UTC.
    pub(super) date: String,
    /// Its files, from `git archive`.
    pub(super) tar: Vec<u8>,
}

impl Source {
    /// The commit that is checked out at `root`.
    ///
    /// # Errors
    ///
    /// There is no git checkout, or it has uncommitted changes.
    pub(super) fn of(root: &Path) -> Result<Self> {
        let git = |arguments: &[&str]| git::output(root, arguments);
        let changes = git(&["status", "--porcelain"])
            .context("a release is built from a git checkout of the repository")?;
        if let Some(first) = changes.lines().next() {
            bail!(
                "the checkout has changes that are not committed ({first}); commit or stash them"
            );
        }
        let commit = git(&["rev-parse", "HEAD"])?;
        let seconds = git(&["log", "-1", "--format=%ct", &commit])?;
        let format = "--date=format-local:%Y-%m-%dT%H:%M:%SZ";
        let date = git(&["log", "-1", format, "--format=%cd", &commit])?;
        let archive = git::command(root, &["archive", "--format=tar", &commit])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start git")?;
        if !archive.status.success() {
            bail!("`git archive` failed ({})", archive.status);
        }
        Ok(Self {
            seconds: seconds.parse().context("the time of the commit")?,
            commit,
            date,
            tar: archive.stdout,
        })
    }
}
