//! The cgroups of pods and of the QoS tiers above them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Once},
};

use parking_lot::Mutex;
use rubelet_api::{pod::Pod, resources::QosClass};
use rubelet_base::{ContainerId, ErrorChain, PodUid};
use rubelet_cgroup_plan::{CgroupDriver, CgroupPath, CgroupValues};
use rubelet_host::{CgroupFs, CgroupRemoval};
use rubelet_node_plan::{
    CgroupRoot, CgroupTree, KubepodsAmounts, PodSettings, kubepods_values, lifted_limits,
    pod_values, tier_values,
};
use rubelet_node_state::host_error::HostError;
use tracing::{info, warn};

use super::{HostSettings, micros};

const REASON: &str = "FailedCreatePodContainer";

fn ensure_error(error: &(dyn std::error::Error + 'static)) -> HostError {
    let HostError { reason, message } = HostError::new(REASON, error);
    HostError {
        reason,
        message: format!("unable to ensure pod container exists: {message}"),
    }
}

/// Cgroups of the pods of this node.
#[derive(Debug)]
pub(super) struct PodCgroups {
    fs: CgroupFs,
    enabled: bool,
    default_driver: CgroupDriver,
    cgroupfs: CgroupTree,
    systemd: CgroupTree,
    kubepods: KubepodsAmounts,
    pod_settings: PodSettings,
    /// Pods whose requests determine the shares of their tier.
    pods: Mutex<BTreeMap<PodUid, Arc<Pod>>>,
    /// Pods whose cgroup was still in use at the last attempt to remove it.
    in_use: Mutex<BTreeSet<PodUid>>,
    systemd_warned: Once,
}

impl PodCgroups {
    pub(super) fn new(settings: &HostSettings) -> Result<Self, HostError> {
        let wrong =
            |error: &(dyn std::error::Error + 'static)| HostError::new("InvalidCgroupRoot", error);
        let root = CgroupRoot::parse(&settings.cgroup_root).map_err(|error| wrong(&error))?;
        let tree = |form| CgroupTree::new(&root, form).map_err(|error| wrong(&error));
        let hugepages = &settings.machine.hugepages;
        Ok(Self {
            fs: settings.cgroups.clone(),
            enabled: settings.cgroups_per_qos,
            default_driver: if settings.systemd_driver {
                CgroupDriver::Systemd
            } else {
                CgroupDriver::Cgroupfs
            },
            cgroupfs: tree(CgroupDriver::Cgroupfs)?,
            systemd: tree(CgroupDriver::Systemd)?,
            kubepods: KubepodsAmounts {
                cpu: settings.machine.cpus.saturating_mul(1000),
                memory: settings.machine.memory,
                pids: None,
                hugepages: hugepages
                    .iter()
                    .map(|pool| (pool.page_size, pool.page_size.saturating_mul(pool.pages)))
                    .collect(),
            },
            pod_settings: PodSettings {
                cpu_cfs_quota: settings.cpu_cfs_quota,
                cpu_cfs_quota_period_us: micros(settings.cpu_cfs_quota_period),
                pod_pids_limit: settings.pod_pids_limit,
                page_sizes: hugepages.iter().map(|pool| pool.page_size).collect(),
            },
            pods: Mutex::default(),
            in_use: Mutex::default(),
            systemd_warned: Once::new(),
        })
    }

    /// Counts a pod's requests among those of its tier.
    pub(super) fn track(&self, pod: &Arc<Pod>) {
        self.pods.lock().insert(pod.uid.clone(), Arc::clone(pod));
    }

    fn tree(&self, driver: CgroupDriver) -> &CgroupTree {
        match driver {
            CgroupDriver::Cgroupfs => &self.cgroupfs,
            CgroupDriver::Systemd => &self.systemd,
        }
    }

    /// `cgroup_parent` of a pod's sandbox; empty if pods have no cgroups of their own.
    pub(super) fn parent(
        &self,
        pod: &Pod,
        driver: Option<CgroupDriver>,
    ) -> Result<String, HostError> {
        if !self.enabled {
            return Ok(String::new());
        }
        let path = self
            .tree(driver.unwrap_or(self.default_driver))
            .pod(pod.spec.qos, &pod.uid);
        path.map(|path| path.as_str().to_owned())
            .map_err(|error| ensure_error(&error))
    }

    /// Creates the pod's cgroup and those above it, and writes their values.
    pub(super) fn ensure(&self, pod: &Pod, driver: Option<CgroupDriver>) -> Result<(), HostError> {
        if !self.enabled {
            return Ok(());
        }
        if driver.unwrap_or(self.default_driver) == CgroupDriver::Systemd {
            // systemd creates the slices when the runtime requests the first container in them, and
            // would overwrite values that this agent writes.
            self.systemd_warned.call_once(|| {
                warn!("The runtime uses the systemd cgroup driver: limits are enforced for containers, but not for whole pods");
            });
            return Ok(());
        }
        let tree = &self.cgroupfs;
        let path = tree
            .pod(pod.spec.qos, &pod.uid)
            .map_err(|error| ensure_error(&error))?;
        self.create(tree.kubepods())?;
        self.write(
            tree.kubepods(),
            &kubepods_values(&self.kubepods, &self.pod_settings.page_sizes),
        );
        let pods: Vec<Arc<Pod>> = self.pods.lock().values().cloned().collect();
        for qos in [QosClass::Burstable, QosClass::BestEffort] {
            let pods = pods.iter().map(AsRef::as_ref);
            if let Some(values) = tier_values(qos, pods, &self.pod_settings.page_sizes) {
                self.create(tree.tier(qos))?;
                self.write(tree.tier(qos), &values);
            }
        }
        let values = pod_values(pod, &self.pod_settings);
        if self.fs.exists(&path) {
            // An edit may have removed limits, which writing the remaining ones does not lift.
            self.write(&path, &lifted_limits(&values, &self.pod_settings));
        } else {
            self.leave_other_tiers(pod);
            self.create(&path)?;
        }
        self.fs
            .write(&path, &values)
            .map_err(|error| ensure_error(&error))
    }

    /// Removes the pod's cgroups in other tiers, which it may have left by an edit.
    fn leave_other_tiers(&self, pod: &Pod) {
        for qos in [
            QosClass::Guaranteed,
            QosClass::Burstable,
            QosClass::BestEffort,
        ] {
            let Ok(path) = self.cgroupfs.pod(qos, &pod.uid) else {
                continue;
            };
            if qos != pod.spec.qos
                && let Err(error) = self.fs.remove(&path)
            {
                info!(cgroup = path.as_str(), error = %ErrorChain(&error), "Failed to remove the old cgroup of a pod");
            }
        }
    }

    /// True if the kernel can limit the swap of containers.
    pub(super) fn limits_swap(&self) -> bool {
        [&self.cgroupfs, &self.systemd]
            .iter()
            .any(|tree| self.fs.limits_swap(tree.kubepods()))
    }

    fn create(&self, path: &CgroupPath) -> Result<(), HostError> {
        self.fs.ensure(path).map_err(|error| ensure_error(&error))
    }

    /// Writes values without which pods still run: those of the tiers, and lifted limits of a pod. A
    /// failure is logged only.
    fn write(&self, path: &CgroupPath, values: &CgroupValues) {
        if let Err(error) = self.fs.write(path, values) {
            info!(cgroup = path.as_str(), error = %ErrorChain(&error), "Failed to set values of a cgroup");
        }
    }

    /// Kills leftover processes in a container's own cgroup, whatever the tier of its pod is or
    /// was. Returns their number. Runtimes name the cgroup after the container.
    pub(super) fn kill_container(&self, uid: &PodUid, id: &ContainerId) -> usize {
        if !self.enabled || id.as_str().is_empty() {
            return 0;
        }
        let mut killed = 0;
        for tree in [&self.cgroupfs, &self.systemd] {
            for qos in [
                QosClass::Guaranteed,
                QosClass::Burstable,
                QosClass::BestEffort,
            ] {
                let Ok(pod) = tree.pod(qos, uid) else {
                    continue;
                };
                let names = self.fs.children(&pod).unwrap_or_default();
                let own = names.iter().filter(|name| name.contains(id.as_str()));
                for path in own.filter_map(|name| pod.join(name).ok()) {
                    match self.fs.kill(&path) {
                        Ok(count) => killed += count,
                        Err(error) => {
                            warn!(cgroup = path.as_str(), error = %ErrorChain(&error), "Failed to kill leftover processes of a container");
                        }
                    }
                }
            }
        }
        killed
    }

    /// Removes the pod's cgroup, whatever its tier is or was. Returns true if it is gone.
    ///
    /// The runtime has no sandbox or container of the pod any more when this is called. If the
    /// cgroup is in use at two attempts, the runtime has lost a process, as when the creation of a
    /// sandbox is interrupted; it is killed (kubelet: pods' cgroups are emptied in the same way).
    pub(super) fn remove(&self, uid: &PodUid) -> Result<bool, HostError> {
        self.pods.lock().remove(uid);
        let mut gone = true;
        if self.enabled {
            let again = self.in_use.lock().contains(uid);
            for qos in [
                QosClass::Guaranteed,
                QosClass::Burstable,
                QosClass::BestEffort,
            ] {
                let Ok(path) = self.cgroupfs.pod(qos, uid) else {
                    continue;
                };
                if again {
                    self.kill_lost(&path);
                }
                let removed = self.fs.remove(&path);
                let removed = removed.map_err(|e| HostError::new("FailedRemoveCgroup", &e))?;
                gone &= matches!(removed, CgroupRemoval::Gone);
            }
        }
        if gone {
            self.in_use.lock().remove(uid);
        } else {
            self.in_use.lock().insert(uid.clone());
        }
        Ok(gone)
    }

    fn kill_lost(&self, path: &CgroupPath) {
        match self.fs.kill(path) {
            Ok(0) => {}
            Ok(count) => {
                warn!(
                    cgroup = path.as_str(),
                    count, "Killed processes that the container runtime had lost"
                );
            }
            Err(error) => {
                warn!(cgroup = path.as_str(), error = %ErrorChain(&error), "Failed to kill processes that the container runtime had lost");
            }
        }
    }
}
