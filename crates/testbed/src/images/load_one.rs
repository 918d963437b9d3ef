//! One more image, for tests of what is removed and what stays, and of images with little in them.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{NOTICE_TIMEOUT, archive, layer};
use crate::packages::BUSYBOX;
use crate::{TestRuntime, wait};

/// Loads another image with a unique layer into a runtime; it has no name if `name` is empty. Works
/// with the embedded runtime, and with containerd, where the name is removed.
///
/// # Errors
/// When it can't be built or loaded.
pub fn load_one(runtime: &TestRuntime, name: &str, note: &str) -> Result<()> {
    let layer = layer::build(Path::new(BUSYBOX), Some(note))?;
    load_layer(runtime, name, &json!({ "Cmd": ["sh"] }), &layer)
}

/// Loads an image that has these programs of busybox, such as `cat`, and no shell.
///
/// # Errors
/// When it can't be built or loaded.
pub fn load_without_shell(runtime: &TestRuntime, name: &str, programs: &[&str]) -> Result<()> {
    let layer = layer::build_programs(Path::new(BUSYBOX), programs)?;
    load_layer(runtime, name, &json!({ "Env": ["PATH=/bin"] }), &layer)
}

/// Loads an image of one layer.
fn load_layer(runtime: &TestRuntime, name: &str, config: &Value, layer: &[u8]) -> Result<()> {
    let path = runtime.scratch().dir().join("one.tar");
    let write = |name: &str| -> Result<()> {
        let archive = archive::build(layer, &[(name.to_owned(), config.clone())])?;
        std::fs::write(&path, archive).with_context(|| format!("cannot write {}", path.display()))
    };
    let file = path.display().to_string();
    match runtime {
        TestRuntime::Embedded(runtime) => {
            write(name)?;
            runtime.image(&["load", &file])?;
        }
        TestRuntime::Crio(crio) => {
            write(name)?;
            return crio.load(&path, std::iter::once(name.to_owned()));
        }
        TestRuntime::Containerd(containerd) => {
            const FORGOTTEN: &str = "localhost/rubelet/forgotten:1";
            let known_as = if name.is_empty() { FORGOTTEN } else { name };
            write(known_as)?;
            containerd.ctr(&["images", "import", &file])?;
            let truth = containerd.truth()?;
            wait::until("the CRI service knows the image", NOTICE_TIMEOUT, || {
                let names = truth.image_names()?;
                Ok(names.iter().any(|one| one == known_as).then_some(()))
            })?;
            if name.is_empty() {
                containerd.ctr(&["images", "rm", FORGOTTEN])?;
            }
        }
    }
    Ok(std::fs::remove_file(&path)?)
}
