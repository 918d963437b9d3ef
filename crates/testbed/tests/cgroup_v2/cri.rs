//! Tests of the CRI that depend on the OCI runtime, run in a guest: crun does not work on machines
//! with controllers of cgroup version 1.

use anyhow::Result;

use crate::guest::run_after;
use crate::guest_setup::GuestSetup;

#[test]
fn declared_volumes_work_with_each_handler() -> Result<()> {
    let setup = GuestSetup::EMBEDDED;
    let output = run_after(
        setup.image()?,
        &setup.prepare(),
        "rubelet-testbed",
        &["--test", "cri"],
        "declared_volumes:: --test-threads 1",
    )?;
    assert!(output.contains("... ok"), "{output}");
    Ok(())
}
