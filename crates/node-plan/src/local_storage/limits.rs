//! The limits of one pod.

use rubelet_api::{
    amount,
    pod::Pod,
    resources::Bytes,
    volume::{Medium, VolumeSource},
};
use serde_json::Value;

use crate::{critical::is_critical, pod_resources::effective};

static NULL: Value = Value::Null;

/// A limit in bytes, and its text in the message of an eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StorageLimit {
    /// The volume or container; empty for the pod.
    pub(super) name: Box<str>,
    pub(super) bytes: Bytes,
    pub(super) text: Box<str>,
}

/// The limits of a pod that is evicted when it exceeds one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageLimits {
    pub(super) volumes: Vec<StorageLimit>,
    pub(super) containers: Vec<StorageLimit>,
    pub(super) pod: Option<StorageLimit>,
}

impl StorageLimits {
    /// The limits of a pod; `None` if it has none, or is critical: then it is never evicted. Volumes in
    /// memory are not among them, as the kernel holds their limits.
    #[must_use]
    pub fn of(pod: &Pod) -> Option<Self> {
        let has_any = has_container_limits(pod) || pod.spec.volumes.iter().any(is_limited);
        if !has_any || is_critical(pod) {
            return None;
        }
        // The texts are those of the API server, which are canonical.
        let json: Value = serde_json::from_str(&pod.json).unwrap_or_default();
        let volumes = pod.spec.volumes.iter().filter_map(|volume| {
            let text = &named(&json["spec"]["volumes"], &volume.name)["emptyDir"]["sizeLimit"];
            limit(&volume.name, size_limit(&volume.source)?, text)
        });
        let containers = containers_with_limits(pod).filter_map(|(name, bytes)| {
            let text = container_text(&json, name);
            limit(name, bytes, text)
        });
        Some(Self {
            volumes: volumes.collect(),
            containers: containers.collect(),
            pod: pod_limit(pod, &json),
        })
    }
}

fn is_limited(volume: &rubelet_api::volume::Volume) -> bool {
    size_limit(&volume.source).is_some()
}

fn size_limit(source: &VolumeSource) -> Option<Bytes> {
    match source {
        VolumeSource::EmptyDir {
            medium: Medium::Disk,
            size_limit,
        } => *size_limit,
        _ => None,
    }
}

fn has_container_limits(pod: &Pod) -> bool {
    containers_with_limits(pod).next().is_some()
}

/// Containers, sidecars and init containers with their limits. The kubelet watches the limits of
/// containers only, and the others as parts of the limit of the pod.
fn containers_with_limits(pod: &Pod) -> impl Iterator<Item = (&str, Bytes)> {
    let spec = &pod.spec;
    let all = spec.containers.iter().chain(&spec.init_containers);
    all.filter_map(|one| Some((&*one.name, one.resources.limits.ephemeral_storage?)))
}

/// A limit of zero is none, as in the kubelet.
fn limit(name: &str, bytes: Bytes, text: &Value) -> Option<StorageLimit> {
    (bytes > 0).then(|| StorageLimit {
        name: name.into(),
        bytes,
        text: text
            .as_str()
            .map_or_else(|| amount::bytes(bytes), Box::from),
    })
}

/// The sum of the limits of the containers that have one. Its text has the suffix of the first.
fn pod_limit(pod: &Pod, json: &Value) -> Option<StorageLimit> {
    let limits = || containers_with_limits(pod);
    let first = limits().find(|(_, bytes)| *bytes > 0).or(limits().next())?;
    let of_containers = effective(&pod.spec, |one| {
        one.resources.limits.ephemeral_storage.unwrap_or(0)
    });
    let overhead = pod.spec.overhead.ephemeral_storage.unwrap_or(0);
    let bytes = match of_containers {
        0 => 0,
        sum => sum.saturating_add(overhead),
    };
    let is_binary = container_text(json, first.0)
        .as_str()
        .is_none_or(|text| text.ends_with('i'));
    Some(StorageLimit {
        name: "".into(),
        bytes,
        text: match is_binary {
            true => amount::bytes(bytes),
            false => amount::decimal(bytes),
        },
    })
}

/// `resources.limits.ephemeral-storage` of a container, as it is written.
fn container_text<'a>(json: &'a Value, name: &str) -> &'a Value {
    let lists = ["containers", "initContainers"];
    let found = lists
        .into_iter()
        .map(|list| named(&json["spec"][list], name))
        .find(|one| !one.is_null());
    &found.unwrap_or(&NULL)["resources"]["limits"]["ephemeral-storage"]
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let items = list.as_array().into_iter().flatten();
    let mut found = items.filter(|item| item["name"] == name);
    found.next().unwrap_or(&NULL)
}
