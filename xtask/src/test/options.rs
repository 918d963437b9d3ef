//! The arguments of `cargo xtask test`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::{
    cluster,
    selection::{self, TestedRuntime},
};

/// The parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Only this ring.
    pub(super) ring: Option<u8>,
    /// Only on this runtime.
    pub(super) runtime: Option<TestedRuntime>,
    /// Only the tests of clusters, with the API server programs in this directory.
    pub(super) api_server: Option<PathBuf>,
    /// Only tests whose name contains this, all tests of the program of this name, or the one test
    /// of this full name.
    pub(super) filter: Option<String>,
    /// A test that fails once fails the run, even if it passes when retried.
    pub(super) strict: bool,
    /// Only tests of packages that differ from `main`, and of their dependents.
    pub(super) changed: bool,
    /// Also tests that take too long for each run.
    pub(super) all: bool,
    /// With a load on the cores and the disk.
    pub(super) beside_load: bool,
}

impl Options {
    /// Parses the arguments after `test`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--ring" => {
                    let number = words.next().context("--ring needs a number, 1 to 3")?;
                    let ring = number
                        .parse()
                        .ok()
                        .filter(|ring| selection::ALL.contains(ring));
                    options.ring =
                        Some(ring.with_context(|| format!("there is no ring {number}"))?);
                }
                "--runtime" => {
                    let name = words.next().context("--runtime needs a name")?;
                    let mut all = TestedRuntime::ALL.iter();
                    let runtime = all.find(|one| one.name() == *name);
                    options.runtime =
                        Some(*runtime.with_context(|| format!("there is no runtime {name}"))?);
                }
                "--api-server" => {
                    let dir = words.next().filter(|word| !word.starts_with('-'));
                    let dir = dir.context("--api-server needs a directory of programs")?;
                    options.api_server = Some(PathBuf::from(*dir));
                }
                "--strict" => options.strict = true,
                "--changed" => options.changed = true,
                "--all" => options.all = true,
                "--beside-load" => options.beside_load = true,
                option if option.starts_with('-') => bail!(
                    "`{option}` is not an option of `cargo xtask test`; the options are --ring N, \
                     --runtime NAME, --api-server DIR, --changed, --all, --beside-load and \
                     --strict"
                ),
                filter if options.filter.is_none() => options.filter = Some(filter.to_owned()),
                more => bail!("only one filter can be given, and `{more}` is a second one"),
            }
        }
        if options.api_server.is_some() {
            match options.ring {
                None => options.ring = Some(cluster::RING),
                Some(ring) if cluster::is_ring(ring) => {}
                Some(ring) => bail!(
                    "--api-server applies to tests of ring {}, not of ring {ring}",
                    cluster::RING
                ),
            }
        }
        Ok(options)
    }

    /// Whether to run all checks, as CI does.
    pub(super) fn is_everything(&self) -> bool {
        let Self {
            ring,
            runtime,
            api_server,
            filter,
            changed,
            strict: _,
            all: _,
            beside_load: _,
        } = self;
        let has_part = ring.is_some() || runtime.is_some() || filter.is_some();
        !has_part && api_server.is_none() && !changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_and_mistakes_rejected_with_a_reason() {
        let options = Options::parse(&["--ring", "3", "kill"]).unwrap();
        assert_eq!(
            options,
            Options {
                ring: Some(3),
                runtime: None,
                api_server: None,
                filter: Some("kill".into()),
                ..Options::default()
            }
        );
        assert!(Options::parse(&[]).unwrap().is_everything());
        let strict = Options::parse(&["--strict", "--all", "--beside-load"]).unwrap();
        assert!(strict.strict && strict.is_everything());
        assert!(!Options::parse(&["--changed"]).unwrap().is_everything());
        for (words, reason) in [
            (&["--ring"][..], "--ring needs a number"),
            (&["--ring", "9"], "there is no ring 9"),
            (&["--fast"], "`--fast` is not an option"),
            (&["--runtime", "docker"], "there is no runtime docker"),
            (&["--api-server"], "--api-server needs a directory"),
            (
                &["--api-server", "--ring", "3"],
                "--api-server needs a directory",
            ),
            (
                &["--ring", "1", "--api-server", "d"],
                "--api-server applies to tests of ring 3",
            ),
            (&["a", "b"], "`b` is a second one"),
        ] {
            let error = Options::parse(words).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn an_api_server_selects_the_ring_of_the_cluster_tests() {
        for words in [
            &["--api-server", "d", "cluster"][..],
            &["--ring", "3", "--api-server", "d", "cluster"],
        ] {
            let options = Options::parse(words).unwrap();
            assert_eq!(options.api_server, Some(PathBuf::from("d")));
            assert_eq!(options.ring, Some(3));
            assert_eq!(options.filter.as_deref(), Some("cluster"));
            assert!(!options.is_everything());
        }
    }
}
