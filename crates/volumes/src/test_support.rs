//! Directories and pods for the tests of this crate.

use std::path::Path;

use rubelet_api::{
    container::{Container, PullPolicy, TerminationMessagePolicy},
    pod::{Pod, PodSource, PodSpec},
    resources::Resources,
    security::ContainerSecurity,
};
use rubelet_base::{PodName, PodUid};
use rubelet_host::{
    mount,
    mountinfo::{self, MountEntry},
};

use crate::dirs::PodDirs;

/// A private directory whose mounts are gone when the test ends, however it ends.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(
            tempfile::Builder::new()
                .prefix("rbt-volumes-")
                .tempdir()
                .unwrap(),
        )
    }

    /// `None` where the test can't run and was told to be skipped.
    #[track_caller]
    pub(crate) fn as_root() -> Option<Self> {
        if !rubelet_needs::root() {
            return None;
        }
        Some(Self::new())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The directory of a pod `u1` below a kubelet root of this directory.
    pub(crate) fn dirs(&self) -> PodDirs {
        PodDirs::new(&self.path().join("kubelet"), &PodUid::from("u1")).unwrap()
    }

    /// What is mounted below, the last one first.
    pub(crate) fn mounts(&self) -> Vec<MountEntry> {
        let mounts = mountinfo::read().unwrap();
        let dir = self.path().canonicalize().unwrap();
        mountinfo::at_or_below(&mounts, &dir)
            .into_iter()
            .cloned()
            .collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for entry in self.mounts() {
            let _ = mount::unmount(&entry.mount_point, true);
        }
    }
}

/// A pod `web` in the namespace `default` that asks for nothing.
pub(crate) fn pod() -> Pod {
    Pod {
        uid: PodUid::from("u1"),
        name: PodName::new("default", "web"),
        labels: Default::default(),
        annotations: Default::default(),
        generation: 0,
        created: None,
        deletion: None,
        source: PodSource::File,
        spec: PodSpec {
            node_name: "node".into(),
            ..PodSpec::default()
        },
        sandbox_definition: None,
        resize_infeasible: None,
        json: "{}".into(),
    }
}

/// A container that asks for nothing.
pub(crate) fn container(name: &str) -> Container {
    Container {
        name: name.into(),
        image: "busybox".into(),
        pull_policy: PullPolicy::IfNotPresent,
        command: vec![],
        args: vec![],
        working_dir: None,
        env_from: vec![],
        env: vec![],
        ports: vec![],
        resources: Resources::default(),
        restart_policy: None,
        restart_rules: vec![],
        liveness: None,
        readiness: None,
        startup: None,
        lifecycle: None,
        mounts: vec![],
        termination_message_path: "/dev/termination-log".into(),
        termination_message_policy: TerminationMessagePolicy::File,
        security: ContainerSecurity::default(),
        stdin: false,
        stdin_once: false,
        tty: false,
        hash: "0".into(),
        definition: None,
    }
}

/// Does not count operations on volumes.
pub(crate) fn ignored(_: crate::VolumeEvent) {}
