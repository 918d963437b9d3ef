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
fn a_pod_without_its_shim_is_torn_down() -> Result<()> {
    let image = Image::default().modules(&MODULES);
    // After its shim is killed, the pod is torn down by its cgroups.
    let output = run(image, "rubelet-runtime", &["--test", "pods"], "supervisor")?;
    assert!(output.contains("... ok"), "{output}");
    Ok(())
}
