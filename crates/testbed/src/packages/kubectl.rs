//! kubectl of other releases than the machine's own, unpacked from Debian packages into private directories; the
//! machine's own is neither used nor replaced.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{codename, private_apt};
use crate::command::stdout_of;
use crate::scratch::lock::HostLock;
use crate::target_dir;

/// The program in each package.
const PROGRAM: &str = "usr/bin/kubectl";

/// A release of kubectl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KubectlRelease {
    /// 1.20, of Debian 12: all its sessions use SPDY.
    Old,
    /// The newest of Debian: it opens sessions over WebSockets by itself.
    Newest,
}

impl KubectlRelease {
    /// Debian suites, the best first.
    fn suites(self) -> &'static [&'static str] {
        match self {
            Self::Old => &["bookworm"],
            Self::Newest => &["sid", "forky"],
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::Old => "kubernetes-client",
            Self::Newest => "kubectl",
        }
    }

    /// The minor versions that count as this release.
    fn minors(self) -> RangeInclusive<u32> {
        match self {
            Self::Old => 20..=20,
            Self::Newest => 31..=u32::MAX,
        }
    }

    /// The name of the directory of the unpacked package.
    fn directory(self) -> &'static str {
        match self {
            Self::Old => "kubectl-old",
            Self::Newest => "kubectl-newest",
        }
    }
}

/// A kubectl: one unpacked by an earlier run if there is one (without network access), else the newest available
/// of its release.
///
/// # Errors
/// No suite has one of this release that can be downloaded and that runs here.
pub fn ensure(release: KubectlRelease) -> Result<PathBuf> {
    let _lock = HostLock::take()?;
    let cache = target_dir::cache()?;
    let dir = cache.join(release.directory());
    if check(&dir, release).is_ok() {
        return Ok(dir.join(PROGRAM));
    }
    let host = codename()?;
    let mut reasons = Vec::new();
    for suite in release.suites() {
        match fetch(&cache, &host, (suite, release)) {
            Ok(()) => return Ok(dir.join(PROGRAM)),
            Err(error) => reasons.push(format!("{suite}: {error:#}")),
        }
    }
    bail!("no kubectl to test with:\n  {}", reasons.join("\n  "))
}

fn fetch(cache: &Path, host: &str, (suite, release): (&str, KubectlRelease)) -> Result<()> {
    let work = tempfile::Builder::new()
        .prefix("fetch-")
        .tempdir_in(cache)?;
    // One of another origin may be installed, with a higher version.
    let package = format!("{}/{suite}", release.package());
    let deb = private_apt::download(&package, host, suite, work.path())?;
    let unpacked = work.path().join("unpacked");
    let mut extract = Command::new("dpkg-deb");
    stdout_of(extract.arg("--extract").arg(&deb).arg(&unpacked))?;
    check(&unpacked, release)?;
    let into = cache.join(release.directory());
    if into.exists() {
        std::fs::remove_dir_all(&into)?;
    }
    // The rename comes last, so that a directory with this name is always complete.
    std::fs::rename(&unpacked, &into)
        .with_context(|| format!("cannot rename {} to {}", unpacked.display(), into.display()))
}

/// Whether the kubectl in a directory runs, and is of that release.
fn check(dir: &Path, release: KubectlRelease) -> Result<()> {
    let mut version = Command::new(dir.join(PROGRAM));
    let text = stdout_of(version.args(["version", "--client", "--output=json"]))?;
    match minor_in(&text) {
        Some(minor) if release.minors().contains(&minor) => Ok(()),
        Some(minor) => bail!("it has version 1.{minor}"),
        None => bail!("cannot read a version out of `{}`", text.trim()),
    }
}

/// The minor version in the output of `kubectl version --client --output=json`.
fn minor_in(text: &str) -> Option<u32> {
    let version: Value = serde_json::from_str(text).ok()?;
    let minor = version["clientVersion"]["minor"].as_str()?;
    minor
        .trim_end_matches(|c: char| !c.is_ascii_digit())
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_parsed_from_kubectls_output() {
        for (text, minor) in [
            (r#"{"clientVersion":{"major":"1","minor":"36"}}"#, Some(36)),
            (r#"{"clientVersion":{"major":"1","minor":"20+"}}"#, Some(20)),
            (r#"{"clientVersion":{}}"#, None),
            ("kubectl: not found", None),
        ] {
            assert_eq!(minor_in(text), minor, "{text}");
        }
    }
}
