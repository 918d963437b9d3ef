//! From the runtime's messages to what plans see.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rubelet_base::SandboxId;
use rubelet_cri::v1;
use rubelet_pod_plan::{
    ContainerPhase, ObservedContainer, ObservedSandbox,
    cri_config::labels::{CONTAINER_HASH, CONTAINER_NAME, RESTART_COUNT},
    definition::DEFINITION_ANNOTATION,
    observed::Exit,
};

/// A sandbox's status.
pub(super) fn sandbox(status: v1::PodSandboxStatus) -> ObservedSandbox {
    let ready = status.state == i32::from(v1::PodSandboxState::SandboxReady);
    let host_network = status
        .linux
        .and_then(|linux| linux.namespaces)
        .and_then(|namespaces| namespaces.options)
        .is_some_and(|options| options.network == i32::from(v1::NamespaceMode::Node));
    let ips = status
        .network
        .filter(|_| !host_network)
        .map(|network| {
            std::iter::once(network.ip)
                .chain(network.additional_ips.into_iter().map(|ip| ip.ip))
                .filter(|ip| !ip.is_empty())
                .map(Into::into)
                .collect()
        })
        .unwrap_or_default();
    ObservedSandbox {
        id: status.id.into(),
        attempt: status.metadata.map_or(0, |metadata| metadata.attempt),
        ready,
        created_at: time(status.created_at),
        host_network,
        ips,
        definition: take(&status.annotations, DEFINITION_ANNOTATION),
    }
}

/// A container's status and what it left as termination message.
pub(super) fn container(
    status: v1::ContainerStatus,
    sandbox: SandboxId,
    termination_message: String,
) -> ObservedContainer {
    let attempt = status
        .metadata
        .as_ref()
        .map_or(0, |metadata| metadata.attempt);
    let state = status.state();
    let name = match status.labels.get(CONTAINER_NAME) {
        Some(name) => name.clone(),
        None => status
            .metadata
            .map(|metadata| metadata.name)
            .unwrap_or_default(),
    };
    let phase = match state {
        v1::ContainerState::ContainerCreated => ContainerPhase::Created,
        v1::ContainerState::ContainerRunning => ContainerPhase::Running {
            started_at: time(status.started_at),
        },
        v1::ContainerState::ContainerExited => ContainerPhase::Exited(Exit {
            code: status.exit_code,
            reason: status.reason.into(),
            message: join_messages(status.message, termination_message).into(),
            started_at: (status.started_at > 0).then(|| time(status.started_at)),
            finished_at: time(status.finished_at.max(status.created_at)),
        }),
        v1::ContainerState::ContainerUnknown => ContainerPhase::Unknown,
    };
    ObservedContainer {
        id: status.id.into(),
        sandbox,
        name: name.into(),
        restart_count: status
            .annotations
            .get(RESTART_COUNT)
            .and_then(|count| count.parse().ok())
            .unwrap_or(attempt),
        created_at: time(status.created_at),
        phase,
        image: status
            .image
            .map(|image| image.image)
            .unwrap_or_default()
            .into(),
        image_ref: status.image_ref.into(),
        hash: take(&status.annotations, CONTAINER_HASH).unwrap_or_default(),
        definition: take(&status.annotations, DEFINITION_ANNOTATION),
    }
}

fn join_messages(runtime: String, own: String) -> String {
    match (runtime.is_empty(), own.is_empty()) {
        (_, true) => runtime,
        (true, false) => own,
        (false, false) => format!("{runtime}: {own}"),
    }
}

/// Nanoseconds since the epoch; anything a runtime can send is in range.
fn time(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn take(annotations: &BTreeMap<String, String>, key: &str) -> Option<Box<str>> {
    annotations.get(key).map(|value| value.as_str().into())
}
