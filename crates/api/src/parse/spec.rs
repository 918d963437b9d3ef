//! The specification.

use std::{collections::HashSet, time::Duration};

use k8s_openapi::{api::core::v1 as k8s, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use super::{
    Errors, ParseContext, Path, affinity,
    container::{self, Role},
    defaults, ephemeral, metadata, names, network, pod_resources, ports, requirements, restart,
    scheduling,
    scope::Scope,
    security,
    values::{choice, range, text},
    volumes,
};
use crate::{
    container::Container,
    pod::{PodSource, PodSpec, RestartPolicy, StringMap},
    qos,
    resources::{QosClass, ResourceAmounts, Resources},
};

/// Converts a specification that has its defaults, and completes the defaults of requests.
pub(super) fn convert(
    spec: &mut k8s::PodSpec,
    metadata: &ObjectMeta,
    context: &ParseContext<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> PodSpec {
    let is_api = context.source == PodSource::Api;
    scheduling::check(spec, context, path, errors);
    let volume_names = volumes::names(spec.volumes.as_deref());
    let container_names = container_names(spec, path, errors);
    let volumes = volumes::convert(spec, &container_names, &path.child("volumes"), errors);
    let no_annotations = Default::default();
    let scope = Scope {
        volumes: &volume_names,
        containers: &container_names,
        annotations: metadata.annotations.as_ref().unwrap_or(&no_annotations),
        grace: spec
            .termination_grace_period_seconds
            .filter(|seconds| *seconds >= 0),
        strict: !is_api,
        own_users: spec.host_users == Some(false),
    };
    let init_path = path.child("initContainers");
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let init_containers = container::convert(init, Role::Init, &scope, &init_path, errors);
    let containers_path = path.child("containers");
    if spec.containers.is_empty() {
        errors.required(&containers_path, "a pod needs at least one container");
    }
    let containers = container::convert(
        &spec.containers,
        Role::Regular,
        &scope,
        &containers_path,
        errors,
    );
    let host_network = spec.host_network.unwrap_or(false);
    check_host_ports(spec, &init_containers, path, errors);
    let ephemeral_containers = match &spec.ephemeral_containers {
        Some(list) if is_api => {
            let path = path.child("ephemeralContainers");
            ephemeral::of_spec(list, host_network, &scope, &path, errors)
        }
        _ => Vec::new(),
    };
    let (priority, priority_class) = scheduling::priority(spec, path, errors);
    let (resources, qos) = resources_and_qos(spec, &init_containers, &containers, path, errors);
    let converted = PodSpec {
        init_containers,
        containers,
        ephemeral_containers,
        readiness_gates: readiness_gates(spec, path, errors),
        volumes,
        restart_policy: restart_policy(spec, path, errors),
        termination_grace_period: grace_period(spec, path, errors),
        active_deadline: deadline(spec, path, errors),
        node_name: match &spec.node_name {
            Some(node_name) if is_api => node_name.as_str().into(),
            _ => context.node_name.into(),
        },
        hostname: dns_label(spec.hostname.as_ref(), &path.child("hostname"), errors),
        hostname_override: hostname_override(spec, path, errors),
        subdomain: dns_label(spec.subdomain.as_ref(), &path.child("subdomain"), errors),
        set_hostname_as_fqdn: spec.set_hostname_as_fqdn.unwrap_or(false),
        host_network,
        host_pid: spec.host_pid.unwrap_or(false),
        host_ipc: spec.host_ipc.unwrap_or(false),
        host_users: spec.host_users.unwrap_or(true),
        share_process_namespace: share_process_namespace(spec, path, errors),
        dns_policy: network::dns_policy(spec, path, errors),
        dns_config: network::dns_config(spec, path, errors),
        host_aliases: network::host_aliases(spec, path, errors),
        security: security::pod(spec, &path.child("securityContext"), errors),
        priority,
        priority_class,
        service_account: service_account(spec),
        enable_service_links: spec.enable_service_links.unwrap_or(true),
        image_pull_secrets: image_pull_secrets(spec),
        runtime_class: text(spec.runtime_class_name.as_ref()),
        resources,
        overhead: match &spec.overhead {
            Some(overhead) => requirements::amounts(overhead, &path.child("overhead"), errors),
            None => ResourceAmounts::default(),
        },
        os: spec.os.as_ref().and_then(|os| text(Some(&os.name))),
        node_selector: if is_api {
            metadata::strings(spec.node_selector.clone())
        } else {
            StringMap::new()
        },
        node_affinity: affinity::required(spec),
        tolerations: scheduling::tolerations(spec, &path.child("tolerations"), errors),
        qos,
    };
    defaults::requests(spec);
    converted
}

/// The pod's own resources, and the quality of service that follows from them, or else from the
/// containers.
fn resources_and_qos(
    spec: &k8s::PodSpec,
    init: &[Container],
    regular: &[Container],
    path: &Path<'_>,
    errors: &mut Errors,
) -> (Option<Resources>, QosClass) {
    let all = pod_resources::Containers { init, regular };
    let path = path.child("resources");
    let resources = pod_resources::convert(spec.resources.as_ref(), all, &path, errors);
    let qos = match &resources {
        Some(resources) => qos::qos_class([resources].into_iter()),
        None => {
            let containers = init.iter().chain(regular);
            qos::qos_class(containers.map(|container| &container.resources))
        }
    };
    (resources, qos)
}

fn image_pull_secrets(spec: &k8s::PodSpec) -> Vec<Box<str>> {
    let secrets = spec.image_pull_secrets.iter().flatten();
    secrets
        .filter(|secret| !secret.name.is_empty())
        .map(|secret| secret.name.as_str().into())
        .collect()
}

/// No two containers that run at the same time may use one port of the host.
fn check_host_ports(
    spec: &k8s::PodSpec,
    init_containers: &[Container],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let host_network = spec.host_network.unwrap_or(false);
    let (path, init_path) = (path.child("containers"), path.child("initContainers"));
    let mut used = HashSet::new();
    for (index, container) in spec.containers.iter().enumerate() {
        let path = path.index(index);
        ports::check_host_ports(container, host_network, &mut used, &path, errors);
    }
    let init = spec.init_containers.as_deref().unwrap_or_default();
    for (index, container) in init.iter().enumerate() {
        // Init containers run one after the other, so each may use what another uses; but sidecars
        // keep running. With host network nothing is mapped, and the API server compares no sidecars.
        let mut own = HashSet::new();
        let keeps_running = init_containers[index].restart_policy == Some(RestartPolicy::Always);
        let used = if keeps_running && !host_network {
            &mut used
        } else {
            &mut own
        };
        let path = init_path.index(index);
        ports::check_host_ports(container, host_network, used, &path, errors);
    }
}

/// The names of all containers, each noted at most once.
fn container_names(spec: &k8s::PodSpec, path: &Path<'_>, errors: &mut Errors) -> HashSet<String> {
    let mut seen = HashSet::new();
    let mut note = |list: &str, containers: &[k8s::Container]| {
        let list = path.child(list);
        for (index, container) in containers.iter().enumerate() {
            if !container.name.is_empty() && !seen.insert(container.name.clone()) {
                errors.duplicate(&list.index(index).child("name"), &container.name);
            }
        }
    };
    // Init containers come second so that a doubled name is shown at them, as upstream does.
    note("containers", &spec.containers);
    note(
        "initContainers",
        spec.init_containers.as_deref().unwrap_or_default(),
    );
    seen.extend(
        spec.ephemeral_containers
            .iter()
            .flatten()
            .map(|one| one.name.clone()),
    );
    seen
}

/// The older name of the field counts where the newer one is missing.
fn service_account(spec: &k8s::PodSpec) -> Box<str> {
    text(spec.service_account_name.as_ref())
        .or_else(|| text(spec.service_account.as_ref()))
        .unwrap_or_default()
}

fn restart_policy(spec: &k8s::PodSpec, path: &Path<'_>, errors: &mut Errors) -> RestartPolicy {
    choice(
        &path.child("restartPolicy"),
        spec.restart_policy.as_ref(),
        &restart::POLICIES,
        errors,
    )
}

fn readiness_gates(spec: &k8s::PodSpec, path: &Path<'_>, errors: &mut Errors) -> Vec<Box<str>> {
    let path = path.child("readinessGates");
    let mut gates = Vec::new();
    for (index, gate) in spec.readiness_gates.iter().flatten().enumerate() {
        let path = path.index(index);
        let path = path.child("conditionType");
        match gate.condition_type.as_str() {
            "" => errors.required(&path, ""),
            kind => names::qualified(&path, kind, errors),
        }
        gates.push(gate.condition_type.as_str().into());
    }
    gates
}

fn grace_period(spec: &k8s::PodSpec, path: &Path<'_>, errors: &mut Errors) -> Duration {
    let seconds = spec.termination_grace_period_seconds.unwrap_or(30);
    if seconds < 0 {
        let path = path.child("terminationGracePeriodSeconds");
        errors.invalid(&path, seconds, "must not be negative");
    }
    Duration::from_secs(seconds.max(0).unsigned_abs())
}

fn deadline(spec: &k8s::PodSpec, path: &Path<'_>, errors: &mut Errors) -> Option<Duration> {
    let seconds = spec.active_deadline_seconds?;
    range(
        &path.child("activeDeadlineSeconds"),
        seconds,
        1,
        i32::MAX.into(),
        errors,
    );
    Some(Duration::from_secs(seconds.max(0).unsigned_abs()))
}

fn dns_label(value: Option<&String>, path: &Path<'_>, errors: &mut Errors) -> Option<Box<str>> {
    let value = text(value)?;
    names::label(path, &value, errors);
    Some(value)
}

fn hostname_override(
    spec: &k8s::PodSpec,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<Box<str>> {
    // The longest name that the kernel takes.
    const LONGEST: usize = 64;
    let path = path.child("hostnameOverride");
    let value = spec.hostname_override.as_deref()?;
    if spec.set_hostname_as_fqdn.unwrap_or(false) {
        errors.forbidden(&path, "must not stand beside setHostnameAsFQDN: true");
    }
    if spec.host_network.unwrap_or(false) {
        errors.forbidden(&path, "must not stand beside hostNetwork: true");
    }
    if value.len() > LONGEST {
        errors.invalid(&path, value, "must have at most 64 characters");
    }
    names::subdomain(&path, value, errors);
    Some(value.into())
}

fn share_process_namespace(spec: &k8s::PodSpec, path: &Path<'_>, errors: &mut Errors) -> bool {
    let share = spec.share_process_namespace.unwrap_or(false);
    if share && spec.host_pid.unwrap_or(false) {
        let detail = "must not be true beside hostPID: true";
        errors.invalid(&path.child("shareProcessNamespace"), true, detail);
    }
    share
}
