//! Converts CRI messages to the types that plans use.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{
    probe::{Hook, hook_from_annotation},
    status::ContainerUser,
};
use rubelet_base::SandboxId;
use rubelet_cri::v1;
use rubelet_pod_plan::{
    ContainerPhase, ObservedContainer, ObservedSandbox, ProcessState,
    cri_config::labels::{
        CONTAINER_HASH, CONTAINER_NAME, DELETION_GRACE_PERIOD, GRACE_PERIOD, PORTS, PRE_STOP,
        PRECREATED_AFTER, RESTART_COUNT,
    },
    definition::DEFINITION_ANNOTATION,
    observed::Exit,
};

/// Converts the status of a sandbox.
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

/// Converts the status of a container, and adds its termination message.
pub(super) fn container(
    status: v1::ContainerStatus,
    sandbox: SandboxId,
    termination_message: String,
) -> ObservedContainer {
    let attempt = status
        .metadata
        .as_ref()
        .map_or(0, |metadata| metadata.attempt);
    let state = container_state(status.state);
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
        pre_stop: pre_stop(&status.annotations),
        grace: grace(&status.annotations),
        precreated_after: status
            .annotations
            .get(PRECREATED_AFTER)
            .map(|id| id.as_str().into()),
        recursive_read_only: recursive_read_only(status.mounts),
        user: status.user.and_then(|user| user.linux).map(user),
        process: ProcessState::AsReported,
        kernel_exit: None,
    }
}

fn recursive_read_only(mounts: Vec<v1::Mount>) -> Vec<Box<str>> {
    let mounts = mounts.into_iter();
    let recursive = mounts.filter(|mount| mount.recursive_read_only);
    recursive.map(|mount| mount.container_path.into()).collect()
}

fn user(user: v1::LinuxContainerUser) -> Box<ContainerUser> {
    Box::new(ContainerUser {
        uid: user.uid,
        gid: user.gid,
        supplemental_groups: user.supplemental_groups,
    })
}

/// The state of a container. A value that CRI does not define counts as unknown, as in the kubelet:
/// decoders map it to the first of the enumeration, so that the plan would start the container.
pub(super) fn container_state(state: i32) -> v1::ContainerState {
    v1::ContainerState::try_from(state).unwrap_or(v1::ContainerState::ContainerUnknown)
}

/// The init process of a container, from the verbose part of its status: containerd and CRI-O put
/// JSON there. 0 means no process.
pub(super) fn process(info: &BTreeMap<String, String>) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct VerboseInfo {
        pid: u32,
    }
    let info: VerboseInfo = serde_json::from_str(info.get("info")?).ok()?;
    (info.pid > 0).then_some(info.pid)
}

fn pre_stop(annotations: &BTreeMap<String, String>) -> Option<Arc<Hook>> {
    let ports = annotations.get(PORTS).map(String::as_str);
    hook_from_annotation(annotations.get(PRE_STOP)?, ports).map(Arc::new)
}

/// The grace period in annotations. That of a deletion has precedence, as in the kubelet.
fn grace(annotations: &BTreeMap<String, String>) -> Option<Duration> {
    let seconds = |key| annotations.get(key)?.parse::<i64>().ok();
    let seconds = seconds(DELETION_GRACE_PERIOD).or_else(|| seconds(GRACE_PERIOD))?;
    Some(Duration::from_secs(seconds.max(0).unsigned_abs()))
}

fn join_messages(runtime: String, termination: String) -> String {
    match (runtime.is_empty(), termination.is_empty()) {
        (_, true) => runtime,
        (true, false) => termination,
        (false, false) => format!("{runtime}: {termination}"),
    }
}

/// Nanoseconds since the epoch; anything a runtime can send is in range.
fn time(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn take(annotations: &BTreeMap<String, String>, key: &str) -> Option<Box<str>> {
    annotations.get(key).map(|value| value.as_str().into())
}

#[cfg(test)]
mod tests;
