//! The tests of `rubelet-host` that run on any cgroup version, run in a guest.

use anyhow::Result;
use rubelet_testbed::vm::Image;

use crate::guest::run;

#[test]
fn cgroups_are_created_limited_frozen_and_killed() -> Result<()> {
    let filter = "cgroup:: --nocapture --test-threads 2";
    let output = run(Image::default(), "rubelet-host", &["--lib"], filter)?;
    assert!(!output.contains("skipped:"), "{output}");
    assert!(
        output.contains("the_kernel_takes_the_program ... ok"),
        "{output}"
    );
    Ok(())
}

#[test]
fn systemd_keeps_scopes_and_slices() -> Result<()> {
    let image = Image::default().systemd()?;
    let output = run(
        image,
        "rubelet-host",
        &["--lib"],
        // One at a time: each reloads systemd.
        "a_real_systemd --nocapture --test-threads 1",
    )?;
    assert!(!output.contains("skipped:"), "{output}");
    assert!(output.contains("2 passed"), "{output}");
    Ok(())
}
