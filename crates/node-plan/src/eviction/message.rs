//! The texts of an eviction, as the kubelet writes them.

use rubelet_api::{amount, container::Container, pod::Pod};

use super::{ContainerUsage, EvictionThreshold, PodUsage, Shortage, StarvedResource};

/// `status.reason` of an evicted pod, and the reason of its event.
pub const EVICTED: &str = "Evicted";

/// Reason of the event about the node when something must be freed.
pub const THRESHOLD_MET: &str = "EvictionThresholdMet";

/// Message of this event.
#[must_use]
pub fn threshold_met(resource: StarvedResource) -> String {
    format!("Attempting to reclaim {}", resource.as_str())
}

/// A container that uses more than it requested.
struct Offender<'a> {
    name: &'a str,
    usage: Box<str>,
    request: Box<str>,
}

/// The message of an evicted pod, and the annotations of its event.
pub(crate) fn eviction_texts(
    shortage: &Shortage,
    pod: &Pod,
    usage: Option<&PodUsage>,
) -> (String, Vec<(&'static str, String)>) {
    let resource = shortage.threshold.signal.resource();
    let name = resource.as_str();
    let mut message = format!(
        "The node was low on resource: {name}. Threshold quantity: {}, available: {}. ",
        quantity(&shortage.threshold, shortage.level.capacity),
        available(resource, shortage.level.available),
    );
    let Some(usage) = usage else {
        return (message, Vec::new());
    };
    let mut annotations = Vec::new();
    if let Some(request) = own_memory_request(resource, pod) {
        let (used, pod_name) = (amount::bytes(usage.memory), &pod.name.name);
        message += &format!(
            "Pod {pod_name} was using {used}, request is {}, has larger consumption of {name}. ",
            amount::bytes(request)
        );
        annotations.push(("offending_pod", pod_name.to_string()));
        annotations.push(("offending_pod_usage", used.to_string()));
    }
    let offenders: Vec<Offender<'_>> = usage
        .containers
        .iter()
        .filter_map(|container| offender(resource, pod, container))
        .collect();
    for Offender {
        name: container,
        usage,
        request,
    } in &offenders
    {
        message += &format!(
            "Container {container} was using {usage}, request is {request}, has larger consumption \
             of {name}. "
        );
    }
    let list = |text: fn(&Offender<'_>) -> String| -> String {
        offenders.iter().map(text).collect::<Vec<_>>().join(",")
    };
    annotations.extend([
        ("offending_containers", list(|one| one.name.to_owned())),
        (
            "offending_containers_usage",
            list(|one| one.usage.to_string()),
        ),
        ("starved_resource", name.to_owned()),
    ]);
    (message, annotations)
}

/// What the pod requests by its own resources.
fn own_memory_request(resource: StarvedResource, pod: &Pod) -> Option<u64> {
    let own = pod.spec.resources.as_ref()?;
    own.requests
        .memory
        .filter(|_| resource == StarvedResource::Memory)
}

/// Ephemeral containers have no requests, so they are not named.
fn offender<'a>(
    resource: StarvedResource,
    pod: &Pod,
    used: &'a ContainerUsage,
) -> Option<Offender<'a>> {
    let spec = &pod.spec;
    let mut defined = spec.containers.iter().chain(&spec.init_containers);
    let container: &Container = defined.find(|one| one.name == used.name)?;
    let requests = &container.resources.requests;
    let (usage, request) = match resource {
        StarvedResource::Memory => (used.memory?, requests.memory),
        StarvedResource::EphemeralStorage => {
            let bytes = used.writable_layer?.bytes.saturating_add(used.logs?.bytes);
            (bytes, requests.ephemeral_storage)
        }
        // Upstream names no container for these.
        StarvedResource::Inodes | StarvedResource::Pids => return None,
    };
    let request = request.unwrap_or(0);
    (usage > request).then(|| Offender {
        name: &used.name,
        usage: amount::bytes(usage),
        request: amount::bytes(request),
    })
}

/// A threshold as upstream prints it: an amount keeps its kind of suffix, a share is in bytes.
fn quantity(threshold: &EvictionThreshold, capacity: u64) -> Box<str> {
    let value = threshold.value.of(capacity);
    match threshold.binary {
        true => amount::bytes(value),
        false => amount::decimal(value),
    }
}

fn available(resource: StarvedResource, count: u64) -> Box<str> {
    match resource {
        StarvedResource::Memory | StarvedResource::EphemeralStorage => amount::bytes(count),
        StarvedResource::Inodes | StarvedResource::Pids => amount::decimal(count),
    }
}
