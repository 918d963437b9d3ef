//! Security contexts as CRI messages.

use rubelet_api::{
    container::Container,
    pod::Pod,
    security::{Profile, SeLinux, UserRange},
};
use rubelet_base::ContainerId;
use rubelet_cri::v1;

use super::{ContainerInputs, ImageUser};

/// Paths hidden from unprivileged containers with the default `procMount`, with
/// `thermal_throttle` of each processor. The lists are those of the kubelet 1.36
/// (`pkg/securitycontext`), which are moby's; a runtime skips paths that do not exist.
const MASKED_PATHS: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];

/// Paths such containers can only read.
const READONLY_PATHS: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// A violation of `runAsNonRoot`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NonRootError {
    /// `runAsUser` is 0.
    #[error("container's runAsUser breaks non-root policy")]
    RunAsUserIsRoot,
    /// The image's user is 0.
    #[error("container has runAsNonRoot and image will run as root")]
    ImageIsRoot,
    /// The image sets a user name whose UID is unknown.
    #[error(
        "container has runAsNonRoot and image has non-numeric user ({0}), cannot verify user is non-root"
    )]
    UserIsAName(String),
}

/// Checks `runAsNonRoot` against the user of the container.
///
/// # Errors
/// The container would run as root, or its user is unknown.
pub fn verify_non_root(
    pod: &Pod,
    container: &Container,
    image: &ImageUser,
) -> Result<(), NonRootError> {
    let (own, shared) = (&container.security.shared, &pod.spec.security.shared);
    if own.run_as_non_root.or(shared.run_as_non_root) != Some(true) {
        return Ok(());
    }
    match own.run_as_user.or(shared.run_as_user) {
        Some(0) => return Err(NonRootError::RunAsUserIsRoot),
        Some(_) => return Ok(()),
        None => {}
    }
    match image.uid {
        Some(0) => Err(NonRootError::ImageIsRoot),
        Some(_) => Ok(()),
        None if image.name.is_empty() => Err(NonRootError::ImageIsRoot),
        None => Err(NonRootError::UserIsAName(image.name.clone())),
    }
}

#[expect(
    deprecated,
    reason = "runtimes before CRI 0.23 read only the string form of AppArmor profiles"
)]
pub(super) fn container(
    pod: &Pod,
    container: &Container,
    inputs: &ContainerInputs,
) -> v1::LinuxContainerSecurityContext {
    let (own, shared) = (&container.security.shared, &pod.spec.security.shared);
    let security = &container.security;
    let image = &inputs.image_user;
    let run_as_user = own.run_as_user.or(shared.run_as_user).or(image.uid);
    let (mut masked_paths, mut readonly_paths) = (Vec::new(), Vec::new());
    if !security.proc_unmasked && !security.privileged {
        masked_paths.extend(MASKED_PATHS.map(str::to_owned));
        masked_paths.extend(inputs.thermal_throttle.iter().cloned());
        readonly_paths.extend(READONLY_PATHS.map(str::to_owned));
    }
    let seccomp = if security.privileged {
        unconfined()
    } else {
        match own.seccomp.as_ref().or(shared.seccomp.as_ref()) {
            Some(wanted) => profile(wanted, &inputs.seccomp_root),
            None if inputs.seccomp_default => v1::SecurityProfile::default(),
            None => unconfined(),
        }
    };
    let apparmor = own.apparmor.as_ref().or(shared.apparmor.as_ref());
    v1::LinuxContainerSecurityContext {
        capabilities: Some(v1::Capability {
            add_capabilities: security
                .capabilities_add
                .iter()
                .map(ToString::to_string)
                .collect(),
            drop_capabilities: security
                .capabilities_drop
                .iter()
                .map(ToString::to_string)
                .collect(),
            add_ambient_capabilities: Vec::new(),
        }),
        privileged: security.privileged,
        namespace_options: Some(container_namespaces(
            pod,
            inputs.target.as_ref(),
            inputs.users,
        )),
        selinux_options: own
            .selinux
            .as_ref()
            .or(shared.selinux.as_ref())
            .map(selinux),
        run_as_user: run_as_user.map(|value| v1::Int64Value { value }),
        run_as_group: own
            .run_as_group
            .or(shared.run_as_group)
            .map(|value| v1::Int64Value { value }),
        run_as_username: if run_as_user.is_none() {
            image.name.clone()
        } else {
            String::new()
        },
        readonly_rootfs: security.read_only_root,
        supplemental_groups: supplemental_groups(pod),
        supplemental_groups_policy: groups_policy(pod),
        no_new_privs: security.allow_privilege_escalation == Some(false),
        masked_paths,
        readonly_paths,
        seccomp: Some(seccomp),
        apparmor: apparmor.map(|wanted| profile(wanted, "")),
        apparmor_profile: apparmor.map(apparmor_name).unwrap_or_default(),
        ..v1::LinuxContainerSecurityContext::default()
    }
}

