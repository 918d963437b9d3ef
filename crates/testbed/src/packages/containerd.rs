//! A containerd for this machine, the newest or one of a given line, unpacked from its Debian
//! package into a private directory; the host's own is neither used nor replaced.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{codename, line::Line, private_apt};
use crate::command::stdout_of;
use crate::scratch::lock::HostLock;
use crate::target_dir;

/// Debian suites from new to old; the machine's own comes after them.
const SUITES: [&str; 2] = ["forky", "trixie"];
/// Environment variable with the codename of the only Debian suite to take containerd from.
const SUITE_VARIABLE: &str = "RUBELET_TESTBED_SUITE";
/// The file in an unpacked package's directory that names the suite it came from.
const SUITE_FILE: &str = "suite";

/// Programs of one containerd version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The directory with `containerd`, `ctr` and `containerd-shim-runc-v2`.
    pub bin: PathBuf,
    /// The version it reports, such as `2.1.9`.
    pub version: String,
    /// The Debian suite it came from.
    pub suite: String,
}

impl Binaries {
    /// The major version, which determines the format of the configuration.
    #[must_use]
    pub fn major(&self) -> u32 {
        self.version
            .split('.')
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }

    fn at(dir: &Path) -> Result<Self> {
        let bin = dir.join("usr/bin");
        let text = stdout_of(Command::new(bin.join("containerd")).arg("--version"))?;
        let version = version_in(&text)
            .with_context(|| format!("cannot read a version out of `{}`", text.trim()))?;
        let suite = std::fs::read_to_string(dir.join(SUITE_FILE)).unwrap_or_default();
        Ok(Self {
            bin,
            version,
            suite,
        })
    }
}

/// The containerd to test with: one unpacked by an earlier run if there is one (without network
/// access), else the newest available.
///
/// # Errors
/// No suite has a containerd that can be downloaded and that runs here.
pub fn ensure() -> Result<Binaries> {
    let host = codename()?;
    let wanted = std::env::var(SUITE_VARIABLE).ok();
    let suites: Vec<&str> = match &wanted {
        Some(suite) => vec![suite],
        None => SUITES.into_iter().chain([host.as_str()]).collect(),
    };
    find(&host, &suites, None)
}

/// A containerd of `line`: one unpacked by an earlier run if there is one, else the newest
/// available of its line.
///
/// # Errors
/// None of the suites that may have this line has one that can be downloaded and that runs here.
pub(crate) fn ensure_line(line: Line) -> Result<Binaries> {
    find(&codename()?, line.suites(), Some(line))
}

/// The first containerd of `suites`, of a given line if requested.
fn find(host: &str, suites: &[&str], line: Option<Line>) -> Result<Binaries> {
    let _lock = HostLock::take()?;
    let cache = target_dir::cache()?;
    let unpacked = unpacked(&cache);
    let fits = |found: &Binaries| line.is_none_or(|line| line.contains(&found.version));
    let ready = |suite: &&str| {
        let mut of_suite = unpacked.iter().filter(|found| found.suite == *suite);
        of_suite.find(|found| fits(found))
    };
    if let Some(found) = suites.iter().find_map(ready) {
        return Ok(found.clone());
    }
    let mut reasons = Vec::new();
    for suite in suites {
        match fetch(&cache, host, suite) {
            Ok(found) if fits(&found) => return Ok(found),
            Ok(found) => reasons.push(format!("{suite}: it has version {}", found.version)),
            Err(error) => reasons.push(format!("{suite}: {error:#}")),
        }
    }
    let of_line = line.map(|line| format!(" {line}")).unwrap_or_default();
    bail!(
        "no containerd{of_line} to test with:\n  {}",
        reasons.join("\n  ")
    )
}

/// Usable versions that earlier runs left in the cache.
fn unpacked(cache: &Path) -> Vec<Binaries> {
    let Ok(entries) = std::fs::read_dir(cache) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("containerd-")
        })
        .filter_map(|entry| Binaries::at(&entry.path()).ok())
        .collect()
}

fn fetch(cache: &Path, host: &str, suite: &str) -> Result<Binaries> {
    let work = tempfile::Builder::new()
        .prefix("fetch-")
        .tempdir_in(cache)?;
    let deb = private_apt::download("containerd", host, suite, work.path())?;
    let unpacked = work.path().join("unpacked");
    stdout_of(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(&deb)
            .arg(&unpacked),
    )?;
    std::fs::write(unpacked.join(SUITE_FILE), suite)?;
    let binaries = Binaries::at(&unpacked).context("it does not run here")?;
    let dir = cache.join(format!("containerd-{suite}-{}", binaries.version));
    if dir.exists() {
        // Another run may use it, unless it can't be executed.
        if let Ok(found) = Binaries::at(&dir) {
            return Ok(found);
        }
        std::fs::remove_dir_all(&dir)?;
    }
    // The rename comes last, so that a directory with this name is always complete.
    std::fs::rename(&unpacked, &dir)
        .with_context(|| format!("cannot rename {} to {}", unpacked.display(), dir.display()))?;
    Binaries::at(&dir)
}

/// The version in the output of `containerd --version`: third word, without build details.
fn version_in(text: &str) -> Option<String> {
    let word = text.split_whitespace().nth(2)?.trim_start_matches('v');
    let end = word
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(word.len());
    let version = &word[..end];
    version.contains('.').then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_parsed_from_containerds_output() {
        for (text, version) in [
            (
                "containerd github.com/containerd/containerd/v2 2.1.9+unknown \n",
                Some("2.1.9"),
            ),
            (
                "containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6\n",
                Some("1.7.24"),
            ),
            (
                "containerd github.com/containerd/containerd v2.3.0-rc.1 abc\n",
                Some("2.3.0"),
            ),
            ("no version here at all\n", None),
        ] {
            assert_eq!(version_in(text).as_deref(), version, "{text}");
        }
    }
}
