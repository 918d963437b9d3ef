//! The store of images of one private CRI-O, which can't import any itself.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::stdout_of;
use crate::packages::SKOPEO;
use crate::scratch::Scratch;

/// The annotation of an image's name, as the test bed writes it.
const WRITTEN: &str = "io.containerd.image.name";
/// The annotation by which skopeo selects an image.
const SELECTED: &str = "org.opencontainers.image.ref.name";

/// A store, as skopeo names it.
#[derive(Debug)]
pub(super) struct Store(String);

impl Store {
    /// That of an instance, with the driver.
    pub(super) fn of(scratch: &Scratch, driver: &str) -> Self {
        let dir = scratch.dir().display();
        Self(format!(
            "containers-storage:[{driver}@{dir}/root+{dir}/state]"
        ))
    }

    /// Copies images of an archive into the store.
    pub(super) fn load(
        &self,
        scratch: &Scratch,
        archive: &Path,
        names: impl Iterator<Item = String>,
    ) -> Result<()> {
        let layout = scratch.subdir("layout")?;
        tar::Archive::new(File::open(archive)?).unpack(&layout)?;
        rename(&layout.join("index.json"))?;
        for name in names {
            let from = format!("oci:{}:{name}", layout.display());
            // An image without a name is known by its ID.
            let known_as = match name.is_empty() {
                true => format!("@{}", only_id(&layout)?),
                false => name,
            };
            let to = format!("{}{known_as}", self.0);
            let mut copy = scratch.command(SKOPEO);
            stdout_of(copy.args(["--insecure-policy", "copy", "--quiet", &from, &to]))?;
        }
        Ok(std::fs::remove_dir_all(&layout)?)
    }
}

/// The ID of the only image of a layout: the digest of its configuration.
fn only_id(layout: &Path) -> Result<String> {
    let index = read(&layout.join("index.json"))?;
    let manifest = digest_of(&index["manifests"][0])?;
    let manifest = read(&layout.join("blobs/sha256").join(manifest))?;
    digest_of(&manifest["config"])
}

/// The SHA-256 that a descriptor names.
fn digest_of(descriptor: &Value) -> Result<String> {
    let digest = descriptor["digest"].as_str();
    let digest = digest.and_then(|digest| digest.strip_prefix("sha256:"));
    Ok(digest.context("a descriptor without a SHA-256")?.to_owned())
}

fn read(path: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

/// Names the images of an index as skopeo does.
fn rename(index: &Path) -> Result<()> {
    let mut content = read(index)?;
    let manifests = content["manifests"].as_array_mut();
    for manifest in manifests.context("the index has no manifests")? {
        let annotations = &mut manifest["annotations"];
        annotations[SELECTED] = annotations[WRITTEN].take();
    }
    Ok(std::fs::write(index, serde_json::to_vec(&content)?)?)
}
