//! The tests of the embedded runtime's parts that start containers, run in a guest.

use anyhow::Result;
use rubelet_testbed::vm::Image;

use crate::guest::{MODULES, run};

#[test]
fn containers_start_and_end() -> Result<()> {
    let image = Image::default().modules(&MODULES);
    let output = run(image, "rubelet-container", &["--test", "containers"], "")?;
    assert!(output.contains("... ok"), "{output}");
    Ok(())
}

#[test]
fn pods_start_and_end() -> Result<()> {
    let image = Image::default().modules(&MODULES);
    let output = run(image, "rubelet-runtime", &["--test", "pods"], "")?;
    assert!(output.contains("... ok"), "{output}");
    Ok(())
}
