//! The cgroup driver.

/// Who creates the cgroups of containers, and so how cgroups are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupDriver {
    /// Rubelet, as directories of the cgroup file system.
    Cgroupfs,
    /// systemd, as slices and scopes.
    Systemd,
}
