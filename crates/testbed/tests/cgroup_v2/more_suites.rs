//! Further programs of tests, run in a guest. They take too long for each run: `cargo xtask test --all` has them.

use anyhow::Result;

use crate::suites::run;

#[test]
fn adoption() -> Result<()> {
    run("adoption", &[])
}

#[test]
fn environment() -> Result<()> {
    // The guest has no address.
    run("environment", &["variables_have_fields_of_pod_and_node"])
}

#[test]
fn fifty() -> Result<()> {
    run("fifty", &[])
}

#[test]
fn image_volumes() -> Result<()> {
    run("image_volumes", &[])
}

#[test]
fn images() -> Result<()> {
    run("images", &[])
}

#[test]
fn life() -> Result<()> {
    // The guest has no kubectl, and its `unshare`, by which a test changes the boot ID, needs a root that is mounted.
    let skipped = [
        "ephemeral_containers_are_patched_and_validated",
        "readiness_gates_are_set_through_the_socket",
        "a_shutdown_waits_for_pods_by_priority",
        "reboot::",
    ];
    run("life", &skipped)
}

#[test]
fn lifecycle() -> Result<()> {
    run("lifecycle", &[])
}

#[test]
fn logs() -> Result<()> {
    run("logs", &[])
}

#[test]
fn security() -> Result<()> {
    run("security", &[])
}

#[test]
fn stats() -> Result<()> {
    run("stats", &[])
}

#[test]
fn user_namespaces() -> Result<()> {
    run("user_namespaces", &[])
}

#[test]
fn volumes() -> Result<()> {
    run("volumes", &[])
}
