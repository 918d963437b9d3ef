//! [`PodHost`] on the real host: volumes, cgroups and log files. Blocking work runs on tokio's
//! blocking threads.

mod cgroups;
mod directories;
mod files;
mod usage;
mod users;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_api::{
    container::{Container, EnvValue, EnvVar},
    downward::Allocatable,
    objects::PodObjects,
    pod::Pod,
};
use rubelet_base::{ContainerId, ErrorChain, PodName, PodUid, event_reason};
use rubelet_cgroup_plan::{CgroupDriver, CgroupLayout, CgroupPath};
use rubelet_cri::v1;
use rubelet_host::{CgroupFs, Machine, cgroup::OomGroupFile};
use rubelet_logs::layout::PodLogDir;
pub use rubelet_node_plan::SwapBehavior;
use rubelet_node_plan::{
    ContainerSettings, KubepodsAmounts, container_limits, container_resources,
    memory_qos::MemoryQos,
    node_allocatable::{CgroupEnforcement, ReservedCgroup},
};
use rubelet_node_state::{
    host_error::{HostError, HostWarning},
    metrics::NodeMetrics,
    node_ips::NodeIps,
};
use rubelet_pod_plan::cri_config::{
    ContainerFiles, SandboxInputs,
    env::{EnvContext, EnvFiles},
};
use rubelet_volumes::MountedVolumes;
pub use rubelet_volumes::VolumeQuotas;
use tokio::{sync::Semaphore, task::spawn_blocking};
use tracing::warn;

use crate::{
    node_allocatable::NodeCgroups,
    pod_host::{PodFiles, PodHost},
};

/// Maximum number of concurrent changes to cgroups of pods. With the systemd driver each may wait for
/// systemd, and would otherwise take all threads from other work.
const CGROUP_CHANGES: usize = 8;

/// Properties of the host, and settings of pods on it.
#[derive(Debug, Clone)]
pub struct HostSettings {
    /// `--root-dir`.
    pub root: PathBuf,
    /// `podLogsDir`.
    pub pod_logs: PathBuf,
    /// Directory with links to container logs for log collectors: `/var/log/containers`.
    pub container_logs: PathBuf,
    /// Name of the node.
    pub node_name: Arc<str>,
    /// Addresses of the node.
    pub node_ips: NodeIps,
    /// The machine.
    pub machine: Machine,
    /// Resources that pods can use.
    pub allocatable: Allocatable,
    /// Memory of the machine that is not reserved, in bytes.
    pub unreserved_memory: u64,
    /// The feature gate MemoryQoS; `None` if it is off, and with cgroup version 1.
    pub memory_qos: Option<MemoryQos>,
    /// `qosReserved` of memory, in percent.
    pub memory_reserved: Option<u8>,
    /// What all pods may use together.
    pub kubepods: KubepodsAmounts,
    /// Cgroups of others that are limited to their reservations.
    pub reserved_cgroups: Vec<ReservedCgroup>,
    /// Its cgroups.
    pub cgroups: CgroupFs,
    /// `cgroupRoot`.
    pub cgroup_root: String,
    /// `cgroupsPerQOS`.
    pub cgroups_per_qos: bool,
    /// `cgroupDriver`; used only for runtimes that do not report their driver.
    pub cgroup_driver: CgroupDriver,
    /// `cpuCFSQuota`.
    pub cpu_cfs_quota: bool,
    /// `cpuCFSQuotaPeriod`.
    pub cpu_cfs_quota_period: Duration,
    /// `podPidsLimit`.
    pub pod_pids_limit: Option<u64>,
    /// `singleProcessOOMKill`; defaults to true for cgroup version 1 only.
    pub single_process_oom_kill: Option<bool>,
    /// `clusterDNS`.
    pub cluster_dns: Vec<String>,
    /// `clusterDomain`.
    pub cluster_domain: String,
    /// `resolvConf`.
    pub resolv_conf: String,
    /// `seccompDefault`.
    pub seccomp_default: bool,
    /// `allowedUnsafeSysctls`.
    pub allowed_unsafe_sysctls: Vec<String>,
    /// `memorySwap.swapBehavior`.
    pub swap_behavior: SwapBehavior,
    /// `userNamespaces.idsPerPod`.
    pub user_ids_per_pod: u32,
    /// Project quotas of volumes.
    pub volume_quotas: VolumeQuotas,
    /// `maxPods`.
    pub max_pods: u32,
    /// Metrics of the node.
    pub metrics: Arc<NodeMetrics>,
}

