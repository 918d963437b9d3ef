//! What a pod needs from the host, as this crate sees it: directories, volumes, cgroups, log files.
//! [`crate::host::LocalHost`] does it for real; tests have their own.

use std::{net::IpAddr, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use rubelet_api::{container::Container, objects::PodObjects, pod::Pod};
use rubelet_base::{ContainerId, PodName, PodUid, cgroup::CgroupDriver};
use rubelet_cri::v1;
use rubelet_node_state::host_error::{HostError, HostWarning};
use rubelet_pod_plan::cri_config::{
    ContainerFiles, SandboxInputs,
    env::{EnvContext, EnvFiles},
};

/// What belongs to the pod on the host but is not in the runtime.
#[async_trait]
pub trait PodHost: Send + Sync + 'static {
    /// A pod is worked on from now on; its requests count among those of the node.
    fn track(&self, pod: &Arc<Pod>);

    /// Makes the pod's directories, volumes, cgroup and log directory; safe to repeat. What volumes are
    /// made from is in `objects`.
    ///
    /// # Errors
    /// A volume fails its check, or the host refuses.
    async fn prepare(
        &self,
        pod: &Arc<Pod>,
        driver: Option<CgroupDriver>,
        objects: &PodObjects,
    ) -> Result<(), HostError>;

    /// Writes volumes that are made from objects again, while containers use them; safe to repeat.
    /// The pod was prepared before, perhaps by an earlier agent.
    ///
    /// # Errors
    /// An object is missing that must not be, or the host refuses.
    async fn refresh(&self, pod: &Arc<Pod>, objects: &PodObjects) -> Result<(), HostError>;

    /// What the sandbox gets from the node. The second value lists what an operator should know,
    /// such as a resolver limit that was exceeded: reason and message.
    ///
    /// # Errors
    /// The host's resolver configuration or name can't be used.
    async fn sandbox_inputs(
        &self,
        pod: &Arc<Pod>,
        attempt: u32,
        driver: Option<CgroupDriver>,
    ) -> Result<(SandboxInputs, Vec<HostWarning>), HostError>;

    /// Makes the files of one container; safe to repeat.
    ///
    /// # Errors
    /// A part of a volume can't be resolved, or the host refuses.
    async fn container_files(
        &self,
        pod: &Arc<Pod>,
        container: &str,
        env: &[(String, String)],
        pod_ips: &[Box<str>],
    ) -> Result<ContainerFiles, HostError>;

    /// The files of variables that a container names, as they are now.
    ///
    /// # Errors
    /// A volume is not on the host, or what is at the path can't be read.
    async fn env_files(&self, pod: &Arc<Pod>, container: &str) -> Result<EnvFiles, HostError>;

    /// Limits and shares of a container.
    fn resources(&self, pod: &Pod, container: &Container) -> v1::LinuxContainerResources;

    /// The values of the node for environment variables.
    fn env_context(&self, pod_ips: Vec<Box<str>>) -> EnvContext;

    /// Directory of Localhost seccomp profiles, and whether all containers get the runtime's default.
    fn seccomp(&self) -> (String, bool);

    /// `thermal_throttle` of each processor that has it now, which containers must not read.
    fn thermal_throttle(&self) -> Vec<String>;

    /// The next restart count by the log files of a container that the runtime has no record of.
    async fn logged_restart_count(&self, pod: &Arc<Pod>, container: &str) -> u32;

    /// Makes the link by which log collectors find the container's log.
    async fn link_log(&self, pod: &Arc<Pod>, container: &str, id: &ContainerId, count: u32);

    /// Removes logs and link of a container that the runtime no longer has.
    async fn remove_logs(&self, pod: &Arc<Pod>, container: &str, id: &ContainerId, count: u32);

    /// Kills leftover processes of a container that the runtime considers dead; returns their
    /// number.
    async fn kill_leftovers(&self, uid: &PodUid, id: &ContainerId) -> usize;

    /// Unmounts and removes the volumes of a pod that has ended; safe to repeat.
    ///
    /// # Errors
    /// Something is still in use.
    async fn remove_volumes(&self, uid: &PodUid) -> Result<(), HostError>;

    /// Removes all that [`PodHost::prepare`] made; safe to repeat.
    ///
    /// # Errors
    /// Something is still in use.
    async fn clean_up(&self, name: &PodName, uid: &PodUid) -> Result<(), HostError>;

    /// The last lines of a container's log, at most so many and of at most so many bytes; nothing
    /// where there is no log.
    async fn log_tail(
        &self,
        pod: &Pod,
        container: &str,
        count: u32,
        lines: u64,
        bytes: usize,
    ) -> Vec<Box<str>>;

    /// Where the log of a container is.
    fn log_path(&self, pod: &Pod, container: &str, count: u32) -> PathBuf;

    /// The nameservers in the resolv.conf of a pod; none if the node's own can't be read.
    async fn nameservers(&self, _pod: &Arc<Pod>) -> Vec<IpAddr> {
        Vec::new()
    }

    /// Pods that have a directory on this host.
    async fn pods_on_disk(&self) -> Vec<PodUid>;
}
