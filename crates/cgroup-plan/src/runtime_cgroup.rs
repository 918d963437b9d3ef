//! The cgroups of containers and shims.

use crate::{CgroupDriver, CgroupPath, CgroupPathError};

/// Prefix of the names of containers' scopes.
const PREFIX: &str = "rubelet";
/// The parent of containers whose pod has no cgroup.
const DEFAULT_PARENT: &str = "/rubelet/pods";
/// The same with systemd.
const DEFAULT_SLICE: &str = "rubelet-pods.slice";

/// Prefix of the names of shims' scopes.
const SHIM: &str = "rubelet-shim-";

/// A cgroup, and its scope if systemd creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerCgroup {
    /// Its path below the root of each hierarchy.
    pub path: CgroupPath,
    /// The scope to request from systemd; `None` creates a directory.
    pub scope: Option<SystemdScope>,
}

/// A scope of systemd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemdScope {
    /// Its name, ending in `.scope`.
    pub name: String,
    /// The slice it is in, ending in `.slice`.
    pub slice: String,
}

/// Why a container can't be below the `cgroup_parent` of its pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CgroupParentError {
    /// The path is invalid, of the parent or of the container.
    #[error(transparent)]
    Path(#[from] CgroupPathError),
    /// systemd creates the cgroup, and the parent is not a slice.
    #[error("the systemd cgroup driver needs a slice such as kubepods.slice, not {0:?}")]
    NoSlice(String),
}

impl ContainerCgroup {
    /// The form for `linux.cgroupsPath` of a specification.
    #[must_use]
    pub fn oci(&self) -> String {
        match &self.scope {
            None => self.path.as_str().to_owned(),
            Some(scope) => {
                let id = scope
                    .name
                    .strip_prefix(PREFIX)
                    .and_then(|rest| rest.strip_prefix('-'))
                    .and_then(|rest| rest.strip_suffix(".scope"))
                    .unwrap_or(&scope.name);
                format!("{}:{PREFIX}:{id}", scope.slice)
            }
        }
    }
}

/// The cgroup of container `id` below `parent`, the pod's `cgroup_parent`. With systemd the last
/// component of `parent` names the slice, as kubelets write it. An empty `parent` means Rubelet's
/// own parent cgroup, never the root.
///
/// # Errors
/// `parent` is not a cgroup path, or not a slice with the systemd driver.
pub fn container(
    parent: &str,
    id: &str,
    driver: CgroupDriver,
) -> Result<ContainerCgroup, CgroupParentError> {
    match driver {
        CgroupDriver::Cgroupfs => {
            let parent = if parent.is_empty() {
                DEFAULT_PARENT
            } else {
                parent
            };
            let parent = CgroupPath::parse(parent.trim_end_matches('/'))?;
            Ok(ContainerCgroup {
                path: parent.join(id)?,
                scope: None,
            })
        }
        CgroupDriver::Systemd => {
            let last = parent.trim_end_matches('/').rsplit('/').next();
            let slice = match last {
                _ if parent.is_empty() => DEFAULT_SLICE,
                name => name.unwrap_or_default(),
            };
            let directory =
                slice_path(slice).ok_or_else(|| CgroupParentError::NoSlice(parent.to_owned()))?;
            let name = format!("{PREFIX}-{id}.scope");
            Ok(ContainerCgroup {
                path: CgroupPath::parse(&directory)?.join(&name)?,
                scope: Some(SystemdScope {
                    name,
                    slice: slice.to_owned(),
                }),
            })
        }
    }
}

/// The parent of the shims' cgroups, for a configured directory: that directory, or with systemd
/// the slice of that name (`/a/b` becomes `a-b.slice`). A slice is returned unchanged.
///
/// # Errors
/// The slice's name is too long for a directory.
pub fn shims(directory: &CgroupPath, driver: CgroupDriver) -> Result<CgroupPath, CgroupPathError> {
    if driver == CgroupDriver::Cgroupfs || directory.name().ends_with(".slice") {
        return Ok(directory.clone());
    }
    let names: Vec<String> = directory
        .components()
        .map(|name| name.replace('-', "_"))
        .collect();
    let slice = format!("{}.slice", names.join("-"));
    match slice_path(&slice) {
        Some(path) => CgroupPath::parse(&path),
        None => Ok(directory.clone()),
    }
}

