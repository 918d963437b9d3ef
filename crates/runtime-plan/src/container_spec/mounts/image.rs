//! Volumes that are images.

use std::path::PathBuf;

use rubelet_cri::v1;
use rubelet_oci::{LOWER_DIR, Mount, SUB_PATH};

use super::SpecInput;
use crate::Refusal;

/// The mount of an image: its layers on top of each other, for reading only. They are mounted where
/// only the container sees it, so nothing is left on the host when it ends.
pub(super) fn mount(
    input: &SpecInput<'_>,
    index: usize,
    mount: &v1::Mount,
    destination: PathBuf,
) -> Result<Mount, Refusal> {
    let refuse =
        |part: &str, message: &str| Err(Refusal::new(format!("mounts[{index}].{part}"), message));
    let Some(image) = &mount.image else {
        return refuse("image_sub_path", "it is only for mounts of images");
    };
    if !mount.host_path.is_empty() {
        return refuse("host_path", "it must be empty for the mount of an image");
    }
    if !mount.readonly {
        return refuse("readonly", "an image can only be mounted read-only");
    }
    if mount.propagation() != v1::MountPropagation::PropagationPrivate {
        return refuse(
            "propagation",
            "what is mounted in an image reaches nobody else",
        );
    }
    if mount.image_sub_path.contains('\0') {
        return refuse("image_sub_path", "a path can't have a zero byte");
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
