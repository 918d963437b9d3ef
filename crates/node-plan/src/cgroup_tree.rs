//! Names of the cgroup tree: `kubepods`, a tier for each QoS class below Guaranteed, and one cgroup
//! for each pod.

use rubelet_api::resources::QosClass;
use rubelet_base::PodUid;
use rubelet_cgroup_plan::{CgroupDriver, CgroupPath, CgroupPathError};

/// `cgroupRoot`: the cgroup below which the tree is built, the root of the hierarchy by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupRoot(Option<CgroupPath>);

impl CgroupRoot {
    /// Reads the setting; an empty text and `/` mean the root of the hierarchy.
    ///
    /// # Errors
    /// A component is not a valid cgroup name, such as `..`.
    pub fn parse(text: &str) -> Result<Self, CgroupPathError> {
        if matches!(text, "" | "/") {
            return Ok(Self(None));
        }
        CgroupPath::parse(text).map(|path| Self(Some(path)))
    }
}

/// An invalid cgroup name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CgroupNameError {
    /// The name is empty or contains `_`, which encodes `-` in slice names.
    #[error("invalid name {0:?} of a pod's cgroup: it must not be empty or contain '_'")]
    Name(String),
    /// A slice of systemd has no such name.
    #[error("{0:?} is not the name of a slice such as system.slice")]
    Slice(String),
    /// The name can't be one component of a path.
    #[error(transparent)]
    Path(#[from] CgroupPathError),
}

/// The tree of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupTree {
    driver: CgroupDriver,
    kubepods: CgroupPath,
    burstable: CgroupPath,
    best_effort: CgroupPath,
}

impl CgroupTree {
    /// The tree below `root`. With systemd, slices are named after all slices above them, and a
    /// `-` within a name becomes `_`.
    ///
    /// # Errors
    /// A name exceeds the maximum length of a file name.
    pub fn new(root: &CgroupRoot, driver: CgroupDriver) -> Result<Self, CgroupNameError> {
        let mut names: Vec<&str> = root.0.iter().flat_map(CgroupPath::components).collect();
        names.push("kubepods");
        let kubepods = match driver {
            CgroupDriver::Cgroupfs => CgroupPath::parse(&names.join("/"))?,
            CgroupDriver::Systemd => expand_slices(&names)?,
        };
        Ok(Self {
            driver,
            burstable: child(driver, &kubepods, "burstable")?,
            best_effort: child(driver, &kubepods, "besteffort")?,
            kubepods,
        })
    }

    /// The cgroup of all pods.
    #[must_use]
    pub fn kubepods(&self) -> &CgroupPath {
        &self.kubepods
    }

    /// The parent cgroup of the pods of a QoS class. Guaranteed pods are directly in `kubepods`.
    #[must_use]
    pub fn tier(&self, qos: QosClass) -> &CgroupPath {
        match qos {
            QosClass::Guaranteed => &self.kubepods,
            QosClass::Burstable => &self.burstable,
            QosClass::BestEffort => &self.best_effort,
        }
    }

    /// The cgroup of one pod. Its text is what the CRI expects as `cgroup_parent`, with both
    /// drivers; runtimes that use systemd use the last component.
    ///
    /// # Errors
    /// The UID is not valid in a cgroup name.
    pub fn pod(&self, qos: QosClass, uid: &PodUid) -> Result<CgroupPath, CgroupNameError> {
        let uid = uid.as_str();
        if uid.is_empty() || uid.contains('_') {
            return Err(CgroupNameError::Name(uid.to_owned()));
        }
        child(self.driver, self.tier(qos), &format!("pod{uid}"))
    }

    /// The pod of a cgroup that is directly in the tier of `qos`; `None` if it is not the cgroup of
    /// a pod.
    #[must_use]
    pub fn pod_of(&self, qos: QosClass, name: &str) -> Option<PodUid> {
        let uid = match self.driver {
            CgroupDriver::Cgroupfs => name.strip_prefix("pod")?.to_owned(),
            CgroupDriver::Systemd => {
                let tier = self.tier(qos).name().strip_suffix(SLICE)?;
                let name = name.strip_prefix(tier)?.strip_prefix("-pod")?;
                name.strip_suffix(SLICE)?.replace('_', "-")
            }
        };
        // A cgroup whose name this tree would not create is not ours to remove.
        let uid = PodUid::from(uid);
        let path = self.pod(qos, &uid).ok()?;
        (path.name() == name).then_some(uid)
    }
}

/// The path of a cgroup that others create and the configuration names, such as
/// `systemReservedCgroup`. With systemd the last component names the slice, and the slices above it:
/// `/system.slice`, `system.slice` and `system` are the same.
///
/// # Errors
/// The name is empty, the root, or not one of a cgroup.
pub fn existing_cgroup(name: &str, driver: CgroupDriver) -> Result<CgroupPath, CgroupNameError> {
    let path = CgroupPath::parse(name.trim_end_matches('/'))?;
    match driver {
        CgroupDriver::Cgroupfs => Ok(path),
        CgroupDriver::Systemd => {
            let slice = path.name().strip_suffix(SLICE).unwrap_or(path.name());
            let names: Vec<&str> = slice.split('-').collect();
            if names.contains(&"") {
                return Err(CgroupNameError::Slice(path.name().to_owned()));
            }
            expand_slices(&names)
        }
    }
}

const SLICE: &str = ".slice";

