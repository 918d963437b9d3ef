//! Pods, their entries on the board, and the API server's copies of them, for tests.

use std::sync::Arc;

use jiff::Timestamp;
use rubelet_api::{
    manifest::decode,
    parse::{ParseContext, parse},
    pod::{Deletion, Pod, PodSource},
    status::{Condition, ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus},
};
use rubelet_node_state::pod_board::PodEntry;
use rubelet_pod_plan::History;
use serde_json::Value;

use crate::source::ApiPod;

/// Seconds of the day on which tests take place.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

/// A pod of the namespace `ns` with this specification.
pub(crate) fn pod(source: PodSource, name: &str, uid: &str, spec: &str) -> Arc<Pod> {
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: ns, uid: {uid}}}\n\
         spec: {spec}\n"
    );
    let raw = decode(&text).pods.remove(0).expect("a pod");
    let context = ParseContext {
        node_name: "n",
        source,
        origin: "test",
        adopted_uid: None,
        now: at(0),
    };
    Arc::new(parse(raw, &context).expect("a valid pod"))
}

/// A pod of the API server with one container.
pub(crate) fn plain(name: &str, policy: &str) -> Arc<Pod> {
    let spec = format!("{{restartPolicy: {policy}, containers: [{{name: a, image: x}}]}}");
    pod(PodSource::Api, name, &format!("uid-{name}"), &spec)
}

/// A pod of a manifest with one container.
pub(crate) fn from_file(name: &str, image: &str) -> Arc<Pod> {
    let spec = format!("{{containers: [{{name: a, image: {image}}}]}}");
    pod(PodSource::File, name, &format!("uid-{name}"), &spec)
}

/// The status of a container that runs.
pub(crate) fn running(name: &str) -> ContainerStatus {
    let started_at = at(1);
    container(name, ContainerState::Running { started_at })
}

/// The status of a container.
pub(crate) fn container(name: &str, state: ContainerState) -> ContainerStatus {
    let runs = matches!(state, ContainerState::Running { .. });
    ContainerStatus {
        name: name.into(),
        image: "x".into(),
        image_id: "sha256:1".into(),
        container_id: "c1".into(),
        ready: runs,
        started: runs,
        restart_count: 0,
        state,
        last_state: None,
        user: None,
        recursive_read_only: Vec::new(),
    }
}

/// A container that ended.
pub(crate) fn ended(exit_code: i32) -> ContainerState {
    ContainerState::Terminated(rubelet_api::status::Terminated {
        exit_code,
        reason: if exit_code == 0 { "Completed" } else { "Error" }.into(),
        message: "".into(),
        started_at: Some(at(1)),
        finished_at: Some(at(9)),
        container_id: "c1".into(),
    })
}

/// A condition of the node.
pub(crate) fn condition(kind: &str, is: bool) -> Condition {
    Condition {
        kind: kind.into(),
        status: ConditionStatus::from(is),
        reason: "".into(),
        message: "".into(),
        last_transition: at(2),
        observed_generation: 1,
    }
}

/// A status with the conditions that pods have.
pub(crate) fn status(phase: Phase, containers: Vec<ContainerStatus>) -> PodStatus {
    let ready = phase == Phase::Running;
    PodStatus {
        phase,
        reason: "".into(),
        message: "".into(),
        start_time: at(0),
        pod_ips: vec!["10.0.0.7".into()],
        conditions: vec![
            condition("Initialized", true),
            condition("Ready", ready),
            condition("ContainersReady", ready),
            condition("PodScheduled", true),
        ],
        observed_generation: 1,
        init_containers: Vec::new(),
        containers,
        ephemeral_containers: Vec::new(),
    }
}

/// What the node says of a pod.
pub(crate) fn entry(pod: &Arc<Pod>, status: PodStatus) -> PodEntry {
    PodEntry {
        pod: Arc::clone(pod),
        status,
        deletion: None,
        why: Vec::new(),
        history: Arc::new(History::default()),
        wake_at: None,
        finished: false,
    }
}

/// What the API server has of a pod.
pub(crate) fn copy(pod: &Arc<Pod>, version: &str, status: &Value) -> ApiPod {
    let phase = match status["phase"].as_str() {
        Some("Pending") => Some(Phase::Pending),
        Some("Running") => Some(Phase::Running),
        Some("Succeeded") => Some(Phase::Succeeded),
        Some("Failed") => Some(Phase::Failed),
        _ => None,
    };
    ApiPod {
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        resource_version: version.into(),
        labels: pod.labels.clone(),
        mirror: None,
        config_hash: None,
        deletion: None,
        status: status.to_string().into(),
        phase,
        pod: Some(Arc::clone(pod)),
        shows: None,
    }
}

/// The mirror pod of a static pod.
pub(crate) fn mirror_of(pod: &Arc<Pod>, uid: &str, version: &str, status: &Value) -> ApiPod {
    let hash = pod.annotations.get(rubelet_api::annotations::CONFIG_HASH);
    ApiPod {
        uid: uid.into(),
        mirror: hash.cloned(),
        config_hash: hash.cloned(),
        pod: None,
        ..copy(pod, version, status)
    }
}

/// A user deletes it.
pub(crate) fn deletion() -> Option<Deletion> {
    Some(Deletion {
        at: at(60),
        grace: std::time::Duration::from_secs(30),
    })
}
