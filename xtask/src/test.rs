//! `cargo xtask test`: checks first, then the rings of tests from the fastest to the slowest. Stops
//! at the first stage that fails.

mod cluster;
pub(crate) mod deny;
mod options;
mod rings;
mod stages;
mod test_counts;

use std::path::Path;

use anyhow::{Result, bail};
use rubelet_testbed::api_server::programs::Programs;
use rubelet_testbed::{packages, runtime::Kind};

use crate::{cargo, codegen, fuzz, tidy};
pub(crate) use options::Options;
use rings::Part;
use stages::Stages;
use test_counts::TestCounts;

/// The runtimes of tests that need one, in order.
const RUNTIMES: [Kind; 2] = [Kind::Embedded, Kind::Containerd];

/// Runs the selected stages.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let programs = options.api_server.as_deref().map(Programs::find);
    let programs = programs.transpose()?;
    let mut stages = Stages::default();
    let mut counts = TestCounts::default();
    if options.is_everything() {
        check(root, &mut stages)?;
        stages.run("examples", || rings::examples(root, &mut counts))?;
    }
    // Tests of single crates run real programs too, and skip those that are missing.
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
            api_server: programs.as_ref(),
            filter: options.filter.as_deref(),
        };
        if !rings::needs_agent(ring) {
            let run = || rings::run(root, part(Kind::Containerd), &mut counts);
            stages.run(&format!("ring {ring}"), run)?;
            continue;
        }
        for runtime in RUNTIMES {
            if options.runtime.is_none_or(|one| one == runtime) {
                let name = format!("ring {ring} on {}", runtime.name());
                stages.run(&name, || rings::run(root, part(runtime), &mut counts))?;
            }
        }
    }
    if options.is_everything() {
        stages.run("fuzz", || fuzz::run(root, &fuzz::Options::default()))?;
    }
    stages.print();
    for line in counts.reasons() {
        println!("{line}");
    }
    if rings::ALL.into_iter().filter(wanted).any(cluster::is_ring) {
        println!("{}", cluster::judge(programs.as_ref())?);
    }
    println!("{counts}");
    if counts.passed == 0 {
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
    stages.run("documentation", || {
        let mut command = cargo::command(root, &["doc", "--workspace", "--no-deps"]);
        cargo::run(command.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    stages.run("deny", || deny::check(root).map(drop))
}
