//! Queries of what a test node publishes and what its model runtime did.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rubelet_api::status::{ContainerState, ContainerStatus, Phase};
use rubelet_base::PodUid;
use rubelet_node_state::{events::Subject as EventSubject, pod_board::PodEntry};
use rubelet_sim::{EntryKind, Instance, Subject};

use super::{Node, pod_name};

/// What the node publishes.
impl Node {
    /// What is published of a pod.
    pub(in crate::tests) fn pod(&self, name: &str) -> Option<Arc<PodEntry>> {
        let rows = self.agent().pods.list();
        let name = pod_name(name);
        rows.into_iter()
            .map(|(_, _, entry)| entry)
            .find(|entry| entry.pod.name == name)
    }

    pub(in crate::tests) fn phase(&self, name: &str) -> Option<Phase> {
        self.pod(name).map(|entry| entry.status.phase)
    }

    /// What is published of a container, if anything is.
    pub(in crate::tests) fn container(&self, pod: &str, name: &str) -> Option<ContainerStatus> {
        let status = self.pod(pod)?.status.clone();
        let mut all = status.init_containers.into_iter().chain(status.containers);
        all.find(|container| *container.name == *name)
    }

    /// A container's state in short: `Running`, `Waiting CrashLoopBackOff`, `Terminated Error 1`;
    /// empty if nothing is published.
    pub(in crate::tests) fn state(&self, pod: &str, name: &str) -> String {
        match self.container(pod, name).map(|container| container.state) {
            None => String::new(),
            Some(ContainerState::Running { .. }) => "Running".to_owned(),
            Some(ContainerState::Waiting { reason, .. }) => format!("Waiting {reason}"),
            Some(ContainerState::Terminated(end)) => {
                format!("Terminated {} {}", end.reason, end.exit_code)
            }
        }
    }

    /// True if the pod and all its containers are published as running, and they do run.
    pub(in crate::tests) fn is_running(&self, name: &str) -> bool {
        let Some(entry) = self.pod(name) else {
            return false;
        };
        entry.status.phase == Phase::Running
            && entry.status.containers.iter().all(|container| {
                container.ready
                    && self
                        .sim
                        .running(entry.pod.uid.as_str(), &container.name)
                        .is_some()
            })
    }

    /// Events about a pod and its containers, oldest first, as `REASON MESSAGE`.
    pub(in crate::tests) fn events(&self, name: &str) -> Vec<String> {
        let name = pod_name(name);
        let mut events: Vec<_> = self.recorder.board().list();
        events.sort_by_key(|(_, version, event)| (event.first, *version));
        let about = events.into_iter().filter(|(_, _, event)| {
            matches!(&event.subject, EventSubject::Pod { name: of, .. } if *of == name)
        });
        about
            .map(|(_, _, event)| format!("{} {}", event.reason, event.message))
            .collect()
    }

    /// True if nothing is left of the pod with this UID: not in the runtime, not on the host, not
    /// in the records and not in what is published.
    pub(in crate::tests) fn is_gone(&self, uid: &str) -> bool {
        self.sim.sandboxes(uid).is_empty()
            && self.containers(uid).is_empty()
            && !self.host.has_directory(uid)
            && self.agent().pods.get(&PodUid::from(uid)).is_none()
    }

    /// A pod's containers in the runtime, oldest first.
    pub(in crate::tests) fn containers(&self, uid: &str) -> Vec<Instance> {
        let all = self.sim.containers().into_iter();
        all.filter(|container| container.pod_uid == uid).collect()
    }
}

/// What the model runtime recorded.
impl Node {
    /// When containers of this pod and name were started, since the simulation started.
    pub(in crate::tests) fn start_times(&self, uid: &str, name: &str) -> Vec<Duration> {
        let oracle = self.sim.oracle();
        let starts = oracle.entries().iter().filter(
            |entry| matches!(&entry.what, EntryKind::ContainerStarted(of) if of.pod_uid == uid && of.name == name),
        );
        starts.map(|entry| entry.at).collect()
    }

    /// When containers of this pod and name exited, since the simulation started.
    pub(in crate::tests) fn exit_times(&self, uid: &str, name: &str) -> Vec<Duration> {
        let oracle = self.sim.oracle();
        let ends = oracle.entries().iter().filter(
            |entry| matches!(&entry.what, EntryKind::ContainerExited { instance: of, .. } if of.pod_uid == uid && of.name == name),
        );
        ends.map(|entry| entry.at).collect()
    }

    /// When containers of this pod and name were sent SIGTERM, since the simulation started.
    pub(in crate::tests) fn term_times(&self, uid: &str, name: &str) -> Vec<Duration> {
        let oracle = self.sim.oracle();
        let terms = oracle.entries().iter().filter(
            |entry| matches!(&entry.what, EntryKind::SigtermSent(of) if of.pod_uid == uid && of.name == name),
        );
        terms.map(|entry| entry.at).collect()
    }

    /// Kills the running container of this pod and name, without a call of the agent.
    pub(in crate::tests) fn kill_container(&self, uid: &str, name: &str, code: i32) {
        let id = self.sim.running(uid, name).expect("it runs");
        self.sim.kill_container(&id, code, "");
    }

    /// Checks that nothing of this pod ever ran twice at the same time.
    pub(in crate::tests) fn assert_never_twice(&self, uid: &str) {
        let oracle = self.sim.oracle();
        assert!(
            oracle.max_ready_sandboxes(uid) <= 1,
            "more than one sandbox was ready:\n{oracle}"
        );
        let names: BTreeSet<_> = oracle
            .entries()
            .iter()
            .filter_map(|entry| match &entry.what {
                EntryKind::ContainerStarted(of) if of.pod_uid == uid => Some(of.name.clone()),
                _ => None,
            })
            .collect();
        for name in names {
            assert!(
                oracle.max_simultaneous(uid, &name) <= 1,
                "{name} ran more than once at a time:\n{oracle}"
            );
        }
    }

    /// Number of calls of one RPC so far, whatever their subject.
    pub(in crate::tests) fn calls(&self, call: &str) -> usize {
        self.sim.oracle().count(call, &Subject::any())
    }
}
