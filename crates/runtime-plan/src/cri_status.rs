//! CRI replies from records: statuses, lists and their filters.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rubelet_cri::v1;
use rubelet_oci::IdMappings;

use crate::{
    record::{ContainerRecord, MountRecord, NamespaceModes, SandboxRecord, StringMap},
    resources, stop_signal,
};

/// `PodSandboxStatus` of a sandbox; `None` while it is being made.
#[must_use]
pub fn sandbox_status(record: &SandboxRecord) -> Option<v1::PodSandboxStatus> {
    let mut ips = record.ips.iter();
    Some(v1::PodSandboxStatus {
        id: record.id.clone(),
        metadata: Some(sandbox_metadata(record)),
        state: record.phase.cri()?.into(),
        created_at: record.created_at,
        network: Some(v1::PodSandboxNetworkStatus {
            ip: ips.next().cloned().unwrap_or_default(),
            additional_ips: ips.map(|ip| v1::PodIp { ip: ip.clone() }).collect(),
        }),
        linux: Some(v1::LinuxPodSandboxStatus {
            namespaces: Some(v1::Namespace {
                options: Some(namespace_options(&record.namespaces)),
            }),
        }),
        labels: record.labels.clone(),
        annotations: record.annotations.clone(),
        runtime_handler: record.runtime_handler.clone(),
    })
}

/// A sandbox in a list; `None` while it is being made.
#[must_use]
pub fn sandbox_item(record: &SandboxRecord) -> Option<v1::PodSandbox> {
    Some(v1::PodSandbox {
        id: record.id.clone(),
        metadata: Some(sandbox_metadata(record)),
        state: record.phase.cri()?.into(),
        created_at: record.created_at,
        labels: record.labels.clone(),
        annotations: record.annotations.clone(),
        runtime_handler: record.runtime_handler.clone(),
    })
}

/// `metadata` of a sandbox.
#[must_use]
pub fn sandbox_metadata(record: &SandboxRecord) -> v1::PodSandboxMetadata {
    v1::PodSandboxMetadata {
        name: record.name.clone(),
        uid: record.uid.clone(),
        namespace: record.namespace.clone(),
        attempt: record.attempt,
    }
}

fn namespace_options(modes: &NamespaceModes) -> v1::NamespaceOption {
    v1::NamespaceOption {
        network: modes.network,
        pid: modes.pid,
        ipc: modes.ipc,
        target_id: String::new(),
        userns_options: modes.user.as_ref().map(user_namespace),
    }
}

fn user_namespace(mappings: &IdMappings) -> v1::UserNamespace {
    let convert = |ranges: &[rubelet_oci::IdMapping]| {
        ranges
            .iter()
            .map(|range| v1::IdMapping {
                host_id: range.host_id,
                container_id: range.container_id,
                length: range.size,
            })
            .collect()
    };
    v1::UserNamespace {
        mode: v1::NamespaceMode::Pod.into(),
        uids: convert(&mappings.uids),
        gids: convert(&mappings.gids),
    }
}

/// `ContainerStatus` of a container; `None` while it is being made.
#[must_use]
pub fn container_status(record: &ContainerRecord) -> Option<v1::ContainerStatus> {
    let exit = record.exit.as_ref();
    Some(v1::ContainerStatus {
        id: record.id.clone(),
        metadata: Some(container_metadata(record)),
        state: record.phase.cri()?.into(),
        created_at: record.created_at,
        started_at: record.started_at,
        finished_at: exit.map_or(0, |exit| exit.at),
        exit_code: exit.map_or(0, |exit| exit.code),
        image: Some(image_spec(record)),
        image_ref: record.image_ref.clone(),
        reason: exit.map_or_else(String::new, |exit| exit.reason.clone()),
        message: exit.map_or_else(String::new, |exit| exit.message.clone()),
        labels: record.labels.clone(),
        annotations: record.annotations.clone(),
        mounts: record.mounts.iter().map(mount).collect(),
        log_path: record.log_path.clone(),
        resources: Some(v1::ContainerResources {
            linux: Some(resources::to_cri(&record.resources, record.oom_score_adj)),
            windows: None,
        }),
        image_id: record.image_id.clone(),
        user: Some(v1::ContainerUser {
            linux: Some(v1::LinuxContainerUser {
                uid: record.user.uid.into(),
                gid: record.user.gid.into(),
                supplemental_groups: record
                    .user
                    .groups
                    .iter()
                    .map(|group| (*group).into())
                    .collect(),
            }),
        }),
        stop_signal: stop_signal::to_cri(record.stop_signal).into(),
    })
}

