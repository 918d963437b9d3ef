//! Names and values of cgroups. The crate that computes the values and the crate that writes them
//! must not depend on each other, so their shared types are here.

mod path;
mod values;

pub use path::{CgroupPath, CgroupPathError};
pub use values::{CgroupValues, CpuQuota, CpuShare, HugepageLimit, page_size_name};

/// Who creates the cgroups of containers, and so how cgroups are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupDriver {
    /// Rubelet, as directories of the cgroup file system.
    Cgroupfs,
    /// systemd, as slices and scopes.
    Systemd,
}
