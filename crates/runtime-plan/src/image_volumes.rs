//! The directories that an image declares as volumes (`VOLUME` of a Dockerfile, `config.Volumes` of
//! the image specification): those that a container gets, and their mount points.
//!
//! The author of the image chose these paths and their content. So a volume is always a directory
//! of the runtime, filled from the image, and never a mount of a path inside of the root file
//! system; and none may cover the kernel's file systems, by which a container is confined.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use rubelet_cri::v1;
use rubelet_oci::image::ImageConfig;

use crate::{Refusal, container_spec::clean};

/// Maximum volumes that an image may declare. Each costs a directory and a mount for each
/// container.
pub const MOST_VOLUMES: usize = 128;

/// The kernel's file systems.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The field that refusals name: the image, since the request only names it.
const FIELD: &str = "image";

/// Absolute paths of the volumes that are not replaced by a mount of the container, without `.`,
/// `..` and doubled slashes. The root itself is not a volume.
///
/// # Errors
/// One is at or below `/proc`, `/sys` or `/dev`, or there are more than [`MOST_VOLUMES`].
pub fn declared(image: &ImageConfig, mounts: &[v1::Mount]) -> Result<Vec<PathBuf>, Refusal> {
    if image.volumes.len() > MOST_VOLUMES {
        let count = image.volumes.len();
        return Err(Refusal::new(
            FIELD,
            format!("the image declares {count} volumes, more than the {MOST_VOLUMES} supported"),
        ));
    }
    let own = destinations(mounts);
    let cleaned = image.volumes.keys().map(|path| clean(Path::new(path)));
    let mut declared = BTreeSet::new();
    for path in cleaned.filter(|path| path != Path::new("/") && !own.contains(path)) {
        if is_of_kernel(&path) {
            return Err(refused(&path, &path));
        }
        declared.insert(path);
    }
    Ok(declared.into_iter().collect())
}

/// The mount points of the volumes, given each path of [`declared`] with its resolution: the path
/// with the symbolic links of the image resolved. Parents come before their children.
///
/// # Errors
/// A link leads to or below `/proc`, `/sys` or `/dev`.
pub fn placed(
    resolved: Vec<(PathBuf, PathBuf)>,
    mounts: &[v1::Mount],
) -> Result<Vec<PathBuf>, Refusal> {
    let own = destinations(mounts);
    let mut placed = BTreeSet::new();
    for (declared, path) in resolved {
        if path == Path::new("/") || own.contains(&path) {
            continue;
        }
        if is_of_kernel(&path) {
            return Err(refused(&declared, &path));
        }
        placed.insert(path);
    }
    Ok(placed.into_iter().collect())
}

fn destinations(mounts: &[v1::Mount]) -> BTreeSet<PathBuf> {
    let paths = mounts.iter().map(|mount| &mount.container_path);
    paths.map(|path| clean(Path::new(path))).collect()
}

fn is_of_kernel(path: &Path) -> bool {
    KERNEL.iter().any(|kernel| path.starts_with(kernel))
}

fn refused(declared: &Path, path: &Path) -> Refusal {
    let declared = declared.display();
    let through = match path.display().to_string() {
        path if path == declared.to_string() => String::new(),
        path => format!(", a link to {path}"),
    };
    Refusal::new(
        FIELD,
        format!(
            "the image declares a volume at {declared}{through}: an image cannot have volumes at or \
             below /proc, /sys or /dev; mount a volume of the pod there if it is needed"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(volumes: &[&str]) -> ImageConfig {
        let volumes = volumes.iter();
        ImageConfig {
            volumes: volumes
                .map(|path| ((*path).to_owned(), rubelet_oci::image::Empty))
                .collect(),
            ..ImageConfig::default()
        }
    }

    fn mount(path: &str) -> v1::Mount {
        v1::Mount {
            container_path: path.to_owned(),
            ..Default::default()
        }
    }

    fn paths(list: &[&str]) -> Vec<PathBuf> {
        list.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn volumes_are_cleaned_and_give_way_to_mounts_of_the_container() {
        let image = image(&["data/", "/data", "/a/../b", "/", "/c"]);
        assert_eq!(
            declared(&image, &[]).unwrap(),
            paths(&["/b", "/c", "/data"])
        );
        assert_eq!(
            declared(&image, &[mount("/c/"), mount("/b")]).unwrap(),
            paths(&["/data"])
        );
    }

    #[test]
    fn no_volume_covers_the_kernels_file_systems() {
        for path in [
            "/proc",
            "/proc/self",
            "sys/fs/cgroup",
            "/dev/shm",
            "/x/../dev",
            "//sys/",
        ] {
            let error = declared(&image(&[path]), &[]).unwrap_err();
            assert!(error.message.contains("at or below /proc"), "{error}");
        }
        // Who runs the image may mount something there.
        assert_eq!(
            declared(&image(&["/sys/fs/cgroup"]), &[mount("/sys/fs/cgroup")]),
            Ok(Vec::new())
        );
        assert_eq!(
            declared(&image(&["/device"]), &[]).unwrap(),
            paths(&["/device"])
        );
    }

    #[test]
    fn links_lead_neither_to_the_kernel_nor_over_mounts() {
        let to = |path: &str| vec![("/v".into(), path.into())];
        for path in ["/sys", "/proc/1", "/dev"] {
            let error = placed(to(path), &[]).unwrap_err();
            assert!(error.message.contains("/v, a link to "), "{error}");
        }
        assert_eq!(placed(to("/"), &[]), Ok(Vec::new()));
        assert_eq!(placed(to("/run"), &[mount("/run")]), Ok(Vec::new()));
        assert_eq!(placed(to("/run"), &[]).unwrap(), paths(&["/run"]));
        let both = [to("/run/x"), to("/run"), to("/run")].concat();
        assert_eq!(placed(both, &[]).unwrap(), paths(&["/run", "/run/x"]));
    }

    #[test]
    fn a_swarm_of_volumes_is_refused() {
        let names: Vec<String> = (0..=MOST_VOLUMES).map(|n| format!("/v{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(declared(&image(&names[1..]), &[]).is_ok());
        assert!(declared(&image(&names), &[]).is_err());
    }
}
