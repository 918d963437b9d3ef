//! Image volumes: mounts of an image's layers, or of a directory in them.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rubelet_oci::{LOWER_DIR, SUB_PATH};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};

use crate::{
    Overlay,
    filesystem::{attach, copy},
    overlay::{mount_overlay, mount_single},
    plan::{ContainerPlan, MountPlan},
    step::{StepError, reason},
    sys::mount_attr,
};

/// The parsed options of such a mount.
#[derive(Debug, Default, PartialEq, Eq)]
struct LayerOptions<'a> {
    lower: Vec<PathBuf>,
    sub_path: Option<&'a str>,
}

/// Creates a detached mount of an image. Same conditions as [`mount_overlay`].
pub(super) fn mount(plan: &MountPlan<'_>, whole: &ContainerPlan<'_>) -> Result<OwnedFd, StepError> {
    let failed = |error: std::io::Error| plan.failure(&reason(&error));
    let wanted = read(&plan.options.data).map_err(|why| plan.failure(&why))?;
    let overlay = Overlay {
        lower: wanted.lower,
        upper: None,
        work: None,
    };
    let userns = whole.user.as_ref().map(AsFd::as_fd);
    let label = whole.spec.linux.mount_label.as_str();
    let mounted = match overlay.lower.as_slice() {
        // overlayfs needs at least two layers without an upper directory.
        [single] => mount_single(single, userns),
        _ => mount_overlay(&overlay, label, userns, &whole.ids, whole.mount_at),
    };
    let mut mounted = mounted.map_err(|failure| plan.failure(&failure.0))?;
    if let Some(sub_path) = wanted.sub_path {
        mounted = part(plan, &mounted, sub_path)?;
    }
    mount_attr::change(&mounted, &plan.options.attr, false).map_err(failed)?;
    Ok(mounted)
}

fn read<'a>(options: &[&'a str]) -> Result<LayerOptions<'a>, String> {
    let mut wanted = LayerOptions::default();
    for option in options {
        if let Some(layer) = option.strip_prefix(LOWER_DIR) {
            wanted.lower.push(layer.into());
        } else if let Some(path) = option.strip_prefix(SUB_PATH) {
            wanted.sub_path = Some(path);
        } else {
            return Err(format!(
                "image volumes do not support the mount option {option:?}"
            ));
        }
    }
    match wanted.lower.is_empty() {
        true => Err("the image has no layers".to_owned()),
        false => Ok(wanted),
    }
}

/// A mount of a path inside of another mount. The image is untrusted: symbolic links are resolved
/// within it.
fn part(plan: &MountPlan<'_>, of: &OwnedFd, path: &str) -> Result<OwnedFd, StepError> {
    let failed = |error: std::io::Error| plan.failure(&reason(&error));
    // Kernels before 6.15 can't copy detached mounts.
    attach(of, CWD).map_err(failed)?;
    let inside = Path::new(path).strip_prefix("/").unwrap_or(Path::new(path));
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    let found = openat2(
        of,
        inside,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        resolve,
    );
    let found = found.map_err(|error| match error {
        Errno::NOENT | Errno::NOTDIR => plan.failure(&format!(
            "the sub path {path:?} does not exist in the image"
        )),
        other => plan.failure(&format!(
            "cannot open the sub path {path:?}: {}",
            reason(&other.into())
        )),
    })?;
    copy(found.as_fd(), false).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_and_a_path_are_all_that_can_be_told() {
        let wanted = read(&[
            "lowerdir+=/a,:b",
            "lowerdir+=/c",
            "x-rubelet.sub-path=etc/x",
        ]);
        let wanted = wanted.unwrap();
        assert_eq!(wanted.lower, [Path::new("/a,:b"), Path::new("/c")]);
        assert_eq!(wanted.sub_path, Some("etc/x"));
        let error = read(&["lowerdir+=/a", "upperdir=/b"]).unwrap_err();
        assert!(error.contains("upperdir=/b"), "{error}");
        assert!(read(&[]).is_err());
    }
}
