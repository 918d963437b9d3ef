//! `PodSandboxConfig`.

use rubelet_api::{network::Protocol, pod::Pod, security::UserRange};
use rubelet_cri::v1;

use super::{labels, security};

/// The inputs of a sandbox's configuration beside the pod's specification.
#[derive(Debug, Clone)]
pub struct SandboxInputs {
    /// `metadata.attempt`.
    pub attempt: u32,
    /// The pod's log directory, absolute.
    pub log_directory: String,
    /// The pod's host name; ignored for host network.
    pub hostname: String,
    /// Resolver settings.
    pub dns: v1::DnsConfig,
    /// The pod's cgroup in the form of the runtime's driver; empty lets the runtime choose.
    pub cgroup_parent: String,
    /// Sums over the containers, for runtimes that size a virtual machine by them.
    pub resources: Option<v1::LinuxContainerResources>,
    /// The pod's ID range, if it has a user namespace.
    pub users: Option<UserRange>,
}

/// Builds the configuration from which a runtime creates the pod's sandbox.
#[must_use]
pub fn sandbox_config(pod: &Pod, inputs: SandboxInputs) -> v1::PodSandboxConfig {
    let spec = &pod.spec;
    let security = &spec.security;
    let hostname = if spec.host_network {
        String::new()
    } else {
        inputs.hostname
    };
    v1::PodSandboxConfig {
        metadata: Some(v1::PodSandboxMetadata {
            name: pod.name.name.to_string(),
            uid: pod.uid.as_str().to_owned(),
            namespace: pod.name.namespace.to_string(),
            attempt: inputs.attempt,
        }),
        hostname,
        log_directory: inputs.log_directory,
        dns_config: Some(inputs.dns),
        port_mappings: port_mappings(pod),
        labels: labels::sandbox_labels(pod),
        annotations: labels::sandbox_annotations(pod),
        linux: Some(v1::LinuxPodSandboxConfig {
            cgroup_parent: inputs.cgroup_parent,
            security_context: Some(v1::LinuxSandboxSecurityContext {
                namespace_options: Some(security::namespaces(pod, inputs.users)),
                selinux_options: security.shared.selinux.as_ref().map(security::selinux),
                run_as_user: security.shared.run_as_user.map(int64),
                run_as_group: security.shared.run_as_group.map(int64),
                readonly_rootfs: false,
                supplemental_groups: security::supplemental_groups(pod),
                supplemental_groups_policy: security::groups_policy(pod),
                privileged: is_privileged(pod),
                seccomp: Some(v1::SecurityProfile::default()),
                apparmor: None,
                ..v1::LinuxSandboxSecurityContext::default()
            }),
            sysctls: security
                .sysctls
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            overhead: None,
            resources: inputs.resources,
        }),
        windows: None,
    }
}

/// Runtimes reject a privileged container if this is false. They check the sandbox configuration
/// that is sent with the container, so it may change during the life of a sandbox.
fn is_privileged(pod: &Pod) -> bool {
    let ephemeral = pod.spec.ephemeral_containers.iter();
    pod.spec
        .all_containers()
        .chain(ephemeral.map(|one| &one.container))
        .any(|container| container.security.privileged)
}

/// Host ports of regular containers and sidecars; the runtime's network plugin maps them.
fn port_mappings(pod: &Pod) -> Vec<v1::PortMapping> {
    if pod.spec.host_network {
        return Vec::new();
    }
    let sidecars = pod.spec.sidecars().map(|(_, sidecar)| sidecar);
    pod.spec
        .containers
        .iter()
        .chain(sidecars)
        .flat_map(|container| &container.ports)
        .filter_map(|port| {
            Some(v1::PortMapping {
                protocol: match port.protocol {
                    Protocol::Tcp => v1::Protocol::Tcp,
                    Protocol::Udp => v1::Protocol::Udp,
                    Protocol::Sctp => v1::Protocol::Sctp,
                }
                .into(),
                container_port: port.container_port.into(),
                host_port: port.host_port?.into(),
                host_ip: port.host_ip.as_deref().unwrap_or_default().to_owned(),
            })
        })
        .collect()
}

fn int64(value: i64) -> v1::Int64Value {
    v1::Int64Value { value }
}
