//! Tests of the CRI that depend on the OCI runtime, run in a guest: crun does not work on machines
//! with controllers of cgroup version 1.

use anyhow::Result;

use crate::guest_setup::GuestSetup;

#[test]
fn declared_volumes_work_with_each_handler() -> Result<()> {
    let output = GuestSetup::EMBEDDED.run("cri", "declared_volumes:: --test-threads 1")?;
    assert!(output.contains("... ok"), "{output}");
    Ok(())
}
