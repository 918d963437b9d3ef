//! A node of a cluster, in a guest, on the model API server.

use anyhow::Result;

use crate::guest_setup::GuestSetup;

/// Filters that match the names of exactly these tests.
const TESTS: [&str; 3] = [
    "away::after_a_reboot",
    "away::no_value_of_a_secret",
    "caches::a_pod_starts_although",
];

#[test]
fn a_joined_node_runs_and_recovers_its_pods() -> Result<()> {
    let setup = GuestSetup::EMBEDDED;
    let filter = format!("{} --test-threads {}", TESTS.join(" "), setup.threads());
    let output = setup.run("cluster", &filter)?;
    let passed = format!("{} passed", TESTS.len());
    assert!(output.contains(&passed), "{output}");
    Ok(())
}
