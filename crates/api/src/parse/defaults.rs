//! What the API server fills in where a manifest says nothing. An empty text counts as nothing.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Container, ContainerPort, EmptyDirVolumeSource, EnvVar, HTTPGetAction, LifecycleHandler,
        PodSpec, Probe, Toleration, Volume,
    },
    apimachinery::pkg::api::resource::Quantity,
};

use crate::{container::PullPolicy, image_ref, pod::PodSource};

/// Fills in everything but requests, which [`requests`] does when the limits are known to be good.
pub(super) fn apply(spec: &mut PodSpec, source: PodSource) {
    fill(&mut spec.dns_policy, "ClusterFirst");
    fill(&mut spec.restart_policy, "Always");
    fill(&mut spec.scheduler_name, "default-scheduler");
    spec.security_context.get_or_insert_default();
    spec.termination_grace_period_seconds.get_or_insert(30);
    spec.enable_service_links.get_or_insert(true);
    for volume in spec.volumes.iter_mut().flatten() {
        self::volume(volume);
    }
    let host_network = spec.host_network.unwrap_or(false);
    for container in all_containers(spec) {
        self::container(container, host_network);
    }
    if source == PodSource::File {
        tolerate_node_trouble(spec);
    }
}

/// Copies each limit that has no request into the requests.
pub(super) fn requests(spec: &mut PodSpec) {
    for container in all_containers(spec) {
        let resources = container.resources.get_or_insert_default();
        let Some(limits) = resources
            .limits
            .as_ref()
            .filter(|limits| !limits.is_empty())
        else {
            continue;
        };
        let requests: &mut BTreeMap<String, Quantity> = resources.requests.get_or_insert_default();
        for (name, limit) in limits {
            requests
                .entry(name.clone())
                .or_insert_with(|| limit.clone());
        }
    }
}

fn all_containers(spec: &mut PodSpec) -> impl Iterator<Item = &mut Container> {
    spec.init_containers
        .iter_mut()
        .flatten()
        .chain(&mut spec.containers)
}

fn fill(field: &mut Option<String>, default: &str) {
    if field.as_deref().is_none_or(str::is_empty) {
        *field = Some(default.to_owned());
    }
}

fn volume(volume: &mut Volume) {
    if let Some(host_path) = &mut volume.host_path {
        host_path.type_.get_or_insert_default();
    }
    if let Some(image) = &mut volume.image {
        let policy = pull_policy(image.reference.as_ref());
        fill(&mut image.pull_policy, policy);
    }
    // A volume of nothing is an emptyDir.
    let nameless = Volume {
        name: String::new(),
        ..volume.clone()
    };
    if nameless == Volume::default() {
        volume.empty_dir = Some(EmptyDirVolumeSource::default());
    }
}

fn pull_policy(image: Option<&String>) -> &'static str {
    match image_ref::default_pull_policy(image.map_or("", String::as_str)) {
        PullPolicy::Always => "Always",
        PullPolicy::IfNotPresent | PullPolicy::Never => "IfNotPresent",
    }
}

pub(super) fn container(container: &mut Container, host_network: bool) {
    let policy = pull_policy(container.image.as_ref());
    fill(&mut container.image_pull_policy, policy);
    fill(
        &mut container.termination_message_path,
        "/dev/termination-log",
    );
    fill(&mut container.termination_message_policy, "File");
    for port in container.ports.iter_mut().flatten() {
        self::port(port, host_network);
    }
    for variable in container.env.iter_mut().flatten() {
        self::variable(variable);
    }
    let probes = [
        &mut container.liveness_probe,
        &mut container.readiness_probe,
        &mut container.startup_probe,
    ];
    for probe in probes.into_iter().flatten() {
        self::probe(probe);
    }
    if let Some(lifecycle) = &mut container.lifecycle {
        let hooks = [&mut lifecycle.post_start, &mut lifecycle.pre_stop];
        hooks.into_iter().flatten().for_each(hook);
    }
}

/// 0 counts as not written, as the API server takes it.
fn probe(probe: &mut Probe) {
    for (field, default) in [
        (&mut probe.timeout_seconds, 1),
        (&mut probe.period_seconds, 10),
        (&mut probe.success_threshold, 1),
        (&mut probe.failure_threshold, 3),
    ] {
        *field = Some(field.filter(|value| *value != 0).unwrap_or(default));
    }
    if let Some(action) = &mut probe.http_get {
        http_get(action);
    }
    if let Some(action) = &mut probe.grpc {
        action.service.get_or_insert_default();
    }
}

pub(super) fn hook(hook: &mut LifecycleHandler) {
    if let Some(action) = &mut hook.http_get {
        http_get(action);
    }
}

fn http_get(action: &mut HTTPGetAction) {
    fill(&mut action.path, "/");
    fill(&mut action.scheme, "HTTP");
}

pub(super) fn port(port: &mut ContainerPort, host_network: bool) {
    fill(&mut port.protocol, "TCP");
    port.host_port = port.host_port.filter(|&host_port| host_port != 0);
    if host_network {
        port.host_port.get_or_insert(port.container_port);
    }
}

fn variable(variable: &mut EnvVar) {
    let Some(source) = &mut variable.value_from else {
        return;
    };
    if let Some(field) = &mut source.field_ref {
        fill(&mut field.api_version, "v1");
    }
    if let Some(resource) = &mut source.resource_field_ref {
        resource
            .divisor
            .get_or_insert_with(|| Quantity("0".to_owned()));
    }
}

/// Static pods from files stay when the node has trouble; those from a URL don't have this at
/// upstream's kubelet either.
fn tolerate_node_trouble(spec: &mut PodSpec) {
    let wanted = Toleration {
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        ..Toleration::default()
    };
    let tolerations = spec.tolerations.get_or_insert_default();
    if !tolerations.contains(&wanted) {
        tolerations.push(wanted);
    }
}
