//! The node's host in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rubelet_api::{container::Container, objects::PodObjects, pod::Pod};
use rubelet_base::{ContainerId, PodName, PodUid};
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_cri::v1;
use rubelet_node_state::host_error::{HostError, HostWarning};
use rubelet_pod_plan::cri_config::{
    ContainerFiles, SandboxInputs,
    env::{EnvContext, EnvFiles},
};
use rubelet_sim::{EntryKind, Sim};

use crate::pod_host::PodHost;

/// Records what is created and removed, and fails where a test says so. Like a disk, it outlives
/// agents.
pub(super) struct FakeHost {
    sim: Sim,
    state: Mutex<HostState>,
}

#[derive(Default)]
struct HostState {
    /// Pods with a directory.
    directories: BTreeSet<PodUid>,
    /// UIDs in the order in which their pods were cleaned up.
    cleaned: Vec<PodUid>,
    /// UIDs in the order in which the volumes of their pods were removed.
    without_volumes: Vec<PodUid>,
    /// Position in the oracle's record from which a pod's logs exist: earlier ones were removed
    /// with the pod.
    logs_from: BTreeMap<PodUid, usize>,
    /// Logs that were removed one by one.
    removed_logs: BTreeSet<(PodUid, String, u32)>,
    /// The error of `prepare`, by pod name.
    prepare_fails: BTreeMap<String, String>,
    /// The error of `clean_up`, by pod name.
    clean_up_fails: BTreeMap<String, String>,
    /// How many more times `prepare` panics, by pod name.
    panics: BTreeMap<String, usize>,
    /// The objects that a pod's volumes were last written from.
    written: BTreeMap<PodUid, PodObjects>,
    /// The pod of each volume update.
    refreshed: Vec<PodUid>,
    /// How often the tail of a log was read.
    tails: BTreeMap<(PodUid, String, u32), usize>,
    /// The log directory; nothing is written there.
    log_dir: PathBuf,
}

impl FakeHost {
    pub(super) fn new(sim: &Sim) -> Self {
        Self {
            sim: sim.clone(),
            state: Mutex::default(),
        }
    }

    /// Sets the log directory.
    pub(super) fn set_log_dir(&self, directory: &Path) {
        directory.clone_into(&mut self.state().log_dir);
    }

    /// Makes `prepare` fail with this message, or succeed again with `None`.
    pub(super) fn fail_prepare(&self, name: &str, message: Option<&str>) {
        set(&mut self.state().prepare_fails, name, message);
    }

    /// Makes `clean_up` fail with this message, or succeed again with `None`.
    pub(super) fn fail_clean_up(&self, name: &str, message: Option<&str>) {
        set(&mut self.state().clean_up_fails, name, message);
    }

    /// Makes the next `times` calls of `prepare` panic.
    pub(super) fn panic_in_prepare(&self, name: &str, times: usize) {
        self.state().panics.insert(name.to_owned(), times);
    }

    /// How many more times `prepare` panics.
    pub(super) fn panics_left(&self, name: &str) -> usize {
        self.state().panics.get(name).copied().unwrap_or(0)
    }

    /// How often the tail of this log was read.
    pub(super) fn tails_read(&self, uid: &str, container: &str, count: u32) -> usize {
        let key = (PodUid::from(uid), container.to_owned(), count);
        self.state().tails.get(&key).copied().unwrap_or(0)
    }

    /// The objects that the pod's volumes were last written from.
    pub(super) fn written(&self, uid: &str) -> PodObjects {
        let state = self.state();
        let written = state.written.get(&PodUid::from(uid));
        written.cloned().unwrap_or_default()
    }

    /// How often the pod's volumes were updated.
    pub(super) fn refreshed(&self, uid: &str) -> usize {
        let state = self.state();
        let of = state.refreshed.iter();
        of.filter(|of| of.as_str() == uid).count()
    }

    pub(super) fn has_directory(&self, uid: &str) -> bool {
        self.state().directories.contains(uid)
    }

    /// How often the pod was cleaned up.
    pub(super) fn cleaned(&self, uid: &str) -> usize {
        let state = self.state();
        state.cleaned.iter().filter(|of| of.as_str() == uid).count()
    }

    /// How often the pod's volumes were removed while its directory stayed.
    pub(super) fn volumes_removed(&self, uid: &str) -> usize {
        let state = self.state();
        let of = state.without_volumes.iter();
        of.filter(|of| of.as_str() == uid).count()
    }

    fn state(&self) -> MutexGuard<'_, HostState> {
        self.state.lock()
    }
}

fn set(of: &mut BTreeMap<String, String>, name: &str, message: Option<&str>) {
    match message {
        Some(message) => of.insert(name.to_owned(), message.to_owned()),
        None => of.remove(name),
    };
}

/// The name in the manifest, without the node name as suffix.
fn manifest_name(pod: &PodName) -> &str {
    pod.name.strip_suffix("-n").unwrap_or(&pod.name)
}

#[async_trait]
impl PodHost for FakeHost {
    fn track(&self, _: &Arc<Pod>) {}

