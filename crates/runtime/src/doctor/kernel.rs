//! Kernel features.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rubelet_cgroup_plan::{CgroupDriver, CgroupLayout};
use rubelet_host::CgroupFs;
use rubelet_runtime_plan::profile::APPARMOR_DEFAULT;

use super::{Finding, Severity};
use crate::apparmor::{self, ProfileObstacle};

/// Older kernels lack `openat2` (5.6) or `close_range` (5.9).
const OLDEST: (u32, u32) = (5, 10);
/// The first kernel with ID-mapped overlay mounts.
const IDMAPPED_OVERLAY: (u32, u32) = (5, 19);

pub(super) fn release(release: &str) -> Option<Finding> {
    let version = parse_release(release)?;
    if version < OLDEST {
        return Some(Finding::new(
            Severity::Error,
            format!("the kernel is {release}"),
            "containers are started with system calls that kernels before 5.10 don't have",
            "boot a newer kernel",
        ));
    }
    (version < IDMAPPED_OVERLAY).then(|| {
        Finding::new(
            Severity::Warning,
            format!("the kernel is {release}"),
            "pods with hostUsers: false need idmapped overlay mounts, which came with 5.19",
            "boot a newer kernel, or do not use user namespaces",
        )
    })
}

/// Major and minor number of `6.1.0-18-amd64`.
fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(['.', '-', '+']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

pub(super) fn file_systems(root: &Path) -> Vec<Finding> {
    let known = fs::read_to_string(root.join("proc/filesystems")).unwrap_or_default();
    let has = |name: &str| {
        known
            .lines()
            .any(|line| line.split_whitespace().last() == Some(name))
    };
    [
        ("overlay", "image layers are combined with it"),
        ("tmpfs", "/dev and /dev/shm of containers are on it"),
        ("mqueue", "containers have their own POSIX message queues"),
    ]
    .into_iter()
    .filter(|(name, _)| !has(name) && !module_can_be_loaded(root, name))
    .map(|(name, why)| {
        Finding::new(
            if name == "mqueue" {
                Severity::Warning
            } else {
                Severity::Error
            },
            format!("the kernel has no file system `{name}`"),
            why,
            format!("load the module (`modprobe {name}`), or build the kernel with it"),
        )
    })
    .collect()
}

/// Reports whether a module is loaded, built in, or can be loaded by the kernel on first use.
fn module_can_be_loaded(root: &Path, name: &str) -> bool {
    if root.join("sys/module").join(name).exists() {
        return true;
    }
    let Ok(release) = fs::read_to_string(root.join("proc/sys/kernel/osrelease")) else {
        return false;
    };
    let modules = root.join("lib/modules").join(release.trim());
    ["modules.dep", "modules.builtin"].iter().any(|list| {
        let text = fs::read_to_string(modules.join(list)).unwrap_or_default();
        text.lines().any(|line| {
            let file = line.split(':').next().unwrap_or_default();
            let file = file.rsplit('/').next().unwrap_or_default();
            file.split('.').next().map(|stem| stem.replace('-', "_"))
                == Some(name.replace('-', "_"))
        })
    })
}

pub(super) fn cgroups(mount: &Path) -> Vec<Finding> {
    match CgroupFs::detect(mount) {
        Ok(cgroups) => missing_controllers(mount, &cgroups),
        Err(error) => vec![Finding::new(
            Severity::Error,
            rubelet_base::ErrorChain(&error).to_string(),
            "containers are limited, counted and killed through cgroups",
            "mount the cgroup file system (`mount -t cgroup2 none /sys/fs/cgroup`)",
        )],
    }
}

fn missing_controllers(mount: &Path, cgroups: &CgroupFs) -> Vec<Finding> {
    let unified = cgroups.layout() == CgroupLayout::V2;
    let there: Vec<String> = if unified {
        let text = fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    } else {
        rubelet_host::mountinfo::read()
            .unwrap_or_default()
            .iter()
            .filter(|entry| entry.fs_type == "cgroup")
            .flat_map(|entry| entry.super_options.split(',').map(str::to_owned))
            .collect()
    };
    let needed: &[&str] = if unified {
        &["cpu", "memory", "pids", "cpuset"]
    } else {
        &["cpu", "cpuacct", "memory", "pids", "cpuset", "devices"]
    };
    let mut findings: Vec<Finding> = needed
        .iter()
        .filter(|name| !there.iter().any(|there| there == *name))
        .map(|name| {
            Finding::new(
                if *name == "devices" {
                    Severity::Error
                } else {
                    Severity::Warning
                },
                format!("the cgroup controller `{name}` is missing"),
                "limits of this kind cannot be set, and pods with such limits are refused",
                format!("boot without `cgroup_disable={name}`, with the controller enabled"),
            )
        })
        .collect();
    if !unified {
        findings.push(Finding::new(
            Severity::Note,
            "cgroup version 1 is in use",
            "memory QoS, PSI per container and safe removal need version 2",
            "boot with `systemd.unified_cgroup_hierarchy=1`",
        ));
    }
    findings
}

/// Checks that the configured cgroup driver fits the init system.
pub(super) fn cgroup_driver(root: &Path, driver: CgroupDriver) -> Option<Finding> {
    // See `sd_booted(3)`.
    let is_systemd = root.join("run/systemd/system").is_dir();
    match driver {
        CgroupDriver::Systemd if !is_systemd => Some(Finding::new(
            Severity::Error,
            "cgroupDriver is systemd, but systemd is not the init system of this machine",
            "systemd has to create the cgroups of pods",
            "set cgroupDriver to cgroupfs",
        )),
        CgroupDriver::Cgroupfs if is_systemd => Some(Finding::new(
            Severity::Note,
            "cgroupDriver is cgroupfs on a machine with systemd",
            "two programs manage cgroups independently; the node may become unstable under resource pressure",
            "drain the node, then set cgroupDriver to systemd",
        )),
        _ => None,
    }
}

pub(super) fn namespaces(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, kind) in [
        ("net", "network"),
        ("ipc", "IPC"),
        ("uts", "UTS"),
        ("pid", "PID"),
        ("mnt", "mount"),
    ] {
        if !exists(&root.join("proc/self/ns").join(file)) {
            findings.push(Finding::new(
                Severity::Error,
                format!("the kernel has no {kind} namespaces"),
                "each pod has its own",
                "build the kernel with CONFIG_NAMESPACES and all kinds below it",
            ));
        }
    }
    let users = read(root, "proc/sys/user/max_user_namespaces");
    if users.is_empty() || users == "0" {
        findings.push(Finding::new(
            Severity::Warning,
            "user namespaces are disabled",
            "pods with hostUsers: false will not start",
            "set the sysctl user.max_user_namespaces, with CONFIG_USER_NS in the kernel",
        ));
    }
    findings
}