/// The real host. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LocalHost {
    inner: Arc<LocalHostState>,
}

#[derive(Debug)]
struct LocalHostState {
    settings: HostSettings,
    container_settings: ContainerSettings,
    cgroups: cgroups::PodCgroups,
    cgroup_changes: Arc<Semaphore>,
    users: users::PodUsers,
    /// Paths of prepared volumes.
    mounted: Mutex<BTreeMap<PodUid, Arc<MountedVolumes>>>,
}

impl LocalHost {
    /// Creates the host without changing anything on it.
    ///
    /// # Errors
    /// `cgroupRoot` can't be the name of a cgroup.
    pub fn new(settings: HostSettings) -> Result<Self, HostError> {
        Self::with_systemd(settings, Box::new(cgroups::MachineSystemd))
    }

    fn with_systemd(
        settings: HostSettings,
        systemd: Box<dyn cgroups::SliceService>,
    ) -> Result<Self, HostError> {
        let layout = settings.cgroups.layout();
        let cgroups = cgroups::PodCgroups::new(&settings, systemd)?;
        let container_settings = ContainerSettings {
            cgroup_layout: layout,
            cpu_cfs_quota: settings.cpu_cfs_quota,
            cpu_cfs_quota_period_us: micros(settings.cpu_cfs_quota_period),
            single_process_oom_kill: settings
                .single_process_oom_kill
                .unwrap_or(layout != CgroupLayout::V2),
            memory_capacity: settings.machine.memory,
            swap_capacity: settings.machine.swap,
            swap_controller: false,
            swap_behavior: settings.swap_behavior,
            page_sizes: settings
                .machine
                .hugepages
                .iter()
                .map(|pool| pool.page_size)
                .collect(),
            memory_qos: settings.memory_qos,
        };
        Ok(Self {
            inner: Arc::new(LocalHostState {
                users: users::PodUsers::new(&settings),
                settings,
                container_settings,
                cgroups,
                cgroup_changes: Arc::new(Semaphore::new(CGROUP_CHANGES)),
                mounted: Mutex::default(),
            }),
        })
    }

    /// The cgroups that may be that of all pods, one for each driver.
    #[must_use]
    pub fn kubepods(&self) -> Vec<CgroupPath> {
        self.inner.cgroups.kubepods()
    }

    /// Whether an OOM kill is to end whole containers.
    #[must_use]
    pub(crate) fn kills_groups(&self) -> bool {
        self.inner.container_settings.kills_groups()
    }

    /// The files that say so, of these containers of a pod whose cgroups are scopes of systemd.
    pub(crate) async fn oom_groups(
        &self,
        pod: Arc<Pod>,
        containers: Vec<ContainerId>,
    ) -> Vec<(ContainerId, OomGroupFile)> {
        self.blocking(move |inner| inner.cgroups.oom_groups(&pod, &containers))
            .await
    }