fn unconfined() -> v1::SecurityProfile {
    v1::SecurityProfile {
        profile_type: v1::security_profile::ProfileType::Unconfined.into(),
        localhost_ref: String::new(),
    }
}

/// `root` is the directory of Localhost seccomp profiles; empty for AppArmor, whose profiles have
/// names.
fn profile(wanted: &Profile, root: &str) -> v1::SecurityProfile {
    match wanted {
        Profile::Unconfined => unconfined(),
        Profile::RuntimeDefault => v1::SecurityProfile::default(),
        Profile::Localhost(name) => v1::SecurityProfile {
            profile_type: v1::security_profile::ProfileType::Localhost.into(),
            localhost_ref: if root.is_empty() {
                name.to_string()
            } else {
                format!("{root}/{name}")
            },
        },
    }
}

/// The deprecated string form, which older runtimes read.
fn apparmor_name(wanted: &Profile) -> String {
    match wanted {
        Profile::Unconfined => "unconfined".to_owned(),
        Profile::RuntimeDefault => "runtime/default".to_owned(),
        Profile::Localhost(name) => format!("localhost/{name}"),
    }
}

pub(super) fn namespaces(pod: &Pod, users: Option<UserRange>) -> v1::NamespaceOption {
    let spec = &pod.spec;
    let mode = |host: bool, otherwise: v1::NamespaceMode| {
        if host {
            v1::NamespaceMode::Node
        } else {
            otherwise
        }
        .into()
    };
    let pid = if spec.share_process_namespace {
        v1::NamespaceMode::Pod
    } else {
        v1::NamespaceMode::Container
    };
    v1::NamespaceOption {
        network: mode(spec.host_network, v1::NamespaceMode::Pod),
        pid: mode(spec.host_pid, pid),
        ipc: mode(spec.host_ipc, v1::NamespaceMode::Pod),
        target_id: String::new(),
        userns_options: users.map(user_namespace),
    }
}

/// A target matters only if each container has its own PID namespace; otherwise it is shared
/// anyway.
fn container_namespaces(
    pod: &Pod,
    target: Option<&ContainerId>,
    users: Option<UserRange>,
) -> v1::NamespaceOption {
    let mut options = namespaces(pod, users);
    if let Some(target) = target
        && options.pid == i32::from(v1::NamespaceMode::Container)
    {
        options.pid = v1::NamespaceMode::Target.into();
        options.target_id = target.as_str().to_owned();
    }
    options
}

fn user_namespace(users: UserRange) -> v1::UserNamespace {
    v1::UserNamespace {
        mode: v1::NamespaceMode::Pod.into(),
        uids: id_mappings(users),
        gids: id_mappings(users),
    }
}

/// The ID mappings for users as well as for groups.
pub(super) fn id_mappings(users: UserRange) -> Vec<v1::IdMapping> {
    vec![v1::IdMapping {
        host_id: users.first,
        container_id: 0,
        length: users.length,
    }]
}

pub(super) fn selinux(options: &SeLinux) -> v1::SeLinuxOption {
    v1::SeLinuxOption {
        user: options.user.to_string(),
        role: options.role.to_string(),
        r#type: options.kind.to_string(),
        level: options.level.to_string(),
    }
}

/// `supplementalGroups`, then `fsGroup`, which upstream appends.
pub(super) fn supplemental_groups(pod: &Pod) -> Vec<i64> {
    let security = &pod.spec.security;
    security
        .supplemental_groups
        .iter()
        .copied()
        .chain(security.fs_group)
        .collect()
}

pub(super) fn groups_policy(pod: &Pod) -> i32 {
    if pod.spec.security.supplemental_groups_strict {
        v1::SupplementalGroupsPolicy::Strict
    } else {
        v1::SupplementalGroupsPolicy::Merge
    }
    .into()
}