    async fn prepare(
        &self,
        pod: &Arc<Pod>,
        _: Option<CgroupDriver>,
        objects: &PodObjects,
    ) -> Result<(), HostError> {
        let name = manifest_name(&pod.name);
        let panics = {
            let mut state = self.state();
            state.panics.get_mut(name).is_some_and(|left| {
                let panics = *left > 0;
                *left = left.saturating_sub(1);
                panics
            })
        };
        assert!(!panics, "panic of {name} that the test asked for");
        let mut state = self.state();
        if let Some(message) = state.prepare_fails.get(name).cloned() {
            let reason = "FailedMount";
            return Err(HostError { reason, message });
        }
        state.directories.insert(pod.uid.clone());
        state.written.insert(pod.uid.clone(), objects.clone());
        Ok(())
    }

    async fn refresh(&self, pod: &Arc<Pod>, objects: &PodObjects) -> Result<(), HostError> {
        let mut state = self.state();
        assert!(
            state.directories.contains(&pod.uid),
            "volumes of a pod that was cleaned up are not written"
        );
        state.refreshed.push(pod.uid.clone());
        state.written.insert(pod.uid.clone(), objects.clone());
        Ok(())
    }

    async fn sandbox_inputs(
        &self,
        pod: &Arc<Pod>,
        attempt: u32,
        _: Option<CgroupDriver>,
    ) -> Result<(SandboxInputs, Vec<HostWarning>), HostError> {
        let inputs = SandboxInputs {
            attempt,
            log_directory: format!("/logs/{}", pod.uid),
            hostname: pod.name.name.to_string(),
            dns: v1::DnsConfig::default(),
            cgroup_parent: format!("/pods/{}", pod.uid),
            resources: None,
            users: None,
        };
        Ok((inputs, Vec::new()))
    }

    async fn container_files(
        &self,
        _: &Arc<Pod>,
        _: &str,
        _: &[(String, String)],
        _: &[Box<str>],
    ) -> Result<ContainerFiles, HostError> {
        Ok(ContainerFiles::default())
    }

    async fn env_files(&self, _: &Arc<Pod>, _: &str) -> Result<EnvFiles, HostError> {
        Ok(EnvFiles::new())
    }

    fn resources(&self, _: &Pod, _: &Container) -> v1::LinuxContainerResources {
        v1::LinuxContainerResources::default()
    }

    fn env_context(&self, pod_ips: Vec<Box<str>>) -> EnvContext {
        EnvContext {
            pod_ips,
            ..EnvContext::default()
        }
    }

    fn seccomp(&self) -> (String, bool) {
        (String::new(), false)
    }

    fn thermal_throttle(&self) -> Vec<String> {
        Vec::new()
    }

    /// Each container that was started has a log, as with a real runtime.
    async fn logged_restart_count(&self, pod: &Arc<Pod>, container: &str) -> u32 {
        let state = self.state();
        let from = state.logs_from.get(&pod.uid).copied().unwrap_or(0);
        let oracle = self.sim.oracle();
        let logs = oracle.entries().iter().skip(from).filter_map(|entry| {
            let EntryKind::ContainerStarted(of) = &entry.what else {
                return None;
            };
            let key = (pod.uid.clone(), container.to_owned(), of.attempt);
            let there = of.pod_uid == pod.uid.as_str()
                && of.name == container
                && !state.removed_logs.contains(&key);
            there.then_some(of.attempt)
        });
        logs.max().map_or(0, |newest| newest + 1)
    }

    async fn link_log(&self, _: &Arc<Pod>, _: &str, _: &ContainerId, _: u32) {}

    async fn remove_logs(&self, pod: &Arc<Pod>, container: &str, _: &ContainerId, count: u32) {
        let key = (pod.uid.clone(), container.to_owned(), count);
        self.state().removed_logs.insert(key);
    }

    async fn kill_leftovers(&self, _: &PodUid, _: &ContainerId) -> usize {
        0
    }

    async fn remove_volumes(&self, uid: &PodUid) -> Result<(), HostError> {
        let mut state = self.state();
        state.written.remove(uid);
        state.without_volumes.push(uid.clone());
        Ok(())
    }

    async fn clean_up(&self, name: &PodName, uid: &PodUid) -> Result<(), HostError> {
        let mut state = self.state();
        if let Some(message) = state.clean_up_fails.get(manifest_name(name)).cloned() {
            let reason = "FailedCleanUp";
            return Err(HostError { reason, message });
        }
        state.directories.remove(uid);
        state.cleaned.push(uid.clone());
        let mark = self.sim.oracle().mark();
        state.logs_from.insert(uid.clone(), mark);
        state.removed_logs.retain(|(of, ..)| of != uid);
        Ok(())
    }

    async fn log_tail(
        &self,
        pod: &Pod,
        container: &str,
        count: u32,
        lines: u64,
        _: usize,
    ) -> Vec<Box<str>> {
        let mut state = self.state();
        let key = (pod.uid.clone(), container.to_owned(), count);
        *state.tails.entry(key).or_default() += 1;
        let log = self.sim.log(pod.uid.as_str(), container, count);
        let lines = usize::try_from(lines).expect("few lines");
        let kept = log.iter().skip(log.len().saturating_sub(lines));
        kept.map(|line| line.as_str().into()).collect()
    }

    fn log_path(&self, pod: &Pod, container: &str, count: u32) -> PathBuf {
        let logs = self.state().log_dir.clone();
        logs.join(format!("{}/{container}/{count}.log", pod.uid))
    }

    async fn pods_on_disk(&self) -> Vec<PodUid> {
        self.state().directories.iter().cloned().collect()
    }
}