    /// Lets OOM kills end whole containers; returns for how many that was not so. What is gone is skipped.
    pub(crate) async fn enable_oom_groups(&self, files: Vec<OomGroupFile>) -> usize {
        if files.is_empty() {
            return 0;
        }
        self.blocking(move |_| {
            let enabled = files.iter().map(|file| file.enable().unwrap_or(false));
            enabled.filter(|enabled| *enabled).count()
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&LocalHostState) -> T + Send + 'static,
    ) -> T {
        let inner = Arc::clone(&self.inner);
        match spawn_blocking(move || work(&inner)).await {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The agent stops, and the caller with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Like [`Self::blocking`], for changes to cgroups: see [`CGROUP_CHANGES`].
    async fn on_cgroups<T: Send + 'static>(
        &self,
        work: impl FnOnce(&LocalHostState) -> T + Send + 'static,
    ) -> T {
        let permit = Arc::clone(&self.inner.cgroup_changes).acquire_owned().await;
        self.blocking(move |inner| {
            // Released when the work ends, even if the caller is gone.
            let _permit = permit;
            work(inner)
        })
        .await
    }

    fn log_dir(&self, pod: &Pod) -> Result<PodLogDir, HostError> {
        self.inner.log_dir(&pod.name, &pod.uid)
    }
}

impl LocalHostState {
    fn log_dir(&self, name: &PodName, uid: &PodUid) -> Result<PodLogDir, HostError> {
        PodLogDir::new(&self.settings.pod_logs, name, uid)
            .map_err(|error| HostError::sandbox(&error))
    }
}

impl NodeCgroups for LocalHost {
    fn enforce(&self, driver: Option<CgroupDriver>) -> Vec<CgroupEnforcement> {
        self.inner.cgroups.enforce(driver)
    }
}

#[async_trait]
impl PodHost for LocalHost {
    fn track(&self, pod: &Arc<Pod>) {
        if self.inner.cgroups.track(pod) {
            let host = self.clone();
            tokio::spawn(async move {
                host.on_cgroups(|inner| inner.cgroups.update_tiers()).await;
            });
        }
    }

    async fn prepare(
        &self,
        pod: &Arc<Pod>,
        driver: Option<CgroupDriver>,
        objects: &PodObjects,
    ) -> Result<(), HostError> {
        let of = Arc::clone(pod);
        self.on_cgroups(move |inner| directories::prepare_cgroup(inner, &of, driver))
            .await?;
        let (pod, objects) = (Arc::clone(pod), objects.clone());
        self.blocking(move |inner| directories::prepare(inner, &pod, &objects))
            .await
    }

    async fn refresh(&self, pod: &Arc<Pod>, objects: &PodObjects) -> Result<(), HostError> {
        let (pod, objects) = (Arc::clone(pod), objects.clone());
        self.blocking(move |inner| directories::refresh(inner, &pod, &objects))
            .await
    }

    async fn sandbox_inputs(
        &self,
        pod: &Arc<Pod>,
        attempt: u32,
        driver: Option<CgroupDriver>,
    ) -> Result<(SandboxInputs, Vec<HostWarning>), HostError> {
        let pod = Arc::clone(pod);
        self.blocking(move |inner| files::sandbox_inputs(inner, &pod, attempt, driver))
            .await
    }

    async fn container_files(
        &self,
        pod: &Arc<Pod>,
        container: &str,
        env: &[(String, String)],
        pod_ips: &[Box<str>],
    ) -> Result<ContainerFiles, HostError> {
        let (pod, name) = (Arc::clone(pod), container.to_owned());
        let (env, ips) = (env.to_vec(), pod_ips.to_vec());
        self.blocking(move |inner| match pod.spec.container(&name) {
            Some(container) => files::container_files(inner, &pod, container, &env, &ips),
            None => Err(HostError {
                reason: event_reason::FAILED_MOUNT,
                message: format!("the pod has no container {name:?}"),
            }),
        })
        .await
    }

    async fn env_files(&self, pod: &Arc<Pod>, container: &str) -> Result<EnvFiles, HostError> {
        let named = pod.spec.container(container);
        let from_file = |one: &EnvVar| matches!(one.value, EnvValue::FileKey(_));
        if !named.is_some_and(|container| container.env.iter().any(from_file)) {
            return Ok(EnvFiles::new());
        }
        let (pod, name) = (Arc::clone(pod), container.to_owned());
        self.blocking(move |inner| files::env_files(inner, &pod, &name))
            .await
    }

    fn resources(&self, pod: &Pod, container: &Container) -> v1::LinuxContainerResources {
        // Only an existing cgroup shows whether swap can be limited.
        let swap_controller = self.inner.cgroups.limits_swap();
        let settings = ContainerSettings {
            swap_controller,
            ..self.inner.container_settings.clone()
        };
        limits(container_limits(pod, container, &settings))
    }

    fn env_context(&self, pod_ips: Vec<Box<str>>) -> EnvContext {
        let settings = &self.inner.settings;
        EnvContext {
            node_ips: settings.node_ips.texts(),
            pod_ips,
            allocatable_cpu: settings.allocatable.cpu,
            allocatable_memory: settings.allocatable.memory,
            files: EnvFiles::new(),
        }
    }

    fn seccomp(&self) -> (String, bool) {
        let settings = &self.inner.settings;
        (
            settings.root.join("seccomp").display().to_string(),
            settings.seccomp_default,
        )
    }

    // Not on a blocking thread, as sysfs is in memory. Read for each container, as processors are
    // hot-plugged.
    fn thermal_throttle(&self) -> Vec<String> {
        rubelet_host::thermal::thermal_throttle(Path::new("/"))
    }

    async fn logged_restart_count(&self, pod: &Arc<Pod>, container: &str) -> u32 {
        let (Ok(dir), name) = (self.log_dir(pod), container.to_owned()) else {
            return 0;
        };
        self.blocking(move |_| rubelet_logs::directories::next_attempt(&dir, &name).unwrap_or(0))
            .await
    }

    async fn link_log(&self, pod: &Arc<Pod>, container: &str, id: &ContainerId, count: u32) {
        let link = rubelet_logs::layout::link_name(&pod.name, container, id);
        let log = self.log_path(pod, container, count);
        self.blocking(move |inner| {
            let directory = &inner.settings.container_logs;
            if let Err(error) = rubelet_logs::links::create_link(directory, &link, &log) {
                warn!(link, error = %ErrorChain(&error), "Failed to create the link to a container log");
            }
        })
        .await;
    }

    async fn remove_logs(&self, pod: &Arc<Pod>, container: &str, id: &ContainerId, count: u32) {
        let link = rubelet_logs::layout::link_name(&pod.name, container, id);
        let (dir, name) = (self.log_dir(pod), container.to_owned());
        self.blocking(move |inner| {
            let directory = &inner.settings.container_logs;
            if let Err(error) = rubelet_logs::links::remove_link(directory, &link) {
                warn!(link, error = %ErrorChain(&error), "Failed to remove the link to a container log");
            }
            if let Ok(dir) = dir
                && let Err(error) = rubelet_logs::directories::remove_container_logs(&dir, &name, count)
            {
                warn!(container = name, error = %ErrorChain(&error), "Failed to remove container logs");
            }
        })
        .await;
    }

    async fn kill_leftovers(&self, uid: &PodUid, id: &ContainerId) -> usize {
        let (uid, id) = (uid.clone(), id.clone());
        self.blocking(move |inner| inner.cgroups.kill_container(&uid, &id))
            .await
    }

    async fn remove_volumes(&self, uid: &PodUid) -> Result<(), HostError> {
        let uid = uid.clone();
        self.blocking(move |inner| directories::remove_volumes(inner, &uid))
            .await
    }

    async fn clean_up(&self, name: &PodName, uid: &PodUid) -> Result<(), HostError> {
        let (name, of) = (name.clone(), uid.clone());
        let mut failed = self
            .blocking(move |inner| directories::clean_up(inner, &name, &of))
            .await;
        let of = uid.clone();
        failed.extend(
            self.on_cgroups(move |inner| directories::clean_up_cgroup(inner, &of))
                .await,
        );
        if !failed.is_empty() {
            return Err(HostError {
                reason: "FailedCleanUp",
                message: failed.join("; "),
            });
        }
        let uid = uid.clone();
        self.blocking(move |inner| users::release(inner, &uid))
            .await;
        Ok(())
    }

    async fn log_tail(
        &self,
        pod: &Pod,
        container: &str,
        count: u32,
        lines: u64,
        bytes: usize,
    ) -> Vec<Box<str>> {
        let path = self.log_path(pod, container, count);
        let tail = rubelet_logs::read::tail_of(path, bytes, lines).await;
        tail.unwrap_or_default().lines().map(Box::from).collect()
    }

    fn log_path(&self, pod: &Pod, container: &str, count: u32) -> PathBuf {
        match self.log_dir(pod).map(|dir| dir.log(container, count)) {
            Ok(Ok(path)) => path,
            // Names were validated when the pod was accepted; otherwise this path shows the bug.
            _ => self.inner.settings.pod_logs.join("invalid"),
        }
    }

    fn measured_files(&self, pod: &Pod) -> PodFiles {
        // A UID that is no name of a directory has none.
        directories::dirs(&self.inner, &pod.uid).map_or_else(
            |_| PodFiles::default(),
            |dirs| PodFiles {
                volumes: rubelet_volumes::measured(pod, &dirs),
                etc_hosts: Some(dirs.etc_hosts()),
            },
        )
    }

    async fn nameservers(&self, pod: &Arc<Pod>) -> Vec<IpAddr> {
        let pod = Arc::clone(pod);
        self.blocking(move |inner| files::nameservers(inner, &pod))
            .await
    }

    async fn pods_on_disk(&self) -> Vec<PodUid> {
        self.blocking(directories::pods_on_disk).await
    }
}

fn limits(limits: container_resources::ContainerLimits) -> v1::LinuxContainerResources {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    v1::LinuxContainerResources {
        cpu_period: signed(limits.cpu_period),
        cpu_quota: signed(limits.cpu_quota),
        cpu_shares: signed(limits.cpu_shares),
        memory_limit_in_bytes: signed(limits.memory_limit),
        memory_swap_limit_in_bytes: signed(limits.memory_swap_limit),
        oom_score_adj: limits.oom_score_adj,
        hugepage_limits: limits
            .hugepages
            .into_iter()
            .map(|(page_size, limit)| v1::HugepageLimit { page_size, limit })
            .collect(),
        unified: limits.unified,
        ..v1::LinuxContainerResources::default()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Reads a file of the host; `None` if it does not exist.
fn read_optional(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
