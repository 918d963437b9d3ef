//! Reads the cgroups of pods and containers.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_host::{CgroupFs, cgroup::CgroupStats};

use crate::target::{PodTarget, is_cgroup_of};

/// The statistics of a cgroup.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CgroupReading {
    pub(crate) at: Timestamp,
    pub(crate) stats: CgroupStats,
}

/// Readings of the cgroups that exist.
#[derive(Debug, Clone, Default)]
pub(crate) struct CgroupReadings {
    /// By the UID of the pod.
    pub(crate) pods: HashMap<Arc<str>, CgroupReading>,
    /// By the identifier of the container.
    pub(crate) containers: HashMap<Arc<str>, CgroupReading>,
    /// All pods together.
    pub(crate) kubepods: Option<CgroupReading>,
}

/// Reads the cgroups of `targets` and the first one of `kubepods` that exists; those that are gone, or belong to another machine, are omitted.
/// Blocks.
pub(crate) fn read(
    fs: &CgroupFs,
    targets: &[PodTarget],
    kubepods: &[CgroupPath],
    now: &dyn Fn() -> Timestamp,
) -> CgroupReadings {
    let mut readings = CgroupReadings::default();
    let read = |path: &CgroupPath| {
        let stats = fs.stats(path).ok()?;
        Some(CgroupReading { at: now(), stats })
    };
    for pod in targets {
        let mut paths = pod.cgroups.iter().filter(|path| fs.exists_somewhere(path));
        let Some(path) = paths.next() else {
            continue;
        };
        if let Some(reading) = read(path) {
            readings.pods.insert(Arc::clone(&pod.uid), reading);
        }
        let names = fs.children(path).unwrap_or_default();
        for container in &pod.containers {
            let name = names.iter().find(|name| is_cgroup_of(name, &container.id));
            let path = name.and_then(|name| path.join(name).ok());
            if let Some(reading) = path.and_then(|path| read(&path)) {
                readings
                    .containers
                    .insert(Arc::clone(&container.id), reading);
            }
        }
    }
    readings.kubepods = kubepods.iter().find_map(read);
    readings
}
