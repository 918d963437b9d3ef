//! The compact status, read back from the Kubernetes form.

use jiff::Timestamp;
use rubelet_yaml::read_value;
use serde::Deserialize;
use serde_json::Value;

use crate::status::{
    Condition, ConditionStatus, ContainerState, ContainerStatus, ContainerUser, Phase, PodStatus,
    Terminated,
};

/// The status of a v1 Pod, such as the API server keeps it for a pod that this node ran before.
/// `None` where no node has written one yet: it has no phase or no start time; or where it is not
/// the status of a pod.
#[must_use]
pub fn status_from_json(status: &Value) -> Option<PodStatus> {
    let Wire {
        phase,
        reason,
        message,
        start_time,
        pod_ip,
        pod_ips,
        conditions,
        observed_generation,
        init_container_statuses,
        container_statuses,
        ephemeral_container_statuses,
    } = read_value::<Wire>(status).ok()?.value;
    let ips = pod_ips.into_iter().map(|one| one.ip);
    let mut ips: Vec<Box<str>> = ips.filter(|ip| !ip.is_empty()).collect();
    if ips.is_empty() && !pod_ip.is_empty() {
        ips.push(pod_ip);
    }
    // A container without a name does not belong to the pod.
    let containers = |list: Vec<Container>| {
        let named = list.into_iter().filter(|one| !one.name.is_empty());
        named.map(Into::into)
    };
    Some(PodStatus {
        phase: Phase::from_name(&phase)?,
        reason,
        message,
        start_time: start_time?,
        pod_ips: ips,
        conditions: conditions
            .into_iter()
            .filter_map(WireCondition::convert)
            .collect(),
        observed_generation,
        init_containers: containers(init_container_statuses).collect(),
        containers: containers(container_statuses).collect(),
        ephemeral_containers: containers(ephemeral_container_statuses).collect(),
    })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    phase: Box<str>,
    reason: Box<str>,
    message: Box<str>,
    start_time: Option<Timestamp>,
    #[serde(rename = "podIP")]
    pod_ip: Box<str>,
    #[serde(rename = "podIPs")]
    pod_ips: Vec<Ip>,
    conditions: Vec<WireCondition>,
    observed_generation: i64,
    init_container_statuses: Vec<Container>,
    container_statuses: Vec<Container>,
    ephemeral_container_statuses: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ip {
    ip: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireCondition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    reason: Box<str>,
    message: Box<str>,
    last_transition_time: Option<Timestamp>,
    observed_generation: i64,
}

impl WireCondition {
    fn convert(self) -> Option<Condition> {
        Some(Condition {
            status: ConditionStatus::from_name(&self.status)?,
            kind: self.kind,
            reason: self.reason,
            message: self.message,
            last_transition: self.last_transition_time.unwrap_or_default(),
            observed_generation: self.observed_generation,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    name: Box<str>,
    image: Box<str>,
    #[serde(rename = "imageID")]
    image_id: Box<str>,
    #[serde(rename = "containerID")]
    container_id: Box<str>,
    ready: bool,
    started: bool,
    restart_count: i64,
    state: WireContainerState,
    last_state: WireContainerState,
    user: User,
    volume_mounts: Vec<Mount>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Mount {
    mount_path: Box<str>,
    recursive_read_only: Box<str>,
}

fn recursive(mounts: Vec<Mount>) -> Vec<Box<str>> {
    let mounts = mounts.into_iter();
    let recursive = mounts.filter(|mount| &*mount.recursive_read_only == "Enabled");
    recursive.map(|mount| mount.mount_path).collect()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    linux: Option<Box<ContainerUser>>,
}

impl From<Container> for ContainerStatus {
    fn from(wire: Container) -> Self {
        Self {
            name: wire.name,
            image: wire.image,
            image_id: wire.image_id,
            container_id: bare(&wire.container_id),
            ready: wire.ready,
            started: wire.started,
            restart_count: u32::try_from(wire.restart_count.max(0)).unwrap_or(u32::MAX),
            state: wire.state.convert(),
            last_state: wire.last_state.terminated.map(Into::into),
            user: wire.user.linux,
            recursive_read_only: recursive(wire.volume_mounts),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireContainerState {
    waiting: Option<Waiting>,
    running: Option<Running>,
    terminated: Option<TerminatedState>,
}

impl WireContainerState {
    /// A state of nothing counts as waiting.
    fn convert(self) -> ContainerState {
        if let Some(ended) = self.terminated {
            return ContainerState::Terminated(ended.into());
        }
        if let Some(running) = self.running {
            return ContainerState::Running {
                started_at: running.started_at.unwrap_or_default(),
            };
        }
        let Waiting { reason, message } = self.waiting.unwrap_or_default();
        ContainerState::Waiting { reason, message }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: Box<str>,
    message: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Running {
    started_at: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TerminatedState {
    exit_code: i32,
    reason: Box<str>,
    message: Box<str>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    #[serde(rename = "containerID")]
    container_id: Box<str>,
}

impl From<TerminatedState> for Terminated {
    fn from(wire: TerminatedState) -> Self {
        Self {
            exit_code: wire.exit_code,
            reason: wire.reason,
            message: wire.message,
            started_at: wire.started_at,
            finished_at: wire.finished_at,
            container_id: bare(&wire.container_id),
        }
    }
}

/// The identifier without the runtime's name, which is its scheme.
fn bare(id: &str) -> Box<str> {
    id.split_once("://").map_or(id, |(_, bare)| bare).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        resources::QosClass,
        wire::{WireContext, status_json},
    };

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn ended(code: i32) -> Terminated {
        Terminated {
            exit_code: code,
            reason: "Error".into(),
            message: "".into(),
            started_at: Some(at("2026-03-01T10:00:00Z")),
            finished_at: Some(at("2026-03-01T10:00:05Z")),
            container_id: "0123".into(),
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let container = |name: &str, state, last_state| ContainerStatus {
            name: name.into(),
            image: "app:1".into(),
            image_id: "app@sha256:1".into(),
            container_id: "abc".into(),
            ready: true,
            started: true,
            restart_count: 3,
            state,
            last_state,
            user: Some(Box::new(ContainerUser {
                uid: 1000,
                gid: 0,
                supplemental_groups: vec![1000, 2000],
            })),
            recursive_read_only: Vec::new(),
        };
        let running = ContainerState::Running {
            started_at: at("2026-03-01T10:00:06Z"),
        };
        let waiting = ContainerState::Waiting {
            reason: "CrashLoopBackOff".into(),
            message: "back-off".into(),
        };
        let status = PodStatus {
            phase: Phase::Running,
            reason: "".into(),
            message: "m".into(),
            start_time: at("2026-03-01T10:00:00Z"),
            pod_ips: vec!["10.0.0.7".into(), "fd00::7".into()],
            conditions: vec![Condition {
                kind: "Ready".into(),
                status: ConditionStatus::Unknown,
                reason: "r".into(),
                message: "".into(),
                last_transition: at("2026-03-01T10:00:07Z"),
                observed_generation: 4,
            }],
            observed_generation: 4,
            init_containers: vec![container(
                "setup",
                ContainerState::Terminated(ended(0)),
                None,
            )],
            containers: vec![container("app", running, Some(ended(1)))],
            ephemeral_containers: vec![container("debug", waiting, None)],
        };
        let context = WireContext {
            runtime: "containerd",
            ..WireContext::default()
        };
        let json = status_json(&status, QosClass::Burstable, &context);
        assert_eq!(
            json["containerStatuses"][0]["containerID"],
            "containerd://abc"
        );
        assert_eq!(
            json["containerStatuses"][0]["user"],
            json!({"linux": {"uid": 1000, "gid": 0, "supplementalGroups": [1000, 2000]}})
        );
        assert_eq!(status_from_json(&json), Some(status));
    }

    #[test]
    fn a_pod_that_no_node_has_reported_on_has_no_status() {
        for json in [
            json!(null),
            json!({}),
            json!({"phase": "Pending", "qosClass": "BestEffort"}),
            json!({"phase": "Odd", "startTime": "2026-03-01T10:00:00Z"}),
            json!({"phase": 7}),
        ] {
            assert_eq!(status_from_json(&json), None, "{json}");
        }
    }
}
