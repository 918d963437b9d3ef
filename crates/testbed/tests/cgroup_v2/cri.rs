//! Tests of the CRI that depend on the OCI runtime, run in a guest: crun does not work on machines
//! with controllers of cgroup version 1.

use anyhow::Result;
use rubelet_testbed::agent::binary;
use rubelet_testbed::packages;
use rubelet_testbed::vm::Image;

use crate::guest::{MODULES, run_after};

/// Everything that the suite needs is in the image; there are no packages in the guest.
pub(crate) const PACKAGES: &str = "#!/bin/sh\nfor name; do echo \"$name installed\"; done\n";

#[test]
fn declared_volumes_work_with_each_handler() -> Result<()> {
    packages::ensure()?;
    let programs = [
        "/usr/sbin/runc",
        "/usr/bin/crun",
        "/usr/sbin/nft",
        "/sbin/ip",
    ];
    let image = Image::default()
        .programs(programs)
        .program("/usr/local/bin/rubelet", binary()?)
        .file("/usr/bin/dpkg-query", PACKAGES)
        .modules(&MODULES);
    // With CI=true a missing dependency is an error, not a skipped test.
    let prepare = "chmod 755 /usr/bin/dpkg-query; \
        export CI=true RUBELET_BIN=/usr/local/bin/rubelet RUBELET_TEST_RUNTIME=embedded";
    let output = run_after(
        image,
        prepare,
        "rubelet-testbed",
        &["--test", "cri"],
        "declared_volumes:: --test-threads 1",
    )?;
    assert!(output.contains("... ok"), "{output}");
    Ok(())
}
