//! Starts containers from OCI specifications: the embedded runtime, without policy.
//!
//! Everything here is called from a process with a single thread, the shim: [`launch`] and [`exec`]
//! fork, and what runs in the child allocates memory.
//!
//! - [`make_namespaces`] makes what the containers of a pod share.
//! - [`launch`] forks a container's init and returns at once. The init sets itself up and tells how
//!   that went through [`Reports`]; it waits at a [`Gate`] until it may execute its program.
//! - [`exec`] does the same for a process that joins a running container.
//! - [`sealed_executable`] protects the program that all of them run until they execute another.
//!
//! Needs Linux 5.12: `mount_setattr`, `openat2`, `close_range` and the file-descriptor based mounts.

mod actor;
mod capabilities;
mod dev;
mod error;
mod exec;
mod filesystem;
mod ids;
mod in_root;
mod init;
mod launch;
mod mount_options;
mod namespaces;
mod overlay;
mod plan;
mod proc;
mod program;
mod report;
mod rlimits;
mod sealed;
mod standard;
mod step;
mod sys;

pub use error::LaunchError;
pub use exec::{ExecLaunch, exec};
pub use launch::{Console, Launch, Launching, Overlay, RootfsSource, Stdio, launch};
pub use namespaces::{IdMappings, Joined, NamespacesWanted, Pause, PodNamespaces, make_namespaces};
pub use report::{Gate, Report, Reports, open_gate, read_report};
pub use sealed::sealed_executable;