pub(super) fn network(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, name) in [
        ("proc/sys/net/ipv4/ip_forward", "net.ipv4.ip_forward"),
        (
            "proc/sys/net/ipv6/conf/all/forwarding",
            "net.ipv6.conf.all.forwarding",
        ),
    ] {
        if read(root, file) == "0" {
            findings.push(Finding::new(
                Severity::Note,
                format!("{name} is 0"),
                "packets of pods don't leave the machine; the built-in bridge enables it with its first pod",
                format!("`sysctl -w {name}=1`"),
            ));
        }
    }
    for (module, why) in [
        ("bridge", "pods are connected to a bridge"),
        ("veth", "a pod's interface is one end of a veth pair"),
        ("nf_tables", "masquerade and host ports are nftables rules"),
    ] {
        let built_in = module == "nf_tables" && exists(&root.join("proc/net/netfilter"));
        if !built_in && !module_can_be_loaded(root, module) && !in_kernel(root, module) {
            findings.push(Finding::new(
                Severity::Warning,
                format!("the kernel module `{module}` was not found"),
                format!("{why}; it may nevertheless be built into the kernel"),
                format!("`modprobe {module}`; pods with hostNetwork: true work without it"),
            ));
        }
    }
    findings
}

/// The finding if the kernel refuses the nftables rules that check the senders of pods' packets.
pub(super) fn sender_rules(missing: Option<String>) -> Option<Finding> {
    missing.map(|why| {
        Finding::new(
            Severity::Warning,
            format!("the kernel does not support nftables rules for bridges: {why}"),
            "a pod with CAP_NET_RAW or CAP_NET_ADMIN can send with the addresses of other pods",
            "`modprobe nft_meta_bridge`, or boot a kernel with CONFIG_NF_TABLES_BRIDGE; or use a CNI plugin that checks senders",
        )
    })
}

/// A built-in feature shows in `/proc/kallsyms`, if that is readable.
fn in_kernel(root: &Path, module: &str) -> bool {
    let symbol = match module {
        "bridge" => " br_add_bridge",
        "veth" => " veth_newlink",
        _ => " nf_tables_newtable",
    };
    fs::read_to_string(root.join("proc/kallsyms")).is_ok_and(|text| text.contains(symbol))
}

pub(super) fn security_modules(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !exists(&root.join("proc/sys/kernel/seccomp/actions_avail")) {
        findings.push(Finding::new(
            Severity::Error,
            "the kernel cannot filter system calls",
            "containers with a seccomp profile, which is the default, are refused",
            "build the kernel with CONFIG_SECCOMP_FILTER",
        ));
    }
    if !apparmor::is_enabled(root) {
        findings.push(Finding::new(
            Severity::Note,
            "AppArmor is not enabled",
            "containers with a Localhost AppArmor profile are refused; others run unconfined",
            "boot with `apparmor=1 security=apparmor` if you want it",
        ));
    } else if let Some(ProfileObstacle { what, remedy }) = apparmor::obstacle(root) {
        findings.push(Finding::new(
            Severity::Warning,
            format!("the AppArmor profile {APPARMOR_DEFAULT} cannot be loaded: {what}"),
            "containers that request no AppArmor profile run unconfined, and those that request RuntimeDefault are refused",
            remedy,
        ));
    }
    if exists(&root.join("sys/fs/selinux/enforce")) {
        findings.push(Finding::new(
            Severity::Warning,
            "SELinux is enabled, and this runtime does not apply its labels",
            "containers run under the label of rubelet itself; pods with seLinuxOptions are refused",
            "set containerRuntimeEndpoint to another runtime if containers must be confined by SELinux",
        ));
    }
    findings
}

fn exists(path: &PathBuf) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn read(root: &Path, file: &str) -> String {
    let text = fs::read_to_string(root.join(file)).unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests;
