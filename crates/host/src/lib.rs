//! The machine below Rubelet, in small modules without policy. All functions block.
//!
//! - [`cgroup`]: finds the hierarchies; makes, writes, lists and removes cgroups.
//! - [`mount`], [`mountinfo`]: mounts and what is mounted.
//! - [`machine`]: capacity and identity of the machine. [`identity`]: what its system calls itself.
//!   [`thermal`]: what its processors tell of their heat.
//! - [`netlink`], [`netns`]: interfaces, addresses, routes; network namespaces. [`nft`]: address
//!   translation.
//! - [`systemd`]: scopes, for the cgroup driver of that name.
//! - [`lock`]: one process for one folder. [`net_lock`]: one for one name in a network namespace.
//! - [`suspend`]: how long the machine slept.
//! - [`open_files`]: how many this process may open, and what it starts.
//! - [`process_group`]: ends a program with what it started. [`init_process`]: a descriptor for the
//!   init process of a container. [`inotify`]: what happened to files.
//! - [`usage`]: how much of memory, disks and processes is in use. [`address`]: IP addresses.
//! - [`alloc`]: keeps the allocator small. [`text`]: keeps the program's code small. The only places
//!   with `unsafe`.

pub mod address;
pub mod alloc;
pub mod cgroup;
#[cfg(feature = "frames")]
pub mod frames;
pub mod identity;
pub mod init_process;
pub mod inotify;
pub mod lock;
pub mod machine;
pub mod mount;
pub mod mountinfo;
pub mod net_lock;
pub mod netlink;
pub mod netns;
pub mod nft;
pub mod open_files;
pub mod process_group;
pub mod suspend;
pub mod systemd;
pub mod text;
pub mod thermal;
pub mod usage;

pub use cgroup::{CgroupFs, CgroupLayout, Removal};
pub use machine::Machine;
