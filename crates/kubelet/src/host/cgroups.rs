//! The cgroups of pods and of the QoS tiers above them. Functions that change cgroups block; with the
//! systemd driver until systemd answers.

mod node;
mod oom_groups;
mod slices;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use rubelet_api::{pod::Pod, resources::QosClass};
use rubelet_base::{ContainerId, ErrorChain, PodUid};
use rubelet_cgroup_plan::{
    CgroupDriver, CgroupPath, CgroupValues, runtime_cgroup::is_of_container,
};
use rubelet_host::{CgroupFs, CgroupRemoval, cgroup::StatsScope, systemd::SystemdError};
use rubelet_node_plan::{
    CgroupRoot, CgroupTree, KubepodsAmounts, PodSettings, TierSettings, eviction::PodUsage,
    lifted_limits, memory_qos::QosRequests, node_allocatable::ReservedCgroup, pod_values,
    tier_values,
};
use rubelet_node_state::{
    host_error::HostError,
    metrics::{CgroupChange, NodeMetrics},
};
use tokio::time::Instant;
use tracing::{info, warn};

pub(super) use self::slices::{MachineSystemd, SliceService};
use self::{node::NodeCgroupError, slices::Slices};
use super::{HostSettings, micros};

const REASON: &str = rubelet_base::event_reason::FAILED_POD_CONTAINER;

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
    /// Cgroups of others that are limited to their reservations.
    reserved: Vec<ReservedCgroup>,
    pod_settings: PodSettings,
    /// `qosReserved` of memory, in percent.
    memory_reserved: Option<u8>,
    unreserved_memory: u64,
    /// Pods whose requests determine the shares of their tier.
    pods: Mutex<BTreeMap<PodUid, Arc<Pod>>>,
    /// Pods whose cgroup was still in use at the last attempt to remove it.
    in_use: Mutex<BTreeSet<PodUid>>,
    slices: Slices,
    metrics: Arc<NodeMetrics>,
    /// The tiers that this process created or updated, with their current values.
    tiers: Mutex<BTreeMap<CgroupPath, CgroupValues>>,
    /// Whether `tiers` has entries, for readers that must not wait for its lock.
    has_tiers: AtomicBool,
    /// Whether a call to `update_tiers` is pending.
    tiers_due: AtomicBool,
}

/// The desired state of a tier.
struct Tier {
    path: CgroupPath,
    description: &'static str,
    values: CgroupValues,
}

