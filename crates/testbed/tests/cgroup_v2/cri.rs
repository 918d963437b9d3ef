//! Tests of the CRI that depend on the OCI runtime, run in a guest: crun does not work on machines
//! with controllers of cgroup version 1.

use anyhow::Result;
use rubelet_testbed::agent::binary;
use rubelet_testbed::packages;
use rubelet_testbed::vm::Image;

use crate::guest::{MODULES, run_after};

/// What the suite runs.
const PROGRAMS: [&str; 4] = [
    "/usr/sbin/runc",
    "/usr/bin/crun",
    "/usr/sbin/nft",
    "/sbin/ip",
];
/// With CI=true a missing dependency is an error, not a skipped test.
const PREPARE: &str = "chmod 755 /usr/bin/dpkg-query; \
    export CI=true RUBELET_BIN=/usr/local/bin/rubelet RUBELET_TEST_RUNTIME=embedded";
/// Everything that the suite needs is in the image; there are no packages in the guest.
pub(crate) const PACKAGES: &str = "#!/bin/sh\nfor name; do echo \"$name installed\"; done\n";

/// The image with what tests on the embedded runtime need, and the shell command before them.
pub(crate) fn with_suite(image: Image) -> Result<(Image, &'static str)> {
    packages::ensure()?;
    let image = image
        .programs(PROGRAMS)
        .program("/usr/local/bin/rubelet", binary()?)
        .file("/usr/bin/dpkg-query", PACKAGES);
    Ok((image, PREPARE))
}

#[test]
fn declared_volumes_work_with_each_handler() -> Result<()> {
    let (image, prepare) = with_suite(Image::default().modules(&MODULES))?;
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
