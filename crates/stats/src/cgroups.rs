//! Reads the cgroups of pods and containers.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    num::NonZero,
    panic::resume_unwind,
    sync::Arc,
    thread,
};

use jiff::Timestamp;
use rubelet_cgroup_plan::{CgroupPath, runtime_cgroup::is_of_container};
use rubelet_host::{
    CgroupFs,
    cgroup::{StatsReader, StatsScope},
};

use crate::{
    filesystem,
    pod_network::NetworkReader,
    sample::{CgroupSample, NetworkSample},
    target::PodTarget,
};

/// Threads that read at the same time: one request is soon done, and leaves processors to the pods.
const MOST_THREADS: usize = 4;
/// Pods that one thread reads sooner than another one could be started.
const FEW_PODS: usize = 16;

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
    /// Those of the node's own services, by their names.
    pub(crate) system: &'a [(&'static str, CgroupPath)],
    /// Whether all numbers are read that metrics show.
    pub(crate) all: bool,
    /// Reads networks.
    pub(crate) networks: Option<NetworkReader<'a>>,
    pub(crate) now: &'a (dyn Fn() -> Timestamp + Sync),
}

/// Reads cgroups; those that are gone, or belong to another machine, are omitted. Blocks.
pub(crate) fn read(fs: &CgroupFs, request: &CgroupRequest<'_>) -> CgroupReadings {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let each = request.targets.len().div_ceil(cores.min(MOST_THREADS));
    let mut chunks = request.targets.chunks(each.max(FEW_PODS));
    let first = chunks.next().unwrap_or_default();
    let mut readings = thread::scope(|scope| {
        let others: Vec<_> = chunks
            .map(|pods| scope.spawn(|| request.read_pods(fs, pods)))
            .collect();
        let mut all = request.read_pods(fs, first);
        for other in others {
            // A panic there is one here.
            let other = other.join().unwrap_or_else(|cause| resume_unwind(cause));
            all.pods.extend(other.pods);
            all.containers.extend(other.containers);
            all.networks.extend(other.networks);
        }
        all
    });
    let reader = &mut fs.stats_reader();
    let system = request.system.iter();
    readings.system = system
        .filter_map(|(name, path)| {
            Some((*name, request.read_one(reader, path, StatsScope::Usage)?))
        })
        .collect();
    let mut kubepods = request.kubepods.iter();
    readings.kubepods = kubepods.find_map(|path| request.read_one(reader, path, StatsScope::Usage));
    readings.devices = devices(&readings);
    readings
}

impl CgroupRequest<'_> {
    /// Reads a cgroup: all of it if all is wanted, else what `least` needs.
    fn read_one(
        &self,
        reader: &mut StatsReader<'_>,
        path: &CgroupPath,
        least: StatsScope,
    ) -> Option<Arc<CgroupSample>> {
        let scope = match self.all {
            true => StatsScope::Counters,
            false => least,
        };
        let stats = reader.read(path, scope).ok()?;
        Some(Arc::new(CgroupSample {
            path: path.as_str().into(),
            at: (self.now)(),
            stats,
        }))
    }

    fn read_pods(&self, fs: &CgroupFs, pods: &[PodTarget]) -> CgroupReadings {
        let mut readings = CgroupReadings::default();
        let mut reader = fs.stats_reader();
        for pod in pods {
            self.read_pod(fs, &mut reader, pod, &mut readings);
        }
        readings
    }

    fn read_pod(
        &self,
        fs: &CgroupFs,
        reader: &mut StatsReader<'_>,
        pod: &PodTarget,
        readings: &mut CgroupReadings,
    ) {
        let mut paths = pod.cgroups.iter();
        let found = paths
            .find_map(|path| Some((path, self.read_one(reader, path, StatsScope::UsageAndPids)?)));
        let path = match found {
            Some((path, reading)) => {
                readings.pods.insert(Arc::clone(&pod.uid), reading);
                path
            }
            // Perhaps some controller lacks it.
            None => match pod.cgroups.iter().find(|path| fs.exists_somewhere(path)) {
                Some(path) => path,
                None => return,
            },
        };
        let mut others = fs.child_names(path);
        let mut of_containers = Vec::with_capacity(pod.containers.len());
        for container in &pod.containers {
            let place = others
                .iter()
                .position(|name| is_of_container(name, &container.id));
            let Some(path) = place.and_then(|place| path.join(&others.swap_remove(place)).ok())
            else {
                continue;
            };
            if let Some(reading) = self.read_one(reader, &path, StatsScope::Usage) {
                let id = Arc::clone(&container.id);
                readings.containers.insert(id, reading);
            }
            of_containers.push(path);
        }
        if let Some(networks) = self.networks.as_ref().filter(|_| pod.has_network) {
            // First that of the sandbox: a container may have networks of its own in it.
            let others = others.iter().filter_map(|name| path.join(name).ok());
            let at = (self.now)();
            let mut cgroups = others.chain(of_containers);
            let network = cgroups.find_map(|path| networks.read(&path, at));
            readings
                .networks
                .extend(network.map(|network| (Arc::clone(&pod.uid), network)));
        }
    }
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