fn child(
    driver: CgroupDriver,
    parent: &CgroupPath,
    name: &str,
) -> Result<CgroupPath, CgroupNameError> {
    match driver {
        CgroupDriver::Cgroupfs => Ok(parent.join(name)?),
        CgroupDriver::Systemd => {
            let above = parent.name().strip_suffix(SLICE).unwrap_or(parent.name());
            Ok(parent.join(&format!("{above}-{}{SLICE}", escape(name)))?)
        }
    }
}

/// systemd nests slices by the dashes in their names: `a-b.slice` is in `a.slice`.
fn expand_slices(names: &[&str]) -> Result<CgroupPath, CgroupNameError> {
    let mut path = String::new();
    let mut prefix = String::new();
    for name in names {
        let name = escape(name);
        path.push_str(&format!("/{prefix}{name}{SLICE}"));
        prefix.push_str(&format!("{name}-"));
    }
    Ok(CgroupPath::parse(&path)?)
}

fn escape(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "1234-abcd-5678-efgh";

    fn tree(root: &str, driver: CgroupDriver) -> CgroupTree {
        CgroupTree::new(&CgroupRoot::parse(root).unwrap(), driver).unwrap()
    }

    #[test]
    fn each_driver_names_the_tree_as_the_kubelet_does() {
        use CgroupDriver::{Cgroupfs, Systemd};
        use QosClass::{BestEffort, Burstable, Guaranteed};
        let table = [
            ("", Cgroupfs, Guaranteed, "/kubepods/pod1234-abcd-5678-efgh"),
            (
                "/",
                Cgroupfs,
                Burstable,
                "/kubepods/burstable/pod1234-abcd-5678-efgh",
            ),
            (
                "/",
                Cgroupfs,
                BestEffort,
                "/kubepods/besteffort/pod1234-abcd-5678-efgh",
            ),
            (
                "/a-b/c",
                Cgroupfs,
                Guaranteed,
                "/a-b/c/kubepods/pod1234-abcd-5678-efgh",
            ),
            (
                "",
                Systemd,
                Guaranteed,
                "/kubepods.slice/kubepods-pod1234_abcd_5678_efgh.slice",
            ),
            (
                "/",
                Systemd,
                Burstable,
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_abcd_5678_efgh.slice",
            ),
            (
                "/",
                Systemd,
                BestEffort,
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1234_abcd_5678_efgh.slice",
            ),
            (
                "/a-b",
                Systemd,
                Guaranteed,
                "/a_b.slice/a_b-kubepods.slice/a_b-kubepods-pod1234_abcd_5678_efgh.slice",
            ),
        ];
        for (root, driver, qos, path) in table {
            let tree = tree(root, driver);
            let pod = tree.pod(qos, &PodUid::from(UID)).unwrap();
            assert_eq!(pod.as_str(), path);
            assert_eq!(pod.parent().as_ref(), Some(tree.tier(qos)));
            assert_eq!(tree.pod_of(qos, pod.name()), Some(PodUid::from(UID)));
        }
    }

    #[test]
    fn a_uid_that_could_climb_or_be_mistaken_is_refused() {
        for driver in [CgroupDriver::Cgroupfs, CgroupDriver::Systemd] {
            let tree = tree("", driver);
            for uid in ["", "a_b", "/", "x/../..", "x/..", "a\nb"] {
                let answer = tree.pod(QosClass::BestEffort, &PodUid::from(uid));
                assert!(answer.is_err(), "{uid:?} was taken: {answer:?}");
            }
        }
    }

    #[test]
    fn a_root_that_climbs_is_refused() {
        for root in ["..", "/..", "/a/../b", "//", "/a/"] {
            assert!(CgroupRoot::parse(root).is_err(), "{root:?} was taken");
        }
    }

    #[test]
    fn cgroups_of_others_are_named_as_the_driver_names_them() {
        use CgroupDriver::{Cgroupfs, Systemd};
        for (driver, name, path) in [
            (Cgroupfs, "/system.slice", "/system.slice"),
            (Cgroupfs, "a/b/", "/a/b"),
            (Systemd, "/system.slice", "/system.slice"),
            (Systemd, "system", "/system.slice"),
            (Systemd, "/a.slice/a-b_c.slice", "/a.slice/a-b_c.slice"),
            (Systemd, "a-b_c.slice", "/a.slice/a-b_c.slice"),
        ] {
            assert_eq!(
                existing_cgroup(name, driver).unwrap().as_str(),
                path,
                "{name}"
            );
        }
        for driver in [Cgroupfs, Systemd] {
            for name in ["", "/", "//", "/a/../b", ".."] {
                assert!(existing_cgroup(name, driver).is_err(), "{name:?} was taken");
            }
        }
        for name in ["a--b.slice", ".slice", "-.slice"] {
            assert!(
                existing_cgroup(name, Systemd).is_err(),
                "{name:?} was taken"
            );
        }
    }

    #[test]
    fn foreign_cgroups_are_not_taken_for_pods() {
        let cgroupfs = tree("", CgroupDriver::Cgroupfs);
        for name in ["burstable", "besteffort", "pod", "podx_y", "system.slice"] {
            assert_eq!(cgroupfs.pod_of(QosClass::Guaranteed, name), None, "{name}");
        }
        let systemd = tree("", CgroupDriver::Systemd);
        for name in [
            "kubepods-burstable.slice",
            "kubepods-pod.slice",
            "kubepods-poda-b.slice",
            "pod1.slice",
            "kubepods-burstable-pod1.slice",
        ] {
            assert_eq!(systemd.pod_of(QosClass::Guaranteed, name), None, "{name}");
        }
    }
}
