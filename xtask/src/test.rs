//! `cargo xtask test`: checks first, then the rings of tests from the fastest to the slowest. All
//! stages run, even if earlier ones failed; the summary at the end lists what failed.

mod changed;
mod checks;
mod cluster;
pub(crate) mod deny;
mod events;
mod examples;
mod nextest;
mod options;
mod record;
mod report;
mod rings;
mod seeds;
mod selection;
mod skipped;
mod stages;
mod tools;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Result, bail};
use rubelet_testbed::api_server::programs::Programs;
use rubelet_testbed::scratch::guard::ScratchGuard;
use rubelet_testbed::scratch::in_memory;
use rubelet_testbed::{NoisyNeighbour, disk, packages, sweep, target_dir};

use crate::{fuzz, git};
use nextest::Nextest;
pub(crate) use options::Options;
use report::Counts;
use rings::{Environment, RingResults};
use seeds::Seeds;
use selection::{Part, TestedRuntime};
use stages::Stages;

/// The stage without which no test can run.
const BUILD: &str = "build";
/// With less free space than this, in MiB, tests fail with misleading reasons.
const LEAST_FREE_MIB: u64 = 1024;

/// Runs the selected stages; returns whether all succeeded.
///
/// # Errors
/// The run can't begin, or its results can't be written.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool> {
    let programs = options.api_server.as_deref().map(Programs::find);
    let programs = programs.transpose()?;
    let changed = options.changed.then(|| changed::find(root)).transpose()?;
    if let Some(changed) = &changed {
        print_changed(changed);
    }
    let logs = target_dir::target()?.join("test-logs");
    // Logs of the previous run, which may not exist.
    drop(std::fs::remove_dir_all(&logs));
    let programs_file = target_dir::target()?.join("test-programs.json");
    let seeds = Seeds::of(root, options.all);
    println!("{seeds}");
    let _neighbour = options.beside_load.then(neighbour).transpose()?;
    // All of it means disks, too.
    let memory = (!options.all).then(memory).transpose()?.flatten();
    let mut stages = Stages::new(full_disk);
    let mut results = RingResults::default();
    if options.is_everything() {
        checks::run(root, &mut stages);
    }
    // Tests of single crates run real programs too, and skip those that are missing.
    stages.run("packages", || {
        packages::ensure()?;
        packages::ensure_network_tools()
    });
    let built = stages.run(BUILD, || {
        let nextest = Nextest::ensure(root)?;
        let programs = nextest.build()?;
        let paths = serde_json::to_vec(&programs.paths)?;
        std::fs::write(&programs_file, paths)?;
        Ok((nextest, programs))
    });
    let fuzzing = options
        .is_everything()
        .then(|| fuzz::beside(root, options.all));
    if let Some((_, built)) = built.as_ref().filter(|_| options.is_everything()) {
        stages.run("test programs", || rings::refuse_empty(&built.empty));
    }
    // One processor runs them, and the first ring leaves some of both.
    let examples = options.is_everything().then(|| {
        let root = root.to_owned();
        std::thread::spawn(move || examples::run(&root))
    });
    for (stage, ring, runtime) in ring_stages(options) {
        let Some((nextest, built)) = &built else {
            stages.cannot_run(&stage, BUILD);
            continue;
        };
        let part = Part {
            ring,
            runtime,
            // If a runtime is given, all of its tests run.
            all: options.all || options.runtime.is_some(),
            cluster_only: programs.is_some(),
            filter: options.filter.as_deref(),
            programs: &built.of_runtimes,
            packages: changed.as_ref().map(|changed| &changed.selected),
        };
        let agent = std::env::var_os("RUBELET_BIN").map(Into::into);
        let agent = agent.unwrap_or_else(|| built.directory.join("rubelet"));
        let environment = Environment {
            agent: &agent,
            api_server: programs.as_ref().map(Programs::dir),
            seeds,
            programs: &programs_file,
            logs: &logs,
            memory: memory.as_ref().map(|guard| guard.dir()),
            sweep,
        };
        stages.run(&stage, || {
            rings::run(nextest, &stage, part, environment, &mut results)
        });
    }
    if let Some(examples) = examples {
        let found = stages.run(examples::STAGE, || {
            let ended = examples.join();
            ended.unwrap_or_else(|_| bail!("the stage panicked"))
        });
        results.tests.extend(found.unwrap_or_default());
    }
    if let Some(fuzzing) = fuzzing {
        stages.run("fuzz", || fuzzing?.wait());
    }
    let has_clusters = ring_stages(options)
        .iter()
        .any(|(_, ring, _)| cluster::is_ring(*ring));
    if has_clusters {
        println!("{}", cluster::judge(programs.as_ref())?);
    }
    print_summary(root, options, &stages, &results, &logs)
}

