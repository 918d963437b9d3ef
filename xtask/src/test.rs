//! `cargo xtask test`: checks first, then the rings of tests from the quickest to the slowest. The
//! first stage that fails ends it.

mod deny;
mod rings;
mod stages;

use std::path::Path;

use anyhow::{Context, Result, bail};
use rubelet_testbed::{packages, runtime::Kind};

use crate::{cargo, codegen, fuzz, tidy};
use rings::{Part, Tally};
use stages::Stages;

/// What the tests that need a runtime run on, one after the other.
const RUNTIMES: [Kind; 2] = [Kind::Embedded, Kind::Containerd];

/// What was asked for on the command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Only this ring.
    ring: Option<u8>,
    /// Only on this runtime.
    runtime: Option<Kind>,
    /// Only tests whose name contains this.
    filter: Option<String>,
}

impl Options {
    /// Reads the words after `test`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--ring" => {
                    let number = words.next().context("--ring needs a number, 1 to 4")?;
                    let ring = number.parse().ok().filter(|ring| rings::ALL.contains(ring));
                    options.ring =
                        Some(ring.with_context(|| format!("there is no ring {number}"))?);
                }
                "--runtime" => {
                    let name = words.next().context("--runtime needs a name")?;
                    let runtime = RUNTIMES.iter().find(|one| one.name() == *name);
                    options.runtime =
                        Some(*runtime.with_context(|| format!("there is no runtime {name}"))?);
                }
                option if option.starts_with('-') => bail!(
                    "`{option}` is no option of `cargo xtask test`; there are --ring N and \
                     --runtime NAME"
                ),
                filter if options.filter.is_none() => options.filter = Some(filter.to_owned()),
                more => bail!("only one filter can be given, and `{more}` is a second one"),
            }
        }
        Ok(options)
    }

    /// Whether everything is to be checked, as CI does.
    fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// Runs what was asked for.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let mut stages = Stages::default();
    if options.is_everything() {
        check(root, &mut stages)?;
    }
    let mut tally = Tally::default();
    // Tests of single crates run real programs too, and pass over those that are missing.
    stages.run("packages", || packages::ensure().map(drop))?;
    let mut agent = None;
    let wanted = |ring: &u8| options.ring.is_none_or(|one| one == *ring);
    for ring in rings::ALL.into_iter().filter(wanted) {
        if rings::needs_agent(ring) && agent.is_none() {
            agent = Some(stages.run("build", || cargo::agent(root, false))?);
        }
        let part = |runtime| Part {
            ring,
            runtime,
            agent: agent.as_deref(),
            filter: options.filter.as_deref(),
        };
        if !rings::needs_agent(ring) {
            let run = || rings::run(root, part(Kind::Containerd), &mut tally);
            stages.run(&format!("ring {ring}"), run)?;
            continue;
        }
        for runtime in RUNTIMES {
            if options.runtime.is_none_or(|one| one == runtime) {
                let name = format!("ring {ring} on {}", runtime.name());
                stages.run(&name, || rings::run(root, part(runtime), &mut tally))?;
            }
        }
    }
    if options.is_everything() {
        stages.run("fuzz", || fuzz::run(root, &fuzz::Options::default()))?;
    }
    stages.print();
    println!("{tally}");
    if tally.passed == 0 {
        bail!("no test was run");
    }
    Ok(())
}

fn check(root: &Path, stages: &mut Stages) -> Result<()> {
    let cargo = |arguments: &[&str]| cargo::run(&mut cargo::command(root, arguments));
    stages.run("tidy", || tidy::run(root))?;
    stages.run("codegen", || codegen::check(root))?;
    stages.run("format", || cargo(&["fmt", "--all", "--check"]))?;
    stages.run("clippy", || {
        cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ])
    })?;
    stages.run("deny", || deny::check(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_and_a_filter_are_read_and_anything_else_is_refused_with_a_reason() {
        let options = Options::parse(&["--ring", "3", "kill"]).unwrap();
        assert_eq!(
            options,
            Options {
                ring: Some(3),
                runtime: None,
                filter: Some("kill".into())
            }
        );
        assert!(Options::parse(&[]).unwrap().is_everything());
        for (words, reason) in [
            (&["--ring"][..], "--ring needs a number"),
            (&["--ring", "9"], "there is no ring 9"),
            (&["--fast"], "`--fast` is no option"),
            (&["--runtime", "docker"], "there is no runtime docker"),
            (&["a", "b"], "`b` is a second one"),
        ] {
            let error = Options::parse(words).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
