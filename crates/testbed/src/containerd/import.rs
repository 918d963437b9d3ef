//! Imports the images for tests.

use anyhow::Result;

use super::Containerd;
use crate::images::{self, NOTICE_TIMEOUT};
use crate::wait;

/// Imports all images and waits until the CRI service lists them.
///
/// # Errors
/// When they can't be built or imported.
pub(super) fn images(containerd: &Containerd) -> Result<()> {
    let path = containerd.scratch().dir().join("images.tar");
    images::write_archive(&path)?;
    containerd.ctr(&["images", "import", &path.display().to_string()])?;
    std::fs::remove_file(&path)?;
    let truth = containerd.truth()?;
    wait::until(
        "containerd's CRI service knows the images",
        NOTICE_TIMEOUT,
        || {
            let known = truth.image_names()?;
            Ok(images::names()
                .all(|name| known.contains(&name))
                .then_some(()))
        },
    )
}
