//! Tests of single pods and of the node's cgroups, which run on any cgroup version, run in a guest.

use anyhow::Result;

use crate::guest_setup::GuestSetup;

/// The environment variable with a part of the names of the tests to run, for who looks for a failure.
const TESTS: &str = "RUBELET_GUEST_TESTS";

/// Runs the tests of a program of ring 3.
pub(crate) fn run(setup: GuestSetup, program: &str) -> Result<()> {
    let wanted = std::env::var(TESTS).unwrap_or_default();
    let filter = format!("--test-threads {} {wanted}", setup.threads());
    let output = setup.run(program, &filter)?;
    assert!(output.contains(" 0 failed"), "{output}");
    assert!(!output.contains(" 0 passed"), "{output}");
    Ok(())
}

#[test]
fn pods_and_containers_have_their_limits() -> Result<()> {
    run(GuestSetup::SYSTEMD, "resources")
}

#[test]
fn pods_and_the_system_have_their_parts_of_the_node() -> Result<()> {
    run(GuestSetup::SYSTEMD, "node_allocatable")
}
