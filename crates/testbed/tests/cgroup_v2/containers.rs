//! The tests of the embedded runtime's parts that start containers, run in a guest.

use anyhow::Result;
use rubelet_testbed::vm::Image;

use crate::guest::{MODULES, run};

#[test]
fn containers_start_and_end() -> Result<()> {
    let image = Image::default().modules(&MODULES);
    // All except for the measurements, which are useless in an emulator.
    let filter = "process:: mounts:: terminal:: exec:: pods:: userns:: attacks:: advisories::";
    let output = run(
        image,
        "rubelet-container",
        &["--test", "containers"],
        filter,
    )?;
    assert!(output.contains("... ok"), "{output}");
    Ok(())
}

#[test]
fn pods_end_by_their_cgroups_and_tell_of_oom_kills() -> Result<()> {
    let image = Image::default().modules(&MODULES);
    // After its shim is killed, the pod is torn down by its cgroups.
    let filter = "supervisor oom::";
    let output = run(image, "rubelet-runtime", &["--test", "pods"], filter)?;
    assert_eq!(output.matches("... ok").count(), 2, "{output}");
    Ok(())
}
