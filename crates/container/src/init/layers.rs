//! Mounts that show an image: its layers on top of each other, or a part of them.

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
    plan::{MountPlan, Plan},
    step::{Failure, reason},
    sys::mount_attr,
};

/// What the options of such a mount say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted<'a> {
    lower: Vec<PathBuf>,
    sub_path: Option<&'a str>,
}

/// Mounts an image, nowhere yet. As for [`mount_overlay`], the working folder is one to mount on.
pub(super) fn mount(plan: &MountPlan<'_>, whole: &Plan<'_>) -> Result<OwnedFd, Failure> {
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
        // Overlayfs takes no single folder.
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

fn read<'a>(options: &[&'a str]) -> Result<Wanted<'a>, String> {
    let mut wanted = Wanted::default();
    for option in options {
        if let Some(layer) = option.strip_prefix(LOWER_DIR) {
            wanted.lower.push(layer.into());
        } else if let Some(path) = option.strip_prefix(SUB_PATH) {
            wanted.sub_path = Some(path);
        } else {
            return Err(format!(
                "an image can't be mounted with the option {option:?}"
            ));
        }
    }
    match wanted.lower.is_empty() {
        true => Err("the image has no layers".to_owned()),
        false => Ok(wanted),
    }
}

/// A mount of what is at a path inside of another mount. What the path leads through was made by a
/// stranger: links end inside.
fn part(plan: &MountPlan<'_>, of: &OwnedFd, path: &str) -> Result<OwnedFd, Failure> {
    let failed = |error: std::io::Error| plan.failure(&reason(&error));
    // Kernels before 6.15 copy only what is mounted somewhere.
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
        Errno::NOENT | Errno::NOTDIR => {
            plan.failure(&format!("the image has nothing at the sub path {path:?}"))
        }
        other => plan.failure(&format!(
            "the sub path {path:?} can't be opened: {}",
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
