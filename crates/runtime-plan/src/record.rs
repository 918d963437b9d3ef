//! What is kept on disk of sandboxes and containers, and in memory: all that a status, a list or a
//! recovery needs. Times are nanoseconds since 1970; 0 is "not yet".

use std::{collections::BTreeMap, path::PathBuf};

use rubelet_cri::v1;
use rubelet_oci::LinuxResources;
use serde::{Deserialize, Serialize};

use crate::{
    state::{ContainerPhase, SandboxPhase},
    userns::UserMappings,
};

/// Labels or annotations.
pub type Texts = BTreeMap<String, String>;

/// A sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRecord {
    /// Its identifier.
    pub id: String,
    /// Boot in which it was made; nothing of it runs in another one.
    pub boot_id: String,
    /// Name of the pod.
    pub name: String,
    /// Namespace of the pod.
    pub namespace: String,
    /// UID of the pod.
    pub uid: String,
    /// `metadata.attempt`.
    pub attempt: u32,
    /// How far it is.
    pub phase: SandboxPhase,
    /// When it was made.
    pub created_at: i64,
    /// Labels.
    #[serde(default)]
    pub labels: Texts,
    /// Annotations.
    #[serde(default)]
    pub annotations: Texts,
    /// Runtime handler it was made with; empty is the default.
    #[serde(default)]
    pub runtime_handler: String,
    /// Directory of the containers' logs.
    #[serde(default)]
    pub log_directory: String,
    /// Where the containers' cgroups go.
    #[serde(default)]
    pub cgroup_parent: String,
    /// Cgroup of the shim.
    #[serde(default)]
    pub shim_cgroup: String,
    /// Process of the shim.
    #[serde(default)]
    pub shim_pid: i32,
    /// Namespaces.
    pub namespaces: NamespaceModes,
    /// Addresses, the primary one first.
    #[serde(default)]
    pub ips: Vec<String>,
    /// Ports of the host that lead to it.
    #[serde(default)]
    pub ports: Vec<PortRecord>,
    /// Whether the network still has something to give back.
    #[serde(default)]
    pub network_held: bool,
}

/// The namespaces of a pod, by the numbers of the CRI's `NamespaceMode`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceModes {
    /// Network.
    pub network: i32,
    /// Processes.
    pub pid: i32,
    /// IPC.
    pub ipc: i32,
    /// Users; `None` is the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserMappings>,
}

/// A port of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRecord {
    /// By the numbers of the CRI's `Protocol`.
    pub protocol: i32,
    /// Port inside.
    pub container_port: i32,
    /// Port of the host.
    pub host_port: i32,
    /// Address of the host; empty is all.
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
    /// Boot in which it was made.
    pub boot_id: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.attempt`.
    pub attempt: u32,
    /// How far it is.
    pub phase: ContainerPhase,
    /// When it was made.
    pub created_at: i64,
    /// When its program began.
    #[serde(default)]
    pub started_at: i64,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitRecord>,
    /// First process, while it runs.
    #[serde(default)]
    pub pid: i32,
    /// A name of the image; what the caller wrote where it has none.
    pub image: String,
    /// What the pod's author wrote.
    #[serde(default)]
    pub user_specified_image: String,
    /// A name of the image with its digest, or the identifier where it has none.
    #[serde(default)]
    pub image_ref: String,
    /// Identifier of the image.
    #[serde(default)]
    pub image_id: String,
    /// Labels.
    #[serde(default)]
    pub labels: Texts,
    /// Annotations.
    #[serde(default)]
    pub annotations: Texts,
    /// Mounts of the caller's request.
    #[serde(default)]
    pub mounts: Vec<MountRecord>,
    /// Absolute path of its log; empty for none.
    #[serde(default)]
    pub log_path: String,
    /// Whether it has a terminal.
    #[serde(default)]
    pub tty: bool,
    /// Whether its standard input is open.
    #[serde(default)]
    pub stdin: bool,
    /// Whether its standard input closes with the first client.
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
    /// Name of its scope, if systemd made the cgroup.
    #[serde(default)]
    pub scope: String,
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Exit code; 128 and the number for a signal.
    pub code: i32,
    /// When.
    pub at: i64,
    /// `Completed`, `Error`, `OOMKilled`, `StartError` or `Unknown`.
    pub reason: String,
    /// More for people to read.
    #[serde(default)]
    pub message: String,
    /// The signal that ended it; 0 if it ended by itself.
    #[serde(default)]
    pub signal: i32,
    /// Whether the kernel killed one of its processes for want of memory.
    #[serde(default)]
    pub oom_killed: bool,
}

/// A mount.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRecord {
    /// Path inside.
    pub container_path: String,
    /// Path on the host.
    pub host_path: String,
    /// Whether it is read-only.
    #[serde(default)]
    pub readonly: bool,
    /// Whether what is mounted below is read-only, too.
    #[serde(default)]
    pub recursive_read_only: bool,
    /// By the numbers of the CRI's `MountPropagation`.
    #[serde(default)]
    pub propagation: i32,
    /// Whether files were to be relabelled.
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
    /// What the pod's author wrote.
    #[serde(default)]
    pub user_specified_image: String,
    /// The part of it that is mounted; empty is the whole.
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

/// The exit code of a container whose end nobody saw.
pub const UNKNOWN_EXIT_CODE: i32 = 255;
/// The exit code of a container that could not be started.
pub const START_FAILED_EXIT_CODE: i32 = 128;

impl ExitRecord {
    /// An end that was seen. `signal` is 0 for a program that ended by itself.
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

    /// An end that nobody saw.
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
    /// Mappings of a user namespace that can't be.
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

/// Names that two sandboxes or containers can't have at the same time. An identifier is random, so
/// this is what makes a repeated create of the same thing fail.
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

/// Where a record's files are below the directory of running things.
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
