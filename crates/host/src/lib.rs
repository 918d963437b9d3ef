//! The machine below Rubelet, in small modules without policy. All functions block.
//!
//! - [`cgroup`]: finds the hierarchies; makes, writes, lists and removes cgroups.
//! - [`mount`], [`mountinfo`]: mounts and what is mounted.
//! - [`machine`]: capacity and identity of the machine.
//! - [`alloc`]: keeps the allocator small. The only place with `unsafe`.

pub mod alloc;
pub mod cgroup;
pub mod machine;
pub mod mount;
pub mod mountinfo;

pub use cgroup::{CgroupFs, CgroupLayout, Removal};
pub use machine::Machine;
