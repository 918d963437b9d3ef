//! Cgroups as values: who creates them, how the host mounts them, how they are named, and what they
//! are limited to.
//!
//! - [`CgroupDriver`], [`CgroupLayout`]: the two facts of a node on which everything else depends.
//! - [`CgroupPath`]: the name of a cgroup, which is never the root.
//! - [`CgroupValues`]: the limits of a cgroup.
//! - [`cpu`]: conversion of thousandths of a core to shares, weights and quotas.
//! - [`runtime_cgroup`]: the cgroups and scopes of containers and shims.
//!
//! Pure: this crate never reads or writes a cgroup, and does not know what a pod is. So the crates
//! that decide about cgroups and the one that writes them share these types without using each
//! other.
//!
//! ```
//! use rubelet_cgroup_plan::{CgroupDriver, CgroupPath, runtime_cgroup};
//!
//! let pod = "/kubepods.slice/kubepods-podu1.slice";
//! let one = runtime_cgroup::container(pod, "c1", CgroupDriver::Systemd).expect("a slice");
//! assert_eq!(one.path.as_str(), "/kubepods.slice/kubepods-podu1.slice/rubelet-c1.scope");
//! assert_eq!(one.oci(), "kubepods-podu1.slice:rubelet:c1");
//! assert!(CgroupPath::parse("/").is_err());
//! ```

pub mod cpu;
mod driver;
mod layout;
mod path;
pub mod runtime_cgroup;
mod values;

pub use cpu::{CpuQuota, CpuShare};
pub use driver::CgroupDriver;
pub use layout::CgroupLayout;
pub use path::{CgroupPath, CgroupPathError};
pub use runtime_cgroup::{CgroupParentError, ContainerCgroup, SystemdScope};
pub use values::{CgroupValues, HugepageLimit, page_size_name};
