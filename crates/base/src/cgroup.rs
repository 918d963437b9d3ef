//! Names and values of cgroups. The crate that decides the values and the crate that writes them
//! must not know each other, so what passes between them stands here.

mod path;
mod values;

pub use path::{CgroupPath, CgroupPathError};
pub use values::{CgroupValues, CpuQuota, CpuShare, HugepageLimit, page_size_name};
