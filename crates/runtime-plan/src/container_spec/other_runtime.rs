//! What runtimes other than the embedded one need to have told differently.

use std::path::Path;

use rubelet_oci::{SELF_BIND, Spec};

/// Rewrites what only the embedded runtime understands. The root file system must be mounted on the
/// host, at an absolute `root.path`, and have the folders of the image's volumes.
pub fn for_other_runtime(spec: &mut Spec) {
    for mount in spec.mounts.iter_mut().filter(|mount| mount.is_self_bind()) {
        let inside = mount.source.strip_prefix("/").unwrap_or(&mount.source);
        mount.source = Path::new(&spec.root.path).join(inside);
        mount.options.retain(|option| option != SELF_BIND);
    }
}
