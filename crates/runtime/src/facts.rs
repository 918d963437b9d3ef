//! Features of this host, detected once at the start of the runtime.

use std::{fs, path::Path};

use rubelet_cgroup_plan::{CgroupDriver, CgroupLayout, CgroupPath};
use rubelet_host::{CgroupFs, Machine};
use rubelet_runtime_plan::{capability::CapSet, host::HostFacts, seccomp::Arch};

use crate::apparmor;

/// The architecture that this program was built for.
const ARCH: Arch = if cfg!(target_arch = "aarch64") {
    Arch::Aarch64
} else {
    Arch::X86_64
};

/// Detects the facts. `known` is a cgroup that exists. Blocks.
pub(crate) fn read(
    machine: &Machine,
    cgroups: &CgroupFs,
    driver: CgroupDriver,
    known: &CgroupPath,
) -> HostFacts {
    let kernel = kernel(&machine.kernel_version);
    let mount_setattr = kernel >= (5, 12);
    HostFacts {
        cgroups: cgroups.layout(),
        driver,
        apparmor: apparmor::is_enabled(Path::new("/")),
        selinux: Path::new("/sys/fs/selinux/enforce").exists(),
        seccomp: Path::new("/proc/sys/kernel/seccomp/actions_avail").exists(),
        capabilities: bounding_set(),
        swap: cgroups.limits_swap(known),
        hugetlb: has_hugetlb(cgroups.layout()),
        user_namespaces: Path::new("/proc/self/ns/user").exists()
            && !matches!(&*first_line("/proc/sys/user/max_user_namespaces"), "" | "0"),
        idmapped_mounts: mount_setattr,
        recursive_read_only: mount_setattr,
        kernel,
        arch: ARCH,
        hostname: machine.hostname.clone(),
    }
}

fn has_hugetlb(layout: CgroupLayout) -> bool {
    match layout {
        CgroupLayout::V2 => first_line("/sys/fs/cgroup/cgroup.controllers")
            .split_whitespace()
            .any(|name| name == "hugetlb"),
        CgroupLayout::V1 | CgroupLayout::Hybrid => Path::new("/sys/fs/cgroup/hugetlb").is_dir(),
    }
}

fn bounding_set() -> CapSet {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status
        .lines()
        .find_map(|line| line.strip_prefix("CapBnd:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    CapSet::from_bits(bits.unwrap_or(0))
}

fn first_line(file: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Major and minor number of a release such as `6.1.0-18-amd64`; zeros if it has none.
pub(crate) fn kernel(release: &str) -> (u32, u32) {
    let mut parts = release.split(['.', '-', '+']);
    let mut next = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
    (next(), next())
}