/// The cgroup of the shim of sandbox `id`; `parent` is what [`shims`] gives.
///
/// # Errors
/// `id` is not a valid directory name.
pub fn shim(
    parent: &CgroupPath,
    id: &str,
    driver: CgroupDriver,
) -> Result<ContainerCgroup, CgroupPathError> {
    let (name, scope) = match driver {
        CgroupDriver::Cgroupfs => (id.to_owned(), None),
        CgroupDriver::Systemd => {
            let name = format!("{SHIM}{id}.scope");
            let scope = SystemdScope {
                name: name.clone(),
                slice: parent.name().to_owned(),
            };
            (name, Some(scope))
        }
    };
    Ok(ContainerCgroup {
        path: parent.join(&name)?,
        scope,
    })
}

/// The sandbox of the shim whose cgroup has that name.
#[must_use]
pub fn sandbox_of(name: &str) -> &str {
    let scope = name.strip_prefix(SHIM);
    scope
        .and_then(|rest| rest.strip_suffix(".scope"))
        .unwrap_or(name)
}

/// The directory of a slice: `a-b.slice` is inside of `a.slice`.
fn slice_path(slice: &str) -> Option<String> {
    let name = slice.strip_suffix(".slice")?;
    if name.is_empty() || name.split('-').any(str::is_empty) {
        return None;
    }
    let mut path = String::new();
    for (end, _) in name.match_indices('-').chain([(name.len(), "")]) {
        path.push('/');
        path.push_str(&name[..end]);
        path.push_str(".slice");
    }
    Some(path)
}

/// Prefix of the cgroups in which CRI-O puts the process that watches a container, beside the container's own.
const WATCHER: &str = "crio-conmon-";

/// Whether a cgroup with this name, of whatever runtime, is that of the container with this identifier. Directories are
/// named `ID`, by CRI-O `crio-ID`, and scopes of systemd `PREFIX-ID.scope`.
#[must_use]
pub fn is_of_container(name: &str, container: &str) -> bool {
    let prefix = name.strip_suffix(".scope").unwrap_or(name);
    let prefix = prefix.strip_suffix(container);
    let is_prefixed = prefix.is_some_and(|prefix| prefix.ends_with('-') && prefix != WATCHER);
    !container.is_empty() && (name == container || is_prefixed)
}

/// Whether a cgroup with this name is that of a single pod, as kubelets name it: `podUID`, and with systemd
/// `TIER-podUID.slice`.
#[must_use]
pub fn is_of_pod(name: &str) -> bool {
    let slice = name.strip_suffix(".slice");
    let last = slice.map_or(name, |slice| slice.rsplit('-').next().unwrap_or(slice));
    // `pods` is the parent of containers whose pod has no cgroup.
    last != "pods" && last.strip_prefix("pod").is_some_and(|uid| !uid.is_empty())
}

