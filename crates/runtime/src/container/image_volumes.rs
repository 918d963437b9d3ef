//! The volumes that a container's image declares, made before the container.

use rubelet_images::Mappings;
use rubelet_runtime_plan::{container_spec::ImageVolume, image_volumes};

use super::create::Making;
use crate::fault::{Fault, Outcome};

/// Makes and fills a directory for each volume that the container gets. They go with its root file
/// system, which must be there.
pub(super) async fn make(making: &Making, userns: Option<&Mappings>) -> Outcome<Vec<ImageVolume>> {
    let mounts = &making.config.mounts;
    let declared = image_volumes::declared(&making.image.config, mounts)?;
    if declared.is_empty() {
        return Ok(Vec::new());
    }
    let (images, id) = (&making.engine.images, &making.container.id);
    let failed = |error| Fault::because("cannot make the volumes of the image", &error);
    let resolved = images.resolve_volumes(id, declared).await.map_err(failed)?;
    let placed = image_volumes::placed(resolved, mounts)?;
    let filled = images.fill_volumes(id, placed.clone(), userns).await;
    let volumes = placed.into_iter().zip(filled.map_err(failed)?);
    Ok(volumes
        .map(|(destination, source)| ImageVolume {
            destination,
            source,
        })
        .collect())
}
