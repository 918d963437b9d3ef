//! Images that a container mounts beside its own.

use std::{path::PathBuf, sync::Arc};

use rubelet_cri::v1;
use rubelet_images::{ImageId, ImageStore};

use crate::{
    fault::{Fault, Outcome},
    handler::Handler,
};

/// Finds the images of the mounts, in their order, and writes their identifiers into the mounts: by
/// those a kubelet knows which images are in use, whatever their names are later.
pub(super) fn resolve(
    images: &ImageStore,
    handler: &Handler,
    mounts: &mut [v1::Mount],
) -> Outcome<Vec<ImageId>> {
    let mut found = Vec::new();
    for (index, mount) in mounts.iter_mut().enumerate() {
        let Some(wanted) = &mut mount.image else {
            continue;
        };
        let field = format!("mounts[{index}].image");
        if let Handler::External { name, .. } = handler {
            return Err(Fault::invalid(format!(
                "{field}: the runtime handler {name:?} can't mount images; the default handler can"
            )));
        }
        if wanted.image.is_empty() {
            return Err(Fault::invalid(format!("{field} names no image")));
        }
        let image = images.find(&wanted.image).ok_or_else(|| {
            Fault::not_found(format!(
                "{field}: there is no image {:?} on this node; pull it first",
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

/// Keeps the images as long as the container has a root file system; the layers of each.
pub(super) async fn hold(
    images: &Arc<ImageStore>,
    container: &str,
    volumes: &[ImageId],
) -> Outcome<Vec<Vec<PathBuf>>> {
    if volumes.is_empty() {
        return Ok(Vec::new());
    }
    let held = images.hold_volumes(container, volumes).await;
    held.map_err(|error| Fault::because("cannot mount an image", &error))
}
