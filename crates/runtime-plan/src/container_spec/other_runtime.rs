//! Changes of the specification for runtimes other than the embedded one.

use rubelet_oci::{NO_SYMLINKS, Spec};

/// Removes what only the embedded runtime understands. No source of a mount is a path inside of the
/// root file system, neither before nor after.
pub fn for_other_runtime(spec: &mut Spec) {
    for mount in &mut spec.mounts {
        mount.options.retain(|option| option != NO_SYMLINKS);
    }
}
