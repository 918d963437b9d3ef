//! The records of sandboxes and containers, on disk and in memory: everything that a status, a list
//! or a recovery needs. Times are nanoseconds since 1970; 0 means "not yet".

mod start_and_exit;

use std::{collections::BTreeMap, path::PathBuf};

use rubelet_cri::v1;
use rubelet_oci::{IdMappings, LinuxResources};
use serde::{Deserialize, Serialize};

use crate::state::{ContainerPhase, SandboxPhase};

/// Labels or annotations.
pub type StringMap = BTreeMap<String, String>;

/// A sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRecord {
    /// Its identifier.
    pub id: String,
    /// Boot ID of its creation; none of its processes run in another boot.
    pub boot_id: String,
    /// Name of the pod.
    pub name: String,
    /// Namespace of the pod.
    pub namespace: String,
    /// UID of the pod.
    pub uid: String,
    /// `metadata.attempt`.
    pub attempt: u32,
    /// Its phase.
    pub phase: SandboxPhase,
    /// Creation time.
    pub created_at: i64,
    /// Labels.
    #[serde(default)]
    pub labels: StringMap,
    /// Annotations.
    #[serde(default)]
    pub annotations: StringMap,
    /// Its runtime handler; empty is the default.
    #[serde(default)]
    pub runtime_handler: String,
    /// Directory of the containers' logs.
    #[serde(default)]
    pub log_directory: String,
    /// Parent cgroup of the containers.
    #[serde(default)]
    pub cgroup_parent: String,
    /// Cgroup of the shim.
    #[serde(default)]
    pub shim_cgroup: String,
    /// Process ID of the shim.
    #[serde(default)]
    pub shim_pid: i32,
    /// Namespaces.
    pub namespaces: NamespaceModes,
    /// Addresses, the primary one first.
    #[serde(default)]
    pub ips: Vec<String>,
    /// Host ports that are mapped to it.
    #[serde(default)]
    pub ports: Vec<PortRecord>,
    /// The network still holds resources of the sandbox.
    #[serde(default)]
    pub network_held: bool,
}

/// The namespaces of a pod, by the numbers of the CRI's `NamespaceMode`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceModes {
    /// Network.
    pub network: i32,
    /// Process IDs.
    pub pid: i32,
    /// IPC.
    pub ipc: i32,
    /// User and group IDs; `None` is the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<IdMappings>,
}

