//! The host as pod tasks see it: directories, volumes, cgroups, log files.
//! [`crate::host::LocalHost`] is the real one; tests have their own.

use std::{net::IpAddr, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use rubelet_api::{container::Container, objects::PodObjects, pod::Pod};
use rubelet_base::{ContainerId, PodName, PodUid};
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_cri::v1;
use rubelet_node_state::host_error::{HostError, HostWarning};
use rubelet_pod_plan::cri_config::{
    ContainerFiles, SandboxInputs,
    env::{EnvContext, EnvFiles},
};
pub use rubelet_volumes::MeasuredVolume;

/// The files of a pod that take space beside those of its containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodFiles {
    /// Its volumes.
    pub volumes: Vec<MeasuredVolume>,
    /// Its `/etc/hosts`, which may be missing.
    pub etc_hosts: Option<PathBuf>,
}

/// The resources of a pod on the host that are not managed by the runtime.
#[async_trait]
pub trait PodHost: Send + Sync + 'static {
    /// Adds a pod whose task begins; its requests count among those of the node.
    fn track(&self, pod: &Arc<Pod>);

    /// Creates the pod's directories, volumes, cgroup and log directory; safe to repeat. `objects`
    /// are the contents of its volumes.
    ///
    /// # Errors
    /// A volume fails its check, or the host refuses.
    async fn prepare(
        &self,
        pod: &Arc<Pod>,
        driver: Option<CgroupDriver>,
        objects: &PodObjects,
    ) -> Result<(), HostError>;

    /// Updates the volumes with `objects` while containers use them; safe to repeat. The pod was
    /// prepared before, perhaps by an earlier agent.
    ///
    /// # Errors
    /// A required object is missing, or the host refuses.
    async fn refresh(&self, pod: &Arc<Pod>, objects: &PodObjects) -> Result<(), HostError>;

    /// The node's inputs for the sandbox, and warnings for operators, such as a resolver limit that
    /// was exceeded: reason and message.
    ///
    /// # Errors
    /// The host's resolver configuration or name can't be used.
    async fn sandbox_inputs(
        &self,
        pod: &Arc<Pod>,
        attempt: u32,
        driver: Option<CgroupDriver>,
    ) -> Result<(SandboxInputs, Vec<HostWarning>), HostError>;

    /// Creates the files of one container, and the directory of its logs; safe to repeat.
    ///
    /// # Errors
    /// A sub-path of a volume cannot be resolved, or the host refuses.
    async fn container_files(
        &self,
        pod: &Arc<Pod>,
        container: &str,
        env: &[(String, String)],
        pod_ips: &[Box<str>],
    ) -> Result<ContainerFiles, HostError>;

    /// Reads the files that a container's environment variables refer to.
    ///
    /// # Errors
    /// A volume is not mounted, or a file cannot be read.
    async fn env_files(&self, pod: &Arc<Pod>, container: &str) -> Result<EnvFiles, HostError>;

    /// Resource limits and CPU shares of a container.
    fn resources(&self, pod: &Pod, container: &Container) -> v1::LinuxContainerResources;

    /// The values of the node for environment variables.
    fn env_context(&self, pod_ips: Vec<Box<str>>) -> EnvContext;

    /// Directory of `Localhost` seccomp profiles, and whether containers get the runtime's default
    /// profile by default.
    fn seccomp(&self) -> (String, bool);

    /// The `thermal_throttle` directory in sysfs of each processor that has one now, which
    /// containers must not read.
    fn thermal_throttle(&self) -> Vec<String>;

    /// The next restart count, by the log files of a container that the runtime does not know.
    async fn logged_restart_count(&self, pod: &Arc<Pod>, container: &str) -> u32;

    /// Creates the link by which log collectors find the container's log.
    async fn link_log(&self, pod: &Arc<Pod>, container: &str, id: &ContainerId, count: u32);

    /// Removes logs and link of a container that the runtime no longer has.
    async fn remove_logs(&self, pod: &Arc<Pod>, container: &str, id: &ContainerId, count: u32);

    /// Kills leftover processes of a container that the runtime reports as exited; returns their
    /// number.
    async fn kill_leftovers(&self, uid: &PodUid, id: &ContainerId) -> usize;

    /// Unmounts and removes the volumes of a pod that has terminated; safe to repeat.
    ///
    /// # Errors
    /// Something is still in use.
    async fn remove_volumes(&self, uid: &PodUid) -> Result<(), HostError>;

    /// Removes everything that [`PodHost::prepare`] created; safe to repeat.
    ///
    /// # Errors
    /// Something is still in use.
    async fn clean_up(&self, name: &PodName, uid: &PodUid) -> Result<(), HostError>;

    /// The end of a container's log, at most `lines` lines and `bytes` bytes; empty if there is no
    /// log.
    async fn log_tail(
        &self,
        pod: &Pod,
        container: &str,
        count: u32,
        lines: u64,
        bytes: usize,
    ) -> Vec<Box<str>>;

    /// The path of a container's log.
    fn log_path(&self, pod: &Pod, container: &str, count: u32) -> PathBuf;

    /// The files of a pod whose space is measured.
    fn measured_files(&self, _pod: &Pod) -> PodFiles {
        PodFiles::default()
    }

    /// The nameservers in the resolv.conf of a pod; empty if the node's own cannot be read.
    async fn nameservers(&self, _pod: &Arc<Pod>) -> Vec<IpAddr> {
        Vec::new()
    }

    /// Pods that have a directory on this host.
    async fn pods_on_disk(&self) -> Vec<PodUid>;
}
