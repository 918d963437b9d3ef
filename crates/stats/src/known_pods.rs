//! Where the numbers of a pod are. Looking for that would be a fifth of each request, so it is kept for the next one.

use std::{collections::HashMap, os::fd::OwnedFd, sync::Arc};

use rubelet_cgroup_plan::{CgroupPath, runtime_cgroup::is_of_container};
use rubelet_host::{
    CgroupFs,
    cgroup::{StatsReader, StatsScope},
};

use crate::{
    cgroup_request::{CgroupReadings, CgroupRequest},
    target::PodTarget,
};

/// The pods of the last request, by their UIDs. Those that are gone, and their descriptors, go with the next request.
pub(crate) type KnownPods = HashMap<Arc<str>, KnownPod>;

/// Where the numbers of a pod were found.
#[derive(Debug)]
pub(crate) struct KnownPod {
    path: CgroupPath,
    /// By the identifier of the container.
    containers: HashMap<Arc<str>, CgroupPath>,
    /// The directory in `/proc` of a process that has the network of the pod, if that was read. Nothing can be read from
    /// it when the process has ended, also if another one has its number.
    process: Option<OwnedFd>,
}

impl CgroupRequest<'_> {
    /// Reads the numbers of a pod where they were, or else looks for them. Returns where they are.
    pub(crate) fn read_pod(
        &self,
        fs: &CgroupFs,
        reader: &mut StatsReader<'_>,
        pod: &PodTarget,
        known: Option<KnownPod>,
        readings: &mut CgroupReadings,
    ) -> Option<KnownPod> {
        let kept = known.filter(|known| self.read_known(reader, pod, known, readings).is_some());
        kept.or_else(|| self.find_pod(fs, reader, pod, readings))
    }

    /// `None` if something was not known, or is not there any more.
    fn read_known(
        &self,
        reader: &mut StatsReader<'_>,
        pod: &PodTarget,
        known: &KnownPod,
        readings: &mut CgroupReadings,
    ) -> Option<()> {
        // Nothing is read in vain where not all is known.
        let process = match self.networks.as_ref().filter(|_| pod.has_network) {
            Some(networks) => Some((networks, known.process.as_ref()?)),
            None => None,
        };
        let containers = pod.containers.iter();
        let containers: Vec<_> = containers
            .map(|container| Some((&container.id, known.containers.get(&container.id)?)))
            .collect::<Option<_>>()?;
        let of_pod = self.read_one(reader, &known.path, StatsScope::UsageAndPids)?;
        for (id, path) in containers {
            let reading = self.read_one(reader, path, StatsScope::Usage)?;
            readings.containers.insert(Arc::clone(id), reading);
        }
        if let Some((networks, process)) = process {
            let network = networks.read(process, (self.now)())?;
            readings.networks.insert(Arc::clone(&pod.uid), network);
        }
        readings.pods.insert(Arc::clone(&pod.uid), of_pod);
        Some(())
    }

    fn find_pod(
        &self,
        fs: &CgroupFs,
        reader: &mut StatsReader<'_>,
        pod: &PodTarget,
        readings: &mut CgroupReadings,
    ) -> Option<KnownPod> {
        let mut paths = pod.cgroups.iter();
        let found = paths
            .find_map(|path| Some((path, self.read_one(reader, path, StatsScope::UsageAndPids)?)));
        let path = match found {
            Some((path, reading)) => {
                readings.pods.insert(Arc::clone(&pod.uid), reading);
                path
            }
            // Perhaps some controller lacks it.
            None => pod.cgroups.iter().find(|path| fs.exists_somewhere(path))?,
        };
        let mut known = KnownPod {
            path: path.clone(),
            containers: HashMap::new(),
            process: None,
        };
        let mut others = fs.child_names(path);
        for container in &pod.containers {
            let place = others
                .iter()
                .position(|name| is_of_container(name, &container.id));
            let Some(path) = place.and_then(|place| path.join(&others.swap_remove(place)).ok())
            else {
                continue;
            };
            let id = Arc::clone(&container.id);
            if let Some(reading) = self.read_one(reader, &path, StatsScope::Usage) {
                readings.containers.insert(Arc::clone(&id), reading);
            }
            known.containers.insert(id, path);
        }
        if let Some(networks) = self.networks.as_ref().filter(|_| pod.has_network) {
            // First that of the sandbox: a container may have networks of its own in it.
            let others = others.iter().filter_map(|name| path.join(name).ok());
            let at = (self.now)();
            let of_containers = pod.containers.iter();
            let of_containers =
                of_containers.filter_map(|one| known.containers.get(&one.id).cloned());
            let mut cgroups = others.chain(of_containers);
            let found = cgroups.find_map(|path| {
                let process = networks.process(&path)?;
                Some((networks.read(&process, at)?, process))
            });
            if let Some((network, process)) = found {
                readings.networks.insert(Arc::clone(&pod.uid), network);
                known.process = Some(process);
            }
        }
        Some(known)
    }
}