/// Load on the machine: twice as many processes as cores, and a writer.
fn neighbour() -> Result<NoisyNeighbour> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("with {} busy processes and a writer", 2 * cores);
    NoisyNeighbour::start(2 * cores, Some(target_dir::target()?.join("neighbour")))
}

/// A directory in memory, for temporary files. `None` on a machine that has too little of it.
fn memory() -> Result<Option<ScratchGuard>> {
    if !rustix::process::geteuid().is_root() || !in_memory::is_possible() {
        return Ok(None);
    }
    let guard = ScratchGuard::create_in_memory()?;
    std::fs::set_permissions(guard.dir(), Permissions::from_mode(0o1777))?;
    Ok(Some(guard))
}

/// The reason to stop, if a file system of the tests is full.
fn full_disk() -> Option<String> {
    let places = [target_dir::target().ok()?, std::env::temp_dir()];
    places.iter().find_map(|place| {
        let free = disk::free(place).ok()? >> 20;
        let place = place.display();
        (free < LEAST_FREE_MIB).then(|| format!("the disk is full: {free} MiB free at {place}"))
    })
}

fn print_changed(changed: &changed::Changed) {
    let list = |names: &std::collections::BTreeSet<String>| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(", ")
        }
    };
    println!("changed, or depends on it: {}", list(&changed.selected));
    println!(
        "left out: {}; checks, examples, fuzz",
        list(&changed.left_out)
    );
}

/// Prints the summary; returns whether the run succeeded.
fn print_summary(
    root: &Path,
    options: &Options,
    stages: &Stages,
    results: &RingResults,
    logs: &Path,
) -> Result<bool> {
    for line in report::lines(&results.tests, logs) {
        println!("{line}");
    }
    for left in &results.left_behind {
        println!("left behind in {left}");
    }
    println!("=== times");
    stages.times().for_each(|line| println!("{line}"));
    stages.failures().for_each(|line| println!("{line}"));
    let commit = git::output(root, &["rev-parse", "HEAD"]).unwrap_or_default();
    let file = target_dir::target()?.join("flaky.json");
    report::write_flaky(&file, &results.tests, &commit)?;
    let counts = Counts::of(&results.tests);
    if counts.passed == 0 {
        println!("no test was run");
    }
    println!("{counts}");
    let chance = counts.flaky > 0 || !results.left_behind.is_empty();
    Ok(stages.all_good() && counts.failed == 0 && counts.passed > 0 && !(options.strict && chance))
}

/// The stages of the selected rings: their names, rings and runtimes.
fn ring_stages(options: &Options) -> Vec<(String, u8, TestedRuntime)> {
    let mut found = Vec::new();
    for ring in selection::ALL {
        if options.ring.is_some_and(|one| one != ring) {
            continue;
        }
        if !selection::needs_agent(ring) {
            found.push((format!("ring {ring}"), ring, TestedRuntime::Containerd));
            continue;
        }
        let wanted = |runtime: &TestedRuntime| match options.runtime {
            Some(one) => one == *runtime,
            None => match runtime {
                TestedRuntime::Embedded | TestedRuntime::Containerd => true,
                // The tests of a selection do not run a third time.
                TestedRuntime::Containerd17 => options.is_everything(),
                TestedRuntime::Crio => false,
            },
        };
        for runtime in TestedRuntime::ALL.into_iter().filter(wanted) {
            let name = format!("ring {ring} on {}", runtime.name());
            found.push((name, ring, runtime));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_of_the_agent_is_a_stage_for_each_runtime() {
        let names = |words: &[&str]| -> Vec<String> {
            let stages = ring_stages(&Options::parse(words).unwrap());
            stages.into_iter().map(|(name, ..)| name).collect()
        };
        assert_eq!(
            names(&[]),
            [
                "ring 1",
                "ring 2",
                "ring 3 on embedded",
                "ring 3 on containerd",
                "ring 3 on containerd-1.7"
            ]
        );
        assert_eq!(
            names(&["--ring", "3", "a_test"]),
            ["ring 3 on embedded", "ring 3 on containerd"]
        );
        assert_eq!(
            names(&["--runtime", "containerd-1.7", "--ring", "3"]),
            ["ring 3 on containerd-1.7"]
        );
        assert_eq!(
            names(&["--ring", "3", "--runtime", "containerd"]),
            ["ring 3 on containerd"]
        );
        assert_eq!(
            names(&["--ring", "3", "--runtime", "crio"]),
            ["ring 3 on crio"]
        );
        assert_eq!(names(&["--ring", "2"]), ["ring 2"]);
    }
}
