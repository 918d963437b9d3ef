//! Tests of single pods and of the node's cgroups, which run on any cgroup version, run in a guest.

use anyhow::Result;

use crate::guest::run_after;
use crate::guest_setup::GuestSetup;

/// Words in the names of tests that need what a guest lacks: kubectl; an address; a root that is mounted, for the
/// `unshare` by which a test changes the boot ID.
const SKIPPED: [&str; 5] = [
    "ephemeral_containers_are_patched_and_validated",
    "readiness_gates_are_set_through_the_socket",
    "a_shutdown_waits_for_pods_by_priority",
    "reboot::",
    "variables_have_fields_of_pod_and_node",
];

/// Runs the tests of a program of ring 3.
pub(crate) fn run(setup: GuestSetup, program: &str) -> Result<()> {
    let skipped = SKIPPED.map(|word| format!("--skip {word}")).join(" ");
    let output = run_after(
        setup.image()?,
        &setup.prepare(),
        "rubelet-testbed",
        &["--test", program],
        &format!("{skipped} --test-threads {}", setup.threads()),
    )?;
    assert!(output.contains(" 0 failed"), "{output}");
    assert!(!output.contains(" 0 passed"), "{output}");
    Ok(())
}

#[test]
fn pods_and_containers_have_their_limits() -> Result<()> {
    run(GuestSetup::EMBEDDED, "resources")
}

#[test]
fn pods_and_the_system_have_their_parts_of_the_node() -> Result<()> {
    run(GuestSetup::EMBEDDED, "node_allocatable")
}
