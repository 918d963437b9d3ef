//! Image volumes: images that a container mounts.

use std::{path::PathBuf, sync::Arc};

use rubelet_cri::v1;
use rubelet_images::{ImageId, ImageStore};

use crate::{
    error::{Result, RuntimeError},
    handler::Handler,
};

/// Finds the images of the mounts, in their order, and writes their identifiers into the mounts:
/// the kubelet detects by them which images are in use, even if a tag moves.
pub(super) fn resolve(
    images: &ImageStore,
    handler: &Handler,
    mounts: &mut [v1::Mount],
) -> Result<Vec<ImageId>> {
    let mut found = Vec::new();
    for (index, mount) in mounts.iter_mut().enumerate() {
        let Some(wanted) = &mut mount.image else {
            continue;
        };
        let field = format!("mounts[{index}].image");
        if let Handler::External { name, .. } = handler {
            return Err(RuntimeError::invalid(format!(
                "{field}: the runtime handler {name:?} cannot mount images; the default handler can"
            )));
        }
        if wanted.image.is_empty() {
            return Err(RuntimeError::invalid(format!("{field} names no image")));
        }
        let image = images.find(&wanted.image).ok_or_else(|| {
            RuntimeError::not_found(format!(
                "{field}: image {:?} not found on this node: pull it first",
                wanted.image
            ))
        })?;
        let written = std::mem::replace(&mut wanted.image, image.id.to_string());
        if wanted.user_specified_image.is_empty() {
            wanted.user_specified_image = written;
        }
        found.push(image.id.clone());
    }
    Ok(found)
}

/// Keeps the images from being removed while the container has a root file system; returns the
/// layers of each.
pub(super) async fn hold(
    images: &Arc<ImageStore>,
    container: &str,
    volumes: &[ImageId],
) -> Result<Vec<Vec<PathBuf>>> {
    if volumes.is_empty() {
        return Ok(Vec::new());
    }
    let held = images.hold_volumes(container, volumes).await;
    held.map_err(|error| RuntimeError::because("cannot mount an image", &error))
}
