//! Reads the cgroups of pods and containers.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_host::CgroupFs;

use crate::{
    filesystem,
    sample::CgroupSample,
    target::{PodTarget, is_cgroup_of},
};

/// Readings of the cgroups that exist.
#[derive(Debug, Clone, Default)]
pub(crate) struct CgroupReadings {
    /// By the UID of the pod.
    pub(crate) pods: HashMap<Arc<str>, Arc<CgroupSample>>,
    /// By the identifier of the container.
    pub(crate) containers: HashMap<Arc<str>, Arc<CgroupSample>>,
    /// All pods together.
    pub(crate) kubepods: Option<Arc<CgroupSample>>,
    /// Names of the block devices in them, by their numbers.
    pub(crate) devices: BTreeMap<(u32, u32), Box<str>>,
}

/// Reads the cgroups of `targets` and the first one of `kubepods` that exists; those that are gone, or
/// belong to another machine, are omitted. Blocks.
pub(crate) fn read(
    fs: &CgroupFs,
    targets: &[PodTarget],
    kubepods: &[CgroupPath],
    now: &dyn Fn() -> Timestamp,
) -> CgroupReadings {
    let mut readings = CgroupReadings::default();
    let read = |path: &CgroupPath| {
        let stats = fs.stats(path).ok()?;
        Some(Arc::new(CgroupSample {
            path: path.as_str().into(),
            at: now(),
            stats,
        }))
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
    readings.devices = devices(&readings);
    readings
}

/// Names such as `/dev/vda`. A device that is gone has none.
fn devices(readings: &CgroupReadings) -> BTreeMap<(u32, u32), Box<str>> {
    let cgroups = readings.pods.values().chain(readings.containers.values());
    let all = cgroups.chain(&readings.kubepods);
    let numbers: BTreeSet<(u32, u32)> = all
        .flat_map(|cgroup| &cgroup.stats.io)
        .map(|io| (io.major, io.minor))
        .collect();
    let name = |(major, minor): (u32, u32)| {
        let name = filesystem::block_device(major, minor)?;
        Some(((major, minor), name))
    };
    numbers.into_iter().filter_map(name).collect()
}
