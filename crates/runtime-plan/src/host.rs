//! What the host can do, as far as decisions depend on it. Whoever runs the plans looks once.

use rubelet_base::cgroup::CgroupDriver;

use crate::{capability::CapSet, seccomp::Arch};

/// Facts about the host.
#[derive(Debug, Clone)]
pub struct HostFacts {
    /// Layout of the cgroup hierarchies.
    pub cgroups: CgroupLayout,
    /// Who makes cgroups.
    pub driver: CgroupDriver,
    /// Whether the kernel has AppArmor and it is switched on.
    pub apparmor: bool,
    /// Whether SELinux is switched on.
    pub selinux: bool,
    /// Whether the kernel filters system calls.
    pub seccomp: bool,
    /// Capabilities that the agent itself may give away: its bounding set.
    pub capabilities: CapSet,
    /// Whether swap can be limited (`memory.memsw.limit_in_bytes` or `memory.swap.max` exists).
    pub swap: bool,
    /// Whether the hugetlb controller is there.
    pub hugetlb: bool,
    /// Whether user namespaces can be made.
    pub user_namespaces: bool,
    /// Whether the kernel maps the IDs of mounts (`mount_setattr`, 5.12).
    pub idmapped_mounts: bool,
    /// Whether mounts can be made read-only with everything below them (`mount_setattr`, 5.12).
    pub recursive_read_only: bool,
    /// Kernel release as `(major, minor)`.
    pub kernel: (u32, u32),
    /// Architecture.
    pub arch: Arch,
    /// The host's own name, for pods that share it.
    pub hostname: String,
}

/// Layout of the cgroup hierarchies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupLayout {
    /// One hierarchy for each controller.
    V1,
    /// One hierarchy for all of them.
    V2,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A host that can do everything but AppArmor and SELinux.
    pub(crate) fn host() -> HostFacts {
        HostFacts {
            cgroups: CgroupLayout::V2,
            driver: CgroupDriver::Cgroupfs,
            apparmor: false,
            selinux: false,
            seccomp: true,
            capabilities: CapSet::ALL,
            swap: true,
            hugetlb: true,
            user_namespaces: true,
            idmapped_mounts: true,
            recursive_read_only: true,
            kernel: (6, 12),
            arch: Arch::X86_64,
            hostname: "node".into(),
        }
    }
}
