//! Security contexts.

use std::collections::HashSet;

use k8s_openapi::api::core::v1 as k8s;
use rubelet_yaml::nearest;

use super::{
    Errors, Path,
    scope::Scope,
    values::{below, choice, range},
};
use crate::{
    annotations::APPARMOR_PREFIX,
    security::{ContainerSecurity, PodSecurity, Profile, SeLinux, SharedSecurity},
};

/// Longest path the kernel takes, without its final zero byte.
const MAX_PROFILE: usize = 4095;
const MAX_SYSCTL: usize = 253;

/// capabilities(7), without the prefix CAP_.
const CAPABILITIES: [&str; 42] = [
    "ALL",
    "AUDIT_CONTROL",
    "AUDIT_READ",
    "AUDIT_WRITE",
    "BLOCK_SUSPEND",
    "BPF",
    "CHECKPOINT_RESTORE",
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "IPC_OWNER",
    "KILL",
    "LEASE",
    "LINUX_IMMUTABLE",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "PERFMON",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYSLOG",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_CHROOT",
    "SYS_MODULE",
    "SYS_NICE",
    "SYS_PACCT",
    "SYS_PTRACE",
    "SYS_RAWIO",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "WAKE_ALARM",
];

/// The pod's context.
pub(super) fn pod(spec: &k8s::PodSpec, path: &Path<'_>, errors: &mut Errors) -> PodSecurity {
    let empty = k8s::PodSecurityContext::default();
    let context = spec.security_context.as_ref().unwrap_or(&empty);
    let shared = CommonFields {
        run_as_user: context.run_as_user,
        run_as_group: context.run_as_group,
        run_as_non_root: context.run_as_non_root,
        seccomp: context.seccomp_profile.as_ref(),
        apparmor: context.app_armor_profile.as_ref(),
        selinux: context.se_linux_options.as_ref(),
    };
    if let Some(group) = context.fs_group {
        identifier(&path.child("fsGroup"), group, errors);
    }
    let groups = context.supplemental_groups.clone().unwrap_or_default();
    for (index, group) in groups.iter().enumerate() {
        identifier(
            &path.child("supplementalGroups").index(index),
            *group,
            errors,
        );
    }
    let change_policies = [("Always", false), ("OnRootMismatch", true)];
    let change_policy = context
        .fs_group_change_policy
        .as_ref()
        .filter(|policy| !policy.is_empty());
    let groups_policies = [("Merge", false), ("Strict", true)];
    let groups_policy = context
        .supplemental_groups_policy
        .as_ref()
        .filter(|policy| !policy.is_empty());
    PodSecurity {
        shared: shared.convert(path, errors),
        fs_group: context.fs_group,
        fs_group_on_root_mismatch: change_policy.is_some()
            && choice(
                &path.child("fsGroupChangePolicy"),
                change_policy,
                &change_policies,
                errors,
            ),
        supplemental_groups: groups,
        supplemental_groups_strict: groups_policy.is_some()
            && choice(
                &path.child("supplementalGroupsPolicy"),
                groups_policy,
                &groups_policies,
                errors,
            ),
        sysctls: sysctls(context, spec, &path.child("sysctls"), errors),
    }
}

