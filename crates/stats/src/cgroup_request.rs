//! What is read of cgroups, and the readings.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_host::cgroup::{StatsReader, StatsScope};

use crate::{
    pod_network::NetworkReader,
    sample::{CgroupSample, NetworkSample},
    target::PodTarget,
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
    /// Those of the node's own services, by their names.
    pub(crate) system: &'a [(&'static str, CgroupPath)],
    /// Whether all numbers are read that metrics show.
    pub(crate) all: bool,
    /// Reads networks.
    pub(crate) networks: Option<NetworkReader<'a>>,
    pub(crate) now: &'a (dyn Fn() -> Timestamp + Sync),
}

impl CgroupRequest<'_> {
    /// Reads a cgroup: all of it if all is wanted, else what `least` needs.
    pub(crate) fn read_one(
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
}
