//! Image volumes.

use std::path::PathBuf;

use rubelet_cri::v1;
use rubelet_oci::{LOWER_DIR, Mount, SUB_PATH};

use super::SpecInput;
use crate::Refusal;

/// The read-only mount of an image's layers. It is in the container's mount namespace only, so
/// nothing is left on the host after its exit.
pub(super) fn mount(
    input: &SpecInput<'_>,
    index: usize,
    mount: &v1::Mount,
    destination: PathBuf,
) -> Result<Mount, Refusal> {
    let refuse =
        |part: &str, message: &str| Err(Refusal::new(format!("mounts[{index}].{part}"), message));
    let Some(image) = &mount.image else {
        return refuse("image_sub_path", "it is only supported for image mounts");
    };
    if !mount.host_path.is_empty() {
        return refuse("host_path", "it must be empty for the mount of an image");
    }
    if !mount.readonly {
        return refuse("readonly", "an image can only be mounted read-only");
    }
    if mount.propagation() != v1::MountPropagation::PropagationPrivate {
        return refuse("propagation", "an image mount cannot propagate mounts");
    }
    if mount.image_sub_path.contains('\0') {
        return refuse("image_sub_path", "a path cannot contain a NUL byte");
    }
    let layers = input
        .sources
        .get(index)
        .map_or(&[][..], |source| &source.layers);
    let mut options = vec!["ro".to_owned(), "nodev".to_owned()];
    options.extend(mount.mount_options.iter().cloned());
    for layer in layers {
        let Some(layer) = layer.to_str() else {
            return refuse(
                "image",
                "the directory of the images has a name that is not UTF-8",
            );
        };
        options.push(format!("{LOWER_DIR}{layer}"));
    }
    if !mount.image_sub_path.is_empty() {
        options.push(format!("{SUB_PATH}{}", mount.image_sub_path));
    }
    let name = match &*image.user_specified_image {
        "" => &image.image,
        name => name,
    };
    Ok(Mount {
        destination,
        kind: "overlay".to_owned(),
        source: name.into(),
        options,
        ..Mount::default()
    })
}