/// A container's context.
pub(super) fn container(
    container: &k8s::Container,
    scope: &Scope<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> ContainerSecurity {
    let empty = k8s::SecurityContext::default();
    let context = container.security_context.as_ref().unwrap_or(&empty);
    let shared = CommonFields {
        run_as_user: context.run_as_user,
        run_as_group: context.run_as_group,
        run_as_non_root: context.run_as_non_root,
        seccomp: context.seccomp_profile.as_ref(),
        apparmor: context.app_armor_profile.as_ref(),
        selinux: context.se_linux_options.as_ref(),
    };
    let mut shared = shared.convert(path, errors);
    if shared.apparmor.is_none() {
        shared.apparmor = apparmor_annotation(&container.name, scope, errors);
    }
    let privileged = context.privileged.unwrap_or(false);
    let added = context
        .capabilities
        .as_ref()
        .and_then(|capabilities| capabilities.add.as_ref());
    let dropped = context
        .capabilities
        .as_ref()
        .and_then(|capabilities| capabilities.drop.as_ref());
    if context.allow_privilege_escalation == Some(false) {
        let path = path.child("allowPrivilegeEscalation");
        if privileged {
            errors.invalid(&path, false, "must not be false in a privileged container");
        }
        if added.is_some_and(|added| added.iter().any(|name| name == "CAP_SYS_ADMIN")) {
            errors.invalid(
                &path,
                false,
                "must not be false beside the capability CAP_SYS_ADMIN",
            );
        }
    }
    let capabilities_path = path.child("capabilities");
    ContainerSecurity {
        shared,
        privileged,
        allow_privilege_escalation: context.allow_privilege_escalation,
        read_only_root: context.read_only_root_filesystem.unwrap_or(false),
        capabilities_add: capabilities(added, &capabilities_path.child("add"), errors),
        capabilities_drop: capabilities(dropped, &capabilities_path.child("drop"), errors),
        proc_unmasked: proc_mount(context, scope, &path.child("procMount"), errors),
    }
}

/// The fields that are in both contexts.
struct CommonFields<'a> {
    run_as_user: Option<i64>,
    run_as_group: Option<i64>,
    run_as_non_root: Option<bool>,
    seccomp: Option<&'a k8s::SeccompProfile>,
    apparmor: Option<&'a k8s::AppArmorProfile>,
    selinux: Option<&'a k8s::SELinuxOptions>,
}

impl CommonFields<'_> {
    fn convert(&self, path: &Path<'_>, errors: &mut Errors) -> SharedSecurity {
        for (name, id) in [
            ("runAsUser", self.run_as_user),
            ("runAsGroup", self.run_as_group),
        ] {
            if let Some(id) = id {
                identifier(&path.child(name), id, errors);
            }
        }
        let seccomp_path = path.child("seccompProfile");
        let apparmor_path = path.child("appArmorProfile");
        SharedSecurity {
            run_as_user: self.run_as_user,
            run_as_group: self.run_as_group,
            run_as_non_root: self.run_as_non_root,
            seccomp: self.seccomp.and_then(|seccomp| {
                let local = seccomp.localhost_profile.as_deref();
                let profile = profile(&seccomp.type_, local, &seccomp_path, errors);
                if let Some(Profile::Localhost(file)) = &profile {
                    below(&seccomp_path.child("localhostProfile"), file, errors);
                }
                profile
            }),
            apparmor: self.apparmor.and_then(|apparmor| {
                let local = apparmor.localhost_profile.as_deref();
                profile(&apparmor.type_, local, &apparmor_path, errors)
            }),
            selinux: self.selinux.map(|selinux| {
                let text = |value: &Option<String>| value.as_deref().unwrap_or_default().into();
                SeLinux {
                    user: text(&selinux.user),
                    role: text(&selinux.role),
                    kind: text(&selinux.type_),
                    level: text(&selinux.level),
                }
            }),
        }
    }
}

fn identifier(path: &Path<'_>, id: i64, errors: &mut Errors) {
    range(path, id, 0, i32::MAX.into(), errors);
}

fn profile(
    kind: &str,
    local: Option<&str>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<Profile> {
    let local_path = path.child("localhostProfile");
    if kind != "Localhost"
        && let Some(local) = local
    {
        errors.invalid(&local_path, local, "goes only with type Localhost");
    }
    match (kind, local) {
        ("Unconfined", _) => Some(Profile::Unconfined),
        ("RuntimeDefault", _) => Some(Profile::RuntimeDefault),
        ("Localhost", None | Some("")) => {
            errors.required(&local_path, "type Localhost needs the name of a profile");
            None
        }
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                errors.invalid(&local_path, name, "must not begin or end with blanks");
            }
            if name.len() > MAX_PROFILE {
                let detail = format_args!("must not be longer than {MAX_PROFILE} bytes");
                errors.invalid(&local_path, name.len(), detail);
            }
            Some(Profile::Localhost(name.into()))
        }
        ("", _) => {
            errors.required(&path.child("type"), "");
            None
        }
        (other, _) => {
            let known = ["Localhost", "RuntimeDefault", "Unconfined"];
            errors.unsupported(&path.child("type"), other, &known);
            None
        }
    }
}

