//! The compact status, read back from the Kubernetes form.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::status::{
    Condition, ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus, Terminated,
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
    } = Wire::deserialize(status).ok()?;
    let mut ips: Vec<Box<str>> = pod_ips.into_iter().flatten().map(|one| one.ip).collect();
    if ips.is_empty() {
        ips.extend(pod_ip.filter(|ip| !ip.is_empty()));
    }
    let containers = |list: Option<Vec<Container>>| list.into_iter().flatten().map(Into::into);
    Some(PodStatus {
        phase: Phase::from_name(&phase)?,
        reason: reason.unwrap_or_default(),
        message: message.unwrap_or_default(),
        start_time: start_time?,
        pod_ips: ips,
        conditions: conditions
            .into_iter()
            .flatten()
            .filter_map(WireCondition::convert)
            .collect(),
        observed_generation: observed_generation.unwrap_or(0),
        init_containers: containers(init_container_statuses).collect(),
        containers: containers(container_statuses).collect(),
        ephemeral_containers: containers(ephemeral_container_statuses).collect(),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    #[serde(default)]
    phase: Box<str>,
    reason: Option<Box<str>>,
    message: Option<Box<str>>,
    start_time: Option<Timestamp>,
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
    #[serde(rename = "podIPs")]
    pod_ips: Option<Vec<Ip>>,
    conditions: Option<Vec<WireCondition>>,
    observed_generation: Option<i64>,
    init_container_statuses: Option<Vec<Container>>,
    container_statuses: Option<Vec<Container>>,
    ephemeral_container_statuses: Option<Vec<Container>>,
}

#[derive(Deserialize)]
struct Ip {
    ip: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCondition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    reason: Option<Box<str>>,
    message: Option<Box<str>>,
    last_transition_time: Option<Timestamp>,
    observed_generation: Option<i64>,
}

impl WireCondition {
    fn convert(self) -> Option<Condition> {
        Some(Condition {
            status: ConditionStatus::from_name(&self.status)?,
            kind: self.kind,
            reason: self.reason.unwrap_or_default(),
            message: self.message.unwrap_or_default(),
            last_transition: self.last_transition_time.unwrap_or_default(),
            observed_generation: self.observed_generation.unwrap_or(0),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: Box<str>,
    #[serde(default)]
    image: Box<str>,
    #[serde(default, rename = "imageID")]
    image_id: Box<str>,
    #[serde(rename = "containerID")]
    container_id: Option<Box<str>>,
    #[serde(default)]
    ready: bool,
    started: Option<bool>,
    #[serde(default)]
    restart_count: i64,
    state: Option<State>,
    last_state: Option<State>,
}

impl From<Container> for ContainerStatus {
    fn from(wire: Container) -> Self {
        Self {
            name: wire.name,
            image: wire.image,
            image_id: wire.image_id,
            container_id: bare(wire.container_id),
            ready: wire.ready,
            started: wire.started.unwrap_or(false),
            restart_count: u32::try_from(wire.restart_count.max(0)).unwrap_or(u32::MAX),
            state: wire.state.unwrap_or_default().convert(),
            last_state: wire
                .last_state
                .and_then(|state| state.terminated)
                .map(Into::into),
        }
    }
}

#[derive(Default, Deserialize)]
struct State {
    waiting: Option<Waiting>,
    running: Option<Running>,
    terminated: Option<End>,
}

impl State {
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
        let waiting = self.waiting.unwrap_or_default();
        ContainerState::Waiting {
            reason: waiting.reason.unwrap_or_default(),
            message: waiting.message.unwrap_or_default(),
        }
    }
}

#[derive(Default, Deserialize)]
struct Waiting {
    reason: Option<Box<str>>,
    message: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Running {
    started_at: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct End {
    #[serde(default)]
    exit_code: i32,
    reason: Option<Box<str>>,
    message: Option<Box<str>>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    #[serde(rename = "containerID")]
    container_id: Option<Box<str>>,
}

impl From<End> for Terminated {
    fn from(wire: End) -> Self {
        Self {
            exit_code: wire.exit_code,
            reason: wire.reason.unwrap_or_default(),
            message: wire.message.unwrap_or_default(),
            started_at: wire.started_at,
            finished_at: wire.finished_at,
            container_id: bare(wire.container_id),
        }
    }
}

/// The identifier without the runtime's name, which is its scheme.
fn bare(id: Option<Box<str>>) -> Box<str> {
    let id = id.unwrap_or_default();
    match id.split_once("://") {
        Some((_, bare)) => bare.into(),
        None => id,
    }
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