/// The identifier of the container, of whatever runtime, that a cgroup is of: its own, or one that it made below that. The
/// container's cgroup is the child of its pod's, which [`is_of_pod`] knows.
#[must_use]
pub fn container_in(path: &str) -> Option<&str> {
    let mut names = path.split('/').skip_while(|name| !is_of_pod(name));
    let name = names.nth(1)?;
    let prefix = name.strip_suffix(".scope").unwrap_or(name);
    let id = prefix.rsplit('-').next()?;
    is_of_container(name, id).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_and_scopes_are_below_the_pods_cgroup() {
        let found = container("/kubepods/burstable/pod1", "c1", CgroupDriver::Cgroupfs).unwrap();
        assert_eq!(found.path.as_str(), "/kubepods/burstable/pod1/c1");
        assert_eq!(found.oci(), "/kubepods/burstable/pod1/c1");
        let parent = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice";
        let found = container(parent, "c1", CgroupDriver::Systemd).unwrap();
        assert_eq!(found.path.as_str(), format!("{parent}/rubelet-c1.scope"));
        assert_eq!(found.oci(), "kubepods-burstable-pod1.slice:rubelet:c1");
    }

    #[test]
    fn without_a_parent_the_root_is_not_used() {
        let found = container("", "c1", CgroupDriver::Cgroupfs).unwrap();
        assert_eq!(found.path.as_str(), "/rubelet/pods/c1");
        let found = container("", "c1", CgroupDriver::Systemd).unwrap();
        assert_eq!(
            found.path.as_str(),
            "/rubelet.slice/rubelet-pods.slice/rubelet-c1.scope"
        );
    }

    #[test]
    fn supervisors_are_in_directories_or_in_scopes() {
        let directory = CgroupPath::parse("/rubelet/the-shims").unwrap();
        for (driver, parent, name) in [
            (CgroupDriver::Cgroupfs, "/rubelet/the-shims", "s1"),
            (
                CgroupDriver::Systemd,
                "/rubelet.slice/rubelet-the_shims.slice",
                "rubelet-shim-s1.scope",
            ),
        ] {
            let shims = shims(&directory, driver).unwrap();
            assert_eq!(shims.as_str(), parent);
            assert_eq!(super::shims(&shims, driver), Ok(shims.clone()));
            let one = shim(&shims, "s1", driver).unwrap();
            assert_eq!(one.path, shims.join(name).unwrap());
            assert_eq!(sandbox_of(one.path.name()), "s1");
            if let Some(scope) = one.scope {
                assert_eq!((&*scope.name, &*scope.slice), (name, shims.name()));
            }
        }
    }

    #[test]
    fn an_invalid_cgroup_is_refused() {
        for parent in ["/", "/a/../b", "a//b"] {
            assert!(
                container(parent, "c1", CgroupDriver::Cgroupfs).is_err(),
                "{parent}"
            );
        }
        for parent in ["/", "/kubepods/pod1", ".slice", "a--b.slice", "-.slice"] {
            assert!(
                container(parent, "c1", CgroupDriver::Systemd).is_err(),
                "{parent}"
            );
        }
        assert!(container("/a", "../b", CgroupDriver::Cgroupfs).is_err());
    }

    #[test]
    fn cgroups_of_containers_are_found_by_their_names() {
        for (name, container, expected) in [
            ("abc", "abc", true),
            ("cri-containerd-abc.scope", "abc", true),
            ("rubelet-abc.scope", "abc", true),
            ("crio-abc", "abc", true),
            ("crio-abc.scope", "abc", true),
            ("crio-conmon-abc", "abc", false),
            ("crio-conmon-abc.scope", "abc", false),
            ("xabc", "abc", false),
            ("cri-containerd-xabc.scope", "abc", false),
            ("abc.scope", "abc", false),
            ("cri-containerd-.scope", "", false),
            ("", "", false),
        ] {
            assert_eq!(
                is_of_container(name, container),
                expected,
                "{name:?} {container:?}"
            );
        }
    }

    #[test]
    fn only_the_cgroup_of_a_single_pod_is_one() {
        for (name, is) in [
            ("pod0e1f", true),
            ("kubepods-burstable-pod0e1f_2d.slice", true),
            ("kubepods-pod0e1f.slice", true),
            ("kubepods", false),
            ("kubepods.slice", false),
            ("kubepods-burstable.slice", false),
            ("pod", false),
            ("pods", false),
            ("rubelet-pods.slice", false),
            ("system.slice", false),
        ] {
            assert_eq!(is_of_pod(name), is, "{name}");
        }
        for parent in [DEFAULT_PARENT, DEFAULT_SLICE] {
            assert!(!is_of_pod(parent.rsplit('/').next().unwrap()));
        }
    }

    #[test]
    fn the_container_of_a_cgroup_is_found_by_its_path() {
        for (path, expected) in [
            ("/kubepods/burstable/pod1/c1", Some("c1")),
            ("/kubepods/pod1/c1/deep/pod2/c2", Some("c1")),
            ("/a.slice/a-pod1.slice/cri-containerd-c1.scope", Some("c1")),
            ("/a.slice/a-pod1.slice/crio-c1.scope/container", Some("c1")),
            ("/kubepods/pod1/crio-c1", Some("c1")),
            ("/kubepods/pod1/crio-conmon-c1", None),
            // A node that is a container itself.
            ("/docker/d1/kubelet/kubepods/pod1/c1", Some("c1")),
            ("/kubepods/burstable/pod1", None),
            ("/kubepods/burstable/pod1/", None),
            ("/docker/d1", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(container_in(path), expected, "{path:?}");
        }
    }
}