/// The form of AppArmor profiles in manifests from before the field existed.
fn apparmor_annotation(container: &str, scope: &Scope<'_>, errors: &mut Errors) -> Option<Profile> {
    let key = format!("{APPARMOR_PREFIX}{container}");
    let value = scope.annotations.get(&key)?.as_str();
    match value {
        "" => None,
        "unconfined" => Some(Profile::Unconfined),
        "runtime/default" => Some(Profile::RuntimeDefault),
        other => match other
            .strip_prefix("localhost/")
            .filter(|name| !name.is_empty())
        {
            Some(name) => Some(Profile::Localhost(name.into())),
            None => {
                let root = Path::root();
                let metadata = root.child("metadata");
                let annotations = metadata.child("annotations");
                let known = ["runtime/default", "unconfined", "localhost/PROFILE"];
                errors.unsupported(&annotations.key(&key), other, &known);
                None
            }
        },
    }
}

/// Names without the prefix CAP_, which runtimes put before them.
fn capabilities(list: Option<&Vec<String>>, path: &Path<'_>, errors: &mut Errors) -> Vec<Box<str>> {
    let mut names = Vec::new();
    for (index, written) in list.into_iter().flatten().enumerate() {
        let upper = written.to_uppercase();
        let name = upper.strip_prefix("CAP_").unwrap_or(&upper);
        if !CAPABILITIES.contains(&name) {
            let path = path.index(index);
            match nearest(name, CAPABILITIES) {
                Some(meant) => errors.invalid(
                    &path,
                    written,
                    format_args!("no capability of Linux; did you mean {meant:?}?"),
                ),
                None => errors.invalid(&path, written, "no capability of Linux"),
            }
        }
        names.push(name.into());
    }
    names
}

fn proc_mount(
    context: &k8s::SecurityContext,
    scope: &Scope<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> bool {
    match context.proc_mount.as_deref().unwrap_or_default() {
        "" | "Default" => {}
        "Unmasked" if scope.own_users => return true,
        "Unmasked" => {
            errors.invalid(path, "Unmasked", "hostUsers must be false to use Unmasked");
        }
        other => errors.unsupported(path, other, &["Default", "Unmasked"]),
    }
    false
}

fn sysctls(
    context: &k8s::PodSecurityContext,
    spec: &k8s::PodSpec,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<(Box<str>, Box<str>)> {
    let mut seen = HashSet::new();
    let mut converted = Vec::new();
    for (index, sysctl) in context.sysctls.iter().flatten().enumerate() {
        let path = path.index(index);
        let path = path.child("name");
        let name = dotted(&sysctl.name);
        if name.is_empty() {
            errors.required(&path, "");
        } else if !is_sysctl(&sysctl.name) {
            let detail = "use up to 253 lower-case letters, digits, '-' and '_', in parts joined by '.' or '/'";
            errors.invalid(&path, &sysctl.name, detail);
        } else if !seen.insert(name.clone()) {
            errors.duplicate(&path, &name);
        }
        if name.starts_with("net.") && spec.host_network == Some(true) {
            errors.invalid(
                &path,
                &sysctl.name,
                "would change the host, because hostNetwork is true",
            );
        }
        if is_ipc(&name) && spec.host_ipc == Some(true) {
            errors.invalid(
                &path,
                &sysctl.name,
                "would change the host, because hostIPC is true",
            );
        }
        converted.push((name.into(), sysctl.value.as_str().into()));
    }
    converted
}

/// With a slash as the first separator the slashes are separators, and dots belong to names.
fn dotted(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(at) if name[at..].starts_with('/') => name
            .chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect(),
        _ => name.to_owned(),
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().copied().is_some_and(is_word)
            && bytes.last().copied().is_some_and(is_word)
            && bytes.iter().all(|&b| is_word(b) || b == b'-' || b == b'_')
    };
    name.len() <= MAX_SYSCTL && name.split(['.', '/']).all(is_part)
}

/// sysctl(5) of the IPC namespace.
fn is_ipc(name: &str) -> bool {
    ["kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue."]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}
