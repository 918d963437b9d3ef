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
    pod_network::NetworkReader,
    sample::{CgroupSample, NetworkSample},
    system::SystemCgroups,
    target::{PodTarget, is_cgroup_of},
};

/// Readings of the cgroups that exist.
#[derive(Debug, Clone, Default)]
pub(crate) struct CgroupReadings {
    /// By the UID of the pod.
    pub(crate) pods: HashMap<Arc<str>, Arc<CgroupSample>>,
    /// By the identifier of the container.
    pub(crate) containers: HashMap<Arc<str>, Arc<CgroupSample>>,
    /// Networks by the UID of the pod, where they are to be read.
    pub(crate) networks: HashMap<Arc<str>, NetworkSample>,
    /// Of the node's own services, by their names.
    pub(crate) system: Vec<(&'static str, Arc<CgroupSample>)>,
    /// All pods together.
    pub(crate) kubepods: Option<Arc<CgroupSample>>,
    /// Names of the block devices in them, by their numbers.
    pub(crate) devices: BTreeMap<(u32, u32), Box<str>>,
}

/// What is read.
pub(crate) struct CgroupRequest<'a> {
    pub(crate) targets: &'a [PodTarget],
    /// The cgroups of all pods; the first one that exists is read.
    pub(crate) kubepods: &'a [CgroupPath],
    pub(crate) system: &'a SystemCgroups,
    /// Whether all numbers are read.
    pub(crate) all: bool,
    /// Reads networks.
    pub(crate) networks: Option<NetworkReader<'a>>,
    pub(crate) now: &'a dyn Fn() -> Timestamp,
}

/// Reads cgroups; those that are gone, or belong to another machine, are omitted. Blocks.
pub(crate) fn read(fs: &CgroupFs, request: &CgroupRequest<'_>) -> CgroupReadings {
    let mut readings = CgroupReadings::default();
    let now = request.now;
    let read = |path: &CgroupPath| {
        let stats = match request.all {
            true => fs.stats(path),
            false => fs.usage(path),
        };
        let stats = stats.ok()?;
        Some(Arc::new(CgroupSample {
            path: path.as_str().into(),
            at: now(),
            stats,
        }))
    };
    for pod in request.targets {
        let mut paths = pod.cgroups.iter().filter(|path| fs.exists_somewhere(path));
        let Some(path) = paths.next() else {
            continue;
        };
        if let Some(reading) = read(path) {
            readings.pods.insert(Arc::clone(&pod.uid), reading);
        }
        let names = fs.child_names(path);
        for container in &pod.containers {
            let name = names.iter().find(|name| is_cgroup_of(name, &container.id));
            let path = name.and_then(|name| path.join(name).ok());
            if let Some(reading) = path.and_then(|path| read(&path)) {
                readings
                    .containers
                    .insert(Arc::clone(&container.id), reading);
            }
        }
        if let Some(networks) = request.networks.as_ref().filter(|_| pod.has_network)
            && let Some(network) = networks.read(path, now())
        {
            readings.networks.insert(Arc::clone(&pod.uid), network);
        }
    }
    let system = request.system.find(fs).into_iter();
    readings.system = system
        .filter_map(|(name, path)| Some((name, read(&path)?)))
        .collect();
    readings.kubepods = request.kubepods.iter().find_map(read);
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
