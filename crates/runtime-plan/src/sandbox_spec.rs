//! Plans a sandbox from a pod's configuration.

mod network;
mod sysctls;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rubelet_cgroup_plan::runtime_cgroup;
use rubelet_cri::v1;
use rubelet_oci::IdMappings;
use serde::{Deserialize, Serialize};

use crate::{Refusal, host::HostFacts, profile, userns};

/// A sandbox to make.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxPlan {
    /// Whether the pod has a network of its own.
    pub network: bool,
    /// Whether the pod has IPC of its own.
    pub ipc: bool,
    /// Whether the pod has a host name of its own.
    pub uts: bool,
    /// Who sees whose processes.
    pub pid: PidMode,
    /// The pod's user namespace; `None` is the host's.
    pub user: Option<IdMappings>,
    /// Host name to set in the UTS namespace; `None` leaves the host's.
    pub hostname: Option<String>,
    /// Content of `/etc/hostname`.
    pub hostname_file: String,
    /// Content of `/etc/resolv.conf`; `None` is a copy of the host's.
    pub resolv_conf: Option<String>,
    /// Kernel parameters to set inside of the pod's namespaces, by dotted name.
    pub sysctls: BTreeMap<String, String>,
    /// Size of the pod's own `/dev/shm` in bytes; `None` where the host's is used.
    pub shm_bytes: Option<u64>,
    /// Where the containers' cgroups go, see [`runtime_cgroup::container`].
    pub cgroup_parent: String,
    /// Ports of the host that lead to the pod.
    pub port_mappings: Vec<v1::PortMapping>,
    /// Whether privileged containers may join.
    pub privileged: bool,
}

/// Who sees whose processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PidMode {
    /// All containers of the pod share one namespace, and a pause process is its first.
    Pod,
    /// Each container has its own.
    Container,
    /// All see the host's.
    Node,
}

/// Size of a pod's `/dev/shm` in bytes, as docker and containerd have it.
pub(crate) const SHM_BYTES: u64 = 64 << 20;

/// Longest host name that Linux takes.
const HOSTNAME_MAX: usize = 64;

/// Decides on a sandbox.
///
/// # Errors
/// A request that can't be fulfilled.
pub fn plan(config: &v1::PodSandboxConfig, host: &HostFacts) -> Result<SandboxPlan, Refusal> {
    check_metadata(config)?;
    let linux = config.linux.clone().unwrap_or_default();
    let security = linux.security_context.unwrap_or_default();
    let options = security.namespace_options.clone().unwrap_or_default();
    let own_network = !is_host(options.network, "network")?;
    let ipc = !is_host(options.ipc, "ipc")?;
    let pid = match v1::NamespaceMode::try_from(options.pid) {
        Ok(v1::NamespaceMode::Pod) => PidMode::Pod,
        Ok(v1::NamespaceMode::Container) => PidMode::Container,
        Ok(v1::NamespaceMode::Node) => PidMode::Node,
        _ => return Err(namespace("pid", options.pid)),
    };
    let user = userns::mappings(options.userns_options.as_ref())?;
    if user.is_some() {
        check_user_namespace(host, ipc, pid)?;
    }
    check_profiles(&security, host)?;
    // What no container could be put below is refused before there is a pod.
    runtime_cgroup::container(&linux.cgroup_parent, "any", host.driver)?;
    let hostname = own_network
        .then(|| match &*config.hostname {
            "" => host.hostname.clone(),
            own => own.to_owned(),
        })
        .filter(|name| !name.is_empty());
    if let Some(name) = &hostname
        && (name.len() > HOSTNAME_MAX || name.contains(['\0', '\n', '/']))
    {
        return Err(Refusal::new(
            "hostname",
            format!(
                "{name:?} cannot be a host name: it is longer than {HOSTNAME_MAX} bytes or has a character that names don't have"
            ),
        ));
    }
    Ok(SandboxPlan {
        network: own_network,
        ipc,
        // A host name of its own makes sense only with addresses of its own.
        uts: own_network,
        pid,
        hostname_file: format!("{}\n", hostname.as_deref().unwrap_or(&host.hostname)),
        hostname,
        resolv_conf: config
            .dns_config
            .as_ref()
            .map(network::resolv_conf)
            .transpose()?,
        sysctls: sysctls::sysctls(linux.sysctls, own_network, ipc, user.is_some())?,
        shm_bytes: ipc.then_some(SHM_BYTES),
        cgroup_parent: linux.cgroup_parent,
        port_mappings: network::ports(config, own_network)?,
        privileged: security.privileged,
        user,
    })
}

fn check_metadata(config: &v1::PodSandboxConfig) -> Result<(), Refusal> {
    let Some(metadata) = &config.metadata else {
        return Err(Refusal::new("metadata", "it is missing"));
    };
    for (field, value) in [
        ("name", &metadata.name),
        ("namespace", &metadata.namespace),
        ("uid", &metadata.uid),
    ] {
        if value.is_empty() {
            return Err(Refusal::new(format!("metadata.{field}"), "it is empty"));
        }
    }
    if config.windows.is_some() {
        return Err(Refusal::new("windows", "this is a runtime for Linux"));
    }
    Ok(())
}

fn is_host(mode: i32, kind: &str) -> Result<bool, Refusal> {
    match v1::NamespaceMode::try_from(mode) {
        Ok(v1::NamespaceMode::Pod) => Ok(false),
        Ok(v1::NamespaceMode::Node) => Ok(true),
        _ => Err(namespace(kind, mode)),
    }
}

fn namespace(kind: &str, mode: i32) -> Refusal {
    let name = v1::NamespaceMode::try_from(mode).map_or("unknown", |mode| mode.as_str_name());
    Refusal::new(
        format!("linux.security_context.namespace_options.{kind}"),
        format!("mode {mode} ({name}) is not possible for a sandbox"),
    )
}

/// The kernel lets a user namespace mount `proc` and `mqueue` only of namespaces that it owns.
fn check_user_namespace(host: &HostFacts, ipc: bool, pid: PidMode) -> Result<(), Refusal> {
    let why = if !host.user_namespaces {
        "the host has no user namespaces: see /proc/sys/user/max_user_namespaces"
    } else if !host.idmapped_mounts {
        "the host's kernel cannot map the IDs of mounts, which user namespaces need; Linux 5.12 or newer can"
    } else if !ipc {
        "a user namespace cannot be used together with the host's IPC namespace"
    } else if pid == PidMode::Node {
        "a user namespace cannot be used together with the host's process namespace"
    } else {
        return Ok(());
    };
    Err(Refusal::new(
        "linux.security_context.namespace_options.userns_options",
        why,
    ))
}

/// Profiles of a sandbox are for its pause process. That executes no program here, so they are
/// only checked.
#[expect(
    deprecated,
    reason = "kubelets before CRI 0.23 write only the string form"
)]
fn check_profiles(
    security: &v1::LinuxSandboxSecurityContext,
    host: &HostFacts,
) -> Result<(), Refusal> {
    let like_container = v1::LinuxContainerSecurityContext {
        privileged: security.privileged,
        seccomp: security.seccomp.clone(),
        seccomp_profile_path: security.seccomp_profile_path.clone(),
        apparmor: None,
        ..Default::default()
    };
    profile::seccomp(&like_container, host)?;
    profile::selinux(security.selinux_options.as_ref(), host)
}