/// A container in a list; `None` while it is being made.
#[must_use]
pub fn container_item(record: &ContainerRecord) -> Option<v1::Container> {
    Some(v1::Container {
        id: record.id.clone(),
        pod_sandbox_id: record.sandbox_id.clone(),
        metadata: Some(container_metadata(record)),
        image: Some(image_spec(record)),
        image_ref: record.image_ref.clone(),
        state: record.phase.cri()?.into(),
        created_at: record.created_at,
        labels: record.labels.clone(),
        annotations: record.annotations.clone(),
        image_id: record.image_id.clone(),
    })
}

/// `attributes` of a container's statistics.
#[must_use]
pub fn container_attributes(record: &ContainerRecord) -> v1::ContainerAttributes {
    v1::ContainerAttributes {
        id: record.id.clone(),
        metadata: Some(container_metadata(record)),
        labels: record.labels.clone(),
        annotations: record.annotations.clone(),
    }
}

/// `attributes` of a sandbox's statistics.
#[must_use]
pub fn sandbox_attributes(record: &SandboxRecord) -> v1::PodSandboxAttributes {
    v1::PodSandboxAttributes {
        id: record.id.clone(),
        metadata: Some(sandbox_metadata(record)),
        labels: record.labels.clone(),
        annotations: record.annotations.clone(),
    }
}

fn container_metadata(record: &ContainerRecord) -> v1::ContainerMetadata {
    v1::ContainerMetadata {
        name: record.name.clone(),
        attempt: record.attempt,
    }
}

fn image_spec(record: &ContainerRecord) -> v1::ImageSpec {
    v1::ImageSpec {
        image: record.image.clone(),
        user_specified_image: record.user_specified_image.clone(),
        ..Default::default()
    }
}

fn mount(record: &MountRecord) -> v1::Mount {
    v1::Mount {
        container_path: record.container_path.clone(),
        host_path: record.host_path.clone(),
        readonly: record.readonly,
        recursive_read_only: record.recursive_read_only,
        propagation: record.propagation,
        selinux_relabel: record.selinux_relabel,
        image: record.image.as_ref().map(|image| v1::ImageSpec {
            // By this a kubelet knows that the image is in use.
            image: image.id.clone(),
            user_specified_image: image.user_specified_image.clone(),
            ..Default::default()
        }),
        image_sub_path: match &record.image {
            Some(image) => image.sub_path.clone(),
            None => String::new(),
        },
        ..Default::default()
    }
}

/// Reports whether the list filter matches this sandbox. An identifier may be shortened.
#[must_use]
pub fn lists_sandbox(filter: Option<&v1::PodSandboxFilter>, record: &SandboxRecord) -> bool {
    let Some(state) = record.phase.cri() else {
        return false;
    };
    filter.is_none_or(|filter| {
        record.id.starts_with(&filter.id)
            && filter
                .state
                .is_none_or(|wanted| wanted.state == i32::from(state))
            && has_labels(&filter.label_selector, &record.labels)
    })
}

/// Reports whether the list filter matches this container. Identifiers may be shortened.
#[must_use]
pub fn lists_container(filter: Option<&v1::ContainerFilter>, record: &ContainerRecord) -> bool {
    let Some(state) = record.phase.cri() else {
        return false;
    };
    filter.is_none_or(|filter| {
        record.id.starts_with(&filter.id)
            && record.sandbox_id.starts_with(&filter.pod_sandbox_id)
            && filter
                .state
                .is_none_or(|wanted| wanted.state == i32::from(state))
            && has_labels(&filter.label_selector, &record.labels)
    })
}

/// Reports whether the statistics filter matches this container.
#[must_use]
pub fn stats_container(
    filter: Option<&v1::ContainerStatsFilter>,
    record: &ContainerRecord,
) -> bool {
    filter.is_none_or(|filter| {
        record.id.starts_with(&filter.id)
            && record.sandbox_id.starts_with(&filter.pod_sandbox_id)
            && has_labels(&filter.label_selector, &record.labels)
    })
}

/// Reports whether the statistics filter matches this sandbox.
#[must_use]
pub fn stats_sandbox(filter: Option<&v1::PodSandboxStatsFilter>, record: &SandboxRecord) -> bool {
    filter.is_none_or(|filter| {
        record.id.starts_with(&filter.id) && has_labels(&filter.label_selector, &record.labels)
    })
}

fn has_labels(selector: &StringMap, labels: &BTreeMap<String, String>) -> bool {
    selector
        .iter()
        .all(|(name, value)| labels.get(name) == Some(value))
}

/// The one matching identifier: the whole one, or the only one with that prefix.
///
/// Returns `None` if there is none or there are several.
pub fn meant<'a>(wanted: &str, ids: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if wanted.is_empty() {
        return None;
    }
    let (mut found, mut several) = (None, false);
    for id in ids {
        if id == wanted {
            return Some(id);
        }
        if id.starts_with(wanted) {
            several |= found.is_some();
            found = Some(id);
        }
    }
    found.filter(|_| !several)
}