/// A port of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRecord {
    /// By the numbers of the CRI's `Protocol`.
    pub protocol: i32,
    /// Container port.
    pub container_port: i32,
    /// Host port.
    pub host_port: i32,
    /// Host address; empty means all.
    #[serde(default)]
    pub host_ip: String,
}

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerRecord {
    /// Its identifier.
    pub id: String,
    /// Its sandbox.
    pub sandbox_id: String,
    /// Boot ID of its creation.
    pub boot_id: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.attempt`.
    pub attempt: u32,
    /// Its phase.
    pub phase: ContainerPhase,
    /// Creation time.
    pub created_at: i64,
    /// Start time of its program.
    #[serde(default)]
    pub started_at: i64,
    /// Its exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitRecord>,
    /// Process ID of its init, while it runs.
    #[serde(default)]
    pub pid: i32,
    /// A name of the image; without one, the name in the request.
    pub image: String,
    /// The image as the pod specifies it.
    #[serde(default)]
    pub user_specified_image: String,
    /// A name of the image with its digest, or, without one, its identifier.
    #[serde(default)]
    pub image_ref: String,
    /// Identifier of the image.
    #[serde(default)]
    pub image_id: String,
    /// Labels.
    #[serde(default)]
    pub labels: StringMap,
    /// Annotations.
    #[serde(default)]
    pub annotations: StringMap,
    /// Mounts of the caller's request.
    #[serde(default)]
    pub mounts: Vec<MountRecord>,
    /// Absolute path of its log; empty for none.
    #[serde(default)]
    pub log_path: String,
    /// It has a terminal.
    #[serde(default)]
    pub tty: bool,
    /// Its standard input is open.
    #[serde(default)]
    pub stdin: bool,
    /// Its standard input closes with the first client.
    #[serde(default)]
    pub stdin_once: bool,
    /// Limits in force.
    #[serde(default)]
    pub resources: LinuxResources,
    /// `oom_score_adj`.
    #[serde(default)]
    pub oom_score_adj: i32,
    /// User.
    pub user: UserRecord,
    /// The stop signal.
    pub stop_signal: i32,
    /// Its cgroup.
    pub cgroup: String,
    /// Name of its scope, if systemd created the cgroup.
    #[serde(default)]
    pub scope: String,
}

/// The exit of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Exit code; 128 plus the number for a signal.
    pub code: i32,
    /// Time of the exit.
    pub at: i64,
    /// `Completed`, `Error`, `OOMKilled`, `StartError` or `Unknown`.
    pub reason: String,
    /// Human-readable details.
    #[serde(default)]
    pub message: String,
    /// The signal that killed it; 0 if none did.
    #[serde(default)]
    pub signal: i32,
    /// The OOM killer killed one of its processes.
    #[serde(default)]
    pub oom_killed: bool,
}

/// A mount.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRecord {
    /// Path in the container.
    pub container_path: String,
    /// Path on the host.
    pub host_path: String,
    /// It is read-only.
    #[serde(default)]
    pub readonly: bool,
    /// Mounts below it are read-only, too.
    #[serde(default)]
    pub recursive_read_only: bool,
    /// By the numbers of the CRI's `MountPropagation`.
    #[serde(default)]
    pub propagation: i32,
    /// SELinux relabeling was requested.
    #[serde(default)]
    pub selinux_relabel: bool,
    /// The image that is mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<MountedImage>,
}

/// An image that a container mounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountedImage {
    /// Its identifier, once it was found.
    pub id: String,
    /// The image as the pod specifies it.
    #[serde(default)]
    pub user_specified_image: String,
    /// The mounted path in it; empty means all of it.
    #[serde(default)]
    pub sub_path: String,
}

/// The user of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRecord {
    /// User ID.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// All other groups.
    #[serde(default)]
    pub groups: Vec<u32>,
}

/// The exit code of a container whose exit was not observed.
pub(crate) const UNKNOWN_EXIT_CODE: i32 = 255;
/// The exit code of a container that could not be started.
pub(crate) const START_FAILED_EXIT_CODE: i32 = 128;

impl ExitRecord {
    /// An observed exit. `signal` is 0 for a program that was not killed by a signal.
    #[must_use]
    pub fn seen(code: i32, signal: i32, at: i64, oom_killed: bool) -> Self {
        let reason = match code {
            _ if oom_killed => "OOMKilled",
            0 => "Completed",
            _ => "Error",
        };
        Self {
            code,
            at,
            reason: reason.to_owned(),
            message: String::new(),
            signal,
            oom_killed,
        }
    }

    /// An exit that was not observed.
    pub fn unknown(at: i64, message: impl Into<String>) -> Self {
        Self {
            code: UNKNOWN_EXIT_CODE,
            at,
            reason: "Unknown".to_owned(),
            message: message.into(),
            signal: 0,
            oom_killed: false,
        }
    }

    /// A program that could not be executed.
    pub fn start_failed(at: i64, message: impl Into<String>) -> Self {
        Self {
            code: START_FAILED_EXIT_CODE,
            at,
            reason: "StartError".to_owned(),
            message: message.into(),
            signal: 0,
            oom_killed: false,
        }
    }
}

impl NamespaceModes {
    /// The modes of a pod's configuration.
    ///
    /// # Errors
    /// Invalid mappings of a user namespace.
    pub fn of(config: &v1::PodSandboxConfig) -> Result<Self, crate::Refusal> {
        let linux = config.linux.as_ref();
        let security = linux.and_then(|linux| linux.security_context.as_ref());
        let Some(options) = security.and_then(|security| security.namespace_options.as_ref())
        else {
            return Ok(Self::default());
        };
        Ok(Self {
            network: options.network,
            pid: options.pid,
            ipc: options.ipc,
            user: crate::userns::mappings(options.userns_options.as_ref())?,
        })
    }
}

impl MountRecord {
    /// The record of a mount.
    #[must_use]
    pub fn of(mount: &v1::Mount) -> Self {
        Self {
            container_path: mount.container_path.clone(),
            host_path: mount.host_path.clone(),
            readonly: mount.readonly,
            recursive_read_only: mount.recursive_read_only,
            propagation: mount.propagation,
            selinux_relabel: mount.selinux_relabel,
            image: mount.image.as_ref().map(|image| MountedImage {
                id: image.image.clone(),
                user_specified_image: image.user_specified_image.clone(),
                sub_path: mount.image_sub_path.clone(),
            }),
        }
    }
}

impl PortRecord {
    /// The record of a port.
    #[must_use]
    pub fn of(port: &v1::PortMapping) -> Self {
        Self {
            protocol: port.protocol,
            container_port: port.container_port,
            host_port: port.host_port,
            host_ip: port.host_ip.clone(),
        }
    }
}

/// Names that two sandboxes or containers can't have at the same time. Identifiers are random, so
/// these names make a repeated create of the same object fail.
pub mod names {
    use rubelet_cri::v1;

    /// The name of a sandbox: name, namespace, UID and attempt.
    #[must_use]
    pub fn sandbox(metadata: &v1::PodSandboxMetadata) -> String {
        format!(
            "{}_{}_{}_{}",
            metadata.name, metadata.namespace, metadata.uid, metadata.attempt
        )
    }

    /// The name of a container: its own and attempt, and those of its pod.
    #[must_use]
    pub fn container(container: &v1::ContainerMetadata, pod: &v1::PodSandboxMetadata) -> String {
        format!(
            "{}_{}_{}_{}_{}",
            container.name, pod.name, pod.namespace, pod.uid, container.attempt
        )
    }
}

/// Directories of sandboxes and containers below the run directory.
pub mod directories {
    use super::PathBuf;

    /// The directory of a sandbox.
    #[must_use]
    pub fn sandbox(run: &std::path::Path, sandbox: &str) -> PathBuf {
        run.join("sandboxes").join(sandbox)
    }

    /// The bundle of a container.
    #[must_use]
    pub fn container(run: &std::path::Path, sandbox: &str, container: &str) -> PathBuf {
        sandbox_containers(run, sandbox).join(container)
    }

    fn sandbox_containers(run: &std::path::Path, id: &str) -> PathBuf {
        sandbox(run, id).join("containers")
    }
}

#[cfg(test)]
mod tests {
    use rubelet_oci::IdMapping;

    use super::*;

    #[test]
    fn the_record_of_a_user_namespace_keeps_its_form() {
        let text = concat!(
            r#"{"network":0,"pid":1,"ipc":0,"user":"#,
            r#"{"uids":[{"containerID":0,"hostID":65536,"size":65536}],"#,
            r#""gids":[{"containerID":0,"hostID":131072,"size":65536}]}}"#
        );
        let range = |host_id| {
            vec![IdMapping {
                container_id: 0,
                host_id,
                size: 65536,
            }]
        };
        let modes = NamespaceModes {
            network: 0,
            pid: 1,
            ipc: 0,
            user: Some(IdMappings {
                uids: range(65536),
                gids: range(131_072),
            }),
        };
        assert_eq!(serde_json::to_string(&modes).unwrap(), text);
        assert_eq!(serde_json::from_str::<NamespaceModes>(text).unwrap(), modes);
    }
}
