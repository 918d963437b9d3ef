//! Tests of single pods and of the node's cgroups, which run on any cgroup version, run in a guest.

use anyhow::Result;
use rubelet_testbed::vm::Image;

use crate::cri::with_suite;
use crate::guest::{MODULES, run_after};

/// Runs the tests of a program, except for those whose names contain one of these words.
pub(crate) fn run(program: &str, skipped: &[&str]) -> Result<()> {
    let (image, prepare) = with_suite(Image::default().modules(&MODULES))?;
    let skipped: Vec<String> = skipped
        .iter()
        .map(|word| format!("--skip {word}"))
        .collect();
    let output = run_after(
        image,
        prepare,
        "rubelet-testbed",
        &["--test", program],
        // Most of them wait most of the time.
        &format!("{} --test-threads 3", skipped.join(" ")),
    )?;
    assert!(output.contains(" 0 failed"), "{output}");
    assert!(!output.contains(" 0 passed"), "{output}");
    Ok(())
}

#[test]
fn pods_and_containers_have_their_limits() -> Result<()> {
    run("resources", &[])
}

#[test]
fn pods_and_the_system_have_their_parts_of_the_node() -> Result<()> {
    run("node_allocatable", &[])
}
