//! Features of the host on which decisions depend, detected once by the caller.

use rubelet_cgroup_plan::{CgroupDriver, CgroupLayout};

use crate::{capability::CapSet, seccomp::Arch};

/// Facts about the host.
#[derive(Debug, Clone)]
pub struct HostFacts {
    /// Layout of the cgroup hierarchies.
    pub cgroups: CgroupLayout,
    /// The cgroup driver.
    pub driver: CgroupDriver,
    /// AppArmor is enabled in the kernel.
    pub apparmor: bool,
    /// SELinux is enabled.
    pub selinux: bool,
    /// The kernel supports seccomp filters.
    pub seccomp: bool,
    /// Capabilities that the agent can grant: its bounding set.
    pub capabilities: CapSet,
    /// Swap can be limited (`memory.memsw.limit_in_bytes` or `memory.swap.max` exists).
    pub swap: bool,
    /// The hugetlb controller is available.
    pub hugetlb: bool,
    /// User namespaces can be created.
    pub user_namespaces: bool,
    /// The kernel supports ID-mapped mounts (`mount_setattr`, 5.12).
    pub idmapped_mounts: bool,
    /// The kernel supports recursive read-only mounts (`mount_setattr`, 5.12).
    pub recursive_read_only: bool,
    /// Kernel release as `(major, minor)`.
    pub kernel: (u32, u32),
    /// Architecture.
    pub arch: Arch,
    /// The host name, for pods that share it.
    pub hostname: String,
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
