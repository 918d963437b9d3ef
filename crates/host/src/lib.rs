//! The machine below Rubelet, in small modules without policy. All functions block, but those of [`inotify`] and
//! [`logind`].
//!
//! - [`cgroup`]: finds the hierarchies; creates, writes, lists and removes cgroups.
//! - [`mount`], [`mountinfo`]: mounts, and the mount table.
//! - [`machine`]: capacity and identity of the machine. [`identity`]: identity of its system.
//!   [`thermal`]: thermal throttling of its processors.
//! - [`netlink`], [`netns`]: interfaces, addresses, routes; network namespaces. [`nft`]: address
//!   translation.
//! - [`datagram`]: datagrams with control messages and error queues. [`packet_tap`]: copies of the
//!   packets that pass an interface. [`packet_programs`]: what else decides about them.
//!   [`reverse_name`]: names of addresses. [`tcp_link`]: whether the other end of a TCP connection
//!   still answers.
//! - [`systemd`]: slices and scopes, for the cgroup driver of that name. [`logind`]: shutdowns of the
//!   machine.
//! - [`lock`]: one process per directory. [`net_lock`]: one per name in a network namespace.
//! - [`suspend`]: how long the machine was suspended.
//! - [`open_files`]: the limit of open files of this process, and of the programs that it starts.
//!   [`own_process`]: what this process uses.
//! - [`process_group`]: kills a program with its children. [`init_process`]: a pidfd of a
//!   container's init process. [`inotify`]: file events.
//! - [`usage`]: usage of memory, disks and processes. [`tree_usage`]: that of a directory.
//!   [`project_quota`]: the same, counted by the kernel. [`meminfo`]: numbers of `/proc/meminfo`.
//!   [`memory_stall`]: notifications of too little memory. [`address`]: IP addresses.
//! - [`alloc`]: returns freed heap memory to the kernel. [`file_pages`]: the same for pages of the
//!   program and its libraries.
//!
//! This crate never decides what a pod may do, and does not know what a pod is.
//!
//! ```
//! use std::path::Path;
//!
//! use rubelet_host::mountinfo;
//!
//! let text = b"22 1 0:20 / /proc rw,nosuid shared:5 - proc proc rw\n";
//! let mounts = mountinfo::parse(text).expect("a line of the kernel");
//! assert_eq!(mounts[0].mount_point, Path::new("/proc"));
//! assert!(mounts[0].is_shared());
//! ```

mod bpf;
mod dbus;

pub mod address;
pub mod alloc;
pub mod cgroup;
pub mod datagram;
pub mod file_pages;
#[cfg(feature = "frames")]
pub mod frames;
pub mod identity;
pub mod init_process;
pub mod inotify;
pub mod kernel_log;
pub mod lock;
pub mod logind;
pub mod machine;
pub mod meminfo;
pub mod memory_stall;
pub mod mount;
pub mod mountinfo;
pub mod net_lock;
pub mod netlink;
pub mod netns;
pub mod nft;
pub mod open_files;
pub mod own_process;
pub mod packet_programs;
pub mod packet_tap;
pub mod process_group;
pub mod project_quota;
pub mod reverse_name;
pub mod suspend;
pub mod systemd;
pub mod tcp_link;
pub mod thermal;
pub mod tree_usage;
pub mod usage;

pub use cgroup::{CgroupFs, CgroupRemoval};
pub use dbus::{BusAddress, BusAddressError, BusError};
pub use machine::Machine;