impl PodCgroups {
    pub(super) fn new(
        settings: &HostSettings,
        systemd: Box<dyn SliceService>,
    ) -> Result<Self, HostError> {
        let wrong =
            |error: &(dyn std::error::Error + 'static)| HostError::new("InvalidCgroupRoot", error);
        let root = CgroupRoot::parse(&settings.cgroup_root).map_err(|error| wrong(&error))?;
        let tree = |form| CgroupTree::new(&root, form).map_err(|error| wrong(&error));
        let hugepages = &settings.machine.hugepages;
        Ok(Self {
            fs: settings.cgroups.clone(),
            enabled: settings.cgroups_per_qos,
            default_driver: settings.cgroup_driver,
            cgroupfs: tree(CgroupDriver::Cgroupfs)?,
            systemd: tree(CgroupDriver::Systemd)?,
            kubepods: settings.kubepods.clone(),
            reserved: settings.reserved_cgroups.clone(),
            pod_settings: PodSettings {
                cpu_cfs_quota: settings.cpu_cfs_quota,
                cpu_cfs_quota_period_us: micros(settings.cpu_cfs_quota_period),
                pod_pids_limit: settings.pod_pids_limit,
                page_sizes: hugepages.iter().map(|pool| pool.page_size).collect(),
                memory_qos: settings.memory_qos,
            },
            memory_reserved: settings.memory_reserved,
            unreserved_memory: settings.unreserved_memory,
            pods: Mutex::default(),
            in_use: Mutex::default(),
            slices: Slices::new(systemd, settings.cgroups.layout()),
            metrics: Arc::clone(&settings.metrics),
            tiers: Mutex::default(),
            has_tiers: AtomicBool::new(false),
            tiers_due: AtomicBool::new(false),
        })
    }

    /// Adds a pod's requests to those of its tier. Returns true if the caller must call
    /// [`Self::update_tiers`]. Does not block.
    pub(super) fn track(&self, pod: &Arc<Pod>) -> bool {
        self.pods.lock().insert(pod.uid.clone(), Arc::clone(pod));
        // Without tiers, the first call of `ensure` includes this pod.
        self.has_tiers.load(Ordering::SeqCst) && !self.tiers_due.swap(true, Ordering::SeqCst)
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

    /// Creates the pod's cgroup and those above it, and sets their values.
    pub(super) fn ensure(&self, pod: &Pod, driver: Option<CgroupDriver>) -> Result<(), HostError> {
        if !self.enabled {
            return Ok(());
        }
        let driver = driver.unwrap_or(self.default_driver);
        let tree = self.tree(driver);
        let path = tree
            .pod(pod.spec.qos, &pod.uid)
            .map_err(|error| ensure_error(&error))?;
        match self.ensure_kubepods(driver) {
            // Pods still run: the task of node allocatable retries, and records an event.
            Err(error @ NodeCgroupError::Values(_)) => {
                info!(cgroup = tree.kubepods().as_str(), error = %ErrorChain(&error), "Failed to set values of a cgroup");
            }
            ensured => ensured.map_err(|error| ensure_error(&error))?,
        }
        self.ensure_tiers(driver)?;

        let (began, exists) = (Instant::now(), self.fs.exists(&path));
        let ensured = self.ensure_pod(pod, driver, &path, exists);
        let change = match exists {
            true => CgroupChange::Update,
            false => CgroupChange::Create,
        };
        self.metrics.pods.cgroup_changed(change, began.elapsed());
        ensured
    }

    /// See [`Self::ensure`]. Those above exist.
    fn ensure_pod(
        &self,
        pod: &Pod,
        driver: CgroupDriver,
        path: &CgroupPath,
        exists: bool,
    ) -> Result<(), HostError> {
        let values = supported(driver, pod_values(pod, &self.pod_settings));
        // Setting the remaining limits does not lift those that an edit has removed.
        let lifted = lifted_limits(&values, &self.pod_settings);
        if !exists {
            self.leave_other_tiers(pod, driver);
        }
        let all = values.clone().or(lifted.clone());
        let description = format!("Kubernetes pod {}", pod.name);
        self.ensure_slice(driver, path, &description, &all)?;
        if exists {
            self.write(path, &lifted);
        } else {
            self.create(path)?;
        }
        self.fs
            .write(path, &values)
            .map_err(|error| ensure_error(&error))
    }

    fn ensure_tiers(&self, driver: CgroupDriver) -> Result<(), HostError> {
        // Held until the values are written, or an older computation could overwrite a newer one.
        // Only blocking threads wait for this lock.
        let mut known = self.tiers.lock();
        // Before the pods are read: a pod that is tracked later must cause an update.
        self.has_tiers.store(true, Ordering::SeqCst);
        for tier in self.tiers(driver) {
            self.ensure_slice(driver, &tier.path, tier.description, &tier.values)?;
            self.create(&tier.path)?;
            self.write_tier(&tier);
            known.insert(tier.path, tier.values);
        }
        Ok(())
    }

    /// Updates the values of existing tiers after pods were added, changed or removed. A failure is
    /// only logged; the next change of a pod retries.
    pub(super) fn update_tiers(&self) {
        // Before the pods are read: a later change must cause another update.
        self.tiers_due.store(false, Ordering::SeqCst);
        let mut known = self.tiers.lock();
        for driver in [CgroupDriver::Cgroupfs, CgroupDriver::Systemd] {
            // Before the tiers, which have a part of the memory that is protected in it.
            if self.pod_settings.memory_qos.is_some()
                && known.contains_key(self.tree(driver).tier(QosClass::Burstable))
                && let Err(error) = self.ensure_kubepods(driver)
            {
                info!(error = %ErrorChain(&error), "Failed to update the cgroup of all pods");
            }
            for tier in self.tiers(driver) {
                let Some(values) = known.get_mut(&tier.path) else {
                    continue;
                };
                // `ensure` creates a missing one.
                if *values == tier.values || !self.fs.exists(&tier.path) {
                    continue;
                }
                let began = Instant::now();
                let ensured = self.ensure_slice(driver, &tier.path, tier.description, &tier.values);
                if ensured.is_ok() {
                    self.write_tier(&tier);
                }
                let pods = &self.metrics.pods;
                pods.cgroup_changed(CgroupChange::Update, began.elapsed());
                match ensured {
                    Ok(()) => *values = tier.values,
                    Err(error) => {
                        info!(cgroup = tier.path.as_str(), %error, "Failed to update a QoS tier");
                    }
                }
            }
        }
    }

    /// Writes the values of a tier. One that uses more memory than it may have is kept from growing
    /// (kubelet: `retrySetMemoryReserve`).
    fn write_tier(&self, tier: &Tier) {
        let Err(error) = self.fs.write(&tier.path, &tier.values) else {
            return;
        };
        info!(cgroup = tier.path.as_str(), error = %ErrorChain(&error), "Failed to set values of a cgroup");
        let usage = || {
            let stats = self.fs.stats(&tier.path, StatsScope::Usage).ok()?;
            Some(stats.memory?.usage)
        };
        if let (Some(limit), Some(usage)) = (tier.values.memory_limit, usage())
            && usage > limit
        {
            let values = CgroupValues {
                memory_limit: Some(usage),
                ..CgroupValues::default()
            };
            self.write(&tier.path, &values);
        }
    }

    /// The pods of the node.
    fn tracked(&self) -> Vec<Arc<Pod>> {
        self.pods.lock().values().cloned().collect()
    }

    fn tier_settings(&self) -> TierSettings<'_> {
        TierSettings {
            page_sizes: &self.pod_settings.page_sizes,
            memory_qos: self.pod_settings.memory_qos,
            memory_reserved: self.memory_reserved,
            allocatable: self.unreserved_memory,
        }
    }

    /// The desired tiers for the current pods.
    fn tiers(&self, driver: CgroupDriver) -> Vec<Tier> {
        let tree = self.tree(driver);
        let pods = self.tracked();
        let requests = QosRequests::of(pods.iter().map(AsRef::as_ref));
        let settings = self.tier_settings();
        let tier = |qos, description| {
            let pods = pods.iter().map(AsRef::as_ref);
            Some(Tier {
                path: tree.tier(qos).clone(),
                description,
                values: tier_values(qos, pods, requests, &settings)?,
            })
        };
        [
            tier(QosClass::Burstable, "Kubernetes pods, Burstable"),
            tier(QosClass::BestEffort, "Kubernetes pods, BestEffort"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// With the systemd driver, starts the slice or sets its limits. The values must still be written
    /// to the cgroup: systemd has no property for huge pages, may answer before it writes the others,
    /// and does not report values that the kernel rejects.
    fn ensure_slice(
        &self,
        driver: CgroupDriver,
        path: &CgroupPath,
        description: &str,
        values: &CgroupValues,
    ) -> Result<(), HostError> {
        let started = self.start_slice(driver, path, description, values);
        started.map_err(|error| ensure_error(&error))
    }

    /// See [`Self::ensure_slice`].
    fn start_slice(
        &self,
        driver: CgroupDriver,
        path: &CgroupPath,
        description: &str,
        values: &CgroupValues,
    ) -> Result<(), SystemdError> {
        if driver != CgroupDriver::Systemd {
            return Ok(());
        }
        let exists = self.fs.exists(path);
        self.slices.ensure(path, exists, description, values)
    }

    /// Removes the pod's cgroups in other tiers, which it may have left by an edit.
    fn leave_other_tiers(&self, pod: &Pod, driver: CgroupDriver) {
        for qos in QosClass::ALL {
            let Ok(path) = self.tree(driver).pod(qos, &pod.uid) else {
                continue;
            };
            if qos != pod.spec.qos
                && let Err(error) = self.remove_one(driver, &path)
            {
                info!(cgroup = path.as_str(), %error, "Failed to remove the old cgroup of a pod");
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

    /// Memory and processes of a pod. `None` if they can't be read; a pod without a cgroup runs
    /// nothing.
    pub(super) fn usage(&self, pod: &Pod) -> Option<PodUsage> {
        if !self.enabled {
            return None;
        }
        for tree in [&self.systemd, &self.cgroupfs] {
            let path = tree.pod(pod.spec.qos, &pod.uid).ok()?;
            match self.fs.stats(&path, StatsScope::UsageAndPids) {
                Ok(stats) => {
                    return Some(PodUsage {
                        memory: stats.memory.unwrap_or_default().working_set,
                        pids: stats.pids.unwrap_or_default().current,
                        ..PodUsage::default()
                    });
                }
                Err(error) if error.is_gone() => {}
                Err(error) => {
                    info!(cgroup = path.as_str(), error = %ErrorChain(&error), "Failed to read the usage of a pod");
                    return None;
                }
            }
        }
        Some(PodUsage::default())
    }

    /// Kills leftover processes in a container's own cgroup, whatever the tier of its pod is or
    /// was. Returns their number.
    pub(super) fn kill_container(&self, uid: &PodUid, id: &ContainerId) -> usize {
        if !self.enabled {
            return 0;
        }
        let mut killed = 0;
        for tree in [&self.cgroupfs, &self.systemd] {
            for qos in QosClass::ALL {
                let Ok(pod) = tree.pod(qos, uid) else {
                    continue;
                };
                let names = self.fs.children(&pod).unwrap_or_default();
                let own = names
                    .iter()
                    .filter(|name| is_of_container(name, id.as_str()));
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

    /// Removes the pod's cgroup, whatever its tier and driver are or were, and subtracts its requests
    /// from its tier. Returns true if it is gone.
    ///
    /// The runtime has no sandbox or container of the pod any more when this is called. If the
    /// cgroup is in use at two attempts, the runtime has lost a process, as when the creation of a
    /// sandbox is interrupted; it is killed (kubelet: pods' cgroups are emptied in the same way).
    pub(super) fn remove(&self, uid: &PodUid) -> Result<bool, HostError> {
        self.pods.lock().remove(uid);
        if !self.enabled {
            return Ok(true);
        }
        let began = Instant::now();
        let removed = self.remove_everywhere(uid);
        let pods = &self.metrics.pods;
        pods.cgroup_changed(CgroupChange::Destroy, began.elapsed());
        let gone = removed?;
        if gone {
            self.in_use.lock().remove(uid);
        } else {
            self.in_use.lock().insert(uid.clone());
        }
        self.update_tiers();
        Ok(gone)
    }

    /// See [`Self::remove`].
    fn remove_everywhere(&self, uid: &PodUid) -> Result<bool, HostError> {
        let again = self.in_use.lock().contains(uid);
        let mut gone = true;
        for driver in [CgroupDriver::Cgroupfs, CgroupDriver::Systemd] {
            for qos in QosClass::ALL {
                let Ok(path) = self.tree(driver).pod(qos, uid) else {
                    continue;
                };
                if again {
                    self.kill_lost(&path);
                }
                gone &= self.remove_one(driver, &path)?;
            }
        }
        Ok(gone)
    }

    /// Removes one cgroup of a pod, unless processes are in it. Returns true if it is gone.
    fn remove_one(&self, driver: CgroupDriver, path: &CgroupPath) -> Result<bool, HostError> {
        let failed =
            |error: &(dyn std::error::Error + 'static)| HostError::new("FailedRemoveCgroup", error);
        let is_slice = driver == CgroupDriver::Systemd
            && (self.slices.has(path) || self.fs.exists_somewhere(path));
        if is_slice {
            let processes = self.fs.processes(path).map_err(|error| failed(&error))?;
            // Stopping the slice would terminate them, and wait up to 90 s for it.
            if !processes.is_empty() {
                return Ok(false);
            }
            self.slices.stop(path).map_err(|error| failed(&error))?;
        }
        // systemd leaves the cgroup in hierarchies of version 1 that it does not manage.
        let removed = self.fs.remove(path).map_err(|error| failed(&error))?;
        Ok(matches!(removed, CgroupRemoval::Gone))
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

/// The values that a driver can set.
fn supported(driver: CgroupDriver, values: CgroupValues) -> CgroupValues {
    match driver {
        CgroupDriver::Cgroupfs => values,
        CgroupDriver::Systemd => values.under_systemd(),
    }
}

#[cfg(test)]
mod tests;
