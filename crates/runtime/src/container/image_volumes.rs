//! The volumes that a container's image declares (`VOLUME`), created before the container.

use rubelet_oci::IdMappings;
use rubelet_runtime_plan::{container_spec::ImageVolume, image_volumes};

use super::creation::ContainerCreation;
use crate::error::{Result, RuntimeError};

/// Creates and fills a directory for each of these volumes. They are removed together with the
/// container's root file system, which must exist.
pub(super) async fn make(
    creation: &ContainerCreation,
    userns: Option<&IdMappings>,
) -> Result<Vec<ImageVolume>> {
    let mounts = &creation.config.mounts;
    let declared = image_volumes::declared(&creation.image.config, mounts)?;
    if declared.is_empty() {
        return Ok(Vec::new());
    }
    let (images, id) = (&creation.engine.images, &creation.container.id);
    let failed = |error| RuntimeError::because("cannot create the volumes of the image", &error);
    let resolved = images.resolve_volumes(id, declared).await.map_err(failed)?;
    let placed = image_volumes::placed(resolved, mounts)?;
    // The image decides how long this takes; the termination of its pod does not wait for it.
    let filled = tokio::select! {
        filled = images.fill_volumes(id, placed.clone(), userns) => filled,
        () = creation.sandbox.stop_requested() => {
            return Err(RuntimeError::failed(
                "cannot create the volumes of the image: the pod is being stopped",
            ));
        }
    };
    let volumes = placed.into_iter().zip(filled.map_err(failed)?);
    Ok(volumes
        .map(|(destination, source)| ImageVolume {
            destination,
            source,
        })
        .collect())
}
